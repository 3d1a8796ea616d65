// SPDX-License-Identifier: BSD-2-Clause
/*
 * From rings to files and back: merging, two epochs in flight, what may be given back to the kernel and
 * when, and that each record ends in exactly one place.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/drain.h"
#include "format/reader.h"
#include "tests/unit/fake-ring.h"

#define N_CPUS 2U
#define RING_BYTES 65536U
#define P EV_PROBE_BLOCK_COMPLETE

struct fixture {
	struct fake_ring fake[2];
	struct drain d;
	struct probes_kernel kernel;
	char dir[64];
	int dirfd;
};

static struct fixture f;

static void setup_rings(uint32_t n_rings, uint32_t block_records)
{
	memset(&f, 0, sizeof(f));
	snprintf(f.dir, sizeof(f.dir), "/tmp/test-drain.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	f.dirfd = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f.dirfd >= 0);
	f.kernel.op_mask = 0xff;
	f.kernel.op[1] = IOT_OP_WRITE;
	assert_int_equal(drain_init(&f.d, &f.kernel, N_CPUS, n_rings, block_records), 0);
	for (uint32_t i = 0; i < n_rings; i++) {
		assert_int_equal(fake_ring_new(&f.fake[i], RING_BYTES), 0);
		ring_init(&f.d.rings[i], f.fake[i].data, f.fake[i].size, &f.fake[i].consumer,
			  &f.fake[i].producer);
	}
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	drain_done(&f.d);
	fake_ring_done(&f.fake[0]);
	fake_ring_done(&f.fake[1]);
	close(f.dirfd);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", f.dir);
	return system(cmd); /* NOLINT: a path of our own making */
}

static const char *name_of(uint64_t epoch)
{
	static char name[32];

	snprintf(name, sizeof(name), "e%llu", (unsigned long long)epoch);
	return name;
}

static void begin(uint64_t epoch, const uint64_t *p0)
{
	struct iot_segment_info info = {.stream = IOT_STREAM_BLOCK,
					.n_rings = f.d.n_rings,
					.n_cpus = N_CPUS,
					.epoch = epoch,
					.seq = epoch};
	struct iot_writer *w = NULL;
	struct epoch *books = NULL;

	assert_int_equal(epoch_new(IOT_STREAM_BLOCK, epoch, N_CPUS, 1, &books), 0);
	assert_int_equal(iot_writer_open(f.dirfd, name_of(epoch), &info, &w), 0);
	segment_out_begin(&f.d.outs[epoch & 1], books, w, epoch, p0, 1);
}

static void put(uint32_t ring, uint64_t epoch, uint64_t id, uint64_t complete_ns)
{
	struct ev_block e = {
		.hdr = {.len = sizeof(e), .probe = P, .cpu = ring, .epoch = epoch, .id = id},
		.complete_ns = complete_ns,
		.start_ns = complete_ns - 1,
		.sector = id,
		.dev = IOT_DEV(7, 0),
		.part = IOT_DEV(7, 0),
		.cmd_flags = 1,
		.bytes = 512,
		.bytes_done = 512,
		.state = EV_BLOCK_SAW_START,
	};

	assert_true(fake_ring_put(&f.fake[ring], &e, sizeof(e)));
}

static int run(uint64_t budget, uint64_t *ret_taken)
{
	(void)drain_refresh(&f.d);
	return drain_run(&f.d, budget, ret_taken);
}

static void flush(uint64_t epoch)
{
	uint64_t pos[IOT_MAX_RINGS];

	drain_positions(&f.d, pos);
	assert_int_equal(segment_out_flush(&f.d.outs[epoch & 1], pos), 0);
}

/* Reads an epoch's file: ids in file order, and the spans of its blocks. */
static size_t read_back(uint64_t epoch, uint64_t *ids, size_t room, struct iot_span *spans,
			size_t *ret_n_blocks)
{
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	_cleanup_(iot_batch_freep) struct iot_batch *b = NULL;
	char path[128];
	size_t n = 0;

	*ret_n_blocks = 0;
	snprintf(path, sizeof(path), "%s/%s", f.dir, name_of(epoch));
	assert_int_equal(iot_segment_open(path, &s, NULL), 0);
	assert_int_equal(iot_batch_new(IOT_BLOCK_RECORDS, &b), 0);
	for (;;) {
		struct iot_block_info info;
		int r = iot_segment_next_block(s, &info, NULL);

		if (r == IOT_READ_END)
			return n;
		assert_int_equal(r, 0);
		assert_int_equal(info.n_spans, f.d.n_rings);
		memcpy(&spans[*ret_n_blocks * 2], info.spans, info.n_spans * sizeof(*spans));
		(*ret_n_blocks)++;
		assert_int_equal(iot_segment_read_block(s, &info, IOT_COLS_ALL, b, NULL), 0);
		for (uint32_t i = 0; i < iot_batch_count(b); i++) {
			struct iot_request q;

			iot_batch_get(b, i, &q);
			assert_true(n < room);
			ids[n++] = q.id;
		}
	}
}

static const uint64_t zero[IOT_MAX_RINGS];

static void test_held_until_written(void **state)
{
	uint64_t taken, ids[64];
	struct iot_span spans[64];
	size_t n_blocks;

	(void)state;
	setup_rings(1, 4);
	begin(1, zero);
	for (uint64_t i = 1; i <= 10; i++)
		put(0, 1, i, 100 * i);
	/* The batch takes four; the fifth waits, and nothing has been given back. */
	assert_int_equal(run(100, &taken), DRAIN_FULL);
	assert_int_equal(taken, 4);
	assert_ptr_equal(f.d.full, &f.d.outs[1]);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, 0);
	assert_int_equal(run(100, &taken), DRAIN_FULL);
	assert_int_equal(taken, 0);
	flush(1);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, 4 * (sizeof(struct ev_block) + 8));
	assert_int_equal(run(100, &taken), DRAIN_FULL);
	flush(1);
	assert_int_equal(run(1, &taken), DRAIN_MORE);
	assert_int_equal(taken, 1);
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 1);
	flush(1);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, f.fake[0].producer);
	assert_int_equal(read_back(1, ids, 64, spans, &n_blocks), 10);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(ids[i], i + 1);
	/* Spans follow each other without hole. */
	assert_int_equal(n_blocks, 3);
	assert_int_equal(spans[0].p0, 0);
	assert_int_equal(spans[2].p0, spans[0].p1);
	assert_int_equal(spans[4].p0, spans[2].p1);
	assert_int_equal(spans[4].p1, f.fake[0].producer);
	assert_int_equal(f.d.outs[1].books->written[0 * EPOCH_N_PROBES + P], 10);
}

/* A daemon that was killed between writing and publishing: what it read comes again. */
static void test_read_again(void **state)
{
	const uint64_t size = sizeof(struct ev_block) + 8;
	uint64_t taken, ids[64];
	struct iot_span spans[64];
	size_t n_blocks;

	(void)state;
	setup_rings(2, 64);
	begin(1, zero);
	begin(2, zero);
	put(0, 1, 1, 100);
	put(0, 2, 2, 200);
	put(1, 1, 3, 300);
	assert_int_equal(run(100, &taken), 0);
	flush(1);
	/* Killed: epoch 1 has its records, epoch 2 has none, the kernel knows of neither. */
	assert_int_equal(f.fake[0].consumer, 0);
	iot_batch_clear(f.d.outs[0].batch);
	for (uint32_t i = 0; i < 2; i++) {
		f.d.outs[0].first[i] = SEGMENT_OUT_NONE;
		ring_init(&f.d.rings[i], f.fake[i].data, f.fake[i].size, &f.fake[i].consumer,
			  &f.fake[i].producer);
	}
	memset(f.d.outs[0].books->written, 0, N_CPUS * EV_N_BLOCK_PROBES * sizeof(uint64_t));
	put(1, 1, 4, 400);
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 4);
	flush(1);
	flush(2);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, 2 * size);
	assert_int_equal(f.fake[1].consumer, 2 * size);
	assert_int_equal(read_back(1, ids, 64, spans, &n_blocks), 3);
	assert_int_equal(ids[2], 4);
	assert_int_equal(n_blocks, 2);
	assert_int_equal(read_back(2, ids, 64, spans, &n_blocks), 1);
	assert_int_equal(ids[0], 2);
	assert_int_equal(f.d.outs[0].books->written[P], 1);
}

static void test_two_epochs(void **state)
{
	const uint64_t size = sizeof(struct ev_block) + 8;
	uint64_t taken, ids[64];
	struct iot_span spans[64];
	size_t n_blocks;

	(void)state;
	setup_rings(1, 64);
	begin(1, zero);
	put(0, 1, 1, 100);
	put(0, 1, 2, 200);
	assert_int_equal(run(100, &taken), 0);
	flush(1);
	drain_publish(&f.d);
	/* Around a flip the ring holds both, mixed. */
	begin(2, f.d.outs[1].p0);
	put(0, 2, 3, 300);
	put(0, 1, 4, 400);
	put(0, 2, 5, 500);
	put(0, 1, 6, 600);
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 4);
	/* Writing one of them frees nothing behind the other's oldest record. */
	flush(1);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, 2 * size);
	flush(2);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, 6 * size);

	assert_int_equal(read_back(1, ids, 64, spans, &n_blocks), 4);
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[2], 4);
	assert_int_equal(ids[3], 6);
	assert_int_equal(spans[2].p0, 2 * size);
	assert_int_equal(read_back(2, ids, 64, spans, &n_blocks), 2);
	assert_int_equal(ids[0], 3);
	assert_int_equal(ids[1], 5);
	/* The new file's spans begin where the old one's stood: no hole between the two. */
	assert_int_equal(spans[0].p0, 2 * size);
	assert_int_equal(spans[0].p1, 6 * size);
	assert_int_equal(f.d.outs[1].books->written[P], 4);
	assert_int_equal(f.d.outs[0].books->written[P], 2);
}

static void test_merge(void **state)
{
	uint64_t taken, ids[2048], late = 0, newest = 0;
	struct iot_span spans[64];
	size_t n_blocks, n;

	(void)state;
	setup_rings(2, 1024);
	begin(1, zero);
	/* Ids are times; each ring in its order, with different rates and a burst. */
	for (uint64_t t = 1; t <= 300; t++)
		put(0, 1, t * 1000000, t * 1000000);
	for (uint64_t t = 1; t <= 350; t++)
		put(1, 1, t * 700000 + 1, t * 700000 + 1);
	assert_int_equal(run(10000, &taken), 0);
	assert_int_equal(taken, 650);
	flush(1);
	n = read_back(1, ids, 2048, spans, &n_blocks);
	assert_int_equal(n, 650);
	for (size_t i = 0; i < n; i++) {
		if (ids[i] < newest)
			late = IOT_MAX(late, newest - ids[i]);
		newest = IOT_MAX(newest, ids[i]);
	}
	/* Out of order by at most the slack: that bounds the reader's merge. */
	assert_true(late <= DRAIN_SLACK_NS + 1000000);
	assert_int_equal(spans[0].p1, f.fake[0].producer);
	assert_int_equal(spans[1].p1, f.fake[1].producer);
}

static void test_busy_ring_holds_up_only_itself(void **state)
{
	uint64_t taken;
	void *busy;

	(void)state;
	setup_rings(2, 64);
	begin(1, zero);
	busy = fake_ring_reserve(&f.fake[0], sizeof(struct ev_block));
	put(0, 1, 1, 100);
	put(1, 1, 2, 200);
	assert_int_equal(run(100, &taken), DRAIN_BUSY);
	assert_int_equal(taken, 1);
	fake_ring_finish(busy, true);
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 1);
}

/* Not decodable, of no epoch in flight, of no CPU: each is filed or leaves doubt, none vanishes. */
static void test_bad_records(void **state)
{
	struct segment_out *o;
	struct iot_books *books;
	struct ev_cell cells[N_CPUS * EV_N_BLOCK_PROBES] = {};
	struct iot_footer foot = {};
	uint64_t taken;
	struct ev_hdr short_one = {
		.len = sizeof(short_one), .probe = P, .cpu = 1, .epoch = 1, .id = 77};

	(void)state;
	setup_rings(1, 64);
	begin(1, zero);
	o = &f.d.outs[1];
	put(0, 1, 1, 100);
	assert_true(fake_ring_put(&f.fake[0], &short_one, sizeof(short_one)));
	put(0, 1, 2, 200);
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 3);
	assert_int_equal(f.d.decode_failed, 1);
	assert_int_equal(o->books->n_losses, 1);
	assert_int_equal(o->books->losses[0].id, 77);
	assert_int_equal(o->books->losses[0].probe, P);
	assert_int_equal(o->books->losses[0].cause, IOT_LOSS_DECODE_FAILED);
	/* The books balance with it: emitted = written + decode_failed per CPU. */
	cells[0 * EPOCH_N_PROBES + P] = (struct ev_cell){.seen = 2, .emitted = 2};
	cells[1 * EPOCH_N_PROBES + P] = (struct ev_cell){.seen = 1, .emitted = 1};
	assert_int_equal(epoch_books(o->books, cells, NULL, 0, &books, &foot.n_books), 0);
	foot.books = books;
	foot.losses = o->books->losses;
	foot.n_losses = o->books->n_losses;
	assert_int_equal(epoch_unbalanced(&foot, 2), 0);
	free(books);

	put(0, 9, 5, 300); /* of an epoch that nobody knows */
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(f.d.decode_failed, 2);
	assert_int_equal(epoch_books(o->books, cells, NULL, 0, &books, &foot.n_books), 0);
	foot.books = books;
	foot.losses = o->books->losses;
	foot.n_losses = o->books->n_losses;
	assert_true(epoch_unbalanced(&foot, 2) > 0);
	free(books);
	/* They are filed, so their space can be given back once the batch is written. */
	flush(1);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, f.fake[0].producer);
}

/* A disk that takes no more: the batch and what the ring still holds become losses with owners. */
static void test_give_up(void **state)
{
	struct segment_out *o;
	uint64_t taken;

	(void)state;
	setup_rings(1, 4);
	begin(1, zero);
	o = &f.d.outs[1];
	for (uint64_t i = 1; i <= 6; i++)
		put(0, 1, i, 100 * i);
	assert_int_equal(run(100, &taken), DRAIN_FULL);
	assert_int_equal(segment_out_abandon(o), 4);
	f.d.give_up = true;
	assert_int_equal(run(100, &taken), 0);
	assert_int_equal(taken, 2);
	assert_int_equal(o->books->n_losses, 6);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(o->books->losses[i].id, i + 1);
		assert_int_equal(o->books->losses[i].bytes, 512);
		assert_int_equal(o->books->losses[i].cause, IOT_LOSS_OUTPUT_FAILED);
	}
	assert_int_equal(o->books->written[P], 0);
	assert_int_equal(o->books->output_failed[P], 6);
	drain_publish(&f.d);
	assert_int_equal(f.fake[0].consumer, f.fake[0].producer);
}

static void test_broken_ring(void **state)
{
	uint64_t taken;

	(void)state;
	setup_rings(2, 64);
	begin(1, zero);
	put(0, 1, 1, 100);
	put(1, 1, 2, 200);
	put(1, 1, 3, 300);
	*fake_ring_word(&f.fake[0], 0) = 60000;
	assert_int_equal(run(100, &taken), -EBADMSG);
	assert_int_equal(f.d.broken_ring, 0);
	assert_int_equal(taken, 2); /* the other one is read all the same */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_held_until_written, teardown),
		cmocka_unit_test_teardown(test_two_epochs, teardown),
		cmocka_unit_test_teardown(test_read_again, teardown),
		cmocka_unit_test_teardown(test_merge, teardown),
		cmocka_unit_test_teardown(test_busy_ring_holds_up_only_itself, teardown),
		cmocka_unit_test_teardown(test_bad_records, teardown),
		cmocka_unit_test_teardown(test_give_up, teardown),
		cmocka_unit_test_teardown(test_broken_ring, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
