/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export-loss.h - the sidecar of an export: <output>.loss.json, what the output does not hold.
 */
#pragma once

#include "daemon/ctl/export.h"

/* Nothing for an output that is no regular file (a pipe has no place beside it): the verdict then
 * goes to stderr. Negative errno. */
int export_write_loss(const struct ctl *c, struct iot_scan *scan, const char *format,
		      const char *output, const struct export_stats *stats,
		      const struct iot_verdict *v, struct iot_error *err) IOT_MUST_CHECK;
