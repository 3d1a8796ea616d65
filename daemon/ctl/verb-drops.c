// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-drops.c - the packets that the kernel dropped: by reason and place, by interface, and by flow.
 *
 * How they are counted is in drops.c; what is neither recorded nor filed is said below the tables. Where a
 * segment has no footer, what it holds is called a lower bound.
 * --json: {drops: [{reason, code, location, where (null: more than one may be summed up), netns, ifindex, iface,
 * proto, flow, n, bytes, lost, host, boot, capture (null: as where)}], not_selected, suppressed (of these),
 * unattributed, missed (null: not known), unsealed, record: the verdict}.
 */
#include "daemon/ctl/drops.h"
#include "daemon/ctl/json.h"
#include "format/render.h"

#define SHOWN_FLOWS 20U

/* ---- text ---- */

/* Where numbers of several boots or captures stand side by side, whose they are. */
static void count_cells(struct ctl_table *t, const struct drops *d, const struct drop_row *row)
{
	const struct iot_segment_info *info = iot_segment_info(row->s);
	char buf[CTL_HUMAN_MAX], text[2 * 65 + 1];

	if (d->n_groups > 1)
		ctl_table_cell(t, "%s %.8s", ctl_printable(info->host, text, sizeof(text)),
			       ctl_hex_id(d->per_capture ? info->capture_id : info->boot_id, buf));
	ctl_table_cell(t, "%s", ctl_human_count(row->n, buf));
	ctl_table_cell(t, "%s", ctl_human_count(row->lost, buf));
	ctl_table_cell(t, "%s", ctl_human_size(row->bytes, buf));
}

static int print_places(const struct ctl *c, const struct drops *d)
{
	static const char *const columns[] = {"HOST",	   ">DROPS",  ">LOST",
					      ">BYTES",	   "REASON",  "LOCATION",
					      "INTERFACE", "~>NETNS", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns + (d->n_groups < 2));
	_cleanup_free_ struct drop_row *rows = NULL;
	char buf[256];
	size_t n;

	if (!t || drops_sum_up(d, drops_by_place, drops_by_number_and_place, &rows, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		count_cells(t, d, &rows[i]);
		ctl_table_cell(t, "%s", drops_reason(&rows[i], buf, sizeof(buf)));
		ctl_table_cell(t, "%s", drops_location(&rows[i], buf, sizeof(buf)));
		ctl_table_cell(t, "%s", drops_iface(&rows[i], buf, sizeof(buf)));
		if (rows[i].key.netns)
			ctl_table_cell(t, "%u", rows[i].key.netns);
		else
			ctl_table_cell(t, "-");
	}
	return ctl_table_print(t, stdout, ctl_color_enabled(c));
}

static int print_flows(const struct ctl *c, const struct drops *d)
{
	static const char *const columns[] = {"HOST", ">DROPS", ">LOST", ">BYTES", "FLOW", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns + (d->n_groups < 2));
	_cleanup_free_ struct drop_row *rows = NULL;
	char buf[256];
	size_t n;
	int r;

	if (!t || drops_sum_up(d, drops_by_flow, drops_by_number_and_flow, &rows, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n && i < SHOWN_FLOWS; i++) {
		count_cells(t, d, &rows[i]);
		*iot_put_flow(buf, &rows[i].key.flow, 0) = '\0';
		ctl_table_cell(t, "%s", buf);
	}
	printf("\n");
	r = ctl_table_print(t, stdout, ctl_color_enabled(c));
	if (n > SHOWN_FLOWS)
		printf("and %zu more flows; --json has all\n", n - SHOWN_FLOWS);
	return r;
}

static void print_sum(const struct iot_sum *s, const char *one, const char *many)
{
	char buf[CTL_HUMAN_MAX];

	if (s->n)
		printf("\n%s%s %s\n", s->unknown ? "At least " : "", ctl_human_count(s->n, buf),
		       s->n == 1 ? one : many);
	else if (s->unknown)
		printf("\nIt is not known how many %s\n", many);
}

static void print_rest(const struct drops *d)
{
	print_sum(&d->not_selected,
		  "more drop of a packet outside the selection was counted and not recorded",
		  "more drops of packets outside the selection were counted and not recorded");
	if (d->suppressed.n)
		print_sum(&d->suppressed, "of these came too often to be recorded",
			  "of these came too often to be recorded");
	print_sum(&d->unattributed, "more drop was lost without an owner",
		  "more drops were lost without an owner");
	print_sum(&d->missed, "drop was missed by the probe", "drops were missed by the probe");
	if (d->n_unsealed + d->n_unreadable > 0)
		printf("\nAll figures are lower bounds: segments without a footer: %zu, without a "
		       "ledger that can be read: %zu\n",
		       d->n_unsealed, d->n_unreadable);
}

/* ---- JSON ---- */

static int print_json(const struct drops *d, const struct iot_verdict *v)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	char buf[256], hex[CTL_HUMAN_MAX];

	for (size_t i = 0; i < d->n; i++) {
		const struct drop_row *row = &d->rows[i];
		const struct iot_segment_info *info = iot_segment_info(row->s);
		struct json_object *j = json_object_new_object();
		const char *name = ctl_drop_reason(row->s, row->key.code);
		const char *proto = row->key.flow.family ? iot_ip_proto_name(row->key.flow.ip_proto)
							 : NULL;

		json_object_object_add(j, "reason", name ? ctl_json_text(name) : NULL);
		json_object_object_add(j, "code", json_object_new_int(row->key.code));
		drops_location(row, buf, sizeof(buf));
		json_object_object_add(j, "location",
				       strcmp(buf, "-") == 0 ? NULL : ctl_json_text(buf));
		json_object_object_add(j, "where", d->per_capture ? ctl_json_id(row->where) : NULL);
		json_object_object_add(j, "netns",
				       row->key.netns ? ctl_json_u64(row->key.netns) : NULL);
		json_object_object_add(j, "ifindex",
				       row->key.ifindex ? ctl_json_u64(row->key.ifindex) : NULL);
		json_object_object_add(
			j, "iface",
			ctl_json_text(iot_iface_name(row->s, row->key.netns, row->key.ifindex)));
		json_object_object_add(j, "proto", ctl_json_text(proto));
		*iot_put_flow(buf, &row->key.flow, 0) = '\0';
		json_object_object_add(j, "flow",
				       strcmp(buf, "-") == 0 ? NULL : ctl_json_text(buf));
		json_object_object_add(j, "n", ctl_json_u64(row->n));
		json_object_object_add(j, "bytes", ctl_json_u64(row->bytes));
		json_object_object_add(j, "lost", ctl_json_u64(row->lost));
		json_object_object_add(j, "host", ctl_json_text(info->host));
		json_object_object_add(j, "boot",
				       json_object_new_string(ctl_hex_id(info->boot_id, hex)));
		json_object_object_add(
			j, "capture",
			d->per_capture ? json_object_new_string(ctl_hex_id(info->capture_id, hex))
				       : NULL);
		json_object_array_add(list, j);
	}
	json_object_object_add(o, "drops", list);
	json_object_object_add(o, "not_selected", ctl_json_sum(&d->not_selected));
	json_object_object_add(o, "suppressed", ctl_json_sum(&d->suppressed));
	json_object_object_add(o, "unattributed", ctl_json_sum(&d->unattributed));
	json_object_object_add(o, "missed", ctl_json_sum(&d->missed));
	json_object_object_add(o, "unsealed", ctl_json_u64(d->n_unsealed));
	json_object_object_add(o, "record", ctl_verdict_json(v));
	return ctl_json_print(o);
}

int verb_drops(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	_cleanup_(drops_done) struct drops d;
	struct iot_error err = {0};
	struct iot_verdict v = {0};
	struct iot_segment *s;
	struct iot_packet p;
	int r, code;

	drops_init(&d, c->per_capture);
	c->filter.stream = IOT_STREAM_PACKET;
	/* A question about drops of some packets is not about what was left out elsewhere. */
	if ((c->filter.flow.set || c->filter.dev[0]) && !c->filter.probe[0])
		snprintf(c->filter.probe, sizeof(c->filter.probe), "kfree_skb");
	code = ctl_scan_open(c, argc, argv, &scan);
	if (code != CTL_OK)
		return code;
	if (!iot_scan_n_stream(scan, IOT_STREAM_PACKET))
		return ctl_packets_none();
	while ((r = iot_scan_next_packet(scan, &p, &s, &err)) == 0) {
		r = drops_add(&d, scan, s, &p);
		if (r < 0)
			break;
	}
	if (r >= 0)
		r = drops_add_losses(&d, scan, &c->filter, &err);
	if (r == 0)
		r = ctl_scan_verdict(scan, false, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	code = CTL_OK;
	if (c->json) {
		code = print_json(&d, &v);
	} else {
		ctl_pager_open(c);
		if (d.n == 0)
			printf("no drops%s\n", v.code != IOT_VERDICT_COMPLETE ? " recorded" : "");
		else if (print_places(c, &d) < 0 || print_flows(c, &d) < 0)
			code = ctl_fail(CTL_ERROR, "out of memory");
		print_rest(&d);
		ctl_pager_close();
	}
	if (code != CTL_OK)
		return code;
	if (v.code != IOT_VERDICT_COMPLETE)
		ctl_verdict_print(stderr, &v, iot_scan_n_segments(scan),
				  "iotracectl: ", CTL_PRINT_PLAIN);
	return ctl_damage_code(&v);
}
