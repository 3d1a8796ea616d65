// SPDX-License-Identifier: BSD-2-Clause
/* What no capture recorded of an asked time, by machine and stream. Times of the table are seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/ctl-util.h"
#include "tests/unit/ctl-said.h"

#define S 1000000000ULL
#define OPEN UINT64_MAX

static const struct iot_segment_info a = {.machine_id = {1}, .stream = 1, .host = "a"},
				     b = {.machine_id = {2}, .stream = 1, .host = "b"},
				     a_packets = {.machine_id = {1}, .stream = 2, .host = "a"};

struct given {
	const struct iot_segment_info *info;
	uint64_t first, last;
};

/* The reasons in their order, without host and date: "before 40", "none", "after". */
static void expect(const struct given *g, size_t n, uint64_t since, uint64_t until,
		   const char *want)
{
	struct iot_filter f = {.since_ns = since * S, .until_ns = until * S};
	struct iot_verdict v = {0};
	struct ctl_span spans[4];
	char got[256] = "";

	for (size_t i = 0; i < n; i++)
		spans[i] = (struct ctl_span){g[i].info, g[i].first * S,
					     g[i].last == OPEN ? OPEN : g[i].last * S};
	ctl_cover_check(&f, spans, n, &v);
	for (size_t i = 0; i < v.n_reasons; i++) {
		const char *text = v.reasons[i];
		size_t at = strlen(got);
		unsigned long long s;

		if (sscanf(text + 1, ": no %*s capture covers the %llu.000000 s", &s) == 1)
			snprintf(got + at, sizeof(got) - at, "%c:%llu ", text[0], s);
		else if (strstr(text, "none of its "))
			snprintf(got + at, sizeof(got) - at, "%c:none ", text[0]);
		else if (strstr(text, "the time after"))
			snprintf(got + at, sizeof(got) - at, "%c:after ", text[0]);
		else
			fail_msg("%s", text);
	}
	assert_string_equal(got, want);
	assert_int_equal(v.code, *want ? IOT_VERDICT_UNKNOWN : IOT_VERDICT_COMPLETE);
}

static void test_one_capture(void **state)
{
	static const struct given g[] = {{&a, 100, 200}}, open[] = {{&a, 100, OPEN}};

	(void)state;
	expect(g, 1, 100, 200, "");
	expect(g, 1, 120, 0, "");
	expect(g, 1, 0, 150, "");
	expect(g, 1, 90, 150, "a:10 ");
	expect(g, 1, 150, 201, "a:after ");
	expect(g, 1, 99, 300, "a:1 a:after ");
	expect(g, 1, 201, 0, "a:none ");
	expect(g, 1, 0, 99, "a:none ");
	expect(g, 1, 10, 20, "a:90 a:none ");
	expect(g, 1, 300, 400, "a:none ");
	expect(open, 1, 150, 1000, "");
	expect(open, 1, 1000, 0, "");
}

static void test_between_captures(void **state)
{
	/* In no order, and two that overlap. */
	static const struct given g[] = {{&a, 300, 400}, {&a, 100, 180}, {&a, 150, 200}};

	(void)state;
	expect(g, 3, 150, 350, "a:100 ");
	expect(g, 3, 120, 200, "");
	expect(g, 3, 200, 250, "a:100 ");
	expect(g, 3, 220, 0, "a:80 ");
	expect(g, 3, 220, 280, "a:80 a:none ");
	expect(g, 3, 300, 400, "");
	expect(g, 3, 0, 350, "a:100 ");
}

static void test_machines_and_streams(void **state)
{
	static const struct given g[] = {
		{&b, 100, 400}, {&a_packets, 200, 300}, {&a, 100, 200}, {&a, 200, 400}};

	(void)state;
	expect(g, 4, 210, 290, "");
	expect(g, 4, 190, 290, "a:10 ");
	expect(g, 4, 350, 400, "a:none ");
	expect(g, 3, 150, 190, "a:50 a:none ");
	expect(g, 3, 250, 300, "a:none ");
	expect(g, 1, 50, 100, "b:50 ");
}

/* The wall clock is set, or the machine sleeps, between the two ends of a segment from 100 to 200. */
static void test_steps(void **state)
{
	static const struct {
		int64_t by;
		uint64_t since, until;
		enum iot_verdict_code want;
	} t[] = {
		{0, 120, 130, IOT_VERDICT_COMPLETE},   {60, 0, 0, IOT_VERDICT_COMPLETE},
		{60, 120, 130, IOT_VERDICT_UNKNOWN},   {60, 240, 250, IOT_VERDICT_UNKNOWN},
		{60, 261, 0, IOT_VERDICT_COMPLETE},    {-60, 45, 50, IOT_VERDICT_UNKNOWN},
		{-60, 0, 39, IOT_VERDICT_COMPLETE},    {-60, 190, 195, IOT_VERDICT_UNKNOWN},
		{-60, 201, 210, IOT_VERDICT_COMPLETE},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(t); i++) {
		struct iot_filter f = {.since_ns = t[i].since * S, .until_ns = t[i].until * S};
		struct iot_segment_info info = {
			.clocks = {.monotonic_ns = 5 * S, .realtime_ns = 100 * S}};
		struct iot_footer footer = {
			.clocks = {.monotonic_ns = 105 * S,
				   .realtime_ns = (uint64_t)(200 + t[i].by) * S},
			.epoch_first_ns = 5 * S,
			.epoch_last_ns = 105 * S,
		};
		struct iot_verdict v = {0};

		ctl_step_check(&f, &info, &footer, &v);
		assert_int_equal(v.code, t[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_capture),
		cmocka_unit_test(test_between_captures),
		cmocka_unit_test(test_machines_and_streams),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
