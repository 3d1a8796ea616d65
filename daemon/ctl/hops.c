// SPDX-License-Identifier: BSD-2-Clause
/*
 * hops.c - see hops.h. A packet's JSON: {packet, capture, verdict, lost, doubtful, merged, truncated_start,
 * truncated_end, reasons[], parent, hops: [as of cat --json], not_seen: [{probe, absence, reasons[]}]
 * (if asked for)}.
 */
#include "daemon/ctl/hops.h"
#include "daemon/ctl/json.h"
#include "format/render.h"

void ctl_hops_done(struct ctl_hops *h)
{
	free(h->items);
	*h = (struct ctl_hops){0};
}

int ctl_hops_add(struct ctl_hops *h, const struct ctl_capture *c, const struct iot_packet *p,
		 struct iot_segment *s)
{
	if (h->n == h->room) {
		size_t room = h->room ? h->room * 2 : 256;
		struct ctl_hop *items = reallocarray(h->items, room, sizeof(*items));

		if (!items)
			return -ENOMEM;
		h->items = items;
		h->room = room;
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->infos[i]->seq == iot_segment_info(s)->seq)
			s = c->segments[i];
	h->items[h->n] = (struct ctl_hop){*p, s, h->n};
	h->n++;
	return 0;
}

static int cmp_hop(const void *a, const void *b, void *userdata)
{
	const struct ctl_packets *packets = userdata;
	const struct ctl_hop *x = a, *y = b;
	const struct ctl_capture *c = ctl_packets_find(packets, x->s);
	const struct ctl_capture *d = ctl_packets_find(packets, y->s);

	if (c != d)
		return c < d ? -1 : 1;
	if (x->p.id != y->p.id)
		return iot_cmp_u64(x->p.id, y->p.id);
	/*
	 * Their own numbers are the order; times of two CPUs may not be. What has none was observed after the
	 * end of the packet (IOT_PACKET_AFTER_END) and comes behind, by time: among the numbers by time it
	 * could be before one and behind another at once.
	 */
	if (!x->p.hop != !y->p.hop)
		return x->p.hop ? -1 : 1;
	if (x->p.hop != y->p.hop)
		return iot_cmp_u64(x->p.hop, y->p.hop);
	if (x->p.ts_ns != y->p.ts_ns)
		return iot_cmp_u64(x->p.ts_ns, y->p.ts_ns);
	return iot_cmp_u64(x->at, y->at);
}

void ctl_hops_sort(struct ctl_hops *h, const struct ctl_packets *packets)
{
	if (h->n > 1)
		qsort_r(h->items, h->n, sizeof(*h->items), cmp_hop, (void *)packets);
}

const struct ctl_hop *ctl_hops_of(const struct ctl_hops *h, const struct ctl_packets *packets,
				  const struct ctl_capture *c, uint64_t id, size_t *ret_n)
{
	size_t lo = 0, hi = h->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct ctl_capture *d = ctl_packets_find(packets, h->items[mid].s);

		if (d < c || (d == c && h->items[mid].p.id < id))
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_n = 0;
	while (lo + *ret_n < h->n && h->items[lo + *ret_n].p.id == id &&
	       ctl_packets_find(packets, h->items[lo + *ret_n].s) == c)
		++*ret_n;
	return h->items + lo;
}

static struct json_object *absences_json(struct ctl_capture *c, const struct iot_packet_life *l)
{
	struct json_object *rows = json_object_new_array();
	char name[64];

	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);
		struct json_object *o;
		struct iot_verdict why;
		enum iot_absence a;

		if (!ctl_capture_probe_row(c, id) || ctl_probe_only_counts(id))
			continue;
		a = iot_doubts_absence(c->doubts, l, id, &why);
		if (a == IOT_ABSENCE_PRESENT)
			continue;
		o = json_object_new_object();
		ctl_capture_probe(c, id, name, sizeof(name));
		json_object_object_add(o, "probe", ctl_json_text(name));
		json_object_object_add(o, "absence", json_object_new_string(iot_absence_name(a)));
		json_object_object_add(o, "reasons", ctl_json_reasons(&why));
		json_object_array_add(rows, o);
	}
	return rows;
}

struct json_object *ctl_packet_json(const struct ctl_packets *packets, const struct ctl_hops *h,
				    struct ctl_capture *c, const struct iot_packet_life *l,
				    bool absences)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct iot_render_packet render = {0};
	struct ctl_packet_naming naming = {.render = &render};
	char line[IOT_RENDER_MAX + 1], hex[CTL_HUMAN_MAX];
	const struct ctl_hop *hops;
	struct iot_packet_ruling r;
	struct iot_verdict why;
	size_t n;

	iot_doubts_judge(c->doubts, l, &r, &why);
	json_object_object_add(o, "packet", ctl_json_id(l->id));
	json_object_object_add(o, "capture",
			       json_object_new_string(ctl_hex_id(c->infos[0]->capture_id, hex)));
	json_object_object_add(o, "verdict",
			       json_object_new_string(iot_packet_verdict_name(r.verdict)));
	json_object_object_add(o, "lost", ctl_json_u64(r.n_lost));
	json_object_object_add(o, "doubtful", json_object_new_boolean(r.doubtful));
	json_object_object_add(o, "merged", json_object_new_boolean(r.merged));
	json_object_object_add(o, "truncated_start", json_object_new_boolean(r.truncated_start));
	json_object_object_add(o, "truncated_end", json_object_new_boolean(r.truncated_end));
	json_object_object_add(o, "reasons", ctl_json_reasons(&why));
	json_object_object_add(o, "parent", ctl_json_id(l->parent));
	hops = ctl_hops_of(h, packets, c, l->id, &n);
	for (size_t i = 0; i < n; i++) {
		ctl_packet_naming_set(&naming, hops[i].s, &hops[i].p);
		line[iot_render_packet_json(line, &hops[i].p, &render)] = '\0';
		json_object_array_add(list, ctl_json_made(json_tokener_parse(line)));
	}
	json_object_object_add(o, "hops", list);
	if (absences)
		json_object_object_add(o, "not_seen", absences_json(c, l));
	return o;
}
