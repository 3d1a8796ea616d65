// SPDX-License-Identifier: BSD-2-Clause
/*
 * control-dispatch.c - see control-dispatch.h.
 *
 * Order of checks: is it a call at all, does the method exist, may the peer call it, are its
 * parameters right. So a client that is not allowed to change anything learns that and no more.
 */
#include "daemon/control-dispatch.h"

#define SERVICE "org.varlink.service"

static const char service_description[] =
	"# What every Varlink service answers.\n"
	"interface org.varlink.service\n"
	"\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string)\n"
	"error PermissionDenied ()\n"
	"error ExpectedMore ()\n";

struct call {
	const struct control_ops *ops;
	void *userdata;
	uint64_t token;
	struct json_object *parameters; /* borrowed; an object or NULL */
};

static int error_with(const char *error, const char *key, const char *value,
		      struct json_object **ret)
{
	struct json_object *p = json_object_new_object();
	struct json_object *v = json_object_new_string(value);

	if (!p || !v || json_object_object_add(p, key, v) < 0) {
		json_object_put(p);
		json_object_put(v);
		return -ENOMEM;
	}
	return control_error(error, p, ret);
}

int control_failed(const char *error, const char *text, struct json_object **ret)
{
	return error_with(error, "message", text, ret);
}

int control_op_error(int error, const char *text, struct json_object **ret)
{
	const char *name = error == -EBUSY ? CONTROL_INTERFACE ".Busy"
					   : CONTROL_INTERFACE ".Failed";

	return control_failed(name, text ? text : strerror(-error), ret);
}

static int reply_string(const char *key, const char *value, struct json_object **ret)
{
	struct json_object *p = json_object_new_object();
	struct json_object *v = json_object_new_string(value);

	if (!p || !v || json_object_object_add(p, key, v) < 0) {
		json_object_put(p);
		json_object_put(v);
		return -ENOMEM;
	}
	return control_reply(p, false, ret);
}

/* ---- org.varlink.service -------------------------------------------------------------------- */

static int get_info(const struct call *c, struct json_object **ret)
{
	static const char *const fields[][2] = {
		{"vendor", "iotraced"},
		{"product", "iotraced"},
		{"version", IOTRACED_VERSION},
		{"url", ""},
	};
	static const char *const interfaces[] = {SERVICE, CONTROL_INTERFACE};
	struct json_object *p = json_object_new_object(), *list = json_object_new_array(), *v;

	(void)c;
	if (!p || !list)
		goto oom;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(fields); i++) {
		v = json_object_new_string(fields[i][1]);
		if (!v || json_object_object_add(p, fields[i][0], v) < 0) {
			json_object_put(v);
			goto oom;
		}
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(interfaces); i++) {
		v = json_object_new_string(interfaces[i]);
		if (!v || json_object_array_add(list, v) < 0) {
			json_object_put(v);
			goto oom;
		}
	}
	if (json_object_object_add(p, "interfaces", list) < 0)
		goto oom;
	return control_reply(p, false, ret);
oom:
	json_object_put(p);
	json_object_put(list);
	return -ENOMEM;
}

static int get_interface_description(const struct call *c, struct json_object **ret)
{
	struct json_object *v;
	const char *name;

	if (!json_object_object_get_ex(c->parameters, "interface", &v) ||
	    !json_object_is_type(v, json_type_string))
		return error_with(SERVICE ".InvalidParameter", "parameter", "interface", ret);
	name = json_object_get_string(v);
	if (strcmp(name, CONTROL_INTERFACE) == 0)
		return reply_string("description", control_interface_description, ret);
	if (strcmp(name, SERVICE) == 0)
		return reply_string("description", service_description, ret);
	return error_with(SERVICE ".InterfaceNotFound", "interface", name, ret);
}

/* ---- io.iotraced.Control -------------------------------------------------------------------- */

static int finish_read(int result, struct json_object *parameters, char *text,
		       struct json_object **ret)
{
	int r;

	if (result < 0) {
		json_object_put(parameters);
		r = control_op_error(result, text, ret);
	} else {
		r = control_reply(parameters, false, ret);
	}
	free(text);
	return r;
}

#define READ_METHOD(op)                                                      \
	static int call_##op(const struct call *c, struct json_object **ret) \
	{                                                                    \
		struct json_object *parameters = NULL;                       \
		char *text = NULL;                                           \
		int r = c->ops->op(c->userdata, &parameters, &text);         \
                                                                             \
		return finish_read(r, parameters, text, ret);                \
	}
READ_METHOD(status)
READ_METHOD(in_flight)
READ_METHOD(probes)
READ_METHOD(config)

static int finish_start(int result, char *text, struct json_object **ret)
{
	int r = CONTROL_PENDING;

	if (result < 0)
		r = control_op_error(result, text, ret);
	free(text);
	return r;
}

static int call_rotate(const struct call *c, struct json_object **ret)
{
	struct json_object *v = NULL;
	const char *stream = NULL;
	char *text = NULL;
	int r;

	if (json_object_object_get_ex(c->parameters, "stream", &v) && v) {
		if (!json_object_is_type(v, json_type_string))
			return error_with(SERVICE ".InvalidParameter", "parameter", "stream", ret);
		stream = json_object_get_string(v);
	}
	r = c->ops->rotate(c->userdata, c->token, stream, &text);
	if (r == -ENOENT) {
		free(text);
		return error_with(SERVICE ".InvalidParameter", "parameter", "stream", ret);
	}
	return finish_start(r, text, ret);
}

static int call_flush(const struct call *c, struct json_object **ret)
{
	char *text = NULL;
	int r = c->ops->flush(c->userdata, c->token, &text);

	return finish_start(r, text, ret);
}

static const struct method {
	const char *name;
	int (*call)(const struct call *c, struct json_object **ret);
	bool change;
} methods[] = {
	{SERVICE ".GetInfo", get_info, false},
	{SERVICE ".GetInterfaceDescription", get_interface_description, false},
	{CONTROL_INTERFACE ".Status", call_status, false},
	{CONTROL_INTERFACE ".InFlight", call_in_flight, false},
	{CONTROL_INTERFACE ".Probes", call_probes, false},
	{CONTROL_INTERFACE ".Config", call_config, false},
	{CONTROL_INTERFACE ".Rotate", call_rotate, true},
	{CONTROL_INTERFACE ".Flush", call_flush, true},
};

static int no_such_method(const char *name, struct json_object **ret)
{
	static const char *const interfaces[] = {SERVICE, CONTROL_INTERFACE};
	const char *dot = strrchr(name, '.');
	char interface[128];

	if (!dot || (size_t)(dot - name) >= sizeof(interface))
		return error_with(SERVICE ".MethodNotFound", "method", name, ret);
	memcpy(interface, name, (size_t)(dot - name));
	interface[dot - name] = '\0';
	for (size_t i = 0; i < IOT_ARRAY_SIZE(interfaces); i++) {
		if (strcmp(interface, interfaces[i]) == 0)
			return error_with(SERVICE ".MethodNotFound", "method", name, ret);
	}
	return error_with(SERVICE ".InterfaceNotFound", "interface", interface, ret);
}

static bool flag_set(struct json_object *request, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(request, key, &v) &&
	       json_object_is_type(v, json_type_boolean) && json_object_get_boolean(v);
}

bool control_is_oneway(struct json_object *request)
{
	return flag_set(request, "oneway");
}

static int dispatch_method(const struct call *c, const struct control_peer *peer, const char *name,
			   struct json_object **ret)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(methods); i++) {
		if (strcmp(name, methods[i].name) != 0)
			continue;
		if (methods[i].change && !peer->may_change)
			return control_failed(CONTROL_INTERFACE ".PermissionDenied",
					      "only root, the daemon's user and members of the "
					      "group iotraced-admin may do this",
					      ret);
		return methods[i].call(c, ret);
	}
	return no_such_method(name, ret);
}

int control_dispatch(const struct control_ops *ops, void *userdata, const struct control_peer *peer,
		     uint64_t token, struct json_object *request, struct json_object **ret_reply)
{
	struct call c = {.ops = ops, .userdata = userdata, .token = token};
	struct json_object *v, *reply = NULL;
	int r;

	if (!json_object_object_get_ex(request, "method", &v) ||
	    !json_object_is_type(v, json_type_string)) {
		return error_with(SERVICE ".InvalidParameter", "parameter", "method", ret_reply);
	}
	json_object_object_get_ex(request, "parameters", &c.parameters);
	if (c.parameters && !json_object_is_type(c.parameters, json_type_object))
		return error_with(SERVICE ".InvalidParameter", "parameter", "parameters",
				  ret_reply);
	if (flag_set(request, "upgrade"))
		return error_with(SERVICE ".InvalidParameter", "parameter", "upgrade", ret_reply);

	r = dispatch_method(&c, peer, json_object_get_string(v), &reply);
	if (r == 0 && control_is_oneway(request)) {
		json_object_put(reply);
		reply = NULL;
	}
	if (r == 0)
		*ret_reply = reply;
	return r;
}
