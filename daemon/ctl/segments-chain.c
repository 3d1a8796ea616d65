// SPDX-License-Identifier: BSD-2-Clause
/*
 * segments-chain.c - `segments --chain`: which segments of each capture are not here.
 *
 * Numbers of a capture begin at 1 and have no holes, and the footer of its last segment says that it ended
 * there (shutdown). So what an archive lacks is known from what it has: before its first, between two, or
 * after its last, where alone it is not known how many.
 *
 * --json: an array of {host, stream, capture, segments, first_seq, last_seq, missing: [{from, to}],
 * n_missing, end}. end: "complete", "recording", "torn", "missing": there has been a later one, or "recovered": there
 * may have been.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"

struct chain {
	const struct iot_segment_info *info; /* of the first */
	uint64_t n;
	uint64_t first;
	uint64_t last;
	uint64_t n_missing;
	const char *end;
	struct json_object *ranges;
	char text[96];
};

static void add_range(struct chain *c, uint64_t from, uint64_t to)
{
	struct json_object *o = json_object_new_object();
	size_t len = strlen(c->text);

	c->n_missing += to - from + 1;
	json_object_object_add(o, "from", ctl_json_u64(from));
	json_object_object_add(o, "to", ctl_json_u64(to));
	json_object_array_add(c->ranges, o);
	/* What does not fit is in JSON; the count is whole in any case. */
	if (len + 48 > sizeof(c->text)) {
		snprintf(c->text + len, sizeof(c->text) - len, "%s",
			 len && c->text[len - 1] == '.' ? "" : ",...");
		return;
	}
	if (from == to)
		snprintf(c->text + len, sizeof(c->text) - len, "%s%llu", len ? "," : "",
			 (unsigned long long)from);
	else
		snprintf(c->text + len, sizeof(c->text) - len, "%s%llu-%llu", len ? "," : "",
			 (unsigned long long)from, (unsigned long long)to);
}

static const char *end_of(struct iot_segment *s)
{
	const struct iot_footer *f = iot_segment_footer(s);

	if (!f)
		return ctl_being_recorded(s) ? "recording" : "torn";
	/* At a daemon's start the open one is recovered, which is the last; by hand it may be any that is damaged. */
	if (f->reason == IOT_SEAL_RECOVERED)
		return "recovered";
	return f->reason == IOT_SEAL_SHUTDOWN ? "complete" : "missing";
}

/* Segments [*i..) of one chain; *i = the next one. */
static void measure(struct iot_scan *scan, size_t *i, struct chain *c)
{
	struct iot_segment *first = iot_scan_segment(scan, *i), *s = first;
	const size_t n = iot_scan_n_segments(scan);

	*c = (struct chain){.info = iot_segment_info(first), .ranges = json_object_new_array()};
	c->first = c->info->seq;
	if (c->first > 1)
		add_range(c, 1, c->first - 1);
	for (; *i < n && iot_same_capture(first, iot_scan_segment(scan, *i)); (*i)++) {
		uint64_t seq;

		s = iot_scan_segment(scan, *i);
		seq = iot_segment_info(s)->seq;
		if (c->n && seq > c->last + 1)
			add_range(c, c->last + 1, seq - 1);
		c->last = seq;
		c->n++;
	}
	c->end = end_of(s);
}

static struct json_object *chain_json(const struct chain *c)
{
	struct json_object *o = json_object_new_object();
	char id[CTL_HUMAN_MAX];

	json_object_object_add(o, "host", ctl_json_text(c->info->host));
	json_object_object_add(o, "stream",
			       json_object_new_string(iot_stream_name(c->info->stream)));
	json_object_object_add(o, "capture",
			       json_object_new_string(ctl_hex_id(c->info->capture_id, id)));
	json_object_object_add(o, "segments", ctl_json_u64(c->n));
	json_object_object_add(o, "first_seq", ctl_json_u64(c->first));
	json_object_object_add(o, "last_seq", ctl_json_u64(c->last));
	json_object_object_add(o, "missing", json_object_get(c->ranges));
	json_object_object_add(o, "n_missing", ctl_json_u64(c->n_missing));
	json_object_object_add(o, "end", json_object_new_string(c->end));
	return o;
}

static void chain_cells(struct ctl_table *t, const struct chain *c)
{
	char host[80], id[CTL_HUMAN_MAX], n[CTL_HUMAN_MAX];

	ctl_table_cell(t, "%s", ctl_hex_id(c->info->capture_id, id));
	ctl_table_cell(t, "%s", ctl_printable(c->info->host, host, sizeof(host)));
	ctl_table_cell(t, "%s", iot_stream_name(c->info->stream));
	ctl_table_cell(t, "%s", ctl_human_count(c->n, n));
	ctl_table_cell(t, "%llu", (unsigned long long)c->first);
	ctl_table_cell(t, "%llu", (unsigned long long)c->last);
	ctl_table_cell(t, "%s", *c->text ? c->text : "none");
	ctl_table_cell(t, "%s",
		       strcmp(c->end, "missing") == 0	  ? "later ones are missing"
		       : strcmp(c->end, "recovered") == 0 ? "not known, it was recovered"
							  : c->end);
}

int ctl_segments_chain(const struct ctl *c, struct iot_scan *scan)
{
	static const char *const columns[] = {"CAPTURE", "HOST",    "STREAM", ">SEGMENTS", ">FIRST",
					      ">LAST",	 "MISSING", "END",    NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = NULL;
	struct json_object *rows = NULL;
	bool missing = false;
	int code = CTL_OK;

	if (c->json)
		rows = json_object_new_array();
	else
		t = ctl_table_new(columns);
	if (!rows && !t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < iot_scan_n_segments(scan);) {
		struct chain chain;

		measure(scan, &i, &chain);
		missing |= chain.n_missing || strcmp(chain.end, "missing") == 0 ||
			   strcmp(chain.end, "recovered") == 0;
		if (rows)
			json_object_array_add(rows, chain_json(&chain));
		else
			chain_cells(t, &chain);
		json_object_put(chain.ranges);
	}
	if (rows)
		code = ctl_json_print(rows);
	else if (ctl_table_print(t, stdout, ctl_color_enabled(c)) < 0)
		code = ctl_fail(CTL_ERROR, "out of memory");
	return code != CTL_OK ? code : missing ? IOT_VERDICT_UNKNOWN : CTL_OK;
}
