// SPDX-License-Identifier: BSD-2-Clause
/*
 * store-retain.c - what may stay: sealed segments up to a size, an age and a floor of free space.
 *
 * Where somebody archives, what is in the archive goes first, and the others only if that is not enough or by
 * their age; they are counted, so that it can be said. Within both, oldest first, by (time of sealing, capture, sequence): the modification time of a sealed file is
 * that of its last write, and nothing changes it later. Files that are not sealed segments (open,
 * .bad, the operator's own) are neither counted nor touched.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <time.h>

#include "daemon/store-internal.h"
#include "format/shipped.h"

struct sealed {
	struct timespec mtime;
	uint64_t bytes;
	bool shipped;
	struct store_entry entry;
	char name[128];
};

static int cmp_sealed(const void *a, const void *b)
{
	const struct sealed *x = a, *y = b;

	if (x->shipped != y->shipped)
		return x->shipped ? -1 : 1;
	if (x->mtime.tv_sec != y->mtime.tv_sec)
		return x->mtime.tv_sec < y->mtime.tv_sec ? -1 : 1;
	if (x->mtime.tv_nsec != y->mtime.tv_nsec)
		return x->mtime.tv_nsec < y->mtime.tv_nsec ? -1 : 1;
	if (strcmp(x->entry.capture_hex, y->entry.capture_hex) != 0)
		return strcmp(x->entry.capture_hex, y->entry.capture_hex);
	return iot_cmp_u64(x->entry.seq, y->entry.seq);
}

static int list_sealed(struct store *s, const struct iot_shipped *notes, struct sealed **ret,
		       size_t *ret_n)
{
	_cleanup_free_ struct sealed *all = NULL;
	size_t n = 0, room = 0;
	struct dirent *d;
	DIR *dir;
	int fd, r = 0;

	fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while ((errno = 0, d = readdir(dir))) {
		struct store_entry e;
		struct stat st;

		if (store_parse_name(d->d_name, STORE_SUFFIX_SEALED, &e) < 0 ||
		    strlen(d->d_name) >= sizeof(all->name) ||
		    fstatat(s->dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (n == room) {
			size_t more = room ? 2 * room : 64;
			struct sealed *grown = reallocarray(all, more, sizeof(*all));

			if (!grown) {
				closedir(dir);
				return -ENOMEM;
			}
			all = grown;
			room = more;
		}
		all[n] = (struct sealed){
			.mtime = st.st_mtim, .bytes = (uint64_t)st.st_size, .entry = e};
		memcpy(all[n].name, d->d_name, strlen(d->d_name) + 1); /* it fits: see above */
		all[n].shipped = notes &&
				 iot_shipped_find(notes, d->d_name, all[n].bytes,
						  (uint64_t)st.st_mtim.tv_sec * 1000000000U +
							  (uint64_t)st.st_mtim.tv_nsec);
		n++;
	}
	if (errno)
		r = -errno;
	closedir(dir);
	if (r < 0)
		return r;
	if (n)
		qsort(all, n, sizeof(*all), cmp_sealed);
	*ret = IOT_TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

static int free_bytes(const struct store *s, uint64_t *ret)
{
	struct statvfs v;

	if (fstatvfs(s->dirfd, &v) < 0)
		return -errno;
	*ret = (uint64_t)v.f_bavail * v.f_frsize;
	return 0;
}

static bool too_old(const struct sealed *f, const struct iot_retention *r,
		    const struct timespec *now)
{
	uint64_t age_s = now->tv_sec > f->mtime.tv_sec ? (uint64_t)(now->tv_sec - f->mtime.tv_sec)
						       : 0;

	return r->max_age_ns && age_s > r->max_age_ns / 1000000000ULL;
}

int store_retain(struct store *s, const struct iot_retention *retention, struct store_usage *ret)
{
	_cleanup_(iot_shipped_freep) struct iot_shipped *notes = NULL;
	_cleanup_free_ struct sealed *all = NULL;
	struct store_usage u = {};
	struct timespec now;
	size_t n = 0, i;
	int r;

	/* A note that cannot be read: somebody archives, and nothing is known to have arrived. */
	r = retention->shipped ? iot_shipped_load(retention->shipped, &notes, NULL) : -ENOENT;
	if (r == -ENOMEM)
		return r;
	u.archived = r != -ENOENT;
	r = list_sealed(s, notes, &all, &n);
	if (r < 0)
		return r;
	r = free_bytes(s, &u.free_bytes);
	if (r < 0)
		return r;
	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return -errno;
	u.segments = n;
	for (i = 0; i < n; i++) {
		u.bytes += all[i].bytes;
		u.unshipped_segments += u.archived && !all[i].shipped;
	}
	for (i = 0; i < n; i++) {
		bool over = retention->max_bytes && u.bytes > retention->max_bytes;
		bool full = retention->min_free_bytes && u.free_bytes < retention->min_free_bytes;

		if (!over && !full && !too_old(&all[i], retention, &now))
			continue;
		if (unlinkat(s->dirfd, all[i].name, 0) == 0) {
			s->deleted_segments++;
			s->deleted_bytes += all[i].bytes;
			s->deleted_unshipped += u.archived && !all[i].shipped;
		} else if (errno != ENOENT) {
			return -errno;
		}
		u.unshipped_segments -= u.archived && !all[i].shipped;
		u.segments--;
		u.bytes -= all[i].bytes;
		r = free_bytes(s, &u.free_bytes);
		if (r < 0)
			return r;
	}
	u.deleted_segments = s->deleted_segments;
	u.deleted_bytes = s->deleted_bytes;
	u.deleted_unshipped = s->deleted_unshipped;
	*ret = u;
	return 0;
}
