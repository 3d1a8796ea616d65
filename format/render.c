// SPDX-License-Identifier: BSD-2-Clause
/*
 * render.c - numbers, names and the JSON line, see render.h.
 *
 * The JSON object starts with the fields of the command-line contract, in its order, up to cpu; later
 * ones are appended behind, and none is ever renamed or moved. packaging/man/iotracectl.1 lists them
 * with their meaning, and tests/unit/test-man.sh compares.
 *
 * dev is "major:minor" of the partition the request was addressed to, or of the disk; disk is the
 * disk's name, part the partition's name (null for the whole disk). *_ns are CLOCK_MONOTONIC of
 * the recorded host, realtime_ns is the wall clock at completion. error is 0 or a negative errno,
 * null where the raw status has no known translation. cpu is the completing CPU.
 */
#include "format/render.h"

static const char two_digits[201] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";

/* Decimal digits of v, 1 for 0: log10 from log2, corrected by one comparison. */
static unsigned int count_digits(uint64_t v)
{
	static const uint64_t powers[] = {
		0,
		10,
		100,
		1000,
		10000,
		100000,
		1000000,
		10000000,
		100000000,
		1000000000,
		10000000000,
		100000000000,
		1000000000000,
		10000000000000,
		100000000000000,
		1000000000000000,
		10000000000000000,
		100000000000000000,
		1000000000000000000,
		10000000000000000000U,
	};
	unsigned int t = (64U - (unsigned int)__builtin_clzll(v | 1)) * 1233 >> 12;

	return t + (v >= powers[t]);
}

char *iot_put_u64(char *p, uint64_t v)
{
	char *end = p + count_digits(v), *d = end;

	while (v >= 100) {
		d -= 2;
		memcpy(d, two_digits + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(d - 2, two_digits + 2 * v, 2);
	else
		d[-1] = (char)('0' + v);
	return end;
}

char *iot_put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return iot_put_u64(p, (uint64_t)v);
	*p++ = '-';
	return iot_put_u64(p, 0 - (uint64_t)v);
}

char *iot_put_str(char *p, const char *s)
{
	size_t len = strlen(s);

	memcpy(p, s, len);
	return p + len;
}

char *iot_put_devno(char *p, uint32_t dev)
{
	p = iot_put_u64(p, IOT_DEV_MAJOR(dev));
	*p++ = ':';
	return iot_put_u64(p, IOT_DEV_MINOR(dev));
}

/* whole.frac of v / unit with three significant digits, cut off rather than rounded so that a
 * value never shows as the next unit's 1000. */
static char *put_scaled(char *p, uint64_t v, uint64_t unit)
{
	uint64_t whole = v / unit, rest = v % unit;

	p = iot_put_u64(p, whole);
	if (whole >= 100 || rest == 0)
		return p;
	/* Units are at most 10^9, or powers of two: halve those until rest * 100 cannot overflow. */
	for (; unit >> 40; unit >>= 10)
		rest >>= 10;
	if (whole >= 10) {
		*p++ = '.';
		*p++ = (char)('0' + rest * 10 / unit);
	} else {
		uint64_t hundredths = rest * 100 / unit;

		*p++ = '.';
		memcpy(p, two_digits + 2 * hundredths, 2);
		p += 2;
	}
	return p;
}

char *iot_put_duration(char *p, uint64_t ns)
{
	if (ns < 1000) {
		p = iot_put_u64(p, ns);
		return IOT_PUT_LIT(p, "ns");
	}
	if (ns < 1000000) {
		p = put_scaled(p, ns, 1000);
		return IOT_PUT_LIT(p, "us");
	}
	if (ns < 1000000000) {
		p = put_scaled(p, ns, 1000000);
		return IOT_PUT_LIT(p, "ms");
	}
	p = put_scaled(p, ns, 1000000000);
	*p++ = 's';
	return p;
}

char *iot_put_size(char *p, uint64_t bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned int shift = 0;

	while (shift < 6 && bytes >> (10 * (shift + 1)))
		shift++;
	if (!shift) {
		p = iot_put_u64(p, bytes);
		*p++ = 'B';
		return p;
	}
	p = put_scaled(p, bytes, 1ULL << (10 * shift));
	memcpy(p, units[shift - 1], 3);
	return p + 3;
}

char *iot_put_flags(char *p, uint32_t flags, char sep)
{
	bool first = true;

	while (flags) {
		const char *name = iot_flag_name((unsigned int)__builtin_ctz(flags));

		flags &= flags - 1;
		if (!name)
			continue;
		if (!first)
			*p++ = sep;
		p = iot_put_str(p, name);
		first = false;
	}
	return p;
}

/* Length of the UTF-8 sequence at s (len bytes left), 0 if there is none. */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
	uint32_t c;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > len)
		return 0;
	c = s[0] & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Overlong forms, surrogates and what lies beyond Unicode are not UTF-8. */
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

char *iot_put_utf8(char *p, const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n;

	for (size_t i = 0; i < len && u[i]; i += n) {
		n = utf8_sequence(u + i, len - i);
		if (n) {
			memcpy(p, u + i, n);
			p += n;
			continue;
		}
		*p++ = (char)(0xc0 | u[i] >> 6);
		*p++ = (char)(0x80 | (u[i] & 0x3f));
		n = 1;
	}
	return p;
}

/* Printable ASCII that stands for itself in JSON: nearly every byte of nearly every name. */
static inline bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

char *iot_put_json_string(char *p, const char *s, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *u = (const unsigned char *)s;
	size_t n;

	*p++ = '"';
	for (size_t i = 0; i < len && u[i]; i += n) {
		n = 1;
		if (is_plain(u[i])) {
			*p++ = (char)u[i];
			continue;
		}
		n = utf8_sequence(u + i, len - i);
		if (n == 0 || u[i] < 0x20 || u[i] == 0x7f) {
			p = IOT_PUT_LIT(p, "\\u00");
			*p++ = hex[u[i] >> 4];
			*p++ = hex[u[i] & 15];
			n = 1;
			continue;
		}
		if (u[i] == '"' || u[i] == '\\')
			*p++ = '\\';
		memcpy(p, u + i, n);
		p += n;
	}
	*p++ = '"';
	return p;
}

bool iot_queue_latency(const struct iot_request *r, uint64_t *ret_ns)
{
	uint64_t from = r->start_ns ? r->start_ns : r->insert_ns;
	uint64_t to = r->issue_last_ns ? r->issue_last_ns : r->issue_ns;

	if (!from || !to || to < from)
		return false;
	*ret_ns = to - from;
	return true;
}

bool iot_device_latency(const struct iot_request *r, uint64_t *ret_ns)
{
	uint64_t from = r->issue_last_ns ? r->issue_last_ns : r->issue_ns;

	if (!from || !r->complete_ns || r->complete_ns < from)
		return false;
	*ret_ns = r->complete_ns - from;
	return true;
}

const char *iot_known_name(const char *(*name_of)(unsigned int), uint8_t value)
{
	const char *name = name_of(value);

	return value && strcmp(name, "unknown") != 0 ? name : NULL;
}

const char *iot_swap_name(const struct iot_request *r, uint8_t swap_out, uint8_t swap_in)
{
	switch (r->swap) {
	case IOT_SWAP_OUT:
		return "out";
	case IOT_SWAP_IN:
		return "in";
	default:
		/* Only writes and reads can be swap; anything else is known not to be. */
		if (r->op == IOT_OP_WRITE && swap_out == IOT_ABILITY_UNAVAILABLE)
			return NULL;
		if (r->op == IOT_OP_READ && swap_in == IOT_ABILITY_UNAVAILABLE)
			return NULL;
		return "none";
	}
}

char *iot_put_json_u64(char *p, uint64_t v)
{
	if (!v)
		return IOT_PUT_LIT(p, "null");
	*p++ = '"';
	p = iot_put_u64(p, v);
	*p++ = '"';
	return p;
}

char *iot_put_json_name(char *p, const char *name)
{
	if (!name || !*name)
		return IOT_PUT_LIT(p, "null");
	return iot_put_json_string(p, name, strnlen(name, IOT_RENDER_NAME_MAX));
}

/* A word of ours, or null. */
static char *put_word(char *p, const char *word)
{
	if (!word || !*word)
		return IOT_PUT_LIT(p, "null");
	*p++ = '"';
	p = iot_put_str(p, word);
	*p++ = '"';
	return p;
}

static const char *submitter_name(uint8_t submitter)
{
	switch (submitter) {
	case IOT_SUBMITTER_START:
		return "start";
	case IOT_SUBMITTER_INSERT:
		return "insert";
	case IOT_SUBMITTER_ISSUE:
		return "issue";
	default:
		return NULL;
	}
}

static const char *swap_rule_name(uint8_t rule)
{
	static const char *const names[] = {NULL, "flag", "page", "partition"};

	return rule < IOT_ARRAY_SIZE(names) ? names[rule] : NULL;
}

static char *put_json_what(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	uint32_t flags = r->flags;
	bool first = true;

	p = IOT_PUT_LIT(p, "{\"id\":");
	p = iot_put_json_u64(p, r->id);
	p = IOT_PUT_LIT(p, ",\"dev\":\"");
	p = iot_put_devno(p, r->part);
	p = IOT_PUT_LIT(p, "\",\"disk\":");
	p = iot_put_json_name(p, ctx->disk);
	p = IOT_PUT_LIT(p, ",\"part\":");
	p = iot_put_json_name(p, r->part == r->dev ? NULL : ctx->part);
	p = IOT_PUT_LIT(p, ",\"op\":\"");
	p = iot_put_str(p, iot_op_name(r->op));
	p = IOT_PUT_LIT(p, "\",\"flags\":[");
	while (flags) {
		const char *name = iot_flag_name((unsigned int)__builtin_ctz(flags));

		flags &= flags - 1;
		if (!name)
			continue;
		if (!first)
			*p++ = ',';
		*p++ = '"';
		p = iot_put_str(p, name);
		*p++ = '"';
		first = false;
	}
	p = IOT_PUT_LIT(p, "],\"sector\":");
	p = r->sector == IOT_SECTOR_NONE ? IOT_PUT_LIT(p, "null") : iot_put_u64(p, r->sector);
	p = IOT_PUT_LIT(p, ",\"bytes\":");
	p = iot_put_u64(p, r->bytes);
	p = IOT_PUT_LIT(p, ",\"bytes_done\":");
	p = iot_put_u64(p, r->bytes_done);
	p = IOT_PUT_LIT(p, ",\"error\":");
	p = r->status && !r->error ? IOT_PUT_LIT(p, "null") : iot_put_i64(p, r->error);
	p = IOT_PUT_LIT(p, ",\"swap\":");
	return put_word(p, iot_swap_name(r, ctx->swap_out, ctx->swap_in));
}

static char *put_json_who(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	if (r->submitter == IOT_SUBMITTER_NONE) {
		p = IOT_PUT_LIT(p, ",\"pid\":null,\"tgid\":null,\"comm\":null");
	} else {
		p = IOT_PUT_LIT(p, ",\"pid\":");
		p = iot_put_u64(p, r->pid);
		p = IOT_PUT_LIT(p, ",\"tgid\":");
		p = ctx->imported && !r->tgid ? IOT_PUT_LIT(p, "null") : iot_put_u64(p, r->tgid);
		p = IOT_PUT_LIT(p, ",\"comm\":");
		p = iot_put_json_string(p, r->comm, sizeof(r->comm));
	}
	p = IOT_PUT_LIT(p, ",\"cgroup\":");
	p = iot_put_json_u64(p, r->cgroup);
	p = IOT_PUT_LIT(p, ",\"ino\":");
	p = iot_put_json_u64(p, r->ino);
	p = IOT_PUT_LIT(p, ",\"fsdev\":");
	if (r->fsdev) {
		*p++ = '"';
		p = iot_put_devno(p, r->fsdev);
		*p++ = '"';
	} else {
		p = IOT_PUT_LIT(p, "null");
	}
	p = IOT_PUT_LIT(p, ",\"origin\":");
	return put_word(p, iot_known_name(iot_origin_name, r->origin));
}

static char *put_json_cpu(char *p, bool known, uint32_t cpu, const struct iot_render *ctx)
{
	return known && iot_render_cpu(ctx, cpu) ? iot_put_u64(p, cpu) : IOT_PUT_LIT(p, "null");
}

static char *put_json_extra(char *p, const struct iot_request *r, const struct iot_render *ctx)
{
	p = IOT_PUT_LIT(p, ",\"requeues\":");
	p = iot_put_u64(p, r->requeues);
	p = IOT_PUT_LIT(p, ",\"merges\":");
	p = iot_put_u64(p, r->merges);
	p = IOT_PUT_LIT(p, ",\"segments\":");
	p = ctx->imported ? IOT_PUT_LIT(p, "null") : iot_put_u64(p, r->segments);
	p = IOT_PUT_LIT(p, ",\"issue_last_ns\":");
	p = iot_put_json_u64(p, r->issue_last_ns);
	p = IOT_PUT_LIT(p, ",\"issue_cpu\":");
	p = put_json_cpu(p, r->issue_ns != 0, r->issue_cpu, ctx);
	p = IOT_PUT_LIT(p, ",\"hwq\":");
	p = r->hwq == IOT_HWQ_NONE ? IOT_PUT_LIT(p, "null") : iot_put_u64(p, r->hwq);
	p = IOT_PUT_LIT(p, ",\"status\":");
	p = ctx->imported ? IOT_PUT_LIT(p, "null") : iot_put_u64(p, r->status);
	p = IOT_PUT_LIT(p, ",\"submitter\":");
	p = put_word(p, submitter_name(r->submitter));
	p = IOT_PUT_LIT(p, ",\"swap_rule\":");
	p = put_word(p, swap_rule_name(r->swap_rule));
	p = IOT_PUT_LIT(p, ",\"realtime_ns\":");
	p = iot_put_json_u64(p, ctx->realtime_ns);
	p = IOT_PUT_LIT(p, ",\"capture\":");
	p = put_word(p, ctx->capture);
	p = IOT_PUT_LIT(p, ",\"file_by\":");
	p = put_word(p, iot_known_name(iot_file_by_name, r->file_by));
	p = IOT_PUT_LIT(p, ",\"cgroup_by\":");
	p = put_word(p, iot_known_name(iot_cgroup_by_name, r->cgroup_by));
	p = IOT_PUT_LIT(p, ",\"reclaim\":");
	p = put_word(p, iot_known_name(iot_reclaim_name, r->reclaim));
	p = IOT_PUT_LIT(p, ",\"unswapped_bytes\":");
	return iot_put_u64(p, r->unswapped_bytes);
}

size_t iot_render_json(char *buf, const struct iot_request *r, const struct iot_render *ctx)
{
	char *p = put_json_what(buf, r, ctx);

	p = IOT_PUT_LIT(p, ",\"start_ns\":");
	p = iot_put_json_u64(p, r->start_ns);
	p = IOT_PUT_LIT(p, ",\"insert_ns\":");
	p = iot_put_json_u64(p, r->insert_ns);
	p = IOT_PUT_LIT(p, ",\"issue_ns\":");
	p = iot_put_json_u64(p, r->issue_ns);
	p = IOT_PUT_LIT(p, ",\"complete_ns\":");
	p = iot_put_json_u64(p, r->complete_ns);
	p = put_json_who(p, r, ctx);
	p = IOT_PUT_LIT(p, ",\"cpu\":");
	p = put_json_cpu(p, r->complete_ns != 0, r->complete_cpu, ctx);
	p = put_json_extra(p, r, ctx);
	p = IOT_PUT_LIT(p, "}\n");
	return (size_t)(p - buf);
}
