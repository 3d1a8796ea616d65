// SPDX-License-Identifier: BSD-2-Clause
/*
 * Blocks that nobody wrote: flipped, cut, and made of arbitrary bytes under right hashes. All are
 * refused without touching what lies behind them; what a later version may add is stepped over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/segment-def.h"
#include "tests/unit/block-content.h"
#include "tests/unit/block-fixture.h"

#include <endian.h>

/* Any flipped bit of a block is seen: by the header's hash or the data's. */
static void test_flip_every_bit(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, flipped;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_MIXED, 12);
	fill(f, &g, 20);
	block = encode(f, 0, &info);
	for (size_t bit = 0; bit < info.size * 8; bit++) {
		int r;

		block[bit / 8] ^= (uint8_t)(1U << bit % 8);
		r = iot_block_header_decode(block, info.size, &flipped);
		if (bit / 8 < info.header_size) {
			assert_int_equal(r, -EBADMSG);
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(iot_block_data_check(&flipped, block + info.header_size,
							      info.data_size),
					 -EBADMSG);
			assert_int_equal(decode(f, &flipped, block, IOT_COLS_ALL), -EBADMSG);
			assert_int_equal(iot_batch_count(f->out), 0);
		}
		block[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(block);
}

static void test_every_truncation(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, cut;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_RANDOM, 12);
	fill(f, &g, 50);
	block = encode(f, 0, &info);
	for (size_t size = 0; size < info.size; size++) {
		uint8_t *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, block, size);
		if (size < info.header_size) {
			assert_int_equal(iot_block_header_decode(copy, size, &cut), -EBADMSG);
		} else {
			assert_int_equal(iot_block_header_decode(copy, size, &cut), 0);
			assert_int_equal(iot_block_decode(f->decoder, &cut, copy + cut.header_size,
							  size - cut.header_size, IOT_COLS_ALL,
							  f->out),
					 -EBADMSG);
		}
		free(copy);
	}
	free(block);
}

static void test_mutated_content(void **state)
{
	struct fixture *f = *state;
	unsigned int refused = 0;
	struct gen g, m = {.state = 6};

	for (unsigned int i = 0; i < 4000; i++) {
		struct iot_block_info info;
		uint8_t *block, *content;
		size_t size;

		gen_init(&g, i % GEN_N_KINDS, i);
		fill(f, &g, 1 + (uint32_t)gen_below(&m, 60));
		block = encode(f, 0, &info);
		content = content_of(&info, block);
		size = info.raw_bytes;
		for (uint64_t k = 1 + gen_below(&m, 3); k > 0; k--) {
			/* Mostly the column table: the payloads are the larger part. */
			size_t at = gen_below(&m, gen_below(&m, 3) ? IOT_MIN(size, 520U) : size);

			content[at] = (uint8_t)(gen_below(&m, 2)
							? gen_next(&m)
							: content[at] ^ 1U << gen_below(&m, 8));
		}
		if (gen_below(&m, 8) == 0)
			size = 1 + gen_below(&m, size);
		if (decode_content(f->decoder, &info, content, size, IOT_COLS_ALL, f->out) < 0) {
			refused++;
			assert_int_equal(iot_batch_count(f->out), 0);
		}
		free(content);
		free(block);
	}
	assert_true(refused > 1000);
}

/* Single rules of the column table, each broken alone. */
static void test_column_table_rules(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	uint8_t *block, *content;
	struct iot_disk_column *e;
	struct iot_disk_columns *head;
	struct gen g;

	gen_init(&g, GEN_MIXED, 8);
	fill(f, &g, 100);
	block = encode(f, 0, &info);
	content = content_of(&info, block);
	head = (struct iot_disk_columns *)content;
	e = (struct iot_disk_column *)(head + 1);
	assert_int_equal(
		decode_content(f->decoder, &info, content, info.raw_bytes, IOT_COLS_ALL, f->out),
		0);

#define BROKEN(field, value)                                                                \
	do {                                                                                \
		__typeof__(field) _old = (field);                                           \
		(field) = (value);                                                          \
		assert_int_equal(decode_content(f->decoder, &info, content, info.raw_bytes, \
						IOT_COLS_ALL, f->out),                      \
				 -EBADMSG);                                                 \
		(field) = _old;                                                             \
		assert_int_equal(decode_content(f->decoder, &info, content, info.raw_bytes, \
						IOT_COLS_ALL, f->out),                      \
				 0);                                                        \
	} while (0)
	BROKEN(head->n, head->n + 1);
	BROKEN(head->n, head->n - 1);
	BROKEN(head->n, 0);
	BROKEN(head->entry_size, 8);
	BROKEN(head->entry_size, 24);
	BROKEN(head->reserved, 1);
	BROKEN(e[0].column, e[1].column); /* twice */
	BROKEN(e[1].column, e[0].column);
	BROKEN(e[0].codec, 0);
	BROKEN(e[0].codec, 9);
	BROKEN(e[0].base, IOT_BASE_REF); /* complete has no reference */
	BROKEN(e[1].base, 7);
	BROKEN(e[0].flags, 4);
	BROKEN(e[0].flags, IOT_COLUMN_NULLS | e[0].flags); /* complete is never null */
	BROKEN(e[0].shift, 64);
	BROKEN(e[0].reserved[1], 1);
	BROKEN(e[0].count, 99);
	BROKEN(e[0].length, e[0].length + 1);
	BROKEN(e[0].length, UINT32_MAX);
	/* Missing columns: an index without its table, and those that must be there. */
	for (unsigned int i = 0; i < head->n; i++) {
		switch (e[i].column) {
		case IOT_COLUMN_OP_WORD:
			BROKEN(e[i].column, IOT_COLUMN_VALUES_END);
			break;
		case IOT_COLUMN_FILE_FSDEV:
			BROKEN(e[i].column, 200);
			break;
		case IOT_COLUMN_COMPLETE:
			BROKEN(e[i].column, 0);
			break;
		default:
			break;
		}
	}
#undef BROKEN
	/* What the header says must be what the columns say. */
	info.first_ns++;
	assert_int_equal(
		decode_content(f->decoder, &info, content, info.raw_bytes, IOT_COLS_ALL, f->out),
		-EBADMSG);
	info.first_ns--;
	info.last_id++;
	assert_int_equal(
		decode_content(f->decoder, &info, content, info.raw_bytes, IOT_COLS_ALL, f->out),
		-EBADMSG);
	free(content);
	free(block);
}

/* A later version's column, and a longer table entry, are stepped over. */
static void test_unknown_column(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	struct iot_disk_columns head;
	uint8_t *block, *content, *newer, *p;
	uint32_t five = htole32(5);
	size_t n_entries, payload;
	struct gen g;

	gen_init(&g, GEN_MIXED, 21);
	fill(f, &g, 64);
	block = encode(f, 0, &info);
	content = content_of(&info, block);
	memcpy(&head, content, sizeof(head));
	n_entries = le16toh(head.n);
	payload = sizeof(head) + n_entries * 16;
	newer = calloc(1, info.raw_bytes + (n_entries + 1) * 8 + 16 + 5);
	assert_non_null(newer);
	head.n = htole16((uint16_t)(n_entries + 1));
	head.entry_size = htole16(24);
	p = newer;
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	for (size_t i = 0; i < n_entries; i++, p += 24) {
		memcpy(p, content + sizeof(head) + i * 16, 16);
		memset(p + 16, 0xee, 8);
	}
	*p = 200;  /* column */
	p[1] = 77; /* codec of the future */
	memcpy(p + 12, &five, 4);
	p += 24;
	memcpy(p, content + payload, info.raw_bytes - payload);
	p += info.raw_bytes - payload;
	memcpy(p, "later", 5);
	p += 5;
	assert_int_equal(
		decode_content(f->decoder, &info, newer, (size_t)(p - newer), IOT_COLS_ALL, f->out),
		0);
	check_rows(f, 64);
	free(newer);
	free(content);
	free(block);
}

/* Declared sizes far beyond the bytes that are there ask for no memory. */
static void test_declared_sizes(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, lie;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_RANDOM, 2);
	fill(f, &g, 10);
	block = encode(f, 0, &info);
#define LIE(field, value)                                                         \
	do {                                                                      \
		lie = info;                                                       \
		lie.field = (value);                                              \
		assert_int_equal(decode(f, &lie, block, IOT_COLS_ALL), -EBADMSG); \
	} while (0)
	LIE(count, 0);
	LIE(count, IOT_BLOCK_RECORDS_MAX + 1);
	LIE(count, IOT_BLOCK_RECORDS_MAX);
	LIE(raw_bytes, IOT_LIMIT_RAW_BYTES);
	LIE(raw_bytes, UINT32_MAX);
	LIE(raw_bytes, info.raw_bytes + 1);
	LIE(raw_bytes, 0);
	LIE(row_size, 64);
	LIE(kind, 0);
	LIE(kind, IOT_BLOCK_LEDGER);
#undef LIE
	free(block);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_flip_every_bit),  CASE(test_every_truncation),
		CASE(test_mutated_content), CASE(test_column_table_rules),
		CASE(test_unknown_column),  CASE(test_declared_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
