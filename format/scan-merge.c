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
#include "format/batch-def.h"
#include "format/books.h"
#include "format/scan-internal.h"

/* Blocks held at once are bounded by their records: about 200 MB decoded. Real overlap is a few. */
#define MAX_HELD_RECORDS (1U << 20)
#define MANY_SEGMENTS 64 /* descriptors are given back between reads from here on */

struct merge_block {
	uint64_t offset;
	uint64_t first_ns;
	uint32_t count;
};

struct merge_segment {
	struct iot_segment *s;
	uint64_t key_offset; /* monotonic time + this = merge key */
	uint64_t first_key;  /* not above the key of any record */
	struct merge_block *blocks;
	size_t n_blocks;
	size_t next;   /* block to load */
	size_t n_held; /* its blocks in the heap */
	bool skip;
};

struct row {
	uint64_t ns;
	uint32_t i; /* in the batch */
};

/* A decoded block on its way out. */
struct held {
	struct merge_segment *seg;
	struct iot_batch *b;
	struct row *rows; /* in order of completion */
	uint32_t i;
	uint32_t n;
	uint64_t key; /* of row i */
	uint64_t tie; /* its block's place in the file */
};

struct iot_merge {
	struct merge_segment *segments;
	size_t n_segments;
	size_t *by_time;  /* segments by first_key */
	size_t n_started; /* of by_time */
	size_t *active;
	size_t n_active;
	struct held **heap;
	size_t n_heap;
	size_t heap_cap;
	struct iot_batch **pool;
	size_t n_pool;
	size_t pool_cap;
	uint64_t n_held_records;
	uint64_t load_key; /* something has to be loaded before a record of this key comes out */
	bool load_pending;
	bool taken; /* the top row was given out */
	const struct iot_filter *filter;
	struct iot_verdict *notes;
};

static void note_damage(struct iot_merge *m, struct iot_segment *s, uint64_t offset,
			const char *what)
{
	iot_segment_note_unread(s);
	iot_verdict_reason(m->notes, IOT_VERDICT_CORRUPT, "segment %llu: %s at offset %llu",
			   (unsigned long long)iot_segment_info(s)->seq, what,
			   (unsigned long long)offset);
}

static unsigned int records_kind(const struct iot_segment *s)
{
	return iot_stream_block_kind(iot_segment_info(s)->stream);
}

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

static int push(struct iot_merge *m, struct held *h)
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

static struct held *held_free(struct held *h)
{
	if (!h)
		return NULL;
	iot_batch_free(h->b);
	free(h->rows);
	free(h);
	return NULL;
}

static void held_freep(struct held **h)
{
	*h = held_free(*h);
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
	held_free(h);
	seg->n_held--;
	if (seg->n_held == 0 && seg->next == seg->n_blocks)
		segment_done(m, seg);
}

/* ---- loading ---- */

static int cmp_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->ns != y->ns ? iot_cmp_u64(x->ns, y->ns) : (x->i > y->i) - (x->i < y->i);
}

/* The block's rows in order of completion, which they usually are. */
static int sort_rows(const struct iot_batch *b, uint32_t n, struct row **ret)
{
	struct row *rows = malloc(n * sizeof(*rows));
	bool sorted = true;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		rows[i] = (struct row){.ns = iot_batch_ns(b, i), .i = i};
		sorted = sorted && (i == 0 || rows[i - 1].ns <= rows[i].ns);
	}
	if (!sorted)
		qsort(rows, n, sizeof(*rows), cmp_row);
	*ret = rows;
	return 0;
}

static bool filter_skips(const struct iot_filter *f, const struct iot_segment *s, uint64_t first_ns,
			 uint64_t last_ns)
{
	if (f->since_ns && iot_segment_realtime_ns(s, last_ns) < f->since_ns)
		return true;
	return f->until_ns && iot_segment_realtime_ns(s, first_ns) > f->until_ns;
}

/* Decodes one block into the heap. A damaged one is noted, and passed over. */
static int decode_block(struct iot_merge *m, struct merge_segment *seg, uint64_t columns,
			struct iot_error *err)
{
	const struct merge_block *mb = &seg->blocks[seg->next++];
	_cleanup_(held_freep) struct held *h = NULL;
	struct iot_block_info info;
	int r;

	r = iot_segment_block_at(seg->s, mb->offset, &info, err);
	if (r == -EBADMSG || (r == 0 && info.kind != records_kind(seg->s))) {
		note_damage(m, seg->s, mb->offset, "damaged block");
		return 0;
	}
	if (r < 0)
		return r;
	if (m->filter->id && (m->filter->id < info.first_id || m->filter->id > info.last_id))
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->seg = seg;
	h->n = info.count;
	h->tie = mb->offset;
	if (m->n_pool > 0)
		h->b = m->pool[--m->n_pool];
	else if ((r = iot_batch_new(info.count, &h->b)) < 0)
		return r;
	r = iot_segment_read_block(seg->s, &info, columns, h->b, NULL);
	if (r == -EBADMSG) {
		note_damage(m, seg->s, mb->offset, "damaged block");
		return 0;
	}
	if (r < 0)
		return iot_error_set(err, r, "%s: offset %llu: %s", iot_segment_path(seg->s),
				     (unsigned long long)mb->offset, strerror(-r));
	r = sort_rows(h->b, h->n, &h->rows);
	if (r < 0)
		return r;
	h->key = h->rows[0].ns + seg->key_offset;
	r = push(m, h);
	if (r < 0)
		return r;
	h = NULL;
	return 0;
}

/* A file that retention deleted since the scan began is a hole in it, not its end. */
static bool gone(struct iot_merge *m, const struct iot_segment *s, int code)
{
	if (code != -ENOENT && code != -ESTALE)
		return false;
	iot_verdict_reason(m->notes, IOT_VERDICT_UNKNOWN,
			   "segment %llu: the file was deleted while it was read",
			   (unsigned long long)iot_segment_info(s)->seq);
	return true;
}

static int load_block(struct iot_merge *m, struct merge_segment *seg, uint64_t columns,
		      struct iot_error *err)
{
	struct iot_error why = {0};
	int r = decode_block(m, seg, columns, &why);

	if (r < 0 && gone(m, seg->s, r)) {
		seg->next = seg->n_blocks;
		return 0;
	}
	return r < 0 ? iot_error_set(err, r, "%s", why.text[0] ? why.text : strerror(-r)) : 0;
}

static int cmp_block(const void *a, const void *b)
{
	const struct merge_block *x = a, *y = b;

	return x->first_ns != y->first_ns ? iot_cmp_u64(x->first_ns, y->first_ns)
					  : iot_cmp_u64(x->offset, y->offset);
}

/* Lists the blocks of requests that the filter does not exclude, by their first time. */
static int walk_blocks(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	size_t cap = 0;
	struct iot_walk w;

	iot_walk_init(seg->s, &w);
	for (;;) {
		struct iot_block_info info;
		enum iot_gap gap;
		int r = iot_walk_next(seg->s, &w, &info, &gap, err);

		if (r < 0)
			return r;
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP) {
			if (gap == IOT_GAP_DAMAGE)
				note_damage(m, seg->s, info.offset, "damaged bytes");
			continue;
		}
		if (info.kind != records_kind(seg->s) ||
		    filter_skips(m->filter, seg->s, info.first_ns, info.last_ns))
			continue;
		if (seg->n_blocks == cap) {
			struct merge_block *blocks;

			cap = cap ? cap * 2 : 64;
			blocks = reallocarray(seg->blocks, cap, sizeof(*blocks));
			if (!blocks)
				return -ENOMEM;
			seg->blocks = blocks;
		}
		seg->blocks[seg->n_blocks++] = (struct merge_block){
			.offset = info.offset,
			.first_ns = info.first_ns,
			.count = info.count,
		};
	}
	if (seg->n_blocks > 1)
		qsort(seg->blocks, seg->n_blocks, sizeof(*seg->blocks), cmp_block);
	return 0;
}

static int list_blocks(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	struct iot_error why = {0};
	int r = walk_blocks(m, seg, &why);

	if (r < 0 && gone(m, seg->s, r)) {
		seg->n_blocks = 0;
		return 0;
	}
	return r < 0 ? iot_error_set(err, r, "%s", why.text[0] ? why.text : strerror(-r)) : 0;
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
			r = list_blocks(m, &m->segments[i], err);
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

		r = load_block(m, seg, columns, err);
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

/* ---- set up ---- */

/* The smallest first time of a segment's requests; false if it has none. */
static int first_time(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	const struct iot_meta_footer *meta = iot_segment_meta(seg->s);
	uint64_t first = UINT64_MAX, last = 0;
	struct iot_walk w;

	if (meta) {
		for (size_t i = 0; i < meta->n_index; i++) {
			if (meta->index[i].kind != records_kind(seg->s))
				continue;
			first = IOT_MIN(first, meta->index[i].first_ns);
			last = IOT_MAX(last, meta->index[i].last_ns);
		}
	} else {
		iot_walk_init(seg->s, &w);
		for (;;) {
			struct iot_block_info info;
			enum iot_gap gap;
			int r = iot_walk_next(seg->s, &w, &info, &gap, err);

			if (r < 0)
				return r;
			if (r == IOT_READ_END)
				break;
			if (r == IOT_READ_GAP || info.kind != records_kind(seg->s))
				continue;
			first = IOT_MIN(first, info.first_ns);
			last = IOT_MAX(last, info.last_ns);
		}
	}
	seg->skip = first == UINT64_MAX || filter_skips(m->filter, seg->s, first, last);
	seg->first_key = seg->skip ? 0 : first + seg->key_offset;
	return 0;
}

static int cmp_start(const void *a, const void *b, void *userdata)
{
	const struct iot_merge *m = userdata;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int c = iot_cmp_u64(m->segments[x].first_key, m->segments[y].first_key);

	return c ? c : (x > y) - (x < y);
}

static bool same_capture(const struct iot_segment *a, const struct iot_segment *b)
{
	return memcmp(iot_segment_info(a)->capture_id, iot_segment_info(b)->capture_id, 16) == 0;
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
		if (!base || !same_capture(base, seg->s))
			base = seg->s;
		seg->key_offset = iot_segment_realtime_ns(base, 0);
		r = first_time(m, seg, err);
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
		held_free(m->heap[i]);
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
