// SPDX-License-Identifier: BSD-2-Clause
/* drain-packet.c - one observation from the ring to its batch, or to the ledger; see drain.h. */
#include "daemon/clock.h"
#include "daemon/drain.h"

/* Cold: a record that ends here. p is NULL where it could not be decoded. */
static void file_record(struct drain *d, const struct ev_hdr *hdr, const struct iot_packet *p,
			enum iot_loss_cause cause)
{
	struct iot_loss l;

	decode_packet_user_loss(hdr, p, cause, clock_now_ns(), &l);
	drain_file(d, hdr, &l);
}

static inline void note_record(struct drain *d, struct segment_out *o, const struct iot_packet *p)
{
	uint64_t iface = IOT_IFACE_KEY(p->netns, p->ifindex);

	epoch_count_written(o->books, p->cpu, p->probe);
	if (iface != o->books->devices.last)
		drain_note_device(d, o, iface);
	/* The programs' ids are named in the probe table. */
	if (p->where && p->probe < EV_PROBE_PACKET_PROGRAM)
		drain_note_cgroup(d, o, p->where);
	d->last_record_ns = p->ts_ns;
}

void drain_note_packet(struct drain *d, struct segment_out *o, const struct iot_packet *p)
{
	note_record(d, o, p);
}

int drain_take_packet(struct drain *d, uint32_t ring, const void *data, uint32_t len)
{
	struct segment_out *o;
	struct iot_packet p;
	struct ev_hdr hdr;
	int q;

	q = decode_packet_record(&d->packet_decoder, data, len, &p, &hdr);
	if (q != 0) {
		file_record(d, &hdr, NULL, IOT_LOSS_DECODE_FAILED);
		return 0;
	}
	o = drain_out(d, hdr.epoch);
	if (!o) {
		file_record(d, &hdr, &p, IOT_LOSS_DECODE_FAILED);
		return 0;
	}
	if (d->give_up) {
		file_record(d, &hdr, &p, IOT_LOSS_OUTPUT_FAILED);
		return 0;
	}
	if (__builtin_expect(segment_out_has(o, ring, d->rings[ring].pos), 0))
		return 0;
	p.ring = (uint8_t)ring;
	q = segment_out_add_packet(o, &p, d->rings[ring].pos);
	if (q != 0) {
		if (q == IOT_BATCH_FULL && iot_batch_count(o->batch) > 0) {
			d->full = o;
			return DRAIN_FULL;
		}
		/* No room in an empty batch, or no memory: the batch will not have it. */
		file_record(d, &hdr, &p, IOT_LOSS_OUTPUT_FAILED);
		return 0;
	}
	note_record(d, o, &p);
	return 0;
}
