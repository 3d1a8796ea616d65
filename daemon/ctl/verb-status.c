// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-status.c - the daemon on one screen, the verdict first, in the manner of systemctl status.
 *
 * A value that the daemon does not know is printed as "unknown": it must never look like 0.
 */
#include "daemon/ctl/status-metrics.h"

#define LABEL "%11s: "

static enum ctl_style verdict_style(const char *verdict)
{
	if (!verdict)
		return CTL_STYLE_WARN;
	if (strcmp(verdict, "complete") == 0)
		return CTL_STYLE_GOOD;
	return CTL_STYLE_WARN;
}

static const char *dot(void)
{
	return ctl_utf8_terminal() ? "\u25cf" : "*";
}

static void print_segment(struct json_object *s, bool color)
{
	struct json_object *seg = live_object(s, "segment");
	char bytes[CTL_HUMAN_MAX], records[CTL_HUMAN_MAX], age[CTL_HUMAN_MAX], name[160];
	const char *file = live_str(seg, "name");

	printf(LABEL "%s, %s, %s, open for %s\n", "Segment",
	       file ? ctl_printable(file, name, sizeof(name)) : "none",
	       live_size(seg, "bytes", bytes), live_counted(seg, "records", "record", records),
	       live_duration(seg, "age_ns", age));
	if (json_object_get_boolean(live_object(seg, "unlinked")))
		printf(LABEL
		       "%sdeleted while it is written to; what is in it is lost at its end%s\n",
		       "", ctl_style_on(color, CTL_STYLE_BAD), ctl_style_off(color));
}

static void print_records(struct json_object *s)
{
	char records[CTL_HUMAN_MAX], bytes[CTL_HUMAN_MAX], sealed[CTL_HUMAN_MAX];
	uint64_t n, size;

	printf(LABEL "%s written (%s", "Records", live_count(s, "records", records),
	       live_size(s, "bytes_written", bytes));
	if (live_u64(s, "records", &n) && live_u64(s, "bytes_written", &size) && n > 0)
		printf(", %.1f bytes each", (double)size / (double)n);
	printf("), %s sealed, %s/s\n", live_counted(s, "segments_sealed", "segment", sealed),
	       live_counted(s, "events_per_s", "event", records));
}

static void print_lost(struct json_object *s, bool color)
{
	static const char *const keys[][2] = {
		{"filed", "filed by owner"},	  {"unattributed", "without owner"},
		{"missed", "runs missed"},	  {"decode_failed", "not decoded"},
		{"output_failed", "not written"},
	};
	struct json_object *lost = live_object(s, "lost");
	char a[CTL_HUMAN_MAX];

	printf(LABEL, "Lost");
	for (size_t i = 0; i < IOT_ARRAY_SIZE(keys); i++) {
		uint64_t v = 0;
		bool bad = !live_u64(lost, keys[i][0], &v) || v > 0;

		printf("%s%s%s %s%s", i ? ", " : "", bad ? ctl_style_on(color, CTL_STYLE_WARN) : "",
		       live_count(lost, keys[i][0], a), keys[i][1],
		       bad ? ctl_style_off(color) : "");
	}
	putchar('\n');
}

static void print_ring(struct json_object *s)
{
	struct json_object *ring = live_object(s, "ring");
	struct json_object *memory = live_object(s, "kernel_memory");
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX];
	uint64_t n = 0, size = 0, used = 0, high = 0;

	printf(LABEL "%s x %s", "Ring", live_count(ring, "count", a),
	       live_size(ring, "size_bytes", b));
	if (live_u64(ring, "count", &n) && live_u64(ring, "size_bytes", &size) &&
	    live_u64(ring, "used_bytes", &used) && live_u64(ring, "high_bytes", &high) && n && size)
		printf(", %.1f%% used, at most %.1f%% of one so far",
		       100.0 * (double)used / (double)(n * size),
		       100.0 * (double)high / (double)size);
	printf("\n" LABEL "%s in maps, %s in rings (kernel)\n", "Memory",
	       live_size(memory, "maps_bytes", a), live_size(memory, "rings_bytes", b));
}

/* "out 1.5GiB (exact), 3.0MiB/s", and what of it was lost. */
static void print_swap_side(struct json_object *swap, const char *side)
{
	const char *ability = live_str(swap, side);
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], key[32];
	uint64_t lost = 0;

	if (!ability || strcmp(ability, "unavailable") == 0) {
		printf("%s cannot be told on this kernel", side);
		return;
	}
	snprintf(key, sizeof(key), "%s_bytes", side);
	printf("%s %s (%s)", side, live_size(swap, key, a), ability);
	snprintf(key, sizeof(key), "%s_bytes_per_s", side);
	printf(" at %s/s", live_size(swap, key, b));
	snprintf(key, sizeof(key), "%s_lost_bytes", side);
	if (live_u64(swap, key, &lost) && lost > 0)
		printf(" and %s lost", ctl_human_size(lost, a));
}

static void print_swap(struct json_object *swap)
{
	printf(LABEL, "Swap");
	print_swap_side(swap, "out");
	fputs(", ", stdout);
	print_swap_side(swap, "in");
	if (json_object_get_boolean(live_object(swap, "dropped")))
		fputs("; not recorded (streams.block.swap: drop)", stdout);
	putchar('\n');
}

static void print_stream(struct json_object *s, bool color)
{
	const char *name = live_str(s, "name"), *verdict = live_str(s, "verdict");
	const char *error = live_str(s, "last_error");
	enum ctl_style style = verdict_style(verdict);
	uint64_t unbalanced = 0, full = 0, unsealed = 0;
	char a[CTL_HUMAN_MAX], text[128];

	printf("\n%s%s%s %s: %s%s%s\n", ctl_style_on(color, style), dot(), ctl_style_off(color),
	       name ? name : "?", ctl_style_on(color, style), verdict ? verdict : "unknown",
	       ctl_style_off(color));
	print_segment(s, color);
	print_records(s);
	print_lost(s, color);
	print_ring(s);
	if (live_str(s, "identity"))
		printf(LABEL "%s\n", "Ids",
		       ctl_printable(live_str(s, "identity"), text, sizeof(text)));
	else
		print_swap(live_object(s, "swap"));
	if (live_u64(s, "identity_full", &full) && full > 0)
		printf(LABEL "%s observation%s had no room in the in-flight map\n", "Identity",
		       ctl_human_count(full, a), full == 1 ? "" : "s");
	if (!live_u64(s, "books_unbalanced", &unbalanced) || unbalanced > 0)
		printf(LABEL "%sbooks of %s do not balance%s\n", "Books",
		       ctl_style_on(color, CTL_STYLE_BAD),
		       live_counted(s, "books_unbalanced", "sealed epoch", a),
		       ctl_style_off(color));
	if (live_u64(s, "seal_errors", &unsealed) && unsealed > 0)
		printf(LABEL "%s%s could not be sealed%s\n", "Segments",
		       ctl_style_on(color, CTL_STYLE_BAD),
		       live_counted(s, "seal_errors", "segment", a), ctl_style_off(color));
	if (json_object_get_boolean(live_object(s, "stalled")))
		printf(LABEL "%sthe worker makes no progress%s\n", "Stalled",
		       ctl_style_on(color, CTL_STYLE_BAD), ctl_style_off(color));
	if (error)
		printf(LABEL "%s%s%s\n", "Error", ctl_style_on(color, CTL_STYLE_BAD), error,
		       ctl_style_off(color));
}

/* "block complete, " for each stream: what somebody looks for first. */
static void print_verdicts(struct json_object *streams, bool color)
{
	for (size_t i = 0; i < live_n(streams); i++) {
		struct json_object *s = json_object_array_get_idx(streams, i);
		const char *name = live_str(s, "name"), *verdict = live_str(s, "verdict");

		printf("%s %s%s%s, ", name ? name : "?",
		       ctl_style_on(color, verdict_style(verdict)), verdict ? verdict : "unknown",
		       ctl_style_off(color));
	}
}

/* Streams that have a segment open. */
static size_t n_recorded(struct json_object *streams)
{
	size_t n = 0;

	for (size_t i = 0; i < live_n(streams); i++)
		n += live_str(live_object(json_object_array_get_idx(streams, i), "segment"),
			      "name") != NULL;
	return n;
}

static void print_head(struct json_object *st, bool color)
{
	uint64_t unshipped;
	const char *state = live_str(st, "state"), *source, *wait, *error;
	struct json_object *store = live_object(st, "store"), *config = live_object(st, "config");
	bool bad = !state || strcmp(state, "degraded") == 0;
	enum ctl_style style = bad ? CTL_STYLE_BAD : CTL_STYLE_GOOD;
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX], c[CTL_HUMAN_MAX], d[CTL_HUMAN_MAX], path[256];
	uint64_t pid = 0;

	live_u64(st, "pid", &pid);
	printf("%s%s%s iotraced %s: ", ctl_style_on(color, style), dot(), ctl_style_off(color),
	       live_str(st, "version") ? live_str(st, "version") : "?");
	print_verdicts(live_object(st, "streams"), color);
	printf("%s%s%s for %s, pid %llu\n", ctl_style_on(color, style), state ? state : "unknown",
	       ctl_style_off(color), live_duration(st, "uptime_ns", a), (unsigned long long)pid);
	printf(LABEL "%s, Linux %s\n", "Host", live_str(st, "host") ? live_str(st, "host") : "?",
	       live_str(st, "kernel") ? live_str(st, "kernel") : "?");
	printf(LABEL "%s\n", "Capture",
	       live_str(st, "capture_id") ? live_str(st, "capture_id") : "?");
	source = live_str(config, "source");
	printf(LABEL "%s\n", "Config",
	       source ? ctl_printable(source, path, sizeof(path)) : "built-in defaults");
	wait = live_str(config, "unmatched_devices");
	if (wait)
		printf(LABEL "%sno disk matches: %s%s\n", "Devices",
		       ctl_style_on(color, CTL_STYLE_WARN), ctl_printable(wait, path, sizeof(path)),
		       ctl_style_off(color));
	wait = live_str(config, "restart_needed");
	if (wait)
		printf(LABEL "%s%s%s\n", "Restart for", ctl_style_on(color, CTL_STYLE_WARN), wait,
		       ctl_style_off(color));
	source = live_str(store, "path");
	printf(LABEL "%s: %s sealed (%s), %zu being recorded; %s free; %s deleted by retention\n",
	       "Store", source ? ctl_printable(source, path, sizeof(path)) : "?",
	       live_counted(store, "segments", "segment", a), live_size(store, "bytes", b),
	       n_recorded(live_object(st, "streams")), live_size(store, "free_bytes", c),
	       live_count(store, "deleted_segments", d));
	if (json_object_get_boolean(live_object(store, "elsewhere")))
		printf(LABEL "%sanother directory has this name now; the daemon goes on in its "
			     "own, which "
			     "was moved away, deleted or mounted over%s\n",
		       "", ctl_style_on(color, CTL_STYLE_BAD), ctl_style_off(color));
	if (live_u64(store, "unshipped_segments", &unshipped))
		printf(LABEL "%s not in it yet; %s deleted before they were\n", "Archive",
		       live_counted(store, "unshipped_segments", "segment", a),
		       live_count(store, "deleted_unshipped", b));
	error = live_str(store, "last_error");
	if (error)
		printf(LABEL "%s%s%s\n", "Error", ctl_style_on(color, CTL_STYLE_BAD), error,
		       ctl_style_off(color));
	live_print_swap_areas(live_object(st, "swap_areas"), " Swap areas", color);
}

/* A file is replaced as a whole: whoever reads it meanwhile sees the old one or the new one. */
static int write_metrics(const char *output, bool openmetrics, struct json_object *status)
{
	struct ctl_out out;
	struct metrics m = {.out = &out, .openmetrics = openmetrics};
	struct ctl_file file = {.fd = STDOUT_FILENO};
	bool to_file = output && strcmp(output, "-") != 0;
	int r = to_file ? ctl_file_open(output, true, &file) : 0;

	if (r < 0)
		return ctl_output_result(r, output);
	r = ctl_out_init(&out, file.fd);
	if (r == 0) {
		status_metrics(&m, status);
		r = ctl_out_flush(&out);
		ctl_out_done(&out);
	}
	if (to_file && r == 0)
		r = ctl_file_commit(&file);
	else if (to_file)
		ctl_file_abort(&file);
	return ctl_output_result(r, to_file ? output : CTL_STDOUT);
}

/*
 * That no daemon answers is a number, too. The exit code says it as ever, unless the number got
 * nowhere: a timer that takes 3 for success is not to take that for one.
 */
static int status_numbers(struct ctl *c)
{
	struct json_object *reply = NULL;
	bool openmetrics;
	int r, w;

	if (!metrics_format(c->format, &openmetrics))
		return ctl_fail(CTL_USAGE,
				"status has no format '%s'; write openmetrics or prometheus",
				c->format);
	r = ctl_call(c, CONTROL_INTERFACE ".Status", NULL, &reply);
	if (r == CTL_DENIED)
		return r;
	w = write_metrics(c->output, openmetrics,
			  r == CTL_OK ? live_object(reply, "status") : NULL);
	json_object_put(reply);
	return w == CTL_OK ? r : w;
}

int verb_status(struct ctl *c, int argc, char **argv)
{
	struct json_object *reply, *status, *streams;
	int r;

	r = live_no_operands(argc, argv);
	if (r == CTL_OK && c->format)
		return status_numbers(c);
	if (r == CTL_OK && c->output)
		return ctl_fail(CTL_USAGE,
				"status: --output is for --format=openmetrics or prometheus");
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".Status", NULL, &reply);
	if (r != CTL_OK)
		return r;
	status = live_object(reply, "status");
	if (c->json) {
		r = ctl_json_print(json_object_get(status));
	} else {
		bool color;

		ctl_pager_open(c);
		color = ctl_color_enabled(c);
		print_head(status, color);
		streams = live_object(status, "streams");
		for (size_t i = 0; i < live_n(streams); i++)
			print_stream(json_object_array_get_idx(streams, i), color);
	}
	json_object_put(reply);
	return r;
}
