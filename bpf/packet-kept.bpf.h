/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-kept.bpf.h - what the hook at a function's beginning keeps for the one at its end.
 *
 * A stack for each CPU: what begins and ends with bottom halves off, on one CPU, ends in the reverse order.
 */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/events.h"

/* Devices on devices: the kernel allows 8, once 10 (XMIT_RECURSION_LIMIT). */
#define PACKET_DEPTH 8

enum packet_kept_state {
	PACKET_KEPT_NOTHING = 0, /* not selected */
	PACKET_KEPT = 1,
	PACKET_KEPT_FIRST = 2, /* and it was the packet's first sight */
};

/* What a hook at a function's beginning keeps for the one at its end. */
struct packet_kept {
	__u64 key;
	__u32 state;		 /* enum packet_kept_state */
	__u32 probe;		 /* functions that nest in each other: which; else 0 */
	struct ev_packet packet; /* if selected */
};

struct packet_stack {
	__u32 depth;
	__u32 pad;
	struct packet_kept kept[PACKET_DEPTH];
};

/*
 * A deeper nest than the kernel allows is made of packets whose end hook did not run: forgotten; so is what is
 * there if the function does not nest.
 */
static __always_inline void packet_keep(void *map, __u64 key, __u32 probe,
					const struct ev_packet *p, __u32 state, const bool nests)
{
	struct packet_stack *stack;
	struct packet_kept *kept;
	__u32 zero = 0, i;

	stack = bpf_map_lookup_elem(map, &zero);
	if (!stack)
		return;
	i = nests ? stack->depth : 0;
	if (i >= PACKET_DEPTH)
		i = 0;
	stack->depth = i + 1;
	kept = &stack->kept[i & (PACKET_DEPTH - 1)];
	kept->key = key;
	kept->probe = probe;
	kept->state = state;
	if (state)
		__builtin_memcpy(&kept->packet, p, sizeof(*p));
}

/*
 * What was kept of key, if it was; those above it have lost their end hook. Without key the innermost one.
 * Where none is found the stack stays as it is: it is the beginning that was not seen.
 */
static __always_inline struct packet_kept *packet_unkeep(void *map, __u64 key, __u32 probe)
{
	struct packet_stack *stack;
	struct packet_kept *kept;
	__u32 zero = 0, depth;

	stack = bpf_map_lookup_elem(map, &zero);
	if (!stack)
		return NULL;
	depth = stack->depth;
#pragma unroll
	for (int i = 0; i < PACKET_DEPTH; i++) {
		if (!depth)
			return NULL;
		depth--;
		kept = &stack->kept[depth & (PACKET_DEPTH - 1)];
		if (!key || (kept->key == key && kept->probe == probe)) {
			stack->depth = depth;
			return kept;
		}
	}
	return NULL;
}
