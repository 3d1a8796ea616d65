// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-config.c - one file's text into a configuration: values, units, and every message to the
 * letter. test-config-files.c has files, their order, the dump and the documentation.
 */
#include "tests/unit/config-util.h"

#include <malloc.h>

#include "format/batch.h"

struct bad {
	const char *text;
	const char *message;
};

static void check_bad(const struct bad *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct iot_config *c = NULL;
		struct iot_error err;
		int r;

		r = parse(cases[i].text, &c, &err);
		iot_config_free(c);
		assert_string_equal(err.text, cases[i].message);
		assert_int_equal(r, -EINVAL);
	}
}
#define CHECK_BAD(...)                                            \
	do {                                                      \
		static const struct bad _cases[] = {__VA_ARGS__}; \
		check_bad(_cases, IOT_ARRAY_SIZE(_cases));        \
	} while (0)

static void test_defaults(void **state)
{
	struct iot_config *c = defaults();

	(void)state;
	assert_true(c->block.enabled);
	assert_false(c->packet.enabled);
	assert_int_equal(c->block.ring_size_bytes, 16 << 20);
	assert_int_equal(c->block.ring_cpus, 4);
	assert_int_equal(c->block.ledger_entries, 65536);
	assert_int_equal(c->block.in_flight_entries, 0);
	assert_int_equal(c->block.block_records, IOT_BLOCK_RECORDS);
	assert_int_equal(c->block.block_age_ns, 1000000000);
	assert_int_equal(c->block.segment_size_bytes, 64 << 20);
	assert_int_equal(c->block.segment_age_ns, UINT64_C(900000000000));
	assert_int_equal(c->block.sync, IOT_SYNC_SEAL);
	assert_int_equal(c->block.swap, IOT_KEEP_SWAP);
	assert_int_equal(c->devices.include.n, 0);
	assert_int_equal(c->devices.exclude.n, 0);
	assert_int_equal(c->retention.max_bytes, UINT64_C(2) << 30);
	assert_int_equal(c->retention.max_age_ns, 0);
	assert_int_equal(c->retention.min_free_bytes, 256 << 20);
	assert_string_equal(c->state_dir, "/var/lib/iotraced");
	assert_string_equal(c->socket, "/run/iotraced/control.sock");
	assert_string_equal(c->socket_group, "");
	assert_string_equal(c->log_level, "info");
	assert_string_equal(c->source, "");
	iot_config_free(c);
}

static void test_all_keys(void **state)
{
	struct iot_config *c = parse_ok("state_dir: /a b/c\n"
					"socket: \"/x\"\n"
					"socket_group: adm\n"
					"log_level: debug\n"
					"streams:\n"
					"  block:\n"
					"    enabled: no\n"
					"    ring_size: 64KiB\n"
					"    ring_cpus: 2\n"
					"    ledger_entries: 10\n"
					"    in_flight_entries: 77\n"
					"    block_records: 65536\n"
					"    block_age: 200ms\n"
					"    segment_size: 1GB\n"
					"    segment_age: 1.5s\n"
					"    sync: never\n"
					"    swap: drop\n"
					"  packet: {enabled: off}\n"
					"devices:\n"
					"  include: [\"nvme*\", 8:16]\n"
					"  exclude:\n"
					"  - loop0\n"
					"retention: {max_size: 10M, max_age: 7d, min_free: 0}\n");

	(void)state;
	assert_string_equal(c->state_dir, "/a b/c");
	assert_string_equal(c->socket, "/x");
	assert_string_equal(c->socket_group, "adm");
	assert_string_equal(c->log_level, "debug");
	assert_false(c->block.enabled);
	assert_int_equal(c->block.ring_size_bytes, 65536);
	assert_int_equal(c->block.ring_cpus, 2);
	assert_int_equal(c->block.ledger_entries, 10);
	assert_int_equal(c->block.in_flight_entries, 77);
	assert_int_equal(c->block.block_records, 65536);
	assert_int_equal(c->block.block_age_ns, 200000000);
	assert_int_equal(c->block.segment_size_bytes, 1000000000);
	assert_int_equal(c->block.segment_age_ns, 1500000000);
	assert_int_equal(c->block.sync, IOT_SYNC_NEVER);
	assert_int_equal(c->block.swap, IOT_DROP_SWAP);
	assert_false(c->packet.enabled);
	assert_int_equal(c->devices.include.n, 2);
	assert_string_equal(c->devices.include.items[0], "nvme*");
	assert_string_equal(c->devices.include.items[1], "8:16");
	assert_int_equal(c->devices.exclude.n, 1);
	assert_string_equal(c->devices.exclude.items[0], "loop0");
	assert_int_equal(c->retention.max_bytes, 10 << 20);
	assert_int_equal(c->retention.max_age_ns, UINT64_C(7) * 86400 * 1000000000);
	assert_int_equal(c->retention.min_free_bytes, 0);
	iot_config_free(c);
}

static void test_empty(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"# nothing\n",
		"---\n",
		"--- {}\n",
		"~\n",
		"streams:\n  block:\ndevices:\n",
		"%YAML 1.1\n---\nretention: {}\n...\n",
		"\xef\xbb\xbf# byte order mark\n",
	};
	struct iot_config *d = defaults();

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++) {
		struct iot_config *c = parse_ok(texts[i]);

		assert_same_values(c, d);
		iot_config_free(c);
	}
	iot_config_free(d);
}

static void test_unknown_keys(void **state)
{
	(void)state;
	CHECK_BAD(
		{"retention:\n  max_sise: 1\n",
		 "f.yaml:2:3: unknown key `retention.max_sise`; did you mean "
		 "`retention.max_size`?"},
		{"retension:\n  max_size: 1\n",
		 "f.yaml:1:1: unknown key `retension`; did you mean `retention`?"},
		{"retension.max_size: 1\n",
		 "f.yaml:1:1: unknown key `retension.max_size`; did you mean "
		 "`retention.max_size`?"},
		{"retention.max_size: 1\n",
		 "f.yaml:1:1: unknown key `retention.max_size`; keys are nested: write `max_size` "
		 "below its section"},
		{"streams: {block.ring_size: 1}\n",
		 "f.yaml:1:11: unknown key `streams.block.ring_size`; keys are nested: write "
		 "`ring_size` below its section"},
		{"ring_size: 1\n",
		 "f.yaml:1:1: unknown key `ring_size`; did you mean `streams.block.ring_size`?"},
		{"streams:\n  block:\n    Ring-Size: 1\n",
		 "f.yaml:3:5: unknown key `streams.block.Ring-Size`; did you mean "
		 "`streams.block.ring_size`?"},
		{"frobnicate: 1\n",
		 "f.yaml:1:1: unknown key `frobnicate`; iotraced.yaml(5) lists all keys"},
		{"<<: {a: 1}\n", "f.yaml:1:1: unknown key `<<`; iotraced.yaml(5) lists all keys"},
		{"\"a\\tb\": 1\n",
		 "f.yaml:1:1: unknown key `a?b`; iotraced.yaml(5) lists all keys"},
		{"x12345678901234567890123456789012345678901234567890123456789012345678901234567: "
		 "1\n",
		 "f.yaml:1:1: unknown key "
		 "`x123456789012345678901234567890123456789012345678901234567890123...`; "
		 "iotraced.yaml(5) lists all keys"});
}

static void test_duplicate_keys(void **state)
{
	(void)state;
	CHECK_BAD({"socket: /a\nlog_level: info\nsocket: /b\n",
		   "f.yaml:3:1: duplicate key `socket`; line 1 has it already"},
		  {"streams:\n  block: {sync: seal}\nstreams:\n  packet:\n",
		   "f.yaml:3:1: duplicate key `streams`; line 1 has it already"},
		  {"retention: {max_age: 1d, max_age: 2d}\n",
		   "f.yaml:1:26: duplicate key `retention.max_age`; line 1 has it already"});
}

static void test_wrong_types(void **state)
{
	(void)state;
	CHECK_BAD({"streams: 5\n", "f.yaml:1:10: `streams`: is a section; write its keys below it"},
		  {"streams: [block]\n",
		   "f.yaml:1:10: `streams`: is a section; write its keys below it"},
		  {"socket: [a]\n", "f.yaml:1:9: `socket`: needs one value, not a list"},
		  {"socket: {a: b}\n", "f.yaml:1:9: `socket`: needs one value, not a mapping"},
		  {"log_level:\n", "f.yaml:1:11: `log_level`: has no value; the default is info"},
		  {"socket_group: ~\n",
		   "f.yaml:1:15: `socket_group`: has no value; the default is \"\""},
		  {"devices:\n  include: sda\n",
		   "f.yaml:2:12: `devices.include`: needs a list, like [\"nvme*\", sda]"},
		  {"devices:\n  include:\n",
		   "f.yaml:2:11: `devices.include`: needs a list, like [\"nvme*\", sda]"},
		  {"devices:\n  include: [[sda]]\n",
		   "f.yaml:2:13: `devices.include`: each item is one name"},
		  {"devices: {include: [sda, ~]}\n",
		   "f.yaml:1:26: `devices.include`: each item is one name"},
		  {"- a\n", "f.yaml:1:1: expected `key: value` lines"},
		  {"just words\n", "f.yaml:1:1: expected `key: value` lines"},
		  {"? [a]\n: b\n", "f.yaml:1:3: expected the name of a key"});
}

static void test_bad_values(void **state)
{
	(void)state;
	CHECK_BAD(
		{"streams:\n  block:\n    enabled: maybe\n",
		 "f.yaml:3:14: `streams.block.enabled`: `maybe` is neither true nor false"},
		{"streams: {packet: {sample: 0}}\n",
		 "f.yaml:1:28: `streams.packet.sample`: 0 is out of range (1 to 1000000)"},
		{"streams: {block: {ring_size: 64 parsecs}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: `64 parsecs` is not a size; write bytes "
		 "or "
		 "a number with KiB, MiB, GiB or TiB, like 64MiB"},
		{"streams: {block: {ring_size: -1}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: `-1` is not a size; write bytes or a "
		 "number "
		 "with KiB, MiB, GiB or TiB, like 64MiB"},
		{"streams: {block: {block_age: soon}}\n",
		 "f.yaml:1:30: `streams.block.block_age`: `soon` is not a time; write a number "
		 "with "
		 "ms, s, m, h or d, like 5m"},
		{"streams: {block: {ring_cpus: 4.5}}\n",
		 "f.yaml:1:30: `streams.block.ring_cpus`: `4.5` is not a whole number; write "
		 "digits "
		 "only, like 4096"},
		{"streams: {block: {ring_cpus: 0x4}}\n",
		 "f.yaml:1:30: `streams.block.ring_cpus`: `0x4` is not a whole number; write "
		 "digits "
		 "only, like 4096"},
		{"streams: {block: {sync: allways}}\n",
		 "f.yaml:1:25: `streams.block.sync`: `allways` is not known; write seal, block or "
		 "never"},
		{"streams: {block: {swap: no}}\n",
		 "f.yaml:1:25: `streams.block.swap`: `no` is not known; write keep or drop"},
		{"log_level: INFO\n", "f.yaml:1:12: `log_level`: `INFO` is not known; write error, "
				      "warning, info or debug"},
		{"state_dir: data\n",
		 "f.yaml:1:12: `state_dir`: `data` is not an absolute path; begin it with /"},
		{"state_dir: \"\"\n",
		 "f.yaml:1:12: `state_dir`: `` is not an absolute path; begin it with /"},
		{"state_dir: \"/a\\nb\"\n",
		 "f.yaml:1:12: `state_dir`: `/a?b` has a control character in it"},
		{"socket_group: a b\n",
		 "f.yaml:1:15: `socket_group`: `a b` is not the name of a group"},
		{"devices: {include: [/dev/sda]}\n",
		 "f.yaml:1:21: `devices.include`: write the kernel's name, `sda`, instead of "
		 "`/dev/sda`"},
		{"devices: {include: [\"\"]}\n",
		 "f.yaml:1:21: `devices.include`: an empty device name"},
		{"devices: {include: [\"a,b\"]}\n",
		 "f.yaml:1:21: `devices.include`: `a,b` is not the name of a device; several are a "
		 "list: [sda, sdb]"},
		{"devices: {include: [\"a\\eb\"]}\n",
		 "f.yaml:1:21: `devices.include`: `a?b` is not the name of a device"});
}

static void test_ranges(void **state)
{
	(void)state;
	CHECK_BAD(
		{"streams: {block: {ring_size: 1KiB}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: 1KiB is out of range (4KiB to 1GiB)"},
		{"streams: {block: {ring_size: 2GiB}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: 2GiB is out of range (4KiB to 1GiB)"},
		{"streams: {block: {ring_size: 99999999999999999999}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: 99999999999999999999 is out of range "
		 "(4KiB "
		 "to 1GiB)"},
		{"streams: {block: {ring_size: 100MiB}}\n",
		 "f.yaml:1:30: `streams.block.ring_size`: 100MiB is not a power of two; the "
		 "nearest "
		 "are 64MiB and 128MiB"},
		{"streams: {block: {ring_cpus: 0}}\n",
		 "f.yaml:1:30: `streams.block.ring_cpus`: 0 is out of range (1 to 8192)"},
		{"streams: {block: {block_records: 65537}}\n",
		 "f.yaml:1:34: `streams.block.block_records`: 65537 is out of range (1 to 65536)"},
		{"streams: {block: {block_age: 0}}\n",
		 "f.yaml:1:30: `streams.block.block_age`: 0 is out of range (10ms to 1h)"},
		{"streams: {block: {segment_age: 31d}}\n",
		 "f.yaml:1:32: `streams.block.segment_age`: 31d is out of range (100ms to 30d)"},
		{"retention: {max_age: 1ms}\n",
		 "f.yaml:1:22: `retention.max_age`: 1ms is out of range (0, or 1s to 36500d)"},
		{"socket: "
		 "/1234567890123456789012345678901234567890123456789012345678901234567890123456"
		 "78901234567890123456789012345x\n",
		 "f.yaml:1:9: `socket`: is 107 bytes long; at most 106 fit"});
}

static void test_too_many_devices(void **state)
{
	char text[1024] = "devices: {include: [a";
	size_t len = strlen(text);
	struct iot_config *c = NULL;
	struct iot_error err;

	(void)state;
	for (int i = 1; i < 256; i++, len += 2)
		memcpy(text + len, ",a", 2);
	memcpy(text + len, "]}\n", 4);
	c = parse_ok(text);
	assert_int_equal(c->devices.include.n, 256);
	iot_config_free(c);
	memcpy(text + len, ",a]}\n", 6);
	assert_int_equal(parse(text, &c, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:1:533: `devices.include`: more than 256 devices; use "
				      "globs");
}

static void test_bad_yaml(void **state)
{
	(void)state;
	CHECK_BAD({"devices: {include: [a\n",
		   "f.yaml:2:1: invalid YAML: did not find expected ',' or ']'"},
		  {"log_level: info: c\n",
		   "f.yaml:1:16: invalid YAML: mapping values are not allowed in this context"},
		  {"streams:\n\tblock:\n", "f.yaml:2:1: invalid YAML: a tab; indent with spaces"},
		  {"socket: \"/x\n", "f.yaml:2:1: invalid YAML: found unexpected end of stream"},
		  {"socket: &a /x\n", "f.yaml:1:9: anchors are not supported; remove the &name"},
		  {"streams: &a {}\n", "f.yaml:1:10: anchors are not supported; remove the &name"},
		  {"socket: *a\n", "f.yaml:1:9: aliases are not supported; repeat the value"},
		  {"socket: !!str /x\n", "f.yaml:1:9: tags are not supported; remove the !tag"},
		  {"devices: {include: !x [a]}\n",
		   "f.yaml:1:20: tags are not supported; remove the !tag"},
		  {"socket: /x\n---\nsocket: /y\n",
		   "f.yaml:2:1: a second YAML document; use one, or files in conf.d"},
		  {"socket: \"/x\\0y\"\n", "f.yaml:1:9: a NUL character inside a text"},
		  {"socket: /x\nlog_level: \xff\n",
		   "f.yaml:2:12: not a UTF-8 text file (invalid leading UTF-8 octet)"});
}

static void test_nul_bytes(void **state)
{
	static const char text[] = "socket: /x\nab\0cd\n";
	struct iot_config *c = defaults();
	struct iot_error err = {0};

	(void)state;
	assert_int_equal(config_parse("f.yaml", text, sizeof(text) - 1, c, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:2:3: a NUL byte; this is not a text file");
	iot_config_free(c);
}

/* A megabyte of brackets must be refused at the first that the table does not expect. */
static void test_deep_nesting(void **state)
{
	struct iot_config *c = NULL;
	struct iot_error err;
	char *text = malloc(CONFIG_FILE_MAX + 1);

	(void)state;
	assert_non_null(text);
	memset(text, '[', CONFIG_FILE_MAX);
	text[CONFIG_FILE_MAX] = '\0';
	assert_int_equal(parse(text, &c, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:1:1: expected `key: value` lines");
	memcpy(text, "devices: {include: ", 19);
	assert_int_equal(parse(text, &c, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:1:21: `devices.include`: each item is one name");
	memset(text, '{', CONFIG_FILE_MAX);
	assert_int_equal(parse(text, &c, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:1:2: expected the name of a key");
	free(text);
}

#define N_FREED 100

/* Every text that a key can have is freed again. */
static void test_freed(void **state)
{
	struct iot_config *c = NULL;
	struct iot_error err;
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 2 * N_FREED; i++) {
		/* What the first rounds keep is the parser's. */
		if (i == N_FREED)
			before = mallinfo2().uordblks;
		assert_int_equal(parse("streams: {packet: {filter: udp port 53}}\nstate_dir: /a\n"
				       "devices: {include: [sda]}\nsocket_group: g\n",
				       &c, &err),
				 0);
		iot_config_free(c);
	}
	/* Where a block comes to lie may change by a few bytes; the smallest one that is kept is 32 bytes a round. */
	assert_in_range(mallinfo2().uordblks, 0, before + N_FREED * 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_freed),	     cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all_keys),     cmocka_unit_test(test_empty),
		cmocka_unit_test(test_unknown_keys), cmocka_unit_test(test_duplicate_keys),
		cmocka_unit_test(test_wrong_types),  cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_ranges),	     cmocka_unit_test(test_too_many_devices),
		cmocka_unit_test(test_bad_yaml),     cmocka_unit_test(test_nul_bytes),
		cmocka_unit_test(test_deep_nesting),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
