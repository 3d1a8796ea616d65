// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-packet.c - blocks of the packet stream: every field comes back, selected columns come back
 * alone, the sizes that were promised hold, and damage is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "format/batch-def.h"
#include "format/block.h"
#include "tests/unit/block-content.h"
#include "tests/unit/gen-packet.h"

#define N IOT_BLOCK_RECORDS

struct fixture {
	struct iot_batch *in, *out;
	struct iot_block_encoder *encoder;
	struct iot_block_decoder *decoder;
	struct iot_packet *rows;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(iot_batch_new_stream(IOT_STREAM_PACKET, N, &f->in), 0);
	/* Of another stream, and smaller than what is decoded into it: it must change and grow. */
	assert_int_equal(iot_batch_new(16, &f->out), 0);
	assert_int_equal(iot_block_encoder_new(&f->encoder), 0);
	assert_int_equal(iot_block_decoder_new(&f->decoder), 0);
	f->rows = calloc(N, sizeof(*f->rows));
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

static uint32_t fill(struct fixture *f, struct gen_packet *g, uint32_t n)
{
	uint32_t i;

	iot_batch_clear(f->in);
	for (i = 0; i < n; i++) {
		gen_packet(g, &f->rows[i]);
		if (iot_batch_add_packet(f->in, &f->rows[i]) == IOT_BATCH_FULL)
			break;
	}
	assert_int_equal(iot_batch_count(f->in), i);
	return i;
}

static uint8_t *encode(struct fixture *f, struct iot_block_info *ret_info)
{
	const uint8_t *data;
	uint8_t *copy;
	size_t size;

	assert_int_equal(iot_block_encode(f->encoder, IOT_BLOCK_PACKETS, 0, f->in, NULL, 0, &data,
					  &size, NULL),
			 0);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, data, size);
	assert_int_equal(iot_block_header_decode(copy, size, ret_info), 0);
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
	assert_int_equal(iot_batch_count(f->out), n);
	for (uint32_t i = 0; i < n; i++) {
		struct iot_packet p;
		struct iot_row_key key;
		const char *field;

		iot_batch_get_packet(f->out, i, &p);
		field = gen_packet_difference(&p, &f->rows[i]);
		if (field)
			fail_msg("record %u: %s differs", i, field);
		iot_batch_key(f->out, i, &key);
		assert_int_equal(key.ns, f->rows[i].ts_ns);
		assert_int_equal(key.id, f->rows[i].id);
		assert_int_equal(key.probe, f->rows[i].probe);
		assert_int_equal(key.cpu, f->rows[i].cpu);
	}
}

/* Blocks of all kinds and sizes; returns bytes per record of the last one. */
static double round_trip(struct fixture *f, enum gen_packets kind, uint32_t n)
{
	struct iot_block_info info;
	struct gen_packet g;
	uint8_t *block;
	double each;

	gen_packet_init(&g, kind, n);
	n = fill(f, &g, n);
	block = encode(f, &info);
	assert_int_equal(info.count, n);
	assert_int_equal(info.kind, IOT_BLOCK_PACKETS);
	assert_int_equal(decode(f, &info, block, IOT_PCOLS_ALL), 0);
	check_rows(f, n);
	each = (double)info.size / n;
	free(block);
	return each;
}

static void test_round_trip(void **state)
{
	static const uint32_t sizes[] = {1, 2, 127, 128, 129, 1000, N};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(sizes); i++)
		for (enum gen_packets kind = GEN_PACKETS_FLOOD; kind <= GEN_PACKETS_NOISE; kind++)
			round_trip(*state, kind, sizes[i]);
}

/* What FORMAT.md and the design promise: 2 bytes an event in a flood, 5 in mixed flows. */
static void test_size(void **state)
{
	double flood = round_trip(*state, GEN_PACKETS_FLOOD, N),
	       mixed = round_trip(*state, GEN_PACKETS_MIXED, N);

	print_message("flood %.2f, mixed %.2f bytes per event\n", flood, mixed);
	assert_true(flood <= 2.0);
	assert_true(mixed <= 5.0);
}

/* What a column says of a record. */
static void take_field(struct iot_packet *to, const struct iot_packet *from, unsigned int column)
{
	switch (column) {
	case IOT_PCOLUMN_FLOW:
		to->flow = from->flow;
		break;
	case IOT_PCOLUMN_LEN:
		to->len = from->len;
		break;
	case IOT_PCOLUMN_CONTEXT:
		to->pid = from->pid;
		to->tgid = from->tgid;
		memcpy(to->comm, from->comm, sizeof(to->comm));
		break;
	case IOT_PCOLUMN_MARK:
		to->mark = from->mark;
		break;
	case IOT_PCOLUMN_L4:
		memcpy(to->l4, from->l4, sizeof(to->l4));
		break;
	case IOT_PCOLUMN_IP_ID:
		to->ip_id = from->ip_id;
		break;
	case IOT_PCOLUMN_HOP:
		to->hop = from->hop;
		break;
	case IOT_PCOLUMN_FLAGS:
		to->flags = from->flags;
		break;
	case IOT_PCOLUMN_PARENT:
		to->parent = from->parent;
		break;
	case IOT_PCOLUMN_IFACE:
		to->netns = from->netns;
		to->ifindex = from->ifindex;
		break;
	case IOT_PCOLUMN_CODE:
		to->code = from->code;
		break;
	case IOT_PCOLUMN_WHERE:
		to->where = from->where;
		break;
	case IOT_PCOLUMN_RING:
		to->ring = from->ring;
		break;
	case IOT_PCOLUMN_OBJECT:
		to->id = from->id;
		break;
	case IOT_PCOLUMN_PROBE:
		to->probe = from->probe;
		break;
	case IOT_PCOLUMN_CPU:
		to->cpu = from->cpu;
		break;
	default: /* time, which always comes; first values and dictionaries, which show through others */
		break;
	}
}

/* Each column comes back as it was and alone, but for what it refers to; so do pairs. */
static void test_selection(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	struct gen_packet g;
	uint8_t *block;

	gen_packet_init(&g, GEN_PACKETS_MIXED, 5);
	fill(f, &g, 2000);
	block = encode(f, &info);
	for (unsigned int c = 0; c < 64; c++) {
		unsigned int other = (c * 7 + 3) % 64;

		assert_int_equal(decode(f, &info, block, 1ULL << c | 1ULL << other), 0);
		for (uint32_t i = 0; i < 2000; i++) {
			struct iot_packet p, want = {.ts_ns = f->rows[i].ts_ns};
			const char *field;

			take_field(&want, &f->rows[i], c);
			take_field(&want, &f->rows[i], other);
			iot_batch_get_packet(f->out, i, &p);
			/* What others refer to may come, too, but not as anything else. */
			if (p.id)
				want.id = f->rows[i].id;
			if (p.probe)
				want.probe = f->rows[i].probe;
			field = gen_packet_difference(&p, &want);
			if (field)
				fail_msg("columns %u and %u, record %u: %s differs", c, other, i,
					 field);
		}
	}
	free(block);
}

/* A dictionary that is full ends the block: nothing of the record was taken. */
static void test_full(void **state)
{
	struct fixture *f = *state;
	struct iot_block_info info;
	struct iot_packet p = {.ts_ns = 1, .id = 1 << 13};
	uint8_t *block;
	uint32_t n = 0;

	iot_batch_clear(f->in);
	for (uint32_t i = 0; i < N; i++) {
		p.ifindex = i;
		p.flow.sport = (uint16_t)i;
		p.flow.src[0] = (uint8_t)i;
		p.flow.src[1] = (uint8_t)(i >> 8);
		p.flow.dst[0] = 255;
		p.flow.dst[1] = (uint8_t)i;
		p.flow.dst[2] = (uint8_t)(i >> 8);
		if (iot_batch_add_packet(f->in, &p) == IOT_BATCH_FULL)
			break;
		f->rows[n++] = p;
	}
	assert_int_equal(n, 4096);
	block = encode(f, &info);
	assert_int_equal(decode(f, &info, block, IOT_PCOLS_ALL), 0);
	check_rows(f, n);
	free(block);
}

static void test_losses(void **state)
{
	struct fixture *f = *state;
	struct iot_loss in[3] = {0}, out[3];
	struct iot_block_info info;
	XXH64_state_t *hash = XXH64_createState(), *again = XXH64_createState();
	const uint8_t *data;
	uint8_t *content;
	size_t size;

	for (unsigned int i = 0; i < 3; i++) {
		in[i] = (struct iot_loss){.id = 77 + i,
					  .n = 2 + i,
					  .bytes = 3000,
					  .parent = 5,
					  .first_ns = 100 + i,
					  .last_ns = 200 + i,
					  .netns = 4026531840U,
					  .ifindex = 3,
					  .flags = IOT_PACKET_END,
					  .probe = (uint16_t)(64 + i),
					  .cause = IOT_LOSS_RESERVE_FAILED,
					  .flow = {.src = {10, 0, 0, 1},
						   .dst = {10, 0, 0, 2},
						   .sport = 1,
						   .dport = 2,
						   .protocol = 0x800,
						   .vlan_tci = 9,
						   .family = 4,
						   .ip_proto = 17},
					  .l4 = {1, 2},
					  .code = -5};
	}
	XXH64_reset(hash, 0);
	XXH64_reset(again, 0);
	assert_int_equal(iot_block_encode_losses(f->encoder, IOT_STREAM_PACKET, 0, in, 3, hash,
						 &data, &size, &info),
			 0);
	assert_int_equal(info.row_size, 128);
	assert_int_equal(iot_block_decode_losses(f->decoder, IOT_STREAM_PACKET, &info,
						 data + info.header_size, info.data_size, again,
						 out),
			 0);
	_Static_assert(sizeof(in[0]) == 120, "no padding: rows may be compared as bytes");
	assert_memory_equal(in, out, sizeof(in));
	/* The footer's hash of the ledger is that of the contents, for writer and reader. */
	content = content_of(&info, data);
	assert_int_equal(XXH64_digest(hash), XXH64(content, info.raw_bytes, 0));
	assert_int_equal(XXH64_digest(again), XXH64_digest(hash));
	free(content);
	XXH64_freeState(hash);
	XXH64_freeState(again);
}

static void read_all(const struct iot_batch *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < iot_batch_count(b); i++) {
		struct iot_packet p;

		iot_batch_get_packet(b, i, &p);
		sum += p.id + p.flow.src[15] + p.flow.dst[0] + p.where + (uint8_t)p.comm[15];
	}
	__asm__ volatile("" : : "r"(sum));
}

static void test_hostile(void **state)
{
	struct fixture *f = *state;
	struct gen_packet g, m = {.seed = 77};
	unsigned int refused = 0, read = 0;

	for (unsigned int i = 0; i < 6000; i++) {
		struct iot_block_info info;
		uint8_t *block, *content;
		size_t out;

		gen_packet_init(&g, i % 3, i);
		fill(f, &g, 1 + (uint32_t)(gen_packet_random(&m) % 60));
		block = encode(f, &info);
		out = info.raw_bytes;
		content = content_of(&info, block);
		for (unsigned int k = 0; k < 1 + i % 3; k++) {
			/* Mostly the column table: the payloads are the larger part. */
			size_t at = gen_packet_random(&m) %
				    (gen_packet_random(&m) % 3 ? IOT_MIN(out, 660U) : out);

			content[at] = (uint8_t)(gen_packet_random(&m) >> 32);
		}
		switch (decode_content(f->decoder, &info, content, out, IOT_PCOLS_ALL, f->out)) {
		case 0:
			read_all(f->out);
			read++;
			break;
		case -EBADMSG:
			assert_int_equal(iot_batch_count(f->out), 0);
			refused++;
			break;
		default:
			fail();
		}
		free(content);
		free(block);
	}
	/* Most of what can be changed must not be. */
	assert_true(refused > 3000);
	assert_true(read > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_size),
		cmocka_unit_test(test_selection),  cmocka_unit_test(test_full),
		cmocka_unit_test(test_losses),	   cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
