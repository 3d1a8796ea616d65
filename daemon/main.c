// SPDX-License-Identifier: BSD-2-Clause
/*
 * main.c - iotraced: arguments, configuration, preconditions, loop.
 *
 * Everything that can be refused is refused here, in an order that names the real cause first: the
 * command line, the configuration, the state directory (and whether another iotraced has it), what
 * a predecessor left torn, the kernel. Then the manager runs. Each refusal is one message and one
 * exit code (args.h). This file and the manager log; the modules below return errors.
 */
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "daemon/inherit.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/probe-advice.h"

#define RECOVER_EXTEND_USEC (60ULL * 1000 * 1000)
/*
 * Of one stream. The kernel verifies and links program by program, and the packet stream has
 * hundreds: seconds usually, five minutes in a machine that is emulated on a busy host, which is no
 * reason to be ended and to begin anew. It ends by itself: what the verifier looks at is bounded.
 */
#define LOAD_EXTEND_USEC (900ULL * 1000 * 1000)

static int fail(int code, const struct iot_error *err, int r)
{
	log_error("%s", err->text[0] ? err->text : strerror(-r));
	return code;
}

/* Signals belong to the event loop: blocked before any thread exists, taken by signalfd later. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* RLIMIT_FSIZE: write(2) says EFBIG */
}

/*
 * Before 5.11 (kernel commit 3ac1f01b43b6) maps and programs are charged to RLIMIT_MEMLOCK, by default
 * 64 KiB; later kernels charge the memory cgroup and the limit does not matter.
 */
static void raise_memlock(void)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	unsigned int major, minor;
	struct utsname u;

	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0)
		return;
	if (uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 5 || (major == 5 && minor >= 11)))
		return;
	log_warning(
		"RLIMIT_MEMLOCK cannot be raised: %s; on kernels before 5.11 loading may fail, set "
		"LimitMEMLOCK=infinity",
		strerror(errno));
}

static int store_code(int r)
{
	switch (r) {
	case -EBUSY:
		return EX_TEMPFAIL;
	case -EIO:
		return EX_IOERR;
	case -ENOMEM:
		return EX_OSERR;
	default:
		return EX_CANTCREAT;
	}
}

static int probes_code(int r)
{
	switch (r) {
	case -EPERM:
	case -EACCES:
		return EX_NOPERM;
	case -ENOTSUP: /* = -EOPNOTSUPP */
		return EX_UNAVAILABLE;
	default:
		return EX_OSERR;
	}
}

static int open_packet(const struct iot_config *c, struct adopt *adopt, struct probes **ret,
		       struct iot_error *err)
{
	const struct probes_packet_options options = {
		.expression = c->packets.filter,
		.sample = c->packets.sample,
		.rare_per_second = c->packets.drops_per_s,
		.identities = c->packet.in_flight_entries,
		.gro = c->packets.gro,
		.qdisc = c->packets.qdisc,
		.functions = c->packets.functions,
		.programs = c->packets.programs,
		.no_self_test = !c->packets.self_test,
	};
	const struct probes_options po = {
		.kind = IOT_STREAM_PACKET,
		.stream = &c->packet,
		.packet = &options,
		.adopt = adopt,
	};

	const struct probes_packet_kernel *k;
	int r;

	/* Some kernels take many seconds to verify these programs; nothing is recorded until then. */
	log_info("packets: loading the programs");
	r = probes_open(&po, ret, err);

	if (r < 0)
		return r;
	k = probes_packet_kernel(*ret);
	if (k->functions_detail[0])
		log_warning("packets: %s; they are recorded without these", k->functions_detail);
	if (c->packets.functions != IOT_FUNCTIONS_OFF && !k->exact_identity)
		log_warning("packets: an id may stand for several packets: %s", k->identity_detail);
	return 0;
}

static void close_probes(struct probes *p[2])
{
	p[0] = probes_close(p[0]);
	p[1] = probes_close(p[1]);
}

/* One for each stream that is enabled, block first. */
static int open_probes(const struct iot_config *c, const struct inherit *in, struct probes *ret[2],
		       struct iot_error *err)
{
	struct probes_options po = {
		.stream = &c->block,
		.devices = &c->devices,
		.adopt = in ? in->streams[0].adopt : NULL,
	};
	struct probes *p[2] = {NULL, NULL};
	int r;

	/* Tests: what the kernel is taken not to have. */
	r = probes_without_parse(getenv("IOTRACED_WITHOUT"), &po.without);
	if (r < 0)
		return iot_error_set(err, r,
				     "IOTRACED_WITHOUT: not a list of swap-flag, pages, copies, "
				     "origin and casts");
	raise_memlock();
	if (c->block.enabled) {
		notify_extend(LOAD_EXTEND_USEC, "loading the programs of the block stream");
		r = probes_open(&po, &p[0], err);
	}
	if (r >= 0 && p[0] && !probes_kernel(p[0])->direct_files)
		log_info("direct I/O is recorded without its file: /proc/kallsyms shows no "
			 "addresses "
			 "(CAP_SYSLOG, kernel.kptr_restrict), or this kernel has no iomap or "
			 "lets nothing be copied");
	if (r >= 0 && c->packet.enabled) {
		notify_extend(LOAD_EXTEND_USEC, "loading the programs of the packet stream");
		r = open_packet(c, in ? in->streams[1].adopt : NULL, &p[1], err);
	}
	if (r < 0) {
		close_probes(p);
		return r;
	}
	ret[0] = p[0];
	ret[1] = p[1];
	return 0;
}

static void print_probes(const struct probes *p, size_t *n_attached, size_t *n_all)
{
	size_t n;
	const struct iot_probe *table = probes_table(p, &n);

	for (size_t i = 0; i < n; i++) {
		const struct iot_probe *t = &table[i];
		bool on = t->state == IOT_ATTACH_ATTACHED;
		const char *why;

		*n_attached += on;
		why = *t->detail ? t->detail : t->error ? strerror(-t->error) : "";
		printf("%-4u %-26s %-8s %-11s %-*s%s%s\n", t->id, t->name, *t->hook ? t->hook : "-",
		       iot_attach_name(t->state), *why ? 15 : 0, on ? iot_miss_name(t->miss) : "-",
		       *why ? " " : "", why);
	}
	*n_all += n;
}

static int probe_check(const struct iot_config *c)
{
	struct probes *p[2] = {NULL, NULL};
	struct iot_error err = {0};
	size_t n = 0, attached = 0;
	struct advice advice;
	int r;

	advice_begin(&advice);
	r = open_probes(c, NULL, p, &err);
	if (r < 0)
		return fail(probes_code(r), &err, r);
	printf("%-4s %-26s %-8s %-11s %-15s %s\n", "ID", "NAME", "HOOK", "STATE", "MISSES",
	       "WHY NOT");
	for (unsigned int i = 0; i < 2; i++)
		if (p[i])
			print_probes(p[i], &attached, &n);
	printf("%zu of %zu probes attach on this kernel\n", attached, n);
	if (p[0])
		advice_end(&advice, probes_ring(p[0], 0)->size, probes_record_bytes(p[0]));
	close_probes(p);
	return EX_OK;
}

static void on_recovered(void *userdata, const struct store_recovered *r)
{
	char text[512];

	(void)userdata;
	notify_extend(RECOVER_EXTEND_USEC, "recovering segments of an earlier capture");
	store_recovered_text(r, text, sizeof(text));
	if (r->error < 0)
		log_warning("recovery: %s", text);
	else
		log_info("recovery: %s", text);
}

/* ---- what a successor gets --------------------------------------------------------------------- */

struct heir {
	struct inherit *in;
	struct probes *const *probes;
	bool kept; /* a successor could go on */
	bool left;
};

static void heir_collecting(void *arg)
{
	struct heir *h = arg;
	int r = 0;

	if (h->in->how == INHERIT_CONTINUE)
		inherit_went_on(h->in);
	else
		r = inherit_leave(h->in, h->probes);
	h->kept = r >= 0;
	if (r < 0)
		log_warning("what a successor would need cannot be handed on: %s; after a crash "
			    "the next start begins a new capture",
			    strerror(-r));
}

static void heir_filter(void *arg, const struct iot_config *c)
{
	struct heir *h = arg;

	inherit_set_config(h->in, c);
}

static void heir_ended(void *arg)
{
	struct heir *h = arg;

	inherit_set_dead(h->in);
	fdstore_clear(&h->in->store);
}

static bool heir_leave(void *arg)
{
	struct heir *h = arg;

	h->left = h->kept;
	return h->left;
}

static void heir_failed(void *arg)
{
	struct heir *h = arg;

	if (h->in->how == INHERIT_CONTINUE)
		inherit_set_dead(h->in);
}

/* Takes *config. */
static int collect(const struct args *args, struct iot_config **config, struct store *store,
		   struct probes *probes[2], struct inherit *in)
{
	struct heir h = {.in = in, .probes = probes};
	const struct manager_heir heir = {
		.states = {in->streams[0].adopt, in->streams[1].adopt},
		.resume = in->how == INHERIT_CONTINUE,
		.arg = &h,
		.collecting = heir_collecting,
		.filter = heir_filter,
		.ended = heir_ended,
		.leave = heir_leave,
		.failed = heir_failed,
	};
	const struct manager_options mo = {
		.config = *config,
		.args = args,
		.store = store,
		.probes = {probes[0], probes[1]},
		.heir = heir.states[0] || heir.states[1] ? &heir : NULL,
	};
	struct iot_error err = {0};
	struct manager *m = NULL;
	int r;

	r = manager_new(&mo, &m, &err);
	if (r < 0)
		return fail(EX_OSERR, &err, r);
	*config = NULL;
	r = manager_start(m, &err);
	r = r ? fail(r, &err, -EIO) : manager_run(m);
	/* Whatever was freed in an orderly way would be detached, or given up: a successor needs it as it is. */
	if (h.left)
		_exit(r);
	manager_free(m);
	return r;
}

/* Of what cannot be gone on with. Takes probes. */
static int finish(const struct iot_config *c, struct inherit *in, struct store *store,
		  struct probes *probes[2], int error, struct iot_error *err)
{
	char name[256] = "";

	if (error >= 0) {
		notify_extend(RECOVER_EXTEND_USEC, "sealing what a predecessor recorded");
		error = inherit_finish(in, c, store, probes, name, sizeof(name), err);
	}
	if (error < 0)
		log_warning("the capture before cannot be gone on with: %s",
			    err->text[0] ? err->text : strerror(-error));
	else
		log_info("the capture before ends with %s: %s", name, in->why);
	return error;
}

static int finish_elsewhere(struct inherit *in)
{
	int r;

	log_info("the capture before is ended by the program that recorded it: %s", in->why);
	notify_extend(RECOVER_EXTEND_USEC, "having sealed what a predecessor recorded");
	r = inherit_finish_elsewhere(in);
	if (r < 0)
		log_warning("the capture before could not be ended by its program: %s",
			    strerror(-r));
	inherit_drop(in);
	return r;
}

/*
 * What a predecessor's capture can be gone on with: *ret_store and *ret_probes then. Else both stay NULL and
 * it is finished, or left to recovery. Returns an exit code, EX_OK to go on.
 */
static int adopt(const struct iot_config *c, struct inherit *in, struct store **ret_store,
		 struct probes *ret_probes[2])
{
	struct iot_error err = {0};
	struct probes *probes[2] = {NULL, NULL};
	struct store *store = NULL;
	uint8_t capture_id[16];
	int r;

	inherit_look(in, c);
	if (in->how == INHERIT_NOTHING) {
		if (in->why[0])
			log_info("nothing is gone on with: %s", in->why);
		return EX_OK;
	}
	if (in->how == INHERIT_ELSEWHERE) {
		(void)!finish_elsewhere(in);
		return EX_OK;
	}
	inherit_capture(in, capture_id);
	/* Its lock says whether the predecessor is really gone; nothing is touched before. */
	r = store_open(c->state_dir, capture_id, &store, &err);
	if (r < 0)
		return fail(store_code(r), &err, r);
	r = inherit_probes(in, c, probes, &err);
	if (r >= 0 && in->how == INHERIT_CONTINUE) {
		*ret_store = store;
		ret_probes[0] = probes[0];
		ret_probes[1] = probes[1];
		return EX_OK;
	}
	(void)!finish(c, in, store, probes, r, &err);
	store_close(store);
	inherit_drop(in);
	return EX_OK;
}

/*
 * Nothing but seal what was inherited, wherever it is: without a configuration, or, alone, for a successor of another
 * build, which has found out already whose it is.
 */
static int only_finish(const char *why, bool alone)
{
	_cleanup_(iot_config_freep) struct iot_config *c = NULL;
	struct iot_error err = {0};
	struct inherit in;
	char dir[512];
	int r;

	block_signals();
	r = iot_config_defaults(&c);
	if (r < 0)
		return fail(EX_OSERR, &err, r);
	inherit_look(&in, c);
	if (in.how == INHERIT_ELSEWHERE) {
		r = alone ? -ENOEXEC : finish_elsewhere(&in);
	} else if (in.how != INHERIT_NOTHING) {
		struct probes *probes[2] = {NULL, NULL};
		struct store *store = NULL;
		uint8_t capture_id[16];

		in.how = INHERIT_FINISH;
		snprintf(in.why, sizeof(in.why), "%s", why);
		inherit_state_dir(&in, dir, sizeof(dir));
		inherit_capture(&in, capture_id);
		r = store_open(dir, capture_id, &store, &err);
		if (r >= 0)
			r = inherit_probes(&in, c, probes, &err);
		r = finish(c, &in, store, probes, r, &err);
		store_close(store);
		inherit_drop(&in);
	}
	inherit_done(&in);
	return r < 0 ? EX_OSERR : EX_OK;
}

/* A capture of our own. */
static int begin(const struct iot_config *c, struct inherit *in, struct store **ret_store,
		 struct probes *probes[2])
{
	struct iot_error err = {0};
	struct store *store = NULL;
	uint8_t capture_id[16];
	size_t n;
	int r;

	if (getrandom(capture_id, sizeof(capture_id), 0) != (ssize_t)sizeof(capture_id))
		return fail(EX_OSERR, &err, -errno);
	r = store_open(c->state_dir, capture_id, &store, &err);
	if (r < 0)
		return fail(store_code(r), &err, r);
	*ret_store = store;
	r = inherit_begin(in, c, capture_id);
	if (r < 0)
		log_warning("a successor could not go on with this capture: %s", strerror(-r));

	notify_extend(RECOVER_EXTEND_USEC, "looking for segments to recover");
	r = store_recover(store, on_recovered, NULL, &n, &err);
	if (r < 0)
		return fail(r == -ENOMEM ? EX_OSERR : EX_IOERR, &err, r);
	r = open_probes(c, in, probes, &err);
	return r < 0 ? fail(probes_code(r), &err, r) : EX_OK;
}

static int run(const struct args *args, struct iot_config **config)
{
	struct probes *probes[2] = {NULL, NULL};
	struct store *store = NULL;
	struct inherit in;
	int code;

	code = adopt(*config, &in, &store, probes);
	if (code == EX_OK && !store)
		code = begin(*config, &in, &store, probes);
	if (code == EX_OK)
		code = collect(args, config, store, probes, &in);
	close_probes(probes);
	inherit_done(&in);
	if (code == EX_OK)
		store_close(store);
	else
		store_abandon(store);
	return code;
}

int main(int argc, char **argv)
{
	_cleanup_(iot_config_freep) struct iot_config *config = NULL;
	struct iot_error err = {0};
	struct args args;
	int r, code;

	log_open();
	r = args_parse(argc, argv, &args, &err);
	if (r < 0)
		return fail(EX_USAGE, &err, r);
	if (args.mode == ARGS_HELP) {
		args_help(stdout);
		return EX_OK;
	}
	if (args.mode == ARGS_VERSION) {
		puts("iotraced " IOTRACED_VERSION);
		return EX_OK;
	}
	if (args.mode == ARGS_FINISH)
		return only_finish("its program was replaced", true);
	r = manager_load_config(&args, &config, &err);
	if (r < 0) {
		code = fail(r == -ENOMEM ? EX_OSERR : EX_CONFIG, &err, r);
		/* The service manager drops what nobody goes on with: then it is sealed before. */
		if (args.mode == ARGS_RUN)
			(void)only_finish("the configuration is wrong", false);
		return code;
	}
	if (log_set_level(config->log_level) < 0)
		log_warning("log_level %s is not known", config->log_level);
	if (args.mode == ARGS_CHECK_CONFIG) {
		printf("configuration is good: %s\n",
		       *config->source ? config->source : "built-in defaults");
		return EX_OK;
	}
	if (args.mode == ARGS_PROBE_CHECK)
		return probe_check(config);
	block_signals();
	return run(&args, &config);
}
