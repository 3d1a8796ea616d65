/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gen-packet.h - observations of packets as a machine makes them: flows that send packets, each seen
 * by a handful of probes in order; and a kind of noise that respects nothing.
 */
#pragma once

#include "format/packet.h"

enum gen_packets {
	GEN_PACKETS_FLOOD, /* one UDP flow, five probes a packet */
	GEN_PACKETS_MIXED, /* many flows, v4 and v6, TCP, UDP and ICMP, clones, drops, VLAN */
	GEN_PACKETS_NOISE, /* every field random */
};

#define GEN_PACKETS_LIVE 16 /* packets under way at once */

struct gen_life {
	struct iot_packet p; /* as of its last observation */
	unsigned int step;
	unsigned int n_steps;
};

struct gen_packet {
	enum gen_packets kind;
	uint64_t seed;
	uint64_t now_ns;
	uint64_t counter[4];
	uint16_t ip_id[256];
	struct gen_life live[GEN_PACKETS_LIVE];
};

static inline uint64_t gen_packet_random(struct gen_packet *g)
{
	/* xorshift64* */
	g->seed ^= g->seed >> 12;
	g->seed ^= g->seed << 25;
	g->seed ^= g->seed >> 27;
	return g->seed * 0x2545F4914F6CDD1DULL;
}

static inline void gen_packet_init(struct gen_packet *g, enum gen_packets kind, uint64_t seed)
{
	*g = (struct gen_packet){.kind = kind, .seed = seed * 2 + 1, .now_ns = 1000000000};
}

static inline void gen_packet_begin(struct gen_packet *g, struct gen_life *l)
{
	uint64_t x = gen_packet_random(g);
	unsigned int flow = g->kind == GEN_PACKETS_FLOOD ? 7 : (unsigned int)(x % 200);
	uint32_t cpu = (uint32_t)(x >> 32) % (g->kind == GEN_PACKETS_FLOOD ? 1 : 4);
	struct iot_packet *p = &l->p;

	*p = (struct iot_packet){0};
	p->id = ++g->counter[cpu] << 13 | cpu;
	p->cpu = cpu;
	p->flags = IOT_PACKET_FROM_START | IOT_PACKET_BORN;
	p->flow.family = flow % 5 == 0 ? 6 : 4;
	p->flow.protocol = p->flow.family == 6 ? 0x86dd : 0x0800;
	p->flow.ip_proto = flow % 3 == 0 ? 17 : flow % 3 == 1 ? 6 : 1;
	p->flow.src[0] = 10;
	p->flow.src[3] = (uint8_t)(1 + flow % 4);
	p->flow.dst[0] = 10;
	p->flow.dst[3] = (uint8_t)(100 + flow % 16);
	if (p->flow.family == 6)
		p->flow.dst[15] = (uint8_t)flow;
	if (p->flow.ip_proto != 1) {
		p->flow.sport = (uint16_t)(30000 + flow);
		p->flow.dport = flow % 2 ? 443 : 5201;
	}
	p->l4[0] = p->flow.ip_proto == 6   ? (x >> 8) % 4 ? 0x10 : 0x18
		   : p->flow.ip_proto == 1 ? 8
					   : 0;
	p->ip_id = p->flow.family == 4 ? g->ip_id[flow % 256]++ : 0;
	p->len = g->kind == GEN_PACKETS_FLOOD ? 106
		 : (x >> 16) % 3	      ? 1500
					      : 66 + (uint32_t)(x >> 20) % 200;
	p->netns = 4026531840U;
	p->ifindex = 2;
	if (g->kind == GEN_PACKETS_MIXED && (x >> 40) % 8 == 0) {
		p->parent = p->id - (1ULL << 13);
		p->flags |= IOT_PACKET_CLONE;
	}
	if (flow % 50 == 3) {
		p->flow.vlan_tci = 100;
		p->flags |= IOT_PACKET_VLAN;
	}
	l->step = 0;
	l->n_steps = 5;
}

static inline void gen_packet(struct gen_packet *g, struct iot_packet *ret)
{
	static const uint16_t probes[] = {66, 67, 68, 64, 69};
	struct gen_life *l;
	uint64_t x = gen_packet_random(g);

	if (g->kind == GEN_PACKETS_NOISE) {
		uint8_t *bytes = (uint8_t *)ret;

		for (size_t i = 0; i < sizeof(*ret); i++)
			bytes[i] = (uint8_t)(gen_packet_random(g) >> 33);
		/* Structure padding is no field. */
		ret->ts_ns >>= x % 64;
		ret->id >>= x % 57;
		return;
	}
	l = &g->live[g->kind == GEN_PACKETS_FLOOD ? 0 : x % GEN_PACKETS_LIVE];
	if (l->step == l->n_steps)
		gen_packet_begin(g, l);
	g->now_ns += 200 + (x >> 32) % (g->kind == GEN_PACKETS_FLOOD ? 400 : 4000);
	l->p.ts_ns = g->now_ns;
	l->p.hop++;
	l->p.probe = probes[l->step];
	l->p.code = 0;
	l->p.where = 0;
	if (l->step < 2) {
		l->p.flags |= IOT_PACKET_TASK;
		l->p.pid = l->p.tgid = 1000 + l->p.flow.sport % 8;
		memcpy(l->p.comm, "sender", 7);
	} else {
		l->p.flags &= (uint16_t)~IOT_PACKET_TASK;
		l->p.pid = l->p.tgid = 0;
		memset(l->p.comm, 0, sizeof(l->p.comm));
	}
	if (l->step == 3) {
		l->p.ifindex = 3;
		l->p.netns++;
		l->p.cpu ^= 1;
	}
	if (l->step == 4) {
		l->p.flags |= IOT_PACKET_END;
		if (g->kind == GEN_PACKETS_MIXED && (x >> 8) % 10 == 0) {
			l->p.probe = 70;
			l->p.code = 2 + (int32_t)((x >> 16) % 3);
			l->p.where = 0xffffffff81000000ULL + (x >> 20) % 4 * 0x1234;
		}
	}
	l->step++;
	*ret = l->p;
}

/* The first field in which two observations differ; NULL: none. */
static inline const char *gen_packet_difference(const struct iot_packet *a,
						const struct iot_packet *b)
{
#define DIFFERS(field)            \
	if (a->field != b->field) \
		return #field;
	DIFFERS(ts_ns)
	DIFFERS(id)
	DIFFERS(parent)
	DIFFERS(where)
	DIFFERS(netns)
	DIFFERS(ifindex)
	DIFFERS(len)
	DIFFERS(mark)
	DIFFERS(code)
	DIFFERS(hop)
	DIFFERS(cpu)
	DIFFERS(pid)
	DIFFERS(tgid)
	DIFFERS(flags)
	DIFFERS(probe)
	DIFFERS(ip_id)
	DIFFERS(l4[0])
	DIFFERS(l4[1])
	DIFFERS(ring)
	DIFFERS(flow.sport)
	DIFFERS(flow.dport)
	DIFFERS(flow.protocol)
	DIFFERS(flow.vlan_tci)
	DIFFERS(flow.family)
	DIFFERS(flow.ip_proto)
#undef DIFFERS
	if (memcmp(a->flow.src, b->flow.src, 16) != 0)
		return "flow.src";
	if (memcmp(a->flow.dst, b->flow.dst, 16) != 0)
		return "flow.dst";
	return memcmp(a->comm, b->comm, IOT_COMM_LEN) != 0 ? "comm" : NULL;
}
