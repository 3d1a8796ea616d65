// SPDX-License-Identifier: BSD-2-Clause
/*
 * unsealed.c - segments without a footer: torn, or just being written by a daemon that is well.
 *
 * The bytes of both look the same. The difference is outside of them: a daemon holds a write lock
 * on the file `lock` of its state directory for as long as it lives (daemon/store.c), and writes
 * the id of its capture into it: a *.open file of that capture beside a held lock is still being
 * recorded, one of another capture was left behind. Only the words change: the verdict's code stays
 * that of a torn segment, since what it cannot prove is the same. Losses are filed at the seal:
 * until then a count of them is a lower bound, never a claim.
 */
#include <fcntl.h>

#include "daemon/ctl/ctl-util.h"

#define NOT_SEALED "not sealed: "
#define RECORDED "still being recorded; its books close when it is sealed (iotracectl rotate)"

/* false: no process holds the lock of that name. *ret is "" if it does not say what it writes. */
static bool lock_held(const char *name, char ret[CTL_HUMAN_MAX], pid_t *ret_pid)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	_cleanup_close_ int fd = -EBADF;
	ssize_t n;

	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fcntl(fd, F_GETLK, &l) < 0 || l.l_type != F_WRLCK)
		return false;
	if (ret_pid)
		*ret_pid = l.l_pid;
	n = read(fd, ret, CTL_HUMAN_MAX - 1);
	ret[n >= 32 ? 32 : 0] = '\0';
	return true;
}

bool ctl_directory_writer(const char *dir, char ret_capture[CTL_HUMAN_MAX])
{
	_cleanup_free_ char *name = NULL;

	return asprintf(&name, "%s/lock", dir) >= 0 && lock_held(name, ret_capture, NULL) &&
	       ret_capture[0];
}

enum ctl_writer ctl_segment_writer(const struct iot_segment *s, pid_t *ret_pid)
{
	const char *path = iot_segment_path(s), *slash = strrchr(path, '/');
	char mine[CTL_HUMAN_MAX], theirs[CTL_HUMAN_MAX];
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%.*slock", slash ? (int)(slash + 1 - path) : 0, path) < 0)
		return CTL_WRITER_NONE;
	if (!lock_held(name, theirs, ret_pid))
		return CTL_WRITER_NONE;
	if (!theirs[0])
		return CTL_WRITER_MAYBE;
	return strcmp(theirs, ctl_hex_id(iot_segment_info(s)->capture_id, mine)) == 0
		       ? CTL_WRITER_THIS
		       : CTL_WRITER_NONE;
}

bool ctl_being_recorded(const struct iot_segment *s)
{
	const char *path = iot_segment_path(s), *dot = strrchr(path, '.');

	/* Without permission to ask, or without an answer, it is called torn: the cautious one of the
	 * two words. */
	return !iot_segment_footer(s) && !iot_segment_damaged(s) && dot &&
	       strcmp(dot, ".open") == 0 && ctl_segment_writer(s, NULL) == CTL_WRITER_THIS;
}

size_t ctl_n_unsealed(const struct iot_scan *scan)
{
	size_t n = 0;

	for (size_t i = 0; i < iot_scan_n_segments(scan); i++)
		n += !iot_segment_footer(iot_scan_segment(scan, i));
	return n;
}

bool ctl_losses_final(const struct iot_scan *scan, const struct iot_verdict *v)
{
	/* Unknown: losses without owner, missed runs, segments that are not here: in no sum of losses. */
	if (v->code >= IOT_VERDICT_UNKNOWN || ctl_n_unsealed(scan) > 0)
		return false;
	/* A footer made by recovery does not know what its epoch lost. */
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++)
		if (iot_segment_footer(iot_scan_segment(scan, i))->reason == IOT_SEAL_RECOVERED)
			return false;
	return true;
}

static void rename_reason(struct iot_verdict *v, const char *prefix)
{
	char old[64];

	snprintf(old, sizeof(old), "%s%s", prefix, NOT_SEALED);
	for (size_t i = 0; i < v->n_reasons; i++)
		if (strncmp(v->reasons[i], old, strlen(old)) == 0) {
			snprintf(v->reasons[i], sizeof(v->reasons[i]), "%s%s", prefix, RECORDED);
			return;
		}
}

int ctl_verify_segment(struct iot_segment *s, struct iot_verdict *ret, struct iot_error *err)
{
	int r;

	r = iot_verify_segment(s, ret, err);
	if (r < 0 || ret->code != IOT_VERDICT_TORN || !ctl_being_recorded(s))
		return r;
	ret->being_recorded = true;
	rename_reason(ret, "");
	return 0;
}

int ctl_scan_verdict(struct iot_scan *scan, bool full, struct iot_verdict *ret,
		     struct iot_error *err)
{
	size_t n_recorded = 0;
	int r;

	r = iot_scan_verdict(scan, full, ret, err);
	if (r < 0)
		return r;
	r = ctl_cover_scan(scan, iot_scan_filter(scan), ret);
	if (r == 0)
		r = ctl_overlap_check(scan, iot_scan_filter(scan), ret);
	if (r < 0)
		return r;
	ctl_selected_check(scan, iot_scan_filter(scan), ret);
	if (ret->code < IOT_VERDICT_TORN)
		return 0;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);
		char prefix[40];

		if (!ctl_being_recorded(s))
			continue;
		n_recorded++;
		snprintf(prefix, sizeof(prefix),
			 "segment %llu: ", (unsigned long long)iot_segment_info(s)->seq);
		rename_reason(ret, prefix);
	}
	ret->being_recorded = ret->code == IOT_VERDICT_TORN && n_recorded &&
			      n_recorded == ctl_n_unsealed(scan);
	return 0;
}
