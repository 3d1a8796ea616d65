// SPDX-License-Identifier: BSD-2-Clause
/*
 * reader-walk.c - from block to block, over whatever damage lies between.
 *
 * In a sealed file the footer's index says where each block must be and what its header's hash is:
 * a header that differs is a gap of known place, size, count and time. In a torn file blocks
 * follow each other from the file header on; where none can be read, the next whole one is searched:
 * magic, header checksum, data inside the file and data checksum must all hold, and its number must
 * be higher than those before. Searching hashes a bounded number of bytes, so that a forged file
 * full of headers that claim large data costs time in proportion to its size, not to its square.
 */
#include "format/reader-priv.h"

#define SEARCH_CHUNK (64U * 1024)

static const uint8_t block_magic[4] = {IOT_MAGIC_BLOCK & 0xff, IOT_MAGIC_BLOCK >> 8 & 0xff,
				       IOT_MAGIC_BLOCK >> 16 & 0xff, IOT_MAGIC_BLOCK >> 24};

static const uint8_t footer_magic[4] = {IOT_MAGIC_FOOTER & 0xff, IOT_MAGIC_FOOTER >> 8 & 0xff,
					IOT_MAGIC_FOOTER >> 16 & 0xff, IOT_MAGIC_FOOTER >> 24};

void iot_walk_init(const struct iot_segment *s, struct iot_walk *w)
{
	*w = (struct iot_walk){
		.pos = s->data_start,
		.search_budget = s->size > UINT64_MAX / 8 ? UINT64_MAX : s->size * 4 + (64U << 20),
	};
}

/*
 * The block header at pos. -EBADMSG: none, or the block does not lie inside the file. *ret_unfinished
 * (if so) tells the file just ends too early for it.
 */
static int header_at(struct iot_segment *s, uint64_t pos, struct iot_block_info *ret,
		     bool *ret_unfinished, struct iot_error *err)
{
	uint8_t buf[IOT_LIMIT_BLOCK_HEADER_BYTES];
	size_t size = IOT_MIN(s->data_end - pos, sizeof(buf));
	uint32_t frame;
	int r;

	*ret_unfinished = false;
	r = iot_segment_pread(s, pos, buf, size, err);
	if (r < 0)
		return r;
	r = iot_block_header_decode(buf, size, ret);
	if (r == 0 && ret->size <= s->data_end - pos) {
		ret->offset = pos;
		return 0;
	}
	if (r == 0)
		*ret_unfinished = true;
	else if (size < 8)
		*ret_unfinished = memcmp(buf, block_magic, IOT_MIN(size, 4U)) == 0;
	else if (iot_meta_frame_size(buf, IOT_MAGIC_BLOCK, IOT_LIMIT_BLOCK_HEADER_BYTES, &frame) ==
		 0)
		*ret_unfinished = frame > size;
	return -EBADMSG;
}

/* A whole footer frame, or the beginning of one, ends an unsealed file without being damage. */
static int footer_at(struct iot_segment *s, uint64_t pos, bool *ret, struct iot_error *err)
{
	struct iot_meta_footer meta;
	uint64_t rest = s->data_end - pos;
	uint8_t prefix[8];
	uint32_t frame;
	int r;

	*ret = false;
	r = iot_segment_pread(s, pos, prefix, IOT_MIN(rest, sizeof(prefix)), err);
	if (r < 0)
		return r;
	if (rest < sizeof(prefix)) {
		*ret = memcmp(prefix, footer_magic, IOT_MIN(rest, sizeof(footer_magic))) == 0;
		return 0;
	}
	if (iot_meta_frame_size(prefix, IOT_MAGIC_FOOTER, IOT_LIMIT_FOOTER_BYTES, &frame) < 0)
		return 0;
	if (frame > rest) {
		*ret = true;
		return 0;
	}
	if (rest - frame >= IOT_TRAILER_BYTES)
		return 0; /* there is room for a trailer, and it is not one */
	r = iot_segment_load(s, pos, frame, err);
	if (r < 0)
		return r;
	r = iot_meta_footer_decode(s->buf, frame, &meta, NULL, NULL);
	if (r == -ENOMEM)
		return iot_error_set(err, r, "%s: out of memory", s->path);
	if (r == 0) {
		iot_meta_footer_done(&meta);
		*ret = true;
	}
	return 0;
}

/* After a power cut a file's tail may read as zeros: its size was durable, its data was not. */
static int zeros_from(struct iot_segment *s, uint64_t pos, bool *ret, struct iot_error *err)
{
	uint8_t buf[4096];

	while (pos < s->data_end) {
		size_t n = IOT_MIN(s->data_end - pos, sizeof(buf));
		int r = iot_segment_pread(s, pos, buf, n, err);

		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			if (buf[i]) {
				*ret = false;
				return 0;
			}
		}
		pos += n;
	}
	*ret = true;
	return 0;
}

/* Is a candidate at pos a whole block of this file? 0 no, 1 yes. */
static int accept(struct iot_segment *s, struct iot_walk *w, uint64_t pos, struct iot_error *err)
{
	struct iot_block_info info;
	const uint8_t *bytes;
	bool unfinished;
	int r;

	r = header_at(s, pos, &info, &unfinished, err);
	if (r == -EBADMSG)
		return 0;
	if (r < 0)
		return r;
	if (info.seq < w->next_seq || info.size > w->search_budget)
		return 0;
	w->search_budget -= info.size;
	r = iot_segment_raw_block(s, &info, &bytes, NULL);
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

/* The next whole block at or after from; data_end if there is none. */
static int search(struct iot_segment *s, struct iot_walk *w, uint64_t from, uint64_t *ret,
		  struct iot_error *err)
{
	_cleanup_free_ uint8_t *chunk = malloc(SEARCH_CHUNK);
	uint64_t pos = from;

	if (!chunk)
		return iot_error_set(err, -ENOMEM, "%s: out of memory", s->path);
	while (s->data_end > pos && s->data_end - pos > sizeof(block_magic)) {
		size_t n = IOT_MIN(s->data_end - pos, (uint64_t)SEARCH_CHUNK);
		const uint8_t *hit = chunk;
		int r = iot_segment_pread(s, pos, chunk, n, err);

		if (r < 0)
			return r;
		while ((hit = memmem(hit, n - (size_t)(hit - chunk), block_magic,
				     sizeof(block_magic)))) {
			r = accept(s, w, pos + (uint64_t)(hit - chunk), err);
			if (r < 0)
				return r;
			if (r > 0) {
				*ret = pos + (uint64_t)(hit - chunk);
				return 0;
			}
			hit++;
		}
		if (n < SEARCH_CHUNK)
			break;
		pos += n - (sizeof(block_magic) - 1);
	}
	*ret = s->data_end;
	return 0;
}

static int walk_sealed(struct iot_segment *s, struct iot_walk *w, struct iot_block_info *ret,
		       enum iot_gap *ret_gap, struct iot_error *err)
{
	const struct iot_index_entry *e;
	bool unfinished;
	int r;

	if (w->next == s->meta.n_index)
		return IOT_READ_END;
	e = &s->meta.index[w->next];
	r = header_at(s, e->offset, ret, &unfinished, err);
	if (r < 0 && r != -EBADMSG)
		return r;
	w->next++;
	if (r == 0 && ret->header_hash == e->header_hash && ret->size == e->size &&
	    ret->count == e->count && ret->kind == e->kind)
		return 0;
	s->damaged = true;
	*ret_gap = IOT_GAP_DAMAGE;
	*ret = (struct iot_block_info){
		.offset = e->offset,
		.size = e->size,
		.first_ns = e->first_ns,
		.last_ns = e->last_ns,
		.count = e->count,
		.kind = e->kind,
	};
	return IOT_READ_GAP;
}

/* Nothing readable from pos on, up to the block at next (or the end of the file). */
static int gap(struct iot_segment *s, uint64_t pos, uint64_t next, bool unfinished,
	       struct iot_block_info *ret, enum iot_gap *ret_gap, struct iot_error *err)
{
	bool benign = unfinished;
	int r;

	if (next == s->data_end && !benign) {
		r = footer_at(s, pos, &benign, err);
		if (r < 0)
			return r;
	}
	if (next == s->data_end && !benign) {
		r = zeros_from(s, pos, &benign, err);
		if (r < 0)
			return r;
	}
	benign = benign && next == s->data_end;
	if (!benign) {
		s->damaged = true;
	} else if (!s->damaged) {
		snprintf(s->state_text, sizeof(s->state_text),
			 "not sealed: the file ends in the middle of a block or footer at offset "
			 "%llu",
			 (unsigned long long)pos);
	}
	*ret_gap = benign ? IOT_GAP_UNFINISHED : IOT_GAP_DAMAGE;
	*ret = (struct iot_block_info){.offset = pos, .size = next - pos};
	return IOT_READ_GAP;
}

static int walk_torn(struct iot_segment *s, struct iot_walk *w, struct iot_block_info *ret,
		     enum iot_gap *ret_gap, struct iot_error *err)
{
	uint64_t next = s->data_end, pos = w->pos;
	bool unfinished = false;
	int r;

	if (pos >= s->data_end)
		return IOT_READ_END;
	r = header_at(s, pos, ret, &unfinished, err);
	if (r < 0 && r != -EBADMSG)
		return r;
	if (r == 0 && ret->seq >= w->next_seq) {
		w->pos = pos + ret->size;
		w->next_seq = ret->seq + 1;
		return 0;
	}
	r = search(s, w, pos + 1, &next, err);
	if (r < 0)
		return r;
	w->pos = next;
	return gap(s, pos, next, unfinished, ret, ret_gap, err);
}

int iot_walk_next(struct iot_segment *s, struct iot_walk *w, struct iot_block_info *ret,
		  enum iot_gap *ret_gap, struct iot_error *err)
{
	return s->sealed ? walk_sealed(s, w, ret, ret_gap, err)
			 : walk_torn(s, w, ret, ret_gap, err);
}

void iot_segment_rewind(struct iot_segment *s)
{
	iot_walk_init(s, &s->walk);
}

void iot_segment_seek(struct iot_segment *s, uint64_t offset)
{
	iot_walk_init(s, &s->walk);
	if (offset > s->walk.pos)
		s->walk.pos = offset;
	while (s->sealed && s->walk.next < s->meta.n_index &&
	       s->meta.index[s->walk.next].offset < offset)
		s->walk.next++;
}

int iot_segment_next_block(struct iot_segment *s, struct iot_block_info *ret, struct iot_error *err)
{
	enum iot_gap kind;

	return iot_walk_next(s, &s->walk, ret, &kind, err);
}

int iot_segment_block_at(struct iot_segment *s, uint64_t offset, struct iot_block_info *ret,
			 struct iot_error *err)
{
	bool unfinished;

	if (offset < s->data_start || offset >= s->data_end)
		return -EBADMSG;
	return header_at(s, offset, ret, &unfinished, err);
}
