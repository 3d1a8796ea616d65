#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make bench-origin: what it costs a request that its swap, file, cgroup of pages and direct I/O's file are told.
#
# Model: the kernel's run statistics of our programs (BPF_ENABLE_STATS), summed over all of them and divided by the
# requests completed, with the whole attribution and with none (probe-smoke --without origin), in pairs whose order
# alternates, for each way a request can come. What is printed is the median of the differences, and of each side.
# Statistics cost alike on both sides. The disk is a loop device on memory.
#
#   ROUNDS=9 SECONDS_PER_RUN=2   how long (default about 3 minutes)
#   OUT=build/bench              where origin.jsonl goes
set -euo pipefail
cd "$(dirname "$0")/../.."

ROUNDS=${ROUNDS:-9}
RUN_S=${SECONDS_PER_RUN:-2}
OUT=${OUT:-build/bench}
B=${B:-build}
smoke=$(realpath "$B")/tests/tools/probe-smoke

[ "$(id -u)" -eq 0 ] || { echo "bench-origin: needs root (loop device, BPF)" >&2; exit 77; }
if [ -z "${BENCH_NS:-}" ]; then
	BENCH_NS=1 exec unshare -m --propagation private "$0" "$@"
fi
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
mnt=$(mktemp -d)
mount -t tmpfs -o size=2g bench "$mnt"
loop=
cleanup() {
	umount "$mnt/fs" 2>/dev/null || true
	[ -z "$loop" ] || losetup -d "$loop" 2>/dev/null || true
	umount -l "$mnt" 2>/dev/null || true
	rmdir "$mnt" 2>/dev/null || true
}
trap cleanup EXIT
truncate -s 1G "$mnt/disk"
dd if=/dev/zero of="$mnt/disk" bs=1M count=1024 conv=notrunc status=none
loop=$(losetup -f --show "$mnt/disk")
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$mnt/fs"
mount "$loop" "$mnt/fs"
file=$mnt/fs/file
dd if=/dev/zero of="$file" bs=1M count=768 conv=fsync status=none

fio_on() { # fio's options
	fio --name=x --bs=4k --numjobs=2 --time_based --runtime="$RUN_S" --randrepeat=0 --output=/dev/null "$@"
}
# Each kind of request. Buffered reads are of cold pages, one page a request; written pages are written back as they
# come. (exported: probe-smoke runs them)
run_device() { fio_on --filename="$1" --readonly --direct=1 --ioengine=libaio --iodepth=16 --norandommap --rw=randread; }
run_direct() { fio_on --filename="$2" --direct=1 --ioengine=libaio --iodepth=16 --norandommap --rw=randrw; }
run_read() { fio_on --filename="$2" --ioengine=psync --fadvise_hint=random --rw=randread; }
run_write() { fio_on --filename="$2" --ioengine=psync --norandommap --rw=randwrite --sync_file_range=write:1; }
export -f fio_on run_device run_direct run_read run_write
export RUN_S

# ns_of KIND SMOKE-OPTION...	prints "ns-per-request requests"
ns_of() {
	local kind=$1
	shift
	sync
	echo 1 >/proc/sys/vm/drop_caches
	"$smoke" --include "$(basename "$loop")" --run-stats "$@" -- bash -c "run_$kind $loop $file" >"$mnt/smoke" || {
		cat "$mnt/smoke" >&2
		return 1
	}
	awk '/^run / { split($4, ns, "="); total += ns[2] } /^run block_complete/ { split($3, n, "=") }
		END { printf "%.2f %d\n", total / n[2], n[2] }' "$mnt/smoke"
}

: >"$OUT/origin.jsonl"
for kind in device direct read write; do
	for ((round = 0; round < ROUNDS; round++)); do
		if ((round % 2)); then
			without=$(ns_of "$kind" --without origin)
			with=$(ns_of "$kind")
		else
			with=$(ns_of "$kind")
			without=$(ns_of "$kind" --without origin)
		fi
		jq -nc --arg kind "$kind" --arg with "$with" --arg without "$without" \
			'def n: split(" ") | map(tonumber);
			{kind: $kind, with: ($with | n[0]), without: ($without | n[0]), requests: [($with | n[1]), ($without | n[1])]}' \
			>>"$OUT/origin.jsonl"
	done
done
jq -rs --arg kernel "$(uname -r)" '
	def med: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	def names: {device: "direct I/O on the device", direct: "direct I/O on a file", read: "reads through the page cache",
		write: "write-back"};
	"Kernel \($kernel): ns per request in all programs, statistics on; medians of \(map(select(.kind == "device")) | length) pairs.",
	(group_by(.kind) | map({kind: .[0].kind, with: (map(.with) | med), without: (map(.without) | med),
		cost: (map(.with - .without) | med), least: (map(.with - .without) | min), most: (map(.with - .without) | max)}) | .[]
		| [names[.kind], "without \(.without)", "with \(.with)", "cost \(.cost * 10 | round / 10)", "(\(.least | round) .. \(.most | round))"]
		| join("  "))' "$OUT/origin.jsonl"
