// SPDX-License-Identifier: BSD-2-Clause
/* net-names.c - see net-names.h. */
#include <dirent.h>
#include <net/if.h>
#include <sys/stat.h>

#include "daemon/net-names.h"
#include "format/packet.h"

#define MAX_NAMES 16384U    /* of each kind, kept */
#define MAX_PROCESSES 8192U /* looked at for one namespace */
#define MAX_SYMBOL 96U

void net_names_done(struct net_names *n)
{
	iot_names_done(&n->ifaces);
	iot_names_done(&n->symbols);
}

static void keep(struct iot_names *names, uint64_t key, const char *name)
{
	if (names->n < MAX_NAMES || iot_names_find(names, key))
		(void)!iot_names_add(names, key, name);
}

/* ---- interfaces ------------------------------------------------------------------------------- */

static uint32_t netns_of(const char *process)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/net", process);
	return stat(path, &st) == 0 ? (uint32_t)st.st_ino : 0;
}

/* A process that lives in the namespace: its number as text. */
static bool find_process(uint32_t netns, char *ret, size_t size)
{
	unsigned int budget = MAX_PROCESSES;
	DIR *dir = opendir("/proc");
	struct dirent *d;
	bool found = false;

	while (dir && !found && budget > 0 && (d = readdir(dir))) {
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		budget--;
		if (netns_of(d->d_name) == netns) {
			snprintf(ret, size, "%.20s", d->d_name);
			found = true;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

static void keep_iface(struct net_names *n, uint32_t netns, uint64_t ifindex, char *name)
{
	name[strcspn(name, " :\t\n")] = '\0';
	if (*name && ifindex <= UINT32_MAX)
		keep(&n->ifaces, IOT_IFACE_KEY(netns, (uint32_t)ifindex), name);
}

/*
 * Number and name of interfaces stand together in these, whatever the reader's own namespace: igmp
 * "2\teth0 : ...", dev_mcast "2 eth0 ...", if_inet6 "fe80... 02 40 20 80 eth0".
 */
static void read_tables(struct net_names *n, const char *process, uint32_t netns)
{
	static const char *const tables[] = {"igmp", "dev_mcast", "if_inet6"};

	for (unsigned int i = 0; i < IOT_ARRAY_SIZE(tables); i++) {
		_cleanup_fclose_ FILE *f = NULL;
		char path[64], line[256];

		snprintf(path, sizeof(path), "/proc/%.20s/net/%s", process, tables[i]);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned int ifindex;
			char name[IF_NAMESIZE + 1];

			if (sscanf(line, i == 2 ? "%*32s %x %*x %*x %*x %16s" : "%u %16s", &ifindex,
				   name) == 2)
				keep_iface(n, netns, ifindex, name);
		}
	}
}

void net_names_see_ifaces(struct net_names *n, const uint64_t *keys, size_t n_keys)
{
	uint32_t own = netns_of("self"), last = 0;

	for (size_t i = 0; i < n_keys; i++) {
		uint32_t netns = (uint32_t)(keys[i] >> 32), ifindex = (uint32_t)keys[i];
		char name[IF_NAMESIZE], process[32];

		if (!ifindex || iot_names_find(&n->ifaces, keys[i]))
			continue;
		if (netns == own) {
			if (if_indextoname(ifindex, name))
				keep(&n->ifaces, keys[i], name);
			continue;
		}
		/* One search serves all interfaces of a namespace, found or not. */
		if (netns != last && find_process(netns, process, sizeof(process)))
			read_tables(n, process, netns);
		last = netns;
	}
}

/* ---- code ------------------------------------------------------------------------------------- */

/* The function that begins at or before each of the addresses, which ascend. */
struct nearest {
	uint64_t begin;
	char name[MAX_SYMBOL];
};

/* "ffffffff81000000 T _text\t[module]" */
static bool parse_symbol(const char *line, uint64_t *ret_begin, char name[MAX_SYMBOL])
{
	char type;
	unsigned long long begin;

	if (sscanf(line, "%llx %c %95s", &begin, &type, name) != 3 || begin == 0)
		return false;
	*ret_begin = begin;
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static void read_symbols(const uint64_t *addresses, size_t n, struct nearest *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[MAX_SYMBOL];
	uint64_t begin;

	while (f && fgets(line, sizeof(line), f)) {
		size_t low = 0, high = n;

		if (!parse_symbol(line, &begin, name))
			continue;
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (addresses[mid] < begin)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < n && begin > ret[low].begin) {
			ret[low].begin = begin;
			memcpy(ret[low].name, name, sizeof(name));
		}
	}
	/* What begins before one address begins before the next. */
	for (size_t i = 1; i < n; i++)
		if (ret[i].begin < ret[i - 1].begin)
			ret[i] = ret[i - 1];
}

struct unnamed {
	uint64_t address;
	uint64_t number;
};

static int cmp_address(const void *a, const void *b)
{
	return iot_cmp_u64(((const struct unnamed *)a)->address,
			   ((const struct unnamed *)b)->address);
}

static void symbol_text(uint64_t address, const struct nearest *found, char *buf, size_t size)
{
	/* Functions are not larger than this; what lies farther off is somebody else's code. */
	if (found->begin && address - found->begin <= 1U << 20)
		snprintf(buf, size, "%s+0x%llx", found->name,
			 (unsigned long long)(address - found->begin));
	else
		snprintf(buf, size, "0x...%03llx", (unsigned long long)(address & 0xfff));
}

static int see_symbols(struct net_names *n, const struct places *places, const uint64_t *numbers,
		       size_t n_numbers)
{
	_cleanup_free_ struct unnamed *unnamed =
		calloc(n_numbers ? n_numbers : 1, sizeof(*unnamed));
	_cleanup_free_ uint64_t *addresses = NULL;
	_cleanup_free_ struct nearest *found = NULL;
	size_t k = 0;

	if (!unnamed)
		return -ENOMEM;
	for (size_t i = 0; i < n_numbers; i++)
		if (!iot_names_find(&n->symbols, numbers[i]))
			unnamed[k++] =
				(struct unnamed){places_address(places, numbers[i]), numbers[i]};
	if (k == 0)
		return 0;
	addresses = calloc(k, sizeof(*addresses));
	found = calloc(k, sizeof(*found));
	if (!addresses || !found)
		return -ENOMEM;
	qsort(unnamed, k, sizeof(*unnamed), cmp_address);
	for (size_t i = 0; i < k; i++)
		addresses[i] = unnamed[i].address;
	read_symbols(addresses, k, found);
	for (size_t i = 0; i < k; i++) {
		char text[MAX_SYMBOL + 24];

		symbol_text(addresses[i], &found[i], text, sizeof(text));
		keep(&n->symbols, unnamed[i].number, text);
	}
	return 0;
}

static int table_of(const struct iot_names *names, const uint64_t *keys, size_t n,
		    struct iot_names *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = iot_names_find(names, keys[i]);
		int r = name ? iot_names_add(ret, keys[i], name) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int net_names_ifaces_of(struct net_names *n, const struct id_set *set, struct iot_names *ret)
{
	_cleanup_free_ uint64_t *keys = NULL;
	int r = id_set_keys(set, &keys);

	if (r < 0)
		return r;
	net_names_see_ifaces(n, keys, set->n);
	return table_of(&n->ifaces, keys, set->n, ret);
}

int net_names_symbols_of(struct net_names *n, const struct places *places, const struct id_set *set,
			 struct iot_names *ret)
{
	_cleanup_free_ uint64_t *keys = NULL;
	int r = id_set_keys(set, &keys);

	if (r >= 0)
		r = see_symbols(n, places, keys, set->n);
	return r < 0 ? r : table_of(&n->symbols, keys, set->n, ret);
}
