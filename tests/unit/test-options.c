// SPDX-License-Identifier: BSD-2-Clause
/* Times as people write them, options before and after the verb, suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/ctl/ctl-util.h"

#define SEC 1000000000ULL
/* 2026-11-29 12:34:56.789 UTC */
#define NOW (1795955696ULL * SEC + 789000000)

static void expect_time(const char *text, uint64_t want)
{
	uint64_t got = 1;

	if (ctl_parse_time(text, NOW, &got) != 0)
		fail_msg("'%s' was refused", text);
	if (got != want)
		fail_msg("'%s': %llu instead of %llu", text, (unsigned long long)got,
			 (unsigned long long)want);
}

static void expect_refused(const char *text)
{
	uint64_t got = 42;

	if (ctl_parse_time(text, NOW, &got) >= 0)
		fail_msg("'%s' was taken for %llu", text, (unsigned long long)got);
	assert_int_equal(got, 42); /* outputs only on success */
}

static void set_zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void test_times_utc(void **state)
{
	const uint64_t day = 1795910400ULL * SEC; /* 2026-11-29 00:00:00 UTC */

	(void)state;
	set_zone("UTC");
	expect_time("now", NOW);
	expect_time("today", day);
	expect_time("yesterday", day - 86400 * SEC);
	expect_time("2026-11-29", day);
	expect_time("2026-11-29 12:00", day + 43200 * SEC);
	expect_time("2026-11-29 12:00:00", day + 43200 * SEC);
	expect_time("2026-11-29T12:00:00.25", day + 43200 * SEC + 250000000);
	expect_time("2026-11-29T12:00:00Z", day + 43200 * SEC);
	expect_time("2026-11-29T12:00:00+02:00", day + 36000 * SEC);
	expect_time("2026-11-29T12:00:00-0130", day + 48600 * SEC);
	expect_time("2026-11-29 12:00:00 UTC", day + 43200 * SEC);
	expect_time("@1795910400", day);
	expect_time("@1795910400.000000001", day + 1);
	expect_time("@1795910400.0000000019", day + 1);
	expect_time("@0", 0);
	expect_time("-5m", NOW - 300 * SEC);
	expect_time("-1.5s", NOW - 1500000000);
	expect_time("+1h", NOW + 3600 * SEC);
	expect_time("08:15", day + (8 * 3600 + 15 * 60) * SEC);
	expect_time("23:59:59.5", day + 86399 * SEC + 500000000);
	expect_time("2024-02-29", 1709164800ULL * SEC);
}

static void test_times_local(void **state)
{
	(void)state;
	/* 1 hour east, summer time from the last Sunday of March */
	set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect_time("2026-11-29 13:00:00", (1795910400ULL + 43200) * SEC);
	expect_time("2026-07-01 02:00:00", 1782864000ULL * SEC); /* 00:00 UTC */
	expect_time("2026-07-01T00:00:00Z", 1782864000ULL * SEC);
	expect_time("today", (1795910400ULL - 3600) * SEC);
	set_zone("UTC");
}

static void test_times_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"never",
		"2026",
		"2026-13-01",
		"2026-00-10",
		"2026-02-30",
		"2025-02-29",
		"2026-11-29 24:00",
		"2026-11-29 12:60",
		"2026-11-29 12",
		"2026-11-29 12:00:00 ",
		"2026-11-29 12:00:00x",
		"2026-11-29T",
		"2026-11-29T12:00:00+1",
		"26-11-29",
		"@",
		"@x",
		"@1.",
		"@-1",
		"@99999999999999999999",
		"-",
		"-5",
		"-5 m",
		"-5x",
		"12:",
		"12:0",
		"1:00",
		"12:00:0",
		"nowish",
		"todayx",
		"-99999999h",
	};

	(void)state;
	set_zone("UTC");
	for (size_t i = 0; i < IOT_ARRAY_SIZE(bad); i++)
		if (strcmp(bad[i], "-5") != 0) /* a bare number is seconds */
			expect_refused(bad[i]);
	expect_time("-5", NOW - 5 * SEC);
}

/* ---- options ------------------------------------------------------------------------------------ */

struct parsed {
	struct ctl c;
	struct iot_error err;
	int r;
	int n_rest;
	char *rest[8];
};

static struct parsed parse(const char *const *words)
{
	static char storage[16][64];
	char *argv[17] = {NULL};
	struct parsed p = {0};
	int argc = 0, first = 0;

	for (; words[argc]; argc++) {
		snprintf(storage[argc], sizeof(storage[argc]), "%s", words[argc]);
		argv[argc] = storage[argc];
	}
	p.r = ctl_parse_options(&p.c, argc, argv, &first, &p.err);
	for (int i = first; p.r == 0 && i < argc && p.n_rest < 8; i++)
		p.rest[p.n_rest++] = argv[i];
	return p;
}

#define PARSE(...) parse((const char *const[]){"iotracectl", __VA_ARGS__, NULL})

static void test_before_and_after(void **state)
{
	struct parsed p;

	(void)state;
	p = PARSE("--json", "cat", "--dev", "/dev/nvme0n1", "a.iot", "--op=read,write", "b.iot");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.n_rest, 3);
	assert_string_equal(p.rest[0], "cat");
	assert_string_equal(p.rest[1], "a.iot");
	assert_string_equal(p.rest[2], "b.iot");
	assert_true(p.c.json);
	assert_string_equal(p.c.filter.dev, "nvme0n1");
	assert_int_equal(p.c.filter.ops, 1U << IOT_OP_READ | 1U << IOT_OP_WRITE);
	p = PARSE("report", "--", "--json");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.n_rest, 2);
	assert_string_equal(p.rest[1], "--json");
	assert_false(p.c.json);
}

static void test_filters(void **state)
{
	struct parsed p;

	(void)state;
	p = PARSE("cat", "--pid", "42", "--comm", "fio", "--min-latency=500us",
		  "--id=12345678901234", "--since=@100", "--until", "-5m", "--no-pager",
		  "--color=always");
	assert_int_equal(p.r, 0);
	assert_int_equal(p.c.filter.pid, 42);
	assert_string_equal(p.c.filter.comm, "fio");
	assert_int_equal(p.c.filter.min_latency_ns, 500000);
	assert_int_equal(p.c.filter.id, 12345678901234);
	assert_int_equal(p.c.filter.since_ns, 100 * SEC);
	assert_true(p.c.filter.until_ns > NOW / 2);
	assert_true(p.c.no_pager);
	assert_int_equal(p.c.color, CTL_COLOR_ALWAYS);
	assert_int_equal(PARSE("cat", "--swap=only").c.filter.swap, IOT_SWAP_ONLY);
	assert_int_equal(PARSE("cat", "--swap=without").c.filter.swap, IOT_SWAP_WITHOUT);
	assert_int_equal(PARSE("cat", "--swap=out").c.filter.swap, IOT_SWAP_ONLY_OUT);
	assert_int_equal(PARSE("cat", "--swap=in").c.filter.swap, IOT_SWAP_ONLY_IN);
}

static void expect_usage(struct parsed p, const char *part)
{
	assert_int_equal(p.r, -EINVAL);
	if (!strstr(p.err.text, part))
		fail_msg("'%s' does not say '%s'", p.err.text, part);
}

static void test_usage_errors(void **state)
{
	(void)state;
	expect_usage(PARSE("cat", "--jsn"), "did you mean '--json'");
	expect_usage(PARSE("--min-latenzy=1", "cat"), "did you mean '--min-latency'");
	expect_usage(PARSE("cat", "--zzzzzz"), "unknown option '--zzzzzz'");
	expect_usage(PARSE("cat", "-x"), "unknown option '-x'");
	expect_usage(PARSE("cat", "--dev"), "'--dev' needs a value");
	expect_usage(PARSE("cat", "--op=raed"), "did you mean 'read'");
	expect_usage(PARSE("cat", "--op="), "no operation ''");
	expect_usage(PARSE("cat", "--op=read,"), "no operation ''");
	expect_usage(PARSE("cat", "--swap=yes"), "only, without, out, in");
	expect_usage(PARSE("cat", "--pid=0"), "no process id");
	expect_usage(PARSE("cat", "--pid=-1"), "no process id");
	expect_usage(PARSE("cat", "--pid=12x"), "no process id");
	expect_usage(PARSE("cat", "--id=x"), "is no id");
	expect_usage(PARSE("cat", "--comm=sixteen-letters!"), "longer than 15 bytes");
	expect_usage(PARSE("cat", "--dev="), "--dev: empty");
	expect_usage(PARSE("cat", "--since=teatime"), "'teatime' is no time");
	expect_usage(PARSE("cat", "--since=@20", "--until=@10"), "later than");
	expect_usage(PARSE("cat", "--min-latency=fast"), "'fast' is no time");
	expect_usage(PARSE("cat", "--color=maybe"), "auto, always, never");
	assert_int_equal(PARSE("--help").r, CTL_PARSED_HELP);
	assert_int_equal(PARSE("cat", "-h").r, CTL_PARSED_HELP);
	assert_int_equal(PARSE("--version").r, CTL_PARSED_VERSION);
}

static void test_suggest(void **state)
{
	static const char *const verbs[] = {"status", "segments", "cat", "report", "verify"};

	(void)state;
	assert_string_equal(ctl_suggest("stauts", verbs, 5), "status");
	assert_string_equal(ctl_suggest("reprot", verbs, 5), "report");
	assert_string_equal(ctl_suggest("seg", verbs, 5), "segments");
	assert_string_equal(ctl_suggest("cta", verbs, 5), "cat");
	assert_null(ctl_suggest("frobnicate", verbs, 5));
	assert_null(ctl_suggest("", verbs, 5));
	assert_null(ctl_suggest("x", verbs, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_utc),     cmocka_unit_test(test_times_local),
		cmocka_unit_test(test_times_refused), cmocka_unit_test(test_before_and_after),
		cmocka_unit_test(test_filters),	      cmocka_unit_test(test_usage_errors),
		cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
