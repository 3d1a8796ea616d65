/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manager-private.h - what the manager's files share: manager.c (life), manager-watch.c (timers and
 * transitions), manager-control.c (the control socket's operations), manager-reload.c.
 */
#pragma once

#include <stdatomic.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "daemon/control.h"
#include "daemon/jobs.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/rate.h"
#include "daemon/status.h"
#include "daemon/swaps.h"
#include "daemon/worker.h"

#define MANAGER_MAX_STREAMS 2  /* block, packet */
#define MANAGER_MAX_EXTENDS 90 /* times 3.3 s: then the service manager may kill us */

struct manager_stream {
	enum iot_stream id;
	struct probes *probes;
	struct worker *worker;
	sd_event_source *attention;
	struct rate rate;
	struct rate swap_out, swap_in; /* bytes */
	/* As of the last look, to log what changed. */
	struct worker_status last;
	uint64_t progress_ns; /* when progress last moved */
	bool stalled;
	uint64_t watchdog_progress;
	struct log_limit loss_limit;
	uint64_t logged_filed;
	uint64_t logged_unattributed;
};

struct manager {
	sd_event *event;
	struct iot_config *config; /* in effect: what needs a new start stays as it was */
	const struct args *args;
	struct store *store;
	const struct manager_heir *heir;
	struct jobs *jobs;
	struct control *control;
	struct manager_stream streams[MANAGER_MAX_STREAMS];
	size_t n_streams;
	uint64_t gate_ns;     /* 0 = not open yet */
	atomic_bool stopping; /* also read by jobs, which then do not begin */
	int exit_code;
	char restart_keys[512];

	sd_event_source *tick;
	sd_event_source *watchdog;
	sd_event_source *duration;
	sd_event_source *extend;
	unsigned int n_extends;
	sd_event_source *leave; /* the time that handing on may take */
	uint64_t watchdog_usec;
	uint64_t n_ticks;
	char status_line[256];

	bool filter_pending; /* a changed filter of devices or swap is on its way */
	bool filter_job;     /* its rotation is queued or running */
	unsigned int filter_wanted, filter_started;
	struct log_limit filter_limit;
	char unmatched[256]; /* device patterns that no disk matches, as of the last look */

	bool retaining; /* a retention job is queued or running */
	bool usage_known;
	struct store_usage usage;
	int store_error;
	struct log_limit store_limit;
	struct log_limit unshipped_limit;
	uint64_t unshipped_unsaid; /* segments deleted without being archived, not logged yet */

	int swaps_fd; /* polled, never read; -EBADF = none */
	sd_event_source *swaps_source;
	struct swaps swaps; /* as of the last change */
	int swaps_error;    /* of the last reading then */

	struct probes *programs_of; /* whose programs are followed; NULL = nobody's */
	sd_event_source *programs;
	bool programs_job; /* is queued or running */
	int programs_error;

	char host[65];
	char kernel[65];
	char capture_id[33];
	char boot_id[33];
};

static inline uint64_t manager_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* manager.c */
void manager_stop(struct manager *m, const char *why);

/* manager-watch.c */
int manager_watch_start(struct manager *m) IOT_MUST_CHECK;
void manager_watch_stop(struct manager *m);
void manager_look(struct manager *m, struct manager_stream *s, uint64_t now_ns);
/* What becomes of a segment that could not be sealed; unlinked: its file was seen to be deleted. */
const char *manager_unsealed(int error, bool unlinked);
void manager_status_line(struct manager *m, char *buf, size_t size);
void manager_retain(struct manager *m);
/* What the rate limit has held back, if anything: before nobody is left to say it. */
void manager_say_unshipped(struct manager *m);
/* Also what the limit has held back. */
void manager_say_losses(struct manager *m);

/* manager-swaps.c */
int manager_swaps_start(struct manager *m) IOT_MUST_CHECK;
void manager_swaps_stop(struct manager *m);
/* The areas as they are now. Changes nothing; -ENODATA: no stream to ask which of them a record covers. */
int manager_swaps_read(const struct manager *m, struct swaps *ret) IOT_MUST_CHECK;

/* manager-programs.c */
int manager_programs_start(struct manager *m) IOT_MUST_CHECK;
void manager_programs_stop(struct manager *m);

/* manager-control.c */
extern const struct control_ops manager_control_ops;

/* manager-reload.c */
/* Warns if swap is to be dropped and this kernel cannot tell it. */
void manager_check_swap(const struct manager *m);
/* Looks which device patterns match no disk, and logs it when that changes. */
void manager_check_devices(struct manager *m);
void manager_reload(struct manager *m);
/* Goes on with a changed filter; also called each second, so that a failure is tried again. */
void manager_filter_step(struct manager *m);
