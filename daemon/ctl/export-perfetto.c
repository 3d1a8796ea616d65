// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-perfetto.c - Chrome's Trace Event Format (JSON), for Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 * Each disk is a process, each request a span on it from start to completion, with its time in the queue
 * and in the device as spans within ("async" events: they may overlap). What is not in the record is shown
 * on the same time axis: lost requests as instants on their disk, windows of doubt as spans of a process
 * of their own; the verdict is in otherData. Times are microseconds of the first capture's CLOCK_MONOTONIC,
 * which a double holds to some nanoseconds; later captures are placed by the wall clock.
 */
#include "daemon/ctl/export.h"

#define RECORD_PID 0U /* the process that stands for the record itself; no disk is 0:0 */

struct exporter {
	struct ctl_out *out;
	struct export_clock clock;
	uint64_t first_offset; /* of the first capture; later ones are placed relative to it */
	bool any;	       /* a first event was written */
	uint64_t n_spans;
	uint32_t *named; /* disks that have been named */
	size_t n_named;
};

static void exporter_done(struct exporter *x)
{
	export_clock_done(&x->clock);
	free(x->named);
}

/* ---- one event, member by member ---- */

struct event {
	char buf[IOT_RENDER_MAX];
	char *p;
	bool first; /* of an object's members */
};

static void put_key(struct event *e, const char *key)
{
	if (!e->first)
		*e->p++ = ',';
	e->first = false;
	*e->p++ = '"';
	e->p = iot_put_str(e->p, key);
	e->p = IOT_PUT_LIT(e->p, "\":");
}

static void put_text(struct event *e, const char *key, const char *text)
{
	put_key(e, key);
	e->p = iot_put_json_name(e->p, text);
}

static void put_number(struct event *e, const char *key, uint64_t v)
{
	put_key(e, key);
	e->p = iot_put_u64(e->p, v);
}

/* Numbers above 2^53 would be rounded. */
static void put_id(struct event *e, const char *key, uint64_t v)
{
	put_key(e, key);
	e->p = iot_put_json_u64(e->p, v);
}

/* Signed: a later capture may be of an earlier wall clock. */
static void put_time(struct event *e, int64_t ns)
{
	uint64_t abs_ns = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest = abs_ns % 1000;

	put_key(e, "ts");
	if (ns < 0)
		*e->p++ = '-';
	e->p = iot_put_u64(e->p, abs_ns / 1000);
	*e->p++ = '.';
	*e->p++ = (char)('0' + rest / 100);
	*e->p++ = (char)('0' + rest / 10 % 10);
	*e->p++ = (char)('0' + rest % 10);
}

static void begin(struct event *e, const char *phase, uint32_t pid)
{
	e->buf[0] = '{';
	e->p = e->buf + 1;
	e->first = true;
	put_text(e, "ph", phase);
	put_number(e, "pid", pid);
	put_number(e, "tid", 0);
}

static void begin_args(struct event *e)
{
	put_key(e, "args");
	*e->p++ = '{';
	e->first = true;
}

static void end(struct exporter *x, struct event *e, const char *closing)
{
	e->p = iot_put_str(e->p, closing);
	ctl_out_write(x->out, x->any ? ",\n" : "\n", x->any ? 2 : 1);
	ctl_out_write(x->out, e->buf, (size_t)(e->p - e->buf));
	x->any = true;
}

static void put_process_name(struct exporter *x, uint32_t pid, const char *name)
{
	struct event e;

	begin(&e, "M", pid);
	put_text(&e, "name", "process_name");
	begin_args(&e);
	put_text(&e, "name", name);
	end(x, &e, "}}");
}

static int name_disk(struct exporter *x, uint32_t dev, const char *name)
{
	uint32_t *more;

	for (size_t i = 0; i < x->n_named; i++)
		if (x->named[i] == dev)
			return 0;
	more = reallocarray(x->named, x->n_named + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	x->named = more;
	x->named[x->n_named++] = dev;
	put_process_name(x, dev, name);
	return 0;
}

/* Of what was recorded in s; *ret is what to add to its times. */
static int time_line(struct exporter *x, const struct iot_segment *s, int64_t *ret)
{
	bool first = x->clock.n == 0;
	uint64_t offset;
	int r = export_clock_offset(&x->clock, s, &offset);

	if (r < 0)
		return r;
	if (first)
		x->first_offset = offset;
	*ret = (int64_t)(offset - x->first_offset);
	return 0;
}

/* ---- spans ---- */

struct span {
	const char *name;
	const char *category;
	uint32_t pid;
	uint64_t number; /* spans of one number nest */
};

static void begin_edge(struct event *e, const struct span *span, const char *phase, int64_t ns)
{
	begin(e, phase, span->pid);
	put_text(e, "name", span->name);
	put_text(e, "cat", span->category);
	put_id(e, "id", span->number);
	put_time(e, ns);
}

static void put_edge(struct exporter *x, const struct span *span, const char *phase, int64_t ns)
{
	struct event e;

	begin_edge(&e, span, phase, ns);
	end(x, &e, "}");
}

static void put_part(struct exporter *x, const struct span *of, const char *name, int64_t from,
		     int64_t to)
{
	struct span part = *of;

	part.name = name;
	put_edge(x, &part, "b", from);
	put_edge(x, &part, "e", to);
}

static void put_request(struct exporter *x, const struct iot_request *req, int64_t shift,
			const struct iot_render *names)
{
	uint64_t first = req->start_ns	  ? req->start_ns
			 : req->insert_ns ? req->insert_ns
					  : req->issue_ns;
	struct span span = {.name = iot_op_name(req->op),
			    .category = "request",
			    .pid = req->dev,
			    .number = ++x->n_spans};
	const char *swap = iot_swap_name(req, names->swap_out, names->swap_in);
	char text[512];
	struct event e;

	if (!first)
		first = req->complete_ns;
	begin_edge(&e, &span, "b", (int64_t)first + shift);
	begin_args(&e);
	put_id(&e, "id", req->id);
	put_text(&e, "part", req->part == req->dev ? NULL : names->part);
	if (req->sector != IOT_SECTOR_NONE)
		put_id(&e, "sector", req->sector);
	put_number(&e, "bytes", req->bytes);
	*iot_put_flags(text, req->flags, ',') = '\0';
	put_key(&e, "flags"); /* longer than a name may be */
	e.p = iot_put_json_string(e.p, text, strlen(text));
	if (swap)
		put_text(&e, "swap", swap);
	if (req->submitter != IOT_SUBMITTER_NONE) {
		put_number(&e, "pid", req->pid);
		put_key(&e, "comm");
		e.p = iot_put_json_string(e.p, req->comm, sizeof(req->comm));
	}
	put_id(&e, "cgroup", req->cgroup);
	put_id(&e, "ino", req->ino);
	put_number(&e, "merges", req->merges);
	put_number(&e, "requeues", req->requeues);
	put_number(&e, "status", req->status);
	end(x, &e, "}}");
	if (req->issue_last_ns && req->issue_last_ns >= first) {
		if (req->issue_last_ns > first)
			put_part(x, &span, "queue", (int64_t)first + shift,
				 (int64_t)req->issue_last_ns + shift);
		put_part(x, &span, "device", (int64_t)req->issue_last_ns + shift,
			 (int64_t)req->complete_ns + shift);
	}
	put_edge(x, &span, "e", (int64_t)req->complete_ns + shift);
}

/* ---- what is not in the record ---- */

static int put_losses(struct exporter *x, const struct ctl *c, struct iot_segment *s, int64_t shift)
{
	_cleanup_free_ struct iot_loss *losses = NULL;
	size_t n = 0;
	int r = iot_segment_load_ledger(s, &losses, &n, NULL);

	if (r == -EBADMSG)
		return 0; /* it is in the verdict's reasons */
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct iot_loss *loss = &losses[i];
		char text[96];
		struct event e;

		if (!iot_filter_match_loss(&c->filter, s, loss))
			continue;
		r = name_disk(x, loss->dev, iot_dev_name(s, loss->dev, text, sizeof(text)));
		if (r < 0)
			return r;
		begin(&e, "i", loss->dev);
		put_text(&e, "name", "lost");
		put_text(&e, "cat", "loss");
		put_text(&e, "s", "p");
		put_time(&e, (int64_t)loss->last_ns + shift);
		begin_args(&e);
		put_id(&e, "id", loss->id);
		put_id(&e, "n", loss->n);
		put_id(&e, "bytes", loss->bytes);
		put_text(&e, "op", iot_op_name(loss->op));
		put_text(&e, "probe", iot_segment_probe_label(s, loss->probe, text, sizeof(text)));
		put_text(&e, "cause", iot_loss_cause_name(loss->cause));
		end(x, &e, "}}");
	}
	return 0;
}

static void put_windows(struct exporter *x, const struct iot_segment *s, int64_t shift)
{
	const struct iot_footer *footer = iot_segment_footer(s);

	for (size_t i = 0; i < footer->n_windows; i++) {
		const struct iot_window *w = &footer->windows[i];
		struct span span = {.name = iot_window_kind_name(w->kind),
				    .category = "doubt",
				    .pid = RECORD_PID,
				    .number = ++x->n_spans};
		char text[96];
		struct event e;

		begin_edge(&e, &span, "b", (int64_t)w->t0_ns + shift);
		begin_args(&e);
		put_text(&e, "probe",
			 w->probe ? iot_segment_probe_label(s, w->probe, text, sizeof(text))
				  : NULL);
		if (w->n != UINT64_MAX)
			put_id(&e, "n", w->n);
		if (w->cpu != UINT32_MAX)
			put_number(&e, "cpu", w->cpu);
		end(x, &e, "}}");
		put_edge(x, &span, "e", (int64_t)w->t1_ns + shift);
	}
}

static int put_absences(struct exporter *x, const struct ctl *c, struct iot_scan *scan)
{
	int r;

	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		int64_t shift;

		if (!iot_segment_footer(s) || iot_segment_info(s)->stream != IOT_STREAM_BLOCK)
			continue;
		r = time_line(x, s, &shift);
		if (r == 0)
			r = put_losses(x, c, s, shift);
		if (r < 0)
			return r;
		put_windows(x, s, shift);
	}
	return 0;
}

/* ---- the file ---- */

static int put_requests(struct exporter *x, struct iot_scan *scan, struct export_stats *stats,
			struct iot_error *err)
{
	struct iot_render render = {0};
	struct ctl_naming naming = {.render = &render};
	struct iot_request req;
	struct iot_segment *s;
	int64_t shift;
	int r;

	while (!x->out->error && (r = iot_scan_next(scan, &req, &s, err)) != IOT_READ_END) {
		char name[96];

		if (r < 0)
			return r;
		r = time_line(x, s, &shift);
		if (r == 0)
			r = name_disk(x, req.dev, iot_dev_name(s, req.dev, name, sizeof(name)));
		if (r < 0)
			return iot_error_set(err, r, "%s", strerror(-r));
		ctl_naming_set(&naming, s, &req);
		put_request(x, &req, shift, &render);
		stats->requests++;
		stats->queue_time_unknown += !req.start_ns;
	}
	return 0;
}

int export_perfetto(const struct ctl *c, struct iot_scan *scan, const char *note,
		    struct ctl_out *out, struct export_stats *stats, struct iot_error *err)
{
	_cleanup_(exporter_done) struct exporter x = {.out = out};
	char head[IOT_RENDER_MAX], *p;
	int r;

	p = IOT_PUT_LIT(head, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"recorder\":"
			      "\"iotraced " IOTRACED_VERSION "\",\"verdict\":");
	p = iot_put_json_string(p, note, strlen(note));
	p = IOT_PUT_LIT(p, "},\n\"traceEvents\":[");
	ctl_out_write(out, head, (size_t)(p - head));
	put_process_name(&x, RECORD_PID, note);
	r = put_requests(&x, scan, stats, err);
	if (r < 0)
		return r;
	r = put_absences(&x, c, scan);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	ctl_out_write(out, "\n]}\n", 4);
	return 0;
}
