/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rotor.h - the worker's helper thread: one job at a time, for what must not stop the drain (grace
 * periods, opening and syncing files, reading /sys). The worker submits, goes on draining, and takes
 * the result when the event descriptor says so. Whatever a job touches belongs to the rotor from
 * rotor_submit() until rotor_take() returns true.
 */
#pragma once

#include <pthread.h>

#include "format/base.h"

typedef int (*rotor_fn)(void *arg);

struct rotor {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int event_fd; /* borrowed; written when a job ends */
	rotor_fn fn;
	void *arg;
	int result;
	bool finished;
	bool stop;
	bool running; /* the thread exists */
};

int rotor_start(struct rotor *r, int event_fd) IOT_MUST_CHECK;
/* Waits for the job that runs. */
void rotor_stop(struct rotor *r);

/* Only when no job is in the rotor's hands. */
void rotor_submit(struct rotor *r, rotor_fn fn, void *arg);
/* True once per job, when it has ended. */
bool rotor_take(struct rotor *r, int *ret_result);
