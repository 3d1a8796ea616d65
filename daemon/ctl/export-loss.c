// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-loss.c - the sidecar of an export.
 *
 * {format, requests, filtered, anonymized: null, or how and by which key,
 *  record: {verdict, reasons, ...}, losses_total: {n, bytes},
 *  selections: of which devices requests were recorded, the headers' texts, and
 *  between_captures_ns {block, packet}: of the whole record, the time in which nothing was recorded; as in verify,
 *  losses_final: false if a segment is unsealed or damaged: there may be more,
 *  losses: [{id, n, bytes, sector, first_ns, last_ns, realtime_ns, dev, disk, op, flags,
 *  probe, cause, swap, unswapped_bytes, capture, seq}],
 *  windows: [{kind, t0_ns, t1_ns, n, cpu, probe, capture, seq}],
 *  of a packet: [{packet, n, bytes, first_ns, last_ns, realtime_ns, netns, ifindex, iface, flow, flags, code,
 *  parent, probe, cause, capture, seq}], and observations beside requests;
 *  for events in time: requests_without_start, requests_with_estimated_requeue;
 *  and requests_left_out, if there are any: the format has no word for them}
 *
 * losses are the ledger entries that pass the filters; windows are all of them: doubt has no
 * device. Entries are written one at a time, since a ledger may be large.
 */
#include <sys/stat.h>

#include "daemon/ctl/export-loss.h"
#include "daemon/ctl/json.h"
#include "format/anonymize.h"
#include "format/books.h"

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void put_json(struct ctl_out *out, struct json_object *o)
{
	_cleanup_free_ char *text = ctl_json_string(o, false);

	if (text)
		ctl_out_write(out, text, strlen(text));
	else if (!out->error)
		out->error = -ENOMEM;
	json_object_put(o);
}

static void put_text(struct ctl_out *out, const char *text)
{
	ctl_out_write(out, text, strlen(text));
}

static void add_origin(struct json_object *o, const struct iot_segment *s)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	char id[CTL_HUMAN_MAX];

	add(o, "capture", json_object_new_string(ctl_hex_id(info->capture_id, id)));
	add(o, "seq", ctl_json_u64(info->seq));
}

/* By the segment's final table: programs that were attached later stand in that alone. */
static const char *probe_name(const struct iot_segment *s, uint16_t id)
{
	const struct iot_probe *p = iot_probe_find(iot_segment_info(s), iot_segment_footer(s), id);

	return p ? p->name : NULL;
}

/* As in a request: null where the recording kernel could not tell. */
static struct json_object *swap_json(const struct iot_segment *s, const struct iot_loss *loss)
{
	const struct iot_segment_info *info = iot_segment_info(s);

	if (loss->swap == IOT_SWAP_OUT)
		return json_object_new_string("out");
	if (loss->swap == IOT_SWAP_IN)
		return json_object_new_string("in");
	if ((loss->op == IOT_OP_WRITE && info->swap_out == IOT_ABILITY_UNAVAILABLE) ||
	    (loss->op == IOT_OP_READ && info->swap_in == IOT_ABILITY_UNAVAILABLE))
		return NULL;
	return json_object_new_string("none");
}

static struct json_object *loss_json(const struct iot_segment *s, const struct iot_loss *loss)
{
	struct json_object *o = json_object_new_object();
	char text[512];

	add(o, "id", ctl_json_id(loss->id));
	add(o, "n", ctl_json_u64(loss->n));
	add(o, "bytes", ctl_json_u64(loss->bytes));
	add(o, "sector", loss->sector == IOT_SECTOR_NONE ? NULL : ctl_json_u64(loss->sector));
	add(o, "first_ns", ctl_json_id(loss->first_ns));
	add(o, "last_ns", ctl_json_id(loss->last_ns));
	add(o, "realtime_ns",
	    loss->last_ns ? ctl_json_id(iot_segment_realtime_ns(s, loss->last_ns)) : NULL);
	*iot_put_devno(text, loss->part) = '\0';
	add(o, "dev", json_object_new_string(text));
	add(o, "disk", ctl_json_text(iot_dev_name(s, loss->dev, text, sizeof(text))));
	add(o, "op", json_object_new_string(iot_op_name(loss->op)));
	*iot_put_flags(text, loss->flags, ',') = '\0';
	add(o, "flags", ctl_json_text(text));
	add(o, "probe", ctl_json_text(probe_name(s, loss->probe)));
	add(o, "cause", json_object_new_string(iot_loss_cause_name(loss->cause)));
	add(o, "swap", swap_json(s, loss));
	add(o, "unswapped_bytes", json_object_new_int64(loss->unswapped_bytes));
	add_origin(o, s);
	return o;
}

/* Of a packet: what the records would have said, as of the first of them. */
static struct json_object *packet_loss_json(const struct iot_segment *s,
					    const struct iot_loss *loss)
{
	struct json_object *o = json_object_new_object();
	char text[512];

	add(o, "packet", ctl_json_id(loss->id));
	add(o, "n", ctl_json_u64(loss->n));
	add(o, "bytes", ctl_json_u64(loss->bytes));
	add(o, "first_ns", ctl_json_id(loss->first_ns));
	add(o, "last_ns", ctl_json_id(loss->last_ns));
	add(o, "realtime_ns",
	    loss->last_ns ? ctl_json_id(iot_segment_realtime_ns(s, loss->last_ns)) : NULL);
	add(o, "netns", loss->netns ? ctl_json_u64(loss->netns) : NULL);
	add(o, "ifindex", loss->ifindex ? ctl_json_u64(loss->ifindex) : NULL);
	add(o, "iface", ctl_json_text(iot_iface_name(s, loss->netns, loss->ifindex)));
	*iot_put_flow(text, &loss->flow, loss->flags) = '\0';
	add(o, "flow", strcmp(text, "-") == 0 ? NULL : ctl_json_text(text));
	*iot_put_packet_flags(text, loss->flags, ',') = '\0';
	add(o, "flags", ctl_json_text(text));
	add(o, "code", json_object_new_int(loss->code));
	add(o, "parent", ctl_json_id(loss->parent));
	add(o, "probe", ctl_json_text(probe_name(s, loss->probe)));
	add(o, "cause", json_object_new_string(iot_loss_cause_name(loss->cause)));
	add_origin(o, s);
	return o;
}

static struct json_object *window_json(const struct iot_segment *s, const struct iot_window *w)
{
	struct json_object *o = json_object_new_object();

	add(o, "kind", json_object_new_string(iot_window_kind_name(w->kind)));
	add(o, "t0_ns", ctl_json_id(w->t0_ns));
	add(o, "t1_ns", ctl_json_id(w->t1_ns));
	add(o, "n", w->n == UINT64_MAX ? NULL : ctl_json_u64(w->n));
	add(o, "cpu", w->cpu == UINT32_MAX ? NULL : ctl_json_u64(w->cpu));
	add(o, "probe", w->probe ? ctl_json_text(probe_name(s, w->probe)) : NULL);
	add_origin(o, s);
	return o;
}

/* A ledger that is damaged is in the verdict's reasons: the others are listed all the same. */
static void put_losses(struct ctl_out *out, struct iot_scan *scan, const struct iot_filter *f,
		       uint64_t *total, uint64_t *total_bytes)
{
	bool first = true;

	put_text(out, ",\n\"losses\":[");
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		_cleanup_free_ struct iot_loss *losses = NULL;
		size_t n = 0;
		int r;

		if (!iot_segment_footer(s))
			continue;
		r = iot_segment_load_ledger(s, &losses, &n, NULL);
		if (r < 0 && r != -EBADMSG && !out->error)
			out->error = r;
		if (r < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			if (!iot_filter_match_loss(f, s, &losses[k]))
				continue;
			put_text(out, first ? "\n" : ",\n");
			first = false;
			*total += losses[k].n;
			*total_bytes += losses[k].bytes;
			put_json(out, iot_segment_info(s)->stream == IOT_STREAM_PACKET
					      ? packet_loss_json(s, &losses[k])
					      : loss_json(s, &losses[k]));
		}
	}
	put_text(out, "]");
}

static void put_windows(struct ctl_out *out, struct iot_scan *scan)
{
	bool first = true;

	put_text(out, ",\n\"windows\":[");
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_footer *footer = iot_segment_footer(s);

		for (size_t k = 0; footer && k < footer->n_windows; k++) {
			put_text(out, first ? "\n" : ",\n");
			first = false;
			put_json(out, window_json(s, &footer->windows[k]));
		}
	}
	put_text(out, "]");
}

static bool names_file(const char *word, size_t n)
{
	char text[sizeof(((struct iot_verdict *)NULL)->reasons[0])];

	snprintf(text, sizeof(text), "%.*s", (int)n, word);
	return strchr(text, '/') || strstr(text, ".iot") || strstr(text, ".open");
}

/* Reasons may begin with a file, whose name and directories nobody asked to publish. It may hold blanks. */
static void hide_files(struct iot_verdict *v)
{
	for (size_t i = 0; i < v->n_reasons; i++) {
		char *text = v->reasons[i], *last = NULL;
		char rest[sizeof(v->reasons[i])];

		for (char *word = text; *word; word += strspn(word, " ")) {
			size_t n = strcspn(word, " ");

			word += n;
			if (names_file(word - n, n))
				last = word;
		}
		if (!last)
			continue;
		snprintf(rest, sizeof(rest), "%s", last);
		snprintf(text, sizeof(v->reasons[i]), "(file)%.*s",
			 (int)(sizeof(rest) - sizeof("(file)")), rest);
	}
}

static void put_record(struct ctl_out *out, const struct ctl *c, const struct iot_verdict *v)
{
	struct iot_verdict shown = *v;

	if (c->anonymizer)
		hide_files(&shown);
	put_json(out, ctl_verdict_json(&shown));
}

/* What nobody could be asked to record is no loss, and not in the record either. */
static int put_bounds(struct ctl_out *out, const struct iot_scan *scan)
{
	struct json_object *selections = json_object_new_array(), *between;
	const char *texts[CTL_SELECTIONS];
	size_t n = ctl_selections(scan, texts, IOT_ARRAY_SIZE(texts));
	int r;

	for (size_t i = 0; i < n; i++)
		json_object_array_add(selections, ctl_json_text(texts[i]));
	put_text(out, ",\n\"selections\":");
	put_json(out, selections);
	r = ctl_between_json(scan, &between);
	if (r < 0)
		return r;
	put_text(out, ",\n\"between_captures_ns\":");
	put_json(out, between);
	return 0;
}

static int put_all(struct ctl_out *out, const struct ctl *c, struct iot_scan *scan,
		   const char *format, const struct export_stats *stats,
		   const struct iot_verdict *v)
{
	uint64_t total = 0, total_bytes = 0;
	struct json_object *o;
	int r;

	put_text(out, "{\"format\":");
	put_json(out, json_object_new_string(format));
	put_text(out, ",\n\"requests\":");
	put_json(out, ctl_json_u64(stats->requests));
	if (stats->observations || !iot_scan_n_stream(scan, IOT_STREAM_BLOCK)) {
		put_text(out, ",\n\"observations\":");
		put_json(out, ctl_json_u64(stats->observations));
	}
	put_text(out, ",\n\"filtered\":");
	put_json(out, json_object_new_boolean(ctl_filter_active(&c->filter)));
	if (strcmp(format, "blktrace") == 0 || stats->queue_time_unknown) {
		/* What its events say less exactly than the record. */
		put_text(out, ",\n\"requests_without_start\":");
		put_json(out, ctl_json_u64(stats->queue_time_unknown));
		put_text(out, ",\n\"requests_with_estimated_requeue\":");
		put_json(out, ctl_json_u64(stats->requeue_time_estimated));
	}
	if (stats->left_out) {
		put_text(out, ",\n\"requests_left_out\":");
		put_json(out, ctl_json_u64(stats->left_out));
	}
	put_text(out, ",\n\"anonymized\":");
	put_json(out, ctl_json_text(c->anonymizer ? iot_anonymizer_mark(c->anonymizer) : ""));
	put_text(out, ",\n\"record\":");
	put_record(out, c, v);
	r = put_bounds(out, scan);
	if (r < 0)
		return r;
	put_losses(out, scan, &c->filter, &total, &total_bytes);
	put_windows(out, scan);
	o = json_object_new_object();
	add(o, "n", ctl_json_u64(total));
	add(o, "bytes", ctl_json_u64(total_bytes));
	put_text(out, ",\n\"losses_total\":");
	put_json(out, o);
	put_text(out, ",\n\"losses_final\":");
	put_json(out, json_object_new_boolean(ctl_losses_final(scan, v)));
	put_text(out, "}\n");
	return 0;
}

int export_write_loss(const struct ctl *c, struct iot_scan *scan, const char *format,
		      const char *output, const struct export_stats *stats,
		      const struct iot_verdict *v, struct iot_error *err)
{
	_cleanup_free_ char *path = NULL;
	struct ctl_file file;
	struct ctl_out out;
	struct stat st;
	int r;

	if (stat(output, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		if (v->code != IOT_VERDICT_COMPLETE)
			ctl_verdict_print(stderr, v, iot_scan_n_segments(scan),
					  "iotracectl: ", CTL_PRINT_PLAIN);
		return 0;
	}
	if (asprintf(&path, "%s.loss.json", output) < 0)
		return -ENOMEM;
	r = ctl_file_open(path, c->force, &file);
	if (r < 0)
		return iot_error_set(err, r, "%s: %s", path, strerror(-r));
	r = ctl_out_init(&out, file.fd);
	if (r == 0) {
		int w;

		r = put_all(&out, c, scan, format, stats, v);
		w = ctl_out_flush(&out);
		r = r < 0 ? r : w;
		ctl_out_done(&out);
	}
	if (r < 0)
		ctl_file_abort(&file);
	else
		r = ctl_file_commit(&file);
	return r < 0 ? iot_error_set(err, r, "cannot write %s: %s", path, strerror(-r)) : 0;
}
