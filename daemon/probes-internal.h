/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-internal.h - what the rooms of probes share and nobody else sees.
 *
 *	probes.c		open, attach, gate, run statistics, for any stream
 *	probes-maps.c		rings, cells, epochs, ledger, identities, for any stream
 *	probes-btf.c		decisions: what this kernel has, from its BTF alone
 *	probes-symbols.c	addresses of functions, which no BTF has
 *	probes-block.c		block: programs, their constants, loading
 *	probes-packet.c		packet: loading
 *	probes-packet-hooks.c	packet: which hooks there are, and by which programs they are served
 *	probes-packet-identity.c	packet: whether ids are exact
 *	probes-packet-judge.c	packet: what the records of a try say about that
 *	probes-packet-btf.c	packet: what this kernel calls things
 *	probes-programs.c	packet: TC and XDP programs that others have loaded
 *	probes-program.c	packet: our programs at one of these
 *	probes-adopt.c		what of all that can be handed on, and taking over what a predecessor left
 *	probes-devices.c	the device filter, and how many requests the devices can have
 */
#pragma once

#include <pthread.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/probes.h"

struct block_bpf;
struct packet_bpf;
struct packet_bpf__bss;
struct btf;
struct program;
struct probes_programs;

/* A row for every probe of the stream, whether this kernel has its hook or not. */
#define PROBES_MAX_ROWS EV_N_PACKET_PROBES
_Static_assert(EV_BLOCK_PROBES_END <= EV_N_BLOCK_PROBES,
	       "the counter cells have no room for a probe");
_Static_assert(EV_N_BLOCK_PROBES <= PROBES_MAX_ROWS, "the probe table has no room for a stream");

/* Tracepoints whose presence or shape differs between kernels. */
enum probes_shape {
	PROBES_SHAPE_ABSENT = 0,
	PROBES_SHAPE_PLAIN = 1, /* (rq ...) or (bio ...) */
	PROBES_SHAPE_QUEUE = 2, /* the queue comes first; merges: (q, rq, bio) */
};

/* Bits that say why a page is here: masks of page flags, 0 = none. */
struct probes_pages {
	bool readable; /* all that every kernel has is known */
	uint64_t swap, locked, uptodate, writeback, private, slab;
	uint32_t type_slab;  /* top byte of page_type; 0 = the slab has a flag */
	uint32_t bio_pinned; /* of bi_flags; 0 = this kernel does not say */
};

/* Functions that end bios, by address; 0 = not known. */
struct probes_symbols {
	uint64_t end_direct; /* iomap_dio_bio_end_io */
	uint64_t end_chain;  /* bio_chain_endio */
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
	uint32_t op_read, op_write, op_flush, op_drv_in, op_drv_out, op_scsi_in,
		op_scsi_out; /* ~0 = none */
	uint32_t req_swap;
	uint32_t rqf_flush_seq, rqf_io_stat;
	struct probes_pages pages;
	uint32_t op_append, req_meta; /* ~0, 0 = none */
	uint32_t without;	      /* enum probes_without */
	int32_t cast_id;	      /* function bpf_rdonly_cast, in the kernel's BTF; 0 = none */
	bool iomap_dio;		      /* struct iomap_dio begins with what is read of it */
};

/* One row of the probe table with what runs behind it. */
struct probes_row {
	struct bpf_program *program;
	struct bpf_link *link; /* NULL if it was adopted */
	int program_fd;	       /* negative: not attached; an adopted one is ours to close */
	int link_fd;
	bool adopted;
	const char *kprobe;	  /* the function, if it is hooked by a kprobe */
	struct bpf_program *copy; /* a second one that does the same: see bpf/packet-births.bpf.h */
	struct bpf_link *copy_link;
	int copy_fd, copy_link_fd;	/* as program_fd and link_fd */
	uint64_t missed;		/* with a copy: so many at the last look */
	uint8_t role;			/* packet: enum packet_role */
	const struct program *observes; /* packet: somebody's program, see probes-programs.c */
	bool essential;			/* the stream cannot do without it */
};

/* The maps of emit.bpf.h, and what every stream has beside them, wherever the skeleton keeps them. */
struct probes_maps {
	struct bpf_map *cells, *rings, *control, *epochs, *ledger[2];
	struct bpf_map *identities; /* values: see identity_size */
};

/* Dimensions that the programs must know: the caller of probes_maps_size() writes them to .rodata. */
struct probes_dimensions {
	uint32_t n_cpus;
	uint32_t n_rings;
	uint32_t ring_cpus;
	uint64_t wake_bytes;
};

struct probes {
	enum iot_stream kind;
	unsigned int first_probe; /* as EMIT_FIRST_PROBE and EMIT_N_PROBES of the stream's object */
	unsigned int n_probes;
	size_t ledger_val_bytes;
	struct bpf_object *object; /* borrowed from the stream's skeleton */
	struct probes_maps maps;

	struct block_bpf *skel; /* block */
	struct probes_facts facts;
	struct packet_bpf *packet_skel; /* packet */
	struct packet_bpf__bss
		*packet_bss; /* its programs' variables; NULL: of programs we do not know */
	void *packet_mapped, *packet_shared_mapped; /* the same, if it is inherited memory */
	struct ev_packet_shared *packet_shared;	    /* with packet_bss */
	struct probes_packet_kernel packet_kernel;
	bool packet_self_test;
	bool packet_counts_fentry;		 /* runs that the kernel skips */
	struct probes_programs *programs;	 /* packet; NULL = not looked for */
	uint16_t packet_deaf, packet_deaf_later; /* tests: see struct probes_packet_options */

	size_t n_rows;
	struct iot_probe table[PROBES_MAX_ROWS];
	struct probes_row rows[PROBES_MAX_ROWS]; /* parallel to table */

	unsigned int n_cpus;
	unsigned int n_rings;
	struct probes_ring rings[IOT_MAX_RINGS];
	uint64_t ring_size_bytes;
	struct ev_control *control;
	struct adopt *adopt;	/* borrowed: where a successor reads `active`; NULL = nowhere */
	pthread_mutex_t lock;	/* of active: flips come from another thread than the rest */
	struct ev_epoch active; /* what the programs see; probes_publish() changes it */
	struct ev_cell *cells;
	size_t cells_bytes;
	uint32_t identity_entries;
	/* Reads one value of the identity map: when it became idle, or 0 if it is in use. */
	uint64_t (*idle_since)(const void *value);
	size_t identity_bytes; /* of a value */
};

/* What no stream has filled yet; NULL: no memory. probes_close() takes it. */
struct probes *probes_alloc(const struct probes_options *opts);

/* The first thing that libbpf complained of since it was reset, and the program that did not load. */
extern char probes_first_complaint[256];
extern char probes_failed_program[64];
int probes_keep_complaint(enum libbpf_print_level level, const char *fmt, va_list args);
int probes_program_info(int fd, struct bpf_prog_info *ret) IOT_MUST_CHECK;
void probes_detach_row(struct probes *p, size_t i);
int probes_load_error(int code, struct iot_error *err);

/* For a successor: what the programs see, and since when each has been attached. */
void probes_note_active(struct probes *p, const struct ev_epoch *active);
void probes_note_table(struct probes *p);
#define PROBES_NO_ROW                              \
	((struct probes_row){.program_fd = -EBADF, \
			     .link_fd = -EBADF,    \
			     .copy_fd = -EBADF,    \
			     .copy_link_fd = -EBADF})

/* Block: chooses, loads, fills table, rows, object and maps. close takes what it made. */
int probes_block_load(struct probes *p, const struct probes_options *opts,
		      struct iot_error *err) IOT_MUST_CHECK;
void probes_block_close(struct probes *p);
/*
 * Instead of loading, in two steps: opens an object whose maps are then replaced by inherited ones; and, if these are
 * of the same programs, takes from them what the programs were told.
 */
int probes_block_open(struct probes *p, const struct probes_options *opts,
		      struct iot_error *err) IOT_MUST_CHECK;
int probes_block_reused(struct probes *p) IOT_MUST_CHECK;
uint64_t probes_block_hash(void);
int probes_packet_load(struct probes *p, const struct probes_options *opts,
		       struct iot_error *err) IOT_MUST_CHECK;
int probes_packet_open(struct probes *p, struct iot_error *err) IOT_MUST_CHECK;
int probes_packet_reused(struct probes *p) IOT_MUST_CHECK;
uint64_t probes_packet_hash(void);
/* After attaching: tries whether ids are exact on this kernel, and sums up what became of it all. */
int probes_packet_attached(struct probes *p, struct iot_error *err) IOT_MUST_CHECK;
/* Then, last of all: the programs of others. */
int probes_packet_observe_programs(struct probes *p, const struct probes_options *opts,
				   struct iot_error *err) IOT_MUST_CHECK;
/* Events of row i that no run observed; sum: runs of its programs that the kernel skipped. */
uint64_t probes_packet_missed(struct probes *p, size_t i, uint64_t sum);
void probes_packet_close(struct probes *p);

/*
 * Others' programs: begins to look for them and observes those that are there, with the gate closed; where that is not
 * possible the probe table says why. counts: runs of fentry programs that the kernel skips.
 */
int probes_programs_start(struct probes *p, const struct probes_packet_options *o, bool counts,
			  struct iot_error *err) IOT_MUST_CHECK;
void probes_programs_detach(struct probes *p);
void probes_programs_close(struct probes *p);
/* Runs that the kernel skipped of both programs that observe g. */
int probes_programs_missed(const struct program *g, uint64_t *ret) IOT_MUST_CHECK;

/* Prototype of a tracepoint, NULL if the kernel has none; its first parameter is not the hook's. */
const struct btf_type *probes_tracepoint_proto(const struct btf *btf, const char *hook);

/* Which kinds of programs this kernel counts skipped runs of. */
void probes_counting(const struct btf *btf, bool *ret_tracing, bool *ret_fentry);
/* Names of drop reasons, ascending by value. */
int probes_packet_reasons(const struct btf *btf, struct probes_reason **ret,
			  size_t *ret_n) IOT_MUST_CHECK;

/* path: "/proc/kallsyms"; what it does not tell is 0. */
void probes_symbols_read(const char *path, struct probes_symbols *ret);
int probes_decide(uint32_t without, struct probes_facts *ret, struct iot_error *err) IOT_MUST_CHECK;

/*
 * Between opening and loading: sizes p->maps (identities to p->identity_entries) and says what the programs
 * must know. After loading: rings, epoch 1, mmaps.
 */
int probes_maps_size(struct probes *p, const struct iot_stream_config *stream,
		     struct probes_dimensions *ret, struct iot_error *err) IOT_MUST_CHECK;
int probes_maps_fill(struct probes *p, struct iot_error *err) IOT_MUST_CHECK;
/* Maps the memory of cells, control page and rings; rings' descriptors and dimensions are set. */
int probes_maps_map(struct probes *p, struct iot_error *err) IOT_MUST_CHECK;
void probes_maps_done(struct probes *p);

/* Puts next in place of p->active and returns when no program runs under the old one. Lock held. */
int probes_publish(struct probes *p, const struct ev_epoch *next) IOT_MUST_CHECK;

/* Is this controller on cgroup v2 (or nowhere)? */
bool probes_on_cgroup2(const char *controller);

/* Requests that the present devices can have in flight, with margin for devices to come. */
uint32_t probes_count_requests(void);
