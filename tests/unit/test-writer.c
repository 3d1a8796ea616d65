// SPDX-License-Identifier: BSD-2-Clause
/* Segment files: `lz4 -t` takes them sealed or not; failed writes leave whole blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/meta.h"
#include "format/writer.h"
#include "tests/unit/gen-trace.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

struct fixture {
	char dir[64];
	int dirfd;
	struct iot_segment_info info;
	struct iot_writer *writer;
	struct iot_batch *batch;
	struct gen gen;
	uint64_t position;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/iot-test-writer-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
	f->info = (struct iot_segment_info){
		.host = "h",
		.kernel = "k",
		.selection = "all",
		.stream = IOT_STREAM_BLOCK,
		.n_rings = 1,
		.n_cpus = 2,
		.epoch = 1,
		.seq = 1,
	};
	assert_int_equal(iot_batch_new(1000, &f->batch), 0);
	gen_init(&f->gen, GEN_MIXED, 1);
	assert_int_equal(iot_writer_open(f->dirfd, "s", &f->info, &f->writer), 0);
	/* Writes beyond the limit shall give EFBIG, not kill the test. */
	signal(SIGXFSZ, SIG_IGN);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	iot_writer_close(f->writer);
	iot_batch_free(f->batch);
	unlinkat(f->dirfd, "s", 0);
	unlinkat(f->dirfd, "copy", 0);
	close(f->dirfd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void fill(struct fixture *f, uint32_t n)
{
	iot_batch_clear(f->batch);
	for (uint32_t i = 0; i < n; i++) {
		struct iot_request r;

		gen_request(&f->gen, &r);
		assert_int_equal(iot_batch_add(f->batch, &r), 0);
	}
}

static int put(struct fixture *f, uint32_t n)
{
	struct iot_span span = {f->position, f->position + n * 160ULL};
	int r;

	fill(f, n);
	r = iot_writer_put(f->writer, f->batch, &span, 1);
	if (r == 0)
		f->position = span.p1;
	return r;
}

static uint64_t file_size(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(fstatat(f->dirfd, "s", &st, 0), 0);
	return (uint64_t)st.st_size;
}

/* Exit status of `lz4 -t`. */
static int lz4_test(const struct fixture *f)
{
	char path[128];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/s", f->dir);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execlp("lz4", "lz4", "-q", "-t", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* A missing program must not look like a verdict. */
	assert_int_not_equal(WEXITSTATUS(status), 127);
	return WEXITSTATUS(status);
}

/*
 * Walks the file: header, blocks, and if sealed footer and trailer, without a byte between them.
 * Every block decodes. Returns the number of requests; *ret_meta if sealed (caller frees).
 */
static uint64_t walk(struct fixture *f, bool sealed, struct iot_meta_footer *ret_meta)
{
	uint64_t size = file_size(f), at, seq = 0, n = 0, footer_hash;
	uint8_t *data = malloc(size);
	struct iot_block_decoder *decoder;
	struct iot_segment_info info;
	uint64_t header_hash, footer_offset = size;
	uint32_t frame, footer_size = 0;
	struct iot_batch *batch;
	struct iot_loss *losses = calloc(IOT_BLOCK_RECORDS_MAX, sizeof(*losses));

	assert_true(data && losses);
	assert_int_equal(pread(iot_writer_fd(f->writer), data, size, 0), size);
	assert_int_equal(iot_block_decoder_new(&decoder), 0);
	assert_int_equal(iot_batch_new(16, &batch), 0);
	assert_int_equal(
		iot_meta_frame_size(data, IOT_MAGIC_HEADER, IOT_LIMIT_HEADER_BYTES, &frame), 0);
	assert_int_equal(iot_meta_header_decode(data, frame, &info, &header_hash, NULL), 0);
	iot_segment_info_done(&info);
	if (sealed)
		assert_int_equal(iot_meta_trailer_decode(data + size - IOT_TRAILER_BYTES, size,
							 &footer_offset, &footer_size),
				 0);
	for (at = frame; at < footer_offset;) {
		struct iot_block_info block;

		assert_int_equal(iot_block_header_decode(data + at, size - at, &block), 0);
		assert_true(block.size <= footer_offset - at);
		assert_int_equal(block.seq, seq++);
		if (block.kind == IOT_BLOCK_LEDGER)
			assert_int_equal(iot_block_decode_losses(decoder, IOT_STREAM_BLOCK, &block,
								 data + at + block.header_size,
								 block.data_size, NULL, losses),
					 0);
		else
			assert_int_equal(iot_block_decode(decoder, &block,
							  data + at + block.header_size,
							  block.data_size, IOT_COLS_ALL, batch),
					 0);
		n += block.kind == IOT_BLOCK_REQUESTS ? block.count : 0;
		at += block.size;
	}
	assert_int_equal(at, footer_offset);
	if (sealed) {
		assert_int_equal(iot_meta_footer_decode(data + footer_offset, footer_size, ret_meta,
							&footer_hash, NULL),
				 0);
		assert_true(ret_meta->header_hash == header_hash);
		assert_true(footer_hash == iot_writer_footer_hash(f->writer));
		assert_int_equal(ret_meta->n_requests, n);
		assert_int_equal(ret_meta->n_index, seq);
	}
	iot_batch_free(batch);
	iot_block_decoder_free(decoder);
	free(losses);
	free(data);
	return n;
}

static void test_unsealed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lz4_test(f), 0); /* a header alone */
	for (uint32_t n = 1; n <= 512; n *= 2) {
		assert_int_equal(put(f, n), 0);
		assert_int_equal(iot_writer_bytes(f->writer), file_size(f));
	}
	assert_int_equal(iot_writer_records(f->writer), 1023);
	assert_true(iot_writer_raw_bytes(f->writer) > 1023 * 8);
	assert_int_equal(walk(f, false, NULL), 1023);
	assert_int_equal(lz4_test(f), 0);
	/* Torn in the last block, lz4 complains: the check above means something. */
	assert_int_equal(ftruncate(iot_writer_fd(f->writer), (off_t)file_size(f) - 5), 0);
	assert_int_not_equal(lz4_test(f), 0);
}

static void test_empty_batch(void **state)
{
	struct fixture *f = *state;
	uint64_t size = file_size(f);

	iot_batch_clear(f->batch);
	assert_int_equal(iot_writer_put(f->writer, f->batch, NULL, 0), 0);
	assert_int_equal(file_size(f), size);
}

static void test_sealed(void **state)
{
	enum {
		N_OPEN = 9000,
		N_LOSSES = 20000
	};
	struct fixture *f = *state;
	struct iot_request *open = calloc(N_OPEN, sizeof(*open));
	struct iot_loss *losses = calloc(N_LOSSES, sizeof(*losses));
	struct iot_footer footer = {.reason = IOT_SEAL_SIZE,
				    .open = open,
				    .n_open = N_OPEN,
				    .losses = losses,
				    .n_losses = N_LOSSES};
	struct iot_meta_footer meta;

	assert_true(open && losses);
	for (uint32_t i = 0; i < N_OPEN; i++) {
		gen_request(&f->gen, &open[i]);
		open[i].complete_ns = 0;
	}
	for (uint32_t i = 0; i < N_LOSSES; i++)
		losses[i] = (struct iot_loss){.id = i, .n = 1, .probe = 8};
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(put(f, 500), 0);
	assert_int_equal(iot_writer_footer_hash(f->writer), 0);
	assert_int_equal(iot_writer_seal(f->writer, &footer), 0);
	assert_int_equal(iot_writer_bytes(f->writer), file_size(f));
	assert_int_equal(walk(f, true, &meta), 10000);
	assert_int_equal(meta.n_open, N_OPEN);
	assert_int_equal(meta.n_losses, N_LOSSES);
	assert_int_equal(meta.footer.reason, IOT_SEAL_SIZE);
	iot_meta_footer_done(&meta);
	assert_int_equal(lz4_test(f), 0);
	free(open);
	free(losses);
}

static void test_sealed_empty(void **state)
{
	struct fixture *f = *state;
	struct iot_footer footer = {.reason = IOT_SEAL_TIME};
	struct iot_meta_footer meta;

	assert_int_equal(iot_writer_seal(f->writer, &footer), 0);
	assert_int_equal(walk(f, true, &meta), 0);
	iot_meta_footer_done(&meta);
	assert_int_equal(lz4_test(f), 0);
}

static void limit_file_size(uint64_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* At every place in a block where the file may end. */
static void test_failed_put(void **state)
{
	struct fixture *f = *state;
	uint64_t whole, next;

	assert_int_equal(put(f, 100), 0);
	whole = file_size(f);
	assert_int_equal(put(f, 100), 0);
	next = file_size(f) - whole;
	whole = file_size(f);
	for (uint64_t k = 0; k < next / 2; k += 97) {
		int r;

		limit_file_size(whole + k);
		r = put(f, 100);
		limit_file_size(RLIM_INFINITY);
		assert_int_equal(r, -EFBIG);
		assert_int_equal(file_size(f), whole);
		assert_int_equal(iot_writer_bytes(f->writer), whole);
		assert_int_equal(iot_writer_records(f->writer), 200);
	}
	assert_int_equal(walk(f, false, NULL), 200);
	/* The same batch again, now that there is room. */
	{
		struct iot_span span = {f->position, f->position + 16000};

		assert_int_equal(iot_writer_put(f->writer, f->batch, &span, 1), 0);
	}
	assert_int_equal(walk(f, false, NULL), 300);
	assert_int_equal(lz4_test(f), 0);
}

static uint64_t allocated(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(fstatat(f->dirfd, "s", &st, 0), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Room for sealing is there before a block is written, grows with the file, and is given back. */
static void test_room(void **state)
{
	enum {
		RESERVE = 200000,
		AHEAD = 100000,
		SLACK = 16384 /* of whole blocks, and of what the file system needs itself */
	};
	struct fixture *f = *state;
	struct iot_footer footer = {.reason = IOT_SEAL_SIZE};
	struct statfs st;

	assert_int_equal(fstatfs(f->dirfd, &st), 0);
	if ((uint32_t)st.f_type != EXT4_SUPER_MAGIC && (uint32_t)st.f_type != TMPFS_MAGIC)
		skip();
	assert_int_equal(put(f, 100), 0);
	assert_true(allocated(f) <= file_size(f) + SLACK);
	iot_writer_reserve(f->writer, RESERVE, AHEAD);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(put(f, 500), 0);
		assert_true(allocated(f) >= file_size(f) + RESERVE);
		assert_true(allocated(f) <= file_size(f) + RESERVE + AHEAD + SLACK);
		assert_int_equal(iot_writer_bytes(f->writer), file_size(f));
	}
	/* A write that fails is cut off, and the room is there again. */
	limit_file_size(file_size(f) + 20);
	assert_int_equal(put(f, 500), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(put(f, 500), 0);
	assert_true(allocated(f) >= file_size(f) + RESERVE);
	assert_int_equal(iot_writer_seal(f->writer, &footer), 0);
	assert_true(allocated(f) <= file_size(f) + SLACK);
	assert_int_equal(lz4_test(f), 0);
}

static void test_failed_seal(void **state)
{
	struct fixture *f = *state;
	struct iot_request open[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
	struct iot_loss losses[2] = {{.id = 4, .n = 1}, {.id = 5, .n = 2}};
	struct iot_footer footer = {.reason = IOT_SEAL_SHUTDOWN,
				    .open = open,
				    .n_open = 3,
				    .losses = losses,
				    .n_losses = 2};
	struct iot_meta_footer meta;
	uint64_t whole;

	assert_int_equal(put(f, 100), 0);
	whole = file_size(f);
	/* Within the open requests, the ledger, the footer, the trailer. */
	for (uint64_t k = 0; k < 1500; k += 41) {
		int r;

		limit_file_size(whole + k);
		r = iot_writer_seal(f->writer, &footer);
		limit_file_size(RLIM_INFINITY);
		if (r == 0)
			break;
		assert_int_equal(r, -EFBIG);
		assert_int_equal(file_size(f), whole);
		assert_int_equal(walk(f, false, NULL), 100);
		assert_int_equal(iot_writer_footer_hash(f->writer), 0);
		assert_true(k < 1400);
	}
	assert_int_equal(walk(f, true, &meta), 100);
	assert_int_equal(meta.n_open, 3);
	assert_int_equal(meta.n_losses, 2);
	iot_meta_footer_done(&meta);
	assert_int_equal(lz4_test(f), 0);
}

/* Whole blocks into another file, byte for byte; a block left out stays visible in its number. */
static void test_copy(void **state)
{
	struct fixture *f = *state;
	struct iot_writer *copy;
	struct iot_footer footer = {.reason = IOT_SEAL_RECOVERED};
	uint64_t offsets[4], size;
	uint8_t *data;

	for (unsigned int i = 0; i < 3; i++) {
		offsets[i] = file_size(f);
		assert_int_equal(put(f, 50), 0);
	}
	size = offsets[3] = file_size(f);
	data = malloc(size);
	assert_non_null(data);
	assert_int_equal(pread(iot_writer_fd(f->writer), data, size, 0), size);
	assert_int_equal(iot_writer_open(f->dirfd, "copy", &f->info, &copy), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct iot_block_info block;

		assert_int_equal(
			iot_block_header_decode(data + offsets[i], size - offsets[i], &block), 0);
		if (i == 1)
			continue;
		assert_int_equal(iot_writer_copy(copy, &block, data + offsets[i]), 0);
		assert_int_equal(iot_writer_copy(copy, &block, data + offsets[i]), -EINVAL);
	}
	assert_int_equal(iot_writer_records(copy), 100);
	assert_int_equal(iot_writer_seal(copy, &footer), 0);
	/* The same header, hence the same place for the first block. */
	{
		uint8_t *again = malloc(offsets[1]);

		assert_non_null(again);
		assert_int_equal(pread(iot_writer_fd(copy), again, offsets[1], 0), offsets[1]);
		assert_memory_equal(again, data, offsets[1]);
		free(again);
	}
	iot_writer_close(copy);
	free(data);
}

static void test_open_errors(void **state)
{
	struct fixture *f = *state;
	struct iot_segment_info bad = f->info;
	struct iot_writer *w = NULL;
	struct stat st;

	assert_int_equal(iot_writer_open(f->dirfd, "no/such", &f->info, &w), -ENOENT);
	bad.n_rings = IOT_MAX_RINGS + 1;
	assert_int_equal(iot_writer_open(f->dirfd, "copy", &bad, &w), -EINVAL);
	assert_null(w);
	/* Again over an existing file: it starts anew. */
	assert_int_equal(put(f, 10), 0);
	assert_int_equal(iot_writer_open(f->dirfd, "s", &f->info, &w), 0);
	assert_int_equal(fstat(iot_writer_fd(w), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal((uint64_t)st.st_size, iot_writer_bytes(w));
	assert_true(fcntl(iot_writer_fd(w), F_GETFD) & FD_CLOEXEC);
	iot_writer_close(w);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_unsealed),	 CASE(test_empty_batch), CASE(test_sealed),
		CASE(test_sealed_empty), CASE(test_failed_put),	 CASE(test_room),
		CASE(test_failed_seal),	 CASE(test_copy),	 CASE(test_open_errors),
	};

	umask(0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
