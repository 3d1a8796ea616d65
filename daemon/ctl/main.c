// SPDX-License-Identifier: BSD-2-Clause
/*
 * main.c - iotracectl: options, the verb, and the end of every run.
 *
 * Options mean the same everywhere (options.c), then the verb gets what is left. Exit codes are a
 * contract: 0 ok, 1 error (input damaged, output failed), 2 usage, 3 no daemon, 4 denied; verify:
 * 0 complete, 10 lost, 11 unknown, 20 torn (recoverable) or still being recorded, 21 corrupt. A
 * closed pipe is no error: the reader has seen what it wanted.
 */
#include <locale.h>
#include <signal.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"

int ctl_fail(int code, const char *fmt, ...)
{
	char text[2048], shown[2 * sizeof(text) + 1];
	va_list ap;

	/* What was printed before comes before, also when both go to one place. */
	fflush(stdout);
	/* It may name files: whoever chose their names does not choose what the terminal does. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "iotracectl: %s\n", ctl_printable(text, shown, sizeof(shown)));
	return code;
}

/*
 * stdio forgets why a write failed: by the end of a long output errno is about something else. So
 * stdout is a stream of our own, which remembers its first error and then takes everything.
 */
static int stdout_error;

static ssize_t write_stdout(void *cookie, const char *buf, size_t size)
{
	(void)cookie;
	if (stdout_error == 0)
		stdout_error = iot_write_all(STDOUT_FILENO, buf, size);
	return (ssize_t)size;
}

static int open_stdout(void)
{
	static const cookie_io_functions_t functions = {.write = write_stdout};
	FILE *f = fopencookie(NULL, "w", functions);

	if (!f)
		return -errno;
	/* Who looks at a terminal sees each line when it is there. */
	if (isatty(STDOUT_FILENO))
		setvbuf(f, NULL, _IOLBF, 0);
	stdout = f;
	return 0;
}

static int finish_stdout(int code)
{
	fflush(stdout);
	ctl_pager_close();
	if (stdout_error < 0 && stdout_error != -EPIPE)
		return ctl_output_result(stdout_error, CTL_STDOUT);
	return code;
}

static int help(int argc, char **argv)
{
	const struct ctl_verb *verb;

	if (argc < 1) {
		ctl_help();
		return CTL_OK;
	}
	verb = ctl_find_verb(argv[0]);
	if (!verb)
		return CTL_USAGE;
	ctl_help_verb(verb);
	return CTL_OK;
}

int main(int argc, char **argv)
{
	struct ctl c = {0};
	struct iot_error err = {0};
	const struct ctl_verb *verb;
	int r, first;

	setlocale(LC_CTYPE, "");
	tzset();
	signal(SIGPIPE, SIG_IGN);
	r = open_stdout();
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", strerror(-r));
	r = ctl_parse_options(&c, argc, argv, &first, &err);
	if (r < 0)
		return ctl_fail(CTL_USAGE, "%s", err.text);
	if (r == CTL_PARSED_VERSION) {
		printf("iotracectl %s\n", IOTRACED_VERSION);
		return finish_stdout(CTL_OK);
	}
	if (first < argc && strcmp(argv[first], "help") == 0)
		return finish_stdout(help(argc - first - 1, argv + first + 1));
	if (r == CTL_PARSED_HELP)
		return finish_stdout(help(argc - first, argv + first));
	if (first >= argc)
		return ctl_fail(CTL_USAGE, "which verb? see 'iotracectl --help'");
	verb = ctl_find_verb(argv[first]);
	if (!verb)
		return CTL_USAGE;
	r = ctl_check_usage(&c, verb, argc - first, argv + first);
	if (r != CTL_OK)
		return r;
	return finish_stdout(verb->run(&c, argc - first, argv + first));
}
