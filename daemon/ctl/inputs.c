// SPDX-License-Identifier: BSD-2-Clause
/*
 * inputs.c - where the offline verbs read from, and the names behind a record's numbers.
 *
 * Paths may be segments, state directories or archive trees; without any it is the state directory
 * ($IOTRACED_STATE_DIR or /var/lib/iotraced). Device names belong to a segment: the same number is
 * another disk on another host or after a reboot, so the cache is dropped with each segment.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/render.h"

#define DEFAULT_STATE_DIR "/var/lib/iotraced"

const char *ctl_state_dir(void)
{
	const char *dir = getenv("IOTRACED_STATE_DIR");

	return dir && *dir ? dir : DEFAULT_STATE_DIR;
}

bool ctl_filter_beyond_losses(const struct iot_filter *f)
{
	return f->swap != IOT_SWAP_ANY || f->pid || f->comm[0] || f->min_latency_ns;
}

bool ctl_filter_active(const struct iot_filter *f)
{
	return ctl_filter_beyond_losses(f) || f->since_ns || f->until_ns || f->dev[0] || f->ops ||
	       f->id;
}

int ctl_scan_try(const struct ctl *c, int argc, char **argv, struct iot_scan **ret,
		 struct iot_error *err)
{
	const char *fallback[] = {ctl_state_dir()};

	if (argc > 1)
		return iot_scan_open((const char *const *)argv + 1, (size_t)argc - 1, &c->filter,
				     ret, err);
	return iot_scan_open(fallback, 1, &c->filter, ret, err);
}

int ctl_scan_failed(int r, const struct iot_error *err)
{
	return ctl_fail(r == -EACCES || r == -EPERM ? CTL_DENIED : CTL_ERROR, "%s",
			err->text[0] ? err->text : strerror(-r));
}

int ctl_scan_open(const struct ctl *c, int argc, char **argv, struct iot_scan **ret)
{
	struct iot_error err = {0};
	int r;

	r = ctl_scan_try(c, argc, argv, ret, &err);
	return r < 0 ? ctl_scan_failed(r, &err) : CTL_OK;
}

static const char *cached_name(struct ctl_naming *n, uint32_t dev)
{
	size_t slot = (dev * 2654435761U) >> 24;
	char number[32];
	const char *name;

	if (!n->cache[slot].valid || n->cache[slot].dev != dev) {
		name = iot_dev_name(n->segment, dev, number, sizeof(number));
		n->cache[slot].dev = dev;
		n->cache[slot].valid = true;
		/* A number in its place means that the segment has no name for it. */
		n->cache[slot].known = name != number;
		snprintf(n->cache[slot].name, sizeof(n->cache[slot].name), "%s", name);
	}
	return n->cache[slot].known ? n->cache[slot].name : NULL;
}

const char *ctl_naming_set(struct ctl_naming *n, struct iot_segment *s, const struct iot_request *r)
{
	struct iot_render *render = n->render;

	if (n->segment != s) {
		const struct iot_segment_info *info = iot_segment_info(s);
		char hex[CTL_HUMAN_MAX];

		memset(n->cache, 0, sizeof(n->cache));
		n->segment = s;
		render->swap_out = info->swap_out;
		render->swap_in = info->swap_in;
		memcpy(render->capture, ctl_hex_id(info->capture_id, hex), sizeof(render->capture));
	}
	render->part = r->part == r->dev ? NULL : cached_name(n, r->part);
	/* Both may share a slot: the disk's name is taken last and the part's copied before. */
	if (render->part) {
		snprintf(n->part_name, sizeof(n->part_name), "%s", render->part);
		render->part = n->part_name;
	}
	render->disk = cached_name(n, r->dev);
	render->realtime_ns = r->complete_ns ? iot_segment_realtime_ns(s, r->complete_ns) : 0;
	return render->disk;
}
