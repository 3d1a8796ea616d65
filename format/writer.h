/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.h - one segment file from its header to its trailer.
 *
 * The writer owns the file descriptor and the offset of the last whole block. Each call either
 * puts whole frames into the file or leaves the file as it was (a torn write is cut
 * back with ftruncate). It neither syncs nor renames: the daemon's store does, in the order that
 * segment-format.md and adoption.md demand. A writer never seeks back and never changes a byte
 * once written, so that a reader may follow an open segment.
 */
#pragma once

#include "format/batch.h"
#include "format/block.h"
#include "format/record.h"

/* How a selection begins that left out what is tagged as swap. */
#define IOT_SELECTION_WITHOUT_SWAP "without swap"

/* How the source of an imported trace ends that had no wall clock: dates are counted from 1970 on, and mean nothing. */
#define IOT_SOURCE_UNDATED "; no wall clock"

/* What the file header says. Strings and tables are borrowed during the call only. */
struct iot_segment_info {
	uint8_t machine_id[16];
	uint8_t boot_id[16];
	uint8_t capture_id[16];
	char host[65];
	char kernel[65];
	char selection[256]; /* human-readable filter; "all" */
	char anonymized[64]; /* how names and addresses were replaced, by which key; "" = not */
	char source[256]; /* whose trace it is, see IOT_SOURCE_UNDATED; "" = iotraced recorded it */
	uint8_t stream;	  /* enum iot_stream */
	uint8_t swap_out; /* enum iot_swap_ability */
	uint8_t swap_in;
	uint32_t n_rings;
	uint32_t n_cpus; /* possible CPUs */
	uint64_t epoch;
	uint64_t seq;		   /* order within the capture, from 1 */
	uint64_t prev_footer_hash; /* 0: not known yet, see iot_footer.prev_footer_hash */
	uint64_t attach_ns;	   /* the capture's gate opened, CLOCK_MONOTONIC */
	struct iot_clocks clocks;  /* at creation */
	struct iot_probe *probes;
	size_t n_probes;
	struct iot_names devices; /* known when the segment was opened */
	/* packet stream */
	char identity[128];	  /* "exact", or why an id may be more than one packet */
	struct iot_names reasons; /* drop reasons by value */
};
void iot_segment_info_done(struct iot_segment_info *info);
static inline bool iot_segment_without_swap(const struct iot_segment_info *info)
{
	return strncmp(info->selection, IOT_SELECTION_WITHOUT_SWAP,
		       sizeof(IOT_SELECTION_WITHOUT_SWAP) - 1) == 0;
}

/* Recorded by another tool. What the header says of it begins with the tool's name: "blktrace: ...". */
static inline bool iot_segment_imported(const struct iot_segment_info *info)
{
	return info->source[0] != '\0';
}
static inline bool iot_segment_undated(const struct iot_segment_info *info)
{
	size_t n = strlen(info->source), end = sizeof(IOT_SOURCE_UNDATED) - 1;

	return n >= end && strcmp(info->source + n - end, IOT_SOURCE_UNDATED) == 0;
}

/* What the footer says beyond the blocks; filled by the daemon after the epoch's barrier. */
struct iot_footer {
	uint8_t reason; /* enum iot_seal_reason */
	/* xxh64 of the previous segment's footer bytes; 0 = first. In the footer, not the header: a
	 * segment is opened before the epoch flips, hence before its predecessor has a footer. */
	uint64_t prev_footer_hash;
	struct iot_clocks clocks; /* at seal */
	uint64_t epoch_first_ns;  /* the epoch's window: flip in .. flip out, CLOCK_MONOTONIC */
	uint64_t epoch_last_ns;
	struct iot_books *books; /* per (probe, cpu) with any count, plus the user-space rows */
	size_t n_books;
	struct iot_window *windows;
	size_t n_windows;
	struct iot_loss *losses;
	size_t n_losses;
	struct iot_request *open; /* in flight at the seal; complete_ns = 0 */
	size_t n_open;
	struct iot_probe *probes; /* final state of the table (to_ns) */
	size_t n_probes;
	struct iot_names devices; /* every device named by a record of this segment */
	struct iot_names cgroups;
	struct iot_names symbols; /* packet stream: places in code */
	char note[256];		  /* free text: why recovered, what was cut; "" */
};
void iot_footer_done(struct iot_footer *f);

struct iot_writer;

/*
 * Creates (or truncates) name below dirfd, mode 0640, and writes the header.
 * O_CREAT without O_EXCL: after a crash the same (capture, epoch) gives the same name.
 */
int iot_writer_open(int dirfd, const char *name, const struct iot_segment_info *info,
		    struct iot_writer **ret) IOT_MUST_CHECK;
/*
 * Goes on with a file whose writer died. Whole blocks of records at its beginning stay, everything behind
 * them (a torn block, blocks of an unfinished seal, half a footer) is cut. fn sees each block that stays,
 * in order, with `columns` decoded; its error ends the call. expect: what must be in the header (stream,
 * capture, epoch, seq, rings, CPUs). Positive IOT_WRITER_SEALED: the file has a whole footer, *ret_hash, and is
 * as it was. -EBADMSG: it is another file, or damaged before its end.
 */
#define IOT_WRITER_SEALED 1
typedef int (*iot_writer_seen_fn)(void *arg, const struct iot_block_info *info,
				  const struct iot_batch *b);
int iot_writer_resume(int dirfd, const char *name, const struct iot_segment_info *expect,
		      uint64_t columns, iot_writer_seen_fn fn, void *arg, struct iot_writer **ret,
		      uint64_t *ret_hash, struct iot_error *err) IOT_MUST_CHECK;
struct iot_writer *iot_writer_close(struct iot_writer *w); /* closes the fd, writes nothing */

/*
 * Encodes and writes one block of requests covering ring positions spans[0..n_rings).
 * On error nothing of the block is in the file and the call may be repeated. An empty batch with
 * spans writes nothing and returns 0.
 */
int iot_writer_put(struct iot_writer *w, const struct iot_batch *b, const struct iot_span *spans,
		   size_t n_spans) IOT_MUST_CHECK;

/*
 * From now on the file has room for that many bytes (and its index) behind its last block, allocated before a
 * block is written: iot_writer_put() fails with -ENOSPC or -EDQUOT rather than take of it. Where that is not
 * to be had at all (see writer.c) nothing is kept. ahead: allocated beyond that if there is more.
 */
void iot_writer_reserve(struct iot_writer *w, uint64_t bytes, uint64_t ahead);

/*
 * Appends a block that another segment already holds, byte for byte (info as decoded, block = both
 * frames, info->size bytes): for recovery. Same promise as iot_writer_put. Its seq stays what it
 * was, so that a block cut from the middle remains visible; it must be larger than the last one's.
 */
int iot_writer_copy(struct iot_writer *w, const struct iot_block_info *info,
		    const void *block) IOT_MUST_CHECK;

/* Writes open requests, ledger, footer and trailer. On error the file ends at its last block. */
int iot_writer_seal(struct iot_writer *w, const struct iot_footer *f) IOT_MUST_CHECK;

int iot_writer_fd(const struct iot_writer *w);
uint64_t iot_writer_bytes(const struct iot_writer *w);	     /* file size so far */
uint64_t iot_writer_records(const struct iot_writer *w);     /* requests written */
uint64_t iot_writer_raw_bytes(const struct iot_writer *w);   /* column bytes before LZ4 */
uint64_t iot_writer_footer_hash(const struct iot_writer *w); /* valid after seal */

static inline void iot_writer_closep(struct iot_writer **w)
{
	*w = iot_writer_close(*w);
}
