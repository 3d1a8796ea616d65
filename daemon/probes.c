/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes.c - open, attach, gate: the life of a stream's kernel side, whichever stream it is.
 *
 * Which programs there are and how they load is decided by the stream's own room (probes-block.c,
 * probes-packet.c). Attaching then happens hook by hook with the gate closed; a hook that is refused is
 * a row in the probe table, and an error only if the stream cannot do without it.
 */
#include <assert.h>
#include <linux/capability.h>
#include <time.h>

#include "daemon/adopt.h"
#include "daemon/probes-internal.h"

/* libbpf reports through a process-wide callback without an argument; loading is done by one thread. */
char probes_first_complaint[256];
char probes_failed_program[64];

/* "libbpf: prog 'NAME': failed to load: -13": the only place where libbpf says which one it was. */
static void keep_failed_program(const char *text)
{
	const char *name = strstr(text, "prog '"), *end;

	if (!name || !strstr(text, "failed to load"))
		return;
	name += strlen("prog '");
	end = strchr(name, '\'');
	if (end)
		snprintf(probes_failed_program, sizeof(probes_failed_program), "%.*s",
			 (int)(end - name), name);
}

int probes_keep_complaint(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char text[512]; /* a verifier's log is longer and of no interest here */

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), fmt, args);
	keep_failed_program(text);
	if (!probes_first_complaint[0]) {
		snprintf(probes_first_complaint, sizeof(probes_first_complaint), "%.*s",
			 (int)strcspn(text, "\n"), text);
	}
	return 0;
}

static int print_all(enum libbpf_print_level level, const char *fmt, va_list args)
{
	va_list again;

	va_copy(again, args);
	probes_keep_complaint(level, fmt, again);
	va_end(again);
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, fmt, args);
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

int probes_load_error(int code, struct iot_error *err)
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
			probes_first_complaint);
	return iot_error_set(
		err, code, "the kernel does not take the programs: %s (%s)", strerror(-code),
		probes_first_complaint[0] ? probes_first_complaint : "libbpf gives no reason");
}

/* The whole of a row, or nothing of it. */
static int attach_row(struct probes_row *row)
{
	int r;

	row->link = row->kprobe ? bpf_program__attach_kprobe(row->program, false, row->kprobe)
				: bpf_program__attach(row->program);
	if (!row->link)
		return -errno;
	if (!row->copy)
		return 0;
	row->copy_link = bpf_program__attach(row->copy);
	if (row->copy_link)
		return 0;
	r = -errno;
	bpf_link__destroy(row->link);
	row->link = NULL;
	return r;
}

static int attach(struct probes *p, struct iot_error *err)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		struct iot_probe *row = &p->table[i];
		int r;

		if (!p->rows[i].program)
			continue;
		r = attach_row(&p->rows[i]);
		if (r >= 0) {
			p->rows[i].link_fd = bpf_link__fd(p->rows[i].link);
			p->rows[i].program_fd = bpf_program__fd(p->rows[i].program);
			p->rows[i].copy_fd = p->rows[i].copy ? bpf_program__fd(p->rows[i].copy)
							     : -EBADF;
			p->rows[i].copy_link_fd =
				p->rows[i].copy ? bpf_link__fd(p->rows[i].copy_link) : -EBADF;
			continue;
		}
		row->state = IOT_ATTACH_REFUSED;
		row->error = r;
		snprintf(row->detail, sizeof(row->detail), "%s", strerror(-r));
		if (p->rows[i].essential)
			return iot_error_set(err, row->error,
					     "cannot attach to %s, which makes the records: %s",
					     row->name, row->detail);
	}
	return 0;
}

struct probes *probes_alloc(const struct probes_options *opts)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->kind = opts->kind ? opts->kind : IOT_STREAM_BLOCK;
	p->adopt = opts->adopt;
	for (unsigned int i = 0; i < IOT_MAX_RINGS; i++)
		p->rings[i].fd = -EBADF;
	for (size_t i = 0; i < PROBES_MAX_ROWS; i++)
		p->rows[i] = PROBES_NO_ROW;
	return p;
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
	p = probes_alloc(opts);
	if (!p)
		return iot_error_set(err, -ENOMEM, "out of memory");
	print_before = libbpf_set_print(opts->print_libbpf ? print_all : probes_keep_complaint);
	if (p->kind == IOT_STREAM_BLOCK)
		r = probes_block_load(p, opts, err);
	else
		r = probes_packet_load(p, opts, err);
	if (r >= 0)
		r = probes_maps_fill(p, err);
	if (r >= 0 && p->kind == IOT_STREAM_BLOCK) {
		r = probes_set_devices(p, opts->devices);
		if (r >= 0)
			r = probes_set_swap(p, opts->stream->swap);
		if (r < 0)
			(void)iot_error_set(err, r, "cannot set the filter: %s", strerror(-r));
	}
	if (r >= 0)
		r = attach(p, err);
	if (r >= 0 && p->kind == IOT_STREAM_PACKET)
		r = probes_packet_attached(p, err);
	if (r >= 0 && p->kind == IOT_STREAM_PACKET)
		r = probes_packet_observe_programs(p, opts, err);
	libbpf_set_print(print_before);
	if (r < 0) {
		probes_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

static void end_rows(struct probes *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->table[i].state != IOT_ATTACH_ATTACHED || p->table[i].to_ns)
			continue;
		/* The worker looks at it whenever an epoch begins or ends. */
		__atomic_store_n(&p->table[i].to_ns, now_ns, __ATOMIC_RELAXED);
	}
	probes_note_table(p);
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
	/* Should we be killed in between, a successor knows since when nothing may have been seen. */
	if (!open)
		end_rows(p, now);
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
	for (size_t i = 0; open && i < p->n_rows; i++) {
		if (p->table[i].state != IOT_ATTACH_ATTACHED || p->table[i].gone)
			continue;
		if (!p->table[i].from_ns)
			p->table[i].from_ns = now;
		__atomic_store_n(&p->table[i].to_ns, 0, __ATOMIC_RELAXED);
	}
	if (open)
		probes_note_table(p);
	*ret_ns = now;
	return 0;
}

void probes_detach_row(struct probes *p, size_t i)
{
	bpf_link__destroy(p->rows[i].link);
	bpf_link__destroy(p->rows[i].copy_link);
	p->rows[i].link = NULL;
	p->rows[i].copy_link = NULL;
	if (p->rows[i].adopted && p->rows[i].link_fd >= 0)
		close(p->rows[i].link_fd);
	if (p->rows[i].adopted && p->rows[i].copy_link_fd >= 0)
		close(p->rows[i].copy_link_fd);
	p->rows[i].link_fd = p->rows[i].copy_link_fd = -EBADF;
}

void probes_detach(struct probes *p)
{
	for (size_t i = 0; i < p->n_rows; i++)
		probes_detach_row(p, i);
	probes_programs_detach(p);
}

struct probes *probes_close(struct probes *p)
{
	if (!p)
		return NULL;
	probes_detach(p);
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].adopted && p->rows[i].program_fd >= 0)
			close(p->rows[i].program_fd);
		if (p->rows[i].adopted && p->rows[i].copy_fd >= 0)
			close(p->rows[i].copy_fd);
	}
	probes_programs_close(p);
	probes_maps_done(p);
	probes_block_close(p);
	probes_packet_close(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

/* ---- figures ---------------------------------------------------------------------------------- */

size_t probes_record_bytes(const struct probes *p)
{
	size_t bytes = probes_stream(p) == IOT_STREAM_PACKET ? sizeof(struct ev_packet)
							     : sizeof(struct ev_block);

	return bytes + BPF_RINGBUF_HDR_SZ;
}

enum iot_stream probes_stream(const struct probes *p)
{
	return p->kind;
}

unsigned int probes_first_probe(const struct probes *p)
{
	return p->first_probe;
}

unsigned int probes_n_probes(const struct probes *p)
{
	return p->n_probes;
}

const struct probes_kernel *probes_kernel(const struct probes *p)
{
	return &p->facts.kernel;
}

const struct iot_probe *probes_table(const struct probes *p, size_t *ret_n)
{
	/* Rows are added while the stream runs, and are whole when they are. */
	*ret_n = __atomic_load_n(&p->n_rows, __ATOMIC_ACQUIRE);
	return p->table;
}

int probes_program_info(int fd, struct bpf_prog_info *ret)
{
	uint32_t len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &len);
}

/* info: of the row's program. */
static int row_missed(struct probes *p, size_t i, const struct bpf_prog_info *info, uint64_t *ret)
{
	const struct iot_probe *row = &p->table[i];
	struct bpf_prog_info copy = {0};
	uint64_t sum;
	int r;

	if (row->miss == IOT_MISS_NOT_MEASURABLE) {
		*ret = IOT_COUNT_UNKNOWN;
		return 0;
	}
	if (p->rows[i].observes) {
		r = probes_programs_missed(p->rows[i].observes, &sum);
		if (r >= 0)
			*ret = probes_packet_missed(p, i, row->miss == IOT_MISS_COUNTED ? sum : 0);
		return r;
	}
	if (p->rows[i].copy_fd >= 0) {
		r = probes_program_info(p->rows[i].copy_fd, &copy);
		if (r < 0)
			return r;
	}
	sum = row->miss == IOT_MISS_COUNTED ? info->recursion_misses + copy.recursion_misses : 0;
	*ret = p->kind == IOT_STREAM_PACKET ? probes_packet_missed(p, i, sum) : sum;
	return 0;
}

int probes_missed(struct probes *p, uint64_t *missed)
{
	size_t n_rows = __atomic_load_n(&p->n_rows, __ATOMIC_ACQUIRE);
	struct bpf_prog_info info;
	int r;

	memset(missed, 0, p->n_probes * sizeof(missed[0]));
	for (size_t i = 0; i < n_rows; i++) {
		const struct iot_probe *row = &p->table[i];

		if (row->state != IOT_ATTACH_ATTACHED)
			continue;
		r = probes_program_info(p->rows[i].program_fd, &info);
		if (r < 0)
			return r;
		r = row_missed(p, i, &info, &missed[row->id - p->first_probe]);
		if (r < 0)
			return r;
	}
	return 0;
}

int probes_run_stats(struct probes *p, struct probes_run_stats **ret, size_t *ret_n)
{
	_cleanup_free_ struct probes_run_stats *stats = NULL;
	size_t n = 0, n_rows = __atomic_load_n(&p->n_rows, __ATOMIC_ACQUIRE);
	struct bpf_prog_info info;
	int r;

	stats = calloc(n_rows, sizeof(*stats));
	if (!stats)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++) {
		const struct iot_probe *row = &p->table[i];

		if (row->state != IOT_ATTACH_ATTACHED)
			continue;
		r = probes_program_info(p->rows[i].program_fd, &info);
		if (r < 0)
			return r;
		snprintf(stats[n].program, sizeof(stats[n].program), "%s",
			 p->rows[i].program ? bpf_program__name(p->rows[i].program) : info.name);
		stats[n].probe = row->id;
		stats[n].run_count = info.run_cnt;
		stats[n].run_time_ns = info.run_time_ns;
		r = row_missed(p, i, &info, &stats[n].missed);
		if (r < 0)
			return r;
		n++;
	}
	*ret = IOT_TAKE_PTR(stats);
	*ret_n = n;
	return 0;
}
