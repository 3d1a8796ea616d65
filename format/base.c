// SPDX-License-Identifier: BSD-2-Clause
/*
 * base.c - strict parsing of what people write, the one error text, files to be read, and whole writes.
 *
 * The parsers take the whole string or refuse it: no leading blanks, no sign, no rubbish behind.
 * They tell junk (-EINVAL) from too much (-ERANGE), because the two need different advice.
 */
#include "format/base.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

void iot_error_text(struct iot_error *err, const char *fmt, ...)
{
	va_list ap;

	/* The first cause is the one worth reading. */
	if (!err || err->text[0])
		return;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

/* Digits at *s into *ret, *s behind them. -EINVAL: none; -ERANGE: more than 64 bits. */
static int take_digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	bool overflow = false;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			overflow = true;
	*s = p;
	if (overflow)
		return -ERANGE;
	*ret = v;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

int iot_parse_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;
	int r;

	r = take_digits(&s, &v);
	if (*s)
		return -EINVAL;
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

int iot_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{"", 1},
		{"B", 1},
		{"K", UINT64_C(1) << 10},
		{"KiB", UINT64_C(1) << 10},
		{"M", UINT64_C(1) << 20},
		{"MiB", UINT64_C(1) << 20},
		{"G", UINT64_C(1) << 30},
		{"GiB", UINT64_C(1) << 30},
		{"T", UINT64_C(1) << 40},
		{"TiB", UINT64_C(1) << 40},
		{"kB", UINT64_C(1000)},
		{"KB", UINT64_C(1000)},
		{"MB", UINT64_C(1000000)},
		{"GB", UINT64_C(1000000000)},
		{"TB", UINT64_C(1000000000000)},
	};
	const struct unit *unit;
	uint64_t v = 0;
	int r;

	r = take_digits(&s, &v);
	unit = find_unit(units, IOT_ARRAY_SIZE(units), s);
	if (!unit || r == -EINVAL)
		return -EINVAL;
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(v, unit->factor, &v))
		return -ERANGE;
	*ret_bytes = v;
	return 0;
}

/* ".5" as a fraction of ten to its number of digits; at most nine digits, as nanoseconds have. */
static int take_fraction(const char **s, uint64_t *ret, uint64_t *ret_scale)
{
	const char *begin = *s + 1;
	uint64_t v, scale = 1;
	int r;

	*s = begin;
	r = take_digits(s, &v);
	if (r < 0 || *s - begin > 9)
		return -EINVAL;
	for (const char *p = begin; p < *s; p++)
		scale *= 10;
	*ret = v;
	*ret_scale = scale;
	return 0;
}

int iot_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{"", UINT64_C(1000000000)},	 {"ns", 1},
		{"us", UINT64_C(1000)},		 {"ms", UINT64_C(1000000)},
		{"s", UINT64_C(1000000000)},	 {"m", UINT64_C(60000000000)},
		{"min", UINT64_C(60000000000)},	 {"h", UINT64_C(3600000000000)},
		{"d", UINT64_C(86400000000000)}, {"w", UINT64_C(604800000000000)},
	};
	uint64_t v = 0, fraction = 0, scale = 1;
	const struct unit *unit;
	unsigned __int128 ns;
	int r, q = 0;

	r = take_digits(&s, &v);
	if (r != -EINVAL && *s == '.')
		q = take_fraction(&s, &fraction, &scale);
	unit = find_unit(units, IOT_ARRAY_SIZE(units), s);
	if (!unit || r == -EINVAL || q < 0)
		return -EINVAL;
	if (r < 0)
		return r;
	ns = (unsigned __int128)v * unit->factor +
	     (unsigned __int128)fraction * unit->factor / scale;
	if (ns > UINT64_MAX)
		return -ERANGE;
	*ret_ns = (uint64_t)ns;
	return 0;
}

/* A FIFO in a directory is of that directory's file system, whoever holds its other end. */
static bool is_unnamed_pipe(int fd, const struct stat *st)
{
	struct statfs fs;

	return S_ISFIFO(st->st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

int iot_open_file(const char *path, bool pipe, int *ret_fd, struct iot_error *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return iot_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) && !(pipe && is_unnamed_pipe(fd, &st)))
		return iot_error_set(err, -EINVAL, "%s: is no file but a %s", path,
				     S_ISDIR(st.st_mode)    ? "directory"
				     : S_ISFIFO(st.st_mode) ? "FIFO"
							    : "device");
	/* Who writes into the pipe may take a while. */
	if (fcntl(fd, F_SETFL, 0) < 0)
		return iot_error_set(err, -errno, "%s: %s", path, strerror(errno));
	*ret_fd = IOT_TAKE_FD(fd);
	return 0;
}

int iot_write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		/* write(2) of a positive length that writes nothing would loop for ever. */
		if (n == 0)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
