// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-programs.c - five times a second, whether TC and XDP programs have come or gone.
 *
 * What a new one does before it is observed is in doubt, so this is often; loading our programs for it takes a while,
 * so it is a job. Behind a job that waits for a disk it comes later, and the doubt is longer.
 */
#include "daemon/manager-private.h"

#define LOOK_USEC (200ULL * 1000)
#define LOOK_ACCURACY_USEC (20ULL * 1000)

struct programs_job {
	struct manager *m;
	struct probes *probes;
	struct probes_programs_change change;
};

static int programs_run(void *arg)
{
	struct programs_job *j = arg;

	return j->m->stopping ? 0 : probes_programs_follow(j->probes, &j->change);
}

static void programs_done(void *arg, int result)
{
	struct programs_job *j = arg;
	const struct probes_programs_change *c = &j->change;
	struct manager *m = j->m;

	m->programs_job = false;
	if (result < 0 && result != -ECANCELED && m->programs_error != result)
		log_error("packets: programs cannot be listed: %s", strerror(-result));
	m->programs_error = result == -ECANCELED ? 0 : result;
	if (c->n_refused)
		log_warning("packets: %u program%s cannot be observed, the last one %s: %s",
			    c->n_refused, c->n_refused == 1 ? "" : "s", c->refused, c->why);
	if (c->n_new || c->n_gone)
		log_info("packets: %u program%s more observed, %u gone; the last one %s", c->n_new,
			 c->n_new == 1 ? "" : "s", c->n_gone, c->name);
	free(j);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	struct programs_job *j = NULL;
	int r;

	(void)usec;
	if (m->stopping)
		return 0;
	if (!m->programs_job)
		j = calloc(1, sizeof(*j));
	if (j) {
		j->m = m;
		j->probes = m->programs_of;
		m->programs_job = true;
		/* A full queue: at the next look. */
		if (jobs_submit(m->jobs, programs_run, programs_done, j) < 0) {
			m->programs_job = false;
			free(j);
		}
	}
	r = sd_event_source_set_time_relative(source, LOOK_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int manager_programs_start(struct manager *m)
{
	int r;

	for (size_t i = 0; i < m->n_streams; i++)
		if (m->streams[i].id == IOT_STREAM_PACKET &&
		    probes_programs_wanted(m->streams[i].probes))
			m->programs_of = m->streams[i].probes;
	if (!m->programs_of)
		return 0;
	r = sd_event_add_time_relative(m->event, &m->programs, CLOCK_MONOTONIC, LOOK_USEC,
				       LOOK_ACCURACY_USEC, on_look, m);
	return r < 0 ? r : 0;
}

void manager_programs_stop(struct manager *m)
{
	m->programs = sd_event_source_disable_unref(m->programs);
}
