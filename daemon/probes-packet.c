/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet.c - which programs serve the packet stream on this kernel, and loading them.
 *
 * A hook has one or more programs, for the argument lists that kernels give it, each as tp_btf (plain
 * loads) and as raw_tp (copies). BTF says whether the hook exists and how many arguments it has; the
 * kernel has the last word: a program that does not load is replaced by its raw_tp twin, and if that
 * does not load either, the hook is a row that says `refused` in the probe table, and everything else
 * goes on without it.
 */
#include <assert.h>
#include <bpf/btf.h>

#include "daemon/probes-filter.h"
#include "daemon/probes-internal.h"
#include "packet.skel.h"

#define IDENTITIES_DEFAULT 131072U /* sk_buffs of this many addresses */
#define IDENTITIES_MAX (1U << 22)
#define RARE_PER_SECOND_DEFAULT 100U
#define RARE_PER_SECOND_MAX 1000000U

enum group {
	GROUP_ALWAYS,
	GROUP_GRO,
	GROUP_QDISC,
};

/* Programs of one hook, most arguments first; the names lack _btf or _raw. */
struct hook {
	uint16_t probe;
	uint8_t group;
	const char *tracepoint;
	struct {
		unsigned int n_args; /* at least */
		const char *program;
	} shapes[2];
};

#define ONE(n, name)            \
	{                       \
		{n, name},      \
		{               \
			0, NULL \
		}               \
	}

static const struct hook hooks[] = {
	{EV_PROBE_NETIF_RECEIVE_SKB, GROUP_ALWAYS, "netif_receive_skb",
	 ONE(1, "netif_receive_skb")},
	{EV_PROBE_NETIF_RX, GROUP_ALWAYS, "netif_rx", ONE(1, "netif_rx")},
	{EV_PROBE_NET_DEV_QUEUE, GROUP_ALWAYS, "net_dev_queue", ONE(1, "net_dev_queue")},
	{EV_PROBE_NET_DEV_START_XMIT, GROUP_ALWAYS, "net_dev_start_xmit",
	 ONE(2, "net_dev_start_xmit")},
	{EV_PROBE_NET_DEV_XMIT, GROUP_ALWAYS, "net_dev_xmit", ONE(4, "net_dev_xmit")},
	{EV_PROBE_CONSUME_SKB, GROUP_ALWAYS, "consume_skb", ONE(1, "consume_skb")},
	{EV_PROBE_KFREE_SKB,
	 GROUP_ALWAYS,
	 "kfree_skb",
	 {{3, "kfree_skb_reason"}, {2, "kfree_skb"}}},
	{EV_PROBE_TCP_RETRANSMIT_SKB, GROUP_ALWAYS, "tcp_retransmit_skb",
	 ONE(2, "tcp_retransmit_skb")},
	{EV_PROBE_TCP_SEND_RESET, GROUP_ALWAYS, "tcp_send_reset", ONE(2, "tcp_send_reset")},
	{EV_PROBE_TCP_BAD_CSUM, GROUP_ALWAYS, "tcp_bad_csum", ONE(1, "tcp_bad_csum")},
	{EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB,
	 GROUP_ALWAYS,
	 "udp_fail_queue_rcv_skb",
	 {{3, "udp_fail_queue_rcv_skb_skb"}, {2, "udp_fail_queue_rcv_skb"}}},
	{EV_PROBE_SOCK_RCVQUEUE_FULL, GROUP_ALWAYS, "sock_rcvqueue_full",
	 ONE(2, "sock_rcvqueue_full")},
	{EV_PROBE_NAPI_GRO_RECEIVE_ENTRY, GROUP_GRO, "napi_gro_receive_entry",
	 ONE(1, "napi_gro_receive_entry")},
	{EV_PROBE_NAPI_GRO_RECEIVE_EXIT, GROUP_GRO, "napi_gro_receive_exit",
	 ONE(1, "napi_gro_receive_exit")},
	{EV_PROBE_NAPI_GRO_FRAGS_ENTRY, GROUP_GRO, "napi_gro_frags_entry",
	 ONE(1, "napi_gro_frags_entry")},
	{EV_PROBE_NAPI_GRO_FRAGS_EXIT, GROUP_GRO, "napi_gro_frags_exit",
	 ONE(1, "napi_gro_frags_exit")},
	{EV_PROBE_QDISC_ENQUEUE, GROUP_QDISC, "qdisc_enqueue", ONE(3, "qdisc_enqueue")},
	{EV_PROBE_QDISC_DEQUEUE, GROUP_QDISC, "qdisc_dequeue", ONE(4, "qdisc_dequeue")},
};

#define N_HOOKS IOT_ARRAY_SIZE(hooks)
_Static_assert(IOT_ARRAY_SIZE(hooks) <= PROBES_MAX_ROWS, "the probe table has no room for a hook");

/* How a hook is served, from best to not at all. */
enum by {
	BY_BTF,
	BY_RAW,
	BY_NOTHING,
};

struct plan {
	const char *program[N_HOOKS]; /* NULL: absent, or not wanted */
	enum by by[N_HOOKS];
	bool absent[N_HOOKS];
	int error[N_HOOKS]; /* of the last load that failed */
	bool counts;	    /* skipped runs */
};

static bool is_wanted(const struct hook *h, const struct probes_packet_options *o)
{
	return h->group == GROUP_ALWAYS || (h->group == GROUP_GRO && o->gro) ||
	       (h->group == GROUP_QDISC && o->qdisc);
}

static void choose(const struct btf *btf, const struct probes_options *opts,
		   const struct probes_packet_options *o, struct plan *ret)
{
	bool fentry;

	memset(ret, 0, sizeof(*ret));
	probes_counting(btf, &ret->counts, &fentry);
	for (size_t i = 0; i < N_HOOKS; i++) {
		const struct btf_type *proto = probes_tracepoint_proto(btf, hooks[i].tracepoint);
		unsigned int n_args = proto ? btf_vlen(proto) - 1U : 0;

		ret->by[i] = opts->force_fallback ? BY_RAW : BY_BTF;
		for (size_t k = 0; k < 2 && !ret->program[i]; k++) {
			if (hooks[i].shapes[k].program && n_args >= hooks[i].shapes[k].n_args)
				ret->program[i] = hooks[i].shapes[k].program;
		}
		ret->absent[i] = !ret->program[i];
		if (!is_wanted(&hooks[i], o))
			ret->program[i] = NULL;
	}
}

static void program_name(const struct plan *plan, size_t i, char ret[64])
{
	snprintf(ret, 64, "%s_%s", plan->program[i], plan->by[i] == BY_BTF ? "btf" : "raw");
}

/* Fills table and rows, and has the chosen programs loaded. */
static void set_rows(struct probes *p, const struct plan *plan)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, p->packet_skel->obj)
		bpf_program__set_autoload(program, false);
	p->n_rows = N_HOOKS;
	for (size_t i = 0; i < N_HOOKS; i++) {
		struct iot_probe *row = &p->table[i];
		char name[64];

		memset(row, 0, sizeof(*row));
		p->rows[i] = (struct probes_row){0};
		row->id = hooks[i].probe;
		snprintf(row->name, sizeof(row->name), "%s", hooks[i].tracepoint);
		if (plan->absent[i]) {
			row->state = IOT_ATTACH_ABSENT;
			snprintf(row->detail, sizeof(row->detail), "this kernel has no such hook");
		} else if (!plan->program[i]) {
			row->state = IOT_ATTACH_NOT_NEEDED;
			snprintf(row->detail, sizeof(row->detail), "not asked for");
		} else if (plan->by[i] == BY_NOTHING) {
			row->state = IOT_ATTACH_REFUSED;
			row->error = plan->error[i];
			snprintf(row->detail, sizeof(row->detail), "does not load: %s",
				 strerror(-plan->error[i]));
		} else {
			program_name(plan, i, name);
			program = bpf_object__find_program_by_name(p->packet_skel->obj, name);
			assert(program && "a hook names a program that does not exist");
			bpf_program__set_autoload(program, true);
			p->rows[i].program = program;
			row->state = IOT_ATTACH_ATTACHED;
			row->miss = plan->counts ? IOT_MISS_COUNTED : IOT_MISS_UNGUARDED;
			snprintf(row->hook, sizeof(row->hook), "%s",
				 plan->by[i] == BY_BTF ? "tp_btf" : "raw_tp");
		}
	}
}

/* Takes what failed to load out of the plan. false: nothing of ours, so trying again is no use. */
static bool demote(struct plan *plan, int error)
{
	char name[64];

	for (size_t i = 0; i < N_HOOKS; i++) {
		if (!plan->program[i] || plan->by[i] == BY_NOTHING)
			continue;
		program_name(plan, i, name);
		if (strcmp(name, probes_failed_program) != 0)
			continue;
		plan->by[i]++;
		plan->error[i] = error;
		return true;
	}
	return false;
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

static int try_load(struct probes *p, const struct plan *plan, const uint8_t *image,
		    const struct iot_stream_config *stream, const struct probes_packet_options *o,
		    struct iot_error *err)
{
	struct probes_dimensions d;
	struct packet_bpf *skel = NULL;
	int r;

	r = open_image(image, &skel, err);
	if (r < 0)
		return r;
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
	p->identity_entries = bounded(o->identities, IDENTITIES_DEFAULT, IDENTITIES_MAX);
	set_rows(p, plan);
	r = probes_maps_size(p, stream, &d, err);
	if (r >= 0) {
		skel->rodata->emit_n_cpus = d.n_cpus;
		skel->rodata->emit_n_rings = d.n_rings;
		skel->rodata->emit_ring_cpus = d.ring_cpus;
		skel->rodata->emit_wake_bytes = d.wake_bytes;
		skel->rodata->packet_exact = p->packet_kernel.exact_identity;
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
	}
	return r;
}

static int load_planned(struct probes *p, const struct probes_options *opts,
			const struct probes_packet_options *o, struct plan *plan,
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
	} while (demote(plan, r));
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

int probes_packet_load(struct probes *p, const struct probes_options *opts, struct iot_error *err)
{
	static const struct probes_packet_options defaults;
	const struct probes_packet_options *o = opts->packet ? opts->packet : &defaults;
	struct probes_packet_kernel *k = &p->packet_kernel;
	const struct btf_type *proto;
	struct plan plan;
	struct btf *btf;
	int r;

	btf = btf__load_vmlinux_btf();
	if (!btf)
		return iot_error_set(err, -ENOTSUP, "cannot read the kernel's BTF: %s",
				     strerror(errno));
	p->first_probe = EV_FIRST_PACKET_PROBE;
	p->n_probes = EV_N_PACKET_PROBES;
	p->ledger_val_bytes = sizeof(struct ev_packet_loss);
	p->identity_bytes = sizeof(struct ev_packet_entry);
	p->idle_since = entry_idle_since;
	p->active.sample = o->sample;
	choose(btf, opts, o, &plan);
	proto = probes_tracepoint_proto(btf, "kfree_skb");
	k->has_reasons = proto && btf_vlen(proto) >= 4;
	snprintf(k->identity_detail, sizeof(k->identity_detail),
		 "tracepoints alone do not show every birth and end of a packet");
	r = probes_packet_reasons(btf, &k->reasons, &k->n_reasons);
	btf__free(btf);
	if (r < 0)
		return iot_error_set(err, r, "cannot read the kernel's BTF: %s", strerror(-r));
	r = load_planned(p, opts, o, &plan, err);
	if (r >= 0 && !has_programs(p))
		return iot_error_set(err, -EOPNOTSUPP, "the kernel takes none of the programs: %s",
				     probes_first_complaint);
	return r;
}

void probes_packet_close(struct probes *p)
{
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
