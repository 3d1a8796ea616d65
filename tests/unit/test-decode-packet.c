// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-decode-packet.c - the packet stream's wire to its records: every field, what cannot be true is
 * refused with its header, losses keep their flow; and a record's way through the drain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/drain.h"
#include "tests/unit/fake-ring.h"

static struct ev_packet_task sample(void)
{
	struct ev_packet_task t = {
		.packet = {.hdr = {.len = sizeof(t),
				   .probe = EV_PROBE_NET_DEV_QUEUE,
				   .cpu = 1,
				   .epoch = 1,
				   .id = EV_ID(77, 1)},
			   .ts_ns = 1000,
			   .parent = EV_ID(76, 1),
			   .where = 0xffffffff81000001,
			   .saddr = {10, 0, 0, 1},
			   .daddr = {10, 0, 0, 2},
			   .netns = 4026531840,
			   .ifindex = 3,
			   .len = 98,
			   .mark = 5,
			   .code = -7,
			   .hop = 2,
			   .sport = 1234,
			   .dport = 53,
			   .protocol = 0x800,
			   .flags = EV_PACKET_FROM_START | EV_PACKET_TASK | EV_PACKET_VLAN,
			   .ip_id = 99,
			   .vlan_tci = 42,
			   .family = 4,
			   .ip_proto = 17,
			   .l4 = {0x12, 0x34}},
		.pid = 100,
		.tgid = 101,
		.comm = "sender"};

	return t;
}

static void test_fields(void **state)
{
	struct places places;
	const struct decode_packet d = {.n_cpus = 2, .places = &places};
	struct ev_packet_task t = sample();
	struct iot_packet p;
	struct ev_hdr hdr;

	(void)state;
	assert_int_equal(places_init(&places), 0);
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), 0);
	assert_int_equal(hdr.id, EV_ID(77, 1));
	assert_int_equal(p.ts_ns, 1000);
	assert_int_equal(p.id, EV_ID(77, 1));
	assert_int_equal(p.parent, EV_ID(76, 1));
	/* Never the address itself. */
	assert_int_equal(places_address(&places, p.where), 0xffffffff81000001);
	assert_int_not_equal(p.where, 0xffffffff81000001);
	assert_int_equal(p.netns, 4026531840);
	assert_int_equal(p.ifindex, 3);
	assert_int_equal(p.len, 98);
	assert_int_equal(p.mark, 5);
	assert_int_equal(p.code, -7);
	assert_int_equal(p.hop, 2);
	assert_int_equal(p.cpu, 1);
	assert_int_equal(p.probe, EV_PROBE_NET_DEV_QUEUE);
	assert_int_equal(p.flags, IOT_PACKET_FROM_START | IOT_PACKET_TASK | IOT_PACKET_VLAN);
	assert_int_equal(p.ip_id, 99);
	assert_int_equal(p.flow.src[3], 1);
	assert_int_equal(p.flow.dst[3], 2);
	assert_int_equal(p.flow.sport, 1234);
	assert_int_equal(p.flow.dport, 53);
	assert_int_equal(p.flow.protocol, 0x800);
	assert_int_equal(p.flow.vlan_tci, 42);
	assert_int_equal(p.flow.family, 4);
	assert_int_equal(p.flow.ip_proto, 17);
	assert_int_equal(p.l4[0], 0x12);
	assert_int_equal(p.l4[1], 0x34);
	assert_int_equal(p.pid, 100);
	assert_int_equal(p.tgid, 101);
	assert_string_equal(p.comm, "sender");
	/* Without the flag it was not read: not even what the bytes say. */
	t.packet.flags = EV_PACKET_FROM_START;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), 0);
	assert_int_equal(p.pid, 0);
	assert_int_equal(p.comm[0], 0);
	assert_int_equal(p.flow.vlan_tci, 0);
	/* A program's id is no address. */
	t.packet.hdr.probe = EV_PROBE_PACKET_PROGRAM;
	t.packet.where = 77;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), 0);
	assert_int_equal(p.where, 77);
	places_done(&places);
}

static void test_refused(void **state)
{
	struct places places;
	const struct decode_packet d = {.n_cpus = 2, .places = &places};
	struct ev_packet_task t;
	struct iot_packet p;
	struct ev_hdr hdr;

	(void)state;
	assert_int_equal(places_init(&places), 0);
	t = sample();
	assert_int_equal(decode_packet_record(&d, &t, 8, &p, &hdr), DECODE_BAD);
	assert_int_equal(hdr.id, 0);
	t.packet.hdr.probe = EV_PROBE_BLOCK_COMPLETE;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), DECODE_BAD);
	assert_int_equal(hdr.id, EV_ID(77, 1));
	t = sample();
	t.packet.hdr.probe = EV_PACKET_PROGRAMS_END;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), DECODE_BAD);
	t = sample();
	t.packet.hdr.cpu = 2;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), DECODE_BAD);
	t = sample();
	t.packet.hdr.len = sizeof(t.packet);
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t), &p, &hdr), DECODE_BAD);
	/* It promises a task and is too short for one. */
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t.packet), &p, &hdr), DECODE_BAD);
	t.packet.flags = 0;
	assert_int_equal(decode_packet_record(&d, &t, sizeof(t.packet), &p, &hdr), 0);
	places_done(&places);
}

static void test_loss(void **state)
{
	const struct ev_ledger_key key = {.id = EV_ID(5, 0), .probe = EV_PROBE_KFREE_SKB};
	const struct ev_packet_loss val = {.n = 3,
					   .bytes = 300,
					   .first_ns = 10,
					   .last_ns = 20,
					   .parent = 9,
					   .netns = 1,
					   .ifindex = 2,
					   .saddr = {1},
					   .daddr = {2},
					   .sport = 3,
					   .dport = 4,
					   .protocol = 0x86dd,
					   .flags = EV_PACKET_END,
					   .code = 6,
					   .family = 6,
					   .ip_proto = 6,
					   .l4 = {2, 0}};
	struct iot_loss l;

	(void)state;
	decode_packet_loss(&key, &val, &l);
	assert_int_equal(l.id, EV_ID(5, 0));
	assert_int_equal(l.probe, EV_PROBE_KFREE_SKB);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.bytes, 300);
	assert_int_equal(l.parent, 9);
	assert_int_equal(l.netns, 1);
	assert_int_equal(l.ifindex, 2);
	assert_int_equal(l.flags, IOT_PACKET_END);
	assert_int_equal(l.code, 6);
	assert_int_equal(l.cause, IOT_LOSS_RESERVE_FAILED);
	assert_int_equal(l.flow.src[0], 1);
	assert_int_equal(l.flow.dst[0], 2);
	assert_int_equal(l.flow.sport, 3);
	assert_int_equal(l.flow.family, 6);
}

/* Each record ends in the batch or in the ledger of its packet, and is counted at its own probe. */
static void test_drain(void **state)
{
	struct ev_packet_task t = sample();
	struct fake_ring ring;
	struct epoch *books;
	struct iot_packet p;
	uint64_t taken, pos[IOT_MAX_RINGS] = {0};
	uint32_t at = 1 * EV_N_PACKET_PROBES + EV_PROBE_NET_DEV_QUEUE - EV_FIRST_PACKET_PROBE;
	struct drain d;

	(void)state;
	assert_int_equal(fake_ring_new(&ring, 1 << 16), 0);
	assert_int_equal(drain_init_packet(&d, 2, 1, 64), 0);
	ring_init(&d.rings[0], ring.data, ring.size, &ring.consumer, &ring.producer);
	assert_int_equal(epoch_new(IOT_STREAM_PACKET, 1, 2, 1, &books), 0);
	segment_out_begin(&d.outs[1], books, NULL, 1, pos, 1);
	for (unsigned int i = 0; i < 3; i++) {
		t.packet.hdr.cpu = i == 2 ? 9 : 1; /* the third cannot be true */
		assert_true(fake_ring_put(&ring, &t, sizeof(t)));
	}
	drain_refresh(&d);
	assert_int_equal(drain_run(&d, 100, &taken), 0);
	assert_int_equal(taken, 3);
	assert_int_equal(iot_batch_count(d.outs[1].batch), 2);
	iot_batch_get_packet(d.outs[1].batch, 1, &p);
	assert_int_equal(p.id, EV_ID(77, 1));
	assert_int_equal(places_address(&d.places, p.where), t.packet.where);
	assert_int_equal(books->cgroups.n, 1); /* to be named in the footer */
	assert_int_equal(books->written[at], 2);
	assert_int_equal(d.decode_failed, 1);
	assert_int_equal(books->n_losses, 1);
	assert_int_equal(books->losses[0].id, EV_ID(77, 1));
	assert_int_equal(books->losses[0].probe, EV_PROBE_NET_DEV_QUEUE);
	/* What was not written becomes a loss of the packet it belongs to. */
	assert_int_equal(segment_out_abandon(&d.outs[1]), 2);
	assert_int_equal(books->written[at], 0);
	assert_int_equal(books->output_failed[at], 2);
	assert_int_equal(books->losses[2].flow.dport, 53);
	drain_done(&d);
	fake_ring_done(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_drain),
	};

	return cmocka_run_group_tests_name("decode-packet", tests, NULL, NULL);
}
