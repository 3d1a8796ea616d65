// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet-flow.c - is an observation one of the flow that is asked for? Pure; packet-verdict.h has the model.
 *
 * A packet whose headers were read in part only may be of the flow: the answer is then MAYBE, never NO,
 * since an absence is proved by counting the observations that are not of it.
 */
#include "format/packet-internal.h"

#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_SCTP 132

static enum iot_match end_matches(const struct iot_flow_end *e, uint8_t family, const uint8_t *addr,
				  uint16_t port, bool has_ports)
{
	if (e->family && (e->family != family || memcmp(e->addr, addr, family == 4 ? 4 : 16) != 0))
		return IOT_MATCH_NO;
	if (!e->port_set)
		return IOT_MATCH_YES;
	if (!has_ports)
		return IOT_MATCH_MAYBE;
	return e->port == port ? IOT_MATCH_YES : IOT_MATCH_NO;
}

static enum iot_match one_way(const struct iot_flow_end *src, const struct iot_flow_end *dst,
			      const struct iot_flow *f, bool has_ports)
{
	enum iot_match a = end_matches(src, f->family, f->src, f->sport, has_ports);
	enum iot_match b = end_matches(dst, f->family, f->dst, f->dport, has_ports);

	if (a == IOT_MATCH_NO || b == IOT_MATCH_NO)
		return IOT_MATCH_NO;
	return a == IOT_MATCH_MAYBE || b == IOT_MATCH_MAYBE ? IOT_MATCH_MAYBE : IOT_MATCH_YES;
}

/* IPv6 headers between the first and the transport's. */
static bool is_extension(const struct iot_flow *f)
{
	switch (f->family == 6 ? f->ip_proto : UINT8_MAX) {
	case 0:	  /* hop by hop */
	case 43:  /* routing */
	case 44:  /* fragment */
	case 51:  /* authentication */
	case 60:  /* destination options */
	case 135: /* mobility */
	case 139: /* HIP */
	case 140: /* shim6 */
		return true;
	default:
		return false;
	}
}

enum iot_match iot_flow_matches(const struct iot_flow_match *m, const struct iot_flow *f,
				uint32_t flags)
{
	enum iot_match there, back;
	bool has_ports, has_proto;

	if (!m->set)
		return IOT_MATCH_YES;
	/* No header; or a tag, behind which there may be one more. */
	if ((flags & IOT_PACKET_NO_HEADER) || (!f->family && (flags & IOT_PACKET_VLAN)))
		return IOT_MATCH_MAYBE;
	/* The recorder reads no further than these: what they carry is not known. */
	has_proto = !is_extension(f);
	/* Nobody has port 0: ports were not read, or a fragment does not carry them. */
	has_ports = has_proto && (f->sport || f->dport ||
				  (!(flags & IOT_PACKET_FRAGMENT) && f->ip_proto != PROTO_TCP &&
				   f->ip_proto != PROTO_UDP && f->ip_proto != PROTO_SCTP));
	if (m->ip_proto_set && (!f->family || (has_proto && f->ip_proto != m->ip_proto)))
		return IOT_MATCH_NO;
	there = one_way(&m->src, &m->dst, f, has_ports);
	if (there == IOT_MATCH_YES && m->ip_proto_set && !has_proto)
		there = IOT_MATCH_MAYBE;
	if (!m->both_ways || there == IOT_MATCH_YES)
		return there;
	back = one_way(&m->dst, &m->src, f, has_ports);
	if (back == IOT_MATCH_YES && m->ip_proto_set && !has_proto)
		back = IOT_MATCH_MAYBE;
	if (back == IOT_MATCH_YES)
		return back;
	return there == IOT_MATCH_MAYBE ? there : back;
}
