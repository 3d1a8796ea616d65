/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-packet-btf.c - what the running kernel calls the reasons for which it drops packets.
 *
 * Their numbers move with every version (they are no ABI), so segments carry names. Subsystems have
 * numbers of their own above the core's: the high half is the subsystem, and the enumerators of those
 * that are built in hold the whole number. Those in modules are not known here, and stay numbers.
 */
#include <bpf/btf.h>
#include <stdlib.h>

#include "daemon/probes-internal.h"

static const struct {
	const char *enumeration;
	const char *prefix; /* cut off */
} sources[] = {
	{"skb_drop_reason", "SKB_DROP_REASON_"}, /* c504e5c2f964, 5.17 */
	{"qdisc_drop_reason", "QDISC_"},	 /* 7.0 */
	{"ovs_drop_reason", "OVS_"},
	{"mac80211_drop_reason", "RX_"},
};

struct reasons {
	struct probes_reason *rows;
	size_t n;
};

static int add_enum(const struct btf *btf, const char *name, const char *prefix,
		    struct reasons *all)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_ENUM);
	const struct btf_type *t;
	struct probes_reason *rows;

	if (id < 0)
		return 0;
	t = btf__type_by_id(btf, (unsigned int)id);
	rows = reallocarray(all->rows, all->n + btf_vlen(t), sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	all->rows = rows;
	for (unsigned int i = 0; i < btf_vlen(t); i++) {
		const struct btf_enum *e = &btf_enum(t)[i];
		const char *s = btf__str_by_offset(btf, e->name_off);

		/* Bounds and masks are no reasons. */
		if (!s || strncmp(s, "__", 2) == 0 || strstr(s, "_SUBSYS_MASK") ||
		    (strlen(s) > 4 && strcmp(s + strlen(s) - 4, "_MAX") == 0))
			continue;
		if (strncmp(s, prefix, strlen(prefix)) == 0)
			s += strlen(prefix);
		rows[all->n].value = (uint32_t)e->val;
		snprintf(rows[all->n].name, sizeof(rows[all->n].name), "%s", s);
		all->n++;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const struct probes_reason *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

int probes_packet_reasons(const struct btf *btf, struct probes_reason **ret, size_t *ret_n)
{
	struct reasons all = {0};
	int r;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(sources); i++) {
		r = add_enum(btf, sources[i].enumeration, sources[i].prefix, &all);
		if (r < 0) {
			free(all.rows);
			return r;
		}
	}
	if (all.n)
		qsort(all.rows, all.n, sizeof(*all.rows), by_value);
	*ret = all.rows;
	*ret_n = all.n;
	return 0;
}
