// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-reader.c - one segment: what was written is read, and whatever the bytes are, a reader gives
 * records or one clear error. Every bit and every length: test-damage.c.
 */
#include "tests/unit/segment-builder.h"

#include <sys/time.h>

#include "format/segment-def.h"

static void test_sealed(void **state)
{
	struct iot_loss *losses;
	struct iot_request *open;
	struct iot_segment *s;
	struct iot_error err = {0};
	uint32_t gaps, bad;
	struct build_dir d;
	char path[128];
	struct build b;
	size_t n;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	build_lossy(&b);
	build_write(&b, d.fd, "a.iot");
	snprintf(path, sizeof(path), "%s/a.iot", d.path);
	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	assert_int_equal(iot_segment_state(s), IOT_SEGMENT_SEALED);
	assert_false(iot_segment_damaged(s));
	assert_string_equal(iot_segment_state_text(s), "sealed");
	assert_string_equal(iot_segment_path(s), path);
	assert_int_equal(iot_segment_info(s)->seq, 1);
	assert_string_equal(iot_segment_info(s)->host, "host");
	assert_true(iot_segment_footer_hash(s) == b.footer_hash);
	assert_int_equal(iot_segment_footer(s)->reason, IOT_SEAL_TIME);
	assert_int_equal(iot_segment_declared(s, IOT_BLOCK_REQUESTS), 24);
	assert_int_equal(iot_segment_declared(s, IOT_BLOCK_OPEN), 2);
	assert_int_equal(iot_segment_declared(s, IOT_BLOCK_LEDGER), 2);
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 24);
	assert_int_equal(gaps + bad, 0);
	assert_int_equal(iot_segment_load_ledger(s, &losses, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(losses, b.x.losses, 2 * sizeof(*losses));
	assert_int_equal(iot_segment_load_open(s, &open, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(open, b.open, 2 * sizeof(*open));
	/* The anchor and one second on. */
	assert_true(iot_segment_realtime_ns(s, b.x.info.clocks.monotonic_ns) ==
		    b.x.info.clocks.realtime_ns);
	assert_true(iot_segment_realtime_ns(s, b.x.info.clocks.monotonic_ns - SEC_NS) ==
		    b.x.info.clocks.realtime_ns - SEC_NS);
	free(losses);
	free(open);
	iot_segment_close(s);
	build_dir_close(&d);
}

/* A daemon's open file: whole blocks are read; what it adds is for the next reader. */
static void test_live(void **state)
{
	struct iot_segment *s;
	struct iot_error err = {0};
	struct iot_writer *w;
	struct iot_batch *batch;
	uint32_t gaps, bad;
	struct build_dir d;
	char path[128];
	struct build b;

	(void)state;
	build_dir_open(&d);
	snprintf(path, sizeof(path), "%s/a.open", d.path);
	build_init(&b, 1, 3, 8);
	assert_int_equal(iot_writer_open(d.fd, "a.open", &b.x.info, &w), 0);
	assert_int_equal(iot_batch_new(8, &batch), 0);
	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	assert_int_equal(iot_segment_state(s), IOT_SEGMENT_TORN);
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 0);
	iot_segment_close(s);
	build_put(&b, w, 0, batch);
	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	build_put(&b, w, 1, batch);
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 8);
	assert_int_equal(gaps + bad, 0);
	assert_false(iot_segment_damaged(s));
	assert_null(iot_segment_footer(s));
	iot_segment_close(s);
	iot_batch_free(batch);
	iot_writer_close(w);
	build_dir_close(&d);
}

/* The next block behind *at, and its number of records; *at moves behind it. */
static int read_on(const char *path, uint64_t *at, uint32_t *ret_count)
{
	struct iot_block_info info;
	struct iot_error err = {0};
	struct iot_segment *s;
	int r;

	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	iot_segment_seek(s, *at);
	do
		r = iot_segment_next_block(s, &info, &err);
	while (r == 0 && info.kind != IOT_BLOCK_REQUESTS);
	if (r == 0) {
		*at = info.offset + info.size;
		*ret_count = info.count;
	}
	iot_segment_close(s);
	return r;
}

/* Whoever follows a file that grows opens it again and again, and goes on where it was. */
static void test_follow(void **state)
{
	struct iot_writer *w;
	struct iot_batch *batch;
	struct build_dir d;
	uint64_t at = 0, first;
	char path[128];
	struct build b;
	uint32_t n = 0;

	(void)state;
	build_dir_open(&d);
	snprintf(path, sizeof(path), "%s/a.open", d.path);
	build_init(&b, 1, 3, 8);
	assert_int_equal(iot_writer_open(d.fd, "a.open", &b.x.info, &w), 0);
	assert_int_equal(iot_batch_new(8, &batch), 0);
	assert_int_equal(read_on(path, &at, &n), IOT_READ_END);
	build_put(&b, w, 0, batch);
	assert_int_equal(read_on(path, &at, &n), 0);
	first = at;
	assert_int_equal(read_on(path, &at, &n), IOT_READ_END);
	build_put(&b, w, 1, batch);
	build_put(&b, w, 2, batch);
	assert_int_equal(read_on(path, &at, &n), 0);
	assert_true(at > first);
	/* Sealed meanwhile. */
	build_seal(&b, w);
	assert_int_equal(read_on(path, &at, &n), 0);
	assert_int_equal(n, 8);
	assert_int_equal(read_on(path, &at, &n), IOT_READ_END);
	at = first;
	assert_int_equal(read_on(path, &at, &n), 0);
	assert_int_equal(read_on(path, &at, &n), 0);
	assert_int_equal(read_on(path, &at, &n), IOT_READ_END);
	iot_batch_free(batch);
	iot_writer_close(w);
	build_dir_close(&d);
}

/* Columns that were not asked for are null, the others are what they were. */
static void test_columns(void **state)
{
	struct iot_request got, want;
	struct iot_block_info info;
	struct iot_segment *s;
	struct iot_batch *b;
	struct build_dir d;
	struct build build;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&build, 1, 1, 8);
	build_write(&build, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	s = build_open_segment(build_memfd(data, size));
	assert_int_equal(iot_batch_new(8, &b), 0);
	assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	assert_int_equal(iot_segment_read_block(s, &info, IOT_COLS_OP, b, NULL), 0);
	iot_batch_get(b, 5, &got);
	build_request(&want, 1, 5);
	assert_int_equal(got.op, want.op);
	assert_true(got.complete_ns == want.complete_ns);
	assert_int_equal(got.pid, 0);
	assert_int_equal(got.dev, 0);
	iot_batch_free(b);
	iot_segment_close(s);
	free(data);
	build_dir_close(&d);
}

static void expect_refusal(const char *path, int code, const char *what)
{
	struct iot_segment *s = NULL;
	struct iot_error err = {0};

	assert_int_equal(iot_segment_open(path, &s, &err), code);
	assert_null(s);
	if (!strstr(err.text, path) || !strstr(err.text, what))
		fail_msg("%s: \"%s\"", what, err.text);
}

static void test_not_segments(void **state)
{
	static const uint8_t lz4[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 0, 0, 0, 0};
	struct build_dir d;
	char path[128];
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	expect_refusal(d.path, -EISDIR, "is a directory");
	expect_refusal("/dev/zero", -EINVAL, "character device");
	snprintf(path, sizeof(path), "%s/none", d.path);
	expect_refusal(path, -ENOENT, "No such file");
	snprintf(path, sizeof(path), "%s/fifo", d.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refusal(path, -EINVAL, "is a pipe");
	snprintf(path, sizeof(path), "%s/x", d.path);
	build_store(&d, "x", "", 0);
	expect_refusal(path, -EBADMSG, "offset 0: empty file");
	build_store(&d, "x", "hello, this is text\n", 20);
	expect_refusal(path, -EBADMSG, "not an iotraced segment");
	build_store(&d, "x", lz4, sizeof(lz4));
	expect_refusal(path, -EBADMSG, "not an iotraced segment");

	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	build_store(&d, "x", data, 9);
	expect_refusal(path, -EBADMSG, "offset 9: the file ends inside its header");
	build_store(&d, "x", data, 100);
	expect_refusal(path, -EBADMSG, "offset 100: the file ends inside its header");
	data[15] = '2';
	build_store(&d, "x", data, size);
	expect_refusal(path, -EPROTONOSUPPORT, "segment format '2'");
	data[14] ^= 1;
	build_store(&d, "x", data, size);
	expect_refusal(path, -EBADMSG, "offset 8: not an iotraced segment");
	free(data);
	build_dir_close(&d);
}

/* Garbage between blocks, with a false magic in it. */
static void test_resync(void **state)
{
	static const uint8_t junk[] = {0x52, 0x2a, 0x4d, 0x18, 0x52, 0x2a, 0x4d, 0x18, 60,  0,
				       0,    0,	   'I',	 'O',  'T',  'B',  0x52, 0x2a, 0x4d};
	struct iot_block_info blocks[16], info;
	struct iot_segment *s;
	uint32_t gaps, bad;
	struct build_dir d;
	struct build b;
	uint8_t *data, *bytes;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	b.seal = false;
	build_write(&b, d.fd, "a.open");
	size = build_load(&d, "a.open", &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 3);
	bytes = malloc(size + sizeof(junk));
	memcpy(bytes, data, blocks[1].offset);
	memcpy(bytes + blocks[1].offset, junk, sizeof(junk));
	memcpy(bytes + blocks[1].offset + sizeof(junk), data + blocks[1].offset,
	       size - blocks[1].offset);
	s = build_open_segment(build_memfd(bytes, size + sizeof(junk)));
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 24);
	assert_int_equal(gaps, 1);
	iot_segment_rewind(s);
	assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	assert_int_equal(iot_segment_next_block(s, &info, NULL), IOT_READ_GAP);
	assert_int_equal(info.offset, blocks[1].offset);
	assert_int_equal(info.size, sizeof(junk));
	assert_true(iot_segment_damaged(s));
	iot_segment_close(s);

	/* A block that occurs again (of an older file, on reused disk space) is not read again. */
	memcpy(bytes, data, size);
	bytes = realloc(bytes, size + blocks[1].size);
	memcpy(bytes + size, data + blocks[1].offset, blocks[1].size);
	s = build_open_segment(build_memfd(bytes, size + blocks[1].size));
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 24);
	assert_int_equal(gaps, 1);
	iot_segment_close(s);
	free(bytes);
	free(data);
	build_dir_close(&d);
}

/*
 * A file made of headers that each claim the whole rest as data: searching may not hash it all
 * again for each of them.
 */
static void test_search_is_bounded(void **state)
{
	enum {
		FILE_BYTES = 8 << 20
	};
	struct iot_block_info blocks[16];
	struct timeval t0, t1;
	struct iot_segment *s;
	uint32_t gaps, bad;
	struct build_dir d;
	struct build b;
	uint8_t *data, *big;
	size_t size, pos;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	b.seal = false;
	build_write(&b, d.fd, "a.open");
	size = build_load(&d, "a.open", &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 1);
	big = calloc(1, FILE_BYTES);
	memcpy(big, data, blocks[0].offset);
	pos = blocks[0].offset + 1;
	/* Valid header, data of another length than it has: found at every step, wrong every time. */
	for (; pos + blocks[0].header_size < FILE_BYTES; pos += blocks[0].header_size)
		memcpy(big + pos, data + blocks[0].offset, blocks[0].header_size);
	gettimeofday(&t0, NULL);
	s = build_open_segment(build_memfd(big, FILE_BYTES));
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 0);
	gettimeofday(&t1, NULL);
	assert_true(t1.tv_sec - t0.tv_sec < 20);
	iot_segment_close(s);
	free(big);
	free(data);
	build_dir_close(&d);
}

/* A footer of another file, whole in itself, says nothing about this one. */
static void test_foreign_footer(void **state)
{
	struct iot_block_info blocks[16], others[16];
	uint8_t *data, *other, *mix;
	size_t size, other_size;
	struct iot_segment *s;
	struct iot_verdict v;
	struct build_dir d;
	struct build b;
	uint32_t n;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	build_write(&b, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	build_init(&b, 2, 3, 8);
	build_write(&b, d.fd, "b.iot");
	other_size = build_load(&d, "b.iot", &other);
	n = build_blocks(data, size, blocks, 16);
	assert_int_equal(build_blocks(other, other_size, others, 16), n);
	assert_int_equal(blocks[0].offset, others[0].offset);
	/* Header of a, everything else of b. */
	mix = malloc(other_size);
	memcpy(mix, other, other_size);
	memcpy(mix, data, blocks[0].offset);
	s = build_open_segment(build_memfd(mix, other_size));
	assert_int_equal(iot_segment_state(s), IOT_SEGMENT_TORN);
	assert_true(iot_segment_damaged(s));
	assert_non_null(strstr(iot_segment_state_text(s), "belongs to another file"));
	assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
	assert_int_equal(v.code, IOT_VERDICT_CORRUPT);
	iot_segment_close(s);
	/* One block exchanged for a whole one of the other file: the index knows its hash. */
	memcpy(mix, data, blocks[1].offset);
	if (blocks[1].size == others[1].size && size == other_size) {
		memcpy(mix, data, size);
		memcpy(mix + blocks[1].offset, other + others[1].offset, blocks[1].size);
		s = build_open_segment(build_memfd(mix, size));
		assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
		assert_int_equal(v.code, IOT_VERDICT_CORRUPT);
		assert_int_equal(v.n_records, 16);
		iot_segment_close(s);
	}
	free(mix);
	free(data);
	free(other);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_follow),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_not_segments),
		cmocka_unit_test(test_resync),
		cmocka_unit_test(test_search_is_bounded),
		cmocka_unit_test(test_foreign_footer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
