/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store-fixture.h - a state directory of the test's own and segments to put into it. For test-store*.c.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "daemon/clock.h"
#include "daemon/store-internal.h"
#include "format/verify.h"

static char dir[64];
static bool unsynced; /* what store_publish() says */
static const uint8_t capture_a[16] = {0xaa, 1}, capture_b[16] = {0xbb, 2};
static const char hex_a[] = "aa010000000000000000000000000000";

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-store.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd); /* NOLINT: a path of our own making */
}

static struct store *open_store(const uint8_t capture[16])
{
	struct store *s = NULL;
	struct iot_error err = {};
	int r = store_open(dir, capture, &s, &err);

	if (r < 0)
		print_message("%s\n", err.text);
	assert_int_equal(r, 0);
	return s;
}

static bool exists(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void make_file(const char *name, size_t bytes, time_t mtime)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (mtime) {
		const struct timespec ts[2] = {{.tv_sec = mtime}, {.tv_sec = mtime}};

		assert_int_equal(futimens(fd, ts), 0);
	}
	close(fd);
}

/* A segment with n requests, left open or sealed. */
static int make_segment(struct store *s, uint64_t seq, unsigned int n, bool seal)
{
	struct iot_segment_info info = {.stream = IOT_STREAM_BLOCK,
					.n_rings = 1,
					.n_cpus = 1,
					.epoch = seq,
					.seq = seq,
					.attach_ns = 1};
	struct iot_footer f = {.reason = IOT_SEAL_SIZE, .epoch_first_ns = 1, .epoch_last_ns = 9999};
	struct iot_books books = {.probe = 8, .seen = n, .emitted = n, .written = n};
	struct iot_probe probe = {.id = 8,
				  .state = IOT_ATTACH_ATTACHED,
				  .miss = IOT_MISS_COUNTED,
				  .from_ns = 1,
				  .name = "block_rq_complete",
				  .hook = "tp_btf"};
	struct iot_span span = {.p0 = 0, .p1 = 1000};
	_cleanup_(iot_writer_closep) struct iot_writer *w = NULL;
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	char name[128];
	int fd;

	memcpy(info.capture_id, store_capture_id(s), 16);
	info.probes = &probe;
	info.n_probes = 1;
	store_name(s, IOT_STREAM_BLOCK, seq, false, name, sizeof(name));
	assert_int_equal(iot_writer_open(store_dirfd(s), name, &info, &w), 0);
	assert_int_equal(iot_batch_new(1024, &b), 0);
	for (unsigned int i = 0; i < n; i++) {
		struct iot_request r = {.id = i + 1,
					.start_ns = 10 + i,
					.issue_ns = 11 + i,
					.issue_last_ns = 11 + i,
					.complete_ns = 20 + i,
					.bytes = 4096,
					.bytes_done = 4096,
					.op = IOT_OP_READ,
					.dev = IOT_DEV(7, 0),
					.part = IOT_DEV(7, 0)};

		assert_int_equal(iot_batch_add(b, &r), 0);
	}
	assert_int_equal(iot_writer_put(w, b, &span, 1), 0);
	f.books = &books;
	f.n_books = 1;
	f.probes = &probe;
	f.n_probes = 1;
	if (seal)
		assert_int_equal(iot_writer_seal(w, &f), 0);
	fd = dup(iot_writer_fd(w));
	assert_true(fd >= 0);
	return fd;
}
