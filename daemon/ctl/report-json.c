// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-json.c - `iotracectl report --json`: one document, exact numbers. Fields only grow.
 *
 *   record      the verdict (verdict-text.c): verdict, code, records, lost, reasons, ...
 *   first_ns, last_ns   wall clock of the recorded time, strings
 *   between_captures_ns of the whole record, the time between captures, in which nothing was recorded; a string
 *   selections  of which devices requests were recorded, the headers' texts; at most 8
 *   sources     of imported traces, what the headers say: the tool, a colon, numbers; at most 8
 *   segments, torn, captures, hosts, file_bytes, requests, lost, lost_bytes
 *   losses_final   false: lost counts what is known so far, see unsealed.c
 *   written, read   bytes, without_swap_bytes, swap_out_bytes or swap_in_bytes: data of records and ledger
 *   write_amplification   logical_bytes, without_swap, with_swap; null without --logical-bytes
 *   over_time   step_seconds, rows[]: from_ns, written_bytes, swap_out_bytes, read_bytes, swap_in_bytes
 *   by          report-rank-json.c; only with --by
 *   cacheability  report-cache.c; only with --cacheability
 *   pictures    pictures-json.c; only with --html
 *   devices[]   host, disk, dev, recorded_seconds, ops[]
 *   ops[]       op, and the fields of a cell; swap: {without, out, in}, each a cell
 *   cell        requests, bytes, bytes_done, iops, bytes_per_second, merges, requeues, errors,
 *               lost, lost_bytes, total (requests + lost),
 *               queue_ns and device_ns: {n, min, mean, p50, p90, p99, p999, max, histogram[]}
 *   histogram[] from, to (ns, to not included), n
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/pictures.h"
#include "daemon/ctl/report-view.h"

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

struct json_object *report_hist_json(const struct hist *h)
{
	struct json_object *o = json_object_new_object(), *bars = json_object_new_array();

	add(o, "n", ctl_json_u64(h->n));
	add(o, "min", h->n ? ctl_json_u64(h->min) : NULL);
	add(o, "mean", h->n ? ctl_json_u64((uint64_t)(h->sum / (double)h->n)) : NULL);
	add(o, "p50", h->n ? ctl_json_u64(hist_percentile(h, 5000)) : NULL);
	add(o, "p90", h->n ? ctl_json_u64(hist_percentile(h, 9000)) : NULL);
	add(o, "p99", h->n ? ctl_json_u64(hist_percentile(h, 9900)) : NULL);
	add(o, "p999", h->n ? ctl_json_u64(hist_percentile(h, 9990)) : NULL);
	add(o, "max", h->n ? ctl_json_u64(h->max) : NULL);
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t n = hist_log2_count(h, bit);
		struct json_object *bar;

		if (!n)
			continue;
		bar = json_object_new_object();
		add(bar, "from", ctl_json_u64(bit ? 1ULL << bit : 0));
		add(bar, "to", bit < 63 ? ctl_json_u64(2ULL << bit) : NULL);
		add(bar, "n", ctl_json_u64(n));
		json_object_array_add(bars, bar);
	}
	add(o, "histogram", bars);
	return o;
}

static void add_cell(struct json_object *o, const struct report_cell *c, double seconds)
{
	add(o, "requests", ctl_json_u64(c->requests));
	add(o, "bytes", ctl_json_u64(c->bytes));
	add(o, "bytes_done", ctl_json_u64(c->bytes_done));
	add(o, "iops", seconds > 0 ? json_object_new_double((double)c->requests / seconds) : NULL);
	add(o, "bytes_per_second",
	    seconds > 0 ? json_object_new_double((double)c->bytes / seconds) : NULL);
	add(o, "merges", ctl_json_u64(c->merges));
	add(o, "requeues", ctl_json_u64(c->requeues));
	add(o, "errors", ctl_json_u64(c->errors));
	add(o, "lost", ctl_json_u64(c->lost));
	add(o, "lost_bytes", ctl_json_u64(c->lost_bytes));
	add(o, "total", ctl_json_u64(c->requests + c->lost));
	add(o, "queue_ns", report_hist_json(&c->queue));
	add(o, "device_ns", report_hist_json(&c->device));
}

static int op_json(unsigned int op, const struct report_op *src, double seconds,
		   struct json_object *ops)
{
	static const char *const names[] = {"without", "out", "in"};
	_cleanup_(report_cell_done) struct report_cell all = {0};
	struct json_object *o, *swap;
	int r;

	for (unsigned int k = 0; k < REPORT_N_SWAP; k++) {
		r = report_cell_merge(&all, &src->swap[k]);
		if (r < 0)
			return r;
	}
	o = json_object_new_object();
	swap = json_object_new_object();
	add(o, "op", json_object_new_string(iot_op_name(op)));
	add_cell(o, &all, seconds);
	for (unsigned int k = 0; k < REPORT_N_SWAP; k++) {
		struct json_object *cell = json_object_new_object();

		add_cell(cell, &src->swap[k], seconds);
		add(swap, names[k], cell);
	}
	add(o, "swap", swap);
	json_object_array_add(ops, o);
	return 0;
}

static int devices_json(const struct report_view *v, struct json_object *devices)
{
	for (size_t i = 0; i < v->report.n_devices; i++) {
		const struct report_device *d = &v->report.devices[i];
		struct json_object *o = json_object_new_object(), *ops = json_object_new_array();
		double seconds = report_view_seconds(v, d);
		char number[32];
		int r = 0;

		snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR(d->dev),
			 IOT_DEV_MINOR(d->dev));
		json_object_array_add(devices, o);
		add(o, "host", ctl_json_text(d->host));
		add(o, "disk", ctl_json_text(d->name));
		add(o, "dev", d->dev ? json_object_new_string(number) : NULL);
		add(o, "recorded_seconds", json_object_new_double(seconds));
		add(o, "ops", ops);
		for (unsigned int op = 0; op < IOT_N_OPS && r == 0; op++)
			if (d->ops[op])
				r = op_json(op, d->ops[op], seconds, ops);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Bytes of data, records and ledger together, see report-totals.h. */
static struct json_object *bytes_json(uint64_t all, uint64_t swap, const char *swap_key)
{
	struct json_object *o = json_object_new_object();

	add(o, "bytes", ctl_json_u64(all));
	add(o, "without_swap_bytes", ctl_json_u64(all - swap));
	add(o, swap_key, ctl_json_u64(swap));
	return o;
}

static struct json_object *amplification_json(const struct report_view *v)
{
	const struct report_bytes *b = &v->totals.all;
	struct json_object *o;

	if (!v->logical_known)
		return NULL;
	o = json_object_new_object();
	add(o, "logical_bytes", ctl_json_u64(v->logical_bytes));
	add(o, "without_swap",
	    v->logical_bytes ? json_object_new_double((double)(b->write - b->swap_out) /
						      (double)v->logical_bytes)
			     : NULL);
	add(o, "with_swap",
	    v->logical_bytes ? json_object_new_double((double)b->write / (double)v->logical_bytes)
			     : NULL);
	return o;
}

static struct json_object *over_time_json(const struct report_totals *t)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();

	add(o, "step_seconds", t->step_ns ? ctl_json_u64(t->step_ns / 1000000000) : NULL);
	add(o, "rows", rows);
	for (size_t i = 0; i < t->n; i++) {
		const struct report_bytes *b = &t->rows[i];
		struct json_object *row = json_object_new_object();

		add(row, "from_ns", ctl_json_id((t->first + i) * t->step_ns));
		add(row, "written_bytes", ctl_json_u64(b->write));
		add(row, "swap_out_bytes", ctl_json_u64(b->swap_out));
		add(row, "read_bytes", ctl_json_u64(b->read));
		add(row, "swap_in_bytes", ctl_json_u64(b->swap_in));
		json_object_array_add(rows, row);
	}
	return o;
}

struct json_object *report_view_json(const struct report_view *v)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array();
	struct json_object *selections = json_object_new_array();
	struct json_object *sources = json_object_new_array();

	add(o, "record", ctl_verdict_json(&v->verdict));
	add(o, "first_ns", ctl_json_id(v->first_ns));
	add(o, "last_ns", ctl_json_id(v->last_ns));
	add(o, "segments", ctl_json_u64(v->n_segments));
	add(o, "torn", ctl_json_u64(v->n_torn));
	for (size_t i = 0; i < v->n_selections; i++)
		json_object_array_add(selections, ctl_json_text(v->selections[i]));
	add(o, "selections", selections);
	for (size_t i = 0; i < v->n_sources; i++)
		json_object_array_add(sources, ctl_json_text(v->sources[i]));
	add(o, "sources", sources);
	add(o, "between_captures_ns", ctl_json_id(v->between_ns));
	add(o, "captures", ctl_json_u64(v->n_captures));
	add(o, "hosts", ctl_json_u64(v->n_hosts));
	add(o, "file_bytes", ctl_json_u64(v->file_bytes));
	add(o, "filtered", json_object_new_boolean(v->filtered));
	add(o, "requests", ctl_json_u64(v->requests));
	add(o, "lost", ctl_json_u64(v->lost));
	add(o, "lost_bytes", ctl_json_u64(v->lost_bytes));
	add(o, "losses_final", json_object_new_boolean(v->losses_final));
	add(o, "swap_out_known", json_object_new_boolean(!v->no_swap_out));
	add(o, "swap_in_known", json_object_new_boolean(!v->no_swap_in));
	add(o, "swap_recorded", json_object_new_boolean(!v->swap_dropped));
	add(o, "written",
	    bytes_json(v->totals.all.write, v->totals.all.swap_out, "swap_out_bytes"));
	add(o, "read", bytes_json(v->totals.all.read, v->totals.all.swap_in, "swap_in_bytes"));
	add(o, "write_amplification", amplification_json(v));
	add(o, "over_time", over_time_json(&v->totals));
	if (v->n_ranks && !v->pictures)
		add(o, "by", report_rank_json(v, &v->ranks[0]));
	if (v->cache.curves[0])
		add(o, "cacheability", report_cache_json(&v->cache));
	add(o, "devices", devices);
	if (devices_json(v, devices) < 0) {
		json_object_put(o);
		return NULL;
	}
	if (v->pictures)
		add(o, "pictures", report_pictures_json(v));
	return o;
}
