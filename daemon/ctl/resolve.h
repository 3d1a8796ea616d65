/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h - names of inodes, by one walk over a mounted file system.
 *
 * What is found is true of now, not of the time of the recording: a file may have been renamed, deleted or
 * its number given to another one since. The last can be seen where the file system keeps the time of
 * birth: a file that is younger than the last request is another file. Symbolic links are not followed, and
 * other mounts are not entered.
 */
#pragma once

#include "format/base.h"

enum resolve_state {
	RESOLVE_NOT_FOUND = 0,
	RESOLVE_FOUND = 1,
	RESOLVE_AMBIGUOUS =
		2,	    /* of several subvolumes, each has this number; path is one of them */
	RESOLVE_REUSED = 3, /* the number belongs to a younger file by now */
};

struct resolve_want {
	uint64_t ino;
	uint64_t last_ns; /* wall clock of the last request; 0 = not known */
	enum resolve_state state;
	char *path; /* owned; below the mount, as the caller wrote it */
	uint64_t found_dev;
};

struct resolve_walk {
	uint64_t at_ns;	   /* wall clock when it began */
	uint64_t n_dirs;   /* read */
	uint64_t n_denied; /* could not be read: files below them are not found */
};

/* Device number of the file system that path lies on, as in /proc/self/mountinfo and in a request's
 * fsdev: on btrfs another than stat's. */
int resolve_device(const char *path, uint32_t *ret) IOT_MUST_CHECK;
/* wants: any order, no inode twice; sorted on return. */
int resolve_walk(const char *mount, struct resolve_want *wants, size_t n,
		 struct resolve_walk *ret) IOT_MUST_CHECK;
