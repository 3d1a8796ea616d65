// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-swaps.c - what is made of /proc/swaps, on a made-up machine: disks, a partition, device-mapper,
 * md, zram, NVMe multipath, and files on file systems of every kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "daemon/swaps.h"

#define HEADING "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static char dir[64], swaps_path[96], mount_path[96], block_path[96];
static const struct swaps_paths paths = {swaps_path, mount_path, block_path};

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

/* A directory in devices/ and its name in block/, as in sysfs. parent "" = a disk. */
static void device(const char *parent, const char *name, const char *dev, bool mq)
{
	char real[160], path[192];

	snprintf(real, sizeof(real), "%s/devices/%s%s%s", dir, parent, *parent ? "/" : "", name);
	make_dir(real);
	snprintf(path, sizeof(path), "%s/%s", block_path, name);
	assert_int_equal(symlink(real, path), 0);
	snprintf(path, sizeof(path), "%s/dev", real);
	put(path, dev);
	snprintf(path, sizeof(path), "%s/mq", real);
	if (mq)
		make_dir(path);
	snprintf(path, sizeof(path), "%s/size", real);
	put(path, *parent ? "8192\n" : "16777216\n");
	snprintf(path, sizeof(path), "%s/partition", real);
	if (*parent)
		put(path, "1\n");
	snprintf(path, sizeof(path), "%s/start", real);
	if (*parent)
		put(path, "2048\n");
	snprintf(path, sizeof(path), "%s/slaves", real);
	make_dir(path);
}

static void slave(const char *name, const char *of)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s/slaves/%s", block_path, of, name);
	put(path, "");
}

static void dm_name(const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s/dm", block_path, name);
	make_dir(path);
	snprintf(path, sizeof(path), "%s/%s/dm/name", block_path, name);
	put(path, text);
}

static int setup(void **state)
{
	char path[96];

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-swaps.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(swaps_path, sizeof(swaps_path), "%s/swaps", dir);
	snprintf(mount_path, sizeof(mount_path), "%s/mountinfo", dir);
	snprintf(block_path, sizeof(block_path), "%s/block", dir);
	snprintf(path, sizeof(path), "%s/devices", dir);
	make_dir(path);
	make_dir(block_path);
	device("", "nvme0n1", "259:0\n", true);
	device("nvme0n1", "nvme0n1p3", "259:3\n", false);
	device("", "sda", "8:0\n", true);
	device("", "cciss!c0d0", "104:0\n", true);
	device("", "nvme7n1", "259:9\n", false); /* multipath: its paths are hidden */
	device("", "zram0", "252:0\n", false);
	device("", "pmem0", "251:0\n", false);
	device("", "dm-0", "253:0\n", false);
	slave("nvme0n1p3", "dm-0");
	slave("sda", "dm-0");
	dm_name("dm-0", "vg-root\n");
	device("", "dm-1", "253:1\n", false);
	slave("dm-0", "dm-1");
	slave("zram0", "dm-1");
	device("", "md0", "9:0\n", false);
	slave("dm-0", "md0");
	device("md0", "md0p1", "9:1\n", false);
	put(mount_path, "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n"
			"23 22 259:3 / /var rw,noatime shared:5 - xfs /dev/nvme0n1p3 rw\n"
			"24 22 0:33 /@ /data rw - btrfs /dev/mapper/vg-root rw,subvol=/@\n"
			"25 22 0:34 / /net rw - nfs4 server:/export rw\n"
			"26 22 0:35 / /odd rw - somefs nothing rw\n"
			"27 22 252:0 / /with\\040space rw - ext4 /dev/zram0 rw\n"
			"28 23 8:0 / /var/over rw - ext4 /dev/sda rw\n"
			"29 23 0:99 / /var/over rw - overlay overlay rw\n"
			"30 22 garbage\n");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void read_text(const char *text, struct swaps *ret)
{
	put(swaps_path, text);
	assert_int_equal(swaps_read(&paths, IOT_ABILITY_EXACT, IOT_ABILITY_PAGE, ret), 0);
}

static void test_fields(void **state)
{
	_cleanup_(swaps_done) struct swaps s = {0};

	(void)state;
	read_text(HEADING
		  "/dev/nvme0n1p3                          partition\t8388604\t\t1024\t\t-2\n"
		  "/var/a\\040swap\\011file\\134x file\t\t2097148\t\t0\t\t100\n",
		  &s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.items[0].path, "/dev/nvme0n1p3");
	assert_false(s.items[0].file);
	assert_int_equal(s.items[0].size_bytes, 8388604ULL * 1024);
	assert_int_equal(s.items[0].used_bytes, 1024 * 1024);
	assert_int_equal(s.items[0].priority, -2);
	assert_int_equal(s.items[0].dev, IOT_DEV(259, 3));
	assert_string_equal(s.items[0].disk, "nvme0n1p3");
	assert_int_equal(s.items[0].coverage, SWAPS_EXACT);
	assert_string_equal(s.items[0].why, "");
	assert_int_equal(s.items[0].place_dev, IOT_DEV(259, 0));
	assert_int_equal(s.items[0].first, 2048);
	assert_int_equal(s.items[0].end, 2048 + 8192);
	assert_int_equal(s.items[1].end, 0);
	assert_string_equal(s.items[1].path, "/var/a swap\tfile\\x");
	assert_true(s.items[1].file);
	assert_int_equal(s.items[1].priority, 100);
	assert_string_equal(s.items[1].disk, "nvme0n1p3");
	assert_int_equal(s.items[1].coverage, SWAPS_EXACT);
}

static void test_coverage(void **state)
{
	static const struct {
		const char *line;
		enum swaps_coverage coverage;
		uint32_t dev;
		const char *why;
	} cases[] = {
		{"/dev/sda partition 8 0 -2\n", SWAPS_EXACT, IOT_DEV(8, 0), ""},
		{"/dev/cciss/c0d0 partition 8 0 -2\n", SWAPS_EXACT, IOT_DEV(104, 0), ""},
		{"/dev/zram0 partition 8 0 -2\n", SWAPS_INVISIBLE, IOT_DEV(252, 0),
		 "zram: compressed memory makes no requests"},
		{"/dev/pmem0 partition 8 0 -2\n", SWAPS_INVISIBLE, IOT_DEV(251, 0),
		 "memory makes no requests"},
		{"/dev/nvme7n1 partition 8 0 -2\n", SWAPS_BENEATH, IOT_DEV(259, 9),
		 "NVMe multipath: seen as requests of its paths"},
		/* One part in memory: a share of the pages is never seen. */
		{"/dev/dm-1 partition 8 0 -2\n", SWAPS_INVISIBLE, IOT_DEV(253, 1),
		 "dm-1: a device made of bios makes no requests"},
		{"/dev/gone partition 8 0 -2\n", SWAPS_UNKNOWN, 0, NULL},
		{"/dev/../etc partition 8 0 -2\n", SWAPS_UNKNOWN, 0, NULL},
		{"/swapfile file 8 0 -2\n", SWAPS_UNKNOWN, 0,
		 "ext4: no block device is known beneath it"},
		{"/var/lib/swapfile file 8 0 -2\n", SWAPS_EXACT, IOT_DEV(259, 3), ""},
		{"/variable/swap file 8 0 -2\n", SWAPS_UNKNOWN, 0,
		 "ext4: no block device is known beneath it"},
		{"/net/swapfile file 8 0 -2\n", SWAPS_INVISIBLE, 0,
		 "nfs4: a network file system makes no requests"},
		{"/odd/swapfile file 8 0 -2\n", SWAPS_UNKNOWN, 0,
		 "somefs: no block device is known beneath it"},
		{"/with\\040space/s file 8 0 -2\n", SWAPS_INVISIBLE, IOT_DEV(252, 0),
		 "zram: compressed memory makes no requests"},
		/* Mounted over: the later mount has it. */
		{"/var/over/s file 8 0 -2\n", SWAPS_UNKNOWN, 0,
		 "overlay: no block device is known beneath it"},
		{"relative file 8 0 -2\n", SWAPS_UNKNOWN, 0, "no mounted file system has it"},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(cases); i++) {
		_cleanup_(swaps_done) struct swaps s = {0};
		char text[256];

		snprintf(text, sizeof(text), HEADING "%s", cases[i].line);
		read_text(text, &s);
		if (s.n != 1 || s.items[0].coverage != cases[i].coverage ||
		    s.items[0].dev != cases[i].dev ||
		    (cases[i].why && strcmp(s.items[0].why, cases[i].why) != 0))
			fail_msg("%s: %zu areas, %s, %u:%u, %s", cases[i].line, s.n,
				 s.n ? swaps_coverage_name(s.items[0].coverage) : "?",
				 s.n ? IOT_DEV_MAJOR(s.items[0].dev) : 0,
				 s.n ? IOT_DEV_MINOR(s.items[0].dev) : 0,
				 s.n ? s.items[0].why : "");
	}
}

/* The order of what is beneath is the directory's. */
static void test_stacked(void **state)
{
	static const char *const lines[] = {
		"/dev/mapper/vg-root partition 8 0 -2\n",
		"/dev/md0p1 partition 8 0 -2\n",
		"/data/swapfile file 8 0 -2\n",
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(lines); i++) {
		_cleanup_(swaps_done) struct swaps s = {0};

		read_text(lines[i], &s);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.items[0].coverage, SWAPS_BENEATH);
		assert_non_null(strstr(s.items[0].why, "requests of "));
		assert_non_null(strstr(s.items[0].why, "nvme0n1p3"));
		assert_non_null(strstr(s.items[0].why, "sda"));
		assert_string_equal(s.items[0].disk, i == 1 ? "md0p1" : "dm-0");
	}
}

static void test_what_the_kernel_cannot_tell(void **state)
{
	static const char text[] = HEADING
		"/dev/sda partition 8 0 -2\n/dev/zram0 partition 8 0 -3\n";
	_cleanup_(swaps_done) struct swaps s = {0}, t = {0};

	(void)state;
	put(swaps_path, text);
	assert_int_equal(swaps_read(&paths, IOT_ABILITY_EXACT, IOT_ABILITY_UNAVAILABLE, &s), 0);
	assert_int_equal(s.items[0].coverage, SWAPS_UNTAGGED);
	assert_string_equal(s.items[0].why,
			    "this kernel does not tell swap-in from other requests");
	assert_int_equal(s.items[1].coverage, SWAPS_INVISIBLE);
	assert_int_equal(swaps_read(&paths, IOT_ABILITY_UNAVAILABLE, IOT_ABILITY_UNAVAILABLE, &t),
			 0);
	assert_string_equal(t.items[0].why, "this kernel does not tell swap from other requests");
	assert_true(swaps_same(&s.items[0], &t.items[0]));
	assert_false(swaps_same(&s.items[0], &s.items[1]));
}

/* By its place: what has none of its own is not told, whatever it lies on. */
static void test_told_by_place(void **state)
{
	static const char text[] = HEADING
		"/dev/sda partition 8 0 -2\n/dev/nvme0n1p3 partition 8 0 -3\n/var/lib/s file 8 0 "
		"-4\n"
		"/dev/mapper/vg-root partition 8 0 -5\n/dev/zram0 partition 8 0 -6\n";
	static const enum swaps_coverage want[] = {SWAPS_EXACT, SWAPS_EXACT, SWAPS_UNTAGGED,
						   SWAPS_UNTAGGED, SWAPS_INVISIBLE};
	_cleanup_(swaps_done) struct swaps s = {0}, t = {0};

	(void)state;
	put(swaps_path, text);
	assert_int_equal(swaps_read(&paths, IOT_ABILITY_PARTITION, IOT_ABILITY_PARTITION, &s), 0);
	assert_int_equal(s.n, IOT_ARRAY_SIZE(want));
	for (size_t i = 0; i < s.n; i++)
		assert_int_equal(s.items[i].coverage, want[i]);
	assert_int_equal(s.items[0].place_dev, IOT_DEV(8, 0));
	assert_int_equal(s.items[0].first, 0);
	assert_int_equal(s.items[0].end, 16777216);
	assert_string_equal(
		s.items[2].why,
		"swap is told by its place alone, and only a disk or a partition has one");
	assert_int_equal(swaps_read(&paths, IOT_ABILITY_EXACT, IOT_ABILITY_PARTITION, &t), 0);
	assert_string_equal(
		t.items[2].why,
		"swap-in is told by its place alone, and only a disk or a partition has one");
}

static void test_no_areas(void **state)
{
	static const char *const texts[] = {
		"",
		HEADING,
		"x\n",
		"/a file x 0 0\n",
		"/a file 1 0\n",
		"/a pipe 1 0 0\n",
		"/a file 99999999999999999999 0 0\n",
		"/a file 1 0 99999999999\n",
	};
	static const struct swaps_paths nowhere = {"/nonexistent/swaps", "/nonexistent/m",
						   "/nonexistent/b"};
	_cleanup_(swaps_done) struct swaps none = {0};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++) {
		_cleanup_(swaps_done) struct swaps s = {0};

		read_text(texts[i], &s);
		assert_int_equal(s.n, 0);
	}
	/* A kernel without swap; and what cannot be read. */
	assert_int_equal(swaps_read(&nowhere, 1, 1, &none), 0);
	assert_int_equal(none.n, 0);
	assert_int_equal(swaps_read(&(struct swaps_paths){"/proc/self/mem", "", ""}, 1, 1, &none),
			 -EIO);
}

static void test_many_areas(void **state)
{
	_cleanup_(swaps_done) struct swaps s = {0};
	char *text = calloc(200, 64);
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < 200; i++)
		n += (size_t)sprintf(text + n, "/dev/sda partition %d 0 -2\n", i);
	read_text(text, &s);
	assert_int_equal(s.n, SWAPS_MAX);
	assert_int_equal(s.items[SWAPS_MAX - 1].size_bytes, (SWAPS_MAX - 1) * 1024);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_stacked),
		cmocka_unit_test(test_what_the_kernel_cannot_tell),
		cmocka_unit_test(test_no_areas),
		cmocka_unit_test(test_many_areas),
		cmocka_unit_test(test_told_by_place),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
