// SPDX-License-Identifier: BSD-2-Clause
/*
 * store-recover.c - segments that a dead predecessor left unsealed.
 *
 * A torn file is never changed: what can be kept of it is written to a new file, made durable, given
 * the final name, and only then is the torn one removed. A crash anywhere in between leaves either
 * the torn file (done again) or both (the torn one is removed). A predecessor may also have died
 * between sealing and renaming: then the file is whole and only its name is missing.
 */
#include <dirent.h>
#include <fcntl.h>

#include "daemon/crash-point.h"
#include "daemon/store-internal.h"
#include "format/verify.h"

struct outcome {
	uint64_t kept_records;
	uint64_t lost_bytes;
};

static int set_aside(struct store *s, const char *name, const char *base)
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

/* The final name exists already: did an interrupted recovery or publication make it from us? */
static int finish_interrupted(struct store *s, const char *name, const char *base,
			      const char *final)
{
	_cleanup_(iot_segment_closep) struct iot_segment *seg = NULL;
	struct stat a, b;
	bool ours = false;
	int fd;

	if (fstatat(s->dirfd, name, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(s->dirfd, final, &b, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
		ours = true; /* linked, not yet unlinked */
	} else {
		fd = openat(s->dirfd, final, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			return -errno;
		if (iot_segment_open_fd(fd, final, &seg, NULL) == 0) {
			const struct iot_footer *f = iot_segment_footer(seg);

			ours = f && f->reason == IOT_SEAL_RECOVERED;
		}
	}
	if (!ours)
		return set_aside(s, name, base);
	if (unlinkat(s->dirfd, name, 0) < 0)
		return -errno;
	return store_sync_dir(s);
}

static int rebuild(struct store *s, struct iot_segment *seg, const char *name, const char *base,
		   const char *final, struct outcome *ret, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	char tmp[160];
	int r;

	snprintf(tmp, sizeof(tmp), "%s%s", base, STORE_SUFFIX_RECOVERING);
	(void)unlinkat(s->dirfd, tmp, 0);
	r = iot_recover(seg, s->dirfd, tmp, &ret->kept_records, &ret->lost_bytes, err);
	if (r < 0) {
		(void)unlinkat(s->dirfd, tmp, 0);
		return r;
	}
	crash_point("recovered");
	fd = openat(s->dirfd, tmp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fdatasync(fd) < 0)
		return iot_error_set(err, -errno, "%s: cannot sync: %s", tmp, strerror(errno));
	r = store_rename(s, tmp, final);
	if (r >= 0)
		r = store_sync_dir(s);
	if (r < 0)
		return iot_error_set(err, r, "%s: cannot rename to %s: %s", tmp, final,
				     strerror(-r));
	crash_point("recovered-renamed");
	if (unlinkat(s->dirfd, name, 0) < 0)
		return iot_error_set(err, -errno, "%s: cannot remove: %s", name, strerror(errno));
	return store_sync_dir(s);
}

static int rename_sealed(struct store *s, const char *name, const char *final)
{
	_cleanup_close_ int fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	if (fd < 0 || fdatasync(fd) < 0)
		return -errno;
	r = store_rename(s, name, final);
	return r < 0 ? r : store_sync_dir(s);
}

/* Positive 1: nothing can be recovered from this file. */
#define HOPELESS 1
static int recover_one(struct store *s, const char *name, const char *base, struct outcome *ret,
		       struct iot_error *err)
{
	_cleanup_(iot_segment_closep) struct iot_segment *seg = NULL;
	char final[160];
	struct stat st;
	int fd, r;

	snprintf(final, sizeof(final), "%s%s", base, STORE_SUFFIX_SEALED);
	if (fstatat(s->dirfd, final, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return finish_interrupted(s, name, base, final);
	/* O_NONBLOCK: a FIFO of that name must not hold up the start. */
	fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return iot_error_set(err, -errno, "%s: cannot open: %s", name, strerror(errno));
	r = iot_segment_open_fd(fd, name, &seg, err);
	if (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EISDIR || r == -EINVAL)
		return HOPELESS;
	if (r < 0)
		return r;
	if (iot_segment_state(seg) == IOT_SEGMENT_SEALED) {
		struct iot_verdict *v = calloc(1, sizeof(*v));

		if (!v)
			return -ENOMEM;
		r = iot_verify_segment(seg, v, NULL);
		ret->kept_records = v->n_records;
		if (r >= 0 && v->code < IOT_VERDICT_TORN) {
			free(v);
			return rename_sealed(s, name, final);
		}
		free(v);
	}
	r = rebuild(s, seg, name, base, final, ret, err);
	return r == -EBADMSG ? HOPELESS : r;
}

static int collect(struct store *s, char ***ret_names, size_t *ret_n)
{
	char **names = NULL;
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
		size_t len = strlen(d->d_name), cut = strlen(STORE_SUFFIX_RECOVERING);

		/* A half-made copy: its source is still there. */
		if (len > cut && strcmp(d->d_name + len - cut, STORE_SUFFIX_RECOVERING) == 0) {
			if (store_parse_name(d->d_name, STORE_SUFFIX_RECOVERING, &e) >= 0)
				(void)unlinkat(s->dirfd, d->d_name, 0);
			continue;
		}
		if (store_parse_name(d->d_name, STORE_SUFFIX_OPEN, &e) < 0 ||
		    strcmp(e.capture_hex, s->capture_hex) == 0)
			continue;
		if (n == room) {
			size_t more = room ? 2 * room : 16;
			char **grown = reallocarray(names, more, sizeof(*names));

			if (!grown) {
				r = -ENOMEM;
				break;
			}
			names = grown;
			room = more;
		}
		names[n] = strdup(d->d_name);
		if (!names[n]) {
			r = -ENOMEM;
			break;
		}
		n++;
	}
	if (r >= 0 && errno)
		r = -errno;
	closedir(dir);
	*ret_names = names;
	*ret_n = n;
	return r;
}

static int cmp_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int store_recover(struct store *s, store_recovered_fn notify, void *userdata, size_t *ret_n,
		  struct iot_error *err)
{
	char **names = NULL;
	size_t n = 0, n_recovered = 0;
	int r;

	r = collect(s, &names, &n);
	if (r < 0)
		(void)iot_error_set(err, r, "%s: cannot list: %s", s->path, strerror(-r));
	else if (n)
		qsort(names, n, sizeof(*names), cmp_name);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		size_t len = strlen(names[i]) - strlen(STORE_SUFFIX_OPEN);
		struct outcome o = {};
		struct stat st;
		char base[128];
		int q;

		snprintf(base, sizeof(base), "%.*s", (int)len, names[i]);
		q = recover_one(s, names[i], base, &o, NULL);
		if (q == HOPELESS) {
			if (fstatat(s->dirfd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
				o.lost_bytes = (uint64_t)st.st_size;
			q = set_aside(s, names[i], base);
			if (q >= 0)
				q = -EBADMSG;
		} else if (q >= 0) {
			n_recovered++;
		}
		if (notify)
			notify(userdata, names[i], o.kept_records, o.lost_bytes, q);
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (r < 0)
		return r;
	if (ret_n)
		*ret_n = n_recovered;
	return 0;
}
