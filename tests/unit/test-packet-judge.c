// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-judge.c - a judge of ids that must find each way in which an id is not one packet, and must not
 * find one where the packets are others' or a record is a socket's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/probes-packet-judge.h"

#define NEAR 4026532001U
#define FAR 4026532002U
#define OTHERS 4026531840U

static struct packet_judge judge;
static struct packet_findings found;

static int setup(void **state)
{
	const uint32_t netns[2] = {NEAR, FAR};

	(void)state;
	return packet_judge_init(&judge, netns);
}

static int teardown(void **state)
{
	(void)state;
	packet_judge_done(&judge);
	return 0;
}

/* A datagram from the one to the other, whole. */
static void add_way(uint64_t id, uint32_t flags)
{
	packet_judge_add(&judge, id, EV_PROBE_NET_DEV_QUEUE, NEAR, flags, 1);
	packet_judge_add(&judge, id, EV_PROBE_NETIF_RX, FAR, flags, 1);
	packet_judge_add(&judge, id, EV_PROBE_NETIF_RECEIVE_SKB, FAR, flags, 1);
	packet_judge_add(&judge, id, EV_PROBE_KFREE_SKBMEM, FAR, flags | EV_PACKET_END, 1);
}

static void assert_found(unsigned int n, unsigned int ghosts, unsigned int endless,
			 unsigned int doubled)
{
	packet_judge_sum(&judge, &found);
	assert_int_equal(found.n_packets, n);
	assert_int_equal(found.n_ghosts, ghosts);
	assert_int_equal(found.n_endless, endless);
	assert_int_equal(found.n_doubled, doubled);
	assert_false(found.full);
}

static void test_whole(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 100; id++)
		add_way(id, EV_PACKET_BORN | EV_PACKET_FROM_START);
	assert_found(100, 0, 0, 0);
}

static void test_ghost(void **state)
{
	(void)state;
	add_way(1, EV_PACKET_BORN);
	/* Its beginning may be known all the same, by the end before: that is no birth. */
	add_way(2, EV_PACKET_FROM_START);
	assert_found(2, 1, 0, 0);
}

static void test_endless(void **state)
{
	(void)state;
	add_way(1, EV_PACKET_BORN);
	packet_judge_add(&judge, 2, EV_PROBE_NETIF_RX, FAR, EV_PACKET_BORN, 1);
	assert_found(2, 0, 1, 0);
	/* The record of its end was lost, and the ledger tells. */
	packet_judge_add(&judge, 2, EV_PROBE_CONSUME_SKB, 0, EV_PACKET_END, 1);
	assert_found(2, 0, 0, 0);
}

static void test_doubled(void **state)
{
	(void)state;
	/* Through both namespaces is one packet; twice into one of them is two. */
	add_way(1, EV_PACKET_BORN);
	packet_judge_add(&judge, 1, EV_PROBE_NETIF_RECEIVE_SKB, NEAR, EV_PACKET_BORN, 1);
	assert_found(1, 0, 0, 0);
	packet_judge_add(&judge, 1, EV_PROBE_NETIF_RECEIVE_SKB, NEAR, EV_PACKET_BORN, 1);
	assert_found(1, 0, 0, 1);
	add_way(2, EV_PACKET_BORN);
	packet_judge_add(&judge, 3, EV_PROBE_NETIF_RECEIVE_SKB, FAR, EV_PACKET_BORN | EV_PACKET_END,
			 2);
	assert_found(3, 0, 0, 2);
}

static void test_of_others(void **state)
{
	(void)state;
	packet_judge_add(&judge, 1, EV_PROBE_NETIF_RECEIVE_SKB, OTHERS, 0, 1);
	packet_judge_add(&judge, 1, EV_PROBE_NETIF_RECEIVE_SKB, OTHERS, 0, 1);
	/* Where nobody says, and without an id. */
	packet_judge_add(&judge, 2, EV_PROBE_KFREE_SKB, 0, 0, 1);
	packet_judge_add(&judge, 0, EV_PROBE_NETIF_RX, FAR, 0, 1);
	/* Of a socket: an id that is used once. */
	packet_judge_add(&judge, 3, EV_PROBE_TCP_RETRANSMIT_SKB, NEAR, 0, 1);
	assert_found(0, 0, 0, 0);
}

static void test_full(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 65536; id++)
		packet_judge_add(&judge, id, EV_PROBE_NETIF_RX, OTHERS, 0, 1);
	packet_judge_sum(&judge, &found);
	assert_true(found.full);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_whole),   CASE(test_ghost),	  CASE(test_endless),
		CASE(test_doubled), CASE(test_of_others), CASE(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
