// SPDX-License-Identifier: BSD-2-Clause
/*
 * probes-programs.c - packet: TC and XDP programs that others have loaded, each as a probe of its own.
 *
 * A program is found in the kernel's own list (bpf/packet-program.bpf.c), gets the next number of the capture, and
 * two programs of ours at its entry and its return. Nothing of that is indispensable: where programs may not be listed
 * or traced, the probe table says so.
 *
 * Whoever traces a program holds it, so that it would never be unloaded while we record. The list says how many hold
 * it: if nobody does but our two links (and the list itself), it is let go. That must not lose a run, so first
 * all running programs are waited for; a program that nobody holds is not run again. Should somebody take it in that
 * very moment (by its number), it is observed anew, says since when, and is not let go again.
 *
 * A program that comes while we record may run before it is observed: from when it was loaded (which the kernel
 * tells) to when our programs are attached, what it did is in doubt, no longer.
 */
#include <assert.h>

#include "daemon/probes-filter.h"
#include "daemon/probes-programs.h"
#include "packet-program.skel.h"

/* Our two links, and the list, which holds what it is looking at. */
#define OWN_REFERENCES 3
#define VANISH_TRIES 50
#define VANISH_PAUSE_NS 2000000L

static int attach_target(struct probes *p, struct program *g, const struct target *t, char *why,
			 size_t size)
{
	int r;

	if (!t->function[0]) {
		snprintf(why, size, "it was loaded without BTF");
		return -EOPNOTSUPP;
	}
	probes_first_complaint[0] = '\0';
	r = program_attach(p, g, t->fd, t->function);
	if (r < 0)
		snprintf(why, size, "%s", strerror(-r));
	return r;
}

/* The table's row is whole before anybody finds it. */
static void publish_row(struct probes *p, size_t i)
{
	assert(i == p->n_rows);
	__atomic_store_n(&p->n_rows, i + 1, __ATOMIC_RELEASE);
	probes_note_table(p);
}

static bool gate_is_open(struct probes *p)
{
	bool open;

	pthread_mutex_lock(&p->lock);
	open = p->active.gate;
	pthread_mutex_unlock(&p->lock);
	return open;
}

static void out_of_numbers(struct probes *p)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		struct iot_probe *row = &p->table[i];

		if (row->id != EV_PROBE_PACKET_PROGRAM || row->state == IOT_ATTACH_REFUSED)
			continue;
		row->error = -ENOSPC;
		snprintf(row->detail, sizeof(row->detail),
			 "%d programs were seen; those loaded since are not observed",
			 PROGRAMS_MAX);
		row->state = IOT_ATTACH_REFUSED;
	}
}

static int observe(struct probes *p, uint32_t id, enum iot_program_kind kind,
		   struct probes_programs_change *ret)
{
	struct probes_programs *all = p->programs;
	struct target t = {.fd = -EBADF};
	struct program *g = &all->items[all->n];
	struct iot_probe *row;
	size_t i = p->n_rows;
	int r;

	if (all->n == PROGRAMS_MAX || i == PROBES_MAX_ROWS) {
		out_of_numbers(p);
		return 0;
	}
	r = program_look_at(id, &t);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	row = &p->table[i];
	*row = (struct iot_probe){
		.id = (uint16_t)(PROGRAMS_FIRST + all->n),
		.program = id,
		.program_kind = (uint8_t)kind,
		.loaded_ns = t.loaded_ns,
		.miss = all->counts ? IOT_MISS_COUNTED : IOT_MISS_UNGUARDED,
	};
	snprintf(row->name, sizeof(row->name), "%s:%.28s#%u", iot_program_kind_name(kind),
		 t.function[0] ? t.function : t.name, id);
	snprintf(row->hook, sizeof(row->hook), "fentry+fexit");
	*g = (struct program){
		.id = id,
		.row = i,
		.entry = -EBADF,
		.entry_link = -EBADF,
		.back = -EBADF,
		.back_link = -EBADF,
		.replaced = {-EBADF, -EBADF},
	};
	r = attach_target(p, g, &t, row->detail, sizeof(row->detail));
	close(t.fd);
	row->state = r >= 0 ? IOT_ATTACH_ATTACHED : IOT_ATTACH_REFUSED;
	row->error = r < 0 ? r : 0;
	if (r < 0)
		row->hook[0] = '\0';
	if (r >= 0 && gate_is_open(p))
		row->from_ns = programs_clock_ns(CLOCK_MONOTONIC);
	p->rows[i] = PROBES_NO_ROW;
	p->rows[i].program_fd = g->back;
	p->rows[i].observes = r >= 0 ? g : NULL;
	all->n++;
	publish_row(p, i);
	ret->n_new += r >= 0;
	ret->n_refused += r < 0;
	snprintf(r < 0 ? ret->refused : ret->name, sizeof(ret->name), "%s", row->name);
	if (r < 0)
		snprintf(ret->why, sizeof(ret->why), "%s", row->detail);
	return 0;
}

/* ---- letting go -------------------------------------------------------------------------------- */

static bool has_vanished(uint32_t id)
{
	const struct timespec pause = {.tv_nsec = VANISH_PAUSE_NS};

	for (unsigned int i = 0; i < VANISH_TRIES; i++) {
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd == -ENOENT)
			return true;
		if (fd >= 0)
			close(fd);
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Somebody has it, so it may run: observed again, and since when is said. */
static void take_back(struct probes *p, struct program *g)
{
	struct iot_probe *row = &p->table[g->row];
	struct target t = {.fd = -EBADF};
	char why[96];
	uint64_t missed = 0;
	int r;

	g->kept = true;
	(void)!probes_programs_missed(g, &missed);
	g->missed_before = (uint32_t)missed;
	r = program_look_at(g->id, &t);
	if (r >= 0) {
		struct program again = *g;

		again.entry = again.back = -EBADF;
		again.replaced[0] = g->entry;
		again.replaced[1] = g->back;
		r = attach_target(p, &again, &t, why, sizeof(why));
		close(t.fd);
		if (r >= 0) {
			*g = again;
			__atomic_store_n(&p->rows[g->row].program_fd, g->back, __ATOMIC_RELEASE);
		}
	}
	/* Its time up to now is in doubt; without an observer all that comes is, too. */
	if (r >= 0)
		__atomic_store_n(&row->from_ns, programs_clock_ns(CLOCK_MONOTONIC),
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n(&row->to_ns, programs_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
}

static int let_go(struct probes *p, struct program *g, struct probes_programs_change *ret)
{
	struct iot_probe *row = &p->table[g->row];
	struct ev_epoch same;
	int r;

	pthread_mutex_lock(&p->lock);
	same = p->active;
	r = probes_publish(p, &same);
	pthread_mutex_unlock(&p->lock);
	if (r < 0)
		return r;
	program_detach(g);
	if (has_vanished(g->id)) {
		row->gone = 1;
		__atomic_store_n(&row->to_ns, programs_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
		ret->n_gone++;
		snprintf(ret->name, sizeof(ret->name), "%s", row->name);
	} else {
		take_back(p, g);
	}
	probes_note_table(p);
	return 0;
}

/* ---- what there is ----------------------------------------------------------------------------- */

static int read_list(struct probes_programs *all, struct ev_program **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(all->list_link));
	_cleanup_free_ struct ev_program *list = NULL;
	size_t bytes = 0, room = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		if (room - bytes < 4096) {
			struct ev_program *grown = realloc(list, room + 16384);

			if (!grown)
				return -ENOMEM;
			list = grown;
			room += 16384;
		}
		n = read(fd, (char *)list + bytes, room - bytes);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		bytes += n > 0 ? (size_t)n : 0;
	} while (n != 0);
	*ret = IOT_TAKE_PTR(list);
	*ret_n = bytes / sizeof(**ret);
	return 0;
}

static enum iot_program_kind kind_of(uint32_t type)
{
	return type == BPF_PROG_TYPE_SCHED_CLS ? IOT_PROGRAM_TC
	       : type == BPF_PROG_TYPE_XDP     ? IOT_PROGRAM_XDP
					       : IOT_PROGRAM_NONE;
}

/* Unused twice in a row, so that one that is on its way from loader to device is left alone. */
static int look_after(struct probes *p, struct program *g, const struct ev_program *list, size_t n,
		      struct probes_programs_change *ret)
{
	bool before = g->unused;

	g->unused = false;
	for (size_t i = 0; i < n; i++)
		if (list[i].id == g->id)
			g->unused = list[i].references <= OWN_REFERENCES;
	return g->unused && before ? let_go(p, g, ret) : 0;
}

int probes_programs_follow(struct probes *p, struct probes_programs_change *ret)
{
	struct probes_programs *all = p->programs;
	_cleanup_free_ struct ev_program *list = NULL;
	libbpf_print_fn_t print_before;
	size_t n = 0;
	int r;

	*ret = (struct probes_programs_change){0};
	if (!all)
		return 0;
	r = read_list(all, &list, &n);
	if (r < 0)
		return r;
	print_before = libbpf_set_print(NULL);
	libbpf_set_print(all->started ? probes_keep_complaint : print_before);
	/* Numbers of programs only rise, until two thousand million have been loaded. */
	for (size_t i = 0; r >= 0 && i < n; i++) {
		enum iot_program_kind kind = kind_of(list[i].type);

		if (list[i].id <= all->last_id)
			continue;
		if (kind != IOT_PROGRAM_NONE)
			r = observe(p, list[i].id, kind, ret);
		/* What could not even be looked at is tried again. */
		if (r >= 0)
			all->last_id = list[i].id;
	}
	for (size_t i = 0; r >= 0 && i < all->n; i++)
		if (all->items[i].observed && !all->items[i].kept)
			r = look_after(p, &all->items[i], list, n, ret);
	libbpf_set_print(print_before);
	return r;
}

bool probes_programs_wanted(const struct probes *p)
{
	return p->programs != NULL;
}

/* ---- beginning and end ------------------------------------------------------------------------- */

static void set_outcome(struct probes *p, enum iot_attach state, int error, const char *detail)
{
	size_t i = p->n_rows;
	struct iot_probe *row = &p->table[i];

	*row = (struct iot_probe){
		.id = EV_PROBE_PACKET_PROGRAM, .state = (uint8_t)state, .error = error};
	snprintf(row->name, sizeof(row->name), "bpf_programs");
	snprintf(row->detail, sizeof(row->detail), "%s", detail);
	p->rows[i] = PROBES_NO_ROW;
	publish_row(p, i);
}

static int make_image(struct probes_programs *all, const char *expression, struct iot_error *err)
{
	struct filter_insn insns[FILTER_ROOM];
	const void *embedded = packet_program_bpf__elf_bytes(&all->image_bytes);
	int r;

	all->image = malloc(all->image_bytes);
	if (!all->image)
		return -ENOMEM;
	memcpy(all->image, embedded, all->image_bytes);
	if (!expression || !expression[0])
		return 0;
	r = filter_compile(expression, insns, err);
	if (r < 0)
		return r;
	return filter_write(all->image, all->image_bytes, insns) ? 0 : -EINVAL;
}

static int load_list(struct probes *p)
{
	struct probes_programs *all = p->programs;
	int r = program_open(p, &all->list);

	if (r < 0)
		return r;
	bpf_program__set_autoload(all->list->progs.list_programs, true);
	r = packet_program_bpf__load(all->list);
	if (r < 0)
		return r;
	all->list_link = bpf_program__attach_iter(all->list->progs.list_programs, NULL);
	return all->list_link ? 0 : -errno;
}

int probes_programs_start(struct probes *p, const struct probes_packet_options *o, bool counts,
			  struct iot_error *err)
{
	struct probes_programs_change change;
	uint32_t first = 0;
	char text[96];
	int r;

	if (!o->programs) {
		set_outcome(p, IOT_ATTACH_NOT_NEEDED, 0, "not asked for");
		return 0;
	}
	if (bpf_prog_get_next_id(0, &first) < 0 && errno == EPERM) {
		set_outcome(p, IOT_ATTACH_REFUSED, -EPERM,
			    "listing TC and XDP programs needs CAP_SYS_ADMIN");
		return 0;
	}
	p->programs = calloc(1, sizeof(*p->programs));
	if (!p->programs)
		return iot_error_set(err, -ENOMEM, "out of memory");
	p->programs->counts = counts;
	r = make_image(p->programs, o->expression, err);
	if (r < 0)
		return r;
	r = load_list(p);
	if (r < 0) {
		snprintf(text, sizeof(text), "programs cannot be listed: %s", strerror(-r));
		set_outcome(p, IOT_ATTACH_REFUSED, r, text);
		probes_programs_close(p);
		return 0;
	}
	set_outcome(p, IOT_ATTACH_NOT_NEEDED, 0, "each TC and XDP program has a row of its own");
	r = probes_programs_follow(p, &change);
	p->programs->started = true;
	return r < 0 ? iot_error_set(err, r, "cannot list TC and XDP programs: %s", strerror(-r))
		     : 0;
}

void probes_programs_detach(struct probes *p)
{
	for (size_t i = 0; p->programs && i < p->programs->n; i++)
		program_detach(&p->programs->items[i]);
}

void probes_programs_close(struct probes *p)
{
	struct probes_programs *all = p->programs;

	if (!all)
		return;
	for (size_t i = 0; i < all->n; i++)
		program_close(&all->items[i]);
	bpf_link__destroy(all->list_link);
	packet_program_bpf__destroy(all->list);
	free(all->image);
	free(all);
	p->programs = NULL;
}
