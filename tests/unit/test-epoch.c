// SPDX-License-Identifier: BSD-2-Clause
/* Books of an epoch: windows that add up exactly, rows that balance, and noticing when they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/epoch.h"

#define N_CPUS 3U
#define P EV_PROBE_BLOCK_COMPLETE

static struct ev_cell cells[N_CPUS * EV_N_BLOCK_PROBES];
static uint64_t clock_ns;

static uint64_t tick(void)
{
	return clock_ns += 10;
}

static struct ev_cell *cell(uint32_t cpu, uint32_t probe)
{
	return &cells[cpu * EPOCH_N_PROBES + probe];
}

static struct epoch *fresh(void)
{
	struct epoch *e = NULL;

	memset(cells, 0, sizeof(cells));
	clock_ns = 1000;
	assert_int_equal(epoch_new(IOT_STREAM_BLOCK, 7, N_CPUS, 1000, &e), 0);
	assert_int_equal(e->slot, 1);
	return e;
}

static uint64_t sum_windows(const struct epoch *e, uint16_t kind, uint16_t probe, uint32_t cpu)
{
	uint64_t n = 0;

	for (size_t i = 0; i < e->n_windows; i++)
		if (e->windows[i].kind == kind && e->windows[i].probe == probe &&
		    e->windows[i].cpu == cpu)
			n += e->windows[i].n;
	return n;
}

static void test_window_edges(void **state)
{
	struct epoch *e = fresh();

	(void)state;
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0); /* begins 1010 */
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0); /* begins 1020 */
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0); /* begins 1030 */
	assert_int_equal(e->n_windows, 0);
	cell(1, P)->unattributed = 5;
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0); /* begins 1040, ends 1050 */
	assert_int_equal(e->n_windows, 1);
	/* A program may have read its clock before the previous sample and counted after it. */
	assert_int_equal(e->windows[0].t0_ns, 1020);
	assert_int_equal(e->windows[0].t1_ns, 1050);
	assert_int_equal(e->windows[0].n, 5);
	assert_int_equal(e->windows[0].cpu, 1);
	assert_int_equal(e->windows[0].probe, P);
	assert_int_equal(e->windows[0].kind, IOT_WINDOW_UNATTRIBUTED);
	/* Goes on: the same window grows. */
	cell(1, P)->unattributed = 6;
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	assert_int_equal(e->n_windows, 1);
	assert_int_equal(e->windows[0].n, 6);
	/* Calm for a while, then again: another window, so that the calm is not doubted. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	cell(1, P)->unattributed = 7;
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	assert_int_equal(e->n_windows, 2);
	assert_true(e->windows[1].t0_ns > e->windows[0].t1_ns);
	epoch_free(e);
}

static void test_first_window_reaches_the_flip(void **state)
{
	struct epoch *e = fresh();

	(void)state;
	clock_ns = 5000;
	cell(0, P)->unattributed = 1;
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	assert_int_equal(e->windows[0].t0_ns, 1000);
	epoch_free(e);
}

/* Whatever the pattern, and however many windows: sums equal the counters to the last unit. */
static void test_windows_sum_exactly(void **state)
{
	struct epoch *e = fresh();
	uint64_t seed = 42;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		if (seed >> 61 == 0) {
			uint32_t cpu = (uint32_t)(seed >> 33) % N_CPUS;
			uint32_t probe = 1 + (uint32_t)(seed >> 40) % 9;

			cell(cpu, probe)->unattributed += 1 + (seed >> 50) % 7;
		}
		assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	}
	assert_true(e->n_windows <= EPOCH_MAX_WINDOWS + (size_t)N_CPUS * EPOCH_N_PROBES);
	assert_true(e->n_windows > 500);
	for (uint32_t cpu = 0; cpu < N_CPUS; cpu++)
		for (uint32_t p = 0; p < EPOCH_N_PROBES; p++)
			assert_int_equal(sum_windows(e, IOT_WINDOW_UNATTRIBUTED, (uint16_t)p, cpu),
					 cell(cpu, p)->unattributed);
	epoch_free(e);
}

static void test_missed(void **state)
{
	struct epoch *e = fresh();
	struct epoch_misses m = {.begin_ns = 1000};
	uint64_t now[EPOCH_N_PROBES] = {};

	(void)state;
	now[P] = 3;
	now[EV_PROBE_BLOCK_ISSUE] = IOT_COUNT_UNKNOWN;
	assert_int_equal(epoch_sample_missed(e, &m, now, 1100, 1110), 0);
	assert_int_equal(e->n_windows, 1);
	assert_int_equal(e->windows[0].t0_ns, 1000);
	assert_int_equal(e->windows[0].t1_ns, 1110);
	assert_int_equal(e->windows[0].n, 3);
	assert_true(e->missed[EV_PROBE_BLOCK_ISSUE] == IOT_COUNT_UNKNOWN);
	now[P] = 5;
	assert_int_equal(epoch_sample_missed(e, &m, now, 1200, 1210), 0);
	assert_int_equal(e->missed[P], 5);
	assert_int_equal(sum_windows(e, IOT_WINDOW_MISSED, P, UINT32_MAX), 5);
	/* A counter that goes backwards cannot be measured; it is never taken as 0. */
	now[P] = 4;
	assert_int_equal(epoch_sample_missed(e, &m, now, 1300, 1310), 0);
	assert_true(e->missed[P] == IOT_COUNT_UNKNOWN);
	now[P] = 9;
	assert_int_equal(epoch_sample_missed(e, &m, now, 1400, 1410), 0);
	assert_true(e->missed[P] == IOT_COUNT_UNKNOWN);
	epoch_free(e);
}

static const struct iot_probe table[] = {
	{.id = EV_PROBE_BLOCK_ISSUE, .state = IOT_ATTACH_ATTACHED},
	{.id = P, .state = IOT_ATTACH_ATTACHED},
	{.id = EV_PROBE_BLOCK_GETRQ, .state = IOT_ATTACH_ABSENT},
};

static struct iot_footer footer_of(const struct epoch *e)
{
	struct iot_footer f = {
		.losses = e->losses,
		.n_losses = e->n_losses,
		.windows = e->windows,
		.n_windows = e->n_windows,
	};

	assert_int_equal(epoch_books(e, cells, table, IOT_ARRAY_SIZE(table), &f.books, &f.n_books),
			 0);
	return f;
}

static void test_books_balance(void **state)
{
	struct epoch *e = fresh();
	struct iot_loss l = {.id = 4, .n = 1, .probe = P, .cause = IOT_LOSS_DECODE_FAILED};
	struct iot_footer f;

	(void)state;
	*cell(0, P) =
		(struct ev_cell){.seen = 10, .not_selected = 2, .emitted = 8, .suppressed = 1};
	*cell(2, P) = (struct ev_cell){
		.seen = 7, .emitted = 4, .reserve_failed = 3, .filed = 0, .unattributed = 3};
	*cell(2, EV_PROBE_BLOCK_ISSUE) = (struct ev_cell){.seen = 6, .folded = 6};
	for (int i = 0; i < 8; i++)
		epoch_count_written(e, 0, P);
	for (int i = 0; i < 4; i++)
		epoch_count_written(e, 2, P);
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	f = footer_of(e);
	/* (ISSUE, 2) (ISSUE, user) (P, 0) (P, 2) (P, user), sorted; no row for what is absent */
	assert_int_equal(f.n_books, 5);
	assert_int_equal(f.books[0].probe, EV_PROBE_BLOCK_ISSUE);
	assert_int_equal(f.books[1].cpu, UINT32_MAX);
	assert_int_equal(f.books[2].written, 8);
	assert_int_equal(f.books[2].suppressed, 1);
	assert_int_equal(f.books[3].cpu, 2);
	assert_int_equal(f.books[4].cpu, UINT32_MAX);
	assert_int_equal(epoch_unbalanced(&f, 12), 0);
	assert_int_equal(epoch_unbalanced(&f, 11), 1); /* the file disagrees */
	free(f.books);

	/* A record that could not be decoded, one that could not be written. */
	cell(0, P)->seen++;
	cell(0, P)->emitted++;
	epoch_file_loss(e, 0, &l, false);
	l.cause = IOT_LOSS_OUTPUT_FAILED;
	epoch_file_loss(e, 2, &l, true);
	f = footer_of(e);
	assert_int_equal(f.n_losses, 2);
	assert_int_equal(f.books[2].decode_failed, 1);
	assert_int_equal(f.books[3].output_failed, 1);
	assert_int_equal(f.books[3].written, 3);
	assert_int_equal(epoch_unbalanced(&f, 11), 0);
	/* The ledger missing an entry, a window missing: each is noticed. */
	f.n_losses--;
	assert_int_equal(epoch_unbalanced(&f, 11), 1);
	f.n_losses++;
	f.n_windows = 0;
	assert_int_equal(epoch_unbalanced(&f, 11), 1);
	f.n_windows = e->n_windows;
	f.books[2].seen++;
	assert_int_equal(epoch_unbalanced(&f, 11), 1);
	free(f.books);
	epoch_free(e);
}

/* A disk without room for the ledger: the owners go, the numbers stay, and the equations hold. */
static void test_fold(void **state)
{
	struct epoch *e = fresh();
	struct iot_loss user = {
		.n = 1, .probe = P, .cause = IOT_LOSS_OUTPUT_FAILED, .first_ns = 50, .last_ns = 60};
	struct iot_loss *losses = calloc(5, sizeof(*losses));
	struct iot_footer f;

	(void)state;
	assert_non_null(losses);
	*cell(0, P) = (struct ev_cell){.seen = 10, .emitted = 8, .reserve_failed = 2, .filed = 2};
	*cell(2, P) = (struct ev_cell){
		.seen = 7, .emitted = 4, .reserve_failed = 3, .filed = 1, .unattributed = 2};
	for (int i = 0; i < 6; i++)
		epoch_count_written(e, 0, P);
	for (int i = 0; i < 4; i++)
		epoch_count_written(e, 2, P);
	assert_int_equal(epoch_sample_cells(e, cells, tick), 0);
	epoch_file_loss(e, 0, &user, false);
	user.last_ns = 90;
	epoch_file_loss(e, 0, &user, false);
	f = footer_of(e);
	memcpy(losses, e->losses, 2 * sizeof(*losses));
	losses[2] = (struct iot_loss){
		.n = 2, .probe = P, .cause = IOT_LOSS_RESERVE_FAILED, .first_ns = 7, .last_ns = 9};
	losses[3] = (struct iot_loss){
		.n = 1, .probe = P, .cause = IOT_LOSS_UNSEEN, .first_ns = 20, .last_ns = 11};
	/* A field is missing of a record that exists: no loss of a record. */
	losses[4] = (struct iot_loss){.n = 4, .probe = P, .cause = IOT_LOSS_ENRICH_FAILED};
	f.losses = losses;
	f.n_losses = 4;
	assert_int_equal(epoch_unbalanced(&f, 10), 0);
	f.n_losses = 5;
	e->windows = NULL; /* f's now */
	e->n_windows = 0;
	assert_int_equal(epoch_fold_losses(&f), 0);
	assert_int_equal(f.n_losses, 0);
	assert_int_equal(epoch_unbalanced(&f, 10), 0);
	/* The sample's own, then these two. */
	assert_int_equal(f.n_windows, 3);
	assert_int_equal(f.windows[1].kind, IOT_WINDOW_UNATTRIBUTED);
	assert_int_equal(f.windows[1].n, 3);
	assert_int_equal(f.windows[1].t0_ns, 7);
	assert_int_equal(f.windows[1].t1_ns, 20);
	assert_int_equal(f.windows[2].kind, IOT_WINDOW_OUTPUT);
	assert_int_equal(f.windows[2].n, 2);
	assert_int_equal(f.windows[2].t0_ns, 50);
	assert_int_equal(f.windows[2].t1_ns, 90);
	free(f.books);
	free(f.windows);
	epoch_free(e);
}

/* A record that no row can own must leave doubt, whatever else adds up. */
static void test_orphans_unbalance(void **state)
{
	struct epoch *e = fresh();
	struct iot_loss l = {.id = 4, .n = 1, .probe = P, .cause = IOT_LOSS_DECODE_FAILED};
	struct iot_footer f;

	(void)state;
	*cell(0, P) = (struct ev_cell){.seen = 1, .emitted = 1};
	epoch_file_loss(e, 99, &l, false);
	f = footer_of(e);
	assert_true(epoch_unbalanced(&f, 0) > 0);
	free(f.books);
	epoch_free(e);

	e = fresh();
	l = (struct iot_loss){.n = 1, .probe = 4000, .cause = IOT_LOSS_DECODE_FAILED};
	epoch_file_loss(e, 0, &l, false);
	f = footer_of(e);
	assert_int_equal(f.n_windows, 1);
	assert_true(epoch_unbalanced(&f, 0) > 0);
	free(f.books);
	epoch_free(e);
}

static void test_totals(void **state)
{
	struct epoch_totals t;
	struct epoch *e = fresh();

	(void)state;
	*cell(0, P) = (struct ev_cell){.seen = 10, .emitted = 8, .filed = 1, .unattributed = 1};
	*cell(2, 1) = (struct ev_cell){.seen = 5, .filed = 2, .identity_full = 3};
	epoch_sum_cells(cells, (size_t)N_CPUS * EPOCH_N_PROBES, &t);
	assert_int_equal(t.seen, 15);
	assert_int_equal(t.emitted, 8);
	assert_int_equal(t.filed, 3);
	assert_int_equal(t.unattributed, 1);
	assert_int_equal(t.identity_full, 3);
	assert_int_equal(epoch_filed(cells, (size_t)N_CPUS * EPOCH_N_PROBES), 3);
	epoch_free(e);
}

static void test_id_set(void **state)
{
	struct id_set s = {};
	uint32_t added = 0;

	(void)state;
	assert_false(id_set_add(&s, 0));
	for (int round = 0; round < 2; round++)
		for (uint64_t k = 1; k <= 10000; k++)
			added += id_set_add(&s, k << 20);
	assert_int_equal(added, 10000);
	assert_int_equal(s.n, 10000);
	for (uint64_t k = 1; k <= 200000; k++)
		(void)id_set_add(&s, k);
	assert_int_equal(s.n, ID_SET_MAX);
	id_set_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_edges),
		cmocka_unit_test(test_first_window_reaches_the_flip),
		cmocka_unit_test(test_windows_sum_exactly),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_books_balance),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_orphans_unbalance),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_id_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
