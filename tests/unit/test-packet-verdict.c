// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-verdict.c - what can be proved of one packet, as a table: packet 77 lives in the second of
 * three segments, one fact is spoiled, and the verdict is what it has to be. Rows in pairs where it
 * matters: the same fact outside its life must not cast doubt on it, or doubt would not be bounded.
 */

#include "tests/unit/packet-scene.h"

static void lost_middle(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 2);
	lose_hop(c, 3);
	fix_path(c, 1, 77, LIFE_FIRST, 4, 5);
}

static void lost_first(struct fix_capture *c)
{
	lose_hop(c, 1);
	fix_path(c, 1, 77, LIFE_FIRST, 2, 5);
}

static void lost_last(struct fix_capture *c)
{
	unended(c);
	lose_hop(c, 5);
}

static void lost_all(struct fix_capture *c)
{
	for (uint32_t hop = 1; hop <= 5; hop++)
		lose_hop(c, hop);
}

static void lost_in_neighbour(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 5);

	unended(c);
	p.ts_ns = 3 * FIX_SPAN_NS + FIX_SEC_NS;
	(void)fix_lose(c, 2, &p);
}

static void lost_of_another(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(78, LIFE_FIRST, 2);

	whole(c);
	(void)fix_lose(c, 1, &p);
}

static void lost_by_user_space(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 3);

	lost_middle(c);
	c->s[1].losses[0].cause = IOT_LOSS_OUTPUT_FAILED;
	fix_books(&c->s[1], p.probe, 0)->reserve_failed--;
	fix_books(&c->s[1], p.probe, 0)->filed--;
	fix_books(&c->s[1], p.probe, 0)->emitted++;
	fix_books(&c->s[1], p.probe, 0)->output_failed++;
}

static void lost_outranks_doubt(struct fix_capture *c)
{
	lost_middle(c);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 2);
	fix_books(&c->s[1], FIX_QUEUE, 0)->seen++;
}

static void hop_missing(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 2);
	fix_path(c, 1, 77, LIFE_FIRST, 4, 5);
}

static void hop_missing_first(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 2, 5);
}

static void hop_missing_merged(struct fix_capture *c)
{
	hop_missing(c);
	change(c, IOT_PACKET_MERGED, 0);
}

static void hop_twice(struct fix_capture *c) /* two records with one number do not fill a gap */
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 2);

	hop_missing(c);
	fix_record(c, 1, &p);
	fix_unattributed(c, 1, FIX_XMIT, LIFE_FIRST, LIFE_LAST, 1);
}

static void older_than_capture(struct fix_capture *c)
{
	whole(c);
	change(c, 0, IOT_PACKET_FROM_START);
}

static void older_and_doubt_before(struct fix_capture *c)
{
	older_than_capture(c);
	fix_unattributed(c, 0, FIX_QUEUE, FIX_SPAN_NS + 1, FIX_SPAN_NS + 2, 1);
}

static void no_end(struct fix_capture *c)
{
	unended(c);
}

static void no_end_and_doubt_later(struct fix_capture *c)
{
	unended(c);
	fix_unattributed(c, 2, FIX_RECEIVE, 3 * FIX_SPAN_NS + 500 * FIX_SEC_NS,
			 3 * FIX_SPAN_NS + 501 * FIX_SEC_NS, 1);
}

static void no_end_and_no_shutdown(struct fix_capture *c)
{
	unended(c);
	c->s[2].f.reason = IOT_SEAL_TIME;
}

static void no_shutdown(struct fix_capture *c)
{
	whole(c);
	c->s[2].f.reason = IOT_SEAL_TIME;
}

static void merged(struct fix_capture *c)
{
	whole(c);
	change(c, IOT_PACKET_MERGED, 0);
}

static void merged_late(struct fix_capture *c) /* one observation says so: it holds for all */
{
	whole(c);
	c->records[c->n_records - 1].p.flags |= IOT_PACKET_MERGED;
}

static void merged_and_doubt(struct fix_capture *c)
{
	merged(c);
	fix_unattributed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 1);
}

static void tcp(struct fix_capture *c)
{
	whole(c);
	for (size_t i = 0; i < c->n_records; i++)
		c->records[i].p.flow.ip_proto = 6;
}

static void tcp_by_tracepoints(struct fix_capture *c)
{
	tcp(c);
	snprintf(c->s[1].info.identity, sizeof(c->s[1].info.identity), "tracepoints only");
}

static void tcp_identity_absent(struct fix_capture *c)
{
	tcp(c);
	c->s[1].info.identity[0] = '\0';
}

static void births_unseen(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_BIRTH)->state = IOT_ATTACH_REFUSED;
}

static void ends_unseen(struct fix_capture *c)
{
	tcp(c);
	fix_row(&c->s[1], FIX_FREED)->state = IOT_ATTACH_NOT_NEEDED;
}

static void births_not_listed(struct fix_capture *c)
{
	whole(c);
	fix_row(&c->s[1], FIX_BIRTH)->id = 98;
}

static void birth_missed(struct fix_capture *c)
{
	tcp(c);
	fix_missed(c, 1, FIX_BIRTH, LIFE_FIRST - 2, LIFE_FIRST - 1, 1);
}

/* A packet where none was born: this one may have been taken for ended while it went on. */
static void ghost_after(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_BIRTH, LIFE_LAST + 5 * FIX_SEC_NS, LIFE_LAST + 5 * FIX_SEC_NS, 1);
}

static void ghost_long_after(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_BIRTH, LIFE_LAST + FAR_NS, LIFE_LAST + FAR_NS, 1);
}

static void udp_by_tracepoints(struct fix_capture *c)
{
	whole(c);
	snprintf(c->s[1].info.identity, sizeof(c->s[1].info.identity), "tracepoints only");
}

/* ---- windows ---- */

static void unattributed_but_numbered(struct fix_capture *c)
{
	whole(c);
	fix_unattributed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 9);
}

static void unattributed_end(struct fix_capture *c)
{
	unended(c);
	fix_unattributed(c, 1, FIX_CONSUME, LIFE_FIRST, LIFE_LAST, 1);
}

static void unattributed_after_end(struct fix_capture *c) /* the driver's answer, not numbered */
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 2);
	fix_path(c, 1, 77, LIFE_FIRST, 4, 5);
	for (size_t i = 2; i < c->n_records; i++)
		c->records[i].p.hop--;
	fix_unattributed(c, 1, FIX_XMIT, LIFE_LAST + 1, LIFE_LAST + FIX_STEP_NS, 1);
}

static void unattributed_long_after_end(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 2);
	fix_path(c, 1, 77, LIFE_FIRST, 4, 5);
	for (size_t i = 2; i < c->n_records; i++)
		c->records[i].p.hop--;
	fix_unattributed(c, 1, FIX_XMIT, LIFE_LAST + FAR_NS, LIFE_LAST + FAR_NS + 1, 1);
}

static void answered_after_end(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 3);

	unattributed_after_end(c);
	c->s[1].f.n_windows = 0;
	fix_books(&c->s[1], FIX_XMIT, 0)->seen--;
	fix_books(&c->s[1], FIX_XMIT, 0)->reserve_failed--;
	fix_books(&c->s[1], FIX_XMIT, 0)->unattributed--;
	p.ts_ns = LIFE_LAST + FIX_STEP_NS;
	p.hop = 0;
	p.flags |= IOT_PACKET_AFTER_END;
	fix_record(c, 1, &p);
	fix_unattributed(c, 1, FIX_XMIT, LIFE_LAST + 2 * FIX_STEP_NS, LIFE_LAST + FIX_SEC_NS / 2,
			 1);
}

static void missed_inside(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 1);
}

static void missed_just_before(struct fix_capture *c) /* it may have been in a queue since then */
{
	whole(c);
	fix_missed(c, 1, FIX_QUEUE, LIFE_FIRST - FIX_SEC_NS, LIFE_FIRST - 1, 1);
}

static void missed_long_before(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_QUEUE, LIFE_FIRST - FAR_NS, LIFE_FIRST - FAR_NS + 1, 1);
}

static void missed_after(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_LAST + 1, LIFE_LAST + FIX_SEC_NS, 1);
}

static void missed_any_probe(struct fix_capture *c) /* one program served many functions */
{
	whole(c);
	fix_window(c, 1, IOT_WINDOW_MISSED, 0, LIFE_FIRST, LIFE_LAST, 1);
}

static void detached_inside(struct fix_capture *c)
{
	whole(c);
	fix_window(c, 1, IOT_WINDOW_DETACHED, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST,
		   IOT_COUNT_UNKNOWN);
}

static void torn_inside(struct fix_capture *c)
{
	unended(c);
	fix_window(c, 1, IOT_WINDOW_TORN, 0, LIFE_FIRST, LIFE_LAST, IOT_COUNT_UNKNOWN);
}

static void unknown_kind_inside(struct fix_capture *c)
{
	whole(c);
	fix_window(c, 1, 99, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 1);
}

static void unknown_kind_after(struct fix_capture *c)
{
	whole(c);
	fix_window(c, 1, 99, FIX_RECEIVE, LIFE_LAST + FAR_NS, LIFE_LAST + FAR_NS + 1, 1);
}

static void window_backwards(struct fix_capture *c)
{
	whole(c);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_LAST + FAR_NS + 9, LIFE_LAST + FAR_NS, 1);
}

static void window_of_none(struct fix_capture *c)
{
	whole(c);
	fix_window(c, 1, IOT_WINDOW_MISSED, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 0);
}

static const struct scene_row rows[] = {
	{"clean", whole, IOT_PVERDICT_COMPLETE, NULL},
	{"lost in the middle", lost_middle, IOT_PVERDICT_LOST, "net_dev_xmit: 1 obs"},
	{"lost at first", lost_first, IOT_PVERDICT_LOST, "net_dev_queue: 1 obs"},
	{"lost at last", lost_last, IOT_PVERDICT_LOST, "consume_skb: 1 obs"},
	{"lost in the next segment", lost_in_neighbour, IOT_PVERDICT_LOST, "consume_skb: 1"},
	{"lost by user space", lost_by_user_space, IOT_PVERDICT_LOST, "output"},
	{"lost entirely", lost_all, IOT_PVERDICT_LOST_ENTIRELY, "net_dev_queue: 1 obs"},
	{"another one's loss", lost_of_another, IOT_PVERDICT_COMPLETE, NULL},
	{"loss outranks doubt", lost_outranks_doubt, IOT_PVERDICT_LOST, "beyond these"},
	{"a hop in neither", hop_missing, IOT_PVERDICT_UNKNOWN, "observed 5 times; 4 are"},
	{"first hop in neither", hop_missing_first, IOT_PVERDICT_UNKNOWN, "observed 5 times"},
	{"a hop of a merged id", hop_missing_merged, IOT_PVERDICT_UNKNOWN, "observed 5 times"},
	{"a number twice fills no gap", hop_twice, IOT_PVERDICT_UNKNOWN, "unattributed"},
	{"older than the capture", older_than_capture, IOT_PVERDICT_WITHIN_WINDOW, NULL},
	{"older, doubt before", older_and_doubt_before, IOT_PVERDICT_UNKNOWN, "unattributed"},
	{"no end observed", no_end, IOT_PVERDICT_WITHIN_WINDOW, NULL},
	{"no end, doubt later", no_end_and_doubt_later, IOT_PVERDICT_UNKNOWN, "unattributed"},
	{"no end, more segments", no_end_and_no_shutdown, IOT_PVERDICT_UNKNOWN, "goes on after"},
	{"ended, more segments", no_shutdown, IOT_PVERDICT_COMPLETE, NULL},
	{"merged", merged, IOT_PVERDICT_MERGED, NULL},
	{"merged, said late", merged_late, IOT_PVERDICT_MERGED, NULL},
	{"merged and in doubt", merged_and_doubt, IOT_PVERDICT_UNKNOWN, "unattributed"},
	{"TCP, exact ids", tcp, IOT_PVERDICT_COMPLETE, NULL},
	{"TCP by tracepoints", tcp_by_tracepoints, IOT_PVERDICT_MERGED, NULL},
	{"TCP, identity not said", tcp_identity_absent, IOT_PVERDICT_MERGED, NULL},
	{"births not observed", births_unseen, IOT_PVERDICT_UNKNOWN, "births or ends were not"},
	{"ends not observed", ends_unseen, IOT_PVERDICT_UNKNOWN, "births or ends were not"},
	{"births in no table", births_not_listed, IOT_PVERDICT_UNKNOWN, "births or ends were not"},
	{"a birth missed", birth_missed, IOT_PVERDICT_UNKNOWN, "__alloc_skb: missed"},
	{"a ghost soon after", ghost_after, IOT_PVERDICT_UNKNOWN, "__alloc_skb: missed"},
	{"a ghost long after", ghost_long_after, IOT_PVERDICT_COMPLETE, NULL},
	{"UDP by tracepoints", udp_by_tracepoints, IOT_PVERDICT_COMPLETE, NULL},
	{"not selected", not_selected, IOT_PVERDICT_NOT_SELECTED, NULL},
	{"lost around it, all numbers there", unattributed_but_numbered, IOT_PVERDICT_COMPLETE,
	 NULL},
	{"its end may be lost", unattributed_end, IOT_PVERDICT_UNKNOWN,
	 "consume_skb: unattributed"},
	{"the driver's answer may be lost", unattributed_after_end, IOT_PVERDICT_UNKNOWN,
	 "net_dev_xmit: unattributed"},
	{"an answer lost long after", unattributed_long_after_end, IOT_PVERDICT_COMPLETE, NULL},
	{"answered after its end", answered_after_end, IOT_PVERDICT_COMPLETE, NULL},
	{"missed in its life", missed_inside, IOT_PVERDICT_UNKNOWN, "netif_receive_skb: missed"},
	{"missed just before", missed_just_before, IOT_PVERDICT_UNKNOWN, "net_dev_queue: missed"},
	{"missed long before", missed_long_before, IOT_PVERDICT_COMPLETE, NULL},
	{"missed after", missed_after, IOT_PVERDICT_COMPLETE, NULL},
	{"missed somewhere", missed_any_probe, IOT_PVERDICT_UNKNOWN, "any probe: missed"},
	{"detached in its life", detached_inside, IOT_PVERDICT_UNKNOWN, "detached"},
	{"torn in its life", torn_inside, IOT_PVERDICT_UNKNOWN, "torn"},
	{"window of a later version", unknown_kind_inside, IOT_PVERDICT_UNKNOWN,
	 "netif_receive_skb"},
	{"the same, after", unknown_kind_after, IOT_PVERDICT_COMPLETE, NULL},
	{"window backwards", window_backwards, IOT_PVERDICT_UNKNOWN, "missed"},
	{"window of none", window_of_none, IOT_PVERDICT_COMPLETE, NULL},
	{"no such packet", nothing, IOT_PVERDICT_UNKNOWN, "neither the record nor the ledger"},
};

static void test_rows(void **state)
{
	(void)state;
	scene_run(rows, IOT_ARRAY_SIZE(rows));
}

/* Two packets of one capture: the doubt about one does not reach the other. */
static void test_bounded(void **state)
{
	struct fix_capture *c = capture(nothing);
	struct iot_packet_ruling r;
	struct iot_doubts *d;
	unsigned int n[IOT_N_PVERDICTS] = {0};

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		fix_path(c, 1, 1000 + i, LIFE_FIRST + i * FIX_SEC_NS, 1, 5);
	/* The packets from 40 to 49 lose their ends to a window. */
	for (size_t i = 0; i < c->n_records; i++) {
		struct iot_packet *p = &c->records[i].p;

		if (p->id >= 1040 && p->id < 1050 && p->hop == 5)
			p->flags &= (uint16_t)~IOT_PACKET_END;
	}
	fix_unattributed(c, 1, FIX_CONSUME, LIFE_FIRST + 40 * FIX_SEC_NS,
			 LIFE_FIRST + 50 * FIX_SEC_NS - 1, 10);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_FIRST + 60 * FIX_SEC_NS, LIFE_FIRST + 60 * FIX_SEC_NS,
		   1);
	assert_int_equal(fix_doubts(c, &d), 0);
	for (uint64_t i = 0; i < 100; i++) {
		struct iot_packet_life l = fix_life(c, 1000 + i);

		iot_doubts_judge(d, &l, &r, NULL);
		n[r.verdict]++;
		/* A missed run may have been an earlier sight, for 10 s. */
		assert_int_equal(r.verdict, (i >= 40 && i < 50) || (i >= 60 && i <= 70)
						    ? IOT_PVERDICT_UNKNOWN
						    : IOT_PVERDICT_COMPLETE);
	}
	assert_int_equal(n[IOT_PVERDICT_COMPLETE], 79);
	iot_doubts_free(d);
	free(c);
}

static void test_lost_at(void **state)
{
	struct fix_capture *c = capture(lost_middle);
	struct iot_packet_life l = fix_life(c, 77);
	struct iot_packet_ruling r;
	struct iot_doubts *d;
	const uint64_t *ids;

	(void)state;
	assert_int_equal(fix_doubts(c, &d), 0);
	iot_doubts_judge(d, &l, &r, NULL);
	assert_int_equal(r.n_lost, 1);
	assert_true(iot_probe_set_has(&r.lost_at, FIX_XMIT));
	assert_false(iot_probe_set_has(&r.lost_at, FIX_QUEUE));
	assert_false(r.doubtful);
	assert_int_equal(iot_doubts_losers(d, &ids), 1);
	assert_int_equal(ids[0], 77);
	iot_doubts_free(d);
	free(c);
}

static void test_unreadable(void **state)
{
	struct fix_capture *c = capture(whole);
	struct iot_packet_life l;
	struct iot_packet_ruling r;
	struct iot_doubts *d;

	(void)state;
	/* All numbers are there: what could not be read was not of this one. */
	l = fix_life(c, 77);
	assert_int_equal(fix_doubts(c, &d), 0);
	assert_int_equal(iot_doubts_unreadable(d, 1, LIFE_FIRST, LIFE_LAST), 0);
	iot_doubts_judge(d, &l, &r, NULL);
	assert_int_equal(r.verdict, IOT_PVERDICT_COMPLETE);
	l.end_hop = 0;
	l.flags &= ~(uint32_t)IOT_PACKET_END;
	iot_doubts_judge(d, &l, &r, NULL);
	assert_int_equal(r.verdict, IOT_PVERDICT_UNKNOWN);
	iot_doubts_free(d);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_lost_at),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
