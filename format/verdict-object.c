// SPDX-License-Identifier: BSD-2-Clause
/*
 * verdict-object.c - can the record prove that nothing of one object is missing? Pure.
 *
 * The segments given are those of one capture, sorted by seq, footers with their losses loaded. An
 * object's life is a span of time; a segment's span is its epoch. Whatever is doubtful about an
 * epoch as a whole (no footer, unbalanced books, a counter without windows) stains every life that
 * overlaps it; what has a window stains only lives that overlap the window at a probe the object
 * could have reached. Spans that are not known are taken wide: between two doubts the larger wins.
 */
#include "format/books.h"

/*
 * An epoch's times are read around a flip that has to wait for running programs: up to 3 s with all
 * CPUs saturated. An observation may lie that far outside the times written down.
 */
#define EPOCH_SLACK_NS (5ULL * 1000000000)

struct life {
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t id;
	uint64_t probes;
};

struct span {
	uint64_t first_ns;
	uint64_t last_ns;
};

static bool overlaps(const struct life *l, uint64_t first_ns, uint64_t last_ns)
{
	return first_ns <= l->last_ns && last_ns >= l->first_ns;
}

static uint64_t sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Probe 0 stands for any. Ids that do not fit the mask are taken as reachable. */
static bool could_reach(const struct life *l, uint16_t probe)
{
	return probe == 0 || probe >= 64 || (l->probes & (1ULL << probe));
}

/* The time for which a segment answers, widened by what the clock readings may be off. */
static struct span segment_span(const struct iot_segment_info *const *infos,
				const struct iot_footer *const *footers, size_t n, size_t i)
{
	const struct iot_footer *f = footers[i];
	struct span s = {.first_ns = 0, .last_ns = UINT64_MAX};

	if (f && f->epoch_first_ns && f->epoch_last_ns >= f->epoch_first_ns) {
		s.first_ns = f->epoch_first_ns;
		s.last_ns = f->epoch_last_ns;
	} else {
		/* A file is created before its epoch becomes the active one. */
		s.first_ns = infos[i]->clocks.monotonic_ns;
		if (i + 1 < n && infos[i + 1]->seq == infos[i]->seq + 1 && footers[i + 1] &&
		    footers[i + 1]->epoch_first_ns)
			s.last_ns = footers[i + 1]->epoch_first_ns;
	}
	s.first_ns = sub_sat(s.first_ns, EPOCH_SLACK_NS);
	s.last_ns = iot_add_sat(s.last_ns, EPOCH_SLACK_NS);
	return s;
}

/* Losses with an owner. Entries of other objects say nothing about this one; id 0 could be it. */
static uint64_t count_losses(const struct life *l, const struct iot_segment_info *info,
			     const struct iot_footer *f, struct iot_verdict *lost,
			     struct iot_verdict *doubt)
{
	uint64_t total = 0;
	char name[64];

	for (size_t i = 0; i < f->n_losses; i++) {
		const struct iot_loss *loss = &f->losses[i];

		iot_probe_label(info, f, loss->probe, name, sizeof(name));
		if (l->id != 0 && loss->id == l->id) {
			total = iot_add_sat(total, loss->n);
			if (loss->n > 0)
				iot_verdict_reason(lost, IOT_VERDICT_LOST,
						   "%s: %llu observations of this object lost (%s)",
						   name, (unsigned long long)loss->n,
						   iot_loss_cause_name(loss->cause));
		} else if (loss->id == 0 && loss->n > 0 && could_reach(l, loss->probe) &&
			   overlaps(l, loss->first_ns,
				    loss->last_ns ? loss->last_ns : UINT64_MAX)) {
			iot_verdict_reason(doubt, IOT_VERDICT_UNKNOWN,
					   "%s: %llu observations of unidentified objects lost "
					   "in its lifetime",
					   name, (unsigned long long)loss->n);
		}
	}
	return total;
}

static void check_windows(const struct life *l, const struct iot_segment_info *info,
			  const struct iot_footer *f, struct iot_verdict *v)
{
	char name[64];

	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];
		/* A window that ends before it begins bounds nothing: take it as all of time. */
		uint64_t t0 = w->t0_ns <= w->t1_ns ? w->t0_ns : 0;
		uint64_t t1 = w->t0_ns <= w->t1_ns ? w->t1_ns : UINT64_MAX;
		bool counted = w->kind == IOT_WINDOW_UNATTRIBUTED || w->kind == IOT_WINDOW_MISSED ||
			       w->kind == IOT_WINDOW_OUTPUT;

		if (counted && w->n == 0)
			continue;
		if (!could_reach(l, w->probe) || !overlaps(l, t0, t1))
			continue;
		iot_probe_label(info, f, w->probe, name, sizeof(name));
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: %s in its lifetime (segment %llu)",
				   w->probe ? name : "any probe", iot_window_kind_name(w->kind),
				   (unsigned long long)info->seq);
	}
}

static bool differs(const struct iot_sum *a, uint64_t b)
{
	return a->unknown || a->n != b;
}

static void check_probe(const struct life *l, const struct iot_segment_info *info,
			const struct iot_footer *f, uint16_t id, const struct iot_probe_sums *p,
			struct iot_verdict *v)
{
	const struct iot_probe *row = iot_probe_find(info, f, id);
	uint64_t from = IOT_MAX(l->first_ns, IOT_MAX(info->attach_ns, f->epoch_first_ns));
	uint64_t to = IOT_MIN(l->last_ns, f->epoch_last_ns);
	char name[64];

	iot_probe_label(info, f, id, name, sizeof(name));
	if (!row) {
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: not in the probe table", name);
		return;
	}
	if (row->state == IOT_ATTACH_ABSENT || row->state == IOT_ATTACH_NOT_NEEDED)
		return;
	if (row->state != IOT_ATTACH_ATTACHED || row->from_ns > from ||
	    (row->to_ns && row->to_ns < to))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: not attached throughout its lifetime", name);
	if (row->miss != IOT_MISS_COUNTED && row->miss != IOT_MISS_UNGUARDED)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: missed runs cannot be counted on this kernel", name);
	else if (!p->user_row || (p->missed.unknown && row->miss == IOT_MISS_COUNTED))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: number of missed runs not known",
				   name);
	else if (!p->missed.unknown && differs(&p->window_missed, p->missed.n))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: missed runs without a window (segment %llu)", name,
				   (unsigned long long)info->seq);
	if (p->identity_full.unknown || p->identity_full.n > 0)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: identity map full (segment %llu)",
				   name, (unsigned long long)info->seq);
	if (p->read_failed.unknown || p->read_failed.n > 0)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: kernel fields could not be read (segment %llu)", name,
				   (unsigned long long)info->seq);
	if (p->unattributed.unknown || differs(&p->window_unattributed, p->unattributed.n))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: losses without owner and window (segment %llu)", name,
				   (unsigned long long)info->seq);
	if (p->filed.unknown || differs(&p->ledger_filed, p->filed.n))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: the ledger is not whole (segment %llu)", name,
				   (unsigned long long)info->seq);
	if (p->user_failed.unknown || p->window_output.unknown ||
	    differs(&p->ledger_user, sub_sat(p->user_failed.n, p->window_output.n)))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: records not written, owner not known (segment %llu)", name,
				   (unsigned long long)info->seq);
}

/* One segment whose time overlaps the object's life. */
static void check_segment(const struct life *l, const struct span *s,
			  const struct iot_segment_info *info, const struct iot_footer *f,
			  struct iot_verdict *lost, struct iot_verdict *doubt)
{
	struct iot_books_summary sums;
	unsigned long long seq = info->seq;

	iot_books_sum(f, &sums);
	iot_books_sum_losses(&sums, f->losses, f->n_losses);
	lost->n_lost = iot_add_sat(lost->n_lost, count_losses(l, info, f, lost, doubt));
	check_windows(l, info, f, doubt);
	if (!overlaps(l, s->first_ns, s->last_ns))
		return;
	iot_verdict_source(info, f, doubt);
	doubt->books_checked = iot_add_sat(doubt->books_checked, sums.n_rows);
	doubt->books_unbalanced = iot_add_sat(doubt->books_unbalanced, sums.n_unbalanced);
	if (f->epoch_first_ns == 0 || f->epoch_last_ns < f->epoch_first_ns)
		iot_verdict_reason(doubt, IOT_VERDICT_UNKNOWN,
				   "the time segment %llu covers is not known", seq);
	if (f->reason == IOT_SEAL_RECOVERED || f->reason == IOT_SEAL_NONE ||
	    f->reason > IOT_SEAL_RECOVERED)
		iot_verdict_reason(doubt, IOT_VERDICT_UNKNOWN,
				   "segment %llu was recovered: part of it may be lost", seq);
	if (sums.n_unbalanced > 0 || sums.duplicate_rows || sums.foreign_ids)
		iot_verdict_reason(doubt, IOT_VERDICT_UNKNOWN,
				   "the books of segment %llu do not balance", seq);
	if (sums.n_unknown > 0)
		iot_verdict_reason(doubt, IOT_VERDICT_UNKNOWN,
				   "counters of segment %llu are not known", seq);
	for (uint16_t id = 1; id < 64; id++)
		if (could_reach(l, id))
			check_probe(l, info, f, id, &sums.probes[id], doubt);
}

/* Segments that were not given, before the first, between two, after the last. */
static void check_holes(const struct life *l, const struct iot_segment_info *const *infos,
			const struct iot_footer *const *footers, size_t n, struct iot_verdict *v)
{
	const struct iot_footer *last = footers[n - 1];

	for (size_t i = 0; i < n; i++) {
		const struct iot_footer *before = i > 0 ? footers[i - 1] : NULL;
		const struct iot_footer *after = footers[i];
		uint64_t prev_seq = i > 0 ? infos[i - 1]->seq : 0;
		uint64_t from = before ? sub_sat(before->epoch_last_ns, EPOCH_SLACK_NS) : 0;
		uint64_t to = after && after->epoch_first_ns
				      ? iot_add_sat(after->epoch_first_ns, EPOCH_SLACK_NS)
				      : UINT64_MAX;

		if (i > 0 && (memcmp(infos[i]->capture_id, infos[0]->capture_id, 16) != 0 ||
			      infos[i]->stream != infos[0]->stream))
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "segments of more than one capture: an id means "
					   "nothing across captures");
		if (infos[i]->seq == prev_seq + 1)
			continue;
		if (infos[i]->seq <= prev_seq)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "segments are not in order");
		else if (overlaps(l, from, to) || infos[i]->seq == 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "segments %llu to %llu of its lifetime are missing",
					   (unsigned long long)prev_seq + 1,
					   (unsigned long long)infos[i]->seq - 1);
	}
	/* A shutdown ends the capture: nothing can follow. */
	if (last && last->reason != IOT_SEAL_SHUTDOWN &&
	    l->last_ns > sub_sat(last->epoch_last_ns, EPOCH_SLACK_NS) &&
	    (l->last_ns == UINT64_MAX || l->last_ns > last->epoch_last_ns))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "its lifetime goes on after segment %llu, the last one given",
				   (unsigned long long)infos[n - 1]->seq);
}

enum iot_object_verdict iot_verdict_object(const struct iot_object_query *q,
					   const struct iot_segment_info *const *infos,
					   const struct iot_footer *const *footers, size_t n,
					   struct iot_verdict *ret_reasons)
{
	struct iot_verdict lost = {0}, doubt = {0};
	struct life l = {
		.first_ns = q->first_ns,
		.last_ns = q->last_ns ? q->last_ns : UINT64_MAX,
		.id = q->id,
		.probes = q->probes,
	};

	if (n == 0)
		iot_verdict_reason(&doubt, IOT_VERDICT_UNKNOWN, "no segment was given");
	if (q->id == 0)
		iot_verdict_reason(&doubt, IOT_VERDICT_UNKNOWN,
				   "the object is unidentified: losses cannot be held against it");
	if (q->probes == 0)
		iot_verdict_reason(&doubt, IOT_VERDICT_UNKNOWN,
				   "which probes the object could reach is not known");
	if (l.first_ns > l.last_ns)
		iot_verdict_reason(&doubt, IOT_VERDICT_UNKNOWN, "it ends before it begins");
	for (size_t i = 0; i < n; i++) {
		struct span s = segment_span(infos, footers, n, i);

		if (footers[i])
			check_segment(&l, &s, infos[i], footers[i], &lost, &doubt);
		else if (overlaps(&l, s.first_ns, s.last_ns))
			iot_verdict_reason(&doubt, IOT_VERDICT_UNKNOWN,
					   "segment %llu of its lifetime has no footer",
					   (unsigned long long)infos[i]->seq);
	}
	if (n > 0)
		check_holes(&l, infos, footers, n, &doubt);

	/* First match wins: a filed loss is a positive fact and outranks all doubt. */
	if (lost.n_lost > 0) {
		*ret_reasons = lost;
		return IOT_OBJECT_LOST;
	}
	*ret_reasons = doubt;
	if (doubt.code != IOT_VERDICT_COMPLETE)
		return IOT_OBJECT_UNKNOWN;
	if (q->first_ns == 0 || q->last_ns == 0 || q->first_ns < infos[0]->attach_ns)
		return IOT_OBJECT_COMPLETE_WITHIN_WINDOW;
	return IOT_OBJECT_COMPLETE;
}
