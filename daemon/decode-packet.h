/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode-packet.h - the packet stream's border between the kernel wire (bpf/events.h), native and of
 * this build, and the records of the segment format (format/packet.h), frozen. As decode-block.h:
 * pure, and a record that cannot be true is a positive condition, whose header is returned so that
 * the loss finds its owner.
 */
#pragma once

#include "bpf/events.h"
#include "daemon/decode-block.h" /* DECODE_BAD */
#include "daemon/places.h"
#include "format/packet.h"

struct decode_packet {
	uint32_t n_cpus;
	struct places *places; /* borrowed */
};

int decode_packet_record(const struct decode_packet *d, const void *data, uint32_t len,
			 struct iot_packet *ret, struct ev_hdr *ret_hdr) IOT_MUST_CHECK;

/* Time of a record for merging rings; 0 if it is too short to have one. */
static inline uint64_t decode_packet_time(const void *data, uint32_t len)
{
	const struct ev_packet *e = data;

	return len >= sizeof(*e) ? e->ts_ns : 0;
}

/* An entry of the kernel's ledger. */
void decode_packet_loss(const struct ev_ledger_key *key, const struct ev_packet_loss *val,
			struct iot_loss *ret);

/* The loss to file for a record that reached user space and no further; p NULL: not decoded. */
void decode_packet_user_loss(const struct ev_hdr *hdr, const struct iot_packet *p,
			     enum iot_loss_cause cause, uint64_t last_ns, struct iot_loss *ret);
