// SPDX-License-Identifier: BSD-2-Clause
/*
 * worker.c - starting, commanding and ending a worker; the manager's side of worker.h. Everything
 * here takes the lock or runs before the threads start.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/clock.h"
#include "daemon/worker-internal.h"

#define COMMAND_TIMEOUT_S 60

static int watch(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int set_up(struct worker *w, const struct iot_stream_config *c)
{
	pthread_condattr_t attr;
	uint32_t block_records;
	int r;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->cond, &attr);
	pthread_condattr_destroy(&attr);
	w->config = *c;
	w->now = *c;
	w->ledger_entries = c->ledger_entries;
	worker_look_at_probes(w);

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->attention_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->kick_fd < 0 || w->attention_fd < 0)
		return -errno;
	block_records = (uint32_t)IOT_MIN(c->block_records, IOT_BLOCK_RECORDS_MAX);
	if (w->stream == IOT_STREAM_PACKET)
		r = drain_init_packet(&w->drain, w->n_cpus, probes_n_rings(w->probes),
				      block_records);
	else
		r = drain_init(&w->drain, probes_kernel(w->probes), w->n_cpus,
			       probes_n_rings(w->probes), block_records);
	if (r < 0)
		return r;
	r = watch(w->epoll_fd, w->kick_fd, EPOLLIN);
	for (uint32_t i = 0; r >= 0 && i < w->drain.n_rings; i++) {
		const struct probes_ring *p = probes_ring(w->probes, i);

		ring_init(&w->drain.rings[i], p->data, p->size, p->consumer, p->producer);
		/* Edge-triggered: records that wait for their block must not wake us again. */
		r = watch(w->epoll_fd, p->fd, EPOLLIN | EPOLLET);
	}
	return r;
}

static int set_up_turns(struct worker *w, const struct worker_options *opts, struct iot_error *err)
{
	struct rotation_context *ctx = &w->ctx;
	int r;

	ctx->probes = w->probes;
	ctx->store = w->store;
	ctx->adopt = opts->adopt;
	ctx->stream = w->stream;
	ctx->places = &w->drain.places;
	ctx->sync = w->now.sync != IOT_SYNC_NEVER;
	if (w->stream == IOT_STREAM_BLOCK)
		decode_block_init(&ctx->decoder, probes_kernel(w->probes), w->n_cpus);
	r = names_new(&ctx->names);
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	if (w->stream == IOT_STREAM_BLOCK)
		names_scan_devices(ctx->names);
	return 0;
}

/* Everything that a segment's header says; the selection is the running one. */
static int set_up_facts(struct worker *w, const struct worker_options *opts, uint64_t attach_ns,
			struct iot_error *err)
{
	struct rotation_context *ctx = &w->ctx;
	int r;

	r = facts_collect(opts->config, w->probes, w->stream, store_capture_id(w->store), attach_ns,
			  &ctx->facts, err);
	if (r < 0)
		return r;
	_Static_assert(sizeof(w->selection) == sizeof(ctx->facts.info.selection), "one text");
	memcpy(w->selection, ctx->facts.info.selection, sizeof(w->selection));
	return 0;
}

static int resume(struct worker *w, const struct worker_options *opts, struct iot_error *err)
{
	_cleanup_free_ struct adopt_state *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return iot_error_set(err, -ENOMEM, "out of memory");
	adopt_read(opts->adopt, s);
	r = set_up_facts(w, opts, s->attach_ns, err);
	return r < 0 ? r : worker_resume(w, err);
}

static int open_first(struct worker *w, const struct worker_options *opts, struct iot_error *err)
{
	struct rotation_context *ctx = &w->ctx;
	struct iot_writer *writer = NULL;
	struct epoch *books = NULL;
	uint64_t attach_ns, pos[IOT_MAX_RINGS];
	int r;

	/* From here on records exist; the ring holds them until there is a file. */
	w->misses.begin_ns = clock_now_ns();
	r = probes_missed(w->probes, w->misses.last);
	if (r < 0)
		return iot_error_set(err, r, "reading the programs' missed runs: %s", strerror(-r));
	for (uint32_t p = 0; p < w->n_probes; p++)
		if (!w->attached[p])
			w->misses.last[p] = 0;
	r = probes_gate(w->probes, true, &attach_ns);
	if (r < 0)
		return iot_error_set(err, r, "opening the gate: %s", strerror(-r));
	r = set_up_facts(w, opts, attach_ns, err);
	if (r < 0)
		return r;
	r = rotation_open(ctx, 1, 1, attach_ns, &books, &writer);
	if (r < 0)
		return iot_error_set(err, r, "%s: cannot create a segment: %s",
				     store_path(w->store), strerror(-r));
	drain_positions(&w->drain, pos);
	segment_out_begin(worker_out(w, 1), books, writer, 1, pos, attach_ns);
	w->seq = 1;
	w->active = 1;
	w->slot_live[1] = true;
	worker_note_first(w, attach_ns);
	return 0;
}

static int start_threads(struct worker *w)
{
	sigset_t all, old;
	int r;

	r = rotor_start(&w->rotor, w->kick_fd);
	if (r < 0)
		return r;
	/* A turn that a predecessor began starts with what the rotor does in it: the flip. */
	if (w->resumed) {
		w->rotor_busy = true;
		rotor_submit(&w->rotor, rotation_begin, &w->turn);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return -r;
	(void)pthread_setname_np(w->thread, "iot-worker");
	w->thread_running = true;
	return 0;
}

int worker_start(const struct worker_options *opts, struct worker **ret, struct iot_error *err)
{
	struct worker *w;
	uint64_t ns;
	int r;

	w = calloc(1, sizeof(*w));
	if (!w)
		return iot_error_set(err, -ENOMEM, "out of memory");
	w->probes = opts->probes;
	w->store = opts->store;
	w->stream = opts->stream;
	w->n_cpus = probes_n_cpus(opts->probes);
	w->first_probe = probes_first_probe(opts->probes);
	w->n_probes = probes_n_probes(opts->probes);
	w->n_cells = (size_t)w->n_cpus * w->n_probes;
	w->epoll_fd = w->kick_fd = w->attention_fd = -EBADF;
	r = set_up(w, opts->stream == IOT_STREAM_PACKET ? &opts->config->packet
							: &opts->config->block);
	if (r < 0)
		(void)iot_error_set(err, r, "worker: %s", strerror(-r));
	else
		r = set_up_turns(w, opts, err);
	if (r >= 0)
		r = opts->resume ? resume(w, opts, err) : open_first(w, opts, err);
	if (r >= 0) {
		worker_status_update(w);
		r = start_threads(w);
		if (r < 0)
			(void)iot_error_set(err, r, "worker: cannot start threads: %s",
					    strerror(-r));
	}
	if (r < 0) {
		if (!opts->resume)
			(void)!probes_gate(opts->probes, false, &ns);
		worker_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static void kick(struct worker *w)
{
	(void)eventfd_write(w->kick_fd, 1);
}

void worker_status(struct worker *w, struct worker_status *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = w->status;
	pthread_mutex_unlock(&w->lock);
}

/* Lock held. Until the ticket is done, the worker is dead, or time is up. */
static int wait_for(struct worker *w, const struct worker_ticket *t, uint64_t ticket)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += COMMAND_TIMEOUT_S;
	while (t->done < ticket && !w->dead && r == 0)
		r = pthread_cond_timedwait(&w->cond, &w->lock, &until);
	if (t->done >= ticket)
		return 0;
	return w->dead ? -ESHUTDOWN : -ETIMEDOUT;
}

int worker_rotate(struct worker *w, enum iot_seal_reason reason, char *ret_name, size_t size)
{
	uint64_t ticket;
	int r;

	pthread_mutex_lock(&w->lock);
	ticket = ++w->rotate.wanted;
	w->rotate_reason = reason;
	kick(w);
	r = wait_for(w, &w->rotate, ticket);
	if (r >= 0) {
		r = w->rotate_result;
		snprintf(ret_name, size, "%s", w->rotate_name);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

int worker_flush(struct worker *w, char *ret_name, size_t size)
{
	uint64_t ticket;
	int r;

	pthread_mutex_lock(&w->lock);
	ticket = ++w->flush.wanted;
	kick(w);
	r = wait_for(w, &w->flush, ticket);
	if (r >= 0) {
		r = w->flush_result;
		snprintf(ret_name, size, "%s", w->flush_name);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

void worker_reconfigure(struct worker *w, const struct iot_stream_config *c)
{
	pthread_mutex_lock(&w->lock);
	w->config = *c;
	pthread_mutex_unlock(&w->lock);
	kick(w);
}

void worker_set_selection(struct worker *w, const struct iot_config *c)
{
	pthread_mutex_lock(&w->lock);
	facts_selection(c, w->stream, w->selection, sizeof(w->selection));
	pthread_mutex_unlock(&w->lock);
}

int worker_stop(struct worker *w, char *ret_name, size_t size)
{
	int r;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	kick(w);
	pthread_mutex_unlock(&w->lock);
	if (w->thread_running) {
		pthread_join(w->thread, NULL);
		w->thread_running = false;
	}
	r = w->result;
	if (r >= 0)
		r = w->turn_result;
	if (r >= 0 && size)
		snprintf(ret_name, size, "%s", w->last_name);
	return r;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	if (w->thread_running) {
		pthread_mutex_lock(&w->lock);
		w->abandon = true;
		pthread_mutex_unlock(&w->lock);
		kick(w);
		pthread_join(w->thread, NULL);
	}
	rotor_stop(&w->rotor);
	rotation_done(&w->turn);
	drain_done(&w->drain);
	w->ctx.names = names_free(w->ctx.names);
	net_names_done(&w->ctx.net_names);
	facts_done(&w->ctx.facts);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->kick_fd >= 0)
		close(w->kick_fd);
	if (w->attention_fd >= 0)
		close(w->attention_fd);
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

int worker_event_fd(const struct worker *w)
{
	return w->attention_fd;
}
