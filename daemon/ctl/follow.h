/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * follow.h - the files of a running daemon, read as they grow: of `follow` and `top`.
 *
 * The daemon appends whole blocks to NAME.open, never changes a byte that it has written, and renames the file
 * to NAME.iot when its footer is in it; the next segment's file is there before. So following is reading: a
 * position per stream, and nothing that the daemon would have to wait for. A reader that is slower than the
 * record falls behind in the files, and misses only what retention deletes before it was read, which it is told.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"

#define FOLLOW_STREAMS 2U

struct follow_position {
	enum iot_stream stream;
	bool unsealed;	 /* the segment was there, and had no footer */
	uint64_t seq;	 /* of the segment being read; 0: none yet */
	uint64_t offset; /* of its next block */
	uint64_t size;	 /* of its file when it was looked at */
};

struct follow_files;
struct follow_calls {
	/* A block of records, in the order of the file. Negative errno ends the reading. */
	int (*block)(struct follow_files *f, struct iot_segment *s, const struct iot_batch *b,
		     enum iot_stream stream);
	/* The footer is there. May be NULL. */
	void (*sealed)(struct follow_files *f, const struct follow_position *at,
		       struct iot_segment *s);
	/* ": damaged block ...", " to 7: deleted ...": behind the name of the segment. */
	void (*missing)(struct follow_files *f, const struct follow_position *at, const char *what);
};

struct follow_files {
	const struct follow_calls *calls;
	const char *dir; /* borrowed */
	char capture[CTL_HUMAN_MAX];
	uint64_t since_ns; /* CLOCK_REALTIME: blocks before are passed over; 0: from now on */
	struct follow_position at[FOLLOW_STREAMS];
	size_t n_streams;
	struct iot_batch *batch[FOLLOW_STREAMS];
	struct iot_error err;
	bool stop;	 /* set by a call: no further block */
	bool incomplete; /* something is missing that the footers do not tell */
};

/* calls, dir, capture and since_ns are set before. stream 0: both. Passes over what is there unless since_ns. */
int follow_files_open(struct follow_files *f, enum iot_stream stream) IOT_MUST_CHECK;
/* Up to where the files go now. Negative errno with f->err. */
int follow_files_read(struct follow_files *f) IOT_MUST_CHECK;
void follow_files_done(struct follow_files *f);
