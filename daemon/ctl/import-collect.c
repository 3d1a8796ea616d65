// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-collect.c - events of all files of a trace on their way into one order, and what the trace tells about
 * itself: devices, names of processes, its time, and what is missing.
 */
#include "daemon/ctl/import.h"

void import_done(struct import *im)
{
	for (uint32_t i = 0; i < im->n_devices; i++) {
		free(im->devices[i].sequence);
		free(im->devices[i].last_ns);
	}
	free(im->devices);
	free(im->names);
	free(im->name_slots);
	free(im->windows);
	free(im->cpu_ns);
	bt_sort_free(im->sort);
	*im = (struct import){0};
}

/* What ends comes last, and a name before who bears it: events of one time from two CPUs may come in any order. */
static unsigned int rank(const struct bt_event *e)
{
	switch (IMPORT_ACT(e->action)) {
	case IMPORT_PROCESS:
		return 0;
	case IMPORT_COMPLETE:
		return 2;
	default:
		return 1;
	}
}

int import_order(const struct bt_event *a, const struct bt_event *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (int)rank(a) - (int)rank(b);
}

/* ---- devices ------------------------------------------------------------------------------------ */

int import_device(struct import *im, uint32_t dev, uint32_t *ret)
{
	struct import_device *d;

	/* Asked for several times per event, which mostly is of the device of the one before. */
	for (uint32_t k = 0; k < im->n_devices; k++) {
		uint32_t i = (im->last_device + k) % im->n_devices;

		if (im->devices[i].dev == dev) {
			*ret = im->last_device = i;
			return 0;
		}
	}
	if (im->n_devices == IMPORT_MAX_DEVICES)
		return -E2BIG;
	d = reallocarray(im->devices, im->n_devices + 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	im->devices = d;
	im->devices[im->n_devices] = (struct import_device){.dev = dev};
	*ret = im->n_devices++;
	return 0;
}

void import_device_name(struct import *im, uint32_t dev, const char *name)
{
	uint32_t i;

	if (import_device(im, dev, &i) < 0 || im->devices[i].name[0])
		return;
	snprintf(im->devices[i].name, sizeof(im->devices[i].name), "%s", name);
}

/* ---- names of processes ------------------------------------------------------------------------- */

static uint32_t *name_slot(struct import *im, const struct import_name *name)
{
	uint64_t i = iot_table_hash(name, sizeof(*name), im->seed);

	for (;; i++) {
		uint32_t *slot = &im->name_slots[i & (im->n_name_slots - 1)];

		if (!*slot || memcmp(&im->names[*slot - 1], name, sizeof(*name)) == 0)
			return slot;
	}
}

static int grow_names(struct import *im)
{
	uint32_t n = im->n_name_slots ? im->n_name_slots * 2 : 256;
	struct import_name *names = reallocarray(im->names, n / 2, sizeof(*names));
	uint32_t *slots;

	if (!names)
		return -ENOMEM;
	im->names = names;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(im->name_slots);
	im->name_slots = slots;
	im->n_name_slots = n;
	if (!im->seed)
		im->seed = iot_table_seed();
	for (uint32_t i = 0; i < im->n_names; i++)
		*name_slot(im, &im->names[i]) = i + 1;
	return 0;
}

static int intern(struct import *im, const char *comm, uint32_t tgid, uint32_t *ret)
{
	struct import_name name = {.tgid = tgid};
	uint32_t *slot;

	memcpy(name.comm, comm, strnlen(comm, IOT_COMM_LEN));
	if (im->n_names + 1 > im->n_name_slots / 2) {
		int r = grow_names(im);

		if (r < 0)
			return r;
	}
	slot = name_slot(im, &name);
	if (!*slot) {
		if (im->n_names == IMPORT_MAX_NAMES) {
			im->n_names_dropped++;
			*ret = 0;
			return 0;
		}
		im->names[im->n_names] = name;
		*slot = ++im->n_names;
	}
	*ret = *slot;
	return 0;
}

/* ---- events ------------------------------------------------------------------------------------- */

void import_ignore(struct import *im)
{
	im->n_events++;
	im->n_ignored++;
}

int import_add(struct import *im, const struct import_event *e)
{
	struct bt_event out = {
		/* 0 would be a time that is not known. */
		.time_ns = IOT_MAX(e->time_ns, 1U),
		.sector = e->sector,
		.cpu = e->cpu,
		.action = e->act | (uint32_t)e->op << 8 | (uint32_t)e->flush_bio << 15 |
			  (e->flags & 0xffffU) << 16,
		.pid = e->pid,
		.bytes = e->bytes,
		.error = (uint16_t)e->error,
	};
	int r;

	/* Only to see what a file is. */
	if (!im->sort) {
		im->n_events++;
		return 0;
	}
	r = import_device(im, e->dev, &out.device);
	if (r == 0 && e->comm)
		r = intern(im, e->comm, e->tgid, &out.comm);
	if (r == 0)
		r = bt_sort_add(im->sort, &out);
	if (r < 0)
		return r;
	if (e->act == IMPORT_PROCESS)
		return 0;
	im->first_ns = im->n_events > im->n_ignored ? IOT_MIN(im->first_ns, out.time_ns)
						    : out.time_ns;
	im->last_ns = IOT_MAX(im->last_ns, out.time_ns);
	if (e->cpu != IOT_CPU_NONE)
		im->n_cpus = IOT_MAX(im->n_cpus, e->cpu + 1);
	im->n_events++;
	if (im->open_window) {
		struct iot_window *w = &im->windows[im->open_window - 1];

		/* One from before tells nothing of its end. */
		if (out.time_ns >= w->t0_ns)
			w->t1_ns = out.time_ns;
		im->open_window = 0;
	}
	return 0;
}

/* ---- what is missing ---------------------------------------------------------------------------- */

int import_lost(struct import *im, uint64_t n, uint32_t cpu, uint64_t t0_ns, uint64_t t1_ns)
{
	struct iot_window w = {
		.t0_ns = t0_ns,
		.t1_ns = t1_ns ? t1_ns : UINT64_MAX,
		.n = n,
		.cpu = cpu,
		.probe = IOT_PROBE_BLOCK_COMPLETE,
		.kind = IOT_WINDOW_UNATTRIBUTED,
	};

	if (n == IOT_COUNT_UNKNOWN)
		im->lost_unknown = true;
	else
		im->n_lost = iot_add_sat(im->n_lost, n);
	if (!im->sort)
		return 0;
	if (im->n_windows == IMPORT_MAX_WINDOWS) {
		struct iot_window *last = &im->windows[im->n_windows - 1];

		/* Wider than need be, never narrower. */
		last->t0_ns = IOT_MIN(last->t0_ns, w.t0_ns);
		last->t1_ns = IOT_MAX(last->t1_ns, w.t1_ns);
		last->n = n == IOT_COUNT_UNKNOWN ? n : iot_add_sat(last->n, n);
		last->cpu = UINT32_MAX;
	} else {
		struct iot_window *more =
			reallocarray(im->windows, im->n_windows + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		im->windows = more;
		im->windows[im->n_windows++] = w;
		im->open_window = t1_ns ? im->open_window : im->n_windows;
	}
	return 0;
}

static int need_cpu(struct import_device *d, uint32_t cpu)
{
	uint32_t n = IOT_MAX(cpu + 1, 2 * d->n_cpus);
	uint32_t *sequence;
	uint64_t *last_ns;

	if (cpu < d->n_cpus)
		return 0;
	sequence = reallocarray(d->sequence, n, sizeof(*sequence));
	if (!sequence)
		return -ENOMEM;
	d->sequence = sequence;
	last_ns = reallocarray(d->last_ns, n, sizeof(*last_ns));
	if (!last_ns)
		return -ENOMEM;
	d->last_ns = last_ns;
	memset(sequence + d->n_cpus, 0, (n - d->n_cpus) * sizeof(*sequence));
	memset(last_ns + d->n_cpus, 0, (n - d->n_cpus) * sizeof(*last_ns));
	d->n_cpus = n;
	return 0;
}

int import_sequence(struct import *im, uint32_t dev, uint32_t cpu, uint32_t sequence,
		    uint64_t time_ns)
{
	struct import_device *d;
	uint32_t i, missing;
	int r;

	if (!im->sort || !sequence)
		return 0;
	r = import_device(im, dev, &i);
	if (r < 0)
		return r;
	d = &im->devices[i];
	r = need_cpu(d, cpu);
	if (r < 0)
		return r;
	/* The numbers wrap; a step of more than half of them is one back. */
	missing = sequence - d->sequence[cpu] - 1;
	if (missing >= 1U << 31) {
		im->n_disorder++;
		return 0;
	}
	if (missing)
		r = import_lost(im, missing, cpu, d->last_ns[cpu], IOT_MAX(time_ns, 1U));
	d->sequence[cpu] = sequence;
	d->last_ns[cpu] = time_ns;
	return r;
}
