// SPDX-License-Identifier: BSD-2-Clause
/*
 * anonymize-key.c - the key of an anonymized export, and the keyed function made of it: HMAC-SHA-256
 * (RFC 2104, FIPS 198-1) over libmd's SHA-256.
 *
 * Whoever has the key can tell by trying whether a name is in the export, so that it is as secret as the
 * record itself: a file that others may read, or a key that can be guessed, is refused.
 */
#include <ctype.h>
#include <sha2.h>
#include <sys/stat.h>

#include "daemon/ctl/anonymize-key.h"

#define KEY_MIN 32U
#define KEY_MAX 4096U
#define KEY_DIFFERENT 8U /* bytes: fewer are a pattern, not a key */

struct ctl_key {
	SHA2_CTX inner; /* after the padded key's block */
	SHA2_CTX outer;
};

static void hmac_key(struct ctl_key *k, const uint8_t *key, size_t size)
{
	uint8_t pad[SHA256_BLOCK_LENGTH] = {0};

	if (size > sizeof(pad)) {
		SHA256Init(&k->inner);
		SHA256Update(&k->inner, key, size);
		SHA256Final(pad, &k->inner);
	} else {
		memcpy(pad, key, size);
	}
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36;
	SHA256Init(&k->inner);
	SHA256Update(&k->inner, pad, sizeof(pad));
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36 ^ 0x5c;
	SHA256Init(&k->outer);
	SHA256Update(&k->outer, pad, sizeof(pad));
	explicit_bzero(pad, sizeof(pad));
}

void ctl_key_hmac(void *key, const void *data, size_t size, uint8_t ret[IOT_PRF_BYTES])
{
	const struct ctl_key *k = key;
	uint8_t inner[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx = k->inner;

	_Static_assert(IOT_PRF_BYTES == SHA256_DIGEST_LENGTH, "one function");
	SHA256Update(&ctx, data, size);
	SHA256Final(inner, &ctx);
	ctx = k->outer;
	SHA256Update(&ctx, inner, sizeof(inner));
	SHA256Final(ret, &ctx);
}

int ctl_key_new(const void *secret, size_t size, struct ctl_key **ret)
{
	struct ctl_key *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	hmac_key(k, secret, size);
	*ret = k;
	return 0;
}

struct ctl_key *ctl_key_free(struct ctl_key *k)
{
	if (k)
		explicit_bzero(k, sizeof(*k));
	free(k);
	return NULL;
}

/* Editors and `openssl rand -hex` end a text with a newline, copies of it do not: it is no part of the key. */
static size_t without_newline(const uint8_t *key, size_t size)
{
	size_t n = size;

	if (n && key[n - 1] == '\n')
		n--;
	if (n && key[n - 1] == '\r')
		n--;
	for (size_t i = 0; i < n; i++)
		if (!isprint(key[i]))
			return size;
	return n;
}

static unsigned int n_different(const uint8_t *key, size_t size)
{
	bool seen[256] = {false};
	unsigned int n = 0;

	for (size_t i = 0; i < size; i++) {
		n += !seen[key[i]];
		seen[key[i]] = true;
	}
	return n;
}

static int check_key(const char *path, const uint8_t *key, size_t size, struct iot_error *err)
{
	if (size > KEY_MAX)
		return iot_error_set(err, -EINVAL, "%s: longer than %u bytes: no key file", path,
				     KEY_MAX);
	if (size < KEY_MIN)
		return iot_error_set(
			err, -EINVAL,
			"%s: a key of %zu bytes can be guessed; it needs at least %u: (umask 077; "
			"head -c 32 /dev/urandom > KEYFILE)",
			path, size, KEY_MIN);
	if (n_different(key, size) < KEY_DIFFERENT)
		return iot_error_set(err, -EINVAL,
				     "%s: the same few bytes over and over are no key: (umask 077; "
				     "head -c 32 /dev/urandom > KEYFILE)",
				     path);
	return 0;
}

int ctl_key_check_file(const char *path, const struct stat *st, struct iot_error *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return iot_error_set(err, -EPERM,
				     "%s: belongs to somebody else (uid %u), who knows the key",
				     path, (unsigned int)st->st_uid);
	if (st->st_mode & 077)
		return iot_error_set(err, -EPERM,
				     "%s: others may read or change the key (mode %04o): chmod 600",
				     path, (unsigned int)st->st_mode & 07777U);
	return 0;
}

int ctl_key_load(const char *path, struct ctl_key **ret, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	uint8_t key[KEY_MAX + 3]; /* one byte more than is taken, and a line's end */
	size_t size = 0;
	struct stat st;
	int r;

	r = iot_open_file(path, true, &fd, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return iot_error_set(err, -errno, "%s: %s", path, strerror(errno));
	r = ctl_key_check_file(path, &st, err);
	if (r < 0)
		return r;
	while (size < sizeof(key)) {
		ssize_t n = read(fd, key + size, sizeof(key) - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return iot_error_set(err, -errno, "%s: %s", path, strerror(errno));
		if (n == 0)
			break;
		size += (size_t)n;
	}
	size = without_newline(key, size);
	r = check_key(path, key, size, err);
	if (r == 0 && ctl_key_new(key, size, ret) < 0)
		r = iot_error_set(err, -ENOMEM, "out of memory");
	explicit_bzero(key, sizeof(key));
	return r;
}
