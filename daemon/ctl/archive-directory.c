// SPDX-License-Identifier: BSD-2-Clause
/*
 * archive-directory.c - a segment into a directory, see archive.h.
 *
 * Written under a name that no reader takes for a segment's, synced, read back from the disk as far as the
 * kernel lets us, and only then renamed: whoever reads the archive sees whole segments only.
 */
#include "daemon/ctl/archive.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_BUFFER (256U << 10)

bool archive_is_remote(const char *destination)
{
	return destination[0] != '/' && destination[0] != '.' && strchr(destination, ':');
}

/* Opens base/place and makes what of it is missing, durably. */
static int open_place(int base, const char *place, int *ret)
{
	_cleanup_close_ int fd = fcntl(base, F_DUPFD_CLOEXEC, 3);
	_cleanup_free_ char *names = strdup(place);
	char *name, *save = NULL;

	if (fd < 0)
		return -errno;
	if (!names)
		return -ENOMEM;
	for (name = strtok_r(names, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		int sub;

		if (mkdirat(fd, name, 0750) == 0) {
			if (fsync(fd) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub < 0)
			return -errno;
		close(fd);
		fd = sub;
	}
	*ret = IOT_TAKE_FD(fd);
	return 0;
}

static int copy(const char *source, int to)
{
	_cleanup_close_ int from = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *buf = malloc(COPY_BUFFER);
	int r;

	if (from < 0)
		return -errno;
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(from, buf, COPY_BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = iot_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int write_part(int dir, const char *part, const struct archive_item *item)
{
	_cleanup_close_ int fd =
		openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)(item->mtime_ns / 1000000000U),
		 .tv_nsec = (long)(item->mtime_ns % 1000000000U)},
	};
	int r;

	if (fd < 0)
		return -errno;
	r = copy(item->source, fd);
	if (r < 0)
		return r;
	/* The time is a convenience; some file systems have none to set. */
	(void)!futimens(fd, times);
	if (fsync(fd) < 0)
		return -errno;
	/* Or the pages that were just written are what is read back. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int check_part(int dir, const char *part, const struct archive_item *item)
{
	_cleanup_close_ int fd = openat(dir, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char digest[IOT_DIGEST_LEN + 1];
	uint64_t bytes;
	int r;

	if (fd < 0)
		return -errno;
	r = iot_digest_fd(fd, digest, &bytes);
	if (r < 0)
		return r;
	return bytes == item->bytes && strcmp(digest, item->digest) == 0 ? 0 : -EBADMSG;
}

static int check_final(int dir, const struct archive_item *item, struct iot_error *err)
{
	_cleanup_close_ int fd =
		openat(dir, item->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	/* Of what is no file, a link among them, only the name is replaced. */
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO
			       ? 0
			       : iot_error_set(err, -errno, "%s/%s: %s", item->place, item->name,
					       strerror(errno));
	if (fstat(fd, &st) < 0)
		return iot_error_set(err, -errno, "%s/%s: %s", item->place, item->name,
				     strerror(errno));
	return S_ISREG(st.st_mode) ? archive_may_replace(fd, item->place, item, err) : 0;
}

int archive_put_directory(const char *destination, const struct archive_item *item,
			  struct iot_error *err)
{
	_cleanup_close_ int base = open(destination, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			    dir = -EBADF;
	_cleanup_free_ char *part = NULL;
	int r;

	/* Not made: where it should have been mounted, this would fill the disk below. */
	if (base < 0)
		return iot_error_set(err, -errno, "%s: %s", destination, strerror(errno));
	r = open_place(base, item->place, &dir);
	if (r < 0)
		return iot_error_set(err, r, "%s/%s: %s", destination, item->place, strerror(-r));
	r = check_final(dir, item, err);
	if (r < 0)
		return r;
	if (asprintf(&part, ".%s.part", item->name) < 0)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = write_part(dir, part, item);
	if (r == 0)
		r = check_part(dir, part, item);
	if (r == 0 && renameat(dir, part, dir, item->name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dir, part, 0);
		return iot_error_set(err, r, "%s/%s/%s: %s", destination, item->place, item->name,
				     r == -EBADMSG ? "what was read back differs" : strerror(-r));
	}
	if (fsync(dir) < 0)
		return iot_error_set(err, -errno, "%s/%s: %s", destination, item->place,
				     strerror(errno));
	return 0;
}
