/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-swap.c - what the kernel programs must be told of swap and cgroups: where swap areas lie, for
 * kernels whose requests do not say themselves that they are swap, and which controllers are on cgroup v2.
 *
 * Only areas that are a disk or a partition can be told by their place: a swap file's blocks are its file
 * system's business.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/probes-internal.h"
#include "block.skel.h"

/* One number of /sys/dev/block/MAJOR:MINOR/FILE. -ENOENT: no such file. */
static int read_number(unsigned int major, unsigned int minor, const char *file, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[128], line[32];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major, minor, file);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f))
		return -EIO;
	line[strcspn(line, "\n")] = '\0';
	return iot_parse_u64(line, ret);
}

/* Disk of a partition (its parent directory), or the device itself. */
static int read_disk(unsigned int major, unsigned int minor, uint32_t *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[128], line[32], *colon;
	uint64_t ma, mi;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major, minor);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return -errno;
	line[strcspn(line, "\n")] = '\0';
	colon = strchr(line, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (iot_parse_u64(line, &ma) < 0 || iot_parse_u64(colon + 1, &mi) < 0)
		return -EINVAL;
	*ret = IOT_DEV(ma, mi);
	return 0;
}

/* 1: the area at path is a disk or partition, in *ret. 0: it is not. */
static int locate(const char *path, struct ev_swap_area *ret)
{
	struct ev_swap_area area = {0};
	unsigned int major, minor;
	uint64_t start = 0, size = 0;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.st_mode))
		return 0;
	major = major(st.st_rdev);
	minor = minor(st.st_rdev);
	r = read_number(major, minor, "size", &size);
	if (r < 0)
		return r;
	r = read_number(major, minor, "start", &start);
	if (r == -ENOENT) {
		area.dev = IOT_DEV(major, minor);
		start = 0;
	} else if (r < 0) {
		return r;
	} else {
		r = read_disk(major, minor, &area.dev);
		if (r < 0)
			return r;
	}
	area.first = start;
	area.end = start + size;
	*ret = area;
	return 1;
}

/* /proc/swaps writes a blank in a name as \040, and so on. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to = *s;
		}
	}
	*to = '\0';
}

int probes_refresh_swap_areas(struct probes *p)
{
	struct ev_swap_area area = {0};
	_cleanup_fclose_ FILE *f = NULL;
	unsigned int max, n = 0;
	char line[4200];
	int fd, r;

	if (!p->skel || !p->skel->rodata->block_swap_by_area)
		return 0;
	fd = bpf_map__fd(p->skel->maps.swap_areas);
	max = bpf_map__max_entries(p->skel->maps.swap_areas);
	f = fopen("/proc/swaps", "re");
	if (!f && errno != ENOENT) /* a kernel without swap has no such file */
		return -errno;
	for (bool head = true; f && n < max && fgets(line, sizeof(line), f); head = false) {
		line[strcspn(line, " \t\n")] = '\0';
		unescape(line);
		/* An area may go while we look: then it is none. */
		if (head || locate(line, &area) <= 0)
			continue;
		r = bpf_map_update_elem(fd, &n, &area, BPF_ANY);
		if (r < 0)
			return r;
		n++;
	}
	area = (struct ev_swap_area){0};
	for (; n < max; n++) {
		r = bpf_map_update_elem(fd, &n, &area, BPF_ANY);
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
	static const char *const names[] = {"swap-flag", "pages", "copies"};
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
