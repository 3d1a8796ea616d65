// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-replay.c - what the packet record holds as a whole: packets, observations, and how many packets have
 * which verdict.
 *
 * Each packet is judged alone, so that a capture that is not complete still says of which packets it is.
 * A lineage is a packet with its clones: its verdict is the worst of its members. --json: {captures:
 * [{capture, segments, unsealed, first_ns, last_ns, selection, identity, observations, unidentified,
 * packets, verdicts: {NAME: n}, frames, frames_lost, lineages, lineage_verdicts: {NAME: n}, observations_lost,
 * observations_lost_at_least, probes: [{probe, state, program, seen, not_selected, folded, written, filed,
 * unattributed, missed}]}], record: the verdict}.
 *
 * A segment without a footer (torn, or still being recorded) has no counters and no ledger: sums over it
 * are lower bounds, said as such here, and null in JSON, where a number is exact.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/packets.h"
#include "format/books.h"

struct replay {
	uint64_t verdicts[IOT_N_PVERDICTS];
	uint64_t lineages[IOT_N_PVERDICTS];
	uint64_t n_lineages;
	uint64_t n_lost;
	uint64_t n_frames; /* at XDP programs: no packets */
	uint64_t n_frames_lost;
};

/* The head of a packet's lineage; parents that are not known end the way. */
static size_t head_of(const struct ctl_capture *c, size_t i)
{
	/* Damaged parents may form a circle. */
	for (unsigned int depth = 0; depth < 64; depth++) {
		const struct iot_packet_life *l = &c->lives[i], *parent;

		if (!(l->flags & IOT_PACKET_CLONE) || !l->parent)
			return i;
		parent = ctl_capture_life(c, l->parent);
		if (!parent || parent == l)
			return i;
		i = (size_t)(parent - c->lives);
	}
	return i;
}

static int judge(struct ctl_capture *c, struct replay *ret)
{
	_cleanup_free_ uint8_t *worst = calloc(c->n_lives + 1, 1);

	if (!worst)
		return ctl_fail(CTL_ERROR, "out of memory");
	*ret = (struct replay){0};
	for (size_t i = 0; i < c->n_lives; i++) {
		struct iot_packet_ruling r;
		size_t head = head_of(c, i);

		iot_doubts_judge(c->doubts, &c->lives[i], &r, NULL);
		ret->n_lost = iot_add_sat(ret->n_lost, r.n_lost);
		if (r.frame) {
			ret->n_frames++;
			ret->n_frames_lost += r.verdict == IOT_PVERDICT_LOST_ENTIRELY;
			continue;
		}
		ret->verdicts[r.verdict]++;
		/* One more, so that 0 is none. */
		worst[head] = (uint8_t)IOT_MAX(worst[head], (unsigned int)r.verdict + 1);
	}
	for (size_t i = 0; i < c->n_lives; i++)
		if (worst[i]) {
			ret->lineages[worst[i] - 1]++;
			ret->n_lineages++;
		}
	return CTL_OK;
}

/* ---- per probe ---- */

struct probe_line {
	/* seen is the sum of those up to unattributed, and of what was read and could not be kept */
	struct iot_sum seen, not_selected, folded, written, filed, unattributed, missed;
};

static void sum_probe(const struct ctl_capture *c, uint16_t probe, struct probe_line *ret)
{
	struct iot_sum *const all[] = {&ret->seen,  &ret->not_selected, &ret->folded, &ret->written,
				       &ret->filed, &ret->unattributed, &ret->missed};

	*ret = (struct probe_line){0};
	for (size_t i = 0; i < c->n; i++) {
		const struct iot_footer *f = c->footers[i];

		for (size_t k = 0; f && k < f->n_books; k++) {
			const struct iot_books *b = &f->books[k];

			if (b->probe != probe)
				continue;
			iot_sum_add(&ret->seen, b->seen);
			iot_sum_add(&ret->not_selected, b->not_selected);
			iot_sum_add(&ret->folded, b->folded);
			iot_sum_add(&ret->written, b->written);
			iot_sum_add(&ret->filed, b->filed);
			iot_sum_add(&ret->unattributed, b->unattributed);
			iot_sum_add(&ret->missed, b->missed);
		}
		/* Without a footer nothing of it is known. */
		if (!f)
			for (size_t k = 0; k < IOT_ARRAY_SIZE(all); k++)
				iot_sum_add(all[k], IOT_COUNT_UNKNOWN);
	}
}

static void sum_cell(struct ctl_table *t, const struct iot_sum *s)
{
	char buf[CTL_HUMAN_MAX];

	ctl_table_cell(t, "%s%s", ctl_human_count(s->n, buf), s->unknown ? "+?" : "");
}

static int print_probes(const struct ctl *c, const struct ctl_capture *cap)
{
	static const char *const columns[] = {"PROBE",	  ">SEEN",  ">NOT-SELECTED", ">FOLDED",
					      ">WRITTEN", ">FILED", ">UNATTRIBUTED", ">MISSED",
					      "STATE",	  NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns);
	char name[64], text[2 * 64 + 1];

	if (!t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);
		const struct iot_probe *row = ctl_capture_probe_row(cap, id);
		struct probe_line line;

		if (!row || row->state != IOT_ATTACH_ATTACHED)
			continue;
		sum_probe(cap, id, &line);
		ctl_capture_probe(cap, id, name, sizeof(name));
		ctl_table_cell(t, "%s", ctl_printable(name, text, sizeof(text)));
		sum_cell(t, &line.seen);
		sum_cell(t, &line.not_selected);
		sum_cell(t, &line.folded);
		sum_cell(t, &line.written);
		sum_cell(t, &line.filed);
		sum_cell(t, &line.unattributed);
		if (row->miss == IOT_MISS_COUNTED)
			sum_cell(t, &line.missed);
		else
			ctl_table_cell(t, "%s", iot_miss_name(row->miss));
		ctl_table_cell(t, "%s", iot_attach_name(row->state));
	}
	printf("\n");
	return ctl_table_print(t, stdout, ctl_color_enabled(c)) < 0
		       ? ctl_fail(CTL_ERROR, "out of memory")
		       : CTL_OK;
}

static struct json_object *probes_json(const struct ctl_capture *cap)
{
	struct json_object *rows = json_object_new_array();
	char name[64];

	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);
		const struct iot_probe *row = ctl_capture_probe_row(cap, id);
		struct json_object *o;
		struct probe_line line;

		if (!row)
			continue;
		sum_probe(cap, id, &line);
		o = json_object_new_object();
		json_object_object_add(
			o, "probe", ctl_json_text(ctl_capture_probe(cap, id, name, sizeof(name))));
		json_object_object_add(o, "state",
				       json_object_new_string(iot_attach_name(row->state)));
		json_object_object_add(o, "program",
				       row->program ? json_object_new_int64(row->program) : NULL);
		json_object_object_add(o, "seen", ctl_json_sum(&line.seen));
		json_object_object_add(o, "not_selected", ctl_json_sum(&line.not_selected));
		json_object_object_add(o, "folded", ctl_json_sum(&line.folded));
		json_object_object_add(o, "written", ctl_json_sum(&line.written));
		json_object_object_add(o, "filed", ctl_json_sum(&line.filed));
		json_object_object_add(o, "unattributed", ctl_json_sum(&line.unattributed));
		json_object_object_add(o, "missed", ctl_json_sum(&line.missed));
		json_object_array_add(rows, o);
	}
	return rows;
}

/* ---- the whole ---- */

static struct json_object *counts_json(const uint64_t counts[IOT_N_PVERDICTS])
{
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; i < IOT_N_PVERDICTS; i++)
		json_object_object_add(o, iot_packet_verdict_name((enum iot_packet_verdict)i),
				       ctl_json_u64(counts[i]));
	return o;
}

static struct json_object *capture_json(const struct ctl_capture *cap, const struct replay *r)
{
	const struct iot_segment_info *info = cap->infos[cap->n - 1];
	struct json_object *o = json_object_new_object();
	char hex[CTL_HUMAN_MAX];

	json_object_object_add(o, "capture",
			       json_object_new_string(ctl_hex_id(info->capture_id, hex)));
	json_object_object_add(o, "host", ctl_json_text(info->host));
	json_object_object_add(o, "segments", ctl_json_u64(cap->n));
	json_object_object_add(o, "unsealed", ctl_json_u64(cap->n_unsealed));
	json_object_object_add(o, "first_ns",
			       ctl_json_id(ctl_capture_realtime_ns(cap, cap->first_ns)));
	json_object_object_add(
		o, "last_ns",
		cap->last_ns ? ctl_json_id(ctl_capture_realtime_ns(cap, cap->last_ns)) : NULL);
	json_object_object_add(o, "selection", ctl_json_text(info->selection));
	json_object_object_add(o, "identity", ctl_json_text(info->identity));
	json_object_object_add(o, "observations", ctl_json_u64(cap->n_records));
	json_object_object_add(o, "unidentified", ctl_json_u64(cap->n_unidentified));
	json_object_object_add(o, "observations_lost",
			       cap->ledgers_whole ? ctl_json_u64(r->n_lost) : NULL);
	json_object_object_add(o, "observations_lost_at_least", ctl_json_u64(r->n_lost));
	json_object_object_add(o, "packets", ctl_json_u64(cap->n_lives - r->n_frames));
	json_object_object_add(o, "verdicts", counts_json(r->verdicts));
	json_object_object_add(o, "frames", ctl_json_u64(r->n_frames));
	json_object_object_add(o, "frames_lost", ctl_json_u64(r->n_frames_lost));
	json_object_object_add(o, "lineages", ctl_json_u64(r->n_lineages));
	json_object_object_add(o, "lineage_verdicts", counts_json(r->lineages));
	json_object_object_add(o, "probes", probes_json(cap));
	return o;
}

static int print_capture(const struct ctl *c, const struct ctl_capture *cap, const struct replay *r)
{
	const struct iot_segment_info *info = cap->infos[cap->n - 1];
	const char *at_least = cap->n_unsealed ? "at least " : "";
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], host[2 * 65 + 1], text[2 * 256 + 1];

	printf("Capture %s on %s, %zu segment%s", ctl_hex_id(info->capture_id, a),
	       ctl_printable(info->host, host, sizeof(host)), cap->n, cap->n == 1 ? "" : "s");
	if (cap->n_unsealed)
		printf(" (%zu without a footer)", cap->n_unsealed);
	printf(", from %.19s to %.19s\n",
	       ctl_human_time(ctl_capture_realtime_ns(cap, cap->first_ns), a),
	       cap->last_ns ? ctl_human_time(ctl_capture_realtime_ns(cap, cap->last_ns), b) : "-");
	printf("  selection     %s\n", ctl_printable(info->selection, text, sizeof(text)));
	printf("  identity      %s\n",
	       ctl_printable(info->identity[0] ? info->identity : "not known", text, sizeof(text)));
	printf("  observations  %s%s", at_least, ctl_human_count(cap->n_records, a));
	printf(", %s%s filed as lost", cap->ledgers_whole ? "" : "at least ",
	       ctl_human_count(r->n_lost, a));
	if (cap->n_unidentified)
		printf(", %s unidentified", ctl_human_count(cap->n_unidentified, a));
	printf("\n  packets       %s%s", at_least, ctl_human_count(cap->n_lives - r->n_frames, a));
	if (r->n_lineages != cap->n_lives - r->n_frames)
		printf(", %s with their clones taken together", ctl_human_count(r->n_lineages, a));
	printf("\n");
	if (r->n_frames)
		printf("  frames        %s%s at XDP programs, %s of them lost\n", at_least,
		       ctl_human_count(r->n_frames, a), ctl_human_count(r->n_frames_lost, b));
	for (unsigned int i = 0; i < IOT_N_PVERDICTS; i++)
		if (r->verdicts[i])
			printf("    %-24s %s\n",
			       iot_packet_verdict_name((enum iot_packet_verdict)i),
			       ctl_human_count(r->verdicts[i], a));
	return print_probes(c, cap);
}

int verb_replay(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(ctl_packets_done) struct ctl_packets packets = {0};
	struct json_object *rows = NULL, *o;
	struct iot_error err = {0};
	struct iot_verdict v;
	struct replay replay = {0};
	int code, r;

	code = ctl_packets_scan(c, argc, argv, &scan);
	if (code == CTL_OK)
		code = ctl_packets_open(scan, &packets);
	if (code != CTL_OK)
		return code;
	if (c->json)
		rows = json_object_new_array();
	else
		ctl_pager_open(c);
	if (c->json && !rows)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; code == CTL_OK && i < packets.n; i++) {
		code = judge(&packets.captures[i], &replay);
		if (code != CTL_OK)
			break;
		if (rows)
			json_object_array_add(rows, capture_json(&packets.captures[i], &replay));
		else
			code = print_capture(c, &packets.captures[i], &replay);
		if (!rows && i + 1 < packets.n)
			printf("\n");
	}
	/* Whole: a block that cannot be read puts single packets in doubt above, and is said here. */
	r = code == CTL_OK ? ctl_scan_verdict(scan, true, &v, &err) : 0;
	if (rows && code == CTL_OK && r == 0) {
		o = json_object_new_object();
		json_object_object_add(o, "captures", json_object_get(rows));
		json_object_object_add(o, "record", ctl_verdict_json(&v));
		code = ctl_json_print(o);
	}
	json_object_put(rows);
	ctl_pager_close();
	if (code != CTL_OK)
		return code;
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_code(&v);
}
