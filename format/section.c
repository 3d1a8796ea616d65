// SPDX-License-Identifier: BSD-2-Clause
/*
 * section.c - frames and sections of metadata, written and read.
 *
 * A frame is prefix, fixed part, sections, hash; each is a multiple of 8 bytes. The hash covers
 * everything before it, prefix included, and is checked before a single field is believed. Sections
 * that a reader does not know are stepped over, and rows of tables may be longer than it knows.
 */
#include "format/section.h"

#include <assert.h>
#include <endian.h>
#include <xxhash.h>

#define MAX_ROW_BYTES 65536U

void iot_buf_done(struct iot_buf *buf)
{
	free(buf->data);
	*buf = (struct iot_buf){0};
}

int iot_buf_append(struct iot_buf *buf, const void *data, size_t size)
{
	if (size > buf->allocated - buf->size) {
		size_t room = IOT_MAX(buf->size + size, buf->allocated * 2 + 256);
		uint8_t *p = realloc(buf->data, room);

		if (!p)
			return -ENOMEM;
		buf->data = p;
		buf->allocated = room;
	}
	if (size > 0)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	return 0;
}

/* ---- writing ---- */

/* Begins a section whose length is not known yet; *ret_start is for section_end. */
static int section_begin(struct iot_buf *buf, enum iot_section type, size_t *ret_start)
{
	struct iot_disk_section head = {.type = htole16((uint16_t)type)};

	*ret_start = buf->size;
	return iot_buf_append(buf, &head, sizeof(head));
}

static int section_end(struct iot_buf *buf, size_t start)
{
	static const uint8_t zeros[8];
	size_t length = buf->size - start - sizeof(struct iot_disk_section);
	uint32_t disk = htole32((uint32_t)length);

	if (length > UINT32_MAX - 8)
		return -EFBIG;
	memcpy(buf->data + start + offsetof(struct iot_disk_section, length), &disk, sizeof(disk));
	return iot_buf_append(buf, zeros, -length & 7);
}

int iot_section_add(struct iot_buf *buf, enum iot_section type, const void *data, size_t size)
{
	size_t start;
	int r;

	if (size == 0)
		return 0;
	r = section_begin(buf, type, &start);
	if (r < 0)
		return r;
	r = iot_buf_append(buf, data, size);
	if (r < 0)
		return r;
	return section_end(buf, start);
}

int iot_section_add_text(struct iot_buf *buf, enum iot_section type, const char *text, size_t max)
{
	return iot_section_add(buf, type, text, strnlen(text, max));
}

static int table_begin(struct iot_buf *buf, enum iot_section type, size_t n, size_t row_size,
		       size_t *ret_start)
{
	struct iot_disk_table head = {
		.n = htole32((uint32_t)n),
		.row_size = htole32((uint32_t)row_size),
	};
	int r;

	if (n > UINT32_MAX)
		return -EFBIG;
	r = section_begin(buf, type, ret_start);
	if (r < 0)
		return r;
	return iot_buf_append(buf, &head, sizeof(head));
}

int iot_section_add_table(struct iot_buf *buf, enum iot_section type, size_t n, size_t row_size,
			  iot_section_row_fn row, const void *userdata)
{
	uint8_t bytes[256];
	size_t start;
	int r;

	assert(row_size <= sizeof(bytes));
	r = table_begin(buf, type, n, row_size, &start);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		row(userdata, i, bytes);
		r = iot_buf_append(buf, bytes, row_size);
		if (r < 0)
			return r;
	}
	return section_end(buf, start);
}

int iot_section_add_names(struct iot_buf *buf, enum iot_section type, const struct iot_names *names)
{
	size_t start;
	int r;

	r = table_begin(buf, type, names->n, sizeof(struct iot_disk_name), &start);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names->n; i++) {
		const struct iot_name *name = &names->items[i];
		/* A name too long shall not cost the footer. */
		size_t length = strnlen(name->name, IOT_LIMIT_NAME_BYTES);
		struct iot_disk_name disk = {
			.key = htole64(name->key),
			.length = htole16((uint16_t)length),
		};

		if (i > 0 && name->key <= name[-1].key)
			return -EINVAL;
		r = iot_buf_append(buf, &disk, sizeof(disk));
		if (r < 0)
			return r;
		r = iot_buf_append(buf, name->name, length);
		if (r < 0)
			return r;
	}
	return section_end(buf, start);
}

/* Text into a NUL padded and terminated field; what does not fit is cut. */
static void put_text(char *field, size_t size, const char *text)
{
	memset(field, 0, size);
	memcpy(field, text, strnlen(text, size - 1));
}

static void probe_row(const void *userdata, size_t i, void *ret_row)
{
	const struct iot_probe *p = (const struct iot_probe *)userdata + i;
	struct iot_disk_probe disk = {
		.id = htole16(p->id),
		.state = p->state,
		.miss = p->miss,
		.error = (int32_t)htole32((uint32_t)p->error),
		.from_ns = htole64(p->from_ns),
		.to_ns = htole64(p->to_ns),
		.loaded_ns = htole64(p->loaded_ns),
		.program = htole32(p->program),
		.program_kind = p->program_kind,
		.gone = p->gone,
	};

	put_text(disk.name, sizeof(disk.name), p->name);
	put_text(disk.hook, sizeof(disk.hook), p->hook);
	put_text(disk.detail, sizeof(disk.detail), p->detail);
	memcpy(ret_row, &disk, sizeof(disk));
}

int iot_section_add_probes(struct iot_buf *buf, const struct iot_probe *probes, size_t n)
{
	size_t row_size = IOT_DISK_PROBE_MIN;

	if (n > IOT_LIMIT_PROBES)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (probes[i].program)
			row_size = sizeof(struct iot_disk_probe);
	return iot_section_add_table(buf, IOT_SECTION_PROBES, n, row_size, probe_row, probes);
}

int iot_frame_close(struct iot_buf *buf, size_t start, uint32_t limit, uint64_t *ret_hash)
{
	size_t size = buf->size - start + sizeof(uint64_t);
	uint32_t disk_size;
	uint64_t hash;
	int r;

	if (size > limit)
		return -EFBIG;
	disk_size = htole32((uint32_t)(size - sizeof(struct iot_disk_frame)));
	memcpy(buf->data + start + offsetof(struct iot_disk_frame, size), &disk_size,
	       sizeof(disk_size));
	hash = XXH64(buf->data + start, buf->size - start, 0);
	if (ret_hash)
		*ret_hash = hash;
	hash = htole64(hash);
	r = iot_buf_append(buf, &hash, sizeof(hash));
	return r;
}

/* ---- reading ---- */

int iot_meta_frame_size(const void *prefix, uint32_t magic, uint32_t limit, uint32_t *ret)
{
	struct iot_disk_frame frame;
	uint64_t size;

	memcpy(&frame, prefix, sizeof(frame));
	size = sizeof(frame) + (uint64_t)le32toh(frame.size);
	if (le32toh(frame.magic) != magic || size > limit)
		return -EBADMSG;
	*ret = (uint32_t)size;
	return 0;
}

int iot_frame_open(const void *data, size_t size, uint32_t magic, uint32_t limit, const char *tag,
		   uint64_t *ret_hash)
{
	uint32_t frame;
	uint64_t hash;
	int r;

	if (size < sizeof(struct iot_disk_frame) + 8 + sizeof(hash) || size % 8 != 0)
		return -EBADMSG;
	r = iot_meta_frame_size(data, magic, limit, &frame);
	if (r < 0)
		return r;
	if (frame != size ||
	    memcmp((const uint8_t *)data + sizeof(struct iot_disk_frame), tag, 8) != 0)
		return -EBADMSG;
	memcpy(&hash, (const uint8_t *)data + size - sizeof(hash), sizeof(hash));
	hash = le64toh(hash);
	if (XXH64(data, size - sizeof(hash), 0) != hash)
		return -EBADMSG;
	*ret_hash = hash;
	return 0;
}

int iot_sections_parse(const void *frame, size_t size, size_t fixed_size, uint32_t wanted,
		       struct iot_sections *ret)
{
	const uint8_t *p = frame;
	size_t at = fixed_size, end = size - sizeof(uint64_t);

	*ret = (struct iot_sections){0};
	if (fixed_size % 8 != 0 || fixed_size > end)
		return -EBADMSG;
	while (at < end) {
		struct iot_disk_section head;
		uint32_t length;
		uint16_t type;

		if (end - at < sizeof(head))
			return -EBADMSG;
		memcpy(&head, p + at, sizeof(head));
		at += sizeof(head);
		type = le16toh(head.type);
		length = le32toh(head.length);
		if (head.reserved || type == 0 || length > end - at)
			return -EBADMSG;
		if (type < IOT_N_SECTIONS && wanted & 1U << type) {
			if (ret->data[type])
				return -EBADMSG;
			ret->data[type] = p + at;
			ret->length[type] = length;
		}
		at += length;
		for (; at % 8 != 0; at++) {
			if (at >= end || p[at] != 0)
				return -EBADMSG;
		}
	}
	return 0;
}

int iot_section_text(const struct iot_sections *s, enum iot_section type, char *ret, size_t size)
{
	uint32_t length = s->length[type];

	memset(ret, 0, size);
	if (!s->data[type])
		return 0;
	if (length >= size || memchr(s->data[type], 0, length))
		return -EBADMSG;
	memcpy(ret, s->data[type], length);
	return 0;
}

/* Head of a table: rows follow within `length` bytes. */
static int table_head(const struct iot_sections *s, enum iot_section type, size_t row_size,
		      struct iot_table *ret, size_t *ret_length)
{
	struct iot_disk_table head;

	*ret = (struct iot_table){0};
	*ret_length = 0;
	if (!s->data[type])
		return 0;
	if (s->length[type] < sizeof(head))
		return -EBADMSG;
	memcpy(&head, s->data[type], sizeof(head));
	ret->rows = s->data[type] + sizeof(head);
	ret->n = le32toh(head.n);
	ret->row_size = le32toh(head.row_size);
	*ret_length = s->length[type] - sizeof(head);
	if (ret->row_size < row_size || ret->row_size > MAX_ROW_BYTES)
		return -EBADMSG;
	return 0;
}

int iot_section_table(const struct iot_sections *s, enum iot_section type, size_t row_size,
		      struct iot_table *ret)
{
	size_t length;
	int r;

	r = table_head(s, type, row_size, ret, &length);
	if (r < 0)
		return r;
	return (uint64_t)ret->n * ret->row_size == length ? 0 : -EBADMSG;
}

static int add_name(struct iot_names *names, uint64_t key, const uint8_t *text, size_t length)
{
	char name[IOT_LIMIT_NAME_BYTES + 1];

	if (length > IOT_LIMIT_NAME_BYTES || memchr(text, 0, length))
		return -EBADMSG;
	/* Ascending keys: adding is appending, and a table has one order only. */
	if (names->n > 0 && key <= names->items[names->n - 1].key)
		return -EBADMSG;
	memcpy(name, text, length);
	name[length] = 0;
	return iot_names_add(names, key, name);
}

int iot_section_names(const struct iot_sections *s, enum iot_section type, struct iot_names *ret)
{
	struct iot_names names = {0};
	struct iot_table t;
	size_t left;
	int r;

	r = table_head(s, type, sizeof(struct iot_disk_name), &t, &left);
	if (r < 0)
		return r;
	for (size_t i = 0; i < t.n; i++) {
		struct iot_disk_name disk;
		size_t length;

		r = -EBADMSG;
		if (left < t.row_size)
			goto fail;
		memcpy(&disk, t.rows, sizeof(disk));
		t.rows += t.row_size;
		left -= t.row_size;
		length = le16toh(disk.length);
		if (length > left || disk.reserved[0] | disk.reserved[1] | disk.reserved[2])
			goto fail;
		r = add_name(&names, le64toh(disk.key), t.rows, length);
		if (r < 0)
			goto fail;
		t.rows += length;
		left -= length;
	}
	r = -EBADMSG;
	if (left != 0)
		goto fail;
	*ret = names;
	return 0;

fail:
	iot_names_done(&names);
	return r;
}

int iot_section_probes(const struct iot_sections *s, struct iot_probe **ret, size_t *ret_n)
{
	_cleanup_free_ struct iot_probe *probes = NULL;
	struct iot_table t;
	int r;

	r = iot_section_table(s, IOT_SECTION_PROBES, IOT_DISK_PROBE_MIN, &t);
	if (r < 0)
		return r;
	if (t.n > IOT_LIMIT_PROBES)
		return -EBADMSG;
	probes = calloc(IOT_MAX(t.n, (size_t)1), sizeof(*probes));
	if (!probes)
		return -ENOMEM;
	for (size_t i = 0; i < t.n; i++) {
		struct iot_disk_probe disk = {0};
		struct iot_probe *p = &probes[i];

		memcpy(&disk, t.rows + i * t.row_size, IOT_MIN(t.row_size, sizeof(disk)));
		if (disk.gone > 1 || disk.reserved[0] | disk.reserved[1])
			return -EBADMSG;
		p->id = le16toh(disk.id);
		p->state = disk.state;
		p->miss = disk.miss;
		p->error = (int32_t)le32toh((uint32_t)disk.error);
		p->from_ns = le64toh(disk.from_ns);
		p->to_ns = le64toh(disk.to_ns);
		p->loaded_ns = le64toh(disk.loaded_ns);
		p->program = le32toh(disk.program);
		p->program_kind = disk.program_kind;
		p->gone = disk.gone;
		if (disk.name[sizeof(disk.name) - 1] || disk.hook[sizeof(disk.hook) - 1] ||
		    disk.detail[sizeof(disk.detail) - 1])
			return -EBADMSG;
		memcpy(p->name, disk.name, sizeof(p->name));
		memcpy(p->hook, disk.hook, sizeof(p->hook));
		memcpy(p->detail, disk.detail, sizeof(p->detail));
	}
	*ret = IOT_TAKE_PTR(probes);
	*ret_n = t.n;
	return 0;
}
