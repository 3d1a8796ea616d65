// SPDX-License-Identifier: BSD-2-Clause
/* follow.c - see follow.h. */
#include <dirent.h>

#include "daemon/ctl/follow.h"

static void missing(struct follow_files *f, const struct follow_position *at, const char *fmt, ...)
	IOT_PRINTF(3, 4);
static void missing(struct follow_files *f, const struct follow_position *at, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f->calls->missing(f, at, text);
}

/* -ENOENT: not there, or not any more. -EAGAIN: not yet. */
static int open_segment(struct follow_files *f, const struct follow_position *at,
			struct iot_segment **ret)
{
	static const char *const suffixes[] = {"open", "iot"};
	int r = -ENOENT;

	/* In this order: it may be renamed in between. */
	for (size_t i = 0; i < IOT_ARRAY_SIZE(suffixes) && r == -ENOENT; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s-%s-%010llu.%s", f->dir, iot_stream_name(at->stream),
			     f->capture, (unsigned long long)at->seq, suffixes[i]) < 0)
			return -ENOMEM;
		f->err.text[0] = '\0';
		r = iot_segment_open(path, ret, &f->err);
		/* A file that is just being made has no whole header. */
		if (r == -EBADMSG && i == 0)
			r = -EAGAIN;
	}
	return r;
}

/* The first segment of a stream behind seq that is in the directory, or the last; 0 = none. */
static uint64_t find_segment(const struct follow_files *f, enum iot_stream stream, uint64_t seq,
			     bool last)
{
	DIR *dir = opendir(f->dir);
	const struct dirent *d;
	uint64_t found = 0;
	char prefix[64];
	size_t len;

	if (!dir)
		return 0;
	len = (size_t)snprintf(prefix, sizeof(prefix), "%s-%.32s-", iot_stream_name(stream),
			       f->capture);
	while ((d = readdir(dir))) {
		const char *digits = d->d_name + len, *dot;
		char number[24];
		uint64_t n;

		if (strncmp(d->d_name, prefix, len) != 0)
			continue;
		dot = digits + strspn(digits, "0123456789");
		snprintf(number, sizeof(number), "%.*s",
			 (int)IOT_MIN((size_t)(dot - digits), sizeof(number) - 1), digits);
		if ((strcmp(dot, ".open") != 0 && strcmp(dot, ".iot") != 0) ||
		    iot_parse_u64(number, &n) < 0 || n <= seq)
			continue;
		if (!found || (last ? n > found : n < found))
			found = n;
	}
	closedir(dir);
	return found;
}

/* All blocks that are whole, from the position on. print: or pass over them. */
static int read_blocks(struct follow_files *f, struct follow_position *at, struct iot_segment *s,
		       bool print)
{
	struct iot_batch *b = f->batch[at - f->at];
	struct iot_block_info info;
	int r;

	iot_segment_seek(s, at->offset);
	while (!f->stop) {
		r = iot_segment_next_block(s, &info, &f->err);
		if (r < 0 || r == IOT_READ_END)
			return r < 0 ? r : 0;
		/* In a file that grows: a block that is not whole yet. */
		if (r == IOT_READ_GAP && !iot_segment_footer(s))
			return 0;
		if (r == 0 && print && info.kind == iot_stream_block_kind(at->stream) &&
		    (!f->since_ns || iot_segment_realtime_ns(s, info.last_ns) >= f->since_ns)) {
			r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, NULL);
			if (r == 0)
				r = f->calls->block(f, s, b, at->stream);
			if (r < 0 && r != -EBADMSG)
				return r;
		}
		if (r != 0) {
			f->incomplete = true;
			missing(f, at, ": damaged block at offset %llu",
				(unsigned long long)info.offset);
		}
		at->offset = info.offset + info.size;
	}
	return 0;
}

/* Retention was faster than the reader of our output. false: the segment is only not there yet. */
static bool pass_over_deleted(struct follow_files *f, struct follow_position *at)
{
	uint64_t next = find_segment(f, at->stream, at->seq, false);

	if (!next)
		return false;
	if (at->seq) {
		f->incomplete = true;
		missing(f, at, " to %llu: deleted before they were read",
			(unsigned long long)next - 1);
	}
	at->seq = next;
	at->offset = at->size = 0;
	return true;
}

/* Up to where the files of a stream go now. */
static int read_stream(struct follow_files *f, struct follow_position *at, bool print)
{
	while (!f->stop) {
		_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
		int r = at->seq ? open_segment(f, at, &s) : -ENOENT;

		if (r == -ENOENT && pass_over_deleted(f, at))
			continue;
		if (r < 0)
			return r == -ENOENT || r == -EAGAIN ? 0 : r;
		at->unsealed = !iot_segment_footer(s);
		if (at->unsealed && iot_segment_size(s) == at->size)
			return 0;
		at->size = iot_segment_size(s);
		r = read_blocks(f, at, s, print);
		if (r < 0 || at->unsealed)
			return r;
		/* The next one's file was there before this one's footer, unless it is the last. */
		if (print && !f->stop && f->calls->sealed)
			f->calls->sealed(f, at, s);
		at->seq++;
		at->offset = at->size = 0;
	}
	return 0;
}

int follow_files_open(struct follow_files *f, enum iot_stream stream)
{
	const enum iot_stream streams[] = {IOT_STREAM_BLOCK, IOT_STREAM_PACKET};
	int r = 0;

	for (size_t i = 0; i < FOLLOW_STREAMS; i++) {
		struct follow_position *at = &f->at[f->n_streams];

		if (stream && stream != streams[i])
			continue;
		r = iot_batch_new_stream(streams[i], 64, &f->batch[f->n_streams]);
		if (r < 0)
			return r;
		f->n_streams++;
		at->stream = streams[i];
		/* From now on: what is there already is passed over. */
		at->seq = find_segment(f, at->stream, 0, !f->since_ns);
	}
	for (size_t i = 0; r == 0 && !f->since_ns && i < f->n_streams; i++)
		r = read_stream(f, &f->at[i], false);
	return r;
}

int follow_files_read(struct follow_files *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->n_streams; i++)
		r = read_stream(f, &f->at[i], true);
	return r;
}

void follow_files_done(struct follow_files *f)
{
	for (size_t i = 0; i < FOLLOW_STREAMS; i++)
		iot_batch_free(f->batch[i]);
}
