/* SPDX-License-Identifier: BSD-2-Clause */
/* probes-packet-judge.c - see probes-packet-judge.h. */
#include "daemon/probes-packet-judge.h"

#define SLOTS_BITS 16 /* the machine's own traffic passes as well */
#define N_SLOTS (1U << SLOTS_BITS)

int packet_judge_init(struct packet_judge *j, const uint32_t netns[2])
{
	*j = (struct packet_judge){.netns = {netns[0], netns[1]}};
	j->packets = calloc(N_SLOTS, sizeof(*j->packets));
	return j->packets ? 0 : -ENOMEM;
}

void packet_judge_done(struct packet_judge *j)
{
	free(j->packets);
	j->packets = NULL;
}

static struct judged_packet *packet_of(struct packet_judge *j, uint64_t id)
{
	uint64_t h = id * 0x9e3779b97f4a7c15ULL >> (64 - SLOTS_BITS);

	while (j->packets[h].id && j->packets[h].id != id)
		h = (h + 1) & (N_SLOTS - 1);
	if (j->packets[h].id)
		return &j->packets[h];
	if (j->n == N_SLOTS / 4 * 3) {
		j->full = true;
		return NULL;
	}
	j->n++;
	j->packets[h].id = id;
	return &j->packets[h];
}

/* Of a socket, which has no packet at hand: such a record's id is used once. */
static bool is_sockets(unsigned int probe)
{
	return probe == EV_PROBE_TCP_RETRANSMIT_SKB || probe == EV_PROBE_TCP_SEND_RESET ||
	       probe == EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB;
}

void packet_judge_add(struct packet_judge *j, uint64_t id, unsigned int probe, uint32_t netns,
		      uint32_t flags, uint64_t n)
{
	bool ours = netns && (netns == j->netns[0] || netns == j->netns[1]);
	struct judged_packet *p;

	if (is_sockets(probe))
		return;
	p = id ? packet_of(j, id) : NULL;
	if (!p)
		return;
	p->flags |= flags;
	p->ours |= ours;
	if (probe != EV_PROBE_NETIF_RECEIVE_SKB || !ours)
		return;
	p->doubled |= n > 1 || p->received_in == netns;
	p->received_in = netns;
}

void packet_judge_sum(const struct packet_judge *j, struct packet_findings *ret)
{
	*ret = (struct packet_findings){.full = j->full};
	for (size_t i = 0; i < N_SLOTS; i++) {
		const struct judged_packet *p = &j->packets[i];

		if (!p->ours)
			continue;
		ret->n_packets++;
		ret->n_ghosts += !(p->flags & EV_PACKET_BORN);
		ret->n_endless += !(p->flags & EV_PACKET_END);
		ret->n_doubled += p->doubled;
	}
}
