// SPDX-License-Identifier: BSD-2-Clause
/*
 * pictures.c - the second pass of `report --html`: the same requests and losses as in the report, now with
 * a time axis.
 */
#include "daemon/ctl/pictures.h"
#include "daemon/ctl/report-view.h"

void report_pictures_done(struct report_pictures *p)
{
	picture_done(&p->block);
	record_done(&p->record);
	packet_pictures_done(&p->packets);
	iot_scan_close(p->scan);
	iot_scan_close(p->whole);
}

/* Index in the report; SIZE_MAX if it has none (the files have changed since the first pass). */
static size_t device_index(const struct report *rp, const struct iot_segment *s, uint32_t dev)
{
	char number[32];
	const char *name = iot_dev_name(s, dev, number, sizeof(number));
	const struct report_device *d = report_find_device(rp, iot_segment_info(s)->machine_id, dev,
							   name, iot_segment_info(s)->host);

	return d ? (size_t)(d - rp->devices) : SIZE_MAX;
}

static int read_requests(struct picture *p, const struct report_view *v, const struct iot_filter *f,
			 struct iot_scan *scan, struct iot_error *err)
{
	const struct iot_segment *last = NULL;
	struct iot_segment *s;
	struct iot_request req;
	size_t device = SIZE_MAX;
	uint32_t last_dev = 0;
	int r;

	while ((r = iot_scan_next(scan, &req, &s, err)) == 0) {
		if (s != last || req.dev != last_dev) {
			device = device_index(&v->report, s, req.dev);
			last = s;
			last_dev = req.dev;
		}
		if (device == SIZE_MAX || !p->axis.n)
			return iot_error_set(err, -ESTALE,
					     "the files have changed while they were read");
		iot_filter_share(f, &req);
		r = picture_add(p, device, &req,
				iot_segment_realtime_ns(s, req.complete_ns) - req.complete_ns);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int read_losses(struct picture *p, const struct report_view *v, const struct iot_filter *f)
{
	for (size_t i = 0; i < iot_scan_n_segments(v->scan); i++) {
		struct iot_segment *s = iot_scan_segment(v->scan, i);
		_cleanup_free_ struct iot_loss *losses = NULL;
		size_t n = 0;
		int r;

		if (iot_segment_info(s)->stream != IOT_STREAM_BLOCK || !iot_segment_footer(s))
			continue;
		r = iot_segment_load_ledger(s, &losses, &n, NULL);
		if (r < 0 && r != -EBADMSG)
			return r;
		for (size_t k = 0; r == 0 && k < n && p->axis.n; k++) {
			size_t device = device_index(&v->report, s, losses[k].dev);

			if (device != SIZE_MAX && iot_filter_match_loss(f, s, &losses[k]))
				picture_add_loss(p, device,
						 iot_segment_realtime_ns(s, losses[k].last_ns),
						 losses[k].n);
		}
	}
	return 0;
}

int report_pictures_read(struct report_pictures *p, const struct report_view *v,
			 const struct iot_filter *f, struct iot_scan *scan, struct iot_scan *whole,
			 struct iot_error *err)
{
	struct picture_axis axis = picture_axis(v->first_ns, v->last_ns);
	int r;

	r = picture_init(&p->block, &v->report, axis);
	if (r == 0)
		r = read_requests(&p->block, v, f, scan, err);
	if (r == 0)
		r = read_losses(&p->block, v, f);
	if (r == 0)
		r = packet_pictures_read(&p->packets, scan, whole, f, &axis, err);
	if (r == 0)
		r = record_read(&p->record, v->scan, scan, f, &axis, v->spans, v->first_ns,
				v->last_ns);
	return r;
}
