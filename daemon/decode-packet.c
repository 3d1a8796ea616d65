// SPDX-License-Identifier: BSD-2-Clause
/* decode-packet.c - see decode-packet.h. */
#include <stddef.h>

#include "daemon/decode-packet.h"

/* Flags are copied: each is the same bit on both sides, and this is where it would show if not. */
_Static_assert((int)EV_PACKET_FROM_START == (int)IOT_PACKET_FROM_START, "flag");
_Static_assert((int)EV_PACKET_BORN == (int)IOT_PACKET_BORN, "flag");
_Static_assert((int)EV_PACKET_END == (int)IOT_PACKET_END, "flag");
_Static_assert((int)EV_PACKET_MERGED == (int)IOT_PACKET_MERGED, "flag");
_Static_assert((int)EV_PACKET_MERGED_INTO == (int)IOT_PACKET_MERGED_INTO, "flag");
_Static_assert((int)EV_PACKET_CLONE == (int)IOT_PACKET_CLONE, "flag");
_Static_assert((int)EV_PACKET_NOT_SELECTED == (int)IOT_PACKET_NOT_SELECTED, "flag");
_Static_assert((int)EV_PACKET_FRAGMENT == (int)IOT_PACKET_FRAGMENT, "flag");
_Static_assert((int)EV_PACKET_VLAN == (int)IOT_PACKET_VLAN, "flag");
_Static_assert((int)EV_PACKET_TASK == (int)IOT_PACKET_TASK, "flag");
_Static_assert((int)EV_PACKET_NO_HEADER == (int)IOT_PACKET_NO_HEADER, "flag");
_Static_assert((int)EV_PACKET_AFTER_END == (int)IOT_PACKET_AFTER_END, "flag");
_Static_assert((int)EV_PACKET_FRAME == (int)IOT_PACKET_FRAME, "flag");
/* So are the numbers of probes that readers know. */
_Static_assert((int)EV_PROBE_NET_DEV_QUEUE == (int)IOT_PROBE_NET_DEV_QUEUE, "probe");
_Static_assert((int)EV_PROBE_NET_DEV_START_XMIT == (int)IOT_PROBE_NET_DEV_START_XMIT, "probe");
_Static_assert((int)EV_PROBE_NET_DEV_XMIT == (int)IOT_PROBE_NET_DEV_XMIT, "probe");
_Static_assert((int)EV_PROBE_CONSUME_SKB == (int)IOT_PROBE_CONSUME_SKB, "probe");
_Static_assert((int)EV_PROBE_KFREE_SKB == (int)IOT_PROBE_KFREE_SKB, "probe");
_Static_assert((int)EV_PROBE_TCP_RETRANSMIT_SKB == (int)IOT_PROBE_TCP_RETRANSMIT_SKB, "probe");
_Static_assert((int)EV_PROBE_TCP_SEND_RESET == (int)IOT_PROBE_TCP_SEND_RESET, "probe");
_Static_assert((int)EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB == (int)IOT_PROBE_UDP_FAIL_QUEUE_RCV_SKB,
	       "probe");
_Static_assert((int)EV_PROBE_QDISC_ENQUEUE == (int)IOT_PROBE_QDISC_ENQUEUE, "probe");
_Static_assert((int)EV_PROBE_QDISC_DEQUEUE == (int)IOT_PROBE_QDISC_DEQUEUE, "probe");
_Static_assert((int)EV_PROBE_DEV_QUEUE_XMIT == (int)IOT_PROBE_DEV_QUEUE_XMIT, "probe");
_Static_assert((int)EV_PROBE_SKB_CLONE == (int)IOT_PROBE_SKB_CLONE, "probe");
_Static_assert((int)EV_PROBE_SKB_COPY == (int)IOT_PROBE_SKB_COPY, "probe");
_Static_assert((int)EV_PROBE_PSKB_COPY_FCLONE == (int)IOT_PROBE_PSKB_COPY_FCLONE, "probe");
_Static_assert((int)EV_PROBE_NAPI_GRO_RECEIVE_ENTRY == (int)IOT_PROBE_GRO_RECEIVE_ENTRY, "probe");
_Static_assert((int)EV_PROBE_NAPI_GRO_RECEIVE_EXIT == (int)IOT_PROBE_GRO_RECEIVE_EXIT, "probe");
_Static_assert((int)EV_PROBE_NAPI_GRO_FRAGS_ENTRY == (int)IOT_PROBE_GRO_FRAGS_ENTRY, "probe");
_Static_assert((int)EV_PROBE_NAPI_GRO_FRAGS_EXIT == (int)IOT_PROBE_GRO_FRAGS_EXIT, "probe");
_Static_assert((int)EV_PROBE_PACKET_PROGRAM == (int)IOT_PROBE_PROGRAMS, "probe");
_Static_assert((int)EV_PROBE_ALLOC_SKB == (int)IOT_PROBE_ALLOC_SKB, "probe");
_Static_assert((int)EV_PROBE_KFREE_SKBMEM == (int)IOT_PROBE_KFREE_SKBMEM, "probe");
_Static_assert((int)EV_PROBE_SKB_ATTEMPT_DEFER_FREE == (int)IOT_LAST_END_PROBE, "probe");
_Static_assert((int)EV_PROBE_ALLOC_SKB == (int)IOT_FIRST_BIRTH_PROBE, "probe");
_Static_assert((int)EV_PROBE_NAPI_ALLOC_SKB == (int)IOT_LAST_BIRTH_PROBE, "probe");
_Static_assert((int)EV_FIRST_PACKET_PROBE == (int)IOT_FIRST_PACKET_PROBE, "probe");
_Static_assert((int)EV_N_PACKET_PROBES == (int)IOT_N_PACKET_PROBES, "probe");
_Static_assert(sizeof(struct ev_packet) % 8 == 0, "ring records are multiples of 8 bytes");
_Static_assert(sizeof(((struct ev_packet_task *)0)->comm) == sizeof(((struct iot_packet *)0)->comm),
	       "comm lengths differ");

static bool is_packet_probe(uint16_t probe)
{
	return probe >= EV_FIRST_PACKET_PROBE && probe < EV_PACKET_PROGRAMS_END;
}

/* Programs say which one they are, everything else gives an address of code: that stays here. */
static uint64_t where_of(const struct decode_packet *d, const struct ev_packet *e)
{
	return e->hdr.probe >= EV_PROBE_PACKET_PROGRAM ? e->where
						       : places_number(d->places, e->where);
}

int decode_packet_record(const struct decode_packet *d, const void *data, uint32_t len,
			 struct iot_packet *ret, struct ev_hdr *ret_hdr)
{
	const struct ev_packet *e = data;
	const struct ev_packet_task *t = data;
	bool task;

	if (len < sizeof(struct ev_hdr)) {
		*ret_hdr = (struct ev_hdr){};
		return DECODE_BAD;
	}
	*ret_hdr = e->hdr;
	task = len == sizeof(*t);
	if ((len != sizeof(*e) && !task) || e->hdr.len != len || !is_packet_probe(e->hdr.probe) ||
	    e->hdr.cpu >= d->n_cpus || (e->flags & EV_PACKET_TASK && !task))
		return DECODE_BAD;
	*ret = (struct iot_packet){
		.ts_ns = e->ts_ns,
		.id = e->hdr.id,
		.parent = e->parent,
		.where = where_of(d, e),
		.flow.sport = e->sport,
		.flow.dport = e->dport,
		.flow.protocol = e->protocol,
		.flow.vlan_tci = e->flags & EV_PACKET_VLAN ? e->vlan_tci : 0,
		.flow.family = e->family,
		.flow.ip_proto = e->ip_proto,
		.netns = e->netns,
		.ifindex = e->ifindex,
		.len = e->len,
		.mark = e->mark,
		.code = e->code,
		.hop = e->hop,
		.cpu = e->hdr.cpu,
		.flags = e->flags,
		.probe = e->hdr.probe,
		.ip_id = e->ip_id,
		.l4 = {e->l4[0], e->l4[1]},
	};
	memcpy(ret->flow.src, e->saddr, sizeof(ret->flow.src));
	memcpy(ret->flow.dst, e->daddr, sizeof(ret->flow.dst));
	if (task && e->flags & EV_PACKET_TASK) {
		ret->pid = t->pid;
		ret->tgid = t->tgid;
		memcpy(ret->comm, t->comm, sizeof(ret->comm));
	}
	return 0;
}

void decode_packet_loss(const struct ev_ledger_key *key, const struct ev_packet_loss *val,
			struct iot_loss *ret)
{
	*ret = (struct iot_loss){
		.id = key->id,
		.n = val->n,
		.bytes = val->bytes,
		.parent = val->parent,
		.first_ns = val->first_ns,
		.last_ns = val->last_ns,
		.netns = val->netns,
		.ifindex = val->ifindex,
		.flags = val->flags,
		.probe = (uint16_t)key->probe,
		.cause = IOT_LOSS_RESERVE_FAILED,
		.flow.sport = val->sport,
		.flow.dport = val->dport,
		.flow.protocol = val->protocol,
		.flow.family = val->family,
		.flow.ip_proto = val->ip_proto,
		.l4 = {val->l4[0], val->l4[1]},
		.code = val->code,
	};
	memcpy(ret->flow.src, val->saddr, sizeof(ret->flow.src));
	memcpy(ret->flow.dst, val->daddr, sizeof(ret->flow.dst));
}

void decode_packet_user_loss(const struct ev_hdr *hdr, const struct iot_packet *p,
			     enum iot_loss_cause cause, uint64_t last_ns, struct iot_loss *ret)
{
	*ret = (struct iot_loss){
		.id = hdr->id,
		.n = 1,
		.last_ns = last_ns,
		/* Its flow may be any. */
		.flags = IOT_PACKET_NO_HEADER,
		.probe = hdr->probe,
		.cause = (uint8_t)cause,
	};
	if (!p)
		return;
	ret->first_ns = p->ts_ns;
	ret->last_ns = p->ts_ns;
	ret->bytes = p->len;
	ret->parent = p->parent;
	ret->netns = p->netns;
	ret->ifindex = p->ifindex;
	ret->flags = p->flags;
	ret->flow = p->flow;
	ret->code = p->code;
	memcpy(ret->l4, p->l4, sizeof(ret->l4));
}
