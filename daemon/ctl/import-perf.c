// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-perf.c - block events in the text of `perf script`, with or without --ns:
 *
 *	dd 12365 [000]   474.262079:  block:block_rq_issue: 254,0 RA 16384 () 12654392 + 32 0x2,0,4 [dd]
 *	process thread [cpu] seconds: event: device rwbs [bytes (command)] SECTOR + SECTORS [priority] [PROCESS]
 *
 * The priority is there since 6.11. Times are perf's clock, near CLOCK_MONOTONIC, and there is no other. Events of
 * other kinds are passed over; what perf says that it lost, is counted as lost. What it does not say in the text (it
 * prints some on the standard error output) is not known.
 */
#include "daemon/ctl/import.h"

struct header {
	char comm[IOT_COMM_LEN + 1];
	uint32_t pid;  /* the thread's */
	uint32_t tgid; /* 0: not told */
	uint32_t cpu;
	bool has_cpu;
	uint64_t time_ns;
	const char *rest; /* behind the time's colon */
};

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t';
}

static const char *back_over_blanks(const char *begin, const char *p)
{
	while (p > begin && is_blank(p[-1]))
		p--;
	return p;
}

static const char *back_over_digits(const char *begin, const char *p)
{
	while (p > begin && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return p;
}

/* What stands before the time: "PROCESS THREAD" or "PROCESS PID/THREAD", then perhaps "[CPU]". */
static bool parse_before(const char *line, const char *end, struct header *h)
{
	const char *p = back_over_blanks(line, end), *digits, *begin = line;
	uint64_t v;

	h->cpu = IOT_CPU_NONE;
	h->tgid = 0;
	h->has_cpu = false;
	if (p > line && p[-1] == ']') {
		const char *open = back_over_digits(line, p - 1);

		if (open == line || open[-1] != '[')
			return false;
		digits = open;
		if (!import_text_u64(&digits, BT_MAX_CPUS - 1, &v))
			return false;
		h->cpu = (uint32_t)v;
		h->has_cpu = true;
		p = back_over_blanks(line, open - 1);
	}
	digits = back_over_digits(line, p);
	if (digits == p || !import_text_u64(&(const char *){digits}, UINT32_MAX, &v))
		return false;
	h->pid = (uint32_t)v;
	p = digits;
	if (p > line && p[-1] == '/') {
		digits = back_over_digits(line, p - 1);
		if (!import_text_u64(&(const char *){digits}, UINT32_MAX, &v))
			return false;
		h->tgid = (uint32_t)v;
		p = digits;
	}
	if (p > line && !is_blank(p[-1]))
		return false;
	p = back_over_blanks(line, p);
	import_text_blanks(&begin);
	/* A longer one is none, but something before it. */
	if (p <= begin || (size_t)(p - begin) > IOT_COMM_LEN)
		return false;
	snprintf(h->comm, sizeof(h->comm), "%.*s", (int)(p - begin), begin);
	return true;
}

/* An event's name with its colon, behind the blanks and the period that may come before. 0: there is none. */
static size_t event_name(const char **p)
{
	size_t n;

	import_text_blanks(p);
	if (import_text_u64(p, UINT64_MAX, &(uint64_t){0}))
		import_text_blanks(p);
	n = strcspn(*p, " \t");
	return n >= 2 && (*p)[n - 1] == ':' ? n : 0;
}

/*
 * The last time that has a block event behind it; else the first with any event, else the first. A process may be called
 * like a line's beginning, but no event's fields look like one: what is before them is longer than a name.
 */
static bool parse_header(const char *line, struct header *ret)
{
	bool found = false, event = false;

	for (const char *p = line; (p = strpbrk(p, "0123456789"));) {
		const char *s = p, *rest;
		struct header h;

		if (p > line && is_blank(p[-1]) && import_text_time(&s, &h.time_ns) &&
		    s[0] == ':' && is_blank(s[1]) && parse_before(line, p, &h)) {
			bool is_event;

			h.rest = rest = s + 1;
			is_event = event_name(&rest) > 0;
			if (!found || (is_event && !event) ||
			    (is_event && strncmp(rest, "block:", 6) == 0))
				*ret = h;
			found = true;
			event |= is_event;
		}
		p += strspn(p, "0123456789");
	}
	return found;
}

/* ---- events ------------------------------------------------------------------------------------- */

enum shape {
	SHAPE_BEGIN, /* "RWBS BYTES (COMMAND) SECTOR + N [PRIORITY] [PROCESS]" */
	SHAPE_END,   /* "RWBS (COMMAND) SECTOR + N [PRIORITY] [ERROR]" */
	SHAPE_BIO,   /* "RWBS SECTOR + N [PROCESS]" */
	SHAPE_BIO_END,
};

static const struct {
	const char *name;
	uint8_t act;
	uint8_t shape;
} events[] = {
	{"block_bio_queue", IMPORT_QUEUE, SHAPE_BIO},
	{"block_bio_backmerge", IMPORT_BACKMERGE, SHAPE_BIO},
	{"block_bio_frontmerge", IMPORT_FRONTMERGE, SHAPE_BIO},
	{"block_bio_complete", IMPORT_COMPLETE, SHAPE_BIO_END},
	{"block_getrq", IMPORT_GETRQ, SHAPE_BIO},
	{"block_io_start", IMPORT_START, SHAPE_BEGIN},
	{"block_rq_insert", IMPORT_INSERT, SHAPE_BEGIN},
	{"block_rq_issue", IMPORT_ISSUE, SHAPE_BEGIN},
	{"block_rq_merge", IMPORT_BACKMERGE, SHAPE_BEGIN},
	{"block_rq_requeue", IMPORT_REQUEUE, SHAPE_END},
	{"block_rq_complete", IMPORT_COMPLETE, SHAPE_END},
};

static bool parse_command(const char **p)
{
	const char *end;

	if (**p != '(')
		return false;
	end = strchr(*p, ')');
	if (!end)
		return false;
	*p = end + 1;
	import_text_blanks(p);
	return true;
}

/* "SECTOR + N", and what is before the bracket at the end. */
static bool parse_place(const char **p, struct import_event *e, uint64_t *ret_n)
{
	if (!import_text_u64(p, UINT64_MAX, &e->sector) || !import_text_word(p, " + ") ||
	    !import_text_u64(p, UINT32_MAX >> 9, ret_n))
		return false;
	/* Older kernels' word for none. */
	if (e->sector == UINT64_MAX)
		e->sector = 0;
	import_text_blanks(p);
	if (**p != '[') {
		*p += strcspn(*p, " \t");
		import_text_blanks(p);
	}
	return **p == '[';
}

static bool parse_fields(const char *p, enum shape shape, struct import_event *e,
			 char comm[IOT_COMM_LEN + 1])
{
	const char *letters, *end = strrchr(p, ']');
	uint64_t n, bytes = UINT64_MAX;
	size_t n_letters;
	bool minus;

	import_text_blanks(&p);
	if (!import_text_dev(&p, &e->dev) || !import_text_word(&p, " "))
		return false;
	letters = p;
	n_letters = strcspn(p, " \t");
	p += n_letters;
	import_text_blanks(&p);
	if (shape == SHAPE_BEGIN && !import_text_u64(&p, UINT32_MAX, &bytes))
		return false;
	import_text_blanks(&p);
	if ((shape == SHAPE_BEGIN || shape == SHAPE_END) && !parse_command(&p))
		return false;
	if (!parse_place(&p, e, &n) || !end || end <= p)
		return false;
	e->bytes = bytes != UINT64_MAX ? (uint32_t)bytes : (uint32_t)n << 9;
	if (!import_rwbs(letters, n_letters, e))
		return false;
	p++;
	if (shape == SHAPE_BEGIN || shape == SHAPE_BIO) {
		if ((size_t)(end - p) > IOT_COMM_LEN)
			return false;
		snprintf(comm, IOT_COMM_LEN + 1, "%.*s", (int)(end - p), p);
		e->comm = comm;
		return true;
	}
	minus = import_text_word(&p, "-");
	if (!import_text_u64(&p, UINT16_MAX, &n) || p != end)
		return false;
	e->error = minus ? -(int)n : (int)n;
	return true;
}

int import_perf_line(struct import *im, const char *line, const char **ret_what)
{
	char comm[IOT_COMM_LEN + 1];
	struct import_event e = {0};
	struct header h;
	const char *p;

	if (!parse_header(line, &h))
		return IMPORT_END;
	p = h.rest;
	if (!event_name(&p)) {
		if (strncmp(p, "PERF_RECORD_", 12) == 0)
			return IMPORT_END;
		*ret_what = "no event behind the time";
		return -EBADMSG;
	}
	if (im->cpu_ns && h.has_cpu)
		im->cpu_ns[h.cpu] = h.time_ns;
	if (!import_text_word(&p, "block:")) {
		if (im->sort)
			import_ignore(im);
		return 0;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(events); i++) {
		size_t n = strlen(events[i].name);

		if (strncmp(p, events[i].name, n) != 0 || p[n] != ':')
			continue;
		e.act = events[i].act;
		e.time_ns = h.time_ns;
		e.pid = h.pid;
		e.tgid = h.tgid;
		e.cpu = h.cpu;
		e.comm = h.comm;
		if (!parse_fields(p + n + 1, events[i].shape, &e, comm)) {
			*ret_what = "a block event whose fields are others than this program knows";
			return -EBADMSG;
		}
		return import_add(im, &e);
	}
	import_ignore(im);
	return 0;
}

/* ---- other lines -------------------------------------------------------------------------------- */

/* The number behind word, anywhere in the line. */
static bool number_behind(const char *line, const char *word, uint64_t *ret)
{
	const char *p = strstr(line, word);

	if (!p)
		return false;
	p += strlen(word);
	return import_text_u64(&p, UINT64_MAX - 1, ret);
}

/* How perf script, older ones of it, and ftrace say that events are missing. */
static bool says_lost(const char *line, uint64_t *ret)
{
	/* So many pieces of a file: nobody knows of how many events. */
	if (strstr(line, "and lost ") && strstr(line, " chunks")) {
		*ret = IOT_COUNT_UNKNOWN;
		return true;
	}
	if (number_behind(line, "PERF_RECORD_LOST lost ", ret) ||
	    number_behind(line, "PERF_RECORD_LOST_SAMPLES lost ", ret) ||
	    number_behind(line, "[LOST ", ret) || number_behind(line, "LOST ", ret))
		return true;
	if (!strstr(line, "LOST"))
		return false;
	*ret = IOT_COUNT_UNKNOWN;
	return true;
}

/*
 * When that was. Each CPU has a buffer of its own, and what was lost in it is told by the next event that found room: so
 * not before the line before of that CPU, and not after this one. All else may have been at any time.
 */
static int note_lost(struct import *im, const char *line, uint64_t n)
{
	uint64_t t0 = 0, t1 = UINT64_MAX, cpu;
	struct header h;

	if (parse_header(line, &h)) {
		const char *p = h.rest;

		import_text_blanks(&p);
		if (h.time_ns && strncmp(p, "PERF_RECORD_LOST ", 17) == 0) {
			t1 = h.time_ns;
			t0 = h.has_cpu && im->cpu_ns[h.cpu] <= t1 ? im->cpu_ns[h.cpu] : 0;
		}
	} else if (import_text_word(&line, "CPU:") &&
		   import_text_u64(&line, BT_MAX_CPUS - 1, &cpu) &&
		   import_text_word(&line, " [LOST ")) {
		t0 = im->cpu_ns[cpu];
		t1 = 0;
	}
	return import_lost(im, n, UINT32_MAX, t0, t1);
}

/* A call chain's: "\tffffffff81234567 symbol+0x12 (...)". */
static bool is_frame(const char *line)
{
	size_t n = strlen(line), blanks, digits;

	if (line[0] != '\t')
		return false;
	while (n && (is_blank(line[n - 1]) || line[n - 1] == '\r'))
		n--;
	blanks = strspn(line, " \t");
	digits = strspn(line + blanks, "0123456789abcdef");
	return digits && line[blanks + digits] == ' ' && line[n - 1] == ')';
}

/* "0.000000: PERF_RECORD_MMAP ...", of whatever process: perf's own, no events. */
static bool is_record(const char *line)
{
	const char *p = strstr(line, ": PERF_RECORD_"), *digits = p ? back_over_digits(line, p) : p;

	return p && digits < p && digits > line + 1 && digits[-1] == '.' && digits[-2] >= '0' &&
	       digits[-2] <= '9';
}

static bool other(struct import *im, const char *line)
{
	uint64_t n;

	if (line[strspn(line, " \t\r")] == '\0' || line[0] == '#' || is_frame(line))
		return true;
	if (says_lost(line, &n))
		return note_lost(im, line, n) == 0;
	return is_record(line);
}

int import_perf(struct import *im, struct import_input *in, struct iot_error *err)
{
	free(im->cpu_ns);
	im->open_window = 0; /* what another file lost does not end in this one */
	im->cpu_ns = calloc(BT_MAX_CPUS, sizeof(*im->cpu_ns));
	if (!im->cpu_ns)
		return iot_error_set(err, -ENOMEM, "out of memory");
	return import_lines(im, in, import_perf_line, other, err);
}
