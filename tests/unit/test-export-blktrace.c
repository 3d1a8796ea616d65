// SPDX-License-Identifier: BSD-2-Clause
/* Requests as blktrace events, and the external sort that puts them in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/blktrace_api.h>

#include "daemon/ctl/export.h"

static struct iot_request sample(void)
{
	return (struct iot_request){
		.start_ns = 100,
		.insert_ns = 110,
		.issue_ns = 120,
		.issue_last_ns = 120,
		.complete_ns = 200,
		.sector = 64,
		.dev = IOT_DEV(8, 0),
		.part = IOT_DEV(8, 1),
		.bytes = 4096,
		.flags = IOT_FLAG_SYNC,
		.op = IOT_OP_WRITE,
		.pid = 9,
		.submitter = IOT_SUBMITTER_START,
		.issue_cpu = 2,
		.complete_cpu = 3,
	};
}

/* "Q100@2 G100@2 ..." */
static const char *life(const struct iot_request *r)
{
	static const char letters[] = ".Q..G.RDC...I";
	static char text[256];
	struct bt_event e[BT_MAX_EVENTS];
	size_t n = bt_translate(r, 7, 1000, e), at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(e[i].device, 7);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%c%llu@%u", i ? " " : "",
				       letters[e[i].action & 0xffff],
				       (unsigned long long)e[i].time_ns - 1000, e[i].cpu);
	}
	return text;
}

static void test_life(void **state)
{
	struct iot_request r = sample();

	(void)state;
	assert_string_equal(life(&r), "Q100@2 G100@2 I110@2 D120@2 C200@3");
	r.insert_ns = 0; /* direct issue */
	assert_string_equal(life(&r), "Q100@2 G100@2 D120@2 C200@3");
	r.op = IOT_OP_DRV_OUT; /* never queued as a bio */
	assert_string_equal(life(&r), "D120@2 C200@3");
	r.op = IOT_OP_WRITE;
	r.requeues = 2;
	r.issue_last_ns = 150;
	assert_string_equal(life(&r), "Q100@2 G100@2 D120@2 R150@2 D150@2 C200@3");
	r.start_ns = 0;
	assert_string_equal(life(&r), "Q120@2 G120@2 D120@2 R150@2 D150@2 C200@3");
	r.issue_ns = r.issue_last_ns = 0; /* only the end was seen */
	assert_string_equal(life(&r), "C200@3");
	r.complete_ns = 0;
	assert_string_equal(life(&r), "");
}

static void test_fields(void **state)
{
	struct iot_request r = sample();
	struct bt_event e[BT_MAX_EVENTS];
	size_t n;

	(void)state;
	r.error = -EIO;
	n = bt_translate(&r, 0, 0, e);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(e[i].sector, 64);
		assert_int_equal(e[i].bytes, 4096);
		assert_int_equal(e[i].pid, 9);
		assert_int_equal(e[i].error, i == n - 1 ? (uint16_t)-EIO : 0);
	}
	/* What came from a damaged record must not name a million files. */
	r.complete_cpu = UINT32_MAX;
	r.sector = IOT_SECTOR_NONE;
	r.submitter = IOT_SUBMITTER_NONE;
	n = bt_translate(&r, 0, 0, e);
	assert_int_equal(e[n - 1].cpu, 0);
	assert_int_equal(e[n - 1].sector, 0);
	assert_int_equal(e[n - 1].pid, 0);
}

static void test_categories(void **state)
{
	(void)state;
#define TC(x) ((uint32_t)(x) << BLK_TC_SHIFT)
	assert_int_equal(bt_category(IOT_OP_READ, 0), TC(BLK_TC_READ | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_READ, IOT_FLAG_AHEAD | IOT_FLAG_META),
			 TC(BLK_TC_READ | BLK_TC_FS | BLK_TC_AHEAD | BLK_TC_META));
	assert_int_equal(bt_category(IOT_OP_WRITE, IOT_FLAG_SYNC | IOT_FLAG_FUA),
			 TC(BLK_TC_WRITE | BLK_TC_FS | BLK_TC_SYNC | (uint32_t)BLK_TC_FUA));
	/* fio would replay it as a flush and drop the data */
	assert_int_equal(bt_category(IOT_OP_WRITE, IOT_FLAG_PREFLUSH),
			 TC(BLK_TC_WRITE | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_FLUSH, IOT_FLAG_PREFLUSH),
			 TC(BLK_TC_READ | BLK_TC_FLUSH | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_DISCARD, 0),
			 TC(BLK_TC_WRITE | BLK_TC_DISCARD | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_SECURE_ERASE, 0),
			 TC(BLK_TC_WRITE | BLK_TC_DISCARD | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_WRITE_ZEROES, 0), TC(BLK_TC_WRITE | BLK_TC_FS));
	assert_int_equal(bt_category(IOT_OP_DRV_IN, 0), TC(BLK_TC_READ | BLK_TC_PC));
	assert_int_equal(bt_category(IOT_OP_DRV_OUT, 0), TC(BLK_TC_WRITE | BLK_TC_PC));
	/* The cgroup bit of an action is a pdu that we do not write. */
	for (unsigned int op = 0; op < IOT_N_OPS; op++)
		assert_int_equal(bt_category(op, UINT32_MAX) & __BLK_TA_CGROUP, 0);
}

/* In order, stable, and nothing lost: in memory and over many runs. */
static void check_sort(size_t max_events, uint32_t n)
{
	_cleanup_close_ int dirfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(bt_sort_freep) struct bt_sort *s = NULL;
	struct bt_event e = {0}, last = {0};
	uint64_t sum = 0, sum_out = 0;
	uint32_t x = 1, got = 0;
	int r;

	assert_true(dirfd >= 0);
	assert_int_equal(bt_sort_new(dirfd, max_events, bt_order_files, &s), 0);
	for (uint32_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		e = (struct bt_event){.time_ns = (x >> 8) % 50,
				      .device = x >> 31,
				      .cpu = (x >> 29) & 3,
				      .sector = i};
		sum += i;
		assert_int_equal(bt_sort_add(s, &e), 0);
	}
	assert_int_equal(bt_sort_finish(s), 0);
	while ((r = bt_sort_next(s, &e)) == 0) {
		bool ordered = !got || last.device < e.device ||
			       (last.device == e.device &&
				(last.cpu < e.cpu ||
				 (last.cpu == e.cpu &&
				  (last.time_ns < e.time_ns ||
				   (last.time_ns == e.time_ns && last.sector < e.sector)))));

		assert_true(ordered);
		sum_out += e.sector;
		last = e;
		got++;
	}
	assert_int_equal(r, BT_SORT_END);
	assert_int_equal(bt_sort_next(s, &e), BT_SORT_END);
	assert_int_equal(got, n);
	assert_int_equal(sum_out, sum);
}

static void test_sort(void **state)
{
	(void)state;
	check_sort(1000, 0);
	check_sort(1000, 1);
	check_sort(1000, 999);
	check_sort(1000, 1000);
	check_sort(1000, 1001);
	check_sort(10, 12345);
	check_sort(1, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_categories),
		cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
