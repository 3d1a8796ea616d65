/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export.h - formats of other tools. A new format that is lines is one file with a header line and
 * a render function (export-csv.c) and one row in verb-export.c; one that is not has a function
 * that writes the whole file (export-fio.c) or a directory (export-blktrace.c). Help and errors list
 * the rows by themselves.
 *
 * Every export says what is missing: a sidecar <output>.loss.json appears with (in fact just
 * before) the output; on stdout the verdict goes to stderr.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

/*
 * One request, at most IOT_RENDER_MAX bytes, newline included; 0: the format has no word for it, which the
 * sidecar says. r->part is the device the request was
 * addressed to, and what CSV and JSON call dev; r->dev is its disk, the same number for the whole disk.
 * ctx->part and ctx->disk are their names, NULL where the segment has none.
 */
typedef size_t export_line_fn(char *buf, const struct iot_request *r, const struct iot_render *ctx);

extern const char export_csv_header[];
export_line_fn export_csv_line;
export_line_fn export_jsonl_line;
export_line_fn export_clickhouse_row; /* of RowBinary, so there are no lines */

/* The same for one observation of a packet. */
typedef size_t export_packet_line_fn(char *buf, const struct iot_packet *p,
				     const struct iot_render_packet *ctx);

extern const char export_packet_csv_header[];
export_packet_line_fn export_packet_csv_line;
export_packet_line_fn export_packet_jsonl_line;

/* The names of all formats, "csv, jsonl or blktrace", in buf. */
#define EXPORT_FORMAT_LIST_MAX 256
const char *export_format_list(char *buf, size_t size);

/* What was written, for the sidecar. */
struct export_stats {
	uint64_t requests;
	uint64_t observations;	     /* of packets */
	uint64_t queue_time_unknown; /* blktrace: no Q could be made */
	uint64_t requeue_time_estimated;
	uint64_t left_out; /* requests that the format has no word for; not in requests */
};

/* ---- export-clock.c: one time line for several captures ---- */

struct export_capture {
	uint8_t id[16];
	uint64_t offset_ns; /* wall clock - monotonic, the same for the whole capture */
};

struct export_clock {
	struct export_capture *captures;
	size_t n;
};

/* What to add to the times of s to get a wall clock's. -ENOMEM. */
int export_clock_offset(struct export_clock *c, const struct iot_segment *s,
			uint64_t *ret) IOT_MUST_CHECK;
void export_clock_done(struct export_clock *c);

/*
 * Writes a whole file of requests. note: the verdict on the record. Negative errno with err; out has its
 * own.
 */
typedef int export_requests_fn(const struct ctl *c, struct iot_scan *scan, const char *note,
			       struct ctl_out *out, struct export_stats *stats,
			       struct iot_error *err);
export_requests_fn export_fio IOT_MUST_CHECK;
export_requests_fn export_oracle IOT_MUST_CHECK;
export_requests_fn export_perfetto IOT_MUST_CHECK;
export_requests_fn export_openmetrics IOT_MUST_CHECK;
export_requests_fn export_prometheus IOT_MUST_CHECK;

/*
 * Writes files into the new directory dir: per-CPU files of every device (note: one line for the trace
 * itself, the verdict), or anonymized segments. Negative errno with err.
 */
typedef int export_directory_fn(struct iot_scan *scan, const char *dir, const char *note,
				struct export_stats *ret, struct iot_error *err);
export_directory_fn export_blktrace IOT_MUST_CHECK;
export_directory_fn export_segments IOT_MUST_CHECK;

/*
 * Writes observations of packets that pass the filters. whole: the same segments without filters, for
 * verdicts on packets; note: the verdict on the record. Negative errno with err; out has its own.
 */
typedef int export_packets_fn(const struct ctl *c, struct iot_scan *whole, const char *note,
			      struct ctl_out *out, struct export_stats *stats,
			      struct iot_error *err);
export_packets_fn export_pcapng IOT_MUST_CHECK;

/* ---- blktrace-events.c: pure ---- */

/* An event on its way into a per-CPU file, or out of one; 48 bytes, so that a sort moves little. */
struct bt_event {
	uint64_t time_ns;
	uint64_t sector;
	uint32_t device; /* index in the exporter's table */
	uint32_t cpu;
	uint32_t action;
	uint32_t pid;
	uint32_t bytes;
	uint32_t order; /* among events of one time */
	uint32_t comm;	/* import: number of the name; 0 = not told */
	uint16_t error;
};
#define BT_MAX_CPUS 8192U /* what EV_ID allows; anything above comes from a damaged record */
#define BT_MAX_EVENTS 7U

/* Q G I D R D C as far as their times are known. order is left alone. Returns their number. */
size_t bt_translate(const struct iot_request *r, uint32_t device, uint64_t offset_ns,
		    struct bt_event out[BT_MAX_EVENTS]);
/* The upper half of blktrace's action: BLK_TC_* of an operation and its flags. */
uint32_t bt_category(unsigned int op, uint32_t flags);

/* ---- blktrace-sort.c: any number of events in any order, in bounded memory ---- */

#define BT_SORT_EVENTS ((size_t)512 * 1024) /* 24 MiB */
struct bt_sort;
/* Below 0: a comes first. Where it gives 0, what was added first does. */
typedef int (*bt_order_fn)(const struct bt_event *a, const struct bt_event *b);
int bt_order_files(const struct bt_event *a, const struct bt_event *b); /* device, cpu, time */
/* Spills into unlinked files below dirfd. max_events: held in memory at once. */
int bt_sort_new(int dirfd, size_t max_events, bt_order_fn order,
		struct bt_sort **ret) IOT_MUST_CHECK;
struct bt_sort *bt_sort_free(struct bt_sort *s);
int bt_sort_add(struct bt_sort *s, const struct bt_event *e) IOT_MUST_CHECK;
/* After the last add, before the first next. */
int bt_sort_finish(struct bt_sort *s) IOT_MUST_CHECK;
/* Positive 1 at the end. */
#define BT_SORT_END 1
int bt_sort_next(struct bt_sort *s, struct bt_event *ret) IOT_MUST_CHECK;

static inline void bt_sort_freep(struct bt_sort **s)
{
	*s = bt_sort_free(*s);
}
