// SPDX-License-Identifier: BSD-2-Clause
/* The state directory: owning it, publishing, recovering what a dead predecessor left, forgetting. */
#include "tests/unit/store-fixture.h"

static void test_names(void **state)
{
	struct store *s = open_store(capture_a);
	struct store_entry e;
	char name[128];

	(void)state;
	store_name(s, IOT_STREAM_BLOCK, 42, true, name, sizeof(name));
	assert_string_equal(name, "block-aa010000000000000000000000000000-0000000042.iot");
	assert_int_equal(store_parse_name(name, ".iot", &e), 0);
	assert_int_equal(e.seq, 42);
	assert_int_equal(e.stream, IOT_STREAM_BLOCK);
	assert_string_equal(e.capture_hex, hex_a);
	assert_true(store_parse_name(name, ".open", &e) < 0);
	assert_true(store_parse_name("block-aa-1.iot", ".iot", &e) < 0);
	assert_true(store_parse_name("disk-aa010000000000000000000000000000-0000000042.iot", ".iot",
				     &e) < 0);
	assert_true(store_parse_name("block-AA010000000000000000000000000000-0000000042.iot",
				     ".iot", &e) < 0);
	assert_true(store_parse_name("block-aa010000000000000000000000000000-00000000x2.iot",
				     ".iot", &e) < 0);
	assert_true(store_parse_name("block-aa010000000000000000000000000000-42.iot", ".iot", &e) <
		    0);
	assert_true(store_parse_name(".iot", ".iot", &e) < 0);
	store_close(s);
}

/* The lock is the process's: another one is refused, and a killed one leaves nothing behind. */
static void test_one_owner(void **state)
{
	struct iot_error err = {};
	struct store *s = NULL;
	int to_child[2], to_parent[2], status, fd;
	char c = 0, text[64];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(to_parent), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *mine = NULL;
		int r = store_open(dir, capture_a, &mine, NULL);

		c = r == 0 ? 'y' : 'n';
		(void)!write(to_parent[1], &c, 1);
		(void)!read(to_child[0], &c, 1);
		_exit(0);
	}
	assert_int_equal(read(to_parent[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	assert_int_equal(store_open(dir, capture_b, &s, &err), -EBUSY);
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, "in use by process"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	s = open_store(capture_b);
	/* Readers are told which unsealed files are ours. */
	fd = openat(store_dirfd(s), "lock", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 33);
	assert_memory_equal(text, "bb", 2);
	assert_int_equal(text[32], '\n');
	close(fd);
	store_close(s);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

static void test_bad_directories(void **state)
{
	struct iot_error err = {};
	struct store *s = NULL;
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/absent/state", dir);
	assert_int_equal(store_open(path, capture_a, &s, &err), -ENOENT);
	assert_non_null(strstr(err.text, "parent does not exist"));
	make_file("plain", 10, 0);
	snprintf(path, sizeof(path), "%s/plain", dir);
	err.text[0] = 0;
	assert_int_equal(store_open(path, capture_a, &s, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "not a directory"));
	/* A missing one below an existing parent is made, for us alone. */
	snprintf(path, sizeof(path), "%s/new", dir);
	assert_int_equal(store_open(path, capture_a, &s, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07, 0);
	store_close(s);
	/* Nobody may write to /proc: one clear message, nothing made. */
	err.text[0] = 0;
	s = NULL;
	assert_true(store_open("/proc/self", capture_a, &s, &err) < 0);
	assert_null(s);
	assert_non_null(strstr(err.text, "/proc/self"));
}

struct told {
	unsigned int n;
	unsigned int n_bad;
	uint64_t kept;
	uint64_t lost_bytes;
};

static void tell(void *userdata, const struct store_recovered *r)
{
	struct told *t = userdata;
	char text[256], path[256];
	struct stat st;

	assert_non_null(r->name);
	t->n++;
	t->n_bad += r->error < 0;
	t->kept += r->kept_records;
	t->lost_bytes += r->lost_bytes;
	store_recovered_text(r, text, sizeof(text));
	assert_non_null(strstr(text, r->name));
	/* The words are about what is there now. */
	assert_int_equal(strstr(text, "kept as .bad") != NULL, r->set_aside);
	assert_int_equal(strstr(text, "left as it is") != NULL, r->error < 0 && !r->set_aside);
	assert_int_equal(strstr(text, "records kept") != NULL, r->error == 0);
	snprintf(path, sizeof(path), "%s/%s", dir, r->name);
	if (r->error < 0 && !r->set_aside)
		assert_int_equal(stat(path, &st), 0);
}

/* A start that fails leaves no directory that it made, and no file that is somebody's is touched. */
static void test_abandon(void **state)
{
	struct iot_error err = {};
	struct store *s = NULL;
	char made[128], file[160];
	struct stat st;
	int fd;

	(void)state;
	snprintf(made, sizeof(made), "%s/made", dir);
	snprintf(file, sizeof(file), "%s/made/mine", dir);
	assert_int_equal(store_open(made, capture_a, &s, &err), 0);
	assert_int_equal(stat(made, &st), 0);
	store_abandon(s);
	assert_int_equal(stat(made, &st), -1);
	/* One that was there, and one with something in it, stay. */
	assert_int_equal(mkdir(made, 0700), 0);
	assert_int_equal(store_open(made, capture_a, &s, &err), 0);
	store_abandon(s);
	assert_int_equal(stat(made, &st), 0);
	snprintf(file, sizeof(file), "%s/made/lock", dir);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(made), 0);
	assert_int_equal(store_open(made, capture_a, &s, &err), 0);
	snprintf(file, sizeof(file), "%s/made/mine", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	store_abandon(s);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(unlink(file), 0);
	snprintf(file, sizeof(file), "%s/made/lock", dir);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(made), 0);
}

static enum iot_seal_reason reason_of(const char *name, uint64_t *ret_records, int *ret_verdict)
{
	_cleanup_(iot_segment_closep) struct iot_segment *seg = NULL;
	_cleanup_free_ struct iot_verdict *v = calloc(1, sizeof(*v));
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(v);
	assert_int_equal(iot_segment_open(path, &seg, NULL), 0);
	assert_int_equal(iot_segment_state(seg), IOT_SEGMENT_SEALED);
	assert_int_equal(iot_verify_segment(seg, v, NULL), 0);
	*ret_records = v->n_records;
	*ret_verdict = v->code;
	return iot_segment_footer(seg)->reason;
}

static void test_recover(void **state)
{
	struct store *s = open_store(capture_a);
	char torn[128], whole[128], name[128], path[256];
	struct told t = {};
	uint64_t records;
	size_t n = 99;
	int fd, verdict;

	(void)state;
	/* 1: torn, with half a block behind it. 2: sealed, not renamed. 3: nothing of use. */
	fd = make_segment(s, 1, 7, false);
	assert_int_equal(lseek(fd, 0, SEEK_END) > 0, 1);
	assert_int_equal(write(fd, "half a block", 12), 12);
	close(fd);
	close(make_segment(s, 2, 3, true));
	store_name(s, IOT_STREAM_BLOCK, 1, false, torn, sizeof(torn));
	store_name(s, IOT_STREAM_BLOCK, 2, false, whole, sizeof(whole));
	make_file("block-aa010000000000000000000000000000-0000000003.open", 0, 0);
	make_file("block-aa010000000000000000000000000000-0000000004.open", 5000, 0);
	make_file("block-aa010000000000000000000000000000-0000000001.recovering", 100, 0);
	make_file("notes.open", 10, 0);
	/* Its own open files are not a predecessor's. */
	assert_int_equal(store_recover(s, tell, &t, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(t.n, 0);
	store_close(s);

	s = open_store(capture_b);
	make_file("block-aa010000000000000000000000000000-0000000001.recovering", 100, 0);
	assert_int_equal(store_recover(s, tell, &t, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.n_bad, 2);
	assert_int_equal(t.kept, 10);
	assert_true(t.lost_bytes >= 5012);
	assert_false(exists(torn));
	assert_false(exists(whole));
	assert_true(exists("block-aa010000000000000000000000000000-0000000003.bad"));
	assert_true(exists("block-aa010000000000000000000000000000-0000000004.bad"));
	assert_false(exists("block-aa010000000000000000000000000000-0000000001.recovering"));
	assert_true(exists("notes.open"));
	assert_int_equal(reason_of("block-aa010000000000000000000000000000-0000000001.iot",
				   &records, &verdict),
			 IOT_SEAL_RECOVERED);
	assert_int_equal(records, 7);
	assert_int_equal(verdict, IOT_VERDICT_UNKNOWN);
	assert_int_equal(reason_of("block-aa010000000000000000000000000000-0000000002.iot",
				   &records, &verdict),
			 IOT_SEAL_SIZE);
	assert_int_equal(records, 3);

	/* Died between the rename of the recovered file and the removal of the torn one. */
	snprintf(name, sizeof(name), "block-%s-0000000001.open", hex_a);
	make_file(name, 50, 0);
	/* Died between link and unlink. */
	snprintf(path, sizeof(path), "%s/block-%s-0000000002.iot", dir, hex_a);
	snprintf(torn, sizeof(torn), "%s/block-%s-0000000002.open", dir, hex_a);
	assert_int_equal(link(path, torn), 0);
	assert_int_equal(store_recover(s, NULL, NULL, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_false(exists(name));
	assert_int_equal(access(torn, F_OK), -1);
	/* A foreign file of an existing name is kept aside, and the sealed one is not touched. */
	snprintf(name, sizeof(name), "block-%s-0000000002.open", hex_a);
	make_file(name, 50, 0);
	assert_int_equal(store_recover(s, NULL, NULL, &n, NULL), 0);
	assert_true(exists("block-aa010000000000000000000000000000-0000000002.bad"));
	assert_int_equal(reason_of("block-aa010000000000000000000000000000-0000000002.iot",
				   &records, &verdict),
			 IOT_SEAL_SIZE);
	store_close(s);
}

static void path_of(char path[256], const char *suffix)
{
	snprintf(path, 256, "%s/block-%s-0000000001%s", dir, hex_a, suffix);
}

static bool segment_exists(const char *suffix)
{
	char path[256];

	path_of(path, suffix);
	return access(path, F_OK) == 0;
}

static enum iot_seal_reason segment_is(const char *suffix, uint64_t n_records)
{
	char name[128];
	enum iot_seal_reason reason;
	uint64_t records;
	int verdict;

	snprintf(name, sizeof(name), "block-%s-0000000001%s", hex_a, suffix);
	reason = reason_of(name, &records, &verdict);
	assert_int_equal(records, n_records);
	return reason;
}

/* What `iotracectl recover` makes of the unfinished segment 1 of that many records, under its final name. */
static void make_copy(struct store *s, unsigned int n)
{
	_cleanup_(iot_segment_closep) struct iot_segment *seg = NULL;
	uint64_t kept, lost;
	char path[256], name[128];

	close(make_segment(s, 1, n, false));
	store_name(s, IOT_STREAM_BLOCK, 1, false, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	store_name(s, IOT_STREAM_BLOCK, 1, true, name, sizeof(name));
	assert_int_equal(iot_segment_open(path, &seg, NULL), 0);
	assert_int_equal(iot_recover(seg, store_dirfd(s), name, &kept, &lost, NULL), 0);
	assert_int_equal(kept, n);
	assert_int_equal(unlink(path), 0);
}

/* Segment 1 unfinished or sealed beside a file that has its final name; then the next start. */
static struct told start_after(unsigned int n_copy, unsigned int n_open, bool sealed)
{
	struct store *s = open_store(capture_a);
	struct told t = {};
	size_t n;

	if (n_copy)
		make_copy(s, n_copy);
	else
		make_file("block-aa010000000000000000000000000000-0000000001.iot", 50, 0);
	close(make_segment(s, 1, n_open, sealed));
	store_close(s);
	s = open_store(capture_b);
	assert_int_equal(store_recover(s, tell, &t, &n, NULL), 0);
	store_close(s);
	assert_false(segment_exists(".open"));
	assert_false(segment_exists(".recovering"));
	assert_int_equal(n, t.n - t.n_bad);
	return t;
}

/* Recovered by hand while it was written, then SIGKILL: the segment has more than the copy. */
static void test_copy_then_killed(void **state)
{
	struct told t = start_after(5, 9, false);

	(void)state;
	assert_int_equal(t.kept, 9);
	assert_int_equal(t.n_bad, 1); /* the copy */
	assert_int_equal(segment_is(".iot", 9), IOT_SEAL_RECOVERED);
	assert_int_equal(segment_is(".bad", 5), IOT_SEAL_RECOVERED);
}

/* Killed between the seal and the rename: no copy is as good, not even one of as many records. */
static void test_copy_then_sealed(void **state)
{
	struct told t = start_after(9, 9, true);

	(void)state;
	assert_int_equal(t.kept, 9);
	assert_int_equal(t.lost_bytes, 0);
	assert_int_equal(t.n_bad, 1);
	assert_int_equal(segment_is(".iot", 9), IOT_SEAL_SIZE);
	assert_int_equal(segment_is(".bad", 9), IOT_SEAL_RECOVERED);
}

/* The copy has everything: our own recovery made it, and the counts are those of what is kept. */
static void test_copy_has_all(void **state)
{
	struct told t = start_after(9, 9, false);

	(void)state;
	assert_int_equal(t.kept, 9);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.n_bad, 0);
	assert_int_equal(segment_is(".iot", 9), IOT_SEAL_RECOVERED);
	assert_false(segment_exists(".bad"));
}

/* What has the final name and is no segment does not keep one from it. */
static void test_garbage_then_killed(void **state)
{
	struct told t = start_after(0, 9, false);

	(void)state;
	assert_int_equal(t.kept, 9);
	assert_int_equal(segment_is(".iot", 9), IOT_SEAL_RECOVERED);
	assert_true(segment_exists(".bad"));
}

/* A copy of another segment under that name: both stay. */
static void test_copy_of_another(void **state)
{
	struct store *s = open_store(capture_b);
	char path[256], from[256];
	struct told t = {};
	size_t n;

	(void)state;
	make_copy(s, 9);
	snprintf(from, sizeof(from), "%s/block-bb020000000000000000000000000000-0000000001.iot",
		 dir);
	store_close(s);
	s = open_store(capture_a);
	close(make_segment(s, 1, 9, false));
	store_close(s);
	path_of(path, ".iot");
	assert_int_equal(rename(from, path), 0);
	s = open_store(capture_b);
	assert_int_equal(store_recover(s, tell, &t, &n, NULL), 0);
	store_close(s);
	assert_int_equal(t.n_bad, 1);
	assert_true(segment_exists(".iot"));
	assert_true(segment_exists(".bad"));
}

/* An older copy gives way to the segment itself, and to nothing less. */
static void test_publish_over_copy(void **state)
{
	struct store *s = open_store(capture_a);
	char path[256];
	int fd;

	(void)state;
	make_copy(s, 5);
	fd = make_segment(s, 1, 4, true);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, true, &unsynced), -EEXIST);
	close(fd);
	assert_int_equal(segment_is(".iot", 5), IOT_SEAL_RECOVERED);
	assert_int_equal(segment_is(".open", 4), IOT_SEAL_SIZE);
	s->no_noreplace = true;
	make_file("block-aa010000000000000000000000000000-0000000001.bad", 50, 0);
	path_of(path, ".open");
	assert_int_equal(unlink(path), 0);
	fd = make_segment(s, 1, 6, true);
	assert_int_equal(store_publish(s, IOT_STREAM_BLOCK, 1, fd, true, &unsynced), 0);
	close(fd);
	assert_int_equal(segment_is(".iot", 6), IOT_SEAL_SIZE);
	assert_int_equal(segment_is(".bad.1", 5), IOT_SEAL_RECOVERED);
	assert_false(segment_exists(".open"));
	store_close(s);
}

static unsigned int count_sealed(void)
{
	unsigned int n = 0;
	struct dirent *d;
	DIR *h = opendir(dir);

	assert_non_null(h);
	while ((d = readdir(h)))
		n += strstr(d->d_name, ".iot") != NULL;
	closedir(h);
	return n;
}

static void test_retention(void **state)
{
	struct store *s = open_store(capture_b);
	struct iot_retention rules = {};
	struct store_usage u;
	time_t now = (time_t)(clock_read_ns(CLOCK_REALTIME) / 1000000000ULL);

	(void)state;
	/* Sealed in the order 3, 1, 2, 4: it is the time of sealing that counts, then the number. */
	make_file("block-aa010000000000000000000000000000-0000000001.iot", 1000, now - 300);
	make_file("block-aa010000000000000000000000000000-0000000002.iot", 1000, now - 300);
	make_file("block-aa010000000000000000000000000000-0000000003.iot", 1000, now - 4000);
	make_file("block-aa010000000000000000000000000000-0000000004.iot", 1000, now - 5);
	make_file("block-aa010000000000000000000000000000-0000000005.open", 90000, now - 9000);
	make_file("block-aa010000000000000000000000000000-0000000006.bad", 90000, now - 9000);
	make_file("mine.iot", 90000, now - 9000);

	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.segments, 4);
	assert_int_equal(u.bytes, 4000);
	assert_int_equal(u.deleted_segments, 0);
	assert_true(u.free_bytes > 0);

	rules.max_age_ns = 3600 * 1000000000ULL;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.deleted_segments, 1);
	assert_false(exists("block-aa010000000000000000000000000000-0000000003.iot"));

	rules.max_bytes = 2500;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.segments, 2);
	assert_int_equal(u.bytes, 2000);
	assert_int_equal(u.deleted_bytes, 2000);
	assert_false(exists("block-aa010000000000000000000000000000-0000000001.iot"));
	assert_true(exists("block-aa010000000000000000000000000000-0000000002.iot"));

	/* A floor that cannot be reached takes every sealed segment and nothing else. */
	rules = (struct iot_retention){.min_free_bytes = UINT64_MAX};
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.segments, 0);
	assert_int_equal(u.deleted_segments, 4);
	assert_int_equal(count_sealed(), 1); /* mine.iot */
	assert_true(exists("block-aa010000000000000000000000000000-0000000005.open"));
	assert_true(exists("block-aa010000000000000000000000000000-0000000006.bad"));
	store_close(s);
}

/* What is in the archive goes first; what is not is counted, and only where somebody archives. */
static void test_retention_of_shipped(void **state)
{
	static const char base[] = "block-aa010000000000000000000000000000-000000000";
	static const char digest[] = "0123456789abcdef0123456789abcdef";
	struct store *s = open_store(capture_b);
	time_t now = (time_t)(clock_read_ns(CLOCK_REALTIME) / 1000000000ULL);
	char path[256], name[128];
	struct iot_retention rules = {.shipped = path};
	struct store_usage u;
	FILE *f;

	(void)state;
	for (int i = 1; i <= 6; i++) {
		snprintf(name, sizeof(name), "%s%d.iot", base, i);
		make_file(name, 1000, now - 100 + i);
	}
	snprintf(path, sizeof(path), "%s/note", dir);
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_false(u.archived);
	rules.max_bytes = 5000;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.deleted_segments, 1); /* the oldest, 1 */
	assert_int_equal(u.deleted_unshipped, 0);

	/* 3 and 5 are there; of 4 another size, of 6 another time. */
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "iotraced-archive 1 /srv\n");
	for (int i = 3; i <= 6; i++)
		fprintf(f, "%s%d.iot %d %lld000000000 %s\n", base, i, i == 4 ? 999 : 1000,
			(long long)now - 100 + i + (i == 6), digest);
	fclose(f);
	rules.max_bytes = 4000;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_true(u.archived);
	assert_int_equal(u.unshipped_segments, 3);
	assert_int_equal(u.deleted_unshipped, 0);
	snprintf(name, sizeof(name), "%s3.iot", base);
	assert_false(exists(name));
	rules.max_bytes = 2000;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.deleted_segments, 4); /* 1, 3, 5, 2 */
	assert_int_equal(u.deleted_unshipped, 1);
	assert_int_equal(u.unshipped_segments, 2);
	for (int i = 4; i <= 6; i += 2) {
		snprintf(name, sizeof(name), "%s%d.iot", base, i);
		assert_true(exists(name));
	}
	/* A note that cannot be read: none of them is known to have arrived. */
	snprintf(path, sizeof(path), "%s", dir);
	rules.max_bytes = 1000;
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.deleted_unshipped, 2);
	/* By age, what is in the archive and what is not alike; the latter is said. */
	rules = (struct iot_retention){.shipped = path, .max_age_ns = 1000000000ULL};
	assert_int_equal(store_retain(s, &rules, &u), 0);
	assert_int_equal(u.segments, 0);
	assert_int_equal(u.deleted_unshipped, 3);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_then_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_then_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_has_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_garbage_then_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_publish_over_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retention, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retention_of_shipped, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
