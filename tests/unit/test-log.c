// SPDX-License-Identifier: BSD-2-Clause
/* Lines for the journal and for people, the rate limit; the status line and the rate shown in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/rate.h"

#define SEC 1000000000ULL

static void test_format(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(log_format(buf, sizeof(buf), true, LOG_ERR, "x"), 5);
	assert_string_equal(buf, "<3>x\n");
	log_format(buf, sizeof(buf), true, LOG_DEBUG, "x");
	assert_string_equal(buf, "<7>x\n");
	log_format(buf, sizeof(buf), false, LOG_ERR, "x");
	assert_string_equal(buf, "iotraced: error: x\n");
	log_format(buf, sizeof(buf), false, LOG_WARNING, "x");
	assert_string_equal(buf, "iotraced: warning: x\n");
	log_format(buf, sizeof(buf), false, LOG_INFO, "x");
	assert_string_equal(buf, "iotraced: x\n");
}

/* A message is one line, whatever it quotes; and it ends with a newline, however long it is. */
static void test_one_line(void **state)
{
	char buf[32], text[100];

	(void)state;
	log_format(buf, sizeof(buf), true, LOG_INFO, "a\n<0>b\x1b[31m\x7f");
	assert_string_equal(buf, "<6>a <0>b [31m \n");
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(log_format(buf, sizeof(buf), true, LOG_INFO, text), sizeof(buf) - 1);
	assert_int_equal(buf[sizeof(buf) - 2], '\n');
	assert_int_equal(log_format(buf, 1, true, LOG_INFO, text), 0);
}

static void test_journal(void **state)
{
	(void)state;
	assert_true(log_is_journal("8:12345", 8, 12345));
	assert_false(log_is_journal("8:12345", 8, 1234));
	assert_false(log_is_journal("", 0, 0));
	assert_false(log_is_journal(NULL, 0, 0));
}

static void test_levels(void **state)
{
	(void)state;
	assert_int_equal(log_set_level("warning"), 0);
	assert_int_equal(log_set_level("loud"), -EINVAL);
	assert_int_equal(log_set_level("info"), 0);
}

static void test_limit(void **state)
{
	struct log_limit l = {.interval_ns = 10 * SEC, .burst = 2};
	unsigned int dropped = 99;

	(void)state;
	assert_true(log_limit_pass(&l, 100 * SEC, &dropped));
	assert_int_equal(dropped, 0);
	assert_true(log_limit_pass(&l, 101 * SEC, &dropped));
	for (int i = 0; i < 5; i++)
		assert_false(log_limit_pass(&l, 102 * SEC, &dropped));
	assert_false(log_limit_pass(&l, 109 * SEC, NULL));
	assert_true(log_limit_pass(&l, 110 * SEC, &dropped));
	assert_int_equal(dropped, 6);
	assert_true(log_limit_pass(&l, 110 * SEC, &dropped));
	assert_int_equal(dropped, 0);
	assert_false(log_limit_pass(&l, 111 * SEC, NULL));
}

static void test_status_line(void **state)
{
	const struct notify_stream two[] = {
		{"block", 1200, 3, 4, 7, 13002342},
		{"packet", 0, 0, 0, 1, 0},
	};
	char buf[256];

	(void)state;
	notify_status_line(two, 1, buf, sizeof(buf));
	assert_string_equal(buf, "block: 1200 events/s, 3 lost, 4 unattributed, segment 7 "
				 "(12.4 MiB)");
	notify_status_line(two, 2, buf, sizeof(buf));
	assert_non_null(strstr(buf, "MiB); packet: 0 events/s"));
	notify_status_line(two, 0, buf, sizeof(buf));
	assert_string_equal(buf, "");
	for (size_t n = 1; n < 120; n++) {
		notify_status_line(two, 2, buf, n);
		assert_int_equal(strlen(buf), n - 1);
	}
}

static void test_rate(void **state)
{
	struct rate r = {0};

	(void)state;
	assert_int_equal(rate_per_s(&r), 0);
	rate_add(&r, 10 * SEC, 1000);
	assert_int_equal(rate_per_s(&r), 0);
	rate_add(&r, 11 * SEC, 1500);
	assert_int_equal(rate_per_s(&r), 500);
	/* The first second is forgotten once enough came after it. */
	for (unsigned int i = 0; i < RATE_SAMPLES - 1; i++)
		rate_add(&r, (12 + i) * SEC, 1500 + 100 * (i + 1));
	assert_int_equal(rate_per_s(&r), 100);
	rate_add(&r, (12 + RATE_SAMPLES) * SEC, 0);
	assert_int_equal(rate_per_s(&r), 0);
}

static void test_fields(void **state)
{
	const struct log_fields fields = {
		.stream = "block", .segment = "a\nMESSAGE=b", .has_count = true, .error = -ENOSPC};
	const char *texts[16];
	char buf[512];
	size_t n;

	(void)state;
	n = log_fields_format(buf, sizeof(buf), LOG_ERR, LOG_ID_LOST, &fields, "x\ny", texts, 16);
	assert_int_equal(n, 8);
	assert_string_equal(texts[0], "PRIORITY=3");
	assert_string_equal(texts[1], "MESSAGE=x y");
	assert_string_equal(texts[2], "MESSAGE_ID=" LOG_ID_LOST);
	assert_string_equal(texts[3], "SYSLOG_IDENTIFIER=iotraced");
	assert_string_equal(texts[4], "IOTRACED_STREAM=block");
	/* What a name smuggles in starts no field of its own. */
	assert_string_equal(texts[5], "IOTRACED_SEGMENT=a MESSAGE=b");
	/* None is a count, too. */
	assert_string_equal(texts[6], "IOTRACED_COUNT=0");
	assert_string_equal(texts[7], "ERRNO=28");
	n = log_fields_format(buf, sizeof(buf), LOG_INFO, LOG_ID_STOPPING, &(struct log_fields){0},
			      "t", texts, 16);
	assert_int_equal(n, 4);
	/* Too little room leaves out, and never writes beyond. */
	for (size_t room = 1; room < 200; room++) {
		memset(buf, 'z', sizeof(buf));
		n = log_fields_format(buf, room, LOG_ERR, LOG_ID_LOST, &fields, "text", texts, 4);
		assert_in_range(n, 0, 4);
		assert_int_equal(buf[room], 'z');
		for (size_t i = 0; i < n; i++)
			assert_non_null(strchr(texts[i], '='));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),	cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_journal), cmocka_unit_test(test_levels),
		cmocka_unit_test(test_limit),	cmocka_unit_test(test_status_line),
		cmocka_unit_test(test_rate),	cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
