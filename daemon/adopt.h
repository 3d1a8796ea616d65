/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt.h - what a successor must know to go on with a capture whose daemon died: a small memory file
 * that the service manager keeps beside the kernel objects (daemon/fdstore.h).
 *
 * Everything else it needs is in the kernel (rings, counters, ledgers, in-flight entries) or in the
 * segment files. Here is only what neither holds: what the programs were told last, how far the turn
 * from one epoch to the next has come, when epochs began, and totals for status. SIGKILL may come
 * between any two instructions, so a change is made in a private copy, copied to the half of the file
 * that is not in use, and made current by one release store. Nothing is ever synced: the file lives
 * as long as the kernel objects do, which do not survive the kernel either.
 *
 * Two rules order it against the rest:
 *  - An intention is noted before it is carried out (the epoch to be flipped to, the gate's closing).
 *    The successor carries it out once more, which is harmless.
 *  - A result is noted after it is there (`sealed` after a whole footer, `clean` after the slot is empty).
 *    The successor does the step again or finds it done.
 *
 * Any thread may change it; a lock makes changes whole.
 */
#pragma once

#include "daemon/epoch.h"

/* Raised whenever the meaning of struct adopt_state changes, even if its size does not. (Tests: another build's.) */
#ifndef ADOPT_VERSION
#define ADOPT_VERSION 3U
#endif

/* One epoch that is not clean yet; by parity. */
struct adopt_slot {
	uint64_t epoch; /* 0: none */
	uint64_t seq;	/* of its segment */
	uint64_t first_ns;
	uint64_t p0[IOT_MAX_RINGS]; /* where the file's spans begin */
	/* Missed runs at its beginning: its own are what was added since. 0 ns: not taken yet. */
	uint64_t misses_ns;
	uint64_t misses[EPOCH_MAX_PROBES];
};

/* Of the epochs sealed so far; only status needs them. */
struct adopt_totals {
	struct epoch_totals cells;
	uint64_t missed; /* IOT_COUNT_UNKNOWN is sticky */
	uint64_t unbalanced;
	uint64_t segments;
	uint64_t bytes;
	uint64_t records;
	uint64_t swap_out_lost_bytes, swap_in_lost_bytes;
	uint64_t swap_out_bytes, swap_in_bytes;
	uint64_t decode_failed, output_failed;
	uint64_t seal_errors, seal_error_seq; /* as in struct worker_status */
	int64_t seal_error;
};

struct adopt_state {
	uint64_t object; /* hash of the BPF object's bytes */
	uint64_t
		config; /* hash of what the maps' sizes and the filter come from; 0: is being changed */
	uint8_t capture_id[16];
	char state_dir[512]; /* for whoever can only finish the capture; "": too long */
	uint32_t
		streams; /* of the capture, 1 << enum iot_stream: without the state of each nothing goes on */
	uint32_t exact_identity; /* packet: what the try of identity has shown */
	char identity_detail[120];
	uint64_t attach_ns; /* 0: the capture has no segment yet */
	uint32_t n_cpus;
	uint32_t n_rings;
	uint32_t attempts; /* adoptions begun since one succeeded */
	uint32_t reason;   /* enum iot_seal_reason of the turn under way */
	uint32_t dead;	   /* not to be adopted: it was tried, or the capture has ended */
	uint32_t n_rows;
	struct ev_epoch active; /* what the programs see, or are about to see */
	uint64_t sealed;	/* last epoch whose file has a whole footer */
	uint64_t clean;		/* last epoch whose slot is empty */
	uint64_t prev_footer_hash;
	struct adopt_slot slots[2];
	struct adopt_totals totals;
	struct iot_probe table[EPOCH_MAX_PROBES];
	uint8_t twice
		[EPOCH_MAX_PROBES]; /* as the table: a second copy of the program is attached */
};

struct adopt;

/* A new file, all zero but for the hashes. */
int adopt_new(struct adopt **ret) IOT_MUST_CHECK;
/* One that a predecessor left; takes fd. -EBADMSG: not such a file, or of another layout. */
int adopt_open(int fd, struct adopt **ret) IOT_MUST_CHECK;
struct adopt *adopt_free(struct adopt *a);
int adopt_fd(const struct adopt *a);

/* Hash of everything that a successor must agree on to read file, rings and maps at all. */
uint64_t adopt_wire(void);
/* Plain 64-bit FNV-1a: names what belongs together, protects from nothing. */
uint64_t adopt_hash(uint64_t hash, const void *data, size_t size);
#define ADOPT_HASH_INIT 0xcbf29ce484222325ULL

/* Locks and returns the private copy, to be changed and then committed. */
struct adopt_state *adopt_edit(struct adopt *a);
void adopt_commit(struct adopt *a);
void adopt_read(struct adopt *a, struct adopt_state *ret);

/* Does nothing without a. */
void adopt_set_dead(struct adopt *a);
void adopt_set_config(struct adopt *a, uint64_t config);

static inline void adopt_freep(struct adopt **a)
{
	*a = adopt_free(*a);
}
