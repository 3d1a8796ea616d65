/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - events per second over the last few seconds, from a counter sampled about once a second.
 *
 * Blocks are written at most once a second, so that one interval says little; RATE_SAMPLES of them
 * say what a person means by "now".
 */
#pragma once

#include "format/base.h"

#define RATE_SAMPLES 6U

struct rate {
	uint64_t ns[RATE_SAMPLES];
	uint64_t count[RATE_SAMPLES];
	unsigned int n; /* samples ever taken */
};

static inline void rate_add(struct rate *r, uint64_t now_ns, uint64_t count)
{
	r->ns[r->n % RATE_SAMPLES] = now_ns;
	r->count[r->n % RATE_SAMPLES] = count;
	r->n++;
}

/* 0 with fewer than two samples, or if the counter went back. */
static inline uint64_t rate_per_s(const struct rate *r)
{
	unsigned int have = IOT_MIN(r->n, RATE_SAMPLES), newest, oldest;
	uint64_t ns, count;

	if (have < 2)
		return 0;
	newest = (r->n - 1) % RATE_SAMPLES;
	oldest = (r->n - have) % RATE_SAMPLES;
	if (r->ns[newest] <= r->ns[oldest] || r->count[newest] < r->count[oldest])
		return 0;
	ns = r->ns[newest] - r->ns[oldest];
	count = r->count[newest] - r->count[oldest];
	return (uint64_t)((double)count * 1e9 / (double)ns + 0.5);
}
