// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-cat.c - requests in time order, one line each, as text or (--json) as JSON Lines.
 *
 * stdout carries requests and nothing else. What can be said about their completeness follows on
 * stderr, unless it is simply complete: a reader of stdout alone must not mistake silence for
 * proof, so the exit code is 1 where input was damaged.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

static int copy_requests(const struct ctl *c, struct iot_scan *scan, struct ctl_out *out,
			 uint64_t *n_requests)
{
	struct iot_render render = {0};
	struct ctl_naming naming = {.render = &render};
	struct iot_error err = {0};
	struct iot_segment *s;
	struct iot_request req;
	int r;

	for (;;) {
		char *p;

		r = iot_scan_next(scan, &req, &s, &err);
		if (r == IOT_READ_END)
			return 0;
		if (r < 0)
			return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
		ctl_naming_set(&naming, s, &req);
		p = ctl_out_room(out, IOT_RENDER_MAX);
		ctl_out_take(out, c->json ? iot_render_json(p, &req, &render)
					  : iot_render_text(p, &req, &render));
		++*n_requests;
		if (out->error)
			return 0; /* reported by the caller, once */
	}
}

int verb_cat(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	struct iot_error err = {0};
	struct iot_verdict v;
	uint64_t n_requests = 0;
	struct ctl_out out;
	int r, code;

	code = ctl_scan_open(c, argc, argv, &scan);
	if (code != CTL_OK)
		return code;
	ctl_pager_open(c);
	r = ctl_out_init(&out, STDOUT_FILENO);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", strerror(-r));
	iot_scan_columns(scan, IOT_COLS_ALL);
	code = copy_requests(c, scan, &out, &n_requests);
	r = ctl_out_flush(&out);
	ctl_out_done(&out);
	if (code != CTL_OK)
		return code;
	if (r < 0)
		return ctl_output_result(r, CTL_STDOUT);
	/* On a terminal the pager comes first: stderr would be painted over. */
	ctl_pager_close();
	ctl_note_device(c, scan, n_requests);
	r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_code(v.code);
}
