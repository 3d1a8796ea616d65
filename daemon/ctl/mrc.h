/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc.h - miss-ratio curves: of a cache of any size that evicts what was used longest ago (LRU), how many
 * accesses would have missed. Pure: blocks in, curves out, in one pass and in bounded memory.
 *
 * A block that was used before hits in every cache that is larger than its stack distance, the number of
 * other blocks used since (Mattson et al., 1970). Distances are counted in a tree over the times of last
 * use, and kept as counts by distance, so that the curve is exact at every size, as long as there are no
 * more than max_blocks different blocks. From there on blocks are sampled by hash with a falling rate
 * (SHARDS of fixed size with its adjustment, Waldspurger et al., FAST 2015), and numbers are estimates.
 */
#pragma once

#include "format/base.h"

enum mrc_kind {
	MRC_READ = 0,
	MRC_WRITE = 1,
	MRC_N_KINDS,
};

struct mrc;

/* Memory grows with the number of blocks, to about 70 bytes for each of max_blocks. -ENOMEM. */
int mrc_new(uint32_t max_blocks, struct mrc **ret) IOT_MUST_CHECK;
struct mrc *mrc_free(struct mrc *m);
/* One access to a block of a device. slice: a time that never falls, for mrc_slice_blocks. -ENOMEM. */
int mrc_access(struct mrc *m, uint32_t device, uint64_t block, enum mrc_kind kind,
	       uint32_t slice) IOT_MUST_CHECK;

uint64_t mrc_accesses(const struct mrc *m, enum mrc_kind kind);
/* Of the accesses of one kind, those that miss in a cache of so many blocks, shared by all kinds. */
double mrc_misses(const struct mrc *m, enum mrc_kind kind, uint64_t cache_blocks);
/* Different blocks: all of them, and those of one slice. */
double mrc_blocks(const struct mrc *m);
double mrc_slice_blocks(const struct mrc *m, uint32_t slice);
/* Part of the blocks that is looked at: 1 = all, and every number is exact. */
double mrc_rate(const struct mrc *m);
/* How far a sampled miss ratio (0..1) may be off on the average over all sizes; 0 = exact. */
double mrc_error(const struct mrc *m);

static inline void mrc_freep(struct mrc **m)
{
	*m = mrc_free(*m);
}
