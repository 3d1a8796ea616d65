/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * emit.bpf.h - the only place that reserves and submits ring memory, and therefore the only place that
 * counts an emission or files a loss.
 *
 * A program calls emit_enter() first: it looks up the active epoch (with gate and filter) and the CPU
 * once, finds the counter cell of (epoch slot, CPU, probe) and counts `seen`. From there on exactly one of
 * emit_not_selected(), emit_folded(), emit_submit() or emit_lost() ends the program, so that
 * seen = not_selected + folded + emitted + reserve_failed holds per cell by construction, and
 * emit_lost() splits reserve_failed into filed + unattributed.
 *
 * The epoch is an inner map behind a one-slot map of maps: the daemon's update of that slot returns only
 * after every program that saw the old map has ended (bpf(2) waits for an RCU grace period there, from
 * 5.0 on: 1ae80cf31938), after which nothing writes the old slot's cells and ledger any more.
 *
 * Wake-ups: none, except that every 64th emission of a CPU looks at the fill of its ring, and the one
 * that finds more than a quarter used while the consumer says it sleeps wakes it.
 */
#pragma once

#include "bpf/events.h"

/*
 * The stream that includes this says first: EMIT_FIRST_PROBE and EMIT_N_PROBES, the numbers of its
 * probes, and EMIT_LEDGER_VAL, the type of what its ledger keeps, which has n, bytes, first_ns and last_ns.
 * EMIT_LEDGER_JOIN(old, val), if there is one, adds what else a further loss has to say; EMIT_LEDGER_KIND(val)
 * the bits by which unidentified losses of one CPU are told from others.
 * Each stream is one BPF object, so these maps are its own: no stream takes another's room.
 */
#if !defined(EMIT_FIRST_PROBE) || !defined(EMIT_N_PROBES) || !defined(EMIT_LEDGER_VAL)
#error "name the stream's probes and ledger before emit.bpf.h"
#endif
#ifndef EMIT_LEDGER_KIND
#define EMIT_LEDGER_KIND(val) 0
#endif

/* Set by the daemon before load; constants to the verifier. */
const volatile __u32 emit_n_cpus = 1; /* highest possible CPU + 1: dimension of the cells */
const volatile __u32 emit_n_rings = 1;
const volatile __u32 emit_ring_cpus = 1;     /* CPUs per ring */
const volatile __u64 emit_wake_bytes = 4096; /* fill that wakes an armed consumer */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			/* Sizes, since clang 14 leaves a struct that is named only here undefined. */
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct ev_epoch));
		});
} epochs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_RINGBUF);
			__uint(max_entries, 4096);
		});
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ev_cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ev_control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ev_ledger_key);
	__type(value, EMIT_LEDGER_VAL);
} ledger0 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ev_ledger_key);
	__type(value, EMIT_LEDGER_VAL);
} ledger1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ids SEC(".maps");

/* One run of one program. */
struct emit_run {
	const struct ev_epoch *active;
	struct ev_cell *cell;
	__u32 cpu;
	__u32 probe;
};

#define emit_count(cell, field) __sync_fetch_and_add(&(cell)->field, 1)

/* Finds the cell of (epoch slot, CPU, probe) and counts `seen` there. */
static __always_inline bool emit_cell(struct emit_run *run, const __u32 probe)
{
	__u32 index = EV_CELL_INDEX((__u32)(run->active->epoch & 1), run->cpu, emit_n_cpus,
				    probe - EMIT_FIRST_PROBE, EMIT_N_PROBES);

	run->probe = probe;
	run->cell = bpf_map_lookup_elem(&cells, &index);
	if (!run->cell)
		return false;
	emit_count(run->cell, seen);
	return true;
}

/* false: the gate is closed (or the maps are not set up): return at once, uncounted. */
static __always_inline bool emit_enter(struct emit_run *run, const __u32 probe)
{
	__u32 zero = 0;
	void *inner;

	inner = bpf_map_lookup_elem(&epochs, &zero);
	if (!inner)
		return false;
	run->active = bpf_map_lookup_elem(inner, &zero);
	if (!run->active || !run->active->gate)
		return false;
	run->cpu = bpf_get_smp_processor_id();
	return emit_cell(run, probe);
}

/* A second observation within one run: this probe's program learnt of an event of another probe. */
static __always_inline bool emit_other(struct emit_run *run, struct emit_run *ret,
				       const __u32 probe)
{
	ret->active = run->active;
	ret->cpu = run->cpu;
	return emit_cell(ret, probe);
}

static __always_inline void emit_not_selected(struct emit_run *run)
{
	emit_count(run->cell, not_selected);
}

static __always_inline void emit_folded(struct emit_run *run)
{
	emit_count(run->cell, folded);
}

/* Not selected, and an always-on event that came too often. */
static __always_inline void emit_suppressed(struct emit_run *run)
{
	emit_count(run->cell, not_selected);
	emit_count(run->cell, suppressed);
}

/* Beside the outcome, never instead of it. */
static __always_inline void emit_identity_full(struct emit_run *run)
{
	emit_count(run->cell, identity_full);
}

/*
 * A new object id, 0 if none could be given (counted by the caller as identity_full).
 *
 * Programs of one CPU interrupt each other, and the instruction set of 5.10 has no atomic add that
 * returns the value (5ffa25502b5a came with 5.12). So: read, add atomically without using the result,
 * read again. If after == before + 1, no interrupt's program came between the two reads, and the value
 * is ours alone: whoever came earlier ended with a smaller one, whoever comes later adds to it first.
 * Otherwise somebody came between and our own value is unknown: burn it and try again. Programs that
 * keep interrupting this very window eight times in a row would need eight nested interrupts.
 */
static __always_inline __u64 emit_new_id(struct emit_run *run)
{
	__u32 zero = 0;
	__u64 *counter = bpf_map_lookup_elem(&ids, &zero);

	if (!counter)
		return 0;
	for (int i = 0; i < 8; i++) {
		__u64 before = *(volatile __u64 *)counter, after;

		__sync_fetch_and_add(counter, 1);
		after = *(volatile __u64 *)counter;
		if (likely(after == before + 1))
			return EV_ID(after, run->cpu);
	}
	return 0;
}

/*
 * The observation has no record: file it against its owner, with what byte totals need, or count it as
 * unattributed within a window. val->n, first_ns and last_ns are filled here.
 */
static __always_inline void emit_lost(struct emit_run *run, __u64 id, EMIT_LEDGER_VAL *val,
				      __u64 now)
{
	/* Unidentified observations are filed per CPU, swap apart: what one entry holds has one tag. */
	struct ev_ledger_key key = {
		.id = id,
		.probe = run->probe,
		.cpu = id ? 0 : run->cpu | EMIT_LEDGER_KIND(val),
	};
	struct ev_cell *cell = run->cell;
	EMIT_LEDGER_VAL *old;
	int r;

	emit_count(cell, reserve_failed);
	val->n = 1;
	val->first_ns = now;
	val->last_ns = now;
	if (run->active->epoch & 1)
		r = bpf_map_update_elem(&ledger1, &key, val, BPF_NOEXIST);
	else
		r = bpf_map_update_elem(&ledger0, &key, val, BPF_NOEXIST);
	if (!r) {
		emit_count(cell, filed);
		return;
	}
	old = run->active->epoch & 1 ? bpf_map_lookup_elem(&ledger1, &key)
				     : bpf_map_lookup_elem(&ledger0, &key);
	if (old) {
		__sync_fetch_and_add(&old->n, 1);
		__sync_fetch_and_add(&old->bytes, val->bytes);
		old->last_ns = now;
#ifdef EMIT_LEDGER_JOIN
		EMIT_LEDGER_JOIN(old, val);
#endif
		emit_count(cell, filed);
		return;
	}
	emit_count(cell, unattributed);
	if (!cell->unattributed_first_ns)
		cell->unattributed_first_ns = now;
	cell->unattributed_last_ns = now;
}

/* An observation that no ledger entry can describe. */
static __always_inline void emit_lost_unattributed(struct emit_run *run, __u64 now)
{
	struct ev_cell *cell = run->cell;

	emit_count(cell, reserve_failed);
	emit_count(cell, unattributed);
	if (!cell->unattributed_first_ns)
		cell->unattributed_first_ns = now;
	cell->unattributed_last_ns = now;
}

/* This CPU's ring. The verifier checks the NULL in emit_reserve(). */
static __always_inline void *emit_ring(struct emit_run *run)
{
	__u32 index = emit_n_rings == 1 ? 0 : run->cpu / emit_ring_cpus % emit_n_rings;

	return bpf_map_lookup_elem(&rings, &index);
}

/* size is a compile-time constant. A non-NULL result must reach emit_submit(). */
#define emit_reserve(ring, size) ((ring) ? bpf_ringbuf_reserve((ring), (size), 0) : NULL)

static __always_inline bool emit_wants_wakeup(struct emit_run *run, void *ring)
{
	struct ev_control *shared;
	__u32 zero = 0;

	if (run->cell->emitted & 63)
		return false;
	shared = bpf_map_lookup_elem(&control, &zero);
	if (!shared || !shared->armed ||
	    bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) <= emit_wake_bytes)
		return false;
	shared->armed = 0;
	return true;
}

static __always_inline void emit_submit(struct emit_run *run, void *ring, void *record)
{
	emit_count(run->cell, emitted);
	bpf_ringbuf_submit(record,
			   emit_wants_wakeup(run, ring) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}
