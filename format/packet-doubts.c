// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet-doubts.c - all that the segments of one capture say is missing, as spans of time at probes.
 *
 * The rules are those of verdict-object.c, turned around: not "what speaks against this object" but
 * "from when to when, and where, is anything in doubt", so that a million packets can be asked. What has
 * a window stains its window; what has none (an unbalanced row, an unknown counter, a ledger that is not
 * whole, a segment that is not there) stains the whole epoch. Spans that are not known are taken wide.
 */
#include "format/packet-internal.h"

#include <assert.h>

/* Records without an owner that follow each other this closely are one doubt. */
#define POINTS_JOIN_NS 1000000ULL

static int add_doubt(struct iot_doubts *d, enum iot_doubt_kind kind, uint16_t probe, uint64_t t0_ns,
		     uint64_t t1_ns, const char *fmt, ...) IOT_PRINTF(6, 7);
static int add_doubt(struct iot_doubts *d, enum iot_doubt_kind kind, uint16_t probe, uint64_t t0_ns,
		     uint64_t t1_ns, const char *fmt, ...)
{
	va_list ap;
	char *why;
	int n;

	if (d->n == d->room) {
		size_t room = d->room ? d->room * 2 : 64;
		struct iot_doubt *items = reallocarray(d->items, room, sizeof(*items));

		if (!items)
			return -ENOMEM;
		d->items = items;
		d->room = room;
	}
	va_start(ap, fmt);
	n = vasprintf(&why, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	/* What ends before it begins bounds nothing. */
	d->items[d->n++] = (struct iot_doubt){
		.t0_ns = t0_ns <= t1_ns ? t0_ns : 0,
		.t1_ns = t0_ns <= t1_ns ? t1_ns : UINT64_MAX,
		.probe = probe,
		.kind = (uint8_t)kind,
		.why = why,
	};
	d->sorted = false;
	return 0;
}

static const char *label(const struct iot_doubt_segment *s, uint16_t probe, char *buf, size_t size)
{
	return iot_probe_label(s->info, s->f, probe, buf, size);
}

static unsigned long long seq_of(const struct iot_doubt_segment *s)
{
	return (unsigned long long)s->info->seq;
}

/* The whole of a segment's time. */
static int doubt_epoch(struct iot_doubts *d, const struct iot_doubt_segment *s, uint16_t probe,
		       const char *what)
{
	char name[64];

	if (!probe)
		return add_doubt(d, IOT_DOUBT_CLAIMS, 0, s->first_ns, s->last_ns,
				 "segment %llu: %s", seq_of(s), what);
	return add_doubt(d, IOT_DOUBT_CLAIMS, probe, s->first_ns, s->last_ns,
			 "segment %llu: %s: %s", seq_of(s), label(s, probe, name, sizeof(name)),
			 what);
}

/* ---- a segment's own claims ---- */

static int doubt_window(struct iot_doubts *d, const struct iot_doubt_segment *s,
			const struct iot_window *w)
{
	enum iot_doubt_kind kind = IOT_DOUBT_CLAIMS;
	char name[64], n[32] = "";

	switch (w->kind) {
	case IOT_WINDOW_UNATTRIBUTED:
	case IOT_WINDOW_OUTPUT:
		kind = IOT_DOUBT_RECORDS;
		break;
	case IOT_WINDOW_MISSED:
		kind = IOT_DOUBT_RUNS;
		break;
	case IOT_WINDOW_DETACHED:
		kind = IOT_DOUBT_RUNS;
		break;
	case IOT_WINDOW_TORN:
		kind = IOT_DOUBT_RECORDS;
		break;
	default: /* of a later version: it says that something is wrong, not what */
		break;
	}
	if (w->n == 0 && (w->kind == IOT_WINDOW_UNATTRIBUTED || w->kind == IOT_WINDOW_MISSED ||
			  w->kind == IOT_WINDOW_OUTPUT))
		return 0;
	if (w->n != IOT_COUNT_UNKNOWN && w->n)
		snprintf(n, sizeof(n), " (%llu)", (unsigned long long)w->n);
	return add_doubt(d, kind, w->probe, w->t0_ns, w->t1_ns,
			 "segment %llu: %s: %s%s within its time, owner not known", seq_of(s),
			 w->probe ? label(s, w->probe, name, sizeof(name)) : "any probe",
			 iot_window_kind_name(w->kind), n);
}

static bool differs(const struct iot_sum *a, uint64_t b)
{
	return a->unknown || a->n != b;
}

/* Counters of a probe that no window bounds. */
static int doubt_counters(struct iot_doubts *d, const struct iot_doubt_segment *s, uint16_t id,
			  const struct iot_probe_sums *p)
{
	int r = 0;

	if (p->read_failed.unknown || p->read_failed.n > 0)
		r = doubt_epoch(d, s, id, "kernel fields could not be read");
	if (r == 0 &&
	    (p->unattributed.unknown || differs(&p->window_unattributed, p->unattributed.n)))
		r = doubt_epoch(d, s, id, "losses without owner and window");
	if (r == 0 && (p->filed.unknown || differs(&p->ledger_filed, p->filed.n)))
		r = doubt_epoch(d, s, id, "the ledger of losses is not whole");
	if (r == 0 && (p->user_failed.unknown || p->window_output.unknown ||
		       p->window_output.n > p->user_failed.n ||
		       differs(&p->ledger_user, p->user_failed.n - p->window_output.n)))
		r = doubt_epoch(d, s, id, "records not written, owner not known");
	return r;
}

static int doubt_attached(struct iot_doubts *d, const struct iot_doubt_segment *s,
			  const struct iot_probe *row, const struct iot_probe_sums *p)
{
	char name[64];
	int r = 0;

	label(s, row->id, name, sizeof(name));
	/* What was not there yet, or has gone, nobody had to look at. */
	if (row->from_ns > IOT_MAX(s->info->attach_ns, s->f->epoch_first_ns) && row->program &&
	    row->loaded_ns)
		r = add_doubt(d, IOT_DOUBT_RUNS, row->id, row->loaded_ns, row->from_ns,
			      "segment %llu: %s: loaded, but not observed yet", seq_of(s), name);
	else if (row->from_ns > IOT_MAX(s->info->attach_ns, s->f->epoch_first_ns))
		r = add_doubt(d, IOT_DOUBT_RUNS, row->id, s->first_ns, row->from_ns,
			      "segment %llu: %s: not attached yet", seq_of(s), name);
	if (r == 0 && row->to_ns && !row->gone && row->to_ns < s->f->epoch_last_ns)
		r = add_doubt(d, IOT_DOUBT_RUNS, row->id, row->to_ns, s->last_ns,
			      "segment %llu: %s: not attached any more", seq_of(s), name);
	if (r < 0)
		return r;
	if (row->miss != IOT_MISS_COUNTED && row->miss != IOT_MISS_UNGUARDED)
		return doubt_epoch(d, s, row->id,
				   "runs the kernel skipped cannot be counted on this kernel");
	if (!p->user_row || (p->missed.unknown && row->miss == IOT_MISS_COUNTED))
		return doubt_epoch(d, s, row->id, "number of missed runs not known");
	if (!p->missed.unknown && differs(&p->window_missed, p->missed.n))
		return doubt_epoch(d, s, row->id, "missed runs without a window");
	return 0;
}

static int doubt_probe(struct iot_doubts *d, const struct iot_doubt_segment *s, uint16_t id,
		       const struct iot_probe_sums *p)
{
	const struct iot_probe *row = iot_probe_find(s->info, s->f, id);
	int r;

	if (!row)
		return p->present ? doubt_epoch(d, s, id, "in the books but not in the probe table")
				  : 0;
	switch (row->state) {
	case IOT_ATTACH_ATTACHED:
		if (row->program_kind == IOT_PROGRAM_XDP)
			iot_probe_set_add(&d->xdp, id);
		r = doubt_attached(d, s, row, p);
		break;
	case IOT_ATTACH_ABSENT:
	case IOT_ATTACH_NOT_NEEDED:
	case IOT_ATTACH_REFUSED:
		/* Nothing looked there, which an absence says. Without its ends no id means anything. */
		r = p->seen.n || p->seen.unknown
			    ? doubt_epoch(d, s, id, "counted, but not attached by the probe table")
		    : row->state == IOT_ATTACH_REFUSED &&
				    (id == IOT_PROBE_CONSUME_SKB || id == IOT_PROBE_KFREE_SKB)
			    ? doubt_epoch(d, s, id, "refused: ends of packets were not observed")
			    : 0;
		break;
	default:
		r = doubt_epoch(d, s, id, "unknown state of the probe");
	}
	return r < 0 ? r : doubt_counters(d, s, id, p);
}

/* Whatever makes all of a segment's claims doubtful. */
static int doubt_books(struct iot_doubts *d, const struct iot_doubt_segment *s,
		       const struct iot_books_summary *sums)
{
	const struct iot_footer *f = s->f;
	size_t n_probes;
	int r = 0;

	iot_probe_table(s->info, f, &n_probes);
	if (f->epoch_first_ns == 0 || f->epoch_last_ns < f->epoch_first_ns)
		r = doubt_epoch(d, s, 0, "the time it covers is not known");
	if (r == 0 && (f->reason == IOT_SEAL_RECOVERED || f->reason == IOT_SEAL_NONE ||
		       f->reason > IOT_SEAL_RECOVERED))
		r = doubt_epoch(d, s, 0, "recovered: part of it may be lost");
	if (r == 0 && n_probes == 0)
		r = doubt_epoch(d, s, 0, "the probe table is empty");
	if (r == 0 && (sums->n_unbalanced || sums->duplicate_rows || sums->foreign_ids))
		r = doubt_epoch(d, s, 0, "the books do not balance");
	if (r == 0 && sums->n_unknown)
		r = doubt_epoch(d, s, 0, "counters are not known");
	return r;
}

static void count_seen(struct iot_doubt_segment *s)
{
	for (size_t i = 0; i < s->f->n_books; i++) {
		const struct iot_books *b = &s->f->books[i];
		unsigned int k = b->probe - IOT_FIRST_PACKET_PROBE;

		if (k >= IOT_N_PACKET_PROBES)
			continue;
		s->seen[k] = iot_add_sat(s->seen[k], b->seen);
		s->not_selected[k] = iot_add_sat(s->not_selected[k], b->not_selected);
		/*
		 * There it is what has no protocol: no packet of any flow (bpf/packet-observe.bpf.h). And at another's
		 * program it is the entry, which has looked (bpf/packet-program.bpf.c).
		 */
		if (b->probe != IOT_PROBE_KFREE_SKB && b->probe < IOT_PROBE_PROGRAMS)
			s->folded[k] = iot_add_sat(s->folded[k], b->folded);
	}
}

static int doubt_segment(struct iot_doubts *d, struct iot_doubt_segment *s,
			 struct iot_books_summary *sums)
{
	int r = 0;

	if (!s->f)
		return doubt_epoch(d, s, 0, "no footer: what it lost is not known");
	iot_books_sum(s->f, sums);
	iot_books_sum_losses(sums, s->f->losses, s->f->n_losses);
	count_seen(s);
	for (size_t i = 0; r == 0 && i < s->f->n_windows; i++)
		r = doubt_window(d, s, &s->f->windows[i]);
	if (r == 0)
		r = doubt_books(d, s, sums);
	for (unsigned int i = 0; r == 0 && i < IOT_N_PACKET_PROBES; i++) {
		const struct iot_probe_sums *p = &sums->probes[IOT_FIRST_PACKET_PROBE + i];

		s->ownerless[i].counted = p->identity_full.n;
		s->ownerless[i].unknown = p->identity_full.unknown;
		r = doubt_probe(d, s, (uint16_t)(IOT_FIRST_PACKET_PROBE + i), p);
	}
	return r;
}

/* ---- the chain ---- */

/* The time for which a segment answers, widened by what the readings of the clock may be off. */
static void set_span(struct iot_doubts *d, size_t i)
{
	struct iot_doubt_segment *s = &d->segments[i];
	const struct iot_doubt_segment *next = i + 1 < d->n_segments ? s + 1 : NULL;

	s->last_ns = UINT64_MAX;
	if (s->f && s->f->epoch_first_ns && s->f->epoch_last_ns >= s->f->epoch_first_ns) {
		s->first_ns = s->f->epoch_first_ns;
		s->last_ns = s->f->epoch_last_ns;
	} else {
		/* A file is created before its epoch becomes the active one. */
		s->first_ns = s->info->clocks.monotonic_ns;
		if (next && next->info->seq == s->info->seq + 1 && next->f &&
		    next->f->epoch_first_ns)
			s->last_ns = next->f->epoch_first_ns;
	}
	s->first_ns = iot_sub_sat(s->first_ns, IOT_EPOCH_SLACK_NS);
	s->last_ns = iot_add_sat(s->last_ns, IOT_EPOCH_SLACK_NS);
}

/* prev: the one given before, or NULL. */
static int doubt_hole(struct iot_doubts *d, const struct iot_doubt_segment *prev,
		      const struct iot_doubt_segment *s)
{
	uint64_t prev_seq = prev ? prev->info->seq : 0;

	assert(s);

	if (prev && (memcmp(s->info->capture_id, prev->info->capture_id, 16) != 0 ||
		     s->info->stream != prev->info->stream))
		return add_doubt(
			d, IOT_DOUBT_CLAIMS, 0, 0, UINT64_MAX,
			"segments of more than one capture: an id means nothing across them");
	if (s->info->seq == prev_seq + 1)
		return 0;
	if (s->info->seq <= prev_seq)
		return add_doubt(d, IOT_DOUBT_CLAIMS, 0, 0, UINT64_MAX,
				 "segments are not in order");
	return add_doubt(
		d, IOT_DOUBT_RECORDS, 0,
		prev && prev->f ? iot_sub_sat(prev->f->epoch_last_ns, IOT_EPOCH_SLACK_NS) : 0,
		s->f && s->f->epoch_first_ns ? iot_add_sat(s->f->epoch_first_ns, IOT_EPOCH_SLACK_NS)
					     : UINT64_MAX,
		"segments %llu to %llu are missing", (unsigned long long)prev_seq + 1,
		(unsigned long long)s->info->seq - 1);
}

static int doubt_chain(struct iot_doubts *d)
{
	const struct iot_doubt_segment *last;
	int r = 0;

	assert(d->segments);

	if (d->n_segments == 0)
		return add_doubt(d, IOT_DOUBT_CLAIMS, 0, 0, UINT64_MAX, "no segment was given");
	for (size_t i = 0; r == 0 && i < d->n_segments; i++)
		r = doubt_hole(d, i > 0 ? &d->segments[i - 1] : NULL, &d->segments[i]);
	last = &d->segments[d->n_segments - 1];
	/* A shutdown ends the capture: nothing can follow. */
	if (r == 0 && last->f && last->f->reason != IOT_SEAL_SHUTDOWN &&
	    last->f->epoch_last_ns < UINT64_MAX)
		r = add_doubt(d, IOT_DOUBT_CLAIMS, 0, last->f->epoch_last_ns + 1, UINT64_MAX,
			      "the capture goes on after segment %llu, the last one given",
			      seq_of(last));
	return r;
}

/* ---- the ledger by owner ---- */

static int cmp_loss(const void *a, const void *b)
{
	const struct iot_loss *x = *(const struct iot_loss *const *)a;
	const struct iot_loss *y = *(const struct iot_loss *const *)b;

	if (x->id != y->id)
		return iot_cmp_u64(x->id, y->id);
	if (x->first_ns != y->first_ns)
		return iot_cmp_u64(x->first_ns, y->first_ns);
	if (x->probe != y->probe)
		return iot_cmp_u64(x->probe, y->probe);
	if (x->last_ns != y->last_ns)
		return iot_cmp_u64(x->last_ns, y->last_ns);
	return iot_cmp_u64(x->cause, y->cause);
}

static int index_losses(struct iot_doubts *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_segments; i++)
		n += d->segments[i].f ? d->segments[i].f->n_losses : 0;
	d->losses = calloc(n + 1, sizeof(const struct iot_loss *));
	d->losers = calloc(n + 1, sizeof(*d->losers));
	if (!d->losses || !d->losers)
		return -ENOMEM;
	for (size_t i = 0; i < d->n_segments; i++)
		for (size_t k = 0; d->segments[i].f && k < d->segments[i].f->n_losses; k++)
			if (d->segments[i].f->losses[k].n > 0)
				d->losses[d->n_losses++] = &d->segments[i].f->losses[k];
	if (d->n_losses > 1)
		qsort(d->losses, d->n_losses, sizeof(const struct iot_loss *), cmp_loss);
	for (size_t i = 0; i < d->n_losses; i++) {
		uint64_t id = d->losses[i] ? d->losses[i]->id : 0;

		if (id && (d->n_losers == 0 || d->losers[d->n_losers - 1] != id))
			d->losers[d->n_losers++] = id;
	}
	return 0;
}

/* Losses of packets without an id may be any packet's. */
static int doubt_ownerless(struct iot_doubts *d, struct iot_doubt_segment *s)
{
	char name[64];
	int r;

	for (size_t k = 0; s->f && k < s->f->n_losses; k++) {
		const struct iot_loss *loss = &s->f->losses[k];
		unsigned int i = loss->probe - IOT_FIRST_PACKET_PROBE;

		if (loss->id != 0 || loss->n == 0)
			continue;
		if (i < IOT_N_PACKET_PROBES)
			s->ownerless[i].found = iot_add_sat(s->ownerless[i].found, loss->n);
		r = add_doubt(d, IOT_DOUBT_OWNERS, loss->probe, loss->first_ns,
			      loss->last_ns ? loss->last_ns : UINT64_MAX,
			      "segment %llu: %s: %llu observations of unidentified packets lost",
			      seq_of(s), label(s, loss->probe, name, sizeof(name)),
			      (unsigned long long)loss->n);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_attached(const struct iot_doubt_segment *s, uint16_t probe)
{
	const struct iot_probe *row = iot_probe_find(s->info, s->f, probe);

	return row && row->state == IOT_ATTACH_ATTACHED;
}

/* Whether ids of a segment are one packet each: it says so, and its probe table bears it out. */
static int doubt_identity(struct iot_doubts *d, const struct iot_doubt_segment *s)
{
	if (strcmp(s->info->identity, "exact") != 0) {
		d->exact = false;
		return 0;
	}
	if (is_attached(s, IOT_PROBE_ALLOC_SKB) && is_attached(s, IOT_PROBE_KFREE_SKBMEM))
		return 0;
	d->exact = false;
	return doubt_epoch(d, s, 0,
			   "ids are said to be exact, but births or ends were not observed");
}

int iot_doubts_new(const struct iot_segment_info *const *infos,
		   const struct iot_footer *const *footers, size_t n, struct iot_doubts **ret)
{
	_cleanup_(iot_doubts_freep) struct iot_doubts *d = calloc(1, sizeof(*d));
	_cleanup_free_ struct iot_books_summary *sums = malloc(sizeof(*sums));
	int r;

	if (!d || !sums)
		return -ENOMEM;
	d->segments = calloc(n + 1, sizeof(*d->segments));
	if (!d->segments)
		return -ENOMEM;
	d->n_segments = n;
	d->exact = n > 0;
	for (size_t i = 0; i < n; i++) {
		d->segments[i].info = infos[i];
		d->segments[i].f = footers[i];
	}
	for (size_t i = 0; i < n; i++) {
		set_span(d, i);
		r = doubt_segment(d, &d->segments[i], sums);
		if (r == 0)
			r = doubt_identity(d, &d->segments[i]);
		if (r == 0)
			r = doubt_ownerless(d, &d->segments[i]);
		if (r < 0)
			return r;
	}
	r = doubt_chain(d);
	if (r == 0)
		r = index_losses(d);
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(d);
	return 0;
}

struct iot_doubts *iot_doubts_free(struct iot_doubts *d)
{
	if (!d)
		return NULL;
	for (size_t i = 0; i < d->n; i++)
		free(d->items[i].why);
	free(d->items);
	free(d->segments);
	free(d->losses);
	free(d->losers);
	free(d);
	return NULL;
}

/* ---- what only reading the records can tell ---- */

int iot_doubts_unidentified(struct iot_doubts *d, size_t i, const struct iot_packet *p)
{
	struct iot_doubt_segment *s = &d->segments[i];
	unsigned int k = p->probe - IOT_FIRST_PACKET_PROBE;
	struct iot_doubt *last;
	char name[64];
	int r;

	assert(i < d->n_segments && p->id == 0);

	if (k < IOT_N_PACKET_PROBES) {
		s->ownerless[k].found = iot_add_sat(s->ownerless[k].found, 1);
		last = s->last_point[k] ? &d->items[s->last_point[k] - 1] : NULL;
		/* Sorting moves them; then a new one is made. */
		if (last && !d->sorted && p->ts_ns >= last->t0_ns &&
		    p->ts_ns <= iot_add_sat(last->t1_ns, POINTS_JOIN_NS)) {
			last->t1_ns = IOT_MAX(last->t1_ns, p->ts_ns);
			return 0;
		}
	}
	r = add_doubt(d, IOT_DOUBT_OWNERS, p->probe, p->ts_ns, p->ts_ns,
		      "segment %llu: %s: observations of unidentified packets", seq_of(s),
		      label(s, p->probe, name, sizeof(name)));
	if (r == 0 && k < IOT_N_PACKET_PROBES)
		s->last_point[k] = d->n;
	return r;
}

int iot_doubts_unreadable(struct iot_doubts *d, size_t i, uint64_t first_ns, uint64_t last_ns)
{
	assert(i < d->n_segments);

	return add_doubt(d, IOT_DOUBT_RECORDS, 0, first_ns, last_ns,
			 "segment %llu: a part of the file cannot be read",
			 seq_of(&d->segments[i]));
}

int iot_doubts_miscounted(struct iot_doubts *d, size_t i, uint16_t probe)
{
	assert(i < d->n_segments);

	return doubt_epoch(d, &d->segments[i], probe,
			   "the file has another number of records than its books say");
}

/* ---- ready to be asked ---- */

static int cmp_doubt(const void *a, const void *b)
{
	const struct iot_doubt *x = a, *y = b;
	int c = iot_cmp_u64(x->t0_ns, y->t0_ns);

	c = c ? c : iot_cmp_u64(x->t1_ns, y->t1_ns);
	return c ? c : strcmp(x->why, y->why);
}

/* Records without an owner that the books count and no record shows: there is no telling when. */
static int doubt_unexplained(struct iot_doubts *d, struct iot_doubt_segment *s)
{
	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		struct iot_ownerless *o = &s->ownerless[i];
		int r;

		if (!o->unknown && o->counted <= o->found)
			continue;
		r = doubt_epoch(d, s, (uint16_t)(IOT_FIRST_PACKET_PROBE + i),
				"identity map full, at times that are not known");
		if (r < 0)
			return r;
		o->unknown = false;
		o->counted = o->found;
	}
	return 0;
}

int iot_doubts_seal(struct iot_doubts *d)
{
	uint64_t max = 0;

	if (d->sorted)
		return 0;
	for (size_t i = 0; i < d->n_segments; i++) {
		int r = doubt_unexplained(d, &d->segments[i]);

		if (r < 0)
			return r;
	}
	if (d->n > 1)
		qsort(d->items, d->n, sizeof(*d->items), cmp_doubt);
	for (size_t i = 0; i < d->n; i++) {
		max = IOT_MAX(max, d->items[i].t1_ns);
		d->items[i].max_t1_ns = max;
	}
	for (size_t i = 0; i < d->n_segments; i++)
		memset(d->segments[i].last_point, 0, sizeof(d->segments[i].last_point));
	d->sorted = true;
	return 0;
}

size_t iot_doubts_losers(const struct iot_doubts *d, const uint64_t **ret)
{
	*ret = d->losers;
	return d->n_losers;
}

size_t iot_doubts_losses(const struct iot_doubts *d, uint64_t id,
			 const struct iot_loss *const **ret)
{
	size_t lo = 0, hi = d->n_losses, n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->losses[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < d->n_losses && d->losses[lo + n]->id == id)
		n++;
	*ret = d->losses + lo;
	return n;
}
