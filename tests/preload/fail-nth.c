// SPDX-License-Identifier: BSD-2-Clause
/*
 * fail-nth.c - LD_PRELOAD: the n-th call of some functions fails, once or for a while. See fail-nth.h.
 *
 * Everything is a system call of its own or glibc's inner name of malloc, so that nothing here depends on
 * what it replaces; only where stdio and directories are opened is the real function looked up. Without
 * $FAIL_CONTROL nothing fails. With $FAIL_TRACE the stack of what fails goes to standard error.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/preload/fail-nth.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

static struct fail_control *control;
static bool trace;

__attribute__((constructor)) static void init(void)
{
	const char *path = getenv("FAIL_CONTROL");
	long fd, p;

	if (!path)
		return;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	p = syscall(SYS_mmap, NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	trace = getenv("FAIL_TRACE") != NULL;
	if (p != -1)
		control = (struct fail_control *)p; /* NOLINT: an address as the kernel gives it */
}

static void print_stack(void)
{
	void *frames[32];
	int n = backtrace(frames, 32);

	backtrace_symbols_fd(frames, n, STDERR_FILENO);
}

/* Counts this call. True if it has to fail; errno is set. */
static bool fails(enum fail_call call, int usual)
{
	struct fail_control *c = control;
	uint64_t n;

	if (!c || !(c->mask & 1ULL << call))
		return false;
	n = __atomic_add_fetch(&c->count, 1, __ATOMIC_RELAXED);
	if (!c->at || n < c->at || n - c->at >= c->n)
		return false;
	__atomic_add_fetch(&c->failed, 1, __ATOMIC_RELAXED);
	c->last = call;
	if (trace)
		print_stack();
	errno = c->error ? c->error : usual;
	return true;
}

/* Events, timers and sockets have no such failures. */
static bool is_file(int fd)
{
	struct stat st;

	return syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Bytes that a read or write is to move: all of them, or half; -1 to fail. */
static ssize_t limited(enum fail_call call, int fd, int usual, size_t size)
{
	if (!control || !is_file(fd) || !fails(call, usual))
		return (ssize_t)size;
	if (control->how != FAIL_SHORT)
		return -1;
	return (ssize_t)(size > 1 ? size / 2 : size);
}

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* ---- memory ---- */

void *malloc(size_t size)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails(FAIL_MALLOC, ENOMEM) ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (fails(FAIL_MMAP, ENOMEM))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset); /* NOLINT */
}

/* ---- opening ---- */

int openat(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (fails(FAIL_OPEN, flags & O_CREAT ? ENOSPC : EMFILE))
		return -1;
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return openat(AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*next)(const char *, const char *);

	if (!next)
		*(void **)&next = real("fopen");
	return fails(FAIL_OPEN, EMFILE) ? NULL : next(path, mode);
}

int mkostemps(char *template, int suffix, int flags)
{
	static int (*next)(char *, int, int);

	if (!next)
		*(void **)&next = real("mkostemps");
	return fails(FAIL_OPEN, ENOSPC) ? -1 : next(template, suffix, flags);
}

int memfd_create(const char *name, unsigned int flags)
{
	return fails(FAIL_OPEN, EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

/* ---- bytes ---- */

ssize_t read(int fd, void *buf, size_t size)
{
	ssize_t n = limited(FAIL_READ, fd, EIO, size);

	return n < 0 ? -1 : syscall(SYS_read, fd, buf, n);
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	ssize_t n = limited(FAIL_READ, fd, EIO, size);

	return n < 0 ? -1 : syscall(SYS_pread64, fd, buf, n, offset);
}

ssize_t write(int fd, const void *buf, size_t size)
{
	ssize_t n = limited(FAIL_WRITE, fd, ENOSPC, size);

	return n < 0 ? -1 : syscall(SYS_write, fd, buf, n);
}

ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	ssize_t n = limited(FAIL_WRITE, fd, ENOSPC, size);

	return n < 0 ? -1 : syscall(SYS_pwrite64, fd, buf, n, offset);
}

/*
 * As the kernel does it: a sync fails once, and the next one of that file succeeds, whatever is on the disk. The
 * latter is counted. EINTR is not such a failure.
 */
static bool sync_fails(int fd)
{
	static ino_t failed[64]; /* on a tmpfs, which does not use a number twice */
	static unsigned int n;
	struct stat st;
	bool fail;

	if (!control || syscall(SYS_fstat, fd, &st) < 0)
		return false;
	for (unsigned int i = 0; i < n && i < 64; i++)
		if (S_ISREG(st.st_mode) && failed[i] == st.st_ino)
			__atomic_add_fetch(&control->again, 1, __ATOMIC_RELAXED);
	fail = fails(FAIL_SYNC, EIO);
	if (fail && errno != EINTR && S_ISREG(st.st_mode))
		failed[n++ % 64] = st.st_ino;
	return fail;
}

int fsync(int fd)
{
	return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t length)
{
	return fails(FAIL_SIZE, EIO) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	return fails(FAIL_SIZE, ENOSPC) ? -1
					: (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* ---- names ---- */

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	if (fails(FAIL_RENAME, EIO))
		return -1;
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return renameat2(from_fd, from, to_fd, to, 0);
}

int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	if (fails(FAIL_RENAME, EIO))
		return -1;
	return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

int unlinkat(int dirfd, const char *path, int flags)
{
	return fails(FAIL_UNLINK, EIO) ? -1 : (int)syscall(SYS_unlinkat, dirfd, path, flags);
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

DIR *opendir(const char *path)
{
	static DIR *(*next)(const char *);

	if (!next)
		*(void **)&next = real("opendir");
	return fails(FAIL_DIR, EMFILE) ? NULL : next(path);
}

DIR *fdopendir(int fd)
{
	static DIR *(*next)(int);

	if (!next)
		*(void **)&next = real("fdopendir");
	return fails(FAIL_DIR, ENOMEM) ? NULL : next(fd);
}

struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*next)(DIR *);

	if (!next)
		*(void **)&next = real("readdir");
	return fails(FAIL_DIR, EIO) ? NULL : next(dir);
}

/* ---- facts ---- */

int fstatat(int dirfd, const char *restrict path, struct stat *restrict st, int flags)
{
	return fails(FAIL_STAT, EIO) ? -1 : (int)syscall(SYS_newfstatat, dirfd, path, st, flags);
}

int stat(const char *restrict path, struct stat *restrict st)
{
	return fstatat(AT_FDCWD, path, st, 0);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
	return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
	return fails(FAIL_STAT, EIO) ? -1 : (int)syscall(SYS_fstat, fd, st);
}

int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
	  struct statx *restrict st)
{
	return fails(FAIL_STAT, EIO) ? -1 : (int)syscall(SYS_statx, dirfd, path, flags, mask, st);
}
