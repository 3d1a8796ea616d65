// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-segments.c - what files there are, and what each says of itself. Cheap: footers are read,
 * blocks are not (verify does that), except the headers of blocks where no footer tells the end.
 *
 * state is sealed, open (a daemon is recording it) or torn (left behind by a crash, or cut). --json: an
 * array of {path, name, stream, host, kernel, capture, seq, epoch, state, reason, first_ns,
 * last_ns (wall clock; null: not known), records, in_flight, ledger_entries, bytes,
 * bytes_per_record, verdict, reasons[], being_recorded, shipped}. shipped (null: nobody notes that here)
 * is about the archive that `archive` fills from this machine. Text leaves columns out from the right until
 * the rest fits the terminal.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"
#include "format/shipped.h"

#include <sys/stat.h>

/* With whole names the table is this wide. */
#define FULL_WIDTH 160

struct row {
	struct iot_segment *s;
	const struct iot_segment_info *info;
	const struct iot_footer *footer;
	const char *name;
	const char *state;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t records;
	bool recorded;			 /* now, by a daemon */
	const struct iot_shipped *notes; /* NULL: none */
	bool shipped;
	struct iot_verdict verdict;
};

/* The headers of the blocks: how many requests there are, and the time of the last (0: none). */
static uint64_t walk_blocks(struct iot_segment *s, uint64_t *ret_last_ns)
{
	struct iot_block_info block;
	uint64_t last = 0, n = 0;
	int r;

	iot_segment_rewind(s);
	for (;;) {
		r = iot_segment_next_block(s, &block, NULL);
		if (r < 0 || r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP ||
		    block.kind != iot_stream_block_kind(iot_segment_info(s)->stream))
			continue;
		n += block.count;
		last = IOT_MAX(last, block.last_ns);
	}
	iot_segment_rewind(s);
	*ret_last_ns = last ? iot_segment_realtime_ns(s, last) : 0;
	return n;
}

/* When the record ends. One recovered from a torn file does not know when its daemon died. */
static uint64_t footer_last_ns(struct iot_segment *s, const struct iot_footer *f)
{
	uint64_t last = f->epoch_last_ns ? f->epoch_last_ns : f->clocks.monotonic_ns;

	if (last)
		return iot_segment_realtime_ns(s, last);
	(void)walk_blocks(s, &last);
	return last;
}

static bool is_shipped(const struct iot_shipped *notes, const char *path, const char *name)
{
	struct stat st;

	return stat(path, &st) == 0 && iot_shipped_find(notes, name, (uint64_t)st.st_size,
							(uint64_t)st.st_mtim.tv_sec * 1000000000U +
								(uint64_t)st.st_mtim.tv_nsec);
}

static void fill_row(struct row *row, struct iot_segment *s, const struct iot_shipped *notes)
{
	const char *path = iot_segment_path(s), *slash = strrchr(path, '/');

	*row = (struct row){.s = s,
			    .info = iot_segment_info(s),
			    .footer = iot_segment_footer(s),
			    .notes = notes};
	row->name = slash ? slash + 1 : path;
	row->first_ns = iot_segment_realtime_ns(s, row->info->clocks.monotonic_ns);
	if (row->footer) {
		row->state = "sealed";
		if (row->footer->epoch_first_ns)
			row->first_ns = iot_segment_realtime_ns(s, row->footer->epoch_first_ns);
		row->last_ns = footer_last_ns(s, row->footer);
		row->records = iot_segment_declared(s, iot_stream_block_kind(row->info->stream));
	} else {
		row->recorded = ctl_being_recorded(s);
		row->state = row->recorded ? "open" : "torn";
		row->records = walk_blocks(s, &row->last_ns);
	}
	iot_verdict_footer(row->info, row->footer, &row->verdict);
	row->shipped = notes && is_shipped(notes, path, row->name);
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *o = json_object_new_object(), *reasons = json_object_new_array();
	char id[CTL_HUMAN_MAX];

	json_object_object_add(o, "path", ctl_json_text(iot_segment_path(row->s)));
	json_object_object_add(o, "name", ctl_json_text(row->name));
	json_object_object_add(o, "stream",
			       json_object_new_string(iot_stream_name(row->info->stream)));
	json_object_object_add(o, "host", ctl_json_text(row->info->host));
	json_object_object_add(o, "kernel", ctl_json_text(row->info->kernel));
	json_object_object_add(o, "anonymized", ctl_json_text(row->info->anonymized));
	json_object_object_add(o, "source", ctl_json_text(row->info->source));
	json_object_object_add(o, "capture",
			       json_object_new_string(ctl_hex_id(row->info->capture_id, id)));
	json_object_object_add(o, "seq", ctl_json_u64(row->info->seq));
	json_object_object_add(o, "epoch", ctl_json_u64(row->info->epoch));
	json_object_object_add(o, "state", json_object_new_string(row->state));
	json_object_object_add(
		o, "reason",
		row->footer ? json_object_new_string(iot_seal_reason_name(row->footer->reason))
			    : NULL);
	json_object_object_add(o, "first_ns", ctl_json_id(row->first_ns));
	json_object_object_add(o, "last_ns", ctl_json_id(row->last_ns));
	json_object_object_add(o, "records", ctl_json_u64(row->records));
	json_object_object_add(
		o, "in_flight",
		row->footer ? ctl_json_u64(iot_segment_declared(row->s, IOT_BLOCK_OPEN)) : NULL);
	json_object_object_add(
		o, "ledger_entries",
		row->footer ? ctl_json_u64(iot_segment_declared(row->s, IOT_BLOCK_LEDGER)) : NULL);
	json_object_object_add(o, "bytes", ctl_json_u64(iot_segment_size(row->s)));
	json_object_object_add(o, "bytes_per_record",
			       row->records
				       ? json_object_new_double((double)iot_segment_size(row->s) /
								(double)row->records)
				       : NULL);
	json_object_object_add(o, "verdict",
			       json_object_new_string(iot_verdict_name(row->verdict.code)));
	for (size_t i = 0; i < row->verdict.n_reasons; i++)
		json_object_array_add(reasons, ctl_json_text(row->verdict.reasons[i]));
	json_object_object_add(o, "reasons", reasons);
	json_object_object_add(o, "being_recorded", json_object_new_boolean(row->recorded));
	json_object_object_add(o, "shipped",
			       row->notes ? json_object_new_boolean(row->shipped) : NULL);
	return o;
}

/*
 * A daemon's name has 53 characters, of which the id of its capture is most. On a terminal the id is
 * shortened with a *, so that what is shown can still be given to a shell.
 */
static const char *short_name(const char *name, char *buf, size_t size)
{
	const char *id = strchr(name, '-');
	size_t n = id ? strspn(id + 1, "0123456789abcdef") : 0;

	if (n != 32 || id[1 + n] != '-')
		return name;
	snprintf(buf, size, "%.*s*%s", (int)(id + 1 - name) + 6, name, id + 1 + n + 1);
	return buf;
}

static void row_cells(struct ctl_table *t, const struct row *row, bool narrow)
{
	char buf[CTL_HUMAN_MAX], name[512], shortened[512];

	ctl_printable(row->name, name, sizeof(name));
	ctl_table_cell(t, "%s", narrow ? short_name(name, shortened, sizeof(shortened)) : name);
	ctl_table_cell(t, "%s", row->recorded ? "open" : iot_verdict_name(row->verdict.code));
	ctl_table_cell(t, "%s", ctl_human_count(row->records, buf));
	ctl_table_cell(t, "%s", ctl_human_size(iot_segment_size(row->s), buf));
	if (row->notes)
		ctl_table_cell(t, "%s", row->shipped ? "yes" : row->footer ? "no" : "-");
	ctl_table_cell(t, "%.19s", ctl_human_time(row->first_ns, buf));
	ctl_table_cell(t, "%.19s", row->last_ns ? ctl_human_time(row->last_ns, buf) : "-");
	ctl_table_cell(t, "%s",
		       row->footer && iot_segment_imported(row->info) ? "imported" : row->state);
	ctl_table_cell(t, "%s", row->footer ? iot_seal_reason_name(row->footer->reason) : "-");
	if (row->records)
		ctl_table_cell(t, "%.1f", (double)iot_segment_size(row->s) / (double)row->records);
	else
		ctl_table_cell(t, "-");
	ctl_table_cell(t, "%s", iot_stream_name(row->info->stream));
	ctl_table_cell(t, "%llu", (unsigned long long)row->info->seq);
	ctl_table_cell(t, "%llu", (unsigned long long)row->info->epoch);
}

static bool wanted(const struct iot_filter *f, const struct row *row)
{
	return (!f->since_ns || !row->last_ns || row->last_ns >= f->since_ns) &&
	       (!f->until_ns || row->first_ns <= f->until_ns);
}

static int list(const struct ctl *c, struct iot_scan *scan, const struct iot_shipped *notes)
{
	/* The last ones are the first to go. */
	static const char *const columns[] = {
		"NAME",	   "VERDICT",	 ">RECORDS", ">SIZE", "~FROM",	 "~TO", "~STATE",
		"~REASON", "~>B/RECORD", "~STREAM",  "~>SEQ", "~>EPOCH", NULL};
	static const char *const columns_shipped[] = {
		"NAME",	  "VERDICT", ">RECORDS",   ">SIZE",   "~SHIPPED", "~FROM",   "~TO",
		"~STATE", "~REASON", "~>B/RECORD", "~STREAM", "~>SEQ",	  "~>EPOCH", NULL};
	const bool narrow = ctl_columns() > 0 && ctl_columns() < FULL_WIDTH;
	_cleanup_(ctl_table_freep) struct ctl_table *t = NULL;
	struct json_object *rows = NULL;
	struct row row;

	if (c->json)
		rows = json_object_new_array();
	else
		t = ctl_table_new(notes ? columns_shipped : columns);
	if (!rows && !t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		fill_row(&row, iot_scan_segment(scan, i), notes);
		if (!wanted(&c->filter, &row))
			continue;
		if (rows)
			json_object_array_add(rows, row_json(&row));
		else
			row_cells(t, &row, narrow);
	}
	if (rows)
		return ctl_json_print(rows);
	ctl_pager_open(c);
	if (ctl_table_print(t, stdout, ctl_color_enabled(c)) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	ctl_pager_close();
	return CTL_OK;
}

int verb_segments(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(iot_shipped_freep) struct iot_shipped *notes = NULL;
	struct iot_error err = {0};
	struct iot_verdict v;
	int r, code;

	code = ctl_scan_open(c, argc, argv, &scan);
	if (code != CTL_OK)
		return code;
	/* Asked for by name it has to be there; else it may be another machine, or nobody archives. */
	r = iot_shipped_load(ctl_shipped_file(c), &notes, &err);
	if (r < 0 && c->state)
		return ctl_scan_failed(r, &err);
	err.text[0] = '\0';
	if (c->chain) {
		code = ctl_segments_chain(c, scan);
		if (code != CTL_OK && code != IOT_VERDICT_UNKNOWN)
			return code;
		return ctl_damage_code(iot_scan_opening(scan)) != CTL_OK
			       ? ctl_damage_say(iot_scan_opening(scan), iot_scan_n_segments(scan))
			       : code;
	}
	code = list(c, scan, notes);
	if (code != CTL_OK)
		return code;
	/* Files that are no segments any more are in no row: they are named here. */
	r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	if (ctl_damage_code(&v) == CTL_OK && iot_scan_opening(scan)->n_reasons)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_say(&v, iot_scan_n_segments(scan));
}
