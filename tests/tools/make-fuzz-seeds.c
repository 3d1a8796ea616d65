// SPDX-License-Identifier: BSD-2-Clause
/*
 * make-fuzz-seeds.c - writes the seeds of fuzz-block, fuzz-meta and fuzz-wire: `make-fuzz-seeds tests/fuzz/seeds`.
 *
 * Run again after a change of the format; the seeds are small and checked in. What a seed's first
 * bytes mean is said in the fuzz targets.
 */
#include "bpf/events.h"
#include "format/block.h"
#include "format/meta.h"
#include "tests/unit/gen-packet.h"
#include "tests/unit/gen-trace.h"

#include <fcntl.h>
#include <lz4frame.h>

static const char *dir;

static void must(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "make-fuzz-seeds: %s: %s\n", what, strerror(-r));
	exit(1);
}

static void put(const char *name, const void *head, size_t head_size, const void *data, size_t size)
{
	_cleanup_close_ int fd = -EBADF;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(fd < 0 ? -errno : 0, path);
	must(iot_write_all(fd, head, head_size), path);
	must(iot_write_all(fd, data, size), path);
}

/* The head of a seed whose rest is the content of a data frame: see fuzz-block.c. */
struct content_head {
	uint8_t mode;
	uint8_t kind;
	uint16_t row_size;
	uint32_t count;
	uint64_t first_ns, last_ns, first_id, last_id;
	uint64_t columns;
};

static void put_block(const char *name, const uint8_t *block, size_t size,
		      const struct iot_block_info *info)
{
	struct content_head head = {
		.mode = 1,
		.kind = info->kind,
		.row_size = info->row_size,
		.count = info->count,
		.first_ns = info->first_ns,
		.last_ns = info->last_ns,
		.first_id = info->first_id,
		.last_id = info->last_id,
		.columns = UINT64_MAX,
	};
	size_t in = info->data_size, out = info->raw_bytes;
	uint8_t *content = malloc(out);
	LZ4F_dctx *lz4;
	char file[256];

	if (!content || LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION)) ||
	    LZ4F_isError(LZ4F_decompress(lz4, content, &out, block + info->header_size, &in, NULL)))
		must(-EIO, name);
	snprintf(file, sizeof(file), "block/%s-content", name);
	put(file, &head, sizeof(head), content, out);
	snprintf(file, sizeof(file), "block/%s", name);
	put(file, "", 1, block, size);
	LZ4F_freeDecompressionContext(lz4);
	free(content);
}

static void make_packets(void)
{
	static const char *const names[] = {"packet-flood", "packet-mixed", "packet-noise"};
	struct iot_loss loss = {.id = 9, .n = 1, .probe = 70, .cause = 1, .code = 2};
	struct iot_block_encoder *e;
	struct iot_block_info info;
	struct iot_batch *b;
	const uint8_t *data;
	size_t size;

	for (unsigned int kind = GEN_PACKETS_FLOOD; kind <= GEN_PACKETS_NOISE; kind++) {
		struct gen_packet g;
		struct iot_packet p;

		must(iot_block_encoder_new(&e), "encoder");
		must(iot_batch_new_stream(IOT_STREAM_PACKET, 100, &b), "batch");
		gen_packet_init(&g, kind, 3);
		for (uint32_t i = 0; i < (kind == GEN_PACKETS_NOISE ? 10 : 100); i++) {
			gen_packet(&g, &p);
			must(iot_batch_add_packet(b, &p), "add");
		}
		must(iot_block_encode(e, IOT_BLOCK_PACKETS, kind, b, NULL, 0, &data, &size, &info),
		     "encode");
		put_block(names[kind], data, size, &info);
		iot_batch_free(b);
		iot_block_encoder_free(e);
	}
	must(iot_block_encoder_new(&e), "encoder");
	must(iot_block_encode_losses(e, IOT_STREAM_PACKET, 3, &loss, 1, NULL, &data, &size, &info),
	     "losses");
	put_block("packet-ledger", data, size, &info);
	iot_block_encoder_free(e);
}

static void make_blocks(void)
{
	static const struct {
		const char *name;
		enum gen_kind kind;
		uint32_t n;
	} seeds[] = {
		{"random", GEN_RANDOM, 130}, {"sequential", GEN_SEQUENTIAL, 40},
		{"mixed", GEN_MIXED, 150},   {"hostile", GEN_HOSTILE, 20},
		{"single", GEN_MIXED, 1},
	};
	const struct iot_span spans[2] = {{0, 4096}, {1 << 20, (1 << 20) + 512}};
	struct iot_loss losses[3] = {
		{.id = 7,
		 .n = 1,
		 .bytes = 4096,
		 .sector = 8,
		 .first_ns = 5,
		 .last_ns = 6,
		 .probe = 8},
		{.id = 9, .n = UINT64_MAX, .first_ns = 7, .last_ns = 7, .probe = 4, .op = 2},
		{.id = 0, .n = 3, .first_ns = 1, .last_ns = 99, .cause = 1},
	};
	struct iot_block_encoder *e;
	struct iot_block_info info;
	struct iot_batch *b;
	const uint8_t *data;
	size_t size;

	for (size_t s = 0; s < IOT_ARRAY_SIZE(seeds); s++) {
		struct iot_request r;
		struct gen g;

		/* A fresh encoder: its first block tries both codecs. */
		must(iot_block_encoder_new(&e), "encoder");
		must(iot_batch_new(seeds[s].n, &b), "batch");
		gen_init(&g, seeds[s].kind, 42 + s);
		for (uint32_t i = 0; i < seeds[s].n; i++) {
			gen_request(&g, &r);
			must(iot_batch_add(b, &r), "add");
		}
		must(iot_block_encode(e, IOT_BLOCK_REQUESTS, s, b, spans, 2, &data, &size, &info),
		     "encode");
		put_block(seeds[s].name, data, size, &info);
		iot_batch_free(b);
		iot_block_encoder_free(e);
	}
	make_packets();
	must(iot_block_encoder_new(&e), "encoder");
	must(iot_block_encode_losses(e, IOT_STREAM_BLOCK, 3, losses, 3, NULL, &data, &size, &info),
	     "losses");
	put_block("ledger", data, size, &info);
	iot_block_encoder_free(e);
}

static void make_meta(void)
{
	struct iot_probe probes[2] = {
		{.id = 1,
		 .state = 1,
		 .miss = 1,
		 .from_ns = 5,
		 .name = "block_io_start",
		 .hook = "tp_btf"},
		{.id = 2,
		 .state = 3,
		 .miss = 3,
		 .error = -1,
		 .name = "block_getrq",
		 .hook = "raw_tp",
		 .detail = "refused"},
	};
	struct iot_segment_info info = {
		.host = "host",
		.kernel = "6.1.0",
		.selection = "all",
		.stream = 1,
		.n_rings = 2,
		.n_cpus = 8,
		.epoch = 1,
		.seq = 1,
		.attach_ns = 4,
		.clocks = {1, 2, 3},
		.probes = probes,
		.n_probes = 2,
	};
	struct iot_books books[2] = {
		{.probe = 8, .cpu = 0, .seen = 10, .emitted = 10, .written = 10},
		{.probe = 8, .cpu = UINT32_MAX, .missed = IOT_COUNT_UNKNOWN},
	};
	struct iot_window windows[1] = {
		{.t0_ns = 1, .t1_ns = 2, .n = 3, .cpu = 1, .probe = 8, .kind = 2}};
	struct iot_index_entry index[2] = {
		{.offset = 1000, .size = 500, .count = 10, .kind = 1, .first_ns = 1, .last_ns = 5},
		{.offset = 1500, .size = 300, .count = 2, .kind = 3, .first_ns = 2, .last_ns = 3},
	};
	struct iot_meta_footer footer = {
		.footer = {.reason = 2,
			   .clocks = {4, 5, 6},
			   .epoch_first_ns = 1,
			   .epoch_last_ns = 9,
			   .books = books,
			   .n_books = 2,
			   .windows = windows,
			   .n_windows = 1,
			   .probes = probes,
			   .n_probes = 2,
			   .note = "note"},
		.n_requests = 10,
		.n_losses = 2,
		.index = index,
		.n_index = 2,
	};
	struct iot_buf buf = {0};
	uint8_t trailer[IOT_TRAILER_BYTES];

	must(iot_names_add(&info.devices, IOT_DEV(259, 0), "nvme0n1"), "names");
	must(iot_names_add(&info.devices, IOT_DEV(7, 3), "loop3"), "names");
	must(iot_names_add(&footer.footer.cgroups, 4711, "/system.slice/a.service"), "names");
	must(iot_meta_header_encode(&info, &buf, NULL), "header");
	put("meta/header", "H", 1, buf.data, buf.size);
	put("meta/header-repaired", "h", 1, buf.data, buf.size);
	buf.size = 0;
	must(iot_meta_footer_encode(&footer, &buf, NULL), "footer");
	put("meta/footer", "F", 1, buf.data, buf.size);
	put("meta/footer-repaired", "f", 1, buf.data, buf.size);
	buf.size = 0;
	info.stream = IOT_STREAM_PACKET;
	snprintf(info.identity, sizeof(info.identity), "exact");
	must(iot_names_add(&info.reasons, 2, "NOT_SPECIFIED"), "names");
	must(iot_meta_header_encode(&info, &buf, NULL), "header");
	put("meta/packet-header-repaired", "h", 1, buf.data, buf.size);
	buf.size = 0;
	must(iot_names_add(&footer.footer.symbols, 0xffffffff81000000ULL, "ip_rcv_core+0x10"),
	     "names");
	must(iot_meta_footer_encode(&footer, &buf, NULL), "footer");
	put("meta/packet-footer-repaired", "f", 1, buf.data, buf.size);
	iot_meta_trailer_encode(600, 1000 - 600 - IOT_TRAILER_BYTES, trailer);
	put("meta/trailer", "T", 1, trailer, sizeof(trailer));
	iot_buf_done(&buf);
	iot_names_done(&info.devices);
	iot_names_done(&info.reasons);
	iot_names_done(&footer.footer.symbols);
	iot_names_done(&footer.footer.cgroups);
}

/* What the kernel side hands over: see fuzz-wire.c. */
static void make_wire(void)
{
	struct ev_block requests[4] = {0};
	struct ev_packet packets[3] = {0};
	struct ev_packet_task task = {0};
	struct {
		struct ev_ledger_key key;
		struct ev_ledger_val val;
	} lost[2] = {{.key = {.id = 7, .probe = EV_PROBE_BLOCK_COMPLETE},
		      .val = {.n = 1, .bytes = 4096, .first_ns = 5, .last_ns = 5, .cmd_flags = 1}},
		     {.key = {.probe = EV_PROBE_BLOCK_COMPLETE, .cpu = 1},
		      .val = {.n = 9, .state = EV_BLOCK_END_UNSEEN | EV_LEDGER_SWAP(1)}}};
	struct {
		struct ev_ledger_key key;
		struct ev_packet_loss val;
	} lost_packet = {.key = {.id = 9, .probe = EV_FIRST_PACKET_PROBE},
			 .val = {.n = 2, .family = 4, .ip_proto = 17, .dport = 53}};

	for (unsigned int i = 0; i < IOT_ARRAY_SIZE(requests); i++) {
		struct ev_block *e = &requests[i];

		e->hdr =
			(struct ev_hdr){sizeof(*e), EV_PROBE_BLOCK_COMPLETE, i, 1, EV_ID(i + 1, i)};
		e->start_ns = 1000000 + i * 1000;
		e->issue_ns = e->issue_last_ns = e->start_ns + 100;
		e->complete_ns = e->issue_ns + 50000;
		e->sector = i * 8;
		e->dev = e->part = IOT_DEV(259, 0);
		e->bytes = e->bytes_done = 4096;
		e->cmd_flags = i | 1U << 11;
		e->pid = e->tgid = 100 + i;
		e->ino = i;
		e->origin = (__u8)i;
		e->swap_rule = i == 3 ? EV_SWAP_PAGE : 0;
		e->submitter = EV_SUBMITTER_START;
		e->state = EV_BLOCK_SAW_START;
		memcpy(e->comm, "fio", 3);
	}
	for (unsigned int i = 0; i < IOT_ARRAY_SIZE(packets); i++) {
		struct ev_packet *e = &packets[i];

		e->hdr = (struct ev_hdr){sizeof(*e), (__u16)(EV_FIRST_PACKET_PROBE + i), i, 1,
					 EV_ID(1, 0)};
		e->ts_ns = 1000 + i;
		e->family = 4;
		e->ip_proto = 6;
		e->len = 1500;
		e->hop = i + 1;
		e->ifindex = 2;
		e->flags = EV_PACKET_FROM_START;
	}
	task.packet = packets[0];
	task.packet.hdr.len = sizeof(task);
	task.packet.flags |= EV_PACKET_TASK;
	task.pid = 4711;
	put("wire/requests", "b\0", 2, requests, sizeof(requests));
	put("wire/in-flight", "i\0", 2, requests, sizeof(requests));
	put("wire/packets", "p\0", 2, packets, sizeof(packets));
	put("wire/task", (uint8_t[]){'p', sizeof(task) - sizeof(packets[0])}, 2, &task,
	    sizeof(task));
	put("wire/short", "b\xf8", 2, requests, sizeof(requests));
	put("wire/ledger", "l\0", 2, lost, sizeof(lost));
	put("wire/packet-ledger", "q\0", 2, &lost_packet, sizeof(lost_packet));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr,
			"usage: make-fuzz-seeds DIRECTORY (with block/, meta/ and wire/)\n");
		return 64;
	}
	dir = argv[1];
	make_blocks();
	make_meta();
	make_wire();
	return 0;
}
