/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet-identity.c - whether an id is one packet on this kernel, decided once, before the gate opens.
 *
 * It is, if every function that makes an sk_buff or gives one back is hooked, and if a try shows that these
 * hooks run: so many messages over a pair of sockets and so many packets made for a program that is run for a
 * test have to be born and to end. The daemon has neither a network nor the right to make one, so the try
 * shows that hooks work, not that there are no others; that the set is whole is measured beside real traffic
 * by the tests, and watched for as long as the capture lasts: a birth where a packet has not ended, or a
 * packet where none was born, is counted as the missed run that it proves, and puts its time in doubt.
 *
 * Short of that, births and ends are not observed at all: some of them are worth nothing.
 */
#include <bpf/btf.h>
#include <sys/socket.h>

#include "daemon/probes-packet.h"
#include "packet.skel.h"

#define N_MESSAGES 64U
#define N_TEST_PACKETS 16U

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
	struct packet_bpf__bss *bss = p->packet_skel->bss;
	struct probes_row *row = &p->rows[i];
	uint16_t id = p->table[i].id;
	uint64_t covered, before;

	if (row->copy) {
		covered = __atomic_load_n(&bss->packet_covered[id - EV_FIRST_PACKET_PROBE],
					  __ATOMIC_RELAXED);
		sum = sum > covered ? (sum - covered + 1) / 2 : 0;
	}
	if (id == EV_PROBE_ALLOC_SKB)
		sum += __atomic_load_n(&bss->packet_unseen_births, __ATOMIC_RELAXED);
	if (id == EV_PROBE_KFREE_SKBMEM)
		sum += __atomic_load_n(&bss->packet_unseen_ends, __ATOMIC_RELAXED);
	/* It never goes back, although its parts are not read at one time; the worker asks, and so does `probes`. */
	before = __atomic_load_n(&row->missed, __ATOMIC_RELAXED);
	while (before < sum && !__atomic_compare_exchange_n(&row->missed, &before, sum, true,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return IOT_MAX(before, sum);
}

/* ---- the try ---------------------------------------------------------------------------------- */

static int send_messages(void)
{
	_cleanup_close_ int a = -EBADF, b = -EBADF;
	char text[64] = "iotraced";
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	a = fds[0];
	b = fds[1];
	for (unsigned int i = 0; i < N_MESSAGES; i++) {
		if (send(a, text, sizeof(text), 0) < 0 || recv(b, text, sizeof(text), 0) < 0)
			return -errno;
	}
	return 0;
}

static int test_packets(void)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	_cleanup_close_ int fd = -EBADF;
	uint8_t frame[64] = {0};

	fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "iotraced_try", "Dual BSD/GPL", nothing,
			   IOT_ARRAY_SIZE(nothing), NULL);
	if (fd < 0)
		return fd;
	for (unsigned int i = 0; i < N_TEST_PACKETS; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
			    .data_size_in = sizeof(frame));
		int r = bpf_prog_test_run_opts(fd, &opts);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Runs of the programs of one role, each copy counted. */
static uint64_t count_seen(struct probes *p, enum packet_role role)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_rows; i++) {
		for (unsigned int cpu = 0; p->rows[i].role == role && cpu < p->n_cpus; cpu++)
			n += probes_cell(p, p->active.epoch & 1, cpu, p->table[i].id)->seen;
	}
	return n;
}

static int set_gate(struct probes *p, bool open)
{
	struct ev_epoch next = p->active;
	int r;

	next.gate = open;
	/* What passes meanwhile is nobody's business: no record of it. */
	next.sample = open ? UINT32_MAX : p->active.sample;
	r = probes_publish(p, &next);
	return r;
}

/* -EILSEQ: the hooks do not see what happened; detail says what. */
static int try_hooks(struct probes *p, char *detail, size_t size)
{
	const struct packet_bpf__bss *bss = p->packet_skel->bss;
	uint64_t sample = p->active.sample, births, ends, unseen;
	const unsigned int want = N_MESSAGES + N_TEST_PACKETS;
	unsigned int copies = 1;
	int r, q;

	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].copy)
			copies = 2;
	}
	pthread_mutex_lock(&p->lock);
	r = set_gate(p, true);
	if (r >= 0)
		r = send_messages();
	if (r >= 0)
		r = test_packets();
	q = set_gate(p, false);
	p->active.sample = sample;
	pthread_mutex_unlock(&p->lock);
	if (r < 0 || q < 0) {
		r = r < 0 ? r : q;
		snprintf(detail, size, "births and ends could not be tried: %s", strerror(-r));
		return r;
	}
	births = count_seen(p, PACKET_ROLE_BIRTH) / copies;
	ends = count_seen(p, PACKET_ROLE_END) / copies;
	unseen = bss->packet_unseen_births + bss->packet_unseen_ends;
	if (births >= want && ends >= want && !unseen)
		return 0;
	snprintf(detail, size,
		 "of %u births %llu and of as many ends %llu were seen, %llu were not", want,
		 (unsigned long long)births, (unsigned long long)ends, (unsigned long long)unseen);
	return -EILSEQ;
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
	for (unsigned int i = 0; i < p->n_rings; i++)
		__atomic_store_n(p->rings[i].consumer, *p->rings[i].producer, __ATOMIC_RELEASE);
	return probes_slot_clear(p, p->active.epoch & 1);
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
	int r;

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
	else
		k->exact_identity = try_hooks(p, k->identity_detail, sizeof(k->identity_detail)) >=
				    0;
	if (!k->exact_identity)
		leave_births(p, "without all of these, ids are not exact");
	if (!wanted)
		return 0;
	r = forget(p);
	if (r < 0)
		return iot_error_set(err, r, "cannot empty the maps after the try: %s",
				     strerror(-r));
	p->packet_skel->bss->packet_unseen_births = 0;
	p->packet_skel->bss->packet_unseen_ends = 0;
	p->packet_skel->bss->packet_exact = k->exact_identity;
	return 0;
}
