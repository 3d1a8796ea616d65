// SPDX-License-Identifier: BSD-2-Clause
/*
 * parse.c - one YAML text into a configuration, by libyaml's events rather than its documents:
 * only events still know line and column when the meaning of a value is checked.
 *
 * The shape is fixed by the table of keys, so the walk is too: a mapping is entered only where the
 * table has a section, a sequence only where it has a list. Depth is thereby bounded by the table,
 * whatever the file nests. What YAML has beyond mappings, lists and scalars (anchors, aliases,
 * tags, several documents) is refused: in a file of thirty settings it is always a mistake.
 *
 * Every message begins with "FILE:LINE:COLUMN: ", counted from 1, of the key or value it is about.
 */
#include <assert.h>
#include <yaml.h>

#include "config/keys.h"

#define PATH_MAX_LEN 160U

struct parse {
	yaml_parser_t parser;
	const char *name;
	const char *text;
	size_t len;
	struct iot_config *c;
	struct iot_error *err;
	size_t *line_of; /* by key: where this file set it; 0 = not yet */
};

/* An event with what it needs outliving it. text is owned, and set for scalars only. */
struct node {
	yaml_event_type_t type;
	size_t line;
	size_t column;
	char *text;
	bool plain;
};

static void node_done(struct node *n)
{
	free(n->text);
	n->text = NULL;
}
#define _cleanup_node_ _cleanup_(node_done)

struct place {
	char text[384];
};

/* Names of files are a person's input too, but one that has to be whole; very long ones are cut. */
static struct place place_at(const struct parse *p, size_t line, size_t column)
{
	struct place at;

	snprintf(at.text, sizeof(at.text), "%.300s:%zu:%zu: ", p->name, line, column);
	return at;
}

static struct place place_of(const struct parse *p, const struct node *n)
{
	return place_at(p, n->line, n->column);
}

/* Line and column of a byte, for what is found before libyaml counts lines. */
static struct place place_of_byte(const struct parse *p, size_t offset)
{
	size_t line = 1, start = 0;

	for (size_t i = 0; i < offset && i < p->len; i++) {
		if (p->text[i] != '\n')
			continue;
		line++;
		start = i + 1;
	}
	return place_at(p, line, offset - start + 1);
}

static bool is_tab(const struct parse *p, const yaml_mark_t *mark)
{
	const char *at = p->text, *end = p->text + p->len;

	for (size_t line = 0; line < mark->line; line++) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	return mark->column < (size_t)(end - at) && at[mark->column] == '\t';
}

static int fail_syntax(struct parse *p)
{
	const yaml_parser_t *y = &p->parser;
	const char *problem = y->problem ? y->problem : "cannot be parsed";

	switch (y->error) {
	case YAML_MEMORY_ERROR:
		return -ENOMEM;
	case YAML_READER_ERROR:
		return iot_error_set(p->err, -EINVAL, "%snot a UTF-8 text file (%s)",
				     place_of_byte(p, y->problem_offset).text, problem);
	default:
		return iot_error_set(
			p->err, -EINVAL, "%sinvalid YAML: %s",
			place_at(p, y->problem_mark.line + 1, y->problem_mark.column + 1).text,
			is_tab(p, &y->problem_mark) ? "a tab; indent with spaces" : problem);
	}
}

static int refuse_extras(struct parse *p, const struct node *n, bool anchor, bool tag)
{
	if (n->type == YAML_ALIAS_EVENT)
		return iot_error_set(p->err, -EINVAL,
				     "%saliases are not supported; repeat the value",
				     place_of(p, n).text);
	if (anchor)
		return iot_error_set(p->err, -EINVAL,
				     "%sanchors are not supported; remove the &name",
				     place_of(p, n).text);
	if (tag)
		return iot_error_set(p->err, -EINVAL, "%stags are not supported; remove the !tag",
				     place_of(p, n).text);
	return 0;
}

/* The next event. *ret is written on success only. */
static int next(struct parse *p, struct node *ret)
{
	_cleanup_node_ struct node n = {0};
	bool anchor = false, tag = false, nul = false;
	yaml_event_t event;
	int r;

	if (!yaml_parser_parse(&p->parser, &event))
		return fail_syntax(p);
	n.type = event.type;
	n.line = event.start_mark.line + 1;
	n.column = event.start_mark.column + 1;
	if (event.type == YAML_SCALAR_EVENT) {
		const char *value = (const char *)event.data.scalar.value;

		anchor = event.data.scalar.anchor;
		tag = event.data.scalar.tag;
		n.plain = event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		nul = strlen(value) != event.data.scalar.length; /* "\0" in quotes */
		n.text = strdup(value);
	} else if (event.type == YAML_MAPPING_START_EVENT) {
		anchor = event.data.mapping_start.anchor;
		tag = event.data.mapping_start.tag;
	} else if (event.type == YAML_SEQUENCE_START_EVENT) {
		anchor = event.data.sequence_start.anchor;
		tag = event.data.sequence_start.tag;
	}
	yaml_event_delete(&event);
	if (n.type == YAML_SCALAR_EVENT && !n.text)
		return -ENOMEM;
	r = refuse_extras(p, &n, anchor, tag);
	if (r < 0)
		return r;
	if (nul)
		return iot_error_set(p->err, -EINVAL, "%sa NUL character inside a text",
				     place_of(p, &n).text);
	*ret = n;
	n.text = NULL;
	return 0;
}

static bool is_null(const struct node *n)
{
	return n->type == YAML_SCALAR_EVENT && n->plain &&
	       (!*n->text || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

static int unknown_key(struct parse *p, const struct node *n, const char *path)
{
	const struct config_key *near = config_key_suggest(path);

	if (strchr(n->text, '.') && config_key_find(path))
		return iot_error_set(
			p->err, -EINVAL,
			"%sunknown key `%s`; keys are nested: write `%s` below its section",
			place_of(p, n).text, config_quote(path).text,
			config_key_leaf(config_key_find(path)));
	if (near)
		return iot_error_set(p->err, -EINVAL, "%sunknown key `%s`; did you mean `%s`?",
				     place_of(p, n).text, config_quote(path).text, near->path);
	return iot_error_set(p->err, -EINVAL, "%sunknown key `%s`; iotraced.yaml(5) lists all keys",
			     place_of(p, n).text, config_quote(path).text);
}

/* The row of the key n below section, which this file may not have set before. */
static int resolve_key(struct parse *p, const struct config_key *section, const struct node *n,
		       const struct config_key **ret)
{
	const struct config_key *key;
	char path[PATH_MAX_LEN];
	size_t i;

	if (n->type != YAML_SCALAR_EVENT)
		return iot_error_set(p->err, -EINVAL, "%sexpected the name of a key",
				     place_of(p, n).text);
	snprintf(path, sizeof(path), "%s%s%s", section ? section->path : "", section ? "." : "",
		 n->text);
	/* A cut path equals no row: rows are shorter than the buffer. */
	key = strchr(n->text, '.') ? NULL : config_key_find(path);
	if (!key)
		return unknown_key(p, n, path);
	i = (size_t)(key - config_keys);
	if (p->line_of[i])
		return iot_error_set(p->err, -EINVAL,
				     "%sduplicate key `%s`; line %zu has it already",
				     place_of(p, n).text, key->path, p->line_of[i]);
	p->line_of[i] = n->line;
	*ret = key;
	return 0;
}

static int set_origin(struct parse *p, const struct config_key *key, const struct node *n)
{
	_cleanup_free_ char *origin = NULL;

	if (asprintf(&origin, "%s:%zu", p->name, n->line) < 0) {
		origin = NULL;
		return -ENOMEM;
	}
	return config_set_origin(p->c, key, origin);
}

static int parse_list_items(struct parse *p, const struct config_key *key, struct iot_strv *list)
{
	for (;;) {
		_cleanup_node_ struct node n = {0};
		int r;

		r = next(p, &n);
		if (r < 0)
			return r;
		if (n.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (n.type != YAML_SCALAR_EVENT || is_null(&n))
			return iot_error_set(p->err, -EINVAL, "%s`%s`: each item is one name",
					     place_of(p, &n).text, key->path);
		r = config_value_add(key, n.text, place_of(p, &n).text, list, p->err);
		if (r < 0)
			return r;
	}
}

static int parse_list(struct parse *p, const struct config_key *key, const struct node *first)
{
	struct iot_strv list = {0}, *field = config_key_field(key, p->c);
	int r;

	if (first->type != YAML_SEQUENCE_START_EVENT)
		return iot_error_set(p->err, -EINVAL, "%s`%s`: needs a list, like [\"nvme*\", sda]",
				     place_of(p, first).text, key->path);
	r = parse_list_items(p, key, &list);
	if (r < 0) {
		config_strv_done(&list);
		return r;
	}
	config_strv_done(field);
	*field = list;
	return 0;
}

static int parse_scalar(struct parse *p, const struct config_key *key, const struct node *n)
{
	if (n->type != YAML_SCALAR_EVENT)
		return iot_error_set(p->err, -EINVAL, "%s`%s`: needs one value, not %s",
				     place_of(p, n).text, key->path,
				     n->type == YAML_SEQUENCE_START_EVENT ? "a list" : "a mapping");
	if (is_null(n))
		return iot_error_set(p->err, -EINVAL, "%s`%s`: has no value; the default is %s",
				     place_of(p, n).text, key->path, *key->def ? key->def : "\"\"");
	return config_value_set(key, n->text, place_of(p, n).text, p->c, p->err);
}

static int parse_mapping(struct parse *p, const struct config_key *section);

static int parse_value(struct parse *p, const struct config_key *key)
{
	_cleanup_node_ struct node n = {0};
	int r;

	r = next(p, &n);
	if (r < 0)
		return r;
	if (key->type == CONFIG_SECTION) {
		/* All keys below it may be commented out. */
		if (is_null(&n))
			return 0;
		if (n.type != YAML_MAPPING_START_EVENT)
			return iot_error_set(p->err, -EINVAL,
					     "%s`%s`: is a section; write its keys below it",
					     place_of(p, &n).text, key->path);
		return parse_mapping(p, key);
	}
	if (key->type == CONFIG_DEVICES)
		r = parse_list(p, key, &n);
	else
		r = parse_scalar(p, key, &n);
	return r < 0 ? r : set_origin(p, key, &n);
}

/* Recursion ends where the table has no deeper section. */
static int parse_mapping(struct parse *p, const struct config_key *section)
{
	for (;;) {
		const struct config_key *key = NULL;
		_cleanup_node_ struct node n = {0};
		int r;

		r = next(p, &n);
		if (r < 0)
			return r;
		if (n.type == YAML_MAPPING_END_EVENT)
			return 0;
		r = resolve_key(p, section, &n, &key);
		if (r < 0)
			return r;
		assert(key);
		r = parse_value(p, key);
		if (r < 0)
			return r;
	}
}

static int parse_document(struct parse *p)
{
	_cleanup_node_ struct node root = {0};
	int r;

	r = next(p, &root);
	if (r < 0)
		return r;
	if (is_null(&root))
		return 0;
	if (root.type != YAML_MAPPING_START_EVENT)
		return iot_error_set(p->err, -EINVAL, "%sexpected `key: value` lines",
				     place_of(p, &root).text);
	return parse_mapping(p, NULL);
}

static int parse_stream(struct parse *p)
{
	bool seen = false;

	for (;;) {
		_cleanup_node_ struct node n = {0};
		int r;

		r = next(p, &n);
		if (r < 0)
			return r;
		if (n.type == YAML_STREAM_END_EVENT)
			return 0;
		if (n.type != YAML_DOCUMENT_START_EVENT)
			continue;
		if (seen)
			return iot_error_set(
				p->err, -EINVAL,
				"%sa second YAML document; use one, or files in conf.d",
				place_of(p, &n).text);
		seen = true;
		r = parse_document(p);
		if (r < 0)
			return r;
	}
}

int config_parse(const char *name, const char *text, size_t len, struct iot_config *c,
		 struct iot_error *err)
{
	struct parse p = {.name = name, .text = text, .len = len, .c = c, .err = err};
	_cleanup_free_ size_t *line_of = NULL;
	const char *nul;
	int r;

	/* Also keeps libyaml from taking UTF-16 for text: every other byte of ASCII is NUL there. */
	nul = memchr(text, '\0', len);
	if (nul)
		return iot_error_set(err, -EINVAL, "%sa NUL byte; this is not a text file",
				     place_of_byte(&p, (size_t)(nul - text)).text);
	line_of = calloc(config_n_keys, sizeof(*line_of));
	if (!line_of)
		return -ENOMEM;
	p.line_of = line_of;

	if (!yaml_parser_initialize(&p.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&p.parser, (const unsigned char *)text, len);
	r = parse_stream(&p);
	yaml_parser_delete(&p.parser);
	return r;
}
