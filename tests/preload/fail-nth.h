/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fail-nth.h - the page through which a test and a program under build/tests/preload/fail-nth.so talk: which
 * calls count, which of them fail and how. It is a file that both map ($FAIL_CONTROL), so a test may change
 * it while the program runs, and read it when the program is gone.
 */
#pragma once

#include <stdint.h>

enum fail_call {
	FAIL_MALLOC =
		0, /* malloc, calloc, realloc, reallocarray, and what the C library makes of them */
	FAIL_OPEN = 1,	 /* open, openat, fopen, mkostemps, memfd_create */
	FAIL_READ = 2,	 /* read, pread */
	FAIL_WRITE = 3,	 /* write, pwrite */
	FAIL_SYNC = 4,	 /* fsync, fdatasync */
	FAIL_RENAME = 5, /* rename, renameat, renameat2, linkat */
	FAIL_SIZE = 6,	 /* ftruncate, fallocate */
	FAIL_MMAP = 7,
	FAIL_DIR = 8,	  /* opendir, fdopendir, readdir */
	FAIL_STAT = 9,	  /* stat, lstat, fstat, fstatat, statx */
	FAIL_UNLINK = 10, /* unlink, unlinkat: leaves files behind by itself */
	FAIL_N_CALLS,
};

static const char *const fail_names[FAIL_N_CALLS] = {"malloc", "open",	 "read",  "write",
						     "sync",   "rename", "size",  "mmap",
						     "dir",    "stat",	 "unlink"};

enum fail_how {
	FAIL_ERROR = 0, /* with `error`, or what is usual for the call */
	FAIL_SHORT = 1, /* reads and writes only: half of what was asked for */
};

struct fail_control {
	uint64_t mask;	/* 1 << enum fail_call: these are counted */
	uint64_t count; /* calls so far */
	uint64_t at;	/* the first that fails; 0 = none */
	uint64_t n;	/* that many fail from there on */
	uint64_t failed;
	uint64_t
		again; /* syncs of a regular file of which one has failed: they say nothing of the disk */
	uint32_t last; /* enum fail_call of the last one that did */
	uint32_t how;  /* enum fail_how */
	int32_t error; /* errno; 0 = the usual one */
};
