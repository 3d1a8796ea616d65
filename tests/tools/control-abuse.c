// SPDX-License-Identifier: BSD-2-Clause
/*
 * control-abuse.c - clients of the control socket as nobody wants them, and a socket activator.
 *
 * usage: control-abuse SOCKET call JSON       one request; prints what comes back
 *        control-abuse SOCKET half JSON       the same, closing our side for writing first
 *        control-abuse SOCKET garbage         bytes that are no JSON
 *        control-abuse SOCKET flood BYTES     a request that never ends
 *        control-abuse SOCKET silent N SEC    N connections that say nothing for SEC seconds
 *        control-abuse SOCKET slow JSON N SEC N clients that ask and never read
 *        control-abuse SOCKET activate PROGRAM ARG...  listens, hands the socket over, executes
 *
 * What comes back is printed with each NUL as a newline, then "(closed)" once the other side closed or
 * "(timeout)" after 5 s. Exit: 0 done, 1 could not connect, 2 usage.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "format/base.h"

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "control-abuse: path too long\n");
		exit(2);
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	return sa;
}

static int connect_to(const char *path)
{
	struct sockaddr_un sa = address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		fprintf(stderr, "control-abuse: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

/* Until the first NUL, the end, or 5 s without either; with `all`, until the end. */
static void print_reply(int fd, bool all)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char buf[65536];
	bool more = true;

	while (more) {
		ssize_t n;

		if (poll(&p, 1, 5000) <= 0) {
			puts("(timeout)");
			return;
		}
		n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0) {
			puts("(closed)");
			return;
		}
		for (ssize_t i = 0; i < n; i++) {
			putchar(buf[i] ? buf[i] : '\n');
			if (!buf[i] && !all)
				more = false;
		}
	}
}

static void send_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

		if (n < 0) {
			printf("(refused after a send: %s)\n", strerror(errno));
			return;
		}
		buf += n;
		len -= (size_t)n;
	}
}

static void flood(int fd, uint64_t bytes)
{
	static char chunk[65536];

	memset(chunk, 'x', sizeof(chunk));
	while (bytes > 0) {
		size_t len = IOT_MIN(bytes, sizeof(chunk));
		ssize_t n = send(fd, chunk, len, MSG_NOSIGNAL);

		if (n < 0)
			break;
		bytes -= (uint64_t)n;
	}
}

static void hold(const char *path, const char *request, uint64_t n, uint64_t sec)
{
	for (uint64_t i = 0; i < n; i++) {
		int fd = connect_to(path);

		if (request)
			send_all(fd, request, strlen(request) + 1);
	}
	puts("holding");
	fflush(stdout);
	sleep((unsigned int)sec);
}

static int activate(const char *path, char **argv)
{
	struct sockaddr_un sa = address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char pid[24];

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 16) < 0) {
		fprintf(stderr, "control-abuse: %s: %s\n", path, strerror(errno));
		return 1;
	}
	if (fd != 3) {
		dup2(fd, 3);
		close(fd);
	}
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	execv(argv[0], argv);
	fprintf(stderr, "control-abuse: %s: %s\n", argv[0], strerror(errno));
	return 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: see the head of control-abuse.c\n");
	return 2;
}

static uint64_t number(const char *s)
{
	uint64_t v;

	if (iot_parse_u64(s, &v) < 0)
		exit(usage());
	return v;
}

int main(int argc, char **argv)
{
	const char *path = argv[1], *mode;
	int fd;

	if (argc < 3)
		return usage();
	mode = argv[2];
	if (strcmp(mode, "activate") == 0 && argc > 3)
		return activate(path, argv + 3);
	if (strcmp(mode, "silent") == 0 && argc == 5) {
		hold(path, NULL, number(argv[3]), number(argv[4]));
		return 0;
	}
	if (strcmp(mode, "slow") == 0 && argc == 6) {
		hold(path, argv[3], number(argv[4]), number(argv[5]));
		return 0;
	}
	fd = connect_to(path);
	if (strcmp(mode, "call") == 0 && argc == 4) {
		send_all(fd, argv[3], strlen(argv[3]) + 1);
		print_reply(fd, false);
	} else if (strcmp(mode, "half") == 0 && argc == 4) {
		send_all(fd, argv[3], strlen(argv[3]) + 1);
		shutdown(fd, SHUT_WR);
		print_reply(fd, true);
	} else if (strcmp(mode, "garbage") == 0) {
		static const char bytes[] = "\x7f\x45LF\x01\x02{{{\n";

		send_all(fd, bytes, sizeof(bytes)); /* with its NUL: a whole message */
		print_reply(fd, true);
	} else if (strcmp(mode, "flood") == 0 && argc == 4) {
		flood(fd, number(argv[3]));
		print_reply(fd, true);
	} else {
		return usage();
	}
	close(fd);
	return 0;
}
