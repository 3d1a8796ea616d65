// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz-filter.c - any text as a filter expression, its translation run over any packet.
 *
 * The input is the expression up to the first NUL, then the packet. What libpcap takes is translated or
 * refused with a reason, and the translation says of the packet, and of every shorter one, what libpcap
 * says of it.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <pcap/pcap.h>

#include "tests/unit/filter-machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PACKET 128U
#define MAX_EXPRESSION 512U

/* libpcap asks here for every word that might be a host: numbers only, or each input asks the network. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	struct addrinfo h = {0};

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (hints)
		h = *hints;
	h.ai_flags |= AI_NUMERICHOST;
	return real(node, service, &h, ret);
}

struct netent *getnetbyname(const char *name)
{
	(void)name;
	return NULL;
}

static void check(bool holds, const char *what, const char *expression)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz-filter: %s: %s\n", what, expression);
	abort();
}

static bool libpcap_says(const struct bpf_program *program, const uint8_t *b, uint32_t n)
{
	struct pcap_pkthdr header = {.caplen = n, .len = n};

	return pcap_offline_filter(program, &header, b) != 0;
}

static void compare(const char *expression, const uint8_t *packet, uint32_t n)
{
	static struct filter_insn insns[FILTER_ROOM];
	struct iot_error err = {0};
	struct bpf_program program;
	pcap_t *pcap = pcap_open_dead(DLT_RAW, 65535);
	int r = filter_compile(expression, insns, &err), q;

	check(pcap, "no memory", "");
	q = pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN);
	check(r < 0 || q == 0, "taken, and not by libpcap", expression);
	check((r < 0) == (err.text[0] != '\0'), "a reason or none, and not the other", expression);
	check(r == 0 || r == -EINVAL || r == -E2BIG, "an undocumented error", expression);
	for (uint32_t len = n + 1; r == 0 && len-- > 0;) {
		/* Exactly as long as the packet, so that reading past it is seen. */
		uint8_t *copy = malloc(len ? len : 1);

		check(copy, "no memory", "");
		memcpy(copy, packet, len);
		check((machine_run(insns, copy, len) != 0) == libpcap_says(&program, copy, len),
		      "another answer than libpcap's", expression);
		free(copy);
		if (len > 64)
			len -= 15;
	}
	if (q == 0)
		pcap_freecode(&program);
	pcap_close(pcap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	size_t len = end ? (size_t)(end - data) : size, n = end ? size - len - 1 : 0;
	char *expression;

	if (len > MAX_EXPRESSION)
		return 0;
	expression = strndup((const char *)data, len);
	check(expression, "no memory", "");
	compare(expression, end ? end + 1 : data, (uint32_t)IOT_MIN(n, (size_t)MAX_PACKET));
	free(expression);
	return 0;
}
