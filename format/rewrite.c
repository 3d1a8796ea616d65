// SPDX-License-Identifier: BSD-2-Clause
/*
 * rewrite.c - the content of a sealed file once more, in a file of its own, after the disk failed to take
 * the first one.
 *
 * A failed fsync leaves nobody knowing what is on the disk: the kernel marks the pages clean, and says
 * the next time that all is well (lib/errseq.c: an error is told once to each descriptor, and not at
 * all to one opened after that). What was written can usually still be read, since it is in the page cache;
 * some file systems drop it. So each block is read back and proved by its checksums before it is kept.
 *
 * Books of the file's own epoch are at hand, so what cannot be read back is counted exactly, by probe
 * and CPU: `written` less, `output_failed` more, and a window that says when. Unlike a recovered file,
 * this one still proves everything else.
 */
#include "format/books.h"
#include "format/reader-internal.h"
#include "format/schema.h"
#include "format/verify.h"

struct rewrite {
	struct iot_segment *s;
	struct iot_writer *w;
	struct iot_batch *b;
	struct iot_written kept;
	unsigned int kind;	    /* of the blocks that hold records */
	uint64_t first_ns, last_ns; /* of what could not be read back */
	bool any_lost;
	bool times_unknown; /* of something of that */
};

static void lose(struct rewrite *rw, const struct iot_block_info *info)
{
	/* A hole that the index names as something else holds no records. */
	if (info->count > 0 && info->kind != rw->kind)
		return;
	if (info->count == 0)
		rw->times_unknown = true;
	rw->first_ns = rw->any_lost ? IOT_MIN(rw->first_ns, info->first_ns) : info->first_ns;
	rw->last_ns = rw->any_lost ? IOT_MAX(rw->last_ns, info->last_ns) : info->last_ns;
	rw->any_lost = true;
}

static int keep(struct rewrite *rw, const struct iot_block_info *info)
{
	const uint8_t *bytes = NULL;
	int r;

	r = iot_segment_read_block(rw->s, info, IOT_COLS_ALL, rw->b, NULL);
	if (r == 0)
		r = iot_segment_raw_block(rw->s, info, &bytes, NULL);
	/* What is not in memory any more and cannot be had from the disk is lost, too. */
	if (r == -EBADMSG || r == -EIO) {
		lose(rw, info);
		return 0;
	}
	if (r == 0)
		r = iot_writer_copy(rw->w, info, bytes);
	for (uint32_t i = 0; r == 0 && i < iot_batch_count(rw->b); i++) {
		struct iot_row_key key;

		iot_batch_key(rw->b, i, &key);
		r = iot_written_add(&rw->kept, key.probe, key.cpu);
	}
	return r;
}

static int copy_blocks(struct rewrite *rw)
{
	const struct iot_meta_footer *meta = iot_segment_meta(rw->s);
	struct iot_walk walk;

	iot_walk_init(rw->s, &walk);
	for (;;) {
		struct iot_block_info info;
		enum iot_gap gap;
		int r = iot_walk_next(rw->s, &walk, &info, &gap, NULL);

		if (r == IOT_READ_END)
			return 0;
		/* A block header that the disk does not give back: the index knows what followed it. */
		if (r == -EIO && meta && walk.next < meta->n_index) {
			const struct iot_index_entry *e = &meta->index[walk.next++];

			info = (struct iot_block_info){.first_ns = e->first_ns,
						       .last_ns = e->last_ns,
						       .count = e->count,
						       .kind = e->kind};
			r = IOT_READ_GAP;
		}
		if (r == IOT_READ_GAP)
			lose(rw, &info);
		else if (r == 0 && info.kind == rw->kind)
			r = keep(rw, &info);
		if (r < 0)
			return r;
	}
}

/* Moves what is not in the new file from `written` to `output_failed`. */
static void account(struct rewrite *rw, struct iot_footer *f, struct iot_books *books,
		    struct iot_window *windows, struct iot_rewritten *ret)
{
	uint64_t t0_ns = rw->first_ns, t1_ns = rw->last_ns;

	if (rw->times_unknown) {
		t0_ns = f->epoch_first_ns;
		t1_ns = f->epoch_last_ns;
	}
	f->books = books;
	f->windows = windows;
	/* With all of it read back, books that do not fit were wrong before, and have to say so. */
	for (size_t i = 0; rw->any_lost && i < f->n_books; i++) {
		struct iot_books *row = &books[i];
		uint64_t kept = iot_written_take(&rw->kept, row->probe, row->cpu);
		uint64_t lost = row->written - kept;

		if (row->written == IOT_COUNT_UNKNOWN || row->written <= kept)
			continue;
		row->written = kept;
		if (row->output_failed != IOT_COUNT_UNKNOWN)
			row->output_failed += lost;
		windows[f->n_windows++] = (struct iot_window){
			.t0_ns = t0_ns,
			.t1_ns = t1_ns,
			.n = lost,
			.cpu = row->cpu,
			.probe = row->probe,
			.kind = IOT_WINDOW_OUTPUT,
		};
		ret->lost_records += lost;
	}
}

static int seal(struct rewrite *rw, const struct iot_footer *old, struct iot_rewritten *ret)
{
	_cleanup_free_ struct iot_books *books = NULL;
	_cleanup_free_ struct iot_window *windows = NULL;
	struct iot_footer f = *old; /* tables are borrowed: never given to iot_footer_done */
	int r;

	books = calloc(f.n_books + 1, sizeof(*books));
	windows = calloc(f.n_windows + f.n_books + 1, sizeof(*windows));
	if (!books || !windows)
		return -ENOMEM;
	if (f.n_books)
		memcpy(books, f.books, f.n_books * sizeof(*books));
	if (f.n_windows)
		memcpy(windows, f.windows, f.n_windows * sizeof(*windows));
	account(rw, &f, books, windows, ret);
	if (ret->lost_records)
		snprintf(f.note, sizeof(f.note),
			 "the disk failed to take the file; %llu records could not be read back",
			 (unsigned long long)ret->lost_records);
	r = iot_writer_seal(rw->w, &f);
	if (r < 0)
		return r;
	ret->kept_records = iot_writer_records(rw->w);
	ret->footer_hash = iot_writer_footer_hash(rw->w);
	return fdatasync(iot_writer_fd(rw->w)) < 0 ? -errno : 0;
}

/* What the file itself says, whole or not at all. */
static int own_footer(struct iot_segment *s, struct iot_footer *ret)
{
	const struct iot_footer *f = iot_segment_footer(s);
	struct iot_footer own;
	int r;

	if (!f)
		return -EBADMSG;
	own = *f;
	own.losses = NULL;
	own.open = NULL;
	r = iot_segment_load_ledger(s, &own.losses, &own.n_losses, NULL);
	if (r == 0)
		r = iot_segment_load_open(s, &own.open, &own.n_open, NULL);
	if (r < 0) {
		free(own.losses);
		return r;
	}
	*ret = own;
	return 0;
}

static int rewrite(struct rewrite *rw, const struct iot_footer *f, int dirfd, const char *name,
		   struct iot_rewritten *ret)
{
	struct iot_footer own = {0};
	int r;

	if (!f) {
		r = own_footer(rw->s, &own);
		if (r < 0)
			return r;
	}
	r = iot_batch_new_stream(iot_segment_info(rw->s)->stream, 1,
				 &rw->b); /* grows with the blocks */
	if (r == 0)
		r = iot_writer_open(dirfd, name, iot_segment_info(rw->s), &rw->w);
	if (r == 0) {
		r = copy_blocks(rw);
		if (r == 0)
			r = seal(rw, f ? f : &own, ret);
		if (r < 0)
			(void)unlinkat(dirfd, name, 0);
	}
	if (!f) {
		free(own.losses);
		free(own.open);
	}
	return r;
}

int iot_rewrite(struct iot_segment *s, const struct iot_footer *f, int out_dirfd,
		const char *out_name, struct iot_rewritten *ret)
{
	struct rewrite rw = {.s = s, .kind = iot_stream_block_kind(iot_segment_info(s)->stream)};
	struct iot_rewritten done = {0};
	int r;

	if (!rw.kind)
		return -EPROTONOSUPPORT;
	r = rewrite(&rw, f, out_dirfd, out_name, &done);
	iot_writer_close(rw.w);
	iot_batch_free(rw.b);
	iot_written_done(&rw.kept);
	if (r < 0)
		return r;
	*ret = done;
	return 0;
}
