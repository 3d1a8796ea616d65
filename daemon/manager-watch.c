// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-watch.c - what the manager does by the clock: one tick a second, and the watchdog.
 *
 * The tick looks at each worker's numbers and logs what changed for the worse or back (transitions,
 * never states), resolves the device filter again, has old segments deleted and tells the service
 * manager the status line when it says something new.
 */
#include "daemon/manager-private.h"

#include <systemd/sd-daemon.h>

#define TICK_USEC (1000ULL * 1000)
#define TICK_ACCURACY_USEC (100ULL * 1000) /* may share a wake-up with others */
#define RETAIN_TICKS 5
#define MATCH_TICKS 10
#define STALL_NS 10000000000ULL

/* ---- retention, as a job ------------------------------------------------------------------------ */

struct retain_job {
	struct manager *m;
	struct iot_retention rules;
	struct store_usage usage;
};

static int retain_run(void *arg)
{
	struct retain_job *j = arg;

	return store_retain(j->m->store, &j->rules, &j->usage);
}

void manager_say_unshipped(struct manager *m)
{
	if (!m->unshipped_unsaid)
		return;
	log_event(LOG_WARNING, LOG_ID_UNSHIPPED,
		  &(struct log_fields){.has_count = true, .count = m->unshipped_unsaid},
		  "retention deleted %llu segments that are in no archive (see retention in "
		  "iotraced.yaml(5), and the archiver's own messages)",
		  (unsigned long long)m->unshipped_unsaid);
	m->unshipped_unsaid = 0;
}

static void retain_done(void *arg, int result)
{
	struct retain_job *j = arg;
	struct manager *m = j->m;

	m->retaining = false;
	if (result < 0 && result != -ECANCELED) {
		if (m->store_error == 0 || log_limit_pass(&m->store_limit, manager_now_ns(), NULL))
			log_error("retention in %s: %s", store_path(m->store), strerror(-result));
		m->store_error = result;
	} else if (result == 0) {
		if (m->store_error < 0)
			log_info("retention in %s works again", store_path(m->store));
		if (j->usage.deleted_segments > m->usage.deleted_segments &&
		    log_limit_pass(&m->store_limit, manager_now_ns(), NULL))
			log_info("retention deleted %llu segments (%llu since start)",
				 (unsigned long long)(j->usage.deleted_segments -
						      m->usage.deleted_segments),
				 (unsigned long long)j->usage.deleted_segments);
		if (j->usage.deleted_unshipped > m->usage.deleted_unshipped)
			m->unshipped_unsaid +=
				j->usage.deleted_unshipped - m->usage.deleted_unshipped;
		if (m->unshipped_unsaid &&
		    log_limit_pass(&m->unshipped_limit, manager_now_ns(), NULL))
			manager_say_unshipped(m);
		m->store_error = 0;
		m->usage = j->usage;
		m->usage_known = true;
	}
	free(j->rules.shipped);
	free(j);
}

void manager_retain(struct manager *m)
{
	struct retain_job *j;

	if (m->retaining || m->stopping)
		return;
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	j->m = m;
	j->rules = m->config->retention;
	/* The job outlives a reload's configuration. Without the note it would take all for not archived. */
	j->rules.shipped = strdup(m->config->retention.shipped);
	if (!j->rules.shipped) {
		free(j);
		return;
	}
	m->retaining = true;
	/* A full queue is a stalled disk; deleting can wait for the next round. */
	if (jobs_submit(m->jobs, retain_run, retain_done, j) < 0) {
		m->retaining = false;
		free(j->rules.shipped);
		free(j);
	}
}

/* ---- transitions -------------------------------------------------------------------------------- */

/* A ring that loses was full when it was drained next: one that was never half full lost nothing. */
static bool ring_was_short(const struct manager_stream *s, const struct worker_status *w)
{
	if (probes_n_rings(s->probes) == 0)
		return true;
	return IOT_MAX(w->ring_high_bytes, w->ring_used_bytes) >=
	       probes_ring(s->probes, 0)->size / 2;
}

static void log_losses(struct manager_stream *s, const struct worker_status *w, uint64_t now_ns,
		       bool last)
{
	uint64_t filed = w->lost_filed - s->logged_filed;
	uint64_t unattributed = w->lost_unattributed - s->logged_unattributed;
	char why[192];

	if (filed == 0 && unattributed == 0)
		return;
	if (!last && !log_limit_pass(&s->loss_limit, now_ns, NULL))
		return;
	if (unattributed == 0 && !ring_was_short(s, w))
		snprintf(why, sizeof(why),
			 "completions that this kernel showed to no program (cause unseen); "
			 "nothing to "
			 "tune, see LOSSES in iotracectl(1)");
	else
		snprintf(why, sizeof(why),
			 "`iotracectl export` tells the cause of each; against a full ring raise "
			 "streams.%s.ring_size (needs a restart)",
			 iot_stream_name(s->id));
	log_event(
		LOG_WARNING, LOG_ID_LOST,
		&(struct log_fields){.stream = iot_stream_name(s->id),
				     .has_count = true,
				     .count = filed + unattributed},
		"%s: lost %llu observation%s filed by owner and %llu without owner since the last "
		"report: %s",
		iot_stream_name(s->id), (unsigned long long)filed, filed == 1 ? "" : "s",
		(unsigned long long)unattributed, why);
	s->logged_filed = w->lost_filed;
	s->logged_unattributed = w->lost_unattributed;
}

const char *manager_unsealed(int error, bool unlinked)
{
	return error == -ENOENT || unlinked ? "its file is gone, and what was recorded in it"
					    : "its file is recovered at the next start";
}

static void log_transitions(struct manager_stream *s, const struct worker_status *w)
{
	const char *stream = iot_stream_name(s->id);
	struct log_fields fields = {.stream = stream};

	if (*w->segment_name)
		fields.segment = w->segment_name;
	if (w->begin_error < 0 && s->last.begin_error != w->begin_error) {
		fields.error = w->begin_error;
		log_event(LOG_ERR, LOG_ID_WRITE_FAILS, &fields,
			  "%s: the next segment cannot be begun: %s; the open one goes on", stream,
			  strerror(-w->begin_error));
	} else if (w->last_error < 0 && s->last.last_error != w->last_error) {
		fields.error = w->last_error;
		log_event(LOG_ERR, LOG_ID_WRITE_FAILS, &fields,
			  "%s: writing %s fails: %s; records wait in the ring", stream,
			  *w->segment_name ? w->segment_name : "the last segment",
			  strerror(-w->last_error));
	} else if (w->last_error == 0 && s->last.last_error < 0) {
		log_event(LOG_INFO, LOG_ID_WRITE_WORKS, &fields, "%s: writing works again", stream);
	}
	if (w->unlinked_seq && w->unlinked_seq != s->last.unlinked_seq) {
		fields.error = -ENOENT;
		log_event(LOG_ERR, LOG_ID_WRITE_FAILS, &fields,
			  "%s: segment %llu: deleted while it is written to; what is in it is lost "
			  "at "
			  "its end",
			  stream, (unsigned long long)w->unlinked_seq);
	}
	if (w->seal_errors > s->last.seal_errors) {
		fields.error = w->seal_error;
		log_event(
			LOG_ERR, LOG_ID_WRITE_FAILS, &fields,
			"%s: segment %llu could not be sealed: %s; %s", stream,
			(unsigned long long)w->seal_error_seq, strerror(-w->seal_error),
			manager_unsealed(w->seal_error, w->seal_error_seq == s->last.unlinked_seq));
	}
	fields.error = 0;
	if (w->books_unbalanced > s->last.books_unbalanced)
		log_event(LOG_ERR, LOG_ID_UNBALANCED, &fields,
			  "%s: the books of %llu epochs do not balance: records of this capture "
			  "cannot be proved complete; please report this",
			  stream, (unsigned long long)w->books_unbalanced);
	if (w->sync_errors > s->last.sync_errors)
		log_event(LOG_ERR, LOG_ID_SYNC_FAILED, &fields,
			  "%s: the disk failed to take segment %llu: %s; it was written anew, %llu "
			  "of its "
			  "records could not be read back",
			  stream, (unsigned long long)w->sync_error_seq, strerror(-w->sync_error),
			  (unsigned long long)w->sync_error_lost);
	if (w->output_failed > s->last.output_failed)
		log_error("%s: %llu records could not be written", stream,
			  (unsigned long long)w->output_failed);
	if (w->decode_failed > s->last.decode_failed)
		log_error("%s: %llu records could not be decoded", stream,
			  (unsigned long long)w->decode_failed);
	if (w->identity_full > 0 && s->last.identity_full == 0)
		log_warning("%s: the in-flight map was full: some requests have no identity (raise "
			    "streams.%s.in_flight_entries, needs a restart)",
			    stream, stream);
}

static void check_progress(struct manager_stream *s, const struct worker_status *w, uint64_t now_ns)
{
	if (w->progress != s->last.progress) {
		if (s->stalled)
			log_info("%s: the worker goes on", iot_stream_name(s->id));
		s->stalled = false;
		s->progress_ns = now_ns;
	} else if (!s->stalled && now_ns - s->progress_ns >= STALL_NS) {
		s->stalled = true;
		log_event(LOG_ERR, LOG_ID_STALLED,
			  &(struct log_fields){.stream = iot_stream_name(s->id)},
			  "%s: the worker makes no progress for %llu s", iot_stream_name(s->id),
			  STALL_NS / 1000000000ULL);
	}
}

void manager_look(struct manager *m, struct manager_stream *s, uint64_t now_ns)
{
	struct worker_status w;

	(void)m;
	worker_status(s->worker, &w);
	check_progress(s, &w, now_ns);
	log_transitions(s, &w);
	log_losses(s, &w, now_ns, false);
	s->last = w;
}

void manager_say_losses(struct manager *m)
{
	for (size_t i = 0; i < m->n_streams; i++) {
		struct manager_stream *s = &m->streams[i];
		struct worker_status w;

		if (!s->worker)
			continue;
		worker_status(s->worker, &w);
		log_losses(s, &w, manager_now_ns(), true);
	}
}

void manager_status_line(struct manager *m, char *buf, size_t size)
{
	struct notify_stream list[MANAGER_MAX_STREAMS];

	for (size_t i = 0; i < m->n_streams; i++) {
		const struct manager_stream *s = &m->streams[i];

		list[i] = (struct notify_stream){
			.name = iot_stream_name(s->id),
			.events_per_s = rate_per_s(&s->rate),
			.lost = s->last.lost_filed,
			.unattributed = s->last.lost_unattributed,
			.segment_seq = s->last.segment_seq,
			.segment_bytes = s->last.segment_bytes,
		};
	}
	notify_status_line(list, m->n_streams, buf, size);
}

static void rescan_devices(struct manager *m)
{
	const struct iot_device_filter *f = &m->config->devices;
	int r;

	manager_filter_step(m);
	if (m->filter_pending || (f->include.n == 0 && f->exclude.n == 0))
		return;
	for (size_t i = 0; i < m->n_streams; i++) {
		if (m->streams[i].id != IOT_STREAM_BLOCK)
			continue;
		r = probes_set_devices(m->streams[i].probes, f);
		if (r < 0 && log_limit_pass(&m->filter_limit, manager_now_ns(), NULL))
			log_error("device filter: %s", strerror(-r));
	}
}

/* ---- timers ------------------------------------------------------------------------------------- */

static int rearm(sd_event_source *source, uint64_t usec)
{
	int r = sd_event_source_set_time_relative(source, usec);

	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t now_ns = manager_now_ns();
	char line[sizeof(m->status_line)];

	(void)usec;
	for (size_t i = 0; i < m->n_streams; i++) {
		struct manager_stream *s = &m->streams[i];

		manager_look(m, s, now_ns);
		/* What the kernel side observed whole: written, waiting in the ring, or lost. */
		rate_add(&s->rate, now_ns,
			 s->last.emitted + s->last.lost_filed + s->last.lost_unattributed);
		rate_add(&s->swap_out, now_ns, s->last.swap_out_bytes);
		rate_add(&s->swap_in, now_ns, s->last.swap_in_bytes);
	}
	if (!m->stopping) {
		rescan_devices(m);
		if (m->n_ticks % MATCH_TICKS == 0)
			manager_check_devices(m);
		if (m->n_ticks % RETAIN_TICKS == 0)
			manager_retain(m);
		manager_status_line(m, line, sizeof(line));
		if (strcmp(line, m->status_line) != 0) {
			memcpy(m->status_line, line, sizeof(line));
			notify_status(line);
		}
	}
	m->n_ticks++;
	return rearm(source, TICK_USEC);
}

static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	bool progress = true;

	(void)usec;
	for (size_t i = 0; i < m->n_streams; i++) {
		struct manager_stream *s = &m->streams[i];
		struct worker_status w;

		worker_status(s->worker, &w);
		if (w.progress == s->watchdog_progress)
			progress = false;
		s->watchdog_progress = w.progress;
	}
	/* While the last segment is sealed the worker's own clock may have stopped. */
	if (progress || (m->stopping && m->n_extends <= MANAGER_MAX_EXTENDS))
		notify_watchdog();
	return rearm(source, m->watchdog_usec);
}

int manager_watch_start(struct manager *m)
{
	uint64_t usec;
	int r;

	for (size_t i = 0; i < m->n_streams; i++) {
		worker_status(m->streams[i].worker, &m->streams[i].last);
		/* A predecessor may have died before it could say so. */
		m->streams[i].last.seal_errors = 0;
		m->streams[i].last.unlinked_seq = 0;
		rate_add(&m->streams[i].rate, manager_now_ns(), m->streams[i].last.emitted);
	}
	r = sd_event_add_time_relative(m->event, &m->tick, CLOCK_MONOTONIC, TICK_USEC,
				       TICK_ACCURACY_USEC, on_tick, m);
	if (r < 0)
		return r;
	if (sd_watchdog_enabled(0, &usec) > 0) {
		/* Three chances before the service manager's patience ends. */
		m->watchdog_usec = usec / 3;
		r = sd_event_add_time_relative(m->event, &m->watchdog, CLOCK_MONOTONIC,
					       m->watchdog_usec, 0, on_watchdog, m);
		if (r < 0)
			return r;
	}
	manager_retain(m);
	return 0;
}

void manager_watch_stop(struct manager *m)
{
	/* Of a job that outlasted the loop. */
	manager_say_unshipped(m);
	m->tick = sd_event_source_disable_unref(m->tick);
	m->watchdog = sd_event_source_disable_unref(m->watchdog);
}
