/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-verdict.h - what the record can prove about one packet, one probe, one flow. Pure.
 *
 * Two things are held against each other. A *life* is all that was recorded of one packet: its
 * records, added up in any order. *Doubts* are all that the headers and footers of one capture say is
 * missing: the ledger by owner, and everything without an owner as a span of time at a probe (a window,
 * an epoch whose books do not balance, a segment that is not there). A packet's verdict is the ledger's
 * word about its id, and the doubts that overlap its life; so doubt stays bounded in time and by probe,
 * and packets beside a window are complete in the same capture.
 *
 * A packet's observations are numbered (hop) when they are made, recorded or lost. A number that is
 * neither in a record nor in the ledger proves that something is missing, whatever the footers say; and
 * where the record has them all, from the first to the one that ended the life, no record of it was
 * lost, whatever was lost around it.
 *
 * Not every packet has a beginning and an end on record. Where the beginning was not observed the life
 * reaches back to the capture's, and where the end was not it goes on. An id behind which there may be
 * more than one packet is never complete; that nothing of it is missing holds all the same, and
 * with it every absence.
 */
#pragma once

#include "format/packet.h"
#include "format/verify.h"

struct iot_probe_set {
	uint64_t bits[IOT_N_PACKET_PROBES / 64];
};
static inline bool iot_probe_set_has(const struct iot_probe_set *s, unsigned int probe)
{
	unsigned int i = probe - IOT_FIRST_PACKET_PROBE;

	return i < IOT_N_PACKET_PROBES && (s->bits[i / 64] >> i % 64 & 1);
}
static inline void iot_probe_set_add(struct iot_probe_set *s, unsigned int probe)
{
	unsigned int i = probe - IOT_FIRST_PACKET_PROBE;

	if (i < IOT_N_PACKET_PROBES)
		s->bits[i / 64] |= 1ULL << i % 64;
}

/* Ordered from best to worst: of a lineage (a packet, its clones) the worst counts. */
enum iot_packet_verdict {
	/* An always-on event of a packet that was not selected: nothing follows from what is absent. */
	IOT_PVERDICT_NOT_SELECTED = 0,
	IOT_PVERDICT_COMPLETE = 1,	/* nothing that the probes could observe of it is missing */
	IOT_PVERDICT_WITHIN_WINDOW = 2, /* the same, but its beginning or end was not observed */
	IOT_PVERDICT_MERGED = 3,	/* nothing is missing, but it may be more than one packet */
	IOT_PVERDICT_LOST = 4,
	IOT_PVERDICT_LOST_ENTIRELY = 5, /* in the ledger and nowhere in the record */
	IOT_PVERDICT_UNKNOWN = 6,
	IOT_N_PVERDICTS,
};
const char *iot_packet_verdict_name(enum iot_packet_verdict v);

/* All zero: a packet without a record; only the ledger may know it. */
struct iot_packet_life {
	uint64_t id;
	uint64_t parent;   /* the first that a record names; 0 = none */
	uint64_t first_ns; /* of its records */
	uint64_t last_ns;
	uint64_t n_records;
	uint64_t n_hops; /* hop numbers that records have, each counted once up to 64 */
	uint64_t hops;	 /* numbers 1..64 that records have, a bit each */
	uint32_t max_hop;
	uint32_t end_hop; /* of the record that ends it */
	int32_t n_inside; /* functions entered and not left (IOT_PACKET_AFTER_END comes from these) */
	uint32_t flags;	  /* enum iot_packet_flag, of all records */
	uint8_t ip_proto;
	bool twice; /* two records have one number: some other is missing, or one is wrong */
	struct iot_probe_set probes; /* where it was observed */
};
void iot_packet_life_add(struct iot_packet_life *l, const struct iot_packet *p);

/* What the chain of segments says is missing. */
struct iot_doubts;

/*
 * Segments of one capture of the packet stream, sorted by seq; footers with their losses loaded (NULL =
 * no footer), borrowed as long as the doubts live. No segments: everything is in doubt. -ENOMEM.
 */
int iot_doubts_new(const struct iot_segment_info *const *infos,
		   const struct iot_footer *const *footers, size_t n,
		   struct iot_doubts **ret) IOT_MUST_CHECK;
struct iot_doubts *iot_doubts_free(struct iot_doubts *d);
/*
 * A record with id 0 in segment i of those given: it may be any packet's. All of them have to be added
 * before anything is asked; those that the books count and nobody adds put the whole epoch in doubt.
 * -ENOMEM.
 */
int iot_doubts_unidentified(struct iot_doubts *d, size_t i,
			    const struct iot_packet *p) IOT_MUST_CHECK;
/* A part of a segment could not be read: its records of [first, last] are missing. -ENOMEM. */
int iot_doubts_unreadable(struct iot_doubts *d, size_t i, uint64_t first_ns,
			  uint64_t last_ns) IOT_MUST_CHECK;

/* A segment's books and its records differ in number at a probe (0 = at some). -ENOMEM. */
int iot_doubts_miscounted(struct iot_doubts *d, size_t i, uint16_t probe) IOT_MUST_CHECK;

struct iot_packet_ruling {
	enum iot_packet_verdict verdict;
	bool truncated_start; /* what is before its first record, or behind its last, was not observed */
	bool truncated_end;
	bool merged;
	bool frame;	 /* not a packet: what one XDP program saw */
	bool doubtful;	 /* more than the ledger says may be missing; always with UNKNOWN */
	uint64_t n_lost; /* by the ledger */
	struct iot_probe_set lost_at;
};
/* ret_why (may be NULL, which is faster): one reason a line, with n_lost. */
void iot_doubts_judge(struct iot_doubts *d, const struct iot_packet_life *l,
		      struct iot_packet_ruling *ret, struct iot_verdict *ret_why);

/* What it means that there is no record of a packet, or of a flow, at a probe. */
enum iot_absence {
	IOT_ABSENCE_PROVED = 0,	      /* it was not there */
	IOT_ABSENCE_PRESENT = 1,      /* it was, by a record or by the ledger */
	IOT_ABSENCE_NOT_OBSERVED = 2, /* the probe does not exist, or was refused: nothing looked */
	IOT_ABSENCE_UNKNOWN = 3,
};
const char *iot_absence_name(enum iot_absence a);
enum iot_absence iot_doubts_absence(struct iot_doubts *d, const struct iot_packet_life *l,
				    uint16_t probe, struct iot_verdict *ret_why);

/* A flow as a question: what is not set matches all. */
struct iot_flow_end {
	uint8_t addr[16];
	uint8_t family; /* 4, 6; 0 = any address */
	bool port_set;
	uint16_t port;
};
struct iot_flow_match {
	bool set;
	bool both_ways; /* src and dst may be exchanged */
	bool ip_proto_set;
	uint8_t ip_proto;
	struct iot_flow_end src;
	struct iot_flow_end dst;
};
enum iot_match {
	IOT_MATCH_NO = 0,
	IOT_MATCH_YES = 1,
	IOT_MATCH_MAYBE = 2, /* it does not say: no header, or a fragment without ports */
};
/* flags: enum iot_packet_flag of the observation. */
enum iot_match iot_flow_matches(const struct iot_flow_match *m, const struct iot_flow *f,
				uint32_t flags);

/*
 * No packet of a flow reached a probe within [first, last]? The caller has read the records and says how
 * many match, and how many may. id 0 and losses are held against it here.
 */
struct iot_absence_query {
	const struct iot_flow_match *flow;
	uint16_t probe;
	uint64_t first_ns; /* CLOCK_MONOTONIC */
	uint64_t last_ns;
	uint64_t n_matching;
	uint64_t n_maybe;
};
enum iot_absence iot_doubts_absence_of_flow(struct iot_doubts *d, const struct iot_absence_query *q,
					    struct iot_verdict *ret_why);

/* Packets that the ledger names: ids ascending, without 0. *ret is borrowed. */
size_t iot_doubts_losers(const struct iot_doubts *d, const uint64_t **ret);
/* Losses of one packet, or (id 0) unidentified ones; borrowed pointers, in the order of segments. */
size_t iot_doubts_losses(const struct iot_doubts *d, uint64_t id,
			 const struct iot_loss *const **ret);

static inline void iot_doubts_freep(struct iot_doubts **d)
{
	*d = iot_doubts_free(*d);
}
