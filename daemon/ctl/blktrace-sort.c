// SPDX-License-Identifier: BSD-2-Clause
/*
 * blktrace-sort.c - any number of events in another order, in bounded memory.
 *
 * Requests come in order of completion, but a per-CPU file must be in order of its events, and a
 * request that hung for minutes began minutes before its neighbours; an import has files by CPU and
 * needs events by time. No window is long enough, so this is a real external sort: runs of
 * max_events are sorted and spilled into one unlinked file, then merged through a heap. A short
 * trace never leaves memory.
 */
#include <fcntl.h>

#include "daemon/ctl/export.h"

#define MERGE_BYTES ((size_t)16 << 20) /* read buffers of all runs together */

struct run {
	uint64_t next; /* event index in the spill file */
	uint64_t end;
	struct bt_event *buf;
	size_t at;
	size_t n;
};

struct bt_sort {
	bt_order_fn compare;
	int dirfd;
	int fd; /* spilled runs; -EBADF until the first */
	struct bt_event *events;
	size_t n;
	size_t max;
	size_t at; /* next event, when nothing was spilled */
	uint64_t n_spilled;
	uint32_t order;
	struct run *runs;
	size_t n_runs;
	size_t *heap; /* run numbers; n_heap with events left */
	size_t n_heap;
};

int bt_sort_new(int dirfd, size_t max_events, bt_order_fn order, struct bt_sort **ret)
{
	_cleanup_(bt_sort_freep) struct bt_sort *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = -EBADF;
	s->compare = order;
	s->dirfd = dirfd;
	s->max = max_events;
	s->events = malloc(max_events * sizeof(*s->events));
	if (!s->events)
		return -ENOMEM;
	*ret = IOT_TAKE_PTR(s);
	return 0;
}

struct bt_sort *bt_sort_free(struct bt_sort *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_runs; i++)
		free(s->runs[i].buf);
	free(s->runs);
	free(s->heap);
	free(s->events);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return NULL;
}

int bt_order_files(const struct bt_event *a, const struct bt_event *b)
{
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return iot_cmp_u64(a->time_ns, b->time_ns);
}

static int compare(const struct bt_sort *s, const struct bt_event *a, const struct bt_event *b)
{
	int r = s->compare(a, b);

	if (r)
		return r;
	/* Arrival, modulo 2^32: a difference, so that a wrap between neighbours is harmless. */
	return (int32_t)(a->order - b->order) < 0 ? -1 : a->order != b->order;
}

static int compare_void(const void *a, const void *b, void *s)
{
	return compare(s, a, b);
}

/* O_TMPFILE where the file system has it, else a name that lives for a moment. */
static int open_spill(int dirfd)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = openat(dirfd, ".sort.tmp", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	unlinkat(dirfd, ".sort.tmp", 0);
	return fd;
}

static int spill(struct bt_sort *s)
{
	struct run *runs;
	int r;

	qsort_r(s->events, s->n, sizeof(*s->events), compare_void, s);
	if (s->fd < 0) {
		s->fd = open_spill(s->dirfd);
		if (s->fd < 0)
			return s->fd;
	}
	runs = reallocarray(s->runs, s->n_runs + 1, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	s->runs = runs;
	r = iot_write_all(s->fd, s->events, s->n * sizeof(*s->events));
	if (r < 0)
		return r;
	s->runs[s->n_runs++] = (struct run){.next = s->n_spilled, .end = s->n_spilled + s->n};
	s->n_spilled += s->n;
	s->n = 0;
	return 0;
}

int bt_sort_add(struct bt_sort *s, const struct bt_event *e)
{
	int r;

	if (s->n == s->max) {
		r = spill(s);
		if (r < 0)
			return r;
	}
	s->events[s->n] = *e;
	s->events[s->n++].order = s->order++;
	return 0;
}

/* ---- merging ------------------------------------------------------------------------------------ */

/* The run's next events into its buffer; n = 0 at its end. */
static int refill(struct bt_sort *s, struct run *run, size_t capacity)
{
	size_t want = (size_t)IOT_MIN((uint64_t)capacity, run->end - run->next), done = 0;

	run->at = 0;
	run->n = want;
	while (done < want * sizeof(*run->buf)) {
		ssize_t got = pread(s->fd, (char *)run->buf + done, want * sizeof(*run->buf) - done,
				    (off_t)(run->next * sizeof(*run->buf) + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		done += (size_t)got;
	}
	run->next += want;
	return 0;
}

static size_t run_capacity(const struct bt_sort *s)
{
	return IOT_MAX(MERGE_BYTES / sizeof(struct bt_event) / s->n_runs, 16U);
}

static bool before(const struct bt_sort *s, size_t a, size_t b)
{
	const struct run *x = &s->runs[a], *y = &s->runs[b];

	return compare(s, &x->buf[x->at], &y->buf[y->at]) < 0;
}

static void sift_down(struct bt_sort *s, size_t i)
{
	for (;;) {
		size_t least = i, left = 2 * i + 1, t;

		if (left < s->n_heap && before(s, s->heap[left], s->heap[least]))
			least = left;
		if (left + 1 < s->n_heap && before(s, s->heap[left + 1], s->heap[least]))
			least = left + 1;
		if (least == i)
			return;
		t = s->heap[i];
		s->heap[i] = s->heap[least];
		s->heap[least] = t;
		i = least;
	}
}

int bt_sort_finish(struct bt_sort *s)
{
	size_t capacity;
	int r;

	if (!s->n_runs) {
		if (s->n)
			qsort_r(s->events, s->n, sizeof(*s->events), compare_void, s);
		return 0;
	}
	if (s->n) {
		r = spill(s);
		if (r < 0)
			return r;
	}
	free(s->events);
	s->events = NULL;
	s->heap = calloc(s->n_runs, sizeof(*s->heap));
	if (!s->heap)
		return -ENOMEM;
	capacity = run_capacity(s);
	for (size_t i = 0; i < s->n_runs; i++) {
		s->runs[i].buf = malloc(capacity * sizeof(struct bt_event));
		if (!s->runs[i].buf)
			return -ENOMEM;
		r = refill(s, &s->runs[i], capacity);
		if (r < 0)
			return r;
		s->heap[s->n_heap++] = i;
	}
	for (size_t i = s->n_heap; i-- > 0;)
		sift_down(s, i);
	return 0;
}

int bt_sort_next(struct bt_sort *s, struct bt_event *ret)
{
	struct run *run;
	int r;

	if (!s->n_runs) {
		if (s->at == s->n)
			return BT_SORT_END;
		*ret = s->events[s->at++];
		return 0;
	}
	if (!s->n_heap)
		return BT_SORT_END;
	run = &s->runs[s->heap[0]];
	*ret = run->buf[run->at++];
	if (run->at == run->n) {
		r = refill(s, run, run_capacity(s));
		if (r < 0)
			return r;
		if (!run->n)
			s->heap[0] = s->heap[--s->n_heap];
	}
	sift_down(s, 0);
	return 0;
}
