/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-smoke - the packet stream's kernel side alone: opens the probes, runs a command (or sleeps), drains
 * the rings and prints what records, ledger and counters say, per probe and per device.
 *
 *	packet-smoke [OPTION...] [-- COMMAND...]
 *
 * A test compares the lines per device with the kernel's own counters. Checked here: each cell's equation,
 * records against `emitted`, ledger against `filed`, that no record belongs to another epoch than the one
 * it is read in, and for each packet that its hops are numbered 1.. without a gap that its losses do not
 * explain, none twice, and nothing after its end.
 *
 * With --count records are counted and not looked at, as fast as a drain can be, for measurements.
 *
 * Exit: 0 all of that holds, 1 it does not, 2 usage, 3 the probes do not open.
 */
#include <arpa/inet.h>
#include <getopt.h>

#include "tests/tools/smoke.h"

#define MAX_ROWS 4096
#define N_PACKETS (1U << 22) /* slots of the table of packets */

/* One packet, as far as it was seen. Hops beyond 64 are only counted. */
struct packet {
	uint64_t id;
	uint64_t hops; /* bit n - 1: hop n has a record */
	uint32_t max_hop;
	uint32_t n_records; /* with a hop */
	uint32_t n_after;   /* without */
	uint32_t n_lost;
	uint32_t end_hop;
	uint32_t flags;
};

/* What one probe saw on one device. */
struct row {
	uint32_t netns;
	uint32_t ifindex;
	uint32_t probe;
	uint64_t n_records, n_lost, bytes, n_code; /* n_code: code not 0 */
};

static struct packet *packets;
static uint64_t n_packets, n_table_full;
static struct row rows[MAX_ROWS];
static unsigned int n_rows;
static bool print_records, count_only;
static uint64_t total[EV_N_PACKET_PROBES][N_FIELDS];
#define UNATTRIBUTED 6

static struct packet *packet_of(uint64_t id)
{
	uint64_t h = id * 0x9e3779b97f4a7c15ULL >> 42;

	for (unsigned int i = 0; i < N_PACKETS; i++, h = (h + 1) & (N_PACKETS - 1)) {
		if (packets[h].id == id)
			return &packets[h];
		if (!packets[h].id && n_packets < N_PACKETS / 4 * 3) {
			n_packets++;
			packets[h].id = id;
			return &packets[h];
		}
		if (!packets[h].id)
			break;
	}
	n_table_full++;
	return NULL;
}

static struct row *row_of(uint32_t netns, uint32_t ifindex, uint32_t probe)
{
	for (unsigned int i = 0; i < n_rows; i++) {
		if (rows[i].netns == netns && rows[i].ifindex == ifindex && rows[i].probe == probe)
			return &rows[i];
	}
	if (n_rows == MAX_ROWS) {
		complain("number of rows", probe, MAX_ROWS);
		return &rows[0];
	}
	rows[n_rows] = (struct row){.netns = netns, .ifindex = ifindex, .probe = probe};
	return &rows[n_rows++];
}

static void print_address(uint8_t family, const uint8_t *address, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "-";

	if (family)
		inet_ntop(family == 4 ? AF_INET : AF_INET6, address, text, sizeof(text));
	printf(family == 6 ? "[%s]:%u" : "%s:%u", text, port);
}

static void print_record(const struct ev_packet *p)
{
	const struct ev_packet_task *t = (const struct ev_packet_task *)p;

	printf("record ts=%llu id=%llu hop=%u probe=%u cpu=%u epoch=%llu netns=%u if=%u len=%u "
	       "mark=%u proto=%#x flags=%#x code=%d where=%#llx parent=%llu ip=%u l4=%u/%u ipid=%u "
	       "vlan=%u ",
	       (unsigned long long)p->ts_ns, (unsigned long long)p->hdr.id, p->hop, p->hdr.probe,
	       p->hdr.cpu, (unsigned long long)p->hdr.epoch, p->netns, p->ifindex, p->len, p->mark,
	       p->protocol, p->flags, p->code, (unsigned long long)p->where,
	       (unsigned long long)p->parent, p->ip_proto, p->l4[0], p->l4[1], p->ip_id,
	       p->vlan_tci);
	print_address(p->family, p->saddr, p->sport);
	printf(" > ");
	print_address(p->family, p->daddr, p->dport);
	if (p->flags & EV_PACKET_TASK)
		printf(" pid=%u comm=%.16s", t->pid, t->comm);
	putchar('\n');
}

static void take_record(struct probes *probes, const void *data, uint32_t len)
{
	const struct ev_packet *p = data;
	bool task;
	struct packet *packet;
	struct row *row;

	(void)probes;
	if (len < sizeof(*p)) {
		complain("record too short", len, sizeof(*p));
		return;
	}
	task = p->flags & EV_PACKET_TASK;
	n_records++;
	if (len != (task ? sizeof(struct ev_packet_task) : sizeof(*p)) || p->hdr.len != len)
		complain("record length", len, sizeof(*p));
	if (p->hdr.epoch < MAX_EPOCHS)
		n_records_of[p->hdr.epoch]++;
	if (count_only)
		return;
	if (print_records)
		print_record(p);
	row = row_of(p->netns, p->ifindex, p->hdr.probe);
	row->n_records++;
	row->bytes += p->len;
	row->n_code += p->code != 0;
	packet = p->hdr.id ? packet_of(p->hdr.id) : NULL;
	if (!packet)
		return;
	packet->flags |= p->flags;
	if (!p->hop) {
		packet->n_after++;
		if (!(p->flags & EV_PACKET_AFTER_END))
			complain("a record without a hop, id", p->hdr.id, p->hdr.probe);
		return;
	}
	packet->n_records++;
	packet->max_hop = IOT_MAX(packet->max_hop, p->hop);
	if (p->hop <= 64) {
		if (packet->hops & 1ULL << (p->hop - 1))
			complain("one hop twice, id", p->hdr.id, p->hop);
		packet->hops |= 1ULL << (p->hop - 1);
	}
	if (p->flags & EV_PACKET_END) {
		if (packet->end_hop)
			complain("two ends, id", p->hdr.id, p->hop);
		packet->end_hop = p->hop;
	}
}

static void take_loss(const struct ev_ledger_key *key, const struct ev_packet_loss *val)
{
	struct row *row = row_of(val->netns, val->ifindex, key->probe);
	struct packet *packet = key->id ? packet_of(key->id) : NULL;

	if (count_only)
		return;
	row->n_lost += val->n;
	row->bytes += val->bytes;
	if (packet) {
		packet->n_lost += (uint32_t)val->n;
		packet->flags |= val->flags;
	}
}

static void check_packets(void)
{
	uint64_t n_ended = 0, n_lost = 0, n_merged = 0, n_entirely = 0, n_from_start = 0, hops = 0;
	uint64_t unexplained = 0, unattributed = 0;

	for (unsigned int i = 0; i < EV_N_PACKET_PROBES; i++)
		unattributed += total[i][UNATTRIBUTED];

	for (unsigned int i = 0; i < N_PACKETS; i++) {
		const struct packet *p = &packets[i];

		if (!p->id)
			continue;
		hops += p->n_records + p->n_after;
		n_ended += p->end_hop != 0;
		n_lost += p->n_lost != 0;
		n_entirely += p->n_lost && !p->n_records && !p->n_after;
		n_merged += (p->flags & EV_PACKET_MERGED) != 0;
		n_from_start += (p->flags & EV_PACKET_FROM_START) != 0;
		if (p->max_hop - p->n_records > p->n_lost)
			unexplained += p->max_hop - p->n_records - p->n_lost;
		if (p->end_hop && p->end_hop != p->max_hop)
			complain("a hop after the end, id", p->id, p->max_hop);
	}
	if (unexplained > unattributed)
		complain("hops missing and losses without owner", unexplained, unattributed);
	printf("packets n=%llu ended=%llu lost=%llu lost_entirely=%llu merged=%llu from_start=%llu "
	       "observations=%llu table_full=%llu\n",
	       (unsigned long long)n_packets, (unsigned long long)n_ended,
	       (unsigned long long)n_lost, (unsigned long long)n_entirely,
	       (unsigned long long)n_merged, (unsigned long long)n_from_start,
	       (unsigned long long)hops, (unsigned long long)n_table_full);
}

/* The epoch has no writer any more and its records are read. */
static void close_epoch(struct probes *p, uint64_t epoch)
{
	uint64_t emitted = 0, filed = 0, filed_ledger = 0;
	struct ev_ledger_key *keys = NULL;
	struct ev_packet_loss *vals = NULL;
	size_t n = 0;
	int r;

	for (unsigned int cpu = 0; cpu < probes_n_cpus(p); cpu++) {
		for (unsigned int i = 0; i < EV_N_PACKET_PROBES; i++) {
			const struct ev_cell *c =
				probes_cell(p, epoch & 1, cpu, EV_FIRST_PACKET_PROBE + i);

			take_cell(c, total[i]);
			emitted += c->emitted;
			filed += c->filed;
		}
	}
	if (epoch < MAX_EPOCHS && emitted != n_records_of[epoch])
		complain("emitted and records of an epoch", emitted, n_records_of[epoch]);
	r = probes_packet_ledger_read(p, epoch & 1, &keys, &vals, &n);
	if (r < 0)
		complain("reading the ledger, errno", (uint64_t)-r, 0);
	for (size_t i = 0; i < n; i++) {
		filed_ledger += vals[i].n;
		take_loss(&keys[i], &vals[i]);
	}
	if (filed != filed_ledger)
		complain("filed and the ledger", filed, filed_ledger);
	r = probes_slot_clear(p, epoch & 1);
	if (r < 0)
		complain("clearing the slot, errno", (uint64_t)-r, 0);
	free(keys);
	free(vals);
}

static void report_probes(struct probes *p)
{
	uint64_t missed[EV_N_PACKET_PROBES];
	const struct iot_probe *table;
	size_t n;

	if (probes_missed(p, missed) < 0) {
		complain("figures", 0, 1);
		return;
	}
	table = probes_table(p, &n);
	for (size_t i = 0; i < n; i++) {
		unsigned int index = table[i].id - EV_FIRST_PACKET_PROBE;

		print_probe(&table[i], total[index], missed[index]);
	}
	for (unsigned int i = 0; i < n_rows; i++)
		printf("device netns=%u if=%u probe=%u n=%llu records=%llu lost=%llu bytes=%llu "
		       "code=%llu\n",
		       rows[i].netns, rows[i].ifindex, rows[i].probe,
		       (unsigned long long)rows[i].n_records + (unsigned long long)rows[i].n_lost,
		       (unsigned long long)rows[i].n_records, (unsigned long long)rows[i].n_lost,
		       (unsigned long long)rows[i].bytes, (unsigned long long)rows[i].n_code);
}

/* Programs that come and go. */
static void follow(struct probes *p)
{
	struct probes_programs_change change;
	int r = probes_programs_follow(p, &change);

	if (r < 0)
		complain("following programs, errno", (uint64_t)-r, 0);
	if (change.n_new || change.n_gone || change.n_refused)
		printf("programs new=%u gone=%u refused=%u last=%s %s %s\n", change.n_new,
		       change.n_gone, change.n_refused, change.name, change.refused, change.why);
}

static void report(struct probes *p)
{
	const struct probes_packet_kernel *k = probes_packet_kernel(p);

	report_probes(p);
	printf("identity %s\n", k->exact_identity ? "exact" : k->identity_detail);
	check_packets();
	print_figures(p);
}

static int usage(void)
{
	fputs("usage: packet-smoke [--seconds N] [--fallback] [--ring-size BYTES] [--ring-cpus N] "
	      "[--ledger N]\n"
	      "                    [--identities N] [--sample N] [--filter EXPRESSION] [--rare N] "
	      "[--gro] [--qdisc] [--functions] [--kprobe]\n"
	      "                    [--programs] [--no-self-test] [--deaf PROBE] [--deaf-later "
	      "PROBE]\n"
	      "                    [--flip-ms N] [--records] [--stall] [--run-stats] [--count] "
	      "[--verbose] "
	      "[-- COMMAND...]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	enum {
		SECONDS = 256,
		FALLBACK,
		RING_SIZE,
		RING_CPUS,
		LEDGER,
		IDENTITIES,
		SAMPLE,
		FILTER,
		RARE,
		GRO,
		QDISC,
		FUNCTIONS,
		KPROBE,
		PROGRAMS,
		UNTRIED,
		DEAF,
		DEAF_LATER,
		FLIP,
		RECORDS,
		STALL,
		STATS,
		COUNT,
		VERBOSE
	};
	static const struct option longopts[] = {
		{"seconds", required_argument, NULL, SECONDS},
		{"fallback", no_argument, NULL, FALLBACK},
		{"ring-size", required_argument, NULL, RING_SIZE},
		{"ring-cpus", required_argument, NULL, RING_CPUS},
		{"ledger", required_argument, NULL, LEDGER},
		{"identities", required_argument, NULL, IDENTITIES},
		{"sample", required_argument, NULL, SAMPLE},
		{"filter", required_argument, NULL, FILTER},
		{"rare", required_argument, NULL, RARE},
		{"gro", no_argument, NULL, GRO},
		{"qdisc", no_argument, NULL, QDISC},
		{"functions", no_argument, NULL, FUNCTIONS},
		{"kprobe", no_argument, NULL, KPROBE},
		{"programs", no_argument, NULL, PROGRAMS},
		{"no-self-test", no_argument, NULL, UNTRIED},
		{"deaf", required_argument, NULL, DEAF},
		{"deaf-later", required_argument, NULL, DEAF_LATER},
		{"flip-ms", required_argument, NULL, FLIP},
		{"records", no_argument, NULL, RECORDS},
		{"stall", no_argument, NULL, STALL},
		{"run-stats", no_argument, NULL, STATS},
		{"count", no_argument, NULL, COUNT},
		{"verbose", no_argument, NULL, VERBOSE},
		{},
	};
	struct iot_stream_config stream = {.enabled = true,
					   .ring_size_bytes = 16 << 20,
					   .ring_cpus = 4,
					   .ledger_entries = 65536};
	struct probes_packet_options packet = {0};
	struct probes_options opts = {
		.kind = IOT_STREAM_PACKET, .stream = &stream, .packet = &packet};
	uint64_t seconds = 0, flip_ms = 0, n, gate_ns, epoch;
	struct ring rings[IOT_MAX_RINGS];
	struct iot_error err = {0};
	bool run_stats = false;
	struct probes *p;
	pid_t child = 0;
	int c, r;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		n = 0;
		if (c == '?' || (optarg && c != FILTER && iot_parse_size(optarg, &n) < 0))
			return usage();
		switch (c) {
		case SECONDS:
			seconds = n;
			break;
		case FALLBACK:
			opts.force_fallback = true;
			break;
		case RING_SIZE:
			stream.ring_size_bytes = n;
			break;
		case RING_CPUS:
			stream.ring_cpus = (uint32_t)n;
			break;
		case LEDGER:
			stream.ledger_entries = n;
			break;
		case IDENTITIES:
			packet.identities = n;
			break;
		case SAMPLE:
			packet.sample = n;
			break;
		case FILTER:
			packet.expression = optarg;
			break;
		case RARE:
			packet.rare_per_second = n;
			break;
		case GRO:
			packet.gro = true;
			break;
		case QDISC:
			packet.qdisc = true;
			break;
		case FUNCTIONS:
			packet.functions = IOT_FUNCTIONS_FENTRY;
			break;
		case KPROBE:
			packet.functions = IOT_FUNCTIONS_KPROBE;
			packet.force_kprobe = true;
			break;
		case PROGRAMS:
			packet.programs = true;
			each_turn = follow;
			break;
		case UNTRIED:
			packet.no_self_test = true;
			break;
		case DEAF:
			packet.deaf = (uint16_t)n;
			break;
		case DEAF_LATER:
			packet.deaf_later = (uint16_t)n;
			break;
		case FLIP:
			flip_ms = n;
			break;
		case RECORDS:
			print_records = true;
			break;
		case STALL:
			stall = true;
			break;
		case STATS:
			run_stats = true;
			break;
		case COUNT:
			count_only = true;
			break;
		case VERBOSE:
			opts.print_libbpf = true;
			break;
		default:
			return usage();
		}
	}
	if (!seconds && optind == argc)
		return usage();
	packets = calloc(N_PACKETS, sizeof(*packets));
	if (!packets)
		return 3;
	r = probes_open(&opts, &p, &err);
	if (r < 0) {
		fprintf(stderr, "packet-smoke: %s\n", err.text);
		free(packets);
		return 3;
	}
	for (unsigned int i = 0; i < probes_n_rings(p); i++) {
		struct probes_ring *ring = probes_ring(p, i);

		ring_init(&rings[i], ring->data, ring->size, ring->consumer, ring->producer);
	}
	if (run_stats && enable_run_stats() < 0) {
		perror("packet-smoke: BPF_ENABLE_STATS");
		return 3;
	}
	if (probes_gate(p, true, &gate_ns) < 0)
		return 3;
	if (optind < argc)
		child = spawn(argv + optind);
	epoch = watch(p, rings, child, seconds, flip_ms, false);
	/* Nothing runs under the last epoch any more once the next one is active. */
	if (probes_gate(p, false, &gate_ns) < 0 || probes_flip(p, epoch + 1) < 0)
		complain("closing", 0, 1);
	drain(p, rings);
	close_epoch(p, epoch);
	report(p);
	printf("records=%llu epochs=%llu bad=%llu\n", (unsigned long long)n_records,
	       (unsigned long long)epoch, (unsigned long long)n_bad);
	probes_close(p);
	free(packets);
	if (child > 0)
		kill(child, SIGTERM);
	return n_bad ? 1 : 0;
}
