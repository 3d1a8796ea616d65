// SPDX-License-Identifier: BSD-2-Clause
/*
 * export-blktrace.c - blktrace version 7: per device and CPU one file <disk>.blktrace.<cpu>, as
 * blktrace itself leaves them, for blkparse -i, btt and (after blkparse -d) fio --read_iolog.
 *
 * What the readers rely on: 48-byte events, native endian, in time order within a file, sequence
 * numbers from 1 per file; a file for every CPU from 0 on (blkparse stops at the first that is
 * missing, so quiet CPUs have empty ones); device numbers as the kernel's dev_t, which is how ours
 * are too. The first file of a device begins with notes, not numbered: the wall clock, the names
 * of all processes (blkparse keeps the first name of a pid), and one message with the verdict.
 *
 * Times are relative to the first event, which is at 1 ns: 0 means "not known" to blkparse.
 */
#include <fcntl.h>
#include <linux/blktrace_api.h>

#include "daemon/ctl/export.h"

#define MAX_DEVICES 4096U
#define MAX_PROCESSES ((size_t)1 << 22)
#define FIRST_NS 1U

struct device {
	uint32_t dev;
	char name[80]; /* safe as a file name, unique */
};

struct process {
	uint32_t pid;
	uint32_t device;
	char comm[IOT_COMM_LEN];
	bool used;
};

struct exporter {
	int dirfd;
	struct device *devices;
	uint32_t n_devices;
	struct process *processes; /* open addressing; capacity is a power of two */
	size_t n_processes;
	size_t processes_size;
	struct export_clock clock;
	const uint8_t *machine_id;
	uint64_t first_ns;
	const char *note;
	/* the file being written */
	struct ctl_out out;
	int fd;
	uint32_t device;
	uint32_t cpu;
	uint32_t sequence;
};

static void exporter_done(struct exporter *x)
{
	free(x->devices);
	free(x->processes);
	export_clock_done(&x->clock);
	ctl_out_done(&x->out);
	if (x->fd >= 0)
		close(x->fd);
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* A name from a file becomes a file name: no path, no hidden file, no surprise in a shell. */
static void safe_name(const struct exporter *x, const char *name, uint32_t dev, char *ret,
		      size_t size)
{
	size_t n = 0;

	for (; name && name[n] && n < size - 32; n++) {
		char ch = name[n];
		bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			     (ch >= '0' && ch <= '9') || ch == '-' || ch == '!' || (ch == '.' && n);

		ret[n] = plain ? ch : '_';
	}
	ret[n] = '\0';
	if (n) {
		uint32_t i = 0;

		while (i < x->n_devices && strcmp(x->devices[i].name, ret) != 0)
			i++;
		if (i == x->n_devices)
			return;
		ret[n++] = '-'; /* two disks of one name: renamed, or numbered anew */
	}
	snprintf(ret + n, size - n, "%u-%u", IOT_DEV_MAJOR(dev), IOT_DEV_MINOR(dev));
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
	d = &x->devices[x->n_devices];
	d->dev = dev;
	safe_name(x, name, dev, d->name, sizeof(d->name));
	*ret = x->n_devices++;
	return 0;
}

static struct process *process_slot(struct process *table, size_t size, uint32_t pid,
				    uint32_t device)
{
	size_t i = (pid * 0x9e3779b1U + device * 0x85ebca6bU) & (size - 1);

	while (table[i].used && (table[i].pid != pid || table[i].device != device))
		i = (i + 1) & (size - 1);
	return &table[i];
}

static int grow_processes(struct exporter *x)
{
	size_t size = x->processes_size ? x->processes_size * 2 : 1024;
	struct process *table;

	if (size > 2 * MAX_PROCESSES)
		return -E2BIG;
	table = calloc(size, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < x->processes_size; i++)
		if (x->processes[i].used)
			*process_slot(table, size, x->processes[i].pid, x->processes[i].device) =
				x->processes[i];
	free(x->processes);
	x->processes = table;
	x->processes_size = size;
	return 0;
}

static int note_process(struct exporter *x, const struct iot_request *req, uint32_t device)
{
	struct process *p;
	int r;

	if (req->submitter == IOT_SUBMITTER_NONE || !req->comm[0])
		return 0;
	if (2 * (x->n_processes + 1) > x->processes_size) {
		r = grow_processes(x);
		if (r < 0)
			return r;
	}
	p = process_slot(x->processes, x->processes_size, req->pid, device);
	if (p->used)
		return 0;
	*p = (struct process){.pid = req->pid, .device = device, .used = true};
	memcpy(p->comm, req->comm, sizeof(p->comm));
	p->comm[sizeof(p->comm) - 1] = '\0';
	x->n_processes++;
	return 0;
}

/* ---- files ------------------------------------------------------------------------------------- */

static void put_event(struct exporter *x, struct blk_io_trace *t, const void *pdu)
{
	t->magic = BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION;
	t->device = x->devices[x->device].dev;
	t->cpu = x->cpu;
	ctl_out_write(&x->out, t, sizeof(*t));
	if (t->pdu_len)
		ctl_out_write(&x->out, pdu, t->pdu_len);
}

static void put_notes(struct exporter *x)
{
	uint32_t clock[2] = {(uint32_t)(x->first_ns / 1000000000),
			     (uint32_t)(x->first_ns % 1000000000)};
	struct blk_io_trace t = {
		.time = FIRST_NS, .action = BLK_TN_TIMESTAMP, .pdu_len = sizeof(clock)};

	put_event(x, &t, clock);
	for (size_t i = 0; i < x->processes_size; i++) {
		const struct process *p = &x->processes[i];

		if (!p->used || p->device != x->device)
			continue;
		t = (struct blk_io_trace){.time = FIRST_NS,
					  .action = BLK_TN_PROCESS,
					  .pid = p->pid,
					  .pdu_len = sizeof(p->comm)};
		put_event(x, &t, p->comm);
	}
	t = (struct blk_io_trace){.time = FIRST_NS,
				  .action = BLK_TN_MESSAGE,
				  .pdu_len = (uint16_t)IOT_MIN(strlen(x->note), 127U)};
	put_event(x, &t, x->note);
}

static int close_file(struct exporter *x)
{
	int r;

	if (x->fd < 0)
		return 0;
	r = ctl_out_flush(&x->out);
	if (close(x->fd) < 0 && r == 0)
		r = -errno;
	x->fd = -EBADF;
	return r;
}

static int open_file(struct exporter *x, uint32_t cpu)
{
	char name[128];
	int r;

	r = close_file(x);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s.blktrace.%u", x->devices[x->device].name, cpu);
	x->fd = openat(x->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (x->fd < 0)
		return -errno;
	x->out.fd = x->fd;
	x->cpu = cpu;
	x->sequence = 0;
	if (cpu == 0)
		put_notes(x);
	return 0;
}

/* The file of (device, cpu), and every one that has to lie before it. */
static int reach_file(struct exporter *x, uint32_t device, uint32_t cpu)
{
	int r;

	if (x->fd < 0 || x->device != device) {
		r = close_file(x);
		if (r < 0)
			return r;
		x->device = device;
		r = open_file(x, 0);
		if (r < 0)
			return r;
	}
	while (x->cpu < cpu) {
		r = open_file(x, x->cpu + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_files(struct exporter *x, struct bt_sort *sort)
{
	struct bt_event e;
	int r;

	r = bt_sort_finish(sort);
	if (r < 0)
		return r;
	while ((r = bt_sort_next(sort, &e)) == 0) {
		struct blk_io_trace t = {
			.time = e.time_ns - x->first_ns + FIRST_NS,
			.sector = e.sector,
			.bytes = e.bytes,
			.action = e.action,
			.pid = e.pid,
			.error = e.error,
		};

		r = reach_file(x, e.device, e.cpu);
		if (r < 0)
			return r;
		t.sequence = ++x->sequence;
		put_event(x, &t, NULL);
		if (x->out.error)
			return x->out.error;
	}
	return r < 0 ? r : close_file(x);
}

/* ---- requests ---------------------------------------------------------------------------------- */

static int add_request(struct exporter *x, struct bt_sort *sort, const struct iot_request *req,
		       const struct iot_segment *s, const char *disk, struct export_stats *stats)
{
	struct bt_event events[BT_MAX_EVENTS];
	uint64_t offset = 0;
	uint32_t device = 0;
	size_t n;
	int r;

	r = find_device(x, req->dev, disk, &device);
	if (r == 0)
		r = note_process(x, req, device);
	if (r == 0)
		r = export_clock_offset(&x->clock, s, &offset);
	if (r < 0)
		return r;
	n = bt_translate(req, device, offset, events);
	for (size_t i = 0; i < n; i++) {
		x->first_ns = IOT_MIN(x->first_ns, events[i].time_ns);
		r = bt_sort_add(sort, &events[i]);
		if (r < 0)
			return r;
	}
	stats->requests++;
	stats->queue_time_unknown += !req->start_ns;
	stats->requeue_time_estimated += req->requeues > 0;
	return 0;
}

static int read_requests(struct exporter *x, struct iot_scan *scan, struct bt_sort *sort,
			 struct export_stats *stats, struct iot_error *err)
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
				"segments of several hosts: a blktrace has one; name those of "
				"one host, or use csv or jsonl");
		x->machine_id = machine;
		ctl_naming_set(&naming, s, &req);
		r = add_request(x, sort, &req, s, render.disk, stats);
		if (r < 0)
			return iot_error_set(err, r, "cannot sort the events: %s", strerror(-r));
	}
	return r < 0 ? r : 0;
}

int export_blktrace(struct iot_scan *scan, const char *dir, const char *note,
		    struct export_stats *ret, struct iot_error *err)
{
	_cleanup_(exporter_done) struct exporter x = {
		.note = note, .fd = -EBADF, .first_ns = UINT64_MAX};
	_cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(bt_sort_freep) struct bt_sort *sort = NULL;
	struct export_stats stats = {0};
	int r;

	if (dirfd < 0)
		return iot_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	x.dirfd = dirfd;
	r = ctl_out_init(&x.out, -EBADF);
	if (r == 0)
		r = bt_sort_new(dirfd, BT_SORT_EVENTS, bt_order_files, &sort);
	if (r < 0)
		return iot_error_set(err, r, "%s", strerror(-r));
	r = read_requests(&x, scan, sort, &stats, err);
	if (r < 0)
		return r;
	r = write_files(&x, sort);
	if (r < 0)
		return iot_error_set(err, r, "cannot write below %s: %s", dir, strerror(-r));
	*ret = stats;
	return 0;
}
