// SPDX-License-Identifier: BSD-2-Clause
/* From a request to a reply: each method, who may call it, and what is wrong with a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fake-control.h"

static const struct control_peer user = {.may_change = false};
static const struct control_peer admin = {.may_change = true};

/* Reply as text into buf; "" = none. */
static int call(struct fake_control *f, const struct control_peer *peer, const char *request,
		char *buf, size_t size)
{
	struct json_object *o = json_tokener_parse(request), *reply = NULL;
	int r;

	assert_non_null(o);
	r = control_dispatch(&fake_ops, f, peer, 77, o, &reply);
	json_object_put(o);
	snprintf(buf, size, "%s",
		 reply ? json_object_to_json_string_ext(
				 reply, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
		       : "");
	json_object_put(reply);
	return r;
}

#define assert_call(f, peer, request, want)                                      \
	do {                                                                     \
		char _buf[4096];                                                 \
		assert_int_equal(call(f, peer, request, _buf, sizeof(_buf)), 0); \
		assert_string_equal(_buf, want);                                 \
	} while (0)

static void test_reads(void **state)
{
	struct fake_control f = {0};

	(void)state;
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.Status\"}",
		    "{\"parameters\":{\"status\":\"status\"}}");
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.InFlight\",\"parameters\":{}}",
		    "{\"parameters\":{\"requests\":\"requests\"}}");
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.Probes\",\"parameters\":null}",
		    "{\"parameters\":{\"probes\":\"probes\"}}");
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.Config\",\"more\":true}",
		    "{\"parameters\":{\"yaml\":\"yaml\"}}");
	assert_int_equal(f.n_reads, 4);
	assert_int_equal(f.n_changes, 0);
}

static void test_changes_need_rights(void **state)
{
	struct fake_control f = {0};
	char buf[4096];

	(void)state;
	assert_int_equal(
		call(&f, &user, "{\"method\":\"io.iotraced.Control.Rotate\"}", buf, sizeof(buf)),
		0);
	assert_non_null(strstr(buf, "\"io.iotraced.Control.PermissionDenied\""));
	assert_int_equal(
		call(&f, &user, "{\"method\":\"io.iotraced.Control.Flush\"}", buf, sizeof(buf)), 0);
	assert_non_null(strstr(buf, "\"io.iotraced.Control.PermissionDenied\""));
	assert_int_equal(f.n_changes, 0);

	assert_int_equal(
		call(&f, &admin, "{\"method\":\"io.iotraced.Control.Rotate\"}", buf, sizeof(buf)),
		CONTROL_PENDING);
	assert_int_equal(f.last_token, 77);
	assert_string_equal(f.last_stream, "*");
	assert_int_equal(call(&f, &admin,
			      "{\"method\":\"io.iotraced.Control.Rotate\",\"parameters\":"
			      "{\"stream\":\"block\"}}",
			      buf, sizeof(buf)),
			 CONTROL_PENDING);
	assert_string_equal(f.last_stream, "block");
	assert_int_equal(call(&f, &admin,
			      "{\"method\":\"io.iotraced.Control.Flush\",\"oneway\":true}", buf,
			      sizeof(buf)),
			 CONTROL_PENDING);
	assert_int_equal(f.n_changes, 3);
}

static void test_bad_calls(void **state)
{
	struct fake_control f = {0};

	(void)state;
	assert_call(&f, &admin, "{}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"method\"}}");
	assert_call(&f, &admin, "{\"method\":7}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"method\"}}");
	assert_call(&f, &admin, "{\"method\":\"io.iotraced.Control.Status\",\"parameters\":[]}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"parameters\"}}");
	assert_call(&f, &admin, "{\"method\":\"io.iotraced.Control.Status\",\"upgrade\":true}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"upgrade\"}}");
	assert_call(&f, &admin, "{\"method\":\"io.iotraced.Control.Nope\"}",
		    "{\"error\":\"org.varlink.service.MethodNotFound\","
		    "\"parameters\":{\"method\":\"io.iotraced.Control.Nope\"}}");
	assert_call(&f, &admin, "{\"method\":\"com.example.Nope\"}",
		    "{\"error\":\"org.varlink.service.InterfaceNotFound\","
		    "\"parameters\":{\"interface\":\"com.example\"}}");
	assert_call(&f, &admin, "{\"method\":\"\"}",
		    "{\"error\":\"org.varlink.service.MethodNotFound\","
		    "\"parameters\":{\"method\":\"\"}}");
	assert_call(&f, &admin,
		    "{\"method\":\"io.iotraced.Control.Rotate\",\"parameters\":{\"stream\":1}}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"stream\"}}");
	assert_call(
		&f, &admin,
		"{\"method\":\"io.iotraced.Control.Rotate\",\"parameters\":{\"stream\":\"no\"}}",
		"{\"error\":\"org.varlink.service.InvalidParameter\","
		"\"parameters\":{\"parameter\":\"stream\"}}");
	assert_int_equal(f.n_reads + f.n_changes, 0);
}

static void test_failures_are_told(void **state)
{
	struct fake_control f = {.error = -EIO};

	(void)state;
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.Status\"}",
		    "{\"error\":\"io.iotraced.Control.Failed\","
		    "\"parameters\":{\"message\":\"as the test asked\"}}");
	assert_call(&f, &admin, "{\"method\":\"io.iotraced.Control.Flush\"}",
		    "{\"error\":\"io.iotraced.Control.Failed\","
		    "\"parameters\":{\"message\":\"Input/output error\"}}");
	f.error = -EBUSY;
	assert_call(&f, &admin, "{\"method\":\"io.iotraced.Control.Flush\"}",
		    "{\"error\":\"io.iotraced.Control.Busy\","
		    "\"parameters\":{\"message\":\"Device or resource busy\"}}");
}

static void test_oneway(void **state)
{
	struct fake_control f = {0};

	(void)state;
	assert_call(&f, &user, "{\"method\":\"io.iotraced.Control.Status\",\"oneway\":true}", "");
	assert_int_equal(f.n_reads, 1);
}

/* Every method that is described exists, and every one that exists is described. */
static void test_introspection(void **state)
{
	static const char *const methods[] = {"Status", "InFlight", "Rotate",
					      "Flush",	"Probes",   "Config"};
	struct fake_control f = {0};
	unsigned int described = 0;
	char buf[8192], line[64];

	(void)state;
	assert_int_equal(
		call(&f, &user, "{\"method\":\"org.varlink.service.GetInfo\"}", buf, sizeof(buf)),
		0);
	assert_non_null(
		strstr(buf, "\"interfaces\":[\"org.varlink.service\",\"io.iotraced.Control\"]"));
	assert_non_null(strstr(buf, "\"version\":\"" IOTRACED_VERSION "\""));

	for (const char *p = control_interface_description; (p = strstr(p, "\nmethod ")); p++)
		described++;
	assert_int_equal(described, IOT_ARRAY_SIZE(methods));
	for (size_t i = 0; i < IOT_ARRAY_SIZE(methods); i++) {
		snprintf(line, sizeof(line), "\nmethod %s(", methods[i]);
		assert_non_null(strstr(control_interface_description, line));
		snprintf(line, sizeof(line), "{\"method\":\"io.iotraced.Control.%s\"}", methods[i]);
		call(&f, &admin, line, buf, sizeof(buf));
		assert_null(strstr(buf, "NotFound"));
	}

	assert_int_equal(call(&f, &user,
			      "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
			      "\"parameters\":{\"interface\":\"io.iotraced.Control\"}}",
			      buf, sizeof(buf)),
			 0);
	assert_non_null(strstr(buf, "method Status()"));
	assert_call(&f, &user,
		    "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		    "\"parameters\":{\"interface\":\"a.b\"}}",
		    "{\"error\":\"org.varlink.service.InterfaceNotFound\","
		    "\"parameters\":{\"interface\":\"a.b\"}}");
	assert_call(&f, &user, "{\"method\":\"org.varlink.service.GetInterfaceDescription\"}",
		    "{\"error\":\"org.varlink.service.InvalidParameter\","
		    "\"parameters\":{\"parameter\":\"interface\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),	  cmocka_unit_test(test_changes_need_rights),
		cmocka_unit_test(test_bad_calls), cmocka_unit_test(test_failures_are_told),
		cmocka_unit_test(test_oneway),	  cmocka_unit_test(test_introspection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
