// SPDX-License-Identifier: BSD-2-Clause
/*
 * notify.c - see notify.h.
 */
#include "daemon/notify.h"

#include <systemd/sd-daemon.h>

void notify_ready(const char *status)
{
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(uint64_t monotonic_ns)
{
	/* MONOTONIC_USEC: systemd 253 and later order a reload's end by it (Type=notify-reload). */
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
			 (unsigned long long)(monotonic_ns / 1000));
}

void notify_stopping(const char *status)
{
	(void)sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}

void notify_watchdog(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}

void notify_status(const char *status)
{
	(void)sd_notifyf(0, "STATUS=%s", status);
}

void notify_extend(uint64_t usec, const char *status)
{
	(void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%llu\nSTATUS=%s", (unsigned long long)usec,
			 status);
}

void notify_status_line(const struct notify_stream *streams, size_t n, char *buf, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return;
	buf[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		const struct notify_stream *s = &streams[i];
		int k = snprintf(buf + used, size - used,
				 "%s%s: %llu events/s, %llu lost, %llu unattributed, segment %llu "
				 "(%.1f MiB)",
				 i ? "; " : "", s->name, (unsigned long long)s->events_per_s,
				 (unsigned long long)s->lost, (unsigned long long)s->unattributed,
				 (unsigned long long)s->segment_seq,
				 (double)s->segment_bytes / (1024 * 1024));
		if (k < 0)
			break;
		used += (size_t)k;
	}
}
