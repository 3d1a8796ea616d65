/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gen-trace.h - traces of requests for tests and benchmarks, the same for the same seed.
 *
 * RANDOM is what fio makes with 4 KiB random I/O over 1 TiB at depth 16 on two CPUs (about 240,000
 * requests/s, no scheduler); SEQUENTIAL is 64 KiB direct writes with an fsync now and then; MIXED
 * has several devices, contexts, operations, schedulers and files, requeues, merges, errors and
 * absent fields; HOSTILE is any bits in any field.
 */
#pragma once

#include "format/record.h"

enum gen_kind {
	GEN_RANDOM,
	GEN_SEQUENTIAL,
	GEN_MIXED,
	GEN_HOSTILE,
	GEN_N_KINDS,
};

#define GEN_DEPTH 16
#define GEN_JOBS 2

struct gen_slot {
	uint64_t start_ns;
	uint64_t id;
	uint64_t sector;
};

struct gen {
	enum gen_kind kind;
	uint64_t state;
	uint64_t now_ns;
	uint64_t n;
	uint64_t next_id[8];
	uint64_t next_sector[8];
	struct gen_slot slots[GEN_JOBS][GEN_DEPTH];
	uint8_t queue[GEN_JOBS][GEN_DEPTH]; /* slots, oldest first */
	unsigned int job;
	unsigned int burst;
};

/* splitmix64 */
static inline uint64_t gen_next(struct gen *g)
{
	uint64_t z = (g->state += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static inline uint64_t gen_below(struct gen *g, uint64_t n)
{
	return gen_next(g) % n;
}

/* Sum of uniforms with a rare long tail: times of real devices are neither uniform nor normal. */
static inline uint64_t gen_time(struct gen *g, uint64_t mean)
{
	uint64_t t = mean / 2 + (gen_below(g, mean) + gen_below(g, mean)) / 2;

	return gen_below(g, 64) == 0 ? t * (2 + gen_below(g, 8)) : t;
}

static inline void gen_init(struct gen *g, enum gen_kind kind, uint64_t seed)
{
	*g = (struct gen){.kind = kind, .state = seed, .now_ns = 86400ULL * 1000000000};
	for (unsigned int j = 0; j < GEN_JOBS; j++) {
		for (unsigned int i = 0; i < GEN_DEPTH; i++) {
			g->queue[j][i] = (uint8_t)i;
			g->slots[j][i].start_ns = g->now_ns - 60000 + i * 3700;
			g->slots[j][i].id = ++g->next_id[j] << 13 | j;
			g->slots[j][i].sector = kind == GEN_SEQUENTIAL
							? (g->next_sector[j] += 128)
							: gen_below(g, 1ULL << 28) << 3;
		}
	}
}

static inline void gen_fio(struct gen *g, struct iot_request *r)
{
	bool sequential = g->kind == GEN_SEQUENTIAL;
	struct gen_slot *s;
	unsigned int i;
	uint8_t slot;

	/* Completions come in bursts per CPU and mostly, not always, oldest first. */
	if (g->burst == 0) {
		g->job ^= 1;
		g->burst = 1 + (unsigned int)gen_below(g, 12);
		g->now_ns += gen_below(g, 3000);
	}
	g->burst--;
	g->now_ns += gen_time(g, sequential ? 21000 : 3600);
	i = gen_below(g, 16) ? 0 : (unsigned int)gen_below(g, 4);
	slot = g->queue[g->job][i];
	memmove(&g->queue[g->job][i], &g->queue[g->job][i + 1], GEN_DEPTH - 1 - i);
	g->queue[g->job][GEN_DEPTH - 1] = slot;
	s = &g->slots[g->job][slot];
	*r = (struct iot_request){
		.id = s->id,
		.start_ns = s->start_ns,
		.complete_ns = g->now_ns,
		.sector = s->sector,
		.cgroup = 4711,
		.dev = IOT_DEV(7, 3),
		.part = IOT_DEV(7, 3),
		.bytes = sequential ? 65536 : 4096,
		.flags = IOT_FLAG_SYNC,
		.pid = 12001 + g->job,
		.tgid = 12001 + g->job,
		.issue_cpu = g->job,
		.complete_cpu = g->job,
		.segments = 1,
		.op = sequential || gen_below(g, 2) ? IOT_OP_WRITE : IOT_OP_READ,
		.submitter = IOT_SUBMITTER_START,
		.comm = "fio",
	};
	r->bytes_done = r->bytes;
	r->issue_ns = r->start_ns + 250 + gen_time(g, 180);
	r->issue_last_ns = r->issue_ns;
	if (sequential && g->n % 256 == 255) {
		r->op = IOT_OP_FLUSH;
		r->flags = IOT_FLAG_PREFLUSH;
		r->sector = IOT_SECTOR_NONE;
		r->bytes = r->bytes_done = 0;
		r->segments = 0;
	}
	s->start_ns = g->now_ns + 1500 + gen_time(g, 1800);
	s->id = ++g->next_id[g->job] << 13 | g->job;
	s->sector = sequential ? (g->next_sector[g->job] += 128) : gen_below(g, 1ULL << 28) << 3;
}

static inline void gen_mixed(struct gen *g, struct iot_request *r)
{
	static const char *const comms[] = {"postgres", "kworker/u8:3", "exactly16bytes!!", "",
					    "dd"};
	unsigned int who = (unsigned int)gen_below(g, 40), dev = (unsigned int)gen_below(g, 3);
	uint64_t id_cpu = gen_below(g, 4);

	g->now_ns += gen_time(g, 9000);
	*r = (struct iot_request){
		.id = gen_below(g, 500) ? ++g->next_id[id_cpu] << 13 | id_cpu : 0,
		.complete_ns = g->now_ns - gen_below(g, 2) * gen_below(g, 20000),
		.sector = g->next_sector[who % 8],
		.cgroup = who % 3 ? 1000 + who % 7 : 0,
		.ino = gen_below(g, 3) ? 100000 + gen_below(g, 300) : 0,
		.dev = IOT_DEV(259, dev),
		.part = IOT_DEV(259, dev * (1 + (unsigned int)gen_below(g, 2))),
		.bytes = 512U << gen_below(g, 10),
		.flags = gen_below(g, 4) ? IOT_FLAG_SYNC : IOT_FLAG_META | IOT_FLAG_PRIO,
		.pid = 1000 + who,
		.tgid = 1000 + who / 2,
		.issue_cpu = (uint32_t)gen_below(g, 4),
		.complete_cpu = (uint32_t)gen_below(g, 4),
		.requeues = gen_below(g, 200) == 0,
		.merges = (uint16_t)(gen_below(g, 10) ? 0 : gen_below(g, 30)),
		.segments = (uint16_t)(1 + gen_below(g, 8)),
		.hwq = gen_below(g, 10) ? (uint16_t)gen_below(g, 4) : IOT_HWQ_NONE,
		.op = (uint8_t)gen_below(g, 5),
		.submitter = (uint8_t)(1 + gen_below(g, 3)),
		.ring = (uint8_t)gen_below(g, 2),
	};
	memcpy(r->comm, comms[who % 5], strnlen(comms[who % 5], sizeof(r->comm)));
	r->fsdev = r->ino ? r->dev : 0;
	r->origin = r->ino ? IOT_ORIGIN_FILE : (uint8_t)(2 + gen_below(g, 4));
	r->file_by = r->ino ? IOT_FILE_BY_PAGE : IOT_FILE_BY_NONE;
	r->cgroup_by = (uint8_t)gen_below(g, 4);
	r->reclaim = (uint8_t)(gen_below(g, 20) ? 0 : 1 + gen_below(g, 4));
	r->bytes_done = r->bytes;
	g->next_sector[who % 8] = r->sector + r->bytes / 512;
	if (gen_below(g, 20) == 0)
		g->next_sector[who % 8] = gen_below(g, 1ULL << 31);
	r->issue_ns = r->complete_ns - gen_time(g, 90000);
	r->issue_last_ns = r->issue_ns + (r->requeues ? 5000 : 0);
	r->start_ns = r->issue_ns - gen_time(g, 20000);
	if (gen_below(g, 3))
		r->insert_ns = r->start_ns + gen_below(g, r->issue_ns - r->start_ns);
	if (gen_below(g, 300) == 0) { /* begun before attach */
		r->start_ns = r->insert_ns = r->issue_ns = r->issue_last_ns = 0;
		r->flags |= IOT_FLAG_NO_START;
		r->submitter = IOT_SUBMITTER_NONE;
	}
	if (gen_below(g, 400) == 0) {
		r->error = -5;
		r->status = 10;
		r->bytes_done = r->bytes / 2;
	}
	if (r->op == IOT_OP_FLUSH) {
		r->sector = IOT_SECTOR_NONE;
		r->bytes = r->bytes_done = 0;
	}
	if (r->op == IOT_OP_WRITE && gen_below(g, 10) == 0) {
		r->flags |= IOT_FLAG_SWAP;
		r->swap = IOT_SWAP_OUT;
		r->swap_rule = 1;
		r->origin = IOT_ORIGIN_SWAP;
		r->unswapped_bytes = gen_below(g, 10) ? 0 : r->bytes / 2;
	}
}

/* Values around which arithmetic breaks, or any bits at all. */
static inline uint64_t gen_hostile_value(struct gen *g)
{
	static const uint64_t edges[] = {
		0,	    1,		2,	    UINT64_MAX, UINT64_MAX - 1, 1ULL << 63,
		INT64_MAX,  1ULL << 56, 1ULL << 57, 1ULL << 32, UINT32_MAX,	(1ULL << 63) + 1,
		1ULL << 13, 0xffffULL,
	};

	switch (gen_below(g, 4)) {
	case 0:
		return edges[gen_below(g, IOT_ARRAY_SIZE(edges))];
	case 1:
		return gen_next(g);
	case 2:
		return gen_next(g) >> gen_below(g, 64);
	default:
		return gen_below(g, 3);
	}
}

static inline void gen_hostile(struct gen *g, struct iot_request *r)
{
	uint64_t words[sizeof(*r) / 8];

	/* Padding at the end gets its share and is compared by nobody. */
	_Static_assert(sizeof(*r) % 8 == 0, "words cover the record");
	for (size_t i = 0; i < IOT_ARRAY_SIZE(words); i++)
		words[i] = gen_hostile_value(g);
	memcpy(r, words, sizeof(*r));
	if (gen_below(g, 4) == 0)
		r->issue_last_ns = r->issue_ns;
	if (gen_below(g, 4) == 0)
		r->issue_ns = r->complete_ns - (1ULL << 63);
}

static inline void gen_request(struct gen *g, struct iot_request *r)
{
	memset(r, 0, sizeof(*r));
	switch (g->kind) {
	case GEN_RANDOM:
	case GEN_SEQUENTIAL:
		gen_fio(g, r);
		break;
	case GEN_MIXED:
		gen_mixed(g, r);
		break;
	default:
		gen_hostile(g, r);
	}
	g->n++;
}

/* Field by field, so that padding cannot matter. Returns the name of the first difference. */
static inline const char *gen_difference(const struct iot_request *a, const struct iot_request *b)
{
#define DIFFERS(field)            \
	if (a->field != b->field) \
		return #field;
	DIFFERS(id)
	DIFFERS(start_ns)
	DIFFERS(insert_ns)
	DIFFERS(issue_ns)
	DIFFERS(issue_last_ns)
	DIFFERS(complete_ns)
	DIFFERS(sector)
	DIFFERS(cgroup)
	DIFFERS(ino)
	DIFFERS(fsdev)
	DIFFERS(dev)
	DIFFERS(part)
	DIFFERS(bytes)
	DIFFERS(bytes_done)
	DIFFERS(error)
	DIFFERS(status)
	DIFFERS(flags)
	DIFFERS(pid)
	DIFFERS(tgid)
	DIFFERS(issue_cpu)
	DIFFERS(complete_cpu)
	DIFFERS(requeues)
	DIFFERS(merges)
	DIFFERS(segments)
	DIFFERS(hwq)
	DIFFERS(op)
	DIFFERS(swap)
	DIFFERS(swap_rule)
	DIFFERS(origin)
	DIFFERS(submitter)
	DIFFERS(file_by)
	DIFFERS(cgroup_by)
	DIFFERS(reclaim)
	DIFFERS(unswapped_bytes)
	DIFFERS(ring)
#undef DIFFERS
	return memcmp(a->comm, b->comm, sizeof(a->comm)) ? "comm" : NULL;
}
