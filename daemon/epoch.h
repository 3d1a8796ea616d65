/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoch.h - the books of one epoch: what the kernel side counted, what user space did with it, and
 * when what cannot be attributed was lost. Pure: cells and counters are handed in.
 *
 * The kernel's cells are live while the epoch is active. Two of their facts have no owner in the
 * ledger, so they get windows of time instead: unattributed losses (per CPU and probe) and missed
 * runs (per probe). Both are sampled at most 100 ms apart; a growth between two samples becomes a
 * window. Two rules make windows proof:
 *  - Edges are wide. A sample begins at one time and ends at another; a program reads its clock
 *    before it counts. So a window begins where the sample before the previous one began, and ends
 *    where the current one ended.
 *  - Nothing is dropped. The sum of n over the windows of a (probe, cpu) equals the final counter
 *    exactly, because the last sample is taken after the epoch's barrier. When there are many
 *    windows, neighbours are joined: doubt may widen, never vanish.
 *
 * User space's half (written, decode_failed, output_failed) is counted per (cpu, probe) of the
 * record, so that emitted = written + decode_failed + output_failed holds in every row of a footer.
 */
#pragma once

#include "bpf/events.h"
#include "daemon/id-set.h"
#include "format/writer.h"

#define EPOCH_N_PROBES ((uint32_t)EV_N_BLOCK_PROBES)	/* of the block stream */
#define EPOCH_MAX_PROBES ((uint32_t)EV_N_PACKET_PROBES) /* of any stream */
_Static_assert(EV_N_BLOCK_PROBES <= EV_N_PACKET_PROBES, "more probes than an epoch has room for");
#define EPOCH_MAX_LOSSES (256U * 1024) /* user-space losses filed by owner; beyond: windows */
#define EPOCH_MAX_WINDOWS 1024U	       /* beyond: neighbours are joined */

struct epoch {
	uint64_t epoch;
	unsigned int slot; /* epoch & 1 */
	uint32_t n_cpus;
	uint32_t first_probe; /* ids first_probe .. first_probe + n_probes - 1 are the stream's */
	uint32_t n_probes;
	uint64_t first_ns; /* before the flip to it .. after the wait of the flip away from it */
	uint64_t last_ns;

	/* [cpu * n_probes + probe - first_probe], as are the kernel's cells */
	uint64_t *written;
	uint64_t *decode_failed;
	uint64_t *output_failed;
	uint64_t *sampled;	     /* unattributed at the last sample */
	uint32_t *last_window;	     /* index + 1 of the cell's newest window */
	uint64_t sample_begin_ns[2]; /* of the last sample and the one before */

	/* Records whose CPU, probe or epoch cannot be true: no row can own them. */
	uint64_t orphans[EPOCH_MAX_PROBES]; /* counted from first_probe, as all below */
	uint64_t nameless;		    /* not even a probe */
	uint64_t missed[EPOCH_MAX_PROBES];  /* IOT_COUNT_UNKNOWN is sticky */
	uint32_t last_missed_window[EPOCH_MAX_PROBES];

	struct iot_loss *losses;
	size_t n_losses;
	size_t losses_room;
	struct iot_window *windows;
	size_t n_windows;
	size_t windows_room;

	uint64_t swap_out_bytes, swap_in_bytes; /* of records; for status */

	struct id_set devices; /* packet: interfaces, IOT_IFACE_KEY */
	struct id_set cgroups; /* packet: places in code (places.h) */
};

int epoch_new(enum iot_stream stream, uint64_t number, uint32_t n_cpus, uint64_t first_ns,
	      struct epoch **ret) IOT_MUST_CHECK;
struct epoch *epoch_free(struct epoch *e);

static inline void epoch_count_written(struct epoch *e, uint32_t cpu, uint16_t probe)
{
	e->written[cpu * e->n_probes + (probe - e->first_probe)]++;
}

/*
 * Counts and files one record that ends here. `l` carries owner, probe, cause and times; for a
 * record already counted as written, was_written takes that back. Never fails: without memory (or
 * past EPOCH_MAX_LOSSES) the loss becomes a window without owner.
 */
void epoch_file_loss(struct epoch *e, uint32_t cpu, const struct iot_loss *l, bool was_written);

/*
 * Adds a window. Joins the newest one of the same (kind, probe, cpu) when they touch, or when there
 * are too many. *last: where the newest one's index + 1 is kept, or NULL. Without memory the
 * existing windows are widened; -ENOMEM only if there is none at all.
 */
int epoch_add_window(struct epoch *e, const struct iot_window *w, uint32_t *last) IOT_MUST_CHECK;

/* cells: [cpu][probe] of the epoch's slot, live. now() is called before and after reading them. */
typedef uint64_t (*epoch_clock_fn)(void);
int epoch_sample_cells(struct epoch *e, const struct ev_cell *cells,
		       epoch_clock_fn now) IOT_MUST_CHECK;

/* Missed runs are counted by the kernel per program since load, whatever the epoch. */
struct epoch_misses {
	uint64_t last[EPOCH_MAX_PROBES];
	uint64_t begin_ns; /* of the last sample */
};
/* now: [n_probes]. The growth since the last sample goes to e. begin/end: clock before and after `now` was read. */
int epoch_sample_missed(struct epoch *e, struct epoch_misses *m, const uint64_t *now,
			uint64_t begin_ns, uint64_t end_ns) IOT_MUST_CHECK;

/* Sums over all CPUs and probes: n_cells = CPUs * probes of the stream. */
struct epoch_totals {
	uint64_t seen;
	uint64_t emitted;
	uint64_t filed;
	uint64_t unattributed;
	uint64_t identity_full;
};
void epoch_sum_cells(const struct ev_cell *cells, size_t n_cells, struct epoch_totals *ret);
/* Entries that the ledger of this slot may hold at most. */
uint64_t epoch_filed(const struct ev_cell *cells, size_t n_cells);

/*
 * The footer's books: one row per (probe, cpu) with any count, one user-space row per probe that is
 * attached (missed) or has orphans. Sorted by (probe, cpu).
 */
int epoch_books(const struct epoch *e, const struct ev_cell *cells, const struct iot_probe *probes,
		size_t n_probes, struct iot_books **ret, size_t *ret_n) IOT_MUST_CHECK;

/* No footer of this epoch is larger, but for its index; and with what is in the ledger not more than: */
uint64_t epoch_footer_bytes(const struct epoch *e);
uint64_t epoch_ledger_bytes(const struct epoch *e, uint64_t n_filed_by_kernel);

/*
 * For a disk without room for the ledger: its losses lose their owners, not their number. They become
 * windows for each probe, from the first of them to the last. Requests in flight are left out, too.
 */
int epoch_fold_losses(struct iot_footer *f) IOT_MUST_CHECK;

/*
 * Number of equations that do not hold: per row, ledger against filed, windows against
 * unattributed and missed, records in the file against written. 0 = the books balance.
 */
uint64_t epoch_unbalanced(const struct iot_footer *f, uint64_t n_records);
