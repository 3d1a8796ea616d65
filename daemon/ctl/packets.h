/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packets.h - the packet captures of a scan: per capture its segments, what is in doubt, and the life of
 * each packet.
 *
 * A verdict on a packet needs all of its records, whatever a person wants to see of them: so lives are
 * gathered from whole segments, without filters, and in memory (about 110 bytes a packet, twice that while
 * it grows). A block of some hundred bytes may claim 65,536 packets, so there is a limit to what is believed.
 */
#pragma once

#include "daemon/ctl/ctl-util.h"

#define CTL_PACKETS_MAX (1U << 25) /* of one capture: 4 GB */
extern size_t ctl_packets_max;	   /* lowered by tests */

struct ctl_capture {
	struct iot_segment **segments; /* sorted by seq; borrowed from the scan */
	size_t n;
	const struct iot_segment_info **infos;
	const struct iot_footer **footers;
	struct iot_footer *copies; /* with the ledgers */
	struct iot_loss **ledgers;
	struct iot_doubts *doubts;
	/* by id; lives without a record are of the ledger's */
	struct iot_packet_life *lives;
	size_t n_lives;
	size_t *slots; /* life + 1 */
	uint64_t seed; /* of the slots */
	size_t n_slots;
	const uint64_t *only; /* sorted: only their lives; NULL: all */
	size_t n_only;
	uint64_t n_records;
	uint64_t n_unidentified; /* of them */
	size_t n_unsealed;	 /* segments without a footer: what they counted is not known */
	bool ledgers_whole;	 /* what is filed in them is all that was filed */
	uint64_t first_ns;	 /* of its epochs, CLOCK_MONOTONIC */
	uint64_t last_ns;
};

struct ctl_packets {
	struct ctl_capture *captures;
	size_t n;
};

/* ctl_scan_open without the filters. */
int ctl_packets_scan(const struct ctl *c, int argc, char **argv,
		     struct iot_scan **ret) IOT_MUST_CHECK;
/* Reads everything; none is no error. Negative errno with err. */
int ctl_packets_read(struct iot_scan *scan, struct ctl_packets *ret,
		     struct iot_error *err) IOT_MUST_CHECK;
/* Everything is read, but kept are only the lives of n packets with these ids, sorted, which live as long: what is
 * in doubt of them is known as if there were all. */
int ctl_packets_read_some(struct iot_scan *scan, const uint64_t *ids, size_t n,
			  struct ctl_packets *ret, struct iot_error *err) IOT_MUST_CHECK;
/* As ctl_packets_read(). CTL_OK, or a code with the reason said: also if there is no packet segment at all. */
int ctl_packets_open(struct iot_scan *scan, struct ctl_packets *ret) IOT_MUST_CHECK;
/* Says that there is none; CTL_ERROR. */
int ctl_packets_none(void);
void ctl_packets_done(struct ctl_packets *p);

struct ctl_capture *ctl_packets_find(const struct ctl_packets *p, const struct iot_segment *s);
/* NULL: the capture has neither record nor loss of it. */
struct iot_packet_life *ctl_capture_life(const struct ctl_capture *c, uint64_t id);
/* Name of a probe by the last segment that has it. */
const char *ctl_capture_probe(const struct ctl_capture *c, uint16_t probe, char *buf, size_t size);
/* The row of the last segment that has it; NULL = none. */
const struct iot_probe *ctl_capture_probe_row(const struct ctl_capture *c, uint16_t probe);
/* By name; 0 = there is none. */
uint16_t ctl_capture_probe_id(const struct ctl_capture *c, const char *name);
/* Probes that only count: births are taken into the packet's entry. */
bool ctl_probe_only_counts(uint16_t probe);

/* ---- capture-times.c ---- */

/* Wall clock of a time of the capture, by the clocks of the segment that has it. */
uint64_t ctl_capture_realtime_ns(const struct ctl_capture *c, uint64_t monotonic_ns);
/* What each of its segments covers by the wall clock, as ctl_cover_check() takes it: c->n of them. */
void ctl_capture_spans(const struct ctl_capture *c, struct ctl_span *ret);
/* A part of a capture's time; UINT64_MAX: its end is not known. */
struct ctl_part {
	uint64_t first_ns; /* CLOCK_MONOTONIC */
	uint64_t last_ns;
	uint64_t wall_first_ns;
	uint64_t wall_last_ns;
};
/* The parts that are between f's --since and --until, in order: more than one only where the wall clock was
 * set. The caller frees *ret, also if there is none. -ENOMEM. */
int ctl_capture_asked(const struct ctl_capture *c, const struct iot_filter *f,
		      struct ctl_part **ret, size_t *ret_n) IOT_MUST_CHECK;
