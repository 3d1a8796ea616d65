// SPDX-License-Identifier: BSD-2-Clause
/* fingerprint.c - XXH3's 128 bits, in their canonical order. */
#include "format/fingerprint.h"

#include <assert.h>
#include <xxhash.h>

struct iot_fingerprint {
	XXH3_state_t *state;
};

struct iot_fingerprint *iot_fingerprint_new(void)
{
	struct iot_fingerprint *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->state = XXH3_createState();
	if (!f->state || XXH3_128bits_reset(f->state) != XXH_OK)
		return iot_fingerprint_free(f);
	return f;
}

struct iot_fingerprint *iot_fingerprint_free(struct iot_fingerprint *f)
{
	if (f)
		XXH3_freeState(f->state);
	free(f);
	return NULL;
}

void iot_fingerprint_add(struct iot_fingerprint *f, const void *data, size_t size)
{
	/* It fails for data that are NULL, and for nothing else. */
	XXH_errorcode r = XXH3_128bits_update(f->state, data, size);

	assert(r == XXH_OK);
	(void)r;
}

void iot_fingerprint_get(const struct iot_fingerprint *f, uint8_t ret[16])
{
	XXH128_canonical_t out;

	XXH128_canonicalFromHash(&out, XXH3_128bits_digest(f->state));
	memcpy(ret, out.digest, 16);
}
