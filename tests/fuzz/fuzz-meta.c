// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-meta.c - file header, footer and trailer decoding.
 *
 * The first byte chooses the frame (h, f, t; capitals: as it is, small letters: with prefix size
 * and hash made right, so that the fields and sections behind them see the bytes). What decodes
 * must encode again, and that must decode to the same hash.
 */
#include "format/meta.h"

#include <assert.h>
#include <endian.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_header(const uint8_t *data, size_t size)
{
	struct iot_segment_info info, again;
	struct iot_buf buf = {0};
	struct iot_error err = {0};
	uint64_t hash, hash_again;

	if (iot_meta_header_decode(data, size, &info, NULL, &err) < 0)
		return;
	if (iot_meta_header_encode(&info, &buf, &hash) < 0)
		abort();
	if (iot_meta_header_decode(buf.data, buf.size, &again, &hash_again, NULL) < 0)
		abort();
	assert(hash == hash_again);
	iot_segment_info_done(&info);
	iot_segment_info_done(&again);
	iot_buf_done(&buf);
}

static void fuzz_footer(const uint8_t *data, size_t size)
{
	struct iot_meta_footer footer, again;
	struct iot_buf buf = {0};
	uint64_t hash, hash_again;

	if (iot_meta_footer_decode(data, size, &footer, NULL, NULL) < 0)
		return;
	if (iot_meta_footer_encode(&footer, &buf, &hash) < 0)
		abort();
	if (iot_meta_footer_decode(buf.data, buf.size, &again, &hash_again, NULL) < 0)
		abort();
	assert(hash == hash_again);
	iot_meta_footer_done(&footer);
	iot_meta_footer_done(&again);
	iot_buf_done(&buf);
}

/* The same bytes with right size and hash; freed by the caller. */
static uint8_t *repaired(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);
	uint32_t frame = htole32((uint32_t)(size - 8));
	uint64_t hash;

	assert(copy);
	memcpy(copy, data, size);
	memcpy(copy + 4, &frame, sizeof(frame));
	hash = htole64(XXH64(copy, size - 8, 0));
	memcpy(copy + size - 8, &hash, sizeof(hash));
	return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t which, *copy = NULL;
	uint64_t offset;
	uint32_t length;

	if (size < 1)
		return 0;
	which = data[0];
	data++;
	size--;
	if (which >= 'a' && size >= 16) {
		copy = repaired(data, size);
		data = copy;
	}
	switch (which | 0x20) {
	case 'h':
		fuzz_header(data, size);
		break;
	case 'f':
		fuzz_footer(data, size);
		break;
	default:
		if (size >= IOT_TRAILER_BYTES)
			(void)!iot_meta_trailer_decode(data, 1000, &offset, &length);
	}
	free(copy);
	return 0;
}
