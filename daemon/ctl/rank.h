/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rank.h - requests grouped by what caused them, and the groups with the most bytes. Pure: requests in,
 * groups out.
 *
 * Two passes over the same requests: the first counts, exactly, in one small struct a group; the second
 * keeps latencies of the groups that are shown, since a histogram of each of a million files would
 * take gigabytes. A request is in exactly one group, so requests and bytes of all groups add up to those of
 * the report. What is not known of a request is not guessed: it is in a group that says so.
 *
 * Processes and cgroups are told apart by boot, files and devices by machine: their numbers outlive
 * a boot, as far as numbers of devices do.
 */
#pragma once

#include "daemon/ctl/ctl.h"
#include "daemon/ctl/report.h"
#include "format/writer.h"

#define RANK_MAX_GROUPS (1U << 20) /* further ones are together in one */
#define RANK_TOP_DEFAULT 20U

enum rank_kind {
	RANK_KNOWN = 0,	  /* a file, a process, ... */
	RANK_UNKNOWN = 1, /* none, or not known; of files `number` is the enum iot_origin */
	RANK_REST = 2,	  /* beyond RANK_MAX_GROUPS */
};

struct rank_key {
	uint64_t number; /* inode, tgid, cgroup, device or enum iot_origin */
	uint32_t fsdev;
	uint16_t place; /* index into rank.places */
	uint16_t kind;	/* enum rank_kind */
};

struct rank_group {
	struct rank_key key;
	uint64_t requests;
	uint64_t bytes; /* done: as the kernel's own statistics count */
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t last_ns;    /* wall clock of the last completion */
	const void *segment; /* of the last request; whatever the caller passed */
	char comm[IOT_COMM_LEN];
	bool comm_is_main;    /* of the thread that has the process's number */
	struct hist *latency; /* second pass, of the groups that are shown; NULL = none */
};

struct rank_place {
	uint8_t machine_id[16];
	uint8_t boot_id[16]; /* 0 where boots are not told apart */
	char host[65];
};

struct rank {
	enum ctl_by by;
	struct rank_group *groups; /* after rank_choose(): most bytes first */
	size_t n_groups;
	size_t n_allocated;
	uint32_t *table; /* open addressing: index + 1 of a group, 0 = free */
	size_t table_size;
	struct rank_place *places;
	size_t n_places;
	size_t n_shown;
	uint64_t requests; /* of all groups */
	uint64_t bytes;
};

void rank_done(struct rank *rk);
/* Columns that rank_add() looks at. */
uint64_t rank_columns(enum ctl_by by);
/* First pass. segment is kept in the group. */
int rank_add(struct rank *rk, const struct iot_segment_info *info, const void *segment,
	     const struct iot_request *r, uint64_t realtime_ns) IOT_MUST_CHECK;
/* Between the passes: orders the groups; the first `top` are shown. */
int rank_choose(struct rank *rk, size_t top) IOT_MUST_CHECK;
/* Second pass. A request of a group that the first pass did not see is ignored. */
int rank_add_latency(struct rank *rk, const struct iot_segment_info *info,
		     const struct iot_request *r) IOT_MUST_CHECK;
