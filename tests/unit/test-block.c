// SPDX-License-Identifier: BSD-2-Clause
/* Batches and blocks: every field of every record survives. test-block-hostile.c has the broken bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/segment-def.h"
#include "tests/unit/block-fixture.h"

#include <xxhash.h>

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
	uint64_t tested = IOT_COLS_COMPLETE;
	struct iot_request got, null;
	uint8_t *block;
	struct gen g;
	uint32_t n;

	for (size_t k = 0; k < IOT_ARRAY_SIZE(groups); k++)
		tested |= groups[k];
	/* Every column that has values is in a group: bits 1 to the last. */
	assert_int_equal(tested, (1ULL << IOT_COLUMN_VALUES_END) - 2);

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
					    got.swap_rule == want->swap_rule &&
					    got.origin == want->origin &&
					    got.submitter == want->submitter &&
					    got.file_by == want->file_by &&
					    got.cgroup_by == want->cgroup_by &&
					    got.reclaim == want->reclaim &&
					    got.unswapped_bytes == want->unswapped_bytes);
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
	_Static_assert(sizeof(*in) == 120, "no padding: rows may be compared as bytes");
	for (size_t i = 0; i < N; i++) {
		uint64_t words[8];

		for (size_t k = 0; k < 8; k++)
			words[k] = gen_hostile_value(&g);
		memcpy(&in[i], words, sizeof(words));
		in[i].swap = (uint8_t)(i % 3);
		in[i].swap_rule = (uint8_t)(i % 4);
	}
	XXH64_reset(a, 0);
	XXH64_reset(b, 0);
	assert_int_equal(iot_block_encode_losses(f->encoder, IOT_STREAM_BLOCK, 9, in, N, a, &data,
						 &size, &info),
			 0);
	assert_int_equal(iot_block_header_decode(data, size, &parsed), 0);
	assert_memory_equal(&info, &parsed, sizeof(info));
	assert_int_equal(info.count, N);
	assert_int_equal(iot_block_decode_losses(f->decoder, IOT_STREAM_BLOCK, &info,
						 data + info.header_size, info.data_size, b, out),
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

	assert_int_equal(iot_block_encode_losses(f->encoder, IOT_STREAM_BLOCK, 0, &loss, 1, NULL,
						 &data, &size, NULL),
			 0);
	assert_int_equal(iot_block_header_decode(data, size, &info), 0);
	assert_int_equal(info.first_ns, 0);
	assert_int_equal(info.last_ns, 50);
	assert_int_equal(iot_block_decode_losses(f->decoder, IOT_STREAM_BLOCK, &info,
						 data + info.header_size, info.data_size, NULL,
						 &got),
			 0);
	assert_memory_equal(&loss, &got, sizeof(got));
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
		CASE(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
