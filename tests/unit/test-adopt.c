// SPDX-License-Identifier: BSD-2-Clause
/* The state that a successor finds: a change is there whole or not at all, and nothing else is believed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "daemon/adopt.h"

/* As another process would see it. */
static int reopen(const struct adopt *a, struct adopt **ret)
{
	return adopt_open(fcntl(adopt_fd(a), F_DUPFD_CLOEXEC, 3), ret);
}

static uint64_t sealed_of(struct adopt *a)
{
	struct adopt_state *s = malloc(sizeof(*s));
	uint64_t sealed;

	assert_non_null(s);
	adopt_read(a, s);
	sealed = s->sealed;
	free(s);
	return sealed;
}

static void test_only_what_was_committed(void **state)
{
	_cleanup_(adopt_freep) struct adopt *a = NULL;
	struct adopt *b = NULL;
	struct adopt_state *s;

	(void)state;
	assert_int_equal(adopt_new(&a), 0);
	for (uint64_t i = 1; i < 10; i++) {
		s = adopt_edit(a);
		s->sealed = i;
		/* Killed here, it never happened. */
		assert_int_equal(reopen(a, &b), 0);
		assert_int_equal(sealed_of(b), i - 1);
		b = adopt_free(b);
		adopt_commit(a);
		assert_int_equal(reopen(a, &b), 0);
		assert_int_equal(sealed_of(b), i);
		b = adopt_free(b);
	}
	/* And whoever goes on goes on from there. */
	assert_int_equal(reopen(a, &b), 0);
	adopt_set_dead(b);
	adopt_free(b);
	assert_int_equal(reopen(a, &b), 0);
	assert_int_equal(sealed_of(b), 9);
	assert_int_equal(adopt_edit(b)->dead, 1);
	adopt_commit(b);
	adopt_free(b);
}

/* Killed in the middle of copying: the half that is not current holds anything. */
static void test_half_copied(void **state)
{
	_cleanup_(adopt_freep) struct adopt *a = NULL;
	struct adopt *b = NULL;
	const size_t first = 24; /* behind magic, wire, current */
	uint64_t current;
	uint8_t *m;

	(void)state;
	assert_int_equal(adopt_new(&a), 0);
	adopt_edit(a)->sealed = 7;
	adopt_commit(a);
	m = mmap(NULL, first + 2 * sizeof(struct adopt_state), PROT_READ | PROT_WRITE, MAP_SHARED,
		 adopt_fd(a), 0);
	assert_true(m != MAP_FAILED);
	memcpy(&current, m + 16, sizeof(current));
	memset(m + first + (current ^ 1) * sizeof(struct adopt_state), 0xa5,
	       sizeof(struct adopt_state));
	munmap(m, first + 2 * sizeof(struct adopt_state));
	assert_int_equal(reopen(a, &b), 0);
	assert_int_equal(sealed_of(b), 7);
	adopt_free(b);
}

static int open_changed(size_t offset, uint8_t bits)
{
	_cleanup_(adopt_freep) struct adopt *a = NULL;
	struct adopt *b = NULL;
	uint8_t byte;
	int r;

	assert_int_equal(adopt_new(&a), 0);
	assert_int_equal(pread(adopt_fd(a), &byte, 1, (off_t)offset), 1);
	byte ^= bits;
	assert_int_equal(pwrite(adopt_fd(a), &byte, 1, (off_t)offset), 1);
	r = reopen(a, &b);
	adopt_free(b);
	return r;
}

static void test_other_files(void **state)
{
	struct adopt *b = NULL;
	int fd;

	(void)state;
	assert_int_equal(open_changed(0, 1), -EBADMSG);	 /* magic */
	assert_int_equal(open_changed(8, 1), -EBADMSG);	 /* another build's layout */
	assert_int_equal(open_changed(16, 2), -EBADMSG); /* no such half */
	assert_int_equal(open_changed(16, 0), 0);

	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(adopt_open(fd, &b), -EBADMSG); /* empty */
	/* Of the right size, but somebody may still cut it under us. */
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 24 + 2 * (off_t)sizeof(struct adopt_state)), 0);
	assert_int_equal(adopt_open(fd, &b), -EBADMSG);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(adopt_open(fd, &b), -EBADMSG);
	assert_null(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_was_committed),
		cmocka_unit_test(test_half_copied),
		cmocka_unit_test(test_other_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
