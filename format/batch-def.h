/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch-def.h - the inside of a batch, for the two who may look: batch.c, which fills and reads
 * rows, and columns.c, which turns its arrays into disk columns and back.
 *
 * Each field is an array as wide as the field, so that a block of one field is little memory to
 * walk; arrays are addressed by the disk column they become. The id stays whole here (its array is
 * IOT_COLUMN_ID's) and is split on disk. Index arrays (op, context, device, file) point into the
 * dictionaries.
 */
#pragma once

#include "format/batch.h"
#include "format/codec.h"
#include "format/segment-def.h"

#define IOT_N_VALUE_COLUMNS IOT_COLUMN_VALUES_END /* from 1: arrays with one value per record */

struct iot_batch {
	uint32_t n;
	uint32_t cap;
	uint64_t have; /* bits 1 << enum iot_column: which arrays hold anything */
	uint64_t first_ns;
	uint64_t last_ns;
	bool decoded; /* by block-decode.c: read it, then clear it */
	void *arrays[IOT_N_VALUE_COLUMNS];
	struct iot_dict op;
	struct iot_dict context;
	struct iot_dict device;
	struct iot_dict file;
	void *memory; /* all arrays */
};

/* Bytes of one element of a column's array; 0 = the column has none. */
extern const uint8_t iot_batch_width[IOT_N_VALUE_COLUMNS];

static inline uint64_t *iot_batch_u64(const struct iot_batch *b, enum iot_column c)
{
	return b->arrays[c];
}
static inline uint32_t *iot_batch_u32(const struct iot_batch *b, enum iot_column c)
{
	return b->arrays[c];
}
static inline uint16_t *iot_batch_u16(const struct iot_batch *b, enum iot_column c)
{
	return b->arrays[c];
}
static inline uint8_t *iot_batch_u8(const struct iot_batch *b, enum iot_column c)
{
	return b->arrays[c];
}

/* Clears the batch and makes room for n records. */
int iot_batch_reserve(struct iot_batch *b, uint32_t n) IOT_MUST_CHECK;
