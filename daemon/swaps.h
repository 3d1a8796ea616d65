/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swaps.h - the active swap areas, and which of them the request layer can show.
 *
 * A record tells swap by the request's flag or page, so an area is covered exactly if its device takes
 * requests. Devices made of bios (zram, brd, pmem) and network file systems make none; stacked devices
 * (device-mapper, md, NVMe multipath) pass theirs on to others. What a kernel of this build cannot tell
 * at all is said here, too, so that a person finds it in one place.
 *
 * Reads /proc and /sys only, and never looks a swap file up by its path: its file system may be a
 * server that does not answer. No state; -errno if /proc/swaps cannot be read, an area that cannot be
 * made out is listed as such.
 */
#pragma once

#include "format/record.h"

enum swaps_coverage {
	SWAPS_UNKNOWN = 0,   /* what is beneath it could not be found out */
	SWAPS_EXACT = 1,     /* every swap request of it is in the record, tagged */
	SWAPS_BENEATH = 2,   /* as requests of the devices beneath it */
	SWAPS_UNTAGGED = 3,  /* in the record, but this kernel does not let us tell it as swap */
	SWAPS_INVISIBLE = 4, /* no request is ever made */
};

struct swaps_area {
	char path[256]; /* as the kernel writes it, cut; ours to print with care */
	bool file;
	int32_t priority;
	uint64_t size_bytes;
	uint64_t used_bytes;
	uint32_t dev;  /* of the partition or disk, or beneath the file; 0 = not known */
	char disk[64]; /* its name, "" = not known */
	/* Its place: sectors [first, end) of a whole disk. A file's blocks are its file system's: end 0. */
	uint32_t place_dev;
	uint64_t first, end;
	enum swaps_coverage coverage;
	char why[192]; /* "" where it is exact */
};

struct swaps {
	struct swaps_area *items;
	size_t n;
};
void swaps_done(struct swaps *s);

/* Where to look; for tests. */
struct swaps_paths {
	const char *swaps;     /* /proc/swaps */
	const char *mountinfo; /* /proc/self/mountinfo */
	const char *block;     /* /sys/class/block */
};
extern const struct swaps_paths swaps_system;

#define SWAPS_MAX 64U /* areas; the kernel takes at most 32 */

/* swap_out, swap_in: enum iot_swap_ability of this kernel. A kernel without swap has no areas. */
int swaps_read(const struct swaps_paths *paths, uint8_t swap_out, uint8_t swap_in,
	       struct swaps *ret) IOT_MUST_CHECK;
const char *swaps_coverage_name(enum swaps_coverage c);
/* The same area, as far as its coverage goes. */
bool swaps_same(const struct swaps_area *a, const struct swaps_area *b);
