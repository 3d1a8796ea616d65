// SPDX-License-Identifier: BSD-2-Clause
/*
 * packets.c - gathering what packets.h describes.
 *
 * Blocks are read in the order of the files: a life is a sum, and needs none. A block that cannot be read
 * becomes a doubt about its time, so that damage is bounded like any other loss.
 */
#include "daemon/ctl/packets.h"

#include "format/books.h"

size_t ctl_packets_max = CTL_PACKETS_MAX;

static void capture_done(struct ctl_capture *c)
{
	iot_doubts_free(c->doubts);
	for (size_t i = 0; c->ledgers && i < c->n; i++)
		free(c->ledgers[i]);
	free(c->ledgers);
	free(c->copies);
	free(c->infos);
	free(c->footers);
	free(c->segments);
	free(c->lives);
	free(c->slots);
}

void ctl_packets_done(struct ctl_packets *p)
{
	for (size_t i = 0; i < p->n; i++)
		capture_done(&p->captures[i]);
	free(p->captures);
	*p = (struct ctl_packets){0};
}

/* ---- lives by id ---- */

static size_t slot_of(const struct ctl_capture *c, uint64_t id)
{
	size_t at = (size_t)iot_table_hash(&id, sizeof(id), c->seed) & (c->n_slots - 1);

	while (c->slots[at] && c->lives[c->slots[at] - 1].id != id)
		at = (at + 1) & (c->n_slots - 1);
	return at;
}

static int grow(struct ctl_capture *c)
{
	size_t n_slots = c->n_slots ? c->n_slots * 2 : 1024;
	struct iot_packet_life *lives = reallocarray(c->lives, n_slots / 2, sizeof(*lives));
	size_t *slots;

	if (!lives)
		return -ENOMEM;
	c->lives = lives;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(c->slots);
	c->slots = slots;
	c->n_slots = n_slots;
	for (size_t i = 0; i < c->n_lives; i++)
		c->slots[slot_of(c, c->lives[i].id)] = i + 1;
	return 0;
}

static int life_of(struct ctl_capture *c, uint64_t id, struct iot_packet_life **ret)
{
	size_t at;
	int r;

	if (c->n_lives == c->n_slots / 2) {
		r = grow(c);
		if (r < 0)
			return r;
	}
	at = slot_of(c, id);
	if (!c->slots[at]) {
		if (c->n_lives >= ctl_packets_max)
			return -E2BIG;
		c->lives[c->n_lives] = (struct iot_packet_life){.id = id};
		c->slots[at] = ++c->n_lives;
	}
	*ret = &c->lives[c->slots[at] - 1];
	return 0;
}

struct iot_packet_life *ctl_capture_life(const struct ctl_capture *c, uint64_t id)
{
	size_t at;

	if (!c->n_slots || !id)
		return NULL;
	at = slot_of(c, id);
	return c->slots[at] ? &c->lives[c->slots[at] - 1] : NULL;
}

/* ---- reading ---- */

static int cmp_id(const void *a, const void *b)
{
	return iot_cmp_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

static bool is_wanted(const struct ctl_capture *c, uint64_t id)
{
	return !c->only || bsearch(&id, c->only, c->n_only, sizeof(*c->only), cmp_id);
}

static int add_records(struct ctl_capture *c, size_t i, const struct iot_batch *b,
		       struct iot_written *written)
{
	for (uint32_t k = 0; k < iot_batch_count(b); k++) {
		struct iot_packet_life *l;
		struct iot_packet p;
		int r;

		iot_batch_get_packet(b, k, &p);
		c->n_records++;
		r = iot_written_add(written, p.probe, p.cpu);
		if (r < 0)
			return r;
		if (!p.id) {
			c->n_unidentified++;
			r = iot_doubts_unidentified(c->doubts, i, &p);
		} else if (is_wanted(c, p.id)) {
			r = life_of(c, p.id, &l);
			if (r == 0)
				iot_packet_life_add(l, &p);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* All blocks were read: what is in the file has to be what the books count. */
static int check_written(struct ctl_capture *c, size_t i, struct iot_written *written)
{
	const struct iot_footer *f = c->footers[i];
	int r = 0;

	for (size_t k = 0; f && r == 0 && k < f->n_books; k++) {
		const struct iot_books *b = &f->books[k];

		if (iot_written_take(written, b->probe, b->cpu) != b->written)
			r = iot_doubts_miscounted(c->doubts, i, b->probe);
	}
	for (size_t k = 0; f && r == 0 && k < written->n; k++)
		if (written->rows[k].n)
			r = iot_doubts_miscounted(c->doubts, i, written->rows[k].probe);
	if (f && r == 0 && written->other)
		r = iot_doubts_miscounted(c->doubts, i, 0);
	return r;
}

/* Retention took it: any of its packets may have passed anywhere then. Without a footer all is in doubt anyway. */
static int doubt_gone(struct ctl_capture *c, size_t i)
{
	const struct iot_footer *f = c->footers[i];

	return f ? iot_doubts_unreadable(c->doubts, i, f->epoch_first_ns,
					 f->epoch_last_ns ? f->epoch_last_ns : UINT64_MAX)
		 : 0;
}

static int read_segment(struct ctl_capture *c, size_t i, struct iot_batch *b, struct iot_error *err)
{
	_cleanup_(iot_written_done) struct iot_written written = {0};
	struct iot_segment *s = c->segments[i];
	struct iot_block_info info;
	bool damaged = false;
	int r;

	iot_segment_rewind(s);
	for (;;) {
		r = iot_segment_next_block(s, &info, err);
		if (r < 0)
			return iot_segment_gone(s) ? doubt_gone(c, i) : r;
		if (r == IOT_READ_END)
			return damaged ? 0 : check_written(c, i, &written);
		if (r != IOT_READ_GAP) {
			if (info.kind != IOT_BLOCK_PACKETS)
				continue;
			r = iot_segment_read_block(s, &info, IOT_PCOLS_ALL, b, NULL);
			if (r == 0) {
				r = add_records(c, i, b, &written);
				if (r < 0)
					return r;
				continue;
			}
			if (r != -EBADMSG)
				return iot_segment_gone(s) ? doubt_gone(c, i) : r;
		}
		damaged = true;
		/* In a file without footer all of its time is in doubt anyway. */
		if (!c->footers[i])
			continue;
		r = iot_doubts_unreadable(c->doubts, i, info.first_ns,
					  info.last_ns ? info.last_ns : UINT64_MAX);
		if (r < 0)
			return r;
	}
}

/* Every loss that the books count has its entry. */
static bool ledger_is_whole(const struct iot_footer *f, struct iot_books_summary *sums)
{
	iot_books_sum(f, sums);
	iot_books_sum_losses(sums, f->losses, f->n_losses);
	for (unsigned int i = 0; i < IOT_MAX_PROBE_IDS; i++) {
		const struct iot_probe_sums *p = &sums->probes[i];

		if (p->filed.unknown || p->ledger_filed.unknown ||
		    p->filed.n != p->ledger_filed.n || p->user_failed.unknown ||
		    p->window_output.unknown || p->ledger_user.unknown ||
		    p->user_failed.n != iot_add_sat(p->ledger_user.n, p->window_output.n))
			return false;
	}
	return f->reason != IOT_SEAL_RECOVERED;
}

static int load_ledgers(struct ctl_capture *c, struct iot_error *err)
{
	_cleanup_free_ struct iot_books_summary *sums = malloc(sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	c->ledgers_whole = true;
	for (size_t i = 0; i < c->n; i++) {
		const struct iot_footer *f = iot_segment_footer(c->segments[i]);
		size_t n = 0;
		int r;

		c->infos[i] = iot_segment_info(c->segments[i]);
		if (!f) {
			c->n_unsealed++;
			c->ledgers_whole = false;
			continue;
		}
		r = iot_segment_load_ledger(c->segments[i], &c->ledgers[i], &n, err);
		/* Damaged: the books tell that it is not whole. */
		if (r < 0 && r != -EBADMSG)
			return r;
		if (r < 0 && err)
			err->text[0] = '\0';
		c->copies[i] = *f;
		c->copies[i].losses = c->ledgers[i];
		c->copies[i].n_losses = r < 0 ? 0 : n;
		c->footers[i] = &c->copies[i];
		c->ledgers_whole &= r == 0 && ledger_is_whole(&c->copies[i], sums);
		if (!c->first_ns || (f->epoch_first_ns && f->epoch_first_ns < c->first_ns))
			c->first_ns = f->epoch_first_ns;
		c->last_ns = IOT_MAX(c->last_ns, f->epoch_last_ns);
	}
	return 0;
}

static int read_capture(struct ctl_capture *c, struct iot_error *err)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	struct iot_packet_life *l;
	const uint64_t *losers;
	size_t n;
	int r;

	c->seed = iot_table_seed();
	r = load_ledgers(c, err);
	if (r == 0)
		r = iot_doubts_new(c->infos, c->footers, c->n, &c->doubts);
	if (r == 0)
		r = iot_batch_new_stream(IOT_STREAM_PACKET, 64, &b);
	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = read_segment(c, i, b, err);
	n = r == 0 ? iot_doubts_losers(c->doubts, &losers) : 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_wanted(c, losers[i]))
			r = life_of(c, losers[i], &l);
	if (r == -E2BIG)
		return iot_error_set(
			err, r,
			"more than %zu packets in one run of iotraced; name fewer of its "
			"segments",
			ctl_packets_max);
	if (r < 0)
		return r;
	c->first_ns = IOT_MAX(c->first_ns, c->infos[0]->attach_ns);
	return 0;
}

static int capture_init(struct ctl_capture *c, struct iot_scan *scan, size_t first, size_t n)
{
	*c = (struct ctl_capture){.n = n};
	c->segments = calloc(n, sizeof(struct iot_segment *));
	c->infos = calloc(n, sizeof(const struct iot_segment_info *));
	c->footers = calloc(n, sizeof(const struct iot_footer *));
	c->copies = calloc(n, sizeof(*c->copies));
	c->ledgers = calloc(n, sizeof(struct iot_loss *));
	if (!c->segments || !c->infos || !c->footers || !c->copies || !c->ledgers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		c->segments[i] = iot_scan_segment(scan, first + i);
	return 0;
}

int ctl_packets_none(void)
{
	return ctl_fail(CTL_ERROR, "no segment of the packet stream here; it is off unless the "
				   "configuration turns it on");
}

int ctl_packets_read(struct iot_scan *scan, struct ctl_packets *ret, struct iot_error *err)
{
	return ctl_packets_read_some(scan, NULL, 0, ret, err);
}

int ctl_packets_read_some(struct iot_scan *scan, const uint64_t *ids, size_t n,
			  struct ctl_packets *ret, struct iot_error *err)
{
	size_t n_segments = iot_scan_n_segments(scan);
	struct ctl_packets p = {0};
	int r = 0;

	p.captures = calloc(n_segments + 1, sizeof(*p.captures));
	if (!p.captures)
		return -ENOMEM;
	for (size_t i = 0, k; r == 0 && i < n_segments; i = k) {
		const struct iot_segment *s = iot_scan_segment(scan, i);

		k = i + 1;
		if (iot_segment_info(s)->stream != IOT_STREAM_PACKET)
			continue;
		while (k < n_segments && iot_same_capture(s, iot_scan_segment(scan, k)))
			k++;
		r = capture_init(&p.captures[p.n++], scan, i, k - i);
		p.captures[p.n - 1].only = ids;
		p.captures[p.n - 1].n_only = n;
		if (r == 0)
			r = read_capture(&p.captures[p.n - 1], err);
	}
	if (r < 0) {
		ctl_packets_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

int ctl_packets_open(struct iot_scan *scan, struct ctl_packets *ret)
{
	struct iot_error err = {0};
	int r = ctl_packets_read(scan, ret, &err);

	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	return ret->n ? CTL_OK : ctl_packets_none();
}

int ctl_packets_scan(const struct ctl *c, int argc, char **argv, struct iot_scan **ret)
{
	/* Verdicts need whole lives, whatever is to be shown of them. */
	struct ctl whole = *c;

	whole.filter = (struct iot_filter){0};
	return ctl_scan_open(&whole, argc, argv, ret);
}

/* ---- looking things up ---- */

struct ctl_capture *ctl_packets_find(const struct ctl_packets *p, const struct iot_segment *s)
{
	for (size_t i = 0; i < p->n; i++)
		if (iot_same_capture(p->captures[i].segments[0], s))
			return &p->captures[i];
	return NULL;
}

const struct iot_probe *ctl_capture_probe_row(const struct ctl_capture *c, uint16_t probe)
{
	const struct iot_probe *row = NULL;

	for (size_t i = c->n; !row && i > 0; i--)
		row = iot_probe_find(c->infos[i - 1], c->footers[i - 1], probe);
	return row;
}

const char *ctl_capture_probe(const struct ctl_capture *c, uint16_t probe, char *buf, size_t size)
{
	for (size_t i = c->n; i > 0; i--)
		if (iot_probe_find(c->infos[i - 1], c->footers[i - 1], probe))
			return iot_probe_label(c->infos[i - 1], c->footers[i - 1], probe, buf,
					       size);
	return iot_probe_label(c->infos[0], c->footers[0], probe, buf, size);
}

uint16_t ctl_capture_probe_id(const struct ctl_capture *c, const char *name)
{
	char label[64];

	for (unsigned int i = 0; i < IOT_N_PACKET_PROBES; i++) {
		uint16_t id = (uint16_t)(IOT_FIRST_PACKET_PROBE + i);

		if (ctl_capture_probe_row(c, id) &&
		    strcmp(ctl_capture_probe(c, id, label, sizeof(label)), name) == 0)
			return id;
	}
	return 0;
}

bool ctl_probe_only_counts(uint16_t probe)
{
	return probe >= IOT_FIRST_BIRTH_PROBE && probe <= IOT_LAST_BIRTH_PROBE &&
	       probe != IOT_PROBE_SKB_CLONE && probe != IOT_PROBE_SKB_COPY &&
	       probe != IOT_PROBE_PSKB_COPY_FCLONE;
}
