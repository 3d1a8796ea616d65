// SPDX-License-Identifier: BSD-2-Clause
/*
 * store-recover.c - segments that a dead predecessor left unsealed.
 *
 * A torn file is never changed: what can be kept of it is written to a new file, made durable, given
 * the final name, and only then is the torn one removed. A crash anywhere in between leaves either
 * the torn file (done again) or both (the torn one is removed). A predecessor may also have died
 * between sealing and renaming: then the file is whole and only its name is missing.
 *
 * A file of the final name may be anybody's (a copy that an operator recovered while the segment was
 * being written is older than what the segment became), so both are read: the one that says more
 * has the final name in the end, and the other is removed only if it holds nothing beyond that.
 */
#include <dirent.h>
#include <fcntl.h>

#include "daemon/crash-point.h"
#include "daemon/store-internal.h"
#include "format/verify.h"

#define COPY_BYTES (1U << 20)

struct outcome {
	uint64_t kept_records;
	uint64_t lost_bytes;
	bool displaced; /* a file of the final name was set aside */
	bool set_aside; /* the unfinished file was */
};

/* What a file holds. Nothing of it is set for a file that is no segment. */
struct content {
	struct iot_segment *seg; /* NULL: no segment */
	bool whole;		 /* sealed, and as its footer says */
	bool recovered;		 /* whole, but made from a torn file: a copy */
	uint64_t n_records;	 /* in blocks that can be read */
	uint64_t n_entries;	 /* of the other kinds: losses, requests in flight */
};

static void content_done(struct content *c)
{
	c->seg = iot_segment_close(c->seg);
}

static bool is_no_segment(int r)
{
	return r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EISDIR || r == -EINVAL;
}

static int count_content(struct content *c)
{
	_cleanup_free_ struct iot_verdict *v = calloc(1, sizeof(*v));
	struct iot_block_info block;
	int r;

	if (!v)
		return -ENOMEM;
	r = iot_verify_segment(c->seg, v, NULL);
	if (r < 0)
		return r;
	c->whole = iot_segment_footer(c->seg) && v->code < IOT_VERDICT_TORN;
	c->recovered = c->whole && iot_segment_footer(c->seg)->reason == IOT_SEAL_RECOVERED;
	c->n_records = v->n_records;
	c->n_entries = 0;
	iot_segment_rewind(c->seg);
	while ((r = iot_segment_next_block(c->seg, &block, NULL)) != IOT_READ_END) {
		if (r < 0)
			return r;
		if (r != IOT_READ_GAP &&
		    block.kind != iot_stream_block_kind(iot_segment_info(c->seg)->stream))
			c->n_entries += block.count;
	}
	iot_segment_rewind(c->seg);
	return 0;
}

/* Positive 1: no segment. count: read all of it, else only what sealing left is looked at. */
#define NO_SEGMENT 1
static int content_open(struct store *s, const char *name, bool count, struct content *ret,
			struct iot_error *err)
{
	struct content c = {};
	int fd, r;

	/* O_NONBLOCK: a FIFO of that name must not hold up the start. */
	fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ELOOP)
		return NO_SEGMENT;
	if (fd < 0)
		return iot_error_set(err, -errno, "%s: cannot open: %s", name, strerror(errno));
	r = iot_segment_open_fd(fd, name, &c.seg, err);
	if (is_no_segment(r))
		return NO_SEGMENT;
	if (r < 0)
		return r;
	if (count || iot_segment_state(c.seg) == IOT_SEGMENT_SEALED) {
		r = count_content(&c);
		if (r < 0) {
			content_done(&c);
			return iot_error_set(err, r, "%s: cannot read: %s", name, strerror(-r));
		}
	}
	*ret = c;
	return 0;
}

static bool holds_all_of(const struct content *a, const struct content *b)
{
	return a->n_records >= b->n_records && a->n_entries >= b->n_entries;
}

static bool same_segment(const struct content *a, const struct content *b)
{
	const struct iot_segment_info *x = iot_segment_info(a->seg), *y = iot_segment_info(b->seg);

	return x->stream == y->stream && x->seq == y->seq &&
	       memcmp(x->capture_id, y->capture_id, sizeof(x->capture_id)) == 0;
}

/* Of an unfinished file and the one that has its final name already: is the former worth more? */
static bool says_more(const struct content *open, const struct content *final)
{
	if (!open->seg)
		return false;
	if (!final->seg)
		return true;
	/* What the daemon sealed itself proves what no copy can prove. */
	if (open->whole && !open->recovered)
		return !final->whole || final->recovered || final->n_records < open->n_records;
	if (final->whole && !final->recovered)
		return false;
	if (open->n_records != final->n_records)
		return open->n_records > final->n_records;
	return open->n_entries > final->n_entries;
}

/*
 * The final name exists already: an interrupted recovery or publication made it from us, or somebody
 * else did. Positive 1: the unfinished file is worth more, the other has to go.
 */
#define DISPLACE 1
static int finish_interrupted(struct store *s, const char *name, const char *base,
			      const char *final, const struct content *open, struct outcome *ret)
{
	_cleanup_(content_done) struct content other = {};
	struct stat a, b;
	bool spare;
	int r;

	if (fstatat(s->dirfd, name, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(s->dirfd, final, &b, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = content_open(s, final, true, &other, NULL);
	if (r < 0)
		return r;
	spare = a.st_dev == b.st_dev && a.st_ino == b.st_ino; /* linked, not yet unlinked */
	if (!spare && says_more(open, &other))
		return DISPLACE;
	/* What is no segment any more had nothing that could be kept when the copy was made, either. */
	if (!spare && other.recovered && !(open->whole && !open->recovered))
		spare = !open->seg || (same_segment(open, &other) && holds_all_of(&other, open));
	ret->kept_records = other.n_records;
	if (!spare) {
		r = store_set_aside(s, name, base);
		ret->set_aside = r >= 0;
		return r < 0 ? r : -EEXIST;
	}
	if (unlinkat(s->dirfd, name, 0) < 0)
		return -errno;
	return store_sync_dir(s);
}

/* Gives name its final name. displace: after the file that has it was set aside. */
static int take_name(struct store *s, const char *name, const char *base, const char *final,
		     bool displace, struct outcome *ret)
{
	int r;

	if (displace) {
		r = store_set_aside(s, final, base);
		if (r < 0)
			return r;
		ret->displaced = true;
	}
	r = store_rename(s, name, final);
	return r < 0 ? r : store_sync_dir(s);
}

static int rebuild(struct store *s, struct iot_segment *seg, const char *name, const char *base,
		   const char *final, bool displace, struct outcome *ret, struct iot_error *err)
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
	r = take_name(s, tmp, base, final, displace, ret);
	if (r < 0)
		return iot_error_set(err, r, "%s: cannot rename to %s: %s", tmp, final,
				     strerror(-r));
	crash_point("recovered-renamed");
	if (unlinkat(s->dirfd, name, 0) < 0)
		return iot_error_set(err, -errno, "%s: cannot remove: %s", name, strerror(errno));
	return store_sync_dir(s);
}

/* Read and write, not copy_file_range(2): that may share with the copy what is not on the disk. */
static int copy_bytes(int from, int to)
{
	_cleanup_free_ uint8_t *buf = malloc(COPY_BYTES);
	ssize_t n;
	int r;

	if (!buf)
		return -ENOMEM;
	while ((n = read(from, buf, COPY_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : iot_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
	return fdatasync(to) < 0 ? -errno : 0;
}

/*
 * A whole file of a daemon that died before it gave it its name. It may have died because the disk failed
 * to take it; the kernel tells that once, and a sync of ours would succeed whatever is on the disk. So it gets
 * its name as a copy, and only where there is no room for one as it is: readers see by its checksums.
 */
static int rename_sealed(struct store *s, const char *name, const char *base, const char *final,
			 bool displace, struct outcome *ret)
{
	_cleanup_close_ int fd = openat(s->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int copy = -EBADF;
	char tmp[160];
	int r;

	if (fd < 0)
		return -errno;
	snprintf(tmp, sizeof(tmp), "%s%s", base, STORE_SUFFIX_RECOVERING);
	(void)unlinkat(s->dirfd, tmp, 0);
	copy = openat(s->dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	r = copy < 0 ? -errno : copy_bytes(fd, copy);
	if (r < 0) {
		(void)unlinkat(s->dirfd, tmp, 0);
		if (r != -ENOSPC && r != -EDQUOT)
			return r;
		if (fdatasync(fd) < 0)
			return -errno;
		return take_name(s, name, base, final, displace, ret);
	}
	crash_point("recovered");
	r = take_name(s, tmp, base, final, displace, ret);
	if (r < 0)
		return r;
	crash_point("recovered-renamed");
	if (unlinkat(s->dirfd, name, 0) < 0)
		return -errno;
	return store_sync_dir(s);
}

/* Positive 1: nothing can be recovered from this file. */
#define HOPELESS 1
static int recover_one(struct store *s, const char *name, const char *base, struct outcome *ret,
		       struct iot_error *err)
{
	_cleanup_(content_done) struct content open = {};
	char final[160];
	struct stat st;
	bool taken;
	int r;

	snprintf(final, sizeof(final), "%s%s", base, STORE_SUFFIX_SEALED);
	taken = fstatat(s->dirfd, final, &st, AT_SYMLINK_NOFOLLOW) == 0;
	r = content_open(s, name, taken, &open, err);
	if (r < 0)
		return r;
	if (taken) {
		r = finish_interrupted(s, name, base, final, &open, ret);
		if (r != DISPLACE)
			return r;
	} else if (r == NO_SEGMENT) {
		return HOPELESS;
	}
	if (open.whole) {
		ret->kept_records = open.n_records;
		return rename_sealed(s, name, base, final, taken, ret);
	}
	r = rebuild(s, open.seg, name, base, final, taken, ret, err);
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

const char *store_recovered_text(const struct store_recovered *r, char *buf, size_t size)
{
	if (r->error == 0)
		snprintf(buf, size, "%s: %llu records kept, %llu bytes cut", r->name,
			 (unsigned long long)r->kept_records, (unsigned long long)r->lost_bytes);
	else if (r->set_aside && r->error == -EBADMSG)
		snprintf(buf, size, "%s: nothing in its %llu bytes can be recovered; kept as .bad",
			 r->name, (unsigned long long)r->lost_bytes);
	else if (r->set_aside && r->error == -EEXIST)
		snprintf(buf, size, "%s: another file of its name holds more; kept as .bad",
			 r->name);
	else
		snprintf(buf, size, "%s: %s; left as it is, the next start tries again", r->name,
			 strerror(-r->error));
	return buf;
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
			q = store_set_aside(s, names[i], base);
			o.set_aside = q >= 0;
			if (q >= 0)
				q = -EBADMSG;
		} else if (q >= 0) {
			n_recovered++;
		}
		if (notify)
			notify(userdata, &(struct store_recovered){.name = names[i],
								   .kept_records = o.kept_records,
								   .lost_bytes = o.lost_bytes,
								   .error = IOT_MIN(q, 0),
								   .set_aside = o.set_aside});
		if (notify && o.displaced) {
			char final[160];

			snprintf(final, sizeof(final), "%s%s", base, STORE_SUFFIX_SEALED);
			notify(userdata, &(struct store_recovered){.name = final,
								   .error = -EEXIST,
								   .set_aside = true});
		}
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
