/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan-merge-def.h - the inside of a merge: scan-merge.c decides what comes next, scan-blocks.c brings it.
 */
#pragma once

#include "format/batch-def.h"
#include "format/books.h"
#include "format/scan-internal.h"

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
	bool taken; /* the top row, or all of its block, was given out */
	bool whole; /* blocks are given out whole: in no order, never two at once */
	const struct iot_filter *filter;
	struct iot_verdict *notes;
};

struct held *iot_held_free(struct held *h);
/* Takes the block in. */
int iot_merge_push(struct iot_merge *m, struct held *h) IOT_MUST_CHECK;

/* ---- scan-blocks.c ---- */

/* The smallest first time of a segment's records; seg->skip if it has none, or none that can pass. */
int iot_merge_first_time(struct iot_merge *m, struct merge_segment *seg,
			 struct iot_error *err) IOT_MUST_CHECK;
/* Lists the blocks of records that the filter does not exclude, by their first time. */
int iot_merge_list(struct iot_merge *m, struct merge_segment *seg,
		   struct iot_error *err) IOT_MUST_CHECK;
/* Decodes the next one into the merge. A damaged one is noted, and passed over. */
int iot_merge_load(struct iot_merge *m, struct merge_segment *seg, uint64_t columns,
		   struct iot_error *err) IOT_MUST_CHECK;
