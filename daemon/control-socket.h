/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control-socket.h - the listening socket's life on the file system, and who may do what on it.
 */
#pragma once

#include <sys/stat.h>

#include "format/base.h"

#define CONTROL_ADMIN_GROUP "iotraced-admin"

struct control_socket {
	int fd;
	char *path; /* NULL: handed over by the service manager, not ours to remove */
	dev_t dev;
	ino_t ino;
};

/*
 * Takes the socket of LISTEN_FDS, or binds path with mode 0660 and the group (if it exists). A socket
 * nobody answers on is replaced; -EADDRINUSE: a live process answers.
 */
int control_socket_open(const char *path, const char *group, struct control_socket *ret,
			struct iot_error *err) IOT_MUST_CHECK;
/* Closes, and removes the path if it is still the socket bound here. */
void control_socket_done(struct control_socket *s);

/* The group's id; -ENOENT: no such group. Asks the name service: not per client. */
int control_group_id(const char *name, gid_t *ret) IOT_MUST_CHECK;
/* By SO_PEERCRED and SO_PEERGROUPS; admin_gid (gid_t)-1 = there is no such group. */
bool control_peer_may_change(int fd, gid_t admin_gid);
