// SPDX-License-Identifier: BSD-2-Clause
/*
 * codec-pack.c - PACK: groups of 128 values, each bit-packed at its own width, with patches for the
 * few values that are wider.
 *
 * A group of k values (128, fewer in the last):
 *   u8 b                  bits per value, 0..56 or 64
 *   u8 ne                 values that need more than b bits, at most k / 4
 *   u8 w                  only if ne > 0: bytes of a patch, 1..8
 *   ceil(k * b / 8) bytes the low b bits of each value, the first in the lowest bits
 *   ne bytes              positions of the patched values, ascending
 *   ne * w bytes          value >> b of each, little-endian
 *
 * b <= 56 makes value i one unaligned 8-byte load, a shift and a mask. Eight values are b whole
 * bytes: encoding works on eights, whose stores do not depend on each other.
 */
#include "format/codec.h"

#include <endian.h>

#define MAX_BITS 56U

static inline void store64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline unsigned int bit_length(uint64_t v)
{
	return v ? 64 - (unsigned int)__builtin_clzll(v) : 0;
}

/* The same without a case for 0; v < 2^63. */
static inline unsigned int bit_length63(uint64_t v)
{
	return 63 - (unsigned int)__builtin_clzll(v * 2 + 1);
}

static inline uint64_t low_mask(unsigned int bits)
{
	return bits >= 64 ? UINT64_MAX : (1ULL << bits) - 1;
}

struct width {
	unsigned int b;
	unsigned int n_patches;
	unsigned int patch_bytes;
};

#define N_LENGTHS 65U

/* How many values have which length. Four histograms: neighbours are often of equal length, and
 * would wait for each other's store. */
static void count_lengths(const uint64_t *v, unsigned int k, uint64_t any,
			  uint8_t ret[4][N_LENGTHS])
{
	unsigned int i = 0;

	if (any >> 63) {
		for (; i < k; i++)
			ret[i % 4][bit_length(v[i])]++;
		return;
	}
	for (; i + 4 <= k; i += 4) {
		ret[0][bit_length63(v[i])]++;
		ret[1][bit_length63(v[i + 1])]++;
		ret[2][bit_length63(v[i + 2])]++;
		ret[3][bit_length63(v[i + 3])]++;
	}
	for (; i < k; i++)
		ret[0][bit_length63(v[i])]++;
}

/* The cheapest width: from the widest value down, as long as patches stay few. */
static struct width choose_width(const uint64_t *v, unsigned int k, uint64_t any)
{
	unsigned int max = bit_length(any), n_wider = 0, best_cost;
	uint8_t lengths[4][N_LENGTHS] = {0};
	struct width best;

	best = (struct width){.b = max > MAX_BITS ? 64 : max};
	best_cost = (k * best.b + 7) / 8;
	count_lengths(v, k, any, lengths);
	for (unsigned int b = max; b-- > 0;) {
		unsigned int bytes, cost;

		n_wider += (unsigned int)lengths[0][b + 1] + lengths[1][b + 1] + lengths[2][b + 1] +
			   lengths[3][b + 1];
		if (n_wider > k / 4)
			break;
		if (b > MAX_BITS)
			continue;
		bytes = (max - b + 7) / 8;
		cost = (k * b + 7) / 8 + 1 + n_wider * (1 + bytes);
		if (cost < best_cost) {
			best_cost = cost;
			best = (struct width){b, n_wider, bytes};
		}
	}
	return best;
}

/*
 * k is a multiple of 8; values behind the group's last are 0. b in 1..56. Eight values are b bytes;
 * as many as fit into one word are put together first, without a store for each.
 */
static void pack_bits(const uint64_t *v, unsigned int k, unsigned int b, uint8_t *out)
{
	uint64_t mask = low_mask(b);

	if (b <= 7) {
		for (unsigned int i = 0; i < k; i += 8, v += 8, out += b) {
			uint64_t low = (v[0] & mask) | (v[1] & mask) << b | (v[2] & mask) << 2 * b |
				       (v[3] & mask) << 3 * b;
			uint64_t high = (v[4] & mask) | (v[5] & mask) << b |
					(v[6] & mask) << 2 * b | (v[7] & mask) << 3 * b;

			store64(out, low | high << 4 * b);
		}
		return;
	}
	for (unsigned int i = 0; i < k; i += 8, out += b) {
		unsigned int step = b <= 28 ? 2 : 1, fill = 0;
		uint8_t *p = out;
		uint64_t acc = 0;

		for (unsigned int j = 0; j < 8; j += step) {
			uint64_t x = v[i + j] & mask;

			if (step == 2)
				x |= (v[i + j + 1] & mask) << b;
			acc |= x << fill;
			fill += step * b;
			store64(p, acc);
			p += fill / 8;
			acc >>= fill & ~7U;
			fill &= 7;
		}
	}
}

static uint8_t *pack_patches(const uint64_t *v, unsigned int k, struct width w, uint8_t *out)
{
	uint8_t position[IOT_PACK_GROUP + 1] = {0};
	unsigned int n = 0;

	for (unsigned int i = 0; i < k; i++) {
		position[n] = (uint8_t)i;
		n += v[i] >> w.b != 0;
	}
	memcpy(out, position, w.n_patches);
	out += w.n_patches;
	for (unsigned int i = 0; i < w.n_patches; i++) {
		store64(out, v[position[i]] >> w.b);
		out += w.patch_bytes;
	}
	return out;
}

static uint8_t *pack_group(const uint64_t *v, unsigned int k, unsigned int k8, uint8_t *out)
{
	struct width w;
	uint64_t any = 0;

	for (unsigned int i = 0; i < k8; i++)
		any |= v[i];
	if (any == 0) {
		*out++ = 0;
		*out++ = 0;
		return out;
	}
	w = choose_width(v, k, any);
	*out++ = (uint8_t)w.b;
	*out++ = (uint8_t)w.n_patches;
	if (w.n_patches)
		*out++ = (uint8_t)w.patch_bytes;
	if (w.b == 64) {
		for (unsigned int i = 0; i < k; i++)
			store64(out + (size_t)i * 8, v[i]);
	} else if (w.b > 0) {
		pack_bits(v, k8, w.b, out);
	}
	out += (k * w.b + 7) / 8;
	return w.n_patches ? pack_patches(v, k, w, out) : out;
}

uint8_t *iot_pack_encode(uint64_t *v, size_t n, uint8_t *out)
{
	size_t i = 0;

	for (; i + IOT_PACK_GROUP <= n; i += IOT_PACK_GROUP)
		out = pack_group(v + i, IOT_PACK_GROUP, IOT_PACK_GROUP, out);
	if (i < n) {
		unsigned int k = (unsigned int)(n - i), k8 = (k + 7) & ~7U;

		for (unsigned int j = k; j < k8; j++)
			v[i + j] = 0;
		out = pack_group(v + i, k, k8, out);
	}
	return out;
}

static inline void unpack_bits(const uint8_t *in, unsigned int k, unsigned int b, uint64_t *v)
{
	uint64_t mask = low_mask(b);
	unsigned int bit = 0;

	for (unsigned int i = 0; i < k; i++, bit += b)
		v[i] = load64(in + bit / 8) >> (bit & 7) & mask;
}

static int unpack_patches(const uint8_t *in, unsigned int k, struct width w, uint64_t *v)
{
	const uint8_t *high = in + w.n_patches;
	uint64_t mask = low_mask(8 * w.patch_bytes);
	int last = -1;

	for (unsigned int i = 0; i < w.n_patches; i++) {
		uint64_t part = load64(high + (size_t)i * w.patch_bytes) & mask;

		if ((int)in[i] <= last || in[i] >= k)
			return -EBADMSG;
		last = in[i];
		/* Bits that would be shifted out are bits that no encoder wrote. */
		if (part >> (64 - w.b - 1) >> 1)
			return -EBADMSG;
		v[in[i]] |= part << w.b;
	}
	return 0;
}

int iot_pack_decode(const uint8_t *in, size_t size, size_t n, uint64_t *v)
{
	const uint8_t *end = in + size;
	int r;

	for (size_t i = 0; i < n; i += IOT_PACK_GROUP) {
		unsigned int k = (unsigned int)IOT_MIN(n - i, (size_t)IOT_PACK_GROUP);
		struct width w = {0};
		size_t bits_bytes, patches;

		if (end - in < 2)
			return -EBADMSG;
		w.b = *in++;
		w.n_patches = *in++;
		if ((w.b > MAX_BITS && w.b != 64) || w.n_patches > k / 4)
			return -EBADMSG;
		if (w.n_patches) {
			if (in == end)
				return -EBADMSG;
			w.patch_bytes = *in++;
			if (w.patch_bytes < 1 || w.patch_bytes > 8 ||
			    w.b + 8 * (w.patch_bytes - 1) >= 64)
				return -EBADMSG;
		}
		bits_bytes = ((size_t)k * w.b + 7) / 8;
		patches = (size_t)w.n_patches * (1 + w.patch_bytes);
		if ((size_t)(end - in) < bits_bytes + patches)
			return -EBADMSG;
		if (w.b == 64) {
			for (unsigned int j = 0; j < k; j++)
				v[i + j] = load64(in + (size_t)j * 8);
		} else if (w.b == 0) {
			memset(v + i, 0, k * sizeof(*v));
		} else if (k == IOT_PACK_GROUP) {
			unpack_bits(in, IOT_PACK_GROUP, w.b, v + i);
		} else {
			unpack_bits(in, k, w.b, v + i);
		}
		in += bits_bytes;
		if (w.n_patches) {
			r = unpack_patches(in, k, w, v + i);
			if (r < 0)
				return r;
			in += patches;
		}
	}
	return in == end ? 0 : -EBADMSG;
}
