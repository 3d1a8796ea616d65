// SPDX-License-Identifier: BSD-2-Clause
/*
 * report-cache.c - see report-cache.h; the curves are mrc.c's.
 *
 * Requests are cut into blocks of 4 KiB, in the order in which they were asked for. Reads and writes share a
 * cache and leave their block in it. Discards and flushes change nothing. Swap passes by in the second
 * curve, as it would pass by a cache of files.
 *
 * JSON, the member "cacheability" (fields only grow): block_bytes, requests, left_out; all and without_swap, each
 * with exact, rate, error, blocks, reads, writes (of blocks), curve[]: cache_bytes, read_misses, write_misses,
 * read_miss_ratio, write_miss_ratio; working_set: slice_ns, rows[]: from_ns, bytes, without_swap_bytes.
 */
#include "daemon/ctl/report-cache.h"

#include "daemon/ctl/asked.h"
#include "daemon/ctl/json.h"

/* 4 GiB of different blocks are exact; the memory this takes is about 70 MB for each of two curves. */
#define MAX_BLOCKS (1U << 20)
#define MAX_ROWS 16U
#define STEPS_PER_OCTAVE 8U

void report_cache_done(struct report_cache *c)
{
	for (unsigned int of = 0; of < CACHE_N; of++)
		c->curves[of] = mrc_free(c->curves[of]);
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int add_request(struct report_cache *c, const struct ctl_asked *a)
{
	enum mrc_kind kind = a->op == IOT_OP_READ ? MRC_READ : MRC_WRITE;
	uint32_t slice = (uint32_t)((a->time_ns - c->first_ns) / c->slice_ns);
	uint64_t block, last;
	int r = 0;

	ctl_asked_blocks(a, &block, &last);
	c->swap |= a->swap != IOT_SWAP_NONE;
	for (; block <= last && r == 0; block++) {
		r = mrc_access(c->curves[CACHE_ALL], a->device, block, kind, slice);
		if (r == 0 && a->swap == IOT_SWAP_NONE)
			r = mrc_access(c->curves[CACHE_WITHOUT_SWAP], a->device, block, kind,
				       slice);
	}
	return r;
}

int report_cache_read(struct report_cache *c, struct iot_scan *scan, struct iot_error *err)
{
	_cleanup_(ctl_asked_freep) struct ctl_asked_list *list = NULL;
	struct ctl_asked_stats stats;
	struct ctl_asked a;
	int r;

	for (unsigned int of = 0; of < CACHE_N; of++) {
		r = mrc_new(MAX_BLOCKS, &c->curves[of]);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	}
	r = ctl_asked_read(scan, ctl_asked_has_blocks, &list, &stats, err);
	if (r < 0)
		return r;
	c->requests = stats.requests;
	c->left_out = stats.left_out;
	if (!stats.requests)
		return 0;
	c->first_ns = stats.first_ns;
	c->slice_ns = (stats.last_ns - stats.first_ns) / CACHE_SLICES + 1;
	while ((r = ctl_asked_next(list, &a, err)) == 0) {
		r = add_request(c, &a);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	}
	return r < 0 ? r : 0;
}

double report_cache_miss_ratio(const struct report_cache *c, enum cache_of of, enum mrc_kind kind,
			       uint64_t blocks)
{
	uint64_t n = mrc_accesses(c->curves[of], kind);

	return n ? mrc_misses(c->curves[of], kind, blocks) / (double)n : 0;
}

/* ---- text -------------------------------------------------------------------------------------- */

static void ratio_cell(struct ctl_table *t, const struct report_cache *c, enum cache_of of,
		       enum mrc_kind kind, uint64_t blocks)
{
	if (mrc_accesses(c->curves[of], kind))
		ctl_table_cell(t, "%.1f%%", 100 * report_cache_miss_ratio(c, of, kind, blocks));
	else
		ctl_table_cell(t, "-");
}

/* Powers of two up to the one that holds everything. */
static int print_curves(const struct report_cache *c, FILE *f, bool color)
{
	static const char *const both[] = {">CACHE",	     ">READ MISSES",	">WRITE MISSES",
					   ">READ W/O SWAP", ">WRITE W/O SWAP", NULL};
	static const char *const all[] = {">CACHE", ">READ MISSES", ">WRITE MISSES", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(c->swap ? both : all);
	unsigned int top = 0;
	char buf[CTL_HUMAN_MAX];

	if (!t)
		return -ENOMEM;
	while (top < 62 && (double)(1ULL << top) < mrc_blocks(c->curves[CACHE_ALL]))
		top++;
	for (unsigned int bit = top < MAX_ROWS ? 0 : top - MAX_ROWS + 1; bit <= top; bit++) {
		uint64_t blocks = 1ULL << bit;

		ctl_table_cell(t, "%s", ctl_human_size(blocks * CTL_BLOCK_BYTES, buf));
		for (unsigned int of = 0; of < (c->swap ? CACHE_N : 1U); of++)
			for (unsigned int k = 0; k < MRC_N_KINDS; k++)
				ratio_cell(t, c, of, k, blocks);
	}
	fprintf(f,
		"\n%sMisses of a cache of 4KiB blocks (LRU), reads and writes together in it%s\n",
		ctl_style_on(color, CTL_STYLE_BOLD), ctl_style_off(color));
	return ctl_table_print(t, f, color);
}

static uint64_t in_bytes(double blocks)
{
	return (uint64_t)(blocks + 0.5) * CTL_BLOCK_BYTES;
}

static int print_working_set(const struct report_cache *c, FILE *f, bool color)
{
	static const char *const both[] = {"FROM", ">IN USE", ">WITHOUT SWAP", NULL};
	static const char *const all[] = {"FROM", ">IN USE", NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(c->swap ? both : all);
	char buf[CTL_HUMAN_MAX];

	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < CACHE_SLICES; i++) {
		ctl_table_cell(t, "%s", ctl_human_time(c->first_ns + i * c->slice_ns, buf));
		for (unsigned int of = 0; of < (c->swap ? CACHE_N : 1U); of++)
			ctl_table_cell(
				t, "%s",
				ctl_human_size(in_bytes(mrc_slice_blocks(c->curves[of], i)), buf));
	}
	fprintf(f, "\n%sWorking set, each row %s%s\n", ctl_style_on(color, CTL_STYLE_BOLD),
		ctl_human_duration(c->slice_ns, buf), ctl_style_off(color));
	return ctl_table_print(t, f, color);
}

int report_cache_text(const struct report_cache *c, FILE *f, bool color)
{
	const struct mrc *all = c->curves[CACHE_ALL];
	char a[CTL_HUMAN_MAX], b[CTL_HUMAN_MAX];
	int r;

	if (!c->slice_ns) {
		fputs("\nNothing was read or written.\n", f);
		return 0;
	}
	fprintf(f, "Different %s of blocks", ctl_human_size(in_bytes(mrc_blocks(all)), a));
	if (c->swap)
		fprintf(f, ", %s without swap",
			ctl_human_size(in_bytes(mrc_blocks(c->curves[CACHE_WITHOUT_SWAP])), b));
	if (mrc_rate(all) < 1)
		fprintf(f, "; estimated from 1 block in %.0f, ratios to about %.1f points",
			1 / mrc_rate(all), 100 * mrc_error(all));
	fputc('\n', f);
	r = print_curves(c, f, color);
	return r < 0 ? r : print_working_set(c, f, color);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static struct json_object *point_json(const struct report_cache *c, enum cache_of of,
				      uint64_t blocks)
{
	static const char *const misses[] = {"read_misses", "write_misses"};
	static const char *const ratios[] = {"read_miss_ratio", "write_miss_ratio"};
	struct json_object *o = json_object_new_object();

	add(o, "cache_bytes", ctl_json_u64(blocks * CTL_BLOCK_BYTES));
	for (unsigned int k = 0; k < MRC_N_KINDS; k++) {
		double n = (double)mrc_accesses(c->curves[of], k);
		double missed = mrc_misses(c->curves[of], k, blocks);

		add(o, misses[k], ctl_json_u64((uint64_t)(missed + 0.5)));
		add(o, ratios[k], n > 0 ? json_object_new_double(missed / n) : NULL);
	}
	return o;
}

static struct json_object *curve_json(const struct report_cache *c, enum cache_of of)
{
	struct json_object *o = json_object_new_object(), *curve = json_object_new_array();
	const struct mrc *m = c->curves[of];
	uint64_t blocks = 0;

	add(o, "exact", json_object_new_boolean(mrc_rate(m) == 1));
	add(o, "rate", json_object_new_double(mrc_rate(m)));
	add(o, "error", json_object_new_double(mrc_error(m)));
	add(o, "blocks", ctl_json_u64((uint64_t)(mrc_blocks(m) + 0.5)));
	add(o, "reads", ctl_json_u64(mrc_accesses(m, MRC_READ)));
	add(o, "writes", ctl_json_u64(mrc_accesses(m, MRC_WRITE)));
	add(o, "curve", curve);
	/* Every size at first, then so many a doubling, and the first that holds everything. */
	while ((double)blocks < mrc_blocks(m)) {
		json_object_array_add(curve, point_json(c, of, blocks));
		blocks += blocks / STEPS_PER_OCTAVE + 1;
	}
	json_object_array_add(curve, point_json(c, of, (uint64_t)(mrc_blocks(m) + 0.5)));
	return o;
}

struct json_object *report_cache_json(const struct report_cache *c)
{
	struct json_object *o = json_object_new_object(), *set = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	add(o, "block_bytes", ctl_json_u64(CTL_BLOCK_BYTES));
	add(o, "requests", ctl_json_u64(c->requests));
	add(o, "left_out", ctl_json_u64(c->left_out));
	add(o, "all", curve_json(c, CACHE_ALL));
	add(o, "without_swap", curve_json(c, CACHE_WITHOUT_SWAP));
	add(o, "working_set", set);
	add(set, "slice_ns", c->slice_ns ? ctl_json_u64(c->slice_ns) : NULL);
	add(set, "rows", rows);
	for (uint32_t i = 0; i < CACHE_SLICES && c->slice_ns; i++) {
		struct json_object *row = json_object_new_object();

		add(row, "from_ns", ctl_json_id(c->first_ns + i * c->slice_ns));
		add(row, "bytes",
		    ctl_json_u64(in_bytes(mrc_slice_blocks(c->curves[CACHE_ALL], i))));
		add(row, "without_swap_bytes",
		    ctl_json_u64(in_bytes(mrc_slice_blocks(c->curves[CACHE_WITHOUT_SWAP], i))));
		json_object_array_add(rows, row);
	}
	return o;
}
