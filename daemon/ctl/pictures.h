/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pictures.h - all that the page of `report --html` draws, beside the numbers of the report itself.
 */
#pragma once

#include "daemon/ctl/picture-packets.h"
#include "daemon/ctl/picture-record.h"
#include "daemon/ctl/picture.h"

struct report_pictures {
	struct picture block;
	struct record_lanes record;
	struct packet_pictures packets;
	struct iot_scan *scan, *whole; /* owned: rows of drops and ways refer to their segments */
};

struct report_view;
/*
 * After the report's own pass: sorted devices, spans in the order of the segments. scan has the selection and
 * is read once more; whole: the same segments without filters. Negative errno with err.
 */
int report_pictures_read(struct report_pictures *p, const struct report_view *v,
			 const struct iot_filter *f, struct iot_scan *scan, struct iot_scan *whole,
			 struct iot_error *err) IOT_MUST_CHECK;
void report_pictures_done(struct report_pictures *p);

/* pictures-json.c: the member "pictures". */
struct json_object *report_pictures_json(const struct report_view *v);
/* page.c: the whole page, with document in it. Negative errno of the output. */
struct ctl_out;
int report_page_write(const struct report_view *v, const char *document,
		      struct ctl_out *out) IOT_MUST_CHECK;
