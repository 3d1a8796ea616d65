// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-export.c - requests in the formats of other tools, and never without what is missing.
 *
 * Output files appear whole or not at all: written beside their place, renamed at the end, the
 * sidecar <output>.loss.json first, so that no export is ever seen without it. Nothing is replaced
 * without --force: neither step does, so of two exports to one place one fails. Line formats may go
 * to stdout (the verdict then goes to stderr); blktrace needs --output=DIR, which must not exist
 * or be empty. --strict writes nothing unless everything was recomputed and is complete.
 */
#include <sys/stat.h>

#include "daemon/ctl/anonymize-key.h"
#include "daemon/ctl/export-loss.h"
#include "daemon/ctl/export.h"
#include "daemon/ctl/packets.h"

struct format {
	const char *name;
	const char *header;	      /* first line, or NULL */
	export_line_fn *line;	      /* or */
	export_requests_fn *requests; /* or */
	export_directory_fn *directory;
	const char *packet_header;
	export_packet_line_fn *packet_line; /* or, for packets, */
	export_packets_fn *packets;
	bool segments; /* of both streams, with --anonymize */
};

struct job {
	const struct ctl *c;
	struct iot_scan *scan;
	const struct format *format;
	bool packets; /* not requests */
	int argc;     /* what scan was opened from */
	char **argv;
};

static const struct format formats[] = {
	{.name = "csv",
	 .header = export_csv_header,
	 .line = export_csv_line,
	 .packet_header = export_packet_csv_header,
	 .packet_line = export_packet_csv_line},
	{.name = "jsonl", .line = export_jsonl_line, .packet_line = export_packet_jsonl_line},
	{.name = "blktrace", .directory = export_blktrace},
	{.name = "fio", .requests = export_fio},
	{.name = "oracleGeneral", .requests = export_oracle},
	{.name = "perfetto", .requests = export_perfetto},
	{.name = "pcapng", .packets = export_pcapng},
	{.name = "clickhouse", .line = export_clickhouse_row},
	{.name = "openmetrics", .requests = export_openmetrics},
	{.name = "prometheus", .requests = export_prometheus},
	{.name = "segment", .directory = export_segments, .segments = true},
};

const char *export_format_list(char *buf, size_t size)
{
	size_t n = IOT_ARRAY_SIZE(formats), len = 0;

	for (size_t i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					i == 0	    ? ""
					: i + 1 < n ? ", "
						    : " or ",
					formats[i].name);
	return buf;
}

static const struct format *find_format(const char *name)
{
	const char *names[IOT_ARRAY_SIZE(formats)], *hint;
	char list[EXPORT_FORMAT_LIST_MAX];

	if (!name) {
		ctl_fail(CTL_USAGE, "export needs --format=%s",
			 export_format_list(list, sizeof(list)));
		return NULL;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(formats); i++) {
		if (strcmp(name, formats[i].name) == 0)
			return &formats[i];
		names[i] = formats[i].name;
	}
	hint = ctl_suggest(name, names, IOT_ARRAY_SIZE(names));
	if (hint)
		ctl_fail(CTL_USAGE, "no format '%s'; did you mean '%s'?", name, hint);
	else
		ctl_fail(CTL_USAGE, "no format '%s'; write %s", name,
			 export_format_list(list, sizeof(list)));
	return NULL;
}

static int fail_errno(int r, const struct iot_error *err, const char *what)
{
	if (err && err->text[0])
		return ctl_fail(CTL_ERROR, "%s", err->text);
	return ctl_fail(CTL_ERROR, "%s: %s", what, strerror(-r));
}

static int fail_output(int r, const struct iot_error *err, const char *output)
{
	if (r == -EEXIST)
		return ctl_fail(CTL_ERROR,
				"%s: exists already; --force replaces it, --output names another",
				output);
	if (err)
		return fail_errno(r, err, output);
	return ctl_output_result(r, output);
}

/* A sidecar without its output would be taken for that of the next one. */
static int check_sidecar(const struct ctl *c, const char *output)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s.loss.json", output) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	if (stat(output, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return CTL_OK; /* a pipe has none */
	return !c->force && lstat(path, &st) == 0 ? fail_output(-EEXIST, NULL, path) : CTL_OK;
}

static void remove_sidecar(const char *output)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s.loss.json", output) >= 0)
		unlink(path);
}

/* ---- lines ------------------------------------------------------------------------------------- */

static int copy_requests(const struct job *job, struct ctl_out *out, struct export_stats *stats,
			 struct iot_error *err)
{
	struct iot_render render = {0};
	struct ctl_naming naming = {.render = &render};
	struct iot_request req;
	struct iot_segment *s;
	size_t n;
	int r;

	if (job->format->header)
		ctl_out_write(out, job->format->header, strlen(job->format->header));
	while (!out->error && (r = iot_scan_next(job->scan, &req, &s, err)) != IOT_READ_END) {
		if (r < 0)
			return r;
		ctl_naming_set(&naming, s, &req);
		n = job->format->line(ctl_out_room(out, IOT_RENDER_MAX), &req, &render);
		ctl_out_take(out, n);
		stats->requests += n > 0;
		stats->left_out += n == 0;
	}
	return 0;
}

static int copy_packets(const struct job *job, struct ctl_out *out, struct export_stats *stats,
			struct iot_error *err)
{
	const struct format *format = job->format;
	struct iot_render_packet render = {0};
	struct ctl_packet_naming naming = {.render = &render};
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	if (format->packet_header)
		ctl_out_write(out, format->packet_header, strlen(format->packet_header));
	while (!out->error && (r = iot_scan_next_packet(job->scan, &p, &s, err)) != IOT_READ_END) {
		if (r < 0)
			return r;
		ctl_packet_naming_set(&naming, s, &p);
		ctl_out_take(out,
			     format->packet_line(ctl_out_room(out, IOT_RENDER_MAX), &p, &render));
		stats->observations++;
	}
	return 0;
}

static int record_note(struct iot_scan *scan, bool full, char *note, size_t size,
		       struct iot_verdict *ret, struct iot_error *err)
{
	int r = ctl_scan_verdict(scan, full, ret, err);

	if (r < 0)
		return r;
	snprintf(note, size, "record %s, %s%llu lost", iot_verdict_name(ret->code),
		 ctl_losses_final(scan, ret) ? "" : "at least ", (unsigned long long)ret->n_lost);
	return 0;
}

/* A file that says of each packet what is missing needs all of its records, whatever the filters. */
static int copy_judged(const struct job *job, struct ctl_out *out, struct export_stats *stats,
		       struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *whole = NULL;
	struct ctl unfiltered = *job->c;
	struct iot_verdict v;
	char note[128];
	int r;

	r = record_note(job->scan, true, note, sizeof(note), &v, err);
	if (r < 0)
		return r;
	unfiltered.filter = (struct iot_filter){0};
	r = ctl_scan_try(&unfiltered, job->argc, job->argv, &whole, err);
	if (r == 0 && !v.unread)
		r = ctl_scan_whole(whole, err);
	return r < 0 ? r : job->format->packets(job->c, whole, note, out, stats, err);
}

static int copy_whole(const struct job *job, struct ctl_out *out, struct export_stats *stats,
		      struct iot_error *err)
{
	struct iot_verdict v;
	char note[128];
	int r = record_note(job->scan, false, note, sizeof(note), &v, err);

	return r < 0 ? r : job->format->requests(job->c, job->scan, note, out, stats, err);
}

/* Every record into out. Output errors stay in out; the result is about reading. */
static int copy_records(const struct job *job, struct ctl_out *out, struct export_stats *stats,
			struct iot_error *err)
{
	if (job->format->packets)
		return copy_judged(job, out, stats, err);
	if (job->format->requests)
		return copy_whole(job, out, stats, err);
	return job->packets ? copy_packets(job, out, stats, err)
			    : copy_requests(job, out, stats, err);
}

static int export_stdout(const struct job *job)
{
	struct iot_scan *scan = job->scan;
	struct ctl_progress progress;
	struct export_stats stats = {0};
	struct iot_error err = {0};
	struct iot_verdict v;
	struct ctl_out out;
	int r, w;

	r = ctl_out_init(&out, STDOUT_FILENO);
	if (r < 0)
		return fail_errno(r, NULL, "output");
	ctl_progress_begin(&progress, scan, STDOUT_FILENO);
	r = copy_records(job, &out, &stats, &err);
	ctl_progress_end(&progress);
	w = ctl_out_flush(&out);
	ctl_out_done(&out);
	if (r < 0)
		return fail_errno(r, &err, "input");
	if (w < 0)
		return ctl_output_result(w, CTL_STDOUT);
	r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return fail_errno(r, &err, "input");
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	ctl_note_device(job->c, scan, stats.requests + stats.observations);
	return ctl_damage_code(&v);
}

static int export_file(const struct job *job, const char *output)
{
	const struct ctl *c = job->c;
	struct iot_scan *scan = job->scan;
	struct export_stats stats = {0};
	struct iot_error err = {0};
	struct iot_verdict v = {.code = IOT_VERDICT_CORRUPT};
	struct ctl_file file = {.fd = -EBADF};
	struct ctl_progress progress;
	struct ctl_out out = {0};
	int r, w;

	r = check_sidecar(c, output);
	if (r == CTL_OK)
		r = ctl_file_open(output, c->force, &file);
	if (r != CTL_OK)
		return r < 0 ? fail_output(r, &err, output) : r;
	r = ctl_out_init(&out, file.fd);
	if (r < 0) {
		ctl_file_abort(&file);
		return fail_errno(r, NULL, output);
	}
	ctl_progress_begin(&progress, scan, file.fd);
	r = copy_records(job, &out, &stats, &err);
	ctl_progress_end(&progress);
	w = ctl_out_flush(&out);
	ctl_out_done(&out);
	if (r == 0)
		r = ctl_scan_verdict(scan, false, &v, &err);
	if (r == 0 && w == 0)
		r = export_write_loss(c, scan, job->format->name, output, &stats, &v, &err);
	if (r < 0 || w < 0) {
		ctl_file_abort(&file);
		return r < 0 ? fail_output(r, &err, output) : ctl_output_result(w, output);
	}
	r = ctl_file_commit(&file);
	if (r < 0) {
		/* It is about a file that is not there, and this run made it. */
		if (!c->force)
			remove_sidecar(output);
		return fail_output(r, NULL, output);
	}
	ctl_note_device(c, scan, stats.requests + stats.observations);
	return ctl_damage_say(&v, iot_scan_n_segments(scan));
}

/* ---- directories ------------------------------------------------------------------------------- */

static int export_directory(const struct ctl *c, struct iot_scan *scan, const struct format *format,
			    const char *output)
{
	_cleanup_free_ char *temp = NULL;
	struct ctl_progress progress;
	struct export_stats stats = {0};
	struct iot_error err = {0};
	struct iot_verdict v;
	char record[128], note[160];
	int r;

	r = ctl_directory_check(output);
	if (r == -ENOTEMPTY)
		return ctl_fail(CTL_ERROR, "%s: is not empty; name another directory with --output",
				output);
	if (r < 0)
		return fail_errno(r, NULL, output);
	r = check_sidecar(c, output);
	if (r != CTL_OK)
		return r;
	r = record_note(scan, false, record, sizeof(record), &v, &err);
	if (r < 0)
		return fail_errno(r, &err, "input");
	snprintf(note, sizeof(note), "iotraced %s: %s", IOTRACED_VERSION, record);
	r = ctl_directory_make(output, &temp);
	if (r < 0 || !temp)
		return fail_errno(r, NULL, output);
	ctl_progress_begin(&progress, scan, -1);
	r = format->directory(scan, temp, note, &stats, &err);
	ctl_progress_end(&progress);
	/* Again: reading may have met damage that the footers do not show. */
	if (r == 0)
		r = ctl_scan_verdict(scan, false, &v, &err);
	if (r == 0)
		r = export_write_loss(c, scan, format->name, output, &stats, &v, &err);
	if (r == 0 && rename(temp, output) < 0)
		r = -errno;
	if (r < 0) {
		ctl_directory_remove(temp);
		return fail_errno(r, &err, output);
	}
	ctl_note_device(c, scan, stats.requests + stats.observations);
	return ctl_damage_say(&v, iot_scan_n_segments(scan));
}

/* ---- the verb ---------------------------------------------------------------------------------- */

static int check_strict(struct iot_scan *scan)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	int r;

	r = ctl_scan_verdict(scan, true, &v, &err);
	if (r < 0)
		return fail_errno(r, &err, "input");
	if (v.code == IOT_VERDICT_COMPLETE)
		return CTL_OK;
	ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan), "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_fail(CTL_ERROR, "nothing exported: --strict, and the record is not complete");
}

/* Which stream is meant, where a format has both. */
static int choose_stream(struct job *job)
{
	const struct iot_filter *f = &job->c->filter;
	bool requests = iot_scan_n_stream(job->scan, IOT_STREAM_BLOCK) > 0;
	bool packets = iot_scan_n_stream(job->scan, IOT_STREAM_PACKET) > 0;

	if (job->format->segments)
		return CTL_OK;
	if (job->format->packets && !packets)
		return ctl_packets_none();
	if (!job->format->packets && !job->format->packet_line && packets) {
		if (!requests)
			return ctl_fail(CTL_ERROR,
					"--format=%s is for requests, and here are packets only; "
					"pcapng, csv and jsonl take these",
					job->format->name);
		(void)ctl_fail(CTL_OK, "packets are left out; --format=%s is for requests",
			       job->format->name);
	}
	job->packets = job->format->packets ||
		       (job->format->packet_line &&
			(f->flow.set || f->probe[0] || (packets && !requests)));
	if (packets && requests && job->format->packet_line && !job->packets)
		(void)ctl_fail(CTL_OK, "packets are left out; name their segments alone, or --flow "
				       "or --probe, to export them");
	iot_scan_about(job->scan, job->packets ? IOT_STREAM_PACKET : IOT_STREAM_BLOCK);
	return CTL_OK;
}

/* Books are of all records of an epoch: a segment with some of them would not be one. */
static int check_segments(const struct ctl *c)
{
	struct iot_filter f = c->filter;

	if (!c->anonymize)
		return ctl_fail(
			CTL_USAGE,
			"--format=segment is for --anonymize=KEYFILE; as they are, segments "
			"are copied like any file");
	f.since_ns = f.until_ns = 0;
	if (ctl_filter_active(&f))
		return ctl_fail(CTL_USAGE,
				"--format=segment takes whole segments; of the filters it knows "
				"--since and --until");
	return CTL_OK;
}

/* What is read from now on is anonymized, and so is what the filters ask for. */
static int anonymize(struct ctl *c, struct ctl_key **ret_key, struct iot_anonymizer **ret)
{
	struct iot_error err = {0};
	int r = ctl_key_load(c->anonymize, ret_key, &err);

	if (r == 0)
		r = iot_anonymizer_new(ctl_key_hmac, *ret_key, CTL_KEY_METHOD, ret);
	if (r == 0)
		r = iot_anonymize_filter(*ret, &c->filter);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "--anonymize: %s",
				err.text[0] ? err.text : strerror(-r));
	c->anonymizer = *ret;
	return CTL_OK;
}

static int export(struct ctl *c, const struct format *format, const char *output, int argc,
		  char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	struct job job;
	int code = ctl_scan_open(c, argc, argv, &scan);

	if (code != CTL_OK)
		return code;
	iot_scan_columns(scan, IOT_COLS_ALL);
	job = (struct job){.c = c, .scan = scan, .format = format, .argc = argc, .argv = argv};
	code = choose_stream(&job);
	if (code != CTL_OK)
		return code;
	if (c->strict) {
		code = check_strict(scan);
		if (code != CTL_OK)
			return code;
	}
	if (!output)
		return export_stdout(&job);
	return format->directory ? export_directory(c, scan, format, output)
				 : export_file(&job, output);
}

int verb_export(struct ctl *c, int argc, char **argv)
{
	/* Freed in reverse: a scan's segments borrow the anonymizer, which borrows the key. */
	_cleanup_(ctl_key_freep) struct ctl_key *key = NULL;
	_cleanup_(iot_anonymizer_freep) struct iot_anonymizer *anonymizer = NULL;
	const struct format *format = find_format(c->format);
	_cleanup_free_ char *output = NULL;
	int code;

	if (!format)
		return CTL_USAGE;
	if (format->directory && (!c->output || strcmp(c->output, "-") == 0))
		return ctl_fail(CTL_USAGE,
				"--format=%s writes several files: name a directory with --output",
				format->name);
	if (c->output && strcmp(c->output, "-") != 0) {
		size_t len = strlen(c->output);

		/* "dir/" and "dir" are one place, and have one sidecar. */
		while (len > 1 && c->output[len - 1] == '/')
			len--;
		output = strndup(c->output, len);
		if (!output || !len)
			return ctl_fail(CTL_USAGE, "--output: empty");
	}
	if (format->segments) {
		code = check_segments(c);
		if (code != CTL_OK)
			return code;
	}
	if (c->anonymize) {
		code = anonymize(c, &key, &anonymizer);
		if (code != CTL_OK)
			return code;
	}
	code = export(c, format, output, argc, argv);
	c->anonymizer = NULL;
	return code;
}
