/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * anonymize.h - names and addresses replaced by a keyed function of them, so that a record can be
 * given to others.
 *
 * A segment that was given an anonymizer is anonymized wherever it is read: its header, footer and
 * blocks come out with the replacements, and nothing above the reader can see what they stand for.
 * Filters that name something are translated once, so that they match as before. What is replaced:
 *
 *   command, host, cgroup path, interface (but lo and eth*), names of observed programs, machine and
 *   boot id; the text of a selection, unless it says nothing but "all"; IP addresses
 *
 * Not replaced are numbers (pids, inodes, cgroup ids, ports, sectors, sizes, times), names that the
 * kernel gives to disks by itself (sda, nvme0n1p2), those of its functions and drop reasons, its release,
 * and the random id of the capture.
 *
 * Equal names become equal names: under one key, everywhere. A cgroup's path keeps its depth and its
 * parents. Two addresses of a family share as many leading bits afterwards as they did before, and no more (as
 * in Crypto-PAn: Xu, Fan, Ammar and Moon, "Prefix-preserving IP address anonymization", 2002): each bit
 * is flipped or not by a keyed bit of the bits before it.
 */
#pragma once

#include "format/scan.h"

#define IOT_PRF_BYTES 32U

/* A keyed pseudo-random function, as HMAC-SHA-256 is one. */
typedef void (*iot_prf_fn)(void *key, const void *data, size_t size, uint8_t ret[IOT_PRF_BYTES]);

struct iot_anonymizer;

/* key is borrowed until the free. method: what the headers say, beside the key's own mark. */
int iot_anonymizer_new(iot_prf_fn prf, void *key, const char *method,
		       struct iot_anonymizer **ret) IOT_MUST_CHECK;
struct iot_anonymizer *iot_anonymizer_free(struct iot_anonymizer *a);

/* What headers say: the method, and a number by which files of one key are known as such. */
const char *iot_anonymizer_mark(const struct iot_anonymizer *a);

enum iot_name_kind {
	IOT_NAME_HOST = 1,
	IOT_NAME_CGROUP = 2,
	IOT_NAME_DEVICE = 3, /* a disk, partition or interface */
	IOT_NAME_PROGRAM = 4,
};
/* Any name but a command's; *ret is the caller's. -ENOMEM. */
int iot_anonymize_name(struct iot_anonymizer *a, enum iot_name_kind kind, const char *name,
		       char **ret) IOT_MUST_CHECK;
/* In place. */
void iot_anonymize_comm(struct iot_anonymizer *a, char comm[IOT_COMM_LEN]);
void iot_anonymize_address(struct iot_anonymizer *a, uint8_t family, uint8_t address[16]);
void iot_anonymize_flow(struct iot_anonymizer *a, struct iot_flow *f);
void iot_anonymize_id(struct iot_anonymizer *a, uint8_t id[16]);
/* The name of a probe, in place: of one that observes somebody's program, the program's name. -ENOMEM. */
int iot_anonymize_probe(struct iot_anonymizer *a, char *name, size_t size) IOT_MUST_CHECK;
/* So that it matches what it would have matched. -ENOMEM. */
int iot_anonymize_filter(struct iot_anonymizer *a, struct iot_filter *f) IOT_MUST_CHECK;

/* ---- anonymize-segment.c ---- */

/* From now on s is read anonymized; a is borrowed until s is closed. -EALREADY, with err: it is already. */
int iot_segment_anonymize(struct iot_segment *s, struct iot_anonymizer *a,
			  struct iot_error *err) IOT_MUST_CHECK;
/* Every segment of a scan that has not been read yet. */
int iot_scan_anonymize(struct iot_scan *sc, struct iot_anonymizer *a,
		       struct iot_error *err) IOT_MUST_CHECK;
/* The dictionaries of a decoded block: what the reader does for a segment. -ENOMEM. */
int iot_anonymize_batch(struct iot_anonymizer *a, struct iot_batch *b) IOT_MUST_CHECK;

/* ---- anonymize-rewrite.c ---- */

/*
 * The content of an anonymized segment in a file of its own: blocks of the same records over the same ring
 * positions, books, windows and ledger as they are. One without a footer stays one. prev_footer_hash: of the
 * new file that stands for the segment before, 0 = there is none; *ret_hash: of the new footer, 0 = none.
 * -EBADMSG: the segment is damaged.
 */
int iot_anonymize_rewrite(struct iot_segment *s, uint64_t prev_footer_hash, int out_dirfd,
			  const char *out_name, uint64_t *ret_records, uint64_t *ret_hash,
			  struct iot_error *err) IOT_MUST_CHECK;

static inline void iot_anonymizer_freep(struct iot_anonymizer **a)
{
	*a = iot_anonymizer_free(*a);
}
