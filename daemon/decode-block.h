/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode-block.h - the border between two truths: the kernel wire (bpf/events.h), native and of
 * this build, and the records of the segment format (format/record.h), frozen. No other module
 * knows both.
 *
 * Decoding is pure and judges what it is given: a record whose length, probe, CPU or epoch cannot be
 * true is not decoded, and that is a positive condition, never an error to pass on: its header is
 * returned as far as it is readable, so that the caller files the loss against its owner. One core
 * has to decode, encode and write 8 million records a second: 20 ns are for this module.
 */
#pragma once

#include "bpf/events.h"
#include "daemon/probes.h"
#include "format/record.h"

#define DECODE_CACHE 64U /* power of two; workloads use a handful of cmd_flags values */

struct decode_op {
	uint32_t cmd_flags;
	uint32_t flags; /* enum iot_flag */
	uint8_t op;	/* enum iot_op */
	bool valid;
};

struct decode_block {
	const struct probes_kernel *kernel;
	uint32_t n_cpus;
	uint32_t state_flags[256]; /* ev_block.state -> enum iot_flag */
	struct decode_op cache[DECODE_CACHE];
};

void decode_block_init(struct decode_block *d, const struct probes_kernel *kernel, uint32_t n_cpus);

/*
 * One record of the ring. epoch is returned as the record claims it; whether that epoch is one of
 * those in flight is the caller's to judge. Positive DECODE_BAD: not decodable, *ret_hdr says what
 * can be known (all zero when not even the header is there).
 */
#define DECODE_BAD 1
int decode_block_record(struct decode_block *d, const void *data, uint32_t len,
			struct iot_request *ret, struct ev_hdr *ret_hdr) IOT_MUST_CHECK;

/* Completion time of a record for merging rings; 0 if it is too short to have one. */
static inline uint64_t decode_block_time(const void *data, uint32_t len)
{
	const struct ev_block *e = data;

	return len >= sizeof(*e) ? e->complete_ns : 0;
}

/* A request still in flight (complete_ns = 0, nothing done yet). */
void decode_block_in_flight(struct decode_block *d, const struct ev_block *e,
			    struct iot_request *ret);

/* An entry of the kernel's ledger. */
void decode_block_loss(struct decode_block *d, const struct ev_ledger_key *key,
		       const struct ev_ledger_val *val, struct iot_loss *ret);

/* The loss to file for a record that reached user space and no further. */
void decode_block_user_loss(const struct ev_hdr *hdr, const struct iot_request *r,
			    enum iot_loss_cause cause, uint64_t first_ns, uint64_t last_ns,
			    struct iot_loss *ret);
