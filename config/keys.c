// SPDX-License-Identifier: BSD-2-Clause
/*
 * keys.c - the table of keys, and finding a row in it by a right or a nearly right name.
 *
 * Why the numbers are what they are stands in config/iotraced.yaml, where the person who changes
 * them reads it. Ranges are wide on purpose: they stop what cannot work (the kernel's own limits,
 * a reader's limits), not what somebody may want to try; tests force losses with the minima.
 */
#include "config/keys.h"

#define FIELD(member) offsetof(struct iot_config, member)

#define KiB (UINT64_C(1) << 10)
#define MiB (UINT64_C(1) << 20)
#define GiB (UINT64_C(1) << 30)
#define TiB (UINT64_C(1) << 40)
#define MSEC UINT64_C(1000000)
#define SEC (1000 * MSEC)
#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)

/* Places = values of enum iot_sync_policy, iot_swap_policy and iot_packet_functions. */
static const char *const sync_policies[] = {"seal", "block", "never", NULL};
static const char *const swap_policies[] = {"keep", "drop", NULL};
static const char *const packet_functions[] = {"off", "fentry", "kprobe", NULL};
static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};

/* clang-format off */
const struct config_key config_keys[] = {
	{ .path = "state_dir", .type = CONFIG_PATH, .flags = CONFIG_RESTART, .offset = FIELD(state_dir),
	  .max = 3072, .def = IOT_STATE_DIR,
	  .doc = "directory of the segments" },
	{ .path = "socket", .type = CONFIG_PATH, .flags = CONFIG_RESTART, .offset = FIELD(socket),
	  .max = 106, /* sun_path is 108: a NUL, and the "~" of the name it is made under */
	  .def = IOT_SOCKET,
	  .doc = "control socket" },
	{ .path = "socket_group", .type = CONFIG_GROUP, .flags = CONFIG_RESTART,
	  .offset = FIELD(socket_group), .max = 32, .def = "",
	  .doc = "group that owns the control socket; empty: leave it" },
	{ .path = "log_level", .type = CONFIG_CHOICE, .offset = FIELD(log_level),
	  .def = "info", .choices = log_levels,
	  .doc = "least important messages to log" },

	{ .path = "streams", .type = CONFIG_SECTION, .doc = "what is recorded, and how" },
	{ .path = "streams.block", .type = CONFIG_SECTION, .doc = "requests of the block layer" },
	{ .path = "streams.block.enabled", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(block.enabled), .max = 1, .def = "true",
	  .doc = "record the block stream" },
	/* The kernel takes power-of-two, page-aligned u32 sizes. */
	{ .path = "streams.block.ring_size", .type = CONFIG_SIZE,
	  .flags = CONFIG_RESTART | CONFIG_POWER_OF_TWO | CONFIG_PAGES,
	  .offset = FIELD(block.ring_size_bytes), .min = 4 * KiB, .max = 1 * GiB, .def = "16MiB",
	  .doc = "size of each ring between kernel and daemon" },
	{ .path = "streams.block.ring_cpus", .type = CONFIG_U32, .flags = CONFIG_RESTART,
	  .offset = FIELD(block.ring_cpus), .min = 1, .max = 8192, .def = "4",
	  .doc = "CPUs that share one ring" },
	{ .path = "streams.block.ledger_entries", .type = CONFIG_U64, .flags = CONFIG_RESTART,
	  .offset = FIELD(block.ledger_entries), .min = 1, .max = 16 * MiB, .def = "65536",
	  .doc = "lost observations that can be filed by owner, per epoch" },
	{ .path = "streams.block.in_flight_entries", .type = CONFIG_U64,
	  .flags = CONFIG_RESTART | CONFIG_ZERO_OFF,
	  .offset = FIELD(block.in_flight_entries), .min = 1, .max = 16 * MiB, .def = "0",
	  .doc = "requests that can be in flight at once; 0: from the devices' queue depths" },
	/* 65536 is the most that readers take (format/batch.h). */
	{ .path = "streams.block.block_records", .type = CONFIG_U64,
	  .offset = FIELD(block.block_records), .min = 1, .max = 65536, .def = "8192",
	  .doc = "records after which a block is written" },
	{ .path = "streams.block.block_age", .type = CONFIG_DURATION,
	  .offset = FIELD(block.block_age_ns), .min = 10 * MSEC, .max = HOUR, .def = "1s",
	  .doc = "age after which a block is written" },
	{ .path = "streams.block.segment_size", .type = CONFIG_SIZE,
	  .offset = FIELD(block.segment_size_bytes), .min = 4 * KiB, .max = TiB, .def = "64MiB",
	  .doc = "size after which a segment is sealed" },
	{ .path = "streams.block.segment_age", .type = CONFIG_DURATION,
	  .offset = FIELD(block.segment_age_ns), .min = 100 * MSEC, .max = 30 * DAY, .def = "15m",
	  .doc = "age after which a segment is sealed" },
	{ .path = "streams.block.sync", .type = CONFIG_ENUM,
	  .offset = FIELD(block.sync), .def = "seal", .choices = sync_policies,
	  .doc = "when to wait for the disk" },
	{ .path = "streams.block.swap", .type = CONFIG_ENUM,
	  .offset = FIELD(block.swap), .def = "keep", .choices = swap_policies,
	  .doc = "whether swap is recorded" },
	{ .path = "streams.packet", .type = CONFIG_SECTION, .doc = "the path of network packets" },
	{ .path = "streams.packet.enabled", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(packet.enabled), .max = 1, .def = "false",
	  .doc = "record the packet stream" },
	{ .path = "streams.packet.filter", .type = CONFIG_TEXT, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.filter), .max = 1024, .def = "",
	  .doc = "pcap-filter(7) expression; empty: every packet" },
	{ .path = "streams.packet.sample", .type = CONFIG_U64, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.sample), .min = 1, .max = 1000000, .def = "1",
	  .doc = "record one flow in this many" },
	{ .path = "streams.packet.drops_per_second", .type = CONFIG_U64, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.drops_per_s), .min = 1, .max = 1000000, .def = "100",
	  .doc = "drops outside the selection to record, per CPU and reason" },
	{ .path = "streams.packet.gro", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.gro), .max = 1, .def = "false",
	  .doc = "observe receive offload, too" },
	{ .path = "streams.packet.qdisc", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.qdisc), .max = 1, .def = "false",
	  .doc = "observe queueing disciplines, too" },
	{ .path = "streams.packet.functions", .type = CONFIG_ENUM, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.functions), .def = "off", .choices = packet_functions,
	  .doc = "observe functions of the stack, too" },
	{ .path = "streams.packet.programs", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.programs), .max = 1, .def = "false",
	  .doc = "observe TC and XDP programs, too (needs CAP_SYS_ADMIN)" },
	{ .path = "streams.packet.self_test", .type = CONFIG_BOOL, .flags = CONFIG_RESTART,
	  .offset = FIELD(packets.self_test), .max = 1, .def = "true",
	  .doc = "show by traffic at start that ids are exact; without it they are not" },
	/* The kernel takes power-of-two, page-aligned u32 sizes. */
	{ .path = "streams.packet.ring_size", .type = CONFIG_SIZE,
	  .flags = CONFIG_RESTART | CONFIG_POWER_OF_TWO | CONFIG_PAGES,
	  .offset = FIELD(packet.ring_size_bytes), .min = 4 * KiB, .max = 1 * GiB, .def = "32MiB",
	  .doc = "size of each ring between kernel and daemon" },
	{ .path = "streams.packet.ring_cpus", .type = CONFIG_U32, .flags = CONFIG_RESTART,
	  .offset = FIELD(packet.ring_cpus), .min = 1, .max = 8192, .def = "4",
	  .doc = "CPUs that share one ring" },
	{ .path = "streams.packet.ledger_entries", .type = CONFIG_U64, .flags = CONFIG_RESTART,
	  .offset = FIELD(packet.ledger_entries), .min = 1, .max = 16 * MiB, .def = "65536",
	  .doc = "packets (times probes) whose losses can be filed, per epoch" },
	{ .path = "streams.packet.in_flight_entries", .type = CONFIG_U64,
	  .flags = CONFIG_RESTART | CONFIG_ZERO_OFF,
	  .offset = FIELD(packet.in_flight_entries), .min = 1, .max = 16 * MiB, .def = "0",
	  .doc = "packet buffers that can be known at once; 0: 131072" },
	/* 65536 is the most that readers take (format/batch.h). */
	{ .path = "streams.packet.block_records", .type = CONFIG_U64,
	  .offset = FIELD(packet.block_records), .min = 1, .max = 65536, .def = "8192",
	  .doc = "records after which a block is written" },
	{ .path = "streams.packet.block_age", .type = CONFIG_DURATION,
	  .offset = FIELD(packet.block_age_ns), .min = 10 * MSEC, .max = HOUR, .def = "1s",
	  .doc = "age after which a block is written" },
	{ .path = "streams.packet.segment_size", .type = CONFIG_SIZE,
	  .offset = FIELD(packet.segment_size_bytes), .min = 4 * KiB, .max = TiB, .def = "64MiB",
	  .doc = "size after which a segment is sealed" },
	{ .path = "streams.packet.segment_age", .type = CONFIG_DURATION,
	  .offset = FIELD(packet.segment_age_ns), .min = 100 * MSEC, .max = 30 * DAY, .def = "15m",
	  .doc = "age after which a segment is sealed" },
	{ .path = "streams.packet.sync", .type = CONFIG_ENUM,
	  .offset = FIELD(packet.sync), .def = "seal", .choices = sync_policies,
	  .doc = "when to wait for the disk" },

	{ .path = "devices", .type = CONFIG_SECTION, .doc = "which block devices are recorded" },
	{ .path = "devices.include", .type = CONFIG_DEVICES, .offset = FIELD(devices.include),
	  .def = "[]", .doc = "names, globs or major:minor; empty: all" },
	{ .path = "devices.exclude", .type = CONFIG_DEVICES, .offset = FIELD(devices.exclude),
	  .def = "[]", .doc = "names, globs or major:minor; wins over include" },

	{ .path = "retention", .type = CONFIG_SECTION, .doc = "when the oldest segments are deleted" },
	{ .path = "retention.max_size", .type = CONFIG_SIZE, .flags = CONFIG_ZERO_OFF,
	  .offset = FIELD(retention.max_bytes), .min = 4 * KiB, .max = 1024 * 1024 * TiB, .def = "2GiB",
	  .doc = "most bytes of sealed segments; 0: no limit" },
	{ .path = "retention.max_age", .type = CONFIG_DURATION, .flags = CONFIG_ZERO_OFF,
	  .offset = FIELD(retention.max_age_ns), .min = SEC, .max = 36500 * DAY, .def = "0",
	  .doc = "longest a sealed segment is kept; 0: no limit" },
	{ .path = "retention.min_free", .type = CONFIG_SIZE, .flags = CONFIG_ZERO_OFF,
	  .offset = FIELD(retention.min_free_bytes), .min = 4 * KiB, .max = 1024 * 1024 * TiB,
	  .def = "256MiB",
	  .doc = "free space to leave on the file system of state_dir; 0: none" },
	{ .path = "retention.shipped", .type = CONFIG_PATH, .offset = FIELD(retention.shipped),
	  .max = 4000, .def = "/var/lib/iotraced-archive/shipped",
	  .doc = "where it is noted which segments are archived; these are deleted first" },
};
/* clang-format on */
const size_t config_n_keys = IOT_ARRAY_SIZE(config_keys);

const struct config_key *config_key_find(const char *path)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (strcmp(config_keys[i].path, path) == 0)
			return &config_keys[i];
	return NULL;
}

const char *config_key_leaf(const struct config_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

unsigned int config_key_depth(const struct config_key *key)
{
	unsigned int n = 0;

	for (const char *p = key->path; *p; p++)
		n += *p == '.';
	return n;
}

void *config_key_field(const struct config_key *key, struct iot_config *c)
{
	return (char *)c + key->offset;
}

const void *config_key_field_const(const struct config_key *key, const struct iot_config *c)
{
	return (const char *)c + key->offset;
}

#define SUGGEST_MAX 63U

/* Edits (insert, delete, change) between two names. Case does not count; longer names are cut. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[SUGGEST_MAX + 1];
	size_t n_a = strnlen(a, SUGGEST_MAX), n_b = strnlen(b, SUGGEST_MAX);

	for (size_t j = 0; j <= n_b; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= n_a; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= n_b; j++) {
			char x = a[i - 1], y = b[j - 1];
			unsigned int change;

			if (x >= 'A' && x <= 'Z')
				x = (char)(x - 'A' + 'a');
			if (x == '-')
				x = '_';
			change = diagonal + (x != y);
			diagonal = row[j];
			row[j] = IOT_MIN(change, IOT_MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[n_b];
}

const struct config_key *config_key_suggest(const char *path)
{
	const char *leaf = strrchr(path, '.');
	const struct config_key *best = NULL;
	unsigned int best_score = 0;

	leaf = leaf ? leaf + 1 : path;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		size_t parent = (size_t)(config_key_leaf(key) - key->path);
		bool same_parent = strncmp(path, key->path, parent) == 0 &&
				   parent == (size_t)(leaf - path);
		unsigned int whole = distance(path, key->path);
		/* The right name in the wrong section is a likely mistake too, but a less likely one. */
		unsigned int part = distance(leaf, config_key_leaf(key)) + (same_parent ? 0 : 1);
		unsigned int score = IOT_MIN(whole, part);
		unsigned int limit = 1 + (unsigned int)strlen(config_key_leaf(key)) / 4;

		if (score > limit || (best && score >= best_score))
			continue;
		best = key;
		best_score = score;
	}
	return best;
}
