// SPDX-License-Identifier: BSD-2-Clause
/*
 * make-packets.c - captures of the packet stream with known contents, written by the real writer: what the
 * tests of iotracectl read.
 *
 *	make-packets DIR KIND [OPTION...]
 *
 * OPTION, to make it one of several captures: capture=N, machine=N, boot=N (numbers instead of the usual
 * ids), later=SECONDS (by the wall clock). The wall clock is set: forward=SECONDS, back=SECONDS (between the first
 * two segments), within=SECONDS (forward, in the middle of the second).
 *
 * KIND is one of the rows of `kinds`: what is spoiled in a capture of three segments, each of 50 UDP packets
 * with five observations, ten TCP packets (ids from 1,000,000 on) under merged ids, and five packets that a
 * filter dropped. Packets of segment k (from 0) have the ids (k + 1) * 1000 + 0..49, drops ... + 500..504. The
 * same arguments always give the same bytes. DIR/packet-<capture>-<seq>.iot (or .open).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/packet-fixture.h"

#define N_UDP 50U
#define N_TCP 10U
#define N_DROPS 5U
#define RECORD_BYTES 136U

static uint64_t start_of(unsigned int segment, uint64_t i)
{
	return FIX_SPAN_NS * (segment + 1) + 100 * FIX_SEC_NS + i * FIX_SEC_NS;
}

static void add_tcp(struct fix_capture *c, unsigned int segment, uint64_t i)
{
	uint64_t id = 1000000 + segment * 1000 + i;

	for (uint32_t hop = 1; hop <= 4; hop++) {
		struct iot_packet p = fix_packet(id, start_of(segment, 200 + i), hop);

		p.flow.ip_proto = 6;
		p.flow.dport = 443;
		p.l4[0] = 0x18;
		p.flags |= IOT_PACKET_MERGED;
		fix_record(c, segment, &p);
	}
}

static void add_drop(struct fix_capture *c, unsigned int segment, uint64_t i)
{
	uint64_t id = (segment + 1) * 1000 + 500 + i, first = start_of(segment, 300 + i);
	struct iot_packet p = fix_packet(id, first, 4);

	fix_path(c, segment, id, first, 1, 3);
	p.probe = FIX_KFREE;
	p.flags |= IOT_PACKET_END;
	p.code = i % 2 ? 9 : 6;
	p.where = i % 2 ? 0 : 0xffffffff81001234ULL;
	fix_record(c, segment, &p);
}

static void fill(struct fix_capture *c)
{
	for (unsigned int segment = 0; segment < c->n; segment++) {
		for (uint64_t i = 0; i < N_UDP; i++)
			fix_path(c, segment, (segment + 1) * 1000 + i, start_of(segment, i), 1, 5);
		for (uint64_t i = 0; i < N_TCP; i++)
			add_tcp(c, segment, i);
		for (uint64_t i = 0; i < N_DROPS; i++)
			add_drop(c, segment, i);
	}
}

/* Takes the record of a packet's hop out of the capture. */
static struct iot_packet take(struct fix_capture *c, uint64_t id, uint32_t hop)
{
	for (size_t i = 0; i < c->n_records; i++) {
		struct fix_record rec = c->records[i];
		struct iot_books *b;

		if (rec.p.id != id || rec.p.hop != hop)
			continue;
		memmove(&c->records[i], &c->records[i + 1],
			(c->n_records - i - 1) * sizeof(*c->records));
		c->n_records--;
		b = fix_books(&c->s[rec.segment], rec.p.probe, rec.p.cpu);
		b->seen--;
		b->emitted--;
		b->written--;
		return rec.p;
	}
	fprintf(stderr, "make-packets: no hop %u of packet %llu\n", hop, (unsigned long long)id);
	exit(1);
}

static void clean(struct fix_capture *c)
{
	(void)c;
}

/* 2003 loses hop 3; 2004 all five; a drop. */
static void lost(struct fix_capture *c)
{
	struct iot_packet p = take(c, 2003, 3);

	(void)fix_lose(c, 1, &p);
	for (uint32_t hop = 1; hop <= 5; hop++) {
		p = take(c, 2004, hop);
		(void)fix_lose(c, 1, &p);
	}
	p = take(c, 2501, 4);
	(void)fix_lose(c, 1, &p);
}

/* The ends of 2010 to 2014 are lost without an owner, in a window of five seconds. */
static void unattributed(struct fix_capture *c)
{
	for (uint64_t i = 10; i < 15; i++)
		(void)take(c, 2000 + i, 5);
	fix_unattributed(c, 1, FIX_CONSUME, start_of(1, 10), start_of(1, 15) - 1, 5);
}

static void missed(struct fix_capture *c)
{
	fix_missed(c, 1, FIX_RECEIVE, start_of(1, 20), start_of(1, 20) + FIX_STEP_NS, 1);
}

static void clones(struct fix_capture *c) /* 2600 is a clone of 2005, and loses an observation */
{
	for (uint32_t hop = 1; hop <= 5; hop++) {
		struct iot_packet p = fix_packet(2600, start_of(1, 5) + 1000, hop);

		p.parent = 2005;
		p.flags |= IOT_PACKET_CLONE;
		if (hop == 2)
			(void)fix_lose(c, 1, &p);
		else
			fix_record(c, 1, &p);
	}
}

static void unidentified(struct fix_capture *c)
{
	struct iot_packet p = fix_packet(0, start_of(1, 30), 4);

	fix_record(c, 1, &p);
}

static void no_ledger(struct fix_capture *c)
{
	lost(c);
	c->s[1].f.n_losses = 0;
}

static void absent_counter(struct fix_capture *c)
{
	fix_books(&c->s[1], FIX_RECEIVE, UINT32_MAX)->missed = IOT_COUNT_UNKNOWN;
}

static void missing_neighbour(struct fix_capture *c)
{
	c->missing[1] = true;
}

static void torn(struct fix_capture *c)
{
	c->no_footer[2] = true;
}

static void sampled(struct fix_capture *c)
{
	for (size_t i = 0; i < c->n; i++) {
		snprintf(c->s[i].info.selection, sizeof(c->s[i].info.selection), "1 flow in 8");
		fix_books(&c->s[i], FIX_QUEUE, 0)->seen += 7;
		fix_books(&c->s[i], FIX_QUEUE, 0)->not_selected += 7;
	}
}

/*
 * 2005 and 2006 have an observation after their end, whose time is that of hop 2: between the hops by time,
 * behind them by their numbers.
 */
static void after_end(struct fix_capture *c)
{
	for (uint64_t i = 5; i < 7; i++) {
		struct iot_packet p = fix_packet(2000 + i, start_of(1, i), 2);

		p.hop = 0;
		p.probe = FIX_XMIT;
		p.flags |= IOT_PACKET_AFTER_END;
		fix_record(c, 1, &p);
	}
}

/* Drops of segment 2 that are in no record: two left out, three lost without an owner, one missed. */
static void drops_lost(struct fix_capture *c)
{
	struct iot_books *b = fix_books(&c->s[1], FIX_KFREE, 0);

	b->seen += 2;
	b->not_selected += 2;
	b->suppressed += 2;
	fix_unattributed(c, 1, FIX_KFREE, start_of(1, 10), start_of(1, 15) - 1, 3);
	fix_missed(c, 1, FIX_KFREE, start_of(1, 20), start_of(1, 20) + FIX_STEP_NS, 1);
}

static void empty(struct fix_capture *c)
{
	c->n_records = 0;
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->s[i].f.n_books; k++) {
			struct iot_books *b = &c->s[i].books[k];

			b->seen = b->emitted = b->written = 0;
		}
}

/* Births, ends of what was never seen, and messages that are no packets. */
static void folded(struct fix_capture *c)
{
	static const uint16_t probes[] = {FIX_CONSUME, FIX_KFREE, FIX_BIRTH};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(probes); i++) {
		fix_books(&c->s[1], probes[i], 0)->seen++;
		fix_books(&c->s[1], probes[i], 0)->folded++;
	}
}

/* Of 2005 there is its end, which is recorded whatever the selection is. */
static void unselected(struct fix_capture *c)
{
	for (size_t i = 0; i < c->n_records; i++) {
		struct iot_packet *p = &c->records[i].p;

		if (p->id == 2005 && p->hop == 5) {
			p->hop = 1;
			p->flags |= IOT_PACKET_NOT_SELECTED;
			p->id = 2999;
		}
	}
	for (uint32_t hop = 1; hop <= 4; hop++) {
		struct iot_packet p = take(c, 2005, hop);

		fix_books(&c->s[1], p.probe, p.cpu)->seen++;
		fix_books(&c->s[1], p.probe, p.cpu)->not_selected++;
	}
}

static const struct {
	const char *name;
	void (*spoil)(struct fix_capture *c);
} kinds[] = {
	{"clean", clean},
	{"lost", lost},
	{"unattributed", unattributed},
	{"missed", missed},
	{"clones", clones},
	{"unidentified", unidentified},
	{"no-ledger", no_ledger},
	{"absent-counter", absent_counter},
	{"missing-neighbour", missing_neighbour},
	{"torn", torn},
	{"sampled", sampled},
	{"after-end", after_end},
	{"drops-lost", drops_lost},
	{"empty", empty},
	{"folded", folded},
	{"unselected", unselected},
};

static void must(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "make-packets: %s: %s\n", what, strerror(-r));
	exit(1);
}

static int cmp_record(const void *a, const void *b)
{
	const struct fix_record *x = a, *y = b;

	return iot_cmp_u64(x->p.ts_ns, y->p.ts_ns);
}

static void write_segment(struct fix_capture *c, unsigned int i, int dirfd, uint64_t *ring_pos,
			  uint64_t *footer_hash)
{
	struct fix_segment *s = &c->s[i];
	struct iot_span span = {.p0 = *ring_pos};
	struct iot_writer *w;
	struct iot_batch *b;
	char name[128], *p = name;

	p += snprintf(name, sizeof(name), "packet-");
	for (size_t k = 0; k < 16; k++)
		p += snprintf(p, 4, "%02x", s->info.capture_id[k]);
	snprintf(p, 32, "-%010llu.%s", (unsigned long long)s->info.seq,
		 c->no_footer[i] ? "open" : "iot");
	must(iot_writer_open(dirfd, name, &s->info, &w), name);
	must(iot_batch_new_stream(IOT_STREAM_PACKET, FIX_MAX_RECORDS, &b), "batch");
	for (size_t k = 0; k < c->n_records; k++) {
		if (c->records[k].segment != i)
			continue;
		must(iot_batch_add_packet(b, &c->records[k].p), "record");
		*ring_pos += RECORD_BYTES;
	}
	span.p1 = *ring_pos;
	must(iot_writer_put(w, b, &span, 1), "block");
	s->f.prev_footer_hash = *footer_hash;
	if (!c->no_footer[i]) {
		must(iot_writer_seal(w, &s->f), "seal");
		*footer_hash = iot_writer_footer_hash(w);
	}
	iot_batch_free(b);
	iot_writer_close(w);
	if (c->missing[i] && unlinkat(dirfd, name, 0) < 0)
		must(-errno, name);
}

/* Each capture numbers places in code for itself: one place has another number in each. */
static void renumber_places(struct fix_capture *c, uint64_t n)
{
	for (size_t i = 0; i < c->n_records; i++)
		if (c->records[i].p.where)
			c->records[i].p.where = n;
	for (size_t i = 0; i < c->n; i++)
		c->s[i].symbols[0].key = n;
}

/* From the header of segment `header` on, and the footer of segment `footer`. */
static void set_clock(struct fix_capture *c, size_t header, size_t footer, uint64_t by_ns)
{
	for (size_t i = header; i < c->n; i++)
		c->s[i].info.clocks.realtime_ns += by_ns;
	for (size_t i = footer; i < c->n; i++)
		c->s[i].f.clocks.realtime_ns += by_ns;
}

static bool set_wall_clock(struct fix_capture *c, const char *option, size_t name, uint64_t n)
{
	if (strncmp(option, "forward=", name + 1) == 0)
		set_clock(c, 1, 1, n * FIX_SEC_NS);
	else if (strncmp(option, "back=", name + 1) == 0)
		set_clock(c, 1, 1, -(n * FIX_SEC_NS));
	else if (strncmp(option, "within=", name + 1) == 0)
		set_clock(c, 2, 1, n * FIX_SEC_NS);
	else if (strncmp(option, "later=", name + 1) == 0)
		set_clock(c, 0, 0, n * FIX_SEC_NS);
	else
		return false;
	return true;
}

/* false: no such option. */
static bool set_option(struct fix_capture *c, const char *option)
{
	size_t name = strcspn(option, "=");
	uint64_t n;

	if (option[name] != '=' || iot_parse_u64(option + name + 1, &n) < 0)
		return false;
	if (set_wall_clock(c, option, name, n))
		return true;
	for (size_t i = 0; i < c->n; i++) {
		struct iot_segment_info *info = &c->s[i].info;

		if (strncmp(option, "capture=", name + 1) == 0) {
			memset(info->capture_id, (int)n, sizeof(info->capture_id));
			renumber_places(c, n);
		} else if (strncmp(option, "boot=", name + 1) == 0) {
			memset(info->boot_id, (int)n, sizeof(info->boot_id));
		} else if (strncmp(option, "machine=", name + 1) == 0) {
			memset(info->machine_id, (int)n, sizeof(info->machine_id));
			snprintf(info->host, sizeof(info->host), "host%llu", (unsigned long long)n);
		} else {
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct fix_capture c;
	uint64_t ring_pos = 0, footer_hash = 0;
	int dirfd;

	if (argc < 3) {
		fprintf(stderr, "usage: make-packets DIR KIND [OPTION...]\n");
		return 2;
	}
	dirfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		must(-errno, argv[1]);
	fix_init(&c, 3);
	fill(&c);
	for (size_t i = 0;; i++) {
		if (i == IOT_ARRAY_SIZE(kinds)) {
			fprintf(stderr, "make-packets: no kind '%s'\n", argv[2]);
			return 2;
		}
		if (strcmp(argv[2], kinds[i].name) == 0) {
			kinds[i].spoil(&c);
			break;
		}
	}
	for (int i = 3; i < argc; i++)
		if (!set_option(&c, argv[i])) {
			fprintf(stderr, "make-packets: no option '%s'\n", argv[i]);
			return 2;
		}
	qsort(c.records, c.n_records, sizeof(*c.records), cmp_record);
	for (unsigned int i = 0; i < c.n; i++)
		write_segment(&c, i, dirfd, &ring_pos, &footer_hash);
	close(dirfd);
	return 0;
}
