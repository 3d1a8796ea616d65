// SPDX-License-Identifier: BSD-2-Clause
/*
 * archive-whole.c - what may be shipped, and what may give way to it, see archive.h.
 *
 * The archive may hold the last good copy of a segment: one that the local disk has damaged since must not
 * take its place, and of two that are both whole nobody but a person can tell which one is wanted.
 */
#include <fcntl.h>

#include "daemon/ctl/archive.h"
#include "format/verify.h"

int archive_whole(int fd, const char *name, struct iot_error *err)
{
	_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
	struct iot_verdict v = {0};
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (own < 0 || lseek(own, 0, SEEK_SET) < 0) {
		r = -errno;
		if (own >= 0)
			close(own);
		return iot_error_set(err, r, "%s: %s", name, strerror(-r));
	}
	r = iot_segment_open_fd(own, name, &s, err);
	if (r < 0)
		return r;
	r = iot_verify_segment(s, &v, err);
	if (r < 0)
		return r;
	if (iot_segment_state(s) != IOT_SEGMENT_SEALED || v.code >= IOT_VERDICT_TORN)
		return iot_error_set(err, -EBADMSG, "%s: %s", iot_verdict_name(v.code),
				     v.n_reasons ? v.reasons[0] : iot_segment_state_text(s));
	return 0;
}

int archive_may_replace(int fd, const char *name, const struct archive_item *item,
			struct iot_error *err)
{
	struct iot_error why = {0};
	char digest[IOT_DIGEST_LEN + 1];
	uint64_t bytes = 0;
	int r = iot_digest_fd(fd, digest, &bytes);

	if (r < 0)
		return iot_error_set(err, r, "%s: %s", name, strerror(-r));
	if (bytes == item->bytes && strcmp(digest, item->digest) == 0)
		return 0;
	r = archive_whole(fd, name, &why);
	if (r == -EBADMSG)
		return 0;
	if (r < 0)
		return iot_error_set(err, r, "%s", why.text);
	return iot_error_set(err, -EEXIST, "%s: another segment is there, and whole: not replaced",
			     name);
}
