// SPDX-License-Identifier: BSD-2-Clause
/*
 * make-segment.c - segments with known contents, written by the real writer: what the tests of
 * iotracectl read.
 *
 *	make-segment DIR [segments=N] [requests=N] [lost=N] [unattributed=N] [open] [machine=N] [plain]
 *		[capture=N] [later=SECONDS] [boot=N] [host=NAME] [ends] [noswap]
 *		[unselected=N selection=TEXT] [hostile]
 *
 * Writes DIR/block-<capture>-<seq>.iot, N segments of N requests each on two disks (nvme0n1 with a
 * partition, and sdb), four CPUs, every operation, swap both ways, errors, requeues, merges, a
 * process whose name is not UTF-8, and a request that took two seconds. The same arguments always
 * give the same bytes. lost: that many more were filed in the last ledger; unattributed: that many
 * had no room in it; open: the last segment is a .open file without footer; machine: another host; capture, boot, host:
 * another id, and name; later: begins so much later; ends: the last segment is that of a daemon's end; noswap: by a kernel that cannot tell swap;
 * plain: reads and writes of nvme0n1 only, without errors (for replay); unselected: each segment's books say
 * that so many requests were left out, by the selection of that text; hostile: names that are HTML.
 *
 * Prints what was written as JSON, counted while generating, for comparison:
 * {requests, bytes, lost, lost_bytes, errors, merges, requeues, swap_out, swap_in,
 *  ops: {"nvme0n1 read": {requests, bytes}, ...}}
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "format/writer.h"

#define SEC_NS 1000000000ULL
#define SPAN_NS (10 * SEC_NS)
#define FIRST_NS (5000 * SEC_NS)
#define REALTIME_OFFSET_NS (1795910400ULL * SEC_NS) /* 2026-11-29 00:00:00 UTC at monotonic 0 */
#define N_CPUS 4U
#define RECORD_BYTES 136U
#define P_START 1
#define P_ISSUE 4
#define P_COMPLETE 8

#define DISK_A IOT_DEV(259, 0)
#define PART_A IOT_DEV(259, 2)
#define DISK_B IOT_DEV(8, 16)

struct options {
	const char *dir;
	uint64_t segments;
	uint64_t requests;
	uint64_t lost;
	uint64_t unattributed;
	uint64_t machine;
	uint64_t capture;
	uint64_t later;
	uint64_t boot;
	const char *host;
	bool ends;
	uint64_t unselected;
	const char *selection;
	bool open;
	bool plain;
	bool noswap;
	bool hostile;
};

struct sums {
	uint64_t requests, bytes, lost, lost_bytes, errors, merges, requeues, swap_out, swap_in;
	uint64_t op_requests[2][IOT_N_OPS];
	uint64_t op_bytes[2][IOT_N_OPS];
};

static uint64_t begin_ns(const struct options *o)
{
	return FIRST_NS + o->later * SEC_NS;
}

static uint64_t hash(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static uint8_t choose_op(uint64_t i)
{
	if (i % 50 == 7)
		return IOT_OP_FLUSH;
	if (i % 97 == 11)
		return IOT_OP_DISCARD;
	if (i % 211 == 13)
		return IOT_OP_WRITE_ZEROES;
	if (i % 401 == 17)
		return IOT_OP_DRV_IN;
	return hash(i) % 10 < 6 ? IOT_OP_READ : IOT_OP_WRITE;
}

static void make_swap(struct iot_request *r, uint64_t i)
{
	if (r->dev != DISK_A || i % 9 != 4)
		return;
	if (r->op == IOT_OP_WRITE) {
		r->swap = IOT_SWAP_OUT;
		r->swap_rule = 1;
		r->flags |= IOT_FLAG_SWAP;
	} else if (r->op == IOT_OP_READ) {
		r->swap = IOT_SWAP_IN;
		r->swap_rule = 2;
	}
}

/* Two cgroups, a dozen files on the partition, and all that has no file. */
static void make_origin(struct iot_request *r, uint64_t i)
{
	if (i % 4 == 3)
		r->cgroup = 4343;
	r->cgroup_by = IOT_CGROUP_BY_BLKG;
	if (r->swap) {
		r->origin = IOT_ORIGIN_SWAP;
		r->reclaim = r->swap == IOT_SWAP_OUT ? IOT_RECLAIM_KSWAPD : IOT_RECLAIM_NONE;
		return;
	}
	if (r->op == IOT_OP_DRV_IN || (r->op != IOT_OP_READ && r->op != IOT_OP_WRITE)) {
		r->origin = r->op == IOT_OP_DRV_IN ? IOT_ORIGIN_PASSTHROUGH : IOT_ORIGIN_NONE;
		return;
	}
	if (i % 7 == 0) {
		r->origin = IOT_ORIGIN_METADATA;
		return;
	}
	if (i % 7 == 1) {
		r->origin = IOT_ORIGIN_PRIVATE;
		return;
	}
	r->origin = i % 7 == 2 ? IOT_ORIGIN_DIRECT : IOT_ORIGIN_FILE;
	r->file_by = i % 7 == 2 ? IOT_FILE_BY_SUBMITTER : IOT_FILE_BY_PAGE;
	r->ino = 100 + hash(i) % 12;
	r->fsdev = PART_A;
}

static void make_oddities(const struct options *o, struct iot_request *r, uint64_t i)
{
	if (i % 200 == 100) {
		r->error = -EIO;
		r->status = 10;
		r->bytes_done = 0;
	}
	if (i % 150 == 75) {
		r->requeues = 1;
		r->issue_last_ns = r->issue_ns + 20000;
	}
	if (i % 300 == 150) { /* hung for two seconds, as far as its segment allows */
		r->start_ns = r->complete_ns - 2 * SEC_NS;
		r->issue_ns = r->issue_last_ns = r->start_ns + 2000;
		r->insert_ns = 0;
	}
	if (i % 500 == 250) {
		r->start_ns = 0;
		r->flags |= IOT_FLAG_NO_START;
		r->submitter = IOT_SUBMITTER_ISSUE;
	}
	if (i % 37 == 5)
		memcpy(r->comm,
		       "b\xfc"
		       "ro\"\\\n,",
		       9);
	if (!o->noswap)
		make_swap(r, i);
}

/* Request i of the capture. Completions are evenly spaced, beginnings are not. */
static void make_request(const struct options *o, uint64_t segment, uint64_t k,
			 struct iot_request *r)
{
	uint64_t i = segment * o->requests + k, h = hash(i * 3 + 1);
	uint64_t latency = 50000 + h % 400000, queued = 1000 + (h >> 32) % 9000;

	*r = (struct iot_request){
		.id = (i + 1) << 13 | i % N_CPUS,
		.complete_ns = begin_ns(o) + segment * SPAN_NS + 3 * SEC_NS +
			       k * ((SPAN_NS - 4 * SEC_NS) / o->requests),
		.sector = 2048 + (hash(i) % 100000) * 8,
		.cgroup = 4242,
		.dev = o->plain || i % 5 ? DISK_A : DISK_B,
		.bytes = 4096U << h % 4,
		.flags = (h >> 40) % 2 ? IOT_FLAG_SYNC : 0,
		.pid = 1000 + (uint32_t)(i % 3),
		.tgid = 1000,
		.issue_cpu = (uint32_t)(h >> 8) % N_CPUS,
		.complete_cpu = (uint32_t)(h >> 16) % N_CPUS,
		.merges = (uint16_t)((h >> 24) % 3),
		.segments = 1,
		.hwq = (uint16_t)((h >> 8) % N_CPUS),
		.op = o->plain ? (h >> 50) % 2 ? IOT_OP_READ : IOT_OP_WRITE : choose_op(i),
		.submitter = IOT_SUBMITTER_START,
	};
	r->issue_ns = r->issue_last_ns = r->complete_ns - latency;
	r->start_ns = r->issue_ns - queued;
	r->insert_ns = i % 3 ? r->start_ns + queued / 2 : 0;
	r->part = r->dev == DISK_A && i % 4 == 1 ? PART_A : r->dev;
	snprintf(r->comm, sizeof(r->comm), "%s", i % 3 ? "fio" : "kworker/0:1");
	if (r->op == IOT_OP_FLUSH) {
		r->bytes = 0;
		r->flags |= IOT_FLAG_PREFLUSH;
	}
	if (r->op == IOT_OP_FLUSH || r->op == IOT_OP_DRV_IN)
		r->sector = IOT_SECTOR_NONE;
	if (o->hostile)
		memcpy(r->comm, "</script><b>\"\\\n", 15);
	r->bytes_done = r->bytes;
	if (!o->plain) {
		make_oddities(o, r, i);
		make_origin(r, i);
	}
}

static void count(struct sums *sum, const struct iot_request *r)
{
	unsigned int disk = r->dev == DISK_B;

	sum->requests++;
	sum->bytes += r->bytes;
	sum->errors += r->error != 0;
	sum->merges += r->merges;
	sum->requeues += r->requeues;
	sum->swap_out += r->swap == IOT_SWAP_OUT;
	sum->swap_in += r->swap == IOT_SWAP_IN;
	sum->op_requests[disk][r->op]++;
	sum->op_bytes[disk][r->op] += r->bytes;
}

static void print_sums(const struct sums *s)
{
	const char *sep = "";

	printf("{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"lost_bytes\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"merges\":%" PRIu64
	       ",\"requeues\":%" PRIu64 ",\"swap_out\":%" PRIu64 ",\"swap_in\":%" PRIu64
	       ",\"ops\":{",
	       s->requests, s->bytes, s->lost, s->lost_bytes, s->errors, s->merges, s->requeues,
	       s->swap_out, s->swap_in);
	for (unsigned int disk = 0; disk < 2; disk++)
		for (unsigned int op = 0; op < IOT_N_OPS; op++) {
			if (!s->op_requests[disk][op])
				continue;
			printf("%s\"%s %s\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", sep,
			       disk ? "sdb" : "nvme0n1", iot_op_name(op), s->op_requests[disk][op],
			       s->op_bytes[disk][op]);
			sep = ",";
		}
	printf("}}\n");
}

/* ---- one segment --------------------------------------------------------------------------------- */

struct segment {
	struct iot_segment_info info;
	struct iot_footer footer;
	struct iot_probe probes[3];
	struct iot_books books[3 * (N_CPUS + 1)];
	struct iot_name devices[3];
	struct iot_name cgroups[2];
	struct iot_window windows[1];
	uint64_t emitted[N_CPUS];
};

static void fill_info(const struct options *o, uint64_t segment, struct segment *s)
{
	static const uint16_t ids[] = {P_START, P_ISSUE, P_COMPLETE};
	static const char *const names[] = {"block_io_start", "block_rq_issue",
					    "block_rq_complete"};
	struct iot_segment_info *info = &s->info;
	uint64_t begin = begin_ns(o) + segment * SPAN_NS;

	memset(info->machine_id, (int)(1 + o->machine), sizeof(info->machine_id));
	memset(info->boot_id, (int)(2 + o->boot), sizeof(info->boot_id));
	memset(info->capture_id, (int)(0xa0 + o->machine + 16 * o->capture),
	       sizeof(info->capture_id));
	snprintf(info->host, sizeof(info->host), "host%" PRIu64, o->machine);
	if (o->host)
		snprintf(info->host, sizeof(info->host), "%s", o->host);
	if (o->hostile)
		snprintf(info->host, sizeof(info->host), "</title><img src=x onerror=evil()>");
	snprintf(info->kernel, sizeof(info->kernel), "6.1.0-test");
	snprintf(info->selection, sizeof(info->selection), "%s", o->selection);
	info->stream = IOT_STREAM_BLOCK;
	info->swap_out = o->noswap ? IOT_ABILITY_UNAVAILABLE : IOT_ABILITY_EXACT;
	info->swap_in = o->noswap ? IOT_ABILITY_UNAVAILABLE : IOT_ABILITY_PAGE;
	info->n_rings = 1;
	info->n_cpus = N_CPUS;
	info->epoch = info->seq = segment + 1;
	info->attach_ns = begin_ns(o);
	info->clocks = (struct iot_clocks){begin, begin, REALTIME_OFFSET_NS + begin};
	for (unsigned int i = 0; i < 3; i++) {
		s->probes[i] = (struct iot_probe){.id = ids[i],
						  .state = IOT_ATTACH_ATTACHED,
						  .miss = IOT_MISS_COUNTED,
						  .from_ns = begin_ns(o) - SEC_NS};
		snprintf(s->probes[i].name, sizeof(s->probes[i].name), "%s", names[i]);
		snprintf(s->probes[i].hook, sizeof(s->probes[i].hook), "tp_btf");
	}
	info->probes = s->probes;
	info->n_probes = 3;
	/* sorted by number */
	s->devices[0] = (struct iot_name){DISK_B, (char *)"sdb"};
	s->devices[1] = (struct iot_name){
		DISK_A, (char *)(o->hostile ? "<!--<script>&amp;\" onload='evil()'" : "nvme0n1")};
	s->devices[2] = (struct iot_name){PART_A, (char *)"nvme0n1p2"};
	info->devices = (struct iot_names){s->devices, 3};
}

static void fill_footer(const struct options *o, struct segment *s, bool last,
			struct iot_loss *losses)
{
	struct iot_footer *f = &s->footer;
	struct iot_books *complete = NULL;
	size_t n = 0;

	for (uint32_t cpu = 0; cpu <= N_CPUS; cpu++)
		for (unsigned int p = 0; p < 3; p++) {
			struct iot_books *b = &s->books[n++];

			b->probe = s->probes[p].id;
			b->cpu = cpu == N_CPUS ? UINT32_MAX : cpu;
			if (cpu == N_CPUS)
				continue;
			b->seen = s->emitted[cpu];
			if (b->probe == P_COMPLETE)
				b->emitted = b->written = s->emitted[cpu];
			else
				b->folded = s->emitted[cpu];
			if (b->probe == P_COMPLETE && cpu == 0)
				complete = b;
		}
	complete->seen += o->unselected;
	complete->not_selected = o->unselected;
	f->reason = last && o->ends ? IOT_SEAL_SHUTDOWN : IOT_SEAL_TIME;
	f->epoch_first_ns = s->info.clocks.monotonic_ns;
	f->epoch_last_ns = f->epoch_first_ns + SPAN_NS;
	f->clocks = (struct iot_clocks){f->epoch_last_ns, f->epoch_last_ns,
					REALTIME_OFFSET_NS + f->epoch_last_ns};
	f->books = s->books;
	f->n_books = n;
	f->probes = s->probes;
	f->n_probes = 3;
	f->devices = s->info.devices;
	s->cgroups[0] = (struct iot_name){4242, (char *)"/system.slice"};
	s->cgroups[1] = (struct iot_name){
		4343, (char *)(o->hostile ? "/</script><script>evil()</script>\xff\xe2\x80\xa8"
					  : "/user.slice/app.service")};
	f->cgroups = (struct iot_names){s->cgroups, 2};
	if (!last)
		return;
	complete->seen += o->lost + o->unattributed;
	complete->reserve_failed = o->lost + o->unattributed;
	complete->filed = o->lost;
	complete->unattributed = o->unattributed;
	for (uint64_t i = 0; i < o->lost; i++) {
		losses[i] = (struct iot_loss){.id = (1000000 + i) << 13,
					      .n = 1,
					      .bytes = 4096,
					      .sector = i * 8,
					      .first_ns = f->epoch_first_ns + SEC_NS + i,
					      .last_ns = f->epoch_first_ns + SEC_NS + i,
					      .dev = DISK_A,
					      .part = DISK_A,
					      .probe = P_COMPLETE,
					      .op = IOT_OP_WRITE,
					      .cause = IOT_LOSS_RESERVE_FAILED};
		if (i % 3 == 1) {
			losses[i].swap = IOT_SWAP_OUT;
			losses[i].swap_rule = 1;
			losses[i].flags = IOT_FLAG_SWAP;
		}
	}
	f->losses = losses;
	f->n_losses = o->lost;
	if (!o->unattributed)
		return;
	s->windows[0] = (struct iot_window){.t0_ns = f->epoch_first_ns + SEC_NS,
					    .t1_ns = f->epoch_first_ns + 2 * SEC_NS,
					    .n = o->unattributed,
					    .cpu = 0,
					    .probe = P_COMPLETE,
					    .kind = IOT_WINDOW_UNATTRIBUTED};
	f->windows = s->windows;
	f->n_windows = 1;
}

static int write_block(struct iot_writer *w, struct iot_batch *b, uint64_t *pos)
{
	struct iot_span span = {.p0 = *pos};
	int r;

	if (!iot_batch_count(b))
		return 0;
	*pos += (uint64_t)iot_batch_count(b) * RECORD_BYTES;
	span.p1 = *pos;
	r = iot_writer_put(w, b, &span, 1);
	iot_batch_clear(b);
	return r;
}

static int write_requests(const struct options *o, uint64_t segment, struct segment *s,
			  struct iot_writer *w, uint64_t *pos, struct sums *sum)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	struct iot_request req;
	int r;

	r = iot_batch_new(IOT_BLOCK_RECORDS, &b);
	for (uint64_t k = 0; r == 0 && k < o->requests; k++) {
		make_request(o, segment, k, &req);
		r = iot_batch_add(b, &req);
		if (r == IOT_BATCH_FULL) {
			r = write_block(w, b, pos);
			if (r == 0)
				r = iot_batch_add(b, &req);
		}
		s->emitted[req.complete_cpu]++;
		count(sum, &req);
	}
	return r == 0 ? write_block(w, b, pos) : r;
}

static int make_segment(const struct options *o, uint64_t segment, int dirfd, uint64_t *pos,
			uint64_t *footer_hash, struct sums *sum)
{
	_cleanup_(iot_writer_closep) struct iot_writer *w = NULL;
	_cleanup_free_ struct iot_loss *losses = calloc(o->lost + 1, sizeof(*losses));
	bool last = segment + 1 == o->segments;
	struct segment s = {0};
	char name[64];
	int r;

	if (!losses)
		return -ENOMEM;
	fill_info(o, segment, &s);
	snprintf(name, sizeof(name), "block-%02x%02x%02x%02x-%08" PRIu64 "%s", s.info.capture_id[0],
		 s.info.capture_id[1], s.info.capture_id[2], s.info.capture_id[3], segment + 1,
		 last && o->open ? ".open" : ".iot");
	r = iot_writer_open(dirfd, name, &s.info, &w);
	if (r < 0)
		return r;
	r = write_requests(o, segment, &s, w, pos, sum);
	if (r < 0 || (last && o->open))
		return r;
	fill_footer(o, &s, last, losses);
	s.footer.prev_footer_hash = *footer_hash;
	r = iot_writer_seal(w, &s.footer);
	*footer_hash = iot_writer_footer_hash(w);
	return r;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{"segments=", &o->segments},
		{"requests=", &o->requests},
		{"lost=", &o->lost},
		{"machine=", &o->machine},
		{"capture=", &o->capture},
		{"later=", &o->later},
		{"boot=", &o->boot},
		{"unselected=", &o->unselected},
		{"unattributed=", &o->unattributed},
	};

	if (argc < 2)
		return false;
	o->dir = argv[1];
	for (int i = 2; i < argc; i++) {
		bool known = true;
		size_t k = 0;

		while (k < IOT_ARRAY_SIZE(numbers) &&
		       strncmp(argv[i], numbers[k].name, strlen(numbers[k].name)) != 0)
			k++;
		if (k < IOT_ARRAY_SIZE(numbers))
			known = iot_parse_u64(argv[i] + strlen(numbers[k].name),
					      numbers[k].value) == 0;
		else if (strncmp(argv[i], "selection=", 10) == 0)
			o->selection = argv[i] + 10;
		else if (strcmp(argv[i], "open") == 0)
			o->open = true;
		else if (strcmp(argv[i], "hostile") == 0)
			o->hostile = true;
		else if (strcmp(argv[i], "ends") == 0)
			o->ends = true;
		else if (strncmp(argv[i], "host=", 5) == 0)
			o->host = argv[i] + 5;
		else if (strcmp(argv[i], "noswap") == 0)
			o->noswap = true;
		else if (strcmp(argv[i], "plain") == 0)
			o->plain = true;
		else
			known = false;
		if (!known) {
			fprintf(stderr, "make-segment: '%s'?\n", argv[i]);
			return false;
		}
	}
	return o->requests > 0;
}

int main(int argc, char **argv)
{
	struct options o = {.segments = 3, .requests = 1000, .selection = "all"};
	_cleanup_close_ int dirfd = -EBADF;
	uint64_t pos = 0, footer_hash = 0;
	struct sums sum = {0};
	int r = 0;

	if (!parse_options(argc, argv, &o)) {
		fprintf(stderr, "usage: make-segment DIR [segments=N] [requests=N] [lost=N] "
				"[unattributed=N] [machine=N] [capture=N] [later=SECONDS] [boot=N] "
				"[host=NAME] [ends] [open] [plain] [noswap] "
				"[unselected=N selection=TEXT]\n");
		return 2;
	}
	if (mkdir(o.dir, 0777) < 0 && errno != EEXIST) {
		perror(o.dir);
		return 1;
	}
	dirfd = open(o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0) {
		perror(o.dir);
		return 1;
	}
	for (uint64_t i = 0; r == 0 && i < o.segments; i++)
		r = make_segment(&o, i, dirfd, &pos, &footer_hash, &sum);
	if (r < 0) {
		fprintf(stderr, "make-segment: %s\n", strerror(-r));
		return 1;
	}
	sum.lost = o.lost;
	sum.lost_bytes = o.lost * 4096;
	print_sums(&sum);
	return 0;
}
