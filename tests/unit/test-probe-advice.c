// SPDX-License-Identifier: BSD-2-Clause
/* What ring a rate needs: the kernel's counters, and the arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/probe-advice.h"

static bool whole_disk(const char *disk)
{
	return strcmp(disk, "sda") == 0 || strcmp(disk, "nvme0n1") == 0;
}

static void test_requests(void **state)
{
	(void)state;
	/* reads, merges, sectors, ms, writes, ..., in flight, ms, ms, discards, ..., flushes, ms */
	assert_int_equal(
		advice_requests(
			"   8       0 sda 10 1 80 5 200 2 1600 9 0 7 14 3000 0 0 0 40000 1\n"
			"   8       1 sda1 10 1 80 5 200 2 1600 9 0 7 14 3000 0 0 0 40000 1\n"
			" 253       0 dm-0 99 0 0 0 99 0 0 0 0 0 0 0 0 0 0 0 0\n"
			" 259       0 nvme0n1 1 0 8 0 1 0 8 0 0 0 0 0 0 0 0 0 0\n",
			whole_disk),
		43212);
	/* Before 4.18, and a line that was cut. */
	assert_int_equal(
		advice_requests("8 0 sda 10 1 80 5 200 2 1600 9 0 7 14\n8 0 sda 1", whole_disk),
		211);
	assert_int_equal(advice_requests("", whole_disk), 0);
	assert_int_equal(advice_requests("8 0\n\nsda\n", whole_disk), 0);
}

static void test_ring_bytes(void **state)
{
	(void)state;
	assert_int_equal(advice_ring_bytes(0, 168), 4096);
	/* 5 s of 1000 requests a second are 840,000 bytes. */
	assert_int_equal(advice_ring_bytes(1000, 168), 1 << 20);
	assert_int_equal(advice_ring_bytes(1248, 168), 1 << 20);
	assert_int_equal(advice_ring_bytes(1249, 168), 1 << 21);
	/* 1 GiB is the largest that a configuration takes. */
	assert_int_equal(advice_ring_bytes(1278264, 168), 1 << 30);
	assert_true(advice_ring_bytes(1278265, 168) == UINT64_MAX);
	assert_true(advice_ring_bytes(UINT64_MAX, 168) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_ring_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
