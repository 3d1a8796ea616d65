// SPDX-License-Identifier: BSD-2-Clause
/*
 * batch.c - requests: rows in, columns in memory, rows out; and the table of their columns.
 *
 * Adding is the hot path of the daemon: about 25 plain stores and four dictionary look-ups that
 * nearly always hit at once. Nothing is computed here that encoding can compute over
 * whole columns.
 */
#include "format/batch-def.h"
#include "format/block.h"
#include "format/columns.h"

#include <assert.h>
#include <endian.h>

#define MAX_OPS 4096U
#define MAX_CONTEXTS 4096U
#define MAX_DEVICES 4096U

/*
 * The four indexes of a record, or IOT_IOT_REQUEST_DICT_FULL. An entry added before a later dictionary turned
 * out full stays, unused; there are still no more entries than records, as a full dictionary had
 * at least as many records as any other has entries.
 */
static inline int intern(struct iot_batch *b, const struct iot_request *r, uint16_t index[4])
{
	uint64_t op[2], context[4], device[1], file[2];
	int q;

	op[0] = r->flags | (uint64_t)r->op << 32 | (uint64_t)r->swap << 40 |
		(uint64_t)r->swap_rule << 48 | (uint64_t)r->origin << 56;
	op[1] = r->submitter | (uint64_t)r->file_by << 8 | (uint64_t)r->cgroup_by << 16 |
		(uint64_t)r->reclaim << 24 | (uint64_t)r->unswapped_bytes << 32;
	context[0] = r->pid | (uint64_t)r->tgid << 32;
	context[1] = r->cgroup;
	memcpy(&context[2], r->comm, 16);
	context[2] = le64toh(context[2]);
	context[3] = le64toh(context[3]);
	device[0] = r->dev | (uint64_t)r->part << 32;
	file[0] = r->ino;
	file[1] = r->fsdev;

	q = iot_dict_add(&b->dicts[IOT_REQUEST_DICT_OP], op, IOT_ARRAY_SIZE(op), &index[0]);
	if (q)
		return q;
	q = iot_dict_add(&b->dicts[IOT_REQUEST_DICT_CONTEXT], context, IOT_ARRAY_SIZE(context),
			 &index[1]);
	if (q)
		return q;
	q = iot_dict_add(&b->dicts[IOT_REQUEST_DICT_DEVICE], device, IOT_ARRAY_SIZE(device),
			 &index[2]);
	if (q)
		return q;
	return iot_dict_add(&b->dicts[IOT_REQUEST_DICT_FILE], file, IOT_ARRAY_SIZE(file),
			    &index[3]);
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

	iot_batch_added(b, r->complete_ns);
	return 0;
}

/* Entry of record i in a dictionary. */
static inline const uint64_t *entry_of(const struct iot_batch *b, const struct iot_dict *d,
				       enum iot_column index, uint32_t i)
{
	return d->words + (size_t)iot_batch_u16(b, index)[i] * d->n_words;
}

static void set_op(const uint64_t *entry, struct iot_request *r)
{
	r->flags = (uint32_t)entry[0];
	r->op = (uint8_t)(entry[0] >> 32);
	r->swap = (uint8_t)(entry[0] >> 40);
	r->swap_rule = (uint8_t)(entry[0] >> 48);
	r->origin = (uint8_t)(entry[0] >> 56);
	r->submitter = (uint8_t)entry[1];
	r->file_by = (uint8_t)(entry[1] >> 8);
	r->cgroup_by = (uint8_t)(entry[1] >> 16);
	r->reclaim = (uint8_t)(entry[1] >> 24);
	r->unswapped_bytes = (uint32_t)(entry[1] >> 32);
}

static void set_device(const uint64_t *entry, struct iot_request *r)
{
	r->dev = (uint32_t)entry[0];
	r->part = (uint32_t)(entry[0] >> 32);
}

static void get_dictionaries(const struct iot_batch *b, uint32_t i, struct iot_request *r)
{
	const uint64_t *entry;

	if (iot_batch_has(b, IOT_COLUMN_OP))
		set_op(entry_of(b, &b->dicts[IOT_REQUEST_DICT_OP], IOT_COLUMN_OP, i), r);
	if (iot_batch_has(b, IOT_COLUMN_CONTEXT)) {
		uint64_t comm[2];

		entry = entry_of(b, &b->dicts[IOT_REQUEST_DICT_CONTEXT], IOT_COLUMN_CONTEXT, i);
		comm[0] = htole64(entry[2]);
		comm[1] = htole64(entry[3]);
		r->pid = (uint32_t)entry[0];
		r->tgid = (uint32_t)(entry[0] >> 32);
		r->cgroup = entry[1];
		memcpy(r->comm, comm, sizeof(comm));
	}
	if (iot_batch_has(b, IOT_COLUMN_DEVICE))
		set_device(entry_of(b, &b->dicts[IOT_REQUEST_DICT_DEVICE], IOT_COLUMN_DEVICE, i),
			   r);
	if (iot_batch_has(b, IOT_COLUMN_FILE)) {
		entry = entry_of(b, &b->dicts[IOT_REQUEST_DICT_FILE], IOT_COLUMN_FILE, i);
		r->ino = entry[0];
		r->fsdev = (uint32_t)entry[1];
	}
}

void iot_batch_get(const struct iot_batch *b, uint32_t i, struct iot_request *ret)
{
	struct iot_request r = {.sector = IOT_SECTOR_NONE, .hwq = IOT_HWQ_NONE};

	assert(i < b->n && b->schema == &iot_schema_request);

	if (iot_batch_has(b, IOT_COLUMN_COMPLETE))
		r.complete_ns = iot_batch_u64(b, IOT_COLUMN_COMPLETE)[i];
	if (iot_batch_has(b, IOT_COLUMN_ISSUE))
		r.issue_ns = iot_batch_u64(b, IOT_COLUMN_ISSUE)[i];
	if (iot_batch_has(b, IOT_COLUMN_ISSUE_LAST))
		r.issue_last_ns = iot_batch_u64(b, IOT_COLUMN_ISSUE_LAST)[i];
	if (iot_batch_has(b, IOT_COLUMN_START))
		r.start_ns = iot_batch_u64(b, IOT_COLUMN_START)[i];
	if (iot_batch_has(b, IOT_COLUMN_INSERT))
		r.insert_ns = iot_batch_u64(b, IOT_COLUMN_INSERT)[i];
	if (iot_batch_has(b, IOT_COLUMN_ID))
		r.id = iot_batch_u64(b, IOT_COLUMN_ID)[i];
	if (iot_batch_has(b, IOT_COLUMN_SECTOR))
		r.sector = iot_batch_u64(b, IOT_COLUMN_SECTOR)[i];
	if (iot_batch_has(b, IOT_COLUMN_COMPLETE_CPU))
		r.complete_cpu = iot_batch_u32(b, IOT_COLUMN_COMPLETE_CPU)[i];
	if (iot_batch_has(b, IOT_COLUMN_ISSUE_CPU))
		r.issue_cpu = iot_batch_u32(b, IOT_COLUMN_ISSUE_CPU)[i];
	if (iot_batch_has(b, IOT_COLUMN_BYTES))
		r.bytes = iot_batch_u32(b, IOT_COLUMN_BYTES)[i];
	if (iot_batch_has(b, IOT_COLUMN_BYTES_DONE))
		r.bytes_done = iot_batch_u32(b, IOT_COLUMN_BYTES_DONE)[i];
	if (iot_batch_has(b, IOT_COLUMN_ERROR))
		r.error = (int32_t)iot_batch_u32(b, IOT_COLUMN_ERROR)[i];
	if (iot_batch_has(b, IOT_COLUMN_STATUS))
		r.status = iot_batch_u32(b, IOT_COLUMN_STATUS)[i];
	if (iot_batch_has(b, IOT_COLUMN_SEGMENTS))
		r.segments = iot_batch_u16(b, IOT_COLUMN_SEGMENTS)[i];
	if (iot_batch_has(b, IOT_COLUMN_MERGES))
		r.merges = iot_batch_u16(b, IOT_COLUMN_MERGES)[i];
	if (iot_batch_has(b, IOT_COLUMN_REQUEUES))
		r.requeues = iot_batch_u16(b, IOT_COLUMN_REQUEUES)[i];
	if (iot_batch_has(b, IOT_COLUMN_HWQ))
		r.hwq = iot_batch_u16(b, IOT_COLUMN_HWQ)[i];
	if (iot_batch_has(b, IOT_COLUMN_RING))
		r.ring = iot_batch_u8(b, IOT_COLUMN_RING)[i];
	get_dictionaries(b, i, &r);
	*ret = r;
}

static const void *array_of(const struct iot_batch *b, unsigned int c)
{
	return iot_batch_has(b, c) ? b->arrays[c] : NULL;
}

void iot_batch_columns(const struct iot_batch *b, struct iot_request_columns *ret)
{
	assert(b->schema == &iot_schema_request);

	*ret = (struct iot_request_columns){
		.n = b->n,
		.n_ops = b->dicts[IOT_REQUEST_DICT_OP].n,
		.n_devices = b->dicts[IOT_REQUEST_DICT_DEVICE].n,
		.complete_ns = array_of(b, IOT_COLUMN_COMPLETE),
		.issue_ns = array_of(b, IOT_COLUMN_ISSUE),
		.issue_last_ns = array_of(b, IOT_COLUMN_ISSUE_LAST),
		.start_ns = array_of(b, IOT_COLUMN_START),
		.insert_ns = array_of(b, IOT_COLUMN_INSERT),
		.bytes = array_of(b, IOT_COLUMN_BYTES),
		.bytes_done = array_of(b, IOT_COLUMN_BYTES_DONE),
		.error = array_of(b, IOT_COLUMN_ERROR),
		.status = array_of(b, IOT_COLUMN_STATUS),
		.merges = array_of(b, IOT_COLUMN_MERGES),
		.requeues = array_of(b, IOT_COLUMN_REQUEUES),
		.op = array_of(b, IOT_COLUMN_OP),
		.device = array_of(b, IOT_COLUMN_DEVICE),
	};
}

void iot_batch_op(const struct iot_batch *b, uint16_t entry, struct iot_request *ret)
{
	const struct iot_dict *d = &b->dicts[IOT_REQUEST_DICT_OP];

	assert(entry < d->n);
	set_op(d->words + (size_t)entry * d->n_words, ret);
}

void iot_batch_device(const struct iot_batch *b, uint16_t entry, struct iot_request *ret)
{
	const struct iot_dict *d = &b->dicts[IOT_REQUEST_DICT_DEVICE];

	assert(entry < d->n);
	set_device(d->words + (size_t)entry * d->n_words, ret);
}

static void request_key(const struct iot_batch *b, uint32_t i, struct iot_row_key *ret)
{
	ret->probe = IOT_PROBE_BLOCK_COMPLETE;
	if (iot_batch_has(b, IOT_COLUMN_COMPLETE))
		ret->ns = iot_batch_u64(b, IOT_COLUMN_COMPLETE)[i];
	if (iot_batch_has(b, IOT_COLUMN_ID))
		ret->id = iot_batch_u64(b, IOT_COLUMN_ID)[i];
	if (iot_batch_has(b, IOT_COLUMN_COMPLETE_CPU))
		ret->cpu = iot_batch_u32(b, IOT_COLUMN_COMPLETE_CPU)[i];
	if (iot_batch_has(b, IOT_COLUMN_OP))
		ret->no_start = entry_of(b, &b->dicts[IOT_REQUEST_DICT_OP], IOT_COLUMN_OP, i)[0] &
				IOT_FLAG_NO_START;
}

#define WORD(n_bits, n_dict, n_word)                                                    \
	{                                                                               \
		n_bits, .table = 1 + (n_dict), .word = (n_word), .flags = IOT_DESC_WORD \
	}
#define BIT(c) (1ULL << (c))
#define MUST IOT_DESC_MUST

static void request_id_range(const struct iot_batch *b, uint64_t *ret_min, uint64_t *ret_max)
{
	iot_u64_range(iot_batch_u64(b, IOT_COLUMN_ID), b->n, ret_min, ret_max);
}

const struct iot_schema iot_schema_request =
	{
		.stream = IOT_STREAM_BLOCK,
		.kind = IOT_BLOCK_REQUESTS,
		.kind_open = IOT_BLOCK_OPEN,
		.time = IOT_COLUMN_COMPLETE,
		.ids = IOT_COLS_ID,
		.keys = IOT_COLS_COMPLETE | IOT_COLS_ID | IOT_COLS_CPU | IOT_COLS_OP,
		.columns =
			{
				[IOT_COLUMN_COMPLETE] = {64, 8, IOT_BASE_DELTA, .flags = MUST},
				[IOT_COLUMN_ISSUE] = {64, 8, IOT_BASE_REF,
						      .flags = IOT_DESC_NULLS_REF,
						      .refs = BIT(IOT_COLUMN_COMPLETE)},
				[IOT_COLUMN_ISSUE_LAST] = {64, 8, IOT_BASE_REF,
							   .twin = IOT_COLUMN_ISSUE,
							   .refs = BIT(IOT_COLUMN_ISSUE)},
				[IOT_COLUMN_START] = {64, 8, IOT_BASE_REF,
						      .flags = IOT_DESC_NULLS_REF,
						      .refs = BIT(IOT_COLUMN_COMPLETE) |
							      BIT(IOT_COLUMN_ISSUE)},
				[IOT_COLUMN_INSERT] = {64, 8, IOT_BASE_REF,
						       .flags = IOT_DESC_NULLS_REF,
						       .refs = BIT(IOT_COLUMN_COMPLETE) |
							       BIT(IOT_COLUMN_ISSUE) |
							       BIT(IOT_COLUMN_START)},
				[IOT_COLUMN_COMPLETE_CPU] = {32, 4},
				[IOT_COLUMN_ISSUE_CPU] = {32, 4, IOT_BASE_REF,
							  .twin = IOT_COLUMN_COMPLETE_CPU,
							  .refs = BIT(IOT_COLUMN_COMPLETE_CPU)},
				[IOT_COLUMN_ID_CPU] = {13, 0, IOT_BASE_REF,
						       .flags = MUST | IOT_DESC_SPLIT,
						       .refs = BIT(IOT_COLUMN_ISSUE_CPU)},
				[IOT_COLUMN_ID] = {51, 8, IOT_BASE_REF,
						   .flags = MUST | IOT_DESC_SPLIT,
						   .needs = BIT(IOT_COLUMN_ID_CPU)},
				[IOT_COLUMN_OP] = {16, 2, .index = 1 + IOT_REQUEST_DICT_OP,
						   .needs = BIT(IOT_COLUMN_OP_WORD) |
							    BIT(IOT_COLUMN_OP_SOURCE)},
				[IOT_COLUMN_CONTEXT] =
					{16, 2, .index = 1 + IOT_REQUEST_DICT_CONTEXT,
					 .needs = BIT(IOT_COLUMN_CONTEXT_PIDS) |
						  BIT(IOT_COLUMN_CONTEXT_CGROUP) |
						  BIT(IOT_COLUMN_CONTEXT_COMM0) |
						  BIT(IOT_COLUMN_CONTEXT_COMM1)},
				[IOT_COLUMN_DEVICE] = {16, 2, .index = 1 + IOT_REQUEST_DICT_DEVICE,
						       .needs = BIT(IOT_COLUMN_DEVICE_WORD)},
				[IOT_COLUMN_FILE] =
					{16, 2, .index = 1 + IOT_REQUEST_DICT_FILE,
					 .flags = IOT_DESC_TRY_BYTES,
					 .needs = BIT(IOT_COLUMN_FILE_INO) |
						  BIT(IOT_COLUMN_FILE_FSDEV)},
				[IOT_COLUMN_BYTES] = {32, 4},
				[IOT_COLUMN_BYTES_DONE] =
					{32, 4, IOT_BASE_REF, .twin = IOT_COLUMN_BYTES,
					 .refs = BIT(IOT_COLUMN_BYTES)},
				[IOT_COLUMN_SECTOR] =
					{
						64, 8,
						IOT_BASE_REF,
						.flags = IOT_DESC_NULLS_ONES | IOT_DESC_TRY_BYTES |
							 IOT_DESC_TRY_RAW,
						.refs = BIT(IOT_COLUMN_CONTEXT) |
							BIT(IOT_COLUMN_BYTES)},
				[IOT_COLUMN_ERROR] = {64, 4, .flags = IOT_DESC_SIGNED},
				[IOT_COLUMN_STATUS] = {32, 4},
				[IOT_COLUMN_SEGMENTS] = {16, 2},
				[IOT_COLUMN_MERGES] = {16, 2},
				[IOT_COLUMN_REQUEUES] = {16, 2},
				[IOT_COLUMN_HWQ] = {16, 2},
				[IOT_COLUMN_RING] = {8, 1},
				[IOT_COLUMN_OP_WORD] = WORD(64, IOT_REQUEST_DICT_OP, 0),
				[IOT_COLUMN_OP_SOURCE] = WORD(64, IOT_REQUEST_DICT_OP, 1),
				[IOT_COLUMN_CONTEXT_PIDS] = WORD(64, IOT_REQUEST_DICT_CONTEXT, 0),
				[IOT_COLUMN_CONTEXT_CGROUP] = WORD(64, IOT_REQUEST_DICT_CONTEXT, 1),
				[IOT_COLUMN_CONTEXT_COMM0] = WORD(64, IOT_REQUEST_DICT_CONTEXT, 2),
				[IOT_COLUMN_CONTEXT_COMM1] = WORD(64, IOT_REQUEST_DICT_CONTEXT, 3),
				[IOT_COLUMN_DEVICE_WORD] = WORD(64, IOT_REQUEST_DICT_DEVICE, 0),
				[IOT_COLUMN_FILE_INO] = {64, 0,
							 IOT_BASE_DELTA, .table = 1 + IOT_REQUEST_DICT_FILE,
							 .word = 0,
							 .flags =
								 IOT_DESC_WORD | IOT_DESC_TRY_BYTES},
				[IOT_COLUMN_FILE_FSDEV] = WORD(32, IOT_REQUEST_DICT_FILE, 1),
			},
		.dicts =
			{
				[IOT_REQUEST_DICT_OP] = {MAX_OPS, 2, 1},
				[IOT_REQUEST_DICT_CONTEXT] = {MAX_CONTEXTS, 4, 1},
				[IOT_REQUEST_DICT_DEVICE] = {MAX_DEVICES, 1, 1},
				[IOT_REQUEST_DICT_FILE] = {IOT_BLOCK_RECORDS_MAX, 2, 1},
			},
		.key = request_key,
		.id_range = request_id_range,
		.ref = iot_request_ref,
		.unref = iot_request_unref,
		.split = iot_request_split,
		.unsplit = iot_request_unsplit,
};
