/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * archive.h - one sealed segment into an archive: a directory, or a remote of rclone.
 *
 * Sealed segments never change, so shipping is copying, and doing it again does no harm. A segment has
 * arrived if and only if what was read back from its final place has the length and digest of the source.
 */
#pragma once

#include "format/shipped.h"

struct archive_item {
	const char *source; /* path */
	const char *place;  /* "host=H/stream=S/date=D", below the destination */
	const char *name;   /* of the file */
	uint64_t bytes;
	uint64_t mtime_ns;
	char digest[IOT_DIGEST_LEN + 1];
};

/* Reads all of it: 0 if it is a sealed segment without damage, -EBADMSG if not; err says why, without the name. */
int archive_whole(int fd, const char *name, struct iot_error *err) IOT_MUST_CHECK;
/* What is at the destination under the item's name: -EEXIST if it differs from the item and is whole. */
int archive_may_replace(int fd, const char *name, const struct archive_item *item,
			struct iot_error *err) IOT_MUST_CHECK;

/* "/srv/archive" and "./here" are directories, which have to exist; "remote:path" is rclone's. */
bool archive_is_remote(const char *destination);
/* -EEXIST: see archive_may_replace; trying again does not help. */
int archive_put_directory(const char *destination, const struct archive_item *item,
			  struct iot_error *err) IOT_MUST_CHECK;
int archive_put_remote(const char *destination, const struct archive_item *item,
		       struct iot_error *err) IOT_MUST_CHECK;
