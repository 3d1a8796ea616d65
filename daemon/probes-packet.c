/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet.c - loading the programs of the packet stream.
 *
 * probes-packet-hooks.c plans by BTF which programs serve this kernel; the kernel has the last word: a
 * program that does not load is replaced by its twin (raw_tp for tp_btf, a kprobe for fentry where that is
 * wanted), and if that does not load either, the hook is a row that says `refused` in the probe table,
 * and everything else goes on without it.
 */
#include <assert.h>
#include <bpf/btf.h>
#include <sys/mman.h>

#include "daemon/adopt.h"
#include "daemon/probes-filter.h"
#include "daemon/probes-packet.h"
#include "packet.skel.h"

#define IDENTITIES_DEFAULT 131072U /* sk_buffs of this many addresses */
#define IDENTITIES_MAX (1U << 22)
#define RARE_PER_SECOND_DEFAULT 100U
#define RARE_PER_SECOND_MAX 1000000U

static const char *const hooked_by[] = {
	[PACKET_BY_BTF] = "tp_btf",    [PACKET_BY_RAW] = "raw_tp",  [PACKET_BY_FENTRY] = "fentry",
	[PACKET_BY_KPROBE] = "kprobe", [PACKET_BY_FEXIT] = "fexit",
};

static uint8_t misses_of(const struct packet_plan *plan, const struct packet_hook *h)
{
	/*
	 * A kprobe is skipped where another one runs already, too, which is counted since 6.7 only, and
	 * there is nothing to read it by in the interface that we are built with: it counts as not known.
	 */
	if (h->by == PACKET_BY_KPROBE)
		return IOT_MISS_NOT_MEASURABLE;
	return (h->by == PACKET_BY_FENTRY || h->by == PACKET_BY_FEXIT ? plan->counts_fentry
								      : plan->counts_tracing)
		       ? IOT_MISS_COUNTED
		       : IOT_MISS_UNGUARDED;
}

/* Has a program of h loaded. */
static struct bpf_program *take_program(struct probes *p, const struct packet_hook *h, bool second)
{
	struct bpf_program *program;
	char name[64];

	packet_hook_program(h, second, name);
	program = bpf_object__find_program_by_name(p->packet_skel->obj, name);
	assert(program && "a hook names a program that does not exist");
	bpf_program__set_autoload(program, true);
	/* Under another name: where that cannot be had, loading fails, and the hook is refused. */
	if (h->by >= PACKET_BY_FENTRY && h->by != PACKET_BY_KPROBE &&
	    strcmp(h->name, h->program) != 0)
		(void)bpf_program__set_attach_target(program, 0, h->name);
	return program;
}

/* Fills table and rows, and has the chosen programs loaded. */
static void set_rows(struct probes *p, const struct packet_plan *plan)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, p->packet_skel->obj)
		bpf_program__set_autoload(program, false);
	p->n_rows = plan->n;
	for (size_t i = 0; i < plan->n; i++) {
		const struct packet_hook *h = &plan->hooks[i];
		struct iot_probe *row = &p->table[i];

		memset(row, 0, sizeof(*row));
		p->rows[i] = PROBES_NO_ROW;
		row->id = h->probe;
		snprintf(row->name, sizeof(row->name), "%s", h->name);
		if (h->by == PACKET_BY_NOTHING) {
			row->state = h->state;
			row->error = h->error;
			snprintf(row->detail, sizeof(row->detail), "%s", h->detail);
			continue;
		}
		p->rows[i].program = take_program(p, h, false);
		p->rows[i].copy = h->twice ? take_program(p, h, true) : NULL;
		p->rows[i].kprobe = h->by == PACKET_BY_KPROBE ? h->name : NULL;
		p->rows[i].role = h->role;
		row->state = IOT_ATTACH_ATTACHED;
		row->miss = misses_of(plan, h);
		snprintf(row->hook, sizeof(row->hook), "%s", hooked_by[h->by]);
	}
}

static uint64_t entry_idle_since(const void *value)
{
	const struct ev_packet_entry *e = value;

	return e->generation ? 0 : e->end_ns;
}

/* The last reason that says nothing: 1 in 5.17, 2 since SKB_CONSUMED came (d8d222a0ddc6, 6.5). */
static uint32_t reason_unspecified(const struct probes_packet_kernel *k)
{
	for (size_t i = 0; i < k->n_reasons; i++) {
		if (strcmp(k->reasons[i].name, "NOT_SPECIFIED") == 0)
			return k->reasons[i].value;
	}
	return 0;
}

static uint32_t bounded(uint64_t asked, uint32_t otherwise, uint32_t max)
{
	return asked ? (uint32_t)IOT_MIN(asked, max) : otherwise;
}

/* The object's image, a copy of the embedded one, with the expression's instructions in it. */
static int make_image(const char *expression, uint8_t **ret, struct iot_error *err)
{
	struct filter_insn insns[FILTER_ROOM];
	size_t bytes;
	const void *embedded = packet_bpf__elf_bytes(&bytes);
	_cleanup_free_ uint8_t *image = malloc(bytes);
	int r;

	if (!image)
		return iot_error_set(err, -ENOMEM, "out of memory");
	memcpy(image, embedded, bytes);
	if (expression && expression[0]) {
		r = filter_compile(expression, insns, err);
		if (r < 0)
			return r;
		if (filter_write(image, bytes, insns) == 0)
			return iot_error_set(err, -EINVAL,
					     "the embedded programs have no place "
					     "for a filter expression");
	}
	*ret = IOT_TAKE_PTR(image);
	return 0;
}

/* As packet_bpf__open_opts(), but from image. */
static int open_image(const uint8_t *image, struct packet_bpf **ret, struct iot_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/sys/kernel/btf/vmlinux");
	struct packet_bpf *skel = calloc(1, sizeof(*skel));
	int r;

	r = skel ? packet_bpf__create_skeleton(skel) : -ENOMEM;
	if (r >= 0) {
		skel->skeleton->data = (void *)(uintptr_t)image;
		r = bpf_object__open_skeleton(skel->skeleton, &opts);
	}
	if (r < 0) {
		packet_bpf__destroy(skel);
		return iot_error_set(err, r, "cannot open the embedded programs: %s", strerror(-r));
	}
	*ret = skel;
	return 0;
}

static void name_maps(struct probes *p, struct packet_bpf *skel)
{
	p->packet_skel = skel;
	p->object = skel->obj;
	p->maps = (struct probes_maps){
		.cells = skel->maps.cells,
		.rings = skel->maps.rings,
		.control = skel->maps.control,
		.epochs = skel->maps.epochs,
		.ledger = {skel->maps.ledger0, skel->maps.ledger1},
		.identities = skel->maps.identities,
	};
}

static int try_load(struct probes *p, const struct packet_plan *plan, const uint8_t *image,
		    const struct iot_stream_config *stream, const struct probes_packet_options *o,
		    struct iot_error *err)
{
	struct probes_dimensions d;
	struct packet_bpf *skel = NULL;
	int r;

	r = open_image(image, &skel, err);
	if (r < 0)
		return r;
	name_maps(p, skel);
	p->identity_entries = bounded(o->identities, IDENTITIES_DEFAULT, IDENTITIES_MAX);
	set_rows(p, plan);
	r = probes_maps_size(p, stream, &d, err);
	if (r >= 0) {
		skel->rodata->emit_n_cpus = d.n_cpus;
		skel->rodata->emit_n_rings = d.n_rings;
		skel->rodata->emit_ring_cpus = d.ring_cpus;
		skel->rodata->emit_wake_bytes = d.wake_bytes;
		skel->rodata->packet_has_filter = o->expression && o->expression[0];
		skel->rodata->packet_reason_unspecified = reason_unspecified(&p->packet_kernel);
		skel->rodata->packet_bucket_rate =
			bounded(o->rare_per_second, RARE_PER_SECOND_DEFAULT, RARE_PER_SECOND_MAX);
		r = packet_bpf__load(skel);
	}
	if (r < 0) {
		packet_bpf__destroy(skel);
		p->packet_skel = NULL;
		memset(p->rows, 0, sizeof(p->rows));
		return r;
	}
	p->packet_bss = skel->bss;
	p->packet_shared = &skel->data_shared->packet_shared;
	return 0;
}

static int load_planned(struct probes *p, const struct probes_options *opts,
			const struct probes_packet_options *o, struct packet_plan *plan,
			struct iot_error *err)
{
	_cleanup_free_ uint8_t *image = NULL;
	struct iot_error own = {0};
	int r;

	r = make_image(o->expression, &image, err);
	if (r < 0)
		return r;

	/* Each failure takes one step of one hook away, so this ends. */
	do {
		probes_first_complaint[0] = '\0';
		probes_failed_program[0] = '\0';
		r = try_load(p, plan, image, opts->stream, o, &own);
		if (r >= 0)
			return 0;
		if (own.text[0])
			return iot_error_set(err, r, "%s", own.text);
	} while (packet_plan_demote(plan, probes_failed_program, r));
	return probes_load_error(r, err);
}

/* A stream none of whose hooks is there records nothing. */
static bool has_programs(const struct probes *p)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].program)
			return true;
	}
	return false;
}

/* What is the same whether programs are loaded or inherited. */
static int know_kernel(struct probes *p, const struct btf *btf)
{
	struct probes_packet_kernel *k = &p->packet_kernel;
	const struct btf_type *proto = probes_tracepoint_proto(btf, "kfree_skb");

	p->first_probe = EV_FIRST_PACKET_PROBE;
	p->n_probes = EV_N_PACKET_PROBES;
	p->ledger_val_bytes = sizeof(struct ev_packet_loss);
	p->identity_bytes = sizeof(struct ev_packet_entry);
	p->idle_since = entry_idle_since;
	k->has_reasons = proto && btf_vlen(proto) >= 4;
	return probes_packet_reasons(btf, &k->reasons, &k->n_reasons);
}

int probes_packet_load(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	static const struct probes_packet_options defaults;
	const struct probes_packet_options *o = opts->packet ? opts->packet : &defaults;
	struct packet_plan plan;
	struct btf *btf;
	int r;

	btf = btf__load_vmlinux_btf();
	if (!btf)
		return iot_error_set(err, -ENOTSUP, "cannot read the kernel's BTF: %s",
				     strerror(errno));
	p->active.sample = o->sample;
	p->packet_self_test = !o->no_self_test;
	p->packet_deaf = o->deaf;
	p->packet_deaf_later = o->deaf_later;
	packet_plan_make(btf, opts, o, &plan);
	r = know_kernel(p, btf);
	btf__free(btf);
	if (r < 0)
		return iot_error_set(err, r, "cannot read the kernel's BTF: %s", strerror(-r));
	p->packet_counts_fentry = plan.counts_fentry;
	r = load_planned(p, opts, o, &plan, err);
	if (r >= 0 && !has_programs(p))
		return iot_error_set(err, -EOPNOTSUPP, "the kernel takes none of the programs: %s",
				     probes_first_complaint);
	return r;
}

int probes_packet_open(struct probes *p, struct iot_error *err)
{
	const void *embedded;
	struct packet_bpf *skel = NULL;
	struct btf *btf = btf__load_vmlinux_btf();
	size_t bytes;
	int r;

	if (!btf)
		return iot_error_set(err, -ENOTSUP, "cannot read the kernel's BTF: %s",
				     strerror(errno));
	r = know_kernel(p, btf);
	btf__free(btf);
	if (r < 0)
		return iot_error_set(err, r, "cannot read the kernel's BTF: %s", strerror(-r));
	/* Without the expression: what is loaded has it. */
	embedded = packet_bpf__elf_bytes(&bytes);
	r = open_image(embedded, &skel, err);
	if (r < 0)
		return r;
	name_maps(p, skel);
	return 0;
}

static int map_variables(const struct bpf_map *map, size_t bytes, void **ret)
{
	void *m;

	if (bpf_map__value_size(map) < bytes)
		return -EBADMSG;
	m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (m == MAP_FAILED)
		return -errno;
	*ret = m;
	return 0;
}

/* The programs' variables, which libbpf maps only when it loads. */
int probes_packet_reused(struct probes *p)
{
	const struct packet_bpf *skel = p->packet_skel;
	int r;

	r = map_variables(skel->maps.bss, sizeof(*p->packet_bss), &p->packet_mapped);
	if (r >= 0)
		r = map_variables(skel->maps.data_shared, sizeof(*p->packet_shared),
				  &p->packet_shared_mapped);
	if (r < 0)
		return r;
	p->packet_bss = p->packet_mapped;
	p->packet_shared = p->packet_shared_mapped;
	return 0;
}

uint64_t probes_packet_hash(void)
{
	size_t bytes;
	const void *embedded = packet_bpf__elf_bytes(&bytes);

	return adopt_hash(ADOPT_HASH_INIT, embedded, bytes);
}

int probes_packet_observe_programs(struct probes *p, const struct probes_options *opts,
				   struct iot_error *err)
{
	static const struct probes_packet_options defaults;

	return probes_programs_start(p, opts->packet ? opts->packet : &defaults,
				     p->packet_counts_fentry, err);
}

void probes_packet_close(struct probes *p)
{
	if (p->packet_mapped)
		munmap(p->packet_mapped, sizeof(*p->packet_bss));
	if (p->packet_shared_mapped)
		munmap(p->packet_shared_mapped, sizeof(*p->packet_shared));
	p->packet_mapped = p->packet_bss = NULL;
	p->packet_shared_mapped = p->packet_shared = NULL;
	packet_bpf__destroy(p->packet_skel);
	p->packet_skel = NULL;
	free(p->packet_kernel.reasons);
	p->packet_kernel.reasons = NULL;
	p->packet_kernel.n_reasons = 0;
}

const struct probes_packet_kernel *probes_packet_kernel(const struct probes *p)
{
	return &p->packet_kernel;
}
