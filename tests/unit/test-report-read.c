// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-report-read.c - requests added by whole columns give what they give one by one.
 */
#include "daemon/ctl/report-view.h"
#include "tests/unit/ctl-said.h"
#include "tests/unit/scan-fixture.h"

#define N_SEGMENTS 3

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Of several operations, disks and kinds of swap, over minutes, out of order, with times that are missing. */
static void vary(struct iot_request *r, uint32_t i)
{
	uint64_t x = r->id * 0x9E3779B97F4A7C15ULL + 1;

	r->op = (uint8_t)(next_random(&x) % 6);
	r->swap = (uint8_t)(next_random(&x) % 3);
	r->bytes = (uint32_t)(next_random(&x) % 256) << 9;
	r->bytes_done = next_random(&x) % 8 ? r->bytes : r->bytes / 2;
	r->merges = next_random(&x) % 16 == 0;
	r->requeues = next_random(&x) % 16 == 0;
	r->error = next_random(&x) % 32 == 0 ? -5 : 0;
	r->status = next_random(&x) % 32 == 0 ? 10 : 0;
	r->complete_ns += next_random(&x) % 40 * SEC_NS;
	r->issue_ns = next_random(&x) % 16 ? r->complete_ns - next_random(&x) % 5000000 : 0;
	r->issue_last_ns = r->issue_ns && next_random(&x) % 8 == 0 ? r->issue_ns + 77 : r->issue_ns;
	r->start_ns = next_random(&x) % 16 ? r->complete_ns - 6000000 - next_random(&x) % 9000 : 0;
	r->insert_ns = next_random(&x) % 2 ? r->complete_ns - 5500000 : 0;
	if (next_random(&x) % 64 == 0) /* issued after it was completed, says its clock */
		r->issue_ns = r->issue_last_ns = r->complete_ns + 5;
	(void)i;
}

/* As vary(), and what the kernel merged with swap. */
static void vary_in_part(struct iot_request *r, uint32_t i)
{
	vary(r, i);
	if (r->swap && i % 7 == 0)
		r->unswapped_bytes = r->bytes / 4;
}

/* Every block has the same values throughout. */
static void plain(struct iot_request *r, uint32_t i)
{
	r->op = IOT_OP_READ;
	r->swap = IOT_SWAP_NONE;
	r->dev = r->part = BUILD_DISK;
	(void)i;
}

static void write_segments(const struct build_dir *d,
			   void (*change)(struct iot_request *, uint32_t))
{
	char name[32];

	for (unsigned int i = 0; i < N_SEGMENTS; i++) {
		struct build b;

		build_init(&b, i + 1, 4, 500);
		b.change = change;
		snprintf(name, sizeof(name), "%u.iot", i);
		build_write(&b, d->fd, name);
	}
}

static void read_into(const char *path, const struct iot_filter *f, struct report_view *v,
		      uint64_t last_ns[N_SEGMENTS])
{
	struct iot_scan *sc = must_scan(path, f);
	struct iot_error err = {0};

	memset(v, 0, sizeof(*v));
	assert_int_equal(report_read(sc, v, last_ns, &err), 0);
	report_sort(&v->report);
	iot_scan_close(sc);
}

static void same_hist(const struct hist *a, const struct hist *b)
{
	assert_true(a->n == b->n && a->min == b->min && a->max == b->max);
	assert_true(a->sum - b->sum < 1 && b->sum - a->sum < 1);
	for (unsigned int p = 0; a->n && p <= 10000; p += 100)
		assert_true(hist_percentile(a, p) == hist_percentile(b, p));
}

static void same_report(const struct report *a, const struct report *b)
{
	assert_true(a->n_devices == b->n_devices);
	for (size_t i = 0; i < a->n_devices; i++) {
		assert_string_equal(a->devices[i].name, b->devices[i].name);
		for (unsigned int op = 0; op < IOT_N_OPS; op++) {
			const struct report_op *x = a->devices[i].ops[op];
			const struct report_op *y = b->devices[i].ops[op];

			assert_true(!x == !y);
			for (unsigned int k = 0; x && k < REPORT_N_SWAP; k++) {
				/* Counts come first in a cell, one after the other. */
				assert_memory_equal(&x->swap[k], &y->swap[k],
						    offsetof(struct report_cell, queue));
				same_hist(&x->swap[k].queue, &y->swap[k].queue);
				same_hist(&x->swap[k].device, &y->swap[k].device);
			}
		}
	}
}

static void compare(void (*change)(struct iot_request *, uint32_t))
{
	/* Passes all, and is looked at for each. */
	const struct iot_filter each = {.ops = UINT32_MAX}, none = {0};
	uint64_t last[2][N_SEGMENTS] = {{0}};
	struct report_view by_columns, by_rows;
	struct build_dir d;

	build_dir_open(&d);
	write_segments(&d, change);
	read_into(d.path, &none, &by_columns, last[0]);
	read_into(d.path, &each, &by_rows, last[1]);
	assert_int_equal(by_columns.requests, N_SEGMENTS * 4 * 500);
	assert_int_equal(by_rows.requests, N_SEGMENTS * 4 * 500);
	assert_memory_equal(last[0], last[1], sizeof(last[0]));
	same_report(&by_columns.report, &by_rows.report);
	assert_memory_equal(&by_columns.totals, &by_rows.totals, sizeof(by_rows.totals));
	report_done(&by_columns.report);
	report_done(&by_rows.report);
	build_dir_close(&d);
}

static void test_plain(void **state)
{
	(void)state;
	compare(plain);
}

static void test_varied(void **state)
{
	(void)state;
	compare(vary);
}

static void test_swap_in_part(void **state)
{
	(void)state;
	compare(vary_in_part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_varied),
		cmocka_unit_test(test_swap_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
