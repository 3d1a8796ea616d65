/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe-advice.h - what ring the I/O of this machine needs, for `iotraced --probe-check`: how much there is now, told by
 * the kernel's own counters, and for how long a stall a ring would bear that. It measures what happens while it looks: who
 * wants advice on the busiest hour asks in it.
 */
#pragma once

#include "format/base.h"

/* The stall that a ring should bear: what a disk takes to come back from an error is longer, a busy one's queue is not. */
#define ADVICE_STALL_S 5U
/* Looking takes as long as attaching does, and at least so long. */
#define ADVICE_LEAST_NS 1000000000ULL

/*
 * Pure: requests completed so far in a text as /proc/diskstats, of the disks that counted() takes: reads, writes,
 * discards and flushes, as far as the kernel has these fields (discards since 4.18, flushes since 5.5).
 */
uint64_t advice_requests(const char *text, bool (*counted)(const char *disk));
/* Pure: the smallest ring (a power of two from 4KiB on) for so much in ADVICE_STALL_S; UINT64_MAX: no ring that may be asked for. */
uint64_t advice_ring_bytes(uint64_t records_per_s, size_t record_bytes);

struct advice {
	uint64_t requests; /* completed before */
	uint64_t at_ns;	   /* CLOCK_MONOTONIC; 0: nothing can be said */
};
void advice_begin(struct advice *a);
/* Waits until ADVICE_LEAST_NS are over, and says on stdout what came meanwhile and what ring it needs. */
void advice_end(const struct advice *a, uint64_t ring_bytes, size_t record_bytes);
