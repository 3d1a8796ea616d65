// SPDX-License-Identifier: BSD-2-Clause
/*
 * Going on with a dead writer's file, cut at every length: whole blocks of records stay, what follows is
 * written anew, and the file that comes of it is as good as one that was never torn.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "format/verify.h"
#include "tests/unit/gen-trace.h"

#define N_BLOCKS 3U
#define N_RECORDS 7U

struct fixture {
	char dir[64];
	int dirfd;
	struct iot_segment_info info;
	struct iot_batch *batch;
	struct gen gen;
	uint64_t end[N_BLOCKS + 1]; /* of the header, of each block */
	uint8_t *data;		    /* of the sealed file */
	size_t size;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/iot-test-resume-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
	f->info = (struct iot_segment_info){
		.host = "h",
		.kernel = "k",
		.selection = "all",
		.stream = IOT_STREAM_BLOCK,
		.n_rings = 2,
		.n_cpus = 8,
		.epoch = 4,
		.seq = 4,
	};
	assert_int_equal(iot_batch_new(N_RECORDS, &f->batch), 0);
	gen_init(&f->gen, GEN_MIXED, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	iot_batch_free(f->batch);
	free(f->data);
	unlinkat(f->dirfd, "s", 0);
	close(f->dirfd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void put(struct fixture *f, struct iot_writer *w, uint64_t number)
{
	const struct iot_span spans[2] = {{number * 100, number * 100 + 100}, {number, number + 1}};

	iot_batch_clear(f->batch);
	for (uint32_t i = 0; i < N_RECORDS; i++) {
		struct iot_request r;

		gen_request(&f->gen, &r);
		assert_int_equal(iot_batch_add(f->batch, &r), 0);
	}
	assert_int_equal(iot_writer_put(w, f->batch, spans, 2), 0);
}

static int seal(struct iot_writer *w)
{
	struct iot_request open = {.id = 8, .start_ns = 5};
	struct iot_loss loss = {.id = 16, .n = 1, .probe = 8, .first_ns = 1, .last_ns = 2};
	struct iot_footer f = {
		.reason = IOT_SEAL_SIZE,
		.epoch_first_ns = 1,
		.epoch_last_ns = 2,
		.losses = &loss,
		.n_losses = 1,
		.open = &open,
		.n_open = 1,
	};

	return iot_writer_seal(w, &f);
}

static void make(struct fixture *f)
{
	struct iot_writer *w = NULL;

	assert_int_equal(iot_writer_open(f->dirfd, "s", &f->info, &w), 0);
	f->end[0] = iot_writer_bytes(w);
	for (uint32_t i = 0; i < N_BLOCKS; i++) {
		put(f, w, i);
		f->end[i + 1] = iot_writer_bytes(w);
	}
	assert_int_equal(seal(w), 0);
	f->size = iot_writer_bytes(w);
	f->data = malloc(f->size);
	assert_non_null(f->data);
	assert_int_equal(pread(iot_writer_fd(w), f->data, f->size, 0), f->size);
	iot_writer_close(w);
}

static void write_file(const struct fixture *f, size_t size)
{
	int fd = openat(f->dirfd, "s", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->data, size), size);
	close(fd);
}

struct seen {
	uint32_t blocks;
	uint32_t records;
	uint64_t p1[2];
	int answer;
};

static int see(void *arg, const struct iot_block_info *info, const struct iot_batch *b)
{
	struct seen *s = arg;

	s->blocks++;
	s->records += iot_batch_count(b);
	s->p1[0] = info->spans[0].p1;
	s->p1[1] = info->spans[1].p1;
	return s->answer;
}

static int resume(struct fixture *f, struct seen *seen, struct iot_writer **w, uint64_t *hash)
{
	return iot_writer_resume(f->dirfd, "s", &f->info, IOT_COLS_CPU, see, seen, w, hash, NULL);
}

/* What a reader finds: a sealed file of so many records, all of it whole. */
static void check(struct fixture *f, uint64_t n_records)
{
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	_cleanup_free_ struct iot_verdict *v = calloc(1, sizeof(*v));
	char path[128];

	assert_non_null(v);
	snprintf(path, sizeof(path), "%s/s", f->dir);
	assert_int_equal(iot_segment_open(path, &s, NULL), 0);
	assert_int_equal(iot_segment_state(s), IOT_SEGMENT_SEALED);
	assert_int_equal(iot_verify_segment(s, v, NULL), 0);
	assert_true(v->code < IOT_VERDICT_TORN);
	assert_int_equal(v->n_records, n_records);
	assert_int_equal(iot_segment_declared(s, IOT_BLOCK_LEDGER), 1);
	assert_int_equal(iot_segment_declared(s, IOT_BLOCK_OPEN), 1);
}

static void test_every_length(void **state)
{
	struct fixture *f = *state;

	make(f);
	for (size_t size = f->end[0]; size < f->size; size++) {
		struct iot_writer *w = NULL;
		struct seen seen = {0};
		uint32_t whole = 0;
		uint64_t hash;

		while (whole < N_BLOCKS && f->end[whole + 1] <= size)
			whole++;
		write_file(f, size);
		assert_int_equal(resume(f, &seen, &w, &hash), 0);
		assert_int_equal(seen.blocks, whole);
		assert_int_equal(seen.records, whole * N_RECORDS);
		if (whole) {
			assert_int_equal(seen.p1[0], whole * 100);
			assert_int_equal(seen.p1[1], whole);
		}
		assert_int_equal(iot_writer_bytes(w), f->end[whole]);
		assert_int_equal(iot_writer_records(w), whole * N_RECORDS);
		put(f, w, whole);
		assert_int_equal(seal(w), 0);
		iot_writer_close(w);
		check(f, (whole + 1) * N_RECORDS);
	}
}

static void test_whole(void **state)
{
	struct fixture *f = *state;
	struct iot_writer *w = NULL;
	struct seen seen = {0};
	uint64_t hash = 0;

	make(f);
	write_file(f, f->size);
	assert_int_equal(resume(f, &seen, &w, &hash), IOT_WRITER_SEALED);
	assert_null(w);
	assert_int_equal(seen.blocks, 0);
	assert_true(hash != 0);
	check(f, N_BLOCKS * N_RECORDS);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct iot_writer *w = NULL;
	struct seen seen = {0};
	struct iot_segment_info right;
	uint64_t hash;
	struct stat st;

	make(f);
	right = f->info;
	/* Damage before the end: what a kill does not do. Nothing is cut. */
	f->data[f->end[1] + 40] ^= 1;
	write_file(f, f->end[3]);
	assert_int_equal(resume(f, &seen, &w, &hash), -EBADMSG);
	assert_int_equal(fstatat(f->dirfd, "s", &st, 0), 0);
	assert_int_equal(st.st_size, f->end[3]);
	f->data[f->end[1] + 40] ^= 1;
	write_file(f, f->end[3]);
	f->info.capture_id[3]++;
	assert_int_equal(resume(f, &seen, &w, &hash), -EBADMSG);
	f->info = right;
	f->info.epoch++;
	assert_int_equal(resume(f, &seen, &w, &hash), -EBADMSG);
	f->info = right;
	f->info.n_rings = 1;
	assert_int_equal(resume(f, &seen, &w, &hash), -EBADMSG);
	f->info = right;
	seen.answer = -ENOMEM;
	assert_int_equal(resume(f, &seen, &w, &hash), -ENOMEM);
	/* No header, no file. */
	seen.answer = 0;
	write_file(f, f->end[0] - 1);
	assert_int_equal(resume(f, &seen, &w, &hash), -EBADMSG);
	unlinkat(f->dirfd, "s", 0);
	assert_int_equal(resume(f, &seen, &w, &hash), -ENOENT);
	assert_null(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_length, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
