/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-filter.c - libpcap's classic BPF, translated.
 *
 * Two passes over the classic instructions: the first learns how long each one's translation is, hence
 * where jumps lead, the second writes. What is left of the room is filled in front with jumps to the next
 * instruction, which the kernel's verifier takes out again; behind the code it would call them
 * unreachable. Everything is 32 bits wide, as in classic BPF. A load beyond the end rejects the packet,
 * and so does a division by zero.
 */
#include <assert.h>
#include <errno.h>
#include <pcap/pcap.h>

#include "daemon/probes-filter.h"

/* Of the kernel's instruction set (Documentation/bpf/standardization/instruction-set.rst). */
enum {
	E_ALU32 = 0x04,
	E_ALU64 = 0x07,
	E_JMP = 0x05,
	E_JMP32 = 0x06,
	E_LDX = 0x61, /* of a u32; halves and bytes beside it */
	E_LDX_H = 0x69,
	E_LDX_B = 0x71,
	E_LDX_DW = 0x79,
	E_STX = 0x63, /* of a u32 */
	E_MOV = 0xb0,
	E_END_BE = 0xdc, /* to big endian, ALU32 */
	E_CALL = 0x85,
	E_SRC = 0x08, /* operand is a register */
	E_ADD = 0x00,
	E_AND = 0x50,
	E_LSH = 0x60,
	E_RSH = 0x70,
	E_JEQ = 0x10,
	E_JGT = 0x20,
	E_JNE = 0x50,
};

#define HELPER_PROBE_READ_KERNEL 113

enum {
	R0 = 0,
	R1 = 1,
	R2 = 2,
	R3 = 3,
	R4 = 4,
	R5 = 5,
	DATA = 6,
	A = 7,
	X = 8,
};

#define FAIL (-1) /* jump targets that are no classic instruction */
#define DONE (-2)

struct translation {
	const struct bpf_insn *in;
	unsigned int n_in;
	unsigned int *start;	 /* of each classic instruction's translation */
	struct filter_insn *out; /* NULL in the first pass */
	unsigned int n;
	unsigned int fail; /* where the rejecting instruction is */
	unsigned int end;  /* behind the room */
	bool fails;
};

static void put(struct translation *t, uint8_t code, uint8_t dst, uint8_t src, int off, int32_t imm)
{
	if (t->out)
		t->out[t->n] = (struct filter_insn){code, dst & 15U, src & 15U, (int16_t)off, imm};
	t->n++;
}

static void put_k(struct translation *t, uint8_t op, uint8_t dst, uint32_t k)
{
	put(t, E_ALU32 | op, dst, 0, 0, (int32_t)k);
}

/* A jump to a classic instruction, FAIL or DONE. */
static void jump(struct translation *t, uint8_t code, uint8_t dst, uint8_t src, uint32_t k, int to)
{
	unsigned int at = to == FAIL ? t->fail : to == DONE ? t->end : t->out ? t->start[to] : 0;

	t->fails = t->fails || to == FAIL;
	put(t, code, dst, src, (int)at - (int)t->n - 1, (int32_t)k);
}

/* Reads size bytes at k (indexed: k + X) into dst, in host order. */
static void load(struct translation *t, uint8_t dst, uint32_t k, uint32_t size, bool indexed)
{
	/* Behind any packet; also where libpcap's special offsets would be, none of which it has for files. */
	if (k > 0xffff) {
		jump(t, E_JMP, 0, 0, 0, FAIL);
		return;
	}
	put(t, E_LDX, R4, DATA, EV_EXPRESSION_N, 0);
	put_k(t, E_MOV, R5, k + size);
	if (indexed) {
		/* X may be anything: the sum is 64 bits wide. */
		put(t, E_ALU64 | E_ADD | E_SRC, R5, X, 0, 0);
	}
	jump(t, E_JMP | E_JGT | E_SRC, R5, R4, 0, FAIL);
	put(t, E_ALU64 | E_MOV | E_SRC, R1, DATA, 0, 0);
	put(t, E_ALU64 | E_ADD, R1, 0, 0, EV_EXPRESSION_LOAD);
	put_k(t, E_MOV, R2, size);
	put(t, E_LDX_DW, R3, DATA, EV_EXPRESSION_AT, 0);
	put(t, E_ALU64 | E_ADD, R3, 0, 0, (int32_t)k);
	if (indexed)
		put(t, E_ALU64 | E_ADD | E_SRC, R3, X, 0, 0);
	put(t, E_CALL, 0, 0, 0, HELPER_PROBE_READ_KERNEL);
	jump(t, E_JMP | E_JNE, R0, 0, 0, FAIL);
	put(t, size == 1 ? E_LDX_B : size == 2 ? E_LDX_H : E_LDX, dst, DATA, EV_EXPRESSION_LOAD, 0);
	if (size > 1)
		put(t, E_END_BE, dst, 0, 0, (int32_t)size * 8);
}

/* Offset of M[k]. */
static int memory(uint32_t k)
{
	_Static_assert(EV_EXPRESSION_N_MEM == BPF_MEMWORDS, "all of M[] has its place");
	assert(k < EV_EXPRESSION_N_MEM);
	return EV_EXPRESSION_MEM + (int)k * 4;
}

static void put_load(struct translation *t, const struct bpf_insn *c, uint8_t dst)
{
	uint32_t size = BPF_SIZE(c->code) == BPF_B ? 1 : BPF_SIZE(c->code) == BPF_H ? 2 : 4;

	switch (BPF_MODE(c->code)) {
	case BPF_IMM:
		put_k(t, E_MOV, dst, c->k);
		break;
	case BPF_LEN:
		put(t, E_LDX, dst, DATA, EV_EXPRESSION_LEN, 0);
		break;
	case BPF_MEM:
		put(t, E_LDX, dst, DATA, memory(c->k), 0);
		break;
	case BPF_MSH:
		load(t, dst, c->k, 1, false);
		put_k(t, E_AND, dst, 15);
		put_k(t, E_LSH, dst, 2);
		break;
	default:
		load(t, dst, c->k, size, BPF_MODE(c->code) == BPF_IND);
		break;
	}
}

/* Arithmetic has the same numbers in both machines, and so have comparisons. */
static void put_alu(struct translation *t, const struct bpf_insn *c)
{
	uint8_t op = BPF_OP(c->code);
	bool by_x = BPF_SRC(c->code) == BPF_X, divides = op == BPF_DIV || op == BPF_MOD;

	if (op == BPF_NEG) {
		put(t, E_ALU32 | BPF_NEG, A, 0, 0, 0);
	} else if (by_x) {
		if (divides)
			jump(t, E_JMP32 | E_JEQ, X, 0, 0, FAIL);
		/* Of a shift this machine takes the low five bits only. */
		if (op == BPF_LSH || op == BPF_RSH)
			put(t, E_JMP32 | E_JGT, X, 0, 2, 31);
		put(t, E_ALU32 | op | E_SRC, A, X, 0, 0);
		if (op == BPF_LSH || op == BPF_RSH) {
			put(t, E_JMP, 0, 0, 1, 0);
			put_k(t, E_MOV, A, 0);
		}
	} else if (divides && c->k == 0) {
		jump(t, E_JMP, 0, 0, 0, FAIL);
	} else if ((op == BPF_LSH || op == BPF_RSH) && c->k > 31) {
		put_k(t, E_MOV, A, 0);
	} else {
		put_k(t, op, A, c->k);
	}
}

static void put_jump(struct translation *t, const struct bpf_insn *c, int i)
{
	uint8_t op = BPF_OP(c->code), src = BPF_SRC(c->code) == BPF_X ? E_SRC : 0;
	int jt = i + 1 + c->jt, jf = i + 1 + c->jf;

	if (op == BPF_JA) {
		jump(t, E_JMP, 0, 0, 0, i + 1 + (int)c->k);
		return;
	}
	if (jt == jf) {
		jump(t, E_JMP, 0, 0, 0, jt);
		return;
	}
	jump(t, E_JMP32 | op | src, A, src ? X : 0, src ? 0 : c->k, jt);
	if (jf != i + 1)
		jump(t, E_JMP, 0, 0, 0, jf);
}

static void put_return(struct translation *t, const struct bpf_insn *c)
{
	if (BPF_RVAL(c->code) == BPF_A)
		put(t, E_ALU32 | E_MOV | E_SRC, R0, A, 0, 0);
	else
		put_k(t, E_MOV, R0, c->k);
	jump(t, E_JMP, 0, 0, 0, DONE);
}

static void put_insn(struct translation *t, int i)
{
	const struct bpf_insn *c = &t->in[i];

	switch (BPF_CLASS(c->code)) {
	case BPF_LD:
		put_load(t, c, A);
		break;
	case BPF_LDX:
		put_load(t, c, X);
		break;
	case BPF_ST:
		put(t, E_STX, DATA, A, memory(c->k), 0);
		break;
	case BPF_STX:
		put(t, E_STX, DATA, X, memory(c->k), 0);
		break;
	case BPF_ALU:
		put_alu(t, c);
		break;
	case BPF_JMP:
		put_jump(t, c, i);
		break;
	case BPF_RET:
		put_return(t, c);
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(c->code) == BPF_TAX)
			put(t, E_ALU32 | E_MOV | E_SRC, X, A, 0, 0);
		else
			put(t, E_ALU32 | E_MOV | E_SRC, A, X, 0, 0);
		break;
	}
}

static void put_all(struct translation *t)
{
	/* The kernel's verifier wants to see them written. */
	put_k(t, E_MOV, A, 0);
	put_k(t, E_MOV, X, 0);
	for (unsigned int i = 0; i < t->n_in; i++) {
		t->start[i] = t->n;
		put_insn(t, (int)i);
	}
	t->fail = t->n;
	if (t->fails)
		put_k(t, E_MOV, R0, 0);
}

/* Only `protochain` makes libpcap jump backwards. */
static bool has_loop(const struct bpf_program *program)
{
	for (unsigned int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *c = &program->bf_insns[i];

		if (BPF_CLASS(c->code) == BPF_JMP && BPF_OP(c->code) == BPF_JA &&
		    c->k >= program->bf_len - i - 1)
			return true;
	}
	return false;
}

static int translate(const struct bpf_program *program, struct filter_insn ret[FILTER_ROOM],
		     struct iot_error *err)
{
	_cleanup_free_ unsigned int *start = calloc(program->bf_len, sizeof(*start));
	struct translation t = {.in = program->bf_insns, .n_in = program->bf_len, .start = start};
	unsigned int length, pad;

	if (!start)
		return iot_error_set(err, -ENOMEM, "out of memory");
	if (has_loop(program))
		return iot_error_set(err, -EINVAL,
				     "filter expression: 'protochain' takes a loop, which the "
				     "kernel programs have none of");
	put_all(&t);
	length = t.n;
	if (length > FILTER_ROOM)
		return iot_error_set(err, -E2BIG,
				     "the filter expression is too long for the kernel programs: "
				     "%u instructions of at most %u",
				     length, FILTER_ROOM);
	pad = FILTER_ROOM - length;
	for (unsigned int i = 0; i < pad; i++)
		ret[i] = (struct filter_insn){.code = E_JMP};
	for (unsigned int i = 0; i < t.n_in; i++)
		start[i] += pad;
	t.fail += pad;
	t.end = FILTER_ROOM;
	t.out = ret;
	t.n = pad;
	put_all(&t);
	assert(t.n == FILTER_ROOM);
	return 0;
}

size_t filter_write(uint8_t *image, size_t bytes, const struct filter_insn insns[FILTER_ROOM])
{
	/* r0 = the mark; nothing else in the image looks like it. */
	const struct filter_insn mark = {
		.code = E_ALU32 | E_MOV, .dst = R0, .imm = EV_EXPRESSION_MARK};
	size_t room = (1 + FILTER_ROOM) * sizeof(mark), n = 0;

	_Static_assert(sizeof(mark) == 8, "as the kernel has it");
	for (size_t i = 0; i + room <= bytes; i += sizeof(mark)) {
		if (memcmp(image + i, &mark, sizeof(mark)) != 0)
			continue;
		memcpy(image + i + sizeof(mark), insns, room - sizeof(mark));
		n++;
	}
	return n;
}

int filter_compile(const char *expression, struct filter_insn ret[FILTER_ROOM],
		   struct iot_error *err)
{
	struct bpf_program program;
	pcap_t *pcap;
	int r;

	pcap = pcap_open_dead(DLT_RAW, 65535);
	if (!pcap)
		return iot_error_set(err, -ENOMEM, "out of memory");
	r = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN);
	if (r < 0) {
		r = iot_error_set(err, -EINVAL, "filter expression '%s': %s", expression,
				  pcap_geterr(pcap));
	} else {
		r = translate(&program, ret, err);
		pcap_freecode(&program);
	}
	pcap_close(pcap);
	return r;
}
