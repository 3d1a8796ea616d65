// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet-programs - TC and XDP programs as probes: what is in doubt while one comes, that nothing is when it has
 * gone, and that frames at XDP programs and packets have nothing to do with each other's losses.
 */
#include "tests/unit/packet-scene.h"

#include "format/meta.h"

enum {
	TC = 129,
	XDP = 130,
};

/* In segments [first, 2], attached throughout and long loaded. */
static struct iot_probe *program(struct fix_capture *c, unsigned int segment, uint16_t id,
				 enum iot_program_kind kind)
{
	struct fix_segment *s = &c->s[segment];
	struct iot_probe *row;

	fix_probe(s, id, kind == IOT_PROGRAM_TC ? "tc:decide#57" : "xdp:frames#58", "fentry+fexit");
	(void)fix_books(s, id, UINT32_MAX);
	row = fix_row(s, id);
	row->program = id - 72U;
	row->program_kind = (uint8_t)kind;
	row->loaded_ns = FIX_SEC_NS;
	return row;
}

static void always(struct fix_capture *c)
{
	for (unsigned int i = 0; i < 3; i++) {
		program(c, i, TC, IOT_PROGRAM_TC);
		program(c, i, XDP, IOT_PROGRAM_XDP);
	}
	whole(c);
}

/* Loaded while the packet lived, or as long before as packets wait; observed later. */
static void came(struct fix_capture *c)
{
	struct iot_probe *row = program(c, 1, TC, IOT_PROGRAM_TC);

	row->loaded_ns = LIFE_FIRST - FIX_SEC_NS;
	row->from_ns = LIFE_FIRST + FIX_SEC_NS;
	whole(c);
}

static void came_earlier(struct fix_capture *c)
{
	struct iot_probe *row = program(c, 1, TC, IOT_PROGRAM_TC);

	row->loaded_ns = LIFE_FIRST - FAR_NS - FIX_SEC_NS;
	row->from_ns = LIFE_FIRST - FAR_NS;
	whole(c);
}

static void came_later(struct fix_capture *c)
{
	struct iot_probe *row = program(c, 1, TC, IOT_PROGRAM_TC);

	row->loaded_ns = LIFE_LAST + FAR_NS;
	row->from_ns = LIFE_LAST + FAR_NS + FIX_SEC_NS;
	whole(c);
}

/* Loaded in the packet's segment, whose table does not know it. */
static void came_unnoticed(struct fix_capture *c)
{
	struct iot_probe *row = program(c, 2, TC, IOT_PROGRAM_TC);

	row->loaded_ns = LIFE_FIRST;
	row->from_ns = 3 * FIX_SPAN_NS + FIX_SEC_NS;
	whole(c);
}

static void came_as_a_frames(struct fix_capture *c)
{
	struct iot_probe *row = program(c, 1, XDP, IOT_PROGRAM_XDP);

	row->loaded_ns = LIFE_FIRST - FIX_SEC_NS;
	row->from_ns = LIFE_FIRST + FIX_SEC_NS;
	whole(c);
}

static void left(struct fix_capture *c, bool gone)
{
	struct iot_probe *row = program(c, 1, TC, IOT_PROGRAM_TC);

	row->to_ns = LIFE_FIRST - FIX_SEC_NS;
	row->gone = gone;
	whole(c);
}

static void gone(struct fix_capture *c)
{
	left(c, true);
}

static void detached(struct fix_capture *c)
{
	left(c, false);
}

static void missed_at_tc(struct fix_capture *c)
{
	always(c);
	fix_missed(c, 1, TC, LIFE_FIRST, LIFE_LAST, 1);
}

static void missed_at_xdp(struct fix_capture *c)
{
	always(c);
	fix_missed(c, 1, XDP, LIFE_FIRST, LIFE_LAST, 1);
}

/* All numbers are there, so no record of it is among those. */
static void unattributed_at_tc(struct fix_capture *c)
{
	always(c);
	fix_unattributed(c, 1, TC, LIFE_FIRST, LIFE_LAST, 3);
}

static void unattributed_unended(struct fix_capture *c)
{
	always(c);
	c->n_records--;
	fix_books(&c->s[1], FIX_CONSUME, 0)->written--;
	fix_books(&c->s[1], FIX_CONSUME, 0)->emitted--;
	fix_books(&c->s[1], FIX_CONSUME, 0)->seen--;
	fix_unattributed(c, 1, XDP, LIFE_FIRST, LIFE_LAST, 3);
}

static struct iot_packet frame(void)
{
	struct iot_packet p = fix_packet(77, LIFE_FIRST, 1);

	p.probe = XDP;
	p.flags = IOT_PACKET_FROM_START | IOT_PACKET_END | IOT_PACKET_FRAME;
	return p;
}

static void framed(struct fix_capture *c, bool lost)
{
	struct iot_packet p = frame();

	for (unsigned int i = 0; i < 3; i++) {
		program(c, i, TC, IOT_PROGRAM_TC);
		program(c, i, XDP, IOT_PROGRAM_XDP);
	}
	if (lost)
		(void)fix_lose(c, 1, &p);
	else
		fix_record(c, 1, &p);
	fix_missed(c, 1, FIX_QUEUE, LIFE_FIRST, LIFE_LAST, 1);
	fix_missed(c, 1, TC, LIFE_FIRST, LIFE_LAST, 1);
	fix_unattributed(c, 1, XDP, LIFE_FIRST, LIFE_LAST, 3);
}

static void a_frame(struct fix_capture *c)
{
	framed(c, false);
}

static void a_lost_frame(struct fix_capture *c)
{
	framed(c, true);
}

static void a_frame_in_wrong_books(struct fix_capture *c)
{
	framed(c, false);
	fix_books(&c->s[1], XDP, 0)->emitted++;
}

static void test_verdicts(void **state)
{
	static const struct scene_row table[] = {
		{"observed throughout", always, IOT_PVERDICT_COMPLETE, NULL},
		{"came", came, IOT_PVERDICT_UNKNOWN, "loaded, but not observed yet"},
		{"came earlier", came_earlier, IOT_PVERDICT_COMPLETE, NULL},
		{"came later", came_later, IOT_PVERDICT_COMPLETE, NULL},
		{"came unnoticed", came_unnoticed, IOT_PVERDICT_UNKNOWN,
		 "loaded, but not observed yet"},
		{"came, for frames", came_as_a_frames, IOT_PVERDICT_COMPLETE, NULL},
		{"gone", gone, IOT_PVERDICT_COMPLETE, NULL},
		{"detached", detached, IOT_PVERDICT_UNKNOWN, "not attached any more"},
		{"missed at a TC program", missed_at_tc, IOT_PVERDICT_UNKNOWN, "missed"},
		{"missed at an XDP program", missed_at_xdp, IOT_PVERDICT_COMPLETE, NULL},
		{"no owner at a TC program", unattributed_at_tc, IOT_PVERDICT_COMPLETE, NULL},
		{"no owner at an XDP program", unattributed_unended, IOT_PVERDICT_WITHIN_WINDOW,
		 NULL},
		{"a frame", a_frame, IOT_PVERDICT_COMPLETE, NULL},
		{"a lost frame", a_lost_frame, IOT_PVERDICT_LOST_ENTIRELY, "xdp:frames#58: 1"},
		{"a frame in wrong books", a_frame_in_wrong_books, IOT_PVERDICT_UNKNOWN,
		 "do not balance"},
	};

	(void)state;
	scene_run(table, IOT_ARRAY_SIZE(table));
}

static void test_absence(void **state)
{
	static const struct {
		const char *name;
		void (*spoil)(struct fix_capture *c);
		uint16_t probe;
		enum iot_absence want;
	} table[] = {
		{"at a TC program", always, TC, IOT_ABSENCE_PROVED},
		{"at one that came", came, TC, IOT_ABSENCE_UNKNOWN},
		{"at one that came later", came_later, TC, IOT_ABSENCE_PROVED},
		{"at one that has gone", gone, TC, IOT_ABSENCE_PROVED},
		{"at one not known here", came_unnoticed, TC, IOT_ABSENCE_NOT_OBSERVED},
		{"of a packet at an XDP program", always, XDP, IOT_ABSENCE_NOT_OBSERVED},
		{"of a frame at a packet's probe", a_frame, FIX_QUEUE, IOT_ABSENCE_NOT_OBSERVED},
		{"of a frame where it was", a_frame, XDP, IOT_ABSENCE_PRESENT},
		{"of a lost frame where it was", a_lost_frame, XDP, IOT_ABSENCE_PRESENT},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		struct fix_capture *c = capture(table[i].spoil);
		struct iot_packet_life l = fix_life(c, 77);
		struct iot_verdict why;
		enum iot_absence got;
		struct iot_doubts *d;

		assert_int_equal(fix_doubts(c, &d), 0);
		got = iot_doubts_absence(d, &l, table[i].probe, &why);
		if (got != table[i].want)
			fail_msg("%s: %s (%s)", table[i].name, iot_absence_name(got),
				 why.n_reasons ? why.reasons[0] : "no reason");
		iot_doubts_free(d);
		free(c);
	}
}

/* Loaded after the first segment, which therefore has no row of it. */
static void came_with_the_second(struct fix_capture *c)
{
	for (unsigned int i = 1; i < 3; i++) {
		struct iot_probe *row = program(c, i, TC, IOT_PROGRAM_TC);

		row->loaded_ns = LIFE_FIRST;
		row->from_ns = LIFE_FIRST + FIX_SEC_NS;
	}
}

static void came_within_the_first(struct fix_capture *c)
{
	came_with_the_second(c);
	for (unsigned int i = 1; i < 3; i++)
		fix_row(&c->s[i], TC)->loaded_ns = 2 * FIX_SPAN_NS - FIX_SEC_NS;
}

static void missed_frames(struct fix_capture *c)
{
	always(c);
	fix_missed(c, 1, XDP, LIFE_FIRST, LIFE_LAST, 1);
}

static void test_absence_of_flow(void **state)
{
	static const struct iot_flow_match flow = {
		.set = true, .ip_proto_set = true, .ip_proto = 17};
	static const uint64_t early = FIX_SPAN_NS + 10 * FIX_SEC_NS, late = LIFE_FIRST + FAR_NS;
	static const struct {
		const char *name;
		void (*spoil)(struct fix_capture *c);
		uint16_t probe;
		uint64_t first_ns, last_ns;
		uint64_t n_maybe;
		enum iot_absence want;
	} table[] = {
		{"before it was there", came_with_the_second, TC, early, LIFE_FIRST - FIX_SEC_NS, 0,
		 IOT_ABSENCE_PROVED},
		{"while it came", came_with_the_second, TC, early, late, 0, IOT_ABSENCE_UNKNOWN},
		{"since it is observed", came_with_the_second, TC, LIFE_FIRST + 2 * FIX_SEC_NS,
		 late, 0, IOT_ABSENCE_PROVED},
		{"where the table does not know it", came_within_the_first, TC, early,
		 early + FIX_SEC_NS, 0, IOT_ABSENCE_NOT_OBSERVED},
		{"at an XDP program", always, XDP, early, late, 0, IOT_ABSENCE_PROVED},
		{"after one without a flow", always, XDP, early, late, 1, IOT_ABSENCE_UNKNOWN},
		{"beside missed runs", missed_frames, XDP, early, early + FIX_SEC_NS, 0,
		 IOT_ABSENCE_PROVED},
		{"over missed runs", missed_frames, XDP, early, late, 0, IOT_ABSENCE_UNKNOWN},
		{"at another probe", missed_frames, FIX_KFREE, early, late, 0, IOT_ABSENCE_PROVED},
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		struct fix_capture *c = capture(table[i].spoil);
		struct iot_absence_query q = {
			.flow = &flow,
			.probe = table[i].probe,
			.first_ns = table[i].first_ns,
			.last_ns = table[i].last_ns,
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

/* A table is longer only where there is a program, and a reader of either gets what was written. */
static void test_table(void **state)
{
	struct fix_capture *c = capture(nothing);
	struct iot_probe row = *program(c, 1, TC, IOT_PROGRAM_TC);
	struct iot_segment_info out;
	struct iot_buf without = {0}, with = {0};
	uint64_t hash;

	(void)state;
	row.gone = 1;
	*fix_row(&c->s[1], TC) = row;
	assert_int_equal(iot_meta_header_encode(&c->s[0].info, &without, &hash), 0);
	assert_int_equal(iot_meta_header_encode(&c->s[1].info, &with, &hash), 0);
	assert_int_equal(with.size - without.size,
			 c->s[1].info.n_probes * sizeof(struct iot_disk_probe) -
				 c->s[0].info.n_probes * IOT_DISK_PROBE_MIN);
	assert_int_equal(iot_meta_header_decode(with.data, with.size, &out, &hash, NULL), 0);
	assert_int_equal(out.n_probes, c->s[1].info.n_probes);
	for (size_t i = 0; i < out.n_probes; i++) {
		const struct iot_probe *p = &out.probes[i];

		assert_int_equal(p->program, p->id == TC ? row.program : 0);
		assert_int_equal(p->program_kind, p->id == TC ? IOT_PROGRAM_TC : IOT_PROGRAM_NONE);
		assert_int_equal(p->loaded_ns, p->id == TC ? row.loaded_ns : 0);
		assert_int_equal(p->gone, p->id == TC);
	}
	iot_segment_info_done(&out);
	assert_int_equal(iot_meta_header_decode(without.data, without.size, &out, &hash, NULL), 0);
	assert_int_equal(out.probes[0].program, 0);
	iot_segment_info_done(&out);
	iot_buf_done(&with);
	iot_buf_done(&without);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_absence_of_flow),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
