/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picture-record.h - the record itself on the time axis: what was recorded when, what is proved of that
 * time, where losses and windows of doubt are. A lane a stream and machine.
 *
 * A column is complete only if segments cover all of it that the report is about and nothing of that is missing
 * but what has an owner in the ledger and another time; anything else is said: lost, unknown, recorded in part,
 * not recorded. A doubt about a segment is one about all of its time.
 */
#pragma once

#include "daemon/ctl/picture.h"
#include "format/scan.h"

#define RECORD_MAX_LANES 16U
#define RECORD_MAX_WINDOWS 256U /* told one by one */

enum record_state {
	RECORD_NOTHING = 0,
	RECORD_COMPLETE = 1,
	RECORD_LOST = 2, /* from the first to the last observation of something in the ledger */
	RECORD_PART = 3, /* what was recorded of it is complete, or lost */
	RECORD_UNKNOWN = 4,
};

struct record_lane {
	enum iot_stream stream;
	uint8_t machine_id[16];
	char host[65];
	uint8_t state[PICTURE_COLUMNS];	  /* enum record_state */
	bool has_lost[PICTURE_COLUMNS];	  /* whatever the filter */
	uint64_t lost[PICTURE_COLUMNS];	  /* of the ledger */
	uint32_t doubts[PICTURE_COLUMNS]; /* windows that reach into the column */
};

struct record_window {
	uint64_t from_ns; /* CLOCK_REALTIME */
	uint64_t to_ns;
	uint64_t n; /* UINT64_MAX = unknown */
	size_t lane;
	uint8_t kind;	/* enum iot_window_kind */
	char probe[64]; /* "": any */
};

struct record_lanes {
	struct record_lane *lanes;
	size_t n;
	bool more; /* machines that have no lane */
	struct record_window *windows;
	size_t n_windows; /* all of them; RECORD_MAX_WINDOWS are kept */
};

/* spans: the time of each segment of the scan, in its order, cut to first_ns .. last_ns. read: the same segments, of
 * which all records were read. */
int record_read(struct record_lanes *rl, const struct iot_scan *scan, const struct iot_scan *read,
		const struct iot_filter *f, const struct picture_axis *a,
		const struct report_span *spans, uint64_t first_ns,
		uint64_t last_ns) IOT_MUST_CHECK;
void record_done(struct record_lanes *rl);
