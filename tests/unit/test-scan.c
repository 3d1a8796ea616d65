// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-scan.c - many files as one: which are found, in which order their records come out, and that
 * damage is noted and not fatal.
 */
#include "tests/unit/scan-fixture.h"

#include <sys/resource.h>

static void test_directory_in_order(void **state)
{
	uint64_t first = 0, last = 0;
	struct iot_verdict v;
	struct build_dir d;
	struct iot_scan *sc;
	struct build b;

	(void)state;
	build_dir_open(&d);
	for (uint64_t seq = 4; seq > 0; seq--) {
		char name[32];

		build_init(&b, seq, 3, 8);
		/* Names do not tell the order. */
		snprintf(name, sizeof(name), "%c.iot", (char)('a' + seq * 7 % 5));
		build_write(&b, d.fd, name);
	}
	build_store(&d, "README", "not a segment", 13);
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_n_segments(sc), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(iot_segment_info(iot_scan_segment(sc, i))->seq, i + 1);
	assert_int_equal(drain(sc, &first, &last), 96);
	assert_int_equal(first >> 13, 100001);
	assert_int_equal(last >> 13, 400024);
	assert_int_equal(iot_scan_verdict(sc, false, &v, NULL), 0);
	assert_int_equal(v.n_records, 96);
	iot_scan_close(sc);
	build_dir_close(&d);
}

/* Two rings' stretches one after the other: blocks 0 to 2 and 3 to 5 cover the same time. */
static void two_rings(struct iot_request *r, uint32_t i)
{
	r->complete_ns = SPAN_NS + SEC_NS + (i % 24) * BUILD_MS_NS + i / 24 * 1000;
	r->ring = (uint8_t)(i / 24);
}

/* And rows of a block out of order. */
static void backwards(struct iot_request *r, uint32_t i)
{
	r->complete_ns = SPAN_NS + SEC_NS + (i / 8 * 8 + 7 - i % 8) * BUILD_MS_NS;
}

static void test_overlapping_blocks(void **state)
{
	struct build_dir d;
	struct build b;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 6, 8);
	b.change = two_rings;
	build_write(&b, d.fd, "a.iot");
	assert_int_equal(count(d.path, NULL), 48);
	build_init(&b, 1, 6, 8);
	b.change = backwards;
	build_write(&b, d.fd, "a.iot");
	assert_int_equal(count(d.path, NULL), 48);
	/* An unsealed file has no index: the same. */
	unlinkat(d.fd, "a.iot", 0);
	b.seal = false;
	b.ring_pos = 0;
	build_write(&b, d.fd, "a.open");
	assert_int_equal(count(d.path, NULL), 48);
	build_dir_close(&d);
}

/* Two hosts (or boots): monotonic clocks that have nothing to do with each other. */
static void test_captures_by_wall_clock(void **state)
{
	struct build_dir d;
	struct iot_scan *sc;
	struct build b;
	struct iot_request r;
	struct iot_segment *s;
	unsigned int changes = 0;
	uint8_t capture = 0;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 2, 8);
	build_write(&b, d.fd, "a.iot");
	build_init(&b, 3, 2, 8);
	memset(b.x.info.capture_id, 1, 16);
	/* The same wall-clock second, half a millisecond later. */
	b.x.info.clocks.realtime_ns = 1700000000ULL * SEC_NS + SPAN_NS - SEC_NS + BUILD_MS_NS / 2;
	build_write(&b, d.fd, "b.iot");
	assert_int_equal(count(d.path, NULL), 32);
	sc = must_scan(d.path, NULL);
	while (iot_scan_next(sc, &r, &s, NULL) == 0) {
		changes += iot_segment_info(s)->capture_id[0] != capture;
		capture = iot_segment_info(s)->capture_id[0];
	}
	assert_int_equal(changes, 32); /* they take turns */
	iot_scan_close(sc);
	build_dir_close(&d);
}

static void test_archive_tree(void **state)
{
	struct iot_error err = {0};
	struct iot_scan *sc;
	struct build_dir d;
	char path[256];
	const char *paths[2];
	struct build b;

	(void)state;
	build_dir_open(&d);
	assert_int_equal(mkdirat(d.fd, "host=h", 0700), 0);
	assert_int_equal(mkdirat(d.fd, "host=h/stream=block", 0700), 0);
	assert_int_equal(mkdirat(d.fd, "host=h/stream=block/date=2026-01-01", 0700), 0);
	assert_int_equal(mkdirat(d.fd, "empty", 0700), 0);
	assert_int_equal(symlinkat(".", d.fd, "empty/loop"), 0);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "host=h/stream=block/date=2026-01-01/block-1.iot");
	build_init(&b, 2, 1, 8);
	build_write(&b, d.fd, "block-2.iot");
	/* The same segment in the archive and in the state directory is one segment. */
	build_init(&b, 2, 1, 8);
	build_write(&b, d.fd, "host=h/stream=block/block-2.iot");
	assert_int_equal(count(d.path, NULL), 16);

	snprintf(path, sizeof(path), "%s/block-2.iot", d.path);
	paths[0] = d.path;
	paths[1] = path;
	assert_int_equal(iot_scan_open(paths, 2, NULL, &sc, &err), 0);
	assert_int_equal(iot_scan_n_segments(sc), 2);
	iot_scan_close(sc);

	snprintf(path, sizeof(path), "%s/empty", d.path);
	assert_int_equal(iot_scan_open(&paths[1], 1, NULL, &sc, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no segments"));
	err.text[0] = '\0';
	snprintf(path, sizeof(path), "%s/none.iot", d.path);
	assert_int_equal(iot_scan_open(&paths[1], 1, NULL, &sc, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	build_dir_close(&d);
}

/* A copy that contradicts: another file of the same number. */
static void test_copies(void **state)
{
	struct iot_verdict v;
	struct iot_scan *sc;
	struct build_dir d;
	struct build b;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "a.iot");
	b.seal = false;
	build_write(&b, d.fd, "a.open"); /* the unsealed copy loses without a word */
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_n_segments(sc), 1);
	assert_int_equal(iot_scan_verdict(sc, true, &v, NULL), 0);
	if (v.code != IOT_VERDICT_COMPLETE)
		fail_msg("%s", v.reasons[0]);
	iot_scan_close(sc);
	build_init(&b, 1, 2, 8);
	build_write(&b, d.fd, "b.iot");
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_n_segments(sc), 1);
	assert_int_equal(iot_scan_verdict(sc, true, &v, NULL), 0);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	assert_true(build_mentions(&v, "two files differ"));
	iot_scan_close(sc);
	build_dir_close(&d);
}

/* What cannot be read below a directory is in the verdict, and the rest is read all the same. */
static void test_unreadable_directory(void **state)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	struct iot_scan *sc;
	struct build_dir d;
	struct build b;
	char path[256];
	const char *paths[] = {path};
	int fd;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "a.iot");
	snprintf(path, sizeof(path), "%s", d.path);
	assert_int_equal(iot_scan_open(paths, 1, NULL, &sc, &err), 0);
	assert_int_equal(iot_scan_verdict(sc, true, &v, &err), 0);
	assert_int_equal(v.code, IOT_VERDICT_COMPLETE);
	iot_scan_close(sc);
	/* Root may read everything: too deep is what it cannot read either. */
	fd = dup(d.fd);
	for (int i = 0; i < 34; i++) {
		int sub;

		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		sub = openat(fd, "d", O_RDONLY | O_DIRECTORY);
		assert_true(sub >= 0);
		close(fd);
		fd = sub;
	}
	close(fd);
	assert_int_equal(iot_scan_open(paths, 1, NULL, &sc, &err), 0);
	assert_int_equal(iot_scan_n_segments(sc), 1);
	assert_int_equal(iot_scan_verdict(sc, true, &v, &err), 0);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	assert_int_equal(v.n_reasons, 1);
	assert_non_null(strstr(v.reasons[0], "not read: "));
	iot_scan_close(sc);
	/* Nothing else there: the cause is the error. */
	assert_int_equal(unlinkat(d.fd, "a.iot", 0), 0);
	assert_int_equal(iot_scan_open(paths, 1, NULL, &sc, &err), -ELOOP);
	assert_non_null(strstr(err.text, "nested too deep"));
	snprintf(path, sizeof(path), "rm -r %s/d", d.path);
	assert_int_equal(system(path), 0);
	build_dir_close(&d);
}

static void test_losses(void **state)
{
	struct iot_filter f = {.dev = "sdb"};
	struct iot_loss *losses;
	struct iot_scan *sc;
	struct build_dir d;
	struct build b;
	size_t n;

	(void)state;
	build_dir_open(&d);
	for (uint64_t seq = 1; seq <= 2; seq++) {
		build_init(&b, seq, 1, 8);
		fixture_file(&b.x, 77, 3);
		b.x.losses[0].dev = b.x.losses[0].part = BUILD_OTHER;
		fixture_file(&b.x, 78, 1);
		b.x.losses[1].dev = b.x.losses[1].part = BUILD_DISK;
		b.x.losses[1].swap = seq == 1 ? IOT_SWAP_OUT : IOT_SWAP_IN;
		build_write(&b, d.fd, seq == 1 ? "a.iot" : "b.iot");
	}
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
	assert_int_equal(n, 4);
	free(losses);
	iot_scan_close(sc);
	sc = must_scan(d.path, &f);
	assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(losses[0].id, 77);
	free(losses);
	iot_scan_close(sc);
	f = (struct iot_filter){.until_ns = 1700000000ULL * SEC_NS + 2 * SPAN_NS - SEC_NS};
	sc = must_scan(d.path, &f);
	assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
	assert_int_equal(n, 2);
	free(losses);
	iot_scan_close(sc);
	for (enum iot_swap_filter kind = IOT_SWAP_ONLY; kind <= IOT_SWAP_ONLY_IN; kind++) {
		static const struct {
			size_t n;
			uint64_t first;
			uint8_t swap;
		} want[] = {
			[IOT_SWAP_ONLY] = {2, 78, IOT_SWAP_OUT},
			[IOT_SWAP_WITHOUT] = {2, 77, IOT_SWAP_NONE},
			[IOT_SWAP_ONLY_OUT] = {1, 78, IOT_SWAP_OUT},
			[IOT_SWAP_ONLY_IN] = {1, 78, IOT_SWAP_IN},
		};

		f = (struct iot_filter){.swap = kind};
		sc = must_scan(d.path, &f);
		assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
		assert_int_equal(n, want[kind].n);
		assert_int_equal(losses[0].id, want[kind].first);
		assert_int_equal(losses[0].swap, want[kind].swap);
		free(losses);
		iot_scan_close(sc);
	}
	build_dir_close(&d);
}

static void test_damage_is_not_fatal(void **state)
{
	struct iot_verdict v;
	struct iot_error err = {0};
	struct build_dir d;
	struct iot_scan *sc;
	char path[128];
	const char *paths[] = {path};
	struct build b;
	uint8_t *data;
	size_t size;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 3, 8);
	build_write(&b, d.fd, "a.iot");
	build_init(&b, 2, 3, 8);
	build_write(&b, d.fd, "b.iot");
	size = build_load(&d, "a.iot", &data);
	data[size / 2] ^= 4; /* the second block */
	build_store(&d, "a.iot", data, size);
	build_store(&d, "c.iot", data, 20);
	build_store(&d, "d.iot", "", 0);
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_n_segments(sc), 2);
	assert_int_equal(drain(sc, NULL, NULL), 40);
	for (int full = 0; full < 2; full++) {
		assert_int_equal(iot_scan_verdict(sc, full, &v, &err), 0);
		assert_int_equal(v.code, IOT_VERDICT_CORRUPT);
		assert_true(build_mentions(&v, "segment 1: damaged"));
		assert_true(
			build_mentions(&v, "c.iot: offset 20: the file ends inside its header"));
		assert_true(build_mentions(&v, "d.iot: offset 0: empty file"));
	}
	assert_int_equal(v.n_records, 40);
	iot_scan_close(sc);
	/* Alone it is an error: there is nothing to read. */
	snprintf(path, sizeof(path), "%s/d.iot", d.path);
	assert_int_equal(iot_scan_open(paths, 1, NULL, &sc, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "empty file"));
	free(data);
	build_dir_close(&d);
}

/* More segments than descriptors; one is sealed, one deleted while the scan is open. */
static void test_many_segments(void **state)
{
	struct rlimit old, few = {.rlim_cur = 40};
	struct build_dir d;
	struct iot_scan *sc;
	struct iot_verdict v;
	uint64_t hash = 0, pos = 0;
	struct iot_loss *losses;
	struct build b;
	char name[32];
	size_t n;

	(void)state;
	build_dir_open(&d);
	for (uint64_t seq = 1; seq <= 100; seq++) {
		build_init(&b, seq, 1, 8);
		b.x.f.prev_footer_hash = hash;
		b.ring_pos = pos;
		b.seal = seq < 99;
		if (seq == 70)
			build_lossy(&b);
		snprintf(name, sizeof(name), "s%03u.%s", (unsigned int)seq,
			 b.seal ? "iot" : "open");
		build_write(&b, d.fd, name);
		hash = b.footer_hash;
		pos = b.ring_pos;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_n_segments(sc), 100);
	assert_int_equal(renameat(d.fd, "s099.open", d.fd, "s099.iot"), 0);
	assert_int_equal(unlinkat(d.fd, "s050.iot", 0), 0);
	assert_int_equal(drain(sc, NULL, NULL), 99 * 8);
	iot_scan_close(sc);
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_verdict(sc, true, &v, NULL), 0);
	assert_true(build_mentions(&v, "segments 50 to 50 are missing"));
	assert_int_equal(unlinkat(d.fd, "s060.iot", 0), 0);
	assert_int_equal(iot_scan_verdict(sc, true, &v, NULL), 0);
	assert_true(build_mentions(&v, "segment 60: the file was deleted while it was read"));
	assert_int_not_equal(v.code, IOT_VERDICT_CORRUPT);
	iot_scan_close(sc);
	/* Losses that are gone with their file are none that can be named. */
	sc = must_scan(d.path, NULL);
	assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
	assert_int_equal(n, 2);
	free(losses);
	iot_scan_close(sc);
	sc = must_scan(d.path, NULL);
	assert_int_equal(unlinkat(d.fd, "s070.iot", 0), 0);
	/* Without 50 and 60. */
	assert_int_equal(iot_segment_info(iot_scan_segment(sc, 67))->seq, 70);
	assert_int_equal(iot_segment_load_ledger(iot_scan_segment(sc, 67), &losses, &n, NULL),
			 -EBADMSG);
	assert_int_equal(iot_scan_losses(sc, &losses, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(losses);
	assert_int_equal(iot_scan_verdict(sc, false, &v, NULL), 0);
	assert_true(build_mentions(&v, "segment 70: the file was deleted while it was read"));
	assert_int_not_equal(v.code, IOT_VERDICT_CORRUPT);
	iot_scan_close(sc);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directory_in_order),
		cmocka_unit_test(test_overlapping_blocks),
		cmocka_unit_test(test_captures_by_wall_clock),
		cmocka_unit_test(test_archive_tree),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_unreadable_directory),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_damage_is_not_fatal),
		cmocka_unit_test(test_many_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
