/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * columns.h - which column is transformed how: between the arrays of a batch and the u64 values
 * that codecs store.
 *
 * A transform is a base (the value itself, minus the one before, or against other columns) and a
 * finish (right shift by common zeros, sign into the lowest bit, null as 0). All arithmetic is
 * modulo 2^64, so that every value of every field survives, however absurd. The reference of each
 * column is fixed (iot_column_refs) and always a column with a lower number or a dictionary's
 * size: there are no cycles, and ascending order decodes everything.
 */
#pragma once

#include "format/batch-def.h"

/* Values before codec: what of a column table entry is not the codec's. */
struct iot_column_form {
	uint8_t column; /* enum iot_column */
	uint8_t base;	/* enum iot_base */
	uint8_t flags;	/* enum iot_column_flag */
	uint8_t shift;
	bool constant; /* all values are `value`: the array was not, or need not be, filled */
	uint64_t value;
	uint32_t count;
};

/* Keyed bases remember one value per key: 8,192 CPUs or 65,536 contexts. */
#define IOT_COLUMN_KEYS 65536U

static inline bool iot_column_is_dict(unsigned int c)
{
	return c >= IOT_COLUMN_OP_WORD && c < IOT_N_COLUMNS;
}

static inline bool iot_column_is_known(unsigned int c)
{
	return (c >= IOT_COLUMN_COMPLETE && c < IOT_N_VALUE_COLUMNS) || iot_column_is_dict(c);
}

/* The base that a block uses unless the values forbid it. */
enum iot_base iot_column_preferred(enum iot_column c);
/* Columns (bits) that IOT_BASE_REF of c needs; 0 = c has no reference. */
uint64_t iot_column_refs(enum iot_column c);
/* The column of the same width that c equals if every REF value of c is 0; 0 = there is none. */
enum iot_column iot_column_twin(enum iot_column c);
/* Dictionary columns (bits) that an index column needs, else 0. */
uint64_t iot_column_tables(enum iot_column c);
/* Dictionary that an index column points into, or that a dictionary column is a word of; NULL. */
struct iot_dict *iot_column_dict(struct iot_batch *b, enum iot_column c, unsigned int *ret_word);

/*
 * Forward. base: RAW, or the preferred one; if the values forbid it the form says RAW. v has room
 * for count rounded up to 128, keys IOT_COLUMN_KEYS.
 */
void iot_column_forward(const struct iot_batch *b, enum iot_column c, enum iot_base base,
			uint64_t *v, uint64_t *keys, struct iot_column_form *ret);

/*
 * Inverse: stored values v[0..f->count), or f->value if f->constant, into the batch's array or
 * dictionary; v is changed and has room for count in any case. The
 * references must have been decoded and dictionaries be of their final size. -EBADMSG: the form
 * or a value is not allowed for this column.
 */
int iot_column_inverse(struct iot_batch *b, const struct iot_column_form *f, uint64_t *v,
		       uint64_t *keys) IOT_MUST_CHECK;
