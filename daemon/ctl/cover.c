// SPDX-License-Identifier: BSD-2-Clause
/*
 * cover.c - the part of an asked time that no capture recorded, and what more than one did.
 *
 * A verdict is about the segments that are there, and none of them speaks for the time before, after or
 * between captures: "no request from --since to --until" is proved only where each machine that was given
 * recorded all of it. Open ends are those of the record: who gives no --since asks from its beginning.
 *
 * When something was, by the clock on the wall, is told by CLOCK_MONOTONIC and one reading of both at the segment's
 * beginning. Both are slewed alike; they part only where the former is set, or while the machine sleeps. Then the
 * readings at the segment's two ends differ, nobody knows from which record on, and no question about such a time
 * is answered for certain.
 *
 * Two captures of one boot that ran beside each other saw the same requests: sums over both have these twice. Two
 * boots never run beside each other: where they do, two machines have one id, as cloned images do.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/books.h"

#define STEP_NS \
	20000000ULL /* clocks are read one after the other, by a task that others may interrupt */

void ctl_step_check(const struct iot_filter *f, const struct iot_segment_info *info,
		    const struct iot_footer *footer, struct iot_verdict *why)
{
	const struct iot_clocks *a = &info->clocks, *b = footer ? &footer->clocks : NULL;
	uint64_t before, after, from_ns, to_ns;

	/* What recovery found out of, it has doubts of its own about. */
	if ((!f->since_ns && !f->until_ns) || !b || !b->realtime_ns ||
	    footer->reason == IOT_SEAL_RECOVERED)
		return;
	before = iot_clocks_realtime_ns(a, b->monotonic_ns);
	after = b->realtime_ns;
	if (IOT_MAX(before, after) - IOT_MIN(before, after) <= STEP_NS)
		return;
	from_ns = IOT_MIN(iot_clocks_realtime_ns(a, footer->epoch_first_ns),
			  iot_clocks_realtime_ns(b, footer->epoch_first_ns));
	to_ns = IOT_MAX(iot_clocks_realtime_ns(a, footer->epoch_last_ns),
			iot_clocks_realtime_ns(b, footer->epoch_last_ns));
	if (to_ns < f->since_ns || (f->until_ns && from_ns > f->until_ns))
		return;
	iot_verdict_reason(
		why, IOT_VERDICT_UNKNOWN,
		"segment %llu: the wall clock was set %s by %.3f s, or the machine slept, "
		"in the middle: what of it was when is not certain",
		(unsigned long long)info->seq, after > before ? "forward" : "back",
		(double)(IOT_MAX(before, after) - IOT_MIN(before, after)) / 1e9);
}

/* By name as well: clones have one id, and some machines have none. */
static int cmp_machine(const struct iot_segment_info *a, const struct iot_segment_info *b)
{
	int c = memcmp(a->machine_id, b->machine_id, sizeof(a->machine_id));

	c = c ? c : strcmp(a->host, b->host);
	return c ? c : (a->stream > b->stream) - (a->stream < b->stream);
}

static int cmp_span(const void *a, const void *b)
{
	const struct ctl_span *x = a, *y = b;
	int c = cmp_machine(x->info, y->info);

	return c ? c : iot_cmp_u64(x->first_ns, y->first_ns);
}

/* One stream of one machine. */
static void check_machine(const struct iot_filter *f, const struct ctl_span *spans, size_t n,
			  struct iot_verdict *why)
{
	const char *host = spans[0].info->host, *stream = iot_stream_name(spans[0].info->stream);
	uint64_t at = f->since_ns;
	char text[CTL_HUMAN_MAX];
	bool asked = false;

	for (size_t i = 0; i < n; i++) {
		const struct ctl_span *s = &spans[i];

		asked |= s->last_ns >= f->since_ns && (!f->until_ns || s->first_ns <= f->until_ns);
		if (at && s->first_ns > at && (!f->until_ns || at < f->until_ns))
			iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
					   "%.64s: no %s capture covers the %.6f s before %.19s",
					   host, stream, (double)(s->first_ns - at) / 1e9,
					   ctl_human_time(s->first_ns, text));
		at = IOT_MAX(at, s->last_ns);
	}
	if (!asked)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%.64s: none of its %s captures covers any of the time", host,
				   stream);
	else if (at < f->until_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%.64s: no %s capture covers the time after %.19s", host, stream,
				   ctl_human_time(at, text));
}

void ctl_cover_check(const struct iot_filter *f, struct ctl_span *spans, size_t n,
		     struct iot_verdict *why)
{
	qsort(spans, n, sizeof(*spans), cmp_span);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && cmp_machine(spans[i].info, spans[k].info) == 0; k++)
			;
		check_machine(f, spans + i, k - i, why);
	}
}

/* Of a capture from its first segment to its last: what is missing between them is in the verdict. */
static void span_of(const struct iot_segment *first, const struct iot_segment *last,
		    struct ctl_span *ret)
{
	const struct iot_footer *a = iot_segment_footer(first), *b = iot_segment_footer(last);

	ret->info = iot_segment_info(first);
	ret->first_ns = iot_segment_realtime_ns(
		first, a && a->epoch_first_ns ? a->epoch_first_ns : ret->info->clocks.monotonic_ns);
	/* Where it ends is not known without a footer that says so; that is a doubt of its own. */
	ret->last_ns = b && b->epoch_last_ns ? iot_segment_realtime_ns(last, b->epoch_last_ns)
					     : UINT64_MAX;
}

/* stream 0: of both. */
static int collect(const struct iot_scan *scan, enum iot_stream stream, struct ctl_span **ret,
		   size_t *ret_n)
{
	size_t n_segments = iot_scan_n_segments(scan), n = 0;
	struct ctl_span *spans = calloc(n_segments + 1, sizeof(*spans));

	if (!spans)
		return -ENOMEM;
	for (size_t i = 0, k; i < n_segments; i = k) {
		const struct iot_segment *first = iot_scan_segment(scan, i);

		for (k = i + 1; k < n_segments; k++)
			if (!iot_same_capture(first, iot_scan_segment(scan, k)))
				break;
		if (!stream || iot_segment_info(first)->stream == stream)
			span_of(first, iot_scan_segment(scan, k - 1), &spans[n++]);
	}
	*ret = spans;
	*ret_n = n;
	return 0;
}

int ctl_cover_scan(const struct iot_scan *scan, const struct iot_filter *f, struct iot_verdict *why)
{
	_cleanup_free_ struct ctl_span *spans = NULL;
	size_t n;
	int r;

	if (!f->since_ns && !f->until_ns)
		return 0;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);

		ctl_step_check(f, iot_segment_info(s), iot_segment_footer(s), why);
	}
	r = collect(scan, ctl_stream_asked(scan, f), &spans, &n);
	if (r == 0)
		ctl_cover_check(f, spans, n, why);
	return r;
}

int ctl_cover_between(const struct iot_scan *scan, enum iot_stream stream, uint64_t *ret_ns)
{
	_cleanup_free_ struct ctl_span *spans = NULL;
	uint64_t at = 0, sum = 0;
	size_t n;
	int r;

	r = collect(scan, stream, &spans, &n);
	if (r < 0)
		return r;
	qsort(spans, n, sizeof(*spans), cmp_span);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || cmp_machine(spans[i - 1].info, spans[i].info) != 0)
			at = spans[i].first_ns;
		/* Of a capture whose first segments are not here its beginning is not known. */
		if (spans[i].info->seq == 1 && spans[i].first_ns > at)
			sum += spans[i].first_ns - at;
		at = IOT_MAX(at, spans[i].last_ns);
	}
	*ret_ns = sum;
	return 0;
}

/* ---- captures beside each other ---- */

struct extent {
	const struct iot_segment *first;
	const struct iot_segment_info *info;
	uint64_t first_ns, last_ns;		   /* CLOCK_MONOTONIC */
	uint64_t first_realtime, last_realtime_ns; /* each by its own segment's clocks */
};

/* Segments [i, k) of one capture, as far as their footers tell. */
static void extent_of(const struct iot_scan *scan, size_t i, size_t k, struct extent *e)
{
	*e = (struct extent){.first = iot_scan_segment(scan, i)};
	e->info = iot_segment_info(e->first);
	for (; i < k; i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_footer *f = iot_segment_footer(s);

		if (!f || !f->epoch_first_ns || f->epoch_last_ns <= e->last_ns)
			continue;
		if (!e->first_ns) {
			e->first_ns = f->epoch_first_ns;
			e->first_realtime = iot_segment_realtime_ns(s, f->epoch_first_ns);
		}
		e->last_ns = f->epoch_last_ns;
		e->last_realtime_ns = iot_segment_realtime_ns(s, f->epoch_last_ns);
	}
}

static bool same_boot(const struct extent *x, const struct extent *y)
{
	return memcmp(x->info->boot_id, y->info->boot_id, sizeof(x->info->boot_id)) == 0;
}

/* Nanoseconds of f's time in which both recorded; 0 for any two of different machines. */
static uint64_t overlap(const struct iot_filter *f, const struct extent *x, const struct extent *y)
{
	uint64_t from, to;

	if (!x->first_ns || !y->first_ns || cmp_machine(x->info, y->info) != 0)
		return 0;
	if (same_boot(x, y)) {
		from = IOT_MAX(x->first_ns, y->first_ns);
		to = IOT_MIN(x->last_ns, y->last_ns);
		if (from < to) {
			from = iot_segment_realtime_ns(x->first, from);
			to = iot_segment_realtime_ns(x->first, to);
		}
	} else {
		from = IOT_MAX(x->first_realtime, y->first_realtime);
		to = IOT_MIN(x->last_realtime_ns, y->last_realtime_ns);
	}
	from = IOT_MAX(from, f->since_ns);
	if (f->until_ns)
		to = IOT_MIN(to, f->until_ns);
	return from < to ? to - from : 0;
}

static void note_overlap(const struct iot_filter *f, const struct extent *x, const struct extent *y,
			 struct iot_verdict *why)
{
	const char *stream = iot_stream_name(x->info->stream);
	uint64_t ns = overlap(f, x, y);
	char text[CTL_HUMAN_MAX];

	if (!ns)
		return;
	if (same_boot(x, y))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%.64s: two %s captures ran beside each other for %s: what both "
				   "recorded is counted twice",
				   x->info->host, stream, ctl_human_duration(ns, text));
	else
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%.64s: %s captures of two boots overlap by %s: two machines "
				   "have one id, or the clock was set back",
				   x->info->host, stream, ctl_human_duration(ns, text));
}

static int cmp_extent(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	int c = cmp_machine(x->info, y->info);

	return c ? c : iot_cmp_u64(x->first_realtime, y->first_realtime);
}

int ctl_overlap_check(const struct iot_scan *scan, const struct iot_filter *f,
		      struct iot_verdict *why)
{
	size_t n_segments = iot_scan_n_segments(scan), n = 0;
	_cleanup_free_ struct extent *all = calloc(n_segments + 1, sizeof(*all));
	enum iot_stream asked = ctl_stream_asked(scan, f);

	if (!all)
		return -ENOMEM;
	for (size_t i = 0, k; i < n_segments; i = k) {
		for (k = i + 1; k < n_segments; k++)
			if (!iot_same_capture(iot_scan_segment(scan, i), iot_scan_segment(scan, k)))
				break;
		extent_of(scan, i, k, &all[n]);
		n += !asked || all[n].info->stream == asked;
	}
	qsort(all, n, sizeof(*all), cmp_extent);
	/* Each with the one before it that ends last: so none is passed over, and few are compared. */
	for (size_t i = 1, longest = 0; i < n; i++) {
		if (cmp_machine(all[longest].info, all[i].info) != 0) {
			longest = i;
			continue;
		}
		note_overlap(f, &all[longest], &all[i], why);
		if (all[i].last_realtime_ns > all[longest].last_realtime_ns)
			longest = i;
	}
	return 0;
}
