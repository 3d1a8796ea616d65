// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-read.c - requests into the sums of a report, a block at a time: nothing here depends on their order.
 *
 * Most blocks are added by columns: a group is a pair of entries of the dictionaries of operations and devices,
 * its cell is looked up once per block. Rows are taken one by one where a filter left some out, where they are
 * ranked, and where a request is swap in part.
 */
#include "daemon/ctl/report-view.h"
#include "format/render.h"

#define MAX_GROUPS 1024U

struct group {
	struct report_cell *cell; /* NULL: no request of it yet */
	uint64_t requests;
	uint64_t bytes;
	uint64_t bytes_done;
	uint64_t merges;
	uint64_t requeues;
	uint64_t errors;
	uint8_t op;
	uint8_t swap;
};

struct reader {
	struct report_view *v;
	const struct iot_filter *filter;
	const struct iot_segment *s;
	struct report_device *device; /* of the last request that was added alone */
	uint32_t dev;
	struct group groups[MAX_GROUPS];
	struct group *used[MAX_GROUPS]; /* with requests that are not in their cells yet */
	size_t n_used;
};

/* ---- one by one ---- */

void report_read_totals(struct report_totals *t, uint64_t realtime_ns, uint8_t op, uint8_t swap,
			uint64_t bytes, uint32_t unswapped_bytes)
{
	uint64_t swapped = iot_swapped(swap, bytes, unswapped_bytes);

	if (swapped)
		report_totals_add(t, realtime_ns, op, swap, swapped);
	if (bytes > swapped)
		report_totals_add(t, realtime_ns, op, IOT_SWAP_NONE, bytes - swapped);
}

static int find_device(struct reader *rd, uint32_t dev)
{
	const struct iot_segment_info *info = iot_segment_info(rd->s);
	char number[32];
	int r;

	if (rd->device && rd->dev == dev)
		return 0;
	r = report_device(&rd->v->report, info->machine_id, dev,
			  iot_dev_name(rd->s, dev, number, sizeof(number)), info->host,
			  &rd->device);
	rd->dev = dev;
	return r;
}

static int add_row(struct reader *rd, const struct iot_batch *b, uint32_t i)
{
	struct report_view *v = rd->v;
	struct iot_request req;
	uint64_t realtime_ns;
	int r;

	iot_batch_get(b, i, &req);
	r = find_device(rd, req.dev);
	if (r < 0)
		return r;
	iot_filter_share(rd->filter, &req);
	r = report_add(rd->device, &req);
	if (r < 0)
		return r;
	realtime_ns = iot_segment_realtime_ns(rd->s, req.complete_ns);
	report_read_totals(&v->totals, realtime_ns, req.op, req.swap, req.bytes_done,
			   req.unswapped_bytes);
	for (size_t k = 0; k < v->n_ranks; k++) {
		r = rank_add(&v->ranks[k], iot_segment_info(rd->s), rd->s, &req, realtime_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- by columns ---- */

/* False: not all is there, or some requests are swap in part. */
static bool whole_columns(const struct iot_batch *b, const struct iot_request_columns *c)
{
	if (!c->complete_ns || !c->issue_ns || !c->issue_last_ns || !c->start_ns || !c->insert_ns ||
	    !c->bytes || !c->bytes_done || !c->error || !c->status || !c->merges || !c->requeues ||
	    !c->op || !c->device || (uint64_t)c->n_ops * c->n_devices > MAX_GROUPS)
		return false;
	for (uint32_t i = 0; i < c->n_ops; i++) {
		struct iot_request r = {0};

		iot_batch_op(b, (uint16_t)i, &r);
		if (r.unswapped_bytes)
			return false;
	}
	return true;
}

static int find_cell(struct reader *rd, const struct iot_batch *b, uint16_t op, uint16_t device,
		     struct group *g)
{
	struct iot_request req = {0};
	int r;

	iot_batch_op(b, op, &req);
	iot_batch_device(b, device, &req);
	g->op = req.op;
	g->swap = req.swap;
	r = find_device(rd, req.dev);
	return r < 0 ? r : report_cell(rd->device, req.op, req.swap, &g->cell);
}

static bool all_zero(const void *array, size_t bytes)
{
	const uint8_t *p = array;

	return p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0;
}

static struct group *group_of(struct reader *rd, const struct iot_request_columns *c, uint32_t i)
{
	return &rd->groups[(size_t)c->op[i] * c->n_devices + c->device[i]];
}

/* Counts, bytes asked for and latencies of rows [i, end). */
static int add_latencies(struct reader *rd, const struct iot_batch *b,
			 const struct iot_request_columns *c, uint32_t i, uint32_t end)
{
	for (; i < end; i++) {
		uint64_t from = c->start_ns[i] ? c->start_ns[i] : c->insert_ns[i];
		uint64_t issue = c->issue_last_ns[i] ? c->issue_last_ns[i] : c->issue_ns[i];
		struct group *g = group_of(rd, c, i);
		int r = 0;

		if (!g->requests++) {
			rd->used[rd->n_used++] = g;
			r = g->cell ? 0 : find_cell(rd, b, c->op[i], c->device[i], g);
			if (r < 0)
				return r;
		}
		g->bytes += c->bytes[i];
		if (from && issue >= from)
			r = hist_add(&g->cell->queue, issue - from);
		if (r == 0 && issue && c->complete_ns[i] >= issue)
			r = hist_add(&g->cell->device, c->complete_ns[i] - issue);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What is the same, or nothing, in most blocks. */
static void add_rest(struct reader *rd, const struct iot_request_columns *c, uint32_t at,
		     uint32_t end)
{
	size_t n = end - at;

	if (memcmp(c->bytes + at, c->bytes_done + at, n * sizeof(*c->bytes)) == 0)
		for (size_t i = 0; i < rd->n_used; i++)
			rd->used[i]->bytes_done = rd->used[i]->bytes;
	else
		for (uint32_t i = at; i < end; i++)
			group_of(rd, c, i)->bytes_done += c->bytes_done[i];
	if (!all_zero(c->merges + at, n * sizeof(*c->merges)))
		for (uint32_t i = at; i < end; i++)
			group_of(rd, c, i)->merges += c->merges[i];
	if (!all_zero(c->requeues + at, n * sizeof(*c->requeues)))
		for (uint32_t i = at; i < end; i++)
			group_of(rd, c, i)->requeues += c->requeues[i];
	if (!all_zero(c->error + at, n * sizeof(*c->error)) ||
	    !all_zero(c->status + at, n * sizeof(*c->status)))
		for (uint32_t i = at; i < end; i++)
			group_of(rd, c, i)->errors += c->error[i] || c->status[i];
}

static void flush_groups(struct reader *rd, uint64_t realtime_ns)
{
	for (size_t i = 0; i < rd->n_used; i++) {
		struct group *g = rd->used[i];

		g->cell->requests += g->requests;
		g->cell->bytes += g->bytes;
		g->cell->bytes_done += g->bytes_done;
		g->cell->merges += g->merges;
		g->cell->requeues += g->requeues;
		g->cell->errors += g->errors;
		report_totals_add(&rd->v->totals, realtime_ns, g->op, g->swap, g->bytes_done);
		*g = (struct group){.cell = g->cell, .op = g->op, .swap = g->swap};
	}
	rd->n_used = 0;
}

/* In stretches that lie in one row of the bytes over time. */
static int add_columns(struct reader *rd, const struct iot_batch *b,
		       const struct iot_request_columns *c)
{
	uint64_t offset = iot_segment_realtime_ns(rd->s, 0), begin, end;
	int r;

	memset(rd->groups, 0, (size_t)c->n_ops * c->n_devices * sizeof(*rd->groups));
	for (uint32_t at = 0, to; at < c->n; at = to) {
		uint64_t first = c->complete_ns[at] + offset;

		report_totals_row(&rd->v->totals, first, &begin, &end);
		for (to = at + 1; to < c->n; to++)
			if (c->complete_ns[to] + offset - begin >= end - begin)
				break;
		r = add_latencies(rd, b, c, at, to);
		if (r < 0)
			return r;
		add_rest(rd, c, at, to);
		flush_groups(rd, first);
	}
	return 0;
}

/* ---- the scan ---- */

static size_t segment_index(struct iot_scan *scan, const struct iot_segment *s, size_t hint)
{
	size_t n = iot_scan_n_segments(scan);

	for (size_t i = 0; i < n; i++) {
		size_t at = (hint + i) % n;

		if (iot_scan_segment(scan, at) == s)
			return at;
	}
	return 0;
}

static int add_block(struct reader *rd, const struct iot_rows *rows, uint64_t *last_ns)
{
	struct iot_request_columns c;
	int r;

	iot_batch_columns(rows->batch, &c);
	if (!rows->at && !rd->v->n_ranks && whole_columns(rows->batch, &c)) {
		*last_ns = IOT_MAX(*last_ns, iot_batch_last_ns(rows->batch));
		return add_columns(rd, rows->batch, &c);
	}
	for (uint32_t k = 0; k < rows->n; k++) {
		uint32_t i = rows->at ? rows->at[k] : k;

		r = add_row(rd, rows->batch, i);
		if (r < 0)
			return r;
		*last_ns = IOT_MAX(*last_ns, c.complete_ns[i]);
	}
	return 0;
}

int report_read(struct iot_scan *scan, struct report_view *v, uint64_t *last_ns,
		struct iot_error *err)
{
	_cleanup_free_ struct reader *rd = calloc(1, sizeof(*rd));
	struct iot_rows rows;
	size_t index = 0;
	int r;

	if (!rd)
		return -ENOMEM;
	rd->v = v;
	rd->filter = iot_scan_filter(scan);
	for (;;) {
		r = iot_scan_next_block(scan, &rows, err);
		if (r == IOT_READ_END)
			return 0;
		if (r < 0)
			return r;
		if (rd->s != rows.segment) {
			rd->s = rows.segment;
			rd->device = NULL;
			index = segment_index(scan, rd->s, index);
		}
		r = add_block(rd, &rows, &last_ns[index]);
		if (r < 0)
			return r;
		v->requests += rows.n;
	}
}
