/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-read.bpf.h - from an sk_buff (or, where the packet has no headers yet, from its socket) to the
 * fields of a record.
 *
 * Header bytes are not typed memory, so they are copied, 40 bytes in one go, which is all of IPv4 with
 * its ports; IPv6 and IPv4 options take a second copy. An sk_buff's linear part always has its shared info
 * (some 320 bytes) behind it, so a copy that runs over the end of the data stays within the buffer;
 * whether what was read is data is decided by the tail.
 *
 * skb->dev is only a device while the packet is on its way: UDP and TCP queues keep other things in the
 * same word. So an end does not look there but at what the packet's entry remembers.
 */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/events.h"
#include "bpf/packet-filter.bpf.h"

#define PACKET_ETH_IP 0x0800
#define PACKET_ETH_IPV6 0x86dd
#define PACKET_ETH_8021Q 0x8100
#define PACKET_ETH_8021AD 0x88a8

#define PACKET_TCP 6
#define PACKET_UDP 17
#define PACKET_ICMP 1
#define PACKET_ICMPV6 58
#define PACKET_FRAGMENT6 44

#define PACKET_AF_INET 2
#define PACKET_AF_INET6 10

#define packet_ntohs(x) __builtin_bswap16(x)
#define packet_word(b, i) (*(__u32 *)((b) + (i)))
#define packet_half(b, i) (*(__u16 *)((b) + (i)))

/* What is behind the IP header: l4 holds its first 20 bytes, n of them true. */
static __always_inline void packet_l4(struct ev_packet *p, const __u8 *l4, __s32 n)
{
	if (p->ip_proto == PACKET_TCP || p->ip_proto == PACKET_UDP) {
		if (n < 4)
			return;
		p->sport = packet_ntohs(packet_half(l4, 0));
		p->dport = packet_ntohs(packet_half(l4, 2));
		if (p->ip_proto == PACKET_TCP && n >= 14)
			p->l4[0] = l4[13];
	} else if ((p->ip_proto == PACKET_ICMP || p->ip_proto == PACKET_ICMPV6) && n >= 8) {
		p->l4[0] = l4[0];
		p->l4[1] = l4[1];
		/* Echo: the identifier stands for ports, both ways the same. */
		if (l4[0] == 0 || l4[0] == 8 || l4[0] == 128 || l4[0] == 129) {
			p->sport = packet_ntohs(packet_half(l4, 4));
			p->dport = p->sport;
		}
	}
}

static __always_inline void packet_ipv4(struct ev_packet *p, __u8 *b, const void *at, __s32 n)
{
	__u16 frag = packet_ntohs(packet_half(b, 6));
	__u32 hlen = (b[0] & 15) * 4;

	p->family = 4;
	p->ip_proto = b[9];
	p->ip_id = packet_ntohs(packet_half(b, 4));
	packet_word(p->saddr, 0) = packet_word(b, 12);
	packet_word(p->daddr, 0) = packet_word(b, 16);
	if (frag & 0x3fff)
		p->flags |= EV_PACKET_FRAGMENT;
	if (frag & 0x1fff)
		return; /* no first fragment: no ports */
	if (hlen == 20) {
		packet_l4(p, b + 20, n - 20);
		return;
	}
	if (hlen < 20 || bpf_probe_read_kernel(b, 20, at + hlen))
		return;
	packet_l4(p, b, n - (__s32)hlen);
}

static __always_inline void packet_ipv6(struct ev_packet *p, __u8 *b, const void *at, __s32 n)
{
	__u32 off = 40;

	p->family = 6;
	p->ip_proto = b[6];
	packet_word(p->saddr, 0) = packet_word(b, 8);
	packet_word(p->saddr, 4) = packet_word(b, 12);
	packet_word(p->saddr, 8) = packet_word(b, 16);
	packet_word(p->saddr, 12) = packet_word(b, 20);
	packet_word(p->daddr, 0) = packet_word(b, 24);
	packet_word(p->daddr, 4) = packet_word(b, 28);
	packet_word(p->daddr, 8) = packet_word(b, 32);
	packet_word(p->daddr, 12) = packet_word(b, 36);
	if (n < 48 || bpf_probe_read_kernel(b, 20, at + 40))
		return;
	if (p->ip_proto == PACKET_FRAGMENT6) {
		p->flags |= EV_PACKET_FRAGMENT;
		p->ip_proto = b[0];
		if (packet_ntohs(packet_half(b, 2)) & 0xfff8)
			return;
		off = 48;
		if (bpf_probe_read_kernel(b, 20, at + 48))
			return;
	}
	packet_l4(p, b, n - (__s32)off);
}

/* Where the network header is: a device hands it over at skb->data; later its offset is kept. */
static __always_inline __u32 packet_l3(struct sk_buff *skb, const bool at_data, const bool direct)
{
	if (at_data)
		return (__u64)KREAD(direct, skb, data) - (__u64)KREAD(direct, skb, head);
	return KREAD(direct, skb, network_header);
}

/* The tuple of p from the packet's own headers, and where they are. b: room for 40 bytes. */
static __always_inline void packet_headers(struct ev_packet *p, struct sk_buff *skb, __u8 *b,
					   struct packet_filter *f, const bool at_data,
					   const bool direct)
{
	const __u8 *at = (const __u8 *)KREAD(direct, skb, head);
	__u32 off = packet_l3(skb, at_data, direct);
	__s32 n = (__s32)(KREAD(direct, skb, tail) - off); /* linear bytes from the header on */
	__u16 protocol = p->protocol;

	at += off;
	f->n = 0;
	if (n < 20 || !off || bpf_probe_read_kernel(b, 40, at)) {
		p->flags |= EV_PACKET_NO_HEADER;
		return;
	}
	if (at_data && (protocol == PACKET_ETH_8021Q || protocol == PACKET_ETH_8021AD)) {
		/* The device did not take the tag out; the stack will, after this hook. */
		p->flags |= EV_PACKET_VLAN;
		p->vlan_tci = packet_ntohs(packet_half(b, 0));
		protocol = packet_ntohs(packet_half(b, 2));
		at += 4;
		n -= 4;
		if (bpf_probe_read_kernel(b, 40, at))
			return;
	}
	f->at = (__u64)at;
	f->n = n;
	f->len = p->len;
	if (protocol == PACKET_ETH_IP && b[0] >> 4 == 4 && n >= 20)
		packet_ipv4(p, b, at, n);
	else if (protocol == PACKET_ETH_IPV6 && b[0] >> 4 == 6 && n >= 40)
		packet_ipv6(p, b, at, n);
	else if (protocol == PACKET_ETH_IP || protocol == PACKET_ETH_IPV6)
		p->flags |= EV_PACKET_NO_HEADER;
}

/* The tuple as the socket sees it, written from it outwards. */
static __always_inline void packet_from_sock(struct ev_packet *p, struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	p->ip_proto = BPF_CORE_READ(sk, sk_protocol);
	p->sport = BPF_CORE_READ(sk, __sk_common.skc_num);
	p->dport = packet_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (family == PACKET_AF_INET) {
		p->family = 4;
		p->protocol = PACKET_ETH_IP;
		packet_word(p->saddr, 0) = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		packet_word(p->daddr, 0) = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else if (family == PACKET_AF_INET6) {
		p->family = 6;
		p->protocol = PACKET_ETH_IPV6;
		BPF_CORE_READ_INTO(&p->saddr, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&p->daddr, sk, __sk_common.skc_v6_daddr);
	}
	if (bpf_core_field_exists(possible_net_t, net)) {
		struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);

		p->netns = BPF_CORE_READ(net, ns.inum);
	}
}

static __always_inline __u32 packet_netns(struct net_device *dev, const bool direct)
{
	struct net *net;

	if (!bpf_core_field_exists(possible_net_t, net))
		return 0;
	net = KREAD(direct, dev, nd_net.net);
	return net ? KREAD(direct, net, ns.inum) : 0;
}

static __always_inline bool packet_has_vlan(struct sk_buff *skb, __u16 tci, __u16 proto)
{
	if (!bpf_core_field_exists(struct sk_buff___vlan_present, vlan_present))
		return tci || proto; /* cleared as one word since */
	return proto &&
	       BPF_CORE_READ_BITFIELD_PROBED((struct sk_buff___vlan_present *)skb, vlan_present);
}

/* What the sk_buff itself says, wherever the packet is. */
static __always_inline void packet_fields(struct ev_packet *p, struct sk_buff *skb,
					  const bool direct)
{
	__u16 tci, proto;

	p->len = KREAD(direct, skb, len);
	p->mark = KREAD(direct, skb, mark);
	p->protocol = packet_ntohs(KREAD(direct, skb, protocol));
	tci = KREAD(direct, skb, vlan_tci);
	proto = KREAD(direct, skb, vlan_proto);
	if ((tci || proto) && packet_has_vlan(skb, tci, proto)) {
		p->flags |= EV_PACKET_VLAN;
		p->vlan_tci = tci;
	}
}
