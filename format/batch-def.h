/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch-def.h - the inside of a batch, for those who may look: the files that fill and read rows of
 * a stream, and columns*.c, which turn its arrays into disk columns and back.
 *
 * Each field is an array as wide as the field, so that a block of one field is little memory to
 * walk; arrays are addressed by the disk column they become. Index arrays point into the
 * dictionaries; arrays of sides are as long as their dictionary. A request's id stays whole here
 * (its array is IOT_COLUMN_ID's) and is split on disk.
 */
#pragma once

#include "format/batch.h"
#include "format/codec.h"
#include "format/schema.h"
#include "format/segment-def.h"

struct iot_batch {
	const struct iot_schema *schema;
	uint32_t n;
	uint32_t cap;
	uint64_t have; /* bits 1 << column: which arrays hold anything */
	uint64_t first_ns;
	uint64_t last_ns;
	bool decoded; /* by block-decode.c: read it, then clear it */
	void *arrays[IOT_MAX_COLUMNS];
	struct iot_dict dicts[IOT_MAX_DICTS];
	void *memory; /* all arrays */
	struct {
		bool valid;
		uint16_t index;
		struct iot_flow flow;
	} memo; /* packet.c: the flow of the last record */
};

static inline uint64_t *iot_batch_u64(const struct iot_batch *b, unsigned int c)
{
	return b->arrays[c];
}
static inline uint32_t *iot_batch_u32(const struct iot_batch *b, unsigned int c)
{
	return b->arrays[c];
}
static inline uint16_t *iot_batch_u16(const struct iot_batch *b, unsigned int c)
{
	return b->arrays[c];
}
static inline uint8_t *iot_batch_u8(const struct iot_batch *b, unsigned int c)
{
	return b->arrays[c];
}
static inline bool iot_batch_has(const struct iot_batch *b, unsigned int c)
{
	return b->have & (1ULL << c);
}

static inline void iot_u64_range(const uint64_t *v, size_t n, uint64_t *ret_min, uint64_t *ret_max)
{
	uint64_t min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < n; i++) {
		min = IOT_MIN(min, v[i]);
		max = IOT_MAX(max, v[i]);
	}
	*ret_min = min;
	*ret_max = max;
}

/* The time of record i. */
static inline uint64_t iot_batch_ns(const struct iot_batch *b, uint32_t i)
{
	return iot_batch_u64(b, b->schema->time)[i];
}

/* Clears the batch and makes room for n records of a stream, which need not be the last one's. */
int iot_batch_reserve(struct iot_batch *b, const struct iot_schema *schema,
		      uint32_t n) IOT_MUST_CHECK;
/* A record of time ns went into row b->n. */
static inline void iot_batch_added(struct iot_batch *b, uint64_t ns)
{
	b->first_ns = b->n == 0 ? ns : IOT_MIN(b->first_ns, ns);
	b->last_ns = IOT_MAX(b->last_ns, ns);
	b->n++;
}
