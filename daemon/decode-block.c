// SPDX-License-Identifier: BSD-2-Clause
/*
 * decode-block.c - see decode-block.h.
 *
 * The costly part is translating cmd_flags bit by bit; it is done once per distinct value and kept
 * in a small direct-mapped cache. Everything else is a straight copy of fields.
 */
#include <stddef.h>

#include "daemon/decode-block.h"

/* blk_status_t values whose meaning has not moved since 4.13; 14 and later shift between kernels. */
static const int32_t status_errno[] = {
	[0] = 0,	  [1] = -EOPNOTSUPP, /* BLK_STS_NOTSUPP */
	[2] = -ETIMEDOUT,		     /* BLK_STS_TIMEOUT */
	[3] = -ENOSPC,			     /* BLK_STS_NOSPC */
	[4] = -ENOLINK,			     /* BLK_STS_TRANSPORT */
	[5] = -EREMOTEIO,		     /* BLK_STS_TARGET */
	[6] = -EBADE,			     /* BLK_STS_NEXUS, later BLK_STS_RESV_CONFLICT */
	[7] = -ENODATA,			     /* BLK_STS_MEDIUM */
	[8] = -EILSEQ,			     /* BLK_STS_PROTECTION */
	[9] = -ENOMEM,			     /* BLK_STS_RESOURCE */
	[10] = -EIO,			     /* BLK_STS_IOERR */
	[11] = -EREMCHG,		     /* BLK_STS_DM_REQUEUE */
	[12] = -EAGAIN,			     /* BLK_STS_AGAIN */
	[13] = -EBUSY,			     /* BLK_STS_DEV_RESOURCE */
};

_Static_assert((int)EV_SUBMITTER_ISSUE == (int)IOT_SUBMITTER_ISSUE, "submitter values differ");
_Static_assert((int)EV_ORIGIN_PASSTHROUGH == (int)IOT_ORIGIN_PASSTHROUGH &&
		       (int)EV_CGROUP_BY_SUBMITTER == (int)IOT_CGROUP_BY_SUBMITTER &&
		       (int)EV_RECLAIM_TASK == (int)IOT_RECLAIM_TASK,
	       "values of where a request comes from differ");
_Static_assert(sizeof(((struct ev_block *)0)->comm) == sizeof(((struct iot_request *)0)->comm),
	       "comm lengths differ");
/* What bpf/block-life.bpf.h relies on when a life begins; see struct ev_block. */
_Static_assert(sizeof(struct ev_block) % 8 == 0, "ring records are multiples of 8 bytes");
_Static_assert(offsetof(struct ev_block, comm) % 8 == 0, "comm is cleared and copied in words");
_Static_assert(offsetof(struct ev_block, state) + 4 == offsetof(struct ev_block, comm),
	       "a field behind state is not cleared at birth");
_Static_assert(offsetof(struct ev_block, comm) + EV_COMM_LEN == sizeof(struct ev_block),
	       "a field behind comm is not cleared at birth");

void decode_block_init(struct decode_block *d, const struct probes_kernel *kernel, uint32_t n_cpus)
{
	*d = (struct decode_block){.kernel = kernel, .n_cpus = n_cpus};
	for (unsigned int s = 0; s < IOT_ARRAY_SIZE(d->state_flags); s++) {
		uint32_t f = 0;

		if (!(s & EV_BLOCK_SAW_START))
			f |= IOT_FLAG_NO_START;
		if (s & EV_BLOCK_FLUSH_SEQ)
			f |= IOT_FLAG_FLUSH_SEQ;
		if (s & EV_BLOCK_NO_STAT)
			f |= IOT_FLAG_NO_STAT;
		if (s & EV_BLOCK_PARTIAL)
			f |= IOT_FLAG_PARTIAL;
		d->state_flags[s] = f;
	}
}

static void translate(const struct probes_kernel *k, uint32_t cmd_flags, struct decode_op *ret)
{
	uint32_t bits = cmd_flags & ~k->op_mask, op = cmd_flags & k->op_mask;

	*ret = (struct decode_op){.cmd_flags = cmd_flags, .valid = true};
	ret->op = op < IOT_ARRAY_SIZE(k->op) ? k->op[op] : IOT_OP_OTHER;
	while (bits) {
		unsigned int n = (unsigned int)__builtin_ctz(bits);

		ret->flags |= k->flag_mask[n];
		bits &= bits - 1;
	}
}

static inline const struct decode_op *lookup(struct decode_block *d, uint32_t cmd_flags)
{
	/* Fibonacci hashing: the differing bits lie at both ends of the word. */
	struct decode_op *o = &d->cache[(cmd_flags * 2654435769U) >> 26];

	if (__builtin_expect(o->cmd_flags != cmd_flags || !o->valid, 0))
		translate(d->kernel, cmd_flags, o);
	return o;
}
_Static_assert(DECODE_CACHE == 1U << 6, "the hash above yields six bits");

static inline void copy_fields(struct decode_block *d, const struct ev_block *e,
			       struct iot_request *r)
{
	const struct decode_op *o = lookup(d, e->cmd_flags);

	r->id = e->hdr.id;
	r->start_ns = e->start_ns;
	r->insert_ns = e->insert_ns;
	r->issue_ns = e->issue_ns;
	r->issue_last_ns = e->issue_last_ns;
	r->complete_ns = e->complete_ns;
	r->sector = e->sector;
	r->cgroup = e->cgroup;
	r->ino = e->ino;
	r->fsdev = e->fsdev;
	r->dev = e->dev;
	r->part = e->part;
	r->bytes = e->bytes;
	r->bytes_done = e->bytes_done;
	r->status = (uint32_t)e->status;
	r->error = 0;
	if (__builtin_expect(e->status != 0, 0)) {
		if (d->kernel->status_is_errno)
			r->error = e->status;
		else if (r->status < IOT_ARRAY_SIZE(status_errno))
			r->error = status_errno[r->status];
	}
	r->flags = o->flags | d->state_flags[e->state];
	r->op = o->op;
	r->pid = e->pid;
	r->tgid = e->tgid;
	r->issue_cpu = e->issue_cpu;
	r->complete_cpu = e->hdr.cpu;
	r->requeues = e->requeues;
	r->merges = e->merges;
	r->segments = e->segments;
	r->hwq = e->hwq;
	r->swap_rule = e->swap_rule;
	r->swap = iot_swap_of(o->op, e->swap_rule);
	r->unswapped_bytes = r->swap ? e->unswapped * 512U : 0;
	r->origin = e->origin & EV_ORIGIN_MASK;
	r->cgroup_by = e->origin >> EV_CGROUP_BY_SHIFT & 3;
	r->reclaim = e->origin >> EV_RECLAIM_SHIFT;
	r->file_by = IOT_FILE_BY_NONE;
	if (e->ino)
		r->file_by = r->origin == IOT_ORIGIN_FILE ? IOT_FILE_BY_PAGE
							  : IOT_FILE_BY_SUBMITTER;
	r->submitter = e->submitter;
	r->ring = 0;
	memcpy(r->comm, e->comm, sizeof(r->comm));
	if (__builtin_expect(e->state & EV_BLOCK_PASSTHROUGH, 0))
		r->sector = IOT_SECTOR_NONE;
}

int decode_block_record(struct decode_block *d, const void *data, uint32_t len,
			struct iot_request *ret, struct ev_hdr *ret_hdr)
{
	const struct ev_block *e = data;

	if (__builtin_expect(len < sizeof(struct ev_hdr), 0)) {
		*ret_hdr = (struct ev_hdr){};
		return DECODE_BAD;
	}
	*ret_hdr = e->hdr;
	if (__builtin_expect(len != sizeof(*e) || e->hdr.len != sizeof(*e) ||
				     e->hdr.probe != EV_PROBE_BLOCK_COMPLETE ||
				     e->hdr.cpu >= d->n_cpus || e->submitter > EV_SUBMITTER_ISSUE ||
				     e->swap_rule > EV_SWAP_PARTITION,
			     0))
		return DECODE_BAD;
	copy_fields(d, e, ret);
	return 0;
}

void decode_block_in_flight(struct decode_block *d, const struct ev_block *e,
			    struct iot_request *ret)
{
	copy_fields(d, e, ret);
	/* A partial completion may have left its time and bytes: the end is what is not there yet. */
	ret->complete_ns = 0;
	ret->complete_cpu = 0;
}

void decode_block_loss(struct decode_block *d, const struct ev_ledger_key *key,
		       const struct ev_ledger_val *val, struct iot_loss *ret)
{
	const struct decode_op *o = lookup(d, val->cmd_flags);

	*ret = (struct iot_loss){
		.id = key->id,
		.n = val->n,
		.bytes = val->bytes,
		.sector = val->sector,
		.first_ns = val->first_ns,
		.last_ns = val->last_ns,
		.dev = val->dev,
		.part = val->part,
		.flags = o->flags | d->state_flags[val->state & 0xff],
		.probe = (uint16_t)key->probe,
		.op = o->op,
		.cause = val->state & EV_BLOCK_END_UNSEEN ? IOT_LOSS_UNSEEN
							  : IOT_LOSS_RESERVE_FAILED,
		.swap_rule = val->state >> EV_LEDGER_SWAP_SHIFT & EV_LEDGER_SWAP_RULE,
	};
	ret->swap = iot_swap_of(ret->op, ret->swap_rule);
	ret->unswapped_bytes = ret->swap ? (val->state >> EV_LEDGER_UNSWAPPED_SHIFT) * 512U : 0;
}

void decode_block_user_loss(const struct ev_hdr *hdr, const struct iot_request *r,
			    enum iot_loss_cause cause, uint64_t first_ns, uint64_t last_ns,
			    struct iot_loss *ret)
{
	*ret = (struct iot_loss){
		.id = hdr->id,
		.n = 1,
		.sector = IOT_SECTOR_NONE,
		.first_ns = first_ns,
		.last_ns = last_ns,
		.probe = hdr->probe,
		.cause = (uint8_t)cause,
	};
	if (!r)
		return;
	ret->bytes = r->bytes_done;
	ret->sector = r->sector;
	ret->dev = r->dev;
	ret->part = r->part;
	ret->flags = r->flags;
	ret->op = r->op;
	ret->swap = r->swap;
	ret->swap_rule = r->swap_rule;
	ret->unswapped_bytes = r->unswapped_bytes;
}
