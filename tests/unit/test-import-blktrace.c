// SPDX-License-Identifier: BSD-2-Clause
/* blktrace's binary events: both byte orders, notes, numbers, and whatever is broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/blktrace_api.h>

#include "tests/unit/import-world.h"

static size_t put(uint8_t *at, const struct blk_io_trace *t, const void *pdu, bool swapped)
{
	struct blk_io_trace x = *t;

	x.magic = t->magic ? t->magic : BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION;
	x.device = t->device ? t->device : IOT_DEV(8, 0);
	if (swapped) {
		x.magic = __builtin_bswap32(x.magic);
		x.sequence = __builtin_bswap32(x.sequence);
		x.time = __builtin_bswap64(x.time);
		x.sector = __builtin_bswap64(x.sector);
		x.bytes = __builtin_bswap32(x.bytes);
		x.action = __builtin_bswap32(x.action);
		x.pid = __builtin_bswap32(x.pid);
		x.device = __builtin_bswap32(x.device);
		x.cpu = __builtin_bswap32(x.cpu);
		x.error = __builtin_bswap16(x.error);
		x.pdu_len = __builtin_bswap16(x.pdu_len);
	}
	memcpy(at, &x, sizeof(x));
	if (t->pdu_len)
		memcpy(at + sizeof(x), pdu, t->pdu_len);
	return sizeof(x) + t->pdu_len;
}

/* A note with the wall clock, one with a name, and a read with a payload. */
static size_t small_trace(uint8_t *buf, bool swapped)
{
	const uint32_t read = bt_category(IOT_OP_READ, IOT_FLAG_SYNC);
	uint32_t clock[2] = {1700000000, 5};
	size_t n = 0;

	if (swapped)
		for (size_t i = 0; i < 2; i++)
			clock[i] = __builtin_bswap32(clock[i]);
	n += put(buf + n,
		 &(struct blk_io_trace){.time = 1000, .action = BLK_TN_TIMESTAMP, .pdu_len = 8},
		 clock, swapped);
	n += put(buf + n,
		 &(struct blk_io_trace){
			 .time = 1000, .action = BLK_TN_PROCESS, .pid = 9, .pdu_len = 16},
		 "fio\0\0\0\0\0\0\0\0\0\0\0\0", swapped);
	n += put(buf + n,
		 &(struct blk_io_trace){.time = 2000,
					.sequence = 1,
					.action = read | BLK_TA_ISSUE | 1U << 8,
					.sector = 64,
					.bytes = 4096,
					.pid = 9,
					.cpu = 2,
					.pdu_len = 8},
		 "cgroupid", swapped);
	n += put(buf + n,
		 &(struct blk_io_trace){.time = 3000,
					.sequence = 4,
					.action = read | BLK_TA_COMPLETE,
					.sector = 64,
					.bytes = 4096,
					.error = (uint16_t)-EIO,
					.cpu = 2},
		 NULL, swapped);
	return n;
}

static void test_blktrace(void **state)
{
	uint8_t buf[512];
	struct world w;

	(void)state;
	for (int swapped = 0; swapped < 2; swapped++) {
		begin(&w);
		assert_int_equal(parse(&w, import_blktrace, buf, small_trace(buf, swapped)), 0);
		pair(&w);
		assert_int_equal(w.n, 1);
		assert_int_equal(w.requests[0].issue_ns, 2000);
		assert_int_equal(w.requests[0].complete_ns, 3000);
		assert_int_equal(w.requests[0].op, IOT_OP_READ);
		assert_int_equal(w.requests[0].sector, 64);
		assert_int_equal(w.requests[0].bytes, 4096);
		assert_int_equal(w.requests[0].error, -EIO);
		assert_int_equal(w.requests[0].complete_cpu, 2);
		assert_string_equal(w.requests[0].comm, "fio");
		assert_int_equal(w.requests[0].submitter, IOT_SUBMITTER_ISSUE);
		assert_true(w.im.dated);
		assert_true(w.im.realtime_offset_ns == 1700000000ULL * 1000000000 + 5 - 1000);
		assert_int_equal(w.im.n_lost, 2);
		assert_int_equal(w.im.n_events, 2);
		done(&w);
	}
}

/* Each beginning of a trace is one, or is refused with the place; no byte that is wrong is worse than that. */
static void test_broken_blktrace(void **state)
{
	uint8_t buf[512];
	struct world w;
	size_t n = small_trace(buf, false), whole = 0;

	(void)state;
	for (size_t cut = 0; cut <= n; cut++) {
		int r;

		begin(&w);
		r = parse(&w, import_blktrace, buf, cut);
		if (r == 0) {
			whole++;
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(w.err.text, "trace: offset "));
			assert_non_null(strstr(w.err.text, "the file ends in the middle"));
		}
		done(&w);
	}
	assert_int_equal(whole, 5);
	for (size_t bit = 0; bit < n * 8; bit++) {
		int r;

		buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
		begin(&w);
		r = parse(&w, import_blktrace, buf, n);
		assert_true(r == 0 || (r == -EBADMSG && strstr(w.err.text, "trace: offset ")));
		if (r == 0)
			pair(&w);
		done(&w);
		buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	begin(&w);
	n = put(buf, &(struct blk_io_trace){.magic = BLK_IO_TRACE_MAGIC | 8}, NULL, false);
	assert_int_equal(parse(&w, import_blktrace, buf, n), -EBADMSG);
	assert_string_equal(w.err.text,
			    "trace: offset 0: blktrace version 8, this program reads version 7");
	done(&w);
}

/* The clock of a note of its own, and of one after it. */
static int two_clocks(struct world *w, uint64_t between_ns)
{
	const uint64_t t = 1700000000ULL * 1000000000 + between_ns;
	const uint32_t a[2] = {1700000000, 0},
		       b[2] = {(uint32_t)(t / 1000000000), (uint32_t)(t % 1000000000)};
	uint8_t buf[512];
	size_t n;

	n = put(buf, &(struct blk_io_trace){.time = 5, .action = BLK_TN_TIMESTAMP, .pdu_len = 8}, a,
		false);
	n += put(buf + n,
		 &(struct blk_io_trace){.time = 5,
					.device = IOT_DEV(8, 16),
					.action = BLK_TN_TIMESTAMP,
					.pdu_len = 8},
		 b, false);
	begin(w);
	return parse(w, import_blktrace, buf, n);
}

/* Of two boots only one could have its dates. */
static void test_clocks(void **state)
{
	struct world w;

	(void)state;
	assert_int_equal(two_clocks(&w, 50000000), 0);
	assert_true(w.im.realtime_offset_ns == 1700000000ULL * 1000000000 - 5);
	done(&w);
	assert_int_equal(two_clocks(&w, 200000000), -EBADMSG);
	assert_string_equal(w.err.text,
			    "trace: offset 56: another wall clock than before: traces of two boots "
			    "or machines; import them one by one");
	done(&w);
	assert_int_equal(two_clocks(&w, (uint64_t)-200000000), -EBADMSG);
	done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blktrace),
		cmocka_unit_test(test_broken_blktrace),
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
