// SPDX-License-Identifier: BSD-2-Clause
/*
 * power-disk.c - a disk with a volatile write cache whose power fails, as often as wanted: an NBD server for one
 * client (qemu's -drive file=nbd+unix:///?socket=...).
 *
 *	power-disk SOCKET IMAGE OUT-DIR NAMES CUTS MIN-MS MAX-MS SEED
 *
 * What the client has written is in the cache until it flushes (or writes with FUA, which flushes, too). At a cut
 * the disk is what was flushed, plus of the rest, 4 KiB by 4 KiB and in the order of writing, whatever chance
 * spares: nothing, all, or a share. That is written to OUT-DIR/cut-N.img, and beside it as cut-N.names what the file
 * NAMES held just before; then the disk goes on as if nothing had happened. So one machine under load gives
 * as many power cuts as are wanted, between MIN-MS and MAX-MS apart and then some writes later, but before the next
 * flush; the last one is the moment when the client is gone (killed). Cuts wait while more than four images are
 * there: who looks at them removes them.
 *
 * IMAGE is read at the start and never written.
 */
#include "format/base.h"

#include <endian.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PIECE 4096U
#define MAX_WAITING 4U
#define MAX_REQUEST (64U << 20)

#define MAGIC_INIT 0x4e42444d41474943ULL
#define MAGIC_OPTION 0x49484156454f5054ULL
#define MAGIC_REPLY 0x3e889045565a9ULL
#define MAGIC_REQUEST 0x25609513U
#define MAGIC_SIMPLE 0x67446698U
#define FLAGS_EXPORT (1U | 4U | 8U) /* it has flags: flush, FUA */
#define REPLY_ACK 1U
#define REPLY_INFO 3U
#define REPLY_UNSUPPORTED 0x80000001U

enum {
	OPT_EXPORT_NAME = 1,
	OPT_ABORT = 2,
	OPT_INFO = 6,
	OPT_GO = 7,
	CMD_READ = 0,
	CMD_WRITE = 1,
	CMD_DISCONNECT = 2,
	CMD_FLUSH = 3,
	EINVAL_NBD = 22,
};

struct pending {
	uint64_t offset;
	uint32_t size;
	uint8_t *data;
};

static uint8_t *now, *durable; /* as the client sees it, as it is without power */
static uint64_t disk_bytes;
static struct pending *pending;
static size_t n_pending, pending_room;
static const char *out_dir, *names_path;
static unsigned int n_cuts, max_cuts, min_ms, max_ms;
static uint64_t n_flushes, n_writes, seed;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(2);
}

/* xorshift64*: a seed gives the same choices again. */
static uint64_t chance(uint64_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dULL % n;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void flush_cache(void)
{
	for (size_t i = 0; i < n_pending; i++) {
		memcpy(durable + pending[i].offset, pending[i].data, pending[i].size);
		free(pending[i].data);
	}
	n_pending = 0;
	n_flushes++;
}

static void add_pending(uint64_t offset, const uint8_t *data, uint32_t size)
{
	if (n_pending == pending_room) {
		pending_room = pending_room ? 2 * pending_room : 256;
		pending = reallocarray(pending, pending_room, sizeof(*pending));
		must(pending != NULL, "memory");
	}
	pending[n_pending] = (struct pending){offset, size, malloc(size)};
	must(pending[n_pending].data != NULL, "memory");
	memcpy(pending[n_pending].data, data, size);
	n_pending++;
	n_writes++;
}

static bool read_all(int fd, void *buf, size_t size)
{
	for (uint8_t *p = buf; size > 0;) {
		ssize_t n = read(fd, p, size);

		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *buf, size_t size)
{
	for (const uint8_t *p = buf; size > 0;) {
		ssize_t n = write(fd, p, size);

		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

/* ---- a cut ---- */

static void copy_names(unsigned int n)
{
	static char buf[1U << 20];
	char path[512];
	int from = open(names_path, O_RDONLY | O_CLOEXEC), to;
	ssize_t size = from < 0 ? 0 : read(from, buf, sizeof(buf));

	must(size >= 0 && (size_t)size < sizeof(buf), names_path);
	snprintf(path, sizeof(path), "%s/cut-%u.names", out_dir, n);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(to >= 0 && write_all(to, buf, (size_t)size), path);
	close(to);
	if (from >= 0)
		close(from);
}

static void apply_some(uint8_t *image)
{
	static const unsigned int shares[] = {0, 10, 50, 90, 100};
	unsigned int share = shares[chance(sizeof(shares) / sizeof(*shares))];

	for (size_t i = 0; i < n_pending; i++)
		for (uint32_t at = 0; at < pending[i].size; at += PIECE) {
			uint32_t size = pending[i].size - at < PIECE ? pending[i].size - at : PIECE;

			if (chance(100) < share)
				memcpy(image + pending[i].offset + at, pending[i].data + at, size);
		}
}

static void cut(void)
{
	static const uint8_t zeros[PIECE];
	unsigned int n = ++n_cuts;
	char tmp[512], path[512];
	uint8_t *image;
	int fd;

	copy_names(n);
	snprintf(tmp, sizeof(tmp), "%s/cut.tmp", out_dir);
	fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && ftruncate(fd, (off_t)disk_bytes) == 0, tmp);
	image = mmap(NULL, disk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(image != MAP_FAILED, "mmap");
	for (uint64_t at = 0; at < disk_bytes; at += PIECE)
		if (memcmp(durable + at, zeros, PIECE) != 0)
			memcpy(image + at, durable + at, PIECE);
	apply_some(image);
	munmap(image, disk_bytes);
	close(fd);
	snprintf(path, sizeof(path), "%s/cut-%u.img", out_dir, n);
	must(rename(tmp, path) == 0, path);
	printf("cut %u: %zu writes not flushed, %llu writes and %llu flushes so far\n", n,
	       n_pending, (unsigned long long)n_writes, (unsigned long long)n_flushes);
	fflush(stdout);
}

static bool too_many_waiting(void)
{
	unsigned int n = 0;
	char path[512];

	for (unsigned int i = n_cuts > 64 ? n_cuts - 64 : 1; i <= n_cuts; i++) {
		snprintf(path, sizeof(path), "%s/cut-%u.img", out_dir, i);
		n += access(path, F_OK) == 0;
	}
	return n > MAX_WAITING;
}

/* ---- the client ---- */

static bool reply_option(int fd, uint32_t option, uint32_t type, const void *data, uint32_t size)
{
	uint8_t head[20];
	uint64_t magic = htobe64(MAGIC_REPLY);
	uint32_t words[3] = {htobe32(option), htobe32(type), htobe32(size)};

	memcpy(head, &magic, 8);
	memcpy(head + 8, words, 12);
	return write_all(fd, head, sizeof(head)) && write_all(fd, data, size);
}

static bool send_export(int fd, uint32_t option)
{
	uint8_t info[12] = {0};
	uint64_t size = htobe64(disk_bytes);
	uint16_t flags = htobe16(FLAGS_EXPORT);

	memcpy(info + 2, &size, 8);
	memcpy(info + 10, &flags, 2);
	if (option == OPT_EXPORT_NAME)
		return write_all(fd, info + 2, 10);
	return reply_option(fd, option, REPLY_INFO, info, sizeof(info)) &&
	       reply_option(fd, option, REPLY_ACK, NULL, 0);
}

/* Fixed newstyle, without the zeros. */
static bool negotiate(int fd)
{
	uint64_t hello[2] = {htobe64(MAGIC_INIT), htobe64(MAGIC_OPTION)}, magic;
	uint16_t flags = htobe16(3);
	uint32_t client, words[2];
	char data[4096];

	if (!write_all(fd, hello, sizeof(hello)) || !write_all(fd, &flags, 2) ||
	    !read_all(fd, &client, 4))
		return false;
	for (;;) {
		uint32_t option, size;

		if (!read_all(fd, &magic, 8) || be64toh(magic) != MAGIC_OPTION ||
		    !read_all(fd, words, 8))
			return false;
		option = be32toh(words[0]);
		size = be32toh(words[1]);
		if (size > sizeof(data) || !read_all(fd, data, size))
			return false;
		switch (option) {
		case OPT_EXPORT_NAME:
		case OPT_GO:
			return send_export(fd, option);
		case OPT_INFO:
			if (!send_export(fd, option))
				return false;
			break;
		case OPT_ABORT:
			(void)reply_option(fd, option, REPLY_ACK, NULL, 0);
			return false;
		default:
			if (!reply_option(fd, option, REPLY_UNSUPPORTED, NULL, 0))
				return false;
		}
	}
}

struct request {
	uint32_t magic;
	uint16_t flags;
	uint16_t type;
	uint64_t handle;
	uint64_t offset;
	uint32_t size;
} __attribute__((packed));

struct reply {
	uint32_t magic;
	uint32_t error;
	uint64_t handle;
} __attribute__((packed));

static uint64_t due_ms;
static uint64_t countdown; /* writes until the cut, once it is due */

/* At the latest when a flush comes and before it is done: then the most is at stake. */
static void maybe_cut(bool flushing)
{
	uint64_t at = now_ms();

	if (at < due_ms || n_pending == 0 || (!flushing && countdown-- > 0))
		return;
	if (n_cuts + 1 < max_cuts && !too_many_waiting())
		cut();
	due_ms = at + min_ms + chance(max_ms - min_ms + 1);
	countdown = chance(8);
}

/* False: the client is gone. */
static bool serve_one(int fd, uint8_t *buf)
{
	struct reply reply = {.magic = htobe32(MAGIC_SIMPLE)};
	struct request q;
	uint64_t offset;
	uint32_t size;
	unsigned int type;
	bool good;

	if (!read_all(fd, &q, sizeof(q)) || be32toh(q.magic) != MAGIC_REQUEST)
		return false;
	type = be16toh(q.type);
	offset = be64toh(q.offset);
	size = be32toh(q.size);
	good = type == CMD_FLUSH ||
	       ((type == CMD_READ || type == CMD_WRITE) && size <= MAX_REQUEST &&
		offset <= disk_bytes && size <= disk_bytes - offset);
	if (type == CMD_DISCONNECT || (type == CMD_WRITE && !good))
		return false;
	if (type == CMD_WRITE) {
		if (!read_all(fd, buf, size))
			return false;
		memcpy(now + offset, buf, size);
		add_pending(offset, buf, size);
		maybe_cut(false);
	}
	if (type == CMD_FLUSH || (type == CMD_WRITE && be16toh(q.flags) & 1)) {
		maybe_cut(true);
		flush_cache();
	}
	reply.error = good ? 0 : htobe32(EINVAL_NBD);
	reply.handle = q.handle;
	if (!write_all(fd, &reply, sizeof(reply)))
		return false;
	return type != CMD_READ || !good || write_all(fd, now + offset, size);
}

static void serve(int fd)
{
	uint8_t *buf = malloc(MAX_REQUEST);

	must(buf != NULL, "memory");
	due_ms = now_ms() + min_ms + chance(max_ms - min_ms + 1);
	if (negotiate(fd))
		while (serve_one(fd, buf))
			;
	free(buf);
	cut();
}

static unsigned int number(const char *s)
{
	uint64_t n;

	must(iot_parse_u64(s, &n) == 0 && n <= UINT32_MAX, s);
	return (unsigned int)n;
}

int main(int argc, char **argv)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, client, image;

	if (argc != 9) {
		fprintf(stderr,
			"usage: power-disk SOCKET IMAGE OUT-DIR NAMES CUTS MIN-MS MAX-MS SEED\n");
		return 2;
	}
	out_dir = argv[3];
	names_path = argv[4];
	max_cuts = number(argv[5]);
	min_ms = number(argv[6]);
	max_ms = number(argv[7]);
	seed = 2ULL * number(argv[8]) + 1;
	must(max_ms >= min_ms, "MAX-MS");
	image = open(argv[2], O_RDONLY | O_CLOEXEC);
	must(image >= 0 && fstat(image, &st) == 0 && st.st_size % PIECE == 0, argv[2]);
	disk_bytes = (uint64_t)st.st_size;
	now = malloc(disk_bytes);
	durable = malloc(disk_bytes);
	must(now && durable && read_all(image, now, disk_bytes), argv[2]);
	memcpy(durable, now, disk_bytes);
	close(image);
	must(strlen(argv[1]) < sizeof(sun.sun_path), argv[1]);
	memcpy(sun.sun_path, argv[1], strlen(argv[1]) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 && listen(fd, 1) == 0,
	     argv[1]);
	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	must(client >= 0, "accept");
	serve(client);
	printf("done: %u cuts, %llu writes, %llu flushes\n", n_cuts, (unsigned long long)n_writes,
	       (unsigned long long)n_flushes);
	return 0;
}
