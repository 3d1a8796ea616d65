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

#include "daemon/log.h"
#include "daemon/manager.h"
#include "daemon/notify.h"

#define RECOVER_EXTEND_USEC (60ULL * 1000 * 1000)

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
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
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

static int open_packet(const struct iot_config *c, struct probes **ret, struct iot_error *err)
{
	const struct probes_packet_options options = {
		.expression = c->packets.filter,
		.sample = c->packets.sample,
		.rare_per_second = c->packets.drops_per_s,
		.identities = c->packet.in_flight_entries,
		.gro = c->packets.gro,
		.qdisc = c->packets.qdisc,
	};
	const struct probes_options po = {
		.kind = IOT_STREAM_PACKET, .stream = &c->packet, .packet = &options};

	return probes_open(&po, ret, err);
}

static void close_probes(struct probes *p[2])
{
	p[0] = probes_close(p[0]);
	p[1] = probes_close(p[1]);
}

/* One for each stream that is enabled, block first. */
static int open_probes(const struct iot_config *c, struct probes *ret[2], struct iot_error *err)
{
	struct probes_options po = {.stream = &c->block, .devices = &c->devices};
	struct probes *p[2] = {NULL, NULL};
	int r;

	/* Tests: what the kernel is taken not to have. */
	r = probes_without_parse(getenv("IOTRACED_WITHOUT"), &po.without);
	if (r < 0)
		return iot_error_set(err, r,
				     "IOTRACED_WITHOUT: not a list of swap-flag, pages and copies");
	raise_memlock();
	if (c->block.enabled)
		r = probes_open(&po, &p[0], err);
	if (r >= 0 && c->packet.enabled)
		r = open_packet(c, &p[1], err);
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

		*n_attached += on;
		printf("%-4u %-26s %-8s %-11s %-15s %s\n", t->id, t->name, *t->hook ? t->hook : "-",
		       iot_attach_name(t->state), on ? iot_miss_name(t->miss) : "-",
		       *t->detail ? t->detail
		       : t->error ? strerror(-t->error)
				  : "");
	}
	*n_all += n;
}

static int probe_check(const struct iot_config *c)
{
	struct probes *p[2] = {NULL, NULL};
	struct iot_error err = {0};
	size_t n = 0, attached = 0;
	int r;

	r = open_probes(c, p, &err);
	if (r < 0)
		return fail(probes_code(r), &err, r);
	printf("%-4s %-26s %-8s %-11s %-15s %s\n", "ID", "NAME", "HOOK", "STATE", "MISSES",
	       "WHY NOT");
	for (unsigned int i = 0; i < 2; i++)
		if (p[i])
			print_probes(p[i], &attached, &n);
	printf("%zu of %zu probes attach on this kernel\n", attached, n);
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

/* Takes *config. */
static int collect(const struct args *args, struct iot_config **config, struct store *store,
		   struct probes *probes[2])
{
	const struct manager_options mo = {
		.config = *config,
		.args = args,
		.store = store,
		.probes = {probes[0], probes[1]},
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
	manager_free(m);
	return r;
}

static int run(const struct args *args, struct iot_config **config)
{
	struct iot_error err = {0};
	struct probes *probes[2] = {NULL, NULL};
	struct store *store = NULL;
	uint8_t capture_id[16];
	size_t n;
	int r, code;

	if (getrandom(capture_id, sizeof(capture_id), 0) != (ssize_t)sizeof(capture_id))
		return fail(EX_OSERR, &err, -errno);
	r = store_open((*config)->state_dir, capture_id, &store, &err);
	if (r < 0)
		return fail(store_code(r), &err, r);

	notify_extend(RECOVER_EXTEND_USEC, "looking for segments to recover");
	r = store_recover(store, on_recovered, NULL, &n, &err);
	if (r < 0) {
		code = fail(r == -ENOMEM ? EX_OSERR : EX_IOERR, &err, r);
		goto out;
	}
	r = open_probes(*config, probes, &err);
	if (r < 0) {
		code = fail(probes_code(r), &err, r);
		goto out;
	}
	code = collect(args, config, store, probes);
out:
	close_probes(probes);
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
	int r;

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
	r = manager_load_config(&args, &config, &err);
	if (r < 0)
		return fail(r == -ENOMEM ? EX_OSERR : EX_CONFIG, &err, r);
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
