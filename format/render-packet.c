// SPDX-License-Identifier: BSD-2-Clause
/*
 * render-packet.c - one observation of a packet as a line, see render.h.
 *
 *   TIME ID#HOP PROBE INTERFACE FLOW len=LENGTH FLAGS [CODE] [REASON at LOCATION] COMM[PID]
 *
 * TIME is the wall clock of the observation, which is the order of the lines. "-" stands for what is not
 * known; what only some probes have (a code, a reason) is left out elsewhere.
 */
#include <arpa/inet.h>

#include "format/packet-verdict.h"
#include "format/render.h"

#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_ICMP6 58

static bool has_ports(const struct iot_flow *f, uint32_t flags)
{
	if (f->ip_proto == PROTO_ICMP || f->ip_proto == PROTO_ICMP6)
		return false;
	return f->sport || f->dport || (f->ip_proto == PROTO_TCP && !(flags & IOT_PACKET_FRAGMENT));
}

char *iot_put_address(char *p, const struct iot_flow *f, bool src)
{
	char text[INET6_ADDRSTRLEN];

	if ((f->family != 4 && f->family != 6) ||
	    !inet_ntop(f->family == 4 ? AF_INET : AF_INET6, src ? f->src : f->dst, text,
		       sizeof(text)))
		return IOT_PUT_LIT(p, "-");
	return iot_put_str(p, text);
}

static char *put_end(char *p, const struct iot_flow *f, bool src, bool ports)
{
	if (ports && f->family == 6)
		*p++ = '[';
	p = iot_put_address(p, f, src);
	if (!ports)
		return p;
	if (f->family == 6)
		*p++ = ']';
	*p++ = ':';
	return iot_put_u64(p, src ? f->sport : f->dport);
}

static char *put_hex16(char *p, uint16_t v)
{
	static const char hex[] = "0123456789abcdef";

	p = IOT_PUT_LIT(p, "0x");
	for (int shift = 12; shift >= 0; shift -= 4)
		*p++ = hex[v >> shift & 15];
	return p;
}

char *iot_put_flow(char *p, const struct iot_flow *f, uint32_t packet_flags)
{
	const char *name = iot_ip_proto_name(f->ip_proto);
	bool ports = has_ports(f, packet_flags);

	if (f->family != 4 && f->family != 6) {
		if (!f->protocol)
			return IOT_PUT_LIT(p, "-");
		if (f->protocol == 0x0806)
			return IOT_PUT_LIT(p, "arp");
		return put_hex16(p, f->protocol);
	}
	if (name) {
		p = iot_put_str(p, name);
	} else {
		p = IOT_PUT_LIT(p, "proto-");
		p = iot_put_u64(p, f->ip_proto);
	}
	*p++ = ' ';
	p = put_end(p, f, true, ports);
	p = IOT_PUT_LIT(p, " > ");
	return put_end(p, f, false, ports);
}

char *iot_put_packet_flags(char *p, uint32_t flags, char sep)
{
	bool first = true;

	for (unsigned int bit = 0; bit < 16; bit++) {
		const char *name = flags >> bit & 1 ? iot_packet_flag_name(bit) : NULL;

		if (!name)
			continue;
		if (!first)
			*p++ = sep;
		p = iot_put_str(p, name);
		first = false;
	}
	return p;
}

/* "SA" and so on, in the order of the bits from SYN's use: as other tools write them. */
static char *put_tcp_flags(char *p, uint8_t flags)
{
	static const char names[] = "FSRPAUEC";
	char *from = p;

	for (unsigned int bit = 0; bit < 8; bit++)
		if (flags >> bit & 1)
			*p++ = names[bit];
	if (p == from)
		*p++ = '.';
	return p;
}

/* ---- JSON ---- */

static char *put_known(char *p, bool known, uint64_t v)
{
	return known ? iot_put_u64(p, v) : IOT_PUT_LIT(p, "null");
}

static char *put_json_flow(char *p, const struct iot_packet *r)
{
	const struct iot_flow *f = &r->flow;
	bool ip = f->family == 4 || f->family == 6, ports = ip && has_ports(f, r->flags);
	bool icmp = ip && (f->ip_proto == PROTO_ICMP || f->ip_proto == PROTO_ICMP6);
	const char *name = ip ? iot_ip_proto_name(f->ip_proto) : NULL;

	p = IOT_PUT_LIT(p, ",\"ethertype\":");
	p = put_known(p, f->protocol, f->protocol);
	p = IOT_PUT_LIT(p, ",\"vlan\":");
	p = put_known(p, r->flags & IOT_PACKET_VLAN, f->vlan_tci & 0xfff);
	p = IOT_PUT_LIT(p, ",\"proto\":");
	if (name)
		p = iot_put_json_name(p, name);
	else
		p = put_known(p, ip, f->ip_proto);
	for (int end = 0; end < 2; end++) {
		p = end ? IOT_PUT_LIT(p, ",\"dst\":") : IOT_PUT_LIT(p, ",\"src\":");
		if (!ip) {
			p = IOT_PUT_LIT(p, "null");
			continue;
		}
		*p++ = '"';
		p = iot_put_address(p, f, !end);
		*p++ = '"';
	}
	p = IOT_PUT_LIT(p, ",\"sport\":");
	p = put_known(p, ports, f->sport);
	p = IOT_PUT_LIT(p, ",\"dport\":");
	p = put_known(p, ports, f->dport);
	p = IOT_PUT_LIT(p, ",\"tcp_flags\":");
	if (ip && f->ip_proto == PROTO_TCP) {
		*p++ = '"';
		p = put_tcp_flags(p, r->l4[0]);
		*p++ = '"';
	} else {
		p = IOT_PUT_LIT(p, "null");
	}
	p = IOT_PUT_LIT(p, ",\"icmp_type\":");
	p = put_known(p, icmp, r->l4[0]);
	p = IOT_PUT_LIT(p, ",\"icmp_code\":");
	p = put_known(p, icmp, r->l4[1]);
	p = IOT_PUT_LIT(p, ",\"ip_id\":");
	return put_known(p, f->family == 4, r->ip_id);
}

static char *put_json_flags(char *p, uint32_t flags)
{
	bool first = true;

	p = IOT_PUT_LIT(p, ",\"flags\":[");
	for (unsigned int bit = 0; bit < 16; bit++) {
		const char *name = flags >> bit & 1 ? iot_packet_flag_name(bit) : NULL;

		if (!name)
			continue;
		if (!first)
			*p++ = ',';
		*p++ = '"';
		p = iot_put_str(p, name);
		*p++ = '"';
		first = false;
	}
	*p++ = ']';
	return p;
}

size_t iot_render_packet_json(char *buf, const struct iot_packet *r,
			      const struct iot_render_packet *ctx)
{
	bool task = r->flags & IOT_PACKET_TASK;
	char *p = IOT_PUT_LIT(buf, "{\"packet\":");

	p = iot_put_json_u64(p, r->id);
	p = IOT_PUT_LIT(p, ",\"hop\":");
	p = put_known(p, r->hop, r->hop);
	p = IOT_PUT_LIT(p, ",\"ts_ns\":");
	p = iot_put_json_u64(p, r->ts_ns);
	p = IOT_PUT_LIT(p, ",\"probe\":");
	p = iot_put_json_name(p, ctx->probe);
	p = IOT_PUT_LIT(p, ",\"cpu\":");
	p = iot_put_u64(p, r->cpu);
	p = IOT_PUT_LIT(p, ",\"netns\":");
	p = put_known(p, r->netns, r->netns);
	p = IOT_PUT_LIT(p, ",\"ifindex\":");
	p = put_known(p, r->ifindex, r->ifindex);
	p = IOT_PUT_LIT(p, ",\"iface\":");
	p = iot_put_json_name(p, ctx->iface);
	p = IOT_PUT_LIT(p, ",\"len\":");
	p = iot_put_u64(p, r->len);
	p = IOT_PUT_LIT(p, ",\"mark\":");
	p = iot_put_u64(p, r->mark);
	p = put_json_flow(p, r);
	p = put_json_flags(p, r->flags);
	p = IOT_PUT_LIT(p, ",\"parent\":");
	p = iot_put_json_u64(p, r->parent);
	p = IOT_PUT_LIT(p, ",\"code\":");
	p = iot_put_i64(p, r->code);
	p = IOT_PUT_LIT(p, ",\"reason\":");
	p = iot_put_json_name(p, ctx->action ? ctx->action : ctx->reason);
	p = IOT_PUT_LIT(p, ",\"location\":");
	p = iot_put_json_name(p, ctx->symbol);
	p = IOT_PUT_LIT(p, ",\"where\":");
	p = iot_put_json_u64(p, r->where);
	p = IOT_PUT_LIT(p, ",\"pid\":");
	p = put_known(p, task, r->pid);
	p = IOT_PUT_LIT(p, ",\"tgid\":");
	p = put_known(p, task, r->tgid);
	p = IOT_PUT_LIT(p, ",\"comm\":");
	p = task ? iot_put_json_string(p, r->comm, sizeof(r->comm)) : IOT_PUT_LIT(p, "null");
	p = IOT_PUT_LIT(p, ",\"realtime_ns\":");
	p = iot_put_json_u64(p, ctx->realtime_ns);
	p = IOT_PUT_LIT(p, ",\"capture\":");
	p = iot_put_json_name(p, ctx->capture);
	p = IOT_PUT_LIT(p, "}\n");
	return (size_t)(p - buf);
}

/* ---- text ---- */

static char *put_printable_name(char *p, const char *name)
{
	return iot_put_printable(p, name, strnlen(name, IOT_RENDER_NAME_MAX));
}

static char *put_iface(char *p, const struct iot_packet *r, const char *name)
{
	if (name && *name)
		return put_printable_name(p, name);
	if (!r->ifindex)
		return IOT_PUT_LIT(p, "-");
	p = IOT_PUT_LIT(p, "if");
	return iot_put_u64(p, r->ifindex);
}

static char *put_outcome(char *p, const struct iot_packet *r, const struct iot_render_packet *ctx)
{
	if (r->probe == IOT_PROBE_KFREE_SKB) {
		p = IOT_PUT_LIT(p, " reason=");
		p = ctx->reason ? put_printable_name(p, ctx->reason) : iot_put_i64(p, r->code);
		if (ctx->symbol) {
			p = IOT_PUT_LIT(p, " at ");
			p = put_printable_name(p, ctx->symbol);
		}
	} else if (ctx->action) {
		p = IOT_PUT_LIT(p, " action=");
		p = iot_put_str(p, ctx->action);
	} else if (r->code) {
		p = IOT_PUT_LIT(p, " code=");
		p = iot_put_i64(p, r->code);
	}
	if (r->parent) {
		p = r->flags & IOT_PACKET_MERGED_INTO ? IOT_PUT_LIT(p, " into=")
						      : IOT_PUT_LIT(p, " parent=");
		p = iot_put_u64(p, r->parent);
	}
	return p;
}

size_t iot_render_packet_text(char *buf, const struct iot_packet *r, struct iot_render_packet *ctx)
{
	char *p = buf, *from = p;

	p = iot_put_pad(iot_put_wall_time(p, ctx->realtime_ns, &ctx->time), from, 30);
	from = p;
	p = r->id ? iot_put_u64(p, r->id) : IOT_PUT_LIT(p, "-");
	*p++ = '#';
	p = r->hop ? iot_put_u64(p, r->hop) : IOT_PUT_LIT(p, "-");
	p = iot_put_pad(p, from, 12);
	from = p;
	p = ctx->probe ? put_printable_name(p, ctx->probe) : iot_put_u64(p, r->probe);
	p = iot_put_pad(p, from, 20);
	from = p;
	p = iot_put_pad(put_iface(p, r, ctx->iface), from, 10);
	p = iot_put_flow(p, &r->flow, r->flags);
	if (r->flow.family && r->flow.ip_proto == PROTO_TCP) {
		p = IOT_PUT_LIT(p, " [");
		p = put_tcp_flags(p, r->l4[0]);
		*p++ = ']';
	}
	p = IOT_PUT_LIT(p, " len=");
	p = iot_put_u64(p, r->len);
	*p++ = ' ';
	from = p;
	p = iot_put_packet_flags(p, r->flags & ~(uint32_t)(IOT_PACKET_TASK | IOT_PACKET_FROM_START),
				 ',');
	if (p == from)
		*p++ = '-';
	p = put_outcome(p, r, ctx);
	if (r->flags & IOT_PACKET_TASK) {
		*p++ = ' ';
		p = iot_put_printable(p, r->comm, sizeof(r->comm));
		*p++ = '[';
		p = iot_put_u64(p, r->pid);
		*p++ = ']';
	}
	*p++ = '\n';
	return (size_t)(p - buf);
}
