// SPDX-License-Identifier: BSD-2-Clause
/* json.c - see json.h. */
#include "daemon/ctl/json.h"

#define INDENT 2

static bool failed;

struct json_object *ctl_json_made(struct json_object *o)
{
	failed |= !o;
	return o;
}

/* What could not be added is lost, not freed: the caller may go on building it. */
int ctl_json_add(struct json_object *o, const char *key, struct json_object *value)
{
	if (o && (json_object_object_add)(o, key, value) == 0)
		return 0;
	failed = true;
	return -ENOMEM;
}

int ctl_json_append(struct json_object *array, struct json_object *value)
{
	if (array && (json_object_array_add)(array, value) == 0)
		return 0;
	failed = true;
	return -ENOMEM;
}

/* ---- text -------------------------------------------------------------------------------------- */

struct text {
	char *data;
	size_t len;
	size_t room;
	bool pretty;
};

static void put(struct text *t, const char *s, size_t n)
{
	if (failed)
		return;
	if (t->room - t->len <= n) {
		size_t room = IOT_MAX(t->room * 2, t->len + n + 256);
		char *data = realloc(t->data, room);

		if (!data) {
			failed = true;
			return;
		}
		t->data = data;
		t->room = room;
	}
	memcpy(t->data + t->len, s, n);
	t->len += n;
	t->data[t->len] = '\0';
}

static void put_line(struct text *t, unsigned int level)
{
	if (!t->pretty)
		return;
	put(t, "\n", 1);
	for (unsigned int i = 0; i < level * INDENT; i++)
		put(t, " ", 1);
}

static void put_string(struct text *t, const char *s, size_t n)
{
	static const char named[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";

	put(t, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		const char *name = s[i] ? strchr(named, s[i]) : NULL;
		char code[8];

		if (name)
			put(t, (char[]){'\\', names[name - named]}, 2);
		else if ((unsigned char)s[i] < 0x20)
			put(t, code, (size_t)snprintf(code, sizeof(code), "\\u%04x", s[i]));
		else
			put(t, s + i, 1);
	}
	put(t, "\"", 1);
}

static void put_scalar(struct text *t, struct json_object *o)
{
	/* A double has its dot and all of its digits; it fits where json-c begins to write. */
	const char *s = json_object_is_type(o, json_type_double) ? json_object_to_json_string(o)
								 : NULL;
	char number[32];

	if (json_object_is_type(o, json_type_string)) {
		put_string(t, json_object_get_string(o), (size_t)json_object_get_string_len(o));
		return;
	}
	if (json_object_is_type(o, json_type_int)) {
		if (json_object_get_int64(o) < 0)
			snprintf(number, sizeof(number), "%lld",
				 (long long)json_object_get_int64(o));
		else
			snprintf(number, sizeof(number), "%llu",
				 (unsigned long long)json_object_get_uint64(o));
		s = number;
	} else if (!o) {
		s = "null";
	} else if (json_object_is_type(o, json_type_boolean)) {
		s = json_object_get_boolean(o) ? "true" : "false";
	}
	failed |= !s;
	if (s)
		put(t, s, strlen(s));
}

static void put_value(struct text *t, struct json_object *o, unsigned int level)
{
	const char *comma = "";
	size_t n;

	if (json_object_is_type(o, json_type_object)) {
		put(t, "{", 1);
		json_object_object_foreach(o, key, value)
		{
			put(t, comma, strlen(comma));
			put_line(t, level + 1);
			put_string(t, key, strlen(key));
			put(t, ": ", t->pretty ? 2 : 1);
			put_value(t, value, level + 1);
			comma = ",";
		}
		if (*comma)
			put_line(t, level);
		put(t, "}", 1);
	} else if (json_object_is_type(o, json_type_array)) {
		n = json_object_array_length(o);
		put(t, "[", 1);
		for (size_t i = 0; i < n; i++) {
			put(t, ",", i > 0);
			put_line(t, level + 1);
			put_value(t, json_object_array_get_idx(o, i), level + 1);
		}
		if (n)
			put_line(t, level);
		put(t, "]", 1);
	} else {
		put_scalar(t, o);
	}
}

char *ctl_json_string(struct json_object *o, bool pretty)
{
	struct text t = {.pretty = pretty};

	put_value(&t, o, 0);
	if (!failed)
		return t.data;
	free(t.data);
	return NULL;
}
