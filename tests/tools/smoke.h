/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smoke.h - what the two tools that watch the kernel side alone have in common: complaints, the check of a
 * counter cell, the figures of probes and programs, and the loop that drains while a command runs.
 *
 * Included by one source file a program; what is here is therefore static.
 */
#pragma once

#include <linux/bpf.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/probes.h"
#include "daemon/ring.h"

#define MAX_EPOCHS 4096
#define N_FIELDS 9

static const char *const field_names[N_FIELDS] = {"seen",	  "not_selected",   "folded",
						  "emitted",	  "reserve_failed", "filed",
						  "unattributed", "identity_full",  "suppressed"};
static bool stall;
static void (*each_turn)(struct probes *p); /* what else is to be done while a command runs */
static uint64_t n_records, n_bad;
static uint64_t n_records_of[MAX_EPOCHS];

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline void complain(const char *what, uint64_t a, uint64_t b)
{
	printf("bad %s: %llu against %llu\n", what, (unsigned long long)a, (unsigned long long)b);
	n_bad++;
}

/* Checks the cell's equations and adds its fields to total. */
static inline void take_cell(const struct ev_cell *c, uint64_t total[N_FIELDS])
{
	const uint64_t v[N_FIELDS] = {c->seen,	       c->not_selected,	  c->folded,
				      c->emitted,      c->reserve_failed, c->filed,
				      c->unattributed, c->identity_full,  c->suppressed};

	for (unsigned int f = 0; f < N_FIELDS; f++)
		total[f] += v[f];
	if (c->seen != c->not_selected + c->folded + c->emitted + c->reserve_failed)
		complain("seen of a cell", c->seen,
			 c->not_selected + c->folded + c->emitted + c->reserve_failed);
	if (c->reserve_failed != c->filed + c->unattributed)
		complain("reserve_failed of a cell", c->reserve_failed, c->filed + c->unattributed);
	if (c->unattributed && !c->unattributed_first_ns)
		complain("window of unattributed losses", c->unattributed, 0);
}

static inline void print_probe(const struct iot_probe *probe, const uint64_t total[N_FIELDS],
			       uint64_t missed)
{
	printf("probe %u %s hook=%s state=%s miss=%s", probe->id, probe->name,
	       probe->hook[0] ? probe->hook : "-", iot_attach_name(probe->state),
	       probe->miss ? iot_miss_name(probe->miss) : "-");
	for (unsigned int f = 0; f < N_FIELDS; f++)
		printf(" %s=%llu", field_names[f], (unsigned long long)total[f]);
	if (missed == IOT_COUNT_UNKNOWN)
		printf(" missed=unknown");
	else
		printf(" missed=%llu", (unsigned long long)missed);
	printf("%s%s\n", probe->detail[0] ? " # " : "", probe->detail);
}

/* Memory of the maps, then what each program has cost. */
static inline void print_figures(struct probes *p)
{
	struct probes_run_stats *stats;
	struct probes_memory memory;
	size_t n;

	if (probes_memory(p, &memory) < 0 || probes_run_stats(p, &stats, &n) < 0) {
		complain("figures", 0, 2);
		return;
	}
	printf("memory maps=%llu rings=%llu identities=%llu\n",
	       (unsigned long long)memory.maps_bytes, (unsigned long long)memory.rings_bytes,
	       (unsigned long long)probes_control(p)->identities);
	for (size_t i = 0; i < n; i++)
		printf("run %s count=%llu ns=%llu per_run=%llu\n", stats[i].program,
		       (unsigned long long)stats[i].run_count,
		       (unsigned long long)stats[i].run_time_ns,
		       stats[i].run_count
			       ? (unsigned long long)(stats[i].run_time_ns / stats[i].run_count)
			       : 0);
	free(stats);
}

static inline int enable_run_stats(void)
{
	union bpf_attr attr = {.enable_stats.type = BPF_STATS_RUN_TIME};

	return (int)syscall(__NR_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr));
}

static inline pid_t spawn(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	return pid;
}

/* Of the tool itself. close_epoch(): the epoch has no writer any more and its records are read. */
static void take_record(struct probes *p, const void *data, uint32_t len);
static void close_epoch(struct probes *p, uint64_t epoch);

/* Reads and publishes what there is. */
static inline void drain(struct probes *p, struct ring *rings)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < probes_n_rings(p); i++) {
		while (ring_refresh(&rings[i])) {
			const void *data;
			uint32_t len;
			int r = ring_peek(&rings[i], &data, &len);

			if (r == RING_EMPTY)
				break;
			if (r == RING_BUSY)
				continue; /* being written on another CPU this moment */
			if (r < 0) {
				complain("ring header", i, (uint64_t)-r);
				return;
			}
			take_record(p, data, len);
			ring_advance(&rings[i], len);
			/* Once in a while, as a consumer does that writes blocks: the position is a shared line. */
			if (++n % 4096 == 0)
				ring_publish(&rings[i], rings[i].pos);
		}
		ring_publish(&rings[i], rings[i].pos);
	}
}

/*
 * Waits out the child (or the time), draining meanwhile and changing epochs. may_outlast: the command may go
 * on when the time is up. Returns the last epoch.
 */
static inline uint64_t watch(struct probes *p, struct ring *rings, pid_t child, uint64_t seconds,
			     uint64_t flip_ms, bool may_outlast)
{
	uint64_t epoch = 1, end = now_ns() + seconds * 1000000000ULL,
		 flip_at = now_ns() + flip_ms * 1000000;
	struct timespec nap = {.tv_nsec = 5000000};
	int status, r;

	for (;;) {
		if (!stall)
			drain(p, rings);
		nanosleep(&nap, NULL);
		if (each_turn)
			each_turn(p);
		if (flip_ms && now_ns() >= flip_at && epoch + 2 < MAX_EPOCHS) {
			r = probes_flip(p, epoch + 1);
			if (r < 0)
				complain("flip, errno", (uint64_t)-r, 0);
			drain(p, rings);
			close_epoch(p, epoch++);
			flip_at = now_ns() + flip_ms * 1000000;
		}
		if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
			if (!WIFEXITED(status) || WEXITSTATUS(status))
				complain("exit status of the command", (uint64_t)status, 0);
			break;
		}
		if (seconds && now_ns() >= end) {
			if (child > 0 && !may_outlast)
				complain("seconds the command took", seconds, 0);
			break;
		}
	}
	return epoch;
}
