// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet-verdict.c - what follows for one packet, one probe, one flow. Pure; packet-verdict.h has the model.
 *
 * How far around its records a packet can be concerned by a doubt depends on the doubt. Lost records
 * were numbered: they matter from the packet's first record to the one that ended it, and not even there
 * if no number is missing. Runs that did not happen left no number, and may have been earlier than the
 * first record, by as long as a packet may wait between two probes. And what is observed when a function
 * returns comes after the packet's own end. Between two doubts the larger one wins.
 *
 * A doubt about births and ends is one about identity: the packet may have another id at other times, at any
 * probe. What shows it (a packet where none was born) comes when its second id is seen first, so it matters
 * for as long after the first one's end as a packet may wait.
 */
#include "format/packet-internal.h"

/*
 * The longest wait of a packet in a queue that the kernel itself allows by default: fq's horizon
 * (net/sched/sch_fq.c, 5.8), beyond which it drops.
 */
#define UNSEEN_BEFORE_NS (10ULL * 1000000000)
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

const char *iot_absence_name(enum iot_absence a)
{
	static const char *const names[] = {
		[IOT_ABSENCE_PROVED] = "proved",
		[IOT_ABSENCE_PRESENT] = "present",
		[IOT_ABSENCE_NOT_OBSERVED] = "not-observed",
		[IOT_ABSENCE_UNKNOWN] = "unknown",
	};

	return (size_t)a < IOT_ARRAY_SIZE(names) && names[a] ? names[a] : "invalid";
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

/* The life with what the ledger knows of it. */
struct whole_life {
	const struct iot_packet_life *l;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t flags;
	uint64_t n_lost;
	struct iot_probe_set lost_at;
	bool numbered; /* no record of it was lost on its way into the files */
	bool gap;      /* numbers are missing */
	bool returns;  /* functions' returns are observed */
	bool inside;   /* a function that had it may not have returned by its last record */
};

static bool has_all_numbers(const struct iot_packet_life *l)
{
	if (!(l->flags & IOT_PACKET_FROM_START) || (l->flags & IOT_PACKET_MERGED))
		return false;
	if (!l->end_hop || l->end_hop != l->max_hop || l->max_hop > 64)
		return false;
	return l->hops == UINT64_MAX >> (64 - l->max_hop);
}

static void whole_life_init(struct whole_life *w, const struct iot_doubts *d,
			    const struct iot_packet_life *l)
{
	const struct iot_loss *const *losses;
	size_t n = iot_doubts_losses(d, l->id, &losses);

	*w = (struct whole_life){
		.l = l,
		.first_ns = l->n_records ? l->first_ns : UINT64_MAX,
		.last_ns = l->last_ns,
		.flags = l->flags,
		.inside = l->n_inside > 0,
		.returns = d->returns,
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
static bool check_numbers(const struct whole_life *w, struct iot_verdict *why)
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
static bool may_come_after_end(const struct whole_life *w, uint16_t probe)
{
	if (passage(probe) < 0)
		return w->inside;
	return probe ? probe >= IOT_FIRST_RETURN_PROBE : w->inside || w->returns;
}

/* Of a hook that sees packets being made or given back. */
static bool is_about_identity(const struct iot_doubt *x)
{
	return x->kind == IOT_DOUBT_RUNS && x->probe >= IOT_FIRST_BIRTH_PROBE &&
	       x->probe <= IOT_LAST_END_PROBE;
}

/* The time in which a doubt of this kind at this probe concerns the packet. */
static void doubt_reach(const struct whole_life *w, const struct iot_doubt *x, uint64_t *ret_t0,
			uint64_t *ret_t1)
{
	*ret_t0 = w->flags & IOT_PACKET_FROM_START ? w->first_ns : 0;
	*ret_t1 = w->flags & IOT_PACKET_END ? w->last_ns : UINT64_MAX;
	if (x->kind == IOT_DOUBT_RUNS || x->kind == IOT_DOUBT_CLAIMS)
		*ret_t0 = iot_sub_sat(*ret_t0, UNSEEN_BEFORE_NS);
	if (is_about_identity(x))
		*ret_t1 = iot_add_sat(*ret_t1, UNSEEN_BEFORE_NS);
	else if (may_come_after_end(w, x->probe))
		*ret_t1 = iot_add_sat(*ret_t1, AFTER_END_NS);
}

static bool concerns(const struct whole_life *w, const struct iot_doubt *x)
{
	uint64_t t0, t1;

	if (w->numbered && x->kind == IOT_DOUBT_RECORDS && !may_come_after_end(w, x->probe))
		return false;
	doubt_reach(w, x, &t0, &t1);
	return x->t0_ns <= t1 && x->t1_ns >= t0;
}

/* Number of doubts that begin at or before t. */
static size_t begun(const struct iot_doubts *d, uint64_t t)
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
static bool in_doubt(const struct iot_doubts *d, const struct whole_life *w, uint16_t probe,
		     struct iot_verdict *ret_why)
{
	uint64_t from =
		iot_sub_sat(w->flags & IOT_PACKET_FROM_START ? w->first_ns : 0, UNSEEN_BEFORE_NS);
	/* The longer one of both waits. */
	uint64_t to = w->flags & IOT_PACKET_END ? iot_add_sat(w->last_ns, UNSEEN_BEFORE_NS)
						: UINT64_MAX;
	bool found = false;

	for (size_t i = begun(d, to); i > 0 && d->items[i - 1].max_t1_ns >= from; i--) {
		const struct iot_doubt *x = &d->items[i - 1];

		if (probe && x->probe && x->probe != probe && !is_about_identity(x))
			continue;
		if (!concerns(w, x))
			continue;
		if (!ret_why)
			return true;
		found = true;
		iot_verdict_reason(ret_why, IOT_VERDICT_UNKNOWN, "%s", x->why);
	}
	return found;
}

static const char *probe_label(const struct iot_doubts *d, uint16_t probe, char *buf, size_t size)
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
			probe_label(d, losses[i]->probe, name, sizeof(name)),
			(unsigned long long)losses[i]->n, iot_loss_cause_name(losses[i]->cause));
	}
}

void iot_doubts_judge(struct iot_doubts *d, const struct iot_packet_life *l,
		      struct iot_packet_ruling *ret, struct iot_verdict *ret_why)
{
	struct iot_verdict why = {0};
	bool doubt = false;
	struct whole_life w;

	whole_life_init(&w, d, l);
	*ret = (struct iot_packet_ruling){
		.truncated_start = !(w.flags & IOT_PACKET_FROM_START),
		.truncated_end = !(w.flags & IOT_PACKET_END),
		.merged = w.flags & IOT_PACKET_MERGED,
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
	if (!check_numbers(&w, &why))
		doubt = true;
	doubt = in_doubt(d, &w, 0, ret_why ? &why : NULL) || doubt;
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

/* ---- absence ---- */

/* Whether anything looked at a probe during [t0, t1]. */
struct looking {
	bool covered;	   /* there is a segment of that time */
	bool attached;	   /* in some segment */
	bool not_attached; /* in some segment */
	const struct iot_probe *row;
};

static struct looking who_looked(const struct iot_doubts *d, uint16_t probe, uint64_t t0,
				 uint64_t t1)
{
	struct looking k = {0};

	for (size_t i = 0; i < d->n_segments; i++) {
		const struct iot_doubt_segment *s = &d->segments[i];
		const struct iot_probe *row = iot_probe_find(s->info, s->f, probe);

		if (s->last_ns < t0 || s->first_ns > t1)
			continue;
		k.covered = true;
		/* Spans are wide: what only the slack reaches does not count against it. */
		if (row && row->state == IOT_ATTACH_ATTACHED)
			k.attached = true;
		else if (iot_sub_sat(s->last_ns, IOT_EPOCH_SLACK_NS) >= t0 &&
			 iot_add_sat(s->first_ns, IOT_EPOCH_SLACK_NS) <= t1)
			k.not_attached = true;
		if (row)
			k.row = row;
	}
	return k;
}

static enum iot_absence nobody_looked(const struct iot_doubts *d, uint16_t probe,
				      const struct looking *k, struct iot_verdict *why)
{
	char name[64];

	probe_label(d, probe, name, sizeof(name));
	if (!k->row)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "%s: not in the probe table", name);
	else if (k->row->state == IOT_ATTACH_REFUSED)
		iot_verdict_reason(
			why, IOT_VERDICT_UNKNOWN, "%s: the kernel refused the probe (%s)", name,
			strerror(k->row->error < 0 && k->row->error > -4096 ? -k->row->error : 0));
	else
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "%s: %s%s%.96s", name,
				   iot_attach_name(k->row->state), k->row->detail[0] ? ": " : "",
				   k->row->detail);
	return IOT_ABSENCE_NOT_OBSERVED;
}

/* The segment, within [t0, t1], in which the selection left something out at a probe. */
static const struct iot_doubt_segment *left_out(const struct iot_doubts *d, uint16_t probe,
						uint64_t t0, uint64_t t1)
{
	unsigned int k = probe - IOT_FIRST_PACKET_PROBE;

	for (size_t i = 0; k < IOT_N_PACKET_PROBES && i < d->n_segments; i++) {
		const struct iot_doubt_segment *s = &d->segments[i];

		if (s->not_selected[k] && s->first_ns <= t1 && s->last_ns >= t0)
			return s;
	}
	return NULL;
}

/* Events of a socket, which often has no packet to show, or none of ours. */
static bool is_sockets_probe(uint16_t probe)
{
	return probe == IOT_PROBE_TCP_RETRANSMIT_SKB || probe == IOT_PROBE_TCP_SEND_RESET ||
	       probe == IOT_PROBE_UDP_FAIL_QUEUE_RCV_SKB;
}

/* Did anything happen at the probe while the packet may have lived? */
static bool seen_at(const struct iot_doubts *d, uint16_t probe, const struct whole_life *w)
{
	uint64_t t0 = w->flags & IOT_PACKET_FROM_START ? w->first_ns : 0;
	uint64_t t1 = w->flags & IOT_PACKET_END ? w->last_ns : UINT64_MAX;
	unsigned int k = probe - IOT_FIRST_PACKET_PROBE;

	for (size_t i = 0; k < IOT_N_PACKET_PROBES && i < d->n_segments; i++)
		if (d->segments[i].seen[k] && d->segments[i].first_ns <= t1 &&
		    d->segments[i].last_ns >= t0)
			return true;
	return false;
}

/* A packet whose beginning or end was not observed may have gone on where nobody looked. */
static void check_edges(const struct iot_doubts *d, const struct whole_life *w,
			struct iot_verdict *why)
{
	const struct iot_doubt_segment *last;

	if (d->n_segments == 0)
		return; /* said by a doubt */
	last = &d->segments[d->n_segments - 1];
	if (!(w->flags & IOT_PACKET_FROM_START) &&
	    iot_sub_sat(w->first_ns, UNSEEN_BEFORE_NS) < d->segments[0].info->attach_ns)
		iot_verdict_reason(
			why, IOT_VERDICT_UNKNOWN,
			"it may be older than the capture, which began before it was seen "
			"by less than %llu s",
			(unsigned long long)(UNSEEN_BEFORE_NS / 1000000000ULL));
	if (!(w->flags & IOT_PACKET_END) && last->f &&
	    iot_add_sat(w->last_ns, UNSEEN_BEFORE_NS) > last->f->epoch_last_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "its end was not observed, and it may have gone on after the "
				   "capture");
}

enum iot_absence iot_doubts_absence(struct iot_doubts *d, const struct iot_packet_life *l,
				    uint16_t probe, struct iot_verdict *ret_why)
{
	struct iot_verdict why = {0};
	enum iot_absence answer;
	struct whole_life w;
	struct looking k;
	char name[64];

	whole_life_init(&w, d, l);
	probe_label(d, probe, name, sizeof(name));
	k = who_looked(d, probe, w.flags & IOT_PACKET_FROM_START ? w.first_ns : 0,
		       w.flags & IOT_PACKET_END ? w.last_ns : UINT64_MAX);
	if (iot_probe_set_has(&l->probes, probe) || iot_probe_set_has(&w.lost_at, probe)) {
		answer = IOT_ABSENCE_PRESENT;
	} else if (k.covered && !k.attached) {
		answer = nobody_looked(d, probe, &k, &why);
	} else {
		if (iot_doubts_seal(d) < 0)
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN, "out of memory");
		if (l->id == 0 || (l->n_records == 0 && w.n_lost == 0))
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "which packet is meant is not known");
		if (w.flags & IOT_PACKET_NOT_SELECTED)
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "the packet was not selected");
		(void)check_numbers(&w, &why);
		if (k.not_attached || !k.covered)
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "%s: not attached in all segments of its life", name);
		if (is_sockets_probe(probe) && seen_at(d, probe, &w))
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "%s: it does not say of which packet its events are",
					   name);
		check_edges(d, &w, &why);
		/* With tracepoints alone a packet may be selected late, after a translation. */
		if (!(w.flags & IOT_PACKET_FROM_START) &&
		    left_out(d, probe, 0, w.flags & IOT_PACKET_END ? w.last_ns : UINT64_MAX))
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "%s: the packet may have passed before it was selected",
					   name);
		(void)in_doubt(d, &w, probe, &why);
		answer = why.code == IOT_VERDICT_COMPLETE ? IOT_ABSENCE_PROVED
							  : IOT_ABSENCE_UNKNOWN;
	}
	if (ret_why)
		*ret_why = why;
	return answer;
}

/* ---- absence of a flow ---- */

/* Losses at the probe, whoever's they are. true: one is a packet of the flow, within the time. */
static bool flow_in_ledger(const struct iot_doubts *d, const struct iot_absence_query *q,
			   struct iot_verdict *why)
{
	bool present = false;
	char name[64];

	probe_label(d, q->probe, name, sizeof(name));
	for (size_t i = 0; i < d->n_losses; i++) {
		const struct iot_loss *loss = d->losses[i];
		uint64_t last = loss->last_ns ? loss->last_ns : UINT64_MAX;
		enum iot_match m;

		if (loss->probe != q->probe || loss->first_ns > q->last_ns || last < q->first_ns)
			continue;
		m = iot_flow_matches(q->flow, &loss->flow, loss->flags);
		/* It describes the first of them; the others may have been translated, or others'. */
		if (m == IOT_MATCH_YES && loss->first_ns >= q->first_ns && loss->first_ns)
			present = true;
		else if (m != IOT_MATCH_NO || loss->n > 1)
			iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
					   "%s: lost observations that may be of the flow", name);
	}
	return present;
}

/* The capture has to have looked during all of the time. */
static void check_coverage(const struct iot_doubts *d, const struct iot_absence_query *q,
			   struct iot_verdict *why)
{
	const struct iot_doubt_segment *last, *partial;
	char name[64];

	if (d->n_segments == 0)
		return; /* said by a doubt */
	last = &d->segments[d->n_segments - 1];
	if (q->first_ns > q->last_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "the time ends before it begins");
	if (q->first_ns < d->segments[0].info->attach_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "the time begins before the capture did");
	if (last->f && q->last_ns > last->f->epoch_last_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "the time goes on after the capture's last segment");
	partial = left_out(d, q->probe, q->first_ns, q->last_ns);
	if (partial)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%s: packets were left out by the selection (\"%.60s\")",
				   probe_label(d, q->probe, name, sizeof(name)),
				   partial->info->selection);
}

enum iot_absence iot_doubts_absence_of_flow(struct iot_doubts *d, const struct iot_absence_query *q,
					    struct iot_verdict *ret_why)
{
	struct looking k = who_looked(d, q->probe, q->first_ns, q->last_ns);
	struct iot_verdict why = {0};
	enum iot_absence answer;
	char name[64];

	if (iot_doubts_seal(d) < 0)
		iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN, "out of memory");
	if (flow_in_ledger(d, q, &why) || q->n_matching > 0) {
		answer = IOT_ABSENCE_PRESENT;
		why = (struct iot_verdict){0};
	} else if (k.covered && !k.attached) {
		why = (struct iot_verdict){0};
		answer = nobody_looked(d, q->probe, &k, &why);
	} else {
		probe_label(d, q->probe, name, sizeof(name));
		if (q->n_maybe > 0)
			iot_verdict_reason(
				&why, IOT_VERDICT_UNKNOWN,
				"%s: %llu observations do not say which flow they are of", name,
				(unsigned long long)q->n_maybe);
		if (k.not_attached || !k.covered)
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "%s: not attached in all segments of the time", name);
		check_coverage(d, q, &why);
		for (size_t i = begun(d, q->last_ns);
		     i > 0 && d->items[i - 1].max_t1_ns >= q->first_ns; i--) {
			const struct iot_doubt *x = &d->items[i - 1];

			/* A record without an owner is there, and says its flow. */
			if ((x->probe && x->probe != q->probe) || x->kind == IOT_DOUBT_OWNERS ||
			    x->t1_ns < q->first_ns)
				continue;
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN, "%s", x->why);
		}
		answer = why.code == IOT_VERDICT_COMPLETE ? IOT_ABSENCE_PROVED
							  : IOT_ABSENCE_UNKNOWN;
	}
	if (ret_why)
		*ret_why = why;
	return answer;
}
