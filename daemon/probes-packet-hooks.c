/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet-hooks.c - the packet stream's hooks, and which of them this kernel has.
 *
 * A tracepoint has one or more programs, for the argument lists that kernels give it, each as tp_btf (plain
 * loads) and as raw_tp (copies). A function has one, as fentry and as a kprobe, and a list of names,
 * since functions are renamed. BTF says whether a hook exists and how many arguments it has; whether
 * functions can be hooked at all, the kernel is asked by hooking one with a program that does nothing.
 */
#include <assert.h>
#include <bpf/btf.h>

#include "daemon/probes-packet.h"

enum group {
	GROUP_ALWAYS,
	GROUP_GRO,
	GROUP_QDISC,
};

/* Programs of one tracepoint, most arguments first; the names lack _btf or _raw. */
struct tracepoint {
	uint16_t probe;
	uint8_t group;
	const char *name;
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

static const struct tracepoint tracepoints[] = {
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

/* A function on a packet's way. The program is called as the first name, with _fentry or _kprobe. */
struct function {
	uint16_t probe;
	uint8_t n_args; /* at least */
	const char *names[2];
};

static const struct function functions[] = {
	{EV_PROBE_IP_RCV, 1, {"ip_rcv"}},
	{EV_PROBE_IP_LOCAL_DELIVER, 1, {"ip_local_deliver"}},
	{EV_PROBE_IP_FORWARD, 1, {"ip_forward"}},
	{EV_PROBE_IP_OUTPUT, 3, {"ip_output"}},
	{EV_PROBE_IPV6_RCV, 1, {"ipv6_rcv"}},
	{EV_PROBE_IP6_INPUT, 1, {"ip6_input"}},
	{EV_PROBE_IP6_FORWARD, 1, {"ip6_forward"}},
	{EV_PROBE_IP6_OUTPUT, 3, {"ip6_output"}},
	{EV_PROBE_NF_HOOK_SLOW, 2, {"nf_hook_slow"}},
	{EV_PROBE_TCP_V4_RCV, 1, {"tcp_v4_rcv"}},
	{EV_PROBE_TCP_V6_RCV, 1, {"tcp_v6_rcv"}},
	{EV_PROBE_UDP_RCV, 1, {"udp_rcv"}},
	{EV_PROBE_UDPV6_RCV, 1, {"udpv6_rcv"}},
	{EV_PROBE_TCF_CLASSIFY, 1, {"tcf_classify"}},
	{EV_PROBE_DEV_QUEUE_XMIT, 1, {"__dev_queue_xmit"}},
	{EV_PROBE_UDP_ENQUEUE, 2, {"__udp_enqueue_schedule_skb"}},
	{EV_PROBE_SOCK_QUEUE_RCV, 2, {"__sock_queue_rcv_skb"}},
};

/*
 * Where packets come from and go: bpf/packet-births.bpf.h. Each that there is has to be hooked. Measured on 5.10,
 * 6.1, 6.12 and 7.2 with the slab's own events as the truth; later kernels have inlined allocations of
 * their own, so that each function that makes an sk_buff is hooked, nested ones as well.
 */
struct lifetime {
	uint16_t probe;
	uint8_t role;
	uint8_t n_args;
	const char *names[2];
	uint16_t unless; /* not needed where that one is served */
};

static const struct lifetime lifetimes[] = {
	{EV_PROBE_ALLOC_SKB, PACKET_ROLE_BIRTH, 4, {"__alloc_skb"}, 0},
	{EV_PROBE_SKB_CLONE, PACKET_ROLE_BIRTH, 2, {"skb_clone"}, 0},
	{EV_PROBE_SKB_COPY, PACKET_ROLE_BIRTH, 2, {"skb_copy"}, 0},
	{EV_PROBE_PSKB_COPY_FCLONE, PACKET_ROLE_BIRTH, 4, {"__pskb_copy_fclone"}, 0},
	{EV_PROBE_BUILD_SKB_RAW, PACKET_ROLE_BIRTH, 2, {"__build_skb"}, 0},
	{EV_PROBE_BUILD_SKB_AROUND, PACKET_ROLE_BIRTH, 3, {"build_skb_around"}, 0},
	{EV_PROBE_SLAB_BUILD_SKB, PACKET_ROLE_BIRTH, 1, {"slab_build_skb"}, 0},
	{EV_PROBE_NAPI_BUILD_SKB_RAW, PACKET_ROLE_BIRTH, 2, {"__napi_build_skb"}, 0},
	{EV_PROBE_BUILD_SKB, PACKET_ROLE_BIRTH, 2, {"build_skb"}, 0},
	{EV_PROBE_NAPI_BUILD_SKB, PACKET_ROLE_BIRTH, 2, {"napi_build_skb"}, 0},
	{EV_PROBE_NETDEV_ALLOC_SKB, PACKET_ROLE_BIRTH, 3, {"__netdev_alloc_skb"}, 0},
	{EV_PROBE_NAPI_ALLOC_SKB, PACKET_ROLE_BIRTH, 2, {"napi_alloc_skb"}, 0},
	{EV_PROBE_KFREE_SKBMEM, PACKET_ROLE_END, 1, {"kfree_skbmem"}, 0},
	{EV_PROBE_KFREE_SKB_PARTIAL, PACKET_ROLE_END, 2, {"kfree_skb_partial"}, 0},
	{EV_PROBE_NAPI_SKB_CACHE_PUT, PACKET_ROLE_END, 1, {"napi_skb_cache_put"}, 0},
	{EV_PROBE_NAPI_SKB_FREE_STOLEN_HEAD,
	 PACKET_ROLE_END,
	 1,
	 {"napi_skb_free_stolen_head"},
	 EV_PROBE_NAPI_SKB_CACHE_PUT},
	{EV_PROBE_KFREE_SKB_DEFER,
	 PACKET_ROLE_END,
	 1,
	 {"__kfree_skb_defer", "__napi_kfree_skb"},
	 EV_PROBE_NAPI_SKB_CACHE_PUT},
	{EV_PROBE_SKB_ATTEMPT_DEFER_FREE, PACKET_ROLE_END, 1, {"skb_attempt_defer_free"}, 0},
};

/* What no kernel is without: that one is not there means that it is called something else. */
static const uint16_t indispensable[] = {
	EV_PROBE_CONSUME_SKB,  EV_PROBE_KFREE_SKB,	   EV_PROBE_ALLOC_SKB,
	EV_PROBE_SKB_CLONE,    EV_PROBE_BUILD_SKB_RAW,	   EV_PROBE_BUILD_SKB_AROUND,
	EV_PROBE_KFREE_SKBMEM, EV_PROBE_KFREE_SKB_PARTIAL,
};

_Static_assert(IOT_ARRAY_SIZE(tracepoints) + IOT_ARRAY_SIZE(functions) +
			       IOT_ARRAY_SIZE(lifetimes) <=
		       PACKET_MAX_HOOKS,
	       "the probe table has no room for a hook");

static struct packet_hook *add(struct packet_plan *plan, uint16_t probe, const char *name)
{
	struct packet_hook *h = &plan->hooks[plan->n++];

	*h = (struct packet_hook){.probe = probe, .name = name};
	return h;
}

static void without(struct packet_hook *h, enum iot_attach state, const char *detail)
{
	h->by = PACKET_BY_NOTHING;
	h->state = (uint8_t)state;
	snprintf(h->detail, sizeof(h->detail), "%s", detail);
}

/* ---- tracepoints ------------------------------------------------------------------------------ */

static bool is_wanted(const struct tracepoint *t, const struct probes_packet_options *o)
{
	return t->group == GROUP_ALWAYS || (t->group == GROUP_GRO && o->gro) ||
	       (t->group == GROUP_QDISC && o->qdisc);
}

static void plan_tracepoint(const struct btf *btf, const struct tracepoint *t,
			    const struct probes_packet_options *o, bool raw,
			    struct packet_plan *plan)
{
	const struct btf_type *proto = probes_tracepoint_proto(btf, t->name);
	unsigned int n_args = proto ? btf_vlen(proto) - 1U : 0;
	struct packet_hook *h = add(plan, t->probe, t->name);

	for (size_t k = 0; k < IOT_ARRAY_SIZE(t->shapes) && !h->program; k++) {
		if (t->shapes[k].program && n_args >= t->shapes[k].n_args)
			h->program = t->shapes[k].program;
	}
	h->by = raw ? PACKET_BY_RAW : PACKET_BY_BTF;
	if (!h->program)
		without(h, IOT_ATTACH_ABSENT, "this kernel has no such hook");
	else if (!is_wanted(t, o))
		without(h, IOT_ATTACH_NOT_NEEDED, "not asked for");
}

/* ---- functions -------------------------------------------------------------------------------- */

/* The prototype of a function that the kernel has as such, not only as a part of its callers. */
static const struct btf_type *function_proto(const struct btf *btf, const char *name, int *ret_id)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);

	if (id <= 0)
		return NULL;
	*ret_id = id;
	return btf__type_by_id(btf, btf__type_by_id(btf, (unsigned int)id)->type);
}

/* Hooks a function with a program that does nothing, and lets it go. */
static int try_fentry(const struct btf *btf, const char *name)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	_cleanup_close_ int fd = -EBADF, link = -EBADF;
	int id;

	if (!function_proto(btf, name, &id))
		return -ENOENT;
	opts.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "iotraced_try", "Dual BSD/GPL", nothing,
			   IOT_ARRAY_SIZE(nothing), &opts);
	if (fd < 0)
		return fd;
	link = bpf_raw_tracepoint_open(NULL, fd);
	return link < 0 ? link : 0;
}

/* As the error of the first function there is, whichever that be. */
static int fentry_error(const struct btf *btf)
{
	int r = -ENOENT;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(functions) && r == -ENOENT; i++)
		r = try_fentry(btf, functions[i].names[0]);
	return r;
}

static void refuse(struct packet_hook *h, const char *how, int error)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: %s", how, strerror(-error));
	without(h, IOT_ATTACH_REFUSED, text);
	h->error = error;
}

static void plan_function(const struct btf *btf, const struct function *f,
			  const struct probes_packet_options *o, struct packet_plan *plan)
{
	struct packet_hook *h = add(plan, f->probe, f->names[0]);
	const struct btf_type *proto = NULL;
	int id;

	h->program = f->names[0];
	for (size_t k = 0; k < IOT_ARRAY_SIZE(f->names) && f->names[k] && !proto; k++) {
		proto = function_proto(btf, f->names[k], &id);
		if (proto)
			h->name = f->names[k];
	}
	h->may_kprobe = o->functions == IOT_FUNCTIONS_KPROBE;
	if (o->functions == IOT_FUNCTIONS_OFF)
		without(h, IOT_ATTACH_NOT_NEEDED, "not asked for");
	else if (!proto)
		without(h, IOT_ATTACH_ABSENT,
			"this kernel has no such function of its own: absent, inlined or in a "
			"module");
	else if (btf_vlen(proto) < f->n_args)
		without(h, IOT_ATTACH_ABSENT, "this kernel's function has other arguments");
	else if (!plan->fentry_error && !o->force_kprobe)
		h->by = PACKET_BY_FENTRY;
	else if (h->may_kprobe)
		h->by = PACKET_BY_KPROBE;
	else
		refuse(h, "fentry", plan->fentry_error);
}

/* ---- births and ends -------------------------------------------------------------------------- */

static bool is_served(const struct packet_plan *plan, uint16_t probe)
{
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->hooks[i].probe == probe)
			return plan->hooks[i].by != PACKET_BY_NOTHING;
	}
	return false;
}

static void plan_lifetime(const struct btf *btf, const struct lifetime *l,
			  const struct probes_packet_options *o, struct packet_plan *plan)
{
	struct packet_hook *h = add(plan, l->probe, l->names[0]);
	const struct btf_type *proto = NULL;
	int id;

	h->role = l->role;
	h->program = l->names[0];
	/* Where the kernel lets a program interrupt itself, one is enough. */
	h->twice = plan->counts_fentry;
	for (size_t k = 0; k < IOT_ARRAY_SIZE(l->names) && l->names[k] && !proto; k++) {
		proto = function_proto(btf, l->names[k], &id);
		if (proto)
			h->name = l->names[k];
	}
	h->by = l->role == PACKET_ROLE_BIRTH ? PACKET_BY_FEXIT : PACKET_BY_FENTRY;
	if (o->functions == IOT_FUNCTIONS_OFF)
		without(h, IOT_ATTACH_NOT_NEEDED, "not asked for");
	else if (!proto)
		without(h, IOT_ATTACH_ABSENT,
			"this kernel has no such function of its own: absent or inlined");
	else if (is_served(plan, l->unless))
		without(h, IOT_ATTACH_NOT_NEEDED, "another hook sees what it does");
	else if (plan->fentry_error || o->force_kprobe)
		refuse(h, "fentry", plan->fentry_error ? plan->fentry_error : -EOPNOTSUPP);
	else if (btf_vlen(proto) < l->n_args ||
		 (l->role == PACKET_ROLE_BIRTH && btf_vlen(proto) != l->n_args))
		refuse(h, "other arguments than known", -EINVAL);
}

static const struct iot_probe *find_row(const struct iot_probe *rows, size_t n, uint16_t probe)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].id == probe)
			return &rows[i];
	}
	return NULL;
}

const struct iot_probe *packet_identity_gap(const struct iot_probe *rows, size_t n)
{
	static const struct iot_probe none = {.name = "a hook", .detail = "not known"};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(indispensable); i++) {
		const struct iot_probe *row = find_row(rows, n, indispensable[i]);

		if (!row || row->state != IOT_ATTACH_ATTACHED)
			return row ? row : &none;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(lifetimes); i++) {
		const struct iot_probe *row = find_row(rows, n, lifetimes[i].probe);

		if (!row || row->state == IOT_ATTACH_REFUSED)
			return row ? row : &none;
	}
	return NULL;
}

/* ---- the plan --------------------------------------------------------------------------------- */

void packet_plan_make(const struct btf *btf, const struct probes_options *opts,
		      const struct probes_packet_options *o, struct packet_plan *ret)
{
	memset(ret, 0, sizeof(*ret));
	probes_counting(btf, &ret->counts_tracing, &ret->counts_fentry);
	if (o->functions != IOT_FUNCTIONS_OFF)
		ret->fentry_error = fentry_error(btf);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(tracepoints); i++)
		plan_tracepoint(btf, &tracepoints[i], o, opts->force_fallback, ret);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(functions); i++)
		plan_function(btf, &functions[i], o, ret);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(lifetimes); i++)
		plan_lifetime(btf, &lifetimes[i], o, ret);
}

void packet_hook_program(const struct packet_hook *h, bool second, char ret[64])
{
	static const char *const suffixes[] = {
		[PACKET_BY_NOTHING] = "none",  [PACKET_BY_BTF] = "btf",
		[PACKET_BY_RAW] = "raw",       [PACKET_BY_FENTRY] = "fentry",
		[PACKET_BY_KPROBE] = "kprobe", [PACKET_BY_FEXIT] = "fexit",
	};

	snprintf(ret, 64, "%s_%s%s", h->program, suffixes[h->by], second ? "2" : "");
}

static bool is_served_by(const struct packet_hook *h, const char *program)
{
	char name[64];

	if (h->by == PACKET_BY_NOTHING)
		return false;
	for (int second = 0; second <= h->twice; second++) {
		packet_hook_program(h, second, name);
		if (strcmp(name, program) == 0)
			return true;
	}
	return false;
}

bool packet_plan_demote(struct packet_plan *plan, const char *program, int error)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct packet_hook *h = &plan->hooks[i];

		if (!is_served_by(h, program))
			continue;
		if (h->by == PACKET_BY_BTF)
			h->by = PACKET_BY_RAW;
		else if (h->by == PACKET_BY_FENTRY && h->may_kprobe)
			h->by = PACKET_BY_KPROBE;
		else
			refuse(h, "does not load", error);
		return true;
	}
	return false;
}
