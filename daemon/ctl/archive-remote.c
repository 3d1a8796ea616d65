// SPDX-License-Identifier: BSD-2-Clause
/*
 * archive-remote.c - a segment to a remote of rclone, see archive.h.
 *
 * Uploaded under a name that no reader takes for a segment's, renamed on the remote, and read back from its
 * final place: what remotes say of digests differs, and some say nothing. A copy that differs is taken away
 * again, as far as the remote lets us; the next attempt replaces it in any case.
 */
#include "daemon/ctl/archive.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/*
 * One attempt each: who calls tries again, with what it knows by then. The time limits are those of a
 * connection that stands still. Without --ignore-times a copy of the right size and time would be taken for right.
 */
#define RCLONE                                                                                 \
	"rclone", "--retries=1", "--low-level-retries=2", "--contimeout=20s", "--timeout=60s", \
		"--ignore-times"

/* Runs argv; its output goes to a pipe, whose end is *ret_fd, or nowhere. */
static int start(char *const argv[], pid_t *ret_pid, int *ret_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fds[2] = {-1, -1}, r;
	sigset_t none;

	if (ret_fd && pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	sigemptyset(&none);
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		goto out;
	r = posix_spawnattr_init(&attr);
	if (r != 0) {
		posix_spawn_file_actions_destroy(&actions);
		goto out;
	}
	r = posix_spawnattr_setsigmask(&attr, &none);
	if (r == 0)
		r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
						     0);
	if (r == 0 && ret_fd)
		r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	else if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawnp(ret_pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
out:
	if (fds[1] >= 0)
		close(fds[1]);
	if (r != 0 && fds[0] >= 0)
		close(fds[0]);
	else if (ret_fd)
		*ret_fd = fds[0];
	return -r;
}

/* With absent: true there if rclone says that there is no such file, which is no error then. */
static int finish(pid_t pid, const char *what, bool *absent, struct iot_error *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return iot_error_set(err, -errno, "rclone %s: %s", what, strerror(errno));
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	/* rclone's exit codes: 3 is "directory not found", which cat says of files, too, 4 "file not found". */
	if (absent && WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 4)) {
		*absent = true;
		return 0;
	}
	if (WIFEXITED(status))
		return iot_error_set(err, -EIO, "rclone %s: exit status %d", what,
				     WEXITSTATUS(status));
	return iot_error_set(err, -EIO, "rclone %s: signal %d", what, WTERMSIG(status));
}

static int run(const char *what, const char *a, const char *b, struct iot_error *err)
{
	const char *const argv[] = {RCLONE, what, a, b, NULL};
	pid_t pid = 0;
	int r;

	r = start((char *const *)argv, &pid, NULL);
	if (r < 0)
		return iot_error_set(err, r, "rclone: %s", strerror(-r));
	return finish(pid, what, NULL, err);
}

static int read_back(const char *path, const struct archive_item *item, struct iot_error *err)
{
	const char *const argv[] = {RCLONE, "cat", path, NULL};
	_cleanup_close_ int fd = -EBADF;
	char digest[IOT_DIGEST_LEN + 1];
	uint64_t bytes = 0;
	pid_t pid = 0;
	int r, result;

	r = start((char *const *)argv, &pid, &fd);
	if (r < 0)
		return iot_error_set(err, r, "rclone: %s", strerror(-r));
	result = iot_digest_fd(fd, digest, &bytes);
	r = finish(pid, "cat", NULL, err);
	if (r < 0)
		return r;
	if (result < 0)
		return iot_error_set(err, result, "%s: %s", path, strerror(-result));
	if (bytes != item->bytes || strcmp(digest, item->digest) != 0)
		return iot_error_set(err, -EBADMSG, "%s: what was read back differs", path);
	return 0;
}

static int spool(int from, int to)
{
	char buf[16384];

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = iot_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* Nothing is put where it is not known what is there already. */
static int check_final(const char *path, const struct archive_item *item, struct iot_error *err)
{
	const char *const argv[] = {RCLONE, "cat", path, NULL};
	_cleanup_close_ int fd = -EBADF;
	_cleanup_fclose_ FILE *temp = tmpfile();
	bool absent = false;
	pid_t pid = 0;
	int r, result;

	if (!temp)
		return iot_error_set(err, -errno, "temporary file: %s", strerror(errno));
	r = start((char *const *)argv, &pid, &fd);
	if (r < 0)
		return iot_error_set(err, r, "rclone: %s", strerror(-r));
	result = spool(fd, fileno(temp));
	/* Or rclone waits for a reader. */
	close(fd);
	fd = -EBADF;
	if (result < 0) {
		(void)!finish(pid, "cat", NULL, NULL);
		return iot_error_set(err, result, "temporary file: %s", strerror(-result));
	}
	r = finish(pid, "cat", &absent, err);
	if (r < 0 || absent)
		return r;
	if (lseek(fileno(temp), 0, SEEK_SET) < 0)
		return iot_error_set(err, -errno, "temporary file: %s", strerror(errno));
	return archive_may_replace(fileno(temp), path, item, err);
}

int archive_put_remote(const char *destination, const struct archive_item *item,
		       struct iot_error *err)
{
	_cleanup_free_ char *path = NULL, *part = NULL;
	size_t len = strlen(destination);
	/* "remote:" is the place where one is when one logs in, "remote:/" the root. */
	const char *slash = destination[len - 1] == ':' || destination[len - 1] == '/' ? "" : "/";
	int r;

	if (asprintf(&path, "%s%s%s/%s", destination, slash, item->place, item->name) < 0)
		return iot_error_set(err, -ENOMEM, "out of memory");
	if (asprintf(&part, "%s.part", path) < 0)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = check_final(path, item, err);
	if (r == 0)
		r = run("copyto", item->source, part, err);
	if (r == 0)
		r = run("moveto", part, path, err);
	if (r == 0)
		r = read_back(path, item, err);
	if (r == -EBADMSG)
		(void)!run("deletefile", path, NULL, NULL);
	return r;
}
