// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify-chain.c - segments of one capture as a whole: is anything missing between them?
 *
 * Each segment is true alone; a chain adds what only neighbours can show: a missing number, a
 * footer that does not link to the one before, time that no epoch covers, ring positions that no
 * block covers. The first segment given may be any (retention deletes the oldest), the last may
 * still be open. Around a rotation both files take records from the same stretch of a ring, so
 * spans of neighbours may overlap there, but leave no hole.
 */
#include "format/books.h"
#include "format/verify-internal.h"

#define MANY_SEGMENTS 64 /* more than these do not keep their files open */

/* One segment's verdict into the chain's, its reasons under its number. */
static void merge_numbered(struct iot_verdict *all, const struct iot_verdict *one, uint64_t seq)
{
	struct iot_verdict named = *one;

	for (size_t i = 0; i < one->n_reasons; i++) {
		char *to = named.reasons[i];
		int n = snprintf(to, sizeof(named.reasons[i]),
				 "segment %llu: ", (unsigned long long)seq);

		snprintf(to + n, sizeof(named.reasons[i]) - (size_t)n, "%.130s", one->reasons[i]);
	}
	iot_verdict_merge(all, &named);
	/* In flight at the last seal, not summed over seals. */
	all->n_open = one->n_open;
}

static void check_epochs(const struct iot_segment *prev, const struct iot_segment *cur,
			 struct iot_verdict *v)
{
	const struct iot_segment_info *a = iot_segment_info(prev), *b = iot_segment_info(cur);
	const struct iot_footer *fa = iot_segment_footer(prev), *fb = iot_segment_footer(cur);

	if (b->epoch <= a->epoch)
		iot_verdict_reason(v, IOT_VERDICT_CORRUPT,
				   "segment %llu: epoch %llu after epoch %llu: out of order",
				   (unsigned long long)b->seq, (unsigned long long)b->epoch,
				   (unsigned long long)a->epoch);
	else if (b->epoch != a->epoch + 1)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "epochs %llu to %llu have no segment",
				   (unsigned long long)a->epoch + 1,
				   (unsigned long long)b->epoch - 1);
	if (fa && fb && fa->epoch_last_ns && fb->epoch_first_ns > fa->epoch_last_ns)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "no epoch covers the %.6f s before segment %llu",
				   (double)(fb->epoch_first_ns - fa->epoch_last_ns) / 1e9,
				   (unsigned long long)b->seq);
	if (fa && fb && fb->epoch_first_ns && fb->epoch_first_ns < fa->epoch_first_ns)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "segment %llu begins before the one ahead of it",
				   (unsigned long long)b->seq);
}

static void check_link(const struct iot_segment *prev, const struct iot_segment *cur,
		       struct iot_verdict *v)
{
	const struct iot_footer *fa = iot_segment_footer(prev), *fb = iot_segment_footer(cur);
	unsigned long long seq = iot_segment_info(cur)->seq;

	/* A footer made by recovery is not the one its neighbours knew, and knows none itself. */
	if (!fa || !fb || fa->reason == IOT_SEAL_RECOVERED || fb->reason == IOT_SEAL_RECOVERED)
		return;
	if (fb->prev_footer_hash == 0)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "segment %llu does not say which footer came before it", seq);
	else if (fb->prev_footer_hash != iot_segment_footer_hash(prev))
		iot_verdict_reason(v, IOT_VERDICT_CORRUPT,
				   "segment %llu follows another footer than the one of segment "
				   "%llu: one of them was exchanged",
				   seq, (unsigned long long)iot_segment_info(prev)->seq);
}

static bool drops_by_books(const struct iot_footer *f)
{
	for (size_t i = 0; f && i < f->n_books; i++)
		if (f->books[i].decode_failed || f->books[i].output_failed)
			return true;
	return false;
}

/* Positions that an earlier segment reached; rings without a block since keep theirs. */
static void check_rings(const struct iot_segment *prev, const struct iot_segment *cur,
			const struct iot_ring_ends *a, const struct iot_ring_ends *b,
			struct iot_verdict *v)
{
	bool excused = !iot_segment_footer(prev) || iot_segment_damaged(prev) ||
		       iot_segment_damaged(cur) || drops_by_books(iot_segment_footer(prev)) ||
		       drops_by_books(iot_segment_footer(cur));
	unsigned long long seq = iot_segment_info(cur)->seq;

	for (unsigned int i = 0; i < IOT_MAX_RINGS; i++) {
		if (!a->known[i] || !b->known[i])
			continue;
		if (b->first[i] > a->last[i] && !excused)
			iot_verdict_reason(v, IOT_VERDICT_CORRUPT,
					   "segment %llu: ring %u is not covered from %llu to %llu",
					   seq, i, (unsigned long long)a->last[i],
					   (unsigned long long)b->first[i]);
		if (b->first[i] < a->first[i])
			iot_verdict_reason(v, IOT_VERDICT_CORRUPT,
					   "segment %llu: ring %u begins before the segment ahead "
					   "of it did",
					   seq, i);
	}
}

static void carry_rings(struct iot_ring_ends *to, const struct iot_ring_ends *from)
{
	for (unsigned int i = 0; i < IOT_MAX_RINGS; i++) {
		if (!from->known[i])
			continue;
		to->known[i] = true;
		to->first[i] = from->first[i];
		to->last[i] = from->last[i];
	}
}

static void check_pair(const struct iot_segment *prev, const struct iot_segment *cur,
		       const struct iot_ring_ends *a, const struct iot_ring_ends *b,
		       struct iot_verdict *v)
{
	const struct iot_segment_info *x = iot_segment_info(prev), *y = iot_segment_info(cur);

	if (memcmp(x->capture_id, y->capture_id, sizeof(x->capture_id)) != 0 ||
	    x->stream != y->stream) {
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
				   "segment %llu belongs to another capture or stream",
				   (unsigned long long)y->seq);
		return;
	}
	if (y->seq <= x->seq) {
		iot_verdict_reason(v, IOT_VERDICT_CORRUPT,
				   "segment %llu comes after segment %llu: out of order",
				   (unsigned long long)y->seq, (unsigned long long)x->seq);
		return;
	}
	if (y->seq != x->seq + 1) {
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "segments %llu to %llu are missing",
				   (unsigned long long)x->seq + 1, (unsigned long long)y->seq - 1);
		return;
	}
	check_epochs(prev, cur, v);
	check_link(prev, cur, v);
	check_rings(prev, cur, a, b, v);
}

int iot_verify_many(struct iot_segment **segments, size_t n, bool full, struct iot_verdict *ret,
		    struct iot_error *err)
{
	_cleanup_free_ struct iot_ring_ends *ends = calloc(2, sizeof(*ends));
	struct iot_verdict all = {0}, one;

	if (!ends)
		return iot_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		const struct iot_segment_info *info = iot_segment_info(segments[i]);
		const struct iot_footer *f = iot_segment_footer(segments[i]);
		struct iot_error why = {0};
		int r;

		ends[1] = (struct iot_ring_ends){0};
		r = iot_verify_one(segments[i], full, &ends[1], &one, &why);
		if (r < 0 && !iot_segment_gone(segments[i]))
			return iot_error_set(err, r, "%s", why.text);
		if (r < 0) {
			iot_verdict_gone(&one);
			ends[1] = (struct iot_ring_ends){0};
		}
		merge_numbered(&all, &one, info->seq);
		if (i > 0)
			check_pair(segments[i - 1], segments[i], &ends[0], &ends[1], &all);
		else if (info->seq == 1 && f && f->prev_footer_hash != 0)
			iot_verdict_reason(&all, IOT_VERDICT_CORRUPT,
					   "segment 1 says that a footer came before it");
		/* Across a hole nothing is known of the rings. */
		if (r < 0 || (i > 0 && info->seq != iot_segment_info(segments[i - 1])->seq + 1))
			ends[0] = (struct iot_ring_ends){0};
		carry_rings(&ends[0], &ends[1]);
		if (n >= MANY_SEGMENTS)
			iot_segment_park(segments[i]);
	}
	*ret = all;
	return 0;
}

int iot_verify_chain(struct iot_segment **segments, size_t n, struct iot_verdict *ret,
		     struct iot_error *err)
{
	return iot_verify_many(segments, n, true, ret, err);
}
