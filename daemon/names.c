// SPDX-License-Identifier: BSD-2-Clause
/* names.c - see names.h. */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/clock.h"
#include "daemon/names.h"

#define MAX_NAMES 65536U /* of each kind, cached */
#define MAX_WALK 20000U	 /* cgroup directories visited by one walk */
#define MAX_DEPTH 32U
#define WALK_PAUSE_NS 5000000000ULL
#define HANDLE_KERNFS 0xfe /* FILEID_KERNFS, include/linux/exportfs.h since 5.5 */

struct cache {
	uint64_t *keys; /* sorted */
	char **names;
	size_t n;
	size_t room;
};

struct names {
	struct cache devices;
	struct cache cgroups;
	int cgroup_fd; /* of the cgroup2 mount; -EBADF: none */
	char cgroup_mount[256];
	bool no_handles;
	uint64_t walked_ns;
};

static size_t lower_bound(const struct cache *c, uint64_t key)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->keys[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const char *cache_find(const struct cache *c, uint64_t key)
{
	size_t i = lower_bound(c, key);

	if (i >= c->n || c->keys[i] != key)
		return NULL;
	assert(c->names[i]); /* a key is never without its name */
	return c->names[i];
}

/* Losing a name for want of memory costs a name. */
static void cache_put(struct cache *c, uint64_t key, const char *name)
{
	size_t i = lower_bound(c, key);
	char *copy;

	if (i < c->n && c->keys[i] == key && strcmp(c->names[i], name) == 0)
		return;
	copy = strdup(name);
	if (!copy)
		return;
	if (i < c->n && c->keys[i] == key) {
		free(c->names[i]);
		c->names[i] = copy;
		return;
	}
	if (c->n == c->room) {
		size_t more = c->room ? 2 * c->room : 64;
		uint64_t *keys = c->n < MAX_NAMES ? reallocarray(c->keys, more, sizeof(*keys))
						  : NULL;
		char **names;

		if (keys)
			c->keys = keys;
		names = keys ? reallocarray(c->names, more, sizeof(*names)) : NULL;
		if (!names) {
			free(copy);
			return;
		}
		c->names = names;
		c->room = more;
	}
	memmove(c->keys + i + 1, c->keys + i, (c->n - i) * sizeof(*c->keys));
	memmove(c->names + i + 1, c->names + i, (c->n - i) * sizeof(*c->names));
	c->keys[i] = key;
	c->names[i] = copy;
	c->n++;
}

static void cache_done(struct cache *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->names[i]);
	free(c->keys);
	free(c->names);
}

/* Wherever cgroup2 is mounted: /sys/fs/cgroup, /sys/fs/cgroup/unified, ... */
static void find_cgroup2(struct names *n)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - ");
		char *save = NULL, *word;

		if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0)
			continue;
		/* id parent major:minor root mountpoint */
		word = strtok_r(line, " ", &save);
		for (int i = 0; i < 4 && word; i++)
			word = strtok_r(NULL, " ", &save);
		if (!word || strlen(word) >= sizeof(n->cgroup_mount))
			continue;
		snprintf(n->cgroup_mount, sizeof(n->cgroup_mount), "%s", word);
		n->cgroup_fd = open(word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (n->cgroup_fd >= 0)
			return;
	}
}

int names_new(struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->cgroup_fd = -EBADF;
	find_cgroup2(n);
	*ret = n;
	return 0;
}

struct names *names_free(struct names *n)
{
	if (!n)
		return NULL;
	cache_done(&n->devices);
	cache_done(&n->cgroups);
	if (n->cgroup_fd >= 0)
		close(n->cgroup_fd);
	free(n);
	return NULL;
}

static void see_device(struct names *n, uint64_t key)
{
	char path[64], line[256];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", IOT_DEV_MAJOR(key),
		 IOT_DEV_MINOR(key));
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "DEVNAME=", 8) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		cache_put(&n->devices, key, line + 8);
		return;
	}
}

void names_see_devices(struct names *n, const uint64_t *keys, size_t n_keys)
{
	for (size_t i = 0; i < n_keys; i++)
		see_device(n, keys[i]);
}

void names_scan_devices(struct names *n)
{
	DIR *dir = opendir("/sys/dev/block");
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir))) {
		char *colon = strchr(d->d_name, ':');
		uint64_t ma, mi;

		if (!colon)
			continue;
		*colon = 0;
		if (iot_parse_u64(d->d_name, &ma) >= 0 && iot_parse_u64(colon + 1, &mi) >= 0)
			see_device(n, IOT_DEV(ma, mi));
	}
	closedir(dir);
}

/* The kernel opens a cgroup directory by its id. */
static bool see_by_handle(struct names *n, uint64_t id)
{
	struct {
		struct file_handle h;
		uint64_t id;
	} handle = {.h = {.handle_bytes = sizeof(uint64_t), .handle_type = HANDLE_KERNFS}};
	char link[48], path[4096];
	size_t mount = strlen(n->cgroup_mount);
	ssize_t len;
	int fd;

	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(n->cgroup_fd, &handle.h, O_PATH | O_CLOEXEC);
	if (fd < 0) {
		/* ESTALE: no such cgroup any more. Anything else: this way is closed to us. */
		n->no_handles = errno != ESTALE && errno != ENOENT;
		return !n->no_handles;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	close(fd);
	if (len <= 0)
		return true;
	path[len] = 0;
	if (strncmp(path, n->cgroup_mount, mount) == 0)
		cache_put(&n->cgroups, id, path[mount] ? path + mount : "/");
	return true;
}

static void walk(struct names *n, int parent_fd, const char *name, char *path, size_t len,
		 unsigned int depth, unsigned int *budget)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((d = readdir(dir)) && *budget > 0) {
		int more;

		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		more = snprintf(path + len, 4096 - len, "/%s", d->d_name);
		if (more < 0 || (size_t)more >= 4096 - len)
			continue;
		(*budget)--;
		cache_put(&n->cgroups, d->d_ino, path);
		if (depth < MAX_DEPTH)
			walk(n, dirfd(dir), d->d_name, path, len + (size_t)more, depth + 1, budget);
		path[len] = 0;
	}
	closedir(dir);
}

static void walk_all(struct names *n)
{
	unsigned int budget = MAX_WALK;
	uint64_t now_ns = clock_now_ns();
	char path[4096] = "";

	if (n->walked_ns && now_ns - n->walked_ns < WALK_PAUSE_NS)
		return;
	n->walked_ns = now_ns;
	walk(n, n->cgroup_fd, ".", path, 0, 0, &budget);
}

void names_see_cgroups(struct names *n, const uint64_t *keys, size_t n_keys)
{
	bool unknown = false;

	if (n->cgroup_fd < 0)
		return;
	for (size_t i = 0; i < n_keys; i++) {
		if (cache_find(&n->cgroups, keys[i]))
			continue;
		if (n->no_handles || !see_by_handle(n, keys[i]))
			unknown = true;
	}
	if (unknown) {
		struct stat st;

		if (fstat(n->cgroup_fd, &st) == 0)
			cache_put(&n->cgroups, st.st_ino, "/");
		walk_all(n);
	}
}

int names_all_devices(struct names *n, struct iot_names *ret)
{
	for (size_t i = 0; i < n->devices.n; i++) {
		int r = iot_names_add(ret, n->devices.keys[i], n->devices.names[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int table_of(const struct cache *c, const uint64_t *keys, size_t n, struct iot_names *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = cache_find(c, keys[i]);
		int r = name ? iot_names_add(ret, keys[i], name) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int names_devices_of(struct names *n, const struct id_set *set, struct iot_names *ret)
{
	_cleanup_free_ uint64_t *keys = NULL;
	int r = id_set_keys(set, &keys);

	if (r < 0)
		return r;
	names_see_devices(n, keys, set->n);
	return table_of(&n->devices, keys, set->n, ret);
}

int names_cgroups_of(struct names *n, const struct id_set *set, struct iot_names *ret)
{
	_cleanup_free_ uint64_t *keys = NULL;
	int r = id_set_keys(set, &keys);

	if (r < 0)
		return r;
	names_see_cgroups(n, keys, set->n);
	return table_of(&n->cgroups, keys, set->n, ret);
}
