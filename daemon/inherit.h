/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inherit.h - what a daemon leaves to its successor and what it finds itself: kernel objects
 * (daemon/probes-adopt.c) and state (daemon/adopt.h), kept by the service manager (daemon/fdstore.h).
 *
 * Names in the store are "<stream>.<wire>.<object>.<what>", the two hashes saying what a successor must have
 * been built with to read the state and the rings (wire) and to go on with the programs (object). All or
 * nothing: each stream has a state, and these are sent last and name all streams of the capture. So without
 * one of them nothing is complete, and what does not fit is given back and forgotten; the capture then ends
 * as it would without a store, torn.
 *
 * Beside them lies the program itself, "<stream>.<wire>.<object>.exe": a build with other programs or another
 * layout has it finish the capture, since only it knows how to read the rings.
 */
#pragma once

#include "config/config.h"
#include "daemon/adopt.h"
#include "daemon/fdstore.h"
#include "daemon/probes.h"
#include "daemon/store.h"

enum inherit_how {
	INHERIT_NOTHING = 0,  /* a capture of our own begins */
	INHERIT_CONTINUE = 1, /* the predecessor's goes on */
	INHERIT_FINISH = 2,   /* it is drained and sealed exactly, but cannot go on */
	INHERIT_ELSEWHERE =
		3, /* the same, by the program that has recorded it: this one cannot read it */
};

#define INHERIT_STREAMS 2U

struct inherit_stream {
	struct adopt *
		adopt; /* of the capture that is going on; NULL: nobody would keep it, or not of it */
	struct probes_fd *fds; /* borrowed from the store */
	size_t n_fds;
	bool over; /* its last segment is sealed already */
};

struct inherit {
	struct fdstore store;				/* what the manager keeps now */
	struct inherit_stream streams[INHERIT_STREAMS]; /* block, packet */
	int exe;					/* INHERIT_ELSEWHERE: the program */
	enum inherit_how how;
	char why[192]; /* not CONTINUE, although something was there; or "" */
};

/* Looks at what was handed on. Whatever that is, a start is possible. */
void inherit_look(struct inherit *in, const struct iot_config *c);
/* Gives back everything: what was inherited ends here. */
void inherit_drop(struct inherit *in);
/* A new capture begins: makes the state that its successor will find. */
int inherit_begin(struct inherit *in, const struct iot_config *c,
		  const uint8_t capture_id[16]) IOT_MUST_CHECK;
/*
 * Makes probes of what was inherited, by stream; then in->how says what to do with them. Whatever goes wrong, what
 * was inherited is not usable.
 */
int inherit_probes(struct inherit *in, const struct iot_config *c,
		   struct probes *ret[INHERIT_STREAMS], struct iot_error *err) IOT_MUST_CHECK;
/* INHERIT_FINISH: closes the gates, drains, seals. Takes probes. *ret_name gets the last segments. */
int inherit_finish(struct inherit *in, const struct iot_config *c, struct store *store,
		   struct probes *probes[INHERIT_STREAMS], char *ret_name, size_t size,
		   struct iot_error *err) IOT_MUST_CHECK;
/* Hands everything on: from now on a successor goes on where we end. */
int inherit_leave(struct inherit *in, struct probes *const p[INHERIT_STREAMS]) IOT_MUST_CHECK;
/* A successor may go on with this capture, as often as it takes. */
void inherit_went_on(struct inherit *in);
/* INHERIT_ELSEWHERE: has the predecessor's program finish the capture, and waits. */
int inherit_finish_elsewhere(const struct inherit *in) IOT_MUST_CHECK;
/* Of the state: where the segments are. */
void inherit_state_dir(const struct inherit *in, char *ret, size_t size);
void inherit_capture(const struct inherit *in, uint8_t ret_id[16]);
/* Does nothing where nothing is handed on. */
void inherit_set_dead(struct inherit *in);
/* NULL: is being changed. */
void inherit_set_config(struct inherit *in, const struct iot_config *c);
void inherit_done(struct inherit *in);

/* Of what the maps' sizes and the filter come from; never 0. */
uint64_t inherit_config_hash(const struct iot_config *c);
