// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon shows of itself: names and types of fields, null for what is not known, never 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/status.h"

static struct json_object *at(struct json_object *o, const char *path)
{
	struct json_object *v = NULL;

	assert_int_equal(json_pointer_get(o, path, &v), 0);
	return v;
}

static void assert_text(struct json_object *o, const char *path, const char *want)
{
	struct json_object *v = at(o, path);

	assert_true(json_object_is_type(v, json_type_string));
	assert_string_equal(json_object_get_string(v), want);
}

static void assert_number(struct json_object *o, const char *path, uint64_t want)
{
	struct json_object *v = at(o, path);

	assert_true(json_object_is_type(v, json_type_int));
	assert_int_equal(json_object_get_uint64(v), want);
}

static void assert_unknown(struct json_object *o, const char *path)
{
	assert_null(at(o, path));
}

static struct status_stream block_stream(void)
{
	struct status_stream s = {
		.name = "block",
		.worker =
			{
				.epoch = 3,
				.segment_seq = 3,
				.segment_name = "block-0-3.open",
				.segment_bytes = 4096,
				.segment_records = 100,
				.segment_open_ns = 5000,
				.records = 1000,
				.bytes_written = 9000,
				.segments_sealed = 2,
				.seen = 5000,
				.emitted = 1000,
				.lost_filed = 4,
				.lost_unattributed = 5,
				.missed = IOT_COUNT_UNKNOWN,
				.swap_out_bytes = 0,
				.swap_in_bytes = 8192,
				.swap_in_lost_bytes = 4096,
				.verdict = "lost",
			},
		.events_per_s = 12,
		.n_rings = 2,
		.ring_size_bytes = 65536,
		.swap_out = IOT_ABILITY_UNAVAILABLE,
		.swap_in = IOT_ABILITY_PAGE,
		.swap_out_per_s = 1,
		.swap_in_per_s = 77,
	};

	return s;
}

static struct status_input input(const struct status_stream *s)
{
	struct status_input in = {
		.now_ns = 10000000000000ULL,
		.start_ns = 1000,
		.pid = 42,
		.host = "h",
		.kernel = "6.1",
		.capture_id = "0123",
		.boot_id = "4567",
		.streams = s,
		.n_streams = 1,
		.store_path = "/s",
		.config_source = "",
		.restart_keys = "",
	};

	return in;
}

static void test_fields(void **state)
{
	struct status_stream s = block_stream();
	struct status_input in = input(&s);
	struct json_object *o = NULL;

	(void)state;
	assert_int_equal(status_render(&in, &o), 0);
	assert_text(o, "/version", IOTRACED_VERSION);
	assert_number(o, "/pid", 42);
	assert_text(o, "/state", "collecting");
	assert_text(o, "/uptime_ns", "9999999999000");
	assert_text(o, "/capture_id", "0123");
	assert_text(o, "/streams/0/name", "block");
	assert_text(o, "/streams/0/verdict", "lost");
	assert_unknown(o, "/streams/0/identity");
	assert_number(o, "/streams/0/epoch", 3);
	assert_text(o, "/streams/0/segment/name", "block-0-3.open");
	assert_number(o, "/streams/0/segment/bytes", 4096);
	assert_text(o, "/streams/0/segment/age_ns", "9999999995000");
	assert_number(o, "/streams/0/records", 1000);
	assert_number(o, "/streams/0/events_per_s", 12);
	assert_number(o, "/streams/0/lost/filed", 4);
	assert_number(o, "/streams/0/lost/unattributed", 5);
	assert_number(o, "/streams/0/lost/decode_failed", 0);
	assert_number(o, "/streams/0/ring/count", 2);
	assert_number(o, "/streams/0/ring/size_bytes", 65536);
	assert_text(o, "/streams/0/swap/in", "page");
	assert_number(o, "/streams/0/swap/in_bytes", 8192);
	assert_number(o, "/streams/0/swap/in_lost_bytes", 4096);
	assert_number(o, "/streams/0/swap/in_bytes_per_s", 77);
	assert_text(o, "/store/path", "/s");
	json_object_put(o);
}

static void test_not_known_is_null(void **state)
{
	struct status_stream s = block_stream();
	struct status_input in = input(&s);
	struct json_object *o = NULL;

	(void)state;
	in.start_ns = 0;
	assert_int_equal(status_render(&in, &o), 0);
	assert_unknown(o, "/uptime_ns");
	assert_unknown(o, "/streams/0/lost/missed");
	assert_unknown(o, "/streams/0/kernel_memory/maps_bytes");
	assert_unknown(o, "/streams/0/last_record_ns");
	assert_unknown(o, "/streams/0/last_error");
	assert_unknown(o, "/store/segments");
	assert_unknown(o, "/store/deleted_bytes");
	assert_unknown(o, "/config/source");
	assert_unknown(o, "/config/restart_needed");
	assert_unknown(o, "/config/unmatched_devices");
	/* Nobody measured how much was swapped out. */
	assert_text(o, "/streams/0/swap/out", "unavailable");
	assert_unknown(o, "/streams/0/swap/out_bytes");
	assert_unknown(o, "/streams/0/swap/out_lost_bytes");
	assert_unknown(o, "/streams/0/swap/out_bytes_per_s");
	assert_unknown(o, "/swap_areas");
	json_object_put(o);
}

static void test_known(void **state)
{
	struct status_stream s = block_stream();
	struct status_input in = input(&s);
	struct json_object *o = NULL;

	(void)state;
	s.memory_known = true;
	s.memory.maps_bytes = 7;
	s.worker.missed = 0;
	s.worker.last_error = -ENOSPC;
	s.worker.last_record_ns = UINT64_MAX - 1;
	in.usage_known = true;
	in.usage.segments = 3;
	in.config_source = "/etc/x.yaml";
	in.restart_keys = "socket";
	in.unmatched_devices = "include nvme9n1";
	assert_int_equal(status_render(&in, &o), 0);
	assert_number(o, "/streams/0/lost/missed", 0);
	assert_number(o, "/streams/0/kernel_memory/maps_bytes", 7);
	assert_text(o, "/streams/0/last_record_ns", "18446744073709551614");
	assert_text(o, "/streams/0/last_error", "No space left on device");
	assert_text(o, "/state", "degraded");
	assert_number(o, "/store/segments", 3);
	assert_text(o, "/config/source", "/etc/x.yaml");
	assert_text(o, "/config/restart_needed", "socket");
	assert_text(o, "/config/unmatched_devices", "include nvme9n1");
	json_object_put(o);
}

static void test_state(void **state)
{
	struct status_stream s = block_stream();
	struct status_input in = input(&s);

	(void)state;
	/* Losses are what the footers tell; the daemon itself is well. */
	assert_int_equal(status_state(&in), STATUS_COLLECTING);
	s.stalled = true;
	assert_int_equal(status_state(&in), STATUS_DEGRADED);
	s.stalled = false;
	s.worker.books_unbalanced = 1;
	assert_int_equal(status_state(&in), STATUS_DEGRADED);
	s.worker.books_unbalanced = 0;
	s.worker.seal_errors = 1;
	assert_int_equal(status_state(&in), STATUS_DEGRADED);
	s.worker.seal_errors = 0;
	s.worker.unlinked_seq = 1;
	assert_int_equal(status_state(&in), STATUS_DEGRADED);
	s.worker.unlinked_seq = 0;
	in.store_error = -EIO;
	assert_int_equal(status_state(&in), STATUS_DEGRADED);
	in.stopping = true;
	assert_int_equal(status_state(&in), STATUS_STOPPING);
}

static void test_probes(void **state)
{
	const struct iot_probe table[] = {
		{.id = 4,
		 .state = IOT_ATTACH_ATTACHED,
		 .miss = IOT_MISS_COUNTED,
		 .name = "block_rq_issue",
		 .hook = "tp_btf"},
		{.id = 2, .state = IOT_ATTACH_ABSENT, .name = "block_getrq", .detail = "no such"},
		{.id = 1,
		 .state = IOT_ATTACH_REFUSED,
		 .error = -EPERM,
		 .name = "block_io_start",
		 .hook = "tp_btf"},
		{.id = 8,
		 .state = IOT_ATTACH_ATTACHED,
		 .miss = IOT_MISS_NOT_MEASURABLE,
		 .name = "block_rq_complete",
		 .hook = "raw_tp"},
	};
	struct probes_run_stats stats[] = {
		{.probe = 4, .missed = 3},
		{.probe = 4, .missed = 2},
		{.probe = 8, .missed = IOT_COUNT_UNKNOWN},
	};
	struct json_object *list = json_object_new_array();

	(void)state;
	assert_int_equal(status_render_probes("block", table, 4, stats, 3, false, list), 0);
	assert_int_equal(json_object_array_length(list), 4);
	assert_text(list, "/0/state", "attached");
	assert_number(list, "/0/missed", 5);
	assert_unknown(list, "/0/runs");
	assert_unknown(list, "/0/why");
	assert_text(list, "/1/why", "no such");
	assert_unknown(list, "/1/hook");
	assert_unknown(list, "/1/missed");
	assert_unknown(list, "/1/miss_counting");
	assert_text(list, "/2/why", "Operation not permitted");
	assert_unknown(list, "/3/missed");
	json_object_put(list);

	stats[0].run_count = 10;
	stats[0].run_time_ns = 500;
	stats[1].run_count = 10;
	stats[1].run_time_ns = 1500;
	list = json_object_new_array();
	assert_int_equal(status_render_probes("block", table, 4, stats, 3, false, list), 0);
	assert_number(list, "/0/runs", 20);
	assert_text(list, "/0/run_time_ns", "2000");
	assert_number(list, "/0/ns_per_run", 100);
	assert_number(list, "/3/runs", 0);
	assert_unknown(list, "/3/ns_per_run");
	json_object_put(list);
}

static struct probes_kernel kernel = {.op_mask = 0xff,
				      .op = {[0] = IOT_OP_READ, [1] = IOT_OP_WRITE},
				      .flag_mask = {[11] = IOT_FLAG_SYNC}};

static void test_in_flight(void **state)
{
	struct ev_block *e = calloc(3, sizeof(*e));
	struct decode_block *d = calloc(1, sizeof(*d));
	struct json_object *o = NULL;

	(void)state;
	assert_non_null(e);
	assert_non_null(d);
	decode_block_init(d, &kernel, 4);
	for (unsigned int i = 0; i < 3; i++) {
		e[i].hdr.len = sizeof(*e);
		e[i].hdr.probe = EV_PROBE_BLOCK_COMPLETE;
		e[i].hdr.id = EV_ID(i + 1, 0);
		e[i].dev = e[i].part = IOT_DEV(4000, i);
		e[i].sector = 8 * i;
		e[i].bytes = 4096;
		e[i].cmd_flags = 1 | 1 << 11;
		e[i].state = EV_BLOCK_IN_FLIGHT | EV_BLOCK_SAW_START;
		e[i].submitter = EV_SUBMITTER_START;
		strcpy(e[i].comm, "fio");
	}
	e[0].start_ns = 3000;
	e[1].start_ns = 1000;
	e[1].insert_ns = 1500;
	e[1].issue_ns = 2000;
	e[2].insert_ns = 2000;
	assert_int_equal(status_render_in_flight(d, e, 3, 10000, IOT_ABILITY_EXACT,
						 IOT_ABILITY_UNAVAILABLE, &o),
			 0);
	assert_number(o, "/total", 3);
	assert_int_equal(json_object_array_length(at(o, "/requests")), 3);
	/* Oldest first. */
	assert_text(o, "/requests/0/age_ns", "9000");
	assert_text(o, "/requests/0/state", "issued");
	assert_text(o, "/requests/0/op", "write");
	assert_text(o, "/requests/0/flags/0", "sync");
	assert_text(o, "/requests/0/comm", "fio");
	assert_text(o, "/requests/0/dev", "4000:1");
	assert_unknown(o, "/requests/0/complete_ns");
	/* It has not ended, so it has not ended well either. */
	assert_unknown(o, "/requests/0/error");
	assert_unknown(o, "/requests/0/status");
	assert_text(o, "/requests/1/state", "queued");
	assert_unknown(o, "/requests/1/start_ns");
	assert_text(o, "/requests/2/state", "started");
	assert_text(o, "/requests/2/age_ns", "7000");
	json_object_put(o);

	assert_int_equal(status_render_in_flight(d, NULL, 0, 1, 0, 0, &o), 0);
	assert_number(o, "/total", 0);
	assert_int_equal(json_object_array_length(at(o, "/requests")), 0);
	json_object_put(o);
	free(d);
	free(e);
}

static void test_in_flight_is_bounded(void **state)
{
	const size_t n = STATUS_IN_FLIGHT_MAX + 10;
	struct ev_block *e = calloc(n, sizeof(*e));
	struct decode_block *d = calloc(1, sizeof(*d));
	struct json_object *o = NULL;

	(void)state;
	assert_non_null(e);
	assert_non_null(d);
	decode_block_init(d, &kernel, 4);
	for (size_t i = 0; i < n; i++) {
		e[i].hdr.id = i + 1;
		e[i].start_ns = n - i;
	}
	assert_int_equal(status_render_in_flight(d, e, n, n + 1, 0, 0, &o), 0);
	assert_number(o, "/total", n);
	assert_int_equal(json_object_array_length(at(o, "/requests")), STATUS_IN_FLIGHT_MAX);
	assert_text(o, "/requests/0/start_ns", "1");
	json_object_put(o);
	free(d);
	free(e);
}

static void test_swap_areas(void **state)
{
	struct swaps_area items[] = {
		{.path = "/dev/sda2",
		 .size_bytes = 1 << 20,
		 .used_bytes = 4096,
		 .priority = -2,
		 .dev = IOT_DEV(8, 2),
		 .disk = "sda2",
		 .coverage = SWAPS_EXACT},
		{.path = "/a\xff", .file = true, .coverage = SWAPS_INVISIBLE, .why = "nfs: no"},
	};
	struct swaps areas = {items, 2};
	struct status_stream s = block_stream();
	struct status_input in = input(&s);
	struct json_object *o = NULL;

	(void)state;
	in.swaps = &areas;
	assert_int_equal(status_render(&in, &o), 0);
	assert_text(o, "/swap_areas/0/path", "/dev/sda2");
	assert_text(o, "/swap_areas/0/type", "partition");
	assert_text(o, "/swap_areas/0/dev", "8:2");
	assert_text(o, "/swap_areas/0/disk", "sda2");
	assert_text(o, "/swap_areas/0/coverage", "exact");
	assert_unknown(o, "/swap_areas/0/why");
	assert_number(o, "/swap_areas/0/used_bytes", 4096);
	assert_int_equal(json_object_get_int(at(o, "/swap_areas/0/priority")), -2);
	/* Valid UTF-8 whatever the path is. */
	assert_text(o, "/swap_areas/1/path", "/a\xc3\xbf");
	assert_text(o, "/swap_areas/1/type", "file");
	assert_unknown(o, "/swap_areas/1/dev");
	assert_unknown(o, "/swap_areas/1/disk");
	assert_text(o, "/swap_areas/1/coverage", "invisible");
	assert_text(o, "/swap_areas/1/why", "nfs: no");
	json_object_put(o);

	areas.n = 0;
	assert_int_equal(status_render_swap(IOT_ABILITY_EXACT, IOT_ABILITY_UNAVAILABLE, &areas, &o),
			 0);
	assert_text(o, "/out", "exact");
	assert_text(o, "/in", "unavailable");
	assert_int_equal(json_object_array_length(at(o, "/areas")), 0);
	json_object_put(o);
	assert_int_equal(status_render_swap(0, 0, NULL, &o), 0);
	assert_unknown(o, "/areas");
	json_object_put(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_swap_areas),
		cmocka_unit_test(test_not_known_is_null),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_in_flight_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
