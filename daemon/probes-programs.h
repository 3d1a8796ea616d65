/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-programs.h - between the list of others' programs (probes-programs.c) and our programs at one of them
 * (probes-program.c).
 */
#pragma once

#include <time.h>

#include "daemon/probes-packet.h"

#define PROGRAMS_FIRST (EV_PROBE_PACKET_PROGRAM + 1)
#define PROGRAMS_MAX (EV_PACKET_PROGRAMS_END - PROGRAMS_FIRST)

struct packet_program_bpf;

struct program {
	uint32_t id;
	uint32_t missed_before; /* by programs of ours that were replaced */
	size_t row;
	int entry, entry_link; /* ours; negative: none */
	int back, back_link;
	int replaced[2]; /* earlier ones, which others may still be asking */
	bool observed;	 /* attached now */
	bool unused;	 /* nobody else held it when we last looked */
	bool kept;	 /* came back after it had been let go */
};

struct probes_programs {
	struct packet_program_bpf *list;
	struct bpf_link *list_link;
	uint8_t *image; /* of the object, with the filter expression in it */
	size_t image_bytes;
	bool counts; /* runs that the kernel skips */
	uint32_t last_id;
	bool started; /* whose word is libbpf's: until then that of whoever opens the probes */
	struct program items[PROGRAMS_MAX];
	size_t n;
};

static inline uint64_t programs_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* What the kernel says of a program. fd: the holder closes it. */
struct target {
	int fd;
	uint64_t loaded_ns; /* CLOCK_MONOTONIC */
	char function[128]; /* "": it has no BTF */
	char name[BPF_OBJ_NAME_LEN];
};
int program_look_at(uint32_t id, struct target *ret) IOT_MUST_CHECK;

/* The object with the stream's maps and constants; no program of it is to be loaded yet. */
int program_open(struct probes *p, struct packet_program_bpf **ret) IOT_MUST_CHECK;
/* Makes ours for g, whose row is filled, and attaches them. */
int program_attach(struct probes *p, struct program *g, int target,
		   const char *function) IOT_MUST_CHECK;
void program_detach(struct program *g);
void program_close(struct program *g);
