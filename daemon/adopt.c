// SPDX-License-Identifier: BSD-2-Clause
/* adopt.c - see adopt.h. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/adopt.h"

#define MAGIC 0x74706f6461746f69ULL /* "iotadopt" */

struct page {
	uint64_t magic;
	uint64_t wire;
	uint64_t current; /* 0 or 1: the half that counts */
	struct adopt_state halves[2];
};

struct adopt {
	int fd;
	struct page *page;
	pthread_mutex_t lock;
	struct adopt_state own;
};

uint64_t adopt_hash(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ULL;
	return hash;
}

uint64_t adopt_wire(void)
{
	const uint64_t parts[] = {
		ADOPT_VERSION,
		EV_ABI,
		sizeof(struct page),
		sizeof(struct ev_block),
		sizeof(struct ev_packet),
		sizeof(struct ev_ledger_key),
		sizeof(struct ev_ledger_val),
		sizeof(struct ev_packet_loss),
		sizeof(struct ev_cell),
		sizeof(struct ev_control),
		sizeof(struct ev_epoch),
	};

	return adopt_hash(ADOPT_HASH_INIT, parts, sizeof(parts));
}

static int map(int fd, struct adopt **ret)
{
	struct adopt *a = calloc(1, sizeof(*a));
	void *m;

	if (!a)
		return -ENOMEM;
	m = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) {
		int r = -errno;

		free(a);
		return r;
	}
	a->page = m;
	pthread_mutex_init(&a->lock, NULL);
	*ret = a;
	return 0;
}

int adopt_new(struct adopt **ret)
{
	_cleanup_close_ int fd = memfd_create("iotraced", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct adopt *a = NULL;
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(struct page)) < 0)
		return -errno;
	/* Nobody makes it shorter than what is mapped. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	r = map(fd, &a);
	if (r < 0)
		return r;
	assert(a);
	a->fd = IOT_TAKE_FD(fd);
	a->page->wire = adopt_wire();
	__atomic_store_n(&a->page->magic, MAGIC, __ATOMIC_RELEASE);
	*ret = a;
	return 0;
}

int adopt_open(int fd, struct adopt **ret)
{
	_cleanup_close_ int owned = fd;
	struct adopt *a = NULL;
	struct stat st;
	int r, seals;

	if (fstat(fd, &st) < 0)
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (!S_ISREG(st.st_mode) || st.st_size != sizeof(struct page) || seals < 0 ||
	    !(seals & F_SEAL_SHRINK))
		return -EBADMSG;
	r = map(owned, &a);
	if (r < 0)
		return r;
	assert(a);
	a->fd = IOT_TAKE_FD(owned);
	if (__atomic_load_n(&a->page->magic, __ATOMIC_ACQUIRE) != MAGIC ||
	    a->page->wire != adopt_wire() ||
	    __atomic_load_n(&a->page->current, __ATOMIC_ACQUIRE) > 1) {
		adopt_free(a);
		return -EBADMSG;
	}
	a->own = a->page->halves[a->page->current];
	if (a->own.n_rows > EPOCH_MAX_PROBES || a->own.n_rings > IOT_MAX_RINGS) {
		adopt_free(a);
		return -EBADMSG;
	}
	*ret = a;
	return 0;
}

struct adopt *adopt_free(struct adopt *a)
{
	if (!a)
		return NULL;
	munmap(a->page, sizeof(struct page));
	close(a->fd);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return NULL;
}

int adopt_fd(const struct adopt *a)
{
	return a->fd;
}

struct adopt_state *adopt_edit(struct adopt *a)
{
	pthread_mutex_lock(&a->lock);
	return &a->own;
}

void adopt_commit(struct adopt *a)
{
	uint64_t other = a->page->current ^ 1;

	a->page->halves[other] = a->own;
	__atomic_store_n(&a->page->current, other, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&a->lock);
}

void adopt_read(struct adopt *a, struct adopt_state *ret)
{
	pthread_mutex_lock(&a->lock);
	*ret = a->own;
	pthread_mutex_unlock(&a->lock);
}

void adopt_set_dead(struct adopt *a)
{
	if (!a)
		return;
	adopt_edit(a)->dead = 1;
	adopt_commit(a);
}

void adopt_set_config(struct adopt *a, uint64_t config)
{
	if (!a)
		return;
	adopt_edit(a)->config = config;
	adopt_commit(a);
}
