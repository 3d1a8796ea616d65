// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-verdict.c - what can be proved of one packet, as a table: packet 77 lives in the second of
 * three segments, one fact is spoiled, and the verdict is what it has to be. Rows in pairs where it
 * matters: the same fact outside its life must not cast doubt on it, or doubt would not be bounded.
 * Then the same for the question whether a probe, or a flow at a probe, was never reached.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/packet-fixture.h"

#define LIFE_FIRST (2 * FIX_SPAN_NS + 100 * FIX_SEC_NS)
#define LIFE_LAST (LIFE_FIRST + 4 * FIX_STEP_NS)
#define FAR_NS (20 * FIX_SEC_NS) /* beyond every slack around a packet */

static void whole(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 5);
}

/* Without the record of hop 5, which is its end. */
static void unended(struct fix_capture *c)
{
	fix_path(c, 1, 77, LIFE_FIRST, 1, 4);
}

static void lose_hop(struct fix_capture *c, uint32_t hop)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, hop);

	(void)fix_lose(c, 1, &p);
}

static void change(struct fix_capture *c, uint16_t set, uint16_t clear)
{
	for (size_t i = 0; i < c->n_records; i++)
		if (c->records[i].p.id == 77)
			c->records[i].p.flags = (uint16_t)((c->records[i].p.flags | set) & ~clear);
}

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

static void udp_by_tracepoints(struct fix_capture *c)
{
	whole(c);
	snprintf(c->s[1].info.identity, sizeof(c->s[1].info.identity), "tracepoints only");
}

static void not_selected(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 1);

	p.probe = FIX_KFREE;
	p.flags = IOT_PACKET_NOT_SELECTED | IOT_PACKET_END;
	fix_record(c, 1, &p);
	fix_unattributed(c, 1, FIX_KFREE, LIFE_FIRST, LIFE_LAST, 1);
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

static void no_ledger(struct fix_capture *c) /* of a version that has none */
{
	struct iot_packet p = fix_packet(78, LIFE_FIRST, 2);

	whole(c);
	(void)fix_lose(c, 1, &p);
	c->s[1].f.n_losses = 0;
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

static void torn_tail(struct fix_capture *c)
{
	whole(c);
	c->no_footer[1] = true;
}

static void torn_tail_later(struct fix_capture *c)
{
	whole(c);
	c->no_footer[2] = true;
}

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

static void nothing(struct fix_capture *c)
{
	(void)c;
}

static void spans_segments(struct fix_capture *c)
{
	fix_path(c, 0, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 1, 2);
	fix_path(c, 1, 77, 2 * FIX_SPAN_NS - 2 * FIX_STEP_NS, 3, 5);
}

static const struct row {
	const char *name;
	void (*spoil)(struct fix_capture *c);
	enum iot_packet_verdict want;
	const char *why; /* part of a reason; NULL = there is none */
} rows[] = {
	{"clean", whole, IOT_PVERDICT_COMPLETE, NULL},
	{"in two segments", spans_segments, IOT_PVERDICT_COMPLETE, NULL},
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
	{"no such packet", nothing, IOT_PVERDICT_UNKNOWN, "neither the record nor the ledger"},
};

static bool mentions(const struct iot_verdict *v, const char *text)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strstr(v->reasons[i], text))
			return true;
	return false;
}

static struct fix_capture *capture(void (*spoil)(struct fix_capture *c))
{
	struct fix_capture *c = malloc(sizeof(*c));

	assert_non_null(c);
	fix_init(c, 3);
	spoil(c);
	return c;
}

static void test_rows(void **state)
{
	unsigned int failed = 0;

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct fix_capture *c = capture(row->spoil);
		struct iot_packet_life l = fix_life(c, 77);
		struct iot_packet_ruling r, quick;
		struct iot_verdict why;
		struct iot_doubts *d;

		assert_int_equal(fix_doubts(c, &d), 0);
		iot_doubts_judge(d, &l, &r, &why);
		iot_doubts_judge(d, &l, &quick, NULL);
		if (r.verdict != row->want ||
		    (row->why ? !mentions(&why, row->why) : why.n_reasons)) {
			print_error("%s: %s (%s)\n", row->name, iot_packet_verdict_name(r.verdict),
				    why.n_reasons ? why.reasons[0] : "no reason");
			failed++;
		}
		assert_memory_equal(&quick, &r, sizeof(r));
		assert_true(r.verdict != IOT_PVERDICT_UNKNOWN || r.doubtful);
		assert_int_equal(r.truncated_start, r.verdict != IOT_PVERDICT_LOST_ENTIRELY &&
							    !(l.flags & IOT_PACKET_FROM_START));
		iot_doubts_free(d);
		free(c);
	}
	assert_int_equal(failed, 0);
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

/* ---- absence of a packet at a probe ---- */

static void stopped(struct fix_capture *c) /* sent, and dropped before it was received */
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 4);

	fix_path(c, 1, 77, LIFE_FIRST, 1, 3);
	p.probe = FIX_KFREE;
	p.flags |= IOT_PACKET_END;
	p.code = 6;
	p.where = 0xffffffff81001234ULL;
	fix_record(c, 1, &p);
}

static void stopped_missed(struct fix_capture *c)
{
	stopped(c);
	fix_missed(c, 1, FIX_RECEIVE, LIFE_FIRST, LIFE_LAST, 1);
}

static void stopped_missed_elsewhere(struct fix_capture *c)
{
	stopped(c);
	fix_missed(c, 1, FIX_QUEUE, LIFE_FIRST, LIFE_LAST, 1);
}

static void stopped_lost(struct fix_capture *c)
{
	stopped(c);
	lose_hop(c, 4);
}

static void stopped_merged(struct fix_capture *c)
{
	stopped(c);
	change(c, IOT_PACKET_MERGED, 0);
}

static void stopped_gap(struct fix_capture *c)
{
	stopped(c);
	c->records[3].p.hop = 5;
}

static void stopped_older_selected_late(struct fix_capture *c)
{
	stopped(c);
	change(c, 0, IOT_PACKET_FROM_START);
	fix_books(&c->s[1], FIX_RECEIVE, 0)->seen++;
	fix_books(&c->s[1], FIX_RECEIVE, 0)->not_selected++;
}

static void test_absence(void **state)
{
	static const struct {
		const char *name;
		void (*spoil)(struct fix_capture *c);
		uint16_t probe;
		enum iot_absence want;
	} table[] = {
		{"never received", stopped, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"seen", stopped, FIX_QUEUE, IOT_ABSENCE_PRESENT},
		{"lost there", stopped_lost, FIX_RECEIVE, IOT_ABSENCE_PRESENT},
		{"may be missed", stopped_missed, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"missed elsewhere", stopped_missed_elsewhere, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"merged: sound all the same", stopped_merged, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"a hop in neither", stopped_gap, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"selected late", stopped_older_selected_late, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"refused", stopped, FIX_IP_RCV, IOT_ABSENCE_NOT_OBSERVED},
		{"no such hook", stopped, FIX_RETRANSMIT, IOT_ABSENCE_NOT_OBSERVED},
		{"not in the table", stopped, FIX_PROGRAM, IOT_ABSENCE_NOT_OBSERVED},
		{"no such packet", nothing, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"not selected", not_selected, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"torn tail", torn_tail, FIX_KFREE, IOT_ABSENCE_UNKNOWN},
		{"torn tail later", torn_tail_later, FIX_KFREE, IOT_ABSENCE_PROVED},
		{"no ledger", no_ledger, FIX_START_XMIT, IOT_ABSENCE_PRESENT},
		{"no ledger of that probe", no_ledger, FIX_KFREE, IOT_ABSENCE_PROVED},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		struct fix_capture *c = capture(table[i].spoil);
		struct iot_packet_life l = fix_life(c, 77);
		enum iot_absence got;
		struct iot_verdict why;
		struct iot_doubts *d;

		assert_int_equal(fix_doubts(c, &d), 0);
		got = iot_doubts_absence(d, &l, table[i].probe, &why);
		if (got != table[i].want)
			fail_msg("%s: %s (%s)", table[i].name, iot_absence_name(got),
				 why.n_reasons ? why.reasons[0] : "no reason");
		/* Whatever is no proof says why not. */
		assert_int_equal(why.n_reasons > 0,
				 got == IOT_ABSENCE_UNKNOWN || got == IOT_ABSENCE_NOT_OBSERVED);
		iot_doubts_free(d);
		free(c);
	}
}

/* ---- absence of a flow at a probe ---- */

#define Q_FIRST (2 * FIX_SPAN_NS + 300 * FIX_SEC_NS)
#define Q_LAST (2 * FIX_SPAN_NS + 310 * FIX_SEC_NS)

static void other_flow(struct iot_packet *p)
{
	p->flow.dport = 54;
}

static void lose_at(struct fix_capture *c, uint64_t ts_ns, void (*alter)(struct iot_packet *p),
		    uint64_t n)
{
	struct iot_packet p = fix_packet(99, ts_ns, 1);
	struct iot_loss *loss;

	if (alter)
		alter(&p);
	loss = fix_lose(c, 1, &p);
	fix_books(&c->s[1], p.probe, 0)->seen += n - 1;
	fix_books(&c->s[1], p.probe, 0)->reserve_failed += n - 1;
	fix_books(&c->s[1], p.probe, 0)->filed += n - 1;
	loss->n = n;
}

static void no_header(struct iot_packet *p)
{
	p->flags |= IOT_PACKET_NO_HEADER;
	memset(&p->flow, 0, sizeof(p->flow));
}

static void flow_lost(struct fix_capture *c)
{
	lose_at(c, Q_FIRST + 1, NULL, 1);
}

static void flow_lost_earlier(struct fix_capture *c)
{
	lose_at(c, Q_FIRST - 1, NULL, 1);
}

static void flow_lost_across(struct fix_capture *c)
{
	lose_at(c, Q_FIRST - 1, NULL, 2);
	c->s[1].losses[0].last_ns = Q_FIRST + 1;
}

static void other_lost(struct fix_capture *c)
{
	lose_at(c, Q_FIRST + 1, other_flow, 1);
}

static void other_lost_twice(struct fix_capture *c)
{
	lose_at(c, Q_FIRST + 1, other_flow, 2);
}

static void headless_lost(struct fix_capture *c)
{
	lose_at(c, Q_FIRST + 1, no_header, 1);
}

static void window_in(struct fix_capture *c)
{
	fix_unattributed(c, 1, FIX_QUEUE, Q_LAST, Q_LAST + 9, 1);
}

static void window_beside(struct fix_capture *c)
{
	fix_unattributed(c, 1, FIX_QUEUE, Q_LAST + 1, Q_LAST + 9, 1);
}

static void window_elsewhere(struct fix_capture *c)
{
	fix_unattributed(c, 1, FIX_RECEIVE, Q_FIRST, Q_LAST, 1);
}

static void left_out(struct fix_capture *c)
{
	fix_books(&c->s[1], FIX_QUEUE, 0)->seen++;
	fix_books(&c->s[1], FIX_QUEUE, 0)->not_selected++;
}

static void left_out_elsewhere(struct fix_capture *c)
{
	fix_books(&c->s[1], FIX_RECEIVE, 0)->seen++;
	fix_books(&c->s[1], FIX_RECEIVE, 0)->not_selected++;
}

static void middle_missing(struct fix_capture *c)
{
	c->missing[1] = true;
}

static void first_gone(struct fix_capture *c)
{
	c->missing[0] = true;
}

static void middle_torn(struct fix_capture *c)
{
	c->no_footer[1] = true;
}

static void queue_absent(struct fix_capture *c)
{
	for (size_t i = 0; i < c->n; i++)
		fix_row(&c->s[i], FIX_QUEUE)->state = IOT_ATTACH_ABSENT;
}

static void test_absence_of_flow(void **state)
{
	static const struct iot_flow_match flow = {
		.set = true,
		.ip_proto_set = true,
		.ip_proto = 17,
		.src = {.addr = {10, 0, 0, 1}, .family = 4, .port_set = true, .port = 4000},
		.dst = {.addr = {10, 0, 0, 2}, .family = 4, .port_set = true, .port = 53},
	};
	static const struct {
		const char *name;
		void (*spoil)(struct fix_capture *c);
		uint64_t first_ns, last_ns, n_matching, n_maybe;
		enum iot_absence want;
	} table[] = {
		{"clean", nothing, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"whole capture", nothing, FIX_SPAN_NS, 4 * FIX_SPAN_NS, 0, 0, IOT_ABSENCE_PROVED},
		{"recorded", nothing, Q_FIRST, Q_LAST, 1, 0, IOT_ABSENCE_PRESENT},
		{"recorded, doubt or not", window_in, Q_FIRST, Q_LAST, 1, 0, IOT_ABSENCE_PRESENT},
		{"no header", nothing, Q_FIRST, Q_LAST, 0, 1, IOT_ABSENCE_UNKNOWN},
		{"lost", flow_lost, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PRESENT},
		{"lost earlier", flow_lost_earlier, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"lost across", flow_lost_across, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"another flow lost", other_lost, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"another, twice", other_lost_twice, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"headless lost", headless_lost, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"window", window_in, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"window beside", window_beside, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"window elsewhere", window_elsewhere, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"left out", left_out, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"left out elsewhere", left_out_elsewhere, Q_FIRST, Q_LAST, 0, 0,
		 IOT_ABSENCE_PROVED},
		{"before the capture", nothing, FIX_SPAN_NS - 1, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"after the capture", nothing, Q_FIRST, 4 * FIX_SPAN_NS + 1, 0, 0,
		 IOT_ABSENCE_UNKNOWN},
		{"segment missing", middle_missing, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"earlier one missing", first_gone, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
		{"torn", middle_torn, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"no such hook", queue_absent, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_NOT_OBSERVED},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		struct fix_capture *c = capture(table[i].spoil);
		struct iot_absence_query q = {
			.flow = &flow,
			.probe = FIX_QUEUE,
			.first_ns = table[i].first_ns,
			.last_ns = table[i].last_ns,
			.n_matching = table[i].n_matching,
			.n_maybe = table[i].n_maybe,
		};
		struct iot_verdict why;
		enum iot_absence got;
		struct iot_doubts *d;

		assert_int_equal(fix_doubts(c, &d), 0);
		got = iot_doubts_absence_of_flow(d, &q, &why);
		if (got != table[i].want)
			fail_msg("%s: %s (%s)", table[i].name, iot_absence_name(got),
				 why.n_reasons ? why.reasons[0] : "no reason");
		iot_doubts_free(d);
		free(c);
	}
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

static void test_flow_matches(void **state)
{
	struct iot_flow_match m = {
		.set = true,
		.src = {.addr = {10, 0, 0, 1}, .family = 4},
		.dst = {.port_set = true, .port = 53},
	};
	struct iot_packet p = fix_packet(1, 0, 1);
	struct iot_flow back = p.flow;

	(void)state;
	memcpy(back.src, p.flow.dst, 16);
	memcpy(back.dst, p.flow.src, 16);
	back.sport = 53;
	back.dport = 4000;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_YES);
	assert_int_equal(iot_flow_matches(&m, &back, 0), IOT_MATCH_NO);
	m.both_ways = true;
	assert_int_equal(iot_flow_matches(&m, &back, 0), IOT_MATCH_YES);
	m.ip_proto_set = true;
	m.ip_proto = 6;
	assert_int_equal(iot_flow_matches(&m, &back, 0), IOT_MATCH_NO);
	m.ip_proto_set = false;
	m.both_ways = false;
	p.flow.sport = p.flow.dport = 0;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_NO);
	assert_int_equal(iot_flow_matches(&m, &p.flow, IOT_PACKET_FRAGMENT), IOT_MATCH_MAYBE);
	assert_int_equal(iot_flow_matches(&m, &p.flow, IOT_PACKET_NO_HEADER), IOT_MATCH_MAYBE);
	m.set = false;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_YES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_lost_at),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_absence_of_flow),
		cmocka_unit_test(test_footer),
		cmocka_unit_test(test_no_segment),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_flow_matches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
