/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.h - the one table of configuration keys, private to config/.
 *
 * Everything that has to agree on a key reads this table: the parser (which keys exist, of which
 * type, in which range), the defaults, the dump, the list of keys that need a new start, and by
 * unit test config/iotraced.yaml and the man page. A new key is one line here, one field in
 * struct iot_config, one paragraph in each of those two files.
 *
 * Sections are rows too (they have a place and can be duplicated or misspelt like any key). The
 * order of rows is the order of the dump, every section before its keys.
 */
#pragma once

#include "config/config.h"

enum config_type {
	CONFIG_SECTION = 0,
	CONFIG_BOOL = 1,     /* bool */
	CONFIG_U32 = 2,	     /* uint32_t */
	CONFIG_U64 = 3,	     /* uint64_t */
	CONFIG_SIZE = 4,     /* uint64_t, bytes */
	CONFIG_DURATION = 5, /* uint64_t, nanoseconds */
	CONFIG_ENUM = 6,     /* an enum, by its place in choices */
	CONFIG_CHOICE = 7,   /* char *, one of choices */
	CONFIG_PATH = 8,     /* char *, absolute */
	CONFIG_GROUP = 9,    /* char *, a group name or "" */
	CONFIG_DEVICES = 10, /* struct iot_strv, names or globs */
	CONFIG_TEXT = 11,    /* char *, anything without control characters */
};

enum config_key_flags {
	CONFIG_RESTART = 1 << 0, /* taken at start only */
	CONFIG_POWER_OF_TWO = 1 << 1,
	CONFIG_PAGES = 1 << 2,	  /* at least one page of the running machine */
	CONFIG_ZERO_OFF = 1 << 3, /* 0 is allowed besides min..max and means off or automatic */
};

struct config_key {
	const char *path; /* "streams.block.ring_size" */
	enum config_type type;
	unsigned int flags;
	size_t offset; /* in struct iot_config */
	uint64_t min;  /* numbers; CONFIG_PATH: max is the longest length */
	uint64_t max;
	const char *def;	    /* as it would be written in the file; lists: "[]" */
	const char *const *choices; /* NULL-terminated */
	const char *refuse; /* CONFIG_BOOL: why it cannot be true in this build; NULL = it can */
	const char *doc;    /* one line */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* The row of a whole path, NULL if there is none. */
const struct config_key *config_key_find(const char *path);
/* The key somebody most likely meant by path; NULL if nothing is near. */
const struct config_key *config_key_suggest(const char *path);
/* "ring_size" of "streams.block.ring_size". */
const char *config_key_leaf(const struct config_key *key);
/* The number of dots before the leaf. */
unsigned int config_key_depth(const struct config_key *key);

/* Where in the configuration the value of a key is kept. */
void *config_key_field(const struct config_key *key, struct iot_config *c);
const void *config_key_field_const(const struct config_key *key, const struct iot_config *c);

/*
 * value.c: text <-> field. err says "`KEY`: what is wrong and what is right", place (may be "")
 * goes in front of it. Nothing changes on error.
 */
int config_value_set(const struct config_key *key, const char *text, const char *place,
		     struct iot_config *c, struct iot_error *err) IOT_MUST_CHECK;
/* Adds one item to a list being read; config_strv_done() frees a list. */
int config_value_add(const struct config_key *key, const char *text, const char *place,
		     struct iot_strv *list, struct iot_error *err) IOT_MUST_CHECK;
void config_strv_done(struct iot_strv *list);
/* The value as it would be written in a file; loading it again gives the same field. */
int config_value_format(const struct config_key *key, const struct iot_config *c,
			char **ret) IOT_MUST_CHECK;
/* "64MiB", "15m": the largest unit that keeps the value exact. */
void config_format_size(uint64_t bytes, char *buf, size_t size);
void config_format_duration(uint64_t ns, char *buf, size_t size);

/* A piece of a person's input, safe to print: at most 64 bytes, control characters as '?'. */
struct config_quoted {
	char text[72];
};
struct config_quoted config_quote(const char *text);

/*
 * parse.c: one file's text into c, which already holds the defaults or earlier files. name is for
 * messages and origins. Changes c key by key: on error c is to be thrown away.
 */
int config_parse(const char *name, const char *text, size_t len, struct iot_config *c,
		 struct iot_error *err) IOT_MUST_CHECK;
/* Remembers who set a key last: "FILE:LINE". */
int config_set_origin(struct iot_config *c, const struct config_key *key,
		      const char *origin) IOT_MUST_CHECK;

/*
 * load.c: main_file (NULL or absent and not required = none), then dir/NAME.yaml (NULL or absent
 * = none). What iot_config_load() does with the fixed places, for the tests.
 */
int config_load_from(const char *main_file, bool required, const char *dir, struct iot_config **ret,
		     struct iot_error *err) IOT_MUST_CHECK;
#define CONFIG_FILE_MAX ((size_t)1024 * 1024)
