/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block-programs.bpf.h - the programs of the block stream, which call the handlers of block.bpf.c.
 *
 * For each hook: tp_btf with plain loads, and raw_tp for kernels that refuse those; each
 * for both argument shapes, since a54895fa057c (5.11, and stable 5.10.137) dropped the queue that came
 * first. The daemon counts the parameters in BTF and loads the one that fits, by name: SHAPED() in
 * daemon/probes-block.c wants <handler>_btf, _btf_q, _raw and _raw_q. A hook whose arguments fit no macro
 * here has its programs written out, under these names.
 */
#pragma once

#define BLOCK_RQ_PROGRAMS(hook, handler)                                           \
	SEC("tp_btf/" #hook) int BPF_PROG(handler##_btf, struct request *rq)       \
	{                                                                          \
		return handler(rq, true);                                          \
	}                                                                          \
	SEC("tp_btf/" #hook)                                                       \
	int BPF_PROG(handler##_btf_q, struct request_queue *q, struct request *rq) \
	{                                                                          \
		return handler(rq, true);                                          \
	}                                                                          \
	SEC("raw_tp/" #hook) int BPF_PROG(handler##_raw, struct request *rq)       \
	{                                                                          \
		return handler(rq, false);                                         \
	}                                                                          \
	SEC("raw_tp/" #hook)                                                       \
	int BPF_PROG(handler##_raw_q, struct request_queue *q, struct request *rq) \
	{                                                                          \
		return handler(rq, false);                                         \
	}

BLOCK_RQ_PROGRAMS(block_rq_insert, block_insert)
BLOCK_RQ_PROGRAMS(block_rq_issue, block_issue)
BLOCK_RQ_PROGRAMS(block_rq_requeue, block_requeue)
BLOCK_RQ_PROGRAMS(block_rq_merge, block_rq_merge)

/* (q, rq, bio) until e8a676d61c07 ("block: simplify and extend the block_bio_merge class", 5.11). */
#define BLOCK_MERGE_PROGRAMS(hook, name, probe)                                                  \
	SEC("tp_btf/" #hook) int BPF_PROG(name##_btf, struct bio *bio)                           \
	{                                                                                        \
		return block_bio_merge(bio, probe, true);                                        \
	}                                                                                        \
	SEC("tp_btf/" #hook)                                                                     \
	int BPF_PROG(name##_btf_q, struct request_queue *q, struct request *rq, struct bio *bio) \
	{                                                                                        \
		return block_bio_merge(bio, probe, true);                                        \
	}                                                                                        \
	SEC("raw_tp/" #hook) int BPF_PROG(name##_raw, struct bio *bio)                           \
	{                                                                                        \
		return block_bio_merge(bio, probe, false);                                       \
	}                                                                                        \
	SEC("raw_tp/" #hook)                                                                     \
	int BPF_PROG(name##_raw_q, struct request_queue *q, struct request *rq, struct bio *bio) \
	{                                                                                        \
		return block_bio_merge(bio, probe, false);                                       \
	}

BLOCK_MERGE_PROGRAMS(block_bio_backmerge, block_back, EV_PROBE_BLOCK_BIO_MERGE)
BLOCK_MERGE_PROGRAMS(block_bio_frontmerge, block_front, EV_PROBE_BLOCK_FRONT_MERGE)

SEC("tp_btf/block_io_start") int BPF_PROG(block_start_btf, struct request *rq)
{
	return block_start(rq, true);
}

SEC("raw_tp/block_io_start") int BPF_PROG(block_start_raw, struct request *rq)
{
	return block_start(rq, false);
}

/* Where block_io_start does not exist (before 5a80bd075f3b, 6.5) the function it sits in may. */
SEC("fentry/blk_account_io_start") int BPF_PROG(block_start_fentry, struct request *rq)
{
	return block_start(rq, true);
}

SEC("kprobe/blk_account_io_start") int BPF_KPROBE(block_start_kprobe, struct request *rq)
{
	return block_start(rq, false);
}

/* And where the compiler has inlined that (6.1), the bio's getrq, one argument since 5.11. */
SEC("tp_btf/block_getrq") int BPF_PROG(block_getrq_btf, struct bio *bio)
{
	return block_getrq(bio, true);
}

SEC("raw_tp/block_getrq") int BPF_PROG(block_getrq_raw, struct bio *bio)
{
	return block_getrq(bio, false);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_complete_btf, struct request *rq, int error, unsigned int n_bytes)
{
	return block_complete(rq, error, n_bytes, true);
}

SEC("raw_tp/block_rq_complete")
int BPF_PROG(block_complete_raw, struct request *rq, int error, unsigned int n_bytes)
{
	return block_complete(rq, error, n_bytes, false);
}
