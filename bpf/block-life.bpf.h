/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block-life.bpf.h - the life of one request: which entry is its own, where the entry begins, where it
 * ends, and whether the device filter lets it in.
 *
 * Identity is the address of struct request. The in-flight map holds one entry per address; an entry is
 * initialised at the first sight of a request and marked idle (not deleted) when it ends, so the usual
 * request costs three look-ups and no insertion. The set of addresses is that of the tag sets, which is
 * what the map is sized for; entries of tag sets that are gone are reaped by the daemon under the rule
 * of block_slot().
 *
 * A birth that is observed always initialises anew. If the entry still says that the driver has the
 * request, the end of that life was not observed, though it must have come: it is filed as a loss of
 * COMPLETE, with the owner's id, at the moment the new life proves it (block_end_unseen()). Nothing else
 * would tell: the kernel counts runs that its recursion guard skips, not completions without a run.
 *
 * The block layer itself serialises what happens to one request (it is in one queue, or at the driver,
 * or being completed), so the programs that see one request never run for it at the same time, and
 * plain stores into its entry are enough, its state bits included. Merging is no exception: it changes a
 * queued request under the queue's lock, and the merge programs touch no entry but the absorbed
 * request's own.
 */
#pragma once

#include "bpf/block-origin.bpf.h"
#include "bpf/compat.bpf.h"
#include "bpf/emit.bpf.h"

/* What only the running kernel knows; filled from its BTF. ~0 and 0 mean: this kernel has none. */
const volatile __u32 block_op_flush = 2;
const volatile __u32 block_op_drv_in = 34;
const volatile __u32 block_op_drv_out = 35;
const volatile __u32 block_op_scsi_in = ~0U;
const volatile __u32 block_op_scsi_out = ~0U;
const volatile __u32 block_rqf_flush_seq = 0;
const volatile __u32 block_rqf_io_stat = 0;
const volatile bool block_join_getrq = false; /* START has no hook: join with GETRQ's notes */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct ev_block);
} in_flight SEC(".maps");

/* What a new entry holds until block_begin() has filled it: EV_BLOCK_IN_FLIGHT and zeroes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ev_block);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} devices SEC(".maps");

/* Submitter of a bio, by its address, until the request that carries it is first seen. */
struct block_note {
	__u64 start_ns;
	__u64 cgroup; /* the submitter's */
	__u32 pid;
	__u32 tgid;
	__u32 cmd_flags; /* the flush machinery strips PREFLUSH and FUA before any later hook */
	__u32 reclaim;	 /* enum ev_reclaim */
	char comm[EV_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct block_note);
} notes SEC(".maps");

static __always_inline bool block_dev_selected(struct emit_run *run, __u32 dev)
{
	__u32 filter = run->active->filter & EV_FILTER_DEVICES;
	bool listed;

	if (filter == EV_FILTER_NONE)
		return true;
	listed = bpf_map_lookup_elem(&devices, &dev) != NULL;
	return filter == EV_FILTER_INCLUDE ? listed : !listed;
}

static __always_inline bool block_rq_selected(struct emit_run *run, struct request *rq,
					      const bool direct)
{
	if (run->active->filter == EV_FILTER_NONE)
		return true;
	if ((run->active->filter & EV_FILTER_DROP_SWAP) &&
	    block_swap_rule(KREAD(direct, rq, cmd_flags), KREAD(direct, rq, bio), direct))
		return false;
	return block_dev_selected(run, compat_disk_dev(compat_rq_disk(rq, direct), direct));
}

static __always_inline bool block_bio_selected(struct emit_run *run, struct bio *bio,
					       const bool direct)
{
	if (run->active->filter == EV_FILTER_NONE)
		return true;
	if ((run->active->filter & EV_FILTER_DROP_SWAP) &&
	    block_swap_rule(KREAD(direct, bio, bi_opf), bio, direct))
		return false;
	return block_dev_selected(run, compat_disk_dev(compat_bio_disk(bio, direct), direct));
}

static __always_inline bool block_is_passthrough(__u32 op)
{
	return op == block_op_drv_in || op == block_op_drv_out || op == block_op_scsi_in ||
	       op == block_op_scsi_out;
}

/* Passes no START: the flush machinery's command, and passthrough where GETRQ stands in for START. */
static __always_inline bool block_has_no_start(__u32 op, __u32 rq_flags)
{
	return (op == block_op_flush && (rq_flags & block_rqf_flush_seq)) ||
	       (block_join_getrq && block_is_passthrough(op));
}

/*
 * Is the request of e, which the filter left out when it was first seen, let in by the filter of now? Then the
 * header of its segment says so, and an end without a record would be an absence that nobody can tell. While
 * swap is dropped it stays out: what is asked of pages tells at a later hook no longer whether it is swap.
 */
static __always_inline bool block_is_let_in(struct emit_run *run, struct ev_block *e,
					    struct request *rq, const bool direct)
{
	return unlikely(e->state & EV_BLOCK_NOT_SELECTED) &&
	       !(run->active->filter & EV_FILTER_DROP_SWAP) &&
	       block_dev_selected(run, compat_disk_dev(compat_rq_disk(rq, direct), direct));
}

/*
 * The entry for rq, or NULL: the map is full, or the daemon is reaping. While it reaps, it deletes idle
 * entries that ended before reap_before_ns; having set that and waited for running programs, it relies
 * on none of them being used again. *ret_live: the entry describes a life that has not ended, and that
 * the filter does not let in only now; such a one is begun by the hook that finds it, as one is that was in
 * flight when the daemon started.
 */
static __always_inline struct ev_block *block_slot(struct emit_run *run, struct request *rq,
						   bool *ret_live, const bool direct)
{
	__u64 key = (__u64)rq;
	struct ev_block *e = bpf_map_lookup_elem(&in_flight, &key);
	struct ev_control *shared;
	struct ev_block *init;
	__u32 zero = 0;

	if (likely(e)) {
		*ret_live = e->state & EV_BLOCK_IN_FLIGHT;
		if (!*ret_live && e->complete_ns < run->active->reap_before_ns)
			return NULL;
		if (*ret_live && block_is_let_in(run, e, rq, direct))
			*ret_live = false;
		return e;
	}
	*ret_live = false;
	init = bpf_map_lookup_elem(&blank, &zero);
	if (!init || bpf_map_update_elem(&in_flight, &key, init, BPF_NOEXIST))
		return NULL;
	shared = bpf_map_lookup_elem(&control, &zero);
	if (shared)
		__sync_fetch_and_add(&shared->identities, 1);
	return bpf_map_lookup_elem(&in_flight, &key);
}

/* 6.1: finds what GETRQ noted. A front merge puts another bio first, so look at the next ones too. */
static __always_inline void block_join_note(struct ev_block *e, struct bio *bio, struct bio *tail,
					    const bool direct)
{
	struct block_note *note;
	__u64 key = (__u64)bio;

	if (!bio)
		return;
	note = bpf_map_lookup_elem(&notes, &key);
	if (!note && bio != tail) {
		key = (__u64)tail;
		note = bpf_map_lookup_elem(&notes, &key);
		if (!note) {
			key = (__u64)KREAD(direct, bio, bi_next);
			note = bpf_map_lookup_elem(&notes, &key);
		}
	}
	if (!note)
		return;
	e->start_ns = note->start_ns;
	block_origin_join(e, note->cgroup, note->reclaim);
	e->pid = note->pid;
	e->tgid = note->tgid;
	e->cmd_flags |= note->cmd_flags & ~block_op_mask;
	((__u64 *)e->comm)[0] = ((__u64 *)note->comm)[0];
	((__u64 *)e->comm)[1] = ((__u64 *)note->comm)[1];
	e->submitter = EV_SUBMITTER_START;
	e->state |= EV_BLOCK_SAW_START;
	bpf_map_delete_elem(&notes, &key);
}

/*
 * Starts a life in e, at whatever hook saw the request first. IN_FLIGHT is stored before anything else
 * is cleared: the reaper must not take a half-written entry for an idle one.
 */
static __always_inline void block_begin(struct emit_run *run, struct ev_block *e,
					struct request *rq, const __u8 submitter, const bool direct)
{
	struct bio *bio = KREAD(direct, rq, bio);
	__u32 flags = KREAD(direct, rq, cmd_flags);
	__u32 op = flags & block_op_mask;
	__u32 rq_flags = KREAD(direct, rq, rq_flags);
	__u32 dev = compat_disk_dev(compat_rq_disk(rq, direct), direct);
	__u8 state = EV_BLOCK_IN_FLIGHT;
	__u32 n_bytes;

	*(volatile __u8 *)&e->state = state;
	barrier();
	__builtin_memset(e, 0, offsetof(struct ev_block, state));
	e->submitter = EV_SUBMITTER_NONE;
	e->swap_rule = EV_SWAP_NONE;
	e->origin = 0;
	/* Whole words, and kept apart from the bytes above: clang would clear all of them byte by byte. */
	barrier();
	((__u64 *)e->comm)[0] = 0;
	((__u64 *)e->comm)[1] = 0;

	if (!block_dev_selected(run, dev)) {
		e->state = state | EV_BLOCK_NOT_SELECTED;
		return;
	}
	n_bytes = KREAD(direct, rq, __data_len);
	block_origin(e, bio, n_bytes, flags, block_is_passthrough(op), submitter, direct);
	if (e->swap_rule && (run->active->filter & EV_FILTER_DROP_SWAP)) {
		e->state = state | EV_BLOCK_NOT_SELECTED;
		return;
	}
	e->hdr.id = emit_new_id(run);
	if (unlikely(!e->hdr.id))
		emit_identity_full(run);
	e->dev = dev;
	e->part = bio ? compat_bio_part_dev(bio, direct) : 0;
	if (!e->part)
		e->part = dev;
	e->bytes = n_bytes;
	e->cmd_flags = flags;
	e->hwq = 0xffff;
	e->sector = KREAD(direct, rq, __sector);
	if (block_is_passthrough(op)) {
		state |= EV_BLOCK_PASSTHROUGH;
		e->sector = ~0ULL;
	} else if (op == block_op_flush) {
		e->sector = ~0ULL;
	}
	if (rq_flags & block_rqf_flush_seq)
		state |= EV_BLOCK_FLUSH_SEQ;
	/* Born before our eyes: its first possible hook is the one that sees it. */
	if (submitter == EV_SUBMITTER_START ||
	    (submitter != EV_SUBMITTER_NONE && block_has_no_start(op, rq_flags)))
		state |= EV_BLOCK_SAW_START;
	e->state = state;

	if (submitter != EV_SUBMITTER_NONE) {
		compat_current(&e->pid, &e->tgid, e->comm, direct);
		e->submitter = submitter;
	}
	if (block_join_getrq)
		block_join_note(e, bio, KREAD(direct, rq, biotail), direct);
}

/*
 * At INSERT or ISSUE: is this another request than the one in e, which the driver had? Only on proof,
 * since two requests under one id do less harm than one under two: it is of a kind whose birth no hook
 * shows, and it was not taken back from the driver; or GETRQ has noted a birth.
 */
static __always_inline bool block_is_reborn(struct ev_block *e, struct request *rq,
					    const bool direct)
{
	__u64 bio;

	if (!(e->state & EV_BLOCK_ISSUED))
		return false;
	if (block_has_no_start(KREAD(direct, rq, cmd_flags) & block_op_mask,
			       KREAD(direct, rq, rq_flags)))
		return true;
	if (!block_join_getrq)
		return false;
	bio = (__u64)KREAD(direct, rq, bio);
	return bpf_map_lookup_elem(&notes, &bio) != NULL;
}

/*
 * The life in e, at the driver when last seen, has ended unobserved. It counts as one observation of
 * COMPLETE that has no record, so that the books of that probe and the sums per device still close: all
 * its bytes are taken for done, since nobody knows better.
 */
static __always_inline void block_end_unseen(struct emit_run *run, struct ev_block *e)
{
	struct ev_ledger_val lost = {
		.bytes = e->bytes,
		.sector = e->sector,
		.dev = e->dev,
		.part = e->part,
		.cmd_flags = e->cmd_flags,
		.rq_flags = e->rq_flags,
		.state = (e->state & ~(EV_BLOCK_IN_FLIGHT | EV_BLOCK_ISSUED)) |
			 EV_BLOCK_END_UNSEEN | EV_LEDGER_SWAP(e->swap_rule) |
			 EV_LEDGER_UNSWAPPED(e->unswapped),
	};
	struct emit_run other;

	/*
	 * A queue without a disk carries a driver's internal commands (scsi_debug's aborts on 7.x), which the
	 * driver may free without completing them: nothing of a block device is missing then.
	 */
	if (!e->dev)
		return;
	if ((e->state & EV_BLOCK_NOT_SELECTED) || !emit_other(run, &other, EV_PROBE_BLOCK_COMPLETE))
		return;
	emit_lost(&other, e->hdr.id, &lost, bpf_ktime_get_ns());
}

/* The life in e has ended: the entry waits for the next one. complete_ns is what the reaper reads. */
static __always_inline void block_end(struct ev_block *e, __u64 now)
{
	/* Nobody who copies the entry while it is begun anew shall take it for the old request. */
	e->hdr.id = 0;
	e->complete_ns = now;
	barrier();
	*(volatile __u8 *)&e->state = 0;
}
