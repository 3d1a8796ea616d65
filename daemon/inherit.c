// SPDX-License-Identifier: BSD-2-Clause
/* inherit.c - see inherit.h. */
#include <fcntl.h>

#include "daemon/crash-point.h"
#include "daemon/inherit.h"
#include "daemon/worker.h"

/* A capture whose adoption fails again and again is given up: better a gap than no recorder. */
#define MAX_ATTEMPTS 20U

static void name_of(char *buf, size_t size, uint64_t object, const char *what)
{
	snprintf(buf, size, "block.%016llx.%016llx.%s", (unsigned long long)adopt_wire(),
		 (unsigned long long)object, what);
}

static uint64_t hash_list(uint64_t hash, const struct iot_strv *v)
{
	hash = adopt_hash(hash, &v->n, sizeof(v->n));
	for (size_t i = 0; i < v->n; i++)
		hash = adopt_hash(hash, v->items[i], strlen(v->items[i]) + 1);
	return hash;
}

uint64_t inherit_config_hash(const struct iot_config *c)
{
	const uint64_t sizes[] = {
		c->block.enabled,	 c->packet.enabled,	  c->block.ring_size_bytes,
		c->block.ring_cpus,	 c->block.ledger_entries, c->block.in_flight_entries,
		(uint64_t)c->block.swap,
	};
	const char *without = getenv("IOTRACED_WITHOUT");
	uint64_t hash = adopt_hash(ADOPT_HASH_INIT, sizes, sizeof(sizes));

	hash = hash_list(hash, &c->devices.include);
	hash = hash_list(hash, &c->devices.exclude);
	if (without)
		hash = adopt_hash(hash, without, strlen(without));
	return hash ? hash : 1;
}

/* The descriptors with that prefix, by the rest of their names. */
static int gather(struct inherit *in, const char *prefix)
{
	size_t len = strlen(prefix);

	in->fds = calloc(in->store.n + 1, sizeof(*in->fds));
	if (!in->fds)
		return -ENOMEM;
	for (size_t i = 0; i < in->store.n; i++) {
		const struct fdstore_fd *f = &in->store.fds[i];
		struct probes_fd *to = &in->fds[in->n_fds];

		if (f->fd < 0 || strncmp(f->name, prefix, len) != 0 ||
		    strlen(f->name + len) >= sizeof(to->name))
			continue;
		snprintf(to->name, sizeof(to->name), "%s", f->name + len);
		to->fd = f->fd;
		in->n_fds++;
	}
	return 0;
}

/* The state, whatever programs it is of; *ret_prefix what its companions' names begin with. */
static struct fdstore_fd *find_state(struct inherit *in, char *ret_prefix, size_t size)
{
	static const char suffix[] = "state";
	char wire[64];

	snprintf(wire, sizeof(wire), "block.%016llx.", (unsigned long long)adopt_wire());
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

static const char *judge(struct inherit *in, const struct iot_config *c)
{
	char prefix[FDSTORE_NAME_MAX];
	struct fdstore_fd *f = find_state(in, prefix, sizeof(prefix));
	struct adopt_state *s;
	const char *why = "";
	int fd;

	if (!f)
		return "what was kept for us is of another build, or not whole";
	fd = f->fd;
	f->fd = -EBADF;
	if (adopt_open(fd, &in->adopt) < 0)
		return "the state that was kept for us cannot be read";
	if (gather(in, prefix) < 0)
		return "out of memory";
	s = adopt_edit(in->adopt);
	if (s->dead || (s->active.epoch && s->sealed >= s->active.epoch))
		why = "the capture before had ended";
	else if (!s->attach_ns)
		why = "the capture before had no segment yet";
	else if (s->attempts++ >= MAX_ATTEMPTS)
		why = "too many attempts to go on with the capture before";
	else
		in->how = INHERIT_CONTINUE;
	if (in->how == INHERIT_NOTHING) {
		adopt_commit(in->adopt);
		return why;
	}
	if (s->object != probes_object_hash(IOT_STREAM_BLOCK))
		why = "this build has other programs";
	else if (s->config != inherit_config_hash(c))
		why = "the configuration has changed";
	else if (!s->active.gate)
		why = "its daemon was stopping";
	if (*why)
		in->how = INHERIT_FINISH;
	adopt_commit(in->adopt);
	return why;
}

void inherit_look(struct inherit *in, const struct iot_config *c)
{
	*in = (struct inherit){};
	if (fdstore_take(&in->store) < 0)
		snprintf(in->why, sizeof(in->why), "not all that was kept for us was taken");
	if (in->store.n == 0)
		return;
	snprintf(in->why, sizeof(in->why), "%s", judge(in, c));
	if (in->how == INHERIT_NOTHING)
		inherit_drop(in);
}

void inherit_drop(struct inherit *in)
{
	fdstore_clear(&in->store);
	in->adopt = adopt_free(in->adopt);
	free(in->fds);
	in->fds = NULL;
	in->n_fds = 0;
	in->how = INHERIT_NOTHING;
}

int inherit_begin(struct inherit *in, const struct iot_config *c, const uint8_t capture_id[16])
{
	struct adopt_state *s;
	int r;

	/* Of two streams with one capture both or none could go on. */
	if (!fdstore_exists() || !c->block.enabled || c->packet.enabled)
		return 0;
	r = adopt_new(&in->adopt);
	if (r < 0)
		return r;
	s = adopt_edit(in->adopt);
	memcpy(s->capture_id, capture_id, sizeof(s->capture_id));
	s->object = probes_object_hash(IOT_STREAM_BLOCK);
	s->config = inherit_config_hash(c);
	adopt_commit(in->adopt);
	return 0;
}

void inherit_capture(struct inherit *in, uint8_t ret_id[16])
{
	memcpy(ret_id, adopt_edit(in->adopt)->capture_id, 16);
	adopt_commit(in->adopt);
}

void inherit_went_on(struct inherit *in)
{
	adopt_edit(in->adopt)->attempts = 0;
	adopt_commit(in->adopt);
}

int inherit_probes(struct inherit *in, const struct iot_config *c, struct probes **ret,
		   struct iot_error *err)
{
	struct probes_options po = {
		.stream = &c->block, .devices = &c->devices, .adopt = in->adopt};
	int r;

	r = probes_without_parse(getenv("IOTRACED_WITHOUT"), &po.without);
	if (r < 0)
		return iot_error_set(err, r, "IOTRACED_WITHOUT: not a list of what it knows");
	return probes_adopt(&po, in->fds, in->n_fds, ret, err);
}

int inherit_finish(struct inherit *in, const struct iot_config *c, struct store *store,
		   struct probes *probes, char *ret_name, size_t size, struct iot_error *err)
{
	const struct worker_options wo = {
		.config = c,
		.probes = probes,
		.store = store,
		.stream = IOT_STREAM_BLOCK,
		.adopt = in->adopt,
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

int inherit_leave(struct inherit *in, struct probes *p)
{
	_cleanup_free_ struct probes_fd *fds = NULL;
	char name[FDSTORE_NAME_MAX];
	uint64_t object = probes_object_hash(IOT_STREAM_BLOCK);
	size_t n;
	int r;

	r = probes_fds(p, &fds, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		name_of(name, sizeof(name), object, fds[i].name);
		r = fdstore_put(&in->store, name, fds[i].fd);
	}
	if (r < 0)
		return r;
	crash_point("left-objects");
	/* Last: whoever has it has everything. */
	name_of(name, sizeof(name), object, "state");
	r = fdstore_put(&in->store, name, adopt_fd(in->adopt));
	return r < 0 ? r : 0;
}

void inherit_done(struct inherit *in)
{
	fdstore_done(&in->store);
	in->adopt = adopt_free(in->adopt);
	free(in->fds);
	in->fds = NULL;
}
