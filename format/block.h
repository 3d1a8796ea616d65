/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.h - one block between memory and bytes, both directions, without any file.
 *
 * A block is two adjacent LZ4 frames: the block header (skippable) and the data frame. Encoding
 * makes both in one buffer, ready for one write. Decoding is in steps, so that a reader pays only
 * for what it wants: header alone (skip by time or id), data hash (is it whole?), content (some
 * columns or all).
 *
 * Every decode function is a pure function of the bytes it is given and answers -EBADMSG for
 * anything that FORMAT.md does not allow: it never reads beyond `size`, and allocates only what a
 * header within the limits of segment-def.h may ask for. Encoder and decoder own their buffers and
 * use them again: no allocation per block once they are warm. Each belongs to one thread.
 */
#pragma once

#include "format/batch.h"
#include "format/record.h"

#define IOT_N_BLOCK_KINDS 5

enum iot_block_kind {
	IOT_BLOCK_REQUESTS = 1,
	IOT_BLOCK_OPEN = 2, /* requests in flight at the seal */
	IOT_BLOCK_LEDGER = 3,
	IOT_BLOCK_PACKETS = 4, /* observations of packets */
};

/* Kind of the blocks that hold a stream's records; 0 = no such stream. */
unsigned int iot_stream_block_kind(unsigned int stream);

/* What a block header says. */
struct iot_block_info {
	uint64_t
		offset; /* of the block header frame in the file; set by the caller, 0 after decode */
	uint64_t size; /* header frame and data frame, bytes in the file */
	uint64_t seq;  /* number of the block in the segment, from 0 */
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t first_id;
	uint64_t last_id;
	uint64_t header_hash; /* hash field of the block header, as in the footer's index */
	uint64_t data_hash;   /* XXH64 of the data frame */
	uint32_t header_size; /* bytes of the header frame; the data frame follows */
	uint32_t data_size;   /* bytes of the data frame */
	uint32_t count;
	uint32_t raw_bytes;
	uint16_t row_size; /* ledger only */
	uint8_t kind;	   /* enum iot_block_kind */
	uint32_t n_spans;
	struct iot_span spans[IOT_MAX_RINGS];
};

/* ---- encoding ---- */

struct iot_block_encoder;
int iot_block_encoder_new(struct iot_block_encoder **ret) IOT_MUST_CHECK;
struct iot_block_encoder *iot_block_encoder_free(struct iot_block_encoder *e);

/*
 * Encodes a batch (1..IOT_BLOCK_RECORDS_MAX records) as a block of a kind of its stream. The
 * bytes are the encoder's and valid until its next call. *ret_info (may be NULL) is what decoding
 * the header would give.
 */
int iot_block_encode(struct iot_block_encoder *e, enum iot_block_kind kind, uint64_t seq,
		     const struct iot_batch *b, const struct iot_span *spans, size_t n_spans,
		     const uint8_t **ret, size_t *ret_size,
		     struct iot_block_info *ret_info) IOT_MUST_CHECK;

/*
 * Encodes n (1..IOT_BLOCK_RECORDS_MAX) losses of a stream as a ledger block. hash is an XXH64_state_t, updated
 * with the rows as they are in the file: after all ledger blocks its digest is the footer's
 * ledger_hash. May be NULL.
 */
int iot_block_encode_losses(struct iot_block_encoder *e, enum iot_stream stream, uint64_t seq,
			    const struct iot_loss *losses, size_t n, void *hash,
			    const uint8_t **ret, size_t *ret_size,
			    struct iot_block_info *ret_info) IOT_MUST_CHECK;

/* ---- decoding ---- */

/*
 * Parses and checks a block header frame at buf; size = bytes available there, which may be more
 * than the header (IOT_LIMIT_BLOCK_HEADER_BYTES is always enough). -EBADMSG: no whole, valid block
 * header starts here. Does not look at the data frame.
 */
int iot_block_header_decode(const void *buf, size_t size,
			    struct iot_block_info *ret) IOT_MUST_CHECK;

/* -EBADMSG unless size is info->data_size and the bytes have info->data_hash. No decompression. */
int iot_block_data_check(const struct iot_block_info *info, const void *data,
			 size_t size) IOT_MUST_CHECK;

/*
 * Which fields of a request a caller will look at: bits 1 << enum iot_column (segment-def.h).
 * Columns that these depend on are decoded too; dictionaries follow their index.
 */
#define IOT_COLS_ALL UINT64_MAX
#define IOT_COLS_COMPLETE (1ULL << 1) /* complete_ns; always decoded */
#define IOT_COLS_ISSUE (1ULL << 2)    /* issue_ns */
#define IOT_COLS_ISSUE_LAST (1ULL << 3)
#define IOT_COLS_START (1ULL << 4)
#define IOT_COLS_INSERT (1ULL << 5)
#define IOT_COLS_TIMES (0x1fULL << 1)
#define IOT_COLS_CPU (3ULL << 6)      /* complete_cpu, issue_cpu */
#define IOT_COLS_ID (3ULL << 8)	      /* id */
#define IOT_COLS_OP (1ULL << 10)      /* all of op, flags, swap, origin, submitter */
#define IOT_COLS_CONTEXT (1ULL << 11) /* pid, tgid, cgroup, comm */
#define IOT_COLS_DEVICE (1ULL << 12)  /* dev, part */
#define IOT_COLS_FILE (1ULL << 13)    /* ino, fsdev */
#define IOT_COLS_BYTES (1ULL << 14)
#define IOT_COLS_BYTES_DONE (1ULL << 15)
#define IOT_COLS_SECTOR (1ULL << 16)
#define IOT_COLS_STATUS (3ULL << 17)   /* error, status */
#define IOT_COLS_COUNTS (0xfULL << 19) /* segments, merges, requeues, hwq */
#define IOT_COLS_RING (1ULL << 23)

struct iot_block_decoder;
int iot_block_decoder_new(struct iot_block_decoder **ret) IOT_MUST_CHECK;
struct iot_block_decoder *iot_block_decoder_free(struct iot_block_decoder *d);

/*
 * Decodes the data frame of a block of records into b, replacing its contents (its arrays grow to
 * info->count if they are smaller, and b becomes a batch of the block's stream). The data hash is checked first. Columns that
 * were not selected, or that the block does not have, are null in iot_batch_get. On error b is
 * empty. -EBADMSG: the block is not valid; -ENOMEM.
 */
int iot_block_decode(struct iot_block_decoder *d, const struct iot_block_info *info,
		     const void *data, size_t size, uint64_t columns,
		     struct iot_batch *b) IOT_MUST_CHECK;

/*
 * Decodes a ledger block into ret[0..info->count), which the caller has allocated. hash as in
 * iot_block_encode_losses. On error ret is undefined.
 */
int iot_block_decode_losses(struct iot_block_decoder *d, enum iot_stream stream,
			    const struct iot_block_info *info, const void *data, size_t size,
			    void *hash, struct iot_loss *ret) IOT_MUST_CHECK;

static inline void iot_block_encoder_freep(struct iot_block_encoder **e)
{
	*e = iot_block_encoder_free(*e);
}
static inline void iot_block_decoder_freep(struct iot_block_decoder **d)
{
	*d = iot_block_decoder_free(*d);
}
