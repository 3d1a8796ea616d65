// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-control.c - the control socket's operations, done by the manager.
 *
 * Reads look at snapshots. Rotate and Flush wait for the worker, so they are jobs: the loop goes on,
 * and their client gets its reply when they end.
 */
#include "daemon/manager-private.h"

/* ---- reads -------------------------------------------------------------------------------------- */

static int op_status(void *userdata, struct json_object **ret, char **message)
{
	struct manager *m = userdata;
	struct status_stream streams[MANAGER_MAX_STREAMS] = {0};
	struct status_input in = {
		.now_ns = manager_now_ns(),
		.start_ns = m->gate_ns,
		.stopping = m->stopping,
		.pid = getpid(),
		.streams = streams,
		.n_streams = m->n_streams,
		.store_path = store_path(m->store),
		.store_elsewhere = store_is_elsewhere(m->store),
		.usage_known = m->usage_known,
		.usage = m->usage,
		.store_error = m->store_error,
		.config_source = m->config->source,
		.restart_keys = m->restart_keys,
		.unmatched_devices = m->unmatched,
	};
	struct json_object *status, *o;
	struct swaps areas = {0};
	int r;

	(void)message;
	in.swaps = manager_swaps_read(m, &areas) == 0 ? &areas : NULL;
	memcpy(in.host, m->host, sizeof(in.host));
	memcpy(in.kernel, m->kernel, sizeof(in.kernel));
	memcpy(in.capture_id, m->capture_id, sizeof(in.capture_id));
	memcpy(in.boot_id, m->boot_id, sizeof(in.boot_id));
	for (size_t i = 0; i < m->n_streams; i++) {
		struct manager_stream *s = &m->streams[i];
		const struct probes_kernel *k = probes_kernel(s->probes);

		streams[i].name = iot_stream_name(s->id);
		worker_status(s->worker, &streams[i].worker);
		streams[i].events_per_s = rate_per_s(&s->rate);
		streams[i].stalled = s->stalled;
		streams[i].n_rings = probes_n_rings(s->probes);
		if (streams[i].n_rings > 0)
			streams[i].ring_size_bytes = probes_ring(s->probes, 0)->size;
		streams[i].memory_known = probes_memory(s->probes, &streams[i].memory) == 0;
		streams[i].swap_out = k->swap_out;
		streams[i].swap_out_per_s = rate_per_s(&s->swap_out);
		streams[i].swap_in_per_s = rate_per_s(&s->swap_in);
		streams[i].swap_dropped = s->id == IOT_STREAM_BLOCK &&
					  m->config->block.swap == IOT_DROP_SWAP;
		streams[i].swap_in = k->swap_in;
		if (s->id == IOT_STREAM_PACKET)
			streams[i].identity = probes_identity_text(probes_packet_kernel(s->probes));
	}
	r = status_render(&in, &status);
	swaps_done(&areas);
	if (r < 0)
		return r;
	o = json_object_new_object();
	if (!o || json_object_object_add(o, "status", status) < 0) {
		json_object_put(o);
		json_object_put(status);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

static int op_in_flight(void *userdata, struct json_object **ret, char **message)
{
	struct manager *m = userdata;
	struct probes *p = m->streams[0].probes; /* the block stream is the first, if it is there */
	const struct probes_kernel *k = probes_kernel(p);
	_cleanup_free_ struct decode_block *d = calloc(1, sizeof(*d));
	_cleanup_free_ struct ev_block *events = NULL;
	size_t n = 0;
	int r;

	(void)message;
	if (!d)
		return -ENOMEM;
	r = m->streams[0].id == IOT_STREAM_BLOCK ? probes_in_flight(p, &events, &n) : 0;
	if (r < 0)
		return r;
	decode_block_init(d, k, probes_n_cpus(p));
	r = status_render_in_flight(d, events, n, manager_now_ns(), k->swap_out, k->swap_in, ret);
	/* How many are in flight is not known where nobody looks. */
	if (r == 0 && m->streams[0].id != IOT_STREAM_BLOCK &&
	    json_object_object_add(*ret, "total", NULL) < 0)
		return -ENOMEM;
	return r;
}

static bool bpf_stats_enabled(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");

	return f && fgetc(f) == '1';
}

/* What this kernel can tell as swap, and which areas make requests at all. */
static int add_swap(const struct manager *m, struct json_object *o)
{
	const struct probes_kernel *k = probes_kernel(m->streams[0].probes);
	struct json_object *swap = NULL;
	struct swaps areas = {0};
	int r = manager_swaps_read(m, &areas);

	r = status_render_swap(k->swap_out, k->swap_in, r == 0 ? &areas : NULL, &swap);
	swaps_done(&areas);
	if (r < 0)
		return r;
	if (json_object_object_add(o, "swap", swap) == 0)
		return 0;
	json_object_put(swap);
	return -ENOMEM;
}

static int op_probes(void *userdata, struct json_object **ret, char **message)
{
	struct manager *m = userdata;
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	int r = o && list ? 0 : -ENOMEM;

	(void)message;
	for (size_t i = 0; r == 0 && i < m->n_streams; i++) {
		struct manager_stream *s = &m->streams[i];
		_cleanup_free_ struct probes_run_stats *stats = NULL;
		const struct iot_probe *table;
		size_t n, n_stats = 0;

		table = probes_table(s->probes, &n);
		r = probes_run_stats(s->probes, &stats, &n_stats);
		if (r == 0)
			r = status_render_probes(iot_stream_name(s->id), table, n, stats, n_stats,
						 bpf_stats_enabled(), list);
	}
	if (r == 0 && json_object_object_add(o, "probes", list) == 0) {
		list = NULL;
		r = add_swap(m, o);
	} else if (r == 0) {
		r = -ENOMEM;
	}
	if (r < 0) {
		json_object_put(list);
		json_object_put(o);
		return r;
	}
	*ret = o;
	return 0;
}

static int op_config(void *userdata, struct json_object **ret, char **message)
{
	struct manager *m = userdata;
	_cleanup_free_ char *yaml = NULL;
	struct json_object *o, *text, *source;
	int r;

	(void)message;
	r = iot_config_dump(m->config, &yaml);
	if (r < 0)
		return r;
	o = json_object_new_object();
	text = json_object_new_string(yaml);
	source = json_object_new_string(m->config->source);
	if (o && text && json_object_object_add(o, "yaml", text) == 0) {
		text = NULL;
		if (source && json_object_object_add(o, "source", source) == 0) {
			*ret = o;
			return 0;
		}
	}
	json_object_put(o);
	json_object_put(text);
	json_object_put(source);
	return -ENOMEM;
}

/* ---- changes ------------------------------------------------------------------------------------ */

struct change_job {
	struct manager *m;
	uint64_t token;
	bool rotate;
	bool looked;
	bool selected[MANAGER_MAX_STREAMS];
	struct iot_retention rules; /* that delete nothing */
	struct store_usage usage;
	char names[MANAGER_MAX_STREAMS][128];
	char failed[512]; /* the file that it is about, or the stream */
};

static void change_free(struct change_job *j)
{
	free(j->rules.shipped);
	free(j);
}

static int change_run(void *arg)
{
	struct change_job *j = arg;
	int r;

	/* The end must not wait for a queue of changes on a stalled disk. */
	if (j->m->stopping)
		return -ECANCELED;
	for (size_t i = 0; i < j->m->n_streams; i++) {
		struct manager_stream *s = &j->m->streams[i];

		if (!j->selected[i])
			continue;
		r = j->rotate ? worker_rotate(s->worker, IOT_SEAL_REQUEST, j->names[i],
					      sizeof(j->names[i]))
			      : worker_flush(s->worker, j->names[i], sizeof(j->names[i]));
		if (r < 0) {
			if (j->names[i][0])
				snprintf(j->failed, sizeof(j->failed), "%s/%s",
					 store_path(j->m->store), j->names[i]);
			else
				snprintf(j->failed, sizeof(j->failed), "%s",
					 iot_stream_name(s->id));
			return r;
		}
	}
	/* Who asks for the status next is to find there what has been sealed. */
	j->looked = j->rotate && store_retain(j->m->store, &j->rules, &j->usage) == 0;
	return 0;
}

static struct json_object *change_reply(const struct change_job *j)
{
	struct json_object *o, *list, *name, *reply;

	if (!j->rotate)
		return control_reply(NULL, false, &reply) < 0 ? NULL : reply;
	o = json_object_new_object();
	list = json_object_new_array();
	if (!o || !list)
		goto oom;
	for (size_t i = 0; i < MANAGER_MAX_STREAMS; i++) {
		if (!j->names[i][0])
			continue;
		name = json_object_new_string(j->names[i]);
		if (!name || json_object_array_add(list, name) < 0) {
			json_object_put(name);
			goto oom;
		}
	}
	if (json_object_object_add(o, "segments", list) < 0)
		goto oom;
	return control_reply(o, false, &reply) < 0 ? NULL : reply;
oom:
	json_object_put(list);
	json_object_put(o);
	return NULL;
}

static void change_done(void *arg, int result)
{
	struct change_job *j = arg;
	struct json_object *reply = NULL;
	char text[640];

	if (result < 0) {
		if (result == -ECANCELED)
			snprintf(text, sizeof(text), "the daemon is stopping");
		else if (result == -ETIMEDOUT)
			snprintf(text, sizeof(text),
				 "%s: not done in time (the disk may be stalled); it may still "
				 "happen",
				 j->failed);
		else if (result == -ENOENT && !j->rotate)
			snprintf(text, sizeof(text),
				 "%s: deleted while it is written to; what is in it is lost at its "
				 "end",
				 j->failed);
		else
			snprintf(text, sizeof(text), "%s: %s", j->failed, strerror(-result));
		if (control_op_error(result, text, &reply) < 0)
			reply = NULL;
	} else {
		reply = change_reply(j);
	}
	if (j->looked) {
		j->m->usage = j->usage;
		j->m->usage_known = true;
	}
	control_finish(j->m->control, j->token, reply);
	change_free(j);
}

static int change(struct manager *m, uint64_t token, const char *stream, bool rotate,
		  char **message)
{
	struct change_job *j;
	bool found = false;
	int r;

	if (m->stopping) {
		*message = strdup("the daemon is stopping");
		return -EBUSY;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->m = m;
	j->token = token;
	j->rotate = rotate;
	/* Copied: the job outlives a reload's configuration. */
	j->rules.shipped = strdup(m->config->retention.shipped);
	if (!j->rules.shipped) {
		change_free(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->n_streams; i++) {
		j->selected[i] = !stream || strcmp(stream, iot_stream_name(m->streams[i].id)) == 0;
		found |= j->selected[i];
	}
	r = found ? jobs_submit(m->jobs, change_run, change_done, j) : -ENOENT;
	if (r < 0)
		change_free(j);
	if (r == -EBUSY)
		*message = strdup("too much is waiting for the disk already");
	return r;
}

static int op_rotate(void *userdata, uint64_t token, const char *stream, char **message)
{
	return change(userdata, token, stream, true, message);
}

static int op_flush(void *userdata, uint64_t token, char **message)
{
	return change(userdata, token, NULL, false, message);
}

const struct control_ops manager_control_ops = {
	.status = op_status,
	.in_flight = op_in_flight,
	.probes = op_probes,
	.config = op_config,
	.rotate = op_rotate,
	.flush = op_flush,
};
