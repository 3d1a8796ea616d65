// SPDX-License-Identifier: BSD-2-Clause
/*
 * codec-bytes.c - BYTES: byte planes. One byte `width` (0..8), then `width` planes of n bytes, the
 * least significant first. LZ4 sees runs that bit-packing would hide: high bytes of sectors that
 * stay, inode numbers of one directory.
 */
#include "format/codec.h"

uint8_t *iot_bytes_encode(const uint64_t *v, size_t n, uint8_t *out)
{
	uint64_t any = 0;
	unsigned int width;

	for (size_t i = 0; i < n; i++)
		any |= v[i];
	width = any ? (64 - (unsigned int)__builtin_clzll(any) + 7) / 8 : 0;
	*out++ = (uint8_t)width;
	for (unsigned int plane = 0; plane < width; plane++) {
		for (size_t i = 0; i < n; i++)
			out[i] = (uint8_t)(v[i] >> (8 * plane));
		out += n;
	}
	return out;
}

int iot_bytes_decode(const uint8_t *in, size_t size, size_t n, uint64_t *v)
{
	unsigned int width;

	if (size < 1)
		return -EBADMSG;
	width = *in++;
	if (width > 8 || size - 1 != width * n)
		return -EBADMSG;
	memset(v, 0, n * sizeof(*v));
	for (unsigned int plane = 0; plane < width; plane++) {
		for (size_t i = 0; i < n; i++)
			v[i] |= (uint64_t)in[i] << (8 * plane);
		in += n;
	}
	return 0;
}
