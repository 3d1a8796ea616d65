// SPDX-License-Identifier: BSD-2-Clause
/*
 * selected-packets.c - whether a record of packets speaks for all of a flow, an interface or a probe: what the
 * configuration left out (streams.packet.filter and sample) is not in it, and nothing about it is proved.
 *
 * A segment speaks for all packets if its books say that none was left out. Whose those were that were, the books do
 * not say, and the selection's text does not either, though it may look like the flow: what a packet is selected by is
 * its first sight, which an address translation or a fragment without ports may make another flow's. A question that
 * names a probe is about the packets that were left out there.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/books.h"

static bool is_at(const struct iot_segment_info *info, const struct iot_footer *f, uint16_t probe,
		  const char *name)
{
	char label[64];

	return !name[0] || strcmp(iot_probe_label(info, f, probe, label, sizeof(label)), name) == 0;
}

static bool left_out(const struct iot_segment_info *info, const struct iot_footer *f,
		     const char *probe)
{
	bool all = strcmp(info->selection, "all") == 0, unknown = !f;

	for (size_t i = 0; f && i < f->n_books; i++) {
		const struct iot_books *b = &f->books[i];

		if (!b->not_selected || !is_at(info, f, b->probe, probe))
			continue;
		if (b->not_selected != IOT_COUNT_UNKNOWN)
			return true;
		unknown = true;
	}
	/* Where all are selected, none is left out, counted or not. */
	return unknown && !all;
}

void ctl_selected_packets(const struct iot_scan *scan, const struct iot_filter *f,
			  struct iot_verdict *why)
{
	if (!f->flow.set && !f->probe[0] && !f->dev[0])
		return;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_segment_info *info = iot_segment_info(s);

		if (info->stream == IOT_STREAM_PACKET && ctl_segment_in_time(s, f) &&
		    left_out(info, iot_segment_footer(s), f->probe))
			iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
					   "the selection (\"%.100s\") left out packets, some that "
					   "are asked for may be among them",
					   info->selection);
	}
}
