/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.h - one observation of one packet at one probe, as a plain struct in memory, and the batch
 * of a block of them.
 *
 * A packet is one life of one kernel buffer: its id is a generation, given once and never to an
 * address. What is written here is what the probe saw; who may draw which conclusion from it is
 * packet-verdict.h's business. Values of enums are on disk: explicit, never reordered.
 */
#pragma once

#include "format/batch.h"
#include "format/record.h"

#define IOT_FIRST_PACKET_PROBE 64U /* ids are counted from here in sets and masks */
#define IOT_N_PACKET_PROBES 128U

/*
 * Probes that readers know by more than their name. Ids are on disk: these are those of bpf/events.h, which
 * daemon/decode-packet.c holds them to.
 */
enum iot_packet_probe {
	IOT_PROBE_NET_DEV_QUEUE = 66,
	IOT_PROBE_NET_DEV_START_XMIT = 67,
	IOT_PROBE_NET_DEV_XMIT = 68,
	/* Ends, and no capture of packets does without them. */
	IOT_PROBE_CONSUME_SKB = 69,
	IOT_PROBE_KFREE_SKB = 70,
	/* Events of sockets. */
	IOT_PROBE_TCP_RETRANSMIT_SKB = 71,
	IOT_PROBE_TCP_SEND_RESET = 72,
	IOT_PROBE_UDP_FAIL_QUEUE_RCV_SKB = 74,
	IOT_PROBE_GRO_RECEIVE_ENTRY = 76,
	IOT_PROBE_GRO_RECEIVE_EXIT = 77,
	IOT_PROBE_GRO_FRAGS_ENTRY = 78,
	IOT_PROBE_GRO_FRAGS_EXIT = 79,
	IOT_PROBE_QDISC_ENQUEUE = 80,
	IOT_PROBE_QDISC_DEQUEUE = 81,
	IOT_PROBE_DEV_QUEUE_XMIT = 96, /* __dev_queue_xmit */
	/* Births, the usual one first: ids are exact in no segment that did not observe it and the usual end. */
	IOT_FIRST_BIRTH_PROBE = 97,
	IOT_PROBE_ALLOC_SKB = 97,
	/* These make a packet out of another and are recorded; others only count. */
	IOT_PROBE_SKB_CLONE = 98,
	IOT_PROBE_SKB_COPY = 99,
	IOT_PROBE_PSKB_COPY_FCLONE = 100,
	IOT_LAST_BIRTH_PROBE = 108,
	IOT_PROBE_KFREE_SKBMEM = 109,
	IOT_LAST_END_PROBE = 114,
	/* Says whether TC and XDP programs are looked for; each of them has a number from the next one on. */
	IOT_PROBE_PROGRAMS = 128,
};

/* Facts about an observation. Those of a packet are the OR over its observations and losses. */
enum iot_packet_flag {
	/* Nothing of the packet can have been seen before its first record: its birth was observed, or
	 * the end of the life before it. Clear: it may be older than the capture. */
	IOT_PACKET_FROM_START = 1U << 0,
	IOT_PACKET_BORN = 1U << 1,	  /* its birth was observed itself */
	IOT_PACKET_END = 1U << 2,	  /* this observation ends the life */
	IOT_PACKET_MERGED = 1U << 3,	  /* more than one packet may stand behind the id */
	IOT_PACKET_MERGED_INTO = 1U << 4, /* it went into another packet: parent */
	IOT_PACKET_CLONE = 1U << 5,	  /* born from another packet: parent */
	IOT_PACKET_NOT_SELECTED = 1U
				  << 6,	 /* an always-on event of a packet outside the selection */
	IOT_PACKET_FRAGMENT = 1U << 7,	 /* IP fragment; ports only where it carries them */
	IOT_PACKET_VLAN = 1U << 8,	 /* vlan_tci is valid */
	IOT_PACKET_TASK = 1U << 9,	 /* pid, tgid and comm are valid */
	IOT_PACKET_NO_HEADER = 1U << 10, /* no network header could be read: no flow */
	/* Made after the packet's own end, from what was kept: neither hop nor header. */
	IOT_PACKET_AFTER_END = 1U << 11,
	/*
	 * A frame at an XDP program: no packet yet. Its id stands for that one observation; the packet
	 * that may be made of the frame has another.
	 */
	IOT_PACKET_FRAME = 1U << 12,
};

/* Host order but for the addresses. ts is CLOCK_MONOTONIC. */
struct iot_packet {
	uint64_t ts_ns;
	uint64_t id;	 /* 0 = unidentified */
	uint64_t parent; /* CLONE: from; MERGED_INTO: into; 0 = none */
	uint64_t where;	 /* drops: number of a place in code; programs: their id; 0 = null */
	struct iot_flow flow;
	uint32_t netns;	  /* inode number of the device's network namespace; 0 = null */
	uint32_t ifindex; /* 0 = null */
	uint32_t len;
	uint32_t mark;
	int32_t code; /* of the probe: drop reason, return value, errno */
	uint32_t hop; /* 1.. in the order of the packet's observations; 0 = not known */
	uint32_t cpu;
	uint32_t pid; /* with tgid and comm: IOT_PACKET_TASK */
	uint32_t tgid;
	uint16_t flags; /* enum iot_packet_flag */
	uint16_t probe;
	uint16_t ip_id;
	uint8_t l4[2]; /* TCP: flags; ICMP: type, code */
	uint8_t ring;
	char comm[IOT_COMM_LEN]; /* NUL padded, not necessarily terminated */
};

/* Key of an interface in a segment's table of device names. */
#define IOT_IFACE_KEY(netns, ifindex) ((uint64_t)(netns) << 32 | (ifindex))

/* "from-start", ... by bit number; NULL if the bit has no name. */
const char *iot_packet_flag_name(unsigned int bit);
/* What a TC or XDP program decided by returning code: "ok", "drop", ...; NULL if that has no name. */
const char *iot_program_action_name(unsigned int program_kind, int32_t code);
/* "tcp", "udp", "icmp", ...; NULL if it has no short name. */
const char *iot_ip_proto_name(unsigned int ip_proto);

/* As iot_batch_add() and iot_batch_get(), for batches of IOT_STREAM_PACKET. */
int iot_batch_add_packet(struct iot_batch *b, const struct iot_packet *p) IOT_MUST_CHECK;
void iot_batch_get_packet(const struct iot_batch *b, uint32_t i, struct iot_packet *ret);

/* Which fields a reader will look at: bits 1 << enum iot_packet_column; time, id, probe and CPU come
 * with all of them. */
#define IOT_PCOLS_ALL UINT64_MAX
