// SPDX-License-Identifier: BSD-2-Clause
/* picture-packets.c - see picture-packets.h. */
#include "daemon/ctl/picture-packets.h"

const char *packet_pick_name(enum packet_pick pick)
{
	static const char *const names[] = {
		[PACKET_ASKED] = "asked for", [PACKET_DROPPED] = "dropped",
		[PACKET_LOST] = "lost",	      [PACKET_LONGEST] = "most observations",
		[PACKET_SLOWEST] = "slowest", [PACKET_USUAL] = "usual",
	};

	return names[pick];
}

void packet_pictures_done(struct packet_pictures *pp)
{
	drops_done(&pp->drops);
	ctl_hops_done(&pp->hops);
	ctl_packets_done(&pp->packets);
}

/* ---- the selection, once ----------------------------------------------------------------------- */

static bool is_picked(const struct packet_pictures *pp, const uint8_t capture_id[16], uint64_t id)
{
	for (size_t i = 0; i < pp->n_ways; i++)
		if (pp->ways[i].id == id && memcmp(pp->ways[i].capture_id, capture_id, 16) == 0)
			return true;
	return false;
}

/* Those that are shown whatever they are like. */
static bool pick(struct packet_pictures *pp, const struct iot_segment *s, uint64_t id,
		 enum packet_pick why, size_t most)
{
	const uint8_t *capture_id = iot_segment_info(s)->capture_id;
	size_t n = 0;

	for (size_t i = 0; i < pp->n_ways; i++)
		n += pp->ways[i].pick == why;
	if (!id || n >= most || pp->n_ways == PACKET_WAYS || is_picked(pp, capture_id, id))
		return false;
	pp->ways[pp->n_ways] = (struct packet_way){.id = id, .pick = why, .shown = true};
	memcpy(pp->ways[pp->n_ways++].capture_id, capture_id, 16);
	return true;
}

static struct packet_reason *reason_of(struct packet_pictures *pp, const struct iot_segment *s,
				       int32_t code)
{
	const char *name = ctl_drop_reason(s, code);
	struct packet_reason *r;
	char number[24];

	if (!name) {
		snprintf(number, sizeof(number), "%d", code);
		name = number;
	}
	for (size_t i = 0; i < pp->n_reasons; i++)
		if (strncmp(pp->reasons[i].name, name, sizeof(r->name) - 1) == 0)
			return &pp->reasons[i];
	if (pp->n_reasons == PACKET_REASONS)
		return &pp->reasons[PACKET_REASONS - 1];
	r = &pp->reasons[pp->n_reasons++];
	if (pp->n_reasons == PACKET_REASONS)
		snprintf(r->name, sizeof(r->name), "others");
	else
		snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

/* Of all beginnings seen so far each is in the sample with the same chance; the same input gives the same one. */
static void sample(struct packet_way *ways, size_t *n, uint64_t n_born, uint64_t *state,
		   const struct iot_segment *s, uint64_t id)
{
	size_t at = *n;

	if (*n < PACKET_SAMPLE) {
		++*n;
	} else {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		if (*state % n_born >= PACKET_SAMPLE)
			return;
		at = (size_t)(*state % PACKET_SAMPLE);
	}
	ways[at] = (struct packet_way){.id = id, .pick = PACKET_USUAL};
	memcpy(ways[at].capture_id, iot_segment_info(s)->capture_id, 16);
}

static int read_selection(struct packet_pictures *pp, struct iot_scan *scan,
			  const struct iot_filter *f, const struct picture_axis *a,
			  struct iot_error *err)
{
	struct packet_way sampled[PACKET_SAMPLE];
	uint64_t state = 88172645463325252U; /* any but 0 */
	size_t n_sampled = 0;
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	while ((r = iot_scan_next_packet(scan, &p, &s, err)) == 0) {
		size_t column = picture_column(a, iot_segment_realtime_ns(s, p.ts_ns));

		pp->n++;
		pp->observations[column]++;
		if (f->id)
			pick(pp, s, p.id, PACKET_ASKED, PACKET_WAYS);
		if (p.probe == IOT_PROBE_KFREE_SKB) {
			struct packet_reason *reason = reason_of(pp, s, p.code);

			if (!reason->n++)
				pick(pp, s, p.id, PACKET_DROPPED, PACKET_WAYS / 2 - 1);
			reason->drops[column]++;
			r = drops_add(&pp->drops, scan, s, &p);
			if (r < 0)
				return r;
		}
		if (p.id && p.hop == 1 && (p.flags & IOT_PACKET_FROM_START))
			sample(sampled, &n_sampled, ++pp->n_born, &state, s, p.id);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_sampled; i++)
		if (!is_picked(pp, sampled[i].capture_id, sampled[i].id))
			pp->ways[PACKET_WAYS + pp->n_sampled++] = sampled[i];
	return drops_add_losses(&pp->drops, scan, f, err);
}

static int pick_lost(struct packet_pictures *pp, struct iot_scan *scan, const struct iot_filter *f)
{
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		struct iot_segment *s = iot_scan_segment(scan, i);
		_cleanup_free_ struct iot_loss *losses = NULL;
		bool picked = false;
		size_t n = 0;
		int r;

		if (iot_segment_info(s)->stream != IOT_STREAM_PACKET || !iot_segment_footer(s))
			continue;
		r = iot_segment_load_ledger(s, &losses, &n, NULL);
		if (r < 0 && r != -EBADMSG)
			return r;
		for (size_t k = 0; r == 0 && k < n && !picked; k++)
			if (iot_filter_match_loss(f, s, &losses[k]))
				picked = pick(pp, s, losses[k].id, PACKET_LOST, 2);
	}
	return 0;
}

/* ---- the ways of those that were picked -------------------------------------------------------- */

static struct packet_way *way_of(struct packet_pictures *pp, const struct iot_segment *s,
				 uint64_t id)
{
	for (size_t i = 0; i < pp->n_ways; i++)
		if (pp->ways[i].id == id &&
		    memcmp(pp->ways[i].capture_id, iot_segment_info(s)->capture_id, 16) == 0)
			return &pp->ways[i];
	return NULL;
}

static int cmp_id(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int read_ways(struct packet_pictures *pp, struct iot_scan *whole, struct iot_error *err)
{
	uint64_t ids[PACKET_WAYS + PACKET_SAMPLE];
	struct iot_segment *s;
	struct iot_packet p;
	int r;

	for (size_t i = 0; i < pp->n_ways; i++)
		ids[i] = pp->ways[i].id;
	qsort(ids, pp->n_ways, sizeof(*ids), cmp_id);
	r = ctl_packets_read_some(whole, ids, pp->n_ways, &pp->packets, err);
	while (r == 0 && (r = iot_scan_next_packet(whole, &p, &s, err)) == 0) {
		struct packet_way *w = NULL;
		const struct ctl_capture *c;

		if (p.id && bsearch(&p.id, ids, pp->n_ways, sizeof(*ids), cmp_id))
			w = way_of(pp, s, p.id);
		if (!w)
			continue;
		w->first_ns = w->n_hops ? IOT_MIN(w->first_ns, p.ts_ns) : p.ts_ns;
		w->last_ns = IOT_MAX(w->last_ns, p.ts_ns);
		c = ctl_packets_find(&pp->packets, s);
		/* A connection's buffer under a merged id may have any number. */
		if (w->n_hops++ < PACKET_WAY_HOPS && c)
			r = ctl_hops_add(&pp->hops, c, &p, s);
	}
	if (r < 0)
		return r;
	ctl_hops_sort(&pp->hops, &pp->packets);
	return 0;
}

static uint64_t weight_of(const struct packet_way *w, enum packet_pick why)
{
	return why == PACKET_LONGEST ? w->n_hops : w->last_ns - w->first_ns;
}

/* The first with the most, of those that are not shown yet. */
static struct packet_way *most(struct packet_pictures *pp, enum packet_pick why)
{
	struct packet_way *best = NULL;

	for (size_t i = pp->n_ways - pp->n_sampled; i < pp->n_ways; i++) {
		struct packet_way *w = &pp->ways[i];

		if (!w->shown && (!best || weight_of(w, why) > weight_of(best, why)))
			best = w;
	}
	return best;
}

static int by_time(const void *a, const void *b)
{
	const struct packet_way *const *x = a, *const *y = b;

	return iot_cmp_u64(weight_of(*x, PACKET_SLOWEST), weight_of(*y, PACKET_SLOWEST));
}

static struct packet_way *median(struct packet_pictures *pp)
{
	struct packet_way *rest[PACKET_SAMPLE];
	size_t n = 0;

	for (size_t i = pp->n_ways - pp->n_sampled; i < pp->n_ways; i++)
		if (!pp->ways[i].shown)
			rest[n++] = &pp->ways[i];
	qsort(rest, n, sizeof(struct packet_way *), by_time);
	return n ? rest[n / 2] : NULL;
}

static void choose(struct packet_pictures *pp)
{
	static const enum packet_pick picks[] = {PACKET_LONGEST, PACKET_SLOWEST, PACKET_USUAL};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(picks); i++) {
		struct packet_way *w = picks[i] == PACKET_USUAL ? median(pp) : most(pp, picks[i]);

		if (w) {
			w->pick = picks[i];
			w->shown = true;
		}
	}
}

int packet_pictures_read(struct packet_pictures *pp, struct iot_scan *scan, struct iot_scan *whole,
			 const struct iot_filter *f, const struct picture_axis *a,
			 struct iot_error *err)
{
	int r;

	pp->any = iot_scan_n_stream(scan, IOT_STREAM_PACKET) > 0;
	if (!pp->any || !a->n)
		return 0;
	drops_init(&pp->drops, false);
	r = read_selection(pp, scan, f, a, err);
	if (r == 0)
		r = pick_lost(pp, scan, f);
	if (r < 0)
		return r;
	/* The sample stood behind the room of the others. */
	memmove(&pp->ways[pp->n_ways], &pp->ways[PACKET_WAYS], pp->n_sampled * sizeof(*pp->ways));
	pp->n_ways += pp->n_sampled;
	r = read_ways(pp, whole, err);
	if (r == 0)
		choose(pp);
	return r;
}
