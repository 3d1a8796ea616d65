/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - one segment file, read with suspicion.
 *
 * Opening reads the header and, if the trailer is whole, the footer; blocks are then walked in
 * file order. Whatever the bytes are, a call gives records or one error with file and offset; it
 * never reads past a buffer and never allocates more than the file's size and fixed limits allow.
 * A file without a whole trailer is `torn`: its blocks are readable up to the first damage, and
 * after damage in the middle the reader searches the next whole block (iot_segment_next_block
 * returns IOT_READ_GAP once for each such hole).
 */
#pragma once

#include "format/batch.h"
#include "format/block.h"
#include "format/record.h"
#include "format/writer.h"

enum iot_segment_state {
	IOT_SEGMENT_SEALED = 1, /* footer and trailer are whole */
	IOT_SEGMENT_TORN = 2,	/* no (whole) footer; blocks may be good */
};

struct iot_segment;

/* -EBADMSG not a segment or damaged header, -EPROTONOSUPPORT other version or feature, -EISDIR, ... */
int iot_segment_open(const char *path, struct iot_segment **ret,
		     struct iot_error *err) IOT_MUST_CHECK;
/* Takes ownership of fd; name is for messages. */
int iot_segment_open_fd(int fd, const char *name, struct iot_segment **ret,
			struct iot_error *err) IOT_MUST_CHECK;
struct iot_segment *iot_segment_close(struct iot_segment *s);

const char *iot_segment_path(const struct iot_segment *s);
uint64_t iot_segment_size(const struct iot_segment *s);
enum iot_segment_state iot_segment_state(const struct iot_segment *s);
const struct iot_segment_info *iot_segment_info(const struct iot_segment *s);
const struct iot_footer *
iot_segment_footer(const struct iot_segment *s);	       /* NULL if torn; losses are
	loaded by iot_segment_load_ledger, open requests by reading IOT_BLOCK_OPEN blocks */
uint64_t iot_segment_footer_hash(const struct iot_segment *s); /* 0 if torn */
/* Bytes that ought to be there are wrong (as opposed to: the tail is not there). Known after opening
 * for footer and trailer, after walking for blocks. */
bool iot_segment_damaged(const struct iot_segment *s);
/* Some of it could not be read as records: noted by who read it all, as a scan does, or gone. */
bool iot_segment_unread(const struct iot_segment *s);
void iot_segment_note_unread(struct iot_segment *s);
/* Its file was deleted when more of it was to be read: what was not read is not known. */
bool iot_segment_gone(const struct iot_segment *s);
/* "sealed", or why not, for people: "the file ends in the middle of a block at offset 4711". */
const char *iot_segment_state_text(const struct iot_segment *s);
/* Declared in the footer: per kind counts, so that losses can be summed without loading them. */
uint64_t iot_segment_declared(const struct iot_segment *s, enum iot_block_kind kind);

void iot_segment_rewind(struct iot_segment *s);
/*
 * Goes on at the block that begins at offset, as an earlier opening of the same file said it: how a reader
 * follows a file that grows. 0 is the first block.
 */
void iot_segment_seek(struct iot_segment *s, uint64_t offset);
/*
 * Header of the next block. Positive: IOT_READ_END no more blocks, IOT_READ_GAP damaged bytes were
 * skipped (ret->offset/size say which; call again to go on). Negative: the file cannot be read.
 */
#define IOT_READ_END 1
#define IOT_READ_GAP 2
int iot_segment_next_block(struct iot_segment *s, struct iot_block_info *ret,
			   struct iot_error *err) IOT_MUST_CHECK;
/*
 * Decodes the requests (or open requests) of a block into b, replacing its contents. columns: mask
 * of IOT_COLS_* (block.h), what the caller will look at; other fields come back null. -EBADMSG = damaged.
 */
int iot_segment_read_block(struct iot_segment *s, const struct iot_block_info *info,
			   uint64_t columns, struct iot_batch *b,
			   struct iot_error *err) IOT_MUST_CHECK;
/* Reads all ledger blocks. *ret_losses is owned by the caller (free). -EBADMSG if they do not match
 * the footer's count and hash. */
int iot_segment_load_ledger(struct iot_segment *s, struct iot_loss **ret_losses, size_t *ret_n,
			    struct iot_error *err) IOT_MUST_CHECK;
/* Same for requests in flight at the seal. */
int iot_segment_load_open(struct iot_segment *s, struct iot_request **ret, size_t *ret_n,
			  struct iot_error *err) IOT_MUST_CHECK;

/* Wall-clock time of a monotonic time of this segment, by the header's anchors. */
uint64_t iot_segment_realtime_ns(const struct iot_segment *s, uint64_t monotonic_ns);

static inline void iot_segment_closep(struct iot_segment **s)
{
	*s = iot_segment_close(*s);
}
