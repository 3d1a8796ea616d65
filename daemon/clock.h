/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - the clocks of the collector: CLOCK_MONOTONIC is what bpf_ktime_get_ns() reads. */
#pragma once

#include <time.h>

#include "format/record.h"

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts = {};

	(void)clock_gettime(id, &ts); /* cannot fail for the three clocks used */
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* The three clocks as close together as user space can: the shortest of a few tries. */
static inline struct iot_clocks clock_anchors(void)
{
	struct iot_clocks best = {};
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t t0 = clock_now_ns();
		uint64_t realtime = clock_read_ns(CLOCK_REALTIME);
		uint64_t boottime = clock_read_ns(CLOCK_BOOTTIME);
		uint64_t t1 = clock_now_ns();

		if (t1 - t0 >= best_ns)
			continue;
		best_ns = t1 - t0;
		best = (struct iot_clocks){
			.monotonic_ns = t0 + (t1 - t0) / 2,
			.boottime_ns = boottime,
			.realtime_ns = realtime,
		};
	}
	return best;
}
