/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schema.h - what makes one stream's records differ from another's, for the modules that turn rows
 * into columns and back: batch, columns, block.
 *
 * A stream is a table: one line per disk column, the dictionaries, and a few functions for what a
 * table cannot say (transforms against other columns, which column is whose time and owner). All
 * else (writer, reader, scan, verify, recovery) asks iot_batch_key() and knows no stream. Column
 * numbers belong to a stream: the same number means something else in another one.
 *
 * Three kinds of column: of values (one per record), of words (one per entry of a dictionary), and
 * sides (one per entry of a dictionary, too, but not part of what makes an entry equal to another).
 */
#pragma once

#include "format/batch.h"
#include "format/segment-def.h"

#define IOT_MAX_DICTS 6U
#define IOT_MAX_COLUMNS 64U /* columns are bits of a u64, too */

enum iot_desc_flag {
	IOT_DESC_NULLS_REF = 1U << 0,  /* with base REF a value may be null: 0 */
	IOT_DESC_NULLS_ONES = 1U << 1, /* whatever the base a value may be null: all ones */
	IOT_DESC_SIGNED = 1U << 2,     /* int32_t */
	IOT_DESC_SPLIT = 1U << 3, /* shares its array with another column: the schema's functions */
	IOT_DESC_TRY_BYTES = 1U << 4, /* byte planes may be smaller */
	IOT_DESC_TRY_RAW = 1U << 5,   /* REF may be worse than nothing */
	IOT_DESC_WORD = 1U << 6,      /* one value per entry of `table`: word `word` of it */
	IOT_DESC_SIDE = 1U << 7,      /* one value per entry of `table`, in an array of its own */
	IOT_DESC_MUST = 1U << 8,      /* a block without it says nothing */
};

struct iot_column_desc {
	uint8_t bits;  /* of a value; 0 = the stream has no such column */
	uint8_t width; /* bytes of an element of its array; 0 = none */
	uint8_t base;  /* enum iot_base, unless the values forbid it */
	uint8_t twin;  /* column of the same width that it equals if all of REF is 0; 0 = none */
	uint8_t table; /* 1 + number of the dictionary that it is a word or a side of */
	uint8_t word;
	uint8_t index;	/* 1 + number of the dictionary that its values are indexes into */
	uint16_t flags; /* enum iot_desc_flag */
	uint64_t needs; /* columns (bits) without which it cannot be decoded */
	uint64_t refs;	/* those that base REF needs in addition */
};

struct iot_dict_desc {
	uint32_t limit; /* entries; nor more than `per_record` for each record of the batch */
	uint8_t n_words;
	uint8_t per_record; /* entries that one record may need */
};

/* What every stream's record has. */
struct iot_row_key {
	uint64_t ns; /* the time that orders records and names a block's span */
	uint64_t id; /* owner; 0 = unidentified */
	uint32_t cpu;
	uint16_t probe;
	bool no_start; /* began unseen */
};

struct iot_schema {
	enum iot_stream stream;
	uint8_t kind;	   /* enum iot_block_kind of its records */
	uint8_t kind_open; /* of records in flight; 0 = the stream has none */
	uint8_t time;	   /* column of iot_row_key.ns: 64 bits, always decoded */
	uint64_t ids;	   /* columns of the id */
	uint64_t keys;	   /* columns of struct iot_row_key */
	struct iot_column_desc columns[IOT_MAX_COLUMNS];
	struct iot_dict_desc dicts[IOT_MAX_DICTS];
	/* The key of record i; parts whose columns were not decoded are 0. */
	void (*key)(const struct iot_batch *b, uint32_t i, struct iot_row_key *ret);
	/* Smallest and largest id; all columns of `ids` are there. */
	void (*id_range)(const struct iot_batch *b, uint64_t *ret_min, uint64_t *ret_max);
	/* Base REF of column c: v[i] from the arrays, and back; keys has IOT_COLUMN_KEYS entries. */
	void (*ref)(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys);
	void (*unref)(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v,
		      uint64_t *keys);
	/* IOT_DESC_SPLIT columns: plain values, and into the array. */
	void (*split)(const struct iot_batch *b, unsigned int c, uint64_t *v);
	int (*unsplit)(struct iot_batch *b, unsigned int c, const uint64_t *v);
};

extern const struct iot_schema iot_schema_request;
extern const struct iot_schema iot_schema_packet;

/* NULL: no such stream, or blocks of that kind have no columns. */
const struct iot_schema *iot_schema_of(unsigned int stream);
const struct iot_schema *iot_schema_of_kind(unsigned int kind);
