// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-picture.c - daemon/ctl/picture.c: whatever the requests, sums over the columns are the report's own numbers,
 * and each cell holds what a list of all requests says belongs there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/ctl/picture.h"

#define SEC UINT64_C(1000000000)
#define N_REQUESTS 4000U
#define BASE (1790000000 * SEC)

static uint64_t seed;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static void test_axis(void **state)
{
	(void)state;
	for (uint64_t span = 1; span < 400ULL * 86400 * 365 * SEC / 10; span = span * 17 / 10 + 1)
		for (unsigned int i = 0; i < 5; i++) {
			uint64_t first = BASE + rnd(1000 * SEC);
			struct picture_axis a = picture_axis(first, first + span);

			assert_true(a.n >= 1 && a.n <= PICTURE_COLUMNS);
			assert_int_equal(a.first_ns % a.step_ns, 0);
			assert_true(a.first_ns <= first && first - a.first_ns < a.step_ns);
			assert_int_equal(picture_column(&a, first), 0);
			assert_int_equal(picture_column(&a, first + span), a.n - 1);
			assert_int_equal(picture_column(&a, UINT64_MAX), a.n - 1);
			assert_int_equal(picture_column(&a, 0), 0);
			/* Not coarser than it has to be. */
			if (span > PICTURE_COLUMNS * 1000)
				assert_true(a.n > PICTURE_COLUMNS / 4);
		}
	assert_int_equal(picture_axis(5, 0).n, 0);
	assert_int_equal(picture_axis(7, 5).n, 0);
	assert_int_equal(picture_axis(UINT64_MAX - 5, UINT64_MAX).n, 1);
	assert_true(picture_axis(1, UINT64_MAX).n <= PICTURE_COLUMNS);
}

static void test_heat_rows(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		uint64_t ns = i < 4096 ? i
				       : ((uint64_t)rnd(1U << 31) << 32 | rnd(1U << 31)) >> rnd(60);
		unsigned int row = picture_heat_row(ns);

		assert_true(row < PICTURE_HEAT_ROWS);
		assert_true(picture_heat_from(row) <= ns);
		if (row + 1 < PICTURE_HEAT_ROWS && ns >= 4)
			assert_true(ns < picture_heat_from(row + 1));
		/* Rows of one power of two are a bar of the report's histogram. */
		assert_int_equal(row / 4, ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0);
	}
	assert_int_equal(picture_heat_row(UINT64_MAX), PICTURE_HEAT_ROWS - 1);
}

struct world {
	struct report report;
	struct picture picture;
	struct iot_request *requests;
	size_t n;
};

static void make_request(struct iot_request *r, uint64_t last_ns, uint64_t sectors)
{
	static const uint8_t ops[] = {IOT_OP_READ,    IOT_OP_WRITE, IOT_OP_FLUSH,
				      IOT_OP_DISCARD, IOT_OP_READ,  IOT_OP_ZONE_APPEND};
	uint64_t latency = rnd(2) ? rnd(3 * SEC) : rnd(100000);

	*r = (struct iot_request){.op = ops[rnd(6)], .bytes = (uint32_t)rnd(1U << 20)};
	r->bytes_done = rnd(10) ? r->bytes : r->bytes / 2;
	r->complete_ns = 3 * SEC + rnd(last_ns - 3 * SEC);
	r->issue_ns = r->issue_last_ns = r->complete_ns - IOT_MIN(latency, r->complete_ns - 1);
	if (rnd(5))
		r->start_ns = r->issue_ns - IOT_MIN(rnd(1000000), r->issue_ns - 1);
	if (!rnd(20))
		r->issue_ns = r->issue_last_ns = 0;
	r->sector = r->op == IOT_OP_FLUSH ? IOT_SECTOR_NONE : rnd(sectors);
	if (!rnd(4)) {
		r->swap = iot_swap_of(r->op, 1);
		r->unswapped_bytes = r->swap && rnd(2) ? r->bytes / 4 : 0;
	}
}

/* n_devices disks; what is shifted to BASE. */
static void make_world(struct world *w, size_t n_devices, uint64_t span_ns, uint64_t sectors)
{
	static const uint8_t machine[16] = {1};
	struct picture_axis axis = picture_axis(BASE, BASE + span_ns);

	w->n = N_REQUESTS;
	w->requests = calloc(w->n, sizeof(*w->requests));
	assert_non_null(w->requests);
	for (size_t i = 0; i < w->n; i++) {
		struct report_device *d;
		char name[16];
		uint32_t dev = 1 + (uint32_t)rnd(n_devices);

		make_request(&w->requests[i], span_ns, sectors);
		w->requests[i].dev = dev;
		snprintf(name, sizeof(name), "sd%u", dev);
		assert_int_equal(report_device(&w->report, machine, dev, name, "h", &d), 0);
		assert_int_equal(report_add(d, &w->requests[i]), 0);
	}
	report_sort(&w->report);
	assert_int_equal(picture_init(&w->picture, &w->report, axis), 0);
	for (size_t i = 0; i < w->n; i++) {
		char name[16];
		const struct report_device *d;

		snprintf(name, sizeof(name), "sd%u", w->requests[i].dev);
		d = report_find_device(&w->report, machine, w->requests[i].dev, name, "h");
		assert_non_null(d);
		assert_int_equal(picture_add(&w->picture, (size_t)(d - w->report.devices),
					     &w->requests[i], BASE),
				 0);
	}
}

static void end_world(struct world *w)
{
	picture_done(&w->picture);
	report_done(&w->report);
	free(w->requests);
}

static const struct picture_device *picture_of(const struct world *w, uint32_t dev)
{
	for (size_t i = 0; i < w->report.n_devices; i++)
		if (w->report.devices[i].dev == dev)
			return &w->picture.devices[w->picture.slots[i]];
	return NULL;
}

static uint64_t total(const uint64_t *values)
{
	uint64_t n = 0;

	for (size_t c = 0; c < PICTURE_COLUMNS; c++)
		n += values[c];
	return n;
}

/* The report's cells of all devices that share a picture and are of one kind. */
static void add_cells(const struct world *w, size_t slot, enum picture_kind kind,
		      struct report_cell *sum)
{
	for (size_t i = 0; i < w->report.n_devices; i++)
		for (uint8_t op = 0; op < IOT_N_OPS && w->picture.slots[i] == slot; op++)
			for (unsigned int swap = 0; swap < REPORT_N_SWAP; swap++)
				if (w->report.devices[i].ops[op] &&
				    picture_kind_of(op, (uint8_t)swap) == kind)
					assert_int_equal(
						report_cell_merge(
							sum,
							&w->report.devices[i].ops[op]->swap[swap]),
						0);
}

static void check_sums(const struct world *w)
{
	for (size_t slot = 0; slot < w->picture.n_devices; slot++)
		for (unsigned int kind = 0; kind < PICTURE_N_KINDS; kind++) {
			_cleanup_(report_cell_done) struct report_cell sum = {0};
			const struct picture_device *d = &w->picture.devices[slot];

			add_cells(w, slot, kind, &sum);
			assert_int_equal(total(d->requests[kind]), sum.requests);
			assert_int_equal(total(d->bytes[kind]), sum.bytes_done);
			for (unsigned int bit = 0; bit < 64; bit++) {
				uint64_t n = 0;

				for (size_t c = 0; d->heat[kind] && c < w->picture.axis.n; c++)
					for (unsigned int i = 0; i < 4; i++)
						n += d->heat[kind]
							    [c * PICTURE_HEAT_ROWS + bit * 4 + i];
				assert_int_equal(n, hist_log2_count(&sum.device, bit));
			}
		}
}

static void check_maps(const struct world *w)
{
	uint64_t left[PICTURE_MAPS] = {0};
	size_t n_maps = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct iot_request *r = &w->requests[i];
		const struct picture_device *d = picture_of(w, r->dev);
		size_t column = picture_column(&w->picture.axis, r->complete_ns + BASE);
		uint64_t *cell, row = (r->sector >> d->map.shift) - d->map.first_row;

		if (!d->mapped || r->sector == IOT_SECTOR_NONE)
			continue;
		assert_true(row < PICTURE_MAP_ROWS);
		cell = &d->map.cells[picture_kind_of(r->op, r->swap)]
				    [column * PICTURE_MAP_ROWS + row];
		assert_true(*cell > 0);
		--*cell;
	}
	for (size_t slot = 0; slot < w->picture.n_devices; slot++) {
		const struct picture_device *d = &w->picture.devices[slot];

		n_maps += d->mapped;
		for (unsigned int k = 0; d->mapped && k < PICTURE_N_KINDS; k++)
			for (size_t i = 0;
			     d->map.cells[k] && i < w->picture.axis.n * PICTURE_MAP_ROWS; i++)
				left[n_maps - 1] += d->map.cells[k][i];
	}
	for (size_t i = 0; i < PICTURE_MAPS; i++)
		assert_int_equal(left[i], 0);
	assert_int_equal(n_maps, IOT_MIN(w->report.n_devices, (size_t)PICTURE_MAPS));
}

/* Of each column the time in it, request by request. */
static void check_depth(const struct world *w)
{
	const struct picture_axis *a = &w->picture.axis;
	static uint64_t device[PICTURE_DEVICES + 1][PICTURE_COLUMNS];
	static uint64_t queue[PICTURE_DEVICES + 1][PICTURE_COLUMNS];

	memset(device, 0, sizeof(device));
	memset(queue, 0, sizeof(queue));
	for (size_t i = 0; i < w->n; i++) {
		const struct iot_request *r = &w->requests[i];
		size_t slot = (size_t)(picture_of(w, r->dev) - w->picture.devices);

		for (size_t c = 0; r->issue_ns && c < a->n; c++) {
			uint64_t from = a->first_ns + c * a->step_ns;
			uint64_t to = from + a->step_ns;
			uint64_t x = IOT_MAX(from, BASE + r->issue_ns);
			uint64_t y = IOT_MIN(to, BASE + r->complete_ns);

			device[slot][c] += y > x ? y - x : 0;
			x = IOT_MAX(from, BASE + r->start_ns);
			y = IOT_MIN(to, BASE + r->issue_ns);
			queue[slot][c] += r->start_ns && y > x ? y - x : 0;
		}
	}
	for (size_t slot = 0; slot < w->picture.n_devices; slot++)
		for (size_t c = 0; c < a->n; c++) {
			assert_int_equal(w->picture.devices[slot].device_ns[c], device[slot][c]);
			assert_int_equal(w->picture.devices[slot].queue_ns[c], queue[slot][c]);
		}
}

static void test_against_the_report(void **state)
{
	static const struct {
		size_t devices;
		uint64_t span_ns, sectors;
	} worlds[] = {
		{1, 10 * SEC, 1},	    {2, 100 * SEC, 1000},     {3, 7 * SEC, 1ULL << 31},
		{15, 3600 * SEC, 1U << 20}, {40, 86400 * SEC, 50000}, {1, 4 * SEC, 1ULL << 60},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(worlds); i++) {
		struct world w = {0};

		make_world(&w, worlds[i].devices, worlds[i].span_ns, worlds[i].sectors);
		assert_int_equal(w.picture.outside, 0);
		assert_int_equal(w.picture.n_devices,
				 IOT_MIN(worlds[i].devices, (size_t)PICTURE_DEVICES + 1));
		check_sums(&w);
		check_depth(&w);
		check_maps(&w);
		end_world(&w);
	}
}

/* Addresses that grow, shrink, and leap: the window follows. */
static void test_map_follows(void **state)
{
	(void)state;
	for (unsigned int how = 0; how < 3; how++) {
		static const uint8_t machine[16] = {1};
		struct report_device *d;
		struct world w = {.n = 3000};

		w.requests = calloc(w.n, sizeof(*w.requests));
		assert_non_null(w.requests);
		assert_int_equal(report_device(&w.report, machine, 8, "sda", "h", &d), 0);
		assert_int_equal(
			picture_init(&w.picture, &w.report, picture_axis(BASE, BASE + 10 * SEC)),
			0);
		for (size_t i = 0; i < w.n; i++) {
			struct iot_request *r = &w.requests[i];

			*r = (struct iot_request){.dev = 8, .op = IOT_OP_READ};
			r->complete_ns = i * SEC / 300;
			r->sector = how == 0   ? 1000000 + i * 64
				    : how == 1 ? 10000000 - i * 64
					       : (i & 1 ? UINT64_MAX - 1 - i : i * 8);
			assert_int_equal(picture_add(&w.picture, 0, r, BASE), 0);
		}
		/* The rows are used: at least a quarter of them. */
		assert_true(how == 2 ||
			    w.picture.devices[0].map.high - w.picture.devices[0].map.low >=
				    PICTURE_MAP_ROWS / 4);
		check_maps(&w);
		end_world(&w);
	}
}

static void test_outside(void **state)
{
	static const uint8_t machine[16] = {1};
	struct iot_request r = {.op = IOT_OP_WRITE, .bytes_done = 7, .sector = IOT_SECTOR_NONE};
	struct report_device *d;
	struct world w = {0};

	(void)state;
	assert_int_equal(report_device(&w.report, machine, 8, "sda", "h", &d), 0);
	assert_int_equal(picture_init(&w.picture, &w.report, picture_axis(BASE, BASE + 10 * SEC)),
			 0);
	r.complete_ns = 1;
	assert_int_equal(picture_add(&w.picture, 0, &r, 0), 0);
	assert_int_equal(picture_add(&w.picture, 0, &r, BASE + 1000 * SEC), 0);
	assert_int_equal(picture_add(&w.picture, 0, &r, BASE), 0);
	assert_int_equal(w.picture.outside, 2);
	assert_int_equal(w.picture.devices[0].requests[PICTURE_WRITE][0], 2);
	assert_int_equal(total(w.picture.devices[0].bytes[PICTURE_WRITE]), 21);
	picture_add_loss(&w.picture, 0, BASE + 3 * SEC, 4);
	assert_int_equal(total(w.picture.devices[0].lost), 4);
	end_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_axis),
		cmocka_unit_test(test_heat_rows),
		cmocka_unit_test(test_against_the_report),
		cmocka_unit_test(test_map_follows),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
