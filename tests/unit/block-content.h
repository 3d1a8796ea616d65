/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block-content.h - the inside of a block, for tests that damage what no hash protects: whoever makes a file
 * can make its hashes, too.
 */
#pragma once

#include <lz4frame.h>
#include <xxhash.h>

#include "format/block.h"

#define CONTENT_SPARE 64 /* bytes behind the content, for tests that lengthen it */

static inline uint8_t *content_of(const struct iot_block_info *info, const uint8_t *block)
{
	size_t in = info->data_size, out = info->raw_bytes;
	uint8_t *content = malloc(out + CONTENT_SPARE);
	LZ4F_dctx *lz4;

	assert_non_null(content);
	assert_false(LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION)));
	assert_int_equal(LZ4F_decompress(lz4, content, &out, block + info->header_size, &in, NULL),
			 0);
	assert_int_equal(out, info->raw_bytes);
	LZ4F_freeDecompressionContext(lz4);
	return content;
}

/* A block around arbitrary content, with everything else right. */
static inline int decode_content(struct iot_block_decoder *decoder,
				 const struct iot_block_info *like, const uint8_t *content,
				 size_t size, uint64_t columns, struct iot_batch *out)
{
	LZ4F_preferences_t preferences = {
		.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled,
		.frameInfo.blockMode = LZ4F_blockIndependent,
		.frameInfo.contentSize = size,
	};
	size_t bound = LZ4F_compressFrameBound(size, &preferences), n;
	struct iot_block_info info = *like;
	uint8_t *frame = malloc(bound);
	int r;

	assert_non_null(frame);
	n = LZ4F_compressFrame(frame, bound, content, size, &preferences);
	assert_false(LZ4F_isError(n));
	info.raw_bytes = (uint32_t)size;
	info.data_size = (uint32_t)n;
	info.data_hash = XXH64(frame, n, 0);
	r = iot_block_decode(decoder, &info, frame, n, columns, out);
	free(frame);
	return r;
}
