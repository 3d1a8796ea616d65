// SPDX-License-Identifier: BSD-2-Clause
/*
 * codec-dict.c - DICT: interns entries of a few words; an index per record is what is stored.
 *
 * Entries are numbered in the order of their first use, so that the output does not depend on the
 * hash. The table of slots is twice as large as the entries it may hold and is probed linearly.
 * Entries are never removed but all at once.
 */
#include "format/codec.h"

#include <assert.h>
#include <sys/random.h>

/* Entries and slots for `limit` entries; on failure the dictionary keeps what it has. */
static int dict_allocate(struct iot_dict *d, uint32_t limit)
{
	_cleanup_free_ uint64_t *words = NULL;
	uint32_t n_slots = 16, *slots;

	while (n_slots < limit * 2)
		n_slots *= 2;
	words = calloc((size_t)limit * d->n_words, sizeof(*words));
	if (!words)
		return -ENOMEM;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(d->words);
	free(d->slots);
	d->words = IOT_TAKE_PTR(words);
	d->slots = slots;
	d->n_slots = n_slots;
	d->slots_used = false;
	d->limit = limit;
	return 0;
}

int iot_dict_init(struct iot_dict *d, uint32_t n_words, uint32_t limit)
{
	assert(n_words >= 1 && n_words <= IOT_DICT_WORDS);
	assert(limit >= 1 && limit <= 65536);

	*d = (struct iot_dict){.n_words = n_words};
	/* Without entropy (early boot) the seed is weaker, the result the same. */
	if (getrandom(&d->seed, sizeof(d->seed), GRND_NONBLOCK) != sizeof(d->seed))
		d->seed = (uintptr_t)d;
	return dict_allocate(d, limit);
}

void iot_dict_done(struct iot_dict *d)
{
	free(d->words);
	free(d->slots);
	*d = (struct iot_dict){0};
}

void iot_dict_clear(struct iot_dict *d)
{
	if (d->slots_used)
		memset(d->slots, 0, d->n_slots * sizeof(*d->slots));
	d->slots_used = false;
	d->n = 0;
}

int iot_dict_reserve(struct iot_dict *d, uint32_t n)
{
	assert(n <= 65536);

	iot_dict_clear(d);
	return n <= d->limit ? 0 : dict_allocate(d, n);
}

int iot_dict_add_slow(struct iot_dict *d, const uint64_t *words, uint64_t hash, uint16_t *ret)
{
	uint32_t at;

	for (at = hash & (d->n_slots - 1); d->slots[at]; at = (at + 1) & (d->n_slots - 1)) {
		if (iot_dict_equal(d, d->slots[at] - 1, words, d->n_words)) {
			*ret = (uint16_t)(d->slots[at] - 1);
			return 0;
		}
	}
	if (d->n == d->limit)
		return IOT_DICT_FULL;
	memcpy(d->words + (size_t)d->n * d->n_words, words, d->n_words * sizeof(*words));
	*ret = (uint16_t)d->n;
	d->slots[at] = ++d->n;
	d->slots_used = true;
	return 0;
}
