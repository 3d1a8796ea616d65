/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-programs.bpf.h - what observing other programs needs beside packet-observe.bpf.h: the stack between a
 * program's entry and its return, and reading a frame that is no sk_buff.
 */
#pragma once

#include "bpf/packet-kept.bpf.h"
#include "bpf/packet-observe.bpf.h"

/* One for all programs: packet.bpf.c makes it, each packet-program.bpf.c takes it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet_stack);
} program_stack SEC(".maps");

/* Its headers are as the program left them, not as they came. */
static __always_inline void packet_without_flow(struct ev_packet *p)
{
	__builtin_memset(p->saddr, 0, sizeof(p->saddr));
	__builtin_memset(p->daddr, 0, sizeof(p->daddr));
	p->sport = 0;
	p->dport = 0;
	p->family = 0;
	p->ip_proto = 0;
	p->ip_id = 0;
	p->l4[0] = 0;
	p->l4[1] = 0;
	p->flags |= EV_PACKET_NO_HEADER;
}

/*
 * A frame from its Ethernet header on; len is set. As with an sk_buff, a copy that runs over the end of the data
 * stays within the buffer: drivers leave room for the shared info behind it.
 */
static __always_inline void packet_frame(struct ev_packet *p, const void *at,
					 struct packet_filter *f)
{
	__s32 n = (__s32)p->len - 14;
	__u16 protocol;
	__u8 b[40];

	f->n = 0;
	if (n < 0 || bpf_probe_read_kernel(b, 16, at)) {
		p->flags |= EV_PACKET_NO_HEADER;
		return;
	}
	protocol = packet_ntohs(packet_half(b, 12));
	p->protocol = protocol;
	at += 14;
	if ((protocol == PACKET_ETH_8021Q || protocol == PACKET_ETH_8021AD) && n >= 4) {
		p->flags |= EV_PACKET_VLAN;
		p->vlan_tci = packet_ntohs(packet_half(b, 14));
		if (bpf_probe_read_kernel(b, 4, at)) {
			p->flags |= EV_PACKET_NO_HEADER;
			return;
		}
		protocol = packet_ntohs(packet_half(b, 2));
		at += 4;
		n -= 4;
	}
	if (n < 20 || bpf_probe_read_kernel(b, 40, at)) {
		p->flags |= EV_PACKET_NO_HEADER;
		return;
	}
	f->at = (__u64)at;
	f->n = n;
	f->len = n;
	if (protocol == PACKET_ETH_IP && b[0] >> 4 == 4)
		packet_ipv4(p, b, at, n);
	else if (protocol == PACKET_ETH_IPV6 && b[0] >> 4 == 6 && n >= 40)
		packet_ipv6(p, b, at, n);
	else if (protocol == PACKET_ETH_IP || protocol == PACKET_ETH_IPV6)
		p->flags |= EV_PACKET_NO_HEADER;
}
