// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-rotate.c - rotate and flush: the two changes a client can ask for. Both return when done.
 */
#include "daemon/ctl/live.h"

/* The daemon only says that it has no such stream; what it has is in its status. */
static int check_stream(struct ctl *c, const char *stream)
{
	struct json_object *reply, *list;
	char names[256] = "", name[128];
	bool found = false;
	size_t len = 0;
	int r;

	r = ctl_call(c, CONTROL_INTERFACE ".Status", NULL, &reply);
	if (r != CTL_OK)
		return r;
	list = live_object(live_object(reply, "status"), "streams");
	for (size_t i = 0; i < live_n(list) && len < sizeof(names); i++) {
		const char *s = live_str(json_object_array_get_idx(list, i), "name");

		if (!s)
			continue;
		found |= strcmp(s, stream) == 0;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
					ctl_printable(s, name, sizeof(name)));
	}
	json_object_put(reply);
	/* An answer without streams is of a daemon that says it in another way: let it judge. */
	if (found || !names[0])
		return CTL_OK;
	return ctl_fail(CTL_ERROR, "no stream '%s'; this daemon records: %s", stream, names);
}

int verb_rotate(struct ctl *c, int argc, char **argv)
{
	struct json_object *parameters = NULL, *reply, *list;
	int r;

	if (argc > 2)
		return ctl_fail(CTL_USAGE, "rotate takes one stream at most, got '%s'", argv[2]);
	if (argc == 2) {
		struct json_object *stream;

		r = check_stream(c, argv[1]);
		if (r != CTL_OK)
			return r;
		stream = json_object_new_string(argv[1]);
		parameters = json_object_new_object();
		if (!parameters || !stream ||
		    json_object_object_add(parameters, "stream", stream) < 0) {
			json_object_put(parameters);
			json_object_put(stream);
			return ctl_fail(CTL_ERROR, "out of memory");
		}
	}
	r = ctl_call(c, CONTROL_INTERFACE ".Rotate", parameters, &reply);
	if (r != CTL_OK)
		return r;
	if (c->json)
		return ctl_json_print(reply);
	list = live_object(reply, "segments");
	for (size_t i = 0; i < live_n(list); i++)
		puts(json_object_get_string(json_object_array_get_idx(list, i)));
	json_object_put(reply);
	return CTL_OK;
}

int verb_flush(struct ctl *c, int argc, char **argv)
{
	struct json_object *reply;
	int r;

	r = live_no_operands(argc, argv);
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".Flush", NULL, &reply);
	if (r != CTL_OK)
		return r;
	if (c->json)
		return ctl_json_print(reply);
	json_object_put(reply);
	return CTL_OK;
}
