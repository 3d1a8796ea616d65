/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - the Varlink server on the control socket.
 *
 * Everything a client can do costs bounded memory and no waiting: requests up to 64 KiB, one at a time
 * per connection (the next is not read before the reply is taken), a bounded number of
 * connections, and a deadline on each silence, each half-sent request and each reply not taken.
 * Whoever breaks a rule gets one error and is closed.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/control-dispatch.h"

#define CONTROL_MAX_CLIENTS 64
#define CONTROL_IDLE_USEC (30ULL * 1000 * 1000)

struct control;

struct control_options {
	sd_event *event;
	const char *path;
	const char *group;	       /* of the socket; "" or NULL = leave */
	const struct control_ops *ops; /* borrowed */
	void *userdata;
	uint64_t idle_usec; /* 0 = CONTROL_IDLE_USEC */
};

/* -EADDRINUSE: a live daemon has the path. */
int control_open(const struct control_options *opts, struct control **ret,
		 struct iot_error *err) IOT_MUST_CHECK;
/* Ends an operation that was started under token; takes reply (a whole message, NULL = out of
 * memory). The client may be gone. */
void control_finish(struct control *c, uint64_t token, struct json_object *reply);
/* Calls that wait for control_finish. */
unsigned int control_n_pending(const struct control *c);
struct control *control_close(struct control *c);
