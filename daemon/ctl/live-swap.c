// SPDX-License-Identifier: BSD-2-Clause
/*
 * live-swap.c - the active swap areas as `status` and `probes` show them: which of them the record
 * covers, and why the others cannot be covered.
 */
#include "daemon/ctl/live.h"

static enum ctl_style coverage_style(const char *coverage)
{
	if (strcmp(coverage, "exact") == 0)
		return CTL_STYLE_GOOD;
	return CTL_STYLE_WARN;
}

static const char *printable(struct json_object *o, const char *key, char *buf, size_t size)
{
	const char *s = live_str(o, key);

	return s ? ctl_printable(s, buf, size) : NULL;
}

/* " on nvme0n1p3" where the path does not say so already. */
static void print_device(struct json_object *area, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *disk;
	char buf[160];

	disk = printable(area, "disk", buf, sizeof(buf));
	if (disk && strcmp(slash ? slash + 1 : path, disk) != 0)
		printf(" on %s", disk);
}

void live_print_swap_areas(struct json_object *areas, const char *label, bool color)
{
	char path[600], why[512], size[CTL_HUMAN_MAX], used[CTL_HUMAN_MAX];
	size_t n = live_n(areas);

	if (!json_object_is_type(areas, json_type_array)) {
		printf("%s: unknown\n", label);
		return;
	}
	if (n == 0)
		printf("%s: none active\n", label);
	for (size_t i = 0; i < n; i++) {
		struct json_object *a = json_object_array_get_idx(areas, i);
		const char *p = printable(a, "path", path, sizeof(path));
		const char *reason = printable(a, "why", why, sizeof(why));
		const char *coverage = live_str(a, "coverage");

		p = p ? p : "?";
		coverage = coverage ? coverage : "unknown";
		printf("%*s%s%s", (int)strlen(label), i ? "" : label, i ? "  " : ": ", p);
		print_device(a, p);
		printf(", %s of %s used: %s%s%s\n", live_size(a, "used_bytes", used),
		       live_size(a, "size_bytes", size),
		       ctl_style_on(color, coverage_style(coverage)), coverage,
		       ctl_style_off(color));
		if (reason)
			printf("%*s    %s\n", (int)strlen(label), "", reason);
	}
}
