// SPDX-License-Identifier: BSD-2-Clause
/*
 * block-workload.c - does exactly the block I/O it is told to, and writes down what a recorder must
 * have seen.
 *
 * usage: block-workload [-c COMM] [-p CPU] [-o FILE] DEVICE OPERATION...
 *
 *   read:OFFSET:LENGTH[:COUNT]  COUNT direct reads of LENGTH bytes, adjacent, one after the other
 *   write:...                   the same, direct writes
 *   dsync:...                   direct writes with RWF_DSYNC (FUA, or a flush sequence)
 *   read-batch:... write-batch: COUNT adjacent requests in one io_submit(2): the plug merges them
 *   read-deep:... write-deep:   COUNT requests in one io_submit, every second place: no merging
 *   write-at:LENGTH:OFFSET:...  one io_submit per OFFSET, no plug, then wait for all of them
 *   fsync  discard:OFFSET:LENGTH  zeroout:OFFSET:LENGTH  sg-inquiry  nvme-read:OFFSET:LENGTH
 *   sleep:MSEC
 *
 * OFFSET and LENGTH are bytes, with K, M, G for binary units. Each operation appends a JSON line to
 * FILE (default: standard output): what was asked, by whom, the errno it got, and CLOCK_MONOTONIC
 * right before and after, so that a record of it must lie in between. An I/O error is an outcome to
 * write down, not a failure of this program.
 *
 * Exit: 0 all operations were carried out (whatever came back), 1 this program failed, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <sched.h>
#include <scsi/sg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_BATCH 256
#define MAX_FIELDS 16
#define BUFFER_ALIGN 4096U

struct job {
	const char *device;
	int fd;
	FILE *out;
	char comm[16];
	unsigned char *buffer;
	size_t buffer_bytes;
};

struct operation {
	char name[24];
	uint64_t offset;
	uint64_t length;
	uint64_t count;
	uint64_t fields[MAX_FIELDS]; /* all numbers as they were given */
	size_t n_fields;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static int parse_number(const char *s, const char **ret_end, uint64_t *ret)
{
	uint64_t v = 0;
	int shift = 0;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (v > (UINT64_MAX - 9) / 10)
			return -ERANGE;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	if (*s == 'K')
		shift = 10;
	else if (*s == 'M')
		shift = 20;
	else if (*s == 'G')
		shift = 30;
	if (shift > 0) {
		if (v > UINT64_MAX >> shift)
			return -ERANGE;
		v <<= shift;
		s++;
	}
	*ret_end = s;
	*ret = v;
	return 0;
}

static int parse_operation(const char *word, struct operation *ret)
{
	struct operation op = {.count = 1};
	size_t n = strcspn(word, ":");
	int r;

	if (n == 0 || n >= sizeof(op.name))
		return -EINVAL;
	memcpy(op.name, word, n);
	word += n;
	for (; *word == ':'; op.n_fields++) {
		if (op.n_fields >= MAX_FIELDS)
			return -E2BIG;
		r = parse_number(word + 1, &word, &op.fields[op.n_fields]);
		if (r < 0)
			return r;
	}
	if (*word != '\0')
		return -EINVAL;
	op.offset = op.fields[0];
	op.length = op.fields[1];
	if (op.n_fields > 2)
		op.count = op.fields[2];
	*ret = op;
	return 0;
}

/* One line of expectation. error is a positive errno, 0 for success. */
static void report(const struct job *job, const struct operation *op, const char *kind,
		   uint64_t offset, uint64_t bytes, uint64_t count, int error, uint64_t t0_ns,
		   uint64_t t1_ns)
{
	fprintf(job->out,
		"{\"device\":\"%s\",\"call\":\"%s\",\"op\":\"%s\",\"sector\":%" PRIu64
		",\"bytes\":%" PRIu64 ",\"count\":%" PRIu64
		",\"errno\":%d,\"pid\":%ld,\"tgid\":%ld,\"comm\":\"%s\",\"t0_ns\":\"%" PRIu64
		"\",\"t1_ns\":\"%" PRIu64 "\"}\n",
		job->device, op->name, kind, offset / 512, bytes, count, error,
		(long)syscall(SYS_gettid), (long)getpid(), job->comm, t0_ns, t1_ns);
}

static int ensure_buffer(struct job *job, uint64_t bytes)
{
	void *p = NULL;

	if (bytes <= job->buffer_bytes)
		return 0;
	if (bytes > 256U << 20)
		return -E2BIG;
	if (posix_memalign(&p, BUFFER_ALIGN, bytes) != 0)
		return -ENOMEM;
	memset(p, 0x5a, bytes);
	free(job->buffer);
	job->buffer = p;
	job->buffer_bytes = bytes;
	return 0;
}

static int do_rw(struct job *job, const struct operation *op, bool write, int flags)
{
	int r;

	r = ensure_buffer(job, op->length);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < op->count; i++) {
		uint64_t offset = op->offset + i * op->length, t0_ns, t1_ns;
		struct iovec iov = {.iov_base = job->buffer, .iov_len = op->length};
		ssize_t n;
		int error;

		t0_ns = now_ns();
		if (write)
			n = pwritev2(job->fd, &iov, 1, (off_t)offset, flags);
		else
			n = preadv2(job->fd, &iov, 1, (off_t)offset, flags);
		error = n < 0 ? errno : 0;
		t1_ns = now_ns();
		if (n >= 0 && (uint64_t)n != op->length)
			return -EREMOTEIO;
		report(job, op, write ? "write" : "read", offset, op->length, 1, error, t0_ns,
		       t1_ns);
	}
	return 0;
}

struct batch {
	aio_context_t ctx;
	size_t n;
	struct iocb iocbs[MAX_BATCH];
};

/* Waits for n completions. *ret_error: the errno of a request that failed, else 0. */
static int batch_wait(const struct batch *batch, size_t n, uint64_t length, int *ret_error)
{
	struct io_event events[MAX_BATCH];
	int error = 0;

	while (n > 0) {
		long got = syscall(SYS_io_getevents, batch->ctx, 1L, (long)n, events, NULL);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		for (long i = 0; i < got; i++) {
			if (events[i].res < 0)
				error = (int)-events[i].res;
			else if ((uint64_t)events[i].res != length)
				return -EREMOTEIO;
		}
		n -= (size_t)got;
	}
	*ret_error = error;
	return 0;
}

/* together: one io_submit for all of them (plugged), else one for each. */
static int batch_run(struct batch *batch, bool together, uint64_t length, int *ret_error)
{
	struct iocb *list[MAX_BATCH];
	int r = 0;

	for (size_t i = 0; i < batch->n; i++)
		list[i] = &batch->iocbs[i];
	batch->ctx = 0;
	if (syscall(SYS_io_setup, MAX_BATCH, &batch->ctx) < 0)
		return -errno;
	for (size_t done = 0; done < batch->n;) {
		long want = together ? (long)(batch->n - done) : 1L;
		long n = syscall(SYS_io_submit, batch->ctx, want, list + done);

		if (n < 0) {
			r = -errno;
			break;
		}
		done += (size_t)n;
	}
	if (r == 0)
		r = batch_wait(batch, batch->n, length, ret_error);
	syscall(SYS_io_destroy, batch->ctx);
	return r;
}

static void batch_add(struct job *job, struct batch *batch, bool write, uint64_t offset,
		      uint64_t length)
{
	struct iocb *iocb = &batch->iocbs[batch->n];

	iocb->aio_lio_opcode = write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	iocb->aio_fildes = (uint32_t)job->fd;
	iocb->aio_buf = (uint64_t)(uintptr_t)(job->buffer + batch->n * length);
	iocb->aio_nbytes = length;
	iocb->aio_offset = (int64_t)offset;
	batch->n++;
}

static int do_batch(struct job *job, const struct operation *op, bool write, unsigned int stride)
{
	const char *kind = write ? "write" : "read";
	struct batch batch = {};
	uint64_t t0_ns, t1_ns;
	int error = 0, r;

	if (op->count == 0 || op->count > MAX_BATCH)
		return -EINVAL;
	r = ensure_buffer(job, op->length * op->count);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < op->count; i++)
		batch_add(job, &batch, write, op->offset + i * stride * op->length, op->length);
	t0_ns = now_ns();
	r = batch_run(&batch, true, op->length, &error);
	t1_ns = now_ns();
	if (r < 0)
		return r;
	if (stride == 1) {
		report(job, op, kind, op->offset, op->length * op->count, op->count, error, t0_ns,
		       t1_ns);
		return 0;
	}
	for (uint64_t i = 0; i < op->count; i++)
		report(job, op, kind, op->offset + i * stride * op->length, op->length, 1, error,
		       t0_ns, t1_ns);
	return 0;
}

static int do_write_at(struct job *job, const struct operation *op)
{
	uint64_t length = op->fields[0], t0_ns, t1_ns;
	struct batch batch = {};
	int error = 0, r;

	if (op->n_fields < 2)
		return -EINVAL;
	r = ensure_buffer(job, length * op->n_fields);
	if (r < 0)
		return r;
	for (size_t i = 1; i < op->n_fields; i++)
		batch_add(job, &batch, true, op->fields[i], length);
	t0_ns = now_ns();
	r = batch_run(&batch, false, length, &error);
	t1_ns = now_ns();
	if (r < 0)
		return r;
	for (size_t i = 1; i < op->n_fields; i++)
		report(job, op, "write", op->fields[i], length, 1, error, t0_ns, t1_ns);
	return 0;
}

static int do_range_ioctl(struct job *job, const struct operation *op, unsigned long request,
			  const char *kind)
{
	uint64_t range[2] = {op->offset, op->length}, t0_ns, t1_ns;
	int error;

	t0_ns = now_ns();
	error = ioctl(job->fd, request, range) < 0 ? errno : 0;
	t1_ns = now_ns();
	report(job, op, kind, op->offset, op->length, 1, error, t0_ns, t1_ns);
	return 0;
}

static int do_fsync(struct job *job, const struct operation *op)
{
	uint64_t t0_ns, t1_ns;
	int error;

	t0_ns = now_ns();
	error = fsync(job->fd) < 0 ? errno : 0;
	t1_ns = now_ns();
	report(job, op, "flush", 0, 0, 1, error, t0_ns, t1_ns);
	return 0;
}

/* A passthrough request on a SCSI disk: no sector, data in. */
static int do_sg_inquiry(struct job *job, const struct operation *op)
{
	unsigned char command[6] = {0x12, 0, 0, 0, 96, 0}, sense[32];
	struct sg_io_hdr hdr = {
		.interface_id = 'S',
		.dxfer_direction = SG_DXFER_FROM_DEV,
		.cmd_len = sizeof(command),
		.mx_sb_len = sizeof(sense),
		.dxfer_len = 96,
		.cmdp = command,
		.sbp = sense,
		.timeout = 10000,
	};
	uint64_t t0_ns, t1_ns;
	int error, r;

	r = ensure_buffer(job, BUFFER_ALIGN);
	if (r < 0)
		return r;
	hdr.dxferp = job->buffer;
	t0_ns = now_ns();
	error = ioctl(job->fd, SG_IO, &hdr) < 0 ? errno : 0;
	t1_ns = now_ns();
	report(job, op, "drv_in", 0, 96, 1, error, t0_ns, t1_ns);
	return 0;
}

/* The same on NVMe: a read by ioctl, so the block layer sees no sector. 512-byte blocks. */
static int do_nvme_read(struct job *job, const struct operation *op)
{
	struct nvme_user_io io = {.opcode = 2};
	uint64_t t0_ns, t1_ns;
	int error, r;

	if (op->length == 0 || op->length % 512 != 0 || op->length / 512 > 65536)
		return -EINVAL;
	r = ensure_buffer(job, op->length);
	if (r < 0)
		return r;
	io.addr = (uint64_t)(uintptr_t)job->buffer;
	io.slba = op->offset / 512;
	io.nblocks = (uint16_t)(op->length / 512 - 1);
	t0_ns = now_ns();
	r = ioctl(job->fd, NVME_IOCTL_SUBMIT_IO, &io);
	error = r < 0 ? errno : r > 0 ? EIO : 0;
	t1_ns = now_ns();
	report(job, op, "drv_in", 0, op->length, 1, error, t0_ns, t1_ns);
	return 0;
}

static int carry_out(struct job *job, const struct operation *op)
{
	if (strcmp(op->name, "read") == 0)
		return do_rw(job, op, false, 0);
	if (strcmp(op->name, "write") == 0)
		return do_rw(job, op, true, 0);
	if (strcmp(op->name, "dsync") == 0)
		return do_rw(job, op, true, RWF_DSYNC);
	if (strcmp(op->name, "read-batch") == 0)
		return do_batch(job, op, false, 1);
	if (strcmp(op->name, "write-batch") == 0)
		return do_batch(job, op, true, 1);
	if (strcmp(op->name, "read-deep") == 0)
		return do_batch(job, op, false, 2);
	if (strcmp(op->name, "write-deep") == 0)
		return do_batch(job, op, true, 2);
	if (strcmp(op->name, "write-at") == 0)
		return do_write_at(job, op);
	if (strcmp(op->name, "fsync") == 0)
		return do_fsync(job, op);
	if (strcmp(op->name, "discard") == 0)
		return do_range_ioctl(job, op, BLKDISCARD, "discard");
	if (strcmp(op->name, "zeroout") == 0)
		return do_range_ioctl(job, op, BLKZEROOUT, "write_zeroes");
	if (strcmp(op->name, "sg-inquiry") == 0)
		return do_sg_inquiry(job, op);
	if (strcmp(op->name, "nvme-read") == 0)
		return do_nvme_read(job, op);
	if (strcmp(op->name, "sleep") == 0) {
		struct timespec ts = {.tv_sec = (time_t)(op->offset / 1000),
				      .tv_nsec = (long)(op->offset % 1000) * 1000000};

		return nanosleep(&ts, NULL) < 0 ? -errno : 0;
	}
	return -ENOSYS;
}

static int usage(void)
{
	fputs("usage: block-workload [-c COMM] [-p CPU] [-o FILE] DEVICE OPERATION...\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct job job = {.fd = -1, .out = stdout, .comm = "block-workload"};
	const char *end;
	uint64_t cpu;
	int c, r;

	while ((c = getopt(argc, argv, "c:p:o:")) != -1) {
		cpu_set_t set;

		switch (c) {
		case 'c':
			snprintf(job.comm, sizeof(job.comm), "%s", optarg);
			break;
		case 'p':
			if (parse_number(optarg, &end, &cpu) < 0 || *end != '\0' ||
			    cpu >= CPU_SETSIZE)
				return usage();
			CPU_ZERO(&set);
			CPU_SET((size_t)cpu, &set);
			if (sched_setaffinity(0, sizeof(set), &set) < 0) {
				fprintf(stderr, "block-workload: CPU %s: %s\n", optarg,
					strerror(errno));
				return 1;
			}
			break;
		case 'o':
			job.out = fopen(optarg, "ae");
			if (!job.out) {
				fprintf(stderr, "block-workload: %s: %s\n", optarg,
					strerror(errno));
				return 1;
			}
			break;
		default:
			return usage();
		}
	}
	if (argc - optind < 2)
		return usage();
	/* Several of us may append to one file: a line is one write. */
	setvbuf(job.out, NULL, _IOLBF, BUFSIZ);
	prctl(PR_SET_NAME, job.comm);
	job.device = argv[optind];
	job.fd = open(job.device, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (job.fd < 0) {
		fprintf(stderr, "block-workload: %s: %s\n", job.device, strerror(errno));
		return 1;
	}
	for (int i = optind + 1; i < argc; i++) {
		struct operation op;

		r = parse_operation(argv[i], &op);
		if (r == 0)
			r = carry_out(&job, &op);
		if (r < 0) {
			fprintf(stderr, "block-workload: %s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	free(job.buffer);
	close(job.fd);
	if (fflush(job.out) != 0) {
		fprintf(stderr, "block-workload: output: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
