/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader-priv.h - the segment object itself, shared by reader.c and reader-walk.c only.
 */
#pragma once

#include "format/reader-internal.h"

#include <sys/types.h>

struct iot_segment {
	int fd; /* negative: parked */
	bool can_park;
	char *path;
	dev_t dev; /* of the file that was opened, so that opening again gets the same one */
	ino_t ino;
	uint64_t size;
	uint64_t data_start; /* blocks lie in [data_start, data_end) */
	uint64_t data_end;

	struct iot_segment_info info;
	uint64_t header_hash;
	bool sealed;
	bool unread;
	bool damaged;
	bool gone; /* parked, and its file is not there any more */
	char state_text[128];
	struct iot_meta_footer meta; /* zero if torn */
	uint64_t footer_hash;

	struct iot_walk walk; /* of iot_segment_next_block */
	uint8_t *buf;
	size_t buf_size;
	struct iot_block_decoder *decoder;
	struct iot_anonymizer *anonymizer; /* borrowed; NULL: read as it is */
};

int iot_segment_pread(struct iot_segment *s, uint64_t offset, void *buf, size_t size,
		      struct iot_error *err) IOT_MUST_CHECK;
int iot_segment_load(struct iot_segment *s, uint64_t offset, size_t size,
		     struct iot_error *err) IOT_MUST_CHECK;
