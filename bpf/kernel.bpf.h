/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel.bpf.h - the kernel as our programs see it: the integer types, the few constants of the BPF
 * user API, and of each kernel structure only the fields that are read.
 *
 * Every structure carries preserve_access_index, so a field's offset and size come from the running
 * kernel's BTF at load, never from this file: the order and completeness here mean nothing. A field
 * whose name or type differs between kernels is declared in a flavour (name___what), which libbpf
 * matches against the kernel's type `name`; compat.bpf.h chooses. There is no vmlinux.h, and the build
 * never looks at the build host's kernel.
 */
#pragma once

/* bpf_tracing.h names x86 registers as the kernel does (di), not as the user API does (rdi). */
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* Values of the BPF user API (include/uapi/linux/bpf.h): stable by contract. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_MMAPABLE = 1U << 10,
};

/* Flags of a task (include/linux/sched.h): macros, so in no BTF; the same from 5.8 to 7.2. */
#define PF_MEMALLOC 0x00000800U
#define PF_KSWAPD 0x00020000U

enum {
	BPF_RB_NO_WAKEUP = 1U << 0,
	BPF_RB_FORCE_WAKEUP = 1U << 1,
	BPF_RB_AVAIL_DATA = 0,
};

/* Which way is usual: the rest goes to the end of a program, whose cost is largely the lines it touches. */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Only to ask whether the running kernel has the helper. */
enum bpf_func_id___task_btf {
	BPF_FUNC_get_current_task_btf = 158,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct reclaim_state;

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	char comm[16];
	unsigned int in_memstall : 1;
	struct reclaim_state *reclaim_state;
	struct css_set *cgroups;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
};

struct obj_cgroup {
	struct mem_cgroup *memcg;
};

/* Since 7.x, when object cgroups took the place of memory cgroups in what pages are charged to. */
struct obj_cgroup___any {
	bool is_root;
};

struct super_block {
	__u32 s_dev;
};

struct address_space {
	struct inode *host;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	struct address_space i_data;
};

struct file {
	struct inode *f_inode;
};

struct kiocb {
	struct file *ki_filp;
};

/* fs/iomap/direct-io.c: what bi_private of its bios points at. */
struct iomap_dio {
	struct kiocb *iocb;
};

struct page {
	unsigned long flags;
	struct address_space *mapping;
};

struct page___owner {
	struct mem_cgroup *mem_cgroup;
};

struct page___memcg {
	unsigned long memcg_data;
};

struct page___type {
	unsigned int page_type;
};

struct page___head {
	unsigned long compound_head;
};

struct page___info {
	unsigned long compound_info;
};

/* 6.18: a type of its own around the word. */
typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct page___memdesc {
	memdesc_flags_t flags;
};

struct bio_vec {
	struct page *bv_page;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
};

struct device {
	__u32 devt;
};

/* Until 5.10: what a request's part points at. */
struct hd_struct {
	struct device __dev;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	unsigned short bi_flags;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
	void *bi_end_io;
	void *bi_private;
};

struct bio___disk {
	struct gendisk *bi_disk;
};

struct blk_mq_hw_ctx {
	unsigned int queue_num;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	__u32 cmd_flags;
	__u32 rq_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
	struct bio *biotail;
	struct block_device *part;
	unsigned short nr_phys_segments;
};

struct request___disk {
	struct gendisk *rq_disk;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net; /* CONFIG_NET_NS */
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct in6_addr {
	__u8 s6_addr[16];
};

struct sock_common {
	unsigned short skc_family;
	__be32 skc_rcv_saddr;
	__be32 skc_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct in6_addr skc_v6_daddr;
	__be16 skc_dport;
	__u16 skc_num;
	int skc_bound_dev_if;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

/* `tail` is an offset from `head` on every 64-bit kernel (NET_SKBUFF_DATA_USES_OFFSET). */
struct sk_buff {
	struct net_device *dev;
	unsigned long _skb_refdst; /* struct dst_entry *, and bit 0: not counted */
	unsigned int len;
	unsigned int data_len;
	int skb_iif;
	__u32 mark;
	__be16 protocol;
	__u16 vlan_tci;
	__be16 vlan_proto;
	__u16 network_header;
	__u16 mac_header;
	__u32 tail;
	unsigned char *head;
	unsigned char *data;
};

/* Until 6.1: whether vlan_tci counts. 354259fa73e2 ("net: remove skb->vlan_present", 6.2). */
struct sk_buff___vlan_present {
	__u8 vlan_present : 1;
};

struct dst_entry {
	struct net_device *dev;
};

struct xdp_rxq_info {
	struct net_device *dev;
};

struct xdp_buff {
	void *data;
	void *data_end;
	struct xdp_rxq_info *rxq;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct bpf_prog_aux {
	atomic64_t refcnt;
	__u32 id;
};

enum bpf_prog_type {
	BPF_PROG_TYPE_UNSPEC = 0,
};

struct bpf_prog {
	enum bpf_prog_type type;
	struct bpf_prog_aux *aux;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_prog {
	struct bpf_iter_meta *meta;
	struct bpf_prog *prog;
};

struct nf_hook_state {
	__u8 hook; /* enum nf_inet_hooks; an unsigned int on 5.10, which relocation adapts the load to */
	struct net_device *in;
	struct net_device *out;
	struct net *net;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	unsigned long regs[31];
};
struct pt_regs;
#endif

#pragma clang attribute pop
