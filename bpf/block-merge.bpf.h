/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block-merge.bpf.h - what a request of several bios is made of: how many it absorbed, and how much of it is
 * swap. Looked at when it is issued, since merging is over then.
 */
#pragma once

#include "bpf/block-origin.bpf.h"

#define BLOCK_MAX_BIOS 1024 /* walked; `merges` saturates there */

/* Bios that a request absorbed, by merges of bios and of whole requests alike. */
static __always_inline __u16 block_merges(struct bio *bio, struct bio *tail, const bool direct)
{
	__u32 n = 0;

	if (!bio || bio == tail)
		return 0;
	for (int i = 0; i < BLOCK_MAX_BIOS; i++) {
		bio = KREAD(direct, bio, bi_next);
		if (!bio)
			break;
		n++;
	}
	return n;
}

#define BLOCK_MAX_MIXED 256 /* bios of a chain of both kinds; what is beyond counts as no swap */

/*
 * Bytes of swap in a chain of bios. Global, so that the verifier takes it once and by itself; for the same
 * reason it gets an address and copies: no caller needs it often.
 */
__noinline __u32 block_swap_bytes(__u64 first)
{
	struct bio *bio = (void *)first;
	__u32 n = 0;

	if (!block_copies)
		return 0;
	for (int i = 0; i < BLOCK_MAX_MIXED; i++) {
		if (block_swap_rule(BPF_CORE_READ(bio, bi_opf), bio, false))
			n += BPF_CORE_READ(bio, bi_iter.bi_size);
		bio = BPF_CORE_READ(bio, bi_next);
		if (!bio)
			break;
	}
	return n;
}

/*
 * The kernel merges swap with what lies beside it on the disk: reads of one cgroup, and writes of metadata,
 * which bio_issue_as_root_blkg() counts to the same class as swap; other writes only before 6b2b04590b51 (5.18,
 * and stable). So each bio of a chain is held against the first: a write by its flag, a read by the
 * function that will end it, which for swap is the same for all. Only where one differs is each looked at
 * for itself. Merging must be over.
 *
 * Returns whether they differ, and in *ret_swapped how much is swap then. By area the first one speaks for
 * all, and so it does for reads where nothing may be copied: those are not told for certain then.
 */
static __always_inline bool block_is_mixed(struct request *rq, struct bio *first, __u32 cmd_flags,
					   __u32 *ret_swapped, const bool direct)
{
	const bool reads = (cmd_flags & block_op_mask) == block_op_read;
	const void *end = KREAD(direct, first, bi_end_io);
	const __u32 flags = KREAD(direct, first, bi_opf);
	struct bio *bio = first;
	bool mixed = false;
	__u32 swapped = 0;

	if (reads ? !block_copies || !block_reads_pages || !block_swap_page_flags : !block_req_swap)
		return false;
	if (!block_copies) {
		for (int i = 0; i < BLOCK_MAX_BIOS && bio; i++) {
			if (KREAD(direct, bio, bi_opf) & block_req_swap)
				swapped += KREAD(direct, bio, bi_iter.bi_size);
			bio = KREAD(direct, bio, bi_next);
		}
		*ret_swapped = swapped;
		return swapped && swapped != KREAD(direct, rq, __data_len);
	}
	for (int i = 0; i < BLOCK_MAX_BIOS; i++) {
		bio = KREAD(direct, bio, bi_next);
		if (!bio)
			return false;
		if (reads ? KREAD(direct, bio, bi_end_io) != end
			  : ((KREAD(direct, bio, bi_opf) ^ flags) & block_req_swap) != 0) {
			mixed = true;
			break;
		}
	}
	/* Read again, since an address is a number to the verifier only where it was copied. */
	if (mixed)
		*ret_swapped = block_swap_bytes((__u64)BPF_CORE_READ(rq, bio));
	return mixed;
}

/* Of a request with bios of both kinds: the rule, and how many of its sectors are no swap. Else false. */
static __always_inline bool block_share(struct request *rq, struct bio *first, __u32 cmd_flags,
					__u8 *ret_rule, __u32 *ret_unswapped, const bool direct)
{
	const bool reads = (cmd_flags & block_op_mask) == block_op_read;
	__u32 swapped = 0;

	if (!block_is_mixed(rq, first, cmd_flags, &swapped, direct))
		return false;
	*ret_rule = !swapped ? EV_SWAP_NONE : reads ? EV_SWAP_PAGE : EV_SWAP_FLAG;
	*ret_unswapped = swapped ? (KREAD(direct, rq, __data_len) - swapped) >> 9 : 0;
	return true;
}

static __always_inline void block_swap_share(struct ev_block *e, struct request *rq,
					     struct bio *first, const bool direct)
{
	__u32 unswapped;
	__u8 rule;

	if (!block_share(rq, first, e->cmd_flags, &rule, &unswapped, direct))
		return;
	e->swap_rule = rule;
	e->unswapped = unswapped < 0xffff ? unswapped : 0xffff;
	if (rule == EV_SWAP_FLAG)
		e->cmd_flags |= block_req_swap;
}
