// SPDX-License-Identifier: BSD-2-Clause
/*
 * anonymize-rewrite.c - an anonymized segment as a file of its own.
 *
 * The new file claims what the old one did: the same records at the same ring positions, the same books,
 * windows and ledger, so that `verify` says of it what it said of the original. One that does not hold what it
 * claims is refused, since its copy would: sums and hashes are made anew. `recover` makes one of it that is
 * whole. So the original is verified first.
 */
#include <fcntl.h>

#include "format/anonymize.h"
#include "format/reader-internal.h"
#include "format/verify.h"

struct rewrite {
	struct iot_segment *s;
	struct iot_writer *w;
	struct iot_batch *in;
	struct iot_batch *out;
	struct iot_block_encoder *encoder;
	unsigned int kind; /* of the blocks that hold records */
};

static int copy_record(struct rewrite *rw, uint32_t i)
{
	struct iot_request req;
	struct iot_packet p;

	if (iot_batch_stream(rw->in) == IOT_STREAM_PACKET) {
		iot_batch_get_packet(rw->in, i, &p);
		return iot_batch_add_packet(rw->out, &p);
	}
	iot_batch_get(rw->in, i, &req);
	return iot_batch_add(rw->out, &req);
}

static int copy_block(struct rewrite *rw, const struct iot_block_info *info, struct iot_error *err)
{
	int r = iot_segment_read_block(rw->s, info, IOT_COLS_ALL, rw->in, err);
	struct iot_block_info copy;
	const uint8_t *bytes;
	size_t size;

	if (r < 0)
		return r;
	iot_batch_clear(rw->out);
	for (uint32_t i = 0; r == 0 && i < iot_batch_count(rw->in); i++)
		r = copy_record(rw, i);
	/* Different names stay different, so that what was one block is one again. */
	if (r == IOT_BATCH_FULL)
		r = -E2BIG;
	if (r < 0)
		return r;
	/* Under its own number: one that is missing stays so. */
	r = iot_block_encode(rw->encoder, (enum iot_block_kind)info->kind, info->seq, rw->out,
			     info->spans, info->n_spans, &bytes, &size, &copy);
	return r < 0 ? r : iot_writer_copy(rw->w, &copy, bytes);
}

static int copy_blocks(struct rewrite *rw, struct iot_error *err)
{
	struct iot_walk walk;

	iot_walk_init(rw->s, &walk);
	for (;;) {
		struct iot_block_info info;
		enum iot_gap gap;
		int r = iot_walk_next(rw->s, &walk, &info, &gap, err);

		if (r == IOT_READ_END)
			return 0;
		if (r == IOT_READ_GAP) {
			/* The tail of a file that is still written, or whose writer died. */
			if (gap == IOT_GAP_UNFINISHED && !iot_segment_footer(rw->s))
				continue;
			return -EBADMSG;
		}
		if (r == 0 && info.kind == rw->kind)
			r = copy_block(rw, &info, err);
		else if (r == 0 && !iot_segment_footer(rw->s))
			/* A part of a ledger that only a seal could write again. */
			return iot_error_set(err, -EBADMSG,
					     "%s: its writer died sealing it; 'iotracectl recover' "
					     "makes a file of it that can be anonymized",
					     iot_segment_path(rw->s));
		if (r < 0)
			return iot_error_set(err, r, "%s: offset %llu: %s", iot_segment_path(rw->s),
					     (unsigned long long)info.offset, strerror(-r));
	}
}

static int seal(struct rewrite *rw, uint64_t prev_footer_hash, struct iot_error *err)
{
	_cleanup_free_ struct iot_request *open = NULL;
	_cleanup_free_ struct iot_loss *losses = NULL;
	/* Tables are borrowed: never given to iot_footer_done. */
	struct iot_footer f = *iot_segment_footer(rw->s);
	int r;

	r = iot_segment_load_ledger(rw->s, &losses, &f.n_losses, err);
	if (r == 0)
		r = iot_segment_load_open(rw->s, &open, &f.n_open, err);
	if (r < 0)
		return r;
	f.losses = losses;
	f.open = open;
	f.prev_footer_hash = prev_footer_hash;
	return iot_writer_seal(rw->w, &f);
}

static int rewrite(struct rewrite *rw, uint64_t prev_footer_hash, int dirfd, const char *name,
		   struct iot_error *err)
{
	struct iot_segment_info info = *iot_segment_info(rw->s); /* borrows its tables */
	int r;

	r = iot_batch_new_stream(info.stream, 1, &rw->in);
	if (r == 0)
		r = iot_batch_new_stream(info.stream, IOT_BLOCK_RECORDS_MAX, &rw->out);
	if (r == 0)
		r = iot_block_encoder_new(&rw->encoder);
	if (r < 0)
		return r;
	/* Of another file, which is not in this set under its old hash. */
	info.prev_footer_hash = info.prev_footer_hash ? prev_footer_hash : 0;
	r = iot_writer_open(dirfd, name, &info, &rw->w);
	if (r == 0)
		r = copy_blocks(rw, err);
	if (r == 0 && iot_segment_footer(rw->s))
		r = seal(rw, prev_footer_hash, err);
	if (r == 0 && fdatasync(iot_writer_fd(rw->w)) < 0)
		r = -errno;
	return r;
}

static int check_whole(struct iot_segment *s, struct iot_error *err)
{
	struct iot_verdict v;
	int r = iot_verify_segment(s, &v, err);

	if (r < 0 || v.code != IOT_VERDICT_CORRUPT)
		return r;
	return iot_error_set(err, -EBADMSG,
			     "%s: %s; 'iotracectl recover' makes a file of it that can be "
			     "anonymized",
			     iot_segment_path(s), v.n_reasons ? v.reasons[0] : "damaged");
}

int iot_anonymize_rewrite(struct iot_segment *s, uint64_t prev_footer_hash, int out_dirfd,
			  const char *out_name, uint64_t *ret_records, uint64_t *ret_hash,
			  struct iot_error *err)
{
	struct rewrite rw = {.s = s, .kind = iot_stream_block_kind(iot_segment_info(s)->stream)};
	int r;

	if (!rw.kind)
		return iot_error_set(err, -EPROTONOSUPPORT,
				     "%s: a stream that this version does not know",
				     iot_segment_path(s));
	r = check_whole(s, err);
	if (r < 0)
		return r;
	r = rewrite(&rw, prev_footer_hash, out_dirfd, out_name, err);
	if (r == 0) {
		*ret_records = iot_writer_records(rw.w);
		*ret_hash = iot_segment_footer(s) ? iot_writer_footer_hash(rw.w) : 0;
	}
	iot_writer_close(rw.w);
	iot_batch_free(rw.in);
	iot_batch_free(rw.out);
	iot_block_encoder_free(rw.encoder);
	return r < 0 ? iot_error_set(err, r, "%s: %s", out_name, strerror(-r)) : 0;
}
