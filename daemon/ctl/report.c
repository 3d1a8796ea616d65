// SPDX-License-Identifier: BSD-2-Clause
/*
 * report.c - the arithmetic of `iotracectl report`, see report.h.
 *
 * A device is (machine, number, name): the same number is another disk on another host, or under
 * another name after a reboot.
 */
#include "daemon/ctl/report.h"
#include "format/render.h"

#define OTHERS "(others)"

/* ---- histograms -------------------------------------------------------------------------------- */

/* The middle of a step, as far as it lies between the extremes. */
static uint64_t step_value(const struct hist *h, unsigned int octave, unsigned int step)
{
	uint64_t low = octave ? (uint64_t)(HIST_STEPS + step) << (octave - 1) : step;
	uint64_t v = low + (octave > 1 ? 1ULL << (octave - 2) : 0);

	return IOT_MAX(h->min, IOT_MIN(v, h->max));
}

int hist_need_octave(struct hist *h, unsigned int octave)
{
	if (!h->octave[octave])
		h->octave[octave] = calloc(HIST_STEPS, sizeof(**h->octave));
	return h->octave[octave] ? 0 : -ENOMEM;
}

int hist_merge(struct hist *into, const struct hist *from)
{
	int r;

	if (!from->n)
		return 0;
	for (unsigned int i = 0; i < HIST_OCTAVES; i++) {
		if (!from->octave[i])
			continue;
		r = hist_need_octave(into, i);
		if (r < 0)
			return r;
		for (unsigned int k = 0; k < HIST_STEPS; k++)
			into->octave[i][k] += from->octave[i][k];
	}
	into->min = into->n ? IOT_MIN(into->min, from->min) : from->min;
	into->max = IOT_MAX(into->max, from->max);
	into->sum += from->sum;
	into->n += from->n;
	return 0;
}

uint64_t hist_percentile(const struct hist *h, unsigned int p)
{
	/* ceil(n * p / 10000) without overflow */
	uint64_t rank = h->n / 10000 * p + (h->n % 10000 * p + 9999) / 10000;
	uint64_t seen = 0;

	if (rank >= h->n)
		return h->max;
	rank = IOT_MAX(rank, 1U);
	for (unsigned int i = 0; i < HIST_OCTAVES; i++)
		for (unsigned int k = 0; h->octave[i] && k < HIST_STEPS; k++) {
			seen += h->octave[i][k];
			if (seen >= rank)
				return step_value(h, i, k);
		}
	return h->max;
}

uint64_t hist_log2_count(const struct hist *h, unsigned int bit)
{
	unsigned int octave = bit < HIST_STEP_BITS ? 0 : bit - HIST_STEP_BITS + 1;
	unsigned int from = 0, to = HIST_STEPS;
	uint64_t n = 0;

	if (!h->octave[octave])
		return 0;
	if (octave == 0) {
		from = bit ? 1U << bit : 0;
		to = 2U << bit;
	}
	for (unsigned int k = from; k < to; k++)
		n += h->octave[octave][k];
	return n;
}

void hist_done(struct hist *h)
{
	for (unsigned int i = 0; i < HIST_OCTAVES; i++)
		free(h->octave[i]);
	*h = (struct hist){0};
}

/* ---- cells ------------------------------------------------------------------------------------- */

void report_cell_done(struct report_cell *cell)
{
	hist_done(&cell->queue);
	hist_done(&cell->device);
}

int report_cell_merge(struct report_cell *into, const struct report_cell *from)
{
	int r;

	into->requests += from->requests;
	into->bytes += from->bytes;
	into->bytes_done += from->bytes_done;
	into->merges += from->merges;
	into->requeues += from->requeues;
	into->errors += from->errors;
	into->lost += from->lost;
	into->lost_bytes += from->lost_bytes;
	r = hist_merge(&into->queue, &from->queue);
	if (r < 0)
		return r;
	return hist_merge(&into->device, &from->device);
}

int report_cell(struct report_device *d, unsigned int op, unsigned int swap,
		struct report_cell **ret)
{
	if (op >= IOT_N_OPS)
		op = IOT_OP_OTHER;
	if (!d->ops[op])
		d->ops[op] = calloc(1, sizeof(**d->ops));
	if (!d->ops[op])
		return -ENOMEM;
	*ret = &d->ops[op]->swap[swap < REPORT_N_SWAP ? swap : REPORT_NOT_SWAP];
	return 0;
}

int report_add(struct report_device *d, const struct iot_request *req)
{
	struct report_cell *cell, *plain;
	uint64_t ns;
	int r;

	r = report_cell(d, req->op, req->swap, &cell);
	if (r < 0)
		return r;
	cell->requests++;
	cell->bytes += req->bytes;
	cell->bytes_done += req->bytes_done;
	if (req->unswapped_bytes && req->swap != IOT_SWAP_NONE) {
		uint64_t bytes =
			req->bytes - iot_swapped(req->swap, req->bytes, req->unswapped_bytes);
		uint64_t done = req->bytes_done -
				iot_swapped(req->swap, req->bytes_done, req->unswapped_bytes);

		cell->bytes -= bytes;
		cell->bytes_done -= done;
		r = report_cell(d, req->op, REPORT_NOT_SWAP, &plain);
		if (r < 0)
			return r;
		plain->bytes += bytes;
		plain->bytes_done += done;
	}
	cell->merges += req->merges;
	cell->requeues += req->requeues;
	cell->errors += req->error || req->status;
	if (iot_queue_latency(req, &ns)) {
		r = hist_add(&cell->queue, ns);
		if (r < 0)
			return r;
	}
	if (iot_device_latency(req, &ns)) {
		r = hist_add(&cell->device, ns);
		if (r < 0)
			return r;
	}
	return 0;
}

int report_add_loss(struct report_device *d, const struct iot_loss *loss)
{
	struct report_cell *cell, *plain;
	int r;

	r = report_cell(d, loss->op, loss->swap, &cell);
	if (r < 0)
		return r;
	cell->lost += loss->n;
	cell->lost_bytes += loss->bytes;
	if (loss->unswapped_bytes && loss->swap != IOT_SWAP_NONE) {
		uint64_t bytes =
			loss->bytes - iot_swapped(loss->swap, loss->bytes, loss->unswapped_bytes);

		cell->lost_bytes -= bytes;
		r = report_cell(d, loss->op, REPORT_NOT_SWAP, &plain);
		if (r < 0)
			return r;
		plain->lost_bytes += bytes;
	}
	return 0;
}

/* ---- devices ----------------------------------------------------------------------------------- */

void report_done(struct report *rp)
{
	for (size_t i = 0; i < rp->n_devices; i++)
		for (unsigned int op = 0; op < IOT_N_OPS; op++) {
			struct report_op *o = rp->devices[i].ops[op];

			for (unsigned int k = 0; o && k < REPORT_N_SWAP; k++)
				report_cell_done(&o->swap[k]);
			free(o);
		}
	free(rp->devices);
	*rp = (struct report){0};
}

static struct report_device *find_device(const struct report *rp, const uint8_t machine_id[16],
					 uint32_t dev, const char *name, const char *host)
{
	for (size_t i = 0; i < rp->n_devices; i++) {
		struct report_device *d = &rp->devices[i];

		if (d->dev == dev && memcmp(d->machine_id, machine_id, 16) == 0 &&
		    strncmp(d->name, name, sizeof(d->name) - 1) == 0 &&
		    strncmp(d->host, host, sizeof(d->host) - 1) == 0)
			return d;
	}
	return NULL;
}

const struct report_device *report_find_device(const struct report *rp,
					       const uint8_t machine_id[16], uint32_t dev,
					       const char *name, const char *host)
{
	static const uint8_t none[16];
	const struct report_device *d = find_device(rp, machine_id, dev, name, host);

	return d ? d : find_device(rp, none, 0, OTHERS, "");
}

int report_device(struct report *rp, const uint8_t machine_id[16], uint32_t dev, const char *name,
		  const char *host, struct report_device **ret)
{
	struct report_device *d;

	/* A file made to exhaust memory names millions of devices; a host has thousands. */
	if (rp->n_devices >= REPORT_MAX_DEVICES - 1) {
		static const uint8_t none[16];

		machine_id = none;
		dev = 0;
		name = OTHERS;
		host = "";
	}
	d = find_device(rp, machine_id, dev, name, host);
	if (d) {
		*ret = d;
		return 0;
	}
	if (rp->n_devices == rp->n_allocated) {
		size_t want = rp->n_allocated ? rp->n_allocated * 2 : 16;

		d = reallocarray(rp->devices, want, sizeof(*d));
		if (!d)
			return -ENOMEM;
		rp->devices = d;
		rp->n_allocated = want;
	}
	d = &rp->devices[rp->n_devices++];
	*d = (struct report_device){.dev = dev};
	memcpy(d->machine_id, machine_id, 16);
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->host, sizeof(d->host), "%s", host);
	*ret = d;
	return 0;
}

static int compare_devices(const void *a, const void *b)
{
	const struct report_device *x = a, *y = b;
	int r;

	r = strcmp(x->host, y->host);
	if (r == 0)
		r = strverscmp(x->name, y->name);
	if (r == 0)
		r = iot_cmp_u64(x->dev, y->dev);
	if (r == 0)
		r = memcmp(x->machine_id, y->machine_id, 16);
	return r;
}

void report_sort(struct report *rp)
{
	if (rp->n_devices)
		qsort(rp->devices, rp->n_devices, sizeof(*rp->devices), compare_devices);
}

/* ---- recorded time ----------------------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
	const struct report_span *x = a, *y = b;

	return iot_cmp_u64(x->first_ns, y->first_ns);
}

uint64_t report_recorded_ns(struct report_span *spans, size_t n, const uint8_t machine_id[16],
			    const char *host)
{
	uint64_t total = 0, covered_to = 0;

	if (n)
		qsort(spans, n, sizeof(*spans), compare_spans);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = IOT_MAX(spans[i].first_ns, covered_to);

		if (!spans[i].requests || spans[i].last_ns <= from ||
		    memcmp(spans[i].machine_id, machine_id, 16) != 0 ||
		    strcmp(spans[i].host, host) != 0)
			continue;
		total += spans[i].last_ns - from;
		covered_to = spans[i].last_ns;
	}
	return total;
}
