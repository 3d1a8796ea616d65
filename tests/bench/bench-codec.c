// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench-codec.c - what a record costs on its way to disk and back, as JSON.
 *
 * For each generated trace: adding to a batch, encoding (LZ4 and hash included), LZ4F alone, and
 * decoding, in ns per record, with the bytes per record on disk (block headers included), against
 * LZ4 over the raw rows and against memcpy of a row. Each figure is the median of several rounds.
 * Usage: bench-codec [rounds]
 */
#include "format/block.h"
#include "tests/unit/gen-trace.h"

#include <lz4frame.h>
#include <time.h>

#define N_BLOCKS 32U
#define N_RECORDS (N_BLOCKS * IOT_BLOCK_RECORDS)
#define MAX_ROUNDS 101U

struct result {
	double add, encode, decode, decode_three, get, rows_lz4, memcpy;
	double bytes, rows_bytes;
};

static double now_ns(void)
{
	struct timespec ts;

	/* CPU time: what others do on this machine meanwhile is not our cost. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void die(const char *what, int r)
{
	fprintf(stderr, "bench-codec: %s: %s\n", what, strerror(-r));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

struct bench {
	struct iot_request *rows;
	struct iot_batch *batch, *out;
	struct iot_block_encoder *encoder;
	struct iot_block_decoder *decoder;
	uint8_t *sink;
	size_t sink_size;
	uint8_t *blocks[N_BLOCKS];
	struct iot_block_info infos[N_BLOCKS];
};

static void encode_round(struct bench *b, double *ret_add, double *ret_encode, double *ret_bytes)
{
	double add = 0, encode = 0, bytes = 0, t0, t1, t2;
	const uint8_t *data;
	size_t size;
	int r;

	for (uint32_t k = 0; k < N_BLOCKS; k++) {
		struct iot_span span = {.p0 = k, .p1 = k + 1};
		const struct iot_request *rows = b->rows + (size_t)k * IOT_BLOCK_RECORDS;

		iot_batch_clear(b->batch);
		t0 = now_ns();
		for (uint32_t i = 0; i < IOT_BLOCK_RECORDS; i++) {
			r = iot_batch_add(b->batch, &rows[i]);
			if (r)
				die("add", r);
		}
		t1 = now_ns();
		r = iot_block_encode(b->encoder, IOT_BLOCK_REQUESTS, k, b->batch, &span, 1, &data,
				     &size, &b->infos[k]);
		t2 = now_ns();
		if (r < 0)
			die("encode", r);
		add += t1 - t0;
		encode += t2 - t1;
		bytes += (double)size;
		free(b->blocks[k]);
		b->blocks[k] = malloc(size);
		if (!b->blocks[k])
			die("memory", -ENOMEM);
		memcpy(b->blocks[k], data, size);
	}
	*ret_add = add / N_RECORDS;
	*ret_encode = encode / N_RECORDS;
	*ret_bytes = bytes / N_RECORDS;
}

static double decode_round(struct bench *b, uint64_t columns)
{
	double t0 = now_ns();
	int r;

	for (uint32_t k = 0; k < N_BLOCKS; k++) {
		const struct iot_block_info *info = &b->infos[k];

		r = iot_block_decode(b->decoder, info, b->blocks[k] + info->header_size,
				     info->data_size, columns, b->out);
		if (r < 0)
			die("decode", r);
	}
	return (now_ns() - t0) / N_RECORDS;
}

static double get_round(struct bench *b)
{
	struct iot_request row;
	uint64_t sum = 0;
	double t0, t = 0;

	for (uint32_t i = 0; i < iot_batch_count(b->out); i++) {
		iot_batch_get(b->out, i, &row);
		if (gen_difference(&row, &b->rows[(size_t)(N_BLOCKS - 1) * IOT_BLOCK_RECORDS + i]))
			die("decoded record differs", -EBADMSG);
	}
	t0 = now_ns();
	for (uint32_t i = 0; i < iot_batch_count(b->out); i++) {
		iot_batch_get(b->out, i, &row);
		sum += row.id;
	}
	t = (now_ns() - t0) / iot_batch_count(b->out);
	b->sink[0] = (uint8_t)sum;
	return t;
}

static double rows_round(struct bench *b, double *ret_bytes)
{
	LZ4F_preferences_t preferences = {.frameInfo.contentChecksumFlag =
						  LZ4F_contentChecksumEnabled};
	double t0 = now_ns(), bytes = 0;

	for (uint32_t k = 0; k < N_BLOCKS; k++)
		bytes += (double)LZ4F_compressFrame(
			b->sink, b->sink_size, b->rows + (size_t)k * IOT_BLOCK_RECORDS,
			IOT_BLOCK_RECORDS * sizeof(*b->rows), &preferences);
	*ret_bytes = bytes / N_RECORDS;
	return (now_ns() - t0) / N_RECORDS;
}

static double memcpy_round(struct bench *b)
{
	double t0 = now_ns();

	for (uint32_t k = 0; k < N_BLOCKS; k++)
		memcpy(b->sink, b->rows + (size_t)k * IOT_BLOCK_RECORDS,
		       IOT_BLOCK_RECORDS * sizeof(*b->rows));
	return (now_ns() - t0) / N_RECORDS;
}

static void run(struct bench *b, enum gen_kind kind, unsigned int rounds, struct result *ret)
{
	double v[7][MAX_ROUNDS];
	struct gen g;

	gen_init(&g, kind, 1);
	for (uint32_t i = 0; i < N_RECORDS; i++)
		gen_request(&g, &b->rows[i]);
	for (unsigned int i = 0; i < rounds; i++) {
		encode_round(b, &v[0][i], &v[1][i], &ret->bytes);
		v[2][i] = decode_round(b, IOT_COLS_COMPLETE | IOT_COLS_OP | IOT_COLS_BYTES);
		v[3][i] = decode_round(b, IOT_COLS_ALL);
		v[4][i] = get_round(b);
		v[5][i] = rows_round(b, &ret->rows_bytes);
		v[6][i] = memcpy_round(b);
	}
	ret->add = median(v[0], rounds);
	ret->encode = median(v[1], rounds);
	ret->decode_three = median(v[2], rounds);
	ret->decode = median(v[3], rounds);
	ret->get = median(v[4], rounds);
	ret->rows_lz4 = median(v[5], rounds);
	ret->memcpy = median(v[6], rounds);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"random", "sequential", "mixed"};
	struct bench b = {.sink_size = IOT_BLOCK_RECORDS * sizeof(struct iot_request) * 2};
	uint64_t rounds = 9;

	if (argc > 2 || (argc == 2 && (iot_parse_u64(argv[1], &rounds) < 0 || rounds < 1 ||
				       rounds > MAX_ROUNDS))) {
		fprintf(stderr, "usage: bench-codec [rounds, 1..%u]\n", MAX_ROUNDS);
		return 64;
	}
	b.rows = calloc(N_RECORDS, sizeof(*b.rows));
	b.sink = malloc(b.sink_size);
	if (!b.rows || !b.sink || iot_batch_new(IOT_BLOCK_RECORDS, &b.batch) < 0 ||
	    iot_batch_new(IOT_BLOCK_RECORDS, &b.out) < 0 || iot_block_encoder_new(&b.encoder) < 0 ||
	    iot_block_decoder_new(&b.decoder) < 0)
		die("memory", -ENOMEM);
	printf("{\"record_bytes\":%zu", sizeof(struct iot_request));
	for (enum gen_kind kind = GEN_RANDOM; kind <= GEN_MIXED; kind++) {
		struct result res = {0};

		run(&b, kind, (unsigned int)rounds, &res);
		printf(",\n \"%s\":{\"bytes_per_record\":%.2f,\"add_ns\":%.1f,\"encode_ns\":%.1f,"
		       "\"decode_ns\":%.1f,\"decode_3_columns_ns\":%.1f,\"get_ns\":%.1f,"
		       "\"rows_lz4_bytes\":%.2f,\"rows_lz4_ns\":%.1f,\"memcpy_ns\":%.1f}",
		       names[kind], res.bytes, res.add, res.encode, res.decode, res.decode_three,
		       res.get, res.rows_bytes, res.rows_lz4, res.memcpy);
	}
	printf("}\n");
	for (uint32_t k = 0; k < N_BLOCKS; k++)
		free(b.blocks[k]);
	iot_batch_free(b.batch);
	iot_batch_free(b.out);
	iot_block_encoder_free(b.encoder);
	iot_block_decoder_free(b.decoder);
	free(b.rows);
	free(b.sink);
	return 0;
}
