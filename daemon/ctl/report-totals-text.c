// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-totals-text.c - the bytes with and without swap on a terminal: two lines below the head, and a
 * table over time where there was swap.
 */
#include "daemon/ctl/report-view.h"

static const char *share(uint64_t part, uint64_t whole, char buf[CTL_HUMAN_MAX])
{
	if (whole)
		snprintf(buf, CTL_HUMAN_MAX, "%.1f%%", 100.0 * (double)part / (double)whole);
	return whole ? buf : "-";
}

static void print_bytes(FILE *f, const char *label, uint64_t all, uint64_t swap, const char *kind)
{
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], c[CTL_HUMAN_MAX];

	fprintf(f, "%-9s %s: %s without swap, %s %s", label, ctl_human_size(all, a),
		ctl_human_size(all - swap, b), ctl_human_size(swap, c), kind);
	if (swap)
		fprintf(f, " (%s)", share(swap, all, a));
	fputc('\n', f);
}

/*
 * A row of time a character, the highest full. What is not nothing is never shown as nothing; without UTF-8 the
 * letters of old line printers, from light to dark, do.
 */
static void print_spark(FILE *f, const struct report_totals *t, bool write)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
	const char *const *levels = ctl_utf8_terminal() ? blocks : letters;
	uint64_t most = 0;
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX];

	for (size_t i = 0; i < t->n; i++)
		most = IOT_MAX(most, write ? t->rows[i].write : t->rows[i].read);
	if (!most || t->n < 2)
		return;
	fputs("          [", f);
	for (size_t i = 0; i < t->n; i++) {
		uint64_t v = write ? t->rows[i].write : t->rows[i].read;

		fputs(levels[(size_t)((double)v / (double)most * 7) + (v != 0)], f);
	}
	fprintf(f, "] %s each, up to %s/s\n", ctl_human_duration(t->step_ns, a),
		ctl_human_size((uint64_t)((double)most / ((double)t->step_ns / 1e9)), b));
}

void report_text_totals(const struct report_view *v, FILE *f)
{
	const struct report_bytes *b = &v->totals.all;
	char a[CTL_HUMAN_MAX];

	print_bytes(f, "Written", b->write, b->swap_out, "swap-out");
	print_spark(f, &v->totals, true);
	print_bytes(f, "Read", b->read, b->swap_in, "swap-in");
	print_spark(f, &v->totals, false);
	if (v->logical_known && v->logical_bytes)
		fprintf(f, "Amplified %.3f without swap, %.3f with it, of %s logical bytes\n",
			(double)(b->write - b->swap_out) / (double)v->logical_bytes,
			(double)b->write / (double)v->logical_bytes,
			ctl_human_size(v->logical_bytes, a));
}

/* "2026-11-29 12:00:05": rows are whole seconds. */
static const char *row_time(const struct report_totals *t, size_t i, char buf[CTL_HUMAN_MAX])
{
	char *dot;

	ctl_human_time((t->first + i) * t->step_ns, buf);
	dot = strchr(buf, '.');
	if (dot)
		*dot = '\0';
	return buf;
}

int report_text_over_time(const struct report_view *v, FILE *f, bool color)
{
	static const char *const columns[] = {"FROM",  ">WRITTEN", ">SWAP-OUT", ">SHARE",
					      ">READ", ">SWAP-IN", ">SHARE",	NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = NULL;
	const struct report_totals *rt = &v->totals;
	char buf[CTL_HUMAN_MAX];

	if (!report_totals_swap(rt))
		return 0;
	t = ctl_table_new(columns);
	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < rt->n; i++) {
		const struct report_bytes *b = &rt->rows[i];

		ctl_table_cell(t, "%s", row_time(rt, i, buf));
		ctl_table_cell(t, "%s", ctl_human_size(b->write, buf));
		ctl_table_cell(t, "%s", ctl_human_size(b->swap_out, buf));
		ctl_table_cell(t, "%s", share(b->swap_out, b->write, buf));
		ctl_table_cell(t, "%s", ctl_human_size(b->read, buf));
		ctl_table_cell(t, "%s", ctl_human_size(b->swap_in, buf));
		ctl_table_cell(t, "%s", share(b->swap_in, b->read, buf));
	}
	fprintf(f, "\n%sSwap over time, each row %s%s\n", ctl_style_on(color, CTL_STYLE_BOLD),
		ctl_human_duration(rt->step_ns, buf), ctl_style_off(color));
	return ctl_table_print(t, f, color);
}
