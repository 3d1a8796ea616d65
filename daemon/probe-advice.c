// SPDX-License-Identifier: BSD-2-Clause
/*
 * probe-advice.c - see probe-advice.h.
 *
 * Only whole disks that have requests count: partitions repeat their disk, and device mapper, md and others
 * made of bios are counted by the kernel but make no records. The ones that do have a directory `mq` in sysfs
 * (all request queues are blk-mq since 5.0). All records are taken to come into one ring, as those of CPUs that
 * share it may: an advice that errs towards the larger ring.
 */
#include "daemon/probe-advice.h"

#include <ctype.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define MAX_RING_BYTES (1ULL << 30)

/* The n-th word of a line, from 0; NULL if there are fewer. */
static const char *word(const char *line, unsigned int n)
{
	for (;; n--) {
		while (*line == ' ')
			line++;
		if (*line == '\0' || *line == '\n')
			return NULL;
		if (n == 0)
			return line;
		while (*line != '\0' && *line != '\n' && *line != ' ')
			line++;
	}
}

static uint64_t number(const char *line, unsigned int n)
{
	const char *p = word(line, n);
	uint64_t v = 0;

	for (; p && isdigit((unsigned char)*p); p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

uint64_t advice_requests(const char *text, bool (*counted)(const char *disk))
{
	/* Behind major, minor and name: reads, writes, discards, flushes. */
	static const unsigned int fields[] = {3, 7, 14, 18};
	uint64_t n = 0;

	while (*text) {
		const char *name = word(text, 2), *end = strchr(text, '\n');
		char disk[64];

		if (name) {
			snprintf(disk, sizeof(disk), "%.*s", (int)strcspn(name, " \n"), name);
			for (size_t i = 0; counted(disk) && i < IOT_ARRAY_SIZE(fields); i++)
				n += number(text, fields[i]);
		}
		if (!end)
			break;
		text = end + 1;
	}
	return n;
}

uint64_t advice_ring_bytes(uint64_t records_per_s, size_t record_bytes)
{
	uint64_t bytes = 4096;

	if (records_per_s > MAX_RING_BYTES / record_bytes / ADVICE_STALL_S)
		return UINT64_MAX;
	while (bytes < records_per_s * ADVICE_STALL_S * record_bytes)
		bytes *= 2;
	return bytes;
}

static bool has_requests(const char *disk)
{
	char path[128];

	/* A partition is no directory of /sys/block. */
	snprintf(path, sizeof(path), "/sys/block/%s/mq", disk);
	for (char *c = path + sizeof("/sys/block/") - 1; c < path + strlen(path) - 3; c++)
		if (*c == '/')
			*c = '!';
	return access(path, F_OK) == 0;
}

/* Requests completed so far on this machine. */
static int count_now(uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	ssize_t n;
	FILE *f = fopen("/proc/diskstats", "re");

	if (!f)
		return -errno;
	errno = 0;
	n = getdelim(&text, &size, '\0', f);
	fclose(f);
	if (n < 0 && errno)
		return -errno;
	*ret = n < 0 ? 0 : advice_requests(text, has_requests);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

void advice_begin(struct advice *a)
{
	*a = (struct advice){0};
	if (count_now(&a->requests) == 0)
		a->at_ns = now_ns();
}

void advice_end(const struct advice *a, uint64_t ring_bytes, size_t record_bytes)
{
	uint64_t n = 0, ns, rate, want, records = ring_bytes / record_bytes;

	if (a->at_ns == 0)
		return;
	ns = now_ns() - a->at_ns;
	if (ns < ADVICE_LEAST_NS) {
		usleep((useconds_t)((ADVICE_LEAST_NS - ns) / 1000U));
		ns = now_ns() - a->at_ns;
	}
	/* A disk that went meanwhile took its count along. */
	if (count_now(&n) < 0 || n < a->requests)
		return;
	rate = (uint64_t)((double)(n - a->requests) / ((double)ns / 1e9));
	want = advice_ring_bytes(rate, record_bytes);
	printf("block: %" PRIu64 " requests/s in the %.1f s that this took; a ring of %" PRIu64
	       "KiB holds %" PRIu64 " records",
	       rate, (double)ns / 1e9, ring_bytes / 1024, records);
	if (rate == 0) {
		printf("\n");
		return;
	}
	printf(", %.1f s of that\n", (double)records / (double)rate);
	if (want == UINT64_MAX)
		printf("       no ring holds %u s of it: record fewer devices\n", ADVICE_STALL_S);
	else
		printf("       streams.block.ring_size: %" PRIu64
		       "KiB is the least for a stall of %u s%s\n",
		       want / 1024, ADVICE_STALL_S,
		       want > ring_bytes ? ", more than there is" : "");
}
