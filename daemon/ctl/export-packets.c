// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-packets.c - observations of packets as lines: JSON Lines exactly as `cat --json` prints them, and
 * comma-separated values made of the same line, so that the two cannot differ.
 *
 * CSV is quoted as requests are (export-csv.c): text in double quotes, numbers and ids bare, nothing for
 * null, flags joined with "|".
 */
#include "daemon/ctl/export.h"

const char export_packet_csv_header[] =
	"packet,hop,ts_ns,probe,cpu,netns,ifindex,iface,len,mark,ethertype,vlan,proto,src,dst,"
	"sport,dport,"
	"tcp_flags,icmp_type,icmp_code,ip_id,flags,parent,code,reason,location,where,pid,tgid,comm,"
	"realtime_ns,capture\n";

size_t export_packet_jsonl_line(char *buf, const struct iot_packet *p,
				const struct iot_render_packet *ctx)
{
	return iot_render_packet_json(buf, p, ctx);
}

/* Behind the opening quote of a JSON string: its text to p, and *s behind the closing one. */
static char *put_string(char *p, const char **s)
{
	const char *in = *s;

	while (*in != '"') {
		if (*in != '\\') {
			*p++ = *in++;
		} else if (in[1] == 'u') {
			/* The renderer writes control characters and bytes that are no UTF-8 so: U+00XX. */
			char hex[3] = {in[4], in[5], '\0'};
			unsigned int c = 0;

			for (int i = 0; i < 2; i++)
				c = c * 16 + (unsigned int)(hex[i] <= '9' ? hex[i] - '0'
									  : hex[i] - 'a' + 10);
			if (c >= 0x80) {
				*p++ = (char)(0xc0 | c >> 6);
				*p++ = (char)(0x80 | (c & 0x3f));
			} else {
				*p++ = (char)c;
			}
			in += 6;
		} else {
			if (in[1] == '"')
				*p++ = '"';
			*p++ = in[1];
			in += 2;
		}
	}
	*s = in + 1;
	return p;
}

static bool is_text(const char *key, size_t len)
{
	static const char *const names[] = {"probe", "iface", "reason", "location", "comm"};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], key, len) == 0)
			return true;
	return false;
}

/* One value of the line, up to the comma or brace behind it. */
static char *put_value(char *p, const char *key, size_t key_len, const char **s)
{
	const char *in = *s;

	if (*in == '"') {
		bool quote = is_text(key, key_len);

		in++;
		if (quote)
			*p++ = '"';
		p = put_string(p, &in);
		if (quote)
			*p++ = '"';
	} else if (*in == '[') {
		for (in++; *in != ']'; in++) {
			if (*in == ',')
				*p++ = '|';
			else if (*in != '"')
				*p++ = *in;
		}
		in++;
	} else if (strncmp(in, "null", 4) == 0) {
		in += 4;
	} else {
		while (*in != ',' && *in != '}')
			*p++ = *in++;
	}
	*s = in;
	return p;
}

size_t export_packet_csv_line(char *buf, const struct iot_packet *packet,
			      const struct iot_render_packet *ctx)
{
	char line[IOT_RENDER_MAX + 1], *p = buf;
	const char *in = line;

	line[iot_render_packet_json(line, packet, ctx)] = '\0';
	/* {"key":value,"key":value}\n */
	do {
		const char *key = in + 2, *end = strchr(key, '"');

		in = end + 2;
		p = put_value(p, key, (size_t)(end - key), &in);
		*p++ = ',';
	} while (*in == ',');
	p[-1] = '\n';
	return (size_t)(p - buf);
}
