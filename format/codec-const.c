// SPDX-License-Identifier: BSD-2-Clause
/*
 * codec-const.c - CONST: one value for the whole column. No bytes at all say 0, eight bytes any
 * value, little-endian. How often it is repeated is the column table's count alone.
 */
#include "format/codec.h"

#include <endian.h>

uint8_t *iot_const_encode(uint64_t v, uint8_t *out)
{
	if (v == 0)
		return out;
	v = htole64(v);
	memcpy(out, &v, sizeof(v));
	return out + sizeof(v);
}

int iot_const_decode(const uint8_t *in, size_t size, uint64_t *ret)
{
	uint64_t v;

	if (size == 0) {
		*ret = 0;
		return 0;
	}
	if (size != sizeof(v))
		return -EBADMSG;
	memcpy(&v, in, sizeof(v));
	/* One way to say one thing: 0 is said by no bytes. */
	if (v == 0)
		return -EBADMSG;
	*ret = le64toh(v);
	return 0;
}
