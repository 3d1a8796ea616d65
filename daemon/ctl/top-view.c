// SPDX-License-Identifier: BSD-2-Clause
/* top-view.c - see top-view.h. */
#include <ftw.h>
#include <sys/stat.h>

#include "daemon/ctl/top-view.h"
#include "format/render.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* ---- names ------------------------------------------------------------------------------------- */

const char *top_disk_name(const struct iot_segment *s, uint32_t dev, char *buf, size_t size)
{
	char number[32], path[64], link[512];
	const char *name = iot_dev_name(s, dev, number, sizeof(number));
	ssize_t n = -1;

	if (name == number) {
		snprintf(path, sizeof(path), "/sys/dev/block/%s", number);
		n = readlink(path, link, sizeof(link) - 1);
	}
	if (n > 0) {
		link[n] = '\0';
		name = strrchr(link, '/');
		name = name ? name + 1 : number;
	}
	snprintf(buf, size, "%s", name);
	return buf;
}

void top_names_done(struct top_names *n)
{
	iot_names_done(&n->cgroups);
	free(n->dir);
}

static struct iot_names *walked; /* nftw() passes nothing on */

static int add_cgroup(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *name = path + strlen(CGROUP_ROOT);

	(void)at;
	if (type == FTW_D && iot_names_add(walked, st->st_ino, *name ? name : "/") < 0)
		return -ENOMEM;
	return 0;
}

/* The tree is looked at again only for one that is not known. */
static const char *cgroup_name(struct top_names *n, uint64_t id, bool *looked)
{
	const char *name = iot_names_find(&n->cgroups, id);

	if (name || *looked)
		return name;
	*looked = true;
	iot_names_done(&n->cgroups);
	walked = &n->cgroups;
	(void)nftw(CGROUP_ROOT, add_cgroup, 16, FTW_PHYS | FTW_MOUNT);
	return iot_names_find(&n->cgroups, id);
}

static const char *group_name(struct top_names *n, const struct rank *rk,
			      const struct rank_group *g, bool *looked, char *buf, size_t size)
{
	const char *name;

	if (g->key.kind == RANK_REST)
		snprintf(buf, size, "(further ones)");
	else if (g->key.kind == RANK_UNKNOWN)
		snprintf(buf, size, "(not known)");
	else if (rk->by == CTL_BY_PROCESS)
		snprintf(buf, size, "%.*s (%llu)", IOT_COMM_LEN, g->comm,
			 (unsigned long long)g->key.number);
	else if ((name = cgroup_name(n, g->key.number, looked)))
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "cgroup %llu", (unsigned long long)g->key.number);
	return buf;
}

/* ---- sums -------------------------------------------------------------------------------------- */

struct sums {
	struct report_cell all;
	uint64_t read, write, swap_in, swap_out; /* bytes done */
	double busy_ns;				 /* that requests spent in queue and device */
};

static int sum_device(const struct report_device *d, struct sums *s)
{
	for (unsigned int op = 0; op < IOT_N_OPS; op++)
		for (unsigned int k = 0; d->ops[op] && k < REPORT_N_SWAP; k++) {
			const struct report_cell *c = &d->ops[op]->swap[k];
			bool write = op == IOT_OP_WRITE || op == IOT_OP_ZONE_APPEND;
			int r = report_cell_merge(&s->all, c);

			if (r < 0)
				return r;
			s->read += op == IOT_OP_READ ? c->bytes_done : 0;
			s->write += write ? c->bytes_done : 0;
			s->swap_in += k == REPORT_SWAP_IN ? c->bytes_done : 0;
			s->swap_out += k == REPORT_SWAP_OUT ? c->bytes_done : 0;
			s->busy_ns += c->queue.sum + c->device.sum;
		}
	return 0;
}

static void sums_done(struct sums *s)
{
	report_cell_done(&s->all);
}

static double seconds(const struct top_frame *t)
{
	return (double)t->length_ns / 1e9;
}

static const char *rate(const struct top_frame *t, uint64_t bytes, char buf[CTL_HUMAN_MAX])
{
	char size[CTL_HUMAN_MAX];

	snprintf(buf, CTL_HUMAN_MAX, "%.40s/s",
		 ctl_human_size((uint64_t)((double)bytes / seconds(t)), size));
	return buf;
}

static const char *share(uint64_t part, uint64_t whole, char buf[CTL_HUMAN_MAX])
{
	if (whole)
		snprintf(buf, CTL_HUMAN_MAX, "%.1f%%", 100.0 * (double)part / (double)whole);
	else
		snprintf(buf, CTL_HUMAN_MAX, "-");
	return buf;
}

/* ---- the record: always there ------------------------------------------------------------------- */

static const char *const loss_keys[][2] = {
	{"filed", "with owner"},	  {"unattributed", "without owner"},
	{"missed", "runs missed"},	  {"decode_failed", "not decoded"},
	{"output_failed", "not written"},
};

/* Of all streams; false: some of it is not known. */
static bool losses(struct json_object *streams, uint64_t sums[IOT_ARRAY_SIZE(loss_keys)],
		   bool known[IOT_ARRAY_SIZE(loss_keys)])
{
	bool all = true;

	for (size_t k = 0; k < IOT_ARRAY_SIZE(loss_keys); k++) {
		sums[k] = 0;
		known[k] = live_n(streams) > 0;
		for (size_t i = 0; i < live_n(streams); i++) {
			struct json_object *lost =
				live_object(json_object_array_get_idx(streams, i), "lost");
			uint64_t n = 0;

			known[k] &= live_u64(lost, loss_keys[k][0], &n);
			sums[k] += n;
		}
		all &= known[k];
	}
	return all;
}

static void print_losses(struct top_frame *t, FILE *f)
{
	struct json_object *streams = live_object(t->status, "streams");
	uint64_t n[IOT_ARRAY_SIZE(loss_keys)], total = 0;
	bool known[IOT_ARRAY_SIZE(loss_keys)], all = losses(streams, n, known);
	char a[CTL_HUMAN_MAX], text[2 * sizeof(t->names->missing) + 1];

	fputs("Record  ", f);
	for (size_t i = 0; i < live_n(streams); i++) {
		struct json_object *s = json_object_array_get_idx(streams, i);
		const char *name = live_str(s, "name"), *verdict = live_str(s, "verdict");
		bool good = verdict && strcmp(verdict, "complete") == 0;

		fprintf(f, "%s%s %s%s%s", i ? ", " : "", name ? name : "?",
			ctl_style_on(t->color, good ? CTL_STYLE_GOOD : CTL_STYLE_WARN),
			verdict ? verdict : "unknown", ctl_style_off(t->color));
	}
	fputs("; lost", f);
	for (size_t k = 0; k < IOT_ARRAY_SIZE(loss_keys); k++) {
		total += n[k];
		/* The first three are always said. */
		if (k > 2 && known[k] && !n[k])
			continue;
		fprintf(f, "%s %s%s%s %s", k ? "," : ":",
			ctl_style_on(t->color, n[k] || !known[k] ? CTL_STYLE_WARN : CTL_STYLE_NONE),
			known[k] ? ctl_human_count(n[k], a) : "?",
			n[k] || !known[k] ? ctl_style_off(t->color) : "", loss_keys[k][1]);
	}
	if (t->names->lost_known && total > t->names->lost)
		fprintf(f, "; %s%s of it since the last window%s",
			ctl_style_on(t->color, CTL_STYLE_BAD),
			ctl_human_count(total - t->names->lost, a), ctl_style_off(t->color));
	fputc('\n', f);
	t->names->lost = total;
	t->names->lost_known = all;
	if (t->names->selected[0])
		fprintf(f, "        of what is selected: %s\n",
			ctl_printable(t->names->selected, text, sizeof(text)));
	if (t->names->left_out[0])
		fprintf(f, "        %s%s%s\n", ctl_style_on(t->color, CTL_STYLE_WARN),
			ctl_printable(t->names->left_out, text, sizeof(text)),
			ctl_style_off(t->color));
	if (t->names->missing[0])
		fprintf(f, "        %s\n", ctl_printable(t->names->missing, text, sizeof(text)));
}

/* ---- text -------------------------------------------------------------------------------------- */

static bool records_requests(const struct top_frame *t)
{
	struct json_object *streams = live_object(t->status, "streams");

	for (size_t i = 0; i < live_n(streams); i++) {
		const char *name = live_str(json_object_array_get_idx(streams, i), "name");

		if (name && strcmp(name, iot_stream_name(IOT_STREAM_BLOCK)) == 0)
			return true;
	}
	return false;
}

static void print_packets(const struct top_frame *t, FILE *f)
{
	char a[CTL_HUMAN_MAX];

	if (t->window->observations)
		fprintf(f, "Packets %.1f observations/s\n",
			(double)t->window->observations / seconds(t));
	if (t->window->late)
		fprintf(f, "        %s of these came late, from before this window\n",
			ctl_human_count(t->window->late, a));
}

static void print_head(struct top_frame *t, const struct sums *s, FILE *f)
{
	const char *state = live_str(t->status, "state"), *host = live_str(t->status, "host");
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], c[CTL_HUMAN_MAX], d[CTL_HUMAN_MAX];
	char text[2 * 65 + 1];

	ctl_human_time(t->to_ns, a);
	a[strcspn(a, ".")] = '\0';
	fprintf(f, "%siotraced on %s%s, %s for %s; the %s to %s\n",
		ctl_style_on(t->color, CTL_STYLE_BOLD),
		ctl_printable(host ? host : "?", text, sizeof(text)), ctl_style_off(t->color),
		state ? state : "?", live_duration(t->status, "uptime_ns", b),
		ctl_human_duration(t->length_ns, c), a);
	print_losses(t, f);
	if (!records_requests(t)) {
		fputs("I/O     not recorded (streams.block)\n", f);
		print_packets(t, f);
		return;
	}
	fprintf(f, "I/O     %.1f requests/s, read %s, written %s;",
		(double)s->all.requests / seconds(t), rate(t, s->read, a), rate(t, s->write, b));
	fprintf(f, " swap-out %s, swap-in %s; %s in flight\n", share(s->swap_out, s->write, c),
		share(s->swap_in, s->read, d),
		t->in_flight_known ? ctl_human_count(t->in_flight, a) : "?");
	print_packets(t, f);
}

static int print_devices(struct top_frame *t, FILE *f)
{
	static const char *const columns[] = {"DEVICE",	 ">REQ/S", ">READ",    ">WRITTEN",
					      ">SWAP",	 ">DEPTH", ">P50",     ">P99",
					      "~>P99.9", "~>MAX",  "~>ERRORS", NULL};
	static const unsigned int points[] = {5000, 9900, 9990};
	_cleanup_(ctl_table_freep) struct ctl_table *table = ctl_table_new(columns);
	const struct report *rp = &t->window->report;
	char a[CTL_HUMAN_MAX], text[2 * 80 + 1];

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < IOT_MIN(rp->n_devices, TOP_ROWS); i++) {
		_cleanup_(sums_done) struct sums s = {0};
		const struct hist *h = &s.all.device;
		int r = sum_device(&rp->devices[i], &s);

		if (r < 0)
			return r;
		ctl_table_cell(table, "%s", ctl_printable(rp->devices[i].name, text, sizeof(text)));
		ctl_table_cell(table, "%.1f", (double)s.all.requests / seconds(t));
		ctl_table_cell(table, "%s", rate(t, s.read, a));
		ctl_table_cell(table, "%s", rate(t, s.write, a));
		ctl_table_cell(table, "%s", share(s.swap_in + s.swap_out, s.read + s.write, a));
		ctl_table_cell(table, "%.2f", s.busy_ns / (double)t->length_ns);
		for (size_t k = 0; k < IOT_ARRAY_SIZE(points); k++)
			ctl_table_cell(table, "%s",
				       h->n ? ctl_human_duration(hist_percentile(h, points[k]), a)
					    : "-");
		ctl_table_cell(table, "%s", h->n ? ctl_human_duration(h->max, a) : "-");
		ctl_table_cell(table, "%s", ctl_human_count(s.all.errors, a));
	}
	fputc('\n', f);
	return ctl_table_print(table, f, t->color);
}

static int print_drops(struct top_frame *t, FILE *f)
{
	static const char *const columns[] = {">DROPS/S", "REASON", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *table = ctl_table_new(columns);
	char text[2 * sizeof(t->window->reasons[0].name) + 1];

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < t->window->n_reasons; i++) {
		ctl_table_cell(table, "%.1f", (double)t->window->reasons[i].n / seconds(t));
		ctl_table_cell(table, "%s",
			       ctl_printable(t->window->reasons[i].name, text, sizeof(text)));
	}
	fputc('\n', f);
	return ctl_table_print(table, f, t->color);
}

static int print_groups(struct top_frame *t, struct rank *rk, const char *what, FILE *f)
{
	const char *const columns[] = {">REQ/S", ">READ", ">WRITTEN", ">SHARE", what, NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *table = ctl_table_new(columns);
	char a[CTL_HUMAN_MAX], name[512], text[2 * sizeof(name) + 1];
	bool looked = false;
	int r = table ? rank_choose(rk, TOP_ROWS) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rk->n_shown; i++) {
		const struct rank_group *g = &rk->groups[i];

		group_name(t->names, rk, g, &looked, name, sizeof(name));
		ctl_table_cell(table, "%.1f", (double)g->requests / seconds(t));
		ctl_table_cell(table, "%s", rate(t, g->read_bytes, a));
		ctl_table_cell(table, "%s", rate(t, g->write_bytes, a));
		ctl_table_cell(table, "%s", share(g->bytes, rk->bytes, a));
		ctl_table_cell(table, "%s", ctl_printable(name, text, sizeof(text)));
	}
	if (r < 0)
		return r;
	fputc('\n', f);
	return ctl_table_print(table, f, t->color);
}

static int sum_all(const struct top_frame *t, struct sums *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->window->report.n_devices; i++)
		r = sum_device(&t->window->report.devices[i], s);
	return r;
}

int top_print(struct top_frame *t, FILE *f)
{
	_cleanup_(sums_done) struct sums s = {0};
	int r = sum_all(t, &s);

	if (r < 0)
		return r;
	print_head(t, &s, f);
	if (t->window->report.n_devices)
		r = print_devices(t, f);
	if (r == 0 && t->window->n_reasons)
		r = print_drops(t, f);
	if (r == 0 && t->window->requests)
		r = print_groups(t, &t->window->processes, "PROCESS", f);
	if (r == 0 && t->window->requests)
		r = print_groups(t, &t->window->cgroups, "CGROUP", f);
	fputc('\n', f);
	return r;
}

/* ---- JSON: an object a line --------------------------------------------------------------------- */

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static int device_json(const struct report_device *d, uint64_t length_ns, struct json_object *rows)
{
	_cleanup_(sums_done) struct sums s = {0};
	struct json_object *o;
	const struct hist *h = &s.all.device;
	int r = sum_device(d, &s);

	if (r < 0)
		return r;
	o = json_object_new_object();
	add(o, "disk", ctl_json_text(d->name));
	add(o, "requests", ctl_json_u64(s.all.requests));
	add(o, "read_bytes", ctl_json_u64(s.read));
	add(o, "written_bytes", ctl_json_u64(s.write));
	add(o, "swap_in_bytes", ctl_json_u64(s.swap_in));
	add(o, "swap_out_bytes", ctl_json_u64(s.swap_out));
	add(o, "errors", ctl_json_u64(s.all.errors));
	add(o, "depth", json_object_new_double(s.busy_ns / (double)length_ns));
	add(o, "p50_ns", h->n ? ctl_json_u64(hist_percentile(h, 5000)) : NULL);
	add(o, "p99_ns", h->n ? ctl_json_u64(hist_percentile(h, 9900)) : NULL);
	add(o, "max_ns", h->n ? ctl_json_u64(h->max) : NULL);
	json_object_array_add(rows, o);
	return 0;
}

static int groups_json(struct top_frame *t, struct rank *rk, struct json_object *rows)
{
	bool looked = false;
	char name[512];
	int r = rank_choose(rk, TOP_ROWS);

	for (size_t i = 0; r == 0 && i < rk->n_shown; i++) {
		const struct rank_group *g = &rk->groups[i];
		struct json_object *o = json_object_new_object();

		add(o, "name",
		    ctl_json_text(group_name(t->names, rk, g, &looked, name, sizeof(name))));
		add(o, "requests", ctl_json_u64(g->requests));
		add(o, "read_bytes", ctl_json_u64(g->read_bytes));
		add(o, "written_bytes", ctl_json_u64(g->write_bytes));
		json_object_array_add(rows, o);
	}
	return r;
}

int top_print_json(struct top_frame *t, FILE *f)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array(),
			   *processes = json_object_new_array(), *cgroups = json_object_new_array(),
			   *drops = json_object_new_array(), *streams = json_object_new_array();
	struct json_object *of = live_object(t->status, "streams");
	_cleanup_free_ char *text = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->window->report.n_devices; i++)
		r = device_json(&t->window->report.devices[i], t->length_ns, devices);
	if (r == 0)
		r = groups_json(t, &t->window->processes, processes);
	if (r == 0)
		r = groups_json(t, &t->window->cgroups, cgroups);
	for (size_t i = 0; i < t->window->n_reasons; i++) {
		struct json_object *row = json_object_new_object();

		add(row, "reason", ctl_json_text(t->window->reasons[i].name));
		add(row, "n", ctl_json_u64(t->window->reasons[i].n));
		json_object_array_add(drops, row);
	}
	for (size_t i = 0; i < live_n(of); i++) {
		struct json_object *s = json_object_array_get_idx(of, i),
				   *row = json_object_new_object();

		add(row, "name", json_object_get(live_object(s, "name")));
		add(row, "verdict", json_object_get(live_object(s, "verdict")));
		add(row, "lost", json_object_get(live_object(s, "lost")));
		json_object_array_add(streams, row);
	}
	add(o, "from_ns", ctl_json_id(t->to_ns - t->length_ns));
	add(o, "to_ns", ctl_json_id(t->to_ns));
	add(o, "streams", streams);
	add(o, "requests", records_requests(t) ? ctl_json_u64(t->window->requests) : NULL);
	add(o, "in_flight", t->in_flight_known ? ctl_json_u64(t->in_flight) : NULL);
	add(o, "late", ctl_json_u64(t->window->late));
	add(o, "missing", ctl_json_text(t->names->missing));
	add(o, "left_out", ctl_json_text(t->names->left_out));
	add(o, "devices", devices);
	add(o, "processes", processes);
	add(o, "cgroups", cgroups);
	add(o, "observations", ctl_json_u64(t->window->observations));
	add(o, "drops", drops);
	text = r == 0 ? ctl_json_string(o, false) : NULL;
	json_object_put(o);
	if (r == 0 && !text)
		r = -ENOMEM;
	if (r == 0)
		fprintf(f, "%s\n", text);
	return r;
}
