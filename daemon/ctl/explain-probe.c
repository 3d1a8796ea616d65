// SPDX-License-Identifier: BSD-2-Clause
/*
 * explain-probe.c - "no packet of flow F reached probe P between T0 and T1": proved, present or unknown.
 *
 * Each capture answers for the part of the time that it covers; a part that none covers is unknown. The
 * captures of several hosts answer together: present on one is present, and absent is proved only if every
 * machine that was given proves it. One whose captures cover nothing of the time, or that recorded no packets,
 * proves nothing: whoever gave it would take silence for its word. --json: {probe, flow, answer,
 * captures: [{capture, host, first_ns, last_ns, answer, matching, packets: [ID...], reasons[]}], reasons[]}.
 */
#include "daemon/ctl/explain.h"
#include "daemon/ctl/json.h"
#include "format/books.h"

#define SHOWN_IDS 10U

struct answer {
	struct ctl_capture *c;
	struct ctl_part *parts; /* of its time, that are asked about */
	size_t n_parts;
	uint16_t probe;
	uint64_t n_matching;
	uint64_t n_maybe;
	enum iot_absence a;
	struct iot_verdict why;
	uint64_t ids[SHOWN_IDS];
	size_t n_ids;
};

struct answers {
	struct answer *items;
	size_t n;
};

/* A record of the time may lie just past the end that its epoch has. */
static bool is_asked(const struct answer *x)
{
	return x->n_parts > 0 || x->n_matching > 0;
}

static void answers_done(struct answers *a)
{
	for (size_t i = 0; a->items && i < a->n; i++)
		free(a->items[i].parts);
	free(a->items);
}

static int count_records(const struct ctl *c, struct iot_scan *scan, struct ctl_packets *packets,
			 struct answer *answers)
{
	struct iot_error err = {0};
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	while ((r = iot_scan_next_packet(scan, &p, &s, &err)) == 0) {
		const struct ctl_capture *cap = ctl_packets_find(packets, s);
		struct answer *x = cap ? &answers[cap - packets->captures] : NULL;

		/* When a record was is told by its own segment's clocks, as every verb does. */
		if (!x || p.probe != x->probe ||
		    !iot_filter_match_time(&c->filter, iot_segment_realtime_ns(s, p.ts_ns)))
			continue;
		switch (iot_flow_matches(&c->filter.flow, &p.flow, p.flags)) {
		case IOT_MATCH_YES:
			x->n_matching++;
			if (p.id && x->n_ids < SHOWN_IDS)
				x->ids[x->n_ids++] = p.id;
			break;
		case IOT_MATCH_MAYBE:
			x->n_maybe++;
			break;
		case IOT_MATCH_NO:
			break;
		}
	}
	return r < 0 ? ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r)) : CTL_OK;
}

static int cmp_answer(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;
	int c = iot_cmp_u64(ctl_capture_realtime_ns(x->c, x->c->first_ns),
			    ctl_capture_realtime_ns(y->c, y->c->first_ns));

	return c ? c
		 : memcmp(x->c->infos[0]->capture_id, y->c->infos[0]->capture_id,
			  sizeof(x->c->infos[0]->capture_id));
}

static bool same_machine(const struct iot_segment_info *a, const struct iot_segment_info *b)
{
	/* By name as well: clones have one id, and some machines have none. */
	return memcmp(a->machine_id, b->machine_id, sizeof(a->machine_id)) == 0 &&
	       strcmp(a->host, b->host) == 0;
}

/* Machines that were given, and have no packet capture to ask. */
static void check_silent(struct iot_scan *scan, const struct answer *answers, size_t n,
			 struct iot_verdict *why)
{
	const struct iot_segment_info *last = NULL;

	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment_info *info = iot_segment_info(iot_scan_segment(scan, i));
		bool known = last && same_machine(last, info);

		for (size_t k = 0; !known && k < n; k++)
			known = same_machine(answers[k].c->infos[0], info);
		if (known)
			continue;
		last = info;
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "%.64s: it recorded no packets",
				   info->host);
	}
}

static int check_gaps(const struct ctl *c, struct answer *answers, size_t n,
		      struct iot_verdict *why)
{
	_cleanup_free_ struct ctl_span *spans = NULL;
	size_t n_spans = 0;

	for (size_t i = 0; i < n; i++)
		n_spans += answers[i].c->n;
	spans = calloc(n_spans + 1, sizeof(*spans));
	if (!spans)
		return -ENOMEM;
	qsort(answers, n, sizeof(*answers), cmp_answer);
	n_spans = 0;
	for (size_t i = 0; i < n; i++) {
		struct ctl_capture *cap = answers[i].c;

		ctl_capture_spans(cap, spans + n_spans);
		n_spans += cap->n;
		for (size_t k = 0; k < cap->n; k++)
			ctl_step_check(&c->filter, cap->infos[k], cap->footers[k], why);
	}
	ctl_cover_check(&c->filter, spans, n_spans, why);
	return 0;
}

/* The capture's word on all parts of the time. */
static void decide(const struct ctl *c, struct answer *x)
{
	bool unknown = false, looked = false;

	if (x->n_matching > 0) {
		x->a = IOT_ABSENCE_PRESENT;
		return;
	}
	for (size_t i = 0; i < x->n_parts; i++) {
		struct iot_absence_query q = {
			.flow = &c->filter.flow,
			.probe = x->probe,
			.first_ns = x->parts[i].first_ns,
			.last_ns = x->parts[i].last_ns,
			/* Once, not per part. */
			.n_maybe = i == 0 ? x->n_maybe : 0,
		};
		struct iot_verdict why = {0};
		enum iot_absence a = IOT_ABSENCE_NOT_OBSERVED;

		if (x->probe)
			a = iot_doubts_absence_of_flow(x->c->doubts, &q, &why);
		if (a == IOT_ABSENCE_PRESENT) {
			x->a = a;
			x->why = why;
			return;
		}
		unknown |= a != IOT_ABSENCE_PROVED;
		looked |= a != IOT_ABSENCE_NOT_OBSERVED;
		iot_verdict_merge(&x->why, &why);
	}
	x->a = !looked	 ? IOT_ABSENCE_NOT_OBSERVED
	       : unknown ? IOT_ABSENCE_UNKNOWN
			 : IOT_ABSENCE_PROVED;
}

/* From when to when, by the wall clock; UINT64_MAX: its end is not known. */
static void wall_time(const struct answer *x, uint64_t *ret_first_ns, uint64_t *ret_last_ns)
{
	uint64_t first = UINT64_MAX, last = 0;

	if (x->n_parts == 0)
		first = last = ctl_capture_realtime_ns(x->c, x->c->last_ns);
	for (size_t i = 0; i < x->n_parts; i++) {
		first = IOT_MIN(first, x->parts[i].wall_first_ns);
		last = IOT_MAX(last, x->parts[i].wall_last_ns);
	}
	*ret_first_ns = first;
	*ret_last_ns = last;
}

static struct json_object *answer_json(const struct answer *x)
{
	struct json_object *o = json_object_new_object(), *ids = json_object_new_array();
	char hex[CTL_HUMAN_MAX];
	uint64_t first, last;

	wall_time(x, &first, &last);
	json_object_object_add(o, "capture",
			       json_object_new_string(ctl_hex_id(x->c->infos[0]->capture_id, hex)));
	json_object_object_add(o, "host", ctl_json_text(x->c->infos[0]->host));
	json_object_object_add(o, "first_ns", ctl_json_id(first));
	json_object_object_add(o, "last_ns", last == UINT64_MAX ? NULL : ctl_json_id(last));
	json_object_object_add(o, "answer", json_object_new_string(iot_absence_name(x->a)));
	json_object_object_add(o, "matching", ctl_json_u64(x->n_matching));
	for (size_t i = 0; i < x->n_ids; i++)
		json_object_array_add(ids, ctl_json_id(x->ids[i]));
	json_object_object_add(o, "packets", ids);
	json_object_object_add(o, "reasons", ctl_json_reasons(&x->why));
	return o;
}

static void print_answer(const struct answer *x, const char *probe)
{
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], text[2 * sizeof(x->why.reasons[0]) + 1];
	uint64_t first, last;

	wall_time(x, &first, &last);
	printf("%s, from %.19s to %.19s: ", ctl_printable(probe, text, sizeof(text)),
	       ctl_human_time(first, a), last == UINT64_MAX ? "-" : ctl_human_time(last, b));
	switch (x->a) {
	case IOT_ABSENCE_PROVED:
		printf("no packet was there (proved)\n");
		break;
	case IOT_ABSENCE_PRESENT:
		if (x->n_matching)
			printf("present, %s observations of packets",
			       ctl_human_count(x->n_matching, a));
		else
			printf("present: an observation of such a packet was lost");
		for (size_t i = 0; i < x->n_ids; i++)
			printf(" %llu", (unsigned long long)x->ids[i]);
		printf("%s\n", x->n_matching > x->n_ids ? " ..." : "");
		break;
	case IOT_ABSENCE_NOT_OBSERVED:
		printf("unknown, nothing looked there\n");
		break;
	case IOT_ABSENCE_UNKNOWN:
		printf("unknown\n");
		break;
	}
	for (size_t i = 0; i < x->why.n_reasons; i++)
		printf("  - %s\n", ctl_printable(x->why.reasons[i], text, sizeof(text)));
	if (x->why.n_reasons_dropped)
		printf("  - and %zu more reasons\n", x->why.n_reasons_dropped);
}

static enum iot_absence together(const struct answer *answers, size_t n,
				 const struct iot_verdict *gaps)
{
	bool any = false, unknown = gaps->n_reasons > 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_asked(&answers[i]))
			continue;
		any = true;
		if (answers[i].a == IOT_ABSENCE_PRESENT)
			return IOT_ABSENCE_PRESENT;
		unknown |= answers[i].a != IOT_ABSENCE_PROVED;
	}
	return any && !unknown ? IOT_ABSENCE_PROVED : IOT_ABSENCE_UNKNOWN;
}

/* No capture knows such a probe: likely a slip of the finger. */
static int no_such_probe(const struct ctl *c, const struct ctl_packets *packets)
{
	char labels[IOT_N_PACKET_PROBES][64], text[2 * 48 + 1];
	const char *names[IOT_N_PACKET_PROBES], *hint;
	size_t n = 0;

	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);

		if (!ctl_capture_probe_row(&packets->captures[0], id))
			continue;
		names[n] = ctl_capture_probe(&packets->captures[0], id, labels[n], 64);
		n++;
	}
	hint = ctl_suggest(c->filter.probe, names, n);
	return ctl_fail(CTL_ERROR, "no probe '%s' in these segments%s%s%s",
			ctl_printable(c->filter.probe, text, sizeof(text)),
			hint ? "; did you mean '" : "", hint ? hint : "", hint ? "'?" : "");
}

static int print_all(const struct ctl *c, const struct answer *answers, size_t n,
		     enum iot_absence all, const struct iot_verdict *gaps)
{
	struct json_object *o, *rows;
	char text[2 * sizeof(gaps->reasons[0]) + 1];

	if (c->json) {
		o = json_object_new_object();
		rows = json_object_new_array();
		json_object_object_add(o, "probe", ctl_json_text(c->filter.probe));
		json_object_object_add(o, "answer", json_object_new_string(iot_absence_name(all)));
		for (size_t i = 0; i < n; i++)
			if (is_asked(&answers[i]))
				json_object_array_add(rows, answer_json(&answers[i]));
		json_object_object_add(o, "captures", rows);
		json_object_object_add(o, "reasons", ctl_json_reasons(gaps));
		return ctl_json_print(o);
	}
	for (size_t i = 0; i < n; i++)
		if (is_asked(&answers[i]))
			print_answer(&answers[i], c->filter.probe);
	for (size_t i = 0; i < gaps->n_reasons; i++)
		printf("  - %s\n", ctl_printable(gaps->reasons[i], text, sizeof(text)));
	if (n > 1 || gaps->n_reasons)
		printf("together: %s\n", iot_absence_name(all));
	return CTL_OK;
}

int explain_probe(const struct ctl *c, struct iot_scan *scan, struct ctl_packets *packets)
{
	_cleanup_(answers_done) struct answers answers = {0};
	struct iot_verdict gaps = {0};
	enum iot_absence all;
	bool known = false, asked = false;
	int code;

	answers.items = calloc(packets->n, sizeof(*answers.items));
	if (!answers.items)
		return ctl_fail(CTL_ERROR, "out of memory");
	answers.n = packets->n;
	for (size_t i = 0; i < answers.n; i++) {
		struct answer *x = &answers.items[i];

		x->c = &packets->captures[i];
		x->probe = ctl_capture_probe_id(x->c, c->filter.probe);
		known |= x->probe != 0;
		if (ctl_capture_asked(x->c, &c->filter, &x->parts, &x->n_parts) < 0)
			return ctl_fail(CTL_ERROR, "out of memory");
		asked |= x->n_parts > 0;
	}
	if (!known)
		return no_such_probe(c, packets);
	code = count_records(c, scan, packets, answers.items);
	if (code != CTL_OK)
		return code;
	for (size_t i = 0; i < answers.n; i++)
		decide(c, &answers.items[i]);
	/* What could not be read may be just the packet that is asked for. */
	iot_verdict_merge(&gaps, iot_scan_opening(scan));
	if (check_gaps(c, answers.items, answers.n, &gaps) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	check_silent(scan, answers.items, answers.n, &gaps);
	if (!asked && gaps.n_reasons == 0)
		iot_verdict_reason(&gaps, IOT_VERDICT_UNKNOWN,
				   "the wall clock was set past that time");
	all = together(answers.items, answers.n, &gaps);
	code = print_all(c, answers.items, answers.n, all, &gaps);
	if (code != CTL_OK)
		return code;
	switch (all) {
	case IOT_ABSENCE_PROVED:
		return CTL_OK;
	case IOT_ABSENCE_PRESENT:
		/* No less true for it; but how many there were is not known. */
		(void)ctl_damage_say(iot_scan_opening(scan), iot_scan_n_segments(scan));
		return CTL_PRESENT;
	default:
		return IOT_VERDICT_UNKNOWN;
	}
}
