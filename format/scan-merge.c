// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan-merge.c - many blocks as one stream of records in order of time, in bounded memory.
 *
 * Blocks of a segment are only nearly in time order: a worker drains ring after ring, so that a
 * stretch of one ring's blocks may lie after later times of another's. Headers (or the index) tell
 * each block's first time without reading it, so the merge is exact: a block is decoded when the
 * next record to come out is not older than its first, and given back after its last record.
 * A segment's list of blocks is loaded when the merge reaches its first time and dropped at its end.
 *
 * The order within a capture is by CLOCK_MONOTONIC, exact. Captures (other boots, other hosts) are
 * put side by side by the wall clock of their first segment here; later steps of that clock do not
 * disturb the order inside a capture.
 */
#include "format/scan-merge-def.h"

/* Blocks held at once are bounded by their records: about 200 MB decoded. Real overlap is a few. */
#define MAX_HELD_RECORDS (1U << 20)
#define MANY_SEGMENTS 64 /* descriptors are given back between reads from here on */

/* ---- the heap of decoded blocks ---- */

static bool before(const struct held *a, const struct held *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	/* Equal times: file order, so that every run says the same. */
	return a->seg != b->seg ? a->seg < b->seg : a->tie < b->tie;
}

static void sift_down(struct iot_merge *m, size_t i)
{
	for (;;) {
		size_t min = i, l = 2 * i + 1, r = l + 1;
		struct held *t;

		if (l < m->n_heap && before(m->heap[l], m->heap[min]))
			min = l;
		if (r < m->n_heap && before(m->heap[r], m->heap[min]))
			min = r;
		if (min == i)
			return;
		t = m->heap[i];
		m->heap[i] = m->heap[min];
		m->heap[min] = t;
		i = min;
	}
}

int iot_merge_push(struct iot_merge *m, struct held *h)
{
	size_t i = m->n_heap;

	if (m->n_heap == m->heap_cap) {
		size_t cap = m->heap_cap ? m->heap_cap * 2 : 16;
		struct held **heap = reallocarray(m->heap, cap, sizeof(struct held *));

		if (!heap)
			return -ENOMEM;
		m->heap = heap;
		m->heap_cap = cap;
	}
	m->heap[m->n_heap++] = h;
	while (i > 0 && before(m->heap[i], m->heap[(i - 1) / 2])) {
		struct held *t = m->heap[i];

		m->heap[i] = m->heap[(i - 1) / 2];
		m->heap[(i - 1) / 2] = t;
		i = (i - 1) / 2;
	}
	m->n_held_records += h->n;
	h->seg->n_held++;
	return 0;
}

struct held *iot_held_free(struct held *h)
{
	if (!h)
		return NULL;
	iot_batch_free(h->b);
	free(h->rows);
	free(h);
	return NULL;
}

static int pool_put(struct iot_merge *m, struct iot_batch *b)
{
	if (m->n_pool == m->pool_cap) {
		size_t cap = m->pool_cap ? m->pool_cap * 2 : 16;
		struct iot_batch **pool = reallocarray(m->pool, cap, sizeof(struct iot_batch *));

		if (!pool)
			return -ENOMEM;
		m->pool = pool;
		m->pool_cap = cap;
	}
	m->pool[m->n_pool++] = b;
	return 0;
}

static void segment_done(struct iot_merge *m, struct merge_segment *seg)
{
	free(IOT_TAKE_PTR(seg->blocks));
	seg->n_blocks = seg->next = 0;
	if (m->n_segments >= MANY_SEGMENTS)
		iot_segment_park(seg->s);
}

/* The top's rows are all out. */
static void pop(struct iot_merge *m)
{
	struct held *h = m->heap[0];
	struct merge_segment *seg = h->seg;

	m->n_held_records -= h->n;
	m->heap[0] = m->heap[--m->n_heap];
	sift_down(m, 0);
	if (pool_put(m, h->b) == 0)
		h->b = NULL;
	iot_held_free(h);
	seg->n_held--;
	if (seg->n_held == 0 && seg->next == seg->n_blocks)
		segment_done(m, seg);
}

/* ---- what comes next ---- */

static uint64_t next_block_key(const struct merge_segment *seg)
{
	return seg->blocks[seg->next].first_ns + seg->key_offset;
}

static void update_load_key(struct iot_merge *m)
{
	m->load_pending = false;
	m->load_key = UINT64_MAX;
	if (m->n_started < m->n_segments) {
		m->load_pending = true;
		m->load_key = m->segments[m->by_time[m->n_started]].first_key;
	}
	for (size_t i = 0; i < m->n_active; i++) {
		const struct merge_segment *seg = &m->segments[m->active[i]];

		m->load_pending = true;
		m->load_key = IOT_MIN(m->load_key, next_block_key(seg));
	}
}

/* Starts the next segment or loads the next block, whichever is due first. */
static int load_next(struct iot_merge *m, uint64_t columns, struct iot_error *err)
{
	size_t best = SIZE_MAX;
	int r;

	if (m->n_started < m->n_segments &&
	    m->segments[m->by_time[m->n_started]].first_key == m->load_key) {
		size_t i = m->by_time[m->n_started++];

		if (!m->segments[i].skip) {
			r = iot_merge_list(m, &m->segments[i], err);
			if (r < 0)
				return r;
			if (m->segments[i].n_blocks > 0)
				m->active[m->n_active++] = i;
			else
				segment_done(m, &m->segments[i]);
		}
		update_load_key(m);
		return 0;
	}
	for (size_t i = 0; i < m->n_active; i++)
		if (best == SIZE_MAX || next_block_key(&m->segments[m->active[i]]) <
						next_block_key(&m->segments[m->active[best]]))
			best = i;
	if (best != SIZE_MAX) {
		struct merge_segment *seg = &m->segments[m->active[best]];

		r = iot_merge_load(m, seg, columns, err);
		if (seg->next == seg->n_blocks) {
			m->active[best] = m->active[--m->n_active];
			if (seg->n_held == 0)
				segment_done(m, seg);
		}
		if (r < 0)
			return r;
	}
	update_load_key(m);
	return 0;
}

/* The row that was given out last belongs to the caller until the next call. */
static void step(struct iot_merge *m)
{
	struct held *h;

	if (!m->taken)
		return;
	m->taken = false;
	h = m->heap[0];
	if (++h->i == h->n) {
		pop(m);
	} else {
		h->key = h->rows[h->i].ns + h->seg->key_offset;
		sift_down(m, 0);
	}
}

int iot_merge_next(struct iot_merge *m, uint64_t columns, struct iot_row *ret,
		   struct iot_error *err)
{
	struct held *h;

	step(m);
	while (m->load_pending && (m->n_heap == 0 || m->load_key <= m->heap[0]->key)) {
		int r;

		if (m->n_heap > 0 && m->n_held_records >= MAX_HELD_RECORDS) {
			/* Only forged headers overlap like that; nothing is lost but the order. */
			iot_verdict_reason(m->notes, IOT_VERDICT_COMPLETE,
					   "too many blocks overlap in time: order is approximate");
			break;
		}
		r = load_next(m, columns, err);
		if (r < 0)
			return r == -ENOMEM ? iot_error_set(err, r, "out of memory") : r;
	}
	if (m->n_heap == 0)
		return IOT_READ_END;
	h = m->heap[0];
	*ret = (struct iot_row){.segment = h->seg->s, .batch = h->b, .i = h->rows[h->i].i};
	m->taken = true;
	return 0;
}

int iot_merge_next_block(struct iot_merge *m, uint64_t columns, struct iot_row *ret,
			 struct iot_error *err)
{
	m->whole = true;
	if (m->taken)
		pop(m);
	m->taken = false;
	while (m->n_heap == 0 && m->load_pending) {
		int r = load_next(m, columns, err);

		if (r < 0)
			return r == -ENOMEM ? iot_error_set(err, r, "out of memory") : r;
	}
	if (m->n_heap == 0)
		return IOT_READ_END;
	*ret = (struct iot_row){.segment = m->heap[0]->seg->s, .batch = m->heap[0]->b};
	m->taken = true;
	return 0;
}

/* ---- set up ---- */

static int cmp_start(const void *a, const void *b, void *userdata)
{
	const struct iot_merge *m = userdata;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int c = iot_cmp_u64(m->segments[x].first_key, m->segments[y].first_key);

	return c ? c : (x > y) - (x < y);
}

int iot_merge_new(struct iot_segment **segments, size_t n, const struct iot_filter *f,
		  struct iot_verdict *notes, struct iot_merge **ret, struct iot_error *err)
{
	_cleanup_(iot_merge_freep) struct iot_merge *m = calloc(1, sizeof(*m));
	const struct iot_segment *base = NULL;

	if (!m)
		return iot_error_set(err, -ENOMEM, "out of memory");
	m->filter = f;
	m->notes = notes;
	m->segments = calloc(n + 1, sizeof(*m->segments));
	m->by_time = calloc(n + 1, sizeof(*m->by_time));
	m->active = calloc(n + 1, sizeof(*m->active));
	if (!m->segments || !m->by_time || !m->active)
		return iot_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct merge_segment *seg = &m->segments[i];
		int r;

		seg->s = segments[i];
		if (!base || !iot_same_capture(base, seg->s))
			base = seg->s;
		seg->key_offset = iot_segment_realtime_ns(base, 0);
		r = iot_merge_first_time(m, seg, err);
		if (r < 0)
			return r;
		if (n >= MANY_SEGMENTS)
			iot_segment_park(seg->s);
		m->by_time[i] = i;
	}
	m->n_segments = n;
	if (n > 1)
		qsort_r(m->by_time, n, sizeof(*m->by_time), cmp_start, m);
	update_load_key(m);
	*ret = IOT_TAKE_PTR(m);
	return 0;
}

struct iot_merge *iot_merge_free(struct iot_merge *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; m->segments && i < m->n_segments; i++)
		free(m->segments[i].blocks);
	for (size_t i = 0; i < m->n_heap; i++)
		iot_held_free(m->heap[i]);
	for (size_t i = 0; i < m->n_pool; i++)
		iot_batch_free(m->pool[i]);
	free(m->segments);
	free(m->by_time);
	free(m->active);
	free(m->heap);
	free(m->pool);
	free(m);
	return NULL;
}
