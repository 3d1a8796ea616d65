// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-config.c - any bytes as a configuration file.
 *
 * Beyond not crashing: what is refused has a message with the file's name, and what is taken can
 * be written out and read again with the same text as the result.
 */
#include "config/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-config: %s\n", what);
	abort();
}

static struct iot_config *fresh(void)
{
	struct iot_config *c = NULL;

	if (iot_config_defaults(&c) < 0)
		abort();
	return c;
}

static void drop_origins(struct iot_config *c)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		free(c->origin[i]);
		c->origin[i] = NULL;
	}
}

static char *dump_of(struct iot_config *c)
{
	char *text = NULL;

	drop_origins(c); /* they differ: the dump is another file */
	check(iot_config_dump(c, &text) == 0, "cannot be written out");
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iot_config *c = fresh(), *again = NULL;
	struct iot_error err = {0};
	char *text = NULL, *text_again = NULL;
	char *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	/* Exactly as long as the input, so that reading past it is seen. */
	memcpy(copy, data, size);
	if (config_parse("f.yaml", copy, size, c, &err) < 0) {
		check(strncmp(err.text, "f.yaml:", 7) == 0, "refused without a place");
		goto done;
	}
	check(!err.text[0], "taken with a message");
	text = dump_of(c);
	again = fresh();
	check(config_parse("f.yaml", text, strlen(text), again, &err) == 0, err.text);
	text_again = dump_of(again);
	check(strcmp(text, text_again) == 0, "reads back as something else");
done:
	free(text);
	free(text_again);
	free(copy);
	iot_config_free(again);
	iot_config_free(c);
	return 0;
}
