/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picture.h - what the page of `report --html` draws of requests: counts in the columns of one time axis.
 * Pure: requests and losses in, numbers out, in memory that depends on none of them.
 *
 * The axis is known before (the time that was recorded), so a request goes into the column of its completion
 * and nothing moves later. Up to PICTURE_DEVICES disks, those with the most bytes, have rows of their own, the
 * others share one. Requests and bytes are those of the report's cells, divided by time: sums over the
 * columns are the report's numbers. So are sums over the heat map: its rows are quarters of the powers of
 * two that the report's histograms have.
 */
#pragma once

#include "daemon/ctl/report.h"

#define PICTURE_COLUMNS 320U
#define PICTURE_DEVICES 12U
#define PICTURE_MAPS 4U /* devices with a map of addresses */
#define PICTURE_HEAT_ROWS 256U
#define PICTURE_MAP_ROWS 128U

enum picture_kind {
	PICTURE_READ = 0,
	PICTURE_WRITE = 1,   /* with ZONE_APPEND, as in report-totals.h */
	PICTURE_DISCARD = 2, /* and others that give up what was there */
	PICTURE_OTHER = 3,
	PICTURE_SWAP_OUT = 4,
	PICTURE_SWAP_IN = 5,
	PICTURE_N_KINDS,
};
const char *picture_kind_name(enum picture_kind kind);
enum picture_kind picture_kind_of(uint8_t op, uint8_t swap);

struct picture_axis {
	uint64_t first_ns; /* CLOCK_REALTIME, a multiple of step_ns */
	uint64_t step_ns;  /* 0: there is no time */
	size_t n;
};
/* The least of 1, 2, 5, ... whose columns suffice. */
struct picture_axis picture_axis(uint64_t first_ns, uint64_t last_ns);
/* What lies outside (a clock that was wrong) is counted at the end that is nearer. step_ns > 0. */
size_t picture_column(const struct picture_axis *a, uint64_t realtime_ns);

/* Requests by the address at which they begin: rows of 2^shift sectors, as few as cover all of them. */
struct picture_map {
	uint64_t first_row; /* row 0 begins at first_row << shift */
	unsigned int shift;
	bool any;
	unsigned int low, high;		  /* rows that were used */
	uint64_t *cells[PICTURE_N_KINDS]; /* [column][row]; NULL: none */
};

struct picture_device {
	size_t device; /* of the report; SIZE_MAX: all that have no row of their own */
	uint64_t requests[PICTURE_N_KINDS][PICTURE_COLUMNS];
	uint64_t bytes[PICTURE_N_KINDS][PICTURE_COLUMNS]; /* done */
	uint64_t lost[PICTURE_COLUMNS];
	/* Time that requests spent in the queue and in the device within the column: divided by its
	 * length, how many of them there were on average. */
	uint64_t queue_ns[PICTURE_COLUMNS];
	uint64_t device_ns[PICTURE_COLUMNS];
	uint64_t *
		heat[PICTURE_N_KINDS]; /* of the latency in the device; [column][row]; NULL: none */
	bool mapped;
	struct picture_map map;
};

struct picture {
	struct picture_axis axis;
	uint64_t outside; /* requests that completed outside the axis */
	size_t n_devices;
	uint32_t *slots; /* by device of the report */
	size_t n_slots;
	struct picture_device *devices;
};

int picture_init(struct picture *p, const struct report *rp,
		 struct picture_axis axis) IOT_MUST_CHECK;
void picture_done(struct picture *p);
/* device: index of the report; the times of the request are shifted by shift_ns to CLOCK_REALTIME. */
int picture_add(struct picture *p, size_t device, const struct iot_request *r,
		uint64_t shift_ns) IOT_MUST_CHECK;
void picture_add_loss(struct picture *p, size_t device, uint64_t realtime_ns, uint64_t n);
/* Row of the heat map, and where it begins. */
unsigned int picture_heat_row(uint64_t ns);
uint64_t picture_heat_from(unsigned int row);
