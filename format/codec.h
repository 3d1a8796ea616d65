/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec.h - the four codecs: CONST, PACK, BYTES turn n u64 values into bytes and back, DICT turns
 * entries of some words into small indexes.
 *
 * Encoders write to a buffer with iot_codec_bound(n) bytes of room, which includes the slack that
 * unaligned 8-byte stores need, and return the end of what they wrote. Decoders consume exactly
 * `size` bytes or answer -EBADMSG; they may read (not use) up to IOT_CODEC_SLACK bytes behind.
 */
#pragma once

#include "format/base.h"

#define IOT_CODEC_SLACK 8U
#define IOT_PACK_GROUP 128U

/* No codec needs more for n values: b = 64 costs two bytes a group, BYTES one byte in all. */
static inline size_t iot_codec_bound(size_t n)
{
	return n * 8 + (n / IOT_PACK_GROUP + 1) * 2 + 64 + IOT_CODEC_SLACK;
}

/* ---- CONST: every value is v ---- */
uint8_t *iot_const_encode(uint64_t v, uint8_t *out);
int iot_const_decode(const uint8_t *in, size_t size, uint64_t *ret) IOT_MUST_CHECK;

/* ---- PACK: v must have room for n rounded up to 128 values; what is behind n may be changed ---- */
uint8_t *iot_pack_encode(uint64_t *v, size_t n, uint8_t *out);
int iot_pack_decode(const uint8_t *in, size_t size, size_t n, uint64_t *v) IOT_MUST_CHECK;

/* ---- BYTES ---- */
uint8_t *iot_bytes_encode(const uint64_t *v, size_t n, uint8_t *out);
int iot_bytes_decode(const uint8_t *in, size_t size, size_t n, uint64_t *v) IOT_MUST_CHECK;

/* ---- DICT ---- */
#define IOT_DICT_WORDS 5U

struct iot_dict {
	uint32_t n;
	uint32_t limit; /* entries that fit */
	uint32_t n_words;
	uint64_t seed;	 /* names are chosen by others: nobody shall choose our collisions */
	uint64_t *words; /* n_words per entry */
	uint32_t *slots; /* entry + 1, 0 = free */
	uint32_t n_slots;
	bool slots_used; /* decoded entries are not hashed */
};

/* limit: at most 65536, so that an index fits 16 bits. */
int iot_dict_init(struct iot_dict *d, uint32_t n_words, uint32_t limit) IOT_MUST_CHECK;
void iot_dict_done(struct iot_dict *d);
void iot_dict_clear(struct iot_dict *d);
/* Room for n entries; the dictionary is cleared. */
int iot_dict_reserve(struct iot_dict *d, uint32_t n) IOT_MUST_CHECK;

/* Index of the entry, added if new. Positive IOT_DICT_FULL: nothing was added. */
#define IOT_DICT_FULL 1
int iot_dict_add_slow(struct iot_dict *d, const uint64_t *words, uint64_t hash,
		      uint16_t *ret) IOT_MUST_CHECK;

static inline bool iot_dict_equal(const struct iot_dict *d, uint32_t i, const uint64_t *words,
				  uint32_t n_words)
{
	const uint64_t *entry = d->words + (size_t)i * n_words;
	uint64_t diff = 0;

#pragma GCC unroll 5
	for (uint32_t w = 0; w < n_words; w++)
		diff |= entry[w] ^ words[w];
	return diff == 0;
}

/* The multiplications do not wait for each other. */
static inline uint64_t iot_dict_hash(const struct iot_dict *d, const uint64_t *words,
				     uint32_t n_words)
{
	static const uint64_t factors[IOT_DICT_WORDS] = {
		0x9E3779B97F4A7C15ULL, 0xC2B2AE3D27D4EB4FULL, 0xD6E8FEB86659FD93ULL,
		0xA0761D6478BD642FULL, 0xE7037ED1A0B428DBULL};
	uint64_t h = 0;

#pragma GCC unroll 5
	for (uint32_t w = 0; w < n_words; w++)
		h += (words[w] ^ d->seed) * factors[w];
	return h ^ h >> 32;
}

/*
 * The first probe nearly always hits, whichever of a few entries it is: a comparison with the last
 * entry would be a branch as random as reads among writes. n_words must be the dictionary's; as a
 * constant at the call it unrolls the loops.
 */
static inline int iot_dict_add(struct iot_dict *d, const uint64_t *words, uint32_t n_words,
			       uint16_t *ret)
{
	uint64_t h = iot_dict_hash(d, words, n_words);
	uint32_t entry = d->slots[h & (d->n_slots - 1)];

	if (entry && iot_dict_equal(d, entry - 1, words, n_words)) {
		*ret = (uint16_t)(entry - 1);
		return 0;
	}
	return iot_dict_add_slow(d, words, h, ret);
}
