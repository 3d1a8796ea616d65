#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make bench-read: how fast recorded requests are read, counted, printed and exported, and in how much memory.
#
# Model: sealed segments of make-segment (reads and writes of one disk, 500,000 requests each) in memory. The time is CPU
# time, user and system, of the fastest of ROUNDS runs: one core, since a reader has one thread. Memory is the most that was
# resident (tests/tools/peak-rss), for all segments and for one of them. No root.
#
#   ROUNDS=5 SEGMENTS=8   how long (default under a minute)
set -euo pipefail
cd "$(dirname "$0")/../.."

ROUNDS=${ROUNDS:-5}
SEGMENTS=${SEGMENTS:-8}
B=$(realpath "${B:-build}")
ctl=$B/iotracectl
dir=$(mktemp -d "${TMPDIR:-/dev/shm}/iotraced-read.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$B/tests/tools/make-segment" "$dir/all" segments="$SEGMENTS" requests=500000 plain >/dev/null
mkdir "$dir/one"
cp "$dir"/all/*-00000001.iot "$dir/one"
n=$((SEGMENTS * 500000))

# cpu COMMAND...	CPU seconds of the fastest run
cpu() {
	local TIMEFORMAT='%U %S' i
	for ((i = 0; i < ROUNDS; i++)); do
		{ time "$@" >/dev/null 2>&1; } 2>&1
	done | awk '{ s = $1 + $2; if (!best || s < best) best = s } END { print best }'
}
# rss COMMAND...	MiB
rss() {
	"$B/tests/tools/peak-rss" "$dir/kib" "$@" >/dev/null 2>&1
	awk '{ printf "%.1f", $1 / 1024 }' "$dir/kib"
}

printf '%s requests, one core, the fastest of %s runs\n\n' "$n" "$ROUNDS"
printf '%-34s %12s %10s %10s\n' what 'million/s' 'MiB, all' 'MiB, one'
while read -r words; do
	read -ra command <<<"$words"
	printf '%-34s %12s %10s %10s\n' "$words" \
		"$(awk -v n="$n" -v s="$(cpu "$ctl" "${command[@]}" "$dir/all")" 'BEGIN { printf "%.2f", n / s / 1e6 }')" \
		"$(rss "$ctl" "${command[@]}" "$dir/all")" "$(rss "$ctl" "${command[@]}" "$dir/one")"
done <<'END'
verify
report --json
report --json --op flush
cat --json
export --format=csv
export --format=jsonl
export --format=clickhouse
export --format=openmetrics
export --format=perfetto
export --format=fio
export --format=oracleGeneral
END
