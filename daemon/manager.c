// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager.c - start, run, stop. See manager.h.
 *
 * Start: the control socket first (whether another daemon lives is known before anything is
 * collected), then the worker, which opens the gate and its first segment; READY comes after that.
 * Stop is the reverse, and a job: gate closed, probes detached, the worker drained and sealed, while the
 * loop goes on to answer, to ask the service manager for time and to feed the watchdog.
 *
 * Leaving the capture to a successor is to die on purpose: nothing is closed or detached, as with SIGKILL. Only the
 * segments are sealed before, while others are opened, so that little depends on a successor that never comes.
 */
#include "daemon/control-socket.h"
#include "daemon/manager-private.h"
#include "daemon/probes-filter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define STOP_EXTEND_USEC (10ULL * 1000 * 1000)
#define LEAVE_USEC (5ULL * 1000 * 1000)

struct stop_job {
	struct manager *m;
	char names[MANAGER_MAX_STREAMS][128];
	int results[MANAGER_MAX_STREAMS];
	int gate_result;
};

/*
 * Behind the jobs that were there already: a segment opened after the gate was closed would cover no time,
 * and its verdict would be unknown.
 */
static int stop_run(void *arg)
{
	struct stop_job *j = arg;
	uint64_t ns;
	int r = 0;

	for (size_t i = 0; i < j->m->n_streams; i++) {
		j->gate_result = probes_gate(j->m->streams[i].probes, false, &ns);
		probes_detach(j->m->streams[i].probes);
		j->results[i] =
			worker_stop(j->m->streams[i].worker, j->names[i], sizeof(j->names[i]));
		if (j->results[i] < 0)
			r = j->results[i];
	}
	return r;
}

static void stop_done(void *arg, int result)
{
	struct stop_job *j = arg;
	struct manager *m = j->m;

	if (j->gate_result < 0)
		log_warning("the gate could not be closed: %s", strerror(-j->gate_result));
	for (size_t i = 0; i < m->n_streams; i++) {
		const char *stream = iot_stream_name(m->streams[i].id);

		if (j->results[i] < 0)
			log_error("%s: the last segment could not be sealed: %s; %s", stream,
				  strerror(-j->results[i]),
				  manager_unsealed(j->results[i],
						   m->streams[i].last.unlinked_seq > 0));
		else if (j->names[i][0])
			log_info("%s: sealed %s", stream, j->names[i]);
	}
	if (result < 0)
		m->exit_code = EX_IOERR;
	else if (m->heir)
		m->heir->ended(m->heir->arg);
	free(j);
	sd_event_exit(m->event, 0);
}

static int on_extend(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	(void)usec;
	/* A disk that never answers must not keep the machine from shutting down. */
	if (++m->n_extends > MANAGER_MAX_EXTENDS)
		return 0;
	notify_extend(STOP_EXTEND_USEC, "sealing the last segment");
	sd_event_source_set_time_relative(source, STOP_EXTEND_USEC / 3);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

void manager_stop(struct manager *m, const char *why)
{
	static struct stop_job fallback;
	struct stop_job *j;
	int r;

	if (m->stopping)
		return;
	m->stopping = true;
	log_event(LOG_INFO, LOG_ID_STOPPING, &(struct log_fields){.capture = m->capture_id},
		  "%s: stopping", why);
	notify_stopping("sealing the last segment");
	if (sd_event_add_time_relative(m->event, &m->extend, CLOCK_MONOTONIC, STOP_EXTEND_USEC / 3,
				       0, on_extend, m) < 0)
		log_debug("no timer to ask for more stop time");

	j = calloc(1, sizeof(*j));
	r = j ? 0 : -ENOMEM;
	if (j) {
		j->m = m;
		r = jobs_submit(m->jobs, stop_run, stop_done, j);
	}
	if (r < 0) {
		/* Sealing matters more than a loop that goes on turning. */
		free(j);
		fallback = (struct stop_job){.m = m};
		r = stop_run(&fallback);
		if (r < 0) {
			log_error("the last segment could not be sealed: %s", strerror(-r));
			m->exit_code = EX_IOERR;
		} else if (m->heir) {
			m->heir->ended(m->heir->arg);
		}
		sd_event_exit(m->event, 0);
	}
}

/* ---- leaving ---------------------------------------------------------------------------------- */

/* A segment that cannot be sealed now is one that the successor seals. */
static int leave_run(void *arg)
{
	struct manager *m = arg;
	char name[128];

	for (size_t i = 0; i < m->n_streams; i++)
		(void)!worker_rotate(m->streams[i].worker, IOT_SEAL_REQUEST, name, sizeof(name));
	return 0;
}

static void leave_done(void *arg, int result)
{
	struct manager *m = arg;

	(void)result;
	sd_event_exit(m->event, 0);
}

static int on_leave_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	leave_done(userdata, 0);
	return 0;
}

static void manager_leave(struct manager *m)
{
	if (m->stopping)
		return;
	if (!m->heir || !m->heir->leave(m->heir->arg)) {
		manager_stop(m, "SIGUSR1, and nobody keeps what a successor would need");
		return;
	}
	m->stopping = true;
	log_info("SIGUSR1: leaving the capture to a successor");
	notify_stopping("leaving the capture to a successor");
	if (jobs_submit(m->jobs, leave_run, leave_done, m) < 0 ||
	    sd_event_add_time_relative(m->event, &m->leave, CLOCK_MONOTONIC, LEAVE_USEC, 0,
				       on_leave_time, m) < 0)
		leave_done(m, 0);
}

/* ---- event sources ---------------------------------------------------------------------------- */

static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	(void)source;
	manager_stop(userdata, si->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	(void)source;
	(void)si;
	manager_reload(userdata);
	return 0;
}

static int on_leave(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	(void)source;
	(void)si;
	manager_leave(userdata);
	return 0;
}

static int on_duration(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	manager_stop(userdata, "--duration is over");
	return 0;
}

static int on_attention(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct manager *m = userdata;
	uint64_t count;

	(void)revents;
	/* The descriptor is non-blocking or readable: either way this does not wait. */
	(void)!read(fd, &count, sizeof(count));
	for (size_t i = 0; i < m->n_streams; i++) {
		if (m->streams[i].attention == source)
			manager_look(m, &m->streams[i], manager_now_ns());
	}
	return 0;
}

/* ---- life --------------------------------------------------------------------------------------- */

static void hex(const uint8_t *bytes, size_t n, char *buf)
{
	for (size_t i = 0; i < n; i++)
		snprintf(buf + 2 * i, 3, "%02x", bytes[i]);
}

static void identify(struct manager *m)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct utsname u;
	size_t n = 0;
	int c;

	if (uname(&u) == 0) {
		snprintf(m->host, sizeof(m->host), "%.64s", u.nodename);
		snprintf(m->kernel, sizeof(m->kernel), "%.64s", u.release);
	}
	hex(store_capture_id(m->store), 16, m->capture_id);
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	while (f && n < sizeof(m->boot_id) - 1 && (c = fgetc(f)) != EOF) {
		if (c != '-' && c != '\n')
			m->boot_id[n++] = (char)c;
	}
}

static int refuse(const struct iot_config *c, const char *key, const char *why,
		  struct iot_error *err)
{
	const char *origin = iot_config_origin(c, key);

	return iot_error_set(err, -EINVAL, "%s%s`%s`: %s", origin ? origin : "", origin ? ": " : "",
			     key, why);
}

/*
 * A segment grows beyond its size by what is under way when it is closed, and by its footer: a file that may not
 * could never be sealed.
 */
static int check_file_limit(const struct iot_config *c, const char *key,
			    const struct iot_stream_config *stream, struct iot_error *err)
{
	struct rlimit limit;
	char text[192];

	if (!stream->enabled || getrlimit(RLIMIT_FSIZE, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY || stream->segment_size_bytes <= limit.rlim_cur / 2)
		return 0;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " bytes, but no file may have more than %" PRIu64
		 " here (ulimit -f, LimitFSIZE=); raise that, or record segments of at most half "
		 "of it",
		 stream->segment_size_bytes, (uint64_t)limit.rlim_cur);
	return refuse(c, key, text, err);
}

/* What the parser cannot know: whether libpcap takes the filter, whether there is such a group, what is allowed. */
static int check_meaning(const struct iot_config *c, struct iot_error *err)
{
	_cleanup_free_ struct filter_insn *insns = calloc(FILTER_ROOM, sizeof(*insns));
	struct iot_error why = {0};
	char text[160];
	gid_t gid;
	int r;

	if (!insns)
		return iot_error_set(err, -ENOMEM, "out of memory");
	if (*c->packets.filter) {
		r = filter_compile(c->packets.filter, insns, &why);
		if (r == -ENOMEM)
			return iot_error_set(err, r, "%s", why.text);
		if (r < 0)
			return refuse(c, "streams.packet.filter", why.text, err);
	}
	if (*c->socket_group && control_group_id(c->socket_group, &gid) < 0) {
		snprintf(text, sizeof(text),
			 "there is no group '%.64s'; create it or leave the key out",
			 c->socket_group);
		return refuse(c, "socket_group", text, err);
	}
	r = check_file_limit(c, "streams.block.segment_size", &c->block, err);
	return r < 0 ? r : check_file_limit(c, "streams.packet.segment_size", &c->packet, err);
}

int manager_load_config(const struct args *args, struct iot_config **ret, struct iot_error *err)
{
	_cleanup_(iot_config_freep) struct iot_config *c = NULL;
	int r;

	r = iot_config_load(args->config, &c, err);
	if (r < 0)
		return r;
	if (args->state_dir) {
		r = iot_config_set(c, "state_dir", args->state_dir, "--state-dir", err);
		if (r < 0)
			return r;
	}
	if (args->socket) {
		r = iot_config_set(c, "socket", args->socket, "--socket", err);
		if (r < 0)
			return r;
	}
	if (!c->block.enabled && !c->packet.enabled)
		return iot_error_set(err, -EINVAL,
				     "no stream is enabled, there is nothing to record; set "
				     "streams.block.enabled or streams.packet.enabled to true");
	r = check_meaning(c, err);
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(c);
	return 0;
}

int manager_new(const struct manager_options *opts, struct manager **ret, struct iot_error *err)
{
	struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return iot_error_set(err, -ENOMEM, "out of memory");
	m->args = opts->args;
	m->store = opts->store;
	m->heir = opts->heir;
	m->swaps_fd = -EBADF;
	m->store_limit = (struct log_limit){.interval_ns = 60000000000ULL, .burst = 1};
	m->unshipped_limit = m->store_limit;
	m->filter_limit = m->store_limit;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(opts->probes); i++) {
		if (!opts->probes[i])
			continue;
		m->streams[m->n_streams++] = (struct manager_stream){
			.id = probes_stream(opts->probes[i]),
			.probes = opts->probes[i],
			.loss_limit = {.interval_ns = 60000000000ULL, .burst = 1},
		};
	}
	identify(m);

	r = sd_event_new(&m->event);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGTERM, on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGINT, on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGHUP, on_hangup, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGUSR1, on_leave, m);
	if (r >= 0)
		r = jobs_new(m->event, &m->jobs);
	if (r < 0) {
		iot_error_set(err, r, "event loop: %s", strerror(-r));
		manager_free(m);
		return r;
	}
	m->config = opts->config;
	*ret = m;
	return 0;
}

static int start_stream(struct manager *m, struct manager_stream *s, struct iot_error *err)
{
	const struct worker_options wo = {
		.config = m->config,
		.probes = s->probes,
		.store = m->store,
		.stream = s->id,
		.adopt = m->heir ? m->heir->states[s->id == IOT_STREAM_PACKET] : NULL,
		.resume = m->heir && m->heir->resume,
	};
	int r;

	r = worker_start(&wo, &s->worker, err);
	if (r < 0) {
		if (m->heir)
			m->heir->failed(m->heir->arg);
		iot_error_set(err, r, "%s: worker: %s", iot_stream_name(s->id), strerror(-r));
		return r == -ENOSPC || r == -EIO || r == -EROFS || r == -EDQUOT || r == -EACCES
			       ? EX_IOERR
			       : EX_OSERR;
	}
	/* The gate is open: the worker opened it just before its first segment. */
	if (m->gate_ns == 0)
		m->gate_ns = manager_now_ns();
	s->progress_ns = manager_now_ns();
	r = sd_event_add_io(m->event, &s->attention, worker_event_fd(s->worker), EPOLLIN,
			    on_attention, m);
	if (r < 0) {
		iot_error_set(err, r, "%s: %s", iot_stream_name(s->id), strerror(-r));
		return EX_OSERR;
	}
	return 0;
}

int manager_start(struct manager *m, struct iot_error *err)
{
	const struct control_options co = {
		.event = m->event,
		.path = m->config->socket,
		.group = m->config->socket_group,
		.ops = &manager_control_ops,
		.userdata = m,
	};
	int r;

	r = control_open(&co, &m->control, err);
	if (r < 0)
		return r == -EADDRINUSE ? EX_TEMPFAIL : EX_CANTCREAT;
	/* Before a gate opens: where swap is told by its place, programs must know the areas. */
	r = manager_swaps_start(m);
	if (r < 0) {
		iot_error_set(err, r, "/proc/swaps: %s", strerror(-r));
		return EX_OSERR;
	}
	for (size_t i = 0; i < m->n_streams; i++) {
		r = start_stream(m, &m->streams[i], err);
		if (r != 0)
			return r;
	}
	manager_check_swap(m);
	manager_check_devices(m);
	r = manager_watch_start(m);
	if (r >= 0)
		r = manager_programs_start(m);
	if (r >= 0 && m->args->duration_ns)
		r = sd_event_add_time_relative(m->event, &m->duration, CLOCK_MONOTONIC,
					       m->args->duration_ns / 1000, 0, on_duration, m);
	if (r < 0) {
		iot_error_set(err, r, "timers: %s", strerror(-r));
		return EX_OSERR;
	}
	if (m->heir)
		m->heir->collecting(m->heir->arg);
	log_event(LOG_INFO, LOG_ID_RECORDING, &(struct log_fields){.capture = m->capture_id},
		  "%s to %s, capture %s",
		  m->heir && m->heir->resume ? "going on recording" : "recording",
		  store_path(m->store), m->capture_id);
	manager_status_line(m, m->status_line, sizeof(m->status_line));
	notify_ready(m->status_line);
	return 0;
}

int manager_run(struct manager *m)
{
	int r = sd_event_loop(m->event);

	manager_say_losses(m);
	manager_say_unshipped(m);
	if (r < 0) {
		log_error("event loop: %s", strerror(-r));
		return EX_OSERR;
	}
	return m->exit_code;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	/* Jobs first: their ends use everything below. */
	m->jobs = jobs_free(m->jobs);
	m->control = control_close(m->control);
	manager_watch_stop(m);
	manager_swaps_stop(m);
	manager_programs_stop(m);
	sd_event_source_disable_unref(m->duration);
	sd_event_source_disable_unref(m->extend);
	sd_event_source_disable_unref(m->leave);
	for (size_t i = 0; i < m->n_streams; i++) {
		sd_event_source_disable_unref(m->streams[i].attention);
		m->streams[i].worker = worker_free(m->streams[i].worker);
	}
	sd_event_unref(m->event);
	iot_config_free(m->config);
	free(m);
	return NULL;
}
