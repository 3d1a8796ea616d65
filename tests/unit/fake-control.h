/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon behind the control interface that only remembers what it was asked. */
#pragma once

#include "daemon/control-dispatch.h"

struct fake_control {
	unsigned int n_reads;
	unsigned int n_changes;
	uint64_t last_token;
	char last_stream[64]; /* "*" = all */
	int error;	      /* what every operation returns; 0 = works */
};

static inline int fake_read(struct fake_control *f, const char *key, struct json_object **ret,
			    char **message)
{
	struct json_object *o, *v;

	f->n_reads++;
	if (f->error < 0) {
		*message = strdup("as the test asked");
		return f->error;
	}
	o = json_object_new_object();
	v = json_object_new_string(key);
	if (!o || !v || json_object_object_add(o, key, v) < 0)
		abort();
	*ret = o;
	return 0;
}

static inline int fake_status(void *u, struct json_object **ret, char **message)
{
	return fake_read(u, "status", ret, message);
}

static inline int fake_in_flight(void *u, struct json_object **ret, char **message)
{
	return fake_read(u, "requests", ret, message);
}

static inline int fake_probes(void *u, struct json_object **ret, char **message)
{
	return fake_read(u, "probes", ret, message);
}

static inline int fake_config(void *u, struct json_object **ret, char **message)
{
	return fake_read(u, "yaml", ret, message);
}

static inline int fake_rotate(void *u, uint64_t token, const char *stream, char **message)
{
	struct fake_control *f = u;

	(void)message;
	if (stream && strcmp(stream, "block") != 0)
		return -ENOENT;
	if (f->error < 0)
		return f->error;
	f->n_changes++;
	f->last_token = token;
	snprintf(f->last_stream, sizeof(f->last_stream), "%s", stream ? stream : "*");
	return 0;
}

static inline int fake_flush(void *u, uint64_t token, char **message)
{
	return fake_rotate(u, token, NULL, message);
}

static const struct control_ops fake_ops = {
	.status = fake_status,
	.in_flight = fake_in_flight,
	.probes = fake_probes,
	.config = fake_config,
	.rotate = fake_rotate,
	.flush = fake_flush,
};
