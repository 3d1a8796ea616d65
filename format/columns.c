// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns.c - forward: the arrays of a batch become the values that codecs store well.
 *
 * Durations instead of absolute times, ids by the CPU that gave them, sectors by where the same
 * context ended its last request. Most columns of most blocks are constant, or equal to their
 * reference: both are found by one memcmp over the array, and cost next to nothing.
 *
 * Nulls on their way through the arrays are NULL_MARK, the one value whose zigzag plus one does
 * not fit: a column that really contains it is stored raw, without nulls.
 */
#include "format/columns.h"

#include <assert.h>

#define NULL_MARK (1ULL << 63)
#define ID_CPU_BITS 13
#define ID_CPU_MASK ((1U << ID_CPU_BITS) - 1)
#define BIT(c) (1ULL << (c))

enum iot_base iot_column_preferred(enum iot_column c)
{
	if (c == IOT_COLUMN_COMPLETE || c == IOT_COLUMN_FILE_INO)
		return IOT_BASE_DELTA;
	return iot_column_refs(c) ? IOT_BASE_REF : IOT_BASE_RAW;
}

uint64_t iot_column_refs(enum iot_column c)
{
	switch (c) {
	case IOT_COLUMN_ISSUE:
		return BIT(IOT_COLUMN_COMPLETE);
	case IOT_COLUMN_ISSUE_LAST:
		return BIT(IOT_COLUMN_ISSUE);
	case IOT_COLUMN_START:
		return BIT(IOT_COLUMN_COMPLETE) | BIT(IOT_COLUMN_ISSUE);
	case IOT_COLUMN_INSERT:
		return BIT(IOT_COLUMN_COMPLETE) | BIT(IOT_COLUMN_ISSUE) | BIT(IOT_COLUMN_START);
	case IOT_COLUMN_ISSUE_CPU:
		return BIT(IOT_COLUMN_COMPLETE_CPU);
	case IOT_COLUMN_ID_CPU:
		return BIT(IOT_COLUMN_ISSUE_CPU);
	case IOT_COLUMN_ID:
		return BIT(IOT_COLUMN_ID_CPU);
	case IOT_COLUMN_BYTES_DONE:
		return BIT(IOT_COLUMN_BYTES);
	case IOT_COLUMN_SECTOR:
		return BIT(IOT_COLUMN_CONTEXT) | BIT(IOT_COLUMN_BYTES);
	default:
		return 0;
	}
}

uint64_t iot_column_tables(enum iot_column c)
{
	switch (c) {
	case IOT_COLUMN_OP:
		return BIT(IOT_COLUMN_OP_WORD) | BIT(IOT_COLUMN_OP_SOURCE);
	case IOT_COLUMN_CONTEXT:
		return BIT(IOT_COLUMN_CONTEXT_PIDS) | BIT(IOT_COLUMN_CONTEXT_CGROUP) |
		       BIT(IOT_COLUMN_CONTEXT_COMM0) | BIT(IOT_COLUMN_CONTEXT_COMM1);
	case IOT_COLUMN_DEVICE:
		return BIT(IOT_COLUMN_DEVICE_WORD);
	case IOT_COLUMN_FILE:
		return BIT(IOT_COLUMN_FILE_INO) | BIT(IOT_COLUMN_FILE_FSDEV);
	default:
		return 0;
	}
}

struct iot_dict *iot_column_dict(struct iot_batch *b, enum iot_column c, unsigned int *ret_word)
{
	*ret_word = 0;
	switch (c) {
	case IOT_COLUMN_OP:
		return &b->op;
	case IOT_COLUMN_CONTEXT:
		return &b->context;
	case IOT_COLUMN_DEVICE:
		return &b->device;
	case IOT_COLUMN_FILE:
		return &b->file;
	case IOT_COLUMN_OP_WORD:
	case IOT_COLUMN_OP_SOURCE:
		*ret_word = c - IOT_COLUMN_OP_WORD;
		return &b->op;
	case IOT_COLUMN_CONTEXT_PIDS:
	case IOT_COLUMN_CONTEXT_CGROUP:
	case IOT_COLUMN_CONTEXT_COMM0:
	case IOT_COLUMN_CONTEXT_COMM1:
		*ret_word = c - IOT_COLUMN_CONTEXT_PIDS;
		return &b->context;
	case IOT_COLUMN_DEVICE_WORD:
		return &b->device;
	case IOT_COLUMN_FILE_INO:
	case IOT_COLUMN_FILE_FSDEV:
		*ret_word = c - IOT_COLUMN_FILE_INO;
		return &b->file;
	default:
		return NULL;
	}
}

/* A run of bytes in which every element of `width` equals the one before. */
static bool all_equal(const void *array, size_t n, size_t width)
{
	return memcmp(array, (const uint8_t *)array + width, (n - 1) * width) == 0;
}

static void widen(const void *array, unsigned int width, size_t n, uint64_t *v)
{
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint8_t *)array)[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint16_t *)array)[i];
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			v[i] = ((const uint32_t *)array)[i];
		break;
	default:
		memcpy(v, array, n * sizeof(*v));
	}
}

/* Time columns against a later or earlier time of the same request. */
static void against_times(const struct iot_batch *b, enum iot_column c, uint64_t *v)
{
	const uint64_t *complete = iot_batch_u64(b, IOT_COLUMN_COMPLETE);
	const uint64_t *issue = iot_batch_u64(b, IOT_COLUMN_ISSUE);
	const uint64_t *start = iot_batch_u64(b, IOT_COLUMN_START);
	const uint64_t *x = iot_batch_u64(b, c);
	size_t n = b->n;

	switch (c) {
	case IOT_COLUMN_ISSUE:
		for (size_t i = 0; i < n; i++)
			v[i] = x[i] ? complete[i] - x[i] : NULL_MARK;
		break;
	case IOT_COLUMN_ISSUE_LAST:
		for (size_t i = 0; i < n; i++)
			v[i] = x[i] - issue[i];
		break;
	case IOT_COLUMN_START:
		for (size_t i = 0; i < n; i++)
			v[i] = x[i] ? (issue[i] ? issue[i] : complete[i]) - x[i] : NULL_MARK;
		break;
	default:
		for (size_t i = 0; i < n; i++) {
			uint64_t ref = start[i] ? start[i] : issue[i] ? issue[i] : complete[i];

			v[i] = x[i] ? x[i] - ref : NULL_MARK;
		}
	}
}

static void id_by_cpu(const struct iot_batch *b, uint64_t *v, uint64_t *keys)
{
	const uint64_t *id = iot_batch_u64(b, IOT_COLUMN_ID);

	memset(keys, 0, (ID_CPU_MASK + 1) * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		uint64_t counter = id[i] >> ID_CPU_BITS;
		uint64_t *next = &keys[id[i] & ID_CPU_MASK];

		v[i] = counter - *next;
		*next = counter + 1;
	}
}

static void sector_by_context(const struct iot_batch *b, uint64_t *v, uint64_t *keys)
{
	const uint64_t *sector = iot_batch_u64(b, IOT_COLUMN_SECTOR);
	const uint32_t *bytes = iot_batch_u32(b, IOT_COLUMN_BYTES);
	const uint16_t *context = iot_batch_u16(b, IOT_COLUMN_CONTEXT);

	memset(keys, 0, b->context.n * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		uint64_t *end = &keys[context[i]];

		if (sector[i] == IOT_SECTOR_NONE) {
			v[i] = NULL_MARK;
			continue;
		}
		v[i] = sector[i] - *end;
		*end = sector[i] + (bytes[i] >> 9);
	}
}

static void base_ref(const struct iot_batch *b, enum iot_column c, uint64_t *v, uint64_t *keys)
{
	const uint32_t *a, *x;
	const uint64_t *id;
	size_t n = b->n;

	switch (c) {
	case IOT_COLUMN_ISSUE_CPU:
		a = iot_batch_u32(b, IOT_COLUMN_COMPLETE_CPU);
		x = iot_batch_u32(b, c);
		for (size_t i = 0; i < n; i++)
			v[i] = x[i] ^ a[i];
		break;
	case IOT_COLUMN_ID_CPU:
		a = iot_batch_u32(b, IOT_COLUMN_ISSUE_CPU);
		id = iot_batch_u64(b, IOT_COLUMN_ID);
		for (size_t i = 0; i < n; i++)
			v[i] = (id[i] & ID_CPU_MASK) ^ a[i];
		break;
	case IOT_COLUMN_ID:
		id_by_cpu(b, v, keys);
		break;
	case IOT_COLUMN_BYTES_DONE:
		a = iot_batch_u32(b, IOT_COLUMN_BYTES);
		x = iot_batch_u32(b, c);
		for (size_t i = 0; i < n; i++)
			v[i] = (uint64_t)a[i] - x[i];
		break;
	case IOT_COLUMN_SECTOR:
		sector_by_context(b, v, keys);
		break;
	default:
		against_times(b, c, v);
	}
}

static void base_raw(const struct iot_batch *b, enum iot_column c, uint64_t *v)
{
	const uint64_t *id = iot_batch_u64(b, IOT_COLUMN_ID);
	const int32_t *error;

	switch (c) {
	case IOT_COLUMN_ID_CPU:
		for (size_t i = 0; i < b->n; i++)
			v[i] = id[i] & ID_CPU_MASK;
		break;
	case IOT_COLUMN_ID:
		for (size_t i = 0; i < b->n; i++)
			v[i] = id[i] >> ID_CPU_BITS;
		break;
	case IOT_COLUMN_ERROR:
		error = b->arrays[c];
		for (size_t i = 0; i < b->n; i++)
			v[i] = (uint64_t)(int64_t)error[i];
		break;
	default:
		widen(b->arrays[c], iot_batch_width[c], b->n, v);
	}
}

enum iot_column iot_column_twin(enum iot_column c)
{
	switch (c) {
	case IOT_COLUMN_ISSUE_LAST:
		return IOT_COLUMN_ISSUE;
	case IOT_COLUMN_ISSUE_CPU:
		return IOT_COLUMN_COMPLETE_CPU;
	case IOT_COLUMN_BYTES_DONE:
		return IOT_COLUMN_BYTES;
	default:
		return 0;
	}
}

static bool has_nulls(enum iot_column c, enum iot_base base)
{
	if (c == IOT_COLUMN_SECTOR)
		return true;
	return base == IOT_BASE_REF &&
	       (c == IOT_COLUMN_ISSUE || c == IOT_COLUMN_START || c == IOT_COLUMN_INSERT);
}

/* Four at a time: one chain of ORs would be as long as the column. */
static uint64_t or_all(const uint64_t *v, size_t n)
{
	uint64_t any[4] = {0};
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		any[0] |= v[i];
		any[1] |= v[i + 1];
		any[2] |= v[i + 2];
		any[3] |= v[i + 3];
	}
	for (; i < n; i++)
		any[0] |= v[i];
	return any[0] | any[1] | any[2] | any[3];
}

/* Shift, zigzag, null: in this order. */
static void finish(uint64_t *v, size_t n, unsigned int shift, unsigned int flags)
{
	if (flags & IOT_COLUMN_NULLS) {
		for (size_t i = 0; i < n; i++) {
			uint64_t x = v[i] >> shift;

			if (flags & IOT_COLUMN_ZIGZAG) {
				int64_t y = (int64_t)v[i] >> shift;

				x = (uint64_t)y << 1 ^ (uint64_t)(y >> 63);
			}
			v[i] = v[i] == NULL_MARK ? 0 : x + 1;
		}
	} else if (flags & IOT_COLUMN_ZIGZAG) {
		for (size_t i = 0; i < n; i++) {
			int64_t y = (int64_t)v[i] >> shift;

			v[i] = (uint64_t)y << 1 ^ (uint64_t)(y >> 63);
		}
	} else if (shift) {
		for (size_t i = 0; i < n; i++)
			v[i] >>= shift;
	}
}

/* What the values allow; false: a real value looks like a null. */
static bool choose_finish(const struct iot_batch *b, enum iot_column c, const uint64_t *v,
			  struct iot_column_form *f)
{
	uint64_t any = or_all(v, f->count);

	f->flags = 0;
	if (any & NULL_MARK && has_nulls(c, f->base)) {
		const uint64_t *x = iot_batch_u64(b, c);
		uint64_t null = c == IOT_COLUMN_SECTOR ? IOT_SECTOR_NONE : 0;

		any = 0;
		for (size_t i = 0; i < f->count; i++) {
			if (v[i] != NULL_MARK)
				any |= v[i];
			else if (x[i] == null)
				f->flags |= IOT_COLUMN_NULLS;
			else
				return false;
		}
	}
	if (any & NULL_MARK)
		f->flags |= IOT_COLUMN_ZIGZAG;
	f->shift = any ? (uint8_t)__builtin_ctzll(any) : 0;
	if (any == 0 && !f->flags) {
		f->constant = true;
		f->value = 0;
	}
	return true;
}

static void dict_forward(const struct iot_batch *b, enum iot_column c, enum iot_base base,
			 uint64_t *v, struct iot_column_form *f)
{
	unsigned int word;
	/* The dictionary is only read; the accessor serves the inverse too. */
	const struct iot_dict *d = iot_column_dict((struct iot_batch *)b, c, &word);

	f->count = d->n;
	for (size_t i = 0; i < d->n; i++)
		v[i] = d->words[i * d->n_words + word];
	if (all_equal(v, d->n, sizeof(*v))) {
		f->constant = true;
		f->value = v[0];
		return;
	}
	f->base = base;
	for (size_t i = d->n - 1; base == IOT_BASE_DELTA && i > 0; i--)
		v[i] -= v[i - 1];
	choose_finish(b, c, v, f);
	finish(v, f->count, f->shift, f->flags);
}

static bool shortcut(const struct iot_batch *b, enum iot_column c, enum iot_base base,
		     struct iot_column_form *f)
{
	enum iot_column twin = iot_column_twin(c);
	unsigned int width = iot_batch_width[c];

	if (width && c != IOT_COLUMN_ID && all_equal(b->arrays[c], b->n, width)) {
		f->constant = true;
		widen(b->arrays[c], width, 1, &f->value);
		if (c == IOT_COLUMN_ERROR)
			f->value = (uint64_t)(int64_t)(int32_t)f->value;
		return true;
	}
	if (twin && base == IOT_BASE_REF &&
	    memcmp(b->arrays[c], b->arrays[twin], (size_t)b->n * width) == 0) {
		f->constant = true;
		f->base = IOT_BASE_REF;
		return true;
	}
	return false;
}

void iot_column_forward(const struct iot_batch *b, enum iot_column c, enum iot_base base,
			uint64_t *v, uint64_t *keys, struct iot_column_form *ret)
{
	struct iot_column_form f = {.column = (uint8_t)c, .count = b->n};

	assert(b->n > 0 && iot_column_is_known(c));

	if (iot_column_is_dict(c)) {
		dict_forward(b, c, base, v, &f);
		*ret = f;
		return;
	}
	if (shortcut(b, c, base, &f)) {
		*ret = f;
		return;
	}
	f.base = base;
	if (base == IOT_BASE_DELTA) {
		const uint64_t *x = iot_batch_u64(b, c);

		v[0] = x[0];
		for (size_t i = 1; i < b->n; i++)
			v[i] = x[i] - x[i - 1];
	} else if (base == IOT_BASE_REF) {
		base_ref(b, c, v, keys);
	}
	if (base == IOT_BASE_RAW || !choose_finish(b, c, v, &f)) {
		f.base = IOT_BASE_RAW;
		base_raw(b, c, v);
		if (c == IOT_COLUMN_SECTOR) {
			for (size_t i = 0; i < b->n; i++)
				v[i] = v[i] == IOT_SECTOR_NONE ? NULL_MARK : v[i];
		}
		if (!choose_finish(b, c, v, &f)) {
			/* A sector of 2^63: no nulls then, IOT_SECTOR_NONE as itself. */
			base_raw(b, c, v);
			f.flags = IOT_COLUMN_ZIGZAG;
			f.shift = 0;
		}
	}
	if (!f.constant)
		finish(v, f.count, f.shift, f.flags);
	*ret = f;
}
