/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan-fixture.h - scans for tests, which must open, and read to their ends.
 */
#pragma once

#include "tests/unit/segment-builder.h"

static inline struct iot_scan *must_scan(const char *path, const struct iot_filter *f)
{
	struct iot_error err = {0};
	struct iot_scan *sc;

	if (iot_scan_open(&path, 1, f, &sc, &err) < 0)
		fail_msg("%s", err.text);
	return sc;
}

/* A directory with one segment in it, of n_blocks of per_block requests, each changed if `change` is not NULL. */
static inline void one_segment(struct build_dir *d, uint32_t n_blocks, uint32_t per_block,
			       void (*change)(struct iot_request *, uint32_t))
{
	struct build b;

	build_dir_open(d);
	build_init(&b, 1, n_blocks, per_block);
	b.change = change;
	build_write(&b, d->fd, "a.iot");
}

/* Drains the scan; checks the order by wall clock. */
static inline uint32_t drain(struct iot_scan *sc, uint64_t *ret_first_id, uint64_t *ret_last_id)
{
	struct iot_error err = {0};
	struct iot_segment *s;
	struct iot_request r;
	uint64_t last = 0;
	uint32_t n = 0;
	int ret;

	while ((ret = iot_scan_next(sc, &r, &s, &err)) == 0) {
		uint64_t t = iot_segment_realtime_ns(s, r.complete_ns);

		assert_true(t >= last);
		last = t;
		if (n == 0 && ret_first_id)
			*ret_first_id = r.id;
		if (ret_last_id)
			*ret_last_id = r.id;
		n++;
	}
	if (ret < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ret, IOT_READ_END);
	assert_int_equal(iot_scan_next(sc, &r, &s, &err), IOT_READ_END);
	return n;
}

/* The same a block at a time. */
static inline uint32_t drain_blocks(struct iot_scan *sc)
{
	struct iot_error err = {0};
	struct iot_rows rows;
	uint32_t n = 0;
	int ret;

	while ((ret = iot_scan_next_block(sc, &rows, &err)) == 0) {
		assert_in_range(rows.n, 1, iot_batch_count(rows.batch));
		for (uint32_t i = 0; rows.at && i < rows.n; i++)
			assert_true(rows.at[i] < iot_batch_count(rows.batch) &&
				    (i == 0 || rows.at[i] > rows.at[i - 1]));
		n += rows.n;
	}
	if (ret < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ret, IOT_READ_END);
	return n;
}

static inline uint32_t count(const char *path, const struct iot_filter *f)
{
	struct iot_scan *sc = must_scan(path, f);
	uint32_t n = drain(sc, NULL, NULL);

	iot_scan_close(sc);
	sc = must_scan(path, f);
	assert_int_equal(drain_blocks(sc), n);
	iot_scan_close(sc);
	return n;
}
