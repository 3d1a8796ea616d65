// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns.c - forward: the arrays of a batch become the values that codecs store well.
 *
 * What is against other columns is the stream's own business (columns-request.c, ...); the rest is
 * here. Most columns of most blocks are constant, or equal to their reference: both are found by one
 * memcmp over the array, and cost next to nothing.
 *
 * Nulls on their way through the arrays are NULL_MARK, the one value whose zigzag plus one does
 * not fit: a column that really contains it is stored raw, without nulls.
 */
#include "format/columns.h"

#include <assert.h>

#define NULL_MARK IOT_NULL_MARK

/* A run of bytes in which every element of `width` equals the one before. */
static bool all_equal(const void *array, size_t n, size_t width)
{
	return memcmp(array, (const uint8_t *)array + width, (n - 1) * width) == 0;
}

static void widen(const void *array, unsigned int width, size_t n, uint64_t *v)
{
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint8_t *)array)[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint16_t *)array)[i];
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint32_t *)array)[i];
		break;
	default:
		memcpy(v, array, n * sizeof(*v));
	}
}

static void base_raw(const struct iot_batch *b, unsigned int c, uint64_t *v)
{
	const struct iot_column_desc *d = &b->schema->columns[c];
	size_t n = iot_column_count(b, c);

	if (d->flags & IOT_DESC_SPLIT) {
		b->schema->split(b, c, v);
	} else if (d->flags & IOT_DESC_SIGNED) {
		const int32_t *x = b->arrays[c];

		for (size_t i = 0; i < n; i++)
			v[i] = (uint64_t)(int64_t)x[i];
	} else {
		widen(b->arrays[c], d->width, n, v);
	}
}

/* Four at a time: one chain of ORs would be as long as the column. */
static uint64_t or_all(const uint64_t *v, size_t n)
{
	uint64_t any[4] = {0};
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		any[0] |= v[i];
		any[1] |= v[i + 1];
		any[2] |= v[i + 2];
		any[3] |= v[i + 3];
	}
	for (; i < n; i++)
		any[0] |= v[i];
	return any[0] | any[1] | any[2] | any[3];
}

/* Shift, zigzag, null: in this order. */
static void finish(uint64_t *v, size_t n, unsigned int shift, unsigned int flags)
{
	if (flags & IOT_COLUMN_NULLS) {
		for (size_t i = 0; i < n; i++) {
			uint64_t x = v[i] >> shift;

			if (flags & IOT_COLUMN_ZIGZAG) {
				int64_t y = (int64_t)v[i] >> shift;

				x = (uint64_t)y << 1 ^ (uint64_t)(y >> 63);
			}
			v[i] = v[i] == NULL_MARK ? 0 : x + 1;
		}
	} else if (flags & IOT_COLUMN_ZIGZAG) {
		for (size_t i = 0; i < n; i++) {
			int64_t y = (int64_t)v[i] >> shift;

			v[i] = (uint64_t)y << 1 ^ (uint64_t)(y >> 63);
		}
	} else if (shift) {
		for (size_t i = 0; i < n; i++)
			v[i] >>= shift;
	}
}

/* What the values allow; false: a real value looks like a null. */
static bool choose_finish(const struct iot_batch *b, unsigned int c, const uint64_t *v,
			  struct iot_column_form *f)
{
	unsigned int desc = b->schema->columns[c].flags;
	bool nulls = desc & IOT_DESC_NULLS_ONES ||
		     (desc & IOT_DESC_NULLS_REF && f->base == IOT_BASE_REF);
	uint64_t any = or_all(v, f->count);

	f->flags = 0;
	if (any & NULL_MARK && nulls) {
		const uint64_t *x = iot_batch_u64(b, c);
		uint64_t null = desc & IOT_DESC_NULLS_ONES ? UINT64_MAX : 0;

		any = 0;
		for (size_t i = 0; i < f->count; i++) {
			if (v[i] != NULL_MARK)
				any |= v[i];
			else if (x[i] == null)
				f->flags |= IOT_COLUMN_NULLS;
			else
				return false;
		}
	}
	if (any & NULL_MARK)
		f->flags |= IOT_COLUMN_ZIGZAG;
	f->shift = any ? (uint8_t)__builtin_ctzll(any) : 0;
	if (any == 0 && !f->flags) {
		f->constant = true;
		f->value = 0;
	}
	return true;
}

/* Words of a dictionary: never null, so that finishing always succeeds. */
static void words_forward(const struct iot_batch *b, unsigned int c, enum iot_base base,
			  uint64_t *v, uint64_t *keys, struct iot_column_form *f)
{
	const struct iot_column_desc *desc = &b->schema->columns[c];
	const struct iot_dict *d = &b->dicts[desc->table - 1];

	for (size_t i = 0; i < d->n; i++)
		v[i] = d->words[i * d->n_words + desc->word];
	if (all_equal(v, d->n, sizeof(*v))) {
		f->constant = true;
		f->value = v[0];
		return;
	}
	f->base = base;
	for (size_t i = d->n - 1; base == IOT_BASE_DELTA && i > 0; i--)
		v[i] -= v[i - 1];
	if (base == IOT_BASE_REF)
		b->schema->ref(b, c, v, keys);
	choose_finish(b, c, v, f);
	if (!f->constant)
		finish(v, f->count, f->shift, f->flags);
}

static bool shortcut(const struct iot_batch *b, unsigned int c, enum iot_base base,
		     struct iot_column_form *f)
{
	const struct iot_column_desc *d = &b->schema->columns[c];

	if (d->flags & IOT_DESC_SPLIT)
		return false;
	if (all_equal(b->arrays[c], f->count, d->width)) {
		f->constant = true;
		widen(b->arrays[c], d->width, 1, &f->value);
		if (d->flags & IOT_DESC_SIGNED)
			f->value = (uint64_t)(int64_t)(int32_t)f->value;
		return true;
	}
	if (d->twin && base == IOT_BASE_REF &&
	    memcmp(b->arrays[c], b->arrays[d->twin], (size_t)f->count * d->width) == 0) {
		f->constant = true;
		f->base = IOT_BASE_REF;
		return true;
	}
	return false;
}

void iot_column_forward(const struct iot_batch *b, unsigned int c, enum iot_base base, uint64_t *v,
			uint64_t *keys, struct iot_column_form *ret)
{
	struct iot_column_form f = {.column = (uint8_t)c, .count = iot_column_count(b, c)};
	unsigned int flags = b->schema->columns[c].flags;

	assert(b->n > 0 && iot_column_is_known(b->schema, c));

	if (flags & IOT_DESC_WORD) {
		words_forward(b, c, base, v, keys, &f);
		*ret = f;
		return;
	}
	if (shortcut(b, c, base, &f)) {
		*ret = f;
		return;
	}
	f.base = base;
	if (base == IOT_BASE_DELTA) {
		const uint64_t *x = iot_batch_u64(b, c);

		v[0] = x[0];
		for (size_t i = 1; i < f.count; i++)
			v[i] = x[i] - x[i - 1];
	} else if (base == IOT_BASE_REF) {
		b->schema->ref(b, c, v, keys);
	}
	if (base == IOT_BASE_RAW || !choose_finish(b, c, v, &f)) {
		f.base = IOT_BASE_RAW;
		base_raw(b, c, v);
		if (flags & IOT_DESC_NULLS_ONES) {
			for (size_t i = 0; i < f.count; i++)
				v[i] = v[i] == UINT64_MAX ? NULL_MARK : v[i];
		}
		if (!choose_finish(b, c, v, &f)) {
			/* A sector of 2^63: no nulls then, all ones as itself. */
			base_raw(b, c, v);
			f.flags = IOT_COLUMN_ZIGZAG;
			f.shift = 0;
		}
	}
	if (!f.constant)
		finish(v, f.count, f.shift, f.flags);
	*ret = f;
}
