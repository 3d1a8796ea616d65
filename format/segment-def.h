/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment-def.h - every byte of a segment file: constants, limits and on-disk structs, and nothing
 * else. FORMAT.md says in prose what each field means and when a file is valid.
 *
 * A segment is a sequence of LZ4 frames, so that `lz4 -t` accepts it:
 *
 *   header        skippable, IOT_MAGIC_HEADER    struct iot_disk_header, sections, hash
 *   block 0..n    skippable, IOT_MAGIC_BLOCK     struct iot_disk_block, spans, hash
 *                 LZ4 frame                      columns (requests, open) or rows (ledger)
 *   footer        skippable, IOT_MAGIC_FOOTER    struct iot_disk_footer, sections, hash
 *   trailer       skippable, IOT_MAGIC_TRAILER   struct iot_disk_trailer, the last 32 bytes
 *
 * Everything is little-endian. Structs are byte for byte what is in the file: naturally aligned,
 * no padding (checked below), every member little-endian, copied with memcpy and converted with
 * le*toh. Every metadata frame ends with the XXH64
 * (seed 0) of all its bytes before the hash, frame prefix included. Reserved bytes are 0, else the
 * frame is refused.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define IOT_FORMAT_VERSION 1

/* Skippable frame magics (LZ4 allows 0x184D2A50..5F) and the magic of a data frame. */
#define IOT_MAGIC_HEADER 0x184D2A51U
#define IOT_MAGIC_BLOCK 0x184D2A52U
#define IOT_MAGIC_FOOTER 0x184D2A53U
#define IOT_MAGIC_TRAILER 0x184D2A54U
#define IOT_MAGIC_DATA 0x184D2204U

/* First bytes of the payload of the header, block header and footer frames. */
#define IOT_TAG_HEADER "IOTSEGM1"
#define IOT_TAG_BLOCK "IOTB"
#define IOT_TAG_FOOTER "IOTFOOT1"

/* Feature words: a reader refuses unknown incompatible bits and ignores unknown compatible ones. */
#define IOT_COMPAT_KNOWN 0ULL
#define IOT_INCOMPAT_PACKET (1ULL << 0) /* a packet stream: other columns, other ledger rows */
#define IOT_INCOMPAT_KNOWN IOT_INCOMPAT_PACKET

/* Limits. A file beyond them is not valid; readers check them before they allocate. */
#define IOT_LIMIT_HEADER_BYTES (4U << 20)  /* header frame */
#define IOT_LIMIT_BLOCK_HEADER_BYTES 4096U /* block header frame */
#define IOT_LIMIT_FOOTER_BYTES (64U << 20) /* footer frame */
#define IOT_LIMIT_RAW_BYTES (24U << 20)	   /* content of one data frame */
#define IOT_LIMIT_DATA_BYTES (25U << 20)   /* one data frame in the file */
#define IOT_LIMIT_COLUMNS 255U		   /* entries of a column table */
#define IOT_LIMIT_ROW_BYTES 4096U	   /* one ledger row */
#define IOT_LIMIT_PROBES 4096U
#define IOT_LIMIT_NAME_BYTES 4096U /* one device or cgroup name */
#define IOT_LIMIT_LZ4_RATIO 255U   /* LZ4 cannot expand by more */

/* Prefix of every skippable frame; size counts the bytes after the prefix. */
struct iot_disk_frame {
	uint32_t magic;
	uint32_t size;
};

/* Clocks read together. */
struct iot_disk_clocks {
	uint64_t monotonic_ns;
	uint64_t boottime_ns;
	uint64_t realtime_ns;
};

/* Header frame: this, then sections from fixed_size on, then uint64_t hash. */
struct iot_disk_header {
	struct iot_disk_frame frame; /* IOT_MAGIC_HEADER */
	uint8_t tag[8];		     /* IOT_TAG_HEADER */
	uint16_t version;	     /* IOT_FORMAT_VERSION */
	uint16_t reserved0;
	uint32_t fixed_size; /* offset of the first section from the frame's first byte */
	uint64_t compat;     /* feature words */
	uint64_t incompat;
	uint8_t machine_id[16];
	uint8_t boot_id[16];
	uint8_t capture_id[16];
	uint8_t stream;	  /* enum iot_stream */
	uint8_t swap_out; /* enum iot_swap_ability */
	uint8_t swap_in;
	uint8_t reserved1;
	uint32_t n_rings; /* 1..IOT_MAX_RINGS */
	uint32_t n_cpus;
	uint32_t reserved2;
	uint64_t epoch;
	uint64_t seq;		   /* from 1 */
	uint64_t prev_footer_hash; /* 0 = not known when the file was opened: the footer has it */
	uint64_t attach_ns;
	struct iot_disk_clocks clocks;
};

/* Block header frame: this, then n_spans spans at fixed_size, then uint64_t hash. */
struct iot_disk_block {
	struct iot_disk_frame frame; /* IOT_MAGIC_BLOCK */
	uint8_t tag[4];		     /* IOT_TAG_BLOCK */
	uint16_t fixed_size;	     /* offset of the spans */
	uint8_t kind;		     /* enum iot_block_kind */
	uint8_t reserved0;
	uint32_t count;	    /* records, 1..IOT_BLOCK_RECORDS_MAX */
	uint32_t raw_bytes; /* content size of the data frame */
	uint32_t data_size; /* bytes of the data frame that follows */
	uint16_t n_spans;   /* 0, or the rings of the capture */
	uint16_t row_size;  /* ledger: bytes of one row; columns: 0 */
	uint64_t seq;	    /* number of the block in its segment, from 0 */
	uint64_t first_ns;  /* smallest and largest complete_ns; ledger: of all row times */
	uint64_t last_ns;
	uint64_t first_id; /* smallest and largest object id */
	uint64_t last_id;
	uint64_t data_hash; /* XXH64 of the data frame's bytes */
};

struct iot_disk_span {
	uint64_t p0;
	uint64_t p1;
};

/* Footer frame: this, then sections from fixed_size on, then uint64_t hash. */
struct iot_disk_footer {
	struct iot_disk_frame frame; /* IOT_MAGIC_FOOTER */
	uint8_t tag[8];		     /* IOT_TAG_FOOTER */
	uint32_t fixed_size;
	uint8_t reason; /* enum iot_seal_reason, never 0 */
	uint8_t reserved0[3];
	uint64_t header_hash; /* hash field of the file header: ties the footer to its file */
	/* Footer hash of the segment with seq - 1; 0 = first of its capture. Not in the header: a
	 * segment is opened before the epoch flips, when its predecessor has no footer yet. */
	uint64_t prev_footer_hash;
	struct iot_disk_clocks clocks;
	uint64_t epoch_first_ns;
	uint64_t epoch_last_ns;
	uint64_t n_blocks;   /* all kinds; rows of the index */
	uint64_t n_requests; /* sum of count over the blocks of each kind */
	uint64_t n_open;
	uint64_t n_losses;
	uint64_t
		ledger_hash; /* XXH64 of all ledger rows in order, as in the file; of nothing if none */
};

/* The last 32 bytes of a sealed file. */
struct iot_disk_trailer {
	struct iot_disk_frame frame; /* IOT_MAGIC_TRAILER, 24 */
	uint16_t version;	     /* IOT_FORMAT_VERSION */
	uint16_t reserved;
	uint32_t footer_size;	/* whole footer frame, prefix included */
	uint64_t footer_offset; /* from the start of the file */
	uint64_t hash;		/* XXH64 of the 24 bytes before */
};

/*
 * A section: this, then length bytes, then zeros up to a multiple of 8. Unknown types are skipped.
 * A known type occurs at most once. Tables start with struct iot_disk_table.
 */
struct iot_disk_section {
	uint16_t type;
	uint16_t reserved;
	uint32_t length;
};

enum iot_section {
	/* header */
	IOT_SECTION_HOST = 1,	   /* UTF-8, no NUL */
	IOT_SECTION_KERNEL = 2,	   /* same */
	IOT_SECTION_SELECTION = 3, /* same */
	IOT_SECTION_PROBES = 4,	   /* table of struct iot_disk_probe */
	IOT_SECTION_DEVICES = 5,   /* names: struct iot_disk_name, name */
	/* footer: also PROBES and DEVICES */
	IOT_SECTION_CGROUPS = 6, /* names */
	IOT_SECTION_BOOKS = 7,	 /* table of struct iot_disk_books */
	IOT_SECTION_WINDOWS = 8, /* table of struct iot_disk_window */
	IOT_SECTION_INDEX = 9,	 /* table of struct iot_disk_index */
	IOT_SECTION_NOTE = 10,	 /* UTF-8, no NUL */
	/* packet stream */
	IOT_SECTION_IDENTITY = 11, /* header: "exact", or why ids are not; UTF-8, no NUL */
	IOT_SECTION_REASONS = 12,  /* header: names of drop reasons */
	IOT_SECTION_SYMBOLS = 13,  /* footer: names of code addresses */
	/* both streams */
	IOT_SECTION_ANONYMIZED = 14, /* header: how, and a number of the key; UTF-8, no NUL */
	IOT_SECTION_SOURCE = 15,     /* header: which other tool's trace it is; UTF-8, no NUL */
};

/* Head of a table section: rows of row_size bytes; a reader takes the part of a row it knows. */
struct iot_disk_table {
	uint32_t n;
	uint32_t row_size;
};

struct iot_disk_probe {
	uint16_t id;
	uint8_t state; /* enum iot_attach */
	uint8_t miss;  /* enum iot_miss_counting */
	int32_t error;
	uint64_t from_ns;
	uint64_t to_ns;
	char name[48]; /* NUL padded and terminated */
	char hook[16];
	char detail[96];
	/* What follows is there only in tables with a program. */
	uint64_t loaded_ns;
	uint32_t program;
	uint8_t program_kind; /* enum iot_program_kind */
	uint8_t gone;	      /* 0 or 1 */
	uint8_t reserved[2];
};
#define IOT_DISK_PROBE_MIN 184U /* bytes; a row that ends here observes no program */

/* Names are of different length: n of these, each followed by length bytes, in one section. */
struct iot_disk_name {
	uint64_t key;
	uint16_t length; /* no NUL */
	uint16_t reserved[3];
};

struct iot_disk_books {
	uint16_t probe;
	uint16_t reserved;
	uint32_t cpu;
	uint64_t counts[14]; /* in the order of struct iot_books: seen .. suppressed */
};
#define IOT_DISK_BOOKS_MIN 112U /* bytes; behind them a shorter row says nothing: not known */

struct iot_disk_window {
	uint64_t t0_ns;
	uint64_t t1_ns;
	uint64_t n;
	uint32_t cpu;
	uint16_t probe;
	uint16_t kind; /* enum iot_window_kind */
};

/* One block, in file order. header_hash ties the index, hence the footer, to every data byte. */
struct iot_disk_index {
	uint64_t offset;      /* of the block header frame */
	uint64_t header_hash; /* hash field of the block header */
	uint64_t first_ns;    /* as in the block header */
	uint64_t last_ns;
	uint32_t size; /* both frames */
	uint32_t count;
	uint32_t kind;
	uint32_t reserved;
};

/*
 * Content of a ledger block: count rows of row_size bytes, which begin with this. A row may end after
 * IOT_LOSS_ROW_MIN bytes: the fields behind are absent then.
 */
#define IOT_LOSS_ROW_MIN 64U
struct iot_disk_loss {
	uint64_t id;
	uint64_t n;
	uint64_t bytes;
	uint64_t sector;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t dev;
	uint32_t part;
	uint32_t flags;
	uint16_t probe;
	uint8_t op;
	uint8_t cause;
	uint8_t swap;
	uint8_t swap_rule;
	uint8_t reserved[2];
	uint32_t unswapped_bytes;
};

/* Content of a ledger block of the packet stream. */
struct iot_disk_packet_loss {
	uint64_t id;
	uint64_t n;
	uint64_t bytes;
	uint64_t parent;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t netns;
	uint32_t ifindex;
	uint32_t flags;
	uint16_t probe;
	uint8_t reserved0;
	uint8_t cause;
	uint8_t src[16];
	uint8_t dst[16];
	uint16_t sport;
	uint16_t dport;
	uint16_t protocol;
	uint16_t vlan_tci;
	uint8_t family;
	uint8_t ip_proto;
	uint8_t l4[2];
	int32_t code;
	uint64_t reserved[2];
};

/*
 * Content of a block of requests: struct iot_disk_columns, its entries in ascending order of
 * column, then the payloads in the same order without gaps.
 */
struct iot_disk_columns {
	uint16_t n;	     /* entries */
	uint16_t entry_size; /* bytes of one entry; a reader takes the part it knows */
	uint32_t reserved;
};

struct iot_disk_column {
	uint8_t column; /* enum iot_column; unknown ones are skipped */
	uint8_t codec;	/* enum iot_codec */
	uint8_t base;	/* enum iot_base */
	uint8_t flags;	/* enum iot_column_flag */
	uint8_t shift;	/* 0..63 */
	uint8_t reserved[3];
	uint32_t count;	 /* values: the block's count, or the entries of the dictionary */
	uint32_t length; /* bytes of the payload */
};

/* Values on disk: explicit, never reordered or reused. FORMAT.md has the meaning of each. */
enum iot_column {
	IOT_COLUMN_COMPLETE = 1,
	IOT_COLUMN_ISSUE = 2,
	IOT_COLUMN_ISSUE_LAST = 3,
	IOT_COLUMN_START = 4,
	IOT_COLUMN_INSERT = 5,
	IOT_COLUMN_COMPLETE_CPU = 6,
	IOT_COLUMN_ISSUE_CPU = 7,
	IOT_COLUMN_ID_CPU = 8, /* low 13 bits of the id */
	IOT_COLUMN_ID = 9,     /* id >> 13 */
	IOT_COLUMN_OP = 10,    /* index into the OP dictionary */
	IOT_COLUMN_CONTEXT = 11,
	IOT_COLUMN_DEVICE = 12,
	IOT_COLUMN_FILE = 13,
	IOT_COLUMN_BYTES = 14,
	IOT_COLUMN_BYTES_DONE = 15,
	IOT_COLUMN_SECTOR = 16,
	IOT_COLUMN_ERROR = 17,
	IOT_COLUMN_STATUS = 18,
	IOT_COLUMN_SEGMENTS = 19,
	IOT_COLUMN_MERGES = 20,
	IOT_COLUMN_REQUEUES = 21,
	IOT_COLUMN_HWQ = 22,
	IOT_COLUMN_RING = 23,
	IOT_COLUMN_VALUES_END, /* one past the last of them: no column yet */
	/* Dictionaries: one column per 64-bit word of an entry. */
	IOT_COLUMN_OP_WORD =
		32, /* flags | op << 32 | swap << 40 | swap_rule << 48 | origin << 56 */
	IOT_COLUMN_OP_SOURCE =
		33, /* submitter | file_by << 8 | cgroup_by << 16 | reclaim << 24 | unswapped << 32 */
	IOT_COLUMN_CONTEXT_PIDS = 34, /* pid | tgid << 32 */
	IOT_COLUMN_CONTEXT_CGROUP = 35,
	IOT_COLUMN_CONTEXT_COMM0 = 36, /* comm[0..7] */
	IOT_COLUMN_CONTEXT_COMM1 = 37, /* comm[8..15] */
	IOT_COLUMN_DEVICE_WORD = 38,   /* dev | part << 32 */
	IOT_COLUMN_FILE_INO = 39,
	IOT_COLUMN_FILE_FSDEV = 40,
};

/* Columns of the packet stream: numbers of their own. */
enum iot_packet_column {
	IOT_PCOLUMN_TS = 1,
	/* One value per packet of the block; the first two are its id. */
	IOT_PCOLUMN_OBJECT_CPU = 2,	/* low 13 bits of the id */
	IOT_PCOLUMN_OBJECT_COUNTER = 3, /* id >> 13 */
	IOT_PCOLUMN_OBJECT = 4, /* of each observation: index into the packets of the block */
	/* As of the packet's first observation in the block. */
	IOT_PCOLUMN_FIRST_FLOW = 5, /* index into the FLOW dictionary */
	IOT_PCOLUMN_FIRST_LEN = 6,
	IOT_PCOLUMN_FIRST_CONTEXT = 7,
	IOT_PCOLUMN_FIRST_MARK = 8,
	IOT_PCOLUMN_FIRST_L4 = 9,
	IOT_PCOLUMN_FIRST_IP_ID = 10,
	IOT_PCOLUMN_FIRST_HOP = 11,
	IOT_PCOLUMN_FIRST_FLAGS = 12,
	IOT_PCOLUMN_FIRST_PARENT = 13,
	/* One value per observation; the first nine in the order of the FIRST columns. */
	IOT_PCOLUMN_FLOW = 16,
	IOT_PCOLUMN_LEN = 17,
	IOT_PCOLUMN_CONTEXT = 18, /* index */
	IOT_PCOLUMN_MARK = 19,
	IOT_PCOLUMN_L4 = 20, /* l4[0] | l4[1] << 8 */
	IOT_PCOLUMN_IP_ID = 21,
	IOT_PCOLUMN_HOP = 22,
	IOT_PCOLUMN_FLAGS = 23,
	IOT_PCOLUMN_PARENT = 24,
	IOT_PCOLUMN_PROBE = 25,
	IOT_PCOLUMN_CPU = 26,
	IOT_PCOLUMN_IFACE = 27, /* index */
	IOT_PCOLUMN_CODE = 28,
	IOT_PCOLUMN_WHERE = 29, /* index */
	IOT_PCOLUMN_RING = 30,
	/* Dictionaries. */
	IOT_PCOLUMN_FLOW_SRC = 40, /* index into the ADDRESS dictionary */
	IOT_PCOLUMN_FLOW_DST = 41,
	IOT_PCOLUMN_FLOW_SPORT = 42,
	IOT_PCOLUMN_FLOW_DPORT = 43,
	IOT_PCOLUMN_FLOW_PROTO = 44, /* protocol | family << 16 | ip_proto << 24 | vlan_tci << 32 */
	IOT_PCOLUMN_ADDRESS_0 = 45,  /* bytes 0..7, the first in the highest bits */
	IOT_PCOLUMN_ADDRESS_1 = 46,
	IOT_PCOLUMN_IFACE_WORD = 47,   /* netns | ifindex << 32 */
	IOT_PCOLUMN_CONTEXT_PIDS = 48, /* pid | tgid << 32 */
	IOT_PCOLUMN_CONTEXT_COMM0 = 49,
	IOT_PCOLUMN_CONTEXT_COMM1 = 50,
	IOT_PCOLUMN_WHERE_WORD = 51,
};

enum iot_codec {
	IOT_CODEC_CONST = 1, /* length 0: all 0; length 8: that value */
	IOT_CODEC_PACK = 2,  /* bit-packed per 128 values with patches */
	IOT_CODEC_BYTES = 3, /* byte planes */
};

enum iot_base {
	IOT_BASE_RAW = 0,   /* the value itself */
	IOT_BASE_DELTA = 1, /* minus the value before (the first: minus 0) */
	IOT_BASE_REF = 2,   /* against other columns, as FORMAT.md says for each column */
};

enum iot_column_flag {
	IOT_COLUMN_NULLS = 1U << 0,  /* stored 0 = null, k = k - 1 */
	IOT_COLUMN_ZIGZAG = 1U << 1, /* sign in the lowest bit */
};

_Static_assert((int)IOT_COLUMN_VALUES_END <= (int)IOT_COLUMN_OP_WORD, "numbers of dictionaries");
_Static_assert(sizeof(struct iot_disk_header) == 160, "layout");
_Static_assert(sizeof(struct iot_disk_block) == 80, "layout");
_Static_assert(sizeof(struct iot_disk_footer) == 120, "layout");
_Static_assert(sizeof(struct iot_disk_trailer) == 32, "layout");
_Static_assert(sizeof(struct iot_disk_section) == 8, "layout");
_Static_assert(sizeof(struct iot_disk_probe) == 200, "layout");
_Static_assert(offsetof(struct iot_disk_probe, loaded_ns) == IOT_DISK_PROBE_MIN, "layout");
_Static_assert(sizeof(struct iot_disk_name) == 16, "layout");
_Static_assert(sizeof(struct iot_disk_books) == 120, "layout");
_Static_assert(sizeof(struct iot_disk_window) == 32, "layout");
_Static_assert(sizeof(struct iot_disk_index) == 48, "layout");
_Static_assert(sizeof(struct iot_disk_loss) == 72, "layout");
_Static_assert(sizeof(struct iot_disk_packet_loss) == 128, "layout");
_Static_assert(sizeof(struct iot_disk_column) == 16, "layout");
