// SPDX-License-Identifier: BSD-2-Clause
/*
 * client.c - one call on the daemon's control socket: connect, ask, read one reply, close.
 *
 * Every way this can go wrong ends in one message that says what to do, and in the exit code that
 * scripts rely on: 3 when no daemon answers, 4 when it may not be asked, 1 when it says no.
 */
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "daemon/ctl/live.h"

/* Rotate and Flush wait for the worker, whose own limit is shorter. */
#define REPLY_TIMEOUT_SEC 120

/* The unit's socket is its group's; that of a daemon started by hand is root's alone. */
static int denied(const char *path)
{
	const struct group *g;
	struct stat st;

	if (stat(path, &st) < 0 || !(st.st_mode & S_IWGRP) || st.st_gid == 0)
		return ctl_fail(CTL_DENIED, "no permission to use %s; run as root", path);
	g = getgrgid(st.st_gid);
	if (!g)
		return ctl_fail(CTL_DENIED,
				"no permission to use %s; run as root or as a member of the "
				"socket's group (%u)",
				path, st.st_gid);
	return ctl_fail(CTL_DENIED,
			"no permission to use %s; run as root or as a member of the socket's group "
			"(%s)",
			path, g->gr_name);
}

static int connect_daemon(const char *path, int *ret)
{
	const struct timeval timeout = {.tv_sec = REPLY_TIMEOUT_SEC};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;

	if (strlen(path) >= sizeof(sa.sun_path))
		return ctl_fail(CTL_USAGE, "socket path is longer than %zu bytes: %s",
				sizeof(sa.sun_path) - 1, path);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return ctl_fail(CTL_ERROR, "socket: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return ctl_fail(CTL_ERROR, "socket: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0) {
		*ret = IOT_TAKE_FD(fd);
		return CTL_OK;
	}
	switch (errno) {
	case EACCES:
	case EPERM:
		return denied(path);
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED:
		return ctl_fail(CTL_NO_DAEMON,
				"no daemon answers at %s; is iotraced running? (systemctl status "
				"iotraced; another socket: --socket PATH)",
				path);
	default:
		return ctl_fail(CTL_ERROR, "%s: %s", path, strerror(errno));
	}
}

static int send_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads until a whole message is there. Negative errno; -ENODATA: closed before. */
static int read_reply(int fd, struct json_object **ret)
{
	_cleanup_free_ char *buf = NULL;
	size_t len = 0, size = 0, used;
	ssize_t n;
	int r;

	for (;;) {
		if (len == size) {
			char *more;

			size = size ? size * 2 : 64 * 1024;
			more = realloc(buf, size);
			if (!more)
				return -ENOMEM;
			buf = more;
		}
		n = recv(fd, buf + len, size - len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		}
		if (n == 0)
			return -ENODATA;
		/* Only what is new can hold the end: a large reply is searched once. */
		len += (size_t)n;
		if (!memchr(buf + len - n, '\0', (size_t)n) && len < CONTROL_MAX_REPLY)
			continue;
		r = control_parse(buf, len, CONTROL_MAX_REPLY, ret, &used);
		if (r != CONTROL_MORE)
			return r;
	}
}

static int no_reply(const char *path, int r)
{
	switch (r) {
	case -ENODATA:
	case -ECONNRESET:
	case -EPIPE:
		return ctl_fail(CTL_NO_DAEMON, "the daemon at %s closed without a reply", path);
	case -ETIMEDOUT:
		return ctl_fail(CTL_ERROR, "the daemon at %s did not reply within %d s", path,
				REPLY_TIMEOUT_SEC);
	case -EBADMSG:
	case -E2BIG:
	case -ELOOP:
		return ctl_fail(CTL_ERROR, "what answers at %s does not speak Varlink", path);
	default:
		return ctl_fail(CTL_ERROR, "%s: %s", path, strerror(-r));
	}
}

static int error_reply(const char *error, struct json_object *parameters)
{
	const char *text = live_str(parameters, "message");
	const char *detail = live_str(parameters, "parameter");
	char a[256], b[256];

	if (strcmp(error, CONTROL_INTERFACE ".PermissionDenied") == 0)
		return ctl_fail(CTL_DENIED, "denied: %s",
				ctl_printable(text ? text : "no reason given", a, sizeof(a)));
	if (text)
		return ctl_fail(CTL_ERROR, "%s", ctl_printable(text, a, sizeof(a)));
	return ctl_fail(CTL_ERROR, "the daemon refused: %s%s%s", ctl_printable(error, a, sizeof(a)),
			detail ? ": " : "", detail ? ctl_printable(detail, b, sizeof(b)) : "");
}

/* Takes reply. */
static int take_reply(const char *path, struct json_object *reply, struct json_object **ret)
{
	struct json_object *parameters = live_object(reply, "parameters");
	const char *error = live_str(reply, "error");
	int r = CTL_OK;

	if (error)
		r = error_reply(error, parameters);
	else if (parameters && !json_object_is_type(parameters, json_type_object))
		r = no_reply(path, -EBADMSG);
	else
		*ret = parameters ? json_object_get(parameters) : json_object_new_object();
	json_object_put(reply);
	return r;
}

int ctl_call(struct ctl *c, const char *method, struct json_object *parameters,
	     struct json_object **ret_parameters)
{
	const char *path = c->socket ? c->socket : CONTROL_SOCKET;
	struct json_object *call, *reply = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -EBADF;
	size_t len = 0;
	int r;

	r = control_call(method, parameters, &call);
	if (r == 0) {
		r = control_format(call, &text, &len);
		json_object_put(call);
	}
	if (r < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	r = connect_daemon(path, &fd);
	if (r != CTL_OK)
		return r;
	/* A daemon that turns clients away has replied before it was asked: the reply counts. */
	r = send_all(fd, text, len);
	if (r == 0 || r == -EPIPE)
		r = read_reply(fd, &reply);
	if (r < 0)
		return no_reply(path, r);
	return take_reply(path, reply, ret_parameters);
}
