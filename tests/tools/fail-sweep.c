// SPDX-License-Identifier: BSD-2-Clause
/*
 * fail-sweep.c - runs a command once for each call that can fail, with that one failing (tests/preload/fail-nth.h).
 *
 *	fail-sweep run name=NAME [calls=LIST] [stride=K|runs=N [from=K]] [error=NAME|short] [same]
 *			[scratch=DIR] -- COMMAND...
 *	fail-sweep set FILE calls=LIST at=N [n=K] [error=NAME|short]	for a program that runs already
 *	fail-sweep get FILE	prints how many calls were counted, how many failed, and syncs after one that failed
 *
 * `run` holds every run against the first, in which nothing fails:
 *	- it ends by itself, within 20 s, and by no signal;
 *	- the same exit code means the same standard output, at least the same on standard error, and the same
 *	  files in DIR (which is emptied before each run); 12 ("it was there") may go with more on standard error;
 *	- another exit code is 1 and explained on standard error, or a verdict (10, 11, 20, 21) worse than the
 *	  first run's; DIR then holds no other names than before, and what differs has a sidecar that does, too;
 *	- with `same` (EINTR, short reads and writes) only the same is right.
 * One line "ok NAME: ..." or "not ok NAME: ...", with the first ten things that were wrong.
 */
#include "format/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <xxhash.h>

#include "tests/preload/fail-nth.h"

#define MAX_OUTPUT (16U << 20)
#define LIMIT_SEC 20
#define MAX_COMPLAINTS 10
#define MAX_FILES 16

struct options {
	const char *name;
	const char *scratch;
	uint64_t mask;
	uint64_t stride;
	uint64_t runs; /* 0 = as stride says; else so many that there are about as many runs */
	uint64_t from;
	uint64_t at;
	uint64_t n;
	uint32_t how;
	int error;
	bool same;
};

struct text {
	char *data;
	size_t size;
};

struct file {
	char name[256];
	uint64_t hash;
};

struct run {
	int status;
	bool late;
	struct text out, err;
	struct file files[MAX_FILES];
	size_t n_files;
};

static struct fail_control *control;
static char control_path[64];

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fail-sweep: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t parse_calls(const char *list)
{
	uint64_t mask = 0;

	if (strcmp(list, "all") ==
	    0) /* a file that cannot be removed stays: nothing to hold it against */
		return ((1ULL << FAIL_N_CALLS) - 1) & ~(1ULL << FAIL_UNLINK);
	while (*list) {
		size_t len = strcspn(list, ","), i = 0;

		while (i < FAIL_N_CALLS &&
		       (strlen(fail_names[i]) != len || strncmp(fail_names[i], list, len) != 0))
			i++;
		errno = EINVAL;
		must(i < FAIL_N_CALLS, list);
		mask |= 1ULL << i;
		list += len + (list[len] == ',');
	}
	return mask;
}

static void parse_error(const char *s, struct options *o)
{
	if (strcmp(s, "short") == 0) {
		o->how = FAIL_SHORT;
		return;
	}
	for (int e = 1; e < 134 && !o->error; e++)
		if (strerrorname_np(e) && strcmp(strerrorname_np(e), s) == 0)
			o->error = e;
	errno = EINVAL;
	must(o->error, s);
}

static int parse(int argc, char **argv, struct options *o)
{
	int i = 0;

	*o = (struct options){.name = "?", .mask = parse_calls("all"), .stride = 1, .n = 1};
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *value = strchr(argv[i], '=');
		size_t key = value ? (size_t)(value++ - argv[i]) : strlen(argv[i]);

		errno = EINVAL;
		if (strncmp(argv[i], "name", key) == 0 && value)
			o->name = value;
		else if (strncmp(argv[i], "scratch", key) == 0 && value)
			o->scratch = value;
		else if (strncmp(argv[i], "calls", key) == 0 && value)
			o->mask = parse_calls(value);
		else if (strncmp(argv[i], "error", key) == 0 && value)
			parse_error(value, o);
		else if (strncmp(argv[i], "stride", key) == 0 && value)
			must(iot_parse_u64(value, &o->stride) == 0 && o->stride, argv[i]);
		else if (strncmp(argv[i], "runs", key) == 0 && value)
			must(iot_parse_u64(value, &o->runs) == 0 && o->runs, argv[i]);
		else if (strncmp(argv[i], "from", key) == 0 && value)
			must(iot_parse_u64(value, &o->from) == 0, argv[i]);
		else if (strncmp(argv[i], "at", key) == 0 && value)
			must(iot_parse_u64(value, &o->at) == 0, argv[i]);
		else if (key == 1 && argv[i][0] == 'n' && value)
			must(iot_parse_u64(value, &o->n) == 0, argv[i]);
		else if (strcmp(argv[i], "same") == 0)
			o->same = true;
		else
			must(false, argv[i]);
	}
	return i;
}

static void open_control(const char *path, bool create)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);

	must(fd >= 0, path);
	must(!create || ftruncate(fd, sizeof(*control)) == 0, path);
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(control != MAP_FAILED, path);
	close(fd);
}

/* Counting begins anew. */
static void arm(const struct options *o, uint64_t at)
{
	control->at = 0;
	control->mask = o->mask;
	control->how = o->how;
	control->error = o->error;
	control->n = o->n;
	control->failed = 0;
	__atomic_store_n(&control->count, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&control->at, at, __ATOMIC_RELEASE);
}

/* ---- one run ---- */

static void take(int fd, struct text *t)
{
	struct stat st;

	must(fstat(fd, &st) == 0 && st.st_size <= MAX_OUTPUT, "output");
	t->size = (size_t)st.st_size;
	t->data = malloc(t->size + 1);
	must(t->data && pread(fd, t->data, t->size, 0) == st.st_size, "output");
	t->data[t->size] = '\0';
	close(fd);
}

/* Files, and directories of files. */
static void clean_scratch(const char *dir)
{
	DIR *d = dir ? opendir(dir) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[1024];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		clean_scratch(path);
		must(unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0, e->d_name);
	}
	if (d)
		closedir(d);
}

static void look_at_scratch(const char *dir, const char *prefix, struct run *r)
{
	DIR *d = dir ? opendir(dir) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[1024], name[512];
		struct stat st;
		struct text t;
		int fd;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		snprintf(name, sizeof(name), "%s%s", prefix, e->d_name);
		must(r->n_files < MAX_FILES, "too many files");
		fd = open(path, O_RDONLY | O_CLOEXEC);
		must(fd >= 0 && fstat(fd, &st) == 0, e->d_name);
		snprintf(r->files[r->n_files].name, sizeof(r->files->name), "%.255s", name);
		if (S_ISDIR(st.st_mode)) {
			close(fd);
			r->files[r->n_files++].hash = 0;
			strcat(name, "/");
			look_at_scratch(path, name, r);
			continue;
		}
		take(fd, &t);
		r->files[r->n_files++].hash = XXH64(t.data, t.size, 0);
		free(t.data);
	}
	if (d)
		closedir(d);
}

/* Waits for the child, at most LIMIT_SEC. */
static int wait_for(pid_t pid, bool *ret_late)
{
	const struct timespec limit = {.tv_sec = LIMIT_SEC};
	int status;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		pid_t done = waitpid(pid, &status, WNOHANG);

		must(done >= 0, "waitpid");
		if (done == pid)
			return status;
		if (sigtimedwait(&chld, NULL, &limit) < 0 && errno == EAGAIN && !*ret_late) {
			*ret_late = true;
			kill(pid, SIGKILL);
		}
	}
}

static void run(const struct options *o, char **argv, uint64_t at, struct run *ret)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	pid_t pid;

	*ret = (struct run){0};
	must(out >= 0 && err >= 0, "memfd_create");
	clean_scratch(o->scratch);
	arm(o, at);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		sigset_t none;
		int null = open("/dev/null", O_RDONLY);

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
		    setenv("FAIL_CONTROL", control_path, 1) < 0 ||
		    setenv("LD_PRELOAD", getenv("FAIL_NTH_SO"), 1) < 0)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	ret->status = wait_for(pid, &ret->late);
	take(out, &ret->out);
	take(err, &ret->err);
	look_at_scratch(o->scratch, "", ret);
}

static void run_done(struct run *r)
{
	free(r->out.data);
	free(r->err.data);
}

/* ---- judging ---- */

static bool same_text(const struct text *a, const struct text *b)
{
	return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static bool has_file(const struct run *r, const struct file *f)
{
	for (size_t i = 0; i < r->n_files; i++)
		if (strcmp(r->files[i].name, f->name) == 0 && r->files[i].hash == f->hash)
			return true;
	return false;
}

static const struct file *find_file(const struct run *r, const char *suffix, bool whole_name)
{
	for (size_t i = 0; i < r->n_files; i++) {
		const char *name = r->files[i].name;
		size_t n = strlen(name), k = strlen(suffix);

		if (n >= k && (!whole_name || n == k) && strcmp(name + n - k, suffix) == 0)
			return &r->files[i];
	}
	return NULL;
}

/* Each as in the first run; if the exit code says so, other contents beside a sidecar that tells. */
static bool files_right(const struct run *first, const struct run *r, bool all_well)
{
	const struct file *sidecar = find_file(r, ".loss.json", false);

	for (size_t i = 0; i < r->n_files; i++) {
		if (has_file(first, &r->files[i]))
			continue;
		if (all_well || !find_file(first, r->files[i].name, true) || !sidecar ||
		    has_file(first, sidecar))
			return false;
	}
	return true;
}

static bool is_verdict(int code)
{
	return code == 10 || code == 11 || code == 20 || code == 21;
}

/* NULL: right. */
static const char *wrong(const struct options *o, const struct run *first, const struct run *r)
{
	int code = WEXITSTATUS(r->status), want = WEXITSTATUS(first->status);

	if (r->late)
		return "it hangs";
	if (WIFSIGNALED(r->status))
		return WTERMSIG(r->status) == SIGABRT ? "it aborts" : "it crashes";
	if (!files_right(first, r, code == want))
		return "a file is left that is not whole";
	if (code == 12 && want == 12 && r->err.size > first->err.size)
		return NULL;
	if (code == want) {
		if (!same_text(&r->out, &first->out))
			return "other output, and the exit code does not say so";
		if (!memmem(r->err.data, r->err.size, first->err.data, first->err.size))
			return "less on standard error, and the exit code does not say so";
		if (r->n_files != first->n_files)
			return "a file is missing, and the exit code does not say so";
		return NULL;
	}
	if (o->same)
		return "another exit code";
	if (code == 1)
		return r->err.size ? NULL : "an error without a reason";
	/* explain: 12 is "it was there", and not to know is no lie. */
	if (code == 11 && want == 12)
		return NULL;
	if (is_verdict(code) && (want == 0 || is_verdict(want)))
		return code > want ? NULL : "a better verdict than without the failure";
	return "an exit code that says something else";
}

static void complain(const struct options *o, uint64_t at, const char *what, const struct run *r)
{
	printf("# %s, call %llu (%s): %s: exit %d signal %d; %.*s\n", o->name,
	       (unsigned long long)at, fail_names[control->last % FAIL_N_CALLS], what,
	       WEXITSTATUS(r->status), WTERMSIG(r->status), (int)strcspn(r->err.data, "\n"),
	       r->err.data);
}

static int sweep(const struct options *o, char **argv)
{
	uint64_t n_calls, stride, n_runs = 0, n_wrong = 0, n_failed = 0;
	struct run first, r;

	run(o, argv, 0, &first);
	n_calls = control->count;
	if (!WIFEXITED(first.status) || WEXITSTATUS(first.status) >= 126 || n_calls == 0) {
		printf("not ok %s: without a failure: status %#x, %llu calls; %s\n", o->name,
		       (unsigned int)first.status, (unsigned long long)n_calls, first.err.data);
		return 1;
	}
	stride = o->runs ? IOT_MAX(n_calls / o->runs, UINT64_C(1)) : o->stride;
	for (uint64_t at = 1 + o->from % stride; at <= n_calls; at += stride) {
		const char *what;

		run(o, argv, at, &r);
		n_runs++;
		n_failed += control->failed > 0;
		what = wrong(o, &first, &r);
		if (what && n_wrong++ < MAX_COMPLAINTS)
			complain(o, at, what, &r);
		run_done(&r);
	}
	/* Afterwards all is as before. */
	run(o, argv, 0, &r);
	if (WEXITSTATUS(r.status) != WEXITSTATUS(first.status) || !same_text(&r.out, &first.out)) {
		n_wrong++;
		printf("# %s: not the same afterwards\n", o->name);
	}
	run_done(&r);
	run_done(&first);
	if (n_wrong)
		printf("not ok %s: wrong in %llu of %llu runs\n", o->name,
		       (unsigned long long)n_wrong, (unsigned long long)n_runs);
	else
		printf("ok %s: %llu runs of %llu calls, %llu failures met\n", o->name,
		       (unsigned long long)n_runs, (unsigned long long)n_calls,
		       (unsigned long long)n_failed);
	return n_wrong != 0;
}

int main(int argc, char **argv)
{
	struct options o;
	sigset_t chld;
	int i, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	errno = EINVAL;
	if (argc == 3 && strcmp(argv[1], "get") == 0) {
		open_control(argv[2], false);
		printf("%llu %llu %llu\n", (unsigned long long)control->count,
		       (unsigned long long)control->failed, (unsigned long long)control->again);
		return 0;
	}
	if (argc >= 3 && strcmp(argv[1], "set") == 0) {
		parse(argc - 3, argv + 3, &o);
		open_control(argv[2], true);
		arm(&o, o.at);
		return 0;
	}
	must(argc > 3 && strcmp(argv[1], "run") == 0 && getenv("FAIL_NTH_SO"), "usage");
	i = 2 + parse(argc - 2, argv + 2, &o);
	must(i + 1 < argc, "no command");
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	snprintf(control_path, sizeof(control_path), "/dev/shm/fail-sweep.%ld", (long)getpid());
	open_control(control_path, true);
	r = sweep(&o, argv + i + 1);
	unlink(control_path);
	return r;
}
