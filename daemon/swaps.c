// SPDX-License-Identifier: BSD-2-Clause
/*
 * swaps.c - see swaps.h.
 *
 * Whether a device takes requests is asked of sysfs: a queue of requests has a directory "mq" on every
 * kernel since 5.0 (the last single-queue driver went with a1ce35fa4985), a device made of bios has
 * none. A stacked device lists what is beneath it in "slaves".
 */
#include "daemon/swaps.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MAX_DEPTH 8U /* devices on top of each other; a loop cannot be built */

const struct swaps_paths swaps_system = {
	.swaps = "/proc/swaps",
	.mountinfo = "/proc/self/mountinfo",
	.block = "/sys/class/block",
};

void swaps_done(struct swaps *s)
{
	free(s->items);
	*s = (struct swaps){0};
}

const char *swaps_coverage_name(enum swaps_coverage c)
{
	static const char *const names[] = {
		[SWAPS_UNKNOWN] = "unknown",	 [SWAPS_EXACT] = "exact",
		[SWAPS_BENEATH] = "beneath",	 [SWAPS_UNTAGGED] = "untagged",
		[SWAPS_INVISIBLE] = "invisible",
	};

	return names[c];
}

bool swaps_same(const struct swaps_area *a, const struct swaps_area *b)
{
	return strcmp(a->path, b->path) == 0 && a->dev == b->dev && a->coverage == b->coverage;
}

static void judge(struct swaps_area *a, enum swaps_coverage coverage, const char *fmt, ...)
	IOT_PRINTF(3, 4);
static void judge(struct swaps_area *a, enum swaps_coverage coverage, const char *fmt, ...)
{
	va_list ap;

	a->coverage = coverage;
	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
}

/* ---- text of the kernel ------------------------------------------------------------------------ */

/* Both tables write space, tab, newline and backslash as \ooo. In place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* "path type size used priority", sizes in KiB. False: not such a line. */
static bool parse_area(char *line, struct swaps_area *ret)
{
	const char *separators = " \t\n";
	char *save = NULL, *path = strtok_r(line, separators, &save);
	const char *type = strtok_r(NULL, separators, &save);
	const char *size = strtok_r(NULL, separators, &save);
	const char *used = strtok_r(NULL, separators, &save);
	const char *priority = strtok_r(NULL, separators, &save);
	uint64_t v;
	bool minus;

	*ret = (struct swaps_area){0};
	if (!priority || (strcmp(type, "file") != 0 && strcmp(type, "partition") != 0))
		return false;
	minus = *priority == '-';
	if (iot_parse_u64(size, &ret->size_bytes) < 0 ||
	    iot_parse_u64(used, &ret->used_bytes) < 0 || iot_parse_u64(priority + minus, &v) < 0 ||
	    v > INT32_MAX)
		return false;
	ret->priority = minus ? -(int32_t)v : (int32_t)v;
	ret->size_bytes *= 1024;
	ret->used_bytes *= 1024;
	ret->file = strcmp(type, "file") == 0;
	unescape(path);
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	return true;
}

/* ---- devices ----------------------------------------------------------------------------------- */

static bool exists(const struct swaps_paths *paths, const char *name, const char *below)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/%s", paths->block, name, below);
	return access(path, F_OK) == 0;
}

static bool read_line(const struct swaps_paths *paths, const char *name, const char *below,
		      char *buf, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s/%s", paths->block, name, below);
	f = fopen(path, "re");
	if (!f || !fgets(buf, (int)size, f))
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

static bool parse_dev(const char *text, uint32_t *ret)
{
	char major[16];
	size_t n = strcspn(text, ":");
	uint64_t ma, mi;

	if (!text[n] || n >= sizeof(major))
		return false;
	memcpy(major, text, n);
	major[n] = '\0';
	if (iot_parse_u64(major, &ma) < 0 || iot_parse_u64(text + n + 1, &mi) < 0 || ma > 0xfff ||
	    mi > 0xfffff)
		return false;
	*ret = IOT_DEV(ma, mi);
	return true;
}

static bool is_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 64;
}

/* The block device whose file `file` holds `text`; for the few times that the name is not known. */
static bool search(const struct swaps_paths *paths, const char *file, const char *text, char *ret,
		   size_t size)
{
	DIR *dir = opendir(paths->block);
	const struct dirent *de;
	char line[128];
	bool found = false;

	while (dir && !found && (de = readdir(dir))) {
		if (!is_name(de->d_name) || !read_line(paths, de->d_name, file, line, sizeof(line)))
			continue;
		found = strcmp(line, text) == 0;
		if (found)
			snprintf(ret, size, "%s", de->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The kernel's name of the device behind a path in /dev, with or without a /dev of our own. */
static bool device_of(const struct swaps_paths *paths, const char *path, char *ret, size_t size)
{
	char name[128], number[32];
	struct stat st;

	if (strncmp(path, "/dev/", 5) != 0)
		return false;
	snprintf(name, sizeof(name), "%s", path + 5);
	if (strncmp(name, "mapper/", 7) == 0 && search(paths, "dm/name", name + 7, ret, size))
		return true;
	/* sysfs writes the slashes of "cciss/c0d0" so. */
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '!';
	if (is_name(name) && exists(paths, name, "dev")) {
		snprintf(ret, size, "%s", name);
		return true;
	}
	/* A node or link of another name: it lies in /dev, so looking at it waits for nobody. */
	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return false;
	snprintf(number, sizeof(number), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
	return search(paths, "dev", number, ret, size);
}

/* Names of what is beneath, for people; 0 if nothing is. */
static size_t list_slaves(const struct swaps_paths *paths, const char *name, char names[][64],
			  size_t max)
{
	const struct dirent *de;
	char path[512];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/slaves", paths->block, name);
	dir = opendir(path);
	while (dir && n < max && (de = readdir(dir)))
		if (is_name(de->d_name))
			snprintf(names[n++], 64, "%.63s", de->d_name);
	if (dir)
		closedir(dir);
	return n;
}

/* The disk of a partition: the directory that its own lies in. Anything else is its own disk. */
static void whole_disk(const struct swaps_paths *paths, const char *name, char ret[64])
{
	_cleanup_free_ char *real = NULL;
	char path[512], *slash;

	snprintf(ret, 64, "%s", name);
	snprintf(path, sizeof(path), "%s/%s", paths->block, name);
	if (!exists(paths, name, "partition") || !(real = realpath(path, NULL)))
		return;
	slash = strrchr(real, '/');
	if (!slash)
		return;
	*slash = '\0';
	slash = strrchr(real, '/');
	if (slash && is_name(slash + 1))
		snprintf(ret, 64, "%s", slash + 1);
}

/* Every device at the bottom takes requests; their names are added to ret. */
static bool ends_in_requests(const struct swaps_paths *paths, const char *name, unsigned int depth,
			     char *ret, size_t size)
{
	char names[16][64], disk[64];
	size_t n, len = strlen(ret);

	whole_disk(paths, name, disk);
	if (exists(paths, disk, "mq")) {
		snprintf(ret + len, size - len, "%s%s", len ? ", " : "", name);
		return true;
	}
	n = depth < MAX_DEPTH ? list_slaves(paths, disk, names, IOT_ARRAY_SIZE(names)) : 0;
	for (size_t i = 0; i < n; i++)
		if (!ends_in_requests(paths, names[i], depth + 1, ret, size))
			return false;
	return n > 0;
}

static void judge_device(const struct swaps_paths *paths, struct swaps_area *a)
{
	char disk[64], bottom[96] = "";

	whole_disk(paths, a->disk, disk);
	if (exists(paths, disk, "mq"))
		judge(a, SWAPS_EXACT, "%s", "");
	else if (ends_in_requests(paths, disk, 0, bottom, sizeof(bottom)))
		judge(a, SWAPS_BENEATH,
		      "a stacked device: seen as requests of %s, tagged as far as its driver "
		      "passes "
		      "pages and flags on",
		      bottom);
	else if (strncmp(disk, "nvme", 4) == 0)
		judge(a, SWAPS_BENEATH, "NVMe multipath: seen as requests of its paths");
	else if (strncmp(disk, "zram", 4) == 0)
		judge(a, SWAPS_INVISIBLE, "zram: compressed memory makes no requests");
	else if (strncmp(disk, "ram", 3) == 0 || strncmp(disk, "pmem", 4) == 0)
		judge(a, SWAPS_INVISIBLE, "memory makes no requests");
	else
		judge(a, SWAPS_INVISIBLE, "%s: a device made of bios makes no requests", disk);
}

/* ---- files ------------------------------------------------------------------------------------- */

struct mount {
	char type[64];
	char source[256];
	uint32_t dev;
};

/* "id parent major:minor root point options [fields] - type source options". False: not such a line. */
static bool parse_mount(char *line, char **ret_point, struct mount *ret)
{
	char *dash = strstr(line, " - "), *save = NULL, *dev = NULL, *type, *source;

	if (!dash)
		return false;
	*dash = '\0';
	(void)strtok_r(line, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	dev = strtok_r(NULL, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	*ret_point = strtok_r(NULL, " ", &save);
	type = strtok_r(dash + 3, " ", &save);
	source = strtok_r(NULL, " \n", &save);
	if (!*ret_point || !source || !parse_dev(dev, &ret->dev))
		return false;
	unescape(*ret_point);
	unescape(source);
	snprintf(ret->type, sizeof(ret->type), "%s", type);
	snprintf(ret->source, sizeof(ret->source), "%s", source);
	return true;
}

/* Length of the mount point if path lies below it, else 0. */
static size_t covers(const char *point, const char *path)
{
	size_t n = strlen(point);

	if (n && point[n - 1] == '/')
		n--;
	return strncmp(point, path, n) == 0 && path[n] == '/' ? n + 1 : 0;
}

/* The mount that path lies on: the longest point, and of several mounts at it the last. */
static int find_mount(const struct swaps_paths *paths, const char *path, struct mount *ret)
{
	_cleanup_fclose_ FILE *f = fopen(paths->mountinfo, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, best = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) >= 0) {
		struct mount m;
		char *point;
		size_t n;

		if (!parse_mount(line, &point, &m))
			continue;
		n = covers(point, path);
		if (n && n >= best) {
			best = n;
			*ret = m;
		}
	}
	return best ? 0 : -ENOENT;
}

static bool is_network(const char *type)
{
	static const char *const types[] = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs"};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

static void judge_file(const struct swaps_paths *paths, struct swaps_area *a)
{
	struct mount m = {0};
	char number[32];

	if (find_mount(paths, a->path, &m) < 0) {
		judge(a, SWAPS_UNKNOWN, "no mounted file system has it");
		return;
	}
	if (is_network(m.type)) {
		judge(a, SWAPS_INVISIBLE, "%s: a network file system makes no requests", m.type);
		return;
	}
	/* btrfs and others have a number of no device; the source then says what is beneath. */
	snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR(m.dev), IOT_DEV_MINOR(m.dev));
	if ((IOT_DEV_MAJOR(m.dev) && search(paths, "dev", number, a->disk, sizeof(a->disk))) ||
	    device_of(paths, m.source, a->disk, sizeof(a->disk)))
		judge_device(paths, a);
	else
		judge(a, SWAPS_UNKNOWN, "%s: no block device is known beneath it", m.type);
}

/* ---- places ------------------------------------------------------------------------------------ */

static bool read_number(const struct swaps_paths *paths, const char *name, const char *below,
			uint64_t *ret)
{
	char text[32];

	return read_line(paths, name, below, text, sizeof(text)) && iot_parse_u64(text, ret) >= 0;
}

/* Where on its disk an area lies that is a disk or a partition; else, and if it has gone, end stays 0. */
static void place(const struct swaps_paths *paths, struct swaps_area *a)
{
	char disk[64], number[32];
	uint64_t start = 0, size;
	uint32_t dev;

	whole_disk(paths, a->disk, disk);
	if (!read_number(paths, a->disk, "size", &size) ||
	    !read_line(paths, disk, "dev", number, sizeof(number)) || !parse_dev(number, &dev))
		return;
	if (exists(paths, a->disk, "partition") && !read_number(paths, a->disk, "start", &start))
		return;
	a->place_dev = dev;
	a->first = start;
	a->end = start + size;
}

/* ---- all ---------------------------------------------------------------------------------------- */

static const char *which(bool out, bool in)
{
	return out && in ? "swap" : out ? "swap-out" : "swap-in";
}

/* What the requests of a covered area say, as far as this kernel lets them be told. */
static void judge_ability(uint8_t swap_out, uint8_t swap_in, struct swaps_area *a)
{
	bool out_by_place = swap_out == IOT_ABILITY_PARTITION;
	bool in_by_place = swap_in == IOT_ABILITY_PARTITION;

	if (!swap_out || !swap_in)
		judge(a, SWAPS_UNTAGGED, "this kernel does not tell %s from other requests",
		      which(!swap_out, !swap_in));
	else if ((out_by_place || in_by_place) && (a->coverage != SWAPS_EXACT || !a->end))
		judge(a, SWAPS_UNTAGGED,
		      "%s is told by its place alone, and only a disk or a partition has one",
		      which(out_by_place, in_by_place));
}

static void judge_area(const struct swaps_paths *paths, uint8_t swap_out, uint8_t swap_in,
		       struct swaps_area *a)
{
	char number[32];

	if (a->file)
		judge_file(paths, a);
	else if (device_of(paths, a->path, a->disk, sizeof(a->disk)))
		judge_device(paths, a);
	else
		judge(a, SWAPS_UNKNOWN, "no such block device in %s", paths->block);
	if (!*a->disk || !read_line(paths, a->disk, "dev", number, sizeof(number)) ||
	    !parse_dev(number, &a->dev))
		a->dev = 0;
	if (!a->file && a->dev)
		place(paths, a);
	if (a->coverage == SWAPS_EXACT || a->coverage == SWAPS_BENEATH)
		judge_ability(swap_out, swap_in, a);
}

int swaps_read(const struct swaps_paths *paths, uint8_t swap_out, uint8_t swap_in,
	       struct swaps *ret)
{
	_cleanup_(swaps_done) struct swaps s = {0};
	_cleanup_fclose_ FILE *f = fopen(paths->swaps, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (!f && errno != ENOENT)
		return -errno;
	s.items = calloc(SWAPS_MAX, sizeof(*s.items));
	if (!s.items)
		return -ENOMEM;
	/* The first line is a heading, and no area. */
	while (f && s.n < SWAPS_MAX && getline(&line, &size, f) >= 0) {
		struct swaps_area *a = &s.items[s.n];

		if (!parse_area(line, a))
			continue;
		judge_area(paths, swap_out, swap_in, a);
		s.n++;
	}
	if (f && ferror(f))
		return -EIO;
	ret->n = s.n;
	ret->items = IOT_TAKE_PTR(s.items);
	return 0;
}
