// SPDX-License-Identifier: BSD-2-Clause
/*
 * fd-supervisor.c - as much of a service manager as handing descriptors on takes, for tests.
 *
 * usage: fd-supervisor DIRECTORY COMMAND [ARGUMENT...]
 *
 * Serves DIRECTORY/notify as NOTIFY_SOCKET, keeps what comes with FDSTORE=1 (as systemd does: all that is in
 * the store, by name, until FDSTOREREMOVE=1), and starts COMMAND again whenever it dies of a signal or fails,
 * with LISTEN_FDS. Prints one line per event: "start PID FDS", "ready", "fd NAME", "remove NAME",
 * "exit PID STATUS" (128 + signal).
 *
 * DIRECTORY/pid	the command's process id while it runs
 * DIRECTORY/env.N	NAME=VALUE lines for the next start, the lowest N first, removed once used
 * DIRECTORY/again	exists: the command is started again when it ends with status 0, too, as for a restart
 * DIRECTORY/argv0	a program to start instead of COMMAND from now on
 * SIGTERM		passed on; the end of the command is ours then, with its status
 * SIGUSR1		the command is killed (and started again)
 * SIGUSR2		forget the descriptors whose names contain what DIRECTORY/forget holds (no such file: all),
 *			as if the store had been too small
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FDS 512
#define MAX_FAILURES 5 /* in a row, without a signal */

static struct {
	char name[256];
	int fd;
} kept[MAX_FDS];
static size_t n_kept;
static const char *dir;
static char **command;
static pid_t child;
static bool ending;

static void path_of(char *buf, size_t size, const char *name)
{
	if (snprintf(buf, size, "%s/%s", dir, name) >= (int)size)
		exit(2);
}

static void forget(const char *name, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < n_kept; i++) {
		if (part ? strstr(kept[i].name, part) != NULL : strcmp(kept[i].name, name) == 0)
			close(kept[i].fd);
		else
			kept[n++] = kept[i];
	}
	n_kept = n;
}

static void lose(void)
{
	char path[256], part[256] = "";
	FILE *f;

	path_of(path, sizeof(path), "forget");
	f = fopen(path, "re");
	if (f && fgets(part, sizeof(part), f))
		part[strcspn(part, "\n")] = '\0';
	if (f)
		fclose(f);
	forget(NULL, part);
	printf("forgot %s\n", part);
}

static void set_environment(void)
{
	char path[256], line[256];
	FILE *f = NULL;

	for (unsigned int n = 1; !f && n < 1000; n++) {
		char name[16];

		snprintf(name, sizeof(name), "env.%u", n);
		path_of(path, sizeof(path), name);
		f = fopen(path, "re");
	}
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		putenv(strdup(line));
	}
	if (!f)
		return;
	fclose(f);
	unlink(path);
}

static void read_program(char *buf, size_t size)
{
	char path[256];
	FILE *f;

	snprintf(buf, size, "%s", command[0]);
	path_of(path, sizeof(path), "argv0");
	f = fopen(path, "re");
	if (f && fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void run_command(void)
{
	char number[32], names[MAX_FDS * 128] = "", program[256];
	size_t used = 0;
	sigset_t none;

	/* Out of the way first: what is at 3 now may belong at 4. */
	for (size_t i = 0; i < n_kept; i++) {
		kept[i].fd = fcntl(kept[i].fd, F_DUPFD_CLOEXEC, 3 + MAX_FDS);
		if (kept[i].fd < 0)
			_exit(126);
	}
	for (size_t i = 0; i < n_kept; i++) {
		if (dup2(kept[i].fd, 3 + (int)i) < 0)
			_exit(126);
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ":" : "",
					 kept[i].name);
	}
	if (n_kept) {
		snprintf(number, sizeof(number), "%zu", n_kept);
		setenv("LISTEN_FDS", number, 1);
		snprintf(number, sizeof(number), "%d", (int)getpid());
		setenv("LISTEN_PID", number, 1);
		setenv("LISTEN_FDNAMES", names, 1);
	}
	read_program(program, sizeof(program));
	set_environment();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(program, command);
	_exit(127);
}

static void start(void)
{
	char path[256], tmp[256];
	FILE *f;

	child = fork();
	if (child < 0)
		exit(1);
	if (child == 0)
		run_command();
	path_of(path, sizeof(path), "pid");
	path_of(tmp, sizeof(tmp), "pid.new");
	f = fopen(tmp, "we");
	if (f) {
		fprintf(f, "%d\n", (int)child);
		fclose(f);
		(void)!rename(tmp, path);
	}
	printf("start %d %zu\n", (int)child, n_kept);
}

static const char *value(const char *text, const char *name, char *buf, size_t size)
{
	const char *s = strstr(text, name);

	if (!s || (s != text && s[-1] != '\n'))
		return NULL;
	s += strlen(name);
	snprintf(buf, size, "%.*s", (int)strcspn(s, "\n"), s);
	return buf;
}

static void receive(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control;
	char text[8192], name[256], one[16];
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	bool keep;

	if (n < 0)
		return;
	text[n] = '\0';
	if (!value(text, "FDNAME=", name, sizeof(name)))
		snprintf(name, sizeof(name), "stored");
	keep = value(text, "FDSTORE=", one, sizeof(one)) != NULL;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < count; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
			if (!keep || n_kept == MAX_FDS) {
				close(got);
				continue;
			}
			snprintf(kept[n_kept].name, sizeof(kept[n_kept].name), "%s", name);
			kept[n_kept++].fd = got;
			printf("fd %s\n", name);
		}
	}
	if (value(text, "FDSTOREREMOVE=", one, sizeof(one))) {
		forget(name, NULL);
		printf("remove %s\n", name);
	}
	if (value(text, "READY=", one, sizeof(one)))
		printf("ready\n");
}

/* Returns when the command is to be started again. */
static void bury(int notify_fd, unsigned int *failures)
{
	char again[256];
	int status, code;

	if (waitpid(child, &status, WNOHANG) != child)
		return;
	/* What it sent before it died counts. */
	for (;;) {
		struct pollfd p = {.fd = notify_fd, .events = POLLIN};

		if (poll(&p, 1, 0) <= 0)
			break;
		receive(notify_fd);
	}
	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	printf("exit %d %d\n", (int)child, code);
	*failures = WIFSIGNALED(status) || code == 0 ? 0 : *failures + 1;
	path_of(again, sizeof(again), "again");
	if (ending || (code == 0 && access(again, F_OK) != 0) || *failures >= MAX_FAILURES)
		exit(code);
	/* Time for whoever mends what made it fail. */
	sleep(*failures);
	start();
}

int main(int argc, char **argv)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	unsigned int failures = 0;
	struct pollfd p[2];
	sigset_t set;

	if (argc < 3 || strlen(argv[1]) + 8 >= sizeof(sa.sun_path)) {
		fprintf(stderr, "usage: fd-supervisor DIRECTORY COMMAND [ARGUMENT...]\n");
		return 2;
	}
	dir = argv[1];
	command = argv + 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/notify", dir);
	unlink(sa.sun_path);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p[0] = (struct pollfd){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
			       .events = POLLIN};
	p[1] = (struct pollfd){.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN};
	if (p[0].fd < 0 || p[1].fd < 0 || bind(p[0].fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		fprintf(stderr, "fd-supervisor: %s: %s\n", sa.sun_path, strerror(errno));
		return 1;
	}
	setenv("NOTIFY_SOCKET", sa.sun_path, 1);
	start();
	for (;;) {
		struct signalfd_siginfo si;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			receive(p[0].fd);
		if (!p[1].revents || read(p[1].fd, &si, sizeof(si)) != sizeof(si))
			continue;
		if (si.ssi_signo == SIGCHLD) {
			bury(p[0].fd, &failures);
		} else if (si.ssi_signo == SIGUSR1) {
			kill(child, SIGKILL);
		} else if (si.ssi_signo == SIGUSR2) {
			lose();
		} else {
			ending = true;
			kill(child, SIGTERM);
		}
	}
}
