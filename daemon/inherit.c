// SPDX-License-Identifier: BSD-2-Clause
/* inherit.c - see inherit.h. */
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "daemon/crash-point.h"
#include "daemon/inherit.h"
#include "daemon/worker.h"

/* A capture whose adoption fails again and again is given up: better a gap than no recorder. */
#define MAX_ATTEMPTS 20U

static enum iot_stream stream_of(size_t i)
{
	return i == 0 ? IOT_STREAM_BLOCK : IOT_STREAM_PACKET;
}

static void prefix_of(char *buf, size_t size, enum iot_stream stream)
{
	snprintf(buf, size, "%s.%016llx.", iot_stream_name(stream),
		 (unsigned long long)adopt_wire());
}

static void name_of(char *buf, size_t size, enum iot_stream stream, const char *what)
{
	snprintf(buf, size, "%s.%016llx.%016llx.%s", iot_stream_name(stream),
		 (unsigned long long)adopt_wire(), (unsigned long long)probes_object_hash(stream),
		 what);
}

static uint64_t hash_list(uint64_t hash, const struct iot_strv *v)
{
	hash = adopt_hash(hash, &v->n, sizeof(v->n));
	for (size_t i = 0; i < v->n; i++)
		hash = adopt_hash(hash, v->items[i], strlen(v->items[i]) + 1);
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return text ? adopt_hash(hash, text, strlen(text) + 1) : hash;
}

static uint64_t hash_sizes(uint64_t hash, const struct iot_stream_config *c)
{
	const uint64_t sizes[] = {
		c->enabled,	   c->ring_size_bytes,	 c->ring_cpus,
		c->ledger_entries, c->in_flight_entries,
	};

	return c->enabled ? adopt_hash(hash, sizes, sizeof(sizes)) : adopt_hash(hash, sizes, 8);
}

uint64_t inherit_config_hash(const struct iot_config *c)
{
	const uint64_t swap = (uint64_t)c->block.swap;
	const uint64_t packets[] = {
		c->packets.sample,   c->packets.drops_per_s,	     c->packets.gro,
		c->packets.qdisc,    (uint64_t)c->packets.functions, c->packets.self_test,
		c->packets.programs,
	};
	uint64_t hash = hash_sizes(ADOPT_HASH_INIT, &c->block);

	hash = adopt_hash(hash, &swap, sizeof(swap));
	hash = hash_list(hash, &c->devices.include);
	hash = hash_list(hash, &c->devices.exclude);
	hash = hash_text(hash, getenv("IOTRACED_WITHOUT"));
	hash = hash_sizes(hash, &c->packet);
	if (c->packet.enabled) {
		hash = adopt_hash(hash, packets, sizeof(packets));
		hash = hash_text(hash, c->packets.filter);
	}
	return hash ? hash : 1;
}

/* The descriptors with that prefix, by the rest of their names. */
static int gather(struct inherit *in, struct inherit_stream *of, const char *prefix)
{
	size_t len = strlen(prefix);

	of->fds = calloc(in->store.n + 1, sizeof(*of->fds));
	if (!of->fds)
		return -ENOMEM;
	for (size_t i = 0; i < in->store.n; i++) {
		const struct fdstore_fd *f = &in->store.fds[i];
		struct probes_fd *to = &of->fds[of->n_fds];

		if (f->fd < 0 || strncmp(f->name, prefix, len) != 0 ||
		    strlen(f->name + len) >= sizeof(to->name))
			continue;
		snprintf(to->name, sizeof(to->name), "%s", f->name + len);
		to->fd = f->fd;
		of->n_fds++;
	}
	return 0;
}

/* The state, whatever programs it is of; *ret_prefix what its companions' names begin with. */
static struct fdstore_fd *find_state(struct inherit *in, enum iot_stream stream, char *ret_prefix,
				     size_t size)
{
	static const char suffix[] = "state";
	char wire[64];

	prefix_of(wire, sizeof(wire), stream);
	for (size_t i = 0; i < in->store.n; i++) {
		struct fdstore_fd *f = &in->store.fds[i];
		size_t len = strlen(f->name), cut = sizeof(suffix) - 1;

		if (strncmp(f->name, wire, strlen(wire)) != 0 || len < cut ||
		    strcmp(f->name + len - cut, suffix) != 0)
			continue;
		snprintf(ret_prefix, size, "%.*s", (int)(len - cut), f->name);
		return f;
	}
	return NULL;
}

/* NULL: there is none of this stream, or it was taken. */
static const char *take_stream(struct inherit *in, size_t i)
{
	struct inherit_stream *s = &in->streams[i];
	char prefix[FDSTORE_NAME_MAX];
	struct fdstore_fd *f = find_state(in, stream_of(i), prefix, sizeof(prefix));
	int fd;

	if (!f)
		return NULL;
	fd = f->fd;
	f->fd = -EBADF;
	if (adopt_open(fd, &s->adopt) < 0)
		return "the state that was kept for us cannot be read";
	return gather(in, s, prefix) < 0 ? "out of memory" : NULL;
}

/* Why the capture can only be finished; "": it can go on. */
static const char *obstacle(const struct adopt_state *s, enum iot_stream stream,
			    const struct iot_config *c)
{
	if (s->object != probes_object_hash(stream))
		return "this build has other programs";
	if (s->config != inherit_config_hash(c))
		return "the configuration has changed";
	return s->active.gate ? "" : "its daemon was stopping";
}

/* Of one stream of the capture. *ret_stop: nothing can be done with it; else *ret_why may say why it cannot go on. */
static void judge_stream(struct inherit *in, size_t i, const struct iot_config *c, uint32_t streams,
			 const char **ret_stop, const char **ret_why)
{
	struct inherit_stream *is = &in->streams[i];
	struct adopt_state *s = adopt_edit(is->adopt);
	const char *why;

	is->over = s->active.epoch && s->sealed >= s->active.epoch;
	if (s->streams != streams)
		*ret_stop = "not all that was kept for us is there";
	else if (s->dead)
		*ret_stop = "the capture before had ended";
	else if (!s->attach_ns)
		*ret_stop = "the capture before had no segment yet";
	else if (s->attempts++ >= MAX_ATTEMPTS)
		*ret_stop = "too many attempts to go on with the capture before";
	why = is->over ? "its daemon was stopping" : obstacle(s, stream_of(i), c);
	if (*why)
		*ret_why = why;
	adopt_commit(is->adopt);
}

static int find_exe(const struct inherit *in)
{
	for (size_t i = 0; i < in->store.n; i++) {
		const struct fdstore_fd *f = &in->store.fds[i];
		size_t len = strlen(f->name);

		if (len > 4 && strcmp(f->name + len - 4, ".exe") == 0)
			return f->fd;
	}
	return -EBADF;
}

static bool has_other_programs(const struct inherit *in)
{
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		struct adopt *a = in->streams[i].adopt;
		bool other;

		if (!a)
			continue;
		other = adopt_edit(a)->object != probes_object_hash(stream_of(i));
		adopt_commit(a);
		if (other)
			return true;
	}
	return false;
}

static const char *judge(struct inherit *in, const struct iot_config *c)
{
	const char *stop = NULL, *why = "";
	uint32_t streams = 0;
	bool over = true;

	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		const char *failed = take_stream(in, i);

		if (failed)
			return failed;
		if (in->streams[i].adopt)
			streams |= 1U << stream_of(i);
	}
	if (in->exe >= 0 && (!streams || has_other_programs(in))) {
		in->how = INHERIT_ELSEWHERE;
		return streams ? "this build has other programs"
			       : "this build reads another layout";
	}
	if (!streams)
		return "what was kept for us is of another build, or not whole";
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		if (!in->streams[i].adopt)
			continue;
		judge_stream(in, i, c, streams, &stop, &why);
		over &= in->streams[i].over;
	}
	if (!stop && over)
		stop = "the capture before had ended";
	if (stop)
		return stop;
	in->how = *why ? INHERIT_FINISH : INHERIT_CONTINUE;
	return why;
}

void inherit_look(struct inherit *in, const struct iot_config *c)
{
	*in = (struct inherit){.exe = -EBADF};
	if (fdstore_take(&in->store) < 0)
		snprintf(in->why, sizeof(in->why), "not all that was kept for us was taken");
	if (in->store.n == 0)
		return;
	in->exe = find_exe(in);
	snprintf(in->why, sizeof(in->why), "%s", judge(in, c));
	if (in->how == INHERIT_NOTHING)
		inherit_drop(in);
}

static void release(struct inherit *in)
{
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		struct inherit_stream *s = &in->streams[i];

		s->adopt = adopt_free(s->adopt);
		free(s->fds);
		*s = (struct inherit_stream){};
	}
}

void inherit_drop(struct inherit *in)
{
	fdstore_clear(&in->store);
	release(in);
	in->how = INHERIT_NOTHING;
	in->exe = -EBADF;
}

static void run_exe(int fd)
{
	static char name[] = "iotraced", option[] = "--finish", empty[] = "";
	char *const argv[] = {name, option, NULL};
	const char *e = getenv("LISTEN_FDS");
	uint64_t n = 0;
	char number[32];

	if (!e || iot_parse_u64(e, &n) < 0 || n > INT_MAX - 3)
		_exit(EX_OSERR);
	/* All of them, at the numbers that they came at. */
	for (int i = 3; i < 3 + (int)n; i++)
		(void)fcntl(i, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
	/* The service manager hears of it from us. */
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	(void)execveat(fd, empty, argv, environ, AT_EMPTY_PATH);
	_exit(EX_OSERR);
}

int inherit_finish_elsewhere(const struct inherit *in)
{
	int status;
	pid_t pid;

	/* It is another process that holds them now: what we have of the state is old from here on. */
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_exe(in->exe);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

int inherit_begin(struct inherit *in, const struct iot_config *c, const uint8_t capture_id[16])
{
	const bool enabled[INHERIT_STREAMS] = {c->block.enabled, c->packet.enabled};
	uint32_t streams = 0;

	/*
	 * What observes others' programs is not handed on: these come and go while nobody looks, and who has
	 * our links would hold them.
	 */
	if (!fdstore_exists() || (c->packet.enabled && c->packets.programs))
		return 0;
	for (size_t i = 0; i < INHERIT_STREAMS; i++)
		if (enabled[i])
			streams |= 1U << stream_of(i);
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		struct adopt_state *s;
		int r;

		if (!enabled[i])
			continue;
		r = adopt_new(&in->streams[i].adopt);
		if (r < 0) {
			release(in);
			return r;
		}
		s = adopt_edit(in->streams[i].adopt);
		memcpy(s->capture_id, capture_id, sizeof(s->capture_id));
		s->streams = streams;
		if (strlen(c->state_dir) < sizeof(s->state_dir))
			snprintf(s->state_dir, sizeof(s->state_dir), "%s", c->state_dir);
		s->object = probes_object_hash(stream_of(i));
		s->config = inherit_config_hash(c);
		adopt_commit(in->streams[i].adopt);
	}
	return 0;
}

static struct adopt *any_state(const struct inherit *in)
{
	return in->streams[0].adopt ? in->streams[0].adopt : in->streams[1].adopt;
}

void inherit_state_dir(const struct inherit *in, char *ret, size_t size)
{
	struct adopt *any = any_state(in);

	snprintf(ret, size, "%.*s", (int)sizeof(((struct adopt_state *)0)->state_dir) - 1,
		 adopt_edit(any)->state_dir);
	adopt_commit(any);
}

void inherit_capture(const struct inherit *in, uint8_t ret_id[16])
{
	struct adopt *any = any_state(in);

	memcpy(ret_id, adopt_edit(any)->capture_id, 16);
	adopt_commit(any);
}

void inherit_went_on(struct inherit *in)
{
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		if (!in->streams[i].adopt)
			continue;
		adopt_edit(in->streams[i].adopt)->attempts = 0;
		adopt_commit(in->streams[i].adopt);
	}
}

void inherit_set_dead(struct inherit *in)
{
	for (size_t i = 0; i < INHERIT_STREAMS; i++)
		adopt_set_dead(in->streams[i].adopt);
}

void inherit_set_config(struct inherit *in, const struct iot_config *c)
{
	for (size_t i = 0; i < INHERIT_STREAMS; i++)
		adopt_set_config(in->streams[i].adopt, c ? inherit_config_hash(c) : 0);
}

int inherit_probes(struct inherit *in, const struct iot_config *c,
		   struct probes *ret[INHERIT_STREAMS], struct iot_error *err)
{
	struct probes *p[INHERIT_STREAMS] = {};
	uint32_t without;
	int r;

	r = probes_without_parse(getenv("IOTRACED_WITHOUT"), &without);
	if (r < 0)
		return iot_error_set(err, r, "IOTRACED_WITHOUT: not a list of what it knows");
	for (size_t i = 0; r >= 0 && i < INHERIT_STREAMS; i++) {
		const struct inherit_stream *s = &in->streams[i];
		const struct probes_options po = {
			.kind = stream_of(i),
			.stream = i == 0 ? &c->block : &c->packet,
			.devices = &c->devices,
			.without = without,
			.adopt = s->adopt,
		};

		if (s->adopt && !s->over)
			r = probes_adopt(&po, s->fds, s->n_fds, &p[i], err);
	}
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		if (r >= 0)
			ret[i] = p[i];
		else
			probes_close(p[i]);
	}
	return r;
}

static int finish_stream(struct inherit *in, size_t i, const struct iot_config *c,
			 struct store *store, struct probes *probes, char *ret_name, size_t size,
			 struct iot_error *err)
{
	const struct worker_options wo = {
		.config = c,
		.probes = probes,
		.store = store,
		.stream = stream_of(i),
		.adopt = in->streams[i].adopt,
		.resume = true,
	};
	struct worker *w = NULL;
	uint64_t ns;
	int r;

	r = probes_gate(probes, false, &ns);
	if (r < 0)
		(void)iot_error_set(err, r, "the gate cannot be closed: %s", strerror(-r));
	probes_detach(probes);
	if (r >= 0)
		r = worker_start(&wo, &w, err);
	if (r >= 0) {
		r = worker_stop(w, ret_name, size);
		if (r < 0)
			(void)iot_error_set(err, r, "sealing: %s", strerror(-r));
	}
	worker_free(w);
	probes_close(probes);
	return r;
}

int inherit_finish(struct inherit *in, const struct iot_config *c, struct store *store,
		   struct probes *probes[INHERIT_STREAMS], char *ret_name, size_t size,
		   struct iot_error *err)
{
	size_t n = 0;
	int r = 0;

	*ret_name = '\0';
	/* Each for itself: what keeps one from being sealed is no reason to tear the other. */
	for (size_t i = 0; i < INHERIT_STREAMS; i++) {
		char name[128] = "";
		int q;

		if (!probes[i])
			continue;
		q = finish_stream(in, i, c, store, probes[i], name, sizeof(name), err);
		probes[i] = NULL;
		if (q < 0)
			r = q;
		else if (n < size)
			n += (size_t)snprintf(ret_name + n, size - n, "%s%s", n ? ", " : "", name);
	}
	return r;
}

static int leave_stream(struct inherit *in, size_t i, struct probes *p)
{
	_cleanup_free_ struct probes_fd *fds = NULL;
	char name[FDSTORE_NAME_MAX];
	size_t n = 0;
	int r;

	r = probes_fds(p, &fds, &n);
	for (size_t k = 0; r >= 0 && k < n; k++) {
		name_of(name, sizeof(name), stream_of(i), fds[k].name);
		r = fdstore_put(&in->store, name, fds[k].fd);
	}
	return r;
}

/* Of the first stream of the capture, since names begin with one. */
static int leave_exe(struct inherit *in)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char name[FDSTORE_NAME_MAX];
	int r;

	if (fd < 0)
		return -errno;
	name_of(name, sizeof(name), stream_of(in->streams[0].adopt ? 0 : 1), "exe");
	r = fdstore_put(&in->store, name, fd);
	return r < 0 ? r : 0;
}

int inherit_leave(struct inherit *in, struct probes *const p[INHERIT_STREAMS])
{
	char name[FDSTORE_NAME_MAX];
	int r = leave_exe(in);

	for (size_t i = 0; r >= 0 && i < INHERIT_STREAMS; i++)
		if (in->streams[i].adopt)
			r = leave_stream(in, i, p[i]);
	if (r < 0)
		return r;
	crash_point("left-objects");
	/* Last: whoever has them has everything. */
	for (size_t i = 0; r >= 0 && i < INHERIT_STREAMS; i++) {
		if (!in->streams[i].adopt)
			continue;
		name_of(name, sizeof(name), stream_of(i), "state");
		r = fdstore_put(&in->store, name, adopt_fd(in->streams[i].adopt));
		crash_point("left-state");
	}
	return r < 0 ? r : 0;
}

void inherit_done(struct inherit *in)
{
	fdstore_done(&in->store);
	release(in);
}
