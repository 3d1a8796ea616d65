// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-damage-packet.c - test-damage.c for segments of packets: cut at every length and with every bit flipped,
 * each damage is seen, what it did not touch is read and recovered, and no verdict gets better by it: neither
 * the segment's nor any packet's.
 */
#include "tests/unit/packet-fixture.h"
#include "tests/unit/segment-builder.h"
#include "tests/unit/segment-damage.h"

#include "daemon/ctl/packets.h"

#define N_PACKETS 4U
#define PER_BLOCK 10U
#define FIRST_ID 1001U

static struct fix_capture capture;

/* ctl/packets.c would print. */
int ctl_fail(int code, const char *fmt, ...)
{
	(void)fmt;
	return code;
}

static void make_capture(bool lossy)
{
	struct fix_capture *c = &capture;
	uint64_t first = FIX_SPAN_NS + 100 * FIX_SEC_NS;

	fix_init(c, 1);
	for (uint64_t i = 0; i < N_PACKETS; i++)
		fix_path(c, 0, FIRST_ID + i, first + i * FIX_SEC_NS, 1, 5);
	if (lossy) {
		struct iot_packet p = fix_packet(FIRST_ID + N_PACKETS, first, 2);

		(void)fix_lose(c, 0, &p);
		p = fix_packet(FIRST_ID + N_PACKETS, first, 3);
		(void)fix_lose(c, 0, &p);
		fix_unattributed(c, 0, FIX_RECEIVE, first + 2 * FIX_SEC_NS, first + 3 * FIX_SEC_NS,
				 4);
		fix_missed(c, 0, FIX_CONSUME, first + 3 * FIX_SEC_NS, first + 4 * FIX_SEC_NS, 1);
	}
}

static size_t write_capture(struct build_dir *d, bool seal, uint8_t **ret)
{
	struct fix_segment *s = &capture.s[0];
	struct iot_span span = {0};
	struct iot_writer *w;
	struct iot_batch *b;
	size_t size;

	assert_int_equal(iot_writer_open(d->fd, "a.iot", &s->info, &w), 0);
	assert_int_equal(iot_batch_new_stream(IOT_STREAM_PACKET, PER_BLOCK, &b), 0);
	for (size_t i = 0; i < capture.n_records; i++) {
		assert_int_equal(iot_batch_add_packet(b, &capture.records[i].p), 0);
		span.p1 += BUILD_RECORD_BYTES;
		if ((i + 1) % PER_BLOCK)
			continue;
		assert_int_equal(iot_writer_put(w, b, &span, 1), 0);
		span.p0 = span.p1;
		iot_batch_clear(b);
	}
	if (seal)
		assert_int_equal(iot_writer_seal(w, &s->f), 0);
	iot_batch_free(b);
	iot_writer_close(w);
	size = build_load(d, "a.iot", ret);
	return size;
}

static const char *packet_difference(const struct iot_packet *a, const struct iot_packet *b)
{
	return a->ts_ns != b->ts_ns || a->id != b->id || a->hop != b->hop || a->probe != b->probe ||
			       a->flags != b->flags || a->len != b->len || a->netns != b->netns ||
			       memcmp(&a->flow, &b->flow, sizeof(a->flow)) != 0 ||
			       memcmp(a->comm, b->comm, sizeof(a->comm)) != 0
		       ? "another observation"
		       : NULL;
}

/* Reads all observations there are; each must be one that was written. */
static uint32_t read_all(struct iot_segment *s, uint32_t *ret_gaps, uint32_t *ret_bad)
{
	struct iot_block_info info;
	struct iot_batch *b;
	uint32_t n = 0;

	*ret_gaps = *ret_bad = 0;
	assert_int_equal(iot_batch_new_stream(IOT_STREAM_PACKET, 64, &b), 0);
	iot_segment_rewind(s);
	for (;;) {
		struct iot_error err = {0};
		int r = iot_segment_next_block(s, &info, &err);

		assert_true(r >= 0);
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP) {
			(*ret_gaps)++;
			/* The missing range is stated, and lies in the file. */
			assert_true(info.size > 0);
			assert_true(info.offset + info.size <= iot_segment_size(s));
			continue;
		}
		if (info.kind != IOT_BLOCK_PACKETS)
			continue;
		r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, &err);
		if (r < 0) {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(err.text, "test: offset "));
			(*ret_bad)++;
			continue;
		}
		for (uint32_t i = 0; i < iot_batch_count(b); i++) {
			struct iot_packet got;
			size_t at;

			iot_batch_get_packet(b, i, &got);
			at = (got.id - FIRST_ID) * 5 + got.hop - 1;
			assert_true(at < capture.n_records);
			assert_null(packet_difference(&got, &capture.records[at].p));
		}
		n += iot_batch_count(b);
	}
	iot_batch_free(b);
	return n;
}

static void check_recovery(struct build_dir *d, struct iot_segment *s, uint32_t want)
{
	uint64_t kept = 0, lost = 0;
	struct iot_error err = {0};
	struct iot_segment *out;
	struct iot_verdict v;
	uint32_t gaps, bad;
	int fd;

	unlinkat(d->fd, "out.iot", 0);
	if (iot_recover(s, d->fd, "out.iot", &kept, &lost, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(kept, want);
	fd = openat(d->fd, "out.iot", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	out = build_open_segment(fd);
	assert_int_equal(iot_segment_state(out), IOT_SEGMENT_SEALED);
	assert_int_equal(iot_segment_footer(out)->reason, IOT_SEAL_RECOVERED);
	assert_int_equal(read_all(out, &gaps, &bad), want);
	assert_int_equal(gaps + bad, 0);
	assert_int_equal(iot_verify_segment(out, &v, &err), 0);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	assert_int_equal(v.n_records, want);
	iot_segment_close(out);
}

/* What the record says of each packet, lost ones too: as `replay` and `explain` find out. */
static size_t judge_all(int fd, enum iot_packet_verdict ret[N_PACKETS + 1])
{
	struct ctl_packets packets = {0};
	struct iot_error err = {0};
	struct iot_scan *scan;
	char path[64];
	const char *paths = path;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i <= N_PACKETS; i++)
		ret[i] = IOT_PVERDICT_UNKNOWN;
	if (iot_scan_open(&paths, 1, NULL, &scan, &err) < 0)
		return 0;
	if (ctl_packets_read(scan, &packets, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; packets.n == 1 && i <= N_PACKETS; i++) {
		struct iot_packet_life *l = ctl_capture_life(&packets.captures[0], FIRST_ID + i);
		struct iot_packet_life none = {.id = FIRST_ID + i};
		struct iot_packet_ruling ruling;

		iot_doubts_judge(packets.captures[0].doubts, l ? l : &none, &ruling, NULL);
		ret[i] = ruling.verdict;
	}
	ctl_packets_done(&packets);
	iot_scan_close(scan);
	return N_PACKETS + 1;
}

/* Damage may take away, and leave a packet in doubt or lost; it makes none better. */
static void check_judgement(int fd, const enum iot_packet_verdict *before, const char *name,
			    size_t at)
{
	enum iot_packet_verdict now[N_PACKETS + 1];

	if (judge_all(fd, now) == 0)
		return;
	for (size_t i = 0; i <= N_PACKETS; i++)
		if (now[i] < before[i])
			fail_msg("%s, byte %zu: packet %zu: %s -> %s", name, at, i,
				 iot_packet_verdict_name(before[i]),
				 iot_packet_verdict_name(now[i]));
}

static void cut_everywhere(bool lossy, const char *name)
{
	enum iot_packet_verdict before[N_PACKETS + 1];
	struct iot_block_info blocks[16];
	struct build_dir d;
	uint32_t n_blocks;
	uint8_t *data;
	size_t size;
	int whole;

	build_dir_open(&d);
	make_capture(lossy);
	size = write_capture(&d, true, &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	whole = build_memfd(data, size);
	judge_all(whole, before);
	close(whole);
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
			if (blocks[i].kind == IOT_BLOCK_PACKETS &&
			    blocks[i].offset + blocks[i].size <= len)
				want += blocks[i].count;
		assert_int_equal(iot_segment_state(s), IOT_SEGMENT_TORN);
		assert_int_equal(read_all(s, &gaps, &bad), want);
		assert_int_equal(bad, 0);
		assert_true(gaps <= 1);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		if (v.code != IOT_VERDICT_TORN)
			fail_msg("%s cut at %zu of %zu: %s", name, len, size,
				 iot_verdict_name(v.code));
		assert_int_equal(v.n_records, want);
		if (len % 11 == 0)
			check_recovery(&d, s, want);
		if (len % 31 == 0)
			check_judgement(fd, before, name, len);
		iot_segment_close(s);
		close(fd);
	}
	free(data);
	build_dir_close(&d);
}

static void flip_everywhere(bool lossy, const char *name)
{
	enum iot_packet_verdict before[N_PACKETS + 1];
	struct iot_block_info blocks[16];
	struct build_dir d;
	uint32_t n_blocks;
	uint8_t *data;
	size_t size;
	int fd;

	build_dir_open(&d);
	make_capture(lossy);
	size = write_capture(&d, true, &data);
	n_blocks = build_blocks(data, size, blocks, IOT_ARRAY_SIZE(blocks));
	fd = build_memfd(data, size);
	judge_all(fd, before);
	for (size_t bit = 0; bit < size * 8; bit += damage_step(3, 37)) {
		uint8_t byte = data[bit / 8] ^ (uint8_t)(1U << bit % 8);
		uint32_t gaps, bad, want = (uint32_t)capture.n_records;
		struct iot_error err = {0};
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
			if (blocks[i].kind == IOT_BLOCK_PACKETS && blocks[i].offset <= bit / 8 &&
			    bit / 8 < blocks[i].offset + blocks[i].size)
				want -= blocks[i].count;
		assert_int_equal(read_all(s, &gaps, &bad), want);
		assert_int_equal(iot_verify_segment(s, &v, &err), 0);
		if (v.code != IOT_VERDICT_CORRUPT && v.code != IOT_VERDICT_TORN)
			fail_msg("%s bit %zu of byte %zu: %s", name, bit % 8, bit / 8,
				 iot_verdict_name(v.code));
		assert_int_equal(v.n_records, want);
		if (bit % 61 == 0)
			check_recovery(&d, s, want);
		if (bit % 97 == 0)
			check_judgement(fd, before, name, bit / 8);
		iot_segment_close(s);
	next:
		assert_int_equal(pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
	free(data);
	build_dir_close(&d);
}

static void test_cut(void **state)
{
	(void)state;
	cut_everywhere(false, "clean");
	cut_everywhere(true, "lossy");
}

static void test_flip_clean(void **state)
{
	(void)state;
	flip_everywhere(false, "clean");
}

static void test_flip_lossy(void **state)
{
	(void)state;
	flip_everywhere(true, "lossy");
}

/* Without a footer the next whole block is found by searching. */
static void test_flip_unsealed(void **state)
{
	struct iot_block_info blocks[16];
	struct build_dir d;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	make_capture(false);
	size = write_capture(&d, false, &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 2);
	for (size_t bit = blocks[0].offset * 8; bit < size * 8; bit += 2 + damage_step(3, 37)) {
		struct iot_segment *s;
		struct iot_verdict v;
		uint32_t gaps, bad;

		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
		s = build_open_segment(build_memfd(data, size));
		assert_int_equal(read_all(s, &gaps, &bad), PER_BLOCK);
		assert_int_equal(gaps + bad, 1);
		assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
		if (v.code != IOT_VERDICT_CORRUPT &&
		    (v.code != IOT_VERDICT_TORN || bit / 8 < blocks[1].offset))
			fail_msg("bit %zu: %s", bit, iot_verdict_name(v.code));
		if (bit % 61 == 0)
			check_recovery(&d, s, PER_BLOCK);
		iot_segment_close(s);
		data[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(data);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_flip_clean),
		cmocka_unit_test(test_flip_lossy),
		cmocka_unit_test(test_flip_unsealed),
	};

	damage_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
