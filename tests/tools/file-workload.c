// SPDX-License-Identifier: BSD-2-Clause
/*
 * file-workload.c - does file I/O in every way that a request can come from, for tests that know how many
 * bytes of which file must show up.
 *
 * usage: file-workload [-c COMM] FILE OPERATION...
 *
 *   write:OFFSET:LENGTH  read:...          through the page cache
 *   mmap-write:...  mmap-read:...          through a shared mapping; written back by msync
 *   direct-write:...  direct-read:...      O_DIRECT, from and to memory of our own
 *   direct-write-from:OFFSET:LENGTH:OTHER  O_DIRECT, from a mapping of another file, all of it in the
 *                                          page cache
 *   fsync
 *   anon:LENGTH                            fills that much memory, which compresses badly, and keeps it
 *   touch:                                 reads all of that again
 *   wait:PATH                              until this file exists
 *
 * OFFSET and LENGTH are bytes, with K and M for binary units. FILE is made if it does not exist; "-" is
 * none.
 *
 * Exit: 0 done, 1 an operation failed, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CHUNK (64U << 10)

struct job {
	int fd;
	int direct_fd;
	const char *path;
	unsigned char *buffer; /* CHUNK bytes, aligned */
	unsigned char *anon;
	size_t anon_bytes;
	uint64_t seed;
};

static bool parse_size(const char **s, uint64_t *ret)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	*ret = strtoull(*s, &end, 10);
	if (*end == 'K' || *end == 'M')
		*ret <<= *end++ == 'K' ? 10 : 20;
	*s = end;
	return true;
}

/* Bytes that neither compression nor the detection of equal pages makes less of. */
static void fill(struct job *j, unsigned char *to, size_t n)
{
	uint64_t x = j->seed;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(to + i, &x, 8);
	}
	j->seed = x;
}

static int by_chunks(struct job *j, int fd, bool write, uint64_t offset, uint64_t length)
{
	while (length) {
		size_t n = length < CHUNK ? length : CHUNK;
		ssize_t done;

		if (write)
			fill(j, j->buffer, n);
		done = write ? pwrite(fd, j->buffer, n, (off_t)offset)
			     : pread(fd, j->buffer, n, (off_t)offset);
		if (done != (ssize_t)n)
			return done < 0 ? -errno : -EIO;
		offset += n;
		length -= n;
	}
	return 0;
}

static int by_mapping(struct job *j, bool write, uint64_t offset, uint64_t length)
{
	volatile unsigned char *page;
	unsigned char *map;
	int r = 0;

	if (write && ftruncate(j->fd, (off_t)(offset + length)) < 0)
		return -errno;
	map = mmap(NULL, length, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, j->fd,
		   (off_t)offset);
	if (map == MAP_FAILED)
		return -errno;
	if (write) {
		fill(j, map, length);
		r = msync(map, length, MS_SYNC) < 0 ? -errno : 0;
	} else {
		page = map;
		for (uint64_t i = 0; i < length; i += 4096)
			(void)page[i];
	}
	munmap(map, length);
	return r;
}

/* The pages that the device reads from belong to another file's page cache. */
static int direct_from(struct job *j, uint64_t offset, uint64_t length, const char *other)
{
	int fd = open(other, O_RDONLY | O_CLOEXEC), r = 0;
	unsigned char *map;
	ssize_t n;

	if (fd < 0)
		return -errno;
	map = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED) {
		r = -errno;
	} else {
		n = pwrite(j->direct_fd, map, length, (off_t)offset);
		if (n != (ssize_t)length)
			r = n < 0 ? -errno : -EIO;
		munmap(map, length);
	}
	close(fd);
	return r;
}

static int take_anon(struct job *j, uint64_t length)
{
	j->anon = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (j->anon == MAP_FAILED)
		return -errno;
	j->anon_bytes = length;
	fill(j, j->anon, length);
	return 0;
}

static int operate(struct job *j, const char *op)
{
	const char *colon = strchr(op, ':'), *s = colon ? colon + 1 : "";
	size_t len = colon ? (size_t)(colon - op) : strlen(op);
	uint64_t offset = 0, length = 0;

#define IS(name) (len == strlen(name) && strncmp(op, name, len) == 0)
	if (IS("fsync"))
		return fsync(j->fd) < 0 ? -errno : 0;
	if (IS("wait")) {
		while (access(s, F_OK) < 0)
			usleep(20000);
		return 0;
	}
	if (IS("touch")) {
		for (size_t i = 0; i < j->anon_bytes; i += 4096)
			(void)*(volatile unsigned char *)&j->anon[i];
		return 0;
	}
	if (IS("anon"))
		return parse_size(&s, &length) ? take_anon(j, length) : -EINVAL;
	if (!parse_size(&s, &offset) || *s++ != ':' || !parse_size(&s, &length))
		return -EINVAL;
	if (IS("write") || IS("read"))
		return by_chunks(j, j->fd, IS("write"), offset, length);
	if (IS("mmap-write") || IS("mmap-read"))
		return by_mapping(j, IS("mmap-write"), offset, length);
	if (j->direct_fd < 0)
		j->direct_fd = open(j->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (j->direct_fd < 0)
		return -errno;
	if (IS("direct-write") || IS("direct-read"))
		return by_chunks(j, j->direct_fd, IS("direct-write"), offset, length);
	if (IS("direct-write-from") && *s == ':')
		return direct_from(j, offset, length, s + 1);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct job j = {.fd = -1, .direct_fd = -1};
	int c, r;

	while ((c = getopt(argc, argv, "c:")) != -1) {
		if (c != 'c')
			return 2;
		prctl(PR_SET_NAME, optarg);
	}
	if (argc - optind < 2) {
		fputs("usage: file-workload [-c COMM] FILE OPERATION...\n", stderr);
		return 2;
	}
	j.path = argv[optind++];
	j.seed = 88172645463325252ULL ^ (uint64_t)getpid() << 32;
	if (posix_memalign((void **)&j.buffer, 4096, CHUNK) != 0)
		return 1;
	if (strcmp(j.path, "-") != 0) {
		j.fd = open(j.path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (j.fd < 0) {
			fprintf(stderr, "file-workload: %s: %s\n", j.path, strerror(errno));
			return 1;
		}
	}
	for (; optind < argc; optind++) {
		r = operate(&j, argv[optind]);
		if (r < 0) {
			fprintf(stderr, "file-workload: %s %s: %s\n", j.path, argv[optind],
				strerror(-r));
			return r == -EINVAL ? 2 : 1;
		}
	}
	return 0;
}
