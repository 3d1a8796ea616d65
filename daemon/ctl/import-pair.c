// SPDX-License-Identifier: BSD-2-Clause
/*
 * import-pair.c - events in order of time, into requests.
 *
 * No source says which request an event is of, so they are told apart as the tools that read them do: by device,
 * first sector and operation, and what was there first ends first. Two requests of one place at once may get each
 * other's end; how often that was possible is counted. The way of a request:
 *
 *	Q ─► G ─► (M, F: more data) ─► I ─► D ─► (R ─► D) ─► C
 *
 * each step of which may be missing: whatever comes makes an entry, or changes the one it finds. An entry is found
 * by where it begins, and while it can still grow also by where it ends. What has no C is in flight; too many of
 * these make a trace that has no ends, and the older half is set aside.
 */
#include "daemon/ctl/import-entry.h"

struct name {
	uint64_t key; /* device << 32 | pid; + 1, 0 = free */
	uint32_t comm;
};

struct import_pair {
	const struct import *im;
	struct import_output out;
	struct import_counts counts;
	struct import_entries open;
	struct name *names; /* blktrace: who has a pid now; open addressing */
	uint32_t n_names, names_size;
	uint64_t *ids; /* per CPU: requests begun there */
	uint64_t seed;
};

/* The caller fills it and links it. */
static int new_entry(struct import_pair *p, const struct bt_event *e, uint8_t state,
		     struct import_entry **ret)
{
	struct import_entry *x = import_entry_new(&p->open, e, state);

	if (!x) {
		int r = p->out.crowded(p->out.arg);

		if (r < 0)
			return r;
		p->counts.set_aside += import_entries_halve(&p->open);
		x = import_entry_new(&p->open, e, state);
	}
	if (!x)
		return -ENOSPC;
	*ret = x;
	return 0;
}

/* ---- who ---------------------------------------------------------------------------------------- */

static struct name *name_slot(struct import_pair *p, uint64_t key)
{
	uint64_t i = iot_table_hash(&key, sizeof(key), p->seed);

	for (;; i++) {
		struct name *n = &p->names[i & (p->names_size - 1)];

		if (!n->key || n->key == key)
			return n;
	}
}

static int note_name(struct import_pair *p, const struct bt_event *e)
{
	uint64_t key = ((uint64_t)e->device << 32 | e->pid) + 1;
	struct name *n = p->names_size ? name_slot(p, key) : NULL;

	if (n && n->key) {
		n->comm = e->comm;
		return 0;
	}
	if (p->n_names == IMPORT_MAX_NAMES) {
		p->counts.names_dropped++;
		return 0;
	}
	if (2 * (p->n_names + 1) > p->names_size) {
		uint32_t size = p->names_size ? 2 * p->names_size : 1024, old = p->names_size;
		struct name *before = p->names;

		p->names = calloc(size, sizeof(*p->names));
		if (!p->names) {
			p->names = before;
			return -ENOMEM;
		}
		p->names_size = size;
		for (uint32_t i = 0; i < old; i++)
			if (before[i].key)
				*name_slot(p, before[i].key) = before[i];
		free(before);
	}
	n = name_slot(p, key);
	p->n_names++;
	*n = (struct name){.key = key, .comm = e->comm};
	return 0;
}

static void take_submitter(struct import_pair *p, struct import_entry *x, const struct bt_event *e,
			   uint8_t submitter)
{
	x->submitter = submitter;
	x->pid = e->pid;
	x->comm = e->comm;
	if (!x->comm && p->names_size)
		x->comm = name_slot(p, ((uint64_t)e->device << 32 | e->pid) + 1)->comm;
}

/* ---- requests ----------------------------------------------------------------------------------- */

static void fill(const struct import_pair *p, const struct import_entry *x, struct iot_request *r)
{
	/* The empty write that asked for a flush is a write, as it is to the kernel's counters. */
	uint8_t op = x->flush_bio ? IOT_OP_WRITE : x->op;
	bool placeless = op == IOT_OP_FLUSH || op == IOT_OP_DRV_IN || op == IOT_OP_DRV_OUT;

	*r = (struct iot_request){
		.start_ns = x->start_ns,
		.insert_ns = x->insert_ns,
		.issue_ns = x->issue_ns,
		.issue_last_ns = x->issue_last_ns,
		.sector = placeless ? IOT_SECTOR_NONE : x->first_sector,
		.dev = p->im->devices[x->device].dev,
		.part = p->im->devices[x->device].dev,
		.bytes = x->bytes,
		.bytes_done = x->done,
		.flags = x->flags | (x->start_ns ? 0 : IOT_FLAG_NO_START) |
			 (x->partial ? IOT_FLAG_PARTIAL : 0),
		.pid = x->pid,
		.issue_cpu = x->issue_cpu,
		.complete_cpu = x->issue_cpu,
		.requeues = x->requeues,
		.merges = x->merges,
		.hwq = IOT_HWQ_NONE,
		.op = op,
		.submitter = x->submitter,
	};
	if (x->comm) {
		memcpy(r->comm, p->im->names[x->comm - 1].comm, sizeof(r->comm));
		r->tgid = p->im->names[x->comm - 1].tgid;
	} else if (x->submitter != IOT_SUBMITTER_NONE && !x->pid) {
		r->submitter = IOT_SUBMITTER_NONE;
	}
	if (!r->start_ns && x->queue_ns) {
		r->start_ns = x->queue_ns;
		r->flags &= ~(uint32_t)IOT_FLAG_NO_START;
	}
}

int import_pair_open(const struct import_pair *p, struct iot_request **ret, size_t *ret_n)
{
	struct iot_request *all = calloc((size_t)p->open.n + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->open.n_used; i++)
		if (p->open.all[i].state)
			fill(p, &p->open.all[i], &all[n++]);
	*ret = all;
	*ret_n = n;
	return 0;
}

/* ---- events ------------------------------------------------------------------------------------- */

/* What was found becomes a request that can grow, as far as e tells of it; nothing found: a new one. */
static int hold(struct import_pair *p, struct import_entry *x, const struct bt_event *e,
		uint8_t submitter, struct import_entry **ret)
{
	if (x) {
		import_entry_unlink(&p->open, x);
		if (x->state == IMPORT_QUEUED && !x->start_ns)
			x->start_ns = x->queue_ns;
		x->state = IMPORT_HELD;
		x->bytes = x->left = e->bytes;
		x->end = e->sector + (e->bytes >> 9);
	} else {
		int r = new_entry(p, e, IMPORT_HELD, &x);

		if (r < 0)
			return r;
		take_submitter(p, x, e, submitter);
	}
	x->flags = IMPORT_FLAGS(e->action);
	import_entry_link(&p->open, x);
	*ret = x;
	return 0;
}

static int queued(struct import_pair *p, const struct bt_event *e)
{
	struct import_entry *x;
	int r = new_entry(p, e, IMPORT_QUEUED, &x);

	if (r < 0)
		return r;
	x->queue_ns = e->time_ns;
	take_submitter(p, x, e, IOT_SUBMITTER_START);
	import_entry_link(&p->open, x);
	return 0;
}

static int started(struct import_pair *p, const struct bt_event *e, bool accounted)
{
	struct import_entry *x =
		accounted ? import_entry_find(&p->open, e, IMPORT_HELD, false, NULL) : NULL;
	int r;

	if (!x)
		x = import_entry_find(&p->open, e, IMPORT_QUEUED, false, NULL);
	r = hold(p, x, e, IOT_SUBMITTER_START, &x);
	if (r == 0)
		x->start_ns = e->time_ns;
	return r;
}

static int inserted(struct import_pair *p, const struct bt_event *e)
{
	struct import_entry *x = import_entry_find(&p->open, e, IMPORT_HELD, false, NULL);
	int r;

	if (!x)
		x = import_entry_find(&p->open, e, IMPORT_REQUEUED, false, NULL);
	if (x && x->state == IMPORT_REQUEUED)
		return 0; /* back in the scheduler: the first time counts */
	if (!x)
		x = import_entry_find(&p->open, e, IMPORT_QUEUED, true, NULL);
	r = hold(p, x, e, IOT_SUBMITTER_INSERT, &x);
	if (r == 0 && !x->insert_ns)
		x->insert_ns = e->time_ns;
	return r;
}

static void merged(struct import_pair *p, const struct bt_event *e, bool front)
{
	struct bt_event place = *e;
	struct import_entry *into, *gone;

	place.sector += front ? e->bytes >> 9 : 0;
	into = front ? import_entry_find(&p->open, &place, IMPORT_HELD, false, NULL)
		     : import_entry_find_end(&p->open, &place);
	gone = import_entry_find(&p->open, e, IMPORT_QUEUED, true, NULL);
	if (!gone && !front) {
		gone = import_entry_find(&p->open, e, IMPORT_HELD, true, NULL);
		gone = gone == into ? NULL : gone;
	}
	if (!into)
		p->counts.merges_unmatched++;
	if (into) {
		import_entry_unlink(&p->open, into);
		into->bytes += e->bytes;
		into->left = into->bytes;
		if (front)
			into->sector = into->first_sector = e->sector;
		else
			into->end += e->bytes >> 9;
		if (into->merges < UINT16_MAX)
			into->merges++;
		if (gone && gone->state == IMPORT_HELD)
			into->merges = (uint16_t)IOT_MIN(into->merges + gone->merges, UINT16_MAX);
		import_entry_link(&p->open, into);
	}
	/* A bio, or a request, that is part of another is nothing of its own. */
	if (gone)
		import_entry_drop(&p->open, gone);
}

static int issued(struct import_pair *p, const struct bt_event *e)
{
	struct import_entry *x =
		import_entry_find(&p->open, e, IMPORT_HELD | IMPORT_REQUEUED, false, NULL);

	if (!x)
		x = import_entry_find(&p->open, e, IMPORT_QUEUED, false, NULL);
	if (x) {
		import_entry_unlink(&p->open, x);
		if (x->state == IMPORT_QUEUED && !x->start_ns)
			x->start_ns = x->queue_ns;
	} else {
		int r = new_entry(p, e, IMPORT_ISSUED, &x);

		if (r < 0)
			return r;
		take_submitter(p, x, e, IOT_SUBMITTER_ISSUE);
	}
	if (x->state != IMPORT_REQUEUED)
		x->bytes = e->bytes;
	x->left = e->bytes;
	x->state = IMPORT_ISSUED;
	x->flags = IMPORT_FLAGS(e->action);
	x->issue_ns = x->issue_ns ? x->issue_ns : e->time_ns;
	x->issue_last_ns = e->time_ns;
	x->issue_cpu = e->cpu;
	import_entry_link(&p->open, x);
	return 0;
}

static int requeued(struct import_pair *p, const struct bt_event *e)
{
	struct import_entry *x = import_entry_find(&p->open, e, IMPORT_ISSUED, false, NULL);

	if (x) {
		import_entry_unlink(&p->open, x);
		x->state = IMPORT_REQUEUED;
	} else {
		int r = new_entry(p, e, IMPORT_REQUEUED, &x);

		if (r < 0)
			return r;
	}
	if (x->requeues < UINT16_MAX)
		x->requeues++;
	import_entry_link(&p->open, x);
	return 0;
}

static int completed(struct import_pair *p, const struct bt_event *e)
{
	struct iot_request r;
	struct import_entry *x;
	bool more = false, only_end = false;
	int rc;

	x = import_entry_find(&p->open, e, IMPORT_ISSUED, false, &more);
	p->counts.ambiguous += more;
	if (!x)
		x = import_entry_find(&p->open, e, IMPORT_REQUEUED | IMPORT_HELD | IMPORT_QUEUED,
				      true, NULL);
	/* An empty write that asked for a flush ends without the flag (block/blk-flush.c takes it off). */
	if (!x && IMPORT_OP(e->action) == IOT_OP_WRITE && !e->bytes) {
		struct bt_event flush = *e;

		flush.sector = 0;
		flush.action = (e->action & ~0xff00U) | (uint32_t)IOT_OP_FLUSH << 8 | 1U << 15;
		x = import_entry_find(&p->open, &flush,
				      IMPORT_REQUEUED | IMPORT_HELD | IMPORT_QUEUED, true, NULL);
	}
	if (!x) {
		rc = new_entry(p, e, IMPORT_ISSUED, &x);
		if (rc < 0)
			return rc;
		import_entry_link(&p->open, x);
		x->issue_cpu = e->cpu;
		only_end = true;
	}
	/* Part of it: the rest begins where this ends. */
	if (e->bytes && e->bytes < x->left && !e->error) {
		import_entry_unlink(&p->open, x);
		x->done += e->bytes;
		x->left -= e->bytes;
		x->sector += e->bytes >> 9;
		x->partial = true;
		p->counts.parts++;
		import_entry_link(&p->open, x);
		return 0;
	}
	if (!e->error)
		x->done += e->bytes ? e->bytes : x->left;
	fill(p, x, &r);
	r.complete_ns = e->time_ns;
	r.complete_cpu = e->cpu;
	r.issue_cpu = x->issue_ns ? x->issue_cpu : e->cpu;
	/* The kernel's unsigned half of a negative number. */
	r.error = e->error > INT16_MAX ? (int32_t)e->error - 65536 : -(int32_t)e->error;
	r.id = ++p->ids[r.issue_cpu] << 13 | r.issue_cpu;
	import_entry_drop(&p->open, x);
	p->counts.requests++;
	p->counts.only_end += only_end;
	return p->out.done(p->out.arg, &r);
}

int import_pair_add(struct import_pair *p, const struct bt_event *e)
{
	struct bt_event at = *e;

	/* These have no place: the first of a kind ends first. */
	if (IMPORT_OP(e->action) == IOT_OP_FLUSH)
		at.sector = 0;
	switch (IMPORT_ACT(e->action)) {
	case IMPORT_QUEUE:
		return queued(p, &at);
	case IMPORT_GETRQ:
	case IMPORT_START:
		return started(p, &at, IMPORT_ACT(e->action) == IMPORT_START);
	case IMPORT_BACKMERGE:
	case IMPORT_FRONTMERGE:
		merged(p, &at, IMPORT_ACT(e->action) == IMPORT_FRONTMERGE);
		return 0;
	case IMPORT_INSERT:
		return inserted(p, &at);
	case IMPORT_ISSUE:
		return issued(p, &at);
	case IMPORT_REQUEUE:
		return requeued(p, &at);
	case IMPORT_COMPLETE:
		return completed(p, &at);
	case IMPORT_PROCESS:
		return note_name(p, &at);
	default:
		return -EINVAL;
	}
}

const struct import_counts *import_pair_counts(const struct import_pair *p)
{
	return &p->counts;
}

int import_pair_new(const struct import *im, const struct import_output *out,
		    struct import_pair **ret)
{
	_cleanup_(import_pair_freep) struct import_pair *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->im = im;
	p->out = *out;
	p->seed = iot_table_seed();
	p->ids = calloc(BT_MAX_CPUS, sizeof(*p->ids));
	if (!p->ids)
		return -ENOMEM;
	r = import_entries_init(&p->open);
	if (r < 0)
		return r;
	*ret = IOT_TAKE_PTR(p);
	return 0;
}

struct import_pair *import_pair_free(struct import_pair *p)
{
	if (!p)
		return NULL;
	import_entries_done(&p->open);
	free(p->names);
	free(p->ids);
	free(p);
	return NULL;
}
