// SPDX-License-Identifier: BSD-2-Clause
/*
 * resolve.c - see resolve.h.
 *
 * Directories are read, and only entries whose number is wanted are looked at, so the walk costs one
 * openat(2) per directory. It leaves no trace where the kernel allows that (O_NOATIME): a reader of
 * records should not cause writes.
 */
#include "daemon/ctl/resolve.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#define MAX_DEPTH 256U /* directories open at a time; deeper ones count as not read */
#define SEC UINT64_C(1000000000)

struct walk {
	struct resolve_want *wants;
	size_t n;
	size_t n_missing;
	bool whole; /* numbers may repeat (btrfs): walk on when all are found */
	uint64_t mount_id;
	dev_t dev; /* where the kernel does not tell mounts apart (before 5.8): this device only */
	struct resolve_walk *stats;
	char path[PATH_MAX];
	size_t len;
};

static int compare_wants(const void *a, const void *b)
{
	const struct resolve_want *x = a, *y = b;

	return iot_cmp_u64(x->ino, y->ino);
}

static struct resolve_want *find_want(const struct walk *w, uint64_t ino)
{
	const struct resolve_want key = {.ino = ino};

	/* Without any there is no table, which bsearch must not be given. */
	return w->n ? bsearch(&key, w->wants, w->n, sizeof(*w->wants), compare_wants) : NULL;
}

static int look(int fd, const char *name, int flags, struct statx *st)
{
	return statx(fd, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		     STATX_INO | STATX_TYPE | STATX_BTIME | STATX_MNT_ID, st) < 0
		       ? -errno
		       : 0;
}

static uint64_t stat_dev(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

static bool same_mount(const struct walk *w, const struct statx *st)
{
	return st->stx_mask & STATX_MNT_ID ? st->stx_mnt_id == w->mount_id : stat_dev(st) == w->dev;
}

static int found(struct walk *w, struct resolve_want *want, const struct statx *st)
{
	uint64_t born = (uint64_t)st->stx_btime.tv_sec * SEC + st->stx_btime.tv_nsec;

	if ((st->stx_mask & STATX_BTIME) && want->last_ns && born > want->last_ns) {
		if (want->state == RESOLVE_NOT_FOUND)
			want->state = RESOLVE_REUSED;
		return 0;
	}
	if (want->path) {
		/* Another name of the same file is as good; the same number elsewhere is not. */
		if (want->found_dev != stat_dev(st))
			want->state = RESOLVE_AMBIGUOUS;
		return 0;
	}
	want->path = strdup(w->path);
	if (!want->path)
		return -ENOMEM;
	want->state = RESOLVE_FOUND;
	want->found_dev = stat_dev(st);
	w->n_missing--;
	return 0;
}

static int walk_dir(struct walk *w, int fd, unsigned int depth);

static int enter(struct walk *w, int parent, const char *name, unsigned int depth)
{
	struct statx st;
	int fd, r;

	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		/* Gone since it was listed, or no directory any more. */
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			w->stats->n_denied++;
		return 0;
	}
	r = look(fd, "", AT_EMPTY_PATH, &st);
	if (r < 0 || !same_mount(w, &st)) {
		close(fd);
		return 0;
	}
	return walk_dir(w, fd, depth + 1);
}

static int entry(struct walk *w, int fd, const struct dirent *de, unsigned int depth)
{
	struct resolve_want *want = find_want(w, de->d_ino);
	bool dir = de->d_type == DT_DIR;
	struct statx st;
	int r;

	if (want || de->d_type == DT_UNKNOWN) {
		if (look(fd, de->d_name, 0, &st) < 0)
			return 0;
		dir = S_ISDIR(st.stx_mode);
		/* What is mounted on a directory hides it: readdir(3) still has the number below. */
		want = find_want(w, st.stx_ino);
		if (want && same_mount(w, &st)) {
			r = found(w, want, &st);
			if (r < 0)
				return r;
		}
	}
	return dir ? enter(w, fd, de->d_name, depth) : 0;
}

/* Closes fd. */
static int walk_dir(struct walk *w, int fd, unsigned int depth)
{
	const struct dirent *de;
	size_t len = w->len;
	DIR *dir = NULL;
	int r = 0;

	if (depth < MAX_DEPTH)
		dir = fdopendir(fd);
	if (!dir) {
		w->stats->n_denied++;
		close(fd);
		return 0;
	}
	w->stats->n_dirs++;
	while (r == 0 && (w->n_missing || w->whole) && (de = readdir(dir))) {
		int n;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		n = snprintf(w->path + len, sizeof(w->path) - len, "/%s", de->d_name);
		if (n < 0 || (size_t)n >= sizeof(w->path) - len) {
			w->stats->n_denied++;
			continue;
		}
		w->len = len + (size_t)n;
		r = entry(w, fd, de, depth);
	}
	w->len = len;
	w->path[len] = '\0';
	closedir(dir);
	return r;
}

int resolve_walk(const char *mount, struct resolve_want *wants, size_t n, struct resolve_walk *ret)
{
	_cleanup_free_ struct walk *w = calloc(1, sizeof(*w));
	size_t len = strlen(mount);
	struct resolve_want *want;
	struct timespec now;
	struct statfs fs;
	struct statx st;
	int fd, r;

	if (!w)
		return -ENOMEM;
	while (len && mount[len - 1] == '/')
		len--;
	if (len >= sizeof(w->path))
		return -ENAMETOOLONG;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (struct resolve_walk){.at_ns = (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec};
	fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = look(fd, "", AT_EMPTY_PATH, &st);
	if (r >= 0 && fstatfs(fd, &fs) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	if (n)
		qsort(wants, n, sizeof(*wants), compare_wants);
	w->wants = wants;
	w->n = w->n_missing = n;
	w->whole = n && fs.f_type == BTRFS_SUPER_MAGIC;
	w->mount_id = st.stx_mnt_id;
	w->dev = stat_dev(&st);
	w->stats = ret;
	memcpy(w->path, mount, len);
	w->len = len;
	want = find_want(w, st.stx_ino);
	if (want) {
		if (!len)
			w->path[0] = '/';
		r = found(w, want, &st);
		w->path[len] = '\0';
		if (r < 0) {
			close(fd);
			return r;
		}
	}
	return walk_dir(w, fd, 0);
}

/* ---- the device --------------------------------------------------------------------------------- */

/* "id parent major:minor ...". */
static bool parse_mount(const char *line, uint64_t id, uint32_t *ret)
{
	unsigned long long mount;
	unsigned int ma, mi;

	if (sscanf(line, "%llu %*u %u:%u ", &mount, &ma, &mi) != 3 || mount != id)
		return false;
	*ret = ma << 20 | (mi & 0xfffff);
	return true;
}

int resolve_device(const char *path, uint32_t *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	struct statx st;
	int r;

	r = look(AT_FDCWD, path, 0, &st);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.stx_mode))
		return -ENOTDIR;
	*ret = st.stx_dev_major << 20 | (st.stx_dev_minor & 0xfffff);
	/* Without the mount's number (before 5.8) stat's device is right but for btrfs. */
	f = st.stx_mask & STATX_MNT_ID ? fopen("/proc/self/mountinfo", "re") : NULL;
	while (f && getline(&line, &size, f) >= 0)
		if (parse_mount(line, st.stx_mnt_id, ret))
			break;
	return 0;
}
