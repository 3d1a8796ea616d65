/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - our own consumer over one mmap'ed BPF ring buffer.
 *
 * The ring is the only queue between the kernel and the file: a record stays in it until the block
 * that holds it has been handed to write(2). libbpf's consumer publishes its position right after
 * each callback, so it cannot serve; the memory layout is a documented kernel ABI
 * (Documentation/bpf/ringbuf.rst, kernel 5.8). Three positions, monotonic byte counts:
 *
 *	published <= pos <= limit
 *
 * `published` is what the kernel sees in the consumer page: everything before it may be overwritten.
 * `pos` is where the next record is read. `limit` is the producer position at the last
 * ring_refresh(); records between pos and limit are visible, though the first may still be BUSY.
 * One thread uses a ring; memory order is all that is shared with the kernel: the producer page and
 * record headers are read with acquire, the consumer page is written with release.
 */
#pragma once

#include "format/base.h"

#define RING_HDR_BYTES 8U

struct ring {
	const uint8_t *data; /* mapped twice in a row, so that a record never wraps */
	uint64_t size;
	uint64_t mask;
	unsigned long *consumer;
	const unsigned long *producer;
	uint64_t pos;
	uint64_t limit;
	uint64_t published;
	uint64_t discarded; /* records the programs reserved and gave back */
};

/* size: power of two. Starts where the kernel's consumer position stands. */
void ring_init(struct ring *r, const uint8_t *data, uint64_t size, unsigned long *consumer,
	       const unsigned long *producer);

/* Reads the producer position; returns true if records became visible or still are. */
static inline bool ring_refresh(struct ring *r)
{
	r->limit = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	return r->limit != r->pos;
}

/*
 * The record at pos without taking it; discarded ones before it are passed over. The pointer stays
 * valid until the position behind it is published. Positive: RING_EMPTY nothing up to limit,
 * RING_BUSY the program that reserved it has not submitted yet. -EBADMSG: the header cannot be
 * true (record longer than what was produced), nothing behind pos can be read any more.
 */
#define RING_EMPTY 1
#define RING_BUSY 2
int ring_peek(struct ring *r, const void **ret_data, uint32_t *ret_len) IOT_MUST_CHECK;

/* Takes the record of the given length that ring_peek() showed. */
static inline void ring_advance(struct ring *r, uint32_t len)
{
	r->pos += ((uint64_t)len + RING_HDR_BYTES + 7) & ~7ULL;
}

/* Gives the space before pos back to the kernel. Never regresses; pos <= r->pos. */
void ring_publish(struct ring *r, uint64_t pos);

/* Bytes the kernel counts as used: read but not published ones included. Refresh first. */
static inline uint64_t ring_used(const struct ring *r)
{
	return r->limit - r->published;
}
