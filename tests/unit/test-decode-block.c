// SPDX-License-Identifier: BSD-2-Clause
/* Wire to record, field by field, and everything that cannot be a record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/decode-block.h"

static struct probes_kernel kernel;
static struct decode_block decoder;

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	kernel.op_mask = 0xff;
	kernel.op[0] = IOT_OP_READ;
	kernel.op[1] = IOT_OP_WRITE;
	kernel.op[2] = IOT_OP_FLUSH;
	kernel.op[34] = IOT_OP_DRV_IN;
	kernel.flag_mask[11] = IOT_FLAG_SYNC;
	kernel.flag_mask[18] = IOT_FLAG_PREFLUSH;
	kernel.flag_mask[31] = IOT_FLAG_SWAP;
	decode_block_init(&decoder, &kernel, 4);
	return 0;
}

static struct ev_block sample(void)
{
	return (struct ev_block){
		.hdr = {.len = sizeof(struct ev_block),
			.probe = EV_PROBE_BLOCK_COMPLETE,
			.cpu = 3,
			.epoch = 9,
			.id = 0x1122334455667788},
		.start_ns = 1001,
		.insert_ns = 1002,
		.issue_ns = 1003,
		.issue_last_ns = 1004,
		.complete_ns = 1005,
		.sector = 0xabcdef0123,
		.cgroup = 77,
		.ino = 88,
		.fsdev = 99,
		.dev = IOT_DEV(8, 16),
		.part = IOT_DEV(8, 17),
		.bytes = 8192,
		.bytes_done = 4096,
		.cmd_flags = 1U | 1U << 11 | 1U << 18 | 1U << 30 | 1U << 31,
		.rq_flags = 5,
		.status = 10,
		.pid = 123,
		.tgid = 122,
		.requeues = 2,
		.merges = 3,
		.segments = 4,
		.hwq = 5,
		.issue_cpu = 6,
		.state = EV_BLOCK_SAW_START,
		.submitter = EV_SUBMITTER_INSERT,
		.swap_rule = EV_SWAP_FLAG,
		.origin = EV_ORIGIN_DIRECT | EV_CGROUP_BY_PAGE << EV_CGROUP_BY_SHIFT |
			  EV_RECLAIM_TASK << EV_RECLAIM_SHIFT,
		.comm = "sixteen-byte-com",
	};
}

static void test_every_field(void **state)
{
	struct ev_block e = sample();
	struct iot_request r;
	struct ev_hdr h;

	(void)state;
	memset(&r, 0xee, sizeof(r));
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_memory_equal(&h, &e.hdr, sizeof(h));
	assert_int_equal(r.id, e.hdr.id);
	assert_int_equal(r.start_ns, 1001);
	assert_int_equal(r.insert_ns, 1002);
	assert_int_equal(r.issue_ns, 1003);
	assert_int_equal(r.issue_last_ns, 1004);
	assert_int_equal(r.complete_ns, 1005);
	assert_int_equal(r.sector, 0xabcdef0123);
	assert_int_equal(r.cgroup, 77);
	assert_int_equal(r.ino, 88);
	assert_int_equal(r.fsdev, 99);
	assert_int_equal(r.dev, IOT_DEV(8, 16));
	assert_int_equal(r.part, IOT_DEV(8, 17));
	assert_int_equal(r.bytes, 8192);
	assert_int_equal(r.bytes_done, 4096);
	assert_int_equal(r.status, 10);
	assert_int_equal(r.error, -EIO);
	assert_int_equal(r.flags, IOT_FLAG_SYNC | IOT_FLAG_PREFLUSH | IOT_FLAG_SWAP);
	assert_int_equal(r.op, IOT_OP_WRITE);
	assert_int_equal(r.pid, 123);
	assert_int_equal(r.tgid, 122);
	assert_int_equal(r.issue_cpu, 6);
	assert_int_equal(r.complete_cpu, 3);
	assert_int_equal(r.requeues, 2);
	assert_int_equal(r.merges, 3);
	assert_int_equal(r.segments, 4);
	assert_int_equal(r.hwq, 5);
	assert_int_equal(r.swap, IOT_SWAP_OUT);
	assert_int_equal(r.swap_rule, 1);
	assert_int_equal(r.submitter, IOT_SUBMITTER_INSERT);
	assert_int_equal(r.origin, IOT_ORIGIN_DIRECT);
	assert_int_equal(r.file_by, IOT_FILE_BY_SUBMITTER);
	assert_int_equal(r.cgroup_by, IOT_CGROUP_BY_PAGE);
	assert_int_equal(r.reclaim, IOT_RECLAIM_TASK);
	assert_int_equal(r.unswapped_bytes, 0);
	assert_int_equal(r.ring, 0);
	assert_memory_equal(r.comm, "sixteen-byte-com", 16);
	assert_int_equal(decode_block_time(&e, sizeof(e)), 1005);
	assert_int_equal(decode_block_time(&e, sizeof(e) - 8), 0);
}

/* A merge of swap with others: the share comes out, also of one that was lost, and only beside a tag. */
static void test_unswapped(void **state)
{
	struct ev_block e = sample();
	struct ev_ledger_key key = {.id = 9, .probe = EV_PROBE_BLOCK_COMPLETE};
	struct ev_ledger_val val = {.n = 1, .bytes = 1 << 20, .cmd_flags = e.cmd_flags};
	struct iot_request r;
	struct iot_loss l;
	struct ev_hdr h;

	(void)state;
	e.unswapped = 0xffff;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_int_equal(r.swap, IOT_SWAP_OUT);
	assert_int_equal(r.unswapped_bytes, 0xffff * 512);
	e.swap_rule = EV_SWAP_NONE;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_int_equal(r.swap, IOT_SWAP_NONE);
	assert_int_equal(r.unswapped_bytes, 0);

	val.state = EV_BLOCK_SAW_START | EV_LEDGER_SWAP(EV_SWAP_FLAG) | EV_LEDGER_UNSWAPPED(0x3fff);
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.swap, IOT_SWAP_OUT);
	assert_int_equal(l.swap_rule, EV_SWAP_FLAG);
	assert_int_equal(l.unswapped_bytes, 0x3fff * 512);
	val.state = EV_BLOCK_SAW_START;
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.swap, IOT_SWAP_NONE);
	assert_int_equal(l.unswapped_bytes, 0);
}

/* Every value of the packed byte comes out, and none of it leaks into a neighbour. */
static void test_origin(void **state)
{
	struct ev_block e = sample();
	struct iot_request r;
	struct ev_hdr h;

	(void)state;
	for (unsigned int o = 0; o < 256; o++) {
		e.origin = (uint8_t)o;
		for (unsigned int ino = 0; ino < 2; ino++) {
			e.ino = ino;
			assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
			assert_int_equal(r.origin, o % 8);
			assert_int_equal(r.cgroup_by, o / 8 % 4);
			assert_int_equal(r.reclaim, o / 32);
			assert_int_equal(r.file_by, !ino ? IOT_FILE_BY_NONE
						    : o % 8 == IOT_ORIGIN_FILE
							    ? IOT_FILE_BY_PAGE
							    : IOT_FILE_BY_SUBMITTER);
		}
	}
}

static void test_state_status_and_swap(void **state)
{
	struct ev_block e = sample();
	struct iot_request r;
	struct ev_hdr h;

	(void)state;
	e.state = EV_BLOCK_PASSTHROUGH | EV_BLOCK_FLUSH_SEQ | EV_BLOCK_NO_STAT | EV_BLOCK_PARTIAL;
	e.cmd_flags = 34;
	e.status = 14; /* moved between 6.1 and 6.12: kept raw, not translated */
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_int_equal(r.flags, IOT_FLAG_NO_START | IOT_FLAG_FLUSH_SEQ | IOT_FLAG_NO_STAT |
					  IOT_FLAG_PARTIAL);
	assert_int_equal(r.op, IOT_OP_DRV_IN);
	assert_true(r.sector == IOT_SECTOR_NONE);
	assert_int_equal(r.status, 14);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.swap, IOT_SWAP_NONE);

	e.cmd_flags = 0;
	e.swap_rule = EV_SWAP_PAGE;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_int_equal(r.swap, IOT_SWAP_IN);
	assert_int_equal(r.swap_rule, 2);

	kernel.status_is_errno = true;
	e.status = -5;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	assert_int_equal(r.error, -5);
	assert_int_equal(r.status, (uint32_t)-5);
}

/* The cache must never give the answer of another value. */
static void test_flags_cache(void **state)
{
	struct ev_block e = sample();
	struct iot_request r;
	struct ev_hdr h;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint32_t op = 0; op < 40; op++) {
			for (uint32_t bits = 0; bits < 8; bits++) {
				uint32_t want = (bits & 1 ? IOT_FLAG_SYNC : 0) |
						(bits & 2 ? IOT_FLAG_PREFLUSH : 0) |
						(bits & 4 ? IOT_FLAG_SWAP : 0);

				e.cmd_flags = op | (bits & 1) << 11 | (bits >> 1 & 1) << 18 |
					      (bits >> 2) << 31;
				assert_int_equal(
					decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
				assert_int_equal(r.op, kernel.op[op]);
				assert_int_equal(r.flags, want);
			}
		}
	}
}

static void test_not_a_record(void **state)
{
	struct ev_block good = sample(), e;
	struct iot_request r;
	struct ev_hdr h;

	(void)state;
	for (uint32_t len = 0; len < sizeof(good); len++) {
		assert_int_equal(decode_block_record(&decoder, &good, len, &r, &h), DECODE_BAD);
		assert_int_equal(h.id, len >= sizeof(h) ? good.hdr.id : 0);
	}
	e = good;
	e.hdr.len -= 8;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), DECODE_BAD);
	assert_int_equal(h.id, good.hdr.id);
	e = good;
	e.hdr.probe = EV_PROBE_BLOCK_ISSUE;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), DECODE_BAD);
	e = good;
	e.hdr.cpu = 4;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), DECODE_BAD);
	e = good;
	e.submitter = 4;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), DECODE_BAD);
	e = good;
	e.swap_rule = 4;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), DECODE_BAD);
	assert_int_equal(decode_block_record(&decoder, &good, sizeof(good), &r, &h), 0);
}

static void test_in_flight(void **state)
{
	struct ev_block e = sample();
	struct iot_request r;

	(void)state;
	decode_block_in_flight(&decoder, &e, &r);
	assert_int_equal(r.complete_ns, 0);
	assert_int_equal(r.id, e.hdr.id);
	assert_int_equal(r.issue_ns, e.issue_ns);
}

static void test_losses(void **state)
{
	struct ev_ledger_key key = {.id = 5, .probe = EV_PROBE_BLOCK_COMPLETE, .cpu = 1};
	struct ev_ledger_val val = {
		.n = 2,
		.bytes = 4096,
		.sector = 100,
		.first_ns = 10,
		.last_ns = 20,
		.dev = IOT_DEV(7, 0),
		.part = IOT_DEV(7, 1),
		.cmd_flags = 1U | 1U << 11,
		.state = EV_BLOCK_NO_STAT,
	};
	struct ev_block e = sample();
	struct iot_request r;
	struct ev_hdr h;
	struct iot_loss l;

	(void)state;
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.id, 5);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.bytes, 4096);
	assert_int_equal(l.sector, 100);
	assert_int_equal(l.first_ns, 10);
	assert_int_equal(l.last_ns, 20);
	assert_int_equal(l.dev, IOT_DEV(7, 0));
	assert_int_equal(l.part, IOT_DEV(7, 1));
	assert_int_equal(l.op, IOT_OP_WRITE);
	assert_int_equal(l.flags, IOT_FLAG_SYNC | IOT_FLAG_NO_STAT | IOT_FLAG_NO_START);
	assert_int_equal(l.probe, EV_PROBE_BLOCK_COMPLETE);
	assert_int_equal(l.cause, IOT_LOSS_RESERVE_FAILED);
	val.state |= EV_BLOCK_END_UNSEEN;
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.cause, IOT_LOSS_UNSEEN);
	assert_int_equal(l.flags, IOT_FLAG_SYNC | IOT_FLAG_NO_STAT | IOT_FLAG_NO_START);
	assert_int_equal(l.swap, IOT_SWAP_NONE);
	assert_int_equal(l.swap_rule, 0);
	val.state |= EV_LEDGER_SWAP(EV_SWAP_FLAG);
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.swap, IOT_SWAP_OUT);
	assert_int_equal(l.swap_rule, EV_SWAP_FLAG);
	assert_int_equal(l.cause, IOT_LOSS_UNSEEN);
	assert_int_equal(l.flags, IOT_FLAG_SYNC | IOT_FLAG_NO_STAT | IOT_FLAG_NO_START);
	val.cmd_flags &= ~1U;
	val.state = EV_LEDGER_SWAP(EV_SWAP_PAGE);
	decode_block_loss(&decoder, &key, &val, &l);
	assert_int_equal(l.op, IOT_OP_READ);
	assert_int_equal(l.swap, IOT_SWAP_IN);
	assert_int_equal(l.swap_rule, EV_SWAP_PAGE);
	assert_int_equal(l.cause, IOT_LOSS_RESERVE_FAILED);

	e.swap_rule = EV_SWAP_FLAG;
	assert_int_equal(decode_block_record(&decoder, &e, sizeof(e), &r, &h), 0);
	decode_block_user_loss(&h, &r, IOT_LOSS_OUTPUT_FAILED, 1, 2, &l);
	assert_int_equal(l.id, e.hdr.id);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.bytes, 4096);
	assert_int_equal(l.op, IOT_OP_WRITE);
	assert_int_equal(l.cause, IOT_LOSS_OUTPUT_FAILED);
	assert_int_equal(l.swap, IOT_SWAP_OUT);
	assert_int_equal(l.swap_rule, EV_SWAP_FLAG);
	decode_block_user_loss(&h, NULL, IOT_LOSS_DECODE_FAILED, 1, 2, &l);
	assert_int_equal(l.id, e.hdr.id);
	assert_int_equal(l.bytes, 0);
	assert_true(l.sector == IOT_SECTOR_NONE);
	assert_int_equal(l.cause, IOT_LOSS_DECODE_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_field, setup),
		cmocka_unit_test_setup(test_origin, setup),
		cmocka_unit_test_setup(test_unswapped, setup),
		cmocka_unit_test_setup(test_state_status_and_swap, setup),
		cmocka_unit_test_setup(test_flags_cache, setup),
		cmocka_unit_test_setup(test_not_a_record, setup),
		cmocka_unit_test_setup(test_in_flight, setup),
		cmocka_unit_test_setup(test_losses, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
