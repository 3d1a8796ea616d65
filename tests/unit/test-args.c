// SPDX-License-Identifier: BSD-2-Clause
/* iotraced's command line: what is taken, what is refused, and with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/args.h"

#define MAX_ARGS 12

static int parse(struct args *ret, struct iot_error *err, ...)
{
	char *argv[MAX_ARGS + 2] = {(char *)"iotraced"};
	va_list ap;
	int argc = 1;

	va_start(ap, err);
	while (argc <= MAX_ARGS && (argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	err->text[0] = '\0';
	return args_parse(argc, argv, ret, err);
}

static void test_nothing(void **state)
{
	struct iot_error err;
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, &err, NULL), 0);
	assert_int_equal(a.mode, ARGS_RUN);
	assert_null(a.config);
	assert_null(a.state_dir);
	assert_null(a.socket);
	assert_int_equal(a.duration_ns, 0);
}

static void test_all(void **state)
{
	struct iot_error err;
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, &err, "--config", "/c", "--state-dir=/s", "--socket", "/k",
			       "--duration", "1.5s", NULL),
			 0);
	assert_string_equal(a.config, "/c");
	assert_string_equal(a.state_dir, "/s");
	assert_string_equal(a.socket, "/k");
	assert_int_equal(a.duration_ns, 1500000000);
	assert_int_equal(parse(&a, &err, "--duration=90", NULL), 0);
	assert_int_equal(a.duration_ns, 90000000000);
}

static void test_modes(void **state)
{
	struct iot_error err;
	struct args a;

	(void)state;
	assert_int_equal(parse(&a, &err, "--check-config", NULL), 0);
	assert_int_equal(a.mode, ARGS_CHECK_CONFIG);
	assert_int_equal(parse(&a, &err, "--probe-check", NULL), 0);
	assert_int_equal(a.mode, ARGS_PROBE_CHECK);
	assert_int_equal(parse(&a, &err, "--version", NULL), 0);
	assert_int_equal(a.mode, ARGS_VERSION);
	assert_int_equal(parse(&a, &err, "--help", "--help", NULL), 0);
	assert_int_equal(a.mode, ARGS_HELP);
	assert_int_equal(parse(&a, &err, "-h", NULL), 0);
	assert_int_equal(a.mode, ARGS_HELP);
	assert_int_equal(parse(&a, &err, "--check-config", "--probe-check", NULL), -EINVAL);
	assert_non_null(strstr(err.text, "only one of"));
}

static void test_refused(void **state)
{
	struct iot_error err;
	struct args a = {.duration_ns = 5};

	(void)state;
	assert_int_equal(parse(&a, &err, "--nope", NULL), -EINVAL);
	assert_non_null(strstr(err.text, "\"--nope\""));
	assert_int_equal(parse(&a, &err, "-x", NULL), -EINVAL);
	assert_int_equal(parse(&a, &err, "--socket", NULL), -EINVAL);
	assert_string_equal(err.text, "--socket needs a value");
	assert_int_equal(parse(&a, &err, "--state-dir", "", NULL), -EINVAL);
	assert_non_null(strstr(err.text, "--state-dir"));
	assert_int_equal(parse(&a, &err, "--version=3", NULL), -EINVAL);
	assert_int_equal(parse(&a, &err, "start", NULL), -EINVAL);
	assert_non_null(strstr(err.text, "\"start\""));
	assert_int_equal(parse(&a, &err, "--duration", "soon", NULL), -EINVAL);
	assert_non_null(strstr(err.text, "\"soon\""));
	assert_int_equal(parse(&a, &err, "--duration", "0", NULL), -EINVAL);
	assert_int_equal(parse(&a, &err, "--duration", "-1", NULL), -EINVAL);
	/* Refused: nothing was changed. */
	assert_int_equal(a.duration_ns, 5);
}

static void test_help_names_every_option_and_code(void **state)
{
	static const char *const words[] = {
		"--config",	 "--state-dir", "--socket", "--duration", "--check-config",
		"--probe-check", "--version",	"--help",   " 0 ",	  "64 ",
		"69 ",		 "71 ",		"73 ",	    "74 ",	  "75 ",
		"77 ",		 "78 "};
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	args_help(f);
	fclose(f);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(words); i++)
		assert_non_null(strstr(text, words[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_help_names_every_option_and_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
