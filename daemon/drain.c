// SPDX-License-Identifier: BSD-2-Clause
/* drain.c - see drain.h. */
#include "daemon/clock.h"
#include "daemon/drain.h"

struct head {
	const void *data;
	uint32_t len;
	uint64_t time_ns;
	int state; /* of ring_peek() */
};

static int init_outs(struct drain *d, uint32_t n_rings, uint32_t block_records)
{
	int r;

	d->n_rings = n_rings;
	for (unsigned int i = 0; i < 2; i++) {
		r = segment_out_init(&d->outs[i], d->stream, block_records, n_rings);
		if (r < 0) {
			drain_done(d);
			return r;
		}
	}
	return 0;
}

int drain_init(struct drain *d, const struct probes_kernel *kernel, uint32_t n_cpus,
	       uint32_t n_rings, uint32_t block_records)
{
	if (n_rings < 1 || n_rings > IOT_MAX_RINGS)
		return -EINVAL;
	*d = (struct drain){.stream = IOT_STREAM_BLOCK, .take = drain_take_block};
	decode_block_init(&d->decoder, kernel, n_cpus);
	return init_outs(d, n_rings, block_records);
}

int drain_init_packet(struct drain *d, uint32_t n_cpus, uint32_t n_rings, uint32_t block_records)
{
	int r;

	if (n_rings < 1 || n_rings > IOT_MAX_RINGS)
		return -EINVAL;
	*d = (struct drain){.stream = IOT_STREAM_PACKET, .take = drain_take_packet};
	d->packet_decoder = (struct decode_packet){.n_cpus = n_cpus, .places = &d->places};
	r = places_init(&d->places);
	if (r < 0)
		return r;
	return init_outs(d, n_rings, block_records);
}

void drain_done(struct drain *d)
{
	segment_out_done(&d->outs[0]);
	segment_out_done(&d->outs[1]);
	places_done(&d->places);
}

bool drain_refresh(struct drain *d)
{
	bool any = false;

	for (uint32_t i = 0; i < d->n_rings; i++) {
		struct ring *r = &d->rings[i];

		any |= ring_refresh(r);
		d->ring_high_bytes = IOT_MAX(d->ring_high_bytes, ring_used(r));
	}
	return any;
}

struct segment_out *drain_oldest(struct drain *d)
{
	struct segment_out *a = &d->outs[0], *b = &d->outs[1];

	if (!a->books)
		return b;
	if (!b->books)
		return a;
	return a->books->epoch < b->books->epoch ? a : b;
}

void drain_file(struct drain *d, const struct ev_hdr *hdr, struct iot_loss *l)
{
	struct segment_out *o = drain_out(d, hdr->epoch);
	uint32_t cpu = o ? hdr->cpu : UINT32_MAX;

	if (l->cause == IOT_LOSS_OUTPUT_FAILED)
		d->output_failed++;
	else
		d->decode_failed++;
	if (!o)
		o = drain_oldest(d);
	if (!o->books)
		return; /* after the last seal: no program should have been running */
	if (!l->first_ns)
		l->first_ns = o->books->first_ns;
	epoch_file_loss(o->books, cpu, l, false);
}

void drain_note_device(struct drain *d, struct segment_out *o, uint64_t key)
{
	if (id_set_add(&o->books->devices, key) && d->n_new_devices < DRAIN_MAX_NEW_KEYS)
		d->new_devices[d->n_new_devices++] = key;
}

void drain_note_cgroup(struct drain *d, struct segment_out *o, uint64_t key)
{
	if (id_set_add(&o->books->cgroups, key) && d->n_new_cgroups < DRAIN_MAX_NEW_KEYS)
		d->new_cgroups[d->n_new_cgroups++] = key;
}

/* One ring alone: nothing to merge. */
static int run_single(struct drain *d, uint64_t budget, uint64_t *ret_taken)
{
	struct ring *ring = &d->rings[0];
	uint64_t taken = 0;
	int r;

	for (;;) {
		const void *data;
		uint32_t len;

		r = ring_peek(ring, &data, &len);
		if (r != 0)
			break;
		if (taken == budget) {
			*ret_taken = taken;
			return DRAIN_MORE;
		}
		/* The producer's cache lines are cold: fetch the record after the next one. */
		__builtin_prefetch((const uint8_t *)data + 3UL * (len + RING_HDR_BYTES));
		__builtin_prefetch((const uint8_t *)data + 3UL * (len + RING_HDR_BYTES) + 64);
		__builtin_prefetch((const uint8_t *)data + 3UL * (len + RING_HDR_BYTES) + 128);
		if (d->take(d, 0, data, len) != 0) {
			*ret_taken = taken;
			return DRAIN_FULL;
		}
		ring_advance(ring, len);
		taken++;
	}
	*ret_taken = taken;
	if (r == RING_BUSY)
		return DRAIN_BUSY;
	if (r == RING_EMPTY)
		return 0;
	if (r < 0)
		d->broken_ring = 0;
	return r;
}

static void look(struct drain *d, uint32_t i, struct head *h)
{
	h->state = ring_peek(&d->rings[i], &h->data, &h->len);
	if (h->state == 0)
		h->time_ns = d->stream == IOT_STREAM_PACKET ? decode_packet_time(h->data, h->len)
							    : decode_block_time(h->data, h->len);
}

/* The ring with the oldest head, and up to where it may be read before the next one's turn. */
static bool choose(const struct head *heads, uint32_t n, uint32_t *ret, uint64_t *ret_bound)
{
	uint64_t oldest_ns = UINT64_MAX, second_ns = UINT64_MAX;
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (heads[i].state != 0)
			continue;
		if (!any || heads[i].time_ns < oldest_ns) {
			second_ns = any ? oldest_ns : UINT64_MAX;
			oldest_ns = heads[i].time_ns;
			*ret = i;
			any = true;
		} else if (heads[i].time_ns < second_ns) {
			second_ns = heads[i].time_ns;
		}
	}
	*ret_bound = second_ns > UINT64_MAX - DRAIN_SLACK_NS ? UINT64_MAX
							     : second_ns + DRAIN_SLACK_NS;
	return any;
}

static int run_merged(struct drain *d, uint64_t budget, uint64_t *ret_taken)
{
	struct head heads[IOT_MAX_RINGS];
	uint64_t taken = 0, bound;
	uint32_t k = 0;
	int r = 0;

	for (uint32_t i = 0; i < d->n_rings; i++)
		look(d, i, &heads[i]);
	while (r == 0 && choose(heads, d->n_rings, &k, &bound)) {
		struct head *h = &heads[k];

		do {
			if (taken == budget) {
				r = DRAIN_MORE;
				break;
			}
			if (d->take(d, k, h->data, h->len) != 0) {
				r = DRAIN_FULL;
				break;
			}
			ring_advance(&d->rings[k], h->len);
			taken++;
			look(d, k, h);
		} while (h->state == 0 && h->time_ns <= bound);
	}
	*ret_taken = taken;
	for (uint32_t i = 0; i < d->n_rings && r == 0; i++) {
		if (heads[i].state < 0) {
			d->broken_ring = i;
			return heads[i].state;
		}
	}
	for (uint32_t i = 0; i < d->n_rings && r == 0; i++)
		if (heads[i].state == RING_BUSY)
			r = DRAIN_BUSY;
	return r;
}

int drain_run(struct drain *d, uint64_t budget, uint64_t *ret_taken)
{
	return d->n_rings == 1 ? run_single(d, budget, ret_taken)
			       : run_merged(d, budget, ret_taken);
}

void drain_positions(const struct drain *d, uint64_t ret[IOT_MAX_RINGS])
{
	for (uint32_t i = 0; i < d->n_rings; i++)
		ret[i] = d->rings[i].pos;
}

void drain_publish(struct drain *d)
{
	for (uint32_t i = 0; i < d->n_rings; i++) {
		uint64_t pos = d->rings[i].pos;

		pos = IOT_MIN(pos, d->outs[0].first[i]);
		pos = IOT_MIN(pos, d->outs[1].first[i]);
		ring_publish(&d->rings[i], pos);
	}
}

bool drain_pressure(const struct drain *d, uint64_t fraction)
{
	for (uint32_t i = 0; i < d->n_rings; i++)
		if (ring_used(&d->rings[i]) >= d->rings[i].size / fraction)
			return true;
	return false;
}

uint64_t drain_used(const struct drain *d)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < d->n_rings; i++)
		used += ring_used(&d->rings[i]);
	return used;
}
