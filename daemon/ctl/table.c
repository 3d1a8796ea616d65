// SPDX-License-Identifier: BSD-2-Clause
/*
 * table.c - aligned columns, human units, colour.
 *
 * A table is collected whole and printed once its widths are known: rows are segments or groups of
 * requests, never requests. Widths count characters, not bytes, since names may be UTF-8.
 */
#include <langinfo.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

#define MAX_COLUMNS 24

struct ctl_table {
	size_t n_columns;
	const char *header[MAX_COLUMNS];
	bool right[MAX_COLUMNS];
	bool spare[MAX_COLUMNS]; /* left out where there is no room */
	char **cells;
	size_t n_cells;
	size_t n_allocated;
	bool failed;
};

struct ctl_table *ctl_table_new(const char *const *columns)
{
	struct ctl_table *t = calloc(1, sizeof(*t));

	for (size_t i = 0; t && columns[i] && i < MAX_COLUMNS; i++) {
		t->spare[i] = columns[i][0] == '~';
		t->right[i] = columns[i][t->spare[i]] == '>';
		t->header[i] = columns[i] + t->spare[i] + t->right[i];
		t->n_columns = i + 1;
	}
	return t;
}

struct ctl_table *ctl_table_free(struct ctl_table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
	return NULL;
}

void ctl_table_cell(struct ctl_table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	if (t->n_cells == t->n_allocated) {
		size_t want = t->n_allocated ? t->n_allocated * 2 : 256;
		char **cells = realloc(t->cells, want * sizeof(*cells));

		if (!cells) {
			t->failed = true;
			return;
		}
		t->cells = cells;
		t->n_allocated = want;
	}
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		t->failed = true;
	else
		t->cells[t->n_cells++] = text;
}

static size_t display_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct ctl_table *t, FILE *f, const char *const *row,
		      const size_t *width)
{
	size_t n = t->n_columns;

	while (n > 0 && !width[n - 1])
		n--;
	for (size_t i = 0; i < n; i++) {
		size_t pad = width[i] - display_width(row[i]);
		bool last = i + 1 == n;

		if (!width[i])
			continue;
		if (t->right[i])
			fprintf(f, "%*s%s%s", (int)pad, "", row[i], last ? "" : "  ");
		else
			fprintf(f, "%s%*s", row[i], last ? 0 : (int)pad + 2, "");
	}
}

/* Columns that may be left out get no width, the last ones first, until the rest fits. */
static void fit(const struct ctl_table *t, size_t *width)
{
	size_t limit = ctl_columns(), total = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		total += width[i] + (i ? 2 : 0);
	for (size_t i = t->n_columns; limit && total > limit && i-- > 0;) {
		if (!t->spare[i])
			continue;
		total -= width[i] + 2;
		width[i] = 0;
	}
}

int ctl_table_print(const struct ctl_table *t, FILE *f, bool color)
{
	size_t width[MAX_COLUMNS];

	if (t->failed || !t->n_columns)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_columns; i++)
		width[i] = display_width(t->header[i]);
	for (size_t i = 0; i < t->n_cells; i++)
		width[i % t->n_columns] =
			IOT_MAX(width[i % t->n_columns], display_width(t->cells[i]));
	fit(t, width);
	fputs(ctl_style_on(color, CTL_STYLE_BOLD), f);
	print_row(t, f, t->header, width);
	fprintf(f, "%s\n", ctl_style_off(color));
	for (size_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns) {
		print_row(t, f, (const char *const *)t->cells + i, width);
		fputc('\n', f);
	}
	return 0;
}

/* ---- units ------------------------------------------------------------------------------------- */

const char *ctl_human_size(uint64_t bytes, char buf[CTL_HUMAN_MAX])
{
	*iot_put_size(buf, bytes) = '\0';
	return buf;
}

const char *ctl_human_duration(uint64_t ns, char buf[CTL_HUMAN_MAX])
{
	const uint64_t sec = ns / 1000000000;

	if (sec >= 86400)
		snprintf(buf, CTL_HUMAN_MAX, "%llud%lluh", (unsigned long long)sec / 86400,
			 (unsigned long long)sec / 3600 % 24);
	else if (sec >= 3600)
		snprintf(buf, CTL_HUMAN_MAX, "%lluh%llum", (unsigned long long)sec / 3600,
			 (unsigned long long)sec / 60 % 60);
	else if (sec >= 60)
		snprintf(buf, CTL_HUMAN_MAX, "%llum%llus", (unsigned long long)sec / 60,
			 (unsigned long long)sec % 60);
	else
		*iot_put_duration(buf, ns) = '\0';
	return buf;
}

const char *ctl_human_count(uint64_t n, char buf[CTL_HUMAN_MAX])
{
	char digits[24], *d = buf;
	size_t len = (size_t)(iot_put_u64(digits, n) - digits);

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*d++ = ',';
		*d++ = digits[i];
	}
	*d = '\0';
	return buf;
}

const char *ctl_human_time(uint64_t realtime_ns, char buf[CTL_HUMAN_MAX])
{
	time_t t = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	size_t n;

	if (!realtime_ns || !localtime_r(&t, &tm) ||
	    !(n = strftime(buf, CTL_HUMAN_MAX, "%F %T", &tm)))
		return "-";
	snprintf(buf + n, CTL_HUMAN_MAX - n, ".%03u", (unsigned int)(realtime_ns / 1000000 % 1000));
	return buf;
}

const char *ctl_hex_id(const uint8_t id[16], char buf[CTL_HUMAN_MAX])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < 16; i++) {
		buf[2 * i] = hex[id[i] >> 4];
		buf[2 * i + 1] = hex[id[i] & 15];
	}
	buf[32] = '\0';
	return buf;
}

const char *ctl_printable(const char *s, char *buf, size_t size)
{
	size_t len = strnlen(s, (size - 1) / 2);
	char *end = iot_put_utf8(buf, s, len);

	for (char *p = buf; p < end; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if ((unsigned char)*p == 0xc2 && p + 1 < end && (unsigned char)p[1] < 0xa0)
			p[0] = p[1] = '?';
	*end = '\0';
	return buf;
}

bool ctl_utf8_terminal(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *ctl_style_on(bool color, enum ctl_style style)
{
	static const char *const codes[] = {
		[CTL_STYLE_NONE] = "",
		[CTL_STYLE_GOOD] = "\033[0;1;32m",
		[CTL_STYLE_WARN] = "\033[0;1;33m",
		[CTL_STYLE_BAD] = "\033[0;1;31m",
		[CTL_STYLE_BOLD] = "\033[0;1m",
		[CTL_STYLE_DIM] = "\033[0;2m",
	};

	return color ? codes[style] : "";
}

const char *ctl_style_off(bool color)
{
	return color ? "\033[0m" : "";
}
