/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - the small tools every module may use: cleanup attributes, bounds-safe helpers, and the
 * one error type that carries a place and a remedy. Depends on libc alone.
 *
 * Errors: functions return 0 or a negative errno. A positive return is a documented condition of
 * that function, handled by its caller and never forwarded. Where a person has to read the cause,
 * the function also takes a `struct iot_error *` (may be NULL) and fills it once, at the place
 * where the cause is known; callers add nothing and print it.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IOT_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define IOT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define IOT_MAX(a, b) ((a) > (b) ? (a) : (b))
#define IOT_MUST_CHECK __attribute__((warn_unused_result))
#define IOT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void iot_freep(void *p)
{
	free(*(void **)p);
}

static inline void iot_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void iot_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_free_ _cleanup_(iot_freep)
#define _cleanup_close_ _cleanup_(iot_closep)
#define _cleanup_fclose_ _cleanup_(iot_fclosep)

/* Takes the value out of an owned variable so that its cleanup does nothing. */
#define IOT_TAKE_PTR(p)                 \
	({                              \
		__typeof__(p) _t = (p); \
		(p) = NULL;             \
		_t;                     \
	})
#define IOT_TAKE_FD(fd)        \
	({                     \
		int _t = (fd); \
		(fd) = -EBADF; \
		_t;            \
	})

/* One error a person reads: "file:line:column: message" or "file: offset N: message". */
struct iot_error {
	char text[512]; /* whole message without trailing newline; "" = none */
};

/* Fills *err if it is not NULL and still empty. */
void iot_error_text(struct iot_error *err, const char *fmt, ...) IOT_PRINTF(2, 3);
/* The same, and returns code, a negative errno: `return iot_error_set(err, -EINVAL, ...)`. A macro, so that
 * compilers and analysers see that a failed function did not succeed. */
#define iot_error_set(err, code, ...)               \
	({                                          \
		int _code = (code);                 \
		iot_error_text((err), __VA_ARGS__); \
		iot_error_code(_code);              \
	})
static inline int iot_error_code(int code)
{
	return code;
}

/* Strict decimal parsing of a whole string: -EINVAL on junk, -ERANGE on overflow. */
int iot_parse_u64(const char *s, uint64_t *ret) IOT_MUST_CHECK;
/* "64MiB", "64M", "1GB" (decimal), "4096": bytes. Binary for KiB/MiB/GiB/TiB and K/M/G/T. */
int iot_parse_size(const char *s, uint64_t *ret_bytes) IOT_MUST_CHECK;
/* "5m", "200ms", "1h", "2d", "30s", "1.5s"; a bare number is seconds. Nanoseconds. */
int iot_parse_duration(const char *s, uint64_t *ret_ns) IOT_MUST_CHECK;
/*
 * Opens a file that somebody else may have put there, to be read: never waits, as open(2) of a FIFO does until
 * there is a writer. -EINVAL: neither a regular file nor, with pipe, one of the pipes without a name that a
 * shell makes of <(command).
 */
int iot_open_file(const char *path, bool pipe, int *ret_fd, struct iot_error *err) IOT_MUST_CHECK;
/* Whole write(2) with EINTR and short writes handled. */
int iot_write_all(int fd, const void *buf, size_t len) IOT_MUST_CHECK;

static inline int iot_cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}
