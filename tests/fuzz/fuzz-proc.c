// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-proc.c - any bytes as the files of /proc and /sys that the daemon and iotracectl read.
 *
 * The input is cut at NULs: /proc/swaps, mountinfo, kallsyms, the tables of interfaces, a device's uevent,
 * a file for --logical-bytes. fopen(3) of a file below /proc or /sys gives the part in its place. What is
 * made of them is text that ends, numbers that can be, and never more than the bounds say.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/resolve.h"
#include "daemon/names.h"
#include "daemon/net-names.h"
#include "daemon/swaps.h"
#include "format/packet.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OWN_NETNS 1U
#define OTHER_NETNS 2U

static struct part {
	const char *suffix; /* of the path, or */
	const char *prefix;
	const uint8_t *data;
	size_t size;
} parts[] = {
	{.suffix = "/swaps"}, {.suffix = "/mountinfo"}, {.suffix = "/kallsyms"},
	{.prefix = "/proc/"}, {.prefix = "/sys/"},	{.suffix = "/numbers"},
};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-proc: %s\n", what);
	abort();
}

static const struct part *part_of(const char *path)
{
	size_t len = strlen(path);

	if (strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0)
		return NULL;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(parts); i++) {
		const struct part *p = &parts[i];
		size_t n = strlen(p->suffix ? p->suffix : p->prefix);

		if (p->suffix ? len >= n && strcmp(path + len - n, p->suffix) == 0
			      : strncmp(path, p->prefix, n) == 0)
			return p;
	}
	return NULL;
}

/* Instead of the C library's. */
FILE *fopen(const char *path, const char *mode)
{
	const struct part *p = *mode == 'r' ? part_of(path) : NULL;
	int fd;

	if (!p) {
		fd = open(path,
			  O_CLOEXEC | (*mode == 'r'   ? O_RDONLY
				       : *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
						      : O_WRONLY | O_CREAT | O_APPEND),
			  0644);
		return fd < 0 ? NULL : fdopen(fd, mode);
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0 && iot_write_all(fd, p->data, p->size) == 0 && lseek(fd, 0, SEEK_SET) == 0,
	      "no file in memory");
	return fdopen(fd, mode);
}

/* A file that is opened by open(2) has to be one. */
static int numbers_file(char path[64])
{
	const struct part *p = &parts[IOT_ARRAY_SIZE(parts) - 1];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	check(fd >= 0 && iot_write_all(fd, p->data, p->size) == 0, "no file in memory");
	snprintf(path, 64, "@/proc/self/fd/%d", fd);
	return fd;
}

/* Every process but ours lives in one other network namespace. */
int stat(const char *restrict path, struct stat *restrict ret)
{
	const char *ns = strstr(path, "/ns/net");

	if (strncmp(path, "/proc/", 6) != 0 || !ns || ns[7])
		return fstatat(AT_FDCWD, path, ret, 0);
	*ret = (struct stat){.st_ino = strncmp(path + 6, "self", 4) ? OTHER_NETNS : OWN_NETNS};
	return 0;
}

static void check_swaps(void)
{
	static const struct swaps_paths paths = {"/proc/swaps", "/proc/self/mountinfo",
						 "/sys/class/block"};
	struct swaps s = {0};

	check(swaps_read(&paths, 1, 1, &s) == 0, "swaps cannot be read");
	check(s.n <= SWAPS_MAX, "more areas than there can be");
	for (size_t i = 0; i < s.n; i++) {
		const struct swaps_area *a = &s.items[i];

		check(memchr(a->path, 0, sizeof(a->path)) && memchr(a->disk, 0, sizeof(a->disk)) &&
			      memchr(a->why, 0, sizeof(a->why)),
		      "a text without an end");
		check(a->coverage <= SWAPS_INVISIBLE, "no such coverage");
		check((a->coverage == SWAPS_EXACT) == (a->why[0] == '\0'), "a reason, or none");
		check(swaps_same(a, a), "not the same as itself");
	}
	swaps_done(&s);
}

static void check_table(const struct iot_names *names, size_t max)
{
	check(names->n <= max, "more names than were asked for");
	for (size_t i = 0; i < names->n; i++)
		check(names->items[i].name && *names->items[i].name, "a name that is none");
}

static void check_names(void)
{
	struct iot_names devices = {0}, ifaces = {0}, symbols = {0};
	struct id_set set = {0}, code = {0};
	struct net_names net = {{0}, {0}};
	const uint64_t dev = IOT_DEV(7, 0);
	struct places places;
	struct names *n;

	check(names_new(&n) == 0, "no memory");
	names_see_devices(n, &dev, 1);
	check(names_all_devices(n, &devices) == 0, "no memory");
	check_table(&devices, 1);
	names_free(n);
	for (uint32_t i = 1; i < 4; i++)
		id_set_add(&set, IOT_IFACE_KEY(OTHER_NETNS, i));
	check(net_names_ifaces_of(&net, &set, &ifaces) == 0, "no memory");
	check_table(&ifaces, 3);
	check(places_init(&places) == 0, "no memory");
	id_set_add(&code, places_number(&places, 0xffffffff81000010ULL));
	id_set_add(&code, places_number(&places, 1));
	id_set_add(&code, places_number(&places, UINT64_MAX));
	check(net_names_symbols_of(&net, &places, &code, &symbols) == 0, "no memory");
	/* Found or not, each gets a text. */
	check(symbols.n == 3, "a place without a name");
	check_table(&symbols, 3);
	places_done(&places);
	net_names_done(&net);
	iot_names_done(&devices);
	iot_names_done(&ifaces);
	iot_names_done(&symbols);
	id_set_done(&set);
	id_set_done(&code);
}

static void check_ctl(void)
{
	struct iot_error err = {0};
	uint64_t bytes;
	uint32_t dev;
	char path[64];
	int fd = numbers_file(path), r = ctl_logical_bytes(path, &bytes, &err);

	close(fd);
	check(r == 0 || r == -EINVAL || r == -ERANGE, "an undocumented error");
	check((r < 0) == (err.text[0] != '\0'), "refused without a reason, or taken with one");
	check(resolve_device("/", &dev) == 0, "no root directory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(parts); i++) {
		const uint8_t *end = size ? memchr(data, 0, size) : NULL;
		size_t n = end ? (size_t)(end - data) : size;

		parts[i].data = data;
		parts[i].size = n;
		data += n + (end != NULL);
		size -= n + (end != NULL);
	}
	check_swaps();
	check_names();
	check_ctl();
	return 0;
}
