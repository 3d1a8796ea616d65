/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-program.bpf.c - the packet stream's probes at somebody else's TC or XDP program, and a list of all programs.
 *
 * Loaded once for each program that is observed, with the maps of packet.bpf.c in place of its own: a program to be
 * traced is named when the one that traces it is loaded. The trampoline of such a program can be had where functions
 * of the kernel cannot be hooked at all.
 *
 * One record a run, made at its return, for that is when the outcome is known; but of the packet as it came in, since a
 * program may write over its headers, and a question about a flow means what was sent. So the entry observes, counts as
 * folded (or not selected), and keeps the record for the return. Where the entry is missing (the gate opened in
 * between, or the run was missed) the record has no flow: it may be any.
 *
 * A TC program returns before its caller does anything with the packet, so this never comes after the packet's end.
 * An XDP program has no sk_buff: a frame has an id for one run, see EV_PACKET_FRAME. In generic mode there is one
 * already, but nothing in the frame leads to it.
 *
 * A tail call goes past the hook at a program's entry: what such a program does is the return of the one that was called.
 */
#include "bpf/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define EMIT_FIRST_PROBE EV_FIRST_PACKET_PROBE
#define EMIT_N_PROBES EV_N_PACKET_PROBES
#define EMIT_LEDGER_VAL struct ev_packet_loss
#define EMIT_LEDGER_JOIN(old, val) ((old)->flags |= (val)->flags)
#include "bpf/compat.bpf.h"
#include "bpf/emit.bpf.h"
#include "bpf/packet-kept.bpf.h"
#include "bpf/packet-observe.bpf.h"
#include "bpf/packet-programs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 program_probe = EV_PROBE_PACKET_PROGRAM;
const volatile __u32 program_id = 0;

/* The record that the entry made, with the outcome. false: it made none. Programs nest (a clone sent to a device with one). */
static __always_inline bool program_return(struct emit_run *run, __u64 key, __s32 code,
					   const bool frame)
{
	struct packet_kept *kept = packet_unkeep(&program_stack, key, program_probe);
	struct ev_packet p;

	if (!kept)
		return false;
	if (!kept->state) {
		emit_not_selected(run);
		return true;
	}
	__builtin_memcpy(&p, &kept->packet, sizeof(p));
	p.ts_ns = bpf_ktime_get_ns();
	p.code = code;
	if (frame)
		packet_once(run, &p);
	if (!frame && kept->state == PACKET_KEPT_FIRST)
		packet_emit_task(run, &p);
	else
		packet_emit(run, &p);
	return true;
}

/* ---- packets ---------------------------------------------------------------------------------- */

SEC("fentry")
int BPF_PROG(tc_entry, struct sk_buff *skb)
{
	struct ev_packet p = {.where = program_id};
	struct packet_view v = {};
	struct emit_run run;

	if (!emit_enter(&run, program_probe))
		return 0;
	if (packet_look(&run, &p, skb, PACKET_ON_DEVICE, true, true, &v))
		emit_folded(&run);
	packet_keep(&program_stack, (__u64)skb, program_probe, &p,
		    !v.selected ? PACKET_KEPT_NOTHING
		    : v.first	? PACKET_KEPT_FIRST
				: PACKET_KEPT,
		    true);
	return 0;
}

SEC("fexit")
int BPF_PROG(tc_return, struct sk_buff *skb, int code)
{
	struct ev_packet p = {};
	struct packet_view v;
	struct emit_run run;

	if (!emit_enter(&run, program_probe) || program_return(&run, (__u64)skb, code, false))
		return 0;
	if (!packet_look(&run, &p, skb, PACKET_ON_DEVICE, true, true, &v))
		return 0;
	packet_without_flow(&p);
	p.where = program_id;
	p.code = code;
	packet_emit(&run, &p);
	return 0;
}

/* ---- frames ----------------------------------------------------------------------------------- */

static __always_inline void frame_begin(struct ev_packet *p, struct xdp_buff *xdp)
{
	struct net_device *dev = xdp->rxq->dev;

	p->where = program_id;
	p->flags = EV_PACKET_FRAME | EV_PACKET_FROM_START | EV_PACKET_END;
	p->ts_ns = bpf_ktime_get_ns();
	p->len = (__u64)xdp->data_end - (__u64)xdp->data;
	p->ifindex = dev->ifindex;
	p->netns = packet_netns(dev, true);
}

SEC("fentry")
int BPF_PROG(xdp_entry, struct xdp_buff *xdp)
{
	struct packet_filter filter;
	struct ev_packet p = {};
	struct emit_run run;
	bool selected;

	if (!emit_enter(&run, program_probe))
		return 0;
	frame_begin(&p, xdp);
	packet_frame(&p, xdp->data, &filter);
	selected = packet_selected(&run, &p, &filter);
	if (selected)
		emit_folded(&run);
	else
		emit_not_selected(&run);
	packet_keep(&program_stack, (__u64)xdp, program_probe, &p,
		    selected ? PACKET_KEPT : PACKET_KEPT_NOTHING, true);
	return 0;
}

SEC("fexit")
int BPF_PROG(xdp_return, struct xdp_buff *xdp, int code)
{
	struct ev_packet p = {};
	struct emit_run run;

	if (!emit_enter(&run, program_probe) || program_return(&run, (__u64)xdp, code, true))
		return 0;
	frame_begin(&p, xdp);
	p.flags |= EV_PACKET_NO_HEADER;
	p.code = code;
	packet_once(&run, &p);
	packet_emit(&run, &p);
	return 0;
}

/* ---- which programs there are ----------------------------------------------------------------- */

/* With how many hold each: what nobody but its observer holds is unused. */
SEC("iter/bpf_prog")
int list_programs(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *prog = ctx->prog;
	struct ev_program row = {};

	if (!prog)
		return 0;
	row.id = prog->aux->id;
	row.type = prog->type;
	row.references = prog->aux->refcnt.counter;
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}
