/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment-out.h - one epoch's way to disk: its books, the batch being filled and the open file.
 *
 * A block of the file says which ring positions [p0, p1) it covers: every record of this epoch in
 * that span is in the block, or filed as lost in user space. Spans of one file follow each other
 * without hole; p1 never regresses. Two files are open around a flip and their records are mixed in
 * the ring, so spans of neighbouring files may overlap (the later file starts where the earlier one
 * stood when it was opened) but leave no hole either.
 *
 * A record of this epoch that lies before p0 is in the file: it was read once, by a daemon that was
 * killed before it published the position, and is not taken again.
 *
 * `first` is what the consumer position depends on: the position of the oldest record that is in
 * the batch and not in the file. Nothing at or behind it may be given back to the kernel.
 */
#pragma once

#include "daemon/epoch.h"
#include "format/batch.h"
#include "format/packet.h"
#include "format/writer.h"

#define SEGMENT_OUT_NONE UINT64_MAX

struct segment_out {
	struct epoch *books; /* NULL: no epoch of this parity is in flight */
	struct iot_writer *writer;
	struct iot_batch *batch; /* allocated once per parity */
	uint64_t seq;
	uint64_t opened_ns;
	uint64_t begin_ns; /* the batch got its first record, as noted by the caller; 0 = empty */
	uint32_t n_rings;
	uint64_t p0[IOT_MAX_RINGS];
	uint64_t first[IOT_MAX_RINGS];
	int sync_error; /* of the file: it is not synced any more, and sealed by being written anew */
	bool doubtful; /* whether one failed is not known: it is sealed in the same way */
};

int segment_out_init(struct segment_out *o, enum iot_stream stream, uint32_t block_records,
		     uint32_t n_rings) IOT_MUST_CHECK;
void segment_out_done(struct segment_out *o);

/* Takes ownership of books and writer. p0: where the spans of the file start. */
void segment_out_begin(struct segment_out *o, struct epoch *books, struct iot_writer *writer,
		       uint64_t seq, const uint64_t *p0, uint64_t now_ns);
/* Hands books and writer back; the batch must be empty. */
void segment_out_end(struct segment_out *o, struct epoch **ret_books,
		     struct iot_writer **ret_writer);

static inline bool segment_out_active(const struct segment_out *o)
{
	return o->books != NULL;
}

static inline bool segment_out_has(const struct segment_out *o, uint32_t ring, uint64_t pos)
{
	return pos < o->p0[ring];
}

/* Takes one decoded record at ring position pos of ring `r->ring`. IOT_BATCH_FULL: flush first. */
static inline IOT_MUST_CHECK int segment_out_add(struct segment_out *o, const struct iot_request *r,
						 uint64_t pos)
{
	int q = iot_batch_add(o->batch, r);

	if (__builtin_expect(q == 0 && o->first[r->ring] == SEGMENT_OUT_NONE, 0))
		o->first[r->ring] = pos;
	return q;
}

static inline IOT_MUST_CHECK int segment_out_add_packet(struct segment_out *o,
							const struct iot_packet *p, uint64_t pos)
{
	int q = iot_batch_add_packet(o->batch, p);

	if (__builtin_expect(q == 0 && o->first[p->ring] == SEGMENT_OUT_NONE, 0))
		o->first[p->ring] = pos;
	return q;
}

/*
 * Writes the batch as one block whose spans end at pos[]. On error nothing changed and it may be
 * called again. With nothing in the batch there is nothing to write.
 */
int segment_out_flush(struct segment_out *o, const uint64_t *pos) IOT_MUST_CHECK;
/* fdatasync of what was written (sync policy `block`). An error is remembered: there is no second try. */
void segment_out_sync(struct segment_out *o);

/*
 * Gives up on the batch: every record of it becomes output_failed, filed by owner. For the end of
 * a daemon whose disk takes no more; returns how many.
 */
uint64_t segment_out_abandon(struct segment_out *o);
