// SPDX-License-Identifier: BSD-2-Clause
/*
 * pager.c - long output goes through a pager, colour only where someone looks.
 *
 * As systemd's tools: $IOTRACE_PAGER, $PAGER, then less; "cat" or "" means none; less gets FRSXMK
 * unless $LESS says otherwise. Only with stdout on a terminal. The pager is waited for after its
 * input was closed, and that it was quit early is no error.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "daemon/ctl/ctl-util.h"

static pid_t pager_pid;
static size_t terminal_columns; /* kept when the pager takes the terminal */

size_t ctl_columns(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (columns && iot_parse_u64(columns, &n) == 0 && n > 0 && n < 10000)
		return (size_t)n;
	if (!pager_pid)
		terminal_columns = isatty(STDOUT_FILENO) &&
						   ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
					   ? size.ws_col
					   : 0;
	return terminal_columns;
}

bool ctl_color_enabled(const struct ctl *c)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (c->color != CTL_COLOR_AUTO)
		return c->color == CTL_COLOR_ALWAYS;
	if (no_color && *no_color)
		return false;
	if (term && strcmp(term, "dumb") == 0)
		return false;
	return pager_pid > 0 || isatty(STDOUT_FILENO);
}

static void exec_pager(const char *pager)
{
	setenv("LESS", "FRSXMK", 0);
	setenv("LESSCHARSET", ctl_utf8_terminal() ? "utf-8" : "latin1", 0);
	/* less must not start programs or edit files when this runs under sudo */
	setenv("LESSSECURE", "1", 0);
	signal(SIGPIPE, SIG_DFL);
	execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

void ctl_pager_open(const struct ctl *c)
{
	const char *pager = getenv("IOTRACE_PAGER");
	int fds[2];
	pid_t pid;

	if (c->no_pager || pager_pid || !isatty(STDOUT_FILENO))
		return;
	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		pager = "if command -v less >/dev/null; then exec less; else exec cat; fi";
	if (!*pager || strcmp(pager, "cat") == 0)
		return;
	(void)ctl_columns();
	fflush(stdout);
	/* Without a pager the output is still right: failures here are not reported. */
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		if (dup2(fds[0], STDIN_FILENO) < 0)
			_exit(126);
		exec_pager(pager);
	}
	if (pid > 0 && dup2(fds[1], STDOUT_FILENO) >= 0) {
		pager_pid = pid;
		/* ^C is for the pager; it ends this program by closing the pipe. */
		signal(SIGINT, SIG_IGN);
	}
	close(fds[0]);
	close(fds[1]);
}

void ctl_pager_close(void)
{
	if (pager_pid <= 0)
		return;
	fflush(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager_pid, NULL, 0) < 0 && errno == EINTR)
		;
	pager_pid = 0;
}
