/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-life.bpf.h - which packet an sk_buff's address stands for, where its life begins and ends, and
 * whether it is selected.
 *
 * Addresses lie: a handful of sk_buffs serve a flood, reused within microseconds. The identity map turns
 * an address into a generation, and changes it only on proof: an observed birth, or an observed end of
 * the holder before. Otherwise the id goes on. Two packets under one id make a presence ambiguous, which
 * the record says (EV_PACKET_MERGED); one packet under two ids would make an absence false.
 *
 * An end leaves the entry, idle, so that the address's next holder is known from its first sight on.
 * Entries that are idle for long are deleted by the daemon as in bpf/block-life.bpf.h: it announces
 * reap_before_ns, waits for running programs, and relies on none of them using such an entry.
 *
 * Selection is decided once, at the packet's first sight, and lasts for its life; a filter per event
 * would make every absence meaningless. With tracepoints alone an unselected packet gets no entry: its
 * end might not be observed, and the next holder of the address, whom the filter wants, would be
 * taken for it. So it is asked again at each of its events, and may be selected late (after an address
 * translation, say); FROM_START stays clear then, since each such event leaves its mark in the idle
 * entry until an end is observed.
 *
 * One context at a time works on a packet, so plain stores into its entry are enough.
 */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/emit.bpf.h"
#include "bpf/packet-read.bpf.h"

/* A map of its own, since more than one object uses it (bpf/packet-program.bpf.c): struct ev_packet_shared. */
struct ev_packet_shared packet_shared SEC(".data.shared") = {};
/* Births and ends are all observed. Without it ids of TCP packets are always taken for merged. */
#define packet_exact (packet_shared.exact)

/* generation of what has been born and not been seen as a packet: in use, and not worth a number yet */
#define PACKET_UNNAMED (~0ULL)

/* There is an expression. */
const volatile bool packet_has_filter = false;
const volatile __u64 packet_bucket_rate =
	100; /* always-on events a second, CPU and reason; <= 1e6 */
/* Reasons up to this say nothing: not dropped, consumed, not specified. */
const volatile __u32 packet_reason_unspecified = 2;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct ev_packet_entry);
} identities SEC(".maps");

/* What is put into the map; the stack has no room for it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ev_packet_entry);
} blanks SEC(".maps");

#define PACKET_BUCKETS 512 /* power of two; reasons of the core and of subsystems share some */

struct packet_bucket {
	__u64 at_ns; /* refilled until then */
	__u64 tokens;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACKET_BUCKETS);
	__type(key, __u32);
	__type(value, struct packet_bucket);
} buckets SEC(".maps");

/*
 * Whether an always-on event may be recorded although its packet is not selected. A program that interrupts
 * another one here may make one token two; the books do not care.
 */
static __always_inline bool packet_bucket_takes(__u32 which, __u64 now)
{
	__u64 rate = packet_bucket_rate, gained;
	struct packet_bucket *b;

	which &= PACKET_BUCKETS - 1;
	b = bpf_map_lookup_elem(&buckets, &which);
	if (!b)
		return false;
	gained = now - b->at_ns;
	if (gained >= 1000000000ULL) {
		b->at_ns = now;
		b->tokens = rate;
	} else if (gained * rate >= 1000000000ULL) {
		b->at_ns = now;
		b->tokens += gained * rate / 1000000000ULL;
		if (b->tokens > rate)
			b->tokens = rate;
	}
	if (!b->tokens)
		return false;
	b->tokens--;
	return true;
}

/* The same for both directions of a flow, and for all fragments of a datagram. */
static __always_inline __u32 packet_flow_hash(const struct ev_packet *p)
{
	__u64 h = p->ip_proto | (__u64)p->family << 8;

#pragma unroll
	for (int i = 0; i < 16; i += 4) {
		__u32 a = packet_word(p->saddr, i), b = packet_word(p->daddr, i);

		h = (h ^ (a ^ b)) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
		h += (__u64)a + b;
	}
	if (!(p->flags & EV_PACKET_FRAGMENT))
		h ^= (__u64)(p->sport ^ p->dport) << 20 | (__u32)(p->sport + p->dport);
	h *= 0x9e3779b97f4a7c15ULL;
	return h >> 32;
}

/* One half per address, so that a translation of one of them can be told from another packet. */
static __always_inline __u32 packet_addresses(const struct ev_packet *p)
{
	__u64 s = 0, d = 0;

#pragma unroll
	for (int i = 0; i < 16; i += 8) {
		s = (s ^ *(__u64 *)(p->saddr + i)) * 0x9e3779b97f4a7c15ULL;
		d = (d ^ *(__u64 *)(p->daddr + i)) * 0x9e3779b97f4a7c15ULL;
	}
	return (s >> 48) << 16 | d >> 48;
}

/* f: where the packet is; an event without a packet at hand (f->n 0) matches no expression. */
static __always_inline bool packet_selected(struct emit_run *run, const struct ev_packet *p,
					    struct packet_filter *f)
{
	__u32 sample = run->active->sample;

	if (sample == EV_SAMPLE_EVERYTHING)
		return true;
	if (sample > 1 && packet_flow_hash(p) % sample != 0)
		return false;
	return !packet_has_filter || packet_filter_run(f);
}

/*
 * The address's entry, or NULL if there is none. *ret_live: it stands for a packet now. *ret_reaped: the
 * daemon may be deleting it, so it must be left alone and no other can be had.
 */
static __always_inline struct ev_packet_entry *packet_entry(struct emit_run *run, __u64 key,
							    bool *ret_live, bool *ret_reaped)
{
	struct ev_packet_entry *e = bpf_map_lookup_elem(&identities, &key);

	*ret_live = e && e->generation;
	*ret_reaped = e && !*ret_live && e->end_ns < run->active->reap_before_ns;
	return *ret_reaped ? NULL : e;
}

/* An entry of its own for an address that has none; NULL if there is no room. Nothing stands for nobody. */
static __always_inline struct ev_packet_entry *packet_entry_new(__u64 key)
{
	struct ev_packet_entry *blank;
	struct ev_control *shared;
	__u32 zero = 0;

	blank = bpf_map_lookup_elem(&blanks, &zero);
	if (!blank || bpf_map_update_elem(&identities, &key, blank, BPF_NOEXIST))
		return NULL;
	shared = bpf_map_lookup_elem(&control, &zero);
	if (shared)
		__sync_fetch_and_add(&shared->identities, 1);
	return bpf_map_lookup_elem(&identities, &key);
}

/*
 * The first sight of a packet that is selected, in its entry; keep: what is said of it for good. p: a
 * generation, 0 if there is none to be had.
 */
static __always_inline void packet_name(struct emit_run *run, struct ev_packet_entry *e,
					struct ev_packet *p, const __u8 once, __u16 keep)
{
	p->hop = 1;
	p->hdr.id = emit_new_id(run);
	if (!p->hdr.id) {
		emit_identity_full(run);
		return;
	}
	e->parent = p->parent;
	e->first_epoch = run->active->epoch;
	e->hop = 1;
	e->ifindex = p->ifindex;
	e->netns = p->netns;
	e->first_ifindex = p->ifindex;
	e->first_netns = p->netns;
	e->first_seen = once;
	e->seen = once;
	e->flow = packet_addresses(p);
	e->flags = keep;
	e->state = EV_PACKET_SELECTED;
	e->ip_proto = p->ip_proto;
	e->touched = 0;
	e->end_ns = 0;
	e->generation = p->hdr.id;
	p->flags |= keep;
}

/* Starts a life whose birth was not observed. e: the idle entry of the address, or NULL. */
static __always_inline void packet_begin(struct emit_run *run, struct ev_packet_entry *e, __u64 key,
					 struct ev_packet *p, const __u8 once)
{
	/* Where births are observed, one that was not is no beginning to rely on. */
	__u16 keep = e && !e->touched && !packet_exact ? EV_PACKET_FROM_START : 0;

	if (e && packet_exact)
		__sync_fetch_and_add(&packet_shared.unseen_births, 1);
	if (!packet_exact && p->ip_proto == PACKET_TCP)
		keep |= EV_PACKET_MERGED;
	if (!e)
		e = packet_entry_new(key);
	if (e)
		packet_name(run, e, p, once, keep);
	else
		emit_identity_full(run);
}

/*
 * Another observation of a life that goes on. Where ends may pass unobserved, the address may have a new
 * holder: the same point passed twice on its first device or on the present one, another protocol, or
 * two other addresses say so. once: a bit for the hook, if a packet passes it once per device. (A qdisc may
 * offer a packet to its driver again and again, so xmit says nothing.)
 */
static __always_inline void packet_continue(struct ev_packet_entry *e, struct ev_packet *p,
					    const __u8 once)
{
	__u32 addresses;

	p->hdr.id = e->generation;
	p->hop = ++e->hop;
	p->parent = e->parent;
	if (!packet_exact) {
		if (p->ifindex && (p->ifindex != e->ifindex || p->netns != e->netns))
			e->seen = 0;
		if (once) {
			if (e->seen & once)
				e->flags |= EV_PACKET_MERGED;
			e->seen |= once;
			if (p->ifindex == e->first_ifindex && p->netns == e->first_netns) {
				if (e->first_seen & once)
					e->flags |= EV_PACKET_MERGED;
				e->first_seen |= once;
			}
		}
		if (p->family) {
			addresses = packet_addresses(p);
			if (p->ip_proto != e->ip_proto ||
			    ((addresses ^ e->flow) >> 16 && (addresses ^ e->flow) & 0xffff))
				e->flags |= EV_PACKET_MERGED;
			e->flow = addresses;
			e->ip_proto = p->ip_proto;
			if (p->ip_proto == PACKET_TCP)
				e->flags |= EV_PACKET_MERGED;
		}
	}
	if (p->ifindex) {
		e->ifindex = p->ifindex;
		e->netns = p->netns;
	}
	p->flags |= e->flags;
}

/* The life in e has ended; the order matters to the reaper. */
static __always_inline void packet_end(struct ev_packet_entry *e, __u64 now)
{
	e->end_ns = now;
	barrier();
	*(volatile __u64 *)&e->generation = 0;
}

/* A life from its birth on: nobody has seen it as a packet yet. */
static __always_inline void packet_reborn(struct ev_packet_entry *e)
{
	e->parent = 0;
	e->first_epoch = 0;
	e->touched = 0;
	e->hop = 0;
	e->flags = EV_PACKET_FROM_START | EV_PACKET_BORN;
	e->state = EV_PACKET_UNDECIDED;
	e->ifindex = 0;
	e->netns = 0;
	barrier();
	*(volatile __u64 *)&e->generation = PACKET_UNNAMED;
}
