// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-absence.c - a packet was not seen at a probe, no packet of a flow was: proved, present, nothing
 * looked, or not known, in captures of each kind.
 */

#include "tests/unit/packet-scene.h"

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

/* Taken for ended when it was not, it would have been received under another id. */
static void stopped_ghost_after(struct fix_capture *c)
{
	stopped(c);
	fix_missed(c, 1, FIX_BIRTH, LIFE_LAST + 5 * FIX_SEC_NS, LIFE_LAST + 5 * FIX_SEC_NS, 1);
}

static void stopped_doubled_before(struct fix_capture *c)
{
	stopped(c);
	fix_missed(c, 1, FIX_FREED, LIFE_FIRST - 5 * FIX_SEC_NS, LIFE_FIRST - 5 * FIX_SEC_NS, 1);
}

static void stopped_ghost_long_after(struct fix_capture *c)
{
	stopped(c);
	fix_missed(c, 1, FIX_BIRTH, LIFE_LAST + FAR_NS, LIFE_LAST + FAR_NS, 1);
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

static void stopped_twice(struct fix_capture *c) /* a copy of the second in place of the third */
{
	stopped(c);
	c->records[2].p.hop = 2;
}

static void stopped_after_end(struct fix_capture *c)
{
	stopped(c);
	c->records[1].p.flags |= IOT_PACKET_END;
	c->records[3].p.flags &= ~(uint32_t)IOT_PACKET_END;
}

/* Less than the longest wait in a queue after the capture began. */
static void stopped_young_capture(struct fix_capture *c)
{
	stopped(c);
	change(c, 0, IOT_PACKET_FROM_START);
	c->s[0].info.attach_ns = LIFE_FIRST - 5 * FIX_SEC_NS;
}

static void stopped_older(struct fix_capture *c)
{
	stopped(c);
	change(c, 0, IOT_PACKET_FROM_START);
}

/* Without an end, in the last seconds. */
static void going_on(struct fix_capture *c)
{
	unsigned int last = (unsigned int)c->n - 1;

	fix_path(c, last, 77, c->s[last].f.epoch_last_ns - 5 * FIX_SEC_NS, 1, 2);
}

static void retransmits_of_somebody(struct fix_capture *c)
{
	stopped(c);
	fix_row(&c->s[1], FIX_RETRANSMIT)->state = IOT_ATTACH_ATTACHED;
	fix_row(&c->s[1], FIX_RETRANSMIT)->miss = IOT_MISS_COUNTED;
	fix_books(&c->s[1], FIX_RETRANSMIT, 0)->seen++;
	fix_books(&c->s[1], FIX_RETRANSMIT, 0)->not_selected++;
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
		{"a ghost soon after", stopped_ghost_after, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"doubled before", stopped_doubled_before, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"a ghost long after", stopped_ghost_long_after, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"merged: sound all the same", stopped_merged, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"a hop in neither", stopped_gap, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"two with one number", stopped_twice, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"seen after its end", stopped_after_end, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"older than what was seen", stopped_older, FIX_RECEIVE, IOT_ABSENCE_PROVED},
		{"older than the capture", stopped_young_capture, FIX_RECEIVE, IOT_ABSENCE_UNKNOWN},
		{"younger than its end", going_on, FIX_KFREE, IOT_ABSENCE_UNKNOWN},
		{"of a socket, not a packet", retransmits_of_somebody, FIX_RETRANSMIT,
		 IOT_ABSENCE_UNKNOWN},
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

static void counted(struct fix_capture *c)
{
	fix_books(&c->s[1], FIX_QUEUE, 0)->seen++;
	fix_books(&c->s[1], FIX_QUEUE, 0)->folded++;
}

static void counted_elsewhere(struct fix_capture *c)
{
	fix_books(&c->s[1], FIX_CONSUME, 0)->seen++;
	fix_books(&c->s[1], FIX_CONSUME, 0)->folded++;
	fix_books(&c->s[2], FIX_QUEUE, 0)->seen++;
	fix_books(&c->s[2], FIX_QUEUE, 0)->folded++;
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
		{"counted only", counted, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_UNKNOWN},
		{"counted elsewhere", counted_elsewhere, Q_FIRST, Q_LAST, 0, 0, IOT_ABSENCE_PROVED},
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
	/* Nobody sends from port 0 to port 0: they were not read. */
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_MAYBE);
	p.flow.ip_proto = 1;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_NO);
	p.flow.ip_proto = 17;
	assert_int_equal(iot_flow_matches(&m, &p.flow, IOT_PACKET_FRAGMENT), IOT_MATCH_MAYBE);
	assert_int_equal(iot_flow_matches(&m, &p.flow, IOT_PACKET_NO_HEADER), IOT_MATCH_MAYBE);
	/* A second tag, behind which nothing was read. */
	p.flow.family = 0;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_NO);
	assert_int_equal(iot_flow_matches(&m, &p.flow, IOT_PACKET_VLAN), IOT_MATCH_MAYBE);
	/* IPv6 extensions hide protocol and ports. */
	m = (struct iot_flow_match){.set = true, .ip_proto_set = true, .ip_proto = 17};
	p.flow.family = 6;
	p.flow.ip_proto = 60;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_MAYBE);
	p.flow.ip_proto = 6;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_NO);
	m.set = false;
	assert_int_equal(iot_flow_matches(&m, &p.flow, 0), IOT_MATCH_YES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_absence_of_flow),
		cmocka_unit_test(test_flow_matches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
