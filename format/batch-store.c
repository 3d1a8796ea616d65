// SPDX-License-Identifier: BSD-2-Clause
/*
 * batch-store.c - a batch's memory: arrays and dictionaries as its stream's schema asks for them.
 *
 * The arrays lie in one allocation, staggered (see batch.h), and are a multiple of 128 values long,
 * so that codecs may work on whole groups. Rows are the business of the files that know a stream.
 */
#include "format/batch-def.h"
#include "format/block.h"

#include <assert.h>

#define STAGGER 192U

const struct iot_schema *iot_schema_of(unsigned int stream)
{
	switch (stream) {
	case IOT_STREAM_BLOCK:
		return &iot_schema_request;
	case IOT_STREAM_PACKET:
		return &iot_schema_packet;
	default:
		return NULL;
	}
}

const struct iot_schema *iot_schema_of_kind(unsigned int kind)
{
	for (unsigned int stream = IOT_STREAM_BLOCK; stream <= IOT_STREAM_PACKET; stream++) {
		const struct iot_schema *s = iot_schema_of(stream);

		if (s && kind && (kind == s->kind || kind == s->kind_open))
			return s;
	}
	return NULL;
}

unsigned int iot_stream_block_kind(unsigned int stream)
{
	const struct iot_schema *s = iot_schema_of(stream);

	return s ? s->kind : 0;
}

static int allocate_arrays(struct iot_batch *b, const struct iot_schema *schema, uint32_t cap)
{
	size_t padded = (cap + IOT_PACK_GROUP - 1) / IOT_PACK_GROUP * IOT_PACK_GROUP;
	size_t size = 64;
	uint8_t *p;

	for (size_t c = 0; c < IOT_MAX_COLUMNS; c++) {
		const struct iot_column_desc *d = &schema->columns[c];

		/* Without a width a column has no array, and adding a record would crash. */
		assert(d->width || !d->bits || d->flags & (IOT_DESC_WORD | IOT_DESC_SPLIT));
		size += padded * d->width + STAGGER;
	}
	p = calloc(1, size);
	if (!p)
		return -ENOMEM;
	free(b->memory);
	b->memory = p;
	b->cap = cap;
	p += 64 - (uintptr_t)p % 64;
	for (size_t c = 0; c < IOT_MAX_COLUMNS; c++) {
		unsigned int width = schema->columns[c].width;

		b->arrays[c] = width ? p : NULL;
		if (width)
			p += padded * width + STAGGER;
	}
	return 0;
}

static void dicts_done(struct iot_dict *dicts)
{
	for (size_t i = 0; i < IOT_MAX_DICTS; i++)
		iot_dict_done(&dicts[i]);
}

static int allocate_dicts(const struct iot_schema *schema, uint32_t cap,
			  struct iot_dict ret[IOT_MAX_DICTS])
{
	struct iot_dict dicts[IOT_MAX_DICTS] = {0};

	for (size_t i = 0; i < IOT_MAX_DICTS; i++) {
		const struct iot_dict_desc *d = &schema->dicts[i];
		int r = d->n_words ? iot_dict_init(&dicts[i], d->n_words,
						   IOT_MIN(cap * d->per_record, d->limit))
				   : 0;

		if (r < 0) {
			dicts_done(dicts);
			return r;
		}
	}
	memcpy(ret, dicts, sizeof(dicts));
	return 0;
}

int iot_batch_new_stream(enum iot_stream stream, uint32_t cap, struct iot_batch **ret)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	const struct iot_schema *schema = iot_schema_of(stream);
	int r;

	assert(cap >= 1 && cap <= IOT_BLOCK_RECORDS_MAX);
	assert(schema);

	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->schema = schema;
	r = allocate_arrays(b, schema, cap);
	if (r < 0)
		return r;
	r = allocate_dicts(schema, cap, b->dicts);
	if (r < 0)
		return r;
	iot_batch_clear(b);
	*ret = IOT_TAKE_PTR(b);
	return 0;
}

int iot_batch_new(uint32_t cap, struct iot_batch **ret)
{
	return iot_batch_new_stream(IOT_STREAM_BLOCK, cap, ret);
}

struct iot_batch *iot_batch_free(struct iot_batch *b)
{
	if (!b)
		return NULL;
	dicts_done(b->dicts);
	free(b->memory);
	free(b);
	return NULL;
}

void iot_batch_clear(struct iot_batch *b)
{
	b->n = 0;
	b->have = UINT64_MAX;
	b->first_ns = 0;
	b->last_ns = 0;
	b->decoded = false;
	b->memo.valid = false;
	for (size_t i = 0; i < IOT_MAX_DICTS; i++)
		iot_dict_clear(&b->dicts[i]);
}

int iot_batch_reserve(struct iot_batch *b, const struct iot_schema *schema, uint32_t n)
{
	int r;

	iot_batch_clear(b);
	assert(n <= IOT_BLOCK_RECORDS_MAX);
	if (schema != b->schema) {
		struct iot_dict dicts[IOT_MAX_DICTS];
		uint32_t cap = IOT_MAX(n, b->cap);

		/* Whatever of this fails, the batch stays whole, of its old stream. */
		r = allocate_dicts(schema, cap, dicts);
		if (r < 0)
			return r;
		r = allocate_arrays(b, schema, cap);
		if (r < 0) {
			dicts_done(dicts);
			return r;
		}
		dicts_done(b->dicts);
		memcpy(b->dicts, dicts, sizeof(dicts));
		b->schema = schema;
		return 0;
	}
	return n <= b->cap ? 0 : allocate_arrays(b, schema, n);
}

enum iot_stream iot_batch_stream(const struct iot_batch *b)
{
	return b->schema->stream;
}

uint32_t iot_batch_count(const struct iot_batch *b)
{
	return b->n;
}

uint64_t iot_batch_first_ns(const struct iot_batch *b)
{
	return b->first_ns;
}

uint64_t iot_batch_last_ns(const struct iot_batch *b)
{
	return b->last_ns;
}

void iot_batch_key(const struct iot_batch *b, uint32_t i, struct iot_row_key *ret)
{
	assert(i < b->n);

	*ret = (struct iot_row_key){0};
	b->schema->key(b, i, ret);
}
