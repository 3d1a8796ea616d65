// SPDX-License-Identifier: BSD-2-Clause
/*
 * books.c - adding up a footer's books per probe.
 *
 * A row is one (probe, cpu) of one epoch; cpu == UINT32_MAX is user space's row for the whole probe
 * and the only place of `missed`. The equations hold per row, the ledger and the windows have no
 * CPU and are held against the sums over all CPUs. Nothing here decides a verdict.
 */
#include "format/books.h"

#include <sys/random.h>
#include <xxhash.h>

void iot_sum_add(struct iot_sum *s, uint64_t n)
{
	if (n == IOT_COUNT_UNKNOWN || __builtin_add_overflow(s->n, n, &s->n))
		s->unknown = true;
}

/* whole = sum of parts, if every one of them is known. */
static enum iot_balance balance(uint64_t whole, const uint64_t *parts, size_t n)
{
	struct iot_sum sum = {0};

	if (whole == IOT_COUNT_UNKNOWN)
		return IOT_BALANCE_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		if (parts[i] == IOT_COUNT_UNKNOWN)
			return IOT_BALANCE_UNKNOWN;
		iot_sum_add(&sum, parts[i]);
	}
	return sum.unknown || sum.n != whole ? IOT_BALANCE_BROKEN : IOT_BALANCE_HOLDS;
}

enum iot_balance iot_books_balance(const struct iot_books *b)
{
	const uint64_t seen[] = {b->not_selected, b->folded, b->emitted, b->reserve_failed};
	const uint64_t failed[] = {b->filed, b->unattributed};
	const uint64_t emitted[] = {b->written, b->decode_failed, b->output_failed};
	enum iot_balance a = balance(b->seen, seen, IOT_ARRAY_SIZE(seen));
	enum iot_balance c = balance(b->reserve_failed, failed, IOT_ARRAY_SIZE(failed));
	enum iot_balance d = balance(b->emitted, emitted, IOT_ARRAY_SIZE(emitted));

	return IOT_MAX(a, IOT_MAX(c, d));
}

static uint64_t row_key(const struct iot_books *b)
{
	return (uint64_t)b->probe << 32 | b->cpu;
}

static int cmp_key(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

static bool has_duplicates_slow(const struct iot_books *books, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (row_key(&books[i]) == row_key(&books[k]))
				return true;
	return false;
}

/* Two rows of one (probe, cpu) would let a forger balance each alone. No memory counts as doubt. */
static bool has_duplicates(const struct iot_books *books, size_t n)
{
	_cleanup_free_ uint64_t *keys = NULL;
	bool sorted = true;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = row_key(&books[i - 1]) < row_key(&books[i]);
	if (sorted)
		return false;
	keys = malloc(n * sizeof(*keys));
	if (!keys) /* slowly, then */
		return n > 4096 || has_duplicates_slow(books, n);
	for (size_t i = 0; i < n; i++)
		keys[i] = row_key(&books[i]);
	qsort(keys, n, sizeof(*keys), cmp_key);
	for (size_t i = 1; i < n; i++)
		if (keys[i - 1] == keys[i])
			return true;
	return false;
}

static void sum_row(struct iot_probe_sums *p, const struct iot_books *b)
{
	p->present = true;
	iot_sum_add(&p->seen, b->seen);
	iot_sum_add(&p->filed, b->filed);
	iot_sum_add(&p->unattributed, b->unattributed);
	iot_sum_add(&p->identity_full, b->identity_full);
	iot_sum_add(&p->read_failed, b->read_failed);
	iot_sum_add(&p->emitted, b->emitted);
	iot_sum_add(&p->written, b->written);
	iot_sum_add(&p->user_failed, b->decode_failed);
	iot_sum_add(&p->user_failed, b->output_failed);
	iot_sum_add(&p->missed, b->missed);
	iot_sum_add(&p->suppressed, b->suppressed);
	if (b->cpu == UINT32_MAX)
		p->user_row = true;
}

static void sum_window(struct iot_probe_sums *p, const struct iot_window *w)
{
	switch (w->kind) {
	case IOT_WINDOW_UNATTRIBUTED:
		iot_sum_add(&p->window_unattributed, w->n);
		break;
	case IOT_WINDOW_MISSED:
		iot_sum_add(&p->window_missed, w->n);
		break;
	case IOT_WINDOW_OUTPUT:
		iot_sum_add(&p->window_output, w->n);
		break;
	default: /* no counter belongs to the other kinds */
		break;
	}
}

void iot_books_sum(const struct iot_footer *f, struct iot_books_summary *ret)
{
	*ret = (struct iot_books_summary){
		.n_rows = f->n_books,
		.duplicate_rows = has_duplicates(f->books, f->n_books),
	};
	for (size_t i = 0; i < f->n_books; i++) {
		const struct iot_books *b = &f->books[i];
		enum iot_balance r = iot_books_balance(b);

		if (r == IOT_BALANCE_BROKEN)
			ret->n_unbalanced++;
		else if (r == IOT_BALANCE_UNKNOWN)
			ret->n_unknown++;
		if (b->probe < IOT_MAX_PROBE_IDS)
			sum_row(&ret->probes[b->probe], b);
		else
			ret->foreign_ids = true;
	}
	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];

		if (w->probe < IOT_MAX_PROBE_IDS)
			sum_window(&ret->probes[w->probe], w);
		else
			ret->foreign_ids = true;
	}
}

void iot_books_sum_losses(struct iot_books_summary *s, const struct iot_loss *losses, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct iot_probe_sums *p;

		if (losses[i].probe >= IOT_MAX_PROBE_IDS) {
			s->foreign_ids = true;
			continue;
		}
		p = &s->probes[losses[i].probe];
		switch (losses[i].cause) {
		case IOT_LOSS_UNSEEN:
			iot_sum_add(&p->ledger_unseen, losses[i].n);
			/* fall through */
		case IOT_LOSS_RESERVE_FAILED:
			iot_sum_add(&p->ledger_filed, losses[i].n);
			break;
		case IOT_LOSS_DECODE_FAILED:
		case IOT_LOSS_OUTPUT_FAILED:
			iot_sum_add(&p->ledger_user, losses[i].n);
			break;
		default: /* enrich_failed: the record exists, a field of it is missing */
			break;
		}
	}
}

const struct iot_probe *iot_probe_table(const struct iot_segment_info *info,
					const struct iot_footer *f, size_t *ret_n)
{
	if (f && f->n_probes > 0) {
		*ret_n = f->n_probes;
		return f->probes;
	}
	*ret_n = info->n_probes;
	return info->probes;
}

const struct iot_probe *iot_probe_find(const struct iot_segment_info *info,
				       const struct iot_footer *f, uint16_t id)
{
	size_t n;
	const struct iot_probe *table = iot_probe_table(info, f, &n);

	for (size_t i = 0; i < n; i++)
		if (table[i].id == id)
			return &table[i];
	return NULL;
}

const char *iot_probe_label(const struct iot_segment_info *info, const struct iot_footer *f,
			    uint16_t id, char *buf, size_t size)
{
	const struct iot_probe *p = iot_probe_find(info, f, id);

	if (!p || !p->name[0]) {
		snprintf(buf, size, "probe %u", id);
		return buf;
	}
	snprintf(buf, size, "%.*s", (int)sizeof(p->name), p->name);
	/* A segment is foreign input and this goes to terminals. */
	for (char *c = buf; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return buf;
}

/* ---- records by who made them ---- */

uint64_t iot_table_seed(void)
{
	uint64_t seed = 0;

	(void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
	return seed;
}

uint64_t iot_table_hash(const void *key, size_t bytes, uint64_t seed)
{
	return XXH64(key, bytes, seed);
}

#define MAX_CPUS 8192U /* ids on disk have room for 13 bits of CPU */

static bool is_row(const struct iot_written *w, size_t i, uint16_t probe, uint32_t cpu)
{
	return w->rows[i].probe == probe && w->rows[i].cpu == cpu;
}

static size_t slot_of(const struct iot_written *w, uint16_t probe, uint32_t cpu)
{
	uint64_t key = (uint64_t)probe << 32 | cpu;
	size_t mask = w->room * 2 - 1,
	       at = (size_t)iot_table_hash(&key, sizeof(key), w->seed) & mask;

	while (w->slots[at] && !is_row(w, w->slots[at] - 1, probe, cpu))
		at = (at + 1) & mask;
	return at;
}

static int written_grow(struct iot_written *w)
{
	size_t room = w->room ? w->room * 2 : 64;
	uint32_t *slots = calloc(room * 2, sizeof(*slots));
	struct iot_written_row *rows = slots ? reallocarray(w->rows, room, sizeof(*rows)) : NULL;

	if (!rows) {
		free(slots);
		return -ENOMEM;
	}
	if (!w->room)
		w->seed = iot_table_seed();
	free(w->slots);
	w->slots = slots;
	w->rows = rows;
	w->room = room;
	for (size_t i = 0; i < w->n; i++)
		w->slots[slot_of(w, w->rows[i].probe, w->rows[i].cpu)] = (uint32_t)i + 1;
	return 0;
}

int iot_written_add(struct iot_written *w, uint16_t probe, uint32_t cpu)
{
	size_t at;
	int r;

	if (w->n > 0 && is_row(w, w->last, probe, cpu)) {
		w->rows[w->last].n++;
		return 0;
	}
	if (cpu >= MAX_CPUS || probe >= IOT_MAX_PROBE_IDS) {
		w->other++;
		return 0;
	}
	if (w->n == w->room) {
		r = written_grow(w);
		if (r < 0)
			return r;
	}
	at = slot_of(w, probe, cpu);
	if (!w->slots[at]) {
		w->rows[w->n] = (struct iot_written_row){.probe = probe, .cpu = cpu};
		w->slots[at] = (uint32_t)++w->n;
	}
	w->last = w->slots[at] - 1;
	w->rows[w->last].n++;
	return 0;
}

uint64_t iot_written_take(struct iot_written *w, uint16_t probe, uint32_t cpu)
{
	uint64_t n;
	size_t at;

	if (!w->room)
		return 0;
	at = slot_of(w, probe, cpu);
	if (!w->slots[at])
		return 0;
	n = w->rows[w->slots[at] - 1].n;
	w->rows[w->slots[at] - 1].n = 0;
	return n;
}

void iot_written_done(struct iot_written *w)
{
	free(w->rows);
	free(w->slots);
	*w = (struct iot_written){0};
}

static int cmp_books(const void *a, const void *b)
{
	const struct iot_books *x = a, *y = b;

	return x->probe != y->probe ? (x->probe > y->probe) - (x->probe < y->probe)
				    : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

int iot_written_books(const struct iot_written *w, const struct iot_probe *probes, size_t n_probes,
		      struct iot_books **ret, size_t *ret_n)
{
	static const struct iot_books unknown = {
		.seen = IOT_COUNT_UNKNOWN,
		.not_selected = IOT_COUNT_UNKNOWN,
		.folded = IOT_COUNT_UNKNOWN,
		.emitted = IOT_COUNT_UNKNOWN,
		.reserve_failed = IOT_COUNT_UNKNOWN,
		.filed = IOT_COUNT_UNKNOWN,
		.unattributed = IOT_COUNT_UNKNOWN,
		.identity_full = IOT_COUNT_UNKNOWN,
		.read_failed = IOT_COUNT_UNKNOWN,
		.decode_failed = IOT_COUNT_UNKNOWN,
		.output_failed = IOT_COUNT_UNKNOWN,
		.missed = IOT_COUNT_UNKNOWN,
		.suppressed = IOT_COUNT_UNKNOWN,
	};
	struct iot_books *books = calloc(w->n + n_probes + 1, sizeof(*books));
	size_t n = 0;

	if (!books)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		books[n] = unknown;
		books[n].probe = w->rows[i].probe;
		books[n].cpu = w->rows[i].cpu;
		books[n].written = w->rows[i].n;
		books[n++].missed = 0; /* is on the whole probe's row */
	}
	/* By probe and CPU, however the records came. */
	if (n > 1)
		qsort(books, n, sizeof(*books), cmp_books);
	for (size_t i = 0; i < n_probes; i++) {
		if (probes[i].state != IOT_ATTACH_ATTACHED)
			continue;
		/* User space writes per CPU; this row never has any. */
		books[n] = unknown;
		books[n].probe = probes[i].id;
		books[n++].cpu = UINT32_MAX;
	}
	*ret = books;
	*ret_n = n;
	return 0;
}
