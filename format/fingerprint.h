/* SPDX-License-Identifier: BSD-2-Clause */
/* fingerprint.h - 128 bits of any bytes, given in any pieces: what is the same twice has the same. No secret is in it. */
#pragma once

#include "format/base.h"

struct iot_fingerprint;
/* NULL: out of memory. */
struct iot_fingerprint *iot_fingerprint_new(void);
struct iot_fingerprint *iot_fingerprint_free(struct iot_fingerprint *f);
void iot_fingerprint_add(struct iot_fingerprint *f, const void *data, size_t size);
void iot_fingerprint_get(const struct iot_fingerprint *f, uint8_t ret[16]);
