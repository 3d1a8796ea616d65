/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compat.bpf.h - one accessor per thing that moved between kernels, each with the change it covers.
 *
 * Every reader takes `direct`, a compile-time constant: true in tp_btf and fentry programs, where the
 * verifier knows the argument's type and a plain load is allowed (a bad address reads as 0); false in
 * raw_tp and kprobe programs, which copy through bpf_probe_read_kernel. The existence tests are
 * constants after relocation, so the verifier never sees the branch of another kernel.
 */
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* One field of one object. Chains are written as steps, so that both modes read the same path. */
#define KREAD(direct, ptr, field) ((direct) ? (ptr)->field : BPF_CORE_READ(ptr, field))

#define COMPAT_DEV(major, minor) (((__u32)(major) << 20) | ((__u32)(minor)&0xfffffU))

/*
 * Who runs: one task_struct and plain loads where bpf_get_current_task_btf() exists (3ca1032ab7ab, 5.11),
 * which cost less than the two helpers that 5.10 and raw programs need.
 */
static __always_inline void compat_current(__u32 *ret_pid, __u32 *ret_tgid, char *ret_comm,
					   const bool direct)
{
	if (direct && bpf_core_enum_value_exists(enum bpf_func_id___task_btf,
						 BPF_FUNC_get_current_task_btf)) {
		struct task_struct *task = (void *)bpf_get_current_task_btf();

		*ret_pid = task->pid;
		*ret_tgid = task->tgid;
		((__u64 *)ret_comm)[0] = ((__u64 *)task->comm)[0];
		((__u64 *)ret_comm)[1] = ((__u64 *)task->comm)[1];
	} else {
		__u64 id = bpf_get_current_pid_tgid();

		*ret_pid = (__u32)id;
		*ret_tgid = id >> 32;
		bpf_get_current_comm(ret_comm, 16);
	}
}

static __always_inline __u32 compat_disk_dev(struct gendisk *disk, const bool direct)
{
	if (!disk)
		return 0;
	return COMPAT_DEV(KREAD(direct, disk, major), KREAD(direct, disk, first_minor));
}

/*
 * Disk of a request. f3fa33acca9f ("block: remove the ->rq_disk field in struct request", 5.17) left
 * only the queue's, which d152c682f03c (5.15) had added. NULL for queues without a disk.
 */
static __always_inline struct gendisk *compat_rq_disk(struct request *rq, const bool direct)
{
	if (bpf_core_field_exists(struct request___disk, rq_disk)) {
		struct request___disk *old = (void *)rq;

		return KREAD(direct, old, rq_disk);
	} else {
		struct request_queue *q = KREAD(direct, rq, q);

		return KREAD(direct, q, disk);
	}
}

/*
 * Device number of the partition that the kernel accounts a request on, 0 if it accounts it nowhere.
 * 0d02129e76ed ("block: merge struct block_device and struct hd_struct", 5.11).
 */
static __always_inline __u32 compat_rq_part_dev(struct request *rq, const bool direct)
{
	struct block_device *part = KREAD(direct, rq, part);

	if (!part)
		return 0;
	if (bpf_core_type_exists(struct hd_struct)) {
		struct hd_struct *old = (void *)part;

		return KREAD(direct, old, __dev.devt);
	}
	return KREAD(direct, part, bd_dev);
}

/* Partition a bio was sent to, before a request accounts it. 309dca309fc3 (5.12) gave bios bi_bdev. */
static __always_inline __u32 compat_bio_part_dev(struct bio *bio, const bool direct)
{
	if (bpf_core_field_exists(struct bio, bi_bdev)) {
		struct block_device *bdev = KREAD(direct, bio, bi_bdev);

		return bdev ? KREAD(direct, bdev, bd_dev) : 0;
	}
	return 0;
}

/* Disk of a bio: the same change. */
static __always_inline struct gendisk *compat_bio_disk(struct bio *bio, const bool direct)
{
	if (bpf_core_field_exists(struct bio, bi_bdev)) {
		struct block_device *bdev = KREAD(direct, bio, bi_bdev);

		return bdev ? KREAD(direct, bdev, bd_disk) : NULL;
	} else {
		struct bio___disk *old = (void *)bio;

		return KREAD(direct, old, bi_disk);
	}
}

/*
 * Cgroup that pays for a bio, as the inode number of its directory; 0 without CONFIG_BLK_CGROUP or
 * where none is associated. (kernfs_node.id is a plain u64 since 67c0496e87d1, 5.5; rings need 5.8.)
 */
static __always_inline __u64 compat_bio_cgroup(struct bio *bio, const bool direct)
{
	if (bpf_core_field_exists(struct bio, bi_blkg)) {
		struct blkcg_gq *blkg = KREAD(direct, bio, bi_blkg);
		struct blkcg *blkcg;
		struct cgroup *cgroup;
		struct kernfs_node *kn;

		if (!blkg)
			return 0;
		blkcg = KREAD(direct, blkg, blkcg);
		if (!blkcg)
			return 0;
		cgroup = KREAD(direct, blkcg, css.cgroup);
		if (!cgroup)
			return 0;
		kn = KREAD(direct, cgroup, kn);
		return kn ? KREAD(direct, kn, id) : 0;
	}
	return 0;
}

/* Flags of a page. 53fbef56e07d ("mm: introduce memdesc_flags_t", 6.18) wrapped the word. */
static __always_inline unsigned long compat_page_flags(struct page *page, const bool direct)
{
	if (bpf_core_field_exists(struct page___memdesc, flags.f)) {
		struct page___memdesc *new = (void *)page;

		return KREAD(direct, new, flags.f);
	}
	return KREAD(direct, page, flags);
}

/*
 * Bits of a pointer. Typed pointers (direct) are pointers to the verifier, which lets nobody cut them; what
 * comes back out of map memory is a number. scratch is 8 bytes of that.
 */
static __always_inline __u64 compat_number(const void *p, __u64 *scratch, const bool direct)
{
	if (!direct)
		return (__u64)p;
	*(volatile __u64 *)scratch = (__u64)p;
	return *(volatile __u64 *)scratch;
}

/*
 * Head of a page, NULL if that is no tail page. Bit 0 of the word marks a tail; the rest is the head's
 * address, or from 7.0 on (compound_info) perhaps a mask of ones over zeroes that the tail's own address
 * is cut with, where struct page has a size of a power of two. Without scratch, the word is copied: the
 * verifier takes the first member of the word's union, a list pointer.
 */
static __always_inline struct page *compat_page_head(struct page *page, __u64 *scratch,
						     const bool direct)
{
	const bool typed = direct && scratch;
	unsigned long word, zeroes;

	if (bpf_core_field_exists(struct page___head, compound_head)) {
		struct page___head *p = (void *)page;

		word = compat_number((void *)KREAD(typed, p, compound_head), scratch, typed);
		return word & 1 ? (void *)(word - 1) : NULL;
	}
	if (!bpf_core_field_exists(struct page___info, compound_info))
		return NULL;
	if (typed) {
		struct page___info *p = (void *)page;

		word = compat_number((void *)p->compound_info, scratch, true);
	} else {
		word = BPF_CORE_READ((struct page___info *)page, compound_info);
	}
	if (!(word & 1))
		return NULL;
	zeroes = ~(word - 1);
	if (zeroes & (zeroes + 1))
		return (void *)(word - 1);
	if (direct && !scratch)
		return NULL;
	return (void *)(compat_number(page, scratch, typed) & ~zeroes);
}

/* Type of a page that is none of the page cache's, in the top byte (since 6.10 for the slab). */
static __always_inline __u32 compat_page_type(struct page *page, const bool direct)
{
	struct page___type *typed = (void *)page;

	return bpf_core_field_exists(struct page___type, page_type)
		       ? KREAD(direct, typed, page_type) >> 24
		       : 0;
}

static __always_inline struct address_space *compat_page_mapping(struct page *page,
								 const bool direct)
{
	return KREAD(direct, page, mapping);
}

/*
 * Memory cgroup behind that word. 7.x charges pages to object cgroups, so that they can be handed to the
 * parent when a cgroup goes.
 */
static __always_inline struct mem_cgroup *compat_memcg(void *charged)
{
	if (bpf_core_field_exists(struct obj_cgroup___any, is_root))
		return BPF_CORE_READ((struct obj_cgroup *)charged, memcg);
	return charged;
}

/* Word that names whom a page is charged to: 18b2db3b0385 (5.11). */
static __always_inline unsigned long compat_page_memcg_word(struct page *page, const bool direct)
{
	struct page___memcg *charged = (void *)page;

	return bpf_core_field_exists(struct page___memcg, memcg_data)
		       ? KREAD(direct, charged, memcg_data)
		       : 0;
}
