#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make bench: every performance figure that the README quotes, measured in one run, in pairs.
#
# Model: a loop device on memory under fio (4 KiB random read/write, depth 16, all CPUs). Each round
# runs every tracer between two untraced runs; a tracer's figure is the ratio to the mean of the two
# untraced runs around it, and what is printed is the median over the rounds. Absolute numbers belong
# to the machine; the ratios are the result.
#
#   ROUNDS=9 SECONDS_PER_RUN=4   how long (default about 8 minutes in all)
#   OUT=build/bench              where bench.json and the raw data go
set -euo pipefail
cd "$(dirname "$0")/../.."

ROUNDS=${ROUNDS:-9}
RUN_S=${SECONDS_PER_RUN:-4}
OUT=${OUT:-build/bench}
B=${B:-build}

[ "$(id -u)" -eq 0 ] || { echo "bench: needs root (loop device, BPF)" >&2; exit 77; }
# Mounts stay private to this run: tmpfs for the loop file, tracefs for perf and bpftrace.
if [ -z "${BENCH_NS:-}" ]; then
	BENCH_NS=1 exec unshare -m --propagation private "$0" "$@"
fi

mkdir -p "$OUT"
OUT=$(realpath "$OUT")
B=$(realpath "$B")
mnt=$(mktemp -d)
mount -t tmpfs -o size=3g bench "$mnt"
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null || true
truncate -s 1G "$mnt/disk"
dd if=/dev/zero of="$mnt/disk" bs=1M count=1024 conv=notrunc status=none
loop=$(losetup -f --show "$mnt/disk")
daemon=
cleanup() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	losetup -d "$loop" 2>/dev/null || true
	umount -l "$mnt" 2>/dev/null || true
	rmdir "$mnt" 2>/dev/null || true
}
trap cleanup EXIT
log() { printf '%s\n' "$*" >&2; }

fio_run() { # name rw bs seconds -> prints "iops requests"
	fio --name="$1" --filename="$loop" --direct=1 --ioengine=libaio --rw="$2" --bs="$3" --iodepth=16 \
		--numjobs="$(nproc)" --time_based --runtime="$4" --norandommap --randrepeat=0 --group_reporting \
		--output-format=json >"$mnt/fio.json" 2>"$mnt/fio.err" || { cat "$mnt/fio.err" >&2; return 1; }
	jq -r '.jobs[0] | "\((.read.iops + .write.iops) | floor) \(.read.total_ios + .write.total_ios)"' "$mnt/fio.json"
}

config() { # file ring_size
	cat >"$1" <<-Y
	streams:
	  block:
	    ring_size: $2
	retention:
	  min_free: 0
	Y
}

daemon_start() { # state-dir ring
	rm -rf "$1" && mkdir -p "$1"
	config "$mnt/c.yaml" "$2"
	"$B/iotraced" --config "$mnt/c.yaml" --state-dir "$1" --socket "$mnt/sock" >"$mnt/daemon.log" 2>&1 &
	daemon=$!
	for _ in $(seq 100); do
		"$B/iotracectl" --socket "$mnt/sock" status --json >"$mnt/status.json" 2>/dev/null && return 0
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	cat "$mnt/daemon.log" >&2
	return 1
}
daemon_stop() {
	kill -TERM "$daemon"
	wait "$daemon" || { cat "$mnt/daemon.log" >&2; return 1; }
	daemon=
}
# CPU seconds (user + system) that a process has used.
cpu_s() { awk -v hz="$(getconf CLK_TCK)" '{sub(/^.*\) /, ""); print ($12 + $13) / hz}' "/proc/$1/stat"; }
# Resident KiB beside the rings, which are mapped twice in a row and counted in full by Rss.
rss_kib() { awk '/^[0-9a-f]+-[0-9a-f]+ /{ring = /anon_inode:bpf-map/} /^Rss:/{if (!ring) n += $2} END {print n}' "/proc/$1/smaps"; }
bytes_of() { cat "$@" 2>/dev/null | wc -c; }

rm -f "$OUT"/*.jsonl
last_base=
base() { last_base=$(fio_run base randrw 4k "$RUN_S"); log "  untraced    $last_base"; }

# The control: what two neighbouring untraced runs say of a third. What differs from 100% is the machine's own noise.
measure_none() {
	local r iops n
	r=$(fio_run none randrw 4k "$RUN_S")
	read -r iops n <<<"$r"
	jq -nc --argjson iops "$iops" --argjson n "$n" '{iops:$iops, requests:$n, bytes:0, lost_events:0}'
	log "  control     $r"
}
measure_iotraced() {
	daemon_start "$mnt/state" 16MiB
	local c0 c1 r iops n lost
	c0=$(cpu_s "$daemon")
	r=$(fio_run iotraced randrw 4k "$RUN_S")
	c1=$(cpu_s "$daemon")
	daemon_stop
	read -r iops n <<<"$r"
	"$B/iotracectl" --json verify "$mnt/state" >"$mnt/verify.json" && lost=0 || lost=$?
	# Every request of the machine is recorded, so bytes are held against records, not against fio's count.
	jq -c --argjson iops "$iops" --argjson n "$n" --argjson bytes "$(bytes_of "$mnt"/state/*.iot)" \
		--argjson verify "$lost" --argjson cpu "$(awk "BEGIN{print $c1-$c0}")" \
		'.whole | {iops: $iops, requests: $n, records, bytes: $bytes, bytes_per_request: ($bytes / .records),
		lost_events: (.lost + .unattributed + .missed), verify: $verify, daemon_cpu_s: $cpu}' "$mnt/verify.json"
	log "  iotraced    $r, verify exit $lost"
}
measure_perf() {
	perf record -q -o "$mnt/perf.data" -e block:block_rq_issue -e block:block_rq_complete -a -m 2048 >/dev/null 2>"$mnt/perf.err" &
	local p=$! r iops n
	sleep 0.7
	r=$(fio_run perf randrw 4k "$RUN_S")
	kill -INT $p; wait $p || true
	read -r iops n <<<"$r"
	lz4 -q -f "$mnt/perf.data" "$mnt/perf.lz4"
	local lost
	lost=$(perf report -i "$mnt/perf.data" --stats 2>/dev/null | awk '/LOST_SAMPLES events|LOST events/ {n += $3} END {print n + 0}')
	jq -nc --argjson iops "$iops" --argjson n "$n" --argjson raw "$(bytes_of "$mnt/perf.data")" --argjson bytes "$(bytes_of "$mnt/perf.lz4")" \
		--argjson lost "${lost:-0}" '{iops:$iops, requests:$n, raw_bytes:$raw, bytes:$bytes, lost_events:$lost}'
	rm -f "$mnt"/perf.data "$mnt"/perf.lz4
	log "  perf        $r"
}
measure_bpftrace() {
	cat >"$mnt/pair.bt" <<-'BT'
	tracepoint:block:block_rq_issue { @start[args->dev, args->sector] = nsecs; }
	tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
		printf("%llu %s %d %llu %d %llu\n", nsecs, args->rwbs, args->dev, args->sector, args->nr_sector, nsecs - @start[args->dev, args->sector]);
		delete(@start[args->dev, args->sector]);
	}
	END { clear(@start); }
	BT
	bpftrace "$mnt/pair.bt" >"$mnt/bt.out" 2>"$mnt/bt.err" &
	local p=$! r iops n lost
	for _ in $(seq 60); do grep -q Attaching "$mnt/bt.out" && break; sleep 0.1; done
	sleep 0.5
	r=$(fio_run bpftrace randrw 4k "$RUN_S")
	kill -INT $p; wait $p || true
	read -r iops n <<<"$r"
	lz4 -q -f "$mnt/bt.out" "$mnt/bt.lz4"
	lost=$(awk '/^Lost/ {n += $2} END {print n + 0}' "$mnt/bt.out" "$mnt/bt.err")
	jq -nc --argjson iops "$iops" --argjson n "$n" --argjson raw "$(bytes_of "$mnt/bt.out")" --argjson bytes "$(bytes_of "$mnt/bt.lz4")" \
		--argjson lines "$(grep -c '^[0-9]' "$mnt/bt.out" || true)" --argjson lost "$lost" \
		'{iops:$iops, requests:$n, records:$lines, raw_bytes:$raw, bytes:$bytes, lost_events:$lost}'
	rm -f "$mnt"/bt.out "$mnt"/bt.lz4
	log "  bpftrace    $r"
}

log "bench: $(uname -r), $(nproc) CPUs, loop device on tmpfs, $ROUNDS rounds of ${RUN_S}s runs"
fio_run warmup randrw 4k 2 >/dev/null
for i in $(seq "$ROUNDS"); do
	log "round $i of $ROUNDS"
	base; before=$last_base
	for tracer in none iotraced perf bpftrace; do
		"measure_$tracer" >"$mnt/one.json"
		base; after=$last_base
		jq -c --argjson b "${before%% *}" --argjson a "${after%% *}" \
			'. + {base_iops: (($a + $b) / 2), kept: (.iops / (($a + $b) / 2)), bytes_per_request: (.bytes_per_request // (.bytes / .requests))}' \
			"$mnt/one.json" >>"$OUT/$tracer.jsonl"
		before=$after
	done
done

log "sequential 64 KiB writes"
daemon_start "$mnt/state" 16MiB
seq_r=$(fio_run seq write 64k "$RUN_S")
daemon_stop
seq_rec=$("$B/iotracectl" --json verify "$mnt/state" | jq .whole.records) || true # a verdict below complete is no error here
seq_bytes=$(bytes_of "$mnt"/state/*.iot)

log "cost per program run (kernel's bpf statistics)"
"$B/tests/tools/bpf-stats" 1000 & stats=$!
daemon_start "$mnt/state" 16MiB
fio_run stats randrw 4k "$RUN_S" >"$mnt/stats.fio"
rss=$(rss_kib "$daemon")
"$B/iotracectl" --socket "$mnt/sock" --json probes | jq -s . >"$OUT/probes.json"
daemon_stop
kill $stats 2>/dev/null || true; wait $stats 2>/dev/null || true

log "storm: a ring of 64 KiB, far too small"
daemon_start "$mnt/state" 64KiB
storm_r=$(fio_run storm randrw 4k "$RUN_S")
daemon_stop
"$B/iotracectl" --json verify "$mnt/state" >"$OUT/storm-verify.json" && storm_exit=0 || storm_exit=$?

log "idle: 20 s without I/O on the recorded device set"
daemon_start "$mnt/state" 16MiB
sleep 2
c0=$(cpu_s "$daemon"); sleep 20; c1=$(cpu_s "$daemon")
idle_pct=$(awk "BEGIN{printf \"%.3f\", ($c1-$c0)/20*100}")
"$B/iotracectl" --socket "$mnt/sock" --json status >"$OUT/status.json"
daemon_stop

log "user space: drain, decode, encode, LZ4, write"
"$B/tests/bench/bench-drain" "$mnt" >"$OUT/drain.json"
"$B/tests/bench/bench-codec" >"$OUT/codec.json"

for t in none iotraced perf bpftrace; do
	jq -sc --arg t "$t" 'def med: sort | if length % 2 == 1 then .[length/2|floor] else (.[length/2-1] + .[length/2]) / 2 end;
		{($t): {rounds: length, base_iops: (map(.base_iops)|med), iops: (map(.iops)|med), kept: (map(.kept)|med),
		kept_min: (map(.kept)|min), kept_max: (map(.kept)|max), bytes_per_request: (map(.bytes_per_request)|med),
		lost_events: (map(.lost_events // 0)|add), requests: (map(.requests)|add), records: (map(.records // null)|add),
		verify_exits: (map(.verify // empty)|unique), daemon_cpu_us_per_request: (map(if .daemon_cpu_s then .daemon_cpu_s * 1e6 / .requests else empty end) | if length > 0 then med else null end)}}' \
		"$OUT/$t.jsonl"
done | jq -s 'add' >"$mnt/tracers.json"

jq -n --slurpfile t "$mnt/tracers.json" --slurpfile d "$OUT/drain.json" --slurpfile c "$OUT/codec.json" \
	--slurpfile p "$OUT/probes.json" --slurpfile s "$OUT/storm-verify.json" --slurpfile st "$OUT/status.json" \
	--arg kernel "$(uname -r)" --argjson cpus "$(nproc)" --argjson seqrec "$seq_rec" --argjson seqbytes "$seq_bytes" \
	--argjson idle "$idle_pct" --argjson rss "$rss" --argjson stormexit "$storm_exit" \
	--arg stormfio "$storm_r" --arg seqfio "$seq_r" \
	'{kernel: $kernel, cpus: $cpus, tracers: $t[0],
	  program_ns_per_request: ($p[0] | (map(.run_time_ns // 0 | tonumber) | add) / (map(select(.name == "block_rq_complete") | .runs | tonumber)[0])),
	  kernel_memory: $st[0].streams[0].kernel_memory, sequential: {fio: $seqfio, records: $seqrec, bytes: $seqbytes,
	  bytes_per_request: ($seqbytes / $seqrec)},
	  programs: $p[0], storm: {ring: "64 KiB", fio: $stormfio, verify_exit: $stormexit, records: $s[0].whole.records,
	  lost: ($s[0].whole.lost + $s[0].whole.unattributed), verify: $s[0].whole}, idle_cpu_percent: $idle,
	  resident_kib: $rss, status: $st[0], drain: $d[0], codec: $c[0]}' >"$OUT/bench.json"

tests/bench/table.sh "$OUT/bench.json"
