// SPDX-License-Identifier: BSD-2-Clause
/*
 * block-decode.c - decoding: bytes of unknown origin become a batch, or rows of losses, or -EBADMSG.
 *
 * The order of checks is the order of trust: header (its own hash, limits), hash of the data frame,
 * frame parameters, LZ4's own checks and content checksum, column table, and only then the
 * columns that were asked for with what they depend on. Sizes are checked before anything is
 * allocated; nothing is allocated that a header within the limits cannot ask for.
 */
#include "format/block.h"

#include "format/columns.h"

#include <assert.h>
#include <endian.h>
#include <lz4frame.h>
#include <xxhash.h>

#define MAX_ENTRY_BYTES 256U
#define MAX_PER_RECORD 2U /* of any dictionary of any stream */

struct iot_block_decoder {
	LZ4F_dctx *lz4;
	uint8_t *raw;
	size_t raw_room;
	uint64_t *values;
	size_t n_values;
	uint64_t *keys;
};

int iot_block_decoder_new(struct iot_block_decoder **ret)
{
	_cleanup_(iot_block_decoder_freep) struct iot_block_decoder *d = NULL;

	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->keys = malloc(IOT_COLUMN_KEYS * sizeof(*d->keys));
	if (!d->keys || LZ4F_isError(LZ4F_createDecompressionContext(&d->lz4, LZ4F_VERSION)))
		return -ENOMEM;
	*ret = IOT_TAKE_PTR(d);
	return 0;
}

struct iot_block_decoder *iot_block_decoder_free(struct iot_block_decoder *d)
{
	if (!d)
		return NULL;
	LZ4F_freeDecompressionContext(d->lz4);
	free(d->raw);
	free(d->values);
	free(d->keys);
	free(d);
	return NULL;
}

/* ---- block header ---- */

static bool info_valid(const struct iot_block_info *info)
{
	if (info->count < 1 || info->count > IOT_BLOCK_RECORDS_MAX)
		return false;
	if (info->raw_bytes < 1 || info->raw_bytes > IOT_LIMIT_RAW_BYTES)
		return false;
	if (info->data_size < 1 || info->data_size > IOT_LIMIT_DATA_BYTES)
		return false;
	if (info->raw_bytes / IOT_LIMIT_LZ4_RATIO > info->data_size)
		return false;
	if (info->n_spans > IOT_MAX_RINGS)
		return false;
	switch (info->kind) {
	case IOT_BLOCK_REQUESTS:
	case IOT_BLOCK_OPEN:
	case IOT_BLOCK_PACKETS:
		return info->row_size == 0;
	case IOT_BLOCK_LEDGER:
		return info->row_size >= IOT_LOSS_ROW_MIN &&
		       info->row_size <= IOT_LIMIT_ROW_BYTES && info->row_size % 8 == 0 &&
		       (uint64_t)info->row_size * info->count == info->raw_bytes;
	default:
		return false;
	}
}

static int decode_spans(const uint8_t *p, struct iot_block_info *info)
{
	for (uint32_t i = 0; i < info->n_spans; i++) {
		struct iot_disk_span span;

		memcpy(&span, p + i * sizeof(span), sizeof(span));
		info->spans[i].p0 = le64toh(span.p0);
		info->spans[i].p1 = le64toh(span.p1);
		if (info->spans[i].p1 < info->spans[i].p0)
			return -EBADMSG;
	}
	return 0;
}

int iot_block_header_decode(const void *buf, size_t size, struct iot_block_info *ret)
{
	struct iot_block_info info = {0};
	struct iot_disk_block disk;
	uint64_t hash;
	size_t frame, fixed;
	int r;

	if (size < sizeof(disk) + sizeof(hash))
		return -EBADMSG;
	memcpy(&disk, buf, sizeof(disk));
	frame = sizeof(disk.frame) + (size_t)le32toh(disk.frame.size);
	fixed = le16toh(disk.fixed_size);
	if (le32toh(disk.frame.magic) != IOT_MAGIC_BLOCK ||
	    memcmp(disk.tag, IOT_TAG_BLOCK, sizeof(disk.tag)) != 0)
		return -EBADMSG;
	if (frame > size || frame > IOT_LIMIT_BLOCK_HEADER_BYTES || fixed < sizeof(disk))
		return -EBADMSG;
	info.n_spans = le16toh(disk.n_spans);
	/* Later versions may lengthen the fixed part, and add something behind the spans. */
	if (fixed + info.n_spans * sizeof(struct iot_disk_span) + sizeof(hash) > frame)
		return -EBADMSG;
	memcpy(&hash, (const uint8_t *)buf + frame - sizeof(hash), sizeof(hash));
	info.header_hash = le64toh(hash);
	if (XXH64(buf, frame - sizeof(hash), 0) != info.header_hash)
		return -EBADMSG;

	info.header_size = (uint32_t)frame;
	info.kind = disk.kind;
	info.count = le32toh(disk.count);
	info.raw_bytes = le32toh(disk.raw_bytes);
	info.data_size = le32toh(disk.data_size);
	info.row_size = le16toh(disk.row_size);
	info.seq = le64toh(disk.seq);
	info.first_ns = le64toh(disk.first_ns);
	info.last_ns = le64toh(disk.last_ns);
	info.first_id = le64toh(disk.first_id);
	info.last_id = le64toh(disk.last_id);
	info.data_hash = le64toh(disk.data_hash);
	info.size = (uint64_t)info.header_size + info.data_size;
	if (disk.reserved0 || !info_valid(&info) || info.first_ns > info.last_ns ||
	    info.first_id > info.last_id)
		return -EBADMSG;
	r = decode_spans((const uint8_t *)buf + fixed, &info);
	if (r < 0)
		return r;
	*ret = info;
	return 0;
}

int iot_block_data_check(const struct iot_block_info *info, const void *data, size_t size)
{
	if (size != info->data_size || XXH64(data, size, 0) != info->data_hash)
		return -EBADMSG;
	return 0;
}

/* ---- data frame ---- */

static int reserve_raw(struct iot_block_decoder *d, size_t room)
{
	uint8_t *raw;

	if (room <= d->raw_room)
		return 0;
	raw = malloc(room);
	if (!raw)
		return -ENOMEM;
	free(d->raw);
	d->raw = raw;
	d->raw_room = room;
	return 0;
}

static size_t block_max(LZ4F_blockSizeID_t id)
{
	switch (id) {
	case LZ4F_max64KB:
		return 64U << 10;
	case LZ4F_max256KB:
		return 256U << 10;
	case LZ4F_max1MB:
		return 1U << 20;
	case LZ4F_max4MB:
		return 4U << 20;
	default:
		return 0;
	}
}

/* LZ4F has codes for its errors only where it is linked statically. */
static bool is_no_memory(size_t error)
{
	return strcmp(LZ4F_getErrorName(error), "ERROR_allocation_failed") == 0;
}

static int decompress(struct iot_block_decoder *d, const struct iot_block_info *info,
		      const uint8_t *data, size_t size)
{
	LZ4F_frameInfo_t frame = {0};
	size_t used = size, done = 0, room, block;
	int r;

	LZ4F_resetDecompressionContext(d->lz4);
	if (LZ4F_isError(LZ4F_getFrameInfo(d->lz4, &frame, data, &used)))
		return -EBADMSG;
	block = block_max(frame.blockSizeID);
	if (frame.frameType != LZ4F_frame || frame.contentSize != info->raw_bytes || !block ||
	    frame.contentChecksumFlag != LZ4F_contentChecksumEnabled ||
	    frame.blockMode != LZ4F_blockIndependent || frame.dictID != 0)
		return -EBADMSG;
	/* Room for a whole LZ4 block lets LZ4F decode in place rather than through its own buffer. */
	room = IOT_MAX((size_t)info->raw_bytes, block);
	r = reserve_raw(d, room + IOT_CODEC_SLACK);
	if (r < 0)
		return r;
	for (;;) {
		size_t in = size - used, out = room - done, hint;

		hint = LZ4F_decompress(d->lz4, d->raw + done, &out, data + used, &in, NULL);
		if (LZ4F_isError(hint))
			return is_no_memory(hint) ? -ENOMEM : -EBADMSG;
		used += in;
		done += out;
		if (hint == 0)
			break;
		if (in == 0 && out == 0)
			return -EBADMSG;
	}
	if (used != size || done != info->raw_bytes)
		return -EBADMSG;
	/* Never read for their value, but a fuzzer should not see yesterday's. */
	memset(d->raw + done, 0, IOT_CODEC_SLACK);
	return 0;
}

static int open_data(struct iot_block_decoder *d, const struct iot_block_info *info,
		     const void *data, size_t size)
{
	int r;

	if (!info_valid(info))
		return -EBADMSG;
	r = iot_block_data_check(info, data, size);
	if (r < 0)
		return r;
	return decompress(d, info, data, size);
}

/* ---- columns ---- */

struct entry {
	struct iot_column_form form;
	uint8_t codec;
	uint32_t length;
	const uint8_t *payload; /* NULL: the block has no such column */
};

/* Entries that the dictionary of a column may have: each has a record, or was added in vain. */
static uint32_t table_max(const struct iot_schema *schema, unsigned int c, uint32_t n_records)
{
	uint32_t each = schema->dicts[schema->columns[c].table - 1].per_record;

	return IOT_MIN(IOT_BLOCK_RECORDS_MAX, each == 1 ? n_records : each * (n_records + 1));
}

static int parse_entry(const struct iot_schema *schema, const uint8_t *p, uint32_t n_records,
		       struct entry *ret)
{
	struct iot_disk_column disk;

	memcpy(&disk, p, sizeof(disk));
	ret->codec = disk.codec;
	ret->length = le32toh(disk.length);
	ret->form = (struct iot_column_form){
		.column = disk.column,
		.base = disk.base,
		.flags = disk.flags,
		.shift = disk.shift,
		.count = le32toh(disk.count),
	};
	if (!iot_column_is_known(schema, disk.column))
		return 0;
	if (disk.reserved[0] | disk.reserved[1] | disk.reserved[2])
		return -EBADMSG;
	if (iot_column_is_table(&schema->columns[disk.column]))
		return ret->form.count >= 1 &&
				       ret->form.count <= table_max(schema, disk.column, n_records)
			       ? 0
			       : -EBADMSG;
	return ret->form.count == n_records ? 0 : -EBADMSG;
}

/* Fills entries of known columns; the lengths of all must add up to the content exactly. */
static int parse_table(const struct iot_schema *schema, const uint8_t *raw, size_t size,
		       uint32_t n_records, struct entry entries[IOT_MAX_COLUMNS])
{
	struct iot_disk_columns head;
	size_t entry_size, at;
	int last = 0, r;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, raw, sizeof(head));
	head.n = le16toh(head.n);
	entry_size = le16toh(head.entry_size);
	if (head.reserved || head.n > IOT_LIMIT_COLUMNS ||
	    entry_size < sizeof(struct iot_disk_column) || entry_size > MAX_ENTRY_BYTES)
		return -EBADMSG;
	at = sizeof(head) + head.n * entry_size;
	if (at > size)
		return -EBADMSG;
	for (unsigned int i = 0; i < head.n; i++) {
		struct entry e;

		r = parse_entry(schema, raw + sizeof(head) + i * entry_size, n_records, &e);
		if (r < 0)
			return r;
		/* Ascending: no column twice. */
		if (e.form.column <= last || e.length > size - at)
			return -EBADMSG;
		last = e.form.column;
		e.payload = raw + at;
		at += e.length;
		if (iot_column_is_known(schema, e.form.column))
			entries[e.form.column] = e;
	}
	return at == size ? 0 : -EBADMSG;
}

/*
 * Adds what the wanted columns depend on. References have lower numbers, so one pass from above is
 * enough; words of dictionaries refer to nothing but each other, a word's column to lower ones.
 */
static int select_columns(const struct iot_schema *schema, const struct entry *entries,
			  uint64_t columns, uint64_t *ret)
{
	uint64_t present = 0, must = 0, words = 0, need;

	for (unsigned int c = 1; c < IOT_MAX_COLUMNS; c++) {
		present |= (uint64_t) !!entries[c].payload << c;
		must |= (uint64_t) !!(schema->columns[c].flags & IOT_DESC_MUST) << c;
		words |= (uint64_t) !!(schema->columns[c].flags & IOT_DESC_WORD) << c;
	}
	/* Without these a record says nothing. */
	if ((present & must) != must)
		return -EBADMSG;
	need = (columns & present & ~words) | 1ULL << schema->time;
	for (unsigned int c = IOT_MAX_COLUMNS - 1; c > 0; c--) {
		if (!(need & 1ULL << c))
			continue;
		if (entries[c].form.base == IOT_BASE_REF)
			need |= schema->columns[c].refs;
		need |= schema->columns[c].needs;
	}
	if (need & ~present)
		return -EBADMSG;
	*ret = need;
	return 0;
}

/* Sizes the dictionaries that are needed: all words of one have the same number of entries. */
static int size_dicts(struct iot_batch *b, const struct entry *entries, uint64_t need)
{
	uint32_t sized = 0;
	int r;

	for (unsigned int c = 1; c < IOT_MAX_COLUMNS; c++) {
		const struct iot_column_desc *desc = &b->schema->columns[c];
		uint32_t n = entries[c].form.count;
		struct iot_dict *d;

		if (!(need & 1ULL << c) || !(desc->flags & IOT_DESC_WORD))
			continue;
		d = &b->dicts[desc->table - 1];
		if (sized & 1U << desc->table) {
			if (d->n != n)
				return -EBADMSG;
			continue;
		}
		sized |= 1U << desc->table;
		r = iot_dict_reserve(d, n);
		if (r < 0)
			return r;
		d->n = n;
	}
	return 0;
}

static int decode_values(struct entry *e, uint64_t *v)
{
	switch (e->codec) {
	case IOT_CODEC_CONST:
		e->form.constant = true;
		return iot_const_decode(e->payload, e->length, &e->form.value);
	case IOT_CODEC_PACK:
		return iot_pack_decode(e->payload, e->length, e->form.count, v);
	case IOT_CODEC_BYTES:
		return iot_bytes_decode(e->payload, e->length, e->form.count, v);
	default:
		return -EBADMSG;
	}
}

static int reserve_values(struct iot_block_decoder *d, uint32_t n)
{
	uint64_t *values;

	if (n <= d->n_values)
		return 0;
	values = malloc(n * sizeof(*values));
	if (!values)
		return -ENOMEM;
	free(d->values);
	d->values = values;
	d->n_values = n;
	return 0;
}

/* The header was believed when blocks were skipped: what it said must be true. */
static int check_ranges(struct iot_batch *b, const struct iot_block_info *info)
{
	uint64_t min, max;

	iot_u64_range(iot_batch_u64(b, b->schema->time), b->n, &b->first_ns, &b->last_ns);
	if (b->first_ns != info->first_ns || b->last_ns != info->last_ns)
		return -EBADMSG;
	if ((b->have & b->schema->ids) != b->schema->ids)
		return 0;
	b->schema->id_range(b, &min, &max);
	return min == info->first_id && max == info->last_id ? 0 : -EBADMSG;
}

static int decode_columns(struct iot_block_decoder *d, const struct iot_block_info *info,
			  const struct iot_schema *schema, uint64_t columns, struct iot_batch *b)
{
	struct entry entries[IOT_MAX_COLUMNS] = {0};
	uint64_t need;
	int r;

	r = parse_table(schema, d->raw, info->raw_bytes, info->count, entries);
	if (r < 0)
		return r;
	r = select_columns(schema, entries, columns, &need);
	if (r < 0)
		return r;
	r = iot_batch_reserve(b, schema, info->count);
	if (r < 0)
		return r;
	r = size_dicts(b, entries, need);
	if (r < 0)
		return r;
	r = reserve_values(d, IOT_MIN(IOT_BLOCK_RECORDS_MAX, MAX_PER_RECORD * (info->count + 1)));
	if (r < 0)
		return r;
	b->n = info->count;
	b->have = need;
	b->decoded = true;
	for (unsigned int c = 1; c < IOT_MAX_COLUMNS; c++) {
		uint64_t *values = iot_column_in_place(schema, c) ? b->arrays[c] : d->values;

		if (!(need & 1ULL << c))
			continue;
		if (entries[c].form.count != iot_column_count(b, c))
			return -EBADMSG;
		r = decode_values(&entries[c], values);
		if (r < 0)
			return r;
		r = iot_column_inverse(b, &entries[c].form, values, d->keys);
		if (r < 0)
			return r;
	}
	return check_ranges(b, info);
}

int iot_block_decode(struct iot_block_decoder *d, const struct iot_block_info *info,
		     const void *data, size_t size, uint64_t columns, struct iot_batch *b)
{
	int r;

	const struct iot_schema *schema = iot_schema_of_kind(info->kind);

	iot_batch_clear(b);
	if (!schema)
		return -EBADMSG;
	r = open_data(d, info, data, size);
	if (r < 0)
		return r;
	r = decode_columns(d, info, schema, columns, b);
	if (r < 0)
		iot_batch_clear(b);
	return r;
}

static void decode_loss(const uint8_t *row, size_t row_size, struct iot_loss *ret)
{
	struct iot_disk_loss disk = {0};

	memcpy(&disk, row, IOT_MIN(row_size, sizeof(disk)));
	*ret = (struct iot_loss){
		.id = le64toh(disk.id),
		.n = le64toh(disk.n),
		.bytes = le64toh(disk.bytes),
		.sector = le64toh(disk.sector),
		.first_ns = le64toh(disk.first_ns),
		.last_ns = le64toh(disk.last_ns),
		.dev = le32toh(disk.dev),
		.part = le32toh(disk.part),
		.flags = le32toh(disk.flags),
		.probe = le16toh(disk.probe),
		.op = disk.op,
		.cause = disk.cause,
		.swap = disk.swap,
		.swap_rule = disk.swap_rule,
		.unswapped_bytes = le32toh(disk.unswapped_bytes),
	};
}

static void decode_packet_loss(const uint8_t *row, size_t row_size, struct iot_loss *ret)
{
	struct iot_disk_packet_loss disk = {0};

	memcpy(&disk, row, IOT_MIN(row_size, sizeof(disk)));
	*ret = (struct iot_loss){
		.id = le64toh(disk.id),
		.n = le64toh(disk.n),
		.bytes = le64toh(disk.bytes),
		.parent = le64toh(disk.parent),
		.first_ns = le64toh(disk.first_ns),
		.last_ns = le64toh(disk.last_ns),
		.netns = le32toh(disk.netns),
		.ifindex = le32toh(disk.ifindex),
		.flags = le32toh(disk.flags),
		.probe = le16toh(disk.probe),
		.cause = disk.cause,
		.flow.sport = le16toh(disk.sport),
		.flow.dport = le16toh(disk.dport),
		.flow.protocol = le16toh(disk.protocol),
		.flow.vlan_tci = le16toh(disk.vlan_tci),
		.flow.family = disk.family,
		.flow.ip_proto = disk.ip_proto,
		.code = (int32_t)le32toh((uint32_t)disk.code),
	};
	memcpy(ret->flow.src, disk.src, sizeof(disk.src));
	memcpy(ret->flow.dst, disk.dst, sizeof(disk.dst));
	memcpy(ret->l4, disk.l4, sizeof(disk.l4));
}

int iot_block_decode_losses(struct iot_block_decoder *d, enum iot_stream stream,
			    const struct iot_block_info *info, const void *data, size_t size,
			    void *hash, struct iot_loss *ret)
{
	int r;

	if (info->kind != IOT_BLOCK_LEDGER)
		return -EBADMSG;
	r = open_data(d, info, data, size);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < info->count; i++) {
		const uint8_t *row = d->raw + (size_t)i * info->row_size;

		if (stream == IOT_STREAM_PACKET)
			decode_packet_loss(row, info->row_size, &ret[i]);
		else
			decode_loss(row, info->row_size, &ret[i]);
	}
	if (hash)
		XXH64_update(hash, d->raw, info->raw_bytes);
	return 0;
}
