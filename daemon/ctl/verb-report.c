// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-report.c - one pass over the requests (report-read.c), then the ledgers, then the verdict; shown by
 * report-text.c or report-json.c.
 *
 * The verdict is taken last, so that damage met on the way is in it. Rates are per second of
 * recorded time: the epochs of the segments, also where nothing happened in them.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/pictures.h"
#include "daemon/ctl/report-view.h"
#include "format/block.h"

/* What a report looks at; the rest of a block is not even
 * decoded, unless a filter asks for it. */
#define REPORT_COLUMNS                                                                           \
	(IOT_COLS_TIMES | IOT_COLS_OP | IOT_COLS_DEVICE | IOT_COLS_BYTES | IOT_COLS_BYTES_DONE | \
	 IOT_COLS_STATUS | IOT_COLS_COUNTS)

static void report_view_done(struct report_view *v)
{
	report_done(&v->report);
	for (size_t i = 0; i < REPORT_MAX_RANKS; i++)
		rank_done(&v->ranks[i]);
	report_cache_done(&v->cache);
	for (size_t i = 0; i < v->n_wants; i++)
		free(v->wants[i].path);
	free(v->wants);
	free(v->spans);
	*v = (struct report_view){0};
}

double report_view_seconds(const struct report_view *v, const struct report_device *d)
{
	return (double)report_recorded_ns(v->spans, v->n_spans, d->machine_id, d->host) / 1e9;
}

/*
 * The time a segment speaks for: its epoch, or what is known of it without a footer. One outside --since and
 * --until is cut to nothing at one of these.
 */
static void segment_span(const struct iot_segment *s, const struct iot_filter *f,
			 uint64_t last_record_ns, struct report_span *ret)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	const struct iot_footer *footer = iot_segment_footer(s);
	uint64_t first = footer && footer->epoch_first_ns ? footer->epoch_first_ns
							  : info->clocks.monotonic_ns;
	uint64_t last = footer && footer->epoch_last_ns ? footer->epoch_last_ns : last_record_ns;

	memcpy(ret->machine_id, info->machine_id, sizeof(ret->machine_id));
	ret->host = info->host;
	ret->first_ns = iot_segment_realtime_ns(s, first);
	ret->last_ns = last > first ? iot_segment_realtime_ns(s, last) : ret->first_ns;
	ret->first_ns = IOT_MAX(ret->first_ns, f->since_ns);
	if (f->until_ns) {
		ret->first_ns = IOT_MIN(ret->first_ns, f->until_ns);
		ret->last_ns = IOT_MIN(ret->last_ns, f->until_ns);
	}
	ret->last_ns = IOT_MAX(ret->last_ns, ret->first_ns);
	/* What is said per second is about requests, and these are in the block stream's time alone. */
	ret->requests = info->stream == IOT_STREAM_BLOCK;
}

/* A ledger that is damaged is in the verdict already; its segment's losses are not counted. */
static int read_losses(struct iot_segment *s, const struct iot_filter *f, struct report_view *v)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	_cleanup_free_ struct iot_loss *losses = NULL;
	struct report_device *d;
	char number[32];
	size_t n = 0;
	int r;

	/* The same struct holds what was lost of packets, which are no requests. */
	if (info->stream != IOT_STREAM_BLOCK)
		return 0;
	r = iot_segment_footer(s) ? iot_segment_load_ledger(s, &losses, &n, NULL) : -EBADMSG;
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	for (size_t i = 0; i < n; i++) {
		if (!iot_filter_match_loss(f, s, &losses[i]))
			continue;
		iot_filter_share_loss(f, &losses[i]);
		r = report_device(&v->report, info->machine_id, losses[i].dev,
				  iot_dev_name(s, losses[i].dev, number, sizeof(number)),
				  info->host, &d);
		if (r < 0)
			return r;
		r = report_add_loss(d, &losses[i]);
		if (r < 0)
			return r;
		v->lost += losses[i].n;
		v->lost_bytes += losses[i].bytes;
		report_read_totals(&v->totals, iot_segment_realtime_ns(s, losses[i].last_ns),
				   losses[i].op, losses[i].swap, losses[i].bytes,
				   losses[i].unswapped_bytes);
	}
	return 0;
}

/* Distinct captures and machines; segments are sorted by capture, machines are few. */
static void count_origins(struct iot_scan *scan, struct report_view *v)
{
	size_t n = iot_scan_n_segments(scan);

	for (size_t i = 0; i < n; i++) {
		const struct iot_segment_info *info = iot_segment_info(iot_scan_segment(scan, i));
		bool new_capture = true, new_host = true;

		for (size_t k = i; k-- > 0 && (new_capture || new_host);) {
			const struct iot_segment_info *other =
				iot_segment_info(iot_scan_segment(scan, k));

			if (memcmp(info->capture_id, other->capture_id, 16) == 0)
				new_capture = false;
			if (memcmp(info->machine_id, other->machine_id, 16) == 0 &&
			    strcmp(info->host, other->host) == 0)
				new_host = false;
		}
		v->n_captures += new_capture;
		v->n_hosts += new_host;
	}
}

static int fill(const struct ctl *c, struct iot_scan *scan, struct report_view *v,
		struct iot_error *err)
{
	size_t n = iot_scan_n_segments(scan);
	_cleanup_free_ uint64_t *last_ns = calloc(n + 1, sizeof(*last_ns));
	const struct iot_filter *f = &c->filter;
	int r;

	v->spans = calloc(n + 1, sizeof(*v->spans));
	if (!v->spans || !last_ns)
		return -ENOMEM;
	v->losses_unfilterable = ctl_filter_beyond_losses(f);
	v->filtered = ctl_filter_active(f);
	v->timed = f->since_ns || f->until_ns;
	r = report_read(scan, v, last_ns, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_segment_info *info = iot_segment_info(s);

		r = read_losses(s, f, v);
		if (r < 0)
			return r;
		v->n_torn += iot_segment_state(s) == IOT_SEGMENT_TORN;
		v->file_bytes += iot_segment_size(s);
		if (info->stream == IOT_STREAM_BLOCK) {
			v->no_swap_out |= info->swap_out == IOT_ABILITY_UNAVAILABLE;
			v->no_swap_in |= info->swap_in == IOT_ABILITY_UNAVAILABLE;
		}
		v->swap_dropped |= iot_segment_without_swap(info);
		segment_span(s, f, last_ns[i], &v->spans[i]);
		v->first_ns = i ? IOT_MIN(v->first_ns, v->spans[i].first_ns) : v->spans[i].first_ns;
		v->last_ns = IOT_MAX(v->last_ns, v->spans[i].last_ns);
	}
	v->n_segments = v->n_spans = n;
	v->losses_unfilterable &= v->lost != 0;
	count_origins(scan, v);
	v->n_selections = ctl_selections(scan, v->selections, IOT_ARRAY_SIZE(v->selections));
	v->n_sources = ctl_sources(scan, v->sources, IOT_ARRAY_SIZE(v->sources));
	report_sort(&v->report);
	r = ctl_cover_between(scan, IOT_STREAM_BLOCK, &v->between_ns);
	if (r < 0)
		return r;
	r = ctl_scan_verdict(scan, false, &v->verdict, err);
	if (r == 0 && !iot_scan_n_stream(scan, IOT_STREAM_BLOCK))
		iot_verdict_reason(&v->verdict, IOT_VERDICT_UNKNOWN,
				   "no requests are recorded here");
	v->losses_final = r == 0 && ctl_losses_final(scan, &v->verdict);
	return r;
}

/* ---- --by --------------------------------------------------------------------------------------- */

/* For a second pass. What comes in between (an open segment grows) belongs to no report of the first. */
static int open_again(const struct ctl *c, int argc, char **argv, const struct report_view *v,
		      struct iot_scan **ret, struct iot_error *err)
{
	int r = ctl_scan_try(c, argc, argv, ret, err);

	return r == 0 && !v->verdict.unread ? ctl_scan_whole(*ret, err) : r;
}

static uint64_t all_rank_columns(const struct report_view *v)
{
	uint64_t columns = 0;

	for (size_t i = 0; i < v->n_ranks; i++)
		columns |= rank_columns(v->ranks[i].by);
	return columns;
}

static int read_latencies(const struct ctl *c, int argc, char **argv, struct report_view *v,
			  struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	struct iot_segment *s;
	struct iot_request req;
	int r;

	r = open_again(c, argc, argv, v, &scan, err);
	if (r < 0)
		return r;
	iot_scan_columns(scan, all_rank_columns(v));
	for (;;) {
		r = iot_scan_next(scan, &req, &s, err);
		if (r == IOT_READ_END)
			return 0;
		for (size_t i = 0; r >= 0 && i < v->n_ranks; i++)
			r = rank_add_latency(&v->ranks[i], iot_segment_info(s), &req);
		if (r < 0)
			return r;
	}
}

static int read_cacheability(const struct ctl *c, int argc, char **argv, struct report_view *v,
			     struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	int r = open_again(c, argc, argv, v, &scan, err);

	if (r < 0)
		return r;
	iot_scan_columns(scan, IOT_COLS_TIMES | IOT_COLS_OP | IOT_COLS_DEVICE | IOT_COLS_BYTES |
				       IOT_COLS_SECTOR);
	return report_cache_read(&v->cache, scan, err);
}

/* Names of the files that are shown and lie on the mount. */
static int resolve(const struct ctl *c, struct report_view *v, struct iot_error *err)
{
	const struct rank *rk = &v->ranks[0];
	int r;

	v->wants = calloc(rk->n_shown + 1, sizeof(*v->wants));
	if (!v->wants)
		return -ENOMEM;
	for (size_t i = 0; i < rk->n_shown; i++) {
		const struct rank_group *g = &rk->groups[i];

		if (g->key.kind == RANK_KNOWN && g->key.fsdev == v->mount_fsdev &&
		    ctl_this_machine(rk->places[g->key.place].machine_id))
			v->wants[v->n_wants++] =
				(struct resolve_want){.ino = g->key.number, .last_ns = g->last_ns};
	}
	r = resolve_walk(c->resolve, v->wants, v->n_wants, &v->walk);
	if (r < 0)
		return iot_error_set(err, r, "--resolve: %s: %s", c->resolve, strerror(-r));
	v->mount = c->resolve;
	return 0;
}

static int rank_requests(const struct ctl *c, int argc, char **argv, struct report_view *v,
			 struct iot_error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < v->n_ranks; i++)
		r = rank_choose(&v->ranks[i], c->top ? c->top : RANK_TOP_DEFAULT);
	if (r >= 0)
		r = read_latencies(c, argc, argv, v, err);
	if (r >= 0 && c->resolve)
		r = resolve(c, v, err);
	return r;
}

/* ---- --html ------------------------------------------------------------------------------------- */

static int read_pictures(const struct ctl *c, int argc, char **argv, struct report_view *v,
			 struct report_pictures *p, struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(iot_scan_closep) struct iot_scan *whole = NULL;
	struct ctl unfiltered = *c;
	int r;

	unfiltered.filter = (struct iot_filter){0};
	r = open_again(c, argc, argv, v, &scan, err);
	if (r == 0)
		r = open_again(&unfiltered, argc, argv, v, &whole, err);
	if (r < 0)
		return r;
	iot_scan_columns(scan, REPORT_COLUMNS | IOT_COLS_SECTOR);
	r = report_pictures_read(p, v, &c->filter, scan, whole, err);
	v->pictures = p;
	/* What is left of them refers to their segments. */
	p->scan = IOT_TAKE_PTR(scan);
	p->whole = IOT_TAKE_PTR(whole);
	return r;
}

static int write_page(const struct ctl *c, const struct report_view *v)
{
	struct json_object *o = report_view_json(v);
	_cleanup_free_ char *text = o ? ctl_json_string(o, false) : NULL;
	_cleanup_(ctl_out_done) struct ctl_out out = {0};
	struct ctl_file file;
	int r;

	if (!text) {
		json_object_put(o);
		return ctl_fail(CTL_ERROR, "out of memory");
	}
	r = ctl_file_open(c->html, true, &file);
	if (r == 0) {
		r = ctl_out_init(&out, file.fd);
		if (r == 0)
			r = report_page_write(v, text, &out);
		if (r == 0)
			r = ctl_out_flush(&out);
		if (r == 0)
			r = ctl_file_commit(&file);
		else
			ctl_file_abort(&file);
	}
	if (r < 0) {
		json_object_put(o);
		return ctl_fail(CTL_ERROR, "cannot write %s: %s", c->html, strerror(-r));
	}
	if (c->json)
		return ctl_json_print(o);
	json_object_put(o);
	return CTL_OK;
}

/* Before anything is read: what cannot be. CTL_OK or CTL_USAGE, CTL_ERROR. */
static int check_options(const struct ctl *c, struct report_view *v)
{
	struct iot_error err = {0};
	int r;

	if (c->top && !c->by && !c->html)
		return ctl_fail(CTL_USAGE, "--top goes with --by and --html");
	if (c->html && (c->by || c->cacheability))
		return ctl_fail(CTL_USAGE, "--html and %s are two reports",
				c->by ? "--by" : "--cacheability");
	if (c->by && c->cacheability)
		return ctl_fail(CTL_USAGE, "--by and --cacheability are two reports");
	if (c->resolve && c->by != CTL_BY_FILE)
		return ctl_fail(CTL_USAGE, "--resolve goes with --by=file");
	if (c->html) {
		v->ranks[v->n_ranks++].by = CTL_BY_PROCESS;
		v->ranks[v->n_ranks++].by = CTL_BY_CGROUP;
	} else if (c->by) {
		v->ranks[v->n_ranks++].by = c->by;
	}
	if (c->logical_bytes) {
		r = ctl_logical_bytes(c->logical_bytes, &v->logical_bytes, &err);
		if (r < 0)
			return ctl_fail(CTL_USAGE, "%s", err.text);
		v->logical_known = true;
	}
	if (c->resolve) {
		r = resolve_device(c->resolve, &v->mount_fsdev);
		if (r < 0)
			return ctl_fail(CTL_ERROR, "--resolve: %s: %s", c->resolve, strerror(-r));
	}
	return CTL_OK;
}

int verb_report(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(report_pictures_done) struct report_pictures pictures = {0};
	_cleanup_(report_view_done) struct report_view v = {0};
	char why[2 * sizeof(v.verdict.reasons[0]) + 1];
	struct iot_error err = {0};
	int r, code;

	code = check_options(c, &v);
	if (!c->html) /* its pictures are of packets, too */
		c->filter.stream = IOT_STREAM_BLOCK;
	if (code == CTL_OK)
		code = ctl_scan_open(c, argc, argv, &scan);
	if (code != CTL_OK)
		return code;
	v.scan = scan;
	iot_scan_columns(scan, REPORT_COLUMNS | all_rank_columns(&v));
	r = fill(c, scan, &v, &err);
	if (r >= 0 && c->html)
		r = read_pictures(c, argc, argv, &v, &pictures, &err);
	if (r >= 0 && v.n_ranks)
		r = rank_requests(c, argc, argv, &v, &err);
	if (r >= 0 && c->cacheability)
		r = read_cacheability(c, argc, argv, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	ctl_note_device(c, scan, v.requests);
	if (c->html) {
		code = write_page(c, &v);
	} else if (c->json) {
		code = ctl_json_print(report_view_json(&v));
	} else {
		ctl_pager_open(c);
		r = report_view_text(&v, stdout, ctl_color_enabled(c));
		if (r < 0)
			return ctl_fail(CTL_ERROR, "%s", strerror(-r));
	}
	if (code != CTL_OK || ctl_damage_code(&v.verdict) == CTL_OK)
		return code;
	/* The reasons are in the report; that it failed, and why, is for who reads stderr only. */
	ctl_pager_close();
	return ctl_fail(ctl_damage_code(&v.verdict),
			"the input %s (%s); the report is about what could be read",
			v.verdict.code == IOT_VERDICT_CORRUPT ? "is damaged" : "was not all read",
			ctl_printable(v.verdict.reasons[0], why, sizeof(why)));
}
