// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-blktrace.c - blktrace's binary events (linux/blktrace_api.h), version 7: a file for each CPU, or one stream of
 * all, as blkparse -d writes. Both byte orders: the magic tells which.
 *
 * Times are CLOCK_MONOTONIC of the machine; a note near the beginning has the wall clock of its own time. Events that
 * found no room in the kernel's buffer took no number (kernel/trace/blktrace.c, __blk_add_trace), and how many
 * these were blktrace prints and does not write. So holes in the numbers are cuts of files and streams that were
 * filtered, and no holes say nothing.
 */
#include <linux/blktrace_api.h>

#include "daemon/ctl/import.h"

/* Between two readings of clocks that make a note a machine may have been away so long; boots are further apart. */
#define MAX_CLOCK_GAP_NS 100000000U
#define CGROUP_BIT (1U << 8) /* __BLK_TA_CGROUP: an id is in front of the payload */

struct parser {
	struct import *im;
	struct import_input *in;
	bool swapped;
	bool named; /* the device of the file has its name */
};

static uint16_t get16(const struct parser *p, uint16_t v)
{
	return p->swapped ? __builtin_bswap16(v) : v;
}

static uint32_t get32(const struct parser *p, uint32_t v)
{
	return p->swapped ? __builtin_bswap32(v) : v;
}

static uint64_t get64(const struct parser *p, uint64_t v)
{
	return p->swapped ? __builtin_bswap64(v) : v;
}

static void to_native(const struct parser *p, struct blk_io_trace *t)
{
	t->magic = get32(p, t->magic);
	t->sequence = get32(p, t->sequence);
	t->time = get64(p, t->time);
	t->sector = get64(p, t->sector);
	t->bytes = get32(p, t->bytes);
	t->action = get32(p, t->action);
	t->pid = get32(p, t->pid);
	t->device = get32(p, t->device);
	t->cpu = get32(p, t->cpu);
	t->error = get16(p, t->error);
	t->pdu_len = get16(p, t->pdu_len);
}

static int broken(const struct parser *p, const char *what, struct iot_error *err)
{
	return iot_error_set(err, -EBADMSG, "%s: offset %llu: %s", p->in->path,
			     (unsigned long long)p->in->offset, what);
}

/* "nvme0n1" of ".../nvme0n1.blktrace.3": of the one device that the file has events of. */
static void name_device(struct parser *p, uint32_t dev)
{
	const char *slash = strrchr(p->in->path, '/'), *base = slash ? slash + 1 : p->in->path;
	const char *end = strstr(base, ".blktrace.");
	char name[64];

	p->named = true;
	if (!end || end == base || (size_t)(end - base) >= sizeof(name))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(end - base), base);
	import_device_name(p->im, dev, name);
}

/* The categories, upside down (export's bt_category()). */
static void set_op(struct import_event *e, uint32_t action)
{
	uint32_t tc = action >> BLK_TC_SHIFT;
	bool write = tc & BLK_TC_WRITE;

	if (tc & BLK_TC_PC)
		e->op = write ? IOT_OP_DRV_OUT : IOT_OP_DRV_IN;
	else if (tc & BLK_TC_DISCARD)
		e->op = IOT_OP_DISCARD;
	else if ((tc & BLK_TC_FLUSH) && !e->bytes)
		e->op = IOT_OP_FLUSH;
	else if (write)
		e->op = IOT_OP_WRITE;
	else
		e->op = e->bytes ? IOT_OP_READ : IOT_OP_OTHER;
	e->flush_bio = e->op == IOT_OP_FLUSH && write;
	e->flags = (tc & BLK_TC_SYNC ? IOT_FLAG_SYNC : 0) | (tc & BLK_TC_META ? IOT_FLAG_META : 0) |
		   (tc & BLK_TC_AHEAD ? IOT_FLAG_AHEAD : 0) | (tc & BLK_TC_FUA ? IOT_FLAG_FUA : 0) |
		   (tc & BLK_TC_FLUSH ? IOT_FLAG_PREFLUSH : 0);
}

/* -EXDEV: another wall clock than that of the notes before, so of two boots, or of two machines. */
static int add_clock(struct import *im, uint64_t offset_ns)
{
	if (!im->dated) {
		im->dated = true;
		im->realtime_offset_ns = offset_ns;
		return 0;
	}
	if (IOT_MIN(offset_ns - im->realtime_offset_ns, im->realtime_offset_ns - offset_ns) >
	    MAX_CLOCK_GAP_NS)
		return -EXDEV;
	return 0;
}

static int add_note(struct parser *p, const struct blk_io_trace *t, const char *pdu)
{
	uint32_t clock[2];

	switch (t->action & 0xffU) {
	case BLK_TN_PROCESS & 0xffU: {
		char comm[IOT_COMM_LEN] = {0};
		struct import_event e = {
			.act = IMPORT_PROCESS,
			.time_ns = t->time,
			.dev = t->device,
			.pid = t->pid,
			.comm = comm,
		};

		memcpy(comm, pdu, IOT_MIN((size_t)t->pdu_len, sizeof(comm)));
		return import_add(p->im, &e);
	}
	case BLK_TN_TIMESTAMP & 0xffU:
		if (t->pdu_len < sizeof(clock))
			return 0;
		memcpy(clock, pdu, sizeof(clock));
		return add_clock(p->im, (uint64_t)get32(p, clock[0]) * 1000000000U +
						get32(p, clock[1]) - t->time);
	default: /* a message */
		import_ignore(p->im);
		return 0;
	}
}

static int add_event(struct parser *p, const struct blk_io_trace *t)
{
	struct import_event e = {
		.time_ns = t->time,
		.sector = t->sector,
		.dev = t->device,
		.cpu = t->cpu,
		.pid = t->pid,
		.bytes = t->bytes,
		.act = (uint8_t)t->action,
		.error = t->error,
	};
	int r;

	r = import_sequence(p->im, t->device, t->cpu, t->sequence, t->time);
	if (r < 0)
		return r;
	switch (e.act) {
	case IMPORT_QUEUE:
	case IMPORT_BACKMERGE:
	case IMPORT_FRONTMERGE:
	case IMPORT_GETRQ:
	case IMPORT_REQUEUE:
	case IMPORT_ISSUE:
	case IMPORT_COMPLETE:
	case IMPORT_INSERT:
		set_op(&e, t->action & ~CGROUP_BIT);
		return import_add(p->im, &e);
	default: /* plugs, splits, remaps, drivers' words */
		import_ignore(p->im);
		return 0;
	}
}

static int check(const struct parser *p, const struct blk_io_trace *t, struct iot_error *err)
{
	char text[96];

	if ((t->magic & 0xffffff00U) != BLK_IO_TRACE_MAGIC)
		return broken(p, "no blktrace event begins here", err);
	if ((t->magic & 0xffU) != BLK_IO_TRACE_VERSION) {
		snprintf(text, sizeof(text), "blktrace version %u, this program reads version %u",
			 t->magic & 0xffU, BLK_IO_TRACE_VERSION);
		return broken(p, text, err);
	}
	if (t->cpu >= BT_MAX_CPUS)
		return broken(p, "an event of a CPU that cannot exist", err);
	return 0;
}

/* One event with its payload. */
static int parse_one(struct parser *p, struct iot_error *err)
{
	struct blk_io_trace t;
	const char *data;
	size_t n;
	int r;

	r = import_input_peek(p->in, sizeof(t), &data, &n, err);
	if (r < 0)
		return r;
	if (n == 0)
		return IMPORT_END;
	if (n < sizeof(t))
		return broken(p, "the file ends in the middle of an event", err);
	memcpy(&t, data, sizeof(t));
	to_native(p, &t);
	r = check(p, &t, err);
	if (r < 0)
		return r;
	r = import_input_peek(p->in, sizeof(t) + t.pdu_len, &data, &n, err);
	if (r < 0)
		return r;
	if (n < sizeof(t) + t.pdu_len)
		return broken(p, "the file ends in the middle of an event's payload", err);
	if (!p->named)
		name_device(p, t.device);
	r = t.action & BLK_TC_ACT(BLK_TC_NOTIFY) ? add_note(p, &t, data + sizeof(t))
						 : add_event(p, &t);
	if (r == -EXDEV)
		return broken(p,
			      "another wall clock than before: traces of two boots or machines; "
			      "import them one by one",
			      err);
	if (r < 0)
		return iot_error_set(err, r, "%s: offset %llu: %s", p->in->path,
				     (unsigned long long)p->in->offset,
				     r == -E2BIG ? "more devices than a trace can have"
						 : strerror(-r));
	import_input_take(p->in, sizeof(t) + t.pdu_len);
	return 0;
}

int import_blktrace(struct import *im, struct import_input *in, struct iot_error *err)
{
	struct parser p = {.im = im, .in = in};
	const char *data;
	uint32_t magic;
	size_t n;
	int r;

	r = import_input_peek(in, sizeof(magic), &data, &n, err);
	if (r < 0)
		return r;
	if (n == sizeof(magic)) {
		memcpy(&magic, data, sizeof(magic));
		p.swapped = (__builtin_bswap32(magic) & 0xffffff00U) == BLK_IO_TRACE_MAGIC;
	}
	while ((r = parse_one(&p, err)) == 0)
		;
	return r < 0 ? r : 0;
}
