/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drops.h - the packets that the kernel dropped, counted by reason, place, interface and flow: what `drops`
 * and the page of `report --html` show.
 */
#pragma once

#include "daemon/ctl/packets.h"
#include "format/books.h"

struct drop_key {
	uint64_t place; /* hash of its name, or of capture and number */
	struct iot_flow flow;
	uint32_t netns;
	uint32_t ifindex;
	int32_t code;
	uint32_t group; /* within which numbers mean something: the first of its segments */
};

struct drop_row {
	struct drop_key key;
	const struct iot_segment *s; /* the first, for names */
	const char *place;	     /* NULL: it has none */
	uint64_t where;		     /* its number in the first capture */
	uint64_t n;
	uint64_t bytes;
	uint64_t lost;
};

struct drops {
	bool per_capture;
	size_t n_groups;
	size_t n_unsealed;   /* segments */
	size_t n_unreadable; /* ledgers */
	struct drop_row *rows;
	size_t n;
	size_t *slots; /* row + 1 */
	size_t n_slots;
	uint64_t seed;
	const struct iot_segment *last; /* of the last drop, with what is the same for the next */
	const char *last_place;
	uint64_t last_where;
	size_t last_group;
	struct iot_sum not_selected, suppressed, unattributed, missed;
};

void drops_init(struct drops *d, bool per_capture);
void drops_done(struct drops *d);
/* An observation that the scan gave; of all probes, those of drops are counted. */
int drops_add(struct drops *d, struct iot_scan *scan, struct iot_segment *s,
	      const struct iot_packet *p) IOT_MUST_CHECK;
/* What the footers say, once. Negative errno with err. */
int drops_add_losses(struct drops *d, struct iot_scan *scan, const struct iot_filter *f,
		     struct iot_error *err) IOT_MUST_CHECK;

typedef int drops_order(const void *a, const void *b);
/* Rows that differ in it are apart in a table. */
drops_order drops_by_place;
drops_order drops_by_flow;
/* The most first; of rows of such a table the order is total. */
drops_order drops_by_number_and_place;
drops_order drops_by_number_and_flow;
/* Sums up rows that cmp takes for equal, in the order of then. Free *ret. */
int drops_sum_up(const struct drops *d, drops_order *cmp, drops_order *then, struct drop_row **ret,
		 size_t *ret_n) IOT_MUST_CHECK;

/* A number where there is no name; "-" where there is none at all. */
const char *drops_reason(const struct drop_row *row, char *buf, size_t size);
const char *drops_location(const struct drop_row *row, char *buf, size_t size);
const char *drops_iface(const struct drop_row *row, char *buf, size_t size);
