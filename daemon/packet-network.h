/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet-network.h - two network namespaces that are the caller's alone, and a veth pair between them, with receive
 * offload where the kernel has that. They go with the last process and descriptor that is in them.
 */
#pragma once

#include "format/base.h"

/* Makes both, in a user namespace of their own if that may be, and is in the second one then. */
int packet_network_namespaces(int ret_ns[2], uint32_t ret_inodes[2]) IOT_MUST_CHECK;
/* Sockets are made in the namespace that their maker is in. */
int packet_network_enter(int ns) IOT_MUST_CHECK;
/* IPv4, /24. -EOPNOTSUPP: this kernel has no veth. */
int packet_network_make(const int ns[2], uint32_t near_address,
			uint32_t far_address) IOT_MUST_CHECK;
