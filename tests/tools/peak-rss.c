// SPDX-License-Identifier: BSD-2-Clause
/*
 * peak-rss.c - how much memory a command needs at most.
 *
 *	peak-rss FILE COMMAND...
 *
 * Runs the command and writes its largest resident set, in KiB, to FILE. Exits as the command did.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "format/base.h"

int main(int argc, char **argv)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: peak-rss FILE COMMAND...\n");
		return 2;
	}
	f = fopen(argv[1], "we");
	if (!f) {
		perror(argv[1]);
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("peak-rss");
		return 2;
	}
	fprintf(f, "%ld\n", usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
