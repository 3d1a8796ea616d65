/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * import.h - traces of other tools as segments: `iotracectl import`.
 *
 *   import-input       files, blocks and lines of them, and which place an error is at
 *   import-blktrace    blktrace's binary files         \
 *   import-blkparse    blkparse's text                  } events, into a sort by time (import-collect)
 *   import-perf        perf script's text              /
 *   import-pair        events in order of time, into requests
 *   import-write       requests, into sealed segments
 *
 * One promise over all: nothing that the source has is dropped without a word, and what it does not tell is
 * null. So an event that no request can be made of is counted, a request without its end is one in flight,
 * and the verdict on all of it is never better than unknown.
 */
#pragma once

#include "daemon/ctl/export.h"
#include "format/books.h"
#include "format/fingerprint.h"

enum import_format {
	IMPORT_BLKTRACE = 1,
	IMPORT_BLKPARSE = 2,
	IMPORT_PERF = 3,
};
const char *import_format_name(enum import_format format); /* "blktrace", "blkparse", "perf" */

/* ---- import-input.c ---- */

struct import_input {
	const char *path; /* for messages; borrowed */
	int fd;
	char *buf;
	size_t at;
	size_t n;
	uint64_t offset; /* of buf[at] in the file */
	uint64_t line;	 /* of the line that was given last, from 1 */
	bool end;
	struct iot_fingerprint *hash; /* sees every byte once; may be NULL */
};
#define IMPORT_BLOCK_MAX 65536U /* bytes that can be had at once; a longer line is an error */

/* "-": standard input. in->path is borrowed from the caller. */
int import_input_open(const char *path, struct iot_fingerprint *hash, struct import_input *ret,
		      struct iot_error *err) IOT_MUST_CHECK;
void import_input_done(struct import_input *in);
/* Up to n bytes that come next, without taking them: fewer only at the end of the file. */
int import_input_peek(struct import_input *in, size_t n, const char **ret, size_t *ret_n,
		      struct iot_error *err) IOT_MUST_CHECK;
void import_input_take(struct import_input *in, size_t n); /* n: at most what was peeked */
/* The next line, NUL instead of its newline, valid until the next call. Positive IMPORT_END. */
#define IMPORT_END 1
int import_input_line(struct import_input *in, char **ret, struct iot_error *err) IOT_MUST_CHECK;
/* "FILE: line N: ..." */
int import_line_error(const struct import_input *in, const char *what, struct iot_error *err);

/*
 * Paths of the trace that the arguments name: files as they are; NAME, if there is none, for NAME.blktrace.0 and its
 * neighbours; a directory for all *.blktrace.* in it. In an order of their own: by name, then by CPU.
 */
struct import_paths {
	char **paths;
	size_t n;
};
int import_paths_find(char **args, size_t n, struct import_paths *ret,
		      struct iot_error *err) IOT_MUST_CHECK;
void import_paths_done(struct import_paths *p);
/* What the file begins with. -EBADMSG: nothing known. Takes nothing. */
int import_detect(struct import_input *in, enum import_format *ret,
		  struct iot_error *err) IOT_MUST_CHECK;

/* ---- import-collect.c ---- */

/* What an event says happened; those of blktrace (linux/blktrace_api.h) as far as requests are made of them. */
enum import_act {
	IMPORT_QUEUE = 1,      /* Q: a bio */
	IMPORT_BACKMERGE = 2,  /* M: a bio, or a request, behind a request */
	IMPORT_FRONTMERGE = 3, /* F */
	IMPORT_GETRQ = 4,      /* G */
	IMPORT_REQUEUE = 6,    /* R */
	IMPORT_ISSUE = 7,      /* D */
	IMPORT_COMPLETE = 8,   /* C */
	IMPORT_INSERT = 12,    /* I */
	IMPORT_START = 32,     /* perf: block_io_start, where accounting begins */
	IMPORT_PROCESS = 33,   /* the name of a pid, from now on */
};

/* One event as a parser gives it. */
struct import_event {
	uint64_t time_ns; /* of the source's clock */
	uint64_t sector;
	uint32_t dev;
	uint32_t cpu;
	uint32_t pid;
	uint32_t tgid; /* goes with comm; 0: not told */
	uint32_t bytes;
	uint32_t flags; /* enum iot_flag, those below 1 << 16 */
	uint8_t act;	/* enum import_act */
	uint8_t op;	/* enum iot_op */
	bool flush_bio; /* op flush: not the flush itself, but the empty write that asked for it */
	int error;
	const char *comm; /* NULL: not told; up to IOT_COMM_LEN bytes, or a NUL */
};
/* In bt_event.action: act | op << 8 | flush_bio << 15 | flags << 16. */
#define IMPORT_ACT(a) ((a)&0xffU)
#define IMPORT_OP(a) ((uint8_t)((a) >> 8 & 0x7fU))
#define IMPORT_FLUSH_BIO(a) ((a) >> 15 & 1U)
#define IMPORT_FLAGS(a) ((a) >> 16)
/* op, bio and flags of a request by the letters of rwbs. false: they are none. */
bool import_rwbs(const char *letters, size_t n, struct import_event *e);

#define IMPORT_MAX_DEVICES 4096U
#define IMPORT_MAX_WINDOWS 4096U
#define IMPORT_MAX_NAMES (1U << 20)

struct import_device {
	uint32_t dev;
	char name[64];	    /* "": not told */
	uint32_t *sequence; /* number of the last event of each CPU + 1; 0 = none yet */
	uint64_t *last_ns;
	uint32_t n_cpus;
	bool own; /* blkparse: has events of other kinds than remaps */
};

/* blkparse: a remap of which it is not known yet by whose numbers it is counted. */
struct import_remap {
	uint32_t dev, from;
	uint32_t cpu;
	uint32_t sequence;
	uint64_t time_ns;
};
#define IMPORT_MAX_REMAPS 64U

/* What an event's number of a name stands for; without holes, as it is hashed. */
struct import_name {
	char comm[IOT_COMM_LEN];
	uint32_t tgid;
};

struct import {
	enum import_format format;
	struct bt_sort *sort;
	struct import_device *devices;
	uint32_t n_devices;
	uint32_t last_device;	   /* that was asked for */
	struct import_name *names; /* number - 1 */
	uint32_t n_names;
	uint32_t *name_slots; /* number, 0 = free; a power of two */
	uint32_t n_name_slots;
	uint64_t seed;
	/* what the source tells */
	uint64_t n_files;
	uint64_t n_events;  /* all */
	uint64_t n_ignored; /* of these, such as no request is made of: plugs, remaps, messages */
	uint64_t n_names_dropped;
	uint64_t n_disorder; /* events whose number is not above the one before */
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t n_cpus;
	bool dated;
	uint64_t realtime_offset_ns; /* wall clock - the source's clock */
	/* what it tells that it lost */
	struct iot_window *windows;
	size_t n_windows;
	bool in_summary; /* blkparse: its sums have begun */
	struct import_remap remaps[IMPORT_MAX_REMAPS];
	size_t n_remaps;
	uint64_t *cpu_ns;   /* perf: of each CPU's line before, in this file; 0 = none */
	size_t open_window; /* 1 + the last one, whose end is the next event's time; 0 = none */
	uint64_t n_lost;
	bool lost_unknown; /* some of it without a number */
};
void import_done(struct import *im);
int import_add(struct import *im, const struct import_event *e) IOT_MUST_CHECK;
/* An event that no request is made of. */
void import_ignore(struct import *im);
/* Number of an event of (dev, cpu), from 1 without holes as the tools give them. */
int import_sequence(struct import *im, uint32_t dev, uint32_t cpu, uint32_t sequence,
		    uint64_t time_ns) IOT_MUST_CHECK;
/* The source says that n (IOT_COUNT_UNKNOWN) events are not in it, between t0 and t1 (0: the next event;
 * UINT64_MAX: the end). */
int import_lost(struct import *im, uint64_t n, uint32_t cpu, uint64_t t0_ns,
		uint64_t t1_ns) IOT_MUST_CHECK;
int import_device(struct import *im, uint32_t dev, uint32_t *ret) IOT_MUST_CHECK;
void import_device_name(struct import *im, uint32_t dev, const char *name);
/* For bt_sort: by time; what ends comes after what begins. */
int import_order(const struct bt_event *a, const struct bt_event *b);

/* ---- parsers: one file each, to its end ---- */

int import_blktrace(struct import *im, struct import_input *in,
		    struct iot_error *err) IOT_MUST_CHECK;
int import_blkparse(struct import *im, struct import_input *in,
		    struct iot_error *err) IOT_MUST_CHECK;
int import_perf(struct import *im, struct import_input *in, struct iot_error *err) IOT_MUST_CHECK;
/* One line. Positive IMPORT_END: no event of this format. -EBADMSG: one that is broken, *ret_what says how. */
int import_blkparse_line(struct import *im, const char *line, const char **ret_what) IOT_MUST_CHECK;
int import_perf_line(struct import *im, const char *line, const char **ret_what) IOT_MUST_CHECK;

/* A line that is no event and none need be: a heading, a sum, what was lost. */
typedef bool (*import_other_fn)(struct import *im, const char *line);
/* Every line through fn; one that neither it nor other takes is an error. */
int import_lines(struct import *im, struct import_input *in,
		 int (*fn)(struct import *im, const char *line, const char **ret_what),
		 import_other_fn other, struct iot_error *err) IOT_MUST_CHECK;

/* "7,0" or so; numbers of text. Each advances *p behind what it took; false: not that, and *p as it was. */
bool import_text_u64(const char **p, uint64_t max, uint64_t *ret);
bool import_text_word(const char **p, const char *word);
bool import_text_dev(const char **p, uint32_t *ret);
/* Seconds with a fraction; nanoseconds. */
bool import_text_time(const char **p, uint64_t *ret_ns);
static inline void import_text_blanks(const char **p)
{
	while (**p == ' ' || **p == '\t')
		(*p)++;
}

/* ---- import-pair.c ---- */

#define IMPORT_MAX_OPEN (1U << 17) /* requests begun and not ended, held at once */

struct import_counts {
	uint64_t requests;
	uint64_t only_end; /* of these: nothing else was seen of them */
	uint64_t parts;	   /* ends of a part of a request; not in requests */
	uint64_t
		ambiguous; /* ended while others of the same place were in flight: first in, first out */
	uint64_t merges_unmatched; /* into a request that was not seen */
	uint64_t set_aside;	   /* too many were open: the oldest are in flight for good */
	uint64_t names_dropped;	   /* of a pid that there was no room for */
};

struct import_pair;
/* What becomes of requests. */
struct import_output {
	int (*done)(void *arg, const struct iot_request *r);
	/* Too many are open: note them all as in flight (import_pair_open()); the older half is then forgotten. */
	int (*crowded)(void *arg);
	void *arg;
};
int import_pair_new(const struct import *im, const struct import_output *out,
		    struct import_pair **ret) IOT_MUST_CHECK;
struct import_pair *import_pair_free(struct import_pair *p);
int import_pair_add(struct import_pair *p, const struct bt_event *e) IOT_MUST_CHECK;
/* What is in flight now; the caller's to free. */
int import_pair_open(const struct import_pair *p, struct iot_request **ret,
		     size_t *ret_n) IOT_MUST_CHECK;
const struct import_counts *import_pair_counts(const struct import_pair *p);

static inline void import_pair_freep(struct import_pair **p)
{
	*p = import_pair_free(*p);
}

/* ---- import-write.c ---- */

struct import_writer;
/* Segments below dirfd, each of about max_bytes. */
int import_writer_new(struct import *im, int dirfd, const uint8_t capture_id[16],
		      uint64_t max_bytes, struct import_writer **ret) IOT_MUST_CHECK;
struct import_writer *import_writer_free(struct import_writer *w);
/* All events of im through p's rules into sealed segments; -errno with err. */
int import_writer_run(struct import_writer *w, struct import_counts *ret_counts,
		      struct iot_error *err) IOT_MUST_CHECK;
uint64_t import_writer_segments(const struct import_writer *w);
uint64_t import_writer_n_open(const struct import_writer *w); /* at the end */

static inline void import_writer_freep(struct import_writer **w)
{
	*w = import_writer_free(*w);
}
