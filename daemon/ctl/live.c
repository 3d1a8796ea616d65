// SPDX-License-Identifier: BSD-2-Clause
/*
 * live.c - see live.h.
 */
#include "daemon/ctl/live.h"

const char *live_str(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

bool live_u64(struct json_object *o, const char *key, uint64_t *ret)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v))
		return false;
	if (json_object_is_type(v, json_type_string))
		return iot_parse_u64(json_object_get_string(v), ret) == 0;
	if (!json_object_is_type(v, json_type_int))
		return false;
	*ret = json_object_get_uint64(v);
	return true;
}

struct json_object *live_object(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? v : NULL;
}

size_t live_n(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

const char *live_count(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX])
{
	uint64_t v;

	return live_u64(o, key, &v) ? ctl_human_count(v, buf) : "unknown";
}

const char *live_counted(struct json_object *o, const char *key, const char *what,
			 char buf[CTL_HUMAN_MAX])
{
	char count[CTL_HUMAN_MAX];
	uint64_t v = 0;

	snprintf(buf, CTL_HUMAN_MAX, "%.27s %.16s%s", live_count(o, key, count), what,
		 live_u64(o, key, &v) && v == 1 ? "" : "s");
	return buf;
}

const char *live_size(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX])
{
	uint64_t v;

	return live_u64(o, key, &v) ? ctl_human_size(v, buf) : "unknown";
}

const char *live_duration(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX])
{
	uint64_t v;

	return live_u64(o, key, &v) ? ctl_human_duration(v, buf) : "unknown";
}

int live_no_operands(int argc, char **argv)
{
	if (argc > 1)
		return ctl_fail(CTL_USAGE, "%s takes no arguments, got '%s'", argv[0], argv[1]);
	return CTL_OK;
}

int live_print_lines(struct json_object *array)
{
	for (size_t i = 0; i < live_n(array); i++) {
		_cleanup_free_ char *text =
			ctl_json_string(json_object_array_get_idx(array, i), false);

		if (!text)
			return ctl_fail(CTL_ERROR, "out of memory");
		puts(text);
	}
	return CTL_OK;
}

int live_store_dir(struct ctl *c, char **ret)
{
	struct json_object *reply;
	const char *dir;
	int r = ctl_call(c, CONTROL_INTERFACE ".Status", NULL, &reply);

	if (r != CTL_OK)
		return r;
	dir = live_str(live_object(live_object(reply, "status"), "store"), "path");
	if (!dir)
		r = ctl_fail(CTL_ERROR, "the daemon does not say where it records");
	*ret = dir ? strdup(dir) : NULL;
	json_object_put(reply);
	return r == CTL_OK && !*ret ? ctl_fail(CTL_ERROR, "out of memory") : r;
}
