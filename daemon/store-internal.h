/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store-internal.h - what the three files of the store share: the directory and how a name in it
 * becomes another. Only daemon/store*.c and their test include it.
 */
#pragma once

#include <sys/stat.h>

#include "daemon/store.h"

#define STORE_SUFFIX_OPEN ".open"
#define STORE_SUFFIX_SEALED ".iot"
#define STORE_SUFFIX_BAD ".bad"
#define STORE_SUFFIX_RECOVERING ".recovering"

struct store {
	int dirfd;
	int lock_fd; /* never opened twice: closing any descriptor of it would drop the lock */
	char *path;
	uint8_t capture_id[16];
	char capture_hex[33];
	bool created;	   /* the directory was not there */
	bool no_noreplace; /* the file system has no RENAME_NOREPLACE */
	uint64_t deleted_segments;
	uint64_t deleted_bytes;
	uint64_t deleted_unshipped;
};

/* A segment's name taken apart. */
struct store_entry {
	enum iot_stream stream;
	char capture_hex[33];
	uint64_t seq;
};

/* 0 if name is one of ours with that suffix; -EINVAL otherwise. */
int store_parse_name(const char *name, const char *suffix, struct store_entry *ret) IOT_MUST_CHECK;

/* Never replaces: -EEXIST. Durable only after store_sync_dir(). */
int store_rename(const struct store *s, const char *from, const char *to) IOT_MUST_CHECK;
int store_sync_dir(const struct store *s) IOT_MUST_CHECK;

/* name becomes base.bad (or base.bad.1 ...), durably. */
int store_set_aside(const struct store *s, const char *name, const char *base) IOT_MUST_CHECK;
