// SPDX-License-Identifier: BSD-2-Clause
/* report-totals.c - see report-totals.h. */
#include "daemon/ctl/report-totals.h"

#define SEC UINT64_C(1000000000)

/* Each a multiple of the one before, so that rows merge whole; behind the last they double. */
static const uint64_t steps_s[] = {1,	 5,    10,    30,    60,    300,  600,
				   1800, 3600, 10800, 21600, 43200, 86400};

static uint64_t next_step(uint64_t step_ns)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(steps_s); i++)
		if (steps_s[i] * SEC > step_ns)
			return steps_s[i] * SEC;
	return step_ns * 2;
}

static void add(struct report_bytes *to, const struct report_bytes *b)
{
	to->write += b->write;
	to->swap_out += b->swap_out;
	to->read += b->read;
	to->swap_in += b->swap_in;
}

/* Longer rows. They become fewer, or as many, so merging forwards in place never overtakes itself. */
static void widen(struct report_totals *t)
{
	uint64_t step_ns = next_step(t->step_ns), k = step_ns / t->step_ns;
	uint64_t first = t->first / k;
	size_t n = (size_t)((t->first + t->n - 1) / k - first) + 1;

	for (size_t i = 0; i < t->n; i++) {
		struct report_bytes b = t->rows[i];

		t->rows[i] = (struct report_bytes){0};
		add(&t->rows[(t->first + i) / k - first], &b);
	}
	t->step_ns = step_ns;
	t->first = first;
	t->n = n;
}

/* The row that realtime_ns lies in, made if it is not there yet. */
static struct report_bytes *row_of(struct report_totals *t, uint64_t realtime_ns)
{
	uint64_t at, first, last;
	size_t shift;

	if (!t->step_ns) {
		t->step_ns = steps_s[0] * SEC;
		t->first = realtime_ns / t->step_ns;
		t->n = 1;
	}
	for (;;) {
		at = realtime_ns / t->step_ns;
		first = IOT_MIN(at, t->first);
		last = IOT_MAX(at, t->first + t->n - 1);
		if (last - first < REPORT_TIME_ROWS)
			break;
		widen(t);
	}
	shift = (size_t)(t->first - first);
	if (shift) {
		memmove(t->rows + shift, t->rows, t->n * sizeof(*t->rows));
		memset(t->rows, 0, shift * sizeof(*t->rows));
	}
	t->first = first;
	t->n = (size_t)(last - first) + 1;
	return &t->rows[at - first];
}

void report_totals_add(struct report_totals *t, uint64_t realtime_ns, uint8_t op, uint8_t swap,
		       uint64_t bytes)
{
	struct report_bytes b = {0};

	if (op == IOT_OP_READ) {
		b.read = bytes;
		b.swap_in = swap == IOT_SWAP_IN ? bytes : 0;
	} else if (op == IOT_OP_WRITE || op == IOT_OP_ZONE_APPEND) {
		b.write = bytes;
		b.swap_out = swap == IOT_SWAP_OUT ? bytes : 0;
	} else {
		return;
	}
	if (!bytes)
		return;
	add(&t->all, &b);
	add(row_of(t, realtime_ns), &b);
}

void report_totals_row(const struct report_totals *t, uint64_t realtime_ns, uint64_t *ret_begin_ns,
		       uint64_t *ret_end_ns)
{
	uint64_t step_ns = t->step_ns ? t->step_ns : steps_s[0] * SEC;
	uint64_t begin = realtime_ns - realtime_ns % step_ns;

	/* Rows that widen later do so by whole rows. */
	*ret_begin_ns = begin;
	*ret_end_ns = begin > UINT64_MAX - step_ns ? UINT64_MAX : begin + step_ns;
}
