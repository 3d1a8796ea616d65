// SPDX-License-Identifier: BSD-2-Clause
/*
 * manager-swaps.c - watches the active swap areas: read at start and whenever the kernel says that they
 * changed (poll(2) of /proc/swaps: POLLPRI after each swapon and swapoff); logged then, and told to the
 * kernel side. Replies to Status and Probes read them for themselves, since the kernel does not say how full
 * they are: a question changes nothing.
 */
#include "daemon/manager-private.h"

#include <fcntl.h>
#include <sys/epoll.h>

int manager_swaps_read(const struct manager *m, struct swaps *ret)
{
	const struct probes_kernel *k;

	/* Which areas a record covers is asked of the block stream, the first if it is there. */
	if (m->streams[0].id != IOT_STREAM_BLOCK)
		return -ENODATA;
	k = probes_kernel(m->streams[0].probes);
	return swaps_read(&swaps_system, k->swap_out, k->swap_in, ret);
}

static bool has(const struct swaps *s, const struct swaps_area *a)
{
	for (size_t i = 0; i < s->n; i++)
		if (swaps_same(&s->items[i], a))
			return true;
	return false;
}

/* Paths are the work of whoever may call swapon(2): root. Control characters stay out all the same. */
static void log_area(const struct swaps_area *a)
{
	char path[sizeof(a->path)];

	snprintf(path, sizeof(path), "%s", a->path);
	for (char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (a->coverage == SWAPS_EXACT)
		log_info("swap area %s on %s: every request of it is told as swap", path, a->disk);
	else
		log_warning("swap area %s: %s to the request layer: %s", path,
			    swaps_coverage_name(a->coverage), a->why);
}

static void look(struct manager *m)
{
	struct swaps now = {0};
	int r;

	r = manager_swaps_read(m, &now);
	if (r < 0) {
		if (m->swaps_error != r)
			log_warning("/proc/swaps: %s: which swap areas there are is not known",
				    strerror(-r));
		m->swaps_error = r;
		return;
	}
	m->swaps_error = 0;
	/* First, so that what is logged is true. */
	for (size_t i = 0; i < m->n_streams; i++) {
		r = probes_set_swap_areas(m->streams[i].probes, &now);
		if (r < 0)
			log_error("swap areas: %s: requests to new ones are not told as swap",
				  strerror(-r));
	}
	for (size_t i = 0; i < now.n; i++)
		if (!has(&m->swaps, &now.items[i]))
			log_area(&now.items[i]);
	for (size_t i = 0; i < m->swaps.n; i++)
		if (!has(&now, &m->swaps.items[i]))
			log_info("swap area on %s is no longer as it was",
				 *m->swaps.items[i].disk ? m->swaps.items[i].disk
							 : "an unknown device");
	swaps_done(&m->swaps);
	m->swaps = now;
}

static int on_swaps(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	/* Having polled, the kernel takes the change for seen: the descriptor is never read. */
	look(userdata);
	return 0;
}

int manager_swaps_start(struct manager *m)
{
	int r;

	if (m->streams[0].id != IOT_STREAM_BLOCK)
		return 0;
	m->swaps_fd = open(swaps_system.swaps, O_RDONLY | O_CLOEXEC);
	look(m);
	if (m->swaps_fd < 0)
		return 0; /* a kernel without swap, or an error that was just logged */
	r = sd_event_add_io(m->event, &m->swaps_source, m->swaps_fd, EPOLLPRI, on_swaps, m);
	return r < 0 ? r : 0;
}

void manager_swaps_stop(struct manager *m)
{
	m->swaps_source = sd_event_source_disable_unref(m->swaps_source);
	if (m->swaps_fd >= 0)
		close(m->swaps_fd);
	m->swaps_fd = -EBADF;
	swaps_done(&m->swaps);
}
