// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan-copies.c - what a set of files says beyond its segments: which of several files for one segment is
 * read, what the daemon set aside, and whether a capture went on after the last segment that is here.
 *
 * Files of one segment are equal where nothing went wrong (state directory and archive), so the footers
 * decide, and the blocks only where a copy is damaged: what a good copy holds is not lost. Nothing that
 * is passed over is silent: copies are verified like segments, and whatever held records once and cannot
 * be read is a reason against "complete".
 */
#include "format/books.h"
#include "format/scan-internal.h"
#include "format/verify-internal.h"

bool iot_same_segment(const struct iot_segment *x, const struct iot_segment *y)
{
	const struct iot_segment_info *a = iot_segment_info(x), *b = iot_segment_info(y);

	return a->stream == b->stream && a->seq == b->seq &&
	       memcmp(a->capture_id, b->capture_id, sizeof(a->capture_id)) == 0;
}

/* Two sealed files of one seq that differ are a contradiction; a torn or recovered copy is not. */
static bool contradict(const struct iot_segment *x, const struct iot_segment *y)
{
	const struct iot_footer *a = iot_segment_footer(x), *b = iot_segment_footer(y);

	return a && b && a->reason != IOT_SEAL_RECOVERED && b->reason != IOT_SEAL_RECOVERED &&
	       iot_segment_footer_hash(x) != iot_segment_footer_hash(y);
}

/* Of copies in the order of preference the first that is not damaged, else the first. */
static int choose(struct iot_segment **copies, size_t n, size_t *ret, struct iot_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct iot_verdict v;
		int r = iot_verify_many(copies + i, 1, true, &v, err);

		iot_segment_park(copies[i]);
		if (r < 0)
			return r;
		if (v.code != IOT_VERDICT_CORRUPT) {
			*ret = i;
			return 0;
		}
	}
	*ret = 0;
	return 0;
}

int iot_copies_part(struct iot_segment **segments, size_t *n, struct iot_verdict *notes,
		    struct iot_error *err)
{
	_cleanup_free_ struct iot_segment **copies = calloc(*n + 1, sizeof(struct iot_segment *));
	size_t kept = 0, n_copies = 0;

	if (!copies)
		return iot_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0, k; i < *n; i = k) {
		size_t best = 0;
		int r = 0;

		for (k = i + 1; k < *n && iot_same_segment(segments[i], segments[k]); k++)
			;
		if (k > i + 1)
			r = choose(segments + i, k - i, &best, err);
		if (r < 0)
			return r;
		for (size_t j = i; j < k; j++) {
			if (j == i + best)
				continue;
			if (contradict(segments[i + best], segments[j]))
				iot_verdict_reason(
					notes, IOT_VERDICT_UNKNOWN,
					"segment %llu: two files differ, %s was not read",
					(unsigned long long)iot_segment_info(segments[j])->seq,
					iot_segment_path(segments[j]));
			copies[n_copies++] = segments[j];
		}
		segments[kept++] = segments[i + best];
	}
	for (size_t i = 0; i < n_copies; i++)
		segments[kept + i] = copies[i];
	*n = kept;
	return 0;
}

int iot_aside_note(struct iot_segment **segments, size_t n, const char *path,
		   struct iot_verdict *notes)
{
	struct iot_segment *s;
	bool known = false;
	int r = iot_segment_open(path, &s, NULL);

	if (r == -ENOENT)
		return 0; /* deleted since the directory was read */
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	/* Another file of its name held more: nothing is missing then. */
	if (r == 0) {
		for (size_t i = 0; i < n && !known; i++)
			known = iot_same_segment(segments[i], s);
		iot_segment_close(s);
	}
	if (!known)
		iot_verdict_reason(notes, IOT_VERDICT_UNKNOWN,
				   "%s: a segment that was set aside, since nothing of it could "
				   "be recovered",
				   path);
	return !known;
}

/* A seal that makes room for the next segment; shutdown does not, and recovery does not know. */
static bool expects_next(const struct iot_segment *s)
{
	const struct iot_footer *f = iot_segment_footer(s);

	return f && f->reason != IOT_SEAL_SHUTDOWN && f->reason != IOT_SEAL_RECOVERED;
}

static bool same_machine(const struct iot_segment_info *a, const struct iot_segment_info *b)
{
	return a->stream == b->stream &&
	       memcmp(a->machine_id, b->machine_id, sizeof(a->machine_id)) == 0;
}

/* Within a boot by the monotonic clock: the other may have been set back between two captures. */
static bool began_later(const struct iot_segment_info *b, const struct iot_segment_info *a)
{
	if (memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0)
		return b->clocks.monotonic_ns > a->clocks.monotonic_ns;
	return b->clocks.realtime_ns > a->clocks.realtime_ns;
}

static bool is_first(struct iot_segment **segments, size_t i)
{
	return i == 0 || !iot_same_capture(segments[i - 1], segments[i]);
}

/* As retention deletes, the oldest first, the segments before the first are gone; not if an older capture is here. */
static void note_start(struct iot_segment **segments, size_t n, size_t i, struct iot_verdict *notes)
{
	const struct iot_segment_info *a = iot_segment_info(segments[i]);

	for (size_t k = 0; k < n; k++) {
		const struct iot_segment_info *b = iot_segment_info(segments[k]);

		if (!same_machine(a, b) || iot_same_capture(segments[i], segments[k]) ||
		    !began_later(a, b))
			continue;
		iot_verdict_reason(notes, IOT_VERDICT_UNKNOWN,
				   "segment %llu of %s: what its capture recorded before it is not "
				   "here, and an older capture is",
				   (unsigned long long)a->seq, iot_segment_path(segments[i]));
		return;
	}
}

/*
 * Where no later capture of the machine is here, the set just ends, as an archive does whose next segment is
 * on its way. A later one closes the earlier: then what came between is missing.
 */
void iot_ends_note(struct iot_segment **segments, size_t n, struct iot_verdict *notes)
{
	for (size_t i = 0; i < n; i++) {
		const struct iot_segment_info *a = iot_segment_info(segments[i]);
		bool later = false;

		if (is_first(segments, i) && a->seq > 1)
			note_start(segments, n, i, notes);
		if ((i + 1 < n && iot_same_capture(segments[i], segments[i + 1])) ||
		    !expects_next(segments[i]))
			continue;
		for (size_t k = 0; k < n && !later; k++) {
			const struct iot_segment_info *b = iot_segment_info(segments[k]);

			later = same_machine(a, b) &&
				memcmp(a->capture_id, b->capture_id, sizeof(a->capture_id)) != 0 &&
				began_later(b, a);
		}
		if (later)
			iot_verdict_reason(notes, IOT_VERDICT_UNKNOWN,
					   "segment %llu of %s: its capture went on, and what "
					   "followed is not here",
					   (unsigned long long)a->seq,
					   iot_segment_path(segments[i]));
	}
}
