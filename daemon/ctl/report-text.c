// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-text.c - the report on a terminal: what is proved first, then tables, then one histogram
 * per device and operation. Tables are cut by subject, so that each fits 80 columns.
 *
 * TOTAL = REQUESTS (recorded) + LOST (ledger), so that the books can be checked by eye. Where swap
 * was seen, an operation has a line with it, one per direction, and one without it.
 */
#include "daemon/ctl/report-view.h"

#define BAR_WIDTH 34U /* a row has 80 columns */
#define HIST_ROWS 12U
#define HIST_SHOWN 8U

/* What one line of the tables is about. */
struct line {
	const char *device;
	const char *what;
	const struct report_cell *cell;
	double seconds;
	bool losses_final;
};

static void print_head(const struct report_view *v, FILE *f, bool color)
{
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], c[CTL_HUMAN_MAX], text[2 * 256 + 1];

	fprintf(f, "Record    ");
	ctl_verdict_print(f, &v->verdict, v->n_segments, "",
			  color ? CTL_PRINT_COLOR : CTL_PRINT_PLAIN);
	fprintf(f, "Time      %s .. %s (%s)\n", ctl_human_time(v->first_ns, a),
		ctl_human_time(v->last_ns, b), ctl_human_duration(v->last_ns - v->first_ns, c));
	if (v->between_ns && !v->timed)
		fprintf(f, "          of it %s not recorded, between captures\n",
			ctl_human_duration(v->between_ns, c));
	fprintf(f, "Segments  %zu of %zu capture%s on %zu host%s, %s", v->n_segments, v->n_captures,
		v->n_captures == 1 ? "" : "s", v->n_hosts, v->n_hosts == 1 ? "" : "s",
		ctl_human_size(v->file_bytes, a));
	if (v->n_torn)
		fprintf(f, ", %zu still open or torn", v->n_torn);
	for (size_t i = 0; i < v->n_selections; i++)
		if (v->n_selections > 1 || strcmp(v->selections[i], "all") != 0)
			fprintf(f, "\n%s%s", i ? "          " : "Selected  ",
				ctl_printable(v->selections[i], text, sizeof(text)));
	for (size_t i = 0; i < v->n_sources; i++)
		fprintf(f, "\n%s%s", i ? "          " : "Imported  ",
			ctl_printable(v->sources[i], text, sizeof(text)));
	fprintf(f, "\nRequests  %s recorded, ", ctl_human_count(v->requests, a));
	if (v->losses_final)
		fprintf(f, "%s lost", ctl_human_count(v->lost, b));
	else if (v->lost)
		fprintf(f, "at least %s lost; ", ctl_human_count(v->lost, b));
	if (v->n_torn)
		fputs("losses of unsealed segments not known before the seal", f);
	else if (!v->losses_final)
		fputs("not all losses are known, see above", f);
	fprintf(f, "%s\n", v->filtered ? " (that pass the filters)" : "");
	if (v->losses_unfilterable)
		fprintf(f, "          losses are not filtered by pid, comm or latency: they have "
			   "none\n");
	if (v->no_swap_out || v->no_swap_in)
		fprintf(f,
			"          %s not told in some segments: \"without swap\" may hold some\n",
			v->no_swap_out && v->no_swap_in ? "swap"
			: v->no_swap_out		? "swap-out"
							: "swap-in");
	if (v->swap_dropped)
		fputs("          some segments were recorded without swap, as configured\n", f);
}

static void count_line(struct ctl_table *t, const struct line *l)
{
	const struct report_cell *c = l->cell;
	char buf[CTL_HUMAN_MAX], lost[CTL_HUMAN_MAX];

	if (!c->lost && !l->losses_final)
		snprintf(lost, sizeof(lost), "?");
	else
		ctl_human_count(c->lost, lost);
	ctl_table_cell(t, "%s", l->device);
	ctl_table_cell(t, "%s", l->what);
	ctl_table_cell(t, "%s", ctl_human_count(c->requests, buf));
	ctl_table_cell(t, "%s", lost);
	ctl_table_cell(t, "%s", ctl_human_count(c->requests + c->lost, buf));
	if (l->seconds > 0)
		ctl_table_cell(t, "%.1f", (double)c->requests / l->seconds);
	else
		ctl_table_cell(t, "-");
	ctl_table_cell(t, "%s", ctl_human_count(c->errors, buf));
	ctl_table_cell(t, "%s", ctl_human_count(c->requeues, buf));
}

static void bytes_line(struct ctl_table *t, const struct line *l)
{
	const struct report_cell *c = l->cell;
	char buf[CTL_HUMAN_MAX];

	ctl_table_cell(t, "%s", l->device);
	ctl_table_cell(t, "%s", l->what);
	ctl_table_cell(t, "%s", ctl_human_size(c->bytes, buf));
	if (!c->lost && !l->losses_final)
		ctl_table_cell(t, "?");
	else
		ctl_table_cell(t, "%s", ctl_human_size(c->lost_bytes, buf));
	if (l->seconds > 0)
		ctl_table_cell(t, "%s/s",
			       ctl_human_size((uint64_t)((double)c->bytes / l->seconds), buf));
	else
		ctl_table_cell(t, "-");
	ctl_table_cell(t, "%s", ctl_human_count(c->merges, buf));
}

static void latency_cells(struct ctl_table *t, const struct hist *h)
{
	static const unsigned int points[] = {5000, 9000, 9900, 9990};
	char buf[CTL_HUMAN_MAX];

	for (size_t i = 0; i < IOT_ARRAY_SIZE(points); i++)
		ctl_table_cell(t, "%s",
			       h->n ? ctl_human_duration(hist_percentile(h, points[i]), buf) : "-");
	ctl_table_cell(t, "%s", h->n ? ctl_human_duration(h->max, buf) : "-");
}

static void queue_line(struct ctl_table *t, const struct line *l)
{
	if (!l->cell->requests)
		return;
	ctl_table_cell(t, "%s", l->device);
	ctl_table_cell(t, "%s", l->what);
	latency_cells(t, &l->cell->queue);
}

static void device_line(struct ctl_table *t, const struct line *l)
{
	if (!l->cell->requests)
		return;
	ctl_table_cell(t, "%s", l->device);
	ctl_table_cell(t, "%s", l->what);
	latency_cells(t, &l->cell->device);
}

static bool any(const struct report_cell *c)
{
	return c->requests || c->lost;
}

static int op_lines(struct ctl_table *t, const char *device, unsigned int op,
		    const struct report_op *o, double seconds, bool losses_final,
		    void (*fn)(struct ctl_table *t, const struct line *l))
{
	static const char *const suffix[] = {"without swap", "swap-out", "swap-in"};
	_cleanup_(report_cell_done) struct report_cell all = {0};
	struct line l = {.device = device,
			 .what = iot_op_name(op),
			 .cell = &all,
			 .seconds = seconds,
			 .losses_final = losses_final};
	int r;

	for (unsigned int k = 0; k < REPORT_N_SWAP; k++) {
		r = report_cell_merge(&all, &o->swap[k]);
		if (r < 0)
			return r;
	}
	fn(t, &l);
	if (!any(&o->swap[REPORT_SWAP_OUT]) && !any(&o->swap[REPORT_SWAP_IN]))
		return 0;
	for (unsigned int k = 0; k < REPORT_N_SWAP; k++) {
		char what[48];

		if (k && !any(&o->swap[k]))
			continue;
		snprintf(what, sizeof(what), "  %s", suffix[k]);
		l = (struct line){device, what, &o->swap[k], seconds, losses_final};
		fn(t, &l);
	}
	return 0;
}

static const char *device_label(const struct report_view *v, const struct report_device *d,
				char *buf, size_t size)
{
	char name[2 * sizeof(d->name) + 1], host[2 * sizeof(d->host) + 1];

	ctl_printable(d->name, name, sizeof(name));
	if (v->n_hosts <= 1)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%s/%s", ctl_printable(d->host, host, sizeof(host)), name);
	return buf;
}

static int print_table(const struct report_view *v, FILE *f, bool color, const char *title,
		       const char *const *columns,
		       void (*fn)(struct ctl_table *t, const struct line *l))
{
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns);
	char label[320];
	int r;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < v->report.n_devices; i++) {
		const struct report_device *d = &v->report.devices[i];

		for (unsigned int op = 0; op < IOT_N_OPS; op++) {
			if (!d->ops[op])
				continue;
			r = op_lines(t, device_label(v, d, label, sizeof(label)), op, d->ops[op],
				     report_view_seconds(v, d), v->losses_final, fn);
			if (r < 0)
				return r;
		}
	}
	fprintf(f, "\n%s%s%s\n", ctl_style_on(color, CTL_STYLE_BOLD), title, ctl_style_off(color));
	return ctl_table_print(t, f, color);
}

/* ---- histograms -------------------------------------------------------------------------------- */

static void print_bar(FILE *f, uint64_t n, uint64_t top)
{
	/* Eighths of a block; any count shows, however small. */
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	uint64_t length = (uint64_t)((double)n / (double)top * BAR_WIDTH * 8);

	if (n && !length)
		length = 1;
	if (!ctl_utf8_terminal()) {
		for (uint64_t i = 0; i < (length + 7) / 8; i++)
			fputc('#', f);
		return;
	}
	for (uint64_t i = 0; i < length / 8; i++)
		fputs("█", f);
	fputs(eighths[length % 8], f);
}

static const char *power_label(unsigned int bit, char buf[CTL_HUMAN_MAX])
{
	return bit == 0 ? "0ns" : bit >= 64 ? "2^64ns" : ctl_human_duration(1ULL << bit, buf);
}

/* Powers of two from .. to - 1, as one row. */
struct bar {
	unsigned int from;
	unsigned int to;
	uint64_t n;
};

static void join_bars(struct bar *bars, size_t at, size_t *n)
{
	bars[at].to = bars[at + 1].to;
	bars[at].n += bars[at + 1].n;
	--*n;
	memmove(&bars[at + 1], &bars[at + 2], (*n - at - 1) * sizeof(*bars));
}

/*
 * At most HIST_ROWS rows: what lies between them is where the requests are, so the ends, which hold few,
 * grow together first.
 */
static size_t fill_bars(const struct hist *h, struct bar bars[64])
{
	size_t n = 0;

	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t count = hist_log2_count(h, bit);

		if (n == 0 && !count)
			continue;
		bars[n++] = (struct bar){bit, bit + 1, count};
	}
	while (n > 0 && !bars[n - 1].n)
		n--;
	for (size_t i = 0, k; i < n; i = k + 1) {
		for (k = i; k < n && !bars[k].n; k++)
			;
		/* Far outliers leave long gaps: one row says as much as ten. */
		if (k - i > 2)
			for (; k - i > 1; k--)
				join_bars(bars, i, &n);
	}
	while (n > HIST_ROWS) {
		if (bars[0].n + bars[1].n < bars[n - 2].n + bars[n - 1].n)
			join_bars(bars, 0, &n);
		else
			join_bars(bars, n - 2, &n);
	}
	return n;
}

static void print_hist(FILE *f, const struct hist *h)
{
	char from[CTL_HUMAN_MAX], to[CTL_HUMAN_MAX], count[CTL_HUMAN_MAX];
	struct bar bars[64];
	size_t n = fill_bars(h, bars);
	uint64_t top = 0;

	for (size_t i = 0; i < n; i++)
		top = IOT_MAX(top, bars[i].n);
	for (size_t i = 0; i < n; i++) {
		const struct bar *b = &bars[i];

		fprintf(f, "  %8s .. %-8s %12s", power_label(b->from, from), power_label(b->to, to),
			b->n ? ctl_human_count(b->n, count) : "none");
		if (b->n) {
			fprintf(f, " %5.1f%%  ", 100.0 * (double)b->n / (double)h->n);
			print_bar(f, b->n, top);
		}
		fputc('\n', f);
	}
}

static uint64_t n_latencies(const struct report_op *op)
{
	uint64_t n = 0;

	for (unsigned int k = 0; op && k < REPORT_N_SWAP; k++)
		n += op->swap[k].device.n;
	return n;
}

static int cmp_most_first(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)b, *(const uint64_t *)a);
}

/* The least number of requests that a histogram must have to be shown, and for how many with just that
 * number there is room. */
static int choose_least(const struct report_view *v, uint64_t *ret, size_t *ret_ties, size_t *ret_n)
{
	_cleanup_free_ uint64_t *counts =
		calloc(v->report.n_devices * IOT_N_OPS + 1, sizeof(*counts));
	size_t n = 0;

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < v->report.n_devices; i++)
		for (unsigned int op = 0; op < IOT_N_OPS; op++)
			if (n_latencies(v->report.devices[i].ops[op]))
				counts[n++] = n_latencies(v->report.devices[i].ops[op]);
	qsort(counts, n, sizeof(*counts), cmp_most_first);
	*ret = counts[n > HIST_SHOWN ? HIST_SHOWN - 1 : n];
	*ret_ties = HIST_SHOWN;
	for (size_t i = 0; i < n && counts[i] > *ret; i++)
		--*ret_ties;
	*ret_n = n;
	return 0;
}

static int print_histograms(const struct report_view *v, FILE *f, bool color)
{
	uint64_t least = 0;
	size_t n = 0, shown = 0, ties = 0;
	char label[320];
	int r;

	r = choose_least(v, &least, &ties, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < v->report.n_devices; i++) {
		const struct report_device *d = &v->report.devices[i];

		for (unsigned int op = 0; op < IOT_N_OPS; op++) {
			_cleanup_(hist_done) struct hist all = {0};

			if (!n_latencies(d->ops[op]) || n_latencies(d->ops[op]) < least)
				continue;
			if (n_latencies(d->ops[op]) == least && !ties)
				continue;
			ties -= n_latencies(d->ops[op]) == least;
			for (unsigned int k = 0; k < REPORT_N_SWAP; k++) {
				r = hist_merge(&all, &d->ops[op]->swap[k].device);
				if (r < 0)
					return r;
			}
			fprintf(f, "\n%s%s %s: device latency%s\n",
				ctl_style_on(color, CTL_STYLE_BOLD),
				device_label(v, d, label, sizeof(label)), iot_op_name(op),
				ctl_style_off(color));
			print_hist(f, &all);
			shown++;
		}
	}
	if (n > shown)
		fprintf(f,
			"\n%zu more histograms, of fewer requests: choose with --dev and --op, or "
			"--json\n",
			n - shown);
	return 0;
}

int report_view_text(const struct report_view *v, FILE *f, bool color)
{
	static const char *const counts[] = {"DEVICE", "OP",	  ">REQUESTS", ">LOST", ">TOTAL",
					     ">IOPS",  ">ERRORS", ">REQUEUES", NULL};
	static const char *const bytes[] = {"DEVICE", "OP",	 ">BYTES", ">LOST BYTES",
					    ">RATE",  ">MERGES", NULL};
	static const char *const latencies[] = {"DEVICE", "OP",	    ">P50", ">P90",
						">P99",	  ">P99.9", ">MAX", NULL};
	const struct {
		const char *title;
		const char *const *columns;
		void (*fn)(struct ctl_table *t, const struct line *l);
	} tables[] = {
		{"Requests", counts, count_line},
		{"Bytes", bytes, bytes_line},
		{"Latency in the queue, start to last issue", latencies, queue_line},
		{"Latency in the device, last issue to completion", latencies, device_line},
	};
	char count[CTL_HUMAN_MAX];
	int r;

	print_head(v, f, color);
	if (!v->report.n_devices) {
		fprintf(f, "\nNo requests%s.\n", v->filtered ? " pass the filters" : "");
		return 0;
	}
	report_text_totals(v, f);
	if (v->cache.curves[0]) {
		if (v->lost)
			fprintf(f, "          %s lost requests are in no curve\n",
				ctl_human_count(v->lost, count));
		return report_cache_text(&v->cache, f, color);
	}
	if (v->n_ranks)
		return report_rank_text(v, &v->ranks[0], f, color);
	if (!v->losses_final)
		fputs("\nLOST below counts sealed segments only; ?: none in these, the others not "
		      "known\n",
		      f);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(tables); i++) {
		r = print_table(v, f, color, tables[i].title, tables[i].columns, tables[i].fn);
		if (r < 0)
			return r;
	}
	r = report_text_over_time(v, f, color);
	if (r < 0)
		return r;
	return print_histograms(v, f, color);
}
