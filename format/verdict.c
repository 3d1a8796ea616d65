// SPDX-License-Identifier: BSD-2-Clause
/*
 * verdict.c - what a footer's own claims amount to. Pure: looks at the structs it is given.
 *
 * The default is doubt. A footer is complete only if every rule below finds what it needs: a known
 * epoch window, an attached probe for every hook that the kernel has, a whole-probe row for each
 * attached probe (an absent counter is not 0), balanced rows without unknown fields, and windows
 * that add up to the counters they bound. It is lost only if all that is missing has an owner.
 */
#include "format/books.h"
#include "format/packet-verdict.h"

const char *iot_verdict_name(enum iot_verdict_code code)
{
	switch (code) {
	case IOT_VERDICT_COMPLETE:
		return "complete";
	case IOT_VERDICT_LOST:
		return "lost";
	case IOT_VERDICT_UNKNOWN:
		return "unknown";
	case IOT_VERDICT_TORN:
		return "torn";
	case IOT_VERDICT_CORRUPT:
		return "corrupt";
	}
	return "invalid";
}

static bool has_reason(const struct iot_verdict *v, const char *text)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strcmp(v->reasons[i], text) == 0)
			return true;
	return false;
}

static void add_reason(struct iot_verdict *v, const char *text)
{
	if (has_reason(v, text))
		return;
	if (v->n_reasons == IOT_MAX_REASONS) {
		v->n_reasons_dropped++;
		return;
	}
	snprintf(v->reasons[v->n_reasons++], sizeof(v->reasons[0]), "%s", text);
}

void iot_verdict_reason(struct iot_verdict *v, enum iot_verdict_code code, const char *fmt, ...)
{
	char text[sizeof(v->reasons[0])];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->code = IOT_MAX(v->code, code);
	add_reason(v, text);
}

void iot_verdict_merge(struct iot_verdict *into, const struct iot_verdict *from)
{
	into->code = IOT_MAX(into->code, from->code);
	into->n_lost = iot_add_sat(into->n_lost, from->n_lost);
	into->n_unattributed = iot_add_sat(into->n_unattributed, from->n_unattributed);
	into->n_missed = iot_add_sat(into->n_missed, from->n_missed);
	into->n_records = iot_add_sat(into->n_records, from->n_records);
	into->n_observations = iot_add_sat(into->n_observations, from->n_observations);
	into->n_open = iot_add_sat(into->n_open, from->n_open);
	into->n_no_start = iot_add_sat(into->n_no_start, from->n_no_start);
	into->books_checked = iot_add_sat(into->books_checked, from->books_checked);
	into->books_unbalanced = iot_add_sat(into->books_unbalanced, from->books_unbalanced);
	into->unread |= from->unread;
	into->n_reasons_dropped += from->n_reasons_dropped;
	for (size_t i = 0; i < from->n_reasons; i++)
		add_reason(into, from->reasons[i]);
}

/* A probe that could not see all of the epoch, or not count what it missed. */
static void check_probe(const struct iot_segment_info *info, const struct iot_footer *f,
			const struct iot_probe *p, const struct iot_books_summary *s,
			struct iot_verdict *v)
{
	const struct iot_probe_sums *sums = p->id < IOT_MAX_PROBE_IDS ? &s->probes[p->id] : NULL;
	char name[64];

	iot_probe_label(info, f, p->id, name, sizeof(name));
	switch (p->state) {
	case IOT_ATTACH_ATTACHED:
		break;
	case IOT_ATTACH_ABSENT:	    /* no object can reach a hook that does not exist, */
	case IOT_ATTACH_NOT_NEEDED: /* and another hook's counters stand for this one */
		if (sums && (sums->seen.n || sums->seen.unknown))
			iot_verdict_reason(
				v, IOT_VERDICT_UNKNOWN,
				"%s: counted although the table says it was not attached", name);
		return;
	case IOT_ATTACH_REFUSED:
		/* Of a packet's path it is one point less, which each absence there says; but no id means
		 * anything without its ends. */
		if (info->stream == IOT_STREAM_PACKET && p->id != IOT_PROBE_CONSUME_SKB &&
		    p->id != IOT_PROBE_KFREE_SKB &&
		    (!sums || (!sums->seen.n && !sums->seen.unknown)))
			return;
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: the kernel refused the probe (%s)",
				   name,
				   strerror(p->error < 0 && p->error > -4096 ? -p->error : 0));
		return;
	default:
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: unknown probe state %u", name,
				   p->state);
		return;
	}
	if (p->from_ns > f->epoch_first_ns || (p->to_ns && !p->gone && p->to_ns < f->epoch_last_ns))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: not attached throughout the segment's time", name);
	if (p->miss != IOT_MISS_COUNTED && p->miss != IOT_MISS_UNGUARDED)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: runs the kernel skipped cannot be counted on this kernel",
				   name);
	if (!sums || !sums->user_row)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "%s: the footer does not say how many runs were missed", name);
	else if (sums->missed.unknown && p->miss == IOT_MISS_COUNTED)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: number of missed runs not known",
				   name);
}

static void check_table(const struct iot_segment_info *info, const struct iot_footer *f,
			const struct iot_books_summary *s, struct iot_verdict *v)
{
	const struct iot_probe *complete = iot_probe_find(info, f, IOT_PROBE_BLOCK_COMPLETE);
	size_t n;
	const struct iot_probe *table = iot_probe_table(info, f, &n);
	char name[64];

	if (n == 0)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "the probe table is empty");
	else if (info->stream == IOT_STREAM_BLOCK &&
		 (!complete || complete->state != IOT_ATTACH_ATTACHED))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "the probe that makes the records was not attached");
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			if (table[k].id == table[i].id)
				iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
						   "probe %u is in the table twice", table[i].id);
		check_probe(info, f, &table[i], s, v);
	}
	for (unsigned int id = 0; id < IOT_MAX_PROBE_IDS; id++)
		if (s->probes[id].present && !iot_probe_find(info, f, (uint16_t)id))
			iot_verdict_reason(
				v, IOT_VERDICT_UNKNOWN,
				"%s: in the books but not in the probe table",
				iot_probe_label(info, f, (uint16_t)id, name, sizeof(name)));
	if (s->foreign_ids)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "the books name probes this version does not know");
}

static void check_windows(const struct iot_segment_info *info, const struct iot_footer *f,
			  struct iot_verdict *v)
{
	char name[64];

	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];

		iot_probe_label(info, f, w->probe, name, sizeof(name));
		if (w->t0_ns > w->t1_ns)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "a window of doubt ends before it begins");
		switch (w->kind) {
		case IOT_WINDOW_UNATTRIBUTED:
		case IOT_WINDOW_MISSED:
		case IOT_WINDOW_OUTPUT:
			/* Doubt comes from the sums; 0 in a window bounds nothing. */
			if (w->n == IOT_COUNT_UNKNOWN)
				iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
						   "%s: %s, number not known", name,
						   iot_window_kind_name(w->kind));
			break;
		case IOT_WINDOW_DETACHED:
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: detached for %.3f s", name,
					   w->t1_ns > w->t0_ns ? (double)(w->t1_ns - w->t0_ns) / 1e9
							       : 0.0);
			break;
		case IOT_WINDOW_TORN:
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "part of the file was lost: what it held is not known");
			break;
		default:
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "window of unknown kind %u",
					   w->kind);
			break;
		}
	}
}

/* A counter and the windows that bound it in time must agree, or the doubt has no bounds. */
static void check_windowed(const char *name, const char *what, const struct iot_sum *counter,
			   const struct iot_sum *windows, struct iot_verdict *v)
{
	if (!counter->unknown && !windows->unknown && counter->n != windows->n)
		iot_verdict_reason(
			v, IOT_VERDICT_UNKNOWN, "%s: %llu %s in the books, %llu in windows of time",
			name, (unsigned long long)counter->n, what, (unsigned long long)windows->n);
}

static void check_sums(const struct iot_segment_info *info, const struct iot_footer *f,
		       const struct iot_books_summary *s, struct iot_verdict *v)
{
	for (unsigned int id = 0; id < IOT_MAX_PROBE_IDS; id++) {
		const struct iot_probe_sums *p = &s->probes[id];
		uint64_t owned = p->filed.n;
		char name[64];

		iot_probe_label(info, f, (uint16_t)id, name, sizeof(name));
		/* User-space losses with an owner are those that no window had to take. */
		if (p->user_failed.n > p->window_output.n)
			owned = iot_add_sat(owned, p->user_failed.n - p->window_output.n);
		v->n_lost = iot_add_sat(v->n_lost, owned);
		v->n_unattributed = iot_add_sat(v->n_unattributed, p->unattributed.n);
		v->n_missed = iot_add_sat(v->n_missed, p->missed.n);
		v->n_records = iot_add_sat(v->n_records, p->written.n);
		if (owned > 0)
			iot_verdict_reason(v, IOT_VERDICT_LOST,
					   "%s: %llu observation%s lost, filed by owner", name,
					   (unsigned long long)owned, owned == 1 ? "" : "s");
		if (p->unattributed.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: %llu observation%s lost without an owner", name,
					   (unsigned long long)p->unattributed.n,
					   p->unattributed.n == 1 ? "" : "s");
		if (p->missed.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: the kernel skipped %llu runs", name,
					   (unsigned long long)p->missed.n);
		if (p->identity_full.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: identity map full %llu times", name,
					   (unsigned long long)p->identity_full.n);
		if (p->read_failed.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: %llu kernel fields could not be read", name,
					   (unsigned long long)p->read_failed.n);
		if (p->identity_full.unknown || p->read_failed.unknown)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%s: failures not known", name);
		if (p->window_output.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: %llu records not written, owner not known", name,
					   (unsigned long long)p->window_output.n);
		if (p->window_output.n > p->user_failed.n && !p->user_failed.unknown)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: windows name more unwritten records than the books",
					   name);
		check_windowed(name, "losses without an owner", &p->unattributed,
			       &p->window_unattributed, v);
		check_windowed(name, "missed runs", &p->missed, &p->window_missed, v);
	}
}

void iot_verdict_ledger(const struct iot_segment_info *info, const struct iot_footer *f,
			const struct iot_books_summary *s, struct iot_verdict *v)
{
	for (unsigned int id = 0; id < IOT_MAX_PROBE_IDS; id++) {
		const struct iot_probe_sums *p = &s->probes[id];
		uint64_t user;
		char name[64];

		iot_probe_label(info, f, (uint16_t)id, name, sizeof(name));
		if (p->ledger_filed.unknown || p->ledger_user.unknown)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: ledger entries without a number", name);
		if (!p->filed.unknown && p->filed.n != p->ledger_filed.n)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: %llu losses filed in the books, %llu in the ledger",
					   name, (unsigned long long)p->filed.n,
					   (unsigned long long)p->ledger_filed.n);
		if (p->ledger_unseen.n > 0)
			iot_verdict_reason(v, IOT_VERDICT_LOST,
					   "%s: for %llu of these the kernel ran no program "
					   "(cause unseen)",
					   name, (unsigned long long)p->ledger_unseen.n);
		user = iot_add_sat(p->ledger_user.n, p->window_output.n);
		if (!p->user_failed.unknown && !p->window_output.unknown &&
		    p->user_failed.n != user)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s: %llu records not written by the books, %llu by "
					   "ledger and windows",
					   name, (unsigned long long)p->user_failed.n,
					   (unsigned long long)user);
	}
}

void iot_verdict_source(const struct iot_segment_info *info, const struct iot_footer *f,
			struct iot_verdict *v)
{
	if (!iot_segment_imported(info))
		return;
	iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
			   "imported from %.*s: what that tool lost is not known",
			   (int)IOT_MIN(strcspn(info->source, ":;"), 40U), info->source);
	if (iot_segment_undated(info))
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "imported without a wall clock: its dates mean nothing");
	if (f && f->note[0] && f->reason != IOT_SEAL_RECOVERED)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "imported: %.140s", f->note);
}

void iot_verdict_footer(const struct iot_segment_info *info, const struct iot_footer *f,
			struct iot_verdict *ret)
{
	struct iot_books_summary s;

	*ret = (struct iot_verdict){0};
	if (!f) {
		iot_verdict_reason(ret, IOT_VERDICT_TORN,
				   "no footer: not sealed yet, or its tail is lost");
		return;
	}
	iot_books_sum(f, &s);
	if (f->n_losses > 0)
		iot_books_sum_losses(&s, f->losses, f->n_losses);
	ret->n_open = f->n_open;
	ret->books_checked = s.n_rows;
	ret->books_unbalanced = s.n_unbalanced;

	iot_verdict_source(info, f, ret);
	if (f->reason == IOT_SEAL_RECOVERED)
		iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN, "recovered file%s%.120s",
				   f->note[0] ? ": " : "", f->note);
	else if (f->reason == IOT_SEAL_NONE || f->reason > IOT_SEAL_RECOVERED)
		iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN, "sealed for an unknown reason (%u)",
				   f->reason);
	if (f->epoch_first_ns == 0 || f->epoch_last_ns < f->epoch_first_ns)
		iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN,
				   "the time this segment covers is not known");
	if (s.n_unbalanced > 0)
		iot_verdict_reason(
			ret, IOT_VERDICT_UNKNOWN, "books do not balance: %llu of %llu rows",
			(unsigned long long)s.n_unbalanced, (unsigned long long)s.n_rows);
	if (s.n_unknown > 0)
		iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN,
				   "counters not known in %llu of %llu rows of the books",
				   (unsigned long long)s.n_unknown, (unsigned long long)s.n_rows);
	if (s.duplicate_rows)
		iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN,
				   "the books have two rows for one probe and CPU");
	check_table(info, f, &s, ret);
	check_windows(info, f, ret);
	check_sums(info, f, &s, ret);
	if (f->n_losses > 0)
		iot_verdict_ledger(info, f, &s, ret);
}
