// SPDX-License-Identifier: BSD-2-Clause
/*
 * worker-adopt.c - going on with the capture of a daemon that died, exactly.
 *
 * What it can have died in the middle of, and what closes each window:
 *  - a block half written: whole blocks stay, the rest is cut (format/writer.c); its records are still in
 *    the ring, since the position is published only after the write.
 *  - a block written, its position not published: records of an epoch that lie before the end of the last
 *    block of that epoch's file are in it, and are not taken again (segment_out_has()). That end never
 *    regresses. One batch may hold two epochs, hence per file.
 *  - E+1's file created, or noted, but not flipped to: nothing can be in it. It is removed, and made again
 *    at the next turn.
 *  - the flip: noted before it happens, so it is repeated, which waits for programs as the first one did.
 *    Whatever is read of the ring's end after that is behind all of E's records.
 *  - flipped, not sealed: the turn goes on from the flip. Cells and ledger of E are still whole, for
 *    they are cleared only after a whole footer.
 *  - half a seal: ledger blocks and footer are cut and made again.
 *  - sealed, not noted or not renamed: a whole footer is the proof; it is given its name.
 *  - half cleared (clean < sealed): cleared again, before anything may flip to that slot.
 *
 * The books of an unsealed epoch are made again from what is left of it: written from the file, the
 * rest from the cells. What only the dead daemon's memory held (failures of its own, by owner) is gone; the
 * books then do not balance, and the verdict says so. Times without owner are wider than they were: one
 * window from the epoch's beginning, since the samples taken meanwhile are gone.
 */
#include <assert.h>
#include <fcntl.h>

#include "daemon/clock.h"
#include "daemon/crash-point.h"
#include "daemon/worker-internal.h"
#include "format/schema.h"

/* What counting and naming look at: CPU, operation (swap), submitter (cgroup), device, bytes. */
#define COLUMNS                                                                             \
	(IOT_COLS_CPU | IOT_COLS_OP | IOT_COLS_CONTEXT | IOT_COLS_DEVICE | IOT_COLS_BYTES | \
	 IOT_COLS_BYTES_DONE)

/* ---- for our own successor ---- */

static void fill_misses(const struct worker *w, struct adopt_slot *slot)
{
	slot->misses_ns = w->misses.begin_ns;
	memcpy(slot->misses, w->misses.last, sizeof(slot->misses));
}

void worker_note_first(struct worker *w, uint64_t attach_ns)
{
	const struct segment_out *o = worker_out(w, 1);
	struct adopt_slot *slot;
	struct adopt_state *s;

	if (!w->ctx.adopt)
		return;
	s = adopt_edit(w->ctx.adopt);
	s->attach_ns = attach_ns;
	s->n_cpus = w->n_cpus;
	s->n_rings = w->drain.n_rings;
	slot = &s->slots[1];
	*slot = (struct adopt_slot){.epoch = 1, .seq = 1, .first_ns = o->books->first_ns};
	memcpy(slot->p0, o->p0, sizeof(slot->p0));
	fill_misses(w, slot);
	adopt_commit(w->ctx.adopt);
}

void worker_note_misses(struct worker *w, uint64_t epoch)
{
	struct adopt_state *s;

	if (!w->ctx.adopt)
		return;
	s = adopt_edit(w->ctx.adopt);
	assert(s->slots[epoch & 1].epoch == epoch);
	fill_misses(w, &s->slots[epoch & 1]);
	adopt_commit(w->ctx.adopt);
}

void worker_note_totals(struct worker *w, struct adopt_totals *ret)
{
	/* What the epoch that goes on has had so far is found again in its file and cells. */
	const struct epoch *e = worker_out(w, w->active)->books;

	*ret = (struct adopt_totals){
		.cells = w->sealed,
		.missed = w->missed,
		.unbalanced = w->unbalanced,
		.segments = w->segments_sealed,
		.bytes = w->sealed_bytes,
		.records = w->sealed_records,
		.swap_out_lost_bytes = w->swap_out_lost_bytes,
		.swap_in_lost_bytes = w->swap_in_lost_bytes,
		.swap_out_bytes = w->drain.swap_out_bytes - (e ? e->swap_out_bytes : 0),
		.swap_in_bytes = w->drain.swap_in_bytes - (e ? e->swap_in_bytes : 0),
		.decode_failed = w->drain.decode_failed,
		.output_failed = w->drain.output_failed,
		.seal_errors = w->seal_errors,
		.seal_error_seq = w->seal_error_seq,
		.seal_error = w->seal_error,
	};
	ret->cells.seen += w->closing.seen;
	ret->cells.emitted += w->closing.emitted;
	ret->cells.filed += w->closing.filed;
	ret->cells.unattributed += w->closing.unattributed;
	ret->cells.identity_full += w->closing.identity_full;
	for (uint32_t p = 0; e && p < w->n_probes && ret->missed != IOT_COUNT_UNKNOWN; p++)
		ret->missed -= IOT_MIN(ret->missed, e->missed[p]);
}

/* ---- as a successor ---- */

static void take_totals(struct worker *w, const struct adopt_totals *t)
{
	w->sealed = t->cells;
	w->missed = t->missed;
	w->unbalanced = t->unbalanced;
	w->segments_sealed = t->segments;
	w->sealed_bytes = t->bytes;
	w->sealed_records = t->records;
	w->swap_out_lost_bytes = t->swap_out_lost_bytes;
	w->swap_in_lost_bytes = t->swap_in_lost_bytes;
	w->drain.swap_out_bytes = t->swap_out_bytes;
	w->drain.swap_in_bytes = t->swap_in_bytes;
	w->drain.decode_failed = t->decode_failed;
	w->drain.output_failed = t->output_failed;
	w->seal_errors = t->seal_errors;
	w->seal_error_seq = t->seal_error_seq;
	w->seal_error = (int)t->seal_error;
}

struct scan {
	struct worker *w;
	struct segment_out *out;
	uint64_t p0[IOT_MAX_RINGS];
};

/* A block that the file keeps: its records are written, and the ring is done with them up to there. */
static int take_block(void *arg, const struct iot_block_info *info, const struct iot_batch *b)
{
	struct scan *scan = arg;
	struct worker *w = scan->w;

	if (info->n_spans != w->drain.n_rings)
		return -EBADMSG;
	for (uint32_t i = 0; i < info->n_spans; i++)
		scan->p0[i] = IOT_MAX(scan->p0[i], info->spans[i].p1);
	for (uint32_t i = 0; i < iot_batch_count(b); i++) {
		struct iot_row_key key;

		iot_batch_key(b, i, &key);
		if (key.cpu >= w->n_cpus || key.probe < w->first_probe ||
		    key.probe - w->first_probe >= w->n_probes)
			return -EBADMSG;
		if (w->stream == IOT_STREAM_PACKET) {
			struct iot_packet p;

			iot_batch_get_packet(b, i, &p);
			drain_note_packet(&w->drain, scan->out, &p);
		} else {
			struct iot_request r;

			iot_batch_get(b, i, &r);
			drain_note_block(&w->drain, scan->out, &r);
		}
	}
	return 0;
}

/* What the copy of a sealed file lacks, or its predecessor's rewriting was killed before it noted. */
static void take_rewritten(struct worker *w, const struct iot_rewritten *done)
{
	struct adopt_state *s;

	if (done->footer_hash == w->ctx.prev_footer_hash)
		return;
	w->ctx.prev_footer_hash = done->footer_hash;
	w->drain.output_failed += done->lost_records;
	w->sealed_records -= IOT_MIN(w->sealed_records, done->lost_records);
	s = adopt_edit(w->ctx.adopt);
	s->prev_footer_hash = done->footer_hash;
	s->totals.output_failed = w->drain.output_failed;
	s->totals.records = w->sealed_records;
	adopt_commit(w->ctx.adopt);
}

/*
 * The predecessor may have been killed after the kernel had told it that a sync failed, and that is told
 * once: a sync of ours would succeed whatever is on the disk. So the file is written anew; where that fails
 * (no room), it is given its name as it is, and what readers find in it is proved by its checksums.
 */
static int publish(struct worker *w, const char *name, uint64_t seq, struct iot_error *err)
{
	_cleanup_close_ int fd = openat(store_dirfd(w->store), name, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int copy = -EBADF;
	struct iot_rewritten done;
	bool unsynced;
	int r;

	if (fd < 0)
		return iot_error_set(err, -errno, "%s: %s", name, strerror(errno));
	if (w->ctx.sync && store_rewrite(w->store, w->stream, seq, fd, NULL, &copy, &done) >= 0)
		take_rewritten(w, &done);
	r = store_publish(w->store, w->stream, seq, copy >= 0 ? copy : fd, w->ctx.sync, &unsynced);

	/* A name that is taken is somebody's copy: the file stays as it is, whole. */
	return r < 0 && r != -EEXIST ? iot_error_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

/* Opens one epoch's file and makes its books. Positive IOT_WRITER_SEALED: it is whole, *ret_hash. */
static int take_segment(struct worker *w, const struct adopt_slot *slot, uint64_t *ret_hash,
			struct iot_error *err)
{
	struct segment_out *out = worker_out(w, (unsigned int)(slot->epoch & 1));
	struct iot_segment_info expect = w->ctx.facts.info;
	struct scan scan = {.w = w, .out = out};
	struct iot_writer *writer = NULL;
	struct epoch *books = NULL;
	char name[128];
	int r;

	expect.epoch = slot->epoch;
	expect.seq = slot->seq;
	store_name(w->store, w->stream, slot->seq, false, name, sizeof(name));
	r = epoch_new(w->stream, slot->epoch, w->n_cpus, slot->first_ns, &books);
	if (r < 0)
		return iot_error_set(err, r, "out of memory");
	memcpy(scan.p0, slot->p0, sizeof(scan.p0));
	segment_out_begin(out, books, NULL, slot->seq, slot->p0, slot->first_ns);
	r = iot_writer_resume(store_dirfd(w->store), name, &expect,
			      w->stream == IOT_STREAM_BLOCK ? COLUMNS : IOT_COLS_ALL, take_block,
			      &scan, &writer, ret_hash, err);
	if (r != 0) {
		segment_out_end(out, &books, &writer);
		epoch_free(books);
		return r < 0 && !err->text[0] ? iot_error_set(err, r, "%s: %s", name, strerror(-r))
					      : r;
	}
	out->writer = writer;
	/* What its syncs returned died with it (see publish()). With this policy they happen at any time. */
	out->doubtful = w->now.sync == IOT_SYNC_BLOCK;
	memcpy(out->p0, scan.p0, w->drain.n_rings * sizeof(out->p0[0]));
	return 0;
}

/* The epoch before the active one: sealed or to be sealed. Positive 1: its turn goes on. */
static int take_previous(struct worker *w, const struct adopt_state *s, struct iot_error *err)
{
	uint64_t epoch = s->active.epoch - 1, hash = 0;
	const struct adopt_slot *slot = &s->slots[epoch & 1];
	struct adopt_state *edit;
	char name[128];
	int r;

	if (epoch == 0)
		return 0;
	if (s->sealed < epoch && slot->epoch != epoch)
		return iot_error_set(err, -EBADMSG, "the state does not know epoch %llu",
				     (unsigned long long)epoch);
	if (slot->epoch == epoch) {
		store_name(w->store, w->stream, slot->seq, false, name, sizeof(name));
		if (s->sealed >= epoch)
			return faccessat(store_dirfd(w->store), name, F_OK, 0) == 0
				       ? publish(w, name, slot->seq, err)
				       : 0;
		r = take_segment(w, slot, &hash, err);
		if (r == 0)
			return 1;
		if (r != IOT_WRITER_SEALED)
			return r;
		/* The totals of its books are lost to status; the capture's verdict is the files'. */
		w->ctx.prev_footer_hash = hash;
		edit = adopt_edit(w->ctx.adopt);
		edit->sealed = epoch;
		edit->prev_footer_hash = hash;
		edit->totals.segments++;
		adopt_commit(w->ctx.adopt);
		w->segments_sealed++;
		return publish(w, name, slot->seq, err);
	}
	return 0;
}

static int clear(struct worker *w, uint64_t epoch, struct iot_error *err)
{
	int r = probes_slot_clear(w->probes, (unsigned int)(epoch & 1));

	if (r < 0)
		return iot_error_set(err, r, "cannot clear the counters of epoch %llu: %s",
				     (unsigned long long)epoch, strerror(-r));
	adopt_edit(w->ctx.adopt)->clean = epoch;
	adopt_commit(w->ctx.adopt);
	return 0;
}

static void take_misses(struct worker *w, const struct adopt_slot *slot)
{
	memcpy(w->misses.last, slot->misses, sizeof(slot->misses));
	w->misses.begin_ns = slot->misses_ns;
	if (slot->misses_ns)
		return;
	/* Not known what was missed before this epoch: then it is not known what was missed in it. */
	for (uint32_t p = 0; p < w->n_probes; p++)
		if (w->attached[p])
			w->misses.last[p] = IOT_COUNT_UNKNOWN;
	w->misses.begin_ns = slot->first_ns;
}

static int resume(struct worker *w, const struct adopt_state *s, struct iot_error *err)
{
	uint64_t active = s->active.epoch, hash;
	const struct adopt_slot *slot = &s->slots[active & 1];
	const struct adopt_slot *before = &s->slots[(active & 1) ^ 1];
	bool turning;
	char name[128];
	int r;

	if (slot->epoch != active || s->sealed + 2 < active || s->clean + 2 < active ||
	    s->sealed >= active)
		return iot_error_set(err, -EBADMSG, "the state contradicts itself");
	/* Whether or not the last change of it was carried out: now it is, and no program runs under another. */
	r = probes_flip(w->probes, active);
	if (r < 0)
		return iot_error_set(err, r, "cannot flip: %s", strerror(-r));
	crash_point("resume-flipped");
	w->ctx.prev_footer_hash = s->prev_footer_hash;
	take_totals(w, &s->totals);
	if (before->epoch == active + 1) {
		store_name(w->store, w->stream, before->seq, false, name, sizeof(name));
		(void)unlinkat(store_dirfd(w->store), name, 0);
	}
	r = take_previous(w, s, err);
	if (r < 0)
		return r;
	turning = r > 0;
	r = take_segment(w, slot, &hash, err);
	if (r == IOT_WRITER_SEALED)
		return iot_error_set(err, -EBADMSG, "the active epoch's segment is sealed");
	if (r < 0)
		return r;
	/* Records of E are behind E's last block or in it, and E+1's file began before any record of it. */
	w->seq = slot->seq;
	w->active = (unsigned int)(active & 1);
	w->slot_live[w->active] = true;
	if (!turning) {
		take_misses(w, slot);
		return active > 1 && s->clean < active - 1 ? clear(w, active - 1, err) : 0;
	}
	take_misses(w, before);
	w->slot_live[w->active ^ 1] = true;
	w->reason = (enum iot_seal_reason)s->reason;
	rotation_prepare(&w->turn, &w->ctx, active - 1, slot->seq, false);
	w->turn.reason = w->reason;
	w->turn.ready = true; /* its next file is open, and ours already */
	w->phase = WORKER_FLIPPING;
	w->resumed = true;
	return 0;
}

int worker_resume(struct worker *w, struct iot_error *err)
{
	_cleanup_free_ struct adopt_state *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return iot_error_set(err, -ENOMEM, "out of memory");
	adopt_read(w->ctx.adopt, s);
	r = resume(w, s, err);
	if (r < 0)
		return r;
	crash_point("resumed");
	/* How full the rings became without a reader: who looks at losses wants to know. */
	(void)drain_refresh(&w->drain);
	return 0;
}

void worker_resume_flipped(struct worker *w, struct segment_out *old, struct segment_out *new)
{
	struct epoch *e = old->books, *next = new->books;

	/* Its successor's file was opened before the flip: until then it was certainly the active one. */
	e->last_ns = IOT_MAX(e->first_ns, IOT_MIN(e->last_ns, next->first_ns));
	/*
	 * Some of these misses may be the next epoch's, whose own count died with the daemon: it answers
	 * for all of them, too. Doubt may be told twice, never not at all.
	 */
	for (uint32_t p = 0; p < w->n_probes; p++) {
		struct iot_window win = {
			.t0_ns = next->first_ns,
			.t1_ns = w->misses.begin_ns,
			.n = e->missed[p],
			.cpu = UINT32_MAX,
			.probe = (uint16_t)(w->first_probe + p),
			.kind = IOT_WINDOW_MISSED,
		};

		if (!e->missed[p])
			continue;
		if (e->missed[p] == IOT_COUNT_UNKNOWN ||
		    epoch_add_window(next, &win, &next->last_missed_window[p]) < 0)
			next->missed[p] = IOT_COUNT_UNKNOWN;
		else
			next->missed[p] += e->missed[p];
	}
}
