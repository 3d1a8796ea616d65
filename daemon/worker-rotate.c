// SPDX-License-Identifier: BSD-2-Clause
/*
 * worker-rotate.c - the worker's side of a turn from one epoch to the next: a small state machine,
 * advanced once per turn of the loop, that never waits.
 */
#include <assert.h>

#include "daemon/clock.h"
#include "daemon/worker-internal.h"

/* A flood of losses may fill ledgers as fast as they are emptied; files need not follow it. */
#define LEDGER_PAUSE_NS 1000000000ULL
#define RETRY_PAUSE_NS 1000000000ULL

void worker_rotate_pick_up(struct worker *w)
{
	struct rotation *t = &w->turn;
	struct segment_out *old, *new;

	if (w->phase == WORKER_STEADY || w->phase == WORKER_SEALING || t->final ||
	    w->active != (t->epoch & 1) || !__atomic_load_n(&t->ready, __ATOMIC_ACQUIRE))
		return;
	old = worker_out(w, w->active);
	new = worker_out(w, w->active ^ 1);
	/* The new file's spans start where the old one's last block ended: no hole between them. */
	segment_out_begin(new, IOT_TAKE_PTR(t->next_books), IOT_TAKE_PTR(t->next_writer),
			  t->next_seq, old->p0, t->next_opened_ns);
	w->seq = t->next_seq;
	w->active ^= 1;
	w->slot_live[w->active] = true;
}

static enum iot_seal_reason due(struct worker *w, uint64_t now_ns)
{
	const struct segment_out *o = worker_out(w, w->active);
	const struct ev_cell *cells = rotation_cells(w->probes, o->books->slot);

	if (iot_writer_bytes(o->writer) >= w->now.segment_size_bytes)
		return IOT_SEAL_SIZE;
	/* Nothing more is to depend on a file that the disk failed to take. */
	if (o->sync_error)
		return IOT_SEAL_REQUEST;
	if (w->now.segment_age_ns && now_ns - o->opened_ns >= w->now.segment_age_ns)
		return IOT_SEAL_TIME;
	if (now_ns - o->opened_ns >= LEDGER_PAUSE_NS &&
	    epoch_filed(cells, w->n_cells) >= w->ledger_entries / 4 * 3)
		return IOT_SEAL_LEDGER;
	return IOT_SEAL_NONE;
}

static void answer(struct worker *w, int result, const char *name)
{
	if (!w->turn_ticket)
		return;
	/* Who asks for the status next is to find there what this turn came to. */
	worker_status_update(w);
	pthread_mutex_lock(&w->lock);
	w->rotate.done = w->turn_ticket;
	w->rotate_result = result;
	snprintf(w->rotate_name, sizeof(w->rotate_name), "%s", name);
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
	w->turn_ticket = 0;
}

static void start(struct worker *w, bool final)
{
	const struct segment_out *o = worker_out(w, w->active);

	/* The rotor, which reads the facts, is idle. */
	pthread_mutex_lock(&w->lock);
	memcpy(w->ctx.facts.info.selection, w->selection, sizeof(w->selection));
	pthread_mutex_unlock(&w->lock);
	rotation_prepare(&w->turn, &w->ctx, o->books->epoch, w->seq + 1, final);
	w->turn.reason = w->reason;
	memcpy(w->turn.next_p0, o->p0, w->drain.n_rings * sizeof(o->p0[0]));
	rotor_submit(&w->rotor, rotation_begin, &w->turn);
	w->rotor_busy = true;
	w->phase = WORKER_FLIPPING;
}

static void steady(struct worker *w, uint64_t now_ns)
{
	enum iot_seal_reason reason = IOT_SEAL_NONE;

	if (w->rotor_busy || w->final_started)
		return;
	if (w->stopping) {
		w->final_started = true;
		w->reason = IOT_SEAL_SHUTDOWN;
		start(w, true);
		return;
	}
	pthread_mutex_lock(&w->lock);
	if (w->rotate.wanted > w->rotate.started) {
		w->rotate.started = w->rotate.wanted;
		w->turn_ticket = w->rotate.wanted;
		reason = w->rotate_reason;
	}
	pthread_mutex_unlock(&w->lock);
	if (reason == IOT_SEAL_NONE && now_ns >= w->rotate_retry_ns)
		reason = due(w, now_ns);
	if (reason == IOT_SEAL_NONE)
		return;
	w->reason = reason;
	start(w, false);
}

/* The flip is over: E's counters are final, and every record of E lies before these positions. */
static int flipped(struct worker *w)
{
	struct segment_out *old = worker_out(w, (unsigned int)(w->turn.epoch & 1));
	int r;

	w->begin_error = 0;
	/* This sample's misses go to E: it is the last epoch that can have had them all. */
	r = worker_sample(w);
	if (r < 0)
		return r;
	worker_rotate_pick_up(w);
	old->books->last_ns = rotation_observed_ns(w->probes, clock_now_ns());
	if (w->resumed && !w->turn.final)
		worker_resume_flipped(w, old, worker_out(w, w->active));
	w->resumed = false;
	if (!w->turn.final)
		worker_note_misses(w, worker_out(w, w->active)->books->epoch);
	/*
	 * The gate may have begun to close (which is when the record ends) before the new epoch's file was
	 * opened, and have been closed after: then the new epoch covers no time, and leaves no gap.
	 */
	if (!w->turn.final)
		worker_out(w, w->active)->books->first_ns =
			IOT_MIN(worker_out(w, w->active)->books->first_ns, old->books->last_ns);
	(void)drain_refresh(&w->drain);
	for (uint32_t i = 0; i < w->drain.n_rings; i++)
		w->flip_pos[i] = w->drain.rings[i].limit;
	epoch_sum_cells(rotation_cells(w->probes, old->books->slot), w->n_cells, &w->closing);
	w->slot_live[old->books->slot] = false;
	w->phase = WORKER_DRAINING;
	return 0;
}

static bool drained(const struct worker *w)
{
	for (uint32_t i = 0; i < w->drain.n_rings; i++)
		if (w->drain.rings[i].pos < w->flip_pos[i] &&
		    !(w->ring_broken && w->drain.broken_ring == i))
			return false;
	return true;
}

static int hand_over(struct worker *w, uint64_t now_ns)
{
	struct segment_out *old = worker_out(w, (unsigned int)(w->turn.epoch & 1));
	struct rotation *t = &w->turn;
	int r;

	if (!drained(w))
		return 0;
	r = worker_flush_batches(w, now_ns);
	if (r != 0 || iot_batch_count(old->batch) > 0)
		return 0; /* held: again when the disk takes it */
	t->seq = old->seq;
	t->reason = w->reason;
	w->sealed_records += iot_writer_records(old->writer);
	w->sealed_bytes += iot_writer_bytes(old->writer);
	worker_note_totals(w, &t->totals);
	t->sync_error = old->sync_error;
	t->unsynced = old->sync_error < 0 || old->doubtful;
	segment_out_end(old, &t->books, &t->writer);
	rotor_submit(&w->rotor, rotation_end, t);
	w->rotor_busy = true;
	w->phase = WORKER_SEALING;
	return 0;
}

static void sealed(struct worker *w)
{
	struct rotation *t = &w->turn;

	w->sealed.seen += w->closing.seen;
	w->sealed.emitted += w->closing.emitted;
	w->sealed.filed += w->closing.filed;
	w->sealed.unattributed += w->closing.unattributed;
	w->sealed.identity_full += w->closing.identity_full;
	w->closing = (struct epoch_totals){};
	w->swap_out_lost_bytes += t->swap_out_lost_bytes;
	w->swap_in_lost_bytes += t->swap_in_lost_bytes;
	if (t->unbalanced)
		w->unbalanced++;
	if (t->sync_error || t->rewritten.lost_records) {
		w->sync_errors++;
		w->sync_error = t->sync_error;
		w->sync_error_seq = t->seq;
		w->sync_error_lost = t->rewritten.lost_records;
		w->drain.output_failed += t->rewritten.lost_records;
		w->sealed_records -= t->rewritten.lost_records;
	}
	/* -EEXIST is about the file that has the final name already. */
	store_name(w->store, w->stream, t->seq, t->seal_error >= 0 || t->seal_error == -EEXIST,
		   w->last_name, sizeof(w->last_name));
	w->turn_result = t->seal_error;
	if (t->seal_error < 0) {
		w->seal_errors++;
		w->seal_error_seq = t->seq;
		w->seal_error = t->seal_error;
	} else {
		w->segments_sealed++;
	}
	answer(w, t->seal_error, w->last_name);
	rotation_done(t);
	w->phase = WORKER_STEADY;
}

/* Takes the result of the job that has ended; -EINPROGRESS: none has. */
static int take_result(struct worker *w)
{
	int result = 0;

	if (!w->rotor_busy || !rotor_take(&w->rotor, &result))
		return -EINPROGRESS;
	w->rotor_busy = false;
	return result;
}

int worker_rotate_step(struct worker *w, uint64_t now_ns)
{
	int r = take_result(w);
	char name[128];

	if (w->rotor_names) {
		w->rotor_names = w->rotor_busy;
		r = -EINPROGRESS;
	}
	switch (w->phase) {
	case WORKER_STEADY:
		steady(w, now_ns);
		return 0;
	case WORKER_FLIPPING:
		if (r == -EINPROGRESS)
			return 0;
		if (r >= 0)
			return flipped(w);
		if (w->turn.final || w->active != (w->turn.epoch & 1) || w->turn.ready)
			return r; /* not known under which epoch programs run: nothing is provable */
		/* The next file could not be opened: stay in this epoch, which loses nothing. */
		w->begin_error = r;
		w->rotate_retry_ns = now_ns + RETRY_PAUSE_NS;
		store_name(w->store, w->stream, w->seq + 1, false, name, sizeof(name));
		answer(w, r, name);
		w->phase = WORKER_STEADY;
		return 0;
	case WORKER_DRAINING:
		return hand_over(w, now_ns);
	case WORKER_SEALING:
		if (r == -EINPROGRESS)
			return 0;
		sealed(w);
		/* A slot that cannot be cleared cannot be used again: there is no next turn. */
		return r;
	}
	assert(false);
	return -EINVAL;
}

bool worker_rotate_finished(const struct worker *w)
{
	return w->final_started && w->phase == WORKER_STEADY;
}
