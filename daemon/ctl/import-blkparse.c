// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-blkparse.c - the text that blkparse prints by default:
 *
 *	  8,16   3       20     1.549811203  1000  R  RS 252448 + 16 [0]
 *	device cpu number seconds pid action rwbs what
 *
 * what: "SECTOR + SECTORS [PROCESS]", of an end "[ERROR]"; "BYTES (command) [PROCESS]" of a passthrough, nothing but
 * "[PROCESS]" where there is no data. Seconds count from the first event, and when that was is not said. Behind
 * the events come sums, of which one tells what was skipped. An action is one letter, or two (UT); what no
 * request is made of is passed over.
 *
 * A remap is printed as its target's, whoever was traced. If that was the partition it is also counted among the events
 * of the partition, which stands behind "<-": "8,0 0 1 0.0 7 A WS 2056 + 8 <- (8,1) 8".
 */
#include "daemon/ctl/import.h"

/* Behind the letters of rwbs. */
struct what {
	bool sectors; /* "+ N" */
	bool first;   /* a number that may be a sector, or bytes */
	uint64_t sector;
	uint64_t n;
	const char *bracket; /* behind the '[' */
	size_t len;	     /* up to the last ']' */
};

static bool parse_what(const char *s, struct what *w)
{
	const char *end = strrchr(s, ']');

	*w = (struct what){0};
	import_text_blanks(&s);
	if (import_text_u64(&s, UINT64_MAX, &w->sector)) {
		w->first = true;
		if (import_text_word(&s, " + ")) {
			/* More sectors than a request's bytes can say. */
			if (!import_text_u64(&s, UINT32_MAX >> 9, &w->n))
				return false;
			w->sectors = true;
		}
	}
	import_text_blanks(&s);
	if (*s == '(') { /* how long it took, or a command */
		s += strcspn(s, ")");
		if (*s++ != ')')
			return false;
		import_text_blanks(&s);
	}
	if (*s != '[' || !end || end < s)
		return false;
	w->bracket = s + 1;
	w->len = (size_t)(end - w->bracket);
	return end[1] == '\0' || strspn(end + 1, " \t\r") == strlen(end + 1);
}

static bool is_passthrough(const struct import_event *e, const struct what *w)
{
	if (w->sectors || e->op == IOT_OP_FLUSH)
		return false;
	return e->act == IMPORT_COMPLETE || e->act == IMPORT_REQUEUE ? !w->first : w->first;
}

static bool parse_error(const struct what *w, int *ret)
{
	char text[16];
	const char *s = text;
	uint64_t v;
	bool minus;

	if (w->len >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)w->len, w->bracket);
	minus = import_text_word(&s, "-");
	if (!import_text_u64(&s, UINT16_MAX, &v) || *s)
		return false;
	*ret = minus ? -(int)v : (int)v;
	return true;
}

static int add(struct import *im, struct import_event *e, const char *letters, size_t n_letters,
	       const char *rest, const char **ret_what)
{
	char comm[IOT_COMM_LEN] = {0};
	struct what w;
	int r;

	if (!parse_what(rest, &w)) {
		*ret_what = "not \"SECTOR + SECTORS [PROCESS]\" or the like";
		return -EBADMSG;
	}
	e->sector = w.sector;
	e->bytes = (uint32_t)w.n << 9;
	if (!import_rwbs(letters, n_letters, e)) {
		*ret_what = "no letters of an operation";
		return -EBADMSG;
	}
	if (is_passthrough(e, &w)) {
		if (w.sector > UINT32_MAX) {
			*ret_what = "more bytes than a request can have";
			return -EBADMSG;
		}
		e->bytes = (uint32_t)w.sector;
		e->sector = 0;
		e->op = e->op == IOT_OP_WRITE ? IOT_OP_DRV_OUT : IOT_OP_DRV_IN;
	}
	if (e->act == IMPORT_COMPLETE || e->act == IMPORT_REQUEUE) {
		if (!parse_error(&w, &e->error)) {
			*ret_what = "no error in brackets behind it";
			return -EBADMSG;
		}
	} else {
		if (w.len > IOT_COMM_LEN) {
			*ret_what = "the name of a process is longer than any";
			return -EBADMSG;
		}
		memcpy(comm, w.bracket, w.len);
		e->comm = comm;
	}
	r = import_add(im, e);
	e->comm = NULL;
	return r;
}

static uint8_t act_of(char letter)
{
	switch (letter) {
	case 'Q':
		return IMPORT_QUEUE;
	case 'M':
		return IMPORT_BACKMERGE;
	case 'F':
		return IMPORT_FRONTMERGE;
	case 'G':
		return IMPORT_GETRQ;
	case 'R':
		return IMPORT_REQUEUE;
	case 'D':
		return IMPORT_ISSUE;
	case 'C':
		return IMPORT_COMPLETE;
	case 'I':
		return IMPORT_INSERT;
	default:
		return 0;
	}
}

/* ---- whose numbers ------------------------------------------------------------------------------ */

static int number_remap(struct import *im, size_t i, uint32_t dev)
{
	const struct import_remap m = im->remaps[i];

	im->n_remaps--;
	memmove(&im->remaps[i], &im->remaps[i + 1], (im->n_remaps - i) * sizeof(m));
	return import_sequence(im, dev, m.cpu, m.sequence, m.time_ns);
}

static bool is_own(const struct import *im, uint32_t dev)
{
	for (uint32_t i = 0; i < im->n_devices; i++)
		if (im->devices[i].dev == dev)
			return im->devices[i].own;
	return false;
}

/* An event of dev and cpu that is no remap tells whose the remaps before it are: a disk that is traced has some. */
static int number_event(struct import *im, const struct import_event *e, uint32_t sequence)
{
	uint32_t index;
	int r;

	if (!im->sort)
		return 0;
	r = import_device(im, e->dev, &index);
	if (r < 0)
		return r;
	im->devices[index].own = true;
	for (size_t i = 0; i < im->n_remaps && r == 0;) {
		const struct import_remap *m = &im->remaps[i];

		if (m->cpu == e->cpu && (m->dev == e->dev || m->from == e->dev))
			r = number_remap(im, i, e->dev);
		else
			i++;
	}
	return r < 0 ? r : import_sequence(im, e->dev, e->cpu, sequence, e->time_ns);
}

/* What no other event of its CPU has told of. Of devices that were not traced there are no numbers. */
static int number_rest(struct import *im)
{
	int r = 0;

	while (im->n_remaps && r == 0) {
		const struct import_remap *m = &im->remaps[0];

		if (is_own(im, m->dev))
			r = number_remap(im, 0, m->dev);
		else if (is_own(im, m->from))
			r = number_remap(im, 0, m->from);
		else
			memmove(&im->remaps[0], &im->remaps[1], --im->n_remaps * sizeof(*m));
	}
	return r;
}

/* p: behind the letters. */
static int remap(struct import *im, const struct import_event *e, uint32_t sequence, const char *p)
{
	struct import_remap m = {e->dev, e->dev, e->cpu, sequence, e->time_ns};
	int r = 0;

	import_ignore(im);
	if (!im->sort)
		return 0;
	p = strstr(p, "<- (");
	if (p) {
		p += strlen("<- (");
		if (!import_text_dev(&p, &m.from))
			m.from = e->dev;
	}
	if (m.from == m.dev || is_own(im, m.dev))
		return import_sequence(im, m.dev, m.cpu, m.sequence, m.time_ns);
	if (im->n_remaps == IMPORT_MAX_REMAPS)
		r = number_remap(im, 0, im->remaps[0].from);
	im->remaps[im->n_remaps++] = m;
	return r;
}

/* ---- lines -------------------------------------------------------------------------------------- */

int import_blkparse_line(struct import *im, const char *line, const char **ret_what)
{
	struct import_event e = {0};
	uint64_t cpu, sequence, pid;
	const char *p = line, *letters;
	size_t n, n_action;
	char action;
	int r;

	import_text_blanks(&p);
	if (!import_text_dev(&p, &e.dev) || (*p != ' ' && *p != '\t'))
		return IMPORT_END;
	import_text_blanks(&p);
	if (!import_text_u64(&p, BT_MAX_CPUS - 1, &cpu))
		return IMPORT_END;
	import_text_blanks(&p);
	if (!import_text_u64(&p, UINT32_MAX, &sequence))
		return IMPORT_END;
	import_text_blanks(&p);
	if (!import_text_time(&p, &e.time_ns))
		return IMPORT_END;
	import_text_blanks(&p);
	if (!import_text_u64(&p, UINT32_MAX, &pid))
		return IMPORT_END;
	import_text_blanks(&p);
	action = *p;
	n_action = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
	p += n_action;
	if (!n_action || (*p != ' ' && *p != '\t'))
		return IMPORT_END;
	if (im->in_summary) {
		*ret_what = "an event behind the sums: these are several texts of blkparse";
		return -EBADMSG;
	}
	import_text_blanks(&p);
	letters = p;
	n = strcspn(p, " \t");
	p += n;
	/* Times count from the first event, which is at 0; that is "not known" here. */
	e.time_ns++;
	e.cpu = (uint32_t)cpu;
	e.pid = (uint32_t)pid;
	e.act = n_action == 1 ? act_of(action) : 0;
	if (n_action == 1 && action == 'A')
		return remap(im, &e, (uint32_t)sequence, p);
	r = e.act ? add(im, &e, letters, n, p, ret_what) : 0;
	if (r < 0)
		return r;
	if (!e.act)
		import_ignore(im);
	return number_event(im, &e, (uint32_t)sequence);
}

/* "CPU0 (sda):", "Total (sda):": the sums begin; of which devices is said where there is one. */
static bool begins_summary(struct import *im, const char *line)
{
	const char *open = strchr(line, '('), *end;
	char name[64];

	if (strncmp(line, "CPU", 3) != 0 && strncmp(line, "Total (", 7) != 0)
		return false;
	end = open ? strstr(open, "):") : NULL;
	if (!end || end[2 + strspn(end + 2, " \t\r")] || (size_t)(end - open) > sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(end - open - 1), open + 1);
	if (im->n_devices == 1 &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-!._") == strlen(name))
		import_device_name(im, im->devices[0].dev, name);
	return true;
}

/* "fio (700)", "fio (700, ...)": the sums of a process, which blkparse -s prints before all others. */
static bool is_process(const char *line)
{
	const char *p = strrchr(line, '(');

	if (!p || p == line || p[-1] != ' ' || (size_t)(p - line) > IOT_COMM_LEN + 1)
		return false;
	p++;
	return import_text_u64(&p, UINT32_MAX, &(uint64_t){0}) &&
	       (strcmp(p, ")") == 0 || strcmp(p, ", ...)") == 0);
}

/* " Reads Queued:           5,       20KiB\t Writes Queued:  ..." and what stands below all of them. */
static bool is_sum(const char *line)
{
	return (line[0] == ' ' && line[1] >= 'A' && line[1] <= 'Z' && strchr(line, ':')) ||
	       strncmp(line, "Throughput (", 12) == 0 || strncmp(line, "Events (", 8) == 0 ||
	       strncmp(line, "Skips: ", 7) == 0;
}

static bool other(struct import *im, const char *line)
{
	const char *p = line;
	uint64_t n;

	if (begins_summary(im, line) || is_process(line)) {
		im->in_summary = true;
		return true;
	}
	if (import_text_word(&p, "Skips: ") && import_text_u64(&p, UINT64_MAX, &n) &&
	    import_text_word(&p, " forward (") && import_text_u64(&p, UINT64_MAX, &n) && n)
		return import_lost(im, n, UINT32_MAX, IOT_MAX(im->first_ns, 1U),
				   IOT_MAX(im->last_ns, 1U)) == 0;
	return line[strspn(line, " \t\r")] == '\0' || strncmp(line, "Input file ", 11) == 0 ||
	       (im->in_summary && is_sum(line));
}

int import_blkparse(struct import *im, struct import_input *in, struct iot_error *err)
{
	int r;

	im->in_summary = false;
	im->n_remaps = 0;
	r = import_lines(im, in, import_blkparse_line, other, err);
	if (r == 0)
		r = number_rest(im);
	return r;
}
