#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The recipe for DuckDB (packaging/duckdb): an archive's segments become files, once each; what is damaged is said and left
# out; and, where a `duckdb` is on the PATH (Debian 12 has none), sums over the views equal `iotracectl report`. No root.
#
# timeout: 120
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
recipe=$here/../../packaging/duckdb
ctl_setup duckdb make-segment
# shellcheck disable=SC2154 # ctl_setup
{
	mkdir bin archive
	ln -s "$ctl" bin/iotracectl
	make=$tools/make-segment
}
export PATH=$PWD/bin:$PATH
"$make" state segments=3 requests=2000 lost=21 >/dev/null || bail duckdb "cannot make segments"
"$ctl" archive --once --state note archive state >/dev/null || bail duckdb "cannot make an archive"

assert_eq "each segment becomes a file" "3 segments made, 3 in all" "$("$recipe/load.sh" archive out 2>&1)"
assert_eq "in the archive's partitions" "$(cd archive && find . -name '*.iot' | sed 's/iot$/jsonl/' | sort)" \
	"$(cd out && find . -name '*.jsonl' | sort)"
assert_eq "with all that was recorded" "$("$ctl" --json cat state 2>/dev/null | sort | sha256sum)" \
	"$(find out -name '*.jsonl' -exec cat {} + | sort | sha256sum)"
assert_eq "and what each proves" "$("$ctl" --json segments archive 2>/dev/null | jq -c '[.[] | [.seq, .verdict]]')" \
	"$(jq -cs '[.[] | [.seq, .verdict]]' out/segments.json)"
assert_eq "again: nothing anew" "0 segments made, 3 in all" "$("$recipe/load.sh" archive out 2>&1)"
assert_eq "nothing is left over" "" "$(find out -name '.load*')"

damaged=$(find archive -name '*2.iot')
cp "$damaged" whole
printf 'XXXX' | dd of="$damaged" bs=1 seek=20000 conv=notrunc status=none
find out -name '*2.jsonl' -delete
"$recipe/load.sh" archive out >said 2>err
assert_eq "a damaged one is said, and left out" "1 0 segments made, 2 in all load: $damaged" \
	"$? $(cat said) $(grep -o "^load: [^:]*" err | sort -u)"
cp whole "$damaged"
assert_eq "and made when it is whole" "1 segments made, 3 in all" "$("$recipe/load.sh" archive out 2>&1)"
assert_eq "no archive: one clear error" "1 load: no segments of block I/O in nowhere" \
	"$("$recipe/load.sh" nowhere out2 2>err >/dev/null; echo "$? $(tail -n 1 err)")"

if command -v duckdb >/dev/null; then
	sql() { (cd out && duckdb -json -init "$recipe/requests.sql" -c "$1" 2>&1); }
	assert_eq "requests and bytes as in report" \
		"$("$ctl" --json report state 2>/dev/null | jq -cS '[.devices[] | .disk as $d | .ops[] | [$d, .op, .requests, .bytes_done]] | sort')" \
		"$(sql "SELECT disk, op, count(*) AS n, sum(bytes_done) AS b FROM requests GROUP BY ALL" |
			jq -cS '[.[] | [.disk, .op, (.n | tonumber), (.b | tonumber)]] | sort')"
	assert_eq "latencies as in report" \
		"$("$ctl" --json report state 2>/dev/null | jq -cS '[.devices[] | .disk as $d | .ops[] | select(.device_ns.n > 0) |
			[$d, .op, (.device_ns | .n, .min, .max | tonumber)]] | sort')" \
		"$(sql "SELECT disk, op, count(device_latency_ns) AS n, min(device_latency_ns) AS a, max(device_latency_ns) AS z
			FROM requests GROUP BY ALL HAVING n > 0" | jq -cS '[.[] | [.disk, .op, (.n, .a, .z | tonumber)]] | sort')"
	assert_eq "verdicts" "$("$ctl" --json segments state 2>/dev/null | jq -cS '[group_by(.verdict)[] | [.[0].verdict, length]]')" \
		"$(sql "SELECT verdict, count(*) AS n FROM segments GROUP BY ALL ORDER BY ALL" | jq -cS '[.[] | [.verdict, (.n | tonumber)]]')"
else
	note "no duckdb here: its views were not tried"
fi
tap_end
