// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet-absence.c - what it means that there is no record of a packet, or of a flow, at a probe. Pure; the rules about
 * doubts are those of packet-verdict.c.
 */
#include "format/packet-internal.h"

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

/* Whether anything looked at a probe during [t0, t1]. */
struct looking {
	bool covered;	   /* there is a segment of that time */
	bool attached;	   /* in some segment */
	bool not_attached; /* in some segment */
	const struct iot_probe *row;
};

/* When the program that a probe observes was loaded, by the first segment that knows it; 0: no program. */
static uint64_t loaded_at(const struct iot_doubts *d, uint16_t probe)
{
	for (size_t i = 0; i < d->n_segments; i++) {
		const struct iot_probe *row =
			iot_probe_find(d->segments[i].info, d->segments[i].f, probe);

		if (row)
			return row->program ? row->loaded_ns : 0;
	}
	return 0;
}

static struct looking who_looked(const struct iot_doubts *d, uint16_t probe, uint64_t t0,
				 uint64_t t1)
{
	uint64_t loaded_ns = loaded_at(d, probe);
	struct looking k = {0};

	for (size_t i = 0; i < d->n_segments; i++) {
		const struct iot_doubt_segment *s = &d->segments[i];
		const struct iot_probe *row = iot_probe_find(s->info, s->f, probe);

		if (s->last_ns < t0 || s->first_ns > t1)
			continue;
		k.covered = true;
		/* A program that was not there yet needed nobody to look. */
		if (!row && s->f && s->f->epoch_last_ns < loaded_ns)
			k.attached = true;
		/* Spans are wide: what only the slack reaches does not count against it. */
		else if (row && row->state == IOT_ATTACH_ATTACHED)
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

	iot_doubts_label(d, probe, name, sizeof(name));
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

/* Births, and ends of what no probe has seen before, are counted without a look at whose they are. */
static bool only_counted(const struct iot_doubts *d, uint16_t probe, uint64_t t0, uint64_t t1)
{
	unsigned int k = probe - IOT_FIRST_PACKET_PROBE;

	for (size_t i = 0; k < IOT_N_PACKET_PROBES && i < d->n_segments; i++) {
		const struct iot_doubt_segment *s = &d->segments[i];

		if (s->folded[k] && s->first_ns <= t1 && s->last_ns >= t0)
			return true;
	}
	return false;
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
static bool seen_at(const struct iot_doubts *d, uint16_t probe, const struct iot_whole_life *w)
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
static void check_edges(const struct iot_doubts *d, const struct iot_whole_life *w,
			struct iot_verdict *why)
{
	const struct iot_doubt_segment *last;

	if (d->n_segments == 0)
		return; /* said by a doubt */
	last = &d->segments[d->n_segments - 1];
	if (!(w->flags & IOT_PACKET_FROM_START) &&
	    iot_sub_sat(w->first_ns, IOT_UNSEEN_BEFORE_NS) < d->segments[0].info->attach_ns)
		iot_verdict_reason(
			why, IOT_VERDICT_UNKNOWN,
			"it may be older than the capture, which began before it was seen "
			"by less than %llu s",
			(unsigned long long)(IOT_UNSEEN_BEFORE_NS / 1000000000ULL));
	if (!(w->flags & IOT_PACKET_END) && last->f &&
	    iot_add_sat(w->last_ns, IOT_UNSEEN_BEFORE_NS) > last->f->epoch_last_ns)
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "its end was not observed, and it may have gone on after the "
				   "capture");
}

enum iot_absence iot_doubts_absence(struct iot_doubts *d, const struct iot_packet_life *l,
				    uint16_t probe, struct iot_verdict *ret_why)
{
	struct iot_verdict why = {0};
	enum iot_absence answer;
	struct iot_whole_life w;
	struct looking k;
	char name[64];

	iot_whole_life_init(&w, d, l);
	iot_doubts_label(d, probe, name, sizeof(name));
	k = who_looked(d, probe, w.flags & IOT_PACKET_FROM_START ? w.first_ns : 0,
		       w.flags & IOT_PACKET_END ? w.last_ns : UINT64_MAX);
	if (iot_probe_set_has(&l->probes, probe) || iot_probe_set_has(&w.lost_at, probe)) {
		answer = IOT_ABSENCE_PRESENT;
	} else if (iot_is_frame(&w) || iot_probe_set_has(&d->xdp, probe)) {
		iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
				   iot_is_frame(&w)
					   ? "%s: an XDP program's frame is seen by that program "
					     "only; ask for the flow"
					   : "%s: sees frames before they are packets; ask for the "
					     "flow",
				   name);
		answer = IOT_ABSENCE_NOT_OBSERVED;
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
		(void)iot_check_numbers(&w, &why);
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
		(void)iot_in_doubt(d, &w, probe, &why);
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

	iot_doubts_label(d, q->probe, name, sizeof(name));
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
				   iot_doubts_label(d, q->probe, name, sizeof(name)),
				   partial->info->selection);
	if (only_counted(d, q->probe, q->first_ns, q->last_ns))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%s: some of what it saw was counted without a look at whose it "
				   "was",
				   iot_doubts_label(d, q->probe, name, sizeof(name)));
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
		iot_doubts_label(d, q->probe, name, sizeof(name));
		if (q->n_maybe > 0)
			iot_verdict_reason(
				&why, IOT_VERDICT_UNKNOWN,
				"%s: %llu observations do not say which flow they are of", name,
				(unsigned long long)q->n_maybe);
		if (k.not_attached || !k.covered)
			iot_verdict_reason(&why, IOT_VERDICT_UNKNOWN,
					   "%s: not attached in all segments of the time", name);
		check_coverage(d, q, &why);
		for (size_t i = iot_doubts_begun(d, q->last_ns);
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
