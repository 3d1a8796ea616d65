/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes.h - the kernel side of one stream as the daemon sees it: load, decide per kernel by BTF,
 * attach, and hand out the maps' memory. The only user of libbpf in the project. Each stream is a
 * struct probes of its own, with its own BPF object, rings, counters, epochs and ledgers.
 *
 * Opening decides, loading asks the kernel, attaching makes programs run with the gate closed;
 * probes_gate() opens it once everything is in place, so that the capture has one first instant.
 * Each probe's outcome is recorded, never only logged.
 */
#pragma once

#include "bpf/events.h"
#include "config/config.h"
#include "format/record.h"

struct probes;
struct swaps;

/* How the running kernel encodes what the wire carries raw; the decoder's only kernel knowledge. */
struct probes_kernel {
	uint32_t op_mask;	/* low bits of cmd_flags that hold the op */
	uint8_t op[256];	/* kernel op -> enum iot_op */
	uint32_t flag_mask[32]; /* bit n of cmd_flags -> enum iot_flag mask; 0 = unknown */
	bool status_is_errno;	/* ev_block.status is an errno, not a blk_status_t */
	uint8_t swap_out;	/* enum iot_swap_ability */
	uint8_t swap_in;
	bool direct_files; /* the file of direct I/O is known, where iomap does it */
};

/* What the packet stream's wire carries raw, and what its ids are worth on this kernel. */
struct probes_reason {
	uint32_t value;
	char name[44]; /* "TCP_INVALID_SEQUENCE", without the kernel's prefix */
};
struct probes_packet_kernel {
	/*
	 * true: births and ends of sk_buffs are all observed (and the self-test has shown it), so an id is one
	 * packet. false: tracepoints only; an id whose records say EV_PACKET_MERGED may be several, and every
	 * TCP id says so.
	 */
	bool exact_identity;
	char identity_detail[120];  /* why not exact, or "" */
	char functions_detail[240]; /* which functions are not observed although asked for, or "" */
	bool has_reasons;	    /* kfree_skb carries a reason (5.17) */
	struct probes_reason *reasons; /* ascending by value */
	size_t n_reasons;
};
/* How well an id tells packets apart, for people and the segment's header. */
static inline const char *probes_identity_text(const struct probes_packet_kernel *k)
{
	if (k->exact_identity)
		return "exact";
	return *k->identity_detail ? k->identity_detail : "not known";
}

/* The packet stream's own options; zero means default everywhere. */
struct probes_packet_options {
	const char *expression; /* pcap-filter(7); NULL or "" = every packet */
	uint64_t sample;	/* one flow in this many; 0 = 1 */
	uint64_t
		rare_per_second; /* always-on events per CPU and reason (bucket: one second); 0 = 100 */
	uint64_t identities;	 /* sk_buff addresses known at once; 0 = 131072 */
	bool gro;		 /* also napi_gro_{receive,frags} entry and exit */
	bool qdisc;		 /* also qdisc enqueue and dequeue */
	enum iot_packet_functions functions;
	bool programs;	   /* TC and XDP programs as well */
	bool no_self_test; /* of identity, by traffic: then ids are not exact */
	bool force_kprobe; /* tests: kprobes even where fentry works */
	/* Tests: a birth or end that is taken to be hooked and is not, at once or after the self-test; 0 = none. */
	uint16_t deaf, deaf_later;
};

/* The mmap'ed ring of one CPU group. Positions are monotonic byte counts, as in the kernel ABI. */
struct probes_ring {
	int fd;			 /* for epoll */
	uint64_t size;		 /* bytes of data area */
	unsigned long *consumer; /* page we write */
	const unsigned long *producer;
	const uint8_t *data; /* mapped twice in a row */
};

/* Tests: what the kernel is taken not to have. */
enum probes_without {
	PROBES_WITHOUT_SWAP_FLAG = 1U << 0, /* no REQ_SWAP in BTF */
	PROBES_WITHOUT_PAGES = 1U << 1,	    /* no page flags in BTF */
	PROBES_WITHOUT_COPIES = 1U << 2,    /* no bpf_probe_read_kernel: lockdown=confidentiality */
	PROBES_WITHOUT_ORIGIN = 1U << 3, /* neither swap nor file is looked for: what that costs */
	PROBES_WITHOUT_CASTS = 1U << 4,	 /* no bpf_rdonly_cast: before 6.2 */
};
/* "swap-flag,pages,copies,origin,casts"; NULL or "" = 0. -EINVAL: none of these. */
int probes_without_parse(const char *text, uint32_t *ret) IOT_MUST_CHECK;

struct adopt;

struct probes_options {
	enum iot_stream kind; /* 0 = block */
	const struct iot_stream_config *stream;
	const struct iot_device_filter *devices;    /* block */
	const struct probes_packet_options *packet; /* packet; NULL = defaults */
	bool force_fallback;			    /* tests: take raw_tp even where tp_btf loads */
	uint32_t without;			    /* tests: enum probes_without; block */
	struct adopt *adopt; /* what a successor is to know; outlives the probes; NULL = nothing */
	bool print_libbpf;   /* debugging: libbpf's and the verifier's words go to stderr */
};

/* -EPERM err names the missing capability; -ENOTSUP no BTF; -EOPNOTSUPP lockdown or no tracing BPF. */
int probes_open(const struct probes_options *opts, struct probes **ret,
		struct iot_error *err) IOT_MUST_CHECK;
/* Opens the gate; records exist from *ret_attach_ns on. */
int probes_gate(struct probes *p, bool open, uint64_t *ret_ns) IOT_MUST_CHECK;
struct probes *probes_close(struct probes *p); /* detaches; maps are freed when the last fd goes */
/* Detach all links (programs stop running once their last runs end). */
void probes_detach(struct probes *p);

/*
 * Descriptors that together are the kernel side: who holds them keeps programs attached and memory alive, and
 * can be made probes of again. Names are unique within a stream: "map.cells", "ring.0", "link.8",
 * "prog.8.block_complete_btf". Descriptors are borrowed; the array is the caller's to free.
 */
struct probes_fd {
	char name[64];
	int fd;
};
int probes_fds(struct probes *p, struct probes_fd **ret, size_t *ret_n) IOT_MUST_CHECK;
/*
 * Takes over what a predecessor left: opts->adopt says what it was. Copies what it uses of fds. The kernel
 * goes on as it is: nothing is attached, flipped or filtered. -ENOENT: not all of it is there; -EBADMSG: it
 * is not what its name says.
 */
int probes_adopt(const struct probes_options *opts, const struct probes_fd *fds, size_t n,
		 struct probes **ret, struct iot_error *err) IOT_MUST_CHECK;
/* Of the programs this daemon was built with: a successor with others cannot go on with the maps. */
uint64_t probes_object_hash(enum iot_stream stream);

enum iot_stream probes_stream(const struct probes *p);
/* Numbers of the stream's probes: cells and counts are arrays of n, indexed from the first. */
unsigned int probes_first_probe(const struct probes *p);
unsigned int probes_n_probes(const struct probes *p);
const struct probes_kernel *probes_kernel(const struct probes *p);		 /* block */
const struct probes_packet_kernel *probes_packet_kernel(const struct probes *p); /* packet */
unsigned int probes_n_rings(const struct probes *p);
/* What a record takes in a ring, with the kernel's header of it. */
size_t probes_record_bytes(const struct probes *p);
struct probes_ring *probes_ring(struct probes *p, unsigned int i);
struct ev_control *probes_control(struct probes *p);
unsigned int probes_n_cpus(const struct probes *p); /* possible CPUs = dimension of the cells */
/*
 * Counter cell of a probe by its id, live memory shared with the kernel. slot 0 or 1. One slot is one array:
 * [cpu][probe - probes_first_probe()], so the first probe's cell of CPU 0 is where it begins.
 */
struct ev_cell *probes_cell(struct probes *p, unsigned int slot, unsigned int cpu,
			    unsigned int probe);

/* Probe table for status and segments; n includes absent ones. Borrowed. */
const struct iot_probe *probes_table(const struct probes *p, size_t *ret_n);

/*
 * Makes epoch the active one and returns only when no program still runs under the old one
 * (map-in-map update: p50 10 ms, worst seconds on a saturated machine). Not from the drain path.
 */
int probes_flip(struct probes *p, uint64_t epoch) IOT_MUST_CHECK;
/* Reads the whole ledger of a slot without a writer. Caller frees *ret. */
int probes_ledger_read(struct probes *p, unsigned int slot, struct ev_ledger_key **ret_keys,
		       struct ev_ledger_val **ret_vals, size_t *ret_n) IOT_MUST_CHECK;
int probes_packet_ledger_read(struct probes *p, unsigned int slot, struct ev_ledger_key **ret_keys,
			      struct ev_packet_loss **ret_vals, size_t *ret_n) IOT_MUST_CHECK;
/* Empties ledger and cells of a slot without a writer. */
int probes_slot_clear(struct probes *p, unsigned int slot) IOT_MUST_CHECK;
/* Runs the kernel skipped, per probe since load; IOT_COUNT_UNKNOWN where not measurable. Cheap enough
 * for every 100 ms. missed[probes_n_probes()], indexed from the first probe. */
int probes_missed(struct probes *p, uint64_t *missed) IOT_MUST_CHECK;
/*
 * Packet: TC and XDP programs that others have loaded. Looks which have come and gone, and follows: rows are added
 * to the probe table and never taken away. To be called several times a second while the gate is open, by one thread.
 */
struct probes_programs_change {
	unsigned int n_new;
	unsigned int n_refused; /* cannot be observed */
	unsigned int n_gone;
	char name[48]; /* of the last that came or went */
	char refused[48];
	char why[96];
};
bool probes_programs_wanted(const struct probes *p);
int probes_programs_follow(struct probes *p, struct probes_programs_change *ret) IOT_MUST_CHECK;

/* Requests in flight now (ev_block values with EV_BLOCK_IN_FLIGHT). Caller frees. */
int probes_in_flight(struct probes *p, struct ev_block **ret, size_t *ret_n) IOT_MUST_CHECK;
/* The active swap areas, where programs need them to tell swap: before the gate opens, and when they change. */
int probes_set_swap_areas(struct probes *p, const struct swaps *areas) IOT_MUST_CHECK;
/* Re-resolves the device filter against the devices present (start, reload, every second if set). */
int probes_set_devices(struct probes *p, const struct iot_device_filter *f) IOT_MUST_CHECK;
/* Patterns that no disk present matches, as "include nvme9n1, exclude zd*"; "" = none. */
int probes_unmatched_devices(const struct iot_device_filter *f, char *buf,
			     size_t size) IOT_MUST_CHECK;
/* Whether requests that are born with a swap tag are selected from now on. */
int probes_set_swap(struct probes *p, enum iot_swap_policy policy) IOT_MUST_CHECK;

/* For status: bytes of kernel memory by the maps (fdinfo memlock) and by rings; per program run
 * count and time where kernel.bpf_stats_enabled is set. */
struct probes_memory {
	uint64_t maps_bytes;
	uint64_t rings_bytes;
};
int probes_memory(struct probes *p, struct probes_memory *ret) IOT_MUST_CHECK;
struct probes_run_stats {
	char program[32];
	uint16_t probe;
	uint64_t run_count;
	uint64_t run_time_ns;
	uint64_t missed; /* IOT_COUNT_UNKNOWN = not measurable */
};
int probes_run_stats(struct probes *p, struct probes_run_stats **ret, size_t *ret_n) IOT_MUST_CHECK;
