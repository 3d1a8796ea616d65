// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-args.c - any words as a command line: of iotracectl, filters and all, and of iotraced.
 *
 * Words end with NUL. What is refused has a reason; what is taken as a filter is one that the other side of
 * the table can use: texts that end, an order of times, and an answer for any record and loss.
 */
#include "daemon/args.h"
#include "daemon/ctl/ctl-util.h"
#include "format/scan-internal.h"
#include "tests/unit/ctl-said.h"

#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_WORDS 24

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-args: %s\n", what);
	abort();
}

static int split(const uint8_t *data, size_t size, char *argv[MAX_WORDS + 1])
{
	int n = 0;

	argv[n++] = strdup("iotracectl");
	while (size && n < MAX_WORDS) {
		size_t len = strnlen((const char *)data, size);

		argv[n++] = strndup((const char *)data, len);
		data += len;
		size -= len;
		if (size) {
			data++;
			size--;
		}
	}
	for (int i = 0; i < n; i++)
		check(argv[i], "no memory");
	argv[n] = NULL;
	return n;
}

static void check_filter(const struct iot_filter *f)
{
	struct iot_request r = {.id = 1, .start_ns = 5, .complete_ns = 9, .pid = 7, .comm = "fio"};
	struct iot_packet p = {.id = 1, .flow = {.family = 4, .ip_proto = 17, .dport = 53}};

	check(memchr(f->dev, 0, sizeof(f->dev)) && memchr(f->comm, 0, sizeof(f->comm)) &&
		      memchr(f->probe, 0, sizeof(f->probe)),
	      "a text without an end");
	check(!f->since_ns || !f->until_ns || f->since_ns <= f->until_ns, "ends before it begins");
	check(!(f->ops >> 31), "an operation that there is not");
	(void)iot_filter_match_fields(f, &r);
	(void)iot_filter_columns(f);
	(void)ctl_filter_active(f);
	iot_filter_share(f, &r);
	if (f->flow.set)
		(void)iot_flow_matches(&f->flow, &p.flow, p.flags);
}

static void parse_ctl(int argc, char **argv)
{
	struct iot_error err = {0};
	struct ctl c = {0};
	int first = 0, r = ctl_parse_options(&c, argc, argv, &first, &err);
	uint64_t bytes;

	check(r == 0 || r == CTL_PARSED_HELP || r == CTL_PARSED_VERSION || r == -EINVAL,
	      "an undocumented result");
	check((r < 0) == (err.text[0] != '\0'), "refused without a reason, or taken with one");
	if (r != 0)
		return;
	check(first >= 1 && first <= argc, "no such word");
	check_filter(&c.filter);
	check(c.top <= CTL_TOP_MAX && c.by < CTL_N_BY, "more than there is");
	/* @FILE would read any file there is. */
	if (c.logical_bytes && c.logical_bytes[0] != '@')
		check((ctl_logical_bytes(c.logical_bytes, &bytes, &err) < 0) ==
			      (err.text[0] != '\0'),
		      "refused without a reason, or taken with one");
}

static void parse_daemon(int argc, char **argv)
{
	struct iot_error err = {0};
	struct args a;
	int r = args_parse(argc, argv, &a, &err);

	check(r == 0 || r == -EINVAL, "an undocumented result");
	check((r < 0) == (err.text[0] != '\0'), "refused without a reason, or taken with one");
}

static void parse_word(const char *s)
{
	struct iot_flow_match m;
	struct iot_error err = {0};
	uint64_t v, again;
	char text[24];

	if (iot_parse_u64(s, &v) == 0) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
		check(iot_parse_u64(text, &again) == 0 && again == v,
		      "a number reads back as another");
	}
	(void)!iot_parse_size(s, &v);
	(void)!iot_parse_duration(s, &v);
	(void)!ctl_parse_time(s, 1700000000000000000ULL, &v);
	check((ctl_parse_flow(s, &m, &err) < 0) == (err.text[0] != '\0'),
	      "refused without a reason, or taken with one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[MAX_WORDS + 1], *order[MAX_WORDS + 1];
	int argc;

	/* Local times are the same everywhere. */
	if (setenv("TZ", "UTC", 1) < 0)
		abort();
	tzset();
	argc = split(data, size, argv);
	for (int i = 1; i < argc; i++)
		parse_word(argv[i]);
	/* Parsing changes their order. */
	memcpy(order, argv, sizeof(order));
	parse_ctl(argc, order);
	memcpy(order, argv, sizeof(order));
	parse_daemon(argc, order);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return 0;
}
