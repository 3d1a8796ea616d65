// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-follow.c - what is recorded, as it gets into the files.
 *
 * The files are read as they grow (follow.h): a look at them where inotify or a second's time says so, and
 * nothing that the daemon would have to wait for.
 *
 * stdout has records and nothing else, in the order of the blocks and by time within each. stderr has what
 * cat says at its end: of each segment, when it is sealed, what is missing of it; of the last one, that
 * nobody knows yet.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>

#include "daemon/ctl/follow.h"
#include "daemon/ctl/live.h"
#include "format/render.h"

#define LOOK_MS 1000	 /* without news from inotify, and whether the daemon lives */
#define PAUSE_MS 50	 /* news are taken together for so long */
#define PATIENCE_MS 1000 /* with a reader that does not read, once asked to end */
#define ROOM_BYTES ((size_t)256 * 1024)

struct follow {
	struct follow_files files; /* first: calls get it */
	const struct ctl *c;
	int inotify_fd;
	int signal_fd;
	int error; /* of the output */
	char *dir; /* that the daemon named, or NULL */
	size_t len;
	char room[ROOM_BYTES];
};

static void follow_free(struct follow **f)
{
	if (!*f)
		return;
	follow_files_done(&(*f)->files);
	if ((*f)->inotify_fd >= 0)
		close((*f)->inotify_fd);
	if ((*f)->signal_fd >= 0)
		close((*f)->signal_fd);
	free((*f)->dir);
	free(*f);
}

/* ---- output ---- */

/*
 * Not more at once than a pipe takes without blocking when it says that it is ready: so an end that is asked
 * for is heard. The lines that are rendered still go out, if the reader takes them.
 */
static void put_out(struct follow *f)
{
	struct pollfd fds[] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
			       {.fd = f->signal_fd, .events = POLLIN}};
	size_t done = 0;

	while (done < f->len && !f->error) {
		size_t part = IOT_MIN(f->len - done, (size_t)PIPE_BUF);
		ssize_t n;
		int r = poll(fds, f->files.stop ? 1 : 2, f->files.stop ? PATIENCE_MS : -1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			break;
		if (!f->files.stop && fds[1].revents) {
			f->files.stop = true;
			continue;
		}
		n = write(STDOUT_FILENO, f->room + done, part);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			f->error = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	f->files.stop |= f->error != 0;
	f->len = 0;
}

static char *room(struct follow *f)
{
	if (ROOM_BYTES - f->len < IOT_RENDER_MAX)
		put_out(f);
	return f->room + f->len;
}

/* ---- records ---- */

struct row {
	uint64_t ns;
	uint32_t i;
};

static int cmp_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->ns != y->ns ? iot_cmp_u64(x->ns, y->ns) : (x->i > y->i) - (x->i < y->i);
}

static void print_request(struct follow *f, struct iot_segment *s, const struct iot_request *r,
			  struct ctl_naming *naming)
{
	if (!iot_filter_match(&f->c->filter, s, r))
		return;
	ctl_naming_set(naming, s, r);
	f->len += f->c->json ? iot_render_json(room(f), r, naming->render)
			     : iot_render_text(room(f), r, naming->render);
}

static void print_packet(struct follow *f, struct iot_segment *s, const struct iot_packet *p,
			 struct ctl_packet_naming *naming)
{
	if (!iot_filter_match_packet(&f->c->filter, s, p))
		return;
	ctl_packet_naming_set(naming, s, p);
	f->len += f->c->json ? iot_render_packet_json(room(f), p, naming->render)
			     : iot_render_packet_text(room(f), p, naming->render);
}

static int print_block(struct follow_files *files, struct iot_segment *s, const struct iot_batch *b,
		       enum iot_stream stream)
{
	struct follow *f = (struct follow *)files;
	_cleanup_free_ struct row *rows = calloc(iot_batch_count(b) + 1U, sizeof(*rows));
	struct iot_render_packet packet_render = {0};
	struct ctl_packet_naming packet_naming = {.render = &packet_render};
	struct iot_render render = {0};
	_cleanup_free_ struct ctl_naming *naming = calloc(1, sizeof(*naming));
	struct iot_request r;
	struct iot_packet p;
	uint32_t n = iot_batch_count(b);

	if (!rows || !naming)
		return -ENOMEM;
	naming->render = &render;
	for (uint32_t i = 0; i < n; i++) {
		if (stream == IOT_STREAM_PACKET)
			iot_batch_get_packet(b, i, &p);
		else
			iot_batch_get(b, i, &r);
		rows[i] = (struct row){stream == IOT_STREAM_PACKET ? p.ts_ns : r.complete_ns, i};
	}
	qsort(rows, n, sizeof(*rows), cmp_row);
	for (uint32_t i = 0; i < n && !f->files.stop; i++) {
		if (stream == IOT_STREAM_PACKET) {
			iot_batch_get_packet(b, rows[i].i, &p);
			print_packet(f, s, &p, &packet_naming);
		} else {
			iot_batch_get(b, rows[i].i, &r);
			print_request(f, s, &r, naming);
		}
	}
	return 0;
}

/* ---- segments ---- */

static void say(struct follow *f, const struct follow_position *at, const char *fmt, ...)
	IOT_PRINTF(3, 4);
static void say(struct follow *f, const struct follow_position *at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	/* What was printed before comes before, also when both go to one place. */
	put_out(f);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)ctl_fail(CTL_OK, "%s segment %llu%s", iot_stream_name(at->stream),
		       (unsigned long long)at->seq, text);
}

/* What a footer says is missing. */
static void say_sealed(struct follow_files *files, const struct follow_position *at,
		       struct iot_segment *s)
{
	struct follow *f = (struct follow *)files;
	const struct iot_footer *footer = iot_segment_footer(s);
	uint64_t since_ns = f->c->filter.since_ns;
	char text[2 * sizeof(((struct iot_verdict *)NULL)->reasons[0]) + 1];
	struct iot_verdict v;

	if (since_ns && iot_segment_realtime_ns(s, footer->epoch_last_ns) < since_ns)
		return;
	iot_verdict_footer(iot_segment_info(s), footer, &v);
	if (v.code == IOT_VERDICT_COMPLETE)
		return;
	say(f, at, " is sealed: %s", iot_verdict_name(v.code));
	for (size_t i = 0; i < v.n_reasons; i++)
		say(f, at, ": %s", ctl_printable(v.reasons[i], text, sizeof(text)));
	if (v.n_reasons_dropped)
		say(f, at, ": and %zu more reasons", v.n_reasons_dropped);
}

/* ---- the verb ---- */

static void say_missing(struct follow_files *files, const struct follow_position *at,
			const char *what)
{
	say((struct follow *)files, at, "%s", what);
}

static const struct follow_calls calls = {
	.block = print_block, .sealed = say_sealed, .missing = say_missing};

static int open_follow(struct follow *f)
{
	sigset_t set;
	int r;

	f->files.calls = &calls;
	f->files.since_ns = f->c->filter.since_ns;
	r = follow_files_open(&f->files, f->c->stream);
	if (r < 0)
		return r;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	f->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f->signal_fd < 0)
		return -errno;
	/* Where there is no inotify there is the clock. */
	f->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->inotify_fd >= 0)
		(void)inotify_add_watch(f->inotify_fd, f->files.dir,
					IN_MODIFY | IN_CREATE | IN_MOVED_TO);
	return 0;
}

static void wait_for_news(struct follow *f)
{
	/* A pipe whose reader is gone says so without being written to. */
	struct pollfd fds[] = {{.fd = f->signal_fd, .events = POLLIN},
			       {.fd = STDOUT_FILENO},
			       {.fd = f->inotify_fd, .events = POLLIN}};
	char events[4096];

	if (poll(fds, 3, LOOK_MS) > 0 && fds[2].revents) {
		(void)poll(fds, 2, PAUSE_MS);
		while (read(f->inotify_fd, events, sizeof(events)) > 0)
			;
	}
	f->files.stop |= fds[0].revents || fds[1].revents;
}

static int follow(struct follow *f)
{
	char writer[CTL_HUMAN_MAX];
	bool alive = true;
	int r = 0;

	for (;;) {
		/* Asked before the files are read: what it wrote until then is in them. */
		alive = ctl_directory_writer(f->files.dir, writer) &&
			strcmp(writer, f->files.capture) == 0;
		r = follow_files_read(&f->files);
		put_out(f);
		if (r < 0 || f->files.stop || !alive)
			break;
		wait_for_news(f);
	}
	for (size_t i = 0; r == 0 && i < f->files.n_streams; i++)
		if (f->files.at[i].unsealed)
			say(f, &f->files.at[i], " is %s: what is missing of it is not known",
			    alive ? "still being recorded" : "not sealed");
	if (!alive && r == 0)
		(void)ctl_fail(CTL_OK, "the daemon has stopped");
	return r;
}

int verb_follow(struct ctl *c, int argc, char **argv)
{
	_cleanup_(follow_free) struct follow *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return ctl_fail(CTL_ERROR, "out of memory");
	f->c = c;
	f->signal_fd = f->inotify_fd = -1;
	if (argc > 2)
		return ctl_fail(CTL_USAGE, "follow takes one directory");
	/* Who names a daemon by its socket means that one. */
	r = argc == 1 && c->socket ? live_store_dir(c, &f->dir) : CTL_OK;
	if (r != CTL_OK)
		return r;
	f->files.dir = argc > 1 ? argv[1] : f->dir ? f->dir : ctl_state_dir();
	if (c->filter.until_ns)
		return ctl_fail(CTL_USAGE, "--until does not go with follow, which has no end; cat "
					   "takes it");
	if (access(f->files.dir, R_OK | X_OK) < 0)
		return ctl_fail(errno == EACCES ? CTL_DENIED : CTL_ERROR, "%s: %s", f->files.dir,
				strerror(errno));
	if (!ctl_directory_writer(f->files.dir, f->files.capture))
		return ctl_fail(CTL_NO_DAEMON, "no daemon records into %s", f->files.dir);
	r = open_follow(f);
	if (r == 0 && c->stream && !f->files.at[0].seq)
		return ctl_fail(CTL_ERROR, "the daemon does not record the %s stream",
				iot_stream_name(c->stream));
	if (r == 0)
		r = follow(f);
	if (r < 0)
		return ctl_fail(r == -EACCES || r == -EPERM ? CTL_DENIED : CTL_ERROR, "%s",
				f->files.err.text[0] ? f->files.err.text : strerror(-r));
	if (f->error)
		return ctl_output_result(f->error, CTL_STDOUT);
	return f->files.incomplete ? CTL_ERROR : CTL_OK;
}
