// SPDX-License-Identifier: BSD-2-Clause
/* test-damage.c - segment-damage.h for segments of requests, and a tail of zeros. */
#include "tests/unit/segment-damage.h"

static uint32_t read_all(struct iot_segment *s, uint32_t *ret_gaps, uint32_t *ret_bad)
{
	return build_read_all(s, 1, ret_gaps, ret_bad);
}

static const struct damage requests = {.kind = IOT_BLOCK_REQUESTS, .read_all = read_all};

static void write_file(struct build_dir *d, uint32_t n_blocks, bool lossy, bool seal)
{
	struct build b;

	build_init(&b, 1, n_blocks, 8);
	if (lossy)
		build_lossy(&b);
	b.seal = seal;
	build_dir_open(d);
	build_write(&b, d->fd, "a.iot");
}

static void cut(bool lossy, const char *name)
{
	struct build_dir d;

	write_file(&d, 3, lossy, true);
	damage_cut(&requests, &d, name);
	build_dir_close(&d);
}

static void test_torn_everywhere(void **state)
{
	(void)state;
	cut(false, "clean");
	cut(true, "lossy");
}

/* A power cut may leave the size and no data. */
static void test_zero_tail(void **state)
{
	struct iot_block_info blocks[16];
	struct iot_segment *s;
	struct iot_verdict v;
	uint32_t gaps, bad;
	struct build_dir d;
	uint8_t *data;
	size_t size;

	(void)state;
	write_file(&d, 3, false, true);
	size = build_load(&d, "a.iot", &data);
	assert_int_equal(build_blocks(data, size, blocks, 16), 3);
	memset(data + blocks[2].offset, 0, size - blocks[2].offset);
	s = build_open_segment(build_memfd(data, size));
	assert_int_equal(read_all(s, &gaps, &bad), 16);
	assert_int_equal(iot_verify_segment(s, &v, NULL), 0);
	assert_int_equal(v.code, IOT_VERDICT_TORN);
	damage_recover(&requests, &d, s, 16);
	iot_segment_close(s);
	free(data);
	build_dir_close(&d);
}

static void test_flip_clean(void **state)
{
	struct build_dir d;

	(void)state;
	write_file(&d, 3, false, true);
	damage_flip(&requests, &d, "clean", 24);
	build_dir_close(&d);
}

static void test_flip_lossy(void **state)
{
	struct build_dir d;

	(void)state;
	write_file(&d, 2, true, true);
	damage_flip(&requests, &d, "lossy", 16);
	build_dir_close(&d);
}

static void test_flip_unsealed(void **state)
{
	struct build_dir d;

	(void)state;
	write_file(&d, 4, false, false);
	damage_flip_unsealed(&requests, &d, 4, 8);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torn_everywhere), cmocka_unit_test(test_zero_tail),
		cmocka_unit_test(test_flip_clean),	cmocka_unit_test(test_flip_lossy),
		cmocka_unit_test(test_flip_unsealed),
	};

	damage_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
