/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * asked.h - requests in the order in which they were asked for.
 *
 * A scan gives them in order of completion; a replay or a cache wants to know what came first. A request
 * is asked for when it starts; where its start was not seen (it was in flight when recording began),
 * when it was inserted, or issued. Sorted in bounded memory, in $TMPDIR or /var/tmp where they are many.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"

struct ctl_asked {
	uint64_t time_ns; /* wall clock, steady within a capture (export-clock.c) */
	uint64_t sector;
	uint32_t bytes;
	uint32_t device; /* index */
	uint8_t op;
	uint8_t swap; /* enum iot_swap */
};

struct ctl_asked_device {
	uint8_t machine_id[16];
	uint32_t dev;
	char name[80]; /* "" = not known */
};

/* What has a place on a disk, or is a flush. */
typedef bool ctl_asked_fn(const struct iot_request *req);

/* Reads and writes are accesses to blocks of this size. */
#define CTL_BLOCK_BYTES 4096U
#define CTL_BLOCK_BITS \
	48 /* a block's number has no more: a disk would have to be larger than 2^60 bytes */
ctl_asked_fn ctl_asked_has_blocks;
void ctl_asked_blocks(const struct ctl_asked *a, uint64_t *ret_first, uint64_t *ret_last);

struct ctl_asked_list;
struct ctl_asked_stats {
	uint64_t requests;
	uint64_t left_out; /* wanted() said no */
	uint64_t without_start;
	uint64_t first_ns; /* UINT64_MAX: none */
	uint64_t last_ns;
};

/* Reads scan to its end. Negative errno with err. */
int ctl_asked_read(struct iot_scan *scan, ctl_asked_fn *wanted, struct ctl_asked_list **ret,
		   struct ctl_asked_stats *ret_stats, struct iot_error *err) IOT_MUST_CHECK;
struct ctl_asked_list *ctl_asked_free(struct ctl_asked_list *l);
#define CTL_ASKED_END 1
int ctl_asked_next(struct ctl_asked_list *l, struct ctl_asked *ret,
		   struct iot_error *err) IOT_MUST_CHECK;
/* Another sort in the same place, which must live shorter than the list. */
struct bt_sort;
int ctl_asked_sort_new(const struct ctl_asked_list *l, struct bt_sort **ret) IOT_MUST_CHECK;
/* Borrowed. */
const struct ctl_asked_device *ctl_asked_devices(const struct ctl_asked_list *l, uint32_t *ret_n);
/* All devices are one host's. */
bool ctl_asked_one_host(const struct ctl_asked_list *l);

static inline void ctl_asked_freep(struct ctl_asked_list **l)
{
	*l = ctl_asked_free(*l);
}
