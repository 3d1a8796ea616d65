/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe-smoke - the kernel side alone: opens the probes, runs a command (or sleeps), drains the rings and
 * prints what the records, the ledger and the counters say, per device and per probe.
 *
 *	probe-smoke [OPTION...] [-- COMMAND...]
 *
 * The per-device line has the columns of /proc/diskstats, computed from records + ledger by the rule in
 * bpf/block.bpf.c; a test compares it with the kernel's own delta. The books are checked here: each
 * cell's equation, records read against `emitted`, ledger entries against `filed`, and that no record
 * belongs to an epoch other than the one it is read in.
 *
 * Exit: 0 books balance, 1 they do not, 2 usage, 3 the probes do not open.
 */
#include <getopt.h>

#include "tests/tools/smoke.h"

#define MAX_DEVICES 64

enum group {
	READS,
	WRITES,
	DISCARDS,
	FLUSHES,
	N_GROUPS
};
static const char *const group_names[] = {"reads", "writes", "discards", "flushes"};

struct device {
	uint32_t dev;
	uint64_t ios[N_GROUPS], sectors[N_GROUPS], merges[N_GROUPS];
	uint64_t n_records, n_lost, n_unseen, n_errors, n_requeued, n_not_stat, n_no_start,
		swap_in_bytes, swap_out_bytes;
	uint64_t submitter[4];
};

static struct device devices[MAX_DEVICES];
static unsigned int n_devices;
static bool print_records;
static uint64_t total[EV_N_BLOCK_PROBES]
		     [N_FIELDS]; /* sums of the cells' fields over epochs and CPUs */

static struct device *device_of(uint32_t dev)
{
	for (unsigned int i = 0; i < n_devices; i++) {
		if (devices[i].dev == dev)
			return &devices[i];
	}
	if (n_devices == MAX_DEVICES) {
		complain("number of devices", dev, MAX_DEVICES);
		return &devices[0];
	}
	devices[n_devices].dev = dev;
	return &devices[n_devices++];
}

/* The rule of bpf/block.bpf.c. merges is not in the ledger: 0 there. */
static void count(const struct probes_kernel *kernel, uint32_t dev, uint32_t cmd_flags,
		  uint32_t state, uint64_t bytes, uint64_t merges, uint64_t n)
{
	struct device *d = device_of(dev);
	uint32_t op = cmd_flags & kernel->op_mask;
	enum group g;

	if (kernel->op[op] == IOT_OP_FLUSH && (state & EV_BLOCK_FLUSH_SEQ)) {
		d->ios[FLUSHES] += n;
		return;
	}
	if (state & EV_BLOCK_NO_STAT) {
		d->n_not_stat += n;
		return;
	}
	g = kernel->op[op] == IOT_OP_DISCARD ? DISCARDS : op & 1 ? WRITES : READS;
	d->ios[g] += n;
	d->sectors[g] += bytes >> 9;
	d->merges[g] += merges;
}

static void take_record(struct probes *p, const void *data, uint32_t len)
{
	const struct probes_kernel *kernel = probes_kernel(p);
	const struct ev_block *b = data;
	struct device *d = device_of(b->dev);
	uint32_t op = b->cmd_flags & kernel->op_mask;

	n_records++;
	if (len != sizeof(*b) || b->hdr.len != len || b->hdr.probe != EV_PROBE_BLOCK_COMPLETE)
		complain("record length", len, sizeof(*b));
	if (b->hdr.epoch < MAX_EPOCHS)
		n_records_of[b->hdr.epoch]++;
	d->n_records++;
	d->n_errors += b->status != 0;
	d->n_requeued += b->requeues != 0;
	d->n_no_start += !(b->state & EV_BLOCK_SAW_START);
	d->submitter[b->submitter & 3]++;
	if (b->swap_rule)
		*(op & 1 ? &d->swap_out_bytes : &d->swap_in_bytes) += b->bytes_done;
	count(kernel, b->dev, b->cmd_flags, b->state, b->bytes_done, b->merges, 1);
	if (!print_records)
		return;
	printf("record id=%llu epoch=%llu dev=%u:%u part=%u:%u op=%s flags=%#x rqf=%#x sector=%lld "
	       "bytes=%u "
	       "done=%u status=%d state=%#x start=%llu insert=%lld issue=%lld last=%lld "
	       "complete=%lld requeues=%u "
	       "merges=%u segments=%u hwq=%u cpu=%u/%u submitter=%u pid=%u tgid=%u comm=%.16s "
	       "cgroup=%llu swap=%u origin=%u cgroup_by=%u reclaim=%u ino=%llu fsdev=%u:%u\n",
	       (unsigned long long)b->hdr.id, (unsigned long long)b->hdr.epoch,
	       IOT_DEV_MAJOR(b->dev), IOT_DEV_MINOR(b->dev), IOT_DEV_MAJOR(b->part),
	       IOT_DEV_MINOR(b->part), iot_op_name(kernel->op[op]), b->cmd_flags, b->rq_flags,
	       (long long)b->sector, b->bytes, b->bytes_done, b->status, b->state,
	       (unsigned long long)b->start_ns,
	       b->insert_ns ? (long long)(b->insert_ns - b->start_ns) : -1,
	       b->issue_ns ? (long long)(b->issue_ns - b->start_ns) : -1,
	       b->issue_ns ? (long long)(b->issue_last_ns - b->start_ns) : -1,
	       (long long)(b->complete_ns - b->start_ns), b->requeues, b->merges, b->segments,
	       b->hwq, b->issue_cpu, b->hdr.cpu, b->submitter, b->pid, b->tgid, b->comm,
	       (unsigned long long)b->cgroup, b->swap_rule, b->origin & EV_ORIGIN_MASK,
	       (b->origin & EV_CGROUP_BY_MASK) >> EV_CGROUP_BY_SHIFT, b->origin >> EV_RECLAIM_SHIFT,
	       (unsigned long long)b->ino, IOT_DEV_MAJOR(b->fsdev), IOT_DEV_MINOR(b->fsdev));
}

/* The epoch is over and drained: check and add up its cells and its ledger, then clear. */
static void close_epoch(struct probes *p, uint64_t epoch)
{
	struct ev_ledger_key *keys = NULL;
	struct ev_ledger_val *vals = NULL;
	uint64_t emitted = 0, filed = 0, filed_ledger = 0;
	size_t n = 0;
	int r;

	for (unsigned int cpu = 0; cpu < probes_n_cpus(p); cpu++) {
		for (unsigned int probe = 0; probe < EV_N_BLOCK_PROBES; probe++) {
			const struct ev_cell *c = probes_cell(p, epoch & 1, cpu, probe);

			take_cell(c, total[probe]);
			emitted += c->emitted;
			filed += c->filed;
		}
	}
	if (epoch < MAX_EPOCHS && emitted != n_records_of[epoch])
		complain("emitted and records of an epoch", emitted, n_records_of[epoch]);
	r = probes_ledger_read(p, epoch & 1, &keys, &vals, &n);
	if (r < 0)
		complain("reading the ledger, errno", (uint64_t)-r, 0);
	for (size_t i = 0; i < n; i++) {
		filed_ledger += vals[i].n;
		device_of(vals[i].dev)->n_lost += vals[i].n;
		if (vals[i].state & EV_BLOCK_END_UNSEEN)
			device_of(vals[i].dev)->n_unseen += vals[i].n;
		count(probes_kernel(p), vals[i].dev, vals[i].cmd_flags, vals[i].state,
		      vals[i].bytes, 0, vals[i].n);
	}
	if (filed != filed_ledger)
		complain("filed and the ledger", filed, filed_ledger);
	r = probes_slot_clear(p, epoch & 1);
	if (r < 0)
		complain("clearing the slot, errno", (uint64_t)-r, 0);
	free(keys);
	free(vals);
}

static void report(struct probes *p)
{
	uint64_t missed[EV_N_BLOCK_PROBES];
	const struct iot_probe *table;
	size_t n;

	if (probes_missed(p, missed) < 0) {
		complain("figures", 0, 1);
		return;
	}
	table = probes_table(p, &n);
	for (size_t i = 0; i < n; i++) {
		print_probe(&table[i], total[table[i].id], missed[table[i].id]);
	}
	for (unsigned int i = 0; i < n_devices; i++) {
		const struct device *d = &devices[i];

		printf("device %u:%u", IOT_DEV_MAJOR(d->dev), IOT_DEV_MINOR(d->dev));
		for (unsigned int g = 0; g < N_GROUPS; g++)
			printf(" %s=%llu %s_sectors=%llu %s_merges=%llu", group_names[g],
			       (unsigned long long)d->ios[g], group_names[g],
			       (unsigned long long)d->sectors[g], group_names[g],
			       (unsigned long long)d->merges[g]);
		printf(" records=%llu lost=%llu unseen=%llu errors=%llu requeued=%llu "
		       "not_stat=%llu "
		       "no_start=%llu "
		       "submitters=%llu/%llu/%llu/%llu swap_in=%llu swap_out=%llu\n",
		       (unsigned long long)d->n_records, (unsigned long long)d->n_lost,
		       (unsigned long long)d->n_unseen, (unsigned long long)d->n_errors,
		       (unsigned long long)d->n_requeued, (unsigned long long)d->n_not_stat,
		       (unsigned long long)d->n_no_start, (unsigned long long)d->submitter[0],
		       (unsigned long long)d->submitter[1], (unsigned long long)d->submitter[2],
		       (unsigned long long)d->submitter[3], (unsigned long long)d->swap_in_bytes,
		       (unsigned long long)d->swap_out_bytes);
	}
	print_figures(p);
}

static void print_in_flight(struct probes *p)
{
	struct ev_block *b = NULL;
	uint64_t now = now_ns();
	size_t n = 0;

	if (probes_in_flight(p, &b, &n) < 0) {
		complain("in flight", 0, 1);
		return;
	}
	for (size_t i = 0; i < n; i++)
		printf("inflight id=%llu dev=%u:%u op=%s sector=%lld bytes=%u age_ms=%llu "
		       "issued=%d comm=%.16s\n",
		       (unsigned long long)b[i].hdr.id, IOT_DEV_MAJOR(b[i].dev),
		       IOT_DEV_MINOR(b[i].dev),
		       iot_op_name(
			       probes_kernel(p)->op[b[i].cmd_flags & probes_kernel(p)->op_mask]),
		       (long long)b[i].sector, b[i].bytes,
		       (unsigned long long)((now -
					     (b[i].start_ns ? b[i].start_ns : b[i].issue_ns)) /
					    1000000),
		       b[i].state & EV_BLOCK_ISSUED ? 1 : 0, b[i].comm);
	printf("inflight total=%zu\n", n);
	free(b);
}

/* A program may exit before its last requests end: gives them two seconds. */
static void settle(struct probes *p, struct ring *rings)
{
	uint64_t end = now_ns() + 2000000000ULL;
	struct timespec nap = {.tv_nsec = 5000000};
	struct ev_block *b = NULL;
	size_t n = 1;

	do {
		nanosleep(&nap, NULL);
		if (!stall)
			drain(p, rings);
		if (probes_in_flight(p, &b, &n) < 0)
			return;
		free(b);
		b = NULL;
	} while (n > 0 && now_ns() < end);
}

static int usage(void)
{
	fputs("usage: probe-smoke [--seconds N] [--fallback] [--without LIST] [--ring-size BYTES] "
	      "[--ring-cpus N] "
	      "[--ledger N]\n"
	      "                   [--in-flight-entries N] [--include PATTERN] [--exclude PATTERN] "
	      "[--flip-ms N]\n"
	      "                   [--records] [--stall] [--run-stats] [--in-flight] [--verbose] "
	      "[-- COMMAND...]\n",
	      stderr);
	return 2;
}

static int parse(const char *s, uint64_t *ret)
{
	return iot_parse_size(s, ret);
}

int main(int argc, char **argv)
{
	enum {
		SECONDS = 256,
		FALLBACK,
		WITHOUT,
		RING_SIZE,
		RING_CPUS,
		LEDGER,
		ENTRIES,
		INCLUDE,
		EXCLUDE,
		FLIP,
		RECORDS,
		STALL,
		STATS,
		IN_FLIGHT,
		VERBOSE
	};
	static const struct option longopts[] = {
		{"seconds", required_argument, NULL, SECONDS},
		{"fallback", no_argument, NULL, FALLBACK},
		{"without", required_argument, NULL, WITHOUT},
		{"ring-size", required_argument, NULL, RING_SIZE},
		{"ring-cpus", required_argument, NULL, RING_CPUS},
		{"ledger", required_argument, NULL, LEDGER},
		{"in-flight-entries", required_argument, NULL, ENTRIES},
		{"include", required_argument, NULL, INCLUDE},
		{"exclude", required_argument, NULL, EXCLUDE},
		{"flip-ms", required_argument, NULL, FLIP},
		{"records", no_argument, NULL, RECORDS},
		{"stall", no_argument, NULL, STALL},
		{"run-stats", no_argument, NULL, STATS},
		{"in-flight", no_argument, NULL, IN_FLIGHT},
		{"verbose", no_argument, NULL, VERBOSE},
		{},
	};
	struct iot_stream_config stream = {.enabled = true,
					   .ring_size_bytes = 4 << 20,
					   .ring_cpus = 4,
					   .ledger_entries = 65536};
	struct iot_device_filter filter = {0};
	struct probes_options opts = {.stream = &stream, .devices = &filter};
	uint64_t seconds = 0, flip_ms = 0, n, gate_ns, epoch;
	bool run_stats = false, in_flight = false;
	char *include[16], *exclude[16];
	struct ring rings[IOT_MAX_RINGS];
	struct iot_error err = {0};
	struct probes *p;
	pid_t child = 0;
	int c, r;

	filter.include.items = include;
	filter.exclude.items = exclude;
	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		n = 0;
		if (c == '?' || (optarg && c != INCLUDE && c != EXCLUDE && c != WITHOUT &&
				 parse(optarg, &n) < 0))
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
		case ENTRIES:
			stream.in_flight_entries = n;
			break;
		case INCLUDE:
			if (filter.include.n < IOT_ARRAY_SIZE(include))
				include[filter.include.n++] = optarg;
			break;
		case EXCLUDE:
			if (filter.exclude.n < IOT_ARRAY_SIZE(exclude))
				exclude[filter.exclude.n++] = optarg;
			break;
		case WITHOUT:
			if (probes_without_parse(optarg, &opts.without) < 0)
				return usage();
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
		case IN_FLIGHT:
			in_flight = true;
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
	r = probes_open(&opts, &p, &err);
	if (r < 0) {
		fprintf(stderr, "probe-smoke: %s\n", err.text);
		return 3;
	}
	for (unsigned int i = 0; i < probes_n_rings(p); i++) {
		struct probes_ring *ring = probes_ring(p, i);

		ring_init(&rings[i], ring->data, ring->size, ring->consumer, ring->producer);
	}
	if (run_stats && enable_run_stats() < 0) {
		perror("probe-smoke: BPF_ENABLE_STATS");
		return 3;
	}
	if (probes_gate(p, true, &gate_ns) < 0)
		return 3;
	if (optind < argc)
		child = spawn(argv + optind);
	epoch = watch(p, rings, child, seconds, flip_ms, in_flight);
	if (in_flight)
		print_in_flight(p);
	else
		settle(p, rings);
	/* Nothing runs under the last epoch any more once the next one is active. */
	if (probes_gate(p, false, &gate_ns) < 0 || probes_flip(p, epoch + 1) < 0)
		complain("closing", 0, 1);
	drain(p, rings);
	close_epoch(p, epoch);
	report(p);
	printf("records=%llu epochs=%llu bad=%llu\n", (unsigned long long)n_records,
	       (unsigned long long)epoch, (unsigned long long)n_bad);
	p = probes_close(p);
	if (child > 0)
		kill(child, SIGTERM);
	return n_bad ? 1 : 0;
}
