/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-swap.c - what the kernel programs must be told of swap and cgroups: where swap areas lie, for
 * kernels whose requests do not say themselves that they are swap, and which controllers are on cgroup v2.
 *
 * Only areas that are a disk or a partition can be told by their place (swaps.c): a swap file's blocks are
 * its file system's business.
 */
#include "daemon/probes-internal.h"
#include "daemon/swaps.h"
#include "block.skel.h"

/* What has no place is left out; swaps.c says so of it. */
int probes_set_swap_areas(struct probes *p, const struct swaps *areas)
{
	unsigned int max, n = 0;
	int fd, r;

	if (!p->skel || !p->skel->rodata->block_swap_by_area)
		return 0;
	fd = bpf_map__fd(p->skel->maps.swap_areas);
	max = bpf_map__max_entries(p->skel->maps.swap_areas);
	for (size_t i = 0; i < areas->n; i++) {
		const struct swaps_area *a = &areas->items[i];
		struct ev_swap_area area = {.first = a->first, .end = a->end, .dev = a->place_dev};

		if (!a->end)
			continue;
		if (n == max)
			return -E2BIG;
		r = bpf_map_update_elem(fd, &n, &area, BPF_ANY);
		if (r < 0)
			return r;
		n++;
	}
	for (; n < max; n++) {
		struct ev_swap_area none = {0};

		r = bpf_map_update_elem(fd, &n, &none, BPF_ANY);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Second column of /proc/cgroups: 0 = the controller is on the v2 hierarchy, or on none. A kernel built
 * without v1 has no such file.
 */
bool probes_on_cgroup2(const char *controller)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/cgroups", "re");
	size_t len = strlen(controller);
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, controller, len) == 0 && line[len] == '\t')
			return strncmp(line + len, "\t0\t", 3) == 0;
	}
	return true;
}

int probes_without_parse(const char *text, uint32_t *ret)
{
	static const char *const names[] = {"swap-flag", "pages", "copies", "origin", "casts"};
	uint32_t without = 0;

	while (text && *text) {
		size_t len = strcspn(text, ","), i;

		for (i = 0; i < IOT_ARRAY_SIZE(names); i++) {
			if (strlen(names[i]) == len && strncmp(text, names[i], len) == 0)
				break;
		}
		if (i == IOT_ARRAY_SIZE(names))
			return -EINVAL;
		without |= 1U << i;
		text += len + (text[len] == ',');
	}
	*ret = without;
	return 0;
}
