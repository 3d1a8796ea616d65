/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * columns.h - which column is transformed how: between the arrays of a batch and the u64 values
 * that codecs store.
 *
 * A transform is a base (the value itself, minus the one before, or against other columns) and a
 * finish (right shift by common zeros, sign into the lowest bit, null as 0). All arithmetic is
 * modulo 2^64, so that every value of every field survives, however absurd. The references of each
 * column are fixed (schema.h) and always columns with a lower number or a dictionary's
 * size: there are no cycles, and ascending order decodes everything.
 */
#pragma once

#include "format/batch-def.h"

/* Values before codec: what of a column table entry is not the codec's. */
struct iot_column_form {
	uint8_t column; /* number in the stream's schema */
	uint8_t base;	/* enum iot_base */
	uint8_t flags;	/* enum iot_column_flag */
	uint8_t shift;
	bool constant; /* all values are `value`: the array was not, or need not be, filled */
	uint64_t value;
	uint32_t count;
};

/* Keyed bases remember one value per key: 8,192 CPUs or 65,536 contexts. */
#define IOT_COLUMN_KEYS 65536U

/* On its way through the arrays a null is this: the one value whose zigzag plus one does not fit. */
#define IOT_NULL_MARK (1ULL << 63)

static inline bool iot_column_is_known(const struct iot_schema *s, unsigned int c)
{
	return c < IOT_MAX_COLUMNS && s->columns[c].bits;
}

/* Words and sides: one value per entry of a dictionary. */
static inline bool iot_column_is_table(const struct iot_column_desc *d)
{
	return d->flags & (IOT_DESC_WORD | IOT_DESC_SIDE);
}

/* Its array is as wide as a value, and nothing else is made of values on the way there. */
static inline bool iot_column_in_place(const struct iot_schema *s, unsigned int c)
{
	const struct iot_column_desc *d = &s->columns[c];

	return d->bits == 64 && d->width == 8 && !(d->flags & (IOT_DESC_WORD | IOT_DESC_SPLIT));
}

/* Values that a column has. */
static inline uint32_t iot_column_count(const struct iot_batch *b, unsigned int c)
{
	const struct iot_column_desc *d = &b->schema->columns[c];

	return iot_column_is_table(d) ? b->dicts[d->table - 1].n : b->n;
}

/*
 * Forward. base: RAW, or the preferred one; if the values forbid it the form says RAW. v has room
 * for count rounded up to 128, keys IOT_COLUMN_KEYS.
 */
void iot_column_forward(const struct iot_batch *b, unsigned int c, enum iot_base base, uint64_t *v,
			uint64_t *keys, struct iot_column_form *ret);

/*
 * Inverse: stored values v[0..f->count), or f->value if f->constant, into the batch's array or
 * dictionary; count is iot_column_count(). v is changed and has room for count in any case; it may
 * be the array itself where iot_column_in_place(). The references must have been decoded and
 * dictionaries be of their final size. -EBADMSG: the form or a value is not allowed for this column.
 */
int iot_column_inverse(struct iot_batch *b, const struct iot_column_form *f, uint64_t *v,
		       uint64_t *keys) IOT_MUST_CHECK;

/* ---- columns-request.c ---- */
enum iot_request_dict {
	IOT_REQUEST_DICT_OP,
	IOT_REQUEST_DICT_CONTEXT,
	IOT_REQUEST_DICT_DEVICE,
	IOT_REQUEST_DICT_FILE,
};
void iot_request_ref(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys);
void iot_request_unref(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v,
		       uint64_t *keys);
void iot_request_split(const struct iot_batch *b, unsigned int c, uint64_t *v);
int iot_request_unsplit(struct iot_batch *b, unsigned int c, const uint64_t *v) IOT_MUST_CHECK;

/* ---- columns-packet.c ---- */
enum iot_packet_dict {
	IOT_PACKET_DICT_OBJECT,
	IOT_PACKET_DICT_FLOW,
	IOT_PACKET_DICT_ADDRESS,
	IOT_PACKET_DICT_IFACE,
	IOT_PACKET_DICT_CONTEXT,
	IOT_PACKET_DICT_WHERE,
};
void iot_packet_ref(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys);
void iot_packet_unref(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v,
		      uint64_t *keys);
