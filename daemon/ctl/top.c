// SPDX-License-Identifier: BSD-2-Clause
/* top.c - see top.h. */
#include "daemon/ctl/top.h"

static void window_done(struct top_window *w)
{
	report_done(&w->report);
	rank_done(&w->processes);
	rank_done(&w->cgroups);
	*w = (struct top_window){.processes.by = CTL_BY_PROCESS, .cgroups.by = CTL_BY_CGROUP};
}

void top_init(struct top *t, uint64_t length_ns, uint64_t now_ns)
{
	uint64_t first = now_ns / length_ns + 1;

	*t = (struct top){.length_ns = length_ns, .first = first, .next = first};
	for (size_t i = 0; i < TOP_WINDOWS; i++)
		window_done(&t->windows[i]);
}

void top_done(struct top *t)
{
	for (size_t i = 0; i < TOP_WINDOWS; i++)
		window_done(&t->windows[i]);
}

/* A clock cannot be ahead by more than there are windows. NULL: of before the first one, which is nobody's. */
static struct top_window *window_of(struct top *t, uint64_t ns, bool *ret_late)
{
	uint64_t number = ns / t->length_ns;

	if (number < t->first)
		return NULL;
	*ret_late = number < t->next;
	number = IOT_MAX(number, t->next);
	number = IOT_MIN(number, t->next + TOP_WINDOWS - 1);
	return &t->windows[number % TOP_WINDOWS];
}

int top_add(struct top *t, const struct iot_segment_info *info, const char *disk,
	    const struct iot_request *r)
{
	struct report_device *d;
	struct top_window *w;
	bool late;
	int q;

	w = window_of(t, r->complete_ns, &late);
	if (!w)
		return 0;
	w->requests++;
	w->late += late;
	q = report_device(&w->report, info->machine_id, r->dev, disk, info->host, &d);
	if (q == 0)
		q = report_add(d, r);
	if (q == 0)
		q = rank_add(&w->processes, info, NULL, r, r->complete_ns);
	if (q == 0)
		q = rank_add(&w->cgroups, info, NULL, r, r->complete_ns);
	return q;
}

void top_add_packet(struct top *t, uint64_t ns, const char *reason)
{
	struct top_reason *row;
	struct top_window *w;
	bool late;
	size_t i = 0;

	w = window_of(t, ns, &late);
	if (!w)
		return;
	w->observations++;
	w->late += late;
	if (!reason)
		return;
	while (i < w->n_reasons &&
	       strncmp(w->reasons[i].name, reason, sizeof(w->reasons[i].name) - 1) != 0)
		i++;
	i = IOT_MIN(i, TOP_REASONS - 1);
	row = &w->reasons[i];
	if (i == w->n_reasons) {
		w->n_reasons++;
		snprintf(row->name, sizeof(row->name), "%s",
			 i == TOP_REASONS - 1 ? "others" : reason);
	}
	row->n++;
}

static int most_first(const void *a, const void *b)
{
	const struct top_reason *x = a, *y = b;
	int c = iot_cmp_u64(y->n, x->n);

	return c ? c : strcmp(x->name, y->name);
}

struct top_window *top_ready(struct top *t, uint64_t now_ns)
{
	struct top_window *w = &t->windows[t->next % TOP_WINDOWS];

	if (now_ns < top_next_ns(t))
		return NULL;
	report_sort(&w->report);
	qsort(w->reasons, w->n_reasons, sizeof(*w->reasons), most_first);
	return w;
}

void top_shown(struct top *t)
{
	window_done(&t->windows[t->next % TOP_WINDOWS]);
	t->next++;
}
