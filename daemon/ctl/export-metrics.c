// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-metrics.c - sums over a recorded range for monitoring: requests, bytes, errors, losses and latencies
 * by device, operation and swap, and the verdict.
 *
 * They are gauges: of a range that somebody chose, not counters that go on.
 */
#include "daemon/ctl/export.h"
#include "daemon/ctl/metrics.h"
#include "daemon/ctl/report.h"
#include "format/block.h"

#define COLUMNS                                                                                  \
	(IOT_COLS_TIMES | IOT_COLS_OP | IOT_COLS_DEVICE | IOT_COLS_BYTES | IOT_COLS_BYTES_DONE | \
	 IOT_COLS_STATUS | IOT_COLS_COUNTS)

struct range {
	struct report report;
	uint64_t lost;
	bool no_swap_out; /* some segment's kernel could not tell it */
	bool no_swap_in;
};

static int find_device(struct report *rp, const struct iot_segment *s, uint32_t dev,
		       struct report_device **ret)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	char number[32];

	return report_device(rp, info->machine_id, dev,
			     iot_dev_name(s, dev, number, sizeof(number)), info->host, ret);
}

static int read_requests(const struct ctl *c, struct iot_scan *scan, struct report *rp,
			 struct export_stats *stats, struct iot_error *err)
{
	const struct iot_segment *last = NULL;
	struct report_device *d = NULL;
	struct iot_request req;
	struct iot_segment *s;
	uint32_t dev = 0;
	int r;

	iot_scan_columns(scan, COLUMNS);
	while ((r = iot_scan_next(scan, &req, &s, err)) != IOT_READ_END) {
		if (r < 0)
			return r;
		iot_filter_share(&c->filter, &req);
		if (s != last || req.dev != dev || !d) {
			r = find_device(rp, s, req.dev, &d);
			if (r < 0)
				return r;
			last = s;
			dev = req.dev;
		}
		r = report_add(d, &req);
		if (r < 0)
			return r;
		stats->requests++;
	}
	return 0;
}

static int read_losses(const struct ctl *c, struct iot_scan *scan, struct range *range)
{
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		_cleanup_free_ struct iot_loss *losses = NULL;
		size_t n = 0;
		int r;

		if (iot_segment_info(s)->stream != IOT_STREAM_BLOCK)
			continue;
		range->no_swap_out |= iot_segment_info(s)->swap_out == IOT_ABILITY_UNAVAILABLE;
		range->no_swap_in |= iot_segment_info(s)->swap_in == IOT_ABILITY_UNAVAILABLE;
		if (!iot_segment_footer(s))
			continue;
		r = iot_segment_load_ledger(s, &losses, &n, NULL);
		/* A damaged ledger is in the verdict. */
		if (r < 0 && r != -EBADMSG)
			return r;
		for (size_t k = 0; r == 0 && k < n; k++) {
			struct report_device *d;

			if (!iot_filter_match_loss(&c->filter, s, &losses[k]))
				continue;
			iot_filter_share_loss(&c->filter, &losses[k]);
			r = find_device(&range->report, s, losses[k].dev, &d);
			if (r == 0)
				r = report_add_loss(d, &losses[k]);
			if (r < 0)
				return r;
			range->lost += losses[k].n;
		}
	}
	return 0;
}

/* ---- out --------------------------------------------------------------------------------------- */

struct sum {
	const char *family;
	const char *help;
	size_t offset; /* of a uint64_t in struct report_cell */
	bool loss;     /* 0 is no sample where more may have been lost */
};

struct sum_of {
	const struct sum *sum;
	bool losses_final;
};

static const struct sum sums[] = {
	{"iotraced_range_requests", "Requests recorded.", offsetof(struct report_cell, requests),
	 false},
	{"iotraced_range_bytes", "Bytes that were done.", offsetof(struct report_cell, bytes_done),
	 false},
	{"iotraced_range_errors", "Requests that failed.", offsetof(struct report_cell, errors),
	 false},
	{"iotraced_range_requeues", "Times that requests were requeued.",
	 offsetof(struct report_cell, requeues), false},
	{"iotraced_range_lost_requests", "Requests that are not in the record, by the ledger.",
	 offsetof(struct report_cell, lost), true},
	{"iotraced_range_lost_bytes", "Bytes of requests that are not in the record.",
	 offsetof(struct report_cell, lost_bytes), true},
};

typedef void cell_fn(struct metrics *m, const struct metric_label *labels,
		     const struct report_cell *cell, const void *arg);

static void put_sum(struct metrics *m, const struct metric_label *labels,
		    const struct report_cell *cell, const void *arg)
{
	const struct sum_of *of = arg;
	uint64_t v;

	memcpy(&v, (const char *)cell + of->sum->offset, sizeof(v));
	if (v || of->losses_final || !of->sum->loss)
		metrics_u64(m, labels, METRIC_LABELS - 1, v);
}

static void put_percentiles(struct metrics *m, const struct metric_label *labels,
			    const struct report_cell *cell, const void *arg)
{
	static const struct {
		const char *name;
		unsigned int p;
	} percentiles[] = {{"50", 5000}, {"90", 9000}, {"99", 9900}, {"99.9", 9990}};
	const struct hist *h = strcmp(arg, "queue") == 0 ? &cell->queue : &cell->device;
	struct metric_label with[METRIC_LABELS];

	if (!h->n)
		return;
	memcpy(with, labels, (METRIC_LABELS - 1) * sizeof(*labels));
	for (size_t i = 0; i < IOT_ARRAY_SIZE(percentiles); i++) {
		with[METRIC_LABELS - 1] = (struct metric_label){"percentile", percentiles[i].name};
		metrics_double(m, with, METRIC_LABELS,
			       (double)hist_percentile(h, percentiles[i].p) / 1e9);
	}
}

/* Swap that some segment's kernel did not tell from other requests may be among those without the tag. */
static const char *swap_name(const struct range *range, unsigned int op, unsigned int swap)
{
	static const char *const names[REPORT_N_SWAP] = {"none", "out", "in"};

	if (swap == IOT_SWAP_NONE && ((op == IOT_OP_WRITE && range->no_swap_out) ||
				      (op == IOT_OP_READ && range->no_swap_in)))
		return "unknown";
	return names[swap];
}

static void each_cell(struct metrics *m, const struct range *range, cell_fn *fn, const void *arg)
{
	const struct report *rp = &range->report;

	for (size_t i = 0; i < rp->n_devices; i++) {
		const struct report_device *d = &rp->devices[i];

		for (unsigned int op = 0; op < IOT_N_OPS; op++)
			for (unsigned int k = 0; d->ops[op] && k < REPORT_N_SWAP; k++) {
				const struct report_cell *cell = &d->ops[op]->swap[k];
				struct metric_label labels[METRIC_LABELS - 1] = {
					{"host", d->host},
					{"device", d->name},
					{"operation", iot_op_name(op)},
					{"swap", swap_name(range, op, k)},
				};

				if (cell->requests || cell->lost)
					fn(m, labels, cell, arg);
			}
	}
}

static void put_record(struct metrics *m, const struct iot_scan *scan, const struct iot_verdict *v,
		       uint64_t lost, bool losses_final)
{
	static const enum iot_verdict_code codes[] = {IOT_VERDICT_COMPLETE, IOT_VERDICT_LOST,
						      IOT_VERDICT_UNKNOWN, IOT_VERDICT_TORN,
						      IOT_VERDICT_CORRUPT};
	const char *names[IOT_ARRAY_SIZE(codes)];

	for (size_t i = 0; i < IOT_ARRAY_SIZE(codes); i++)
		names[i] = iot_verdict_name(codes[i]);
	metrics_family(m, "iotraced_range_verdict", METRIC_GAUGE, "1: the verdict on the record.");
	metrics_states(m, NULL, "verdict", names, IOT_ARRAY_SIZE(codes), iot_verdict_name(v->code));
	metrics_family(m, "iotraced_range_losses_final", METRIC_GAUGE,
		       "1: all losses are counted; 0: there may be more.");
	metrics_u64(m, NULL, 0, losses_final);
	metrics_family(m, "iotraced_range_lost", METRIC_GAUGE,
		       "Observations of requests that were lost, by the ledgers.");
	if (lost || losses_final)
		metrics_u64(m, NULL, 0, lost);
	metrics_family(m, "iotraced_range_segments", METRIC_GAUGE, "Segments that were read.");
	metrics_u64(m, NULL, 0, iot_scan_n_segments(scan));
}

/* What the record says nothing about: there was nobody to lose it. */
static int put_bounds(struct metrics *m, const struct iot_scan *scan)
{
	const char *selections[CTL_SELECTIONS];
	size_t n = ctl_selections(scan, selections, IOT_ARRAY_SIZE(selections));
	uint64_t between_ns;
	int r = ctl_cover_between(scan, IOT_STREAM_BLOCK, &between_ns);

	if (r < 0)
		return r;
	metrics_family(m, "iotraced_range_between_captures_seconds", METRIC_GAUGE,
		       "Time between the record's captures, in which nothing was recorded.");
	metrics_double(m, NULL, 0, (double)between_ns / 1e9);
	metrics_family(
		m, "iotraced_range_selected", METRIC_GAUGE,
		"1: requests of these devices were recorded, at least in a part of the range.");
	for (size_t i = 0; i < n; i++)
		metrics_u64(m, &(struct metric_label){"devices", selections[i]}, 1, 1);
	return 0;
}

static int export_metrics(const struct ctl *c, struct iot_scan *scan, bool openmetrics,
			  struct ctl_out *out, struct export_stats *stats, struct iot_error *err)
{
	static const char queue[] = "queue", device[] = "device";
	struct metrics m = {.out = out, .openmetrics = openmetrics};
	struct range range = {0};
	struct sum_of of = {0};
	struct iot_verdict v;
	int r = read_requests(c, scan, &range.report, stats, err);

	if (r == 0)
		r = read_losses(c, scan, &range);
	/* After reading, which may have met damage. */
	if (r == 0)
		r = ctl_scan_verdict(scan, false, &v, err);
	if (r == 0) {
		report_sort(&range.report);
		of.losses_final = ctl_losses_final(scan, &v);
		put_record(&m, scan, &v, range.lost, of.losses_final);
		r = put_bounds(&m, scan);
	}
	if (r == 0) {
		for (size_t i = 0; i < IOT_ARRAY_SIZE(sums); i++) {
			of.sum = &sums[i];
			metrics_family(&m, sums[i].family, METRIC_GAUGE, sums[i].help);
			each_cell(&m, &range, put_sum, &of);
		}
		metrics_family(&m, "iotraced_range_queue_seconds", METRIC_GAUGE,
			       "Time from a request's start to its issue, percentiles.");
		each_cell(&m, &range, put_percentiles, queue);
		metrics_family(&m, "iotraced_range_device_seconds", METRIC_GAUGE,
			       "Time from a request's issue to its completion, percentiles.");
		each_cell(&m, &range, put_percentiles, device);
		metrics_end(&m);
	}
	report_done(&range.report);
	return r;
}

int export_openmetrics(const struct ctl *c, struct iot_scan *scan, const char *note,
		       struct ctl_out *out, struct export_stats *stats, struct iot_error *err)
{
	(void)note;
	return export_metrics(c, scan, true, out, stats, err);
}

int export_prometheus(const struct ctl *c, struct iot_scan *scan, const char *note,
		      struct ctl_out *out, struct export_stats *stats, struct iot_error *err)
{
	(void)note;
	return export_metrics(c, scan, false, out, stats, err);
}
