// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-explain.c - one packet, or all packets of a flow: the way each took, whether anything of it is
 * missing, and what its absence at a probe means.
 *
 * A packet is shown with its clones, over all segments of its life. --json: {packets: [as hops.c says], reasons: [why
 * there may be others of the flow, or more of the packet]}.
 * A question about a probe is answered in explain-probe.c.
 */
#include "daemon/ctl/explain.h"
#include "daemon/ctl/hops.h"
#include "daemon/ctl/json.h"
#include "format/render.h"

struct explain {
	const struct ctl *c;
	struct ctl_packets packets;
	bool **marked; /* per capture, per life */
	uint64_t n_marked;
	struct ctl_hops hops; /* of the marked */
	bool unread;
	bool absences; /* say what its absence elsewhere means */
	uint64_t verdicts[IOT_N_PVERDICTS];
	struct json_object *rows; /* NULL: text */
};

static void explain_done(struct explain *x)
{
	for (size_t i = 0; x->marked && i < x->packets.n; i++)
		free(x->marked[i]);
	free(x->marked);
	ctl_hops_done(&x->hops);
	json_object_put(x->rows);
	ctl_packets_done(&x->packets);
}

/* ---- which packets ---- */

/* l NULL: what the files say twice, they do not say alike. */
static void mark(struct explain *x, const struct ctl_capture *c, const struct iot_packet_life *l)
{
	bool *m;

	if (!l)
		return;
	m = &x->marked[c - x->packets.captures][l - c->lives];
	x->n_marked += !*m;
	*m = true;
}

/* The packet and all that was cloned from it. */
static void mark_id(struct explain *x, uint64_t id)
{
	for (size_t k = 0; k < x->packets.n; k++) {
		const struct ctl_capture *c = &x->packets.captures[k];
		const struct iot_packet_life *l = ctl_capture_life(c, id);

		if (!l)
			continue;
		mark(x, c, l);
		for (size_t i = 0; i < c->n_lives; i++) {
			const struct iot_packet_life *up = &c->lives[i];

			/* Damaged parents may form a circle. */
			for (unsigned int depth = 0; up && depth < 64; depth++) {
				if (!(up->flags & IOT_PACKET_CLONE) || !up->parent)
					break;
				if (up->parent == id) {
					mark(x, c, &c->lives[i]);
					break;
				}
				up = ctl_capture_life(c, up->parent);
			}
		}
	}
}

static bool in_time(const struct iot_filter *f, uint64_t first_ns, uint64_t last_ns)
{
	return (!f->since_ns || last_ns >= f->since_ns) &&
	       (!f->until_ns || first_ns <= f->until_ns);
}

/* The files are read more than once, and may be other ones by then. */
static int mark_known(struct explain *x, const struct ctl_capture *c, uint64_t id)
{
	const struct iot_packet_life *l = ctl_capture_life(c, id);

	if (!l)
		return -ESTALE;
	mark(x, c, l);
	return 0;
}

static int mark_flow(struct explain *x, struct iot_scan *scan)
{
	const struct iot_filter *f = &x->c->filter;
	struct iot_error err = {0};
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	while ((r = iot_scan_next_packet(scan, &p, &s, &err)) == 0) {
		const struct ctl_capture *c = ctl_packets_find(&x->packets, s);
		uint64_t ns = iot_segment_realtime_ns(s, p.ts_ns);

		if (p.id && c && in_time(f, ns, ns) &&
		    iot_flow_matches(&f->flow, &p.flow, p.flags) == IOT_MATCH_YES)
			r = mark_known(x, c, p.id);
		if (r < 0)
			break;
	}
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	for (size_t k = 0; k < x->packets.n; k++) {
		const struct ctl_capture *c = &x->packets.captures[k];

		for (size_t i = 0; i < c->n; i++)
			for (size_t j = 0; c->footers[i] && j < c->footers[i]->n_losses; j++) {
				const struct iot_loss *loss = &c->footers[i]->losses[j];
				const struct iot_segment *of = c->segments[i];

				if (loss->id && loss->n &&
				    in_time(f, iot_segment_realtime_ns(of, loss->first_ns),
					    iot_segment_realtime_ns(of, loss->last_ns)) &&
				    iot_flow_matches(&f->flow, &loss->flow, loss->flags) ==
					    IOT_MATCH_YES)
					r = mark_known(x, c, loss->id);
				if (r < 0)
					return ctl_fail(CTL_ERROR, "%s", strerror(-r));
			}
	}
	return CTL_OK;
}

/* ---- their records ---- */

static int collect(struct explain *x, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	struct iot_error err = {0};
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	r = ctl_packets_scan(x->c, argc, argv, &scan);
	if (r != CTL_OK)
		return r;
	if (!x->unread && ctl_scan_whole(scan, &err) < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text);
	while ((r = iot_scan_next_packet(scan, &p, &s, &err)) == 0) {
		const struct ctl_capture *c = ctl_packets_find(&x->packets, s);
		const struct iot_packet_life *l = c ? ctl_capture_life(c, p.id) : NULL;

		if (!l || !x->marked[c - x->packets.captures][l - c->lives])
			continue;
		r = ctl_hops_add(&x->hops, c, &p, s);
		if (r < 0)
			break;
	}
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	ctl_hops_sort(&x->hops, &x->packets);
	return CTL_OK;
}

/* ---- as text ---- */

static void print_reasons(const struct iot_verdict *why, const char *prefix)
{
	char text[2 * sizeof(why->reasons[0]) + 1];

	for (size_t i = 0; i < why->n_reasons; i++)
		printf("%s- %s\n", prefix, ctl_printable(why->reasons[i], text, sizeof(text)));
	if (why->n_reasons_dropped)
		printf("%s- and %zu more reasons\n", prefix, why->n_reasons_dropped);
}

static enum ctl_style verdict_style(enum iot_packet_verdict v)
{
	return v >= IOT_PVERDICT_LOST ? CTL_STYLE_WARN : CTL_STYLE_GOOD;
}

/* In words: how much of its life the record can have seen. */
static const char *extent(const struct iot_packet_ruling *r)
{
	if (r->verdict == IOT_PVERDICT_NOT_SELECTED)
		return ", only its always-on events";
	if (r->truncated_start && r->truncated_end)
		return ", neither beginning nor end observed";
	if (r->truncated_start)
		return ", beginning not observed";
	return r->truncated_end ? ", end not observed" : "";
}

static void print_absences(const struct ctl_capture *c, const struct iot_packet_life *l)
{
	char name[64], text[2 * 64 + 1];
	unsigned int n_not_wanted = 0;

	printf("  not seen at:\n");
	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);
		struct iot_verdict why;
		const struct iot_probe *row = ctl_capture_probe_row(c, id);
		enum iot_absence a;

		if (!row || ctl_probe_only_counts(id))
			continue;
		a = iot_doubts_absence(c->doubts, l, id, &why);
		/* Lost there is said above. */
		if (a == IOT_ABSENCE_PRESENT)
			continue;
		/* Most of them by default: the others would drown. */
		if (a == IOT_ABSENCE_NOT_OBSERVED && row->state == IOT_ATTACH_NOT_NEEDED) {
			n_not_wanted++;
			continue;
		}
		ctl_capture_probe(c, id, name, sizeof(name));
		printf("    %-24s %s%s\n", ctl_printable(name, text, sizeof(text)),
		       a == IOT_ABSENCE_PROVED	       ? "it was not there (proved)"
		       : a == IOT_ABSENCE_NOT_OBSERVED ? "nothing looked there"
						       : "unknown",
		       a == IOT_ABSENCE_PROVED && (l->flags & IOT_PACKET_MERGED)
			       ? ", none of the packets with this id"
			       : "");
		print_reasons(&why, "      ");
	}
	if (n_not_wanted)
		printf("    nothing looked at %u probes that were not asked for\n", n_not_wanted);
}

static void print_packet(const struct explain *x, struct ctl_capture *c,
			 const struct iot_packet_life *l, const struct iot_packet_ruling *r,
			 const struct iot_verdict *why)
{
	bool color = ctl_color_enabled(x->c);
	struct iot_render_packet render = {0};
	struct ctl_packet_naming naming = {.render = &render};
	const struct ctl_hop *hops;
	char line[IOT_RENDER_MAX], of[2 * 65 + 64] = "", host[2 * 65 + 1], hex[CTL_HUMAN_MAX];
	size_t n;

	/* Each capture counts for itself. */
	if (x->packets.n > 1)
		snprintf(of, sizeof(of), " of capture %.8s on %s",
			 ctl_hex_id(c->infos[0]->capture_id, hex),
			 ctl_printable(c->infos[0]->host, host, sizeof(host)));
	printf("Packet %llu%s: %s%s%s%s\n", (unsigned long long)l->id, of,
	       ctl_style_on(color, verdict_style(r->verdict)), iot_packet_verdict_name(r->verdict),
	       ctl_style_off(color), extent(r));
	if (r->merged)
		printf("  more than one packet may stand behind this id: an absence holds for all "
		       "of "
		       "them\n");
	print_reasons(why, "  ");
	if (l->parent)
		printf("  %s packet %llu\n",
		       l->flags & IOT_PACKET_MERGED_INTO ? "merged into" : "born from",
		       (unsigned long long)l->parent);
	hops = ctl_hops_of(&x->hops, &x->packets, c, l->id, &n);
	for (size_t i = 0; i < n; i++) {
		size_t len;

		ctl_packet_naming_set(&naming, hops[i].s, &hops[i].p);
		len = iot_render_packet_text(line, &hops[i].p, &render);
		printf("  ");
		fwrite(line, 1, len, stdout);
	}
	if (x->absences)
		print_absences(c, l);
}

/* ---- the verb ---- */

static void show(struct explain *x)
{
	for (size_t k = 0; k < x->packets.n; k++) {
		struct ctl_capture *c = &x->packets.captures[k];

		for (size_t i = 0; i < c->n_lives; i++) {
			struct iot_packet_ruling r;
			struct iot_verdict why;

			if (!x->marked[k][i])
				continue;
			iot_doubts_judge(c->doubts, &c->lives[i], &r, &why);
			x->verdicts[r.verdict]++;
			if (x->rows)
				json_object_array_add(x->rows,
						      ctl_packet_json(&x->packets, &x->hops, c,
								      &c->lives[i], x->absences));
			else
				print_packet(x, c, &c->lives[i], &r, &why);
		}
	}
}

static int explain_code(const struct explain *x)
{
	/* Of a packet that was not selected nothing says what else became of it. */
	if (x->n_marked == 0 || x->verdicts[IOT_PVERDICT_UNKNOWN] ||
	    x->verdicts[IOT_PVERDICT_NOT_SELECTED])
		return IOT_VERDICT_UNKNOWN;
	return x->verdicts[IOT_PVERDICT_LOST] || x->verdicts[IOT_PVERDICT_LOST_ENTIRELY]
		       ? IOT_VERDICT_LOST
		       : CTL_OK;
}

static void print_totals(const struct explain *x)
{
	const char *sep = "";

	printf("%llu packets: ", (unsigned long long)x->n_marked);
	for (unsigned int i = 0; i < IOT_N_PVERDICTS; i++) {
		if (!x->verdicts[i])
			continue;
		printf("%s%llu %s", sep, (unsigned long long)x->verdicts[i],
		       iot_packet_verdict_name((enum iot_packet_verdict)i));
		sep = ", ";
	}
	printf("\n");
}

static int explain_packets(struct explain *x, struct iot_scan *scan, uint64_t id, int argc,
			   char **argv)
{
	struct iot_verdict beside = *iot_scan_opening(scan);
	struct json_object *o;
	int code = CTL_OK;

	x->marked = calloc(x->packets.n + 1, sizeof(bool *));
	if (!x->marked)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < x->packets.n; i++) {
		x->marked[i] = calloc(x->packets.captures[i].n_lives + 1, sizeof(bool));
		if (!x->marked[i])
			return ctl_fail(CTL_ERROR, "out of memory");
	}
	x->absences = id != 0;
	x->unread = beside.unread;
	if (id)
		mark_id(x, id);
	else
		code = mark_flow(x, scan);
	if (code == CTL_OK && x->n_marked > 0)
		code = collect(x, argc, argv);
	if (code != CTL_OK)
		return code;
	/* Whatever is said of those that are in the record: there may have been more. */
	if (!id)
		ctl_selected_packets(scan, &x->c->filter, &beside);
	if (x->c->json)
		x->rows = json_object_new_array();
	else
		ctl_pager_open(x->c);
	if (x->c->json && !x->rows)
		return ctl_fail(CTL_ERROR, "out of memory");
	show(x);
	if (x->rows) {
		o = json_object_new_object();
		json_object_object_add(o, "packets", json_object_get(x->rows));
		json_object_object_add(o, "reasons", ctl_json_reasons(&beside));
		code = ctl_json_print(o);
	} else if (x->n_marked > 1) {
		print_totals(x);
	}
	ctl_pager_close();
	if (x->n_marked == 0)
		(void)ctl_fail(CTL_OK,
			       id ? "neither the record nor the ledger has this packet"
				  : "no packet of this flow; --probe asks what that proves");
	if (code != CTL_OK)
		return code;
	code = explain_code(x);
	if (beside.code == IOT_VERDICT_COMPLETE)
		return code;
	/* A packet's record may be where nothing could be read. */
	ctl_verdict_print(stderr, &beside, iot_scan_n_segments(scan),
			  "iotracectl: ", CTL_PRINT_PLAIN);
	return IOT_MAX(code, (int)IOT_VERDICT_UNKNOWN);
}

int verb_explain(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(explain_done) struct explain x = {.c = c};
	uint64_t id = 0;
	int code;

	if (!c->filter.flow.set && !c->filter.probe[0]) {
		if (argc < 2 || iot_parse_u64(argv[1], &id) < 0 || !id)
			return ctl_fail(CTL_USAGE,
					"explain needs a packet's id, --flow or --probe");
		if (c->filter.since_ns || c->filter.until_ns)
			return ctl_fail(
				CTL_USAGE,
				"--since and --until go with --flow or --probe: a packet is "
				"explained whole");
		argc--;
		argv++;
	}
	code = ctl_packets_scan(c, argc, argv, &scan);
	if (code == CTL_OK)
		code = ctl_packets_open(scan, &x.packets);
	if (code != CTL_OK)
		return code;
	if (c->filter.probe[0])
		return explain_probe(c, scan, &x.packets);
	return explain_packets(&x, scan, id, argc, argv);
}
