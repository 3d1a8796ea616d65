// SPDX-License-Identifier: BSD-2-Clause
/* Groups of requests: exact sums, nothing in two groups or in none, and what is not known said so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/ctl/report-view.h"
#include "tests/unit/ctl-said.h"

#define SEC UINT64_C(1000000000)
#define PART IOT_DEV(259, 2)

static struct iot_segment_info host = {.machine_id = {1}, .boot_id = {1}, .host = "h"};
static struct iot_segment_info later = {.machine_id = {1}, .boot_id = {2}, .host = "h"};
static struct iot_segment_info other = {.machine_id = {2}, .boot_id = {3}, .host = "g"};

static struct iot_request request(uint32_t bytes)
{
	struct iot_request r = {
		.op = IOT_OP_WRITE,
		.bytes = bytes,
		.bytes_done = bytes,
		.start_ns = 1000,
		.issue_ns = 1500,
		.complete_ns = 3000,
		.origin = IOT_ORIGIN_FILE,
		.file_by = IOT_FILE_BY_PAGE,
		.ino = 7,
		.fsdev = PART,
		.dev = IOT_DEV(259, 0),
		.cgroup = 42,
		.pid = 11,
		.tgid = 10,
		.submitter = IOT_SUBMITTER_START,
		.comm = "thread",
	};

	return r;
}

static void add(struct rank *rk, const struct iot_segment_info *info, struct iot_request r)
{
	assert_int_equal(rank_add(rk, info, info, &r, SEC), 0);
}

static const struct rank_group *group(const struct rank *rk, enum rank_kind kind, uint64_t number)
{
	for (size_t i = 0; i < rk->n_groups; i++)
		if (rk->groups[i].key.kind == kind && rk->groups[i].key.number == number)
			return &rk->groups[i];
	fail_msg("no group %d %llu", (int)kind, (unsigned long long)number);
	return NULL;
}

static void test_files(void **state)
{
	_cleanup_(rank_done) struct rank rk = {.by = CTL_BY_FILE};
	struct iot_request r;

	(void)state;
	add(&rk, &host, request(100));
	add(&rk, &later, request(50)); /* the same file after a boot */
	add(&rk, &other, request(20)); /* another machine's */
	r = request(7);
	r.fsdev = IOT_DEV(8, 1);
	add(&rk, &host, r);
	r = request(3);
	r.op = IOT_OP_READ;
	add(&rk, &host, r);
	/* Without a file, or with a number that nobody vouches for. */
	r = request(1000);
	r.file_by = IOT_FILE_BY_NONE;
	r.origin = IOT_ORIGIN_METADATA;
	add(&rk, &host, r);
	r.ino = 0;
	add(&rk, &other, r);
	r.origin = IOT_ORIGIN_SWAP;
	add(&rk, &host, r);
	assert_int_equal(rank_choose(&rk, 2), 0);

	assert_int_equal(rk.n_groups, 5);
	assert_int_equal(rk.requests, 8);
	assert_int_equal(rk.bytes, 3180);
	assert_int_equal(group(&rk, RANK_UNKNOWN, IOT_ORIGIN_METADATA)->bytes, 2000);
	assert_int_equal(group(&rk, RANK_UNKNOWN, IOT_ORIGIN_SWAP)->requests, 1);
	/* Most bytes first; the file that was there before and after the boot has 153. */
	assert_int_equal(rk.groups[0].bytes, 2000);
	assert_int_equal(rk.groups[1].bytes, 1000);
	assert_int_equal(rk.groups[2].bytes, 153);
	assert_int_equal(rk.groups[2].requests, 3);
	assert_int_equal(rk.groups[2].read_bytes, 3);
	assert_int_equal(rk.groups[2].write_bytes, 150);
	assert_int_equal(rk.n_shown, 2);
	assert_non_null(rk.groups[1].latency);
	assert_null(rk.groups[2].latency);
}

static void test_processes(void **state)
{
	_cleanup_(rank_done) struct rank rk = {.by = CTL_BY_PROCESS};
	struct iot_request r;

	(void)state;
	add(&rk, &host, request(1));
	r = request(2);
	r.pid = 12;
	memcpy(r.comm, "second", 7);
	add(&rk, &host, r);
	assert_memory_equal(group(&rk, RANK_KNOWN, 10)->comm, "thread", 7);
	r.pid = 10;
	memcpy(r.comm, "main", 5);
	add(&rk, &host, r);
	r.pid = 13;
	memcpy(r.comm, "third", 6);
	add(&rk, &host, r);
	/* Its main thread's name, whoever came before and after. */
	assert_memory_equal(group(&rk, RANK_KNOWN, 10)->comm, "main", 5);
	assert_int_equal(group(&rk, RANK_KNOWN, 10)->bytes, 7);
	/* The number means another process after a boot. */
	add(&rk, &later, r);
	assert_int_equal(rk.n_groups, 2);
	/* Nobody saw who it was: 0 is no process. */
	r.submitter = IOT_SUBMITTER_NONE;
	r.pid = r.tgid = 0;
	add(&rk, &host, r);
	assert_int_equal(group(&rk, RANK_UNKNOWN, 0)->bytes, 2);
	assert_int_equal(rk.n_groups, 3);
}

static void test_other_groups(void **state)
{
	static const enum ctl_by kinds[] = {CTL_BY_CGROUP, CTL_BY_DEVICE, CTL_BY_ORIGIN};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(kinds); i++) {
		_cleanup_(rank_done) struct rank rk = {.by = kinds[i]};
		struct iot_request r = request(5);

		add(&rk, &host, r);
		add(&rk, &later, r);
		add(&rk, &other, r);
		/* Cgroups by boot, devices by machine, origins by nothing. */
		assert_int_equal(rk.n_groups, 3 - i);
		r.cgroup = 0;
		r.dev = IOT_DEV(8, 0);
		r.origin = IOT_ORIGIN_NONE;
		add(&rk, &host, r);
		assert_int_equal(rk.n_groups, 4 - i);
		if (kinds[i] == CTL_BY_CGROUP)
			assert_int_equal(group(&rk, RANK_UNKNOWN, 0)->requests, 1);
		/* A value of a later version is not one of ours. */
		r.origin = 99;
		if (kinds[i] == CTL_BY_ORIGIN) {
			add(&rk, &host, r);
			assert_int_equal(group(&rk, RANK_KNOWN, IOT_ORIGIN_UNKNOWN)->requests, 1);
		}
	}
}

/* Many groups: every request in its own, found again, and the sums close. */
static void test_many(void **state)
{
	_cleanup_(rank_done) struct rank rk = {.by = CTL_BY_FILE};
	enum {
		N = 50000
	};
	uint64_t bytes = 0, requests = 0;
	struct iot_request r;

	(void)state;
	for (uint64_t i = 0; i < 3 * N; i++) {
		r = request((uint32_t)(i % N) + 1);
		r.ino = 1 + i % N;
		r.fsdev = PART + (uint32_t)(i % 3);
		add(&rk, &host, r);
	}
	assert_int_equal(rk.requests, 3 * N);
	assert_int_equal(rank_choose(&rk, 10), 0);
	for (size_t i = 0; i < rk.n_groups; i++) {
		const struct rank_group *g = &rk.groups[i];

		bytes += g->bytes;
		requests += g->requests;
		assert_int_equal(g->bytes, g->requests * g->key.number);
		if (i)
			assert_true(g->bytes <= rk.groups[i - 1].bytes);
	}
	assert_int_equal(requests, rk.requests);
	assert_int_equal(bytes, rk.bytes);
	assert_int_equal(bytes, 3ULL * N * (N + 1) / 2);
}

/* More than can be told apart: the rest is one group, and nothing is left out. */
static void test_too_many(void **state)
{
	_cleanup_(rank_done) struct rank rk = {.by = CTL_BY_FILE};
	const uint64_t n = RANK_MAX_GROUPS + 1000;
	struct iot_request r = request(1);

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		r.ino = i;
		add(&rk, &host, r);
	}
	assert_int_equal(rk.n_groups, RANK_MAX_GROUPS);
	assert_int_equal(rk.requests, n);
	assert_int_equal(rank_choose(&rk, 1), 0);
	assert_int_equal(rk.groups[0].key.kind, RANK_REST);
	assert_int_equal(rk.groups[0].requests, n - (RANK_MAX_GROUPS - 1));
	assert_int_equal(rank_add_latency(&rk, &host, &r), 0);
	assert_int_equal(rk.groups[0].latency->n, 1);
}

static void test_latencies(void **state)
{
	_cleanup_(rank_done) struct rank rk = {.by = CTL_BY_FILE};
	struct iot_request r = request(10), small = request(1);

	(void)state;
	small.ino = 8;
	add(&rk, &host, r);
	add(&rk, &host, small);
	assert_int_equal(rank_choose(&rk, 1), 0);
	for (uint64_t i = 1; i <= 100; i++) {
		r.complete_ns = 1000 + i;
		assert_int_equal(rank_add_latency(&rk, &host, &r), 0);
	}
	/* From the issue where the start was not seen; not at all where neither was, or time ran back. */
	r.start_ns = 0;
	r.complete_ns = 1500 + 500;
	assert_int_equal(rank_add_latency(&rk, &host, &r), 0);
	r.issue_ns = 0;
	assert_int_equal(rank_add_latency(&rk, &host, &r), 0);
	r.issue_ns = 5000;
	assert_int_equal(rank_add_latency(&rk, &host, &r), 0);
	/* Not shown, and never seen before. */
	assert_int_equal(rank_add_latency(&rk, &host, &small), 0);
	assert_int_equal(rank_add_latency(&rk, &other, &small), 0);
	assert_int_equal(rk.groups[0].latency->n, 101);
	assert_int_equal(hist_percentile(rk.groups[0].latency, 5000), 51);
	assert_int_equal(rk.groups[0].latency->max, 500);
	assert_null(rk.groups[1].latency);
}

static void this_machine(uint8_t ret[16])
{
	FILE *f = fopen("/etc/machine-id", "re");
	unsigned int byte;

	memset(ret, 0, 16);
	for (int i = 0; f && i < 16 && fscanf(f, "%2x", &byte) == 1; i++)
		ret[i] = (uint8_t)byte;
	if (f)
		fclose(f);
}

/* 80 columns, whatever the names are; the ends of long paths are what is kept. */
static void test_text_fits(void **state)
{
	struct report_view v = {.n_hosts = 1, .lost = 3, .lost_bytes = 4096};
	struct report_span span = {.machine_id = {1}, .first_ns = 1, .last_ns = 2 * SEC};
	struct resolve_want want = {.state = RESOLVE_FOUND};
	char path[600], *text = NULL, *line, *save;
	struct iot_request r = request(1U << 30);
	size_t size = 0, n_lines = 0, n_ends = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	v.ranks[0].by = CTL_BY_CGROUP;
	v.spans = &span;
	v.n_spans = 1;
	for (uint64_t i = 0; i < 3000; i++) {
		r.cgroup = UINT64_MAX - i % 30;
		add(&v.ranks[0], &host, r);
	}
	assert_int_equal(rank_choose(&v.ranks[0], 20), 0);
	assert_int_equal(report_rank_text(&v, &v.ranks[0], f, false), 0);
	rank_done(&v.ranks[0]);
	/* A file of this machine, with a path as long as they come. */
	v.ranks[0].by = CTL_BY_FILE;
	memset(path, 'd', sizeof(path));
	memcpy(path, "/begin/", 7);
	memcpy(path + sizeof(path) - 5, "/end", 5);
	want.path = path;
	want.ino = 7;
	v.wants = &want;
	v.n_wants = 1;
	v.mount = "/";
	v.mount_fsdev = PART;
	this_machine(host.machine_id);
	assert_true(ctl_this_machine(host.machine_id));
	add(&v.ranks[0], &host, request(1));
	assert_int_equal(rank_choose(&v.ranks[0], 20), 0);
	assert_int_equal(report_rank_text(&v, &v.ranks[0], f, false), 0);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		n_lines++;
		n_ends += strncmp(line, "...ddd", 6) == 0 &&
			  strcmp(line + strlen(line) - 5, "d/end") == 0;
		if (strlen(line) > 80)
			fail_msg("wider than 80 columns: %s", line);
	}
	assert_true(n_lines > 25);
	assert_int_equal(n_ends, 1);
	rank_done(&v.ranks[0]);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),	     cmocka_unit_test(test_processes),
		cmocka_unit_test(test_other_groups), cmocka_unit_test(test_many),
		cmocka_unit_test(test_too_many),     cmocka_unit_test(test_latencies),
		cmocka_unit_test(test_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
