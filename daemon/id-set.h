/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * id-set.h - the devices or cgroups that the records of one epoch name: a set of non-zero u64 keys,
 * asked once per record, so the last key is remembered and a repeated one costs one comparison.
 * Bounded: past ID_SET_MAX keys new ones are refused; they only go without a name.
 */
#pragma once

#include "format/base.h"

#define ID_SET_MAX 65536U

struct id_set {
	uint64_t last;
	uint64_t *slots; /* open addressing, 0 = free; n_slots is a power of two or 0 */
	uint32_t n_slots;
	uint32_t n;
};

/* Takes a key that is not the last one. True if it was not in the set and now is. */
bool id_set_insert(struct id_set *s, uint64_t key);
/* All keys, ascending; there are s->n. The caller frees. */
int id_set_keys(const struct id_set *s, uint64_t **ret) IOT_MUST_CHECK;
void id_set_done(struct id_set *s);

static inline bool id_set_add(struct id_set *s, uint64_t key)
{
	return key != s->last && key != 0 && id_set_insert(s, key);
}
