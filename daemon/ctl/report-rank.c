// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-rank.c - `report --by` on a terminal: the groups with the most bytes, within 80 columns.
 *
 * Numbers stand in front, since names are of any length: behind the numbers where all of them fit there, else
 * each on a line of its own above them. What is cut is a path's beginning; its end tells files apart.
 */
#include <limits.h>

#include "daemon/ctl/report-view.h"

#define WIDTH 80U
#define N_NUMBERS 8U

/* ---- names -------------------------------------------------------------------------------------- */

const struct resolve_want *report_rank_resolved(const struct report_view *v, const struct rank *rk,
						const struct rank_group *g)
{
	size_t lo = 0, hi = v->n_wants;

	if (rk->by != CTL_BY_FILE || g->key.kind != RANK_KNOWN || !v->mount ||
	    g->key.fsdev != v->mount_fsdev ||
	    !ctl_this_machine(rk->places[g->key.place].machine_id))
		return NULL;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->wants[mid].ino < g->key.number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < v->n_wants && v->wants[lo].ino == g->key.number ? &v->wants[lo] : NULL;
}

const char *report_rank_cgroup(const struct report_view *v, const struct rank *rk,
			       const struct rank_group *g)
{
	const struct rank_place *place = &rk->places[g->key.place];

	/* The last request's segment may be open still, or not have had the name yet. */
	for (size_t i = v->scan ? iot_scan_n_segments(v->scan) : 0; i-- > 0;) {
		const struct iot_segment *s = iot_scan_segment(v->scan, i);
		const struct iot_footer *f = iot_segment_footer(s);
		const char *name;

		if (!f || memcmp(iot_segment_info(s)->boot_id, place->boot_id, 16) != 0 ||
		    memcmp(iot_segment_info(s)->machine_id, place->machine_id, 16) != 0)
			continue;
		name = iot_names_find(&f->cgroups, g->key.number);
		if (name)
			return name;
	}
	return NULL;
}

static const char *unknown_file(unsigned int origin)
{
	static const char *const names[IOT_N_ORIGINS] = {
		[IOT_ORIGIN_UNKNOWN] = "(not known)",
		[IOT_ORIGIN_FILE] = "(a file that is not known)",
		[IOT_ORIGIN_METADATA] = "(metadata)",
		[IOT_ORIGIN_SWAP] = "(swap)",
		[IOT_ORIGIN_DIRECT] = "(direct I/O, file not known)",
		[IOT_ORIGIN_PRIVATE] = "(memory of the kernel)",
		[IOT_ORIGIN_NONE] = "(no data: flush, discard, ...)",
		[IOT_ORIGIN_PASSTHROUGH] = "(commands of drivers)",
	};

	return origin < IOT_N_ORIGINS ? names[origin] : names[IOT_ORIGIN_UNKNOWN];
}

static void known_name(const struct report_view *v, const struct rank *rk,
		       const struct rank_group *g, char *buf, size_t size)
{
	const unsigned long long number = g->key.number;
	const struct resolve_want *want;
	char text[2 * 80 + 1], dev[32];
	const char *name;

	switch (rk->by) {
	case CTL_BY_FILE:
		want = report_rank_resolved(v, rk, g);
		name = want && want->path ? want->path : NULL;
		if (name)
			snprintf(buf, size, "%s", name);
		else
			snprintf(buf, size, "%s inode %llu",
				 ctl_printable(
					 iot_dev_name(g->segment, g->key.fsdev, dev, sizeof(dev)),
					 text, sizeof(text)),
				 number);
		return;
	case CTL_BY_PROCESS:
		snprintf(buf, size, "%.*s (%llu)", IOT_COMM_LEN, g->comm, number);
		return;
	case CTL_BY_CGROUP:
		name = report_rank_cgroup(v, rk, g);
		if (name)
			snprintf(buf, size, "%s", name);
		else
			snprintf(buf, size, "cgroup %llu", number);
		return;
	case CTL_BY_DEVICE:
		snprintf(buf, size, "%s",
			 iot_dev_name(g->segment, (uint32_t)number, dev, sizeof(dev)));
		return;
	default:
		snprintf(buf, size, "%s", iot_origin_name((unsigned int)number));
	}
}

const char *report_rank_name(const struct report_view *v, const struct rank *rk,
			     const struct rank_group *g, char *buf, size_t size)
{
	if (g->key.kind == RANK_REST)
		snprintf(buf, size, "(further ones, too many to tell apart)");
	else if (g->key.kind == RANK_UNKNOWN)
		snprintf(buf, size, "%s",
			 rk->by == CTL_BY_FILE ? unknown_file((unsigned int)g->key.number)
					       : "(not known)");
	else
		known_name(v, rk, g, buf, size);
	return buf;
}

double report_rank_seconds(const struct report_view *v, const struct rank *rk,
			   const struct rank_group *g)
{
	const struct report_span *first = v->spans;
	const struct rank_place *place;

	if (g->key.kind == RANK_KNOWN && rk->by != CTL_BY_ORIGIN) {
		place = &rk->places[g->key.place];
		return (double)report_recorded_ns(v->spans, v->n_spans, place->machine_id,
						  place->host) /
		       1e9;
	}
	if (v->n_hosts == 1 && v->n_spans)
		return (double)report_recorded_ns(v->spans, v->n_spans, first->machine_id,
						  first->host) /
		       1e9;
	return 0;
}

/* ---- rows --------------------------------------------------------------------------------------- */

struct row {
	char number[N_NUMBERS][CTL_HUMAN_MAX];
	char *name; /* owned */
};

static void free_rows(struct row *rows, size_t n)
{
	for (size_t i = 0; rows && i < n; i++)
		free(rows[i].name);
	free(rows);
}

static int fill_row(const struct report_view *v, const struct rank *rk, const struct rank_group *g,
		    struct row *row)
{
	double seconds = report_rank_seconds(v, rk, g);
	char name[PATH_MAX + 80], printable[2 * (PATH_MAX + 80) + 1], host[2 * 65 + 1];
	const struct hist *h = g->latency;
	static const unsigned int points[] = {5000, 9900};

	ctl_human_size(g->bytes, row->number[0]);
	snprintf(row->number[1], CTL_HUMAN_MAX, "%.1f%%",
		 rk->bytes ? 100.0 * (double)g->bytes / (double)rk->bytes : 0.0);
	ctl_human_count(g->requests, row->number[2]);
	if (seconds > 0)
		snprintf(row->number[3], CTL_HUMAN_MAX, "%.1f", (double)g->requests / seconds);
	else
		snprintf(row->number[3], CTL_HUMAN_MAX, "-");
	for (size_t i = 4; i < N_NUMBERS; i++)
		snprintf(row->number[i], CTL_HUMAN_MAX, "-");
	if (h && h->n) {
		ctl_human_duration((uint64_t)(h->sum / (double)h->n), row->number[4]);
		for (size_t i = 0; i < IOT_ARRAY_SIZE(points); i++)
			ctl_human_duration(hist_percentile(h, points[i]), row->number[5 + i]);
		ctl_human_duration(h->max, row->number[7]);
	}
	ctl_printable(report_rank_name(v, rk, g, name, sizeof(name)), printable, sizeof(printable));
	if (v->n_hosts <= 1 || g->key.kind != RANK_KNOWN || rk->by == CTL_BY_ORIGIN)
		row->name = strdup(printable);
	else if (asprintf(&row->name, "%s: %s",
			  ctl_printable(rk->places[g->key.place].host, host, sizeof(host)),
			  printable) < 0)
		row->name = NULL;
	return row->name ? 0 : -ENOMEM;
}

static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* s, or "..." and as much of its end as fits. */
static void print_end(FILE *f, const char *s, size_t width)
{
	size_t n = width_of(s);

	if (n > width) {
		fputs("...", f);
		for (width -= 3; n > width; n--) {
			s++;
			while (((unsigned char)*s & 0xc0) == 0x80)
				s++;
		}
	}
	fputs(s, f);
}

static void print_numbers(FILE *f, const struct row *row, const size_t *width)
{
	for (size_t i = 0; i < N_NUMBERS; i++)
		fprintf(f, "%s%*s", i ? " " : "", (int)width[i], row->number[i]);
}

static void print_rows(FILE *f, const struct row *head, const struct row *rows, size_t n)
{
	size_t width[N_NUMBERS], used = N_NUMBERS, longest = 0;
	bool above;

	for (size_t i = 0; i < N_NUMBERS; i++) {
		width[i] = strlen(head->number[i]);
		for (size_t k = 0; k < n; k++)
			width[i] = IOT_MAX(width[i], strlen(rows[k].number[i]));
		used += width[i];
	}
	for (size_t k = 0; k < n; k++)
		longest = IOT_MAX(longest, width_of(rows[k].name));
	above = used + longest > WIDTH;
	print_numbers(f, head, width);
	fprintf(f, "%s%s\n", above ? "" : " ", above ? "" : head->name);
	for (size_t k = 0; k < n; k++) {
		if (above) {
			print_end(f, rows[k].name, WIDTH);
			fputc('\n', f);
		}
		print_numbers(f, &rows[k], width);
		fprintf(f, "%s%s\n", above ? "" : " ", above ? "" : rows[k].name);
	}
}

static void print_notes(const struct report_view *v, FILE *f)
{
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX];
	size_t found = 0, reused = 0, ambiguous = 0;

	if (v->lost)
		fprintf(f, "In no row: %s lost requests, %s\n", ctl_human_count(v->lost, a),
			ctl_human_size(v->lost_bytes, b));
	if (!v->mount)
		return;
	for (size_t i = 0; i < v->n_wants; i++) {
		found += v->wants[i].path != NULL;
		reused += v->wants[i].state == RESOLVE_REUSED;
		ambiguous += v->wants[i].state == RESOLVE_AMBIGUOUS;
	}
	ctl_human_time(v->walk.at_ns, a);
	a[strcspn(a, ".")] = '\0';
	fprintf(f,
		"Paths as of now: %s. Files may have been renamed or deleted since.\n"
		"Files above that lie there: %zu, with a path: %zu",
		a, v->n_wants, found);
	if (reused)
		fprintf(f, "; %zu numbers belong to younger files", reused);
	if (ambiguous)
		fprintf(f, "; %zu may lie in another subvolume", ambiguous);
	fputs(".\n", f);
	if (v->walk.n_denied)
		fprintf(f, "%s directories could not be read.\n",
			ctl_human_count(v->walk.n_denied, a));
}

int report_rank_text(const struct report_view *v, const struct rank *rk, FILE *f, bool color)
{
	static char name[] = "NAME";
	static const struct row head = {
		.number = {"BYTES", "SHARE", "REQUESTS", "IOPS", "MEAN", "P50", "P99", "MAX"},
		.name = name};
	struct row *rows = calloc(rk->n_shown + 1, sizeof(*rows));
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX];
	int r = rows ? 0 : -ENOMEM;

	for (size_t k = 0; r == 0 && k < rk->n_shown; k++)
		r = fill_row(v, rk, &rk->groups[k], &rows[k]);
	if (r == 0) {
		fprintf(f, "\n%sBy %s: ", ctl_style_on(color, CTL_STYLE_BOLD), ctl_by_name(rk->by));
		if (rk->n_shown < rk->n_groups)
			fprintf(f, "the %s of %s with the most bytes%s\n",
				ctl_human_count(rk->n_shown, a), ctl_human_count(rk->n_groups, b),
				ctl_style_off(color));
		else
			fprintf(f, "all %s%s\n", ctl_human_count(rk->n_groups, a),
				ctl_style_off(color));
		print_rows(f, &head, rows, rk->n_shown);
		print_notes(v, f);
	}
	free_rows(rows, rk->n_shown);
	return r;
}
