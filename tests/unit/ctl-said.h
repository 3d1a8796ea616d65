/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl-said.h - what main.c of iotracectl has and programs that link only its library lack: the message is
 * kept instead of printed. One include per program.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

static char ctl_said[512];

int ctl_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ctl_said, sizeof(ctl_said), fmt, ap);
	va_end(ap);
	return code;
}
