// SPDX-License-Identifier: BSD-2-Clause
/*
 * reader.c - opening one segment and reading its blocks, with suspicion.
 *
 * Only pread(2), never mmap: a file that another process truncates gives an error here and a
 * SIGBUS there. A length is believed only after it was held against the file's size (taken once,
 * at opening: what a live writer adds later is for the next reader) and against segment-def.h's
 * limits. A file is `sealed` if trailer, footer, header and index all agree; anything less is
 * `torn`, and its blocks speak for themselves. Walking is in
 * reader-walk.c, what blocks contain in reader-load.c.
 */
#include "format/reader-priv.h"

#include <fcntl.h>
#include <sys/stat.h>

int iot_segment_pread(struct iot_segment *s, uint64_t offset, void *buf, size_t size,
		      struct iot_error *err)
{
	size_t done = 0;
	int fd = iot_segment_fd(s);

	s->gone |= fd == -ENOENT || fd == -ESTALE;
	if (fd < 0)
		return iot_error_set(err, fd, "%s: cannot be opened again: %s", s->path,
				     strerror(-fd));
	while (done < size) {
		ssize_t n = pread(fd, (uint8_t *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return iot_error_set(err, -errno, "%s: offset %llu: %s", s->path,
					     (unsigned long long)(offset + done), strerror(errno));
		if (n == 0)
			return iot_error_set(
				err, -EBADMSG,
				"%s: offset %llu: the file became shorter while it was "
				"read (read it again)",
				s->path, (unsigned long long)(offset + done));
		done += (size_t)n;
	}
	return 0;
}

static int grow(struct iot_segment *s, size_t size)
{
	uint8_t *p;

	if (size <= s->buf_size)
		return 0;
	p = realloc(s->buf, size);
	if (!p)
		return -ENOMEM;
	s->buf = p;
	s->buf_size = size;
	return 0;
}

/* Bytes [offset, offset + size) into the segment's own buffer. */
int iot_segment_load(struct iot_segment *s, uint64_t offset, size_t size, struct iot_error *err)
{
	int r;

	if (offset > s->size || size > s->size - offset)
		return iot_error_set(err, -EBADMSG, "%s: offset %llu: beyond the end of the file",
				     s->path, (unsigned long long)offset);
	r = grow(s, size);
	if (r < 0)
		return iot_error_set(err, r, "%s: out of memory", s->path);
	return iot_segment_pread(s, offset, s->buf, size, err);
}

static int refuse(const char *name, const struct stat *st, struct iot_error *err)
{
	const char *what = S_ISCHR(st->st_mode)	   ? "a character device"
			   : S_ISBLK(st->st_mode)  ? "a block device"
			   : S_ISFIFO(st->st_mode) ? "a pipe"
			   : S_ISSOCK(st->st_mode) ? "a socket"
						   : "not a regular file";

	if (S_ISDIR(st->st_mode))
		return iot_error_set(err, -EISDIR, "%s: is a directory, not a segment file", name);
	return iot_error_set(err, -EINVAL,
			     "%s: is %s; segments are regular files (copy it to one first)", name,
			     what);
}

static int read_header(struct iot_segment *s, struct iot_error *err)
{
	static const uint8_t magic[4] = {IOT_MAGIC_HEADER & 0xff, IOT_MAGIC_HEADER >> 8 & 0xff,
					 IOT_MAGIC_HEADER >> 16 & 0xff, IOT_MAGIC_HEADER >> 24};
	uint8_t prefix[16] = {0};
	struct iot_error why = {0};
	uint32_t size;
	int r;

	if (s->size == 0)
		return iot_error_set(
			err, -EBADMSG,
			"%s: offset 0: empty file (what was recorded in it, if anything, "
			"is gone; look for another copy)",
			s->path);
	r = iot_segment_pread(s, 0, prefix, IOT_MIN(s->size, sizeof(prefix)), err);
	if (r < 0)
		return r;
	if (memcmp(prefix, magic, IOT_MIN(s->size, sizeof(magic))) != 0)
		return iot_error_set(
			err, -EBADMSG,
			"%s: offset 0: not an iotraced segment (it does not begin with "
			"a segment header)",
			s->path);
	if (s->size < sizeof(prefix))
		goto torn;
	/* A future version keeps the first letters and counts up in the last. */
	if (memcmp(prefix + 8, IOT_TAG_HEADER, 8) != 0) {
		if (memcmp(prefix + 8, IOT_TAG_HEADER, 7) == 0)
			return iot_error_set(
				err, -EPROTONOSUPPORT,
				"%s: offset 8: segment format '%c', this program reads "
				"'%c' (use the iotracectl that came with the daemon)",
				s->path, prefix[15] >= 0x20 && prefix[15] < 0x7f ? prefix[15] : '?',
				IOT_TAG_HEADER[7]);
		return iot_error_set(err, -EBADMSG,
				     "%s: offset 8: not an iotraced segment (another kind of LZ4 "
				     "file, or a damaged header)",
				     s->path);
	}
	if (iot_meta_frame_size(prefix, IOT_MAGIC_HEADER, IOT_LIMIT_HEADER_BYTES, &size) < 0)
		return iot_error_set(err, -EBADMSG,
				     "%s: offset 4: damaged header (nothing of this file can be "
				     "attributed; look for another copy)",
				     s->path);
	if (size > s->size)
		goto torn;
	r = iot_segment_load(s, 0, size, err);
	if (r < 0)
		return r;
	r = iot_meta_header_decode(s->buf, size, &s->info, &s->header_hash, &why);
	if (r < 0) {
		s->info = (struct iot_segment_info){0};
		return iot_error_set(err, r, "%s: offset 0: %s", s->path,
				     r == -ENOMEM  ? "out of memory"
				     : why.text[0] ? why.text
						   : "damaged header (nothing of this file can be "
						     "attributed; look for another copy)");
	}
	s->data_start = size;
	return 0;
torn:
	return iot_error_set(err, -EBADMSG,
			     "%s: offset %llu: the file ends inside its header (what was "
			     "recorded in it, if anything, is gone)",
			     s->path, (unsigned long long)s->size);
}

/* The index must tile the space between header and footer, or it describes another file. */
static bool index_fits(const struct iot_segment *s, const struct iot_meta_footer *m,
		       uint64_t footer_offset)
{
	uint64_t pos = s->data_start;

	for (size_t i = 0; i < m->n_index; i++) {
		if (m->index[i].offset != pos || m->index[i].size > footer_offset - pos)
			return false;
		pos += m->index[i].size;
	}
	return pos == footer_offset;
}

static void torn(struct iot_segment *s, bool damaged, const char *fmt, ...) IOT_PRINTF(3, 4);
static void torn(struct iot_segment *s, bool damaged, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->state_text, sizeof(s->state_text), fmt, ap);
	va_end(ap);
	s->damaged = s->damaged || damaged;
}

/* 0 also if there is no whole footer; negative only if the file cannot be read at all. */
static int read_footer(struct iot_segment *s, struct iot_error *err)
{
	uint8_t trailer[IOT_TRAILER_BYTES];
	struct iot_error why = {0};
	uint64_t offset;
	uint32_t size;
	int r;

	s->data_end = s->size;
	if (s->size - s->data_start < IOT_TRAILER_BYTES) {
		torn(s, false, "not sealed: the file has no trailer");
		return 0;
	}
	r = iot_segment_pread(s, s->size - IOT_TRAILER_BYTES, trailer, sizeof(trailer), err);
	if (r < 0)
		return r;
	r = iot_meta_trailer_decode(trailer, s->size, &offset, &size);
	if (r < 0) {
		torn(s, false, "not sealed: the file has no whole trailer");
		return 0;
	}
	if (offset < s->data_start || size > s->size - IOT_TRAILER_BYTES ||
	    size > IOT_LIMIT_FOOTER_BYTES || offset != s->size - IOT_TRAILER_BYTES - size) {
		torn(s, true, "the trailer names a footer at offset %llu that cannot be there",
		     (unsigned long long)offset);
		return 0;
	}
	r = iot_segment_load(s, offset, size, err);
	if (r < 0)
		return r;
	r = iot_meta_footer_decode(s->buf, size, &s->meta, &s->footer_hash, &why);
	if (r == -ENOMEM)
		return iot_error_set(err, r, "%s: out of memory", s->path);
	if (r == -EPROTONOSUPPORT)
		return iot_error_set(err, r, "%s: offset %llu: %s", s->path,
				     (unsigned long long)offset, why.text);
	if (r < 0) {
		s->meta = (struct iot_meta_footer){0};
		s->footer_hash = 0;
		torn(s, true, "the footer at offset %llu is damaged", (unsigned long long)offset);
		return 0;
	}
	if (s->meta.header_hash != s->header_hash || !index_fits(s, &s->meta, offset)) {
		iot_meta_footer_done(&s->meta);
		s->meta = (struct iot_meta_footer){0};
		s->footer_hash = 0;
		torn(s, true, "the footer at offset %llu belongs to another file",
		     (unsigned long long)offset);
		return 0;
	}
	s->sealed = true;
	s->data_end = offset;
	snprintf(s->state_text, sizeof(s->state_text), "sealed");
	return 0;
}

static int open_fd(int fd, const char *name, bool named_file, struct iot_segment **ret,
		   struct iot_error *err)
{
	_cleanup_close_ int owned = fd;
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return iot_error_set(err, -errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(name, &st, err);
	s = calloc(1, sizeof(*s));
	if (!s)
		return iot_error_set(err, -ENOMEM, "%s: out of memory", name);
	s->fd = IOT_TAKE_FD(owned);
	s->can_park = named_file;
	s->size = (uint64_t)st.st_size;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->path = strdup(name);
	if (!s->path)
		return iot_error_set(err, -ENOMEM, "%s: out of memory", name);
	r = read_header(s, err);
	if (r < 0)
		return r;
	r = read_footer(s, err);
	if (r < 0)
		return r;
	iot_segment_rewind(s);
	*ret = IOT_TAKE_PTR(s);
	return 0;
}

int iot_segment_open_fd(int fd, const char *name, struct iot_segment **ret, struct iot_error *err)
{
	return open_fd(fd, name, false, ret, err);
}

int iot_segment_open(const char *path, struct iot_segment **ret, struct iot_error *err)
{
	/* O_NONBLOCK: a named pipe must not hold us; regular files ignore it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return iot_error_set(err, -errno, "%s: %s", path, strerror(errno));
	return open_fd(fd, path, true, ret, err);
}

struct iot_segment *iot_segment_close(struct iot_segment *s)
{
	if (!s)
		return NULL;
	iot_segment_info_done(&s->info);
	iot_meta_footer_done(&s->meta);
	iot_block_decoder_free(s->decoder);
	free(s->buf);
	free(s->path);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return NULL;
}

int iot_segment_fd(struct iot_segment *s)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (s->fd >= 0)
		return s->fd;
	fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT && strlen(s->path) > 5 &&
	    strcmp(s->path + strlen(s->path) - 5, ".open") == 0) {
		/* Sealed and renamed meanwhile: same inode under the final name. */
		_cleanup_free_ char *sealed = NULL;

		if (asprintf(&sealed, "%.*s.iot", (int)strlen(s->path) - 5, s->path) < 0)
			return -ENOMEM;
		fd = open(sealed, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != s->dev || st.st_ino != s->ino)
		return -ESTALE;
	s->fd = IOT_TAKE_FD(fd);
	return s->fd;
}

void iot_segment_park(struct iot_segment *s)
{
	free(IOT_TAKE_PTR(s->buf));
	s->buf_size = 0;
	s->decoder = iot_block_decoder_free(s->decoder);
	if (s->can_park && s->fd >= 0) {
		close(s->fd);
		s->fd = -EBADF;
	}
}

const char *iot_segment_path(const struct iot_segment *s)
{
	return s->path;
}

uint64_t iot_segment_size(const struct iot_segment *s)
{
	return s->size;
}

enum iot_segment_state iot_segment_state(const struct iot_segment *s)
{
	return s->sealed ? IOT_SEGMENT_SEALED : IOT_SEGMENT_TORN;
}

bool iot_segment_unread(const struct iot_segment *s)
{
	return s->unread || s->gone;
}

bool iot_segment_gone(const struct iot_segment *s)
{
	return s->gone;
}

void iot_segment_note_unread(struct iot_segment *s)
{
	s->unread = true;
}

bool iot_segment_damaged(const struct iot_segment *s)
{
	return s->damaged;
}

const char *iot_segment_state_text(const struct iot_segment *s)
{
	return s->state_text;
}

const struct iot_segment_info *iot_segment_info(const struct iot_segment *s)
{
	return &s->info;
}

const struct iot_footer *iot_segment_footer(const struct iot_segment *s)
{
	return s->sealed ? &s->meta.footer : NULL;
}

const struct iot_meta_footer *iot_segment_meta(const struct iot_segment *s)
{
	return s->sealed ? &s->meta : NULL;
}

uint64_t iot_segment_footer_hash(const struct iot_segment *s)
{
	return s->footer_hash;
}

uint64_t iot_segment_header_hash(const struct iot_segment *s)
{
	return s->header_hash;
}

uint64_t iot_segment_data_start(const struct iot_segment *s)
{
	return s->data_start;
}

uint64_t iot_segment_declared(const struct iot_segment *s, enum iot_block_kind kind)
{
	switch (kind) {
	case IOT_BLOCK_REQUESTS:
	case IOT_BLOCK_PACKETS:
		return s->meta.n_requests;
	case IOT_BLOCK_OPEN:
		return s->meta.n_open;
	case IOT_BLOCK_LEDGER:
		return s->meta.n_losses;
	}
	return 0;
}

uint64_t iot_segment_realtime_ns(const struct iot_segment *s, uint64_t monotonic_ns)
{
	return iot_clocks_realtime_ns(&s->info.clocks, monotonic_ns);
}
