// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-csv.c - comma-separated values: one header row, the fields of `cat --json` in its order.
 *
 * Quoting is RFC 4180's: text fields stand in double quotes, a double quote in them is doubled;
 * rows end with a newline. An absent value is an empty field without quotes, an empty text is "".
 * flags are joined with "|". Text is valid UTF-8: bytes that are not become the character U+00XX.
 */
#include "daemon/ctl/export.h"

const char export_csv_header[] =
	"id,dev,disk,part,op,flags,sector,bytes,bytes_done,error,swap,start_ns,insert_ns,issue_ns,"
	"complete_ns,pid,tgid,comm,cgroup,ino,fsdev,origin,cpu,requeues,merges,segments,"
	"issue_last_ns,issue_cpu,hwq,status,submitter,swap_rule,realtime_ns,capture,"
	"file_by,cgroup_by,reclaim,unswapped_bytes\n";

static char *put_text(char *p, const char *s, size_t len)
{
	char utf8[2 * IOT_RENDER_NAME_MAX], *end;

	end = iot_put_utf8(utf8, s, IOT_MIN(len, IOT_RENDER_NAME_MAX));
	*p++ = '"';
	for (char *c = utf8; c < end; c++) {
		if (*c == '"')
			*p++ = '"';
		*p++ = *c;
	}
	*p++ = '"';
	return p;
}

static char *put_name(char *p, const char *name)
{
	return name && *name ? put_text(p, name, strlen(name)) : p;
}

/* v and the comma behind it; nothing for 0, which stands for absent in times and ids. */
static char *put_known(char *p, uint64_t v)
{
	if (v)
		p = iot_put_u64(p, v);
	*p++ = ',';
	return p;
}

static char *put_number(char *p, uint64_t v)
{
	p = iot_put_u64(p, v);
	*p++ = ',';
	return p;
}

/* Where something came from and a comma; nothing where that is not known. */
static char *put_source(char *p, const char *(*name_of)(unsigned int), uint8_t value)
{
	const char *name = iot_known_name(name_of, value);

	if (name)
		p = iot_put_str(p, name);
	*p++ = ',';
	return p;
}

static char *put_what(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	const char *swap = iot_swap_name(r, ctx->swap_out, ctx->swap_in);

	p = put_known(p, r->id);
	p = iot_put_devno(p, r->part);
	*p++ = ',';
	p = put_name(p, ctx->disk);
	*p++ = ',';
	p = put_name(p, r->part == r->dev ? NULL : ctx->part);
	*p++ = ',';
	p = iot_put_str(p, iot_op_name(r->op));
	*p++ = ',';
	p = iot_put_flags(p, r->flags, '|');
	*p++ = ',';
	if (r->sector != IOT_SECTOR_NONE)
		p = iot_put_u64(p, r->sector);
	*p++ = ',';
	p = put_number(p, r->bytes);
	p = put_number(p, r->bytes_done);
	if (!r->status || r->error)
		p = iot_put_i64(p, r->error);
	*p++ = ',';
	if (swap)
		p = iot_put_str(p, swap);
	*p++ = ',';
	return p;
}

static char *put_number_unless(char *p, bool unknown, uint64_t v)
{
	if (!unknown)
		return put_number(p, v);
	*p++ = ',';
	return p;
}

static char *put_who(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	if (r->submitter == IOT_SUBMITTER_NONE) {
		p = iot_put_str(p, ",,,");
	} else {
		p = put_number(p, r->pid);
		p = put_number_unless(p, ctx->imported && !r->tgid, r->tgid);
		p = put_text(p, r->comm, sizeof(r->comm));
		*p++ = ',';
	}
	p = put_known(p, r->cgroup);
	p = put_known(p, r->ino);
	if (r->fsdev)
		p = iot_put_devno(p, r->fsdev);
	*p++ = ',';
	return put_source(p, iot_origin_name, r->origin);
}

size_t export_csv_line(char *buf, const struct iot_request *r, const struct iot_render *ctx)
{
	static const char *const submitters[] = {"", "start", "insert", "issue"};
	static const char *const rules[] = {"", "flag", "page", "partition"};
	char *p = put_what(buf, r, ctx);

	p = put_known(p, r->start_ns);
	p = put_known(p, r->insert_ns);
	p = put_known(p, r->issue_ns);
	p = put_known(p, r->complete_ns);
	p = put_who(p, r, ctx);
	if (r->complete_ns && iot_render_cpu(ctx, r->complete_cpu))
		p = iot_put_u64(p, r->complete_cpu);
	*p++ = ',';
	p = put_number(p, r->requeues);
	p = put_number(p, r->merges);
	p = put_number_unless(p, ctx->imported, r->segments);
	p = put_known(p, r->issue_last_ns);
	if (r->issue_ns && iot_render_cpu(ctx, r->issue_cpu))
		p = iot_put_u64(p, r->issue_cpu);
	*p++ = ',';
	if (r->hwq != IOT_HWQ_NONE)
		p = iot_put_u64(p, r->hwq);
	*p++ = ',';
	p = put_number_unless(p, ctx->imported, r->status);
	p = iot_put_str(p,
			r->submitter < IOT_ARRAY_SIZE(submitters) ? submitters[r->submitter] : "");
	*p++ = ',';
	p = iot_put_str(p, r->swap_rule < IOT_ARRAY_SIZE(rules) ? rules[r->swap_rule] : "");
	*p++ = ',';
	p = put_known(p, ctx->realtime_ns);
	p = iot_put_str(p, ctx->capture);
	*p++ = ',';
	p = put_source(p, iot_file_by_name, r->file_by);
	p = put_source(p, iot_cgroup_by_name, r->cgroup_by);
	p = put_source(p, iot_reclaim_name, r->reclaim);
	p = iot_put_u64(p, r->unswapped_bytes);
	*p++ = '\n';
	return (size_t)(p - buf);
}
