/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-maps.c - the memory that programs and daemon share: rings, counter cells, control page,
 * epochs, ledgers and the identity map.
 *
 * Rings, cells and control are mmap'ed and used in place; everything else goes through bpf(2). Hash maps
 * are walked in batches (5.6), one key at a time where the kernel does not know batches. A ledger is
 * only read and cleared when its epoch has no writer left; the identity map has writers always, so a
 * walk over it may see an object twice or not at all.
 */
#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "daemon/crash-point.h"
#include "daemon/probes-internal.h"

#define WALK_CHUNK 1024U
#define REAP_IDLE_NS (60ULL * 1000000000ULL)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* ---- dimensions ------------------------------------------------------------------------------- */

/* Highest number in a CPU list like "0-3,8-11"; the last one, since lists are sorted. */
static int highest_cpu(const char *path, unsigned int *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char buf[4096];
	uint64_t cpu;
	ssize_t n;
	char *s;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf) - 1);
	if (n < 0)
		return -errno;
	while (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	s = buf + n;
	while (s > buf && s[-1] >= '0' && s[-1] <= '9')
		s--;
	r = iot_parse_u64(s, &cpu);
	if (r < 0)
		return r;
	*ret = (unsigned int)cpu;
	return 0;
}

int probes_maps_size(struct probes *p, const struct iot_stream_config *stream,
		     struct probes_dimensions *ret, struct iot_error *err)
{
	unsigned int possible = 0, online = 0, ring_cpus = IOT_MAX(stream->ring_cpus, 1U);
	uint32_t ledger = (uint32_t)IOT_MAX(stream->ledger_entries, 1U);
	int r;

	/* Numbers may have holes and CPUs may come later: cells are indexed by number, so by the highest. */
	r = highest_cpu("/sys/devices/system/cpu/possible", &possible);
	if (r >= 0)
		r = highest_cpu("/sys/devices/system/cpu/online", &online);
	if (r < 0)
		return iot_error_set(err, r,
				     "cannot read the CPU lists in /sys/devices/system/cpu: %s",
				     strerror(-r));
	p->n_cpus = possible + 1;
	/* Machines may allow for far more CPUs than they have: rings are for those online, others share. */
	while ((online + ring_cpus) / ring_cpus > IOT_MAX_RINGS)
		ring_cpus *= 2;
	p->n_rings = (online + ring_cpus) / ring_cpus;
	p->ring_size_bytes = stream->ring_size_bytes;
	if (p->ring_size_bytes == 0 || (p->ring_size_bytes & (p->ring_size_bytes - 1)) ||
	    p->ring_size_bytes % (uint64_t)sysconf(_SC_PAGESIZE) || p->ring_size_bytes > 1U << 30)
		return iot_error_set(
			err, -EINVAL,
			"ring size %llu: must be a power of two, whole pages and at most 1 GiB",
			(unsigned long long)p->ring_size_bytes);
	if ((r = bpf_map__set_max_entries(p->maps.cells, 2 * p->n_cpus * p->n_probes)) < 0 ||
	    (r = bpf_map__set_max_entries(p->maps.rings, p->n_rings)) < 0 ||
	    (r = bpf_map__set_max_entries(p->maps.ledger[0], ledger)) < 0 ||
	    (r = bpf_map__set_max_entries(p->maps.ledger[1], ledger)) < 0 ||
	    (r = bpf_map__set_max_entries(p->maps.identities, p->identity_entries)) < 0)
		return iot_error_set(err, r, "cannot size the maps: %s", strerror(-r));
	*ret = (struct probes_dimensions){
		.n_cpus = p->n_cpus,
		.n_rings = p->n_rings,
		.ring_cpus = ring_cpus,
		.wake_bytes = p->ring_size_bytes / 4,
	};
	return 0;
}

/* ---- mapped memory ---------------------------------------------------------------------------- */

static int ring_create(struct probes *p, unsigned int i)
{
	struct probes_ring *ring = &p->rings[i];
	uint32_t key = i;
	int r;

	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "iotraced_ring", 0, 0,
				  (uint32_t)p->ring_size_bytes, NULL);
	if (ring->fd < 0)
		return ring->fd;
	r = bpf_map_update_elem(bpf_map__fd(p->maps.rings), &key, &ring->fd, BPF_ANY);
	return r < 0 ? r : 0;
}

static int ring_map(struct probes *p, unsigned int i)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct probes_ring *ring = &p->rings[i];
	void *m;

	/* The kernel's layout (5.8): consumer page, producer page, then the data twice in a row. */
	m = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (m == MAP_FAILED)
		return -errno;
	ring->consumer = m;
	m = mmap(NULL, page + 2 * p->ring_size_bytes, PROT_READ, MAP_SHARED, ring->fd, (off_t)page);
	if (m == MAP_FAILED)
		return -errno;
	ring->producer = m;
	ring->data = (const uint8_t *)m + page;
	ring->size = p->ring_size_bytes;
	return 0;
}

static int map_memory(int fd, size_t bytes, void **ret)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (m == MAP_FAILED)
		return -errno;
	*ret = m;
	return 0;
}

int probes_maps_map(struct probes *p, struct iot_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *m = NULL;
	int r;

	p->cells_bytes = 2UL * p->n_cpus * p->n_probes * sizeof(struct ev_cell);
	r = map_memory(bpf_map__fd(p->maps.cells), (p->cells_bytes + page - 1) / page * page, &m);
	if (r < 0)
		return iot_error_set(err, r, "cannot map the counters: %s", strerror(-r));
	p->cells = m;
	r = map_memory(bpf_map__fd(p->maps.control), page, &m);
	if (r < 0)
		return iot_error_set(err, r, "cannot map the control page: %s", strerror(-r));
	p->control = m;
	for (unsigned int i = 0; i < p->n_rings; i++) {
		r = ring_map(p, i);
		if (r < 0)
			return iot_error_set(err, r, "cannot map ring %u of %llu bytes: %s", i,
					     (unsigned long long)p->ring_size_bytes, strerror(-r));
	}
	return 0;
}

int probes_maps_fill(struct probes *p, struct iot_error *err)
{
	int r;

	for (unsigned int i = 0; i < p->n_rings; i++) {
		r = ring_create(p, i);
		if (r < 0)
			return iot_error_set(err, r, "cannot make ring %u of %llu bytes: %s", i,
					     (unsigned long long)p->ring_size_bytes, strerror(-r));
	}
	r = probes_maps_map(p, err);
	if (r < 0)
		return r;
	r = probes_flip(p, 1);
	if (r < 0)
		return iot_error_set(err, r, "cannot set up the maps: %s", strerror(-r));
	return 0;
}

void probes_maps_done(struct probes *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned int i = 0; i < p->n_rings; i++) {
		struct probes_ring *ring = &p->rings[i];

		if (ring->consumer)
			munmap(ring->consumer, page);
		if (ring->producer)
			munmap((void *)(uintptr_t)ring->producer, page + 2 * p->ring_size_bytes);
		if (ring->fd > 0)
			close(ring->fd);
		*ring = (struct probes_ring){.fd = -EBADF};
	}
	if (p->cells)
		munmap(p->cells, (p->cells_bytes + page - 1) / page * page);
	if (p->control)
		munmap(p->control, page);
	p->cells = NULL;
	p->control = NULL;
}

/* ---- walking hash maps ------------------------------------------------------------------------ */

typedef int walk_fn(void *arg, const void *key, const void *value);

static int walk_by_key(int fd, size_t key_size, size_t value_size, walk_fn *fn, void *arg)
{
	_cleanup_free_ uint8_t *key = NULL, *next = NULL, *value = NULL;
	bool first = true;
	int r;

	key = malloc(key_size);
	next = malloc(key_size);
	value = malloc(value_size);
	if (!key || !next || !value)
		return -ENOMEM;
	while ((r = bpf_map_get_next_key(fd, first ? NULL : key, next)) == 0) {
		memcpy(key, next, key_size);
		first = false;
		r = bpf_map_lookup_elem(fd, key, value);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		r = fn(arg, key, value);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

/* Calls fn for every entry; ends at the first negative return. */
static int walk(int fd, size_t key_size, size_t value_size, walk_fn *fn, void *arg)
{
	_cleanup_free_ uint8_t *keys = NULL, *values = NULL;
	uint8_t position[64]; /* the kernel's: a bucket number for hashes */
	uint32_t chunk = WALK_CHUNK, n;
	bool first = true;
	int r, done;

	for (;;) {
		if (!keys) {
			keys = calloc(chunk, key_size);
			values = calloc(chunk, value_size);
			if (!keys || !values)
				return -ENOMEM;
		}
		n = chunk;
		done = bpf_map_lookup_batch(fd, first ? NULL : position, position, keys, values, &n,
					    NULL);
		if (done == -ENOSPC) {
			/* One bucket holds more than fits: nothing was taken, the position is unchanged. */
			free(keys);
			free(values);
			keys = values = NULL;
			chunk *= 2;
			continue;
		}
		if (first && done < 0 && done != -ENOENT)
			return walk_by_key(fd, key_size, value_size, fn, arg);
		if (done < 0 && done != -ENOENT)
			return done;
		for (uint32_t i = 0; i < n; i++) {
			r = fn(arg, keys + i * key_size, values + i * value_size);
			if (r < 0)
				return r;
		}
		if (done == -ENOENT)
			return 0;
		first = false;
	}
}

/* A growing pair of arrays for walk(). */
struct gather {
	uint8_t *keys;
	uint8_t *values; /* NULL throughout: keys only */
	size_t key_size;
	size_t value_size;
	size_t n;
	size_t n_allocated;
	bool with_values;
	/* gather_reapable */
	uint64_t before_ns;
	uint64_t (*idle_since)(const void *value);
};

static int gather_add(struct gather *g, const void *key, const void *value)
{
	if (g->n == g->n_allocated) {
		size_t n = g->n_allocated ? 2 * g->n_allocated : 256;
		uint8_t *keys, *values;

		keys = reallocarray(g->keys, n, g->key_size);
		if (!keys)
			return -ENOMEM;
		g->keys = keys;
		if (g->with_values) {
			values = reallocarray(g->values, n, g->value_size);
			if (!values)
				return -ENOMEM;
			g->values = values;
		}
		g->n_allocated = n;
	}
	memcpy(g->keys + g->n * g->key_size, key, g->key_size);
	if (g->with_values)
		memcpy(g->values + g->n * g->value_size, value, g->value_size);
	g->n++;
	return 0;
}

static void gather_done(struct gather *g)
{
	free(g->keys);
	free(g->values);
}

static int gather_all(void *arg, const void *key, const void *value)
{
	return gather_add(arg, key, value);
}

/* ---- epochs ----------------------------------------------------------------------------------- */

static int gather_reapable(void *arg, const void *key, const void *value)
{
	struct gather *g = arg;
	uint64_t since = g->idle_since(value);

	return since && since < g->before_ns ? gather_add(g, key, value) : 0;
}

/* Programs leave idle entries older than before_ns alone by now (block_slot(), packet_entry()). */
static int reap(struct probes *p, uint64_t before_ns)
{
	int fd = bpf_map__fd(p->maps.identities), r;
	_cleanup_(gather_done) struct gather g = {
		.key_size = sizeof(uint64_t),
		.value_size = p->identity_bytes,
		.before_ns = before_ns,
		.idle_since = p->idle_since,
	};

	r = walk(fd, g.key_size, g.value_size, gather_reapable, &g);
	/* Counted one by one: whoever adopts the map after us goes by the same number. */
	for (size_t i = 0; r >= 0 && i < g.n; i++)
		if (bpf_map_delete_elem(fd, g.keys + i * g.key_size) == 0)
			__atomic_fetch_sub(&p->control->identities, 1, __ATOMIC_RELAXED);
	return r;
}

int probes_publish(struct probes *p, const struct ev_epoch *next)
{
	_cleanup_close_ int inner = -EBADF;
	uint32_t zero = 0;
	int r;

	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "iotraced_epoch", sizeof(zero), sizeof(*next), 1,
			       NULL);
	if (inner < 0)
		return inner;
	r = bpf_map_update_elem(inner, &zero, next, BPF_ANY);
	if (r < 0)
		return r;
	/* Noted first: a successor publishes it once more, whether or not we got to it. */
	probes_note_active(p, next);
	/* From user space, the update of a map of maps waits for running programs (1ae80cf31938, 5.0). */
	r = bpf_map_update_elem(bpf_map__fd(p->maps.epochs), &zero, &inner, BPF_ANY);
	if (r < 0) {
		probes_note_active(p, &p->active);
		return r;
	}
	p->active = *next;
	return 0;
}

static int flip_locked(struct probes *p, uint64_t epoch)
{
	struct ev_epoch next = p->active;
	uint64_t now = now_ns();
	int r, q;

	next.epoch = epoch;
	/* The wait for the flip is also the one that reaping needs, so a crowded map is reaped here. */
	if (__atomic_load_n(&p->control->identities, __ATOMIC_RELAXED) >
	    p->identity_entries / 4 * 3)
		next.reap_before_ns = now - IOT_MIN(now, REAP_IDLE_NS);
	r = probes_publish(p, &next);
	if (r < 0 || !next.reap_before_ns)
		return r;
	r = reap(p, next.reap_before_ns);
	next.reap_before_ns = 0;
	q = probes_publish(p, &next);
	return r < 0 ? r : q;
}

int probes_flip(struct probes *p, uint64_t epoch)
{
	int r;

	pthread_mutex_lock(&p->lock);
	r = flip_locked(p, epoch);
	pthread_mutex_unlock(&p->lock);
	return r;
}

static int ledger_fd(struct probes *p, unsigned int slot)
{
	return bpf_map__fd(p->maps.ledger[slot & 1]);
}

static int ledger_read(struct probes *p, unsigned int slot, struct ev_ledger_key **ret_keys,
		       void **ret_vals, size_t *ret_n)
{
	_cleanup_(gather_done) struct gather g = {
		.key_size = sizeof(struct ev_ledger_key),
		.value_size = p->ledger_val_bytes,
		.with_values = true,
	};
	int r;

	r = walk(ledger_fd(p, slot), g.key_size, g.value_size, gather_all, &g);
	if (r < 0)
		return r;
	*ret_keys = (struct ev_ledger_key *)IOT_TAKE_PTR(g.keys);
	*ret_vals = IOT_TAKE_PTR(g.values);
	*ret_n = g.n;
	return 0;
}

int probes_ledger_read(struct probes *p, unsigned int slot, struct ev_ledger_key **ret_keys,
		       struct ev_ledger_val **ret_vals, size_t *ret_n)
{
	void *vals = NULL;
	int r;

	assert(p->kind == IOT_STREAM_BLOCK);
	r = ledger_read(p, slot, ret_keys, &vals, ret_n);
	if (r >= 0)
		*ret_vals = vals;
	return r;
}

int probes_packet_ledger_read(struct probes *p, unsigned int slot, struct ev_ledger_key **ret_keys,
			      struct ev_packet_loss **ret_vals, size_t *ret_n)
{
	void *vals = NULL;
	int r;

	assert(p->kind == IOT_STREAM_PACKET);
	r = ledger_read(p, slot, ret_keys, &vals, ret_n);
	if (r >= 0)
		*ret_vals = vals;
	return r;
}

int probes_slot_clear(struct probes *p, unsigned int slot)
{
	_cleanup_(gather_done) struct gather g = {
		.key_size = sizeof(struct ev_ledger_key),
		.value_size = p->ledger_val_bytes,
	};
	int fd = ledger_fd(p, slot), r;
	uint32_t n;

	r = walk(fd, g.key_size, g.value_size, gather_all, &g);
	if (r < 0)
		return r;
	n = (uint32_t)g.n;
	if (n > 0 && bpf_map_delete_batch(fd, g.keys, &n, NULL) < 0) {
		for (size_t i = 0; i < g.n; i++) {
			r = bpf_map_delete_elem(fd, g.keys + i * g.key_size);
			if (r < 0 && r != -ENOENT)
				return r;
		}
	}
	crash_point("clearing");
	memset(probes_cell(p, slot & 1, 0, p->first_probe), 0, p->cells_bytes / 2);
	return 0;
}

/* ---- in flight -------------------------------------------------------------------------------- */

static int gather_in_flight(void *arg, const void *key, const void *value)
{
	const struct ev_block *e = value;
	struct gather *g = arg;

	(void)key;
	/* A fresh entry has no id before block_begin() is through. */
	if (!(e->state & EV_BLOCK_IN_FLIGHT) || (e->state & EV_BLOCK_NOT_SELECTED) || !e->hdr.id)
		return 0;
	return gather_add(g, value, NULL);
}

int probes_in_flight(struct probes *p, struct ev_block **ret, size_t *ret_n)
{
	_cleanup_(gather_done) struct gather g = {.key_size = sizeof(struct ev_block)};
	int r;

	assert(p->kind == IOT_STREAM_BLOCK);
	r = walk(bpf_map__fd(p->maps.identities), sizeof(uint64_t), sizeof(struct ev_block),
		 gather_in_flight, &g);
	if (r < 0)
		return r;
	*ret = (struct ev_block *)IOT_TAKE_PTR(g.keys);
	*ret_n = g.n;
	return 0;
}

/* ---- figures ---------------------------------------------------------------------------------- */

static int map_bytes(int fd, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "memlock:", 8) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		return iot_parse_u64(line + 8 + strspn(line + 8, " \t"), ret);
	}
	return -ENODATA;
}

int probes_memory(struct probes *p, struct probes_memory *ret)
{
	struct probes_memory m = {0};
	struct bpf_map *map;
	uint64_t bytes = 0;
	int r;

	bpf_object__for_each_map(map, p->object)
	{
		r = map_bytes(bpf_map__fd(map), &bytes);
		if (r < 0)
			return r;
		m.maps_bytes += bytes;
	}
	for (unsigned int i = 0; i < p->n_rings; i++) {
		r = map_bytes(p->rings[i].fd, &bytes);
		if (r < 0)
			return r;
		m.rings_bytes += bytes;
	}
	*ret = m;
	return 0;
}

/* ---- borrowed --------------------------------------------------------------------------------- */

unsigned int probes_n_rings(const struct probes *p)
{
	return p->n_rings;
}

struct probes_ring *probes_ring(struct probes *p, unsigned int i)
{
	return &p->rings[i];
}

struct ev_control *probes_control(struct probes *p)
{
	return p->control;
}

unsigned int probes_n_cpus(const struct probes *p)
{
	return p->n_cpus;
}

struct ev_cell *probes_cell(struct probes *p, unsigned int slot, unsigned int cpu,
			    unsigned int probe)
{
	return &p->cells[EV_CELL_INDEX(slot, cpu, p->n_cpus, probe - p->first_probe, p->n_probes)];
}
