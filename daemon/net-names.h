/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net-names.h - what interfaces and places in code are called, for the footers of packet segments.
 *
 * As names.h: owned by one thread (the rotor), since looking up means reading /proc, and a name is a
 * courtesy: an interface that is not found stays a number, and of a place in code without a symbol the last
 * three digits are told, which address randomisation leaves as they are. Interfaces of other network namespaces are found through a
 * process that lives in one; symbols through /proc/kallsyms, once per new set of places. What was
 * found is kept: an interface's name while it lasted outlives it.
 */
#pragma once

#include "daemon/id-set.h"
#include "daemon/places.h"
#include "format/record.h"

struct net_names {
	struct iot_names ifaces;  /* IOT_IFACE_KEY -> "eth0" */
	struct iot_names symbols; /* number of a place -> "ip_rcv_core+0x1f3" */
};

void net_names_done(struct net_names *n);
/* Looks keys up now, while they exist. */
void net_names_see_ifaces(struct net_names *n, const uint64_t *keys, size_t n_keys);
/* Tables for a segment; unknown = no row. */
int net_names_ifaces_of(struct net_names *n, const struct id_set *set,
			struct iot_names *ret) IOT_MUST_CHECK;
int net_names_symbols_of(struct net_names *n, const struct places *places, const struct id_set *set,
			 struct iot_names *ret) IOT_MUST_CHECK;
