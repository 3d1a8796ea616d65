// SPDX-License-Identifier: BSD-2-Clause
/*
 * control-proto.c - the wire form of the control socket, see control-proto.h.
 *
 * Parsing is where hostile bytes become a tree: the message's end is found first (a NUL within
 * `max`), then json-c runs on exactly those bytes, strict, UTF-8 checked and with bounded depth.
 * The text of the interface below is served to clients and is a contract: fields and methods are
 * added, never changed.
 */
#include "daemon/control-proto.h"

const char control_interface_description[] =
	"# The control interface of iotraced. Reads are for whoever may open the socket; Rotate "
	"and\n"
	"# Flush for root, the daemon's own user and the group iotraced-admin. Ids and nanosecond\n"
	"# times are strings (JSON numbers lose bits above 2^53); a value that is not known is "
	"null.\n"
	"interface io.iotraced.Control\n"
	"\n"
	"# The daemon, its streams with their losses, and the store. Fields are only ever added.\n"
	"method Status() -> (status: object)\n"
	"\n"
	"# Requests that have not completed, oldest first; total says how many there are, also "
	"where\n"
	"# only the oldest are listed; null: requests are not recorded.\n"
	"method InFlight() -> (requests: []object, total: ?int)\n"
	"\n"
	"# Seals the open segment of one stream, or of all, and returns the names of what was "
	"sealed.\n"
	"method Rotate(stream: ?string) -> (segments: []string)\n"
	"\n"
	"# Returns once everything observed before the call is in the segment files.\n"
	"method Flush() -> ()\n"
	"\n"
	"# Each probe: how it is attached or why not, whether its misses can be counted, what it "
	"cost;\n"
	"# and what can be told as swap, by kernel and by swap area.\n"
	"method Probes() -> (probes: []object, swap: object)\n"
	"\n"
	"# The effective configuration.\n"
	"method Config() -> (yaml: string, source: string)\n"
	"\n"
	"error PermissionDenied (message: string)\n"
	"error Busy (message: string)\n"
	"error Failed (message: string)\n";

/* Containers nested in each other; a scalar has none. Bounded by the tokener's own limit. */
static unsigned int nesting(struct json_object *o)
{
	unsigned int deepest = 0;

	if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach(o, key, val)
		{
			(void)key;
			deepest = IOT_MAX(deepest, nesting(val));
		}
		return deepest + 1;
	}
	if (json_object_is_type(o, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(o); i++)
			deepest = IOT_MAX(deepest, nesting(json_object_array_get_idx(o, i)));
		return deepest + 1;
	}
	return 0;
}

int control_parse(const char *buf, size_t len, size_t max, struct json_object **ret,
		  size_t *ret_used)
{
	const char *end = memchr(buf, '\0', IOT_MIN(len, max));
	struct json_tokener *tok;
	struct json_object *msg;
	enum json_tokener_error e;
	size_t n;

	if (!end)
		return len >= max ? -E2BIG : CONTROL_MORE;
	n = (size_t)(end - buf);
	if (n == 0)
		return -EBADMSG;

	/* One more than the depth of containers: json-c counts the values in them as a level. */
	tok = json_tokener_new_ex(CONTROL_MAX_DEPTH + 1);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	msg = json_tokener_parse_ex(tok, buf, (int)n);
	e = json_tokener_get_error(tok);
	json_tokener_free(tok);

	if (e == json_tokener_error_depth)
		return -ELOOP;
	if (e != json_tokener_success || !json_object_is_type(msg, json_type_object)) {
		json_object_put(msg);
		return -EBADMSG;
	}
	if (nesting(msg) > CONTROL_MAX_DEPTH) {
		json_object_put(msg);
		return -ELOOP;
	}
	*ret = msg;
	*ret_used = n + 1;
	return 0;
}

int control_format(struct json_object *msg, char **ret, size_t *ret_len)
{
	size_t len;
	const char *text = json_object_to_json_string_length(
		msg, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	char *copy;

	if (!text)
		return -ENOMEM;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len + 1);
	*ret = copy;
	*ret_len = len + 1;
	return 0;
}

/* Adds val (owned, NULL = out of memory) to o. */
static int add(struct json_object *o, const char *key, struct json_object *val)
{
	if (!val)
		return -ENOMEM;
	if (json_object_object_add(o, key, val) < 0) {
		json_object_put(val);
		return -ENOMEM;
	}
	return 0;
}

/* {key: text, "parameters": parameters}; key and parameters may be NULL, parameters are taken. */
static int message(const char *key, const char *text, struct json_object *parameters,
		   struct json_object **ret)
{
	struct json_object *o = json_object_new_object();
	int r = o ? 0 : -ENOMEM;

	if (r == 0 && key)
		r = add(o, key, json_object_new_string(text));
	if (r == 0 && parameters)
		r = add(o, "parameters", IOT_TAKE_PTR(parameters));
	json_object_put(parameters);
	if (r < 0) {
		json_object_put(o);
		return r;
	}
	*ret = o;
	return 0;
}

int control_call(const char *method, struct json_object *parameters, struct json_object **ret)
{
	return message("method", method, parameters, ret);
}

int control_reply(struct json_object *parameters, bool continues, struct json_object **ret)
{
	struct json_object *o;
	int r;

	if (!parameters)
		parameters = json_object_new_object();
	if (!parameters)
		return -ENOMEM;
	r = message(NULL, NULL, parameters, &o);
	if (r < 0)
		return r;
	if (continues) {
		r = add(o, "continues", json_object_new_boolean(true));
		if (r < 0) {
			json_object_put(o);
			return r;
		}
	}
	*ret = o;
	return 0;
}

int control_error(const char *error, struct json_object *parameters, struct json_object **ret)
{
	return message("error", error, parameters, ret);
}

struct json_object *control_u64(uint64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	return json_object_new_string(buf);
}
