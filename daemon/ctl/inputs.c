// SPDX-License-Identifier: BSD-2-Clause
/*
 * inputs.c - where the offline verbs read from, and the names behind a record's numbers.
 *
 * Paths may be segments, state directories or archive trees; without any it is the state directory
 * ($IOTRACED_STATE_DIR or /var/lib/iotraced). Device names belong to a segment: the same number is
 * another disk on another host or after a reboot, so the cache is dropped with each segment.
 */
#include "daemon/ctl/ctl-util.h"
#include "format/anonymize.h"
#include "format/books.h"
#include "format/packet.h"
#include "format/render.h"

#define DEFAULT_STATE_DIR "/var/lib/iotraced"

const char *ctl_state_dir(void)
{
	const char *dir = getenv("IOTRACED_STATE_DIR");

	return dir && *dir ? dir : DEFAULT_STATE_DIR;
}

bool ctl_filter_beyond_losses(const struct iot_filter *f)
{
	return f->pid || f->comm[0] || f->min_latency_ns;
}

bool ctl_filter_active(const struct iot_filter *f)
{
	return ctl_filter_beyond_losses(f) || f->since_ns || f->until_ns || f->dev[0] || f->ops ||
	       f->swap != IOT_SWAP_ANY || f->id || f->flow.set || f->probe[0];
}

/* Nothing opens segments elsewhere: what is anonymized is so whichever way it is read. */
int ctl_scan_paths(const struct ctl *c, const char *const *paths, size_t n, struct iot_scan **ret,
		   struct iot_error *err)
{
	_cleanup_(iot_scan_closep) struct iot_scan *scan = NULL;
	int r = iot_scan_open(paths, n, &c->filter, &scan, err);

	if (r == 0 && c->anonymizer)
		r = iot_scan_anonymize(scan, c->anonymizer, err);
	if (r == 0)
		*ret = IOT_TAKE_PTR(scan);
	return r;
}

int ctl_scan_try(const struct ctl *c, int argc, char **argv, struct iot_scan **ret,
		 struct iot_error *err)
{
	const char *fallback[] = {ctl_state_dir()};

	if (argc > 1)
		return ctl_scan_paths(c, (const char *const *)argv + 1, (size_t)argc - 1, ret, err);
	return ctl_scan_paths(c, fallback, 1, ret, err);
}

int ctl_scan_whole(const struct iot_scan *scan, struct iot_error *err)
{
	const struct iot_verdict *v = iot_scan_opening(scan);

	return v->unread ? iot_error_set(err, -EIO, "%s", v->reasons[0]) : 0;
}

int ctl_scan_failed(int r, const struct iot_error *err)
{
	return ctl_fail(r == -EACCES || r == -EPERM ? CTL_DENIED : CTL_ERROR, "%s",
			err->text[0] ? err->text : strerror(-r));
}

/* `report vda` means the disk: a bare word that is no path is likely the name of a device. */
static void add_device_hint(int argc, char **argv, struct iot_error *err)
{
	for (int i = 1; i < argc; i++) {
		size_t len = strlen(argv[i]), at = strlen(err->text);

		if (argv[i][strcspn(argv[i], "/.")] || strncmp(err->text, argv[i], len) != 0 ||
		    err->text[len] != ':')
			continue;
		snprintf(err->text + at, sizeof(err->text) - at, "; for a device write --dev %s",
			 argv[i]);
		return;
	}
}

int ctl_scan_open(const struct ctl *c, int argc, char **argv, struct iot_scan **ret)
{
	struct iot_error err = {0};
	int r;

	r = ctl_scan_try(c, argc, argv, ret, &err);
	if (r == -ENOENT && !c->filter.dev[0])
		add_device_hint(argc, argv, &err);
	if (r == -ENOENT && argc <= 1) {
		size_t at = strlen(err.text);

		/* A daemon of one's own writes elsewhere, whatever its socket. */
		snprintf(err.text + at, sizeof(err.text) - at,
			 "; name the PATH of the segments, or set IOTRACED_STATE_DIR");
	}
	return r < 0 ? ctl_scan_failed(r, &err) : CTL_OK;
}

#define NOTE_MAX_DEVICES 32U

struct device_list {
	const char *names[NOTE_MAX_DEVICES]; /* borrowed from the segments */
	size_t n;
	bool more;
	bool found;
};

static void collect_devices(const struct iot_names *names, const char *wanted,
			    struct device_list *l)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->items[i].name;
		uint32_t dev = (uint32_t)names->items[i].key;
		char number[32];
		size_t k = 0;

		snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR(dev), IOT_DEV_MINOR(dev));
		l->found |= strcmp(name, wanted) == 0 || strcmp(number, wanted) == 0;
		while (k < l->n && strcmp(l->names[k], name) != 0)
			k++;
		if (k < l->n)
			continue;
		if (l->n == NOTE_MAX_DEVICES)
			l->more = true;
		else
			l->names[l->n++] = name;
	}
}

void ctl_note_device(const struct ctl *c, const struct iot_scan *scan, uint64_t n_requests)
{
	char a[2 * 80 + 1], list[NOTE_MAX_DEVICES * sizeof(a)] = "";
	struct device_list l = {0};
	size_t len = 0;

	if (!c->filter.dev[0] || n_requests)
		return;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);

		collect_devices(&iot_segment_info(s)->devices, c->filter.dev, &l);
		if (iot_segment_footer(s))
			collect_devices(&iot_segment_footer(s)->devices, c->filter.dev, &l);
	}
	if (l.found)
		return;
	for (size_t i = 0; i < l.n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					ctl_printable(l.names[i], a, sizeof(a)));
	(void)ctl_fail(CTL_OK, "no request on '%s'; devices known to this record: %s%s",
		       ctl_printable(c->filter.dev, a, sizeof(a)), l.n ? list : "none with a name",
		       l.more ? ", ..." : "");
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
		render->host = info->host;
		render->seq = info->seq;
		render->swap_out = info->swap_out;
		render->swap_in = info->swap_in;
		render->imported = iot_segment_imported(info);
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

const char *ctl_drop_reason(const struct iot_segment *s, int32_t code)
{
	return code < 0 ? NULL : iot_names_find(&iot_segment_info(s)->reasons, (uint64_t)code);
}

void ctl_packet_naming_set(struct ctl_packet_naming *n, const struct iot_segment *s,
			   const struct iot_packet *p)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	const struct iot_footer *f = iot_segment_footer(s);
	struct iot_render_packet *render = n->render;
	bool drop = p->probe == IOT_PROBE_KFREE_SKB;
	char hex[CTL_HUMAN_MAX];

	if (n->segment != s) {
		n->segment = s;
		n->probe_valid = false;
		memcpy(render->capture, ctl_hex_id(info->capture_id, hex), sizeof(render->capture));
	}
	if (!n->probe_valid || n->probe_id != p->probe) {
		iot_segment_probe_label(s, p->probe, n->probe, sizeof(n->probe));
		n->probe_id = p->probe;
		n->probe_valid = true;
	}
	render->probe = n->probe;
	render->iface = p->ifindex ? iot_iface_name(s, p->netns, p->ifindex) : NULL;
	render->reason = drop ? ctl_drop_reason(s, p->code) : NULL;
	render->action = NULL;
	if (p->probe > IOT_PROBE_PROGRAMS) {
		const struct iot_probe *row = iot_probe_find(info, f, p->probe);

		render->action = row ? iot_program_action_name(row->program_kind, p->code) : NULL;
	}
	render->symbol = drop && f ? iot_names_find(&f->symbols, p->where) : NULL;
	render->realtime_ns = p->ts_ns ? iot_segment_realtime_ns(s, p->ts_ns) : 0;
}
