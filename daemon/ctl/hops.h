/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hops.h - the observations of some packets, in the order of each packet's way, and a packet with them as
 * JSON: of `explain` and of the page of `report --html`.
 */
#pragma once

#include "daemon/ctl/packets.h"

struct ctl_hop {
	struct iot_packet p;
	struct iot_segment *s;
	size_t at; /* in the order of the scan */
};

struct ctl_hops {
	struct ctl_hop *items; /* sorted: by capture, packet, way */
	size_t n;
	size_t room;
};
void ctl_hops_done(struct ctl_hops *h);
/* s may be closed afterwards, those of c may not. */
int ctl_hops_add(struct ctl_hops *h, const struct ctl_capture *c, const struct iot_packet *p,
		 struct iot_segment *s) IOT_MUST_CHECK;
/* Before ctl_hops_of(). */
void ctl_hops_sort(struct ctl_hops *h, const struct ctl_packets *packets);
const struct ctl_hop *ctl_hops_of(const struct ctl_hops *h, const struct ctl_packets *packets,
				  const struct ctl_capture *c, uint64_t id, size_t *ret_n);
/* absences: also what it means that it was not seen at each other probe. */
struct json_object *ctl_packet_json(const struct ctl_packets *packets, const struct ctl_hops *h,
				    struct ctl_capture *c, const struct iot_packet_life *l,
				    bool absences);
