// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-clock.c - one time line for several captures: within a capture times follow CLOCK_MONOTONIC,
 * captures are placed by the wall clock.
 *
 * A segment's own clocks will not do: the wall clock may have been set during a capture, and distances
 * between its requests would change.
 */
#include "daemon/ctl/export.h"

int export_clock_offset(struct export_clock *c, const struct iot_segment *s, uint64_t *ret)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	uint64_t at = info->clocks.monotonic_ns;
	struct export_capture *more;

	for (size_t i = c->n; i-- > 0;)
		if (memcmp(c->captures[i].id, info->capture_id, 16) == 0) {
			*ret = c->captures[i].offset_ns;
			return 0;
		}
	more = reallocarray(c->captures, c->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->captures = more;
	more += c->n++;
	memcpy(more->id, info->capture_id, 16);
	more->offset_ns = iot_segment_realtime_ns(s, at) - at;
	*ret = more->offset_ns;
	return 0;
}

void export_clock_done(struct export_clock *c)
{
	free(c->captures);
	*c = (struct export_clock){0};
}
