/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment-repair.h - makes every checksum of a segment's bytes right, frame by frame, so that what lies behind the
 * checksums sees bytes that a test has changed.
 */
#pragma once

#include <endian.h>
#include <xxhash.h>

#include "format/meta.h"

#define REPAIR_MAX_BLOCKS 64

static inline uint32_t repair_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline void repair_put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

/* Hash of a frame over all but its last 8 bytes, into these; also returned. */
static inline uint64_t repair_frame(uint8_t *frame, size_t size)
{
	uint64_t hash = XXH64(frame, size - 8, 0);

	repair_put64(frame + size - 8, hash);
	return hash;
}

/* The footer's references to the header and to each block. */
static inline void repair_footer(uint8_t *f, size_t size, uint64_t header_hash,
				 const uint64_t *hashes, size_t n)
{
	size_t pos = sizeof(struct iot_disk_footer);

	if (size < pos + 8)
		return;
	repair_put64(f + offsetof(struct iot_disk_footer, header_hash), header_hash);
	while (pos + 8 <= size - 8) {
		uint16_t type = (uint16_t)(repair_get32(f + pos) & 0xffff);
		size_t length = repair_get32(f + pos + 4);

		if (length > size - 8 - pos - 8)
			return;
		for (size_t i = 0; type == IOT_SECTION_INDEX && i < n; i++) {
			size_t at = pos + 8 + sizeof(struct iot_disk_table) +
				    i * sizeof(struct iot_disk_index);

			if (at + sizeof(struct iot_disk_index) > pos + 8 + length)
				break;
			repair_put64(f + at + offsetof(struct iot_disk_index, header_hash),
				     hashes[i]);
		}
		pos += 8 + (length + 7) / 8 * 8;
	}
}

static inline void segment_repair(uint8_t *data, size_t size)
{
	uint64_t hashes[REPAIR_MAX_BLOCKS], header_hash = 0;
	size_t n = 0, pos = 0;

	while (pos <= size && size - pos >= 24) {
		uint8_t *p = data + pos;
		uint32_t magic = repair_get32(p);
		size_t frame = (size_t)repair_get32(p + 4) + 8;
		size_t data_size = 0;

		if (frame < 24 || frame > size - pos)
			return;
		if (magic == IOT_MAGIC_BLOCK && frame >= sizeof(struct iot_disk_block) + 8) {
			data_size = repair_get32(p + offsetof(struct iot_disk_block, data_size));
			if (data_size > size - pos - frame)
				data_size = 0;
			repair_put64(p + offsetof(struct iot_disk_block, data_hash),
				     XXH64(p + frame, data_size, 0));
		} else if (magic == IOT_MAGIC_FOOTER) {
			repair_footer(p, frame, header_hash, hashes, n);
		}
		if (magic == IOT_MAGIC_HEADER)
			header_hash = repair_frame(p, frame);
		else if (magic == IOT_MAGIC_BLOCK && n < REPAIR_MAX_BLOCKS)
			hashes[n++] = repair_frame(p, frame);
		else
			repair_frame(p, frame);
		pos += frame + data_size;
	}
}
