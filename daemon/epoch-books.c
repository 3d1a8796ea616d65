// SPDX-License-Identifier: BSD-2-Clause
/*
 * epoch-books.c - the end of an epoch: its rows, and whether they add up. The cells have no writer any
 * more when these run; what does not add up is said, never corrected.
 */
#include "daemon/epoch.h"
#include "format/segment-def.h"

#define MAX_IDS ((uint32_t)EV_PACKET_PROGRAMS_END) /* one past the highest probe of any stream */
#define NAME_BYTES 256				   /* of a device, a cgroup, a place in code */

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

uint64_t epoch_ledger_bytes(const struct epoch *e, uint64_t n_filed)
{
	return (n_filed + e->n_losses) *
	       IOT_MAX(sizeof(struct iot_disk_loss), sizeof(struct iot_disk_packet_loss));
}

uint64_t epoch_footer_bytes(const struct epoch *e)
{
	/* Probe table, note, section headers, some blocks' headers, requests in flight of a busy machine. */
	uint64_t bytes = 64 * 1024;

	bytes += (uint64_t)(e->n_cpus + 1) * e->n_probes * sizeof(struct iot_disk_books);
	bytes += (uint64_t)EPOCH_MAX_WINDOWS * sizeof(struct iot_disk_window);
	bytes += (e->devices.n + e->cgroups.n) * NAME_BYTES;
	return bytes;
}

struct fold {
	uint64_t n;
	uint64_t first_ns;
	uint64_t last_ns;
};

static void fold_one(struct fold *to, const struct iot_loss *l)
{
	uint64_t first_ns = IOT_MIN(l->first_ns, l->last_ns);

	to->first_ns = to->n ? IOT_MIN(to->first_ns, first_ns) : first_ns;
	to->last_ns = IOT_MAX(to->last_ns, IOT_MAX(l->first_ns, l->last_ns));
	to->n += l->n;
}

static void put_fold(struct iot_footer *f, const struct fold *from, uint32_t probe,
		     enum iot_window_kind kind)
{
	if (from->n)
		f->windows[f->n_windows++] = (struct iot_window){
			.t0_ns = from->first_ns,
			.t1_ns = from->last_ns,
			.n = from->n,
			.cpu = UINT32_MAX,
			.probe = (uint16_t)probe,
			.kind = (uint16_t)kind,
		};
}

int epoch_fold_losses(struct iot_footer *f)
{
	struct fold kernel[MAX_IDS] = {}, user[MAX_IDS] = {};
	struct iot_window *windows;

	windows = reallocarray(f->windows, f->n_windows + 2 * (size_t)MAX_IDS, sizeof(*windows));
	if (!windows)
		return -ENOMEM;
	f->windows = windows;
	for (size_t i = 0; i < f->n_losses; i++) {
		const struct iot_loss *l = &f->losses[i];

		if (l->probe >= MAX_IDS)
			continue;
		if (l->cause == IOT_LOSS_RESERVE_FAILED || l->cause == IOT_LOSS_UNSEEN)
			fold_one(&kernel[l->probe], l);
		else if (l->cause == IOT_LOSS_DECODE_FAILED || l->cause == IOT_LOSS_OUTPUT_FAILED)
			fold_one(&user[l->probe], l);
	}
	for (uint32_t p = 0; p < MAX_IDS; p++) {
		put_fold(f, &kernel[p], p, IOT_WINDOW_UNATTRIBUTED);
		put_fold(f, &user[p], p, IOT_WINDOW_OUTPUT);
	}
	for (size_t i = 0; i < f->n_books; i++) {
		f->books[i].unattributed += f->books[i].filed;
		f->books[i].filed = 0;
	}
	free(f->losses);
	free(f->open);
	f->losses = NULL;
	f->open = NULL;
	f->n_losses = f->n_open = 0;
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
