/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet-judge.h - whether ids were packets, told from the records of traffic of our own, whose packets all
 * begin and end within the time that was recorded. Pure.
 *
 * A packet of one of our namespaces is a ghost if its birth was not observed: where births are all seen, that
 * is an id for (a part of) a life that has another one already. It is endless if no record says that it has
 * ended, and doubled if it was received twice in one namespace: two packets behind one id.
 */
#pragma once

#include "bpf/events.h"
#include "format/base.h"

struct judged_packet {
	uint64_t id;
	uint32_t received_in; /* the namespace; the last one */
	uint32_t flags;	      /* of all its records and losses */
	bool ours;
	bool doubled;
};

struct packet_judge {
	uint32_t netns[2];
	struct judged_packet *packets; /* by hash */
	size_t n;
	bool full; /* more than there is room for: nothing can be said */
};

struct packet_findings {
	unsigned int n_packets; /* of our namespaces */
	unsigned int n_ghosts;
	unsigned int n_endless;
	unsigned int n_doubled;
	bool full;
};

int packet_judge_init(struct packet_judge *j, const uint32_t netns[2]) IOT_MUST_CHECK;
void packet_judge_done(struct packet_judge *j);
/* n observations, or losses, of packet id at a probe. */
void packet_judge_add(struct packet_judge *j, uint64_t id, unsigned int probe, uint32_t netns,
		      uint32_t flags, uint64_t n);
void packet_judge_sum(const struct packet_judge *j, struct packet_findings *ret);
