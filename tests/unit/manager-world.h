/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manager-world.h - a worker, probes and a store that do what a test tells them, and the real manager
 * between them, on its own event loop. For test-manager.c.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "daemon/manager-private.h"

/* ---- the world as a test wants it ------------------------------------------------------------- */

static struct {
	atomic_bool alive; /* the worker's progress moves by itself */
	atomic_uint progress;
	pthread_mutex_t stall; /* held: whatever waits for the disk waits */
	atomic_int rotate_result;
	atomic_uint n_rotate, n_stop, n_retain;
	bool knows_areas, begun_blind; /* of swap areas, where the worker opens the gate */
	unsigned int n_swap_areas;     /* how often the kernel side was told */
	char trace[512];	       /* order of what matters: filters, selections, rotations */
	pthread_mutex_t trace_lock;
	struct worker_status status;
	pthread_mutex_t status_lock;
	uint8_t capture[16];
} world = {
	.stall = PTHREAD_MUTEX_INITIALIZER,
	.trace_lock = PTHREAD_MUTEX_INITIALIZER,
	.status_lock = PTHREAD_MUTEX_INITIALIZER,
};

static void trace(const char *what)
{
	size_t len;

	pthread_mutex_lock(&world.trace_lock);
	len = strlen(world.trace);
	snprintf(world.trace + len, sizeof(world.trace) - len, "%s%s", len ? " " : "", what);
	pthread_mutex_unlock(&world.trace_lock);
}

static void wait_for_disk(void)
{
	pthread_mutex_lock(&world.stall);
	pthread_mutex_unlock(&world.stall);
}

static int attention_fd = -1;

int worker_start(const struct worker_options *opts, struct worker **ret, struct iot_error *err)
{
	(void)opts;
	(void)err;
	world.begun_blind = !world.knows_areas;
	attention_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*ret = (struct worker *)&world;
	return 0;
}

void worker_status(struct worker *w, struct worker_status *ret)
{
	(void)w;
	pthread_mutex_lock(&world.status_lock);
	*ret = world.status;
	pthread_mutex_unlock(&world.status_lock);
	if (world.alive)
		world.progress++;
	ret->progress = world.progress;
}

int worker_rotate(struct worker *w, enum iot_seal_reason reason, char *ret_name, size_t size)
{
	(void)w;
	wait_for_disk();
	world.n_rotate++;
	trace(reason == IOT_SEAL_RELOAD ? "rotate-reload" : "rotate");
	snprintf(ret_name, size, "seg.iot");
	return world.rotate_result;
}

int worker_flush(struct worker *w, char *ret_name, size_t size)
{
	(void)w;
	wait_for_disk();
	snprintf(ret_name, size, "seg.open");
	return 0;
}

void worker_reconfigure(struct worker *w, const struct iot_stream_config *c)
{
	(void)w;
	(void)c;
}

void worker_set_selection(struct worker *w, const struct iot_config *c)
{
	(void)w;
	trace(c->devices.include.n ? "say-some" : "say-all");
	if (c->block.swap == IOT_DROP_SWAP)
		trace("say-no-swap");
}

int worker_stop(struct worker *w, char *ret_name, size_t size)
{
	(void)w;
	wait_for_disk();
	world.n_stop++;
	snprintf(ret_name, size, "last.iot");
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	if (w)
		close(attention_fd);
	return NULL;
}

int worker_event_fd(const struct worker *w)
{
	(void)w;
	return attention_fd;
}

int probes_gate(struct probes *p, bool open, uint64_t *ret_ns)
{
	(void)p;
	trace(open ? "gate-open" : "gate-closed");
	*ret_ns = 1;
	return 0;
}

void probes_detach(struct probes *p)
{
	(void)p;
	trace("detach");
}

int probes_set_swap_areas(struct probes *p, const struct swaps *areas)
{
	(void)p;
	(void)areas;
	world.knows_areas = true;
	world.n_swap_areas++;
	return 0;
}

int probes_set_devices(struct probes *p, const struct iot_device_filter *f)
{
	(void)p;
	trace(f->include.n ? "filter-some" : "filter-none");
	return 0;
}

int probes_unmatched_devices(const struct iot_device_filter *f, char *buf, size_t size)
{
	(void)f;
	(void)size;
	buf[0] = '\0';
	return 0;
}

int probes_set_swap(struct probes *p, enum iot_swap_policy policy)
{
	(void)p;
	if (policy == IOT_DROP_SWAP)
		trace("drop-swap");
	return 0;
}

enum iot_stream probes_stream(const struct probes *p)
{
	(void)p;
	return IOT_STREAM_BLOCK;
}

const struct probes_kernel *probes_kernel(const struct probes *p)
{
	static const struct probes_kernel k;

	(void)p;
	return &k;
}

const struct probes_packet_kernel *probes_packet_kernel(const struct probes *p)
{
	static const struct probes_packet_kernel k;

	(void)p;
	return &k;
}

#define RING_BYTES 65536U

bool probes_programs_wanted(const struct probes *p)
{
	(void)p;
	return false;
}

int probes_programs_follow(struct probes *p, struct probes_programs_change *ret)
{
	(void)p;
	*ret = (struct probes_programs_change){0};
	return 0;
}

unsigned int probes_n_rings(const struct probes *p)
{
	(void)p;
	return 1;
}

struct probes_ring *probes_ring(struct probes *p, unsigned int i)
{
	static struct probes_ring ring = {.size = RING_BYTES};

	(void)p;
	(void)i;
	return &ring;
}

unsigned int probes_n_cpus(const struct probes *p)
{
	(void)p;
	return 1;
}

const struct iot_probe *probes_table(const struct probes *p, size_t *ret_n)
{
	(void)p;
	*ret_n = 0;
	return NULL;
}

int probes_run_stats(struct probes *p, struct probes_run_stats **ret, size_t *ret_n)
{
	(void)p;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

int probes_in_flight(struct probes *p, struct ev_block **ret, size_t *ret_n)
{
	(void)p;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

int probes_memory(struct probes *p, struct probes_memory *ret)
{
	(void)p;
	(void)ret;
	return -ENOTSUP;
}

bool store_is_elsewhere(const struct store *s)
{
	(void)s;
	return false;
}

const char *store_path(const struct store *s)
{
	(void)s;
	return "/store";
}

const uint8_t *store_capture_id(const struct store *s)
{
	(void)s;
	return world.capture;
}

int store_retain(struct store *s, const struct iot_retention *r, struct store_usage *ret)
{
	(void)s;
	(void)r;
	wait_for_disk();
	world.n_retain++;
	memset(ret, 0, sizeof(*ret));
	return 0;
}

/* ---- fixture ------------------------------------------------------------------------------------ */

struct fixture {
	char dir[64];
	char config[96];
	char socket[96];
	char state[96];
	struct args args;
	struct manager *m;
	int notify;
	char heard[65536];
};

static void write_config(struct fixture *f, const char *text)
{
	FILE *file = fopen(f->config, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int notify_socket(struct fixture *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/n", f->dir);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -1;
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	setenv("WATCHDOG_USEC", "300000", 1);
	unsetenv("WATCHDOG_PID");
	return fd;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct manager_options mo = {0};
	struct iot_error err = {0};
	sigset_t set;

	assert_non_null(f);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	strcpy(f->dir, "/tmp/iot-manager-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->config, sizeof(f->config), "%s/c.yaml", f->dir);
	snprintf(f->socket, sizeof(f->socket), "%s/s", f->dir);
	snprintf(f->state, sizeof(f->state), "%s/state", f->dir);
	f->notify = notify_socket(f);
	assert_true(f->notify >= 0);
	write_config(f, "log_level: error\n");
	f->args = (struct args){.config = f->config, .socket = f->socket, .state_dir = f->state};

	world.alive = true;
	world.rotate_result = 0;
	world.knows_areas = false;
	world.n_rotate = world.n_stop = world.n_retain = world.n_swap_areas = 0;
	world.trace[0] = '\0';
	memset(&world.status, 0, sizeof(world.status));
	strcpy(world.status.verdict, "complete");

	mo.args = &f->args;
	assert_int_equal(manager_load_config(&f->args, &mo.config, &err), 0);
	assert_int_equal(log_set_level("error"), 0);
	/* Never looked into: this world answers for it. */
	mo.probes[0] = (struct probes *)&mo;
	assert_int_equal(manager_new(&mo, &f->m, &err), 0);
	assert_int_equal(manager_start(f->m, &err), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	manager_free(f->m);
	close(f->notify);
	snprintf(path, sizeof(path), "%s/n", f->dir);
	unlink(path);
	unlink(f->config);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static uint64_t now_ms(void)
{
	return manager_now_ns() / 1000000;
}

static void listen_now(struct fixture *f)
{
	char buf[1024];
	ssize_t n;

	while ((n = recv(f->notify, buf, sizeof(buf) - 1, 0)) > 0) {
		size_t len = strlen(f->heard);

		buf[n] = '\0';
		snprintf(f->heard + len, sizeof(f->heard) - len, "%s\n", buf);
	}
}

/* sd_notify waits for a service manager that does not read: so it is read between turns. */
static void run_ms(struct fixture *f, uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (now_ms() < end) {
		if (sd_event_get_state(f->m->event) == SD_EVENT_FINISHED)
			break;
		assert_true(sd_event_run(f->m->event, 10000) >= 0);
		listen_now(f);
	}
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static unsigned int heard_again(struct fixture *f, uint64_t ms, const char *what)
{
	f->heard[0] = '\0';
	run_ms(f, ms);
	return count(f->heard, what);
}

/* Until trace is as wanted, or 5 s. */
static void expect_trace(struct fixture *f, const char *want)
{
	for (int i = 0; i < 500; i++) {
		bool same;

		pthread_mutex_lock(&world.trace_lock);
		same = strcmp(world.trace, want) == 0;
		pthread_mutex_unlock(&world.trace_lock);
		if (same)
			return;
		run_ms(f, 10);
	}
	assert_string_equal(world.trace, want);
}
