// SPDX-License-Identifier: BSD-2-Clause
/* The keyed function against its standard's vectors, and what is made of it: names, addresses, key files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "daemon/ctl/anonymize-key.h"

/* ---- HMAC-SHA-256: RFC 4231, test cases 1, 2, 3, 6 and 7 ---- */

static void check_hmac(const void *key, size_t key_size, const void *data, size_t size,
		       const char *want)
{
	struct ctl_key *k;
	uint8_t out[IOT_PRF_BYTES];
	char hex[2 * IOT_PRF_BYTES + 1];

	assert_int_equal(ctl_key_new(key, key_size, &k), 0);
	ctl_key_hmac(k, data, size, out);
	for (size_t i = 0; i < sizeof(out); i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
	assert_string_equal(hex, want);
	/* The key is as it was. */
	ctl_key_hmac(k, "other", 5, out);
	ctl_key_hmac(k, data, size, out);
	snprintf(hex, 3, "%02x", out[0]);
	assert_memory_equal(hex, want, 2);
	ctl_key_free(k);
}

static void test_hmac(void **state)
{
	uint8_t key[131], data[50];
	const char *text;

	(void)state;
	memset(key, 0x0b, 20);
	check_hmac(key, 20, "Hi There", 8,
		   "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	check_hmac("Jefe", 4, "what do ya want for nothing?", 28,
		   "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	check_hmac(key, 20, data, sizeof(data),
		   "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	text = "Test Using Larger Than Block-Size Key - Hash Key First";
	check_hmac(key, sizeof(key), text, strlen(text),
		   "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	text = "This is a test using a larger than block-size key and a larger than block-size "
	       "data. The key needs to be hashed before being used by the HMAC algorithm.";
	check_hmac(key, sizeof(key), text, strlen(text),
		   "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

/* ---- with an anonymizer ---- */

struct world {
	struct ctl_key *key;
	struct iot_anonymizer *a;
};

static struct world make(const char *secret)
{
	struct world w;

	assert_int_equal(ctl_key_new(secret, strlen(secret), &w.key), 0);
	assert_int_equal(iot_anonymizer_new(ctl_key_hmac, w.key, CTL_KEY_METHOD, &w.a), 0);
	return w;
}

static void done(struct world *w)
{
	iot_anonymizer_free(w->a);
	ctl_key_free(w->key);
}

static uint32_t map4(struct world *w, uint32_t address)
{
	uint8_t bytes[16] = {0};
	uint32_t out;

	address = htonl(address);
	memcpy(bytes, &address, 4);
	iot_anonymize_address(w->a, 4, bytes);
	for (size_t i = 4; i < 16; i++)
		assert_int_equal(bytes[i], 0);
	memcpy(&out, bytes, 4);
	return ntohl(out);
}

static unsigned int shared(uint32_t x, uint32_t y)
{
	return x == y ? 32 : (unsigned int)__builtin_clz(x ^ y);
}

static void test_prefixes(void **state)
{
	struct world w = make("0123456789abcdef0123456789abcdef");
	struct world other = make("0123456789abcdef0123456789abcdeF");
	uint32_t in[200], out[200];
	unsigned int same = 0;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		/* Neighbours, subnets, and addresses that share nothing. */
		in[i] = i < 100	  ? 0x0a000000 + i
			: i < 150 ? 0x0a000000 + (i << 8)
				  : i * 0x9e3779b1U;
		out[i] = map4(&w, in[i]);
		same += out[i] == in[i];
		same += map4(&other, in[i]) == out[i];
	}
	for (unsigned int i = 0; i < 200; i++)
		for (unsigned int k = 0; k < 200; k++)
			assert_int_equal(shared(in[i], in[k]), shared(out[i], out[k]));
	assert_in_range(same, 0, 2);
	/* Frozen, and by another program's HMAC. */
	assert_int_equal(map4(&w, 0x0a000001), 0x6fb5bd6f);
	done(&other);
	done(&w);
}

static unsigned int shared6(const uint8_t *x, const uint8_t *y)
{
	unsigned int n = 0;

	while (n < 128 && ((x[n / 8] ^ y[n / 8]) >> (7 - n % 8) & 1) == 0)
		n++;
	return n;
}

static void test_prefixes6(void **state)
{
	static const char *const texts[] = {
		"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8:8000::", "fe80::1",
		"::1",	       "::"};
	struct world w = make("0123456789abcdef0123456789abcdef");
	uint8_t in[IOT_ARRAY_SIZE(texts)][16], out[IOT_ARRAY_SIZE(texts)][16];

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++) {
		assert_int_equal(inet_pton(AF_INET6, texts[i], in[i]), 1);
		memcpy(out[i], in[i], 16);
		iot_anonymize_address(w.a, 6, out[i]);
		assert_memory_not_equal(in[i], out[i], 16);
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++)
		for (size_t k = 0; k < IOT_ARRAY_SIZE(texts); k++)
			assert_int_equal(shared6(in[i], in[k]), shared6(out[i], out[k]));
	done(&w);
}

static void check_name(struct world *w, enum iot_name_kind kind, const char *name, const char *want)
{
	char *got;

	assert_int_equal(iot_anonymize_name(w->a, kind, name, &got), 0);
	if (want)
		assert_string_equal(got, want);
	else
		assert_string_not_equal(got, name);
	free(got);
}

/* Frozen: files of one key belong together, whichever version made them. (By another program's HMAC.) */
static void test_names(void **state)
{
	struct world w = make("0123456789abcdef0123456789abcdef");
	static const char *const kept[] = {"sda", "sdaa3", "nvme0n1p2", "nvme1c2n3",
					   "vdb", "dm-0",  "md127p1",	"loop7",
					   "lo",  "eth0",  ""};
	static const char *const hidden[] = {"md_acme",		"sdacme",  "sd",
					     "enx001122334455", "br-acme", "wg0",
					     "nvme0n1p",	"nvme",	   "eth0.17"};
	char comm[IOT_COMM_LEN] = "postgres", again[IOT_COMM_LEN] = "postgres\0rest";
	char full[IOT_COMM_LEN + 1] = "exactly16letters", none[IOT_COMM_LEN] = "";
	char *a, *b;

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(kept); i++)
		check_name(&w, IOT_NAME_DEVICE, kept[i], kept[i]);
	for (size_t i = 0; i < IOT_ARRAY_SIZE(hidden); i++)
		check_name(&w, IOT_NAME_DEVICE, hidden[i], NULL);
	check_name(&w, IOT_NAME_HOST, "sda", NULL);
	check_name(&w, IOT_NAME_CGROUP, "/", "/");
	check_name(&w, IOT_NAME_HOST, "db1.example.org", "h454cf101d412");
	check_name(&w, IOT_NAME_CGROUP, "/system.slice", "/c37ed6d6ebf1a");
	iot_anonymize_comm(w.a, comm);
	assert_string_equal(comm, "pd8a387dc91c4");
	iot_anonymize_comm(w.a, again);
	assert_memory_equal(comm, again, IOT_COMM_LEN);
	iot_anonymize_comm(w.a, full);
	assert_int_equal(full[IOT_COMM_LEN], 0);
	assert_int_equal(strlen(full), 13);
	iot_anonymize_comm(w.a, none);
	assert_string_equal(none, "");

	/* Parents stay parents, and a name below another one is another name. */
	assert_int_equal(iot_anonymize_name(w.a, IOT_NAME_CGROUP, "/a/b/c", &a), 0);
	assert_int_equal(iot_anonymize_name(w.a, IOT_NAME_CGROUP, "/a/b", &b), 0);
	assert_memory_equal(a, b, strlen(b));
	assert_int_equal(a[strlen(b)], '/');
	assert_int_equal(strlen(a), 3 * 14);
	assert_memory_not_equal(a + 1, a + 15, 13);
	free(a);
	free(b);
	done(&w);
}

static void test_filter(void **state)
{
	struct world w = make("0123456789abcdef0123456789abcdef");
	struct iot_filter f = {.dev = "259:1", .comm = "postgres", .probe = "tc:acme#57"};
	struct iot_filter same = {.dev = "sda", .probe = "kfree_skb"};
	char comm[IOT_COMM_LEN] = "postgres";

	(void)state;
	f.flow.src.family = 4;
	memcpy(f.flow.src.addr, (uint8_t[]){10, 0, 0, 1}, 4);
	assert_int_equal(iot_anonymize_filter(w.a, &f), 0);
	iot_anonymize_comm(w.a, comm);
	assert_string_equal(f.dev, "259:1");
	assert_string_equal(f.comm, comm);
	assert_memory_equal(f.probe, "tc:x", 4);
	assert_string_equal(f.probe + strlen(f.probe) - 3, "#57");
	assert_null(strstr(f.probe, "acme"));
	assert_int_equal((uint32_t)f.flow.src.addr[0] << 24 | (uint32_t)f.flow.src.addr[1] << 16 |
				 (uint32_t)f.flow.src.addr[2] << 8 | f.flow.src.addr[3],
			 map4(&w, 0x0a000001));
	assert_int_equal(f.flow.dst.family, 0);
	assert_int_equal(iot_anonymize_filter(w.a, &same), 0);
	assert_string_equal(same.dev, "sda");
	assert_string_equal(same.probe, "kfree_skb");
	done(&w);
}

/* ---- key files ---- */

static void check_key_file(const void *data, size_t size, mode_t mode, const char *want)
{
	char path[] = "/tmp/iotraced-key.XXXXXX";
	int fd = mkstemp(path);
	struct iot_error err = {0};
	struct ctl_key *k = NULL;
	int r;

	assert_true(fd >= 0);
	assert_int_equal(iot_write_all(fd, data, size), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	r = ctl_key_load(path, &k, &err);
	unlink(path);
	ctl_key_free(k);
	if (!want) {
		assert_int_equal(r, 0);
		return;
	}
	assert_true(r < 0);
	if (!strstr(err.text, want))
		fail_msg("\"%s\" does not say \"%s\"", err.text, want);
}

static void test_key_files(void **state)
{
	char text[] = "0123456789abcdef0123456789abcde\n", big[5000];
	struct stat st = {.st_mode = S_IFREG | 0600, .st_uid = geteuid() + 1};
	struct iot_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	check_key_file(big, 32, 0600, NULL);
	check_key_file(big, 32, 0400, NULL);
	check_key_file(big, 4096, 0600, NULL);
	check_key_file(big, 4097, 0600, "longer than 4096 bytes");
	check_key_file(big, 31, 0600, "can be guessed; it needs at least 32");
	check_key_file(big, 0, 0600, "a key of 0 bytes");
	/* 32 bytes, but one of them is a text's last newline. */
	check_key_file(text, 32, 0600, "a key of 31 bytes");
	big[31] = '\n';
	check_key_file(big, 32, 0600, NULL);
	memset(big, 0, 64);
	check_key_file(big, 64, 0600, "the same few bytes");
	check_key_file(text, 32, 0640, "others may read or change the key (mode 0640)");
	check_key_file(text, 32, 0602, "others may read or change the key (mode 0602)");
	assert_int_equal(ctl_key_check_file("key", &st, &err), -EPERM);
	assert_non_null(strstr(err.text, "belongs to somebody else"));
	st.st_uid = 0;
	assert_int_equal(ctl_key_check_file("key", &st, NULL), 0);
}

/* The same key with and without a newline. */
static void test_key_newline(void **state)
{
	static const char *const texts[] = {"0123456789abcdef0123456789abcdef",
					    "0123456789abcdef0123456789abcdef\n",
					    "0123456789abcdef0123456789abcdef\r\n"};
	uint8_t out[IOT_ARRAY_SIZE(texts)][IOT_PRF_BYTES];

	(void)state;
	for (size_t i = 0; i < IOT_ARRAY_SIZE(texts); i++) {
		char path[] = "/tmp/iotraced-key.XXXXXX";
		int fd = mkstemp(path);
		struct ctl_key *k;

		assert_int_equal(iot_write_all(fd, texts[i], strlen(texts[i])), 0);
		close(fd);
		assert_int_equal(ctl_key_load(path, &k, NULL), 0);
		unlink(path);
		ctl_key_hmac(k, "x", 1, out[i]);
		ctl_key_free(k);
		assert_memory_equal(out[0], out[i], IOT_PRF_BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hmac),	    cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_prefixes6),   cmocka_unit_test(test_names),
		cmocka_unit_test(test_filter),	    cmocka_unit_test(test_key_files),
		cmocka_unit_test(test_key_newline),
	};

	return cmocka_run_group_tests_name("anonymize", tests, NULL, NULL);
}
