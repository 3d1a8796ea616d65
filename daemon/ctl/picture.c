// SPDX-License-Identifier: BSD-2-Clause
/* picture.c - see picture.h. */
#include "daemon/ctl/picture.h"
#include "format/render.h"

const char *picture_kind_name(enum picture_kind kind)
{
	static const char *const names[PICTURE_N_KINDS] = {
		[PICTURE_READ] = "read",	 [PICTURE_WRITE] = "write",
		[PICTURE_DISCARD] = "discard",	 [PICTURE_OTHER] = "other",
		[PICTURE_SWAP_OUT] = "swap_out", [PICTURE_SWAP_IN] = "swap_in",
	};

	return names[kind];
}

enum picture_kind picture_kind_of(uint8_t op, uint8_t swap)
{
	if (swap == IOT_SWAP_OUT)
		return PICTURE_SWAP_OUT;
	if (swap == IOT_SWAP_IN)
		return PICTURE_SWAP_IN;
	switch (op) {
	case IOT_OP_READ:
		return PICTURE_READ;
	case IOT_OP_WRITE:
	case IOT_OP_ZONE_APPEND:
		return PICTURE_WRITE;
	case IOT_OP_DISCARD:
	case IOT_OP_SECURE_ERASE:
	case IOT_OP_WRITE_ZEROES:
		return PICTURE_DISCARD;
	default:
		return PICTURE_OTHER;
	}
}

/* ---- time -------------------------------------------------------------------------------------- */

static uint64_t columns_of(uint64_t first_ns, uint64_t last_ns, uint64_t step_ns)
{
	return last_ns / step_ns - first_ns / step_ns + 1;
}

/* Steps that people count in: 1, 2, 5 and so on up to seconds, then those of clocks. */
static uint64_t step_for(uint64_t first_ns, uint64_t last_ns)
{
	static const uint32_t seconds[] = {1,	 2,    5,     10,    15,   20,	 30,
					   60,	 120,  300,   600,   900,  1200, 1800,
					   3600, 7200, 10800, 21600, 43200};
	static const uint64_t sec = 1000000000;
	uint64_t step = 1000;

	for (unsigned int i = 0; step < sec; i++) {
		if (columns_of(first_ns, last_ns, step) <= PICTURE_COLUMNS)
			return step;
		step = i % 3 == 1 ? step / 2 * 5 : step * 2;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(seconds); i++)
		if (columns_of(first_ns, last_ns, seconds[i] * sec) <= PICTURE_COLUMNS)
			return seconds[i] * sec;
	for (step = 86400 * sec; columns_of(first_ns, last_ns, step) > PICTURE_COLUMNS;)
		step *= 2;
	return step;
}

struct picture_axis picture_axis(uint64_t first_ns, uint64_t last_ns)
{
	struct picture_axis a = {0};

	if (!last_ns || last_ns < first_ns)
		return a;
	a.step_ns = step_for(first_ns, last_ns);
	a.first_ns = first_ns / a.step_ns * a.step_ns;
	a.n = (size_t)columns_of(first_ns, last_ns, a.step_ns);
	return a;
}

size_t picture_column(const struct picture_axis *a, uint64_t realtime_ns)
{
	uint64_t at;

	if (realtime_ns < a->first_ns)
		return 0;
	at = (realtime_ns - a->first_ns) / a->step_ns;
	return (size_t)IOT_MIN(at, a->n - 1);
}

/* Adds the time from .. to to the columns that it passes. */
static void add_time(const struct picture_axis *a, uint64_t *columns, uint64_t from, uint64_t to)
{
	uint64_t end = a->first_ns + a->n * a->step_ns;

	from = IOT_MAX(from, a->first_ns);
	to = IOT_MIN(to, end);
	while (from < to) {
		size_t at = picture_column(a, from);
		uint64_t next = IOT_MIN(to, a->first_ns + (at + 1) * a->step_ns);

		columns[at] += next - from;
		from = next;
	}
}

/* ---- latencies --------------------------------------------------------------------------------- */

unsigned int picture_heat_row(uint64_t ns)
{
	unsigned int bit = ns ? 63U - (unsigned int)__builtin_clzll(ns) : 0;

	return bit * 4 + (bit >= 2 ? (unsigned int)(ns >> (bit - 2)) & 3U : 0);
}

uint64_t picture_heat_from(unsigned int row)
{
	uint64_t power = 1ULL << row / 4;

	if (row < 4)
		return 0;
	return power + power / 4 * (row % 4);
}

static int add_cell(uint64_t **grid, size_t n_columns, unsigned int n_rows, size_t column,
		    unsigned int row)
{
	if (!*grid)
		*grid = calloc(n_columns * n_rows, sizeof(**grid));
	if (!*grid)
		return -ENOMEM;
	(*grid)[column * n_rows + row]++;
	return 0;
}

/* ---- addresses --------------------------------------------------------------------------------- */

/* Rows of twice the length and so on, and the window moved, so that row (of the present length) has a place. */
static void fit_map(struct picture_map *m, uint64_t row, size_t n_columns)
{
	uint64_t low = IOT_MIN(row, m->first_row + m->low);
	uint64_t high = IOT_MAX(row, m->first_row + m->high);
	unsigned int k = 0, used;
	uint64_t first, spare;

	while ((high >> k) - (low >> k) >= PICTURE_MAP_ROWS)
		k++;
	used = (unsigned int)((high >> k) - (low >> k)) + 1;
	/* Room on both sides: what grows downwards would have to move for each row. */
	spare = (PICTURE_MAP_ROWS - used) / 2;
	first = (low >> k) - IOT_MIN(low >> k, spare);
	for (unsigned int kind = 0; kind < PICTURE_N_KINDS; kind++)
		for (size_t c = 0; m->cells[kind] && c < n_columns; c++) {
			uint64_t *cells = m->cells[kind] + c * PICTURE_MAP_ROWS;
			uint64_t moved[PICTURE_MAP_ROWS] = {0};

			for (unsigned int i = m->low; i <= m->high; i++)
				if (cells[i])
					moved[((m->first_row + i) >> k) - first] += cells[i];
			memcpy(cells, moved, sizeof(moved));
		}
	m->low = (unsigned int)(((m->first_row + m->low) >> k) - first);
	m->high = (unsigned int)(((m->first_row + m->high) >> k) - first);
	m->first_row = first;
	m->shift += k;
}

static int add_address(struct picture_map *m, const struct picture_axis *a, size_t column,
		       enum picture_kind kind, uint64_t sector)
{
	uint64_t row = sector >> m->shift;

	if (!m->any) {
		m->any = true;
		m->shift = 3; /* a page: nothing is asked for in smaller parts */
		row = sector >> m->shift;
		m->first_row = row;
		m->low = m->high = 0;
	}
	if (row < m->first_row || row - m->first_row >= PICTURE_MAP_ROWS) {
		fit_map(m, row, a->n);
		row = sector >> m->shift;
	}
	row -= m->first_row;
	m->low = IOT_MIN(m->low, (unsigned int)row);
	m->high = IOT_MAX(m->high, (unsigned int)row);
	return add_cell(&m->cells[kind], a->n, PICTURE_MAP_ROWS, column, (unsigned int)row);
}

/* ---- devices ----------------------------------------------------------------------------------- */

struct weight {
	uint64_t bytes;
	uint64_t requests;
	size_t device;
};

static int most_first(const void *a, const void *b)
{
	const struct weight *x = a, *y = b;

	if (x->bytes != y->bytes)
		return iot_cmp_u64(y->bytes, x->bytes);
	if (x->requests != y->requests)
		return iot_cmp_u64(y->requests, x->requests);
	return iot_cmp_u64(x->device, y->device);
}

static struct weight weigh(const struct report_device *d, size_t device)
{
	struct weight w = {.device = device};

	for (unsigned int op = 0; op < IOT_N_OPS; op++)
		for (unsigned int k = 0; d->ops[op] && k < REPORT_N_SWAP; k++) {
			w.bytes += d->ops[op]->swap[k].bytes_done;
			w.requests += d->ops[op]->swap[k].requests;
		}
	return w;
}

int picture_init(struct picture *p, const struct report *rp, struct picture_axis axis)
{
	_cleanup_free_ struct weight *weights = calloc(rp->n_devices + 1, sizeof(*weights));
	size_t own = IOT_MIN(rp->n_devices, PICTURE_DEVICES);

	p->axis = axis;
	p->n_devices = own + (rp->n_devices > own);
	p->n_slots = rp->n_devices;
	p->slots = calloc(rp->n_devices + 1, sizeof(*p->slots));
	p->devices = calloc(p->n_devices + 1, sizeof(*p->devices));
	if (!weights || !p->slots || !p->devices)
		return -ENOMEM;
	for (size_t i = 0; i < rp->n_devices; i++) {
		weights[i] = weigh(&rp->devices[i], i);
		p->slots[i] = (uint32_t)own;
	}
	qsort(weights, rp->n_devices, sizeof(*weights), most_first);
	for (size_t i = 0; i < own; i++) {
		p->slots[weights[i].device] = (uint32_t)i;
		p->devices[i].device = weights[i].device;
		p->devices[i].mapped = i < PICTURE_MAPS;
	}
	if (p->n_devices > own)
		p->devices[own].device = SIZE_MAX;
	return 0;
}

void picture_done(struct picture *p)
{
	for (size_t i = 0; i < p->n_devices && p->devices; i++)
		for (unsigned int kind = 0; kind < PICTURE_N_KINDS; kind++) {
			free(p->devices[i].heat[kind]);
			free(p->devices[i].map.cells[kind]);
		}
	free(p->devices);
	free(p->slots);
	*p = (struct picture){0};
}

static void add_bytes(struct picture_device *d, size_t column, enum picture_kind kind,
		      const struct iot_request *r)
{
	uint64_t swapped = iot_swapped(r->swap, r->bytes_done, r->unswapped_bytes);

	if (r->swap == IOT_SWAP_NONE)
		d->bytes[kind][column] += r->bytes_done;
	else
		d->bytes[kind][column] += swapped;
	/* What the kernel merged with swap. */
	if (r->swap != IOT_SWAP_NONE && r->bytes_done > swapped)
		d->bytes[picture_kind_of(r->op, IOT_SWAP_NONE)][column] += r->bytes_done - swapped;
}

int picture_add(struct picture *p, size_t device, const struct iot_request *r, uint64_t shift_ns)
{
	struct picture_device *d = &p->devices[p->slots[device]];
	enum picture_kind kind = picture_kind_of(r->op, r->swap);
	uint64_t at_ns = r->complete_ns + shift_ns;
	size_t column = picture_column(&p->axis, at_ns);
	uint64_t ns, issue_ns;
	int error;

	p->outside += at_ns < p->axis.first_ns ||
		      at_ns - p->axis.first_ns >= p->axis.n * p->axis.step_ns;
	d->requests[kind][column]++;
	add_bytes(d, column, kind, r);
	if (iot_device_latency(r, &ns)) {
		error = add_cell(&d->heat[kind], p->axis.n, PICTURE_HEAT_ROWS, column,
				 picture_heat_row(ns));
		if (error < 0)
			return error;
		issue_ns = at_ns - ns;
		add_time(&p->axis, d->device_ns, issue_ns, at_ns);
		if (iot_queue_latency(r, &ns))
			add_time(&p->axis, d->queue_ns, issue_ns - ns, issue_ns);
	}
	if (d->mapped && r->sector != IOT_SECTOR_NONE)
		return add_address(&d->map, &p->axis, column, kind, r->sector);
	return 0;
}

void picture_add_loss(struct picture *p, size_t device, uint64_t realtime_ns, uint64_t n)
{
	p->devices[p->slots[device]].lost[picture_column(&p->axis, realtime_ns)] += n;
}
