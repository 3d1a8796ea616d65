/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - what a segment's header says about the machine, the kernel and the capture: collected
 * once when the capture starts, so that opening a segment reads nothing but clocks.
 */
#pragma once

#include "config/config.h"
#include "daemon/names.h"
#include "daemon/probes.h"
#include "format/writer.h"

struct facts {
	struct iot_segment_info info; /* all but epoch, seq, clocks, probes and devices */
};

/* attach_ns: when the gate opened. What cannot be read stays zero or empty, except for the boot id. */
int facts_collect(const struct iot_config *config, struct probes *probes, enum iot_stream stream,
		  const uint8_t capture_id[16], uint64_t attach_ns, struct facts *ret,
		  struct iot_error *err) IOT_MUST_CHECK;

/* What the header says was selected: "all", "without swap; include A,B; exclude C". */
void facts_selection(const struct iot_config *c, enum iot_stream stream, char *buf, size_t size);

void facts_done(struct facts *f);

/* The header of one segment. Probes and reasons are borrowed; devices are owned: iot_names_done(). */
int facts_segment(const struct facts *f, struct probes *probes, struct names *names, uint64_t epoch,
		  uint64_t seq, struct iot_segment_info *ret) IOT_MUST_CHECK;
