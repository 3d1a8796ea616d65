// SPDX-License-Identifier: BSD-2-Clause
/*
 * swap-hog.c - takes more memory than there is, and knows what must be in it.
 *
 * usage: swap-hog [-t] [-n NAME] MIB OPERATION...
 *
 *   fill[:MSEC]   write every page, in order; again and again for that long
 *   touch:COUNT   COUNT pages at random: check, and rewrite every second one
 *   run:MSEC      the same, for that long
 *   peek:MSEC     pages at random for that long: check only
 *   pageout       madvise(MADV_PAGEOUT) all of it, 2 MiB at a time
 *   verify        check every page, in order (and so read all of it back)
 *   sleep:MSEC
 *
 * -t asks for huge pages (madvise); without it they are refused, so that the one and the other are told
 * apart whatever the system's setting. Each page holds its number and how often it was written, in every
 * 512-byte sector; a page that comes back from swap as another is an error. The order of the random touches
 * is fixed by NAME, so that two hogs differ and one repeats itself.
 *
 * Exit: 0 all pages were right, 1 one was not, 2 usage, 3 no memory.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096U
#define SECTOR_WORDS (512U / sizeof(uint64_t))
#define PAGE_WORDS (PAGE / sizeof(uint64_t))
#define CHUNK (2U << 20)

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

struct hog {
	uint64_t *memory;
	uint32_t *generation; /* how often each page was written */
	size_t n_pages;
	uint64_t random;
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* xorshift64: the touches need no better. */
static uint64_t next_random(struct hog *h)
{
	h->random ^= h->random << 13;
	h->random ^= h->random >> 7;
	h->random ^= h->random << 17;
	return h->random;
}

static uint64_t content(const struct hog *h, size_t page)
{
	return (uint64_t)page << 32 | h->generation[page];
}

static void page_write(struct hog *h, size_t page)
{
	uint64_t *p = h->memory + page * PAGE_WORDS;

	h->generation[page]++;
	for (size_t i = 0; i < PAGE_WORDS; i += SECTOR_WORDS)
		p[i] = content(h, page);
}

static bool page_check(const struct hog *h, size_t page)
{
	const uint64_t *p = h->memory + page * PAGE_WORDS;

	for (size_t i = 0; i < PAGE_WORDS; i += SECTOR_WORDS) {
		if (p[i] == content(h, page))
			continue;
		fprintf(stderr, "swap-hog: page %zu holds %#" PRIx64 " instead of %#" PRIx64 "\n",
			page, p[i], content(h, page));
		return false;
	}
	return true;
}

static bool touch(struct hog *h, uint64_t n, bool writes)
{
	while (n--) {
		uint64_t r = next_random(h);
		size_t page = (r >> 1) % h->n_pages;

		if (!page_check(h, page))
			return false;
		if (writes && (r & 1))
			page_write(h, page);
	}
	return true;
}

/* -1: no such operation; else whether all pages were right */
static int carry_out(struct hog *h, const char *operation)
{
	uint64_t n = 0, end;
	char name[16];
	int n_read;

	n_read = sscanf(operation, "%15[a-z]:%" SCNu64, name, &n);
	if (n_read < 1)
		return -1;
	if (!strcmp(name, "fill")) {
		end = now_ms() + n;
		do {
			for (size_t i = 0; i < h->n_pages; i++)
				page_write(h, i);
		} while (now_ms() < end);
		return 1;
	}
	if (!strcmp(name, "verify")) {
		for (size_t i = 0; i < h->n_pages; i++)
			if (!page_check(h, i))
				return 0;
		return 1;
	}
	if (!strcmp(name, "pageout")) {
		/* Advice: a kernel that cannot is as good, and the test sees that nothing was swapped. */
		for (size_t at = 0; at < h->n_pages * PAGE; at += CHUNK)
			(void)madvise((char *)h->memory + at, CHUNK, MADV_PAGEOUT);
		return 1;
	}
	if (n_read < 2)
		return -1;
	if (!strcmp(name, "touch"))
		return touch(h, n, true);
	end = now_ms() + n;
	if (!strcmp(name, "run") || !strcmp(name, "peek")) {
		while (now_ms() < end)
			if (!touch(h, 16, name[0] == 'r'))
				return 0;
		return 1;
	}
	if (!strcmp(name, "sleep")) {
		while (now_ms() < end)
			usleep(1000);
		return 1;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct hog h = {.random = 0x9e3779b97f4a7c15U};
	bool huge = false;
	char *base, *end;
	size_t bytes;
	int c, r;

	while ((c = getopt(argc, argv, "+tn:")) != -1) {
		if (c == 't')
			huge = true;
		else if (c == 'n')
			for (const char *p = optarg; *p; p++)
				h.random = h.random * 31 + (unsigned char)*p;
		else
			goto usage;
	}
	if (argc - optind < 2)
		goto usage;
	bytes = (size_t)strtoul(argv[optind++], &end, 10) << 20;
	if (*end || !bytes)
		goto usage;
	h.random |= 1;
	h.n_pages = bytes / PAGE;
	base = mmap(NULL, bytes + CHUNK, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	h.generation = calloc(h.n_pages, sizeof(*h.generation));
	if (base == MAP_FAILED || !h.generation) {
		perror("swap-hog");
		return 3;
	}
	h.memory = (void *)(((uintptr_t)base + CHUNK - 1) & ~(uintptr_t)(CHUNK - 1));
	(void)madvise(h.memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (int i = optind; i < argc; i++) {
		r = carry_out(&h, argv[i]);
		if (r < 0)
			goto usage;
		if (!r)
			return 1;
	}
	return 0;
usage:
	fputs("usage: swap-hog [-t] [-n NAME] MIB "
	      "fill|touch:COUNT|run:MSEC|peek:MSEC|pageout|verify|sleep:MSEC...\n",
	      stderr);
	return 2;
}
