// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packets.c - the lives of a capture's packets in memory: as many as the files have, and no more than
 * the limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/packets.h"
#include "format/reader-internal.h"
#include "tests/unit/ctl-said.h"
#include "tests/unit/segment-builder.h"

/* Runs from the top of the source tree. */
static const char *const path = "tests/golden/v1-packet/mixed.iot";

static void test_limit(void **state)
{
	struct ctl_packets p = {0};
	struct iot_scan *scan;
	struct iot_error err = {0};
	size_t n;

	(void)state;
	assert_int_equal(iot_scan_open(&path, 1, NULL, &scan, &err), 0);
	assert_int_equal(ctl_packets_read(scan, &p, &err), 0);
	assert_int_equal(p.n, 1);
	n = p.captures[0].n_lives;
	assert_true(n > 1);
	for (size_t i = 0; i < n; i++) {
		const struct iot_packet_life *l = &p.captures[0].lives[i];

		assert_ptr_equal(ctl_capture_life(&p.captures[0], l->id), l);
	}
	ctl_packets_done(&p);

	/* Just enough, and one too few: that is said once, and nothing is kept. */
	ctl_packets_max = n;
	assert_int_equal(ctl_packets_read(scan, &p, &err), 0);
	assert_int_equal(p.captures[0].n_lives, n);
	ctl_packets_done(&p);
	ctl_packets_max = n - 1;
	assert_int_equal(ctl_packets_read(scan, &p, &err), -E2BIG);
	assert_non_null(strstr(err.text, "packets in one run of iotraced"));
	assert_int_equal(p.n, 0);
	assert_int_equal(ctl_packets_open(scan, &p), CTL_ERROR);
	assert_string_equal(ctl_said, err.text);
	iot_scan_close(scan);
}

/* What the end of a packet would tell is in doubt when the file is gone, and reading goes on. */
static void test_gone(void **state)
{
	struct iot_packet_life endless = {0};
	struct iot_packet_ruling ruling;
	struct ctl_packets p = {0};
	struct iot_scan *scan;
	struct iot_error err = {0};
	struct build_dir d;
	char copy[128];

	(void)state;
	ctl_packets_max = 1000;
	build_dir_open(&d);
	snprintf(copy, sizeof(copy), "cp -- %s %s", path, d.path);
	assert_int_equal(system(copy), 0);
	snprintf(copy, sizeof(copy), "%s%s", d.path, strrchr(path, '/'));
	assert_int_equal(iot_scan_open(&(const char *){copy}, 1, NULL, &scan, &err), 0);
	assert_int_equal(ctl_packets_read(scan, &p, &err), 0);
	for (size_t i = 0; i < p.captures[0].n_lives && !endless.id; i++) {
		struct iot_packet_life l = p.captures[0].lives[i];

		l.flags &= ~(uint32_t)IOT_PACKET_END;
		l.end_hop = 0;
		iot_doubts_judge(p.captures[0].doubts, &l, &ruling, NULL);
		if (ruling.verdict == IOT_PVERDICT_WITHIN_WINDOW)
			endless = l;
	}
	assert_true(endless.id);
	ctl_packets_done(&p);

	iot_segment_park(iot_scan_segment(scan, 0));
	assert_int_equal(unlink(copy), 0);
	assert_int_equal(ctl_packets_read(scan, &p, &err), 0);
	assert_true(iot_segment_unread(iot_scan_segment(scan, 0)));
	assert_int_equal(p.captures[0].n_lives, 0);
	iot_doubts_judge(p.captures[0].doubts, &endless, &ruling, NULL);
	assert_int_equal(ruling.verdict, IOT_PVERDICT_UNKNOWN);
	ctl_packets_done(&p);
	iot_scan_close(scan);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests_name("packets", tests, NULL, NULL);
}
