// SPDX-License-Identifier: BSD-2-Clause
/*
 * parse-flow.c - a flow as people write it: "udp 10.0.0.1:4000 > 10.0.0.2:53".
 *
 *	[PROTO] [END] [> END | <> END]
 *
 * PROTO is a name (tcp, udp, icmp, ...) or a number 0..255; END an address, a port (":53"), both
 * ("10.0.0.1:53", "[fe80::1]:53"), or * for any. One END alone is either end of the packet.
 */
#include <arpa/inet.h>

#include "daemon/ctl/ctl-util.h"

static int bad(const char *s, const char *why, struct iot_error *err)
{
	return iot_error_set(err, -EINVAL,
			     "--flow: '%s': %s; write \"udp 10.0.0.1:4000 > 10.0.0.2:53\", "
			     "\"10.0.0.1 <> 10.0.0.2\", \"tcp :443\"",
			     s, why);
}

static bool parse_port(const char *s, uint16_t *ret)
{
	uint64_t v;

	if (iot_parse_u64(s, &v) < 0 || v > UINT16_MAX)
		return false;
	*ret = (uint16_t)v;
	return true;
}

static bool parse_address(const char *s, struct iot_flow_end *e)
{
	if (strcmp(s, "*") == 0 || !*s)
		return true;
	e->family = strchr(s, ':') ? 6 : 4;
	return inet_pton(e->family == 6 ? AF_INET6 : AF_INET, s, e->addr) == 1;
}

static bool parse_end(char *s, struct iot_flow_end *e)
{
	char *colon = strrchr(s, ':'), *port = NULL;

	*e = (struct iot_flow_end){0};
	if (*s == '[') {
		char *close = strchr(s, ']');

		if (!close)
			return false;
		*close = '\0';
		s++;
		if (close[1] == ':')
			port = close + 2;
		else if (close[1])
			return false;
	} else if (colon && strchr(s, ':') == colon) {
		/* One colon: an IPv6 address has two at least. */
		*colon = '\0';
		port = colon + 1;
	}
	if (port) {
		e->port_set = true;
		if (!parse_port(port, &e->port))
			return false;
	}
	return parse_address(s, e);
}

static bool parse_proto(const char *s, struct iot_flow_match *m)
{
	uint64_t v;

	for (unsigned int i = 0; i < 256; i++) {
		const char *name = iot_ip_proto_name(i);

		if (name && strcmp(s, name) == 0) {
			m->ip_proto = (uint8_t)i;
			return m->ip_proto_set = true;
		}
	}
	if (iot_parse_u64(s, &v) < 0 || v > UINT8_MAX)
		return false;
	m->ip_proto = (uint8_t)v;
	return m->ip_proto_set = true;
}

int ctl_parse_flow(const char *s, struct iot_flow_match *ret, struct iot_error *err)
{
	struct iot_flow_match m = {.set = true};
	char text[256], *save = NULL, *word;
	bool arrow = false, src = false;

	if (strlen(s) >= sizeof(text))
		return bad(s, "too long", err);
	snprintf(text, sizeof(text), "%s", s);
	word = strtok_r(text, " \t", &save);
	if (!word)
		return bad(s, "empty", err);
	if (parse_proto(word, &m))
		word = strtok_r(NULL, " \t", &save);
	if (word && strcmp(word, ">") != 0 && strcmp(word, "<>") != 0) {
		if (!parse_end(word, &m.src))
			return bad(s, "no protocol, address or port", err);
		src = true;
		word = strtok_r(NULL, " \t", &save);
	}
	if (word) {
		if (strcmp(word, ">") != 0 && strcmp(word, "<>") != 0)
			return bad(s, "between two ends there must be > or <>", err);
		m.both_ways = strcmp(word, "<>") == 0;
		arrow = true;
		word = strtok_r(NULL, " \t", &save);
		if (!word || !parse_end(word, &m.dst))
			return bad(s, "no address or port behind the arrow", err);
		if (strtok_r(NULL, " \t", &save))
			return bad(s, "more than two ends", err);
	}
	if (src && !arrow)
		m.both_ways = true;
	*ret = m;
	return 0;
}
