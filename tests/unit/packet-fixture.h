/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-fixture.h - a capture of packets in memory: segments, records and losses whose books balance by
 * construction, for tests that spoil one fact and for tools that write them to files.
 *
 * Segment n (from 0, its seq from 1) covers [FIX_SPAN_NS * (n + 1), FIX_SPAN_NS * (n + 2)], the last one is
 * sealed by the shutdown. A packet's path is net_dev_queue, net_dev_start_xmit, net_dev_xmit,
 * netif_receive_skb, consume_skb, FIX_STEP_NS from each other.
 */
#pragma once

#include <assert.h>

#include "format/packet-verdict.h"
#include "format/writer.h"

#define FIX_SEC_NS 1000000000ULL
#define FIX_SPAN_NS (1000 * FIX_SEC_NS)
#define FIX_STEP_NS 10000ULL
#define FIX_MAX_SEGMENTS 4
#define FIX_MAX_RECORDS 4096
#define FIX_MAX_LOSSES 64
#define FIX_MAX_WINDOWS 8
#define FIX_MAX_BOOKS 32

enum {
	FIX_RECEIVE = 64,
	FIX_QUEUE = 66,
	FIX_START_XMIT = 67,
	FIX_XMIT = 68,
	FIX_CONSUME = 69,
	FIX_KFREE = 70,
	FIX_RETRANSMIT = 71, /* absent */
	FIX_IP_RCV = 82,     /* refused */
	FIX_BIRTH = 97,	     /* __alloc_skb */
	FIX_FREED = 109,     /* kfree_skbmem */
	FIX_PROGRAM = 128,   /* a TC program */
};

struct fix_segment {
	struct iot_segment_info info;
	struct iot_footer f;
	struct iot_probe probes[12];
	struct iot_books books[FIX_MAX_BOOKS];
	struct iot_window windows[FIX_MAX_WINDOWS];
	struct iot_loss losses[FIX_MAX_LOSSES];
	struct iot_name devices[2];
	struct iot_name symbols[1];
	struct iot_name reasons[3];
};

struct fix_record {
	struct iot_packet p;
	unsigned int segment;
};

struct fix_capture {
	struct fix_segment s[FIX_MAX_SEGMENTS];
	size_t n;
	struct fix_record records[FIX_MAX_RECORDS];
	size_t n_records;
	/* Spoiled: left out of the chain; without footer. */
	bool missing[FIX_MAX_SEGMENTS];
	bool no_footer[FIX_MAX_SEGMENTS];
};

static inline void fix_probe(struct fix_segment *s, uint16_t id, const char *name, const char *hook)
{
	struct iot_probe *p = &s->probes[s->f.n_probes++];

	*p = (struct iot_probe){
		.id = id,
		.state = IOT_ATTACH_ATTACHED,
		.miss = IOT_MISS_COUNTED,
		.from_ns = FIX_SPAN_NS - FIX_SEC_NS,
	};
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->hook, sizeof(p->hook), "%s", hook);
	s->info.n_probes = s->f.n_probes;
}

static inline struct iot_books *fix_books(struct fix_segment *s, uint16_t probe, uint32_t cpu)
{
	struct iot_books *b;

	for (size_t i = 0; i < s->f.n_books; i++)
		if (s->books[i].probe == probe && s->books[i].cpu == cpu)
			return &s->books[i];
	assert(s->f.n_books < FIX_MAX_BOOKS);
	b = &s->books[s->f.n_books++];
	*b = (struct iot_books){.probe = probe, .cpu = cpu};
	return b;
}

static inline struct iot_probe *fix_row(struct fix_segment *s, uint16_t id)
{
	for (size_t i = 0; i < s->f.n_probes; i++)
		if (s->probes[i].id == id)
			return &s->probes[i];
	return NULL;
}

static inline void fix_segment_init(struct fix_segment *s, uint64_t seq)
{
	s->info.stream = IOT_STREAM_PACKET;
	s->info.seq = s->info.epoch = seq;
	s->info.n_rings = 1;
	s->info.n_cpus = 2;
	s->info.attach_ns = FIX_SPAN_NS;
	s->info.clocks.monotonic_ns = FIX_SPAN_NS * seq - FIX_SEC_NS;
	s->info.clocks.boottime_ns = s->info.clocks.monotonic_ns;
	s->info.clocks.realtime_ns = 1700000000ULL * FIX_SEC_NS + s->info.clocks.monotonic_ns;
	memset(s->info.capture_id, 9, sizeof(s->info.capture_id));
	memset(s->info.machine_id, 1, sizeof(s->info.machine_id));
	memset(s->info.boot_id, 2, sizeof(s->info.boot_id));
	snprintf(s->info.host, sizeof(s->info.host), "host");
	snprintf(s->info.kernel, sizeof(s->info.kernel), "6.12.0");
	snprintf(s->info.selection, sizeof(s->info.selection), "all");
	snprintf(s->info.identity, sizeof(s->info.identity), "exact");
	s->info.probes = s->probes;
	s->f = (struct iot_footer){
		.reason = IOT_SEAL_TIME,
		.clocks = s->info.clocks,
		.epoch_first_ns = FIX_SPAN_NS * seq,
		.epoch_last_ns = FIX_SPAN_NS * (seq + 1),
		.books = s->books,
		.windows = s->windows,
		.losses = s->losses,
		.probes = s->probes,
	};
	fix_probe(s, FIX_RECEIVE, "netif_receive_skb", "tp_btf");
	fix_probe(s, FIX_QUEUE, "net_dev_queue", "tp_btf");
	fix_probe(s, FIX_START_XMIT, "net_dev_start_xmit", "tp_btf");
	fix_probe(s, FIX_XMIT, "net_dev_xmit", "tp_btf");
	fix_probe(s, FIX_CONSUME, "consume_skb", "tp_btf");
	fix_probe(s, FIX_KFREE, "kfree_skb", "tp_btf");
	for (size_t i = 0; i < s->f.n_probes; i++)
		(void)fix_books(s, s->probes[i].id, UINT32_MAX);
	fix_probe(s, FIX_RETRANSMIT, "tcp_retransmit_skb", "");
	s->probes[6].state = IOT_ATTACH_ABSENT;
	fix_probe(s, FIX_IP_RCV, "ip_rcv", "fentry");
	s->probes[7].state = IOT_ATTACH_REFUSED;
	s->probes[7].error = -EPERM;
	fix_probe(s, FIX_BIRTH, "__alloc_skb", "fexit");
	fix_probe(s, FIX_FREED, "kfree_skbmem", "fentry");
	(void)fix_books(s, FIX_BIRTH, UINT32_MAX);
	(void)fix_books(s, FIX_FREED, UINT32_MAX);
	s->devices[0] = (struct iot_name){IOT_IFACE_KEY(4026531840U, 2), (char *)"veth0"};
	s->devices[1] = (struct iot_name){IOT_IFACE_KEY(4026531841U, 3), (char *)"veth1"};
	s->symbols[0] = (struct iot_name){0xffffffff81001234ULL, (char *)"nf_hook_slow+0x9a"};
	s->reasons[0] = (struct iot_name){2, (char *)"NOT_SPECIFIED"};
	s->reasons[1] = (struct iot_name){6, (char *)"NETFILTER_DROP"};
	s->reasons[2] = (struct iot_name){9, (char *)"SOCKET_RCVBUFF"};
	s->f.devices = (struct iot_names){s->devices, 2};
	s->f.symbols = (struct iot_names){s->symbols, 1};
	s->info.reasons = (struct iot_names){s->reasons, 3};
}

static inline void fix_init(struct fix_capture *c, size_t n)
{
	memset(c, 0, sizeof(*c));
	assert(n <= FIX_MAX_SEGMENTS);
	c->n = n;
	for (size_t i = 0; i < n; i++)
		fix_segment_init(&c->s[i], i + 1);
	c->s[n - 1].f.reason = IOT_SEAL_SHUTDOWN;
}

/* Observation `hop` (from 1) of a UDP packet that is at its start at first_ns. */
static inline struct iot_packet fix_packet(uint64_t id, uint64_t first_ns, uint32_t hop)
{
	static const uint16_t path[] = {FIX_QUEUE, FIX_START_XMIT, FIX_XMIT, FIX_RECEIVE,
					FIX_CONSUME};
	struct iot_packet p = {
		.ts_ns = first_ns + (hop - 1) * FIX_STEP_NS,
		.id = id,
		.netns = hop < 4 ? 4026531840U : 4026531841U,
		.ifindex = hop < 4 ? 2 : 3,
		.len = hop < 4 ? 142 : 128,
		.hop = hop,
		.flags = IOT_PACKET_FROM_START,
		.probe = path[hop - 1],
		.ip_id = (uint16_t)id,
		.flow = {.src = {10, 0, 0, 1},
			 .dst = {10, 0, 0, 2},
			 .sport = 4000,
			 .dport = 53,
			 .protocol = 0x0800,
			 .family = 4,
			 .ip_proto = 17},
	};

	if (hop == 1) {
		p.flags |= IOT_PACKET_TASK;
		p.pid = p.tgid = 1234;
		memcpy(p.comm, "sender", 7);
	}
	if (hop == IOT_ARRAY_SIZE(path))
		p.flags |= IOT_PACKET_END;
	return p;
}

static inline void fix_record(struct fix_capture *c, unsigned int segment,
			      const struct iot_packet *p)
{
	struct iot_books *b = fix_books(&c->s[segment], p->probe, p->cpu);

	assert(c->n_records < FIX_MAX_RECORDS);
	c->records[c->n_records++] = (struct fix_record){*p, segment};
	b->seen++;
	b->emitted++;
	b->written++;
	if (!p->id)
		b->identity_full++;
}

/* The observation was made, found no room, and was filed against its packet. */
static inline struct iot_loss *fix_lose(struct fix_capture *c, unsigned int segment,
					const struct iot_packet *p)
{
	struct fix_segment *s = &c->s[segment];
	struct iot_books *b = fix_books(s, p->probe, p->cpu);
	struct iot_loss *loss = &s->losses[s->f.n_losses];

	assert(s->f.n_losses < FIX_MAX_LOSSES);
	s->f.n_losses++;
	b->seen++;
	b->reserve_failed++;
	b->filed++;
	if (!p->id)
		b->identity_full++;
	*loss = (struct iot_loss){
		.id = p->id,
		.n = 1,
		.bytes = p->len,
		.parent = p->parent,
		.first_ns = p->ts_ns,
		.last_ns = p->ts_ns,
		.netns = p->netns,
		.ifindex = p->ifindex,
		.flags = p->flags,
		.probe = p->probe,
		.cause = IOT_LOSS_RESERVE_FAILED,
		.flow = p->flow,
		.code = p->code,
	};
	return loss;
}

static inline void fix_window(struct fix_capture *c, unsigned int segment, uint16_t kind,
			      uint16_t probe, uint64_t t0_ns, uint64_t t1_ns, uint64_t n)
{
	struct fix_segment *s = &c->s[segment];

	assert(s->f.n_windows < FIX_MAX_WINDOWS);
	s->windows[s->f.n_windows++] = (struct iot_window){.kind = kind,
							   .probe = probe,
							   .t0_ns = t0_ns,
							   .t1_ns = t1_ns,
							   .n = n,
							   .cpu = UINT32_MAX};
}

/* n observations without room on the ring nor in the ledger. */
static inline void fix_unattributed(struct fix_capture *c, unsigned int segment, uint16_t probe,
				    uint64_t t0_ns, uint64_t t1_ns, uint64_t n)
{
	struct iot_books *b = fix_books(&c->s[segment], probe, 0);

	b->seen += n;
	b->reserve_failed += n;
	b->unattributed += n;
	fix_window(c, segment, IOT_WINDOW_UNATTRIBUTED, probe, t0_ns, t1_ns, n);
}

static inline void fix_missed(struct fix_capture *c, unsigned int segment, uint16_t probe,
			      uint64_t t0_ns, uint64_t t1_ns, uint64_t n)
{
	fix_books(&c->s[segment], probe, UINT32_MAX)->missed += n;
	fix_window(c, segment, IOT_WINDOW_MISSED, probe, t0_ns, t1_ns, n);
}

/* Hops [from, to] of a packet. */
static inline void fix_path(struct fix_capture *c, unsigned int segment, uint64_t id,
			    uint64_t first_ns, uint32_t from, uint32_t to)
{
	for (uint32_t hop = from; hop <= to; hop++) {
		struct iot_packet p = fix_packet(id, first_ns, hop);

		fix_record(c, segment, &p);
	}
}

/* The chain as it is given to a reader. */
static inline int fix_doubts(struct fix_capture *c, struct iot_doubts **ret)
{
	const struct iot_segment_info *infos[FIX_MAX_SEGMENTS];
	const struct iot_footer *footers[FIX_MAX_SEGMENTS];
	size_t at[FIX_MAX_SEGMENTS], n = 0;
	int r;

	for (size_t i = 0; i < c->n; i++) {
		if (c->missing[i])
			continue;
		at[i] = n;
		infos[n] = &c->s[i].info;
		footers[n++] = c->no_footer[i] ? NULL : &c->s[i].f;
	}
	r = iot_doubts_new(infos, footers, n, ret);
	for (size_t i = 0; r == 0 && i < c->n_records; i++)
		if (!c->records[i].p.id && !c->missing[c->records[i].segment])
			r = iot_doubts_unidentified(*ret, at[c->records[i].segment],
						    &c->records[i].p);
	return r;
}

static inline struct iot_packet_life fix_life(const struct fix_capture *c, uint64_t id)
{
	struct iot_packet_life l = {.id = id};

	for (size_t i = 0; i < c->n_records; i++)
		if (c->records[i].p.id == id && !c->missing[c->records[i].segment])
			iot_packet_life_add(&l, &c->records[i].p);
	return l;
}
