// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-places.c - code addresses become numbers, and numbers names, without an address getting out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/net-names.h"

static void test_numbers(void **state)
{
	struct places p, next;
	uint64_t number;

	(void)state;
	assert_int_equal(places_init(&p), 0);
	assert_int_equal(places_number(&p, 0), 0);
	for (uint64_t i = 1; i <= PLACES_MAX; i++)
		assert_int_equal(places_number(&p, 0xffffffff81000000ULL + i * 64), p.base + i);
	/* Full: what is known goes on being told apart. */
	assert_int_equal(places_number(&p, 0xffffffff80000000ULL), 0);
	for (uint64_t i = 1; i <= PLACES_MAX; i++)
		assert_int_equal(places_number(&p, 0xffffffff81000000ULL + i * 64), p.base + i);
	assert_int_equal(places_address(&p, p.base + 1), 0xffffffff81000040ULL);
	assert_int_equal(places_address(&p, 0), 0);
	assert_int_equal(places_address(&p, p.base), 0);
	assert_int_equal(places_address(&p, p.base + PLACES_MAX + 1ULL), 0);
	/* The next daemon's are others, which it does not take for its own; none looks like an address. */
	assert_int_equal(places_init(&next), 0);
	assert_int_not_equal(next.base, p.base);
	number = places_number(&next, 0xffffffff81000040ULL);
	assert_int_equal(places_address(&p, number), 0);
	assert_in_range(number, 1, 1ULL << 47);
	places_done(&next);
	places_done(&p);
}

/* A function that every kernel has, or 0 where this process may not see addresses. */
static uint64_t address_of(const char *function)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[128], type;
	unsigned long long begin;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %c %127s", &begin, &type, name) == 3 && type == 'T' &&
		    strcmp(name, function) == 0)
			return begin;
	return 0;
}

static void test_names(void **state)
{
	uint64_t function = address_of("kfree_skb_list_reason"), unknown, known = 0;
	struct net_names names = {0};
	struct iot_names table = {0};
	struct id_set set = {0};
	struct places p;

	(void)state;
	if (!function)
		function = address_of("__kfree_skb");
	assert_int_equal(places_init(&p), 0);
	/* The later place has the smaller address: they are looked up in another order. */
	if (function)
		known = places_number(&p, function + 0x11);
	unknown = places_number(&p, 0x12345678);
	assert_true(id_set_add(&set, unknown));
	if (known)
		assert_true(id_set_add(&set, known));
	/* The second time from what was found the first time. */
	for (unsigned int turn = 0; turn < 2; turn++) {
		const char *name;

		assert_int_equal(net_names_symbols_of(&names, &p, &set, &table), 0);
		assert_int_equal(table.n, known ? 2 : 1);
		assert_string_equal(iot_names_find(&table, unknown), "0x...678");
		name = known ? iot_names_find(&table, known) : "skb+0x11";
		assert_non_null(strstr(name, "skb"));
		assert_non_null(strstr(name, "+0x11"));
		iot_names_done(&table);
	}
	id_set_done(&set);
	net_names_done(&names);
	places_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
