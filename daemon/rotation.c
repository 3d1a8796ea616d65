// SPDX-License-Identifier: BSD-2-Clause
/* rotation.c - see rotation.h. */
#include <assert.h>

#include "daemon/clock.h"
#include "daemon/crash-point.h"
#include "daemon/rotation.h"

#define FLIP_TRIES 10
#define REWRITES 40U /* some minutes; after that the file stays as it is */
#define REWRITE_PAUSE_NS 5000000000ULL

static void pause_ns(uint64_t ns)
{
	const struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000ULL),
				    .tv_nsec = (long)(ns % 1000000000ULL)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

void rotation_prepare(struct rotation *r, struct rotation_context *ctx, uint64_t epoch,
		      uint64_t next_seq, bool final)
{
	r->ctx = ctx;
	r->epoch = epoch;
	r->next_seq = next_seq;
	r->final = final;
}

void rotation_done(struct rotation *r)
{
	r->next_books = epoch_free(r->next_books);
	r->next_writer = iot_writer_close(r->next_writer);
	r->books = epoch_free(r->books);
	r->writer = iot_writer_close(r->writer);
	free(r->in_flight);
	free(r->ledger);
	*r = (struct rotation){};
}

uint64_t rotation_observed_ns(struct probes *p, uint64_t now_ns)
{
	size_t n;
	const struct iot_probe *table = probes_table(p, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t to_ns = __atomic_load_n(&table[i].to_ns, __ATOMIC_ACQUIRE);

		/* What observes somebody's program ends with that. */
		if (table[i].state == IOT_ATTACH_ATTACHED && to_ns && !table[i].program)
			now_ns = IOT_MIN(now_ns, to_ns);
	}
	return now_ns;
}

int rotation_open(struct rotation_context *ctx, uint64_t epoch, uint64_t seq, uint64_t first_ns,
		  struct epoch **ret_books, struct iot_writer **ret_writer)
{
	struct iot_segment_info info;
	struct epoch *books = NULL;
	char name[128];
	int r;

	r = epoch_new(ctx->stream, epoch, ctx->facts.info.n_cpus, first_ns, &books);
	if (r < 0)
		return r;
	r = facts_segment(&ctx->facts, ctx->probes, ctx->names, epoch, seq, &info);
	if (r < 0) {
		epoch_free(books);
		return r;
	}
	store_name(ctx->store, ctx->stream, seq, false, name, sizeof(name));
	r = iot_writer_open(store_dirfd(ctx->store), name, &info, ret_writer);
	iot_names_done(&info.devices);
	if (r < 0) {
		epoch_free(books);
		return r;
	}
	*ret_books = books;
	return 0;
}

static int flip(struct rotation *r, uint64_t epoch)
{
	int q = 0;

	for (int i = 0; i < FLIP_TRIES; i++) {
		q = probes_flip(r->ctx->probes, epoch);
		if (q >= 0)
			return 0;
		pause_ns(ROTATION_SEAL_PAUSE_NS / 10);
	}
	return q;
}

static int read_ledger(struct rotation *r)
{
	_cleanup_free_ struct ev_ledger_key *keys = NULL;
	_cleanup_free_ struct ev_ledger_val *vals = NULL;
	size_t n;
	int q;

	q = probes_ledger_read(r->ctx->probes, (unsigned int)(r->epoch & 1), &keys, &vals, &n);
	if (q < 0)
		return q;
	r->ledger = calloc(n ? n : 1, sizeof(*r->ledger));
	if (!r->ledger)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		decode_block_loss(&r->ctx->decoder, &keys[i], &vals[i], &r->ledger[i]);
	r->n_ledger = n;
	return 0;
}

static int read_packet_ledger(struct rotation *r)
{
	_cleanup_free_ struct ev_ledger_key *keys = NULL;
	_cleanup_free_ struct ev_packet_loss *vals = NULL;
	size_t n;
	int q;

	q = probes_packet_ledger_read(r->ctx->probes, (unsigned int)(r->epoch & 1), &keys, &vals,
				      &n);
	if (q < 0)
		return q;
	r->ledger = calloc(n ? n : 1, sizeof(*r->ledger));
	if (!r->ledger)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		decode_packet_loss(&keys[i], &vals[i], &r->ledger[i]);
	r->n_ledger = n;
	return 0;
}

/* Before the flip: a successor that finds the flip noted must find the file, too. */
static void note_next(struct rotation *r)
{
	struct adopt_slot *slot;
	struct adopt_state *s;

	if (!r->ctx->adopt)
		return;
	s = adopt_edit(r->ctx->adopt);
	s->reason = r->reason;
	slot = &s->slots[(r->epoch + 1) & 1];
	*slot = (struct adopt_slot){
		.epoch = r->epoch + 1,
		.seq = r->next_seq,
		.first_ns = r->next_books->first_ns,
	};
	memcpy(slot->p0, r->next_p0, sizeof(slot->p0));
	adopt_commit(r->ctx->adopt);
}

/* sealed: its footer is whole; else the epoch was given up. */
static void note_sealed(struct rotation *r, bool sealed)
{
	struct adopt_state *s;

	if (!r->ctx->adopt)
		return;
	s = adopt_edit(r->ctx->adopt);
	if (s->sealed != r->epoch) {
		s->sealed = r->epoch;
		s->prev_footer_hash = r->ctx->prev_footer_hash;
		s->totals = r->totals;
		s->totals.segments += sealed;
		s->totals.unbalanced += r->unbalanced > 0;
		s->totals.swap_out_lost_bytes += r->swap_out_lost_bytes;
		s->totals.swap_in_lost_bytes += r->swap_in_lost_bytes;
	}
	/* Also of one whose footer is whole, but which could not be given its name. */
	if (!sealed) {
		s->totals.seal_errors = r->totals.seal_errors + 1;
		s->totals.seal_error_seq = r->seq;
		s->totals.seal_error = r->seal_error;
	}
	adopt_commit(r->ctx->adopt);
}

static void note_clean(struct rotation *r)
{
	if (!r->ctx->adopt)
		return;
	adopt_edit(r->ctx->adopt)->clean = r->epoch;
	adopt_commit(r->ctx->adopt);
}

int rotation_begin(void *arg)
{
	struct rotation *r = arg;
	struct rotation_context *ctx = r->ctx;
	int q;

	if (!r->final && !r->ready) {
		q = rotation_open(ctx, r->epoch + 1, r->next_seq,
				  rotation_observed_ns(ctx->probes, clock_now_ns()), &r->next_books,
				  &r->next_writer);
		if (q < 0)
			return q;
		r->next_opened_ns = clock_now_ns();
		crash_point("next-open");
		note_next(r);
		crash_point("next-noted");
		__atomic_store_n(&r->ready, true, __ATOMIC_RELEASE);
	}
	q = flip(r, r->final ? r->epoch : r->epoch + 1);
	if (q < 0)
		return q;
	crash_point("flipped");
	r->flipped_ns = clock_now_ns();
	/* Without this list a hung request is not named; nothing else depends on it. */
	if (ctx->stream == IOT_STREAM_BLOCK &&
	    probes_in_flight(ctx->probes, &r->in_flight, &r->n_in_flight) < 0)
		r->n_in_flight = 0;
	do {
		q = ctx->stream == IOT_STREAM_PACKET ? read_packet_ledger(r) : read_ledger(r);
		if (q < 0)
			pause_ns(ROTATION_SEAL_PAUSE_NS);
	} while (q == -ENOMEM || q == -EINTR || q == -EAGAIN);
	return q;
}

static uint64_t begin_of(const struct iot_request *q)
{
	return q->start_ns ? q->start_ns : q->insert_ns ? q->insert_ns : q->issue_ns;
}

static int fill_open(struct rotation *r, struct iot_footer *f)
{
	f->open = calloc(r->n_in_flight ? r->n_in_flight : 1, sizeof(*f->open));
	if (!f->open)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_in_flight; i++) {
		struct iot_request *q = &f->open[f->n_open];

		decode_block_in_flight(&r->ctx->decoder, &r->in_flight[i], q);
		/* Begun after the flip: E+1's business. */
		if (begin_of(q) <= r->flipped_ns)
			f->n_open++;
	}
	return 0;
}

static int fill_losses(struct rotation *r, struct iot_footer *f)
{
	size_t n = r->n_ledger + r->books->n_losses;

	f->losses = calloc(n ? n : 1, sizeof(*f->losses));
	if (!f->losses)
		return -ENOMEM;
	if (r->n_ledger)
		memcpy(f->losses, r->ledger, r->n_ledger * sizeof(*f->losses));
	if (r->books->n_losses)
		memcpy(f->losses + r->n_ledger, r->books->losses,
		       r->books->n_losses * sizeof(*f->losses));
	f->n_losses = n;
	r->swap_out_lost_bytes = r->swap_in_lost_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t swapped = iot_swapped(f->losses[i].swap, f->losses[i].bytes,
					       f->losses[i].unswapped_bytes);

		if (f->losses[i].swap == IOT_SWAP_OUT)
			r->swap_out_lost_bytes += swapped;
		else if (f->losses[i].swap == IOT_SWAP_IN)
			r->swap_in_lost_bytes += swapped;
	}
	return 0;
}

static int fill_names(struct rotation_context *ctx, const struct epoch *e, struct iot_footer *f)
{
	int q;

	if (ctx->stream == IOT_STREAM_PACKET) {
		q = net_names_ifaces_of(&ctx->net_names, &e->devices, &f->devices);
		return q < 0 ? q
			     : net_names_symbols_of(&ctx->net_names, ctx->places, &e->cgroups,
						    &f->symbols);
	}
	q = names_devices_of(ctx->names, &e->devices, &f->devices);
	return q < 0 ? q : names_cgroups_of(ctx->names, &e->cgroups, &f->cgroups);
}

static int fill_footer(struct rotation *r, struct iot_footer *f)
{
	struct rotation_context *ctx = r->ctx;
	struct epoch *e = r->books;
	const struct iot_probe *probes;
	size_t n_probes;
	int q;

	*f = (struct iot_footer){
		.reason = (uint8_t)r->reason,
		.prev_footer_hash = ctx->prev_footer_hash,
		.clocks = clock_anchors(),
		.epoch_first_ns = e->first_ns,
		.epoch_last_ns = e->last_ns,
	};
	probes = probes_table(ctx->probes, &n_probes);
	f->probes = calloc(n_probes ? n_probes : 1, sizeof(*f->probes));
	if (!f->probes)
		return -ENOMEM;
	memcpy(f->probes, probes, n_probes * sizeof(*f->probes));
	f->n_probes = n_probes;
	q = epoch_books(e, rotation_cells(ctx->probes, e->slot), probes, n_probes, &f->books,
			&f->n_books);
	if (q >= 0)
		q = fill_losses(r, f);
	if (q >= 0)
		q = fill_open(r, f);
	if (q >= 0)
		q = fill_names(ctx, e, f);
	if (q < 0)
		return q;
	f->windows = IOT_TAKE_PTR(e->windows);
	f->n_windows = e->n_windows;
	return 0;
}

static bool may_pass(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EIO || error == -ENOMEM ||
	       error == -EAGAIN || error == -EINTR || error == -EROFS;
}

/* Repeats what may succeed later. Records of E+1 go on being written meanwhile. */
static bool try_again(struct rotation_context *ctx, int error)
{
	uint64_t give_up_ns = __atomic_load_n(&ctx->give_up_ns, __ATOMIC_RELAXED);

	__atomic_store_n(&ctx->error, error, __ATOMIC_RELAXED);
	if (error >= 0 || !may_pass(error) || (give_up_ns && clock_now_ns() >= give_up_ns))
		return false;
	pause_ns(ROTATION_SEAL_PAUSE_NS);
	return true;
}

/* A successor's footer names this one's hash, and what was lost belongs to the totals. */
static void note_rewritten(struct rotation *r)
{
	struct adopt_state *s;

	r->ctx->prev_footer_hash = r->rewritten.footer_hash;
	if (!r->ctx->adopt)
		return;
	s = adopt_edit(r->ctx->adopt);
	s->prev_footer_hash = r->ctx->prev_footer_hash;
	s->totals.output_failed = r->totals.output_failed + r->rewritten.lost_records;
	s->totals.records = r->totals.records - r->rewritten.lost_records;
	adopt_commit(r->ctx->adopt);
}

/*
 * A file whose sync failed is never synced again, since that would succeed without the bytes being on
 * the disk: it is written anew, each time to another file, until one of them is on the disk.
 */
static int publish(struct rotation *r, const struct iot_footer *f)
{
	struct rotation_context *ctx = r->ctx;
	bool sync = __atomic_load_n(&ctx->sync, __ATOMIC_RELAXED);
	_cleanup_close_ int copy = -EBADF;
	bool unsynced = r->unsynced;
	unsigned int n = 0;
	int q = 0;

	do {
		if (unsynced) {
			int fd = copy >= 0 ? copy : iot_writer_fd(r->writer), next = -EBADF;

			if (n > 0)
				pause_ns(IOT_MIN(ROTATION_SEAL_PAUSE_NS << IOT_MIN(n, 8U),
						 REWRITE_PAUSE_NS));
			n++;
			q = store_rewrite(ctx->store, ctx->stream, r->seq, fd, f, &next,
					  &r->rewritten);
			if (q < 0)
				continue;
			if (copy >= 0)
				close(copy);
			copy = next;
			unsynced = false;
			note_rewritten(r);
		}
		q = store_publish(ctx->store, ctx->stream, r->seq,
				  copy >= 0 ? copy : iot_writer_fd(r->writer), sync, &unsynced);
		if (unsynced && !r->sync_error)
			r->sync_error = q;
	} while ((unsynced && n == 0) || (try_again(ctx, q) && n < REWRITES));
	return q;
}

static int seal(struct rotation *r, struct iot_footer *f)
{
	struct rotation_context *ctx = r->ctx;
	int q;

	do {
		q = iot_writer_seal(r->writer, f);
	} while (try_again(ctx, q));
	/* The end must come, and the disk is full. There is room for a footer, see iot_writer_reserve(). */
	if ((q == -ENOSPC || q == -EDQUOT) && epoch_fold_losses(f) == 0)
		q = iot_writer_seal(r->writer, f);
	if (q < 0)
		return q;
	ctx->prev_footer_hash = iot_writer_footer_hash(r->writer);
	crash_point("footer");
	note_sealed(r, true);
	return publish(r, f);
}

int rotation_end(void *arg)
{
	struct rotation *r = arg;
	struct rotation_context *ctx = r->ctx;
	struct iot_footer f = {};
	int q;

	q = fill_footer(r, &f);
	if (q >= 0) {
		r->unbalanced = epoch_unbalanced(&f, iot_writer_records(r->writer));
		q = seal(r, &f);
	}
	iot_footer_done(&f);
	/* A file that could not be sealed stays .open: recovery says so, and what its epoch lost is
	 * unknown then. The slot is needed for the epoch after the next either way. */
	r->seal_error = q < 0 ? q : 0;
	r->writer = iot_writer_close(r->writer);
	r->books = epoch_free(r->books);
	crash_point("before-clear");
	if (r->final)
		return 0;
	if (r->seal_error)
		note_sealed(r, false);
	do {
		q = probes_slot_clear(ctx->probes, (unsigned int)(r->epoch & 1));
		if (q < 0)
			pause_ns(ROTATION_SEAL_PAUSE_NS);
	} while (q < 0 && !__atomic_load_n(&ctx->give_up_ns, __ATOMIC_RELAXED));
	crash_point("cleared");
	if (q >= 0)
		note_clean(r);
	return q;
}
