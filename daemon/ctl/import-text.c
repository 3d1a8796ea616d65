// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-text.c - what texts of blkparse and perf have in common: numbers, times, devices, and the letters of "rwbs".
 */
#include "daemon/ctl/import.h"

bool import_text_u64(const char **p, uint64_t max, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v) || v > max)
			return false;
	*p = s;
	*ret = v;
	return true;
}

bool import_text_word(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

bool import_text_dev(const char **p, uint32_t *ret)
{
	const char *s = *p;
	uint64_t major, minor;

	if (!import_text_u64(&s, IOT_DEV_MAJOR_MAX, &major) || !import_text_word(&s, ",") ||
	    !import_text_u64(&s, IOT_DEV_MINOR_MAX, &minor))
		return false;
	*p = s;
	*ret = IOT_DEV(major, minor);
	return true;
}

bool import_text_time(const char **p, uint64_t *ret_ns)
{
	const char *s = *p;
	uint64_t sec, ns = 0;
	unsigned int digits = 0;

	if (!import_text_u64(&s, UINT64_MAX / 1000000000U - 1, &sec) || *s++ != '.')
		return false;
	for (; *s >= '0' && *s <= '9' && digits < 9; s++, digits++)
		ns = ns * 10 + (uint64_t)(*s - '0');
	if (!digits || (*s >= '0' && *s <= '9'))
		return false;
	for (; digits < 9; digits++)
		ns *= 10;
	*p = s;
	*ret_ns = sec * 1000000000U + ns;
	return true;
}

/* Behind the first letters: what is not known here says nothing. */
static uint32_t flag_of(char letter)
{
	switch (letter) {
	case 'F':
		return IOT_FLAG_FUA;
	case 'A':
		return IOT_FLAG_AHEAD;
	case 'S':
		return IOT_FLAG_SYNC;
	case 'M':
		return IOT_FLAG_META;
	case 'U':
		return IOT_FLAG_ATOMIC;
	default:
		return 0;
	}
}

static uint8_t zone_op(char letter)
{
	switch (letter) {
	case 'A':
		return IOT_OP_ZONE_APPEND;
	case 'O':
		return IOT_OP_ZONE_OPEN;
	case 'C':
		return IOT_OP_ZONE_CLOSE;
	case 'F':
		return IOT_OP_ZONE_FINISH;
	case 'R':
		return IOT_OP_ZONE_RESET;
	default:
		return IOT_OP_OTHER;
	}
}

/* As the kernel's blk_fill_rwbs() and blkparse's fill_rwbs() make them. e->bytes is set. */
bool import_rwbs(const char *s, size_t n, struct import_event *e)
{
	size_t i = 0;

	e->op = IOT_OP_OTHER;
	e->flags = 0;
	e->flush_bio = false;
	if (n < 1 || n > 10 || strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") < n)
		return false;
	/* The first F is a flush before it, if an operation follows. */
	if (n > 1 && s[0] == 'F' && strchr("WDRNFZ", s[1])) {
		e->flags |= IOT_FLAG_PREFLUSH;
		i++;
	}
	switch (s[i++]) {
	case 'W':
		e->op = IOT_OP_WRITE;
		if (i < n && s[i] == 'Z') {
			e->op = IOT_OP_WRITE_ZEROES;
			i++;
		}
		break;
	case 'R':
		e->op = IOT_OP_READ;
		break;
	case 'D':
		e->op = IOT_OP_DISCARD;
		if (i < n && s[i] == 'E') {
			e->op = IOT_OP_SECURE_ERASE;
			i++;
		}
		break;
	case 'F':
		e->op = IOT_OP_FLUSH;
		break;
	case 'Z':
		if (i < n)
			e->op = zone_op(s[i++]);
		if (e->op == IOT_OP_ZONE_RESET && i < n && s[i] == 'A') {
			e->op = IOT_OP_ZONE_RESET_ALL;
			i++;
		}
		break;
	default:
		break;
	}
	if ((e->flags & IOT_FLAG_PREFLUSH) && !e->bytes &&
	    (e->op == IOT_OP_WRITE || e->op == IOT_OP_OTHER)) {
		e->flush_bio = e->op == IOT_OP_WRITE;
		e->op = IOT_OP_FLUSH;
	}
	for (; i < n; i++)
		e->flags |= flag_of(s[i]);
	return true;
}

/* ---- lines -------------------------------------------------------------------------------------- */

#define MAX_JOINS (IOT_COMM_LEN - 1) /* the name of a process may have newlines */

typedef int (*line_fn)(struct import *im, const char *line, const char **ret_what);

/* Lines that begin an event and do not end it go on in the next one: the name of a process has a newline in it. */
static int joined(struct import *im, struct import_input *in, line_fn fn, const char *first,
		  const char **what, struct iot_error *err)
{
	_cleanup_free_ char *text = strdup(first);

	for (unsigned int i = 0; i < MAX_JOINS; i++) {
		char *line, *longer;
		int r;

		if (!text)
			return -ENOMEM;
		r = import_input_line(in, &line, err);
		if (r != 0)
			return r < 0 ? r : -EBADMSG;
		if (asprintf(&longer, "%s\n%s", text, line) < 0)
			return -ENOMEM;
		free(text);
		text = longer;
		r = fn(im, text, what);
		if (r == 0 || (r < 0 && r != -EBADMSG))
			return r;
	}
	return -EBADMSG;
}

int import_lines(struct import *im, struct import_input *in, line_fn fn, import_other_fn other,
		 struct iot_error *err)
{
	char *line;
	int r;

	while ((r = import_input_line(in, &line, err)) == 0) {
		const char *what = "no event of this format";
		uint64_t at = in->line;

		r = fn(im, line, &what);
		if (r == IMPORT_END && other(im, line))
			continue;
		if (r == IMPORT_END || r == -EBADMSG) {
			const char *joined_what = what;

			r = joined(im, in, fn, line, &joined_what, err);
			if (r == -EBADMSG) {
				in->line = at;
				return import_line_error(in, what, err);
			}
		}
		if (r < 0)
			return iot_error_set(
				err, r, "%s: line %llu: %s", in->path, (unsigned long long)at,
				r == -E2BIG ? "more devices than a trace can have" : strerror(-r));
	}
	return r < 0 ? r : 0;
}
