/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.h - what a segment, or a chain of them, can prove.
 *
 * verify recomputes everything a footer claims from the blocks themselves: counts per block,
 * `written` per probe and CPU, ledger count and hash, and checks the books' equations
 *   seen = not_selected + folded + emitted + reserve_failed
 *   reserve_failed = filed + unattributed
 *   emitted = written + decode_failed + output_failed
 * to the last unit. A field that is IOT_COUNT_UNKNOWN makes the verdict unknown, never complete.
 * The verdict functions are pure: they look at the structs they are given and at nothing else.
 */
#pragma once

#include "format/reader.h"

/* Ordered from best to worst; the worse wins when verdicts are combined. Values = exit codes. */
enum iot_verdict_code {
	IOT_VERDICT_COMPLETE = 0,
	IOT_VERDICT_LOST = 10,	  /* losses, each with its owner */
	IOT_VERDICT_UNKNOWN = 11, /* with reasons */
	IOT_VERDICT_TORN = 20,	  /* recoverable */
	IOT_VERDICT_CORRUPT = 21,
};

#define IOT_MAX_REASONS 32
struct iot_verdict {
	enum iot_verdict_code code;
	uint64_t n_lost; /* filed, by owner */
	uint64_t n_unattributed;
	uint64_t n_missed;
	uint64_t n_records;	 /* recomputed from blocks */
	uint64_t n_observations; /* of n_records: of packets, not requests */
	uint64_t n_open;
	uint64_t n_no_start;	/* of n_records: begun unseen (before attach); not a loss */
	uint64_t books_checked; /* (probe, cpu) rows checked */
	uint64_t books_unbalanced;
	size_t n_reasons;
	size_t n_reasons_dropped; /* more than IOT_MAX_REASONS */
	bool unread; /* a file or directory could not be read: what it holds is not in here */
	bool being_recorded; /* set by readers that can tell: TORN only because a daemon writes it */
	char reasons[IOT_MAX_REASONS][160]; /* why not complete, one line each */
};
const char *iot_verdict_name(enum iot_verdict_code code); /* "complete", "lost", ... */

/* 0 and *ret filled for any segment that could be opened. */
int iot_verify_segment(struct iot_segment *s, struct iot_verdict *ret,
		       struct iot_error *err) IOT_MUST_CHECK;

/*
 * A chain: segments of one capture and stream, sorted by seq. Adds to the worst of the single
 * verdicts: missing neighbours, footer hash links, epochs in order, ring spans that continue
 * without hole or overlap.
 */
int iot_verify_chain(struct iot_segment **segments, size_t n, struct iot_verdict *ret,
		     struct iot_error *err) IOT_MUST_CHECK;

/* Pure: the verdict of the footer's own claims, without recomputing anything from blocks. */
void iot_verdict_footer(const struct iot_segment_info *info, const struct iot_footer *f,
			struct iot_verdict *ret);
void iot_verdict_merge(struct iot_verdict *into, const struct iot_verdict *from);

/* Pure: one object that lived [first_ns, last_ns] (0 = outside the window), first match wins:
 * lost, unknown, complete_within_window, complete. */
enum iot_object_verdict {
	IOT_OBJECT_COMPLETE = 0,
	IOT_OBJECT_COMPLETE_WITHIN_WINDOW = 1,
	IOT_OBJECT_LOST = 2,
	IOT_OBJECT_UNKNOWN = 3,
};
struct iot_object_query {
	uint64_t id;
	uint64_t first_ns; /* 0 = birth not observed */
	uint64_t last_ns;  /* 0 = end not observed */
	uint64_t probes;   /* bit mask of probes the object could have reached (ids < 64) */
};
enum iot_object_verdict iot_verdict_object(const struct iot_object_query *q,
					   const struct iot_segment_info *const *infos,
					   const struct iot_footer *const *footers, size_t n,
					   struct iot_verdict *ret_reasons);

/*
 * Rebuilds a torn or damaged segment as a sealed one: whole blocks are kept, the rest is cut, the
 * footer says `recovered` and puts what is not known into windows. Writes to out_name below
 * out_dirfd (never over the input). *ret_kept/_lost_bytes for the caller's message.
 */
int iot_recover(struct iot_segment *s, int out_dirfd, const char *out_name,
		uint64_t *ret_kept_records, uint64_t *ret_lost_bytes,
		struct iot_error *err) IOT_MUST_CHECK;

/*
 * Writes a whole file once more under out_name, which is on the disk when this returns 0: for a sealed
 * file that the disk failed to take. f: its footer, still in memory; NULL: as read from it (-EBADMSG if
 * that is not whole). Records that cannot be read back are moved to output_failed, with a window
 * each probe and CPU. On error there is no new file, and the call may be repeated.
 */
struct iot_rewritten {
	uint64_t kept_records;
	uint64_t lost_records;
	uint64_t footer_hash;
};
int iot_rewrite(struct iot_segment *s, const struct iot_footer *f, int out_dirfd,
		const char *out_name, struct iot_rewritten *ret) IOT_MUST_CHECK;
