/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block-fixture.h - an encoder, a decoder and generated rows, for tests of blocks: fill() makes rows,
 * encode() a block of them, decode() reads it back and check_rows() compares every field.
 * Include it after cmocka.h.
 */
#pragma once

#include "format/block.h"
#include "tests/unit/gen-trace.h"

struct fixture {
	struct iot_batch *in, *out;
	struct iot_block_encoder *encoder;
	struct iot_block_decoder *decoder;
	struct iot_request *rows;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(iot_batch_new(IOT_BLOCK_RECORDS, &f->in), 0);
	/* Smaller than what is decoded into it: it must grow. */
	assert_int_equal(iot_batch_new(16, &f->out), 0);
	assert_int_equal(iot_block_encoder_new(&f->encoder), 0);
	assert_int_equal(iot_block_decoder_new(&f->decoder), 0);
	f->rows = calloc(IOT_BLOCK_RECORDS_MAX, sizeof(*f->rows));
	assert_non_null(f->rows);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	iot_batch_free(f->in);
	iot_batch_free(f->out);
	iot_block_encoder_free(f->encoder);
	iot_block_decoder_free(f->decoder);
	free(f->rows);
	free(f);
	return 0;
}

/* Fills f->in from the generator until n records or full; returns how many. */
static inline uint32_t fill(struct fixture *f, struct gen *g, uint32_t n)
{
	uint32_t i;

	iot_batch_clear(f->in);
	for (i = 0; i < n; i++) {
		gen_request(g, &f->rows[i]);
		if (iot_batch_add(f->in, &f->rows[i]) == IOT_BATCH_FULL)
			break;
	}
	assert_int_equal(iot_batch_count(f->in), i);
	return i;
}

/* A block of its own, exactly as long as it is; *ret_info as its header says. */
static inline uint8_t *encode(struct fixture *f, uint64_t seq, struct iot_block_info *ret_info)
{
	const struct iot_span spans[2] = {{16, 4096 + seq}, {0, 0}};
	struct iot_block_info info;
	const uint8_t *data;
	uint8_t *copy;
	size_t size;

	assert_int_equal(iot_block_encode(f->encoder, IOT_BLOCK_REQUESTS, seq, f->in, spans, 2,
					  &data, &size, &info),
			 0);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, data, size);
	assert_int_equal(iot_block_header_decode(copy, size, ret_info), 0);
	assert_memory_equal(&info, ret_info, sizeof(info));
	assert_int_equal(info.size, size);
	return copy;
}

static inline int decode(struct fixture *f, const struct iot_block_info *info, const uint8_t *block,
			 uint64_t columns)
{
	return iot_block_decode(f->decoder, info, block + info->header_size, info->data_size,
				columns, f->out);
}

static inline void check_rows(struct fixture *f, uint32_t n)
{
	struct iot_request r;

	assert_int_equal(iot_batch_count(f->out), n);
	for (uint32_t i = 0; i < n; i++) {
		const char *field;

		iot_batch_get(f->out, i, &r);
		field = gen_difference(&r, &f->rows[i]);
		if (field)
			fail_msg("record %u: %s differs", i, field);
	}
}
