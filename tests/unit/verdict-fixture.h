/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict-fixture.h - a clean segment's header and footer in memory, for tests that spoil one fact.
 * Segment n (from 1) covers [SPAN_NS * n, SPAN_NS * (n + 1)]; three probes, ten requests on CPU 0.
 */
#pragma once

#include "format/books.h"

#define SEC_NS 1000000000ULL
#define SPAN_NS (1000 * SEC_NS)

enum {
	P_START = 1,
	P_ISSUE = 4,
	P_COMPLETE = 8
};

struct fixture {
	struct iot_segment_info info;
	struct iot_footer f;
	struct iot_probe probes[4];
	struct iot_books books[8];
	struct iot_window windows[4];
	struct iot_loss losses[4];
};

/* Rows of the books. */
enum {
	R_START,
	R_ISSUE,
	R_COMPLETE,
	R_USER_START,
	R_USER_ISSUE,
	R_USER_COMPLETE,
	N_ROWS
};

static inline void fixture_init(struct fixture *x, uint64_t seq)
{
	static const uint16_t ids[] = {P_START, P_ISSUE, P_COMPLETE};
	static const char *const names[] = {"block_io_start", "block_rq_issue",
					    "block_rq_complete"};

	memset(x, 0, sizeof(*x));
	x->info.stream = IOT_STREAM_BLOCK;
	x->info.seq = seq;
	x->info.epoch = seq;
	x->info.n_rings = 1;
	x->info.attach_ns = SPAN_NS;
	x->info.clocks.monotonic_ns = SPAN_NS * seq - SEC_NS;
	memset(x->info.capture_id, 7, sizeof(x->info.capture_id));
	for (unsigned int i = 0; i < 3; i++) {
		x->probes[i].id = ids[i];
		x->probes[i].state = IOT_ATTACH_ATTACHED;
		x->probes[i].miss = IOT_MISS_COUNTED;
		x->probes[i].from_ns = SPAN_NS - SEC_NS;
		snprintf(x->probes[i].name, sizeof(x->probes[i].name), "%s", names[i]);
		x->books[i].probe = ids[i];
		x->books[i].seen = 10;
		x->books[i].folded = 10;
		x->books[3 + i].probe = ids[i];
		x->books[3 + i].cpu = UINT32_MAX;
	}
	x->books[R_COMPLETE].folded = 0;
	x->books[R_COMPLETE].emitted = 10;
	x->books[R_COMPLETE].written = 10;
	x->f.reason = IOT_SEAL_TIME;
	x->f.epoch_first_ns = SPAN_NS * seq;
	x->f.epoch_last_ns = SPAN_NS * (seq + 1);
	x->f.books = x->books;
	x->f.n_books = N_ROWS;
	x->f.windows = x->windows;
	x->f.losses = x->losses;
	x->f.probes = x->probes;
	x->f.n_probes = 3;
}

static inline void fixture_window(struct fixture *x, uint16_t kind, uint16_t probe, uint64_t t0_ns,
				  uint64_t t1_ns, uint64_t n)
{
	x->windows[x->f.n_windows++] = (struct iot_window){
		.kind = kind, .probe = probe, .t0_ns = t0_ns, .t1_ns = t1_ns, .n = n, .cpu = 0};
}

/* n observations at COMPLETE found no room in the ring and were filed against id. */
static inline void fixture_file(struct fixture *x, uint64_t id, uint64_t n)
{
	x->books[R_COMPLETE].seen += n;
	x->books[R_COMPLETE].reserve_failed += n;
	x->books[R_COMPLETE].filed += n;
	x->losses[x->f.n_losses++] = (struct iot_loss){
		.id = id,
		.n = n,
		.probe = P_COMPLETE,
		.cause = IOT_LOSS_RESERVE_FAILED,
		.first_ns = x->f.epoch_first_ns + SEC_NS,
		.last_ns = x->f.epoch_first_ns + 2 * SEC_NS,
	};
}

/* n observations at probe's row were lost and the ledger refused them, within [t0, t1]. */
static inline void fixture_unattributed(struct fixture *x, unsigned int row, uint64_t t0_ns,
					uint64_t t1_ns, uint64_t n)
{
	x->books[row].seen += n;
	x->books[row].reserve_failed += n;
	x->books[row].unattributed += n;
	fixture_window(x, IOT_WINDOW_UNATTRIBUTED, x->books[row].probe, t0_ns, t1_ns, n);
}

static inline void fixture_missed(struct fixture *x, unsigned int user_row, uint64_t t0_ns,
				  uint64_t t1_ns, uint64_t n)
{
	x->books[user_row].missed += n;
	fixture_window(x, IOT_WINDOW_MISSED, x->books[user_row].probe, t0_ns, t1_ns, n);
}
