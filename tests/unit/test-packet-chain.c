// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-chain.c - what a segment's own claims, and segments that are missing, mean for a packet that has
 * all of its records: a row for each way a footer or a chain can fail to say what it must.
 */

#include "tests/unit/packet-scene.h"

static void older_than_capture(struct fix_capture *c)
{
	whole(c);
	change(c, 0, IOT_PACKET_FROM_START);
}

/* ---- claims of a segment ---- */

static void missed_without_window(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, UINT32_MAX)->missed = 1;
}

static void missed_without_window_before(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[0], FIX_RECEIVE, UINT32_MAX)->missed = 1;
}

static void missed_not_known(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, UINT32_MAX)->missed = IOT_COUNT_UNKNOWN;
}

static void missed_unguarded(struct fix_capture *c)
{
	missed_not_known(c);
	for (size_t i = 0; i < c->n; i++)
		fix_row(&c->s[i], FIX_RECEIVE)->miss = IOT_MISS_UNGUARDED;
}

static void missed_not_measurable(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->miss = IOT_MISS_NOT_MEASURABLE;
}

static void row_absent(struct fix_capture *c)
{
	whole(c);
	for (size_t i = 0; i < c->s[1].f.n_books; i++)
		if (c->s[1].books[i].probe == FIX_RECEIVE && c->s[1].books[i].cpu == UINT32_MAX)
			c->s[1].books[i].probe = FIX_QUEUE, c->s[1].books[i].cpu = 1;
}

static void counter_absent(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, 0)->reserve_failed = IOT_COUNT_UNKNOWN;
}

static void unbalanced(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_QUEUE, 0)->seen++;
}

static void unbalanced_before(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[0], FIX_QUEUE, 0)->seen++;
}

static void written_less(struct fix_capture *c) /* a footer made without a drain */
{
	whole(c);
	fix_books(&c->s[1], FIX_QUEUE, 0)->written--;
}

static void unattributed_without_window(struct fix_capture *c)
{
	whole(c);
	fix_unattributed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 1);
	c->s[1].f.n_windows = 0;
}

static void output_failed_without_owner(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, 0)->emitted++;
	fix_books(&c->s[1], FIX_RECEIVE, 0)->seen++;
	fix_books(&c->s[1], FIX_RECEIVE, 0)->output_failed++;
}

static void read_failed(struct fix_capture *c) /* a filter that could not read is no decision */
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, 0)->read_failed = 1;
}

static void read_failed_before(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[0], FIX_RECEIVE, 0)->read_failed = 1;
}

static void identity_full_no_record(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_RECEIVE, 0)->identity_full = 1;
}

static void unidentified(struct fix_capture *c, uint64_t ts_ns)
{
	struct iot_packet p = fix_packet(0, ts_ns, 4);

	whole(c);
	p.ts_ns = ts_ns;
	fix_record(c, 1, &p);
}

static void unidentified_inside(struct fix_capture *c)
{
	unidentified(c, LIFE_FIRST + 1);
}

static void unidentified_elsewhen(struct fix_capture *c)
{
	unidentified(c, LIFE_LAST + FAR_NS);
}

static void unidentified_lost_inside(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(0, LIFE_FIRST, 4);

	whole(c);
	(void)fix_lose(c, 1, &p);
}

static void unidentified_lost_elsewhen(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(0, LIFE_FIRST - FAR_NS, 4);

	whole(c);
	(void)fix_lose(c, 1, &p);
}

static void not_in_table(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->id = FIX_PROGRAM;
}

static void attached_late(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->from_ns = LIFE_FIRST + 1;
}

static void attached_late_but_before(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->from_ns = LIFE_FIRST - FAR_NS;
}

static void detached_early(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->to_ns = LIFE_LAST - 1;
}

static void detached_early_but_after(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_RECEIVE)->to_ns = LIFE_LAST + FAR_NS;
}

static void ends_refused(struct fix_capture *c)
{
	whole(c);
	for (size_t i = 0; i < c->n; i++)
		fix_row(&c->s[i], FIX_KFREE)->state = IOT_ATTACH_REFUSED;
}

static void refused_but_counted(struct fix_capture *c)
{
	whole(c);
	fix_books(&c->s[1], FIX_IP_RCV, 0)->seen = 1;
	fix_books(&c->s[1], FIX_IP_RCV, 0)->folded = 1;
}

static void table_empty(struct fix_capture *c)
{
	whole(c);
	c->s[1].f.n_probes = c->s[1].info.n_probes = 0;
}

static void recovered(struct fix_capture *c)
{
	whole(c);
	c->s[1].f.reason = IOT_SEAL_RECOVERED;
}

static void recovered_after(struct fix_capture *c)
{
	whole(c);
	c->s[2].f.reason = IOT_SEAL_RECOVERED;
}

static void epoch_not_known(struct fix_capture *c)
{
	whole(c);
	c->s[1].f.epoch_first_ns = 0;
}

/* ---- the chain ---- */

static void neighbour_missing(struct fix_capture *c) /* its life goes on there */
{
	unended(c);
	c->missing[2] = true;
}

static void own_segment_missing(struct fix_capture *c)
{
	fix_path(c, 0, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 1, 2);
	fix_path(c, 1, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 3, 3);
	fix_path(c, 2, 77, 3 * FIX_SPAN_NS, 4, 5);
	c->missing[1] = true;
}

static void first_missing(struct fix_capture *c)
{
	whole(c);
	c->missing[0] = true;
}

static void first_missing_and_older(struct fix_capture *c)
{
	older_than_capture(c);
	c->missing[0] = true;
}

static void two_captures(struct fix_capture *c)
{
	whole(c);
	c->s[2].info.capture_id[0]++;
}

static void order_lost(struct fix_capture *c)
{
	whole(c);
	c->s[2].info.seq = 1;
}

static void spans_segments(struct fix_capture *c)
{
	fix_path(c, 0, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 1, 2);
	fix_path(c, 1, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 3, 5);
}

static const struct scene_row rows[] = {
	{"in two segments", spans_segments, IOT_PVERDICT_COMPLETE, NULL},
	{"missed, no window", missed_without_window, IOT_PVERDICT_UNKNOWN, "without a window"},
	{"missed, no window, before", missed_without_window_before, IOT_PVERDICT_COMPLETE, NULL},
	{"missed not known", missed_not_known, IOT_PVERDICT_UNKNOWN, "missed runs not known"},
	{"no guard, hence no miss", missed_unguarded, IOT_PVERDICT_COMPLETE, NULL},
	{"missed not measurable", missed_not_measurable, IOT_PVERDICT_UNKNOWN, "cannot be counted"},
	{"a probe's row absent", row_absent, IOT_PVERDICT_UNKNOWN, "missed runs not known"},
	{"a counter absent", counter_absent, IOT_PVERDICT_UNKNOWN, "counters are not known"},
	{"books unbalanced", unbalanced, IOT_PVERDICT_UNKNOWN, "do not balance"},
	{"books unbalanced before", unbalanced_before, IOT_PVERDICT_COMPLETE, NULL},
	{"not drained", written_less, IOT_PVERDICT_UNKNOWN, "do not balance"},
	{"no ledger", no_ledger, IOT_PVERDICT_UNKNOWN, "ledger of losses is not whole"},
	{"unattributed, no window", unattributed_without_window, IOT_PVERDICT_UNKNOWN,
	 "without owner and window"},
	{"output failed, no owner", output_failed_without_owner, IOT_PVERDICT_UNKNOWN,
	 "owner not known"},
	{"a field not read", read_failed, IOT_PVERDICT_UNKNOWN, "could not be read"},
	{"a field not read before", read_failed_before, IOT_PVERDICT_COMPLETE, NULL},
	{"identity full, no record", identity_full_no_record, IOT_PVERDICT_UNKNOWN,
	 "identity map full"},
	{"unidentified record", unidentified_inside, IOT_PVERDICT_UNKNOWN, "unidentified"},
	{"unidentified elsewhen", unidentified_elsewhen, IOT_PVERDICT_COMPLETE, NULL},
	{"unidentified loss", unidentified_lost_inside, IOT_PVERDICT_UNKNOWN, "unidentified"},
	{"unidentified loss elsewhen", unidentified_lost_elsewhen, IOT_PVERDICT_COMPLETE, NULL},
	{"probe not in the table", not_in_table, IOT_PVERDICT_UNKNOWN, "not in the probe table"},
	{"attached late", attached_late, IOT_PVERDICT_UNKNOWN, "not attached yet"},
	{"attached late, before it", attached_late_but_before, IOT_PVERDICT_COMPLETE, NULL},
	{"detached early", detached_early, IOT_PVERDICT_UNKNOWN, "not attached any more"},
	{"detached, after it", detached_early_but_after, IOT_PVERDICT_COMPLETE, NULL},
	{"ends refused", ends_refused, IOT_PVERDICT_UNKNOWN, "ends of packets"},
	{"refused but counted", refused_but_counted, IOT_PVERDICT_UNKNOWN, "not attached by"},
	{"table empty", table_empty, IOT_PVERDICT_UNKNOWN, "table is empty"},
	{"recovered", recovered, IOT_PVERDICT_UNKNOWN, "recovered"},
	{"the next recovered", recovered_after, IOT_PVERDICT_COMPLETE, NULL},
	{"epoch not known", epoch_not_known, IOT_PVERDICT_UNKNOWN, "time it covers"},
	{"torn tail", torn_tail, IOT_PVERDICT_UNKNOWN, "no footer"},
	{"torn tail later", torn_tail_later, IOT_PVERDICT_COMPLETE, NULL},
	{"next segment missing", neighbour_missing, IOT_PVERDICT_UNKNOWN,
	 "goes on after segment 2"},
	{"middle segment missing", own_segment_missing, IOT_PVERDICT_UNKNOWN, "segments 2 to 2"},
	{"first missing, begun later", first_missing, IOT_PVERDICT_COMPLETE, NULL},
	{"first missing, older", first_missing_and_older, IOT_PVERDICT_UNKNOWN, "segments 1 to 1"},
	{"two captures", two_captures, IOT_PVERDICT_UNKNOWN, "more than one capture"},
	{"order lost", order_lost, IOT_PVERDICT_UNKNOWN, "not in order"},
};

static void test_rows(void **state)
{
	(void)state;
	scene_run(rows, IOT_ARRAY_SIZE(rows));
}

/* A footer's own verdict: a refused probe is one point of the path less, unless ids need it. */
static void test_footer(void **state)
{
	struct fix_capture *c = capture(whole);
	struct iot_verdict v;

	(void)state;
	iot_verdict_footer(&c->s[1].info, &c->s[1].f, &v);
	if (v.code != IOT_VERDICT_COMPLETE)
		fail_msg("%s", v.reasons[0]);
	fix_row(&c->s[1], FIX_CONSUME)->state = IOT_ATTACH_REFUSED;
	iot_verdict_footer(&c->s[1].info, &c->s[1].f, &v);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	fix_row(&c->s[1], FIX_CONSUME)->state = IOT_ATTACH_ATTACHED;
	fix_books(&c->s[1], FIX_IP_RCV, 0)->seen = 1;
	fix_books(&c->s[1], FIX_IP_RCV, 0)->folded = 1;
	iot_verdict_footer(&c->s[1].info, &c->s[1].f, &v);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	free(c);
}

static void test_no_segment(void **state)
{
	struct iot_packet_life l = {.id = 77, .n_records = 1};
	struct iot_packet_ruling r;
	struct iot_doubts *d;

	(void)state;
	assert_int_equal(iot_doubts_new(NULL, NULL, 0, &d), 0);
	iot_doubts_judge(d, &l, &r, NULL);
	assert_int_equal(r.verdict, IOT_PVERDICT_UNKNOWN);
	iot_doubts_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_footer),
		cmocka_unit_test(test_no_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
