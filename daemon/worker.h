/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - one stream's collector: the thread that drains the rings into segments.
 *
 * The worker thread owns the consumer positions, the batches and the open segments. Its helper
 * thread (the rotor) does the two waits that must not stop the drain: the epoch flip's grace
 * period and fdatasync. The manager talks to the worker by commands and reads a snapshot; it never
 * touches what the worker owns.
 *
 *   drain:   read records up to the producer position -> decode -> batch of the record's epoch
 *            -> block written -> publish the consumer position
 *   rotate:  open E+1 -> rotor flips (waits) -> drain to P -> footer of E -> rotor syncs, renames
 */
#pragma once

#include "config/config.h"
#include "daemon/probes.h"
#include "daemon/store.h"
#include "format/record.h"

struct adopt;
struct worker;

struct worker_options {
	const struct iot_config *config; /* copied where needed */
	struct probes *probes;		 /* outlives the worker */
	struct store *store;		 /* outlives the worker */
	enum iot_stream stream;
	struct adopt *adopt; /* outlives the worker; NULL = there will be no successor */
	bool resume;	     /* adopt says where a predecessor ended: go on there */
};

/* Live numbers: totals over the capture, written by the worker, read by anyone (seqlock inside). */
struct worker_status {
	uint64_t epoch;
	uint64_t segment_seq;
	char segment_name[128]; /* the open one */
	uint64_t segment_bytes;
	uint64_t segment_records;
	uint64_t segment_open_ns; /* CLOCK_MONOTONIC */
	uint64_t unlinked_seq;	  /* of the open or the last one, if its file is deleted */
	uint64_t records;	  /* written since start */
	uint64_t bytes_written;
	uint64_t segments_sealed;
	uint64_t seen; /* sums over probes and both epoch slots and all sealed epochs */
	uint64_t emitted;
	uint64_t lost_filed;
	uint64_t lost_unattributed;
	uint64_t missed; /* IOT_COUNT_UNKNOWN if any attached probe cannot count */
	uint64_t decode_failed;
	uint64_t output_failed;
	uint64_t identity_full;
	uint64_t books_unbalanced; /* sealed epochs whose books did not balance: must stay 0 */
	uint64_t ring_used_bytes;  /* now, all rings */
	uint64_t ring_high_bytes;  /* most seen in one ring */
	uint64_t swap_out_bytes, swap_in_bytes;		  /* of records */
	uint64_t swap_out_lost_bytes, swap_in_lost_bytes; /* as filed in sealed segments */
	uint64_t progress;	 /* grows while the worker is alive: for the watchdog */
	uint64_t last_record_ns; /* complete_ns of the newest record written */
	uint64_t seal_errors;	 /* segments that could not be sealed and named; of the last: */
	uint64_t seal_error_seq;
	int seal_error;
	int last_error;	 /* negative errno of the last failed write, 0 = none since success */
	int begin_error; /* of beginning the next segment: the open one goes on; 0 = none */
	uint64_t
		sync_errors; /* segments that the disk failed to take, and were written anew; of the last: */
	uint64_t sync_error_seq;
	uint64_t sync_error_lost; /* records that could not be read back */
	int sync_error;
	char verdict[24]; /* capture so far: "complete", "lost", "unknown" */
};

/* With opts->resume there is no first segment: the predecessor's is gone on with, and on error the gate stays as
 * it is. Else:
 * Opens the gate (its time goes into every header), then the first segment, and starts the threads;
 * on return collection runs. On error the gate is closed again. */
int worker_start(const struct worker_options *opts, struct worker **ret,
		 struct iot_error *err) IOT_MUST_CHECK;
void worker_status(struct worker *w, struct worker_status *ret);
/* Commands: return when done or -ETIMEDOUT. reason tells the footer why. ret_name: the file it was about,
 * also with an error (-EEXIST: the one that has the final name already), or "". */
int worker_rotate(struct worker *w, enum iot_seal_reason reason, char *ret_name,
		  size_t size) IOT_MUST_CHECK;
/* Everything produced so far is in the file. -ENOENT: which was deleted. */
int worker_flush(struct worker *w, char *ret_name, size_t size) IOT_MUST_CHECK;
/* Takes new sizes and ages; ring and map sizes need a new start. */
void worker_reconfigure(struct worker *w, const struct iot_stream_config *c);
/* What the headers of segments opened from now on say was selected. The caller records everything
 * that the old and the new text promise until a rotation has ended, and only then filters. */
void worker_set_selection(struct worker *w, const struct iot_config *c);
/* Drains, seals (reason shutdown) and joins. The probes must be gated off and detached by the
 * caller before; *ret_name gets the last sealed segment. */
int worker_stop(struct worker *w, char *ret_name, size_t size) IOT_MUST_CHECK;
struct worker *worker_free(struct worker *w);
/* Becomes readable when the worker died or wants attention (status changed for the worse). */
int worker_event_fd(const struct worker *w);
