// SPDX-License-Identifier: BSD-2-Clause
/*
 * The manager on its real event loop, control socket and notifications, over a worker, probes and a
 * store that do what a test tells them: what is said to the service manager when a worker hangs or a disk
 * stalls, and in which order a changed device filter takes effect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "daemon/manager-private.h"

/* ---- the world as a test wants it ------------------------------------------------------------- */

static struct {
	atomic_bool alive; /* the worker's progress moves by itself */
	atomic_uint progress;
	pthread_mutex_t stall; /* held: whatever waits for the disk waits */
	atomic_int rotate_result;
	atomic_uint n_rotate, n_stop, n_retain;
	char trace[512]; /* order of what matters: filters, selections, rotations */
	pthread_mutex_t trace_lock;
	struct worker_status status;
	pthread_mutex_t status_lock;
	uint8_t capture[16];
} world = {
	.stall = PTHREAD_MUTEX_INITIALIZER,
	.trace_lock = PTHREAD_MUTEX_INITIALIZER,
	.status_lock = PTHREAD_MUTEX_INITIALIZER,
};

static void trace(const char *what)
{
	size_t len;

	pthread_mutex_lock(&world.trace_lock);
	len = strlen(world.trace);
	snprintf(world.trace + len, sizeof(world.trace) - len, "%s%s", len ? " " : "", what);
	pthread_mutex_unlock(&world.trace_lock);
}

static void wait_for_disk(void)
{
	pthread_mutex_lock(&world.stall);
	pthread_mutex_unlock(&world.stall);
}

static int attention_fd = -1;

int worker_start(const struct worker_options *opts, struct worker **ret, struct iot_error *err)
{
	(void)opts;
	(void)err;
	attention_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*ret = (struct worker *)&world;
	return 0;
}

void worker_status(struct worker *w, struct worker_status *ret)
{
	(void)w;
	pthread_mutex_lock(&world.status_lock);
	*ret = world.status;
	pthread_mutex_unlock(&world.status_lock);
	if (world.alive)
		world.progress++;
	ret->progress = world.progress;
}

int worker_rotate(struct worker *w, enum iot_seal_reason reason, char *ret_name, size_t size)
{
	(void)w;
	wait_for_disk();
	world.n_rotate++;
	trace(reason == IOT_SEAL_RELOAD ? "rotate-reload" : "rotate");
	snprintf(ret_name, size, "seg.iot");
	return world.rotate_result;
}

int worker_flush(struct worker *w)
{
	(void)w;
	wait_for_disk();
	return 0;
}

void worker_reconfigure(struct worker *w, const struct iot_stream_config *c)
{
	(void)w;
	(void)c;
}

void worker_set_selection(struct worker *w, const struct iot_device_filter *f)
{
	(void)w;
	trace(f->include.n ? "say-some" : "say-all");
}

int worker_stop(struct worker *w, char *ret_name, size_t size)
{
	(void)w;
	wait_for_disk();
	world.n_stop++;
	snprintf(ret_name, size, "last.iot");
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	if (w)
		close(attention_fd);
	return NULL;
}

int worker_event_fd(const struct worker *w)
{
	(void)w;
	return attention_fd;
}

int probes_gate(struct probes *p, bool open, uint64_t *ret_ns)
{
	(void)p;
	trace(open ? "gate-open" : "gate-closed");
	*ret_ns = 1;
	return 0;
}

void probes_detach(struct probes *p)
{
	(void)p;
	trace("detach");
}

int probes_set_devices(struct probes *p, const struct iot_device_filter *f)
{
	(void)p;
	trace(f->include.n ? "filter-some" : "filter-none");
	return 0;
}

const struct probes_kernel *probes_kernel(const struct probes *p)
{
	static const struct probes_kernel k;

	(void)p;
	return &k;
}

#define RING_BYTES 65536U

unsigned int probes_n_rings(const struct probes *p)
{
	(void)p;
	return 1;
}

struct probes_ring *probes_ring(struct probes *p, unsigned int i)
{
	static struct probes_ring ring = {.size = RING_BYTES};

	(void)p;
	(void)i;
	return &ring;
}

unsigned int probes_n_cpus(const struct probes *p)
{
	(void)p;
	return 1;
}

const struct iot_probe *probes_table(const struct probes *p, size_t *ret_n)
{
	(void)p;
	*ret_n = 0;
	return NULL;
}

int probes_run_stats(struct probes *p, struct probes_run_stats **ret, size_t *ret_n)
{
	(void)p;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

int probes_in_flight(struct probes *p, struct ev_block **ret, size_t *ret_n)
{
	(void)p;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

int probes_memory(struct probes *p, struct probes_memory *ret)
{
	(void)p;
	(void)ret;
	return -ENOTSUP;
}

const char *store_path(const struct store *s)
{
	(void)s;
	return "/store";
}

const uint8_t *store_capture_id(const struct store *s)
{
	(void)s;
	return world.capture;
}

int store_retain(struct store *s, const struct iot_retention *r, struct store_usage *ret)
{
	(void)s;
	(void)r;
	wait_for_disk();
	world.n_retain++;
	memset(ret, 0, sizeof(*ret));
	return 0;
}

/* ---- fixture ------------------------------------------------------------------------------------ */

struct fixture {
	char dir[64];
	char config[96];
	char socket[96];
	char state[96];
	struct args args;
	struct manager *m;
	int notify;
	char heard[65536];
};

static void write_config(struct fixture *f, const char *text)
{
	FILE *file = fopen(f->config, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int notify_socket(struct fixture *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/n", f->dir);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -1;
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	setenv("WATCHDOG_USEC", "300000", 1);
	unsetenv("WATCHDOG_PID");
	return fd;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct manager_options mo = {0};
	struct iot_error err = {0};
	sigset_t set;

	assert_non_null(f);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	strcpy(f->dir, "/tmp/iot-manager-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->config, sizeof(f->config), "%s/c.yaml", f->dir);
	snprintf(f->socket, sizeof(f->socket), "%s/s", f->dir);
	snprintf(f->state, sizeof(f->state), "%s/state", f->dir);
	f->notify = notify_socket(f);
	assert_true(f->notify >= 0);
	write_config(f, "log_level: error\n");
	f->args = (struct args){.config = f->config, .socket = f->socket, .state_dir = f->state};

	world.alive = true;
	world.rotate_result = 0;
	world.n_rotate = world.n_stop = world.n_retain = 0;
	world.trace[0] = '\0';
	memset(&world.status, 0, sizeof(world.status));
	strcpy(world.status.verdict, "complete");

	mo.args = &f->args;
	assert_int_equal(manager_load_config(&f->args, &mo.config, &err), 0);
	assert_int_equal(log_set_level("error"), 0);
	assert_int_equal(manager_new(&mo, &f->m, &err), 0);
	assert_int_equal(manager_start(f->m, &err), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	manager_free(f->m);
	close(f->notify);
	snprintf(path, sizeof(path), "%s/n", f->dir);
	unlink(path);
	unlink(f->config);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static uint64_t now_ms(void)
{
	return manager_now_ns() / 1000000;
}

static void listen_now(struct fixture *f)
{
	char buf[1024];
	ssize_t n;

	while ((n = recv(f->notify, buf, sizeof(buf) - 1, 0)) > 0) {
		size_t len = strlen(f->heard);

		buf[n] = '\0';
		snprintf(f->heard + len, sizeof(f->heard) - len, "%s\n", buf);
	}
}

/* sd_notify waits for a service manager that does not read: so it is read between turns. */
static void run_ms(struct fixture *f, uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (now_ms() < end) {
		if (sd_event_get_state(f->m->event) == SD_EVENT_FINISHED)
			break;
		assert_true(sd_event_run(f->m->event, 10000) >= 0);
		listen_now(f);
	}
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static unsigned int heard_again(struct fixture *f, uint64_t ms, const char *what)
{
	f->heard[0] = '\0';
	run_ms(f, ms);
	return count(f->heard, what);
}

/* Until trace is as wanted, or 5 s. */
static void expect_trace(struct fixture *f, const char *want)
{
	for (int i = 0; i < 500; i++) {
		bool same;

		pthread_mutex_lock(&world.trace_lock);
		same = strcmp(world.trace, want) == 0;
		pthread_mutex_unlock(&world.trace_lock);
		if (same)
			return;
		run_ms(f, 10);
	}
	assert_string_equal(world.trace, want);
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void test_ready_and_watchdog(void **state)
{
	struct fixture *f = *state;

	listen_now(f);
	assert_int_equal(count(f->heard, "READY=1\nSTATUS=block: "), 1);
	assert_in_range(heard_again(f, 1050, "WATCHDOG=1"), 3, 12);
}

static void test_no_watchdog_without_progress(void **state)
{
	struct fixture *f = *state;

	world.alive = false;
	run_ms(f, 250); /* what was due already */
	assert_int_equal(heard_again(f, 700, "WATCHDOG=1"), 0);
	world.alive = true;
	assert_in_range(heard_again(f, 700, "WATCHDOG=1"), 2, 10);
}

static void test_stalled_disk_does_not_stop_the_loop(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	static const char call[] = "{\"method\":\"io.iotraced.Control.Rotate\"}";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char buf[256] = "";

	run_ms(f, 50);
	pthread_mutex_lock(&world.stall);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(send(fd, call, sizeof(call), 0), sizeof(call));
	assert_in_range(heard_again(f, 700, "WATCHDOG=1"), 2, 10);
	assert_int_equal(recv(fd, buf, sizeof(buf) - 1, 0), -1);
	pthread_mutex_unlock(&world.stall);
	run_ms(f, 200);
	assert_true(recv(fd, buf, sizeof(buf) - 1, 0) > 0);
	assert_string_equal(buf, "{\"parameters\":{\"segments\":[\"seg.iot\"]}}");
	assert_int_equal(world.n_rotate, 1);
	close(fd);
}

static void test_stop_with_a_stalled_disk(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	static const char call[] = "{\"method\":\"io.iotraced.Control.Rotate\"}";
	int fds[3];

	run_ms(f, 50);
	pthread_mutex_lock(&world.stall);
	for (int i = 0; i < 3; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->socket);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&sa, sizeof(sa)), 0);
		assert_int_equal(send(fds[i], call, sizeof(call), 0), sizeof(call));
	}
	run_ms(f, 100);
	kill(getpid(), SIGTERM);
	f->heard[0] = '\0';
	run_ms(f, 700);
	assert_int_equal(count(f->heard, "STOPPING=1"), 1);
	assert_true(count(f->heard, "WATCHDOG=1") >= 2);
	/* What runs already ends first: a segment that opens behind the gate would cover no time. */
	assert_string_equal(world.trace, "");
	/* Asking again changes nothing; a reload is too late. */
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGHUP);
	run_ms(f, 100);
	assert_int_equal(count(f->heard, "STOPPING=1"), 1);
	assert_int_equal(count(f->heard, "RELOADING=1"), 0);
	pthread_mutex_unlock(&world.stall);
	assert_int_equal(manager_run(f->m), 0);
	assert_int_equal(world.n_stop, 1);
	/* One was being done, two had not begun and never do. */
	assert_string_equal(world.trace, "rotate gate-closed detach");
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void test_filter_changes_in_order(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 50);
	assert_string_equal(world.trace, "");
	write_config(f, "log_level: error\ndevices:\n  include: [nvme*]\n");
	kill(getpid(), SIGHUP);
	expect_trace(f, "filter-none say-some rotate-reload filter-some");
	assert_false(f->m->filter_pending);
	listen_now(f);
	assert_int_equal(count(f->heard, "RELOADING=1\nMONOTONIC_USEC="), 1);
	/* The same again is no change. */
	world.trace[0] = '\0';
	kill(getpid(), SIGHUP);
	run_ms(f, 100);
	assert_null(strstr(world.trace, "rotate"));
	/* And back. */
	write_config(f, "log_level: error\n");
	world.trace[0] = '\0';
	kill(getpid(), SIGHUP);
	expect_trace(f, "filter-none say-all rotate-reload filter-none");
}

/* As long as no segment promises less, all devices are recorded. */
static void test_filter_waits_for_the_segment(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 50);
	world.rotate_result = -ENOSPC;
	assert_int_equal(log_set_level("error"), 0);
	write_config(f, "log_level: error\ndevices:\n  include: [nvme*]\n");
	kill(getpid(), SIGHUP);
	run_ms(f, 1300);
	assert_null(strstr(world.trace, "filter-some"));
	assert_true(f->m->filter_pending);
	world.rotate_result = 0;
	run_ms(f, 1300);
	assert_false(f->m->filter_pending);
	assert_string_equal(strrchr(world.trace, 'f'), "filter-some");
}

static void test_bad_reload_keeps_the_old(void **state)
{
	struct fixture *f = *state;
	struct iot_config *before = f->m->config;

	assert_int_equal(log_set_level("error"), 0);
	write_config(f, "nonsense: true\n");
	kill(getpid(), SIGHUP);
	run_ms(f, 100);
	assert_ptr_equal(f->m->config, before);
	assert_int_equal(count(f->heard, "RELOADING=1"), 1);
	assert_int_equal(count(f->heard, "READY=1"), 2);
}

static void test_reload_keeps_what_needs_a_restart(void **state)
{
	struct fixture *f = *state;
	uint64_t ring = f->m->config->block.ring_size_bytes;

	write_config(f, "log_level: error\nsocket_group: nogroup\nretention:\n  max_size: 1GiB\n"
			"streams:\n  block:\n    ring_size: 64KiB\n    segment_age: 1m\n");
	kill(getpid(), SIGHUP);
	run_ms(f, 100);
	assert_int_equal(f->m->config->block.ring_size_bytes, ring);
	assert_string_equal(f->m->config->socket_group, "");
	assert_string_equal(f->m->config->socket, f->socket);
	assert_int_equal(f->m->config->block.segment_age_ns, 60000000000ULL);
	assert_int_equal(f->m->config->retention.max_bytes, 1ULL << 30);
	assert_non_null(strstr(f->m->restart_keys, "ring_size"));
	assert_non_null(strstr(f->m->restart_keys, "socket_group"));
}

static void test_retention_runs(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 100);
	assert_int_equal(world.n_retain, 1);
	assert_true(f->m->usage_known);
}

/* One look at these numbers; what it logs, in buf. */
static void look_at_losses(uint64_t filed, uint64_t unattributed, uint64_t ring_high_bytes,
			   char *buf, size_t size)
{
	struct manager_stream s = {.id = IOT_STREAM_BLOCK, .loss_limit = {.burst = 1}};
	int saved = dup(STDERR_FILENO), log = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	assert_true(saved >= 0 && log >= 0);
	world.status = (struct worker_status){
		.lost_filed = filed,
		.lost_unattributed = unattributed,
		.ring_high_bytes = ring_high_bytes,
	};
	s.last = world.status;
	assert_true(dup2(log, STDERR_FILENO) >= 0);
	manager_look(NULL, &s, 1);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	n = pread(log, buf, size - 1, 0);
	close(log);
	assert_true(n >= 0);
	buf[n] = '\0';
	world.status = (struct worker_status){0};
}

static void test_loss_advice(void **state)
{
	char line[512];

	(void)state;
	assert_int_equal(log_set_level("warning"), 0);
	look_at_losses(0, 0, RING_BYTES, line, sizeof(line));
	assert_string_equal(line, "");
	look_at_losses(1, 0, RING_BYTES / 2 - 1, line, sizeof(line));
	assert_non_null(strstr(line, "lost 1 observation filed"));
	assert_non_null(strstr(line, "nothing to tune"));
	assert_null(strstr(line, "ring_size"));
	look_at_losses(2, 0, RING_BYTES / 2, line, sizeof(line));
	assert_non_null(strstr(line, "lost 2 observations filed"));
	assert_non_null(strstr(line, "raise streams.block.ring_size"));
	assert_null(strstr(line, "nothing to tune"));
	/* Without owner: the ledger had no room, which only a ring that refused records asks of it. */
	look_at_losses(0, 1, 0, line, sizeof(line));
	assert_non_null(strstr(line, "1 without owner"));
	assert_non_null(strstr(line, "ring_size"));
	assert_int_equal(log_set_level("error"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready_and_watchdog, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_watchdog_without_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stalled_disk_does_not_stop_the_loop, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_stop_with_a_stalled_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter_changes_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter_waits_for_the_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_reload_keeps_the_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload_keeps_what_needs_a_restart, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_retention_runs, setup, teardown),
		cmocka_unit_test(test_loss_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
