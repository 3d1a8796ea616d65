// SPDX-License-Identifier: BSD-2-Clause
/* Histograms against sorted values, and the sums of a report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/report-view.h"
#include "tests/unit/ctl-said.h"

static int compare_values(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The value of rank ceil(p * n / 10000) of sorted values. */
static uint64_t exact(const uint64_t *values, uint64_t n, uint64_t p)
{
	uint64_t rank = (n * p + 9999) / 10000;

	return values[(rank ? rank : 1) - 1];
}

static void test_percentiles(void **state)
{
	static const unsigned int points[] = {1, 100, 5000, 9000, 9900, 9990, 10000};
	static const unsigned int counts[] = {1, 2, 3, 10, 999, 10000};
	uint64_t values[10000], x = 88172645463325252ULL;

	(void)state;
	for (size_t c = 0; c < IOT_ARRAY_SIZE(counts); c++) {
		_cleanup_(hist_done) struct hist h = {0};

		for (unsigned int i = 0; i < counts[c]; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			values[i] = x >> (x % 60); /* every order of magnitude */
			assert_int_equal(hist_add(&h, values[i]), 0);
		}
		qsort(values, counts[c], sizeof(*values), compare_values);
		assert_int_equal(h.n, counts[c]);
		assert_true(h.min == values[0]);
		assert_true(h.max == values[counts[c] - 1]);
		for (size_t k = 0; k < IOT_ARRAY_SIZE(points); k++) {
			uint64_t want = exact(values, counts[c], points[k]);
			uint64_t got = hist_percentile(&h, points[k]);
			uint64_t off = got > want ? got - want : want - got;

			if (off > want / 256)
				fail_msg("n %u, p %u: %llu instead of %llu", counts[c], points[k],
					 (unsigned long long)got, (unsigned long long)want);
		}
	}
}

static void test_small_values_exact(void **state)
{
	_cleanup_(hist_done) struct hist h = {0};

	(void)state;
	for (uint64_t v = 1; v <= 100; v++)
		assert_int_equal(hist_add(&h, v), 0);
	assert_int_equal(hist_percentile(&h, 5000), 50);
	assert_int_equal(hist_percentile(&h, 9000), 90);
	assert_int_equal(hist_percentile(&h, 9900), 99);
	assert_int_equal(hist_percentile(&h, 9990), 100);
}

static void test_log2_counts(void **state)
{
	_cleanup_(hist_done) struct hist h = {0};
	uint64_t sum = 0;

	(void)state;
	/* 2^bit and 2^(bit+1)-1 are in one bar; 0 and 1 share the first. */
	assert_int_equal(hist_add(&h, 0), 0);
	for (unsigned int bit = 0; bit < 64; bit++) {
		assert_int_equal(hist_add(&h, 1ULL << bit), 0);
		assert_int_equal(hist_add(&h, (1ULL << bit) - 1 + (1ULL << bit)), 0);
	}
	assert_int_equal(hist_log2_count(&h, 0), 3);
	for (unsigned int bit = 1; bit < 64; bit++)
		assert_int_equal(hist_log2_count(&h, bit), 2);
	for (unsigned int bit = 0; bit < 64; bit++)
		sum += hist_log2_count(&h, bit);
	assert_int_equal(sum, h.n);
}

static void test_merge_is_sum(void **state)
{
	_cleanup_(hist_done) struct hist a = {0}, b = {0}, both = {0}, empty = {0};

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(hist_add(i % 3 ? &a : &b, i * i * 977), 0);
		assert_int_equal(hist_add(&both, i * i * 977), 0);
	}
	assert_int_equal(hist_merge(&a, &b), 0);
	assert_int_equal(hist_merge(&a, &empty), 0);
	assert_int_equal(a.n, both.n);
	assert_int_equal(a.min, both.min);
	assert_int_equal(a.max, both.max);
	for (unsigned int p = 100; p <= 10000; p += 100)
		assert_int_equal(hist_percentile(&a, p), hist_percentile(&both, p));
	assert_int_equal(hist_merge(&empty, &both), 0);
	assert_int_equal(empty.min, both.min);
}

static void test_cells(void **state)
{
	static const uint8_t machine[16] = {1};
	_cleanup_(report_done) struct report rp = {0};
	struct iot_request r = {
		.op = IOT_OP_READ,
		.bytes = 4096,
		.bytes_done = 2048,
		.start_ns = 100,
		.issue_ns = 150,
		.issue_last_ns = 150,
		.complete_ns = 250,
		.merges = 3,
		.requeues = 1,
		.error = -EIO,
	};
	struct iot_loss loss = {.op = IOT_OP_READ, .n = 7, .bytes = 512};
	struct report_device *d;
	struct report_op *op;

	(void)state;
	assert_int_equal(report_device(&rp, machine, 5, "sda", "h", &d), 0);
	assert_int_equal(report_add(d, &r), 0);
	r.error = 0;
	r.swap = IOT_SWAP_IN;
	r.start_ns = 0; /* no queue latency: not counted as 0 */
	assert_int_equal(report_add(d, &r), 0);
	assert_int_equal(report_add_loss(d, &loss), 0);
	op = d->ops[IOT_OP_READ];
	assert_int_equal(op->swap[REPORT_NOT_SWAP].requests, 1);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].errors, 1);
	assert_int_equal(op->swap[REPORT_SWAP_IN].requests, 1);
	assert_int_equal(op->swap[REPORT_SWAP_IN].errors, 0);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].queue.n, 1);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].queue.max, 50);
	assert_int_equal(op->swap[REPORT_SWAP_IN].queue.n, 0);
	assert_int_equal(op->swap[REPORT_SWAP_IN].device.max, 100);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].lost, 7);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].lost_bytes, 512);
	assert_int_equal(op->swap[REPORT_SWAP_IN].lost, 0);
	loss.swap = IOT_SWAP_IN;
	loss.n = 2;
	loss.unswapped_bytes = 128;
	assert_int_equal(report_add_loss(d, &loss), 0);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].lost, 7);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].lost_bytes, 512 + 128);
	assert_int_equal(op->swap[REPORT_SWAP_IN].lost, 2);
	assert_int_equal(op->swap[REPORT_SWAP_IN].lost_bytes, 512 - 128);
	/* Merged from both: one request of the one, bytes of each. */
	r.unswapped_bytes = 1024;
	assert_int_equal(report_add(d, &r), 0);
	assert_int_equal(op->swap[REPORT_SWAP_IN].requests, 2);
	assert_int_equal(op->swap[REPORT_SWAP_IN].bytes, 2 * 4096 - 1024);
	assert_int_equal(op->swap[REPORT_SWAP_IN].bytes_done, 2 * 2048 - 1024);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].requests, 1);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].bytes, 4096 + 1024);
	assert_int_equal(op->swap[REPORT_NOT_SWAP].bytes_done, 2048 + 1024);
	assert_int_equal(report_cell_merge(&op->swap[0], &op->swap[2]), 0);
	assert_int_equal(op->swap[0].requests, 3);
	assert_int_equal(op->swap[0].bytes, 3 * 4096);
	assert_int_equal(op->swap[0].bytes_done, 3 * 2048);
	assert_int_equal(op->swap[0].merges, 9);
	assert_int_equal(op->swap[0].requeues, 3);
	assert_int_equal(op->swap[0].lost, 9);
	assert_int_equal(op->swap[0].lost_bytes, 1024);
}

static void test_devices(void **state)
{
	static const uint8_t machine[16] = {1}, other[16] = {2};
	_cleanup_(report_done) struct report rp = {0};
	struct report_device *d;
	char name[32];

	(void)state;
	assert_int_equal(report_device(&rp, machine, 5, "sdb", "h", &d), 0);
	assert_int_equal(report_device(&rp, machine, 5, "sdb", "h", &d), 0);
	assert_int_equal(rp.n_devices, 1);
	assert_int_equal(report_device(&rp, other, 5, "sdb", "g", &d), 0);
	assert_int_equal(report_device(&rp, machine, 6, "nvme10n1", "h", &d), 0);
	assert_int_equal(report_device(&rp, machine, 7, "nvme9n1", "h", &d), 0);
	assert_int_equal(rp.n_devices, 4);
	report_sort(&rp);
	assert_string_equal(rp.devices[0].host, "g");
	assert_string_equal(rp.devices[1].name, "nvme9n1");
	assert_string_equal(rp.devices[2].name, "nvme10n1");
	assert_string_equal(rp.devices[3].name, "sdb");
	/* A file with any number of devices does not take any amount of memory. */
	for (unsigned int i = 0; i < 2 * REPORT_MAX_DEVICES; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(report_device(&rp, machine, 100 + i, name, "h", &d), 0);
	}
	assert_int_equal(rp.n_devices, REPORT_MAX_DEVICES);
	assert_string_equal(d->name, "(others)");
}

static void test_recorded_time(void **state)
{
	static const uint8_t a[16] = {1}, b[16] = {2}, c[16] = {3};
	struct report_span spans[] = {
		{{1}, 300, 400, true, "h"},   {{1}, 100, 200, true, "h"},
		{{1}, 150, 250, true, "h"},   {{1}, 160, 170, true, "h"},
		{{2}, 0, 1000, true, "h"},    {{1}, 400, 400, true, "h"},
		{{1}, 0, 1000, false, "h"}, /* of packets */
		{{1}, 0, 900, true, "clone"},
	};

	(void)state;
	assert_int_equal(report_recorded_ns(spans, 8, a, "h"), 250);
	assert_int_equal(report_recorded_ns(spans, 8, b, "h"), 1000);
	assert_int_equal(report_recorded_ns(spans, 8, c, "h"), 0);
	assert_int_equal(report_recorded_ns(spans, 8, a, "clone"), 900);
}

/* Any spread of latencies fits a screen: rows are joined, and no request is left out of them. */
static void test_text_fits(void **state)
{
	struct report_view v = {
		.n_segments = 1, .n_hosts = 1, .n_captures = 1, .losses_final = true};
	static const uint8_t machine[16] = {1};
	struct report_device *d;
	size_t n_rows = 0, n_histograms = 0, size = 0;
	uint64_t sum = 0, want = 0;
	char *text = NULL, *line, *save;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	for (unsigned int dev = 0; dev < 10; dev++) {
		char name[16];

		snprintf(name, sizeof(name), "nvme%un1", dev);
		assert_int_equal(report_device(&v.report, machine, dev + 1, name, "h", &d), 0);
		for (unsigned int bit = 1; bit < 45; bit++)
			for (unsigned int k = 0; k < (bit % 7 + 1) * (dev + 1); k++) {
				const struct iot_request r = {.op = IOT_OP_WRITE,
							      .start_ns = 1000,
							      .issue_ns = 1000,
							      .issue_last_ns = 1000,
							      .complete_ns = 1000 + (1ULL << bit),
							      .bytes = 4096};

				assert_int_equal(report_add(d, &r), 0);
				/* Eight of ten have a histogram: not the two with the fewest requests. */
				want += dev >= 2;
			}
	}
	assert_int_equal(report_view_text(&v, f, false), 0);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *dots = strstr(line, " .. ");

		if (strlen(line) > 80)
			fail_msg("wider than 80 columns: %s", line);
		if (strstr(line, ": device latency")) {
			n_histograms++;
			n_rows = 0;
		}
		if (!n_histograms || !dots || strncmp(line, "  ", 2) != 0)
			continue;
		if (++n_rows > 12)
			fail_msg("row %zu of a histogram: %s", n_rows, line);
		for (dots += 13; *dots == ' '; dots++)
			;
		{
			uint64_t n = 0;

			for (; *dots && *dots != ' '; dots++)
				if (*dots != ',')
					n = n * 10 + (uint64_t)(*dots - '0');
			sum += n;
		}
	}
	assert_int_equal(n_histograms, 8);
	assert_int_equal(sum, want);
	free(text);
	report_done(&v.report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles),   cmocka_unit_test(test_small_values_exact),
		cmocka_unit_test(test_log2_counts),   cmocka_unit_test(test_merge_is_sum),
		cmocka_unit_test(test_cells),	      cmocka_unit_test(test_devices),
		cmocka_unit_test(test_recorded_time), cmocka_unit_test(test_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
