// SPDX-License-Identifier: BSD-2-Clause
/* The ring consumer against the producer's half in plain memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ring.h"
#include "tests/unit/fake-ring.h"

struct fixture {
	struct fake_ring fake;
	struct ring ring;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(fake_ring_new(&f->fake, 4096), 0);
	ring_init(&f->ring, f->fake.data, f->fake.size, &f->fake.consumer, &f->fake.producer);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_ring_done(&f->fake);
	free(f);
	return 0;
}

static void test_empty(void **state)
{
	struct fixture *f = *state;
	const void *p;
	uint32_t len;

	assert_false(ring_refresh(&f->ring));
	assert_int_equal(ring_peek(&f->ring, &p, &len), RING_EMPTY);
}

static void test_order_and_wrap(void **state)
{
	struct fixture *f = *state;
	uint64_t next = 0, got = 0;

	/* Odd lengths, many times round the ring, drained in bursts. */
	while (got < 5000) {
		uint8_t buf[200];
		const void *p;
		uint32_t len;
		int r;

		for (;;) {
			uint32_t n = 8 + next % 150;

			memset(buf, (int)(next & 0xff), n);
			memcpy(buf, &next, sizeof(next));
			if (!fake_ring_put(&f->fake, buf, n))
				break;
			next++;
		}
		assert_true(ring_refresh(&f->ring));
		while ((r = ring_peek(&f->ring, &p, &len)) == 0) {
			uint64_t v;

			memcpy(&v, p, sizeof(v));
			assert_int_equal(v, got);
			assert_int_equal(len, 8 + got % 150);
			if (len > 8)
				assert_int_equal(((const uint8_t *)p)[len - 1], got & 0xff);
			ring_advance(&f->ring, len);
			got++;
		}
		assert_int_equal(r, RING_EMPTY);
		ring_publish(&f->ring, f->ring.pos);
	}
	assert_int_equal(got, next);
}

static void test_nothing_freed_before_publish(void **state)
{
	struct fixture *f = *state;
	uint64_t v = 0, n = 0;
	const void *p;
	uint32_t len;

	while (fake_ring_put(&f->fake, &v, sizeof(v)))
		n++;
	assert_int_equal(n, 4096 / 16);
	(void)ring_refresh(&f->ring);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(ring_peek(&f->ring, &p, &len), 0);
		ring_advance(&f->ring, len);
	}
	/* Read whole, yet the kernel still has no room: the records are only in our hands. */
	assert_int_equal(f->fake.consumer, 0);
	assert_int_equal(ring_used(&f->ring), 4096);
	assert_false(fake_ring_put(&f->fake, &v, sizeof(v)));
	ring_publish(&f->ring, 32);
	assert_int_equal(f->fake.consumer, 32);
	assert_true(fake_ring_put(&f->fake, &v, sizeof(v)));
	/* Never back. */
	ring_publish(&f->ring, 16);
	assert_int_equal(f->fake.consumer, 32);
}

static void test_busy_and_discard(void **state)
{
	struct fixture *f = *state;
	uint64_t v = 7;
	void *busy = fake_ring_reserve(&f->fake, 24), *gone;
	const void *p;
	uint32_t len;

	assert_true(fake_ring_put(&f->fake, &v, sizeof(v)));
	(void)ring_refresh(&f->ring);
	/* A later record that is whole does not overtake one still being written. */
	assert_int_equal(ring_peek(&f->ring, &p, &len), RING_BUSY);
	assert_int_equal(f->ring.pos, 0);
	fake_ring_finish(busy, true);
	assert_int_equal(ring_peek(&f->ring, &p, &len), 0);
	assert_int_equal(len, sizeof(v));
	assert_memory_equal(p, &v, sizeof(v));
	assert_int_equal(f->ring.discarded, 1);
	ring_advance(&f->ring, len);

	/* Only discarded records left: they are passed and can be published. */
	gone = fake_ring_reserve(&f->fake, 40);
	fake_ring_finish(gone, true);
	(void)ring_refresh(&f->ring);
	assert_int_equal(ring_peek(&f->ring, &p, &len), RING_EMPTY);
	assert_int_equal(f->ring.pos, f->fake.producer);
}

static void test_impossible_header(void **state)
{
	struct fixture *f = *state;
	uint64_t v = 0;
	const void *p;
	uint32_t len;

	assert_true(fake_ring_put(&f->fake, &v, sizeof(v)));
	*fake_ring_word(&f->fake, 0) = 4000;
	(void)ring_refresh(&f->ring);
	assert_int_equal(ring_peek(&f->ring, &p, &len), -EBADMSG);
	*fake_ring_word(&f->fake, 0) = 8;
	assert_int_equal(ring_peek(&f->ring, &p, &len), 0);
	/* More produced than the ring holds: positions cannot be true. */
	f->fake.producer = 8192;
	(void)ring_refresh(&f->ring);
	assert_int_equal(ring_peek(&f->ring, &p, &len), -EBADMSG);
}

static void test_successor_starts_at_consumer(void **state)
{
	struct fixture *f = *state;
	struct ring next;
	const void *p;
	uint32_t len;

	for (uint64_t v = 0; v < 10; v++)
		assert_true(fake_ring_put(&f->fake, &v, sizeof(v)));
	(void)ring_refresh(&f->ring);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ring_peek(&f->ring, &p, &len), 0);
		ring_advance(&f->ring, len);
	}
	ring_publish(&f->ring, 4 * 16);
	ring_init(&next, f->fake.data, f->fake.size, &f->fake.consumer, &f->fake.producer);
	(void)ring_refresh(&next);
	assert_int_equal(ring_peek(&next, &p, &len), 0);
	assert_int_equal(*(const uint64_t *)p, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_and_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_freed_before_publish, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_and_discard, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impossible_header, setup, teardown),
		cmocka_unit_test_setup_teardown(test_successor_starts_at_consumer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
