/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - the documents that iotracectl prints: whole, or not at all.
 *
 * json-c says "no memory" by NULL, which in a document is null; it aborts where something is added to what could
 * not be made, and where it writes text it leaves out what does not fit, silently. Half a document would be
 * taken for a whole one. So what builds is wrapped: a failure is remembered, building goes on, and
 * ctl_json_string(), through which every document goes, then gives nothing; and the text is written here.
 */
#pragma once

#include <json-c/json.h>

#include "format/base.h"

struct json_object *ctl_json_made(struct json_object *o);
int ctl_json_add(struct json_object *o, const char *key, struct json_object *value);
int ctl_json_append(struct json_object *array, struct json_object *value);
/* The text of o, for the caller to free: in one line, or indented. NULL if that or anything before it found
 * no memory. */
char *ctl_json_string(struct json_object *o, bool pretty) IOT_MUST_CHECK;

#define json_object_new_object() ctl_json_made(json_object_new_object())
#define json_object_new_array() ctl_json_made(json_object_new_array())
#define json_object_new_boolean(v) ctl_json_made(json_object_new_boolean(v))
#define json_object_new_double(v) ctl_json_made(json_object_new_double(v))
#define json_object_new_int(v) ctl_json_made(json_object_new_int(v))
#define json_object_new_int64(v) ctl_json_made(json_object_new_int64(v))
#define json_object_new_uint64(v) ctl_json_made(json_object_new_uint64(v))
#define json_object_new_string(s) ctl_json_made(json_object_new_string(s))
#define json_object_new_string_len(s, n) ctl_json_made(json_object_new_string_len(s, n))
#define json_object_object_add(o, key, value) ctl_json_add(o, key, value)
#define json_object_array_add(array, value) ctl_json_append(array, value)
