// SPDX-License-Identifier: BSD-2-Clause
/*
 * writer.c - one segment file from its header to its trailer.
 *
 * Invariant: w->offset is the end of the last whole frame, and the file ends there whenever no call
 * is running and no error was met while cutting. Everything is written at w->offset and counted
 * (offset, index, sums) only when all of it is in the file. After a failed write the file is cut
 * back; should even that fail, the next call cuts first, before it writes anything.
 *
 * Sealing is a series of writes; its state is put back as a whole, so that it may be tried again
 * when there is room.
 *
 * On a full disk there would be none, and without a footer a file proves nothing. So room behind the end
 * is allocated ahead (iot_writer_reserve): records are refused before they take of it, sealing may.
 */
#include "format/writer.h"

#include "format/reader-internal.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <xxhash.h>

#define LOSSES_PER_BLOCK IOT_BLOCK_RECORDS

/* What a failed seal puts back. */
struct progress {
	uint64_t offset;
	uint64_t next_seq;
	uint64_t n_requests;
	uint64_t n_open;
	uint64_t n_losses;
	uint64_t raw_bytes;
	size_t n_index;
};

struct iot_writer {
	int fd;
	bool torn; /* bytes behind offset could not be cut */
	bool keeps_room;
	bool sealed;
	uint64_t reserve;  /* room that sealing is to find; 0: none is kept */
	uint64_t ahead;	   /* that much more is allocated at a time, where it is to be had */
	uint64_t room_end; /* the file's blocks are allocated up to here */
	uint32_t n_rings;
	enum iot_stream stream;
	struct progress at;
	struct iot_index_entry *index;
	size_t index_room;
	struct iot_block_encoder *encoder;
	uint64_t header_hash;
	uint64_t footer_hash;
};

#define XFS_MAGIC 0x58465342

/*
 * File systems where blocks allocated behind the end (FALLOC_FL_KEEP_SIZE) were seen to take a write and its
 * sync with the disk full, and to be freed by a truncation to the size that the file has anyway. Not
 * btrfs: a write into them fails for want of room for metadata, and that truncation does nothing.
 */
static bool keeps_room(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 &&
	       ((uint32_t)st.f_type == EXT4_SUPER_MAGIC || (uint32_t)st.f_type == XFS_MAGIC ||
		(uint32_t)st.f_type == TMPFS_MAGIC);
}

static int allocate(struct iot_writer *w, uint64_t end)
{
	int r;

	do {
		r = fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)w->at.offset,
			      (off_t)(end - w->at.offset));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	w->room_end = end;
	return 0;
}

/* Room for size bytes, and for sealing behind them. Only want of room is an error. */
static int make_room(struct iot_writer *w, uint64_t size)
{
	uint64_t end =
		w->at.offset + size + w->reserve + w->at.n_index * sizeof(struct iot_disk_index);
	int r;

	if (!w->reserve || end <= w->room_end)
		return 0;
	r = allocate(w, end + w->ahead);
	if (r == -ENOSPC || r == -EDQUOT)
		r = allocate(w, end);
	if (r == -ENOSPC || r == -EDQUOT)
		return r;
	if (r < 0) /* not here: sealing finds room or waits for it */
		w->reserve = 0;
	return 0;
}

void iot_writer_reserve(struct iot_writer *w, uint64_t bytes, uint64_t ahead)
{
	if (!w->keeps_room)
		return;
	w->reserve = bytes;
	w->ahead = ahead;
}

/* What is not needed any more; wasted if that fails. */
static void give_back_room(struct iot_writer *w)
{
	if (w->room_end > w->at.offset)
		(void)!ftruncate(w->fd, (off_t)w->at.offset);
	w->room_end = 0;
}

static int cut(struct iot_writer *w)
{
	struct stat st;
	int r;

	/* Nothing to cut: then the room ahead stays ours. */
	if (fstat(w->fd, &st) == 0 && (uint64_t)st.st_size == w->at.offset) {
		w->torn = false;
		return 0;
	}
	do {
		r = ftruncate(w->fd, (off_t)w->at.offset);
	} while (r < 0 && errno == EINTR);
	w->torn = r < 0;
	if (r < 0)
		return -errno;
	w->room_end = 0;
	(void)make_room(w, 0); /* the next write of records tries again, and says so */
	return 0;
}

/* All of it at the end of the last whole frame, or nothing. Does not move w->at.offset. */
static int write_whole(struct iot_writer *w, const void *data, size_t size)
{
	const uint8_t *p = data;
	size_t done = 0;
	int r;

	if (w->torn) {
		r = cut(w);
		if (r < 0)
			return r;
	}
	while (done < size) {
		/* Not write(2): after a cut the descriptor's own position would leave a hole. */
		ssize_t n = pwrite(w->fd, p + done, size - done, (off_t)(w->at.offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			/* The cause is the failed write; a failed cut is remembered in w->torn. */
			(void)cut(w);
			return r;
		}
		done += (size_t)n;
	}
	return 0;
}

static int write_header(struct iot_writer *w, const struct iot_segment_info *info)
{
	_cleanup_(iot_buf_done) struct iot_buf buf = {0};
	int r;

	r = iot_meta_header_encode(info, &buf, &w->header_hash);
	if (r < 0)
		return r;
	r = write_whole(w, buf.data, buf.size);
	if (r < 0)
		return r;
	w->at.offset = buf.size;
	return 0;
}

int iot_writer_open(int dirfd, const char *name, const struct iot_segment_info *info,
		    struct iot_writer **ret)
{
	_cleanup_(iot_writer_closep) struct iot_writer *w = NULL;
	int r;

	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = -EBADF;
	w->n_rings = info->n_rings;
	w->stream = info->stream;
	r = iot_block_encoder_new(&w->encoder);
	if (r < 0)
		return r;
	w->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (w->fd < 0)
		return -errno;
	w->keeps_room = keeps_room(w->fd);
	r = write_header(w, info);
	if (r < 0) {
		/* Nothing is recorded in it; left behind it would speak of records that were lost. */
		(void)unlinkat(dirfd, name, 0);
		return r;
	}
	*ret = IOT_TAKE_PTR(w);
	return 0;
}

struct iot_writer *iot_writer_close(struct iot_writer *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0)
		close(w->fd);
	iot_block_encoder_free(w->encoder);
	free(w->index);
	free(w);
	return NULL;
}

/* Room for one more index row, before anything is written. */
static int reserve_index(struct iot_writer *w)
{
	size_t room = IOT_MAX((size_t)64, w->index_room * 2);
	struct iot_index_entry *index;

	if (w->at.n_index < w->index_room)
		return 0;
	index = realloc(w->index, room * sizeof(*index));
	if (!index)
		return -ENOMEM;
	w->index = index;
	w->index_room = room;
	return 0;
}

/* A whole block of the file, at the end of the last one. */
static int note_block(struct iot_writer *w, const struct iot_block_info *info)
{
	int r = reserve_index(w);

	if (r < 0)
		return r;
	w->index[w->at.n_index++] = (struct iot_index_entry){
		.offset = w->at.offset,
		.header_hash = info->header_hash,
		.first_ns = info->first_ns,
		.last_ns = info->last_ns,
		.size = (uint32_t)info->size,
		.count = info->count,
		.kind = info->kind,
	};
	w->at.offset += info->size;
	w->at.next_seq = info->seq + 1;
	w->at.raw_bytes += info->raw_bytes;
	switch (info->kind) {
	case IOT_BLOCK_REQUESTS:
	case IOT_BLOCK_PACKETS:
		w->at.n_requests += info->count;
		break;
	case IOT_BLOCK_OPEN:
		w->at.n_open += info->count;
		break;
	default:
		w->at.n_losses += info->count;
	}
	return 0;
}

static int append_block(struct iot_writer *w, const struct iot_block_info *info, const void *block)
{
	int r;

	/* Room first: what is in the file must be in the index. */
	r = reserve_index(w);
	if (r < 0)
		return r;
	r = write_whole(w, block, info->size);
	return r < 0 ? r : note_block(w, info);
}

static int put_batch(struct iot_writer *w, enum iot_block_kind kind, const struct iot_batch *b,
		     const struct iot_span *spans, size_t n_spans)
{
	struct iot_block_info info;
	const uint8_t *data;
	size_t size;
	int r;

	r = iot_block_encode(w->encoder, kind, w->at.next_seq, b, spans, n_spans, &data, &size,
			     &info);
	if (r < 0)
		return r;
	return append_block(w, &info, data);
}

int iot_writer_put(struct iot_writer *w, const struct iot_batch *b, const struct iot_span *spans,
		   size_t n_spans)
{
	struct iot_block_info info;
	const uint8_t *data;
	size_t size;
	int r;

	assert(!w->sealed);
	assert(n_spans == 0 || n_spans == w->n_rings);
	assert(iot_batch_stream(b) == w->stream);

	if (iot_batch_count(b) == 0)
		return 0;
	r = iot_block_encode(w->encoder, iot_stream_block_kind(w->stream), w->at.next_seq, b, spans,
			     n_spans, &data, &size, &info);
	if (r < 0)
		return r;
	r = make_room(w, info.size);
	return r < 0 ? r : append_block(w, &info, data);
}

int iot_writer_copy(struct iot_writer *w, const struct iot_block_info *info, const void *block)
{
	assert(!w->sealed);

	if (info->seq < w->at.next_seq)
		return -EINVAL;
	return append_block(w, info, block);
}

/* ---- going on with a dead writer's file ---- */

static bool is_expected(const struct iot_segment_info *a, const struct iot_segment_info *b)
{
	return a->stream == b->stream && a->epoch == b->epoch && a->seq == b->seq &&
	       a->n_rings == b->n_rings && a->n_cpus == b->n_cpus &&
	       memcmp(a->capture_id, b->capture_id, sizeof(a->capture_id)) == 0;
}

/* Takes the blocks that stay into w's index. */
static int take_blocks(struct iot_writer *w, struct iot_segment *s, uint64_t columns,
		       iot_writer_seen_fn fn, void *arg, struct iot_error *err)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	struct iot_block_info info;
	enum iot_gap gap;
	struct iot_walk walk;
	int r;

	r = iot_batch_new_stream(w->stream, IOT_BLOCK_RECORDS, &b);
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	w->at.offset = iot_segment_data_start(s);
	iot_walk_init(s, &walk);
	while ((r = iot_walk_next(s, &walk, &info, &gap, err)) != IOT_READ_END) {
		if (r < 0)
			return r;
		if (r == IOT_READ_GAP && gap != IOT_GAP_UNFINISHED)
			return iot_error_set(err, -EBADMSG, "%s: offset %llu: damaged",
					     iot_segment_path(s), (unsigned long long)info.offset);
		/* What seals follows the records: it is written anew. */
		if (r == IOT_READ_GAP || info.kind != iot_stream_block_kind(w->stream))
			return 0;
		r = iot_segment_read_block(s, &info, columns, b, err);
		if (r >= 0)
			r = note_block(w, &info);
		if (r >= 0)
			r = fn(arg, &info, b);
		if (r < 0)
			return r;
	}
	return 0;
}

int iot_writer_resume(int dirfd, const char *name, const struct iot_segment_info *expect,
		      uint64_t columns, iot_writer_seen_fn fn, void *arg, struct iot_writer **ret,
		      uint64_t *ret_hash, struct iot_error *err)
{
	_cleanup_(iot_writer_closep) struct iot_writer *w = NULL;
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	int fd, r;

	fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return iot_error_set(err, -errno, "%s: cannot open: %s", name, strerror(errno));
	r = iot_segment_open_fd(fd, name, &s, err);
	if (r < 0)
		return r;
	if (!is_expected(iot_segment_info(s), expect))
		return iot_error_set(err, -EBADMSG, "%s: is another segment than its name says",
				     name);
	if (iot_segment_footer(s)) {
		*ret_hash = iot_segment_footer_hash(s);
		return IOT_WRITER_SEALED;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return iot_error_set(err, -ENOMEM, "out of memory");
	w->n_rings = expect->n_rings;
	w->stream = expect->stream;
	w->header_hash = iot_segment_header_hash(s);
	w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (w->fd < 0)
		return iot_error_set(err, -errno, "%s: %s", name, strerror(errno));
	w->keeps_room = keeps_room(w->fd);
	r = iot_block_encoder_new(&w->encoder);
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	r = take_blocks(w, s, columns, fn, arg, err);
	if (r < 0)
		return r;
	/* Cut or not: at the latest the next write does it. */
	(void)cut(w);
	*ret = IOT_TAKE_PTR(w);
	return 0;
}

/* ---- sealing ---- */

static int put_open(struct iot_writer *w, const struct iot_request *open, size_t n)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	size_t i = 0;
	int r;

	if (n == 0)
		return 0;
	r = iot_batch_new((uint32_t)IOT_MIN(n, (size_t)IOT_BLOCK_RECORDS), &b);
	if (r < 0)
		return r;
	while (i < n) {
		iot_batch_clear(b);
		while (i < n) {
			r = iot_batch_add(b, &open[i]);
			if (r < 0)
				return r;
			if (r == IOT_BATCH_FULL)
				break;
			i++;
		}
		r = put_batch(w, IOT_BLOCK_OPEN, b, NULL, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static void hash_freep(XXH64_state_t **hash)
{
	XXH64_freeState(*hash);
}

static int put_losses(struct iot_writer *w, const struct iot_loss *losses, size_t n,
		      uint64_t *ret_hash)
{
	_cleanup_(hash_freep) XXH64_state_t *hash = XXH64_createState();
	int r;

	if (!hash)
		return -ENOMEM;
	XXH64_reset(hash, 0);
	for (size_t i = 0; i < n;) {
		size_t k = IOT_MIN(n - i, (size_t)LOSSES_PER_BLOCK), size;
		struct iot_block_info info;
		const uint8_t *data;

		r = iot_block_encode_losses(w->encoder, w->stream, w->at.next_seq, losses + i, k,
					    hash, &data, &size, &info);
		if (r < 0)
			return r;
		r = append_block(w, &info, data);
		if (r < 0)
			return r;
		i += k;
	}
	*ret_hash = XXH64_digest(hash);
	return 0;
}

/* Footer and trailer in one write: a crash between them would leave a footer nobody finds. */
static int put_footer(struct iot_writer *w, const struct iot_footer *f, uint64_t ledger_hash)
{
	_cleanup_(iot_buf_done) struct iot_buf buf = {0};
	struct iot_meta_footer meta = {
		.footer = *f, /* borrowed */
		.header_hash = w->header_hash,
		.n_requests = w->at.n_requests,
		.n_open = w->at.n_open,
		.n_losses = w->at.n_losses,
		.ledger_hash = ledger_hash,
		.index = w->index,
		.n_index = w->at.n_index,
	};
	uint8_t *trailer;
	uint64_t hash;
	size_t size;
	int r;

	r = iot_meta_footer_encode(&meta, &buf, &hash);
	if (r < 0)
		return r;
	size = buf.size;
	trailer = realloc(buf.data, size + IOT_TRAILER_BYTES);
	if (!trailer)
		return -ENOMEM;
	buf.data = trailer;
	iot_meta_trailer_encode(w->at.offset, (uint32_t)size, buf.data + size);
	r = write_whole(w, buf.data, size + IOT_TRAILER_BYTES);
	if (r < 0)
		return r;
	w->at.offset += size + IOT_TRAILER_BYTES;
	w->footer_hash = hash;
	return 0;
}

static int seal(struct iot_writer *w, const struct iot_footer *f)
{
	uint64_t ledger_hash;
	int r;

	r = put_open(w, f->open, f->n_open);
	if (r < 0)
		return r;
	r = put_losses(w, f->losses, f->n_losses, &ledger_hash);
	if (r < 0)
		return r;
	return put_footer(w, f, ledger_hash);
}

int iot_writer_seal(struct iot_writer *w, const struct iot_footer *f)
{
	struct progress before = w->at;
	int r;

	assert(!w->sealed);

	r = seal(w, f);
	if (r < 0) {
		w->at = before;
		(void)cut(w); /* remembered in w->torn */
		return r;
	}
	w->sealed = true;
	give_back_room(w);
	return 0;
}

int iot_writer_fd(const struct iot_writer *w)
{
	return w->fd;
}

uint64_t iot_writer_bytes(const struct iot_writer *w)
{
	return w->at.offset;
}

uint64_t iot_writer_records(const struct iot_writer *w)
{
	return w->at.n_requests;
}

uint64_t iot_writer_raw_bytes(const struct iot_writer *w)
{
	return w->at.raw_bytes;
}

uint64_t iot_writer_footer_hash(const struct iot_writer *w)
{
	return w->footer_hash;
}
