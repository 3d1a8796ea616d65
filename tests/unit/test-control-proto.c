// SPDX-License-Identifier: BSD-2-Clause
/* The wire form: where a message ends, what is refused, and that what is written is read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "daemon/control-proto.h"

/* Parses text with its NUL out of a buffer of exactly that size. */
static int parse(const char *text, size_t max, struct json_object **ret, size_t *ret_used)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, len);
	r = control_parse(copy, len, max, ret, ret_used);
	free(copy);
	return r;
}

static int parse_only(const char *text)
{
	struct json_object *o = NULL;
	size_t used = 0;
	int r = parse(text, CONTROL_MAX_REQUEST, &o, &used);

	if (r == 0)
		assert_int_equal(used, strlen(text) + 1);
	else
		assert_null(o);
	json_object_put(o);
	return r;
}

static void test_whole_and_partial(void **state)
{
	static const char two[] = "{\"method\":\"a.b\"}\0{\"x\":1}";
	struct json_object *o = NULL;
	size_t used = 0;

	(void)state;
	for (size_t n = 0; n < 16; n++)
		assert_int_equal(control_parse(two, n, CONTROL_MAX_REQUEST, &o, &used),
				 CONTROL_MORE);
	assert_int_equal(control_parse(two, sizeof(two), CONTROL_MAX_REQUEST, &o, &used), 0);
	assert_int_equal(used, 17);
	assert_string_equal(json_object_get_string(json_object_object_get(o, "method")), "a.b");
	json_object_put(o);
	assert_int_equal(
		control_parse(two + used, sizeof(two) - used, CONTROL_MAX_REQUEST, &o, &used), 0);
	assert_int_equal(used, 8);
	json_object_put(o);
}

static void test_refuses_what_is_no_object(void **state)
{
	static const char *const bad[] = {
		"",  "x",	 "[]",	  "1",		"\"a\"",	   "null",
		"{", "{\"a\":}", "{} {}", "{\"a\":1,}", "{\"a\":\"\xff\"}"};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_only(bad[i]), -EBADMSG);
	assert_int_equal(parse_only("{}"), 0);
	assert_int_equal(parse_only(" {\"a\" : [1, 2]} "), 0);
}

static void test_size_limit(void **state)
{
	char text[64];
	struct json_object *o = NULL;
	size_t used;

	(void)state;
	snprintf(text, sizeof(text), "{\"a\":\"%020d\"}", 1); /* 28 bytes and the NUL */
	assert_int_equal(strlen(text), 28);
	assert_int_equal(parse(text, 29, &o, &used), 0);
	json_object_put(o);
	assert_int_equal(parse(text, 28, &o, &used), -E2BIG);
	/* Without an end it is not too large before it is. */
	assert_int_equal(control_parse(text, 27, 28, &o, &used), CONTROL_MORE);
	assert_int_equal(control_parse(text, 28, 28, &o, &used), -E2BIG);
}

/* n containers, the outermost an object. */
static void nested(char *buf, size_t size, unsigned int n, const char *inner)
{
	size_t len = 0;

	len += (size_t)snprintf(buf + len, size - len, "{\"a\":");
	for (unsigned int i = 1; i < n; i++)
		len += (size_t)snprintf(buf + len, size - len, "[");
	len += (size_t)snprintf(buf + len, size - len, "%s", inner);
	for (unsigned int i = 1; i < n; i++)
		len += (size_t)snprintf(buf + len, size - len, "]");
	snprintf(buf + len, size - len, "}");
}

static void test_depth_limit(void **state)
{
	char buf[4096];

	(void)state;
	nested(buf, sizeof(buf), CONTROL_MAX_DEPTH, "1");
	assert_int_equal(parse_only(buf), 0);
	nested(buf, sizeof(buf), CONTROL_MAX_DEPTH, "[]");
	assert_int_equal(parse_only(buf), -ELOOP);
	nested(buf, sizeof(buf), CONTROL_MAX_DEPTH + 1, "1");
	assert_int_equal(parse_only(buf), -ELOOP);
	nested(buf, sizeof(buf), 1000, "1");
	assert_int_equal(parse_only(buf), -ELOOP);
}

static void test_round_trip(void **state)
{
	struct json_object *p = json_object_new_object(), *msg, *back = NULL;
	char *text;
	size_t len, used;

	(void)state;
	json_object_object_add(p, "path", json_object_new_string("/a/b \"c\" \n"));
	json_object_object_add(p, "id", control_u64(UINT64_MAX));
	assert_int_equal(control_call("x.y.Z", p, &msg), 0);
	assert_int_equal(control_format(msg, &text, &len), 0);
	assert_int_equal(text[len - 1], '\0');
	assert_int_equal(strlen(text), len - 1);
	assert_int_equal(control_parse(text, len, CONTROL_MAX_REPLY, &back, &used), 0);
	assert_true(json_object_equal(msg, back));
	assert_non_null(strstr(text, "\"18446744073709551615\""));
	assert_non_null(strstr(text, "/a/b"));
	json_object_put(back);
	json_object_put(msg);
	free(text);
}

static void test_replies(void **state)
{
	struct json_object *msg;

	(void)state;
	assert_int_equal(control_reply(NULL, false, &msg), 0);
	assert_string_equal(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN),
			    "{\"parameters\":{}}");
	json_object_put(msg);
	assert_int_equal(control_reply(NULL, true, &msg), 0);
	assert_string_equal(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN),
			    "{\"parameters\":{},\"continues\":true}");
	json_object_put(msg);
	assert_int_equal(control_error("a.B", NULL, &msg), 0);
	assert_string_equal(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN),
			    "{\"error\":\"a.B\"}");
	json_object_put(msg);
}

/* The ctl must not include config.h, so the path stands in two places. */
static void test_one_default_socket(void **state)
{
	(void)state;
	assert_string_equal(CONTROL_SOCKET, IOT_SOCKET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_and_partial),
		cmocka_unit_test(test_refuses_what_is_no_object),
		cmocka_unit_test(test_size_limit),
		cmocka_unit_test(test_depth_limit),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_one_default_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
