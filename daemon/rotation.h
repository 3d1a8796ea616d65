/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rotation.h - one turn from epoch E to E+1, as the two jobs the rotor does for the worker.
 *
 *	begin	open E+1's file, hand it to the worker, flip, wait until no program runs under E;
 *		then take what only now is final: the ledger, and the requests in flight
 *	(the worker drains to the producer positions read after that, and flushes E's batch)
 *	end	footer, seal, sync, rename; and only after a whole footer clear E's slot, so that the
 *		footer could have been made again from it
 *
 * Opening before the flip means that no record of E+1 can be seen before there is a file for it. The
 * final turn, at shutdown, has no E+1: the programs are detached, and setting E active once more
 * waits for those that still run.
 *
 * The requests in flight are a snapshot taken right after the flip while E+1's programs already
 * run: best effort, so that a hung request is seen; a request that ends meanwhile may be missing
 * from it and is then in E+1's records.
 */
#pragma once

#include "daemon/adopt.h"
#include "daemon/decode-packet.h"
#include "daemon/epoch.h"
#include "daemon/facts.h"
#include "daemon/net-names.h"
#include "daemon/store.h"

#define ROTATION_SEAL_PAUSE_NS 200000000ULL

/* Same for every turn; used by the rotor thread. */
struct rotation_context {
	struct probes *probes;
	struct store *store;
	struct adopt *adopt; /* NULL: there will be no successor */
	struct names *names;
	struct net_names net_names;  /* packet */
	const struct places *places; /* packet; borrowed from the drain */
	struct facts facts;
	struct decode_block decoder; /* its cache is not shared between threads */
	enum iot_stream stream;
	uint64_t prev_footer_hash;
	bool sync;	     /* atomic: sync policy is not `never` */
	uint64_t give_up_ns; /* atomic: after this stop retrying; 0 = never */
	int error;	     /* atomic: what sealing is being retried for; 0 = nothing */
};

struct rotation {
	struct rotation_context *ctx;

	/* begin, in */
	bool final;
	uint64_t epoch; /* E */
	uint64_t next_seq;
	uint64_t next_p0[IOT_MAX_RINGS]; /* where E's last block ended: a bound for E+1's first */
	enum iot_seal_reason reason;
	/* begin, out; the three `next` are valid for the worker once `ready` (acquire) */
	struct epoch *next_books;
	struct iot_writer *next_writer;
	uint64_t next_opened_ns;
	bool ready;
	struct ev_block *in_flight; /* block */
	size_t n_in_flight;
	struct iot_loss *ledger; /* of the kernel */
	size_t n_ledger;
	uint64_t flipped_ns;

	/* end, in */
	struct epoch *books;
	struct iot_writer *writer;
	uint64_t seq;
	struct adopt_totals totals; /* after E, but for what only sealing tells */
	bool unsynced;		    /* a sync of E's file has failed: none may be tried any more */
	/* end, out */
	int sync_error; /* of a sync: E's file was written anew, as told by: */
	struct iot_rewritten rewritten;
	uint64_t unbalanced;
	uint64_t swap_out_lost_bytes, swap_in_lost_bytes; /* in the ledger */
	int seal_error; /* the file stays .open and is recovered at the next start */
};

/* Prepares a turn; r keeps what an earlier failed begin left open. */
void rotation_prepare(struct rotation *r, struct rotation_context *ctx, uint64_t epoch,
		      uint64_t next_seq, bool final);
void rotation_done(struct rotation *r);

/* Jobs for rotor_submit(); arg = struct rotation. */
int rotation_begin(void *arg) IOT_MUST_CHECK;
int rotation_end(void *arg) IOT_MUST_CHECK;

/*
 * now_ns, but no later than the gate's closing: the record answers for no longer than the programs
 * observed, and an epoch begun after that covers no time instead of time that nobody watched.
 */
uint64_t rotation_observed_ns(struct probes *p, uint64_t now_ns);
/* Opens the file and the books of an epoch. */
int rotation_open(struct rotation_context *ctx, uint64_t epoch, uint64_t seq, uint64_t first_ns,
		  struct epoch **ret_books, struct iot_writer **ret_writer) IOT_MUST_CHECK;

/* Base of the cells of a slot: [cpu][probe - first probe]. */
static inline const struct ev_cell *rotation_cells(struct probes *p, unsigned int slot)
{
	return probes_cell(p, slot, 0, probes_first_probe(p));
}
