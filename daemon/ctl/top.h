/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.h - what was recorded within a few seconds, as it gets into the files: windows of equal length, one after the
 * other. Pure: records in, numbers out.
 *
 * Records get into the files by blocks, up to block_age late, so a window is shown when it is TOP_LAG_NS old. What
 * comes later than that is counted in the oldest window that has not been shown, and said: sums stay right.
 */
#pragma once

#include "daemon/ctl/rank.h"
#include "daemon/ctl/report.h"
#include "format/packet.h"

#define TOP_LAG_NS UINT64_C(1300000000) /* the usual block_age, and a look at the files */
#define TOP_WINDOWS 4U
#define TOP_REASONS 16U /* the last is all others */

struct top_reason {
	char name[48];
	uint64_t n;
};

struct top_window {
	struct report report;
	struct rank processes;
	struct rank cgroups;
	struct top_reason reasons[TOP_REASONS];
	size_t n_reasons;
	uint64_t requests;
	uint64_t observations;
	uint64_t late; /* of the requests and drops: from before the window */
};

struct top {
	uint64_t length_ns;
	uint64_t first; /* number of the first window, which is a whole one */
	uint64_t
		next; /* number of the oldest window that has not been shown: it begins at next * length_ns */
	struct top_window windows[TOP_WINDOWS]; /* by number modulo their count */
};

void top_init(struct top *t, uint64_t length_ns, uint64_t now_ns);
void top_done(struct top *t);
/* Times are CLOCK_MONOTONIC of this machine. disk: the device's name. */
int top_add(struct top *t, const struct iot_segment_info *info, const char *disk,
	    const struct iot_request *r) IOT_MUST_CHECK;
/* reason: of a drop; NULL for any other observation. */
void top_add_packet(struct top *t, uint64_t ns, const char *reason);
/* The window that can be shown by now, or NULL; it lives until top_shown(). */
struct top_window *top_ready(struct top *t, uint64_t now_ns);
void top_shown(struct top *t);
/* When the next one is. */
static inline uint64_t top_next_ns(const struct top *t)
{
	return (t->next + 1) * t->length_ns + TOP_LAG_NS;
}
