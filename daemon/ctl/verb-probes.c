// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-probes.c - each probe: attached or why not, whether the kernel counts the runs it skips, and
 * what a run costs (known while kernel.bpf_stats_enabled is set). As text also what can be told as swap,
 * and what cannot: the kernel's abilities, the active areas, and what no kernel shows.
 */
#include "daemon/ctl/live.h"

static enum ctl_style row_style(struct json_object *probe)
{
	const char *state = live_str(probe, "state");

	return state && strcmp(state, "attached") == 0 ? CTL_STYLE_GOOD : CTL_STYLE_NONE;
}

static const char *or_dash(const char *s)
{
	return s ? s : "-";
}

/* By number, in the order in which a request meets them. Unknown numbers last, as they came. */
static int cmp_probe(const void *a, const void *b)
{
	uint64_t x = UINT64_MAX, y = UINT64_MAX;

	(void)live_u64(*(struct json_object *const *)a, "id", &x);
	(void)live_u64(*(struct json_object *const *)b, "id", &y);
	return iot_cmp_u64(x, y);
}

/* "8 of 9 probes attached; not attached:" and each of the others with its reason. */
static void print_missing(struct json_object *list, size_t attached)
{
	size_t n = live_n(list);
	char name[64], why[256];

	printf("\n%zu of %zu probes attached%s\n", attached, n,
	       attached < n ? "; not attached:" : "");
	for (size_t i = 0; i < n; i++) {
		struct json_object *p = json_object_array_get_idx(list, i);
		const char *reason = live_str(p, "why"), *state = live_str(p, "state");

		if (row_style(p) == CTL_STYLE_GOOD)
			continue;
		printf("  %s (%s): %s\n",
		       ctl_printable(or_dash(live_str(p, "name")), name, sizeof(name)),
		       state ? state : "unknown",
		       reason ? ctl_printable(reason, why, sizeof(why)) : "no reason given");
	}
}

static int print_table(struct json_object *list, bool color)
{
	static const char *const columns[] = {">ID",	 "NAME",  "HOOK",    "STATE",	"MISSES",
					      ">MISSED", ">RUNS", ">NS/RUN", "~STREAM", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns);
	char a[CTL_HUMAN_MAX];
	size_t attached = 0;

	if (!t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < live_n(list); i++) {
		struct json_object *p = json_object_array_get_idx(list, i);
		uint64_t v;

		attached += row_style(p) == CTL_STYLE_GOOD;
		ctl_table_cell(t, "%s", live_count(p, "id", a));
		ctl_table_cell(t, "%s", or_dash(live_str(p, "name")));
		ctl_table_cell(t, "%s", or_dash(live_str(p, "hook")));
		ctl_table_cell(t, "%s", or_dash(live_str(p, "state")));
		ctl_table_cell(t, "%s", or_dash(live_str(p, "miss_counting")));
		ctl_table_cell(t, "%s", live_u64(p, "missed", &v) ? ctl_human_count(v, a) : "-");
		ctl_table_cell(t, "%s", live_u64(p, "runs", &v) ? ctl_human_count(v, a) : "-");
		ctl_table_cell(t, "%s",
			       live_u64(p, "ns_per_run", &v) ? ctl_human_count(v, a) : "-");
		ctl_table_cell(t, "%s", or_dash(live_str(p, "stream")));
	}
	if (ctl_table_print(t, stdout, color) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	print_missing(list, attached);
	return CTL_OK;
}

static void print_swap(struct json_object *swap, bool color)
{
	const char *out = live_str(swap, "out"), *in = live_str(swap, "in");

	printf("\nSwap told on this kernel: out %s, in %s\n", out ? out : "unknown",
	       in ? in : "unknown");
	live_print_swap_areas(live_object(swap, "areas"), "Swap areas", color);
	puts("No requests, so not in any record: swap on zram and other devices made of bios,\n"
	     "and on network file systems. Not told as swap: hibernation images. Of a request\n"
	     "merged of several, swap is counted to the byte. See SWAP in iotracectl(1).");
}

int verb_probes(struct ctl *c, int argc, char **argv)
{
	struct json_object *reply, *list;
	int r;

	r = live_no_operands(argc, argv);
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".Probes", NULL, &reply);
	if (r != CTL_OK)
		return r;
	list = live_object(reply, "probes");
	if (c->json) {
		r = live_print_lines(list);
	} else {
		if (json_object_is_type(list, json_type_array))
			json_object_array_sort(list, cmp_probe);
		ctl_pager_open(c);
		r = print_table(list, ctl_color_enabled(c));
		print_swap(live_object(reply, "swap"), ctl_color_enabled(c));
	}
	json_object_put(reply);
	return r;
}
