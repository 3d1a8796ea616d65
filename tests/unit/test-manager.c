// SPDX-License-Identifier: BSD-2-Clause
/*
 * The manager on its real event loop, control socket and notifications, over a worker, probes and a
 * store that do what a test tells them: what is said to the service manager when a worker hangs or a disk
 * stalls, and in which order a changed device filter takes effect.
 */
#include "tests/unit/manager-world.h"

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

/* Nobody keeps what a successor would need: then leaving is stopping. */
static void test_leaving_to_nobody_stops(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 50);
	kill(getpid(), SIGUSR1);
	assert_int_equal(manager_run(f->m), 0);
	assert_int_equal(world.n_stop, 1);
	assert_string_equal(world.trace, "gate-closed detach");
}

static void test_filter_changes_in_order(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 50);
	/* Where swap is told by its place, the first request may be to one. */
	assert_false(world.begun_blind);
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

/* The maps of the programs change with the areas, not because somebody asks. */
static void test_questions_change_nothing(void **state)
{
	struct fixture *f = *state;
	struct json_object *reply = NULL;
	char *message = NULL;

	assert_int_equal(world.n_swap_areas, 1);
	assert_int_equal(manager_control_ops.probes(f->m, &reply, &message), 0);
	assert_non_null(json_object_object_get(reply, "swap"));
	json_object_put(reply);
	assert_int_equal(manager_control_ops.status(f->m, &reply, &message), 0);
	assert_non_null(json_object_object_get(reply, "status"));
	json_object_put(reply);
	assert_int_equal(world.n_swap_areas, 1);
}

static void test_swap_is_dropped_in_order(void **state)
{
	struct fixture *f = *state;

	run_ms(f, 50);
	write_config(f, "log_level: error\nstreams:\n  block:\n    swap: drop\n");
	kill(getpid(), SIGHUP);
	expect_trace(f, "filter-none say-all say-no-swap rotate-reload filter-none drop-swap");
	assert_false(f->m->filter_pending);
	/* The same again is no change; back, everything is recorded before a segment says so. */
	world.trace[0] = '\0';
	kill(getpid(), SIGHUP);
	run_ms(f, 100);
	assert_null(strstr(world.trace, "rotate"));
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
		cmocka_unit_test_setup_teardown(test_leaving_to_nobody_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter_changes_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_questions_change_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swap_is_dropped_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter_waits_for_the_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_reload_keeps_the_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload_keeps_what_needs_a_restart, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_retention_runs, setup, teardown),
		cmocka_unit_test(test_loss_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
