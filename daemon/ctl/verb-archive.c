// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-archive.c - sealed segments of a state directory into an archive, each until it has arrived.
 *
 * A pass looks at what is sealed and not noted as shipped, oldest first, and tries each once; what has arrived is
 * noted at once (format/shipped.h). Passes go on until one finds nothing to do, with growing pauses while
 * nothing arrives; what is refused, as not whole or because another whole one is there, is not worth a pass
 * of its own. Nothing else is kept: a copy that was not noted is made again, to the same name.
 *
 * --json: {destination, shipped, bytes, failed}: since the start, and of the last pass.
 */
#include "daemon/ctl/archive.h"
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define PAUSE_MIN_S 1U
#define PAUSE_MAX_S 300U

struct sealed {
	char *name;
	uint64_t bytes;
	uint64_t mtime_ns;
};

struct archive {
	const char *destination;
	const char *dir;
	const char *state;
	struct sealed *sealed;
	size_t n;
	size_t cap;
	uint64_t shipped;
	uint64_t bytes;
	uint64_t failed;
	uint64_t refused; /* of failed: will be next time, too */
};

/* ---- what there is ------------------------------------------------------------------------------ */

static void forget(struct archive *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->sealed[i].name);
	a->n = 0;
}

static int cmp_sealed(const void *x, const void *y)
{
	const struct sealed *a = x, *b = y;

	return a->mtime_ns != b->mtime_ns ? iot_cmp_u64(a->mtime_ns, b->mtime_ns)
					  : strcmp(a->name, b->name);
}

/* What the daemon has sealed; blanks would not survive the note, and no name of its has any. */
static bool is_sealed_name(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, ".iot") == 0 && name[0] != '.' &&
	       n == strspn(name,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

static int add_sealed(struct archive *a, const char *name, const struct stat *st)
{
	struct sealed *more;

	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 64;

		more = reallocarray(a->sealed, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		a->sealed = more;
		a->cap = cap;
	}
	a->sealed[a->n] = (struct sealed){
		.name = strdup(name),
		.bytes = (uint64_t)st->st_size,
		.mtime_ns =
			(uint64_t)st->st_mtim.tv_sec * 1000000000U + (uint64_t)st->st_mtim.tv_nsec,
	};
	if (!a->sealed[a->n].name)
		return -ENOMEM;
	a->n++;
	return 0;
}

static int look(struct archive *a)
{
	DIR *dir = opendir(a->dir);
	struct dirent *d;
	struct stat st;
	int r = 0;

	forget(a);
	if (!dir)
		return -errno;
	while (r == 0 && (errno = 0, d = readdir(dir))) {
		/* Gone since: retention. */
		if (!is_sealed_name(d->d_name) ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		r = add_sealed(a, d->d_name, &st);
		errno = 0;
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	if (a->n > 1)
		qsort(a->sealed, a->n, sizeof(*a->sealed), cmp_sealed);
	return r;
}

/* ---- the note ----------------------------------------------------------------------------------- */

/* Written anew at each pass: without what is not here any more, and whole again after a line that was cut. */
static int write_note(const struct archive *a, const struct iot_shipped *known, int *ret_fd)
{
	_cleanup_free_ char *temp = NULL;
	_cleanup_close_ int fd = -EBADF;
	FILE *f;
	int r = 0;

	if (asprintf(&temp, "%s.new", a->state) < 0)
		return -ENOMEM;
	fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	f = fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 3), "w");
	if (!f)
		return -errno;
	fprintf(f, "iotraced-archive 1 %s\n", a->destination);
	for (size_t i = 0; known && i < a->n; i++) {
		const struct sealed *s = &a->sealed[i];
		const struct iot_shipped_entry *e =
			iot_shipped_find(known, s->name, s->bytes, s->mtime_ns);

		if (e)
			fprintf(f, "%s %llu %llu %s\n", e->name, (unsigned long long)e->bytes,
				(unsigned long long)e->mtime_ns, e->digest);
	}
	if (fflush(f) != 0 || fsync(fd) < 0)
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(temp, a->state) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret_fd = IOT_TAKE_FD(fd);
	return 0;
}

/* *ret_known: NULL if nothing is there yet, or is in another place. */
static int open_note(const struct archive *a, struct iot_shipped **ret_known, int *ret_fd,
		     struct iot_error *err)
{
	_cleanup_(iot_shipped_freep) struct iot_shipped *known = NULL;
	int r;

	r = iot_shipped_load(a->state, &known, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (known && strcmp(iot_shipped_destination(known), a->destination) != 0) {
		fprintf(stderr,
			"iotracectl: %s is about another destination (%s): everything is shipped "
			"anew\n",
			a->state, iot_shipped_destination(known));
		known = iot_shipped_free(known);
	}
	r = write_note(a, known, ret_fd);
	if (r < 0) {
		if (err)
			err->text[0] = '\0';
		return iot_error_set(err, r, "%s: %s", a->state, strerror(-r));
	}
	*ret_known = IOT_TAKE_PTR(known);
	return 0;
}

static int note(int fd, const struct archive_item *item)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s %llu %llu %s\n", item->name,
			 (unsigned long long)item->bytes, (unsigned long long)item->mtime_ns,
			 item->digest);
	int r;

	if (n < 0 || (size_t)n >= sizeof(line))
		return -ENAMETOOLONG;
	r = iot_write_all(fd, line, (size_t)n);
	return r < 0 ? r : fdatasync(fd) < 0 ? -errno : 0;
}

/* ---- one segment -------------------------------------------------------------------------------- */

static void safe_word(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++)
		buf[n++] = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
					   (*s >= '0' && *s <= '9') || strchr("._-", *s)
				   ? *s
				   : '_';
	buf[n] = '\0';
	/* Neither a directory's own names nor one that is hidden. */
	if (n == 0 || buf[0] == '.')
		snprintf(buf, size, "unknown");
}

/* By what the file says of itself. */
static void choose_place(const char *path, const struct sealed *f, char *buf, size_t size)
{
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	const char *stream = strncmp(f->name, "packet-", 7) == 0 ? "packet" : "block";
	uint64_t begin_ns = f->mtime_ns;
	char host[65] = "unknown", day[16];
	struct tm tm;
	time_t t;

	if (iot_segment_open(path, &s, NULL) == 0) {
		const struct iot_segment_info *info = iot_segment_info(s);

		safe_word(info->host, host, sizeof(host));
		stream = iot_stream_name(info->stream);
		begin_ns = iot_segment_realtime_ns(s, info->clocks.monotonic_ns);
	}
	t = (time_t)(begin_ns / 1000000000U);
	if (!gmtime_r(&t, &tm) || strftime(day, sizeof(day), "%Y-%m-%d", &tm) == 0)
		snprintf(day, sizeof(day), "unknown");
	snprintf(buf, size, "host=%s/stream=%s/date=%s", host, stream, day);
}

static int digest_source(const char *path, const struct sealed *f, struct archive_item *item,
			 int *ret_fd)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t bytes;
	int r;

	if (fd < 0)
		return -errno;
	r = iot_digest_fd(fd, item->digest, &bytes);
	if (r < 0)
		return r;
	if (bytes != f->bytes)
		return -ESTALE;
	*ret_fd = IOT_TAKE_FD(fd);
	return 0;
}

static int check_source(struct archive *a, int fd, const char *path, struct iot_error *err)
{
	struct iot_error why = {0};
	int r = archive_whole(fd, path, &why);

	a->refused += r == -EBADMSG;
	return r < 0 ? iot_error_set(err, r, "not shipped: %.400s", why.text) : 0;
}

/* Positive: it is gone, or another file by now. */
static int ship(struct archive *a, const struct sealed *f, int note_fd, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *path = NULL;
	char place[160];
	struct archive_item item = {
		.name = f->name, .place = place, .bytes = f->bytes, .mtime_ns = f->mtime_ns};
	int r;

	if (asprintf(&path, "%s/%s", a->dir, f->name) < 0)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = digest_source(path, f, &item, &fd);
	if (r == -ENOENT || r == -ESTALE)
		return 1;
	if (r < 0)
		return iot_error_set(err, r, "%s: %s", path, strerror(-r));
	r = check_source(a, fd, path, err);
	if (r < 0)
		return r;
	item.source = path;
	choose_place(path, f, place, sizeof(place));
	if (archive_is_remote(a->destination))
		r = archive_put_remote(a->destination, &item, err);
	else
		r = archive_put_directory(a->destination, &item, err);
	a->refused += r == -EEXIST;
	if (r < 0)
		return r == -ENOENT && access(path, F_OK) < 0 ? 1 : r;
	r = note(note_fd, &item);
	if (r < 0)
		return iot_error_set(err, r, "%s: %s", a->state, strerror(-r));
	a->shipped++;
	a->bytes += f->bytes;
	return 0;
}

/* ---- passes ------------------------------------------------------------------------------------- */

/* *ret_done: how many were shipped now. a->failed: how many were not. */
static int pass(struct archive *a, uint64_t *ret_done, struct iot_error *err)
{
	_cleanup_(iot_shipped_freep) struct iot_shipped *known = NULL;
	_cleanup_close_ int fd = -EBADF;
	uint64_t before = a->shipped;
	int r;

	a->failed = 0;
	a->refused = 0;
	*ret_done = 0;
	r = look(a);
	if (r < 0)
		return iot_error_set(err, r, "%s: %s", a->dir, strerror(-r));
	r = open_note(a, &known, &fd, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < a->n; i++) {
		const struct sealed *f = &a->sealed[i];
		struct iot_error why = {0};

		if (known && iot_shipped_find(known, f->name, f->bytes, f->mtime_ns))
			continue;
		r = ship(a, f, fd, &why);
		if (r < 0) {
			a->failed++;
			(void)ctl_fail(CTL_ERROR, "%s: %s", f->name, why.text);
		}
	}
	*ret_done = a->shipped - before;
	return 0;
}

static int passes(struct archive *a, bool once)
{
	unsigned int pause_s = PAUSE_MIN_S;

	for (;;) {
		struct iot_error err = {0};
		uint64_t done;
		int r = pass(a, &done, &err);

		if (r < 0)
			(void)ctl_fail(CTL_ERROR, "%s", err.text);
		if (once || (r == 0 && done == 0 && a->failed == a->refused))
			return r < 0 || a->failed ? CTL_ERROR : CTL_OK;
		/* Something arrives: more may have been sealed meanwhile, and what failed may get through now. */
		pause_s = done ? PAUSE_MIN_S : IOT_MIN(2 * pause_s, PAUSE_MAX_S);
		if (r < 0 || a->failed)
			sleep(pause_s);
	}
}

static int lock_note(const char *state, int *ret_fd)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -EBADF;

	if (asprintf(&path, "%s.lock", state) < 0)
		return -ENOMEM;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	*ret_fd = IOT_TAKE_FD(fd);
	return 0;
}

const char *ctl_shipped_file(const struct ctl *c)
{
	const char *file = getenv("IOTRACED_ARCHIVE_STATE");

	return c->state ? c->state : file && *file ? file : IOT_SHIPPED_FILE;
}

static int say(const struct ctl *c, const struct archive *a)
{
	struct json_object *o;
	char size[CTL_HUMAN_MAX];

	if (!c->json) {
		printf("%s: %llu segments (%s) shipped, %llu failed\n", a->destination,
		       (unsigned long long)a->shipped, ctl_human_size(a->bytes, size),
		       (unsigned long long)a->failed);
		return CTL_OK;
	}
	o = json_object_new_object();
	if (!o)
		return ctl_fail(CTL_ERROR, "out of memory");
	json_object_object_add(o, "destination", ctl_json_text(a->destination));
	json_object_object_add(o, "shipped", ctl_json_u64(a->shipped));
	json_object_object_add(o, "bytes", ctl_json_u64(a->bytes));
	json_object_object_add(o, "failed", ctl_json_u64(a->failed));
	return ctl_json_print(o);
}

int verb_archive(struct ctl *c, int argc, char **argv)
{
	struct archive a = {.state = ctl_shipped_file(c)};
	_cleanup_close_ int lock = -EBADF;
	int r, code;

	if (argc < 2 || argc > 3)
		return ctl_fail(CTL_USAGE,
				"archive needs a destination: archive DESTINATION [DIRECTORY]");
	a.destination = argv[1];
	a.dir = argc > 2 ? argv[2] : ctl_state_dir();
	if (strpbrk(a.destination, "\n\r"))
		return ctl_fail(CTL_USAGE, "archive: a destination has no line breaks");
	r = lock_note(a.state, &lock);
	if (r == -EWOULDBLOCK)
		return ctl_fail(CTL_ERROR, "%s: another iotracectl archive is at work", a.state);
	if (r < 0)
		return ctl_fail(r == -EACCES ? CTL_DENIED : CTL_ERROR, "%s: %s", a.state,
				strerror(-r));
	code = passes(&a, c->once);
	forget(&a);
	free(a.sealed);
	r = say(c, &a);
	return code != CTL_OK ? code : r;
}
