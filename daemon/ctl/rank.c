// SPDX-License-Identifier: BSD-2-Clause
/* rank.c - see rank.h. */
#include "daemon/ctl/rank.h"
#include "format/block.h"

#include <assert.h>

#define TABLE_MIN 1024U
#define MAX_PLACES 4096U

void rank_done(struct rank *rk)
{
	for (size_t i = 0; i < rk->n_groups; i++) {
		if (rk->groups[i].latency)
			hist_done(rk->groups[i].latency);
		free(rk->groups[i].latency);
	}
	free(rk->groups);
	free(rk->table);
	free(rk->places);
	*rk = (struct rank){0};
}

uint64_t rank_columns(enum ctl_by by)
{
	uint64_t columns = IOT_COLS_OP | IOT_COLS_BYTES_DONE | IOT_COLS_COMPLETE | IOT_COLS_START |
			   IOT_COLS_ISSUE;

	switch (by) {
	case CTL_BY_FILE:
		return columns | IOT_COLS_FILE;
	case CTL_BY_PROCESS:
	case CTL_BY_CGROUP:
		return columns | IOT_COLS_CONTEXT;
	case CTL_BY_DEVICE:
		return columns | IOT_COLS_DEVICE;
	default:
		return columns;
	}
}

/* ---- keys --------------------------------------------------------------------------------------- */

/* Hosts and boots are few; of a file made to exhaust memory the further ones are -ENOSPC. */
static int find_place(struct rank *rk, const struct iot_segment_info *info, bool add, uint16_t *ret)
{
	static const uint8_t no_boot[16];
	const uint8_t *boot = rk->by == CTL_BY_PROCESS || rk->by == CTL_BY_CGROUP ? info->boot_id
										  : no_boot;
	struct rank_place *p;

	for (size_t i = rk->n_places; i-- > 0;) {
		p = &rk->places[i];
		if (memcmp(p->machine_id, info->machine_id, 16) == 0 &&
		    memcmp(p->boot_id, boot, 16) == 0 && strcmp(p->host, info->host) == 0) {
			*ret = (uint16_t)i;
			return 0;
		}
	}
	if (!add || rk->n_places == MAX_PLACES)
		return -ENOSPC;
	if ((rk->n_places & (rk->n_places + 1)) == 0) {
		p = reallocarray(rk->places, 2 * (rk->n_places + 1), sizeof(*p));
		if (!p)
			return -ENOMEM;
		rk->places = p;
	}
	p = &rk->places[rk->n_places];
	memcpy(p->machine_id, info->machine_id, 16);
	memcpy(p->boot_id, boot, 16);
	snprintf(p->host, sizeof(p->host), "%s", info->host);
	*ret = (uint16_t)rk->n_places++;
	return 0;
}

static const struct rank_key rest = {.kind = RANK_REST};

static struct rank_key unknown(uint64_t number)
{
	return (struct rank_key){.number = number, .kind = RANK_UNKNOWN};
}

static int key_of(struct rank *rk, const struct iot_segment_info *info, const struct iot_request *r,
		  bool add, struct rank_key *ret)
{
	struct rank_key key = {0};
	int q;

	switch (rk->by) {
	case CTL_BY_FILE:
		if (!r->ino || r->file_by == IOT_FILE_BY_NONE) {
			*ret = unknown(r->origin);
			return 0;
		}
		key.number = r->ino;
		key.fsdev = r->fsdev;
		break;
	case CTL_BY_PROCESS:
		if (r->submitter == IOT_SUBMITTER_NONE) {
			*ret = unknown(0);
			return 0;
		}
		key.number = r->tgid ? r->tgid : r->pid; /* imported: the thread is all there is */
		break;
	case CTL_BY_CGROUP:
		if (!r->cgroup) {
			*ret = unknown(0);
			return 0;
		}
		key.number = r->cgroup;
		break;
	case CTL_BY_DEVICE:
		key.number = r->dev;
		break;
	default:
		/* The same kinds on every machine. */
		key.number = r->origin < IOT_N_ORIGINS ? r->origin : IOT_ORIGIN_UNKNOWN;
		*ret = key;
		return 0;
	}
	q = find_place(rk, info, add, &key.place);
	*ret = q == -ENOSPC ? rest : key;
	return q == -ENOSPC ? 0 : q;
}

static bool same_key(const struct rank_key *a, const struct rank_key *b)
{
	return a->number == b->number && a->fsdev == b->fsdev && a->place == b->place &&
	       a->kind == b->kind;
}

static uint64_t hash_key(const struct rank_key *k)
{
	uint64_t x = k->number ^ ((uint64_t)k->fsdev << 32 | (uint32_t)k->place << 16 | k->kind) *
					 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* ---- groups ------------------------------------------------------------------------------------- */

static uint32_t *find_slot(struct rank *rk, const struct rank_key *key)
{
	size_t mask = rk->table_size - 1, i = hash_key(key) & mask;

	while (rk->table[i] && !same_key(&rk->groups[rk->table[i] - 1].key, key))
		i = (i + 1) & mask;
	return &rk->table[i];
}

/* At most half full, so that a search ends soon. */
static int grow_table(struct rank *rk, size_t size)
{
	uint32_t *old = rk->table;

	rk->table = calloc(size, sizeof(*rk->table));
	if (!rk->table) {
		rk->table = old;
		return -ENOMEM;
	}
	free(old);
	rk->table_size = size;
	for (size_t i = 0; i < rk->n_groups; i++)
		*find_slot(rk, &rk->groups[i].key) = (uint32_t)i + 1;
	return 0;
}

static int add_group(struct rank *rk, const struct rank_key *key, struct rank_group **ret)
{
	struct rank_group *g;
	int r;

	if (rk->n_groups == rk->n_allocated) {
		size_t want = rk->n_allocated ? 2 * rk->n_allocated : 64;

		g = reallocarray(rk->groups, want, sizeof(*g));
		if (!g)
			return -ENOMEM;
		rk->groups = g;
		rk->n_allocated = want;
	}
	if (2 * (rk->n_groups + 1) > rk->table_size) {
		r = grow_table(rk, rk->table_size ? 2 * rk->table_size : TABLE_MIN);
		if (r < 0)
			return r;
	}
	assert(rk->groups);
	g = &rk->groups[rk->n_groups++];
	*g = (struct rank_group){.key = *key};
	*find_slot(rk, key) = (uint32_t)rk->n_groups;
	*ret = g;
	return 0;
}

static struct rank_group *find_group(struct rank *rk, const struct rank_key *key)
{
	uint32_t i = rk->table_size ? *find_slot(rk, key) : 0;

	return i ? &rk->groups[i - 1] : NULL;
}

static int get_group(struct rank *rk, const struct rank_key *key, struct rank_group **ret)
{
	*ret = find_group(rk, key);
	if (*ret)
		return 0;
	/* One place is kept for the rest. */
	if (rk->n_groups < RANK_MAX_GROUPS - 1)
		return add_group(rk, key, ret);
	*ret = find_group(rk, &rest);
	return *ret ? 0 : add_group(rk, &rest, ret);
}

int rank_add(struct rank *rk, const struct iot_segment_info *info, const void *segment,
	     const struct iot_request *r, uint64_t realtime_ns)
{
	struct rank_group *g;
	struct rank_key key;
	int q;

	q = key_of(rk, info, r, true, &key);
	if (q >= 0)
		q = get_group(rk, &key, &g);
	if (q < 0)
		return q;
	g->requests++;
	g->bytes += r->bytes_done;
	if (r->op == IOT_OP_READ)
		g->read_bytes += r->bytes_done;
	else if (r->op == IOT_OP_WRITE || r->op == IOT_OP_ZONE_APPEND)
		g->write_bytes += r->bytes_done;
	if (realtime_ns >= g->last_ns) {
		g->last_ns = realtime_ns;
		g->segment = segment;
	}
	/* A process is called what its first thread is called, if that has submitted anything. */
	if (!g->comm_is_main && (r->pid == r->tgid || !g->comm[0])) {
		memcpy(g->comm, r->comm, sizeof(g->comm));
		g->comm_is_main = r->pid == r->tgid;
	}
	rk->requests++;
	rk->bytes += r->bytes_done;
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct rank_group *x = a, *y = b;
	int r;

	r = iot_cmp_u64(y->bytes, x->bytes);
	if (r == 0)
		r = iot_cmp_u64(y->requests, x->requests);
	if (r == 0)
		r = iot_cmp_u64(x->key.kind, y->key.kind);
	if (r == 0)
		r = iot_cmp_u64(x->key.place, y->key.place);
	if (r == 0)
		r = iot_cmp_u64(x->key.fsdev, y->key.fsdev);
	if (r == 0)
		r = iot_cmp_u64(x->key.number, y->key.number);
	return r;
}

int rank_choose(struct rank *rk, size_t top)
{
	if (rk->n_groups) {
		qsort(rk->groups, rk->n_groups, sizeof(*rk->groups), compare_groups);
		memset(rk->table, 0, rk->table_size * sizeof(*rk->table));
		for (size_t i = 0; i < rk->n_groups; i++)
			*find_slot(rk, &rk->groups[i].key) = (uint32_t)i + 1;
	}
	rk->n_shown = IOT_MIN(top, rk->n_groups);
	for (size_t i = 0; i < rk->n_shown; i++) {
		rk->groups[i].latency = calloc(1, sizeof(*rk->groups[i].latency));
		if (!rk->groups[i].latency)
			return -ENOMEM;
	}
	return 0;
}

int rank_add_latency(struct rank *rk, const struct iot_segment_info *info,
		     const struct iot_request *r)
{
	uint64_t begin = r->start_ns ? r->start_ns : r->issue_ns;
	struct rank_group *g;
	struct rank_key key;

	if (!begin || r->complete_ns < begin || key_of(rk, info, r, false, &key) < 0)
		return 0;
	g = find_group(rk, &key);
	if (!g)
		g = find_group(rk, &rest);
	return g && g->latency ? hist_add(g->latency, r->complete_ns - begin) : 0;
}
