/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify-internal.h - verification with and without decoding every record.
 */
#pragma once

#include "format/reader-internal.h"
#include "format/verify.h"

/* Ring positions of a segment's blocks, for the links between segments. */
struct iot_ring_ends {
	bool known[IOT_MAX_RINGS];
	uint64_t first[IOT_MAX_RINGS]; /* p0 of the first block */
	uint64_t last[IOT_MAX_RINGS];  /* p1 of the last block */
};

/* full: decode every block; else headers and the footer's claims only. */
/* Retention took the file between opening and now; the header is all that is known. */
void iot_verdict_gone(struct iot_verdict *ret);
int iot_verify_one(struct iot_segment *s, bool full, struct iot_ring_ends *ret_ends,
		   struct iot_verdict *ret, struct iot_error *err) IOT_MUST_CHECK;
int iot_verify_many(struct iot_segment **segments, size_t n, bool full, struct iot_verdict *ret,
		    struct iot_error *err) IOT_MUST_CHECK;
