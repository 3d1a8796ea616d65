// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-fio.c - an I/O log of fio, version 3 (fio 3.31 and later): what was asked of which disk, in the
 * order and at the times it was asked. `fio --read_iolog=FILE` replays it, --replay_redirect elsewhere.
 *
 * A line a request: microseconds since the first one, the device's file, what to do, offset and
 * length. A request is asked for when it starts; its start was not seen if it was in flight when
 * recording began: then when it was inserted, or issued. fio knows reads, writes, trims and syncs:
 * what else there is (zone management, write zeroes, drivers' commands) is left out and counted. The
 * format has no place for the verdict; it stands beside, in the sidecar.
 */
#include <fcntl.h>

#include "daemon/ctl/export.h"

#define SORT_EVENTS ((size_t)512 * 1024) /* 24 MiB */
#define MAX_DEVICES 4096U

static const char *const action_names[] = {
	[IOT_OP_READ] = "read",	   [IOT_OP_WRITE] = "write",	   [IOT_OP_FLUSH] = "sync",
	[IOT_OP_DISCARD] = "trim", [IOT_OP_SECURE_ERASE] = "trim", [IOT_OP_ZONE_APPEND] = "write",
};

struct device {
	uint32_t dev;
	char path[96];
};

struct exporter {
	struct device *devices;
	uint32_t n_devices;
	const uint8_t *machine_id;
	struct export_clock clock;
	struct bt_sort *sort;
	uint64_t first_ns;
};

static void exporter_done(struct exporter *x)
{
	free(x->devices);
	export_clock_done(&x->clock);
	bt_sort_freep(&x->sort);
}

/* The log is split at blanks; '!' is a '/' in /dev (cciss!c0d0). */
static void device_path(const char *name, uint32_t dev, char *ret, size_t size)
{
	size_t n;

	if (!name || !*name) {
		n = (size_t)snprintf(ret, size, "/dev/block/");
		*iot_put_devno(ret + n, dev) = '\0';
		return;
	}
	n = (size_t)snprintf(ret, size, "/dev/%s", name);
	for (size_t i = 5; i < IOT_MIN(n, size - 1); i++) {
		if (ret[i] == '!')
			ret[i] = '/';
		else if (ret[i] <= ' ' || ret[i] >= 0x7f)
			ret[i] = '_';
	}
}

static int find_device(struct exporter *x, uint32_t dev, const char *name, uint32_t *ret)
{
	struct device *d;

	for (uint32_t i = 0; i < x->n_devices; i++)
		if (x->devices[i].dev == dev) {
			*ret = i;
			return 0;
		}
	if (x->n_devices == MAX_DEVICES)
		return -E2BIG;
	d = reallocarray(x->devices, x->n_devices + 1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	x->devices = d;
	d += x->n_devices;
	d->dev = dev;
	device_path(name, dev, d->path, sizeof(d->path));
	*ret = x->n_devices++;
	return 0;
}

static bool has_action(const struct iot_request *req)
{
	if (req->op >= IOT_ARRAY_SIZE(action_names) || !action_names[req->op])
		return false;
	/* Offsets are bytes: no disk has more of them. */
	return req->op == IOT_OP_FLUSH || (req->sector <= UINT64_MAX / 512 && req->bytes);
}

static uint64_t asked_ns(const struct iot_request *req)
{
	return req->start_ns	? req->start_ns
	       : req->insert_ns ? req->insert_ns
	       : req->issue_ns	? req->issue_ns
				: req->complete_ns;
}

static int add_request(struct exporter *x, const struct iot_request *req,
		       const struct iot_segment *s, const char *disk)
{
	/* In one order for all devices, so which it is stands where the sort does not look. */
	struct bt_event e = {.action = req->op};
	uint64_t offset_ns;
	int r;

	r = find_device(x, req->dev, disk, &e.pid);
	if (r == 0)
		r = export_clock_offset(&x->clock, s, &offset_ns);
	if (r < 0)
		return r;
	e.time_ns = asked_ns(req) + offset_ns;
	if (req->op != IOT_OP_FLUSH) {
		e.sector = req->sector;
		e.bytes = req->bytes;
	}
	x->first_ns = IOT_MIN(x->first_ns, e.time_ns);
	return bt_sort_add(x->sort, &e);
}

static int read_requests(struct exporter *x, struct iot_scan *scan, struct export_stats *stats,
			 struct iot_error *err)
{
	struct iot_render render = {0};
	struct ctl_naming naming = {.render = &render};
	struct iot_request req;
	struct iot_segment *s;
	int r;

	while ((r = iot_scan_next(scan, &req, &s, err)) == 0) {
		const uint8_t *machine = iot_segment_info(s)->machine_id;

		if (x->machine_id && memcmp(x->machine_id, machine, 16) != 0)
			return iot_error_set(
				err, -EXDEV,
				"segments of several hosts: an I/O log has one; name those of one "
				"host, or use csv or jsonl");
		x->machine_id = machine;
		if (!has_action(&req)) {
			stats->left_out++;
			continue;
		}
		ctl_naming_set(&naming, s, &req);
		r = add_request(x, &req, s, render.disk);
		if (r < 0)
			return iot_error_set(err, r, "cannot sort the requests: %s", strerror(-r));
		stats->requests++;
		stats->queue_time_unknown += !req.start_ns;
	}
	return r < 0 ? r : 0;
}

/* "1234 /dev/sda" */
static char *put_head(char *p, uint64_t usec, const struct device *d)
{
	p = iot_put_u64(p, usec);
	*p++ = ' ';
	return iot_put_str(p, d->path);
}

static void put_all(const struct exporter *x, uint64_t usec, const char *what, struct ctl_out *out)
{
	for (uint32_t i = 0; i < x->n_devices; i++) {
		char *buf = ctl_out_room(out, IOT_RENDER_MAX), *p;

		p = put_head(buf, usec, &x->devices[i]);
		p = iot_put_str(p, what);
		ctl_out_take(out, (size_t)(p - buf));
	}
}

static int write_log(struct exporter *x, struct ctl_out *out)
{
	static const char header[] = "fio version 3 iolog\n";
	uint64_t usec = 0;
	struct bt_event e;
	int r;

	r = bt_sort_finish(x->sort);
	if (r < 0)
		return r;
	ctl_out_write(out, header, sizeof(header) - 1);
	put_all(x, 0, " add\n", out);
	put_all(x, 0, " open\n", out);
	while (!out->error && (r = bt_sort_next(x->sort, &e)) == 0) {
		char *buf = ctl_out_room(out, IOT_RENDER_MAX), *p;

		usec = (e.time_ns - x->first_ns) / 1000;
		p = put_head(buf, usec, &x->devices[e.pid]);
		*p++ = ' ';
		p = iot_put_str(p, action_names[e.action]);
		*p++ = ' ';
		p = iot_put_u64(p, e.sector * 512);
		*p++ = ' ';
		p = iot_put_u64(p, e.bytes);
		*p++ = '\n';
		ctl_out_take(out, (size_t)(p - buf));
	}
	put_all(x, usec, " close\n", out);
	return r < 0 ? r : 0;
}

int export_fio(const struct ctl *c, struct iot_scan *scan, const char *note, struct ctl_out *out,
	       struct export_stats *stats, struct iot_error *err)
{
	_cleanup_(exporter_done) struct exporter x = {.first_ns = UINT64_MAX};
	const char *temp = getenv("TMPDIR");
	_cleanup_close_ int dirfd = -EBADF;
	int r;

	(void)c;
	(void)note;
	if (!temp || !*temp)
		temp = "/var/tmp";
	dirfd = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return iot_error_set(err, -errno, "%s: %s; TMPDIR names another place to sort in",
				     temp, strerror(errno));
	r = bt_sort_new(dirfd, SORT_EVENTS, &x.sort);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	r = read_requests(&x, scan, stats, err);
	if (r < 0)
		return r;
	r = write_log(&x, out);
	return r < 0 ? iot_error_set(err, r, "cannot sort in %s: %s", temp, strerror(-r)) : 0;
}
