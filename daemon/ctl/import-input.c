// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-input.c - the files of a trace: found, read in pieces, and what they are.
 *
 * A file is read once, from its beginning to its end, so that a pipe will do. All that is read goes into one hash,
 * which becomes the id of the capture: the same trace imported twice gives copies of one capture, not two.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/blktrace_api.h>

#include "daemon/ctl/import.h"

#define BUF_SIZE (4U * IMPORT_BLOCK_MAX)
#define DETECT_BYTES IMPORT_BLOCK_MAX
#define SUFFIX ".blktrace."

const char *import_format_name(enum import_format format)
{
	static const char *const names[] = {[IMPORT_BLKTRACE] = "blktrace",
					    [IMPORT_BLKPARSE] = "blkparse",
					    [IMPORT_PERF] = "perf"};

	return names[format];
}

int import_input_open(const char *path, struct iot_fingerprint *hash, struct import_input *ret,
		      struct iot_error *err)
{
	struct import_input in = {.path = path, .fd = -EBADF, .hash = hash};
	int r = 0;

	if (strcmp(path, "-") == 0) {
		in.path = "standard input";
		in.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (in.fd < 0)
			return iot_error_set(err, -errno, "%s: %s", in.path, strerror(errno));
	} else {
		r = iot_open_file(path, true, &in.fd, err);
		if (r < 0)
			return r;
	}
	in.buf = malloc(BUF_SIZE + 1);
	if (!in.buf) {
		close(in.fd);
		return iot_error_set(err, -ENOMEM, "out of memory");
	}
	*ret = in;
	return 0;
}

void import_input_done(struct import_input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -EBADF;
	free(in->buf);
	in->buf = NULL;
}

static int fill(struct import_input *in, struct iot_error *err)
{
	ssize_t got;

	if (in->at > 0) {
		memmove(in->buf, in->buf + in->at, in->n - in->at);
		in->n -= in->at;
		in->at = 0;
	}
	do {
		got = read(in->fd, in->buf + in->n, BUF_SIZE - in->n);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return iot_error_set(err, -errno, "%s: %s", in->path, strerror(errno));
	if (got == 0)
		in->end = true;
	else if (in->hash)
		iot_fingerprint_add(in->hash, in->buf + in->n, (size_t)got);
	in->n += (size_t)got;
	return 0;
}

int import_input_peek(struct import_input *in, size_t n, const char **ret, size_t *ret_n,
		      struct iot_error *err)
{
	while (in->n - in->at < n && !in->end) {
		int r = fill(in, err);

		if (r < 0)
			return r;
	}
	*ret = in->buf + in->at;
	*ret_n = IOT_MIN(n, in->n - in->at);
	return 0;
}

void import_input_take(struct import_input *in, size_t n)
{
	in->at += n;
	in->offset += n;
}

int import_input_line(struct import_input *in, char **ret, struct iot_error *err)
{
	char *end;

	while (!(end = memchr(in->buf + in->at, '\n', in->n - in->at)) && !in->end) {
		int r;

		if (in->n - in->at >= IMPORT_BLOCK_MAX) {
			in->line++;
			return import_line_error(in, "is longer than any line of a trace", err);
		}
		r = fill(in, err);
		if (r < 0)
			return r;
	}
	if (!end && in->n == in->at)
		return IMPORT_END;
	*ret = in->buf + in->at;
	in->line++;
	if (!end) {
		/* The last line, without newline; fill() left room, or there would be one. */
		end = in->buf + in->n;
		import_input_take(in, (size_t)(end - *ret));
	} else {
		import_input_take(in, (size_t)(end - *ret) + 1);
	}
	*end = '\0';
	if (strlen(*ret) != (size_t)(end - *ret))
		return import_line_error(in, "has a NUL: this is no text", err);
	return 0;
}

int import_line_error(const struct import_input *in, const char *what, struct iot_error *err)
{
	return iot_error_set(err, -EBADMSG, "%s: line %llu: %s", in->path,
			     (unsigned long long)in->line, what);
}

/* ---- which files ------------------------------------------------------------------------------- */

void import_paths_done(struct import_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->paths[i]);
	free(p->paths);
	*p = (struct import_paths){0};
}

static int add_path(struct import_paths *p, const char *dir, const char *name)
{
	char **paths = reallocarray(p->paths, p->n + 1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	p->paths = paths;
	if (asprintf(&p->paths[p->n], "%s%s%s", dir ? dir : "", dir ? "/" : "", name) < 0)
		return -ENOMEM;
	p->n++;
	return 0;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* All DIR/BASE.blktrace.N; base NULL: of any base. -ENOENT: there is none. */
static int add_files_of(struct import_paths *p, const char *dir, const char *base)
{
	const size_t before = p->n;
	DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (errno = 0, e = readdir(d))) {
		const char *at = strstr(e->d_name, SUFFIX), *digits;

		if (!at || at == e->d_name)
			continue;
		digits = at + strlen(SUFFIX);
		if (!*digits || digits[strspn(digits, "0123456789")])
			continue;
		if (!base || (strlen(base) == (size_t)(at - e->d_name) &&
			      strncmp(base, e->d_name, strlen(base)) == 0))
			r = add_path(p, dir, e->d_name);
	}
	/* A list that broke off would be a trace without some of its CPUs. */
	if (r == 0)
		r = -errno;
	closedir(d);
	if (r < 0)
		return r;
	if (p->n == before)
		return -ENOENT;
	qsort(p->paths + before, p->n - before, sizeof(*p->paths), by_version);
	return 0;
}

static int add_argument(struct import_paths *p, const char *arg)
{
	const char *slash = strrchr(arg, '/');
	_cleanup_free_ char *dir = NULL;
	size_t len = strlen(arg);
	int r;

	if (strcmp(arg, "-") == 0)
		return add_path(p, NULL, arg);
	dir = strdup(arg);
	if (!dir)
		return -ENOMEM;
	while (len > 1 && dir[len - 1] == '/')
		dir[--len] = '\0';
	r = add_files_of(p, dir, NULL);
	if (r != -ENOTDIR && r != -ENOENT)
		return r;
	if (r == -ENOENT && access(arg, F_OK) == 0)
		return r; /* a directory without any */
	if (access(arg, F_OK) == 0)
		return add_path(p, NULL, arg);
	free(dir);
	dir = slash ? strndup(arg, (size_t)(slash - arg) + (slash == arg)) : strdup(".");
	if (!dir)
		return -ENOMEM;
	r = add_files_of(p, dir, slash ? slash + 1 : arg);
	return r == -ENOTDIR ? -ENOENT : r;
}

int import_paths_find(char **args, size_t n, struct import_paths *ret, struct iot_error *err)
{
	struct import_paths p = {0};

	for (size_t i = 0; i < n; i++) {
		int r = add_argument(&p, args[i]);

		if (r == 0)
			continue;
		import_paths_done(&p);
		return r == -ENOENT ? iot_error_set(err, r,
						    "%s: no such file, and no %s" SUFFIX "0 or so",
						    args[i], args[i])
				    : iot_error_set(err, r, "%s: %s", args[i], strerror(-r));
	}
	*ret = p;
	return 0;
}

/* ---- which format ------------------------------------------------------------------------------ */

int import_detect(struct import_input *in, enum import_format *ret, struct iot_error *err)
{
	_cleanup_free_ char *text = NULL;
	uint32_t magic = 0;
	const char *data, *what;
	size_t n;
	int r;

	r = import_input_peek(in, DETECT_BYTES, &data, &n, err);
	if (r < 0)
		return r;
	if (n >= sizeof(magic))
		memcpy(&magic, data, sizeof(magic));
	if ((magic & 0xffffff00U) == BLK_IO_TRACE_MAGIC ||
	    (__builtin_bswap32(magic) & 0xffffff00U) == BLK_IO_TRACE_MAGIC) {
		*ret = IMPORT_BLKTRACE;
		return 0;
	}
	text = strndup(data, n);
	if (!text)
		return iot_error_set(err, -ENOMEM, "out of memory");
	for (char *line = text, *next; line; line = next) {
		struct import probe = {0}; /* no sort: what is found is not kept */
		bool found;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (import_blkparse_line(&probe, line, &what) == 0)
			*ret = IMPORT_BLKPARSE;
		else if (import_perf_line(&probe, line, &what) == 0)
			*ret = IMPORT_PERF;
		found = probe.n_events > 0;
		import_done(&probe);
		if (found)
			return 0;
	}
	return iot_error_set(err, -EBADMSG,
			     "%s: is neither blktrace's binary, nor text of blkparse or of perf "
			     "script with block events",
			     in->path);
}
