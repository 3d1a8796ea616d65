// SPDX-License-Identifier: BSD-2-Clause
/*
 * shipped.c - which segments are in an archive, see shipped.h.
 */
#include "format/shipped.h"

#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define MAGIC "iotraced-archive 1 "
#define FILE_MAX (256U << 20) /* a million segments */
#define DIGEST_BUFFER (256U << 10)

struct iot_shipped {
	char *text;
	const char *destination;
	struct iot_shipped_entry *entries;
	size_t n;
};

struct iot_shipped *iot_shipped_free(struct iot_shipped *s)
{
	if (!s)
		return NULL;
	free(s->text);
	free(s->entries);
	free(s);
	return NULL;
}

/* The whole file and a NUL, or NULL and *ret_error, a negative errno. The archiver's user owns the path, not its reader. */
static char *read_text(const char *path, size_t *ret_len, int *ret_error, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len = 0;

	*ret_error = iot_open_file(path, false, &fd, err);
	if (*ret_error < 0)
		return NULL;
	if (fstat(fd, &st) < 0) {
		*ret_error = -errno;
		return NULL;
	}
	if (st.st_size > FILE_MAX) {
		*ret_error = -EINVAL;
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*ret_error = -errno;
			return NULL;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_len = len;
	return IOT_TAKE_PTR(text);
}

/* Cuts line at its blanks; false if it is not NAME BYTES MTIME DIGEST. */
static bool parse_line(char *line, struct iot_shipped_entry *ret)
{
	char *words[4], *save = NULL;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(words); i++) {
		words[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (!words[i])
			return false;
	}
	if (strtok_r(NULL, " ", &save) || strlen(words[3]) != IOT_DIGEST_LEN ||
	    strspn(words[3], "0123456789abcdef") != IOT_DIGEST_LEN ||
	    iot_parse_u64(words[1], &ret->bytes) < 0 || iot_parse_u64(words[2], &ret->mtime_ns) < 0)
		return false;
	ret->name = words[0];
	memcpy(ret->digest, words[3], IOT_DIGEST_LEN + 1);
	return true;
}

/* By name; those of one name in the order of the file, which the text's addresses have. */
static int cmp_entry(const void *a, const void *b)
{
	const struct iot_shipped_entry *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : iot_cmp_u64((uintptr_t)x->name, (uintptr_t)y->name);
}

static int parse(struct iot_shipped *s, size_t len)
{
	size_t n_lines = 0, kept = 0;
	char *line, *end;

	/* A NUL would hide the rest of its line from here, not from whoever wrote it: the file ends there. */
	len = strnlen(s->text, len);
	for (size_t i = 0; i < len; i++)
		n_lines += s->text[i] == '\n';
	s->entries = calloc(n_lines + 1, sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	end = strchr(s->text, '\n');
	/* Without knowing to where, nothing is shipped. */
	if (!end || strncmp(s->text, MAGIC, strlen(MAGIC)) != 0)
		return 0;
	*end = '\0';
	s->destination = s->text + strlen(MAGIC);
	for (line = end + 1; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (parse_line(line, &s->entries[s->n]))
			s->n++;
	}
	if (s->n)
		qsort(s->entries, s->n, sizeof(*s->entries), cmp_entry);
	for (size_t i = 0; i < s->n; i++) {
		if (i + 1 < s->n && strcmp(s->entries[i].name, s->entries[i + 1].name) == 0)
			continue;
		s->entries[kept++] = s->entries[i];
	}
	s->n = kept;
	return 0;
}

int iot_shipped_load(const char *path, struct iot_shipped **ret, struct iot_error *err)
{
	_cleanup_(iot_shipped_freep) struct iot_shipped *s = calloc(1, sizeof(*s));
	size_t len = 0;
	int r = 0;

	if (!s)
		return iot_error_set(err, -ENOMEM, "out of memory");
	s->text = read_text(path, &len, &r, err);
	if (!s->text)
		return iot_error_set(err, r, "%s: %s", path, strerror(-r));
	s->destination = "";
	r = parse(s, len);
	if (r < 0)
		return iot_error_set(err, r, "%s: %s", path, strerror(-r));
	*ret = IOT_TAKE_PTR(s);
	return 0;
}

const char *iot_shipped_destination(const struct iot_shipped *s)
{
	return s->destination;
}

size_t iot_shipped_n(const struct iot_shipped *s)
{
	return s->n;
}

const struct iot_shipped_entry *iot_shipped_at(const struct iot_shipped *s, size_t i)
{
	return &s->entries[i];
}

const struct iot_shipped_entry *iot_shipped_find(const struct iot_shipped *s, const char *name,
						 uint64_t bytes, uint64_t mtime_ns)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct iot_shipped_entry *e = &s->entries[mid];
		int r = strcmp(name, e->name);

		if (r == 0)
			return e->bytes == bytes && e->mtime_ns == mtime_ns ? e : NULL;
		if (r < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

int iot_digest_fd(int fd, char ret[IOT_DIGEST_LEN + 1], uint64_t *ret_bytes)
{
	_cleanup_free_ unsigned char *buf = malloc(DIGEST_BUFFER);
	XXH3_state_t *state = XXH3_createState();
	XXH128_hash_t hash;
	uint64_t bytes = 0;
	int r = 0;

	if (!buf || !state || XXH3_128bits_reset(state) != XXH_OK)
		r = -ENOMEM;
	while (r == 0) {
		ssize_t n = read(fd, buf, DIGEST_BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		(void)XXH3_128bits_update(state, buf, (size_t)n);
		bytes += (uint64_t)n;
	}
	if (r == 0) {
		hash = XXH3_128bits_digest(state);
		snprintf(ret, IOT_DIGEST_LEN + 1, "%016llx%016llx", (unsigned long long)hash.high64,
			 (unsigned long long)hash.low64);
		*ret_bytes = bytes;
	}
	XXH3_freeState(state);
	return r;
}
