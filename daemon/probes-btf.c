/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-btf.c - what the running kernel has, read from its BTF alone.
 *
 * Never from its version: distributions carry changes across versions in both directions. Presence and
 * argument shape of a tracepoint come from its typedef btf_trace_<name>, whose prototype starts with
 * one untyped pointer of its own. Numbers come from enumerators, which are looked up by name through
 * all enums, since several of the enums have no name. Only what has never been an enumerator falls
 * back to the value of the macro it was then.
 */
#include <bpf/btf.h>

#include "daemon/probes-internal.h"

/* An enumerator we look for; fields of struct probes_facts take the values afterwards. */
enum wanted_id {
	W_READ,
	W_WRITE,
	W_FLUSH,
	W_DISCARD,
	W_SECURE_ERASE,
	W_WRITE_SAME,
	W_WRITE_ZEROES,
	W_ZONE_APPEND,
	W_ZONE_OPEN,
	W_ZONE_CLOSE,
	W_ZONE_FINISH,
	W_ZONE_RESET,
	W_ZONE_RESET_ALL,
	W_SCSI_IN,
	W_SCSI_OUT,
	W_DRV_IN,
	W_DRV_OUT,
	W_FIRST_FLAG, /* its number is how many low bits hold the op */
	W_REQ_SWAP,
	W_RQF_FLUSH_SEQ,
	W_RQF_IO_STAT,
	W_PG_SWAPCACHE,
	W_PG_SWAPBACKED,
	W_REQ_META,
	W_PG_LOCKED,
	W_PG_UPTODATE,
	W_PG_WRITEBACK,
	W_PG_PRIVATE,
	W_PG_SLAB,
	W_PGTY_SLAB,
	W_BIO_PAGE_PINNED,
	W_N,
};

static const char *const wanted_names[W_N] = {
	[W_READ] = "REQ_OP_READ",
	[W_WRITE] = "REQ_OP_WRITE",
	[W_FLUSH] = "REQ_OP_FLUSH",
	[W_DISCARD] = "REQ_OP_DISCARD",
	[W_SECURE_ERASE] = "REQ_OP_SECURE_ERASE",
	[W_WRITE_SAME] = "REQ_OP_WRITE_SAME",
	[W_WRITE_ZEROES] = "REQ_OP_WRITE_ZEROES",
	[W_ZONE_APPEND] = "REQ_OP_ZONE_APPEND",
	[W_ZONE_OPEN] = "REQ_OP_ZONE_OPEN",
	[W_ZONE_CLOSE] = "REQ_OP_ZONE_CLOSE",
	[W_ZONE_FINISH] = "REQ_OP_ZONE_FINISH",
	[W_ZONE_RESET] = "REQ_OP_ZONE_RESET",
	[W_ZONE_RESET_ALL] = "REQ_OP_ZONE_RESET_ALL",
	[W_SCSI_IN] = "REQ_OP_SCSI_IN",
	[W_SCSI_OUT] = "REQ_OP_SCSI_OUT",
	[W_DRV_IN] = "REQ_OP_DRV_IN",
	[W_DRV_OUT] = "REQ_OP_DRV_OUT",
	[W_FIRST_FLAG] = "__REQ_FAILFAST_DEV",
	[W_REQ_SWAP] = "__REQ_SWAP",
	[W_RQF_FLUSH_SEQ] = "__RQF_FLUSH_SEQ",
	[W_RQF_IO_STAT] = "__RQF_IO_STAT",
	[W_PG_SWAPCACHE] = "PG_swapcache",
	[W_PG_SWAPBACKED] = "PG_swapbacked",
	[W_REQ_META] = "__REQ_META",
	[W_PG_LOCKED] = "PG_locked",
	[W_PG_UPTODATE] = "PG_uptodate",
	[W_PG_WRITEBACK] = "PG_writeback",
	[W_PG_PRIVATE] = "PG_private",
	[W_PG_SLAB] = "PG_slab",
	[W_PGTY_SLAB] = "PGTY_slab",
	[W_BIO_PAGE_PINNED] = "BIO_PAGE_PINNED",
};

/* Kernel ops that a segment names; the rest is IOT_OP_OTHER (WRITE_SAME, gone in 5.18, among them). */
static const struct {
	enum wanted_id wanted;
	enum iot_op op;
} ops[] = {
	{W_READ, IOT_OP_READ},
	{W_WRITE, IOT_OP_WRITE},
	{W_FLUSH, IOT_OP_FLUSH},
	{W_DISCARD, IOT_OP_DISCARD},
	{W_SECURE_ERASE, IOT_OP_SECURE_ERASE},
	{W_WRITE_ZEROES, IOT_OP_WRITE_ZEROES},
	{W_ZONE_APPEND, IOT_OP_ZONE_APPEND},
	{W_ZONE_OPEN, IOT_OP_ZONE_OPEN},
	{W_ZONE_CLOSE, IOT_OP_ZONE_CLOSE},
	{W_ZONE_FINISH, IOT_OP_ZONE_FINISH},
	{W_ZONE_RESET, IOT_OP_ZONE_RESET},
	{W_ZONE_RESET_ALL, IOT_OP_ZONE_RESET_ALL},
	{W_SCSI_IN, IOT_OP_DRV_IN},
	{W_SCSI_OUT, IOT_OP_DRV_OUT},
	{W_DRV_IN, IOT_OP_DRV_IN},
	{W_DRV_OUT, IOT_OP_DRV_OUT},
};

/* Members of enum req_flag_bits. __REQ_HIPRI became __REQ_POLLED in 5.16 (6ce913fe3eee). */
static const struct {
	const char *name;
	uint32_t flag;
} flags[] = {
	{"__REQ_FAILFAST_DEV", IOT_FLAG_FAILFAST},
	{"__REQ_FAILFAST_TRANSPORT", IOT_FLAG_FAILFAST},
	{"__REQ_FAILFAST_DRIVER", IOT_FLAG_FAILFAST},
	{"__REQ_SYNC", IOT_FLAG_SYNC},
	{"__REQ_META", IOT_FLAG_META},
	{"__REQ_PRIO", IOT_FLAG_PRIO},
	{"__REQ_RAHEAD", IOT_FLAG_AHEAD},
	{"__REQ_FUA", IOT_FLAG_FUA},
	{"__REQ_PREFLUSH", IOT_FLAG_PREFLUSH},
	{"__REQ_NOMERGE", IOT_FLAG_NOMERGE},
	{"__REQ_IDLE", IOT_FLAG_IDLE},
	{"__REQ_INTEGRITY", IOT_FLAG_INTEGRITY},
	{"__REQ_BACKGROUND", IOT_FLAG_BACKGROUND},
	{"__REQ_HIPRI", IOT_FLAG_POLLED},
	{"__REQ_POLLED", IOT_FLAG_POLLED},
	{"__REQ_ATOMIC", IOT_FLAG_ATOMIC},
	{"__REQ_SWAP", IOT_FLAG_SWAP},
	{"__REQ_NOWAIT", IOT_FLAG_NOWAIT},
	{"__REQ_NOUNMAP", IOT_FLAG_NOUNMAP},
	{"__REQ_CGROUP_PUNT", IOT_FLAG_CGROUP_PUNT},
};

struct scan {
	bool found[W_N];
	uint32_t value[W_N];
	bool account_start; /* function blk_account_io_start */
};

static void scan_enum(const struct btf *btf, const struct btf_type *t, struct scan *s,
		      struct probes_kernel *kernel)
{
	const struct btf_enum *e = btf_enum(t);

	for (unsigned int i = 0; i < btf_vlen(t); i++, e++) {
		const char *name = btf__str_by_offset(btf, e->name_off);

		/* One look at the first letters spares most of 100,000 comparisons. */
		if (!name || !(strncmp(name, "REQ_OP_", 7) == 0 || strncmp(name, "__R", 3) == 0 ||
			       strncmp(name, "PG", 2) == 0 || strncmp(name, "BIO_", 4) == 0))
			continue;
		for (unsigned int w = 0; w < W_N; w++) {
			if (!s->found[w] && strcmp(name, wanted_names[w]) == 0) {
				s->found[w] = true;
				s->value[w] = (uint32_t)e->val;
			}
		}
		for (size_t f = 0; f < IOT_ARRAY_SIZE(flags); f++) {
			if (strcmp(name, flags[f].name) == 0 && e->val >= 0 && e->val < 32)
				kernel->flag_mask[e->val] |= flags[f].flag;
		}
	}
}

static bool has_member(const struct btf *btf, const struct btf_type *t, const char *member)
{
	const struct btf_member *m = btf_members(t);

	for (unsigned int i = 0; i < btf_vlen(t); i++, m++) {
		const char *name = btf__str_by_offset(btf, m->name_off);

		if (name && strcmp(name, member) == 0)
			return true;
	}
	return false;
}

static bool has_struct_member(const struct btf *btf, const char *name, const char *member)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 && has_member(btf, btf__type_by_id(btf, (unsigned int)id), member);
}

static void scan_types(const struct btf *btf, struct scan *s, struct probes_kernel *kernel)
{
	unsigned int n = btf__type_cnt(btf);

	for (unsigned int id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name;

		if (btf_is_enum(t)) {
			scan_enum(btf, t, s, kernel);
		} else if (btf_is_func(t)) {
			name = btf__str_by_offset(btf, t->name_off);
			if (!name)
				continue;
			if (strcmp(name, "blk_account_io_start") == 0)
				s->account_start = true;
		}
	}
}

const struct btf_type *probes_tracepoint_proto(const struct btf *btf, const char *hook)
{
	const struct btf_type *t;
	char name[64];
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", hook);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return NULL;
	t = btf__type_by_id(btf, btf__type_by_id(btf, (unsigned int)id)->type);
	if (!t || !btf_is_ptr(t))
		return NULL;
	t = btf__type_by_id(btf, t->type);
	return t && btf_is_func_proto(t) ? t : NULL;
}

/*
 * plain: number of parameters of the shape without the queue, BTF's untyped first one counted too: 2 for
 * a hook (rq).
 */
static enum probes_shape tracepoint_shape(const struct btf *btf, const char *hook,
					  unsigned int plain)
{
	const struct btf_type *proto = probes_tracepoint_proto(btf, hook);

	if (!proto)
		return PROBES_SHAPE_ABSENT;
	return btf_vlen(proto) == plain ? PROBES_SHAPE_PLAIN : PROBES_SHAPE_QUEUE;
}

/* The error that block_rq_complete passes is an int (an errno) until 5.16, then a blk_status_t. */
static bool status_is_errno(const struct btf *btf)
{
	const struct btf_type *proto = probes_tracepoint_proto(btf, "block_rq_complete");

	if (!proto || btf_vlen(proto) < 3)
		return false;
	return btf_is_int(btf__type_by_id(btf, btf_params(proto)[2].type));
}

static uint32_t op_or_none(const struct scan *s, enum wanted_id w)
{
	return s->found[w] ? s->value[w] : UINT32_MAX;
}

static uint32_t bit_or(const struct scan *s, enum wanted_id w, uint32_t otherwise)
{
	return s->found[w] && s->value[w] < 32 ? 1U << s->value[w] : otherwise;
}

static uint64_t page_flag(const struct scan *s, enum wanted_id w)
{
	return s->found[w] && s->value[w] < 64 ? 1ULL << s->value[w] : 0;
}

static void take_pages(const struct scan *s, struct probes_pages *ret)
{
	*ret = (struct probes_pages){
		.swap = page_flag(s, W_PG_SWAPCACHE) | page_flag(s, W_PG_SWAPBACKED),
		.locked = page_flag(s, W_PG_LOCKED),
		.uptodate = page_flag(s, W_PG_UPTODATE),
		.writeback = page_flag(s, W_PG_WRITEBACK),
		.private = page_flag(s, W_PG_PRIVATE),
		.slab = page_flag(s, W_PG_SLAB),
		.type_slab = s->found[W_PGTY_SLAB] ? s->value[W_PGTY_SLAB] : 0,
		.bio_pinned = bit_or(s, W_BIO_PAGE_PINNED, 0),
	};
	ret->readable = s->found[W_PG_SWAPCACHE] && s->found[W_PG_SWAPBACKED] && ret->locked &&
			ret->uptodate && ret->writeback && ret->private &&
			(ret->slab || ret->type_slab);
}

static int take_scan(const struct scan *s, struct probes_facts *f, struct iot_error *err)
{
	/* A kernel without these is none whose requests we would understand. */
	static const enum wanted_id needed[] = {W_READ,	  W_WRITE,   W_FLUSH,
						W_DRV_IN, W_DRV_OUT, W_FIRST_FLAG};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(needed); i++) {
		if (!s->found[needed[i]])
			return iot_error_set(
				err, -ENOTSUP,
				"the kernel's BTF has no %s: this kernel is not supported",
				wanted_names[needed[i]]);
	}
	f->kernel.op_mask = (1U << s->value[W_FIRST_FLAG]) - 1;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(ops); i++) {
		if (s->found[ops[i].wanted] &&
		    s->value[ops[i].wanted] < IOT_ARRAY_SIZE(f->kernel.op))
			f->kernel.op[s->value[ops[i].wanted]] = ops[i].op;
	}
	f->op_read = s->value[W_READ];
	f->op_write = s->value[W_WRITE];
	f->op_flush = s->value[W_FLUSH];
	f->op_drv_in = s->value[W_DRV_IN];
	f->op_drv_out = s->value[W_DRV_OUT];
	f->op_scsi_in = op_or_none(s, W_SCSI_IN);
	f->op_scsi_out = op_or_none(s, W_SCSI_OUT);
	/* Macros until 5f89154e8e9e ("block: Use enum to define RQF_x bit indexes", 6.11). */
	f->rqf_flush_seq = bit_or(s, W_RQF_FLUSH_SEQ, 1U << 4);
	f->rqf_io_stat = bit_or(s, W_RQF_IO_STAT, 1U << 13);

	f->op_append = op_or_none(s, W_ZONE_APPEND);
	f->req_meta = bit_or(s, W_REQ_META, 0);
	if (!(f->without & (PROBES_WITHOUT_SWAP_FLAG | PROBES_WITHOUT_ORIGIN)))
		f->req_swap = bit_or(s, W_REQ_SWAP, 0);
	if (!(f->without & (PROBES_WITHOUT_PAGES | PROBES_WITHOUT_ORIGIN)))
		take_pages(s, &f->pages);
	if (f->without & PROBES_WITHOUT_ORIGIN)
		return 0;
	/* Without flag or page, swap areas that are disks or partitions are still known by their place. */
	f->kernel.swap_out = f->req_swap ? IOT_ABILITY_EXACT : IOT_ABILITY_PARTITION;
	f->kernel.swap_in = f->pages.readable ? IOT_ABILITY_PAGE : IOT_ABILITY_PARTITION;
	return 0;
}

/*
 * fentry has counted what its guard skips since 9ed9e9ba2337 (5.12), which also added the field. tp_btf
 * and raw_tp got guard and count together in 05b24ff9b2cf (6.1, 6.0.10), which made the counting function
 * a global one; before that they have no guard, hence miss nothing.
 */
void probes_counting(const struct btf *btf, bool *ret_tracing, bool *ret_fentry)
{
	bool counts = has_struct_member(btf, "bpf_prog_info", "recursion_misses");

	*ret_fentry = counts;
	*ret_tracing = counts && btf__find_by_name_kind(btf, "bpf_prog_inc_misses_counter",
							BTF_KIND_FUNC) > 0;
}

int probes_decide(uint32_t without, struct probes_facts *ret, struct iot_error *err)
{
	struct probes_facts f = {.without = without};
	struct scan s = {0};
	struct btf *btf;
	int r;

	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return iot_error_set(err, -ENOTSUP,
				     "the kernel offers no BTF (/sys/kernel/btf/vmlinux: %s): it "
				     "must be built with "
				     "CONFIG_DEBUG_INFO_BTF",
				     strerror(errno));
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return iot_error_set(err, -ENOTSUP, "cannot read the kernel's BTF: %s",
				     strerror(errno));

	scan_types(btf, &s, &f.kernel);
	r = take_scan(&s, &f, err);
	if (r < 0) {
		btf__free(btf);
		return r;
	}
	f.insert = tracepoint_shape(btf, "block_rq_insert", 2);
	f.issue = tracepoint_shape(btf, "block_rq_issue", 2);
	f.requeue = tracepoint_shape(btf, "block_rq_requeue", 2);
	f.rq_merge = tracepoint_shape(btf, "block_rq_merge", 2);
	f.back = tracepoint_shape(btf, "block_bio_backmerge", 2);
	f.front = tracepoint_shape(btf, "block_bio_frontmerge", 2);
	f.getrq = tracepoint_shape(btf, "block_getrq", 2);
	f.io_start = probes_tracepoint_proto(btf, "block_io_start") != NULL;
	f.complete = probes_tracepoint_proto(btf, "block_rq_complete") != NULL;
	f.account_start = s.account_start;
	/* Never a module's, but not there without CONFIG_FS_IOMAP. */
	f.iomap_dio = has_struct_member(btf, "iomap_dio", "iocb") &&
		      has_struct_member(btf, "kiocb", "ki_filp") &&
		      has_struct_member(btf, "file", "f_inode");
	if (!(f.without & PROBES_WITHOUT_CASTS))
		f.cast_id = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC);
	if (f.cast_id < 0)
		f.cast_id = 0;
	f.kernel.status_is_errno = status_is_errno(btf);
	probes_counting(btf, &f.counts_tracing, &f.counts_fentry);
	btf__free(btf);
	if (!f.complete)
		return iot_error_set(err, -ENOTSUP,
				     "the kernel has no tracepoint block_rq_complete");
	*ret = f;
	return 0;
}
