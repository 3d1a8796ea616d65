// SPDX-License-Identifier: BSD-2-Clause
/* Miss-ratio curves against caches that are really simulated, at every size; and estimates against exact ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/mrc.h"

#define N_ACCESSES 100000U

struct access {
	uint32_t block;
	enum mrc_kind kind;
};

static struct access trace[N_ACCESSES];
static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((random_state >> 33) % n);
}

enum shape {
	RANDOM,
	LOOP,  /* the worst for LRU: all or nothing */
	HOT,   /* a few blocks take most */
	MIXED, /* a hot set, scans in between, and blocks that are used once */
	N_SHAPES,
};

static void make_trace(enum shape shape, uint32_t n_blocks)
{
	random_state = 42 + shape;
	for (uint32_t i = 0; i < N_ACCESSES; i++) {
		uint32_t b = 0;

		switch (shape) {
		case RANDOM:
			b = random_below(n_blocks);
			break;
		case LOOP:
			b = i % n_blocks;
			break;
		case HOT:
			b = random_below(1 + random_below(1 + random_below(n_blocks)));
			break;
		default:
			b = i / 1000 % 3 == 0 ? n_blocks + i % 1000
			    : i % 50 == 0     ? 2 * n_blocks + i
					      : random_below(1 + random_below(n_blocks));
		}
		trace[i] =
			(struct access){.block = b, .kind = random_below(3) ? MRC_READ : MRC_WRITE};
	}
}

static struct mrc *run(uint32_t max_blocks)
{
	struct mrc *m;

	assert_int_equal(mrc_new(max_blocks, &m), 0);
	for (uint32_t i = 0; i < N_ACCESSES; i++)
		/* Two devices with the same block numbers are different blocks. */
		assert_int_equal(mrc_access(m, trace[i].block & 1, trace[i].block / 2,
					    trace[i].kind, i / 1000),
				 0);
	return m;
}

/* The list of all blocks, last used first: where a block is found is the size it just misses in. */
static uint32_t brute_force(uint64_t *misses[MRC_N_KINDS], uint32_t max_size)
{
	uint32_t *list = calloc(N_ACCESSES + 1, sizeof(*list)), n = 0;

	assert_non_null(list);
	for (uint32_t i = 0; i < N_ACCESSES; i++) {
		uint32_t at = 0;

		while (at < n && list[at] != trace[i].block)
			at++;
		/* Misses in caches of 0 .. at blocks; of the first time, in all. */
		for (uint32_t size = 0; size <= (at < n ? at : max_size); size++)
			misses[trace[i].kind][size]++;
		n += at == n;
		memmove(list + 1, list, at * sizeof(*list));
		list[0] = trace[i].block;
	}
	free(list);
	return n;
}

static void check_exact(enum shape shape, uint32_t n_blocks)
{
	uint32_t max_size = 4000, n;
	uint64_t *misses[MRC_N_KINDS];
	struct mrc *m;

	make_trace(shape, n_blocks);
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		misses[k] = calloc(max_size + 1, sizeof(**misses));
		assert_non_null(misses[k]);
	}
	n = brute_force(misses, max_size);
	m = run(1U << 16);
	assert_true(mrc_rate(m) == 1);
	assert_true(mrc_error(m) == 0);
	assert_true(mrc_blocks(m) == n);
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		assert_int_equal(mrc_accesses(m, k), misses[k][0]);
		for (uint32_t size = 0; size <= max_size; size++)
			if (mrc_misses(m, k, size) != (double)misses[k][size])
				fail_msg("shape %u kind %u size %u: %f, not %llu", shape, k, size,
					 mrc_misses(m, k, size),
					 (unsigned long long)misses[k][size]);
		assert_true(mrc_misses(m, k, UINT64_MAX) == (double)misses[k][max_size]);
		free(misses[k]);
	}
	mrc_free(m);
}

static void test_exact(void **state)
{
	(void)state;
	for (unsigned int shape = 0; shape < N_SHAPES; shape++)
		check_exact(shape, 700);
	check_exact(RANDOM, 1);
	check_exact(LOOP, 2500); /* numbered anew and grown while it runs */
}

/* Working sets: different blocks in each thousand accesses. */
static void test_slices(void **state)
{
	uint8_t *used = calloc(N_ACCESSES * 4, 1);
	struct mrc *m;

	(void)state;
	assert_non_null(used);
	make_trace(MIXED, 700);
	m = run(1U << 16);
	for (uint32_t slice = 0; slice < N_ACCESSES / 1000; slice++) {
		uint32_t n = 0;

		memset(used, 0, N_ACCESSES * 4);
		for (uint32_t i = slice * 1000; i < slice * 1000 + 1000; i++) {
			n += !used[trace[i].block];
			used[trace[i].block] = 1;
		}
		assert_true(mrc_slice_blocks(m, slice) == n);
	}
	assert_true(mrc_slice_blocks(m, N_ACCESSES) == 0);
	mrc_free(m);
	free(used);
}

/* Far more blocks than are looked at: the estimate is within what it says of itself, on the average. */
static void check_sampled(enum shape shape, uint32_t n_blocks, uint32_t max_blocks)
{
	struct mrc *exact, *m;
	double n_exact;

	make_trace(shape, n_blocks);
	exact = run(1U << 18);
	m = run(max_blocks);
	n_exact = mrc_blocks(exact);
	assert_true(mrc_rate(exact) == 1);
	assert_true(mrc_rate(m) < 1);
	assert_true(mrc_rate(m) > 0.5 * max_blocks / n_exact);
	assert_true(fabs(mrc_blocks(m) - n_exact) < 0.15 * n_exact);
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		double n = (double)mrc_accesses(exact, k), off = 0;
		unsigned int steps = 200;

		assert_int_equal(mrc_accesses(m, k), mrc_accesses(exact, k));
		for (unsigned int i = 1; i <= steps; i++) {
			uint64_t size = (uint64_t)(n_exact * i / steps);

			off += fabs(mrc_misses(m, k, size) - mrc_misses(exact, k, size)) / n;
		}
		if (off / steps > mrc_error(m))
			fail_msg("shape %u kind %u: off by %f, said %f", shape, k, off / steps,
				 mrc_error(m));
	}
	mrc_free(m);
	mrc_free(exact);
}

static void test_sampled(void **state)
{
	(void)state;
	check_sampled(RANDOM, 20000, 1024);
	check_sampled(LOOP, 30000, 1024);
	check_sampled(HOT, 60000, 1024);
	check_sampled(MIXED, 40000, 2048);
	check_sampled(RANDOM, 50000, 8192);
}

static void test_empty(void **state)
{
	struct mrc *m;

	(void)state;
	assert_int_equal(mrc_new(1, &m), 0);
	assert_int_equal(mrc_accesses(m, MRC_READ), 0);
	assert_true(mrc_misses(m, MRC_READ, 0) == 0);
	assert_true(mrc_misses(m, MRC_READ, 100) == 0);
	assert_true(mrc_blocks(m) == 0);
	assert_null(mrc_free(m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
