/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net-programs.bpf.c - TC and XDP programs to be observed by tests: what becomes of a datagram is told by its port.
 *
 * Sections are what tc(8) and ip(8) are given: `tc filter add ... bpf da obj net-programs.bpf.o sec tc-one`.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PORT(n) __builtin_bswap16(n)
#define TARGET 103 /* index of the device that packets and frames are sent on to */
#define DPORT_AT (ETH_HLEN + sizeof(struct iphdr) + offsetof(struct udphdr, dest))

struct headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* In host order; 0: no datagram. */
static __always_inline unsigned int port_of(void *data, void *end)
{
	struct headers *h = data;

	if ((void *)(h + 1) > end || h->eth.h_proto != __builtin_bswap16(ETH_P_IP) ||
	    h->ip.protocol != IPPROTO_UDP)
		return 0;
	return PORT(h->udp.dest);
}

static __always_inline int decide(struct __sk_buff *skb)
{
	unsigned short other = PORT(7199);

	switch (port_of((void *)(long)skb->data, (void *)(long)skb->data_end)) {
	case 7101:
		return TC_ACT_SHOT;
	case 7102:
		return bpf_redirect(TARGET, 0);
	case 7103:
		bpf_clone_redirect(skb, TARGET, 0);
		return TC_ACT_OK;
	case 7104: /* comes as one flow and leaves as another, without a word about its checksum */
		bpf_skb_store_bytes(skb, DPORT_AT, &other, sizeof(other), 0);
		return TC_ACT_OK;
	default:
		return TC_ACT_OK;
	}
}

/* Two that do the same, to put one in the other's place; the name is longer than the kernel's 15 characters. */
SEC("tc-one") int decide_by_port_the_first(struct __sk_buff *skb)
{
	return decide(skb);
}

SEC("tc-two") int decide_by_port_the_second(struct __sk_buff *skb)
{
	return decide(skb);
}

SEC("xdp-one") int frames_by_port(struct xdp_md *xdp)
{
	switch (port_of((void *)(long)xdp->data, (void *)(long)xdp->data_end)) {
	case 7111:
		return XDP_DROP;
	case 7112:
		return XDP_TX;
	default:
		return XDP_PASS;
	}
}
