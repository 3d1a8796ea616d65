// SPDX-License-Identifier: BSD-2-Clause
/* segment-out.c - see segment-out.h. */
#include <assert.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/crash-point.h"
#include "daemon/decode-block.h"
#include "daemon/segment-out.h"

static void forget_first(struct segment_out *o)
{
	for (uint32_t i = 0; i < o->n_rings; i++)
		o->first[i] = SEGMENT_OUT_NONE;
}

int segment_out_init(struct segment_out *o, uint32_t block_records, uint32_t n_rings)
{
	int r;

	assert(n_rings >= 1 && n_rings <= IOT_MAX_RINGS);
	*o = (struct segment_out){.n_rings = n_rings};
	forget_first(o);
	r = iot_batch_new(block_records, &o->batch);
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

int segment_out_sync(const struct segment_out *o)
{
	if (!o->writer)
		return 0;
	return fdatasync(iot_writer_fd(o->writer)) < 0 ? -errno : 0;
}

uint64_t segment_out_abandon(struct segment_out *o)
{
	uint32_t n = iot_batch_count(o->batch);
	uint64_t now_ns = clock_now_ns();

	for (uint32_t i = 0; i < n; i++) {
		struct iot_request r;
		struct ev_hdr hdr;
		struct iot_loss l;

		iot_batch_get(o->batch, i, &r);
		hdr = (struct ev_hdr){
			.probe = EV_PROBE_BLOCK_COMPLETE, .cpu = r.complete_cpu, .id = r.id};
		decode_block_user_loss(&hdr, &r, IOT_LOSS_OUTPUT_FAILED,
				       r.start_ns ? r.start_ns : o->books->first_ns, now_ns, &l);
		epoch_file_loss(o->books, hdr.cpu, &l, true);
	}
	iot_batch_clear(o->batch);
	forget_first(o);
	o->begin_ns = 0;
	return n;
}
