// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-recover.c - a torn or damaged segment, rebuilt as a new sealed one beside it.
 *
 * The input is never changed. The output appears whole or not at all (written under a temporary
 * name, synced, renamed) and never replaces an existing file. Default name: NAME.recovered.iot for
 * NAME.open and NAME.iot, never the name the daemon will give the segment itself; --output names a
 * file, or a directory to put it in. A segment that is still being written is refused: what is not
 * written yet is not lost, and `rotate` gives all of it.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/ctl/ctl-util.h"

/* Directory and name of the output. Both are the caller's to free. */
static int choose_output(const char *input, const char *output, char **ret_dir, char **ret_name)
{
	const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;
	_cleanup_free_ char *dir = NULL, *name = NULL;
	size_t len = strlen(base);
	struct stat st;
	bool open_file = len > 5 && strcmp(base + len - 5, ".open") == 0;
	bool iot_file = len > 4 && strcmp(base + len - 4, ".iot") == 0;

	if (output && !(stat(output, &st) == 0 && S_ISDIR(st.st_mode))) {
		slash = strrchr(output, '/');
		dir = slash ? strndup(output, (size_t)(slash - output) + 1) : strdup(".");
		name = strdup(slash ? slash + 1 : output);
		if (!dir || !name)
			return -ENOMEM;
		if (!*name)
			return -ENOENT; /* "dir/" that is no directory */
	} else {
		if (output)
			dir = strdup(output);
		else
			dir = slash ? strndup(input, (size_t)(slash - input) + 1) : strdup(".");
		if (!dir || asprintf(&name, "%.*s%s",
				     (int)(open_file  ? len - 5
					   : iot_file ? len - 4
						      : len),
				     base, ".recovered.iot") < 0)
			return -ENOMEM;
	}
	*ret_dir = IOT_TAKE_PTR(dir);
	*ret_name = IOT_TAKE_PTR(name);
	return 0;
}

static int sync_file(int dirfd, const char *name)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fdatasync(fd) < 0 ? -errno : 0;
}

static int recover_into(struct iot_segment *s, const char *dir, const char *name)
{
	_cleanup_close_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *temp = NULL;
	char kept[CTL_HUMAN_MAX], lost[CTL_HUMAN_MAX];
	uint64_t n_kept = 0, n_lost = 0;
	struct iot_error err = {0};
	int r;

	if (dirfd < 0)
		return ctl_fail(CTL_ERROR, "%s: %s", dir, strerror(errno));
	if (faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return ctl_fail(CTL_ERROR, "%s/%s: exists already; name another file with --output",
				dir, name);
	if (asprintf(&temp, ".%s.%ld.tmp", name, (long)getpid()) < 0)
		return ctl_fail(CTL_ERROR, "out of memory");
	r = iot_recover(s, dirfd, temp, &n_kept, &n_lost, &err);
	if (r == 0)
		r = sync_file(dirfd, temp);
	if (r == 0)
		r = ctl_rename_new(dirfd, temp, name);
	if (r < 0) {
		unlinkat(dirfd, temp, 0);
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	}
	(void)fsync(dirfd);
	printf("%s/%s: %s requests kept, %s of the file were not readable\n", dir, name,
	       ctl_human_count(n_kept, kept), ctl_human_size(n_lost, lost));
	return CTL_OK;
}

int verb_recover(struct ctl *c, int argc, char **argv)
{
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	_cleanup_free_ char *dir = NULL, *name = NULL;
	struct iot_error err = {0};
	struct iot_verdict v;
	pid_t writer = 0;
	char pid[40] = "another process";
	size_t len;
	int r;

	if (argc != 2)
		return ctl_fail(CTL_USAGE,
				"recover needs one segment file: recover FILE [--output PATH]");
	r = iot_segment_open(argv[1], &s, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	len = strlen(argv[1]);
	if (len > 5 && strcmp(argv[1] + len - 5, ".open") == 0 &&
	    ctl_segment_writer(s, &writer) != CTL_WRITER_NONE) {
		if (writer > 0)
			snprintf(pid, sizeof(pid), "process %ld", (long)writer);
		return ctl_fail(CTL_ERROR,
				"%s: is being written by %s; 'iotracectl rotate' seals it", argv[1],
				pid);
	}
	r = iot_verify_segment(s, &v, &err);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s", err.text[0] ? err.text : strerror(-r));
	if (v.code < IOT_VERDICT_TORN)
		return ctl_fail(CTL_ERROR, "%s: sealed and whole (%s); there is nothing to recover",
				argv[1], iot_verdict_name(v.code));
	r = choose_output(argv[1], c->output, &dir, &name);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s: %s", c->output ? c->output : argv[1], strerror(-r));
	return recover_into(s, dir, name);
}
