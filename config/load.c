// SPDX-License-Identifier: BSD-2-Clause
/*
 * load.c - where a configuration comes from, and its life: defaults, files in their order, free.
 *
 * A configuration is built in a private struct and handed over whole: whoever fails on the way
 * leaves the caller with what it had. Files are read entirely (they are small, or refused) before
 * a byte of them is parsed, so that an editor that writes slowly cannot mix two versions.
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "config/keys.h"

int iot_config_defaults(struct iot_config **ret)
{
	_cleanup_(iot_config_freep) struct iot_config *c = NULL;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->origin = calloc(config_n_keys, sizeof(*c->origin));
	c->source = strdup("");
	if (!c->origin || !c->source)
		return -ENOMEM;
	for (size_t i = 0; i < config_n_keys; i++) {
		if (config_keys[i].type == CONFIG_SECTION)
			continue;
		r = config_value_set(&config_keys[i], config_keys[i].def, "", c, NULL);
		assert(r == 0 || r == -ENOMEM); /* a default that is not valid */
		if (r < 0)
			return r;
	}
	*ret = IOT_TAKE_PTR(c);
	return 0;
}

struct iot_config *iot_config_free(struct iot_config *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; c->origin && i < config_n_keys; i++)
		free(c->origin[i]);
	free(c->origin);
	/* By the table: a key that is added cannot be forgotten here. */
	for (size_t i = 0; i < config_n_keys; i++) {
		void *field = config_key_field(&config_keys[i], c);

		switch (config_keys[i].type) {
		case CONFIG_CHOICE:
		case CONFIG_PATH:
		case CONFIG_GROUP:
		case CONFIG_TEXT:
			free(*(char **)field);
			break;
		case CONFIG_DEVICES:
			config_strv_done(field);
			break;
		default:
			break;
		}
	}
	free(c->source);
	free(c);
	return NULL;
}

int config_set_origin(struct iot_config *c, const struct config_key *key, const char *origin)
{
	size_t i = (size_t)(key - config_keys);
	char *copy;

	if (!c->origin)
		return 0; /* built by hand, not by iot_config_defaults() */
	copy = strdup(origin);
	if (!copy)
		return -ENOMEM;
	free(c->origin[i]);
	c->origin[i] = copy;
	return 0;
}

static int make_absolute(const char *path, char **ret)
{
	_cleanup_free_ char *cwd = NULL, *joined = NULL;

	if (path[0] == '/' || path[0] == '\0') {
		joined = strdup(path);
		if (!joined)
			return -ENOMEM;
	} else {
		cwd = getcwd(NULL, 0);
		if (!cwd)
			return -errno;
		if (asprintf(&joined, "%s/%s", cwd, path) < 0) {
			joined = NULL;
			return -ENOMEM;
		}
	}
	*ret = IOT_TAKE_PTR(joined);
	return 0;
}

const char *iot_config_origin(const struct iot_config *c, const char *key)
{
	for (size_t i = 0; c->origin && i < config_n_keys; i++)
		if (strcmp(config_keys[i].path, key) == 0)
			return c->origin[i];
	return NULL;
}

int iot_config_set(struct iot_config *c, const char *key, const char *text, const char *origin,
		   struct iot_error *err)
{
	const struct config_key *k = config_key_find(key);
	_cleanup_free_ char *absolute = NULL;
	char place[64];
	int r;

	assert(k && k->type != CONFIG_SECTION && k->type != CONFIG_DEVICES);
	snprintf(place, sizeof(place), "%s: ", origin);
	if (k->type == CONFIG_PATH) {
		r = make_absolute(text, &absolute);
		if (r < 0)
			return iot_error_set(err, r, "%s%s: %s", place, config_quote(text).text,
					     strerror(-r));
	}
	r = config_value_set(k, absolute ? absolute : text, place, c, err);
	return r < 0 ? r : config_set_origin(c, k, origin);
}

/* Everything of an open file, at most CONFIG_FILE_MAX bytes; -EFBIG: it has more. */
static int read_whole(int fd, char **ret, size_t *ret_len)
{
	_cleanup_free_ char *buf = NULL;
	size_t len = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (len == room) {
			char *larger;

			room = room ? room * 4 : 4096;
			room = IOT_MIN(room, CONFIG_FILE_MAX + 1);
			larger = realloc(buf, room);
			if (!larger)
				return -ENOMEM;
			buf = larger;
		}
		n = read(fd, buf + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (len > CONFIG_FILE_MAX)
			return -EFBIG;
		if (n == 0)
			break;
	}
	*ret = IOT_TAKE_PTR(buf);
	*ret_len = len;
	return 0;
}

static int cannot_read(const char *path, int code, struct iot_error *err)
{
	return iot_error_set(err, code, "%s: cannot read the configuration: %s", path,
			     strerror(-code));
}

/* -ENOENT without a message if the file does not exist. */
static int read_file(const char *path, char **ret, size_t *ret_len, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r;

	/* O_NONBLOCK: a FIFO must not hold the start up before it is refused. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : cannot_read(path, -errno, err);
	if (fstat(fd, &st) < 0)
		return cannot_read(path, -errno, err);
	if (S_ISDIR(st.st_mode))
		return iot_error_set(err, -EISDIR, "%s: is a directory; name a file", path);
	/* /dev/null is a handy empty configuration. */
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return iot_error_set(err, -EINVAL, "%s: is not a regular file", path);
	r = read_whole(fd, ret, ret_len);
	if (r == -EFBIG)
		return iot_error_set(
			err, r, "%s: is larger than 1 MiB; this cannot be a configuration", path);
	return r < 0 ? cannot_read(path, r, err) : 0;
}

/* Positive 1: there is no such file and it is not required. */
static int load_file(struct iot_config *c, const char *path, bool required, struct iot_error *err)
{
	_cleanup_free_ char *text = NULL, *source = NULL;
	size_t len = 0;
	int r;

	r = read_file(path, &text, &len, err);
	if (r == -ENOENT)
		return required ? cannot_read(path, r, err) : 1;
	if (r < 0)
		return r;
	r = config_parse(path, text, len, c, err);
	if (r < 0)
		return r;
	if (asprintf(&source, "%s%s%s", c->source, *c->source ? ", " : "", path) < 0) {
		source = NULL;
		return -ENOMEM;
	}
	free(c->source);
	c->source = IOT_TAKE_PTR(source);
	return 0;
}

static int is_drop_in(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 5 && strcmp(e->d_name + len - 5, ".yaml") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dir(struct iot_config *c, const char *dir, struct iot_error *err)
{
	struct dirent **list = NULL;
	int n, r = 0;

	n = scandir(dir, &list, is_drop_in, by_bytes);
	if (n < 0)
		return errno == ENOENT ? 0 : cannot_read(dir, -errno, err);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = NULL;

		if (r == 0 && asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0) {
			path = NULL;
			r = -ENOMEM;
		}
		if (r == 0)
			r = load_file(c, path, true, err);
		free(list[i]);
	}
	free(list);
	return r;
}

int config_load_from(const char *main_file, bool required, const char *dir, struct iot_config **ret,
		     struct iot_error *err)
{
	_cleanup_(iot_config_freep) struct iot_config *c = NULL;
	int r;

	r = iot_config_defaults(&c);
	if (r == 0 && main_file)
		r = load_file(c, main_file, required, err);
	if (r >= 0 && dir)
		r = load_dir(c, dir, err);
	if (r == -ENOMEM)
		return iot_error_set(err, r, "no memory left for the configuration");
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(c);
	return 0;
}

int iot_config_load(const char *path, struct iot_config **ret, struct iot_error *err)
{
	_cleanup_free_ char *dir = NULL;
	const char *slash;
	int r;

	if (!path)
		return config_load_from(IOT_CONFIG_FILE, false, IOT_CONFIG_DIR, ret, err);
	slash = strrchr(path, '/');
	r = slash ? asprintf(&dir, "%.*s/conf.d", (int)(slash - path), path)
		  : asprintf(&dir, "conf.d");
	if (r < 0) {
		dir = NULL;
		return iot_error_set(err, -ENOMEM, "no memory left for the configuration");
	}
	return config_load_from(path, true, dir, ret, err);
}
