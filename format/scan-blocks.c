// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan-blocks.c - the blocks of a segment for the merge: which there are, and their records.
 */
#include "format/scan-merge-def.h"

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

static void held_freep(struct held **h)
{
	*h = iot_held_free(*h);
}

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

/* Nothing between these times can pass. */
static bool filter_skips(const struct iot_filter *f, const struct iot_segment *s, uint64_t first_ns,
			 uint64_t last_ns)
{
	uint64_t from, to;

	if (!iot_scan_range(s, first_ns, last_ns, &from, &to))
		return false;
	return (f->since_ns && to < f->since_ns) || (f->until_ns && from > f->until_ns);
}

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
	if (!m->whole) {
		r = sort_rows(h->b, h->n, &h->rows);
		if (r < 0)
			return r;
		h->key = h->rows[0].ns + seg->key_offset;
	}
	r = iot_merge_push(m, h);
	if (r < 0)
		return r;
	h = NULL;
	return 0;
}

/* A file that retention deleted since the scan began is a hole in it, not its end; the verdict says so. */
static int fail_unless_gone(const struct merge_segment *seg, int r, const struct iot_error *why,
			    struct iot_error *err)
{
	if (r == 0 || iot_segment_gone(seg->s))
		return 0;
	return iot_error_set(err, r, "%s", why->text[0] ? why->text : strerror(-r));
}

int iot_merge_load(struct iot_merge *m, struct merge_segment *seg, uint64_t columns,
		   struct iot_error *err)
{
	struct iot_error why = {0};
	int r = decode_block(m, seg, columns, &why);

	if (r < 0)
		seg->next = seg->n_blocks;
	return fail_unless_gone(seg, r, &why, err);
}

static int cmp_block(const void *a, const void *b)
{
	const struct merge_block *x = a, *y = b;

	return x->first_ns != y->first_ns ? iot_cmp_u64(x->first_ns, y->first_ns)
					  : iot_cmp_u64(x->offset, y->offset);
}

/* The next block of records; m (may be NULL) is told of damage on the way. Positive IOT_READ_END. */
static int next_block(struct iot_merge *m, struct iot_segment *s, struct iot_walk *w,
		      struct iot_block_info *ret, struct iot_error *err)
{
	for (;;) {
		enum iot_gap gap;
		int r = iot_walk_next(s, w, ret, &gap, err);

		if (r < 0 || r == IOT_READ_END)
			return r;
		if (r == 0 && ret->kind == records_kind(s))
			return 0;
		if (r == IOT_READ_GAP && gap == IOT_GAP_DAMAGE && m)
			note_damage(m, s, ret->offset, "damaged bytes");
	}
}

static int walk_blocks(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	struct iot_block_info info;
	size_t cap = 0;
	struct iot_walk w;
	int r;

	iot_walk_init(seg->s, &w);
	while ((r = next_block(m, seg->s, &w, &info, err)) == 0) {
		if (filter_skips(m->filter, seg->s, info.first_ns, info.last_ns))
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
	if (r < 0)
		return r;
	if (seg->n_blocks > 1)
		qsort(seg->blocks, seg->n_blocks, sizeof(*seg->blocks), cmp_block);
	return 0;
}

int iot_merge_list(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	struct iot_error why = {0};
	int r = walk_blocks(m, seg, &why);

	if (r < 0)
		seg->n_blocks = 0;
	return fail_unless_gone(seg, r, &why, err);
}

int iot_merge_first_time(struct iot_merge *m, struct merge_segment *seg, struct iot_error *err)
{
	const struct iot_meta_footer *meta = iot_segment_meta(seg->s);
	uint64_t first = UINT64_MAX, last = 0;
	struct iot_block_info info;
	struct iot_walk w;
	int r;

	if (meta) {
		for (size_t i = 0; i < meta->n_index; i++) {
			if (meta->index[i].kind != records_kind(seg->s))
				continue;
			first = IOT_MIN(first, meta->index[i].first_ns);
			last = IOT_MAX(last, meta->index[i].last_ns);
		}
	} else {
		iot_walk_init(seg->s, &w);
		while ((r = next_block(NULL, seg->s, &w, &info, err)) == 0) {
			first = IOT_MIN(first, info.first_ns);
			last = IOT_MAX(last, info.last_ns);
		}
		if (r < 0)
			return r;
	}
	seg->skip = first == UINT64_MAX || filter_skips(m->filter, seg->s, first, last);
	seg->first_key = seg->skip ? 0 : first + seg->key_offset;
	return 0;
}
