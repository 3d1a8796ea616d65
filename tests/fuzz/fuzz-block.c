// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-block.c - block decoding.
 *
 * The first byte chooses what the rest is: 0, a block as in a file (hashes stop nearly all of
 * those); else the content of a data frame, around which a frame and a block header's facts are
 * made that are right, so that column table, codecs and transforms see the bytes.
 */
#include "format/block.h"
#include "format/packet.h"

#include <assert.h>
#include <lz4frame.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct content_head {
	uint8_t mode;
	uint8_t kind;
	uint16_t row_size;
	uint32_t count;
	uint64_t first_ns, last_ns, first_id, last_id;
	uint64_t columns;
};

static void look_at(const struct iot_batch *b)
{
	struct iot_packet p;
	struct iot_request r;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < iot_batch_count(b); i++) {
		if (iot_batch_stream(b) == IOT_STREAM_PACKET) {
			iot_batch_get_packet(b, i, &p);
			sum += p.id + p.where + p.flow.dst[15] + (uint8_t)p.comm[15];
			continue;
		}
		iot_batch_get(b, i, &r);
		sum += r.id + r.sector + r.cgroup + (uint8_t)r.comm[15];
	}
	__asm__ volatile("" : : "r"(sum));
}

static void decode(const struct iot_block_info *info, const uint8_t *data, size_t size,
		   uint64_t columns)
{
	static struct iot_block_decoder *d;
	static struct iot_batch *b;
	struct iot_loss *losses;

	if (!d && (iot_block_decoder_new(&d) < 0 || iot_batch_new(64, &b) < 0))
		abort();
	if (info->kind == IOT_BLOCK_LEDGER) {
		losses = calloc(info->count ? info->count : 1, sizeof(*losses));
		assert(losses);
		for (enum iot_stream s = IOT_STREAM_BLOCK; s <= IOT_STREAM_PACKET; s++)
			(void)!iot_block_decode_losses(d, s, info, data, size, NULL, losses);
		free(losses);
		return;
	}
	if (iot_block_decode(d, info, data, size, columns, b) == 0)
		look_at(b);
	else
		assert(iot_batch_count(b) == 0);
}

static void fuzz_content(const uint8_t *data, size_t size)
{
	struct iot_block_info info = {0};
	struct content_head head;
	size_t bound, n;
	uint8_t *frame;
	LZ4F_preferences_t preferences = {
		.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled,
		.frameInfo.blockMode = LZ4F_blockIndependent,
	};

	if (size <= sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	preferences.frameInfo.contentSize = size;
	bound = LZ4F_compressFrameBound(size, &preferences);
	frame = malloc(bound);
	assert(frame);
	n = LZ4F_compressFrame(frame, bound, data, size, &preferences);
	assert(!LZ4F_isError(n));
	info.kind = head.kind;
	info.row_size = head.row_size;
	info.count = head.count % (IOT_BLOCK_RECORDS_MAX + 2);
	info.first_ns = head.first_ns;
	info.last_ns = head.last_ns;
	info.first_id = head.first_id;
	info.last_id = head.last_id;
	info.raw_bytes = (uint32_t)size;
	info.data_size = (uint32_t)n;
	info.data_hash = XXH64(frame, n, 0);
	decode(&info, frame, n, head.columns);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iot_block_info info;

	if (size < 1)
		return 0;
	if (data[0] != 0) {
		fuzz_content(data, size);
		return 0;
	}
	data++;
	size--;
	if (iot_block_header_decode(data, size, &info) < 0)
		return 0;
	if (size - info.header_size >= info.data_size)
		decode(&info, data + info.header_size, info.data_size, IOT_COLS_ALL);
	return 0;
}
