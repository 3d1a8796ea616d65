// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-write.c - requests of an imported trace into sealed segments of one capture.
 *
 * They are segments like all others but for what they cannot say: no counter but `written` is known, the one probe may
 * have missed anything, and the header says whose trace it is (FORMAT.md 10.6). What the source tells of as lost is
 * unattributed, with a window: whose it was nobody knows.
 */
#include <fcntl.h>

#include "daemon/ctl/import.h"

#define PROBE_NAME "block_rq_complete"

struct import_writer {
	struct import *im;
	int dirfd;
	uint64_t max_bytes;
	struct iot_segment_info info;
	struct iot_probe probe;
	struct iot_writer *out; /* the segment being written */
	char name[96];
	struct iot_batch *batch;
	struct iot_written written;
	struct import_pair *pair;
	uint64_t n_segments;
	uint64_t n_open;
	uint64_t prev_hash;
	uint64_t epoch_first_ns;
	uint64_t now_ns; /* of the event being looked at */
	size_t next_window;
};

/* ---- what the header says ----------------------------------------------------------------------- */

static void describe_source(const struct import *im, char *buf, size_t size)
{
	char missing[96] = "";

	if (im->n_lost || im->lost_unknown)
		snprintf(missing, sizeof(missing), ", %s%llu more are missing in it",
			 im->lost_unknown ? "at least " : "", (unsigned long long)im->n_lost);
	snprintf(buf, size, "%s: %llu events of %llu file%s (%llu passed over)%s%s",
		 import_format_name(im->format), (unsigned long long)im->n_events,
		 (unsigned long long)im->n_files, im->n_files == 1 ? "" : "s",
		 (unsigned long long)im->n_ignored, missing, im->dated ? "" : IOT_SOURCE_UNDATED);
}

/* What a trace has no events of may not have been traced: it speaks for the devices that it has. */
static int describe_devices(struct import_writer *w)
{
	const struct import *im = w->im;
	size_t n = 0;

	for (uint32_t i = 0; i < im->n_devices; i++) {
		const struct import_device *d = &im->devices[i];
		int r = d->name[0] ? iot_names_add(&w->info.devices, d->dev, d->name) : 0;

		if (r < 0)
			return r;
		if (n < sizeof(w->info.selection))
			n += (size_t)snprintf(w->info.selection + n, sizeof(w->info.selection) - n,
					      "%s%u:%u", i ? "," : "include ",
					      IOT_DEV_MAJOR(d->dev), IOT_DEV_MINOR(d->dev));
	}
	return 0;
}

static int cmp_window(const void *a, const void *b)
{
	const struct iot_window *x = a, *y = b;

	return iot_cmp_u64(x->t1_ns, y->t1_ns);
}

int import_writer_new(struct import *im, int dirfd, const uint8_t capture_id[16],
		      uint64_t max_bytes, struct import_writer **ret)
{
	_cleanup_(import_writer_freep) struct import_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->im = im;
	w->dirfd = dirfd;
	w->max_bytes = max_bytes;
	w->epoch_first_ns = w->now_ns = im->first_ns;
	memcpy(w->info.capture_id, capture_id, 16);
	/* Which machine's it is, and of which boot, is not told: of nobody else's. */
	memcpy(w->info.machine_id, capture_id, 16);
	memcpy(w->info.boot_id, capture_id, 16);
	describe_source(im, w->info.source, sizeof(w->info.source));
	w->info.stream = IOT_STREAM_BLOCK;
	w->info.swap_out = w->info.swap_in = IOT_ABILITY_UNAVAILABLE;
	w->info.n_rings = 1;
	w->info.n_cpus = im->n_cpus;
	w->info.attach_ns = im->first_ns;
	w->probe = (struct iot_probe){.id = IOT_PROBE_BLOCK_COMPLETE,
				      .state = IOT_ATTACH_ATTACHED,
				      .miss = IOT_MISS_NOT_MEASURABLE,
				      .from_ns = im->first_ns};
	snprintf(w->probe.name, sizeof(w->probe.name), PROBE_NAME);
	snprintf(w->probe.hook, sizeof(w->probe.hook), "import");
	snprintf(w->probe.detail, sizeof(w->probe.detail), "observed by %s",
		 import_format_name(im->format));
	w->info.probes = &w->probe;
	w->info.n_probes = 1;
	r = describe_devices(w);
	if (r == 0)
		r = iot_batch_new(IOT_BLOCK_RECORDS, &w->batch);
	if (r < 0)
		return r;
	for (size_t i = 0; i < im->n_windows; i++) {
		im->windows[i].t0_ns = IOT_MAX(im->windows[i].t0_ns, im->first_ns);
		im->windows[i].t1_ns =
			IOT_MAX(IOT_MIN(im->windows[i].t1_ns, im->last_ns), im->windows[i].t0_ns);
	}
	if (im->n_windows)
		qsort(im->windows, im->n_windows, sizeof(*im->windows), cmp_window);
	*ret = IOT_TAKE_PTR(w);
	return 0;
}

struct import_writer *import_writer_free(struct import_writer *w)
{
	if (!w)
		return NULL;
	iot_writer_close(w->out);
	iot_batch_free(w->batch);
	iot_written_done(&w->written);
	import_pair_free(w->pair);
	iot_names_done(&w->info.devices);
	free(w);
	return NULL;
}

/* ---- segments ----------------------------------------------------------------------------------- */

static struct iot_clocks clocks_at(const struct import_writer *w, uint64_t ns)
{
	return (struct iot_clocks){.monotonic_ns = ns,
				   .realtime_ns = ns + w->im->realtime_offset_ns};
}

static int open_segment(struct import_writer *w)
{
	char id[CTL_HUMAN_MAX];

	if (w->out)
		return 0;
	w->n_segments++;
	w->info.seq = w->info.epoch = w->n_segments;
	w->info.prev_footer_hash = w->prev_hash;
	w->info.clocks = clocks_at(w, w->epoch_first_ns);
	snprintf(w->name, sizeof(w->name), "%s-%s-%010llu.iot", iot_stream_name(IOT_STREAM_BLOCK),
		 ctl_hex_id(w->info.capture_id, id), (unsigned long long)w->n_segments);
	return iot_writer_open(w->dirfd, w->name, &w->info, &w->out);
}

/* Windows that end in this segment; they lie in order of their ends. */
static void take_windows(struct import_writer *w, bool last, struct iot_footer *f,
			 uint64_t *ret_lost)
{
	const struct import *im = w->im;
	size_t from = w->next_window;

	*ret_lost = 0;
	while (w->next_window < im->n_windows &&
	       (last || im->windows[w->next_window].t1_ns <= f->epoch_last_ns)) {
		uint64_t n = im->windows[w->next_window++].n;

		*ret_lost = n == IOT_COUNT_UNKNOWN ? *ret_lost : iot_add_sat(*ret_lost, n);
	}
	f->windows = im->windows ? im->windows + from : NULL;
	f->n_windows = w->next_window - from;
}

/* What pairing could not be certain of; in the last footer. */
static void describe_doubts(const struct import_writer *w, char *buf, size_t size)
{
	const struct import_counts *c = import_pair_counts(w->pair);
	const struct {
		uint64_t n;
		const char *what;
	} doubts[] = {
		{c->only_end, "of which only the end was seen"},
		{c->parts, "ends of a part of one"},
		{c->ambiguous, "ended where others were in flight"},
		{c->merges_unmatched, "merged into one not seen"},
		{c->set_aside, "set aside without an end"},
		{w->im->n_disorder, "events out of order"},
		{w->im->n_names_dropped + c->names_dropped,
		 "names of processes for which there was no room"},
	};
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < IOT_ARRAY_SIZE(doubts) && n < size; i++)
		if (doubts[i].n)
			n += (size_t)snprintf(buf + n, size - n, "%s%llu %s", n ? ", " : "",
					      (unsigned long long)doubts[i].n, doubts[i].what);
}

static int seal_with(struct import_writer *w, bool last, struct iot_footer *f)
{
	uint64_t lost;
	int r;

	f->reason = last ? IOT_SEAL_SHUTDOWN : IOT_SEAL_SIZE;
	f->prev_footer_hash = w->prev_hash;
	f->epoch_first_ns = w->epoch_first_ns;
	f->epoch_last_ns = last ? IOT_MAX(w->now_ns, w->im->last_ns) : w->now_ns;
	f->clocks = clocks_at(w, f->epoch_last_ns);
	f->probes = &w->probe;
	f->n_probes = 1;
	f->devices = w->info.devices;
	take_windows(w, last, f, &lost);
	if (last)
		describe_doubts(w, f->note, sizeof(f->note));
	r = iot_written_books(&w->written, &w->probe, 1, &f->books, &f->n_books);
	if (r == 0 && lost) /* whose it was nobody knows, nor on which CPU */
		f->books[f->n_books - 1].unattributed = lost;
	if (r == 0)
		r = import_pair_open(w->pair, &f->open, &f->n_open);
	if (r == 0)
		r = iot_writer_seal(w->out, f);
	if (r == 0 && fdatasync(iot_writer_fd(w->out)) < 0)
		r = -errno;
	if (r < 0)
		return r;
	w->prev_hash = iot_writer_footer_hash(w->out);
	w->n_open = f->n_open;
	w->epoch_first_ns = f->epoch_last_ns;
	return 0;
}

static int put_batch(struct import_writer *w)
{
	int r = open_segment(w);

	if (r == 0)
		r = iot_writer_put(w->out, w->batch, NULL, 0);
	if (r == 0)
		iot_batch_clear(w->batch);
	return r;
}

static int seal(struct import_writer *w, bool last)
{
	struct iot_footer f = {0}; /* probes, devices and windows are borrowed */
	int r = put_batch(w);

	if (r == 0)
		r = seal_with(w, last, &f);
	free(f.books);
	free(f.open);
	if (r < 0)
		return r;
	w->out = iot_writer_close(w->out);
	iot_written_done(&w->written);
	w->written = (struct iot_written){0};
	return 0;
}

/* ---- requests ----------------------------------------------------------------------------------- */

static int request_done(void *arg, const struct iot_request *r)
{
	struct import_writer *w = arg;
	int rc = iot_batch_add(w->batch, r);

	if (rc == IOT_BATCH_FULL) {
		rc = put_batch(w);
		if (rc == 0 && iot_writer_bytes(w->out) >= w->max_bytes)
			rc = seal(w, false);
		if (rc == 0)
			rc = iot_batch_add(w->batch, r);
	}
	/* A batch that was emptied takes any. */
	if (rc > 0)
		return -EINVAL;
	return rc < 0 ? rc
		      : iot_written_add(&w->written, IOT_PROBE_BLOCK_COMPLETE, r->complete_cpu);
}

static int crowded(void *arg)
{
	return seal(arg, false);
}

int import_writer_run(struct import_writer *w, struct import_counts *ret_counts,
		      struct iot_error *err)
{
	const struct import_output out = {request_done, crowded, w};
	struct bt_event e;
	int r;

	r = import_pair_new(w->im, &out, &w->pair);
	if (r == 0)
		r = bt_sort_finish(w->im->sort);
	while (r == 0 && (r = bt_sort_next(w->im->sort, &e)) == 0) {
		if (IMPORT_ACT(e.action) != IMPORT_PROCESS)
			w->now_ns = IOT_MAX(w->now_ns, e.time_ns);
		r = import_pair_add(w->pair, &e);
	}
	if (r == BT_SORT_END)
		r = seal(w, true);
	if (r == 0 && fsync(w->dirfd) < 0)
		r = -errno;
	if (r < 0)
		return iot_error_set(err, r, "cannot write the segments: %s", strerror(-r));
	*ret_counts = *import_pair_counts(w->pair);
	return 0;
}

uint64_t import_writer_segments(const struct import_writer *w)
{
	return w->n_segments;
}

uint64_t import_writer_n_open(const struct import_writer *w)
{
	return w->n_open;
}
