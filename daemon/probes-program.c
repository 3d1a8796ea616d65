// SPDX-License-Identifier: BSD-2-Clause
/*
 * probes-program.c - packet: our programs at the entry and the return of one of somebody's.
 *
 * A program to be traced is named when the one that traces it is loaded, so the object is loaded once for each, with
 * the stream's maps in place of its own.
 */
#include <bpf/btf.h>
#include <fcntl.h>

#include "daemon/probes-programs.h"
#include "packet-program.skel.h"
#include "packet.skel.h"

/* In place of the object's own maps, but for its constants. */
static int share_maps(struct probes *p, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const struct bpf_map *shared =
			bpf_object__find_map_by_name(p->object, bpf_map__name(map));
		int r;

		if (bpf_map__is_internal(map) && strstr(bpf_map__name(map), ".rodata"))
			continue;
		r = shared ? bpf_map__reuse_fd(map, bpf_map__fd(shared)) : -ENOENT;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Opened, with the stream's maps and constants; no program is to be loaded yet. */
int program_open(struct probes *p, struct packet_program_bpf **ret)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/sys/kernel/btf/vmlinux");
	struct packet_program_bpf *skel = calloc(1, sizeof(*skel));
	const struct packet_bpf__rodata *from = p->packet_skel->rodata;
	struct bpf_program *program;
	int r;

	r = skel ? packet_program_bpf__create_skeleton(skel) : -ENOMEM;
	if (r >= 0) {
		skel->skeleton->data = p->programs->image;
		r = bpf_object__open_skeleton(skel->skeleton, &opts);
	}
	if (r >= 0)
		r = share_maps(p, skel->obj);
	if (r < 0) {
		packet_program_bpf__destroy(skel);
		return r;
	}
	bpf_object__for_each_program(program, skel->obj) bpf_program__set_autoload(program, false);
	skel->rodata->emit_n_cpus = from->emit_n_cpus;
	skel->rodata->emit_n_rings = from->emit_n_rings;
	skel->rodata->emit_ring_cpus = from->emit_ring_cpus;
	skel->rodata->emit_wake_bytes = from->emit_wake_bytes;
	skel->rodata->packet_has_filter = from->packet_has_filter;
	*ret = skel;
	return 0;
}

static int load_for(struct packet_program_bpf *skel, int target, const char *function,
		    struct bpf_program *entry, struct bpf_program *back)
{
	int r;

	bpf_program__set_autoload(entry, true);
	bpf_program__set_autoload(back, true);
	r = bpf_program__set_attach_target(entry, target, function);
	if (r >= 0)
		r = bpf_program__set_attach_target(back, target, function);
	return r < 0 ? r : packet_program_bpf__load(skel);
}

static int attach_one(struct bpf_program *program, int *ret_program, int *ret_link)
{
	struct bpf_link *link = bpf_program__attach(program);
	int r = 0;

	if (!link)
		return -errno;
	*ret_program = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 3);
	*ret_link = fcntl(bpf_link__fd(link), F_DUPFD_CLOEXEC, 3);
	if (*ret_program < 0 || *ret_link < 0)
		r = -errno;
	/* Of the link only the descriptor, whose copy we have. */
	bpf_link__destroy(link);
	return r;
}

static int close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
	return -EBADF;
}

/* The entry first: a return without an entry is a record without a flow, the reverse a gap. */
void program_detach(struct program *g)
{
	g->entry_link = close_fd(g->entry_link);
	g->back_link = close_fd(g->back_link);
	g->observed = false;
}

void program_close(struct program *g)
{
	program_detach(g);
	g->entry = close_fd(g->entry);
	g->back = close_fd(g->back);
	for (unsigned int i = 0; i < 2; i++)
		g->replaced[i] = close_fd(g->replaced[i]);
}

int program_attach(struct probes *p, struct program *g, int target, const char *function)
{
	const struct iot_probe *row = &p->table[g->row];
	bool xdp = row->program_kind == IOT_PROGRAM_XDP;
	struct packet_program_bpf *skel;
	int r;

	r = program_open(p, &skel);
	if (r < 0)
		return r;
	skel->rodata->program_probe = row->id;
	skel->rodata->program_id = g->id;
	if (xdp)
		r = load_for(skel, target, function, skel->progs.xdp_entry, skel->progs.xdp_return);
	else
		r = load_for(skel, target, function, skel->progs.tc_entry, skel->progs.tc_return);
	if (r >= 0)
		r = attach_one(xdp ? skel->progs.xdp_return : skel->progs.tc_return, &g->back,
			       &g->back_link);
	if (r >= 0)
		r = attach_one(xdp ? skel->progs.xdp_entry : skel->progs.tc_entry, &g->entry,
			       &g->entry_link);
	packet_program_bpf__destroy(skel);
	if (r < 0) {
		program_detach(g);
		g->entry = close_fd(g->entry);
		g->back = close_fd(g->back);
	}
	g->observed = r >= 0;
	return r;
}

/* ---- one of theirs ----------------------------------------------------------------------------- */

/* The name of the program's function, whole: the program's own is cut at 15 characters. */
static int function_name(int fd, const struct bpf_prog_info *known, char *ret, size_t size)
{
	struct bpf_prog_info info = {0};
	struct bpf_func_info first = {0};
	uint32_t len = sizeof(info);
	const struct btf_type *type;
	const char *name;
	struct btf *btf;
	int r;

	ret[0] = '\0';
	if (!known->btf_id || !known->nr_func_info || known->func_info_rec_size < sizeof(first))
		return 0;
	info.nr_func_info = 1;
	info.func_info_rec_size = sizeof(first);
	info.func_info = (uintptr_t)&first;
	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (r < 0)
		return r;
	btf = btf__load_from_kernel_by_id(known->btf_id);
	if (!btf)
		return -errno;
	type = btf__type_by_id(btf, first.type_id);
	name = type ? btf__name_by_offset(btf, type->name_off) : NULL;
	if (name)
		snprintf(ret, size, "%s", name);
	btf__free(btf);
	return 0;
}

int program_look_at(uint32_t id, struct target *ret)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	uint64_t now, asleep;
	int r;

	ret->fd = bpf_prog_get_fd_by_id(id);
	if (ret->fd < 0)
		return ret->fd;
	r = bpf_obj_get_info_by_fd(ret->fd, &info, &len);
	if (r >= 0)
		r = function_name(ret->fd, &info, ret->function, sizeof(ret->function));
	if (r < 0) {
		close(ret->fd);
		return r;
	}
	snprintf(ret->name, sizeof(ret->name), "%s", info.name);
	/* In this order, so that what is not exact makes it earlier: it is not there before that. */
	now = programs_clock_ns(CLOCK_MONOTONIC);
	asleep = programs_clock_ns(CLOCK_BOOTTIME) - now;
	ret->loaded_ns = info.load_time > asleep ? info.load_time - asleep : 1;
	return 0;
}

int probes_programs_missed(const struct program *g, uint64_t *ret)
{
	struct bpf_prog_info entry, back;
	int r = probes_program_info(g->entry, &entry);

	if (r >= 0)
		r = probes_program_info(g->back, &back);
	if (r >= 0)
		*ret = g->missed_before + entry.recursion_misses + back.recursion_misses;
	return r;
}
