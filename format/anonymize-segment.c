// SPDX-License-Identifier: BSD-2-Clause
/*
 * anonymize-segment.c - a segment that is read anonymized: its tables at once, its blocks as they come.
 *
 * Of a block only dictionaries change, so that reading costs hardly more. Commands keep their place in
 * theirs. Addresses do not: an entry has no family (the address 0.0.0.0 of one flow and :: of another are
 * one), so the dictionary is made anew from the flows.
 */
#include <endian.h>

#include "format/anonymize.h"
#include "format/batch-def.h"
#include "format/block.h"
#include "format/columns.h"
#include "format/reader-priv.h"
#include "format/scan-internal.h"

#define HIDDEN "(anonymized)"

/* ---- tables ------------------------------------------------------------------------------------ */

static int anonymize_names(struct iot_anonymizer *a, enum iot_name_kind kind,
			   struct iot_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		char *name;
		int r = iot_anonymize_name(a, kind, names->items[i].name, &name);

		if (r < 0)
			return r;
		free(names->items[i].name);
		names->items[i].name = name;
	}
	return 0;
}

static int anonymize_probes(struct iot_anonymizer *a, struct iot_probe *probes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (!probes[i].program)
			continue;
		r = iot_anonymize_probe(a, probes[i].name, sizeof(probes[i].name));
		if (r < 0)
			return r;
		probes[i].detail[0] = '\0';
	}
	return 0;
}

/*
 * What people wrote: patterns of devices, a filter expression. What is left says no more than that something
 * was left out, so that a reader takes the record for silent about every device.
 */
static void anonymize_selection(struct iot_segment_info *info)
{
	bool without_swap = iot_segment_without_swap(info);
	const char *sample = strstr(info->selection, "; 1 flow in ");
	char text[sizeof(info->selection)];

	if (info->stream == IOT_STREAM_PACKET) {
		if (strncmp(info->selection, "all", 3) == 0 &&
		    (!info->selection[3] || sample == info->selection + 3))
			return;
		snprintf(text, sizeof(text), "filter " HIDDEN "%s", sample ? sample : "");
	} else {
		if (!info->selection[0] || strcmp(info->selection, "all") == 0 ||
		    strcmp(info->selection, IOT_SELECTION_WITHOUT_SWAP) == 0)
			return;
		snprintf(text, sizeof(text), "%sinclude " HIDDEN,
			 without_swap ? IOT_SELECTION_WITHOUT_SWAP "; " : "");
	}
	memcpy(info->selection, text, sizeof(text));
}

static int anonymize_info(struct iot_anonymizer *a, struct iot_segment_info *info)
{
	_cleanup_free_ char *host = NULL;
	int r = iot_anonymize_name(a, IOT_NAME_HOST, info->host, &host);

	if (r < 0)
		return r;
	snprintf(info->host, sizeof(info->host), "%s", host);
	snprintf(info->anonymized, sizeof(info->anonymized), "%s", iot_anonymizer_mark(a));
	iot_anonymize_id(a, info->machine_id);
	iot_anonymize_id(a, info->boot_id);
	anonymize_selection(info);
	r = anonymize_probes(a, info->probes, info->n_probes);
	return r < 0 ? r : anonymize_names(a, IOT_NAME_DEVICE, &info->devices);
}

static int anonymize_footer(struct iot_anonymizer *a, struct iot_footer *f)
{
	int r = anonymize_probes(a, f->probes, f->n_probes);

	if (r == 0)
		r = anonymize_names(a, IOT_NAME_DEVICE, &f->devices);
	return r < 0 ? r : anonymize_names(a, IOT_NAME_CGROUP, &f->cgroups);
}

int iot_segment_anonymize(struct iot_segment *s, struct iot_anonymizer *a, struct iot_error *err)
{
	int r;

	if (s->info.anonymized[0])
		return iot_error_set(err, -EALREADY, "%s: is anonymized already (%s)", s->path,
				     s->info.anonymized);
	r = anonymize_info(a, &s->info);
	if (r == 0 && s->sealed)
		r = anonymize_footer(a, &s->meta.footer);
	if (r < 0)
		return iot_error_set(err, r, "%s: out of memory", s->path);
	s->anonymizer = a;
	return 0;
}

int iot_scan_anonymize(struct iot_scan *sc, struct iot_anonymizer *a, struct iot_error *err)
{
	size_t n = iot_scan_n_segments(sc), n_copies = iot_scan_n_copies(sc);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = iot_segment_anonymize(iot_scan_segment(sc, i), a, err);
	for (size_t i = 0; r == 0 && i < n_copies; i++)
		r = iot_segment_anonymize(iot_scan_copy(sc, i), a, err);
	return r;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* comm: the first of its two words in an entry; bytes in the order of memory, whatever the machine's. */
static void anonymize_comms(struct iot_anonymizer *a, struct iot_dict *d, unsigned int comm)
{
	for (uint32_t i = 0; i < d->n; i++) {
		uint64_t *words = d->words + (size_t)i * d->n_words + comm;
		uint64_t text[2] = {htole64(words[0]), htole64(words[1])};
		char name[IOT_COMM_LEN];

		memcpy(name, text, sizeof(name));
		iot_anonymize_comm(a, name);
		memcpy(text, name, sizeof(text));
		words[0] = le64toh(text[0]);
		words[1] = le64toh(text[1]);
	}
}

/* The address at an index of the old dictionary into the new one. */
static int move_address(struct iot_anonymizer *a, struct iot_dict *to, const uint64_t *old,
			uint8_t family, uint64_t *index)
{
	const uint64_t *words = old + *index * 2;
	uint64_t text[2] = {htobe64(words[0]), htobe64(words[1])};
	uint8_t address[16];
	uint16_t at = 0;
	int q;

	memcpy(address, text, sizeof(address));
	iot_anonymize_address(a, family, address);
	memcpy(text, address, sizeof(text));
	text[0] = be64toh(text[0]);
	text[1] = be64toh(text[1]);
	q = iot_dict_add(to, text, 2, &at);
	*index = at;
	return q ? -ENOMEM : 0;
}

static int anonymize_addresses(struct iot_anonymizer *a, struct iot_batch *b)
{
	struct iot_dict *addresses = &b->dicts[IOT_PACKET_DICT_ADDRESS];
	struct iot_dict *flows = &b->dicts[IOT_PACKET_DICT_FLOW];
	size_t size = (size_t)addresses->n * addresses->n_words * sizeof(uint64_t);
	_cleanup_free_ uint64_t *old = malloc(IOT_MAX(size, (size_t)1));
	int r;

	if (!old)
		return -ENOMEM;
	memcpy(old, addresses->words, size);
	/* Each flow names two, and a dictionary has at most 65,536 flows, of which a block uses as many as it
	 * has records: what does not fit a number of 16 bits cannot have been written. */
	r = iot_dict_reserve(addresses, IOT_MIN(IOT_MAX(2 * flows->n, 1U), 65536U));
	for (uint32_t i = 0; r == 0 && i < flows->n; i++) {
		uint64_t *flow = flows->words + (size_t)i * flows->n_words;
		uint8_t family = (uint8_t)(flow[4] >> 16);

		r = move_address(a, addresses, old, family, &flow[0]);
		if (r == 0)
			r = move_address(a, addresses, old, family, &flow[1]);
	}
	return r;
}

int iot_anonymize_batch(struct iot_anonymizer *a, struct iot_batch *b)
{
	if (iot_batch_stream(b) == IOT_STREAM_BLOCK) {
		if (iot_batch_has(b, IOT_COLUMN_CONTEXT))
			anonymize_comms(a, &b->dicts[IOT_REQUEST_DICT_CONTEXT], 2);
		return 0;
	}
	if (iot_batch_has(b, IOT_PCOLUMN_CONTEXT))
		anonymize_comms(a, &b->dicts[IOT_PACKET_DICT_CONTEXT], 1);
	return iot_batch_has(b, IOT_PCOLUMN_FLOW) ? anonymize_addresses(a, b) : 0;
}
