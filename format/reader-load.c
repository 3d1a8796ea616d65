// SPDX-License-Identifier: BSD-2-Clause
/*
 * reader-load.c - the content of a segment's blocks: requests, requests in flight, the ledger.
 *
 * A block is one read of at most IOT_LIMIT_DATA_BYTES into the segment's buffer, then block.h's
 * business. The ledger and the requests in flight come as whole arrays: `salvage` gives what can
 * be read and says whether it is all, `load` refuses anything that does not match the footer.
 */
#include "format/anonymize.h"
#include "format/reader-priv.h"
#include "format/schema.h"

#include <xxhash.h>

#define MAX_LOSSES (1U << 22)	     /* 64 ledgers of the default size */
#define MAX_OPEN_REQUESTS (1U << 20) /* more than any kernel has tags */

static int block_error(const struct iot_segment *s, const struct iot_block_info *info, int code,
		       struct iot_error *err)
{
	if (code == -ENOMEM)
		return iot_error_set(err, code, "%s: out of memory", s->path);
	return iot_error_set(err, code,
			     "%s: offset %llu: block %llu is damaged (iotracectl recover keeps the "
			     "others)",
			     s->path, (unsigned long long)info->offset,
			     (unsigned long long)info->seq);
}

int iot_segment_raw_block(struct iot_segment *s, const struct iot_block_info *info,
			  const uint8_t **ret, struct iot_error *err)
{
	int r;

	if (info->header_size > IOT_LIMIT_BLOCK_HEADER_BYTES ||
	    info->data_size > IOT_LIMIT_DATA_BYTES ||
	    info->size != (uint64_t)info->header_size + info->data_size)
		return block_error(s, info, -EBADMSG, err);
	r = iot_segment_load(s, info->offset, info->size, err);
	if (r < 0)
		return r;
	r = iot_block_data_check(info, s->buf + info->header_size, info->data_size);
	if (r < 0)
		return block_error(s, info, r, err);
	*ret = s->buf;
	return 0;
}

/* The data frame alone into the buffer, and a decoder. */
static int load_data(struct iot_segment *s, const struct iot_block_info *info,
		     struct iot_error *err)
{
	int r;

	if (info->data_size > IOT_LIMIT_DATA_BYTES)
		return block_error(s, info, -EBADMSG, err);
	if (!s->decoder) {
		r = iot_block_decoder_new(&s->decoder);
		if (r < 0)
			return iot_error_set(err, r, "%s: out of memory", s->path);
	}
	return iot_segment_load(s, info->offset + info->header_size, info->data_size, err);
}

int iot_segment_read_block(struct iot_segment *s, const struct iot_block_info *info,
			   uint64_t columns, struct iot_batch *b, struct iot_error *err)
{
	const struct iot_schema *schema = iot_schema_of_kind(info->kind);
	int r;

	if (!schema)
		return iot_error_set(err, -EINVAL, "%s: offset %llu: not a block of records",
				     s->path, (unsigned long long)info->offset);
	if (schema->stream != s->info.stream)
		return block_error(s, info, -EBADMSG, err);
	r = load_data(s, info, err);
	if (r < 0)
		return r;
	r = iot_block_decode(s->decoder, info, s->buf, info->data_size, columns, b);
	if (r == 0 && s->anonymizer)
		r = iot_anonymize_batch(s->anonymizer, b);
	return r < 0 ? block_error(s, info, r, err) : 0;
}

static void free_hash(XXH64_state_t **h)
{
	XXH64_freeState(*h);
}

int iot_segment_salvage_ledger(struct iot_segment *s, struct iot_loss **ret_losses, size_t *ret_n,
			       bool *ret_whole, struct iot_error *err)
{
	_cleanup_free_ struct iot_loss *losses = NULL;
	_cleanup_(free_hash) XXH64_state_t *hash = XXH64_createState();
	struct iot_walk w;
	bool whole = true;
	size_t n = 0;

	if (!hash)
		return iot_error_set(err, -ENOMEM, "%s: out of memory", s->path);
	XXH64_reset(hash, 0);
	iot_walk_init(s, &w);
	for (;;) {
		struct iot_block_info info;
		struct iot_loss *more;
		enum iot_gap gap;
		int r = iot_walk_next(s, &w, &info, &gap, err);

		if (r < 0)
			return r;
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP) {
			whole = whole && s->sealed && info.kind != IOT_BLOCK_LEDGER;
			continue;
		}
		if (info.kind != IOT_BLOCK_LEDGER)
			continue;
		if (info.count > MAX_LOSSES - n)
			return iot_error_set(err, -E2BIG,
					     "%s: offset %llu: more than %u ledger entries",
					     s->path, (unsigned long long)info.offset, MAX_LOSSES);
		r = load_data(s, &info, err);
		if (r < 0)
			return r;
		more = reallocarray(losses, n + info.count, sizeof(*losses));
		if (!more)
			return iot_error_set(err, -ENOMEM, "%s: out of memory", s->path);
		losses = more;
		r = iot_block_decode_losses(s->decoder, s->info.stream, &info, s->buf,
					    info.data_size, hash, losses + n);
		if (r == -ENOMEM)
			return iot_error_set(err, r, "%s: out of memory", s->path);
		if (r < 0) {
			whole = false;
			continue;
		}
		for (uint32_t i = 0; s->anonymizer && i < info.count; i++)
			iot_anonymize_flow(s->anonymizer, &losses[n + i].flow);
		n += info.count;
	}
	if (s->sealed && (n != s->meta.n_losses || XXH64_digest(hash) != s->meta.ledger_hash))
		whole = false;
	*ret_losses = IOT_TAKE_PTR(losses);
	*ret_n = n;
	*ret_whole = whole;
	return 0;
}

int iot_segment_load_ledger(struct iot_segment *s, struct iot_loss **ret_losses, size_t *ret_n,
			    struct iot_error *err)
{
	_cleanup_free_ struct iot_loss *losses = NULL;
	bool whole;
	size_t n;
	int r = iot_segment_salvage_ledger(s, &losses, &n, &whole, err);

	if (r < 0 && s->gone) /* retention took it: as good as damaged, and the verdict says so */
		return -EBADMSG;
	if (r < 0)
		return r;
	if (s->sealed && !whole)
		return iot_error_set(err, -EBADMSG,
				     "%s: the ledger of losses does not match the footer "
				     "(iotracectl verify says more)",
				     s->path);
	*ret_losses = IOT_TAKE_PTR(losses);
	*ret_n = n;
	return 0;
}

int iot_segment_salvage_open(struct iot_segment *s, struct iot_request **ret, size_t *ret_n,
			     bool *ret_whole, struct iot_error *err)
{
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	_cleanup_free_ struct iot_request *items = NULL;
	struct iot_walk w;
	bool whole = true;
	size_t n = 0;

	iot_walk_init(s, &w);
	for (;;) {
		struct iot_block_info info;
		struct iot_request *more;
		enum iot_gap gap;
		int r = iot_walk_next(s, &w, &info, &gap, err);

		if (r < 0)
			return r;
		if (r == IOT_READ_END)
			break;
		if (r == IOT_READ_GAP) {
			whole = whole && s->sealed && info.kind != IOT_BLOCK_OPEN;
			continue;
		}
		if (info.kind != IOT_BLOCK_OPEN)
			continue;
		if (info.count > MAX_OPEN_REQUESTS - n)
			return iot_error_set(
				err, -E2BIG, "%s: offset %llu: more than %u requests in flight",
				s->path, (unsigned long long)info.offset, MAX_OPEN_REQUESTS);
		if (!b) {
			r = iot_batch_new(info.count, &b);
			if (r < 0)
				return iot_error_set(err, r, "%s: out of memory", s->path);
		}
		r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, NULL);
		if (r == -EBADMSG) {
			whole = false;
			continue;
		}
		if (r < 0)
			return iot_error_set(err, r, "%s: offset %llu: %s", s->path,
					     (unsigned long long)info.offset, strerror(-r));
		more = reallocarray(items, n + info.count, sizeof(*items));
		if (!more)
			return iot_error_set(err, -ENOMEM, "%s: out of memory", s->path);
		items = more;
		for (uint32_t i = 0; i < info.count; i++)
			iot_batch_get(b, i, &items[n + i]);
		n += info.count;
	}
	if (s->sealed && n != s->meta.n_open)
		whole = false;
	*ret = IOT_TAKE_PTR(items);
	*ret_n = n;
	*ret_whole = whole;
	return 0;
}

int iot_segment_load_open(struct iot_segment *s, struct iot_request **ret, size_t *ret_n,
			  struct iot_error *err)
{
	_cleanup_free_ struct iot_request *items = NULL;
	bool whole;
	size_t n;
	int r = iot_segment_salvage_open(s, &items, &n, &whole, err);

	if (r < 0)
		return r;
	if (s->sealed && !whole)
		return iot_error_set(err, -EBADMSG,
				     "%s: the requests in flight do not match the footer "
				     "(iotracectl verify says more)",
				     s->path);
	*ret = IOT_TAKE_PTR(items);
	*ret_n = n;
	return 0;
}
