/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-verify.c - the footer's claims against the blocks, segments against their neighbours, and
 * what recovery leaves behind. Every case spoils one thing in files made by the real writer.
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
		char name[16];

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

static void expect(const struct iot_verdict *v, enum iot_verdict_code code, const char *reason)
{
	if (v->code != code || (reason ? !build_mentions(v, reason) : v->n_reasons != 0))
		fail_msg("expected %s (%s), got %s: %s", iot_verdict_name(code),
			 reason ? reason : "", iot_verdict_name(v->code),
			 v->n_reasons ? v->reasons[0] : "");
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
	expect(&v, code, reason);
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
	expect(&v, IOT_VERDICT_COMPLETE, NULL);
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
	expect(&v, code, reason);
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
	expect(&v, IOT_VERDICT_LOST, "segment 3: block_rq_complete: 3 observations lost");
	assert_int_equal(v.n_reasons, 1);
	assert_int_equal(v.n_records, 64);
	assert_int_equal(v.n_lost, 3);
	assert_int_equal(v.n_open, 0); /* those of the last segment */
	/* Retention took the first. */
	chain_verify(&c, 0xe, &v);
	expect(&v, IOT_VERDICT_LOST, "segment 3: block_rq_complete: 3 observations lost");
	assert_int_equal(v.n_reasons, 1);
	/* Somebody took one from the middle, or two. */
	chain_verify(&c, 0xd, &v);
	expect(&v, IOT_VERDICT_UNKNOWN, "segments 2 to 2 are missing");
	chain_verify(&c, 0x9, &v);
	expect(&v, IOT_VERDICT_UNKNOWN, "segments 2 to 3 are missing");
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
	expect(&v, code, reason);
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
	expect(&v, IOT_VERDICT_CORRUPT, "ring 0 begins before the segment ahead of it did");
	build_dir_close(&c.d);

	chain_open(&c, 2);
	c.b[0].x.f.prev_footer_hash = 99; /* the first has none */
	chain_write(&c);
	chain_verify(&c, 3, &v);
	expect(&v, IOT_VERDICT_CORRUPT, "segment 1 says that a footer came before it");
	build_dir_close(&c.d);

	chain_open(&c, 2);
	chain_write(&c);
	c.b[1].x.f.prev_footer_hash = 0;
	c.b[1].ring_pos = c.b[0].ring_pos;
	build_write(&c.b[1], c.d.fd, "1.iot");
	chain_verify(&c, 3, &v);
	expect(&v, IOT_VERDICT_UNKNOWN, "does not say which footer came before it");
	build_dir_close(&c.d);
}

/* ---- recovery ---- */

static struct iot_segment *recover(struct build_dir *d, const char *name, uint64_t *ret_kept,
				   uint64_t *ret_lost)
{
	struct iot_segment *s, *out;
	struct iot_error err = {0};
	char path[128];
	int r;

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	r = iot_recover(s, d->fd, "out.iot", ret_kept, ret_lost, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	iot_segment_close(s);
	snprintf(path, sizeof(path), "%s/out.iot", d->path);
	assert_int_equal(iot_segment_open(path, &out, &err), 0);
	return out;
}

static const struct iot_books *row(const struct iot_footer *f, uint16_t probe, uint32_t cpu)
{
	for (size_t i = 0; i < f->n_books; i++)
		if (f->books[i].probe == probe && f->books[i].cpu == cpu)
			return &f->books[i];
	return NULL;
}

static void test_recover_torn(void **state)
{
	const struct iot_footer *f;
	struct iot_segment *out;
	struct iot_verdict v;
	struct build_dir d;
	uint64_t kept, lost;
	struct build b;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	b.seal = false;
	build_write(&b, d.fd, "a.open");
	out = recover(&d, "a.open", &kept, &lost);
	assert_int_equal(kept, 24);
	assert_int_equal(lost, 0);
	f = iot_segment_footer(out);
	assert_int_equal(f->reason, IOT_SEAL_RECOVERED);
	/* Nothing but `written` is known, and nothing that is not known is 0. */
	assert_int_equal(row(f, P_COMPLETE, 0)->written, 12);
	assert_int_equal(row(f, P_COMPLETE, 1)->written, 12);
	assert_true(row(f, P_COMPLETE, 0)->seen == IOT_COUNT_UNKNOWN);
	assert_true(row(f, P_COMPLETE, 0)->filed == IOT_COUNT_UNKNOWN);
	assert_true(row(f, P_ISSUE, UINT32_MAX)->missed == IOT_COUNT_UNKNOWN);
	/* Doubt begins with the last block and has no end. */
	assert_int_equal(f->n_windows, 1);
	assert_int_equal(f->windows[0].kind, IOT_WINDOW_TORN);
	assert_int_equal(f->windows[0].probe, 0);
	assert_true(f->windows[0].n == IOT_COUNT_UNKNOWN);
	assert_true(f->windows[0].t0_ns == SPAN_NS + SEC_NS + 16 * BUILD_MS_NS);
	assert_true(f->windows[0].t1_ns == UINT64_MAX);
	assert_int_equal(iot_verify_segment(out, &v, NULL), 0);
	expect(&v, IOT_VERDICT_UNKNOWN, "recovered file: the file had no footer; 24 records kept");
	iot_segment_close(out);
	build_dir_close(&d);
}

/* A sealed file with a damaged middle: books stay, the hole is a window of its own time. */
static void test_recover_damaged(void **state)
{
	uint8_t *before, *after, *data;
	struct iot_block_info info[4], copy;
	const struct iot_footer *f;
	struct iot_segment *s, *out;
	struct iot_verdict v;
	struct build_dir d;
	uint64_t kept, lost;
	char path[128];
	struct build b;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	fixture_file(&b.x, 77, 3);
	build_open(&b, 1);
	build_write(&b, d.fd, "a.iot");
	snprintf(path, sizeof(path), "%s/a.iot", d.path);
	assert_int_equal(iot_segment_open(path, &s, NULL), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(iot_segment_next_block(s, &info[i], NULL), 0);
	iot_segment_close(s);
	size = build_load(&d, "a.iot", &data);
	data[info[1].offset + info[1].size - 1] ^= 1;
	build_store(&d, "a.iot", data, size);
	out = recover(&d, "a.iot", &kept, &lost);
	assert_int_equal(kept, 16);
	assert_int_equal(lost, info[1].size);
	f = iot_segment_footer(out);
	assert_int_equal(row(f, P_COMPLETE, 0)->written, 12);
	assert_int_equal(f->n_windows, 1);
	assert_int_equal(f->windows[0].kind, IOT_WINDOW_TORN);
	assert_true(f->windows[0].t0_ns == info[1].first_ns);
	assert_true(f->windows[0].t1_ns == info[1].last_ns);
	assert_int_equal(f->windows[0].n, 8);
	assert_int_equal(iot_segment_declared(out, IOT_BLOCK_LEDGER), 1);
	assert_int_equal(iot_segment_declared(out, IOT_BLOCK_OPEN), 1);
	assert_int_equal(iot_verify_segment(out, &v, NULL), 0);
	expect(&v, IOT_VERDICT_UNKNOWN, "12 records written by the books, 8 in the file");
	assert_true(build_mentions(&v, "blocks 1 to 1 are missing"));
	assert_int_equal(v.n_lost, 3);
	/* Whole blocks are the same bytes as before. */
	assert_int_equal(iot_segment_next_block(out, &copy, NULL), 0);
	build_load(&d, "a.iot", &before);
	build_load(&d, "out.iot", &after);
	assert_int_equal(copy.size, info[0].size);
	assert_memory_equal(before + info[0].offset, after + copy.offset, copy.size);
	free(before);
	free(after);
	iot_segment_close(out);
	free(data);
	build_dir_close(&d);
}

/* Two rings, a hole in an unsealed file: only the ring that lost something bounds the doubt. */
static void test_recover_two_rings(void **state)
{
	struct iot_span spans_of[4][2] = {{{0, 100}, {0, 0}},
					  {{100, 100}, {0, 100}},
					  {{100, 200}, {100, 100}},
					  {{200, 300}, {100, 100}}};
	struct iot_block_info info[4];
	const struct iot_footer *f;
	struct iot_batch *batch;
	struct iot_segment *s, *out;
	struct iot_writer *w;
	struct build_dir d;
	uint64_t kept, lost;
	char path[128];
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 4, 8);
	b.x.info.n_rings = 2;
	assert_int_equal(iot_writer_open(d.fd, "a.open", &b.x.info, &w), 0);
	assert_int_equal(iot_batch_new(8, &batch), 0);
	for (uint32_t k = 0; k < 4; k++) {
		iot_batch_clear(batch);
		for (uint32_t i = 0; i < 8; i++) {
			struct iot_request r;

			build_request(&r, 1, k * 8 + i);
			assert_int_equal(iot_batch_add(batch, &r), 0);
		}
		assert_int_equal(iot_writer_put(w, batch, spans_of[k], 2), 0);
	}
	iot_batch_free(batch);
	iot_writer_close(w);
	snprintf(path, sizeof(path), "%s/a.open", d.path);
	assert_int_equal(iot_segment_open(path, &s, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(iot_segment_next_block(s, &info[i], NULL), 0);
	iot_segment_close(s);
	size = build_load(&d, "a.open", &data);
	data[info[2].offset + 20] ^= 1; /* its header: neither time nor count is known any more */
	build_store(&d, "a.open", data, size);
	out = recover(&d, "a.open", &kept, &lost);
	assert_int_equal(kept, 24);
	f = iot_segment_footer(out);
	assert_int_equal(f->n_windows, 2); /* the hole, and the open end */
	assert_true(f->windows[0].t0_ns == info[0].first_ns);
	assert_true(f->windows[0].t1_ns == info[3].last_ns);
	/* Ring 1 may have lost a tail since its last block. */
	assert_true(f->windows[1].t0_ns == info[1].first_ns);
	assert_true(f->windows[1].t1_ns == UINT64_MAX);
	iot_segment_close(out);
	free(data);
	build_dir_close(&d);
}

static void refuses(struct build_dir *d, const char *name, const char *out, int code,
		    const char *what)
{
	uint64_t kept, lost;
	struct iot_error err = {0};
	struct iot_segment *s;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	assert_int_equal(iot_segment_open(path, &s, &err), 0);
	assert_int_equal(iot_recover(s, d->fd, out, &kept, &lost, &err), code);
	if (!strstr(err.text, what))
		fail_msg("%s", err.text);
	iot_segment_close(s);
}

static void test_recover_refuses(void **state)
{
	uint64_t kept, lost;
	struct build_dir d;
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "whole.iot");
	b.seal = false;
	build_write(&b, d.fd, "torn.open");
	assert_int_equal(linkat(d.fd, "torn.open", d.fd, "link", 0), 0);
	refuses(&d, "whole.iot", "out.iot", -EALREADY, "nothing to recover");
	refuses(&d, "torn.open", "torn.open", -EEXIST, "is the damaged file itself");
	refuses(&d, "torn.open", "link", -EEXIST, "is the damaged file itself");
	refuses(&d, "torn.open", "whole.iot", -EEXIST, "will not be replaced");
	/* What an interrupted recovery left behind is replaced. */
	size = build_load(&d, "torn.open", &data);
	build_store(&d, "out.iot", data, size - 3);
	iot_segment_close(recover(&d, "torn.open", &kept, &lost));
	assert_int_equal(kept, 8);
	free(data);
	/* All inputs are as they were. */
	assert_int_equal(build_load(&d, "torn.open", &data), size);
	free(data);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single),		cmocka_unit_test(test_no_start_is_counted),
		cmocka_unit_test(test_impossible_cpu),	cmocka_unit_test(test_spans),
		cmocka_unit_test(test_chain),		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_links),		cmocka_unit_test(test_recover_torn),
		cmocka_unit_test(test_recover_damaged), cmocka_unit_test(test_recover_two_rings),
		cmocka_unit_test(test_recover_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
