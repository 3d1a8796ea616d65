/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-traffic.c - see packet-traffic.h. Below: the child's reports, its network by netlink, what it sends, and
 * the parent's side.
 *
 * A socket belongs to the namespace that its maker was in, so one process that changes namespaces is both
 * ends of everything, and each step ends when what it has sent has come.
 */
#include "daemon/packet-traffic.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

static int enter(const struct child *c, unsigned int which)
{
	return setns(c->ns[which], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int namespace_here(int *ret_fd, uint32_t *ret_inode)
{
	struct stat st;
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -errno;
	}
	*ret_fd = fd;
	*ret_inode = (uint32_t)st.st_ino;
	return 0;
}

static int make_namespaces(struct child *c)
{
	int r;

	c->step = "network namespaces";
	/* Without a user namespace only where those are not to be had: all rights are inside, then. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 && unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = namespace_here(&c->ns[0], &c->report.netns[0]);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	return namespace_here(&c->ns[1], &c->report.netns[1]);
}

/* ---- its network ------------------------------------------------------------------------------- */

struct request {
	struct nlmsghdr hdr;
	uint8_t body[256];
};

static void *put(struct request *q, const void *data, size_t len)
{
	void *at = (uint8_t *)q + NLMSG_ALIGN(q->hdr.nlmsg_len);

	memcpy(at, data, len);
	q->hdr.nlmsg_len = NLMSG_ALIGN(q->hdr.nlmsg_len) + (uint32_t)len;
	return at;
}

static struct rtattr *put_attr(struct request *q, unsigned short type, const void *data, size_t len)
{
	const struct rtattr head = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len)};
	struct rtattr *attr = put(q, &head, sizeof(head));

	if (len)
		put(q, data, len);
	return attr;
}

static void end_nest(const struct request *q, struct rtattr *attr)
{
	attr->rta_len = (unsigned short)((const uint8_t *)q + q->hdr.nlmsg_len - (uint8_t *)attr);
}

static void request_init(struct request *q, uint16_t type, uint16_t flags)
{
	memset(q, 0, sizeof(*q));
	q->hdr.nlmsg_len = NLMSG_HDRLEN;
	q->hdr.nlmsg_type = type;
	q->hdr.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
}

/* Sent in the namespace we are in; its answer. */
static int ask(const struct request *q)
{
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		uint8_t more[512];
	} answer;
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, q, q->hdr.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(answer.err)) || answer.hdr.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.err.error;
}

static int set_up(const char *name)
{
	const struct ifinfomsg link = {
		.ifi_index = (int)if_nametoindex(name), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct request q;

	request_init(&q, RTM_NEWLINK, 0);
	put(&q, &link, sizeof(link));
	return ask(&q);
}

static int set_address(const char *name, uint32_t address)
{
	const struct ifaddrmsg a = {
		.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = if_nametoindex(name)};
	uint32_t wire = htonl(address);
	struct request q;

	request_init(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	put(&q, &a, sizeof(a));
	put_attr(&q, IFA_LOCAL, &wire, sizeof(wire));
	put_attr(&q, IFA_ADDRESS, &wire, sizeof(wire));
	return ask(&q);
}

static int make_pair(const struct child *c)
{
	static const struct ifinfomsg link;
	struct rtattr *info, *data, *peer;
	struct request q;

	request_init(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	put(&q, &link, sizeof(link));
	put_attr(&q, IFLA_IFNAME, "near", sizeof("near"));
	info = put_attr(&q, IFLA_LINKINFO, NULL, 0);
	put_attr(&q, IFLA_INFO_KIND, "veth", strlen("veth"));
	data = put_attr(&q, IFLA_INFO_DATA, NULL, 0);
	peer = put_attr(&q, VETH_INFO_PEER, NULL, 0);
	put(&q, &link, sizeof(link));
	put_attr(&q, IFLA_IFNAME, "far", sizeof("far"));
	put_attr(&q, IFLA_NET_NS_FD, &c->ns[1], sizeof(c->ns[1]));
	end_nest(&q, peer);
	end_nest(&q, data);
	end_nest(&q, info);
	return ask(&q);
}

/* Without large segments there is something for receive offload to merge. Kernels that have neither do without. */
static void set_offload(const char *name, bool sends)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	static const uint32_t off[] = {ETHTOOL_STSO, ETHTOOL_SGSO};
	struct ethtool_value value;
	struct ifreq ifr = {.ifr_data = (char *)&value};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	for (size_t i = 0; fd >= 0 && sends && i < IOT_ARRAY_SIZE(off); i++) {
		value = (struct ethtool_value){.cmd = off[i]};
		(void)ioctl(fd, SIOCETHTOOL, &ifr);
	}
	value = (struct ethtool_value){.cmd = ETHTOOL_SGRO, .data = 1};
	if (fd >= 0)
		(void)ioctl(fd, SIOCETHTOOL, &ifr);
}

static int make_end(const struct child *c, unsigned int which, const char *name, uint32_t address)
{
	int r = enter(c, which);

	if (r >= 0)
		r = set_up("lo");
	if (r >= 0)
		r = set_address(name, address);
	if (r < 0)
		return r;
	set_offload(name, which == 0);
	return set_up(name);
}

static int make_network(struct child *c)
{
	int r;

	c->step = "a veth pair";
	r = enter(c, 0);
	if (r >= 0)
		r = make_pair(c);
	c->step = "its addresses";
	if (r >= 0)
		r = make_end(c, 0, "near", NEAR_ADDRESS);
	if (r >= 0)
		r = make_end(c, 1, "far", FAR_ADDRESS);
	return r;
}

/* ---- what it sends ------------------------------------------------------------------------------ */

static struct sockaddr_in at(uint32_t address)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(address)};
}

static int open_socket(const struct child *c, unsigned int which, int type, int protocol)
{
	int r = enter(c, which), fd;

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

static int send_stream(struct child *c, unsigned int to, uint32_t address)
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
	return r < 0 ? r : send_stream(c, to, address);
}

static int send_everything(struct child *c)
{
	_cleanup_close_ int spy = -EBADF;
	int r;

	/* It sees everything, and what it has not read when it is closed is freed there. */
	c->step = "a packet socket";
	r = enter(c, 0);
	if (r < 0)
		return r;
	spy = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (spy < 0)
		return -errno;
	r = send_all(c, 0, LOOPBACK_ADDRESS);
	return r < 0 ? r : send_all(c, 1, FAR_ADDRESS);
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
	r = make_namespaces(&c);
	/* A user namespace of one's own clears it, so not earlier. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	if (r >= 0)
		r = tell(&c, REPORT_NAMESPACES);
	if (r >= 0)
		r = make_network(&c);
	if (r >= 0)
		r = send_everything(&c);
	c.report.error = r;
	(void)tell(&c, r < 0 ? REPORT_FAILED : REPORT_DONE);
	/* The namespaces stay until they have been looked at. */
	(void)read(fd, &byte, 1);
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
