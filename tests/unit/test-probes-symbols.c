// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-probes-symbols.c - which lines of /proc/kallsyms count: the kernel's own functions of just these names, if
 * an address is shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/probes-internal.h"

static struct probes_symbols read_text(const char *text)
{
	char path[] = "/tmp/iot-symbols-XXXXXX";
	struct probes_symbols s = {.end_direct = 1, .end_chain = 1};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	probes_symbols_read(path, &s);
	assert_int_equal(unlink(path), 0);
	return s;
}

static void expect(const char *text, uint64_t direct, uint64_t chain)
{
	struct probes_symbols s = read_text(text);

	assert_int_equal(s.end_direct, direct);
	assert_int_equal(s.end_chain, chain);
}

static void test_both(void **state)
{
	(void)state;
	expect("ffffffff81000000 T _text\n"
	       "ffffffff817895e0 T __pfx_iomap_dio_bio_end_io\n"
	       "ffffffff817895f0 T iomap_dio_bio_end_io\n"
	       "ffffffff81b30cc0 t __pfx_bio_chain_endio\n"
	       "ffffffff81b30cd0 t bio_chain_endio\n"
	       "ffffffffc0000000 t bio_chain_endio\t[other]\n",
	       0xffffffff817895f0, 0xffffffff81b30cd0);
	/* In the other order, and the last line without its end. */
	expect("ffffffff81b30cd0 t bio_chain_endio\nffffffff81c895f0 t iomap_dio_bio_end_io",
	       0xffffffff81c895f0, 0xffffffff81b30cd0);
}

static void test_not_told(void **state)
{
	(void)state;
	expect("", 0, 0);
	/* kernel.kptr_restrict */
	expect("0000000000000000 T iomap_dio_bio_end_io\n0000000000000000 t bio_chain_endio\n", 0,
	       0);
	expect("ffffffff81b30cd0 t iomap_dio_bio_end_io.cold\n"
	       "ffffffff81b30ce0 t not_bio_chain_endio\n"
	       "ffffffffc0b30cf0 t iomap_dio_bio_end_io\t[iomap]\n"
	       "what is this\n"
	       " bio_chain_endio\n",
	       0, 0);
}

static void test_no_file(void **state)
{
	struct probes_symbols s = {.end_direct = 1, .end_chain = 1};

	(void)state;
	probes_symbols_read("/proc/no such file", &s);
	assert_int_equal(s.end_direct, 0);
	assert_int_equal(s.end_chain, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_not_told),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
