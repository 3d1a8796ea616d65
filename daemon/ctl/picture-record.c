// SPDX-License-Identifier: BSD-2-Clause
/* picture-record.c - see picture-record.h. */
#include "daemon/ctl/picture-record.h"
#include "format/books.h"

/* What a segment says of all of its time. */
struct piece {
	size_t lane;
	uint64_t first_ns;
	uint64_t last_ns;
	enum record_state state;
};

/* NULL: there is no room for it. */
static struct record_lane *lane_of(struct record_lanes *rl, const struct iot_segment_info *info)
{
	struct record_lane *l;

	for (size_t i = 0; i < rl->n; i++) {
		l = &rl->lanes[i];
		if (l->stream == (enum iot_stream)info->stream &&
		    memcmp(l->machine_id, info->machine_id, 16) == 0 &&
		    strcmp(l->host, info->host) == 0)
			return l;
	}
	if (rl->n == RECORD_MAX_LANES) {
		rl->more = true;
		return NULL;
	}
	l = &rl->lanes[rl->n++];
	l->stream = (enum iot_stream)info->stream;
	memcpy(l->machine_id, info->machine_id, 16);
	snprintf(l->host, sizeof(l->host), "%s", info->host);
	return l;
}

/* Some of its records could not be read. One that was not there any more was read before. */
static bool is_unread(const struct iot_scan *read, const struct iot_segment *s, size_t hint)
{
	const struct iot_segment_info *a = iot_segment_info(s);

	size_t n = iot_scan_n_segments(read);

	/* Nearly always in the same place. */
	for (size_t i = 0; i < n; i++) {
		const struct iot_segment *other = iot_scan_segment(read, (hint + i) % n);
		const struct iot_segment_info *b = iot_segment_info(other);

		if (a->stream == b->stream && a->seq == b->seq &&
		    memcmp(a->capture_id, b->capture_id, 16) == 0)
			return iot_segment_unread(other);
	}
	return false;
}

static enum record_state state_of(const struct iot_segment *s, const struct iot_scan *read,
				  size_t at, uint64_t *ret_lost)
{
	struct iot_verdict v;

	*ret_lost = 0;

	if (iot_segment_damaged(s) || iot_segment_unread(s) || is_unread(read, s, at))
		return RECORD_UNKNOWN;
	iot_verdict_footer(iot_segment_info(s), iot_segment_footer(s), &v);
	*ret_lost = v.n_lost;
	switch (v.code) {
	case IOT_VERDICT_COMPLETE:
		return RECORD_COMPLETE;
	case IOT_VERDICT_LOST:
		return RECORD_LOST;
	default:
		return RECORD_UNKNOWN;
	}
}

/*
 * What passes the filter, and, whether it does or not, the time of all: *state is that of the segment beside
 * these times. n_lost: what the books count; if that is not in the ledger, the losses may be anywhere.
 */
static int add_losses(struct record_lane *l, struct iot_segment *s, const struct iot_filter *f,
		      const struct picture_axis *a, uint64_t n_lost, enum record_state *state)
{
	_cleanup_free_ struct iot_loss *losses = NULL;
	uint64_t filed = 0;
	size_t n = 0;
	int r = iot_segment_load_ledger(s, &losses, &n, NULL);

	/* Damaged: it is in the verdict's reasons. */
	if (r == -EBADMSG)
		*state = RECORD_UNKNOWN;
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	for (size_t i = 0; i < n; i++) {
		uint64_t from = iot_segment_realtime_ns(s, losses[i].first_ns);
		uint64_t to = iot_segment_realtime_ns(s, losses[i].last_ns);
		size_t last = picture_column(a, to);

		filed = iot_add_sat(filed, losses[i].n);
		if (iot_filter_match_loss(f, s, &losses[i]))
			l->lost[last] = iot_add_sat(l->lost[last], losses[i].n);
		if (to < a->first_ns || from >= a->first_ns + a->n * a->step_ns)
			continue;
		for (size_t c = picture_column(a, from); c <= last; c++)
			l->has_lost[c] = true;
	}
	if (*state == RECORD_LOST && filed == n_lost)
		*state = RECORD_COMPLETE;
	return 0;
}

static void add_windows(struct record_lanes *rl, size_t lane, const struct iot_segment *s,
			const struct picture_axis *a, const struct report_span *span)
{
	const struct iot_footer *f = iot_segment_footer(s);

	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];
		/* Wide ones say 0 or the end of time. */
		uint64_t from = IOT_MAX(iot_segment_realtime_ns(s, w->t0_ns), span->first_ns);
		uint64_t to = w->t1_ns == UINT64_MAX ? span->last_ns
						     : iot_segment_realtime_ns(s, w->t1_ns);
		struct record_window *keep;

		to = IOT_MIN(to, span->last_ns);
		if (from > to)
			continue;
		for (size_t c = picture_column(a, from); c <= picture_column(a, to); c++)
			rl->lanes[lane].doubts[c]++;
		if (rl->n_windows++ >= RECORD_MAX_WINDOWS)
			continue;
		keep = &rl->windows[rl->n_windows - 1];
		*keep = (struct record_window){.from_ns = from,
					       .to_ns = to,
					       .n = w->n,
					       .lane = lane,
					       .kind = (uint8_t)w->kind};
		if (w->probe)
			iot_segment_probe_label(s, w->probe, keep->probe, sizeof(keep->probe));
	}
}

static int by_lane_and_time(const void *x, const void *y)
{
	const struct piece *a = x, *b = y;

	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	return iot_cmp_u64(a->first_ns, b->first_ns);
}

/* The part of column c that the report is about. */
static void bounds(const struct picture_axis *a, size_t c, uint64_t first_ns, uint64_t last_ns,
		   uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_from = IOT_MAX(first_ns, a->first_ns + c * a->step_ns);
	*ret_to = IOT_MIN(last_ns, a->first_ns + (c + 1) * a->step_ns);
}

/* pieces: sorted, of one lane. What they do not cover of a column was not recorded. */
static void cover(struct record_lane *l, const struct piece *pieces, size_t n,
		  const struct picture_axis *a, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t covered[PICTURE_COLUMNS] = {0};
	uint64_t covered_to = 0, from, to;

	for (size_t i = 0; i < n; i++) {
		const struct piece *p = &pieces[i];

		for (size_t c = picture_column(a, p->first_ns); c <= picture_column(a, p->last_ns);
		     c++) {
			bounds(a, c, first_ns, last_ns, &from, &to);
			/* It ends where this column begins. */
			if (p->last_ns == from && p->first_ns < from && from < to)
				continue;
			l->state[c] = IOT_MAX(l->state[c], (uint8_t)p->state);
			from = IOT_MAX(from, IOT_MAX(p->first_ns, covered_to));
			to = IOT_MIN(to, p->last_ns);
			covered[c] += to > from ? to - from : 0;
		}
		covered_to = IOT_MAX(covered_to, p->last_ns);
	}
	for (size_t c = 0; c < a->n; c++) {
		if (l->has_lost[c])
			l->state[c] = IOT_MAX(l->state[c], RECORD_LOST);
		bounds(a, c, first_ns, last_ns, &from, &to);
		if (l->state[c] != RECORD_NOTHING && to > from && covered[c] < to - from)
			l->state[c] = IOT_MAX(l->state[c], RECORD_PART);
	}
}

int record_read(struct record_lanes *rl, const struct iot_scan *scan, const struct iot_scan *read,
		const struct iot_filter *f, const struct picture_axis *a,
		const struct report_span *spans, uint64_t first_ns, uint64_t last_ns)
{
	size_t n = iot_scan_n_segments(scan), n_pieces = 0;
	_cleanup_free_ struct piece *pieces = calloc(n + 1, sizeof(*pieces));
	int r = 0;

	rl->lanes = calloc(RECORD_MAX_LANES, sizeof(*rl->lanes));
	rl->windows = calloc(RECORD_MAX_WINDOWS, sizeof(*rl->windows));
	if (!pieces || !rl->lanes || !rl->windows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		struct record_lane *l = lane_of(rl, iot_segment_info(s));
		enum record_state state;
		uint64_t n_lost;
		size_t lane;

		if (!l || !a->n)
			continue;
		lane = (size_t)(l - rl->lanes);
		state = state_of(s, read, i, &n_lost);
		r = iot_segment_footer(s) ? add_losses(l, s, f, a, n_lost, &state) : 0;
		if (r < 0)
			return r;
		/* One outside --since and --until is cut to nothing at one of these. */
		if (spans[i].first_ns < spans[i].last_ns || first_ns == last_ns)
			pieces[n_pieces++] =
				(struct piece){lane, spans[i].first_ns, spans[i].last_ns, state};
		if (iot_segment_footer(s))
			add_windows(rl, lane, s, a, &spans[i]);
	}
	qsort(pieces, n_pieces, sizeof(*pieces), by_lane_and_time);
	for (size_t i = 0, k; i < n_pieces; i = k) {
		for (k = i; k < n_pieces && pieces[k].lane == pieces[i].lane; k++)
			;
		cover(&rl->lanes[pieces[i].lane], pieces + i, k - i, a, first_ns, last_ns);
	}
	return 0;
}

void record_done(struct record_lanes *rl)
{
	free(rl->lanes);
	free(rl->windows);
	*rl = (struct record_lanes){0};
}
