/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manager.h - the main thread once everything is open: one sd-event loop that owns the signals, the
 * timers, the control socket and what the service manager is told.
 *
 * The loop never waits: not for a client (control.c), not for a disk (jobs.h). So a timer that does
 * not fire means a main thread that hangs, and the watchdog is told only when it fires *and* each
 * worker's progress moved.
 */
#pragma once

#include "daemon/args.h"
#include "daemon/probes.h"
#include "daemon/store.h"

struct adopt;
struct manager;

/* What a successor needs is kept by others (daemon/inherit.h); they are told when that changes. */
struct manager_heir {
	struct adopt *states[2]; /* block, packet; NULL: there will be no successor */
	bool resume;		 /* states say where a predecessor ended */
	void *arg;
	void (*collecting)(
		void *arg); /* segments are open: from now on there is something to leave */
	void (*filter)(void *arg, const struct iot_config *c); /* NULL: is being changed */
	void (*ended)(void *arg);			       /* sealed for good */
	bool (*leave)(void *arg);  /* we end without sealing; false: nobody could go on */
	void (*failed)(void *arg); /* the predecessor's capture cannot be gone on with */
};

struct manager_options {
	struct iot_config *config;	 /* taken on success */
	const struct args *args;	 /* to load the configuration again; outlives the manager */
	struct store *store;		 /* outlive the manager */
	struct probes *probes[2];	 /* of the streams that are enabled; NULL = none */
	const struct manager_heir *heir; /* outlives the manager; NULL = none */
};

/* The configuration of files and command line. -EINVAL and others with err. */
int manager_load_config(const struct args *args, struct iot_config **ret,
			struct iot_error *err) IOT_MUST_CHECK;

/* SIGTERM, SIGINT, SIGHUP and SIGUSR1 must be blocked in every thread already. */
int manager_new(const struct manager_options *opts, struct manager **ret,
		struct iot_error *err) IOT_MUST_CHECK;
/* Control socket, worker, timers, READY. Returns 0 or an exit code (sysexits) with err. */
int manager_start(struct manager *m, struct iot_error *err) IOT_MUST_CHECK;
/* Until everything is sealed; the exit code. */
int manager_run(struct manager *m) IOT_MUST_CHECK;
struct manager *manager_free(struct manager *m);
