// SPDX-License-Identifier: BSD-2-Clause
/*
 * batch.c - rows in, columns in memory, rows out.
 *
 * Adding is the hot path of the daemon: about 25 plain stores and four dictionary look-ups that
 * nearly always hit at once. Nothing is computed here that encoding can compute over
 * whole columns. The arrays lie in one allocation, staggered (see batch.h), and are a multiple of
 * 128 values long, so that codecs may work on whole groups.
 */
#include "format/batch-def.h"

#include <assert.h>
#include <endian.h>

#define STAGGER 192U
#define MAX_OPS 1024U
#define MAX_CONTEXTS 4096U
#define MAX_DEVICES 4096U

const uint8_t iot_batch_width[IOT_N_VALUE_COLUMNS] = {
	[IOT_COLUMN_COMPLETE] = 8,  [IOT_COLUMN_ISSUE] = 8,   [IOT_COLUMN_ISSUE_LAST] = 8,
	[IOT_COLUMN_START] = 8,	    [IOT_COLUMN_INSERT] = 8,  [IOT_COLUMN_COMPLETE_CPU] = 4,
	[IOT_COLUMN_ISSUE_CPU] = 4, [IOT_COLUMN_ID_CPU] = 0,  [IOT_COLUMN_ID] = 8,
	[IOT_COLUMN_OP] = 2,	    [IOT_COLUMN_CONTEXT] = 2, [IOT_COLUMN_DEVICE] = 2,
	[IOT_COLUMN_FILE] = 2,	    [IOT_COLUMN_BYTES] = 4,   [IOT_COLUMN_BYTES_DONE] = 4,
	[IOT_COLUMN_SECTOR] = 8,    [IOT_COLUMN_ERROR] = 4,   [IOT_COLUMN_STATUS] = 4,
	[IOT_COLUMN_SEGMENTS] = 2,  [IOT_COLUMN_MERGES] = 2,  [IOT_COLUMN_REQUEUES] = 2,
	[IOT_COLUMN_HWQ] = 2,	    [IOT_COLUMN_RING] = 1,
};

static int batch_allocate(struct iot_batch *b, uint32_t cap)
{
	size_t padded = (cap + IOT_PACK_GROUP - 1) / IOT_PACK_GROUP * IOT_PACK_GROUP;
	size_t size = 64;
	uint8_t *p;

	for (size_t c = 0; c < IOT_N_VALUE_COLUMNS; c++) {
		/* Without a width a column has no array, and adding a record would crash. */
		assert(iot_batch_width[c] || c == 0 || c == IOT_COLUMN_ID_CPU);
		size += padded * iot_batch_width[c] + STAGGER;
	}
	p = calloc(1, size);
	if (!p)
		return -ENOMEM;
	free(b->memory);
	b->memory = p;
	b->cap = cap;
	p += 64 - (uintptr_t)p % 64;
	for (size_t c = 0; c < IOT_N_VALUE_COLUMNS; c++) {
		b->arrays[c] = iot_batch_width[c] ? p : NULL;
		if (iot_batch_width[c])
			p += padded * iot_batch_width[c] + STAGGER;
	}
	return 0;
}

int iot_batch_new(uint32_t cap, struct iot_batch **ret)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	int r;

	assert(cap >= 1 && cap <= IOT_BLOCK_RECORDS_MAX);

	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	r = batch_allocate(b, cap);
	if (r < 0)
		return r;
	r = iot_dict_init(&b->op, 2, IOT_MIN(cap, MAX_OPS));
	if (r < 0)
		return r;
	r = iot_dict_init(&b->context, 4, IOT_MIN(cap, MAX_CONTEXTS));
	if (r < 0)
		return r;
	r = iot_dict_init(&b->device, 1, IOT_MIN(cap, MAX_DEVICES));
	if (r < 0)
		return r;
	r = iot_dict_init(&b->file, 2, cap);
	if (r < 0)
		return r;
	iot_batch_clear(b);
	*ret = IOT_TAKE_PTR(b);
	return 0;
}

struct iot_batch *iot_batch_free(struct iot_batch *b)
{
	if (!b)
		return NULL;
	iot_dict_done(&b->op);
	iot_dict_done(&b->context);
	iot_dict_done(&b->device);
	iot_dict_done(&b->file);
	free(b->memory);
	free(b);
	return NULL;
}

void iot_batch_clear(struct iot_batch *b)
{
	b->n = 0;
	b->have = UINT64_MAX;
	b->first_ns = 0;
	b->last_ns = 0;
	b->decoded = false;
	iot_dict_clear(&b->op);
	iot_dict_clear(&b->context);
	iot_dict_clear(&b->device);
	iot_dict_clear(&b->file);
}

int iot_batch_reserve(struct iot_batch *b, uint32_t n)
{
	iot_batch_clear(b);
	if (n <= b->cap)
		return 0;
	assert(n <= IOT_BLOCK_RECORDS_MAX);
	return batch_allocate(b, n);
}

/*
 * The four indexes of a record, or IOT_DICT_FULL. An entry added before a later dictionary turned
 * out full stays, unused; there are still no more entries than records, as a full dictionary had
 * at least as many records as any other has entries.
 */
static inline int intern(struct iot_batch *b, const struct iot_request *r, uint16_t index[4])
{
	uint64_t op[2], context[4], device[1], file[2];
	int q;

	op[0] = r->flags | (uint64_t)r->op << 32 | (uint64_t)r->swap << 40 |
		(uint64_t)r->swap_rule << 48 | (uint64_t)r->origin << 56;
	op[1] = r->submitter;
	context[0] = r->pid | (uint64_t)r->tgid << 32;
	context[1] = r->cgroup;
	memcpy(&context[2], r->comm, 16);
	context[2] = le64toh(context[2]);
	context[3] = le64toh(context[3]);
	device[0] = r->dev | (uint64_t)r->part << 32;
	file[0] = r->ino;
	file[1] = r->fsdev;

	q = iot_dict_add(&b->op, op, IOT_ARRAY_SIZE(op), &index[0]);
	if (q)
		return q;
	q = iot_dict_add(&b->context, context, IOT_ARRAY_SIZE(context), &index[1]);
	if (q)
		return q;
	q = iot_dict_add(&b->device, device, IOT_ARRAY_SIZE(device), &index[2]);
	if (q)
		return q;
	return iot_dict_add(&b->file, file, IOT_ARRAY_SIZE(file), &index[3]);
}

int iot_batch_add(struct iot_batch *b, const struct iot_request *r)
{
	uint16_t index[4];
	uint32_t i = b->n;
	int q;

	assert(!b->decoded);

	if (i == b->cap)
		return IOT_BATCH_FULL;
	q = intern(b, r, index);
	if (q)
		return IOT_BATCH_FULL;

	iot_batch_u64(b, IOT_COLUMN_COMPLETE)[i] = r->complete_ns;
	iot_batch_u64(b, IOT_COLUMN_ISSUE)[i] = r->issue_ns;
	iot_batch_u64(b, IOT_COLUMN_ISSUE_LAST)[i] = r->issue_last_ns;
	iot_batch_u64(b, IOT_COLUMN_START)[i] = r->start_ns;
	iot_batch_u64(b, IOT_COLUMN_INSERT)[i] = r->insert_ns;
	iot_batch_u64(b, IOT_COLUMN_ID)[i] = r->id;
	iot_batch_u64(b, IOT_COLUMN_SECTOR)[i] = r->sector;
	iot_batch_u32(b, IOT_COLUMN_COMPLETE_CPU)[i] = r->complete_cpu;
	iot_batch_u32(b, IOT_COLUMN_ISSUE_CPU)[i] = r->issue_cpu;
	iot_batch_u32(b, IOT_COLUMN_BYTES)[i] = r->bytes;
	iot_batch_u32(b, IOT_COLUMN_BYTES_DONE)[i] = r->bytes_done;
	iot_batch_u32(b, IOT_COLUMN_ERROR)[i] = (uint32_t)r->error;
	iot_batch_u32(b, IOT_COLUMN_STATUS)[i] = r->status;
	iot_batch_u16(b, IOT_COLUMN_SEGMENTS)[i] = r->segments;
	iot_batch_u16(b, IOT_COLUMN_MERGES)[i] = r->merges;
	iot_batch_u16(b, IOT_COLUMN_REQUEUES)[i] = r->requeues;
	iot_batch_u16(b, IOT_COLUMN_HWQ)[i] = r->hwq;
	iot_batch_u16(b, IOT_COLUMN_OP)[i] = index[0];
	iot_batch_u16(b, IOT_COLUMN_CONTEXT)[i] = index[1];
	iot_batch_u16(b, IOT_COLUMN_DEVICE)[i] = index[2];
	iot_batch_u16(b, IOT_COLUMN_FILE)[i] = index[3];
	iot_batch_u8(b, IOT_COLUMN_RING)[i] = r->ring;

	b->first_ns = i == 0 ? r->complete_ns : IOT_MIN(b->first_ns, r->complete_ns);
	b->last_ns = IOT_MAX(b->last_ns, r->complete_ns);
	b->n = i + 1;
	return 0;
}

uint32_t iot_batch_count(const struct iot_batch *b)
{
	return b->n;
}

uint64_t iot_batch_first_ns(const struct iot_batch *b)
{
	return b->first_ns;
}

uint64_t iot_batch_last_ns(const struct iot_batch *b)
{
	return b->last_ns;
}

static inline bool have(const struct iot_batch *b, enum iot_column c)
{
	return b->have & (1ULL << c);
}

/* Entry of record i in a dictionary. */
static inline const uint64_t *entry_of(const struct iot_batch *b, const struct iot_dict *d,
				       enum iot_column index, uint32_t i)
{
	return d->words + (size_t)iot_batch_u16(b, index)[i] * d->n_words;
}

static void get_dictionaries(const struct iot_batch *b, uint32_t i, struct iot_request *r)
{
	const uint64_t *entry;

	if (have(b, IOT_COLUMN_OP)) {
		entry = entry_of(b, &b->op, IOT_COLUMN_OP, i);
		r->flags = (uint32_t)entry[0];
		r->op = (uint8_t)(entry[0] >> 32);
		r->swap = (uint8_t)(entry[0] >> 40);
		r->swap_rule = (uint8_t)(entry[0] >> 48);
		r->origin = (uint8_t)(entry[0] >> 56);
		r->submitter = (uint8_t)entry[1];
	}
	if (have(b, IOT_COLUMN_CONTEXT)) {
		uint64_t comm[2];

		entry = entry_of(b, &b->context, IOT_COLUMN_CONTEXT, i);
		comm[0] = htole64(entry[2]);
		comm[1] = htole64(entry[3]);
		r->pid = (uint32_t)entry[0];
		r->tgid = (uint32_t)(entry[0] >> 32);
		r->cgroup = entry[1];
		memcpy(r->comm, comm, sizeof(comm));
	}
	if (have(b, IOT_COLUMN_DEVICE)) {
		entry = entry_of(b, &b->device, IOT_COLUMN_DEVICE, i);
		r->dev = (uint32_t)entry[0];
		r->part = (uint32_t)(entry[0] >> 32);
	}
	if (have(b, IOT_COLUMN_FILE)) {
		entry = entry_of(b, &b->file, IOT_COLUMN_FILE, i);
		r->ino = entry[0];
		r->fsdev = (uint32_t)entry[1];
	}
}

void iot_batch_get(const struct iot_batch *b, uint32_t i, struct iot_request *ret)
{
	struct iot_request r = {.sector = IOT_SECTOR_NONE, .hwq = IOT_HWQ_NONE};

	assert(i < b->n);

	if (have(b, IOT_COLUMN_COMPLETE))
		r.complete_ns = iot_batch_u64(b, IOT_COLUMN_COMPLETE)[i];
	if (have(b, IOT_COLUMN_ISSUE))
		r.issue_ns = iot_batch_u64(b, IOT_COLUMN_ISSUE)[i];
	if (have(b, IOT_COLUMN_ISSUE_LAST))
		r.issue_last_ns = iot_batch_u64(b, IOT_COLUMN_ISSUE_LAST)[i];
	if (have(b, IOT_COLUMN_START))
		r.start_ns = iot_batch_u64(b, IOT_COLUMN_START)[i];
	if (have(b, IOT_COLUMN_INSERT))
		r.insert_ns = iot_batch_u64(b, IOT_COLUMN_INSERT)[i];
	if (have(b, IOT_COLUMN_ID))
		r.id = iot_batch_u64(b, IOT_COLUMN_ID)[i];
	if (have(b, IOT_COLUMN_SECTOR))
		r.sector = iot_batch_u64(b, IOT_COLUMN_SECTOR)[i];
	if (have(b, IOT_COLUMN_COMPLETE_CPU))
		r.complete_cpu = iot_batch_u32(b, IOT_COLUMN_COMPLETE_CPU)[i];
	if (have(b, IOT_COLUMN_ISSUE_CPU))
		r.issue_cpu = iot_batch_u32(b, IOT_COLUMN_ISSUE_CPU)[i];
	if (have(b, IOT_COLUMN_BYTES))
		r.bytes = iot_batch_u32(b, IOT_COLUMN_BYTES)[i];
	if (have(b, IOT_COLUMN_BYTES_DONE))
		r.bytes_done = iot_batch_u32(b, IOT_COLUMN_BYTES_DONE)[i];
	if (have(b, IOT_COLUMN_ERROR))
		r.error = (int32_t)iot_batch_u32(b, IOT_COLUMN_ERROR)[i];
	if (have(b, IOT_COLUMN_STATUS))
		r.status = iot_batch_u32(b, IOT_COLUMN_STATUS)[i];
	if (have(b, IOT_COLUMN_SEGMENTS))
		r.segments = iot_batch_u16(b, IOT_COLUMN_SEGMENTS)[i];
	if (have(b, IOT_COLUMN_MERGES))
		r.merges = iot_batch_u16(b, IOT_COLUMN_MERGES)[i];
	if (have(b, IOT_COLUMN_REQUEUES))
		r.requeues = iot_batch_u16(b, IOT_COLUMN_REQUEUES)[i];
	if (have(b, IOT_COLUMN_HWQ))
		r.hwq = iot_batch_u16(b, IOT_COLUMN_HWQ)[i];
	if (have(b, IOT_COLUMN_RING))
		r.ring = iot_batch_u8(b, IOT_COLUMN_RING)[i];
	get_dictionaries(b, i, &r);
	*ret = r;
}
