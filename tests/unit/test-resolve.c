// SPDX-License-Identifier: BSD-2-Clause
/* Names of inodes by a walk over a tree made for it, and bytes of the workload from a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/resolve.h"
#include "tests/unit/ctl-said.h"

#define SEC UINT64_C(1000000000)

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/var/tmp/test-resolve.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static const char *at(const char *name)
{
	static char path[8][512];
	static unsigned int i;

	i = (i + 1) % 8;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static uint64_t ino(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(at(name), &st), 0);
	return st.st_ino;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

static const struct resolve_want *want_of(const struct resolve_want *wants, size_t n, uint64_t i)
{
	for (size_t k = 0; k < n; k++)
		if (wants[k].ino == i)
			return &wants[k];
	fail();
	return NULL;
}

static void test_walk(void **state)
{
	struct resolve_want wants[6] = {{0}};
	const struct resolve_want *w;
	struct resolve_walk walk;
	char slashes[80];

	(void)state;
	assert_int_equal(mkdir(at("a"), 0700), 0);
	assert_int_equal(mkdir(at("a/b"), 0700), 0);
	put("a/b/deep", "x");
	put("top", "x");
	put("once", "x");
	assert_int_equal(link(at("once"), at("a/twice")), 0);
	/* A link to a directory is not a way into it, and not a name of what it points to. */
	assert_int_equal(symlink(dir, at("a/loop")), 0);
	wants[0].ino = ino("top");
	wants[1].ino = ino("a/b/deep");
	wants[2].ino = ino("a/b");
	wants[3].ino = UINT64_MAX; /* nobody's */
	wants[4].ino = ino("once");
	wants[5].ino = ino("a/loop");
	for (size_t i = 0; i < 6; i++)
		wants[i].last_ns = now_ns() + SEC;
	snprintf(slashes, sizeof(slashes), "%s//", dir);
	assert_int_equal(resolve_walk(slashes, wants, 6, &walk), 0);

	w = want_of(wants, 6, ino("top"));
	assert_int_equal(w->state, RESOLVE_FOUND);
	assert_string_equal(w->path, at("top"));
	assert_string_equal(want_of(wants, 6, ino("a/b/deep"))->path, at("a/b/deep"));
	assert_string_equal(want_of(wants, 6, ino("a/b"))->path, at("a/b"));
	assert_string_equal(want_of(wants, 6, ino("a/loop"))->path, at("a/loop"));
	assert_int_equal(want_of(wants, 6, UINT64_MAX)->state, RESOLVE_NOT_FOUND);
	assert_null(want_of(wants, 6, UINT64_MAX)->path);
	/* Either name of a file with two is right. */
	w = want_of(wants, 6, ino("once"));
	assert_int_equal(w->state, RESOLVE_FOUND);
	assert_true(strcmp(w->path, at("once")) == 0 || strcmp(w->path, at("a/twice")) == 0);
	assert_int_equal(walk.n_dirs, 3);
	assert_int_equal(walk.n_denied, 0);
	assert_true(walk.at_ns && walk.at_ns <= now_ns());
	for (size_t i = 0; i < 6; i++)
		free(wants[i].path);
}

/* A number that was given to a younger file: not the file of the record. */
static void test_reused(void **state)
{
	struct resolve_want want = {0};
	struct resolve_walk walk;
	struct statx st;

	(void)state;
	put("young", "x");
	assert_int_equal(statx(AT_FDCWD, at("young"), 0, STATX_BTIME, &st), 0);
	if (!(st.stx_mask & STATX_BTIME))
		skip();
	want.ino = ino("young");
	want.last_ns = now_ns() - 3600 * SEC;
	assert_int_equal(resolve_walk(dir, &want, 1, &walk), 0);
	assert_int_equal(want.state, RESOLVE_REUSED);
	assert_null(want.path);
	/* Not known when it was last used: then nothing speaks against it. */
	want.last_ns = 0;
	assert_int_equal(resolve_walk(dir, &want, 1, &walk), 0);
	assert_int_equal(want.state, RESOLVE_FOUND);
	free(want.path);
}

static void test_deep_and_nothing(void **state)
{
	struct resolve_want want = {.ino = UINT64_MAX};
	struct resolve_walk walk;
	int fd, sub;

	(void)state;
	assert_int_equal(mkdir(at("chain"), 0700), 0);
	fd = open(at("chain"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 400; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		sub = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(sub >= 0);
		close(fd);
		fd = sub;
	}
	close(fd);
	/* Bounded, and it says that it has not seen everything. */
	assert_int_equal(resolve_walk(at("chain"), &want, 1, &walk), 0);
	assert_int_equal(walk.n_denied, 1);
	assert_true(walk.n_dirs > 200 && walk.n_dirs < 400);
	assert_int_equal(want.state, RESOLVE_NOT_FOUND);
	/* Nothing wanted: nothing read. */
	assert_int_equal(resolve_walk(dir, NULL, 0, &walk), 0);
	assert_true(walk.n_dirs <= 1);
	assert_int_equal(resolve_walk(at("nosuch"), &want, 1, &walk), -ENOENT);
	put("file", "");
	assert_int_equal(resolve_walk(at("file"), &want, 1, &walk), -ENOTDIR);
}

static void test_device(void **state)
{
	struct stat st;
	uint32_t dev;

	(void)state;
	assert_int_equal(resolve_device(at("nosuch"), &dev), -ENOENT);
	put("plain", "");
	assert_int_equal(resolve_device(at("plain"), &dev), -ENOTDIR);
	/* Where stat's number is the file system's: everywhere but on btrfs and its like. */
	assert_int_equal(stat("/proc", &st), 0);
	assert_int_equal(resolve_device("/proc", &dev), 0);
	assert_int_equal(dev, major(st.st_dev) << 20 | minor(st.st_dev));
}

static void expect_bytes(const char *arg, int r, uint64_t want, const char *message)
{
	struct iot_error err = {0};
	uint64_t bytes = 77;

	assert_int_equal(ctl_logical_bytes(arg, &bytes, &err), r);
	assert_int_equal(bytes, r < 0 ? 77 : want);
	if (message && !strstr(err.text, message))
		fail_msg("%s: '%s' is not in '%s'", arg, message, err.text);
}

static void test_logical_bytes(void **state)
{
	char arg[600], want[600];

	(void)state;
	expect_bytes("4096", 0, 4096, NULL);
	expect_bytes("64MiB", 0, 64 << 20, NULL);
	expect_bytes("many", -EINVAL, 0, "'many' is no number of bytes");
	snprintf(arg, sizeof(arg), "@%s", at("numbers"));
	put("numbers", "# of three processes\n100\n  20 \n\n\t1KiB # the last\r\n");
	expect_bytes(arg, 0, 1144, NULL);
	put("numbers", "");
	expect_bytes(arg, 0, 0, NULL);
	put("numbers", "1\nx y\n");
	snprintf(want, sizeof(want), "%s:2: 'x y' is no number", at("numbers"));
	expect_bytes(arg, -EINVAL, 0, want);
	put("numbers", "18446744073709551615\n1\n");
	expect_bytes(arg, -ERANGE, 0, ":2: more than");
	expect_bytes("@/nonexistent", -ENOENT, 0, "/nonexistent: No such file");
	expect_bytes("@/", -EINVAL, 0, "is no file but a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep_and_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_device, setup, teardown),
		cmocka_unit_test_setup_teardown(test_logical_bytes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
