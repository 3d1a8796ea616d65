/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control-dispatch.h - from one parsed request to one reply. No sockets and no event loop: the server
 * (control.c) calls it with what it read and with who is asking, a fuzz target with anything.
 *
 * Reads are answered at once. Changes take as long as the worker takes, so their operations only
 * start something and the reply comes later under the call's token (control_finish in control.h).
 */
#pragma once

#include "daemon/control-proto.h"

struct control_peer {
	bool may_change; /* root, the daemon's user, or a member of iotraced-admin */
};

/*
 * What the daemon does for a call. Synchronous ones put the reply's parameters into *ret. Negative
 * errno: the client gets Failed (-EBUSY: Busy). *message may be set to a text for it; caller frees.
 */
struct control_ops {
	int (*status)(void *userdata, struct json_object **ret, char **message);
	int (*in_flight)(void *userdata, struct json_object **ret, char **message);
	int (*probes)(void *userdata, struct json_object **ret, char **message);
	int (*config)(void *userdata, struct json_object **ret, char **message);
	/* Start only; stream NULL = all. -ENOENT: no such stream. */
	int (*rotate)(void *userdata, uint64_t token, const char *stream, char **message);
	int (*flush)(void *userdata, uint64_t token, char **message);
};

/*
 * 0: *ret_reply is the whole reply message, or NULL where the caller wants none (oneway).
 * Positive CONTROL_PENDING: an operation was started under token and will be finished later.
 * Negative: out of memory.
 */
#define CONTROL_PENDING 2
int control_dispatch(const struct control_ops *ops, void *userdata, const struct control_peer *peer,
		     uint64_t token, struct json_object *request,
		     struct json_object **ret_reply) IOT_MUST_CHECK;

/* The caller wants no reply, whatever the outcome. */
bool control_is_oneway(struct json_object *request);

/* A whole error message with a text: errors that are not a method's answer (garbage, limits). */
int control_failed(const char *error, const char *text, struct json_object **ret) IOT_MUST_CHECK;
/* The reply to a failed operation: Busy or Failed. message may be NULL. */
int control_op_error(int error, const char *message, struct json_object **ret) IOT_MUST_CHECK;
