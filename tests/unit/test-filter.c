/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/probes-filter: the translated instructions, run here by an interpreter of the few that occur, must
 * say of every packet what libpcap says of it. Packets are made at random around plausible headers, cut
 * at every length, so that loads beyond the end are tried too.
 */
#include <pcap/pcap.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/filter-machine.h"

static uint64_t seed = 88172645463325252ULL;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % n;
}

/* Headers with values from a small set, so that expressions meet them. */
static uint32_t make_packet(uint8_t b[128])
{
	static const uint8_t protocols[] = {1, 6, 17, 44, 50, 58, 0, 132};
	static const uint16_t ports[] = {22, 53, 80, 443, 1024, 65535};
	uint32_t l4 = 20;

	for (int i = 0; i < 128; i++)
		b[i] = (uint8_t)rnd(256);
	if (rnd(3)) {
		uint32_t hlen = rnd(4) ? 5 : 5 + rnd(11);

		b[0] = (uint8_t)(0x40 | hlen);
		if (rnd(2))
			b[6] = b[7] = 0;
		b[9] = protocols[rnd(sizeof(protocols))];
		memcpy(b + 12, (uint8_t[]){10, 0, 0, (uint8_t)rnd(4)}, 4);
		memcpy(b + 16, (uint8_t[]){192, 168, (uint8_t)rnd(3), (uint8_t)rnd(4)}, 4);
		l4 = hlen * 4;
	} else {
		b[0] = 0x60;
		b[6] = protocols[rnd(sizeof(protocols))];
		memset(b + 8, 0, 32);
		b[8] = b[24] = 0xfd;
		b[23] = (uint8_t)rnd(4);
		b[39] = (uint8_t)rnd(4);
		l4 = 40;
	}
	for (uint32_t i = 0; i < 4; i += 2) {
		uint16_t port = ports[rnd(IOT_ARRAY_SIZE(ports))];

		b[l4 + i] = (uint8_t)(port >> 8);
		b[l4 + i + 1] = (uint8_t)port;
	}
	return rnd(4) ? 60 + rnd(69) : rnd(129);
}

static const char *const expressions[] = {
	"ip",
	"ip6",
	"tcp",
	"udp port 53",
	"port 53 or port 443",
	"host 10.0.0.1",
	"src net 192.168.1.0/24 or dst net 192.168.1.0/24",
	"tcp dst port 80 and (tcp[tcpflags] & (tcp-syn|tcp-fin) != 0)",
	"tcp[((tcp[12] & 0xf0) >> 2):4] < 0x47455420",
	"icmp[icmptype] = icmp-echo or icmp6",
	"host fd00::1 or ip6 net fd00::2/127",
	"portrange 1000-2000",
	"ip[8] < 64 and ip[2:2] > 1000",
	"not udp and greater 80",
	"ip[0] & 0xf != 5",
	"ip6 protochain 17",
	"ip[1] * 3 + ip[5] / 7 - ip[9] % 5 > 100",
	"(ip[4:2] << 2) ^ ip[10:2] | 1 = 77 or len <= 70",
	"ip[2:4] >> (ip[8] & 63) > 5",
	"ip[2:2] / ip[8] > 3",
	"ip[ip[9]] = 1",
	"ip[12:4] = 0xffffffff or ip[12:4] >= 0x80000000 or less 40",
};

static bool libpcap_says(const struct bpf_program *program, const uint8_t *b, uint32_t n)
{
	struct pcap_pkthdr header = {.caplen = n, .len = n};

	return pcap_offline_filter(program, &header, b) != 0;
}

static void test_same_as_libpcap(void **state)
{
	static struct filter_insn insns[FILTER_ROOM];
	uint8_t *b = malloc(128); /* on the heap, where a sanitizer sees what lies beyond */

	(void)state;
	assert_non_null(b);
	for (size_t e = 0; e < IOT_ARRAY_SIZE(expressions); e++) {
		pcap_t *pcap = pcap_open_dead(DLT_RAW, 65535);
		struct iot_error err = {0};
		struct bpf_program program;
		unsigned int n_yes = 0;
		int r = filter_compile(expressions[e], insns, &err);

		if (pcap_compile(pcap, &program, expressions[e], 1, PCAP_NETMASK_UNKNOWN) < 0)
			fail_msg("%s: %s", expressions[e], pcap_geterr(pcap));
		/* The only loop that libpcap makes, and the kernel has none for filters either. */
		if (strstr(expressions[e], "protochain")) {
			assert_int_equal(r, -EINVAL);
		} else {
			if (r < 0)
				fail_msg("%s: %s", expressions[e], err.text);
			for (int i = 0; i < 4000; i++) {
				uint32_t n = make_packet(b);
				bool want = libpcap_says(&program, b, n);

				if ((machine_run(insns, b, n) != 0) != want)
					fail_msg("%s: packet %d of %u bytes: libpcap says %d",
						 expressions[e], i, n, want);
				n_yes += want;
			}
			/* Both answers have been asked for. */
			assert_in_range(n_yes, 1, 3999);
		}
		pcap_freecode(&program);
		pcap_close(pcap);
	}
	free(b);
}

static void test_errors(void **state)
{
	static struct filter_insn insns[FILTER_ROOM];
	char long_one[16384] = "host 10.0.0.1";
	struct iot_error err = {0};

	(void)state;
	assert_int_equal(filter_compile("udp prot 53", insns, &err), -EINVAL);
	assert_non_null(strstr(err.text, "udp prot 53"));
	for (int i = 2; i < 600; i++) {
		size_t n = strlen(long_one);

		snprintf(long_one + n, sizeof(long_one) - n, " or host 10.0.%d.%d", i / 250,
			 i % 250);
	}
	assert_int_equal(filter_compile(long_one, insns, &err), -E2BIG);
}

static void test_write(void **state)
{
	struct filter_insn insns[FILTER_ROOM], mark = {.code = 0xb4, .imm = EV_EXPRESSION_MARK};
	size_t bytes = (FILTER_ROOM + 4) * sizeof(mark);
	struct iot_error err = {0};
	uint8_t *image = calloc(1, bytes);

	(void)state;
	assert_non_null(image);
	assert_int_equal(filter_compile("ip", insns, &err), 0);
	assert_int_equal(filter_write(image, bytes, insns), 0);
	memcpy(image + 16, &mark, sizeof(mark));
	assert_int_equal(filter_write(image, bytes, insns), 1);
	assert_memory_equal(image + 24, insns, sizeof(insns));
	assert_int_equal(image[bytes - 1], 0);
	/* A mark without the room behind it is none. */
	memset(image, 0, bytes);
	memcpy(image + 32, &mark, sizeof(mark));
	assert_int_equal(filter_write(image, bytes, insns), 0);
	free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_libpcap),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
