// SPDX-License-Identifier: BSD-2-Clause
/* machine.c - what a report takes from this machine rather than from the segments. */
#include "daemon/ctl/ctl-util.h"

bool ctl_this_machine(const uint8_t machine_id[16])
{
	_cleanup_fclose_ FILE *f = fopen("/etc/machine-id", "re");
	char here[64] = "", hex[CTL_HUMAN_MAX];

	/* A machine without an id records zeroes. */
	if (!f || !fgets(here, sizeof(here), f))
		memset(here, '0', 32);
	here[strcspn(here, "\n")] = '\0';
	return strcasecmp(here, ctl_hex_id(machine_id, hex)) == 0;
}

static int read_numbers(const char *name, FILE *f, uint64_t *ret, struct iot_error *err)
{
	unsigned int n_lines = 0;
	uint64_t sum = 0, v;
	char line[256];

	while (fgets(line, sizeof(line), f)) {
		char *text = line + strspn(line, " \t");

		n_lines++;
		/* Bytes that are no text have no line ends either, and might never end. */
		if (!strchr(line, '\n') && !feof(f))
			return iot_error_set(err, -EINVAL,
					     "%s:%u: a line of more than %zu bytes; write one "
					     "number a line, like 4096 or 64MiB",
					     name, n_lines, sizeof(line) - 2);
		text[strcspn(text, "#\r\n")] = '\0';
		for (size_t n = strlen(text); n && (text[n - 1] == ' ' || text[n - 1] == '\t');)
			text[--n] = '\0';
		if (!*text)
			continue;
		if (iot_parse_size(text, &v) < 0)
			return iot_error_set(err, -EINVAL,
					     "%s:%u: '%s' is no number of bytes; write one a line, "
					     "like 4096 or 64MiB",
					     name, n_lines, text);
		if (__builtin_add_overflow(sum, v, &sum))
			return iot_error_set(err, -ERANGE, "%s:%u: more than 2^64 bytes in all",
					     name, n_lines);
	}
	if (ferror(f))
		return iot_error_set(err, -EIO, "%s: cannot be read", name);
	*ret = sum;
	return 0;
}

int ctl_logical_bytes(const char *arg, uint64_t *ret, struct iot_error *err)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (arg[0] != '@') {
		if (iot_parse_size(arg, ret) < 0)
			return iot_error_set(err, -EINVAL,
					     "--logical-bytes: '%s' is no number of bytes; write "
					     "64MiB, or @FILE",
					     arg);
		return 0;
	}
	if (strcmp(arg + 1, "-") == 0)
		return read_numbers("standard input", stdin, ret, err);
	r = iot_open_file(arg + 1, true, &fd, err);
	if (r < 0)
		return r;
	f = fdopen(fd, "r");
	if (!f)
		return iot_error_set(err, -errno, "--logical-bytes: %s: %s", arg + 1,
				     strerror(errno));
	fd = -EBADF; /* f's */
	return read_numbers(arg + 1, f, ret, err);
}
