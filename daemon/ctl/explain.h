/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain.h - the two halves of `explain`: packets, and a question about a probe.
 */
#pragma once

#include "daemon/ctl/packets.h"

/* Did any packet of the flow reach the probe within the time? Exit code of the verb. */
int explain_probe(const struct ctl *c, struct iot_scan *scan,
		  struct ctl_packets *packets) IOT_MUST_CHECK;
