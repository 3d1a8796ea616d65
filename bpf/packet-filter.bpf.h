/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-filter.bpf.h - room for a pcap filter expression.
 *
 * The daemon compiles the expression and writes its instructions over these empty ones, in a copy of the
 * object's image, before it opens it (daemon/probes-filter.c); EV_EXPRESSION_MARK shows where. They enter
 * with r6 at a struct packet_filter and leave their verdict in r0. Without an expression the room stays as
 * it is, and packet_has_filter keeps the verifier from walking through it.
 *
 * A room in each program, not a function that all call. A frame counts at least 32 bytes in the 512 of the
 * stack (check_max_stack_depth()): 5.10 refused net_dev_start_xmit and tcp_send_reset for them, and the way of
 * every packet came without the former and its pair. And until be2ef8161572 ("bpf: allow precision tracking for
 * programs with subprogs") a program with a function had all its scalars taken for precise.
 */
#pragma once

#include "bpf/events.h"

struct packet_filter {
	__u64 at;  /* address of the IP header */
	__u32 n;   /* linear bytes from there on */
	__u32 len; /* bytes of the packet */
	__u32 load;
	__u32 mem[EV_EXPRESSION_N_MEM];
};

#define PACKET_FILTER_AT(field, offset) \
	_Static_assert(__builtin_offsetof(struct packet_filter, field) == (offset), "offset")
PACKET_FILTER_AT(at, EV_EXPRESSION_AT);
PACKET_FILTER_AT(n, EV_EXPRESSION_N);
PACKET_FILTER_AT(len, EV_EXPRESSION_LEN);
PACKET_FILTER_AT(load, EV_EXPRESSION_LOAD);
PACKET_FILTER_AT(mem, EV_EXPRESSION_MEM);

static __always_inline __u32 packet_filter_run(struct packet_filter *f)
{
	__u32 verdict;

	asm volatile("r6 = %[f]\n"
		     "w0 = %[mark]\n"
		     ".rept %[room]\n"
		     "goto +0\n"
		     ".endr\n"
		     "%[verdict] = r0\n"
		     : [verdict] "=r"(verdict)
		     : [f] "r"(f), [mark] "i"(EV_EXPRESSION_MARK), [room] "i"(EV_EXPRESSION_ROOM)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "memory");
	return verdict;
}
