// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-clickhouse.c - rows of ClickHouse's RowBinary: the columns of packaging/clickhouse/schema.sql, in its
 * order, without names, so the two are changed together (tests/archive/test-clickhouse.sh loads one by the other).
 *
 * Numbers are little-endian, as wide as their column; a string is its length (LEB128) and its bytes, an array
 * its number of elements and these; a Nullable column has a byte in front, 1 for null. A value that is not known
 * is null, as in JSON, and never 0. Nothing is formatted, so that reading the segments is what takes the time.
 *
 * A row knows its segment (host, capture, seq): by that a loader tells what it has loaded.
 */
#include "daemon/ctl/export.h"

#include <endian.h>

static char *put_bytes(char *p, const void *value, size_t size)
{
	memcpy(p, value, size);
	return p + size;
}

static char *put_u16(char *p, uint16_t v)
{
	v = htole16(v);
	return put_bytes(p, &v, sizeof(v));
}

static char *put_u32(char *p, uint32_t v)
{
	v = htole32(v);
	return put_bytes(p, &v, sizeof(v));
}

static char *put_u64(char *p, uint64_t v)
{
	v = htole64(v);
	return put_bytes(p, &v, sizeof(v));
}

static char *put_length(char *p, size_t n)
{
	for (; n >= 0x80; n >>= 7)
		*p++ = (char)(n | 0x80);
	*p++ = (char)n;
	return p;
}

static char *put_text(char *p, const char *s, size_t len)
{
	char utf8[2 * IOT_RENDER_NAME_MAX];
	size_t n = (size_t)(iot_put_utf8(utf8, s, IOT_MIN(len, IOT_RENDER_NAME_MAX)) - utf8);

	return put_bytes(put_length(p, n), utf8, n);
}

static char *put_word(char *p, const char *s)
{
	return put_text(p, s, strlen(s));
}

/* ---- Nullable -------------------------------------------------------------------------------------- */

static char *put_null(char *p, bool null)
{
	*p++ = null;
	return p;
}

/* 0 stands for what is not known. */
static char *put_known64(char *p, uint64_t v)
{
	p = put_null(p, v == 0);
	return v ? put_u64(p, v) : p;
}

static char *put_name(char *p, const char *name)
{
	bool known = name && *name;

	p = put_null(p, !known);
	return known ? put_word(p, name) : p;
}

static char *put_device(char *p, uint32_t dev)
{
	char number[32];
	size_t n = (size_t)(iot_put_devno(number, dev) - number);

	return put_bytes(put_length(p, n), number, n);
}

static char *put_latency(char *p, bool known, uint64_t ns)
{
	p = put_null(p, !known);
	return known ? put_u64(p, ns) : p;
}

/* ---- groups of columns ----------------------------------------------------------------------------- */

static char *put_flags(char *p, uint32_t flags)
{
	char text[512], *end = iot_put_flags(text, flags, ','), *word = text;
	size_t n = 0;

	*end = '\0';
	for (const char *c = text; c < end; c++)
		n += *c == ',';
	p = put_length(p, end > text ? n + 1 : 0);
	while (word < end) {
		size_t len = strcspn(word, ",");

		p = put_bytes(put_length(p, len), word, len);
		word += len + 1;
	}
	return p;
}

static char *put_what(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	p = put_known64(p, r->id);
	p = put_device(p, r->part);
	p = put_name(p, ctx->disk);
	p = put_name(p, r->part == r->dev ? NULL : ctx->part);
	p = put_word(p, iot_op_name(r->op));
	p = put_flags(p, r->flags);
	p = put_null(p, r->sector == IOT_SECTOR_NONE);
	if (r->sector != IOT_SECTOR_NONE)
		p = put_u64(p, r->sector);
	p = put_u32(p, r->bytes);
	p = put_u32(p, r->bytes_done);
	p = put_null(p, r->status && !r->error);
	if (!r->status || r->error)
		p = put_u32(p, (uint32_t)r->error);
	p = put_u32(p, r->status);
	p = put_name(p, iot_swap_name(r, ctx->swap_out, ctx->swap_in));
	return put_u32(p, r->unswapped_bytes);
}

static char *put_when(char *p, const struct iot_request *r)
{
	uint64_t queue_ns = 0, device_ns = 0;
	bool queue = iot_queue_latency(r, &queue_ns), device = iot_device_latency(r, &device_ns);

	p = put_known64(p, r->start_ns);
	p = put_known64(p, r->insert_ns);
	p = put_known64(p, r->issue_ns);
	p = put_known64(p, r->issue_last_ns);
	p = put_known64(p, r->complete_ns);
	p = put_latency(p, queue, queue_ns);
	return put_latency(p, device, device_ns);
}

static char *put_who(char *p, const struct iot_request *r)
{
	bool none = r->submitter == IOT_SUBMITTER_NONE;

	p = put_null(p, none);
	p = none ? p : put_u32(p, r->pid);
	p = put_null(p, none);
	p = none ? p : put_u32(p, r->tgid);
	p = put_null(p, none);
	p = none ? p : put_text(p, r->comm, sizeof(r->comm));
	p = put_known64(p, r->cgroup);
	p = put_name(p, iot_known_name(iot_cgroup_by_name, r->cgroup_by));
	p = put_known64(p, r->ino);
	p = put_null(p, r->fsdev == 0);
	p = r->fsdev ? put_device(p, r->fsdev) : p;
	p = put_name(p, iot_known_name(iot_file_by_name, r->file_by));
	p = put_name(p, iot_known_name(iot_origin_name, r->origin));
	return put_name(p, iot_known_name(iot_reclaim_name, r->reclaim));
}

static char *put_where(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	bool issue = r->issue_ns && iot_render_cpu(ctx, r->issue_cpu);
	bool complete = r->complete_ns && iot_render_cpu(ctx, r->complete_cpu);

	p = put_null(p, !issue);
	p = issue ? put_u32(p, r->issue_cpu) : p;
	p = put_null(p, !complete);
	p = complete ? put_u32(p, r->complete_cpu) : p;
	p = put_null(p, r->hwq == IOT_HWQ_NONE);
	p = r->hwq != IOT_HWQ_NONE ? put_u16(p, r->hwq) : p;
	p = put_u16(p, r->requeues);
	p = put_u16(p, r->merges);
	return put_u16(p, r->segments);
}

size_t export_clickhouse_row(char *buf, const struct iot_request *r, const struct iot_render *ctx)
{
	char *p = buf;

	p = put_word(p, ctx->host ? ctx->host : "");
	p = put_word(p, ctx->capture);
	p = put_u64(p, ctx->seq);
	/* Seconds, of which days are made; nobody's clock is before 1970. */
	p = put_u32(p, (uint32_t)(ctx->realtime_ns / 1000000000U));
	p = put_known64(p, ctx->realtime_ns);
	p = put_what(p, r, ctx);
	p = put_when(p, r);
	p = put_who(p, r);
	return (size_t)(put_where(p, r, ctx) - buf);
}
