// SPDX-License-Identifier: BSD-2-Clause
/*
 * worker-loop.c - the thread that drains the rings.
 *
 * One turn: take commands, read the producer positions, drain, write what is due, give it back to
 * the kernel, advance the rotation, sample (every 100 ms, 200 while calm), sleep. The sleep is
 * `armed`: programs wake us only when a quarter of a ring is used and we said that we sleep; else
 * the tick does. When the output fails, records stay where they are: the ring absorbs, and when it
 * is full the kernel side counts and files. That is not a hang, so progress goes on; a worker that
 * no longer turns, or no longer gets at its ring, makes none.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "daemon/clock.h"
#include "daemon/worker-internal.h"

#define TICK_NS 100000000ULL
#define TURN_RECORDS 65536U
#define HOLD_MIN_NS 50000000ULL
#define HOLD_MAX_NS 2000000000ULL
#define GIVE_UP_NS 15000000000ULL
#define AHEAD_BYTES (1U << 20) /* of a segment's file, allocated at a time */
#define PRESSURE 4U	       /* as emit_wake_bytes of the programs: a quarter of a ring */

/* Without its owners a loss still counts: a ledger that finds no room must not keep records out. */
static void make_room(struct worker *w, struct segment_out *o)
{
	const struct ev_cell *cells = rotation_cells(w->probes, o->books->slot);
	uint64_t ledger = epoch_ledger_bytes(o->books, epoch_filed(cells, w->n_cells));

	iot_writer_reserve(o->writer, epoch_footer_bytes(o->books), AHEAD_BYTES + ledger);
}

static int flush_one(struct worker *w, struct segment_out *o, const uint64_t *pos)
{
	uint32_t n = iot_batch_count(o->batch);
	int r;

	if (n > 0 && segment_out_active(o))
		make_room(w, o);
	r = segment_out_flush(o, pos);
	if (r < 0 || n == 0 || w->now.sync != IOT_SYNC_BLOCK)
		return r;
	/* The block is whole in the file whatever the disk says: an error ends the segment (due()). */
	segment_out_sync(o);
	return 0;
}

int worker_flush_batches(struct worker *w, uint64_t now_ns)
{
	uint64_t pos[IOT_MAX_RINGS];
	int r = 0;

	if (now_ns < w->hold_until_ns)
		return WORKER_HELD;
	drain_positions(&w->drain, pos);
	for (unsigned int i = 0; i < 2 && r >= 0; i++)
		r = flush_one(w, worker_out(w, i), pos);
	drain_publish(&w->drain);
	if (r >= 0) {
		w->hold_pause_ns = 0;
		return 0;
	}
	w->last_error = r;
	w->hold_pause_ns = IOT_MIN(HOLD_MAX_NS, IOT_MAX(HOLD_MIN_NS, 2 * w->hold_pause_ns));
	w->hold_until_ns = now_ns + w->hold_pause_ns;
	if (w->stopping && now_ns >= w->stop_ns + GIVE_UP_NS) {
		/* The end must come: what is left is filed as lost, by owner, if a footer still fits. */
		w->drain.give_up = true;
		for (unsigned int i = 0; i < 2; i++)
			if (segment_out_active(worker_out(w, i)))
				w->drain.output_failed += segment_out_abandon(worker_out(w, i));
		drain_publish(&w->drain);
		return 0;
	}
	return WORKER_HELD;
}

/* What cannot be read any more is doubt without an owner, in every epoch from now on. */
static void mark_broken(struct worker *w)
{
	struct epoch *e = worker_out(w, w->active)->books;
	struct iot_window win = {
		.t1_ns = UINT64_MAX,
		.n = UINT64_MAX,
		.cpu = UINT32_MAX,
		.kind = IOT_WINDOW_OUTPUT,
	};

	w->ring_broken = true;
	w->last_error = -EBADMSG;
	for (size_t i = 0; e && i < e->n_windows; i++)
		if (e->windows[i].kind == IOT_WINDOW_OUTPUT && e->windows[i].n == UINT64_MAX)
			return;
	/* Without memory the unread records still keep these books from balancing. */
	if (!e || epoch_add_window(e, &win, NULL) < 0)
		w->missed = IOT_COUNT_UNKNOWN;
}

static void note_batch_begin(struct worker *w, uint64_t now_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct segment_out *o = worker_out(w, i);

		if (!o->begin_ns && iot_batch_count(o->batch) > 0)
			o->begin_ns = now_ns;
	}
}

/* Returns drain_run()'s condition; DRAIN_FULL means that the output is held. */
static int drain(struct worker *w, uint64_t now_ns, uint64_t *ret_taken)
{
	uint64_t taken = 0, n;
	int r;

	for (;;) {
		r = drain_run(&w->drain, TURN_RECORDS - IOT_MIN(taken, TURN_RECORDS), &n);
		taken += n;
		if (r != DRAIN_FULL)
			break;
		/* Both batches are written, so that everything read so far can be given back. */
		if (worker_flush_batches(w, now_ns) != 0)
			break;
	}
	if (r == -EBADMSG) {
		mark_broken(w);
		r = 0;
	}
	*ret_taken = taken;
	return r;
}

static bool flush_is_due(struct worker *w, uint64_t now_ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct segment_out *o = worker_out(w, i);
		uint32_t n = iot_batch_count(o->batch);

		if (n > 0 &&
		    (n >= w->now.block_records || now_ns - o->begin_ns >= w->now.block_age_ns))
			return true;
	}
	return w->flush_wanted > w->flush.started || drain_pressure(&w->drain, PRESSURE);
}

static void take_commands(struct worker *w, uint64_t now_ns)
{
	pthread_mutex_lock(&w->lock);
	w->now = w->config;
	w->flush_wanted = w->flush.wanted;
	if (w->stop && !w->stopping) {
		w->stopping = true;
		w->stop_ns = now_ns;
		__atomic_store_n(&w->ctx.give_up_ns, now_ns + GIVE_UP_NS, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&w->lock);
	__atomic_store_n(&w->ctx.sync, w->now.sync != IOT_SYNC_NEVER, __ATOMIC_RELAXED);
}

static void answer_flush(struct worker *w)
{
	const struct segment_out *o = worker_out(w, w->active);
	struct stat st;
	int r = 0;

	/* What was written to a file that nobody can open any more is not in the files. At the very end
	 * there is none left to look at. */
	if (!segment_out_active(o))
		r = 0;
	else if (fstat(iot_writer_fd(o->writer), &st) < 0)
		r = -errno;
	else if (st.st_nlink == 0)
		r = -ENOENT;
	w->flush.started = w->flush_wanted;
	/* Who asks for the status next is to find there what the files hold. */
	worker_status_update(w);
	pthread_mutex_lock(&w->lock);
	w->flush_result = r;
	store_name(w->store, w->stream, o->seq, false, w->flush_name, sizeof(w->flush_name));
	w->flush.done = w->flush_wanted;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

static int look_up_names(void *arg)
{
	struct worker *w = arg;

	if (w->stream == IOT_STREAM_PACKET) {
		/* Code stays where it is: its names can wait for the footer. */
		net_names_see_ifaces(&w->ctx.net_names, w->lookup.devices, w->lookup.n_devices);
		return 0;
	}
	names_see_devices(w->lookup.names, w->lookup.devices, w->lookup.n_devices);
	names_see_cgroups(w->lookup.names, w->lookup.cgroups, w->lookup.n_cgroups);
	return 0;
}

/* Names of what appeared since, while it is still there; the rotor reads /sys, not we. */
static void submit_names(struct worker *w)
{
	struct drain *d = &w->drain;

	if (w->rotor_busy || w->phase != WORKER_STEADY || (!d->n_new_devices && !d->n_new_cgroups))
		return;
	memcpy(w->lookup.devices, d->new_devices, d->n_new_devices * sizeof(*d->new_devices));
	memcpy(w->lookup.cgroups, d->new_cgroups, d->n_new_cgroups * sizeof(*d->new_cgroups));
	w->lookup.n_devices = d->n_new_devices;
	w->lookup.n_cgroups = d->n_new_cgroups;
	w->lookup.names = w->ctx.names;
	d->n_new_devices = 0;
	d->n_new_cgroups = 0;
	w->rotor_busy = true;
	w->rotor_names = true;
	rotor_submit(&w->rotor, look_up_names, w);
}

static int tick(struct worker *w, uint64_t now_ns)
{
	int r;

	if (now_ns < w->tick_ns)
		return 0;
	/* After the barrier and until the hand-over E's counters are final; E+1's are sampled. */
	r = worker_sample(w);
	if (r < 0)
		return r;
	w->tick_ns = now_ns + (w->quiet.calm ? 2 : 1) * TICK_NS;
	submit_names(w);
	worker_status_update(w);
	return 0;
}

static void sleep_turn(struct worker *w, int state, uint64_t taken, bool held)
{
	struct ev_control *control = probes_control(w->probes);
	uint64_t now_ns = clock_now_ns(), until_ns = w->tick_ns;
	struct epoll_event events[8];
	eventfd_t value;
	int ms, n;

	if (state == DRAIN_MORE)
		return;
	if (held) {
		until_ns = IOT_MIN(until_ns, IOT_MAX(w->hold_until_ns, now_ns + 1));
	} else {
		/* Order: say that we sleep, then look again. The programs look at the fill, then at
		 * `armed`. One of the two sees the other. */
		__atomic_store_n(&control->armed, 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		(void)drain_refresh(&w->drain);
		if (drain_pressure(&w->drain, PRESSURE) && taken > 0)
			until_ns = now_ns;
		else if (w->phase == WORKER_DRAINING || w->flush_wanted > w->flush.started ||
			 drain_pressure(&w->drain, PRESSURE))
			/* What we wait for is a record still being written. */
			until_ns = IOT_MIN(until_ns, now_ns + 1000000);
	}
	ms = until_ns > now_ns ? (int)((until_ns - now_ns + 999999) / 1000000) : 0;
	n = epoll_wait(w->epoll_fd, events, (int)IOT_ARRAY_SIZE(events), ms);
	__atomic_store_n(&control->armed, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++)
		if (events[i].data.fd == w->kick_fd)
			(void)eventfd_read(w->kick_fd, &value);
}

static int turn(struct worker *w)
{
	uint64_t now_ns = clock_now_ns(), taken = 0;
	bool held;
	int r, state;

	take_commands(w, now_ns);
	(void)drain_refresh(&w->drain);
	worker_rotate_pick_up(w);
	state = drain(w, now_ns, &taken);
	held = state == DRAIN_FULL;
	note_batch_begin(w, now_ns);
	if (!held && flush_is_due(w, now_ns))
		held = worker_flush_batches(w, now_ns) != 0;
	drain_publish(&w->drain);
	if (!held && w->hold_pause_ns == 0 && !w->ring_broken)
		w->last_error = 0;
	if (!held && state == 0 && w->flush_wanted > w->flush.started)
		answer_flush(w);
	r = worker_rotate_step(w, now_ns);
	if (r < 0)
		return r;
	r = tick(w, now_ns);
	if (r < 0)
		return r;
	w->progress++;
	sleep_turn(w, state, taken, held || now_ns < w->hold_until_ns);
	return 0;
}

void *worker_main(void *arg)
{
	struct worker *w = arg;
	bool abandon = false;
	int r = 0;

	while (r >= 0 && !abandon && !worker_rotate_finished(w)) {
		r = turn(w);
		pthread_mutex_lock(&w->lock);
		abandon = w->abandon;
		pthread_mutex_unlock(&w->lock);
	}
	__atomic_store_n(&w->ctx.give_up_ns, 1, __ATOMIC_RELAXED);
	rotor_stop(&w->rotor);
	if (r < 0)
		w->last_error = r;
	worker_status_update(w);
	pthread_mutex_lock(&w->lock);
	if (r < 0)
		snprintf(w->status.verdict, sizeof(w->status.verdict), "unknown");
	w->dead = true;
	w->result = r;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
	worker_attention(w);
	return NULL;
}
