// SPDX-License-Identifier: BSD-2-Clause
/*
 * columns-packet.c - packets: columns against other columns, and back.
 *
 * A packet is seen several times, and little of it changes between two sights: what does not is
 * stored once per packet of the block (the FIRST_ columns), and each observation as its difference
 * from the one before of the same packet, which is mostly nothing. Which packet it is, is told by
 * how many others were seen for the first time since. Arithmetic is modulo 2^64.
 */
#include "format/columns.h"

#include <assert.h>

static const uint16_t *objects_of(const struct iot_batch *b)
{
	return iot_batch_u16(b, IOT_PCOLUMN_OBJECT);
}

static uint64_t at(const struct iot_batch *b, unsigned int c, size_t i)
{
	switch (b->schema->columns[c].width) {
	case 1:
		return iot_batch_u8(b, c)[i];
	case 2:
		return iot_batch_u16(b, c)[i];
	case 4:
		return iot_batch_u32(b, c)[i];
	default:
		return iot_batch_u64(b, c)[i];
	}
}

static uint64_t object_id(const struct iot_batch *b, size_t i)
{
	const uint64_t *words = b->dicts[IOT_PACKET_DICT_OBJECT].words + i * 2;

	return words[1] << 13 | words[0];
}

/* The side column that holds an observation column's first values. */
static unsigned int first_of(unsigned int c)
{
	return c - IOT_PCOLUMN_FLOW + IOT_PCOLUMN_FIRST_FLOW;
}

static void fill_first(const struct iot_batch *b, unsigned int c, uint64_t less, uint64_t *keys)
{
	for (size_t i = 0; i < b->dicts[IOT_PACKET_DICT_OBJECT].n; i++)
		keys[i] = at(b, first_of(c), i) - less;
}

/* ---- forward ---- */

/* 0: a packet not seen before in this block; k: the k-th newest of those that were. */
static void object_ref(const struct iot_batch *b, uint64_t *v)
{
	const uint16_t *object = objects_of(b);
	uint64_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		v[i] = n - object[i];
		n += v[i] == 0;
	}
}

#define BY_OBJECT(type, expr, next)                        \
	do {                                               \
		const type *x = b->arrays[c];              \
		for (size_t i = 0; i < b->n; i++) {        \
			uint64_t *last = &keys[object[i]]; \
			v[i] = (expr);                     \
			*last = (next);                    \
		}                                          \
	} while (0)

/* Against the packet's last observation. */
static void by_object(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys)
{
	const uint16_t *object = objects_of(b);

	fill_first(b, c, c == IOT_PCOLUMN_HOP, keys);
	switch (c) {
	case IOT_PCOLUMN_HOP:
		BY_OBJECT(uint32_t, x[i] - *last - 1, x[i]);
		break;
	case IOT_PCOLUMN_FLAGS:
		BY_OBJECT(uint16_t, x[i] ^ *last, x[i]);
		break;
	case IOT_PCOLUMN_PARENT:
		BY_OBJECT(uint64_t, x[i] - *last, x[i]);
		break;
	case IOT_PCOLUMN_LEN:
	case IOT_PCOLUMN_MARK:
		BY_OBJECT(uint32_t, x[i] - *last, x[i]);
		break;
	default:
		BY_OBJECT(uint16_t, x[i] - *last, x[i]);
	}
}

/*
 * What followed the packet's last probe the last time: paths repeat. keys: low half the packet's last
 * probe, high half (by probe) what came after it.
 */
static inline uint64_t guess_probe(uint64_t *keys, uint16_t object)
{
	uint32_t last = (uint32_t)keys[object];

	return keys[last] >> 32;
}

static inline void learn_probe(uint64_t *keys, uint16_t object, uint16_t probe)
{
	uint32_t last = (uint32_t)keys[object];

	keys[last] = (uint32_t)keys[last] | (uint64_t)probe << 32;
	keys[object] = (keys[object] & ~(uint64_t)UINT32_MAX) | probe;
}

static void by_cpu_word(const struct iot_batch *b, uint64_t *v, uint64_t *keys)
{
	const struct iot_dict *d = &b->dicts[IOT_PACKET_DICT_OBJECT];

	memset(keys, 0, 8192 * sizeof(*keys));
	for (size_t i = 0; i < d->n; i++) {
		uint64_t *next = &keys[d->words[i * 2] & 8191], counter = d->words[i * 2 + 1];

		v[i] = counter - *next;
		*next = counter + 1;
	}
}

static void by_probe(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys)
{
	const uint16_t *probe = iot_batch_u16(b, IOT_PCOLUMN_PROBE);

	memset(keys, 0, IOT_COLUMN_KEYS * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		uint64_t x = c == IOT_PCOLUMN_CODE ? (uint64_t)(int32_t)iot_batch_u32(b, c)[i]
						   : at(b, c, i);

		v[i] = x - keys[probe[i]];
		keys[probe[i]] = x;
	}
}

void iot_packet_ref(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys)
{
	const uint16_t *object = objects_of(b), *probe, *flow, *ip_id;
	size_t n = iot_column_count(b, c);

	switch (c) {
	case IOT_PCOLUMN_OBJECT:
		object_ref(b, v);
		break;
	case IOT_PCOLUMN_OBJECT_COUNTER:
		by_cpu_word(b, v, keys);
		break;
	case IOT_PCOLUMN_FIRST_IP_ID:
		/* Of one flow they mostly count upwards. */
		flow = iot_batch_u16(b, IOT_PCOLUMN_FIRST_FLOW);
		ip_id = iot_batch_u16(b, c);
		memset(keys, 0, b->dicts[IOT_PACKET_DICT_FLOW].n * sizeof(*keys));
		for (size_t i = 0; i < n; i++) {
			v[i] = ip_id[i] - keys[flow[i]];
			keys[flow[i]] = (uint64_t)ip_id[i] + 1;
		}
		break;
	case IOT_PCOLUMN_FIRST_PARENT:
		for (size_t i = 0; i < n; i++) {
			uint64_t parent = iot_batch_u64(b, c)[i];

			v[i] = parent ? object_id(b, i) - parent : IOT_NULL_MARK;
		}
		break;
	case IOT_PCOLUMN_PROBE:
		probe = iot_batch_u16(b, c);
		memset(keys, 0, IOT_COLUMN_KEYS * sizeof(*keys));
		for (size_t i = 0; i < n; i++) {
			v[i] = probe[i] ^ guess_probe(keys, object[i]);
			learn_probe(keys, object[i], probe[i]);
		}
		break;
	case IOT_PCOLUMN_IFACE:
	case IOT_PCOLUMN_CODE:
	case IOT_PCOLUMN_WHERE:
		by_probe(b, c, v, keys);
		break;
	default:
		by_object(b, c, v, keys);
	}
}

/* ---- back ---- */

static void undo_object(const struct iot_batch *b, uint64_t *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		bool new = v[i] == 0;

		/* A reference to nothing becomes an index that no dictionary has. */
		v[i] = n - v[i];
		n += new;
	}
}

static void undo_by_object(const struct iot_batch *b, unsigned int c, uint64_t *v, uint64_t *keys)
{
	const uint16_t *object = objects_of(b);

	fill_first(b, c, c == IOT_PCOLUMN_HOP, keys);
	for (size_t i = 0; i < b->n; i++) {
		uint64_t *last = &keys[object[i]];

		if (c == IOT_PCOLUMN_FLAGS)
			v[i] ^= *last;
		else
			v[i] += *last + (c == IOT_PCOLUMN_HOP);
		*last = v[i];
	}
}

static void undo_by_probe(const struct iot_batch *b, uint64_t *v, uint64_t *keys)
{
	const uint16_t *probe = iot_batch_u16(b, IOT_PCOLUMN_PROBE);

	memset(keys, 0, IOT_COLUMN_KEYS * sizeof(*keys));
	for (size_t i = 0; i < b->n; i++) {
		v[i] += keys[probe[i]];
		keys[probe[i]] = v[i];
	}
}

void iot_packet_unref(const struct iot_batch *b, unsigned int c, bool nulls, uint64_t *v,
		      uint64_t *keys)
{
	const uint16_t *object = objects_of(b), *flow;
	const struct iot_dict *d = &b->dicts[IOT_PACKET_DICT_OBJECT];
	size_t n = iot_column_count(b, c);

	switch (c) {
	case IOT_PCOLUMN_OBJECT:
		undo_object(b, v);
		break;
	case IOT_PCOLUMN_OBJECT_COUNTER:
		memset(keys, 0, 8192 * sizeof(*keys));
		for (size_t i = 0; i < n; i++) {
			uint64_t *next = &keys[d->words[i * 2] & 8191];

			v[i] += *next;
			*next = v[i] + 1;
		}
		break;
	case IOT_PCOLUMN_FIRST_IP_ID:
		flow = iot_batch_u16(b, IOT_PCOLUMN_FIRST_FLOW);
		memset(keys, 0, b->dicts[IOT_PACKET_DICT_FLOW].n * sizeof(*keys));
		for (size_t i = 0; i < n; i++) {
			v[i] += keys[flow[i]];
			keys[flow[i]] = v[i] + 1;
		}
		break;
	case IOT_PCOLUMN_FIRST_PARENT:
		for (size_t i = 0; i < n; i++)
			v[i] = nulls && v[i] == IOT_NULL_MARK ? 0 : object_id(b, i) - v[i];
		break;
	case IOT_PCOLUMN_PROBE:
		memset(keys, 0, IOT_COLUMN_KEYS * sizeof(*keys));
		for (size_t i = 0; i < n; i++) {
			v[i] ^= guess_probe(keys, object[i]);
			learn_probe(keys, object[i], (uint16_t)v[i]);
		}
		break;
	case IOT_PCOLUMN_IFACE:
	case IOT_PCOLUMN_CODE:
	case IOT_PCOLUMN_WHERE:
		undo_by_probe(b, v, keys);
		break;
	default:
		undo_by_object(b, c, v, keys);
	}
}
