// SPDX-License-Identifier: BSD-2-Clause
/*
 * make-golden-packet - the golden files of the packet stream, as make-golden's for requests: run once for
 * a released format version, never again for it. Deterministic, and independent of the machine.
 *
 *	make-golden-packet DIRECTORY
 *
 * mixed.iot: flows of all kinds, complete. lost.iot: some observations in the ledger. unknown.iot: losses
 * without an owner, in a window. unsealed.open: never sealed.
 */
#include <fcntl.h>

#include "format/writer.h"
#include "tests/unit/gen-packet.h"

#define N_RECORDS 300U
#define N_CPUS 8U
#define FIRST_NS 1000000000ULL
#define LAST_NS 9000000000ULL

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static const uint16_t probe_ids[] = {64, 66, 67, 68, 69, 70};
static const char *const probe_names[] = {"netif_receive_skb",	"net_dev_queue",
					  "net_dev_start_xmit", "net_dev_xmit",
					  "consume_skb",	"kfree_skb"};
#define N_PROBES IOT_ARRAY_SIZE(probe_ids)

struct content {
	struct iot_probe probes[N_PROBES];
	struct iot_books books[N_PROBES * (N_CPUS + 1)];
	struct iot_loss losses[4];
	struct iot_window windows[1];
	struct iot_segment_info info;
	struct iot_footer footer;
};

static struct iot_books *books_of(struct content *c, uint16_t probe, uint32_t cpu)
{
	for (size_t i = 0; i < N_PROBES; i++)
		if (probe_ids[i] == probe)
			return &c->books[i * (N_CPUS + 1) + cpu];
	must(-EINVAL, "probe");
	return NULL;
}

static void init(struct content *c)
{
	*c = (struct content){0};
	for (size_t i = 0; i < N_PROBES; i++) {
		struct iot_probe *p = &c->probes[i];

		*p = (struct iot_probe){.id = probe_ids[i],
					.state = IOT_ATTACH_ATTACHED,
					.miss = IOT_MISS_COUNTED,
					.from_ns = FIRST_NS,
					.hook = "tp_btf"};
		snprintf(p->name, sizeof(p->name), "%s", probe_names[i]);
		for (uint32_t cpu = 0; cpu <= N_CPUS; cpu++)
			c->books[i * (N_CPUS + 1) + cpu] = (struct iot_books){
				.probe = probe_ids[i], .cpu = cpu < N_CPUS ? cpu : UINT32_MAX};
	}
	c->info = (struct iot_segment_info){
		.machine_id = {1},
		.boot_id = {2},
		.capture_id = {3},
		.host = "host",
		.kernel = "6.1.0",
		.selection = "all",
		.stream = IOT_STREAM_PACKET,
		.n_rings = 1,
		.n_cpus = N_CPUS,
		.epoch = 1,
		.seq = 1,
		.attach_ns = FIRST_NS,
		.clocks = {FIRST_NS, FIRST_NS, 1700000000000000000ULL},
		.probes = c->probes,
		.n_probes = N_PROBES,
		.identity = "tracepoints only: some ends are not observed",
	};
	must(iot_names_add(&c->info.reasons, 2, "NOT_SPECIFIED"), "names");
	must(iot_names_add(&c->info.reasons, 3, "NO_SOCKET"), "names");
	c->footer = (struct iot_footer){
		.reason = IOT_SEAL_SHUTDOWN,
		.clocks = {LAST_NS, LAST_NS, 1700000008000000000ULL},
		.epoch_first_ns = FIRST_NS,
		.epoch_last_ns = LAST_NS,
		.books = c->books,
		.n_books = IOT_ARRAY_SIZE(c->books),
		.windows = c->windows,
		.losses = c->losses,
		.probes = c->probes,
		.n_probes = N_PROBES,
	};
	must(iot_names_add(&c->footer.devices, IOT_IFACE_KEY(4026531840U, 2), "eth0"), "names");
	must(iot_names_add(&c->footer.symbols, 0xffffffff81000000ULL, "udp_rcv+0x10"), "names");
}

static void lose(struct content *c, uint64_t id, uint16_t probe)
{
	struct iot_books *b = books_of(c, probe, 0);

	b->seen++;
	b->reserve_failed++;
	b->filed++;
	c->losses[c->footer.n_losses++] = (struct iot_loss){.id = id,
							    .n = 1,
							    .bytes = 100,
							    .parent = 7,
							    .first_ns = FIRST_NS + 5,
							    .last_ns = FIRST_NS + 6,
							    .netns = 4026531840U,
							    .ifindex = 2,
							    .flags = IOT_PACKET_FROM_START,
							    .probe = probe,
							    .cause = IOT_LOSS_RESERVE_FAILED,
							    .flow = {.src = {10, 0, 0, 1},
								     .dst = {10, 0, 0, 2},
								     .sport = 1,
								     .dport = 2,
								     .protocol = 0x800,
								     .family = 4,
								     .ip_proto = 17}};
}

static void write_file(const char *dir, const char *name, struct content *c, enum gen_packets kind)
{
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct iot_span span = {0, 4096};
	struct iot_writer *w;
	struct gen_packet g;
	struct iot_batch *b;

	must(dirfd < 0 ? -errno : 0, dir);
	must(iot_writer_open(dirfd, name, &c->info, &w), name);
	must(iot_batch_new_stream(IOT_STREAM_PACKET, N_RECORDS, &b), "batch");
	gen_packet_init(&g, kind, 17);
	for (unsigned int i = 0; i < N_RECORDS; i++) {
		struct iot_packet p;
		struct iot_books *k;

		gen_packet(&g, &p);
		must(iot_batch_add_packet(b, &p), "add");
		k = books_of(c, p.probe, p.cpu);
		k->seen++;
		k->emitted++;
		k->written++;
	}
	must(iot_writer_put(w, b, &span, 1), "put");
	if (!strstr(name, ".open"))
		must(iot_writer_seal(w, &c->footer), "seal");
	iot_batch_free(b);
	iot_writer_close(w);
	close(dirfd);
	iot_names_done(&c->info.reasons);
	iot_names_done(&c->footer.devices);
	iot_names_done(&c->footer.symbols);
}

int main(int argc, char **argv)
{
	static struct content c;
	struct iot_books *b;

	if (argc != 2) {
		fprintf(stderr, "usage: make-golden-packet DIRECTORY\n");
		return 64;
	}
	init(&c);
	write_file(argv[1], "mixed.iot", &c, GEN_PACKETS_MIXED);
	init(&c);
	lose(&c, 1 << 13, 64);
	lose(&c, 99 << 13, 70);
	write_file(argv[1], "lost.iot", &c, GEN_PACKETS_FLOOD);
	init(&c);
	b = books_of(&c, 66, 1);
	b->seen += 2;
	b->reserve_failed += 2;
	b->unattributed += 2;
	c.windows[0] = (struct iot_window){.kind = IOT_WINDOW_UNATTRIBUTED,
					   .probe = 66,
					   .cpu = 1,
					   .t0_ns = FIRST_NS + 100,
					   .t1_ns = FIRST_NS + 200,
					   .n = 2};
	c.footer.n_windows = 1;
	write_file(argv[1], "unknown.iot", &c, GEN_PACKETS_MIXED);
	init(&c);
	write_file(argv[1], "unsealed.open", &c, GEN_PACKETS_MIXED);
	return 0;
}
