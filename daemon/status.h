/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - what the daemon shows of itself, as JSON: the bodies of Status, InFlight and Probes.
 *
 * Pure: plain structs in, a json-c object out. The field names are a contract (iotracectl, scripts,
 * exporters): they are added, never renamed. Counts and bytes are numbers; ids and nanoseconds are
 * strings; what is not known is null.
 */
#pragma once

#include "daemon/control-proto.h"
#include "daemon/decode-block.h"
#include "daemon/probes.h"
#include "daemon/store.h"
#include "daemon/swaps.h"
#include "daemon/worker.h"

enum status_state {
	STATUS_COLLECTING = 1,
	STATUS_STOPPING = 2,
	STATUS_DEGRADED = 3, /* collecting, but something is wrong; the problems say what */
};

struct status_stream {
	const char *name;
	struct worker_status worker;
	uint64_t events_per_s;
	bool stalled; /* the worker makes no progress */
	unsigned int n_rings;
	uint64_t ring_size_bytes; /* of each */
	bool memory_known;
	struct probes_memory memory;
	uint8_t swap_out; /* enum iot_swap_ability */
	uint8_t swap_in;
	bool swap_dropped; /* streams.block.swap: drop */
	const char *
		identity; /* packet: "exact", or why an id may be several packets; NULL: no packets */
	uint64_t swap_out_per_s; /* bytes of records, lately */
	uint64_t swap_in_per_s;
};

struct status_input {
	uint64_t now_ns;
	uint64_t start_ns; /* the gate opened; 0 = not yet */
	bool stopping;
	int pid;
	char host[65];
	char kernel[65];
	char capture_id[33];
	char boot_id[33];
	const struct status_stream *streams;
	size_t n_streams;
	const char *store_path;
	bool store_elsewhere; /* the path leads to another directory now */
	bool usage_known;
	struct store_usage usage;
	int store_error; /* of the last retention, 0 = none */
	const char *config_source;
	const struct swaps *swaps;     /* the active areas; NULL = not known */
	const char *unmatched_devices; /* patterns that no disk matches; "" = none */
	const char *restart_keys;      /* changed keys that wait for a new start; "" = none */
};

enum status_state status_state(const struct status_input *in);
int status_render(const struct status_input *in, struct json_object **ret) IOT_MUST_CHECK;

/* At most this many requests are listed, the oldest; `total` counts all. */
#define STATUS_IN_FLIGHT_MAX 4096
/* Parameters {"requests": [...], "total": n}. Sorts events. */
int status_render_in_flight(struct decode_block *d, struct ev_block *events, size_t n,
			    uint64_t now_ns, uint8_t swap_out, uint8_t swap_in,
			    struct json_object **ret) IOT_MUST_CHECK;

/* One stream's probes, appended to list. stats_known: the kernel counts runs and their time. */
int status_render_probes(const char *stream, const struct iot_probe *table, size_t n,
			 const struct probes_run_stats *stats, size_t n_stats, bool stats_known,
			 struct json_object *list) IOT_MUST_CHECK;

/* What of swap is told: abilities of this kernel, and the active areas; NULL = not known. */
int status_render_swap(uint8_t swap_out, uint8_t swap_in, const struct swaps *areas,
		       struct json_object **ret) IOT_MUST_CHECK;

const char *status_ability_name(unsigned int ability);
