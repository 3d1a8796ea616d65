/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config-util.h - what both tests of the configuration need.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/keys.h"

static inline struct iot_config *defaults(void)
{
	struct iot_config *c = NULL;

	assert_int_equal(iot_config_defaults(&c), 0);
	return c;
}

static inline int parse(const char *text, struct iot_config **ret, struct iot_error *err)
{
	int r;

	*ret = defaults();
	*err = (struct iot_error){0};
	r = config_parse("f.yaml", text, strlen(text), *ret, err);
	if (r < 0)
		*ret = iot_config_free(*ret);
	return r;
}

static inline struct iot_config *parse_ok(const char *text)
{
	struct iot_config *c = NULL;
	struct iot_error err;
	int r;

	r = parse(text, &c, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(r, 0);
	return c;
}

/* The text of everything that can be set, without origins. */
static inline char *values_of(const struct iot_config *c)
{
	char *all = NULL, *value = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&all, &len);

	assert_non_null(f);
	for (size_t i = 0; i < config_n_keys; i++) {
		if (config_keys[i].type == CONFIG_SECTION)
			continue;
		assert_int_equal(config_value_format(&config_keys[i], c, &value), 0);
		fprintf(f, "%s=%s\n", config_keys[i].path, value);
		free(value);
	}
	assert_int_equal(fclose(f), 0);
	return all;
}

static inline void assert_same_values(const struct iot_config *a, const struct iot_config *b)
{
	char *x = values_of(a), *y = values_of(b);

	assert_string_equal(x, y);
	free(x);
	free(y);
}
