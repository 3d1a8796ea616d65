// SPDX-License-Identifier: BSD-2-Clause
/* How a sealed segment gets its final name, and what is done if the disk failed to take it. */
#include "tests/unit/store-fixture.h"

static void test_publish(bool no_noreplace)
{
	struct store *s = open_store(capture_a);
	char open_name[128], sealed_name[128];
	int fd;

	s->no_noreplace = no_noreplace;
	fd = make_segment(s, 1, 5, true);
	store_name(s, IOT_STREAM_BLOCK, 1, false, open_name, sizeof(open_name));
	store_name(s, IOT_STREAM_BLOCK, 1, true, sealed_name, sizeof(sealed_name));
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, true, &unsynced), 0);
	close(fd);
	assert_false(exists(open_name));
	assert_true(exists(sealed_name));
	/* Nothing is ever replaced. */
	fd = make_segment(s, 1, 6, true);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, false, &unsynced), -EEXIST);
	close(fd);
	assert_true(exists(open_name));
	store_close(s);
}

static void test_publish_rename(void **state)
{
	(void)state;
	test_publish(false);
}

static void test_publish_link(void **state)
{
	(void)state;
	test_publish(true);
}

/* Repeating is no error, since the sync after the rename may fail; a file that is gone is one. */
static void test_publish_twice(void **state)
{
	struct store *s = open_store(capture_a);
	char path[512], name[128];
	int fd;

	(void)state;
	fd = make_segment(s, 1, 5, true);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, true, &unsynced), 0);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, true, &unsynced), 0);
	close(fd);
	fd = make_segment(s, 2, 5, true);
	store_name(s, IOT_STREAM_BLOCK, 2, false, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 2, fd, true, &unsynced), -ENOENT);
	/* Nor does another file under its name make it one. */
	store_name(s, IOT_STREAM_BLOCK, 2, true, name, sizeof(name));
	make_file(name, 5, 0);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 2, fd, true, &unsynced), -ENOENT);
	close(fd);
	store_close(s);
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* Another file, which holds the same, under the same name; to be published instead. */
static void test_rewrite(void **state)
{
	struct store *s = open_store(capture_a);
	struct iot_rewritten done;
	char name[128], tmp[160];
	int fd, copy = -1, again;

	(void)state;
	fd = make_segment(s, 1, 5, true);
	store_name(s, IOT_STREAM_BLOCK, 1, false, name, sizeof(name));
	assert_int_equal(store_rewrite(s, IOT_STREAM_BLOCK, 1, fd, NULL, &copy, &done), 0);
	assert_true(done.kept_records == 5 && done.lost_records == 0);
	assert_true(inode_of(copy) != inode_of(fd));
	again = openat(store_dirfd(s), name, O_RDONLY | O_CLOEXEC);
	assert_true(again >= 0 && inode_of(again) == inode_of(copy));
	close(again);
	snprintf(tmp, sizeof(tmp), "%.*s.recovering", (int)strlen(name) - 5, name);
	assert_false(exists(tmp));
	/* The old one has no name any more, and is not to come back. */
	assert_int_equal(store_rewrite(s, IOT_STREAM_BLOCK, 1, fd, NULL, &again, &done), -ENOENT);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, copy, true, &unsynced), 0);
	store_name(s, IOT_STREAM_BLOCK, 1, true, name, sizeof(name));
	assert_true(exists(name));
	close(fd);
	close(copy);
	/* Not sealed: nothing to go by, and nothing is done. */
	fd = make_segment(s, 2, 5, false);
	assert_int_equal(store_rewrite(s, IOT_STREAM_BLOCK, 2, fd, NULL, &copy, &done), -EBADMSG);
	store_name(s, IOT_STREAM_BLOCK, 2, false, name, sizeof(name));
	assert_true(exists(name));
	close(fd);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_publish_rename, setup, teardown),
		cmocka_unit_test_setup_teardown(test_publish_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_publish_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rewrite, setup, teardown),
	};

	return cmocka_run_group_tests_name("store-publish", tests, NULL, NULL);
}
