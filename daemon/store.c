// SPDX-License-Identifier: BSD-2-Clause
/*
 * store.c - the state directory: opening it, owning it, naming and publishing.
 *
 * Ownership is an fcntl record lock: it belongs to the process, not to the open file description, so
 * descriptors inherited or kept in systemd's store do not keep it alive, and SIGKILL drops it.
 * Publishing never replaces an existing name; where the file system cannot promise that
 * (RENAME_NOREPLACE: overlayfs before 5.x, NFS, some FUSE), a hard link does.
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/vfs.h>

#include "daemon/crash-point.h"
#include "daemon/store-internal.h"
#include "format/reader.h"

static const char hex_digits[] = "0123456789abcdef";

static int open_directory(const char *dir, bool *ret_created, struct iot_error *err)
{
	int fd, r;

	fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*ret_created = mkdir(dir, 0750) == 0;
		if (!*ret_created && errno != EEXIST) {
			r = -errno;
			if (r == -ENOENT)
				return iot_error_set(
					err, r,
					"%s: the state directory's parent does not exist; "
					"create it or set state_dir",
					dir);
			return iot_error_set(err, r, "%s: cannot create the state directory: %s",
					     dir, strerror(-r));
		}
		fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		return fd;
	r = -errno;
	if (r == -ENOTDIR)
		return iot_error_set(err, r, "%s: not a directory; set state_dir to one", dir);
	return iot_error_set(err, r, "%s: cannot open the state directory: %s", dir, strerror(-r));
}

static int explain_write(const char *dir, int r, struct iot_error *err)
{
	switch (r) {
	case -EROFS:
		return iot_error_set(err, r,
				     "%s: the file system is read-only; remount it or set "
				     "state_dir to a writable directory",
				     dir);
	case -EACCES:
	case -EPERM:
		return iot_error_set(err, r,
				     "%s: no permission to write; the daemon's user must own "
				     "the state directory",
				     dir);
	case -ENOSPC:
	case -EDQUOT:
		return iot_error_set(err, r,
				     "%s: no space left; free some or lower "
				     "retention.max_size",
				     dir);
	default:
		return iot_error_set(err, r, "%s: cannot write: %s", dir, strerror(-r));
	}
}

static int take_lock(struct store *s, struct iot_error *err)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int r;

	s->lock_fd = openat(s->dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->lock_fd < 0)
		return explain_write(s->path, -errno, err);
	if (fcntl(s->lock_fd, F_SETLK, &l) == 0)
		return 0;
	r = -errno;
	if (r != -EAGAIN && r != -EACCES)
		return iot_error_set(err, r, "%s/lock: cannot lock: %s", s->path, strerror(-r));
	l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fcntl(s->lock_fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK)
		return iot_error_set(err, -EBUSY,
				     "%s: in use by process %d; one daemon per state directory",
				     s->path, (int)l.l_pid);
	return iot_error_set(err, -EBUSY,
			     "%s: in use by another process; one daemon per state directory",
			     s->path);
}

/*
 * For readers: of the unsealed files beside a held lock, those of this capture are being recorded, others
 * were left behind. Who finds nothing takes all for left behind, so a full disk is no error here.
 */
static void write_capture(const struct store *s)
{
	char line[sizeof(s->capture_hex) + 1];
	int n = snprintf(line, sizeof(line), "%s\n", s->capture_hex);

	if (ftruncate(s->lock_fd, 0) == 0)
		(void)!pwrite(s->lock_fd, line, (size_t)n, 0);
}

/* Tries the very operation that publishing will need. */
static int check_rename(struct store *s, struct iot_error *err)
{
	static const char from[] = ".rename-check", to[] = ".rename-checked";
	_cleanup_close_ int fd = -EBADF;
	int r = 0;

	(void)unlinkat(s->dirfd, to, 0);
	fd = openat(s->dirfd, from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return explain_write(s->path, -errno, err);
	if (renameat2(s->dirfd, from, s->dirfd, to, RENAME_NOREPLACE) < 0) {
		r = -errno;
		if (r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP) {
			s->no_noreplace = true;
			r = store_rename(s, from, to);
		}
	}
	(void)unlinkat(s->dirfd, from, 0);
	(void)unlinkat(s->dirfd, to, 0);
	return r < 0 ? explain_write(s->path, r, err) : 0;
}

int store_open(const char *dir, const uint8_t capture_id[16], struct store **ret,
	       struct iot_error *err)
{
	struct store *s;
	int r;

	/* The first thing a daemon does on disk: tests may want to kill it from here on. */
	if (crash_point_init() < 0)
		return iot_error_set(err, -EINVAL,
				     "IOTRACED_CRASH_AT: expected NAME or NAME:COUNT");
	s = malloc(sizeof(*s));
	if (!s)
		return iot_error_set(err, -ENOMEM, "out of memory");
	*s = (struct store){.dirfd = -EBADF, .lock_fd = -EBADF};
	memcpy(s->capture_id, capture_id, sizeof(s->capture_id));
	for (unsigned int i = 0; i < 16; i++) {
		s->capture_hex[2 * i] = hex_digits[capture_id[i] >> 4];
		s->capture_hex[2 * i + 1] = hex_digits[capture_id[i] & 15];
	}
	s->path = strdup(dir);
	r = s->path ? open_directory(dir, &s->created, err)
		    : iot_error_set(err, -ENOMEM, "out of memory");
	if (r >= 0) {
		s->dirfd = r;
		r = take_lock(s, err);
	}
	if (r >= 0) {
		write_capture(s);
		r = check_rename(s, err);
	}
	if (r < 0) {
		store_abandon(s);
		return r;
	}
	*ret = s;
	return 0;
}

static bool holds_only_lock(const struct store *s)
{
	int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	bool only = dir != NULL;
	struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
		    strcmp(d->d_name, "lock") != 0)
			only = false;
	if (dir)
		closedir(dir);
	return only;
}

struct store *store_abandon(struct store *s)
{
	/* While the lock is held: nobody else begins there. rmdir(2) takes nothing that is in use. */
	if (s && s->created && s->dirfd >= 0 && holds_only_lock(s)) {
		(void)unlinkat(s->dirfd, "lock", 0);
		(void)rmdir(s->path);
	}
	return store_close(s);
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dirfd >= 0)
		close(s->dirfd);
	free(s->path);
	free(s);
	return NULL;
}

int store_dirfd(const struct store *s)
{
	return s->dirfd;
}

bool store_is_elsewhere(const struct store *s)
{
	struct stat held, found;

	if (fstat(s->dirfd, &held) < 0)
		return false;
	return stat(s->path, &found) < 0 || held.st_dev != found.st_dev ||
	       held.st_ino != found.st_ino;
}

const char *store_path(const struct store *s)
{
	return s->path;
}

const uint8_t *store_capture_id(const struct store *s)
{
	return s->capture_id;
}

void store_name(const struct store *s, enum iot_stream stream, uint64_t seq, bool sealed, char *buf,
		size_t size)
{
	int n = snprintf(buf, size, "%s-%s-%010llu%s", iot_stream_name(stream), s->capture_hex,
			 (unsigned long long)seq, sealed ? STORE_SUFFIX_SEALED : STORE_SUFFIX_OPEN);

	assert(n > 0 && (size_t)n < size);
	(void)n;
}

int store_parse_name(const char *name, const char *suffix, struct store_entry *ret)
{
	static const enum iot_stream streams[] = {IOT_STREAM_BLOCK, IOT_STREAM_PACKET};
	size_t len = strlen(name), suffix_len = strlen(suffix);
	char digits[24];

	if (len <= suffix_len || strcmp(name + len - suffix_len, suffix) != 0)
		return -EINVAL;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(streams); i++) {
		const char *stream = iot_stream_name(streams[i]);
		size_t at = strlen(stream), n_digits;
		struct store_entry e = {.stream = streams[i]};

		if (strncmp(name, stream, at) != 0 || name[at] != '-')
			continue;
		at++;
		if (len - suffix_len < at + 33 || strspn(name + at, hex_digits) != 32 ||
		    name[at + 32] != '-')
			return -EINVAL;
		memcpy(e.capture_hex, name + at, 32);
		at += 33;
		n_digits = len - suffix_len - at;
		if (n_digits < 10 || n_digits >= sizeof(digits))
			return -EINVAL;
		memcpy(digits, name + at, n_digits);
		digits[n_digits] = 0;
		if (iot_parse_u64(digits, &e.seq) < 0)
			return -EINVAL;
		*ret = e;
		return 0;
	}
	return -EINVAL;
}

int store_rename(const struct store *s, const char *from, const char *to)
{
	struct stat st;

	if (!s->no_noreplace)
		return renameat2(s->dirfd, from, s->dirfd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
	if (linkat(s->dirfd, from, s->dirfd, to, 0) == 0)
		return unlinkat(s->dirfd, from, 0) < 0 ? -errno : 0;
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return -errno;
	/* No links either (FAT): the lock says that nobody else creates names here. */
	if (fstatat(s->dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(s->dirfd, from, s->dirfd, to) < 0 ? -errno : 0;
}

int store_sync_dir(const struct store *s)
{
	/* Some network file systems refuse fsync of a directory: then there is nothing to order. */
	if (fsync(s->dirfd) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

int store_set_aside(const struct store *s, const char *name, const char *base)
{
	char bad[160];
	int r;

	snprintf(bad, sizeof(bad), "%s%s", base, STORE_SUFFIX_BAD);
	r = store_rename(s, name, bad);
	for (unsigned int i = 1; r == -EEXIST && i < 100; i++) {
		snprintf(bad, sizeof(bad), "%s%s.%u", base, STORE_SUFFIX_BAD, i);
		r = store_rename(s, name, bad);
	}
	return r < 0 ? r : store_sync_dir(s);
}

static struct iot_segment *open_footer(const struct store *s, const char *name)
{
	struct iot_segment *seg = NULL;
	int fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || iot_segment_open_fd(fd, name, &seg, NULL) < 0)
		return NULL;
	if (!iot_segment_footer(seg))
		seg = iot_segment_close(seg);
	return seg;
}

/* Somebody recovered the segment while it was being written: an older copy has its name. */
static bool is_stale_copy(const struct store *s, const char *copy, const char *sealed)
{
	_cleanup_(iot_segment_closep) struct iot_segment *a = open_footer(s, copy);
	_cleanup_(iot_segment_closep) struct iot_segment *b = open_footer(s, sealed);

	enum iot_block_kind kind;

	if (!a || !b || iot_segment_info(a)->stream != iot_segment_info(b)->stream)
		return false;
	kind = iot_stream_block_kind(iot_segment_info(a)->stream);
	return iot_segment_footer(a)->reason == IOT_SEAL_RECOVERED &&
	       iot_segment_footer(b)->reason != IOT_SEAL_RECOVERED &&
	       iot_segment_declared(a, kind) <= iot_segment_declared(b, kind);
}

static bool is_name_of(const struct store *s, const char *name, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(s->dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int store_rewrite(struct store *s, enum iot_stream stream, uint64_t seq, int fd,
		  const struct iot_footer *f, int *ret_fd, struct iot_rewritten *ret)
{
	_cleanup_(iot_segment_closep) struct iot_segment *seg = NULL;
	_cleanup_close_ int copy = -EBADF;
	char name[128], tmp[160];
	int r;

	store_name(s, stream, seq, false, name, sizeof(name));
	snprintf(tmp, sizeof(tmp), "%.*s%s", (int)(strlen(name) - strlen(STORE_SUFFIX_OPEN)), name,
		 STORE_SUFFIX_RECOVERING);
	if (!is_name_of(s, name, fd))
		return -ENOENT;
	r = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (r < 0)
		return -errno;
	r = iot_segment_open_fd(r, name, &seg, NULL);
	if (r < 0)
		return r;
	r = iot_rewrite(seg, f, s->dirfd, tmp, ret);
	if (r < 0)
		return r;
	crash_point("rewritten");
	copy = openat(s->dirfd, tmp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* In one step: whoever is killed here leaves the one or the other under this name. */
	if (copy < 0 || renameat(s->dirfd, tmp, s->dirfd, name) < 0) {
		r = -errno;
		(void)unlinkat(s->dirfd, tmp, 0);
		return r;
	}
	crash_point("rewritten-renamed");
	*ret_fd = IOT_TAKE_FD(copy);
	return 0;
}

int store_publish(struct store *s, enum iot_stream stream, uint64_t seq, int fd, bool sync,
		  bool *ret_unsynced)
{
	char from[128], to[128];
	int r;

	store_name(s, stream, seq, false, from, sizeof(from));
	store_name(s, stream, seq, true, to, sizeof(to));
	crash_point("sealed");
	if (sync && fdatasync(fd) < 0) {
		r = -errno;
		/* Interrupted is not failed: the kernel has not told of anything yet. */
		*ret_unsynced = r != -EINTR;
		return r;
	}
	crash_point("synced");
	r = store_rename(s, from, to);
	if (r == -EEXIST && is_stale_copy(s, to, from)) {
		char base[128];

		snprintf(base, sizeof(base), "%.*s",
			 (int)(strlen(from) - strlen(STORE_SUFFIX_OPEN)), from);
		r = store_set_aside(s, to, base);
		if (r >= 0)
			r = store_rename(s, from, to);
	}
	/* Renamed by an attempt whose directory sync failed; a file that is gone is no success. */
	if (r == -ENOENT && is_name_of(s, to, fd))
		r = 0;
	if (r < 0)
		return r;
	crash_point("renamed");
	return sync ? store_sync_dir(s) : 0;
}
