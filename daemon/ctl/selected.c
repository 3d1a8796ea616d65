// SPDX-License-Identifier: BSD-2-Clause
/*
 * selected.c - whether a record speaks for a device: what the configuration left out (devices.include and
 * devices.exclude) is not in it, and nothing about it is proved.
 *
 * A segment speaks for a device if its books say that nothing was left out, or if its header's selection
 * takes the device's disk. That text is all there is of the patterns; where it may have been cut, or where
 * the device was not there yet when the segment began, so that its first requests may have passed a filter
 * that did not know it, the answer is no. The same for swap, and for streams that were not recorded.
 */
#include <fnmatch.h>

#include "daemon/ctl/ctl-util.h"
#include "format/books.h"

#define INCLUDE "include "
#define EXCLUDE "exclude "

static bool left_out(const struct iot_footer *f)
{
	for (size_t i = 0; f && i < f->n_books; i++)
		if (f->books[i].not_selected) /* or not known */
			return true;
	return !f;
}

/* "nvme0n1", "/dev/nvme0n1" or "259:1". */
static const struct iot_name *find(const struct iot_names *names, const char *want)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct iot_name *n = &names->items[i];
		char number[32];

		snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR((uint32_t)n->key),
			 IOT_DEV_MINOR((uint32_t)n->key));
		if (strcmp(n->name, want) == 0 || strcmp(number, want) == 0)
			return n;
	}
	return NULL;
}

/* sda1 is one of sda, nvme0n1p2 one of nvme0n1: as the kernel names them. */
static bool is_partition_of(const char *part, const char *disk)
{
	size_t n = strlen(disk);
	const char *rest = part + n;

	if (!n || strncmp(part, disk, n) != 0)
		return false;
	if (disk[n - 1] >= '0' && disk[n - 1] <= '9' && *rest++ != 'p')
		return false;
	return *rest && rest[strspn(rest, "0123456789")] == '\0';
}

static const struct iot_name *disk_of(const struct iot_names *names, const struct iot_name *dev)
{
	for (size_t i = 0; i < names->n; i++)
		if (is_partition_of(dev->name, names->items[i].name))
			return &names->items[i];
	return dev;
}

/* Patterns as in "include a,b; exclude c": are they there, and is the disk one of them? */
static bool list_takes(const char *selection, const char *word, const struct iot_name *disk,
		       bool *ret_there)
{
	char patterns[sizeof(((struct iot_segment_info *)NULL)->selection)], number[32], *save;
	const char *list = selection;

	snprintf(number, sizeof(number), "%u:%u", IOT_DEV_MAJOR((uint32_t)disk->key),
		 IOT_DEV_MINOR((uint32_t)disk->key));
	while (list && strncmp(list, word, strlen(word)) != 0) {
		list = strstr(list, "; ");
		list = list ? list + 2 : NULL;
	}
	*ret_there = list != NULL;
	if (!list)
		return false;
	snprintf(patterns, sizeof(patterns), "%s", list + strlen(word));
	patterns[strcspn(patterns, ";")] = '\0';
	for (char *p = strtok_r(patterns, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (fnmatch(p, disk->name, 0) == 0 || fnmatch(p, number, 0) == 0)
			return true;
	return false;
}

bool ctl_selects(const struct iot_segment_info *info, const struct iot_footer *f, const char *dev)
{
	const struct iot_name *found, *disk;
	bool include, exclude, taken;

	if (!left_out(f))
		return true;
	if (strncmp(dev, "/dev/", 5) == 0)
		dev += 5;
	if (strlen(info->selection) + 1 >= sizeof(info->selection))
		return false;
	found = find(&info->devices, dev);
	disk = found ? disk_of(&info->devices, found) : &(struct iot_name){0, (char *)""};
	taken = list_takes(info->selection, INCLUDE, disk, &include);
	if (list_takes(info->selection, EXCLUDE, disk, &exclude))
		return false;
	if (!include && !exclude)
		return true; /* swap may have been left out, not a device */
	return found && (taken || !include);
}

bool ctl_segment_in_time(const struct iot_segment *s, const struct iot_filter *f)
{
	const struct iot_footer *footer = iot_segment_footer(s);

	if (!footer || !footer->epoch_first_ns || !footer->epoch_last_ns)
		return true;
	return (!f->since_ns || iot_segment_realtime_ns(s, footer->epoch_last_ns) >= f->since_ns) &&
	       (!f->until_ns || iot_segment_realtime_ns(s, footer->epoch_first_ns) <= f->until_ns);
}

/* An interface of the packet stream, if no disk has the name. */
static bool is_no_disk(const struct iot_scan *scan, const char *dev)
{
	if (!iot_scan_n_stream(scan, IOT_STREAM_PACKET))
		return false;
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);

		if (iot_segment_info(s)->stream == IOT_STREAM_BLOCK &&
		    (find(&iot_segment_info(s)->devices, dev) ||
		     (iot_segment_footer(s) && find(&iot_segment_footer(s)->devices, dev))))
			return false;
	}
	return true;
}

enum iot_stream ctl_stream_asked(const struct iot_scan *scan, const struct iot_filter *f)
{
	if (f->stream)
		return f->stream;
	if (f->flow.set || f->probe[0])
		return IOT_STREAM_PACKET;
	if (f->ops || f->swap || f->min_latency_ns)
		return IOT_STREAM_BLOCK;
	if (!f->dev[0])
		return 0;
	return is_no_disk(scan, f->dev) ? IOT_STREAM_PACKET : IOT_STREAM_BLOCK;
}

/* A question about a kind of record that nobody made is not answered by its absence. */
static void check_streams(const struct iot_scan *scan, const struct iot_filter *f,
			  struct iot_verdict *why)
{
	if ((f->flow.set || f->probe[0]) && !iot_scan_n_stream(scan, IOT_STREAM_PACKET))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "no packets are recorded here");
	if ((f->ops || f->swap || f->min_latency_ns) && !iot_scan_n_stream(scan, IOT_STREAM_BLOCK))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN, "no requests are recorded here");
}

/* Swap that was left out, or that this kernel does not tell from the rest, is not told absent. */
static void check_swap(const struct iot_segment *s, const struct iot_filter *f,
		       struct iot_verdict *why)
{
	const struct iot_segment_info *info = iot_segment_info(s);
	const bool out = f->swap != IOT_SWAP_ONLY_IN, in = f->swap != IOT_SWAP_ONLY_OUT;

	if (f->swap != IOT_SWAP_WITHOUT && iot_segment_without_swap(info))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "segment %llu: swap was left out by the configuration",
				   (unsigned long long)info->seq);
	else if ((out && info->swap_out == IOT_ABILITY_UNAVAILABLE) ||
		 (in && info->swap_in == IOT_ABILITY_UNAVAILABLE))
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "segment %llu: its kernel did not tell swap from other requests",
				   (unsigned long long)info->seq);
}

void ctl_selected_check(const struct iot_scan *scan, const struct iot_filter *f,
			struct iot_verdict *why)
{
	const bool of_disk = f->dev[0] && !is_no_disk(scan, f->dev);

	check_streams(scan, f, why);
	if (!of_disk)
		ctl_selected_packets(scan, f, why);
	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment *s = iot_scan_segment(scan, i);
		const struct iot_segment_info *info = iot_segment_info(s);

		if (info->stream != IOT_STREAM_BLOCK || !ctl_segment_in_time(s, f))
			continue;
		if (f->swap ||
		    (of_disk && iot_segment_without_swap(info) && left_out(iot_segment_footer(s))))
			check_swap(s, f, why);
		if (!of_disk || ctl_selects(info, iot_segment_footer(s), f->dev))
			continue;
		iot_verdict_reason(why, IOT_VERDICT_UNKNOWN,
				   "%.40s: the selection (\"%.60s\") left out requests, its may be "
				   "among them",
				   f->dev, info->selection);
	}
}

static void add_text(const char **texts, size_t *n, size_t max, const char *text)
{
	for (size_t k = 0; k < *n; k++)
		if (strcmp(texts[k], text) == 0)
			return;
	if (*n < max)
		texts[(*n)++] = text;
}

size_t ctl_selections(const struct iot_scan *scan, const char **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment_info *info = iot_segment_info(iot_scan_segment(scan, i));

		if (info->stream == IOT_STREAM_BLOCK)
			add_text(ret, &n, max, info->selection);
	}
	return n;
}

size_t ctl_sources(const struct iot_scan *scan, const char **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < iot_scan_n_segments(scan); i++) {
		const struct iot_segment_info *info = iot_segment_info(iot_scan_segment(scan, i));

		if (iot_segment_imported(info))
			add_text(ret, &n, max, info->source);
	}
	return n;
}
