// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-drops.c - the packets that the kernel dropped: by reason and place, by interface, and by flow.
 *
 * A drop is an observation at kfree_skb. Those that were lost are counted where the ledger puts them, which
 * knows no place; what is neither recorded nor filed is said below the tables. On kernels before 5.17
 * there are no reasons.
 *
 * Names of places, namespaces and interfaces keep their meaning from one boot of a machine to the next, so that
 * is how far rows of several captures are summed up (a place's number is its capture's own); --per-capture keeps
 * captures apart. A segment without a footer has neither counters nor a ledger: what it holds is a lower bound,
 * and called so.
 * --json: {drops: [{reason, code, location, where (null: more than one may be summed up), netns, ifindex, iface,
 * proto, flow, n, bytes, lost, host, boot, capture (null: as where)}], not_selected, suppressed (of these),
 * unattributed, missed (null: not known), unsealed, record: the verdict}.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/packets.h"
#include "format/books.h"
#include "format/render.h"

#define SHOWN_FLOWS 20U

struct drop_key {
	uint64_t place; /* hash of its name, or of capture and number */
	struct iot_flow flow;
	uint32_t netns;
	uint32_t ifindex;
	int32_t code;
	uint32_t group; /* within which numbers mean something: the first of its segments */
};

struct drop_row {
	struct drop_key key;
	const struct iot_segment *s; /* the first, for names */
	const char *place;	     /* NULL: it has none */
	uint64_t where;		     /* its number in the first capture */
	uint64_t n;
	uint64_t bytes;
	uint64_t lost;
};

struct drops {
	bool per_capture;
	size_t n_groups;
	size_t n_unsealed;   /* segments */
	size_t n_unreadable; /* ledgers */
	struct drop_row *rows;
	size_t n;
	size_t *slots; /* row + 1 */
	size_t n_slots;
	uint64_t seed;
	struct iot_sum not_selected, suppressed, unattributed, missed;
};

static void drops_done(struct drops *d)
{
	free(d->rows);
	free(d->slots);
}

static bool same_key(const struct drop_key *a, const struct drop_key *b)
{
	return a->place == b->place && a->netns == b->netns && a->ifindex == b->ifindex &&
	       a->code == b->code && a->group == b->group &&
	       memcmp(&a->flow, &b->flow, sizeof(a->flow)) == 0;
}

static size_t slot_of(const struct drops *d, const struct drop_key *k)
{
	size_t at = (size_t)iot_table_hash(k, sizeof(*k), d->seed) & (d->n_slots - 1);

	while (d->slots[at] && !same_key(&d->rows[d->slots[at] - 1].key, k))
		at = (at + 1) & (d->n_slots - 1);
	return at;
}

static int row_of(struct drops *d, const struct drop_key *k, struct drop_row **ret)
{
	size_t at;

	if (d->n == d->n_slots / 2) {
		size_t n_slots = d->n_slots ? d->n_slots * 2 : 256;
		struct drop_row *rows = reallocarray(d->rows, n_slots / 2, sizeof(*rows));
		size_t *slots;

		if (!rows)
			return -ENOMEM;
		d->rows = rows;
		slots = calloc(n_slots, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		free(d->slots);
		d->slots = slots;
		d->n_slots = n_slots;
		for (size_t i = 0; i < d->n; i++)
			d->slots[slot_of(d, &d->rows[i].key)] = i + 1;
	}
	at = slot_of(d, k);
	if (!d->slots[at]) {
		d->rows[d->n] = (struct drop_row){.key = *k};
		d->slots[at] = ++d->n;
	}
	*ret = &d->rows[d->slots[at] - 1];
	return 0;
}

/* Keys are hashed as bytes: padding would make equal ones differ. */
static void make_key(struct drop_key *k, const struct iot_flow *flow, uint32_t netns,
		     uint32_t ifindex, int32_t code, uint64_t place, size_t group)
{
	memset(k, 0, sizeof(*k));
	k->place = place;
	memcpy(k->flow.src, flow->src, sizeof(flow->src));
	memcpy(k->flow.dst, flow->dst, sizeof(flow->dst));
	k->flow.sport = flow->sport;
	k->flow.dport = flow->dport;
	k->flow.protocol = flow->protocol;
	k->flow.family = flow->family;
	k->flow.ip_proto = flow->ip_proto;
	k->netns = netns;
	k->ifindex = ifindex;
	k->code = code;
	k->group = (uint32_t)group;
}

static bool same_group(const struct drops *d, const struct iot_segment *a,
		       const struct iot_segment *b)
{
	const struct iot_segment_info *x = iot_segment_info(a), *y = iot_segment_info(b);

	if (x->stream != y->stream)
		return false;
	return d->per_capture ? memcmp(x->capture_id, y->capture_id, sizeof(x->capture_id)) == 0
			      : memcmp(x->machine_id, y->machine_id, sizeof(x->machine_id)) == 0 &&
					memcmp(x->boot_id, y->boot_id, sizeof(x->boot_id)) == 0;
}

static size_t group_of(const struct drops *d, const struct iot_scan *scan,
		       const struct iot_segment *s)
{
	size_t i = 0;

	/* s is one of them. */
	while (!same_group(d, iot_scan_segment(scan, i), s))
		i++;
	return i;
}

/* What a capture calls its place of this number: a segment without footer has to ask the others. */
static const char *place_name(struct iot_scan *scan, const struct iot_segment *s, uint64_t where)
{
	const struct iot_footer *f = iot_segment_footer(s);
	const char *name = f ? iot_names_find(&f->symbols, where) : NULL;

	for (size_t i = 0; !name && i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *o = iot_scan_segment(scan, i);

		f = iot_segment_footer(o);
		if (f && iot_segment_info(o)->stream == IOT_STREAM_PACKET &&
		    memcmp(iot_segment_info(o)->capture_id, iot_segment_info(s)->capture_id, 16) ==
			    0)
			name = iot_names_find(&f->symbols, where);
	}
	return name;
}

static uint64_t place_key(const struct iot_segment *s, const char *name, uint64_t where)
{
	/* Three digits of an address are not a name for two captures. */
	if (name && strncmp(name, "0x", 2) != 0)
		return iot_table_hash(name, strlen(name), 0);
	return where ? iot_table_hash(iot_segment_info(s)->capture_id, 16, where) : 0;
}

static int add_records(struct drops *d, struct iot_scan *scan, struct iot_error *err)
{
	const struct iot_segment *last = NULL;
	const char *place = NULL;
	uint64_t where = 0;
	size_t in_group = 0;
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	while ((r = iot_scan_next_packet(scan, &p, &s, err)) == 0) {
		struct drop_row *row;
		struct drop_key k;

		if (p.probe != IOT_PROBE_KFREE_SKB)
			continue;
		if (s != last) {
			in_group = group_of(d, scan, s);
			last = s;
			where = 0;
		}
		if (p.where != where || !where) {
			where = p.where;
			place = where ? place_name(scan, s, where) : NULL;
		}
		make_key(&k, &p.flow, p.netns, p.ifindex, p.code, place_key(s, place, where),
			 in_group);
		r = row_of(d, &k, &row);
		if (r < 0)
			return r;
		row->n++;
		row->bytes += p.len;
		if (!row->s) {
			row->s = s;
			row->place = place;
			row->where = where;
		}
	}
	return r < 0 ? r : 0;
}

static int add_losses(struct drops *d, struct iot_scan *scan, const struct iot_filter *f,
		      struct iot_error *err)
{
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_footer *footer = iot_segment_footer(s);
		_cleanup_free_ struct iot_loss *losses = NULL;
		const struct iot_probe *probe;
		size_t n = 0, in_group;
		bool unguarded;
		int r;

		if (iot_segment_info(s)->stream != IOT_STREAM_PACKET)
			continue;
		in_group = group_of(d, scan, s);
		d->n_groups += in_group == i;
		probe = iot_probe_find(iot_segment_info(s), footer, IOT_PROBE_KFREE_SKB);
		/* No guard, hence nothing that could be missed, and no counter of it. */
		unguarded = probe && probe->miss == IOT_MISS_UNGUARDED;
		for (size_t k = 0; footer && k < footer->n_books; k++) {
			if (footer->books[k].probe != IOT_PROBE_KFREE_SKB)
				continue;
			iot_sum_add(&d->not_selected, footer->books[k].not_selected);
			iot_sum_add(&d->suppressed, footer->books[k].suppressed);
			iot_sum_add(&d->unattributed, footer->books[k].unattributed);
			if (!unguarded)
				iot_sum_add(&d->missed, footer->books[k].missed);
		}
		if (!footer) {
			d->n_unsealed++;
			iot_sum_add(&d->not_selected, IOT_COUNT_UNKNOWN);
			iot_sum_add(&d->suppressed, IOT_COUNT_UNKNOWN);
			iot_sum_add(&d->unattributed, IOT_COUNT_UNKNOWN);
			iot_sum_add(&d->missed, IOT_COUNT_UNKNOWN);
			continue;
		}
		r = iot_segment_load_ledger(s, &losses, &n, err);
		if (r == -EBADMSG) {
			/* The verdict says it, too. */
			if (err)
				err->text[0] = '\0';
			d->n_unreadable++;
			continue;
		}
		if (r < 0)
			return r;
		for (size_t k = 0; k < n; k++) {
			struct drop_row *row;
			struct drop_key key;

			if (losses[k].probe != IOT_PROBE_KFREE_SKB ||
			    !iot_filter_match_loss(f, s, &losses[k]))
				continue;
			make_key(&key, &losses[k].flow, losses[k].netns, losses[k].ifindex,
				 losses[k].code, 0, in_group);
			r = row_of(d, &key, &row);
			if (r < 0)
				return r;
			row->lost = iot_add_sat(row->lost, losses[k].n);
			row->s = row->s ? row->s : s;
		}
	}
	return 0;
}

/* ---- names ---- */

static const char *reason_of(const struct drop_row *row, char *buf, size_t size)
{
	const char *name = ctl_drop_reason(row->s, row->key.code);

	if (name)
		return ctl_printable(name, buf, size);
	snprintf(buf, size, "%d", row->key.code);
	return buf;
}

static const char *location_of(const struct drop_row *row, char *buf, size_t size)
{
	if (row->place)
		return ctl_printable(row->place, buf, size);
	if (row->where)
		snprintf(buf, size, "place %llu", (unsigned long long)row->where);
	else
		snprintf(buf, size, "-");
	return buf;
}

static const char *iface_of(const struct drop_row *row, char *buf, size_t size)
{
	const char *name = iot_iface_name(row->s, row->key.netns, row->key.ifindex);

	if (name)
		return ctl_printable(name, buf, size);
	if (row->key.ifindex)
		snprintf(buf, size, "if%u", row->key.ifindex);
	else
		snprintf(buf, size, "-");
	return buf;
}

/* ---- text ---- */

static int by_place(const void *a, const void *b)
{
	const struct drop_row *x = a, *y = b;

	if (x->key.group != y->key.group)
		return x->key.group < y->key.group ? -1 : 1;
	if (x->key.code != y->key.code)
		return x->key.code < y->key.code ? -1 : 1;
	if (x->key.place != y->key.place)
		return iot_cmp_u64(x->key.place, y->key.place);
	if (x->key.netns != y->key.netns)
		return x->key.netns < y->key.netns ? -1 : 1;
	return (x->key.ifindex > y->key.ifindex) - (x->key.ifindex < y->key.ifindex);
}

static int by_flow(const void *a, const void *b)
{
	const struct drop_row *x = a, *y = b;

	if (x->key.group != y->key.group)
		return x->key.group < y->key.group ? -1 : 1;
	return memcmp(&x->key.flow, &y->key.flow, sizeof(x->key.flow));
}

static int by_number(const struct drop_row *x, const struct drop_row *y)
{
	return iot_cmp_u64(iot_add_sat(y->n, y->lost), iot_add_sat(x->n, x->lost));
}

/* Rows of a table differ in its key: with it the order is total. */
static int by_number_and_place(const void *a, const void *b)
{
	int c = by_number(a, b);

	return c ? c : by_place(a, b);
}

static int by_number_and_flow(const void *a, const void *b)
{
	int c = by_number(a, b);

	return c ? c : by_flow(a, b);
}

/* Sums up rows that cmp takes for equal, in the order of then. Free *ret. */
static int sum_up(const struct drops *d, int (*cmp)(const void *, const void *),
		  int (*then)(const void *, const void *), struct drop_row **ret, size_t *ret_n)
{
	struct drop_row *rows = calloc(d->n + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	if (d->n)
		memcpy(rows, d->rows, d->n * sizeof(*rows));
	if (d->n > 1)
		qsort(rows, d->n, sizeof(*rows), cmp);
	for (size_t i = 0; i < d->n; i++) {
		if (n > 0 && cmp(&rows[n - 1], &rows[i]) == 0) {
			rows[n - 1].n += rows[i].n;
			rows[n - 1].bytes += rows[i].bytes;
			rows[n - 1].lost = iot_add_sat(rows[n - 1].lost, rows[i].lost);
		} else {
			rows[n++] = rows[i];
		}
	}
	if (n > 1)
		qsort(rows, n, sizeof(*rows), then);
	*ret = rows;
	*ret_n = n;
	return 0;
}

/* Where numbers of several boots or captures stand side by side, whose they are. */
static void count_cells(struct ctl_table *t, const struct drops *d, const struct drop_row *row)
{
	const struct iot_segment_info *info = iot_segment_info(row->s);
	char buf[CTL_HUMAN_MAX], text[2 * 65 + 1];

	if (d->n_groups > 1)
		ctl_table_cell(t, "%s %.8s", ctl_printable(info->host, text, sizeof(text)),
			       ctl_hex_id(d->per_capture ? info->capture_id : info->boot_id, buf));
	ctl_table_cell(t, "%s", ctl_human_count(row->n, buf));
	ctl_table_cell(t, "%s", ctl_human_count(row->lost, buf));
	ctl_table_cell(t, "%s", ctl_human_size(row->bytes, buf));
}

static int print_places(const struct ctl *c, const struct drops *d)
{
	static const char *const columns[] = {"HOST",	   ">DROPS",  ">LOST",
					      ">BYTES",	   "REASON",  "LOCATION",
					      "INTERFACE", "~>NETNS", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns + (d->n_groups < 2));
	_cleanup_free_ struct drop_row *rows = NULL;
	char buf[256];
	size_t n;

	if (!t || sum_up(d, by_place, by_number_and_place, &rows, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		count_cells(t, d, &rows[i]);
		ctl_table_cell(t, "%s", reason_of(&rows[i], buf, sizeof(buf)));
		ctl_table_cell(t, "%s", location_of(&rows[i], buf, sizeof(buf)));
		ctl_table_cell(t, "%s", iface_of(&rows[i], buf, sizeof(buf)));
		if (rows[i].key.netns)
			ctl_table_cell(t, "%u", rows[i].key.netns);
		else
			ctl_table_cell(t, "-");
	}
	return ctl_table_print(t, stdout, ctl_color_enabled(c));
}

static int print_flows(const struct ctl *c, const struct drops *d)
{
	static const char *const columns[] = {"HOST", ">DROPS", ">LOST", ">BYTES", "FLOW", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns + (d->n_groups < 2));
	_cleanup_free_ struct drop_row *rows = NULL;
	char buf[256];
	size_t n;
	int r;

	if (!t || sum_up(d, by_flow, by_number_and_flow, &rows, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n && i < SHOWN_FLOWS; i++) {
		count_cells(t, d, &rows[i]);
		*iot_put_flow(buf, &rows[i].key.flow, 0) = '\0';
		ctl_table_cell(t, "%s", buf);
	}
	printf("\n");
	r = ctl_table_print(t, stdout, ctl_color_enabled(c));
	if (n > SHOWN_FLOWS)
		printf("and %zu more flows; --json has all\n", n - SHOWN_FLOWS);
	return r;
}

static void print_sum(const struct iot_sum *s, const char *what)
{
	char buf[CTL_HUMAN_MAX];

	if (s->n)
		printf("\n%s%s %s\n", s->unknown ? "At least " : "", ctl_human_count(s->n, buf),
		       what);
	else if (s->unknown)
		printf("\nIt is not known how many %s\n", what);
}

static void print_rest(const struct drops *d)
{
	print_sum(&d->not_selected,
		  "more drops of packets outside the selection were counted and not recorded");
	if (d->suppressed.n)
		print_sum(&d->suppressed, "of these came too often to be recorded");
	print_sum(&d->unattributed, "more drops were lost without an owner");
	print_sum(&d->missed, "drops were missed by the probe");
	if (d->n_unsealed + d->n_unreadable > 0)
		printf("\nAll figures are lower bounds: segments without a footer: %zu, without a "
		       "ledger that can be read: %zu\n",
		       d->n_unsealed, d->n_unreadable);
}

/* ---- JSON ---- */

static int print_json(const struct drops *d, const struct iot_verdict *v)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	char buf[256], hex[CTL_HUMAN_MAX];

	for (size_t i = 0; i < d->n; i++) {
		const struct drop_row *row = &d->rows[i];
		const struct iot_segment_info *info = iot_segment_info(row->s);
		struct json_object *j = json_object_new_object();
		const char *name = ctl_drop_reason(row->s, row->key.code);
		const char *proto = row->key.flow.family ? iot_ip_proto_name(row->key.flow.ip_proto)
							 : NULL;

		json_object_object_add(j, "reason", name ? ctl_json_text(name) : NULL);
		json_object_object_add(j, "code", json_object_new_int(row->key.code));
		location_of(row, buf, sizeof(buf));
		json_object_object_add(j, "location",
				       strcmp(buf, "-") == 0 ? NULL : ctl_json_text(buf));
		json_object_object_add(j, "where", d->per_capture ? ctl_json_id(row->where) : NULL);
		json_object_object_add(j, "netns",
				       row->key.netns ? ctl_json_u64(row->key.netns) : NULL);
		json_object_object_add(j, "ifindex",
				       row->key.ifindex ? ctl_json_u64(row->key.ifindex) : NULL);
		json_object_object_add(
			j, "iface",
			ctl_json_text(iot_iface_name(row->s, row->key.netns, row->key.ifindex)));
		json_object_object_add(j, "proto", ctl_json_text(proto));
		*iot_put_flow(buf, &row->key.flow, 0) = '\0';
		json_object_object_add(j, "flow",
				       strcmp(buf, "-") == 0 ? NULL : ctl_json_text(buf));
		json_object_object_add(j, "n", ctl_json_u64(row->n));
		json_object_object_add(j, "bytes", ctl_json_u64(row->bytes));
		json_object_object_add(j, "lost", ctl_json_u64(row->lost));
		json_object_object_add(j, "host", ctl_json_text(info->host));
		json_object_object_add(j, "boot",
				       json_object_new_string(ctl_hex_id(info->boot_id, hex)));
		json_object_object_add(
			j, "capture",
			d->per_capture ? json_object_new_string(ctl_hex_id(info->capture_id, hex))
				       : NULL);
		json_object_array_add(list, j);
	}
	json_object_object_add(o, "drops", list);
	json_object_object_add(o, "not_selected", ctl_json_sum(&d->not_selected));
	json_object_object_add(o, "suppressed", ctl_json_sum(&d->suppressed));
	json_object_object_add(o, "unattributed", ctl_json_sum(&d->unattributed));
	json_object_object_add(o, "missed", ctl_json_sum(&d->missed));
	json_object_object_add(o, "unsealed", ctl_json_u64(d->n_unsealed));
	json_object_object_add(o, "record", ctl_verdict_json(v));
	return ctl_json_print(o);
}

int verb_drops(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(drops_done) struct drops d = {.per_capture = c->per_capture};
	struct iot_error err = {0};
	struct iot_verdict v = {0};
	int r, code;

	d.seed = iot_table_seed();
	code = ctl_scan_open(c, argc, argv, &scan);
	if (code != CTL_OK)
		return code;
	if (!iot_scan_n_stream(scan, IOT_STREAM_PACKET))
		return ctl_packets_none();
	r = add_records(&d, scan, &err);
	if (r == 0)
		r = add_losses(&d, scan, &c->filter, &err);
	if (r == 0)
		r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	code = CTL_OK;
	if (c->json) {
		code = print_json(&d, &v);
	} else {
		ctl_pager_open(c);
		if (d.n == 0)
			printf("no drops%s\n", v.code != IOT_VERDICT_COMPLETE ? " recorded" : "");
		else if (print_places(c, &d) < 0 || print_flows(c, &d) < 0)
			code = ctl_fail(CTL_ERROR, "out of memory");
		print_rest(&d);
		ctl_pager_close();
	}
	if (code != CTL_OK)
		return code;
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_code(&v);
}
