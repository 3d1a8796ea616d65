// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-rank-json.c - the member "by" of `report --by=... --json`. Fields only grow.
 *
 *   what        file, process, cgroup, device or origin
 *   groups, requests, bytes_done   of all groups, shown or not; losses are in none
 *   resolved    null without --resolve; else mount, at_ns, dev, directories, not_read
 *   rows[]      name (as text shows it), requests, bytes_done, read_bytes, write_bytes, share (0..1), iops,
 *               last_ns, latency_ns: {n, min, mean, p50, ..., histogram[]}, host, and what identifies it:
 *     file      ino, fsdev, disk, origin (of those without a file), path, path_state: found, ambiguous,
 *               reused, not_found; null where this row was not looked for
 *     process   tgid, comm       cgroup   id, path       device   dev, disk       origin   origin
 */
#include <limits.h>

#include "daemon/ctl/json.h"
#include "daemon/ctl/report-view.h"
#include "format/render.h"

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static struct json_object *devno(uint32_t dev)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", IOT_DEV_MAJOR(dev), IOT_DEV_MINOR(dev));
	return dev ? json_object_new_string(text) : NULL;
}

static struct json_object *disk(const struct rank_group *g, uint32_t dev)
{
	char buf[32];
	const char *name = iot_dev_name(g->segment, dev, buf, sizeof(buf));

	return name == buf ? NULL : ctl_json_text(name);
}

static const char *state_name(const struct resolve_want *want)
{
	static const char *const names[] = {
		[RESOLVE_NOT_FOUND] = "not_found",
		[RESOLVE_FOUND] = "found",
		[RESOLVE_AMBIGUOUS] = "ambiguous",
		[RESOLVE_REUSED] = "reused",
	};

	return names[want->state];
}

static void add_file(const struct report_view *v, const struct rank *rk, const struct rank_group *g,
		     struct json_object *o)
{
	const struct resolve_want *want = report_rank_resolved(v, rk, g);
	bool known = g->key.kind == RANK_KNOWN;

	add(o, "ino", known ? ctl_json_id(g->key.number) : NULL);
	add(o, "fsdev", known ? devno(g->key.fsdev) : NULL);
	add(o, "disk", known ? disk(g, g->key.fsdev) : NULL);
	add(o, "origin",
	    g->key.kind == RANK_UNKNOWN
		    ? json_object_new_string(iot_origin_name((unsigned int)g->key.number))
		    : NULL);
	add(o, "path", want && want->path ? ctl_json_text(want->path) : NULL);
	add(o, "path_state", want ? json_object_new_string(state_name(want)) : NULL);
}

static void add_identity(const struct report_view *v, const struct rank *rk,
			 const struct rank_group *g, struct json_object *o)
{
	bool known = g->key.kind == RANK_KNOWN;
	char comm[IOT_COMM_LEN + 1] = "";

	switch (rk->by) {
	case CTL_BY_FILE:
		add_file(v, rk, g, o);
		return;
	case CTL_BY_PROCESS:
		memcpy(comm, g->comm, IOT_COMM_LEN);
		add(o, "tgid", known ? ctl_json_u64(g->key.number) : NULL);
		add(o, "comm", known ? ctl_json_text(comm) : NULL);
		return;
	case CTL_BY_CGROUP:
		add(o, "id", known ? ctl_json_id(g->key.number) : NULL);
		add(o, "path",
		    known && report_rank_cgroup(v, rk, g)
			    ? ctl_json_text(report_rank_cgroup(v, rk, g))
			    : NULL);
		return;
	case CTL_BY_DEVICE:
		add(o, "dev", known ? devno((uint32_t)g->key.number) : NULL);
		add(o, "disk", known ? disk(g, (uint32_t)g->key.number) : NULL);
		return;
	default:
		add(o, "origin",
		    json_object_new_string(iot_origin_name((unsigned int)g->key.number)));
	}
}

static struct json_object *row_json(const struct report_view *v, const struct rank *rk,
				    const struct rank_group *g)
{
	struct json_object *o = json_object_new_object();
	double seconds = report_rank_seconds(v, rk, g);
	char name[PATH_MAX + 80];

	add(o, "name", ctl_json_text(report_rank_name(v, rk, g, name, sizeof(name))));
	add(o, "host",
	    g->key.kind == RANK_KNOWN && rk->by != CTL_BY_ORIGIN
		    ? ctl_json_text(rk->places[g->key.place].host)
		    : NULL);
	add_identity(v, rk, g, o);
	add(o, "requests", ctl_json_u64(g->requests));
	add(o, "bytes_done", ctl_json_u64(g->bytes));
	add(o, "read_bytes", ctl_json_u64(g->read_bytes));
	add(o, "write_bytes", ctl_json_u64(g->write_bytes));
	add(o, "share",
	    rk->bytes ? json_object_new_double((double)g->bytes / (double)rk->bytes) : NULL);
	add(o, "iops", seconds > 0 ? json_object_new_double((double)g->requests / seconds) : NULL);
	add(o, "last_ns", ctl_json_id(g->last_ns));
	add(o, "latency_ns", g->latency ? report_hist_json(g->latency) : NULL);
	return o;
}

static struct json_object *resolved_json(const struct report_view *v)
{
	struct json_object *o;

	if (!v->mount)
		return NULL;
	o = json_object_new_object();
	add(o, "mount", ctl_json_text(v->mount));
	add(o, "at_ns", ctl_json_id(v->walk.at_ns));
	add(o, "dev", devno(v->mount_fsdev));
	add(o, "directories", ctl_json_u64(v->walk.n_dirs));
	add(o, "not_read", ctl_json_u64(v->walk.n_denied));
	return o;
}

struct json_object *report_rank_json(const struct report_view *v, const struct rank *rk)
{
	struct json_object *o, *rows;

	o = json_object_new_object();
	rows = json_object_new_array();
	add(o, "what", json_object_new_string(ctl_by_name(rk->by)));
	add(o, "groups", ctl_json_u64(rk->n_groups));
	add(o, "requests", ctl_json_u64(rk->requests));
	add(o, "bytes_done", ctl_json_u64(rk->bytes));
	add(o, "resolved", resolved_json(v));
	add(o, "rows", rows);
	for (size_t i = 0; i < rk->n_shown; i++)
		json_object_array_add(rows, row_json(v, rk, &rk->groups[i]));
	return o;
}
