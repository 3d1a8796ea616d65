// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-verify.c - the footer's claims against the blocks, and segments against their
 * neighbours. Every case spoils one thing in files made by the real writer.
 */
#include "tests/unit/segment-builder.h"

#include "format/segment-def.h"

#define MAX_CHAIN 4

struct chain {
	struct build_dir d;
	struct build b[MAX_CHAIN];
	size_t n;
};

static void chain_open(struct chain *c, size_t n)
{
	build_dir_open(&c->d);
	c->n = n;
	for (size_t i = 0; i < n; i++)
		build_init(&c->b[i], i + 1, 2, 8);
}

/* Writes all; each linked to the one before unless the test has set something else. */
static void chain_write(struct chain *c)
{
	for (size_t i = 0; i < c->n; i++) {
		char name[32];

		if (i > 0 && !c->b[i].x.f.prev_footer_hash)
			c->b[i].x.f.prev_footer_hash = c->b[i - 1].footer_hash;
		if (i > 0 && !c->b[i].ring_pos)
			c->b[i].ring_pos = c->b[i - 1].ring_pos;
		snprintf(name, sizeof(name), "%zu.iot", i);
		build_write(&c->b[i], c->d.fd, name);
	}
}

/* Verifies the files whose bit is set in mask. */
static void chain_verify(struct chain *c, unsigned int mask, struct iot_verdict *ret)
{
	struct iot_segment *segments[MAX_CHAIN];
	struct iot_error err = {0};
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		char path[128];

		if (!(mask & (1U << i)))
			continue;
		snprintf(path, sizeof(path), "%s/%zu.iot", c->d.path, i);
		assert_int_equal(iot_segment_open(path, &segments[n++], &err), 0);
	}
	assert_int_equal(iot_verify_chain(segments, n, ret, &err), 0);
	for (size_t i = 0; i < n; i++)
		iot_segment_close(segments[i]);
}

/* One segment, spoiled by what the caller did to b. */
static void single(struct build *b, enum iot_verdict_code code, const char *reason)
{
	struct iot_segment *s;
	struct iot_verdict v;
	struct build_dir d;
	char path[128];

	build_dir_open(&d);
	build_write(b, d.fd, "a.iot");
	snprintf(path, sizeof(path), "%s/a.iot", d.path);
	assert_int_equal(iot_segment_open(path, &s, NULL), 0);
	assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
	build_expect(&v, code, reason);
	assert_int_equal(v.n_records, b->n_blocks * b->per_block);
	iot_segment_close(s);
	build_dir_close(&d);
}

static void no_start(struct iot_request *r, uint32_t i)
{
	if (i < 3) {
		r->flags |= IOT_FLAG_NO_START;
		r->start_ns = r->insert_ns = 0;
	}
}

static void moved_cpu(struct iot_request *r, uint32_t i)
{
	if (i == 4)
		r->complete_cpu = 1;
}

static void test_single(void **state)
{
	struct build b;

	(void)state;
	build_init(&b, 1, 3, 8);
	single(&b, IOT_VERDICT_COMPLETE, NULL);
	build_init(&b, 1, 0, 0);
	single(&b, IOT_VERDICT_COMPLETE, NULL);

	build_init(&b, 1, 3, 8);
	fixture_file(&b.x, 77, 3);
	single(&b, IOT_VERDICT_LOST, "3 observations lost, filed");

	/* Books that balance in themselves and do not describe this file. */
	build_init(&b, 1, 3, 8);
	b.x.books[R_COMPLETE].seen++;
	b.x.books[R_COMPLETE].emitted++;
	b.x.books[R_COMPLETE].written++;
	single(&b, IOT_VERDICT_UNKNOWN, "CPU 0: 13 records written by the books, 12 in the file");
	build_init(&b, 1, 3, 8);
	b.change = moved_cpu;
	single(&b, IOT_VERDICT_UNKNOWN, "CPU 1: 12 records written by the books, 13 in the file");
	build_init(&b, 1, 3, 8);
	b.x.f.n_books--;
	single(&b, IOT_VERDICT_UNKNOWN, "CPU 1: 12 records in the file that the books do not know");
	build_init(&b, 1, 3, 8);
	b.x.books[R_ISSUE].folded -= 2;
	b.x.books[R_ISSUE].emitted = b.x.books[R_ISSUE].written = 2;
	single(&b, IOT_VERDICT_UNKNOWN, "block_rq_issue, CPU 0: 2 records written by the books, 0");
	build_init(&b, 1, 3, 8);
	b.x.books[R_COMPLETE].written = IOT_COUNT_UNKNOWN;
	single(&b, IOT_VERDICT_UNKNOWN, "number of records written not known");

	/* A ledger that is whole and does not add up to the books. */
	build_init(&b, 1, 3, 8);
	fixture_file(&b.x, 77, 3);
	b.x.losses[0].n = 2;
	single(&b, IOT_VERDICT_UNKNOWN, "3 losses filed in the books, 2 in the ledger");
	build_init(&b, 1, 3, 8);
	fixture_file(&b.x, 77, 3);
	b.x.losses[0].probe = P_ISSUE;
	single(&b, IOT_VERDICT_UNKNOWN, "block_rq_issue: 0 losses filed in the books, 3");
}

static void test_no_start_is_counted(void **state)
{
	struct chain c;
	struct iot_verdict v;

	(void)state;
	chain_open(&c, 1);
	c.b[0].change = no_start;
	build_open(&c.b[0], 2);
	chain_write(&c);
	chain_verify(&c, 1, &v);
	build_expect(&v, IOT_VERDICT_COMPLETE, NULL);
	assert_int_equal(v.n_no_start, 3);
	assert_int_equal(v.n_open, 2);
	build_dir_close(&c.d);
}

static void impossible_cpu(struct iot_request *r, uint32_t i)
{
	if (i == 4)
		r->complete_cpu = 9000;
}

static void test_impossible_cpu(void **state)
{
	struct build b;

	(void)state;
	build_init(&b, 1, 3, 8);
	b.change = impossible_cpu;
	single(&b, IOT_VERDICT_UNKNOWN, "1 records of CPUs that cannot exist");
}

/* Blocks whose ring positions do not continue. */
static void spans(uint64_t p0, uint64_t p1, enum iot_verdict_code code, const char *reason)
{
	struct iot_batch *batch;
	struct iot_writer *w;
	struct chain c;
	struct iot_verdict v;
	struct build *b = &c.b[0];
	uint64_t end;

	chain_open(&c, 1);
	assert_int_equal(iot_writer_open(c.d.fd, "0.iot", &b->x.info, &w), 0);
	assert_int_equal(iot_batch_new(8, &batch), 0);
	b->ring_pos = 5000;
	build_put(b, w, 0, batch);
	end = b->ring_pos;
	iot_batch_clear(batch);
	for (uint32_t i = 8; i < 16; i++) {
		struct iot_request r;

		build_request(&r, 1, i);
		assert_int_equal(iot_batch_add(batch, &r), 0);
	}
	assert_int_equal(iot_writer_put(w, batch, &(struct iot_span){end + p0, end + p1}, 1), 0);
	build_seal(b, w);
	iot_batch_free(batch);
	iot_writer_close(w);
	chain_verify(&c, 1, &v);
	build_expect(&v, code, reason);
	build_dir_close(&c.d);
}

static void test_spans(void **state)
{
	(void)state;
	spans(0, 8, IOT_VERDICT_COMPLETE, NULL);
	spans(8, 16, IOT_VERDICT_CORRUPT, "block 1: ring 0 is not covered from 6088 to 6096");
	spans((uint64_t)-8, 16, IOT_VERDICT_CORRUPT,
	      "block 1: ring 0 is covered twice from position 6080");
}

static void test_chain(void **state)
{
	struct chain c;
	struct iot_verdict v;

	(void)state;
	chain_open(&c, 4);
	fixture_file(&c.b[2].x, 77, 3);
	build_open(&c.b[1], 2);
	chain_write(&c);
	chain_verify(&c, 0xf, &v);
	build_expect(&v, IOT_VERDICT_LOST, "segment 3: block_rq_complete: 3 observations lost");
	assert_int_equal(v.n_reasons, 1);
	assert_int_equal(v.n_records, 64);
	assert_int_equal(v.n_lost, 3);
	assert_int_equal(v.n_open, 0); /* those of the last segment */
	/* Retention took the first. */
	chain_verify(&c, 0xe, &v);
	build_expect(&v, IOT_VERDICT_LOST, "segment 3: block_rq_complete: 3 observations lost");
	assert_int_equal(v.n_reasons, 1);
	/* Somebody took one from the middle, or two. */
	chain_verify(&c, 0xd, &v);
	build_expect(&v, IOT_VERDICT_UNKNOWN, "segments 2 to 2 are missing");
	chain_verify(&c, 0x9, &v);
	build_expect(&v, IOT_VERDICT_UNKNOWN, "segments 2 to 3 are missing");
	build_dir_close(&c.d);
}

/* Two neighbours of which the second was spoiled. */
static void pair(void (*spoil)(struct build *second), enum iot_verdict_code code,
		 const char *reason)
{
	struct chain c;
	struct iot_verdict v;

	chain_open(&c, 2);
	spoil(&c.b[1]);
	chain_write(&c);
	chain_verify(&c, 3, &v);
	build_expect(&v, code, reason);
	build_dir_close(&c.d);
}

static void nothing(struct build *b)
{
	(void)b;
}

static void exchanged(struct build *b)
{
	b->x.f.prev_footer_hash = 0x1234;
}

static void epoch_skipped(struct build *b)
{
	b->x.info.epoch = 4;
}

static void epoch_again(struct build *b)
{
	b->x.info.epoch = 1;
}

static void time_hole(struct build *b)
{
	b->x.f.epoch_first_ns += SEC_NS / 4;
}

static void time_overlap(struct build *b)
{
	b->x.f.epoch_first_ns -= SEC_NS; /* both read around one flip */
}

static void time_backwards(struct build *b)
{
	b->x.f.epoch_first_ns = SPAN_NS - 1;
}

static void ring_hole(struct build *b)
{
	b->ring_pos = 16 * BUILD_RECORD_BYTES + 8;
}

static void ring_overlap(struct build *b)
{
	b->ring_pos = 8 * BUILD_RECORD_BYTES; /* the stretch both files share at a rotation */
}

static void other_capture(struct build *b)
{
	b->x.info.capture_id[3] ^= 1;
}

static void seq_again(struct build *b)
{
	b->x.info.seq = 1;
}

static void unsealed(struct build *b)
{
	b->seal = false;
}

static void test_pairs(void **state)
{
	(void)state;
	pair(nothing, IOT_VERDICT_COMPLETE, NULL);
	pair(exchanged, IOT_VERDICT_CORRUPT, "segment 2 follows another footer");
	pair(epoch_skipped, IOT_VERDICT_UNKNOWN, "epochs 2 to 3 have no segment");
	pair(epoch_again, IOT_VERDICT_CORRUPT, "out of order");
	pair(time_hole, IOT_VERDICT_UNKNOWN, "no epoch covers the 0.250000 s before segment 2");
	pair(time_overlap, IOT_VERDICT_COMPLETE, NULL);
	pair(time_backwards, IOT_VERDICT_UNKNOWN, "begins before the one ahead");
	pair(ring_hole, IOT_VERDICT_CORRUPT, "ring 0 is not covered from 2176 to 2184");
	pair(ring_overlap, IOT_VERDICT_COMPLETE, NULL);
	pair(other_capture, IOT_VERDICT_UNKNOWN, "another capture or stream");
	pair(seq_again, IOT_VERDICT_CORRUPT, "out of order");
	pair(unsealed, IOT_VERDICT_TORN, "segment 2: not sealed");
}

static void test_links(void **state)
{
	struct chain c;
	struct iot_verdict v;

	(void)state;
	chain_open(&c, 2);
	c.b[0].ring_pos = 1000;
	c.b[1].ring_pos = 999;
	chain_write(&c);
	chain_verify(&c, 3, &v);
	build_expect(&v, IOT_VERDICT_CORRUPT, "ring 0 begins before the segment ahead of it did");
	build_dir_close(&c.d);

	chain_open(&c, 2);
	c.b[0].x.f.prev_footer_hash = 99; /* the first has none */
	chain_write(&c);
	chain_verify(&c, 3, &v);
	build_expect(&v, IOT_VERDICT_CORRUPT, "segment 1 says that a footer came before it");
	build_dir_close(&c.d);

	chain_open(&c, 2);
	chain_write(&c);
	c.b[1].x.f.prev_footer_hash = 0;
	c.b[1].ring_pos = c.b[0].ring_pos;
	build_write(&c.b[1], c.d.fd, "1.iot");
	chain_verify(&c, 3, &v);
	build_expect(&v, IOT_VERDICT_UNKNOWN, "does not say which footer came before it");
	build_dir_close(&c.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single),	       cmocka_unit_test(test_no_start_is_counted),
		cmocka_unit_test(test_impossible_cpu), cmocka_unit_test(test_spans),
		cmocka_unit_test(test_chain),	       cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
