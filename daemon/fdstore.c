// SPDX-License-Identifier: BSD-2-Clause
/* fdstore.c - see fdstore.h. */
#include "daemon/fdstore.h"

#include <systemd/sd-daemon.h>

bool fdstore_exists(void)
{
	const char *e = getenv("NOTIFY_SOCKET");

	return e && *e;
}

static struct fdstore_fd *add(struct fdstore *fs, const char *name, int fd)
{
	if (fs->n == fs->room) {
		size_t more = fs->room ? 2 * fs->room : 64;
		struct fdstore_fd *grown = reallocarray(fs->fds, more, sizeof(*grown));

		if (!grown)
			return NULL;
		fs->fds = grown;
		fs->room = more;
	}
	snprintf(fs->fds[fs->n].name, sizeof(fs->fds[fs->n].name), "%s", name);
	fs->fds[fs->n].fd = fd;
	return &fs->fds[fs->n++];
}

bool fdstore_is_ours(const char *name)
{
	return strncmp(name, "block.", 6) == 0 || strncmp(name, "packet.", 7) == 0;
}

int fdstore_take(struct fdstore *fs)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(0, &names), r = 0;

	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		bool ours = fdstore_is_ours(names[i]);

		if (r >= 0 && ours && !add(fs, names[i], SD_LISTEN_FDS_START + i))
			r = -ENOMEM;
		if (r < 0 && ours)
			close(SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
	return r;
}

int fdstore_put(struct fdstore *fs, const char *name, int fd)
{
	char text[FDSTORE_NAME_MAX + 64];
	int r;

	if (strlen(name) >= FDSTORE_NAME_MAX)
		return -ENAMETOOLONG;
	/*
	 * FDPOLL=0 (systemd 246): a descriptor is not dropped for what poll says of it. Without that, one
	 * of a kernel object that reports an error would vanish from the middle of the set.
	 */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	r = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
	if (r <= 0)
		return r;
	return add(fs, name, -EBADF) ? 1 : -ENOMEM;
}

void fdstore_clear(struct fdstore *fs)
{
	for (size_t i = 0; i < fs->n; i++)
		(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", fs->fds[i].name);
	fdstore_done(fs);
}

void fdstore_done(struct fdstore *fs)
{
	for (size_t i = 0; i < fs->n; i++)
		if (fs->fds[i].fd >= 0)
			close(fs->fds[i].fd);
	free(fs->fds);
	*fs = (struct fdstore){};
}
