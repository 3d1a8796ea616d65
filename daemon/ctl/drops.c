// SPDX-License-Identifier: BSD-2-Clause
/*
 * drops.c - see drops.h.
 *
 * A drop is an observation at kfree_skb. Those that were lost are counted where the ledger puts them, which
 * knows no place. On kernels before 5.17 there are no reasons.
 *
 * Names of places, namespaces and interfaces keep their meaning from one boot of a machine to the next, so that
 * is how far rows of several captures are summed up (a place's number is its capture's own); per_capture keeps
 * captures apart. A segment without a footer has neither counters nor a ledger: what it holds is a lower bound.
 */
#include "daemon/ctl/drops.h"
#include "format/render.h"

void drops_init(struct drops *d, bool per_capture)
{
	*d = (struct drops){.per_capture = per_capture, .seed = iot_table_seed()};
}

void drops_done(struct drops *d)
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

int drops_add(struct drops *d, struct iot_scan *scan, struct iot_segment *s,
	      const struct iot_packet *p)
{
	struct drop_row *row;
	struct drop_key k;
	int r;

	if (p->probe != IOT_PROBE_KFREE_SKB)
		return 0;
	if (s != d->last) {
		d->last_group = group_of(d, scan, s);
		d->last = s;
		d->last_where = 0;
	}
	if (p->where != d->last_where || !d->last_where) {
		d->last_where = p->where;
		d->last_place = p->where ? place_name(scan, s, p->where) : NULL;
	}
	make_key(&k, &p->flow, p->netns, p->ifindex, p->code, place_key(s, d->last_place, p->where),
		 d->last_group);
	r = row_of(d, &k, &row);
	if (r < 0)
		return r;
	row->n++;
	row->bytes += p->len;
	if (!row->s) {
		row->s = s;
		row->place = d->last_place;
		row->where = p->where;
	}
	return 0;
}

/* ---- what the books say of the time and the packets that are asked for ---- */

enum within {
	WITHIN_NOT,
	WITHIN_PARTLY,
	WITHIN_WHOLLY
};

/* last_ns 0: its end is not known. */
static enum within within(const struct iot_filter *f, const struct iot_segment *s,
			  uint64_t first_ns, uint64_t last_ns)
{
	uint64_t first = iot_segment_realtime_ns(s, first_ns);
	uint64_t last = last_ns ? iot_segment_realtime_ns(s, last_ns) : UINT64_MAX;

	if (last < f->since_ns || (f->until_ns && first > f->until_ns))
		return WITHIN_NOT;
	return first >= f->since_ns && (!f->until_ns || last <= f->until_ns) ? WITHIN_WHOLLY
									     : WITHIN_PARTLY;
}

/* Of n that are partly within, and may be of other flows, it is not known how many are asked for. */
static void add_within(const struct iot_filter *f, struct iot_sum *sum, uint64_t n, enum within w)
{
	if (!n || w == WITHIN_NOT)
		return;
	iot_sum_add(sum, w == WITHIN_WHOLLY && !f->flow.set ? n : IOT_COUNT_UNKNOWN);
}

/* total: of the segment's books at kfree_skb. What windows tell is bounded by them. */
static void add_windows(const struct iot_filter *f, const struct iot_segment *s,
			const struct iot_footer *footer, enum iot_window_kind kind,
			const struct iot_sum *total, enum within of_segment, struct iot_sum *sum)
{
	uint64_t rest = total->n;

	if (of_segment == WITHIN_PARTLY && !total->unknown) {
		for (size_t i = 0; i < footer->n_windows; i++) {
			const struct iot_window *w = &footer->windows[i];

			if (w->kind != kind || w->probe != IOT_PROBE_KFREE_SKB || w->n > rest)
				continue;
			add_within(f, sum, w->n, within(f, s, w->t0_ns, w->t1_ns));
			rest -= w->n;
		}
	}
	add_within(f, sum, rest, of_segment);
	if (total->unknown)
		iot_sum_add(sum, IOT_COUNT_UNKNOWN);
}

static void add_books(struct drops *d, const struct iot_filter *f, const struct iot_segment *s,
		      const struct iot_footer *footer, enum within w)
{
	const struct iot_probe *probe =
		iot_probe_find(iot_segment_info(s), footer, IOT_PROBE_KFREE_SKB);
	/* No guard, hence nothing that could be missed, and no counter of it. */
	bool unguarded = probe && probe->miss == IOT_MISS_UNGUARDED;
	struct iot_sum unattributed = {0}, missed = {0};

	for (size_t i = 0; i < footer->n_books; i++) {
		const struct iot_books *b = &footer->books[i];

		if (b->probe != IOT_PROBE_KFREE_SKB)
			continue;
		add_within(f, &d->not_selected, b->not_selected, w);
		add_within(f, &d->suppressed, b->suppressed, w);
		iot_sum_add(&unattributed, b->unattributed);
		if (!unguarded)
			iot_sum_add(&missed, b->missed);
	}
	add_windows(f, s, footer, IOT_WINDOW_UNATTRIBUTED, &unattributed, w, &d->unattributed);
	add_windows(f, s, footer, IOT_WINDOW_MISSED, &missed, w, &d->missed);
}

/* The part of the segment that is asked for; without its times, or without times to be asked for, all of it. */
static enum within segment_within(const struct iot_filter *f, const struct iot_segment *s)
{
	const struct iot_footer *footer = iot_segment_footer(s);

	if (!f->since_ns && !f->until_ns)
		return WITHIN_WHOLLY;
	if (!footer)
		return within(f, s, iot_segment_info(s)->clocks.monotonic_ns, 0);
	if (!footer->epoch_first_ns || !footer->epoch_last_ns)
		return WITHIN_PARTLY;
	return within(f, s, footer->epoch_first_ns, footer->epoch_last_ns);
}

int drops_add_losses(struct drops *d, struct iot_scan *scan, const struct iot_filter *f,
		     struct iot_error *err)
{
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_footer *footer = iot_segment_footer(s);
		_cleanup_free_ struct iot_loss *losses = NULL;
		enum within w = segment_within(f, s);
		size_t n = 0, in_group;
		int r;

		if (iot_segment_info(s)->stream != IOT_STREAM_PACKET)
			continue;
		in_group = group_of(d, scan, s);
		d->n_groups += in_group == i;
		if (w == WITHIN_NOT)
			continue;
		if (footer) {
			add_books(d, f, s, footer, w);
		} else {
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

const char *drops_reason(const struct drop_row *row, char *buf, size_t size)
{
	const char *name = ctl_drop_reason(row->s, row->key.code);

	if (name)
		return ctl_printable(name, buf, size);
	snprintf(buf, size, "%d", row->key.code);
	return buf;
}

const char *drops_location(const struct drop_row *row, char *buf, size_t size)
{
	if (row->place)
		return ctl_printable(row->place, buf, size);
	if (row->where)
		snprintf(buf, size, "place %llu", (unsigned long long)row->where);
	else
		snprintf(buf, size, "-");
	return buf;
}

const char *drops_iface(const struct drop_row *row, char *buf, size_t size)
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

/* ---- tables ---- */

int drops_by_place(const void *a, const void *b)
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

int drops_by_flow(const void *a, const void *b)
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
int drops_by_number_and_place(const void *a, const void *b)
{
	int c = by_number(a, b);

	return c ? c : drops_by_place(a, b);
}

int drops_by_number_and_flow(const void *a, const void *b)
{
	int c = by_number(a, b);

	return c ? c : drops_by_flow(a, b);
}

int drops_sum_up(const struct drops *d, drops_order *cmp, drops_order *then, struct drop_row **ret,
		 size_t *ret_n)
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
