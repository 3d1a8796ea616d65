/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake-ring.h - the producer's half of a BPF ring buffer in plain memory: the same layout as the
 * kernel's (data mapped twice in a row, position words, record headers), so that the consumer under
 * test cannot tell. For unit tests and the drain benchmark.
 */
#pragma once

#include <linux/bpf.h>
#include <sys/mman.h>

#include "format/base.h"

struct fake_ring {
	uint8_t *data;
	uint64_t size;
	unsigned long producer;
	unsigned long consumer;
};

static inline int fake_ring_new(struct fake_ring *f, uint64_t size)
{
	int fd = memfd_create("fake-ring", MFD_CLOEXEC);
	uint8_t *area;

	if (fd < 0)
		return -errno;
	*f = (struct fake_ring){.size = size};
	area = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ftruncate(fd, (off_t)size) < 0 || area == MAP_FAILED ||
	    mmap(area, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(area + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	close(fd);
	f->data = area;
	return 0;
}

static inline void fake_ring_done(struct fake_ring *f)
{
	if (f->data)
		munmap(f->data, 2 * f->size);
	f->data = NULL;
}

static inline uint32_t *fake_ring_word(struct fake_ring *f, uint64_t pos)
{
	return (uint32_t *)(void *)(f->data + (pos & (f->size - 1)));
}

/* As bpf_ringbuf_reserve(): NULL when there is no room. The record is BUSY until submitted. */
static inline void *fake_ring_reserve(struct fake_ring *f, uint32_t len)
{
	uint64_t total = ((uint64_t)len + 8 + 7) & ~7ULL;
	uint64_t used = f->producer - __atomic_load_n(&f->consumer, __ATOMIC_ACQUIRE);
	uint32_t *word = fake_ring_word(f, f->producer);

	if (used + total > f->size)
		return NULL;
	word[0] = len | BPF_RINGBUF_BUSY_BIT;
	word[1] = 0;
	__atomic_store_n(&f->producer, f->producer + total, __ATOMIC_RELEASE);
	return word + 2;
}

static inline void fake_ring_finish(void *record, bool discard)
{
	uint32_t *word = (uint32_t *)record - 2;
	uint32_t len = word[0] & ~BPF_RINGBUF_BUSY_BIT;

	if (discard)
		len |= BPF_RINGBUF_DISCARD_BIT;
	__atomic_store_n(word, len, __ATOMIC_RELEASE);
}

static inline bool fake_ring_put(struct fake_ring *f, const void *data, uint32_t len)
{
	void *p = fake_ring_reserve(f, len);

	if (!p)
		return false;
	memcpy(p, data, len);
	fake_ring_finish(p, false);
	return true;
}
