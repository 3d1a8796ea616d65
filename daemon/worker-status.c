// SPDX-License-Identifier: BSD-2-Clause
/*
 * worker-status.c - what the worker counts for others, and the sampling of what has no owner.
 *
 * Totals are the sealed epochs' plus the live cells of the slots in use. Between an epoch's barrier
 * and the end of its turn its sums are kept aside, so that clearing its slot is never seen.
 */
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "daemon/clock.h"
#include "daemon/worker-internal.h"

#define CALM_RUNS 16U /* of programs, between two ticks */

static void add_totals(struct epoch_totals *a, const struct epoch_totals *b)
{
	a->seen += b->seen;
	a->emitted += b->emitted;
	a->filed += b->filed;
	a->unattributed += b->unattributed;
	a->identity_full += b->identity_full;
}

void worker_attention(struct worker *w)
{
	(void)eventfd_write(w->attention_fd, 1);
}

/*
 * A program is skipped only while another run of it is under way, and every run counts `seen` first. So
 * while nothing was seen nothing can have been missed, and reading the programs' counters (a system call
 * each) is saved: an idle daemon costs next to nothing. The window of a later miss begins one quiet tick
 * back, since a run may have begun just before its count was read.
 */
static bool nothing_ran(struct worker *w, const struct epoch *e)
{
	uint64_t now_ns = clock_now_ns();
	struct epoch_totals t;
	bool quiet;

	epoch_sum_cells(rotation_cells(w->probes, e->slot), w->n_cells, &t);
	quiet = w->phase == WORKER_STEADY && w->quiet.epoch == e->epoch && w->quiet.seen == t.seen;
	w->quiet.calm = w->quiet.epoch == e->epoch && t.seen - w->quiet.seen <= CALM_RUNS;
	if (quiet)
		w->misses.begin_ns = IOT_MAX(w->misses.begin_ns, w->quiet.begin_ns);
	w->quiet.epoch = e->epoch;
	w->quiet.seen = t.seen;
	w->quiet.begin_ns = now_ns;
	return quiet;
}

void worker_look_at_probes(struct worker *w)
{
	size_t n;
	const struct iot_probe *table = probes_table(w->probes, &n);

	for (size_t i = 0; i < n; i++)
		if (table[i].id - w->first_probe < w->n_probes)
			w->attached[table[i].id - w->first_probe] =
				__atomic_load_n(&table[i].state, __ATOMIC_RELAXED) ==
				IOT_ATTACH_ATTACHED;
}

int worker_sample(struct worker *w)
{
	/* Misses belong to the oldest epoch that still may have programs running under it. */
	unsigned int parity = w->phase == WORKER_FLIPPING ? (unsigned int)(w->turn.epoch & 1)
							  : w->active;
	struct epoch *e = worker_out(w, parity)->books;
	uint64_t missed[EPOCH_MAX_PROBES], before = 0, begin_ns, end_ns;
	int r;

	/* Programs of others, and with them our probes, come at any time. */
	if (w->stream == IOT_STREAM_PACKET)
		worker_look_at_probes(w);
	/* Handed over for the last time: nothing runs any more. */
	if (!e || nothing_ran(w, e))
		return 0;
	r = epoch_sample_cells(e, rotation_cells(w->probes, e->slot), clock_now_ns);
	if (r < 0)
		return r;
	begin_ns = clock_now_ns();
	r = probes_missed(w->probes, missed);
	end_ns = clock_now_ns();
	for (uint32_t p = 0; p < w->n_probes; p++) {
		if (!w->attached[p])
			missed[p] = w->misses.last[p];
		else if (r < 0)
			missed[p] = IOT_COUNT_UNKNOWN;
		before += e->missed[p] == IOT_COUNT_UNKNOWN ? 0 : e->missed[p];
	}
	r = epoch_sample_missed(e, &w->misses, missed, begin_ns, end_ns);
	for (uint32_t p = 0; p < w->n_probes; p++) {
		if (e->missed[p] == IOT_COUNT_UNKNOWN)
			w->missed = IOT_COUNT_UNKNOWN;
		else if (w->missed != IOT_COUNT_UNKNOWN)
			w->missed += e->missed[p];
	}
	if (w->missed != IOT_COUNT_UNKNOWN)
		w->missed -= before;
	return r;
}

/* What is written to a file that nobody can open any more will be in no file, however well the writing goes. */
static bool is_unlinked(const struct segment_out *o)
{
	struct stat st;

	return o->books && (fstat(iot_writer_fd(o->writer), &st) < 0 || st.st_nlink == 0);
}

static const char *verdict(const struct worker_status *s)
{
	/* A file that was not sealed may be gone, or its books with it. */
	if (s->lost_unattributed || s->missed || s->books_unbalanced || s->identity_full ||
	    s->seal_errors || s->unlinked_seq)
		return "unknown";
	if (s->lost_filed || s->decode_failed || s->output_failed)
		return "lost";
	return "complete";
}

void worker_status_update(struct worker *w)
{
	struct epoch_totals t = w->sealed;
	const struct segment_out *o = worker_out(w, w->active);
	const struct segment_out *old = worker_out(w, w->active ^ 1);
	struct worker_status s;
	bool worse;

	add_totals(&t, &w->closing);
	for (unsigned int slot = 0; slot < 2; slot++) {
		struct epoch_totals live;

		if (!w->slot_live[slot])
			continue;
		epoch_sum_cells(rotation_cells(w->probes, slot), w->n_cells, &live);
		add_totals(&t, &live);
	}
	s = (struct worker_status){
		.segment_seq = w->seq,
		.records = w->sealed_records,
		.bytes_written = w->sealed_bytes,
		.segments_sealed = w->segments_sealed,
		.seen = t.seen,
		.emitted = t.emitted,
		.lost_filed = t.filed,
		.lost_unattributed = t.unattributed,
		.identity_full = t.identity_full,
		.missed = w->missed,
		.decode_failed = w->drain.decode_failed,
		.output_failed = w->drain.output_failed,
		.books_unbalanced = w->unbalanced,
		.ring_used_bytes = drain_used(&w->drain),
		.ring_high_bytes = w->drain.ring_high_bytes,
		.swap_out_bytes = w->drain.swap_out_bytes,
		.swap_in_bytes = w->drain.swap_in_bytes,
		.swap_out_lost_bytes = w->swap_out_lost_bytes,
		.swap_in_lost_bytes = w->swap_in_lost_bytes,
		.progress = w->progress,
		.last_record_ns = w->drain.last_record_ns,
		.seal_errors = w->seal_errors,
		.seal_error_seq = w->seal_error_seq,
		.seal_error = w->seal_error,
		.last_error = w->last_error,
		.begin_error = w->begin_error,
		.sync_errors = w->sync_errors,
		.sync_error = w->sync_error,
		.sync_error_seq = w->sync_error_seq,
		.sync_error_lost = w->sync_error_lost,
	};
	if (s.last_error == 0)
		s.last_error = __atomic_load_n(&w->ctx.error, __ATOMIC_RELAXED);
	if (s.last_error == 0)
		s.last_error = s.begin_error;
	if (o->books) {
		s.epoch = o->books->epoch;
		s.segment_bytes = iot_writer_bytes(o->writer);
		s.segment_records = iot_writer_records(o->writer);
		s.segment_open_ns = o->opened_ns;
		s.records += s.segment_records;
		s.bytes_written += s.segment_bytes;
		store_name(w->store, w->stream, w->seq, false, s.segment_name,
			   sizeof(s.segment_name));
	}
	if (old->books) {
		s.records += iot_writer_records(old->writer);
		s.bytes_written += iot_writer_bytes(old->writer);
	}
	if (is_unlinked(old))
		s.unlinked_seq = old->seq;
	else if (is_unlinked(o))
		s.unlinked_seq = o->seq;
	snprintf(s.verdict, sizeof(s.verdict), "%s", w->ring_broken ? "unknown" : verdict(&s));

	pthread_mutex_lock(&w->lock);
	worse = strcmp(s.verdict, w->status.verdict) != 0 || s.last_error != w->status.last_error ||
		s.books_unbalanced != w->status.books_unbalanced ||
		s.unlinked_seq != w->status.unlinked_seq;
	w->status = s;
	pthread_mutex_unlock(&w->lock);
	if (worse)
		worker_attention(w);
}
