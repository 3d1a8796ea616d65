// SPDX-License-Identifier: BSD-2-Clause
/*
 * output-dir.c - a directory of files that appears whole or not at all: filled beside its place, then renamed. Until then
 * it has a name that no reader of trees goes into (iot_paths_expand()): what a kill leaves of it is no record.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "daemon/ctl/ctl-util.h"

void ctl_directory_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

int ctl_directory_check(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (errno = 0, e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = -ENOTEMPTY;
	if (r == 0)
		r = -errno;
	closedir(dir);
	return r;
}

int ctl_directory_make(const char *path, char **ret)
{
	const char *slash = strrchr(path, '/');
	int n_dir = slash ? (int)(slash - path) + 1 : 0;
	_cleanup_free_ char *temp = NULL;
	mode_t mask = umask(0);

	umask(mask);
	if (asprintf(&temp, "%.*s.%s" IOT_UNFINISHED IOT_UNFINISHED_RANDOM, n_dir, path,
		     path + n_dir) < 0)
		return -ENOMEM;
	if (!mkdtemp(temp))
		return -errno;
	if (chmod(temp, 0777 & ~mask) < 0) {
		int r = -errno;

		rmdir(temp);
		return r;
	}
	*ret = IOT_TAKE_PTR(temp);
	return 0;
}
