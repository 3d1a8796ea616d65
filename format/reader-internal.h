/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader-internal.h - a segment as verify, recover and scan see it: besides what reader.h offers
 * they walk blocks with cursors of their own, look at the index and read raw bytes.
 */
#pragma once

#include "format/meta.h"
#include "format/reader.h"

/* A position in a segment's blocks. Zero-initialised by iot_walk_init. */
struct iot_walk {
	uint64_t pos;		/* next byte to look at */
	size_t next;		/* sealed: next entry of the index */
	uint64_t next_seq;	/* blocks count upwards; lower ones are not of this file's end */
	uint64_t search_budget; /* bytes that searching may still hash */
};

/* What a gap is, beside its offset and size. */
enum iot_gap {
	IOT_GAP_DAMAGE = 1,	/* bytes are wrong */
	IOT_GAP_UNFINISHED = 2, /* the file ends inside a frame, or in zeros */
};

/* For a gap in a sealed file ret->count, first_ns, last_ns and kind come from the index; in a torn
 * file they are 0: not known. */
void iot_walk_init(const struct iot_segment *s, struct iot_walk *w);
int iot_walk_next(struct iot_segment *s, struct iot_walk *w, struct iot_block_info *ret,
		  enum iot_gap *ret_gap, struct iot_error *err) IOT_MUST_CHECK;

/* The header frame's size: where the first block begins. */
uint64_t iot_segment_data_start(const struct iot_segment *s);
uint64_t iot_segment_header_hash(const struct iot_segment *s);
/* NULL if torn. */
const struct iot_meta_footer *iot_segment_meta(const struct iot_segment *s);
int iot_segment_fd(struct iot_segment *s); /* opened again if parked; negative errno */

/* The block header at a known offset. -EBADMSG: no whole block begins there. */
int iot_segment_block_at(struct iot_segment *s, uint64_t offset, struct iot_block_info *ret,
			 struct iot_error *err) IOT_MUST_CHECK;

/* Both frames of a block, data hash checked; the bytes are the segment's until its next read. */
int iot_segment_raw_block(struct iot_segment *s, const struct iot_block_info *info,
			  const uint8_t **ret, struct iot_error *err) IOT_MUST_CHECK;

/*
 * Gives the descriptor and the buffers back until the segment is read again: a scan may hold more
 * segments than a process may have open files. A segment without a path stays open.
 */
void iot_segment_park(struct iot_segment *s);

/* Ledger entries that can still be read, whether or not they match the footer. */
int iot_segment_salvage_ledger(struct iot_segment *s, struct iot_loss **ret_losses, size_t *ret_n,
			       bool *ret_whole, struct iot_error *err) IOT_MUST_CHECK;
int iot_segment_salvage_open(struct iot_segment *s, struct iot_request **ret, size_t *ret_n,
			     bool *ret_whole, struct iot_error *err) IOT_MUST_CHECK;
