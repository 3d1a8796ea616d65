// SPDX-License-Identifier: BSD-2-Clause
/*
 * verb-inflight.c - requests that have not completed, oldest first: where a hang shows itself.
 *
 * The daemon lists what it has seen. A request that began before it did, and has not moved since, or that the
 * configuration leaves out, is not among them; the kernel counts it all the same, per disk, in /sys. Where it
 * counts more than are listed, both before and after the list was made, that is said.
 */
#include "daemon/ctl/live.h"

#include <dirent.h>

struct disk {
	char name[64];
	uint64_t before; /* the kernel's count */
	uint64_t listed;
};

/* Reads and writes, as for /proc/diskstats; 0 where nobody counts (queue/iostats), or the disk is gone. */
static uint64_t kernel_count(const char *disk)
{
	char path[96];
	unsigned long long reads = 0, writes = 0;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight", disk);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu %llu", &reads, &writes) != 2)
		return 0;
	return reads + writes;
}

/* Disks that requests are made for: those of md, dm and zram end at bios. NULL: not known, n = 0. */
static struct disk *kernel_disks(size_t *ret_n)
{
	DIR *d = opendir("/sys/block");
	struct disk *disks = NULL;
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		struct disk *more;
		char path[sizeof(e->d_name) + 32];

		snprintf(path, sizeof(path), "/sys/block/%s/mq", e->d_name);
		if (e->d_name[0] == '.' || access(path, F_OK) < 0 ||
		    strlen(e->d_name) >= sizeof(disks->name))
			continue;
		more = reallocarray(disks, n + 1, sizeof(*disks));
		if (!more)
			break;
		disks = more;
		disks[n] = (struct disk){.before = kernel_count(e->d_name)};
		memcpy(disks[n++].name, e->d_name, strlen(e->d_name) + 1);
	}
	if (d)
		closedir(d);
	*ret_n = n;
	return disks;
}

/* Was any disk said to have more in flight than are listed? */
static bool say_not_listed(struct disk *disks, size_t n, struct json_object *list)
{
	bool said = false;

	for (size_t i = 0; i < live_n(list); i++) {
		const char *name = live_str(json_object_array_get_idx(list, i), "disk");

		for (size_t k = 0; name && k < n; k++)
			disks[k].listed += strcmp(disks[k].name, name) == 0;
	}
	for (size_t k = 0; k < n; k++) {
		uint64_t counted = IOT_MIN(disks[k].before, kernel_count(disks[k].name));

		if (counted <= disks[k].listed)
			continue;
		fprintf(stderr,
			"iotracectl: %s: the kernel counts %llu in flight, %llu %s listed: others "
			"began "
			"before recording, or the configuration leaves them out\n",
			disks[k].name, (unsigned long long)counted,
			(unsigned long long)disks[k].listed, disks[k].listed == 1 ? "is" : "are");
		said = true;
	}
	return said;
}

static int print_table(struct json_object *list, bool color)
{
	static const char *const columns[] = {"ID",   "DEV",   "OP",   ">SECTOR", ">BYTES",
					      ">AGE", "STATE", "COMM", ">PID",	  NULL};
	_cleanup_(ctl_table_freep) struct ctl_table *t = ctl_table_new(columns);
	char a[CTL_HUMAN_MAX], text[64];

	if (!t)
		return ctl_fail(CTL_ERROR, "out of memory");
	for (size_t i = 0; i < live_n(list); i++) {
		struct json_object *q = json_object_array_get_idx(list, i);
		const char *name = live_str(q, "part");
		uint64_t v;

		if (!name)
			name = live_str(q, "disk");
		if (!name)
			name = live_str(q, "dev");
		ctl_table_cell(t, "%s", live_str(q, "id") ? live_str(q, "id") : "-");
		ctl_table_cell(t, "%s", name ? ctl_printable(name, text, sizeof(text)) : "-");
		ctl_table_cell(t, "%s", live_str(q, "op") ? live_str(q, "op") : "-");
		if (live_u64(q, "sector", &v))
			ctl_table_cell(t, "%llu", (unsigned long long)v);
		else
			ctl_table_cell(t, "-");
		ctl_table_cell(t, "%s", live_size(q, "bytes", a));
		ctl_table_cell(t, "%s", live_duration(q, "age_ns", a));
		ctl_table_cell(t, "%s", live_str(q, "state") ? live_str(q, "state") : "-");
		name = live_str(q, "comm");
		ctl_table_cell(t, "%s", name ? ctl_printable(name, text, sizeof(text)) : "-");
		if (live_u64(q, "pid", &v))
			ctl_table_cell(t, "%llu", (unsigned long long)v);
		else
			ctl_table_cell(t, "-");
	}
	return ctl_table_print(t, stdout, color) < 0 ? ctl_fail(CTL_ERROR, "out of memory")
						     : CTL_OK;
}

int verb_inflight(struct ctl *c, int argc, char **argv)
{
	_cleanup_free_ struct disk *disks = NULL;
	struct json_object *reply, *list;
	size_t n, n_disks = 0;
	uint64_t total = 0;
	bool more;
	int r;

	r = live_no_operands(argc, argv);
	disks = kernel_disks(&n_disks);
	if (r == CTL_OK)
		r = ctl_call(c, CONTROL_INTERFACE ".InFlight", NULL, &reply);
	if (r != CTL_OK)
		return r;
	list = live_object(reply, "requests");
	n = live_n(list);
	if (!live_u64(reply, "total", &total)) {
		json_object_put(reply);
		return ctl_fail(CTL_ERROR, "what is in flight is not known: this daemon does not "
					   "record requests (streams.block)");
	}
	more = total == n && say_not_listed(disks, n_disks, list);
	if (c->json) {
		r = live_print_lines(list);
	} else if (n == 0) {
		puts(more || !n_disks ? "nothing that is recorded is in flight"
				      : "nothing in flight");
	} else {
		ctl_pager_open(c);
		r = print_table(list, ctl_color_enabled(c));
		printf("\n%llu in flight\n", (unsigned long long)total);
	}
	/* On stderr also with --json: a list that is cut says so. */
	if (r == CTL_OK && total > n)
		fprintf(stderr, "iotracectl: the %zu oldest of %llu are listed\n", n,
			(unsigned long long)total);
	json_object_put(reply);
	return r;
}
