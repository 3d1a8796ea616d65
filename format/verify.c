// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify.c - one segment: what its blocks say, held against what its footer claims.
 *
 * The footer's own verdict comes first (verdict.c); then every block is read and counted, and any
 * claim that the blocks do not bear out makes it worse, never better. Damage of the file is
 * `corrupt`; a file that only lacks its end is `torn`; claims that contradict each other in a file
 * whose checksums hold are books that do not balance: `unknown`.
 */
#include "format/books.h"
#include "format/schema.h"
#include "format/verify-internal.h"

struct tally {
	struct iot_verdict *v;
	struct iot_written written;
	uint64_t counts[IOT_N_BLOCK_KINDS];
	bool damaged; /* blocks are missing: what was counted is not all */
	uint64_t next_seq;
	struct iot_ring_ends ends;
	uint64_t excused; /* records that user space dropped, by the books: spans may have holes */
};

static void tally_freep(struct tally **t)
{
	if (*t)
		iot_written_done(&(*t)->written);
	free(*t);
}

static void check_spans(struct tally *t, const struct iot_block_info *info, uint32_t n_rings)
{
	if (info->n_spans != 0 && info->n_spans != n_rings)
		iot_verdict_reason(t->v, IOT_VERDICT_UNKNOWN,
				   "block %llu covers %u rings, the capture has %u",
				   (unsigned long long)info->seq, info->n_spans, n_rings);
	for (uint32_t i = 0; i < info->n_spans && i < IOT_MAX_RINGS; i++) {
		const struct iot_span *sp = &info->spans[i];
		struct iot_ring_ends *e = &t->ends;

		if (!e->known[i]) {
			e->first[i] = sp->p0;
		} else if (sp->p0 < e->last[i]) {
			iot_verdict_reason(
				t->v, IOT_VERDICT_CORRUPT,
				"block %llu: ring %u is covered twice from position %llu",
				(unsigned long long)info->seq, i, (unsigned long long)sp->p0);
		} else if (sp->p0 > e->last[i] && !t->damaged && !t->excused) {
			iot_verdict_reason(t->v, IOT_VERDICT_CORRUPT,
					   "block %llu: ring %u is not covered from %llu to %llu",
					   (unsigned long long)info->seq, i,
					   (unsigned long long)e->last[i],
					   (unsigned long long)sp->p0);
		}
		e->known[i] = true;
		e->last[i] = IOT_MAX(sp->p1, e->last[i]);
	}
}

static void damaged_block(struct tally *t, uint64_t offset, const char *what)
{
	t->damaged = true;
	iot_verdict_reason(t->v, IOT_VERDICT_CORRUPT, "%s at offset %llu", what,
			   (unsigned long long)offset);
}

static int count_rows(struct tally *t, const struct iot_batch *b)
{
	for (uint32_t i = 0; i < iot_batch_count(b); i++) {
		struct iot_row_key key;
		int r;

		iot_batch_key(b, i, &key);
		r = iot_written_add(&t->written, key.probe, key.cpu);
		if (r < 0)
			return r;
		t->v->n_no_start += key.no_start;
	}
	return 0;
}

/* 0: the block is good or was noted as damaged. */
static int read_block(struct iot_segment *s, struct tally *t, const struct iot_block_info *info,
		      struct iot_batch **b, struct iot_error *err)
{
	int r;

	if (info->kind == IOT_BLOCK_LEDGER)
		return 0; /* loaded as a whole */
	if (!iot_schema_of(iot_segment_info(s)->stream)) {
		iot_verdict_reason(t->v, IOT_VERDICT_UNKNOWN,
				   "records of a stream that this version does not know");
		return 0;
	}
	if (!*b) {
		r = iot_batch_new_stream(iot_segment_info(s)->stream, info->count, b);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	}
	r = iot_segment_read_block(s, info, IOT_COLS_ALL, *b, NULL);
	if (r == -EBADMSG) {
		damaged_block(t, info->offset, "damaged block");
		return 0;
	}
	if (r < 0)
		return iot_error_set(err, r, "%s: offset %llu: %s", iot_segment_path(s),
				     (unsigned long long)info->offset, strerror(-r));
	t->counts[info->kind] += info->count;
	if (info->kind != iot_stream_block_kind(iot_segment_info(s)->stream))
		return 0;
	r = count_rows(t, *b);
	return r < 0 ? iot_error_set(err, r, "out of memory") : 0;
}

static int walk(struct iot_segment *s, bool full, struct tally *t, struct iot_error *err)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	const struct iot_footer *f = iot_segment_footer(s);
	struct iot_walk w;

	iot_walk_init(s, &w);
	for (;;) {
		struct iot_block_info info;
		enum iot_gap gap;
		int r = iot_walk_next(s, &w, &info, &gap, err);

		if (r < 0)
			return r;
		if (r == IOT_READ_END)
			return 0;
		if (r == IOT_READ_GAP) {
			if (gap == IOT_GAP_DAMAGE)
				damaged_block(t, info.offset, "damaged bytes");
			continue;
		}
		/* A recovered file keeps the numbers, so that what was cut stays visible. */
		if (info.seq != t->next_seq && !t->damaged) {
			iot_verdict_reason(
				t->v, IOT_VERDICT_UNKNOWN, "blocks %llu to %llu are missing",
				(unsigned long long)t->next_seq, (unsigned long long)info.seq - 1);
			t->damaged = t->damaged || (f && f->reason == IOT_SEAL_RECOVERED);
		}
		t->next_seq = info.seq + 1;
		if (info.kind == iot_stream_block_kind(iot_segment_info(s)->stream))
			check_spans(t, &info, iot_segment_info(s)->n_rings);
		if (full)
			r = read_block(s, t, &info, &b, err);
		else
			t->counts[info.kind] += info.count;
		if (r < 0)
			return r;
	}
}

/* `written` per (probe, cpu), recomputed. */
static void check_written(const struct iot_segment_info *info, const struct iot_footer *f,
			  struct tally *t)
{
	struct iot_verdict *v = t->v;
	char name[64];

	for (size_t i = 0; i < f->n_books; i++) {
		const struct iot_books *b = &f->books[i];
		uint64_t counted = iot_written_take(&t->written, b->probe, b->cpu);

		if (b->written == counted)
			continue;
		if (b->written != IOT_COUNT_UNKNOWN)
			v->books_unbalanced++;
		iot_probe_label(info, f, b->probe, name, sizeof(name));
		if (b->written == IOT_COUNT_UNKNOWN)
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s, CPU %u: number of records written not known", name,
					   b->cpu);
		else
			iot_verdict_reason(v, IOT_VERDICT_UNKNOWN,
					   "%s, CPU %u: %llu records written by the books, %llu in "
					   "the file",
					   name, b->cpu, (unsigned long long)b->written,
					   (unsigned long long)counted);
	}
	for (size_t i = 0; i < t->written.n; i++) {
		const struct iot_written_row *w = &t->written.rows[i];

		if (!w->n)
			continue;
		v->books_unbalanced++;
		iot_verdict_reason(
			v, IOT_VERDICT_UNKNOWN,
			"%s, CPU %u: %llu records in the file that the books do not know",
			iot_probe_label(info, f, w->probe, name, sizeof(name)), w->cpu,
			(unsigned long long)w->n);
	}
	if (t->written.other)
		iot_verdict_reason(v, IOT_VERDICT_UNKNOWN, "%llu records of CPUs that cannot exist",
				   (unsigned long long)t->written.other);
}

static int check_ledger(struct iot_segment *s, const struct iot_footer *f, struct tally *t,
			struct iot_error *err)
{
	_cleanup_free_ struct iot_loss *losses = NULL;
	struct iot_books_summary sums;
	bool whole;
	size_t n;
	int r;

	r = iot_segment_salvage_ledger(s, &losses, &n, &whole, err);
	if (r < 0)
		return r;
	t->counts[IOT_BLOCK_LEDGER] = n;
	if (!f) {
		for (size_t i = 0; i < n; i++)
			t->v->n_lost = iot_add_sat(t->v->n_lost, losses[i].n);
		return 0;
	}
	if (!whole)
		iot_verdict_reason(
			t->v, IOT_VERDICT_CORRUPT,
			"the ledger of losses does not match the footer's count and hash");
	iot_books_sum(f, &sums);
	iot_books_sum_losses(&sums, losses, n);
	iot_verdict_ledger(iot_segment_info(s), f, &sums, t->v);
	return 0;
}

static void check_declared(struct iot_segment *s, struct tally *t)
{
	static const char *const names[] = {[IOT_BLOCK_REQUESTS] = "requests",
					    [IOT_BLOCK_OPEN] = "requests in flight",
					    [IOT_BLOCK_PACKETS] = "observations"};
	unsigned int records = iot_stream_block_kind(iot_segment_info(s)->stream);

	for (unsigned int kind = 0; kind < IOT_ARRAY_SIZE(names); kind++) {
		uint64_t declared = iot_segment_declared(s, kind);

		if (kind != records && kind != IOT_BLOCK_OPEN)
			continue;
		if (declared != t->counts[kind])
			iot_verdict_reason(t->v, IOT_VERDICT_UNKNOWN,
					   "%llu %s by the footer, %llu in the file",
					   (unsigned long long)declared, names[kind],
					   (unsigned long long)t->counts[kind]);
	}
}

static uint64_t user_losses(const struct iot_footer *f)
{
	struct iot_sum sum = {0};

	for (size_t i = 0; f && i < f->n_books; i++) {
		iot_sum_add(&sum, f->books[i].decode_failed);
		iot_sum_add(&sum, f->books[i].output_failed);
	}
	return sum.unknown ? UINT64_MAX : sum.n;
}

int iot_verify_one(struct iot_segment *s, bool full, struct iot_ring_ends *ret_ends,
		   struct iot_verdict *ret, struct iot_error *err)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	const struct iot_footer *f = iot_segment_footer(s);
	_cleanup_(tally_freep) struct tally *t = calloc(1, sizeof(*t));
	struct iot_verdict v;
	int r;

	if (!t)
		return iot_error_set(err, -ENOMEM, "%s: out of memory", iot_segment_path(s));
	if (iot_segment_gone(s))
		return -ENOENT;
	iot_verdict_footer(info, f, &v);
	t->v = &v;
	t->excused = user_losses(f);
	r = walk(s, full, t, err);
	if (r < 0)
		return r;
	r = check_ledger(s, f, t, err);
	if (r < 0)
		return r;
	if (f) {
		check_declared(s, t);
		if (full)
			check_written(info, f, t);
	} else {
		v.n_reasons = 0; /* the file itself says it better than "no footer" */
		iot_verdict_reason(&v,
				   iot_segment_damaged(s) ? IOT_VERDICT_CORRUPT : IOT_VERDICT_TORN,
				   "%s", iot_segment_state_text(s));
	}
	v.n_records = t->counts[iot_stream_block_kind(info->stream)];
	v.n_observations = info->stream == IOT_STREAM_PACKET ? v.n_records : 0;
	v.n_open = t->counts[IOT_BLOCK_OPEN];
	if (ret_ends)
		*ret_ends = t->ends;
	*ret = v;
	return 0;
}

void iot_verdict_gone(struct iot_verdict *ret)
{
	*ret = (struct iot_verdict){0};
	iot_verdict_reason(ret, IOT_VERDICT_UNKNOWN, "the file was deleted while it was read");
}

int iot_verify_segment(struct iot_segment *s, struct iot_verdict *ret, struct iot_error *err)
{
	struct iot_error why = {0};
	int r = iot_verify_one(s, true, NULL, ret, &why);

	if (r < 0 && iot_segment_gone(s)) {
		iot_verdict_gone(ret);
		return 0;
	}
	return r < 0 ? iot_error_set(err, r, "%s", why.text) : 0;
}
