// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-damage.c - small segments, cut at every length and with every bit flipped: each damage is
 * seen, what it did not touch is read and recovered, and no verdict gets better by it.
 */
#include "tests/unit/segment-builder.h"
#include "tests/unit/segment-damage.h"

/* Recovers s; the new file must hold `want` requests and never a verdict that comforts. */
static void check_recovery(struct build_dir *d, struct iot_segment *s, uint64_t seq, uint32_t want)
{
	uint64_t kept = 0, lost = 0;
	struct iot_error err = {0};
	struct iot_segment *out;
	struct iot_verdict v;
	uint32_t gaps, bad;
	int r;

	unlinkat(d->fd, "out.iot", 0);
	r = iot_recover(s, d->fd, "out.iot", &kept, &lost, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	assert_int_equal(kept, want);
	r = openat(d->fd, "out.iot", O_RDONLY | O_CLOEXEC);
	assert_true(r >= 0);
	out = build_open_segment(r);
	assert_int_equal(iot_segment_state(out), IOT_SEGMENT_SEALED);
	assert_int_equal(iot_segment_footer(out)->reason, IOT_SEAL_RECOVERED);
	assert_int_equal(build_read_all(out, seq, &gaps, &bad), want);
	assert_int_equal(gaps + bad, 0);
	assert_int_equal(iot_verify_segment(out, &v, &err), 0);
	if (v.code != IOT_VERDICT_UNKNOWN)
		fail_msg("recovered: %s: %s", iot_verdict_name(v.code),
			 v.n_reasons ? v.reasons[0] : "");
	assert_int_equal(v.n_records, want);
	iot_segment_close(out);
}

static void cut_at_every_length(const struct build *of, const char *name)
{
	struct iot_block_info blocks[16];
	struct build b = *of;
	struct build_dir d;
	uint32_t n_blocks;
	uint8_t *data;
	size_t size;

	/* The copy's tables point into the original, which is the same. */
	build_dir_open(&d);
	build_write(&b, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	for (size_t len = 0; len < size; len += damage_step(5, 41)) {
		int fd = build_memfd(data, len);
		struct iot_error err = {0};
		struct iot_segment *s;
		struct iot_verdict v;
		uint32_t gaps, bad, want = 0;
		int r = iot_segment_open_fd(fd, "test", &s, &err);

		if (len < blocks[0].offset) {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(err.text, "test: offset "));
			continue;
		}
		assert_int_equal(r, 0);
		for (uint32_t i = 0; i < n_blocks; i++)
			if (blocks[i].kind == IOT_BLOCK_REQUESTS &&
			    blocks[i].offset + blocks[i].size <= len)
				want += blocks[i].count;
		assert_int_equal(iot_segment_state(s), IOT_SEGMENT_TORN);
		assert_int_equal(build_read_all(s, 1, &gaps, &bad), want);
		assert_int_equal(bad, 0);
		assert_true(gaps <= 1);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		if (v.code != IOT_VERDICT_TORN)
			fail_msg("%s cut at %zu of %zu: %s: %s", name, len, size,
				 iot_verdict_name(v.code), v.reasons[0]);
		assert_int_equal(v.n_records, want);
		if (len % 11 == 0)
			check_recovery(&d, s, 1, want);
		iot_segment_close(s);
	}
	free(data);
	build_dir_close(&d);
}

static void test_torn_everywhere(void **state)
{
	struct build b;

	(void)state;
	build_init(&b, 1, 3, 8);
	cut_at_every_length(&b, "clean");
	build_init(&b, 1, 3, 8);
	build_lossy(&b);
	cut_at_every_length(&b, "lossy");
}

/* A power cut may leave the size and no data. */
static void test_zero_tail(void **state)
{
	struct iot_block_info blocks[16];
	struct iot_segment *s;
	struct iot_verdict v;
	uint32_t gaps, bad;
	struct build_dir d;
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	build_write(&b, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 3);
	memset(data + blocks[2].offset, 0, size - blocks[2].offset);
	s = build_open_segment(build_memfd(data, size));
	assert_int_equal(build_read_all(s, 1, &gaps, &bad), 16);
	assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
	assert_int_equal(v.code, IOT_VERDICT_TORN);
	check_recovery(&d, s, 1, 16);
	iot_segment_close(s);
	free(data);
	build_dir_close(&d);
}

/*
 * Flips one bit after the other. Every byte of a sealed file is under some checksum, so each flip
 * must be seen; blocks that were not touched must still be read, and recovered.
 */
static void flip_every_bit(const struct build *of, const char *name)
{
	struct iot_block_info blocks[16];
	struct iot_verdict before, v;
	struct build b = *of;
	struct iot_segment *s;
	struct build_dir d;
	uint32_t n_blocks, total = b.n_blocks * b.per_block;
	uint8_t *data;
	size_t size;
	int fd;

	build_dir_open(&d);
	build_write(&b, d.fd, "a.iot");
	size = build_load(&d, "a.iot", &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	s = build_open_segment(build_memfd(data, size));
	assert_int_equal(iot_verify_segment(s, &before, NULL), 0);
	iot_segment_close(s);
	fd = build_memfd(data, size);
	for (size_t bit = 0; bit < size * 8; bit += damage_step(3, 37)) {
		uint8_t byte = data[bit / 8] ^ (uint8_t)(1U << bit % 8);
		struct iot_error err = {0};
		uint32_t gaps, bad, want = total;
		int r;

		assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
		r = iot_segment_open_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0), "test", &s, &err);
		if (bit / 8 < blocks[0].offset) {
			assert_true(r == -EBADMSG || r == -EPROTONOSUPPORT);
			assert_non_null(strstr(err.text, "test: "));
			goto next;
		}
		if (r < 0)
			fail_msg("%s bit %zu: %s", name, bit, err.text);
		for (uint32_t i = 0; i < n_blocks; i++)
			if (blocks[i].kind == IOT_BLOCK_REQUESTS && blocks[i].offset <= bit / 8 &&
			    bit / 8 < blocks[i].offset + blocks[i].size)
				want -= blocks[i].count;
		assert_int_equal(build_read_all(s, 1, &gaps, &bad), want);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		/* A file whose trailer is hit cannot be told from one that was cut. */
		if (v.code != IOT_VERDICT_CORRUPT && v.code != IOT_VERDICT_TORN)
			fail_msg("%s bit %zu of byte %zu: %s -> %s: %s", name, bit % 8, bit / 8,
				 iot_verdict_name(before.code), iot_verdict_name(v.code),
				 v.n_reasons ? v.reasons[0] : "");
		assert_int_equal(v.n_records, want);
		if (bit % 61 == 0)
			check_recovery(&d, s, 1, want);
		iot_segment_close(s);
	next:
		assert_int_equal(pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
	free(data);
	build_dir_close(&d);
}

static void test_flip_clean(void **state)
{
	struct build b;

	(void)state;
	build_init(&b, 1, 3, 8);
	flip_every_bit(&b, "clean");
}

static void test_flip_lossy(void **state)
{
	struct build b;

	(void)state;
	build_init(&b, 1, 2, 8);
	build_lossy(&b);
	flip_every_bit(&b, "lossy");
}

/* The same in a file without a footer: the next whole block is found by searching. */
static void test_flip_unsealed(void **state)
{
	struct iot_block_info blocks[16];
	struct build_dir d;
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 4, 8);
	b.seal = false;
	build_write(&b, d.fd, "a.open");
	size = build_load(&d, "a.open", &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 4);
	for (size_t bit = blocks[0].offset * 8; bit < size * 8; bit += 2 + damage_step(3, 37)) {
		struct iot_segment *s;
		struct iot_verdict v;
		uint32_t gaps, bad;

		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
		s = build_open_segment(build_memfd(data, size));
		assert_int_equal(build_read_all(s, 1, &gaps, &bad), 24);
		assert_int_equal(gaps + bad, 1);
		assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
		/* The last block's header may say "longer", which is also what a torn one says. */
		if (v.code != IOT_VERDICT_CORRUPT &&
		    (v.code != IOT_VERDICT_TORN || bit / 8 < blocks[3].offset))
			fail_msg("bit %zu: %s", bit, iot_verdict_name(v.code));
		if (bit % 61 == 0)
			check_recovery(&d, s, 1, 24);
		iot_segment_close(s);
		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(data);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torn_everywhere), cmocka_unit_test(test_zero_tail),
		cmocka_unit_test(test_flip_clean),	cmocka_unit_test(test_flip_lossy),
		cmocka_unit_test(test_flip_unsealed),
	};

	damage_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
