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
#define IOT_DICT_WORDS 4U

struct iot_dict {
	uint32_t n;
	uint32_t limit; /* entries that fit */
	uint32_t n_words;
	uint32_t last; /* entry found last: runs of one value are the rule */
	uint64_t seed; /* names are chosen by others: nobody shall choose our collisions */
	uint64_t *words[IOT_DICT_WORDS]; /* one array per word: they become columns */
	uint32_t *slots;		 /* entry + 1, 0 = free */
	uint32_t n_slots;
};

/* limit: at most 65536, so that an index fits 16 bits. */
int iot_dict_init(struct iot_dict *d, uint32_t n_words, uint32_t limit) IOT_MUST_CHECK;
void iot_dict_done(struct iot_dict *d);
void iot_dict_clear(struct iot_dict *d);
/* Room for n entries; the dictionary is cleared. */
int iot_dict_reserve(struct iot_dict *d, uint32_t n) IOT_MUST_CHECK;

/* Index of the entry, added if new. Positive IOT_DICT_FULL: nothing was added. */
#define IOT_DICT_FULL 1
int iot_dict_add_slow(struct iot_dict *d, const uint64_t *words, uint16_t *ret) IOT_MUST_CHECK;

static inline bool iot_dict_equal(const struct iot_dict *d, uint32_t i, const uint64_t *words)
{
	uint64_t diff = 0;

	for (uint32_t w = 0; w < d->n_words; w++)
		diff |= d->words[w][i] ^ words[w];
	return diff == 0;
}

static inline int iot_dict_add(struct iot_dict *d, const uint64_t *words, uint16_t *ret)
{
	if (d->n > 0 && iot_dict_equal(d, d->last, words)) {
		*ret = (uint16_t)d->last;
		return 0;
	}
	return iot_dict_add_slow(d, words, ret);
}
