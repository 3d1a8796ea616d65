/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-filter.h - a pcap-filter(7) expression as instructions for the kernel programs.
 *
 * libpcap compiles the expression to classic BPF over a packet that begins with its IP header (DLT_RAW);
 * this room translates that into the instructions that bpf/packet-filter.bpf.h leaves room for. Loads go
 * through bpf_probe_read_kernel, all else is one to three instructions for one. Classic BPF only jumps
 * forward, so the verifier has nothing to prove about loops.
 *
 * No header of the kernel's is used here: it and libpcap both have a struct bpf_insn, not the same one.
 */
#pragma once

#include "bpf/events.h"
#include "format/base.h"

#define FILTER_ROOM EV_EXPRESSION_ROOM

/* One instruction as the kernel wants it (its struct bpf_insn). */
struct filter_insn {
	uint8_t code;
	uint8_t dst : 4;
	uint8_t src : 4;
	int16_t off;
	int32_t imm;
};

/*
 * The expression as exactly FILTER_ROOM instructions: control enters at the first and leaves behind the last. They
 * find behind r6, and may use, what bpf/events.h describes (struct packet_filter of bpf/packet-filter.bpf.h). r0
 * is the result, 0 = reject; r7 and r8 are classic BPF's A and X.
 * -EINVAL with libpcap's words, or for a loop (`protochain`); -E2BIG: too long.
 */
int filter_compile(const char *expression, struct filter_insn ret[FILTER_ROOM],
		   struct iot_error *err) IOT_MUST_CHECK;

/* Writes them behind each mark in the image of a BPF object; returns how many there were. */
size_t filter_write(uint8_t *image, size_t bytes,
		    const struct filter_insn insns[FILTER_ROOM]) IOT_MUST_CHECK;
