/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report-totals.h - the bytes that were read and written, with swap and without, in all and over time.
 * Pure: requests and losses in, numbers out, in bounded memory.
 *
 * Counted is data: READ, WRITE and ZONE_APPEND, the bytes that were done, of records and of the ledger
 * alike, so that the sums are those of the kernel also where records were lost. Time goes into at most
 * REPORT_TIME_ROWS rows of equal length; the length is the first of a fixed list that suffices, whatever
 * the order of what comes in, and every row begins at a multiple of it.
 */
#pragma once

#include "format/record.h"

#define REPORT_TIME_ROWS 32U

struct report_bytes {
	uint64_t write; /* all, swap-out included */
	uint64_t swap_out;
	uint64_t read;
	uint64_t swap_in;
};

struct report_totals {
	struct report_bytes all;
	uint64_t step_ns; /* length of a row; 0 = nothing yet */
	uint64_t first;	  /* row 0 begins at first * step_ns, CLOCK_REALTIME */
	size_t n;
	struct report_bytes rows[REPORT_TIME_ROWS];
};

/* bytes = 0 or op of another kind: nothing is added. */
void report_totals_add(struct report_totals *t, uint64_t realtime_ns, uint8_t op, uint8_t swap,
		       uint64_t bytes);
/* [begin, end) of the row that realtime_ns lies in or would: sums of that time can be added as one. */
void report_totals_row(const struct report_totals *t, uint64_t realtime_ns, uint64_t *ret_begin_ns,
		       uint64_t *ret_end_ns);
/* Any byte of swap. */
static inline bool report_totals_swap(const struct report_totals *t)
{
	return t->all.swap_out || t->all.swap_in;
}
