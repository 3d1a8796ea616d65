// SPDX-License-Identifier: BSD-2-Clause
/* CONST, PACK, BYTES and DICT: what goes in comes out; what no encoder writes is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/codec.h"
#include "tests/unit/gen-trace.h"

#define MAX_VALUES 1024U

typedef uint8_t *(*encode_fn)(uint64_t *v, size_t n, uint8_t *out);
typedef int (*decode_fn)(const uint8_t *in, size_t size, size_t n, uint64_t *v);

static uint8_t *bytes_encode(uint64_t *v, size_t n, uint8_t *out)
{
	return iot_bytes_encode(v, n, out);
}

/* Decodes from a buffer with no more than the promised slack, so that ASan sees reads beyond. */
static int decode_exact(decode_fn decode, const uint8_t *in, size_t size, size_t n, uint64_t *v)
{
	uint8_t *copy = malloc(size + IOT_CODEC_SLACK);
	int r;

	assert_non_null(copy);
	memcpy(copy, in, size);
	memset(copy + size, 0xa5, IOT_CODEC_SLACK);
	r = decode(copy, size, n, v);
	free(copy);
	return r;
}

static size_t round_trip(encode_fn encode, decode_fn decode, const uint64_t *values, size_t n)
{
	uint64_t work[MAX_VALUES + IOT_PACK_GROUP], got[MAX_VALUES];
	uint8_t *out = malloc(iot_codec_bound(n)), *end;
	size_t size;

	assert_non_null(out);
	memcpy(work, values, n * sizeof(*values));
	end = encode(work, n, out);
	size = (size_t)(end - out);
	assert_true(size + IOT_CODEC_SLACK <= iot_codec_bound(n));
	assert_int_equal(decode_exact(decode, out, size, n, got), 0);
	assert_memory_equal(got, values, n * sizeof(*values));
	/* Exactly its length: one byte less or more is not the same column. */
	assert_int_equal(decode_exact(decode, out, size - 1, n, got), -EBADMSG);
	assert_int_equal(decode_exact(decode, out, size + 1, n, got), -EBADMSG);
	free(out);
	return size;
}

static void fill(struct gen *g, unsigned int pattern, uint64_t *v, size_t n)
{
	unsigned int bits = (unsigned int)gen_below(g, 65);
	uint64_t mask = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;

	for (size_t i = 0; i < n; i++) {
		switch (pattern) {
		case 0: /* a width, and rarely something much wider */
			v[i] = gen_below(g, 20) ? gen_next(g) & mask : gen_next(g);
			break;
		case 1:
			v[i] = gen_hostile_value(g);
			break;
		case 2: /* the width changes from group to group */
			v[i] = gen_next(g) >> (63 - i / IOT_PACK_GROUP * 7 % 64);
			break;
		case 3:
			v[i] = UINT64_MAX;
			break;
		default:
			v[i] = i == n / 2 ? mask : 0;
		}
	}
}

static void test_round_trip(void **state)
{
	static const size_t counts[] = {1,   2,	  7,   8,   9,	 127, 128,
					129, 135, 136, 255, 256, 257, MAX_VALUES};
	uint64_t v[MAX_VALUES];
	struct gen g = {.state = 1};

	(void)state;
	for (unsigned int i = 0; i < 3000; i++) {
		size_t n = counts[gen_below(&g, IOT_ARRAY_SIZE(counts))];

		fill(&g, i % 5, v, n);
		round_trip(iot_pack_encode, iot_pack_decode, v, n);
		round_trip(bytes_encode, iot_bytes_decode, v, n);
	}
}

static void test_every_width(void **state)
{
	uint64_t v[IOT_PACK_GROUP];
	struct gen g = {.state = 2};

	(void)state;
	for (unsigned int bits = 0; bits <= 64; bits++) {
		for (size_t i = 0; i < IOT_PACK_GROUP; i++)
			v[i] = bits ? gen_next(&g) >> (64 - bits) | 1ULL << (bits - 1) : 0;
		/* No value is narrower: two bytes of head and the bits; above 56, whole words. */
		assert_int_equal(round_trip(iot_pack_encode, iot_pack_decode, v, IOT_PACK_GROUP),
				 2 + IOT_PACK_GROUP * (bits > 56 ? 64 : bits) / 8);
	}
}

static void test_patches(void **state)
{
	uint64_t v[IOT_PACK_GROUP] = {0};
	size_t size;

	(void)state;
	/* One wide value among zeros: b = 0, one patch. */
	v[77] = UINT64_MAX;
	size = round_trip(iot_pack_encode, iot_pack_decode, v, IOT_PACK_GROUP);
	assert_int_equal(size, 3 + 1 + 8);
	for (size_t i = 0; i < IOT_PACK_GROUP; i++)
		v[i] = i % 16;
	v[0] = 1ULL << 40;
	v[127] = 1ULL << 40;
	size = round_trip(iot_pack_encode, iot_pack_decode, v, IOT_PACK_GROUP);
	assert_int_equal(size, 3 + 64 + 2 + 2 * 5);
}

static void test_pack_refuses(void **state)
{
	static const struct {
		const char *why;
		uint8_t bytes[40];
		size_t size;
		size_t n;
	} bad[] = {
		{"nothing at all", {0}, 0, 1},
		{"half a head", {0}, 1, 1},
		{"b = 57", {57, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 10, 1},
		{"b = 65", {65, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 11, 1},
		{"more patches than k / 4", {0, 2, 1, 0, 1, 5, 6}, 7, 7},
		{"no patch width", {0, 1}, 2, 8},
		{"patch width 0", {0, 1, 0, 3}, 4, 8},
		{"patch width 9", {0, 1, 9, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 13, 8},
		{"position = k", {0, 1, 1, 8, 5}, 5, 8},
		{"position twice", {0, 2, 1, 3, 3, 5, 6}, 7, 8},
		{"positions descend", {0, 2, 1, 4, 3, 5, 6}, 7, 8},
		{"patch beyond 64 bits", {56, 1, 2}, 3, 8},
		{"patch bits beyond 64",
		 {7, 1, 8, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0xff},
		 19,
		 8},
		{"patch with b = 64", {64, 1, 1}, 3, 8},
		{"bits missing", {8, 0, 1, 2, 3}, 5, 4},
		{"bytes left over", {8, 0, 1, 2, 3, 4, 5}, 7, 4},
	};
	uint64_t v[16];

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(bad); i++) {
		int r = decode_exact(iot_pack_decode, bad[i].bytes, bad[i].size, bad[i].n, v);

		if (r != -EBADMSG)
			fail_msg("%s: %d", bad[i].why, r);
	}
}

static void test_bytes_refuses(void **state)
{
	uint8_t nine[10] = {9};
	uint64_t v[2];

	(void)state;
	assert_int_equal(iot_bytes_decode(nine, 0, 1, v), -EBADMSG);
	assert_int_equal(decode_exact(iot_bytes_decode, nine, 10, 1, v), -EBADMSG);
	assert_int_equal(decode_exact(iot_bytes_decode, (const uint8_t[]){1, 5}, 2, 2, v),
			 -EBADMSG);
}

static void test_const(void **state)
{
	uint8_t out[8];
	uint64_t v = 99;

	(void)state;
	assert_ptr_equal(iot_const_encode(0, out), out);
	assert_int_equal(iot_const_decode(out, 0, &v), 0);
	assert_int_equal(v, 0);
	assert_ptr_equal(iot_const_encode(0x0102030405060708, out), out + 8);
	assert_int_equal(out[0], 8);
	assert_int_equal(iot_const_decode(out, 8, &v), 0);
	assert_int_equal(v, 0x0102030405060708);
	assert_int_equal(iot_const_decode(out, 7, &v), -EBADMSG);
	memset(out, 0, sizeof(out));
	assert_int_equal(iot_const_decode(out, 8, &v), -EBADMSG);
}

static void test_mutations(void **state)
{
	uint64_t v[MAX_VALUES], got[MAX_VALUES];
	uint8_t out[MAX_VALUES * 10];
	struct gen g = {.state = 3};
	unsigned int refused = 0, taken = 0;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		size_t n = 1 + gen_below(&g, 300), size;

		fill(&g, i % 5, v, n);
		size = (size_t)(iot_pack_encode(v, n, out) - out);
		for (uint64_t k = gen_below(&g, 3); k > 0; k--)
			out[gen_below(&g, size)] = (uint8_t)gen_next(&g);
		if (gen_below(&g, 4) == 0)
			size = gen_below(&g, size);
		if (decode_exact(iot_pack_decode, out, size, n, got) == 0)
			taken++;
		else
			refused++;
	}
	/* Both happen: bits of values may change unseen here, the block's hash sees those. */
	assert_true(refused > 1000 && taken > 1000);
}

static void test_dict(void **state)
{
	struct iot_dict d;
	uint16_t i;

	(void)state;
	assert_int_equal(iot_dict_init(&d, 2, 100), 0);
	for (int round = 0; round < 3; round++) {
		for (uint64_t k = 0; k < 100; k++) {
			const uint64_t words[2] = {k * 64, ~k};

			assert_int_equal(iot_dict_add(&d, words, 2, &i), 0);
			assert_int_equal(i, k);
		}
	}
	assert_int_equal(d.n, 100);
	i = 7;
	assert_int_equal(iot_dict_add(&d, (const uint64_t[]){1, 1}, 2, &i), IOT_DICT_FULL);
	assert_int_equal(i, 7);
	assert_int_equal(iot_dict_add(&d, (const uint64_t[]){64, ~1ULL}, 2, &i), 0);
	assert_int_equal(i, 1);
	iot_dict_clear(&d);
	assert_int_equal(iot_dict_add(&d, (const uint64_t[]){64, ~1ULL}, 2, &i), 0);
	assert_int_equal(i, 0);
	assert_int_equal(iot_dict_reserve(&d, 70), 0);
	assert_int_equal(d.limit, 100);
	assert_int_equal(iot_dict_reserve(&d, 65536), 0);
	for (uint64_t k = 0; k < 65536; k++)
		assert_int_equal(iot_dict_add(&d, (const uint64_t[]){k, 0}, 2, &i), 0);
	assert_int_equal(i, 65535);
	assert_int_equal(iot_dict_add(&d, (const uint64_t[]){65536, 0}, 2, &i), IOT_DICT_FULL);
	iot_dict_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_every_width),
		cmocka_unit_test(test_patches),	      cmocka_unit_test(test_pack_refuses),
		cmocka_unit_test(test_bytes_refuses), cmocka_unit_test(test_const),
		cmocka_unit_test(test_mutations),     cmocka_unit_test(test_dict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
