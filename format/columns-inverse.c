// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns-inverse.c - stored values back into the arrays of a batch.
 *
 * The mirror of columns.c, with suspicion: which transforms a column may have is checked, and
 * every value must fit the field it belongs to and every index its dictionary. References are
 * arrays of the same batch that were decoded before and hence already checked. Arithmetic is
 * unsigned throughout.
 */
#include "format/columns.h"

#include <assert.h>

#define NULL_MARK IOT_NULL_MARK

static int check_form(const struct iot_column_desc *d, const struct iot_column_form *f)
{
	if (f->flags & ~(unsigned int)(IOT_COLUMN_NULLS | IOT_COLUMN_ZIGZAG) || f->shift > 63)
		return -EBADMSG;
	if (f->base != IOT_BASE_RAW && f->base != d->base)
		return -EBADMSG;
	if (f->flags & IOT_COLUMN_NULLS && !(d->flags & IOT_DESC_NULLS_ONES) &&
	    !(d->flags & IOT_DESC_NULLS_REF && f->base == IOT_BASE_REF))
		return -EBADMSG;
	return 0;
}

/* Stored to plain values; nulls become NULL_MARK. */
static void unfinish(uint64_t *v, size_t n, unsigned int shift, unsigned int flags)
{
	bool nulls = flags & IOT_COLUMN_NULLS;

	if (flags & IOT_COLUMN_ZIGZAG) {
		for (size_t i = 0; i < n; i++) {
			uint64_t x = v[i] - nulls;

			x = (x >> 1 ^ -(x & 1)) << shift;
			v[i] = nulls && v[i] == 0 ? NULL_MARK : x;
		}
	} else if (nulls) {
		for (size_t i = 0; i < n; i++)
			v[i] = v[i] == 0 ? NULL_MARK : (v[i] - 1) << shift;
	} else if (shift) {
		for (size_t i = 0; i < n; i++)
			v[i] <<= shift;
	}
}

static void sum_up(uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		v[i] += v[i - 1];
}

/* Into the array, as wide as it is; -EBADMSG if a value has more bits than `bits`. */
static int narrow(const uint64_t *v, size_t n, unsigned int width, unsigned int bits, void *array)
{
	if (bits < 64) {
		uint64_t any = 0;

		for (size_t i = 0; i < n; i++)
			any |= v[i];
		if (any >> bits)
			return -EBADMSG;
	}
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			((uint8_t *)array)[i] = (uint8_t)v[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			((uint16_t *)array)[i] = (uint16_t)v[i];
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			((uint32_t *)array)[i] = (uint32_t)v[i];
		break;
	default:
		if (array != v)
			memcpy(array, v, n * sizeof(*v));
	}
	return 0;
}

static int store_signed(struct iot_batch *b, unsigned int c, uint64_t *v)
{
	uint64_t wrong = 0;
	size_t n = iot_column_count(b, c);

	for (size_t i = 0; i < n; i++) {
		wrong |= v[i] ^ (uint64_t)(int64_t)(int32_t)v[i];
		v[i] = (uint32_t)v[i];
	}
	if (wrong)
		return -EBADMSG;
	return narrow(v, n, 4, 32, b->arrays[c]);
}

/* Every index must be smaller than its dictionary. */
static bool indexes_fit(const struct iot_dict *d, const uint64_t *v, size_t n)
{
	uint64_t max = 0;

	for (size_t i = 0; i < n; i++)
		max = IOT_MAX(max, v[i]);
	return max < d->n;
}

static int store_words(struct iot_batch *b, unsigned int c, const uint64_t *v)
{
	/* Bits that the fields of a word have; the others have no place in a record. */
	unsigned int bits = b->schema->columns[c].bits, word = b->schema->columns[c].word;
	struct iot_dict *d = &b->dicts[b->schema->columns[c].table - 1];

	for (size_t i = 0; i < d->n; i++) {
		if (bits < 64 && v[i] >> bits)
			return -EBADMSG;
		d->words[i * d->n_words + word] = v[i];
	}
	return 0;
}

static void fill_array(void *array, unsigned int width, size_t n, uint64_t value)
{
	if (value == 0 || width == 1) {
		memset(array, (int)value, n * width);
		return;
	}
	switch (width) {
	case 2:
		for (size_t i = 0; i < n; i++)
			((uint16_t *)array)[i] = (uint16_t)value;
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			((uint32_t *)array)[i] = (uint32_t)value;
		break;
	default:
		for (size_t i = 0; i < n; i++)
			((uint64_t *)array)[i] = value;
	}
}

/*
 * Most columns of most blocks are constant, or equal to their twin: those are filled or copied
 * without a detour over values. False: this one is not so simple.
 */
static bool fill_constant(struct iot_batch *b, const struct iot_column_form *f)
{
	const struct iot_column_desc *d = &b->schema->columns[f->column];
	unsigned int c = f->column;

	if (d->flags & (IOT_DESC_WORD | IOT_DESC_SPLIT) || f->flags || f->shift)
		return false;
	if (f->base == IOT_BASE_REF && d->twin && f->value == 0) {
		memcpy(b->arrays[c], b->arrays[d->twin], (size_t)f->count * d->width);
		return true;
	}
	/* A signed value that fits its width is not yet a value of it. */
	if (f->base != IOT_BASE_RAW || (d->flags & IOT_DESC_SIGNED && f->value) ||
	    (d->bits < 64 && f->value >> d->bits))
		return false;
	if (d->index && f->value >= b->dicts[d->index - 1].n)
		return false;
	fill_array(b->arrays[c], d->width, f->count, f->value);
	return true;
}

int iot_column_inverse(struct iot_batch *b, const struct iot_column_form *f, uint64_t *v,
		       uint64_t *keys)
{
	const struct iot_column_desc *d = &b->schema->columns[f->column];
	unsigned int c = f->column;
	int r;

	assert(iot_column_is_known(b->schema, c));

	r = check_form(d, f);
	if (r < 0)
		return r;
	assert(f->count == iot_column_count(b, c));
	if (f->constant) {
		if (fill_constant(b, f))
			return 0;
		for (uint32_t i = 0; i < f->count; i++)
			v[i] = f->value;
	}
	unfinish(v, f->count, f->shift, f->flags);
	if (f->base == IOT_BASE_DELTA) {
		sum_up(v, f->count);
	} else if (f->base == IOT_BASE_REF) {
		b->schema->unref(b, c, f->flags & IOT_COLUMN_NULLS, v, keys);
	} else if (f->flags & IOT_COLUMN_NULLS) {
		for (size_t i = 0; i < f->count; i++)
			v[i] = v[i] == NULL_MARK ? UINT64_MAX : v[i];
	}
	if (d->index && !indexes_fit(&b->dicts[d->index - 1], v, f->count))
		return -EBADMSG;
	if (d->flags & IOT_DESC_WORD)
		return store_words(b, c, v);
	if (d->flags & IOT_DESC_SIGNED)
		return store_signed(b, c, v);
	if (!(d->flags & IOT_DESC_SPLIT))
		return narrow(v, f->count, d->width, d->bits, b->arrays[c]);
	for (uint32_t i = 0; i < f->count; i++) {
		if (v[i] >> d->bits)
			return -EBADMSG;
	}
	return b->schema->unsplit(b, c, v);
}
