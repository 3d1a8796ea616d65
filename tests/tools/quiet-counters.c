// SPDX-License-Identifier: BSD-2-Clause
/*
 * quiet-counters.c - reads the kernel's I/O counters at an instant at which nothing is under way.
 *
 * usage: quiet-counters [-n] DIRECTORY
 *
 * Waits until /proc/diskstats shows no request in flight and neither it nor pswpin, pswpout of /proc/vmstat
 * moved for QUIET_MS. Then leaves in DIRECTORY: vmstat and diskstats as read, and time: CLOCK_MONOTONIC in
 * ns of the middle of that quiet. Records of requests that ended before it are those that the counters have
 * counted, to the last one: pswpin and pswpout count when a page is sent, and what was sent has ended.
 *
 * -n does not wait: reads the clock, both files, and the clock again (time: both, one a line), for
 * bounds while something is under way. All memory is locked: this program must not be swapped itself.
 *
 * Exit: 0, 1 an error or no such instant within 30 s, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUIET_MS 120
#define STEP_MS 20
#define LIMIT_MS 30000
#define ROOM 65536

struct reading {
	uint64_t t_ns;
	char vmstat[ROOM];
	char diskstats[ROOM];
};

static struct reading first, last;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool slurp(const char *path, char text[ROOM])
{
	size_t n = 0;
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (n < ROOM - 1 && (got = read(fd, text + n, ROOM - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(fd);
	return n > 0 && n < ROOM - 1;
}

static bool take(struct reading *r)
{
	r->t_ns = now_ns();
	return slurp("/proc/diskstats", r->diskstats) && slurp("/proc/vmstat", r->vmstat);
}

/* Times in diskstats stand still, too, where nothing is in flight. */
static bool in_flight(const char *diskstats)
{
	for (const char *p = diskstats; *p; p = strchr(p, '\n') + 1) {
		uint64_t n;

		if (sscanf(p, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &n) == 1 && n)
			return true;
		if (!strchr(p, '\n'))
			break;
	}
	return false;
}

static uint64_t counter(const char *vmstat, const char *name)
{
	const char *p = strstr(vmstat, name);

	return p ? strtoull(p + strlen(name), NULL, 10) : UINT64_MAX;
}

static bool same(const struct reading *a, const struct reading *b)
{
	return !in_flight(b->diskstats) && !strcmp(a->diskstats, b->diskstats) &&
	       counter(a->vmstat, "pswpin ") == counter(b->vmstat, "pswpin ") &&
	       counter(a->vmstat, "pswpout ") == counter(b->vmstat, "pswpout ");
}

static bool leave(const char *dir, const char *name, const char *text)
{
	char path[4096];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

int main(int argc, char **argv)
{
	bool wait = true;
	uint64_t begin;
	char text[64];

	if (argc > 1 && !strcmp(argv[1], "-n")) {
		wait = false;
		argv++, argc--;
	}
	if (argc != 2) {
		fputs("usage: quiet-counters [-n] DIRECTORY\n", stderr);
		return 2;
	}
	(void)mlockall(MCL_CURRENT | MCL_FUTURE);
	if (mkdir(argv[1], 0755) < 0 && errno != EEXIST)
		goto error;
	begin = now_ns();
	if (!take(&first))
		goto error;
	snprintf(text, sizeof(text), "%" PRIu64 "\n%" PRIu64 "\n", first.t_ns, now_ns());
	while (wait) {
		usleep(STEP_MS * 1000);
		if (!take(&last))
			goto error;
		if (last.t_ns - begin > LIMIT_MS * 1000000ULL) {
			fputs("quiet-counters: the machine does not come to rest\n", stderr);
			return 1;
		}
		if (!same(&first, &last)) {
			first = last;
			continue;
		}
		if (last.t_ns - first.t_ns < QUIET_MS * 1000000ULL)
			continue;
		snprintf(text, sizeof(text), "%" PRIu64 "\n",
			 first.t_ns + (last.t_ns - first.t_ns) / 2);
		break;
	}
	if (leave(argv[1], "vmstat", first.vmstat) &&
	    leave(argv[1], "diskstats", first.diskstats) && leave(argv[1], "time", text))
		return 0;
error:
	fprintf(stderr, "quiet-counters: %s: %s\n", argv[1], strerror(errno));
	return 1;
}
