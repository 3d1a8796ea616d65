// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-inflight.c - requests that have not completed, oldest first: where a hang shows itself.
 */
#include "daemon/ctl/live.h"

static int print_table(struct json_object *list, bool color)
{
	static const char *const columns[] = {"ID",   "DEV",   "OP",   ">SECTOR", ">BYTES",
					      ">AGE", "STATE", "COMM", ">PID",	  NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns);
	char a[CTL_HUMAN_MAX], text[64];

	if (!t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < live_n(list); i++) {
		struct json_object *q = json_object_array_get_idx(list, i);
		const char *name = live_str(q, "part");
		uint64_t v;

		if (!name)
			name = live_str(q, "disk");
		if (!name)
			name = live_str(q, "dev");
		ctl_table_cell(t, "%s", live_str(q, "id") ? live_str(q, "id") : "-");
		ctl_table_cell(t, "%s", name ? ctl_printable(name, text, sizeof(text)) : "-");
		ctl_table_cell(t, "%s", live_str(q, "op") ? live_str(q, "op") : "-");
		if (live_u64(q, "sector", &v))
			ctl_table_cell(t, "%llu", (unsigned long long)v);
		else
			ctl_table_cell(t, "-");
		ctl_table_cell(t, "%s", live_size(q, "bytes", a));
		ctl_table_cell(t, "%s", live_duration(q, "age_ns", a));
		ctl_table_cell(t, "%s", live_str(q, "state") ? live_str(q, "state") : "-");
		name = live_str(q, "comm");
		ctl_table_cell(t, "%s", name ? ctl_printable(name, text, sizeof(text)) : "-");
		if (live_u64(q, "pid", &v))
			ctl_table_cell(t, "%llu", (unsigned long long)v);
		else
			ctl_table_cell(t, "-");
	}
	return ctl_table_print(t, stdout, color) < 0 ? ctl_fail(CTL_ERROR, "out of memory")
						     : CTL_OK;
}

int verb_inflight(struct ctl *c, int argc, char **argv)
{
	struct json_object *reply, *list;
	uint64_t total = 0;
	size_t n;
	int r;

	r = live_no_operands(argc, argv);
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".InFlight", NULL, &reply);
	if (r != CTL_OK)
		return r;
	list = live_object(reply, "requests");
	n = live_n(list);
	if (!live_u64(reply, "total", &total))
		total = n;
	if (c->json) {
		r = live_print_lines(list);
	} else if (n == 0) {
		puts("nothing in flight");
	} else {
		ctl_pager_open(c);
		r = print_table(list, ctl_color_enabled(c));
		printf("\n%llu in flight\n", (unsigned long long)total);
	}
	/* On stderr also with --json: a list that is cut says so. */
	if (r == CTL_OK && total > n)
		fprintf(stderr, "iotracectl: the %zu oldest of %llu are listed\n", n,
			(unsigned long long)total);
	json_object_put(reply);
	return r;
}
