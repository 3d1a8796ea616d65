// SPDX-License-Identifier: BSD-2-Clause
/*
 * segment-dump.c - everything a reader can know of one segment file, as text: the expected output
 * beside the golden files, and a magnifying glass for format work.
 *
 *	segment-dump FILE
 *
 * Prints every field of the in-memory structs by number, not by name, so that the text changes only
 * if what is read changes. Exit: 0, 1 if the file cannot be read at all.
 */
#include <inttypes.h>

#include "format/packet.h"
#include "format/reader.h"
#include "format/verify.h"

static void print_hex(const char *name, const uint8_t id[16])
{
	printf("%s ", name);
	for (unsigned int i = 0; i < 16; i++)
		printf("%02x", id[i]);
	printf("\n");
}

static void print_clocks(const struct iot_clocks *c)
{
	printf("clocks %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->monotonic_ns, c->boottime_ns,
	       c->realtime_ns);
}

static void print_probes(const struct iot_probe *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("probe %u state=%u miss=%u error=%d from=%" PRIu64 " to=%" PRIu64
		       " name=%s hook=%s detail=%s\n",
		       p[i].id, p[i].state, p[i].miss, p[i].error, p[i].from_ns, p[i].to_ns,
		       p[i].name, p[i].hook, p[i].detail);
}

static void print_names(const char *what, const struct iot_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		printf("%s %" PRIu64 " %s\n", what, names->items[i].key, names->items[i].name);
}

static void print_info(const struct iot_segment_info *i)
{
	print_hex("machine", i->machine_id);
	print_hex("boot", i->boot_id);
	print_hex("capture", i->capture_id);
	printf("host %s\nkernel %s\nselection %s\n", i->host, i->kernel, i->selection);
	printf("stream=%u swap_out=%u swap_in=%u rings=%u cpus=%u epoch=%" PRIu64 " seq=%" PRIu64
	       " attach=%" PRIu64 "\n",
	       i->stream, i->swap_out, i->swap_in, i->n_rings, i->n_cpus, i->epoch, i->seq,
	       i->attach_ns);
	if (i->source[0])
		printf("source %s\n", i->source);
	print_clocks(&i->clocks);
	print_probes(i->probes, i->n_probes);
	print_names("device", &i->devices);
	if (i->stream == IOT_STREAM_PACKET)
		printf("identity %s\n", i->identity);
	print_names("reason", &i->reasons);
}

static void print_request(const struct iot_request *r)
{
	printf("  %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " sector=%" PRIu64 " cgroup=%" PRIu64 " ino=%" PRIu64,
	       r->id, r->start_ns, r->insert_ns, r->issue_ns, r->issue_last_ns, r->complete_ns,
	       r->sector, r->cgroup, r->ino);
	printf(" %u %u %u bytes=%u/%u %d %u %#x pid=%u/%u cpu=%u/%u", r->fsdev, r->dev, r->part,
	       r->bytes, r->bytes_done, r->error, r->status, r->flags, r->pid, r->tgid,
	       r->issue_cpu, r->complete_cpu);
	printf(" %u %u %u %u op=%u %u %u %u %u %u ", r->requeues, r->merges, r->segments, r->hwq,
	       r->op, r->swap, r->swap_rule, r->origin, r->submitter, r->ring);
	for (unsigned int i = 0; i < IOT_COMM_LEN && r->comm[i]; i++)
		printf(r->comm[i] > ' ' && r->comm[i] < 0x7f ? "%c" : "\\x%02x",
		       (unsigned char)r->comm[i]);
	/* Only where there is something: the dumps of files without it stay as they are. */
	if (r->file_by || r->cgroup_by || r->reclaim)
		printf(" by=%u,%u reclaim=%u", r->file_by, r->cgroup_by, r->reclaim);
	if (r->unswapped_bytes)
		printf(" unswapped=%u", r->unswapped_bytes);
	printf("\n");
}

static void print_flow(const struct iot_flow *f)
{
	printf(" flow %u/%u %#x vlan=%#x ", f->family, f->ip_proto, f->protocol, f->vlan_tci);
	for (unsigned int i = 0; i < 16; i++)
		printf("%02x", f->src[i]);
	printf(":%u ", f->sport);
	for (unsigned int i = 0; i < 16; i++)
		printf("%02x", f->dst[i]);
	printf(":%u", f->dport);
}

static void print_packet(const struct iot_batch *b, uint32_t i)
{
	struct iot_packet p;

	iot_batch_get_packet(b, i, &p);
	printf("  packet %" PRIu64 " parent=%" PRIu64 " hop=%u probe=%u ts=%" PRIu64 " cpu=%u",
	       p.id, p.parent, p.hop, p.probe, p.ts_ns, p.cpu);
	printf(" if=%u/%u len=%u mark=%u code=%d where=%#" PRIx64 " flags=%#x ip_id=%u l4=%02x%02x",
	       p.netns, p.ifindex, p.len, p.mark, p.code, p.where, p.flags, p.ip_id, p.l4[0],
	       p.l4[1]);
	print_flow(&p.flow);
	printf(" ring=%u pid=%u/%u comm=%.16s\n", p.ring, p.pid, p.tgid, p.comm);
}

static int print_blocks(struct iot_segment *s)
{
	struct iot_batch *b;
	int r;

	if (iot_batch_new(1, &b) < 0)
		return -ENOMEM;
	for (;;) {
		struct iot_block_info info;
		struct iot_error err = {0};

		r = iot_segment_next_block(s, &info, &err);
		if (r == IOT_READ_END || r < 0)
			break;
		if (r == IOT_READ_GAP) {
			printf("gap at %" PRIu64 ", %" PRIu64 " bytes\n", info.offset, info.size);
			continue;
		}
		printf("block %" PRIu64 " kind=%u count=%u times %" PRIu64 " %" PRIu64
		       " ids %" PRIu64 " %" PRIu64,
		       info.seq, info.kind, info.count, info.first_ns, info.last_ns, info.first_id,
		       info.last_id);
		for (uint32_t i = 0; i < info.n_spans; i++)
			printf(" [%" PRIu64 ", %" PRIu64 ")", info.spans[i].p0, info.spans[i].p1);
		printf("\n");
		if (info.kind == IOT_BLOCK_LEDGER)
			continue;
		r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, &err);
		if (r < 0) {
			printf("  damaged\n");
			continue;
		}
		for (uint32_t i = 0; i < iot_batch_count(b); i++) {
			struct iot_request req;

			if (info.kind == IOT_BLOCK_PACKETS) {
				print_packet(b, i);
				continue;
			}
			iot_batch_get(b, i, &req);
			print_request(&req);
		}
	}
	iot_batch_free(b);
	return r < 0 ? r : 0;
}

static void print_packet_loss(const struct iot_loss *l)
{
	printf("loss %" PRIu64 " n=%" PRIu64 " bytes=%" PRIu64 " parent=%" PRIu64 " times %" PRIu64
	       " %" PRIu64 " if=%u/%u flags=%#x probe=%u cause=%u code=%d l4=%02x%02x",
	       l->id, l->n, l->bytes, l->parent, l->first_ns, l->last_ns, l->netns, l->ifindex,
	       l->flags, l->probe, l->cause, l->code, l->l4[0], l->l4[1]);
	print_flow(&l->flow);
	printf("\n");
}

static int print_losses(struct iot_segment *s)
{
	struct iot_error err = {0};
	struct iot_loss *l;
	size_t n;
	int r = iot_segment_load_ledger(s, &l, &n, &err);

	if (r == -EBADMSG) {
		printf("ledger damaged\n");
		return 0;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && iot_segment_info(s)->stream == IOT_STREAM_PACKET; i++)
		print_packet_loss(&l[i]);
	for (size_t i = 0; i < n && iot_segment_info(s)->stream == IOT_STREAM_BLOCK; i++)
		printf("loss %" PRIu64 " n=%" PRIu64 " bytes=%" PRIu64 " sector=%" PRIu64
		       " times %" PRIu64 " %" PRIu64 " %u %u %#x probe=%u op=%u cause=%u\n",
		       l[i].id, l[i].n, l[i].bytes, l[i].sector, l[i].first_ns, l[i].last_ns,
		       l[i].dev, l[i].part, l[i].flags, l[i].probe, l[i].op, l[i].cause);
	free(l);
	return 0;
}

static void print_footer(const struct iot_footer *f)
{
	printf("sealed reason=%u epoch %" PRIu64 " %" PRIu64 " prev=%016" PRIx64 " note=%s\n",
	       f->reason, f->epoch_first_ns, f->epoch_last_ns, f->prev_footer_hash, f->note);
	print_clocks(&f->clocks);
	print_probes(f->probes, f->n_probes);
	print_names("device", &f->devices);
	print_names("cgroup", &f->cgroups);
	print_names("symbol", &f->symbols);
	for (size_t i = 0; i < f->n_books; i++) {
		const struct iot_books *b = &f->books[i];

		printf("books %u cpu=%u seen=%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       " failed=%" PRIu64 " %" PRIu64 " %" PRIu64,
		       b->probe, b->cpu, b->seen, b->not_selected, b->folded, b->emitted,
		       b->reserve_failed, b->filed, b->unattributed);
		printf(" full=%" PRIu64 " %" PRIu64 " written=%" PRIu64 " %" PRIu64 " %" PRIu64
		       " missed=%" PRIu64,
		       b->identity_full, b->read_failed, b->written, b->decode_failed,
		       b->output_failed, b->missed);
		/* Absent in older files. */
		if (b->suppressed != IOT_COUNT_UNKNOWN)
			printf(" suppressed=%" PRIu64, b->suppressed);
		printf("\n");
	}
	for (size_t i = 0; i < f->n_windows; i++) {
		const struct iot_window *w = &f->windows[i];

		printf("window kind=%u probe=%u cpu=%u %" PRIu64 " %" PRIu64 " n=%" PRIu64 "\n",
		       w->kind, w->probe, w->cpu, w->t0_ns, w->t1_ns, w->n);
	}
}

static int print_verdict(struct iot_segment *s)
{
	struct iot_error err = {0};
	struct iot_verdict v;
	int r = iot_verify_segment(s, &v, &err);

	if (r < 0)
		return r;
	printf("verdict %u lost=%" PRIu64 " unattributed=%" PRIu64 " missed=%" PRIu64
	       " records=%" PRIu64 " open=%" PRIu64 " no_start=%" PRIu64 " books=%" PRIu64
	       "/%" PRIu64 "\n",
	       v.code, v.n_lost, v.n_unattributed, v.n_missed, v.n_records, v.n_open, v.n_no_start,
	       v.books_unbalanced, v.books_checked);
	return 0;
}

int main(int argc, char **argv)
{
	struct iot_error err = {0};
	struct iot_segment *s;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: segment-dump FILE\n");
		return 64;
	}
	r = iot_segment_open(argv[1], &s, &err);
	if (r < 0) {
		fprintf(stderr, "segment-dump: %s\n", err.text);
		return 1;
	}
	print_info(iot_segment_info(s));
	r = print_blocks(s);
	if (r == 0)
		r = print_losses(s);
	if (r == 0 && iot_segment_footer(s))
		print_footer(iot_segment_footer(s));
	if (r == 0)
		r = print_verdict(s);
	iot_segment_close(s);
	return r < 0;
}
