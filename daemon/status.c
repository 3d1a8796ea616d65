// SPDX-License-Identifier: BSD-2-Clause
/*
 * status.c - see status.h.
 *
 * Objects are put together with a sticky failure: each put_*() may run out of memory and notes it
 * in the builder; the end checks once. So no field can be left out silently.
 */
#include "daemon/status.h"
#include "format/render.h"

struct builder {
	bool failed;
};

static struct json_object *new_object(struct builder *b)
{
	struct json_object *o = json_object_new_object();

	b->failed |= !o;
	return o;
}

/* Takes v; NULL = out of memory. */
static void put(struct builder *b, struct json_object *o, const char *key, struct json_object *v)
{
	if (!o || !v || json_object_object_add(o, key, v) < 0) {
		b->failed = true;
		json_object_put(v);
	}
}

static void put_null(struct builder *b, struct json_object *o, const char *key)
{
	if (!o || json_object_object_add(o, key, NULL) < 0)
		b->failed = true;
}

static void put_str(struct builder *b, struct json_object *o, const char *key, const char *v)
{
	if (v)
		put(b, o, key, json_object_new_string(v));
	else
		put_null(b, o, key);
}

/* A count or a number of bytes; IOT_COUNT_UNKNOWN = null. */
static void put_count(struct builder *b, struct json_object *o, const char *key, uint64_t v)
{
	if (v == IOT_COUNT_UNKNOWN)
		put_null(b, o, key);
	else
		put(b, o, key, json_object_new_uint64(v));
}

/* An id or a time: a string. */
static void put_u64(struct builder *b, struct json_object *o, const char *key, uint64_t v)
{
	put(b, o, key, control_u64(v));
}

static void put_bool(struct builder *b, struct json_object *o, const char *key, bool v)
{
	put(b, o, key, json_object_new_boolean(v));
}

static int build_done(const struct builder *b, struct json_object *o, struct json_object **ret)
{
	if (b->failed) {
		json_object_put(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

/* Text of a negative errno, or null. */
static void put_errno(struct builder *b, struct json_object *o, const char *key, int error)
{
	put_str(b, o, key, error < 0 ? strerror(-error) : NULL);
}

const char *status_ability_name(unsigned int ability)
{
	switch (ability) {
	case IOT_ABILITY_EXACT:
		return "exact";
	case IOT_ABILITY_PAGE:
		return "page";
	case IOT_ABILITY_PARTITION:
		return "partition";
	default:
		return "unavailable";
	}
}

/* ---- Status ----------------------------------------------------------------------------------- */

static bool stream_degraded(const struct status_stream *s)
{
	return s->stalled || s->worker.last_error < 0 || s->worker.books_unbalanced > 0 ||
	       s->worker.seal_errors > 0 || s->worker.unlinked_seq > 0;
}

enum status_state status_state(const struct status_input *in)
{
	if (in->stopping)
		return STATUS_STOPPING;
	if (in->store_error < 0)
		return STATUS_DEGRADED;
	for (size_t i = 0; i < in->n_streams; i++) {
		if (stream_degraded(&in->streams[i]))
			return STATUS_DEGRADED;
	}
	return STATUS_COLLECTING;
}

static const char *state_name(enum status_state s)
{
	switch (s) {
	case STATUS_COLLECTING:
		return "collecting";
	case STATUS_STOPPING:
		return "stopping";
	default:
		return "degraded";
	}
}

static struct json_object *render_segment(struct builder *b, const struct worker_status *w,
					  uint64_t now_ns)
{
	struct json_object *o = new_object(b);

	put_str(b, o, "name", w->segment_name);
	put_count(b, o, "seq", w->segment_seq);
	put_count(b, o, "bytes", w->segment_bytes);
	put_count(b, o, "records", w->segment_records);
	put_u64(b, o, "age_ns", now_ns > w->segment_open_ns ? now_ns - w->segment_open_ns : 0);
	put_bool(b, o, "unlinked", w->unlinked_seq > 0);
	return o;
}

static struct json_object *render_lost(struct builder *b, const struct worker_status *w)
{
	struct json_object *o = new_object(b);

	put_count(b, o, "filed", w->lost_filed);
	put_count(b, o, "unattributed", w->lost_unattributed);
	put_count(b, o, "missed", w->missed);
	put_count(b, o, "decode_failed", w->decode_failed);
	put_count(b, o, "output_failed", w->output_failed);
	return o;
}

static struct json_object *render_ring(struct builder *b, const struct status_stream *s)
{
	struct json_object *o = new_object(b);

	put_count(b, o, "count", s->n_rings);
	put_count(b, o, "size_bytes", s->ring_size_bytes);
	put_count(b, o, "used_bytes", s->worker.ring_used_bytes);
	put_count(b, o, "high_bytes", s->worker.ring_high_bytes);
	return o;
}

static struct json_object *render_memory(struct builder *b, const struct status_stream *s)
{
	struct json_object *o = new_object(b);

	put_count(b, o, "maps_bytes", s->memory_known ? s->memory.maps_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "rings_bytes", s->memory_known ? s->memory.rings_bytes : IOT_COUNT_UNKNOWN);
	return o;
}

static struct json_object *render_swap(struct builder *b, const struct status_stream *s)
{
	struct json_object *o = new_object(b);

	/* Without the ability a byte count would be a 0 that nobody measured. */
	put_str(b, o, "out", status_ability_name(s->swap_out));
	put_str(b, o, "in", status_ability_name(s->swap_in));
	put_count(b, o, "out_bytes", s->swap_out ? s->worker.swap_out_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "in_bytes", s->swap_in ? s->worker.swap_in_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "out_lost_bytes",
		  s->swap_out ? s->worker.swap_out_lost_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "in_lost_bytes",
		  s->swap_in ? s->worker.swap_in_lost_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "out_bytes_per_s", s->swap_out ? s->swap_out_per_s : IOT_COUNT_UNKNOWN);
	put_count(b, o, "in_bytes_per_s", s->swap_in ? s->swap_in_per_s : IOT_COUNT_UNKNOWN);
	put_bool(b, o, "dropped", s->swap_dropped);
	return o;
}

static struct json_object *render_area(struct builder *b, const struct swaps_area *a)
{
	struct json_object *o = new_object(b);
	char number[32], path[2 * sizeof(a->path)];

	snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR(a->dev), IOT_DEV_MINOR(a->dev));
	*iot_put_utf8(path, a->path, strlen(a->path)) = '\0';
	put_str(b, o, "path", path);
	put_str(b, o, "type", a->file ? "file" : "partition");
	put_str(b, o, "dev", a->dev ? number : NULL);
	put_str(b, o, "disk", a->disk[0] ? a->disk : NULL);
	put_count(b, o, "size_bytes", a->size_bytes);
	put_count(b, o, "used_bytes", a->used_bytes);
	put(b, o, "priority", json_object_new_int(a->priority));
	put_str(b, o, "coverage", swaps_coverage_name(a->coverage));
	put_str(b, o, "why", a->why[0] ? a->why : NULL);
	return o;
}

static void put_areas(struct builder *b, struct json_object *o, const char *key,
		      const struct swaps *areas)
{
	struct json_object *list;

	if (!areas) {
		put_null(b, o, key);
		return;
	}
	list = json_object_new_array();
	for (size_t i = 0; list && i < areas->n; i++) {
		struct json_object *area = render_area(b, &areas->items[i]);

		if (json_object_array_add(list, area) < 0) {
			b->failed = true;
			json_object_put(area);
		}
	}
	put(b, o, key, list);
}

int status_render_swap(uint8_t swap_out, uint8_t swap_in, const struct swaps *areas,
		       struct json_object **ret)
{
	struct builder b = {0};
	struct json_object *o = new_object(&b);

	put_str(&b, o, "out", status_ability_name(swap_out));
	put_str(&b, o, "in", status_ability_name(swap_in));
	put_areas(&b, o, "areas", areas);
	return build_done(&b, o, ret);
}

static struct json_object *render_stream(struct builder *b, const struct status_stream *s,
					 uint64_t now_ns)
{
	const struct worker_status *w = &s->worker;
	struct json_object *o = new_object(b);

	put_str(b, o, "name", s->name);
	put_str(b, o, "verdict", w->verdict);
	if (s->identity)
		put_str(b, o, "identity", s->identity);
	else
		put_null(b, o, "identity");
	put_count(b, o, "epoch", w->epoch);
	put(b, o, "segment", render_segment(b, w, now_ns));
	put_count(b, o, "records", w->records);
	put_count(b, o, "bytes_written", w->bytes_written);
	put_count(b, o, "segments_sealed", w->segments_sealed);
	put_count(b, o, "seal_errors", w->seal_errors);
	put_count(b, o, "events_per_s", s->events_per_s);
	put_count(b, o, "seen", w->seen);
	put_count(b, o, "emitted", w->emitted);
	put(b, o, "lost", render_lost(b, w));
	put_count(b, o, "identity_full", w->identity_full);
	put_count(b, o, "books_unbalanced", w->books_unbalanced);
	put_bool(b, o, "stalled", s->stalled);
	put(b, o, "ring", render_ring(b, s));
	put(b, o, "kernel_memory", render_memory(b, s));
	put(b, o, "swap", render_swap(b, s));
	if (w->last_record_ns)
		put_u64(b, o, "last_record_ns", w->last_record_ns);
	else
		put_null(b, o, "last_record_ns");
	put_errno(b, o, "last_error", w->last_error);
	return o;
}

static struct json_object *render_store(struct builder *b, const struct status_input *in)
{
	const struct store_usage *u = &in->usage;
	struct json_object *o = new_object(b);
	const bool known = in->usage_known;

	put_str(b, o, "path", in->store_path);
	put_bool(b, o, "elsewhere", in->store_elsewhere);
	put_count(b, o, "segments", known ? u->segments : IOT_COUNT_UNKNOWN);
	put_count(b, o, "bytes", known ? u->bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "free_bytes", known ? u->free_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "deleted_segments", known ? u->deleted_segments : IOT_COUNT_UNKNOWN);
	put_count(b, o, "deleted_bytes", known ? u->deleted_bytes : IOT_COUNT_UNKNOWN);
	put_count(b, o, "unshipped_segments",
		  known && u->archived ? u->unshipped_segments : IOT_COUNT_UNKNOWN);
	put_count(b, o, "deleted_unshipped",
		  known && u->archived ? u->deleted_unshipped : IOT_COUNT_UNKNOWN);
	put_errno(b, o, "last_error", in->store_error);
	return o;
}

static struct json_object *render_config(struct builder *b, const struct status_input *in)
{
	struct json_object *o = new_object(b);

	put_str(b, o, "source", in->config_source && *in->config_source ? in->config_source : NULL);
	put_str(b, o, "restart_needed",
		in->restart_keys && *in->restart_keys ? in->restart_keys : NULL);
	put_str(b, o, "unmatched_devices",
		in->unmatched_devices && *in->unmatched_devices ? in->unmatched_devices : NULL);
	return o;
}

int status_render(const struct status_input *in, struct json_object **ret)
{
	struct builder b = {0};
	struct json_object *o = new_object(&b);
	struct json_object *streams = json_object_new_array();

	put_str(&b, o, "version", IOTRACED_VERSION);
	put(&b, o, "pid", json_object_new_int(in->pid));
	if (in->start_ns)
		put_u64(&b, o, "uptime_ns", in->now_ns - in->start_ns);
	else
		put_null(&b, o, "uptime_ns");
	put_str(&b, o, "state", state_name(status_state(in)));
	put_str(&b, o, "host", in->host);
	put_str(&b, o, "kernel", in->kernel);
	put_str(&b, o, "capture_id", in->capture_id);
	put_str(&b, o, "boot_id", in->boot_id);
	for (size_t i = 0; streams && i < in->n_streams; i++) {
		struct json_object *s = render_stream(&b, &in->streams[i], in->now_ns);

		if (json_object_array_add(streams, s) < 0) {
			b.failed = true;
			json_object_put(s);
		}
	}
	put(&b, o, "streams", streams);
	put_areas(&b, o, "swap_areas", in->swaps);
	put(&b, o, "store", render_store(&b, in));
	put(&b, o, "config", render_config(&b, in));
	return build_done(&b, o, ret);
}

/* ---- Probes ----------------------------------------------------------------------------------- */

/* Several programs may serve one probe: their runs add up; one unknown miss makes the sum unknown. */
static bool sum_stats(const struct probes_run_stats *stats, size_t n, uint16_t probe,
		      struct probes_run_stats *ret)
{
	bool found = false;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < n; i++) {
		if (stats[i].probe != probe)
			continue;
		found = true;
		ret->run_count += stats[i].run_count;
		ret->run_time_ns += stats[i].run_time_ns;
		if (stats[i].missed == IOT_COUNT_UNKNOWN || ret->missed == IOT_COUNT_UNKNOWN)
			ret->missed = IOT_COUNT_UNKNOWN;
		else
			ret->missed += stats[i].missed;
	}
	return found;
}

static struct json_object *render_probe(struct builder *b, const char *stream,
					const struct iot_probe *p, const struct probes_run_stats *s,
					bool runs_known)
{
	struct json_object *o = new_object(b);
	const bool attached = p->state == IOT_ATTACH_ATTACHED;

	put(b, o, "id", json_object_new_int(p->id));
	put_str(b, o, "stream", stream);
	put_str(b, o, "name", p->name);
	put_str(b, o, "hook", p->hook[0] ? p->hook : NULL);
	put_str(b, o, "state", iot_attach_name(p->state));
	if (p->detail[0])
		put_str(b, o, "why", p->detail);
	else
		put_errno(b, o, "why", p->error);
	put_str(b, o, "miss_counting", attached ? iot_miss_name(p->miss) : NULL);
	if (p->program)
		put_u64(b, o, "program", p->program);
	else
		put_null(b, o, "program");
	put(b, o, "gone", json_object_new_boolean(p->gone));
	put_count(b, o, "missed", s && attached ? s->missed : IOT_COUNT_UNKNOWN);
	if (s && runs_known) {
		put_count(b, o, "runs", s->run_count);
		put_u64(b, o, "run_time_ns", s->run_time_ns);
		put_count(b, o, "ns_per_run",
			  s->run_count ? s->run_time_ns / s->run_count : IOT_COUNT_UNKNOWN);
	} else {
		put_null(b, o, "runs");
		put_null(b, o, "run_time_ns");
		put_null(b, o, "ns_per_run");
	}
	return o;
}

int status_render_probes(const char *stream, const struct iot_probe *table, size_t n,
			 const struct probes_run_stats *stats, size_t n_stats, bool stats_known,
			 struct json_object *list)
{
	struct builder b = {0};

	/* Statistics can also be on for somebody's BPF_ENABLE_STATS, which no sysctl shows. */
	for (size_t i = 0; i < n_stats; i++)
		stats_known |= stats[i].run_count > 0;
	for (size_t i = 0; i < n; i++) {
		struct probes_run_stats sum;
		bool found = sum_stats(stats, n_stats, table[i].id, &sum);
		struct json_object *o =
			render_probe(&b, stream, &table[i], found ? &sum : NULL, stats_known);

		if (json_object_array_add(list, o) < 0) {
			json_object_put(o);
			return -ENOMEM;
		}
	}
	return b.failed ? -ENOMEM : 0;
}
