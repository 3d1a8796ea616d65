// SPDX-License-Identifier: BSD-2-Clause
/*
 * test-config-files.c - configurations as files: what cannot be read, the order of drop-ins, the
 * dump; and that the key table, config/iotraced.yaml and the man page say the same.
 *
 * Runs from the top of the source tree, where those two files are.
 */
#include "tests/unit/config-util.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

static char dir[64];

static void put_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static char *get_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) >= 0);
	fclose(f);
	return text;
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-config.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static int load(const char *name, bool required, const char *sub, struct iot_config **ret,
		struct iot_error *err)
{
	char path[128], drop_ins[128];

	*err = (struct iot_error){0};
	*ret = NULL;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(drop_ins, sizeof(drop_ins), "%s/%s", dir, sub ? sub : "");
	return config_load_from(path, required, sub ? drop_ins : NULL, ret, err);
}

static void expect_load_error(const char *name, int code, const char *message)
{
	struct iot_config *c = NULL;
	struct iot_error err;
	char want[256];

	assert_int_equal(load(name, true, NULL, &c, &err), code);
	assert_null(c);
	snprintf(want, sizeof(want), "%s/%s: %s", dir, name, message);
	assert_string_equal(err.text, want);
}

static void test_bad_files(void **state)
{
	char path[128], *big = malloc(CONFIG_FILE_MAX + 2);
	struct iot_config *c = NULL;
	struct iot_error err;
	struct sockaddr_un sun;

	(void)state;
	assert_non_null(big);
	expect_load_error("absent.yaml", -ENOENT,
			  "cannot read the configuration: No such file or directory");
	put_file("plain", "");
	expect_load_error("plain/x.yaml", -ENOTDIR,
			  "cannot read the configuration: Not a directory");
	snprintf(path, sizeof(path), "%s/directory", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_load_error("directory", -EISDIR, "is a directory; name a file");
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_load_error("fifo", -EINVAL, "is not a regular file");
	memset(big, '#', CONFIG_FILE_MAX + 1);
	big[CONFIG_FILE_MAX + 1] = '\0';
	put_file("big.yaml", big);
	expect_load_error("big.yaml", -EFBIG,
			  "is larger than 1 MiB; this cannot be a configuration");
	big[CONFIG_FILE_MAX] = '\0';
	put_file("fits.yaml", big);
	assert_int_equal(load("fits.yaml", true, NULL, &c, &err), 0);
	iot_config_free(c);
	assert_int_equal(config_load_from("/dev/zero", true, NULL, &c, &err), -EFBIG);
	assert_int_equal(config_load_from("/dev/null", true, NULL, &c, &err), 0);
	iot_config_free(c);
	/* One byte less than fits: it is made under a temporary name one longer. */
	assert_int_equal(sizeof(sun.sun_path) - 2, config_key_find("socket")->max);
	free(big);
}

static void test_unreadable_file(void **state)
{
	struct iot_config *c = NULL;
	struct iot_error err = {0};
	char path[128], want[256];

	(void)state;
	if (geteuid() == 0) {
		/* Root reads everything, except through a link that loops. */
		snprintf(path, sizeof(path), "%s/loop.yaml", dir);
		assert_int_equal(symlink("loop.yaml", path), 0);
		snprintf(want, sizeof(want), "%s: cannot read the configuration: %s", path,
			 strerror(ELOOP));
		assert_int_equal(config_load_from(path, false, NULL, &c, &err), -ELOOP);
	} else {
		put_file("closed.yaml", "");
		snprintf(path, sizeof(path), "%s/closed.yaml", dir);
		assert_int_equal(chmod(path, 0), 0);
		snprintf(want, sizeof(want), "%s: cannot read the configuration: %s", path,
			 strerror(EACCES));
		assert_int_equal(config_load_from(path, false, NULL, &c, &err), -EACCES);
	}
	assert_string_equal(err.text, want);
}

static void test_merge(void **state)
{
	struct iot_config *c = NULL;
	struct iot_error err;
	char path[128], want[512], *dump = NULL;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf.d", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file("main.yaml", "log_level: error\n"
			      "streams: {block: {sync: block, ring_cpus: 1}}\n"
			      "devices: {include: [sda, sdb], exclude: [sdc]}\n");
	put_file("conf.d/Z.yaml", "log_level: warning\nsocket: /from-Z\n");
	put_file("conf.d/a.yaml", "streams:\n  block:\n    ring_cpus: 3\nsocket: /from-a\n");
	put_file("conf.d/b.yaml", "devices:\n  include: [vda]\n");
	put_file("conf.d/.hidden.yaml", "rubbish: 1\n");
	put_file("conf.d/old.yaml.dpkg-old", "rubbish: 1\n");
	put_file("conf.d/.yaml", "rubbish: 1\n");

	snprintf(path, sizeof(path), "%s/main.yaml", dir);
	err = (struct iot_error){0};
	assert_int_equal(iot_config_load(path, &c, &err), 0);
	/* "Z" before "a": bytes, not a language's order. */
	assert_string_equal(c->socket, "/from-a");
	assert_string_equal(c->log_level, "warning");
	assert_int_equal(c->block.sync, IOT_SYNC_BLOCK);
	assert_int_equal(c->block.ring_cpus, 3);
	/* A list is one value: the later file's replaces it. */
	assert_int_equal(c->devices.include.n, 1);
	assert_string_equal(c->devices.include.items[0], "vda");
	assert_string_equal(c->devices.exclude.items[0], "sdc");
	snprintf(want, sizeof(want),
		 "%1$s/main.yaml, %1$s/conf.d/Z.yaml, %1$s/conf.d/a.yaml, %1$s/conf.d/b.yaml", dir);
	assert_string_equal(c->source, want);

	assert_int_equal(iot_config_dump(c, &dump), 0);
	snprintf(want, sizeof(want), "    ring_cpus: 3  # %s/conf.d/a.yaml:3\n", dir);
	assert_non_null(strstr(dump, want));
	snprintf(want, sizeof(want), "    sync: block  # %s/main.yaml:2\n", dir);
	assert_non_null(strstr(dump, want));
	assert_non_null(strstr(dump, "    ring_size: 16MiB  # default\n"));
	free(dump);
	c = iot_config_free(c);

	/* One bad drop-in, and nothing is taken. */
	put_file("conf.d/c.yaml", "socket: 5\n");
	assert_int_equal(iot_config_load(path, &c, &err), -EINVAL);
	snprintf(want, sizeof(want),
		 "%s/conf.d/c.yaml:1:9: `socket`: `5` is not an absolute path; begin it with /",
		 dir);
	assert_string_equal(err.text, want);
	assert_null(c);
}

static void test_no_files(void **state)
{
	struct iot_config *c = NULL, *d = defaults();
	struct iot_error err;

	(void)state;
	assert_int_equal(load("absent.yaml", false, "absent.d", &c, &err), 0);
	assert_same_values(c, d);
	assert_string_equal(c->source, "");
	iot_config_free(c);
	iot_config_free(d);
}

/* c, written out and read again. */
static struct iot_config *round_trip(const struct iot_config *c)
{
	char *dump = NULL;
	struct iot_config *again;

	assert_int_equal(iot_config_dump(c, &dump), 0);
	again = parse_ok(dump);
	free(dump);
	return again;
}

static void test_dump_round_trip(void **state)
{
	static const char *const texts[] = {
		"",
		"state_dir: '/a \"b\" \\c \xc3\xa9 #d'\nsocket: '/%s: {}'\nsocket_group: adm\n"
		"streams:\n  block: {sync: never, enabled: false, block_age: 1500ms, swap: drop}\n"
		"devices: {include: [\"sd*\", 'a\"b\\', null1], exclude: [\"8:1\"]}\n"
		"retention: {max_size: 12345, max_age: 90s, min_free: 1MB}\n",
		"log_level: warning\nretention: {max_age: 1000000001ns, min_free: 0}\n"
		"streams: {block: {ring_size: 4KiB, in_flight_entries: 5, block_age: 10000us}}\n",
	};

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++) {
		struct iot_config *c = parse_ok(texts[i]);
		struct iot_config *again = round_trip(c);

		assert_same_values(c, again);
		iot_config_free(again);
		iot_config_free(c);
	}
}

static void test_dump_text(void **state)
{
	struct iot_config *c = parse_ok("devices: {exclude: [loop0]}\n");
	struct iot_error err = {0};
	char *dump = NULL;

	(void)state;
	assert_int_equal(iot_config_set(c, "state_dir", "/x", "--state-dir", &err), 0);
	assert_int_equal(iot_config_dump(c, &dump), 0);
	assert_string_equal(dump, "# in effect; read from: no file, built-in defaults\n"
				  "state_dir: \"/x\"  # --state-dir\n"
				  "socket: \"/run/iotraced/control.sock\"  # default\n"
				  "socket_group: \"\"  # default\n"
				  "log_level: info  # default\n"
				  "streams:\n"
				  "  block:\n"
				  "    enabled: true  # default\n"
				  "    ring_size: 16MiB  # default\n"
				  "    ring_cpus: 4  # default\n"
				  "    ledger_entries: 65536  # default\n"
				  "    in_flight_entries: 0  # default\n"
				  "    block_records: 8192  # default\n"
				  "    block_age: 1s  # default\n"
				  "    segment_size: 64MiB  # default\n"
				  "    segment_age: 15m  # default\n"
				  "    sync: seal  # default\n"
				  "    swap: keep  # default\n"
				  "  packet:\n"
				  "    enabled: false  # default\n"
				  "    filter: \"\"  # default\n"
				  "    sample: 1  # default\n"
				  "    drops_per_second: 100  # default\n"
				  "    gro: false  # default\n"
				  "    qdisc: false  # default\n"
				  "    functions: off  # default\n"
				  "    programs: false  # default\n"
				  "    self_test: true  # default\n"
				  "    ring_size: 32MiB  # default\n"
				  "    ring_cpus: 4  # default\n"
				  "    ledger_entries: 65536  # default\n"
				  "    in_flight_entries: 0  # default\n"
				  "    block_records: 8192  # default\n"
				  "    block_age: 1s  # default\n"
				  "    segment_size: 64MiB  # default\n"
				  "    segment_age: 15m  # default\n"
				  "    sync: seal  # default\n"
				  "devices:\n"
				  "  include: []  # default\n"
				  "  exclude: [\"loop0\"]  # f.yaml:1\n"
				  "retention:\n"
				  "  max_size: 2GiB  # default\n"
				  "  max_age: 0  # default\n"
				  "  min_free: 256MiB  # default\n"
				  "  shipped: \"/var/lib/iotraced-archive/shipped\"  # default\n");
	free(dump);
	iot_config_free(c);
}

static void test_set(void **state)
{
	struct iot_config *c = defaults();
	struct iot_error err = {0};
	char *cwd = getcwd(NULL, 0), want[512];

	(void)state;
	assert_non_null(cwd);
	assert_int_equal(iot_config_set(c, "socket", "s", "--socket", &err), 0);
	snprintf(want, sizeof(want), "%s/s", cwd);
	assert_string_equal(c->socket, want);
	assert_int_equal(iot_config_set(c, "socket", "", "--socket", &err), -EINVAL);
	assert_string_equal(err.text, "--socket: `socket`: `` is not an absolute path; begin it "
				      "with /");
	assert_string_equal(c->socket, want);
	err = (struct iot_error){0};
	assert_int_equal(iot_config_set(c, "streams.block.segment_age", "1ms", "segment age", &err),
			 -EINVAL);
	assert_string_equal(err.text, "segment age: `streams.block.segment_age`: 1ms is out of "
				      "range (100ms to 30d)");
	free(cwd);
	iot_config_free(c);
}

static void test_restart_keys(void **state)
{
	struct iot_config *a = defaults();
	struct iot_config *b =
		parse_ok("state_dir: /x\nlog_level: debug\nretention: {max_age: 1d}\n"
			 "streams: {block: {ring_size: 8MiB, sync: never}}\n");
	char buf[128], small[12];

	(void)state;
	assert_int_equal(iot_config_restart_keys(a, a, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(iot_config_restart_keys(a, b, buf, sizeof(buf)), 2);
	assert_string_equal(buf, "state_dir, streams.block.ring_size");
	assert_int_equal(iot_config_restart_keys(a, b, small, sizeof(small)), 2);
	assert_string_equal(small, "state_dir, ");
	iot_config_free(a);
	iot_config_free(b);
}

/* "#key:" with the blanks before it kept; "# prose" stays. Counts what it uncommented. */
static size_t uncomment(char *text)
{
	size_t n = 0;

	for (char *line = text; line; line = strchr(line, '\n')) {
		char *at = line + strspn(line, "\n "), *rest;

		line = at;
		if (at[0] != '#' || at[1] < 'a' || at[1] > 'z')
			continue;
		rest = at + 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
		if (*rest != ':')
			continue;
		memmove(at, at + 1, strlen(at));
		n++;
	}
	return n;
}

/* The file that is installed: as it is it changes nothing; uncommented it sets every key, to its
 * default. */
static void test_shipped_file(void **state)
{
	char *text = get_file("config/iotraced.yaml");
	struct iot_config *d = defaults(), *c = parse_ok(text);
	size_t n_keys = 0;

	(void)state;
	assert_same_values(c, d);
	for (size_t i = 0; i < config_n_keys; i++)
		assert_null(c->origin[i]);
	iot_config_free(c);

	n_keys = uncomment(text);
	c = parse_ok(text);
	assert_same_values(c, d);
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->type == CONFIG_SECTION)
			continue;
		if (!c->origin[i])
			fail_msg("config/iotraced.yaml does not have the key %s", key->path);
		n_keys--;
	}
	assert_int_equal(n_keys, 0);
	iot_config_free(c);
	iot_config_free(d);
	free(text);
}

/* In the paragraph of a key, "[restart]" stands if and only if the table says so. */
static void test_shipped_file_restart_marks(void **state)
{
	char *text = get_file("config/iotraced.yaml"), *save = NULL;
	bool mark = false, after_key = false;
	size_t n = 0;

	(void)state;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *at = line + strspn(line, " ");
		const struct config_key *key = NULL;

		/* A paragraph may stand for several keys; the next prose begins a new one. */
		if (strncmp(at, "# ", 2) == 0) {
			mark = (mark && !after_key) || strstr(at, "[restart]");
			after_key = false;
			continue;
		}
		if (at[0] != '#')
			continue;
		for (size_t i = 0; i < config_n_keys && !key; i++) {
			const char *leaf = config_key_leaf(&config_keys[i]);
			size_t len = strlen(leaf);

			if (strncmp(at + 1, leaf, len) == 0 && at[1 + len] == ':' &&
			    config_keys[i].type != CONFIG_SECTION)
				key = &config_keys[i];
		}
		if (!key)
			continue;
		after_key = true;
		n++;
		if (mark != !!(key->flags & CONFIG_RESTART))
			fail_msg("config/iotraced.yaml: [restart] is wrong for %s", key->path);
	}
	assert_true(n > 10);
	free(text);
}

/* An entry for every key with its default, and for nothing else. */
static void test_man_page(void **state)
{
	char *text = get_file("packaging/man/iotraced.yaml.5");
	size_t n_entries = 0, n_keys = 0;

	(void)state;
	for (char *at = text; (at = strstr(at, "\n.It Cm ")); at++)
		n_entries++;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		char want[256];

		if (key->type == CONFIG_SECTION)
			continue;
		n_keys++;
		snprintf(want, sizeof(want), "\n.It Cm %s\n.Pq default: %s%s\n", key->path,
			 *key->def ? key->def : "empty",
			 key->flags & CONFIG_RESTART ? "; taken at start" : "");
		if (!strstr(text, want))
			fail_msg("packaging/man/iotraced.yaml.5 does not have the lines%s", want);
	}
	assert_int_equal(n_entries, n_keys);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_unreadable_file),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_dump_round_trip),
		cmocka_unit_test(test_dump_text),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_restart_keys),
		cmocka_unit_test(test_shipped_file),
		cmocka_unit_test(test_shipped_file_restart_marks),
		cmocka_unit_test(test_man_page),
	};

	return cmocka_run_group_tests_name("config-files", tests, make_dir, remove_dir);
}
