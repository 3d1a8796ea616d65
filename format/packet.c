// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet.c - observations of packets: rows in, columns in memory, rows out; the table of their
 * columns; and the names of what they say.
 *
 * Everything that rarely changes is an entry of a dictionary: the packet itself, its flow (whose
 * addresses are entries, too), interface, task, and where it was dropped. The same flow follows
 * itself most of the time, so that its look-ups are saved by one comparison.
 */
#include "format/packet.h"

#include "format/batch-def.h"
#include "format/block.h"
#include "format/columns.h"

#include <assert.h>
#include <endian.h>

#define MAX_FLOWS 8192U
#define MAX_ADDRESSES 16384U
#define MAX_IFACES 4096U
#define MAX_CONTEXTS 4096U
#define MAX_WHERES 4096U
#define ID_CPU_BITS 13

const char *iot_packet_flag_name(unsigned int bit)
{
	static const char *const names[] = {
		"from-start", "born", "end",  "merged",	   "merged-into", "clone", "not-selected",
		"fragment",   "vlan", "task", "no-header", "after-end",	  "frame",
	};

	return bit < IOT_ARRAY_SIZE(names) ? names[bit] : NULL;
}

/* Both are ABI: include/uapi/linux/pkt_cls.h, TC_ACT_*, and include/uapi/linux/bpf.h, enum xdp_action. */
const char *iot_program_action_name(unsigned int program_kind, int32_t code)
{
	static const char *const tc[] = {
		"ok",	  "reclassify", "shot",	    "pipe", "stolen",
		"queued", "repeat",	"redirect", "trap",
	};
	static const char *const xdp[] = {"aborted", "drop", "pass", "tx", "redirect"};

	if (program_kind == IOT_PROGRAM_TC && code == -1)
		return "unspec";
	if (program_kind == IOT_PROGRAM_TC && code >= 0 && (size_t)code < IOT_ARRAY_SIZE(tc))
		return tc[code];
	if (program_kind == IOT_PROGRAM_XDP && code >= 0 && (size_t)code < IOT_ARRAY_SIZE(xdp))
		return xdp[code];
	return NULL;
}

const char *iot_ip_proto_name(unsigned int ip_proto)
{
	switch (ip_proto) {
	case 1:
		return "icmp";
	case 2:
		return "igmp";
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 47:
		return "gre";
	case 50:
		return "esp";
	case 58:
		return "icmpv6";
	case 132:
		return "sctp";
	default:
		return NULL;
	}
}

/* ---- rows ---- */

struct indexes {
	uint16_t object, flow, iface, context, where;
};

static uint64_t load_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static void store_be64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

static void comm_words(const char *comm, uint64_t ret[2])
{
	memcpy(ret, comm, IOT_COMM_LEN);
	ret[0] = le64toh(ret[0]);
	ret[1] = le64toh(ret[1]);
}

static int intern_flow(struct iot_batch *b, const struct iot_flow *f, uint16_t *ret)
{
	uint64_t address[2], flow[5];
	uint16_t src, dst;
	int q;

	if (b->memo.valid && memcmp(&b->memo.flow, f, sizeof(*f)) == 0) {
		*ret = b->memo.index;
		return 0;
	}
	address[0] = load_be64(f->src);
	address[1] = load_be64(f->src + 8);
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_ADDRESS], address, IOT_ARRAY_SIZE(address),
			 &src);
	if (q)
		return q;
	address[0] = load_be64(f->dst);
	address[1] = load_be64(f->dst + 8);
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_ADDRESS], address, IOT_ARRAY_SIZE(address),
			 &dst);
	if (q)
		return q;
	flow[0] = src;
	flow[1] = dst;
	flow[2] = f->sport;
	flow[3] = f->dport;
	flow[4] = f->protocol | (uint64_t)f->family << 16 | (uint64_t)f->ip_proto << 24 |
		  (uint64_t)f->vlan_tci << 32;
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_FLOW], flow, IOT_ARRAY_SIZE(flow), ret);
	if (q)
		return q;
	b->memo.flow = *f;
	b->memo.index = *ret;
	b->memo.valid = true;
	return 0;
}

/*
 * The packet last: a new one comes with its first values, so nothing may fail after it. Small
 * dictionaries first: when one turns out full there are at least as many records as any dictionary
 * has entries, what is added in vain included.
 */
static int intern(struct iot_batch *b, const struct iot_packet *p, struct indexes *x)
{
	uint64_t object[2], iface[1], context[3], where[1];
	int q;

	iface[0] = p->netns | (uint64_t)p->ifindex << 32;
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_IFACE], iface, IOT_ARRAY_SIZE(iface), &x->iface);
	if (q)
		return q;
	context[0] = p->pid | (uint64_t)p->tgid << 32;
	comm_words(p->comm, context + 1);
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_CONTEXT], context, IOT_ARRAY_SIZE(context),
			 &x->context);
	if (q)
		return q;
	where[0] = p->where;
	q = iot_dict_add(&b->dicts[IOT_PACKET_DICT_WHERE], where, IOT_ARRAY_SIZE(where), &x->where);
	if (q)
		return q;
	q = intern_flow(b, &p->flow, &x->flow);
	if (q)
		return q;
	object[0] = p->id & ((1U << ID_CPU_BITS) - 1);
	object[1] = p->id >> ID_CPU_BITS;
	return iot_dict_add(&b->dicts[IOT_PACKET_DICT_OBJECT], object, IOT_ARRAY_SIZE(object),
			    &x->object);
}

int iot_batch_add_packet(struct iot_batch *b, const struct iot_packet *p)
{
	uint32_t n_objects = b->dicts[IOT_PACKET_DICT_OBJECT].n, i = b->n;
	uint16_t l4 = (uint16_t)(p->l4[0] | p->l4[1] << 8);
	struct indexes x;

	assert(!b->decoded && b->schema == &iot_schema_packet);

	if (i == b->cap)
		return IOT_BATCH_FULL;
	if (intern(b, p, &x) != 0)
		return IOT_BATCH_FULL;
	if (x.object == n_objects) {
		iot_batch_u16(b, IOT_PCOLUMN_FIRST_FLOW)[x.object] = x.flow;
		iot_batch_u32(b, IOT_PCOLUMN_FIRST_LEN)[x.object] = p->len;
		iot_batch_u16(b, IOT_PCOLUMN_FIRST_CONTEXT)[x.object] = x.context;
		iot_batch_u32(b, IOT_PCOLUMN_FIRST_MARK)[x.object] = p->mark;
		iot_batch_u16(b, IOT_PCOLUMN_FIRST_L4)[x.object] = l4;
		iot_batch_u16(b, IOT_PCOLUMN_FIRST_IP_ID)[x.object] = p->ip_id;
		iot_batch_u32(b, IOT_PCOLUMN_FIRST_HOP)[x.object] = p->hop;
		iot_batch_u16(b, IOT_PCOLUMN_FIRST_FLAGS)[x.object] = p->flags;
		iot_batch_u64(b, IOT_PCOLUMN_FIRST_PARENT)[x.object] = p->parent;
	}
	iot_batch_u64(b, IOT_PCOLUMN_TS)[i] = p->ts_ns;
	iot_batch_u16(b, IOT_PCOLUMN_OBJECT)[i] = x.object;
	iot_batch_u16(b, IOT_PCOLUMN_FLOW)[i] = x.flow;
	iot_batch_u32(b, IOT_PCOLUMN_LEN)[i] = p->len;
	iot_batch_u16(b, IOT_PCOLUMN_CONTEXT)[i] = x.context;
	iot_batch_u32(b, IOT_PCOLUMN_MARK)[i] = p->mark;
	iot_batch_u16(b, IOT_PCOLUMN_L4)[i] = l4;
	iot_batch_u16(b, IOT_PCOLUMN_IP_ID)[i] = p->ip_id;
	iot_batch_u32(b, IOT_PCOLUMN_HOP)[i] = p->hop;
	iot_batch_u16(b, IOT_PCOLUMN_FLAGS)[i] = p->flags;
	iot_batch_u64(b, IOT_PCOLUMN_PARENT)[i] = p->parent;
	iot_batch_u16(b, IOT_PCOLUMN_PROBE)[i] = p->probe;
	iot_batch_u32(b, IOT_PCOLUMN_CPU)[i] = p->cpu;
	iot_batch_u16(b, IOT_PCOLUMN_IFACE)[i] = x.iface;
	iot_batch_u32(b, IOT_PCOLUMN_CODE)[i] = (uint32_t)p->code;
	iot_batch_u16(b, IOT_PCOLUMN_WHERE)[i] = x.where;
	iot_batch_u8(b, IOT_PCOLUMN_RING)[i] = p->ring;
	iot_batch_added(b, p->ts_ns);
	return 0;
}

/* Entry of record i in a dictionary. */
static inline const uint64_t *entry_of(const struct iot_batch *b, enum iot_packet_dict dict,
				       unsigned int index, uint32_t i)
{
	const struct iot_dict *d = &b->dicts[dict];

	return d->words + (size_t)iot_batch_u16(b, index)[i] * d->n_words;
}

static uint64_t id_of(const struct iot_batch *b, uint32_t i)
{
	const uint64_t *object = entry_of(b, IOT_PACKET_DICT_OBJECT, IOT_PCOLUMN_OBJECT, i);

	return object[1] << ID_CPU_BITS | object[0];
}

static void get_address(const struct iot_batch *b, uint64_t index, uint8_t ret[16])
{
	const uint64_t *address = b->dicts[IOT_PACKET_DICT_ADDRESS].words + index * 2;

	store_be64(ret, address[0]);
	store_be64(ret + 8, address[1]);
}

static void get_dictionaries(const struct iot_batch *b, uint32_t i, struct iot_packet *p)
{
	const uint64_t *entry;

	if (iot_batch_has(b, IOT_PCOLUMN_FLOW)) {
		entry = entry_of(b, IOT_PACKET_DICT_FLOW, IOT_PCOLUMN_FLOW, i);
		get_address(b, entry[0], p->flow.src);
		get_address(b, entry[1], p->flow.dst);
		p->flow.sport = (uint16_t)entry[2];
		p->flow.dport = (uint16_t)entry[3];
		p->flow.protocol = (uint16_t)entry[4];
		p->flow.family = (uint8_t)(entry[4] >> 16);
		p->flow.ip_proto = (uint8_t)(entry[4] >> 24);
		p->flow.vlan_tci = (uint16_t)(entry[4] >> 32);
	}
	if (iot_batch_has(b, IOT_PCOLUMN_IFACE)) {
		entry = entry_of(b, IOT_PACKET_DICT_IFACE, IOT_PCOLUMN_IFACE, i);
		p->netns = (uint32_t)entry[0];
		p->ifindex = (uint32_t)(entry[0] >> 32);
	}
	if (iot_batch_has(b, IOT_PCOLUMN_CONTEXT)) {
		uint64_t comm[2];

		entry = entry_of(b, IOT_PACKET_DICT_CONTEXT, IOT_PCOLUMN_CONTEXT, i);
		comm[0] = htole64(entry[1]);
		comm[1] = htole64(entry[2]);
		p->pid = (uint32_t)entry[0];
		p->tgid = (uint32_t)(entry[0] >> 32);
		memcpy(p->comm, comm, sizeof(comm));
	}
	if (iot_batch_has(b, IOT_PCOLUMN_WHERE))
		p->where = entry_of(b, IOT_PACKET_DICT_WHERE, IOT_PCOLUMN_WHERE, i)[0];
}

void iot_batch_get_packet(const struct iot_batch *b, uint32_t i, struct iot_packet *ret)
{
	struct iot_packet p = {0};

	assert(i < b->n && b->schema == &iot_schema_packet);

	if (iot_batch_has(b, IOT_PCOLUMN_TS))
		p.ts_ns = iot_batch_u64(b, IOT_PCOLUMN_TS)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_OBJECT))
		p.id = id_of(b, i);
	if (iot_batch_has(b, IOT_PCOLUMN_LEN))
		p.len = iot_batch_u32(b, IOT_PCOLUMN_LEN)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_MARK))
		p.mark = iot_batch_u32(b, IOT_PCOLUMN_MARK)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_L4)) {
		p.l4[0] = (uint8_t)iot_batch_u16(b, IOT_PCOLUMN_L4)[i];
		p.l4[1] = (uint8_t)(iot_batch_u16(b, IOT_PCOLUMN_L4)[i] >> 8);
	}
	if (iot_batch_has(b, IOT_PCOLUMN_IP_ID))
		p.ip_id = iot_batch_u16(b, IOT_PCOLUMN_IP_ID)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_HOP))
		p.hop = iot_batch_u32(b, IOT_PCOLUMN_HOP)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_FLAGS))
		p.flags = iot_batch_u16(b, IOT_PCOLUMN_FLAGS)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_PARENT))
		p.parent = iot_batch_u64(b, IOT_PCOLUMN_PARENT)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_PROBE))
		p.probe = iot_batch_u16(b, IOT_PCOLUMN_PROBE)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_CPU))
		p.cpu = iot_batch_u32(b, IOT_PCOLUMN_CPU)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_CODE))
		p.code = (int32_t)iot_batch_u32(b, IOT_PCOLUMN_CODE)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_RING))
		p.ring = iot_batch_u8(b, IOT_PCOLUMN_RING)[i];
	get_dictionaries(b, i, &p);
	*ret = p;
}

/* ---- the table ---- */

static void packet_key(const struct iot_batch *b, uint32_t i, struct iot_row_key *ret)
{
	if (iot_batch_has(b, IOT_PCOLUMN_TS))
		ret->ns = iot_batch_u64(b, IOT_PCOLUMN_TS)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_OBJECT))
		ret->id = id_of(b, i);
	if (iot_batch_has(b, IOT_PCOLUMN_CPU))
		ret->cpu = iot_batch_u32(b, IOT_PCOLUMN_CPU)[i];
	if (iot_batch_has(b, IOT_PCOLUMN_PROBE))
		ret->probe = iot_batch_u16(b, IOT_PCOLUMN_PROBE)[i];
}

static void packet_id_range(const struct iot_batch *b, uint64_t *ret_min, uint64_t *ret_max)
{
	uint64_t min = UINT64_MAX, max = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t id = id_of(b, i);

		min = IOT_MIN(min, id);
		max = IOT_MAX(max, id);
	}
	*ret_min = min;
	*ret_max = max;
}

#define BIT(c) (1ULL << (c))
#define WORD(n_bits, n_table, n_word)                                                    \
	{                                                                                \
		n_bits, .table = 1 + (n_table), .word = (n_word), .flags = IOT_DESC_WORD \
	}
#define OBJECT_WORDS (BIT(IOT_PCOLUMN_OBJECT_CPU) | BIT(IOT_PCOLUMN_OBJECT_COUNTER))
#define FLOW_WORDS                                                                                \
	(BIT(IOT_PCOLUMN_FLOW_SRC) | BIT(IOT_PCOLUMN_FLOW_DST) | BIT(IOT_PCOLUMN_FLOW_SPORT) |    \
	 BIT(IOT_PCOLUMN_FLOW_DPORT) | BIT(IOT_PCOLUMN_FLOW_PROTO) | BIT(IOT_PCOLUMN_ADDRESS_0) | \
	 BIT(IOT_PCOLUMN_ADDRESS_1))
#define CONTEXT_WORDS                                                     \
	(BIT(IOT_PCOLUMN_CONTEXT_PIDS) | BIT(IOT_PCOLUMN_CONTEXT_COMM0) | \
	 BIT(IOT_PCOLUMN_CONTEXT_COMM1))
/* First values, and their continuation. */
#define SIDE(n_bits, ...)                                                                          \
	{                                                                                          \
		n_bits, (n_bits) / 8, .table = 1 + IOT_PACKET_DICT_OBJECT, .flags = IOT_DESC_SIDE, \
				      .needs = OBJECT_WORDS, ##__VA_ARGS__                         \
	}
#define AFTER(n_bits, first, ...)                                                                 \
	{                                                                                         \
		n_bits, (n_bits) / 8, IOT_BASE_REF, .refs = BIT(IOT_PCOLUMN_OBJECT) | BIT(first), \
						    ##__VA_ARGS__                                 \
	}

const struct iot_schema iot_schema_packet =
	{
		.stream = IOT_STREAM_PACKET,
		.kind = IOT_BLOCK_PACKETS,
		.time = IOT_PCOLUMN_TS,
		.ids = BIT(IOT_PCOLUMN_OBJECT),
		.keys = BIT(IOT_PCOLUMN_TS) | BIT(IOT_PCOLUMN_OBJECT) | BIT(IOT_PCOLUMN_PROBE) |
			BIT(IOT_PCOLUMN_CPU),
		.columns =
			{
				[IOT_PCOLUMN_TS] = {64, 8, IOT_BASE_DELTA, .flags = IOT_DESC_MUST},
				[IOT_PCOLUMN_OBJECT_CPU] = {13, .table = 1 + IOT_PACKET_DICT_OBJECT,
							    .flags = IOT_DESC_WORD | IOT_DESC_MUST},
				[IOT_PCOLUMN_OBJECT_COUNTER] =
					{51, .base = IOT_BASE_REF,
					 .table = 1 + IOT_PACKET_DICT_OBJECT, .word = 1,
					 .flags = IOT_DESC_WORD | IOT_DESC_MUST,
					 .refs = BIT(IOT_PCOLUMN_OBJECT_CPU)},
				[IOT_PCOLUMN_OBJECT] = {16, 2, IOT_BASE_REF,
							.index = 1 + IOT_PACKET_DICT_OBJECT,
							.flags = IOT_DESC_MUST,
							.needs = OBJECT_WORDS},
				[IOT_PCOLUMN_FIRST_FLOW] = {16, 2,
							    .table = 1 + IOT_PACKET_DICT_OBJECT,
							    .index = 1 + IOT_PACKET_DICT_FLOW,
							    .flags = IOT_DESC_SIDE,
							    .needs = OBJECT_WORDS | FLOW_WORDS},
				[IOT_PCOLUMN_FIRST_LEN] = SIDE(32),
				[IOT_PCOLUMN_FIRST_CONTEXT] = {16, 2,
							       .table = 1 + IOT_PACKET_DICT_OBJECT,
							       .index = 1 + IOT_PACKET_DICT_CONTEXT,
							       .flags = IOT_DESC_SIDE,
							       .needs = OBJECT_WORDS |
									CONTEXT_WORDS},
				[IOT_PCOLUMN_FIRST_MARK] = SIDE(32),
				[IOT_PCOLUMN_FIRST_L4] = SIDE(16),
				[IOT_PCOLUMN_FIRST_IP_ID] =
					SIDE(16, .base = IOT_BASE_REF,
					     .refs = BIT(IOT_PCOLUMN_FIRST_FLOW)),
				[IOT_PCOLUMN_FIRST_HOP] = SIDE(32),
				[IOT_PCOLUMN_FIRST_FLAGS] = SIDE(16),
				[IOT_PCOLUMN_FIRST_PARENT] = {64, 8, IOT_BASE_REF,
							      .table = 1 + IOT_PACKET_DICT_OBJECT,
							      .flags = IOT_DESC_SIDE |
								       IOT_DESC_NULLS_REF,
							      .needs = OBJECT_WORDS},
				[IOT_PCOLUMN_FLOW] = AFTER(16, IOT_PCOLUMN_FIRST_FLOW,
							   .index = 1 + IOT_PACKET_DICT_FLOW,
							   .needs = FLOW_WORDS),
				[IOT_PCOLUMN_LEN] = AFTER(32, IOT_PCOLUMN_FIRST_LEN,
							  .flags = IOT_DESC_TRY_BYTES),
				[IOT_PCOLUMN_CONTEXT] = AFTER(16, IOT_PCOLUMN_FIRST_CONTEXT,
							      .index = 1 + IOT_PACKET_DICT_CONTEXT,
							      .flags = IOT_DESC_TRY_BYTES,
							      .needs = CONTEXT_WORDS),
				[IOT_PCOLUMN_MARK] = AFTER(32, IOT_PCOLUMN_FIRST_MARK),
				[IOT_PCOLUMN_L4] = AFTER(16, IOT_PCOLUMN_FIRST_L4,
							 .flags = IOT_DESC_TRY_BYTES),
				[IOT_PCOLUMN_IP_ID] = AFTER(16, IOT_PCOLUMN_FIRST_IP_ID,
							    .flags = IOT_DESC_TRY_BYTES),
				[IOT_PCOLUMN_HOP] = AFTER(32, IOT_PCOLUMN_FIRST_HOP),
				[IOT_PCOLUMN_FLAGS] = AFTER(16, IOT_PCOLUMN_FIRST_FLAGS,
							    .flags = IOT_DESC_TRY_BYTES),
				[IOT_PCOLUMN_PARENT] = AFTER(64, IOT_PCOLUMN_FIRST_PARENT),
				[IOT_PCOLUMN_PROBE] = {16, 2, IOT_BASE_REF,
						       .flags = IOT_DESC_MUST | IOT_DESC_TRY_BYTES,
						       .refs = BIT(IOT_PCOLUMN_OBJECT)},
				[IOT_PCOLUMN_CPU] = {32, 4,
						     .flags = IOT_DESC_MUST | IOT_DESC_TRY_BYTES},
				[IOT_PCOLUMN_IFACE] = {16, 2, IOT_BASE_REF,
						       .index = 1 + IOT_PACKET_DICT_IFACE,
						       .flags = IOT_DESC_TRY_BYTES,
						       .needs = BIT(IOT_PCOLUMN_IFACE_WORD),
						       .refs = BIT(IOT_PCOLUMN_PROBE)},
				[IOT_PCOLUMN_CODE] =
					{
						64, 4, IOT_BASE_REF,
						.flags = IOT_DESC_SIGNED | IOT_DESC_TRY_BYTES,
						.refs = BIT(IOT_PCOLUMN_PROBE)},
				[IOT_PCOLUMN_WHERE] = {16, 2, IOT_BASE_REF,
						       .index = 1 + IOT_PACKET_DICT_WHERE,
						       .flags = IOT_DESC_TRY_BYTES,
						       .needs = BIT(IOT_PCOLUMN_WHERE_WORD),
						       .refs = BIT(IOT_PCOLUMN_PROBE)},
				[IOT_PCOLUMN_RING] = {8, 1},
				[IOT_PCOLUMN_FLOW_SRC] = {64, .table = 1 + IOT_PACKET_DICT_FLOW,
							  .word = 0,
							  .index = 1 + IOT_PACKET_DICT_ADDRESS,
							  .flags = IOT_DESC_WORD},
				[IOT_PCOLUMN_FLOW_DST] = {64, .table = 1 + IOT_PACKET_DICT_FLOW,
							  .word = 1,
							  .index = 1 + IOT_PACKET_DICT_ADDRESS,
							  .flags = IOT_DESC_WORD},
				[IOT_PCOLUMN_FLOW_SPORT] = WORD(16, IOT_PACKET_DICT_FLOW, 2),
				[IOT_PCOLUMN_FLOW_DPORT] = WORD(16, IOT_PACKET_DICT_FLOW, 3),
				[IOT_PCOLUMN_FLOW_PROTO] = WORD(48, IOT_PACKET_DICT_FLOW, 4),
				[IOT_PCOLUMN_ADDRESS_0] = WORD(64, IOT_PACKET_DICT_ADDRESS, 0),
				[IOT_PCOLUMN_ADDRESS_1] = WORD(64, IOT_PACKET_DICT_ADDRESS, 1),
				[IOT_PCOLUMN_IFACE_WORD] = WORD(64, IOT_PACKET_DICT_IFACE, 0),
				[IOT_PCOLUMN_CONTEXT_PIDS] = WORD(64, IOT_PACKET_DICT_CONTEXT, 0),
				[IOT_PCOLUMN_CONTEXT_COMM0] = WORD(64, IOT_PACKET_DICT_CONTEXT, 1),
				[IOT_PCOLUMN_CONTEXT_COMM1] = WORD(64, IOT_PACKET_DICT_CONTEXT, 2),
				[IOT_PCOLUMN_WHERE_WORD] = WORD(64, IOT_PACKET_DICT_WHERE, 0),
			},
		.dicts =
			{
				[IOT_PACKET_DICT_OBJECT] = {IOT_BLOCK_RECORDS_MAX, 2, 1},
				[IOT_PACKET_DICT_FLOW] = {MAX_FLOWS, 5, 1},
				[IOT_PACKET_DICT_ADDRESS] = {MAX_ADDRESSES, 2, 2},
				[IOT_PACKET_DICT_IFACE] = {MAX_IFACES, 1, 1},
				[IOT_PACKET_DICT_CONTEXT] = {MAX_CONTEXTS, 3, 1},
				[IOT_PACKET_DICT_WHERE] = {MAX_WHERES, 1, 1},
			},
		.key = packet_key,
		.id_range = packet_id_range,
		.ref = iot_packet_ref,
		.unref = iot_packet_unref,
};
