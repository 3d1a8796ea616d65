// SPDX-License-Identifier: BSD-2-Clause
/* Lines of requests: every field, nulls, and bytes that are not UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "format/render.h"

static struct iot_request sample(void)
{
	return (struct iot_request){
		.id = 18446744073709551615ULL,
		.start_ns = 9007199254740993ULL, /* 2^53 + 1: a double cannot hold it */
		.insert_ns = 9007199254741000ULL,
		.issue_ns = 9007199254745993ULL,
		.issue_last_ns = 9007199254745993ULL,
		.complete_ns = 9007199255745993ULL,
		.sector = 1234567,
		.cgroup = 77,
		.ino = 4242,
		.fsdev = IOT_DEV(8, 2),
		.dev = IOT_DEV(259, 0),
		.part = IOT_DEV(259, 2),
		.bytes = 4096,
		.bytes_done = 4096,
		.flags = IOT_FLAG_SYNC | IOT_FLAG_META | IOT_FLAG_SWAP,
		.pid = 1234,
		.tgid = 1230,
		.issue_cpu = 3,
		.complete_cpu = 1,
		.requeues = 0,
		.merges = 2,
		.segments = 1,
		.hwq = 5,
		.op = IOT_OP_WRITE,
		.swap = IOT_SWAP_OUT,
		.swap_rule = 1,
		.origin = IOT_ORIGIN_SWAP,
		.cgroup_by = IOT_CGROUP_BY_PAGE,
		.file_by = IOT_FILE_BY_SUBMITTER,
		.reclaim = IOT_RECLAIM_KSWAPD,
		.unswapped_bytes = 512,
		.submitter = IOT_SUBMITTER_START,
		.comm = "kswapd0",
	};
}

static const struct iot_render context = {
	.disk = "nvme0n1",
	.part = "nvme0n1p2",
	.capture = "000102030405060708090a0b0c0d0e0f",
	.swap_out = IOT_ABILITY_EXACT,
	.swap_in = IOT_ABILITY_PAGE,
	.realtime_ns = 1795955696789000000ULL,
};

static const char *json_line(const struct iot_request *r, const struct iot_render *ctx)
{
	static char line[IOT_RENDER_MAX + 1];
	size_t n = iot_render_json(line, r, ctx);

	assert_true(n <= IOT_RENDER_MAX);
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
	return line;
}

static void test_json_exact(void **state)
{
	struct iot_request r = sample();

	(void)state;
	assert_string_equal(
		json_line(&r, &context),
		"{\"id\":\"18446744073709551615\",\"dev\":\"259:2\",\"disk\":\"nvme0n1\","
		"\"part\":\"nvme0n1p2\",\"op\":\"write\",\"flags\":[\"sync\",\"meta\",\"swap\"],"
		"\"sector\":1234567,\"bytes\":4096,\"bytes_done\":4096,\"error\":0,\"swap\":"
		"\"out\","
		"\"start_ns\":\"9007199254740993\",\"insert_ns\":\"9007199254741000\","
		"\"issue_ns\":\"9007199254745993\",\"complete_ns\":\"9007199255745993\","
		"\"pid\":1234,\"tgid\":1230,\"comm\":\"kswapd0\",\"cgroup\":\"77\",\"ino\":"
		"\"4242\","
		"\"fsdev\":\"8:2\",\"origin\":\"swap\",\"cpu\":1,\"requeues\":0,\"merges\":2,"
		"\"segments\":1,\"issue_last_ns\":\"9007199254745993\",\"issue_cpu\":3,\"hwq\":5,"
		"\"status\":0,\"submitter\":\"start\",\"swap_rule\":\"flag\","
		"\"realtime_ns\":\"1795955696789000000\","
		"\"capture\":\"000102030405060708090a0b0c0d0e0f\","
		"\"file_by\":\"submitter\",\"cgroup_by\":\"page\",\"reclaim\":\"kswapd\","
		"\"unswapped_bytes\":512}");
}

/* What is not known is null, in each of the fields that can be unknown. */
static void test_json_nulls(void **state)
{
	static const char *const nullable[] = {
		"id",	   "disk",	"part",	     "sector",	      "error",
		"swap",	   "start_ns",	"insert_ns", "issue_ns",      "complete_ns",
		"pid",	   "tgid",	"comm",	     "cgroup",	      "ino",
		"fsdev",   "origin",	"cpu",	     "issue_last_ns", "issue_cpu",
		"hwq",	   "submitter", "swap_rule", "realtime_ns",   "capture",
		"file_by", "cgroup_by", "reclaim",
	};
	const struct iot_request r = {
		.sector = IOT_SECTOR_NONE, .hwq = IOT_HWQ_NONE, .status = 17, .op = IOT_OP_READ};
	const struct iot_render empty = {0};
	struct json_object *o = json_tokener_parse(json_line(&r, &empty)), *v;

	(void)state;
	assert_non_null(o);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(nullable); i++) {
		if (!json_object_object_get_ex(o, nullable[i], &v))
			fail_msg("no field %s", nullable[i]);
		if (v)
			fail_msg("%s is not null", nullable[i]);
	}
	assert_true(json_object_object_get_ex(o, "status", &v));
	assert_int_equal(json_object_get_int(v), 17);
	json_object_put(o);
}

/* What iotraced always knows, other tools do not tell. */
static void test_json_imported(void **state)
{
	static const char *const nullable[] = {"tgid", "segments", "status", "cpu", "issue_cpu"};
	const struct iot_request r = {.pid = 7,
				      .submitter = IOT_SUBMITTER_START,
				      .issue_ns = 1,
				      .complete_ns = 2,
				      .issue_cpu = IOT_CPU_NONE,
				      .complete_cpu = IOT_CPU_NONE};
	const struct iot_render imported = {.imported = true}, own = {0};

	(void)state;
	for (size_t i = 0; i < 2 * IOT_ARRAY_SIZE(nullable); i++) {
		bool told = i >= IOT_ARRAY_SIZE(nullable);
		struct json_object *o = json_tokener_parse(json_line(&r, told ? &own : &imported));
		struct json_object *v;

		assert_true(
			json_object_object_get_ex(o, nullable[i % IOT_ARRAY_SIZE(nullable)], &v));
		assert_true(told == (v != NULL));
		json_object_put(o);
	}
}

static void test_swap_known_only_where_detectable(void **state)
{
	struct iot_request r = {.op = IOT_OP_WRITE};

	(void)state;
	assert_null(iot_swap_name(&r, IOT_ABILITY_UNAVAILABLE, IOT_ABILITY_PAGE));
	assert_string_equal(iot_swap_name(&r, IOT_ABILITY_EXACT, IOT_ABILITY_UNAVAILABLE), "none");
	r.op = IOT_OP_READ;
	assert_null(iot_swap_name(&r, IOT_ABILITY_EXACT, IOT_ABILITY_UNAVAILABLE));
	r.op = IOT_OP_FLUSH;
	assert_string_equal(iot_swap_name(&r, IOT_ABILITY_UNAVAILABLE, IOT_ABILITY_UNAVAILABLE),
			    "none");
	r.swap = IOT_SWAP_IN;
	assert_string_equal(iot_swap_name(&r, IOT_ABILITY_EXACT, IOT_ABILITY_PAGE), "in");
}

/* Words for all that is on disk; a value from a later version is null, not a wrong word. */
static void test_sources(void **state)
{
	static const struct {
		const char *(*name)(unsigned int);
		const char *words;
	} of[] = {
		{iot_origin_name, "file metadata swap direct private none passthrough"},
		{iot_file_by_name, "page submitter"},
		{iot_cgroup_by_name, "blkg page submitter"},
		{iot_reclaim_name, "kswapd direct proactive task"},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(of); i++) {
		char got[128] = "";
		unsigned int v;

		for (v = 1; v < 256; v++) {
			const char *name = iot_known_name(of[i].name, (uint8_t)v);

			if (!name)
				break;
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s",
				 v > 1 ? " " : "", name);
		}
		assert_string_equal(got, of[i].words);
		assert_null(iot_known_name(of[i].name, 0));
		assert_null(iot_known_name(of[i].name, 255));
		assert_string_equal(of[i].name(255), "unknown");
	}
	for (int o = 0; o < IOT_N_ORIGINS; o++)
		assert_int_equal(iot_origin_from_name(iot_origin_name((unsigned int)o)), o);
	assert_int_equal(iot_origin_from_name("swp"), -EINVAL);
}

static void expect_json_string(const char *bytes, size_t len, const char *want)
{
	char out[256];
	char *end = iot_put_json_string(out, bytes, len);

	assert_true((size_t)(end - out) <= 6 * len + 2);
	*end = '\0';
	assert_string_equal(out, want);
}

static void test_json_strings(void **state)
{
	(void)state;
	expect_json_string("fio", 16, "\"fio\"");
	expect_json_string("a\"b\\c", 16, "\"a\\\"b\\\\c\"");
	expect_json_string("tab\there\n\x01\x7f", 16, "\"tab\\u0009here\\u000a\\u0001\\u007f\"");
	expect_json_string("gr\xc3\xbc\xc3\x9f", 16, "\"gr\xc3\xbc\xc3\x9f\"");
	expect_json_string("\xe2\x82\xac\xf0\x9f\x98\x80", 16, "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
	/* Latin-1, overlong, surrogate, beyond Unicode, lone continuation, cut at the end */
	expect_json_string("\xfc", 16, "\"\\u00fc\"");
	expect_json_string("\xc0\xaf", 16, "\"\\u00c0\\u00af\"");
	expect_json_string("\xe0\x80\xaf", 16, "\"\\u00e0\\u0080\\u00af\"");
	expect_json_string("\xed\xa0\x80", 16, "\"\\u00ed\\u00a0\\u0080\"");
	expect_json_string("\xf4\x90\x80\x80", 16, "\"\\u00f4\\u0090\\u0080\\u0080\"");
	expect_json_string("\x80x", 16, "\"\\u0080x\"");
	expect_json_string("ab\xe2\x82", 4, "\"ab\\u00e2\\u0082\"");
	expect_json_string("no terminator....", 16, "\"no terminator...\"");
}

/* Any 16 bytes of comm give one valid line. */
static void test_json_any_bytes(void **state)
{
	struct iot_request r = sample();
	uint32_t x = 12345;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct json_object *o, *v;
		const char *line;

		for (size_t k = 0; k < sizeof(r.comm); k++) {
			x = x * 1664525 + 1013904223;
			r.comm[k] = (char)(x >> 24);
		}
		line = json_line(&r, &context);
		assert_null(strchr(line, '\n'));
		o = json_tokener_parse(line);
		if (!o)
			fail_msg("not JSON: %s", line);
		assert_true(json_object_object_get_ex(o, "comm", &v));
		json_object_put(o);
	}
}

static void test_largest_line(void **state)
{
	struct iot_request r;
	struct iot_render ctx = context;
	char name[300], line[IOT_RENDER_MAX];

	(void)state;
	memset(&r, 0xff, sizeof(r));
	r.submitter = IOT_SUBMITTER_ISSUE;
	r.sector = UINT64_MAX - 1;
	r.hwq = 1;
	r.part = 0;
	r.error = INT32_MIN;
	memset(name, 0xff, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ctx.disk = ctx.part = name;
	assert_true(iot_render_json(line, &r, &ctx) < sizeof(line));
	assert_true(iot_render_text(line, &r, &ctx) < sizeof(line));
}

static void expect_duration(uint64_t ns, const char *want)
{
	char buf[32];

	*iot_put_duration(buf, ns) = '\0';
	assert_string_equal(buf, want);
}

static void expect_size(uint64_t bytes, const char *want)
{
	char buf[32];

	*iot_put_size(buf, bytes) = '\0';
	assert_string_equal(buf, want);
}

static void test_units(void **state)
{
	(void)state;
	expect_duration(0, "0ns");
	expect_duration(999, "999ns");
	expect_duration(1000, "1us");
	expect_duration(1234, "1.23us");
	expect_duration(12345, "12.3us");
	expect_duration(123456, "123us");
	expect_duration(999999, "999us");
	expect_duration(1500000, "1.50ms");
	expect_duration(61000000000, "61s");
	expect_duration(UINT64_MAX, "18446744073s");
	expect_size(0, "0B");
	expect_size(1023, "1023B");
	expect_size(1024, "1KiB");
	expect_size(1536, "1.50KiB");
	expect_size(1048575, "1023KiB");
	expect_size(11258, "10.9KiB");
	expect_size(UINT64_MAX, "15.9EiB");
}

static void test_numbers(void **state)
{
	static const uint64_t values[] = {0,   9,    10,    99,		100,	      101,
					  999, 1000, 65535, 4294967296, 999999999999, UINT64_MAX};
	char got[32], want[32];

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(values); i++) {
		*iot_put_u64(got, values[i]) = '\0';
		snprintf(want, sizeof(want), "%llu", (unsigned long long)values[i]);
		assert_string_equal(got, want);
	}
	*iot_put_i64(got, INT64_MIN) = '\0';
	assert_string_equal(got, "-9223372036854775808");
	*iot_put_i64(got, -5) = '\0';
	assert_string_equal(got, "-5");
}

static void test_text(void **state)
{
	struct iot_request r = sample();
	struct iot_render ctx = context;
	char line[IOT_RENDER_MAX + 1];

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	line[iot_render_text(line, &r, &ctx)] = '\0';
	assert_string_equal(line,
			    "2026-11-29 12:34:56.789000000 nvme0n1p2  write   sync,meta,swap "
			    "1234567+8        4KiB    q=5us     d=1ms     ok  kswapd0[1234]\n");
	r.error = -EIO;
	r.status = 10;
	r.insert_ns = r.start_ns = 0;
	r.sector = IOT_SECTOR_NONE;
	r.part = r.dev;
	r.flags = 0;
	r.swap = IOT_SWAP_IN;
	memcpy(r.comm, "e\033[2Jvil\xc2\x9b", 10);
	ctx.realtime_ns = 0;
	line[iot_render_text(line, &r, &ctx)] = '\0';
	assert_non_null(strstr(line, " EIO "));
	assert_non_null(strstr(line, " q=- "));
	assert_non_null(strstr(line, " nvme0n1 "));
	assert_non_null(strstr(line, " swap "));
	assert_non_null(strstr(line, "e?[2Jvil??[1234]"));
	assert_int_equal(strncmp(line, "- ", 2), 0);
	assert_null(strchr(line, '\033'));
}

static void test_latencies(void **state)
{
	struct iot_request r = sample();
	uint64_t ns = 0;

	(void)state;
	assert_true(iot_queue_latency(&r, &ns));
	assert_int_equal(ns, 5000);
	assert_true(iot_device_latency(&r, &ns));
	assert_int_equal(ns, 1000000);
	/* A requeued request was in the queue until its last issue. */
	r.issue_last_ns = r.issue_ns + 500000;
	assert_true(iot_queue_latency(&r, &ns));
	assert_int_equal(ns, 505000);
	assert_true(iot_device_latency(&r, &ns));
	assert_int_equal(ns, 500000);
	r.start_ns = 0;
	assert_true(iot_queue_latency(&r, &ns));
	assert_int_equal(ns, r.issue_last_ns - r.insert_ns);
	r.insert_ns = 0;
	assert_false(iot_queue_latency(&r, &ns));
	r.issue_ns = r.issue_last_ns = 0;
	assert_false(iot_device_latency(&r, &ns));
	/* Clocks of two CPUs must not give 2^64 ns. */
	r.issue_ns = r.issue_last_ns = r.complete_ns + 1;
	assert_false(iot_device_latency(&r, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_exact),
		cmocka_unit_test(test_json_nulls),
		cmocka_unit_test(test_json_imported),
		cmocka_unit_test(test_swap_known_only_where_detectable),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_json_any_bytes),
		cmocka_unit_test(test_largest_line),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_latencies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
