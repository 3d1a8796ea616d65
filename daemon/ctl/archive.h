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

/* "/srv/archive" and "./here" are directories, which have to exist; "remote:path" is rclone's. */
bool archive_is_remote(const char *destination);
int archive_put_directory(const char *destination, const struct archive_item *item,
			  struct iot_error *err) IOT_MUST_CHECK;
int archive_put_remote(const char *destination, const struct archive_item *item,
		       struct iot_error *err) IOT_MUST_CHECK;
