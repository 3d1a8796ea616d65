/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-block.c - which programs serve the block stream on this kernel, and loading them.
 *
 * Loading is a short list of attempts, best first, and the kernel has the last word: plain loads in
 * tp_btf, with START by tracepoint, fentry, kprobe or bio (whatever BTF says may exist), then the same
 * without the few copies that tp_btf programs make besides (lockdown=confidentiality refuses them) or
 * without casts, then in raw_tp, which copies. The first object that loads whole is kept.
 */
#include <assert.h>

#include "daemon/adopt.h"
#include "daemon/probes-internal.h"
#include "block.skel.h"

/* How START, or what stands in for it, is hooked. */
enum start_by {
	START_BY_TRACEPOINT,
	START_BY_FENTRY,
	START_BY_KPROBE,
	START_BY_GETRQ,
	START_BY_NOTHING,
};

struct attempt {
	bool direct;
	bool copies; /* bpf_probe_read_kernel may be called */
	bool casts;  /* bpf_rdonly_cast may be called */
	enum start_by start;
};

/* ---- which programs --------------------------------------------------------------------------- */

#define PROBES_BLOCK_ROWS (EV_BLOCK_PROBES_END - 1)

static void row_set(struct probes *p, size_t i, uint16_t id, const char *name, const char *hook,
		    struct bpf_program *program, uint8_t state, const char *detail)
{
	struct iot_probe *row = &p->table[i];

	assert(i < PROBES_BLOCK_ROWS && "a row in choose() without a number in enum ev_probe");
	assert(id > EV_PROBE_NONE && id < EV_BLOCK_PROBES_END);
	row->id = id;
	row->state = program ? IOT_ATTACH_ATTACHED : state;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->hook, sizeof(row->hook), "%s", program ? hook : "");
	snprintf(row->detail, sizeof(row->detail), "%s", program ? "" : detail);
	p->rows[i] = PROBES_NO_ROW;
	p->rows[i].program = program;
	p->rows[i].essential = id == EV_PROBE_BLOCK_COMPLETE;
	if (!program)
		return;
	if (strcmp(hook, "kprobe") == 0)
		/*
		 * Skipped runs of kprobe programs are counted since 6.7 (dd8657894c11), but a kprobe is
		 * only used where block_io_start does not exist, before 6.5.
		 */
		row->miss = IOT_MISS_NOT_MEASURABLE;
	else if (strcmp(hook, "fentry") == 0)
		row->miss = p->facts.counts_fentry ? IOT_MISS_COUNTED : IOT_MISS_UNGUARDED;
	else
		row->miss = p->facts.counts_tracing ? IOT_MISS_COUNTED : IOT_MISS_UNGUARDED;
}

#define SHAPED(progs, handler, shape, direct)                                                       \
	((shape) == PROBES_SHAPE_ABSENT ? NULL                                                      \
	 : (direct)			? ((shape) == PROBES_SHAPE_PLAIN ? (progs).handler##_btf    \
									 : (progs).handler##_btf_q) \
					: ((shape) == PROBES_SHAPE_PLAIN ? (progs).handler##_raw    \
									 : (progs).handler##_raw_q))

static const char no_hook[] = "this kernel has no such hook";

static void choose(struct probes *p, const struct attempt *a)
{
	const struct probes_facts *f = &p->facts;
	const char *hook = a->direct ? "tp_btf" : "raw_tp";
	struct bpf_program *start = NULL, *getrq = NULL;
	const char *start_name = "block_io_start", *start_hook = hook;
	const char *start_detail = no_hook;
	struct bpf_program *program;
	size_t n = 0;

	switch (a->start) {
	case START_BY_TRACEPOINT:
		start = a->direct ? p->skel->progs.block_start_btf : p->skel->progs.block_start_raw;
		break;
	case START_BY_FENTRY:
		start = p->skel->progs.block_start_fentry;
		start_name = "blk_account_io_start";
		start_hook = "fentry";
		break;
	case START_BY_KPROBE:
		start = p->skel->progs.block_start_kprobe;
		start_name = "blk_account_io_start";
		start_hook = "kprobe";
		break;
	case START_BY_GETRQ:
		getrq = a->direct ? p->skel->progs.block_getrq_btf : p->skel->progs.block_getrq_raw;
		start_detail = "this kernel has no such hook; block_getrq stands in";
		break;
	case START_BY_NOTHING:
		start_detail = "this kernel has no hook at the start of a request";
		break;
	}
	row_set(p, n++, EV_PROBE_BLOCK_START, start_name, start_hook, start,
		getrq ? IOT_ATTACH_NOT_NEEDED : IOT_ATTACH_ABSENT, start_detail);
	row_set(p, n++, EV_PROBE_BLOCK_GETRQ, "block_getrq", hook, getrq,
		start ? IOT_ATTACH_NOT_NEEDED : IOT_ATTACH_ABSENT,
		start ? "the start of requests is hooked itself" : no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_INSERT, "block_rq_insert", hook,
		SHAPED(p->skel->progs, block_insert, f->insert, a->direct), IOT_ATTACH_ABSENT,
		no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_ISSUE, "block_rq_issue", hook,
		SHAPED(p->skel->progs, block_issue, f->issue, a->direct), IOT_ATTACH_ABSENT,
		no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_REQUEUE, "block_rq_requeue", hook,
		SHAPED(p->skel->progs, block_requeue, f->requeue, a->direct), IOT_ATTACH_ABSENT,
		no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_BIO_MERGE, "block_bio_backmerge", hook,
		SHAPED(p->skel->progs, block_back, f->back, a->direct), IOT_ATTACH_ABSENT, no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_FRONT_MERGE, "block_bio_frontmerge", hook,
		SHAPED(p->skel->progs, block_front, f->front, a->direct), IOT_ATTACH_ABSENT,
		no_hook);
	row_set(p, n++, EV_PROBE_BLOCK_RQ_MERGE, "block_rq_merge", hook,
		SHAPED(p->skel->progs, block_rq_merge, f->rq_merge, a->direct), IOT_ATTACH_ABSENT,
		no_hook);
	program = a->direct ? p->skel->progs.block_complete_btf : p->skel->progs.block_complete_raw;
	row_set(p, n++, EV_PROBE_BLOCK_COMPLETE, "block_rq_complete", hook, program,
		IOT_ATTACH_ABSENT, no_hook);
	assert(n == PROBES_BLOCK_ROWS && "a number in enum ev_probe without a row in choose()");

	p->n_rows = n;
	bpf_object__for_each_program(program, p->skel->obj)
		bpf_program__set_autoload(program, false);
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].program)
			bpf_program__set_autoload(p->rows[i].program, true);
	}
}

static void set_constants(struct probes *p, const struct attempt *a,
			  const struct probes_symbols *symbols)
{
	const struct probes_facts *f = &p->facts;
	struct block_bpf__rodata *ro = p->skel->rodata;

	ro->block_op_mask = f->kernel.op_mask;
	ro->block_op_read = f->op_read;
	ro->block_op_flush = f->op_flush;
	ro->block_op_drv_in = f->op_drv_in;
	ro->block_op_drv_out = f->op_drv_out;
	ro->block_op_scsi_in = f->op_scsi_in;
	ro->block_op_scsi_out = f->op_scsi_out;
	ro->block_req_swap = f->req_swap;
	ro->block_rqf_flush_seq = f->rqf_flush_seq;
	ro->block_rqf_io_stat = f->rqf_io_stat;
	ro->block_op_write = f->op_write;
	ro->block_op_append = f->op_append;
	ro->block_req_meta = f->req_meta;
	ro->block_swap_page_flags = f->pages.swap;
	ro->block_page_locked = f->pages.locked;
	ro->block_page_uptodate = f->pages.uptodate;
	ro->block_page_writeback = f->pages.writeback;
	ro->block_page_private = f->pages.private;
	ro->block_page_slab = f->pages.slab;
	ro->block_page_type_slab = f->pages.type_slab;
	ro->block_bio_pinned = f->pages.bio_pinned;
	ro->block_reads_pages = f->pages.readable;
	ro->block_copies = a->copies;
	ro->block_casts = a->casts;
	ro->block_swap_by_area = (!f->req_swap || !f->pages.readable) &&
				 !(f->without & PROBES_WITHOUT_ORIGIN);
	/* Only ids of cgroup v2 are recorded. */
	ro->block_memory_cgroups = probes_on_cgroup2("memory");
	ro->block_blkio_cgroups = probes_on_cgroup2("blkio");
	/* The directory is there if pressure accounting is (built in, and not switched off). */
	ro->block_memstall = access("/proc/pressure/memory", F_OK) == 0;
	ro->block_join_getrq = a->start == START_BY_GETRQ;
	ro->block_end_direct = symbols->end_direct;
	ro->block_end_chain = symbols->end_chain;
}

/* ---- loading ---------------------------------------------------------------------------------- */

static uint64_t block_idle_since(const void *value)
{
	const struct ev_block *e = value;

	return e->state & EV_BLOCK_IN_FLIGHT ? 0 : e->complete_ns;
}

static void name_maps(struct probes *p)
{
	struct block_bpf *skel = p->skel;

	p->object = skel->obj;
	p->maps = (struct probes_maps){
		.cells = skel->maps.cells,
		.rings = skel->maps.rings,
		.control = skel->maps.control,
		.epochs = skel->maps.epochs,
		.ledger = {skel->maps.ledger0, skel->maps.ledger1},
		.identities = skel->maps.in_flight,
	};
}

static int size_maps(struct probes *p, const struct iot_stream_config *stream,
		     struct iot_error *err)
{
	struct block_bpf *skel = p->skel;
	struct probes_dimensions d;
	int r;

	name_maps(p);
	p->identity_entries = stream->in_flight_entries
				      ? (uint32_t)IOT_MIN(stream->in_flight_entries, 1ULL << 22)
				      : probes_count_requests();
	r = probes_maps_size(p, stream, &d, err);
	if (r < 0)
		return r;
	skel->rodata->emit_n_cpus = d.n_cpus;
	skel->rodata->emit_n_rings = d.n_rings;
	skel->rodata->emit_ring_cpus = d.ring_cpus;
	skel->rodata->emit_wake_bytes = d.wake_bytes;
	r = bpf_map__set_max_entries(skel->maps.notes,
				     skel->rodata->block_join_getrq ? p->identity_entries : 1);
	return r < 0 ? iot_error_set(err, r, "cannot size the maps: %s", strerror(-r)) : 0;
}

/* How many there were. The verifier takes a function of the kernel's by its number in BTF. */
static size_t put_casts(uint8_t *image, size_t bytes, int32_t cast_id)
{
	const struct bpf_insn mark = {.code = BPF_JMP | BPF_CALL, .imm = EV_CAST_MARK};
	const struct bpf_insn call = {
		.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL, .imm = cast_id};
	size_t n = 0;

	for (size_t i = 0; i + sizeof(mark) <= bytes; i += sizeof(mark)) {
		if (memcmp(image + i, &mark, sizeof(mark)) != 0)
			continue;
		memcpy(image + i, &call, sizeof(call));
		n++;
	}
	return n;
}

/* cast_id: of the function that casts, which is called then; 0: it is not, and nothing calls it. */
static int open_object(struct probes *p, int32_t cast_id, struct iot_error *err)
{
	/*
	 * A type that this kernel lacks (hd_struct after 5.10) makes libbpf look through the BTF of all
	 * modules, which takes CAP_SYS_ADMIN (BPF_BTF_GET_NEXT_ID); naming the BTF to use spares that.
	 */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/sys/kernel/btf/vmlinux");
	size_t bytes;
	const void *embedded = block_bpf__elf_bytes(&bytes);
	_cleanup_free_ uint8_t *image = malloc(bytes);
	struct block_bpf *skel = calloc(1, sizeof(*skel));
	int r = image && skel ? block_bpf__create_skeleton(skel) : -ENOMEM;

	if (r >= 0) {
		memcpy(image, embedded, bytes);
		if (cast_id && put_casts(image, bytes, cast_id) == 0)
			r = -ENOEXEC;
	}
	if (r >= 0) {
		skel->skeleton->data = image;
		r = bpf_object__open_skeleton(skel->skeleton, &opts);
	}
	if (r < 0) {
		block_bpf__destroy(skel);
		return iot_error_set(err, r, "cannot open the embedded programs: %s", strerror(-r));
	}
	p->skel = skel;
	return 0;
}

static int try_load(struct probes *p, const struct attempt *a, const struct probes_symbols *symbols,
		    const struct iot_stream_config *stream, struct iot_error *err)
{
	int r = open_object(p, a->casts ? p->facts.cast_id : 0, err);

	if (r < 0)
		return r;
	choose(p, a);
	set_constants(p, a, symbols);
	r = size_maps(p, stream, err);
	if (r >= 0)
		r = block_bpf__load(p->skel);
	if (r < 0) {
		probes_block_close(p);
		memset(p->rows, 0, sizeof(p->rows));
	}
	return r;
}

#define MAX_ATTEMPTS 15 /* five ways, by three hooks of START at most */

/* Fills list with what this kernel may take, best first. */
static size_t list_attempts(const struct probes_facts *f, bool force_fallback,
			    struct attempt list[MAX_ATTEMPTS])
{
	/* Plain loads, with what helps where those cannot be; then copies alone. */
	static const struct attempt ways[] = {
		{.direct = true, .copies = true, .casts = true},
		{.direct = true, .casts = true},
		{.direct = true, .copies = true},
		{.direct = true},
		{.copies = true},
	};
	size_t n = 0;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(ways); i++) {
		struct attempt way = ways[i];

		if ((way.direct && force_fallback) || (way.casts && !f->cast_id) ||
		    (way.copies && (f->without & PROBES_WITHOUT_COPIES)))
			continue;
		if (f->io_start) {
			way.start = START_BY_TRACEPOINT;
			list[n++] = way;
			continue;
		}
		if (f->account_start && way.direct) {
			way.start = START_BY_FENTRY;
			list[n++] = way;
		}
		if (f->account_start && way.copies) {
			way.start = START_BY_KPROBE;
			list[n++] = way;
		}
		way.start = f->getrq == PROBES_SHAPE_PLAIN ? START_BY_GETRQ : START_BY_NOTHING;
		list[n++] = way;
	}
	assert(n <= MAX_ATTEMPTS);
	return n;
}

/* What a new entry holds until the programs have filled it. */
static int set_blank(struct probes *p, struct iot_error *err)
{
	struct ev_block blank = {.state = EV_BLOCK_IN_FLIGHT};
	uint32_t zero = 0;
	int r = bpf_map_update_elem(bpf_map__fd(p->skel->maps.blank), &zero, &blank, BPF_ANY);

	return r < 0 ? iot_error_set(err, r, "cannot set up the maps: %s", strerror(-r)) : 0;
}

static int decide(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	p->first_probe = 0;
	p->n_probes = EV_N_BLOCK_PROBES;
	p->ledger_val_bytes = sizeof(struct ev_ledger_val);
	p->identity_bytes = sizeof(struct ev_block);
	p->idle_since = block_idle_since;
	return probes_decide(opts->without, &p->facts, err);
}

/*
 * Without copies no chain of swapped and other reads is taken apart, and without casts either no large page is
 * followed, nor the later part of a bio: a read without the tag may be swap all the same, which "unavailable"
 * says. Swap-out stays as it is: the flag of each bio of a request is had by
 * plain loads (block_walk()).
 */
static void note_copies(struct probes *p, bool copies)
{
	if (!copies && p->facts.kernel.swap_in == IOT_ABILITY_PAGE)
		p->facts.kernel.swap_in = IOT_ABILITY_UNAVAILABLE;
}

static void note_direct(struct probes *p)
{
	const struct block_bpf__rodata *ro = p->skel->rodata;

	p->facts.kernel.direct_files = ro->block_end_direct &&
				       (ro->block_copies || ro->block_casts);
}

int probes_block_load(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	struct probes_symbols symbols = {0};
	struct attempt list[MAX_ATTEMPTS];
	struct iot_error own = {0};
	size_t n;
	int r;

	r = decide(p, opts, err);
	if (r < 0)
		return r;
	if (p->facts.iomap_dio)
		probes_symbols_read("/proc/kallsyms", &symbols);
	r = -ENOTSUP;
	n = list_attempts(&p->facts, opts->force_fallback, list);
	for (size_t i = 0; i < n; i++) {
		probes_first_complaint[0] = '\0';
		r = try_load(p, &list[i], &symbols, opts->stream, &own);
		if (r >= 0) {
			note_copies(p, list[i].copies);
			note_direct(p);
			return set_blank(p, err);
		}
		if (own.text[0])
			return iot_error_set(err, r, "%s", own.text);
	}
	return probes_load_error(r, err);
}

/* The programs' constants are where the kernel has frozen them. */
static int read_constants(struct probes *p, int fd)
{
	_cleanup_free_ void *value = NULL;
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info), zero = 0;
	int r;

	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return r;
	/* The section may be longer than the skeleton's view of it. */
	if (info.value_size != bpf_map__value_size(p->skel->maps.rodata))
		return -EBADMSG;
	value = malloc(info.value_size);
	if (!value)
		return -ENOMEM;
	r = bpf_map_lookup_elem(fd, &zero, value);
	if (r < 0)
		return r;
	memcpy(p->skel->rodata, value, IOT_MIN(sizeof(*p->skel->rodata), info.value_size));
	return 0;
}

int probes_block_open(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	int r;

	r = decide(p, opts, err);
	if (r < 0)
		return r;
	r = open_object(p, 0, err);
	if (r >= 0)
		name_maps(p);
	return r;
}

int probes_block_reused(struct probes *p)
{
	int r = read_constants(p, bpf_map__fd(p->skel->maps.rodata));

	if (r < 0)
		return r;
	note_copies(p, p->skel->rodata->block_copies);
	note_direct(p);
	return 0;
}

uint64_t probes_block_hash(void)
{
	size_t size;
	const void *bytes = block_bpf__elf_bytes(&size);

	return adopt_hash(ADOPT_HASH_INIT, bytes, size);
}

void probes_block_close(struct probes *p)
{
	block_bpf__destroy(p->skel);
	p->skel = NULL;
}
