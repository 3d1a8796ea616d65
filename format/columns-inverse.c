// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns-inverse.c - stored values back into the arrays of a batch.
 *
 * The mirror of columns.c, with suspicion: which transforms a column may have is checked, and
 * every value must fit the field it belongs to and every index its dictionary. References are
 * arrays of the same batch that were decoded before and hence already checked. Arithmetic is
 * unsigned throughout.
 */
#include "format/columns.h"

#include <assert.h>

#define NULL_MARK (1ULL << 63)
#define ID_CPU_BITS 13
#define ID_CPU_MASK ((1U << ID_CPU_BITS) - 1)

static int check_form(const struct iot_column_form *f)
{
	enum iot_column c = f->column;
	bool time = c == IOT_COLUMN_ISSUE || c == IOT_COLUMN_START || c == IOT_COLUMN_INSERT;

	if (f->flags & ~(unsigned int)(IOT_COLUMN_NULLS | IOT_COLUMN_ZIGZAG) || f->shift > 63)
		return -EBADMSG;
	if (f->base != IOT_BASE_RAW && f->base != iot_column_preferred(c))
		return -EBADMSG;
	if (f->flags & IOT_COLUMN_NULLS && c != IOT_COLUMN_SECTOR &&
	    !(time && f->base == IOT_BASE_REF))
		return -EBADMSG;
	return 0;
}

/* Stored to plain values; nulls become NULL_MARK. */
static void unfinish(uint64_t *v, size_t n, unsigned int shift, unsigned int flags)
{
	bool nulls = flags & IOT_COLUMN_NULLS;

	if (flags & IOT_COLUMN_ZIGZAG) {
		for (size_t i = 0; i < n; i++) {
			uint64_t x = v[i] - nulls;

			x = (x >> 1 ^ -(x & 1)) << shift;
			v[i] = nulls && v[i] == 0 ? NULL_MARK : x;
		}
	} else if (nulls) {
		for (size_t i = 0; i < n; i++)
			v[i] = v[i] == 0 ? NULL_MARK : (v[i] - 1) << shift;
	} else if (shift) {
		for (size_t i = 0; i < n; i++)
			v[i] <<= shift;
	}
}

static void sum_up(uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		v[i] += v[i - 1];
}

static void undo_times(const struct iot_batch *b, enum iot_column c, bool nulls, uint64_t *v)
{
	const uint64_t *complete = iot_batch_u64(b, IOT_COLUMN_COMPLETE);
	const uint64_t *issue = iot_batch_u64(b, IOT_COLUMN_ISSUE);
	const uint64_t *start = iot_batch_u64(b, IOT_COLUMN_START);
	size_t n = b->n;

	switch (c) {
	case IOT_COLUMN_ISSUE:
		for (size_t i = 0; i < n; i++)
			v[i] = nulls && v[i] == NULL_MARK ? 0 : complete[i] - v[i];
		break;
	case IOT_COLUMN_ISSUE_LAST:
		for (size_t i = 0; i < n; i++)
			v[i] += issue[i];
		break;
	case IOT_COLUMN_START:
		for (size_t i = 0; i < n; i++) {
			uint64_t ref = issue[i] ? issue[i] : complete[i];

			v[i] = nulls && v[i] == NULL_MARK ? 0 : ref - v[i];
		}
		break;
	default:
		for (size_t i = 0; i < n; i++) {
			uint64_t ref = start[i] ? start[i] : issue[i] ? issue[i] : complete[i];

			v[i] = nulls && v[i] == NULL_MARK ? 0 : ref + v[i];
		}
	}
}

static void undo_sector(const struct iot_batch *b, bool nulls, uint64_t *v, uint64_t *keys)
{
	const uint32_t *bytes = iot_batch_u32(b, IOT_COLUMN_BYTES);
	const uint16_t *context = iot_batch_u16(b, IOT_COLUMN_CONTEXT);

	memset(keys, 0, b->context.n * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		uint64_t *end = &keys[context[i]];

		if (nulls && v[i] == NULL_MARK) {
			v[i] = IOT_SECTOR_NONE;
			continue;
		}
		v[i] += *end;
		*end = v[i] + (bytes[i] >> 9);
	}
}

static void undo_id(const struct iot_batch *b, uint64_t *v, uint64_t *keys)
{
	const uint64_t *cpu = iot_batch_u64(b, IOT_COLUMN_ID);

	/* ID_CPU was decoded into the id's own array and is < 8192. */
	memset(keys, 0, (ID_CPU_MASK + 1) * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		uint64_t *next = &keys[cpu[i] & ID_CPU_MASK];

		v[i] += *next;
		*next = v[i] + 1;
	}
}

static void undo_ref(const struct iot_batch *b, enum iot_column c, bool nulls, uint64_t *v,
		     uint64_t *keys)
{
	const uint32_t *ref;

	switch (c) {
	case IOT_COLUMN_ISSUE_CPU:
	case IOT_COLUMN_ID_CPU:
		ref = iot_batch_u32(b, c == IOT_COLUMN_ID_CPU ? IOT_COLUMN_ISSUE_CPU
							      : IOT_COLUMN_COMPLETE_CPU);
		for (size_t i = 0; i < b->n; i++)
			v[i] ^= ref[i];
		break;
	case IOT_COLUMN_BYTES_DONE:
		ref = iot_batch_u32(b, IOT_COLUMN_BYTES);
		for (size_t i = 0; i < b->n; i++)
			v[i] = ref[i] - v[i];
		break;
	case IOT_COLUMN_ID:
		undo_id(b, v, keys);
		break;
	case IOT_COLUMN_SECTOR:
		undo_sector(b, nulls, v, keys);
		break;
	default:
		undo_times(b, c, nulls, v);
	}
}

/* Into the array, as wide as it is; -EBADMSG if a value has more bits than `bits`. */
static int narrow(const uint64_t *v, size_t n, unsigned int width, unsigned int bits, void *array)
{
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= v[i];
	if (bits < 64 && any >> bits)
		return -EBADMSG;
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			((uint8_t *)array)[i] = (uint8_t)v[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			((uint16_t *)array)[i] = (uint16_t)v[i];
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			((uint32_t *)array)[i] = (uint32_t)v[i];
		break;
	default:
		memcpy(array, v, n * sizeof(*v));
	}
	return 0;
}

static int store_id(struct iot_batch *b, const uint64_t *v)
{
	uint64_t *id = iot_batch_u64(b, IOT_COLUMN_ID);
	uint64_t any = 0;

	for (size_t i = 0; i < b->n; i++)
		any |= v[i];
	if (any >> (64 - ID_CPU_BITS))
		return -EBADMSG;
	for (size_t i = 0; i < b->n; i++)
		id[i] |= v[i] << ID_CPU_BITS;
	return 0;
}

static int store_error(struct iot_batch *b, uint64_t *v)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < b->n; i++) {
		wrong |= v[i] ^ (uint64_t)(int64_t)(int32_t)v[i];
		v[i] = (uint32_t)v[i];
	}
	if (wrong)
		return -EBADMSG;
	return narrow(v, b->n, 4, 32, b->arrays[IOT_COLUMN_ERROR]);
}

static int store_index(struct iot_batch *b, enum iot_column c, const uint64_t *v)
{
	unsigned int word;
	const struct iot_dict *d = iot_column_dict(b, c, &word);
	uint64_t max = 0;

	for (size_t i = 0; i < b->n; i++)
		max = IOT_MAX(max, v[i]);
	if (max >= d->n)
		return -EBADMSG;
	return narrow(v, b->n, 2, 16, b->arrays[c]);
}

static int dict_inverse(struct iot_batch *b, const struct iot_column_form *f, const uint64_t *v)
{
	/* Bits that the fields of a word have; the others have no place in a request. */
	static const uint8_t bits[] = {
		[IOT_COLUMN_OP_WORD] = 64,	 [IOT_COLUMN_OP_SOURCE] = 8,
		[IOT_COLUMN_CONTEXT_PIDS] = 64,	 [IOT_COLUMN_CONTEXT_CGROUP] = 64,
		[IOT_COLUMN_CONTEXT_COMM0] = 64, [IOT_COLUMN_CONTEXT_COMM1] = 64,
		[IOT_COLUMN_DEVICE_WORD] = 64,	 [IOT_COLUMN_FILE_INO] = 64,
		[IOT_COLUMN_FILE_FSDEV] = 32,
	};
	unsigned int word;
	struct iot_dict *d = iot_column_dict(b, f->column, &word);

	if (f->count != d->n)
		return -EBADMSG;
	for (size_t i = 0; i < d->n; i++) {
		if (bits[f->column] < 64 && v[i] >> bits[f->column])
			return -EBADMSG;
		d->words[i * d->n_words + word] = v[i];
	}
	return 0;
}

static void fill_array(void *array, unsigned int width, size_t n, uint64_t value)
{
	if (value == 0 || width == 1) {
		memset(array, (int)value, n * width);
		return;
	}
	switch (width) {
	case 2:
		for (size_t i = 0; i < n; i++)
			((uint16_t *)array)[i] = (uint16_t)value;
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			((uint32_t *)array)[i] = (uint32_t)value;
		break;
	default:
		for (size_t i = 0; i < n; i++)
			((uint64_t *)array)[i] = value;
	}
}

/*
 * Most columns of most blocks are constant, or equal to their twin: those are filled or copied
 * without a detour over values. False: this one is not so simple.
 */
static bool fill_constant(struct iot_batch *b, const struct iot_column_form *f)
{
	enum iot_column c = f->column, twin = iot_column_twin(c);
	unsigned int width, word;
	const struct iot_dict *d;

	if (iot_column_is_dict(c) || f->flags || f->shift || f->count != b->n)
		return false;
	width = iot_batch_width[c];
	if (f->base == IOT_BASE_REF && twin && f->value == 0) {
		memcpy(b->arrays[c], b->arrays[twin], (size_t)b->n * width);
		return true;
	}
	/* The error is signed: what fits its width is not yet a value of it. */
	if (f->base != IOT_BASE_RAW || !width || c == IOT_COLUMN_ID ||
	    (c == IOT_COLUMN_ERROR && f->value) || (width < 8 && f->value >> 8 * width))
		return false;
	d = iot_column_dict(b, c, &word);
	if (d && f->value >= d->n)
		return false;
	fill_array(b->arrays[c], width, b->n, f->value);
	return true;
}

int iot_column_inverse(struct iot_batch *b, const struct iot_column_form *f, uint64_t *v,
		       uint64_t *keys)
{
	enum iot_column c = f->column;
	int r;

	assert(iot_column_is_known(c));

	r = check_form(f);
	if (r < 0)
		return r;
	if (f->constant) {
		if (fill_constant(b, f))
			return 0;
		for (uint32_t i = 0; i < f->count; i++)
			v[i] = f->value;
	}
	unfinish(v, f->count, f->shift, f->flags);
	if (f->base == IOT_BASE_DELTA)
		sum_up(v, f->count);
	if (iot_column_is_dict(c))
		return dict_inverse(b, f, v);
	if (f->count != b->n)
		return -EBADMSG;
	if (f->base == IOT_BASE_REF) {
		undo_ref(b, c, f->flags & IOT_COLUMN_NULLS, v, keys);
	} else if (f->flags & IOT_COLUMN_NULLS) {
		for (size_t i = 0; i < b->n; i++)
			v[i] = v[i] == NULL_MARK ? IOT_SECTOR_NONE : v[i];
	}
	switch (c) {
	case IOT_COLUMN_ID_CPU:
		return narrow(v, b->n, 8, ID_CPU_BITS, b->arrays[IOT_COLUMN_ID]);
	case IOT_COLUMN_ID:
		return store_id(b, v);
	case IOT_COLUMN_ERROR:
		return store_error(b, v);
	case IOT_COLUMN_OP:
	case IOT_COLUMN_CONTEXT:
	case IOT_COLUMN_DEVICE:
	case IOT_COLUMN_FILE:
		return store_index(b, c, v);
	default:
		return narrow(v, b->n, iot_batch_width[c], 8U * iot_batch_width[c], b->arrays[c]);
	}
}
