/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl-util.h - what the verbs of iotracectl share: options, input paths, output streams and files,
 * tables, and the words for a verdict.
 *
 * The verbs print; nothing here does, except the functions that say so. An output error is sticky:
 * it is noted once by the stream, every later write is dropped, and the caller sees it at the end,
 * so that a full disk is reported once and a closed pipe (the reader has seen enough) not at all.
 */
#pragma once

#include "daemon/ctl/ctl.h"

/* Room for a number, time or id as text. */
#define CTL_HUMAN_MAX 48

/* ---- parse-time.c ---- */

/* "now" in CLOCK_REALTIME ns. Forms: see `iotracectl --help`. -EINVAL, -ERANGE. */
int ctl_parse_time(const char *s, uint64_t now_ns, uint64_t *ret_ns) IOT_MUST_CHECK;
/* ---- parse-flow.c ---- */

/* "[PROTO] [END] [>|<> END]", END = ADDRESS, ADDRESS:PORT, [ADDRESS]:PORT or :PORT. -EINVAL. */
int ctl_parse_flow(const char *s, struct iot_flow_match *ret, struct iot_error *err) IOT_MUST_CHECK;

/* ---- options.c ---- */

/* The candidate closest to word, if one is close enough to be a slip of the finger; or NULL. */
const char *ctl_suggest(const char *word, const char *const *candidates, size_t n);

#define CTL_TOP_MAX 10000U
const char *ctl_by_name(enum ctl_by by);

#define CTL_PARSED_HELP 1
#define CTL_PARSED_VERSION 2
/*
 * Options before and after the verb mean the same. On success argv[*ret_first..argc) are the verb
 * and its operands (argv is permuted). Positive: CTL_PARSED_*. -EINVAL with err: usage.
 */
int ctl_parse_options(struct ctl *c, int argc, char **argv, int *ret_first,
		      struct iot_error *err) IOT_MUST_CHECK;
/* Lines of --help, see verbs.c. */
extern const char ctl_help_options[];
extern const char ctl_help_time[];
extern const char ctl_help_filters[];
extern const char ctl_help_flow[];
extern const char ctl_help_verb_options[];

/* ---- verbs.c ---- */

/* NULL: there is none, and it was said. */
const struct ctl_verb *ctl_find_verb(const char *name);
/* CTL_USAGE, said, for an option that verb would ignore, and for a path that is empty. */
int ctl_check_usage(const struct ctl *c, const struct ctl_verb *verb, int argc,
		    char **argv) IOT_MUST_CHECK;
void ctl_help(void);
void ctl_help_verb(const struct ctl_verb *v);

/* ---- inputs.c ---- */

const char *ctl_state_dir(void);
/* Segments by c's filter, and anonymized if c says so. Negative errno. */
int ctl_scan_paths(const struct ctl *c, const char *const *paths, size_t n, struct iot_scan **ret,
		   struct iot_error *err) IOT_MUST_CHECK;
/* The same of argv[1..argc) or the state directory. */
int ctl_scan_try(const struct ctl *c, int argc, char **argv, struct iot_scan **ret,
		 struct iot_error *err) IOT_MUST_CHECK;
/* For another scan of what was read before without a failure: -EIO with err if some of it was not read now. */
int ctl_scan_whole(const struct iot_scan *scan, struct iot_error *err) IOT_MUST_CHECK;
/* Prints why and gives the exit code. */
int ctl_scan_failed(int r, const struct iot_error *err);
/* Both in one. CTL_OK or a CTL_* code. */
int ctl_scan_open(const struct ctl *c, int argc, char **argv, struct iot_scan **ret) IOT_MUST_CHECK;

/* ---- progress.c ---- */

/* How far a pass over all records is, on stderr if that is a terminal and out_fd is not one. */
struct ctl_progress {
	uint64_t total; /* records of sealed segments */
	uint64_t next_ns;
	bool shown;
};
void ctl_progress_begin(struct ctl_progress *p, struct iot_scan *scan, int out_fd);
void ctl_progress_end(struct ctl_progress *p);

/* ---- inputs.c ---- */

/* After a pass that gave n_requests: says on stderr if --dev names no device of the record. */
void ctl_note_device(const struct ctl *c, const struct iot_scan *scan, uint64_t n_requests);
/* Some filter is on. */
bool ctl_filter_active(const struct iot_filter *f);
/* One that losses do not have: a lost request left no pid, comm or latency behind. */
bool ctl_filter_beyond_losses(const struct iot_filter *f);

struct iot_render;

/* Names and identity of a record's segment, remembered from record to record. */
struct ctl_naming {
	struct iot_render *render; /* filled by ctl_naming_set */
	const struct iot_segment *segment;
	char part_name[80];
	struct {
		uint32_t dev;
		bool valid;
		bool known;
		char name[80];
	} cache[256];
};
/* Sets render's names, capture and time for r. Returns the disk's name or NULL. */
const char *ctl_naming_set(struct ctl_naming *n, struct iot_segment *s,
			   const struct iot_request *r);

struct iot_render_packet;

/* The same for an observation of a packet. */
struct ctl_packet_naming {
	struct iot_render_packet *render;
	const struct iot_segment *segment;
	char probe[64];
	uint16_t probe_id;
	bool probe_valid;
};
void ctl_packet_naming_set(struct ctl_packet_naming *n, const struct iot_segment *s,
			   const struct iot_packet *p);
/* Drop reason by its number; NULL = no name. */
const char *ctl_drop_reason(const struct iot_segment *s, int32_t code);

/* ---- machine.c ---- */

/* Segments with this machine id were recorded here. */
bool ctl_this_machine(const uint8_t machine_id[16]);
/* SIZE, or @FILE with one number a line, added up; "@-" is standard input. -EINVAL and others with err. */
int ctl_logical_bytes(const char *arg, uint64_t *ret, struct iot_error *err) IOT_MUST_CHECK;

/* ---- unsealed.c ---- */

enum ctl_writer {
	CTL_WRITER_NONE = 0,  /* none, or one of another capture */
	CTL_WRITER_MAYBE = 1, /* one that does not say what it writes */
	CTL_WRITER_THIS = 2,
};
/* Does a process own the state directory that s lies in, and record the capture of s (daemon/store.c)?
 * *ret_pid (may be NULL): which; 0 if it is one of another PID namespace. */
enum ctl_writer ctl_segment_writer(const struct iot_segment *s, pid_t *ret_pid);
/* The capture (32 hex digits) that a running daemon writes into a state directory; false if none does. */
bool ctl_directory_writer(const char *dir, char ret_capture[CTL_HUMAN_MAX]);
/* A *.open file that a running daemon is writing. */
bool ctl_being_recorded(const struct iot_segment *s);
/* Segments without a footer: what they lost is not filed yet. */
size_t ctl_n_unsealed(const struct iot_scan *scan);
/* All losses are counted: no segment of the verdict is unsealed, recovered or damaged. */
bool ctl_losses_final(const struct iot_scan *scan, const struct iot_verdict *v);
/* iot_verify_segment and iot_scan_verdict, with being_recorded and the words for it, and with what no capture
 * recorded of a time, or left out of a device, that was asked for. */
int ctl_verify_segment(struct iot_segment *s, struct iot_verdict *ret,
		       struct iot_error *err) IOT_MUST_CHECK;
int ctl_scan_verdict(struct iot_scan *scan, bool full, struct iot_verdict *ret,
		     struct iot_error *err) IOT_MUST_CHECK;

/* ---- cover.c ---- */

/* What a capture recorded of its machine, by CLOCK_REALTIME; UINT64_MAX: its end is not known. */
struct ctl_span {
	const struct iot_segment_info *info;
	uint64_t first_ns;
	uint64_t last_ns;
};
/* Adds to the reasons what of f's time none of the spans covers, by machine and stream. Sorts them. */
void ctl_cover_check(const struct iot_filter *f, struct ctl_span *spans, size_t n,
		     struct iot_verdict *why);
/* Adds a reason if the wall clock was set while the segment was recorded, and f asks about that time. */
void ctl_step_check(const struct iot_filter *f, const struct iot_segment_info *info,
		    const struct iot_footer *footer, struct iot_verdict *why);
/* Both for all captures of a scan; nothing without --since and --until. */
int ctl_cover_scan(const struct iot_scan *scan, const struct iot_filter *f,
		   struct iot_verdict *why) IOT_MUST_CHECK;
/* Adds to the reasons which captures of one machine recorded at once in f's time. */
int ctl_overlap_check(const struct iot_scan *scan, const struct iot_filter *f,
		      struct iot_verdict *why) IOT_MUST_CHECK;
/* Time between the captures of a machine, in which nothing was recorded; the machines' sum. */
int ctl_cover_between(const struct iot_scan *scan, enum iot_stream stream,
		      uint64_t *ret_ns) IOT_MUST_CHECK;

/* ---- selected.c ---- */

/* Are all requests of the device (NAME, /dev/NAME, MAJOR:MINOR) selected throughout the segment? false if that is
 * not known. */
bool ctl_selects(const struct iot_segment_info *info, const struct iot_footer *f, const char *dev);
/* The selections of the block stream's segments, each once; borrowed from the segments. */
#define CTL_SELECTIONS 8U /* that are worth listing */
size_t ctl_selections(const struct iot_scan *scan, const char **ret, size_t max);
/* Other tools' traces among the segments, by what the headers say of them; each once. */
size_t ctl_sources(const struct iot_scan *scan, const char **ret, size_t max);
/* May some of the segment be of f's time? true where its times are not known. */
bool ctl_segment_in_time(const struct iot_segment *s, const struct iot_filter *f);
/* The stream that a question is about; 0: both. */
enum iot_stream ctl_stream_asked(const struct iot_scan *scan, const struct iot_filter *f);
/* Adds to the reasons which segments do not speak for the device that f asks for. */
void ctl_selected_check(const struct iot_scan *scan, const struct iot_filter *f,
			struct iot_verdict *why);

/* ---- selected-packets.c ---- */

/* Adds to the reasons which segments do not speak for all packets of the flow, the interface or at the probe that f
 * asks for; nothing without such a filter. */
void ctl_selected_packets(const struct iot_scan *scan, const struct iot_filter *f,
			  struct iot_verdict *why);

/* ---- output.c ---- */

struct ctl_out {
	int fd;
	int error; /* first negative errno; sticky */
	char *buf;
	size_t len;
	size_t size;
};
int ctl_out_init(struct ctl_out *o, int fd) IOT_MUST_CHECK;
void ctl_out_done(struct ctl_out *o);
/* Room for n bytes (n <= 64 KiB); advance with ctl_out_take. */
char *ctl_out_room(struct ctl_out *o, size_t n);
static inline void ctl_out_take(struct ctl_out *o, size_t n)
{
	o->len += n;
}
void ctl_out_write(struct ctl_out *o, const void *data, size_t n);
/* 0 or the first error of the stream. */
int ctl_out_flush(struct ctl_out *o) IOT_MUST_CHECK;

/*
 * A file that appears whole or not at all: written beside its place, synced, renamed. What is no
 * regular file (a pipe, /dev/stdout) is written in place.
 */
struct ctl_file {
	int fd;
	char *path;
	char *temp; /* NULL: written in place */
	bool replace;
};
/* Without replace, -EEXIST if there is such a file, at the open or at the commit. */
int ctl_file_open(const char *path, bool replace, struct ctl_file *ret) IOT_MUST_CHECK;
int ctl_file_commit(struct ctl_file *f) IOT_MUST_CHECK;
/* Within one directory, never over a file; some file systems need two steps for it. */
int ctl_rename_new(int dirfd, const char *from, const char *to) IOT_MUST_CHECK;
void ctl_file_abort(struct ctl_file *f); /* nothing after a commit */

/* ---- output-dir.c ---- */

/* -ENOTEMPTY: rename(2) replaces an empty directory and refuses one with files, so nothing older is mixed in. */
int ctl_directory_check(const char *path) IOT_MUST_CHECK;
/* One beside path, to be renamed to it. *ret is the caller's. */
int ctl_directory_make(const char *path, char **ret) IOT_MUST_CHECK;
/* Our own flat one, with what is in it. */
void ctl_directory_remove(const char *path);

/* ---- output.c ---- */

#define CTL_STDOUT "standard output"
/* Prints an output's error unless the reader went away; CTL_OK or CTL_ERROR. */
int ctl_output_result(int r, const char *name);

/* ---- table.c ---- */

struct ctl_table;
/* columns: "NAME" left, ">NAME" right aligned, "~" before it: left out on a terminal without room for
 * it; NULL-terminated. NULL if out of memory. */
struct ctl_table *ctl_table_new(const char *const *columns);
struct ctl_table *ctl_table_free(struct ctl_table *t);
/* Cells fill row by row. An allocation failure is remembered and reported by the print. */
void ctl_table_cell(struct ctl_table *t, const char *fmt, ...) IOT_PRINTF(2, 3);
int ctl_table_print(const struct ctl_table *t, FILE *f, bool color) IOT_MUST_CHECK;

static inline void ctl_table_freep(struct ctl_table **t)
{
	*t = ctl_table_free(*t);
}

const char *ctl_human_size(uint64_t bytes, char buf[CTL_HUMAN_MAX]);
const char *ctl_human_duration(uint64_t ns, char buf[CTL_HUMAN_MAX]);
const char *ctl_human_count(uint64_t n, char buf[CTL_HUMAN_MAX]); /* 1,234,567 */
const char *ctl_human_time(uint64_t realtime_ns, char buf[CTL_HUMAN_MAX]);
const char *ctl_hex_id(const uint8_t id[16], char buf[CTL_HUMAN_MAX]);
/* Untrusted text for a terminal: control characters become '?'. */
const char *ctl_printable(const char *s, char *buf, size_t size);
bool ctl_utf8_terminal(void);

enum ctl_style {
	CTL_STYLE_NONE = 0,
	CTL_STYLE_GOOD,
	CTL_STYLE_WARN,
	CTL_STYLE_BAD,
	CTL_STYLE_BOLD,
	CTL_STYLE_DIM,
};
const char *ctl_style_on(bool color, enum ctl_style style);
const char *ctl_style_off(bool color);

/* ---- verb-archive.c, segments-chain.c ---- */

/* Where it is noted what has been archived. */
const char *ctl_shipped_file(const struct ctl *c);
/* Prints the chains; CTL_OK, IOT_VERDICT_UNKNOWN if segments are missing, or a CTL_* code. */
int ctl_segments_chain(const struct ctl *c, struct iot_scan *scan);

/* ---- verdict-text.c ---- */

enum ctl_style ctl_verdict_style(enum iot_verdict_code code);
/* One line without newline: "complete: 12 segments, 1,234 requests, none lost". */
void ctl_verdict_line(const struct iot_verdict *v, size_t n_segments, char *buf, size_t size);
/* Exit code of verbs that show what they can: input that is damaged or could not be read is CTL_ERROR, a
 * torn tail (any segment that is still written has one) and losses are not. */
int ctl_damage_code(const struct iot_verdict *v);
/* The same, and says on stderr why it is not CTL_OK: for output that goes elsewhere. */
int ctl_damage_say(const struct iot_verdict *v, size_t n_segments);
enum ctl_print {
	CTL_PRINT_PLAIN = 0,
	CTL_PRINT_COLOR = 1,
	CTL_PRINT_ALL = 2, /* each reason, also where many differ in their probe only */
};
/* The line and its reasons, each line behind prefix. */
void ctl_verdict_print(FILE *f, const struct iot_verdict *v, size_t n_segments, const char *prefix,
		       enum ctl_print how);
/* NULL if out of memory. */
struct json_object *ctl_verdict_json(const struct iot_verdict *v);
/* ctl_cover_between() of each stream: {block, packet}, strings; null: nothing. */
int ctl_between_json(const struct iot_scan *scan, struct json_object **ret) IOT_MUST_CHECK;
struct json_object *ctl_json_reasons(const struct iot_verdict *v); /* an array of texts */
/* Counts and durations are numbers; ids and times strings, null for 0. */
struct json_object *ctl_json_u64(uint64_t v);
struct json_object *ctl_json_id(uint64_t v);
struct iot_sum;
struct json_object *ctl_json_sum(const struct iot_sum *s); /* null: not known */
struct json_object *ctl_json_text(const char *s); /* valid UTF-8 whatever s holds; null for "" */
/* Prints on stdout, one document with a newline; puts o. CTL_OK or CTL_ERROR. */
int ctl_json_print(struct json_object *o);
