/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.h - what a segment says, as plain structs in memory: one request, one loss, one window of
 * doubt, the counters of one probe on one CPU, and the facts about the capture.
 *
 * These are the in-memory shapes only. On disk requests are columns (columns.h, FORMAT.md) and the
 * rest are the structs of segment-def.h. The values of the enums below are on disk: explicit,
 * never reordered. Absent is a stated value (0 for times, IOT_SECTOR_NONE, ...), never a guess.
 */
#pragma once

#include "format/base.h"

#define IOT_COMM_LEN 16
#define IOT_SECTOR_NONE UINT64_MAX
#define IOT_HWQ_NONE UINT16_MAX
#define IOT_CPU_NONE 8191U /* of imported requests: not told; the highest that an id has room for */

/* Device numbers on disk and in memory: major << 20 | minor, as the kernel's dev_t. */
#define IOT_DEV_MAJOR(d) ((uint32_t)(d) >> 20)
#define IOT_DEV_MINOR(d) (0xfffffU & (uint32_t)(d))
#define IOT_DEV_MAJOR_MAX 0xfffU
#define IOT_DEV_MINOR_MAX 0xfffffU
#define IOT_DEV(ma, mi) ((uint32_t)(ma) << 20 | (0xfffffU & (uint32_t)(mi)))

enum iot_stream {
	IOT_STREAM_BLOCK = 1,
	IOT_STREAM_PACKET = 2,
};

/* The block stream's records are made at this probe; ids on disk are stable (bpf/events.h). */
#define IOT_PROBE_BLOCK_COMPLETE 8

enum iot_op {
	IOT_OP_OTHER = 0,
	IOT_OP_READ = 1,
	IOT_OP_WRITE = 2,
	IOT_OP_FLUSH = 3,
	IOT_OP_DISCARD = 4,
	IOT_OP_SECURE_ERASE = 5,
	IOT_OP_WRITE_ZEROES = 6,
	IOT_OP_ZONE_APPEND = 7,
	IOT_OP_ZONE_OPEN = 8,
	IOT_OP_ZONE_CLOSE = 9,
	IOT_OP_ZONE_FINISH = 10,
	IOT_OP_ZONE_RESET = 11,
	IOT_OP_ZONE_RESET_ALL = 12,
	IOT_OP_DRV_IN = 13,
	IOT_OP_DRV_OUT = 14,
	IOT_N_OPS,
};

enum iot_flag {
	IOT_FLAG_SYNC = 1U << 0,
	IOT_FLAG_META = 1U << 1,
	IOT_FLAG_PRIO = 1U << 2,
	IOT_FLAG_AHEAD = 1U << 3,
	IOT_FLAG_FUA = 1U << 4,
	IOT_FLAG_PREFLUSH = 1U << 5,
	IOT_FLAG_NOMERGE = 1U << 6,
	IOT_FLAG_IDLE = 1U << 7,
	IOT_FLAG_INTEGRITY = 1U << 8,
	IOT_FLAG_BACKGROUND = 1U << 9,
	IOT_FLAG_POLLED = 1U << 10,
	IOT_FLAG_ATOMIC = 1U << 11,
	IOT_FLAG_SWAP = 1U << 12,
	IOT_FLAG_NOWAIT = 1U << 13,
	IOT_FLAG_NOUNMAP = 1U << 14,
	IOT_FLAG_FAILFAST = 1U << 15,
	IOT_FLAG_CGROUP_PUNT = 1U << 16,
	/* Facts about the record itself, from 1 << 24 on. */
	IOT_FLAG_FLUSH_SEQ = 1U << 24, /* step of a flush sequence */
	IOT_FLAG_NO_START = 1U << 25, /* its beginning was not observed (before attach, map full) */
	IOT_FLAG_NO_STAT = 1U << 26,  /* the kernel does not count it in diskstats */
	IOT_FLAG_PARTIAL = 1U << 27,  /* completed in several chunks */
};

enum iot_swap {
	IOT_SWAP_NONE = 0,
	IOT_SWAP_OUT = 1,
	IOT_SWAP_IN = 2,
};

/* The direction of what a rule has tagged. */
static inline uint8_t iot_swap_of(uint8_t op, uint8_t swap_rule)
{
	if (!swap_rule)
		return IOT_SWAP_NONE;
	return op == IOT_OP_WRITE ? IOT_SWAP_OUT : op == IOT_OP_READ ? IOT_SWAP_IN : IOT_SWAP_NONE;
}

/* Where pid, tgid, comm and cgroup come from. */
enum iot_submitter {
	IOT_SUBMITTER_NONE = 0,
	IOT_SUBMITTER_START = 1,
	IOT_SUBMITTER_INSERT = 2,
	IOT_SUBMITTER_ISSUE = 3,
};

/*
 * What kind of thing the first page of a request belongs to. Only the first bio of a request is looked
 * at: of a merged request, the bio that began it.
 */
enum iot_origin {
	IOT_ORIGIN_UNKNOWN = 0,	 /* not looked at, not readable, or it could not be told */
	IOT_ORIGIN_FILE = 1,	 /* page cache of a file: ino, fsdev */
	IOT_ORIGIN_METADATA = 2, /* page cache of a block device or of a file system's own tree */
	IOT_ORIGIN_SWAP = 3,	 /* see swap, swap_rule */
	IOT_ORIGIN_DIRECT = 4,	 /* memory of a process: direct I/O */
	IOT_ORIGIN_PRIVATE = 5,	 /* memory of the kernel: journal copies, buffers, bounce pages */
	IOT_ORIGIN_NONE = 6,	 /* no data: flush, discard, ... */
	IOT_ORIGIN_PASSTHROUGH = 7, /* a driver's command */
	IOT_N_ORIGINS,
};

/* Where ino and fsdev come from. */
enum iot_file_by {
	IOT_FILE_BY_NONE = 0,
	IOT_FILE_BY_PAGE = 1,
	IOT_FILE_BY_SUBMITTER = 2,
};

/* Where cgroup comes from. */
enum iot_cgroup_by {
	IOT_CGROUP_BY_NONE = 0,
	IOT_CGROUP_BY_BLKG = 1,	     /* the bio's blkg: who pays for the I/O */
	IOT_CGROUP_BY_PAGE = 2,	     /* memory cgroup that the first page is charged to */
	IOT_CGROUP_BY_SUBMITTER = 3, /* the task that submitted it */
};

/* Memory reclaim during which a request was submitted, by its submitter. */
enum iot_reclaim {
	IOT_RECLAIM_NONE = 0,
	IOT_RECLAIM_KSWAPD = 1,
	IOT_RECLAIM_DIRECT = 2,	   /* a task that was short of memory */
	IOT_RECLAIM_PROACTIVE = 3, /* on request: memory.reclaim, a lowered limit, MADV_PAGEOUT */
	IOT_RECLAIM_TASK = 4,	   /* 2 or 3: this kernel does not tell (no pressure accounting) */
};

/* One request. Times are CLOCK_MONOTONIC ns, 0 = null. */
struct iot_request {
	uint64_t id; /* 0 = unidentified */
	uint64_t start_ns;
	uint64_t insert_ns;
	uint64_t issue_ns;	/* first issue */
	uint64_t issue_last_ns; /* last issue */
	uint64_t complete_ns;
	uint64_t sector; /* 512 B units, disk-absolute; IOT_SECTOR_NONE = null */
	uint64_t cgroup; /* cgroup v2 id; 0 = null */
	uint64_t ino;	 /* 0 = null */
	uint32_t fsdev; /* 0 = null; as in /proc/self/mountinfo (btrfs: not a subvolume's st_dev) */
	uint32_t dev;
	uint32_t part; /* == dev: whole disk */
	uint32_t bytes;
	uint32_t bytes_done;
	int32_t error;	 /* negative errno where the mapping is known, 0 ok */
	uint32_t status; /* raw kernel status, 0 ok */
	uint32_t flags;	 /* enum iot_flag */
	uint32_t pid;
	uint32_t tgid;
	uint32_t issue_cpu;
	uint32_t complete_cpu;
	uint32_t
		unswapped_bytes; /* of a swap request: bytes asked that are no swap, merged with it */
	uint16_t requeues;
	uint16_t merges;
	uint16_t segments;
	uint16_t hwq;
	uint8_t op;		 /* enum iot_op */
	uint8_t swap;		 /* enum iot_swap */
	uint8_t swap_rule;	 /* 0 none, 1 flag, 2 page, 3 partition */
	uint8_t origin;		 /* enum iot_origin */
	uint8_t submitter;	 /* enum iot_submitter */
	uint8_t file_by;	 /* enum iot_file_by */
	uint8_t cgroup_by;	 /* enum iot_cgroup_by */
	uint8_t reclaim;	 /* enum iot_reclaim */
	uint8_t ring;		 /* ring it was read from, for the readers' merge */
	char comm[IOT_COMM_LEN]; /* NUL padded, not necessarily terminated */
};

/* Between whom a packet went. Addresses in network order, IPv4 in the first four bytes. */
struct iot_flow {
	uint8_t src[16];
	uint8_t dst[16];
	uint16_t sport;
	uint16_t dport;
	uint16_t protocol; /* ethertype */
	uint16_t vlan_tci;
	uint8_t family; /* 4, 6, 0 = neither */
	uint8_t ip_proto;
};

enum iot_loss_cause {
	IOT_LOSS_RESERVE_FAILED = 1, /* ring full, filed by the kernel side */
	IOT_LOSS_DECODE_FAILED = 2,
	IOT_LOSS_ENRICH_FAILED = 3,
	IOT_LOSS_OUTPUT_FAILED = 4,
	IOT_LOSS_UNSEEN = 5, /* no run of the probe saw it; a later observation proves it */
};

/*
 * One ledger entry: n observations of object id at probe are missing. Of a packet it says what the
 * records would have said, as of the first of them.
 */
struct iot_loss {
	uint64_t id;
	uint64_t n;
	uint64_t bytes;
	union {
		uint64_t sector;
		uint64_t parent; /* packet */
	};
	uint64_t first_ns;
	uint64_t last_ns;
	union {
		uint32_t dev;
		uint32_t netns; /* packet */
	};
	union {
		uint32_t part;
		uint32_t ifindex; /* packet */
	};
	uint32_t flags; /* enum iot_flag; packet: enum iot_packet_flag, of all of them */
	uint16_t probe;
	uint8_t op;
	uint8_t cause;		  /* enum iot_loss_cause */
	uint8_t swap;		  /* enum iot_swap */
	uint8_t swap_rule;	  /* as of a request */
	uint8_t pad[2];		  /* 0: losses are compared as bytes */
	uint32_t unswapped_bytes; /* as of a request */
	/* packet */
	struct iot_flow flow;
	uint8_t l4[2];
	int32_t code;
};

/* Of n bytes, those that are swap. */
static inline uint64_t iot_swapped(uint8_t swap, uint64_t n, uint32_t unswapped_bytes)
{
	if (swap == IOT_SWAP_NONE)
		return 0;
	return n > unswapped_bytes ? n - unswapped_bytes : 0;
}

enum iot_window_kind {
	IOT_WINDOW_UNATTRIBUTED = 1, /* lost, owner unknown */
	IOT_WINDOW_MISSED = 2,	     /* the kernel skipped runs of the program */
	IOT_WINDOW_DETACHED = 3,     /* the probe was not attached */
	IOT_WINDOW_TORN = 4,	     /* the file lost its tail: anything may be missing */
	IOT_WINDOW_OUTPUT = 5,	     /* written by no one: output_failed without readable owner */
};

/* Doubt, bounded: n observations at probe (0 = any) on cpu (UINT32_MAX = any) within [t0, t1]. */
struct iot_window {
	uint64_t t0_ns;
	uint64_t t1_ns;
	uint64_t n; /* UINT64_MAX = unknown */
	uint32_t cpu;
	uint16_t probe;
	uint16_t kind; /* enum iot_window_kind */
};

/*
 * The books of one (probe, cpu) for one epoch; cpu == UINT32_MAX is user space's own row.
 * IOT_COUNT_UNKNOWN in a field = not measurable; it is never 0 by default.
 */
#define IOT_COUNT_UNKNOWN UINT64_MAX
struct iot_books {
	uint16_t probe;
	uint32_t cpu;
	uint64_t seen;
	uint64_t not_selected;
	uint64_t folded;
	uint64_t emitted;
	uint64_t reserve_failed;
	uint64_t filed;
	uint64_t unattributed;
	uint64_t identity_full;
	uint64_t read_failed; /* fields that could not be read, where no record says so itself */
	uint64_t written;     /* by user space, for the records this (probe, cpu) emitted */
	uint64_t decode_failed;
	uint64_t output_failed;
	uint64_t missed; /* whole probe: only on the cpu == UINT32_MAX row */
	uint64_t
		suppressed; /* of not_selected: events that came too often; unknown in older files */
};

enum iot_attach {
	IOT_ATTACH_ATTACHED = 1,
	IOT_ATTACH_ABSENT = 2,	   /* this kernel has no such hook */
	IOT_ATTACH_REFUSED = 3,	   /* the kernel said no: errno */
	IOT_ATTACH_NOT_NEEDED = 4, /* another hook serves */
};

enum iot_miss_counting {
	IOT_MISS_COUNTED = 1,
	IOT_MISS_UNGUARDED = 2,	     /* no recursion guard, hence no miss (tp_btf on 5.10) */
	IOT_MISS_NOT_MEASURABLE = 3, /* may miss and cannot be counted: verdicts are unknown */
};

/* What runs the program that a probe observes. */
enum iot_program_kind {
	IOT_PROGRAM_NONE = 0,
	IOT_PROGRAM_TC = 1,  /* sched_cls: with packets (sk_buff) */
	IOT_PROGRAM_XDP = 2, /* with frames, before there is a packet */
};

/*
 * One row of the probe table. Strings are owned by the holder of the table. A program of somebody's that is
 * observed has a number of its own in the capture; it cannot have run before it was loaded, nor after it is gone.
 */
struct iot_probe {
	uint16_t id;
	uint8_t state;	  /* enum iot_attach */
	uint8_t miss;	  /* enum iot_miss_counting */
	int32_t error;	  /* negative errno if refused */
	uint64_t from_ns; /* attached from .. to, CLOCK_MONOTONIC; 0 = still */
	uint64_t to_ns;
	uint64_t loaded_ns;   /* programs: not there before, CLOCK_MONOTONIC */
	uint32_t program;     /* programs: the kernel's id; 0 = none */
	uint8_t program_kind; /* enum iot_program_kind */
	uint8_t gone;	      /* programs: unloaded by to_ns */
	char name[48];	      /* "block_rq_complete", "tc:handle_ingress#57" */
	char hook[16];	      /* "tp_btf", "raw_tp", "fentry", "kprobe" */
	char detail[96];      /* why not, or "" */
};

/* Clocks read together: readers turn monotonic times into wall time with these. */
struct iot_clocks {
	uint64_t monotonic_ns;
	uint64_t boottime_ns;
	uint64_t realtime_ns;
};

/* CLOCK_REALTIME of a CLOCK_MONOTONIC time, by one reading of both. */
static inline uint64_t iot_clocks_realtime_ns(const struct iot_clocks *c, uint64_t monotonic_ns)
{
	/* Before the reading the difference is negative; unsigned arithmetic wraps to the same sum. */
	return c->realtime_ns + (monotonic_ns - c->monotonic_ns);
}

/* Ring positions [p0, p1) that a block covers, per ring. */
struct iot_span {
	uint64_t p0;
	uint64_t p1;
};

#define IOT_MAX_RINGS 64

enum iot_seal_reason {
	IOT_SEAL_NONE = 0, /* not sealed: torn */
	IOT_SEAL_SIZE = 1,
	IOT_SEAL_TIME = 2,
	IOT_SEAL_LEDGER = 3,
	IOT_SEAL_REQUEST = 4,
	IOT_SEAL_SHUTDOWN = 5,
	IOT_SEAL_RELOAD = 6,
	IOT_SEAL_RECOVERED = 7,
};

enum iot_swap_ability {
	IOT_ABILITY_UNAVAILABLE = 0,
	IOT_ABILITY_EXACT = 1,
	IOT_ABILITY_PAGE = 2,
	IOT_ABILITY_PARTITION = 3,
};

/* A name table row: device or cgroup. */
struct iot_name {
	uint64_t key; /* device number or cgroup id */
	char *name;   /* owned by the table */
};

struct iot_names {
	struct iot_name *items;
	size_t n;
};
void iot_names_done(struct iot_names *names);
int iot_names_add(struct iot_names *names, uint64_t key, const char *name) IOT_MUST_CHECK;
const char *iot_names_find(const struct iot_names *names, uint64_t key);

const char *iot_op_name(unsigned int op);    /* "read", ...; never NULL */
int iot_op_from_name(const char *name);	     /* enum iot_op or -EINVAL */
const char *iot_flag_name(unsigned int bit); /* bit number -> "sync" or NULL */
/* Never NULL, "unknown" for a value without a name: */
const char *iot_origin_name(unsigned int origin);
int iot_origin_from_name(const char *name); /* enum iot_origin or -EINVAL */
const char *iot_file_by_name(unsigned int file_by);
const char *iot_cgroup_by_name(unsigned int cgroup_by);
const char *iot_reclaim_name(unsigned int reclaim);
const char *iot_seal_reason_name(unsigned int reason);
const char *iot_attach_name(unsigned int state);
const char *iot_program_kind_name(unsigned int kind); /* "tc", "xdp" */
const char *iot_miss_name(unsigned int miss);
const char *iot_window_kind_name(unsigned int kind);
const char *iot_loss_cause_name(unsigned int cause);
const char *iot_stream_name(unsigned int stream);
