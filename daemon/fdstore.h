/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdstore.h - descriptors that the service manager keeps while no daemon lives (FileDescriptorStoreMax=
 * in the unit), given back to the next one as LISTEN_FDS.
 *
 * Who keeps them is not known to us: without NOTIFY_SOCKET nothing is sent, and a manager that does not
 * keep them closes its copies. So nothing here can fail in a way that matters to collecting; whether a
 * successor gets what it needs, it sees for itself. The names sent are remembered, to be taken back when
 * the capture has ended.
 */
#pragma once

#include "format/base.h"

#define FDSTORE_NAME_MAX 160

struct fdstore_fd {
	char name[FDSTORE_NAME_MAX];
	int fd; /* negative: taken out */
};

struct fdstore {
	struct fdstore_fd *fds; /* of what was sent only the name is kept */
	size_t n;
	size_t room;
};

/* Does somebody listen who may keep descriptors? */
bool fdstore_exists(void);
/* What our names begin with: the listening socket of a socket unit comes among the kept descriptors. */
bool fdstore_is_ours(const char *name);
/* What of ours was given to this process; all of it closes on exec. *fs is empty before. What has another
 * name, and the environment that tells, stay for control_socket_open(). */
int fdstore_take(struct fdstore *fs) IOT_MUST_CHECK;
/* 1: sent. 0: nobody there. */
int fdstore_put(struct fdstore *fs, const char *name, int fd) IOT_MUST_CHECK;
/* Tells the manager to forget everything named in fs, and closes what of it is open. */
void fdstore_clear(struct fdstore *fs);
/* Closes what is open; the manager keeps its copies. */
void fdstore_done(struct fdstore *fs);
