/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment-builder.h - small segments written by the real writer, for tests of everything that
 * reads. build_init gives a clean one: n_blocks of per_block requests on two CPUs and one ring,
 * with books that balance; a test changes what it wants to see before build_write.
 */
#pragma once

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/scan.h"
#include "format/writer.h"
#include "tests/unit/verdict-fixture.h"

#define BUILD_RECORD_BYTES 136 /* of ring per record */
#define BUILD_MS_NS 1000000ULL
#define BUILD_DISK IOT_DEV(259, 0)
#define BUILD_PART IOT_DEV(259, 2)
#define BUILD_OTHER IOT_DEV(8, 16)
#define R_COMPLETE_CPU1 N_ROWS

struct build {
	struct fixture x;
	uint32_t n_blocks;
	uint32_t per_block;
	uint32_t n_open;
	uint64_t ring_pos; /* where ring 0 goes on; updated */
	bool seal;
	struct iot_name names[3];
	struct iot_name cgroups[1];
	struct iot_request open[2];
	uint64_t footer_hash; /* result */
	/* NULL, or changes request i of the segment before it is written */
	void (*change)(struct iot_request *r, uint32_t i);
};

/* Request i of segment seq: every field set, times inside the segment's epoch. */
static inline void build_request(struct iot_request *r, uint64_t seq, uint32_t i)
{
	uint64_t t = SPAN_NS * seq + SEC_NS + i * BUILD_MS_NS;

	memset(r, 0, sizeof(*r));
	r->id = (seq * 100000 + i + 1) << 13 | (i % 2);
	r->start_ns = t - 900000;
	r->insert_ns = i % 3 ? t - 800000 : 0;
	r->issue_ns = t - 700000;
	r->issue_last_ns = t - 700000;
	r->complete_ns = t;
	r->sector = 2048 + (uint64_t)i * 8;
	r->cgroup = 4242;
	r->dev = i % 4 == 3 ? BUILD_OTHER : BUILD_DISK;
	r->part = i % 4 == 1 ? BUILD_PART : r->dev;
	r->bytes = 4096;
	r->bytes_done = 4096;
	r->flags = i % 2 ? IOT_FLAG_SYNC : 0;
	r->pid = 1000 + i % 3;
	r->tgid = 1000;
	r->issue_cpu = i % 2;
	r->complete_cpu = i % 2;
	r->segments = 1;
	r->hwq = 0;
	r->op = i % 2 ? IOT_OP_WRITE : IOT_OP_READ;
	r->swap = i % 8 == 5 ? IOT_SWAP_OUT : IOT_SWAP_NONE;
	r->swap_rule = r->swap ? 1 : 0;
	r->submitter = IOT_SUBMITTER_START;
	snprintf(r->comm, sizeof(r->comm), "%s", i % 3 ? "fio" : "kworker/0:1");
}

static inline void build_init(struct build *b, uint64_t seq, uint32_t n_blocks, uint32_t per_block)
{
	uint64_t n = (uint64_t)n_blocks * per_block;
	struct fixture *x = &b->x;

	memset(b, 0, sizeof(*b));
	fixture_init(x, seq);
	b->n_blocks = n_blocks;
	b->per_block = per_block;
	b->seal = true;
	x->info.n_cpus = 2;
	x->info.probes = x->probes;
	x->info.n_probes = 3;
	x->info.clocks.realtime_ns = 1700000000ULL * SEC_NS + x->info.clocks.monotonic_ns;
	x->info.clocks.boottime_ns = x->info.clocks.monotonic_ns;
	x->f.clocks = x->info.clocks;
	snprintf(x->info.host, sizeof(x->info.host), "host");
	snprintf(x->info.kernel, sizeof(x->info.kernel), "6.1.0");
	snprintf(x->info.selection, sizeof(x->info.selection), "all");
	b->names[0] = (struct iot_name){BUILD_OTHER, (char *)"sdb"};
	b->names[1] = (struct iot_name){BUILD_DISK, (char *)"nvme0n1"};
	b->names[2] = (struct iot_name){BUILD_PART, (char *)"nvme0n1p2"};
	b->cgroups[0] = (struct iot_name){4242, (char *)"/system.slice"};
	x->info.devices = (struct iot_names){b->names + 1, 2}; /* sdb appears later */
	x->f.devices = (struct iot_names){b->names, 3};
	x->f.cgroups = (struct iot_names){b->cgroups, 1};
	x->books[R_START].seen = x->books[R_START].folded = n;
	x->books[R_ISSUE].seen = x->books[R_ISSUE].folded = n;
	x->books[R_COMPLETE].seen = n - n / 2;
	x->books[R_COMPLETE].emitted = x->books[R_COMPLETE].written = n - n / 2;
	x->books[R_COMPLETE_CPU1] = (struct iot_books){
		.probe = P_COMPLETE, .cpu = 1, .seen = n / 2, .emitted = n / 2, .written = n / 2};
	x->f.n_books = N_ROWS + 1;
}

/* In flight at the seal. */
static inline void build_open(struct build *b, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < 2; i++) {
		build_request(&b->open[i], b->x.info.seq, 5000 + i);
		b->open[i].complete_ns = 0;
		b->open[i].bytes_done = 0;
	}
	b->n_open = n;
}

static inline void build_put(struct build *b, struct iot_writer *w, uint32_t block,
			     struct iot_batch *batch)
{
	struct iot_span span;
	struct iot_request r;

	iot_batch_clear(batch);
	for (uint32_t i = 0; i < b->per_block; i++) {
		build_request(&r, b->x.info.seq, block * b->per_block + i);
		if (b->change)
			b->change(&r, block * b->per_block + i);
		assert_int_equal(iot_batch_add(batch, &r), 0);
	}
	span.p0 = b->ring_pos;
	b->ring_pos += (uint64_t)b->per_block * BUILD_RECORD_BYTES;
	span.p1 = b->ring_pos;
	assert_int_equal(iot_writer_put(w, batch, &span, 1), 0);
}

static inline void build_seal(struct build *b, struct iot_writer *w)
{
	b->x.f.open = b->open;
	b->x.f.n_open = b->n_open;
	assert_int_equal(iot_writer_seal(w, &b->x.f), 0);
	b->footer_hash = iot_writer_footer_hash(w);
}

static inline void build_write(struct build *b, int dirfd, const char *name)
{
	struct iot_writer *w;
	struct iot_batch *batch;

	assert_int_equal(iot_writer_open(dirfd, name, &b->x.info, &w), 0);
	assert_int_equal(iot_batch_new(b->per_block ? b->per_block : 1, &batch), 0);
	for (uint32_t k = 0; k < b->n_blocks; k++)
		build_put(b, w, k, batch);
	if (b->seal)
		build_seal(b, w);
	iot_batch_free(batch);
	iot_writer_close(w);
}

/* ---- a directory for one test ---- */

struct build_dir {
	char path[64];
	int fd;
};

static inline void build_dir_open(struct build_dir *d)
{
	/* Recovery syncs; the tests cut and recover thousands of times. */
	snprintf(d->path, sizeof(d->path), "%s/iot-unit-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(d->path));
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(d->fd >= 0);
}

static inline void build_dir_close(struct build_dir *d)
{
	char command[128];

	close(d->fd);
	snprintf(command, sizeof(command), "rm -rf -- '%s'", d->path);
	assert_int_equal(system(command), 0);
}

/* A whole file in memory; free *ret. */
static inline size_t build_load(const struct build_dir *d, const char *name, uint8_t **ret)
{
	int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*ret = malloc((size_t)st.st_size + 1);
	assert_non_null(*ret);
	assert_int_equal(read(fd, *ret, (size_t)st.st_size), st.st_size);
	close(fd);
	return (size_t)st.st_size;
}

/* The bytes as an unnamed file; the caller (or the segment opened on it) closes it. */
static inline int build_memfd(const void *data, size_t size)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (size)
		assert_int_equal(iot_write_all(fd, data, size), 0);
	return fd;
}

static inline void build_store(const struct build_dir *d, const char *name, const void *data,
			       size_t size)
{
	int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(iot_write_all(fd, data, size), 0);
	close(fd);
}

static inline bool build_mentions(const struct iot_verdict *v, const char *reason)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strstr(v->reasons[i], reason))
			return true;
	return false;
}

static inline void build_expect(const struct iot_verdict *v, enum iot_verdict_code code,
				const char *reason)
{
	if (v->code != code || (reason ? !build_mentions(v, reason) : v->n_reasons != 0))
		fail_msg("expected %s (%s), got %s: %s", iot_verdict_name(code),
			 reason ? reason : "", iot_verdict_name(v->code),
			 v->n_reasons ? v->reasons[0] : "");
}

/* Three observations with two owners, four without, two requests in flight. */
static inline void build_lossy(struct build *b)
{
	fixture_file(&b->x, 77, 3);
	b->x.losses[0].dev = BUILD_DISK;
	b->x.losses[0].part = BUILD_PART;
	b->x.losses[0].bytes = 3 * 4096;
	b->x.losses[0].op = IOT_OP_WRITE;
	fixture_file(&b->x, 99, 1);
	fixture_unattributed(&b->x, R_ISSUE, SPAN_NS + 5, SPAN_NS + 9, 4);
	build_open(b, 2);
}

static inline struct iot_segment *build_open_segment(int fd)
{
	struct iot_error err = {0};
	struct iot_segment *s;

	if (iot_segment_open_fd(fd, "test", &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* Reads all requests there are; each must be one that was written. Returns how many. */
static inline uint32_t build_read_all(struct iot_segment *s, uint64_t seq, uint32_t *ret_gaps,
				      uint32_t *ret_bad)
{
	struct iot_block_info info;
	struct iot_batch *b;
	uint32_t n = 0;

	*ret_gaps = *ret_bad = 0;
	assert_int_equal(iot_batch_new(64, &b), 0);
	iot_segment_rewind(s);
	for (;;) {
		struct iot_error err = {0};
		int r = iot_segment_next_block(s, &info, &err);

		assert_true(r >= 0);
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP) {
			(*ret_gaps)++;
			assert_true(info.size > 0);
			assert_true(info.offset + info.size <= iot_segment_size(s));
			continue;
		}
		if (info.kind != IOT_BLOCK_REQUESTS)
			continue;
		r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, &err);
		if (r < 0) {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(err.text, "test: offset "));
			(*ret_bad)++;
			continue;
		}
		for (uint32_t i = 0; i < iot_batch_count(b); i++) {
			struct iot_request got, want;

			iot_batch_get(b, i, &got);
			build_request(&want, seq, (uint32_t)((got.id >> 13) - seq * 100000 - 1));
			assert_memory_equal(&got, &want, sizeof(want));
		}
		n += iot_batch_count(b);
	}
	iot_batch_free(b);
	return n;
}

/* Where the blocks of a segment lie. */
static inline uint32_t build_blocks(const uint8_t *data, size_t size, struct iot_block_info *ret,
				    uint32_t max)
{
	struct iot_segment *s = build_open_segment(build_memfd(data, size));
	uint32_t n = 0;

	while (n < max && iot_segment_next_block(s, &ret[n], NULL) == 0)
		n++;
	iot_segment_close(s);
	return n;
}
