/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-traffic.c - see packet-traffic.h. Below: what the child sends, its reports, and the parent's side.
 *
 * A socket belongs to the namespace that its maker was in, so one process that changes namespaces is both
 * ends of everything, and each step ends when what it has sent has come.
 */
#include "daemon/packet-traffic.h"

#include "daemon/packet-network.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* An emulated machine takes a second or two for all of it. */
#define LIMIT_S 20
#define STEP_MS 5000

#define NEAR_ADDRESS 0xc6336401U /* 198.51.100.1, of a block kept for documentation (RFC 5737) */
#define FAR_ADDRESS 0xc6336402U
#define LOOPBACK_ADDRESS 0x7f000001U
#define PORT 4242

#define N_DATAGRAMS 48U
#define N_PINGS 4U
#define N_ROUNDS 16U
#define N_FRAGMENTED 4U
#define N_MERGED 8U
#define MERGED_BYTES 1000U
#define DATAGRAM_BYTES 200U
#define FRAGMENTED_BYTES 8000U
#define BULK_BYTES (256U << 10)

enum report_kind {
	REPORT_NAMESPACES = 1,
	REPORT_DONE = 2,
	REPORT_FAILED = 3,
};

struct report {
	uint32_t kind;
	int32_t error;
	uint32_t netns[2];
	uint32_t n_sent;
	char what[44];
};

/* ---- the child -------------------------------------------------------------------------------- */

struct child {
	int fd;
	int ns[2];
	const char *step;
	struct report report;
};

/* ---- what it sends ------------------------------------------------------------------------------ */

static struct sockaddr_in at(uint32_t address)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(address)};
}

static int open_socket(const struct child *c, unsigned int which, int type, int protocol)
{
	int r = packet_network_enter(c->ns[which]), fd;

	if (r < 0)
		return r;
	fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	return fd < 0 ? -errno : fd;
}

static int wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = poll(&p, 1, STEP_MS);

	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

/* Sends n datagrams to a socket of `to`'s, each after the one before has come. */
static int send_datagrams(struct child *c, unsigned int to, uint32_t address, unsigned int n,
			  size_t bytes)
{
	static uint8_t data[FRAGMENTED_BYTES];
	const struct sockaddr_in a = at(address);
	_cleanup_close_ int in = open_socket(c, to, SOCK_DGRAM, 0);
	_cleanup_close_ int out = open_socket(c, 0, SOCK_DGRAM, 0);
	int r;

	if (in < 0 || out < 0)
		return IOT_MIN(in, out);
	if (bind(in, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    connect(out, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	for (unsigned int i = 0; i < n; i++) {
		if (send(out, data, bytes, 0) < 0)
			return -errno;
		r = wait_for(in, POLLIN);
		if (r < 0)
			return r;
		if (recv(in, data, sizeof(data), 0) != (ssize_t)bytes)
			return -EPROTO;
		c->report.n_sent++;
	}
	return 0;
}

static int send_pings(struct child *c, uint32_t address)
{
	const struct sockaddr_in a = at(address);
	_cleanup_close_ int fd = open_socket(c, 0, SOCK_RAW, IPPROTO_ICMP);
	uint8_t answer[256];
	int r;

	if (fd < 0)
		return fd;
	for (unsigned int i = 0; i < N_PINGS; i++) {
		struct icmphdr echo = {.type = ICMP_ECHO, .un.echo.sequence = htons((uint16_t)i)};
		ssize_t n = 0;

		/* The checksum of a header that is zero but for these. */
		echo.checksum = (uint16_t) ~(htons(ICMP_ECHO << 8) + echo.un.echo.sequence);
		if (sendto(fd, &echo, sizeof(echo), 0, (const struct sockaddr *)&a, sizeof(a)) < 0)
			return -errno;
		/* Over a loopback the request comes back as well. */
		do {
			r = wait_for(fd, POLLIN);
			if (r < 0)
				return r;
			n = recv(fd, answer, sizeof(answer), 0);
		} while (n > (ssize_t)sizeof(struct iphdr) &&
			 answer[sizeof(struct iphdr)] != ICMP_ECHOREPLY);
		c->report.n_sent++;
	}
	return 0;
}

static int connect_pair(const struct child *c, unsigned int to, uint32_t address, int *ret_in,
			int *ret_out)
{
	const struct sockaddr_in a = at(address);
	_cleanup_close_ int listener = open_socket(c, to, SOCK_STREAM, 0);
	_cleanup_close_ int out = open_socket(c, 0, SOCK_STREAM, 0);
	int one = 1, in, r;

	if (listener < 0 || out < 0)
		return IOT_MIN(listener, out);
	if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(listener, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 1) < 0)
		return -errno;
	if (connect(out, (const struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS)
		return -errno;
	r = wait_for(listener, POLLIN);
	if (r < 0)
		return r;
	in = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (in < 0)
		return -errno;
	*ret_in = in;
	*ret_out = IOT_TAKE_FD(out);
	return 0;
}

/* From the one to the other, as much as fits at a time. */
static int pass(int from, int to, size_t bytes)
{
	static uint8_t data[16384];
	size_t sent = 0, got = 0;

	while (got < bytes) {
		ssize_t n;
		int r;

		if (sent < bytes) {
			n = send(from, data, IOT_MIN(bytes - sent, sizeof(data)), MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				return -errno;
			sent += n > 0 ? (size_t)n : 0;
		}
		n = recv(to, data, sizeof(data), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return n ? -errno : -ECONNRESET;
		got += n > 0 ? (size_t)n : 0;
		if (n > 0)
			continue;
		r = wait_for(to, POLLIN);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Until the other end has acknowledged everything. */
static int wait_acknowledged(int fd)
{
	const struct timespec tick = {.tv_nsec = 1000000};

	for (int ms = 0; ms < STEP_MS; ms++) {
		int unsent;

		if (ioctl(fd, SIOCOUTQ, &unsent) < 0)
			return -errno;
		if (!unsent)
			return 0;
		nanosleep(&tick, NULL);
	}
	return -ETIMEDOUT;
}

/*
 * Nobody reads between them, so that each segment but the first is merged into the one before
 * (tcp_try_coalesce): that one must not be the sender's any more, who keeps what is not acknowledged.
 */
static int send_merged(struct child *c, int from, int to)
{
	char data[N_MERGED * MERGED_BYTES];
	int one = 1, r;

	if (setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		return -errno;
	memset(data, 0, sizeof(data));
	for (unsigned int i = 0; i < N_MERGED; i++) {
		if (send(from, data, MERGED_BYTES, MSG_NOSIGNAL) != (ssize_t)MERGED_BYTES)
			return -EPROTO;
		r = wait_acknowledged(from);
		if (r < 0)
			return r;
		c->report.n_sent++;
	}
	return recv(to, data, sizeof(data), 0) == (ssize_t)sizeof(data) ? 0 : -EPROTO;
}

static int send_stream(struct child *c, unsigned int to, uint32_t address, bool merged)
{
	_cleanup_close_ int in = -EBADF, out = -EBADF;
	char byte;
	int r;

	r = connect_pair(c, to, address, &in, &out);
	if (r >= 0)
		r = pass(out, in, BULK_BYTES);
	for (unsigned int i = 0; r >= 0 && i < N_ROUNDS; i++) {
		r = pass(out, in, 1);
		if (r >= 0)
			r = pass(in, out, 1);
		c->report.n_sent++;
	}
	if (r >= 0 && merged)
		r = send_merged(c, out, in);
	/* Both ends have closed before anything is counted. */
	if (r >= 0 && shutdown(out, SHUT_WR) < 0)
		r = -errno;
	if (r >= 0)
		r = wait_for(in, POLLIN);
	if (r >= 0 && recv(in, &byte, 1, 0) != 0)
		r = -EPROTO;
	return r;
}

static int send_all(struct child *c, unsigned int to, uint32_t address)
{
	int r;

	c->step = "UDP";
	r = send_datagrams(c, to, address, N_DATAGRAMS, DATAGRAM_BYTES);
	c->step = r < 0 ? c->step : "fragmented UDP";
	if (r >= 0 && to != 0)
		r = send_datagrams(c, to, address, N_FRAGMENTED, FRAGMENTED_BYTES);
	c->step = r < 0 ? c->step : "ICMP";
	if (r >= 0)
		r = send_pings(c, address);
	c->step = r < 0 ? c->step : "TCP";
	return r < 0 ? r : send_stream(c, to, address, false);
}

static int send_everything(struct child *c)
{
	_cleanup_close_ int spy = -EBADF;
	int r;

	/* It sees everything, and what it has not read when it is closed is freed there. */
	c->step = "a packet socket";
	r = packet_network_enter(c->ns[0]);
	if (r < 0)
		return r;
	spy = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (spy < 0)
		return -errno;
	r = send_all(c, 0, LOOPBACK_ADDRESS);
	if (r >= 0)
		r = send_all(c, 1, FAR_ADDRESS);
	if (r < 0)
		return r;
	/* What the spy has a copy of is not merged with anything. */
	close(IOT_TAKE_FD(spy));
	c->step = "TCP, merged";
	return send_stream(c, 1, FAR_ADDRESS, true);
}

static int tell(struct child *c, enum report_kind kind)
{
	c->report.kind = kind;
	snprintf(c->report.what, sizeof(c->report.what), "%s", c->step);
	return iot_write_all(c->fd, &c->report, sizeof(c->report));
}

static _Noreturn void live(int fd, pid_t parent)
{
	struct child c = {.fd = fd, .ns = {-EBADF, -EBADF}, .step = ""};
	sigset_t none;
	char byte;
	int r;

	sigemptyset(&none);
	(void)signal(SIGALRM, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(LIMIT_S);
	c.step = "network namespaces";
	r = packet_network_namespaces(c.ns, c.report.netns);
	/* A user namespace of one's own clears it, so not earlier. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	if (r >= 0)
		r = tell(&c, REPORT_NAMESPACES);
	if (r >= 0) {
		c.step = "a veth pair";
		r = packet_network_make(c.ns, NEAR_ADDRESS, FAR_ADDRESS);
	}
	if (r >= 0)
		r = send_everything(&c);
	c.report.error = r;
	(void)tell(&c, r < 0 ? REPORT_FAILED : REPORT_DONE);
	/* The namespaces stay until they have been looked at. */
	(void)!read(fd, &byte, 1);
	_exit(0);
}

/* ---- the parent --------------------------------------------------------------------------------- */

static int hear(struct packet_traffic *t, int timeout_ms, struct report *ret, char *what,
		size_t size)
{
	struct pollfd p = {.fd = t->fd, .events = POLLIN};
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return PACKET_TRAFFIC_RUNS;
	if (recv(t->fd, ret, sizeof(*ret), MSG_WAITALL) != (ssize_t)sizeof(*ret)) {
		snprintf(what, size, "the child that sends it");
		return -EPIPE;
	}
	if (ret->kind != REPORT_FAILED)
		return 0;
	snprintf(what, size, "%.43s", ret->what);
	return ret->error < 0 ? ret->error : -EPROTO;
}

int packet_traffic_start(struct packet_traffic *t, char *what, size_t size)
{
	const pid_t parent = getpid();
	struct report report = {0};
	int fds[2], r;

	*t = (struct packet_traffic){.fd = -EBADF};
	snprintf(what, size, "a child");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	t->pid = fork();
	if (t->pid < 0) {
		r = -errno;
		t->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	if (t->pid == 0) {
		close(fds[0]);
		live(fds[1], parent);
	}
	close(fds[1]);
	t->fd = fds[0];
	r = hear(t, LIMIT_S * 1000, &report, what, size);
	if (r == PACKET_TRAFFIC_RUNS)
		r = -ETIMEDOUT;
	if (r < 0) {
		packet_traffic_stop(t);
		return r;
	}
	memcpy(t->netns, report.netns, sizeof(t->netns));
	return 0;
}

int packet_traffic_wait(struct packet_traffic *t, int timeout_ms, char *what, size_t size)
{
	struct report report = {0};
	int r = hear(t, timeout_ms, &report, what, size);

	if (r == 0)
		t->n_sent = report.n_sent;
	return r;
}

void packet_traffic_stop(struct packet_traffic *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->pid > 0) {
		(void)kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*t = (struct packet_traffic){.fd = -EBADF};
}
