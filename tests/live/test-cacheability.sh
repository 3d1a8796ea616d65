#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# `report --cacheability` from end to end: the curve against a list that awk keeps, with and without swap against each
# other, bad usage. The curves themselves are held against simulated caches in tests/unit/test-mrc.c. No root.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
ctl_setup cacheability make-segment
make=$tools/make-segment
"$make" mixed segments=2 requests=1500 lost=3 >/dev/null || bail cacheability "cannot make segments"

"$ctl" --json report --cacheability mixed >report.json
assert_eq "exit code" 0 $?
"$ctl" --json report --cacheability --swap without mixed >without.json
"$ctl" cat --json mixed 2>/dev/null >cat.jsonl

# misses FILTER	of reads and writes at each size of the curve, by a list of the blocks last used first
misses() {
	jq -rs "map(select($1) | select((.op == \"read\" or .op == \"write\") and .bytes > 0)
		| .at = (.start_ns // .insert_ns // .issue_ns | tonumber)) | sort_by(.at)
		| .[] | \"\(.op) \(.disk) \(.sector * 512 / 4096 | floor) \((.sector * 512 + .bytes - 1) / 4096 | floor)\"" cat.jsonl |
		awk -v sizes="$2" '
			{
				for (b = $3; b <= $4; b++) {
					key = $2 " " b
					for (at = 1; at <= n && list[at] != key; at++) ;
					total[$1]++
					if (at > n) { n++; cold[$1]++ } else far[$1, at - 1]++
					for (i = at; i > 1; i--) list[i] = list[i - 1]
					list[1] = key
				}
			}
			END {
				k = split(sizes, size)
				for (i = 1; i <= k; i++) {
					r = cold["read"] + 0; w = cold["write"] + 0
					for (d = size[i]; d <= n; d++) { r += far["read", d]; w += far["write", d] }
					print size[i] * 4096, r, w
				}
			}'
}
sizes=$(jq -r '[.cacheability.all.curve[].cache_bytes / 4096] | .[:12] + [.[20, 30, 40]] + .[-2:] | map(select(.)) | join(" ")' report.json)
jq -r --arg s "$sizes" '($s / " " | map(tonumber * 4096)) as $s | .cacheability.all.curve[]
	| select(.cache_bytes as $b | $s | index($b)) | "\(.cache_bytes) \(.read_misses) \(.write_misses)"' report.json >curve
assert_eq "the curve is that of a list" "" "$(misses true "$sizes" | cmp - curve 2>&1)"
assert_eq "there is swap in the record" true "$(jq '.cacheability.without_swap.reads < .cacheability.all.reads' report.json)"
assert_eq "without swap: as if there were none" "" \
	"$(jq -S .cacheability.without_swap report.json >a && jq -S .cacheability.all without.json >b && cmp a b 2>&1)"
assert_eq "a curve falls" true "$(jq '[.cacheability.all.curve[].read_misses] | . == (sort | reverse)' report.json)"
assert_eq "and begins with all" true "$(jq '.cacheability.all | .curve[0].read_misses == .reads' report.json)"
assert_eq "requests: all are counted" 3000 "$(jq '.cacheability | .requests + .left_out' report.json)"
assert_eq "exact" "true 1 0" "$(jq -r '.cacheability.all | "\(.exact) \(.rate) \(.error)"' report.json)"

"$ctl" --no-pager report --cacheability mixed >text
assert_eq "text: exit code" 0 $?
assert_grep "text: the verdict comes first" '^Record +lost' text
assert_grep "text: with and without swap" 'READ W/O SWAP' text
assert_grep "text: what is in no curve" '3 lost requests' text
"$ctl" --no-pager report --cacheability --swap without mixed >text
assert_eq "text: one curve where there is no swap" 0 "$(grep -c 'W/O' text)"
"$ctl" --no-pager report --cacheability --op flush mixed >text
assert_eq "text: nothing read or written" "0 1" "$? $(grep -c 'Nothing was read' text)"
assert_status "with --by" 2 "$ctl" report --cacheability --by file mixed
assert_status "of another verb" 2 "$ctl" cat --cacheability mixed
TMPDIR=$dir/none assert_status "nowhere to sort" 1 "$ctl" report --cacheability mixed
tap_end
