// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-cat.c - requests and observations of packets in time order, one line each, as text or (--json)
 * as JSON Lines.
 *
 * stdout carries records and nothing else. What can be said about their completeness follows on
 * stderr, unless it is simply complete: a reader of stdout alone must not mistake silence for
 * proof, so the exit code is 1 where input was damaged.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

/* The next record of each stream, so that both come out in order of the wall clock. */
struct heads {
	struct iot_scan *scan;
	struct iot_render render;
	struct iot_render_packet packet_render;
	struct ctl_naming naming;
	struct ctl_packet_naming packet_naming;
	struct iot_request request;
	struct iot_packet packet;
	bool has_request;
	bool has_packet;
};

static int next_request(struct heads *h, struct iot_error *err)
{
	struct iot_segment *s;
	int r = iot_scan_next(h->scan, &h->request, &s, err);

	h->has_request = r == 0;
	if (r == 0)
		ctl_naming_set(&h->naming, s, &h->request);
	return r < 0 ? r : 0;
}

static int next_packet(struct heads *h, struct iot_error *err)
{
	struct iot_segment *s;
	int r = iot_scan_next_packet(h->scan, &h->packet, &s, err);

	h->has_packet = r == 0;
	if (r == 0)
		ctl_packet_naming_set(&h->packet_naming, s, &h->packet);
	return r < 0 ? r : 0;
}

static int copy_records(const struct ctl *c, struct iot_scan *scan, struct ctl_out *out,
			uint64_t *n_records)
{
	struct iot_error err = {0};
	struct heads h = {.scan = scan};
	int r;

	h.naming.render = &h.render;
	h.packet_naming.render = &h.packet_render;
	r = next_request(&h, &err);
	if (r == 0)
		r = next_packet(&h, &err);
	/* An output error is reported by the caller, once. */
	while (r == 0 && !out->error && (h.has_request || h.has_packet)) {
		char *p = ctl_out_room(out, IOT_RENDER_MAX);

		++*n_records;
		if (h.has_request &&
		    (!h.has_packet || h.render.realtime_ns <= h.packet_render.realtime_ns)) {
			ctl_out_take(out, c->json ? iot_render_json(p, &h.request, &h.render)
						  : iot_render_text(p, &h.request, &h.render));
			r = next_request(&h, &err);
		} else {
			ctl_out_take(
				out,
				c->json ? iot_render_packet_json(p, &h.packet, &h.packet_render)
					: iot_render_packet_text(p, &h.packet, &h.packet_render));
			r = next_packet(&h, &err);
		}
	}
	return r < 0 ? ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r)) : 0;
}

int verb_cat(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	struct iot_error err = {0};
	struct iot_verdict v;
	uint64_t n_records = 0;
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
	code = copy_records(c, scan, &out, &n_records);
	r = ctl_out_flush(&out);
	ctl_out_done(&out);
	if (code != CTL_OK)
		return code;
	if (r < 0)
		return ctl_output_result(r, CTL_STDOUT);
	/* On a terminal the pager comes first: stderr would be painted over. */
	ctl_pager_close();
	ctl_note_device(c, scan, n_records);
	r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_code(&v);
}
