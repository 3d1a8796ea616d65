// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-verify.c - what the segments can prove: each alone, then together.
 *
 * Everything a footer claims is recomputed from the blocks. The exit code is the worst verdict:
 * 0 complete, 10 lost (each loss with its owner), 11 unknown, 20 torn (recoverable) or still being
 * recorded, 21 corrupt. Text says each reason once: "together" has those that no segment has alone.
 * Of files of one segment one is read, and all are verified.
 * A verdict is about what is there: the time between two captures is in none of them, so it is said apart.
 * --json: {segments: [{path, seq, copy, verdict, ...}], whole: {verdict, code, ...}} with the fields of
 * verdict-text.c; whole also has between_captures_ns {block, packet}, strings or null.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"

/* Reasons printed so far, worded as the verdict of a chain words them (verify-chain.c). */
struct said {
	char (*reasons)[sizeof(((struct iot_verdict *)NULL)->reasons[0])];
	size_t n;
	size_t n_allocated;
	size_t n_dropped;
};

static void said_done(struct said *said)
{
	free(said->reasons);
}

static int remember(struct said *said, const struct iot_verdict *v, uint64_t seq)
{
	for (size_t i = 0; i < v->n_reasons; i++) {
		if (said->n == said->n_allocated) {
			size_t want = said->n_allocated ? said->n_allocated * 2 : 32;
			void *more = reallocarray(said->reasons, want, sizeof(*said->reasons));

			if (!more)
				return -ENOMEM;
			said->reasons = more;
			said->n_allocated = want;
		}
		snprintf(said->reasons[said->n++], sizeof(*said->reasons), "segment %llu: %.130s",
			 (unsigned long long)seq, v->reasons[i]);
	}
	said->n_dropped += v->n_reasons_dropped;
	return 0;
}

static void drop_said(struct iot_verdict *v, const struct said *said)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n_reasons; i++) {
		bool known = false;

		for (size_t k = 0; k < said->n && !known; k++)
			known = strcmp(v->reasons[i], said->reasons[k]) == 0;
		if (!known && kept++ != i)
			memcpy(v->reasons[kept - 1], v->reasons[i], sizeof(v->reasons[i]));
	}
	v->n_reasons = kept;
}

static int verify_one(struct iot_segment *s, bool copy, enum ctl_print how,
		      struct json_object *rows, struct said *said, enum iot_verdict_code *worst)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	char path[2 * 512 + 1];
	int r;

	r = ctl_verify_segment(s, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	*worst = IOT_MAX(*worst, v.code);
	if (rows) {
		struct json_object *o = ctl_verdict_json(&v);

		if (!o)
			return ctl_fail(CTL_ERROR, "out of memory");
		json_object_object_add(o, "path", ctl_json_text(iot_segment_path(s)));
		json_object_object_add(o, "seq", ctl_json_u64(iot_segment_info(s)->seq));
		json_object_object_add(o, "copy", json_object_new_boolean(copy));
		json_object_array_add(rows, o);
		return CTL_OK;
	}
	if (remember(said, &v, iot_segment_info(s)->seq) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	printf("%s: %s", ctl_printable(iot_segment_path(s), path, sizeof(path)),
	       copy ? "a further copy: " : "");
	ctl_verdict_print(stdout, &v, 1, "", how);
	return CTL_OK;
}

static int say_between(const struct iot_scan *scan, struct json_object *whole)
{
	struct json_object *o = NULL;
	int r = whole ? ctl_between_json(scan, &o) : 0;

	if (whole && r == 0)
		json_object_object_add(whole, "between_captures_ns", o);
	for (int stream = IOT_STREAM_BLOCK; r == 0 && !whole && stream <= IOT_STREAM_PACKET;
	     stream++) {
		char text[CTL_HUMAN_MAX];
		uint64_t ns = 0;

		r = ctl_cover_between(scan, stream, &ns);
		if (ns)
			printf("  of the %s stream, %s lie between captures and are in none\n",
			       iot_stream_name(stream), ctl_human_duration(ns, text));
	}
	return r < 0 ? ctl_fail(CTL_ERROR, "%s", strerror(-r)) : CTL_OK;
}

/* The segments together: what no single one can say, and the files that are no segments. */
static int verify_whole(struct iot_scan *scan, enum ctl_print how, struct json_object *rows,
			const struct said *said, enum iot_verdict_code *worst)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	int r;

	r = ctl_scan_verdict(scan, true, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	*worst = IOT_MAX(*worst, v.code);
	if (rows) {
		struct json_object *o = json_object_new_object(), *whole = ctl_verdict_json(&v);

		json_object_object_add(o, "segments", json_object_get(rows));
		json_object_object_add(o, "whole", whole);
		r = say_between(scan, whole);
		if (r == CTL_OK)
			return ctl_json_print(o);
		json_object_put(o);
		return r;
	}
	drop_said(&v, said);
	/* One segment has said it all, unless there were files beside it that are none. */
	if (iot_scan_n_segments(scan) <= 1 && v.n_reasons == 0 &&
	    v.n_reasons_dropped <= said->n_dropped)
		return CTL_OK;
	printf("together: ");
	ctl_verdict_print(stdout, &v, iot_scan_n_segments(scan), "", how);
	return say_between(scan, NULL);
}

int verb_verify(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	enum iot_verdict_code worst = IOT_VERDICT_COMPLETE;
	_cleanup_(said_done) struct said said = {0};
	struct json_object *rows = NULL;
	struct iot_error err = {0};
	int r, code = CTL_OK;
	enum ctl_print how = CTL_PRINT_PLAIN;

	r = ctl_scan_try(c, argc, argv, &scan, &err);
	if (r < 0) {
		code = ctl_scan_failed(r, &err);
		/* Not one segment, because of damage: that is a verdict too. */
		return r == -EBADMSG ? (int)IOT_VERDICT_CORRUPT : code;
	}
	if (c->json)
		rows = json_object_new_array();
	else
		ctl_pager_open(c);
	if (!c->json && ctl_color_enabled(c))
		how |= CTL_PRINT_COLOR;
	if (c->verbose)
		how |= CTL_PRINT_ALL;
	for (size_t i = 0; code == CTL_OK && i < iot_scan_n_segments(scan); i++)
		code = verify_one(iot_scan_segment(scan, i), false, how, rows, &said, &worst);
	for (size_t i = 0; code == CTL_OK && i < iot_scan_n_copies(scan); i++)
		code = verify_one(iot_scan_copy(scan, i), true, how, rows, &said, &worst);
	if (code == CTL_OK)
		code = verify_whole(scan, how, rows, &said, &worst);
	json_object_put(rows);
	return code != CTL_OK ? code : (int)worst;
}
