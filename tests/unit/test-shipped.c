// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-shipped.c - the note of what is archived: what is not a whole line of the very file is not shipped.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "format/shipped.h"

#define DIGEST "0123456789abcdef0123456789abcdef"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-shipped.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[300];

	(void)state;
	snprintf(path, sizeof(path), "%s/note", dir);
	unlink(path);
	return rmdir(dir);
}

static struct iot_shipped *load(const char *text, size_t len)
{
	struct iot_shipped *s = NULL;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/note", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
	assert_int_equal(iot_shipped_load(path, &s, NULL), 0);
	return s;
}

static void test_lines(void **state)
{
	static const char text[] = "iotraced-archive 1 s3:a b/c\n"
				   "b.iot 10 20 " DIGEST "\n"
				   "a.iot 1 2 " DIGEST "\n"
				   "a.iot 3 4 f" DIGEST "\n"
				   "c.iot 5 x " DIGEST "\n"
				   "d.iot 5 6 " DIGEST " 7\n"
				   "e.iot 5 6\n"
				   "\n"
				   "a.iot 7 8 " DIGEST "\n"
				   "f.iot 9 9 " DIGEST;
	struct iot_shipped *s = load(text, strlen(text));

	(void)state;
	assert_string_equal(iot_shipped_destination(s), "s3:a b/c");
	assert_int_equal(iot_shipped_n(s), 2);
	assert_string_equal(iot_shipped_at(s, 0)->name, "a.iot");
	assert_non_null(iot_shipped_find(s, "b.iot", 10, 20));
	assert_string_equal(iot_shipped_find(s, "b.iot", 10, 20)->digest, DIGEST);
	/* Another file of that name. */
	assert_null(iot_shipped_find(s, "b.iot", 11, 20));
	assert_null(iot_shipped_find(s, "b.iot", 10, 21));
	/* The last line of a name counts. */
	assert_null(iot_shipped_find(s, "a.iot", 1, 2));
	assert_non_null(iot_shipped_find(s, "a.iot", 7, 8));
	/* Cut in the middle, as by a crash. */
	assert_null(iot_shipped_find(s, "f.iot", 9, 9));
	iot_shipped_free(s);
}

/* However it is cut, what is found is whole; without its first line, nothing. */
static void test_cuts(void **state)
{
	static const char text[] = "iotraced-archive 1 /srv\n"
				   "a.iot 1 2 " DIGEST "\n"
				   "b.iot 30 40 " DIGEST "\n";
	const size_t first = strlen("iotraced-archive 1 /srv\n");

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		struct iot_shipped *s = load(text, n);

		assert_int_equal(iot_shipped_n(s) > 0,
				 n >= first + strlen("a.iot 1 2 " DIGEST "\n"));
		assert_int_equal(iot_shipped_find(s, "b.iot", 30, 40) != NULL, n == strlen(text));
		assert_string_equal(iot_shipped_destination(s), n >= first ? "/srv" : "");
		iot_shipped_free(s);
	}
}

static void test_other_files(void **state)
{
	static const char newer[] = "iotraced-archive 2 /srv\na.iot 1 2 " DIGEST "\n";
	static const char nul[] = "iotraced-archive 1 /srv\na.iot 1 2 " DIGEST "\0\n"
				  "b.iot 1 2 " DIGEST "\n";
	struct iot_shipped *s = load(newer, strlen(newer));
	char path[300];

	(void)state;
	assert_int_equal(iot_shipped_n(s), 0);
	iot_shipped_free(s);
	/* A NUL ends it. */
	s = load(nul, sizeof(nul) - 1);
	assert_int_equal(iot_shipped_n(s), 0);
	iot_shipped_free(s);
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(iot_shipped_load(path, &s, NULL), -ENOENT);
	assert_int_equal(iot_shipped_load(dir, &s, NULL), -EINVAL);
}

/* Nobody will ever write into it: the daemon would wait for ever, and retention with it. */
static void test_fifo(void **state)
{
	struct iot_shipped *s = NULL;
	struct iot_error err = {0};
	char path[300];

	(void)state;
	snprintf(path, sizeof(path), "%s/note", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_int_equal(iot_shipped_load(path, &s, &err), -EINVAL);
	alarm(0);
	assert_non_null(strstr(err.text, "note: is no file but a FIFO"));
	assert_null(s);
}

static void test_digest(void **state)
{
	char digest[IOT_DIGEST_LEN + 1], other[IOT_DIGEST_LEN + 1], path[300];
	uint64_t bytes = 0;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/note", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 300000), 0);
	assert_int_equal(iot_digest_fd(fd, digest, &bytes), 0);
	assert_int_equal(bytes, 300000);
	assert_int_equal(strlen(digest), IOT_DIGEST_LEN);
	assert_int_equal(pwrite(fd, "!", 1, 299999), 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(iot_digest_fd(fd, other, &bytes), 0);
	assert_string_not_equal(digest, other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cuts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_digest, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
