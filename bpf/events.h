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

#define EV_ABI 6U

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

	/* Packet stream, tracepoints. */
	EV_PROBE_NETIF_RECEIVE_SKB = 64,
	EV_PROBE_NETIF_RX = 65,
	EV_PROBE_NET_DEV_QUEUE = 66,
	EV_PROBE_NET_DEV_START_XMIT = 67,
	EV_PROBE_NET_DEV_XMIT = 68, /* code: what the driver returned */
	EV_PROBE_CONSUME_SKB = 69,  /* an end */
	EV_PROBE_KFREE_SKB = 70,    /* an end; code: drop reason, where: location */
	EV_PROBE_TCP_RETRANSMIT_SKB = 71,
	EV_PROBE_TCP_SEND_RESET = 72, /* the segment that is answered with a reset */
	EV_PROBE_TCP_BAD_CSUM = 73,
	EV_PROBE_UDP_FAIL_QUEUE_RCV_SKB = 74, /* code: error */
	EV_PROBE_SOCK_RCVQUEUE_FULL = 75,
	EV_PROBE_NAPI_GRO_RECEIVE_ENTRY = 76,
	EV_PROBE_NAPI_GRO_RECEIVE_EXIT = 77, /* code: enum gro_result; freed by merging: an end */
	EV_PROBE_NAPI_GRO_FRAGS_ENTRY = 78,
	EV_PROBE_NAPI_GRO_FRAGS_EXIT = 79,
	EV_PROBE_QDISC_ENQUEUE = 80,
	EV_PROBE_QDISC_DEQUEUE = 81,
	/* Packet stream, functions, as they are entered. */
	EV_PROBE_IP_RCV = 82,
	EV_PROBE_IP_LOCAL_DELIVER = 83,
	EV_PROBE_IP_FORWARD = 84,
	EV_PROBE_IP_OUTPUT = 85,
	EV_PROBE_IPV6_RCV = 86,
	EV_PROBE_IP6_INPUT = 87,
	EV_PROBE_IP6_FORWARD = 88,
	EV_PROBE_IP6_OUTPUT = 89,
	EV_PROBE_NF_HOOK_SLOW = 90, /* code: enum nf_inet_hooks */
	EV_PROBE_TCP_V4_RCV = 91,
	EV_PROBE_TCP_V6_RCV = 92,
	EV_PROBE_UDP_RCV = 93,
	EV_PROBE_UDPV6_RCV = 94,
	EV_PROBE_TCF_CLASSIFY = 95,
	EV_PROBE_DEV_QUEUE_XMIT = 96, /* __dev_queue_xmit */
	/* Packet stream, births: folded into the identity entry; clones and copies are recorded. */
	EV_PROBE_ALLOC_SKB = 97,
	EV_PROBE_SKB_CLONE = 98,
	EV_PROBE_SKB_COPY = 99,
	EV_PROBE_PSKB_COPY_FCLONE = 100,
	EV_PROBE_BUILD_SKB_RAW = 101, /* __build_skb */
	EV_PROBE_BUILD_SKB_AROUND = 102,
	EV_PROBE_SLAB_BUILD_SKB = 103,
	EV_PROBE_NAPI_BUILD_SKB_RAW = 104, /* __napi_build_skb */
	EV_PROBE_BUILD_SKB = 105,
	EV_PROBE_NAPI_BUILD_SKB = 106,
	EV_PROBE_NETDEV_ALLOC_SKB = 107,
	EV_PROBE_NAPI_ALLOC_SKB = 108,
	/* Packet stream, ends that no tracepoint shows. */
	EV_PROBE_KFREE_SKBMEM = 109,
	EV_PROBE_KFREE_SKB_PARTIAL = 110,
	EV_PROBE_NAPI_SKB_CACHE_PUT = 111,
	EV_PROBE_NAPI_SKB_FREE_STOLEN_HEAD = 112,
	EV_PROBE_KFREE_SKB_DEFER = 113,
	EV_PROBE_SKB_ATTEMPT_DEFER_FREE = 114,
	EV_PROBE_TCP_TRY_COALESCE = 115, /* parent: into which packet it was merged */
	EV_PROBE_SKB_MORPH = 116,	 /* parent: whose content it has now */
	EV_PROBE_UDP_ENQUEUE = 117,	 /* __udp_enqueue_schedule_skb: into the socket's queue */
	EV_PROBE_SOCK_QUEUE_RCV = 118, /* __sock_queue_rcv_skb: the same of raw and other sockets */
	EV_PACKET_PROBES_END,
	/*
	 * TC and XDP programs that others have loaded: the daemon gives each a number of its own when it
	 * first sees it, entry and exit alike, and never again within the capture; the probe table says
	 * which program (id, name, kind) it is. So the program is part of the probe's identity everywhere.
	 * The first number is none's: its row says whether programs are looked for at all.
	 */
	EV_PROBE_PACKET_PROGRAM = 128,
	EV_PACKET_PROGRAMS_END = 192,

	EV_FIRST_PACKET_PROBE = 64,
	EV_N_PACKET_PROBES = EV_PACKET_PROGRAMS_END - EV_FIRST_PACKET_PROBE,
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

/*
 * ev_block.origin: what the first page belongs to, in the low bits; where the cgroup comes from, and the
 * memory reclaim that the submitter was in, above. (Where ino comes from follows: with EV_ORIGIN_FILE
 * from the page; with EV_ORIGIN_DIRECT it is the file that the I/O was asked of.)
 */
enum ev_origin {
	EV_ORIGIN_UNKNOWN = 0,
	EV_ORIGIN_FILE = 1,
	EV_ORIGIN_METADATA = 2,
	EV_ORIGIN_SWAP = 3,
	EV_ORIGIN_DIRECT = 4,
	EV_ORIGIN_PRIVATE = 5,
	EV_ORIGIN_NO_DATA = 6,
	EV_ORIGIN_PASSTHROUGH = 7,
	EV_ORIGIN_MASK = 7,
};

#define EV_CGROUP_BY_SHIFT 3 /* two bits */
#define EV_CGROUP_BY_MASK (3 << EV_CGROUP_BY_SHIFT)
enum ev_cgroup_by {
	EV_CGROUP_BY_NONE = 0,
	EV_CGROUP_BY_BLKG = 1,
	EV_CGROUP_BY_PAGE = 2,
	EV_CGROUP_BY_SUBMITTER = 3,
};

#define EV_RECLAIM_SHIFT 5 /* three bits */
enum ev_reclaim {
	EV_RECLAIM_NONE = 0,
	EV_RECLAIM_KSWAPD = 1,
	EV_RECLAIM_DIRECT = 2,
	EV_RECLAIM_PROACTIVE = 3,
	EV_RECLAIM_TASK = 4, /* direct or proactive */
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
	__u64 ino;	     /* inode behind the first page, or of direct I/O; 0 = none */
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
	__u16 merges;	 /* bios and requests absorbed */
	__u16 segments;	 /* nr_phys_segments at issue */
	__u16 hwq;	 /* hardware queue number at issue; 0xffff = none */
	__u16 issue_cpu; /* EV_ID_CPU_BITS are enough */
	__u16 unswapped; /* with swap_rule: 512 B sectors that are no swap, merged with some that are */
	__u8 state;	 /* enum ev_block_state */
	__u8 submitter; /* enum ev_submitter */
	__u8 swap_rule; /* enum ev_swap_rule */
	__u8 origin;	/* enum ev_origin | ev_cgroup_by << 3 | ev_reclaim << 5 */
	char comm[EV_COMM_LEN];
};

/* ev_packet.flags, and of the ledger. Those of an id are the OR over all its records and losses. */
enum ev_packet_flag {
	/*
	 * Nothing of this packet can have been observed before its first record: its birth was observed, or
	 * the end of the address's previous holder. Clear: it may be older than the gate (truncated start).
	 */
	EV_PACKET_FROM_START = 1 << 0,
	EV_PACKET_BORN = 1 << 1, /* its birth was observed itself */
	EV_PACKET_END =
		1 << 2, /* this observation ends the life; `consume`, drop and merging alike */
	/* More than one packet may stand behind the id: an end was not observed, nor the next birth. */
	EV_PACKET_MERGED = 1 << 3,
	EV_PACKET_MERGED_INTO = 1 << 4, /* it went into another packet (GRO, coalescing): parent */
	EV_PACKET_CLONE = 1 << 5,	/* born from another packet: parent */
	/* The packet is not selected: an always-on event, under an id that is used once. */
	EV_PACKET_NOT_SELECTED = 1 << 6,
	EV_PACKET_FRAGMENT = 1 << 7, /* IP fragment; ports only where the first one carries them */
	EV_PACKET_VLAN = 1 << 8,     /* vlan_tci is valid */
	EV_PACKET_TASK = 1 << 9,     /* pid, tgid, comm are valid: struct ev_packet_task */
	EV_PACKET_NO_HEADER = 1 << 10, /* no network header could be read: no tuple */
	/* Made after the packet's own end, from what was kept: neither hop nor header (net_dev_xmit). */
	EV_PACKET_AFTER_END = 1 << 11,
	/*
	 * No sk_buff yet: a frame in the hands of an XDP program. Its id is used once, by that one run; the
	 * packet that may be made of the frame has another.
	 */
	EV_PACKET_FRAME = 1 << 12,
};

/*
 * One observation of one packet at one probe. hdr.id is its generation: one life of one sk_buff, never of
 * an address. 120 bytes, which with the ring's own header fill two cache lines.
 *
 * Numbers are in host order, addresses in network order. There is no padding.
 */
struct ev_packet {
	struct ev_hdr hdr;
	__u64 ts_ns;	/* CLOCK_MONOTONIC */
	__u64 parent;	/* generation: CLONE from, MERGED_INTO; 0 = none */
	__u64 where;	/* kfree_skb: the caller's address; programs: the program's id */
	__u8 saddr[16]; /* IPv4: the first four bytes, the rest 0 */
	__u8 daddr[16];
	__u32 netns;   /* inode number of the device's network namespace; 0 = no device */
	__u32 ifindex; /* skb->dev; 0 = none */
	__u32 len;     /* skb->len */
	__u32 mark;
	__s32 code; /* of the probe: drop reason, driver's or verdict's return value, errno */
	__u32 hop;  /* 1.. in the order of one packet's observations; 0 = not known (AFTER_END) */
	__u16 sport;
	__u16 dport;
	__u16 protocol; /* skb->protocol (ethertype) */
	__u16 flags;	/* enum ev_packet_flag */
	__u16 ip_id;	/* IPv4 identification */
	__u16 vlan_tci;
	__u8 family;   /* 4, 6, 0 = neither */
	__u8 ip_proto; /* behind IPv6 extension headers where the first bytes show it */
	__u8 l4[2];    /* TCP: flags, 0; ICMP and ICMPv6: type, code */
};

/* The longer record of probes in the sender's path: hdr.len tells. */
struct ev_packet_task {
	struct ev_packet packet;
	__u32 pid; /* the task that was current: the sender, unless a softirq interrupted it */
	__u32 tgid;
	char comm[EV_COMM_LEN];
};

/*
 * Identity of packets: address of the sk_buff -> this. Plain preallocated hash, never an LRU. An observed
 * end marks the entry idle and leaves it: the next sight of the address is then known to be a new packet
 * from its start. What is idle for long is reaped by the daemon, see ev_epoch.reap_before_ns.
 */
struct ev_packet_entry {
	__u64 generation; /* 0 = idle */
	__u64 parent;
	__u64 end_ns;	   /* idle since */
	__u64 first_epoch; /* of the first observation (not of the birth); 0 = none yet */
	__u32 hop;	   /* observations so far */
	__u32 ifindex;	   /* device of the last observation that had one */
	__u32 netns;
	__u32 first_ifindex; /* of the first one */
	__u32 first_netns;
	__u32 flow;	 /* hashes of both addresses at the last observation */
	__u16 flags;	 /* enum ev_packet_flag that stay with the packet */
	__u8 state;	 /* enum ev_packet_state */
	__u8 ip_proto;	 /* at the last observation */
	__u8 first_seen; /* hooks that a packet passes once per device: on the first one */
	__u8 seen;	 /* on the present one */
	__u8 touched;	 /* idle: an unselected packet was seen here whose end was not */
	__u8 pad;
};

enum ev_packet_state {
	EV_PACKET_UNDECIDED = 0, /* born, seen by no probe yet */
	EV_PACKET_SELECTED = 1,
	EV_PACKET_DESELECTED = 2, /* for life; only where births and ends are observed */
};

/* What all programs of the packet stream share, whichever object they are in. */
struct ev_packet_shared {
	/* What cannot be if births and ends are all observed: each is the proof of a missed run. */
	__u64 unseen_births;
	__u64 unseen_ends;
	/* They are. Set before the gate opens, when the programs are attached and have been tried. */
	__u64 exact;
};

/* Ledger value of the packet stream: what the lost records would have said of the packet's flow. */
struct ev_packet_loss {
	__u64 n;     /* observations lost */
	__u64 bytes; /* sum of their skb->len */
	__u64 first_ns;
	__u64 last_ns;
	__u64 parent;
	__u8 saddr[16]; /* of the first of them, as all below but flags */
	__u8 daddr[16];
	__u32 netns;
	__u32 ifindex;
	__u16 sport;
	__u16 dport;
	__u16 protocol;
	__u16 flags; /* enum ev_packet_flag, of all of them */
	__s32 code;
	__u8 family;
	__u8 ip_proto;
	__u8 l4[2];
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
	__u64 unattributed_first_ns; /* window of the unattributed losses, best effort; 0 = none */
	__u64 unattributed_last_ns;
	__u64 suppressed; /* an always-on event beyond its rate; subset of not_selected */
	__u64 pad[5];
};

/* Cell index in the mmap'able cells map: [slot][cpu][probe], probe counted from the stream's first. */
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

/*
 * A lost request keeps its swap tag, or the sums of swapped bytes would not close: above the state bits,
 * two bits of rule, and fourteen of ev_block.unswapped; a larger share is cut to the largest that fits (8 MiB).
 */
#define EV_LEDGER_SWAP_SHIFT 16
#define EV_LEDGER_SWAP_RULE 3
#define EV_LEDGER_UNSWAPPED_SHIFT 18
#define EV_LEDGER_SWAP(rule) ((__u32)(rule) << EV_LEDGER_SWAP_SHIFT)
#define EV_LEDGER_UNSWAPPED_MAX 0x3fffU
#define EV_LEDGER_UNSWAPPED(sectors)                                                               \
	(((__u32)(sectors) < EV_LEDGER_UNSWAPPED_MAX ? (__u32)(sectors) : EV_LEDGER_UNSWAPPED_MAX) \
	 << EV_LEDGER_UNSWAPPED_SHIFT)

/* Selects each packet, for the try of identity before the gate opens. */
#define EV_SAMPLE_EVERYTHING 0xffffffffU

/*
 * Value of each inner map of the epoch map-in-map: all that a program must see at one instant, so one
 * look-up at entry reads it. Never changed once active: any change is a new inner map, and putting it in
 * place waits for the programs that run under the old one. Counter and ledger slot = epoch & 1.
 */
struct ev_epoch {
	__u64 epoch; /* from 1 */
	__u64 gate;  /* 1 = observe; 0 = programs return at once, uncounted (attach is not whole) */
	__u64 filter; /* block: enum ev_filter; packet: 0 */
	/* packet: one flow in this many, by hash; 0 and 1 = all; EV_SAMPLE_EVERYTHING: whatever the filter says */
	__u64 sample;
	__u64 reap_before_ns; /* idle entries that ended before are being deleted: leave them alone */
};

/* One of the machine's BPF programs, as bpf/packet-program.bpf.c lists them. */
struct ev_program {
	__u32 id;
	__u32 type;
	__u64 references; /* who holds it, the listing itself included */
};

/* One mmap'able control page shared with the consumer. */
struct ev_control {
	__u64 armed;	  /* 1 = the consumer sleeps and wants one wake-up */
	__u64 identities; /* entries that programs put into the identity map, less those reaped */
	__u64 pad[6];
};

/*
 * A swap area that is a disk or a partition: sectors [first, end) of disk dev; end 0: no area. Only looked at
 * where neither a flag nor the page tells swap.
 */
struct ev_swap_area {
	__u64 first;
	__u64 end;
	__u32 dev;
	__u32 pad;
};

/*
 * Between the translator of pcap expressions and the room that its instructions go to: the room's size in
 * instructions, the number in front of it, and where what they work on has its fields.
 */
#define EV_EXPRESSION_ROOM 1024
#define EV_EXPRESSION_MARK 0x70636170 /* "pcap" */
#define EV_EXPRESSION_AT 0	      /* u64: address of the first byte */
#define EV_EXPRESSION_N 8	      /* u32: bytes that may be read */
#define EV_EXPRESSION_LEN 12	      /* u32: bytes of the packet */
#define EV_EXPRESSION_LOAD 16	      /* u32: what was read */
#define EV_EXPRESSION_MEM 20	      /* u32[]: classic BPF's M[] */
#define EV_EXPRESSION_N_MEM 16

/*
 * What programs call where they call bpf_rdonly_cast(), a function that not every kernel has: the daemon
 * puts its number in. The kernel never comes to see the mark, which is no function's number.
 */
#define EV_CAST_MARK 0x74736163 /* "cast" */

enum ev_filter {
	EV_FILTER_NONE = 0,	 /* every device */
	EV_FILTER_INCLUDE = 1,	 /* only devices in the filter map */
	EV_FILTER_EXCLUDE = 2,	 /* all but devices in the filter map */
	EV_FILTER_DEVICES = 3,	 /* mask: one of the above, and beside it: */
	EV_FILTER_DROP_SWAP = 4, /* what is born with a swap tag is not selected */
};

#pragma GCC diagnostic pop
