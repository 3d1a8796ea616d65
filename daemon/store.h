/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - the state directory: names, order, durability and age of segment files.
 *
 * `<stream>-<capture>-<seq>.open` while written; sealed: fdatasync, rename (no-replace) to `.iot`,
 * fsync of the directory. Nothing changes a sealed file. One process at a time: fcntl lock on
 * `lock` in the directory (flock would be shared by inherited descriptors; fcntl dies with the
 * process), which holds the id of the capture in 32 hex digits and a newline. Retention deletes oldest sealed segments by (mtime of seal, capture, seq).
 */
#pragma once

#include "config/config.h"
#include "format/verify.h"

struct store;

/* -EBUSY another live process owns it; -EROFS, -ENOENT, -EACCES, -ENOSPC: err says what to do. Creates the
 * directory (0750) if its parent exists. Checks renameat2(RENAME_NOREPLACE) and falls back to link+unlink. */
int store_open(const char *dir, const uint8_t capture_id[16], struct store **ret,
	       struct iot_error *err) IOT_MUST_CHECK;
struct store *store_close(struct store *s);
/* Closes after a start that failed: a directory that store_open() made is removed if nothing but the lock
 * is in it. */
struct store *store_abandon(struct store *s);

int store_dirfd(const struct store *s);
const char *store_path(const struct store *s);
/* Its path leads to another directory now, or to none: it was moved away, deleted, or something is mounted over it. */
bool store_is_elsewhere(const struct store *s);
const uint8_t *store_capture_id(const struct store *s);
/* "block-<32 hex>-<seq, 10 digits>.open" (or ".iot"). */
void store_name(const struct store *s, enum iot_stream stream, uint64_t seq, bool sealed, char *buf,
		size_t size);

/* Makes a whole (sealed, still .open) file durable and gives it its final name. May wait. -EEXIST: the
 * final name is taken; only a copy recovered from the unfinished file gives way (becomes .bad).
 * *ret_unsynced, with an error: the disk failed to take the bytes. Another sync of fd would succeed
 * without their being on the disk, so it must not be tried: store_rewrite(). */
int store_publish(struct store *s, enum iot_stream stream, uint64_t seq, int fd, bool sync,
		  bool *ret_unsynced) IOT_MUST_CHECK;
/*
 * Puts a synced copy of a sealed .open file, of which fd is open, in its place; *ret_fd, to be published and
 * closed by the caller. f: its footer if it is at hand, else NULL; see iot_rewrite(). On error the file is as
 * it was, and the call may be repeated: each makes a new copy.
 */
int store_rewrite(struct store *s, enum iot_stream stream, uint64_t seq, int fd,
		  const struct iot_footer *f, int *ret_fd,
		  struct iot_rewritten *ret) IOT_MUST_CHECK;

/* Recovers every torn .open file of earlier captures into a sealed one. ret_n = files recovered.
 * A file that cannot be recovered is renamed to .bad, never deleted. Of two files for one name the
 * one that holds more has it in the end, and the other becomes .bad unless it holds nothing beyond.
 * notify (may be NULL) is told each. */
struct store_recovered {
	const char *name;
	uint64_t kept_records; /* of the file that has the final name */
	uint64_t lost_bytes;
	int error; /* 0; -EBADMSG: nothing in it to recover; -EEXIST: another of its name holds more */
	bool set_aside; /* is .bad now; with an error and without this it is as it was */
};
typedef void (*store_recovered_fn)(void *userdata, const struct store_recovered *r);
/* What happened to the file, for a log. */
const char *store_recovered_text(const struct store_recovered *r, char *buf, size_t size);
int store_recover(struct store *s, store_recovered_fn notify, void *userdata, size_t *ret_n,
		  struct iot_error *err) IOT_MUST_CHECK;

/* Deletes what retention says; counts. Never the open segment. May be called every few seconds. */
struct store_usage {
	uint64_t segments;
	uint64_t bytes;
	uint64_t free_bytes;
	uint64_t deleted_segments; /* since start */
	uint64_t deleted_bytes;
	bool archived;		     /* somebody archives: the next two are known */
	uint64_t unshipped_segments; /* sealed, and not in the archive */
	uint64_t deleted_unshipped;  /* since start */
};
int store_retain(struct store *s, const struct iot_retention *r,
		 struct store_usage *ret) IOT_MUST_CHECK;
