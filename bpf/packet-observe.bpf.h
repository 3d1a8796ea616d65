/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-observe.bpf.h - one observation of one packet: who is it, is it selected, what is recorded.
 *
 * A program says which hook it is by compile-time constants (enum packet_how), calls emit_enter() and then
 * packet_observe(), which ends in exactly one of the outcomes of emit.bpf.h:
 *  - not_selected: the packet is not selected (suppressed: and an always-on event came too often);
 *  - folded: an end of something that no probe has seen as a packet. AF_UNIX and netlink messages are
 *    sk_buffs too, and most packets of unselected flows end like this;
 *  - emitted, or reserve_failed and filed against the packet.
 *
 * Probes at which drops and faults are rare are always on: for packets that are not selected as well, up
 * to a rate per CPU and reason. Such a record has an id that is used once, and says NOT_SELECTED.
 */
#pragma once

#include "bpf/packet-life.bpf.h"

/* What a hook says about itself; compile-time constants. */
enum packet_how {
	PACKET_AT_DATA = 1 << 0, /* received: the network header is at skb->data */
	PACKET_ENDS = 1 << 1,
	PACKET_ALWAYS = 1 << 2,	   /* up to a rate, whether selected or not */
	PACKET_ON_DEVICE = 1 << 3, /* skb->dev is a device */
	PACKET_SENDS = 1 << 4,	   /* the first sight may be in the sender's context */
	PACKET_PLACED =
		1 << 5, /* the caller knows device and namespace, and has them in the record */
	/* A packet passes it once per device; one bit for each such hook. */
	PACKET_ONCE_SHIFT = 8,
	PACKET_ONCE_RECEIVE = 1 << 8,
	PACKET_ONCE_RX = 1 << 9,
	PACKET_ONCE_QUEUE = 1 << 10,
};

/* No room on the ring: the loss is filed against the packet, with what says which flow it is of. */
static __always_inline void packet_lost(struct emit_run *run, const struct ev_packet *p)
{
	struct ev_packet_loss lost = {
		.bytes = p->len,
		.parent = p->parent,
		.netns = p->netns,
		.ifindex = p->ifindex,
		.sport = p->sport,
		.dport = p->dport,
		.protocol = p->protocol,
		.flags = p->flags,
		.code = p->code,
		.family = p->family,
		.ip_proto = p->ip_proto,
		.l4 = {p->l4[0], p->l4[1]},
	};

	__builtin_memcpy(lost.saddr, p->saddr, sizeof(lost.saddr));
	__builtin_memcpy(lost.daddr, p->daddr, sizeof(lost.daddr));
	emit_lost(run, p->hdr.id, &lost, p->ts_ns);
}

static __always_inline void packet_head(struct emit_run *run, struct ev_packet *p, __u16 len)
{
	p->hdr.len = len;
	p->hdr.probe = run->probe;
	p->hdr.cpu = run->cpu;
	p->hdr.epoch = run->active->epoch;
}

/* Emits p, which is complete but for its head, or files it as lost. */
static __always_inline void packet_emit(struct emit_run *run, struct ev_packet *p)
{
	void *ring = emit_ring(run);
	struct ev_packet *record = emit_reserve(ring, sizeof(*record));

	if (!record) {
		packet_lost(run, p);
		return;
	}
	packet_head(run, p, sizeof(*record));
	__builtin_memcpy(record, p, sizeof(*record));
	emit_submit(run, ring, record);
}

/* The same with the task that runs now. */
static __always_inline void packet_emit_task(struct emit_run *run, struct ev_packet *p)
{
	void *ring = emit_ring(run);
	struct ev_packet_task *record = emit_reserve(ring, sizeof(*record));
	__u64 task;

	if (!record) {
		packet_lost(run, p);
		return;
	}
	p->flags |= EV_PACKET_TASK;
	packet_head(run, p, sizeof(*record));
	__builtin_memcpy(&record->packet, p, sizeof(record->packet));
	task = bpf_get_current_pid_tgid();
	record->pid = (__u32)task;
	record->tgid = task >> 32;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	emit_submit(run, ring, record);
}

/* An observation that belongs to no entry: an id of its own, used once. */
static __always_inline void packet_once(struct emit_run *run, struct ev_packet *p)
{
	p->hdr.id = emit_new_id(run);
	p->hop = 1;
	if (!p->hdr.id)
		emit_identity_full(run);
}

/* The packet is not selected. true: it is to be emitted all the same; false: this was the end of the run. */
static __always_inline bool packet_unselected(struct emit_run *run, struct ev_packet *p,
					      const __u32 how, bool worth)
{
	__u32 which = run->probe << 7 ^ (__u32)p->code;

	if (!(how & PACKET_ALWAYS) || !worth) {
		emit_not_selected(run);
		return false;
	}
	if (!packet_bucket_takes(which, p->ts_ns)) {
		emit_suppressed(run);
		return false;
	}
	p->flags |= EV_PACKET_NOT_SELECTED;
	packet_once(run, p);
	return true;
}

/*
 * The device of a packet that has come off its path, where skb->dev may hold anything that fits: a pointer,
 * or a part of some queue. The index that the packet came in by is kept apart.
 */
static __always_inline void packet_old_device(struct ev_packet *p, struct sk_buff *skb,
					      const bool direct)
{
	struct net_device *dev = KREAD(direct, skb, dev);
	__u32 iif = KREAD(direct, skb, skb_iif), ifindex;

	p->ifindex = iif;
	if (!iif || (__s64)dev >= 0)
		return; /* nothing to hold it against, or no address of the kernel's */
	ifindex = BPF_CORE_READ(dev, ifindex);
	if (ifindex != iif)
		return;
	p->ifindex = ifindex;
	p->netns = packet_netns(dev, false);
}

/* What packet_look() has found out. */
struct packet_view {
	struct ev_packet_entry *e;
	bool live;  /* e stands for this packet */
	bool first; /* its first sight */
	bool selected;
};

/*
 * One packet at one probe, up to its record. worth: whether the event is one of those that are always on.
 * Without a live entry an end is the packet's first sight too, and needs no entry. true: p is to be
 * emitted, then packet_leave(); false: this was the end of the run.
 */
static __always_inline bool packet_look(struct emit_run *run, struct ev_packet *p,
					struct sk_buff *skb, const __u32 how, bool worth,
					const bool direct, struct packet_view *v)
{
	__u64 key = (__u64)skb;
	struct packet_filter filter;
	struct ev_packet_entry *e;
	struct net_device *dev;
	bool live, reaped, born, off;
	__u8 bytes[40];

	e = packet_entry(run, key, &live, &reaped);
	p->ts_ns = bpf_ktime_get_ns();
	v->e = e;
	v->live = live;
	v->selected = false;
	off = live && e->state == EV_PACKET_DESELECTED;
	born = live && e->state == EV_PACKET_UNDECIDED;
	if (off && !((how & PACKET_ALWAYS) && worth)) {
		if (how & PACKET_ENDS)
			packet_end(e, p->ts_ns);
		emit_not_selected(run);
		return false;
	}
	if ((how & PACKET_ENDS) && (!live || born) && !(how & PACKET_ALWAYS)) {
		if (born)
			packet_end(e, p->ts_ns);
		else if (e)
			e->touched = 0;
		emit_folded(run);
		return false;
	}
	packet_fields(p, skb, direct);
	/*
	 * No packet, but a message of AF_UNIX or netlink, say. Where its address stands for one, that one's
	 * end has not been seen, and this is the end of its successor; unless ends are all seen.
	 */
	if ((how & PACKET_ENDS) && !p->protocol && (!packet_exact || !live || born)) {
		if (live)
			packet_end(e, p->ts_ns);
		emit_folded(run);
		return false;
	}
	packet_headers(p, skb, bytes, &filter, how & PACKET_AT_DATA, direct);
	if (how & PACKET_ON_DEVICE) {
		dev = KREAD(direct, skb, dev);
		p->ifindex = KREAD(direct, dev, ifindex);
		p->netns = packet_netns(dev, direct);
	} else if (how & PACKET_PLACED) {
		/* said already */
	} else if (live && e->ifindex) {
		p->ifindex = e->ifindex;
		p->netns = e->netns;
	} else {
		packet_old_device(p, skb, direct);
	}
	if (how & PACKET_ENDS)
		p->flags |= EV_PACKET_END;

	if (live && !born && !off) {
		packet_continue(e, p, how >> PACKET_ONCE_SHIFT);
	} else if (!off && packet_selected(run, p, &filter)) {
		if (born) {
			p->parent = e->parent;
			packet_name(run, e, p, how >> PACKET_ONCE_SHIFT, e->flags);
		} else if (how & PACKET_ENDS) {
			if (e && packet_exact)
				__sync_fetch_and_add(&packet_shared.unseen_births, 1);
			else if (e && !e->touched)
				p->flags |= EV_PACKET_FROM_START;
			if (e)
				e->touched = 0;
			packet_once(run, p);
		} else if (reaped) {
			emit_identity_full(run);
		} else {
			packet_begin(run, e, key, p, how >> PACKET_ONCE_SHIFT);
		}
	} else {
		if (born)
			e->state = EV_PACKET_DESELECTED;
		else if (e && !live)
			e->touched = !(how & PACKET_ENDS);
		if (!packet_unselected(run, p, how, worth)) {
			if ((how & PACKET_ENDS) && live)
				packet_end(e, p->ts_ns);
			return false;
		}
		v->first = !live || born;
		return true;
	}
	v->selected = true;
	v->first = !live || born;
	return true;
}

/* The record is made: a packet that has ended goes. */
static __always_inline void packet_leave(const struct ev_packet *p, const __u32 how,
					 const struct packet_view *v)
{
	if ((how & PACKET_ENDS) && v->live)
		packet_end(v->e, p->ts_ns);
}

/* The whole of a run. false: the packet is not selected. */
static __always_inline bool packet_observe(struct emit_run *run, struct ev_packet *p,
					   struct sk_buff *skb, const __u32 how, bool worth,
					   const bool direct)
{
	struct packet_view v;

	if (!packet_look(run, p, skb, how, worth, direct, &v))
		return false;
	if ((how & PACKET_SENDS) && v.first)
		packet_emit_task(run, p);
	else
		packet_emit(run, p);
	packet_leave(p, how, &v);
	return v.selected;
}
