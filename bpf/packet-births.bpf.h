/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-births.bpf.h - where the kernel makes sk_buffs and where it gives them back, so that an id is one packet.
 *
 * A birth is seen at the return of each function that makes one, nested ones included: the first of them gives
 * the address a new life, and to those after it the life is new still (UNDECIDED), so they leave it. An end is
 * seen where the memory is given back. What no probe has seen as a packet by then (a message of AF_UNIX, say)
 * goes without a record; a packet whose end no tracepoint shows gets its last record here, without headers,
 * which are gone by then.
 *
 * The kernel does not run a program that it interrupts itself with, and counts a miss. A birth and an
 * end both missed would make two packets one, unseen. So each program is there twice, and does nothing where
 * the other has been: what interrupts one runs the other. A copy that runs while the other is interrupted
 * tells (packet_covered), so that the daemon can say which misses were none. Kernels without that guard
 * (before 5.12: ca06f55b9002) take one copy.
 *
 * Two things cannot be where all births and ends are seen, and are counted as the missed runs that they prove:
 * a birth at an address whose packet has not ended, and a packet at an address that has ended.
 */
#pragma once

#include "bpf/packet-observe.bpf.h"

/* Runs that one copy did for the other, by probe. */
__u64 packet_covered[EV_N_PACKET_PROBES];

struct packet_copies {
	__u8 active[2];
	__u8 pad[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EV_N_PACKET_PROBES);
	__type(key, __u32);
	__type(value, struct packet_copies);
} copies SEC(".maps");

/* What interrupts this run puts everything back, so plain stores are enough. */
static __always_inline struct packet_copies *packet_copy_begin(const __u32 probe, const __u32 copy)
{
	const __u32 index = probe - EV_FIRST_PACKET_PROBE;
	__u32 key = index;
	struct packet_copies *c = bpf_map_lookup_elem(&copies, &key);

	if (!c)
		return NULL;
	/* Not by key: what comes back from the stack has no bounds to the verifier of 6.12. */
	if (c->active[1 - copy])
		__sync_fetch_and_add(&packet_covered[index], 1);
	*(volatile __u8 *)&c->active[copy] = 1;
	return c;
}

static __always_inline void packet_copy_end(struct packet_copies *c, const __u32 copy)
{
	if (c)
		*(volatile __u8 *)&c->active[copy] = 0;
}

/* from: what it is a clone or a copy of; 0 = nothing. Only a packet that was seen can be pointed at. */
static __always_inline void packet_born(struct emit_run *run, __u64 key, __u64 from)
{
	struct ev_packet_entry *e;
	bool live, reaped;
	__u64 parent = 0;

	if (from) {
		e = bpf_map_lookup_elem(&identities, &from);
		if (e && e->generation && e->state == EV_PACKET_SELECTED)
			parent = e->generation;
	}
	e = packet_entry(run, key, &live, &reaped);
	if (live && e->state == EV_PACKET_UNDECIDED) {
		if (parent) {
			e->parent = parent;
			e->flags |= EV_PACKET_CLONE;
		}
		return;
	}
	if (live)
		__sync_fetch_and_add(&packet_shared.unseen_ends, 1);
	if (!e && !reaped)
		e = packet_entry_new(key);
	if (!e) {
		emit_identity_full(run);
		return;
	}
	packet_reborn(e);
	if (parent) {
		e->parent = parent;
		e->flags |= EV_PACKET_CLONE;
	}
}

static __always_inline int packet_birth(__u64 skb, __u64 from, const __u32 probe, const __u32 copy)
{
	struct packet_copies *c = packet_copy_begin(probe, copy);
	struct emit_run run;

	if (skb && emit_enter(&run, probe)) {
		packet_born(&run, skb, from);
		emit_folded(&run);
	}
	packet_copy_end(c, copy);
	return 0;
}

/* Its data is gone or about to go: nothing but the sk_buff itself is read. */
static __always_inline void packet_memory_end(struct emit_run *run, struct sk_buff *skb)
{
	struct ev_packet_entry *e;
	struct ev_packet p = {};
	bool live, reaped;

	e = packet_entry(run, (__u64)skb, &live, &reaped);
	if (!live) {
		emit_folded(run);
		return;
	}
	p.ts_ns = bpf_ktime_get_ns();
	if (e->state == EV_PACKET_SELECTED) {
		packet_fields(&p, skb, true);
		p.flags |= EV_PACKET_END | EV_PACKET_NO_HEADER;
		p.ifindex = e->ifindex;
		p.netns = e->netns;
		packet_continue(e, &p, 0);
		packet_emit(run, &p);
	} else if (e->state == EV_PACKET_DESELECTED) {
		emit_not_selected(run);
	} else {
		emit_folded(run);
	}
	packet_end(e, p.ts_ns);
}

static __always_inline int packet_freed(struct sk_buff *skb, const __u32 probe, const __u32 copy)
{
	struct packet_copies *c = packet_copy_begin(probe, copy);
	struct emit_run run;

	if (skb && emit_enter(&run, probe))
		packet_memory_end(&run, skb);
	packet_copy_end(c, copy);
	return 0;
}

/* A function of n arguments that returns what it has made. */
#define PACKET_BIRTH(name, probe, n)                      \
	SEC("fexit/" #name) int name##_fexit(__u64 *ctx)  \
	{                                                 \
		return packet_birth(ctx[n], 0, probe, 0); \
	}                                                 \
	SEC("fexit/" #name) int name##_fexit2(__u64 *ctx) \
	{                                                 \
		return packet_birth(ctx[n], 0, probe, 1); \
	}

/* The same from another one, the first argument. */
#define PACKET_CLONE_BIRTH(name, probe, n)                     \
	SEC("fexit/" #name) int name##_fexit(__u64 *ctx)       \
	{                                                      \
		return packet_birth(ctx[n], ctx[0], probe, 0); \
	}                                                      \
	SEC("fexit/" #name) int name##_fexit2(__u64 *ctx)      \
	{                                                      \
		return packet_birth(ctx[n], ctx[0], probe, 1); \
	}

#define PACKET_FREED(name, probe)                                              \
	SEC("fentry/" #name) int BPF_PROG(name##_fentry, struct sk_buff *skb)  \
	{                                                                      \
		return packet_freed(skb, probe, 0);                            \
	}                                                                      \
	SEC("fentry/" #name) int BPF_PROG(name##_fentry2, struct sk_buff *skb) \
	{                                                                      \
		return packet_freed(skb, probe, 1);                            \
	}

PACKET_BIRTH(__alloc_skb, EV_PROBE_ALLOC_SKB, 4)
PACKET_CLONE_BIRTH(skb_clone, EV_PROBE_SKB_CLONE, 2)
PACKET_CLONE_BIRTH(skb_copy, EV_PROBE_SKB_COPY, 2)
PACKET_CLONE_BIRTH(__pskb_copy_fclone, EV_PROBE_PSKB_COPY_FCLONE, 4)
PACKET_BIRTH(__build_skb, EV_PROBE_BUILD_SKB_RAW, 2)
PACKET_BIRTH(build_skb_around, EV_PROBE_BUILD_SKB_AROUND, 3)
PACKET_BIRTH(slab_build_skb, EV_PROBE_SLAB_BUILD_SKB, 1)
PACKET_BIRTH(__napi_build_skb, EV_PROBE_NAPI_BUILD_SKB_RAW, 2)
PACKET_BIRTH(build_skb, EV_PROBE_BUILD_SKB, 2)
PACKET_BIRTH(napi_build_skb, EV_PROBE_NAPI_BUILD_SKB, 2)
PACKET_BIRTH(__netdev_alloc_skb, EV_PROBE_NETDEV_ALLOC_SKB, 3)
PACKET_BIRTH(napi_alloc_skb, EV_PROBE_NAPI_ALLOC_SKB, 2)

PACKET_FREED(kfree_skbmem, EV_PROBE_KFREE_SKBMEM)
PACKET_FREED(napi_skb_cache_put, EV_PROBE_NAPI_SKB_CACHE_PUT)
PACKET_FREED(napi_skb_free_stolen_head, EV_PROBE_NAPI_SKB_FREE_STOLEN_HEAD)
PACKET_FREED(__kfree_skb_defer, EV_PROBE_KFREE_SKB_DEFER)
PACKET_FREED(skb_attempt_defer_free, EV_PROBE_SKB_ATTEMPT_DEFER_FREE)

/* Where the head is not stolen, __kfree_skb() follows, and with it the others. */
static __always_inline int packet_freed_partial(struct sk_buff *skb, bool head_stolen,
						const __u32 copy)
{
	return head_stolen ? packet_freed(skb, EV_PROBE_KFREE_SKB_PARTIAL, copy) : 0;
}

SEC("fentry/kfree_skb_partial")
int BPF_PROG(kfree_skb_partial_fentry, struct sk_buff *skb, bool head_stolen)
{
	return packet_freed_partial(skb, head_stolen, 0);
}

SEC("fentry/kfree_skb_partial")
int BPF_PROG(kfree_skb_partial_fentry2, struct sk_buff *skb, bool head_stolen)
{
	return packet_freed_partial(skb, head_stolen, 1);
}
