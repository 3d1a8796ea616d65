/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf-stats SECONDS - keeps the kernel's run statistics of BPF programs switched on while it runs.
 *
 * BPF_ENABLE_STATS (5.8) ties the switch to a file descriptor, so that a benchmark changes no
 * sysctl and a killed one leaves nothing behind.
 */
#include <bpf/bpf.h>

#include "format/base.h"

int main(int argc, char **argv)
{
	uint64_t seconds = 60;
	int fd;

	if (argc > 2 || (argc == 2 && iot_parse_u64(argv[1], &seconds) < 0)) {
		fprintf(stderr, "usage: bpf-stats [SECONDS]\n");
		return 64;
	}
	fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (fd < 0) {
		fprintf(stderr, "bpf-stats: cannot enable run statistics: %s\n", strerror(errno));
		return 1;
	}
	sleep((unsigned int)seconds);
	close(fd);
	return 0;
}
