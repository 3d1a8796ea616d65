// SPDX-License-Identifier: BSD-2-Clause
/*
 * control-socket.c - see control-socket.h.
 *
 * A new socket is bound under a temporary name, gets its mode and group, and is then renamed over
 * the path: nobody can connect to it with wider rights than it will have, and a dead socket is
 * replaced without a moment in which the path does not exist. Looking whether the path is alive and
 * replacing it are one step under a lock on the directory, so that of two daemons that start at
 * once one is refused.
 */
#include "daemon/control-socket.h"
#include "daemon/control-proto.h"
#include "daemon/fdstore.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

/* The socket among what the service manager passes: the rest is of its fd store, and taken by then. */
static int from_manager(struct control_socket *ret, struct iot_error *err)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), n_sockets = 0, fd = -EBADF;

	if (n < 0)
		return iot_error_set(err, n, "LISTEN_FDS: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (!fdstore_is_ours(names[i])) {
			fd = SD_LISTEN_FDS_START + i;
			n_sockets++;
		}
		free(names[i]);
	}
	free(names);
	if (n_sockets == 0)
		return 0;
	if (n_sockets > 1)
		return iot_error_set(err, -EINVAL, "LISTEN_FDS passes %d sockets, expected one",
				     n_sockets);
	if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
		return iot_error_set(err, -EINVAL,
				     "LISTEN_FDS: descriptor %d is no listening AF_UNIX stream "
				     "socket; use ListenStream=/run/iotraced/control.sock",
				     fd);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return iot_error_set(err, -errno, "LISTEN_FDS: %s", strerror(errno));
	*ret = (struct control_socket){.fd = fd};
	return 1;
}

/* 0: nothing there or a dead socket. */
static int check_path(const char *path, const struct sockaddr_un *sa, struct iot_error *err)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (lstat(path, &st) < 0) {
		if (errno == ENOENT)
			return 0;
		return iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	}
	if (!S_ISSOCK(st.st_mode))
		return iot_error_set(
			err, -EEXIST,
			"control socket %s: the path exists and is no socket; remove it "
			"or choose another with --socket",
			path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return iot_error_set(err, -errno, "socket: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return 0;
		/* EAGAIN: its backlog is full, so it lives. */
		if (errno != EAGAIN && errno != EINPROGRESS)
			return iot_error_set(err, -errno, "control socket %s: %s", path,
					     strerror(errno));
	}
	return iot_error_set(err, -EADDRINUSE,
			     "control socket %s: another process answers there; stop it or choose "
			     "another path with --socket",
			     path);
}

static int set_rights(const char *path, const char *group, struct iot_error *err)
{
	gid_t gid;

	/* Without rights to give it away (no root, not a member) the socket stays our group's. */
	if (group && *group && control_group_id(group, &gid) == 0 &&
	    chown(path, (uid_t)-1, gid) < 0 && errno != EPERM)
		return iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	if (chmod(path, 0660) < 0)
		return iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	return 0;
}

/* Binds and renames; on error the temporary name is gone. */
static int bind_path(const char *path, const char *group, struct control_socket *ret,
		     struct iot_error *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *copy = NULL;
	struct stat st;
	int r, n;

	n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s~", path);
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return iot_error_set(err, -ENAMETOOLONG,
				     "control socket %s: the path is longer than %zu bytes", path,
				     sizeof(sa.sun_path) - 2);
	copy = strdup(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!copy || fd < 0)
		return iot_error_set(err, copy ? -errno : -ENOMEM, "socket: %s", strerror(errno));
	/* Left behind by a daemon that was killed in here; anything else is somebody's and stays. */
	if (lstat(sa.sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(sa.sun_path);
	if (bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	r = set_rights(sa.sun_path, group, err);
	if (r == 0 && lstat(sa.sun_path, &st) < 0)
		r = iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	if (r == 0 && listen(fd, SOMAXCONN) < 0)
		r = iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	if (r == 0 && rename(sa.sun_path, path) < 0)
		r = iot_error_set(err, -errno, "control socket %s: %s", path, strerror(errno));
	if (r < 0) {
		unlink(sa.sun_path);
		return r;
	}
	*ret = (struct control_socket){.fd = IOT_TAKE_FD(fd),
				       .path = IOT_TAKE_PTR(copy),
				       .dev = st.st_dev,
				       .ino = st.st_ino};
	return 0;
}

/* The directory of path. Only the default one, which systemd makes for a service, is created: any other is
 * likelier a slip than a wish. Returns its descriptor. */
static int open_parent(const char *path, struct iot_error *err)
{
	_cleanup_free_ char *dir = strdup(path);
	char *slash;
	int fd;

	if (!dir)
		return -ENOMEM;
	slash = strrchr(dir, '/');
	if (!slash)
		snprintf(dir, strlen(path) + 1, ".");
	else if (slash == dir)
		slash[1] = '\0';
	else
		*slash = '\0';
	if (strcmp(path, CONTROL_SOCKET) == 0 && mkdir(dir, 0755) < 0 && errno != EEXIST)
		return iot_error_set(
			err, -errno,
			"control socket %s: cannot create directory %s: %s; create it or "
			"choose another path with --socket",
			path, dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return iot_error_set(err, -errno,
				     "control socket %s: there is no directory %s; create it or "
				     "choose another path with --socket",
				     path, dir);
	if (fd < 0)
		return iot_error_set(err, -errno, "control socket %s: directory %s: %s", path, dir,
				     strerror(errno));
	return fd;
}

int control_socket_open(const char *path, const char *group, struct control_socket *ret,
			struct iot_error *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_close_ int dirfd = -EBADF;
	int r;

	r = from_manager(ret, err);
	if (r != 0)
		return r < 0 ? r : 0;

	if (strlen(path) > sizeof(sa.sun_path) - 2)
		return iot_error_set(err, -ENAMETOOLONG,
				     "control socket %s: the path is longer than %zu bytes", path,
				     sizeof(sa.sun_path) - 2);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	dirfd = open_parent(path, err);
	if (dirfd < 0)
		return dirfd;
	/* Held for a moment only; whoever else keeps a lock on it (/tmp) must not stop us. */
	for (int i = 0; i < 20 && flock(dirfd, LOCK_EX | LOCK_NB) < 0; i++)
		usleep(50 * 1000);
	r = check_path(path, &sa, err);
	if (r < 0)
		return r;
	return bind_path(path, group, ret, err);
}

void control_socket_done(struct control_socket *s)
{
	struct stat st;

	if (s->path) {
		if (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
			unlink(s->path);
		free(s->path);
	}
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct control_socket){.fd = -EBADF};
}

int control_group_id(const char *name, gid_t *ret)
{
	struct group *g = getgrnam(name);

	if (!g)
		return -ENOENT;
	*ret = g->gr_gid;
	return 0;
}

static bool peer_in_group(int fd, gid_t gid)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t len = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || errno != ERANGE)
		return false;
	groups = malloc(len);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}

bool control_peer_may_change(int fd, gid_t admin_gid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	if (cred.uid == 0 || cred.uid == geteuid())
		return true;
	if (admin_gid == (gid_t)-1)
		return false;
	return cred.gid == admin_gid || peer_in_group(fd, admin_gid);
}
