// SPDX-License-Identifier: BSD-2-Clause
/*
 * filter.c - what --dev, --op, --swap, --pid, --comm, --min-latency, --since and --until mean, for
 * every verb. Pure: a record, the tables of its segment, yes or no.
 *
 * A request belongs to the moment of its completion (one still in flight to that of its start), so
 * that a count over [since, until] is the same whichever way the files were cut. A field the record
 * does not have never matches a filter on it; that it might is said by the scan's verdict.
 */
#include "format/books.h"
#include "format/scan-internal.h"

static const char *find_device(const struct iot_segment *s, uint32_t dev)
{
	const struct iot_footer *f = iot_segment_footer(s);
	const char *name = f ? iot_names_find(&f->devices, dev) : NULL;

	/* The footer's table is complete, the header's is what was known at the beginning. */
	return name ? name : iot_names_find(&iot_segment_info(s)->devices, dev);
}

const char *iot_dev_name(const struct iot_segment *s, uint32_t dev, char *buf, size_t size)
{
	const char *name = find_device(s, dev);

	if (name)
		return name;
	snprintf(buf, size, "%u:%u", IOT_DEV_MAJOR(dev), IOT_DEV_MINOR(dev));
	return buf;
}

/* "259:1" -> device number. */
static bool parse_numbers(const char *text, uint32_t *ret)
{
	const char *colon = strchr(text, ':');
	char major[16];
	uint64_t ma, mi;

	if (!colon || (size_t)(colon - text) >= sizeof(major))
		return false;
	memcpy(major, text, (size_t)(colon - text));
	major[colon - text] = '\0';
	if (iot_parse_u64(major, &ma) < 0 || iot_parse_u64(colon + 1, &mi) < 0)
		return false;
	if (ma > IOT_DEV_MAJOR_MAX || mi > IOT_DEV_MINOR_MAX)
		return false;
	*ret = IOT_DEV(ma, mi);
	return true;
}

static bool match_one(const char *want, const struct iot_segment *s, uint32_t dev)
{
	const char *name;
	uint32_t number;

	if (parse_numbers(want, &number))
		return number == dev;
	name = find_device(s, dev);
	return name && strcmp(name, want) == 0;
}

bool iot_filter_match_dev(const struct iot_filter *f, const struct iot_segment *s, uint32_t dev,
			  uint32_t part)
{
	const char *want = f->dev;

	if (!want[0])
		return true;
	if (strncmp(want, "/dev/", 5) == 0)
		want += 5;
	/* A partition's requests are also its disk's. */
	return match_one(want, s, dev) || (part != dev && match_one(want, s, part));
}

bool iot_filter_match_time(const struct iot_filter *f, uint64_t realtime_ns)
{
	return (!f->since_ns || realtime_ns >= f->since_ns) &&
	       (!f->until_ns || realtime_ns <= f->until_ns);
}

/* A request merged from both is one of either kind: report counts of each its share. */
static bool match_swap(enum iot_swap_filter want, uint8_t swap, uint32_t unswapped_bytes)
{
	switch (want) {
	case IOT_SWAP_ANY:
		return true;
	case IOT_SWAP_ONLY:
		return swap != IOT_SWAP_NONE;
	case IOT_SWAP_WITHOUT:
		return swap == IOT_SWAP_NONE || unswapped_bytes;
	case IOT_SWAP_ONLY_OUT:
		return swap == IOT_SWAP_OUT;
	case IOT_SWAP_ONLY_IN:
		return swap == IOT_SWAP_IN;
	}
	return false;
}

/* Of one whose start was not seen it took at least as long as from its issue on. */
static enum iot_match match_latency(uint64_t min_ns, const struct iot_request *r)
{
	uint64_t begin = r->start_ns ? r->start_ns : r->issue_ns;

	if (!min_ns || (begin && r->complete_ns >= begin && r->complete_ns - begin >= min_ns))
		return IOT_MATCH_YES;
	return r->start_ns ? IOT_MATCH_NO : IOT_MATCH_MAYBE;
}

static enum iot_match match_who(const struct iot_filter *f, const struct iot_request *r)
{
	if (!f->pid && !f->comm[0])
		return IOT_MATCH_YES;
	if (r->submitter == IOT_SUBMITTER_NONE)
		return IOT_MATCH_MAYBE;
	return (!f->pid || r->pid == f->pid || r->tgid == f->pid) &&
	       (!f->comm[0] || strncmp(f->comm, r->comm, IOT_COMM_LEN) == 0);
}

enum iot_match iot_filter_match_fields(const struct iot_filter *f, const struct iot_request *r)
{
	enum iot_match who, latency;

	if (f->ops && (r->op >= 32 || !(f->ops & (1U << r->op))))
		return IOT_MATCH_NO;
	if (f->id && r->id != f->id)
		return IOT_MATCH_NO;
	if (f->flow.set || f->probe[0] || !match_swap(f->swap, r->swap, r->unswapped_bytes))
		return IOT_MATCH_NO;
	who = match_who(f, r);
	latency = match_latency(f->min_latency_ns, r);
	if (who == IOT_MATCH_NO || latency == IOT_MATCH_NO)
		return IOT_MATCH_NO;
	return who == IOT_MATCH_MAYBE ? who : latency;
}

bool iot_filter_match(const struct iot_filter *f, const struct iot_segment *s,
		      const struct iot_request *r)
{
	if (iot_filter_match_fields(f, r) != IOT_MATCH_YES ||
	    !iot_filter_match_dev(f, s, r->dev, r->part))
		return false;
	if (!f->since_ns && !f->until_ns)
		return true;
	return iot_filter_match_time(
		f, iot_segment_realtime_ns(s, r->complete_ns ? r->complete_ns : r->start_ns));
}

const char *iot_iface_name(const struct iot_segment *s, uint32_t netns, uint32_t ifindex)
{
	const struct iot_footer *f = iot_segment_footer(s);
	const char *name = f ? iot_names_find(&f->devices, IOT_IFACE_KEY(netns, ifindex)) : NULL;

	return name ? name
		    : iot_names_find(&iot_segment_info(s)->devices, IOT_IFACE_KEY(netns, ifindex));
}

static bool match_iface(const char *want, const struct iot_segment *s, uint32_t netns,
			uint32_t ifindex)
{
	const char *name;

	if (!want[0])
		return true;
	name = iot_iface_name(s, netns, ifindex);
	return name && strcmp(name, want) == 0;
}

const char *iot_segment_probe_label(const struct iot_segment *s, uint16_t probe, char *buf,
				    size_t size)
{
	return iot_probe_label(iot_segment_info(s), iot_segment_footer(s), probe, buf, size);
}

static bool match_probe(const char *want, const struct iot_segment *s, uint16_t probe)
{
	char name[64];

	return !want[0] || strcmp(want, iot_segment_probe_label(s, probe, name, sizeof(name))) == 0;
}

/* A packet has no operation, no swap tag and no latency. */
static bool about_requests(const struct iot_filter *f)
{
	return f->ops || f->swap != IOT_SWAP_ANY || f->min_latency_ns;
}

bool iot_filter_match_packet(const struct iot_filter *f, const struct iot_segment *s,
			     const struct iot_packet *p)
{
	bool task = p->flags & IOT_PACKET_TASK;

	if (about_requests(f) || (f->id && p->id != f->id))
		return false;
	if (f->pid && (!task || (p->pid != f->pid && p->tgid != f->pid)))
		return false;
	if (f->comm[0] && (!task || strncmp(f->comm, p->comm, IOT_COMM_LEN) != 0))
		return false;
	if (f->flow.set && iot_flow_matches(&f->flow, &p->flow, p->flags) != IOT_MATCH_YES)
		return false;
	if (!match_probe(f->probe, s, p->probe) || !match_iface(f->dev, s, p->netns, p->ifindex))
		return false;
	return (!f->since_ns && !f->until_ns) ||
	       iot_filter_match_time(f, iot_segment_realtime_ns(s, p->ts_ns));
}

/* A loss that may be of the flow passes: between two doubts the larger one wins. */
static bool match_packet_loss(const struct iot_filter *f, const struct iot_segment *s,
			      const struct iot_loss *loss)
{
	return !about_requests(f) && match_probe(f->probe, s, loss->probe) &&
	       match_iface(f->dev, s, loss->netns, loss->ifindex) &&
	       iot_flow_matches(&f->flow, &loss->flow, loss->flags) != IOT_MATCH_NO;
}

bool iot_filter_match_loss(const struct iot_filter *f, const struct iot_segment *s,
			   const struct iot_loss *loss)
{
	if (f->id && loss->id != f->id)
		return false;
	if (iot_segment_info(s)->stream == IOT_STREAM_PACKET) {
		if (!match_packet_loss(f, s, loss))
			return false;
	} else {
		if (f->flow.set || f->probe[0])
			return false;
		if (f->ops && (loss->op >= 32 || !(f->ops & (1U << loss->op))))
			return false;
		if (!match_swap(f->swap, loss->swap, loss->unswapped_bytes))
			return false;
		if (!iot_filter_match_dev(f, s, loss->dev, loss->part))
			return false;
	}
	/* A loss spans a time: it passes if any of it could lie inside. */
	return (!f->since_ns || iot_segment_realtime_ns(s, loss->last_ns) >= f->since_ns) &&
	       (!f->until_ns || iot_segment_realtime_ns(s, loss->first_ns) <= f->until_ns);
}

void iot_filter_share(const struct iot_filter *f, struct iot_request *r)
{
	if (!r->unswapped_bytes || f->swap == IOT_SWAP_ANY)
		return;
	if (f->swap == IOT_SWAP_WITHOUT) {
		r->bytes_done -= (uint32_t)iot_swapped(r->swap, r->bytes_done, r->unswapped_bytes);
		r->bytes = r->unswapped_bytes;
		r->swap = IOT_SWAP_NONE;
	} else {
		r->bytes_done = (uint32_t)iot_swapped(r->swap, r->bytes_done, r->unswapped_bytes);
		r->bytes = (uint32_t)iot_swapped(r->swap, r->bytes, r->unswapped_bytes);
	}
	r->unswapped_bytes = 0;
}

void iot_filter_share_loss(const struct iot_filter *f, struct iot_loss *loss)
{
	uint64_t swapped = iot_swapped(loss->swap, loss->bytes, loss->unswapped_bytes);

	if (!loss->unswapped_bytes || f->swap == IOT_SWAP_ANY)
		return;
	loss->bytes = f->swap == IOT_SWAP_WITHOUT ? loss->bytes - swapped : swapped;
	if (f->swap == IOT_SWAP_WITHOUT)
		loss->swap = IOT_SWAP_NONE;
	loss->unswapped_bytes = 0;
}

uint64_t iot_filter_columns(const struct iot_filter *f)
{
	uint64_t columns = 0;

	if (f->since_ns || f->until_ns)
		columns |= IOT_COLS_COMPLETE;
	if (f->dev[0])
		columns |= IOT_COLS_DEVICE;
	if (f->ops || f->swap != IOT_SWAP_ANY)
		columns |= IOT_COLS_OP;
	if (f->pid || f->comm[0])
		columns |= IOT_COLS_CONTEXT | IOT_COLS_OP; /* whether there is a submitter, too */
	if (f->min_latency_ns)
		columns |= IOT_COLS_COMPLETE | IOT_COLS_START | IOT_COLS_ISSUE;
	if (f->id)
		columns |= IOT_COLS_ID;
	return columns;
}
