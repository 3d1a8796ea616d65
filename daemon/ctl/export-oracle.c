// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-oracle.c - libCacheSim's oracleGeneral: accesses to blocks, each with the number of the next access to
 * the same block, which lets a cache simulator see the future (Belady).
 *
 * 24 bytes an access, packed, little-endian: seconds since the first request (u32), object (u64), its size
 * (u32), number of the next access or -1 (i64); accesses are numbered from 1. An object is a block of 4 KiB: its
 * device, counted from 1, in the upper 16 bits, its number on it below. Reads and writes are not told apart.
 *
 * The future is found by sorting twice, in bounded memory: by block, where the next access is the neighbour,
 * and back. The format has no place for the verdict; it stands in the sidecar.
 */
#include <endian.h>
#include <fcntl.h>

#include "daemon/ctl/asked.h"
#include "daemon/ctl/export.h"

#define NEVER UINT64_MAX
#define RECORD_BYTES 24U

/* In: accesses by device, block and time; `sector` is their number. */
static int add_accesses(struct ctl_asked_list *list, uint64_t first_ns, struct bt_sort *by_block,
			struct iot_error *err)
{
	struct ctl_asked a;
	uint64_t number = 0;
	int r;

	while ((r = ctl_asked_next(list, &a, err)) == 0) {
		uint64_t block, last;

		ctl_asked_blocks(&a, &block, &last);
		for (; block <= last; block++) {
			const struct bt_event e = {
				.device = a.device,
				.time_ns = block,
				.sector = ++number,
				.bytes = (uint32_t)((a.time_ns - first_ns) / 1000000000),
			};

			r = bt_sort_add(by_block, &e);
			if (r < 0)
				return iot_error_set(err, r, "cannot sort: %s", strerror(-r));
		}
	}
	return r < 0 ? r : 0;
}

/* Out: accesses by number; `sector` is that of the next, the object stands where the sort does not look. */
static int add_known(const struct bt_event *access, uint64_t next, struct bt_sort *by_number)
{
	uint64_t object = (uint64_t)(access->device + 1) << CTL_BLOCK_BITS | access->time_ns;
	const struct bt_event e = {
		.time_ns = access->sector,
		.sector = next,
		.bytes = access->bytes,
		.action = (uint32_t)(object >> 32),
		.pid = (uint32_t)object,
	};

	return bt_sort_add(by_number, &e);
}

static int look_ahead(struct bt_sort *by_block, struct bt_sort *by_number)
{
	struct bt_event last, e;
	bool any = false;
	int r;

	r = bt_sort_finish(by_block);
	if (r < 0)
		return r;
	while ((r = bt_sort_next(by_block, &e)) == 0) {
		bool same = any && e.device == last.device && e.time_ns == last.time_ns;

		if (any) {
			r = add_known(&last, same ? e.sector : NEVER, by_number);
			if (r < 0)
				return r;
		}
		last = e;
		any = true;
	}
	if (r < 0)
		return r;
	r = any ? add_known(&last, NEVER, by_number) : 0;
	return r < 0 ? r : bt_sort_finish(by_number);
}

static int write_accesses(struct bt_sort *by_number, struct ctl_out *out)
{
	struct bt_event e;
	int r = 0;

	while (!out->error && (r = bt_sort_next(by_number, &e)) == 0) {
		uint32_t seconds = htole32(e.bytes), size = htole32(CTL_BLOCK_BYTES);
		uint64_t object = htole64((uint64_t)e.action << 32 | e.pid);
		uint64_t next = htole64(e.sector);
		char *p = ctl_out_room(out, RECORD_BYTES);

		memcpy(p, &seconds, 4);
		memcpy(p + 4, &object, 8);
		memcpy(p + 12, &size, 4);
		memcpy(p + 16, &next, 8);
		ctl_out_take(out, RECORD_BYTES);
	}
	return r < 0 ? r : 0;
}

int export_oracle(const struct ctl *c, struct iot_scan *scan, const char *note, struct ctl_out *out,
		  struct export_stats *stats, struct iot_error *err)
{
	_cleanup_(ctl_asked_freep) struct ctl_asked_list *list = NULL;
	_cleanup_(bt_sort_freep) struct bt_sort *by_block = NULL;
	_cleanup_(bt_sort_freep) struct bt_sort *by_number = NULL;
	struct ctl_asked_stats asked;
	int r;

	(void)c;
	(void)note;
	r = ctl_asked_read(scan, ctl_asked_has_blocks, &list, &asked, err);
	if (r < 0)
		return r;
	stats->requests = asked.requests;
	stats->left_out = asked.left_out;
	stats->queue_time_unknown = asked.without_start;
	r = ctl_asked_sort_new(list, &by_block);
	if (r == 0)
		r = ctl_asked_sort_new(list, &by_number);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	r = add_accesses(list, asked.first_ns, by_block, err);
	if (r < 0)
		return r;
	r = look_ahead(by_block, by_number);
	if (r == 0)
		r = write_accesses(by_number, out);
	return r < 0 ? iot_error_set(err, r, "cannot sort: %s", strerror(-r)) : 0;
}
