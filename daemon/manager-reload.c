// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-reload.c - SIGHUP: the configuration again, taken whole or not at all.
 *
 * Keys that only a new start can change keep their running values (and `iotracectl status` says
 * which wait); the rest takes effect at once. A changed device filter also closes the segment, since
 * a segment's header says what was selected.
 */
#include "daemon/manager-private.h"

static void swap_str(char **a, char **b)
{
	char *t = *a;

	*a = *b;
	*b = t;
}

/* wanted keeps what is running of the keys that need a new start. */
static void keep_running(struct iot_config *wanted, struct iot_config *running)
{
	struct iot_stream_config *w = &wanted->block;
	const struct iot_stream_config *r = &running->block;

	w->enabled = r->enabled;
	w->ring_size_bytes = r->ring_size_bytes;
	w->ring_cpus = r->ring_cpus;
	w->ledger_entries = r->ledger_entries;
	w->in_flight_entries = r->in_flight_entries;
	wanted->packet = running->packet;
	swap_str(&wanted->state_dir, &running->state_dir);
	swap_str(&wanted->socket, &running->socket);
	swap_str(&wanted->socket_group, &running->socket_group);
}

static bool same_list(const struct iot_strv *a, const struct iot_strv *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	}
	return true;
}

struct reload_rotate {
	struct manager *m;
	char name[128];
};

static int rotate_run(void *arg)
{
	struct reload_rotate *j = arg;
	int r = 0;

	for (size_t i = 0; i < j->m->n_streams && r == 0; i++)
		r = worker_rotate(j->m->streams[i].worker, IOT_SEAL_RELOAD, j->name,
				  sizeof(j->name));
	return r;
}

static void rotate_done(void *arg, int result)
{
	if (result < 0 && result != -ECANCELED)
		log_warning("reload: the segment could not be closed: %s", strerror(-result));
	free(arg);
}

static void apply_devices(struct manager *m)
{
	struct reload_rotate *j = calloc(1, sizeof(*j));
	int r;

	for (size_t i = 0; i < m->n_streams; i++) {
		r = probes_set_devices(m->streams[i].probes, &m->config->devices);
		if (r < 0)
			log_error("device filter: %s", strerror(-r));
	}
	r = j ? 0 : -ENOMEM;
	if (j) {
		j->m = m;
		r = jobs_submit(m->jobs, rotate_run, rotate_done, j);
	}
	if (r < 0) {
		log_warning("reload: the segment is not closed now: %s", strerror(-r));
		free(j);
	}
}

static void apply(struct manager *m, struct iot_config *wanted)
{
	struct iot_config *old = m->config;
	bool devices = !same_list(&wanted->devices.include, &old->devices.include) ||
		       !same_list(&wanted->devices.exclude, &old->devices.exclude);

	if (iot_config_restart_keys(old, wanted, m->restart_keys, sizeof(m->restart_keys)) > 0)
		log_warning("reload: these changes wait for a restart: %s", m->restart_keys);
	keep_running(wanted, old);
	m->config = wanted;
	if (log_set_level(wanted->log_level) < 0)
		log_warning("reload: log_level %s is not known", wanted->log_level);
	for (size_t i = 0; i < m->n_streams; i++)
		worker_reconfigure(m->streams[i].worker, &wanted->block);
	if (devices)
		apply_devices(m);
	manager_retain(m);
	iot_config_free(old);
}

void manager_reload(struct manager *m)
{
	struct iot_config *wanted = NULL;
	struct iot_error err = {0};

	if (m->stopping)
		return;
	notify_reloading(manager_now_ns());
	if (manager_load_config(m->args, &wanted, &err) < 0) {
		log_error("reload: %s", err.text);
		log_error("reload: the running configuration stays in effect");
	} else {
		apply(m, wanted);
		log_info("reload: configuration taken from %s",
			 *m->config->source ? m->config->source : "built-in defaults");
	}
	notify_ready(m->status_line);
}
