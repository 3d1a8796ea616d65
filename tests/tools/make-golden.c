// SPDX-License-Identifier: BSD-2-Clause
/*
 * make-golden.c - the golden files of a format version, and the seeds of fuzz-segment.
 *
 *	make-golden golden DIR	writes the files tests/golden/v1/ is made of
 *	make-golden seeds DIR	writes small segments with the mode byte of fuzz-segment.c in front
 *
 * For the record of how they were made, and for the next version's: files of a released version are
 * never made again and never edited, whatever this program (or the writer) does later. Everything
 * is a function of the names below.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "format/verify.h"
#include "format/writer.h"
#include "tests/unit/gen-trace.h"

#define SEC_NS 1000000000ULL
#define RECORD_BYTES 136U
#define MAX_CPUS 8192U
#define P_START 1
#define P_GETRQ 2
#define P_ISSUE 4
#define P_COMPLETE 8

enum spoil {
	SPOIL_NONE,
	SPOIL_LOST,	 /* filed by owner */
	SPOIL_UNKNOWN,	 /* also without owner, missed runs, a counter that cannot be measured */
	SPOIL_UNSEALED,	 /* no footer */
	SPOIL_CUT,	 /* the last block is not whole */
	SPOIL_DAMAGED,	 /* a bit of the middle block is wrong */
	SPOIL_RECOVERED, /* from cut.open */
};

static const struct recipe {
	const char *name;
	enum gen_kind kind;
	enum spoil spoil;
	uint64_t seq;
	uint32_t n_blocks;
	uint32_t per_block;
	uint32_t n_rings;
	uint32_t n_open;
} golden[] = {
	{"empty.iot", GEN_RANDOM, SPOIL_NONE, 1, 0, 0, 1, 0},
	{"random.iot", GEN_RANDOM, SPOIL_NONE, 1, 2, 150, 1, 2},
	{"sequential.iot", GEN_SEQUENTIAL, SPOIL_NONE, 2, 2, 150, 2, 0},
	{"mixed.iot", GEN_MIXED, SPOIL_NONE, 3, 3, 140, 2, 3},
	{"hostile.iot", GEN_HOSTILE, SPOIL_NONE, 4, 1, 50, 1, 0},
	{"lost.iot", GEN_MIXED, SPOIL_LOST, 5, 2, 60, 2, 1},
	{"unknown.iot", GEN_MIXED, SPOIL_UNKNOWN, 6, 2, 60, 2, 1},
	{"unsealed.open", GEN_MIXED, SPOIL_UNSEALED, 7, 2, 60, 2, 0},
	{"cut.open", GEN_MIXED, SPOIL_CUT, 8, 3, 60, 2, 0},
	{"damaged.iot", GEN_MIXED, SPOIL_DAMAGED, 9, 3, 60, 2, 1},
	{"recovered.iot", GEN_MIXED, SPOIL_RECOVERED, 8, 3, 60, 2, 0},
};

static const struct recipe seeds[] = {
	{"small", GEN_RANDOM, SPOIL_NONE, 1, 2, 12, 1, 1},
	{"mixed", GEN_MIXED, SPOIL_NONE, 1, 2, 20, 2, 1},
	{"lossy", GEN_MIXED, SPOIL_UNKNOWN, 2, 1, 10, 2, 1},
	{"unsealed", GEN_MIXED, SPOIL_UNSEALED, 1, 2, 10, 1, 0},
	{"cut", GEN_SEQUENTIAL, SPOIL_CUT, 1, 2, 10, 1, 0},
	{"empty", GEN_RANDOM, SPOIL_NONE, 1, 0, 0, 1, 0},
};

struct made {
	struct iot_segment_info info;
	struct iot_footer f;
	struct iot_probe probes[4];
	struct iot_books *books;
	struct iot_window windows[2];
	struct iot_loss losses[3];
	struct iot_request open[3];
	uint64_t written[MAX_CPUS];
	uint64_t n_written;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "make-golden: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void fill_info(struct made *m, const struct recipe *r)
{
	static const struct iot_probe probes[] = {
		{.id = P_START, .state = 1, .miss = 1, .name = "block_io_start", .hook = "tp_btf"},
		{.id = P_GETRQ,
		 .state = 4,
		 .miss = 3,
		 .name = "block_getrq",
		 .detail = "block_io_start serves"},
		{.id = P_ISSUE, .state = 1, .miss = 2, .name = "block_rq_issue", .hook = "raw_tp"},
		{.id = P_COMPLETE,
		 .state = 1,
		 .miss = 1,
		 .name = "block_rq_complete",
		 .hook = "tp_btf"},
	};
	struct iot_segment_info *i = &m->info;

	memcpy(m->probes, probes, sizeof(probes));
	for (unsigned int k = 0; k < IOT_ARRAY_SIZE(probes); k++)
		m->probes[k].from_ns = probes[k].state == 1 ? 1 : 0;
	memset(i->machine_id, 0x11, 16);
	memset(i->boot_id, 0x22, 16);
	memset(i->capture_id, 0x33, 16);
	snprintf(i->host, sizeof(i->host), "golden");
	snprintf(i->kernel, sizeof(i->kernel), "6.1.0-18-amd64");
	snprintf(i->selection, sizeof(i->selection), "all");
	i->stream = IOT_STREAM_BLOCK;
	i->swap_out = IOT_ABILITY_EXACT;
	i->swap_in = IOT_ABILITY_PAGE;
	i->n_rings = r->n_rings;
	i->n_cpus = 8;
	i->epoch = r->seq;
	i->seq = r->seq;
	i->attach_ns = 1;
	i->clocks = (struct iot_clocks){1000, 2000, 1767225600ULL * SEC_NS};
	i->probes = m->probes;
	i->n_probes = IOT_ARRAY_SIZE(probes);
	must(iot_names_add(&i->devices, IOT_DEV(259, 0), "nvme0n1"), "names");
	must(iot_names_add(&m->f.devices, IOT_DEV(259, 0), "nvme0n1"), "names");
	must(iot_names_add(&m->f.devices, IOT_DEV(8, 0), "sda"), "names");
	must(iot_names_add(&m->f.cgroups, 4711, "/system.slice/a.service"), "names");
}

static void add_row(struct made *m, uint16_t probe, uint32_t cpu, uint64_t n, bool emits)
{
	m->books[m->f.n_books++] = (struct iot_books){
		.probe = probe,
		.cpu = cpu,
		.seen = n,
		.folded = emits ? 0 : n,
		.emitted = emits ? n : 0,
		.written = emits ? n : 0,
	};
}

static void fill_books(struct made *m)
{
	m->books = calloc(MAX_CPUS + 8, sizeof(*m->books));
	must(m->books ? 0 : -ENOMEM, "books");
	m->f.books = m->books;
	add_row(m, P_START, 0, m->n_written, false);
	add_row(m, P_ISSUE, 0, m->n_written, false);
	for (uint32_t cpu = 0; cpu < MAX_CPUS; cpu++)
		if (m->written[cpu])
			add_row(m, P_COMPLETE, cpu, m->written[cpu], true);
	add_row(m, P_START, UINT32_MAX, 0, false);
	add_row(m, P_ISSUE, UINT32_MAX, 0, false);
	add_row(m, P_COMPLETE, UINT32_MAX, 0, false);
}

/* The ring was full: n observations at COMPLETE on CPU 0 have an owner. */
static void file_loss(struct made *m, uint64_t id, uint64_t n, uint8_t op)
{
	struct iot_books *b = &m->books[2];

	b->seen += n;
	b->reserve_failed += n;
	b->filed += n;
	m->f.losses = m->losses;
	m->losses[m->f.n_losses++] = (struct iot_loss){
		.id = id,
		.n = n,
		.bytes = n * 4096,
		.sector = 2048,
		.first_ns = m->f.epoch_first_ns + 5,
		.last_ns = m->f.epoch_first_ns + 50,
		.dev = IOT_DEV(259, 0),
		.part = IOT_DEV(259, 1),
		.flags = IOT_FLAG_SYNC,
		.probe = P_COMPLETE,
		.op = op,
		.cause = IOT_LOSS_RESERVE_FAILED,
	};
}

static void spoil_books(struct made *m, const struct recipe *r)
{
	if (r->spoil != SPOIL_LOST && r->spoil != SPOIL_UNKNOWN)
		return;
	file_loss(m, 77 << 13 | 1, 2, IOT_OP_WRITE);
	file_loss(m, 78 << 13, 1, IOT_OP_READ);
	if (r->spoil == SPOIL_LOST)
		return;
	m->books[2].seen += 4;
	m->books[2].reserve_failed += 4;
	m->books[2].unattributed += 4;
	m->books[m->f.n_books - 1].missed = 3;
	m->books[0].read_failed = IOT_COUNT_UNKNOWN;
	m->probes[2].miss = IOT_MISS_NOT_MEASURABLE;
	m->f.windows = m->windows;
	m->windows[m->f.n_windows++] = (struct iot_window){
		.t0_ns = m->f.epoch_first_ns + 5,
		.t1_ns = m->f.epoch_first_ns + 9,
		.n = 4,
		.cpu = 0,
		.probe = P_COMPLETE,
		.kind = IOT_WINDOW_UNATTRIBUTED,
	};
	m->windows[m->f.n_windows++] = (struct iot_window){
		.t0_ns = m->f.epoch_first_ns + 1,
		.t1_ns = m->f.epoch_last_ns,
		.n = 3,
		.cpu = UINT32_MAX,
		.probe = P_COMPLETE,
		.kind = IOT_WINDOW_MISSED,
	};
}

static void put_blocks(struct made *m, const struct recipe *r, struct gen *g, struct iot_writer *w)
{
	struct iot_span spans[2] = {{0, 0}, {1 << 20, 1 << 20}};
	struct iot_batch *b;

	must(iot_batch_new(r->per_block + 1, &b), "batch");
	m->f.epoch_first_ns = UINT64_MAX;
	for (uint32_t k = 0; k < r->n_blocks; k++) {
		iot_batch_clear(b);
		for (uint32_t i = 0; i < r->per_block; i++) {
			struct iot_request q;

			gen_request(g, &q);
			must(iot_batch_add(b, &q) == 0 ? 0 : -ENOSPC, "add");
			if (q.complete_cpu < MAX_CPUS)
				m->written[q.complete_cpu]++;
			m->n_written++;
		}
		m->f.epoch_first_ns = IOT_MIN(m->f.epoch_first_ns, iot_batch_first_ns(b));
		m->f.epoch_last_ns = IOT_MAX(m->f.epoch_last_ns, iot_batch_last_ns(b));
		for (uint32_t i = 0; i < r->n_rings && i < IOT_ARRAY_SIZE(spans); i++) {
			spans[i].p0 = spans[i].p1;
			spans[i].p1 += i == k % r->n_rings ? r->per_block * RECORD_BYTES : 0;
		}
		must(iot_writer_put(w, b, spans, r->n_rings), "block");
	}
	if (r->n_blocks == 0)
		m->f.epoch_first_ns = m->f.epoch_last_ns = 5000;
	iot_batch_free(b);
}

static void seal(struct made *m, const struct recipe *r, struct gen *g, struct iot_writer *w)
{
	m->f.reason = IOT_SEAL_TIME;
	m->f.clocks = (struct iot_clocks){10 * SEC_NS, 11 * SEC_NS, 1767225610ULL * SEC_NS};
	m->f.probes = m->probes;
	m->f.n_probes = m->info.n_probes;
	m->f.prev_footer_hash = r->seq == 1 ? 0 : 0x0123456789abcdefULL;
	fill_books(m);
	spoil_books(m, r);
	for (uint32_t i = 0; i < r->n_open; i++) {
		gen_request(g, &m->open[i]);
		m->open[i].complete_ns = 0;
		m->open[i].bytes_done = 0;
	}
	m->f.open = m->open;
	m->f.n_open = r->n_open;
	must(iot_writer_seal(w, &m->f), "seal");
}

static void damage(int dirfd, const char *name)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC);
	struct stat st;
	uint8_t byte = 0;

	must(fd, name);
	must(fstat(fd, &st), name);
	must(pread(fd, &byte, 1, st.st_size / 2) == 1 ? 0 : -EIO, name);
	byte ^= 0x10;
	must(pwrite(fd, &byte, 1, st.st_size / 2) == 1 ? 0 : -EIO, name);
}

static void write_file(int dirfd, const char *name, const struct recipe *r)
{
	struct made *m = calloc(1, sizeof(*m));
	struct iot_writer *w;
	struct gen g;

	must(m ? 0 : -ENOMEM, name);
	gen_init(&g, r->kind, 1000 + r->seq);
	fill_info(m, r);
	must(iot_writer_open(dirfd, name, &m->info, &w), name);
	put_blocks(m, r, &g, w);
	if (r->spoil == SPOIL_CUT)
		must(ftruncate(iot_writer_fd(w), (off_t)iot_writer_bytes(w) - 100), name);
	else if (r->spoil != SPOIL_UNSEALED)
		seal(m, r, &g, w);
	iot_writer_close(w);
	if (r->spoil == SPOIL_DAMAGED)
		damage(dirfd, name);
	/* Names are the only thing owned. */
	iot_names_done(&m->info.devices);
	iot_names_done(&m->f.devices);
	iot_names_done(&m->f.cgroups);
	free(m->books);
	free(m);
}

static void recover_file(int dirfd, const char *from, const char *name)
{
	uint64_t kept, lost;
	struct iot_error err = {0};
	struct iot_segment *s;
	int fd = openat(dirfd, from, O_RDONLY | O_CLOEXEC);

	must(fd, from);
	must(iot_segment_open_fd(fd, from, &s, &err), err.text);
	must(iot_recover(s, dirfd, name, &kept, &lost, &err), err.text);
	iot_segment_close(s);
}

/* The file with a mode byte in front. */
static void write_seed(int dirfd, const struct recipe *r)
{
	_cleanup_free_ char *data = NULL;
	struct stat st;
	int fd;

	write_file(dirfd, ".tmp", r);
	fd = openat(dirfd, ".tmp", O_RDONLY | O_CLOEXEC);
	must(fd, r->name);
	must(fstat(fd, &st), r->name);
	data = malloc((size_t)st.st_size + 1);
	must(data ? 0 : -ENOMEM, r->name);
	must(read(fd, data + 1, (size_t)st.st_size) == st.st_size ? 0 : -EIO, r->name);
	close(fd);
	for (unsigned int mode = 0; mode < 2; mode++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s", r->name, mode ? "-repaired" : "");
		data[0] = mode ? 's' : 'r';
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		must(fd, name);
		must(iot_write_all(fd, data, (size_t)st.st_size + 1), name);
		close(fd);
	}
	must(unlinkat(dirfd, ".tmp", 0), ".tmp");
}

int main(int argc, char **argv)
{
	int dirfd;

	if (argc != 3 || (strcmp(argv[1], "golden") != 0 && strcmp(argv[1], "seeds") != 0)) {
		fprintf(stderr, "usage: make-golden golden|seeds DIRECTORY\n");
		return 64;
	}
	dirfd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd < 0 ? -errno : 0, argv[2]);
	if (strcmp(argv[1], "seeds") == 0) {
		for (size_t i = 0; i < IOT_ARRAY_SIZE(seeds); i++)
			write_seed(dirfd, &seeds[i]);
		return 0;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(golden); i++) {
		if (golden[i].spoil == SPOIL_RECOVERED)
			recover_file(dirfd, "cut.open", golden[i].name);
		else
			write_file(dirfd, golden[i].name, &golden[i]);
	}
	return 0;
}
