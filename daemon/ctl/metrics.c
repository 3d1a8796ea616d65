// SPDX-License-Identifier: BSD-2-Clause
/*
 * metrics.c - see metrics.h.
 */
#include "daemon/ctl/metrics.h"
#include "format/render.h"

static void put_text(struct metrics *m, const char *text)
{
	ctl_out_write(m->out, text, strlen(text));
}

bool metrics_format(const char *name, bool *ret_openmetrics)
{
	*ret_openmetrics = strcmp(name, "openmetrics") == 0;
	return *ret_openmetrics || strcmp(name, "prometheus") == 0;
}

static const char *unit_of(const char *name)
{
	static const char *const units[] = {"bytes", "seconds"};
	const char *last = strrchr(name, '_');

	for (size_t i = 0; last && i < IOT_ARRAY_SIZE(units); i++)
		if (strcmp(last + 1, units[i]) == 0)
			return units[i];
	return NULL;
}

void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help)
{
	/* OpenMetrics calls a counter's family by what its samples are called without _total. */
	const char *suffix = type == METRIC_COUNTER && !m->openmetrics ? "_total" : "";
	char line[512];

	m->family = name;
	m->type = type;
	snprintf(line, sizeof(line), "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name,
		 suffix, type == METRIC_COUNTER ? "counter" : "gauge");
	put_text(m, line);
	if (m->openmetrics && unit_of(name)) {
		snprintf(line, sizeof(line), "# UNIT %s %s\n", name, unit_of(name));
		put_text(m, line);
	}
}

/* Text of a segment or of the daemon: valid UTF-8, and quoted as both formats ask. */
static void put_value(struct metrics *m, const char *value)
{
	char utf8[2 * IOT_RENDER_NAME_MAX], *end;

	end = iot_put_utf8(utf8, value, IOT_MIN(strlen(value), (size_t)IOT_RENDER_NAME_MAX));
	for (const char *p = utf8; p < end; p++) {
		if (*p == '\n')
			put_text(m, "\\n");
		else if (*p == '"' || *p == '\\')
			ctl_out_write(m->out, (char[]){'\\', *p}, 2);
		else
			ctl_out_write(m->out, p, 1);
	}
}

static void put_sample(struct metrics *m, const struct metric_label *labels, size_t n,
		       const char *value)
{
	bool any = false;

	put_text(m, m->family);
	if (m->type == METRIC_COUNTER)
		put_text(m, "_total");
	for (size_t i = 0; i < n; i++) {
		if (!labels[i].name)
			continue;
		put_text(m, any ? "," : "{");
		put_text(m, labels[i].name);
		put_text(m, "=\"");
		put_value(m, labels[i].value ? labels[i].value : "");
		put_text(m, "\"");
		any = true;
	}
	put_text(m, any ? "} " : " ");
	put_text(m, value);
	put_text(m, "\n");
}

void metrics_u64(struct metrics *m, const struct metric_label *labels, size_t n, uint64_t v)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)v);
	put_sample(m, labels, n, value);
}

void metrics_double(struct metrics *m, const struct metric_label *labels, size_t n, double v)
{
	char value[64];

	snprintf(value, sizeof(value), "%.12g", v);
	put_sample(m, labels, n, value);
}

void metrics_states(struct metrics *m, const char *stream, const char *label,
		    const char *const *states, size_t n, const char *is)
{
	for (size_t i = 0; i < n; i++) {
		struct metric_label labels[] = {{stream ? "stream" : NULL, stream},
						{label, states[i]}};

		metrics_u64(m, labels, 2, is && strcmp(is, states[i]) == 0);
	}
}

void metrics_end(struct metrics *m)
{
	if (m->openmetrics)
		put_text(m, "# EOF\n");
}
