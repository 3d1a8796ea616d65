// SPDX-License-Identifier: BSD-2-Clause
/* Whether a segment speaks for a device, by the text of its selection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/ctl-util.h"
#include "tests/unit/ctl-said.h"

static struct iot_name disks[] = {
	{IOT_DEV(259, 0), (char *)"nvme0n1"}, {IOT_DEV(259, 2), (char *)"nvme0n1p2"},
	{IOT_DEV(8, 16), (char *)"sdb"},      {IOT_DEV(8, 17), (char *)"sdb1"},
	{IOT_DEV(7, 1), (char *)"loop1"},     {IOT_DEV(7, 10), (char *)"loop10"},
};

static bool selects(const char *selection, uint64_t not_selected, const char *dev)
{
	struct iot_segment_info info = {.devices = {disks, IOT_ARRAY_SIZE(disks)}};
	struct iot_books row = {.not_selected = not_selected};
	struct iot_footer f = {.books = &row, .n_books = 1};

	snprintf(info.selection, sizeof(info.selection), "%s", selection);
	return ctl_selects(&info, &f, dev);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *selection, *yes, *no;
	} rows[] = {
		{"all", "sdb new", ""},
		{"include nvme*", "nvme0n1 /dev/nvme0n1 nvme0n1p2 259:0 259:2",
		 "sdb 8:16 loop1 nvme9n1"},
		{"include sdb,loop1", "sdb sdb1 8:17 loop1 7:1", "loop10 7:10 nvme0n1 sdz"},
		{"include loop1?", "loop10", "loop1"},
		{"include 8:16", "sdb sdb1", "loop1"},
		{"exclude sd*", "nvme0n1 loop1", "sdb sdb1 8:17 new"},
		{"include *; exclude loop*,sdb", "nvme0n1 nvme0n1p2", "loop1 loop10 sdb sdb1 new"},
		{"without swap", "sdb new", ""},
		{"without swap; include sdb", "sdb", "loop1"},
		{"include sdb1", "", "sdb1"}, /* patterns are for disks */
	};
	char text[128], *save;

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(rows); i++)
		for (int want = 0; want < 2; want++) {
			snprintf(text, sizeof(text), "%s", want ? rows[i].yes : rows[i].no);
			for (char *d = strtok_r(text, " ", &save); d;
			     d = strtok_r(NULL, " ", &save)) {
				if (selects(rows[i].selection, 1, d) != want)
					fail_msg("\"%s\", %s: not %d", rows[i].selection, d, want);
				/* Nothing was left out, whatever the text is. */
				assert_true(selects(rows[i].selection, 0, d));
				assert_int_equal(selects(rows[i].selection, IOT_COUNT_UNKNOWN, d),
						 want);
			}
		}
}

static void test_not_known(void **state)
{
	struct iot_segment_info info = {.devices = {disks, IOT_ARRAY_SIZE(disks)},
					.selection = "include sdb"};
	char cut[400];

	(void)state;
	/* Without a footer nobody knows what was left out. */
	assert_true(ctl_selects(&info, NULL, "sdb"));
	assert_false(ctl_selects(&info, NULL, "loop1"));
	/* The end of a long list is not in the header: sdb may be excluded there. */
	snprintf(cut, sizeof(cut), "include sdb; exclude %0280d", 1);
	assert_false(selects(cut, 1, "sdb"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
