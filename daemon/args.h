/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - iotraced's command line, parsed without side effects, and its exit codes.
 *
 * The codes are sysexits.h's, so that a unit file can tell what a restart may cure (75, 74) from what
 * it cannot (64, 69, 77, 78).
 */
#pragma once

#include <sysexits.h>

#include "format/base.h"

enum args_mode {
	ARGS_RUN = 0,
	ARGS_CHECK_CONFIG,
	ARGS_PROBE_CHECK,
	ARGS_FINISH,
	ARGS_VERSION,
	ARGS_HELP,
};

/* Strings point into argv. */
struct args {
	enum args_mode mode;
	const char *config;    /* NULL = default files */
	const char *state_dir; /* NULL = of the configuration */
	const char *socket;
	uint64_t duration_ns; /* 0 = until a signal */
};

/* -EINVAL with err: exit EX_USAGE. */
int args_parse(int argc, char **argv, struct args *ret, struct iot_error *err) IOT_MUST_CHECK;
void args_help(FILE *f);
