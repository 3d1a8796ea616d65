/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report-cache.h - `report --cacheability`: how well a cache of any size would have done, with and without
 * swap, and how much was in use over time.
 */
#pragma once

#include "daemon/ctl/mrc.h"
#include "format/scan.h"

#define CACHE_SLICES 16U

enum cache_of {
	CACHE_ALL = 0,
	CACHE_WITHOUT_SWAP = 1,
	CACHE_N,
};

struct report_cache {
	struct mrc *curves[CACHE_N]; /* NULL: not asked for */
	bool swap;		     /* there was some: the two differ */
	uint64_t requests;
	uint64_t left_out; /* neither read nor write, or without data */
	uint64_t first_ns; /* wall clock of the first slice */
	uint64_t slice_ns; /* 0: nothing was read or written */
};

/* Reads scan to its end. Negative errno with err. */
int report_cache_read(struct report_cache *c, struct iot_scan *scan,
		      struct iot_error *err) IOT_MUST_CHECK;
void report_cache_done(struct report_cache *c);
double report_cache_miss_ratio(const struct report_cache *c, enum cache_of of, enum mrc_kind kind,
			       uint64_t blocks);

int report_cache_text(const struct report_cache *c, FILE *f, bool color) IOT_MUST_CHECK;
struct json_object *report_cache_json(const struct report_cache *c);
