/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.h - what every verb of iotracectl gets, and the table of verbs.
 *
 * One file per verb (verb-<name>.c); main.c parses the options that mean the same everywhere,
 * then calls the verb (verbs.c) with what is left. Verbs return an exit code below; libraries never print.
 */
#pragma once

#include "format/scan.h"

/* Documented exit codes (service.md): verify and explain also use enum iot_verdict_code. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_ERROR = 1,
	CTL_USAGE = 2,
	CTL_NO_DAEMON = 3,
	CTL_DENIED = 4,
	/* explain --probe: what was asked about was there. (Proved absent: 0; not known: 11.) */
	CTL_PRESENT = 12,
};

enum ctl_color {
	CTL_COLOR_AUTO = 0,
	CTL_COLOR_ALWAYS = 1,
	CTL_COLOR_NEVER = 2,
};

/* What `report --by` ranks. */
enum ctl_by {
	CTL_BY_NONE = 0,
	CTL_BY_FILE = 1,
	CTL_BY_PROCESS = 2,
	CTL_BY_CGROUP = 3,
	CTL_BY_DEVICE = 4,
	CTL_BY_ORIGIN = 5,
	CTL_N_BY,
};

struct ctl {
	const char *socket;
	bool json;
	bool no_pager;
	enum ctl_color color;	  /* NO_COLOR honoured by ctl_color_enabled() */
	struct iot_filter filter; /* --since --until --dev --op --swap --pid --comm --min-latency */
	const char *format;	  /* export --format */
	const char *anonymize;	  /* export --anonymize */
	struct iot_anonymizer *anonymizer; /* made of it; what is read is anonymized */
	const char *output;		   /* --output */
	bool strict;
	bool force;		   /* export */
	bool verbose;		   /* verify */
	enum ctl_by by;		   /* report --by */
	uint32_t top;		   /* report --top; 0 = not given */
	const char *resolve;	   /* report --resolve */
	const char *logical_bytes; /* report --logical-bytes */
	bool cacheability;	   /* report */
	const char *html;	   /* report --html */
	bool per_capture;	   /* drops */
	enum iot_stream stream;	   /* follow; 0 = all */
	const char *state;	   /* archive, segments --state */
	bool once;		   /* archive */
	bool chain;		   /* segments */
	uint64_t interval_ns;	   /* top; 0 = not given */
	uint64_t count;		   /* top; 0 = not given */
	uint64_t segment_bytes;	   /* import; 0 = not given */
};

/* What a verb is and takes beside the options of all. */
#define CTL_LIVE (1U << 0)	    /* asks the daemon */
#define CTL_TAKES_FILTERS (1U << 1) /* all of struct iot_filter */
#define CTL_TAKES_TIME (1U << 2)    /* of the filters, --since and --until */
#define CTL_TAKES_OUTPUT (1U << 3)
#define CTL_TAKES_EXPORT (1U << 4) /* --anonymize --strict --force */
#define CTL_TAKES_VERBOSE (1U << 5)
#define CTL_TAKES_REPORT \
	(1U << 6)		     /* --by --top --resolve --logical-bytes --cacheability
					    --html */
#define CTL_TAKES_FLOW (1U << 7)     /* of the filters, --flow and --probe */
#define CTL_TAKES_DROPS (1U << 8)    /* --per-capture */
#define CTL_TAKES_STREAM (1U << 9)   /* --stream */
#define CTL_TAKES_STATE (1U << 10)   /* --state */
#define CTL_TAKES_ARCHIVE (1U << 11) /* --once */
#define CTL_TAKES_CHAIN (1U << 12)   /* --chain */
#define CTL_TAKES_TOP (1U << 13)     /* --interval --count */
#define CTL_TAKES_FORMAT (1U << 14)  /* --format */
#define CTL_TAKES_IMPORT (1U << 15)  /* --segment-size */

struct ctl_verb {
	const char *name;
	const char *args;				  /* usage: "[PATH...]" */
	const char *summary;				  /* one line for --help */
	int (*run)(struct ctl *c, int argc, char **argv); /* argv[0] = verb */
	unsigned int takes;				  /* CTL_* above */
	const char *help;				  /* lines for `help VERB` */
	const char *example;
};

/* live verbs: need the daemon */
int verb_status(struct ctl *c, int argc, char **argv);
int verb_inflight(struct ctl *c, int argc, char **argv);
int verb_top(struct ctl *c, int argc, char **argv);
int verb_rotate(struct ctl *c, int argc, char **argv);
int verb_flush(struct ctl *c, int argc, char **argv);
int verb_probes(struct ctl *c, int argc, char **argv);
int verb_config(struct ctl *c, int argc, char **argv);
/* offline verbs: files, directories, archive trees; default path = the state directory */
int verb_segments(struct ctl *c, int argc, char **argv);
int verb_cat(struct ctl *c, int argc, char **argv);
int verb_follow(struct ctl *c, int argc, char **argv);
int verb_report(struct ctl *c, int argc, char **argv);
int verb_verify(struct ctl *c, int argc, char **argv);
int verb_recover(struct ctl *c, int argc, char **argv);
int verb_import(struct ctl *c, int argc, char **argv);
int verb_export(struct ctl *c, int argc, char **argv);
int verb_replay(struct ctl *c, int argc, char **argv);
int verb_explain(struct ctl *c, int argc, char **argv);
int verb_archive(struct ctl *c, int argc, char **argv);
int verb_drops(struct ctl *c, int argc, char **argv);

/* "iotracectl: <fmt>" on stderr; returns code, for `return ctl_fail(CTL_ERROR, ...)`. */
int ctl_fail(int code, const char *fmt, ...) IOT_PRINTF(2, 3);
bool ctl_color_enabled(const struct ctl *c);
/* Starts the pager on a terminal; stdout is the pager's input afterwards. */
void ctl_pager_open(const struct ctl *c);
void ctl_pager_close(void);
/* Columns of the terminal ($COLUMNS, or that of stdout, also behind the pager); 0: none. */
size_t ctl_columns(void);

/* client.c: one call on the control socket. 0 and *ret_parameters (caller puts), or a CTL_* exit
 * code with the message printed already. */
struct json_object;
int ctl_call(struct ctl *c, const char *method, struct json_object *parameters,
	     struct json_object **ret_parameters) IOT_MUST_CHECK;
