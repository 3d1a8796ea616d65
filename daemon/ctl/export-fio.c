// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-fio.c - an I/O log of fio, version 3 (fio 3.31 and later): what was asked of which disk, in the
 * order and at the times it was asked. `fio --read_iolog=FILE` replays it, --replay_redirect elsewhere.
 *
 * A line a request: microseconds since the first one, the device's file, what to do, offset and length.
 * fio knows reads, writes, trims and syncs: what else there is (zone management, write zeroes, drivers'
 * commands) is left out and counted. The format has no place for the verdict; it stands in the sidecar.
 */
#include "daemon/ctl/asked.h"
#include "daemon/ctl/export.h"

#define PATH_MAX_BYTES 96U

static const char *const action_names[] = {
	[IOT_OP_READ] = "read",	   [IOT_OP_WRITE] = "write",	   [IOT_OP_FLUSH] = "sync",
	[IOT_OP_DISCARD] = "trim", [IOT_OP_SECURE_ERASE] = "trim", [IOT_OP_ZONE_APPEND] = "write",
};

static bool has_action(const struct iot_request *req)
{
	if (req->op >= IOT_ARRAY_SIZE(action_names) || !action_names[req->op])
		return false;
	/* Offsets are bytes: no disk has more of them. */
	return req->op == IOT_OP_FLUSH || (req->sector <= UINT64_MAX / 512 && req->bytes);
}

/* The log is split at blanks; '!' is a '/' in /dev (cciss!c0d0). */
static void device_path(const struct ctl_asked_device *d, char ret[PATH_MAX_BYTES])
{
	size_t n = (size_t)snprintf(ret, PATH_MAX_BYTES, "/dev/%s", d->name);

	if (!d->name[0]) {
		n = (size_t)snprintf(ret, PATH_MAX_BYTES, "/dev/block/");
		*iot_put_devno(ret + n, d->dev) = '\0';
		return;
	}
	for (size_t i = 5; i < n; i++) {
		if (ret[i] == '!')
			ret[i] = '/';
		else if (ret[i] <= ' ' || ret[i] >= 0x7f)
			ret[i] = '_';
	}
}

/* "1234 /dev/sda read 4096 512"; without a request, "1234 /dev/sda open" */
static void put_line(struct ctl_out *out, uint64_t usec, const struct ctl_asked_device *d,
		     const char *what, const struct ctl_asked *a)
{
	char *buf = ctl_out_room(out, IOT_RENDER_MAX), *p, path[PATH_MAX_BYTES];
	bool flush = a && a->op == IOT_OP_FLUSH;

	device_path(d, path);
	p = iot_put_u64(buf, usec);
	*p++ = ' ';
	p = iot_put_str(p, path);
	*p++ = ' ';
	p = iot_put_str(p, what);
	if (a) {
		*p++ = ' ';
		p = iot_put_u64(p, flush ? 0 : a->sector * 512);
		*p++ = ' ';
		p = iot_put_u64(p, flush ? 0 : a->bytes);
	}
	*p++ = '\n';
	ctl_out_take(out, (size_t)(p - buf));
}

static int write_log(struct ctl_asked_list *list, uint64_t first_ns, struct ctl_out *out,
		     struct iot_error *err)
{
	static const char header[] = "fio version 3 iolog\n";
	const struct ctl_asked_device *devices;
	struct ctl_asked a;
	uint64_t usec = 0;
	uint32_t n;
	int r = 0;

	devices = ctl_asked_devices(list, &n);
	ctl_out_write(out, header, sizeof(header) - 1);
	for (uint32_t i = 0; i < n; i++)
		put_line(out, 0, &devices[i], "add", NULL);
	for (uint32_t i = 0; i < n; i++)
		put_line(out, 0, &devices[i], "open", NULL);
	while (!out->error && (r = ctl_asked_next(list, &a, err)) == 0) {
		usec = (a.time_ns - first_ns) / 1000;
		put_line(out, usec, &devices[a.device], action_names[a.op], &a);
	}
	for (uint32_t i = 0; i < n; i++)
		put_line(out, usec, &devices[i], "close", NULL);
	return r < 0 ? r : 0;
}

int export_fio(const struct ctl *c, struct iot_scan *scan, const char *note, struct ctl_out *out,
	       struct export_stats *stats, struct iot_error *err)
{
	_cleanup_(ctl_asked_freep) struct ctl_asked_list *list = NULL;
	struct ctl_asked_stats asked;
	int r;

	(void)c;
	(void)note;
	r = ctl_asked_read(scan, has_action, &list, &asked, err);
	if (r < 0)
		return r;
	if (!ctl_asked_one_host(list))
		return iot_error_set(err, -EXDEV,
				     "segments of several hosts: an I/O log has one; name those of "
				     "one host, or use csv or jsonl");
	stats->requests = asked.requests;
	stats->left_out = asked.left_out;
	stats->queue_time_unknown = asked.without_start;
	return write_log(list, asked.first_ns, out, err);
}
