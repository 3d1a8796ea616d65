/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet.h - a plan: which hook of the packet stream is to be served by which program, and how. Made from
 * BTF by probes-packet-hooks.c; probes-packet.c has it loaded, and takes back what does not load.
 */
#pragma once

#include "daemon/probes-internal.h"

/* How a hook is served. */
enum packet_by {
	PACKET_BY_NOTHING = 0,
	PACKET_BY_BTF = 1,
	PACKET_BY_RAW = 2,
	PACKET_BY_FENTRY = 3,
	PACKET_BY_KPROBE = 4,
	PACKET_BY_FEXIT = 5,
};

/* What a hook tells of the packets' identity; without all of it, it tells nothing. */
enum packet_role {
	PACKET_ROLE_NONE = 0,
	PACKET_ROLE_BIRTH = 1,
	PACKET_ROLE_END = 2,
};

struct packet_hook {
	uint16_t probe;
	uint8_t by;	 /* enum packet_by */
	uint8_t state;	 /* enum iot_attach, if by nothing */
	uint8_t role;	 /* enum packet_role */
	bool may_kprobe; /* a function, and its kprobe may be tried */
	bool twice; /* there is a second copy of its program, called the same with a 2 behind */
	int error;  /* if refused */
	const char *name;    /* of the hook */
	const char *program; /* without _btf, _raw, _fentry, _kprobe */
	char detail[96];     /* why by nothing */
};

#define PACKET_MAX_HOOKS PROBES_MAX_ROWS

struct packet_plan {
	struct packet_hook hooks[PACKET_MAX_HOOKS];
	size_t n;
	bool counts_tracing; /* runs that the kernel skips */
	bool counts_fentry;
	int fentry_error; /* 0: functions can be hooked */
};

void packet_plan_make(const struct btf *btf, const struct probes_options *opts,
		      const struct probes_packet_options *o, struct packet_plan *ret);
/* The name of the program that serves h, which is not served by nothing; or of its second copy. */
void packet_hook_program(const struct packet_hook *h, bool second, char ret[64]);
/* The first reason why births and ends are not all observed; NULL: they are, as far as hooks can tell. */
const struct iot_probe *packet_identity_gap(const struct iot_probe *rows, size_t n);
/* Takes what failed to load out of the plan. false: nothing of ours, so trying again is no use. */
bool packet_plan_demote(struct packet_plan *plan, const char *program, int error);
