#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The blktrace export against a blktrace recorded at the same time: the same issues and completions of requests with
# data, and the same latencies between them.
#
# usage: check-blktrace.sh RESULTS-DIRECTORY

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
ctl=${IOTRACECTL:-${B:-build}/iotracectl}
session=$1/blktrace
"$here/check-block.sh" "$1" || tap_n_not_ok=1 # its lines are its own; only the exit status is ours

disk=$(cat "$session/disk")
assert_status "export" 0 "$ctl" export --format=blktrace --output "$session/ours" "$session/state"
base=$(find "$session/ours" -name "*$disk*.blktrace.*" | sed 's/.*\///; s/\.blktrace\.[0-9]*$//' | sort -u | head -n 1)
[ -n "$base" ] || bail "export" "no files for $disk"

# "ACTION LETTERS SECTOR SECTORS SECONDS" of the requests with data; blkparse makes the letters from the action's bits.
events() {
	blkparse -q -D "$1" -i "$2" -f '%a %d %S %n %T.%9t\n' 2>"$3.log" |
		awk '($1 == "D" || $1 == "C") && $4 > 0' >"$3"
}
events "$session/theirs" bt "$session/theirs.events"
events "$session/ours" "$base" "$session/ours.events"
assert_eq "blkparse reads the export without complaint" "" "$(cat "$session/ours.events.log")"
# Seen on 7.2: its blktrace hands a version 1 reader no FUA write at all (the kernel's own trace events show them, and
# test-block-nvme.sh holds our record of them against those), so there is nothing to compare them with.
release=$(sed -n "s/^release='\(.*\)'/\1/p" "$session"/phase.*/meta)
fua=true
if [ "${release%%.*}" -ge 7 ] && ! grep -q '^. WF' "$session/theirs.events"; then
	assert_eq "blktrace: FUA writes that this kernel's blktrace does not show" 5 "$(grep -c '^D WF' "$session/ours.events")"
	sed -i '/^. WF/d' "$session/ours.events"
	fua=false
fi
assert_num "blktrace: something was recorded" "$(wc -l <"$session/theirs.events")" -gt 700

for action in D C; do
	for who in theirs ours; do
		awk -v a=$action '$1 == a { print $2, $3, $4 }' "$session/$who.events" | sort >"$session/$who.$action"
	done
	assert_eq "blktrace: as many $action" "$(wc -l <"$session/theirs.$action")" "$(wc -l <"$session/ours.$action")"
	assert_eq "blktrace: the same $action" "" \
		"$(diff "$session/theirs.$action" "$session/ours.$action" | grep '^[<>]' | head -n 6 | tr '\n' ';')"
done

# What blktrace recorded, imported: the same requests of each operation, with as many bytes and merges, by the same processes.
assert_status "import" 0 "$ctl" import --output "$session/imported" "$session/theirs"
"$ctl" verify "$session/imported" >"$session/imported.verify"
assert_eq "import: unknown" 11 $?
assert_grep "import: and by whom" 'imported from blktrace' "$session/imported.verify"
requests() {
	"$ctl" cat --json "$1" 2>/dev/null | jq -c --arg disk "$2" --argjson fua "$fua" 'select(.disk == $disk and ($fua or (.flags | index("fua") | not)))'
}
requests "$session/imported" bt >"$session/theirs.json"
requests "$session/state" "$disk" >"$session/ours.json"
# sums FILE	of each operation: requests, bytes, merges and requeues; then how many each process began
sums() {
	jq -sc 'group_by(.op)[] | [.[0].op, length] + (map([.bytes, .bytes_done, .merges, .requeues]) | transpose | map(add)),
		(map(select(.submitter == "start") | .comm) | group_by(.) | map({(.[0]): length}) | add)' "$1"
}
assert_eq "import: $(wc -l <"$session/theirs.json") requests, as recorded here" "$(sums "$session/ours.json")" "$(sums "$session/theirs.json")"

# "KEY MICROSECONDS" of the n-th request of each place
latencies() {
	awk '
		{ k = substr($2, 1, 1) "," $3 "," $4; split($5, t, "."); us = t[1] * 1000000 + t[2] / 1000 }
		$1 == "D" { issued[k, ++d[k]] = us }
		$1 == "C" { c[k]++; print k "," c[k], us - issued[k, c[k]] }' "$1" | sort
}
latencies "$session/theirs.events" >"$session/theirs.latency"
latencies "$session/ours.events" >"$session/ours.latency"
# At N percent of the numbers on standard input, as an integer
percentile() { sort -g | awk -v p="$1" '{ v[NR] = $1 } END { printf "%d\n", v[int((NR - 1) * p / 100) + 1] }'; }
apart=$(join "$session/theirs.latency" "$session/ours.latency" | awk '{ x = $2 - $3; print x < 0 ? -x : x }')
note "issue to completion: median $(cut -d' ' -f2 "$session/theirs.latency" | percentile 50) us by blktrace," \
	"$(cut -d' ' -f2 "$session/ours.latency" | percentile 50) us by iotraced; apart" \
	"$(percentile 50 <<<"$apart") us in the median, $(percentile 95 <<<"$apart") us at 95 of 100"
assert_eq "blktrace: every latency has its match" "$(wc -l <"$session/theirs.latency")" "$(wc -l <<<"$apart")"
# Both hooks run one after the other on an emulated processor that the host may take away in between.
assert_num "blktrace: latencies agree in the median" "$(percentile 50 <<<"$apart")" -le 100
assert_num "blktrace: latencies agree for 90 of 100" "$(percentile 90 <<<"$apart")" -le 2000

tap_end
