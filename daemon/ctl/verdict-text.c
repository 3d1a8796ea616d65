// SPDX-License-Identifier: BSD-2-Clause
/*
 * verdict-text.c - a verdict in words and in JSON, the same in every verb.
 *
 * What is not proved is never called complete: the words come from the code alone, and losses are
 * listed by what is known about them.
 */
#include <json-c/json.h>

#include "daemon/ctl/ctl-util.h"
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

int ctl_damage_code(enum iot_verdict_code code)
{
	return code == IOT_VERDICT_CORRUPT ? CTL_ERROR : CTL_OK;
}

void ctl_verdict_line(const struct iot_verdict *v, size_t n_segments, char *buf, size_t size)
{
	char records[CTL_HUMAN_MAX], lost[CTL_HUMAN_MAX], unattributed[CTL_HUMAN_MAX],
		missed[CTL_HUMAN_MAX], doubt[160] = "";

	if (v->n_unattributed || v->n_missed)
		snprintf(doubt, sizeof(doubt), ", %s lost without owner, %s runs missed",
			 ctl_human_count(v->n_unattributed, unattributed),
			 ctl_human_count(v->n_missed, missed));
	snprintf(buf, size, "%s: %zu segment%s, %s requests, %s lost%s",
		 v->being_recorded ? "open" : iot_verdict_name(v->code), n_segments,
		 n_segments == 1 ? "" : "s", ctl_human_count(v->n_records, records),
		 v->n_lost			   ? ctl_human_count(v->n_lost, lost)
		 : v->code == IOT_VERDICT_COMPLETE ? "none"
						   : "none known",
		 doubt);
}

void ctl_verdict_print(FILE *f, const struct iot_verdict *v, size_t n_segments, const char *prefix,
		       bool color)
{
	char line[320], text[2 * sizeof(v->reasons[0]) + 1];

	ctl_verdict_line(v, n_segments, line, sizeof(line));
	fprintf(f, "%s%s%s%s\n", prefix,
		ctl_style_on(color,
			     v->being_recorded ? CTL_STYLE_WARN : ctl_verdict_style(v->code)),
		line, ctl_style_off(color));
	for (size_t i = 0; i < v->n_reasons; i++)
		fprintf(f, "%s  - %s\n", prefix, ctl_printable(v->reasons[i], text, sizeof(text)));
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

struct json_object *ctl_verdict_json(const struct iot_verdict *v)
{
	struct json_object *o = json_object_new_object(), *reasons = json_object_new_array();

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
	for (size_t i = 0; i < v->n_reasons; i++)
		json_object_array_add(reasons, ctl_json_text(v->reasons[i]));
	json_object_object_add(o, "reasons", reasons);
	json_object_object_add(o, "reasons_dropped", ctl_json_u64(v->n_reasons_dropped));
	json_object_object_add(o, "being_recorded", json_object_new_boolean(v->being_recorded));
	return o;
}

int ctl_json_print(struct json_object *o)
{
	const char *text = o ? json_object_to_json_string_ext(
				       o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
						  JSON_C_TO_STRING_NOSLASHESCAPE)
			     : NULL;
	int r = CTL_OK;

	if (!text)
		r = ctl_fail(CTL_ERROR, "out of memory");
	else
		printf("%s\n", text);
	json_object_put(o);
	return r;
}
