// SPDX-License-Identifier: BSD-2-Clause
/*
 * verdict-text.c - a verdict in words and in JSON, the same in every verb.
 *
 * What is not proved is never called complete: the words come from the code alone, and losses are
 * listed by what is known about them.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/json.h"
#include "format/books.h"
#include "format/render.h"

enum ctl_style ctl_verdict_style(enum iot_verdict_code code)
{
	switch (code) {
	case IOT_VERDICT_COMPLETE:
		return CTL_STYLE_GOOD;
	case IOT_VERDICT_LOST:
	case IOT_VERDICT_UNKNOWN:
		return CTL_STYLE_WARN;
	default:
		return CTL_STYLE_BAD;
	}
}

int ctl_damage_code(const struct iot_verdict *v)
{
	return v->code == IOT_VERDICT_CORRUPT || v->unread ? CTL_ERROR : CTL_OK;
}

void ctl_verdict_line(const struct iot_verdict *v, size_t n_segments, char *buf, size_t size)
{
	char records[CTL_HUMAN_MAX], lost[CTL_HUMAN_MAX], unattributed[CTL_HUMAN_MAX],
		missed[CTL_HUMAN_MAX], doubt[160] = "";

	if (v->n_unattributed || v->n_missed)
		snprintf(doubt, sizeof(doubt), ", %s lost without owner, %s runs missed",
			 ctl_human_count(v->n_unattributed, unattributed),
			 ctl_human_count(v->n_missed, missed));
	snprintf(buf, size, "%s: %zu segment%s, %s %s, %s lost%s",
		 v->being_recorded ? "open" : iot_verdict_name(v->code), n_segments,
		 n_segments == 1 ? "" : "s", ctl_human_count(v->n_records, records),
		 !v->n_observations		     ? "requests"
		 : v->n_observations == v->n_records ? "observations"
						     : "records",
		 v->n_lost			   ? ctl_human_count(v->n_lost, lost)
		 : v->code == IOT_VERDICT_COMPLETE ? "none"
						   : "none known",
		 doubt);
}

int ctl_damage_say(const struct iot_verdict *v, size_t n_segments)
{
	int code = ctl_damage_code(v);

	if (code != CTL_OK) {
		fflush(stdout);
		ctl_verdict_print(stderr, v, n_segments, "iotracectl: ", CTL_PRINT_PLAIN);
	}
	return code;
}

/* ---- reasons ----------------------------------------------------------------------------------- */

/* "segment 7: block_rq_issue: missed runs": what it is about, which probe, what it is. */
struct reason {
	size_t segment; /* bytes of "segment 7: ", or 0 */
	size_t probe;	/* bytes of "block_rq_issue", or 0 */
	const char *what;
};

static struct reason split_reason(const char *text)
{
	struct reason r = {.what = text};
	size_t n;

	if (strncmp(text, "segment ", 8) == 0) {
		n = 8 + strspn(text + 8, "0123456789");
		if (n > 8 && strncmp(text + n, ": ", 2) == 0)
			r.segment = n + 2;
	}
	r.what = text + r.segment;
	n = strcspn(r.what, " :,");
	/* "block_rq_issue: " or "block_rq_issue, CPU 3: "; other words before a colon are no names. */
	if (n && strncmp(r.what + n, ", CPU ", 6) == 0)
		n += 6 + strspn(r.what + n + 6, "0123456789");
	if (n && strncmp(r.what + n, ": ", 2) == 0 && memchr(r.what, '_', n)) {
		r.probe = n;
		r.what += n + 2;
	}
	return r;
}

static bool same_about(const char *a, const struct reason *x, const char *b, const struct reason *y)
{
	return x->segment == y->segment && strncmp(a, b, x->segment) == 0;
}

static bool begins(const struct reason *r, const char *words)
{
	return strncmp(r->what, words, strlen(words)) == 0;
}

/* Such a file knows little of its books, and says so first. */
static bool is_origin(const struct reason *r)
{
	return begins(r, "recovered file") || begins(r, "imported");
}

/* Whatever the numbers and probes: a file rebuilt from a torn one, or from another tool's, knows none of this. */
static bool follows_from_origin(const struct reason *r)
{
	return !is_origin(r) &&
	       (strstr(r->what, "not known") || strstr(r->what, "not attached throughout") ||
		strstr(r->what, "cannot be counted"));
}

static bool has_origin(const struct iot_verdict *v, size_t i, const struct reason *r)
{
	for (size_t k = 0; k < v->n_reasons; k++) {
		struct reason other = split_reason(v->reasons[k]);

		if (same_about(v->reasons[i], r, v->reasons[k], &other) && is_origin(&other))
			return true;
	}
	return false;
}

/* Is reason k said by the line of reason i? */
static bool joins(const struct iot_verdict *v, size_t i, size_t k)
{
	struct reason a = split_reason(v->reasons[i]), b = split_reason(v->reasons[k]);

	if (!same_about(v->reasons[i], &a, v->reasons[k], &b))
		return false;
	if (follows_from_origin(&a) && follows_from_origin(&b) && has_origin(v, i, &a))
		return true;
	return a.probe && b.probe && strcmp(a.what, b.what) == 0;
}

static void print_reason(FILE *f, const struct iot_verdict *v, size_t i, const char *prefix)
{
	char text[2 * sizeof(v->reasons[0]) + 1], what[sizeof(text)];
	struct reason r = split_reason(v->reasons[i]);
	size_t n = 1;

	for (size_t k = 0; k < i; k++)
		if (joins(v, k, i))
			return;
	for (size_t k = i + 1; k < v->n_reasons; k++)
		n += joins(v, i, k);
	ctl_printable(v->reasons[i], text, sizeof(text));
	if (n == 1)
		fprintf(f, "%s  - %s\n", prefix, text);
	else if (follows_from_origin(&r) && has_origin(v, i, &r))
		fprintf(f,
			"%s  - %.*shence its time, counters and missed runs are not known (%zu "
			"reasons)\n",
			prefix, (int)r.segment, text, n);
	else
		fprintf(f, "%s  - %.*s%.*s and %zu more: %s\n", prefix, (int)r.segment, text,
			(int)r.probe, text + r.segment, n - 1,
			ctl_printable(r.what, what, sizeof(what)));
}

void ctl_verdict_print(FILE *f, const struct iot_verdict *v, size_t n_segments, const char *prefix,
		       enum ctl_print how)
{
	const bool color = how & CTL_PRINT_COLOR;
	char line[320], text[2 * sizeof(v->reasons[0]) + 1];

	ctl_verdict_line(v, n_segments, line, sizeof(line));
	fprintf(f, "%s%s%s%s\n", prefix,
		ctl_style_on(color,
			     v->being_recorded ? CTL_STYLE_WARN : ctl_verdict_style(v->code)),
		line, ctl_style_off(color));
	for (size_t i = 0; i < v->n_reasons; i++) {
		if (how & CTL_PRINT_ALL)
			fprintf(f, "%s  - %s\n", prefix,
				ctl_printable(v->reasons[i], text, sizeof(text)));
		else
			print_reason(f, v, i, prefix);
	}
	if (v->n_reasons_dropped)
		fprintf(f, "%s  - and %zu more reasons\n", prefix, v->n_reasons_dropped);
}

struct json_object *ctl_json_u64(uint64_t v)
{
	return json_object_new_uint64(v);
}

struct json_object *ctl_json_id(uint64_t v)
{
	char text[24];

	if (!v)
		return NULL;
	*iot_put_u64(text, v) = '\0';
	return json_object_new_string(text);
}

struct json_object *ctl_json_text(const char *s)
{
	char buf[1024];
	char *end;

	if (!s || !*s)
		return NULL;
	end = iot_put_utf8(buf, s, strnlen(s, sizeof(buf) / 2));
	return json_object_new_string_len(buf, (int)(end - buf));
}

struct json_object *ctl_json_sum(const struct iot_sum *s)
{
	return s->unknown ? NULL : ctl_json_u64(s->n);
}

struct json_object *ctl_json_reasons(const struct iot_verdict *v)
{
	struct json_object *a = json_object_new_array();

	for (size_t i = 0; a && i < v->n_reasons; i++)
		json_object_array_add(a, ctl_json_text(v->reasons[i]));
	return a;
}

struct json_object *ctl_verdict_json(const struct iot_verdict *v)
{
	struct json_object *o = json_object_new_object(), *reasons = ctl_json_reasons(v);

	if (!o || !reasons) {
		json_object_put(o);
		json_object_put(reasons);
		return NULL;
	}
	json_object_object_add(o, "verdict", json_object_new_string(iot_verdict_name(v->code)));
	json_object_object_add(o, "code", json_object_new_int(v->code));
	json_object_object_add(o, "records", ctl_json_u64(v->n_records));
	json_object_object_add(o, "in_flight", ctl_json_u64(v->n_open));
	json_object_object_add(o, "lost", ctl_json_u64(v->n_lost));
	json_object_object_add(o, "unattributed", ctl_json_u64(v->n_unattributed));
	json_object_object_add(o, "missed", ctl_json_u64(v->n_missed));
	json_object_object_add(o, "books_checked", ctl_json_u64(v->books_checked));
	json_object_object_add(o, "books_unbalanced", ctl_json_u64(v->books_unbalanced));
	json_object_object_add(o, "reasons", reasons);
	json_object_object_add(o, "reasons_dropped", ctl_json_u64(v->n_reasons_dropped));
	json_object_object_add(o, "being_recorded", json_object_new_boolean(v->being_recorded));
	return o;
}

int ctl_between_json(const struct iot_scan *scan, struct json_object **ret)
{
	struct json_object *o = json_object_new_object();

	for (int stream = IOT_STREAM_BLOCK; stream <= IOT_STREAM_PACKET; stream++) {
		uint64_t ns;
		int r = ctl_cover_between(scan, stream, &ns);

		if (r < 0) {
			json_object_put(o);
			return r;
		}
		json_object_object_add(o, iot_stream_name(stream), ctl_json_id(ns));
	}
	*ret = o;
	return 0;
}

int ctl_json_print(struct json_object *o)
{
	_cleanup_free_ char *text = ctl_json_string(o, true);
	int r = CTL_OK;

	if (!text)
		r = ctl_fail(CTL_ERROR, "out of memory");
	else
		printf("%s\n", text);
	json_object_put(o);
	return r;
}
