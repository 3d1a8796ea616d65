// SPDX-License-Identifier: BSD-2-Clause
/*
 * value.c - one value between its text and its field.
 *
 * Both directions are here so that they cannot drift apart: what config_value_format() writes,
 * config_value_set() takes, and the field is the same. A message names the key, what was written
 * and what would be right; the place in front of it comes from the caller.
 */
#include <assert.h>

#include "config/keys.h"

#define N_DEVICES_MAX 256U
#define DEVICE_LEN_MAX 64U

struct config_quoted config_quote(const char *text)
{
	struct config_quoted q;
	size_t len = strlen(text), n = IOT_MIN(len, (size_t)64);

	/* Never cut a UTF-8 character in half: journald would take the whole line for binary. */
	if (n < len)
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)text[i];

		q.text[i] = ch < 0x20 || ch == 0x7f ? '?' : (char)ch;
	}
	memcpy(q.text + n, n < len ? "..." : "", n < len ? 4 : 1);
	return q;
}

void config_format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char *const unit[] = {"", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	while (bytes && bytes % 1024 == 0 && i + 1 < IOT_ARRAY_SIZE(unit)) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, size, "%llu%s", (unsigned long long)bytes, unit[i]);
}

void config_format_duration(uint64_t ns, char *buf, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = {
		{"d", UINT64_C(86400000000000)},
		{"h", UINT64_C(3600000000000)},
		{"m", UINT64_C(60000000000)},
		{"s", UINT64_C(1000000000)},
		{"ms", UINT64_C(1000000)},
		{"us", UINT64_C(1000)},
		{"ns", UINT64_C(1)},
	};

	if (ns == 0) {
		snprintf(buf, size, "0");
		return;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(unit); i++) {
		if (ns % unit[i].ns != 0)
			continue;
		snprintf(buf, size, "%llu%s", (unsigned long long)(ns / unit[i].ns), unit[i].name);
		return;
	}
}

static void format_number(const struct config_key *key, uint64_t v, char *buf, size_t size)
{
	if (key->type == CONFIG_SIZE)
		config_format_size(v, buf, size);
	else if (key->type == CONFIG_DURATION)
		config_format_duration(v, buf, size);
	else
		snprintf(buf, size, "%llu", (unsigned long long)v);
}

/* Two fixed strings' worth of help for each kind of number. */
static int parse_number(const struct config_key *key, const char *text, const char *place,
			uint64_t *ret, struct iot_error *err)
{
	const char *kind, *help;
	uint64_t v;
	int r;

	if (key->type == CONFIG_SIZE) {
		r = iot_parse_size(text, &v);
		kind = "a size";
		help = "write bytes or a number with KiB, MiB, GiB or TiB, like 64MiB";
	} else if (key->type == CONFIG_DURATION) {
		r = iot_parse_duration(text, &v);
		kind = "a time";
		help = "write a number with ms, s, m, h or d, like 5m";
	} else {
		r = iot_parse_u64(text, &v);
		kind = "a whole number";
		help = "write digits only, like 4096";
	}
	if (r == -ERANGE)
		v = UINT64_MAX; /* more than 64 bits hold: out of every range */
	else if (r < 0)
		return iot_error_set(err, -EINVAL, "%s`%s`: `%s` is not %s; %s", place, key->path,
				     config_quote(text).text, kind, help);
	if (v < key->min || v > key->max) {
		char min[32], max[32];
		bool zero = key->flags & CONFIG_ZERO_OFF;

		if (v == 0 && zero) {
			*ret = 0;
			return 0;
		}
		format_number(key, key->min, min, sizeof(min));
		format_number(key, key->max, max, sizeof(max));
		return iot_error_set(err, -EINVAL, "%s`%s`: %s is out of range (%s%s to %s)", place,
				     key->path, config_quote(text).text, zero ? "0, or " : "", min,
				     max);
	}
	if ((key->flags & CONFIG_POWER_OF_TWO) && (v & (v - 1)) != 0) {
		uint64_t below = UINT64_C(1) << (63 - __builtin_clzll(v));
		char a[32], b[32];

		format_number(key, below, a, sizeof(a));
		format_number(key, below * 2, b, sizeof(b));
		return iot_error_set(err, -EINVAL,
				     "%s`%s`: %s is not a power of two; the nearest are %s and %s",
				     place, key->path, config_quote(text).text, a, b);
	}
	if (key->flags & CONFIG_PAGES) {
		uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
		char a[32];

		format_number(key, page, a, sizeof(a));
		if (v < page)
			return iot_error_set(err, -EINVAL,
					     "%s`%s`: %s is less than a page of this machine (%s)",
					     place, key->path, config_quote(text).text, a);
	}
	*ret = v;
	return 0;
}

static int parse_bool(const struct config_key *key, const char *text, const char *place, bool *ret,
		      struct iot_error *err)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		if (i % 2 == 1 && key->refuse)
			return iot_error_set(err, -EINVAL, "%s`%s`: cannot be %s: %s", place,
					     key->path, words[i], key->refuse);
		*ret = i % 2 == 1;
		return 0;
	}
	return iot_error_set(err, -EINVAL, "%s`%s`: `%s` is neither true nor false", place,
			     key->path, config_quote(text).text);
}

static int parse_choice(const struct config_key *key, const char *text, const char *place,
			unsigned int *ret, struct iot_error *err)
{
	char list[128] = "";
	size_t used = 0;

	for (unsigned int i = 0; key->choices[i]; i++) {
		if (strcmp(text, key->choices[i]) == 0) {
			*ret = i;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
					 i == 0		       ? ""
					 : key->choices[i + 1] ? ", "
							       : " or ",
					 key->choices[i]);
	}
	return iot_error_set(err, -EINVAL, "%s`%s`: `%s` is not known; write %s", place, key->path,
			     config_quote(text).text, list);
}

/*
 * What cannot be written into a YAML file as it is, though an escape can name it: controls, also those of
 * U+0080..9F, line and paragraph separators (U+2028, U+2029), the byte order mark, U+FFFE and U+FFFF.
 */
static bool has_control(const char *text)
{
	static const char *const refused[] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf",
					      "\xef\xbf\xbe", "\xef\xbf\xbf"};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(refused); i++)
		if (strstr(text, refused[i]))
			return true;
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f ||
		    ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0))
			return true;
	return false;
}

static int check_string(const struct config_key *key, const char *text, const char *place,
			struct iot_error *err)
{
	size_t len = strlen(text);

	if (has_control(text))
		return iot_error_set(err, -EINVAL, "%s`%s`: `%s` has a control character in it",
				     place, key->path, config_quote(text).text);
	if (len > key->max)
		return iot_error_set(err, -EINVAL, "%s`%s`: is %zu bytes long; at most %llu fit",
				     place, key->path, len, (unsigned long long)key->max);
	if (key->type == CONFIG_PATH && text[0] != '/')
		return iot_error_set(err, -EINVAL,
				     "%s`%s`: `%s` is not an absolute path; begin it with /", place,
				     key->path, config_quote(text).text);
	if (key->type == CONFIG_GROUP && strpbrk(text, " :/,"))
		return iot_error_set(err, -EINVAL, "%s`%s`: `%s` is not the name of a group", place,
				     key->path, config_quote(text).text);
	return 0;
}

int config_value_set(const struct config_key *key, const char *text, const char *place,
		     struct iot_config *c, struct iot_error *err)
{
	void *field = config_key_field(key, c);
	unsigned int choice = 0;
	char *copy;
	uint64_t v;
	int r;

	switch (key->type) {
	case CONFIG_BOOL:
		return parse_bool(key, text, place, field, err);
	case CONFIG_U32:
		assert(key->max <= UINT32_MAX);
		r = parse_number(key, text, place, &v, err);
		if (r < 0)
			return r;
		*(uint32_t *)field = (uint32_t)v;
		return 0;
	case CONFIG_U64:
	case CONFIG_SIZE:
	case CONFIG_DURATION:
		return parse_number(key, text, place, field, err);
	case CONFIG_ENUM:
		/* Enums without negative values are unsigned int to the compilers of this project. */
		return parse_choice(key, text, place, field, err);
	case CONFIG_CHOICE:
	case CONFIG_PATH:
	case CONFIG_GROUP:
	case CONFIG_TEXT:
		if (key->type == CONFIG_CHOICE)
			r = parse_choice(key, text, place, &choice, err);
		else
			r = check_string(key, text, place, err);
		if (r < 0)
			return r;
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
		free(*(char **)field);
		*(char **)field = copy;
		return 0;
	case CONFIG_DEVICES:
		assert(strcmp(text, "[]") == 0); /* the default; items come by config_value_add() */
		config_strv_done(field);
		return 0;
	case CONFIG_SECTION:
		break;
	}
	assert(!"a section has no value");
	return -EINVAL;
}

int config_value_add(const struct config_key *key, const char *text, const char *place,
		     struct iot_strv *list, struct iot_error *err)
{
	char **items, *copy;

	if (!*text)
		return iot_error_set(err, -EINVAL, "%s`%s`: an empty device name", place,
				     key->path);
	if (has_control(text) || strlen(text) > DEVICE_LEN_MAX)
		return iot_error_set(err, -EINVAL, "%s`%s`: `%s` is not the name of a device",
				     place, key->path, config_quote(text).text);
	/* What is selected is written into each segment, as a list, and read back from there. */
	if (strpbrk(text, ",;"))
		return iot_error_set(
			err, -EINVAL,
			"%s`%s`: `%s` is not the name of a device; several are a list: "
			"[sda, sdb]",
			place, key->path, config_quote(text).text);
	if (strncmp(text, "/dev/", 5) == 0)
		return iot_error_set(
			err, -EINVAL, "%s`%s`: write the kernel's name, `%s`, instead of `%s`",
			place, key->path, config_quote(text + 5).text, config_quote(text).text);
	if (list->n == N_DEVICES_MAX)
		return iot_error_set(err, -EINVAL, "%s`%s`: more than %u devices; use globs", place,
				     key->path, N_DEVICES_MAX);

	items = reallocarray(list->items, list->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	list->items[list->n++] = copy;
	return 0;
}

void config_strv_done(struct iot_strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct iot_strv){0};
}

/* A YAML double-quoted scalar. Control characters never get into a field. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void put_value(FILE *f, const struct config_key *key, const struct iot_config *c)
{
	const void *field = config_key_field_const(key, c);
	const struct iot_strv *list = field;
	char buf[32];

	switch (key->type) {
	case CONFIG_BOOL:
		fputs(*(const bool *)field ? "true" : "false", f);
		return;
	case CONFIG_U32:
	case CONFIG_U64:
	case CONFIG_SIZE:
	case CONFIG_DURATION:
		format_number(key,
			      key->type == CONFIG_U32 ? *(const uint32_t *)field
						      : *(const uint64_t *)field,
			      buf, sizeof(buf));
		fputs(buf, f);
		return;
	case CONFIG_ENUM:
		fputs(key->choices[*(const unsigned int *)field], f);
		return;
	case CONFIG_CHOICE:
		fputs(*(char *const *)field, f);
		return;
	case CONFIG_PATH:
	case CONFIG_GROUP:
	case CONFIG_TEXT:
		put_quoted(f, *(char *const *)field);
		return;
	case CONFIG_DEVICES:
		fputc('[', f);
		for (size_t i = 0; i < list->n; i++) {
			if (i > 0)
				fputs(", ", f);
			put_quoted(f, list->items[i]);
		}
		fputc(']', f);
		return;
	case CONFIG_SECTION:
		break;
	}
	assert(!"a section has no value");
}

int config_value_format(const struct config_key *key, const struct iot_config *c, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	bool failed;
	FILE *f;

	f = open_memstream(&text, &len);
	if (!f)
		return -errno;
	put_value(f, key, c);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		return -ENOMEM;
	*ret = IOT_TAKE_PTR(text);
	return 0;
}
