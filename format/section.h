/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * section.h - the sections of a header or footer frame: length-prefixed, skippable, each of a known
 * type at most once. Writing appends to a buffer; reading finds a section and checks its shape.
 */
#pragma once

#include "format/meta.h"

/* ---- writing ---- */
int iot_buf_append(struct iot_buf *buf, const void *data, size_t size) IOT_MUST_CHECK;
/* A section of bytes; nothing is written if size is 0. */
int iot_section_add(struct iot_buf *buf, enum iot_section type, const void *data,
		    size_t size) IOT_MUST_CHECK;
int iot_section_add_text(struct iot_buf *buf, enum iot_section type, const char *text,
			 size_t max) IOT_MUST_CHECK;
/* A table: n rows of row_size bytes, each made by `row` from userdata and its number. */
typedef void (*iot_section_row_fn)(const void *userdata, size_t i, void *ret_row);
int iot_section_add_table(struct iot_buf *buf, enum iot_section type, size_t n, size_t row_size,
			  iot_section_row_fn row, const void *userdata) IOT_MUST_CHECK;
/* -EINVAL: keys are not ascending. A name above its limit is cut. */
int iot_section_add_names(struct iot_buf *buf, enum iot_section type,
			  const struct iot_names *names) IOT_MUST_CHECK;
int iot_section_add_probes(struct iot_buf *buf, const struct iot_probe *probes,
			   size_t n) IOT_MUST_CHECK;
/* Closes a frame that begins at `start`: fills in its size, appends its hash. -EFBIG: above limit. */
int iot_frame_close(struct iot_buf *buf, size_t start, uint32_t limit,
		    uint64_t *ret_hash) IOT_MUST_CHECK;

/* ---- reading: all -EBADMSG for anything FORMAT.md does not allow ---- */
#define IOT_N_SECTIONS 16

struct iot_sections {
	const uint8_t *data[IOT_N_SECTIONS]; /* by type; NULL = the frame has none */
	uint32_t length[IOT_N_SECTIONS];
};

/* A table section after its head was checked; n = 0 if there is no such section. */
struct iot_table {
	const uint8_t *rows;
	size_t n;
	size_t row_size;
};

/* Magic, size == whole frame, tag, hash. */
int iot_frame_open(const void *data, size_t size, uint32_t magic, uint32_t limit, const char *tag,
		   uint64_t *ret_hash) IOT_MUST_CHECK;
/* Walks [fixed_size, size - hash) of a frame; wanted: bits of types this frame may have. */
int iot_sections_parse(const void *frame, size_t size, size_t fixed_size, uint32_t wanted,
		       struct iot_sections *ret) IOT_MUST_CHECK;
int iot_section_text(const struct iot_sections *s, enum iot_section type, char *ret,
		     size_t size) IOT_MUST_CHECK;
int iot_section_table(const struct iot_sections *s, enum iot_section type, size_t row_size,
		      struct iot_table *ret) IOT_MUST_CHECK;
int iot_section_names(const struct iot_sections *s, enum iot_section type,
		      struct iot_names *ret) IOT_MUST_CHECK;
int iot_section_probes(const struct iot_sections *s, struct iot_probe **ret,
		       size_t *ret_n) IOT_MUST_CHECK;
