// SPDX-License-Identifier: BSD-2-Clause
/*
 * args.c - iotraced's command line, see args.h.
 */
#include "daemon/args.h"

#include <getopt.h>

enum {
	OPT_CONFIG = 1,
	OPT_STATE_DIR,
	OPT_SOCKET,
	OPT_DURATION,
	OPT_CHECK_CONFIG,
	OPT_PROBE_CHECK,
	OPT_FINISH,
	OPT_VERSION,
};

static const struct option options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"state-dir", required_argument, NULL, OPT_STATE_DIR},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{"probe-check", no_argument, NULL, OPT_PROBE_CHECK},
	{"finish", no_argument, NULL, OPT_FINISH},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	{0},
};

void args_help(FILE *f)
{
	fputs("iotraced " IOTRACED_VERSION " - flight recorder for Linux I/O\n"
	      "\n"
	      "usage: iotraced [--config FILE] [--state-dir DIR] [--socket PATH]\n"
	      "                [--duration TIME]\n"
	      "       iotraced --check-config | --probe-check | --finish | --version | --help\n"
	      "\n"
	      "Runs in the foreground and logs to stderr. SIGTERM and SIGINT seal the segment\n"
	      "and exit 0; SIGHUP reads the configuration again and keeps collecting; SIGUSR1\n"
	      "leaves the capture to the next start, where the service manager keeps it.\n"
	      "\n"
	      "  --config FILE     read FILE (and conf.d beside it) instead of\n"
	      "                    /etc/iotraced/iotraced.yaml\n"
	      "  --state-dir DIR   where segments go; overrides the configuration\n"
	      "  --socket PATH     control socket; overrides the configuration\n"
	      "  --duration TIME   stop after this time: seconds, or a number with a unit (ms,\n"
	      "                    s, m, h, d, w): 90, 500ms, 5m, 1h\n"
	      "  --check-config    check the configuration and exit\n"
	      "  --probe-check     try the probes on this kernel, print what attaches, and exit\n"
	      "  --finish          seal what a predecessor left in the service manager's\n"
	      "                    keeping, and exit (an upgrade asks this of the old program)\n"
	      "  --version         print the version and exit\n"
	      "  -h, --help        print this text and exit\n"
	      "\n"
	      "example: iotraced --state-dir /tmp/trace --socket /tmp/trace.sock --duration 1m\n"
	      "\n"
	      "exit codes: 0 stopped as asked, everything sealed; 64 wrong command line;\n"
	      "  69 this kernel cannot (no BTF, lockdown, no tracing programs); 71 system\n"
	      "  error; 73 state directory or socket cannot be created or written; 74 read or\n"
	      "  write error; 75 another iotraced uses the state directory or the socket;\n"
	      "  77 a capability is missing (the message says which); 78 configuration error\n",
	      f);
}

static int set_mode(struct args *a, enum args_mode mode, struct iot_error *err)
{
	if (a->mode != ARGS_RUN && a->mode != mode)
		return iot_error_set(err, -EINVAL,
				     "only one of --check-config, --probe-check, --finish, "
				     "--version and --help can be given");
	a->mode = mode;
	return 0;
}

static int set_path(const char **where, const char *option, const char *value,
		    struct iot_error *err)
{
	if (!*value)
		return iot_error_set(err, -EINVAL, "%s needs a path, got an empty string", option);
	*where = value;
	return 0;
}

int args_parse(int argc, char **argv, struct args *ret, struct iot_error *err)
{
	struct args a = {0};
	int c, r = 0;

	optind = 0; /* 0, not 1: glibc starts afresh, also after an earlier call */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (c) {
		case OPT_CONFIG:
			r = set_path(&a.config, "--config", optarg, err);
			break;
		case OPT_STATE_DIR:
			r = set_path(&a.state_dir, "--state-dir", optarg, err);
			break;
		case OPT_SOCKET:
			r = set_path(&a.socket, "--socket", optarg, err);
			break;
		case OPT_DURATION:
			r = iot_parse_duration(optarg, &a.duration_ns);
			if (r < 0 || a.duration_ns == 0)
				r = iot_error_set(err, -EINVAL,
						  "--duration: \"%s\" is no time above 0; "
						  "write seconds or a unit: 90, 5m, 1h",
						  optarg);
			break;
		case OPT_CHECK_CONFIG:
			r = set_mode(&a, ARGS_CHECK_CONFIG, err);
			break;
		case OPT_PROBE_CHECK:
			r = set_mode(&a, ARGS_PROBE_CHECK, err);
			break;
		case OPT_FINISH:
			r = set_mode(&a, ARGS_FINISH, err);
			break;
		case OPT_VERSION:
			r = set_mode(&a, ARGS_VERSION, err);
			break;
		case 'h':
			r = set_mode(&a, ARGS_HELP, err);
			break;
		case ':':
			return iot_error_set(err, -EINVAL, "%s needs a value", argv[optind - 1]);
		default:
			return iot_error_set(err, -EINVAL,
					     "unknown or malformed option \"%s\"; see --help",
					     argv[optind - 1]);
		}
		if (r < 0)
			return r;
	}
	if (optind < argc)
		return iot_error_set(err, -EINVAL,
				     "unexpected argument \"%s\"; iotraced takes options only, "
				     "see --help",
				     argv[optind]);
	*ret = a;
	return 0;
}
