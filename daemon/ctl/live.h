/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - what the verbs that ask the daemon share. Replies are read with suspicion: a field that is
 * absent, null or of another type is "not known", so that an older or newer daemon can be asked.
 */
#pragma once

#include "daemon/control-proto.h"
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"

/* A string, or NULL. Borrowed. */
const char *live_str(struct json_object *o, const char *key);
/* A number or a string of digits (ids, ns). False: not known. */
bool live_u64(struct json_object *o, const char *key, uint64_t *ret);
struct json_object *live_object(struct json_object *o, const char *key); /* or NULL */
/* Elements of an array; 0 if there is none. */
size_t live_n(struct json_object *array);

/* "1,234" or "unknown"; "1.5MiB"; "3m2s". */
const char *live_count(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX]);
/* "1 segment", "2 segments", "unknown segments" */
const char *live_counted(struct json_object *o, const char *key, const char *what,
			 char buf[CTL_HUMAN_MAX]);
const char *live_size(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX]);
const char *live_duration(struct json_object *o, const char *key, char buf[CTL_HUMAN_MAX]);

/* live-swap.c: one or two lines for each of the daemon's swap areas, the first behind the label. */
void live_print_swap_areas(struct json_object *areas, const char *label, bool color);

/* Where the daemon records, by its own word; for the caller to free. CTL_OK, or said. */
int live_store_dir(struct ctl *c, char **ret) IOT_MUST_CHECK;

/* Verbs without operands: CTL_USAGE if there are any. */
int live_no_operands(int argc, char **argv) IOT_MUST_CHECK;
/* One object a line, as `cat --json`. */
int live_print_lines(struct json_object *array) IOT_MUST_CHECK;
