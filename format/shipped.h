/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shipped.h - the note of which sealed segments are in an archive.
 *
 * A text file: the line "iotraced-archive 1 DESTINATION", then a line for each segment whose copy was read
 * back and found equal: "NAME BYTES MTIME_NS DIGEST". The archiver (iotracectl archive) appends to it;
 * retention and `segments` read it. A segment is shipped if and only if a whole line has its name, size and
 * time: whatever else is in the file, a line that was cut or another file of that name, errs towards not shipped.
 */
#pragma once

#include "format/base.h"

#define IOT_SHIPPED_FILE "/var/lib/iotraced-archive/shipped"
#define IOT_DIGEST_LEN 32U /* hex digits of XXH3's 128 bits */

struct iot_shipped_entry {
	const char *name;
	uint64_t bytes;
	uint64_t mtime_ns;
	char digest[IOT_DIGEST_LEN + 1];
};

struct iot_shipped;

/* -ENOENT: nobody archives. Other errors: somebody does, and what is not known. */
int iot_shipped_load(const char *path, struct iot_shipped **ret,
		     struct iot_error *err) IOT_MUST_CHECK;
struct iot_shipped *iot_shipped_free(struct iot_shipped *s);
/* "" if the first line is not whole. */
const char *iot_shipped_destination(const struct iot_shipped *s);
size_t iot_shipped_n(const struct iot_shipped *s);
/* Sorted by name; of several of one name the one noted last. Borrowed. */
const struct iot_shipped_entry *iot_shipped_at(const struct iot_shipped *s, size_t i);
/* NULL: not shipped as it is. */
const struct iot_shipped_entry *iot_shipped_find(const struct iot_shipped *s, const char *name,
						 uint64_t bytes, uint64_t mtime_ns);

/* Digest and length of what can be read from fd, from where it is. */
int iot_digest_fd(int fd, char ret[IOT_DIGEST_LEN + 1], uint64_t *ret_bytes) IOT_MUST_CHECK;

static inline void iot_shipped_freep(struct iot_shipped **s)
{
	*s = iot_shipped_free(*s);
}
