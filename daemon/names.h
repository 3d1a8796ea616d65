/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - what device numbers and cgroup ids are called, so that a segment is readable on a machine
 * that has neither.
 *
 * A cache owned by one thread (the rotor), since looking up means reading /sys. A device's name is
 * DEVNAME of /sys/dev/block/MAJOR:MINOR/uevent. A cgroup id is the inode number of its directory in
 * the cgroup2 hierarchy, wherever that is mounted: by file handle where the kernel lets us
 * (CAP_DAC_READ_SEARCH), else by a bounded walk. A name is a courtesy: what is not found stays a
 * number, and nothing about completeness depends on it. Numbers are reused, so names are looked up
 * again for each segment and the cached one serves when the thing is gone.
 */
#pragma once

#include "daemon/id-set.h"
#include "format/record.h"

struct names;

int names_new(struct names **ret) IOT_MUST_CHECK;
struct names *names_free(struct names *n);

/* Looks keys up now, while they exist; results are kept. */
void names_see_devices(struct names *n, const uint64_t *keys, size_t n_keys);
void names_see_cgroups(struct names *n, const uint64_t *keys, size_t n_keys);
/* Every block device present, so that even a segment that is never sealed names them. */
void names_scan_devices(struct names *n);

/* Tables for a segment: all devices known; or those of a set, looked up again. Unknown = no row. */
int names_all_devices(struct names *n, struct iot_names *ret) IOT_MUST_CHECK;
int names_devices_of(struct names *n, const struct id_set *set,
		     struct iot_names *ret) IOT_MUST_CHECK;
int names_cgroups_of(struct names *n, const struct id_set *set,
		     struct iot_names *ret) IOT_MUST_CHECK;
