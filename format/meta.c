// SPDX-License-Identifier: BSD-2-Clause
/*
 * meta.c - file header and trailer: between structs and bytes.
 *
 * Nothing here depends on the layout of the structs in memory: each field is converted by name.
 * The footer is in meta-footer.c, sections in section.c.
 */
#include "format/meta.h"

#include "format/section.h"

#include <assert.h>
#include <endian.h>
#include <xxhash.h>

#define HEADER_SECTIONS                                                                      \
	(1U << IOT_SECTION_HOST | 1U << IOT_SECTION_KERNEL | 1U << IOT_SECTION_SELECTION |   \
	 1U << IOT_SECTION_PROBES | 1U << IOT_SECTION_DEVICES | 1U << IOT_SECTION_IDENTITY | \
	 1U << IOT_SECTION_REASONS | 1U << IOT_SECTION_ANONYMIZED | 1U << IOT_SECTION_SOURCE)

/* ---- header ---- */

static int header_sections(const struct iot_segment_info *info, struct iot_buf *buf)
{
	int r;

	r = iot_section_add_text(buf, IOT_SECTION_HOST, info->host, sizeof(info->host));
	if (r < 0)
		return r;
	r = iot_section_add_text(buf, IOT_SECTION_KERNEL, info->kernel, sizeof(info->kernel));
	if (r < 0)
		return r;
	r = iot_section_add_text(buf, IOT_SECTION_SELECTION, info->selection,
				 sizeof(info->selection));
	if (r < 0)
		return r;
	r = iot_section_add_probes(buf, info->probes, info->n_probes);
	if (r < 0)
		return r;
	r = iot_section_add_names(buf, IOT_SECTION_DEVICES, &info->devices);
	if (r == 0)
		r = iot_section_add_text(buf, IOT_SECTION_ANONYMIZED, info->anonymized,
					 sizeof(info->anonymized));
	if (r == 0)
		r = iot_section_add_text(buf, IOT_SECTION_SOURCE, info->source,
					 sizeof(info->source));
	if (r < 0 || info->stream != IOT_STREAM_PACKET)
		return r;
	r = iot_section_add_text(buf, IOT_SECTION_IDENTITY, info->identity, sizeof(info->identity));
	if (r < 0)
		return r;
	return iot_section_add_names(buf, IOT_SECTION_REASONS, &info->reasons);
}

int iot_meta_header_encode(const struct iot_segment_info *info, struct iot_buf *buf,
			   uint64_t *ret_hash)
{
	struct iot_disk_header disk = {
		.frame.magic = htole32(IOT_MAGIC_HEADER),
		.version = htole16(IOT_FORMAT_VERSION),
		.fixed_size = htole32(sizeof(disk)),
		.incompat = htole64(info->stream == IOT_STREAM_PACKET ? IOT_INCOMPAT_PACKET : 0),
		.stream = info->stream,
		.swap_out = info->swap_out,
		.swap_in = info->swap_in,
		.n_rings = htole32(info->n_rings),
		.n_cpus = htole32(info->n_cpus),
		.epoch = htole64(info->epoch),
		.seq = htole64(info->seq),
		.prev_footer_hash = htole64(info->prev_footer_hash),
		.attach_ns = htole64(info->attach_ns),
		.clocks.monotonic_ns = htole64(info->clocks.monotonic_ns),
		.clocks.boottime_ns = htole64(info->clocks.boottime_ns),
		.clocks.realtime_ns = htole64(info->clocks.realtime_ns),
	};
	size_t start = buf->size;
	int r;

	if (info->n_rings < 1 || info->n_rings > IOT_MAX_RINGS)
		return -EINVAL;
	memcpy(disk.tag, IOT_TAG_HEADER, sizeof(disk.tag));
	memcpy(disk.machine_id, info->machine_id, sizeof(disk.machine_id));
	memcpy(disk.boot_id, info->boot_id, sizeof(disk.boot_id));
	memcpy(disk.capture_id, info->capture_id, sizeof(disk.capture_id));
	r = iot_buf_append(buf, &disk, sizeof(disk));
	if (r < 0)
		return r;
	r = header_sections(info, buf);
	if (r < 0)
		return r;
	return iot_frame_close(buf, start, IOT_LIMIT_HEADER_BYTES, ret_hash);
}

static int check_version(const struct iot_disk_header *disk, struct iot_error *err)
{
	uint64_t unknown = le64toh(disk->incompat) & ~IOT_INCOMPAT_KNOWN;

	if (le16toh(disk->version) != IOT_FORMAT_VERSION)
		return iot_error_set(err, -EPROTONOSUPPORT,
				     "segment format version %u, this program reads version %u",
				     le16toh(disk->version), IOT_FORMAT_VERSION);
	if (unknown)
		return iot_error_set(
			err, -EPROTONOSUPPORT,
			"the segment needs feature %u, which this program does not know",
			(unsigned int)__builtin_ctzll(unknown));
	return 0;
}

static int decode_sections(const struct iot_sections *s, struct iot_segment_info *info)
{
	int r;

	r = iot_section_text(s, IOT_SECTION_HOST, info->host, sizeof(info->host));
	if (r < 0)
		return r;
	r = iot_section_text(s, IOT_SECTION_KERNEL, info->kernel, sizeof(info->kernel));
	if (r < 0)
		return r;
	r = iot_section_text(s, IOT_SECTION_SELECTION, info->selection, sizeof(info->selection));
	if (r < 0)
		return r;
	r = iot_section_probes(s, &info->probes, &info->n_probes);
	if (r < 0)
		return r;
	r = iot_section_names(s, IOT_SECTION_DEVICES, &info->devices);
	if (r < 0)
		return r;
	r = iot_section_text(s, IOT_SECTION_IDENTITY, info->identity, sizeof(info->identity));
	if (r < 0)
		return r;
	r = iot_section_text(s, IOT_SECTION_ANONYMIZED, info->anonymized, sizeof(info->anonymized));
	if (r < 0)
		return r;
	r = iot_section_text(s, IOT_SECTION_SOURCE, info->source, sizeof(info->source));
	if (r < 0)
		return r;
	return iot_section_names(s, IOT_SECTION_REASONS, &info->reasons);
}

int iot_meta_header_decode(const void *data, size_t size, struct iot_segment_info *ret,
			   uint64_t *ret_hash, struct iot_error *err)
{
	_cleanup_(iot_segment_info_done) struct iot_segment_info info = {0};
	struct iot_disk_header disk;
	struct iot_sections sections;
	uint64_t hash;
	int r;

	r = iot_frame_open(data, size, IOT_MAGIC_HEADER, IOT_LIMIT_HEADER_BYTES, IOT_TAG_HEADER,
			   &hash);
	if (r < 0)
		return r;
	if (size < sizeof(disk) + sizeof(hash))
		return -EBADMSG;
	memcpy(&disk, data, sizeof(disk));
	r = check_version(&disk, err);
	if (r < 0)
		return r;
	info.n_rings = le32toh(disk.n_rings);
	/* Streams after the first announce themselves, or a reader would take them for requests. */
	if (disk.stream == IOT_STREAM_PACKET && !(le64toh(disk.incompat) & IOT_INCOMPAT_PACKET))
		return -EBADMSG;
	if (disk.reserved0 || disk.reserved1 || disk.reserved2 ||
	    le32toh(disk.fixed_size) < sizeof(disk) || info.n_rings < 1 ||
	    info.n_rings > IOT_MAX_RINGS)
		return -EBADMSG;
	memcpy(info.machine_id, disk.machine_id, sizeof(info.machine_id));
	memcpy(info.boot_id, disk.boot_id, sizeof(info.boot_id));
	memcpy(info.capture_id, disk.capture_id, sizeof(info.capture_id));
	info.stream = disk.stream;
	info.swap_out = disk.swap_out;
	info.swap_in = disk.swap_in;
	info.n_cpus = le32toh(disk.n_cpus);
	info.epoch = le64toh(disk.epoch);
	info.seq = le64toh(disk.seq);
	info.prev_footer_hash = le64toh(disk.prev_footer_hash);
	info.attach_ns = le64toh(disk.attach_ns);
	info.clocks.monotonic_ns = le64toh(disk.clocks.monotonic_ns);
	info.clocks.boottime_ns = le64toh(disk.clocks.boottime_ns);
	info.clocks.realtime_ns = le64toh(disk.clocks.realtime_ns);
	r = iot_sections_parse(data, size, le32toh(disk.fixed_size), HEADER_SECTIONS, &sections);
	if (r < 0)
		return r;
	r = decode_sections(&sections, &info);
	if (r < 0)
		return r;
	*ret = info;
	info = (struct iot_segment_info){0};
	if (ret_hash)
		*ret_hash = hash;
	return 0;
}

/* ---- trailer ---- */

void iot_meta_trailer_encode(uint64_t footer_offset, uint32_t footer_size,
			     uint8_t ret[IOT_TRAILER_BYTES])
{
	struct iot_disk_trailer disk = {
		.frame.magic = htole32(IOT_MAGIC_TRAILER),
		.frame.size = htole32(sizeof(disk) - sizeof(disk.frame)),
		.version = htole16(IOT_FORMAT_VERSION),
		.footer_size = htole32(footer_size),
		.footer_offset = htole64(footer_offset),
	};

	_Static_assert(sizeof(disk) == IOT_TRAILER_BYTES, "the last 32 bytes");
	disk.hash = htole64(XXH64(&disk, offsetof(struct iot_disk_trailer, hash), 0));
	memcpy(ret, &disk, sizeof(disk));
}

int iot_meta_trailer_decode(const void *data, uint64_t file_size, uint64_t *ret_footer_offset,
			    uint32_t *ret_footer_size)
{
	struct iot_disk_trailer disk;
	uint64_t offset;
	uint32_t size;

	memcpy(&disk, data, sizeof(disk));
	if (le32toh(disk.frame.magic) != IOT_MAGIC_TRAILER ||
	    le32toh(disk.frame.size) != sizeof(disk) - sizeof(disk.frame) ||
	    le64toh(disk.hash) != XXH64(&disk, offsetof(struct iot_disk_trailer, hash), 0))
		return -EBADMSG;
	if (le16toh(disk.version) != IOT_FORMAT_VERSION)
		return -EPROTONOSUPPORT;
	offset = le64toh(disk.footer_offset);
	size = le32toh(disk.footer_size);
	if (disk.reserved || size > IOT_LIMIT_FOOTER_BYTES || file_size < sizeof(disk) ||
	    offset > file_size - sizeof(disk) || file_size - sizeof(disk) - offset != size)
		return -EBADMSG;
	*ret_footer_offset = offset;
	*ret_footer_size = size;
	return 0;
}
