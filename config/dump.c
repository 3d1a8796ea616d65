// SPDX-License-Identifier: BSD-2-Clause
/*
 * dump.c - a configuration as a person reads it: the whole of it as YAML that loads again, and
 * what of a wanted one has to wait for a new start.
 *
 * Two values are equal if they are written the same, which is exact because the text of a value
 * is (value.c). So there is no third place that has to know the types.
 */
#include "config/keys.h"

static void put_indent(FILE *f, const struct config_key *key)
{
	for (unsigned int i = config_key_depth(key); i > 0; i--)
		fputs("  ", f);
}

/* Names of files may hold line breaks, which would end the comment. */
static void put_comment(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, f);
	fputc('\n', f);
}

static int put_key(FILE *f, const struct config_key *key, const struct iot_config *c)
{
	const char *origin = c->origin ? c->origin[key - config_keys] : NULL;
	_cleanup_free_ char *value = NULL;
	int r;

	put_indent(f, key);
	if (key->type == CONFIG_SECTION) {
		fprintf(f, "%s:\n", config_key_leaf(key));
		return 0;
	}
	r = config_value_format(key, c, &value);
	if (r < 0)
		return r;
	fprintf(f, "%s: %s  # ", config_key_leaf(key), value);
	put_comment(f, origin ? origin : "default");
	return 0;
}

int iot_config_dump(const struct iot_config *c, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	bool failed;
	FILE *f;
	int r = 0;

	f = open_memstream(&text, &len);
	if (!f)
		return -errno;
	fputs("# in effect; read from: ", f);
	put_comment(f, c->source && *c->source ? c->source : "no file, built-in defaults");
	for (size_t i = 0; i < config_n_keys && r == 0; i++)
		r = put_key(f, &config_keys[i], c);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return -ENOMEM;
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(text);
	return 0;
}

int iot_config_restart_keys(const struct iot_config *running, const struct iot_config *wanted,
			    char *buf, size_t size)
{
	size_t used = 0;
	int r, n = 0;

	if (size > 0)
		buf[0] = '\0';
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		_cleanup_free_ char *a = NULL, *b = NULL;

		if (key->type == CONFIG_SECTION || !(key->flags & CONFIG_RESTART))
			continue;
		r = config_value_format(key, running, &a);
		if (r < 0)
			return r;
		r = config_value_format(key, wanted, &b);
		if (r < 0)
			return r;
		if (strcmp(a, b) == 0)
			continue;
		n++;
		if (used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", n > 1 ? ", " : "",
						 key->path);
	}
	return n;
}
