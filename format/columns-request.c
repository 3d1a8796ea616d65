// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns-request.c - requests: columns against other columns, and back.
 *
 * Durations instead of absolute times, ids by the CPU that gave them, sectors by where the same
 * context ended its last request. Backwards the references are arrays of the same batch that were
 * decoded before and hence already checked. Arithmetic is unsigned throughout.
 */
#include "format/columns.h"

#include <assert.h>

#define NULL_MARK IOT_NULL_MARK
#define ID_CPU_BITS 13
#define ID_CPU_MASK ((1U << ID_CPU_BITS) - 1)

/* ---- forward ---- */

/* Time columns against a later or earlier time of the same request. */
static void against_times(const struct iot_batch *b, unsigned int c, uint64_t *v)
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

	memset(keys, 0, b->dicts[IOT_REQUEST_DICT_CONTEXT].n * sizeof(*keys));
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

void iot_request_ref(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys)
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

void iot_request_split(const struct iot_batch *b, unsigned int c, uint64_t *v)
{
	const uint64_t *id = iot_batch_u64(b, IOT_COLUMN_ID);

	if (c == IOT_COLUMN_ID_CPU) {
		for (size_t i = 0; i < b->n; i++)
			v[i] = id[i] & ID_CPU_MASK;
		return;
	}
	for (size_t i = 0; i < b->n; i++)
		v[i] = id[i] >> ID_CPU_BITS;
}

/* ---- back ---- */

static void undo_times(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v)
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

	memset(keys, 0, b->dicts[IOT_REQUEST_DICT_CONTEXT].n * sizeof(*keys));
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

void iot_request_unref(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v,
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

int iot_request_unsplit(struct iot_batch *b, unsigned int c, const uint64_t *v)
{
	uint64_t *id = iot_batch_u64(b, IOT_COLUMN_ID);

	/* The CPU comes first and is all there is of the id then. */
	for (size_t i = 0; i < b->n; i++)
		id[i] = c == IOT_COLUMN_ID_CPU ? v[i] : id[i] | v[i] << ID_CPU_BITS;
	return 0;
}
