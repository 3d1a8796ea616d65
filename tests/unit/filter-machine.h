/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter-machine.h - runs a translated filter expression (daemon/probes-filter.h): an interpreter of the few
 * instructions that occur. What the kernel's verifier would refuse, or what would read beyond the packet,
 * aborts.
 */
#pragma once

#include "daemon/probes-filter.h"

static inline void machine_must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "filter-machine: %s\n", what);
	abort();
}

static inline uint32_t machine_big_endian(uint32_t v, int bits)
{
	return bits == 16 ? __builtin_bswap16((uint16_t)v) : __builtin_bswap32(v);
}

static inline bool machine_compares(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case 0x10:
		return a == b;
	case 0x20:
		return a > b;
	case 0x30:
		return a >= b;
	case 0x40:
		return a & b;
	case 0x50:
		return a != b;
	default:
		machine_must(false, "a comparison that does not occur");
		return false;
	}
}

static inline uint32_t machine_alu32(uint8_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case 0x00:
		return a + b;
	case 0x10:
		return a - b;
	case 0x20:
		return a * b;
	case 0x30:
		machine_must(b != 0, "divides by 0");
		return a / b;
	case 0x40:
		return a | b;
	case 0x50:
		return a & b;
	case 0x60:
		return a << (b & 31);
	case 0x70:
		return a >> (b & 31);
	case 0x80:
		return -a;
	case 0x90:
		machine_must(b != 0, "divides by 0");
		return a % b;
	case 0xa0:
		return a ^ b;
	case 0xb0:
		return b;
	default:
		machine_must(false, "arithmetic that does not occur");
		return 0;
	}
}

/* The address space: the context at 0x1000, the packet at 0x100000. */
#define MACHINE_CONTEXT 0x1000U
#define MACHINE_PACKET 0x100000U

struct machine {
	uint64_t r[11];
	uint8_t context[EV_EXPRESSION_MEM + EV_EXPRESSION_N_MEM * 4];
	const uint8_t *packet;
	uint32_t n;
};

static inline void machine_call(struct machine *m)
{
	uint64_t to = m->r[1] - MACHINE_CONTEXT, from = m->r[3] - MACHINE_PACKET;

	machine_must(to == EV_EXPRESSION_LOAD, "reads to another place");
	machine_must(m->r[2] >= 1 && m->r[2] <= 4, "reads another size");
	/* The translation has checked that. */
	machine_must(from <= m->n && m->r[2] <= m->n - from, "reads beyond the packet");
	memcpy(m->context + to, m->packet + from, m->r[2]);
	for (int i = 1; i < 6; i++)
		m->r[i] = 0xdeadbeefdeadbeefULL;
	m->r[0] = 0;
}

static inline uint32_t machine_run(const struct filter_insn *insns, const uint8_t *packet,
				   uint32_t n)
{
	struct machine m = {.packet = packet, .n = n};
	uint64_t at = MACHINE_PACKET;
	unsigned int pc = 0;

	memset(m.r, 0xa5, sizeof(m.r));
	m.r[6] = MACHINE_CONTEXT;
	memcpy(m.context + EV_EXPRESSION_AT, &at, 8);
	memcpy(m.context + EV_EXPRESSION_N, &n, 4);
	memcpy(m.context + EV_EXPRESSION_LEN, &n, 4);
	while (pc < FILTER_ROOM) {
		const struct filter_insn *i = &insns[pc++];
		uint64_t b = i->code & 8 ? m.r[i->src] : (uint64_t)(int64_t)i->imm;
		uint8_t class = i->code & 7, op = i->code & 0xf0;
		uint32_t v = 0;

		machine_must(i->dst <= 8, "another register");
		if (i->code == 0xdc) {
			m.r[i->dst] = machine_big_endian((uint32_t)m.r[i->dst], i->imm);
		} else if (class == 4) {
			m.r[i->dst] = machine_alu32(op, (uint32_t)m.r[i->dst], (uint32_t)b);
		} else if (class == 7) {
			machine_must(op == 0 || op == 0xb0, "another sum of 64 bits");
			m.r[i->dst] = op ? b : m.r[i->dst] + b;
		} else if (i->code == 0x79) {
			memcpy(&m.r[i->dst], m.context + i->off, 8);
		} else if (class == 1) {
			machine_must(i->src == 6, "loads from elsewhere");
			memcpy(&v, m.context + i->off,
			       i->code == 0x61	 ? 4
			       : i->code == 0x69 ? 2
						 : 1);
			m.r[i->dst] = v;
		} else if (i->code == 0x63) {
			machine_must(i->off >= EV_EXPRESSION_MEM &&
					     i->off <= EV_EXPRESSION_MEM + EV_EXPRESSION_N_MEM * 4 -
							       4,
				     "stores elsewhere");
			v = (uint32_t)m.r[i->src];
			memcpy(m.context + i->off, &v, 4);
		} else if (i->code == 0x85) {
			machine_must(i->imm == 113, "calls another helper");
			machine_call(&m);
		} else if (class == 5 && op == 0) {
			pc += (unsigned int)i->off;
		} else if (class == 5) {
			pc += machine_compares(op, m.r[i->dst], b) ? (unsigned int)i->off : 0;
		} else if (class == 6) {
			pc += machine_compares(op, (uint32_t)m.r[i->dst], (uint32_t)b)
				      ? (unsigned int)i->off
				      : 0;
		} else {
			machine_must(false, "an instruction that does not occur");
		}
		/* Nothing jumps backwards, or out of the room. */
		machine_must(pc > (size_t)(i - insns) && pc <= FILTER_ROOM,
			     "jumps backwards or out");
	}
	return (uint32_t)m.r[0];
}
