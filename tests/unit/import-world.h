/* SPDX-License-Identifier: BSD-2-Clause */
/* import-world.h - a trace in memory through a parser and import-pair.c, for test-import*.c, which include cmocka before. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include "daemon/ctl/import.h"

#define MAX_REQUESTS 64

struct world {
	struct import im;
	struct iot_request requests[MAX_REQUESTS];
	size_t n;
	struct iot_request *open;
	size_t n_open;
	struct import_counts counts;
	struct iot_error err;
};

static inline int keep(void *arg, const struct iot_request *r)
{
	struct world *w = arg;

	assert_true(w->n < MAX_REQUESTS);
	w->requests[w->n++] = *r;
	return 0;
}

static inline int crowded(void *arg)
{
	(void)arg;
	return 0;
}

static inline void begin(struct world *w)
{
	int dirfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*w = (struct world){0};
	assert_true(dirfd >= 0);
	assert_int_equal(bt_sort_new(dirfd, 100, import_order, &w->im.sort), 0);
	close(dirfd);
}

static inline void done(struct world *w)
{
	free(w->open);
	import_done(&w->im);
}

typedef int (*parser)(struct import *, struct import_input *, struct iot_error *);

static inline int parse(struct world *w, parser fn, const void *data, size_t size)
{
	struct import_input in;
	char path[64];
	int fd = memfd_create("trace", MFD_CLOEXEC), r;

	assert_true(fd >= 0);
	assert_int_equal(iot_write_all(fd, data, size), 0);
	lseek(fd, 0, SEEK_SET);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(import_input_open(path, NULL, &in, NULL), 0);
	in.path = "trace";
	r = fn(&w->im, &in, &w->err);
	import_input_done(&in);
	close(fd);
	return r;
}

static inline void pair(struct world *w)
{
	const struct import_output out = {keep, crowded, w};
	struct import_pair *p;
	struct bt_event e;
	int r;

	assert_int_equal(import_pair_new(&w->im, &out, &p), 0);
	assert_int_equal(bt_sort_finish(w->im.sort), 0);
	while ((r = bt_sort_next(w->im.sort, &e)) == 0)
		assert_int_equal(import_pair_add(p, &e), 0);
	assert_int_equal(r, BT_SORT_END);
	assert_int_equal(import_pair_open(p, &w->open, &w->n_open), 0);
	w->counts = *import_pair_counts(p);
	import_pair_free(p);
}

static inline void text(struct world *w, parser fn, const char *s)
{
	begin(w);
	assert_int_equal(parse(w, fn, s, strlen(s)), 0);
	pair(w);
}

/* "start insert issue issue_last complete", in microseconds behind `from`; - = null. */
static inline const char *times(const struct iot_request *r, uint64_t from)
{
	const uint64_t t[] = {r->start_ns, r->insert_ns, r->issue_ns, r->issue_last_ns,
			      r->complete_ns};
	static char buf[128];
	size_t n = 0;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(t); i++)
		n += t[i] ? (size_t)snprintf(buf + n, sizeof(buf) - n, "%s%llu", i ? " " : "",
					     (unsigned long long)(t[i] - from) / 1000)
			  : (size_t)snprintf(buf + n, sizeof(buf) - n, "%s-", i ? " " : "");
	return buf;
}
