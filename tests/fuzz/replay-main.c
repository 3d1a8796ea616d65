// SPDX-License-Identifier: BSD-2-Clause
/*
 * replay-main.c - runs a fuzz target over its seeds without libFuzzer.
 *
 * Each seed is fed as it is, then cut at several lengths, then with a few hundred small mutations,
 * always the same ones. Arguments are files or directories; without any, the target's own seeds:
 * build/tests/fuzz-replay/fuzz-NAME takes tests/fuzz/seeds/NAME. Inputs are copied to a buffer of
 * exactly their size, so that a sanitizer sees every read beyond it.
 */
#include "format/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MAX_SEED_BYTES (1U << 20)
#define N_MUTATIONS 300
#define N_CUTS 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = (state += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static void run_copy(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void mutate(uint8_t *data, size_t size)
{
	for (uint64_t n = 1 + next() % 4; n > 0; n--) {
		uint8_t *p = data + next() % size;

		switch (next() % 4) {
		case 0:
			*p ^= (uint8_t)(1U << next() % 8);
			break;
		case 1:
			*p = (uint8_t)next();
			break;
		case 2:
			*p = next() % 2 ? 0xff : 0;
			break;
		default:
			*p = (uint8_t)(*p + (next() % 2 ? 1 : -1));
		}
	}
}

static void replay(const uint8_t *data, size_t size)
{
	uint8_t *work;

	run_copy(data, size);
	if (size == 0)
		return;
	work = malloc(size);
	if (!work)
		abort();
	for (unsigned int i = 0; i < N_CUTS; i++)
		run_copy(data, next() % size);
	for (unsigned int i = 0; i < N_MUTATIONS; i++) {
		memcpy(work, data, size);
		mutate(work, size);
		run_copy(work, size);
	}
	free(work);
}

static int replay_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ uint8_t *data = malloc(MAX_SEED_BYTES);
	ssize_t n;

	if (fd < 0 || !data)
		return -errno;
	n = read(fd, data, MAX_SEED_BYTES);
	if (n < 0)
		return -errno;
	replay(data, (size_t)n);
	return 0;
}

static int replay_path(const char *path, unsigned int *n_seeds)
{
	struct dirent **entries;
	struct stat st;
	int n, r = 0;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode)) {
		++*n_seeds;
		return replay_file(path);
	}
	/* Sorted: the same order, hence the same mutations, everywhere. */
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char file[4096];

		if (r == 0 && entries[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
			r = replay_path(file, n_seeds);
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	char seeds[4096];
	unsigned int n_seeds = 0;
	int r = 0;

	name = name ? name + 1 : argv[0];
	if (argc > 1) {
		for (int i = 1; i < argc && r == 0; i++)
			r = replay_path(argv[i], &n_seeds);
	} else {
		snprintf(seeds, sizeof(seeds), "tests/fuzz/seeds/%s",
			 strncmp(name, "fuzz-", 5) == 0 ? name + 5 : name);
		r = replay_path(seeds, &n_seeds);
	}
	if (r < 0 || n_seeds == 0) {
		printf("not ok %s: %s\n", name, r < 0 ? strerror(-r) : "no seeds");
		return 1;
	}
	printf("ok %s: %u seeds\n", name, n_seeds);
	return 0;
}
