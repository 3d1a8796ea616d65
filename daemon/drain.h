/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain.h - from the rings to the batches: merge, decode, sort by epoch, count.
 *
 * Records of one ring come out in its order. Several rings are merged by completion time as far as
 * it is cheap: the ring whose next record is oldest is read until it has passed the second oldest by
 * DRAIN_SLACK_NS, so that files are nearly in time order and a reader's exact merge stays small. No
 * system call, no allocation and no lock per record: this runs at 8 million records a second.
 *
 * What a record is, is the stream's own business: drain-block.c and drain-packet.c take one.
 *
 * Every record that is taken ends in exactly one place: the batch of its epoch (counted written) or
 * a loss filed against its owner. Positions are given back by drain_publish() alone, never beyond a
 * record that is only in a batch.
 */
#pragma once

#include "daemon/decode-block.h"
#include "daemon/decode-packet.h"
#include "daemon/ring.h"
#include "daemon/segment-out.h"

#define DRAIN_SLACK_NS 200000ULL
#define DRAIN_MAX_NEW_KEYS 128U

struct drain;
/* Takes the record at the head of a ring. 0: it ended in a batch or was filed; DRAIN_FULL: neither. */
typedef int (*drain_take_fn)(struct drain *d, uint32_t ring, const void *data, uint32_t len);

struct drain {
	enum iot_stream stream;
	drain_take_fn take;
	uint32_t n_rings;
	struct ring rings[IOT_MAX_RINGS];
	struct decode_block decoder;	     /* block */
	struct decode_packet packet_decoder; /* packet */
	struct places places;		     /* packet */
	struct segment_out outs[2];	     /* by parity of the epoch */
	struct segment_out *full;	     /* after DRAIN_FULL */
	uint32_t broken_ring;		     /* after -EBADMSG */
	bool give_up; /* take records as output_failed instead of batching them */

	/* Totals over the capture. */
	uint64_t decode_failed;
	uint64_t output_failed;
	uint64_t swap_out_bytes;
	uint64_t swap_in_bytes;
	uint64_t last_record_ns;
	uint64_t ring_high_bytes;

	/* Keys seen for the first time in their epoch: somebody may look up their names in time. */
	uint32_t n_new_devices;
	uint32_t n_new_cgroups;
	uint64_t new_devices[DRAIN_MAX_NEW_KEYS]; /* as in struct epoch */
	uint64_t new_cgroups[DRAIN_MAX_NEW_KEYS];
};

int drain_init(struct drain *d, const struct probes_kernel *kernel, uint32_t n_cpus,
	       uint32_t n_rings, uint32_t block_records) IOT_MUST_CHECK;
int drain_init_packet(struct drain *d, uint32_t n_cpus, uint32_t n_rings,
		      uint32_t block_records) IOT_MUST_CHECK;
void drain_done(struct drain *d);

/* Reads producer positions. True if there is something to take. */
bool drain_refresh(struct drain *d);

/*
 * Takes up to budget records that were visible at the last refresh. Positive: DRAIN_FULL the batch
 * d->full has to be flushed before the next record; DRAIN_MORE the budget is used up; DRAIN_BUSY
 * all that is left is behind a record still being written. 0: everything was taken. -EBADMSG: the
 * ring d->broken_ring cannot be read any further.
 */
#define DRAIN_FULL 1
#define DRAIN_MORE 2
#define DRAIN_BUSY 3
int drain_run(struct drain *d, uint64_t budget, uint64_t *ret_taken) IOT_MUST_CHECK;

/* Current read positions of all rings, for spans. */
void drain_positions(const struct drain *d, uint64_t ret[IOT_MAX_RINGS]);
/* Gives back everything that is in files or was filed. */
void drain_publish(struct drain *d);
/* Is any ring at least 1/fraction used (unpublished records included)? As of the last refresh. */
bool drain_pressure(const struct drain *d, uint64_t fraction);
uint64_t drain_used(const struct drain *d);

/* ---- for the files that take a stream's records ---- */

int drain_take_block(struct drain *d, uint32_t ring, const void *data, uint32_t len);
int drain_take_packet(struct drain *d, uint32_t ring, const void *data, uint32_t len);

/* The segment of a record's epoch; NULL: no such epoch is in flight. */
static inline struct segment_out *drain_out(struct drain *d, uint64_t epoch)
{
	struct segment_out *o = &d->outs[epoch & 1];

	return o->books && o->books->epoch == epoch ? o : NULL;
}

/* Books that speak for a record nobody can place: those of the oldest epoch in flight. May have none. */
struct segment_out *drain_oldest(struct drain *d);
/* Counts a record that ends here, and files `l` in the books of its epoch, or of the oldest. */
void drain_file(struct drain *d, const struct ev_hdr *hdr, struct iot_loss *l);
/* Counts a record that the file has; also one that a dead daemon put there. */
void drain_note_block(struct drain *d, struct segment_out *o, const struct iot_request *r);
void drain_note_packet(struct drain *d, struct segment_out *o, const struct iot_packet *p);
void drain_note_device(struct drain *d, struct segment_out *o, uint64_t key);
void drain_note_cgroup(struct drain *d, struct segment_out *o, uint64_t key);
