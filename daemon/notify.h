/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.h - what the service manager is told (sd_notify). Without NOTIFY_SOCKET all of it does
 * nothing. A notification that cannot be sent is no reason to stop collecting: errors are dropped.
 */
#pragma once

#include "format/base.h"

void notify_ready(const char *status);
void notify_reloading(uint64_t monotonic_ns);
void notify_stopping(const char *status);
void notify_watchdog(void);
void notify_status(const char *status);
/* Start, reload or stop go on and may take this much longer (EXTEND_TIMEOUT_USEC). */
void notify_extend(uint64_t usec, const char *status);

struct notify_stream {
	const char *name;
	uint64_t events_per_s;
	uint64_t lost; /* filed against their requests */
	uint64_t unattributed;
	uint64_t segment_seq;
	uint64_t segment_bytes;
};
/* Pure: "block: 1200 events/s, 0 lost, 0 unattributed, segment 3 (12.4 MiB)"; "; " between streams. */
void notify_status_line(const struct notify_stream *streams, size_t n, char *buf, size_t size);
