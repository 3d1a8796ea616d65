/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan-internal.h - the parts of a scan: which files, which of their records, in which order.
 */
#pragma once

#include "format/reader-internal.h"
#include "format/scan.h"

/* The device filter's answer per (segment, dev, part): names are compared once, not per record. */
#define IOT_DEV_CACHE 64
struct iot_dev_answer {
	const struct iot_segment *s;
	uint32_t dev;
	uint32_t part;
	bool match;
};

struct iot_scan {
	struct iot_segment **segments;
	size_t n_segments;
	size_t n_copies; /* behind the segments */
	size_t n_aside;	 /* files that were set aside and are no copy of what is here */
	struct iot_filter filter;
	uint64_t columns;
	struct iot_merge *merge[IOT_STREAM_PACKET + 1]; /* by stream; started by its first record */
	struct iot_verdict opening;			/* files that could not be used */
	struct iot_verdict reading;			/* damage met on the way */
	struct iot_dev_answer devs[IOT_DEV_CACHE];
	uint32_t *at;	   /* of a block, the rows that pass the filter */
	uint64_t n_untold; /* records read of which the filter asks what they do not tell */
	bool read_all;	   /* requests were read to the end, or for n_untold alone */
	iot_scan_progress_fn progress;
	void *progress_arg;
	uint64_t n_read;
};

/* ---- scan-read.c ---- */

/*
 * A range of a segment's time by the wall clock. false: it wraps, which no kernel's does, but a file may hold;
 * what lies between is anywhere then.
 */
bool iot_scan_range(const struct iot_segment *s, uint64_t first_ns, uint64_t last_ns,
		    uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/*
 * A request that was in flight when recording began may lack its process, and its start: "none of this process",
 * "none slower than" is not proved by records that do not tell.
 */
int iot_scan_note_untold(struct iot_scan *sc, struct iot_verdict *v,
			 struct iot_error *err) IOT_MUST_CHECK;

/* ---- scan-paths.c ---- */

struct iot_path {
	char *path;
	bool named; /* by a person, not found below a directory */
	bool aside; /* set aside by the daemon's recovery: *.bad */
};

struct iot_paths {
	struct iot_path *items;
	size_t n;
	size_t n_aside;
	size_t cap;
	struct iot_error *skipped; /* what could not be read, at most IOT_PATHS_SKIPPED_MAX */
	size_t n_skipped;	   /* all of them */
	int first_error;
};
#define IOT_PATHS_SKIPPED_MAX 16U
int iot_paths_expand(const char *const *paths, size_t n, struct iot_paths *ret,
		     struct iot_error *err) IOT_MUST_CHECK;
void iot_paths_done(struct iot_paths *p);
char *iot_path_sealed(const char *path);

/* ---- scan-copies.c: files of one segment, and what should be there and is not ---- */

bool iot_same_segment(const struct iot_segment *x, const struct iot_segment *y);
/* Segments are sorted; the copies move to the end. *n becomes the number of segments. */
int iot_copies_part(struct iot_segment **segments, size_t *n, struct iot_verdict *notes,
		    struct iot_error *err) IOT_MUST_CHECK;
/* The daemon's recovery set the file aside: is what it held in one of the segments? Positive, noted: it is not. */
int iot_aside_note(struct iot_segment **segments, size_t n, const char *path,
		   struct iot_verdict *notes) IOT_MUST_CHECK;
/* A capture that went on after its last segment here, since it was sealed for the next one. */
void iot_ends_note(struct iot_segment **segments, size_t n, struct iot_verdict *notes);

/* ---- filter.c: iot_filter_match in parts, so that a scan can keep the answer per device ---- */

/* IOT_MATCH_MAYBE: the record does not have all that is asked for, and what it has passes. */
enum iot_match iot_filter_match_fields(const struct iot_filter *f, const struct iot_request *r);
bool iot_filter_match_dev(const struct iot_filter *f, const struct iot_segment *s, uint32_t dev,
			  uint32_t part);
bool iot_filter_match_loss(const struct iot_filter *f, const struct iot_segment *s,
			   const struct iot_loss *loss);
/* Columns that the filter looks at. */
uint64_t iot_filter_columns(const struct iot_filter *f);

/* ---- scan-merge.c: the bounded merge ---- */

struct iot_merge;

/* One record where it lies. */
struct iot_row {
	struct iot_segment *segment;
	const struct iot_batch *batch;
	uint32_t i;
};

/* Segments are borrowed, sorted by (stream, capture, seq). notes gets what is damaged. */
int iot_merge_new(struct iot_segment **segments, size_t n, const struct iot_filter *f,
		  struct iot_verdict *notes, struct iot_merge **ret,
		  struct iot_error *err) IOT_MUST_CHECK;
struct iot_merge *iot_merge_free(struct iot_merge *m);
/*
 * The next record in time order, filtered by nothing but whole blocks; IOT_READ_END at the end. columns are
 * those of the segments' streams. The row's batch is good until the next call.
 */
int iot_merge_next(struct iot_merge *m, uint64_t columns, struct iot_row *ret,
		   struct iot_error *err) IOT_MUST_CHECK;

/*
 * The next block whole, its rows in no order; row.i means nothing. Faster where order does not matter. One or
 * the other for a merge, from its first record on.
 */
int iot_merge_next_block(struct iot_merge *m, uint64_t columns, struct iot_row *ret,
			 struct iot_error *err) IOT_MUST_CHECK;

static inline void iot_merge_freep(struct iot_merge **m)
{
	*m = iot_merge_free(*m);
}
