// SPDX-License-Identifier: BSD-2-Clause
/*
 * record.c - names of the enums of record.h, name tables, and the destructors of what they hold.
 *
 * The names are part of the command-line contract (JSON values, --op=...): they are never changed,
 * only added. A value without a name gives "unknown": a newer writer's file is still readable.
 */
#include "format/record.h"

#include "format/writer.h"

static const char *name_of(const char *const *names, size_t n, unsigned int value)
{
	return value < n && names[value] ? names[value] : "unknown";
}

static const char *const op_names[IOT_N_OPS] = {
	[IOT_OP_OTHER] = "other",
	[IOT_OP_READ] = "read",
	[IOT_OP_WRITE] = "write",
	[IOT_OP_FLUSH] = "flush",
	[IOT_OP_DISCARD] = "discard",
	[IOT_OP_SECURE_ERASE] = "secure_erase",
	[IOT_OP_WRITE_ZEROES] = "write_zeroes",
	[IOT_OP_ZONE_APPEND] = "zone_append",
	[IOT_OP_ZONE_OPEN] = "zone_open",
	[IOT_OP_ZONE_CLOSE] = "zone_close",
	[IOT_OP_ZONE_FINISH] = "zone_finish",
	[IOT_OP_ZONE_RESET] = "zone_reset",
	[IOT_OP_ZONE_RESET_ALL] = "zone_reset_all",
	[IOT_OP_DRV_IN] = "drv_in",
	[IOT_OP_DRV_OUT] = "drv_out",
};

const char *iot_op_name(unsigned int op)
{
	return name_of(op_names, IOT_ARRAY_SIZE(op_names), op);
}

int iot_op_from_name(const char *name)
{
	for (int i = 0; i < IOT_N_OPS; i++) {
		if (strcmp(op_names[i], name) == 0)
			return i;
	}
	return -EINVAL;
}

const char *iot_flag_name(unsigned int bit)
{
	static const char *const names[32] = {
		[0] = "sync",	      [1] = "meta",	  [2] = "prio",	     [3] = "ahead",
		[4] = "fua",	      [5] = "preflush",	  [6] = "nomerge",   [7] = "idle",
		[8] = "integrity",    [9] = "background", [10] = "polled",   [11] = "atomic",
		[12] = "swap",	      [13] = "nowait",	  [14] = "nounmap",  [15] = "failfast",
		[16] = "cgroup-punt", [24] = "flush-seq", [25] = "no-start", [26] = "no-stat",
		[27] = "partial",
	};

	return bit < IOT_ARRAY_SIZE(names) ? names[bit] : NULL;
}

static const char *const origin_names[IOT_N_ORIGINS] = {
	[IOT_ORIGIN_UNKNOWN] = "unknown",   [IOT_ORIGIN_FILE] = "file",
	[IOT_ORIGIN_METADATA] = "metadata", [IOT_ORIGIN_SWAP] = "swap",
	[IOT_ORIGIN_DIRECT] = "direct",	    [IOT_ORIGIN_PRIVATE] = "private",
	[IOT_ORIGIN_NONE] = "none",	    [IOT_ORIGIN_PASSTHROUGH] = "passthrough",
};

const char *iot_origin_name(unsigned int origin)
{
	return name_of(origin_names, IOT_ARRAY_SIZE(origin_names), origin);
}

int iot_origin_from_name(const char *name)
{
	for (int i = 0; i < IOT_N_ORIGINS; i++) {
		if (strcmp(origin_names[i], name) == 0)
			return i;
	}
	return -EINVAL;
}

const char *iot_file_by_name(unsigned int file_by)
{
	static const char *const names[] = {
		[IOT_FILE_BY_NONE] = "none",
		[IOT_FILE_BY_PAGE] = "page",
		[IOT_FILE_BY_SUBMITTER] = "submitter",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), file_by);
}

const char *iot_cgroup_by_name(unsigned int cgroup_by)
{
	static const char *const names[] = {
		[IOT_CGROUP_BY_NONE] = "none",
		[IOT_CGROUP_BY_BLKG] = "blkg",
		[IOT_CGROUP_BY_PAGE] = "page",
		[IOT_CGROUP_BY_SUBMITTER] = "submitter",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), cgroup_by);
}

const char *iot_reclaim_name(unsigned int reclaim)
{
	static const char *const names[] = {
		[IOT_RECLAIM_NONE] = "none",	 [IOT_RECLAIM_KSWAPD] = "kswapd",
		[IOT_RECLAIM_DIRECT] = "direct", [IOT_RECLAIM_PROACTIVE] = "proactive",
		[IOT_RECLAIM_TASK] = "task",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), reclaim);
}

const char *iot_seal_reason_name(unsigned int reason)
{
	static const char *const names[] = {
		[IOT_SEAL_NONE] = "none",	[IOT_SEAL_SIZE] = "size",
		[IOT_SEAL_TIME] = "time",	[IOT_SEAL_LEDGER] = "ledger",
		[IOT_SEAL_REQUEST] = "request", [IOT_SEAL_SHUTDOWN] = "shutdown",
		[IOT_SEAL_RELOAD] = "reload",	[IOT_SEAL_RECOVERED] = "recovered",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), reason);
}

const char *iot_attach_name(unsigned int state)
{
	static const char *const names[] = {
		[IOT_ATTACH_ATTACHED] = "attached",
		[IOT_ATTACH_ABSENT] = "absent",
		[IOT_ATTACH_REFUSED] = "refused",
		[IOT_ATTACH_NOT_NEEDED] = "not-needed",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), state);
}

const char *iot_program_kind_name(unsigned int kind)
{
	static const char *const names[] = {
		[IOT_PROGRAM_NONE] = "none",
		[IOT_PROGRAM_TC] = "tc",
		[IOT_PROGRAM_XDP] = "xdp",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), kind);
}

const char *iot_miss_name(unsigned int miss)
{
	static const char *const names[] = {
		[IOT_MISS_COUNTED] = "counted",
		[IOT_MISS_UNGUARDED] = "unguarded",
		[IOT_MISS_NOT_MEASURABLE] = "not-measurable",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), miss);
}

const char *iot_window_kind_name(unsigned int kind)
{
	static const char *const names[] = {
		[IOT_WINDOW_UNATTRIBUTED] = "unattributed",
		[IOT_WINDOW_MISSED] = "missed",
		[IOT_WINDOW_DETACHED] = "detached",
		[IOT_WINDOW_TORN] = "torn",
		[IOT_WINDOW_OUTPUT] = "output",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), kind);
}

const char *iot_loss_cause_name(unsigned int cause)
{
	static const char *const names[] = {
		[IOT_LOSS_RESERVE_FAILED] = "reserve-failed",
		[IOT_LOSS_DECODE_FAILED] = "decode-failed",
		[IOT_LOSS_ENRICH_FAILED] = "enrich-failed",
		[IOT_LOSS_OUTPUT_FAILED] = "output-failed",
		[IOT_LOSS_UNSEEN] = "unseen",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), cause);
}

const char *iot_stream_name(unsigned int stream)
{
	static const char *const names[] = {
		[IOT_STREAM_BLOCK] = "block",
		[IOT_STREAM_PACKET] = "packet",
	};

	return name_of(names, IOT_ARRAY_SIZE(names), stream);
}

/* First row whose key is not smaller. Tables are kept in ascending order of their keys. */
static size_t names_lower_bound(const struct iot_names *names, uint64_t key)
{
	size_t low = 0, high = names->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (names->items[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int iot_names_add(struct iot_names *names, uint64_t key, const char *name)
{
	size_t at = names_lower_bound(names, key);
	struct iot_name *items;
	char *copy;

	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (at < names->n && names->items[at].key == key) {
		free(names->items[at].name);
		names->items[at].name = copy;
		return 0;
	}
	/* Room doubles whenever n is a power of two: no field for it is needed. */
	if ((names->n & (names->n - 1)) == 0) {
		size_t room = names->n ? names->n * 2 : 1;

		items = realloc(names->items, room * sizeof(*items));
		if (!items) {
			free(copy);
			return -ENOMEM;
		}
		names->items = items;
	}
	memmove(&names->items[at + 1], &names->items[at],
		(names->n - at) * sizeof(names->items[0]));
	names->items[at] = (struct iot_name){.key = key, .name = copy};
	names->n++;
	return 0;
}

const char *iot_names_find(const struct iot_names *names, uint64_t key)
{
	size_t at = names_lower_bound(names, key);

	return at < names->n && names->items[at].key == key ? names->items[at].name : NULL;
}

void iot_names_done(struct iot_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i].name);
	free(names->items);
	*names = (struct iot_names){0};
}

void iot_segment_info_done(struct iot_segment_info *info)
{
	free(info->probes);
	iot_names_done(&info->devices);
	iot_names_done(&info->reasons);
	*info = (struct iot_segment_info){0};
}

void iot_footer_done(struct iot_footer *f)
{
	free(f->books);
	free(f->windows);
	free(f->losses);
	free(f->open);
	free(f->probes);
	iot_names_done(&f->devices);
	iot_names_done(&f->cgroups);
	iot_names_done(&f->symbols);
	*f = (struct iot_footer){0};
}
