/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - the wire between the kernel programs and the daemon, and nothing else.
 *
 * Everything here is native-endian and belongs to one build: BPF objects are embedded in the daemon,
 * so both sides always agree. It may change with every build; EV_ABI changes with it, so that a
 * successor that adopts a predecessor's maps knows whether it can read them. The disk format is
 * another truth (format/segment-def.h); daemon/decode-*.c is the only place that knows both.
 *
 * Invariants the programs keep, and the daemon relies on:
 *  - A program reads the active epoch once, at entry, and uses it for its record, its counters and
 *    its ledger entry.
 *  - Per (epoch, cpu, probe): seen = not_selected + folded + emitted + reserve_failed, and
 *    reserve_failed = filed + unattributed.
 *  - Cells are changed with atomic adds only: programs of one CPU interrupt each other.
 *
 * Included by BPF programs (after kernel.bpf.h gives the integer types) and by user space.
 */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EV_ABI 1U

#define EV_COMM_LEN 16

/* Records and map values are copied whole: padding would carry bytes that nobody wrote. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/*
 * Probe ids. Stable within the disk format too (segments carry id and name), so: explicit, never
 * reordered, never reused. 1..63 block stream, 64.. packet stream.
 */
enum ev_probe {
	EV_PROBE_NONE = 0,
	EV_PROBE_BLOCK_START = 1,	/* request got its first bio and entered accounting */
	EV_PROBE_BLOCK_GETRQ = 2,	/* submitter of a bio, where START has no hook (6.1) */
	EV_PROBE_BLOCK_INSERT = 3,	/* into the I/O scheduler or software queue */
	EV_PROBE_BLOCK_ISSUE = 4,	/* handed to the driver */
	EV_PROBE_BLOCK_REQUEUE = 5,	/* taken back from the driver */
	EV_PROBE_BLOCK_BIO_MERGE = 6,	/* a bio was merged into a queued request (front or back) */
	EV_PROBE_BLOCK_RQ_MERGE = 7,	/* a whole request was merged into another and retired */
	EV_PROBE_BLOCK_COMPLETE = 8,	/* the driver finished (part of) a request: the record */
	EV_PROBE_BLOCK_FRONT_MERGE = 9, /* the front half of BIO_MERGE: one probe per hook */
	EV_BLOCK_PROBES_END,		/* one past the last: new ones go before it */
	EV_N_BLOCK_PROBES = 16,		/* dimension of the block stream's counter cells */
};

/* Every record on a ring starts with this, so that even an undecodable one is filed by owner. */
struct ev_hdr {
	__u16 len;   /* whole record, bytes, multiple of 8 */
	__u16 probe; /* enum ev_probe */
	__u32 cpu;   /* CPU the program ran on */
	__u64 epoch; /* epoch the program read at entry */
	__u64 id;    /* object id; 0 = unidentified */
};

/*
 * Object ids: a per-CPU counter and the CPU that gave it. Unique within a capture. 13 bits cover
 * NR_CPUS = 8192, the largest that x86 and arm64 configure.
 */
#define EV_ID_CPU_BITS 13
#define EV_ID(counter, cpu) (((__u64)(counter) << EV_ID_CPU_BITS) | (cpu))

/* Where the submitter (pid, tgid, comm, cgroup) of a request was captured. */
enum ev_submitter {
	EV_SUBMITTER_NONE = 0,
	EV_SUBMITTER_START = 1,	 /* in the submitting context: exact */
	EV_SUBMITTER_INSERT = 2, /* usually the submitter, may be a plug flush by another task */
	EV_SUBMITTER_ISSUE = 3,	 /* whoever ran the queue: often a kernel worker */
};

/* Which rule tagged a request as swap; the direction follows from the operation. */
enum ev_swap_rule {
	EV_SWAP_NONE = 0,
	EV_SWAP_FLAG = 1,      /* REQ_SWAP in cmd_flags (writes) */
	EV_SWAP_PAGE = 2,      /* first page is in the swap cache (reads) */
	EV_SWAP_PARTITION = 3, /* sector range or partition listed in /proc/swaps */
};

/* ev_block.state: what the record knows about its own life. */
enum ev_block_state {
	/* Its birth was seen: at START or GETRQ, or for kinds without one (the flush machinery's own
	 * command) at its first hook. Clear: it began before the gate opened, or its entry was lost. */
	EV_BLOCK_SAW_START = 1 << 0,
	EV_BLOCK_PASSTHROUGH = 1 << 1, /* REQ_OP_DRV_*: no sector */
	EV_BLOCK_FLUSH_SEQ = 1 << 2,   /* the data or flush step of a flush sequence */
	EV_BLOCK_NO_STAT = 1 << 3,     /* RQF_IO_STAT clear: the kernel does not count it */
	EV_BLOCK_IN_FLIGHT = 1 << 4,   /* in-flight map value only: not completed */
	EV_BLOCK_PARTIAL = 1 << 5,     /* completed in more than one chunk */
	EV_BLOCK_NOT_SELECTED =
		1 << 6, /* in-flight map value only: the filter's decision, kept for life */
	EV_BLOCK_ISSUED = 1 << 7,     /* in-flight map value only: at the driver, else queued */
	EV_BLOCK_END_UNSEEN = 1 << 8, /* ledger only: no run saw the end, a later birth proved it */
};

/*
 * One record per request, made at its completion. It is also the value of the in-flight map, so
 * that emitting is one copy and `inflight` reads the same fields.
 *
 * Where it may grow: before `state`. Everything there is cleared at birth (block_begin()), so a new field
 * starts as 0; what stands behind is set by hand. comm stays aligned to 8, since it is copied in words. There
 * is no padding but what is written out: the record goes to user space whole.
 */
struct ev_block {
	struct ev_hdr hdr;
	__u64 start_ns;	     /* CLOCK_MONOTONIC; 0 = not seen */
	__u64 insert_ns;     /* last insert before first issue; 0 = bypassed the scheduler */
	__u64 issue_ns;	     /* first issue; 0 = not seen */
	__u64 issue_last_ns; /* last issue; equals issue_ns without requeue */
	__u64 complete_ns;   /* last chunk */
	__u64 sector;	     /* 512 B, disk-absolute; ~0 for passthrough and flush */
	__u64 cgroup;	     /* cgroup v2 inode id of bi_blkg, else of the submitter; 0 = unknown */
	__u64 ino;	     /* inode behind the first page; 0 = none (issue 3 fills it) */
	__u32 fsdev;	     /* its s_dev, kernel encoding */
	__u32 dev;	     /* disk, kernel encoding: major << 20 | minor */
	__u32 part;	     /* partition, same encoding; equals dev for the whole disk */
	__u32 bytes;	     /* asked, at issue */
	__u32 bytes_done;    /* sum of completed chunks */
	__u32 cmd_flags; /* rq->cmd_flags seen at start, insert and issue, OR-ed; op in the low bits */
	__u32 rq_flags; /* rq->rq_flags at completion */
	__s32 status;	/* raw: errno before 5.11-ish tracepoints, blk_status_t after */
	__u32 pid;
	__u32 tgid;
	__u16 requeues;
	__u16 merges;	/* bios and requests absorbed */
	__u16 segments; /* nr_phys_segments at issue */
	__u16 hwq;	/* hardware queue number at issue; 0xffff = none */
	__u32 issue_cpu;
	__u8 state;	/* enum ev_block_state */
	__u8 submitter; /* enum ev_submitter */
	__u8 swap_rule; /* enum ev_swap_rule */
	__u8 origin;	/* reserved for file attribution, 0 */
	char comm[EV_COMM_LEN];
};

/* Counters of one (epoch slot, cpu, probe). Two cache lines would be wasted on one: keep at 128. */
struct ev_cell {
	__u64 seen;
	__u64 not_selected;
	__u64 folded; /* taken into the in-flight entry, to be emitted later */
	__u64 emitted;
	__u64 reserve_failed;
	__u64 filed;
	__u64 unattributed;
	__u64 identity_full; /* no in-flight entry or id could be given; subset of the above */
	__u64 read_failed;   /* a kernel field could not be read; subset */
	__u64 unattributed_first_ns; /* window of the unattributed losses, best effort; 0 = none */
	__u64 unattributed_last_ns;
	__u64 pad[5];
};

/* Cell index in the mmap'able cells map: [slot][cpu][probe]. */
#define EV_CELL_INDEX(slot, cpu, n_cpus, probe, n_probes) \
	((((slot) * (n_cpus)) + (cpu)) * (n_probes) + (probe))

/* Ledger: what was lost, by owner. Plain preallocated hash, one per epoch slot. */
struct ev_ledger_key {
	__u64 id;
	__u32 probe;
	__u32 cpu; /* 0: keyed by object and probe; of id 0 (unidentified): CPU | EV_LEDGER_SWAP() */
};

struct ev_ledger_val {
	__u64 n;     /* observations lost */
	__u64 bytes; /* bytes_done they would have carried */
	__u64 sector;
	__u64 first_ns;
	__u64 last_ns;
	__u32 dev;
	__u32 part;
	__u32 cmd_flags;
	__u32 rq_flags;
	__u32 state; /* enum ev_block_state, and EV_LEDGER_SWAP() */
	__s32 status;
};

/* A lost request keeps its swap tag, or the sums of swapped bytes would not close: above the state bits. */
#define EV_LEDGER_SWAP_SHIFT 16
#define EV_LEDGER_SWAP(rule) ((__u32)(rule) << EV_LEDGER_SWAP_SHIFT)

/*
 * Value of each inner map of the epoch map-in-map: all that a program must see at one instant, so one
 * look-up at entry reads it. Never changed once active: any change is a new inner map, and putting it in
 * place waits for the programs that run under the old one. Counter and ledger slot = epoch & 1.
 */
struct ev_epoch {
	__u64 epoch; /* from 1 */
	__u64 gate;  /* 1 = observe; 0 = programs return at once, uncounted (attach is not whole) */
	__u64 filter;	      /* enum ev_filter */
	__u64 reap_before_ns; /* idle entries that ended before are being deleted: leave them alone */
};

/* One mmap'able control page shared with the consumer. */
struct ev_control {
	__u64 armed;	  /* 1 = the consumer sleeps and wants one wake-up */
	__u64 identities; /* entries that programs put into the in-flight map, less those reaped */
	__u64 pad[6];
};

enum ev_filter {
	EV_FILTER_NONE = 0,    /* every device */
	EV_FILTER_INCLUDE = 1, /* only devices in the filter map */
	EV_FILTER_EXCLUDE = 2, /* all but devices in the filter map */
};

#pragma GCC diagnostic pop
