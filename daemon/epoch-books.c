// SPDX-License-Identifier: BSD-2-Clause
/*
 * epoch-books.c - the end of an epoch: its rows, and whether they add up. The cells have no writer any
 * more when these run; what does not add up is said, never corrected.
 */
#include "daemon/epoch.h"

#define MAX_IDS ((uint32_t)EV_PACKET_PROGRAMS_END) /* one past the highest probe of any stream */

static bool any_count(const struct iot_books *b)
{
	return b->seen || b->not_selected || b->folded || b->emitted || b->reserve_failed ||
	       b->filed || b->unattributed || b->identity_full || b->written || b->decode_failed ||
	       b->output_failed;
}

static struct iot_books row(const struct epoch *e, const struct ev_cell *cells, uint32_t cpu,
			    uint32_t probe)
{
	size_t i = (size_t)cpu * e->n_probes + probe;
	const struct ev_cell *c = &cells[i];

	return (struct iot_books){
		.probe = (uint16_t)(e->first_probe + probe),
		.cpu = cpu,
		.seen = c->seen,
		.not_selected = c->not_selected,
		.folded = c->folded,
		.emitted = c->emitted,
		.reserve_failed = c->reserve_failed,
		.filed = c->filed,
		.unattributed = c->unattributed,
		.identity_full = c->identity_full,
		.written = e->written[i],
		.decode_failed = e->decode_failed[i],
		.output_failed = e->output_failed[i],
		.suppressed = c->suppressed,
	};
}

static bool attached(const struct iot_probe *probes, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (probes[i].id == id)
			return probes[i].state == IOT_ATTACH_ATTACHED;
	return false;
}

int epoch_books(const struct epoch *e, const struct ev_cell *cells, const struct iot_probe *probes,
		size_t n_probes, struct iot_books **ret, size_t *ret_n)
{
	size_t room = ((size_t)e->n_cpus + 1) * e->n_probes + 1, n = 0;
	struct iot_books *books = calloc(room, sizeof(*books));
	struct iot_books *fit;

	if (!books)
		return -ENOMEM;
	/* Rows of no probe sort first; their equation cannot hold, which is what they have to say. */
	if (e->nameless)
		books[n++] = (struct iot_books){.cpu = UINT32_MAX, .decode_failed = e->nameless};
	for (uint32_t p = 0; p < e->n_probes; p++) {
		for (uint32_t cpu = 0; cpu < e->n_cpus; cpu++) {
			books[n] = row(e, cells, cpu, p);
			n += any_count(&books[n]);
		}
		if (!attached(probes, n_probes, e->first_probe + p) && !e->orphans[p])
			continue;
		books[n++] = (struct iot_books){
			.probe = (uint16_t)(e->first_probe + p),
			.cpu = UINT32_MAX,
			.decode_failed = e->orphans[p],
			.missed = e->missed[p],
		};
	}
	fit = reallocarray(books, n ? n : 1, sizeof(*books));
	*ret = fit ? fit : books;
	*ret_n = n;
	return 0;
}

struct sums {
	uint64_t filed;
	uint64_t unattributed;
	uint64_t missed;
	uint64_t user_failed;
	uint64_t ledger_filed;
	uint64_t ledger_user;
	uint64_t window_unattributed;
	uint64_t window_missed;
	uint64_t window_output;
};

static void add_losses(const struct iot_footer *f, struct sums *sums, uint64_t *n_bad)
{
	for (size_t i = 0; i < f->n_losses; i++) {
		const struct iot_loss *l = &f->losses[i];

		if (l->probe >= MAX_IDS)
			(*n_bad)++;
		else if (l->cause == IOT_LOSS_RESERVE_FAILED || l->cause == IOT_LOSS_UNSEEN)
			sums[l->probe].ledger_filed += l->n;
		else
			sums[l->probe].ledger_user += l->n;
	}
}

static void add_windows(const struct iot_footer *f, struct sums *sums, uint64_t *n_bad)
{
	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];

		if (w->probe >= MAX_IDS)
			(*n_bad)++;
		else if (w->kind == IOT_WINDOW_UNATTRIBUTED)
			sums[w->probe].window_unattributed += w->n;
		else if (w->kind == IOT_WINDOW_MISSED)
			sums[w->probe].window_missed += w->n;
		else if (w->kind == IOT_WINDOW_OUTPUT)
			sums[w->probe].window_output += w->n;
	}
}

uint64_t epoch_unbalanced(const struct iot_footer *f, uint64_t n_records)
{
	struct sums sums[MAX_IDS] = {};
	uint64_t n_bad = 0, written = 0;

	for (size_t i = 0; i < f->n_books; i++) {
		const struct iot_books *b = &f->books[i];
		struct sums *s = &sums[b->probe];

		n_bad += b->seen != b->not_selected + b->folded + b->emitted + b->reserve_failed;
		n_bad += b->reserve_failed != b->filed + b->unattributed;
		n_bad += b->emitted != b->written + b->decode_failed + b->output_failed;
		written += b->written;
		s->filed += b->filed;
		s->unattributed += b->unattributed;
		s->user_failed += b->decode_failed + b->output_failed;
		if (b->missed != IOT_COUNT_UNKNOWN)
			s->missed += b->missed;
	}
	add_losses(f, sums, &n_bad);
	add_windows(f, sums, &n_bad);
	for (uint32_t p = 0; p < MAX_IDS; p++) {
		const struct sums *s = &sums[p];

		n_bad += s->filed != s->ledger_filed;
		n_bad += s->unattributed != s->window_unattributed;
		/* A counter that became unknown part way leaves windows: more doubt, not less. */
		n_bad += s->missed > s->window_missed;
		n_bad += s->user_failed != s->ledger_user + s->window_output;
	}
	n_bad += written != n_records;
	return n_bad;
}
