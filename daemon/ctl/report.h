/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - counts and latencies per device, operation and kind of swap. Pure: requests and
 * losses in, numbers out; memory grows with the variety of the input, never with its length.
 *
 * Latencies go into log-linear histograms of 128 steps per power of two: a percentile is the
 * middle of its step, at most 1/256 (0.4%) off, exact below 128 ns; minimum, maximum, count and
 * sum are exact. The percentile p of n values is the one of rank ceil(p * n).
 */
#pragma once

#include "format/record.h"

#define HIST_STEP_BITS 7U
#define HIST_STEPS (1U << HIST_STEP_BITS)
#define HIST_OCTAVES (64U - HIST_STEP_BITS + 1U)

struct hist {
	uint64_t n;
	uint64_t min;
	uint64_t max;
	double sum;
	uint64_t *octave[HIST_OCTAVES]; /* [0]: 0..127; [k]: 2^(k+6) .. 2^(k+7)-1 */
};
static inline unsigned int hist_octave(uint64_t v)
{
	return v < HIST_STEPS ? 0 : 64U - (unsigned int)__builtin_clzll(v) - HIST_STEP_BITS;
}
static inline unsigned int hist_step(uint64_t v, unsigned int octave)
{
	return (unsigned int)(octave ? (v >> (octave - 1)) - HIST_STEPS : v);
}
int hist_need_octave(struct hist *h, unsigned int octave) IOT_MUST_CHECK;
/* Inline: twice per request. */
static inline int hist_add(struct hist *h, uint64_t v)
{
	unsigned int octave = hist_octave(v);

	if (!h->octave[octave]) {
		int r = hist_need_octave(h, octave);

		if (r < 0)
			return r;
	}
	h->octave[octave][hist_step(v, octave)]++;
	h->min = h->n ? IOT_MIN(h->min, v) : v;
	h->max = IOT_MAX(h->max, v);
	h->sum += (double)v;
	h->n++;
	return 0;
}
int hist_merge(struct hist *into, const struct hist *from) IOT_MUST_CHECK;
/* p in 1/10000: 9990 is p99.9. h->n > 0. */
uint64_t hist_percentile(const struct hist *h, unsigned int p);
/* Values in [2^bit, 2^(bit+1)); bit 0 also counts 0. */
uint64_t hist_log2_count(const struct hist *h, unsigned int bit);
void hist_done(struct hist *h);

enum report_swap {
	REPORT_NOT_SWAP = 0,
	REPORT_SWAP_OUT = 1,
	REPORT_SWAP_IN = 2,
	REPORT_N_SWAP,
};

struct report_cell {
	uint64_t requests;
	uint64_t bytes;	     /* asked */
	uint64_t bytes_done; /* as the kernel's own disk statistics count */
	uint64_t merges;
	uint64_t requeues;
	uint64_t errors;
	uint64_t lost; /* by the ledger; none of them is in requests and what follows it */
	uint64_t lost_bytes;
	struct hist queue;
	struct hist device;
};

struct report_op {
	struct report_cell swap[REPORT_N_SWAP];
};

struct report_device {
	uint8_t machine_id[16];
	uint32_t dev; /* 0 with name "(others)": devices beyond REPORT_MAX_DEVICES */
	char name[80];
	char host[65];
	struct report_op *ops[IOT_N_OPS]; /* NULL: none seen */
};

#define REPORT_MAX_DEVICES 4096U

struct report {
	struct report_device *devices;
	size_t n_devices;
	size_t n_allocated;
};

void report_done(struct report *rp);
/* Finds or adds. The pointer is valid until the next call. */
int report_device(struct report *rp, const uint8_t machine_id[16], uint32_t dev, const char *name,
		  const char *host, struct report_device **ret) IOT_MUST_CHECK;
/* NULL: there is none of it, not even in the row of others. */
const struct report_device *report_find_device(const struct report *rp,
					       const uint8_t machine_id[16], uint32_t dev,
					       const char *name, const char *host);
/* Finds or adds; the pointer is good until report_done(). */
int report_cell(struct report_device *d, unsigned int op, unsigned int swap,
		struct report_cell **ret) IOT_MUST_CHECK;
int report_add(struct report_device *d, const struct iot_request *r) IOT_MUST_CHECK;
int report_add_loss(struct report_device *d, const struct iot_loss *loss) IOT_MUST_CHECK;
/* Adds from's counts and histograms. */
int report_cell_merge(struct report_cell *into, const struct report_cell *from) IOT_MUST_CHECK;
void report_cell_done(struct report_cell *cell);
/* By host, then name with numbers in numeric order, then number. */
void report_sort(struct report *rp);

/* Time that was recorded, as a union of intervals per machine. */
struct report_span {
	uint8_t machine_id[16];
	uint64_t first_ns;
	uint64_t last_ns;
	bool requests;	  /* were recorded in it */
	const char *host; /* borrowed from the segment */
};
/* Sorts spans; total length of the union of those with requests, for one machine. */
uint64_t report_recorded_ns(struct report_span *spans, size_t n, const uint8_t machine_id[16],
			    const char *host);
