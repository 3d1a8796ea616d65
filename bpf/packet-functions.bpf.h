/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet-functions.bpf.h - a packet's way through the stack's functions, where the kernel lets them be hooked.
 *
 * Each is observed as it is entered, when the packet is still the caller's: what a function returns
 * comes after the packet may be gone, and what it did with it is told by the next hook (a drop by
 * kfree_skb, with its place and reason). One program per function, as fentry with plain loads, and as a
 * kprobe, which copies.
 *
 * Received packets come in one by one or, from drivers that collect them, as a list, which takes
 * ip_list_rcv() past ip_rcv(): an absence there says that this function was not entered, no more.
 */
#pragma once

#include "bpf/packet-observe.bpf.h"

#define PACKET_PARM1(regs) ((struct sk_buff *)PT_REGS_PARM1_CORE((struct pt_regs *)(regs)))
#define PACKET_PARM2(regs) ((struct sk_buff *)PT_REGS_PARM2_CORE((struct pt_regs *)(regs)))
#define PACKET_PARM3(regs) ((struct sk_buff *)PT_REGS_PARM3_CORE((struct pt_regs *)(regs)))

static __always_inline int packet_function(struct sk_buff *skb, const __u32 probe, const __u32 how,
					   const bool direct)
{
	struct ev_packet p = {};
	struct emit_run run;

	if (skb && emit_enter(&run, probe))
		packet_observe(&run, &p, skb, how, true, direct);
	return 0;
}

/* (skb ...) */
#define PACKET_FUNCTION(name, probe, how)                                     \
	SEC("fentry/" #name) int BPF_PROG(name##_fentry, struct sk_buff *skb) \
	{                                                                     \
		return packet_function(skb, probe, how, true);                \
	}                                                                     \
	SEC("kprobe/" #name) int name##_kprobe(void *ctx)                     \
	{                                                                     \
		return packet_function(PACKET_PARM1(ctx), probe, how, false); \
	}

/* (sk, skb ...) */
#define PACKET_SOCK_FUNCTION(name, probe, how)                                          \
	SEC("fentry/" #name) int BPF_PROG(name##_fentry, void *sk, struct sk_buff *skb) \
	{                                                                               \
		return packet_function(skb, probe, how, true);                          \
	}                                                                               \
	SEC("kprobe/" #name) int name##_kprobe(void *ctx)                               \
	{                                                                               \
		return packet_function(PACKET_PARM2(ctx), probe, how, false);           \
	}

/* On the way in: skb->dev is where the packet came in. */
PACKET_FUNCTION(ip_rcv, EV_PROBE_IP_RCV, PACKET_AT_DATA | PACKET_ON_DEVICE)
PACKET_FUNCTION(ipv6_rcv, EV_PROBE_IPV6_RCV, PACKET_AT_DATA | PACKET_ON_DEVICE)
PACKET_FUNCTION(ip_local_deliver, EV_PROBE_IP_LOCAL_DELIVER, PACKET_ON_DEVICE)
PACKET_FUNCTION(ip6_input, EV_PROBE_IP6_INPUT, PACKET_ON_DEVICE)
PACKET_FUNCTION(ip_forward, EV_PROBE_IP_FORWARD, PACKET_ON_DEVICE)
PACKET_FUNCTION(ip6_forward, EV_PROBE_IP6_FORWARD, PACKET_ON_DEVICE)
PACKET_FUNCTION(tcp_v4_rcv, EV_PROBE_TCP_V4_RCV, PACKET_ON_DEVICE)
PACKET_FUNCTION(tcp_v6_rcv, EV_PROBE_TCP_V6_RCV, PACKET_ON_DEVICE)
PACKET_FUNCTION(udp_rcv, EV_PROBE_UDP_RCV, PACKET_ON_DEVICE)
PACKET_FUNCTION(udpv6_rcv, EV_PROBE_UDPV6_RCV, PACKET_ON_DEVICE)
/* Into a socket's queue: UDP, and with the other one raw, ICMP and packet sockets. */
PACKET_SOCK_FUNCTION(__udp_enqueue_schedule_skb, EV_PROBE_UDP_ENQUEUE, 0)
PACKET_SOCK_FUNCTION(__sock_queue_rcv_skb, EV_PROBE_SOCK_QUEUE_RCV, 0)
/* On the way out, and by traffic control wherever it looks. */
PACKET_FUNCTION(__dev_queue_xmit, EV_PROBE_DEV_QUEUE_XMIT, PACKET_ON_DEVICE | PACKET_SENDS)
PACKET_FUNCTION(tcf_classify, EV_PROBE_TCF_CLASSIFY, PACKET_ON_DEVICE)

/*
 * ip_output() is what sets skb->dev: until then it is the one that a forwarded packet came in by, or, with
 * a packet from here, anything. The route knows.
 */
static __always_inline int packet_output(struct net *net, struct sk_buff *skb, const __u32 probe,
					 const bool direct)
{
	struct ev_packet p = {};
	struct dst_entry *dst;
	struct emit_run run;

	if (!skb || !emit_enter(&run, probe))
		return 0;
	dst = (void *)(KREAD(direct, skb, _skb_refdst) & ~1UL);
	p.ifindex = BPF_CORE_READ(dst, dev, ifindex);
	p.netns = KREAD(direct, net, ns.inum);
	packet_observe(&run, &p, skb, PACKET_PLACED | PACKET_SENDS, true, direct);
	return 0;
}

#define PACKET_OUTPUT(name, probe)                                                              \
	SEC("fentry/" #name)                                                                    \
	int BPF_PROG(name##_fentry, struct net *net, void *sk, struct sk_buff *skb)             \
	{                                                                                       \
		return packet_output(net, skb, probe, true);                                    \
	}                                                                                       \
	SEC("kprobe/" #name) int name##_kprobe(void *ctx)                                       \
	{                                                                                       \
		return packet_output((struct net *)PACKET_PARM1(ctx), PACKET_PARM3(ctx), probe, \
				     false);                                                    \
	}

PACKET_OUTPUT(ip_output, EV_PROBE_IP_OUTPUT)
PACKET_OUTPUT(ip6_output, EV_PROBE_IP6_OUTPUT)

/* Only where a hook has rules. code: which hook (NF_INET_PRE_ROUTING and so on). */
static __always_inline int packet_netfilter(struct sk_buff *skb, struct nf_hook_state *state,
					    const bool direct)
{
	struct ev_packet p = {};
	struct net_device *dev;
	struct emit_run run;
	struct net *net;

	if (!skb || !emit_enter(&run, EV_PROBE_NF_HOOK_SLOW))
		return 0;
	dev = KREAD(direct, state, out);
	if (!dev)
		dev = KREAD(direct, state, in);
	p.ifindex = KREAD(direct, dev, ifindex);
	net = KREAD(direct, state, net);
	p.netns = KREAD(direct, net, ns.inum);
	p.code = KREAD(direct, state, hook);
	packet_observe(&run, &p, skb, PACKET_PLACED | PACKET_SENDS, true, direct);
	return 0;
}

SEC("fentry/nf_hook_slow")
int BPF_PROG(nf_hook_slow_fentry, struct sk_buff *skb, struct nf_hook_state *state)
{
	return packet_netfilter(skb, state, true);
}

SEC("kprobe/nf_hook_slow") int nf_hook_slow_kprobe(void *ctx)
{
	return packet_netfilter(PACKET_PARM1(ctx), (struct nf_hook_state *)PACKET_PARM2(ctx),
				false);
}
