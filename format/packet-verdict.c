// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet-verdict.c - what follows for one packet, one probe, one flow. Pure; packet-verdict.h has the model.
 *
 * How far around its records a packet can be concerned by a doubt depends on the doubt. Lost records
 * were numbered: they matter from the packet's first record to the one that ended it, and not even there
 * if no number is missing. Runs that did not happen left no number, and may have been earlier than the
 * first record, by as long as a packet may wait between two probes. And what is observed when a function
 * returns comes after the packet's own end; but not a TC program's return, whose caller still has the packet. Between
 * two doubts the larger one wins.
 *
 * A frame at an XDP program is no packet yet, and one observation is all of it: what other probes may have lost does
 * not concern it, nor what XDP programs may have lost a packet, which is not older than its sk_buff.
 *
 * A doubt about births and ends is one about identity: the packet may have another id at other times, at any
 * probe. What shows it (a packet where none was born) comes when its second id is seen first, so it matters
 * for as long after the first one's end as a packet may wait.
 */
#include "format/packet-internal.h"

/* From a packet's end to the return of the function that brought it about. */
#define AFTER_END_NS (1ULL * 1000000000)

#define PROTO_TCP 6

const char *iot_packet_verdict_name(enum iot_packet_verdict v)
{
	static const char *const names[IOT_N_PVERDICTS] = {
		[IOT_PVERDICT_NOT_SELECTED] = "not-selected",
		[IOT_PVERDICT_COMPLETE] = "complete",
		[IOT_PVERDICT_WITHIN_WINDOW] = "complete-within-window",
		[IOT_PVERDICT_MERGED] = "merged",
		[IOT_PVERDICT_LOST] = "lost",
		[IOT_PVERDICT_LOST_ENTIRELY] = "lost-entirely",
		[IOT_PVERDICT_UNKNOWN] = "unknown",
	};

	return (size_t)v < IOT_ARRAY_SIZE(names) && names[v] ? names[v] : "invalid";
}

/* ---- a life ---- */

/* +1: a function was entered with the packet, -1: it was left. */
static int passage(uint16_t probe)
{
	switch (probe) {
	case IOT_PROBE_NET_DEV_START_XMIT:
	case IOT_PROBE_GRO_RECEIVE_ENTRY:
	case IOT_PROBE_GRO_FRAGS_ENTRY:
		return 1;
	case IOT_PROBE_NET_DEV_XMIT:
	case IOT_PROBE_GRO_RECEIVE_EXIT:
	case IOT_PROBE_GRO_FRAGS_EXIT:
		return -1;
	default:
		return 0;
	}
}

void iot_packet_life_add(struct iot_packet_life *l, const struct iot_packet *p)
{
	l->id = p->id;
	if (l->n_records == 0 || p->ts_ns < l->first_ns)
		l->first_ns = p->ts_ns;
	if (l->n_records == 0 || p->ts_ns > l->last_ns)
		l->last_ns = p->ts_ns;
	l->n_records++;
	if (p->hop) {
		if (p->hop > 64 || !(l->hops >> (p->hop - 1) & 1))
			l->n_hops++;
		else
			l->twice = true;
		if (p->hop <= 64)
			l->hops |= 1ULL << (p->hop - 1);
		l->max_hop = IOT_MAX(l->max_hop, p->hop);
		if (p->flags & IOT_PACKET_END)
			l->end_hop = p->hop;
	}
	l->n_inside += passage(p->probe);
	l->flags |= p->flags;
	if (!l->parent)
		l->parent = p->parent;
	if (p->flow.ip_proto)
		l->ip_proto = p->flow.ip_proto;
	iot_probe_set_add(&l->probes, p->probe);
}

static bool has_all_numbers(const struct iot_packet_life *l)
{
	if (!(l->flags & IOT_PACKET_FROM_START) || (l->flags & IOT_PACKET_MERGED))
		return false;
	if (!l->end_hop || l->end_hop != l->max_hop || l->max_hop > 64)
		return false;
	return l->hops == UINT64_MAX >> (64 - l->max_hop);
}

void iot_whole_life_init(struct iot_whole_life *w, const struct iot_doubts *d,
			 const struct iot_packet_life *l)
{
	const struct iot_loss *const *losses;
	size_t n = iot_doubts_losses(d, l->id, &losses);

	*w = (struct iot_whole_life){
		.l = l,
		.first_ns = l->n_records ? l->first_ns : UINT64_MAX,
		.last_ns = l->last_ns,
		.flags = l->flags,
		.inside = l->n_inside > 0,
	};
	for (size_t i = 0; l->id && i < n; i++) {
		w->n_lost = iot_add_sat(w->n_lost, losses[i]->n);
		w->first_ns = IOT_MIN(w->first_ns, losses[i]->first_ns);
		w->last_ns = losses[i]->last_ns ? IOT_MAX(w->last_ns, losses[i]->last_ns)
						: UINT64_MAX;
		w->flags |= losses[i]->flags;
		w->inside |= passage(losses[i]->probe) != 0;
		iot_probe_set_add(&w->lost_at, losses[i]->probe);
	}
	if (w->first_ns == UINT64_MAX)
		w->first_ns = 0;
	/* Where an id may be more than one packet by the segments' own word, it is taken for that. */
	if (!d->exact && l->ip_proto == PROTO_TCP)
		w->flags |= IOT_PACKET_MERGED;
	w->numbered = has_all_numbers(l) && !(w->flags & IOT_PACKET_MERGED);
	w->gap = l->max_hop > iot_add_sat(l->n_hops, w->n_lost);
}

/* Each observation of a packet has the next number, up to its end. */
bool iot_check_numbers(const struct iot_whole_life *w, struct iot_verdict *why)
{
	const struct iot_packet_life *l = w->l;

	if (w->gap)
		iot_verdict_reason(
			why, IOT_VERDICT_UNKNOWN,
			"it was observed %u times; %llu are recorded, %llu filed as lost",
			l->max_hop, (unsigned long long)l->n_hops, (unsigned long long)w->n_lost);
	if (l->twice)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "two records of it have the same number");
	if (l->end_hop && l->end_hop < l->max_hop)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "it was observed after its end, as number %u", l->max_hop);
	return !w->gap && !l->twice && (!l->end_hop || l->end_hop == l->max_hop);
}

/* A probe at a function's return, which may come after the packet's end. */
static bool may_come_after_end(const struct iot_whole_life *w, uint16_t probe)
{
	if (passage(probe) < 0)
		return w->inside;
	return !probe && w->inside;
}

/* Of a hook that sees packets being made or given back. */
static bool is_about_identity(const struct iot_doubt *x)
{
	return x->kind == IOT_DOUBT_RUNS && x->probe >= IOT_FIRST_BIRTH_PROBE &&
	       x->probe <= IOT_LAST_END_PROBE;
}

/* The time in which a doubt of this kind at this probe concerns the packet. */
static void doubt_reach(const struct iot_whole_life *w, const struct iot_doubt *x, uint64_t *ret_t0,
			uint64_t *ret_t1)
{
	*ret_t0 = w->flags & IOT_PACKET_FROM_START ? w->first_ns : 0;
	*ret_t1 = w->flags & IOT_PACKET_END ? w->last_ns : UINT64_MAX;
	if (x->kind == IOT_DOUBT_RUNS || x->kind == IOT_DOUBT_CLAIMS)
		*ret_t0 = iot_sub_sat(*ret_t0, IOT_UNSEEN_BEFORE_NS);
	if (is_about_identity(x))
		*ret_t1 = iot_add_sat(*ret_t1, IOT_UNSEEN_BEFORE_NS);
	else if (may_come_after_end(w, x->probe))
		*ret_t1 = iot_add_sat(*ret_t1, AFTER_END_NS);
}

static bool concerns(const struct iot_doubts *d, const struct iot_whole_life *w,
		     const struct iot_doubt *x)
{
	uint64_t t0, t1;

	if (x->probe && iot_probe_set_has(&d->xdp, x->probe) != iot_is_frame(w))
		return false;
	if (iot_is_frame(w) && x->kind != IOT_DOUBT_CLAIMS)
		return false;
	if (w->numbered && x->kind == IOT_DOUBT_RECORDS && !may_come_after_end(w, x->probe))
		return false;
	doubt_reach(w, x, &t0, &t1);
	return x->t0_ns <= t1 && x->t1_ns >= t0;
}

/* Number of doubts that begin at or before t. */
size_t iot_doubts_begun(const struct iot_doubts *d, uint64_t t)
{
	size_t lo = 0, hi = d->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->items[mid].t0_ns <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Doubts that concern the packet, at probe (0 = any). Without ret_why the first one is enough. */
bool iot_in_doubt(const struct iot_doubts *d, const struct iot_whole_life *w, uint16_t probe,
		  struct iot_verdict *ret_why)
{
	uint64_t from = iot_sub_sat(w->flags & IOT_PACKET_FROM_START ? w->first_ns : 0,
				    IOT_UNSEEN_BEFORE_NS);
	/* The longer one of both waits. */
	uint64_t to = w->flags & IOT_PACKET_END ? iot_add_sat(w->last_ns, IOT_UNSEEN_BEFORE_NS)
						: UINT64_MAX;
	bool found = false;

	for (size_t i = iot_doubts_begun(d, to); i > 0 && d->items[i - 1].max_t1_ns >= from; i--) {
		const struct iot_doubt *x = &d->items[i - 1];

		if (probe && x->probe && x->probe != probe && !is_about_identity(x))
			continue;
		if (!concerns(d, w, x))
			continue;
		if (!ret_why)
			return true;
		found = true;
		iot_verdict_reason(ret_why, IOT_VERDICT_UNKNOWN, "%s", x->why);
	}
	return found;
}

const char *iot_doubts_label(const struct iot_doubts *d, uint16_t probe, char *buf, size_t size)
{
	for (size_t i = d->n_segments; i > 0; i--)
		if (iot_probe_find(d->segments[i - 1].info, d->segments[i - 1].f, probe))
			return iot_probe_label(d->segments[i - 1].info, d->segments[i - 1].f, probe,
					       buf, size);
	snprintf(buf, size, "probe %u", probe);
	return buf;
}

static void list_losses(const struct iot_doubts *d, uint64_t id, struct iot_verdict *why)
{
	const struct iot_loss *const *losses;
	size_t n = iot_doubts_losses(d, id, &losses);
	char name[64];

	for (size_t i = 0; i < n; i++) {
		why->n_lost = iot_add_sat(why->n_lost, losses[i]->n);
		iot_verdict_reason(
			why, IOT_VERDICT_LOST, "%s: %llu observations of this packet lost (%s)",
			iot_doubts_label(d, losses[i]->probe, name, sizeof(name)),
			(unsigned long long)losses[i]->n, iot_loss_cause_name(losses[i]->cause));
	}
}

void iot_doubts_judge(struct iot_doubts *d, const struct iot_packet_life *l,
		      struct iot_packet_ruling *ret, struct iot_verdict *ret_why)
{
	struct iot_verdict why = {0};
	bool doubt = false;
	struct iot_whole_life w;

	iot_whole_life_init(&w, d, l);
	*ret = (struct iot_packet_ruling){
		.truncated_start = !(w.flags & IOT_PACKET_FROM_START),
		.truncated_end = !(w.flags & IOT_PACKET_END),
		.merged = w.flags & IOT_PACKET_MERGED,
		.frame = iot_is_frame(&w),
		.n_lost = w.n_lost,
		.lost_at = w.lost_at,
	};
	if (iot_doubts_seal(d) < 0) {
		iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN, "out of memory");
		doubt = true;
	}
	if (l->id == 0) {
		iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
				   "unidentified: losses cannot be held against it");
		doubt = true;
	} else if (l->n_records == 0 && w.n_lost == 0) {
		iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
				   "neither the record nor the ledger has this packet");
		doubt = true;
	}
	if (!iot_check_numbers(&w, &why))
		doubt = true;
	doubt = iot_in_doubt(d, &w, 0, ret_why ? &why : NULL) || doubt;
	ret->doubtful = doubt;
	/* First match wins: a filed loss is a positive fact and outranks all doubt. */
	if (w.n_lost > 0) {
		ret->verdict = l->n_records ? IOT_PVERDICT_LOST : IOT_PVERDICT_LOST_ENTIRELY;
		why = (struct iot_verdict){0};
		if (ret_why)
			list_losses(d, l->id, &why);
		if (ret_why && doubt)
			iot_verdict_reason(&why, IOT_VERDICT_LOST,
					   "beyond these there is doubt whether more is missing");
	} else if (w.flags & IOT_PACKET_NOT_SELECTED) {
		ret->verdict = IOT_PVERDICT_NOT_SELECTED;
		why = (struct iot_verdict){0};
	} else if (doubt) {
		ret->verdict = IOT_PVERDICT_UNKNOWN;
	} else if (ret->merged) {
		ret->verdict = IOT_PVERDICT_MERGED;
	} else if (ret->truncated_start || ret->truncated_end) {
		ret->verdict = IOT_PVERDICT_WITHIN_WINDOW;
	} else {
		ret->verdict = IOT_PVERDICT_COMPLETE;
	}
	if (ret_why)
		*ret_why = why;
}
