// SPDX-License-Identifier: BSD-2-Clause
/*
 * log.c - lines on stderr, see log.h. The level and the kind of stderr are process-wide and set
 * before threads exist; the level may change by reload, hence atomic.
 */
#include "daemon/log.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

static _Atomic int log_max = LOG_INFO;
static bool log_journal;

bool log_is_journal(const char *journal_stream, uint64_t dev, uint64_t ino)
{
	char want[64];

	if (!journal_stream)
		return false;
	snprintf(want, sizeof(want), "%llu:%llu", (unsigned long long)dev, (unsigned long long)ino);
	return strcmp(journal_stream, want) == 0;
}

void log_open(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0)
		return;
	log_journal = log_is_journal(getenv("JOURNAL_STREAM"), st.st_dev, st.st_ino);
}

int log_set_level(const char *name)
{
	static const struct {
		const char *name;
		int level;
	} levels[] = {
		{"error", LOG_ERR},
		{"warning", LOG_WARNING},
		{"info", LOG_INFO},
		{"debug", LOG_DEBUG},
	};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(levels); i++) {
		if (strcmp(levels[i].name, name) == 0) {
			log_max = levels[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

size_t log_format(char *buf, size_t size, bool journal, int level, const char *text)
{
	const char *word = level <= LOG_ERR	  ? "error: "
			   : level == LOG_WARNING ? "warning: "
			   : level == LOG_DEBUG	  ? "debug: "
						  : "";
	int n;

	if (size < 2)
		return 0;
	if (journal)
		n = snprintf(buf, size, "<%d>%s", level, text);
	else
		n = snprintf(buf, size, "iotraced: %s%s", word, text);
	if (n < 0)
		return 0;
	if ((size_t)n > size - 2)
		n = (int)size - 2;
	/* A message is one line: what a client or a file name smuggles in must not start another. */
	for (int i = 0; i < n; i++) {
		if ((unsigned char)buf[i] < 0x20 || buf[i] == 0x7f)
			buf[i] = ' ';
	}
	buf[n++] = '\n';
	buf[n] = '\0';
	return (size_t)n;
}

void log_line(int level, const char *fmt, ...)
{
	char text[1024], line[1100];
	va_list ap;
	size_t n;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = log_format(line, sizeof(line), log_journal, level, text);
	/* Nobody is left to tell when stderr is gone. */
	if (n > 0)
		(void)!write(STDERR_FILENO, line, n);
}

/* ---- events -------------------------------------------------------------------------------------- */

#define LOG_FIELDS_MAX 9U

struct fields_out {
	char *buf;
	size_t size;
	size_t used;
	const char **texts;
	size_t n;
	size_t max;
};

static void add_field(struct fields_out *o, const char *name, const char *value)
{
	size_t left = o->size - o->used;
	char *at = o->buf + o->used;
	int n;

	if (!value || o->n == o->max)
		return;
	n = snprintf(at, left, "%s=%s", name, value);
	if (n < 0 || (size_t)n >= left)
		return;
	for (int i = 0; i < n; i++) {
		if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f)
			at[i] = ' ';
	}
	o->texts[o->n++] = at;
	o->used += (size_t)n + 1;
}

size_t log_fields_format(char *buf, size_t size, int level, const char *id,
			 const struct log_fields *fields, const char *text, const char *ret[],
			 size_t max)
{
	struct fields_out o = {.buf = buf, .size = size, .texts = ret, .max = max};
	char number[24];

	snprintf(number, sizeof(number), "%d", level);
	add_field(&o, "PRIORITY", number);
	add_field(&o, "MESSAGE", text);
	add_field(&o, "MESSAGE_ID", id);
	add_field(&o, "SYSLOG_IDENTIFIER", "iotraced");
	add_field(&o, "IOTRACED_STREAM", fields->stream);
	add_field(&o, "IOTRACED_CAPTURE", fields->capture);
	add_field(&o, "IOTRACED_SEGMENT", fields->segment);
	if (fields->has_count) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)fields->count);
		add_field(&o, "IOTRACED_COUNT", number);
	}
	if (fields->error < 0) {
		snprintf(number, sizeof(number), "%d", -fields->error);
		add_field(&o, "ERRNO", number);
	}
	return o.n;
}

void log_event(int level, const char *id, const struct log_fields *fields, const char *fmt, ...)
{
	char text[1024], buf[2048];
	const char *texts[LOG_FIELDS_MAX];
	struct iovec iov[LOG_FIELDS_MAX];
	va_list ap;
	size_t n;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (log_journal) {
		n = log_fields_format(buf, sizeof(buf), level, id, fields, text, texts,
				      LOG_FIELDS_MAX);
		for (size_t i = 0; i < n; i++)
			iov[i] = (struct iovec){(void *)texts[i], strlen(texts[i])};
		if (sd_journal_sendv(iov, (int)n) == 0)
			return;
	}
	/* Without its socket the journal still has its stream. */
	log_line(level, "%s", text);
}

bool log_limit_pass(struct log_limit *l, uint64_t now_ns, unsigned int *ret_suppressed)
{
	if (l->begin_ns == 0 || now_ns - l->begin_ns >= l->interval_ns) {
		l->begin_ns = now_ns;
		l->n = 0;
	}
	if (l->n >= l->burst) {
		l->suppressed++;
		return false;
	}
	l->n++;
	if (ret_suppressed)
		*ret_suppressed = l->suppressed;
	l->suppressed = 0;
	return true;
}
