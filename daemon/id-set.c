// SPDX-License-Identifier: BSD-2-Clause
/* id-set.c - see id-set.h. */
#include "daemon/id-set.h"

static uint64_t *find(const struct id_set *s, uint64_t key)
{
	uint32_t i = (uint32_t)((key * 0x9e3779b97f4a7c15ULL) >> 32) & (s->n_slots - 1);

	while (s->slots[i] && s->slots[i] != key)
		i = (i + 1) & (s->n_slots - 1);
	return &s->slots[i];
}

static bool grow(struct id_set *s)
{
	struct id_set bigger = {.n_slots = s->n_slots ? 2 * s->n_slots : 64};

	bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i])
			*find(&bigger, s->slots[i]) = s->slots[i];
	free(s->slots);
	s->slots = bigger.slots;
	s->n_slots = bigger.n_slots;
	return true;
}

bool id_set_insert(struct id_set *s, uint64_t key)
{
	uint64_t *slot;

	if (2 * (s->n + 1) > s->n_slots && (s->n >= ID_SET_MAX || !grow(s)) &&
	    (s->n_slots == 0 || s->n + 1 >= s->n_slots))
		return false;
	slot = find(s, key);
	if (*slot == key) {
		s->last = key;
		return false;
	}
	if (s->n >= ID_SET_MAX)
		return false;
	s->last = key;
	*slot = key;
	s->n++;
	return true;
}

static int cmp_key(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

int id_set_keys(const struct id_set *s, uint64_t **ret)
{
	uint64_t *keys = calloc(s->n ? s->n : 1, sizeof(*keys));
	size_t n = 0;

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i])
			keys[n++] = s->slots[i];
	qsort(keys, n, sizeof(*keys), cmp_key);
	*ret = keys;
	return 0;
}

void id_set_done(struct id_set *s)
{
	free(s->slots);
	*s = (struct id_set){};
}
