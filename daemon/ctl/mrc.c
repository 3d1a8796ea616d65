// SPDX-License-Identifier: BSD-2-Clause
/*
 * mrc.c - see mrc.h.
 *
 * Positions are times of last use: each access takes the next one, and a block's old one is given up. The
 * tree (Fenwick's) counts positions in use, so a distance is two sums away. When positions run out, those in
 * use are numbered anew, in order. When blocks run out, the one with the largest sample hash is dropped, and
 * with it every future block of that hash or above: what stays is a sample by the blocks themselves, not by
 * their accesses, so distances in it are distances times the rate.
 */
#include <math.h>

#include "daemon/ctl/mrc.h"
#include "format/books.h"

#define NONE UINT32_MAX
#define FIRST_BLOCKS 1024U

struct block {
	uint64_t number;
	uint64_t sample; /* its place among all hashes: in the sample while below the threshold */
	uint32_t device;
	uint32_t position;
	uint32_t slice;
};

struct mrc {
	uint32_t max_blocks;
	uint32_t n_blocks;
	uint32_t capacity;    /* blocks there is room for now */
	struct block *blocks; /* [capacity] */
	uint32_t *slots;      /* hash table of block indices, 2 * capacity, a power of two */
	uint32_t *heap;	 /* block indices, largest sample first; only once sampling has begun */
	uint32_t *tree;	 /* [n_positions + 1] */
	uint32_t *owner; /* [n_positions + 1]: block index, or NONE */
	uint32_t n_positions;	 /* 2 * capacity */
	uint32_t last;		 /* position used last; they begin at 1 */
	uint64_t seed;		 /* of the slots */
	uint64_t threshold;	 /* samples below it are looked at */
	uint64_t n[MRC_N_KINDS]; /* accesses, looked at or not */
	/* Estimates of all accesses: one that is looked at stands for 1 / rate of them, at its time. */
	double first[MRC_N_KINDS];     /* never used before */
	double *distance[MRC_N_KINDS]; /* [max_blocks]: by distance / width */
	uint64_t width;
	double *slices;
	uint32_t n_slices;
};

struct mrc *mrc_free(struct mrc *m)
{
	if (!m)
		return NULL;
	for (unsigned int k = 0; k < MRC_N_KINDS; k++)
		free(m->distance[k]);
	free(m->blocks);
	free(m->slots);
	free(m->heap);
	free(m->tree);
	free(m->owner);
	free(m->slices);
	free(m);
	return NULL;
}

/* ---- the tree ---------------------------------------------------------------------------------- */

static void tree_add(struct mrc *m, uint32_t position, uint32_t by)
{
	for (; position <= m->n_positions; position += position & -position)
		m->tree[position] += by; /* modulo 2^32: also to subtract */
}

/* Positions in use up to this one. */
static uint32_t tree_sum(const struct mrc *m, uint32_t position)
{
	uint32_t sum = 0;

	for (; position; position -= position & -position)
		sum += m->tree[position];
	return sum;
}

/* Numbers the positions in use 1, 2, ... */
static void renumber(struct mrc *m)
{
	uint32_t n = 0;

	for (uint32_t p = 1; p <= m->last; p++)
		if (m->owner[p] != NONE) {
			uint32_t index = m->owner[p];

			m->owner[++n] = index;
			m->blocks[index].position = n;
		}
	m->last = n;
	memset(m->tree, 0, ((size_t)m->n_positions + 1) * sizeof(*m->tree));
	for (uint32_t p = 1; p <= n; p++)
		tree_add(m, p, 1);
}

static void use_now(struct mrc *m, uint32_t index)
{
	if (m->last == m->n_positions)
		renumber(m);
	m->blocks[index].position = ++m->last;
	m->owner[m->last] = index;
	tree_add(m, m->last, 1);
}

static void give_up(struct mrc *m, uint32_t position)
{
	m->owner[position] = NONE;
	tree_add(m, position, (uint32_t)-1);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

struct key {
	uint64_t number;
	uint64_t device;
};

static uint32_t home(const struct mrc *m, uint32_t device, uint64_t number)
{
	const struct key k = {number, device};

	return (uint32_t)iot_table_hash(&k, sizeof(k), m->seed) & (2 * m->capacity - 1);
}

static uint32_t *find_slot(const struct mrc *m, uint32_t device, uint64_t number)
{
	uint32_t i = home(m, device, number), mask = 2 * m->capacity - 1;

	while (m->slots[i] != NONE) {
		const struct block *b = &m->blocks[m->slots[i]];

		if (b->number == number && b->device == device)
			break;
		i = (i + 1) & mask;
	}
	return &m->slots[i];
}

/* Open addressing without gaps: whoever would no longer be found moves up. */
static void clear_slot(struct mrc *m, uint32_t *slot)
{
	uint32_t mask = 2 * m->capacity - 1, hole = (uint32_t)(slot - m->slots), i = hole;

	for (;;) {
		const struct block *b;

		i = (i + 1) & mask;
		if (m->slots[i] == NONE)
			break;
		b = &m->blocks[m->slots[i]];
		if (((i - home(m, b->device, b->number)) & mask) >= ((i - hole) & mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = NONE;
}

static int grow(struct mrc *m)
{
	uint32_t capacity = m->capacity ? 2 * m->capacity : FIRST_BLOCKS;
	uint32_t *slots, *owner, *tree;
	struct block *blocks;

	blocks = reallocarray(m->blocks, capacity, sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	m->blocks = blocks;
	owner = reallocarray(m->owner, 2 * (size_t)capacity + 1, sizeof(*owner));
	if (!owner)
		return -ENOMEM;
	m->owner = owner;
	tree = reallocarray(m->tree, 2 * (size_t)capacity + 1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	m->tree = tree;
	slots = reallocarray(m->slots, 2 * (size_t)capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	m->slots = slots;
	m->capacity = capacity;
	m->n_positions = 2 * capacity;
	memset(slots, 0xff, 2 * (size_t)capacity * sizeof(*slots)); /* NONE */
	for (uint32_t i = 0; i < m->n_blocks; i++)
		*find_slot(m, blocks[i].device, blocks[i].number) = i;
	renumber(m);
	return 0;
}

/* ---- the sample -------------------------------------------------------------------------------- */

static void sift_down(struct mrc *m, uint32_t i)
{
	for (;;) {
		uint32_t max = i, l = 2 * i + 1, swap;

		for (uint32_t c = l; c < l + 2 && c < m->n_blocks; c++)
			if (m->blocks[m->heap[c]].sample > m->blocks[m->heap[max]].sample)
				max = c;
		if (max == i)
			return;
		swap = m->heap[i];
		m->heap[i] = m->heap[max];
		m->heap[max] = swap;
		i = max;
	}
}

static int heap_begin(struct mrc *m)
{
	m->heap = malloc((size_t)m->max_blocks * sizeof(*m->heap));
	if (!m->heap)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_blocks; i++)
		m->heap[i] = i;
	for (uint32_t i = m->n_blocks / 2; i-- > 0;)
		sift_down(m, i);
	return 0;
}

/*
 * A place for one more block, once max_blocks are in use: that of the one with the largest sample, which is
 * then outside. The place is the heap's root.
 */
static uint32_t drop_largest(struct mrc *m)
{
	uint32_t index = m->heap[0];
	const struct block *b = &m->blocks[index];

	clear_slot(m, find_slot(m, b->device, b->number));
	give_up(m, b->position);
	m->threshold = b->sample;
	return index;
}

/* A place for a block of this sample, or NONE if it is outside. Negative errno. */
static int64_t place(struct mrc *m, uint64_t sample)
{
	int r;

	if (m->n_blocks < m->max_blocks) {
		if (m->n_blocks == m->capacity) {
			r = grow(m);
			if (r < 0)
				return r;
		}
		return m->n_blocks++;
	}
	if (!m->heap) {
		r = heap_begin(m);
		if (r < 0)
			return r;
	}
	if (sample >= m->blocks[m->heap[0]].sample) {
		m->threshold = sample;
		return NONE;
	}
	return drop_largest(m);
}

/* ---- counting ---------------------------------------------------------------------------------- */

/* Twice as wide, so that a sampled distance of any length finds its place. */
static void widen(struct mrc *m)
{
	m->width *= 2;
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		double *d = m->distance[k];
		uint32_t half = m->max_blocks / 2;

		for (uint32_t i = 0; i < half; i++)
			d[i] = d[2 * i] + d[2 * i + 1];
		memset(d + half, 0, (m->max_blocks - half) * sizeof(*d));
	}
}

static void count_distance(struct mrc *m, enum mrc_kind kind, uint32_t distance)
{
	double far = (double)distance / mrc_rate(m);

	while (far / (double)m->width >= (double)m->max_blocks)
		widen(m);
	m->distance[kind][(uint32_t)(far / (double)m->width)] += 1 / mrc_rate(m);
}

static int count_slice(struct mrc *m, uint32_t slice)
{
	if (slice >= m->n_slices) {
		double *more = reallocarray(m->slices, (size_t)slice + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->slices = more;
		while (m->n_slices <= slice)
			more[m->n_slices++] = 0;
	}
	m->slices[slice] += 1 / mrc_rate(m);
	return 0;
}

int mrc_new(uint32_t max_blocks, struct mrc **ret)
{
	_cleanup_(mrc_freep) struct mrc *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->max_blocks = FIRST_BLOCKS;
	while (m->max_blocks < max_blocks && m->max_blocks < 1U << 28)
		m->max_blocks *= 2;
	m->threshold = UINT64_MAX;
	m->width = 1;
	m->seed = iot_table_seed();
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		m->distance[k] = calloc(m->max_blocks, sizeof(*m->distance[k]));
		if (!m->distance[k])
			return -ENOMEM;
	}
	r = grow(m);
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(m);
	return 0;
}

int mrc_access(struct mrc *m, uint32_t device, uint64_t number, enum mrc_kind kind, uint32_t slice)
{
	const struct key key = {number, device};
	/* The same in every run, so that the same trace gives the same estimate. */
	uint64_t sample = iot_table_hash(&key, sizeof(key), 0);
	struct block *b;
	uint32_t *slot;
	int64_t index;

	m->n[kind]++;
	if (sample >= m->threshold)
		return 0;
	slot = find_slot(m, device, number);
	if (*slot != NONE) {
		b = &m->blocks[*slot];
		count_distance(m, kind, m->n_blocks - tree_sum(m, b->position));
		give_up(m, b->position);
	} else {
		index = place(m, sample);
		if (index < 0)
			return (int)index;
		if (index == NONE)
			return 0;
		b = &m->blocks[index];
		*b = (struct block){
			.number = number, .sample = sample, .device = device, .slice = NONE};
		*find_slot(m, device, number) = (uint32_t)index;
		if (m->heap)
			sift_down(m, 0);
		m->first[kind] += 1 / mrc_rate(m);
	}
	use_now(m, (uint32_t)(b - m->blocks));
	if (b->slice == slice)
		return 0;
	b->slice = slice;
	return count_slice(m, slice);
}

/* ---- answers ----------------------------------------------------------------------------------- */

double mrc_rate(const struct mrc *m)
{
	return m->threshold == UINT64_MAX ? 1 : ldexp((double)m->threshold, -64);
}

uint64_t mrc_accesses(const struct mrc *m, enum mrc_kind kind)
{
	return m->n[kind];
}

double mrc_misses(const struct mrc *m, enum mrc_kind kind, uint64_t cache_blocks)
{
	const double *d = m->distance[kind];
	double misses = m->first[kind], all = (double)m->n[kind];
	uint64_t at = IOT_MIN(cache_blocks / m->width, (uint64_t)m->max_blocks);

	if (!cache_blocks)
		return all;
	for (uint64_t i = m->max_blocks; i-- > at + 1;)
		misses += d[i];
	/* Where a step is wider than a block, the part of it that is beyond. */
	if (at < m->max_blocks)
		misses += d[at] * (1 - (double)(cache_blocks % m->width) / (double)m->width);
	/* A sample may have more or fewer accesses than its share. Those are of few, busy blocks: hits. */
	return IOT_MIN(misses, all);
}

double mrc_blocks(const struct mrc *m)
{
	double n = 0;

	for (unsigned int k = 0; k < MRC_N_KINDS; k++)
		n += m->first[k];
	return n;
}

double mrc_slice_blocks(const struct mrc *m, uint32_t slice)
{
	return slice < m->n_slices ? m->slices[slice] : 0;
}

double mrc_error(const struct mrc *m)
{
	return mrc_rate(m) < 1 ? 2 / sqrt((double)m->max_blocks) : 0;
}
