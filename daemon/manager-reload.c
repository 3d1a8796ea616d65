// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-reload.c - SIGHUP: the configuration again, taken whole or not at all.
 *
 * Keys that only a new start can change keep their running values (and `iotracectl status` says
 * which wait); the rest takes effect at once, but for a changed filter of devices or swap, which
 * takes effect with the segments whose headers say so.
 */
#include "daemon/manager-private.h"

static void swap_str(char **a, char **b)
{
	char *t = *a;

	*a = *b;
	*b = t;
}

static void keep_sizes(struct iot_stream_config *w, const struct iot_stream_config *r)
{
	w->enabled = r->enabled;
	w->ring_size_bytes = r->ring_size_bytes;
	w->ring_cpus = r->ring_cpus;
	w->ledger_entries = r->ledger_entries;
	w->in_flight_entries = r->in_flight_entries;
}

/* wanted keeps what is running of the keys that need a new start. */
static void keep_running(struct iot_config *wanted, struct iot_config *running)
{
	struct iot_packet_config packets = wanted->packets;

	keep_sizes(&wanted->block, &running->block);
	keep_sizes(&wanted->packet, &running->packet);
	wanted->packets = running->packets;
	running->packets = packets;
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

/* ---- a new filter --------------------------------------------------------------------------- */

/*
 * A segment must hold whatever its header promises, so the change goes: record everything, open
 * segments whose headers say the new selection, filter by it. Between the steps more is recorded
 * than was asked for, never less. While a step fails (a stalled disk), everything is recorded.
 */
struct filter_job {
	struct manager *m;
	char name[128];
};

static int filter_run(void *arg)
{
	struct filter_job *j = arg;
	int r = 0;

	if (j->m->stopping)
		return -ECANCELED;
	for (size_t i = 0; i < j->m->n_streams && r == 0; i++)
		if (j->m->streams[i].id == IOT_STREAM_BLOCK)
			r = worker_rotate(j->m->streams[i].worker, IOT_SEAL_RELOAD, j->name,
					  sizeof(j->name));
	return r;
}

static int set_filter(struct manager *m, const struct iot_device_filter *f,
		      enum iot_swap_policy swap)
{
	int r = 0;

	for (size_t i = 0; i < m->n_streams && r == 0; i++) {
		if (m->streams[i].id != IOT_STREAM_BLOCK)
			continue;
		r = probes_set_devices(m->streams[i].probes, f);
		if (r == 0)
			r = probes_set_swap(m->streams[i].probes, swap);
	}
	if (r < 0 && log_limit_pass(&m->filter_limit, manager_now_ns(), NULL))
		log_error("filter: %s; more is recorded than was asked for", strerror(-r));
	return r;
}

static void filter_done(void *arg, int result)
{
	struct filter_job *j = arg;
	struct manager *m = j->m;

	m->filter_job = false;
	free(j);
	if (result == -ECANCELED || m->stopping)
		return;
	if (result < 0) {
		if (log_limit_pass(&m->filter_limit, manager_now_ns(), NULL))
			log_warning("reload: the segment could not be closed: %s; everything is "
				    "recorded until it can",
				    strerror(-result));
		return;
	}
	/* Another reload may have come in between: then its own segment is waited for. */
	if (m->filter_wanted != m->filter_started)
		return;
	if (set_filter(m, &m->config->devices, m->config->block.swap) == 0) {
		m->filter_pending = false;
		if (m->heir)
			m->heir->filter(m->heir->arg, m->config);
		log_info("reload: the new filter is in effect");
	}
}

void manager_filter_step(struct manager *m)
{
	static const struct iot_device_filter everything;
	struct filter_job *j;

	if (!m->filter_pending || m->filter_job || m->stopping)
		return;
	/* Who would be our successor meanwhile cannot know what the programs select. */
	if (m->heir)
		m->heir->filter(m->heir->arg, NULL);
	if (set_filter(m, &everything, IOT_KEEP_SWAP) < 0)
		return;
	j = calloc(1, sizeof(*j));
	if (!j)
		return;
	j->m = m;
	for (size_t i = 0; i < m->n_streams; i++)
		worker_set_selection(m->streams[i].worker, m->config);
	m->filter_started = m->filter_wanted;
	m->filter_job = true;
	if (jobs_submit(m->jobs, filter_run, filter_done, j) < 0) {
		m->filter_job = false;
		free(j);
	}
}

void manager_check_swap(const struct manager *m)
{
	const struct probes_kernel *k = probes_kernel(m->streams[0].probes);

	if (m->streams[0].id != IOT_STREAM_BLOCK || m->config->block.swap != IOT_DROP_SWAP ||
	    (k->swap_out && k->swap_in))
		return;
	log_warning(
		"streams.block.swap: drop: this kernel does not tell %s from other requests, so "
		"these are recorded all the same",
		k->swap_in    ? "swap-out"
		: k->swap_out ? "swap-in"
			      : "swap");
}

void manager_check_devices(struct manager *m)
{
	char now[sizeof(m->unmatched)];

	if (probes_unmatched_devices(&m->config->devices, now, sizeof(now)) < 0 ||
	    strcmp(now, m->unmatched) == 0)
		return;
	memcpy(m->unmatched, now, sizeof(now));
	if (now[0])
		log_warning("devices: no disk here matches: %s (patterns are for whole disks)",
			    now);
	else
		log_info("devices: each pattern matches a disk now");
}

/* ---- reload ----------------------------------------------------------------------------------- */

static void apply(struct manager *m, struct iot_config *wanted)
{
	struct iot_config *old = m->config;
	bool filter = !same_list(&wanted->devices.include, &old->devices.include) ||
		      !same_list(&wanted->devices.exclude, &old->devices.exclude) ||
		      wanted->block.swap != old->block.swap;

	if (iot_config_restart_keys(old, wanted, m->restart_keys, sizeof(m->restart_keys)) > 0)
		log_warning("reload: these changes wait for a restart: %s", m->restart_keys);
	keep_running(wanted, old);
	m->config = wanted;
	if (log_set_level(wanted->log_level) < 0)
		log_warning("reload: log_level %s is not known", wanted->log_level);
	for (size_t i = 0; i < m->n_streams; i++)
		worker_reconfigure(m->streams[i].worker, m->streams[i].id == IOT_STREAM_PACKET
								 ? &wanted->packet
								 : &wanted->block);
	if (filter) {
		manager_check_swap(m);
		manager_check_devices(m);
		m->filter_pending = true;
		m->filter_wanted++;
		manager_filter_step(m);
	}
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
		log_event(LOG_ERR, LOG_ID_RELOAD_REFUSED,
			  &(struct log_fields){.capture = m->capture_id}, "reload: %s", err.text);
		log_error("reload: the running configuration stays in effect");
	} else {
		apply(m, wanted);
		log_event(LOG_INFO, LOG_ID_RELOADED, &(struct log_fields){.capture = m->capture_id},
			  "reload: configuration taken from %s",
			  *m->config->source ? m->config->source : "built-in defaults");
	}
	notify_ready(m->status_line);
}
