// SPDX-License-Identifier: BSD-2-Clause
/*
 * render-text.c - the line for people, see render.h.
 *
 *   TIME DEVICE OP FLAGS SECTOR+SECTORS BYTES q=QUEUE d=DEVICE-LATENCY STATUS COMM[PID]
 *
 * TIME is the wall clock at completion, which is the order of the lines. Fields are separated by
 * blanks and "-" stands for what is not known, so that awk can take them apart; comm comes last
 * because it may hold blanks. No byte of a record reaches a terminal as a control character.
 */
#include <time.h>

#include "format/render.h"

char *iot_put_pad(char *p, const char *from, size_t width)
{
	size_t len = (size_t)(p - from);

	/* At least one blank, so that fields can be told apart by blanks. */
	do
		*p++ = ' ';
	while (++len < width);
	return p;
}

char *iot_put_wall_time(char *p, uint64_t realtime_ns, struct iot_render_time *cache)
{
	int64_t sec = (int64_t)(realtime_ns / 1000000000);
	uint32_t ns = (uint32_t)(realtime_ns % 1000000000);

	if (!realtime_ns)
		return IOT_PUT_LIT(p, "-");
	if (sec != cache->sec || !cache->text[0]) {
		time_t t = (time_t)sec;
		struct tm tm;

		if (!localtime_r(&t, &tm) ||
		    !strftime(cache->text, sizeof(cache->text), "%F %T", &tm))
			memcpy(cache->text, "-", 2);
		cache->sec = sec;
	}
	p = iot_put_str(p, cache->text);
	*p++ = '.';
	for (uint32_t unit = 100000000; unit; unit /= 10)
		*p++ = (char)('0' + ns / unit % 10);
	return p;
}

/* Untrusted bytes on a terminal: valid UTF-8, and no control characters. */
char *iot_put_printable(char *p, const char *s, size_t len)
{
	char *from = p;

	p = iot_put_utf8(p, s, len);
	for (char *c = from; c < p; c++) {
		unsigned char u = (unsigned char)*c;

		if (u < 0x20 || u == 0x7f)
			*c = '?';
		else if (u == 0xc2 && c + 1 < p && (unsigned char)c[1] < 0xa0)
			/* C1 controls: U+0080..U+009F, e.g. a one-byte CSI */
			c[0] = c[1] = '?';
	}
	return p;
}

static char *put_device(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	const char *name = r->part == r->dev ? ctx->disk : ctx->part;

	if (!name || !*name)
		return iot_put_devno(p, r->part);
	return iot_put_printable(p, name, strnlen(name, IOT_RENDER_NAME_MAX));
}

static char *put_status(char *p, const struct iot_request *r)
{
	/* Whatever a damaged record says: negating INT32_MIN is undefined. */
	const char *name = r->error < 0 && r->error > -4096 ? strerrorname_np(-r->error) : NULL;

	if (name)
		return iot_put_str(p, name);
	if (r->error)
		return iot_put_i64(p, r->error);
	if (r->status) {
		p = IOT_PUT_LIT(p, "status=");
		return iot_put_u64(p, r->status);
	}
	return IOT_PUT_LIT(p, "ok");
}

size_t iot_render_text(char *buf, const struct iot_request *r, struct iot_render *ctx)
{
	char *p = buf, *from = p;
	uint64_t ns;

	p = iot_put_pad(iot_put_wall_time(p, ctx->realtime_ns, &ctx->time), from, 30);
	from = p;
	p = iot_put_pad(put_device(p, r, ctx), from, 11);
	from = p;
	p = iot_put_pad(iot_put_str(p, iot_op_name(r->op)), from, 8);
	from = p;
	/* Swap is swap by whatever rule it was told; the operation says which way. */
	p = iot_put_flags(p, r->swap ? r->flags | IOT_FLAG_SWAP : r->flags, ',');
	if (p == from)
		*p++ = '-';
	p = iot_put_pad(p, from, 14);
	from = p;
	if (r->sector == IOT_SECTOR_NONE) {
		*p++ = '-';
	} else {
		p = iot_put_u64(p, r->sector);
		*p++ = '+';
		p = iot_put_u64(p, r->bytes / 512);
	}
	p = iot_put_pad(p, from, 17);
	from = p;
	p = iot_put_pad(iot_put_size(p, r->bytes), from, 8);
	from = p;
	p = IOT_PUT_LIT(p, "q=");
	p = iot_queue_latency(r, &ns) ? iot_put_duration(p, ns) : IOT_PUT_LIT(p, "-");
	p = iot_put_pad(p, from, 10);
	from = p;
	p = IOT_PUT_LIT(p, "d=");
	p = iot_device_latency(r, &ns) ? iot_put_duration(p, ns) : IOT_PUT_LIT(p, "-");
	p = iot_put_pad(p, from, 10);
	from = p;
	p = iot_put_pad(put_status(p, r), from, 4);
	if (r->submitter == IOT_SUBMITTER_NONE) {
		*p++ = '-';
	} else {
		p = iot_put_printable(p, r->comm, sizeof(r->comm));
		*p++ = '[';
		p = iot_put_u64(p, r->pid);
		*p++ = ']';
	}
	*p++ = '\n';
	return (size_t)(p - buf);
}
