/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block-origin.bpf.h - where a request came from: swap and by which rule, the file or the kind of page
 * behind it, the cgroup that answers for it, and the memory reclaim that its submitter was in.
 *
 * All of it is decided once, at the request's birth, from its first bio and the first page of that: what is
 * merged later changes nothing, and nothing of an earlier life of the same request is left.
 *
 * The page speaks only in a state that tells why it is here. The kernel locks a page that it reads into
 * and keeps it not up to date until then; a page that it writes back is marked so. A page with a file
 * behind it in neither state lies in the memory of some process, which uses it for direct I/O: its file is
 * not the one that is read or written. (Buffer heads, which lock themselves instead, leave their mark.)
 * Nor does a page of the slab tell anything: there the mapping is another field.
 *
 * The file of direct I/O is known to whoever ends its bio. iomap, by which ext4, xfs and others do it, leaves
 * its own note of the I/O in bi_private, and that leads to the file that was opened. This comes before the page:
 * a bio that iomap ends is direct I/O whatever is written from or read into, a page of the file system on a
 * loop device, or one that is swapped, included. Bios that others end (btrfs wraps them, dm clones them) tell
 * no file.
 *
 * tp_btf programs read with plain loads, which lockdown=confidentiality allows. A plain load needs a
 * pointer whose type the verifier knows, though, and it lets nobody look at the bits of one: a word is
 * looked at as a number after it has passed through map memory. What is found behind a number (the head
 * of a tail page, the memory cgroup from 5.11 on) gets its type back where the kernel has a function for that
 * (bpf_rdonly_cast(), which the verifier turns into a move: a35b9af4ec2c, 6.2); elsewhere it is copied, which
 * costs a call each, or left unknown where that is refused.
 */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/events.h"

/* Numbers and masks of the running kernel, from its BTF; 0: it has none (block_op_*: ~0). */
const volatile __u32 block_op_mask = 0xff;
const volatile __u32 block_op_read = 0;
const volatile __u32 block_op_write = 1;
const volatile __u32 block_op_append = ~0U;
const volatile __u32 block_req_swap = 0;
const volatile __u32 block_req_meta = 0;
const volatile __u64 block_swap_page_flags = 0; /* all set: a page of the swap cache */
const volatile __u64 block_page_locked = 0;
const volatile __u64 block_page_uptodate = 0;
const volatile __u64 block_page_writeback = 0;
const volatile __u64 block_page_private = 0;
const volatile __u64 block_page_slab = 0;
const volatile __u32 block_page_type_slab = 0; /* since 6.10 or so instead: top byte of page_type */
const volatile __u32 block_bio_pinned = 0;     /* bi_flags: pages of a process */

/* Addresses of functions in bi_end_io; 0: not known. */
const volatile __u64 block_end_direct =
	0; /* iomap_dio_bio_end_io: bi_private is a struct iomap_dio */
const volatile __u64 block_end_chain =
	0; /* bio_chain_endio: bi_private is the bio that waits for it */

const volatile bool block_copies = true;	 /* bpf_probe_read_kernel is allowed */
const volatile bool block_casts = false;	 /* bpf_rdonly_cast exists; for tp_btf programs */
const volatile bool block_reads_pages = true;	 /* all masks above that pages need are known */
const volatile bool block_memory_cgroups = true; /* the memory controller is on cgroup v2 */
const volatile bool block_blkio_cgroups = true;	 /* so is the io controller */
const volatile bool block_memstall = false; /* pressure accounting runs: direct reclaim is marked */
const volatile bool block_swap_by_area = false; /* the rule for kernels without flag or page */

#define BLOCK_SWAP_AREAS 32 /* MAX_SWAPFILES is below that on every kernel */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BLOCK_SWAP_AREAS);
	__type(key, __u32);
	__type(value, struct ev_swap_area);
} swap_areas SEC(".maps");

#define BLOCK_S_IFMT 0170000U
#define BLOCK_S_IFBLK 0060000U
#define BLOCK_MAPPING_BITS 3ULL /* anonymous, movable, KSM: the rest is no address_space */
#define BLOCK_MEMCG_BITS 3ULL	/* object cgroups of the slab, kernel memory */

/*
 * bpf_rdonly_cast(), once the daemon has put its number in (daemon/probes-block.c). An extern with __ksym and
 * __weak would do, but where the kernel lacks it libbpf looks for it in the BTF of all modules, and fails for
 * want of CAP_SYS_ADMIN (BPF_BTF_GET_NEXT_ID), which the service does not have.
 */
static void *(*const block_cast)(const void *number, __u32 btf_id) = (void *)EV_CAST_MARK;

/* A pointer to load from, where `direct` and block_casts allow it: what is no such object reads as anything. */
#define BLOCK_CAST(type, number) \
	((type *)block_cast((const void *)(number), bpf_core_type_id_kernel(type)))

/* First page of a bio, typed; NULL if it has none that a plain load reaches. */
static __always_inline struct page *block_first_page(struct bio *bio, const bool direct)
{
	struct bio_vec *vec = KREAD(direct, bio, bi_io_vec);

	return vec ? KREAD(direct, vec, bv_page) : NULL;
}

/*
 * The same for the rest of a bio that was split, which begins further on in the vector that both parts
 * share: behind a number, unless `casts`.
 */
static __always_inline struct page *block_later_page(struct bio *bio, __u32 index, __u64 *scratch,
						     const bool casts)
{
	struct bio_vec *vec = KREAD(casts, bio, bi_io_vec);
	__u64 at;

	if (!vec)
		return NULL;
	at = compat_number(vec, scratch, casts) + (__u64)index * bpf_core_type_size(struct bio_vec);
	if (casts)
		return BLOCK_CAST(struct bio_vec, at)->bv_page;
	vec = (void *)at;
	return BPF_CORE_READ(vec, bv_page);
}

/*
 * Looks for the page that speaks for a bio. Returns its head behind a number, to be copied from; or NULL
 * and, if there is any, in *ret_typed the page to load from. scratch: 8 bytes of map memory, or NULL.
 */
static __always_inline struct page *block_find_page(struct bio *bio, __u64 *scratch,
						    struct page **ret_typed, const bool direct)
{
	const bool casts = direct && block_casts && scratch;
	__u32 index = KREAD(direct, bio, bi_iter.bi_idx);
	struct page *page, *head;

	*ret_typed = NULL;
	if (index && !casts) {
		if (!block_copies)
			return NULL;
		page = block_later_page(bio, index, NULL, false);
		if (!page)
			return NULL;
		head = compat_page_head(page, NULL, false);
		return head ? head : page;
	}
	page = index ? block_later_page(bio, index, scratch, casts) : block_first_page(bio, direct);
	if (!page)
		return NULL;
	if (direct && !scratch && !block_copies)
		return NULL;
	head = compat_page_head(page, scratch, direct);
	if (!head || casts) {
		*ret_typed = head ? BLOCK_CAST(struct page, head) : page;
		return NULL;
	}
	return block_copies ? head : NULL;
}

/* A page that is being read into is locked and not up to date: a buffer of direct I/O is not. */
static __always_inline bool block_reads_into(unsigned long flags)
{
	return (flags & (block_page_locked | block_page_uptodate)) == block_page_locked;
}

static __always_inline bool block_swaps_in(unsigned long flags)
{
	return (flags & block_swap_page_flags) == block_swap_page_flags && block_reads_into(flags);
}

/*
 * The rule of last resort: what goes to a swap area that is a whole disk or partition is swap. Global, so that
 * the verifier takes it once and by itself: its branches, times those of its callers, are too many for 6.18.
 */
__noinline __u32 block_in_swap_area(__u32 dev, __u64 sector)
{
	for (__u32 i = 0; i < BLOCK_SWAP_AREAS; i++) {
		__u32 key = i;
		struct ev_swap_area *area = bpf_map_lookup_elem(&swap_areas, &key);

		if (area && area->dev == dev && sector >= area->first && sector < area->end)
			return 1;
	}
	return 0;
}

/*
 * The struct iomap_dio behind a bio, as a number, or 0. The limits of a disk split a bio, and what is cut off its
 * front is chained to the rest, which is ended as the whole would have been; nobody else chains anything to
 * a bio of iomap's. scratch: as above.
 */
static __always_inline __u64 block_direct_note(struct bio *bio, __u64 *scratch, const bool direct)
{
	struct bio *rest;
	__u64 end;

	if (!block_end_direct || (!direct && !block_copies))
		return 0;
	end = compat_number(KREAD(direct, bio, bi_end_io), scratch, direct);
	if (end == block_end_direct)
		return compat_number(KREAD(direct, bio, bi_private), scratch, direct);
	if (likely(end != block_end_chain))
		return 0;
	if (direct && block_casts) {
		rest = BLOCK_CAST(struct bio,
				  compat_number(KREAD(direct, bio, bi_private), scratch, direct));
		if (compat_number(rest->bi_end_io, scratch, true) != block_end_direct)
			return 0;
		return compat_number(rest->bi_private, scratch, true);
	}
	if (!block_copies)
		return 0;
	rest = (void *)compat_number(KREAD(direct, bio, bi_private), scratch, direct);
	if ((__u64)BPF_CORE_READ(rest, bi_end_io) != block_end_direct)
		return 0;
	return (__u64)BPF_CORE_READ(rest, bi_private);
}

/* block_direct_file() by copies. Not inlined: the room that they take on the stack is no program's own. */
static __noinline void block_copied_file(struct ev_block *e, __u64 note)
{
	struct iomap_dio *dio = (void *)note;
	struct inode *inode = BPF_CORE_READ(dio, iocb, ki_filp, f_inode);

	e->ino = BPF_CORE_READ(inode, i_ino);
	e->fsdev = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* The file that direct I/O was asked of. It lives until the last of its bios has ended. */
static __always_inline void block_direct_file(struct ev_block *e, __u64 note, const bool direct)
{
	struct inode *inode;

	if (direct && block_casts) {
		inode = BLOCK_CAST(struct iomap_dio, note)->iocb->ki_filp->f_inode;
		e->ino = inode->i_ino;
		e->fsdev = inode->i_sb->s_dev;
	} else if (block_copies) {
		block_copied_file(e, note);
	}
}

/* The rules that need no page. */
static __always_inline __u8 block_swap_told(__u32 cmd_flags, struct bio *bio, const bool direct)
{
	__u32 op = cmd_flags & block_op_mask, dev;

	if (cmd_flags & block_req_swap)
		return EV_SWAP_FLAG;
	if (!block_swap_by_area || !bio || (op != block_op_read && op != block_op_write) ||
	    (op == block_op_read ? block_reads_pages : block_req_swap != 0))
		return EV_SWAP_NONE;
	dev = compat_disk_dev(compat_bio_disk(bio, direct), direct);
	return block_in_swap_area(dev, KREAD(direct, bio, bi_iter.bi_sector)) ? EV_SWAP_PARTITION
									      : EV_SWAP_NONE;
}

/* Swap reads carry no flag, but their first page is in the swap cache, about to be filled. */
static __always_inline __u8 block_swap_rule(__u32 cmd_flags, struct bio *bio, const bool direct)
{
	__u8 rule = block_swap_told(cmd_flags, bio, direct);
	struct page *page, *head;
	bool swap = false;

	if (rule || !bio || (cmd_flags & block_op_mask) != block_op_read || !block_reads_pages ||
	    (KREAD(direct, bio, bi_flags) & block_bio_pinned) ||
	    block_direct_note(bio, NULL, false))
		return rule;
	head = block_find_page(bio, NULL, &page, direct);
	if (head)
		swap = block_swaps_in(compat_page_flags(head, false));
	else if (page)
		swap = block_swaps_in(compat_page_flags(page, direct));
	return swap ? EV_SWAP_PAGE : EV_SWAP_NONE;
}

/*
 * Inode of a mapping: the one that the mapping lies in, if it says so, else the mapping's host, which is next to
 * what all readers and writers of the file change; that line is cold, and this is about one request of theirs.
 * word: the mapping as a number.
 */
static __always_inline struct inode *block_host(struct address_space *mapping, __u64 word,
						const bool direct)
{
	struct inode *around;

	if (direct && block_casts) {
		around = BLOCK_CAST(struct inode,
				    word - bpf_core_field_offset(struct inode, i_data));
		if ((__u64)around->i_mapping == (__u64)mapping)
			return around;
	}
	return KREAD(direct, mapping, host);
}

/*
 * What a page belongs to; with EV_ORIGIN_FILE, also e->ino and e->fsdev. Of swap, only what is read is told
 * here. A mapping is believed only if it is its own inode's: anything else at that place in struct page is
 * not.
 */
static __always_inline __u8 block_page_origin(struct ev_block *e, struct page *page,
					      __u32 cmd_flags, const bool direct)
{
	const __u8 private = cmd_flags & block_req_meta ? EV_ORIGIN_METADATA : EV_ORIGIN_PRIVATE;
	unsigned long flags = compat_page_flags(page, direct);
	struct address_space *mapping;
	struct inode *host;
	struct super_block *sb;
	bool expected;
	__u64 word;

	if ((cmd_flags & block_op_mask) == block_op_read) {
		if (block_swaps_in(flags))
			return EV_ORIGIN_SWAP;
		expected = block_reads_into(flags);
	} else {
		expected = flags & block_page_writeback;
	}
	if ((flags & block_page_slab) ||
	    (block_page_type_slab && compat_page_type(page, direct) == block_page_type_slab))
		return private;
	mapping = compat_page_mapping(page, direct);
	word = compat_number(mapping, &e->ino, direct);
	e->ino = 0;
	if (!word)
		return private;
	if (word & BLOCK_MAPPING_BITS)
		return EV_ORIGIN_DIRECT;
	host = block_host(mapping, word, direct);
	if (!host)
		return private;
	/* Before the next test: gfs2 has mappings of its own on the block device's inode. */
	if ((KREAD(direct, host, i_mode) & BLOCK_S_IFMT) == BLOCK_S_IFBLK)
		return EV_ORIGIN_METADATA;
	if ((__u64)KREAD(direct, host, i_mapping) != (__u64)mapping)
		return EV_ORIGIN_UNKNOWN;
	/* btrfs keeps its trees in the page cache of an inode that no stat shows. */
	if (cmd_flags & block_req_meta)
		return EV_ORIGIN_METADATA;
	if (!expected)
		return flags & block_page_private ? EV_ORIGIN_UNKNOWN : EV_ORIGIN_DIRECT;
	sb = KREAD(direct, host, i_sb);
	e->ino = KREAD(direct, host, i_ino);
	e->fsdev = KREAD(direct, sb, s_dev);
	return EV_ORIGIN_FILE;
}

/* Id of the cgroup whose memory a page is; 0: none, or not to be had. */
static __always_inline __u64 block_page_owner(struct page *page, const bool direct)
{
	struct mem_cgroup *memcg;
	struct cgroup *cgroup;
	struct kernfs_node *kn;
	__u64 word;

	if (!block_memory_cgroups)
		return 0;
	/* bcfe06bf2622 ("mm: memcontrol: Use helpers to read page's memcg data", 5.11) */
	if (bpf_core_field_exists(struct page___owner, mem_cgroup)) {
		memcg = KREAD(direct, (struct page___owner *)page, mem_cgroup);
		if (!memcg)
			return 0;
		cgroup = KREAD(direct, memcg, css.cgroup);
		if (!cgroup)
			return 0;
		kn = KREAD(direct, cgroup, kn);
		return kn ? KREAD(direct, kn, id) : 0;
	}
	if (!block_copies && !(direct && block_casts))
		return 0;
	word = compat_page_memcg_word(page, direct);
	if (!word || (word & BLOCK_MEMCG_BITS))
		return 0;
	if (direct && block_casts) {
		memcg = bpf_core_field_exists(struct obj_cgroup___any, is_root)
				? BLOCK_CAST(struct obj_cgroup, word)->memcg
				: BLOCK_CAST(struct mem_cgroup, word);
		return memcg ? memcg->css.cgroup->kn->id : 0;
	}
	memcg = compat_memcg((void *)word);
	return memcg ? BPF_CORE_READ(memcg, css.cgroup, kn, id) : 0;
}

/* The owner matters where another task may act for it: what is swapped or written back. */
static __always_inline bool block_owner_answers(__u8 origin, __u32 op)
{
	return origin == EV_ORIGIN_SWAP || (origin == EV_ORIGIN_FILE && op != block_op_read);
}

/*
 * Both for a page behind a number: one copy of the code, since few requests come this way. e->swap_rule is
 * set if it was told by the flag.
 */
static __noinline __u64 block_copied_origin(struct ev_block *e, __u64 page, __u32 cmd_flags,
					    __u8 *ret_origin)
{
	__u8 origin = EV_ORIGIN_SWAP;

	if (e->swap_rule == EV_SWAP_NONE)
		origin = block_page_origin(e, (struct page *)page, cmd_flags, false);
	*ret_origin = origin;
	if (!block_owner_answers(origin, cmd_flags & block_op_mask))
		return 0;
	return block_page_owner((struct page *)page, false);
}

/*
 * Memory reclaim that the current task is in. Every way into the scan sets reclaim_state, except for
 * MADV_PAGEOUT and DAMON, which ask for pages to go: there PF_MEMALLOC is set without it, and what is
 * then swapped out was asked for (5.10 sets nothing there, and nothing is told). Whoever is short of memory
 * waits with in_memstall set; since e22c6ed90aa9 ("mm: memcontrol: don't count limit-setting reclaim as
 * memory pressure", 6.0) writers of memory.reclaim and of limits do not, and before that memory.reclaim
 * counted as shortage.
 */
static __always_inline __u8 block_task_reclaim(struct task_struct *task, bool swap_out,
					       const bool direct)
{
	__u32 flags = KREAD(direct, task, flags);
	bool stalled;

	if (!(flags & (PF_MEMALLOC | PF_KSWAPD)))
		return EV_RECLAIM_NONE;
	if (flags & PF_KSWAPD)
		return EV_RECLAIM_KSWAPD;
	if (!KREAD(direct, task, reclaim_state))
		return swap_out ? EV_RECLAIM_PROACTIVE : EV_RECLAIM_NONE;
	if (!block_memstall || !bpf_core_field_exists(struct task_struct, in_memstall))
		return EV_RECLAIM_TASK;
	if (direct)
		stalled = BPF_CORE_READ_BITFIELD(task, in_memstall);
	else
		stalled = BPF_CORE_READ_BITFIELD_PROBED(task, in_memstall);
	return stalled ? EV_RECLAIM_DIRECT : EV_RECLAIM_PROACTIVE;
}

/* The current task's reclaim, and its cgroup on v2. Plain loads where the task can be had typed (5.11). */
static __always_inline __u8 block_current(bool swap_out, __u64 *ret_cgroup, const bool direct)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id___task_btf,
				       BPF_FUNC_get_current_task_btf)) {
		struct task_struct *task = (void *)bpf_get_current_task_btf();

		if (direct)
			*ret_cgroup = task->cgroups->dfl_cgrp->kn->id;
		else
			*ret_cgroup = bpf_get_current_cgroup_id();
		return block_task_reclaim(task, swap_out, true);
	}
	*ret_cgroup = bpf_get_current_cgroup_id();
	if (!block_copies)
		return EV_RECLAIM_NONE;
	return block_task_reclaim((void *)bpf_get_current_task(), swap_out, false);
}

/* Looks at the page that speaks for a bio with data; returns the page's owner where that answers. */
static __always_inline __u64 block_look(struct ev_block *e, struct bio *bio, __u32 cmd_flags,
					__u8 *ret_origin, const bool direct)
{
	struct page *page, *head;
	__u8 origin = EV_ORIGIN_UNKNOWN;
	__u64 note;

	note = block_direct_note(bio, &e->ino, direct);
	e->ino = 0; /* it was the scratch */
	if (note) {
		block_direct_file(e, note, direct);
		*ret_origin = EV_ORIGIN_DIRECT;
		return 0;
	}
	/* User pages are pinned for I/O: no need to look at one (a clone of the bio has lost the mark). */
	if (KREAD(direct, bio, bi_flags) & block_bio_pinned) {
		*ret_origin = EV_ORIGIN_DIRECT;
		return 0;
	}
	head = block_find_page(bio, &e->ino, &page, direct);
	e->ino = 0; /* it was the scratch */
	if (head)
		return block_copied_origin(e, (__u64)head, cmd_flags, ret_origin);
	if (e->swap_rule)
		origin = EV_ORIGIN_SWAP;
	else if (page)
		origin = block_page_origin(e, page, cmd_flags, direct);
	*ret_origin = origin;
	if (!page || !block_owner_answers(origin, cmd_flags & block_op_mask))
		return 0;
	return block_page_owner(page, direct);
}

/*
 * A root cgroup (id 1) yields to any other: it is what all are whose controller is not enabled. Not of what
 * is swapped out, since whoever does that (kswapd, a task that is short of memory) has no part in it.
 */
static __always_inline bool block_cgroup_yields(__u64 cgroup, __u8 origin, __u32 op)
{
	return !cgroup || (cgroup == 1 && (origin != EV_ORIGIN_SWAP || op != block_op_write));
}

/*
 * Fills swap_rule, origin, ino, fsdev and cgroup of e, which are 0. The cgroup: the page's owner, for what
 * is swapped or written back, since the task that happens to do it is another's; else the one that pays
 * for the bio; else the submitter's.
 */
static __always_inline void block_origin(struct ev_block *e, struct bio *bio, __u32 n_bytes,
					 __u32 cmd_flags, bool passthrough, const __u8 submitter,
					 const bool direct)
{
	__u8 rule = block_swap_told(cmd_flags, bio, direct);
	__u8 origin = rule ? EV_ORIGIN_SWAP : EV_ORIGIN_UNKNOWN;
	__u8 by = EV_CGROUP_BY_PAGE, reclaim = EV_RECLAIM_NONE;
	__u32 op = cmd_flags & block_op_mask;
	__u64 cgroup = 0, blkg, mine = 0;

	e->swap_rule = rule;
	if (passthrough) {
		origin = EV_ORIGIN_PASSTHROUGH;
	} else if (!bio || !n_bytes ||
		   (op != block_op_read && op != block_op_write && op != block_op_append)) {
		origin = EV_ORIGIN_NO_DATA;
	} else if (block_reads_pages) {
		cgroup = block_look(e, bio, cmd_flags, &origin, direct);
		if (origin == EV_ORIGIN_SWAP && !rule)
			e->swap_rule = EV_SWAP_PAGE;
	}
	if (submitter == EV_SUBMITTER_START)
		reclaim = block_current(rule && op == block_op_write, &mine, direct);
	if (block_cgroup_yields(cgroup, origin, op)) {
		blkg = bio && block_blkio_cgroups ? compat_bio_cgroup(bio, direct) : 0;
		if (blkg > cgroup) {
			cgroup = blkg;
			by = EV_CGROUP_BY_BLKG;
		}
		if (submitter == EV_SUBMITTER_START) {
			if (cgroup <= 1) {
				cgroup = mine;
				by = EV_CGROUP_BY_SUBMITTER;
			}
		} else if (submitter != EV_SUBMITTER_NONE && !cgroup) {
			cgroup = bpf_get_current_cgroup_id();
			by = EV_CGROUP_BY_SUBMITTER;
		}
	}
	if (!cgroup)
		by = EV_CGROUP_BY_NONE;
	e->cgroup = cgroup;
	e->origin = origin | by << EV_CGROUP_BY_SHIFT | reclaim << EV_RECLAIM_SHIFT;
}

/* What the submitter had to say, where a hook of its own met it earlier: by the same rules. */
static __always_inline void block_origin_join(struct ev_block *e, __u64 cgroup, __u32 reclaim)
{
	__u8 origin = e->origin & (EV_ORIGIN_MASK | EV_CGROUP_BY_MASK);

	if (block_cgroup_yields(e->cgroup, origin & EV_ORIGIN_MASK, e->cmd_flags & block_op_mask) ||
	    (origin >> EV_CGROUP_BY_SHIFT) == EV_CGROUP_BY_SUBMITTER) {
		e->cgroup = cgroup;
		origin = (origin & EV_ORIGIN_MASK) | EV_CGROUP_BY_SUBMITTER << EV_CGROUP_BY_SHIFT;
	}
	e->origin = origin | reclaim << EV_RECLAIM_SHIFT;
}
