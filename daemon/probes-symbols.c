/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes-symbols.c - addresses of functions of the running kernel, for what BTF cannot say: who ends a bio.
 *
 * From /proc/kallsyms, which shows zeroes to whom it does not trust (kernel.kptr_restrict, CAP_SYSLOG); what is
 * not found is 0. They go into the programs' constants and nowhere else.
 */
#include "daemon/probes-internal.h"

static const char end_direct[] = "iomap_dio_bio_end_io", end_chain[] = "bio_chain_endio";

/* "ffffffff81000000 T _text"; a module's symbol is followed by the module, and is none of these. */
static void take_line(const char *line, const char *name, uint64_t *ret)
{
	const char *last = strrchr(line, ' ');
	unsigned long long address;
	char type;
	int at;

	/* Most lines go here. */
	if (!last || strcmp(last + 1, name) != 0)
		return;
	if (sscanf(line, "%llx %c %n", &address, &type, &at) == 2 && line + at == last + 1)
		*ret = address;
}

void probes_symbols_read(const char *path, struct probes_symbols *ret)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n;

	*ret = (struct probes_symbols){0};
	/* Hundreds of thousands of lines, which the kernel makes one by one: no more of them than needed. */
	while (f && !(ret->end_direct && ret->end_chain) && (n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		take_line(line, end_direct, &ret->end_direct);
		take_line(line, end_chain, &ret->end_chain);
	}
}
