/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.h - numbers for monitoring, as OpenMetrics 1.0 or in Prometheus' older text format, which is what
 * node_exporter's textfile collector reads. They differ in how a counter's family is called, in units,
 * and in the line at the end.
 *
 * What is not known has no sample: it must never look like 0.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"

enum metric_type {
	METRIC_GAUGE = 1,
	METRIC_COUNTER = 2, /* only grows until the daemon starts anew; samples end in _total */
};

struct metric_label {
	const char *name;  /* NULL: none */
	const char *value; /* NULL: as "" */
};
#define METRIC_LABELS 5U

struct metrics {
	struct ctl_out *out;
	bool openmetrics;
	const char *family; /* of the samples that follow */
	enum metric_type type;
};

/* "openmetrics" or "prometheus"; false: neither. */
bool metrics_format(const char *name, bool *ret_openmetrics);
/* Samples of a family stand together. name: without _total; its last word is its unit, if it is one. */
void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help);
void metrics_u64(struct metrics *m, const struct metric_label *labels, size_t n, uint64_t v);
void metrics_double(struct metrics *m, const struct metric_label *labels, size_t n, double v);
/* One sample a state, 1 for the one that is. */
void metrics_states(struct metrics *m, const char *stream, const char *label,
		    const char *const *states, size_t n, const char *is);
void metrics_end(struct metrics *m);
