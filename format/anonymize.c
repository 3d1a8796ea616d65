// SPDX-License-Identifier: BSD-2-Clause
/*
 * anonymize.c - what stands for a name, a command, an address; see anonymize.h.
 *
 * All of it is the keyed function of one byte that says the kind and of the thing itself, so that
 * nothing can be learned of one kind from another. 48 bits of the result name something: among a
 * million different names two are the same with a chance of 1 in 500. Commands and addresses come with
 * every block, so the last ones are remembered.
 */
#include "format/anonymize.h"

#include "format/segment-def.h"

#define CACHE_ENTRIES 16384U /* a power of two */
#define HEX_DIGITS 12U

/* Inputs of the keyed function begin with one of these; never reordered: files of one key belong together. */
enum domain {
	DOMAIN_MARK = 0,
	/* 1 .. : enum iot_name_kind */
	DOMAIN_COMM = 16,
	DOMAIN_ID = 17,
	DOMAIN_IPV4 = 18,
	DOMAIN_IPV6 = 19,
};

struct cached {
	uint8_t domain; /* 0: free */
	uint8_t from[16];
	uint8_t to[16];
};

struct iot_anonymizer {
	iot_prf_fn prf;
	void *key;
	char mark[64];
	struct cached cache[CACHE_ENTRIES];
};

static void keyed(const struct iot_anonymizer *a, unsigned int domain, const void *data,
		  size_t size, uint8_t ret[IOT_PRF_BYTES])
{
	uint8_t in[1 + IOT_LIMIT_NAME_BYTES];

	size = IOT_MIN(size, sizeof(in) - 1);
	in[0] = (uint8_t)domain;
	memcpy(in + 1, data, size);
	a->prf(a->key, in, 1 + size, ret);
}

/* A letter that says what it is, and 12 hexadecimal digits: short enough for a command. */
static char *name_of(const struct iot_anonymizer *a, unsigned int domain, char letter,
		     const void *data, size_t size, char ret[2 + HEX_DIGITS])
{
	uint8_t out[IOT_PRF_BYTES];

	keyed(a, domain, data, size, out);
	ret[0] = letter;
	for (unsigned int i = 0; i < HEX_DIGITS; i++)
		ret[1 + i] = "0123456789abcdef"[out[i / 2] >> (i % 2 ? 0 : 4) & 15];
	ret[1 + HEX_DIGITS] = '\0';
	return ret;
}

int iot_anonymizer_new(iot_prf_fn prf, void *key, const char *method, struct iot_anonymizer **ret)
{
	struct iot_anonymizer *a = calloc(1, sizeof(*a));
	char id[2 + HEX_DIGITS];

	if (!a)
		return -ENOMEM;
	a->prf = prf;
	a->key = key;
	snprintf(a->mark, sizeof(a->mark), "%s, key %s", method,
		 name_of(a, DOMAIN_MARK, 'k', "", 0, id));
	*ret = a;
	return 0;
}

struct iot_anonymizer *iot_anonymizer_free(struct iot_anonymizer *a)
{
	free(a);
	return NULL;
}

const char *iot_anonymizer_mark(const struct iot_anonymizer *a)
{
	return a->mark;
}

/* The place for what stands for `from`; positive 1: it is there already. */
#define CACHE_HIT 1
static int cache_find(struct iot_anonymizer *a, unsigned int domain, const uint8_t from[16],
		      struct cached **ret)
{
	uint64_t h[2];
	struct cached *c;

	memcpy(h, from, sizeof(h));
	h[0] = (h[0] ^ domain) * 0x9E3779B97F4A7C15ULL ^ h[1] * 0xC2B2AE3D27D4EB4FULL;
	c = &a->cache[h[0] >> 40 & (CACHE_ENTRIES - 1)];
	*ret = c;
	if (c->domain == domain && memcmp(c->from, from, sizeof(c->from)) == 0)
		return CACHE_HIT;
	c->domain = (uint8_t)domain;
	memcpy(c->from, from, sizeof(c->from));
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Digits, then nothing or a letter of `more` and digits, and so on: "0n1p2". */
static bool is_numbered(const char *s, const char *more)
{
	do {
		size_t digits = strspn(s, "0123456789");

		if (!digits)
			return false;
		s += digits;
	} while (*s && strchr(more, *s++));
	return !*s;
}

/* One that the kernel gives by itself, so that it says nothing of anybody. */
static bool is_kernel_device(const char *name)
{
	static const char *const numbered[] = {"nvme",	"mmcblk", "loop", "dm-",   "md",
					       "sr",	"zram",	  "ram",  "nbd",   "pmem",
					       "nullb", "bcache", "eth",  "ublkb", "scd"};
	static const char *const lettered[] = {"sd", "vd", "xvd", "hd"};

	if (strcmp(name, "lo") == 0)
		return true;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(numbered); i++) {
		size_t n = strlen(numbered[i]);

		if (strncmp(name, numbered[i], n) == 0 && is_numbered(name + n, "ncp"))
			return true;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(lettered); i++) {
		const char *s = name + strlen(lettered[i]);
		size_t letters;

		if (strncmp(name, lettered[i], strlen(lettered[i])) != 0)
			continue;
		letters = strspn(s, "abcdefghijklmnopqrstuvwxyz");
		if (letters >= 1 && letters <= 3 && !s[letters + strspn(s + letters, "0123456789")])
			return true;
	}
	return false;
}

/*
 * Each directory by the whole path that leads to it: cgroups keep their parents, and no name can be
 * recognised by how often it occurs below different ones.
 */
static int cgroup_name(const struct iot_anonymizer *a, const char *path, char **ret)
{
	char *out = calloc(1, strlen(path) * (3 + HEX_DIGITS) + 1), *p = out;
	const char *s = path;

	if (!out)
		return -ENOMEM;
	while (*s) {
		size_t n = strcspn(s, "/");

		if (n) {
			name_of(a, IOT_NAME_CGROUP, 'c', path, (size_t)(s - path) + n, p);
			p += strlen(p);
		}
		s += n;
		while (*s == '/')
			*p++ = *s++;
	}
	*ret = out;
	return 0;
}

int iot_anonymize_name(struct iot_anonymizer *a, enum iot_name_kind kind, const char *name,
		       char **ret)
{
	static const char letters[] = {
		[IOT_NAME_HOST] = 'h',
		[IOT_NAME_DEVICE] = 'd',
		[IOT_NAME_PROGRAM] = 'x',
	};
	char out[2 + HEX_DIGITS];
	char *copy;

	if (kind == IOT_NAME_CGROUP)
		return cgroup_name(a, name, ret);
	if (!*name || (kind == IOT_NAME_DEVICE && is_kernel_device(name)))
		copy = strdup(name);
	else
		copy = strdup(name_of(a, kind, letters[kind], name, strlen(name), out));
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

void iot_anonymize_comm(struct iot_anonymizer *a, char comm[IOT_COMM_LEN])
{
	uint8_t from[16] = {0};
	char name[2 + HEX_DIGITS];
	struct cached *c;

	_Static_assert(sizeof(from) == IOT_COMM_LEN && sizeof(name) <= IOT_COMM_LEN, "they fit");
	if (!comm[0])
		return;
	memcpy(from, comm, strnlen(comm, IOT_COMM_LEN));
	if (cache_find(a, DOMAIN_COMM, from, &c) != CACHE_HIT) {
		name_of(a, DOMAIN_COMM, 'p', from, strnlen(comm, IOT_COMM_LEN), name);
		memset(c->to, 0, sizeof(c->to));
		memcpy(c->to, name, strlen(name));
	}
	memcpy(comm, c->to, IOT_COMM_LEN);
}

void iot_anonymize_id(struct iot_anonymizer *a, uint8_t id[16])
{
	static const uint8_t none[16];
	uint8_t out[IOT_PRF_BYTES];

	/* A machine without an id says so by zeros. */
	if (memcmp(id, none, sizeof(none)) == 0)
		return;
	keyed(a, DOMAIN_ID, id, 16, out);
	memcpy(id, out, 16);
}

/* ---- addresses --------------------------------------------------------------------------------- */

static unsigned int bit_of(const uint8_t *address, unsigned int i)
{
	return address[i / 8] >> (7 - i % 8) & 1;
}

static void map_address(const struct iot_anonymizer *a, unsigned int domain, unsigned int bits,
			const uint8_t from[16], uint8_t to[16])
{
	uint8_t prefix[1 + 16] = {0}; /* how many bits, and these */
	uint8_t out[IOT_PRF_BYTES];

	memset(to, 0, 16);
	for (unsigned int i = 0; i < bits; i++) {
		unsigned int bit = bit_of(from, i);

		prefix[0] = (uint8_t)i;
		keyed(a, domain, prefix, 1 + bits / 8, out);
		to[i / 8] |= (uint8_t)((bit ^ (out[0] & 1U)) << (7 - i % 8));
		prefix[1 + i / 8] |= (uint8_t)(bit << (7 - i % 8));
	}
}

void iot_anonymize_address(struct iot_anonymizer *a, uint8_t family, uint8_t address[16])
{
	unsigned int domain = family == 4 ? DOMAIN_IPV4 : DOMAIN_IPV6;
	uint8_t from[16] = {0};
	struct cached *c;

	if (family != 4 && family != 6)
		return;
	memcpy(from, address, family == 4 ? 4 : 16);
	if (cache_find(a, domain, from, &c) != CACHE_HIT)
		map_address(a, domain, family == 4 ? 32 : 128, from, c->to);
	memcpy(address, c->to, sizeof(c->to));
}

void iot_anonymize_flow(struct iot_anonymizer *a, struct iot_flow *f)
{
	iot_anonymize_address(a, f->family, f->src);
	iot_anonymize_address(a, f->family, f->dst);
}

/* ---- filters ----------------------------------------------------------------------------------- */

/* "tc:NAME#ID" and "xdp:NAME#ID", as the daemon calls the probe of a program (daemon/probes-programs.c). */
int iot_anonymize_probe(struct iot_anonymizer *a, char *name, size_t size)
{
	char *begin = strchr(name, ':'), *end = begin ? strrchr(begin, '#') : NULL;
	_cleanup_free_ char *program = NULL, *shown = NULL;
	int r;

	if (!begin || !end)
		return 0;
	program = strndup(begin + 1, (size_t)(end - begin - 1));
	if (!program)
		return -ENOMEM;
	r = iot_anonymize_name(a, IOT_NAME_PROGRAM, program, &shown);
	if (r < 0)
		return r;
	free(program);
	if (asprintf(&program, "%.*s:%s%s", (int)(begin - name), name, shown, end) < 0) {
		program = NULL;
		return -ENOMEM;
	}
	snprintf(name, size, "%s", program);
	return 0;
}

int iot_anonymize_filter(struct iot_anonymizer *a, struct iot_filter *f)
{
	bool is_number = f->dev[0] && !f->dev[strspn(f->dev, "0123456789:")];
	_cleanup_free_ char *dev = NULL;
	int r;

	if (!is_number) {
		r = iot_anonymize_name(a, IOT_NAME_DEVICE, f->dev, &dev);
		if (r < 0)
			return r;
		snprintf(f->dev, sizeof(f->dev), "%s", dev);
	}
	if (f->comm[0])
		iot_anonymize_comm(a, f->comm);
	iot_anonymize_address(a, f->flow.src.family, f->flow.src.addr);
	iot_anonymize_address(a, f->flow.dst.family, f->flow.dst.addr);
	return iot_anonymize_probe(a, f->probe, sizeof(f->probe));
}
