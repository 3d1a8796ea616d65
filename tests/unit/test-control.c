// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control server against clients of every kind, on one event loop: clients here never block,
 * the loop is turned until what is expected has happened or a limit has passed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "daemon/control.h"
#include "daemon/log.h"
#include "tests/unit/fake-control.h"

#define IDLE_USEC (200ULL * 1000)
#define STATUS "{\"method\":\"io.iotraced.Control.Status\"}"
#define ROTATE "{\"method\":\"io.iotraced.Control.Rotate\"}"
#define STATUS_REPLY "{\"parameters\":{\"status\":\"status\"}}"

struct fixture {
	char dir[64];
	char path[96];
	sd_event *event;
	struct fake_control fake;
	struct control *control;
};

static size_t big_reply_bytes;
static uint64_t idle_usec;

/* Status whose reply has the size the test wants. */
static int big_status(void *userdata, struct json_object **ret, char **message)
{
	char *text;

	if (!big_reply_bytes)
		return fake_status(userdata, ret, message);
	text = malloc(big_reply_bytes + 1);
	assert_non_null(text);
	memset(text, 'x', big_reply_bytes);
	text[big_reply_bytes] = '\0';
	*ret = json_object_new_object();
	json_object_object_add(*ret, "big", json_object_new_string(text));
	free(text);
	return 0;
}

static struct control_ops test_ops;

static int open_at(struct fixture *f, struct control **ret, struct iot_error *err)
{
	const struct control_options co = {
		.event = f->event,
		.path = f->path,
		.ops = &test_ops,
		.userdata = &f->fake,
		.idle_usec = idle_usec,
	};

	return control_open(&co, ret, err);
}

static int setup_with(void **state, uint64_t usec)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct iot_error err = {0};

	assert_non_null(f);
	test_ops = fake_ops;
	test_ops.status = big_status;
	big_reply_bytes = 0;
	idle_usec = usec;
	strcpy(f->dir, "/tmp/iot-control-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(open_at(f, &f->control, &err), 0);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, IDLE_USEC);
}

/* Where the deadline is not what is tested, a busy machine must not run into it. */
static int setup_patient(void **state)
{
	return setup_with(state, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	control_close(f->control);
	sd_event_unref(f->event);
	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int connect_to(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void turn(struct fixture *f)
{
	assert_true(sd_event_run(f->event, 5000) >= 0);
}

static void put_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text) + 1, MSG_NOSIGNAL), strlen(text) + 1);
}

struct got {
	char *buf;
	size_t len;
	bool eof;
};

/* Turns the loop and reads until n messages are here, or the end; a minute at most, for valgrind. */
static struct got get(struct fixture *f, int fd, unsigned int n)
{
	struct got g = {.buf = calloc(1, 1)};
	uint64_t end = now_ms() + 60000;
	unsigned int have = 0;
	char chunk[65536];

	while (have < n && now_ms() < end) {
		ssize_t k = recv(fd, chunk, sizeof(chunk), 0);

		if (k == 0 || (k < 0 && errno == ECONNRESET)) {
			g.eof = true;
			break;
		}
		if (k < 0) {
			turn(f);
			continue;
		}
		g.buf = realloc(g.buf, g.len + (size_t)k + 1);
		assert_non_null(g.buf);
		memcpy(g.buf + g.len, chunk, (size_t)k);
		for (ssize_t i = 0; i < k; i++)
			have += chunk[i] == '\0';
		g.len += (size_t)k;
		g.buf[g.len] = '\0';
	}
	return g;
}

static void expect(struct fixture *f, int fd, const char *reply)
{
	struct got g = get(f, fd, 1);

	assert_string_equal(g.buf, reply);
	free(g.buf);
}

/* One message with this text in it, then the end. */
static void expect_refusal(struct fixture *f, int fd, const char *text)
{
	struct got g = get(f, fd, 1);

	assert_non_null(strstr(g.buf, "\"error\":\"io.iotraced.Control."));
	assert_non_null(strstr(g.buf, text));
	free(g.buf);
	g = get(f, fd, 1);
	assert_int_equal(g.len, 0);
	assert_true(g.eof);
	free(g.buf);
}

static void test_call(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	struct stat st;

	put_text(fd, STATUS);
	expect(f, fd, STATUS_REPLY);
	put_text(fd, STATUS);
	expect(f, fd, STATUS_REPLY);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	close(fd);
}

static void test_many_calls_in_one_send(void **state)
{
	static const char calls[] = STATUS "\0" STATUS "\0{\"method\":\"a.b\"}\0" STATUS;
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	const char *p;
	struct got g;

	assert_int_equal(send(fd, calls, sizeof(calls), 0), sizeof(calls));
	g = get(f, fd, 4);
	p = g.buf;
	assert_string_equal(p, STATUS_REPLY);
	p += strlen(p) + 1;
	assert_string_equal(p, STATUS_REPLY);
	p += strlen(p) + 1;
	assert_non_null(strstr(p, "InterfaceNotFound"));
	p += strlen(p) + 1;
	assert_string_equal(p, STATUS_REPLY);
	assert_int_equal(f->fake.n_reads, 3);
	free(g.buf);
	close(fd);
}

static void test_garbage(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);

	put_text(fd, "GET / HTTP/1.0\r\n\r\n");
	expect_refusal(f, fd, "not a JSON object");
	close(fd);
	fd = connect_to(f->path);
	put_text(fd, "{\"a\":[[[[[[[[1]]]]]]]]}");
	expect_refusal(f, fd, "deeper than 8");
	close(fd);
	assert_int_equal(f->fake.n_reads, 0);
}

static void test_too_large(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	char *buf = malloc(100000);
	size_t sent = 0;

	assert_non_null(buf);
	memset(buf, 'x', 100000);
	for (int i = 0; i < 100 && sent < 100000; i++) {
		ssize_t n = send(fd, buf + sent, 100000 - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		turn(f);
	}
	expect_refusal(f, fd, "larger than 64 KiB");
	free(buf);
	close(fd);
}

static void test_silence(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = now_ms();
	int fd = connect_to(f->path);

	expect_refusal(f, fd, "closing");
	assert_in_range(now_ms() - begin, IDLE_USEC / 1000 - 20, 2500);
	close(fd);
}

/* A byte now and then does not prolong anything. */
static void test_trickle(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = now_ms(), next = begin;
	int fd = connect_to(f->path);
	char c;

	while (now_ms() - begin < 2500) {
		if (now_ms() >= next) {
			if (send(fd, "{", 1, MSG_NOSIGNAL) < 0)
				break;
			next = now_ms() + 20;
		}
		turn(f);
		if (recv(fd, &c, 1, MSG_PEEK) >= 0)
			break;
	}
	assert_in_range(now_ms() - begin, IDLE_USEC / 1000 - 20, 2000);
	close(fd);
}

static void test_reply_not_taken(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = now_ms();
	int fd = connect_to(f->path), other;
	struct got g;

	big_reply_bytes = 4 << 20;
	put_text(fd, STATUS);
	while (now_ms() - begin < IDLE_USEC / 1000 + 100)
		turn(f);
	/* Meanwhile and afterwards others are served. */
	big_reply_bytes = 0;
	other = connect_to(f->path);
	put_text(other, STATUS);
	expect(f, other, STATUS_REPLY);
	g = get(f, fd, 1);
	assert_true(g.eof);
	assert_true(g.len < 4 << 20);
	free(g.buf);
	close(other);
	close(fd);
}

static void test_large_reply_taken(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	struct got g;

	big_reply_bytes = 4 << 20;
	put_text(fd, STATUS);
	g = get(f, fd, 1);
	assert_true(g.len > 4 << 20);
	assert_int_equal(g.buf[g.len - 1], '\0');
	free(g.buf);
	big_reply_bytes = CONTROL_MAX_REPLY;
	put_text(fd, STATUS);
	g = get(f, fd, 1);
	assert_non_null(strstr(g.buf, "too large"));
	free(g.buf);
	close(fd);
}

static void test_too_many_clients(void **state)
{
	struct fixture *f = *state;
	int fds[CONTROL_MAX_CLIENTS], fd;

	for (size_t i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		fds[i] = connect_to(f->path);
		put_text(fds[i], STATUS);
		expect(f, fds[i], STATUS_REPLY);
	}
	fd = connect_to(f->path);
	expect_refusal(f, fd, "too many clients");
	close(fd);
	for (size_t i = 0; i < CONTROL_MAX_CLIENTS; i++)
		close(fds[i]);
	for (int i = 0; i < 2 * CONTROL_MAX_CLIENTS; i++)
		turn(f);
	fd = connect_to(f->path);
	put_text(fd, STATUS);
	expect(f, fd, STATUS_REPLY);
	close(fd);
}

static void test_half_closed(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	struct got g;

	put_text(fd, STATUS);
	shutdown(fd, SHUT_WR);
	expect(f, fd, STATUS_REPLY);
	g = get(f, fd, 1);
	assert_true(g.eof);
	free(g.buf);
	close(fd);
}

/* The test runs as root or as the daemon's user, so that changes are allowed. */
static void test_change_is_finished_later(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	struct json_object *reply;
	uint64_t begin = now_ms();
	char c;

	put_text(fd, ROTATE);
	put_text(fd, STATUS);
	/* Longer than the idle limit, which does not count while an operation runs. */
	while (now_ms() - begin < IDLE_USEC / 1000 + 100)
		turn(f);
	assert_int_equal(f->fake.n_changes, 1);
	assert_int_equal(f->fake.n_reads, 0);
	assert_int_equal(control_n_pending(f->control), 1);
	assert_int_equal(recv(fd, &c, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);

	assert_int_equal(control_reply(NULL, false, &reply), 0);
	control_finish(f->control, f->fake.last_token, reply);
	assert_int_equal(control_n_pending(f->control), 0);
	{
		struct got g = get(f, fd, 2);

		assert_string_equal(g.buf, "{\"parameters\":{}}");
		assert_string_equal(g.buf + strlen(g.buf) + 1, STATUS_REPLY);
		free(g.buf);
	}
	close(fd);
}

static void test_client_gone_before_the_end(void **state)
{
	struct fixture *f = *state;
	int fd = connect_to(f->path);
	struct json_object *reply;

	put_text(fd, ROTATE);
	for (int i = 0; i < 10; i++)
		turn(f);
	assert_int_equal(control_n_pending(f->control), 1);
	close(fd);
	for (int i = 0; i < 10; i++)
		turn(f);
	assert_int_equal(control_n_pending(f->control), 0);
	assert_int_equal(control_reply(NULL, false, &reply), 0);
	control_finish(f->control, f->fake.last_token, reply);
	/* Out of memory for the reply, nobody to take it: nothing happens. */
	control_finish(f->control, 12345, NULL);
}

static void test_live_socket_is_refused(void **state)
{
	struct fixture *f = *state;
	struct iot_error err = {0};
	struct control *second = NULL;
	int fd;

	assert_int_equal(open_at(f, &second, &err), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(err.text, f->path));
	/* The first goes on. */
	fd = connect_to(f->path);
	put_text(fd, STATUS);
	expect(f, fd, STATUS_REPLY);
	close(fd);
}

static void test_dead_socket_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct iot_error err = {0};
	int fd, dead;

	f->control = control_close(f->control);
	assert_int_equal(access(f->path, F_OK), -1);
	dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->path);
	assert_int_equal(bind(dead, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(dead);
	assert_int_equal(open_at(f, &f->control, &err), 0);
	fd = connect_to(f->path);
	put_text(fd, STATUS);
	expect(f, fd, STATUS_REPLY);
	close(fd);
}

static void test_other_files_stay(void **state)
{
	struct fixture *f = *state;
	struct iot_error err = {0};
	struct stat st;
	int fd;

	f->control = control_close(f->control);
	fd = open(f->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_at(f, &f->control, &err), -EEXIST);
	assert_non_null(strstr(err.text, "is no socket"));
	assert_int_equal(lstat(f->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(f->path);

	/* A socket that somebody else put in our place is not removed. */
	err.text[0] = '\0';
	assert_int_equal(open_at(f, &f->control, &err), 0);
	unlink(f->path);
	assert_int_equal(mknod(f->path, S_IFSOCK | 0600, 0), 0);
	f->control = control_close(f->control);
	assert_int_equal(lstat(f->path, &st), 0);
}

static void test_paths(void **state)
{
	struct fixture *f = *state;
	struct iot_error err = {0};
	struct control *c = NULL;
	char keep[sizeof(f->path)];
	struct control_options co = {.event = f->event, .ops = &test_ops, .userdata = &f->fake};
	char longer[200];

	memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	co.path = longer;
	assert_int_equal(control_open(&co, &c, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "longer than"));

	err.text[0] = '\0';
	snprintf(keep, sizeof(keep), "%s/a/b/c", f->dir);
	co.path = keep;
	assert_int_equal(control_open(&co, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "there is no directory"));

	/* Not even one missing directory is created: it is likelier a slip. */
	err.text[0] = '\0';
	snprintf(keep, sizeof(keep), "%s/run/c", f->dir);
	assert_int_equal(control_open(&co, &c, &err), -ENOENT);
	snprintf(keep, sizeof(keep), "there is no directory %s/run", f->dir);
	assert_non_null(strstr(err.text, keep));
	snprintf(keep, sizeof(keep), "%s/run", f->dir);
	assert_int_equal(access(keep, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_call, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_many_calls_in_one_send, setup_patient,
						teardown),
		cmocka_unit_test_setup_teardown(test_garbage, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trickle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reply_not_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_reply_taken, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_clients, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_half_closed, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_change_is_finished_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_client_gone_before_the_end, setup_patient,
						teardown),
		cmocka_unit_test_setup_teardown(test_live_socket_is_refused, setup_patient,
						teardown),
		cmocka_unit_test_setup_teardown(test_dead_socket_is_replaced, setup_patient,
						teardown),
		cmocka_unit_test_setup_teardown(test_other_files_stay, setup_patient, teardown),
		cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
	};

	if (log_set_level("error") < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
