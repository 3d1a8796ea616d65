// SPDX-License-Identifier: BSD-2-Clause
/*
 * capture-times.c - the two clocks of a capture of packets.
 *
 * Records and doubts have times of CLOCK_MONOTONIC, questions those of the clock on the wall. Each segment has a
 * reading of both, and its times are turned by that one, as everywhere: the wall clock may have been set since the
 * capture began, and then no single reading is right for all of it. So a time by the wall may be several by the
 * other clock, or none, and both clocks together go forward within a segment only (ctl_step_check()).
 */
#include "daemon/ctl/packets.h"

static uint64_t begin_of(const struct ctl_capture *c, size_t i)
{
	const struct iot_footer *f = c->footers[i];

	if (i == 0)
		return c->first_ns;
	return f && f->epoch_first_ns ? f->epoch_first_ns : c->infos[i]->clocks.monotonic_ns;
}

static uint64_t end_of(const struct ctl_capture *c, size_t i)
{
	const struct iot_footer *f = c->footers[i];

	return f && f->epoch_last_ns ? f->epoch_last_ns : begin_of(c, i);
}

/* What lies between two segments is of both: either's clocks may be those of that time. */
static uint64_t from_of(const struct ctl_capture *c, size_t i)
{
	return i > 0 ? IOT_MIN(begin_of(c, i), end_of(c, i - 1)) : begin_of(c, i);
}

static uint64_t to_of(const struct ctl_capture *c, size_t i)
{
	if (i + 1 < c->n)
		return IOT_MAX(end_of(c, i), begin_of(c, i + 1));
	/* Without a footer its end is not known: its own doubts cover that. */
	return c->footers[i] && c->last_ns ? c->last_ns : UINT64_MAX;
}

static uint64_t wall_of(const struct ctl_capture *c, size_t i, uint64_t monotonic_ns)
{
	return monotonic_ns == UINT64_MAX
		       ? UINT64_MAX
		       : iot_clocks_realtime_ns(&c->infos[i]->clocks, monotonic_ns);
}

static uint64_t monotonic_of(const struct ctl_capture *c, size_t i, uint64_t realtime_ns)
{
	uint64_t base = wall_of(c, i, 0);

	return realtime_ns > base ? realtime_ns - base : 0;
}

uint64_t ctl_capture_realtime_ns(const struct ctl_capture *c, uint64_t monotonic_ns)
{
	size_t i = c->n - 1;

	while (i > 0 && begin_of(c, i) > monotonic_ns)
		i--;
	return wall_of(c, i, monotonic_ns);
}

void ctl_capture_spans(const struct ctl_capture *c, struct ctl_span *ret)
{
	for (size_t i = 0; i < c->n; i++) {
		ret[i] = (struct ctl_span){
			.info = c->infos[i],
			.first_ns = wall_of(c, i, from_of(c, i)),
			.last_ns = wall_of(c, i, to_of(c, i)),
		};
		/* A time that the wall clock was set past was never there to be recorded. */
		if (i + 1 < c->n)
			ret[i].last_ns =
				IOT_MAX(ret[i].last_ns, wall_of(c, i + 1, from_of(c, i + 1)));
	}
}

int ctl_capture_asked(const struct ctl_capture *c, const struct iot_filter *f,
		      struct ctl_part **ret, size_t *ret_n)
{
	struct ctl_part *parts = calloc(c->n, sizeof(*parts));
	size_t n = 0;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		struct ctl_part p = {.first_ns = from_of(c, i), .last_ns = to_of(c, i)};
		struct ctl_part *before = n > 0 ? &parts[n - 1] : NULL;

		if (f->since_ns)
			p.first_ns = IOT_MAX(p.first_ns, monotonic_of(c, i, f->since_ns));
		if (f->until_ns)
			p.last_ns = IOT_MIN(p.last_ns, monotonic_of(c, i, f->until_ns));
		if (p.first_ns > p.last_ns)
			continue;
		p.wall_first_ns = wall_of(c, i, p.first_ns);
		p.wall_last_ns = wall_of(c, i, p.last_ns);
		if (!before || p.first_ns > before->last_ns) {
			parts[n++] = p;
			continue;
		}
		before->last_ns = IOT_MAX(before->last_ns, p.last_ns);
		before->wall_first_ns = IOT_MIN(before->wall_first_ns, p.wall_first_ns);
		before->wall_last_ns = IOT_MAX(before->wall_last_ns, p.wall_last_ns);
	}
	*ret = parts;
	*ret_n = n;
	return 0;
}
