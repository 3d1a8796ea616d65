/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * packet.bpf.c - the packet stream: one record per observation of a packet at a probe.
 *
 * bpf/packet-observe.bpf.h makes the observation, bpf/packet-life.bpf.h says which packet it is of and
 * whether that is selected, bpf/packet-read.bpf.h what can be read from it; here are the tracepoints,
 * in bpf/packet-functions.bpf.h the functions, in bpf/packet-births.bpf.h where packets come from and go.
 *
 * net_dev_xmit comes after the driver has the packet, often after it has freed it. So the record made at
 * net_dev_start_xmit is kept on a stack of the CPU, and net_dev_xmit repeats it with the driver's answer;
 * it never looks at the sk_buff. The stack holds, since the two hooks enclose the driver's function
 * and run with bottom halves off.
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
#include "bpf/packet-births.bpf.h"
#include "bpf/packet-functions.bpf.h"
#include "bpf/packet-kept.bpf.h"
#include "bpf/packet-observe.bpf.h"
#include "bpf/packet-programs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline int packet_event(struct sk_buff *skb, const __u32 probe, const __u32 how,
					const bool direct)
{
	struct ev_packet p = {};
	struct emit_run run;

	if (skb && emit_enter(&run, probe))
		packet_observe(&run, &p, skb, how, true, direct);
	return 0;
}

/* The programs of one hook: tp_btf with plain loads, and raw_tp for kernels that refuse those. */
#define PACKET_PROGRAMS(hook, probe, how)                                  \
	SEC("tp_btf/" #hook) int BPF_PROG(hook##_btf, struct sk_buff *skb) \
	{                                                                  \
		return packet_event(skb, probe, how, true);                \
	}                                                                  \
	SEC("raw_tp/" #hook) int BPF_PROG(hook##_raw, struct sk_buff *skb) \
	{                                                                  \
		return packet_event(skb, probe, how, false);               \
	}

PACKET_PROGRAMS(netif_receive_skb, EV_PROBE_NETIF_RECEIVE_SKB,
		PACKET_AT_DATA | PACKET_ON_DEVICE | PACKET_ONCE_RECEIVE)
PACKET_PROGRAMS(netif_rx, EV_PROBE_NETIF_RX, PACKET_AT_DATA | PACKET_ON_DEVICE | PACKET_ONCE_RX)
PACKET_PROGRAMS(net_dev_queue, EV_PROBE_NET_DEV_QUEUE,
		PACKET_ON_DEVICE | PACKET_ONCE_QUEUE | PACKET_SENDS)
PACKET_PROGRAMS(consume_skb, EV_PROBE_CONSUME_SKB, PACKET_ENDS)
PACKET_PROGRAMS(tcp_bad_csum, EV_PROBE_TCP_BAD_CSUM, PACKET_ALWAYS)

/* ---- drops ------------------------------------------------------------------------------------ */

static __always_inline int packet_drop(struct sk_buff *skb, void *location, __u32 reason,
				       const bool direct)
{
	struct ev_packet p = {.where = (__u64)location, .code = (__s32)reason};
	struct emit_run run;

	if (emit_enter(&run, EV_PROBE_KFREE_SKB))
		packet_observe(&run, &p, skb, PACKET_ENDS | PACKET_ALWAYS,
			       reason > packet_reason_unspecified, direct);
	return 0;
}

/* c504e5c2f964 ("net: skb: introduce kfree_skb_reason()", 5.17) gave the hook its third argument. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb_reason_btf, struct sk_buff *skb, void *location, __u32 reason)
{
	return packet_drop(skb, location, reason, true);
}

SEC("raw_tp/kfree_skb")
int BPF_PROG(kfree_skb_reason_raw, struct sk_buff *skb, void *location, __u32 reason)
{
	return packet_drop(skb, location, reason, false);
}

SEC("tp_btf/kfree_skb") int BPF_PROG(kfree_skb_btf, struct sk_buff *skb, void *location)
{
	return packet_drop(skb, location, 0, true);
}

SEC("raw_tp/kfree_skb") int BPF_PROG(kfree_skb_raw, struct sk_buff *skb, void *location)
{
	return packet_drop(skb, location, 0, false);
}

/* ---- functions enclosed by two hooks ---------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet_stack);
} xmit_stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet_stack);
} gro_stack SEC(".maps");

/*
 * The packet of `kept` once more, after a function that may have freed it: nothing is read from it. ends:
 * that function told us that it has.
 */
static __always_inline void packet_again(struct emit_run *run, struct packet_kept *kept, __s32 code,
					 const __u32 probe, bool ends)
{
	__u64 key = kept->key;
	struct ev_packet_entry *e;
	struct ev_packet p;
	bool live, reaped;

	if (!kept->state) {
		emit_not_selected(run);
		return;
	}
	__builtin_memcpy(&p, &kept->packet, sizeof(p));
	p.ts_ns = bpf_ktime_get_ns();
	p.code = code;
	e = packet_entry(run, key, &live, &reaped);
	if (live && e->generation == p.hdr.id) {
		p.hop = ++e->hop;
		p.flags |= e->flags;
		if (ends) {
			p.flags |= EV_PACKET_END | EV_PACKET_MERGED_INTO;
			packet_end(e, p.ts_ns);
			/* A driver's next fragments come in the same sk_buff (napi_reuse_skb). */
			if (packet_exact && probe == EV_PROBE_NAPI_GRO_FRAGS_EXIT)
				packet_reborn(e);
		}
	} else if (p.hdr.id) {
		p.hop = 0;
		p.flags |= EV_PACKET_AFTER_END;
	}
	packet_emit(run, &p);
}

static __always_inline int packet_start_xmit(struct sk_buff *skb, const bool direct)
{
	struct ev_packet p = {};
	struct emit_run run;
	bool selected;

	if (!emit_enter(&run, EV_PROBE_NET_DEV_START_XMIT))
		return 0;
	selected = packet_observe(&run, &p, skb, PACKET_ON_DEVICE, true, direct);
	packet_keep(&xmit_stack, (__u64)skb, 0, &p, selected, true);
	return 0;
}

static __always_inline int packet_xmit(struct sk_buff *skb, int rc, struct net_device *dev,
				       unsigned int len, const bool direct)
{
	struct packet_kept *kept;
	struct emit_run run;

	if (!emit_enter(&run, EV_PROBE_NET_DEV_XMIT))
		return 0;
	kept = packet_unkeep(&xmit_stack, (__u64)skb, 0);
	if (kept) {
		packet_again(&run, kept, rc, EV_PROBE_NET_DEV_XMIT, false);
	} else {
		struct ev_packet p = {
			.ts_ns = bpf_ktime_get_ns(),
			.ifindex = KREAD(direct, dev, ifindex),
			.netns = packet_netns(dev, direct),
			.len = len,
			.code = rc,
			.flags = EV_PACKET_AFTER_END | EV_PACKET_NO_HEADER,
		};

		emit_identity_full(&run);
		packet_emit(&run, &p);
	}
	return 0;
}

SEC("tp_btf/net_dev_start_xmit") int BPF_PROG(net_dev_start_xmit_btf, struct sk_buff *skb)
{
	return packet_start_xmit(skb, true);
}

SEC("raw_tp/net_dev_start_xmit") int BPF_PROG(net_dev_start_xmit_raw, struct sk_buff *skb)
{
	return packet_start_xmit(skb, false);
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit_btf, struct sk_buff *skb, int rc, struct net_device *dev,
	     unsigned int len)
{
	return packet_xmit(skb, rc, dev, len, true);
}

SEC("raw_tp/net_dev_xmit")
int BPF_PROG(net_dev_xmit_raw, struct sk_buff *skb, int rc, struct net_device *dev,
	     unsigned int len)
{
	return packet_xmit(skb, rc, dev, len, false);
}

#define PACKET_GRO_MERGED_FREE 1 /* enum gro_result; the same on every kernel */

static __always_inline int packet_gro(struct sk_buff *skb, const __u32 probe, const bool direct)
{
	struct ev_packet p = {};
	struct emit_run run;
	bool selected;

	if (!emit_enter(&run, probe))
		return 0;
	selected = packet_observe(&run, &p, skb, PACKET_AT_DATA | PACKET_ON_DEVICE, true, direct);
	packet_keep(&gro_stack, (__u64)skb, 0, &p, selected, false);
	return 0;
}

static __always_inline int packet_gro_exit(int result, const __u32 probe)
{
	struct packet_kept *kept;
	struct emit_run run;

	if (!emit_enter(&run, probe))
		return 0;
	kept = packet_unkeep(&gro_stack, 0, 0);
	if (kept) {
		packet_again(&run, kept, result, probe, result == PACKET_GRO_MERGED_FREE);
	} else {
		/* It began before the gate opened, or its beginning was missed: whose it is nobody knows. */
		struct ev_packet p = {
			.ts_ns = bpf_ktime_get_ns(),
			.code = result,
			.flags = EV_PACKET_AFTER_END | EV_PACKET_NO_HEADER,
		};

		emit_identity_full(&run);
		packet_emit(&run, &p);
	}
	return 0;
}

#define PACKET_GRO_PROGRAMS(name, probe_entry, probe_exit)                                \
	SEC("tp_btf/" #name "_entry") int BPF_PROG(name##_entry_btf, struct sk_buff *skb) \
	{                                                                                 \
		return packet_gro(skb, probe_entry, true);                                \
	}                                                                                 \
	SEC("raw_tp/" #name "_entry") int BPF_PROG(name##_entry_raw, struct sk_buff *skb) \
	{                                                                                 \
		return packet_gro(skb, probe_entry, false);                               \
	}                                                                                 \
	SEC("tp_btf/" #name "_exit") int BPF_PROG(name##_exit_btf, int result)            \
	{                                                                                 \
		return packet_gro_exit(result, probe_exit);                               \
	}                                                                                 \
	SEC("raw_tp/" #name "_exit") int BPF_PROG(name##_exit_raw, int result)            \
	{                                                                                 \
		return packet_gro_exit(result, probe_exit);                               \
	}

PACKET_GRO_PROGRAMS(napi_gro_receive, EV_PROBE_NAPI_GRO_RECEIVE_ENTRY,
		    EV_PROBE_NAPI_GRO_RECEIVE_EXIT)
PACKET_GRO_PROGRAMS(napi_gro_frags, EV_PROBE_NAPI_GRO_FRAGS_ENTRY, EV_PROBE_NAPI_GRO_FRAGS_EXIT)

/* ---- hooks with other arguments --------------------------------------------------------------- */

/*
 * An event that a socket has to do with: of the packet, or where there is none (it has no headers yet, or
 * the kernel does not tell) of what the socket says its flow is. Neither: nothing to observe.
 */
static __always_inline int packet_sock_event(struct sock *sk, struct sk_buff *skb, __s32 code,
					     const __u32 probe, const bool direct)
{
	struct ev_packet p = {.code = code};
	struct packet_filter none = {};
	struct packet_view v;
	struct emit_run run;

	if ((!skb && !sk) || !emit_enter(&run, probe))
		return 0;
	if (skb) {
		if (!packet_look(&run, &p, skb, PACKET_ALWAYS, true, direct, &v))
			return 0;
	} else {
		p.ts_ns = bpf_ktime_get_ns();
		packet_from_sock(&p, sk);
		if (packet_selected(&run, &p, &none))
			packet_once(&run, &p);
		else if (!packet_unselected(&run, &p, PACKET_ALWAYS, true))
			return 0;
	}
	packet_emit(&run, &p);
	return 0;
}

/*
 * The packet here waits in the socket's queue for its acknowledgement; what is sent are clones of it, each with
 * an id of its own. No hook of this file sees its birth or its end.
 */
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb_btf, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(sk, NULL, 0, EV_PROBE_TCP_RETRANSMIT_SKB, false);
}

SEC("raw_tp/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb_raw, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(sk, NULL, 0, EV_PROBE_TCP_RETRANSMIT_SKB, false);
}

/* The segment that is answered, or none where the socket itself wants to reset (tcp_send_active_reset). */
SEC("tp_btf/tcp_send_reset")
int BPF_PROG(tcp_send_reset_btf, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(sk, skb, 0, EV_PROBE_TCP_SEND_RESET, true);
}

SEC("raw_tp/tcp_send_reset")
int BPF_PROG(tcp_send_reset_raw, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(sk, skb, 0, EV_PROBE_TCP_SEND_RESET, false);
}

SEC("tp_btf/sock_rcvqueue_full")
int BPF_PROG(sock_rcvqueue_full_btf, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(NULL, skb, 0, EV_PROBE_SOCK_RCVQUEUE_FULL, true);
}

SEC("raw_tp/sock_rcvqueue_full")
int BPF_PROG(sock_rcvqueue_full_raw, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(NULL, skb, 0, EV_PROBE_SOCK_RCVQUEUE_FULL, false);
}

/* e9669a00bba7 ("net: udp: add IP/port data to the tracepoint", 6.10) told which packet. */
SEC("tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(udp_fail_queue_rcv_skb_skb_btf, int rc, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(NULL, skb, rc, EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB, true);
}

SEC("raw_tp/udp_fail_queue_rcv_skb")
int BPF_PROG(udp_fail_queue_rcv_skb_skb_raw, int rc, struct sock *sk, struct sk_buff *skb)
{
	return packet_sock_event(NULL, skb, rc, EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB, false);
}

SEC("tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(udp_fail_queue_rcv_skb_btf, int rc, struct sock *sk)
{
	return packet_sock_event(sk, NULL, rc, EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB, false);
}

SEC("raw_tp/udp_fail_queue_rcv_skb")
int BPF_PROG(udp_fail_queue_rcv_skb_raw, int rc, struct sock *sk)
{
	return packet_sock_event(sk, NULL, rc, EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB, false);
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(qdisc_enqueue_btf, void *qdisc, void *txq, struct sk_buff *skb)
{
	return packet_event(skb, EV_PROBE_QDISC_ENQUEUE, PACKET_ON_DEVICE, true);
}

SEC("raw_tp/qdisc_enqueue")
int BPF_PROG(qdisc_enqueue_raw, void *qdisc, void *txq, struct sk_buff *skb)
{
	return packet_event(skb, EV_PROBE_QDISC_ENQUEUE, PACKET_ON_DEVICE, false);
}

/* Also runs where there was nothing to take: no packet, no observation. */
SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(qdisc_dequeue_btf, void *qdisc, void *txq, int packets, struct sk_buff *skb)
{
	return packet_event(skb, EV_PROBE_QDISC_DEQUEUE, PACKET_ON_DEVICE, true);
}

SEC("raw_tp/qdisc_dequeue")
int BPF_PROG(qdisc_dequeue_raw, void *qdisc, void *txq, int packets, struct sk_buff *skb)
{
	return packet_event(skb, EV_PROBE_QDISC_DEQUEUE, PACKET_ON_DEVICE, false);
}
