/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crash-point.h - named instants at which a test can kill the daemon: 40 kills at a named point
 * found a bug that 6,400 random kills had passed over.
 *
 * IOTRACED_CRASH_AT=NAME or NAME:N (the Nth passing) makes that passing end in SIGKILL. Without the
 * variable a passing costs one load and one branch that is never taken.
 */
#pragma once

#include "format/base.h"

extern bool crash_point_armed;

/* Reads the environment; called once before any thread starts. -EINVAL: bad value. */
int crash_point_init(void) IOT_MUST_CHECK;
void crash_point_pass(const char *name);

static inline void crash_point(const char *name)
{
	if (__builtin_expect(crash_point_armed, 0))
		crash_point_pass(name);
}
