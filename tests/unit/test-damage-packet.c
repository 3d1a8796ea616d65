// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-damage-packet.c - segment-damage.h for segments of packets; and no packet's verdict gets better by damage,
 * those of packets that lost everything included.
 */
#include "tests/unit/packet-fixture.h"
#include "tests/unit/segment-damage.h"

#include "daemon/ctl/packets.h"

#define N_PACKETS 4U
#define PER_BLOCK 10U
#define FIRST_ID 1001U

static struct fix_capture capture;
static enum iot_packet_verdict before[N_PACKETS + 1];

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

static void write_capture(struct build_dir *d, bool seal)
{
	struct fix_segment *s = &capture.s[0];
	struct iot_span span = {0};
	struct iot_writer *w;
	struct iot_batch *b;

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
static void check_judgement(int fd, const char *name, size_t at)
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

static const struct damage packets = {
	.kind = IOT_BLOCK_PACKETS,
	.read_all = read_all,
	.judge = check_judgement,
};

static void write_file(struct build_dir *d, bool lossy, bool seal)
{
	uint8_t *data;
	size_t size;
	int fd;

	build_dir_open(d);
	make_capture(lossy);
	write_capture(d, seal);
	size = build_load(d, "a.iot", &data);
	fd = build_memfd(data, size);
	assert_int_equal(judge_all(fd, before), N_PACKETS + 1);
	close(fd);
	free(data);
}

static void cut(bool lossy, const char *name)
{
	struct build_dir d;

	write_file(&d, lossy, true);
	damage_cut(&packets, &d, name);
	build_dir_close(&d);
}

static void test_cut(void **state)
{
	(void)state;
	cut(false, "clean");
	cut(true, "lossy");
}

static void flip(bool lossy, const char *name)
{
	struct build_dir d;

	write_file(&d, lossy, true);
	damage_flip(&packets, &d, name, (uint32_t)capture.n_records);
	build_dir_close(&d);
}

static void test_flip_clean(void **state)
{
	(void)state;
	flip(false, "clean");
}

static void test_flip_lossy(void **state)
{
	(void)state;
	flip(true, "lossy");
}

static void test_flip_unsealed(void **state)
{
	struct build_dir d;

	(void)state;
	write_file(&d, false, false);
	damage_flip_unsealed(&packets, &d, 2, PER_BLOCK);
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
