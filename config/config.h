/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h - the configuration as a plain struct. Keys = fields = man page entries.
 *
 * Sources, later ones win key by key: built-in defaults, the main file, conf.d/<name>.yaml in
 * byte order. Every key may be absent. Unknown or duplicate keys and bad values are errors with
 * file:line:column and a suggestion; a configuration is taken whole or not at all.
 */
#pragma once

#include "format/base.h"

#define IOT_CONFIG_FILE "/etc/iotraced/iotraced.yaml"
#define IOT_CONFIG_DIR "/etc/iotraced/conf.d"
#define IOT_STATE_DIR "/var/lib/iotraced"
#define IOT_SOCKET "/run/iotraced/control.sock"

enum iot_sync_policy {
	IOT_SYNC_SEAL = 0,  /* fdatasync when a segment is sealed */
	IOT_SYNC_BLOCK = 1, /* after every block as well */
	IOT_SYNC_NEVER = 2, /* leave it to the kernel; the file system still orders the rename */
};

enum iot_swap_policy {
	IOT_KEEP_SWAP = 0,
	IOT_DROP_SWAP = 1, /* requests tagged as swap are counted as not selected */
};

struct iot_strv {
	char **items;
	size_t n;
};

struct iot_stream_config {
	bool enabled;
	uint64_t ring_size_bytes;    /* per ring; power of two, multiple of the page size */
	uint32_t ring_cpus;	     /* CPUs per ring */
	uint64_t ledger_entries;     /* per epoch slot */
	uint64_t in_flight_entries;  /* 0 = computed from the devices' queue depths */
	uint64_t block_records;	     /* a block is closed at this many records */
	uint64_t block_age_ns;	     /* or at this age */
	uint64_t segment_size_bytes; /* a segment is sealed at this size */
	uint64_t segment_age_ns;     /* or at this age */
	enum iot_sync_policy sync;
	enum iot_swap_policy swap;
};

/* Whether packets are observed in the stack's functions, beside its tracepoints. */
enum iot_packet_functions {
	IOT_FUNCTIONS_OFF = 0,
	IOT_FUNCTIONS_FENTRY = 1, /* where the kernel takes fentry programs */
	IOT_FUNCTIONS_KPROBE = 2, /* and by kprobes where it does not */
};

/* What of the packet stream is recorded, beside the sizes that all streams have. */
struct iot_packet_config {
	char *filter;	      /* pcap-filter(7); "" = every packet */
	uint64_t sample;      /* one flow in this many; 1 = all */
	uint64_t drops_per_s; /* always-on events per CPU and reason */
	bool gro;
	bool qdisc;
	enum iot_packet_functions functions;
	bool programs; /* TC and XDP programs that others have loaded */
	bool self_test; /* of identity, by traffic of our own, where births and ends can be observed */
};

struct iot_device_filter {
	struct iot_strv include; /* names or globs ("nvme*", "8:16"); empty = all */
	struct iot_strv exclude;
};

struct iot_retention {
	uint64_t max_bytes;	 /* of sealed segments, all streams; 0 = no limit */
	uint64_t max_age_ns;	 /* 0 = no limit */
	uint64_t min_free_bytes; /* free space to leave for others in state_dir; 0 = none */
	char *shipped; /* the archiver's note, format/shipped.h; no such file: nobody archives */
};

struct iot_config {
	struct iot_stream_config block;
	struct iot_stream_config packet; /* in_flight_entries: sk_buffs known at once */
	struct iot_packet_config packets;
	struct iot_device_filter devices;
	struct iot_retention retention;
	char *state_dir;
	char *socket;
	char *socket_group; /* "" = leave */
	char *log_level;    /* "error", "warning", "info", "debug" */
	char *source;	    /* files it was read from, for `iotracectl config`; "" = defaults */
	char **origin;	    /* who set each key last, by place in the key table; NULL = default */
};

/* path NULL = IOT_CONFIG_FILE if it exists, plus IOT_CONFIG_DIR. A given path must exist; its
 * conf.d is the directory "conf.d" beside it, if there is one. -EINVAL with err on bad input. */
int iot_config_load(const char *path, struct iot_config **ret,
		    struct iot_error *err) IOT_MUST_CHECK;
int iot_config_defaults(struct iot_config **ret) IOT_MUST_CHECK;
struct iot_config *iot_config_free(struct iot_config *c);

/* Sets one key from text, as the command line does: key "state_dir", origin "--state-dir" (for the
 * dump). Lists cannot be set this way. A relative path is taken from the working directory. */
int iot_config_set(struct iot_config *c, const char *key, const char *text, const char *origin,
		   struct iot_error *err) IOT_MUST_CHECK;

/* "file:line" or option that set the key, NULL = nobody, it has its default. Borrowed. */
const char *iot_config_origin(const struct iot_config *c, const char *key);

/* The effective configuration as YAML, every key with its value and source comment. Caller frees. */
int iot_config_dump(const struct iot_config *c, char **ret) IOT_MUST_CHECK;

/* Keys that differ between running and wanted and need a new start, comma separated, cut at size;
 * "" = none. Returns how many. */
int iot_config_restart_keys(const struct iot_config *running, const struct iot_config *wanted,
			    char *buf, size_t size) IOT_MUST_CHECK;

static inline void iot_config_freep(struct iot_config **c)
{
	*c = iot_config_free(*c);
}
