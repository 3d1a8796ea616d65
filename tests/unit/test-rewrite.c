// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-rewrite.c - a file that the disk failed to take, once more: byte for byte if it can be read back,
 * and else with exactly what is missing moved to output_failed.
 */
#include "tests/unit/segment-builder.h"

static struct iot_segment *open_segment(const struct build_dir *d, const char *name)
{
	struct iot_error err = {0};
	struct iot_segment *s;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	if (iot_segment_open(path, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void build_one(struct build_dir *d, struct build *b)
{
	build_dir_open(d);
	build_init(b, 1, 3, 8);
	fixture_file(&b->x, 77, 3);
	build_open(b, 1);
	build_write(b, d->fd, "a.open");
}

static void damage(const struct build_dir *d, unsigned int block, bool header)
{
	struct iot_segment *s = open_segment(d, "a.open");
	struct iot_block_info info;
	uint8_t *data;
	size_t size;

	for (unsigned int i = 0; i <= block; i++)
		assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	iot_segment_close(s);
	size = build_load(d, "a.open", &data);
	data[header ? info.offset + 9 : info.offset + info.size - 1] ^= 1;
	build_store(d, "a.open", data, size);
	free(data);
}

static struct iot_segment *rewrite(struct build_dir *d, const struct iot_footer *f,
				   struct iot_rewritten *ret)
{
	struct iot_segment *s = open_segment(d, "a.open");

	assert_int_equal(iot_rewrite(s, f, d->fd, "new", ret), 0);
	iot_segment_close(s);
	return open_segment(d, "new");
}

static void check_whole(const struct iot_footer *f, bool from_memory)
{
	struct iot_rewritten done;
	uint8_t *before, *after;
	struct iot_segment *out;
	struct build_dir d;
	struct build b;
	size_t size;

	build_one(&d, &b);
	if (from_memory)
		f = &b.x.f;
	out = rewrite(&d, f, &done);
	assert_int_equal(done.kept_records, 24);
	assert_int_equal(done.lost_records, 0);
	assert_true(done.footer_hash == b.footer_hash);
	iot_segment_close(out);
	size = build_load(&d, "a.open", &before);
	assert_int_equal(build_load(&d, "new", &after), size);
	assert_memory_equal(before, after, size);
	free(before);
	free(after);
	build_dir_close(&d);
}

static void test_whole(void **state)
{
	(void)state;
	check_whole(NULL, true);
	check_whole(NULL, false);
}

static const struct iot_books *row(const struct iot_footer *f, uint16_t probe, uint32_t cpu)
{
	for (size_t i = 0; i < f->n_books; i++)
		if (f->books[i].probe == probe && f->books[i].cpu == cpu)
			return &f->books[i];
	return NULL;
}

static uint64_t in_windows(const struct iot_footer *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n_windows; i++)
		if (f->windows[i].kind == IOT_WINDOW_OUTPUT)
			n += f->windows[i].n;
	return n;
}

/* One of three blocks of 4 + 4 records cannot be read back; header: not even what it holds. */
static void check_lossy(bool header, bool from_memory)
{
	const struct iot_footer *f;
	struct iot_rewritten done;
	struct iot_segment *out, *s;
	struct iot_block_info info;
	struct iot_verdict v;
	struct build_dir d;
	struct build b;

	build_one(&d, &b);
	s = open_segment(&d, "a.open");
	assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	iot_segment_close(s);
	damage(&d, 1, header);
	out = rewrite(&d, from_memory ? &b.x.f : NULL, &done);
	assert_int_equal(done.kept_records, 16);
	assert_int_equal(done.lost_records, 8);
	f = iot_segment_footer(out);
	assert_non_null(f);
	assert_int_equal(f->reason, b.x.f.reason);
	assert_non_null(strstr(f->note, "8 records could not be read back"));
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		assert_int_equal(row(f, P_COMPLETE, cpu)->written, 8);
		assert_int_equal(row(f, P_COMPLETE, cpu)->output_failed, 4);
	}
	assert_int_equal(in_windows(f), 8);
	for (size_t i = 0; i < f->n_windows; i++) {
		if (f->windows[i].kind != IOT_WINDOW_OUTPUT)
			continue;
		assert_int_equal(f->windows[i].t0_ns, info.first_ns);
		assert_int_equal(f->windows[i].t1_ns, info.last_ns);
	}
	/* Its losses and what was in flight are still exact, and no equation is broken. */
	assert_int_equal(iot_segment_declared(out, IOT_BLOCK_OPEN), 1);
	assert_int_equal(iot_verify_segment(out, &v, NULL), 0);
	build_expect(&v, IOT_VERDICT_UNKNOWN, "8 records not written, owner not known");
	assert_int_equal(v.books_unbalanced, 0);
	assert_int_equal(v.n_lost, 3);
	assert_int_equal(v.n_records, 16);
	iot_segment_close(out);
	build_dir_close(&d);
}

static void test_lossy(void **state)
{
	(void)state;
	check_lossy(false, true);
	check_lossy(true, true);
	check_lossy(false, false);
}

/* The end of the file is gone, too: with the footer from memory the count is exact, the time the epoch's. */
static void test_no_tail(void **state)
{
	struct iot_block_info info;
	const struct iot_footer *f;
	struct iot_rewritten done;
	struct iot_segment *out, *s;
	struct iot_verdict v;
	struct build_dir d;
	struct build b;
	uint8_t *data;

	(void)state;
	build_one(&d, &b);
	s = open_segment(&d, "a.open");
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(iot_segment_next_block(s, &info, NULL), 0);
	iot_segment_close(s);
	build_load(&d, "a.open", &data);
	build_store(&d, "a.open", data, info.offset + 20);
	free(data);
	s = open_segment(&d, "a.open");
	/* Nothing is guessed without a footer, and no file is left. */
	assert_int_equal(iot_rewrite(s, NULL, d.fd, "new", &done), -EBADMSG);
	assert_int_equal(faccessat(d.fd, "new", F_OK, 0), -1);
	iot_segment_close(s);
	out = rewrite(&d, &b.x.f, &done);
	assert_int_equal(done.lost_records, 8);
	f = iot_segment_footer(out);
	assert_int_equal(in_windows(f), 8);
	for (size_t i = 0; i < f->n_windows; i++) {
		if (f->windows[i].kind != IOT_WINDOW_OUTPUT)
			continue;
		assert_int_equal(f->windows[i].t0_ns, b.x.f.epoch_first_ns);
		assert_int_equal(f->windows[i].t1_ns, b.x.f.epoch_last_ns);
	}
	assert_int_equal(iot_verify_segment(out, &v, NULL), 0);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	assert_int_equal(v.books_unbalanced, 0);
	iot_segment_close(out);
	build_dir_close(&d);
}

/* All is read back, and yet the books name more: that is no loss of the disk's. */
static void test_wrong_before(void **state)
{
	struct iot_rewritten done;
	struct iot_segment *out;
	struct iot_verdict v;
	struct build_dir d;
	struct build b;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	b.x.books[R_COMPLETE].seen++;
	b.x.books[R_COMPLETE].emitted++;
	b.x.books[R_COMPLETE].written++;
	build_write(&b, d.fd, "a.open");
	out = rewrite(&d, &b.x.f, &done);
	assert_int_equal(done.lost_records, 0);
	assert_int_equal(iot_verify_segment(out, &v, NULL), 0);
	build_expect(&v, IOT_VERDICT_UNKNOWN, "13 records written by the books, 12 in the file");
	iot_segment_close(out);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_no_tail),
		cmocka_unit_test(test_wrong_before),
	};

	return cmocka_run_group_tests_name("rewrite", tests, NULL, NULL);
}
