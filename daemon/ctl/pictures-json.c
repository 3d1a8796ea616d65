// SPDX-License-Identifier: BSD-2-Clause
/*
 * pictures-json.c - the member "pictures" of `report --html --json`, which is also what the page draws.
 *
 *   axis        from_ns, step_ns, columns: of every list below that has a number a column
 *   outside     requests that completed outside of it (in the column that is nearer)
 *   devices[]   host, disk, dev (null: all that have no row of their own), the most bytes first;
 *     requests, bytes   by kind (read, write, discard, other, swap_out, swap_in), a list each; only kinds that occur
 *     lost              a list; null: none
 *     queue_ns, device_ns   lists: time that requests spent there
 *     latency           by kind, a grid of the latency in the device: row 4k+i is from 2^k(1+i/4) ns on
 *     map               null, or first_sector, row_sectors, and by kind a grid of where requests began
 *   record      lanes[]: stream, host, state (a letter a column: - nothing was recorded, c complete, l lost,
 *               p recorded in part, u unknown), lost[], doubts[]; windows[]: from_ns, to_ns, kind, probe, n, lane;
 *               n_windows (of which windows[] are the first), further_machines
 *   top[]       as the member "by", of processes and of cgroups
 *   packets     null, or observations, over_time[], reasons[]: name, n, over_time[];
 *               drops: rows[]: reason, location, iface, n, lost, bytes (by these three), n_rows, not_selected,
 *               suppressed, unattributed, missed, unsealed;
 *               ways[]: why, and as explain has a packet; sampled, born
 *
 * A grid is a text: columns are separated by ";", in a column "row:n" for each row that is not 0.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/pictures.h"
#include "daemon/ctl/report-view.h"

#define SHOWN_DROPS 50U

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static struct json_object *list(const uint64_t *values, size_t n)
{
	struct json_object *a = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(a, ctl_json_u64(values[i]));
	return a;
}

static bool any(const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i])
			return true;
	return false;
}

static struct json_object *devno(uint32_t dev)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", IOT_DEV_MAJOR(dev), IOT_DEV_MINOR(dev));
	return dev ? json_object_new_string(text) : NULL;
}

/* ---- devices ----------------------------------------------------------------------------------- */

static struct json_object *grid(const uint64_t *cells, size_t n_columns, unsigned int n_rows)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	bool ok;
	FILE *f = open_memstream(&text, &size);

	for (size_t c = 0; f && c < n_columns; c++) {
		const char *blank = "";

		if (c)
			fputc(';', f);
		for (unsigned int row = 0; row < n_rows; row++) {
			uint64_t n = cells[c * n_rows + row];

			if (n)
				fprintf(f, "%s%u:%llu", blank, row, (unsigned long long)n);
			blank = n ? " " : blank;
		}
	}
	ok = f && !ferror(f);
	ok &= f && fclose(f) == 0;
	/* One that found no memory must not be taken for an empty one. */
	return ok ? json_object_new_string(text) : ctl_json_made(NULL);
}

static struct json_object *by_kind(const uint64_t (*values)[PICTURE_COLUMNS], size_t n)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int k = 0; k < PICTURE_N_KINDS; k++)
		if (any(values[k], n))
			add(o, picture_kind_name(k), list(values[k], n));
	return o;
}

static struct json_object *grids(uint64_t *const *cells, size_t n_columns, unsigned int n_rows)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int k = 0; k < PICTURE_N_KINDS; k++)
		if (cells[k])
			add(o, picture_kind_name(k), grid(cells[k], n_columns, n_rows));
	return o;
}

static struct json_object *map_json(const struct picture_map *m, size_t n_columns)
{
	struct json_object *o;

	if (!m->any)
		return NULL;
	o = json_object_new_object();
	add(o, "first_sector", json_object_new_uint64(m->first_row << m->shift));
	add(o, "row_sectors", ctl_json_u64(1ULL << m->shift));
	add(o, "rows", ctl_json_u64(PICTURE_MAP_ROWS));
	add(o, "cells", grids(m->cells, n_columns, PICTURE_MAP_ROWS));
	return o;
}

static struct json_object *device_json(const struct report_view *v, const struct picture_device *d)
{
	const struct report_device *of =
		d->device < v->report.n_devices ? &v->report.devices[d->device] : NULL;
	size_t n = v->pictures->block.axis.n;
	struct json_object *o = json_object_new_object();

	add(o, "host", of ? ctl_json_text(of->host) : NULL);
	add(o, "disk", of ? ctl_json_text(of->name) : json_object_new_string("(others)"));
	add(o, "dev", of ? devno(of->dev) : NULL);
	add(o, "requests", by_kind(d->requests, n));
	add(o, "bytes", by_kind(d->bytes, n));
	add(o, "lost", any(d->lost, n) ? list(d->lost, n) : NULL);
	add(o, "queue_ns", list(d->queue_ns, n));
	add(o, "device_ns", list(d->device_ns, n));
	add(o, "latency", grids(d->heat, n, PICTURE_HEAT_ROWS));
	add(o, "map", map_json(&d->map, n));
	return o;
}

/* ---- the record -------------------------------------------------------------------------------- */

static struct json_object *lane_json(const struct record_lane *l, size_t n)
{
	static const char letters[] = {[RECORD_NOTHING] = '-',
				       [RECORD_COMPLETE] = 'c',
				       [RECORD_LOST] = 'l',
				       [RECORD_PART] = 'p',
				       [RECORD_UNKNOWN] = 'u'};
	struct json_object *o = json_object_new_object(), *doubts = json_object_new_array();
	char state[PICTURE_COLUMNS + 1];

	for (size_t i = 0; i < n; i++) {
		state[i] = letters[l->state[i]];
		json_object_array_add(doubts, ctl_json_u64(l->doubts[i]));
	}
	add(o, "stream", json_object_new_string(iot_stream_name(l->stream)));
	add(o, "host", ctl_json_text(l->host));
	add(o, "state", json_object_new_string_len(state, (int)n));
	add(o, "lost", list(l->lost, n));
	add(o, "doubts", doubts);
	return o;
}

static struct json_object *window_json(const struct record_window *w)
{
	struct json_object *o = json_object_new_object();

	add(o, "from_ns", ctl_json_id(w->from_ns));
	add(o, "to_ns", ctl_json_id(w->to_ns));
	add(o, "kind", json_object_new_string(iot_window_kind_name(w->kind)));
	add(o, "probe", ctl_json_text(w->probe));
	add(o, "n", w->n == UINT64_MAX ? NULL : ctl_json_u64(w->n));
	add(o, "lane", ctl_json_u64(w->lane));
	return o;
}

static struct json_object *record_json(const struct record_lanes *rl, size_t n)
{
	struct json_object *o = json_object_new_object(), *lanes = json_object_new_array(),
			   *windows = json_object_new_array();

	for (size_t i = 0; i < rl->n; i++)
		json_object_array_add(lanes, lane_json(&rl->lanes[i], n));
	for (size_t i = 0; i < IOT_MIN(rl->n_windows, RECORD_MAX_WINDOWS); i++)
		json_object_array_add(windows, window_json(&rl->windows[i]));
	add(o, "lanes", lanes);
	add(o, "windows", windows);
	add(o, "n_windows", ctl_json_u64(rl->n_windows));
	add(o, "further_machines", json_object_new_boolean(rl->more));
	return o;
}

/* ---- packets ----------------------------------------------------------------------------------- */

static struct json_object *drops_json(const struct drops *d)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();
	_cleanup_free_ struct drop_row *sums = NULL;
	size_t n = 0;
	char buf[256];

	if (drops_sum_up(d, drops_by_place, drops_by_number_and_place, &sums, &n) < 0) {
		json_object_put(o);
		json_object_put(rows);
		return ctl_json_made(NULL);
	}
	for (size_t i = 0; i < IOT_MIN(n, SHOWN_DROPS); i++) {
		struct json_object *row = json_object_new_object();

		add(row, "reason", ctl_json_text(drops_reason(&sums[i], buf, sizeof(buf))));
		add(row, "location", ctl_json_text(drops_location(&sums[i], buf, sizeof(buf))));
		add(row, "iface", ctl_json_text(drops_iface(&sums[i], buf, sizeof(buf))));
		add(row, "netns", sums[i].key.netns ? ctl_json_u64(sums[i].key.netns) : NULL);
		add(row, "n", ctl_json_u64(sums[i].n));
		add(row, "lost", ctl_json_u64(sums[i].lost));
		add(row, "bytes", ctl_json_u64(sums[i].bytes));
		json_object_array_add(rows, row);
	}
	add(o, "rows", rows);
	add(o, "n_rows", ctl_json_u64(n));
	add(o, "not_selected", ctl_json_sum(&d->not_selected));
	add(o, "suppressed", ctl_json_sum(&d->suppressed));
	add(o, "unattributed", ctl_json_sum(&d->unattributed));
	add(o, "missed", ctl_json_sum(&d->missed));
	add(o, "unsealed", ctl_json_u64(d->n_unsealed));
	return o;
}

static struct json_object *way_json(const struct packet_pictures *pp, const struct packet_way *w)
{
	for (size_t i = 0; i < pp->packets.n; i++) {
		struct ctl_capture *c = &pp->packets.captures[i];
		const struct iot_packet_life *l = ctl_capture_life(c, w->id);
		struct json_object *o;

		if (!l || memcmp(c->infos[0]->capture_id, w->capture_id, 16) != 0)
			continue;
		o = ctl_packet_json(&pp->packets, &pp->hops, c, l, false);
		add(o, "why", json_object_new_string(packet_pick_name(w->pick)));
		add(o, "observations", ctl_json_u64(w->n_hops));
		return o;
	}
	return NULL;
}

static struct json_object *packets_json(const struct packet_pictures *pp, size_t n)
{
	struct json_object *o, *reasons, *ways;

	if (!pp->any)
		return NULL;
	o = json_object_new_object();
	reasons = json_object_new_array();
	ways = json_object_new_array();
	for (size_t i = 0; i < pp->n_reasons; i++) {
		struct json_object *row = json_object_new_object();

		add(row, "name", ctl_json_text(pp->reasons[i].name));
		add(row, "n", ctl_json_u64(pp->reasons[i].n));
		add(row, "over_time", list(pp->reasons[i].drops, n));
		json_object_array_add(reasons, row);
	}
	for (size_t i = 0; i < pp->n_ways; i++) {
		struct json_object *way = pp->ways[i].shown ? way_json(pp, &pp->ways[i]) : NULL;

		if (way)
			json_object_array_add(ways, way);
	}
	add(o, "observations", ctl_json_u64(pp->n));
	add(o, "over_time", list(pp->observations, n));
	add(o, "reasons", reasons);
	add(o, "drops", drops_json(&pp->drops));
	add(o, "ways", ways);
	add(o, "sampled", ctl_json_u64(pp->n_sampled));
	add(o, "born", ctl_json_u64(pp->n_born));
	return o;
}

struct json_object *report_pictures_json(const struct report_view *v)
{
	const struct picture *p = &v->pictures->block;
	struct json_object *o = json_object_new_object(), *axis = json_object_new_object(),
			   *devices = json_object_new_array(), *top = json_object_new_array();

	add(axis, "from_ns", ctl_json_id(p->axis.first_ns));
	add(axis, "step_ns", ctl_json_u64(p->axis.step_ns));
	add(axis, "columns", ctl_json_u64(p->axis.n));
	add(o, "axis", axis);
	add(o, "outside", ctl_json_u64(p->outside));
	for (size_t i = 0; i < p->n_devices; i++)
		json_object_array_add(devices, device_json(v, &p->devices[i]));
	add(o, "devices", devices);
	add(o, "record", record_json(&v->pictures->record, p->axis.n));
	for (size_t i = 0; i < v->n_ranks; i++)
		json_object_array_add(top, report_rank_json(v, &v->ranks[i]));
	add(o, "top", top);
	add(o, "packets", packets_json(&v->pictures->packets, p->axis.n));
	return o;
}
