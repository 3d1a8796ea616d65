// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan-read.c - the records of a scan that pass its filter: one by one in time order, or a block at a time.
 */
#include "format/books.h"
#include "format/scan-internal.h"

static bool match_dev(struct iot_scan *sc, const struct iot_segment *s, uint32_t dev, uint32_t part)
{
	struct iot_dev_answer *a = &sc->devs[(dev * 31 + part) % IOT_DEV_CACHE];

	if (a->s != s || a->dev != dev || a->part != part)
		*a = (struct iot_dev_answer){
			.s = s,
			.dev = dev,
			.part = part,
			.match = iot_filter_match_dev(&sc->filter, s, dev, part),
		};
	return a->match;
}

static enum iot_match match(struct iot_scan *sc, const struct iot_segment *s,
			    const struct iot_request *r)
{
	const struct iot_filter *f = &sc->filter;

	if ((f->since_ns || f->until_ns) &&
	    !iot_filter_match_time(f, iot_segment_realtime_ns(s, r->complete_ns)))
		return IOT_MATCH_NO;
	if (f->dev[0] && !match_dev(sc, s, r->dev, r->part))
		return IOT_MATCH_NO;
	return iot_filter_match_fields(f, r);
}

/* The segments of one stream; they are sorted by it. */
static int new_merge(struct iot_scan *sc, enum iot_stream stream, struct iot_verdict *notes,
		     struct iot_merge **ret, struct iot_error *err)
{
	struct iot_segment **first = sc->segments;
	size_t n = 0;

	while (first < sc->segments + sc->n_segments && iot_segment_info(*first)->stream < stream)
		first++;
	while (first + n < sc->segments + sc->n_segments &&
	       iot_segment_info(first[n])->stream == stream)
		n++;
	return iot_merge_new(first, n, &sc->filter, notes, ret, err);
}

static int start_merge(struct iot_scan *sc, enum iot_stream stream, struct iot_error *err)
{
	struct iot_merge **m = &sc->merge[stream];

	return *m ? 0 : new_merge(sc, stream, &sc->reading, m, err);
}

static void count_read(struct iot_scan *sc, uint32_t n)
{
	uint64_t before = sc->n_read / IOT_SCAN_PROGRESS_RECORDS;

	sc->n_read += n;
	if (sc->progress && sc->n_read / IOT_SCAN_PROGRESS_RECORDS != before)
		sc->progress(sc->progress_arg, sc->n_read);
}

static int next_row(struct iot_scan *sc, enum iot_stream stream, uint64_t columns,
		    struct iot_row *ret, struct iot_error *err)
{
	int r = start_merge(sc, stream, err);

	if (r < 0)
		return r;
	count_read(sc, 1);
	return iot_merge_next(sc->merge[stream], columns, ret, err);
}

void iot_scan_progress(struct iot_scan *sc, iot_scan_progress_fn fn, void *arg)
{
	sc->progress = fn;
	sc->progress_arg = arg;
}

int iot_scan_next(struct iot_scan *sc, struct iot_request *ret, struct iot_segment **ret_segment,
		  struct iot_error *err)
{
	uint64_t columns = sc->columns | iot_filter_columns(&sc->filter);
	enum iot_match m;
	struct iot_row row;
	int r;

	do {
		r = next_row(sc, IOT_STREAM_BLOCK, columns, &row, err);
		sc->read_all |= r == IOT_READ_END;
		if (r != 0)
			return r;
		iot_batch_get(row.batch, row.i, ret);
		m = match(sc, row.segment, ret);
		sc->n_untold += m == IOT_MATCH_MAYBE && !sc->read_all;
	} while (m != IOT_MATCH_YES);
	if (ret_segment)
		*ret_segment = row.segment;
	return 0;
}

int iot_scan_next_packet(struct iot_scan *sc, struct iot_packet *ret,
			 struct iot_segment **ret_segment, struct iot_error *err)
{
	struct iot_row row;
	int r;

	do {
		r = next_row(sc, IOT_STREAM_PACKET, IOT_PCOLS_ALL, &row, err);
		if (r != 0)
			return r;
		iot_batch_get_packet(row.batch, row.i, ret);
	} while (!iot_filter_match_packet(&sc->filter, row.segment, ret));
	if (ret_segment)
		*ret_segment = row.segment;
	return 0;
}

bool iot_scan_range(const struct iot_segment *s, uint64_t first_ns, uint64_t last_ns,
		    uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	*ret_from_ns = iot_segment_realtime_ns(s, first_ns);
	*ret_to_ns = iot_segment_realtime_ns(s, last_ns);
	return *ret_from_ns <= *ret_to_ns;
}

/* Every record of the block passes, whatever it is. */
static bool all_pass(const struct iot_filter *f, const struct iot_segment *s,
		     const struct iot_batch *b)
{
	uint64_t from, to;

	if (iot_filter_columns(f) & ~IOT_COLS_COMPLETE || f->flow.set || f->probe[0])
		return false;
	return (!f->since_ns && !f->until_ns) ||
	       (iot_scan_range(s, iot_batch_first_ns(b), iot_batch_last_ns(b), &from, &to) &&
		iot_filter_match_time(f, from) && iot_filter_match_time(f, to));
}

/* at (may be NULL): which rows of the block pass. Returns how many. */
static uint32_t match_block(struct iot_scan *sc, const struct iot_row *block, uint32_t *at)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < iot_batch_count(block->batch); i++) {
		struct iot_request request;
		enum iot_match m;

		iot_batch_get(block->batch, i, &request);
		m = match(sc, block->segment, &request);
		sc->n_untold += m == IOT_MATCH_MAYBE && !sc->read_all;
		if (m != IOT_MATCH_YES)
			continue;
		if (at)
			at[n] = i;
		n++;
	}
	return n;
}

int iot_scan_next_block(struct iot_scan *sc, struct iot_rows *ret, struct iot_error *err)
{
	uint64_t columns = sc->columns | iot_filter_columns(&sc->filter);
	struct iot_row block;
	uint32_t n;
	int r;

	do {
		r = start_merge(sc, IOT_STREAM_BLOCK, err);
		if (r == 0)
			r = iot_merge_next_block(sc->merge[IOT_STREAM_BLOCK], columns, &block, err);
		sc->read_all |= r == IOT_READ_END;
		if (r != 0)
			return r;
		n = iot_batch_count(block.batch);
		count_read(sc, n);
		*ret = (struct iot_rows){.segment = block.segment, .batch = block.batch, .n = n};
		if (all_pass(&sc->filter, block.segment, block.batch))
			return 0;
		if (!sc->at)
			sc->at = malloc(IOT_BLOCK_RECORDS_MAX * sizeof(*sc->at));
		if (!sc->at)
			return iot_error_set(err, -ENOMEM, "out of memory");
		ret->at = sc->at;
		ret->n = match_block(sc, &block, sc->at);
	} while (!ret->n);
	return 0;
}

/* They are counted on the way, or, where a verdict is asked for before they were read, for it alone. */
int iot_scan_note_untold(struct iot_scan *sc, struct iot_verdict *v, struct iot_error *err)
{
	_cleanup_(iot_merge_freep) struct iot_merge *m = NULL;
	const struct iot_filter *f = &sc->filter;
	struct iot_verdict damage = {0}; /* is noted elsewhere */
	int r = 0;

	if (!f->pid && !f->comm[0] && !f->min_latency_ns)
		return 0;
	if (!sc->read_all) {
		sc->n_untold = 0;
		r = new_merge(sc, IOT_STREAM_BLOCK, &damage, &m, err);
	}
	while (r == 0 && !sc->read_all) {
		struct iot_row block;

		r = iot_merge_next_block(m, iot_filter_columns(f), &block, err);
		if (r == 0)
			match_block(sc, &block, NULL);
		sc->read_all = r == IOT_READ_END;
	}
	if (r < 0)
		return r;
	if (sc->n_untold)
		iot_verdict_reason(
			v, IOT_VERDICT_UNKNOWN,
			"%llu request%s may be meant, too: in flight when recording began, "
			"%s not recorded",
			(unsigned long long)sc->n_untold, sc->n_untold == 1 ? "" : "s",
			!f->min_latency_ns     ? "by which process is"
			: f->pid || f->comm[0] ? "by which process or since when is"
					       : "since when is");
	return 0;
}
