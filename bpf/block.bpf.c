/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block.bpf.c - the block stream: one record per request, made when the driver has finished it.
 *
 * bpf/block-life.bpf.h keeps a request's entry from its first sight to its end; here is what each hook adds
 * to it, and the record.
 *
 * Which record counts in which column of /proc/diskstats (read from blk_account_io_done,
 * blk_account_io_completion and blk_account_io_flush of 5.10, 6.1, 6.12, 6.18 and 7.2):
 *  - flushes: op FLUSH with EV_BLOCK_FLUSH_SEQ, the flush machinery's own command. Nothing else of such
 *    a record counts, whatever EV_BLOCK_NO_STAT says.
 *  - reads, writes, discards: every other record without EV_BLOCK_NO_STAT, once, an empty flush
 *    (a WRITE with PREFLUSH and no data) included. Discards are op DISCARD; of the rest, writes are the
 *    ops whose kernel number is odd (WRITE, WRITE_ZEROES, SECURE_ERASE, ZONE_*, DRV_OUT), others reads.
 *  - sectors: bytes_done >> 9 of the same records in the same groups.
 *  - merges: `merges` of the same records.
 * EV_BLOCK_NO_STAT is set iff at its end the request had no RQF_IO_STAT or no rq->part: that holds for
 * iostats=0 and for passthrough on every kernel, though the kernels differ in who clears what (5.10
 * counts passthrough with a disk; 6.1 and 6.12 leave part empty; 6.13, 110234da18ab, counts it on
 * request). A request with part set that is not counted does not exist.
 *
 * A flush sequence completes its data write twice: with RQF_FLUSH_SEQ when the data is done, and without
 * when the sequence ends (blk_flush_restore_request). The first is a step and folded, the second makes
 * the record. The FLUSH command between them is a request of its own (RQF_FLUSH_SEQ, op FLUSH).
 */
#include "bpf/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define EMIT_FIRST_PROBE 0
#define EMIT_N_PROBES EV_N_BLOCK_PROBES
#define EMIT_LEDGER_VAL struct ev_ledger_val
#define EMIT_LEDGER_KIND(val) ((val)->state & EV_LEDGER_SWAP(EV_LEDGER_SWAP_RULE))
#include "bpf/compat.bpf.h"
#include "bpf/emit.bpf.h"
#include "bpf/block-life.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* No entry to be had: the outcome of a hook that only takes notes. */
static __always_inline void block_unidentified(struct emit_run *run, struct request *rq,
					       const bool direct)
{
	if (!block_rq_selected(run, rq, direct)) {
		emit_not_selected(run);
		return;
	}
	emit_identity_full(run);
	emit_folded(run);
}

/*
 * The opening of every hook that only takes notes: the life of rq that this hook belongs to, begun here if no
 * hook saw it before; NULL if there is nothing to note, the outcome then being counted.
 */
static __always_inline struct ev_block *block_open(struct emit_run *run, struct request *rq,
						   const __u32 probe, const __u8 submitter,
						   const bool direct)
{
	const bool births = probe == EV_PROBE_BLOCK_START;
	struct ev_block *e;
	bool live;

	if (unlikely(!emit_enter(run, probe)))
		return NULL;
	e = block_slot(run, rq, &live, direct);
	if (unlikely(!e)) {
		block_unidentified(run, rq, direct);
		return NULL;
	}
	if (live && (births ? (e->state & EV_BLOCK_ISSUED) != 0
			    : probe != EV_PROBE_BLOCK_REQUEUE && block_is_reborn(e, rq, direct))) {
		block_end_unseen(run, e);
		live = false;
	}
	if (births || !live)
		block_begin(run, e, rq, submitter, direct);
	if (unlikely(e->state & EV_BLOCK_NOT_SELECTED)) {
		emit_not_selected(run);
		return NULL;
	}
	return e;
}

static __always_inline int block_start(struct request *rq, const bool direct)
{
	struct emit_run run;
	struct ev_block *e = block_open(&run, rq, EV_PROBE_BLOCK_START, EV_SUBMITTER_START, direct);

	if (!e)
		return 0;
	e->start_ns = bpf_ktime_get_ns();
	emit_folded(&run);
	return 0;
}

static __always_inline int block_insert(struct request *rq, const bool direct)
{
	struct emit_run run;
	struct ev_block *e =
		block_open(&run, rq, EV_PROBE_BLOCK_INSERT, EV_SUBMITTER_INSERT, direct);

	if (!e)
		return 0;
	if (!e->issue_ns)
		e->insert_ns = bpf_ktime_get_ns();
	e->cmd_flags |= KREAD(direct, rq, cmd_flags) & ~block_op_mask;
	emit_folded(&run);
	return 0;
}

#define BLOCK_MAX_BIOS \
	1024 /* walked; `merges` saturates there, and what is beyond counts as no swap */

/* What one walk along a request's bios tells. */
struct block_chain {
	__u32 merges; /* bios behind the first: absorbed by merges of bios and of whole requests alike */
	__u32 flags;   /* in which bi_opf differs from the first one's */
	__u64 ends;    /* the same of bi_end_io */
	__u64 flagged; /* bytes whose bio has block_req_swap, times block_req_swap */
};

/*
 * Few requests have more than one bio, and those that do may have many, each a line of memory that is cold: so
 * everything is asked on one walk. There are no branches in it, or the verifier would follow each of them
 * each time. scratch: 8 bytes of map memory.
 */
static __always_inline void block_walk(struct block_chain *c, struct bio *first, __u64 *scratch,
				       const bool direct)
{
	const __u64 end = compat_number(KREAD(direct, first, bi_end_io), scratch, direct);
	const __u32 flags = KREAD(direct, first, bi_opf);
	struct bio *bio = first;

	c->flagged = (__u64)(flags & block_req_swap) * KREAD(direct, first, bi_iter.bi_size);
	for (int i = 0; i < BLOCK_MAX_BIOS; i++) {
		__u32 opf;

		bio = KREAD(direct, bio, bi_next);
		if (!bio)
			break;
		opf = KREAD(direct, bio, bi_opf);
		c->merges++;
		c->flags |= opf ^ flags;
		c->ends |= compat_number(KREAD(direct, bio, bi_end_io), scratch, direct) ^ end;
		c->flagged += (__u64)(opf & block_req_swap) * KREAD(direct, bio, bi_iter.bi_size);
	}
}

#define BLOCK_MAX_MIXED 256 /* bios of a chain of both kinds; what is beyond counts as no swap */

/*
 * Bytes that are swapped in by a chain of bios. Global, so that the verifier takes it once and by itself; for
 * the same reason it gets an address and copies: no caller needs it often.
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
 * and stable). So each bio of a chain is held against the first: a write by its flag, which is all there is to
 * ask; a read by the function that will end it, which for swap is the same for all, and only where one differs
 * is each looked at for itself. Merging must be over.
 */
static __always_inline void block_swap_share(struct ev_block *e, struct request *rq,
					     const struct block_chain *c, const bool direct)
{
	const bool reads = (e->cmd_flags & block_op_mask) == block_op_read;
	__u32 swapped;

	if (reads) {
		/* By area, and where nothing may be copied, the first one speaks for all. */
		if (!c->ends || !block_copies || !block_reads_pages || !block_swap_page_flags)
			return;
		/* Read again, since an address is a number to the verifier only where it was copied. */
		swapped = block_swap_bytes((__u64)BPF_CORE_READ(rq, bio));
	} else {
		if (!(c->flags & block_req_swap))
			return;
		swapped = c->flagged / block_req_swap;
	}
	if (!swapped) {
		e->swap_rule = EV_SWAP_NONE;
		return;
	}
	e->swap_rule = reads ? EV_SWAP_PAGE : EV_SWAP_FLAG;
	if (!reads)
		e->cmd_flags |= block_req_swap;
	swapped = (KREAD(direct, rq, __data_len) - swapped) >> 9;
	e->unswapped = swapped < 0xffff ? swapped : 0xffff;
}

/* Both for a request with more than one bio; returns how many bios the first absorbed. */
static __always_inline __u16 block_merged(struct ev_block *e, struct request *rq, struct bio *first,
					  const bool direct)
{
	struct block_chain c = {};

	if (!first || first == KREAD(direct, rq, biotail))
		return 0;
	block_walk(&c, first, &e->complete_ns, direct);
	e->complete_ns = 0; /* it was the scratch */
	block_swap_share(e, rq, &c, direct);
	return c.merges;
}

/* Where the kernel accounts the request, if it does. */
static __always_inline void block_account(struct ev_block *e, struct request *rq, __u32 rq_flags,
					  const bool direct)
{
	__u32 part = compat_rq_part_dev(rq, direct);

	e->rq_flags = rq_flags;
	if (part)
		e->part = part;
	if (part && (rq_flags & block_rqf_io_stat))
		e->state &= ~EV_BLOCK_NO_STAT;
	else
		e->state |= EV_BLOCK_NO_STAT;
}

static __always_inline int block_issue(struct request *rq, const bool direct)
{
	struct blk_mq_hw_ctx *hctx;
	struct emit_run run;
	struct ev_block *e = block_open(&run, rq, EV_PROBE_BLOCK_ISSUE, EV_SUBMITTER_ISSUE, direct);
	__u32 flags;
	__u64 now;

	if (!e)
		return 0;
	now = bpf_ktime_get_ns();
	flags = KREAD(direct, rq, cmd_flags);
	if (!e->issue_ns) {
		/* Merging is over now, so these are the request's final extent. */
		e->issue_ns = now;
		e->bytes = KREAD(direct, rq, __data_len);
		if (e->sector != ~0ULL)
			e->sector = KREAD(direct, rq, __sector);
		e->merges = block_merged(e, rq, KREAD(direct, rq, bio), direct);
		/* For a loss without a completion; the completion decides anew. */
		block_account(e, rq, KREAD(direct, rq, rq_flags), direct);
	}
	e->issue_last_ns = now;
	e->issue_cpu = run.cpu;
	e->segments = KREAD(direct, rq, nr_phys_segments);
	hctx = KREAD(direct, rq, mq_hctx);
	if (hctx)
		e->hwq = KREAD(direct, hctx, queue_num);
	e->cmd_flags |= flags & ~block_op_mask;
	e->state |= EV_BLOCK_ISSUED;
	emit_folded(&run);
	return 0;
}

static __always_inline int block_requeue(struct request *rq, const bool direct)
{
	struct emit_run run;
	struct ev_block *e =
		block_open(&run, rq, EV_PROBE_BLOCK_REQUEUE, EV_SUBMITTER_NONE, direct);

	if (!e)
		return 0;
	e->requeues++;
	e->state &= ~EV_BLOCK_ISSUED;
	emit_folded(&run);
	return 0;
}

/* The absorbing request is not told (e8a676d61c07, 5.11): it finds the bio in its chain at issue. */
static __always_inline int block_bio_merge(struct bio *bio, const __u32 probe, const bool direct)
{
	struct emit_run run;

	if (!emit_enter(&run, probe))
		return 0;
	if (block_bio_selected(&run, bio, direct))
		emit_folded(&run);
	else
		emit_not_selected(&run);
	return 0;
}

/* rq is the absorbed request: it is freed without a completion, and its bios go on in another. */
static __always_inline int block_rq_merge(struct request *rq, const bool direct)
{
	struct emit_run run;
	struct ev_block *e;
	__u64 key = (__u64)rq;

	if (!emit_enter(&run, EV_PROBE_BLOCK_RQ_MERGE))
		return 0;
	e = bpf_map_lookup_elem(&in_flight, &key);
	if (e && (e->state & EV_BLOCK_IN_FLIGHT)) {
		if (e->state & EV_BLOCK_NOT_SELECTED)
			emit_not_selected(&run);
		else
			emit_folded(&run);
		block_end(e, bpf_ktime_get_ns());
	} else if (block_rq_selected(&run, rq, direct)) {
		emit_folded(&run);
	} else {
		emit_not_selected(&run);
	}
	return 0;
}

static __always_inline int block_getrq(struct bio *bio, const bool direct)
{
	struct block_note note = {};
	struct emit_run run;
	__u64 key = (__u64)bio;

	if (!emit_enter(&run, EV_PROBE_BLOCK_GETRQ))
		return 0;
	if (!block_bio_selected(&run, bio, direct)) {
		emit_not_selected(&run);
		return 0;
	}
	note.start_ns = bpf_ktime_get_ns();
	note.cmd_flags = KREAD(direct, bio, bi_opf);
	note.reclaim = block_current(note.cmd_flags & block_req_swap, &note.cgroup, direct);
	compat_current(&note.pid, &note.tgid, note.comm, direct);
	if (bpf_map_update_elem(&notes, &key, &note, BPF_ANY))
		emit_identity_full(&run);
	emit_folded(&run);
	return 0;
}

/* The last facts, and the header; from here on e is the record. */
static __always_inline void block_finish(struct emit_run *run, struct ev_block *e,
					 struct request *rq, __u32 rq_flags, __u64 now,
					 const bool direct)
{
	block_account(e, rq, rq_flags, direct);
	e->complete_ns = now;
	e->hdr.len = sizeof(*e);
	e->hdr.probe = EV_PROBE_BLOCK_COMPLETE;
	e->hdr.cpu = run->cpu;
	e->hdr.epoch = run->active->epoch;
}

/* One chunk into e, before the kernel takes it off the request. */
static __always_inline void block_chunk(struct ev_block *e, struct bio *bio, int error,
					__u32 n_bytes, __u32 data_len, __u32 rq_flags)
{
	/* Completed without being issued: nobody has noted how much was asked. */
	if (!e->issue_ns && !(e->state & EV_BLOCK_PARTIAL))
		e->bytes = data_len;
	/* Without a bio there is no data, and the kernel accounts none. */
	if (bio)
		e->bytes_done += n_bytes;
	/* A chunk's error stays with its bio, so it stays with the request. */
	if (error)
		e->status = error;
	if (rq_flags & block_rqf_flush_seq)
		e->state |= EV_BLOCK_FLUSH_SEQ;
}

/* Completion of a request that has no entry: the record is built where it will be read. */
static __always_inline int block_complete_unidentified(struct emit_run *run, struct request *rq,
						       int error, __u32 n_bytes, bool final,
						       const bool direct)
{
	__u32 rq_flags = KREAD(direct, rq, rq_flags);
	__u32 data_len = KREAD(direct, rq, __data_len);
	struct bio *bio = KREAD(direct, rq, bio);
	__u64 now = bpf_ktime_get_ns();
	struct ev_ledger_val lost = {};
	struct ev_block *e;
	void *ring;

	if (!block_rq_selected(run, rq, direct)) {
		emit_not_selected(run);
		return 0;
	}
	emit_identity_full(run);
	if (!final) {
		/* Its bytes are known to nobody who could add them to the record. */
		emit_lost_unattributed(run, now);
		return 0;
	}
	ring = emit_ring(run);
	e = emit_reserve(ring, sizeof(*e));
	if (e) {
		block_begin(run, e, rq, EV_SUBMITTER_NONE, direct);
		(void)block_merged(e, rq, bio, direct);
		block_chunk(e, bio, error, n_bytes, data_len, rq_flags);
		block_finish(run, e, rq, rq_flags, now, direct);
		e->state &= ~(EV_BLOCK_IN_FLIGHT | EV_BLOCK_NOT_SELECTED);
		emit_submit(run, ring, e);
		return 0;
	}
	lost.bytes = bio ? n_bytes : 0;
	lost.sector = KREAD(direct, rq, __sector);
	lost.dev = compat_disk_dev(compat_rq_disk(rq, direct), direct);
	lost.part = compat_rq_part_dev(rq, direct);
	lost.cmd_flags = KREAD(direct, rq, cmd_flags);
	lost.rq_flags = rq_flags;
	lost.state = lost.part && (rq_flags & block_rqf_io_stat) ? 0 : EV_BLOCK_NO_STAT;
	lost.state |= EV_LEDGER_SWAP(block_swap_rule(lost.cmd_flags, bio, direct));
	lost.status = error;
	emit_lost(run, 0, &lost, now);
	return 0;
}

static __always_inline int block_complete(struct request *rq, int error, __u32 n_bytes,
					  const bool direct)
{
	struct ev_block *e, *record;
	struct emit_run run;
	struct bio *bio;
	__u32 data_len, rq_flags;
	bool live, step, final;
	__u64 now;
	void *ring;

	if (unlikely(!emit_enter(&run, EV_PROBE_BLOCK_COMPLETE)))
		return 0;
	bio = KREAD(direct, rq, bio);
	data_len = KREAD(direct, rq, __data_len);
	rq_flags = KREAD(direct, rq, rq_flags);
	step = (rq_flags & block_rqf_flush_seq) &&
	       (KREAD(direct, rq, cmd_flags) & block_op_mask) != block_op_flush;
	final = !step && (!bio || n_bytes >= data_len);

	e = block_slot(&run, rq, &live, direct);
	if (unlikely(!e))
		return block_complete_unidentified(&run, rq, error, n_bytes, final, direct);
	if (unlikely(!live)) {
		block_begin(&run, e, rq, EV_SUBMITTER_NONE, direct);
		(void)block_merged(e, rq, bio, direct);
	}
	now = bpf_ktime_get_ns();
	if (e->state & EV_BLOCK_NOT_SELECTED) {
		emit_not_selected(&run);
		if (final)
			block_end(e, now);
		return 0;
	}
	block_chunk(e, bio, error, n_bytes, data_len, rq_flags);
	if (unlikely(!final)) {
		if (step)
			e->state &= ~EV_BLOCK_ISSUED;
		else if (n_bytes)
			e->state |= EV_BLOCK_PARTIAL;
		emit_folded(&run);
		return 0;
	}
	block_finish(&run, e, rq, rq_flags, now, direct);
	ring = emit_ring(&run);
	record = emit_reserve(ring, sizeof(*record));
	if (likely(record)) {
		__builtin_memcpy(record, e, sizeof(*record));
		record->state &= ~(EV_BLOCK_IN_FLIGHT | EV_BLOCK_ISSUED);
		emit_submit(&run, ring, record);
	} else {
		struct ev_ledger_val lost = {
			.bytes = e->bytes_done,
			.sector = e->sector,
			.dev = e->dev,
			.part = e->part,
			.cmd_flags = e->cmd_flags,
			.rq_flags = rq_flags,
			.state = (e->state & ~(EV_BLOCK_IN_FLIGHT | EV_BLOCK_ISSUED)) |
				 EV_LEDGER_SWAP(e->swap_rule) | EV_LEDGER_UNSWAPPED(e->unswapped),
			.status = e->status,
		};

		emit_lost(&run, e->hdr.id, &lost, now);
	}
	block_end(e, now);
	return 0;
}

#include "bpf/block-programs.bpf.h"
