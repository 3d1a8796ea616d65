// SPDX-License-Identifier: BSD-2-Clause
/*
 * status-in-flight.c - requests that have not completed, as JSON.
 *
 * Each has the fields of `iotracectl cat --json`, made by the same code (format/render.h), plus
 * age_ns and state. Age counts from the first thing that was observed. The list is bounded, the oldest
 * first, since those are what somebody looks for; the total is always there.
 */
#include "daemon/status.h"
#include "format/render.h"

static uint64_t first_seen(const struct ev_block *e)
{
	return e->start_ns ? e->start_ns : e->insert_ns ? e->insert_ns : e->issue_ns;
}

static int by_age(const void *a, const void *b)
{
	const struct ev_block *x = a, *y = b;
	int c = iot_cmp_u64(first_seen(x), first_seen(y));

	return c ? c : iot_cmp_u64(x->hdr.id, y->hdr.id);
}

/* Name of a device by sysfs (needs no /proc or /dev); "" = none. */
static void device_name(uint32_t dev, char *buf, size_t size)
{
	char path[64], link[512];
	const char *slash;
	ssize_t n;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", IOT_DEV_MAJOR(dev),
		 IOT_DEV_MINOR(dev));
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	slash = strrchr(link, '/');
	snprintf(buf, size, "%.*s", (int)size - 1, slash ? slash + 1 : link);
}

static int render_one(struct decode_block *d, const struct ev_block *e,
		      const struct iot_render *base, uint64_t now_ns, struct json_object **ret)
{
	char line[IOT_RENDER_MAX + 1], disk[IOT_RENDER_NAME_MAX], part[IOT_RENDER_NAME_MAX];
	struct iot_render ctx = *base;
	struct json_object *o, *age, *state;
	struct iot_request r;
	uint64_t first;

	decode_block_in_flight(d, e, &r);
	device_name(r.dev, disk, sizeof(disk));
	device_name(r.part, part, sizeof(part));
	ctx.disk = *disk ? disk : NULL;
	ctx.part = *part ? part : NULL;
	line[iot_render_json(line, &r, &ctx)] = '\0';
	o = json_tokener_parse(line);
	if (!o)
		return -ENOMEM;

	first = first_seen(e);
	age = first ? control_u64(now_ns > first ? now_ns - first : 0) : NULL;
	state = json_object_new_string(e->issue_ns    ? "issued"
				       : e->insert_ns ? "queued"
						      : "started");
	/* What only the end tells is not 0 before it. */
	if (json_object_object_add(o, "error", NULL) < 0 ||
	    json_object_object_add(o, "status", NULL) < 0 || (first && !age) || !state ||
	    json_object_object_add(o, "age_ns", age) < 0 ||
	    json_object_object_add(o, "state", state) < 0) {
		json_object_put(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

int status_render_in_flight(struct decode_block *d, struct ev_block *events, size_t n,
			    uint64_t now_ns, uint8_t swap_out, uint8_t swap_in,
			    struct json_object **ret)
{
	struct json_object *list = json_object_new_array(), *o = json_object_new_object();
	struct json_object *total = json_object_new_uint64(n), *one;
	const struct iot_render base = {.swap_out = swap_out, .swap_in = swap_in};
	int r = -ENOMEM;

	if (!list || !o || !total)
		goto fail;
	if (n > 0)
		qsort(events, n, sizeof(*events), by_age);
	for (size_t i = 0; i < IOT_MIN(n, (size_t)STATUS_IN_FLIGHT_MAX); i++) {
		r = render_one(d, &events[i], &base, now_ns, &one);
		if (r < 0)
			goto fail;
		r = json_object_array_add(list, one);
		if (r < 0) {
			json_object_put(one);
			goto fail;
		}
	}
	r = -ENOMEM;
	if (json_object_object_add(o, "total", total) < 0)
		goto fail;
	total = NULL;
	if (json_object_object_add(o, "requests", list) < 0)
		goto fail;
	*ret = o;
	return 0;
fail:
	json_object_put(list);
	json_object_put(total);
	json_object_put(o);
	return r;
}
