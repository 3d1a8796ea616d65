// SPDX-License-Identifier: BSD-2-Clause
/*
 * hold-lock.c - run a command while a file is locked as a daemon locks its state directory.
 *
 *	hold-lock FILE COMMAND [ARGUMENT...]
 *
 * The lock is a POSIX record lock, which flock(1) cannot take. It belongs to this process; the
 * command is a child, and so finds it held by another. Exits as the command does. Waits for another
 * holder, but not for long: a shell that reads a command's output does not wait for its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd, status;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: hold-lock FILE COMMAND [ARGUMENT...]\n", stderr);
		return 125;
	}
	alarm(10);
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0 || fcntl(fd, F_SETLKW, &l) < 0) {
		fprintf(stderr, "hold-lock: %s: %s\n", argv[1], strerror(errno));
		return 125;
	}
	alarm(0);
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "hold-lock: %s: %s\n", argv[2], strerror(errno));
		_exit(125);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
