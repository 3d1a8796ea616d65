// SPDX-License-Identifier: BSD-2-Clause
/*
 * recover.c - a sealed file out of a torn or damaged one: whole blocks byte for byte, the rest cut.
 *
 * The new footer says `recovered` and claims only what is known. A torn file's counters died with
 * its daemon: all but `written`, which the blocks tell, are unknown. A damaged sealed file keeps
 * its books; they now name more records than the file holds, and that is left to be seen. What was
 * cut is a window of doubt. Its time comes from the index where there is one; else from the rings:
 * records of a ring are in order, so what is missing of a ring lies after the last block that
 * advanced it and before the next one that does. Doubt is taken wide where that is not known.
 */
#include "format/books.h"
#include "format/reader-internal.h"
#include "format/schema.h"
#include "format/verify.h"

#include <fcntl.h>
#include <sys/stat.h>

struct recovery {
	struct iot_segment *s;
	struct iot_writer *w;
	struct iot_batch *b;
	struct iot_window *windows;
	size_t n_windows;
	struct iot_written written;
	unsigned int kind; /* of the blocks that hold records */
	uint64_t kept_records;
	uint64_t lost_bytes;
	uint64_t n_cut; /* holes */
	/* per ring: how far good blocks go, and the first time of the last one that advanced it */
	uint64_t p1[IOT_MAX_RINGS];
	uint64_t advanced_ns[IOT_MAX_RINGS];
	bool any[IOT_MAX_RINGS];
	bool gap; /* bytes were skipped since the last good block, times not known */
};

static int add_window(struct recovery *rc, uint64_t t0_ns, uint64_t t1_ns, uint64_t n)
{
	struct iot_window *more = reallocarray(rc->windows, rc->n_windows + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	rc->windows = more;
	rc->windows[rc->n_windows++] = (struct iot_window){
		.t0_ns = t0_ns,
		.t1_ns = t1_ns,
		.n = n,
		.cpu = UINT32_MAX,
		.probe = 0, /* ledger entries and open requests may have been cut, too */
		.kind = IOT_WINDOW_TORN,
	};
	return 0;
}

/* Nothing of the segment is older than its file, which is created before its epoch begins. */
static uint64_t ring_lower(const struct recovery *rc, uint32_t ring)
{
	return rc->any[ring] ? rc->advanced_ns[ring] : iot_segment_info(rc->s)->clocks.monotonic_ns;
}

static uint64_t lower_bound(const struct recovery *rc, const struct iot_block_info *next)
{
	const struct iot_segment_info *info = iot_segment_info(rc->s);
	uint64_t t0 = UINT64_MAX;

	for (uint32_t i = 0; i < info->n_rings && i < IOT_MAX_RINGS; i++) {
		/* The next block continues where the last one ended: this ring lost nothing. */
		if (next && i < next->n_spans && rc->any[i] && next->spans[i].p0 == rc->p1[i])
			continue;
		t0 = IOT_MIN(t0, ring_lower(rc, i));
	}
	return t0 == UINT64_MAX ? info->clocks.monotonic_ns : t0;
}

static uint64_t upper_bound(const struct recovery *rc, const struct iot_block_info *next)
{
	const struct iot_segment_info *info = iot_segment_info(rc->s);
	const struct iot_footer *f = iot_segment_footer(rc->s);
	uint64_t end = f && f->epoch_last_ns ? f->epoch_last_ns : UINT64_MAX;

	if (!next || next->n_spans < info->n_rings)
		return end;
	for (uint32_t i = 0; i < info->n_rings && i < IOT_MAX_RINGS; i++) {
		if (rc->any[i] && next->spans[i].p0 == rc->p1[i])
			continue;
		/* It lost something and does not go on in this block: no bound but the end. */
		if (next->spans[i].p1 == next->spans[i].p0)
			return end;
	}
	return next->last_ns;
}

/* Closes a pending hole of unknown content before next (NULL: the end of the file). */
static int close_gap(struct recovery *rc, const struct iot_block_info *next)
{
	uint64_t t0, t1;

	if (!rc->gap)
		return 0;
	rc->gap = false;
	t0 = lower_bound(rc, next);
	t1 = upper_bound(rc, next);
	return add_window(rc, t0, IOT_MAX(t0, t1), IOT_COUNT_UNKNOWN);
}

static int cut(struct recovery *rc, const struct iot_block_info *info)
{
	rc->n_cut++;
	rc->lost_bytes += info->size;
	/* A header (or the index) that is whole tells what the damaged data held. */
	if (info->count > 0 && info->kind == rc->kind)
		return add_window(rc, info->first_ns, info->last_ns, info->count);
	rc->gap = true;
	return 0;
}

static void advance(struct recovery *rc, const struct iot_block_info *info)
{
	for (uint32_t i = 0; i < info->n_spans && i < IOT_MAX_RINGS; i++) {
		if (info->spans[i].p1 > info->spans[i].p0 || !rc->any[i])
			rc->advanced_ns[i] = info->first_ns;
		rc->p1[i] = info->spans[i].p1;
		rc->any[i] = true;
	}
}

static int keep(struct recovery *rc, const struct iot_block_info *info, struct iot_error *err)
{
	const uint8_t *bytes = NULL;
	int r;

	/* A block is whole if it can be read, not only if its checksum holds. */
	r = iot_segment_read_block(rc->s, info, IOT_COLS_ALL, rc->b, NULL);
	if (r == 0)
		r = iot_segment_raw_block(rc->s, info, &bytes, NULL);
	if (r == -EBADMSG) {
		r = cut(rc, info);
		return r < 0 ? iot_error_set(err, r, "out of memory") : 0;
	}
	if (r < 0)
		return iot_error_set(err, r, "%s: offset %llu: %s", iot_segment_path(rc->s),
				     (unsigned long long)info->offset, strerror(-r));
	r = close_gap(rc, info);
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	r = iot_writer_copy(rc->w, info, bytes);
	if (r < 0)
		return iot_error_set(err, r, "writing the recovered file: %s", strerror(-r));
	advance(rc, info);
	for (uint32_t i = 0; i < iot_batch_count(rc->b); i++) {
		struct iot_row_key key;

		iot_batch_key(rc->b, i, &key);
		r = iot_written_add(&rc->written, key.probe, key.cpu);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	}
	rc->kept_records += info->count;
	return 0;
}

static int copy_blocks(struct recovery *rc, struct iot_error *err)
{
	struct iot_walk w;
	int r;

	iot_walk_init(rc->s, &w);
	for (;;) {
		struct iot_block_info info;
		enum iot_gap gap;

		r = iot_walk_next(rc->s, &w, &info, &gap, err);
		if (r < 0)
			return r;
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP)
			r = cut(rc, &info);
		else if (info.kind == rc->kind)
			r = keep(rc, &info, err);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	}
	/* Without a footer nobody knows what would have followed. */
	if (!iot_segment_footer(rc->s))
		rc->gap = true;
	r = close_gap(rc, NULL);
	return r < 0 ? iot_error_set(err, r, "out of memory") : 0;
}

static int seal(struct recovery *rc, struct iot_error *err)
{
	const struct iot_segment_info *info = iot_segment_info(rc->s);
	const struct iot_footer *old = iot_segment_footer(rc->s);
	_cleanup_free_ struct iot_window *windows = NULL;
	_cleanup_free_ struct iot_request *open = NULL;
	_cleanup_free_ struct iot_books *books = NULL;
	_cleanup_free_ struct iot_loss *losses = NULL;
	struct iot_footer f = {0};
	bool ledger_whole, open_whole;
	int r;

	/* Tables are borrowed from the old segment: f is never given to iot_footer_done. */
	if (old)
		f = *old;
	f.reason = IOT_SEAL_RECOVERED;
	r = iot_segment_salvage_ledger(rc->s, &losses, &f.n_losses, &ledger_whole, err);
	if (r < 0)
		return r;
	r = iot_segment_salvage_open(rc->s, &open, &f.n_open, &open_whole, err);
	if (r < 0)
		return r;
	f.losses = losses;
	f.open = open;
	if (!old) {
		r = iot_written_books(&rc->written, info->probes, info->n_probes, &books,
				      &f.n_books);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
		f.books = books;
		f.probes = info->probes;
		f.n_probes = info->n_probes;
		f.devices = info->devices;
	}
	windows = calloc(f.n_windows + rc->n_windows + 1, sizeof(*windows));
	if (!windows)
		return iot_error_set(err, -ENOMEM, "out of memory");
	if (f.n_windows)
		memcpy(windows, f.windows, f.n_windows * sizeof(*windows));
	if (rc->n_windows)
		memcpy(windows + f.n_windows, rc->windows, rc->n_windows * sizeof(*windows));
	f.windows = windows;
	f.n_windows += rc->n_windows;
	snprintf(f.note, sizeof(f.note), "%s; %llu records kept, %llu stretches cut%s%s",
		 old ? "the file was damaged" : "the file had no footer",
		 (unsigned long long)rc->kept_records, (unsigned long long)rc->n_cut,
		 ledger_whole ? "" : ", ledger not whole",
		 open_whole ? "" : ", requests in flight not whole");
	r = iot_writer_seal(rc->w, &f);
	if (r < 0)
		return iot_error_set(err, r, "writing the recovered file: %s", strerror(-r));
	/* The damaged file may be deleted next: this one has to be there. */
	if (fdatasync(iot_writer_fd(rc->w)) < 0)
		return iot_error_set(err, -errno, "writing the recovered file: %s",
				     strerror(errno));
	return 0;
}

/* Never over the input, never over a sealed file: only an unfinished attempt may be replaced. */
static int check_target(struct iot_segment *s, int out_dirfd, const char *out_name,
			struct iot_error *err)
{
	_cleanup_(iot_segment_closep) struct iot_segment *other = NULL;
	struct stat in, out;
	int fd, r;

	fd = iot_segment_fd(s);
	if (fd < 0)
		return iot_error_set(err, fd, "%s: %s", iot_segment_path(s), strerror(-fd));
	if (fstat(fd, &in) < 0)
		return iot_error_set(err, -errno, "%s: %s", iot_segment_path(s), strerror(errno));
	if (fstatat(out_dirfd, out_name, &out, 0) < 0)
		return errno == ENOENT
			       ? 0
			       : iot_error_set(err, -errno, "%s: %s", out_name, strerror(errno));
	if (in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return iot_error_set(err, -EEXIST,
				     "%s: is the damaged file itself (name another file or "
				     "directory for the result)",
				     out_name);
	fd = openat(out_dirfd, out_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return iot_error_set(err, -errno, "%s: %s", out_name, strerror(errno));
	r = iot_segment_open_fd(fd, out_name, &other, NULL);
	if (r == -ENOMEM)
		return iot_error_set(err, r, "out of memory");
	if (!S_ISREG(out.st_mode) || (r == 0 && iot_segment_footer(other)))
		return iot_error_set(err, -EEXIST,
				     "%s: exists and will not be replaced (name another file or "
				     "directory for the result)",
				     out_name);
	return 0;
}

static int check_needed(struct iot_segment *s, struct iot_error *err)
{
	struct iot_verdict v;
	int r;

	if (!iot_segment_footer(s))
		return 0;
	r = iot_verify_segment(s, &v, err);
	if (r < 0)
		return r;
	if (v.code != IOT_VERDICT_CORRUPT)
		return iot_error_set(err, -EALREADY, "%s: is whole, there is nothing to recover",
				     iot_segment_path(s));
	return 0;
}

int iot_recover(struct iot_segment *s, int out_dirfd, const char *out_name,
		uint64_t *ret_kept_records, uint64_t *ret_lost_bytes, struct iot_error *err)
{
	_cleanup_free_ struct recovery *rc = calloc(1, sizeof(*rc));
	int r;

	if (!rc)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = check_needed(s, err);
	if (r < 0)
		return r;
	r = check_target(s, out_dirfd, out_name, err);
	if (r < 0)
		return r;
	rc->s = s;
	rc->kind = iot_stream_block_kind(iot_segment_info(s)->stream);
	if (!rc->kind)
		return iot_error_set(err, -EPROTONOSUPPORT,
				     "%s: a stream that this version does not know",
				     iot_segment_path(s));
	r = iot_batch_new_stream(iot_segment_info(s)->stream, 1,
				 &rc->b); /* grows with the blocks */
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	r = iot_writer_open(out_dirfd, out_name, iot_segment_info(s), &rc->w);
	if (r < 0) {
		iot_batch_free(rc->b);
		return iot_error_set(err, r, "%s: %s", out_name, strerror(-r));
	}
	r = copy_blocks(rc, err);
	if (r == 0)
		r = seal(rc, err);
	iot_writer_close(rc->w);
	iot_batch_free(rc->b);
	free(rc->windows);
	iot_written_done(&rc->written);
	if (r < 0) {
		unlinkat(out_dirfd, out_name, 0);
		return r;
	}
	*ret_kept_records = rc->kept_records;
	*ret_lost_bytes = rc->lost_bytes;
	return 0;
}
