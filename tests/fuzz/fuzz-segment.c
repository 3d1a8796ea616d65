// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-segment.c - a whole file through reader, verify, scan and recover.
 *
 * The first byte chooses: 'r' the rest is the file as it is; 's' every checksum in it is made right
 * first, frame by frame, so that what lies behind the checksums sees the bytes. Whatever they are,
 * there must be an answer, the readers must agree with each other, recovery must never end in a
 * verdict that comforts, nor an anonymized copy in a better one, every record can be shown, and every packet
 * be judged.
 */
#include "format/anonymize.h"
#include "format/meta.h"
#include "format/packet-verdict.h"
#include "format/render.h"
#include "format/scan.h"

#include "tests/unit/segment-repair.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int out_dirfd = -1;
static char out_dir[] = "/dev/shm/iot-fuzz-XXXXXX";

static void remove_dir(void)
{
	rmdir(out_dir);
}

static void open_dir(void)
{
	if (out_dirfd >= 0)
		return;
	if (!mkdtemp(out_dir))
		abort();
	out_dirfd = open(out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out_dirfd < 0)
		abort();
	atexit(remove_dir);
}

static void check_recovery(struct iot_segment *s)
{
	uint64_t kept = 0, lost = 0;
	struct iot_error err = {0};
	struct iot_segment *out;
	struct iot_verdict v;
	int fd, r;

	open_dir();
	r = iot_recover(s, out_dirfd, "out.iot", &kept, &lost, &err);
	if (r < 0) {
		assert(err.text[0]);
		return;
	}
	fd = openat(out_dirfd, "out.iot", O_RDONLY | O_CLOEXEC);
	assert(fd >= 0);
	r = iot_segment_open_fd(fd, "out.iot", &out, &err);
	assert(r == 0);
	assert(iot_segment_state(out) == IOT_SEGMENT_SEALED);
	r = iot_verify_segment(out, &v, &err);
	assert(r == 0);
	assert(v.code >= IOT_VERDICT_UNKNOWN);
	assert(v.n_records == kept);
	iot_segment_close(out);
	unlinkat(out_dirfd, "out.iot", 0);
}

static void show(const struct iot_request *req, const struct iot_packet *p)
{
	/* On the heap, and not a byte longer than promised. */
	char *line = malloc(IOT_RENDER_MAX);
	struct iot_render r = {.disk = req ? req->comm : NULL, .realtime_ns = 1};
	struct iot_render_packet rp = {.realtime_ns = 1};
	size_t json, text;

	assert(line);
	json = req ? iot_render_json(line, req, &r) : iot_render_packet_json(line, p, &rp);
	assert(json <= IOT_RENDER_MAX && line[json - 1] == '\n');
	text = req ? iot_render_text(line, req, &r) : iot_render_packet_text(line, p, &rp);
	assert(text <= IOT_RENDER_MAX && line[text - 1] == '\n');
	free(line);
}

static uint64_t scan_all(const char *path, struct iot_verdict *ret)
{
	struct iot_filter filter = {0};
	struct iot_error err = {0};
	struct iot_scan *sc;
	struct iot_request req;
	struct iot_packet packet;
	struct iot_loss *losses;
	uint64_t n = 0;
	size_t n_losses;
	int r;

	r = iot_scan_open(&path, 1, &filter, &sc, &err);
	assert(r == 0);
	iot_scan_columns(sc, IOT_COLS_ALL);
	for (; (r = iot_scan_next(sc, &req, NULL, &err)) == 0; n++)
		show(&req, NULL);
	assert(r == IOT_READ_END);
	for (; (r = iot_scan_next_packet(sc, &packet, NULL, &err)) == 0; n++)
		show(NULL, &packet);
	assert(r == IOT_READ_END);
	r = iot_scan_losses(sc, &losses, &n_losses, &err);
	if (r == 0)
		free(losses);
	r = iot_scan_verdict(sc, true, ret, &err);
	assert(r == 0);
	iot_scan_close(sc);
	return n;
}

/* A packet without a record, in the segment as a chain of one, and a probe that exists. */
static void judge(struct iot_segment *s)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	struct iot_packet_life life = {.id = 8193};
	struct iot_packet_ruling ruling;
	struct iot_loss *losses = NULL;
	struct iot_doubts *d;
	struct iot_footer f;
	const struct iot_footer *footer = iot_segment_footer(s);
	size_t n = 0;

	if (info->stream != IOT_STREAM_PACKET)
		return;
	if (footer && iot_segment_load_ledger(s, &losses, &n, NULL) == 0) {
		f = *footer;
		f.losses = losses;
		f.n_losses = n;
		footer = &f;
	} else {
		footer = NULL;
	}
	if (iot_doubts_new(&info, &footer, 1, &d) < 0)
		abort();
	iot_doubts_judge(d, &life, &ruling, NULL);
	/* No footer, no proof. */
	assert(footer || ruling.verdict == IOT_PVERDICT_UNKNOWN);
	assert(footer ||
	       iot_doubts_absence(d, &life, IOT_PROBE_KFREE_SKB, NULL) != IOT_ABSENCE_PROVED);
	iot_doubts_free(d);
	free(losses);
}

/* Any function will do here. */
static void mix(void *key, const void *data, size_t size, uint8_t ret[IOT_PRF_BYTES])
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ULL;

	(void)key;
	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	for (size_t i = 0; i < IOT_PRF_BYTES; i++)
		ret[i] = (uint8_t)(h >> i % 8 * 8);
}

/* A copy is made of what is whole only, and says the same. */
static void check_anonymized(const char *path, const struct iot_verdict *v)
{
	static struct iot_anonymizer *a;
	struct iot_error err = {0};
	struct iot_segment *s, *out;
	uint64_t n = 0, hash = 0;
	struct iot_verdict copy;
	int r;

	if (!a && iot_anonymizer_new(mix, NULL, "test", &a) < 0)
		abort();
	open_dir();
	r = iot_segment_open(path, &s, &err);
	assert(r == 0);
	r = iot_segment_anonymize(s, a, &err);
	if (r == 0)
		r = iot_anonymize_rewrite(s, 1, out_dirfd, "out.iot", &n, &hash, &err);
	iot_segment_close(s);
	assert(r == 0 || err.text[0]);
	assert(r < 0 || v->code != IOT_VERDICT_CORRUPT);
	if (r == 0) {
		int fd = openat(out_dirfd, "out.iot", O_RDONLY | O_CLOEXEC);

		assert(fd >= 0);
		r = iot_segment_open_fd(fd, "out.iot", &out, &err);
		assert(r == 0);
		r = iot_verify_segment(out, &copy, &err);
		assert(r == 0);
		assert(copy.code == v->code && copy.n_records == v->n_records &&
		       copy.n_lost == v->n_lost);
		assert(copy.n_records == n);
		iot_segment_close(out);
	}
	unlinkat(out_dirfd, "out.iot", 0);
}

static void check_file(int fd)
{
	struct iot_error err = {0};
	struct iot_verdict v, by_scan;
	struct iot_request *open;
	struct iot_segment *s;
	uint64_t records;
	char path[64];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = iot_segment_open(path, &s, &err);
	if (r < 0) {
		/* Refused with a message that names the file. */
		assert(strncmp(err.text, path, strlen(path)) == 0);
		return;
	}
	r = iot_verify_segment(s, &v, &err);
	assert(r == 0);
	assert(v.code == IOT_VERDICT_COMPLETE || v.n_reasons > 0);
	if (iot_segment_load_open(s, &open, &n, NULL) == 0)
		free(open);
	records = scan_all(path, &by_scan);
	assert(records == v.n_records);
	judge(s);
	/* A chain of one can only be worse than the one. */
	assert(by_scan.code >= v.code);
	check_recovery(s);
	iot_segment_close(s);
	check_anonymized(path, &v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	int fd;

	if (size < 1)
		return 0;
	copy = malloc(size);
	assert(copy);
	memcpy(copy, data, size);
	if (copy[0] == 's')
		segment_repair(copy + 1, size - 1);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	assert(fd >= 0);
	if (iot_write_all(fd, copy + 1, size - 1) < 0)
		abort();
	free(copy);
	check_file(fd);
	close(fd);
	return 0;
}
