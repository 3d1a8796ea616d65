// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-pcapng.c - observations of packets as pcapng (draft-ietf-opsawg-pcapng), for tshark, Wireshark and
 * capinfos.
 *
 * A capture is a section, a probe an interface of it. Each observation is a packet on its probe's
 * interface: its comment says which packet it is, the verdict on it, and what became of it. At the end the
 * statistics of each interface have what the probe saw (received) and what of it is not in the record
 * (dropped); where that is not known, it is absent.
 *
 * No payload was recorded. The headers are made from what was: Ethernet, VLAN, IP, and TCP, UDP or ICMP as
 * far as a field is known; the others are 0. Lengths are the packet's: with an Ethernet header added
 * where the kernel counts none.
 */
#include "daemon/ctl/export.h"
#include "daemon/ctl/packets.h"
#include "format/books.h"

#define BLOCK_SECTION 0x0a0d0d0aU
#define BLOCK_INTERFACE 1U
#define BLOCK_STATISTICS 5U
#define BLOCK_PACKET 6U
#define LINKTYPE_ETHERNET 1U
#define OPTION_COMMENT 1U
#define HEADER_MAX 128U /* Ethernet, VLAN, IPv6, TCP: 78 */
#define BLOCK_MAX 8192U

enum {
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ICMP6 = 58,
};

/* A block in the making; the byte order is the writer's, as the section header tells. */
struct block {
	uint8_t data[BLOCK_MAX];
	size_t len;
};

static void put(struct block *b, const void *data, size_t len)
{
	/* Options are cut to fit before they get here. */
	if (b->len + len > sizeof(b->data))
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_u16(struct block *b, uint16_t v)
{
	put(b, &v, sizeof(v));
}

static void put_u32(struct block *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put_pad(struct block *b)
{
	static const uint8_t zero[4];

	put(b, zero, -b->len & 3);
}

static void put_option(struct block *b, uint16_t code, const void *data, size_t len)
{
	put_u16(b, code);
	put_u16(b, (uint16_t)len);
	put(b, data, len);
	put_pad(b);
}

static void put_text(struct block *b, uint16_t code, const char *text)
{
	char clean[2 * 512];

	/* Names come from segments: UTF-8 is what the format asks for. */
	put_option(b, code, clean,
		   (size_t)(iot_put_printable(clean, text, IOT_MIN(strlen(text), 512U)) - clean));
}

static void put_u64_option(struct block *b, uint16_t code, uint64_t v)
{
	put_option(b, code, &v, sizeof(v));
}

/* Times are two halves, the upper one first. */
static void put_time(struct block *b, uint64_t ns)
{
	put_u32(b, (uint32_t)(ns >> 32));
	put_u32(b, (uint32_t)ns);
}

static void begin(struct block *b, uint32_t type)
{
	b->len = 0;
	put_u32(b, type);
	put_u32(b, 0);
}

static void finish(struct block *b, struct ctl_out *out)
{
	uint32_t total;

	put_u32(b, 0); /* end of options */
	total = (uint32_t)b->len + 4;
	put_u32(b, total);
	memcpy(b->data + 4, &total, sizeof(total));
	ctl_out_write(out, b->data, b->len);
}

/* ---- headers of a packet ---- */

struct frame {
	uint8_t data[HEADER_MAX];
	size_t len;
};

static void frame_u8(struct frame *f, uint8_t v)
{
	f->data[f->len++] = v;
}

static void frame_u16(struct frame *f, uint16_t v)
{
	frame_u8(f, (uint8_t)(v >> 8));
	frame_u8(f, (uint8_t)v);
}

static void frame_zeros(struct frame *f, size_t n)
{
	memset(f->data + f->len, 0, n);
	f->len += n;
}

static void frame_bytes(struct frame *f, const uint8_t *data, size_t n)
{
	memcpy(f->data + f->len, data, n);
	f->len += n;
}

static uint16_t ip_checksum(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void frame_transport(struct frame *f, const struct iot_packet *p, size_t payload)
{
	switch (p->flow.ip_proto) {
	case PROTO_TCP:
		frame_u16(f, p->flow.sport);
		frame_u16(f, p->flow.dport);
		frame_zeros(f, 8);
		frame_u8(f, 5 << 4); /* words of header */
		frame_u8(f, p->l4[0]);
		frame_zeros(f, 6);
		break;
	case PROTO_UDP:
		frame_u16(f, p->flow.sport);
		frame_u16(f, p->flow.dport);
		frame_u16(f, (uint16_t)IOT_MAX(IOT_MIN(payload, (size_t)UINT16_MAX), 8U));
		frame_u16(f, 0); /* none was computed */
		break;
	case PROTO_ICMP:
	case PROTO_ICMP6:
		frame_u8(f, p->l4[0]);
		frame_u8(f, p->l4[1]);
		frame_zeros(f, 6);
		break;
	default:
		break;
	}
}

/* On the way down to a driver. */
static bool goes_out(uint16_t probe)
{
	switch (probe) {
	case IOT_PROBE_NET_DEV_QUEUE:
	case IOT_PROBE_NET_DEV_START_XMIT:
	case IOT_PROBE_NET_DEV_XMIT:
	case IOT_PROBE_QDISC_ENQUEUE:
	case IOT_PROBE_QDISC_DEQUEUE:
	case IOT_PROBE_DEV_QUEUE_XMIT:
		return true;
	default:
		return false;
	}
}

/* Where the length counts the link's header: on the way down to a driver, and at TC and XDP programs. */
static bool counts_link_header(uint16_t probe)
{
	return goes_out(probe) || probe > IOT_PROBE_PROGRAMS;
}

/* Returns the packet's length on the wire. */
static size_t make_frame(struct frame *f, const struct iot_packet *p)
{
	bool vlan = p->flags & IOT_PACKET_VLAN;
	size_t link = vlan ? 18 : 14, ip_at;
	uint16_t sum;
	size_t network = counts_link_header(p->probe) ? (p->len > 14 ? p->len - 14 : 0) : p->len;
	/* What does not carry ports is not the first piece of its datagram. */
	bool later = (p->flags & IOT_PACKET_FRAGMENT) && !p->flow.sport && !p->flow.dport;

	f->len = 0;
	frame_zeros(f, 12);
	if (vlan) {
		frame_u16(f, 0x8100);
		frame_u16(f, p->flow.vlan_tci);
	}
	frame_u16(f, p->flow.protocol);
	ip_at = f->len;
	if (p->flow.family == 4) {
		frame_u8(f, 0x45);
		frame_u8(f, 0);
		frame_u16(f, (uint16_t)IOT_MAX(IOT_MIN(network, (size_t)UINT16_MAX), 20U));
		frame_u16(f, p->ip_id);
		frame_u16(f, later ? 1 : p->flags & IOT_PACKET_FRAGMENT ? 0x2000 : 0);
		frame_u8(f, 0);
		frame_u8(f, p->flow.ip_proto);
		frame_u16(f, 0);
		frame_bytes(f, p->flow.src, 4);
		frame_bytes(f, p->flow.dst, 4);
		sum = ip_checksum(f->data + ip_at, 20);
		f->data[ip_at + 10] = (uint8_t)(sum >> 8);
		f->data[ip_at + 11] = (uint8_t)sum;
		if (!later)
			frame_transport(f, p, network > 20 ? network - 20 : 0);
	} else if (p->flow.family == 6) {
		frame_u8(f, 0x60);
		frame_zeros(f, 3);
		frame_u16(f,
			  (uint16_t)(network > 40 ? IOT_MIN(network - 40, (size_t)UINT16_MAX) : 0));
		frame_u8(f, p->flow.ip_proto);
		frame_u8(f, 0);
		frame_bytes(f, p->flow.src, 16);
		frame_bytes(f, p->flow.dst, 16);
		if (!later)
			frame_transport(f, p, network > 40 ? network - 40 : 0);
	}
	return IOT_MAX(link + network, f->len);
}

/* ---- one capture ---- */

struct section {
	struct ctl_out *out;
	struct ctl_capture *c;
	uint32_t interface[IOT_N_PACKET_PROBES]; /* 1 + number */
	uint32_t n_interfaces;
	struct iot_packet_ruling *rulings; /* by life */
	bool *judged;
	struct block b;
};

static void section_done(struct section *s)
{
	free(s->rulings);
	free(s->judged);
}

static void put_section(struct section *s, const char *note)
{
	const struct iot_segment_info *info = s->c->infos[s->c->n - 1];
	char text[512], hex[CTL_HUMAN_MAX];

	begin(&s->b, BLOCK_SECTION);
	put_u32(&s->b, 0x1a2b3c4d);
	put_u16(&s->b, 1);
	put_u16(&s->b, 0);
	put_u32(&s->b, UINT32_MAX); /* length of the section: not known */
	put_u32(&s->b, UINT32_MAX);
	snprintf(text, sizeof(text), "capture %s on %s, selection \"%.200s\", ids: %s; %s",
		 ctl_hex_id(info->capture_id, hex), info->host, info->selection,
		 info->identity[0] ? info->identity : "not known", note);
	put_text(&s->b, OPTION_COMMENT, text);
	snprintf(text, sizeof(text), "Linux %s", info->kernel);
	put_text(&s->b, 3, text);
	put_text(&s->b, 4, "iotracectl " IOTRACED_VERSION);
	finish(&s->b, s->out);
}

static void put_interface(struct section *s, uint16_t probe)
{
	const struct iot_probe *row = ctl_capture_probe_row(s->c, probe);
	const uint8_t nanoseconds = 9;
	char text[128], name[64];

	begin(&s->b, BLOCK_INTERFACE);
	put_u16(&s->b, LINKTYPE_ETHERNET);
	put_u16(&s->b, 0);
	put_u32(&s->b, 0);
	put_text(&s->b, 2, ctl_capture_probe(s->c, probe, name, sizeof(name)));
	if (row) {
		snprintf(text, sizeof(text), "probe %u, %.16s%s%.90s", probe, row->hook,
			 row->detail[0] ? ", " : "", row->detail);
		put_text(&s->b, 3, text);
	}
	put_option(&s->b, 9, &nanoseconds, 1);
	finish(&s->b, s->out);
	s->interface[probe - IOT_FIRST_PACKET_PROBE] = ++s->n_interfaces;
}

static const struct iot_packet_ruling *ruling_of(struct section *s, uint64_t id)
{
	const struct iot_packet_life *l = ctl_capture_life(s->c, id);
	size_t i;

	if (!l)
		return NULL;
	i = (size_t)(l - s->c->lives);
	if (!s->judged[i])
		iot_doubts_judge(s->c->doubts, l, &s->rulings[i], NULL);
	s->judged[i] = true;
	return &s->rulings[i];
}

/* "packet 2003 #4, lost: 1 (net_dev_xmit)" */
static void put_comment(struct section *s, const struct iot_packet *p,
			const struct iot_render_packet *names)
{
	const struct iot_packet_ruling *r = ruling_of(s, p->id);
	char text[512], name[64];
	size_t n = 0;

	if (p->id && p->hop)
		n = (size_t)snprintf(text, sizeof(text), "packet %llu #%u, ",
				     (unsigned long long)p->id, p->hop);
	else if (p->id)
		n = (size_t)snprintf(text, sizeof(text), "packet %llu, ",
				     (unsigned long long)p->id);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
			      r ? iot_packet_verdict_name(r->verdict) : "unidentified");
	if (r && r->n_lost)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ": %llu at",
				      (unsigned long long)r->n_lost);
	for (unsigned int i = 0; r && i < IOT_N_PACKET_PROBES && n < 200; i++) {
		uint16_t probe = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);

		if (iot_probe_set_has(&r->lost_at, probe))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
					      ctl_capture_probe(s->c, probe, name, sizeof(name)));
	}
	if (names->iface || p->ifindex)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "; %.64s ifindex %u netns %u",
				      names->iface ? names->iface : "", p->ifindex, p->netns);
	if (p->probe == IOT_PROBE_KFREE_SKB)
		snprintf(text + n, sizeof(text) - n, "; dropped: %.64s%s%.64s",
			 names->reason ? names->reason : "reason not known",
			 names->symbol ? " at " : "", names->symbol ? names->symbol : "");
	else if (names->action)
		snprintf(text + n, sizeof(text) - n, "; decided: %s", names->action);
	else if (p->code)
		snprintf(text + n, sizeof(text) - n, "; code %d", p->code);
	put_text(&s->b, OPTION_COMMENT, text);
}

static void put_packet(struct section *s, const struct iot_packet *p,
		       const struct iot_render_packet *names)
{
	struct frame f;
	size_t wire = make_frame(&f, p);

	begin(&s->b, BLOCK_PACKET);
	put_u32(&s->b, s->interface[p->probe - IOT_FIRST_PACKET_PROBE] - 1);
	put_time(&s->b, names->realtime_ns);
	put_u32(&s->b, (uint32_t)f.len);
	put_u32(&s->b, (uint32_t)IOT_MIN(wire, (size_t)UINT32_MAX));
	put(&s->b, f.data, f.len);
	put_pad(&s->b);
	put_comment(s, p, names);
	if (goes_out(p->probe) || p->probe == 64 || p->probe == 65) {
		uint32_t direction = goes_out(p->probe) ? 2 : 1; /* out, in */

		put_option(&s->b, 2, &direction, sizeof(direction));
	}
	if (p->id)
		put_u64_option(&s->b, 5, p->id);
	finish(&s->b, s->out);
}

static int put_packets(struct section *s, struct iot_scan *scan, uint64_t *n_written,
		       struct iot_error *err)
{
	struct iot_render_packet names = {0};
	struct ctl_packet_naming naming = {.render = &names};
	struct iot_segment *segment;
	struct iot_packet p;
	int r = 0;

	while (!s->out->error && (r = iot_scan_next_packet(scan, &p, &segment, err)) == 0) {
		unsigned int i = p.probe - IOT_FIRST_PACKET_PROBE;

		/* A probe of a later version has no interface, and no number to be one of. */
		if (i >= IOT_N_PACKET_PROBES)
			continue;
		ctl_packet_naming_set(&naming, segment, &p);
		/* An interface may come when it is needed: the table knows only what was attached. */
		if (!s->interface[i])
			put_interface(s, p.probe);
		put_packet(s, &p, &names);
		++*n_written;
	}
	return r < 0 ? r : 0;
}

/* What a probe saw in all, and what of it is not in the record. */
static void put_statistics(struct section *s, uint16_t probe)
{
	struct iot_sum seen = {0}, lost = {0};
	uint64_t first, last;

	for (size_t i = 0; i < s->c->n; i++) {
		const struct iot_footer *f = s->c->footers[i];

		for (size_t k = 0; f && k < f->n_books; k++) {
			const struct iot_books *b = &f->books[k];

			if (b->probe != probe)
				continue;
			iot_sum_add(&seen, b->seen);
			iot_sum_add(&lost, b->reserve_failed);
			iot_sum_add(&lost, b->decode_failed);
			iot_sum_add(&lost, b->output_failed);
			iot_sum_add(&lost, b->missed);
		}
		if (!f) {
			iot_sum_add(&seen, IOT_COUNT_UNKNOWN);
			iot_sum_add(&lost, IOT_COUNT_UNKNOWN);
		}
	}
	first = ctl_capture_realtime_ns(s->c, s->c->first_ns);
	last = s->c->last_ns ? ctl_capture_realtime_ns(s->c, s->c->last_ns) : first;
	begin(&s->b, BLOCK_STATISTICS);
	put_u32(&s->b, s->interface[probe - IOT_FIRST_PACKET_PROBE] - 1);
	put_time(&s->b, last);
	put_u16(&s->b, 2);
	put_u16(&s->b, 8);
	put_time(&s->b, first);
	put_u16(&s->b, 3);
	put_u16(&s->b, 8);
	put_time(&s->b, last);
	if (!seen.unknown)
		put_u64_option(&s->b, 4, seen.n);
	if (!lost.unknown)
		put_u64_option(&s->b, 5, lost.n);
	else
		put_text(&s->b, OPTION_COMMENT, "how many observations were lost is not known");
	finish(&s->b, s->out);
}

static int put_capture(const struct ctl *c, struct ctl_capture *capture, const char *note,
		       struct ctl_out *out, uint64_t *n_written, struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(section_done) struct section s = {.out = out, .c = capture};
	_cleanup_free_ const char **paths = calloc(capture->n, sizeof(const char *));
	int r;

	s.rulings = calloc(capture->n_lives + 1, sizeof(*s.rulings));
	s.judged = calloc(capture->n_lives + 1, sizeof(*s.judged));
	if (!paths || !s.rulings || !s.judged)
		return -ENOMEM;
	for (size_t i = 0; i < capture->n; i++)
		paths[i] = iot_segment_path(capture->segments[i]);
	r = ctl_scan_paths(c, paths, capture->n, &scan, err);
	if (r == 0)
		r = ctl_scan_whole(scan, err);
	if (r < 0)
		return r;
	put_section(&s, note);
	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t probe = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);
		const struct iot_probe *row = ctl_capture_probe_row(capture, probe);

		if (row && row->state == IOT_ATTACH_ATTACHED && !ctl_probe_only_counts(probe))
			put_interface(&s, probe);
	}
	r = put_packets(&s, scan, n_written, err);
	for (unsigned int i = 0; r == 0 && i < IOT_N_PACKET_PROBES; i++)
		if (s.interface[i])
			put_statistics(&s, (uint16_t)(IOT_FIRST_PACKET_PROBE + i));
	return r;
}

int export_pcapng(const struct ctl *c, struct iot_scan *whole, const char *note,
		  struct ctl_out *out, struct export_stats *stats, struct iot_error *err)
{
	_cleanup_(ctl_packets_done) struct ctl_packets packets = {0};
	int r;

	r = ctl_packets_read(whole, &packets, err);
	for (size_t i = 0; r == 0 && i < packets.n; i++)
		r = put_capture(c, &packets.captures[i], note, out, &stats->observations, err);
	return r;
}
