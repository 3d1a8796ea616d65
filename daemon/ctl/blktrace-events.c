// SPDX-License-Identifier: BSD-2-Clause
/*
 * blktrace-events.c - one request as the events that blktrace would have shown. Pure.
 *
 * A recorded request is one thing; blktrace's tools want its life as events on CPUs:
 *   Q, G   at start (else insert, else issue): synthetic, since btt and fio begin with them. One
 *          Q for the whole request: what was merged into it is in its bytes, without M events.
 *          None for passthrough commands: they carry no bio, and fio would replay them as reads.
 *   I      at insert, if there was one: direct issue has none, as in a real trace.
 *   D      at issue. After a requeue R and D again at the last issue: when it was taken back is
 *          not recorded, only that it was, so R has the time of the D that followed.
 *   C      at completion, on its own CPU. All others are on the issuing CPU.
 * Categories follow the kernel (block/blk-core: blk_fill_rwbs and kernel/trace/blktrace.c,
 * __blk_add_trace), with one exception: a data write that asked for a pre-flush does not carry
 * BLK_TC_FLUSH, since the flush is a request of its own here and fio would replay the write as a
 * flush and drop its data.
 */
#include <linux/blktrace_api.h>

#include "daemon/ctl/export.h"

uint32_t bt_category(unsigned int op, uint32_t flags)
{
	uint32_t tc;

	switch (op) {
	case IOT_OP_READ:
	case IOT_OP_FLUSH: /* the kernel files an operation without data direction under read */
	case IOT_OP_DRV_IN:
	case IOT_OP_OTHER:
		tc = BLK_TC_READ;
		break;
	default:
		tc = BLK_TC_WRITE;
	}
	if (op == IOT_OP_FLUSH)
		tc |= BLK_TC_FLUSH;
	if (op == IOT_OP_DISCARD || op == IOT_OP_SECURE_ERASE)
		tc |= BLK_TC_DISCARD;
	tc |= op == IOT_OP_DRV_IN || op == IOT_OP_DRV_OUT ? BLK_TC_PC : BLK_TC_FS;
	if (flags & IOT_FLAG_SYNC)
		tc |= BLK_TC_SYNC;
	if (flags & IOT_FLAG_META)
		tc |= BLK_TC_META;
	if (flags & IOT_FLAG_AHEAD)
		tc |= BLK_TC_AHEAD;
	if (flags & IOT_FLAG_FUA)
		tc |= BLK_TC_FUA;
	return tc << BLK_TC_SHIFT;
}

static uint32_t known_cpu(uint32_t cpu)
{
	return cpu < IOT_CPU_NONE ? cpu : 0;
}

size_t bt_translate(const struct iot_request *r, uint32_t device, uint64_t offset_ns,
		    struct bt_event out[BT_MAX_EVENTS])
{
	uint64_t queued_ns = r->start_ns ? r->start_ns : r->insert_ns ? r->insert_ns : r->issue_ns;
	const struct bt_event base = {
		.sector = r->sector == IOT_SECTOR_NONE ? 0 : r->sector,
		.device = device,
		.cpu = known_cpu(r->issue_ns ? r->issue_cpu : r->complete_cpu),
		.action = bt_category(r->op, r->flags),
		.pid = r->submitter == IOT_SUBMITTER_NONE ? 0 : r->pid,
		.bytes = r->bytes,
	};
	size_t n = 0;

#define EVENT(ns, act)                             \
	do {                                       \
		out[n] = base;                     \
		out[n].time_ns = (ns) + offset_ns; \
		out[n].action |= (act);            \
		n++;                               \
	} while (0)

	if (queued_ns && r->op != IOT_OP_DRV_IN && r->op != IOT_OP_DRV_OUT) {
		EVENT(queued_ns, BLK_TA_QUEUE);
		EVENT(queued_ns, BLK_TA_GETRQ);
	}
	if (r->insert_ns)
		EVENT(r->insert_ns, BLK_TA_INSERT);
	if (r->issue_ns)
		EVENT(r->issue_ns, BLK_TA_ISSUE);
	if (r->requeues && r->issue_ns && r->issue_last_ns > r->issue_ns) {
		EVENT(r->issue_last_ns, BLK_TA_REQUEUE);
		EVENT(r->issue_last_ns, BLK_TA_ISSUE);
	}
	if (r->complete_ns) {
		EVENT(r->complete_ns, BLK_TA_COMPLETE);
		out[n - 1].cpu = known_cpu(r->complete_cpu);
		/* The kernel stores its negative errno in this unsigned field. */
		out[n - 1].error = (uint16_t)r->error;
	}
#undef EVENT
	return n;
}
