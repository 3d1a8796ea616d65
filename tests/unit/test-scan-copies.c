// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-scan-copies.c - what a set of files says beyond its segments: damaged copies of a segment, files that
 * recovery set aside, names that are no files, captures that went on. Each of these was once passed over
 * without a word, and the rest called complete.
 */
#include "tests/unit/segment-builder.h"

static struct iot_scan *must_scan(const char *path)
{
	struct iot_error err = {0};
	struct iot_scan *sc;

	if (iot_scan_open(&path, 1, NULL, &sc, &err) < 0)
		fail_msg("%s", err.text);
	return sc;
}

static void expect(const char *path, enum iot_verdict_code code, const char *reason)
{
	struct iot_scan *sc = must_scan(path);
	struct iot_verdict v;

	assert_int_equal(iot_scan_verdict(sc, true, &v, NULL), 0);
	if (v.code != code || (reason && !build_mentions(&v, reason)))
		fail_msg("%s (%s) instead of %s", iot_verdict_name(v.code),
			 v.n_reasons ? v.reasons[0] : "", reason ? reason : iot_verdict_name(code));
	iot_scan_close(sc);
}

static uint64_t n_read(struct iot_scan *sc)
{
	struct iot_request r;
	uint64_t n = 0;

	while (iot_scan_next(sc, &r, NULL, NULL) == 0)
		n++;
	return n;
}

/* Changes one byte `back` bytes before the end. */
static void spoil(int dirfd, const char *name, off_t back)
{
	int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC);
	uint8_t byte;
	off_t at;

	assert_true(fd >= 0);
	at = lseek(fd, 0, SEEK_END) - back;
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static off_t size_of(int dirfd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dirfd, name, &st, 0), 0);
	return st.st_size;
}

static void test_whole_copy_is_read(void **state)
{
	static const char *const names[][2] = {{"a.iot", "b.iot"}, {"b.iot", "a.iot"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct iot_verdict v;
		struct iot_scan *sc;
		struct build_dir d;
		struct build b;

		build_dir_open(&d);
		build_init(&b, 1, 4, 200);
		build_write(&b, d.fd, names[i][0]);
		build_init(&b, 1, 4, 200);
		build_write(&b, d.fd, names[i][1]);
		/* In the data: the footer still says that all is well. */
		spoil(d.fd, names[i][1], size_of(d.fd, names[i][1]) / 2);

		sc = must_scan(d.path);
		assert_int_equal(iot_scan_n_segments(sc), 1);
		assert_int_equal(n_read(sc), 800);
		assert_int_equal(iot_scan_n_copies(sc), 1);
		assert_null(iot_scan_copy(sc, 1));
		assert_string_equal(strrchr(iot_segment_path(iot_scan_copy(sc, 0)), '/') + 1,
				    names[i][1]);
		assert_int_equal(iot_verify_chain((struct iot_segment *[]){iot_scan_copy(sc, 0)}, 1,
						  &v, NULL),
				 0);
		assert_int_equal(v.code, IOT_VERDICT_CORRUPT);
		iot_scan_close(sc);
		expect(d.path, IOT_VERDICT_COMPLETE, NULL);
		build_dir_close(&d);
	}
}

static void test_set_aside(void **state)
{
	static const char *const names[] = {"block-0a-0000000002.bad", "block-0a-0000000002.bad.1"};
	struct build_dir d;
	struct build b;
	int fd;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "a.iot");
	/* Names that are the operator's own. */
	close(openat(d.fd, "my.bad", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(d.fd, "block-x.bad.old", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(names); i++) {
		fd = openat(d.fd, names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		close(fd);
		expect(d.path, IOT_VERDICT_UNKNOWN, "set aside");
		assert_int_equal(unlinkat(d.fd, names[i], 0), 0);
	}
	/* Less than what another file of its name has: nothing is missing. */
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, names[0]);
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	build_dir_close(&d);
}

static void test_names_that_are_no_files(void **state)
{
	struct build_dir d;
	struct build b;

	(void)state;
	build_dir_open(&d);
	build_init(&b, 1, 1, 8);
	build_write(&b, d.fd, "a.iot");
	assert_int_equal(symlinkat("nowhere", d.fd, "notes"), 0);
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	assert_int_equal(symlinkat("nowhere", d.fd, "b.iot"), 0);
	expect(d.path, IOT_VERDICT_UNKNOWN, "symbolic link");
	assert_int_equal(unlinkat(d.fd, "b.iot", 0), 0);
	assert_int_equal(mkfifoat(d.fd, "b.open", 0600), 0);
	expect(d.path, IOT_VERDICT_UNKNOWN, "no file");
	assert_int_equal(unlinkat(d.fd, "b.open", 0), 0);
	build_dir_close(&d);
}

static void write_capture(struct build_dir *d, const char *name, uint8_t capture, uint64_t at_s,
			  enum iot_seal_reason reason, uint8_t machine)
{
	struct build b;

	build_init(&b, 1, 1, 8);
	b.x.info.capture_id[0] ^= capture;
	b.x.info.machine_id[0] = machine;
	b.x.info.boot_id[0] = capture; /* a boot of its own */
	b.x.info.clocks.realtime_ns += at_s * SEC_NS;
	b.x.f.clocks = b.x.info.clocks;
	b.x.f.reason = (uint8_t)reason;
	build_write(&b, d->fd, name);
}

/* A capture of the boot of write_capture(1), that began later, when the wall clock had been set back. */
static void test_clock_set_back(void **state)
{
	struct build_dir d;
	struct build b;

	(void)state;
	build_dir_open(&d);
	write_capture(&d, "a.iot", 1, 200000, IOT_SEAL_REQUEST, 1);
	build_init(&b, 5, 1, 8);
	b.x.info.capture_id[0] ^= 2;
	b.x.info.machine_id[0] = 1;
	b.x.info.boot_id[0] = 1;
	b.x.f.reason = IOT_SEAL_SHUTDOWN;
	build_write(&b, d.fd, "b.iot");
	expect(d.path, IOT_VERDICT_UNKNOWN, "a.iot: its capture went on");
	/* Of another boot the wall clock is all there is. */
	b.x.info.boot_id[0] = 2;
	b.ring_pos = 0;
	build_write(&b, d.fd, "b.iot");
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	build_dir_close(&d);
}

static void test_capture_went_on(void **state)
{
	struct build_dir d;

	(void)state;
	build_dir_open(&d);
	write_capture(&d, "a.iot", 1, 0, IOT_SEAL_REQUEST, 1);
	/* Alone, what follows may be on its way. */
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	write_capture(&d, "b.iot", 2, 100, IOT_SEAL_SIZE, 2);
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	write_capture(&d, "c.iot", 3, 200, IOT_SEAL_SIZE, 1);
	expect(d.path, IOT_VERDICT_UNKNOWN, "a.iot: its capture went on");
	write_capture(&d, "a.iot", 1, 0, IOT_SEAL_SHUTDOWN, 1);
	expect(d.path, IOT_VERDICT_COMPLETE, NULL);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_copy_is_read),
		cmocka_unit_test(test_set_aside),
		cmocka_unit_test(test_names_that_are_no_files),
		cmocka_unit_test(test_capture_went_on),
		cmocka_unit_test(test_clock_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
