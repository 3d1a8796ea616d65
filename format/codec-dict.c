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

static int dict_make_slots(struct iot_dict *d)
{
	uint32_t n = 16;

	while (n < d->limit * 2)
		n *= 2;
	d->slots = calloc(n, sizeof(*d->slots));
	if (!d->slots)
		return -ENOMEM;
	d->n_slots = n;
	return 0;
}

int iot_dict_init(struct iot_dict *d, uint32_t n_words, uint32_t limit)
{
	assert(n_words >= 1 && n_words <= IOT_DICT_WORDS);
	assert(limit >= 1 && limit <= 65536);

	*d = (struct iot_dict){.n_words = n_words, .limit = limit};
	/* Without entropy (early boot) the seed is weaker, the result the same. */
	if (getrandom(&d->seed, sizeof(d->seed), GRND_NONBLOCK) != sizeof(d->seed))
		d->seed = (uintptr_t)d;
	for (uint32_t w = 0; w < n_words; w++) {
		d->words[w] = calloc(limit, sizeof(uint64_t));
		if (!d->words[w])
			goto no_memory;
	}
	if (dict_make_slots(d) < 0)
		goto no_memory;
	return 0;

no_memory:
	iot_dict_done(d);
	return -ENOMEM;
}

void iot_dict_done(struct iot_dict *d)
{
	for (uint32_t w = 0; w < IOT_DICT_WORDS; w++)
		free(d->words[w]);
	free(d->slots);
	*d = (struct iot_dict){0};
}

void iot_dict_clear(struct iot_dict *d)
{
	if (d->n > 0)
		memset(d->slots, 0, d->n_slots * sizeof(*d->slots));
	d->n = 0;
	d->last = 0;
}

int iot_dict_reserve(struct iot_dict *d, uint32_t n)
{
	iot_dict_clear(d);
	if (n <= d->limit && d->slots)
		return 0;
	assert(n <= 65536);
	for (uint32_t w = 0; w < d->n_words; w++) {
		uint64_t *words = realloc(d->words[w], n * sizeof(*words));

		if (!words)
			return -ENOMEM;
		d->words[w] = words;
	}
	free(d->slots);
	d->slots = NULL;
	d->n_slots = 0;
	d->limit = n;
	return dict_make_slots(d);
}

int iot_dict_add_slow(struct iot_dict *d, const uint64_t *words, uint16_t *ret)
{
	uint64_t h = d->seed;
	uint32_t at;

	for (uint32_t w = 0; w < d->n_words; w++) {
		h = (h ^ words[w]) * 0x9E3779B97F4A7C15ULL;
		h ^= h >> 32;
	}
	for (at = h & (d->n_slots - 1); d->slots[at]; at = (at + 1) & (d->n_slots - 1)) {
		if (iot_dict_equal(d, d->slots[at] - 1, words)) {
			d->last = d->slots[at] - 1;
			*ret = (uint16_t)d->last;
			return 0;
		}
	}
	if (d->n == d->limit)
		return IOT_DICT_FULL;
	for (uint32_t w = 0; w < d->n_words; w++)
		d->words[w][d->n] = words[w];
	d->last = d->n;
	d->slots[at] = ++d->n;
	*ret = (uint16_t)d->last;
	return 0;
}
