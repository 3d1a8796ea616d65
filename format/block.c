// SPDX-License-Identifier: BSD-2-Clause
/*
 * block.c - encoding: a batch, or rows of losses, becomes block header and data frame.
 *
 * Both frames are made in one buffer, so that one write puts the whole block into the file: the
 * header's size is known beforehand, its contents (size and hash of the data) afterwards.
 *
 * Every column is PACK or CONST, but for the few that gain visibly from byte planes (a request's
 * sector and file): on the first block and every 32nd after it both codecs are tried through LZ4 and the smaller is
 * kept until the next trial. The sector is stored as itself or against the end of the same
 * context's last request, whichever has fewer bits in a sample of the block.
 */
#include "format/block.h"

#include "format/columns.h"

#include <assert.h>
#include <endian.h>
#include <lz4.h>
#include <lz4frame.h>
#include <xxhash.h>

#define TRIAL_EVERY 32U

struct buffer {
	uint8_t *data;
	size_t room;
};

struct iot_block_encoder {
	struct buffer raw;   /* content of the data frame */
	struct buffer out;   /* both frames */
	struct buffer trial; /* the other codec's bytes, and both through LZ4 */
	uint64_t *values[2]; /* a column on its way */
	uint64_t *keys;
	size_t n_values;       /* room in values */
	uint64_t n_blocks;     /* of requests, for the trials */
	uint64_t bytes_better; /* bits of columns for which BYTES won the last trial */
};

/* Contents are not kept. Grows by halves, so that a few sizes suffice for ever. */
static int buffer_reserve(struct buffer *b, size_t size)
{
	size_t room = b->room;
	uint8_t *data;

	if (size <= room)
		return 0;
	room = IOT_MAX(size, room + room / 2);
	data = malloc(room);
	if (!data)
		return -ENOMEM;
	free(b->data);
	b->data = data;
	b->room = room;
	return 0;
}

int iot_block_encoder_new(struct iot_block_encoder **ret)
{
	struct iot_block_encoder *e;

	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->keys = malloc(IOT_COLUMN_KEYS * sizeof(*e->keys));
	if (!e->keys) {
		free(e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

struct iot_block_encoder *iot_block_encoder_free(struct iot_block_encoder *e)
{
	if (!e)
		return NULL;
	free(e->raw.data);
	free(e->out.data);
	free(e->trial.data);
	free(e->values[0]);
	free(e->values[1]);
	free(e->keys);
	free(e);
	return NULL;
}

/* ---- columns ---- */

static int reserve_values(struct iot_block_encoder *e, size_t n)
{
	n = (n + IOT_PACK_GROUP - 1) / IOT_PACK_GROUP * IOT_PACK_GROUP;
	if (n <= e->n_values)
		return 0;
	e->n_values = 0;
	for (size_t i = 0; i < 2; i++) {
		free(e->values[i]);
		/* Different alignment within a page: see batch.h. */
		e->values[i] = malloc((n + i * 24) * sizeof(uint64_t));
		if (!e->values[i])
			return -ENOMEM;
	}
	e->n_values = n;
	return 0;
}

/* Bits that packing would take at least, from every fourth group. */
static uint64_t sample_bits(const uint64_t *v, size_t n)
{
	uint64_t bits = 0;

	for (size_t i = 0; i<n; i += n> 1024 ? 4 * IOT_PACK_GROUP : IOT_PACK_GROUP) {
		size_t end = IOT_MIN(i + IOT_PACK_GROUP, n);

		for (size_t j = i; j < end; j++)
			bits += v[j] ? 64 - (unsigned int)__builtin_clzll(v[j]) : 0;
	}
	return bits;
}

/* Fills *form and returns where the values are (nowhere if constant). */
static uint64_t *transform(struct iot_block_encoder *e, const struct iot_batch *b, unsigned int c,
			   struct iot_column_form *form)
{
	const struct iot_column_desc *d = &b->schema->columns[c];
	struct iot_column_form raw;

	iot_column_forward(b, c, d->base, e->values[0], e->keys, form);
	if (!(d->flags & IOT_DESC_TRY_RAW) || form->constant || form->base == IOT_BASE_RAW)
		return e->values[0];
	iot_column_forward(b, c, IOT_BASE_RAW, e->values[1], e->keys, &raw);
	if (sample_bits(e->values[1], raw.count) >= sample_bits(e->values[0], form->count))
		return e->values[0];
	*form = raw;
	return e->values[1];
}

/* Encodes a column both ways and remembers whether BYTES is smaller by 2% after LZ4. */
static int try_bytes(struct iot_block_encoder *e, unsigned int c, uint64_t *v, size_t n)
{
	size_t bound = iot_codec_bound(n);
	size_t lz4_bound = (size_t)LZ4_compressBound((int)bound);
	int packed, bytes, r;
	uint8_t *end, *lz4;

	r = buffer_reserve(&e->trial, bound + lz4_bound);
	if (r < 0)
		return r;
	lz4 = e->trial.data + bound;
	end = iot_pack_encode(v, n, e->trial.data);
	packed = LZ4_compress_default((char *)e->trial.data, (char *)lz4,
				      (int)(end - e->trial.data), (int)lz4_bound);
	end = iot_bytes_encode(v, n, e->trial.data);
	bytes = LZ4_compress_default((char *)e->trial.data, (char *)lz4, (int)(end - e->trial.data),
				     (int)lz4_bound);
	if (bytes + bytes / 50 < packed)
		e->bytes_better |= 1ULL << c;
	else
		e->bytes_better &= ~(1ULL << c);
	return 0;
}

static int encode_column(struct iot_block_encoder *e, const struct iot_batch *b, unsigned int c,
			 uint8_t *entry, uint8_t **out)
{
	struct iot_column_form form;
	struct iot_disk_column disk;
	uint8_t codec, *begin = *out;
	uint64_t *v;
	int r;

	v = transform(e, b, c, &form);
	if (form.constant) {
		codec = IOT_CODEC_CONST;
		*out = iot_const_encode(form.value, begin);
	} else {
		if (b->schema->columns[c].flags & IOT_DESC_TRY_BYTES &&
		    e->n_blocks % TRIAL_EVERY == 0) {
			r = try_bytes(e, c, v, form.count);
			if (r < 0)
				return r;
		}
		codec = e->bytes_better & 1ULL << c ? IOT_CODEC_BYTES : IOT_CODEC_PACK;
		*out = codec == IOT_CODEC_BYTES ? iot_bytes_encode(v, form.count, begin)
						: iot_pack_encode(v, form.count, begin);
	}
	disk = (struct iot_disk_column){
		.column = form.column,
		.codec = codec,
		.base = form.base,
		.flags = form.flags,
		.shift = form.shift,
		.count = htole32(form.count),
		.length = htole32((uint32_t)(*out - begin)),
	};
	memcpy(entry, &disk, sizeof(disk));
	return 0;
}

static size_t n_columns(const struct iot_schema *s)
{
	size_t n = 0;

	for (unsigned int c = 0; c < IOT_MAX_COLUMNS; c++)
		n += iot_column_is_known(s, c);
	return n;
}

static int encode_columns(struct iot_block_encoder *e, const struct iot_batch *b, size_t *ret_size)
{
	size_t n = n_columns(b->schema);
	struct iot_disk_columns head = {
		.n = htole16((uint16_t)n),
		.entry_size = htole16(sizeof(struct iot_disk_column)),
	};
	size_t table = sizeof(head) + n * sizeof(struct iot_disk_column);
	uint8_t *entry, *out;
	uint32_t most = b->n;
	int r;

	for (unsigned int i = 0; i < IOT_MAX_DICTS; i++)
		most = IOT_MAX(most, b->dicts[i].n);
	r = buffer_reserve(&e->raw, table + n * iot_codec_bound(most));
	if (r < 0)
		return r;
	r = reserve_values(e, most);
	if (r < 0)
		return r;
	memcpy(e->raw.data, &head, sizeof(head));
	entry = e->raw.data + sizeof(head);
	out = e->raw.data + table;
	for (unsigned int c = 0; c < IOT_MAX_COLUMNS; c++) {
		if (!iot_column_is_known(b->schema, c))
			continue;
		r = encode_column(e, b, c, entry, &out);
		if (r < 0)
			return r;
		entry += sizeof(struct iot_disk_column);
	}
	assert(entry == e->raw.data + table);
	e->n_blocks++;
	*ret_size = (size_t)(out - e->raw.data);
	return 0;
}

/* ---- frames ---- */

/* Compresses e->raw behind where the header will be, then writes the header. */
static int encode_frames(struct iot_block_encoder *e, struct iot_block_info *info)
{
	LZ4F_preferences_t preferences = {
		.frameInfo =
			{
				.blockSizeID = LZ4F_max4MB,
				.blockMode = LZ4F_blockIndependent,
				.contentChecksumFlag = LZ4F_contentChecksumEnabled,
				.contentSize = info->raw_bytes,
			},
		.autoFlush = 1,
	};
	size_t bound = LZ4F_compressFrameBound(info->raw_bytes, &preferences), n;
	struct iot_disk_block disk;
	uint64_t hash;
	uint8_t *p;
	int r;

	info->header_size = (uint32_t)(sizeof(disk) + info->n_spans * sizeof(struct iot_disk_span) +
				       sizeof(hash));
	r = buffer_reserve(&e->out, info->header_size + bound);
	if (r < 0)
		return r;
	/* With autoFlush and a whole input LZ4F keeps its state on the stack: no allocation. */
	n = LZ4F_compressFrame(e->out.data + info->header_size, bound, e->raw.data, info->raw_bytes,
			       &preferences);
	if (LZ4F_isError(n))
		return -EIO;
	info->data_size = (uint32_t)n;
	info->data_hash = XXH64(e->out.data + info->header_size, n, 0);
	info->size = info->header_size + n;

	disk = (struct iot_disk_block){
		.frame.magic = htole32(IOT_MAGIC_BLOCK),
		.frame.size = htole32(info->header_size - (uint32_t)sizeof(struct iot_disk_frame)),
		.tag = IOT_TAG_BLOCK,
		.fixed_size = htole16(sizeof(disk)),
		.kind = info->kind,
		.count = htole32(info->count),
		.raw_bytes = htole32(info->raw_bytes),
		.data_size = htole32(info->data_size),
		.n_spans = htole16((uint16_t)info->n_spans),
		.row_size = htole16(info->row_size),
		.seq = htole64(info->seq),
		.first_ns = htole64(info->first_ns),
		.last_ns = htole64(info->last_ns),
		.first_id = htole64(info->first_id),
		.last_id = htole64(info->last_id),
		.data_hash = htole64(info->data_hash),
	};
	p = e->out.data;
	memcpy(p, &disk, sizeof(disk));
	p += sizeof(disk);
	for (uint32_t i = 0; i < info->n_spans; i++) {
		struct iot_disk_span span = {
			.p0 = htole64(info->spans[i].p0),
			.p1 = htole64(info->spans[i].p1),
		};

		memcpy(p, &span, sizeof(span));
		p += sizeof(span);
	}
	info->header_hash = XXH64(e->out.data, (size_t)(p - e->out.data), 0);
	hash = htole64(info->header_hash);
	memcpy(p, &hash, sizeof(hash));
	return 0;
}

int iot_block_encode(struct iot_block_encoder *e, enum iot_block_kind kind, uint64_t seq,
		     const struct iot_batch *b, const struct iot_span *spans, size_t n_spans,
		     const uint8_t **ret, size_t *ret_size, struct iot_block_info *ret_info)
{
	struct iot_block_info info = {
		.kind = (uint8_t)kind,
		.seq = seq,
		.count = b->n,
		.first_ns = b->first_ns,
		.last_ns = b->last_ns,
		.n_spans = (uint32_t)n_spans,
	};
	size_t size;
	int r;

	assert(b->n > 0 && b->n <= IOT_BLOCK_RECORDS_MAX);
	assert(kind == b->schema->kind || (kind == b->schema->kind_open && kind));
	assert(n_spans <= IOT_MAX_RINGS);

	for (size_t i = 0; i < n_spans; i++) {
		assert(spans[i].p0 <= spans[i].p1);
		info.spans[i] = spans[i];
	}
	b->schema->id_range(b, &info.first_id, &info.last_id);
	r = encode_columns(e, b, &size);
	if (r < 0)
		return r;
	info.raw_bytes = (uint32_t)size;
	r = encode_frames(e, &info);
	if (r < 0)
		return r;
	*ret = e->out.data;
	*ret_size = info.size;
	if (ret_info)
		*ret_info = info;
	return 0;
}

static void encode_loss(const struct iot_loss *l, uint8_t *out)
{
	struct iot_disk_loss disk = {
		.id = htole64(l->id),
		.n = htole64(l->n),
		.bytes = htole64(l->bytes),
		.sector = htole64(l->sector),
		.first_ns = htole64(l->first_ns),
		.last_ns = htole64(l->last_ns),
		.dev = htole32(l->dev),
		.part = htole32(l->part),
		.flags = htole32(l->flags),
		.probe = htole16(l->probe),
		.op = l->op,
		.cause = l->cause,
		.swap = l->swap,
		.swap_rule = l->swap_rule,
		.unswapped_bytes = htole32(l->unswapped_bytes),
	};

	memcpy(out, &disk, sizeof(disk));
}

static void encode_packet_loss(const struct iot_loss *l, uint8_t *out)
{
	struct iot_disk_packet_loss disk = {
		.id = htole64(l->id),
		.n = htole64(l->n),
		.bytes = htole64(l->bytes),
		.parent = htole64(l->parent),
		.first_ns = htole64(l->first_ns),
		.last_ns = htole64(l->last_ns),
		.netns = htole32(l->netns),
		.ifindex = htole32(l->ifindex),
		.flags = htole32(l->flags),
		.probe = htole16(l->probe),
		.cause = l->cause,
		.sport = htole16(l->flow.sport),
		.dport = htole16(l->flow.dport),
		.protocol = htole16(l->flow.protocol),
		.vlan_tci = htole16(l->flow.vlan_tci),
		.family = l->flow.family,
		.ip_proto = l->flow.ip_proto,
		.code = (int32_t)htole32((uint32_t)l->code),
	};

	memcpy(disk.src, l->flow.src, sizeof(disk.src));
	memcpy(disk.dst, l->flow.dst, sizeof(disk.dst));
	memcpy(disk.l4, l->l4, sizeof(disk.l4));
	memcpy(out, &disk, sizeof(disk));
}

int iot_block_encode_losses(struct iot_block_encoder *e, enum iot_stream stream, uint64_t seq,
			    const struct iot_loss *losses, size_t n, void *hash,
			    const uint8_t **ret, size_t *ret_size, struct iot_block_info *ret_info)
{
	bool packet = stream == IOT_STREAM_PACKET;
	size_t row_size = packet ? sizeof(struct iot_disk_packet_loss)
				 : sizeof(struct iot_disk_loss);
	struct iot_block_info info = {
		.kind = IOT_BLOCK_LEDGER,
		.seq = seq,
		.count = (uint32_t)n,
		.first_ns = UINT64_MAX,
		.first_id = UINT64_MAX,
		.row_size = (uint16_t)row_size,
		.raw_bytes = (uint32_t)(n * row_size),
	};
	int r;

	assert(n > 0 && n <= IOT_BLOCK_RECORDS_MAX);

	r = buffer_reserve(&e->raw, info.raw_bytes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (packet)
			encode_packet_loss(&losses[i], e->raw.data + i * row_size);
		else
			encode_loss(&losses[i], e->raw.data + i * row_size);
		/* Both of both: a row whose times are in disorder must not make the block invalid. */
		info.first_ns = IOT_MIN(info.first_ns, losses[i].first_ns);
		info.first_ns = IOT_MIN(info.first_ns, losses[i].last_ns);
		info.last_ns = IOT_MAX(info.last_ns, losses[i].first_ns);
		info.last_ns = IOT_MAX(info.last_ns, losses[i].last_ns);
		info.first_id = IOT_MIN(info.first_id, losses[i].id);
		info.last_id = IOT_MAX(info.last_id, losses[i].id);
	}
	r = encode_frames(e, &info);
	if (r < 0)
		return r;
	if (hash)
		XXH64_update(hash, e->raw.data, info.raw_bytes);
	*ret = e->out.data;
	*ret_size = info.size;
	if (ret_info)
		*ret_info = info;
	return 0;
}
