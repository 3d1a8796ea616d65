// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-recover.c - what recovery keeps, what it says of the rest, and what it refuses to touch.
 */
#include "tests/unit/segment-builder.h"

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
	build_expect(&v, IOT_VERDICT_UNKNOWN,
		     "recovered file: the file had no footer; 24 records kept");
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
	build_expect(&v, IOT_VERDICT_UNKNOWN, "12 records written by the books, 8 in the file");
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
		cmocka_unit_test(test_recover_torn),
		cmocka_unit_test(test_recover_damaged),
		cmocka_unit_test(test_recover_two_rings),
		cmocka_unit_test(test_recover_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
