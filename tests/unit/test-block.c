// SPDX-License-Identifier: BSD-2-Clause
/* Batches and blocks: every field of every record survives, and broken bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/block.h"
#include "format/segment-def.h"
#include "tests/unit/gen-trace.h"

#include <endian.h>
#include <lz4frame.h>
#include <xxhash.h>

struct fixture {
	struct iot_batch *in, *out;
	struct iot_block_encoder *encoder;
	struct iot_block_decoder *decoder;
	struct iot_request *rows;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(iot_batch_new(IOT_BLOCK_RECORDS, &f->in), 0);
	/* Smaller than what is decoded into it: it must grow. */
	assert_int_equal(iot_batch_new(16, &f->out), 0);
	assert_int_equal(iot_block_encoder_new(&f->encoder), 0);
	assert_int_equal(iot_block_decoder_new(&f->decoder), 0);
	f->rows = calloc(IOT_BLOCK_RECORDS_MAX, sizeof(*f->rows));
	assert_non_null(f->rows);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	iot_batch_free(f->in);
	iot_batch_free(f->out);
	iot_block_encoder_free(f->encoder);
	iot_block_decoder_free(f->decoder);
	free(f->rows);
	free(f);
	return 0;
}

/* Fills f->in from the generator until n records or full; returns how many. */
static uint32_t fill(struct fixture *f, struct gen *g, uint32_t n)
{
	uint32_t i;

	iot_batch_clear(f->in);
	for (i = 0; i < n; i++) {
		gen_request(g, &f->rows[i]);
		if (iot_batch_add(f->in, &f->rows[i]) == IOT_BATCH_FULL)
			break;
	}
	assert_int_equal(iot_batch_count(f->in), i);
	return i;
}

/* A block of its own, exactly as long as it is; *ret_info as its header says. */
static uint8_t *encode(struct fixture *f, uint64_t seq, struct iot_block_info *ret_info)
{
	const struct iot_span spans[2] = {{16, 4096 + seq}, {0, 0}};
	struct iot_block_info info;
	const uint8_t *data;
	uint8_t *copy;
	size_t size;

	assert_int_equal(iot_block_encode(f->encoder, IOT_BLOCK_REQUESTS, seq, f->in, spans, 2,
					  &data, &size, &info),
			 0);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, data, size);
	assert_int_equal(iot_block_header_decode(copy, size, ret_info), 0);
	assert_memory_equal(&info, ret_info, sizeof(info));
	assert_int_equal(info.size, size);
	return copy;
}

static int decode(struct fixture *f, const struct iot_block_info *info, const uint8_t *block,
		  uint64_t columns)
{
	return iot_block_decode(f->decoder, info, block + info->header_size, info->data_size,
				columns, f->out);
}

static void check_rows(struct fixture *f, uint32_t n)
{
	struct iot_request r;

	assert_int_equal(iot_batch_count(f->out), n);
	for (uint32_t i = 0; i < n; i++) {
		const char *field;

		iot_batch_get(f->out, i, &r);
		field = gen_difference(&r, &f->rows[i]);
		if (field)
			fail_msg("record %u: %s differs", i, field);
	}
}

static void test_round_trip(void **state)
{
	static const uint32_t counts[] = {1, 2, 127, 128, 129, 1000, IOT_BLOCK_RECORDS};
	struct fixture *f = *state;

	for (enum gen_kind kind = 0; kind < GEN_N_KINDS; kind++) {
		struct gen g;

		gen_init(&g, kind, 100 + kind);
		for (unsigned int k = 0; k < 70; k++) {
			uint32_t n = fill(f, &g, counts[k % IOT_ARRAY_SIZE(counts)]);
			struct iot_block_info info;
			uint8_t *block = encode(f, k, &info);

			assert_int_equal(info.count, n);
			assert_int_equal(info.seq, k);
			assert_int_equal(info.n_spans, 2);
			assert_int_equal(info.spans[0].p1, 4096 + k);
			assert_int_equal(decode(f, &info, block, IOT_COLS_ALL), 0);
			check_rows(f, n);
			assert_int_equal(iot_batch_first_ns(f->out), iot_batch_first_ns(f->in));
			assert_int_equal(iot_batch_last_ns(f->out), iot_batch_last_ns(f->in));
			assert_int_equal(info.first_ns, iot_batch_first_ns(f->in));
			assert_int_equal(info.last_ns, iot_batch_last_ns(f->in));
			free(block);
		}
	}
}

/* One field takes edge values while the others stay ordinary: each forbids another transform. */
static void test_edges_one_field_at_a_time(void **state)
{
	static const uint64_t edges[] = {
		0, 1, 2, 1ULL << 63, (1ULL << 63) + 1, INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
	struct fixture *f = *state;
	struct gen g;

	gen_init(&g, GEN_MIXED, 5);
	for (size_t word = 0; word < 9; word++) {
		for (size_t e = 0; e < IOT_ARRAY_SIZE(edges); e++) {
			struct iot_block_info info;
			uint8_t *block;

			iot_batch_clear(f->in);
			for (uint32_t i = 0; i < 200; i++) {
				struct iot_request *r = &f->rows[i];

				gen_request(&g, r);
				if (i % 7 == 3) {
					uint64_t v = edges[e];

					/* Differences hit the edge too, not only values. */
					if (i % 2)
						v += r->complete_ns;
					memcpy((uint8_t *)r + 8 * word, &v, 8);
				}
				assert_int_equal(iot_batch_add(f->in, r), 0);
			}
			block = encode(f, 0, &info);
			assert_int_equal(decode(f, &info, block, IOT_COLS_ALL), 0);
			check_rows(f, 200);
			free(block);
		}
	}
}

static void test_largest(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	uint8_t *block;
	struct gen g;
	uint32_t n;

	iot_batch_free(f->in);
	assert_int_equal(iot_batch_new(IOT_BLOCK_RECORDS_MAX, &f->in), 0);
	gen_init(&g, GEN_MIXED, 9);
	n = fill(f, &g, IOT_BLOCK_RECORDS_MAX);
	assert_int_equal(n, IOT_BLOCK_RECORDS_MAX);
	assert_int_equal(iot_batch_add(f->in, &f->rows[0]), IOT_BATCH_FULL);
	block = encode(f, 0, &info);
	assert_int_equal(decode(f, &info, block, IOT_COLS_ALL), 0);
	check_rows(f, n);
	free(block);
}

/* A full dictionary closes the batch and takes nothing of the record. */
static void test_dictionary_full(void **state)
{
	struct fixture *f = *state;
	struct iot_request r = {.id = 1, .complete_ns = 5};
	uint32_t n = 0;
	int q;

	iot_batch_clear(f->in);
	for (;; n++) {
		r.pid = n;
		q = iot_batch_add(f->in, &r);
		if (q)
			break;
		f->rows[n] = r;
	}
	assert_int_equal(q, IOT_BATCH_FULL);
	assert_int_equal(n, 4096);
	assert_int_equal(iot_batch_count(f->in), n);
	{
		struct iot_block_info info;
		uint8_t *block = encode(f, 0, &info);

		assert_int_equal(decode(f, &info, block, IOT_COLS_ALL), 0);
		check_rows(f, n);
		free(block);
	}
	iot_batch_clear(f->in);
	assert_int_equal(iot_batch_add(f->in, &r), 0);
}

static void test_order_of_times(void **state)
{
	struct fixture *f = *state;

	iot_batch_clear(f->in);
	assert_int_equal(iot_batch_first_ns(f->in), 0);
	for (uint64_t t = 100; t > 90; t--) {
		struct iot_request r = {.id = t, .complete_ns = t};

		assert_int_equal(iot_batch_add(f->in, &r), 0);
	}
	assert_int_equal(iot_batch_first_ns(f->in), 91);
	assert_int_equal(iot_batch_last_ns(f->in), 100);
}

/* What a selection gives is what full decoding gives; what was not asked for is null. */
static void test_selection(void **state)
{
	static const uint64_t groups[] = {
		IOT_COLS_ISSUE,	 IOT_COLS_ISSUE_LAST, IOT_COLS_START,
		IOT_COLS_INSERT, IOT_COLS_CPU,	      IOT_COLS_ID,
		IOT_COLS_OP,	 IOT_COLS_CONTEXT,    IOT_COLS_DEVICE,
		IOT_COLS_FILE,	 IOT_COLS_BYTES,      IOT_COLS_BYTES_DONE,
		IOT_COLS_SECTOR, IOT_COLS_STATUS,     IOT_COLS_COUNTS,
		IOT_COLS_RING,	 IOT_COLS_TIMES,      0,
	};
	struct fixture *f = *state;
	struct iot_block_info info;
	struct iot_request got, null;
	uint8_t *block;
	struct gen g;
	uint32_t n;

	gen_init(&g, GEN_MIXED, 77);
	n = fill(f, &g, 500);
	block = encode(f, 0, &info);
	for (size_t k = 0; k < IOT_ARRAY_SIZE(groups); k++) {
		uint64_t mask = groups[k];

		assert_int_equal(decode(f, &info, block, mask), 0);
		assert_int_equal(iot_batch_count(f->out), n);
		for (uint32_t i = 0; i < n; i++) {
			const struct iot_request *want = &f->rows[i];

			iot_batch_get(f->out, i, &got);
			assert_int_equal(got.complete_ns, want->complete_ns);
			if (mask & IOT_COLS_ISSUE)
				assert_int_equal(got.issue_ns, want->issue_ns);
			if (mask & IOT_COLS_ISSUE_LAST)
				assert_int_equal(got.issue_last_ns, want->issue_last_ns);
			if (mask & IOT_COLS_START)
				assert_int_equal(got.start_ns, want->start_ns);
			if (mask & IOT_COLS_INSERT)
				assert_int_equal(got.insert_ns, want->insert_ns);
			if (mask & IOT_COLS_CPU)
				assert_true(got.issue_cpu == want->issue_cpu &&
					    got.complete_cpu == want->complete_cpu);
			if (mask & IOT_COLS_ID)
				assert_int_equal(got.id, want->id);
			if (mask & IOT_COLS_OP)
				assert_true(got.op == want->op && got.flags == want->flags &&
					    got.swap == want->swap &&
					    got.submitter == want->submitter);
			if (mask & IOT_COLS_CONTEXT)
				assert_true(got.pid == want->pid && got.tgid == want->tgid &&
					    got.cgroup == want->cgroup &&
					    !memcmp(got.comm, want->comm, sizeof(got.comm)));
			if (mask & IOT_COLS_DEVICE)
				assert_true(got.dev == want->dev && got.part == want->part);
			if (mask & IOT_COLS_FILE)
				assert_true(got.ino == want->ino && got.fsdev == want->fsdev);
			if (mask & IOT_COLS_BYTES)
				assert_int_equal(got.bytes, want->bytes);
			if (mask & IOT_COLS_BYTES_DONE)
				assert_int_equal(got.bytes_done, want->bytes_done);
			if (mask & IOT_COLS_SECTOR)
				assert_int_equal(got.sector, want->sector);
			if (mask & IOT_COLS_STATUS)
				assert_true(got.error == want->error && got.status == want->status);
			if (mask & IOT_COLS_COUNTS)
				assert_true(got.segments == want->segments &&
					    got.merges == want->merges &&
					    got.requeues == want->requeues && got.hwq == want->hwq);
			if (mask & IOT_COLS_RING)
				assert_int_equal(got.ring, want->ring);
		}
	}
	/* The last selection was nothing: all but the completion time is null. */
	null = (struct iot_request){
		.sector = IOT_SECTOR_NONE, .hwq = IOT_HWQ_NONE, .complete_ns = got.complete_ns};
	assert_null(gen_difference(&got, &null));
	free(block);
}

static void test_open_and_empty_times(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	const uint8_t *data;
	size_t size;
	struct gen g;

	gen_init(&g, GEN_MIXED, 31);
	iot_batch_clear(f->in);
	for (uint32_t i = 0; i < 300; i++) {
		gen_request(&g, &f->rows[i]);
		f->rows[i].complete_ns = 0;
		f->rows[i].bytes_done = 0;
		assert_int_equal(iot_batch_add(f->in, &f->rows[i]), 0);
	}
	assert_int_equal(iot_block_encode(f->encoder, IOT_BLOCK_OPEN, 3, f->in, NULL, 0, &data,
					  &size, &info),
			 0);
	assert_int_equal(info.kind, IOT_BLOCK_OPEN);
	assert_int_equal(info.n_spans, 0);
	assert_int_equal(decode(f, &info, data, IOT_COLS_ALL), 0);
	check_rows(f, 300);
}

static void test_ledger(void **state)
{
	enum {
		N = 5000
	};
	struct fixture *f = *state;
	struct iot_loss *in = calloc(N, sizeof(*in)), *out = calloc(N, sizeof(*out));
	XXH64_state_t *a = XXH64_createState(), *b = XXH64_createState();
	struct iot_block_info info, parsed;
	struct gen g = {.state = 4};
	const uint8_t *data;
	size_t size;

	assert_true(in && out && a && b);
	_Static_assert(sizeof(*in) == 64, "no padding: rows may be compared as bytes");
	for (size_t i = 0; i < N; i++) {
		uint64_t words[8];

		for (size_t k = 0; k < 8; k++)
			words[k] = gen_hostile_value(&g);
		memcpy(&in[i], words, sizeof(words));
	}
	XXH64_reset(a, 0);
	XXH64_reset(b, 0);
	assert_int_equal(iot_block_encode_losses(f->encoder, 9, in, N, a, &data, &size, &info), 0);
	assert_int_equal(iot_block_header_decode(data, size, &parsed), 0);
	assert_memory_equal(&info, &parsed, sizeof(info));
	assert_int_equal(info.count, N);
	assert_int_equal(iot_block_decode_losses(f->decoder, &info, data + info.header_size,
						 info.data_size, b, out),
			 0);
	assert_memory_equal(in, out, N * sizeof(*in));
	assert_true(XXH64_digest(a) == XXH64_digest(b));
	/* Kinds are not exchangeable. */
	assert_int_equal(decode(f, &info, data, IOT_COLS_ALL), -EBADMSG);
	XXH64_freeState(a);
	XXH64_freeState(b);
	free(in);
	free(out);
}

static void test_ledger_row_in_disorder(void **state)
{
	struct iot_loss loss = {.id = 3, .n = 1, .first_ns = 50}, got;
	struct fixture *f = *state;
	struct iot_block_info info;
	const uint8_t *data;
	size_t size;

	assert_int_equal(iot_block_encode_losses(f->encoder, 0, &loss, 1, NULL, &data, &size, NULL),
			 0);
	assert_int_equal(iot_block_header_decode(data, size, &info), 0);
	assert_int_equal(info.first_ns, 0);
	assert_int_equal(info.last_ns, 50);
	assert_int_equal(iot_block_decode_losses(f->decoder, &info, data + info.header_size,
						 info.data_size, NULL, &got),
			 0);
	assert_memory_equal(&loss, &got, sizeof(got));
}

/* Any flipped bit of a block is seen: by the header's hash or the data's. */
static void test_flip_every_bit(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, flipped;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_MIXED, 12);
	fill(f, &g, 20);
	block = encode(f, 0, &info);
	for (size_t bit = 0; bit < info.size * 8; bit++) {
		int r;

		block[bit / 8] ^= (uint8_t)(1U << bit % 8);
		r = iot_block_header_decode(block, info.size, &flipped);
		if (bit / 8 < info.header_size) {
			assert_int_equal(r, -EBADMSG);
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(iot_block_data_check(&flipped, block + info.header_size,
							      info.data_size),
					 -EBADMSG);
			assert_int_equal(decode(f, &flipped, block, IOT_COLS_ALL), -EBADMSG);
			assert_int_equal(iot_batch_count(f->out), 0);
		}
		block[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(block);
}

static void test_every_truncation(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, cut;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_RANDOM, 12);
	fill(f, &g, 50);
	block = encode(f, 0, &info);
	for (size_t size = 0; size < info.size; size++) {
		uint8_t *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, block, size);
		if (size < info.header_size) {
			assert_int_equal(iot_block_header_decode(copy, size, &cut), -EBADMSG);
		} else {
			assert_int_equal(iot_block_header_decode(copy, size, &cut), 0);
			assert_int_equal(iot_block_decode(f->decoder, &cut, copy + cut.header_size,
							  size - cut.header_size, IOT_COLS_ALL,
							  f->out),
					 -EBADMSG);
		}
		free(copy);
	}
	free(block);
}

/* A block around arbitrary content, with everything else right: the hashes do not protect us. */
static int decode_content(struct fixture *f, const struct iot_block_info *like,
			  const uint8_t *content, size_t size)
{
	LZ4F_preferences_t preferences = {
		.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled,
		.frameInfo.blockMode = LZ4F_blockIndependent,
		.frameInfo.contentSize = size,
	};
	size_t bound = LZ4F_compressFrameBound(size, &preferences), n;
	struct iot_block_info info = *like;
	uint8_t *frame = malloc(bound);
	int r;

	assert_non_null(frame);
	n = LZ4F_compressFrame(frame, bound, content, size, &preferences);
	assert_false(LZ4F_isError(n));
	info.raw_bytes = (uint32_t)size;
	info.data_size = (uint32_t)n;
	info.data_hash = XXH64(frame, n, 0);
	r = iot_block_decode(f->decoder, &info, frame, n, IOT_COLS_ALL, f->out);
	free(frame);
	return r;
}

static uint8_t *content_of(const struct iot_block_info *info, const uint8_t *block)
{
	size_t in = info->data_size, out = info->raw_bytes;
	uint8_t *content = malloc(out + 64);
	LZ4F_dctx *lz4;

	assert_non_null(content);
	assert_false(LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION)));
	assert_int_equal(LZ4F_decompress(lz4, content, &out, block + info->header_size, &in, NULL),
			 0);
	LZ4F_freeDecompressionContext(lz4);
	return content;
}

static void test_mutated_content(void **state)
{
	struct fixture *f = *state;
	unsigned int refused = 0;
	struct gen g, m = {.state = 6};

	for (unsigned int i = 0; i < 4000; i++) {
		struct iot_block_info info;
		uint8_t *block, *content;
		size_t size;

		gen_init(&g, i % GEN_N_KINDS, i);
		fill(f, &g, 1 + (uint32_t)gen_below(&m, 60));
		block = encode(f, 0, &info);
		content = content_of(&info, block);
		size = info.raw_bytes;
		for (uint64_t k = 1 + gen_below(&m, 3); k > 0; k--) {
			/* Mostly the column table: the payloads are the larger part. */
			size_t at = gen_below(&m, gen_below(&m, 3) ? IOT_MIN(size, 520U) : size);

			content[at] = (uint8_t)(gen_below(&m, 2)
							? gen_next(&m)
							: content[at] ^ 1U << gen_below(&m, 8));
		}
		if (gen_below(&m, 8) == 0)
			size = 1 + gen_below(&m, size);
		if (decode_content(f, &info, content, size) < 0) {
			refused++;
			assert_int_equal(iot_batch_count(f->out), 0);
		}
		free(content);
		free(block);
	}
	assert_true(refused > 1000);
}

/* Single rules of the column table, each broken alone. */
static void test_column_table_rules(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	uint8_t *block, *content;
	struct iot_disk_column *e;
	struct iot_disk_columns *head;
	struct gen g;

	gen_init(&g, GEN_MIXED, 8);
	fill(f, &g, 100);
	block = encode(f, 0, &info);
	content = content_of(&info, block);
	head = (struct iot_disk_columns *)content;
	e = (struct iot_disk_column *)(head + 1);
	assert_int_equal(decode_content(f, &info, content, info.raw_bytes), 0);

#define BROKEN(field, value)                                                                   \
	do {                                                                                   \
		__typeof__(field) _old = (field);                                              \
		(field) = (value);                                                             \
		assert_int_equal(decode_content(f, &info, content, info.raw_bytes), -EBADMSG); \
		(field) = _old;                                                                \
		assert_int_equal(decode_content(f, &info, content, info.raw_bytes), 0);        \
	} while (0)
	BROKEN(head->n, head->n + 1);
	BROKEN(head->n, head->n - 1);
	BROKEN(head->n, 0);
	BROKEN(head->entry_size, 8);
	BROKEN(head->entry_size, 24);
	BROKEN(head->reserved, 1);
	BROKEN(e[0].column, e[1].column); /* twice */
	BROKEN(e[1].column, e[0].column);
	BROKEN(e[0].codec, 0);
	BROKEN(e[0].codec, 9);
	BROKEN(e[0].base, IOT_BASE_REF); /* complete has no reference */
	BROKEN(e[1].base, 7);
	BROKEN(e[0].flags, 4);
	BROKEN(e[0].flags, IOT_COLUMN_NULLS | e[0].flags); /* complete is never null */
	BROKEN(e[0].shift, 64);
	BROKEN(e[0].reserved[1], 1);
	BROKEN(e[0].count, 99);
	BROKEN(e[0].length, e[0].length + 1);
	BROKEN(e[0].length, UINT32_MAX);
	/* Missing columns: an index without its table, and those that must be there. */
	for (unsigned int i = 0; i < head->n; i++) {
		switch (e[i].column) {
		case IOT_COLUMN_OP_WORD:
			BROKEN(e[i].column, IOT_COLUMN_RING + 1);
			break;
		case IOT_COLUMN_FILE_FSDEV:
			BROKEN(e[i].column, 200);
			break;
		case IOT_COLUMN_COMPLETE:
			BROKEN(e[i].column, 0);
			break;
		default:
			break;
		}
	}
#undef BROKEN
	/* What the header says must be what the columns say. */
	info.first_ns++;
	assert_int_equal(decode_content(f, &info, content, info.raw_bytes), -EBADMSG);
	info.first_ns--;
	info.last_id++;
	assert_int_equal(decode_content(f, &info, content, info.raw_bytes), -EBADMSG);
	free(content);
	free(block);
}

/* A later version's column, and a longer table entry, are stepped over. */
static void test_unknown_column(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	struct iot_disk_columns head;
	uint8_t *block, *content, *newer, *p;
	uint32_t five = htole32(5);
	size_t n_entries, payload;
	struct gen g;

	gen_init(&g, GEN_MIXED, 21);
	fill(f, &g, 64);
	block = encode(f, 0, &info);
	content = content_of(&info, block);
	memcpy(&head, content, sizeof(head));
	n_entries = le16toh(head.n);
	payload = sizeof(head) + n_entries * 16;
	newer = calloc(1, info.raw_bytes + (n_entries + 1) * 8 + 16 + 5);
	assert_non_null(newer);
	head.n = htole16((uint16_t)(n_entries + 1));
	head.entry_size = htole16(24);
	p = newer;
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	for (size_t i = 0; i < n_entries; i++, p += 24) {
		memcpy(p, content + sizeof(head) + i * 16, 16);
		memset(p + 16, 0xee, 8);
	}
	*p = 200;  /* column */
	p[1] = 77; /* codec of the future */
	memcpy(p + 12, &five, 4);
	p += 24;
	memcpy(p, content + payload, info.raw_bytes - payload);
	p += info.raw_bytes - payload;
	memcpy(p, "later", 5);
	p += 5;
	assert_int_equal(decode_content(f, &info, newer, (size_t)(p - newer)), 0);
	check_rows(f, 64);
	free(newer);
	free(content);
	free(block);
}

/* Declared sizes far beyond the bytes that are there ask for no memory. */
static void test_declared_sizes(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info, lie;
	uint8_t *block;
	struct gen g;

	gen_init(&g, GEN_RANDOM, 2);
	fill(f, &g, 10);
	block = encode(f, 0, &info);
#define LIE(field, value)                                                         \
	do {                                                                      \
		lie = info;                                                       \
		lie.field = (value);                                              \
		assert_int_equal(decode(f, &lie, block, IOT_COLS_ALL), -EBADMSG); \
	} while (0)
	LIE(count, 0);
	LIE(count, IOT_BLOCK_RECORDS_MAX + 1);
	LIE(count, IOT_BLOCK_RECORDS_MAX);
	LIE(raw_bytes, IOT_LIMIT_RAW_BYTES);
	LIE(raw_bytes, UINT32_MAX);
	LIE(raw_bytes, info.raw_bytes + 1);
	LIE(raw_bytes, 0);
	LIE(row_size, 64);
	LIE(kind, 0);
	LIE(kind, IOT_BLOCK_LEDGER);
#undef LIE
	free(block);
}

/* The sizes this format was made for; generated traces, so a change of a transform shows. */
static void test_sizes(void **state)
{
	static const struct {
		enum gen_kind kind;
		double bytes;
	} targets[] = {{GEN_RANDOM, 10}, {GEN_SEQUENTIAL, 7}};
	struct fixture *f = *state;

	for (size_t t = 0; t < IOT_ARRAY_SIZE(targets); t++) {
		double bytes = 0;
		struct gen g;

		gen_init(&g, targets[t].kind, 3);
		for (unsigned int k = 0; k < 8; k++) {
			struct iot_block_info info;

			fill(f, &g, IOT_BLOCK_RECORDS);
			free(encode(f, k, &info));
			bytes += (double)info.size / IOT_BLOCK_RECORDS / 8;
		}
		if (bytes > targets[t].bytes)
			fail_msg("kind %d: %.2f bytes per record", targets[t].kind, bytes);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_round_trip),
		CASE(test_edges_one_field_at_a_time),
		CASE(test_largest),
		CASE(test_dictionary_full),
		CASE(test_order_of_times),
		CASE(test_selection),
		CASE(test_open_and_empty_times),
		CASE(test_ledger),
		CASE(test_ledger_row_in_disorder),
		CASE(test_flip_every_bit),
		CASE(test_every_truncation),
		CASE(test_mutated_content),
		CASE(test_column_table_rules),
		CASE(test_unknown_column),
		CASE(test_declared_sizes),
		CASE(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
