/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picture-packets.h - what the page of `report --html` draws of packets: observations and drops on the time
 * axis, the table of drops, and the way of a few packets that stand for the others.
 *
 * Verdicts on packets need whole lives, and lives of all packets need memory by their number. So some are
 * picked while the selection is read once: the first drop of each of the first reasons, packets of the
 * ledger, and of a sample of those whose beginning was observed the one with the most observations, the
 * slowest and a usual one. Only theirs are gathered.
 */
#pragma once

#include "daemon/ctl/drops.h"
#include "daemon/ctl/hops.h"
#include "daemon/ctl/picture.h"

#define PACKET_REASONS 8U /* with a row of their own over time; the last is all others */
#define PACKET_SAMPLE 64U
#define PACKET_WAYS 10U	    /* shown at most */
#define PACKET_WAY_HOPS 64U /* observations of one that are kept */

enum packet_pick {
	PACKET_ASKED = 0, /* --id */
	PACKET_DROPPED = 1,
	PACKET_LOST = 2,
	PACKET_LONGEST = 3,
	PACKET_SLOWEST = 4,
	PACKET_USUAL = 5,
};
const char *packet_pick_name(enum packet_pick pick);

struct packet_way {
	uint8_t capture_id[16];
	uint64_t id;
	enum packet_pick pick;
	/* of the sample, once its records were read */
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t n_hops;
	bool shown;
};

struct packet_reason {
	char name[64];
	uint64_t n;
	uint64_t drops[PICTURE_COLUMNS];
};

struct packet_pictures {
	bool any;   /* there are segments of packets */
	uint64_t n; /* observations of the selection */
	uint64_t observations[PICTURE_COLUMNS];
	struct packet_reason reasons[PACKET_REASONS];
	size_t n_reasons;
	struct drops drops;
	struct packet_way ways[PACKET_WAYS + PACKET_SAMPLE];
	size_t n_ways;
	size_t n_sampled; /* of the ways: the last ones */
	uint64_t n_born;  /* beginnings that were seen, of which the sample is */
	struct ctl_packets packets;
	struct ctl_hops hops;
};

/* scan has the selection, whole the same segments without filters. Negative errno with err. */
int packet_pictures_read(struct packet_pictures *pp, struct iot_scan *scan, struct iot_scan *whole,
			 const struct iot_filter *f, const struct picture_axis *a,
			 struct iot_error *err) IOT_MUST_CHECK;
void packet_pictures_done(struct packet_pictures *pp);
