/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-internal.h - what the rooms of probes share and nobody else sees.
 *
 *	probes.c		open, load, attach, gate, run statistics
 *	probes-btf.c		decisions: what this kernel has, from its BTF alone
 *	probes-maps.c		rings, cells, epochs, ledger, in-flight entries
 *	probes-devices.c	the device filter, and how many requests the devices can have
 */
#pragma once

#include <pthread.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/probes.h"

struct block_bpf;

/* A row for every probe of the block stream, whether this kernel has its hook or not. */
#define PROBES_N_ROWS (EV_BLOCK_PROBES_END - 1)
_Static_assert(EV_BLOCK_PROBES_END <= EV_N_BLOCK_PROBES,
	       "the counter cells have no room for a probe");

/* Tracepoints whose presence or shape differs between kernels. */
enum probes_shape {
	PROBES_SHAPE_ABSENT = 0,
	PROBES_SHAPE_PLAIN = 1, /* (rq ...) or (bio ...) */
	PROBES_SHAPE_QUEUE = 2, /* the queue comes first; merges: (q, rq, bio) */
};

/* Everything decided by BTF. */
struct probes_facts {
	struct probes_kernel kernel;
	enum probes_shape insert, issue, requeue, rq_merge, back, front, getrq;
	bool complete;
	bool io_start;	     /* tracepoint block_io_start */
	bool account_start;  /* function blk_account_io_start, not inlined */
	bool counts_tracing; /* tp_btf and raw_tp: recursion is guarded and counted */
	bool counts_fentry;
	uint32_t op_read, op_flush, op_drv_in, op_drv_out, op_scsi_in, op_scsi_out; /* ~0 = none */
	uint32_t req_swap;
	uint32_t rqf_flush_seq, rqf_io_stat;
	uint64_t swap_page_flags; /* 0 = cannot be told */
};

/* One row of the probe table with what runs behind it. */
struct probes_row {
	struct bpf_program *program;
	struct bpf_link *link;
};

struct probes {
	struct block_bpf *skel;
	struct probes_facts facts;
	struct iot_probe table[PROBES_N_ROWS];
	struct probes_row rows[PROBES_N_ROWS]; /* parallel to table */

	unsigned int n_cpus;
	unsigned int n_rings;
	struct probes_ring rings[IOT_MAX_RINGS];
	uint64_t ring_size_bytes;
	struct ev_control *control;
	pthread_mutex_t lock;	/* of active: flips come from another thread than the rest */
	struct ev_epoch active; /* what the programs see; probes_publish() changes it */
	struct ev_cell *cells;
	size_t cells_bytes;
	uint32_t in_flight_entries;
};

int probes_decide(struct probes_facts *ret, struct iot_error *err) IOT_MUST_CHECK;

/* Between opening and loading: dimensions. After loading: rings, epoch 1, mmaps. */
int probes_maps_size(struct probes *p, const struct iot_stream_config *stream,
		     struct iot_error *err) IOT_MUST_CHECK;
int probes_maps_fill(struct probes *p, struct iot_error *err) IOT_MUST_CHECK;
void probes_maps_done(struct probes *p);

/* Puts next in place of p->active and returns when no program runs under the old one. Lock held. */
int probes_publish(struct probes *p, const struct ev_epoch *next) IOT_MUST_CHECK;

/* Requests that the present devices can have in flight, with margin for devices to come. */
uint32_t probes_count_requests(void);
