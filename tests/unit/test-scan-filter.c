// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-scan-filter.c - what the filters take, and what a verdict says of records that do not tell.
 */
#include "tests/unit/scan-fixture.h"

static void test_filters(void **state)
{
	const uint64_t t0 = 1700000000ULL * SEC_NS + SPAN_NS + SEC_NS; /* request 0 */
	struct iot_filter f;
	struct build_dir d;

	(void)state;
	one_segment(&d, 3, 8, NULL);
	/* 24 requests; see build_request for who they are. */
#define TAKES(n, ...)                                   \
	do {                                            \
		f = (struct iot_filter){__VA_ARGS__};   \
		assert_int_equal(count(d.path, &f), n); \
	} while (0)
	TAKES(24, .pid = 0);
	TAKES(18, .dev = "nvme0n1");
	TAKES(18, .dev = "/dev/nvme0n1");
	TAKES(18, .dev = "259:0");
	TAKES(6, .dev = "nvme0n1p2");
	TAKES(6, .dev = "259:2");
	TAKES(6, .dev = "sdb");
	TAKES(6, .dev = "8:16");
	TAKES(0, .dev = "nvme0n");
	TAKES(0, .dev = "259:1");
	TAKES(12, .ops = 1U << IOT_OP_READ);
	TAKES(12, .ops = 1U << IOT_OP_WRITE);
	TAKES(24, .ops = 1U << IOT_OP_WRITE | 1U << IOT_OP_READ);
	TAKES(0, .ops = 1U << IOT_OP_FLUSH);
	TAKES(3, .swap = IOT_SWAP_ONLY);
	TAKES(21, .swap = IOT_SWAP_WITHOUT);
	TAKES(3, .swap = IOT_SWAP_ONLY_OUT);
	TAKES(0, .swap = IOT_SWAP_ONLY_IN);
	TAKES(24, .pid = 1000); /* the thread group of all */
	TAKES(8, .pid = 1002);
	TAKES(16, .comm = "fio");
	TAKES(8, .comm = "kworker/0:1");
	TAKES(0, .comm = "kworker");
	TAKES(24, .min_latency_ns = 900000);
	TAKES(0, .min_latency_ns = 900001);
	TAKES(1, .id = 100004ULL << 13 | 1);
	TAKES(0, .id = 7);
	TAKES(24, .since_ns = t0);
	TAKES(23, .since_ns = t0 + 1);
	TAKES(1, .until_ns = t0);
	TAKES(0, .until_ns = t0 - 1);
	TAKES(5, .since_ns = t0 + 10 * BUILD_MS_NS, .until_ns = t0 + 14 * BUILD_MS_NS);
	TAKES(0, .since_ns = t0 + 24 * BUILD_MS_NS);
	TAKES(2, .since_ns = t0 + 10 * BUILD_MS_NS, .until_ns = t0 + 14 * BUILD_MS_NS,
	      .ops = 1U << IOT_OP_WRITE);
#undef TAKES
	build_dir_close(&d);
}

/* Times that no clock has: before the boot as far as after the end of time. */
static void absurd(struct iot_request *r, uint32_t i)
{
	if (i == 2)
		r->complete_ns = 1;
	if (i == 5)
		r->complete_ns = UINT64_MAX - 3;
}

static void takes(const char *path, const struct iot_filter *f, uint32_t want)
{
	struct iot_scan *sc = must_scan(path, f);
	struct iot_request r;
	uint32_t n = 0;

	while (iot_scan_next(sc, &r, NULL, NULL) == 0)
		n++;
	assert_int_equal(n, want);
	iot_scan_close(sc);
	sc = must_scan(path, f);
	assert_int_equal(drain_blocks(sc), want);
	iot_scan_close(sc);
}

/* Each record is looked at where a block's first and last time say nothing about those between. */
static void test_wrapped(void **state)
{
	const uint64_t t0 = 1700000000ULL * SEC_NS + SPAN_NS + SEC_NS; /* request 0 */
	struct iot_filter f = {.since_ns = t0};
	struct build_dir d;

	(void)state;
	one_segment(&d, 1, 8, absurd);
	takes(d.path, &f, 6);
	f = (struct iot_filter){.until_ns = t0 + BUILD_MS_NS};
	takes(d.path, &f, 4);
	build_dir_close(&d);
}

/* Request 2, a read of nvme0n1, was in flight when recording began; request 5 was issued then. */
static void forget(struct iot_request *r, uint32_t i)
{
	if (i != 2 && i != 5)
		return;
	r->submitter = IOT_SUBMITTER_NONE;
	memset(r->comm, 0, sizeof(r->comm));
	r->pid = r->tgid = 0;
	r->start_ns = r->insert_ns = 0;
	if (i == 2)
		r->issue_ns = r->issue_last_ns = 0;
}

/* What a record does not tell is no proof: asked before the records are read, or after. */
static void test_untold(void **state)
{
	static const struct {
		struct iot_filter f;
		const char *reason; /* NULL: complete */
	} cases[] = {
		{{.comm = "nobody"}, "2 requests may be meant, too"},
		{{.pid = 1000}, "by which process is not recorded"},
		{{.comm = "nobody", .ops = 1U << IOT_OP_READ}, "1 request may be meant, too"},
		{{.comm = "nobody", .ops = 1U << IOT_OP_FLUSH}, NULL},
		{{.comm = "nobody", .dev = "sdb"}, NULL},
		{{.comm = "nobody", .id = 99}, NULL},
		/* Issued 0.7 ms before the end, asked for before that. */
		{{.min_latency_ns = 700000}, "1 request may be meant, too"},
		{{.min_latency_ns = 2 * BUILD_MS_NS}, "since when is not recorded"},
		{{.min_latency_ns = 2 * BUILD_MS_NS}, "2 requests may be meant, too"},
		{{.min_latency_ns = 2 * BUILD_MS_NS, .comm = "nobody"},
		 "by which process or since when is"},
		{{.min_latency_ns = 2 * BUILD_MS_NS, .ops = 1U << IOT_OP_FLUSH}, NULL},
		{{.ops = 1U << IOT_OP_READ}, NULL},
	};
	struct build_dir d;

	(void)state;
	one_segment(&d, 2, 8, forget);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(cases); i++)
		for (int after = 0; after < 2; after++) {
			struct iot_scan *sc = must_scan(d.path, &cases[i].f);
			struct iot_error err = {0};
			struct iot_verdict v;

			for (int again = 0; again < 2; again++) {
				if (after && !again)
					drain(sc, NULL, NULL);
				assert_int_equal(iot_scan_verdict(sc, false, &v, &err), 0);
				assert_int_equal(v.code, cases[i].reason ? IOT_VERDICT_UNKNOWN
									 : IOT_VERDICT_COMPLETE);
				assert_int_equal(v.n_reasons, cases[i].reason ? 1 : 0);
				if (cases[i].reason && !strstr(v.reasons[0], cases[i].reason))
					fail_msg("case %zu: %s", i, v.reasons[0]);
			}
			iot_scan_close(sc);
		}
	build_dir_close(&d);
}

/* A field the record does not have never matches; iot_filter_match says the same as a scan. */
static void test_match_is_pure(void **state)
{
	struct iot_filter f = {.min_latency_ns = 1};
	struct iot_request r;
	struct iot_scan *sc;
	struct iot_segment *s;
	struct build_dir d;
	char name[32];

	(void)state;
	one_segment(&d, 1, 8, NULL);
	sc = must_scan(d.path, NULL);
	s = iot_scan_segment(sc, 0);
	build_request(&r, 1, 5);
	assert_true(iot_filter_match(&f, s, &r));
	r.start_ns = 0; /* then from issue */
	assert_true(iot_filter_match(&f, s, &r));
	r.issue_ns = 0;
	assert_false(iot_filter_match(&f, s, &r));
	build_request(&r, 1, 5);
	r.complete_ns = r.start_ns - 1;
	assert_false(iot_filter_match(&f, s, &r));
	f = (struct iot_filter){.comm = "sixteen-letters!"};
	memcpy(r.comm, "sixteen-letters!", 16);
	assert_true(iot_filter_match(&f, s, &r));
	f = (struct iot_filter){.dev = "259:0"};
	assert_true(iot_filter_match(&f, s, &r));
	f = (struct iot_filter){.dev = "259:0x"};
	assert_false(iot_filter_match(&f, s, &r));
	f = (struct iot_filter){.dev = "4355:0"}; /* 259 + 4096: must not wrap */
	assert_false(iot_filter_match(&f, s, &r));
	assert_string_equal(iot_dev_name(s, BUILD_OTHER, name, sizeof(name)), "sdb");
	assert_string_equal(iot_dev_name(s, IOT_DEV(7, 3), name, sizeof(name)), "7:3");
	iot_scan_close(sc);
	build_dir_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_wrapped),
		cmocka_unit_test(test_untold),
		cmocka_unit_test(test_match_is_pure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
