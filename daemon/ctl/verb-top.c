// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-top.c - what happens now, window by window, in a terminal: read from the files as they grow (follow.h), so that
 * collection waits for nobody, and the daemon's own word about losses, asked once a window.
 *
 * On a terminal the screen is painted over, its lines cut to the size that it has by then; keys: q ends, space
 * holds. Anywhere else each window is printed below the last one, plain; with --json, as an object a line.
 */
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>

#include "daemon/ctl/follow.h"
#include "daemon/ctl/top-view.h"

#define LOOK_MS 500

struct viewer {
	struct follow_files files; /* first: calls get it */
	struct ctl *c;
	struct top top;
	struct top_names names;
	struct termios saved;
	bool terminal; /* painted over */
	bool keys;     /* stdin is one, too */
	bool held;
	bool stop;
	int signal_fd;
	char selected_by[128]; /* the segment whose selection is known */
	size_t n_shown;
	char *frame; /* the last one, for a new size */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* ---- records ---- */

static int add_block(struct follow_files *f, struct iot_segment *s, const struct iot_batch *b,
		     enum iot_stream stream)
{
	struct viewer *v = (struct viewer *)f;
	const struct iot_filter *filter = &v->c->filter;
	char name[96], number[24];
	struct iot_request r;
	struct iot_packet p;
	int q = 0;

	for (uint32_t i = 0; q == 0 && i < iot_batch_count(b); i++) {
		if (stream == IOT_STREAM_PACKET) {
			const char *reason = NULL;

			iot_batch_get_packet(b, i, &p);
			if (!iot_filter_match_packet(filter, s, &p))
				continue;
			if (p.probe == IOT_PROBE_KFREE_SKB) {
				snprintf(number, sizeof(number), "%d", p.code);
				reason = ctl_drop_reason(s, p.code);
				reason = reason ? reason : number;
			}
			top_add_packet(&v->top, p.ts_ns, reason);
			continue;
		}
		iot_batch_get(b, i, &r);
		if (!iot_filter_match(filter, s, &r))
			continue;
		iot_filter_share(filter, &r);
		q = top_add(&v->top, iot_segment_info(s),
			    top_disk_name(s, r.dev, name, sizeof(name)), &r);
	}
	return q;
}

/* Shown with the next window. */
static void note_missing(struct follow_files *f, const struct follow_position *at, const char *what)
{
	struct viewer *v = (struct viewer *)f;

	snprintf(v->names.missing, sizeof(v->names.missing), "%s segment %llu%s",
		 iot_stream_name(at->stream), (unsigned long long)at->seq, what);
}

static const struct follow_calls calls = {.block = add_block, .missing = note_missing};

/* ---- the terminal ---- */

/* A terminal that is gone is noticed by the next frame. */
static void put_codes(const char *codes)
{
	if (iot_write_all(STDOUT_FILENO, codes, strlen(codes)) < 0)
		return;
}

static void terminal_begin(struct viewer *v)
{
	v->terminal = !v->c->json && isatty(STDOUT_FILENO);
	if (!v->terminal)
		return;
	v->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &v->saved) == 0;
	if (v->keys) {
		struct termios raw = v->saved;

		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	/* The other screen, without a cursor. */
	put_codes("\033[?1049h\033[?25l");
}

static void terminal_end(struct viewer *v)
{
	if (!v->terminal)
		return;
	put_codes("\033[?25h\033[?1049l");
	if (v->keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &v->saved);
	v->terminal = false;
}

/* One line, cut to width characters; what sets colours has none. */
static void put_line(FILE *f, const char *line, size_t len, size_t width)
{
	bool escape = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		escape |= c == 033;
		if (!escape && (c & 0xc0) != 0x80 && n++ >= width)
			continue;
		if (!escape && (c & 0xc0) == 0x80 && n > width)
			continue;
		fputc(c, f);
		escape &= c != 'm';
	}
}

static int paint(struct viewer *v)
{
	_cleanup_free_ char *text = NULL;
	struct winsize size = {0};
	size_t len = 0, row = 0;
	const char *line = v->frame;
	FILE *f;

	if (!line)
		return 0;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	f = open_memstream(&text, &len);
	if (!f)
		return -ENOMEM;
	fputs("\033[H", f);
	for (; *line && row + 1 < (size.ws_row ? size.ws_row : 24U); row++) {
		size_t n = strcspn(line, "\n");

		put_line(f, line, n, size.ws_col ? size.ws_col : 80);
		fputs("\033[0m\033[K\r\n", f);
		line += n + (line[n] == '\n');
	}
	fputs(v->held ? "Held; space goes on, q ends\033[K\033[J"
		      : "q ends, space holds\033[K\033[J",
	      f);
	if (fclose(f) != 0)
		return -ENOMEM;
	return iot_write_all(STDOUT_FILENO, text, len);
}

/* ---- windows ---- */

/* --dev may name one, and then no disk is meant. */
static bool is_interface(const char *dev)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s", dev);
	return !strchr(dev, '/') && access(path, F_OK) == 0;
}

/* Nothing comes of a disk that the configuration leaves out: the header of the segment being written tells. */
static void check_selected(struct viewer *v, struct json_object *status)
{
	struct json_object *streams = live_object(status, "streams");
	const char *dev = v->c->filter.dev;

	for (size_t i = 0; i < live_n(streams); i++) {
		struct json_object *o = json_object_array_get_idx(streams, i);
		const char *stream = live_str(o, "name"),
			   *name = live_str(live_object(o, "segment"), "name");
		_cleanup_(iot_segment_closep) struct iot_segment *s = NULL;
		_cleanup_free_ char *path = NULL;

		if (!stream || strcmp(stream, iot_stream_name(IOT_STREAM_BLOCK)) != 0 || !name ||
		    strcmp(name, v->selected_by) == 0)
			continue;
		if (asprintf(&path, "%s/%s", v->files.dir, name) < 0)
			return;
		/* Sealed meanwhile: the next window has its successor. */
		if (iot_segment_open(path, &s, NULL) < 0)
			return;
		snprintf(v->selected_by, sizeof(v->selected_by), "%s", name);
		v->names.left_out[0] = '\0';
		snprintf(v->names.selected, sizeof(v->names.selected), "%.127s",
			 strcmp(iot_segment_info(s)->selection, "all") == 0
				 ? ""
				 : iot_segment_info(s)->selection);
		if (*dev && !is_interface(dev) && !ctl_selects(iot_segment_info(s), NULL, dev))
			snprintf(v->names.left_out, sizeof(v->names.left_out),
				 "%.64s may be left out: what is recorded is \"%.96s\"", dev,
				 iot_segment_info(s)->selection);
	}
}

static int show(struct viewer *v, struct top_window *w)
{
	struct json_object *reply = NULL, *flight = NULL;
	struct top_frame frame = {.window = w,
				  .length_ns = v->top.length_ns,
				  .names = &v->names,
				  .color = !v->c->json && ctl_color_enabled(v->c)};
	size_t len = 0;
	FILE *f;
	int r;

	r = ctl_call(v->c, CONTROL_INTERFACE ".Status", NULL, &reply);
	if (r == CTL_OK)
		r = ctl_call(v->c, CONTROL_INTERFACE ".InFlight", NULL, &flight);
	if (r != CTL_OK) {
		json_object_put(reply);
		return r;
	}
	frame.status = live_object(reply, "status");
	check_selected(v, frame.status);
	frame.in_flight_known = live_u64(flight, "total", &frame.in_flight);
	frame.to_ns = (v->top.next + 1) * v->top.length_ns + now_ns(CLOCK_REALTIME) -
		      now_ns(CLOCK_MONOTONIC);
	free(v->frame);
	v->frame = NULL;
	f = open_memstream(&v->frame, &len);
	r = f ? 0 : -ENOMEM;
	if (r == 0)
		r = v->c->json ? top_print_json(&frame, f) : top_print(&frame, f);
	if (f && fclose(f) != 0)
		r = -ENOMEM;
	json_object_put(reply);
	json_object_put(flight);
	if (r == 0 && v->terminal)
		r = paint(v);
	else if (r == 0)
		r = iot_write_all(STDOUT_FILENO, v->frame, len);
	v->names.missing[0] = '\0';
	v->stop |= ++v->n_shown == v->c->count;
	if (r == -EPIPE) {
		v->stop = true;
		r = 0;
	}
	return r < 0 ? ctl_fail(CTL_ERROR, "%s", strerror(-r)) : CTL_OK;
}

static void take_keys(struct viewer *v)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0)
		v->keys = false;
	for (ssize_t i = 0; i < n; i++) {
		v->stop |= keys[i] == 'q' || keys[i] == 'Q';
		v->held ^= keys[i] == ' ';
	}
}

/* Until the next look at the files; false: nothing else happened. */
static bool wait_a_little(struct viewer *v)
{
	struct pollfd fds[] = {{.fd = v->signal_fd, .events = POLLIN},
			       {.fd = v->keys ? STDIN_FILENO : -1, .events = POLLIN},
			       {.fd = STDOUT_FILENO}};
	struct signalfd_siginfo info;
	bool again = false;

	if (poll(fds, 3, LOOK_MS) <= 0)
		return false;
	v->stop |= fds[2].revents != 0;
	if (fds[1].revents) {
		take_keys(v);
		again = true;
	}
	while (read(v->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		v->stop |= info.ssi_signo != SIGWINCH;
		again |= info.ssi_signo == SIGWINCH;
	}
	return again;
}

static int watch(struct viewer *v)
{
	char writer[CTL_HUMAN_MAX];
	int r, code = CTL_OK;

	while (!v->stop && code == CTL_OK) {
		struct top_window *w;

		if (wait_a_little(v) && v->terminal && paint(v) < 0)
			return ctl_fail(CTL_ERROR, "out of memory");
		/* Stopped by ^Z, or asleep: begin anew. */
		if (now_ns(CLOCK_MONOTONIC) >
		    top_next_ns(&v->top) + TOP_WINDOWS * v->top.length_ns) {
			uint64_t length_ns = v->top.length_ns;

			top_done(&v->top);
			top_init(&v->top, length_ns, now_ns(CLOCK_MONOTONIC));
		}
		r = follow_files_read(&v->files);
		if (r < 0)
			return ctl_fail(r == -EACCES ? CTL_DENIED : CTL_ERROR, "%s",
					v->files.err.text[0] ? v->files.err.text : strerror(-r));
		if (!ctl_directory_writer(v->files.dir, writer) ||
		    strcmp(writer, v->files.capture) != 0) {
			terminal_end(v);
			return ctl_fail(CTL_NO_DAEMON, "the daemon has stopped");
		}
		w = top_ready(&v->top, now_ns(CLOCK_MONOTONIC));
		if (w && !v->held)
			code = show(v, w);
		if (w)
			top_shown(&v->top);
	}
	return code;
}

/* ---- the verb ---- */

static int begin(struct viewer *v)
{
	sigset_t set;
	int r;

	r = live_store_dir(v->c, &v->names.dir);
	if (r != CTL_OK)
		return r;
	v->files.dir = v->names.dir;
	if (access(v->files.dir, R_OK | X_OK) < 0)
		return ctl_fail(errno == EACCES ? CTL_DENIED : CTL_ERROR, "%s: %s", v->files.dir,
				strerror(errno));
	if (!ctl_directory_writer(v->files.dir, v->files.capture))
		return ctl_fail(CTL_NO_DAEMON, "no daemon records into %s", v->files.dir);
	v->files.calls = &calls;
	r = follow_files_open(&v->files, 0);
	if (r < 0)
		return ctl_fail(CTL_ERROR, "%s",
				v->files.err.text[0] ? v->files.err.text : strerror(-r));
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		v->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->signal_fd < 0)
		return ctl_fail(CTL_ERROR, "%s", strerror(errno));
	(void)signal(SIGPIPE, SIG_IGN);
	top_init(&v->top, v->c->interval_ns ? v->c->interval_ns : TOP_INTERVAL_NS,
		 now_ns(CLOCK_MONOTONIC));
	return CTL_OK;
}

static void viewer_free(struct viewer **v)
{
	if (!*v)
		return;
	terminal_end(*v);
	follow_files_done(&(*v)->files);
	top_done(&(*v)->top);
	top_names_done(&(*v)->names);
	if ((*v)->signal_fd >= 0)
		close((*v)->signal_fd);
	free((*v)->frame);
	free(*v);
}

int verb_top(struct ctl *c, int argc, char **argv)
{
	_cleanup_(viewer_free) struct viewer *v = calloc(1, sizeof(*v));
	int r = live_no_operands(argc, argv);

	if (!v)
		return ctl_fail(CTL_ERROR, "out of memory");
	v->c = c;
	v->signal_fd = -1;
	if (r == CTL_OK && (c->filter.since_ns || c->filter.until_ns))
		r = ctl_fail(CTL_USAGE,
			     "top shows what happens now; --since and --until go with report");
	if (r == CTL_OK)
		r = begin(v);
	if (r != CTL_OK)
		return r;
	terminal_begin(v);
	return watch(v);
}
