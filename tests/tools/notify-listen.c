// SPDX-License-Identifier: BSD-2-Clause
/*
 * notify-listen.c - the service manager's end of sd_notify, for tests.
 *
 * usage: notify-listen SOCKET DIRECTORY
 *
 * Binds SOCKET (datagrams) and prints one line per message, its lines joined by " | ", behind the
 * number of *.open files that DIRECTORY holds at that moment: READY must not come before the first
 * segment. Runs until it is killed. Exit: 1 it cannot listen, 2 usage.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned int count_open(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned int n = 0;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		n += len > 5 && strcmp(e->d_name + len - 5, ".open") == 0;
	}
	if (d)
		closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char buf[4096];
	ssize_t n;
	int fd;

	if (argc != 3 || strlen(argv[1]) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "usage: notify-listen SOCKET DIRECTORY\n");
		return 2;
	}
	memcpy(sa.sun_path, argv[1], strlen(argv[1]) + 1);
	unlink(argv[1]);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		fprintf(stderr, "notify-listen: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((n = recv(fd, buf, sizeof(buf) - 1, 0)) >= 0) {
		printf("open=%u ", count_open(argv[2]));
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n')
				fputs(" | ", stdout);
			else
				putchar(buf[i]);
		}
		putchar('\n');
	}
	return 1;
}
