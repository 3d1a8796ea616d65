/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h - many segments as one stream of records in time order: of requests, or of packets.
 *
 * Paths may be segment files, state directories or archive trees; files are ordered by (capture,
 * seq), never by clock. Requests come out by completion time through a bounded merge: blocks that
 * overlap in time are held together, nothing else is. Filters apply here, so that they mean the
 * same in every verb. Damage is not fatal: it is noted in the scan's verdict and the scan goes on.
 */
#pragma once

#include "format/batch.h"
#include "format/packet-verdict.h"

enum iot_swap_filter {
	IOT_SWAP_ANY = 0,
	IOT_SWAP_ONLY = 1,
	IOT_SWAP_WITHOUT = 2,
	IOT_SWAP_ONLY_OUT = 3,
	IOT_SWAP_ONLY_IN = 4,
};

/* Zero-initialised = everything. */
struct iot_filter {
	uint64_t since_ns; /* CLOCK_REALTIME ns; 0 = open */
	uint64_t until_ns;
	char dev[64]; /* "nvme0n1", "nvme0n1p2", "259:1"; "" = all */
	uint32_t ops; /* bit mask of enum iot_op; 0 = all */
	enum iot_swap_filter swap;
	uint32_t pid;		     /* pid or tgid; 0 = all */
	char comm[IOT_COMM_LEN + 1]; /* exact; "" = all */
	uint64_t min_latency_ns;     /* complete - start (or issue) */
	uint64_t id;		     /* 0 = all */
	enum iot_stream stream;	     /* only its records are asked for; 0 = both streams' */
	/* Observations of packets only; no request matches. dev is their interface's name. */
	struct iot_flow_match flow;
	char probe[48]; /* name; "" = all */
};

/* Behind "." and a name: a directory that a verb fills, to be renamed when it is whole. Scans do not go into one. */
#define IOT_UNFINISHED ".tmp-"
#define IOT_UNFINISHED_RANDOM "XXXXXX" /* of mkdtemp(3) */

struct iot_scan;

/* -ENOENT with err when a path has no segments. Damaged files, and directories below a path that cannot
 * be read, are listed in the verdict. */
int iot_scan_open(const char *const *paths, size_t n_paths, const struct iot_filter *filter,
		  struct iot_scan **ret, struct iot_error *err) IOT_MUST_CHECK;
struct iot_scan *iot_scan_close(struct iot_scan *sc);

size_t iot_scan_n_segments(const struct iot_scan *sc);
/* Sorted by (stream, capture, seq). Borrowed. */
struct iot_segment *iot_scan_segment(const struct iot_scan *sc, size_t i);

/* Further files of segments that are read from another, in the same order. Borrowed. */
size_t iot_scan_n_copies(const struct iot_scan *sc);
struct iot_segment *iot_scan_copy(const struct iot_scan *sc, size_t i);

/* Files in which a daemon found nothing to recover (".bad"); the verdict names them. */
size_t iot_scan_n_aside(const struct iot_scan *sc);

/* columns as in iot_segment_read_block. Positive IOT_READ_END at the end. *ret_segment (may be
 * NULL) = where the record comes from, for names and clocks. */
void iot_scan_columns(struct iot_scan *sc, uint64_t columns);
int iot_scan_next(struct iot_scan *sc, struct iot_request *ret, struct iot_segment **ret_segment,
		  struct iot_error *err) IOT_MUST_CHECK;
/* Rows of a block that pass the filter. */
struct iot_rows {
	struct iot_segment *segment;
	const struct iot_batch *batch;
	const uint32_t *at; /* which, ascending; NULL: all of the batch's */
	uint32_t n;
};
/*
 * The same requests a block at a time, blocks and rows in no promised order: for sums, where columns can be
 * taken whole (iot_batch_columns). Good until the next call. A scan is read in this way or in the other.
 */
int iot_scan_next_block(struct iot_scan *sc, struct iot_rows *ret,
			struct iot_error *err) IOT_MUST_CHECK;
/* fn is called now and then while records are read, with how many were, whether they pass the filter or not. */
#define IOT_SCAN_PROGRESS_RECORDS 65536U
typedef void (*iot_scan_progress_fn)(void *arg, uint64_t n_read);
void iot_scan_progress(struct iot_scan *sc, iot_scan_progress_fn fn, void *arg);
/* The same for observations of packets. Streams are independent of each other. */
int iot_scan_next_packet(struct iot_scan *sc, struct iot_packet *ret,
			 struct iot_segment **ret_segment, struct iot_error *err) IOT_MUST_CHECK;
/* What it was opened with; borrowed. */
const struct iot_filter *iot_scan_filter(const struct iot_scan *sc);
/* As filter.stream, where only the segments tell which is meant. */
void iot_scan_about(struct iot_scan *sc, enum iot_stream stream);
/* Of one stream and capture: the segments of a chain. */
bool iot_same_capture(const struct iot_segment *x, const struct iot_segment *y);
/* Segments of one stream. */
size_t iot_scan_n_stream(const struct iot_scan *sc, enum iot_stream stream);
/* Losses of all segments that pass the filter (op, dev, time). Caller frees. */
int iot_scan_losses(struct iot_scan *sc, struct iot_loss **ret, size_t *ret_n,
		    struct iot_error *err) IOT_MUST_CHECK;
/* Files and directories that could not be used, what else is missing, and why. Borrowed. */
const struct iot_verdict *iot_scan_opening(const struct iot_scan *sc);
/* Verdict over all segments, chains checked: as `verify` would say, without decoding every record
 * when full is false. */
int iot_scan_verdict(struct iot_scan *sc, bool full, struct iot_verdict *ret,
		     struct iot_error *err) IOT_MUST_CHECK;

/* Device name by a segment's tables, else "major:minor" into buf. */
const char *iot_dev_name(const struct iot_segment *s, uint32_t dev, char *buf, size_t size);
const char *iot_iface_name(const struct iot_segment *s, uint32_t netns,
			   uint32_t ifindex); /* NULL = not known */
/* The probe's name by a segment's table, else "probe N" into buf. */
const char *iot_segment_probe_label(const struct iot_segment *s, uint16_t probe, char *buf,
				    size_t size);
bool iot_filter_match_time(const struct iot_filter *f, uint64_t realtime_ns);
bool iot_filter_match_packet(const struct iot_filter *f, const struct iot_segment *s,
			     const struct iot_packet *p);
bool iot_filter_match(const struct iot_filter *f, const struct iot_segment *s,
		      const struct iot_request *r);
/* Losses have no pid, comm or latency: filters on these let every loss pass. */
bool iot_filter_match_loss(const struct iot_filter *f, const struct iot_segment *s,
			   const struct iot_loss *loss);

/*
 * Of one that passes --swap by a part only, since the kernel merged swap with other requests: leaves that
 * part, for sums.
 */
void iot_filter_share(const struct iot_filter *f, struct iot_request *r);
void iot_filter_share_loss(const struct iot_filter *f, struct iot_loss *loss);

static inline void iot_scan_closep(struct iot_scan **sc)
{
	*sc = iot_scan_close(*sc);
}
