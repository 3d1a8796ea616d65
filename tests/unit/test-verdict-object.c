// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-verdict-object.c - what can be proved of one object, as a table over three segments: the
 * object lives in the second, reaches START, ISSUE and COMPLETE, and one fact is spoiled. Rows in
 * pairs where it matters: the same fact outside its life, or at a probe it cannot reach, must not
 * cast doubt on it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/verdict-fixture.h"

#define LIFE_FIRST (2 * SPAN_NS + 100 * SEC_NS)
#define LIFE_LAST (2 * SPAN_NS + 200 * SEC_NS)

struct scene {
	struct fixture x[3];
	struct iot_object_query q;
	bool no_footer[3];
	const struct iot_segment_info *infos[3];
	const struct iot_footer *footers[3];
	size_t n;
};

static void scene_init(struct scene *c)
{
	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < 3; i++)
		fixture_init(&c->x[i], i + 1);
	c->x[2].f.reason = IOT_SEAL_SHUTDOWN;
	c->q = (struct iot_object_query){
		.id = 77,
		.first_ns = LIFE_FIRST,
		.last_ns = LIFE_LAST,
		.probes = 1ULL << P_START | 1ULL << P_ISSUE | 1ULL << P_COMPLETE,
	};
	c->n = 3;
	for (unsigned int i = 0; i < 3; i++)
		c->infos[i] = &c->x[i].info;
}

static void clean(struct scene *c)
{
	(void)c;
}

static void filed(struct scene *c)
{
	fixture_file(&c->x[1], 77, 2);
}

static void filed_in_neighbour(struct scene *c) /* merged neighbours: one life, two segments */
{
	c->q.last_ns = 3 * SPAN_NS + 10 * SEC_NS;
	fixture_file(&c->x[2], 77, 1);
}

static void filed_for_another(struct scene *c)
{
	fixture_file(&c->x[1], 78, 2);
}

static void filed_outranks_doubt(struct scene *c)
{
	filed(c);
	fixture_unattributed(&c->x[1], R_COMPLETE, LIFE_FIRST, LIFE_LAST, 3);
	c->x[1].books[R_START].seen++;
}

static void filed_unidentified(struct scene *c)
{
	fixture_file(&c->x[1], 0, 2);
	c->x[1].losses[0].first_ns = LIFE_FIRST;
	c->x[1].losses[0].last_ns = LIFE_LAST;
}

static void filed_unidentified_elsewhen(struct scene *c)
{
	fixture_file(&c->x[1], 0, 2);
	c->x[1].losses[0].first_ns = LIFE_LAST + 1;
	c->x[1].losses[0].last_ns = LIFE_LAST + 9;
}

static void window_inside(struct scene *c)
{
	fixture_unattributed(&c->x[1], R_ISSUE, LIFE_LAST, LIFE_LAST + SEC_NS, 1);
}

static void window_after(struct scene *c)
{
	fixture_unattributed(&c->x[1], R_ISSUE, LIFE_LAST + 1, LIFE_LAST + SEC_NS, 1);
}

static void window_before(struct scene *c)
{
	fixture_missed(&c->x[1], R_USER_ISSUE, LIFE_FIRST - SEC_NS, LIFE_FIRST - 1, 1);
}

static void window_other_probe(struct scene *c)
{
	window_inside(c);
	c->q.probes = 1ULL << P_START | 1ULL << P_COMPLETE;
}

static void window_any_probe(struct scene *c)
{
	fixture_window(&c->x[1], IOT_WINDOW_TORN, 0, LIFE_FIRST, LIFE_FIRST, IOT_COUNT_UNKNOWN);
	c->q.probes = 1ULL << P_START;
}

static void window_backwards(struct scene *c)
{
	fixture_window(&c->x[1], IOT_WINDOW_MISSED, P_ISSUE, LIFE_LAST + 9, LIFE_LAST + 5, 1);
	c->x[1].books[R_USER_ISSUE].missed = 1;
}

static void window_in_neighbour(struct scene *c)
{
	/* The window of a segment is believed wherever it lies in time. */
	fixture_missed(&c->x[0], R_USER_ISSUE, LIFE_FIRST, LIFE_LAST, 1);
}

static void missed_inside(struct scene *c)
{
	fixture_missed(&c->x[1], R_USER_ISSUE, LIFE_FIRST, LIFE_LAST, 1);
}

static void missed_without_window(struct scene *c)
{
	c->x[1].books[R_USER_ISSUE].missed = 1;
}

static void missed_without_window_before(struct scene *c)
{
	c->x[0].books[R_USER_ISSUE].missed = 1;
}

static void missed_not_measurable(struct scene *c)
{
	c->x[1].probes[1].miss = IOT_MISS_NOT_MEASURABLE;
}

static void missed_not_measurable_before(struct scene *c)
{
	c->x[0].probes[1].miss = IOT_MISS_NOT_MEASURABLE;
}

static void missed_not_measurable_unreached(struct scene *c)
{
	missed_not_measurable(c);
	c->q.probes = 1ULL << P_START | 1ULL << P_COMPLETE;
}

static void missed_row_absent(struct scene *c)
{
	c->x[1].f.n_books--;
}

static void unbalanced(struct scene *c)
{
	c->x[1].books[R_START].folded--;
}

static void unbalanced_before(struct scene *c)
{
	c->x[0].books[R_START].folded--;
}

static void unattributed_no_window(struct scene *c)
{
	fixture_unattributed(&c->x[1], R_ISSUE, LIFE_FIRST, LIFE_LAST, 5);
	c->x[1].f.n_windows = 0;
}

static void ledger_lost(struct scene *c)
{
	fixture_file(&c->x[1], 78, 5);
	c->x[1].f.n_losses = 0;
}

static void user_loss_without_owner(struct scene *c)
{
	c->x[1].books[R_COMPLETE].written--;
	c->x[1].books[R_COMPLETE].output_failed++;
}

static void identity_full(struct scene *c)
{
	c->x[1].books[R_START].identity_full = 1;
}

static void identity_full_before(struct scene *c)
{
	c->x[0].books[R_START].identity_full = 1;
}

static void read_failed(struct scene *c)
{
	c->x[1].books[R_START].read_failed = 1;
}

static void counter_unknown(struct scene *c)
{
	c->x[1].books[R_START].seen = IOT_COUNT_UNKNOWN;
}

static void no_footer(struct scene *c)
{
	c->no_footer[1] = true;
}

static void no_footer_after(struct scene *c)
{
	c->no_footer[2] = true;
}

static void no_footer_overlapping(struct scene *c)
{
	c->q.last_ns = 3 * SPAN_NS - SEC_NS; /* the next epoch may have begun a little early */
	c->no_footer[2] = true;
}

static void missing_segment(struct scene *c)
{
	c->infos[1] = c->infos[2];
	c->x[1] = c->x[2];
	c->x[1].f.books = c->x[1].books;
	c->infos[1] = &c->x[1].info;
	c->n = 2;
}

static void missing_segment_elsewhen(struct scene *c)
{
	c->x[2].info.seq = 4; /* segment 3 is missing, the life lies in 2 */
	c->x[2].f.epoch_first_ns += SPAN_NS;
	c->x[2].f.epoch_last_ns += SPAN_NS;
}

static void first_missing(struct scene *c)
{
	c->q.first_ns = SPAN_NS + 10 * SEC_NS;
	c->infos[0] = &c->x[1].info;
	c->infos[1] = &c->x[2].info;
	c->x[0] = c->x[1];
	c->x[1] = c->x[2];
	for (unsigned int i = 0; i < 2; i++) {
		c->x[i].f.books = c->x[i].books;
		c->x[i].f.probes = c->x[i].probes;
		c->infos[i] = &c->x[i].info;
	}
	c->n = 2;
}

static void continues_after_last(struct scene *c)
{
	c->q.last_ns = 3 * SPAN_NS + 10 * SEC_NS;
	c->n = 2;
}

static void end_unseen_capture_goes_on(struct scene *c)
{
	c->q.last_ns = 0;
	c->x[2].f.reason = IOT_SEAL_TIME;
}

static void end_unseen(struct scene *c)
{
	c->q.last_ns = 0;
}

static void birth_unseen(struct scene *c)
{
	c->q.first_ns = 0;
}

static void born_before_attach(struct scene *c)
{
	c->q.first_ns = SPAN_NS - SEC_NS;
}

static void recovered(struct scene *c)
{
	c->x[1].f.reason = IOT_SEAL_RECOVERED;
}

static void refused(struct scene *c)
{
	c->x[1].probes[1].state = IOT_ATTACH_REFUSED;
}

static void absent(struct scene *c)
{
	for (unsigned int i = 0; i < 3; i++)
		c->x[i].probes[1].state = IOT_ATTACH_ABSENT;
}

static void not_in_table(struct scene *c)
{
	c->q.probes |= 1ULL << 5;
}

static void attached_late(struct scene *c)
{
	c->x[1].probes[1].from_ns = LIFE_FIRST + 1;
}

static void attached_late_but_before(struct scene *c)
{
	c->x[1].probes[1].from_ns = LIFE_FIRST;
}

static void detached_early(struct scene *c)
{
	c->x[1].probes[1].to_ns = LIFE_LAST - 1;
}

static void unidentified(struct scene *c)
{
	c->q.id = 0;
}

static void unidentified_but_filed(struct scene *c)
{
	c->q.id = 0;
	fixture_file(&c->x[1], 0, 3);
}

static void no_probes(struct scene *c)
{
	c->q.probes = 0;
}

static void other_capture(struct scene *c)
{
	c->x[2].info.capture_id[0] ^= 1;
}

static void imported(struct scene *c)
{
	snprintf(c->x[1].info.source, sizeof(c->x[1].info.source), "perf: 7 events");
}

static void no_segments(struct scene *c)
{
	c->n = 0;
}

static void backwards(struct scene *c)
{
	c->q.first_ns = LIFE_LAST;
	c->q.last_ns = LIFE_FIRST;
}

static void epoch_unknown(struct scene *c)
{
	c->x[1].f.epoch_first_ns = c->x[1].f.epoch_last_ns = 0;
}

#define COMPLETE IOT_OBJECT_COMPLETE
#define WITHIN IOT_OBJECT_COMPLETE_WITHIN_WINDOW
#define LOST IOT_OBJECT_LOST
#define UNKNOWN IOT_OBJECT_UNKNOWN

static const struct {
	const char *name;
	void (*spoil)(struct scene *c);
	enum iot_object_verdict verdict;
	const char *reason;
} table[] = {
	{"clean", clean, COMPLETE, NULL},
	{"filed", filed, LOST, "block_rq_complete: 2 observations of this object lost"},
	{"filed in neighbour", filed_in_neighbour, LOST, "1 observations of this object"},
	{"filed for another", filed_for_another, COMPLETE, NULL},
	{"filed outranks doubt", filed_outranks_doubt, LOST, "2 observations of this object"},
	{"filed unidentified", filed_unidentified, UNKNOWN, "unidentified objects"},
	{"filed unidentified, elsewhen", filed_unidentified_elsewhen, COMPLETE, NULL},
	{"window inside", window_inside, UNKNOWN, "block_rq_issue: unattributed in its lifetime"},
	{"window after", window_after, COMPLETE, NULL},
	{"window before", window_before, COMPLETE, NULL},
	{"window at another probe", window_other_probe, COMPLETE, NULL},
	{"window at any probe", window_any_probe, UNKNOWN, "any probe: torn in its lifetime"},
	{"window backwards", window_backwards, UNKNOWN, "in its lifetime"},
	{"window in neighbour", window_in_neighbour, UNKNOWN, "(segment 1)"},
	{"missed inside", missed_inside, UNKNOWN, "block_rq_issue: missed in its lifetime"},
	{"missed, no window", missed_without_window, UNKNOWN, "missed runs without a window"},
	{"missed, no window, before", missed_without_window_before, COMPLETE, NULL},
	{"not measurable", missed_not_measurable, UNKNOWN, "cannot be counted"},
	{"not measurable before", missed_not_measurable_before, COMPLETE, NULL},
	{"not measurable, unreached", missed_not_measurable_unreached, COMPLETE, NULL},
	{"no missed row", missed_row_absent, UNKNOWN, "number of missed runs not known"},
	{"unbalanced", unbalanced, UNKNOWN, "books of segment 2 do not balance"},
	{"unbalanced before", unbalanced_before, COMPLETE, NULL},
	{"no window", unattributed_no_window, UNKNOWN, "losses without owner and window"},
	{"ledger lost", ledger_lost, UNKNOWN, "ledger is not whole"},
	{"user loss", user_loss_without_owner, UNKNOWN, "owner not known"},
	{"identity full", identity_full, UNKNOWN, "identity map full (segment 2)"},
	{"identity full before", identity_full_before, COMPLETE, NULL},
	{"read failed", read_failed, UNKNOWN, "kernel fields could not be read (segment 2)"},
	{"counter unknown", counter_unknown, UNKNOWN, "counters of segment 2 are not known"},
	{"no footer", no_footer, UNKNOWN, "segment 2 of its lifetime has no footer"},
	{"no footer after", no_footer_after, COMPLETE, NULL},
	{"no footer near", no_footer_overlapping, UNKNOWN, "segment 3 of its lifetime"},
	{"missing", missing_segment, UNKNOWN, "segments 2 to 2 of its lifetime are missing"},
	{"missing elsewhen", missing_segment_elsewhen, COMPLETE, NULL},
	{"first missing", first_missing, UNKNOWN, "segments 1 to 1 of its lifetime are missing"},
	{"goes on", continues_after_last, UNKNOWN, "goes on after segment 2"},
	{"end unseen, goes on", end_unseen_capture_goes_on, UNKNOWN, "goes on after segment 3"},
	{"end unseen", end_unseen, WITHIN, NULL},
	{"birth unseen", birth_unseen, WITHIN, NULL},
	{"born before", born_before_attach, WITHIN, NULL},
	{"imported", imported, UNKNOWN, "imported from perf"},
	{"recovered", recovered, UNKNOWN, "segment 2 was recovered"},
	{"refused", refused, UNKNOWN, "not attached throughout its lifetime"},
	{"absent", absent, COMPLETE, NULL},
	{"not in table", not_in_table, UNKNOWN, "probe 5: not in the probe table"},
	{"attached late", attached_late, UNKNOWN, "not attached throughout its lifetime"},
	{"attached in time", attached_late_but_before, COMPLETE, NULL},
	{"detached early", detached_early, UNKNOWN, "not attached throughout its lifetime"},
	{"unidentified", unidentified, UNKNOWN, "the object is unidentified"},
	{"unidentified, filed", unidentified_but_filed, UNKNOWN, "the object is unidentified"},
	{"no probes", no_probes, UNKNOWN, "which probes"},
	{"other capture", other_capture, UNKNOWN, "more than one capture"},
	{"no segments", no_segments, UNKNOWN, "no segment was given"},
	{"backwards", backwards, UNKNOWN, "ends before it begins"},
	{"epoch unknown", epoch_unknown, UNKNOWN, "time segment 2 covers is not known"},
};

static bool mentions(const struct iot_verdict *v, const char *reason)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strstr(v->reasons[i], reason))
			return true;
	return false;
}

static void test_object_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		enum iot_object_verdict got;
		struct iot_verdict v;
		struct scene c;

		scene_init(&c);
		table[i].spoil(&c);
		for (unsigned int k = 0; k < 3; k++)
			c.footers[k] = c.no_footer[k] ? NULL : &c.x[k].f;
		got = iot_verdict_object(&c.q, c.infos, c.footers, c.n, &v);
		if (got != table[i].verdict ||
		    (table[i].reason ? !mentions(&v, table[i].reason) : v.n_reasons != 0))
			fail_msg("%s: %u, first reason \"%s\"", table[i].name, got,
				 v.n_reasons ? v.reasons[0] : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
