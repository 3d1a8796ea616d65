/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top-view.h - a window of `top` as text or JSON, with what the daemon says of losses beside it.
 */
#pragma once

#include "daemon/ctl/live.h"
#include "daemon/ctl/top.h"

#define TOP_INTERVAL_NS UINT64_C(2000000000)
#define TOP_ROWS 20U /* of each table */

/* Cgroups of this machine by their id; a cgroup's id is the inode number of its directory. */
struct top_names {
	char *dir; /* owned: of the files */
	struct iot_names cgroups;
	char selected[128]; /* what is recorded, by the configuration; "": all */
	char left_out[256]; /* that the device asked for is, by the configuration; "": it is not */
	char missing[192];  /* what the files no longer have; "": nothing */
	/* Of the last frame, for what has come since. */
	uint64_t lost;
	bool lost_known;
};
void top_names_done(struct top_names *n);

struct top_frame {
	struct top_window *window;
	uint64_t length_ns;
	uint64_t to_ns; /* CLOCK_REALTIME, its end */
	struct json_object *status;
	uint64_t in_flight;
	bool in_flight_known;
	bool color;
	struct top_names *names;
};
/* Negative errno. */
int top_print(struct top_frame *t, FILE *f) IOT_MUST_CHECK;
int top_print_json(struct top_frame *t, FILE *f) IOT_MUST_CHECK;
/* A device that came after the segment's beginning is named by sysfs: this is its machine. */
const char *top_disk_name(const struct iot_segment *s, uint32_t dev, char *buf, size_t size);
