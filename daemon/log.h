/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - the daemon's one way to say something: a line on stderr.
 *
 * Under systemd stderr is the journal (JOURNAL_STREAM names it); lines then carry the "<N>" level
 * prefix and nothing the journal adds itself; events go there with their fields. Elsewhere they carry the program's name and the level in
 * words. One line is one write(2), so that lines of threads never mix. Only main.c, the manager and
 * the control server log; the modules below them return errors.
 *
 * What is logged is a transition (started, lost the first record, recovered from an error), never a
 * state; what can repeat anyway goes through a log_limit.
 */
#pragma once

#include <syslog.h>

#include "daemon/log-ids.h"
#include "format/base.h"

/* Finds out whether stderr is the journal. Before the first line; without it lines are plain. */
void log_open(void);
/* "error", "warning", "info" or "debug": what is less urgent is dropped. -EINVAL other names. */
int log_set_level(const char *name) IOT_MUST_CHECK;
void log_line(int level, const char *fmt, ...) IOT_PRINTF(2, 3);

/* What a program can select by, in the journal; absent: NULL, has_count false. */
struct log_fields {
	const char *stream;  /* IOTRACED_STREAM */
	const char *capture; /* IOTRACED_CAPTURE */
	const char *segment; /* IOTRACED_SEGMENT */
	bool has_count;
	uint64_t count; /* IOTRACED_COUNT */
	int error;	/* ERRNO: a negative errno; 0: none */
};
/* A line with a MESSAGE_ID (log-ids.h) and fields, where stderr is the journal; else a line as any other. */
void log_event(int level, const char *id, const struct log_fields *fields, const char *fmt, ...)
	IOT_PRINTF(4, 5);

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* At most `burst` lines in `interval_ns`. Zero-initialise the rest. */
struct log_limit {
	uint64_t interval_ns;
	unsigned int burst;
	uint64_t begin_ns;
	unsigned int n;
	unsigned int suppressed;
};
/* True: log. *ret_suppressed (may be NULL) = lines dropped since the last one that passed. */
bool log_limit_pass(struct log_limit *l, uint64_t now_ns, unsigned int *ret_suppressed);

/* Pure, for tests: does JOURNAL_STREAM ("dev:inode") name this file? */
bool log_is_journal(const char *journal_stream, uint64_t dev, uint64_t ino);
/* Pure: the line as written, with newline; cut to size with its newline kept. */
size_t log_format(char *buf, size_t size, bool journal, int level, const char *text);
/* Pure: "NAME=value" texts, one behind the other in buf; returns how many, at most max. What does not fit is left out. */
size_t log_fields_format(char *buf, size_t size, int level, const char *id,
			 const struct log_fields *fields, const char *text, const char *ret[],
			 size_t max);
