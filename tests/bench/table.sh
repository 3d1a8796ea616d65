#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Draws the table of `make bench` from its JSON: table.sh build/bench/bench.json
set -euo pipefail
json=${1:?usage: table.sh BENCH.json}

jq -r '
def pct: (. * 1000 | round) / 10 | tostring + "%";
def r1: (. * 10 | round) / 10;
def r2: (. * 100 | round) / 100;
def tracer($name; $t): [$name, ($t.iops | round), ($t.kept | pct), ($t.kept_min | pct) + " .. " + ($t.kept_max | pct),
	($t.bytes_per_request | r1),
	(if $t.records and $name == "iotraced" then ($t.requests - $t.records | if . < 0 then 0 else . end) else $t.lost_events end)];
"Kernel \(.kernel), \(.cpus) CPUs. Loop device on memory, fio 4 KiB random read/write, depth 16, one job per CPU.",
"\(.tracers.iotraced.rounds) rounds, each tracer between two untraced runs; medians.",
"",
([["tracer", "IOPS", "IOPS kept", "least .. most", "bytes/request", "lost"],
  ["none (control)", (.tracers.none.iops | round), (.tracers.none.kept | pct), (.tracers.none.kept_min | pct) + " .. " + (.tracers.none.kept_max | pct), "", ""],
  tracer("iotraced"; .tracers.iotraced), tracer("perf record, lz4"; .tracers.perf), tracer("bpftrace, lz4"; .tracers.bpftrace)]
 | .[] | map(tostring) | @tsv),
"",
([["user space, one core", "random 4 KiB", "sequential"],
  ["drain + encode + LZ4 + write, million requests/s", .drain.random.drain_million_per_s, .drain.sequential.drain_million_per_s],
  ["the same, ns per request", .drain.random.drain_ns, .drain.sequential.drain_ns],
  ["LZ4 of the raw records, ns", .drain.random.lz4_ns, .drain.sequential.lz4_ns],
  ["memcpy of the raw records, ns", .drain.random.memcpy_ns, .drain.sequential.memcpy_ns],
  ["times as fast as LZ4 alone", .drain.random.times_lz4, .drain.sequential.times_lz4]]
 | .[] | map(tostring) | @tsv),
"",
([["whole", "value"],
  ["bytes/request, sequential 64 KiB writes, whole files", (.sequential.bytes_per_request | r2)],
  ["kernel programs, ns per request (run statistics on)", (.program_ns_per_request | r1)],
  ["daemon CPU while tracing, us per request", (.tracers.iotraced.daemon_cpu_us_per_request | r2)],
  ["verify exit codes of all iotraced runs", (.tracers.iotraced.verify_exits | tostring)],
  ["storm over a ring of \(.storm.ring): records / lost / verify exit", "\(.storm.records) / \(.storm.lost) / \(.storm.verify_exit)"],
  ["idle, percent of a CPU", .idle_cpu_percent],
  ["resident memory beside the ring, after load, MiB", (.resident_kib / 1024 | r1)],
  ["kernel memory, maps / rings, MiB", "\(.kernel_memory.maps_bytes / 1048576 | r1) / \(.kernel_memory.rings_bytes / 1048576 | r1)"]]
 | .[] | map(tostring) | @tsv)
' "$json" | awk -F'\t' '
	# Columns are aligned within each run of lines that have tabs.
	function flush_rows(  i, j, line) {
		for (i = 1; i <= n; i++) {
			line = ""
			for (j = 1; j <= cols; j++)
				line = line (j == 1 ? sprintf("%-" w[j] "s", cell[i, j]) : sprintf("  %" w[j] "s", cell[i, j]))
			sub(/ +$/, "", line)
			print line
		}
		n = cols = 0
		delete w
	}
	NF > 1 {
		n++
		for (j = 1; j <= NF; j++) {
			cell[n, j] = $j
			if (length($j) > w[j]) w[j] = length($j)
		}
		if (NF > cols) cols = NF
		next
	}
	{ flush_rows(); print }
	END { flush_rows() }'
