// SPDX-License-Identifier: BSD-2-Clause
/* asked.c - see asked.h; the sorting is blktrace-sort.c's. */
#include "daemon/ctl/asked.h"

#include <fcntl.h>

#include "daemon/ctl/export.h"

#define SORT_EVENTS ((size_t)512 * 1024) /* 24 MiB */
#define MAX_DEVICES 4096U

struct ctl_asked_list {
	struct ctl_asked_device *devices;
	uint32_t n_devices;
	struct export_clock clock;
	struct bt_sort *sort;
	const char *temp;
	int dirfd;
};

struct ctl_asked_list *ctl_asked_free(struct ctl_asked_list *l)
{
	if (!l)
		return NULL;
	free(l->devices);
	export_clock_done(&l->clock);
	bt_sort_free(l->sort);
	if (l->dirfd >= 0)
		close(l->dirfd);
	free(l);
	return NULL;
}

static int find_device(struct ctl_asked_list *l, const struct iot_segment *s, uint32_t dev,
		       const char *name, uint32_t *ret)
{
	const uint8_t *machine = iot_segment_info(s)->machine_id;
	struct ctl_asked_device *d;

	for (uint32_t i = 0; i < l->n_devices; i++) {
		d = &l->devices[i];
		if (d->dev == dev && memcmp(d->machine_id, machine, sizeof(d->machine_id)) == 0) {
			*ret = i;
			return 0;
		}
	}
	if (l->n_devices == MAX_DEVICES)
		return -E2BIG;
	d = reallocarray(l->devices, l->n_devices + 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	l->devices = d;
	d += l->n_devices;
	*d = (struct ctl_asked_device){.dev = dev};
	memcpy(d->machine_id, machine, sizeof(d->machine_id));
	snprintf(d->name, sizeof(d->name), "%s", name ? name : "");
	*ret = l->n_devices++;
	return 0;
}

bool ctl_asked_has_blocks(const struct iot_request *req)
{
	return (req->op == IOT_OP_READ || req->op == IOT_OP_WRITE ||
		req->op == IOT_OP_ZONE_APPEND) &&
	       req->bytes &&
	       req->sector < ((1ULL << CTL_BLOCK_BITS) - UINT32_MAX) * (CTL_BLOCK_BYTES / 512);
}

void ctl_asked_blocks(const struct ctl_asked *a, uint64_t *ret_first, uint64_t *ret_last)
{
	*ret_first = a->sector * 512 / CTL_BLOCK_BYTES;
	*ret_last = (a->sector * 512 + a->bytes - 1) / CTL_BLOCK_BYTES;
}

static uint64_t asked_ns(const struct iot_request *req)
{
	return req->start_ns	? req->start_ns
	       : req->insert_ns ? req->insert_ns
	       : req->issue_ns	? req->issue_ns
				: req->complete_ns;
}

static int add_request(struct ctl_asked_list *l, const struct iot_request *req,
		       const struct iot_segment *s, const char *disk, struct ctl_asked_stats *stats)
{
	/* In one order for all devices, so which it is stands where the sort does not look. */
	struct bt_event e = {.action = req->op | (uint32_t)req->swap << 8};
	uint64_t offset_ns = 0;
	int r;

	r = find_device(l, s, req->dev, disk, &e.pid);
	if (r == 0)
		r = export_clock_offset(&l->clock, s, &offset_ns);
	if (r < 0)
		return r;
	e.time_ns = asked_ns(req) + offset_ns;
	e.sector = req->sector == IOT_SECTOR_NONE ? 0 : req->sector;
	e.bytes = req->bytes;
	stats->first_ns = IOT_MIN(stats->first_ns, e.time_ns);
	stats->last_ns = IOT_MAX(stats->last_ns, e.time_ns);
	stats->without_start += !req->start_ns;
	stats->requests++;
	return bt_sort_add(l->sort, &e);
}

int ctl_asked_read(struct iot_scan *scan, ctl_asked_fn *wanted, struct ctl_asked_list **ret,
		   struct ctl_asked_stats *ret_stats, struct iot_error *err)
{
	_cleanup_(ctl_asked_freep) struct ctl_asked_list *l = calloc(1, sizeof(*l));
	struct ctl_asked_stats stats = {.first_ns = UINT64_MAX};
	struct iot_render render = {0};
	struct ctl_naming naming = {.render = &render};
	struct iot_request req;
	struct iot_segment *s;
	int r;

	if (!l)
		return iot_error_set(err, -ENOMEM, "out of memory");
	l->temp = getenv("TMPDIR");
	if (!l->temp || !*l->temp)
		l->temp = "/var/tmp";
	l->dirfd = open(l->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dirfd < 0)
		return iot_error_set(err, -errno, "%s: %s; TMPDIR names another place to sort in",
				     l->temp, strerror(errno));
	r = bt_sort_new(l->dirfd, SORT_EVENTS, bt_order_files, &l->sort);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	while ((r = iot_scan_next(scan, &req, &s, err)) == 0) {
		if (!wanted(&req)) {
			stats.left_out++;
			continue;
		}
		ctl_naming_set(&naming, s, &req);
		r = add_request(l, &req, s, render.disk, &stats);
		if (r < 0)
			return iot_error_set(err, r, "cannot sort the requests in %s: %s", l->temp,
					     strerror(-r));
	}
	if (r < 0)
		return r;
	r = bt_sort_finish(l->sort);
	if (r < 0)
		return iot_error_set(err, r, "cannot sort the requests in %s: %s", l->temp,
				     strerror(-r));
	*ret = IOT_TAKE_PTR(l);
	*ret_stats = stats;
	return 0;
}

int ctl_asked_next(struct ctl_asked_list *l, struct ctl_asked *ret, struct iot_error *err)
{
	struct bt_event e;
	int r = bt_sort_next(l->sort, &e);

	if (r == BT_SORT_END)
		return CTL_ASKED_END;
	if (r < 0)
		return iot_error_set(err, r, "cannot read what was sorted in %s: %s", l->temp,
				     strerror(-r));
	*ret = (struct ctl_asked){
		.time_ns = e.time_ns,
		.sector = e.sector,
		.bytes = e.bytes,
		.device = e.pid,
		.op = (uint8_t)e.action,
		.swap = (uint8_t)(e.action >> 8),
	};
	return 0;
}

int ctl_asked_sort_new(const struct ctl_asked_list *l, struct bt_sort **ret)
{
	return bt_sort_new(l->dirfd, SORT_EVENTS, bt_order_files, ret);
}

const struct ctl_asked_device *ctl_asked_devices(const struct ctl_asked_list *l, uint32_t *ret_n)
{
	*ret_n = l->n_devices;
	return l->devices;
}

bool ctl_asked_one_host(const struct ctl_asked_list *l)
{
	for (uint32_t i = 1; i < l->n_devices; i++)
		if (memcmp(l->devices[i].machine_id, l->devices[0].machine_id,
			   sizeof(l->devices[0].machine_id)) != 0)
			return false;
	return true;
}
