/* SPDX-License-Identifier: BSD-2-Clause */
/* segment-damage.h - how many of all ways to damage a file a test goes through. */
#pragma once

#include <malloc.h>

#include "format/base.h"

/*
 * Step between inputs: every one in a plain build, a sample where each costs ten times as much
 * (sanitizers) or fifty times (valgrind preloads its own library).
 */
static inline size_t damage_step(size_t sanitized, size_t valgrind)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "vgpreload"))
		return valgrind;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__)
	return sanitized;
#else
	(void)sanitized;
	return 1;
#endif
}

/* Keeps what was freed: the same sizes are asked for a hundred thousand times, and the kernel would clear them each time. */
static inline void damage_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
}
