// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan-paths.c - from what a person names to segment files: a file is taken as it is, a directory
 * means every *.iot and *.open below it (a state directory, or an archive tree of any depth).
 *
 * Symbolic links are followed where a person named them and nowhere below, so that a tree cannot
 * lead out of itself or into a loop. A directory below that cannot be read is skipped and noted, and
 * so is anything with a segment's name that is no file: there may have been records, which becomes part
 * of the verdict. For the same reason files that the daemon set aside (*.bad) are listed, apart. Files that vanish while the tree is read were deleted by
 * retention or renamed at their seal; the latter are found under their new name.
 *
 * Directories that a verb fills and renames when they are whole (.NAME.tmp-XXXXXX, output-dir.c) are none of the record: the
 * trace, or the segments, that they are made of are elsewhere.
 */
#include "format/scan-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MAX_DEPTH 32

void iot_paths_done(struct iot_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->items[i].path);
	free(p->items);
	free(p->skipped);
	*p = (struct iot_paths){0};
}

static int add_path(struct iot_paths *p, char *path, bool named, bool aside)
{
	struct iot_path *items;

	if (!path)
		return -ENOMEM;
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;

		items = reallocarray(p->items, cap, sizeof(*items));
		if (!items) {
			free(path);
			return -ENOMEM;
		}
		p->items = items;
		p->cap = cap;
	}
	p->items[p->n++] = (struct iot_path){.path = path, .named = named, .aside = aside};
	p->n_aside += aside;
	return 0;
}

/* Only the first few are kept by text; the verdict has room for no more. */
static int skip(struct iot_paths *p, const char *path, int error, const char *what)
{
	struct iot_error *more;

	if (p->first_error == 0)
		p->first_error = error;
	if (p->n_skipped++ >= IOT_PATHS_SKIPPED_MAX)
		return 0;
	more = reallocarray(p->skipped, p->n_skipped, sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->skipped = more;
	more[p->n_skipped - 1] = (struct iot_error){0};
	(void)iot_error_set(&more[p->n_skipped - 1], error, "%s: %s", path, what);
	return 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), k = strlen(suffix);

	return n > k && strcmp(name + n - k, suffix) == 0;
}

static bool is_segment_name(const char *name)
{
	return has_suffix(name, ".iot") || has_suffix(name, ".open");
}

/* What the daemon calls a segment that it could not recover: .bad, .bad.1 and so on. */
static bool is_aside_name(const char *name)
{
	const char *bad = strstr(name, ".bad");

	if (!bad || (strncmp(name, "block-", 6) != 0 && strncmp(name, "packet-", 7) != 0))
		return false;
	return !bad[4] || (bad[4] == '.' && bad[5] && !bad[5 + strspn(bad + 5, "0123456789")]);
}

static bool is_unfinished_name(const char *name)
{
	size_t n = strlen(name), k = strlen(IOT_UNFINISHED IOT_UNFINISHED_RANDOM);

	return name[0] == '.' && n > k + 1 &&
	       strncmp(name + n - k, IOT_UNFINISHED, strlen(IOT_UNFINISHED)) == 0;
}

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	char *r;

	return asprintf(&r, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name) < 0 ? NULL : r;
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Takes ownership of fd. */
static int walk(struct iot_paths *p, int fd, const char *path, unsigned int depth,
		struct iot_error *err)
{
	_cleanup_(close_dir) DIR *dir = fdopendir(fd);
	int r;

	if (!dir) {
		r = -errno;
		close(fd);
		return iot_error_set(err, r, "%s: %s", path, strerror(-r));
	}
	for (;;) {
		_cleanup_free_ char *child = NULL;
		struct dirent *e;
		struct stat st;
		int sub;

		errno = 0;
		e = readdir(dir);
		/* A directory that is gone since held nothing that is still there. */
		if (!e && (errno == ENOENT || errno == ESRCH))
			return 0;
		if (!e)
			return errno ? skip(p, path, -errno, strerror(errno)) : 0;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		child = join(path, e->d_name);
		if (!child)
			return -ENOMEM;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			r = errno == ENOENT ? 0 /* gone since */
					    : skip(p, child, -errno, strerror(errno));
			if (r < 0)
				return r;
			continue;
		}
		if (S_ISREG(st.st_mode)) {
			bool aside = is_aside_name(e->d_name);

			if (!aside && !is_segment_name(e->d_name))
				continue;
			r = add_path(p, IOT_TAKE_PTR(child), false, aside);
			if (r < 0)
				return r;
			continue;
		}
		if (!S_ISDIR(st.st_mode)) {
			if (!is_segment_name(e->d_name))
				continue;
			r = skip(p, child, -EINVAL,
				 S_ISLNK(st.st_mode)
					 ? "a symbolic link (name it to have it followed)"
					 : "a segment's name, but no file");
			if (r < 0)
				return r;
			continue;
		}
		if (is_unfinished_name(e->d_name))
			continue;
		if (depth >= MAX_DEPTH) {
			r = skip(p, child, -ELOOP,
				 "directories nested too deep (name a directory further down)");
			if (r < 0)
				return r;
			continue;
		}
		sub = openat(dirfd(dir), e->d_name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 && (errno == ENOENT || errno == ESRCH))
			continue;
		if (sub < 0) {
			r = skip(p, child, -errno, strerror(errno));
			if (r < 0)
				return r;
			continue;
		}
		r = walk(p, sub, child, depth + 1, err);
		if (r < 0)
			return r;
	}
}

static int cmp_path(const void *a, const void *b)
{
	return strcmp(((const struct iot_path *)a)->path, ((const struct iot_path *)b)->path);
}

int iot_paths_expand(const char *const *paths, size_t n, struct iot_paths *ret,
		     struct iot_error *err)
{
	_cleanup_(iot_paths_done) struct iot_paths p = {0};
	size_t kept = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		size_t before = p.n - p.n_aside;
		struct stat st;
		int fd;

		if (stat(paths[i], &st) < 0)
			return iot_error_set(err, -errno, "%s: %s", paths[i], strerror(errno));
		if (!S_ISDIR(st.st_mode)) {
			r = add_path(&p, strdup(paths[i]), true, false);
			if (r < 0)
				return r;
			continue;
		}
		fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return iot_error_set(err, -errno, "%s: %s", paths[i], strerror(errno));
		r = walk(&p, fd, paths[i], 0, err);
		if (r < 0)
			return r;
		if (p.n - p.n_aside == before && p.n_skipped)
			return iot_error_set(
				err, p.first_error,
				"%s; no segments (*.iot, *.open) in what could be read of %s",
				p.skipped[0].text, paths[i]);
		if (p.n - p.n_aside == before)
			return iot_error_set(err, -ENOENT,
					     "%s: no segments (*.iot, *.open) here or below",
					     paths[i]);
	}
	/* One order for one tree, whatever readdir says; the scan orders by what is in the files. */
	if (p.n > 1)
		qsort(p.items, p.n, sizeof(*p.items), cmp_path);
	/* A file that was named beside its directory is one file. */
	for (size_t i = 0; i < p.n; i++) {
		if (kept && strcmp(p.items[kept - 1].path, p.items[i].path) == 0) {
			p.items[kept - 1].named |= p.items[i].named;
			p.n_aside -= p.items[i].aside;
			free(p.items[i].path);
		} else {
			p.items[kept++] = p.items[i];
		}
	}
	p.n = kept;
	*ret = p;
	p = (struct iot_paths){0};
	return 0;
}

/* "x.open" -> "x.iot", or NULL: a file sealed between readdir and open. */
char *iot_path_sealed(const char *path)
{
	size_t n = strlen(path);
	char *r;

	if (!has_suffix(path, ".open"))
		return NULL;
	return asprintf(&r, "%.*s.iot", (int)(n - 5), path) < 0 ? NULL : r;
}
