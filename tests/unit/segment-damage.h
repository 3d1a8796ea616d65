/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment-damage.h - a small segment file, cut at every length and with every bit flipped: each damage is seen, what
 * it did not touch is read and recovered, and no verdict gets better by it. The same for each kind of record.
 */
#pragma once

#include <malloc.h>

#include "tests/unit/segment-builder.h"

/* What differs between the streams. */
struct damage {
	enum iot_block_kind kind;
	/* Reads all records there are; each must be one that was written. Returns how many. */
	uint32_t (*read_all)(struct iot_segment *s, uint32_t *ret_gaps, uint32_t *ret_bad);
	/* What the damaged file says of single records must be no better than before; may be NULL. */
	void (*judge)(int fd, const char *name, size_t at);
};

/*
 * Step between inputs: every one in a plain build, a sample where each costs ten times as much
 * (sanitizers) or fifty times (valgrind preloads its own library).
 */
static inline size_t damage_step(size_t sanitized, size_t valgrind)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "vgpreload"))
		return valgrind;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__)
	return sanitized;
#else
	(void)sanitized;
	return 1;
#endif
}

/* Keeps what was freed: the same sizes are asked for a hundred thousand times, and the kernel would clear them each time. */
static inline void damage_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

/* Recovers s; the new file must hold `want` records and never a verdict that comforts. */
static inline void damage_recover(const struct damage *k, struct build_dir *d,
				  struct iot_segment *s, uint32_t want)
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
	assert_int_equal(k->read_all(out, &gaps, &bad), want);
	assert_int_equal(gaps + bad, 0);
	assert_int_equal(iot_verify_segment(out, &v, &err), 0);
	if (v.code != IOT_VERDICT_UNKNOWN)
		fail_msg("recovered: %s: %s", iot_verdict_name(v.code),
			 v.n_reasons ? v.reasons[0] : "");
	assert_int_equal(v.n_records, want);
	iot_segment_close(out);
}

/* Every length of the sealed file `a.iot`. */
static inline void damage_cut(const struct damage *k, struct build_dir *d, const char *name)
{
	struct iot_block_info blocks[16];
	uint32_t n_blocks;
	uint8_t *data;
	size_t size;

	size = build_load(d, "a.iot", &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	for (size_t len = 0; len < size; len += damage_step(5, 41)) {
		int fd = build_memfd(data, len);
		uint32_t gaps, bad, want = 0;
		struct iot_error err = {0};
		struct iot_segment *s;
		struct iot_verdict v;
		int r = iot_segment_open_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0), "test", &s, &err);

		if (len < blocks[0].offset) {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(err.text, "test: offset "));
			close(fd);
			continue;
		}
		assert_int_equal(r, 0);
		for (uint32_t i = 0; i < n_blocks; i++)
			if (blocks[i].kind == k->kind && blocks[i].offset + blocks[i].size <= len)
				want += blocks[i].count;
		assert_int_equal(iot_segment_state(s), IOT_SEGMENT_TORN);
		assert_int_equal(k->read_all(s, &gaps, &bad), want);
		assert_int_equal(bad, 0);
		assert_true(gaps <= 1);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		if (v.code != IOT_VERDICT_TORN)
			fail_msg("%s cut at %zu of %zu: %s: %s", name, len, size,
				 iot_verdict_name(v.code), v.n_reasons ? v.reasons[0] : "");
		assert_int_equal(v.n_records, want);
		if (len % 11 == 0)
			damage_recover(k, d, s, want);
		if (k->judge && len % 31 == 0)
			k->judge(fd, name, len);
		iot_segment_close(s);
		close(fd);
	}
	free(data);
}

/*
 * Every bit of the sealed file `a.iot`, which holds `total` records. Every byte is under some checksum, so each
 * flip must be seen; blocks that were not touched must still be read, and recovered.
 */
static inline void damage_flip(const struct damage *k, struct build_dir *d, const char *name,
			       uint32_t total)
{
	struct iot_block_info blocks[16];
	uint32_t n_blocks;
	uint8_t *data;
	size_t size;
	int fd;

	size = build_load(d, "a.iot", &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	fd = build_memfd(data, size);
	for (size_t bit = 0; bit < size * 8; bit += damage_step(3, 37)) {
		uint8_t byte = data[bit / 8] ^ (uint8_t)(1U << bit % 8);
		struct iot_error err = {0};
		uint32_t gaps, bad, want = total;
		struct iot_segment *s;
		struct iot_verdict v;
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
			if (blocks[i].kind == k->kind && blocks[i].offset <= bit / 8 &&
			    bit / 8 < blocks[i].offset + blocks[i].size)
				want -= blocks[i].count;
		assert_int_equal(k->read_all(s, &gaps, &bad), want);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		/* A file whose trailer is hit cannot be told from one that was cut. */
		if (v.code != IOT_VERDICT_CORRUPT && v.code != IOT_VERDICT_TORN)
			fail_msg("%s bit %zu of byte %zu: %s: %s", name, bit % 8, bit / 8,
				 iot_verdict_name(v.code), v.n_reasons ? v.reasons[0] : "");
		assert_int_equal(v.n_records, want);
		if (bit % 61 == 0)
			damage_recover(k, d, s, want);
		if (k->judge && bit % 97 == 0)
			k->judge(fd, name, bit / 8);
		iot_segment_close(s);
	next:
		assert_int_equal(pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
	free(data);
}

/*
 * The same in `a.iot` without a footer: the next whole block is found by searching. All its blocks are of the
 * kind and hold as many records.
 */
static inline void damage_flip_unsealed(const struct damage *k, struct build_dir *d,
					uint32_t n_blocks, uint32_t per_block)
{
	uint32_t want = (n_blocks - 1) * per_block;
	struct iot_block_info blocks[16];
	uint8_t *data;
	size_t size;

	size = build_load(d, "a.iot", &data);
	assert_int_equal(build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks)), n_blocks);
	for (size_t bit = blocks[0].offset * 8; bit < size * 8; bit += 2 + damage_step(3, 37)) {
		struct iot_segment *s;
		struct iot_verdict v;
		uint32_t gaps, bad;

		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
		s = build_open_segment(build_memfd(data, size));
		assert_int_equal(k->read_all(s, &gaps, &bad), want);
		assert_int_equal(gaps + bad, 1);
		assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
		/* The last block's header may say "longer", which is also what a torn one says. */
		if (v.code != IOT_VERDICT_CORRUPT &&
		    (v.code != IOT_VERDICT_TORN || bit / 8 < blocks[n_blocks - 1].offset))
			fail_msg("bit %zu: %s", bit, iot_verdict_name(v.code));
		if (bit % 61 == 0)
			damage_recover(k, d, s, want);
		iot_segment_close(s);
		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(data);
}
