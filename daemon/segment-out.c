// SPDX-License-Identifier: BSD-2-Clause
/* segment-out.c - see segment-out.h. */
#include <assert.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/crash-point.h"
#include "daemon/decode-packet.h"
#include "daemon/segment-out.h"

static void forget_first(struct segment_out *o)
{
	for (uint32_t i = 0; i < o->n_rings; i++)
		o->first[i] = SEGMENT_OUT_NONE;
}

int segment_out_init(struct segment_out *o, enum iot_stream stream, uint32_t block_records,
		     uint32_t n_rings)
{
	int r;

	assert(n_rings >= 1 && n_rings <= IOT_MAX_RINGS);
	*o = (struct segment_out){.n_rings = n_rings};
	forget_first(o);
	r = iot_batch_new_stream(stream, block_records, &o->batch);
	return r < 0 ? r : 0;
}

void segment_out_done(struct segment_out *o)
{
	o->books = epoch_free(o->books);
	o->writer = iot_writer_close(o->writer);
	o->batch = iot_batch_free(o->batch);
}

void segment_out_begin(struct segment_out *o, struct epoch *books, struct iot_writer *writer,
		       uint64_t seq, const uint64_t *p0, uint64_t now_ns)
{
	assert(!o->books && iot_batch_count(o->batch) == 0);
	o->books = books;
	o->writer = writer;
	o->seq = seq;
	o->opened_ns = now_ns;
	o->begin_ns = 0;
	o->sync_error = 0;
	o->doubtful = false;
	memcpy(o->p0, p0, o->n_rings * sizeof(*p0));
	forget_first(o);
}

void segment_out_end(struct segment_out *o, struct epoch **ret_books,
		     struct iot_writer **ret_writer)
{
	assert(iot_batch_count(o->batch) == 0);
	*ret_books = IOT_TAKE_PTR(o->books);
	*ret_writer = IOT_TAKE_PTR(o->writer);
}

int segment_out_flush(struct segment_out *o, const uint64_t *pos)
{
	struct iot_span spans[IOT_MAX_RINGS];
	int r;

	if (!o->books || iot_batch_count(o->batch) == 0)
		return 0;
	for (uint32_t i = 0; i < o->n_rings; i++)
		spans[i] = (struct iot_span){.p0 = o->p0[i], .p1 = IOT_MAX(o->p0[i], pos[i])};
	crash_point("block");
	r = iot_writer_put(o->writer, o->batch, spans, o->n_rings);
	if (r < 0)
		return r;
	crash_point("block-written");
	for (uint32_t i = 0; i < o->n_rings; i++)
		o->p0[i] = spans[i].p1;
	forget_first(o);
	iot_batch_clear(o->batch);
	o->begin_ns = 0;
	return 0;
}

void segment_out_sync(struct segment_out *o)
{
	if (!o->writer || o->sync_error)
		return;
	/* Interrupted is not failed; the next block's sync takes this one along. EINVAL: there is no sync here. */
	if (fdatasync(iot_writer_fd(o->writer)) < 0 && errno != EINTR && errno != EINVAL)
		o->sync_error = -errno;
}

/* What the record in row i would be as a loss; *ret_cpu: whose books it is in. */
static void loss_of_row(const struct segment_out *o, uint32_t i, uint64_t now_ns,
			struct iot_loss *ret, uint32_t *ret_cpu)
{
	struct ev_hdr hdr = {};

	if (iot_batch_stream(o->batch) == IOT_STREAM_PACKET) {
		struct iot_packet p;

		iot_batch_get_packet(o->batch, i, &p);
		hdr.probe = p.probe;
		hdr.id = p.id;
		decode_packet_user_loss(&hdr, &p, IOT_LOSS_OUTPUT_FAILED, now_ns, ret);
		*ret_cpu = p.cpu;
	} else {
		struct iot_request r;

		iot_batch_get(o->batch, i, &r);
		hdr.probe = EV_PROBE_BLOCK_COMPLETE;
		hdr.id = r.id;
		decode_block_user_loss(&hdr, &r, IOT_LOSS_OUTPUT_FAILED,
				       r.start_ns ? r.start_ns : o->books->first_ns, now_ns, ret);
		*ret_cpu = r.complete_cpu;
	}
}

uint64_t segment_out_abandon(struct segment_out *o)
{
	uint32_t n = iot_batch_count(o->batch);
	uint64_t now_ns = clock_now_ns();

	for (uint32_t i = 0; i < n; i++) {
		struct iot_loss l;
		uint32_t cpu;

		loss_of_row(o, i, now_ns, &l, &cpu);
		epoch_file_loss(o->books, cpu, &l, true);
	}
	iot_batch_clear(o->batch);
	forget_first(o);
	o->begin_ns = 0;
	return n;
}
