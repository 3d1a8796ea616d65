/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-workload - traffic whose amount is known: so many datagrams of so many bytes, or so many bytes over
 * TCP, between two addresses. Datagrams carry their number, so that a test can ask for one of them.
 *
 *	packet-workload udp-send ADDRESS PORT COUNT BYTES [PAUSE-USEC]
 *	packet-workload udp-receive ADDRESS PORT COUNT [BUFFER-BYTES]
 *	packet-workload udp-flood ADDRESS PORT SECONDS BYTES
 *	packet-workload udp-numbered ADDRESS PORT PAUSE-USEC
 *	packet-workload tcp-send ADDRESS PORT BYTES
 *	packet-workload tcp-receive ADDRESS PORT
 *	packet-workload tcp-ping ADDRESS PORT COUNT		one byte to and fro
 *	packet-workload tcp-echo ADDRESS PORT
 *	packet-workload ping ADDRESS COUNT
 *
 * udp-numbered goes on until SIGINT. Its numbers are in the header, too, where a record shows them: datagram n goes to port
 * PORT + n / 1024 and has 8 + n % 1024 bytes.
 *
 * Receivers end when they have it all, or after 2 s without anything more, and print how much came; for the
 * first they wait longer, since in an emulated machine a sender's start takes a while. With
 * BUFFER-BYTES a receiver does not read before the sender is done: its socket buffer overflows.
 *
 * Exit: 0 done, 1 a system call failed, 2 usage.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "format/base.h"

#define IDLE_MSEC 2000
#define FIRST_MSEC 20000

static int fail(const char *what)
{
	fprintf(stderr, "packet-workload: %s: %s\n", what, strerror(errno));
	return 1;
}

static struct addrinfo *resolve(const char *address, const char *port, int type)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = type};
	struct addrinfo *ai = NULL;

	return getaddrinfo(address, port, &hints, &ai) ? NULL : ai;
}

static int open_socket(const char *address, const char *port, int type, bool listening)
{
	struct addrinfo *ai = resolve(address, port, type);
	int fd, one = 1;

	if (!ai) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	fd = socket(ai->ai_family, type | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (listening ? bind(fd, ai->ai_addr, ai->ai_addrlen)
			      : connect(fd, ai->ai_addr, ai->ai_addrlen)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(ai);
	return fd;
}

static bool wait_readable(int fd, int msec)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, msec) == 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static char buffer[65536];

/* count datagrams, or as many as go in so many seconds. */
static int udp_send(const char *address, const char *port, uint64_t count, uint64_t seconds,
		    uint64_t bytes, uint64_t pause_usec)
{
	struct timespec pause = {.tv_nsec = (long)pause_usec * 1000};
	int fd = open_socket(address, port, SOCK_DGRAM, false);
	uint64_t end = now_ns() + seconds * 1000000000ULL, n;

	if (fd < 0)
		return fail("connect");
	for (n = 0; seconds ? (n & 63) || now_ns() < end : n < count; n++) {
		memcpy(buffer, &n, sizeof(n));
		/* Nobody listening is told by ICMP, and is no reason to stop. */
		if (send(fd, buffer, bytes, 0) < 0 && errno != ECONNREFUSED && errno != ENOBUFS &&
		    errno != EPERM) {
			close(fd);
			return fail("send");
		}
		if (pause_usec)
			nanosleep(&pause, NULL);
	}
	close(fd);
	printf("sent=%llu\n", (unsigned long long)n);
	return 0;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

#define NUMBERED_LENGTHS 1024U

static int udp_numbered(const char *address, const char *port, uint64_t pause_usec)
{
	const struct sigaction sa = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	struct timespec pause = {.tv_nsec = (long)pause_usec * 1000};
	struct addrinfo *ai = resolve(address, port, SOCK_DGRAM);
	struct sockaddr_in to;
	uint64_t n, first;
	int fd;

	if (!ai || ai->ai_family != AF_INET || iot_parse_u64(port, &first) < 0)
		return fail("address");
	memcpy(&to, ai->ai_addr, sizeof(to));
	freeaddrinfo(ai);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* Not connected: no answer of the other side makes a later datagram fail. */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail("socket");
	for (n = 0; !interrupted && first + n / NUMBERED_LENGTHS < 65536; n++) {
		memcpy(buffer, &n, sizeof(n));
		to.sin_port = htons((uint16_t)(first + n / NUMBERED_LENGTHS));
		if (sendto(fd, buffer, 8 + n % NUMBERED_LENGTHS, 0, (struct sockaddr *)&to,
			   sizeof(to)) < 0) {
			close(fd);
			return fail("sendto");
		}
		if (pause_usec)
			nanosleep(&pause, NULL);
	}
	close(fd);
	printf("sent=%llu\n", (unsigned long long)n);
	return 0;
}

static int udp_receive(const char *address, const char *port, uint64_t count, uint64_t buffer_bytes)
{
	int fd = open_socket(address, port, SOCK_DGRAM, true), size = (int)buffer_bytes;
	uint64_t n = 0;

	if (fd < 0)
		return fail("bind");
	if (size) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		sleep(IDLE_MSEC / 1000);
	}
	while (n < count && wait_readable(fd, n ? IDLE_MSEC : FIRST_MSEC) &&
	       recv(fd, buffer, sizeof(buffer), 0) >= 0)
		n++;
	close(fd);
	printf("received=%llu\n", (unsigned long long)n);
	return 0;
}

static int tcp_accept(const char *address, const char *port)
{
	int fd = open_socket(address, port, SOCK_STREAM, true), peer = -1;

	if (fd < 0)
		return -1;
	if (listen(fd, 1) == 0 && wait_readable(fd, FIRST_MSEC))
		peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	close(fd);
	return peer;
}

static int tcp_send(const char *address, const char *port, uint64_t bytes)
{
	int fd = open_socket(address, port, SOCK_STREAM, false);
	ssize_t n;

	if (fd < 0)
		return fail("connect");
	while (bytes) {
		n = send(fd, buffer, IOT_MIN(bytes, sizeof(buffer)), 0);
		if (n < 0) {
			close(fd);
			return fail("send");
		}
		bytes -= (uint64_t)n;
	}
	/* Until the other side has read all of it and closed. */
	shutdown(fd, SHUT_WR);
	while (recv(fd, buffer, sizeof(buffer), 0) > 0)
		;
	close(fd);
	return 0;
}

static int tcp_receive(const char *address, const char *port)
{
	int fd = tcp_accept(address, port);
	uint64_t bytes = 0;
	ssize_t n;

	if (fd < 0)
		return fail("accept");
	while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0)
		bytes += (uint64_t)n;
	close(fd);
	printf("received=%llu\n", (unsigned long long)bytes);
	return 0;
}

static int tcp_ping(const char *address, const char *port, uint64_t count)
{
	int fd = open_socket(address, port, SOCK_STREAM, false);

	if (fd < 0)
		return fail("connect");
	for (uint64_t i = 0; i < count; i++) {
		if (send(fd, buffer, 1, 0) != 1 || recv(fd, buffer, 1, 0) != 1) {
			close(fd);
			return fail("to and fro");
		}
	}
	close(fd);
	return 0;
}

static int tcp_echo(const char *address, const char *port)
{
	int fd = tcp_accept(address, port);
	ssize_t n;

	if (fd < 0)
		return fail("accept");
	while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		if (send(fd, buffer, (size_t)n, 0) != n)
			break;
	}
	close(fd);
	return 0;
}

static uint16_t checksum(const void *data, size_t bytes)
{
	const uint8_t *s = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)s[i] << 8 | s[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Echo requests of 64 bytes; counts what comes back. */
static int ping(const char *address, uint64_t count)
{
	struct addrinfo *ai = resolve(address, NULL, SOCK_RAW);
	bool v6 = ai && ai->ai_family == AF_INET6;
	uint64_t n = 0;
	int fd;

	if (!ai)
		return fail("address");
	fd = socket(ai->ai_family, SOCK_RAW | SOCK_CLOEXEC, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) < 0) {
		freeaddrinfo(ai);
		return fail("socket");
	}
	freeaddrinfo(ai);
	for (uint64_t i = 0; i < count; i++) {
		struct icmphdr icmp = {.type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO,
				       .un.echo = {htons(0x1070), htons((uint16_t)i)}};
		uint8_t reply = v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY;

		memset(buffer, 0, 64);
		memcpy(buffer, &icmp, sizeof(icmp));
		icmp.checksum = v6 ? 0 : checksum(buffer, 64);
		memcpy(buffer, &icmp, sizeof(icmp));
		if (send(fd, buffer, 64, 0) != 64)
			break;
		/* A raw socket also gets requests, when both ends are here, and the kernel's other news. */
		while (wait_readable(fd, IDLE_MSEC)) {
			ssize_t len = recv(fd, buffer, sizeof(buffer), 0);
			size_t off = v6 ? 0 : (buffer[0] & 15U) * 4U;

			if (len < (ssize_t)(off + sizeof(icmp)))
				continue;
			memcpy(&icmp, buffer + off, sizeof(icmp));
			if (icmp.type != reply)
				continue;
			n++;
			break;
		}
	}
	close(fd);
	printf("received=%llu\n", (unsigned long long)n);
	return 0;
}

static int usage(void)
{
	fputs("usage: packet-workload udp-send ADDRESS PORT COUNT BYTES [PAUSE-USEC]\n"
	      "       packet-workload udp-receive ADDRESS PORT COUNT [BUFFER-BYTES]\n"
	      "       packet-workload udp-flood ADDRESS PORT SECONDS BYTES\n"
	      "       packet-workload udp-numbered ADDRESS PORT PAUSE-USEC\n"
	      "       packet-workload tcp-send ADDRESS PORT BYTES\n"
	      "       packet-workload tcp-receive|tcp-echo ADDRESS PORT\n"
	      "       packet-workload tcp-ping ADDRESS PORT COUNT\n"
	      "       packet-workload ping ADDRESS COUNT\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	uint64_t n[4] = {0};

	for (int i = 4; i < argc && i < 8; i++) {
		if (iot_parse_size(argv[i], &n[i - 4]) < 0)
			return usage();
	}
	if (strcmp(verb, "ping") == 0 && argc == 4)
		return iot_parse_size(argv[3], &n[0]) < 0 ? usage() : ping(argv[2], n[0]);
	if (argc >= 6 && (n[1] < 8 || n[1] > sizeof(buffer)) && strncmp(verb, "udp-s", 5) == 0)
		return usage();
	if (strcmp(verb, "udp-send") == 0 && argc >= 6)
		return udp_send(argv[2], argv[3], n[0], 0, n[1], n[2]);
	if (strcmp(verb, "udp-flood") == 0 && argc == 6)
		return udp_send(argv[2], argv[3], 0, n[0], n[1], 0);
	if (strcmp(verb, "udp-numbered") == 0 && argc == 5)
		return udp_numbered(argv[2], argv[3], n[0]);
	if (strcmp(verb, "udp-receive") == 0 && argc >= 5)
		return udp_receive(argv[2], argv[3], n[0], n[1]);
	if (strcmp(verb, "tcp-send") == 0 && argc == 5)
		return tcp_send(argv[2], argv[3], n[0]);
	if (strcmp(verb, "tcp-receive") == 0 && argc == 4)
		return tcp_receive(argv[2], argv[3]);
	if (strcmp(verb, "tcp-ping") == 0 && argc == 5)
		return tcp_ping(argv[2], argv[3], n[0]);
	if (strcmp(verb, "tcp-echo") == 0 && argc == 4)
		return tcp_echo(argv[2], argv[3]);
	return usage();
}
