/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report-view.h - what `iotracectl report` shows: the numbers of report.h with everything that is
 * said around them. Filled by verb-report.c, shown as text or as JSON, the same content in both.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/rank.h"
#include "daemon/ctl/report-cache.h"
#include "daemon/ctl/report-totals.h"
#include "daemon/ctl/report.h"
#include "daemon/ctl/resolve.h"

#define REPORT_MAX_RANKS 2U

struct report_view {
	struct report report;
	struct report_totals totals;
	bool logical_known;	/* --logical-bytes */
	uint64_t logical_bytes; /* what the workload wrote, by its own account */
	struct iot_verdict verdict;
	size_t n_segments;
	size_t n_torn;
	size_t n_captures;
	size_t n_hosts;
	uint64_t file_bytes;
	uint64_t
		first_ns; /* wall clock: recorded time covered by the segments, cut to the filter */
	uint64_t last_ns;
	const char *selections[CTL_SELECTIONS]; /* what was recorded; each once */
	size_t n_selections;
	const char *sources[CTL_SELECTIONS]; /* other tools' traces; each once */
	size_t n_sources;
	uint64_t between_ns;	   /* of the whole record: between captures, not recorded */
	struct report_span *spans; /* one per segment */
	size_t n_spans;
	uint64_t requests; /* that passed the filter */
	uint64_t lost;	   /* likewise, from the ledgers */
	uint64_t lost_bytes;
	bool losses_final;	  /* ctl_losses_final(): otherwise lost is a lower bound */
	bool filtered;		  /* some filter is on */
	bool timed;		  /* --since or --until: the verdict says what is not covered */
	bool losses_unfilterable; /* a filter on what the ledger does not hold */
	bool no_swap_out;	  /* some segment could not tell */
	bool no_swap_in;
	struct rank ranks[REPORT_MAX_RANKS]; /* --by; --html has two */
	size_t n_ranks;
	const struct iot_scan *scan; /* for names; NULL = none */
	const char *mount;	     /* --resolve; NULL = not asked for */
	uint32_t mount_fsdev;
	struct resolve_want *wants; /* of the rows that are shown */
	size_t n_wants;
	struct resolve_walk walk;
	struct report_cache cache;		/* --cacheability; curves are NULL: not asked for */
	const struct report_pictures *pictures; /* --html; NULL: not asked for */
	bool swap_dropped;			/* some segment was recorded without swap */
};

/* report-read.c: swap, and what the kernel merged with it, into their own sums. */
void report_read_totals(struct report_totals *t, uint64_t realtime_ns, uint8_t op, uint8_t swap,
			uint64_t bytes, uint32_t unswapped_bytes);
/* The requests of the scan that pass its filter; last_ns: per segment, of its latest. */
int report_read(struct iot_scan *scan, struct report_view *v, uint64_t *last_ns,
		struct iot_error *err) IOT_MUST_CHECK;

/* Rates need a time; 0 where nothing is known. */
double report_view_seconds(const struct report_view *v, const struct report_device *d);
/* report-rank.c: what a row is called, and what is known of it. */
const char *report_rank_name(const struct report_view *v, const struct rank *rk,
			     const struct rank_group *g, char *buf, size_t size);
/* The path of a cgroup by the names of its boot's segments, or NULL. */
const char *report_rank_cgroup(const struct report_view *v, const struct rank *rk,
			       const struct rank_group *g);
/* What the walk has found out about a file of this machine and mount, or NULL. */
const struct resolve_want *report_rank_resolved(const struct report_view *v, const struct rank *rk,
						const struct rank_group *g);
/* Seconds of recorded time that its rate is per; 0 = not known. */
double report_rank_seconds(const struct report_view *v, const struct rank *rk,
			   const struct rank_group *g);
int report_rank_text(const struct report_view *v, const struct rank *rk, FILE *f,
		     bool color) IOT_MUST_CHECK;
/* report-rank-json.c */
struct json_object *report_rank_json(const struct report_view *v, const struct rank *rk);
/* report-json.c */
struct json_object *report_hist_json(const struct hist *h);
/* report-totals-text.c */
void report_text_totals(const struct report_view *v, FILE *f);
int report_text_over_time(const struct report_view *v, FILE *f, bool color) IOT_MUST_CHECK;
int report_view_text(const struct report_view *v, FILE *f, bool color) IOT_MUST_CHECK;
/* The document. NULL: no memory. */
struct json_object *report_view_json(const struct report_view *v);
