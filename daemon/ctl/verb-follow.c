// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-follow.c - what is recorded, as it gets into the files.
 *
 * The daemon appends whole blocks to NAME.open, never changes a byte that it has written, and renames the file
 * to NAME.iot when its footer is in it; the next segment's file is there before. So following is reading: a
 * position per stream, a look at the file where inotify or a second's time says so, and nothing that the
 * daemon would have to wait for. A reader that is slower than the record falls behind in the files, and
 * loses only what retention deletes before it was read, which is said.
 *
 * stdout has records and nothing else, in the order of the blocks and by time within each. stderr has what
 * cat says at its end: of each segment, when it is sealed, what is missing of it; of the last one, that
 * nobody knows yet.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>

#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

#define LOOK_MS 1000	 /* without news from inotify, and whether the daemon lives */
#define PAUSE_MS 50	 /* news are taken together for so long */
#define PATIENCE_MS 1000 /* with a reader that does not read, once asked to end */
#define ROOM_BYTES ((size_t)256 * 1024)
#define N_STREAMS 2U

struct position {
	enum iot_stream stream;
	bool unsealed;	 /* the segment was there, and had no footer */
	uint64_t seq;	 /* of the segment being read; 0: none yet */
	uint64_t offset; /* of its next block */
	uint64_t size;	 /* of its file when it was looked at */
};

struct follow {
	const struct ctl *c;
	const char *dir;
	char capture[CTL_HUMAN_MAX];
	struct position at[N_STREAMS];
	size_t n_streams;
	struct iot_batch *batch[N_STREAMS];
	struct iot_error err;
	int inotify_fd;
	int signal_fd;
	bool stop;	 /* asked to, or nobody reads */
	bool incomplete; /* something is missing that the footers do not tell */
	int error;	 /* of the output */
	size_t len;
	char room[ROOM_BYTES];
};

static void follow_free(struct follow **f)
{
	if (!*f)
		return;
	for (size_t i = 0; i < N_STREAMS; i++)
		iot_batch_free((*f)->batch[i]);
	if ((*f)->inotify_fd >= 0)
		close((*f)->inotify_fd);
	if ((*f)->signal_fd >= 0)
		close((*f)->signal_fd);
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
		int r = poll(fds, f->stop ? 1 : 2, f->stop ? PATIENCE_MS : -1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			break;
		if (!f->stop && fds[1].revents) {
			f->stop = true;
			continue;
		}
		n = write(STDOUT_FILENO, f->room + done, part);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			f->error = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	f->stop |= f->error != 0;
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

static int print_block(struct follow *f, struct iot_segment *s, const struct iot_batch *b,
		       enum iot_stream stream)
{
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
	for (uint32_t i = 0; i < n && !f->stop; i++) {
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

static void say(struct follow *f, const struct position *at, const char *fmt, ...) IOT_PRINTF(3, 4);
static void say(struct follow *f, const struct position *at, const char *fmt, ...)
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
static void say_sealed(struct follow *f, const struct position *at, struct iot_segment *s)
{
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

/* -ENOENT: not there, or not any more. -EAGAIN: not yet. */
static int open_segment(struct follow *f, const struct position *at, struct iot_segment **ret)
{
	static const char *const suffixes[] = {"open", "iot"};
	int r = -ENOENT;

	/* In this order: it may be renamed in between. */
	for (size_t i = 0; i < IOT_ARRAY_SIZE(suffixes) && r == -ENOENT; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s-%s-%010llu.%s", f->dir, iot_stream_name(at->stream),
			     f->capture, (unsigned long long)at->seq, suffixes[i]) < 0)
			return -ENOMEM;
		f->err.text[0] = '\0';
		r = iot_segment_open(path, ret, &f->err);
		/* A file that is just being made has no whole header. */
		if (r == -EBADMSG && i == 0)
			r = -EAGAIN;
	}
	return r;
}

/* The first segment of a stream behind seq that is in the directory, or the last; 0 = none. */
static uint64_t find_segment(const struct follow *f, enum iot_stream stream, uint64_t seq,
			     bool last)
{
	DIR *dir = opendir(f->dir);
	const struct dirent *d;
	uint64_t found = 0;
	char prefix[64];
	size_t len;

	if (!dir)
		return 0;
	len = (size_t)snprintf(prefix, sizeof(prefix), "%s-%.32s-", iot_stream_name(stream),
			       f->capture);
	while ((d = readdir(dir))) {
		const char *digits = d->d_name + len, *dot;
		char number[24];
		uint64_t n;

		if (strncmp(d->d_name, prefix, len) != 0)
			continue;
		dot = digits + strspn(digits, "0123456789");
		snprintf(number, sizeof(number), "%.*s",
			 (int)IOT_MIN((size_t)(dot - digits), sizeof(number) - 1), digits);
		if ((strcmp(dot, ".open") != 0 && strcmp(dot, ".iot") != 0) ||
		    iot_parse_u64(number, &n) < 0 || n <= seq)
			continue;
		if (!found || (last ? n > found : n < found))
			found = n;
	}
	closedir(dir);
	return found;
}

/* All blocks that are whole, from the position on. print: or pass over them. */
static int read_blocks(struct follow *f, struct position *at, struct iot_segment *s, bool print)
{
	struct iot_batch *b = f->batch[at - f->at];
	uint64_t since_ns = f->c->filter.since_ns;
	struct iot_block_info info;
	int r;

	iot_segment_seek(s, at->offset);
	while (!f->stop) {
		r = iot_segment_next_block(s, &info, &f->err);
		if (r < 0 || r == IOT_READ_END)
			return r < 0 ? r : 0;
		/* In a file that grows: a block that is not whole yet. */
		if (r == IOT_READ_GAP && !iot_segment_footer(s))
			return 0;
		if (r == 0 && print && info.kind == iot_stream_block_kind(at->stream) &&
		    (!since_ns || iot_segment_realtime_ns(s, info.last_ns) >= since_ns)) {
			r = iot_segment_read_block(s, &info, IOT_COLS_ALL, b, NULL);
			if (r == 0)
				r = print_block(f, s, b, at->stream);
			if (r < 0 && r != -EBADMSG)
				return r;
		}
		if (r != 0) {
			f->incomplete = true;
			say(f, at, ": damaged block at offset %llu",
			    (unsigned long long)info.offset);
		}
		at->offset = info.offset + info.size;
	}
	return 0;
}

/* Retention was faster than the reader of our output. false: the segment is only not there yet. */
static bool pass_over_deleted(struct follow *f, struct position *at)
{
	uint64_t next = find_segment(f, at->stream, at->seq, false);

	if (!next)
		return false;
	if (at->seq) {
		f->incomplete = true;
		say(f, at, " to %llu: deleted before they were read", (unsigned long long)next - 1);
	}
	at->seq = next;
	at->offset = at->size = 0;
	return true;
}

/* Up to where the files of a stream go now. */
static int read_stream(struct follow *f, struct position *at, bool print)
{
	while (!f->stop) {
		_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
		int r = at->seq ? open_segment(f, at, &s) : -ENOENT;

		if (r == -ENOENT && pass_over_deleted(f, at))
			continue;
		if (r < 0)
			return r == -ENOENT || r == -EAGAIN ? 0 : r;
		at->unsealed = !iot_segment_footer(s);
		if (at->unsealed && iot_segment_size(s) == at->size)
			return 0;
		at->size = iot_segment_size(s);
		r = read_blocks(f, at, s, print);
		if (r < 0 || at->unsealed)
			return r;
		/* The next one's file was there before this one's footer, unless it is the last. */
		if (print && !f->stop)
			say_sealed(f, at, s);
		at->seq++;
		at->offset = at->size = 0;
	}
	return 0;
}

/* ---- the verb ---- */

static int open_follow(struct follow *f)
{
	enum iot_stream streams[] = {IOT_STREAM_BLOCK, IOT_STREAM_PACKET};
	sigset_t set;

	for (size_t i = 0; i < N_STREAMS; i++) {
		struct position *at = &f->at[f->n_streams];
		int r;

		if (f->c->stream && f->c->stream != streams[i])
			continue;
		r = iot_batch_new_stream(streams[i], 64, &f->batch[f->n_streams]);
		if (r < 0)
			return r;
		f->n_streams++;
		at->stream = streams[i];
		/* From now on: what is there already is passed over. */
		at->seq = find_segment(f, at->stream, 0, !f->c->filter.since_ns);
	}
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
		(void)inotify_add_watch(f->inotify_fd, f->dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
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
	f->stop |= fds[0].revents || fds[1].revents;
}

static int follow(struct follow *f)
{
	char writer[CTL_HUMAN_MAX];
	bool alive = true;
	int r = 0;

	for (size_t i = 0; !f->c->filter.since_ns && i < f->n_streams; i++) {
		r = read_stream(f, &f->at[i], false);
		if (r < 0)
			return r;
	}
	for (;;) {
		/* Asked before the files are read: what it wrote until then is in them. */
		alive = ctl_directory_writer(f->dir, writer) && strcmp(writer, f->capture) == 0;
		for (size_t i = 0; r == 0 && i < f->n_streams; i++)
			r = read_stream(f, &f->at[i], true);
		put_out(f);
		if (r < 0 || f->stop || !alive)
			break;
		wait_for_news(f);
	}
	for (size_t i = 0; r == 0 && i < f->n_streams; i++)
		if (f->at[i].unsealed)
			say(f, &f->at[i], " is %s: what is missing of it is not known",
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
	f->dir = argc > 1 ? argv[1] : ctl_state_dir();
	if (argc > 2)
		return ctl_fail(CTL_USAGE, "follow takes one directory");
	if (c->filter.until_ns)
		return ctl_fail(CTL_USAGE, "--until does not go with follow, which has no end; cat "
					   "takes it");
	if (access(f->dir, R_OK | X_OK) < 0)
		return ctl_fail(errno == EACCES ? CTL_DENIED : CTL_ERROR, "%s: %s", f->dir,
				strerror(errno));
	if (!ctl_directory_writer(f->dir, f->capture))
		return ctl_fail(CTL_NO_DAEMON, "no daemon records into %s", f->dir);
	r = open_follow(f);
	if (r == 0 && c->stream && !f->at[0].seq)
		return ctl_fail(CTL_ERROR, "the daemon does not record the %s stream",
				iot_stream_name(c->stream));
	if (r == 0)
		r = follow(f);
	if (r < 0)
		return ctl_fail(r == -EACCES || r == -EPERM ? CTL_DENIED : CTL_ERROR, "%s",
				f->err.text[0] ? f->err.text : strerror(-r));
	if (f->error)
		return ctl_output_result(f->error, CTL_STDOUT);
	return f->incomplete ? CTL_ERROR : CTL_OK;
}
