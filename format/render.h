/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * render.h - one request as one line: JSON, or text for people.
 *
 * Pure and without printf: a record costs a few hundred nanoseconds, so that `cat --json` is
 * limited by the pipe. Every function writes at most its documented number of bytes, whatever the
 * record holds; names and comm are untrusted bytes and come out as valid UTF-8.
 *
 * A value that is not known is null (JSON) or "-" (text), never 0. Ids and nanosecond times are
 * JSON strings, since readers that keep numbers as doubles round above 2^53.
 */
#pragma once

#include "format/record.h"

#define IOT_RENDER_MAX 4096	/* enough for one line of either kind, newline included */
#define IOT_RENDER_NAME_MAX 64U /* bytes of a device name that are shown */

/* Text only: the second last rendered, so that localtime runs once a second of trace. */
struct iot_render_time {
	int64_t sec;
	char text[24];
};

/* What a line needs beyond the record. Strings are borrowed. */
struct iot_render {
	const char *disk;     /* name of r->dev; NULL = not known */
	const char *part;     /* name of r->part; NULL = not known */
	const char *host;     /* of the segment; NULL = not known */
	uint64_t seq;	      /* of the segment in its capture */
	char capture[33];     /* capture id in hex; "" = null */
	uint8_t swap_out;     /* enum iot_swap_ability of the segment: a record without a tag */
	uint8_t swap_in;      /* from a capture that could not tag is null, not "none" */
	bool imported;	      /* what its source did not tell is null, not 0 or IOT_CPU_NONE */
	uint64_t realtime_ns; /* wall clock at completion; 0 = null */
	struct iot_render_time time;
};
static inline bool iot_render_cpu(const struct iot_render *ctx, uint32_t cpu)
{
	return !ctx->imported || cpu != IOT_CPU_NONE;
}

/* Both return the line's length including its newline; not NUL-terminated. */
size_t iot_render_json(char *buf, const struct iot_request *r, const struct iot_render *ctx);
size_t iot_render_text(char *buf, const struct iot_request *r, struct iot_render *ctx);

/* What a packet's line needs. */
struct iot_render_packet {
	const char *probe;  /* name; NULL = not known */
	const char *iface;  /* name of (netns, ifindex) */
	const char *reason; /* drops: name of the reason */
	const char *symbol; /* drops: function that dropped it */
	const char *action; /* TC and XDP programs: what they decided */
	char capture[33];
	uint64_t realtime_ns; /* 0 = null */
	struct iot_render_time time;
};
struct iot_packet;

/* As for requests. */
size_t iot_render_packet_json(char *buf, const struct iot_packet *r,
			      const struct iot_render_packet *ctx);
size_t iot_render_packet_text(char *buf, const struct iot_packet *r, struct iot_render_packet *ctx);

/* Building blocks: each writes at p and returns the end. */
#define IOT_PUT_LIT(p, lit) (memcpy((p), (lit), sizeof(lit) - 1), (p) + sizeof(lit) - 1)
char *iot_put_u64(char *p, uint64_t v);			/* <= 20 bytes */
char *iot_put_i64(char *p, int64_t v);			/* <= 20 bytes */
char *iot_put_str(char *p, const char *s);		/* strlen(s) bytes */
char *iot_put_devno(char *p, uint32_t dev);		/* "259:0", <= 20 bytes */
char *iot_put_duration(char *p, uint64_t ns);		/* "12.3us", <= 16 bytes */
char *iot_put_size(char *p, uint64_t bytes);		/* "4KiB", "1.5MiB", <= 16 bytes */
char *iot_put_flags(char *p, uint32_t flags, char sep); /* "sync,meta", <= 400 bytes */
/* UTF-8 of s[0..len) up to a NUL; bytes that are not UTF-8 as the character U+00XX. <= 2 * len. */
char *iot_put_utf8(char *p, const char *s, size_t len);
/* The same as a quoted JSON string. <= 6 * len + 2. */
char *iot_put_json_string(char *p, const char *s, size_t len);
char *iot_put_json_u64(char *p, uint64_t v); /* as a string; null for 0 */
/* A name that may be untrusted, cut at IOT_RENDER_NAME_MAX; null for none. */
char *iot_put_json_name(char *p, const char *name);

/* At least one blank, up to width from `from`. */
char *iot_put_pad(char *p, const char *from, size_t width);
/* Untrusted bytes for a terminal. <= 2 * len. */
char *iot_put_printable(char *p, const char *s, size_t len);
char *iot_put_wall_time(char *p, uint64_t realtime_ns, struct iot_render_time *cache); /* <= 40 */
char *iot_put_address(char *p, const struct iot_flow *f, bool src); /* "10.0.0.1", "-"; <= 46 */
/* "udp 10.0.0.1:4000 > 10.0.0.2:53", "arp", "-"; <= 128 */
char *iot_put_flow(char *p, const struct iot_flow *f, uint32_t packet_flags);
char *iot_put_packet_flags(char *p, uint32_t flags, char sep); /* "from-start,end", <= 160 */

/* Queue latency: last issue - start (insert where the start was not seen). false = null. */
bool iot_queue_latency(const struct iot_request *r, uint64_t *ret_ns);
/* Device latency: complete - last issue. false = null. */
bool iot_device_latency(const struct iot_request *r, uint64_t *ret_ns);
/* Name of a value that says where something came from, NULL where that is not known. */
const char *iot_known_name(const char *(*name_of)(unsigned int), uint8_t value);
/* "none", "out", "in", or NULL where the capture could not tell. */
const char *iot_swap_name(const struct iot_request *r, uint8_t swap_out, uint8_t swap_in);
