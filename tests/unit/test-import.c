// SPDX-License-Identifier: BSD-2-Clause
/* Texts of other tools, and how requests are made of events. Whole imports: tests/live/test-import.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/import-world.h"

/* ---- perf --------------------------------------------------------------------------------------- */

#define AT "[001]   474.000"

static void test_perf(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_perf,
	     "# captured on: today\n\n"
	     "              dd 12365 " AT
	     "010:                        block:block_getrq: 254,0 RA 64 + 32 [dd]\n"
	     "              dd 12365 " AT "011:                     block:block_io_start: 254,0 RA "
	     "16384 () 64 + 32 0x2,0,4 [dd]\n"
	     "              dd 12365 " AT "012:                    block:block_rq_insert: 254,0 RA "
	     "16384 () 64 + 32 0x2,0,4 [dd]\n"
	     "   kworker/0:1H-kb 44/45 [000]   474.000020:  1   block:block_rq_issue: 254,0 RA "
	     "16384 () 64 + 32 [kworker/0:1H]\n"
	     "\tffffffff81234567 blk_mq_start_request+0x12 ([kernel.kallsyms])\n"
	     "              sh     1 [000]   474.000021:   sched:sched_switch: prev_comm=sh "
	     "prev_pid=1 ==> next\n"
	     "              dd 12365 " AT "022:   block:block_plug: [dd]\n"
	     "            swap     0 [003]   474.000030:  block:block_rq_complete: 254,0 RA () 64 "
	     "+ 32 0x2,0,4 [-5]\n"
	     "            swap     0 [003]   474.000031:  block:block_rq_error: 254,0 RA () 64 + "
	     "32 0x2,0,4 [-5]\n");
	assert_int_equal(w.n, 1);
	assert_string_equal(times(&w.requests[0], 474000000000), "11 12 20 20 30");
	assert_int_equal(w.requests[0].dev, IOT_DEV(254, 0));
	assert_int_equal(w.requests[0].sector, 64);
	assert_int_equal(w.requests[0].bytes, 16384);
	assert_int_equal(w.requests[0].bytes_done, 0);
	assert_int_equal(w.requests[0].error, -5);
	assert_int_equal(w.requests[0].op, IOT_OP_READ);
	assert_int_equal(w.requests[0].flags, IOT_FLAG_AHEAD);
	assert_int_equal(w.requests[0].pid, 12365);
	assert_int_equal(w.requests[0].tgid, 0);
	assert_string_equal(w.requests[0].comm, "dd");
	assert_int_equal(w.requests[0].submitter, IOT_SUBMITTER_START);
	assert_int_equal(w.requests[0].complete_cpu, 3);
	assert_int_equal(w.requests[0].issue_cpu, 0);
	assert_int_equal(w.requests[0].hwq, IOT_HWQ_NONE);
	assert_int_equal(w.n_open, 0);
	assert_int_equal(w.im.n_events, 8);
	assert_int_equal(w.im.n_ignored, 3);
	assert_false(w.im.dated);
	done(&w);
}

static void test_perf_lost(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_perf,
	     "dd 1 " AT "010: block:block_rq_issue: 8,0 R 512 () 1 + 1 [dd]\n"
	     "dd 1 " AT "015: PERF_RECORD_LOST lost 7\n"
	     "dd 1 " AT "020: block:block_rq_complete: 8,0 R () 1 + 1 [0]\n"
	     "LOST 3 events!\n"
	     "CPU:2 [LOST 5 EVENTS]\n");
	assert_int_equal(w.im.n_lost, 15);
	assert_false(w.im.lost_unknown);
	assert_int_equal(w.im.n_windows, 3);
	assert_int_equal(w.im.windows[0].n, 7);
	assert_int_equal(w.im.windows[0].t0_ns, 474000010000);
	assert_int_equal(w.im.windows[0].t1_ns, 474000015000);
	done(&w);
	/* Not in order: of what is told without a time only the CPU's line before is known, or nothing. */
	text(&w, import_perf,
	     "dd 1 [002] 9.000090: block:block_rq_issue: 8,0 R 512 () 9 + 1 [dd]\n"
	     "dd 1 [001] 9.000010: block:block_rq_issue: 8,0 R 512 () 1 + 1 [dd]\n"
	     "dd 1 [002] 9.000012: block:block_rq_issue: 8,0 R 512 () 2 + 1 [dd]\n"
	     "dd 1 [001] 9.000015: PERF_RECORD_LOST lost 1\n"
	     "dd 1 [002] 9.000020: block:block_rq_issue: 8,0 R 512 () 3 + 1 [dd]\n"
	     "dd 1 [002] 9.000019: PERF_RECORD_LOST lost 2\n"
	     "dd 1 9.000021: PERF_RECORD_LOST lost 3\n"
	     "dd 1 [002] 9.000022: PERF_RECORD_LOST_SAMPLES lost 4\n"
	     "CPU:1 [LOST 5 EVENTS]\n"
	     "dd 1 [001] 9.000009: block:block_rq_issue: 8,0 R 512 () 4 + 1 [dd]\n");
	assert_int_equal(w.im.n_windows, 5);
	for (size_t i = 0; i < 5; i++) {
		static const uint64_t want[5][2] = {
			{9000010000, 9000015000}, {0, 9000019000},	    {0, 9000021000},
			{0, UINT64_MAX},	  {9000010000, UINT64_MAX},
		};

		assert_true(w.im.windows[i].n == i + 1);
		assert_true(w.im.windows[i].t0_ns == want[i][0]);
		assert_true(w.im.windows[i].t1_ns == want[i][1]);
	}
	done(&w);
	text(&w, import_perf,
	     "dd 1 " AT "010: block:block_rq_issue: 8,0 R 512 () 1 + 1 [dd]\n"
	     "Processed 10 events and lost 2 chunks!\n");
	assert_true(w.im.lost_unknown);
	assert_int_equal(w.n_open, 1);
	done(&w);
}

/* perf script -F comm,pid,tid,...: the process, then the thread. */
static void test_perf_threads(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_perf,
	     "a 100/101 " AT "010: block:block_rq_issue: 8,0 R 512 () 1 + 1 [a]\n"
	     "a 200/201 " AT "011: block:block_rq_issue: 8,0 R 512 () 2 + 1 [a]\n"
	     "a 301 " AT "012: block:block_rq_issue: 8,0 R 512 () 3 + 1 [a]\n");
	assert_int_equal(w.n_open, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(w.open[i].pid, 101 + 100 * i);
		assert_int_equal(w.open[i].tgid, i < 2 ? 100 + 100 * i : 0);
		assert_string_equal(w.open[i].comm, "a");
	}
	done(&w);
}

/* A process that is called like the beginning of a line does not hide what it does. */
static void test_hiding(void **state)
{
	static const char *const comms[] = {
		"a 1 1.0: y:", "a 1 1.0: block::", "1 1.0: block:x:", "a 1 [0] 1.0: y:"};
	char line[256];
	struct world w;

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(comms); i++) {
		snprintf(line, sizeof(line),
			 "%s 77 " AT "010: block:block_rq_issue: 8,0 W 512 () 1 + 1 [%s]\n",
			 comms[i], comms[i]);
		text(&w, import_perf, line);
		assert_int_equal(w.n_open, 1);
		assert_int_equal(w.open[0].pid, 77);
		assert_int_equal(w.open[0].issue_ns, 474000010000);
		done(&w);
	}
}

/* The name of a process may be anything. */
static void test_names(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_perf,
	     "  a 1 [002] 3.5: x 77 " AT "010: block:block_rq_issue: 8,0 W 512 () 1 + 1 [a] [b]\n"
	     "  a\nb 78 " AT "011: block:block_rq_issue: 8,0 W 512 () 2 + 1 [a\nb]\n"
	     "x 1 " AT "020: block:block_rq_complete: 8,0 W () 2 + 1 [0]\n");
	assert_int_equal(w.n, 1);
	assert_string_equal(w.requests[0].comm, "a\nb");
	assert_int_equal(w.requests[0].pid, 78);
	assert_int_equal(w.n_open, 1);
	assert_string_equal(w.open[0].comm, "a] [b");
	assert_int_equal(w.open[0].pid, 77);
	done(&w);
	text(&w, import_blkparse,
	     "  8,0    1        1     0.000000000  9  D   W 1 + 1 [x\n] [y\n\n]\n"
	     "  8,0    1        2     0.000001000  9  C   W 1 + 1 [0]\n");
	assert_int_equal(w.n, 1);
	assert_string_equal(w.requests[0].comm, "x\n] [y\n\n");
	done(&w);
}

/* ---- blkparse ----------------------------------------------------------------------------------- */

static void test_blkparse(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse,
	     "Input file sda.blktrace.0 added\n"
	     "  8,0    1        0     0.000000000     0  m   N a message\n"
	     "  8,0    1        1     0.000000000   700  Q  WS 100 + 8 [fio]\n"
	     "  8,0    1        2     0.000001000   700  G  WS 100 + 8 [fio]\n"
	     "  8,0    1        3     0.000002000   700  Q  WS 108 + 8 [fio]\n"
	     "  8,0    1        4     0.000003000   700  M  WS 108 + 8 [fio]\n"
	     "  8,0    1        5     0.000004000   700  Q  WS 92 + 8 [fio]\n"
	     "  8,0    1        6     0.000005000   700  F  WS 92 + 8 [fio]\n"
	     "  8,0    1        7     0.000006000   700  P   N [fio]\n"
	     "  8,0    1        8     0.000007000   700  U   N [fio] 1\n"
	     "  8,0    1        9     0.000008000   700  I  WS 92 + 24 [fio]\n"
	     "  8,0    1       10     0.000009000   700  D  WS 92 + 24 (    1000) [fio]\n"
	     "  8,0    1       11     0.000010000   700  R  WS 92 + 24 [0]\n"
	     "  8,0    1       12     0.000011000   700  D  WS 92 + 24 [fio]\n"
	     "  8,0    2        1     0.000015000     0  C  WS 92 + 8 (  5000) [0]\n"
	     "  8,0    2        2     0.000016000     0  C  WS 100 + 16 [0]\n"
	     "  8,0    1       13     0.000017000   701  D   R 36 (12 00 00 00) [sg_inq]\n"
	     "  8,0    1       14     0.000018000   701  C   R (12 00 00 00) [0]\n"
	     "  8,0    1       15     0.000019000   702  Q FWS [sync]\n"
	     "  8,0    1       16     0.000020000   702  G FWS [sync]\n"
	     "  8,0    1       17     0.000021000    80  D  FN [kworker]\n"
	     "  8,0    1       18     0.000022000     0  C  FN 0 [0]\n"
	     "  8,0    1       19     0.000023000     0  C  WS 0 [0]\n"
	     "CPU1 (sda):\n Reads Queued:           0,        0KiB\n\nTotal (sda):\n"
	     "Events (8,0): 21 entries\nSkips: 1 forward (40 -  65.6%)\n");
	assert_int_equal(w.n, 4);
	assert_string_equal(times(&w.requests[0], 1), "1 8 9 11 16");
	assert_int_equal(w.requests[0].sector, 92);
	assert_int_equal(w.requests[0].bytes, 24 * 512);
	assert_int_equal(w.requests[0].bytes_done, 24 * 512);
	assert_int_equal(w.requests[0].merges, 2);
	assert_int_equal(w.requests[0].requeues, 1);
	assert_int_equal(w.requests[0].flags, IOT_FLAG_SYNC | IOT_FLAG_PARTIAL);
	assert_int_equal(w.requests[1].op, IOT_OP_DRV_IN);
	assert_int_equal(w.requests[1].bytes, 36);
	assert_true(w.requests[1].sector == IOT_SECTOR_NONE);
	assert_true(w.requests[1].flags & IOT_FLAG_NO_START);
	assert_int_equal(w.requests[2].op, IOT_OP_FLUSH);
	assert_string_equal(times(&w.requests[2], 1), "- - 21 21 22");
	assert_int_equal(w.requests[3].op, IOT_OP_WRITE);
	assert_int_equal(w.requests[3].bytes, 0);
	assert_string_equal(times(&w.requests[3], 1), "20 - - - 23");
	assert_string_equal(w.requests[3].comm, "sync");
	assert_int_equal(w.n_open, 0);
	assert_int_equal(w.counts.only_end, 0);
	assert_int_equal(w.im.n_lost, 40);
	assert_string_equal(w.im.devices[0].name, "sda");
	done(&w);
}

/* Whatever blkparse calls what is no request's. */
static void test_other_actions(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse,
	     "8,0 0 1 0.000001000 7  D  WS 8 + 8 [dd]\n"
	     "8,0 0 2 0.000002000 7 UT   N [dd] 1\n"
	     "8,0 0 3 0.000003000 7  P   N [dd]\n"
	     "8,0 0 4 0.000004000 7  X  WS 8 / 12 [dd]\n"
	     "8,0 0 5 0.000005000 7  S  WS 8 + 8 [dd]\n"
	     "8,0 0 6 0.000006000 7  B  WS 8 + 8 [dd]\n"
	     "8,0 0 0 0.000006000 7  m   N cfq\n"
	     "8,0 0 7 0.000007000 0  C  WS 8 + 8 [0]\n");
	assert_int_equal(w.n, 1);
	assert_int_equal(w.n_open, 0);
	assert_int_equal(w.im.n_events, 8);
	assert_int_equal(w.im.n_ignored, 6);
	assert_int_equal(w.im.n_lost, 0);
	assert_int_equal(w.im.n_disorder, 0);
	done(&w);
}

/* A remap is printed as of the disk below; who was traced has numbered it. */
static void test_remaps(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse, /* the partition was traced */
	     "8,0 0 1 0.000001000 7 A WS 2056 + 8 <- (8,1) 8\n"
	     "8,1 0 2 0.000002000 7 Q WS 8 + 8 [dd]\n"
	     "8,1 0 3 0.000003000 7 D WS 8 + 8 [dd]\n"
	     "8,1 0 4 0.000004000 0 C WS 8 + 8 [0]\n"
	     "8,0 0 5 0.000005000 7 A WS 2064 + 8 <- (8,1) 16\n"
	     "8,1 0 6 0.000006000 7 Q WS 16 + 8 [dd]\n"
	     "8,1 0 9 0.000007000 7 D WS 16 + 8 [dd]\n"
	     "8,0 0 10 0.000008000 7 A WS 2072 + 8 <- (8,1) 24\n");
	assert_int_equal(w.im.n_lost, 2);
	assert_int_equal(w.im.n_windows, 1);
	assert_int_equal(w.im.windows[0].t0_ns, 6001);
	assert_int_equal(w.im.n_disorder, 0);
	assert_int_equal(w.im.n_devices, 1);
	done(&w);
	text(&w, import_blkparse, /* the disk was, and one above it, too */
	     "253,0 0 1 0.000000000 7 Q WS 8 + 8 [dd]\n"
	     "8,0 0 1 0.000001000 7 A WS 2056 + 8 <- (253,0) 8\n"
	     "8,0 0 2 0.000002000 7 A WS 4104 + 8 <- (8,1) 2056\n"
	     "8,0 0 3 0.000003000 7 Q WS 4104 + 8 [dd]\n"
	     "253,0 0 2 0.000004000 7 Q WS 16 + 8 [dd]\n"
	     "8,0 0 5 0.000005000 7 A WS 2064 + 8 <- (253,0) 16\n"
	     "8,0 0 6 0.000006000 7 Q WS 4112 + 8 [dd]\n");
	assert_int_equal(w.im.n_lost, 1);
	assert_int_equal(w.im.windows[0].t0_ns, 3001);
	assert_int_equal(w.im.windows[0].t1_ns, 5001);
	assert_int_equal(w.im.n_disorder, 0);
	assert_int_equal(w.im.n_devices, 2);
	done(&w);
}

static void test_unpaired(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse,
	     "8,0 0 1 0.000001000 1 C R 8 + 8 [0]\n"   /* only its end */
	     "8,0 0 2 0.000002000 1 D R 16 + 8 [a]\n"  /* no end */
	     "8,0 0 3 0.000003000 1 Q W 24 + 8 [a]\n"  /* a bio of which nothing came */
	     "8,0 0 4 0.000004000 1 G W 32 + 8 [a]\n"  /* not issued */
	     "8,0 0 5 0.000005000 1 M W 99 + 8 [a]\n"  /* into nothing */
	     "8,0 0 9 0.000006000 1 D R 40 + 8 [a]\n"  /* behind a hole of 3 */
	     "8,0 0 10 0.000007000 1 D R 40 + 8 [b]\n" /* the same place again */
	     "8,0 0 11 0.000008000 1 C R 40 + 8 [0]\n"
	     "8,0 0 12 0.000009000 1 C R 40 + 8 [0]\n");
	assert_int_equal(w.n, 3);
	assert_string_equal(times(&w.requests[0], 1), "- - - - 1");
	assert_true(w.requests[0].flags & IOT_FLAG_NO_START);
	assert_int_equal(w.requests[0].bytes, 4096);
	assert_int_equal(w.requests[0].bytes_done, 4096);
	assert_int_equal(w.requests[0].submitter, IOT_SUBMITTER_NONE);
	assert_string_equal(w.requests[1].comm, "a");
	assert_string_equal(w.requests[2].comm, "b");
	assert_int_equal(w.n_open, 3);
	for (size_t i = 0; i < w.n_open; i++)
		assert_true(w.open[i].complete_ns == 0);
	assert_int_equal(w.counts.requests, 3);
	assert_int_equal(w.counts.only_end, 1);
	assert_int_equal(w.counts.ambiguous, 1);
	assert_int_equal(w.counts.merges_unmatched, 1);
	assert_int_equal(w.im.n_lost, 3);
	assert_int_equal(w.im.windows[0].n, 3);
	assert_int_equal(w.im.windows[0].t0_ns, 5001);
	assert_int_equal(w.im.windows[0].t1_ns, 6001);
	assert_int_equal(w.im.windows[0].cpu, 0);
	done(&w);
}

/* Two requests of the scheduler that become one; a bio-based device, which issues nothing. */
static void test_merged_requests(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse,
	     "8,0 0 1 0.000001000 1 G W 0 + 8 [a]\n"
	     "8,0 0 2 0.000002000 1 G W 8 + 8 [a]\n"
	     "8,0 0 3 0.000003000 1 M W 8 + 8 [a]\n"
	     "8,0 0 4 0.000004000 1 D W 0 + 16 [a]\n"
	     "8,0 0 5 0.000005000 1 C W 0 + 16 [0]\n"
	     "253,0 0 1 0.000006000 1 Q R 8 + 8 [dm]\n"
	     "253,0 0 2 0.000007000 1 C R 8 + 8 [0]\n");
	assert_int_equal(w.n, 2);
	assert_int_equal(w.requests[0].bytes, 8192);
	assert_int_equal(w.requests[0].merges, 1);
	assert_string_equal(times(&w.requests[1], 1), "6 - - - 7");
	assert_int_equal(w.n_open, 0);
	done(&w);
}

/* Events of one time from two files, in whatever order these are read. */
static void test_ties(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse,
	     "8,0 0 1 0.000001000 1 C R 0 + 8 [0]\n"
	     "8,0 1 1 0.000001000 1 D R 0 + 8 [a]\n");
	assert_int_equal(w.n, 1);
	assert_int_equal(w.n_open, 0);
	assert_int_equal(w.counts.only_end, 0);
	done(&w);
}

static const struct {
	const char *letters;
	uint32_t bytes;
	uint8_t op;
	bool flush_bio;
	uint32_t flags;
} rwbs[] = {
	{"R", 512, IOT_OP_READ, false, 0},
	{"RA", 512, IOT_OP_READ, false, IOT_FLAG_AHEAD},
	{"WFSM", 512, IOT_OP_WRITE, false, IOT_FLAG_FUA | IOT_FLAG_SYNC | IOT_FLAG_META},
	{"FWFS", 512, IOT_OP_WRITE, false, IOT_FLAG_PREFLUSH | IOT_FLAG_FUA | IOT_FLAG_SYNC},
	{"FWS", 0, IOT_OP_FLUSH, true, IOT_FLAG_PREFLUSH | IOT_FLAG_SYNC},
	{"FF", 0, IOT_OP_FLUSH, false, IOT_FLAG_PREFLUSH},
	{"F", 0, IOT_OP_FLUSH, false, 0},
	{"FN", 0, IOT_OP_FLUSH, false, IOT_FLAG_PREFLUSH},
	{"DS", 512, IOT_OP_DISCARD, false, IOT_FLAG_SYNC},
	{"DE", 512, IOT_OP_SECURE_ERASE, false, 0},
	{"ZA", 512, IOT_OP_ZONE_APPEND, false, 0},
	{"ZR", 0, IOT_OP_ZONE_RESET, false, 0},
	{"ZRS", 0, IOT_OP_ZONE_RESET, false, IOT_FLAG_SYNC},
	{"ZRA", 0, IOT_OP_ZONE_RESET_ALL, false, 0},
	{"ZRAS", 0, IOT_OP_ZONE_RESET_ALL, false, IOT_FLAG_SYNC},
	{"N", 512, IOT_OP_OTHER, false, 0},
	{"WSU", 512, IOT_OP_WRITE, false, IOT_FLAG_SYNC | IOT_FLAG_ATOMIC},
};

static void test_rwbs(void **state)
{
	struct import_event e;

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(rwbs); i++) {
		e = (struct import_event){.bytes = rwbs[i].bytes};
		assert_true(import_rwbs(rwbs[i].letters, strlen(rwbs[i].letters), &e));
		assert_int_equal(e.op, rwbs[i].op);
		assert_int_equal(e.flush_bio, rwbs[i].flush_bio);
		assert_int_equal(e.flags, rwbs[i].flags);
	}
	assert_false(import_rwbs("", 0, &e));
	assert_false(import_rwbs("r", 1, &e));
	assert_false(import_rwbs("RRRRRRRRRRR", 11, &e));
}

/* ---- broken texts ------------------------------------------------------------------------------- */

static void check_error(parser fn, const char *s, const char *want)
{
	struct world w;

	begin(&w);
	assert_int_equal(parse(&w, fn, s, strlen(s)), -EBADMSG);
	assert_string_equal(w.err.text, want);
	done(&w);
}

#define GOOD "8,0 0 1 0.000001000 1 D R 8 + 8 [a]\n"
#define SUMS                                                                  \
	"fio (700)\n Reads Queued:           0,        0KiB\n\nCPU0 (sda):\n" \
	" IO unplugs:             2        \t Timer unplugs:           3\n\n" \
	"Throughput (R/W): 0KiB/s / 0KiB/s\nEvents (sda): 35 entries\n"       \
	"Skips: 0 forward (0 -   0.0%)\n"

/* Sums are the end of a text, and nothing but sums. */
static void test_sums(void **state)
{
	struct world w;

	(void)state;
	text(&w, import_blkparse, GOOD SUMS);
	assert_int_equal(w.im.n_events, 1);
	done(&w);
	check_error(
		import_blkparse, GOOD SUMS "8,0 0 2 0.000002000 1 C R\n",
		"trace: line 11: an event behind the sums: these are several texts of blkparse");
	check_error(import_blkparse, GOOD SUMS "8,0 0 2 0.000\n",
		    "trace: line 11: no event of this format");
	check_error(
		import_blkparse, GOOD SUMS GOOD SUMS,
		"trace: line 11: an event behind the sums: these are several texts of blkparse");
	check_error(import_blkparse, GOOD "CPU0 (\n" GOOD,
		    "trace: line 2: no event of this format");
}

static void test_broken_text(void **state)
{
	(void)state;
	check_error(import_blkparse, GOOD "garbage\n", "trace: line 2: no event of this format");
	check_error(import_blkparse, GOOD GOOD "8,0 0 2 0.000001000 1 D R 8 + 8 [a",
		    "trace: line 3: not \"SECTOR + SECTORS [PROCESS]\" or the like");
	check_error(import_blkparse, "8,0 0 2 0.000001000 1 D R 8 + 99999999999 [a]\n",
		    "trace: line 1: not \"SECTOR + SECTORS [PROCESS]\" or the like");
	check_error(import_blkparse, "8,0 0 2 0.000001000 1 D R 8 + 8 [abcdefghijklmnopq]\n",
		    "trace: line 1: the name of a process is longer than any");
	check_error(import_blkparse, "8,0 0 2 0.000001000 1 C R 8 + 8 [a]\n",
		    "trace: line 1: no error in brackets behind it");
	check_error(import_blkparse, "8,0 0 2 0.000001000 1 D r 8 + 8 [a]\n",
		    "trace: line 1: no letters of an operation");
	check_error(import_blkparse, "8,0 9999 2 0.000001000 1 D R 8 + 8 [a]\n",
		    "trace: line 1: no event of this format");
	check_error(import_perf, "dd 1 " AT "010: block:block_rq_issue: 8,0 R 512 () 1 [dd]\n",
		    "trace: line 1: a block event whose fields are others than this program knows");
	check_error(import_perf, "dd 1 " AT "010: nothing\n",
		    "trace: line 1: no event behind the time");
	check_error(import_perf, "garbage\n", "trace: line 1: no event of this format");
	check_error(import_perf, "            cafe 12365 " AT "0\n",
		    "trace: line 1: no event of this format");
	check_error(import_perf, "            cafe 12365 [001]   474\n",
		    "trace: line 1: no event of this format");
	check_error(import_perf, " : PERF_RECORD_x 12365 [001]   474\n",
		    "trace: line 1: no event of this format");
}

/* A pair of its own, for events of one device that no text says. */
static struct import_pair *begin_pair(struct world *w, uint32_t *ret_device)
{
	const struct import_output out = {keep, crowded, NULL};
	struct import_pair *p;

	begin(w);
	assert_int_equal(import_device(&w->im, IOT_DEV(8, 0), ret_device), 0);
	assert_int_equal(import_pair_new(&w->im, &out, &p), 0);
	return p;
}

/* More begun than can be held: the older half is set aside, and said. */
static void test_crowded(void **state)
{
	struct bt_event e = {.action = IMPORT_ISSUE | (uint32_t)IOT_OP_READ << 8, .bytes = 512};
	struct iot_request *open;
	struct import_pair *p;
	struct world w;
	size_t n;

	(void)state;
	p = begin_pair(&w, &e.device);
	for (uint64_t i = 0; i <= IMPORT_MAX_OPEN; i++) {
		e.time_ns = i + 1;
		e.sector = i;
		assert_int_equal(import_pair_add(p, &e), 0);
	}
	assert_int_equal(import_pair_open(p, &open, &n), 0);
	assert_int_equal(n, IMPORT_MAX_OPEN / 2 + 1);
	assert_int_equal(import_pair_counts(p)->set_aside, IMPORT_MAX_OPEN / 2);
	free(open);
	import_pair_free(p);
	done(&w);
}

/* There is room for so many names: a pid that has one can change it, all others have none. */
static void test_many_names(void **state)
{
	struct bt_event e = {.action = IMPORT_PROCESS};
	struct iot_request *open;
	struct import_pair *p;
	struct world w;
	size_t n;

	(void)state;
	p = begin_pair(&w, &e.device);
	w.im.names = calloc(2, sizeof(*w.im.names));
	assert_non_null(w.im.names);
	w.im.n_names = 2;
	snprintf(w.im.names[0].comm, IOT_COMM_LEN, "old");
	snprintf(w.im.names[1].comm, IOT_COMM_LEN, "new");
	for (uint32_t i = 0; i <= IMPORT_MAX_NAMES; i++) {
		e.pid = i;
		e.comm = 1;
		assert_int_equal(import_pair_add(p, &e), 0);
	}
	e.pid = 7;
	e.comm = 2;
	assert_int_equal(import_pair_add(p, &e), 0);
	e = (struct bt_event){.action = IMPORT_ISSUE | (uint32_t)IOT_OP_READ << 8,
			      .bytes = 512,
			      .device = e.device,
			      .time_ns = 1};
	e.pid = 7;
	assert_int_equal(import_pair_add(p, &e), 0);
	e.pid = IMPORT_MAX_NAMES;
	assert_int_equal(import_pair_add(p, &e), 0);
	assert_int_equal(import_pair_open(p, &open, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(open[0].comm, "new");
	assert_string_equal(open[1].comm, "");
	assert_int_equal(import_pair_counts(p)->names_dropped, 1);
	free(open);
	import_pair_free(p);
	done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf),	    cmocka_unit_test(test_perf_lost),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_blkparse),
		cmocka_unit_test(test_unpaired),    cmocka_unit_test(test_merged_requests),
		cmocka_unit_test(test_ties),	    cmocka_unit_test(test_rwbs),
		cmocka_unit_test(test_broken_text), cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_remaps),	    cmocka_unit_test(test_other_actions),
		cmocka_unit_test(test_sums),	    cmocka_unit_test(test_perf_threads),
		cmocka_unit_test(test_hiding),	    cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
