// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-entry.c - the table of requests in flight of an import, see import-entry.h. Lists are in order of age, so that of two
 * of one place the older is found first.
 */
#include "daemon/ctl/import-entry.h"

#define BUCKETS (1U << 16)
#define MAX_WALK \
	4096U /* entries of one list that are looked at: more are of no trace, but of a forgery */

int import_entries_init(struct import_entries *t)
{
	t->seed = iot_table_seed();
	t->all = calloc(IMPORT_MAX_OPEN, sizeof(*t->all));
	t->begins = calloc(BUCKETS, sizeof(*t->begins));
	t->ends = calloc(BUCKETS, sizeof(*t->ends));
	return t->all && t->begins && t->ends ? 0 : -ENOMEM;
}

void import_entries_done(struct import_entries *t)
{
	free(t->all);
	free(t->begins);
	free(t->ends);
	*t = (struct import_entries){0};
}

/* ---- lists -------------------------------------------------------------------------------------- */

static struct import_list *bucket(const struct import_entries *t, struct import_list *lists,
				  uint32_t device, uint64_t sector)
{
	uint64_t key[2] = {sector, device};

	return &lists[iot_table_hash(key, sizeof(key), t->seed) & (BUCKETS - 1)];
}

#define LINK(t, i, which) (&(t)->all[(i)-1].which)

#define DEFINE_LIST(which)                                                                      \
	static void append_##which(struct import_entries *t, struct import_list *l, uint32_t i) \
	{                                                                                       \
		*LINK(t, i, which) = (struct import_link){.prev = l->tail};                     \
		if (l->tail)                                                                    \
			LINK(t, l->tail, which)->next = i;                                      \
		else                                                                            \
			l->head = i;                                                            \
		l->tail = i;                                                                    \
	}                                                                                       \
	static void remove_##which(struct import_entries *t, struct import_list *l, uint32_t i) \
	{                                                                                       \
		struct import_link k = *LINK(t, i, which);                                      \
                                                                                                \
		if (k.prev)                                                                     \
			LINK(t, k.prev, which)->next = k.next;                                  \
		else                                                                            \
			l->head = k.next;                                                       \
		if (k.next)                                                                     \
			LINK(t, k.next, which)->prev = k.prev;                                  \
		else                                                                            \
			l->tail = k.prev;                                                       \
	}
DEFINE_LIST(by_begin)
DEFINE_LIST(by_end)

static uint32_t number_of(const struct import_entries *t, const struct import_entry *x)
{
	return (uint32_t)(x - t->all) + 1;
}

void import_entry_link(struct import_entries *t, struct import_entry *x)
{
	append_by_begin(t, bucket(t, t->begins, x->device, x->sector), number_of(t, x));
	if (x->state == IMPORT_HELD)
		append_by_end(t, bucket(t, t->ends, x->device, x->end), number_of(t, x));
}

void import_entry_unlink(struct import_entries *t, struct import_entry *x)
{
	remove_by_begin(t, bucket(t, t->begins, x->device, x->sector), number_of(t, x));
	if (x->state == IMPORT_HELD)
		remove_by_end(t, bucket(t, t->ends, x->device, x->end), number_of(t, x));
}

void import_entry_drop(struct import_entries *t, struct import_entry *x)
{
	import_entry_unlink(t, x);
	*x = (struct import_entry){.by_begin.next = t->free};
	t->free = number_of(t, x);
	t->n--;
}

uint32_t import_entries_halve(struct import_entries *t)
{
	uint64_t oldest = t->serial - IMPORT_MAX_OPEN / 2;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_used; i++) {
		struct import_entry *x = &t->all[i];

		if (!x->state || x->serial > oldest)
			continue;
		n++;
		import_entry_drop(t, x);
	}
	return n;
}

struct import_entry *import_entry_new(struct import_entries *t, const struct bt_event *e,
				      uint8_t state)
{
	struct import_entry *x;

	if (!t->free && t->n_used == IMPORT_MAX_OPEN)
		return NULL;
	if (t->free) {
		x = &t->all[t->free - 1];
		t->free = x->by_begin.next;
	} else {
		x = &t->all[t->n_used++];
	}
	t->n++;
	*x = (struct import_entry){
		.sector = e->sector,
		.first_sector = e->sector,
		.end = e->sector + (e->bytes >> 9),
		.serial = ++t->serial,
		.device = e->device,
		.bytes = e->bytes,
		.left = e->bytes,
		.flags = IMPORT_FLAGS(e->action),
		.op = IMPORT_OP(e->action),
		.flush_bio = IMPORT_FLUSH_BIO(e->action),
		.state = state,
	};
	return x;
}

static bool matches(const struct import_entry *x, const struct bt_event *e, unsigned int states)
{
	return x->device == e->device && (x->state & states) && x->op == IMPORT_OP(e->action) &&
	       x->flush_bio == IMPORT_FLUSH_BIO(e->action);
}

struct import_entry *import_entry_find(struct import_entries *t, const struct bt_event *e,
				       unsigned int states, bool exact, bool *ret_more)
{
	uint32_t i = bucket(t, t->begins, e->device, e->sector)->head;
	struct import_entry *best = NULL;
	bool best_fits = false;

	for (unsigned int n = 0; i && n < MAX_WALK; n++, i = t->all[i - 1].by_begin.next) {
		struct import_entry *x = &t->all[i - 1];
		bool fits = x->left == e->bytes;

		if (x->sector != e->sector || !matches(x, e, states) || (exact && !fits))
			continue;
		if (best && ret_more)
			*ret_more = true;
		if (!best || (fits && !best_fits)) {
			best = x;
			best_fits = fits;
		}
		if (best_fits && !ret_more)
			break;
	}
	return best;
}

struct import_entry *import_entry_find_end(struct import_entries *t, const struct bt_event *e)
{
	uint32_t i = bucket(t, t->ends, e->device, e->sector)->head;

	for (unsigned int n = 0; i && n < MAX_WALK; n++, i = t->all[i - 1].by_end.next) {
		struct import_entry *x = &t->all[i - 1];

		if (x->end == e->sector && x->first_sector != e->sector &&
		    matches(x, e, IMPORT_HELD))
			return x;
	}
	return NULL;
}
