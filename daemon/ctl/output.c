// SPDX-License-Identifier: BSD-2-Clause
/*
 * output.c - fast buffered output, and files that appear whole or not at all.
 *
 * A temporary file lies beside its target, so that the rename stays within one file system and
 * ENOSPC hits before anything was replaced. SIGINT and SIGTERM remove it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "daemon/ctl/ctl-util.h"

#define OUT_SIZE ((size_t)256 * 1024)

int ctl_out_init(struct ctl_out *o, int fd)
{
	char *buf = malloc(OUT_SIZE);

	if (!buf)
		return -ENOMEM;
	*o = (struct ctl_out){.fd = fd, .buf = buf, .size = OUT_SIZE};
	return 0;
}

void ctl_out_done(struct ctl_out *o)
{
	free(o->buf);
	o->buf = NULL;
}

int ctl_out_flush(struct ctl_out *o)
{
	int r;

	if (o->len && !o->error) {
		r = iot_write_all(o->fd, o->buf, o->len);
		if (r < 0)
			o->error = r;
	}
	o->len = 0;
	return o->error;
}

char *ctl_out_room(struct ctl_out *o, size_t n)
{
	if (o->size - o->len < n && ctl_out_flush(o) < 0)
		o->len = 0; /* sticky error: what follows is dropped in the buffer */
	return o->buf + o->len;
}

void ctl_out_write(struct ctl_out *o, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		size_t part = IOT_MIN(n, (size_t)64 * 1024);

		memcpy(ctl_out_room(o, part), p, part);
		ctl_out_take(o, part);
		p += part;
		n -= part;
	}
}

/* ---- files ------------------------------------------------------------------------------------- */

/* An output and its sidecar at most; set and cleared outside the handler, read in it. */
static const char *volatile temps[4];

static void remove_temps(int sig)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(temps); i++)
		if (temps[i])
			unlink(temps[i]);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void replace_temp(const char *from, const char *to)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(temps); i++)
		if (temps[i] == from) {
			temps[i] = to;
			return;
		}
}

int ctl_file_open(const char *path, bool replace, struct ctl_file *ret)
{
	struct ctl_file f = {.fd = -EBADF, .replace = replace};
	struct stat st;
	mode_t mask;
	int r;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		f.fd = open(path, O_WRONLY | O_CLOEXEC);
		if (f.fd < 0)
			return -errno;
	} else {
		if (!replace && lstat(path, &st) == 0)
			return -EEXIST;
		if (asprintf(&f.temp, "%s.XXXXXX.tmp", path) < 0)
			return -ENOMEM;
		f.fd = mkostemps(f.temp, 4, O_CLOEXEC);
		if (f.fd < 0) {
			r = -errno;
			free(f.temp);
			return r;
		}
		/* mkostemps makes 0600; give what open would have given. */
		mask = umask(0);
		umask(mask);
		replace_temp(NULL, f.temp);
		signal(SIGINT, remove_temps);
		signal(SIGTERM, remove_temps);
		if (fchmod(f.fd, 0666 & ~mask) < 0) {
			r = -errno;
			ctl_file_abort(&f);
			return r;
		}
	}
	f.path = strdup(path);
	if (!f.path) {
		ctl_file_abort(&f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

void ctl_file_abort(struct ctl_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -EBADF;
	if (f->temp) {
		unlink(f->temp);
		replace_temp(f->temp, NULL);
	}
	free(f->temp);
	free(f->path);
	f->temp = f->path = NULL;
}

int ctl_rename_new(int dirfd, const char *from, const char *to)
{
	if (renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dirfd, from, dirfd, to, 0) < 0)
		return -errno;
	return unlinkat(dirfd, from, 0) < 0 ? -errno : 0;
}

int ctl_file_commit(struct ctl_file *f)
{
	int r = 0;

	if (f->temp && fdatasync(f->fd) < 0)
		r = -errno;
	if (close(f->fd) < 0 && r == 0)
		r = -errno;
	f->fd = -EBADF;
	if (r == 0 && f->temp) {
		if (!f->replace)
			r = ctl_rename_new(AT_FDCWD, f->temp, f->path);
		else if (rename(f->temp, f->path) < 0)
			r = -errno;
		if (r == 0) {
			replace_temp(f->temp, NULL);
			free(f->temp);
			f->temp = NULL;
		}
	}
	ctl_file_abort(f);
	return r;
}

int ctl_output_result(int r, const char *name)
{
	if (r == 0 || r == -EPIPE)
		return CTL_OK;
	return ctl_fail(CTL_ERROR, "cannot write %s: %s", name, strerror(-r));
}
