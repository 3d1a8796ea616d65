// SPDX-License-Identifier: BSD-2-Clause
/*
 * scan.c - many segment files as one: opened, ordered, without duplicates, with one verdict.
 *
 * A file that cannot be used is not a reason to withhold the others: it is noted and becomes part
 * of the verdict. Only what a person named and does not exist, or a scan without a single segment,
 * is an error. The same segment may be found twice (state directory and archive): it is read once,
 * from a copy that is whole (scan-copies.c).
 */
#include "format/books.h"
#include "format/scan-internal.h"
#include "format/verify-internal.h"

#define MANY_SEGMENTS 64

static int cmp_segment(const void *a, const void *b)
{
	const struct iot_segment *x = *(struct iot_segment *const *)a;
	const struct iot_segment *y = *(struct iot_segment *const *)b;
	const struct iot_segment_info *i = iot_segment_info(x), *k = iot_segment_info(y);
	int c = (i->stream > k->stream) - (i->stream < k->stream);

	if (c == 0)
		c = memcmp(i->capture_id, k->capture_id, sizeof(i->capture_id));
	if (c == 0)
		c = iot_cmp_u64(i->seq, k->seq);
	/* Of copies the sealed one comes first, then the one that was not recovered, then by path. */
	if (c == 0)
		c = (iot_segment_state(x) > iot_segment_state(y)) -
		    (iot_segment_state(x) < iot_segment_state(y));
	if (c == 0 && iot_segment_footer(x) && iot_segment_footer(y))
		c = (iot_segment_footer(x)->reason == IOT_SEAL_RECOVERED) -
		    (iot_segment_footer(y)->reason == IOT_SEAL_RECOVERED);
	return c ? c : strcmp(iot_segment_path(x), iot_segment_path(y));
}

/* A negative result ends the scan; a file that is unusable is noted, with its error kept. */
static int open_one(struct iot_scan *sc, const struct iot_path *p, struct iot_error *first,
		    int *first_code)
{
	struct iot_error why = {0};
	struct iot_segment *s;
	int r = iot_segment_open(p->path, &s, &why);

	if (r == -ENOENT && !p->named) {
		_cleanup_free_ char *sealed = iot_path_sealed(p->path);

		/* Sealed or deleted since the directory was read. */
		why.text[0] = '\0';
		r = sealed ? iot_segment_open(sealed, &s, &why) : -ENOENT;
		if (r == -ENOENT)
			return 0;
	}
	if (r == 0) {
		sc->segments[sc->n_segments++] = s;
		return 0;
	}
	if (!first->text[0]) {
		*first = why;
		*first_code = r;
	}
	/* Damage in a file is about the file; anything else (a permission, another version) says
	 * nothing about what it holds. */
	sc->opening.unread = true;
	iot_verdict_reason(&sc->opening, r == -EBADMSG ? IOT_VERDICT_CORRUPT : IOT_VERDICT_UNKNOWN,
			   "%s", why.text);
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : 0;
}

int iot_scan_open(const char *const *paths, size_t n_paths, const struct iot_filter *filter,
		  struct iot_scan **ret, struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *sc = NULL;
	_cleanup_(iot_paths_done) struct iot_paths files = {0};
	struct iot_error first = {0};
	int r, first_code = 0;
	size_t n;

	sc = calloc(1, sizeof(*sc));
	if (!sc)
		return iot_error_set(err, -ENOMEM, "out of memory");
	if (filter)
		sc->filter = *filter;
	sc->columns = IOT_COLS_ALL;
	r = iot_paths_expand(paths, n_paths, &files, err);
	if (r < 0)
		return r;
	/* Whether there were records is not known where nothing can be read. */
	for (size_t i = 0; i < IOT_MIN(files.n_skipped, IOT_PATHS_SKIPPED_MAX); i++)
		iot_verdict_reason(&sc->opening, IOT_VERDICT_UNKNOWN, "not read: %s",
				   files.skipped[i].text);
	if (files.n_skipped > IOT_PATHS_SKIPPED_MAX)
		iot_verdict_reason(&sc->opening, IOT_VERDICT_UNKNOWN, "not read: %zu more",
				   files.n_skipped - IOT_PATHS_SKIPPED_MAX);
	sc->opening.unread = files.n_skipped > 0;
	sc->segments = calloc(files.n + 1, sizeof(struct iot_segment *));
	if (!sc->segments)
		return iot_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < files.n; i++) {
		if (files.items[i].aside)
			continue;
		r = open_one(sc, &files.items[i], &first, &first_code);
		if (r < 0)
			return iot_error_set(err, r, "%s", first.text);
		if (files.n >= MANY_SEGMENTS && sc->n_segments > 0)
			iot_segment_park(sc->segments[sc->n_segments - 1]);
	}
	if (sc->n_segments == 0)
		return first_code ? iot_error_set(err, first_code, "%s", first.text)
				  : iot_error_set(err, -ENOENT, "no segments to read");
	qsort(sc->segments, sc->n_segments, sizeof(struct iot_segment *), cmp_segment);
	n = sc->n_segments;
	r = iot_copies_part(sc->segments, &sc->n_segments, &sc->opening, err);
	sc->n_copies = n - sc->n_segments;
	for (size_t i = 0; r >= 0 && files.n_aside && i < files.n; i++)
		if (files.items[i].aside) {
			r = iot_aside_note(sc->segments, sc->n_segments, files.items[i].path,
					   &sc->opening);
			sc->n_aside += r > 0;
		}
	if (r < 0)
		return iot_error_set(err, r, "%s", err && err->text[0] ? err->text : strerror(-r));
	iot_ends_note(sc->segments, sc->n_segments, &sc->opening);
	*ret = IOT_TAKE_PTR(sc);
	return 0;
}

struct iot_scan *iot_scan_close(struct iot_scan *sc)
{
	if (!sc)
		return NULL;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(sc->merge); i++)
		iot_merge_free(sc->merge[i]);
	for (size_t i = 0; i < sc->n_segments + sc->n_copies; i++)
		iot_segment_close(sc->segments[i]);
	free(sc->segments);
	free(sc->at);
	free(sc);
	return NULL;
}

size_t iot_scan_n_segments(const struct iot_scan *sc)
{
	return sc->n_segments;
}

struct iot_segment *iot_scan_segment(const struct iot_scan *sc, size_t i)
{
	return sc->segments[i];
}

size_t iot_scan_n_aside(const struct iot_scan *sc)
{
	return sc->n_aside;
}

size_t iot_scan_n_copies(const struct iot_scan *sc)
{
	return sc->n_copies;
}

struct iot_segment *iot_scan_copy(const struct iot_scan *sc, size_t i)
{
	return i < sc->n_copies ? sc->segments[sc->n_segments + i] : NULL;
}

void iot_scan_columns(struct iot_scan *sc, uint64_t columns)
{
	sc->columns = columns;
}

size_t iot_scan_n_stream(const struct iot_scan *sc, enum iot_stream stream)
{
	size_t n = 0;

	for (size_t i = 0; i < sc->n_segments; i++)
		n += iot_segment_info(sc->segments[i])->stream == stream;
	return n;
}

int iot_scan_losses(struct iot_scan *sc, struct iot_loss **ret, size_t *ret_n,
		    struct iot_error *err)
{
	_cleanup_free_ struct iot_loss *all = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sc->n_segments; i++) {
		struct iot_segment *s = sc->segments[i];
		_cleanup_free_ struct iot_loss *losses = NULL;
		struct iot_loss *more;
		size_t n_losses;
		bool whole;
		int r;

		if (iot_segment_footer(s) && !iot_segment_declared(s, IOT_BLOCK_LEDGER))
			continue;
		r = iot_segment_salvage_ledger(s, &losses, &n_losses, &whole, err);
		if (r < 0 && iot_segment_gone(s)) {
			if (err)
				err->text[0] = '\0';
			continue; /* the verdict says so */
		}
		if (r < 0)
			return r;
		if (!whole && iot_segment_footer(s))
			iot_verdict_reason(&sc->reading, IOT_VERDICT_CORRUPT,
					   "segment %llu: the ledger does not match the footer",
					   (unsigned long long)iot_segment_info(s)->seq);
		if (n_losses == 0)
			continue;
		more = reallocarray(all, n + n_losses, sizeof(*all));
		if (!more)
			return iot_error_set(err, -ENOMEM, "out of memory");
		all = more;
		for (size_t k = 0; k < n_losses; k++)
			if (iot_filter_match_loss(&sc->filter, s, &losses[k]))
				all[n++] = losses[k];
	}
	*ret = IOT_TAKE_PTR(all);
	*ret_n = n;
	return 0;
}

const struct iot_filter *iot_scan_filter(const struct iot_scan *sc)
{
	return &sc->filter;
}

void iot_scan_about(struct iot_scan *sc, enum iot_stream stream)
{
	sc->filter.stream = stream;
}

bool iot_same_capture(const struct iot_segment *x, const struct iot_segment *y)
{
	const struct iot_segment_info *a = iot_segment_info(x), *b = iot_segment_info(y);

	return a->stream == b->stream &&
	       memcmp(a->capture_id, b->capture_id, sizeof(a->capture_id)) == 0;
}

const struct iot_verdict *iot_scan_opening(const struct iot_scan *sc)
{
	return &sc->opening;
}

int iot_scan_verdict(struct iot_scan *sc, bool full, struct iot_verdict *ret, struct iot_error *err)
{
	struct iot_verdict all = {0}, one;

	/* Where damage was met the footers say more than is there. */
	full |= sc->reading.code == IOT_VERDICT_CORRUPT;
	for (size_t i = 0, k; i < sc->n_segments; i = k) {
		int r;

		for (k = i + 1; k < sc->n_segments; k++)
			if (!iot_same_capture(sc->segments[i], sc->segments[k]))
				break;
		r = iot_verify_many(sc->segments + i, k - i, full, &one, err);
		if (r < 0)
			return r;
		iot_verdict_merge(&all, &one);
		/* Many short chains: verification parks only within one. */
		for (size_t j = i; sc->n_segments >= MANY_SEGMENTS && j < k; j++)
			iot_segment_park(sc->segments[j]);
	}
	iot_verdict_merge(&all, &sc->opening);
	iot_verdict_merge(&all, &sc->reading);
	*ret = all;
	return iot_scan_note_untold(sc, ret, err);
}
