/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meta.h - file header, footer and trailer between structs in memory and bytes, both directions,
 * without any file.
 *
 * Encoding makes whole frames, ready to be written. Decoding takes the bytes of one whole frame
 * and checks everything FORMAT.md demands of it alone: prefix, tag, version, features, reserved
 * bytes, limits, sections, hash. What needs the rest of the file (do the index and the blocks
 * agree? does the footer belong to this header?) is the reader's.
 *
 * Decoders give 0 and a whole struct, owned by the caller, or an error and nothing: -EBADMSG not
 * valid, -EPROTONOSUPPORT another version or an unknown incompatible feature (err gets
 * this reason alone, without file name or offset: the caller adds them),
 * -ENOMEM. They allocate no more than a small multiple of the bytes they are given.
 */
#pragma once

#include "format/block.h"
#include "format/segment-def.h"
#include "format/writer.h"

/* A growing byte buffer; zero-initialised = empty. */
struct iot_buf {
	uint8_t *data;
	size_t size;
	size_t allocated;
};
void iot_buf_done(struct iot_buf *buf);

/*
 * Size of the skippable frame whose first 8 bytes are at prefix: whole frame, prefix included, if
 * its magic is `magic` and its size is at most limit; else -EBADMSG.
 */
int iot_meta_frame_size(const void *prefix, uint32_t magic, uint32_t limit,
			uint32_t *ret) IOT_MUST_CHECK;

/* ---- header ---- */

/* Appends the header frame to buf. *ret_hash (may be NULL) = its hash field, for the footer. */
int iot_meta_header_encode(const struct iot_segment_info *info, struct iot_buf *buf,
			   uint64_t *ret_hash) IOT_MUST_CHECK;
/* size must be the whole frame. *ret_hash (may be NULL). Free with iot_segment_info_done. */
int iot_meta_header_decode(const void *data, size_t size, struct iot_segment_info *ret,
			   uint64_t *ret_hash, struct iot_error *err) IOT_MUST_CHECK;

/* ---- footer ---- */

/* One block, as the footer's index has it. */
struct iot_index_entry {
	uint64_t offset;
	uint64_t header_hash;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t size;
	uint32_t count;
	uint8_t kind; /* enum iot_block_kind */
};

/* A footer and what only the writer knows: the blocks. */
struct iot_meta_footer {
	/* losses/open stay empty here: they are blocks; their numbers are n_losses and n_open below */
	struct iot_footer footer;
	uint64_t header_hash; /* of the file header */
	uint64_t n_requests;
	uint64_t n_open;
	uint64_t n_losses;
	uint64_t ledger_hash;
	/* One per block, in file order. */
	struct iot_index_entry *index;
	size_t n_index;
};

void iot_meta_footer_done(struct iot_meta_footer *f);

/* Appends the footer frame. *ret_hash = its hash field: what the next footer's prev_footer_hash
 * says. f->footer.losses and .open are not looked at. */
int iot_meta_footer_encode(const struct iot_meta_footer *f, struct iot_buf *buf,
			   uint64_t *ret_hash) IOT_MUST_CHECK;
/* size must be the whole frame. Checks that index, n_requests, n_open and n_losses agree. */
int iot_meta_footer_decode(const void *data, size_t size, struct iot_meta_footer *ret,
			   uint64_t *ret_hash, struct iot_error *err) IOT_MUST_CHECK;

/* ---- trailer ---- */

#define IOT_TRAILER_BYTES 32U
void iot_meta_trailer_encode(uint64_t footer_offset, uint32_t footer_size,
			     uint8_t ret[IOT_TRAILER_BYTES]);
/* -EBADMSG no trailer here, -EPROTONOSUPPORT another version. file_size: the footer must end where
 * the trailer starts. */
int iot_meta_trailer_decode(const void *data, uint64_t file_size, uint64_t *ret_footer_offset,
			    uint32_t *ret_footer_size) IOT_MUST_CHECK;
