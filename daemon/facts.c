// SPDX-License-Identifier: BSD-2-Clause
/* facts.c - see facts.h. */
#include <fcntl.h>
#include <sys/utsname.h>

#include "daemon/clock.h"
#include "daemon/facts.h"

/* 32 hex digits, dashes ignored. */
static int parse_id128(const char *s, uint8_t ret[16])
{
	unsigned int n = 0;

	for (; *s && *s != '\n'; s++) {
		unsigned int v;

		if (*s == '-')
			continue;
		if (*s >= '0' && *s <= '9')
			v = (unsigned int)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			v = (unsigned int)(*s - 'a') + 10;
		else
			return -EINVAL;
		if (n >= 32)
			return -EINVAL;
		ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] | v : v << 4);
		n++;
	}
	return n == 32 ? 0 : -EINVAL;
}

static int read_id128(const char *path, uint8_t ret[16])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[64];
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf) - 1);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	r = parse_id128(buf, ret);
	if (r < 0)
		memset(ret, 0, 16);
	return r;
}

static void append(char *buf, size_t size, const char *what, const struct iot_strv *v)
{
	for (size_t i = 0; i < v->n; i++) {
		size_t len = strlen(buf);

		snprintf(buf + len, size - len, "%s%s%s",
			 i == 0 && len ? "; "
			 : i	       ? ","
				       : "",
			 i == 0 ? what : "", v->items[i]);
	}
}

static void packet_selection(const struct iot_packet_config *c, char *buf, size_t size)
{
	const char *filter = c->filter && *c->filter ? c->filter : "all";

	if (c->sample > 1)
		snprintf(buf, size, "%s; 1 flow in %llu", filter, (unsigned long long)c->sample);
	else
		snprintf(buf, size, "%s", filter);
}

void facts_selection(const struct iot_config *c, enum iot_stream stream, char *buf, size_t size)
{
	const struct iot_device_filter *f = &c->devices;

	if (stream == IOT_STREAM_PACKET) {
		packet_selection(&c->packets, buf, size);
		return;
	}
	/* First, since a long list of devices is cut. */
	snprintf(buf, size, "%s", c->block.swap == IOT_DROP_SWAP ? IOT_SELECTION_WITHOUT_SWAP : "");
	append(buf, size, "include ", &f->include);
	append(buf, size, "exclude ", &f->exclude);
	if (!buf[0])
		snprintf(buf, size, "all");
}

static int collect_packet(const struct probes_packet_kernel *k, struct iot_segment_info *i)
{
	snprintf(i->identity, sizeof(i->identity), "%s", probes_identity_text(k));
	for (size_t n = 0; n < k->n_reasons; n++) {
		int r = iot_names_add(&i->reasons, k->reasons[n].value, k->reasons[n].name);

		if (r < 0)
			return r;
	}
	return 0;
}

void facts_done(struct facts *f)
{
	iot_names_done(&f->info.reasons);
}

int facts_collect(const struct iot_config *config, struct probes *probes, enum iot_stream stream,
		  const uint8_t capture_id[16], uint64_t attach_ns, struct facts *ret,
		  struct iot_error *err)
{
	struct iot_segment_info *i = &ret->info;
	struct utsname u;
	int r;

	*ret = (struct facts){};
	/* Containers and images may have no machine id: zero says so. */
	if (read_id128("/etc/machine-id", i->machine_id) < 0)
		(void)!read_id128("/var/lib/dbus/machine-id", i->machine_id);
	r = read_id128("/proc/sys/kernel/random/boot_id", i->boot_id);
	if (r < 0)
		return iot_error_set(err, r,
				     "/proc/sys/kernel/random/boot_id: %s; is /proc mounted?",
				     strerror(-r));
	memcpy(i->capture_id, capture_id, sizeof(i->capture_id));
	if (uname(&u) == 0) {
		snprintf(i->host, sizeof(i->host), "%.*s", (int)sizeof(i->host) - 1, u.nodename);
		snprintf(i->kernel, sizeof(i->kernel), "%.*s", (int)sizeof(i->kernel) - 1,
			 u.release);
	}
	i->stream = (uint8_t)stream;
	facts_selection(config, stream, i->selection, sizeof(i->selection));
	if (stream == IOT_STREAM_PACKET) {
		r = collect_packet(probes_packet_kernel(probes), i);
		if (r < 0)
			return iot_error_set(err, r, "out of memory");
	} else {
		i->swap_out = probes_kernel(probes)->swap_out;
		i->swap_in = probes_kernel(probes)->swap_in;
	}
	i->n_rings = probes_n_rings(probes);
	i->n_cpus = probes_n_cpus(probes);
	i->attach_ns = attach_ns;
	return 0;
}

int facts_segment(const struct facts *f, struct probes *probes, struct names *names, uint64_t epoch,
		  uint64_t seq, struct iot_segment_info *ret)
{
	struct iot_segment_info info = f->info;
	int r;

	info.epoch = epoch;
	info.seq = seq;
	/* The table is the daemon's, borrowed for one call of the writer, which does not change it. */
	info.probes = (struct iot_probe *)(uintptr_t)probes_table(probes, &info.n_probes);
	/* Interfaces come and go: the footer names them. */
	r = info.stream == IOT_STREAM_BLOCK ? names_all_devices(names, &info.devices) : 0;
	if (r < 0) {
		iot_names_done(&info.devices);
		return r;
	}
	info.clocks = clock_anchors();
	*ret = info;
	return 0;
}
