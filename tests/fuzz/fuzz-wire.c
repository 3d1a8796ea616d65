// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-wire.c - any bytes as what the kernel side hands over: ring records, ledger entries.
 *
 * The first byte chooses: 'b' records of requests, 'p' observations of packets, 'i' requests in flight, 'l'
 * and 'q' the ledgers. The second is the length of one record less that of the structure, so that lengths
 * that are wrong are tried. What is decoded comes back from a block of the file format as it was, and what
 * is not can still be filed as a loss.
 */
#include "daemon/decode-packet.h"
#include "format/block.h"
#include "tests/unit/gen-packet.h"
#include "tests/unit/gen-trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_RECORDS 256U
#define N_CPUS 4U

static struct iot_block_encoder *encoder;
static struct iot_block_decoder *decoder;
static struct iot_batch *requests, *packets, *again;
static struct iot_loss losses[MAX_RECORDS], losses_again[MAX_RECORDS];

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-wire: %s\n", what);
	abort();
}

static void init(void)
{
	if (encoder)
		return;
	check(iot_block_encoder_new(&encoder) == 0 && iot_block_decoder_new(&decoder) == 0 &&
		      iot_batch_new(MAX_RECORDS, &requests) == 0 &&
		      iot_batch_new_stream(IOT_STREAM_PACKET, MAX_RECORDS, &packets) == 0 &&
		      iot_batch_new(64, &again) == 0,
	      "no memory");
}

static const struct probes_kernel *kernel(void)
{
	static struct probes_kernel k = {.op_mask = 0xff};

	for (unsigned int i = 0; i < 256; i++)
		k.op[i] = (uint8_t)(i % 16);
	for (unsigned int i = 8; i < 32; i++)
		k.flag_mask[i] = 1U << (i - 8);
	return &k;
}

/* Through a block and back. */
static void round_trip(struct iot_batch *b, enum iot_block_kind kind)
{
	struct iot_block_info info, read;
	const uint8_t *block;
	size_t size;

	if (iot_batch_count(b) == 0)
		return;
	check(iot_block_encode(encoder, kind, 0, b, NULL, 0, &block, &size, &info) == 0,
	      "cannot be encoded");
	check(iot_block_header_decode(block, size, &read) == 0, "the header cannot be read");
	check(iot_block_decode(decoder, &read, block + read.header_size, read.data_size,
			       IOT_COLS_ALL, again) == 0,
	      "cannot be decoded");
	check(iot_batch_count(again) == iot_batch_count(b), "another number of records");
	for (uint32_t i = 0; i < iot_batch_count(b); i++) {
		struct iot_request r, r2;
		struct iot_packet p, p2;
		const char *difference;

		if (kind == IOT_BLOCK_PACKETS) {
			iot_batch_get_packet(b, i, &p);
			iot_batch_get_packet(again, i, &p2);
			difference = gen_packet_difference(&p, &p2);
		} else {
			iot_batch_get(b, i, &r);
			iot_batch_get(again, i, &r2);
			difference = gen_difference(&r, &r2);
		}
		check(!difference, difference);
	}
}

static void round_trip_losses(enum iot_stream stream, size_t n)
{
	struct iot_block_info info, read;
	const uint8_t *block;
	size_t size;

	if (n == 0)
		return;
	check(iot_block_encode_losses(encoder, stream, 0, losses, n, NULL, &block, &size, &info) ==
		      0,
	      "losses cannot be encoded");
	check(iot_block_header_decode(block, size, &read) == 0, "the header cannot be read");
	check(iot_block_decode_losses(decoder, stream, &read, block + read.header_size,
				      read.data_size, NULL, losses_again) == 0,
	      "losses cannot be decoded");
	for (size_t i = 0; i < n; i++)
		check(losses[i].id == losses_again[i].id && losses[i].n == losses_again[i].n &&
			      losses[i].bytes == losses_again[i].bytes &&
			      losses[i].first_ns == losses_again[i].first_ns &&
			      losses[i].last_ns == losses_again[i].last_ns &&
			      losses[i].probe == losses_again[i].probe &&
			      losses[i].cause == losses_again[i].cause &&
			      losses[i].flags == losses_again[i].flags,
		      "another loss");
}

static void file_request(const struct ev_hdr *h, const struct iot_request *r, size_t *n)
{
	decode_block_user_loss(h, r, IOT_LOSS_DECODE_FAILED, 1, 2, &losses[(*n)++]);
}

static void records(char which, const uint8_t *data, size_t size, size_t each)
{
	static struct places places;
	struct decode_packet packet = {.n_cpus = N_CPUS, .places = &places};
	struct decode_block block;
	size_t n_losses = 0;

	decode_block_init(&block, kernel(), N_CPUS);
	/* As many as one capture may have: beyond that there is no number. */
	check(places.slots || places_init(&places) == 0, "no memory");
	iot_batch_clear(requests);
	iot_batch_clear(packets);
	for (size_t i = 0; i < MAX_RECORDS - 1 && size; i++) {
		uint32_t len = (uint32_t)IOT_MIN(each, size);
		/* Aligned as in the ring, and exactly as long, so that reading past it is seen. */
		void *record = malloc(len);
		struct iot_request r;
		struct iot_packet p;
		struct ev_hdr h;

		check(record, "no memory");
		memcpy(record, data, len);
		if (which == 'p') {
			int q = decode_packet_record(&packet, record, len, &p, &h);

			check(q == 0 || q == DECODE_BAD, "an undocumented result");
			if (q == 0)
				check(iot_batch_add_packet(packets, &p) >= 0, "no memory");
			else
				decode_packet_user_loss(&h, NULL, IOT_LOSS_DECODE_FAILED, 2,
							&losses[n_losses++]);
			(void)decode_packet_time(record, len);
		} else if (which == 'b') {
			int q = decode_block_record(&block, record, len, &r, &h);

			check(q == 0 || q == DECODE_BAD, "an undocumented result");
			if (q == 0)
				check(iot_batch_add(requests, &r) >= 0, "no memory");
			else
				file_request(&h, NULL, &n_losses);
			(void)decode_block_time(record, len);
		} else if (len >= sizeof(struct ev_block)) {
			decode_block_in_flight(&block, record, &r);
			check(r.complete_ns == 0, "in flight, and complete");
			check(iot_batch_add(requests, &r) >= 0, "no memory");
		}
		free(record);
		data += len;
		size -= len;
	}
	round_trip(requests, which == 'i' ? IOT_BLOCK_OPEN : IOT_BLOCK_REQUESTS);
	round_trip(packets, IOT_BLOCK_PACKETS);
	round_trip_losses(which == 'p' ? IOT_STREAM_PACKET : IOT_STREAM_BLOCK, n_losses);
}

static void ledger(bool of_packets, const uint8_t *data, size_t size)
{
	struct decode_block block;
	struct ev_ledger_key key;
	struct ev_ledger_val val;
	struct ev_packet_loss loss;
	size_t n = 0, each = sizeof(key) + (of_packets ? sizeof(loss) : sizeof(val));

	decode_block_init(&block, kernel(), N_CPUS);
	for (; n < MAX_RECORDS && size >= each; size -= each, data += each) {
		memcpy(&key, data, sizeof(key));
		if (of_packets) {
			memcpy(&loss, data + sizeof(key), sizeof(loss));
			decode_packet_loss(&key, &loss, &losses[n++]);
		} else {
			memcpy(&val, data + sizeof(key), sizeof(val));
			decode_block_loss(&block, &key, &val, &losses[n++]);
		}
	}
	round_trip_losses(of_packets ? IOT_STREAM_PACKET : IOT_STREAM_BLOCK, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t each;

	if (size < 3)
		return 0;
	init();
	each = (data[0] == 'p' ? sizeof(struct ev_packet) : sizeof(struct ev_block)) +
	       (size_t)(int8_t)data[1];
	if (data[0] == 'l' || data[0] == 'q')
		ledger(data[0] == 'q', data + 2, size - 2);
	else
		records((char)data[0], data + 2, size - 2, each ? each : 1);
	return 0;
}
