/* SPDX-License-Identifier: BSD-2-Clause */
/* packet-network.c - see packet-network.h: a few requests to rtnetlink(7), without a library. */
#include "daemon/packet-network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

int packet_network_enter(int ns)
{
	return setns(ns, CLONE_NEWNET) < 0 ? -errno : 0;
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

int packet_network_namespaces(int ns[2], uint32_t ret_inodes[2])
{
	int r;

	/* Without a user namespace only where those are not to be had: all rights are inside, then. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 && unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = namespace_here(&ns[0], &ret_inodes[0]);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	return namespace_here(&ns[1], &ret_inodes[1]);
}

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

static int make_pair(int peer_ns)
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
	put_attr(&q, IFLA_NET_NS_FD, &peer_ns, sizeof(peer_ns));
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

static int make_end(int ns, const char *name, uint32_t address, bool sends)
{
	int r = packet_network_enter(ns);

	if (r >= 0)
		r = set_up("lo");
	if (r >= 0)
		r = set_address(name, address);
	if (r < 0)
		return r;
	set_offload(name, sends);
	return set_up(name);
}

int packet_network_make(const int ns[2], uint32_t near_address, uint32_t far_address)
{
	int r = packet_network_enter(ns[0]);

	if (r >= 0)
		r = make_pair(ns[1]);
	if (r >= 0)
		r = make_end(ns[0], "near", near_address, true);
	if (r >= 0)
		r = make_end(ns[1], "far", far_address, false);
	return r;
}
