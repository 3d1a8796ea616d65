/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * anonymize-key.h - a key file, and the keyed function by which format/anonymize.h replaces names.
 */
#pragma once

#include "format/anonymize.h"

struct ctl_key;
struct stat;

/*
 * The content of a file is the key, but for the newline at the end of a text: 32 to 4096 bytes, readable by
 * nobody but its owner, who is root or the caller. Negative errno with err.
 */
int ctl_key_load(const char *path, struct ctl_key **ret, struct iot_error *err) IOT_MUST_CHECK;
int ctl_key_check_file(const char *path, const struct stat *st,
		       struct iot_error *err) IOT_MUST_CHECK;
int ctl_key_new(const void *secret, size_t size, struct ctl_key **ret) IOT_MUST_CHECK;
struct ctl_key *ctl_key_free(struct ctl_key *k);

/* An iot_prf_fn; key is a struct ctl_key. */
void ctl_key_hmac(void *key, const void *data, size_t size, uint8_t ret[IOT_PRF_BYTES]);
#define CTL_KEY_METHOD "HMAC-SHA-256"

static inline void ctl_key_freep(struct ctl_key **k)
{
	*k = ctl_key_free(*k);
}
