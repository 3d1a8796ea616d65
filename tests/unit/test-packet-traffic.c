// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-traffic.c - the traffic of the self-test: all of it arrives, and its namespaces go with it. Where this
 * user may not make namespaces, that is said, and soon.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/packet-traffic.h"

/* Processes that live in a network namespace. */
static unsigned int count_inhabitants(uint32_t netns)
{
	DIR *proc = opendir("/proc");
	unsigned int n = 0;
	struct dirent *e;

	assert_non_null(proc);
	while ((e = readdir(proc))) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9' && stat(path, &st) == 0 &&
		     (uint32_t)st.st_ino == netns;
	}
	closedir(proc);
	return n;
}

static void test_all_of_it_arrives(void **state)
{
	struct packet_traffic t;
	char what[48] = "";
	uint32_t second;
	int r;

	(void)state;
	r = packet_traffic_start(&t, what, sizeof(what));
	if (r == -EPERM || r == -EACCES || r == -ENOSPC) {
		assert_string_equal(what, "network namespaces");
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_not_equal(t.netns[0], t.netns[1]);
	do {
		r = packet_traffic_wait(&t, 100, what, sizeof(what));
	} while (r == PACKET_TRAFFIC_RUNS);
	/* A machine without the veth module, which may not load it either. */
	if (r == -EOPNOTSUPP && strcmp(what, "a veth pair") == 0) {
		packet_traffic_stop(&t);
		skip();
	}
	if (r < 0)
		print_error("%s: %s\n", what, strerror(-r));
	assert_int_equal(r, 0);
	/* Twice datagrams and pings, thrice rounds, and once what is too large for a frame or merged. */
	assert_int_equal(t.n_sent, 2 * (48 + 4) + 3 * 16 + 4 + 8);
	second = t.netns[1];
	assert_int_equal(count_inhabitants(t.netns[0]) + count_inhabitants(second), 1);
	packet_traffic_stop(&t);
	assert_int_equal(count_inhabitants(second), 0);
	assert_int_equal(t.pid, 0);
	/* Once more is nothing. */
	packet_traffic_stop(&t);
}

static void test_stopped_half_way(void **state)
{
	struct packet_traffic t;
	char what[48] = "";
	int r;

	(void)state;
	r = packet_traffic_start(&t, what, sizeof(what));
	if (r < 0)
		skip();
	packet_traffic_stop(&t);
	assert_int_equal(t.pid, 0);
	assert_true(t.fd < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it_arrives),
		cmocka_unit_test(test_stopped_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
