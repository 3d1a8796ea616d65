// SPDX-License-Identifier: BSD-2-Clause
/*
 * main.c - iotracectl: options, the table of verbs, and the end of every run.
 *
 * Options mean the same everywhere (options.c), then the verb gets what is left. Exit codes are a
 * contract: 0 ok, 1 error (input damaged, output failed), 2 usage, 3 no daemon, 4 denied; verify:
 * 0 complete, 10 lost, 11 unknown, 20 torn (recoverable) or still being recorded, 21 corrupt. A
 * closed pipe is no error: the reader has seen what it wanted.
 */
#include <locale.h>
#include <signal.h>
#include <time.h>

#include "daemon/ctl/ctl-util.h"
#include "daemon/ctl/export.h"

static const struct ctl_verb verbs[] = {
	{"status", "", "What the daemon does: streams, losses, store", verb_status},
	{"inflight", "", "Requests that have not completed, oldest first", verb_inflight},
	{"rotate", "[STREAM]", "Seal the open segment and begin the next", verb_rotate},
	{"flush", "", "Wait until all that was observed is in the files", verb_flush},
	{"probes", "", "Each probe: how it is attached, or why not", verb_probes},
	{"config", "", "The configuration in effect", verb_config},
	{"segments", "[PATH...]", "List segments, their time, size and verdict", verb_segments},
	{"cat", "[PATH...]", "Print requests in time order", verb_cat},
	{"report", "[PATH...]", "Counts, rates and latencies per device and operation",
	 verb_report},
	{"verify", "[PATH...]", "Recompute what the segments claim: complete, lost or unknown",
	 verb_verify},
	{"recover", "FILE", "Rebuild a torn or damaged segment as a new file", verb_recover},
	{"export", "--format=FORMAT [PATH...]", "Convert to a format of other tools", verb_export},
};

int ctl_fail(int code, const char *fmt, ...)
{
	va_list ap;

	/* What was printed before comes before, also when both go to one place. */
	fflush(stdout);
	fputs("iotracectl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

static void print_help(void)
{
	char formats[EXPORT_FORMAT_LIST_MAX];

	printf("Usage: iotracectl [OPTIONS] VERB [ARGUMENTS]\n\n"
	       "Look at the I/O recorded by iotraced.\n\n"
	       "Verbs for a running daemon, and for segment files, directories or archive trees\n"
	       "(PATH; default $IOTRACED_STATE_DIR or /var/lib/iotraced):\n");
	for (size_t i = 0; i < IOT_ARRAY_SIZE(verbs); i++) {
		char usage[64];

		snprintf(usage, sizeof(usage), "%s %s", verbs[i].name, verbs[i].args);
		printf("  %-32s %s\n", usage, verbs[i].summary);
	}
	printf("\n%s\n"
	       "Formats of export: %s\n"
	       "Exit codes: 0 ok, 1 error or damaged input, 2 usage, 3 no daemon, 4 denied;\n"
	       "verify: 0 complete, 10 lost, 11 unknown, 20 torn (recoverable), or still being "
	       "recorded,\n"
	       "        21 corrupt.\n",
	       ctl_options_help, export_format_list(formats, sizeof(formats)));
}

static const struct ctl_verb *find_verb(const char *name)
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

/* An option that a verb would ignore was meant for something: refuse instead. */
static int check_options(const struct ctl *c, const struct ctl_verb *verb)
{
	bool exports = verb->run == verb_export;

	if (c->format && !exports)
		return ctl_fail(CTL_USAGE, "--format belongs to the verb export, not to %s",
				verb->name);
	if (c->strict && !exports)
		return ctl_fail(CTL_USAGE, "--strict belongs to the verb export, not to %s",
				verb->name);
	if (c->output && !exports && verb->run != verb_recover)
		return ctl_fail(CTL_USAGE,
				"--output belongs to the verbs export and recover, not to %s",
				verb->name);
	return CTL_OK;
}

/* stdout's own error, once everything is flushed. */
static int finish_stdout(int code)
{
	int r;

	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE) {
		ctl_pager_close();
		return code;
	}
	r = errno;
	ctl_pager_close();
	return ctl_fail(CTL_ERROR, "cannot write output: %s", r ? strerror(r) : "write error");
}

int main(int argc, char **argv)
{
	struct ctl c = {0};
	struct iot_error err = {0};
	const struct ctl_verb *verb;
	int r, first;

	setlocale(LC_CTYPE, "");
	tzset();
	signal(SIGPIPE, SIG_IGN);
	r = ctl_parse_options(&c, argc, argv, &first, &err);
	if (r < 0)
		return ctl_fail(CTL_USAGE, "%s", err.text);
	if (r == CTL_PARSED_HELP) {
		print_help();
		return finish_stdout(CTL_OK);
	}
	if (r == CTL_PARSED_VERSION) {
		printf("iotracectl %s\n", IOTRACED_VERSION);
		return finish_stdout(CTL_OK);
	}
	if (first >= argc)
		return ctl_fail(CTL_USAGE, "which verb? see 'iotracectl --help'");
	if (strcmp(argv[first], "help") == 0) {
		print_help();
		return finish_stdout(CTL_OK);
	}
	verb = find_verb(argv[first]);
	if (!verb)
		return CTL_USAGE;
	r = check_options(&c, verb);
	if (r != CTL_OK)
		return r;
	return finish_stdout(verb->run(&c, argc - first, argv + first));
}
