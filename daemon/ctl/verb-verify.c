// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-verify.c - what the segments can prove: each alone, then together.
 *
 * Everything a footer claims is recomputed from the blocks. The exit code is the worst verdict:
 * 0 complete, 10 lost (each loss with its owner), 11 unknown, 20 torn but recoverable, 21 corrupt.
 * --json: {segments: [{path, seq, verdict, ...}], whole: {verdict, code, ...}} with the fields of
 * verdict-text.c.
 */
#include <json-c/json.h>

#include "daemon/ctl/ctl-util.h"

static int verify_one(struct iot_segment *s, bool color, struct json_object *rows,
		      enum iot_verdict_code *worst)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	char path[2 * 512 + 1];
	int r;

	r = iot_verify_segment(s, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	*worst = IOT_MAX(*worst, v.code);
	if (rows) {
		struct json_object *o = ctl_verdict_json(&v);

		if (!o)
			return ctl_fail(CTL_ERROR, "out of memory");
		json_object_object_add(o, "path", ctl_json_text(iot_segment_path(s)));
		json_object_object_add(o, "seq", ctl_json_u64(iot_segment_info(s)->seq));
		json_object_array_add(rows, o);
		return CTL_OK;
	}
	printf("%s: ", ctl_printable(iot_segment_path(s), path, sizeof(path)));
	ctl_verdict_print(stdout, &v, 1, "", color);
	return CTL_OK;
}

/* The segments together: what no single one can say, and the files that are no segments. */
static int verify_whole(struct iot_scan *scan, bool color, struct json_object *rows,
			enum iot_verdict_code *worst)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	int r;

	r = iot_scan_verdict(scan, true, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	*worst = IOT_MAX(*worst, v.code);
	if (rows) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "segments", json_object_get(rows));
		json_object_object_add(o, "whole", ctl_verdict_json(&v));
		return ctl_json_print(o);
	}
	printf("together: ");
	ctl_verdict_print(stdout, &v, iot_scan_n_segments(scan), "", color);
	return CTL_OK;
}

int verb_verify(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	enum iot_verdict_code worst = IOT_VERDICT_COMPLETE;
	struct json_object *rows = NULL;
	struct iot_error err = {0};
	int r, code = CTL_OK;
	bool color;

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
	color = !c->json && ctl_color_enabled(c);
	for (size_t i = 0; code == CTL_OK && i < iot_scan_n_segments(scan); i++)
		code = verify_one(iot_scan_segment(scan, i), color, rows, &worst);
	if (code == CTL_OK)
		code = verify_whole(scan, color, rows, &worst);
	json_object_put(rows);
	return code != CTL_OK ? code : (int)worst;
}
