// SPDX-License-Identifier: BSD-2-Clause
/*
 * meta-footer.c - the footer: books, windows, final tables and the index of all blocks.
 *
 * A footer says nothing twice without being checked: the numbers of requests, open requests and
 * losses must be the sums over the index, and the index must be in file order.
 */
#include "format/meta.h"

#include "format/section.h"

#include <endian.h>

#define FOOTER_SECTIONS                                                                     \
	(1U << IOT_SECTION_PROBES | 1U << IOT_SECTION_DEVICES | 1U << IOT_SECTION_CGROUPS | \
	 1U << IOT_SECTION_BOOKS | 1U << IOT_SECTION_WINDOWS | 1U << IOT_SECTION_INDEX |    \
	 1U << IOT_SECTION_NOTE | 1U << IOT_SECTION_SYMBOLS)

void iot_meta_footer_done(struct iot_meta_footer *f)
{
	iot_footer_done(&f->footer);
	free(f->index);
	*f = (struct iot_meta_footer){0};
}

/* ---- rows ---- */

static void books_row(const void *userdata, size_t i, void *ret_row)
{
	const struct iot_books *b = (const struct iot_books *)userdata + i;
	const uint64_t counts[] = {
		b->seen,	   b->not_selected, b->folded,	      b->emitted,
		b->reserve_failed, b->filed,	    b->unattributed,  b->identity_full,
		b->read_failed,	   b->written,	    b->decode_failed, b->output_failed,
		b->missed,	   b->suppressed,
	};
	struct iot_disk_books disk = {
		.probe = htole16(b->probe),
		.cpu = htole32(b->cpu),
	};

	_Static_assert(sizeof(counts) == sizeof(disk.counts), "all counters");
	for (size_t c = 0; c < IOT_ARRAY_SIZE(counts); c++)
		disk.counts[c] = htole64(counts[c]);
	memcpy(ret_row, &disk, sizeof(disk));
}

static int decode_books(const struct iot_sections *s, struct iot_footer *f)
{
	struct iot_table t;
	int r;

	r = iot_section_table(s, IOT_SECTION_BOOKS, IOT_DISK_BOOKS_MIN, &t);
	if (r < 0)
		return r;
	f->books = calloc(IOT_MAX(t.n, (size_t)1), sizeof(*f->books));
	if (!f->books)
		return -ENOMEM;
	for (size_t i = 0; i < t.n; i++) {
		struct iot_books *b = &f->books[i];
		struct iot_disk_books disk;
		uint64_t *const fields[] = {
			&b->seen,	    &b->not_selected, &b->folded,	 &b->emitted,
			&b->reserve_failed, &b->filed,	      &b->unattributed,	 &b->identity_full,
			&b->read_failed,    &b->written,      &b->decode_failed, &b->output_failed,
			&b->missed,	    &b->suppressed,
		};

		memset(&disk, 0xff, sizeof(disk)); /* what is not there is not known */
		memcpy(&disk, t.rows + i * t.row_size, IOT_MIN(t.row_size, sizeof(disk)));
		if (disk.reserved)
			return -EBADMSG;
		b->probe = le16toh(disk.probe);
		b->cpu = le32toh(disk.cpu);
		for (size_t c = 0; c < IOT_ARRAY_SIZE(fields); c++)
			*fields[c] = le64toh(disk.counts[c]);
	}
	f->n_books = t.n;
	return 0;
}

static void window_row(const void *userdata, size_t i, void *ret_row)
{
	const struct iot_window *w = (const struct iot_window *)userdata + i;
	struct iot_disk_window disk = {
		.t0_ns = htole64(w->t0_ns),
		.t1_ns = htole64(w->t1_ns),
		.n = htole64(w->n),
		.cpu = htole32(w->cpu),
		.probe = htole16(w->probe),
		.kind = htole16(w->kind),
	};

	memcpy(ret_row, &disk, sizeof(disk));
}

static int decode_windows(const struct iot_sections *s, struct iot_footer *f)
{
	struct iot_table t;
	int r;

	r = iot_section_table(s, IOT_SECTION_WINDOWS, sizeof(struct iot_disk_window), &t);
	if (r < 0)
		return r;
	f->windows = calloc(IOT_MAX(t.n, (size_t)1), sizeof(*f->windows));
	if (!f->windows)
		return -ENOMEM;
	for (size_t i = 0; i < t.n; i++) {
		struct iot_disk_window disk;

		memcpy(&disk, t.rows + i * t.row_size, sizeof(disk));
		f->windows[i] = (struct iot_window){
			.t0_ns = le64toh(disk.t0_ns),
			.t1_ns = le64toh(disk.t1_ns),
			.n = le64toh(disk.n),
			.cpu = le32toh(disk.cpu),
			.probe = le16toh(disk.probe),
			.kind = le16toh(disk.kind),
		};
	}
	f->n_windows = t.n;
	return 0;
}

static void index_row(const void *userdata, size_t i, void *ret_row)
{
	const struct iot_index_entry *e = (const struct iot_index_entry *)userdata + i;
	struct iot_disk_index disk = {
		.offset = htole64(e->offset),
		.header_hash = htole64(e->header_hash),
		.first_ns = htole64(e->first_ns),
		.last_ns = htole64(e->last_ns),
		.size = htole32(e->size),
		.count = htole32(e->count),
		.kind = htole32(e->kind),
	};

	memcpy(ret_row, &disk, sizeof(disk));
}

static int decode_index(const struct iot_sections *s, uint64_t n_blocks, struct iot_meta_footer *f)
{
	uint64_t end = 0;
	struct iot_table t;
	int r;

	r = iot_section_table(s, IOT_SECTION_INDEX, sizeof(struct iot_disk_index), &t);
	if (r < 0)
		return r;
	if (t.n != n_blocks)
		return -EBADMSG;
	f->index = calloc(IOT_MAX(t.n, (size_t)1), sizeof(*f->index));
	if (!f->index)
		return -ENOMEM;
	for (size_t i = 0; i < t.n; i++) {
		struct iot_index_entry *e = &f->index[i];
		struct iot_disk_index disk;

		memcpy(&disk, t.rows + i * t.row_size, sizeof(disk));
		e->offset = le64toh(disk.offset);
		e->header_hash = le64toh(disk.header_hash);
		e->first_ns = le64toh(disk.first_ns);
		e->last_ns = le64toh(disk.last_ns);
		e->size = le32toh(disk.size);
		e->count = le32toh(disk.count);
		e->kind = (uint8_t)le32toh(disk.kind);
		if (disk.reserved || le32toh(disk.kind) < IOT_BLOCK_REQUESTS ||
		    le32toh(disk.kind) >= IOT_N_BLOCK_KINDS || e->count < 1 ||
		    e->count > IOT_BLOCK_RECORDS_MAX || e->offset < end ||
		    e->offset > UINT64_MAX - e->size)
			return -EBADMSG;
		end = e->offset + e->size;
	}
	f->n_index = t.n;
	return 0;
}

/* ---- footer ---- */

static int footer_sections(const struct iot_meta_footer *f, struct iot_buf *buf)
{
	const struct iot_footer *in = &f->footer;
	int r;

	r = iot_section_add_table(buf, IOT_SECTION_BOOKS, in->n_books,
				  sizeof(struct iot_disk_books), books_row, in->books);
	if (r < 0)
		return r;
	r = iot_section_add_table(buf, IOT_SECTION_WINDOWS, in->n_windows,
				  sizeof(struct iot_disk_window), window_row, in->windows);
	if (r < 0)
		return r;
	r = iot_section_add_probes(buf, in->probes, in->n_probes);
	if (r < 0)
		return r;
	r = iot_section_add_names(buf, IOT_SECTION_DEVICES, &in->devices);
	if (r < 0)
		return r;
	r = iot_section_add_names(buf, IOT_SECTION_CGROUPS, &in->cgroups);
	if (r < 0)
		return r;
	if (in->symbols.n > 0) {
		r = iot_section_add_names(buf, IOT_SECTION_SYMBOLS, &in->symbols);
		if (r < 0)
			return r;
	}
	r = iot_section_add_text(buf, IOT_SECTION_NOTE, in->note, sizeof(in->note));
	if (r < 0)
		return r;
	return iot_section_add_table(buf, IOT_SECTION_INDEX, f->n_index,
				     sizeof(struct iot_disk_index), index_row, f->index);
}

int iot_meta_footer_encode(const struct iot_meta_footer *f, struct iot_buf *buf, uint64_t *ret_hash)
{
	const struct iot_footer *in = &f->footer;
	struct iot_disk_footer disk = {
		.frame.magic = htole32(IOT_MAGIC_FOOTER),
		.fixed_size = htole32(sizeof(disk)),
		.reason = in->reason,
		.header_hash = htole64(f->header_hash),
		.prev_footer_hash = htole64(in->prev_footer_hash),
		.clocks.monotonic_ns = htole64(in->clocks.monotonic_ns),
		.clocks.boottime_ns = htole64(in->clocks.boottime_ns),
		.clocks.realtime_ns = htole64(in->clocks.realtime_ns),
		.epoch_first_ns = htole64(in->epoch_first_ns),
		.epoch_last_ns = htole64(in->epoch_last_ns),
		.n_blocks = htole64(f->n_index),
		.n_requests = htole64(f->n_requests),
		.n_open = htole64(f->n_open),
		.n_losses = htole64(f->n_losses),
		.ledger_hash = htole64(f->ledger_hash),
	};
	size_t start = buf->size;
	int r;

	if (in->reason == IOT_SEAL_NONE)
		return -EINVAL;
	memcpy(disk.tag, IOT_TAG_FOOTER, sizeof(disk.tag));
	r = iot_buf_append(buf, &disk, sizeof(disk));
	if (r < 0)
		return r;
	r = footer_sections(f, buf);
	if (r < 0)
		return r;
	return iot_frame_close(buf, start, IOT_LIMIT_FOOTER_BYTES, ret_hash);
}

static int decode_sections(const struct iot_sections *s, uint64_t n_blocks,
			   struct iot_meta_footer *f)
{
	int r;

	r = decode_index(s, n_blocks, f);
	if (r < 0)
		return r;
	r = decode_books(s, &f->footer);
	if (r < 0)
		return r;
	r = decode_windows(s, &f->footer);
	if (r < 0)
		return r;
	r = iot_section_probes(s, &f->footer.probes, &f->footer.n_probes);
	if (r < 0)
		return r;
	r = iot_section_names(s, IOT_SECTION_DEVICES, &f->footer.devices);
	if (r < 0)
		return r;
	r = iot_section_names(s, IOT_SECTION_CGROUPS, &f->footer.cgroups);
	if (r < 0)
		return r;
	r = iot_section_names(s, IOT_SECTION_SYMBOLS, &f->footer.symbols);
	if (r < 0)
		return r;
	return iot_section_text(s, IOT_SECTION_NOTE, f->footer.note, sizeof(f->footer.note));
}

/* Each number of the footer is the sum over its kind of blocks: counts fit 64 bits by their limits. */
static bool sums_agree(const struct iot_meta_footer *f)
{
	uint64_t sums[IOT_N_BLOCK_KINDS] = {0};

	for (size_t i = 0; i < f->n_index; i++)
		sums[f->index[i].kind] += f->index[i].count;
	/* A file has one stream's records only, which the reader checks. */
	return sums[IOT_BLOCK_REQUESTS] + sums[IOT_BLOCK_PACKETS] == f->n_requests &&
	       sums[IOT_BLOCK_OPEN] == f->n_open && sums[IOT_BLOCK_LEDGER] == f->n_losses;
}

int iot_meta_footer_decode(const void *data, size_t size, struct iot_meta_footer *ret,
			   uint64_t *ret_hash, struct iot_error *err)
{
	_cleanup_(iot_meta_footer_done) struct iot_meta_footer f = {0};
	struct iot_disk_footer disk;
	struct iot_sections sections;
	uint64_t hash;
	int r;

	(void)err; /* its version is the header's: every error here is damage */
	r = iot_frame_open(data, size, IOT_MAGIC_FOOTER, IOT_LIMIT_FOOTER_BYTES, IOT_TAG_FOOTER,
			   &hash);
	if (r < 0)
		return r;
	if (size < sizeof(disk) + sizeof(hash))
		return -EBADMSG;
	memcpy(&disk, data, sizeof(disk));
	if (disk.reserved0[0] | disk.reserved0[1] | disk.reserved0[2] ||
	    disk.reason == IOT_SEAL_NONE || le32toh(disk.fixed_size) < sizeof(disk))
		return -EBADMSG;
	f.header_hash = le64toh(disk.header_hash);
	f.n_requests = le64toh(disk.n_requests);
	f.n_open = le64toh(disk.n_open);
	f.n_losses = le64toh(disk.n_losses);
	f.ledger_hash = le64toh(disk.ledger_hash);
	f.footer.reason = disk.reason;
	f.footer.prev_footer_hash = le64toh(disk.prev_footer_hash);
	f.footer.clocks.monotonic_ns = le64toh(disk.clocks.monotonic_ns);
	f.footer.clocks.boottime_ns = le64toh(disk.clocks.boottime_ns);
	f.footer.clocks.realtime_ns = le64toh(disk.clocks.realtime_ns);
	f.footer.epoch_first_ns = le64toh(disk.epoch_first_ns);
	f.footer.epoch_last_ns = le64toh(disk.epoch_last_ns);
	r = iot_sections_parse(data, size, le32toh(disk.fixed_size), FOOTER_SECTIONS, &sections);
	if (r < 0)
		return r;
	r = decode_sections(&sections, le64toh(disk.n_blocks), &f);
	if (r < 0)
		return r;
	if (!sums_agree(&f))
		return -EBADMSG;
	*ret = f;
	f = (struct iot_meta_footer){0};
	if (ret_hash)
		*ret_hash = hash;
	return 0;
}
