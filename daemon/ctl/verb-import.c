// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-import.c - traces of blktrace, blkparse and perf as segments, for every verb that reads some.
 *
 * The output is a directory of one capture that appears whole or not at all: filled beside its place, synced, renamed.
 * All of the input is read before the first segment is begun, so that what is broken leaves nothing behind.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/ctl/import.h"

#define DEFAULT_SEGMENT_BYTES (64ULL << 20)

struct job {
	struct import im;
	struct import_paths paths;
	struct iot_fingerprint *hash;
	struct import_counts counts;
	uint64_t segment_bytes;
	uint64_t n_segments, n_open;
};

static void job_done(struct job *job)
{
	import_done(&job->im);
	import_paths_done(&job->paths);
	iot_fingerprint_free(job->hash);
}

static int find_format(const char *name, enum import_format *ret)
{
	for (enum import_format f = IMPORT_BLKTRACE; f <= IMPORT_PERF; f++)
		if (strcmp(name, import_format_name(f)) == 0) {
			*ret = f;
			return 0;
		}
	return -EINVAL;
}

static int stat_path(const char *path, struct stat *st)
{
	return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, st) : stat(path, st);
}

/* Two of one file would be twice of everything. */
static int check_twice(const struct import_paths *p, struct iot_error *err)
{
	for (size_t i = 0; i < p->n; i++) {
		struct stat a, b;

		if (stat_path(p->paths[i], &a) != 0)
			continue;
		for (size_t k = 0; k < i; k++)
			if (stat_path(p->paths[k], &b) == 0 && a.st_ino == b.st_ino &&
			    a.st_dev == b.st_dev)
				return iot_error_set(err, -EINVAL, "%s: is named twice",
						     p->paths[i]);
	}
	return 0;
}

static int read_file(struct job *job, const char *path, struct iot_error *err)
{
	static int (*const parsers[])(struct import *, struct import_input *,
				      struct iot_error *) = {
		[IMPORT_BLKTRACE] = import_blktrace,
		[IMPORT_BLKPARSE] = import_blkparse,
		[IMPORT_PERF] = import_perf,
	};
	_cleanup_(import_input_done) struct import_input in = {.fd = -EBADF};
	const char *data;
	size_t n = 0;
	int r;

	r = import_input_open(path, job->hash, &in, err);
	if (r == 0)
		r = import_input_peek(&in, 1, &data, &n, err);
	if (r < 0)
		return r;
	job->im.n_files++;
	/* A CPU that did nothing. */
	if (n == 0)
		return 0;
	if (job->im.format == IMPORT_BLKPARSE && job->im.n_events)
		return iot_error_set(
			err, -EINVAL,
			"%s: times of another text of blkparse have another beginning; "
			"import them one by one, or what both were made of",
			path);
	if (!job->im.format)
		r = import_detect(&in, &job->im.format, err);
	return r < 0 ? r : parsers[job->im.format](&job->im, &in, err);
}

static int read_all(struct job *job, struct iot_error *err)
{
	for (size_t i = 0; i < job->paths.n; i++) {
		int r = read_file(job, job->paths.paths[i], err);

		if (r < 0)
			return r;
	}
	if (job->im.n_events > job->im.n_ignored)
		return 0;
	return iot_error_set(err, -ENODATA, "%s: has no event of a request",
			     job->paths.n == 1 ? job->paths.paths[0] : "the trace");
}

/* The same trace, read the same way, is the same capture. */
static void capture_id(const struct job *job, uint8_t ret[16])
{
	char how[128];

	snprintf(how, sizeof(how), "iotraced %s %s %llu", IOTRACED_VERSION,
		 import_format_name(job->im.format), (unsigned long long)job->segment_bytes);
	iot_fingerprint_add(job->hash, how, strlen(how));
	iot_fingerprint_get(job->hash, ret);
}

static int import_into(struct job *job, const char *dir, struct iot_error *err)
{
	_cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(import_writer_freep) struct import_writer *w = NULL;
	uint8_t id[16];
	int r;

	if (dirfd < 0)
		return iot_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	job->hash = iot_fingerprint_new();
	if (!job->hash)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = bt_sort_new(dirfd, BT_SORT_EVENTS, import_order, &job->im.sort);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	r = read_all(job, err);
	if (r < 0)
		return r;
	capture_id(job, id);
	r = import_writer_new(&job->im, dirfd, id, job->segment_bytes, &w);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	r = import_writer_run(w, &job->counts, err);
	if (r < 0)
		return r;
	job->n_segments = import_writer_segments(w);
	job->n_open = import_writer_n_open(w);
	return 0;
}

static void say(const struct job *job, const char *output)
{
	const struct import *im = &job->im;
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], c[CTL_HUMAN_MAX];

	printf("%s: %s request%s of %s events of %s, in %llu segment%s\n", output,
	       ctl_human_count(job->counts.requests, a), job->counts.requests == 1 ? "" : "s",
	       ctl_human_count(im->n_events, b), import_format_name(im->format),
	       (unsigned long long)job->n_segments, job->n_segments == 1 ? "" : "s");
	if (job->n_open)
		printf("  %s in flight at the end\n", ctl_human_count(job->n_open, a));
	if (job->counts.only_end)
		printf("  %s of which only the end was seen\n",
		       ctl_human_count(job->counts.only_end, a));
	if (job->counts.parts)
		printf("  %s ends of a part of one\n", ctl_human_count(job->counts.parts, a));
	if (job->counts.ambiguous)
		printf("  %s ended where others were in flight: these may have each other's end\n",
		       ctl_human_count(job->counts.ambiguous, a));
	if (im->n_names_dropped || job->counts.names_dropped)
		printf("  %s names of processes for which there was no room\n",
		       ctl_human_count(im->n_names_dropped + job->counts.names_dropped, a));
	if (im->n_lost || im->lost_unknown)
		printf("  %s%s events are missing in the trace, as it says itself\n",
		       im->lost_unknown ? "at least " : "", ctl_human_count(im->n_lost, c));
	if (!im->dated)
		printf("  the trace has no wall clock: dates mean nothing\n");
}

int verb_import(struct ctl *c, int argc, char **argv)
{
	_cleanup_(job_done) struct job job = {
		.segment_bytes = c->segment_bytes ? c->segment_bytes : DEFAULT_SEGMENT_BYTES};
	_cleanup_free_ char *output = NULL, *temp = NULL;
	struct iot_error err = {0};
	size_t len;
	int r;

	if (argc < 2 || !c->output || strcmp(c->output, "-") == 0)
		return ctl_fail(CTL_USAGE,
				"import needs a trace and a place: import FILE... --output DIR");
	if (c->format && find_format(c->format, &job.im.format) < 0)
		return ctl_fail(CTL_USAGE, "--format: '%s' is not one of blktrace, blkparse, perf",
				c->format);
	len = strlen(c->output);
	while (len > 1 && c->output[len - 1] == '/')
		len--;
	output = strndup(c->output, len);
	if (!output)
		return ctl_fail(CTL_ERROR, "out of memory");
	r = ctl_directory_check(output);
	if (r == -ENOTEMPTY)
		return ctl_fail(CTL_ERROR, "%s: is not empty; name another directory with --output",
				output);
	if (r == 0)
		r = import_paths_find(argv + 1, (size_t)argc - 1, &job.paths, &err);
	if (r == 0)
		r = check_twice(&job.paths, &err);
	if (r == 0)
		r = ctl_directory_make(output, &temp);
	if (r < 0 || !temp)
		return ctl_fail(CTL_ERROR, "%s%s%s", err.text[0] ? "" : output,
				err.text[0] ? "" : ": ", err.text[0] ? err.text : strerror(-r));
	r = import_into(&job, temp, &err);
	if (r == 0 && rename(temp, output) < 0)
		r = iot_error_set(&err, -errno, "%s: %s", output, strerror(errno));
	if (r < 0) {
		ctl_directory_remove(temp);
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	}
	say(&job, output);
	return CTL_OK;
}
