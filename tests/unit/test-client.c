// SPDX-License-Identifier: BSD-2-Clause
/*
 * One call of iotracectl against servers of every kind: what is read of a reply, and which exit code and
 * words each failure gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "daemon/ctl/live.h"
#include "tests/unit/ctl-said.h"

static char path[96];

/* A child that accepts once, reads the request up to its NUL, sends reply in pieces, and closes. */
static pid_t serve(const char *reply, size_t len, size_t piece)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	unlink(path);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (pid == 0) {
		int c = accept(fd, NULL, NULL);
		char byte = 1;

		while (byte && recv(c, &byte, 1, 0) == 1)
			;
		while (len > 0) {
			size_t n = IOT_MIN(len, piece);

			if (send(c, reply, n, MSG_NOSIGNAL) != (ssize_t)n)
				break;
			reply += n;
			len -= n;
		}
		_exit(0);
	}
	close(fd);
	return pid;
}

static int call(const char *reply, size_t len, size_t piece, struct json_object **ret)
{
	struct ctl c = {.socket = path};
	pid_t pid = serve(reply, len, piece);
	int r;

	ctl_said[0] = '\0';
	r = ctl_call(&c, "a.b.C", NULL, ret);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unlink(path);
	return r;
}

#define CALL(reply, ret) call(reply, sizeof(reply), 1 << 20, ret)

static void test_reply(void **state)
{
	static const char whole[] =
		"{\"parameters\":{\"x\":\"18446744073709551615\",\"y\":7,\"z\":null,"
		"\"s\":\"t\"}}";
	struct json_object *p = NULL;
	uint64_t v = 1;

	(void)state;
	for (size_t piece = 1; piece < sizeof(whole); piece += 13) {
		assert_int_equal(call(whole, sizeof(whole), piece, &p), CTL_OK);
		assert_true(live_u64(p, "x", &v));
		assert_true(v == UINT64_MAX);
		assert_true(live_u64(p, "y", &v));
		assert_true(v == 7);
		assert_false(live_u64(p, "z", &v));
		assert_false(live_u64(p, "s", &v));
		assert_false(live_u64(p, "none", &v));
		assert_false(live_u64(NULL, "none", &v));
		assert_string_equal(live_str(p, "s"), "t");
		assert_null(live_str(p, "y"));
		json_object_put(p);
	}
	assert_int_equal(CALL("{}", &p), CTL_OK);
	assert_int_equal(json_object_object_length(p), 0);
	json_object_put(p);
}

static void test_large_reply(void **state)
{
	const size_t size = (size_t)5 << 20;
	char *text = malloc(size + 64);
	struct json_object *p = NULL;
	size_t len;

	(void)state;
	assert_non_null(text);
	len = (size_t)sprintf(text, "{\"parameters\":{\"x\":\"");
	memset(text + len, 'y', size);
	memcpy(text + len + size, "\"}}", 4);
	assert_int_equal(call(text, strlen(text) + 1, 100000, &p), CTL_OK);
	assert_int_equal(strlen(live_str(p, "x")), size);
	json_object_put(p);
	free(text);
}

static void test_errors(void **state)
{
	struct json_object *p = NULL;

	(void)state;
	assert_int_equal(CALL("{\"error\":\"io.iotraced.Control.PermissionDenied\","
			      "\"parameters\":{\"message\":\"not you\"}}",
			      &p),
			 CTL_DENIED);
	assert_string_equal(ctl_said, "denied: not you");
	assert_int_equal(CALL("{\"error\":\"io.iotraced.Control.Failed\","
			      "\"parameters\":{\"message\":\"a\\u001b[31m\"}}",
			      &p),
			 CTL_ERROR);
	assert_null(strchr(ctl_said, '\x1b'));
	assert_int_equal(CALL("{\"error\":\"org.varlink.service.InvalidParameter\","
			      "\"parameters\":{\"parameter\":\"stream\"}}",
			      &p),
			 CTL_ERROR);
	assert_non_null(strstr(ctl_said, "InvalidParameter: stream"));
	assert_int_equal(CALL("{\"error\":\"x.y.Z\"}", &p), CTL_ERROR);
	assert_null(p);
}

static void test_not_varlink(void **state)
{
	struct json_object *p = NULL;

	(void)state;
	assert_int_equal(CALL("HTTP/1.0 400 Bad Request", &p), CTL_ERROR);
	assert_non_null(strstr(ctl_said, "does not speak Varlink"));
	assert_int_equal(CALL("{\"parameters\":[]}", &p), CTL_ERROR);
	assert_non_null(strstr(ctl_said, "does not speak Varlink"));
	/* Closed in the middle of its reply. */
	assert_int_equal(call("{\"parameters\":", 14, 100, &p), CTL_NO_DAEMON);
	assert_non_null(strstr(ctl_said, "closed without a reply"));
	assert_int_equal(call("", 0, 100, &p), CTL_NO_DAEMON);
	assert_null(p);
}

static void test_nobody_there(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct ctl c = {.socket = path};
	struct json_object *p = NULL;
	char longer[200];
	int fd;

	(void)state;
	unlink(path);
	assert_int_equal(ctl_call(&c, "a.b.C", NULL, &p), CTL_NO_DAEMON);
	assert_non_null(strstr(ctl_said, path));
	assert_non_null(strstr(ctl_said, "is iotraced running?"));
	/* A socket whose daemon is dead. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	assert_int_equal(ctl_call(&c, "a.b.C", NULL, &p), CTL_NO_DAEMON);
	unlink(path);

	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	c.socket = longer;
	assert_int_equal(ctl_call(&c, "a.b.C", NULL, &p), CTL_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply),	     cmocka_unit_test(test_large_reply),
		cmocka_unit_test(test_errors),	     cmocka_unit_test(test_not_varlink),
		cmocka_unit_test(test_nobody_there),
	};
	char dir[] = "/tmp/iot-client-XXXXXX";
	int r;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/s", dir);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return r;
}
