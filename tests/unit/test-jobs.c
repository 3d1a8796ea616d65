// SPDX-License-Identifier: BSD-2-Clause
/* Jobs run in order on another thread, end on the loop, are bounded, and never get lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "daemon/jobs.h"

static pthread_t loop_thread;
static unsigned int n_run, n_done, n_canceled;
static pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;

struct item {
	unsigned int number;
	bool blocks;
};

static int run(void *arg)
{
	struct item *i = arg;

	assert_false(pthread_equal(pthread_self(), loop_thread));
	if (i->blocks) {
		pthread_mutex_lock(&barrier);
		pthread_mutex_unlock(&barrier);
	}
	assert_int_equal(i->number, n_run++);
	return (int)i->number;
}

static void done(void *arg, int result)
{
	struct item *i = arg;

	assert_true(pthread_equal(pthread_self(), loop_thread));
	assert_int_equal(i->number, n_done++);
	if (result == -ECANCELED)
		n_canceled++;
	else
		assert_int_equal(result, i->number);
	free(i);
}

static int submit(struct jobs *j, unsigned int number, bool blocks)
{
	struct item *i = calloc(1, sizeof(*i));
	int r;

	assert_non_null(i);
	i->number = number;
	i->blocks = blocks;
	r = jobs_submit(j, run, done, i);
	if (r < 0)
		free(i);
	return r;
}

static void fresh(sd_event **ret_event, struct jobs **ret)
{
	loop_thread = pthread_self();
	n_run = n_done = n_canceled = 0;
	assert_true(sd_event_new(ret_event) >= 0);
	assert_int_equal(jobs_new(*ret_event, ret), 0);
}

static void test_in_order(void **state)
{
	struct jobs *j;
	sd_event *e;

	(void)state;
	fresh(&e, &j);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(submit(j, i, false), 0);
	assert_int_equal(n_done, 0);
	for (int i = 0; i < 1000 && n_done < 20; i++)
		assert_true(sd_event_run(e, 10000) >= 0);
	assert_int_equal(n_done, 20);
	jobs_free(j);
	sd_event_unref(e);
	assert_int_equal(n_canceled, 0);
}

static void test_bounded_and_canceled(void **state)
{
	unsigned int n = 0;
	struct jobs *j;
	sd_event *e;

	(void)state;
	fresh(&e, &j);
	pthread_mutex_lock(&barrier);
	while (n < 10000 && submit(j, n, true) == 0)
		n++;
	assert_in_range(n, 2, 1000);
	assert_int_equal(submit(j, n, true), -EBUSY);
	/* The loop is not held up by what waits. */
	assert_true(sd_event_run(e, 1000) >= 0);
	assert_int_equal(n_done, 0);
	pthread_mutex_unlock(&barrier);
	jobs_free(j);
	sd_event_unref(e);
	/* Each one was done once, run or not. */
	assert_int_equal(n_done, n);
	assert_int_equal(n_run + n_canceled, n);
}

static void test_nothing(void **state)
{
	struct jobs *j;
	sd_event *e;

	(void)state;
	fresh(&e, &j);
	assert_null(jobs_free(j));
	assert_null(jobs_free(NULL));
	sd_event_unref(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_bounded_and_canceled),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
