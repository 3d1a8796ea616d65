/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * books.h - a footer's books added up per probe, and held against each other. Internal to format/.
 *
 * Every sum carries its own "not known" mark: a counter that was not measured is never added as 0,
 * and a sum that would overflow counts as not known (only a forged or damaged footer gets there).
 */
#pragma once

#include "format/verify.h"

#define IOT_MAX_PROBE_IDS 256U /* ids on disk are u16; larger ones are named as unknown probes */

/* A sum that remembers whether all of its parts were known. */
struct iot_sum {
	uint64_t n;
	bool unknown;
};
void iot_sum_add(struct iot_sum *s, uint64_t n); /* n may be IOT_COUNT_UNKNOWN */

struct iot_probe_sums {
	bool present;  /* the books have a row of this probe */
	bool user_row; /* and the whole-probe row, which carries `missed` */
	struct iot_sum seen;
	struct iot_sum filed;
	struct iot_sum unattributed;
	struct iot_sum identity_full;
	struct iot_sum read_failed;
	struct iot_sum emitted;
	struct iot_sum written;
	struct iot_sum user_failed; /* decode_failed + output_failed */
	struct iot_sum missed;
	struct iot_sum suppressed;
	struct iot_sum window_unattributed;
	struct iot_sum window_missed;
	struct iot_sum window_output;
	struct iot_sum ledger_filed;  /* by causes reserve_failed and unseen */
	struct iot_sum ledger_unseen; /* the latter alone */
	struct iot_sum ledger_user;   /* by cause decode_failed and output_failed */
};

struct iot_books_summary {
	uint64_t n_rows;
	uint64_t n_unbalanced; /* an equation does not hold */
	uint64_t n_unknown;    /* an equation cannot be checked */
	bool duplicate_rows;
	bool foreign_ids; /* probe ids >= IOT_MAX_PROBE_IDS */
	struct iot_probe_sums probes[IOT_MAX_PROBE_IDS];
};

enum iot_balance {
	IOT_BALANCE_HOLDS = 0,
	IOT_BALANCE_UNKNOWN = 1,
	IOT_BALANCE_BROKEN = 2,
};
/* The three equations of one row. A broken equation outranks one that cannot be checked. */
enum iot_balance iot_books_balance(const struct iot_books *b);

/*
 * For tables whose keys come from files: which of them meet in a slot must not be known to who writes one.
 * Without randomness the seed is 0, and files are still read.
 */
uint64_t iot_table_seed(void);
uint64_t iot_table_hash(const void *key, size_t bytes, uint64_t seed);

/* Records counted by who made them, to be held against `written` of the books. */
struct iot_written_row {
	uint64_t n;
	uint32_t cpu;
	uint16_t probe;
};
struct iot_written {
	struct iot_written_row *rows; /* found through slots */
	size_t n;
	size_t room;
	uint64_t
		other; /* records of CPUs that ids have no room for, and of probes beyond IOT_MAX_PROBE_IDS */
	uint32_t *slots; /* row + 1, 0 = free; twice the room, a power of two */
	size_t last;	 /* row that the last record went to */
	uint64_t seed;	 /* of the slots */
};
int iot_written_add(struct iot_written *w, uint16_t probe, uint32_t cpu) IOT_MUST_CHECK;
/* The count of a row, which is 0 afterwards. */
uint64_t iot_written_take(struct iot_written *w, uint16_t probe, uint32_t cpu);
void iot_written_done(struct iot_written *w);
/*
 * All that records tell of books: a row for each that made some, by probe and CPU, then one for each probe that was
 * attached; but for `written` nothing in them is known. The caller frees *ret. -ENOMEM.
 */
int iot_written_books(const struct iot_written *w, const struct iot_probe *probes, size_t n_probes,
		      struct iot_books **ret, size_t *ret_n) IOT_MUST_CHECK;

void iot_books_sum(const struct iot_footer *f, struct iot_books_summary *ret);
/* Adds ledger entries; separate because a reader loads them only when asked. */
void iot_books_sum_losses(struct iot_books_summary *s, const struct iot_loss *losses, size_t n);

/* The final probe table: the footer's, else the header's. NULL if the id is in neither. */
const struct iot_probe *iot_probe_find(const struct iot_segment_info *info,
				       const struct iot_footer *f, uint16_t id);
const struct iot_probe *iot_probe_table(const struct iot_segment_info *info,
					const struct iot_footer *f, size_t *ret_n);
/* "block_rq_complete", or "probe 8" into buf. Control characters become '?'. */
const char *iot_probe_label(const struct iot_segment_info *info, const struct iot_footer *f,
			    uint16_t id, char *buf, size_t size);

/* Raises v to at least code and notes why. */
void iot_verdict_reason(struct iot_verdict *v, enum iot_verdict_code code, const char *fmt, ...)
	IOT_PRINTF(3, 4);
/* Of a trace that another tool recorded nothing is proved. */
void iot_verdict_source(const struct iot_segment_info *info, const struct iot_footer *f,
			struct iot_verdict *v);
/* Holds loaded ledger entries against the books: filed = ledger, user losses owned or windowed. */
void iot_verdict_ledger(const struct iot_segment_info *info, const struct iot_footer *f,
			const struct iot_books_summary *s, struct iot_verdict *v);

/* a + b, or UINT64_MAX: for totals shown to people. */
static inline uint64_t iot_add_sat(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}
