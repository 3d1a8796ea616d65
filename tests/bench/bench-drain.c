// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-drain.c - what user space costs per request: drain, decode, encode, LZ4 and write, on one
 * thread, over the same code the daemon runs (drain.h, segment-out.h), against LZ4 alone (frames of
 * 8,192 raw records with the checksum segments have, nothing written) and memcpy of the same records.
 *
 * usage: bench-drain [-n RECORDS] [-r ROUNDS] [DIRECTORY]
 *
 * A ring in plain memory with the kernel's layout is filled with the records of gen-trace.h and
 * drained; the filling is not timed. Times are CPU time of the thread, the kernel's half of write(2)
 * included. Rounds alternate between the three, so that a noisy host disturbs all of them; medians
 * are printed, as one JSON object on standard output. DIRECTORY should be on tmpfs (/dev/shm).
 *
 * Exit: 0, 1 failed, 2 usage.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <lz4frame.h>

#include "daemon/clock.h"
#include "daemon/drain.h"
#include "tests/unit/fake-ring.h"
#include "tests/unit/gen-trace.h"

#define RING_BYTES (16U << 20)
#define MAX_ROUNDS 99
#define CHUNK \
	(1U << 20) /* of raw records, for LZ4 alone: like a block of 8192 records in columns */

/* CPU time of this thread, the kernel's half of write(2) included: the host may be busy. */
static uint64_t cpu_now_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

struct options {
	uint64_t n;
	uint64_t rounds;
	const char *dir;
};

struct figures {
	double drain_ns[MAX_ROUNDS];
	double lz4_ns[MAX_ROUNDS];
	double memcpy_ns[MAX_ROUNDS];
	uint64_t file_bytes;
	uint64_t lz4_bytes;
	uint64_t records;
};

/* The wire form of a generated request. */
static void to_wire(const struct iot_request *r, struct ev_block *e)
{
	static const uint8_t ops[IOT_N_OPS] = {[IOT_OP_WRITE] = 1, [IOT_OP_FLUSH] = 2};

	*e = (struct ev_block){
		.hdr = {.len = sizeof(*e),
			.probe = EV_PROBE_BLOCK_COMPLETE,
			.cpu = r->complete_cpu,
			.epoch = 1,
			.id = r->id},
		.start_ns = r->start_ns,
		.insert_ns = r->insert_ns,
		.issue_ns = r->issue_ns,
		.issue_last_ns = r->issue_last_ns,
		.complete_ns = r->complete_ns,
		.sector = r->sector,
		.cgroup = r->cgroup,
		.dev = r->dev,
		.part = r->part,
		.bytes = r->bytes,
		.bytes_done = r->bytes_done,
		.cmd_flags = ops[r->op] | (r->flags & IOT_FLAG_SYNC ? 1U << 11 : 0) |
			     (r->flags & IOT_FLAG_PREFLUSH ? 1U << 18 : 0),
		.pid = r->pid,
		.tgid = r->tgid,
		.segments = r->segments,
		.hwq = r->hwq,
		.issue_cpu = r->issue_cpu,
		.state = EV_BLOCK_SAW_START,
		.submitter = r->submitter,
	};
	memcpy(e->comm, r->comm, sizeof(e->comm));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, uint64_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static int open_out(struct drain *d, int dirfd, const char *name)
{
	struct iot_segment_info info = {.stream = IOT_STREAM_BLOCK,
					.n_rings = 1,
					.n_cpus = 2,
					.epoch = 1,
					.seq = 1,
					.clocks = clock_anchors()};
	struct iot_writer *writer;
	struct epoch *books;
	uint64_t pos[IOT_MAX_RINGS];
	int r;

	r = epoch_new(IOT_STREAM_BLOCK, 1, 2, 0, &books);
	if (r < 0)
		return r;
	r = iot_writer_open(dirfd, name, &info, &writer);
	if (r < 0) {
		epoch_free(books);
		return r;
	}
	drain_positions(d, pos);
	segment_out_begin(&d->outs[1], books, writer, 1, pos, 0);
	return 0;
}

/* The worker's inner loop: drain, write full blocks, give back. */
static int drain_all(struct drain *d)
{
	uint64_t pos[IOT_MAX_RINGS], taken;
	int r;

	(void)drain_refresh(d);
	do {
		r = drain_run(d, UINT64_MAX, &taken);
		if (r < 0)
			return r;
		if (r == DRAIN_FULL) {
			int q;

			drain_positions(d, pos);
			q = segment_out_flush(&d->outs[1], pos);
			if (q < 0)
				return q;
			drain_publish(d);
		}
	} while (r == DRAIN_FULL);
	return 0;
}

static const LZ4F_preferences_t preferences = {.frameInfo.contentChecksumFlag =
						       LZ4F_contentChecksumEnabled};

/* raw: the records of one ring's worth, to be compressed and copied as they are. */
static int compare(const uint8_t *raw, size_t len, uint8_t *out, size_t room, double *ret_lz4_ns,
		   double *ret_memcpy_ns, uint64_t *ret_bytes)
{
	uint64_t t0 = cpu_now_ns(), t1, t2;

	for (size_t at = 0; at < len; at += CHUNK) {
		size_t n = LZ4F_compressFrame(out, room, raw + at, IOT_MIN(CHUNK, len - at),
					      &preferences);

		if (LZ4F_isError(n))
			return -EIO;
		*ret_bytes += n;
	}
	t1 = cpu_now_ns();
	for (size_t at = 0; at < len; at += CHUNK) {
		memcpy(out, raw + at, IOT_MIN(CHUNK, len - at));
		__asm__ volatile("" ::"r"(out) : "memory");
	}
	t2 = cpu_now_ns();
	*ret_lz4_ns += (double)(t1 - t0);
	*ret_memcpy_ns += (double)(t2 - t1);
	return 0;
}

static int run(const struct options *o, enum gen_kind kind, struct figures *f)
{
	static struct drain d;
	static struct probes_kernel kernel = {.op_mask = 0xff};
	const size_t per_ring = RING_BYTES / (sizeof(struct ev_block) + 8);
	_cleanup_free_ struct ev_block *raw = calloc(per_ring, sizeof(*raw));
	const size_t room = LZ4F_compressFrameBound(CHUNK, &preferences);
	_cleanup_free_ uint8_t *out = malloc(room);
	_cleanup_close_ int dirfd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fake_ring ring;
	int r;

	if (dirfd < 0)
		return -errno;
	if (!raw || !out)
		return -ENOMEM;
	kernel.op[0] = IOT_OP_READ;
	kernel.op[1] = IOT_OP_WRITE;
	kernel.flag_mask[11] = IOT_FLAG_SYNC;
	r = fake_ring_new(&ring, RING_BYTES);
	if (r < 0)
		return r;
	for (uint64_t round = 0; round < o->rounds; round++) {
		struct gen g;
		double drain_ns = 0, lz4_ns = 0, memcpy_ns = 0;
		uint64_t left = o->n, lz4_bytes = 0;
		char name[64];

		gen_init(&g, kind, 42 + round);
		ring.producer = ring.consumer = 0;
		r = drain_init(&d, &kernel, 2, 1, IOT_BLOCK_RECORDS);
		if (r < 0)
			return r;
		ring_init(&d.rings[0], ring.data, ring.size, &ring.consumer, &ring.producer);
		snprintf(name, sizeof(name), "bench-drain-%d.open", (int)getpid());
		r = open_out(&d, dirfd, name);
		if (r < 0)
			return r;
		while (left > 0) {
			size_t n = 0;
			uint64_t t0;

			/* As much as fits beside what waits in the batch. */
			while (n < left && n < per_ring) {
				struct iot_request row;

				if (ring.size - (ring.producer - ring.consumer) <
				    sizeof(*raw) + RING_HDR_BYTES)
					break;
				gen_request(&g, &row);
				to_wire(&row, &raw[n]);
				if (!fake_ring_put(&ring, &raw[n], sizeof(raw[n])))
					return -ENOBUFS;
				n++;
			}
			if (n == 0)
				return -EDEADLK;
			left -= n;
			t0 = cpu_now_ns();
			r = drain_all(&d);
			drain_ns += (double)(cpu_now_ns() - t0);
			if (r < 0)
				return r;
			r = compare((const uint8_t *)raw, n * sizeof(*raw), out, room, &lz4_ns,
				    &memcpy_ns, &lz4_bytes);
			if (r < 0)
				return r;
		}
		{
			uint64_t pos[IOT_MAX_RINGS], t0 = cpu_now_ns();

			drain_positions(&d, pos);
			r = segment_out_flush(&d.outs[1], pos);
			drain_ns += (double)(cpu_now_ns() - t0);
			if (r < 0)
				return r;
		}
		f->records = iot_writer_records(d.outs[1].writer);
		f->file_bytes = iot_writer_bytes(d.outs[1].writer);
		f->lz4_bytes = lz4_bytes;
		drain_done(&d);
		(void)unlinkat(dirfd, name, 0);
		if (f->records != o->n)
			return -EBADMSG;
		f->drain_ns[round] = drain_ns / (double)o->n;
		f->lz4_ns[round] = lz4_ns / (double)o->n;
		f->memcpy_ns[round] = memcpy_ns / (double)o->n;
	}
	fake_ring_done(&ring);
	return 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "n:r:")) != -1) {
		switch (c) {
		case 'n':
			if (iot_parse_u64(optarg, &o->n) < 0 || o->n == 0)
				return -EINVAL;
			break;
		case 'r':
			if (iot_parse_u64(optarg, &o->rounds) < 0 || o->rounds < 1 ||
			    o->rounds > MAX_ROUNDS)
				return -EINVAL;
			break;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc)
		o->dir = argv[optind++];
	return optind == argc ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[GEN_RANDOM] = "random", [GEN_SEQUENTIAL] = "sequential"};
	struct options o = {.n = 2000000, .rounds = 5, .dir = "/dev/shm"};

	if (parse(argc, argv, &o) < 0) {
		fprintf(stderr, "usage: bench-drain [-n RECORDS] [-r ROUNDS] [DIRECTORY]\n");
		return 2;
	}
	printf("{\"records\": %" PRIu64 ", \"rounds\": %" PRIu64 ", \"record_bytes\": %zu", o.n,
	       o.rounds, sizeof(struct ev_block));
	for (enum gen_kind kind = GEN_RANDOM; kind <= GEN_SEQUENTIAL; kind++) {
		static struct figures f;
		double drain_ns, lz4_ns;
		int r = run(&o, kind, &f);

		if (r < 0) {
			fprintf(stderr, "bench-drain: %s\n", strerror(-r));
			return 1;
		}
		drain_ns = median(f.drain_ns, o.rounds);
		lz4_ns = median(f.lz4_ns, o.rounds);
		printf(",\n \"%s\": {\"drain_ns\": %.1f, \"drain_million_per_s\": %.2f, "
		       "\"lz4_ns\": %.1f, \"lz4_million_per_s\": %.2f, \"memcpy_ns\": %.1f, "
		       "\"times_lz4\": %.2f, \"file_bytes_per_record\": %.2f, "
		       "\"lz4_bytes_per_record\": %.2f}",
		       names[kind], drain_ns, 1000 / drain_ns, lz4_ns, 1000 / lz4_ns,
		       median(f.memcpy_ns, o.rounds), lz4_ns / drain_ns,
		       (double)f.file_bytes / (double)f.records,
		       (double)f.lz4_bytes / (double)f.records);
	}
	printf("}\n");
	return 0;
}
