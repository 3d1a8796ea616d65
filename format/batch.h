/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.h - the records of one block while it is being filled or after it was decoded: columns in
 * memory, one array per field, and the dictionaries (a request's context, device, op+flags, file).
 *
 * A batch is owned by one thread and of one stream. It is filled row by row (iot_batch_add), encoded
 * whole (block.h) and cleared; or decoded whole and read row by row (iot_batch_get). Column arrays
 * are staggered by 192 bytes: with equal page alignment extraction took 80 ns a record, not 33.
 */
#pragma once

#include "format/record.h"

#define IOT_BLOCK_RECORDS 8192U	     /* a block is closed at this many records */
#define IOT_BLOCK_RECORDS_MAX 65536U /* readers refuse more */

struct iot_batch;

/* cap: at most IOT_BLOCK_RECORDS_MAX. Of requests, or of any stream that has a schema. */
int iot_batch_new(uint32_t cap, struct iot_batch **ret) IOT_MUST_CHECK;
int iot_batch_new_stream(enum iot_stream stream, uint32_t cap,
			 struct iot_batch **ret) IOT_MUST_CHECK;
struct iot_batch *iot_batch_free(struct iot_batch *b);
void iot_batch_clear(struct iot_batch *b);

/*
 * Copies the record in. Positive return 1 = IOT_BATCH_FULL: no room (records or a dictionary);
 * nothing was taken, the caller has to write the batch, clear it and add the record again.
 */
#define IOT_BATCH_FULL 1
int iot_batch_add(struct iot_batch *b, const struct iot_request *r) IOT_MUST_CHECK;

enum iot_stream iot_batch_stream(const struct iot_batch *b);
uint32_t iot_batch_count(const struct iot_batch *b);
uint64_t iot_batch_first_ns(const struct iot_batch *b); /* smallest complete_ns; 0 if empty */
uint64_t iot_batch_last_ns(const struct iot_batch *b);	/* largest complete_ns */
/* What records of every stream have: time, owner, probe, CPU. i < count. */
struct iot_row_key;
void iot_batch_key(const struct iot_batch *b, uint32_t i, struct iot_row_key *ret);
/* i < count. Fields of columns that were not decoded are null. */
void iot_batch_get(const struct iot_batch *b, uint32_t i, struct iot_request *ret);

/*
 * The arrays of a decoded batch of requests, n values each, for sums over whole blocks. NULL: not decoded, or
 * not in the block. op and device are entries of dictionaries, below n_ops and n_devices.
 */
struct iot_request_columns {
	uint32_t n;
	uint32_t n_ops;
	uint32_t n_devices;
	const uint64_t *complete_ns;
	const uint64_t *issue_ns;
	const uint64_t *issue_last_ns;
	const uint64_t *start_ns;
	const uint64_t *insert_ns;
	const uint32_t *bytes;
	const uint32_t *bytes_done;
	const uint32_t *error; /* of an int32_t */
	const uint32_t *status;
	const uint16_t *merges;
	const uint16_t *requeues;
	const uint16_t *op;
	const uint16_t *device;
};
void iot_batch_columns(const struct iot_batch *b, struct iot_request_columns *ret);
/* An entry of a dictionary: the fields of a request that it stands for, and no others, are set. */
void iot_batch_op(const struct iot_batch *b, uint16_t entry, struct iot_request *ret);
void iot_batch_device(const struct iot_batch *b, uint16_t entry, struct iot_request *ret);

static inline void iot_batch_freep(struct iot_batch **b)
{
	*b = iot_batch_free(*b);
}
