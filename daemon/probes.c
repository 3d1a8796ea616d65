/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes.c - open, load, attach, gate: the life of the kernel side.
 *
 * Loading is a short list of attempts, best first, and the kernel has the last word: plain loads in
 * tp_btf, with START by tracepoint, fentry, kprobe or bio (whatever BTF says may exist), then the same
 * in raw_tp, which copies. The first object that loads whole is kept. Attaching then happens hook by
 * hook with the gate closed; a hook that is refused is a row in the probe table, and an error only if
 * it is the one that makes records.
 */
#include <assert.h>
#include <linux/capability.h>
#include <time.h>

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
	enum start_by start;
};

/* libbpf reports through a process-wide callback without an argument; loading is done by one thread. */
static char first_complaint[256];

static int keep_complaint(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN && !first_complaint[0]) {
		vsnprintf(first_complaint, sizeof(first_complaint), fmt, args);
		first_complaint[strcspn(first_complaint, "\n")] = '\0';
	}
	return 0;
}

static int print_all(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, fmt, args);
}

/* ---- which programs --------------------------------------------------------------------------- */

static void row_set(struct probes *p, size_t i, uint16_t id, const char *name, const char *hook,
		    struct bpf_program *program, uint8_t state, const char *detail)
{
	struct iot_probe *row = &p->table[i];

	assert(i < PROBES_N_ROWS && "a row in choose() without a number in enum ev_probe");
	assert(id > EV_PROBE_NONE && id < EV_BLOCK_PROBES_END);
	row->id = id;
	row->state = program ? IOT_ATTACH_ATTACHED : state;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->hook, sizeof(row->hook), "%s", program ? hook : "");
	snprintf(row->detail, sizeof(row->detail), "%s", program ? "" : detail);
	p->rows[i].program = program;
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
	assert(n == PROBES_N_ROWS && "a number in enum ev_probe without a row in choose()");

	bpf_object__for_each_program(program, p->skel->obj)
		bpf_program__set_autoload(program, false);
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		if (p->rows[i].program)
			bpf_program__set_autoload(p->rows[i].program, true);
	}
}

static void set_constants(struct probes *p, const struct attempt *a)
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
	ro->block_swap_page_flags = f->swap_page_flags;
	ro->block_join_getrq = a->start == START_BY_GETRQ;
}

/* ---- loading ---------------------------------------------------------------------------------- */

static int try_load(struct probes *p, const struct attempt *a,
		    const struct iot_stream_config *stream, struct iot_error *err)
{
	/*
	 * A type that this kernel lacks (hd_struct after 5.10) makes libbpf look through the BTF of all
	 * modules, which takes CAP_SYS_ADMIN (BPF_BTF_GET_NEXT_ID); naming the BTF to use spares that.
	 */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/sys/kernel/btf/vmlinux");
	int r;

	p->skel = block_bpf__open_opts(&opts);
	if (!p->skel)
		return iot_error_set(err, -errno, "cannot open the embedded programs: %s",
				     strerror(errno));
	choose(p, a);
	set_constants(p, a);
	r = probes_maps_size(p, stream, err);
	if (r >= 0)
		r = block_bpf__load(p->skel);
	if (r < 0) {
		block_bpf__destroy(p->skel);
		p->skel = NULL;
		memset(p->rows, 0, sizeof(p->rows));
	}
	return r;
}

/* Fills list with what this kernel may take, best first. */
static size_t list_attempts(const struct probes_facts *f, bool force_fallback,
			    struct attempt list[8])
{
	size_t n = 0;

	for (int direct = !force_fallback; direct >= 0; direct--) {
		if (f->io_start) {
			list[n++] = (struct attempt){direct, START_BY_TRACEPOINT};
			continue;
		}
		if (f->account_start && direct)
			list[n++] = (struct attempt){direct, START_BY_FENTRY};
		if (f->account_start)
			list[n++] = (struct attempt){direct, START_BY_KPROBE};
		if (f->getrq == PROBES_SHAPE_PLAIN)
			list[n++] = (struct attempt){direct, START_BY_GETRQ};
		else
			list[n++] = (struct attempt){direct, START_BY_NOTHING};
	}
	return n;
}

static bool file_contains(const char *path, const char *what)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[256];

	return f && fgets(line, sizeof(line), f) && strstr(line, what);
}

/* Capabilities that loading needs and this process has not: "" if none. */
static const char *missing_capability(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	uint64_t caps = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "CapEff:", 7) != 0)
			continue;
		for (const char *s = line + 7; *s; s++) {
			if (*s >= '0' && *s <= '9')
				caps = caps << 4 | (uint64_t)(*s - '0');
			else if (*s >= 'a' && *s <= 'f')
				caps = caps << 4 | (uint64_t)(*s - 'a' + 10);
		}
	}
	if (caps & 1ULL << CAP_SYS_ADMIN)
		return "";
	if (!(caps & 1ULL << CAP_BPF))
		return caps & 1ULL << CAP_PERFMON ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
	return caps & 1ULL << CAP_PERFMON ? "" : "CAP_PERFMON";
}

static int load_error(int code, struct iot_error *err)
{
	if (file_contains("/sys/kernel/security/lockdown", "[confidentiality]"))
		return iot_error_set(err, -EOPNOTSUPP,
				     "the kernel is locked down (confidentiality): it lets no "
				     "program read kernel "
				     "memory; boot with lockdown=integrity or none");
	if (code == -EPERM)
		return iot_error_set(
			err, -EOPNOTSUPP,
			"the kernel refuses tracing programs (Operation not permitted) although no "
			"capability is missing: a security module or a container's limits; %s",
			first_complaint);
	return iot_error_set(err, code, "the kernel does not take the programs: %s (%s)",
			     strerror(-code),
			     first_complaint[0] ? first_complaint : "libbpf gives no reason");
}

static int load(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	struct attempt list[8];
	struct iot_error own = {0};
	size_t n = list_attempts(&p->facts, opts->force_fallback, list);
	int r = -ENOTSUP;

	for (size_t i = 0; i < n; i++) {
		first_complaint[0] = '\0';
		r = try_load(p, &list[i], opts->stream, &own);
		if (r >= 0)
			return 0;
		if (own.text[0])
			return iot_error_set(err, r, "%s", own.text);
	}
	return load_error(r, err);
}

static int attach(struct probes *p, struct iot_error *err)
{
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		struct iot_probe *row = &p->table[i];

		if (!p->rows[i].program)
			continue;
		p->rows[i].link = bpf_program__attach(p->rows[i].program);
		if (p->rows[i].link)
			continue;
		row->state = IOT_ATTACH_REFUSED;
		row->error = -errno;
		snprintf(row->detail, sizeof(row->detail), "%s", strerror(errno));
		if (row->id == EV_PROBE_BLOCK_COMPLETE)
			return iot_error_set(err, row->error,
					     "cannot attach to %s, which makes the records: %s",
					     row->name, row->detail);
	}
	return 0;
}

int probes_open(const struct probes_options *opts, struct probes **ret, struct iot_error *err)
{
	const char *missing = missing_capability();
	libbpf_print_fn_t print_before;
	struct probes *p;
	int r;

	if (missing[0])
		return iot_error_set(
			err, -EPERM,
			"loading the programs needs %s: run as root, or give the service "
			"these capabilities",
			missing);
	p = calloc(1, sizeof(*p));
	if (!p)
		return iot_error_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	for (unsigned int i = 0; i < IOT_MAX_RINGS; i++)
		p->rings[i].fd = -EBADF;
	print_before = libbpf_set_print(opts->print_libbpf ? print_all : keep_complaint);
	r = probes_decide(&p->facts, err);
	if (r >= 0)
		r = load(p, opts, err);
	if (r >= 0)
		r = probes_maps_fill(p, err);
	if (r >= 0) {
		r = probes_set_devices(p, opts->devices);
		if (r < 0)
			(void)iot_error_set(err, r, "cannot set the device filter: %s",
					    strerror(-r));
	}
	if (r >= 0)
		r = attach(p, err);
	libbpf_set_print(print_before);
	if (r < 0) {
		probes_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

int probes_gate(struct probes *p, bool open, uint64_t *ret_ns)
{
	struct ev_epoch next;
	struct timespec ts;
	uint64_t now;
	int r;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		return -errno;
	now = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
	pthread_mutex_lock(&p->lock);
	next = p->active;
	next.gate = open;
	r = probes_publish(p, &next);
	pthread_mutex_unlock(&p->lock);
	if (r < 0)
		return r;
	/*
	 * The gate opens somewhere within the publication. Claiming too little is safe: open from its end,
	 * closed from its beginning.
	 */
	if (open && clock_gettime(CLOCK_MONOTONIC, &ts) == 0)
		now = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		if (p->table[i].state != IOT_ATTACH_ATTACHED)
			continue;
		if (open && !p->table[i].from_ns)
			p->table[i].from_ns = now;
		/* The worker looks at it whenever an epoch begins or ends. */
		__atomic_store_n(&p->table[i].to_ns, open ? 0 : now, __ATOMIC_RELAXED);
	}
	*ret_ns = now;
	return 0;
}

void probes_detach(struct probes *p)
{
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		bpf_link__destroy(p->rows[i].link);
		p->rows[i].link = NULL;
	}
}

struct probes *probes_close(struct probes *p)
{
	if (!p)
		return NULL;
	probes_detach(p);
	probes_maps_done(p);
	block_bpf__destroy(p->skel);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

/* ---- figures ---------------------------------------------------------------------------------- */

const struct probes_kernel *probes_kernel(const struct probes *p)
{
	return &p->facts.kernel;
}

const struct iot_probe *probes_table(const struct probes *p, size_t *ret_n)
{
	*ret_n = PROBES_N_ROWS;
	return p->table;
}

static int program_info(const struct bpf_program *program, struct bpf_prog_info *ret)
{
	uint32_t len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(bpf_program__fd(program), ret, &len);
}

static uint64_t row_missed(const struct iot_probe *row, const struct bpf_prog_info *info)
{
	if (row->miss == IOT_MISS_NOT_MEASURABLE)
		return IOT_COUNT_UNKNOWN;
	return row->miss == IOT_MISS_COUNTED ? info->recursion_misses : 0;
}

int probes_missed(struct probes *p, uint64_t *missed)
{
	struct bpf_prog_info info;
	int r;

	memset(missed, 0, EV_N_BLOCK_PROBES * sizeof(missed[0]));
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		const struct iot_probe *row = &p->table[i];

		if (row->state != IOT_ATTACH_ATTACHED)
			continue;
		r = program_info(p->rows[i].program, &info);
		if (r < 0)
			return r;
		missed[row->id] = row_missed(row, &info);
	}
	return 0;
}

int probes_run_stats(struct probes *p, struct probes_run_stats **ret, size_t *ret_n)
{
	_cleanup_free_ struct probes_run_stats *stats = NULL;
	struct bpf_prog_info info;
	size_t n = 0;
	int r;

	stats = calloc(PROBES_N_ROWS, sizeof(*stats));
	if (!stats)
		return -ENOMEM;
	for (size_t i = 0; i < PROBES_N_ROWS; i++) {
		const struct iot_probe *row = &p->table[i];

		if (row->state != IOT_ATTACH_ATTACHED)
			continue;
		r = program_info(p->rows[i].program, &info);
		if (r < 0)
			return r;
		snprintf(stats[n].program, sizeof(stats[n].program), "%s",
			 bpf_program__name(p->rows[i].program));
		stats[n].probe = row->id;
		stats[n].run_count = info.run_cnt;
		stats[n].run_time_ns = info.run_time_ns;
		stats[n].missed = row_missed(row, &info);
		n++;
	}
	*ret = IOT_TAKE_PTR(stats);
	*ret_n = n;
	return 0;
}
