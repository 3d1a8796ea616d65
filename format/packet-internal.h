/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-internal.h - doubts as packet-doubts.c makes them and packet-verdict.c asks them.
 */
#pragma once

#include "format/books.h"
#include "format/packet-verdict.h"

/* What may be missing, seen from the packet: decides how far around its records a doubt matters. */
enum iot_doubt_kind {
	/* Records that were made, hence numbered, and did not get into the files. */
	IOT_DOUBT_RECORDS = 1,
	/* Runs that did not happen: nothing numbered what they would have seen. */
	IOT_DOUBT_RUNS = 2,
	/* Records whose packet is not known. */
	IOT_DOUBT_OWNERS = 3,
	/* The claims themselves are doubtful. */
	IOT_DOUBT_CLAIMS = 4,
};

struct iot_doubt {
	uint64_t t0_ns;
	uint64_t t1_ns;
	uint64_t max_t1_ns; /* of this and all before, once sorted */
	uint16_t probe;	    /* 0 = any */
	uint8_t kind;	    /* enum iot_doubt_kind */
	char *why;
};

/* Records without an owner in one segment at one probe. */
struct iot_ownerless {
	uint64_t counted; /* by the books */
	uint64_t found;	  /* in records and ledger */
	bool unknown;
};

struct iot_doubt_segment {
	const struct iot_segment_info *info;
	const struct iot_footer *f;
	uint64_t first_ns; /* its epoch's time, taken wide */
	uint64_t last_ns;
	struct iot_ownerless ownerless[IOT_N_PACKET_PROBES];
	uint64_t seen[IOT_N_PACKET_PROBES];	    /* IOT_COUNT_UNKNOWN: not known */
	uint64_t not_selected[IOT_N_PACKET_PROBES]; /* the same */
	uint64_t folded[IOT_N_PACKET_PROBES];	    /* the same, of runs that may be a packet's */
	size_t last_point
		[IOT_N_PACKET_PROBES]; /* 1 + doubt that the last record without owner made */
};

struct iot_doubts {
	struct iot_doubt_segment *segments;
	size_t n_segments;
	struct iot_doubt *items;
	size_t n;
	size_t room;
	bool sorted;
	const struct iot_loss **losses; /* by id */
	size_t n_losses;
	uint64_t *losers;
	size_t n_losers;
	struct iot_probe_set xdp; /* probes that see frames, before there is a packet */
	bool exact;		  /* every segment says that an id is one packet */
};

/*
 * Epochs' times are read around a flip that waits for running programs: up to 3 s with all CPUs
 * saturated (format/verdict-object.c).
 */
#define IOT_EPOCH_SLACK_NS (5ULL * 1000000000)

/*
 * The longest wait of a packet in a queue that the kernel itself allows by default: fq's horizon
 * (net/sched/sch_fq.c, 5.8), beyond which it drops.
 */
#define IOT_UNSEEN_BEFORE_NS (10ULL * 1000000000)

/* The life with what the ledger knows of it. */
struct iot_whole_life {
	const struct iot_packet_life *l;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t flags;
	uint64_t n_lost;
	struct iot_probe_set lost_at;
	bool numbered; /* no record of it was lost on its way into the files */
	bool gap;      /* numbers are missing */
	bool inside;   /* a function that had it may not have returned by its last record */
};

static inline bool iot_is_frame(const struct iot_whole_life *w)
{
	return w->flags & IOT_PACKET_FRAME;
}

void iot_whole_life_init(struct iot_whole_life *w, const struct iot_doubts *d,
			 const struct iot_packet_life *l);
/* Each observation of a packet has the next number, up to its end. */
bool iot_check_numbers(const struct iot_whole_life *w, struct iot_verdict *why);
/* Number of doubts that begin at or before t. */
size_t iot_doubts_begun(const struct iot_doubts *d, uint64_t t);
/* Doubts that concern the packet, at probe (0 = any). Without ret_why the first one is enough. */
bool iot_in_doubt(const struct iot_doubts *d, const struct iot_whole_life *w, uint16_t probe,
		  struct iot_verdict *ret_why);
const char *iot_doubts_label(const struct iot_doubts *d, uint16_t probe, char *buf, size_t size);

int iot_doubts_seal(struct iot_doubts *d) IOT_MUST_CHECK;

static inline uint64_t iot_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}
