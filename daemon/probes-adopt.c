// SPDX-License-Identifier: BSD-2-Clause
/*
 * probes-adopt.c - handing the kernel side on, and taking over what a predecessor left.
 *
 * Programs stay attached while somebody holds their links, and maps live while somebody holds them: so
 * whoever keeps the descriptors of probes_fds() keeps the capture going without a daemon. A successor does
 * not load anything. It opens the same object, puts the inherited maps in its place (so that the rest of
 * the code finds them where it always does), and keeps links and programs as plain descriptors. The
 * programs' constants are read back from the frozen .rodata map; the probe table is in the state.
 *
 * Nothing of a descriptor is believed but what the kernel says of it: kind, sizes, number of entries.
 */
#include <assert.h>
#include <fcntl.h>

#include "daemon/adopt.h"
#include "daemon/probes-internal.h"

struct inherited {
	const struct probes_fd *fds;
	size_t n;
};

/* The descriptor of that name, or of the first that begins so if the name ends in a dot. */
static const struct probes_fd *find(const struct inherited *in, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < in->n; i++) {
		if (len && name[len - 1] == '.' ? strncmp(in->fds[i].name, name, len) == 0
						: strcmp(in->fds[i].name, name) == 0)
			return &in->fds[i];
	}
	return NULL;
}

static int find_fd(void *arg, const char *name)
{
	const struct probes_fd *found = find(arg, name);

	return found ? found->fd : -ENOENT;
}

/* ---- handing on ------------------------------------------------------------------------------- */

static void add(struct probes_fd *fds, size_t *n, int fd, const char *kind, const char *name)
{
	snprintf(fds[*n].name, sizeof(fds[*n].name), "%s.%s", kind, name);
	fds[(*n)++].fd = fd;
}

int probes_fds(struct probes *p, struct probes_fd **ret, size_t *ret_n)
{
	struct probes_fd *fds;
	struct bpf_map *map;
	size_t n = 0, room = p->n_rings + 4 * p->n_rows;
	char text[48];

	bpf_object__for_each_map(map, p->object) room++;
	fds = calloc(room, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	bpf_object__for_each_map(map, p->object)
	{
		add(fds, &n, bpf_map__fd(map), "map", bpf_map__name(map));
	}
	for (unsigned int i = 0; i < p->n_rings; i++) {
		snprintf(text, sizeof(text), "%u", i);
		add(fds, &n, p->rings[i].fd, "ring", text);
	}
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->table[i].state != IOT_ATTACH_ATTACHED)
			continue;
		snprintf(text, sizeof(text), "%u", p->table[i].id);
		add(fds, &n, p->rows[i].link_fd, "link", text);
		snprintf(text, sizeof(text), "%u.%s", p->table[i].id,
			 bpf_program__name(p->rows[i].program));
		add(fds, &n, p->rows[i].program_fd, "prog", text);
		if (p->rows[i].copy_fd < 0)
			continue;
		snprintf(text, sizeof(text), "%u", p->table[i].id);
		add(fds, &n, p->rows[i].copy_link_fd, "link2", text);
		add(fds, &n, p->rows[i].copy_fd, "prog2", text);
	}
	assert(n <= room);
	*ret = fds;
	*ret_n = n;
	return 0;
}

uint64_t probes_object_hash(enum iot_stream stream)
{
	return stream == IOT_STREAM_BLOCK ? probes_block_hash() : probes_packet_hash();
}

void probes_note_active(struct probes *p, const struct ev_epoch *active)
{
	if (!p->adopt)
		return;
	adopt_edit(p->adopt)->active = *active;
	adopt_commit(p->adopt);
}

void probes_note_table(struct probes *p)
{
	struct adopt_state *s;

	if (!p->adopt)
		return;
	s = adopt_edit(p->adopt);
	s->n_rows = (uint32_t)p->n_rows;
	memcpy(s->table, p->table, p->n_rows * sizeof(p->table[0]));
	for (size_t i = 0; i < p->n_rows; i++)
		s->twice[i] = p->rows[i].copy_fd >= 0;
	if (p->kind == IOT_STREAM_PACKET) {
		s->exact_identity = p->packet_kernel.exact_identity;
		memcpy(s->identity_detail, p->packet_kernel.identity_detail,
		       sizeof(s->identity_detail));
	}
	adopt_commit(p->adopt);
}

/* ---- taking over ------------------------------------------------------------------------------ */

static int map_info(int fd, struct bpf_map_info *ret)
{
	uint32_t len = sizeof(*ret);
	int r;

	memset(ret, 0, sizeof(*ret));
	r = bpf_obj_get_info_by_fd(fd, ret, &len);
	return r < 0 ? r : 0;
}

static int take_rings(struct probes *p, const struct inherited *in)
{
	for (unsigned int i = 0; i < p->n_rings; i++) {
		struct bpf_map_info info;
		char name[32];
		int fd, r;

		snprintf(name, sizeof(name), "ring.%u", i);
		fd = find_fd((void *)(uintptr_t)in, name);
		if (fd < 0)
			return fd;
		r = map_info(fd, &info);
		if (r < 0)
			return r;
		if (info.type != BPF_MAP_TYPE_RINGBUF || !info.max_entries ||
		    (i > 0 && info.max_entries != p->ring_size_bytes))
			return -EBADMSG;
		p->ring_size_bytes = info.max_entries;
		p->rings[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (p->rings[i].fd < 0)
			return -errno;
	}
	return 0;
}

/* A link and the program that it is said to run. */
static int take_link(int link_fd, int program_fd, int *ret_link_fd, int *ret_program_fd)
{
	struct bpf_link_info link;
	struct bpf_prog_info prog = {};
	uint32_t len = sizeof(prog);
	int r;

	r = bpf_obj_get_info_by_fd(program_fd, &prog, &len);
	if (r < 0)
		return r;
	/* Before 5.15 (b89fbfbb854c) a kprobe's link is its perf event, of which there is no such info. */
	memset(&link, 0, sizeof(link));
	len = sizeof(link);
	if (bpf_obj_get_info_by_fd(link_fd, &link, &len) == 0 && link.prog_id != prog.id)
		return -EBADMSG;
	*ret_link_fd = fcntl(link_fd, F_DUPFD_CLOEXEC, 3);
	*ret_program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, 3);
	return *ret_link_fd < 0 || *ret_program_fd < 0 ? -EMFILE : 0;
}

static int take_copy(struct probes *p, size_t i, struct inherited *in)
{
	char name[32];
	int link, program;

	snprintf(name, sizeof(name), "link2.%u", p->table[i].id);
	link = find_fd(in, name);
	snprintf(name, sizeof(name), "prog2.%u", p->table[i].id);
	program = find_fd(in, name);
	if (link < 0 || program < 0)
		return -ENOENT;
	return take_link(link, program, &p->rows[i].copy_link_fd, &p->rows[i].copy_fd);
}

static int take_row(struct probes *p, size_t i, const struct adopt_state *s, bool same,
		    struct inherited *in)
{
	struct probes_row *row = &p->rows[i];
	const struct probes_fd *program;
	char name[32];
	int fd, r;

	row->adopted = true;
	if (p->table[i].state != IOT_ATTACH_ATTACHED)
		return 0;
	snprintf(name, sizeof(name), "link.%u", p->table[i].id);
	fd = find_fd(in, name);
	snprintf(name, sizeof(name), "prog.%u.", p->table[i].id);
	program = find(in, name);
	if (fd < 0 || !program)
		return -ENOENT;
	row->program = bpf_object__find_program_by_name(p->object, program->name + strlen(name));
	if (!row->program && same)
		return -EBADMSG;
	r = take_link(fd, program->fd, &row->link_fd, &row->program_fd);
	return r >= 0 && s->twice[i] ? take_copy(p, i, in) : r;
}

/* Dimensions are those of the maps: the configuration may have changed. */
static int take_dimensions(struct probes *p, const struct adopt_state *s)
{
	struct bpf_map_info cells, rings, identities;
	int r;

	if (!s->n_cpus || !s->n_rings || s->n_rings > IOT_MAX_RINGS)
		return -EBADMSG;
	if (bpf_map__fd(p->maps.control) < 0 || bpf_map__fd(p->maps.epochs) < 0 ||
	    bpf_map__fd(p->maps.ledger[0]) < 0 || bpf_map__fd(p->maps.ledger[1]) < 0)
		return -ENOENT;
	r = map_info(bpf_map__fd(p->maps.cells), &cells);
	if (r >= 0)
		r = map_info(bpf_map__fd(p->maps.rings), &rings);
	if (r >= 0)
		r = map_info(bpf_map__fd(p->maps.identities), &identities);
	if (r < 0)
		return r;
	if (cells.max_entries != 2 * s->n_cpus * p->n_probes ||
	    cells.value_size != sizeof(struct ev_cell) || rings.max_entries != s->n_rings ||
	    identities.value_size != p->identity_bytes)
		return -EBADMSG;
	p->n_cpus = s->n_cpus;
	p->n_rings = s->n_rings;
	p->identity_entries = identities.max_entries;
	return 0;
}

/* same: of the same programs, so all maps must be there; else what the two builds have in common. */
static int take_maps(struct probes *p, bool same, struct inherited *in, struct iot_error *err)
{
	struct bpf_map *map;
	int r;

	bpf_object__for_each_map(map, p->object)
	{
		char name[64];
		int fd;

		snprintf(name, sizeof(name), "map.%s", bpf_map__name(map));
		fd = find_fd(in, name);
		if (fd < 0 && !same)
			continue;
		if (fd < 0)
			return iot_error_set(err, fd, "%s was not inherited", name);
		r = bpf_map__reuse_fd(map, fd);
		if (r < 0)
			return iot_error_set(err, r, "%s cannot be used: %s", name, strerror(-r));
	}
	if (!same)
		return 0;
	r = p->kind == IOT_STREAM_BLOCK ? probes_block_reused(p) : probes_packet_reused(p);
	return r < 0 ? iot_error_set(err, r, "the programs' variables cannot be used: %s",
				     strerror(-r))
		     : 0;
}

/* What the predecessor found out about ids, and how far its counts of missed runs had come: they never go back. */
static void take_identity(struct probes *p, const struct adopt_state *s)
{
	struct probes_packet_kernel *k = &p->packet_kernel;

	k->exact_identity = s->exact_identity;
	memcpy(k->identity_detail, s->identity_detail, sizeof(k->identity_detail));
	k->identity_detail[sizeof(k->identity_detail) - 1] = '\0';
	for (size_t i = 0; i < p->n_rows; i++) {
		for (unsigned int slot = 0; slot < 2; slot++) {
			uint64_t missed = s->slots[slot].misses[p->table[i].id - p->first_probe];

			if (s->slots[slot].epoch && missed != IOT_COUNT_UNKNOWN)
				p->rows[i].missed = IOT_MAX(p->rows[i].missed, missed);
		}
	}
}

static int take(struct probes *p, const struct probes_options *opts, struct inherited *in,
		struct iot_error *err)
{
	_cleanup_free_ struct adopt_state *s = malloc(sizeof(*s));
	bool same;
	int r;

	if (!s)
		return iot_error_set(err, -ENOMEM, "out of memory");
	adopt_read(p->adopt, s);
	same = s->object == probes_object_hash(p->kind);
	r = p->kind == IOT_STREAM_BLOCK ? probes_block_open(p, opts, err)
					: probes_packet_open(p, err);
	if (r >= 0)
		r = take_maps(p, same, in, err);
	if (r < 0)
		return r;
	r = take_dimensions(p, s);
	if (r < 0)
		return iot_error_set(err, r, "the inherited maps are of other dimensions");
	r = take_rings(p, in);
	if (r < 0)
		return iot_error_set(err, r, "not all rings were inherited: %s", strerror(-r));
	p->n_rows = s->n_rows;
	memcpy(p->table, s->table, p->n_rows * sizeof(p->table[0]));
	for (size_t i = 0; i < p->n_rows; i++) {
		if (p->table[i].id < p->first_probe ||
		    p->table[i].id - p->first_probe >= p->n_probes)
			return iot_error_set(err, -EBADMSG, "the state names a probe that is none");
		r = take_row(p, i, s, same, in);
		if (r < 0)
			return iot_error_set(err, r, "probe %s was not inherited: %s",
					     p->table[i].name, strerror(-r));
	}
	p->active = s->active;
	if (p->kind == IOT_STREAM_PACKET)
		take_identity(p, s);
	return probes_maps_map(p, err);
}

int probes_adopt(const struct probes_options *opts, const struct probes_fd *fds, size_t n,
		 struct probes **ret, struct iot_error *err)
{
	struct inherited in = {.fds = fds, .n = n};
	libbpf_print_fn_t print_before;
	struct probes *p;
	int r;

	assert(opts->adopt);
	p = probes_alloc(opts);
	if (!p)
		return iot_error_set(err, -ENOMEM, "out of memory");
	print_before = libbpf_set_print(NULL);
	r = take(p, opts, &in, err);
	libbpf_set_print(print_before);
	if (r < 0) {
		probes_close(p);
		return r;
	}
	*ret = p;
	return 0;
}
