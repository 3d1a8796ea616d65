// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-segment.c - segments once more, anonymized: what can be published and still be verified.
 *
 * Each sealed file becomes a sealed file of the same name, linked to its neighbours as the original was; the
 * links are hashes of footers, so that they are made anew along each capture. A link to a segment that is not
 * among those given is left out: its new hash is not known. A link that was wrong stays wrong.
 */
#include <fcntl.h>

#include "daemon/ctl/export.h"
#include "format/anonymize.h"

static bool in_time(const struct iot_segment *s, const struct iot_filter *f)
{
	const struct iot_footer *footer = iot_segment_footer(s);
	const struct iot_segment_info *info = iot_segment_info(s);

	if (f->until_ns && info->clocks.realtime_ns > f->until_ns)
		return false;
	return !f->since_ns || !footer || !footer->epoch_last_ns ||
	       iot_segment_realtime_ns(s, footer->epoch_last_ns) >= f->since_ns;
}

/* The link of s, and whether prev is the one before it. */
static uint64_t link_of(const struct iot_segment *s, const struct iot_segment *prev,
			uint64_t prev_hash)
{
	const struct iot_footer *f = iot_segment_footer(s);

	if (!f || !f->prev_footer_hash)
		return 0;
	if (!prev || !iot_same_capture(prev, s) ||
	    iot_segment_info(prev)->seq + 1 != iot_segment_info(s)->seq ||
	    !iot_segment_footer(prev))
		return 0;
	return f->prev_footer_hash == iot_segment_footer_hash(prev) ? prev_hash
								    : f->prev_footer_hash;
}

int export_segments(struct iot_scan *scan, const char *dir, const char *note,
		    struct export_stats *ret, struct iot_error *err)
{
	_cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct iot_verdict *opening = iot_scan_opening(scan);
	const struct iot_segment *prev = NULL;
	uint64_t prev_hash = 0;

	(void)note;
	if (dirfd < 0)
		return iot_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	/* No copy could tell of a file that cannot be copied: alone, the others would prove too much. */
	if (opening->unread || iot_scan_n_aside(scan))
		return iot_error_set(
			err, -EBADMSG, "%s; name the segments that are to be copied without it",
			opening->n_reasons ? opening->reasons[0] : "not all is readable");
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_segment_info *info = iot_segment_info(s);
		char name[128], id[CTL_HUMAN_MAX];
		uint64_t n = 0;
		int r;

		if (!in_time(s, iot_scan_filter(scan)))
			continue;
		snprintf(name, sizeof(name), "%s-%s-%010llu.%s", iot_stream_name(info->stream),
			 ctl_hex_id(info->capture_id, id), (unsigned long long)info->seq,
			 iot_segment_footer(s) ? "iot" : "open");
		r = iot_anonymize_rewrite(s, link_of(s, prev, prev_hash), dirfd, name, &n,
					  &prev_hash, err);
		if (r < 0)
			return r;
		if (info->stream == IOT_STREAM_PACKET)
			ret->observations += n;
		else
			ret->requests += n;
		prev = s;
	}
	return fsync(dirfd) < 0 ? iot_error_set(err, -errno, "%s: %s", dir, strerror(errno)) : 0;
}
