// SPDX-License-Identifier: BSD-2-Clause
/* drain-block.c - one request from the ring to its batch, or to the ledger; see drain.h. */
#include "daemon/clock.h"
#include "daemon/drain.h"

/* Cold: a record that ends here. r is NULL where it could not be decoded. */
static void file_record(struct drain *d, const struct ev_hdr *hdr, const struct iot_request *r,
			enum iot_loss_cause cause)
{
	struct iot_loss l;

	decode_block_user_loss(hdr, r, cause, r ? r->start_ns : 0, clock_now_ns(), &l);
	drain_file(d, hdr, &l);
}

static inline void note_record(struct drain *d, struct segment_out *o, const struct iot_request *r)
{
	epoch_count_written(o->books, r->complete_cpu, EV_PROBE_BLOCK_COMPLETE);
	if (__builtin_expect(r->part != o->books->devices.last, 0)) {
		drain_note_device(d, o, r->dev);
		drain_note_device(d, o, r->part);
	}
	if (__builtin_expect(r->cgroup != o->books->cgroups.last, 0))
		drain_note_cgroup(d, o, r->cgroup);
	if (__builtin_expect(r->swap != IOT_SWAP_NONE, 0)) {
		uint64_t bytes = iot_swapped(r->swap, r->bytes_done, r->unswapped_bytes);

		if (r->swap == IOT_SWAP_OUT) {
			d->swap_out_bytes += bytes;
			o->books->swap_out_bytes += bytes;
		} else {
			d->swap_in_bytes += bytes;
			o->books->swap_in_bytes += bytes;
		}
	}
	d->last_record_ns = r->complete_ns;
}

void drain_note_block(struct drain *d, struct segment_out *o, const struct iot_request *r)
{
	note_record(d, o, r);
}

int drain_take_block(struct drain *d, uint32_t ring, const void *data, uint32_t len)
{
	struct segment_out *o;
	struct iot_request r;
	struct ev_hdr hdr;
	int q;

	q = decode_block_record(&d->decoder, data, len, &r, &hdr);
	if (__builtin_expect(q != 0, 0)) {
		file_record(d, &hdr, NULL, IOT_LOSS_DECODE_FAILED);
		return 0;
	}
	o = drain_out(d, hdr.epoch);
	if (__builtin_expect(!o, 0)) {
		file_record(d, &hdr, &r, IOT_LOSS_DECODE_FAILED);
		return 0;
	}
	if (__builtin_expect(d->give_up, 0)) {
		file_record(d, &hdr, &r, IOT_LOSS_OUTPUT_FAILED);
		return 0;
	}
	/* A dead daemon wrote it before it could say so to the kernel. */
	if (__builtin_expect(segment_out_has(o, ring, d->rings[ring].pos), 0))
		return 0;
	r.ring = (uint8_t)ring;
	q = segment_out_add(o, &r, d->rings[ring].pos);
	if (__builtin_expect(q != 0, 0)) {
		if (q == IOT_BATCH_FULL && iot_batch_count(o->batch) > 0) {
			d->full = o;
			return DRAIN_FULL;
		}
		/* No room in an empty batch, or no memory: the batch will not have it. */
		file_record(d, &hdr, &r, IOT_LOSS_OUTPUT_FAILED);
		return 0;
	}
	note_record(d, o, &r);
	return 0;
}
