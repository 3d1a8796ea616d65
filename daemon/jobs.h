/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jobs.h - one helper thread for what may wait on a disk (rotate, flush, retention, the final seal),
 * so that the event loop never does. Jobs run one after the other in the order given; each one's
 * `done` is called on the event loop. A full queue refuses: nothing piles up behind a stalled disk.
 */
#pragma once

#include <systemd/sd-event.h>

#include "format/base.h"

struct jobs;

typedef int (*job_run_fn)(void *arg);		    /* on the helper thread */
typedef void (*job_done_fn)(void *arg, int result); /* on the loop; owns arg */

int jobs_new(sd_event *event, struct jobs **ret) IOT_MUST_CHECK;
/* -EBUSY: the queue is full; arg stays the caller's. */
int jobs_submit(struct jobs *j, job_run_fn run, job_done_fn done, void *arg) IOT_MUST_CHECK;
/* Waits for the job that runs; those that never ran are done with -ECANCELED. */
struct jobs *jobs_free(struct jobs *j);
