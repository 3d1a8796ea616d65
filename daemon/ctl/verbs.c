// SPDX-License-Identifier: BSD-2-Clause
/*
 * verbs.c - the table of verbs: what each is, which options it takes, and its help.
 *
 * An option that a verb would ignore was meant for something: it is refused, and the message names
 * the verbs that take it. A filter that is not applied shows more than was asked for, and an empty
 * answer to `verify --since` would look like a proof.
 */
#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/export.h"

#define OPTION_COLUMN 26U /* where the help of an option begins */

static const struct ctl_verb verbs[] = {
	{"status", "", "What the daemon does: streams, losses, store", verb_status,
	 CTL_LIVE | CTL_TAKES_FORMAT | CTL_TAKES_OUTPUT,
	 "The first line has the verdict on each stream: complete, lost or unknown.\n"
	 "--format=openmetrics or prometheus: numbers for monitoring; with --output in a\n"
	 "file that is replaced at once, also (iotraced_up 0) where no daemon answers.\n",
	 "iotracectl status"},
	{"top", "", "What happens now: rates, latencies, drops, losses", verb_top,
	 CTL_LIVE | CTL_TAKES_FILTERS | CTL_TAKES_TOP,
	 "In a terminal, until q; elsewhere a window below the other. Each is of its\n"
	 "--interval, shown 1.3 s after it has ended. Reads the daemon's files, which have\n"
	 "to be readable.\n",
	 "iotracectl top --dev nvme0n1"},
	{"inflight", "", "Requests that have not completed, oldest first", verb_inflight, CTL_LIVE,
	 "Where something hangs, it is at the top.\n", "iotracectl inflight"},
	{"rotate", "[STREAM]", "Seal the open segment and begin the next", verb_rotate, CTL_LIVE,
	 "Prints the name of the sealed segment; what was recorded so far is in it.\n",
	 "iotracectl rotate"},
	{"flush", "", "Wait until all that was observed is in the files", verb_flush, CTL_LIVE,
	 "Segments stay open; rotate seals them.\n",
	 "iotracectl flush && iotracectl cat --since -1m"},
	{"probes", "", "Each probe: how it is attached, or why not", verb_probes, CTL_LIVE,
	 "RUNS and NS/RUN are known while the sysctl kernel.bpf_stats_enabled is 1.\n",
	 "iotracectl probes"},
	{"config", "", "The configuration in effect", verb_config, CTL_LIVE,
	 "YAML that could be a configuration file, with the origin of each key.\n",
	 "iotracectl config"},
	{"segments", "[PATH...]", "List segments, their time, size and verdict", verb_segments,
	 CTL_TAKES_TIME | CTL_TAKES_STATE | CTL_TAKES_CHAIN,
	 "Reads footers, not records: quick, but what they claim is not recomputed. On a\n"
	 "terminal that is too narrow, columns at the end are left out and a * stands for\n"
	 "the middle of a name, as a shell would take it; --json has all. --chain: which\n"
	 "segments of each capture are missing here; exit code 11 if any is.\n",
	 "iotracectl segments --since yesterday"},
	{"cat", "[PATH...]", "Print what was recorded in time order", verb_cat, CTL_TAKES_FILTERS,
	 "One line a request, or an observation of a packet; with --json an object a line.\n"
	 "What is missing is said on stderr.\n",
	 "iotracectl cat --dev nvme0n1 --op write --min-latency 50ms --since -1h"},
	{"follow", "[DIRECTORY]", "Print what is recorded as it gets into the files", verb_follow,
	 CTL_TAKES_FILTERS | CTL_TAKES_STREAM,
	 "From now on, or from --since on, until the daemon stops or the reader does.\n"
	 "Lines are those of cat, some block_age (1s) behind, in the order of the blocks.\n"
	 "Reads the files only: a slow reader slows nobody. What a sealed segment lost is\n"
	 "said on stderr. DIRECTORY: default $IOTRACED_STATE_DIR or /var/lib/iotraced.\n",
	 "iotracectl follow --stream packet --probe kfree_skb"},
	{"report", "[PATH...]", "Counts, rates and latencies per device and operation", verb_report,
	 CTL_TAKES_FILTERS | CTL_TAKES_REPORT,
	 "The verdict on completeness comes first. TOTAL = REQUESTS (recorded) + LOST.\n"
	 "Written and Read count the data of both. --by ranks by bytes; what was lost is\n"
	 "in no row, and latency is from the start to the completion.\n",
	 "iotracectl report --by=file --resolve /srv --since 03:00 --until 03:30"},
	{"replay", "[PATH...]", "Packets, their observations and verdicts, summed up", verb_replay,
	 0,
	 "Each packet is judged alone: in a capture that is not complete it is known of\n"
	 "which packets it is. Reads all records; about 150 bytes of memory a packet.\n",
	 "iotracectl replay"},
	{"explain", "[ID] [PATH...]", "One packet's way, or a flow's, and what an absence means",
	 verb_explain, CTL_TAKES_TIME | CTL_TAKES_FLOW,
	 "Instead of ID --flow: all packets of the flow. With --probe: did any (of the\n"
	 "flow, within the time) reach it? Exit code: 0 proved that none did, 12 one did,\n"
	 "11 not known. Otherwise 0 if nothing is missing, 10 lost, 11 unknown.\n",
	 "iotracectl explain --flow 'udp :53' --probe netif_receive_skb --since -5m"},
	{"drops", "[PATH...]", "Dropped packets by reason, place, interface and flow", verb_drops,
	 CTL_TAKES_TIME | CTL_TAKES_FLOW | CTL_TAKES_DROPS,
	 "LOST are drops whose records were lost. Captures of one boot of a machine are\n"
	 "summed up.\n",
	 "iotracectl drops --since -1h"},
	{"verify", "[PATH...]", "Recompute what the segments claim", verb_verify, CTL_TAKES_VERBOSE,
	 "Segments are judged whole: no filters. The exit code is the worst verdict:\n"
	 "0 complete, 10 lost, 11 unknown, 20 torn or still being recorded, 21 corrupt.\n"
	 "Reasons that differ only in probe or CPU are one line; --verbose and --json\n"
	 "have each.\n",
	 "iotracectl verify /var/lib/iotraced"},
	{"recover", "FILE", "Rebuild a torn or damaged segment as a new file", verb_recover,
	 CTL_TAKES_OUTPUT,
	 "FILE is not changed. The new file is NAME.recovered.iot beside it, or where\n"
	 "--output says; it never replaces one.\n",
	 "iotracectl recover --output /tmp block-0123456789abcdef0123456789abcdef-0000000001.open"},
	{"archive", "DESTINATION [DIRECTORY]", "Copy sealed segments into an archive, verified",
	 verb_archive, CTL_TAKES_STATE | CTL_TAKES_ARCHIVE,
	 "DESTINATION: a directory that exists (/srv/archive, ./here), or a remote of\n"
	 "rclone (remote:path). Segments of DIRECTORY (default $IOTRACED_STATE_DIR or\n"
	 "/var/lib/iotraced) go to host=H/stream=S/date=D below it and are read back;\n"
	 "those that fail are tried again until all have arrived. What is torn or corrupt\n"
	 "is not shipped, and no whole copy there is replaced by another: an error.\n",
	 "iotracectl archive s3:traces/iotraced"},
	{"export", "--format=FORMAT [PATH...]", "Convert to a format of other tools", verb_export,
	 CTL_TAKES_FILTERS | CTL_TAKES_OUTPUT | CTL_TAKES_FORMAT | CTL_TAKES_EXPORT,
	 "What was lost is in OUTPUT.loss.json beside the output. A file that exists is\n"
	 "replaced with --force only.\n",
	 "iotracectl export --format=csv --output trace.csv --since -1h"},
	{"import", "TRACE...", "Make segments of a trace of blktrace, blkparse or perf",
	 verb_import, CTL_TAKES_OUTPUT | CTL_TAKES_FORMAT | CTL_TAKES_IMPORT,
	 "TRACE: files of blktrace (sda for sda.blktrace.0 and all beside it, or the\n"
	 "directory), or text of blkparse or perf script; - is standard input. The format\n"
	 "is found out, or said: --format=blktrace, blkparse or perf. --output: a new\n"
	 "directory. What such a tool lost is not known, so that no verdict on its trace is\n"
	 "better than unknown.\n",
	 "iotracectl import --output /tmp/sda sda.blktrace.0 sda.blktrace.1"},
};

const struct ctl_verb *ctl_find_verb(const char *name)
{
	const char *names[IOT_ARRAY_SIZE(verbs)], *hint;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(verbs); i++) {
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
		names[i] = verbs[i].name;
	}
	hint = ctl_suggest(name, names, IOT_ARRAY_SIZE(names));
	if (hint)
		ctl_fail(CTL_USAGE, "unknown verb '%s'; did you mean '%s'?", name, hint);
	else
		ctl_fail(CTL_USAGE, "unknown verb '%s'; see 'iotracectl --help'", name);
	return NULL;
}

/* ---- options of verbs -------------------------------------------------------------------------- */

/* "cat, report and export": who takes what, without those that also take `but` */
static const char *takers(unsigned int what, unsigned int but, char *buf, size_t size)
{
	size_t n = 0, seen = 0, len = 0;

	for (size_t i = 0; i < IOT_ARRAY_SIZE(verbs); i++)
		n += (verbs[i].takes & what) && !(verbs[i].takes & but);
	buf[0] = '\0';
	for (size_t i = 0; i < IOT_ARRAY_SIZE(verbs) && len < size; i++) {
		if (!(verbs[i].takes & what) || (verbs[i].takes & but))
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					seen == 0	? ""
					: seen + 1 == n ? " and "
							: ", ",
					verbs[i].name);
		seen++;
	}
	return buf;
}

static int refuse(const struct ctl_verb *verb, const char *option, unsigned int what)
{
	char list[128];

	return ctl_fail(CTL_USAGE, "%s does not go with %s; it belongs to %s", option, verb->name,
			takers(what, 0, list, sizeof(list)));
}

static int refuse_filter(const struct ctl_verb *verb, const char *option, bool is_time)
{
	char list[128];

	/* top shows what happens now, so it is no answer for who asks about a time. */
	takers(CTL_TAKES_FILTERS, is_time ? CTL_TAKES_TOP : 0, list, sizeof(list));
	if (verb->takes & CTL_TAKES_FLOW)
		return ctl_fail(CTL_USAGE,
				"%s does not go with %s, which takes --flow, --probe, --since and "
				"--until only; %s take all filters",
				option, verb->name, list);
	if (verb->takes & CTL_TAKES_TIME)
		return ctl_fail(CTL_USAGE,
				"%s does not go with %s, which takes --since and --until only; "
				"%s take all filters",
				option, verb->name, list);
	return ctl_fail(CTL_USAGE, "%s does not go with %s, which takes no filters; %s do", option,
			verb->name, list);
}

int ctl_check_usage(const struct ctl *c, const struct ctl_verb *verb, int argc, char **argv)
{
	const struct iot_filter *f = &c->filter;
	const struct {
		const char *option;
		bool given;
		unsigned int what;
	} options[] = {
		{"--format", c->format, CTL_TAKES_FORMAT},
		{"--anonymize", c->anonymize, CTL_TAKES_EXPORT},
		{"--strict", c->strict, CTL_TAKES_EXPORT},
		{"--force", c->force, CTL_TAKES_EXPORT},
		{"--output", c->output, CTL_TAKES_OUTPUT},
		{"--verbose", c->verbose, CTL_TAKES_VERBOSE},
		{"--by", c->by, CTL_TAKES_REPORT},
		{"--top", c->top, CTL_TAKES_REPORT},
		{"--resolve", c->resolve, CTL_TAKES_REPORT},
		{"--logical-bytes", c->logical_bytes, CTL_TAKES_REPORT},
		{"--cacheability", c->cacheability, CTL_TAKES_REPORT},
		{"--html", c->html, CTL_TAKES_REPORT},
		{"--per-capture", c->per_capture, CTL_TAKES_DROPS},
		{"--stream", c->stream, CTL_TAKES_STREAM},
		{"--state", c->state, CTL_TAKES_STATE},
		{"--once", c->once, CTL_TAKES_ARCHIVE},
		{"--chain", c->chain, CTL_TAKES_CHAIN},
		{"--interval", c->interval_ns, CTL_TAKES_TOP},
		{"--count", c->count, CTL_TAKES_TOP},
		{"--segment-size", c->segment_bytes, CTL_TAKES_IMPORT},
	};
	const struct {
		const char *option;
		bool given;
		unsigned int also;
	} filters[] = {
		{"--since", f->since_ns, CTL_TAKES_TIME},
		{"--until", f->until_ns, CTL_TAKES_TIME},
		{"--dev", f->dev[0], 0},
		{"--op", f->ops, 0},
		{"--swap", f->swap, 0},
		{"--pid", f->pid, 0},
		{"--comm", f->comm[0], 0},
		{"--min-latency", f->min_latency_ns, 0},
		{"--id", f->id, 0},
		{"--flow", f->flow.set, CTL_TAKES_FLOW},
		{"--probe", f->probe[0], CTL_TAKES_FLOW},
	};

	for (size_t i = 0; i < IOT_ARRAY_SIZE(options); i++)
		if (options[i].given && !(verb->takes & options[i].what))
			return refuse(verb, options[i].option, options[i].what);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(filters); i++) {
		unsigned int ok = CTL_TAKES_FILTERS | filters[i].also;

		if (filters[i].given && !(verb->takes & ok))
			return refuse_filter(verb, filters[i].option,
					     filters[i].also == CTL_TAKES_TIME);
	}
	/* Likely a variable that is not set; what it was meant to name is not the default. */
	for (int i = 1; i < argc; i++)
		if (!(verb->takes & CTL_LIVE) && !*argv[i])
			return ctl_fail(CTL_USAGE, "argument %d of %s is an empty path", i,
					verb->name);
	return CTL_OK;
}

/* ---- help -------------------------------------------------------------------------------------- */

static void print_verbs(bool live)
{
	for (size_t i = 0; i < IOT_ARRAY_SIZE(verbs); i++) {
		const struct ctl_verb *v = &verbs[i];
		char usage[64];

		if (!(v->takes & CTL_LIVE) == live)
			continue;
		snprintf(usage, sizeof(usage), "%s %s", v->name, v->args);
		/* What is too long for its column has the summary below. */
		if (strlen(usage) > 19)
			printf("  %s\n  %-19s %s\n", usage, "", v->summary);
		else
			printf("  %-19s %s\n", usage, v->summary);
	}
}

/* Words, behind what has taken `column` columns already, in lines of at most 80. */
static void print_folded(const char *words, size_t column)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		if (column + 1 + n > 80) {
			printf("\n ");
			column = 1;
		}
		printf(" %.*s", (int)n, words);
		column += 1 + n;
		words += n + strspn(words + n, " ");
	}
	printf("\n");
}

void ctl_help(void)
{
	char formats[EXPORT_FORMAT_LIST_MAX];

	printf("Usage: iotracectl [OPTIONS] VERB [ARGUMENTS]\n"
	       "       iotracectl help VERB\n\n"
	       "Look at the I/O recorded by iotraced.\n\n"
	       "Verbs for the running daemon (they ask its control socket):\n");
	print_verbs(true);
	printf("\nVerbs for segments, with or without a daemon (PATH: files, directories or\n"
	       "archive trees; default $IOTRACED_STATE_DIR or /var/lib/iotraced):\n");
	print_verbs(false);
	printf("\nOptions (before or after the verb):\n%s\n"
	       "Filters of cat, follow, top, report and export; segments, explain and drops take\n"
	       "--since and --until, the latter two --flow and --probe:\n%s%s%s\n"
	       "Options of single verbs:\n%s\n"
	       "Formats of export:",
	       ctl_help_options, ctl_help_time, ctl_help_filters, ctl_help_flow,
	       ctl_help_verb_options);
	print_folded(export_format_list(formats, sizeof(formats)), strlen("Formats of export:"));
	printf("Exit codes: 0 ok, 1 error or bad input, 2 usage, 3 no daemon, 4 denied;\n"
	       "explain: 0 complete or proved absent, 10 lost, 11 unknown, 12 present;\n"
	       "verify: 0 complete, 10 lost, 11 unknown, 20 torn (recoverable), or still being\n"
	       "        recorded, 21 corrupt.\n");
}

/* Those lines of the options' help that name the verb: "report --by: how many ...". */
static void print_options_of(const struct ctl_verb *v)
{
	const char *line = ctl_help_verb_options, *next;
	bool shown = false, any = false;

	for (; *line; line = next) {
		const char *names = line + OPTION_COLUMN, *end = strchr(line, '\n');
		size_t len = strlen(v->name);

		next = end + 1;
		/* What begins further right goes on with the one above. */
		if (strspn(line, " ") < OPTION_COLUMN) {
			const char *colon = memchr(names, ':', (size_t)(end - names));

			shown = false;
			for (const char *p = names; colon && p + len <= colon && !shown; p++)
				shown = strncmp(p, v->name, len) == 0 &&
					(p == names || p[-1] == ' ') && strchr(" ,:", p[len]);
		}
		if (shown && !any)
			printf("Options of this verb:\n");
		any |= shown;
		if (shown)
			printf("%.*s", (int)(next - line), line);
	}
	if (any)
		printf("\n");
}

void ctl_help_verb(const struct ctl_verb *v)
{
	char formats[EXPORT_FORMAT_LIST_MAX];

	printf("Usage: iotracectl [OPTIONS] %s%s%s\n\n%s.\n%s", v->name, *v->args ? " " : "",
	       v->args, v->summary, v->help);
	if (v->takes & CTL_TAKES_EXPORT) {
		printf("FORMAT:");
		print_folded(export_format_list(formats, sizeof(formats)), strlen("FORMAT:"));
	}
	if (!(v->takes & CTL_LIVE) && strstr(v->args, "PATH"))
		printf("PATH: segments, directories or archive trees; default $IOTRACED_STATE_DIR "
		       "or\n"
		       "/var/lib/iotraced.\n");
	printf("\nExample:\n  %s\n\n", v->example);
	if (v->takes & (CTL_TAKES_FILTERS | CTL_TAKES_TIME))
		printf("Filters:\n%s%s%s\n", ctl_help_time,
		       v->takes & CTL_TAKES_FILTERS ? ctl_help_filters : "",
		       v->takes & (CTL_TAKES_FILTERS | CTL_TAKES_FLOW) ? ctl_help_flow : "");
	print_options_of(v);
	printf("Options:\n%s", ctl_help_options);
}
