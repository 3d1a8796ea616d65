/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet-identity.c - whether an id is one packet on this kernel, decided once, before the gate opens.
 *
 * It is, if every function that makes an sk_buff or gives one back is hooked, and if a self-test shows that
 * these are all: in two network namespaces of our own, joined by a veth pair, packets of many kinds are made,
 * recorded, and held to it that each was born, is one, and has ended (packet-traffic.h, probes-packet-judge.h);
 * and nothing else in the machine may have been seen meanwhile without a birth or an end. For as long as the capture
 * lasts a birth where a packet has not ended, or a packet where none was born, is counted as the missed run
 * that it proves, and puts its time in doubt.
 *
 * Not all ways are passed by that traffic: no driver of it has its packets' heads taken over by TCP (kfree_skb_partial).
 * For these the hooks stand alone, and what is missed later shows as said.
 *
 * Short of that (a hook refused, no right to make namespaces, the self-test switched off) births and ends are not
 * observed at all: some of them are worth nothing.
 */
#include <bpf/btf.h>
#include <time.h>

#include "daemon/packet-traffic.h"
#include "daemon/probes-packet-judge.h"
#include "daemon/probes-packet.h"
#include "daemon/ring.h"
#include "packet.skel.h"

/* For what still waits somewhere when everything has been received: acknowledgements, what a neighbour announces. */
#define SETTLE_MS 3000
#define TICK_MS 10
/* What else happens on the machine can spoil one: a flood that fills the ring, a run that the kernel skips. */
#define N_TRIES 3U

static bool is_function(const struct iot_probe *row)
{
	return row->id >= EV_PROBE_IP_RCV && row->id < EV_PACKET_PROBES_END;
}

/* ---- missed runs ------------------------------------------------------------------------------ */

/*
 * With two copies an event is missed if neither runs. Each miss of one that the other ran for is counted by that
 * one, so what remains are the events that both missed, twice each. The programs' counters are read first:
 * what is counted meanwhile makes the sum smaller, never an event that was observed a missed one for long.
 */
uint64_t probes_packet_missed(struct probes *p, size_t i, uint64_t sum)
{
	const struct packet_bpf__bss *bss = p->packet_bss;
	struct ev_packet_shared *shared = p->packet_shared;
	struct probes_row *row = &p->rows[i];
	uint16_t id = p->table[i].id;
	uint64_t covered, before;

	/* Inherited from a build with other programs: nobody here knows their variables. */
	if (!bss)
		return row->copy_fd >= 0 || id == EV_PROBE_ALLOC_SKB || id == EV_PROBE_KFREE_SKBMEM
			       ? IOT_COUNT_UNKNOWN
			       : sum;
	if (row->copy_fd >= 0) {
		covered = __atomic_load_n(&bss->packet_covered[id - EV_FIRST_PACKET_PROBE],
					  __ATOMIC_RELAXED);
		sum = sum > covered ? (sum - covered + 1) / 2 : 0;
	}
	if (id == EV_PROBE_ALLOC_SKB)
		sum += __atomic_load_n(&shared->unseen_births, __ATOMIC_RELAXED);
	if (id == EV_PROBE_KFREE_SKBMEM)
		sum += __atomic_load_n(&shared->unseen_ends, __ATOMIC_RELAXED);
	/* It never goes back, although its parts are not read at one time; the worker asks, and so does `probes`. */
	before = __atomic_load_n(&row->missed, __ATOMIC_RELAXED);
	while (before < sum && !__atomic_compare_exchange_n(&row->missed, &before, sum, true,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return IOT_MAX(before, sum);
}

/* ---- the try ---------------------------------------------------------------------------------- */

struct trial {
	struct probes *p;
	struct packet_traffic traffic;
	struct packet_judge judge;
	struct ring rings[IOT_MAX_RINGS];
	uint64_t not_told; /* observations whose packet nothing names */
};

static int set_gate(struct probes *p, bool open)
{
	struct ev_epoch next = p->active;
	uint64_t sample = next.sample;
	int r;

	next.gate = open;
	if (open)
		next.sample = EV_SAMPLE_EVERYTHING;
	pthread_mutex_lock(&p->lock);
	r = probes_publish(p, &next);
	/* What is published when the gate opens for good. */
	p->active.sample = sample;
	pthread_mutex_unlock(&p->lock);
	return r;
}

static int take_records(struct trial *t, struct ring *ring)
{
	while (ring_refresh(ring)) {
		const struct ev_packet *e;
		const void *data;
		uint32_t len;
		int r = ring_peek(ring, &data, &len);

		if (r < 0)
			return r;
		if (r > 0)
			break;
		e = data;
		if (len < sizeof(*e))
			return -EBADMSG;
		packet_judge_add(&t->judge, e->hdr.id, e->hdr.probe, e->netns, e->flags, 1);
		ring_advance(ring, len);
	}
	ring_publish(ring, ring->pos);
	return 0;
}

static int take_all_records(struct trial *t)
{
	int r = 0;

	for (unsigned int i = 0; r >= 0 && i < t->p->n_rings; i++)
		r = take_records(t, &t->rings[i]);
	return r;
}

/* What did not fit into the ring. Nothing runs any more. */
static int take_losses(struct trial *t)
{
	struct probes *p = t->p;
	_cleanup_free_ struct ev_ledger_key *keys = NULL;
	_cleanup_free_ struct ev_packet_loss *vals = NULL;
	unsigned int slot = p->active.epoch & 1;
	size_t n = 0;
	int r;

	r = probes_packet_ledger_read(p, slot, &keys, &vals, &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		packet_judge_add(&t->judge, keys[i].id, keys[i].probe, vals[i].netns, vals[i].flags,
				 vals[i].n);
	for (size_t i = 0; i < p->n_rows; i++) {
		for (unsigned int cpu = 0; cpu < p->n_cpus; cpu++)
			t->not_told += probes_cell(p, slot, cpu, p->table[i].id)->unattributed;
	}
	return r;
}

static bool all_have_ended(const struct trial *t)
{
	struct packet_findings f;

	packet_judge_sum(&t->judge, &f);
	return f.n_endless == 0;
}

/* Until everything is sent, and what was sent has ended, or has had the time to. */
static int watch_traffic(struct trial *t, char *what, size_t size)
{
	const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
	int r, q;

	do {
		r = packet_traffic_wait(&t->traffic, TICK_MS, what, size);
		q = take_all_records(t);
		if (q < 0) {
			snprintf(what, size, "the ring");
			return q;
		}
	} while (r == PACKET_TRAFFIC_RUNS);
	for (int ms = 0; r >= 0 && ms < SETTLE_MS && !all_have_ended(t); ms += TICK_MS) {
		nanosleep(&tick, NULL);
		r = take_all_records(t);
	}
	return r;
}

/* The gate is open. */
static int try_traffic(struct trial *t, char *what, size_t size)
{
	int r = packet_traffic_start(&t->traffic, what, size);

	if (r < 0)
		return r;
	r = packet_judge_init(&t->judge, t->traffic.netns);
	return r < 0 ? r : watch_traffic(t, what, size);
}

/* -EILSEQ: ids were not packets. */
static int judge(const struct trial *t, char *detail, size_t size)
{
	const struct ev_packet_shared *shared = t->p->packet_shared;
	uint64_t unseen = shared->unseen_births + shared->unseen_ends;
	struct packet_findings f;

	packet_judge_sum(&t->judge, &f);
	if (f.full || t->not_told) {
		snprintf(detail, size, "self-test: more passed meanwhile than could be looked at");
		return -EILSEQ;
	}
	if (f.n_packets >= t->traffic.n_sent && !f.n_ghosts && !f.n_doubled && !f.n_endless &&
	    !unseen)
		return 0;
	snprintf(
		detail, size,
		"self-test: of %u packets (%u sent) %u ghosts, %u doubled, %u endless; %llu unseen",
		f.n_packets, t->traffic.n_sent, f.n_ghosts, f.n_doubled, f.n_endless,
		(unsigned long long)unseen);
	return -EILSEQ;
}

static int try_hooks(struct probes *p, char *detail, size_t size)
{
	struct trial *t = calloc(1, sizeof(*t));
	char what[48] = "the gate";
	int r, q;

	if (!t) {
		snprintf(detail, size, "self-test: out of memory");
		return -ENOMEM;
	}
	t->p = p;
	t->traffic.fd = -EBADF;
	for (unsigned int i = 0; i < p->n_rings; i++)
		ring_init(&t->rings[i], p->rings[i].data, p->rings[i].size, p->rings[i].consumer,
			  p->rings[i].producer);
	/* As it will be: without it a packet that was not born is not counted. */
	p->packet_shared->exact = true;
	r = set_gate(p, true);
	if (r >= 0)
		r = try_traffic(t, what, sizeof(what));
	q = set_gate(p, false);
	if (r >= 0 && q >= 0)
		r = take_all_records(t);
	if (r >= 0 && q >= 0)
		r = take_losses(t);
	if (r >= 0 && q >= 0)
		r = judge(t, detail, size);
	else
		snprintf(detail, size, "self-test not possible: %s: %s", what,
			 strerror(r < 0 ? -r : -q));
	packet_traffic_stop(&t->traffic);
	packet_judge_done(&t->judge);
	free(t);
	return r < 0 ? r : q;
}

/* Packets between the hooks at both ends of a function: none that began in the try may end in the capture. */
static int empty_stack(const struct bpf_map *map)
{
	size_t size = ((size_t)bpf_map__value_size(map) + 7) & ~(size_t)7;
	int n = libbpf_num_possible_cpus(), r;
	_cleanup_free_ void *nothing = NULL;
	uint32_t zero = 0;

	if (n < 0)
		return n;
	nothing = calloc((size_t)n, size);
	if (!nothing)
		return -ENOMEM;
	r = bpf_map_update_elem(bpf_map__fd(map), &zero, nothing, BPF_ANY);
	return r;
}

/* As if nothing had been observed yet. The gate is closed, and no program runs that saw it open. */
static int forget(struct probes *p)
{
	int fd = bpf_map__fd(p->maps.identities), r;
	uint64_t key = 0, next = 0;

	for (r = bpf_map_get_next_key(fd, NULL, &key); r == 0; key = next) {
		r = bpf_map_get_next_key(fd, &key, &next);
		if (bpf_map_delete_elem(fd, &key) < 0)
			return -errno;
	}
	if (r != -ENOENT)
		return r;
	p->control->identities = 0;
	p->packet_shared->unseen_births = 0;
	p->packet_shared->unseen_ends = 0;
	for (unsigned int i = 0; i < p->n_rings; i++)
		__atomic_store_n(p->rings[i].consumer, *p->rings[i].producer, __ATOMIC_RELEASE);
	r = empty_stack(p->packet_skel->maps.xmit_stack);
	if (r >= 0)
		r = empty_stack(p->packet_skel->maps.gro_stack);
	return r < 0 ? r : probes_slot_clear(p, p->active.epoch & 1);
}

/* For tests: the table goes on saying that it is attached. */
static void turn_deaf(struct probes *p, uint16_t probe)
{
	for (size_t i = 0; probe && i < p->n_rows; i++) {
		if (p->table[i].id == probe)
			probes_detach_row(p, i);
	}
}

/* Negative: the maps cannot be made empty again. */
static int self_test(struct probes *p)
{
	struct probes_packet_kernel *k = &p->packet_kernel;
	int r = -EILSEQ, q = 0;

	turn_deaf(p, p->packet_deaf);
	for (unsigned int i = 0; r == -EILSEQ && q >= 0 && i < N_TRIES; i++) {
		r = try_hooks(p, k->identity_detail, sizeof(k->identity_detail));
		q = forget(p);
	}
	k->exact_identity = r >= 0;
	if (k->exact_identity)
		k->identity_detail[0] = '\0';
	turn_deaf(p, p->packet_deaf_later);
	return q;
}

/* ---- the outcome ------------------------------------------------------------------------------ */

static void leave_births(struct probes *p, const char *why)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		struct iot_probe *row = &p->table[i];

		if (p->rows[i].role == PACKET_ROLE_NONE || row->state != IOT_ATTACH_ATTACHED)
			continue;
		probes_detach_row(p, i);
		row->state = IOT_ATTACH_NOT_NEEDED;
		snprintf(row->detail, sizeof(row->detail), "%s", why);
	}
}

static void sum_up(struct probes *p)
{
	struct probes_packet_kernel *k = &p->packet_kernel;
	const struct iot_probe *first = NULL;
	unsigned int n = 0, n_refused = 0;

	for (size_t i = 0; i < p->n_rows; i++) {
		const struct iot_probe *row = &p->table[i];

		if (!is_function(row))
			continue;
		n += row->state == IOT_ATTACH_ATTACHED || row->state == IOT_ATTACH_REFUSED;
		n_refused += row->state == IOT_ATTACH_REFUSED;
		if (row->state == IOT_ATTACH_REFUSED && !first)
			first = row;
	}
	if (first)
		snprintf(k->functions_detail, sizeof(k->functions_detail),
			 "the kernel lets %u of %u functions not be hooked (%s: %s)", n_refused, n,
			 first->name, first->detail);
}

int probes_packet_attached(struct probes *p, struct iot_error *err)
{
	struct probes_packet_kernel *k = &p->packet_kernel;
	const struct iot_probe *gap = packet_identity_gap(p->table, p->n_rows);
	bool wanted = false;
	int r = 0;

	for (size_t i = 0; i < p->n_rows; i++)
		wanted |= p->rows[i].role != PACKET_ROLE_NONE;
	sum_up(p);
	if (!wanted)
		snprintf(k->identity_detail, sizeof(k->identity_detail),
			 "tracepoints alone do not show every birth and end of a packet");
	else if (gap)
		snprintf(k->identity_detail, sizeof(k->identity_detail),
			 "births and ends of packets are not all seen: %.24s: %.24s", gap->name,
			 gap->detail);
	else if (!p->packet_self_test)
		snprintf(k->identity_detail, sizeof(k->identity_detail),
			 "not shown by a self-test: streams.packet.self_test is off");
	else
		r = self_test(p);
	if (r < 0)
		return iot_error_set(err, r, "cannot empty the maps after the self-test: %s",
				     strerror(-r));
	p->packet_shared->exact = k->exact_identity;
	if (!k->exact_identity)
		leave_births(p, "without all of these, ids are not exact");
	return 0;
}
