// SPDX-License-Identifier: BSD-2-Clause
/* Header, footer and trailer: round trip, and every rule of their frames broken alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/meta.h"

#include <endian.h>
#include <xxhash.h>

static void fill_probes(struct iot_probe probes[2])
{
	probes[0] = (struct iot_probe){.id = 1,
				       .state = IOT_ATTACH_ATTACHED,
				       .miss = IOT_MISS_COUNTED,
				       .from_ns = 10,
				       .name = "block_io_start",
				       .hook = "tp_btf"};
	probes[1] = (struct iot_probe){.id = 2,
				       .state = IOT_ATTACH_REFUSED,
				       .miss = IOT_MISS_NOT_MEASURABLE,
				       .error = -EPERM,
				       .name = "block_getrq",
				       .hook = "raw_tp",
				       .detail = "no"};
	/* The longest name the struct holds. */
	memset(probes[1].name, 'n', sizeof(probes[1].name) - 1);
}

static struct iot_segment_info some_info(struct iot_probe *probes)
{
	struct iot_segment_info info = {
		.host = "host.example",
		.kernel = "6.1.0-42-amd64",
		.selection = "all",
		.source = "blktrace: 3 files" IOT_SOURCE_UNDATED,
		.stream = IOT_STREAM_BLOCK,
		.swap_out = IOT_ABILITY_EXACT,
		.swap_in = IOT_ABILITY_PAGE,
		.n_rings = 3,
		.n_cpus = 12,
		.epoch = 77,
		.seq = 5,
		.prev_footer_hash = 0x1122334455667788,
		.attach_ns = 999,
		.clocks = {11, 22, 33},
		.probes = probes,
		.n_probes = 2,
	};

	fill_probes(probes);
	for (uint8_t i = 0; i < 16; i++) {
		info.machine_id[i] = i;
		info.boot_id[i] = (uint8_t)(i * 3);
		info.capture_id[i] = (uint8_t)(i * 7);
	}
	assert_int_equal(iot_names_add(&info.devices, IOT_DEV(259, 1), "nvme0n1p1"), 0);
	assert_int_equal(iot_names_add(&info.devices, IOT_DEV(7, 0), "loop0"), 0);
	assert_int_equal(iot_names_add(&info.devices, IOT_DEV(259, 0), ""), 0);
	return info;
}

static void check_probes(const struct iot_probe *a, const struct iot_probe *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(a[i].id, b[i].id);
		assert_int_equal(a[i].state, b[i].state);
		assert_int_equal(a[i].miss, b[i].miss);
		assert_int_equal(a[i].error, b[i].error);
		assert_int_equal(a[i].from_ns, b[i].from_ns);
		assert_int_equal(a[i].to_ns, b[i].to_ns);
		assert_string_equal(a[i].name, b[i].name);
		assert_string_equal(a[i].hook, b[i].hook);
		assert_string_equal(a[i].detail, b[i].detail);
	}
}

static void check_names(const struct iot_names *a, const struct iot_names *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->items[i].key, b->items[i].key);
		assert_string_equal(a->items[i].name, b->items[i].name);
	}
}

static void test_header(void **state)
{
	struct iot_probe probes[2];
	struct iot_segment_info in = some_info(probes), out;
	struct iot_buf buf = {0};
	uint64_t hash, hash_read;

	(void)state;
	assert_int_equal(iot_meta_header_encode(&in, &buf, &hash), 0);
	assert_int_equal(iot_meta_header_decode(buf.data, buf.size, &out, &hash_read, NULL), 0);
	assert_true(hash == hash_read && hash != 0);
	assert_memory_equal(in.machine_id, out.machine_id, 16);
	assert_memory_equal(in.boot_id, out.boot_id, 16);
	assert_memory_equal(in.capture_id, out.capture_id, 16);
	assert_string_equal(in.host, out.host);
	assert_string_equal(in.kernel, out.kernel);
	assert_string_equal(in.selection, out.selection);
	assert_string_equal(in.source, out.source);
	assert_true(iot_segment_imported(&out) && iot_segment_undated(&out));
	assert_int_equal(in.stream, out.stream);
	assert_int_equal(in.swap_out, out.swap_out);
	assert_int_equal(in.swap_in, out.swap_in);
	assert_int_equal(in.n_rings, out.n_rings);
	assert_int_equal(in.n_cpus, out.n_cpus);
	assert_int_equal(in.epoch, out.epoch);
	assert_int_equal(in.seq, out.seq);
	assert_int_equal(in.prev_footer_hash, out.prev_footer_hash);
	assert_int_equal(in.attach_ns, out.attach_ns);
	assert_memory_equal(&in.clocks, &out.clocks, sizeof(in.clocks));
	assert_int_equal(out.n_probes, 2);
	check_probes(in.probes, out.probes, 2);
	check_names(&in.devices, &out.devices);
	iot_names_done(&in.devices);
	iot_segment_info_done(&out);
	iot_buf_done(&buf);
}

static struct iot_meta_footer some_footer(struct iot_probe *probes, struct iot_books *books,
					  struct iot_window *windows, struct iot_index_entry *index)
{
	struct iot_meta_footer f = {
		.footer = {.reason = IOT_SEAL_LEDGER,
			   .prev_footer_hash = 42,
			   .clocks = {4, 5, 6},
			   .epoch_first_ns = 100,
			   .epoch_last_ns = 200,
			   .books = books,
			   .n_books = 2,
			   .windows = windows,
			   .n_windows = 2,
			   .probes = probes,
			   .n_probes = 2,
			   .note = "a note"},
		.header_hash = 0xabcdef,
		.n_requests = 8200,
		.n_open = 3,
		.n_losses = 11,
		.ledger_hash = 0x5555,
		.index = index,
		.n_index = 4,
	};

	fill_probes(probes);
	books[0] = (struct iot_books){.probe = 8,
				      .cpu = 1,
				      .seen = 1,
				      .not_selected = 2,
				      .folded = 3,
				      .emitted = 4,
				      .reserve_failed = 5,
				      .filed = 6,
				      .unattributed = 7,
				      .identity_full = 8,
				      .read_failed = 9,
				      .written = 10,
				      .decode_failed = 11,
				      .output_failed = 12,
				      .missed = 13,
				      .suppressed = 14};
	books[1] = (struct iot_books){.probe = 8, .cpu = UINT32_MAX, .missed = IOT_COUNT_UNKNOWN};
	windows[0] = (struct iot_window){
		.t0_ns = 1, .t1_ns = 2, .n = 3, .cpu = 4, .probe = 5, .kind = IOT_WINDOW_MISSED};
	windows[1] =
		(struct iot_window){.n = UINT64_MAX, .cpu = UINT32_MAX, .kind = IOT_WINDOW_TORN};
	for (unsigned int i = 0; i < 4; i++)
		index[i] = (struct iot_index_entry){.offset = 500 + i * 1000ULL,
						    .header_hash = ~(uint64_t)i,
						    .first_ns = i,
						    .last_ns = i + 9,
						    .size = 1000,
						    .count = 8192,
						    .kind = IOT_BLOCK_REQUESTS};
	index[1].count = 8;
	index[2].count = 3;
	index[2].kind = IOT_BLOCK_OPEN;
	index[3].count = 11;
	index[3].kind = IOT_BLOCK_LEDGER;
	assert_int_equal(iot_names_add(&f.footer.devices, IOT_DEV(8, 0), "sda"), 0);
	assert_int_equal(iot_names_add(&f.footer.cgroups, 1, "/"), 0);
	assert_int_equal(iot_names_add(&f.footer.cgroups, 4711, "/system.slice/a.service"), 0);
	return f;
}

static void test_footer(void **state)
{
	struct iot_probe probes[2];
	struct iot_books books[2];
	struct iot_window windows[2];
	struct iot_index_entry index[4];
	struct iot_meta_footer in = some_footer(probes, books, windows, index), out;
	struct iot_buf buf = {0};
	uint64_t hash, hash_read;

	(void)state;
	assert_int_equal(iot_meta_footer_encode(&in, &buf, &hash), 0);
	assert_int_equal(iot_meta_footer_decode(buf.data, buf.size, &out, &hash_read, NULL), 0);
	assert_true(hash == hash_read);
	assert_int_equal(out.footer.reason, IOT_SEAL_LEDGER);
	assert_int_equal(out.footer.prev_footer_hash, 42);
	assert_memory_equal(&in.footer.clocks, &out.footer.clocks, sizeof(struct iot_clocks));
	assert_int_equal(out.footer.epoch_first_ns, 100);
	assert_int_equal(out.footer.epoch_last_ns, 200);
	assert_string_equal(out.footer.note, "a note");
	assert_int_equal(out.footer.n_books, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(books[i].probe, out.footer.books[i].probe);
		assert_int_equal(books[i].cpu, out.footer.books[i].cpu);
		assert_memory_equal(&books[i].seen, &out.footer.books[i].seen,
				    sizeof(struct iot_books) - offsetof(struct iot_books, seen));
	}
	assert_int_equal(out.footer.n_windows, 2);
	assert_memory_equal(windows, out.footer.windows, sizeof(windows));
	assert_int_equal(out.footer.n_probes, 2);
	check_probes(probes, out.footer.probes, 2);
	check_names(&in.footer.devices, &out.footer.devices);
	check_names(&in.footer.cgroups, &out.footer.cgroups);
	assert_int_equal(out.header_hash, 0xabcdef);
	assert_int_equal(out.n_requests, 8200);
	assert_int_equal(out.n_open, 3);
	assert_int_equal(out.n_losses, 11);
	assert_int_equal(out.ledger_hash, 0x5555);
	assert_int_equal(out.n_index, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(index[i].offset, out.index[i].offset);
		assert_int_equal(index[i].header_hash, out.index[i].header_hash);
		assert_int_equal(index[i].first_ns, out.index[i].first_ns);
		assert_int_equal(index[i].last_ns, out.index[i].last_ns);
		assert_int_equal(index[i].size, out.index[i].size);
		assert_int_equal(index[i].count, out.index[i].count);
		assert_int_equal(index[i].kind, out.index[i].kind);
	}
	iot_names_done(&in.footer.devices);
	iot_names_done(&in.footer.cgroups);
	iot_meta_footer_done(&out);
	iot_buf_done(&buf);
}

/* Makes size and hash of a changed frame right again: what remains wrong is the change. */
static void repair(struct iot_buf *buf)
{
	uint32_t size = htole32((uint32_t)(buf->size - 8));
	uint64_t hash;

	memcpy(buf->data + 4, &size, sizeof(size));
	hash = htole64(XXH64(buf->data, buf->size - 8, 0));
	memcpy(buf->data + buf->size - 8, &hash, sizeof(hash));
}

static int decode_header(const struct iot_buf *buf, char *ret_text)
{
	struct iot_segment_info info;
	struct iot_error err = {0};
	uint8_t *copy = malloc(buf->size);
	int r;

	assert_non_null(copy);
	memcpy(copy, buf->data, buf->size);
	r = iot_meta_header_decode(copy, buf->size, &info, NULL, &err);
	if (r == 0)
		iot_segment_info_done(&info);
	if (ret_text)
		strcpy(ret_text, err.text);
	free(copy);
	return r;
}

static int decode_footer(const struct iot_buf *buf)
{
	struct iot_meta_footer f;
	uint8_t *copy = malloc(buf->size);
	int r;

	assert_non_null(copy);
	memcpy(copy, buf->data, buf->size);
	r = iot_meta_footer_decode(copy, buf->size, &f, NULL, NULL);
	if (r == 0)
		iot_meta_footer_done(&f);
	free(copy);
	return r;
}

static struct iot_buf header_frame(void)
{
	struct iot_probe probes[2];
	struct iot_segment_info in = some_info(probes);
	struct iot_buf buf = {0};

	assert_int_equal(iot_meta_header_encode(&in, &buf, NULL), 0);
	iot_names_done(&in.devices);
	return buf;
}

static struct iot_buf footer_frame(void)
{
	struct iot_probe probes[2];
	struct iot_books books[2];
	struct iot_window windows[2];
	struct iot_index_entry index[4];
	struct iot_meta_footer in = some_footer(probes, books, windows, index);
	struct iot_buf buf = {0};

	assert_int_equal(iot_meta_footer_encode(&in, &buf, NULL), 0);
	iot_names_done(&in.footer.devices);
	iot_names_done(&in.footer.cgroups);
	return buf;
}

static void test_flips_and_cuts(void **state)
{
	struct iot_buf frames[2] = {header_frame(), footer_frame()};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct iot_buf *buf = &frames[k];

		for (size_t bit = 0; bit < buf->size * 8; bit++) {
			buf->data[bit / 8] ^= (uint8_t)(1U << bit % 8);
			assert_int_equal(k ? decode_footer(buf) : decode_header(buf, NULL),
					 -EBADMSG);
			buf->data[bit / 8] ^= (uint8_t)(1U << bit % 8);
		}
		for (size_t size = 1; size < buf->size; size++) {
			struct iot_buf cut = {.data = buf->data, .size = size};

			assert_int_equal(k ? decode_footer(&cut) : decode_header(&cut, NULL),
					 -EBADMSG);
		}
		assert_int_equal(k ? decode_footer(buf) : decode_header(buf, NULL), 0);
		iot_buf_done(buf);
	}
}

/* Every byte set to a few values, hash repaired: whatever comes out, nothing breaks (ASan). */
static void test_repaired_mutations(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct iot_buf frames[2] = {header_frame(), footer_frame()};
	unsigned int taken = 0, refused = 0;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct iot_buf *buf = &frames[k];

		for (size_t at = 8; at < buf->size - 8; at++) {
			uint8_t old = buf->data[at];

			for (size_t v = 0; v < IOT_ARRAY_SIZE(values); v++) {
				buf->data[at] = values[v];
				repair(buf);
				if ((k ? decode_footer(buf) : decode_header(buf, NULL)) == 0)
					taken++;
				else
					refused++;
			}
			buf->data[at] = old;
		}
		iot_buf_done(buf);
	}
	assert_true(taken > 500 && refused > 500);
}

static void test_versions_and_features(void **state)
{
	struct iot_buf buf = header_frame();
	char text[512];
	struct iot_disk_header *h = (struct iot_disk_header *)buf.data;

	(void)state;
	h->compat = htole64(1ULL << 40);
	repair(&buf);
	assert_int_equal(decode_header(&buf, NULL), 0);
	h->incompat = htole64(1ULL << 9);
	repair(&buf);
	assert_int_equal(decode_header(&buf, text), -EPROTONOSUPPORT);
	assert_non_null(strstr(text, "feature 9"));
	h->incompat = 0;
	h->version = htole16(2);
	repair(&buf);
	assert_int_equal(decode_header(&buf, text), -EPROTONOSUPPORT);
	assert_non_null(strstr(text, "version 2"));
	h->version = htole16(1);
	h->reserved2 = htole32(1);
	repair(&buf);
	assert_int_equal(decode_header(&buf, NULL), -EBADMSG);
	h->reserved2 = 0;
	h->n_rings = htole32(65);
	repair(&buf);
	assert_int_equal(decode_header(&buf, NULL), -EBADMSG);
	h->n_rings = 0;
	repair(&buf);
	assert_int_equal(decode_header(&buf, NULL), -EBADMSG);
	iot_buf_done(&buf);
}

/* Puts bytes in front of the hash: a section more. */
static void append(struct iot_buf *buf, const void *data, size_t size)
{
	uint8_t *p = realloc(buf->data, buf->size + size);

	assert_non_null(p);
	buf->data = p;
	memcpy(p + buf->size - 8, data, size);
	buf->size += size;
	repair(buf);
}

static void test_sections(void **state)
{
	const struct {
		uint16_t type, reserved;
		uint32_t length;
		char bytes[8];
	} unknown = {999, 0, 5, "later"}, known = {IOT_SECTION_HOST, 0, 5, "twice"},
	  reserved = {999, 1, 5, "later"}, long_one = {999, 0, 9, "later"},
	  padded = {999, 0, 5, "later!"}, zero = {0, 0, 5, "later"};
	struct iot_buf buf;

	(void)state;
	buf = header_frame();
	append(&buf, &unknown, sizeof(unknown));
	assert_int_equal(decode_header(&buf, NULL), 0);
	iot_buf_done(&buf);
#define REFUSED(section)                                               \
	do {                                                           \
		buf = header_frame();                                  \
		append(&buf, &(section), sizeof(section));             \
		assert_int_equal(decode_header(&buf, NULL), -EBADMSG); \
		iot_buf_done(&buf);                                    \
	} while (0)
	REFUSED(known);
	REFUSED(reserved);
	REFUSED(long_one);
	REFUSED(padded);
	REFUSED(zero);
#undef REFUSED
}

static void test_footer_sums(void **state)
{
	struct iot_buf buf = footer_frame();
	struct iot_disk_footer *f = (struct iot_disk_footer *)buf.data;

	(void)state;
#define WRONG(field)                                             \
	do {                                                     \
		(field)++;                                       \
		repair(&buf);                                    \
		assert_int_equal(decode_footer(&buf), -EBADMSG); \
		(field)--;                                       \
		repair(&buf);                                    \
		assert_int_equal(decode_footer(&buf), 0);        \
	} while (0)
	WRONG(f->n_blocks);
	WRONG(f->n_requests);
	WRONG(f->n_open);
	WRONG(f->n_losses);
	WRONG(f->reserved0[2]);
#undef WRONG
	f->reason = IOT_SEAL_NONE;
	repair(&buf);
	assert_int_equal(decode_footer(&buf), -EBADMSG);
	iot_buf_done(&buf);
}

static void test_encode_refuses(void **state)
{
	struct iot_name unsorted[2] = {{2, (char *)"b"}, {1, (char *)"a"}};
	struct iot_segment_info info = {.n_rings = 1, .devices = {unsorted, 2}};
	struct iot_meta_footer footer = {0};
	struct iot_buf buf = {0};

	(void)state;
	assert_int_equal(iot_meta_header_encode(&info, &buf, NULL), -EINVAL);
	info.devices.n = 0;
	info.n_rings = 0;
	assert_int_equal(iot_meta_header_encode(&info, &buf, NULL), -EINVAL);
	assert_int_equal(iot_meta_footer_encode(&footer, &buf, NULL), -EINVAL);
	iot_buf_done(&buf);
}

static void test_long_name(void **state)
{
	struct iot_segment_info info = {.n_rings = 1}, out;
	char name[IOT_LIMIT_NAME_BYTES + 100];
	struct iot_buf buf = {0};

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(iot_names_add(&info.devices, 1, name), 0);
	assert_int_equal(iot_meta_header_encode(&info, &buf, NULL), 0);
	assert_int_equal(iot_meta_header_decode(buf.data, buf.size, &out, NULL, NULL), 0);
	assert_int_equal(strlen(iot_names_find(&out.devices, 1)), IOT_LIMIT_NAME_BYTES);
	iot_segment_info_done(&out);
	iot_names_done(&info.devices);
	iot_buf_done(&buf);
}

static void test_trailer(void **state)
{
	uint8_t t[IOT_TRAILER_BYTES];
	uint64_t offset;
	uint32_t size;

	(void)state;
	iot_meta_trailer_encode(5000, 300, t);
	assert_int_equal(iot_meta_trailer_decode(t, 5000 + 300 + 32, &offset, &size), 0);
	assert_int_equal(offset, 5000);
	assert_int_equal(size, 300);
	assert_int_equal(iot_meta_trailer_decode(t, 5000 + 300 + 33, &offset, &size), -EBADMSG);
	assert_int_equal(iot_meta_trailer_decode(t, 31, &offset, &size), -EBADMSG);
	for (size_t bit = 0; bit < sizeof(t) * 8; bit++) {
		t[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_int_equal(iot_meta_trailer_decode(t, 5332, &offset, &size), -EBADMSG);
		t[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
}

static void test_names(void **state)
{
	struct iot_names names = {0};

	(void)state;
	assert_null(iot_names_find(&names, 1));
	for (uint64_t k = 0; k < 100; k++) {
		char name[32];

		snprintf(name, sizeof(name), "n%u", (unsigned int)(k * 37 % 100));
		assert_int_equal(iot_names_add(&names, k * 37 % 100, name), 0);
	}
	assert_int_equal(names.n, 100);
	assert_int_equal(iot_names_add(&names, 50, "again"), 0);
	assert_int_equal(names.n, 100);
	assert_string_equal(iot_names_find(&names, 50), "again");
	assert_string_equal(iot_names_find(&names, 99), "n99");
	assert_null(iot_names_find(&names, 100));
	iot_names_done(&names);
	assert_int_equal(names.n, 0);
}

static void test_enum_names(void **state)
{
	(void)state;
	for (int op = 0; op < IOT_N_OPS; op++)
		assert_int_equal(iot_op_from_name(iot_op_name((unsigned int)op)), op);
	assert_int_equal(iot_op_from_name("reed"), -EINVAL);
	assert_string_equal(iot_op_name(200), "unknown");
	assert_string_equal(iot_flag_name(12), "swap");
	assert_null(iot_flag_name(20));
	assert_null(iot_flag_name(64));
	assert_string_equal(iot_seal_reason_name(IOT_SEAL_RECOVERED), "recovered");
	assert_string_equal(iot_window_kind_name(99), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_footer),
		cmocka_unit_test(test_flips_and_cuts),
		cmocka_unit_test(test_repaired_mutations),
		cmocka_unit_test(test_versions_and_features),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_footer_sums),
		cmocka_unit_test(test_encode_refuses),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_trailer),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_enum_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
