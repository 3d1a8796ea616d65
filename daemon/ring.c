// SPDX-License-Identifier: BSD-2-Clause
/*
 * ring.c - see ring.h. What is written here is the consumer's half of kernel/bpf/ringbuf.c: each
 * record has an 8-byte header whose first word is the length with two flags, and takes length +
 * header rounded up to 8.
 */
#include <assert.h>

#include <linux/bpf.h>

#include "daemon/ring.h"

void ring_init(struct ring *r, const uint8_t *data, uint64_t size, unsigned long *consumer,
	       const unsigned long *producer)
{
	assert(size && (size & (size - 1)) == 0);
	*r = (struct ring){
		.data = data,
		.size = size,
		.mask = size - 1,
		.consumer = consumer,
		.producer = producer,
	};
	r->published = __atomic_load_n(consumer, __ATOMIC_ACQUIRE);
	r->pos = r->published;
	r->limit = r->published;
}

int ring_peek(struct ring *r, const void **ret_data, uint32_t *ret_len)
{
	for (;;) {
		const uint8_t *p = r->data + (r->pos & r->mask);
		uint64_t room = r->limit - r->pos;
		uint32_t word, len;

		if (room == 0)
			return RING_EMPTY;
		if (room < RING_HDR_BYTES || room > r->size)
			return -EBADMSG;
		/* Pairs with the xchg in bpf_ringbuf_commit(): not BUSY means the record is whole. */
		word = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
		if (word & BPF_RINGBUF_BUSY_BIT)
			return RING_BUSY;
		len = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		if ((((uint64_t)len + RING_HDR_BYTES + 7) & ~7ULL) > room)
			return -EBADMSG;
		if (word & BPF_RINGBUF_DISCARD_BIT) {
			r->discarded++;
			ring_advance(r, len);
			continue;
		}
		*ret_data = p + RING_HDR_BYTES;
		*ret_len = len;
		return 0;
	}
}

void ring_publish(struct ring *r, uint64_t pos)
{
	assert(pos <= r->pos);
	if (pos <= r->published)
		return;
	r->published = pos;
	__atomic_store_n(r->consumer, (unsigned long)pos, __ATOMIC_RELEASE);
}
