// SPDX-License-Identifier: BSD-2-Clause
/*
 * status-metrics.c - `status` as numbers: a table of what is shown, in the order in which it is written.
 */
#include "daemon/ctl/status-metrics.h"

struct row {
	const char *family; /* NULL: one more sample of the family before */
	enum metric_type type;
	const char *help;
	const char *object; /* in the stream, or in the status; NULL: in itself */
	const char *key;
	const char *label; /* NULL: none */
	const char *value;
};

#define ONE(family, type, help, object, key)                                      \
	{                                                                         \
		"iotraced_" family, METRIC_##type, help, object, key, NULL, NULL, \
	}
#define MORE(object, key, label, value)                   \
	{                                                 \
		NULL, 0, NULL, object, key, label, value, \
	}

static const struct row stream_rows[] = {
	ONE("seen", COUNTER, "Observations that the probes made.", NULL, "seen"),
	ONE("emitted", COUNTER, "Records that the kernel side sent.", NULL, "emitted"),
	ONE("records", COUNTER, "Records written to segments.", NULL, "records"),
	ONE("written_bytes", COUNTER, "Bytes written to segments.", NULL, "bytes_written"),
	ONE("segments_sealed", COUNTER, "Segments sealed.", NULL, "segments_sealed"),
	ONE("seal_errors", COUNTER, "Segments that could not be sealed.", NULL, "seal_errors"),
	ONE("books_unbalanced", COUNTER, "Sealed epochs whose books do not balance.", NULL,
	    "books_unbalanced"),
	ONE("identity_full", COUNTER, "Observations without room in the in-flight map.", NULL,
	    "identity_full"),
	{"iotraced_lost", METRIC_COUNTER, "Observations that are not in the record, by cause.",
	 "lost", "filed", "cause", "filed"},
	MORE("lost", "unattributed", "cause", "unattributed"),
	MORE("lost", "missed", "cause", "missed"),
	MORE("lost", "decode_failed", "cause", "decode_failed"),
	MORE("lost", "output_failed", "cause", "output_failed"),
	{"iotraced_swap_bytes", METRIC_COUNTER, "Bytes of swap recorded, where it can be told.",
	 "swap", "out_bytes", "direction", "out"},
	MORE("swap", "in_bytes", "direction", "in"),
	{"iotraced_swap_lost_bytes", METRIC_COUNTER, "Bytes of swap in records that were lost.",
	 "swap", "out_lost_bytes", "direction", "out"},
	MORE("swap", "in_lost_bytes", "direction", "in"),
	ONE("epoch", GAUGE, "Accounting period that is being recorded.", NULL, "epoch"),
	ONE("rings", GAUGE, "Rings between kernel and daemon.", "ring", "count"),
	ONE("ring_size_bytes", GAUGE, "Size of one ring.", "ring", "size_bytes"),
	ONE("ring_used_bytes", GAUGE, "Bytes in the rings that are not written yet.", "ring",
	    "used_bytes"),
	ONE("ring_high_bytes", GAUGE, "Most that a ring has held.", "ring", "high_bytes"),
	{"iotraced_kernel_memory_bytes", METRIC_GAUGE, "Kernel memory of maps and rings.",
	 "kernel_memory", "maps_bytes", "kind", "maps"},
	MORE("kernel_memory", "rings_bytes", "kind", "rings"),
	ONE("segment_bytes", GAUGE, "Size of the open segment.", "segment", "bytes"),
	ONE("segment_records", GAUGE, "Records in the open segment.", "segment", "records"),
};

static const struct row store_rows[] = {
	ONE("store_segments", GAUGE, "Sealed segments in the state directory.", "store",
	    "segments"),
	ONE("store_bytes", GAUGE, "Bytes of sealed segments in the state directory.", "store",
	    "bytes"),
	ONE("store_free_bytes", GAUGE, "Free bytes of its file system.", "store", "free_bytes"),
	ONE("store_deleted_segments", COUNTER, "Segments deleted by retention.", "store",
	    "deleted_segments"),
	ONE("store_deleted_bytes", COUNTER, "Bytes deleted by retention.", "store",
	    "deleted_bytes"),
	ONE("store_unshipped_segments", GAUGE, "Sealed segments that are not archived yet.",
	    "store", "unshipped_segments"),
	ONE("store_deleted_unshipped_segments", COUNTER,
	    "Segments deleted before they were archived.", "store", "deleted_unshipped"),
};

static void put_row(struct metrics *m, const struct row *row, const char *stream,
		    struct json_object *o)
{
	struct metric_label labels[] = {{stream ? "stream" : NULL, stream},
					{row->label, row->value}};
	uint64_t v;

	if (live_u64(row->object ? live_object(o, row->object) : o, row->key, &v))
		metrics_u64(m, labels, IOT_ARRAY_SIZE(labels), v);
}

static const char *stream_name(struct json_object *s)
{
	const char *name = live_str(s, "name");

	return name ? name : "unknown";
}

static void put_streams(struct metrics *m, struct json_object *streams)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(stream_rows); i++) {
		const struct row *row = &stream_rows[i];

		if (row->family)
			metrics_family(m, row->family, row->type, row->help);
		for (size_t k = 0; k < live_n(streams); k++) {
			struct json_object *s = json_object_array_get_idx(streams, k);

			put_row(m, row, stream_name(s), s);
		}
	}
}

/* Nanoseconds of the status as seconds. */
static void put_seconds(struct metrics *m, const char *stream, struct json_object *o,
			const char *key)
{
	struct metric_label label = {stream ? "stream" : NULL, stream};
	uint64_t ns;

	if (live_u64(o, key, &ns))
		metrics_double(m, &label, 1, (double)ns / 1e9);
}

static void put_verdicts(struct metrics *m, struct json_object *streams)
{
	static const char *const verdicts[] = {"complete", "lost", "unknown"};

	metrics_family(m, "iotraced_verdict", METRIC_GAUGE,
		       "1: the verdict on the running capture.");
	for (size_t k = 0; k < live_n(streams); k++) {
		struct json_object *s = json_object_array_get_idx(streams, k);

		metrics_states(m, stream_name(s), "verdict", verdicts, IOT_ARRAY_SIZE(verdicts),
			       live_str(s, "verdict"));
	}
	metrics_family(m, "iotraced_stalled", METRIC_GAUGE,
		       "1: the stream's worker makes no progress.");
	for (size_t k = 0; k < live_n(streams); k++) {
		struct json_object *s = json_object_array_get_idx(streams, k), *stalled;
		struct metric_label label = {"stream", stream_name(s)};

		stalled = live_object(s, "stalled");
		if (json_object_is_type(stalled, json_type_boolean))
			metrics_u64(m, &label, 1, (uint64_t)json_object_get_boolean(stalled));
	}
	metrics_family(m, "iotraced_stream_error", METRIC_GAUGE,
		       "1: the stream's last write or seal failed.");
	for (size_t k = 0; k < live_n(streams); k++) {
		struct json_object *s = json_object_array_get_idx(streams, k);
		struct metric_label label = {"stream", stream_name(s)};

		metrics_u64(m, &label, 1, live_str(s, "last_error") != NULL);
	}
	metrics_family(m, "iotraced_segment_age_seconds", METRIC_GAUGE,
		       "How long the open segment has been open.");
	for (size_t k = 0; k < live_n(streams); k++) {
		struct json_object *s = json_object_array_get_idx(streams, k);

		put_seconds(m, stream_name(s), live_object(s, "segment"), "age_ns");
	}
}

static void put_daemon(struct metrics *m, struct json_object *status)
{
	static const char *const states[] = {"collecting", "degraded", "stopping"};
	struct metric_label build[] = {{"version", live_str(status, "version")},
				       {"kernel", live_str(status, "kernel")}};

	metrics_family(m, "iotraced_build_info", METRIC_GAUGE, "The daemon and its kernel.");
	metrics_u64(m, build, IOT_ARRAY_SIZE(build), 1);
	metrics_family(m, "iotraced_uptime_seconds", METRIC_GAUGE, "Since the daemon started.");
	put_seconds(m, NULL, status, "uptime_ns");
	metrics_family(m, "iotraced_state", METRIC_GAUGE, "1: what the daemon does.");
	metrics_states(m, NULL, "state", states, IOT_ARRAY_SIZE(states), live_str(status, "state"));
	metrics_family(m, "iotraced_restart_needed", METRIC_GAUGE,
		       "1: configuration was changed that needs a restart.");
	metrics_u64(m, NULL, 0, live_str(live_object(status, "config"), "restart_needed") != NULL);
	metrics_family(m, "iotraced_store_error", METRIC_GAUGE,
		       "1: the state directory could not be looked at or cleaned.");
	metrics_u64(m, NULL, 0, live_str(live_object(status, "store"), "last_error") != NULL);
}

void status_metrics(struct metrics *m, struct json_object *status)
{
	struct json_object *streams = live_object(status, "streams");

	metrics_family(m, "iotraced_up", METRIC_GAUGE, "1: the daemon answers.");
	metrics_u64(m, NULL, 0, status != NULL);
	if (status) {
		put_daemon(m, status);
		put_verdicts(m, streams);
		put_streams(m, streams);
		for (size_t i = 0; i < IOT_ARRAY_SIZE(store_rows); i++) {
			metrics_family(m, store_rows[i].family, store_rows[i].type,
				       store_rows[i].help);
			put_row(m, &store_rows[i], NULL, status);
		}
	}
	metrics_end(m);
}
