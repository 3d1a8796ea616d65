// SPDX-License-Identifier: BSD-2-Clause
/*
 * progress.c - how far a long export is: one line of stderr, of a terminal only, and only where the output
 * goes elsewhere. It is gone when the export ends, so that logs and messages stay as they are.
 */
#include <time.h>

#include "daemon/ctl/ctl-util.h"

#define EVERY_NS 200000000ULL
#define LINE "\r\033[K" /* to its beginning, and clear it */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void show(void *arg, uint64_t n_read)
{
	struct ctl_progress *p = arg;
	char n[CTL_HUMAN_MAX], total[CTL_HUMAN_MAX];
	uint64_t now = now_ns();

	if (now < p->next_ns)
		return;
	p->next_ns = now + EVERY_NS;
	p->shown = true;
	fprintf(stderr, LINE "%s of %s records", ctl_human_count(n_read, n),
		ctl_human_count(p->total, total));
	/* Segments that are not sealed do not say how many they hold. */
	if (p->total && n_read <= p->total)
		fprintf(stderr, " (%u%%)",
			(unsigned int)(100.0 * (double)n_read / (double)p->total));
	fflush(stderr);
}

void ctl_progress_begin(struct ctl_progress *p, struct iot_scan *scan, int out_fd)
{
	*p = (struct ctl_progress){.next_ns = now_ns() + EVERY_NS};
	if (!isatty(STDERR_FILENO) || (out_fd >= 0 && isatty(out_fd)))
		return;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);

		p->total += iot_segment_declared(s, iot_segment_info(s)->stream == IOT_STREAM_PACKET
							    ? IOT_BLOCK_PACKETS
							    : IOT_BLOCK_REQUESTS);
	}
	iot_scan_progress(scan, show, p);
}

void ctl_progress_end(struct ctl_progress *p)
{
	if (p->shown)
		fputs(LINE, stderr);
	p->shown = false;
}
