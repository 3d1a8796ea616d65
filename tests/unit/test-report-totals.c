// SPDX-License-Identifier: BSD-2-Clause
/* Bytes with and without swap, and the rows of time they are put into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/report-totals.h"

#define SEC UINT64_C(1000000000)

static void test_bytes_with_and_without_swap(void **state)
{
	struct report_totals t = {0};

	(void)state;
	report_totals_add(&t, 1000 * SEC, IOT_OP_WRITE, IOT_SWAP_NONE, 100);
	report_totals_add(&t, 1000 * SEC, IOT_OP_WRITE, IOT_SWAP_OUT, 30);
	report_totals_add(&t, 1001 * SEC - 1, IOT_OP_ZONE_APPEND, IOT_SWAP_NONE, 7);
	report_totals_add(&t, 1001 * SEC, IOT_OP_READ, IOT_SWAP_NONE, 50);
	report_totals_add(&t, 1001 * SEC, IOT_OP_READ, IOT_SWAP_IN, 5);
	/* No data of a file: */
	report_totals_add(&t, 1, IOT_OP_DISCARD, IOT_SWAP_NONE, 1000);
	report_totals_add(&t, 1, IOT_OP_FLUSH, IOT_SWAP_NONE, 0);
	report_totals_add(&t, 1, IOT_OP_DRV_IN, IOT_SWAP_NONE, 512);
	assert_int_equal(t.all.write, 137);
	assert_int_equal(t.all.swap_out, 30);
	assert_int_equal(t.all.read, 55);
	assert_int_equal(t.all.swap_in, 5);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.step_ns, SEC);
	assert_int_equal(t.first, 1000);
	assert_int_equal(t.rows[0].write, 137);
	assert_int_equal(t.rows[0].read, 0);
	assert_int_equal(t.rows[1].read, 55);
	assert_int_equal(t.rows[1].swap_in, 5);
	assert_true(report_totals_swap(&t));
}

/* Whatever the order: every byte is in the row of its time, and there are never too many rows. */
static void test_rows_of_time(void **state)
{
	static const uint64_t spans_s[] = {1, 31, 33, 1000, 86400, 40 * 86400, 4000ULL * 86400};
	uint64_t x = 88172645463325252ULL;

	(void)state;
	for (size_t s = 0; s < IOT_ARRAY_SIZE(spans_s); s++) {
		struct report_totals t = {0};
		uint64_t times[500], sums[REPORT_TIME_ROWS] = {0};

		for (unsigned int i = 0; i < 500; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			times[i] = 1700000000 * SEC + x % (spans_s[s] * SEC);
			report_totals_add(&t, times[i], IOT_OP_WRITE, i & 1 ? IOT_SWAP_OUT : 0,
					  i + 1);
			assert_true(t.n >= 1 && t.n <= REPORT_TIME_ROWS);
		}
		assert_true(t.step_ns >= SEC && t.step_ns % SEC == 0);
		for (unsigned int i = 0; i < 500; i++) {
			uint64_t row = times[i] / t.step_ns - t.first;

			assert_true(row < t.n);
			sums[row] += i + 1;
		}
		for (size_t i = 0; i < t.n; i++)
			assert_int_equal(t.rows[i].write, sums[i]);
		assert_int_equal(t.all.write, 500 * 501 / 2);
		assert_int_equal(t.all.swap_out, 250 * 251);
		/* No longer than it has to be: with half of it, there would be too many. */
		if (t.step_ns > SEC && t.step_ns <= 86400 * SEC)
			assert_true(spans_s[s] * SEC / t.step_ns * 5 >= REPORT_TIME_ROWS - 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_with_and_without_swap),
		cmocka_unit_test(test_rows_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
