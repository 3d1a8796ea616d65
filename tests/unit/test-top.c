// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-top.c - daemon/ctl/top.c: every record is in exactly one window, that of its time where that has not been
 * shown, else the next; windows come in order and not before what belongs to them can be there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/ctl/top.h"

#define SEC UINT64_C(1000000000)

static const struct iot_segment_info info = {.machine_id = {1}, .host = "h"};

static void add(struct top *t, uint64_t ns, uint32_t tgid)
{
	struct iot_request r = {.complete_ns = ns,
				.dev = 8,
				.op = IOT_OP_READ,
				.bytes = 4096,
				.bytes_done = 4096,
				.submitter = IOT_SUBMITTER_START,
				.pid = tgid,
				.tgid = tgid,
				.cgroup = 1 + tgid % 2,
				.cgroup_by = IOT_CGROUP_BY_BLKG};

	assert_int_equal(top_add(t, &info, "sda", &r), 0);
}

static void test_windows(void **state)
{
	struct top_window *w;
	struct top t;

	(void)state;
	top_init(&t, 2 * SEC, 99 * SEC);
	/* From before the first window: of no rate that is shown. */
	add(&t, 100 * SEC - 1, 10);
	top_add_packet(&t, 99 * SEC, "OTHER");
	add(&t, 100 * SEC, 10);
	add(&t, 102 * SEC - 1, 11);
	add(&t, 102 * SEC, 12);
	top_add_packet(&t, 101 * SEC, "NO_SOCKET");
	top_add_packet(&t, 101 * SEC, "OTHER");
	top_add_packet(&t, 101 * SEC, "OTHER");
	top_add_packet(&t, 103 * SEC, NULL);
	assert_null(top_ready(&t, 102 * SEC + TOP_LAG_NS - 1));
	w = top_ready(&t, 102 * SEC + TOP_LAG_NS);
	assert_non_null(w);
	assert_int_equal(w->requests, 2);
	assert_int_equal(w->late, 0);
	assert_int_equal(w->report.n_devices, 1);
	assert_string_equal(w->report.devices[0].name, "sda");
	assert_int_equal(w->report.devices[0].ops[IOT_OP_READ]->swap[0].bytes_done, 8192);
	assert_int_equal(w->processes.n_groups, 2);
	assert_int_equal(w->cgroups.n_groups, 2);
	assert_int_equal(w->observations, 3);
	assert_int_equal(w->n_reasons, 2);
	assert_string_equal(w->reasons[0].name, "OTHER");
	assert_int_equal(w->reasons[0].n, 2);
	top_shown(&t);
	/* One that comes now belongs to what was shown. */
	add(&t, 101 * SEC, 10);
	assert_null(top_ready(&t, 102 * SEC + TOP_LAG_NS));
	w = top_ready(&t, 104 * SEC + TOP_LAG_NS);
	assert_non_null(w);
	assert_int_equal(w->requests, 2);
	assert_int_equal(w->late, 1);
	assert_int_equal(w->observations, 1);
	assert_int_equal(w->n_reasons, 0);
	top_done(&t);
}

/* Whatever their times: none is lost, none is counted twice. */
static void test_sums(void **state)
{
	uint64_t seed = 1, requests = 0, late = 0, bytes = 0, expected = 0;
	struct top t;

	(void)state;
	top_init(&t, SEC, 50 * SEC);
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t now = 50 * SEC + i * (SEC / 200), ns;
		struct top_window *w;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		ns = i % 1000 ? now - (seed >> 33) % (2 * SEC) : (i % 2000 ? 0 : UINT64_MAX);
		expected += ns >= 51 * SEC;
		add(&t, ns, 1 + i % 7);
		w = top_ready(&t, now);
		if (!w)
			continue;
		requests += w->requests;
		late += w->late;
		bytes += w->processes.bytes;
		top_shown(&t);
	}
	for (unsigned int i = 0; i < TOP_WINDOWS; i++) {
		struct top_window *w = top_ready(&t, UINT64_MAX / 2);

		requests += w->requests;
		late += w->late;
		bytes += w->processes.bytes;
		top_shown(&t);
	}
	assert_in_range(expected, 19000, 19999);
	assert_int_equal(requests, expected);
	assert_int_equal(bytes, expected * 4096ULL);
	assert_in_range(late, 1, 19999);
	top_done(&t);
}

static void test_many_reasons(void **state)
{
	struct top_window *w;
	uint64_t n = 0;
	char name[16];
	struct top t;

	(void)state;
	top_init(&t, SEC, 0);
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "R%u", i % 40);
		top_add_packet(&t, SEC + 1, name);
	}
	w = top_ready(&t, 10 * SEC);
	assert_int_equal(w->n_reasons, TOP_REASONS);
	assert_string_equal(w->reasons[0].name, "others");
	for (size_t i = 0; i < w->n_reasons; i++)
		n += w->reasons[i].n;
	assert_int_equal(n, 100);
	top_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_many_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
