// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-verdict.c - the verdict of a footer's claims, as a table: one clean footer, one spoiled
 * fact per row, the code and the reason it must give. Each row fails if its rule is removed, since
 * without it the footer would be complete (or lost).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/events.h"
#include "tests/unit/verdict-fixture.h"

static void clean(struct fixture *x)
{
	(void)x;
}

static void filed(struct fixture *x)
{
	fixture_file(x, 77, 3);
}

static void filed_unseen(struct fixture *x)
{
	fixture_file(x, 77, 3);
	fixture_file(x, 78, 2);
	x->losses[1].cause = IOT_LOSS_UNSEEN;
}

static void filed_ledger_short(struct fixture *x)
{
	fixture_file(x, 77, 3);
	x->losses[0].n = 2;
}

static void unattributed(struct fixture *x)
{
	fixture_unattributed(x, R_COMPLETE, SPAN_NS + 1, SPAN_NS + 9, 4);
}

static void filed_and_unattributed(struct fixture *x)
{
	filed(x);
	unattributed(x);
}

static void unattributed_without_window(struct fixture *x)
{
	unattributed(x);
	x->f.n_windows = 0;
}

static void window_sum_wrong(struct fixture *x)
{
	unattributed(x);
	x->windows[0].n = 3;
}

static void window_without_counter(struct fixture *x)
{
	fixture_window(x, IOT_WINDOW_MISSED, P_ISSUE, SPAN_NS, SPAN_NS + 5, 2);
}

static void window_count_unknown(struct fixture *x)
{
	fixture_window(x, IOT_WINDOW_UNATTRIBUTED, P_ISSUE, SPAN_NS, SPAN_NS + 5,
		       IOT_COUNT_UNKNOWN);
}

static void window_backwards(struct fixture *x)
{
	fixture_window(x, IOT_WINDOW_MISSED, P_ISSUE, SPAN_NS + 5, SPAN_NS, 0);
}

static void window_detached(struct fixture *x)
{
	fixture_window(x, IOT_WINDOW_DETACHED, P_ISSUE, SPAN_NS, SPAN_NS + SEC_NS, 0);
}

static void window_torn(struct fixture *x)
{
	fixture_window(x, IOT_WINDOW_TORN, 0, SPAN_NS, UINT64_MAX, IOT_COUNT_UNKNOWN);
}

static void window_of_unknown_kind(struct fixture *x)
{
	fixture_window(x, 99, P_ISSUE, SPAN_NS, SPAN_NS + SEC_NS, 0);
}

static void missed(struct fixture *x)
{
	fixture_missed(x, R_USER_COMPLETE, SPAN_NS + 1, SPAN_NS + 9, 5);
}

static void missed_unknown(struct fixture *x)
{
	x->books[R_USER_ISSUE].missed = IOT_COUNT_UNKNOWN;
}

static void missed_not_measurable(struct fixture *x)
{
	x->probes[1].miss = IOT_MISS_NOT_MEASURABLE;
	x->books[R_USER_ISSUE].missed = IOT_COUNT_UNKNOWN;
}

static void missed_not_measurable_but_zero(struct fixture *x)
{
	x->probes[1].miss = IOT_MISS_NOT_MEASURABLE;
}

static void missed_unguarded(struct fixture *x)
{
	x->probes[1].miss = IOT_MISS_UNGUARDED;
}

static void missed_row_absent(struct fixture *x)
{
	x->f.n_books--; /* the whole-probe row of COMPLETE */
}

static void seen_unbalanced(struct fixture *x)
{
	x->books[R_START].seen++;
}

static void failed_unbalanced(struct fixture *x)
{
	fixture_file(x, 77, 3);
	x->books[R_COMPLETE].reserve_failed++;
	x->books[R_COMPLETE].seen++;
}

static void emitted_unbalanced(struct fixture *x)
{
	x->books[R_COMPLETE].written--;
}

static void balanced_by_overflow(struct fixture *x)
{
	x->books[R_START].folded = UINT64_MAX - 1;
	x->books[R_START].emitted = 12; /* wraps to 10 */
	x->books[R_START].written = 12;
}

static void counter_unknown(struct fixture *x)
{
	x->books[R_START].seen = IOT_COUNT_UNKNOWN;
}

static void duplicate_row(struct fixture *x)
{
	x->books[x->f.n_books++] = x->books[R_START];
}

static void identity_full(struct fixture *x)
{
	x->books[R_START].identity_full = 1;
}

static void read_failed(struct fixture *x)
{
	x->books[R_START].read_failed = 1;
}

static void decode_failed_filed(struct fixture *x)
{
	x->books[R_COMPLETE].written -= 2;
	x->books[R_COMPLETE].decode_failed = 2;
	x->losses[x->f.n_losses++] = (struct iot_loss){
		.id = 5, .n = 2, .probe = P_COMPLETE, .cause = IOT_LOSS_DECODE_FAILED};
}

static void output_failed_without_owner(struct fixture *x)
{
	x->books[R_COMPLETE].written -= 2;
	x->books[R_COMPLETE].output_failed = 2;
	fixture_window(x, IOT_WINDOW_OUTPUT, P_COMPLETE, SPAN_NS, SPAN_NS + 5, 2);
}

static void failures_unknown(struct fixture *x)
{
	x->books[R_START].read_failed = IOT_COUNT_UNKNOWN;
}

static void output_windows_too_many(struct fixture *x)
{
	output_failed_without_owner(x);
	x->windows[0].n = 3;
}

static void ledger_number_unknown(struct fixture *x)
{
	filed(x);
	x->losses[0].n = IOT_COUNT_UNKNOWN;
}

static void decode_failed_not_filed(struct fixture *x)
{
	decode_failed_filed(x);
	x->losses[0].n = 1;
}

static void refused(struct fixture *x)
{
	x->probes[1].state = IOT_ATTACH_REFUSED;
	x->probes[1].error = -EPERM;
}

static void absent_hook(struct fixture *x)
{
	x->probes[3] = (struct iot_probe){
		.id = 2, .state = IOT_ATTACH_ABSENT, .miss = IOT_MISS_NOT_MEASURABLE};
	x->f.n_probes = 4;
}

static void absent_hook_counts(struct fixture *x)
{
	absent_hook(x);
	x->books[x->f.n_books++] = (struct iot_books){.probe = 2, .seen = 1, .folded = 1};
}

static void record_probe_absent(struct fixture *x)
{
	x->probes[2].state = IOT_ATTACH_ABSENT;
	x->books[R_COMPLETE] = (struct iot_books){.probe = P_COMPLETE};
}

static void unknown_state(struct fixture *x)
{
	x->probes[1].state = 77;
}

static void attached_late(struct fixture *x)
{
	x->probes[1].from_ns = SPAN_NS + 1;
}

static void detached_early(struct fixture *x)
{
	x->probes[1].to_ns = 2 * SPAN_NS - 1;
}

static void detached_at_the_end(struct fixture *x)
{
	x->probes[1].to_ns = 2 * SPAN_NS;
}

static void table_empty(struct fixture *x)
{
	x->f.n_probes = 0;
}

static void table_twice(struct fixture *x)
{
	x->probes[3] = x->probes[1];
	x->f.n_probes = 4;
}

static void foreign_probe(struct fixture *x)
{
	x->books[x->f.n_books++] = (struct iot_books){.probe = 3, .seen = 1, .folded = 1};
}

static void impossible_probe(struct fixture *x)
{
	x->books[x->f.n_books++] = (struct iot_books){.probe = 60000};
}

static void recovered(struct fixture *x)
{
	x->f.reason = IOT_SEAL_RECOVERED;
}

static void imported(struct fixture *x)
{
	snprintf(x->info.source, sizeof(x->info.source), "blktrace: 7 events");
}

static void imported_undated(struct fixture *x)
{
	snprintf(x->info.source, sizeof(x->info.source), "perf" IOT_SOURCE_UNDATED);
}

static void imported_with_doubts(struct fixture *x)
{
	imported(x);
	snprintf(x->f.note, sizeof(x->f.note), "2 ends of a part of one");
}

static void reason_none(struct fixture *x)
{
	x->f.reason = IOT_SEAL_NONE;
}

static void no_epoch(struct fixture *x)
{
	x->f.epoch_first_ns = x->f.epoch_last_ns = 0;
}

static void no_books(struct fixture *x)
{
	x->f.n_books = 0;
}

static const struct {
	const char *name;
	void (*spoil)(struct fixture *x);
	enum iot_verdict_code code;
	const char *reason;
} table[] = {
	{"clean", clean, IOT_VERDICT_COMPLETE, NULL},
	{"filed", filed, IOT_VERDICT_LOST, "block_rq_complete: 3 observations lost, filed"},
	{"filed, partly unseen", filed_unseen, IOT_VERDICT_LOST, "for 2 of these the kernel ran"},
	{"ledger short", filed_ledger_short, IOT_VERDICT_UNKNOWN, "3 losses filed in the books, 2"},
	{"unattributed", unattributed, IOT_VERDICT_UNKNOWN, "4 observations lost without an owner"},
	{"filed and unattributed", filed_and_unattributed, IOT_VERDICT_UNKNOWN, "without an owner"},
	{"no window", unattributed_without_window, IOT_VERDICT_UNKNOWN, "0 in windows of time"},
	{"window sum", window_sum_wrong, IOT_VERDICT_UNKNOWN, "3 in windows of time"},
	{"window only", window_without_counter, IOT_VERDICT_UNKNOWN, "0 missed runs in the books"},
	{"window unknown", window_count_unknown, IOT_VERDICT_UNKNOWN, "number not known"},
	{"window backwards", window_backwards, IOT_VERDICT_UNKNOWN, "ends before it begins"},
	{"window detached", window_detached, IOT_VERDICT_UNKNOWN,
	 "block_rq_issue: detached for 1.000"},
	{"window torn", window_torn, IOT_VERDICT_UNKNOWN, "part of the file was lost"},
	{"window kind", window_of_unknown_kind, IOT_VERDICT_UNKNOWN, "unknown kind 99"},
	{"missed", missed, IOT_VERDICT_UNKNOWN, "the kernel skipped 5 runs"},
	{"missed unknown", missed_unknown, IOT_VERDICT_UNKNOWN, "missed runs not known"},
	{"not measurable", missed_not_measurable, IOT_VERDICT_UNKNOWN, "cannot be counted"},
	{"not measurable, 0", missed_not_measurable_but_zero, IOT_VERDICT_UNKNOWN,
	 "cannot be counted"},
	{"unguarded", missed_unguarded, IOT_VERDICT_COMPLETE, NULL},
	{"no missed row", missed_row_absent, IOT_VERDICT_UNKNOWN, "does not say how many runs"},
	{"seen", seen_unbalanced, IOT_VERDICT_UNKNOWN, "do not balance: 1 of 6"},
	{"reserve_failed", failed_unbalanced, IOT_VERDICT_UNKNOWN, "do not balance: 1 of 6"},
	{"emitted", emitted_unbalanced, IOT_VERDICT_UNKNOWN, "do not balance: 1 of 6"},
	{"overflow", balanced_by_overflow, IOT_VERDICT_UNKNOWN, "do not balance: 1 of 6"},
	{"counter unknown", counter_unknown, IOT_VERDICT_UNKNOWN, "counters not known in 1 of 6"},
	{"duplicate row", duplicate_row, IOT_VERDICT_UNKNOWN, "two rows for one probe"},
	{"identity full", identity_full, IOT_VERDICT_UNKNOWN, "identity map full 1"},
	{"read failed", read_failed, IOT_VERDICT_UNKNOWN, "1 kernel fields"},
	{"decode failed, filed", decode_failed_filed, IOT_VERDICT_LOST,
	 "2 observations lost, filed"},
	{"output failed", output_failed_without_owner, IOT_VERDICT_UNKNOWN, "owner not known"},
	{"failures unknown", failures_unknown, IOT_VERDICT_UNKNOWN, "failures not known"},
	{"output windows", output_windows_too_many, IOT_VERDICT_UNKNOWN, "more unwritten records"},
	{"ledger unknown", ledger_number_unknown, IOT_VERDICT_UNKNOWN, "entries without a number"},
	{"decode not filed", decode_failed_not_filed, IOT_VERDICT_UNKNOWN,
	 "1 by ledger and windows"},
	{"refused", refused, IOT_VERDICT_UNKNOWN, "refused the probe (Operation not permitted)"},
	{"absent hook", absent_hook, IOT_VERDICT_COMPLETE, NULL},
	{"absent hook counts", absent_hook_counts, IOT_VERDICT_UNKNOWN, "was not attached"},
	{"record probe absent", record_probe_absent, IOT_VERDICT_UNKNOWN, "makes the records"},
	{"unknown state", unknown_state, IOT_VERDICT_UNKNOWN, "unknown probe state 77"},
	{"attached late", attached_late, IOT_VERDICT_UNKNOWN, "not attached throughout"},
	{"detached early", detached_early, IOT_VERDICT_UNKNOWN, "not attached throughout"},
	{"detached at the end", detached_at_the_end, IOT_VERDICT_COMPLETE, NULL},
	{"table empty", table_empty, IOT_VERDICT_UNKNOWN, "probe table is empty"},
	{"probe twice", table_twice, IOT_VERDICT_UNKNOWN, "in the table twice"},
	{"foreign probe", foreign_probe, IOT_VERDICT_UNKNOWN, "not in the probe table"},
	{"impossible probe", impossible_probe, IOT_VERDICT_UNKNOWN, "does not know"},
	{"recovered", recovered, IOT_VERDICT_UNKNOWN, "recovered"},
	{"imported", imported, IOT_VERDICT_UNKNOWN,
	 "imported from blktrace: what that tool lost is not known"},
	{"imported, undated", imported_undated, IOT_VERDICT_UNKNOWN, "without a wall clock"},
	{"imported, doubts", imported_with_doubts, IOT_VERDICT_UNKNOWN,
	 "imported: 2 ends of a part of one"},
	{"no reason", reason_none, IOT_VERDICT_UNKNOWN, "unknown reason (0)"},
	{"no epoch", no_epoch, IOT_VERDICT_UNKNOWN, "time this segment covers"},
	{"no books", no_books, IOT_VERDICT_UNKNOWN, "does not say how many runs"},
};

static bool mentions(const struct iot_verdict *v, const char *reason)
{
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strstr(v->reasons[i], reason))
			return true;
	return false;
}

static void test_footer_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(table); i++) {
		struct iot_verdict v;
		struct fixture x;

		fixture_init(&x, 1);
		table[i].spoil(&x);
		iot_verdict_footer(&x.info, &x.f, &v);
		if (v.code != table[i].code ||
		    (table[i].reason ? !mentions(&v, table[i].reason) : v.n_reasons != 0))
			fail_msg("%s: %s, first reason \"%s\"", table[i].name,
				 iot_verdict_name(v.code), v.n_reasons ? v.reasons[0] : "");
	}
}

static void test_footer_counts(void **state)
{
	struct iot_verdict v;
	struct fixture x;

	(void)state;
	fixture_init(&x, 1);
	filed(&x);
	decode_failed_filed(&x);
	unattributed(&x);
	missed(&x);
	x.f.n_open = 6;
	iot_verdict_footer(&x.info, &x.f, &v);
	assert_int_equal(v.code, IOT_VERDICT_UNKNOWN);
	assert_int_equal(v.n_lost, 5);
	assert_int_equal(v.n_unattributed, 4);
	assert_int_equal(v.n_missed, 5);
	assert_int_equal(v.n_records, 8);
	assert_int_equal(v.n_open, 6);
	assert_int_equal(v.books_checked, N_ROWS);
	assert_int_equal(v.books_unbalanced, 0);
}

static void test_no_footer(void **state)
{
	struct iot_verdict v;
	struct fixture x;

	(void)state;
	fixture_init(&x, 1);
	iot_verdict_footer(&x.info, NULL, &v);
	assert_int_equal(v.code, IOT_VERDICT_TORN);
	assert_int_equal(v.n_reasons, 1);
}

/* Each field of a row that enters an equation, one unit off or unknown: never balanced. */
static void test_balance_every_field(void **state)
{
	const struct iot_books good = {.probe = 8,
				       .seen = 100,
				       .not_selected = 10,
				       .folded = 20,
				       .emitted = 30,
				       .reserve_failed = 40,
				       .filed = 15,
				       .unattributed = 25,
				       .written = 24,
				       .decode_failed = 2,
				       .output_failed = 4};
	static const size_t fields[] = {
		offsetof(struct iot_books, seen),
		offsetof(struct iot_books, not_selected),
		offsetof(struct iot_books, folded),
		offsetof(struct iot_books, emitted),
		offsetof(struct iot_books, reserve_failed),
		offsetof(struct iot_books, filed),
		offsetof(struct iot_books, unattributed),
		offsetof(struct iot_books, written),
		offsetof(struct iot_books, decode_failed),
		offsetof(struct iot_books, output_failed),
	};

	(void)state;
	assert_int_equal(iot_books_balance(&good), IOT_BALANCE_HOLDS);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(fields); i++) {
		struct iot_books b = good;
		uint64_t *field = (uint64_t *)((char *)&b + fields[i]);

		(*field)++;
		assert_int_equal(iot_books_balance(&b), IOT_BALANCE_BROKEN);
		*field -= 2;
		assert_int_equal(iot_books_balance(&b), IOT_BALANCE_BROKEN);
		*field = IOT_COUNT_UNKNOWN;
		assert_int_equal(iot_books_balance(&b), IOT_BALANCE_UNKNOWN);
	}
}

static void test_merge(void **state)
{
	struct iot_verdict a = {0}, b = {0};

	(void)state;
	iot_verdict_reason(&a, IOT_VERDICT_UNKNOWN, "same");
	a.n_lost = UINT64_MAX - 1;
	iot_verdict_reason(&b, IOT_VERDICT_LOST, "same");
	iot_verdict_reason(&b, IOT_VERDICT_LOST, "other");
	b.n_lost = 5;
	iot_verdict_merge(&a, &b);
	assert_int_equal(a.code, IOT_VERDICT_UNKNOWN);
	assert_int_equal(a.n_reasons, 2);
	assert_true(a.n_lost == UINT64_MAX);
	for (unsigned int i = 0; i < IOT_MAX_REASONS; i++)
		iot_verdict_reason(&b, IOT_VERDICT_CORRUPT, "reason %u", i);
	assert_int_equal(b.n_reasons, IOT_MAX_REASONS);
	assert_int_equal(b.n_reasons_dropped, 2);
	assert_int_equal(b.code, IOT_VERDICT_CORRUPT);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(iot_verdict_name(IOT_VERDICT_COMPLETE), "complete");
	assert_string_equal(iot_verdict_name(IOT_VERDICT_LOST), "lost");
	assert_string_equal(iot_verdict_name(IOT_VERDICT_UNKNOWN), "unknown");
	assert_string_equal(iot_verdict_name(IOT_VERDICT_TORN), "torn");
	assert_string_equal(iot_verdict_name(IOT_VERDICT_CORRUPT), "corrupt");
	/* Two spellings of one stable id. */
	assert_int_equal(IOT_PROBE_BLOCK_COMPLETE, EV_PROBE_BLOCK_COMPLETE);
}

/* Names come from files and go to terminals. */
static void test_label_is_printable(void **state)
{
	struct fixture x;
	char name[64];

	(void)state;
	fixture_init(&x, 1);
	memset(x.probes[1].name, 'a', sizeof(x.probes[1].name));
	x.probes[1].name[0] = '\033';
	iot_probe_label(&x.info, &x.f, P_ISSUE, name, sizeof(name));
	assert_int_equal(strlen(name), sizeof(x.probes[1].name));
	assert_int_equal(name[0], '?');
	assert_string_equal(iot_probe_label(&x.info, &x.f, 33, name, sizeof(name)), "probe 33");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_footer_table),
		cmocka_unit_test(test_footer_counts),
		cmocka_unit_test(test_no_footer),
		cmocka_unit_test(test_balance_every_field),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_label_is_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
