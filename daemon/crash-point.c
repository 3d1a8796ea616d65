// SPDX-License-Identifier: BSD-2-Clause
/* crash-point.c - see crash-point.h. */
#include <signal.h>

#include "daemon/crash-point.h"

bool crash_point_armed;
static char wanted[64];
static uint64_t remaining;

int crash_point_init(void)
{
	const char *e = getenv("IOTRACED_CRASH_AT"), *colon;
	size_t len;

	crash_point_armed = false;
	if (!e || !*e)
		return 0;
	colon = strchr(e, ':');
	len = colon ? (size_t)(colon - e) : strlen(e);
	if (len == 0 || len >= sizeof(wanted))
		return -EINVAL;
	memcpy(wanted, e, len);
	wanted[len] = 0;
	remaining = 1;
	if (colon && (iot_parse_u64(colon + 1, &remaining) < 0 || remaining == 0))
		return -EINVAL;
	crash_point_armed = true;
	return 0;
}

void crash_point_pass(const char *name)
{
	if (strcmp(name, wanted) != 0)
		return;
	if (__atomic_sub_fetch(&remaining, 1, __ATOMIC_RELAXED) == 0)
		(void)kill(getpid(), SIGKILL);
}
