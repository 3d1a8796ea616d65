/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker-internal.h - what the files of the worker share. Fields are grouped by owner: the worker
 * thread alone, the lock, or set once before the threads start.
 */
#pragma once

#include "daemon/drain.h"
#include "daemon/rotation.h"
#include "daemon/rotor.h"
#include "daemon/worker.h"

enum worker_phase {
	WORKER_STEADY = 0,
	WORKER_FLIPPING = 1, /* the rotor opens E+1 and waits for the flip */
	WORKER_DRAINING = 2, /* the flip is over: on to the producer positions read after it */
	WORKER_SEALING = 3,  /* the rotor seals E and clears its slot */
};

/* Waiting callers: a ticket is done when the count that was wanted has been reached. */
struct worker_ticket {
	uint64_t wanted;
	uint64_t started;
	uint64_t done;
};

struct worker {
	/* Set before the threads start. */
	struct probes *probes;
	struct store *store;
	enum iot_stream stream;
	uint32_t n_cpus;
	uint32_t first_probe; /* of the stream */
	uint32_t n_probes;
	size_t n_cells; /* of one slot: n_cpus * n_probes */
	uint64_t ledger_entries;
	pthread_t thread;
	bool thread_running;
	int epoll_fd;
	int kick_fd;			 /* commands and the rotor wake the worker */
	int attention_fd;		 /* the worker tells the manager */
	bool attached[EPOCH_MAX_PROBES]; /* counted from first_probe */

	/* The worker thread's own. */
	struct drain drain;
	struct rotor rotor;
	bool rotor_busy;
	bool rotor_names; /* the job is a look-up of names */
	struct rotation_context ctx;
	struct rotation turn;
	enum worker_phase phase;
	unsigned int active; /* parity of the epoch that opens last */
	uint64_t seq;	     /* newest segment opened */
	uint64_t flip_pos[IOT_MAX_RINGS];
	enum iot_seal_reason reason;
	uint64_t rotate_retry_ns; /* no rotation by itself before this time */
	int begin_error;	  /* of the last turn, which found no next segment; 0 = none */
	uint64_t turn_ticket;	  /* rotate ticket that the turn answers, 0 = none */
	uint64_t hold_until_ns;	  /* output failed: not before this time */
	uint64_t hold_pause_ns;
	bool resumed; /* the turn under way was begun by a predecessor */
	bool give_up;
	bool final_started;
	uint64_t tick_ns;
	struct epoch_misses misses;
	struct {
		uint64_t epoch;
		uint64_t seen;
		uint64_t begin_ns;
		bool calm; /* hardly anything did: every other tick is enough */
	} quiet;	   /* the last tick, for telling whether anything ran since */
	bool slot_live[2]; /* the cells of this slot count in live sums */
	struct epoch_totals sealed;
	struct epoch_totals closing;
	uint64_t missed; /* since start; IOT_COUNT_UNKNOWN is sticky */
	uint64_t unbalanced;
	uint64_t segments_sealed;
	uint64_t seal_errors; /* segments that could not be sealed; of the last one: */
	uint64_t seal_error_seq;
	int seal_error;
	uint64_t sealed_bytes; /* files closed so far */
	uint64_t sealed_records;
	uint64_t swap_out_lost_bytes; /* in the ledgers of closed epochs */
	uint64_t swap_in_lost_bytes;
	uint64_t sync_errors; /* segments that the disk failed to take; of the last one: */
	uint64_t sync_error_seq;
	uint64_t sync_error_lost;
	int sync_error;
	uint64_t progress;
	int last_error;
	char last_name[128]; /* of the segment sealed last */
	int turn_result;     /* of sealing it */
	bool ring_broken;
	struct {
		uint64_t devices[DRAIN_MAX_NEW_KEYS];
		uint64_t cgroups[DRAIN_MAX_NEW_KEYS];
		uint32_t n_devices;
		uint32_t n_cgroups;
		struct names *names;
	} lookup;

	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct iot_stream_config config;
	char selection[256]; /* of the next segment, as in struct iot_segment_info */
	struct worker_ticket rotate;
	struct worker_ticket flush;
	enum iot_seal_reason rotate_reason;
	int rotate_result;
	char rotate_name[128];
	int flush_result;
	char flush_name[128];
	bool stop;
	bool abandon; /* end without sealing */
	bool dead;
	int result;
	struct worker_status status;

	/* The worker thread's copy of what it needs from the lock, taken once a turn. */
	struct iot_stream_config now;
	uint64_t flush_wanted;
	bool stopping;
	uint64_t stop_ns;
};

/* worker-rotate.c */
int worker_rotate_step(struct worker *w, uint64_t now_ns) IOT_MUST_CHECK;
/* Makes what the rotor has opened known to the drain; after drain_refresh(), before drain_run(). */
void worker_rotate_pick_up(struct worker *w);
bool worker_rotate_finished(const struct worker *w); /* the final turn is over */

/* worker-adopt.c */
/* In place of a first segment: goes on where the state says that a predecessor ended. */
int worker_resume(struct worker *w, struct iot_error *err) IOT_MUST_CHECK;
/* Of a turn that a predecessor began: when the old epoch ended, and whose its missed runs are. */
void worker_resume_flipped(struct worker *w, struct segment_out *old, struct segment_out *new);
/* For our own successor. The first segment is open; missed runs from here on are this epoch's; totals. */
void worker_note_first(struct worker *w, uint64_t attach_ns);
void worker_note_misses(struct worker *w, uint64_t epoch);
void worker_note_totals(struct worker *w, struct adopt_totals *ret);

/* worker-status.c */
void worker_status_update(struct worker *w);
/* Samples cells and missed runs; 100 ms apart, 200 ms while hardly anything runs. */
int worker_sample(struct worker *w) IOT_MUST_CHECK;
/* Which probes are attached, by the table. */
void worker_look_at_probes(struct worker *w);
void worker_attention(struct worker *w);

/* worker-loop.c */
void *worker_main(void *arg);
/* Writes both batches and gives their records back to the kernel. Positive WORKER_HELD: the output
 * takes nothing now; the records stay in the ring and it is tried again later. */
#define WORKER_HELD 1
int worker_flush_batches(struct worker *w, uint64_t now_ns) IOT_MUST_CHECK;

static inline struct segment_out *worker_out(struct worker *w, unsigned int parity)
{
	return &w->drain.outs[parity & 1];
}
