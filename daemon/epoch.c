// SPDX-License-Identifier: BSD-2-Clause
/* epoch.c - see epoch.h: counters, losses and windows while an epoch runs. */
#include <assert.h>

#include "daemon/epoch.h"

static uint64_t load(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

int epoch_new(enum iot_stream stream, uint64_t number, uint32_t n_cpus, uint64_t first_ns,
	      struct epoch **ret)
{
	struct epoch *e = calloc(1, sizeof(*e));
	size_t n;

	if (!e)
		return -ENOMEM;
	if (stream == IOT_STREAM_PACKET)
		e->first_probe = EV_FIRST_PACKET_PROBE;
	e->n_probes = stream == IOT_STREAM_PACKET ? EV_N_PACKET_PROBES : EV_N_BLOCK_PROBES;
	n = (size_t)n_cpus * e->n_probes;
	e->epoch = number;
	e->slot = (unsigned int)(number & 1);
	e->n_cpus = n_cpus;
	e->first_ns = first_ns;
	e->sample_begin_ns[0] = first_ns;
	e->sample_begin_ns[1] = first_ns;
	e->written = calloc(n, sizeof(*e->written));
	e->decode_failed = calloc(n, sizeof(*e->decode_failed));
	e->output_failed = calloc(n, sizeof(*e->output_failed));
	e->sampled = calloc(n, sizeof(*e->sampled));
	e->last_window = calloc(n, sizeof(*e->last_window));
	if (!e->written || !e->decode_failed || !e->output_failed || !e->sampled ||
	    !e->last_window) {
		epoch_free(e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

struct epoch *epoch_free(struct epoch *e)
{
	if (!e)
		return NULL;
	free(e->written);
	free(e->decode_failed);
	free(e->output_failed);
	free(e->sampled);
	free(e->last_window);
	free(e->losses);
	free(e->windows);
	id_set_done(&e->devices);
	id_set_done(&e->cgroups);
	free(e);
	return NULL;
}

static bool same_place(const struct iot_window *a, const struct iot_window *b)
{
	return a->kind == b->kind && a->probe == b->probe && a->cpu == b->cpu;
}

static void join(struct iot_window *into, const struct iot_window *w)
{
	into->t0_ns = IOT_MIN(into->t0_ns, w->t0_ns);
	into->t1_ns = IOT_MAX(into->t1_ns, w->t1_ns);
	if (into->n == UINT64_MAX || w->n == UINT64_MAX)
		into->n = UINT64_MAX;
	else
		into->n += w->n;
}

static struct iot_window *newest_like(struct epoch *e, const struct iot_window *w, uint32_t *last)
{
	if (last)
		return *last ? &e->windows[*last - 1] : NULL;
	for (size_t i = e->n_windows; i > 0; i--)
		if (same_place(&e->windows[i - 1], w))
			return &e->windows[i - 1];
	return NULL;
}

int epoch_add_window(struct epoch *e, const struct iot_window *w, uint32_t *last)
{
	struct iot_window *like;

	assert(e);
	like = newest_like(e, w, last);
	assert(!like || same_place(like, w));
	if (like && (w->t0_ns <= like->t1_ns || e->n_windows >= EPOCH_MAX_WINDOWS)) {
		join(like, w);
		return 0;
	}
	if (e->n_windows == e->windows_room) {
		size_t more = e->windows_room ? 2 * e->windows_room : 16;
		struct iot_window *grown = reallocarray(e->windows, more, sizeof(*grown));

		if (!grown) {
			if (!like)
				return -ENOMEM;
			join(like, w);
			return 0;
		}
		e->windows = grown;
		e->windows_room = more;
	}
	e->windows[e->n_windows++] = *w;
	if (last)
		*last = (uint32_t)e->n_windows;
	return 0;
}

static bool file_by_owner(struct epoch *e, const struct iot_loss *l)
{
	if (e->n_losses >= EPOCH_MAX_LOSSES)
		return false;
	if (e->n_losses == e->losses_room) {
		size_t more = e->losses_room ? 2 * e->losses_room : 64;
		struct iot_loss *grown = reallocarray(e->losses, more, sizeof(*grown));

		if (!grown)
			return false;
		e->losses = grown;
		e->losses_room = more;
	}
	e->losses[e->n_losses++] = *l;
	return true;
}

void epoch_file_loss(struct epoch *e, uint32_t cpu, const struct iot_loss *l, bool was_written)
{
	uint32_t p = (uint32_t)l->probe - e->first_probe;
	bool known = l->probe && l->probe >= e->first_probe && p < e->n_probes;
	struct iot_window w = {
		.t0_ns = l->first_ns,
		.t1_ns = l->last_ns,
		.n = l->n,
		.cpu = cpu,
		.probe = l->probe,
		.kind = IOT_WINDOW_OUTPUT,
	};

	if (cpu < e->n_cpus && known) {
		size_t i = (size_t)cpu * e->n_probes + p;

		if (was_written) {
			assert(e->written[i] >= l->n);
			e->written[i] -= l->n;
		}
		if (l->cause == IOT_LOSS_OUTPUT_FAILED)
			e->output_failed[i] += l->n;
		else
			e->decode_failed[i] += l->n;
		if (file_by_owner(e, l))
			return;
	} else {
		/* Its row is a guess; the books of this epoch will say that they do not balance. */
		if (known)
			e->orphans[p] += l->n;
		else
			e->nameless += l->n;
		w.cpu = UINT32_MAX;
		w.probe = known ? l->probe : 0;
		if (l->id && file_by_owner(e, l))
			return;
	}
	/* If even the window finds no memory, user_failed exceeds ledger + windows: unbalanced. */
	if (epoch_add_window(e, &w, NULL) < 0)
		e->nameless++;
}

int epoch_sample_cells(struct epoch *e, const struct ev_cell *cells, epoch_clock_fn now)
{
	uint64_t begin_ns = now();
	size_t n = (size_t)e->n_cpus * e->n_probes;
	int r;

	for (size_t i = 0; i < n; i++) {
		uint64_t v = load(&cells[i].unattributed);
		struct iot_window w;

		if (v == e->sampled[i])
			continue;
		w = (struct iot_window){
			.t0_ns = e->sample_begin_ns[1],
			.t1_ns =
				now(), /* after the counter was read: it ends after what it counts */
			.n = v - e->sampled[i],
			.cpu = (uint32_t)(i / e->n_probes),
			.probe = (uint16_t)(e->first_probe + i % e->n_probes),
			.kind = IOT_WINDOW_UNATTRIBUTED,
		};
		r = epoch_add_window(e, &w, &e->last_window[i]);
		if (r < 0)
			return r; /* not sampled: the next sample finds the same growth */
		e->sampled[i] = v;
	}
	e->sample_begin_ns[1] = e->sample_begin_ns[0];
	e->sample_begin_ns[0] = begin_ns;
	return 0;
}

int epoch_sample_missed(struct epoch *e, struct epoch_misses *m, const uint64_t *now,
			uint64_t begin_ns, uint64_t end_ns)
{
	int r;

	for (uint32_t p = 0; p < e->n_probes; p++) {
		struct iot_window w = {
			.t0_ns = m->begin_ns,
			.t1_ns = end_ns,
			.cpu = UINT32_MAX,
			.probe = (uint16_t)(e->first_probe + p),
			.kind = IOT_WINDOW_MISSED,
		};

		if (now[p] == IOT_COUNT_UNKNOWN || m->last[p] == IOT_COUNT_UNKNOWN ||
		    now[p] < m->last[p]) {
			e->missed[p] = IOT_COUNT_UNKNOWN;
			m->last[p] = now[p];
			continue;
		}
		if (now[p] == m->last[p])
			continue;
		w.n = now[p] - m->last[p];
		r = epoch_add_window(e, &w, &e->last_missed_window[p]);
		if (r < 0)
			return r;
		if (e->missed[p] != IOT_COUNT_UNKNOWN)
			e->missed[p] += w.n;
		m->last[p] = now[p];
	}
	m->begin_ns = begin_ns;
	return 0;
}

void epoch_sum_cells(const struct ev_cell *cells, size_t n_cells, struct epoch_totals *ret)
{
	*ret = (struct epoch_totals){};
	for (size_t i = 0; i < n_cells; i++) {
		ret->seen += load(&cells[i].seen);
		ret->emitted += load(&cells[i].emitted);
		ret->filed += load(&cells[i].filed);
		ret->unattributed += load(&cells[i].unattributed);
		ret->identity_full += load(&cells[i].identity_full);
	}
}

uint64_t epoch_filed(const struct ev_cell *cells, size_t n_cells)
{
	uint64_t filed = 0;

	for (size_t i = 0; i < n_cells; i++)
		filed += load(&cells[i].filed);
	return filed;
}
