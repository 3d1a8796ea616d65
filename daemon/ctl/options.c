// SPDX-License-Identifier: BSD-2-Clause
/*
 * options.c - the options of iotracectl.
 *
 * One table, one meaning: an option means the same before and after the verb and in every verb.
 * Values are checked here, so that a verb never sees a half-understood filter; a filter that was
 * misread would silently show less than was asked for.
 */
#include <getopt.h>
#include <limits.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"

#define NSEC_PER_SEC 1000000000ULL

const char ctl_help_options[] =
	"     --socket PATH        control socket (default /run/iotraced/control.sock)\n"
	"     --json               output for programs: JSON\n"
	"     --no-pager           do not pipe long output into a pager\n"
	"     --color WHEN         auto, always or never (NO_COLOR is honoured)\n"
	"  -h --help               this help; behind a verb, the help of that verb\n"
	"     --version            version\n";

const char ctl_help_time[] =
	"     --since T, --until T  requests that completed within; T is\n"
	"                          \"2026-11-29 12:00\", ISO 8601, \"@SECONDS\", \"-5m\" (ago),\n"
	"                          \"HH:MM[:SS]\" (today), now, today or yesterday; local\n"
	"                          time unless it says otherwise\n";

const char ctl_help_filters[] =
	"     --dev NAME           a disk or partition: nvme0n1, nvme0n1p2 or 259:1\n"
	"     --op OP[,OP...]      read, write, flush, discard, ...\n"
	"     --swap KIND          only, without, out or in\n"
	"     --pid N              submitted by this thread or process\n"
	"     --comm NAME          submitted by a thread of exactly this name\n"
	"     --min-latency TIME   took at least this long; a number with a unit (ns, us,\n"
	"                          ms, s, m, h, d, w): 500us, 10ms, 1.5s\n"
	"     --id N               this request, or this packet\n";

const char ctl_help_flow[] =
	"     --flow FLOW          packets: \"udp 10.0.0.1:4000 > 10.0.0.2:53\"; <> both\n"
	"                          ways; any part of it may be left out: \":53\"\n"
	"     --probe NAME         packets: observed at this probe\n";

const char ctl_help_verb_options[] =
	"     --format FORMAT      export, import, status: one of the formats of the verb\n"
	"     --anonymize KEYFILE  export: replace names and addresses by keyed hashes\n"
	"  -o --output PATH        export, import, recover, status: file, or directory\n"
	"     --segment-size SIZE  import: of a file, about (64MiB)\n"
	"     --strict             export: write nothing unless the record is complete\n"
	"     --force              export: replace a file that exists\n"
	"     --verbose            verify: every reason, also where many are alike\n"
	"     --by WHAT            report: rank file, process, cgroup, device or origin\n"
	"     --top N              report --by: how many are shown (20)\n"
	"     --resolve MOUNT      report --by=file: find the names by walking this mount\n"
	"     --logical-bytes N    report: bytes that the workload wrote, for write\n"
	"                          amplification: 5GiB, or @FILE with numbers to add up\n"
	"     --cacheability       report: misses of a cache of any size, with swap and\n"
	"                          without\n"
	"     --html FILE          report: write a page for a browser; with --json, its\n"
	"                          numbers go to standard output\n"
	"     --per-capture        drops: keep the captures of one boot apart\n"
	"     --stream STREAM      follow: block or packet only\n"
	"     --interval TIME      top: length of a window (2s)\n"
	"     --count N            top: end after so many windows\n"
	"     --chain              segments: which are missing of each capture\n"
	"     --once               archive: try each segment once\n"
	"     --state FILE         archive, segments: where it is noted what is archived\n"
	"                          (/var/lib/iotraced-archive/shipped)\n";

enum {
	OPT_SOCKET = 256,
	OPT_JSON,
	OPT_NO_PAGER,
	OPT_COLOR,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_DEV,
	OPT_OP,
	OPT_SWAP,
	OPT_PID,
	OPT_COMM,
	OPT_MIN_LATENCY,
	OPT_ID,
	OPT_FLOW,
	OPT_PROBE,
	OPT_FORMAT,
	OPT_ANONYMIZE,
	OPT_STRICT,
	OPT_FORCE,
	OPT_VERBOSE,
	OPT_BY,
	OPT_TOP,
	OPT_RESOLVE,
	OPT_LOGICAL_BYTES,
	OPT_CACHEABILITY,
	OPT_HTML,
	OPT_PER_CAPTURE,
	OPT_STREAM,
	OPT_CHAIN,
	OPT_ONCE,
	OPT_STATE,
	OPT_INTERVAL,
	OPT_COUNT,
	OPT_SEGMENT_SIZE,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"json", no_argument, NULL, OPT_JSON},
	{"no-pager", no_argument, NULL, OPT_NO_PAGER},
	{"color", required_argument, NULL, OPT_COLOR},
	{"since", required_argument, NULL, OPT_SINCE},
	{"until", required_argument, NULL, OPT_UNTIL},
	{"dev", required_argument, NULL, OPT_DEV},
	{"op", required_argument, NULL, OPT_OP},
	{"swap", required_argument, NULL, OPT_SWAP},
	{"pid", required_argument, NULL, OPT_PID},
	{"comm", required_argument, NULL, OPT_COMM},
	{"min-latency", required_argument, NULL, OPT_MIN_LATENCY},
	{"id", required_argument, NULL, OPT_ID},
	{"flow", required_argument, NULL, OPT_FLOW},
	{"probe", required_argument, NULL, OPT_PROBE},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"anonymize", required_argument, NULL, OPT_ANONYMIZE},
	{"output", required_argument, NULL, 'o'},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"force", no_argument, NULL, OPT_FORCE},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"by", required_argument, NULL, OPT_BY},
	{"top", required_argument, NULL, OPT_TOP},
	{"resolve", required_argument, NULL, OPT_RESOLVE},
	{"logical-bytes", required_argument, NULL, OPT_LOGICAL_BYTES},
	{"cacheability", no_argument, NULL, OPT_CACHEABILITY},
	{"html", required_argument, NULL, OPT_HTML},
	{"per-capture", no_argument, NULL, OPT_PER_CAPTURE},
	{"stream", required_argument, NULL, OPT_STREAM},
	{"chain", no_argument, NULL, OPT_CHAIN},
	{"once", no_argument, NULL, OPT_ONCE},
	{"state", required_argument, NULL, OPT_STATE},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"count", required_argument, NULL, OPT_COUNT},
	{"segment-size", required_argument, NULL, OPT_SEGMENT_SIZE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

/* ---- suggestions ------------------------------------------------------------------------------- */

/* Letters to insert, drop or change; two swapped neighbours count as one. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][33], n = strlen(b), i;

	if (n >= IOT_ARRAY_SIZE(rows[0]))
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (i = 1; a[i - 1]; i++) {
		size_t *row = rows[i % 3];
		const size_t *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t change = up[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] = IOT_MIN(change, IOT_MIN(up[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = IOT_MIN(row[j], up2[j - 2] + 1);
		}
	}
	return rows[(i - 1) % 3][n];
}

const char *ctl_suggest(const char *word, const char *const *candidates, size_t n)
{
	size_t best = SIZE_MAX, len = strlen(word);
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t d = edit_distance(word, candidates[i]);

		/* A beginning of at least two letters counts as one slip: "seg" means segments. */
		if (len >= 2 && strncmp(word, candidates[i], len) == 0)
			d = IOT_MIN(d, 1U);
		if (d < best) {
			best = d;
			found = candidates[i];
		}
	}
	return best <= 1 + len / 4 ? found : NULL;
}

/* ---- option values ----------------------------------------------------------------------------- */

static uint64_t realtime_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int parse_ops(const char *s, uint32_t *ops, struct iot_error *err)
{
	const char *names[IOT_N_OPS];
	char word[32];

	for (unsigned int i = 0; i < IOT_N_OPS; i++)
		names[i] = iot_op_name(i);
	for (;;) {
		size_t len = strcspn(s, ",");
		const char *hint;
		int op;

		snprintf(word, sizeof(word), "%.*s", (int)IOT_MIN(len, sizeof(word) - 1), s);
		op = len < sizeof(word) ? iot_op_from_name(word) : -EINVAL;
		if (op < 0) {
			hint = ctl_suggest(word, names, IOT_N_OPS);
			return iot_error_set(err, -EINVAL, "--op: no operation '%s'%s%s%s", word,
					     hint ? " (did you mean '" : "", hint ? hint : "",
					     hint ? "'?)" : "");
		}
		*ops |= 1U << op;
		if (!s[len])
			return 0;
		s += len + 1;
	}
}

static int parse_swap(const char *s, enum iot_swap_filter *ret)
{
	static const char *const words[] = {
		[IOT_SWAP_ONLY] = "only",
		[IOT_SWAP_WITHOUT] = "without",
		[IOT_SWAP_ONLY_OUT] = "out",
		[IOT_SWAP_ONLY_IN] = "in",
	};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(words); i++)
		if (words[i] && strcmp(s, words[i]) == 0) {
			*ret = (enum iot_swap_filter)i;
			return 0;
		}
	return -EINVAL;
}

const char *ctl_by_name(enum ctl_by by)
{
	static const char *const names[] = {
		[CTL_BY_NONE] = "none",	      [CTL_BY_FILE] = "file",
		[CTL_BY_PROCESS] = "process", [CTL_BY_CGROUP] = "cgroup",
		[CTL_BY_DEVICE] = "device",   [CTL_BY_ORIGIN] = "origin",
	};

	return names[by];
}

static int set_by(const char *s, enum ctl_by *ret, struct iot_error *err)
{
	const char *names[CTL_N_BY - 1], *hint;

	for (enum ctl_by by = CTL_BY_FILE; by < CTL_N_BY; by++) {
		names[by - 1] = ctl_by_name(by);
		if (strcmp(s, names[by - 1]) == 0) {
			*ret = by;
			return 0;
		}
	}
	hint = ctl_suggest(s, names, IOT_ARRAY_SIZE(names));
	return iot_error_set(err, -EINVAL,
			     "--by: '%s' is not one of file, process, cgroup, device, origin%s%s%s",
			     s, hint ? " (did you mean '" : "", hint ? hint : "",
			     hint ? "'?)" : "");
}

static int set_stream(const char *s, enum iot_stream *ret, struct iot_error *err)
{
	for (enum iot_stream stream = IOT_STREAM_BLOCK; stream <= IOT_STREAM_PACKET; stream++)
		if (strcmp(s, iot_stream_name(stream)) == 0) {
			*ret = stream;
			return 0;
		}
	return iot_error_set(err, -EINVAL, "--stream: '%s' is neither block nor packet", s);
}

static int set_top(const char *s, uint32_t *ret, struct iot_error *err)
{
	uint64_t v;

	if (iot_parse_u64(s, &v) < 0 || v == 0 || v > CTL_TOP_MAX)
		return iot_error_set(err, -EINVAL, "--top: '%s' is no number from 1 to %u", s,
				     CTL_TOP_MAX);
	*ret = (uint32_t)v;
	return 0;
}

static int parse_color(const char *s, enum ctl_color *ret)
{
	if (strcmp(s, "auto") == 0)
		*ret = CTL_COLOR_AUTO;
	else if (strcmp(s, "always") == 0)
		*ret = CTL_COLOR_ALWAYS;
	else if (strcmp(s, "never") == 0)
		*ret = CTL_COLOR_NEVER;
	else
		return -EINVAL;
	return 0;
}

static int set_time(const char *name, const char *s, uint64_t *ret_ns, struct iot_error *err)
{
	/* 0 means open in a filter, so the epoch itself becomes its first nanosecond. */
	if (ctl_parse_time(s, realtime_now_ns(), ret_ns) < 0)
		return iot_error_set(err, -EINVAL,
				     "%s: '%s' is no time; write \"2026-11-29 12:00:00\", "
				     "\"@SECONDS\", \"-5m\" or "
				     "\"12:00\"",
				     name, s);
	*ret_ns = IOT_MAX(*ret_ns, 1U);
	return 0;
}

static int set_text(const char *name, const char *s, char *dst, size_t size, struct iot_error *err)
{
	if (!*s)
		return iot_error_set(err, -EINVAL, "%s: empty", name);
	if (strlen(s) >= size)
		return iot_error_set(err, -EINVAL, "%s: '%s' is longer than %zu bytes", name, s,
				     size - 1);
	memcpy(dst, s, strlen(s) + 1);
	return 0;
}

static int set_path(const char *name, const char *s, const char **ret, struct iot_error *err)
{
	if (!*s)
		return iot_error_set(err, -EINVAL, "%s: an empty path", name);
	*ret = s;
	return 0;
}

/* Digits and a colon are a number, not a name; one that no device can have would match nothing. */
static int set_dev(const char *s, struct iot_filter *f, struct iot_error *err)
{
	size_t major = strspn(s, "0123456789");
	uint64_t ma, mi;
	char text[32];

	if (s[major] == ':' && !s[major + 1 + strspn(s + major + 1, "0123456789")]) {
		snprintf(text, sizeof(text), "%.*s", (int)IOT_MIN(major, sizeof(text) - 1), s);
		if (iot_parse_u64(text, &ma) < 0 || iot_parse_u64(s + major + 1, &mi) < 0 ||
		    ma > IOT_DEV_MAJOR_MAX || mi > IOT_DEV_MINOR_MAX)
			return iot_error_set(
				err, -EINVAL,
				"--dev: '%s' is no device number; write MAJOR:MINOR, at "
				"most %u:%u",
				s, IOT_DEV_MAJOR_MAX, IOT_DEV_MINOR_MAX);
	}
	return set_text("--dev", s, f->dev, sizeof(f->dev), err);
}

/* 10 alone would be 10 s to the parser, and 10 ms to most who write it. */
static int set_latency(const char *s, uint64_t *ret_ns, struct iot_error *err)
{
	size_t digits = strspn(s, "0123456789.");

	if (iot_parse_duration(s, ret_ns) < 0)
		return iot_error_set(err, -EINVAL,
				     "--min-latency: '%s' is no time; write 500us, 10ms, 1.5s", s);
	if (!s[digits])
		return iot_error_set(err, -EINVAL,
				     "--min-latency: '%s' has no unit; write %sus, %sms or %ss", s,
				     s, s, s);
	return 0;
}

/* Shorter ones would be emptier than the blocks that come, longer ones no news. */
static int set_interval(const char *s, uint64_t *ret_ns, struct iot_error *err)
{
	if (iot_parse_duration(s, ret_ns) < 0 || *ret_ns < NSEC_PER_SEC / 2 ||
	    *ret_ns > 3600 * NSEC_PER_SEC)
		return iot_error_set(err, -EINVAL, "--interval: '%s' is not between 500ms and 1h",
				     s);
	return 0;
}

static int set_filter(struct iot_filter *f, int opt, const char *s, struct iot_error *err)
{
	uint64_t v;

	switch (opt) {
	case OPT_SINCE:
		return set_time("--since", s, &f->since_ns, err);
	case OPT_UNTIL:
		return set_time("--until", s, &f->until_ns, err);
	case OPT_DEV:
		return set_dev(strncmp(s, "/dev/", 5) == 0 ? s + 5 : s, f, err);
	case OPT_COMM:
		return set_text("--comm", s, f->comm, IOT_COMM_LEN, err);
	case OPT_OP:
		return parse_ops(s, &f->ops, err);
	case OPT_SWAP:
		if (parse_swap(s, &f->swap) < 0)
			return iot_error_set(err, -EINVAL,
					     "--swap: '%s' is not one of only, without, out, in",
					     s);
		return 0;
	case OPT_PID:
		if (iot_parse_u64(s, &v) < 0 || v == 0 || v > INT_MAX)
			return iot_error_set(err, -EINVAL, "--pid: '%s' is no process id", s);
		f->pid = (uint32_t)v;
		return 0;
	case OPT_FLOW:
		return ctl_parse_flow(s, &f->flow, err);
	case OPT_PROBE:
		return set_text("--probe", s, f->probe, sizeof(f->probe), err);
	case OPT_MIN_LATENCY:
		return set_latency(s, &f->min_latency_ns, err);
	default:
		if (iot_parse_u64(s, &f->id) < 0 || f->id == 0)
			return iot_error_set(err, -EINVAL, "--id: '%s' is no id", s);
		return 0;
	}
}

static int unknown_option(const char *arg, struct iot_error *err)
{
	const char *names[IOT_ARRAY_SIZE(long_options)];
	char word[64];
	const char *hint = NULL;
	size_t n = 0;

	for (; long_options[n].name; n++)
		names[n] = long_options[n].name;
	if (strncmp(arg, "--", 2) == 0) {
		snprintf(word, sizeof(word), "%.*s", (int)IOT_MIN(strcspn(arg + 2, "="), 63U),
			 arg + 2);
		hint = ctl_suggest(word, names, n);
	}
	if (hint)
		return iot_error_set(err, -EINVAL, "unknown option '%s'; did you mean '--%s'?", arg,
				     hint);
	return iot_error_set(err, -EINVAL, "unknown option '%s'; see 'iotracectl --help'", arg);
}

int ctl_parse_options(struct ctl *c, int argc, char **argv, int *ret_first, struct iot_error *err)
{
	bool help = false;
	int opt, r = 0;

	opterr = 0;
	optind = 0; /* start over: tests call this more than once */
	for (;;) {
		int at = optind ? optind : 1;

		opt = getopt_long(argc, argv, ":ho:", long_options, NULL);
		switch (opt) {
		case -1:
			*ret_first = optind;
			if (c->filter.since_ns && c->filter.until_ns &&
			    c->filter.since_ns > c->filter.until_ns)
				return iot_error_set(err, -EINVAL, "--since is later than --until");
			return help ? CTL_PARSED_HELP : 0;
		case 'h':
			/* The verb may come behind it. */
			help = true;
			break;
		case OPT_VERSION:
			return CTL_PARSED_VERSION;
		case ':':
			return iot_error_set(err, -EINVAL, "option '%s' needs a value",
					     argv[optind - 1]);
		case '?':
			/* A cluster of short options is not consumed until its last letter. */
			return unknown_option(argv[optind > at ? optind - 1 : at], err);
		case OPT_SOCKET:
			r = set_path("--socket", optarg, &c->socket, err);
			break;
		case OPT_JSON:
			c->json = true;
			break;
		case OPT_NO_PAGER:
			c->no_pager = true;
			break;
		case OPT_COLOR:
			if (parse_color(optarg, &c->color) < 0)
				return iot_error_set(
					err, -EINVAL,
					"--color: '%s' is not one of auto, always, never", optarg);
			break;
		case OPT_FORMAT:
			c->format = optarg;
			break;
		case OPT_ANONYMIZE:
			r = set_path("--anonymize", optarg, &c->anonymize, err);
			break;
		case 'o':
			r = set_path("--output", optarg, &c->output, err);
			break;
		case OPT_STRICT:
			c->strict = true;
			break;
		case OPT_FORCE:
			c->force = true;
			break;
		case OPT_VERBOSE:
			c->verbose = true;
			break;
		case OPT_BY:
			r = set_by(optarg, &c->by, err);
			break;
		case OPT_TOP:
			r = set_top(optarg, &c->top, err);
			break;
		case OPT_RESOLVE:
			r = set_path("--resolve", optarg, &c->resolve, err);
			break;
		case OPT_LOGICAL_BYTES:
			r = set_path("--logical-bytes", optarg, &c->logical_bytes, err);
			break;
		case OPT_STREAM:
			r = set_stream(optarg, &c->stream, err);
			break;
		case OPT_CHAIN:
			c->chain = true;
			break;
		case OPT_ONCE:
			c->once = true;
			break;
		case OPT_STATE:
			r = set_path("--state", optarg, &c->state, err);
			break;
		case OPT_INTERVAL:
			r = set_interval(optarg, &c->interval_ns, err);
			break;
		case OPT_COUNT:
			if (iot_parse_u64(optarg, &c->count) < 0 || !c->count)
				return iot_error_set(err, -EINVAL,
						     "--count: '%s' is no number of windows",
						     optarg);
			break;
		case OPT_SEGMENT_SIZE:
			if (iot_parse_size(optarg, &c->segment_bytes) < 0 || !c->segment_bytes)
				return iot_error_set(err, -EINVAL,
						     "--segment-size: '%s' is no size", optarg);
			break;
		case OPT_CACHEABILITY:
			c->cacheability = true;
			break;
		case OPT_HTML:
			r = set_path("--html", optarg, &c->html, err);
			break;
		case OPT_PER_CAPTURE:
			c->per_capture = true;
			break;
		default:
			r = set_filter(&c->filter, opt, optarg, err);
		}
		if (r < 0)
			return r;
	}
}
