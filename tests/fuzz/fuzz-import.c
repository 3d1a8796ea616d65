// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-import.c - any bytes as a trace of another tool, from its parser to a segment that is verified.
 *
 * The first byte says the format (0: found out, 1 blktrace, 2 blkparse, 3 perf; modulo 4). Whatever is taken becomes
 * segments whose verdict is unknown: not better, and not worse, with each request in them that was counted.
 */
#include "daemon/ctl/import.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-import: %s\n", what);
	abort();
}

static void remove_dir(void)
{
	ctl_directory_remove(dir);
}

static int make_dir(void)
{
	if (!dir[0]) {
		snprintf(dir, sizeof(dir), "/dev/shm/fuzz-import.XXXXXX");
		check(mkdtemp(dir) != NULL, "no directory");
		atexit(remove_dir);
	}
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void check_segments(const struct import *im, const struct import_counts *counts,
			   uint64_t n_segments)
{
	struct iot_segment **all = calloc(n_segments, sizeof(struct iot_segment *));
	uint64_t n = 0;
	struct iot_verdict v;
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];

	check(all && d, "no memory");
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		for (uint64_t i = 0; i < n_segments; i++) {
			char end[32];

			snprintf(end, sizeof(end), "-%010llu.iot", (unsigned long long)i + 1);
			if (strstr(e->d_name, end)) {
				check(iot_segment_open(path, &all[i], NULL) == 0, "no segment");
				n++;
			}
		}
	}
	check(n == n_segments, "segments are missing");
	check(iot_verify_chain(all, n, &v, NULL) == 0, "cannot verify");
	check(v.code == IOT_VERDICT_UNKNOWN, "a verdict that is not unknown");
	check(v.n_records == counts->requests, "requests are missing");
	check(v.n_unattributed == im->n_lost, "what the source lost is not said");
	check(v.books_unbalanced == 0, "books");
	for (uint64_t i = 0; i < n_segments; i++) {
		unlink(iot_segment_path(all[i]));
		iot_segment_close(all[i]);
	}
	free(all);
	closedir(d);
}

static void write_segments(struct import *im, int dirfd)
{
	_cleanup_(import_writer_freep) struct import_writer *w = NULL;
	static const uint8_t id[16] = {1};
	struct import_counts counts;

	check(import_writer_new(im, dirfd, id, 4096, &w) == 0, "no writer");
	check(import_writer_run(w, &counts, NULL) == 0, "cannot write");
	check_segments(im, &counts, import_writer_segments(w));
}

static void parse(struct import *im, struct import_input *in, int dirfd)
{
	struct iot_error err = {0};
	int r = 0;

	if (!im->format)
		r = import_detect(in, &im->format, &err);
	if (r == 0 && im->format == IMPORT_BLKTRACE)
		r = import_blktrace(im, in, &err);
	else if (r == 0 && im->format == IMPORT_BLKPARSE)
		r = import_blkparse(im, in, &err);
	else if (r == 0)
		r = import_perf(im, in, &err);
	check(r == 0 || err.text[0], "an error without words");
	check(r == 0 || r == -EBADMSG || r == -E2BIG, "an error that is not the input's");
	if (r == 0 && im->n_events > im->n_ignored)
		write_segments(im, dirfd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(import_input_done) struct import_input in = {.fd = -EBADF};
	_cleanup_(import_done) struct import im = {.n_files = 1};
	_cleanup_close_ int dirfd = -EBADF;
	_cleanup_close_ int fd = -EBADF;
	char path[64];

	if (size < 1)
		return 0;
	dirfd = make_dir();
	fd = memfd_create("trace", MFD_CLOEXEC);
	check(dirfd >= 0 && fd >= 0 && iot_write_all(fd, data + 1, size - 1) == 0 &&
		      lseek(fd, 0, SEEK_SET) == 0,
	      "no file");
	im.format = data[0] % 4;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(import_input_open(path, NULL, &in, NULL) == 0, "cannot open");
	/* Few at once, so that some are spilled. */
	check(bt_sort_new(dirfd, 64, import_order, &im.sort) == 0, "no sort");
	parse(&im, &in, dirfd);
	return 0;
}
