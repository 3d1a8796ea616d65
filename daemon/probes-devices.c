/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-devices.c - the disks of this machine: which of them are to be recorded, and how many
 * requests they can have at once.
 *
 * The kernel programs know device numbers, the configuration knows names and globs; this room resolves
 * one into the other against the disks present, again whenever it is asked to. A request keeps the
 * decision made at its first sight. Patterns are for whole disks: the kernel decides before it has
 * assigned a request to a partition.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include "daemon/probes-internal.h"
#include "block.skel.h"

#define SYS_BLOCK "/sys/block"
#define MAX_DEVICES 4096 /* of the map `devices` */

static int read_sys(const char *disk, const char *file, char *buf, size_t size)
{
	_cleanup_close_ int fd = -EBADF;
	char path[512];
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), SYS_BLOCK "/%s/%s", disk, file) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
		n--;
	buf[n] = '\0';
	return 0;
}

static unsigned int count_hw_queues(const char *disk)
{
	unsigned int n = 0;
	struct dirent *de;
	char path[512];
	DIR *dir;

	if ((size_t)snprintf(path, sizeof(path), SYS_BLOCK "/%s/mq", disk) >= sizeof(path))
		return 0;
	dir = opendir(path);
	if (!dir)
		return 0; /* bio-based: has no requests */
	while ((de = readdir(dir)))
		n += de->d_name[0] != '.';
	closedir(dir);
	return n;
}

/*
 * Entries stay in the map, one per request that ever was: per hardware queue the driver's tags, the
 * scheduler's tags of the same number, and one flush command. Twice that, for devices that come later
 * and for tag sets that are replaced (a change of scheduler) before the reaper has gone round.
 */
uint32_t probes_count_requests(void)
{
	uint64_t total = 0, depth;
	struct dirent *de;
	char buf[64];
	DIR *dir;

	dir = opendir(SYS_BLOCK);
	while (dir && (de = readdir(dir))) {
		unsigned int n_queues;

		if (de->d_name[0] == '.')
			continue;
		n_queues = count_hw_queues(de->d_name);
		if (n_queues == 0 ||
		    read_sys(de->d_name, "queue/nr_requests", buf, sizeof(buf)) < 0 ||
		    iot_parse_u64(buf, &depth) < 0)
			continue;
		total += n_queues * (2 * depth + 1);
	}
	if (dir)
		closedir(dir);
	total = IOT_MIN(IOT_MAX(2 * total, 4096U), 1U << 20);
	return (uint32_t)total;
}

/* "8:16" */
static int parse_dev(const char *number, uint32_t *ret)
{
	const char *colon = strchr(number, ':');
	uint64_t ma, mi;
	char buf[32];
	int r;

	if (!colon || (size_t)(colon - number) >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, number, (size_t)(colon - number));
	buf[colon - number] = '\0';
	r = iot_parse_u64(buf, &ma);
	if (r < 0)
		return r;
	r = iot_parse_u64(colon + 1, &mi);
	if (r < 0)
		return r;
	*ret = IOT_DEV(ma, mi);
	return 0;
}

static bool matches(const struct iot_strv *patterns, const char *name, const char *number)
{
	for (size_t i = 0; i < patterns->n; i++) {
		if (fnmatch(patterns->items[i], name, 0) == 0 ||
		    fnmatch(patterns->items[i], number, 0) == 0)
			return true;
	}
	return false;
}

/* Device numbers of the disks that match a, less those that match b (which may be NULL). */
static int resolve(const struct iot_strv *a, const struct iot_strv *b, uint32_t *ret_devs,
		   size_t *ret_n)
{
	struct dirent *de;
	size_t n = 0;
	DIR *dir;
	int r = 0;

	dir = opendir(SYS_BLOCK);
	if (!dir)
		return -errno;
	while ((de = readdir(dir))) {
		char number[64];
		uint32_t dev;

		if (de->d_name[0] == '.' ||
		    read_sys(de->d_name, "dev", number, sizeof(number)) < 0 ||
		    parse_dev(number, &dev) < 0)
			continue;
		if (!matches(a, de->d_name, number) || (b && matches(b, de->d_name, number)))
			continue;
		if (n == MAX_DEVICES) {
			r = -E2BIG;
			break;
		}
		ret_devs[n++] = dev;
	}
	closedir(dir);
	*ret_n = n;
	return r;
}

static void name_unmatched(const char *list, const struct iot_strv *patterns, const bool *matched,
			   char *buf, size_t size)
{
	for (size_t i = 0; i < patterns->n; i++) {
		size_t len = strlen(buf);

		if (!matched[i])
			snprintf(buf + len, size - len, "%s%s %s", len ? ", " : "", list,
				 patterns->items[i]);
	}
}

static void match_disk(const struct iot_strv *patterns, const char *name, const char *number,
		       bool *matched)
{
	for (size_t i = 0; i < patterns->n; i++) {
		const struct iot_strv one = {.items = &patterns->items[i], .n = 1};

		matched[i] |= matches(&one, name, number);
	}
}

int probes_unmatched_devices(const struct iot_device_filter *f, char *buf, size_t size)
{
	_cleanup_free_ bool *in = calloc(f->include.n + 1, sizeof(*in));
	_cleanup_free_ bool *ex = calloc(f->exclude.n + 1, sizeof(*ex));
	struct dirent *de;
	DIR *dir;

	if (!in || !ex)
		return -ENOMEM;
	dir = opendir(SYS_BLOCK);
	if (!dir)
		return -errno;
	while ((de = readdir(dir))) {
		char number[64];

		if (de->d_name[0] == '.' || read_sys(de->d_name, "dev", number, sizeof(number)) < 0)
			continue;
		match_disk(&f->include, de->d_name, number, in);
		match_disk(&f->exclude, de->d_name, number, ex);
	}
	closedir(dir);
	buf[0] = '\0';
	name_unmatched("include", &f->include, in, buf, size);
	name_unmatched("exclude", &f->exclude, ex, buf, size);
	return 0;
}

static bool contains(const uint32_t *devs, size_t n, uint32_t dev)
{
	for (size_t i = 0; i < n; i++) {
		if (devs[i] == dev)
			return true;
	}
	return false;
}

/* Deletes what the map holds beside devs. Collected first: deleting a key makes the walk start over. */
static int drop_others(int fd, const uint32_t *devs, size_t n)
{
	_cleanup_free_ uint32_t *others = NULL;
	uint32_t key, *last = NULL;
	size_t n_others = 0;
	int r;

	others = calloc(MAX_DEVICES, sizeof(*others));
	if (!others)
		return -ENOMEM;
	while (n_others < MAX_DEVICES && bpf_map_get_next_key(fd, last, &key) == 0) {
		others[n_others] = key;
		last = &others[n_others];
		n_others++;
	}
	for (size_t i = 0; i < n_others; i++) {
		if (contains(devs, n, others[i]))
			continue;
		r = bpf_map_delete_elem(fd, &others[i]);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

/* Changes the bits of the filter that mask selects. */
static int set_filter(struct probes *p, uint64_t mask, uint64_t bits)
{
	struct ev_epoch next;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	next = p->active;
	next.filter = (next.filter & ~mask) | bits;
	if (p->active.filter != next.filter)
		r = probes_publish(p, &next);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int probes_set_devices(struct probes *p, const struct iot_device_filter *f)
{
	int fd = bpf_map__fd(p->skel->maps.devices), r = 0;
	_cleanup_free_ uint32_t *devs = NULL;
	uint64_t mode = EV_FILTER_NONE;
	uint8_t one = 1;
	size_t n = 0;

	devs = calloc(MAX_DEVICES, sizeof(*devs));
	if (!devs)
		return -ENOMEM;
	if (f && f->include.n > 0) {
		mode = EV_FILTER_INCLUDE;
		r = resolve(&f->include, &f->exclude, devs, &n);
	} else if (f && f->exclude.n > 0) {
		mode = EV_FILTER_EXCLUDE;
		r = resolve(&f->exclude, NULL, devs, &n);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = bpf_map_update_elem(fd, &devs[i], &one, BPF_ANY);
		if (r < 0)
			return r;
	}
	r = set_filter(p, EV_FILTER_DEVICES, mode);
	if (r < 0)
		return r;
	return drop_others(fd, devs, n);
}

int probes_set_swap(struct probes *p, enum iot_swap_policy policy)
{
	return set_filter(p, EV_FILTER_DROP_SWAP,
			  policy == IOT_DROP_SWAP ? EV_FILTER_DROP_SWAP : 0);
}
