/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report-view.h - what `iotracectl report` shows: the numbers of report.h with everything that is
 * said around them. Filled by verb-report.c, shown as text or as JSON, the same content in both.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/report.h"

struct report_view {
	struct report report;
	struct iot_verdict verdict;
	size_t n_segments;
	size_t n_torn;
	size_t n_captures;
	size_t n_hosts;
	uint64_t file_bytes;
	uint64_t
		first_ns; /* wall clock: recorded time covered by the segments, cut to the filter */
	uint64_t last_ns;
	struct report_span *spans; /* one per segment */
	size_t n_spans;
	uint64_t requests; /* that passed the filter */
	uint64_t lost;	   /* likewise, from the ledgers */
	uint64_t lost_bytes;
	bool losses_final;	  /* ctl_losses_final(): otherwise lost is a lower bound */
	bool filtered;		  /* some filter is on */
	bool losses_unfilterable; /* a filter on what the ledger does not hold */
	bool no_swap_out;	  /* some segment could not tell */
	bool no_swap_in;
};

/* Rates need a time; 0 where nothing is known. */
double report_view_seconds(const struct report_view *v, const struct report_device *d);
int report_view_text(const struct report_view *v, FILE *f, bool color) IOT_MUST_CHECK;
/* CTL_OK or CTL_ERROR; prints. */
int report_view_json(const struct report_view *v) IOT_MUST_CHECK;
