/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * import-entry.h - the requests that an import has seen begin and not end: found by where they begin, and while they
 * can still grow also by where they end. Internal to import-pair.c, and to import-entry.c, which keeps them.
 */
#pragma once

#include "daemon/ctl/import.h"

enum import_state {
	IMPORT_QUEUED = 1U << 0, /* a bio, which may be merged or become a request */
	IMPORT_HELD = 1U << 1,	 /* a request that can grow: G, I */
	IMPORT_ISSUED = 1U << 2,
	IMPORT_REQUEUED = 1U << 3,
};

struct import_link {
	uint32_t prev, next; /* entry + 1; 0 = none */
};

struct import_entry {
	uint64_t sector; /* what is still to be done begins here */
	uint64_t end;	 /* held: behind its data; it is in the list of ends then */
	uint64_t first_sector;
	uint64_t queue_ns, start_ns, insert_ns, issue_ns, issue_last_ns;
	uint64_t serial;
	struct import_link by_begin, by_end;
	uint32_t device, bytes, left, done, flags, pid, comm, issue_cpu;
	uint16_t requeues, merges;
	uint8_t op, state, submitter;
	bool flush_bio, partial;
};

struct import_list {
	uint32_t head, tail; /* entry + 1 */
};

struct import_entries {
	struct import_entry *all;
	uint32_t free;	 /* entry + 1, by by_begin.next */
	uint32_t n_used; /* entries behind these were never taken */
	uint32_t n;
	uint64_t serial;
	struct import_list *begins, *ends;
	uint64_t seed;
};
int import_entries_init(struct import_entries *t) IOT_MUST_CHECK;
void import_entries_done(struct import_entries *t);
/* One of what e says, in no list yet. NULL: there are IMPORT_MAX_OPEN. */
struct import_entry *import_entry_new(struct import_entries *t, const struct bt_event *e,
				      uint8_t state);
/* While its place or state changes it is in no list. */
void import_entry_link(struct import_entries *t, struct import_entry *x);
void import_entry_unlink(struct import_entries *t, struct import_entry *x);
void import_entry_drop(struct import_entries *t, struct import_entry *x);
/* Drops the older half; returns how many these were. */
uint32_t import_entries_halve(struct import_entries *t);
/* The oldest of e's place, operation and one of the states; one of as many bytes goes before, and with exact nothing
 * else will do. *ret_more (may be NULL) becomes true if there are others. NULL: none. */
struct import_entry *import_entry_find(struct import_entries *t, const struct bt_event *e,
				       unsigned int states, bool exact, bool *ret_more);
/* A held one whose data end where e's begin. */
struct import_entry *import_entry_find_end(struct import_entries *t, const struct bt_event *e);
