#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The host's half of test-programs.sh: the record against what was sent.
#
# usage: check-programs.sh RESULTS-DIRECTORY

set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
ctl=${IOTRACECTL:-${B:-build}/iotracectl}
results=$1
# shellcheck source=/dev/null
. "$results/facts" || bail programs "the guest left nothing"
# shellcheck disable=SC2154 # facts
note "namespace $netns_r, functions ${long:-no}"
cd "$results" || bail programs "no results"
case $ctl in /*) ;; *) ctl=$OLDPWD/$ctl ;; esac

"$ctl" --json cat state >cat.jsonl 2>/dev/null
"$ctl" --json replay state >replay.json 2>/dev/null
jq -c '.captures[0] | del(.probes)' replay.json | sed 's/^/# /'

# decided PROBE	"PORT DECISION N" of its records, but for the flood's
decided() {
	jq -r --arg probe "$1" 'select(.probe | startswith($probe + "#")) | select(.dport != 7105) |
		"\(.dport) \(.reason)"' cat.jsonl | sort | uniq -c | awk '{ printf "%s%s %s %s", n++ ? ", " : "", $2, $3, $1 }'
}
assert_eq "decisions of the first TC program" \
	"7100 ok 3, 7101 shot 3, 7102 redirect 3, 7103 ok 3, 7104 ok 3" "$(decided tc:decide_by_port_the_first)"
assert_eq "decisions of the second one" "7100 ok 3, 7101 shot 3" "$(decided tc:decide_by_port_the_second)"
assert_eq "decisions of the XDP program" \
	"7100 pass 6, 7101 pass 6, 7102 pass 3, 7103 pass 3, 7104 pass 3, 7111 drop 3, 7112 tx 3" "$(decided xdp:frames_by_port)"
assert_eq "a program's id is in its probe and in its records" "" \
	"$(jq -r 'select(.probe | test("^(tc|xdp):")) | select((.probe | split("#")[1]) != .where) | .probe' cat.jsonl | head -n 1)"
# What was dropped does not go on, what was sent elsewhere does, and a clone is one more.
at_rb() { jq -r --argjson ns "$netns_r" --argjson port "$1" \
	'select(.probe == "net_dev_queue" and .netns == $ns and .ifindex == 103 and .dport == $port) | .packet' cat.jsonl | wc -l; }
assert_eq "sent on: passed, dropped, redirected, cloned, rewritten" "6 0 3 6 0 3" \
	"$(at_rb 7100) $(at_rb 7101) $(at_rb 7102) $(at_rb 7103) $(at_rb 7104) $(at_rb 7199)"
assert_eq "a frame is not a packet: flag" "" \
	"$(jq -r 'select((.probe | startswith("xdp:")) != (.flags | index("frame") != null)) | .probe' cat.jsonl | head -n 1)"
if [ -n "$long" ]; then
	assert_eq "clones have a parent that the TC program saw" 3 "$(jq -s --argjson port 7103 \
		'(map(select(.dport == $port and (.probe | startswith("tc:"))) | .packet)) as $seen |
		 map(select(.dport == $port and (.flags | index("clone")) and .parent != null and ([.parent] | inside($seen))) | .packet) |
		 unique | length' cat.jsonl)"
fi

# ---- the flood -----------------------------------------------------------------------------------------

sum() { jq --arg p "$1" "[.captures[0].probes[] | select(.probe | startswith(\$p)) | .$2] | add" replay.json; }
lost=$(sum xdp: filed)
assert_num "flood: frames lost" "$lost" -gt 0
assert_num "flood: packets lost at the TC program" "$(sum tc:decide_by_port_the_second filed)" -gt 0
# 27 beside the flood; each run counts its entry and its return.
assert_eq "flood: frames, recorded or lost" 427 $(($(sum xdp: written) + lost + $(sum xdp: unattributed)))
assert_eq "flood: runs of the XDP program" 854 "$(sum xdp: seen)"
assert_eq "flood: frames in replay" "427 $lost" "$(jq -r '.captures[0] | "\(.frames) \(.frames_lost)"' replay.json)"
assert_eq "flood: packets at the TC program" 406 \
	$(($(sum tc:decide_by_port_the_second written) + $(sum tc:decide_by_port_the_second filed) +
		$(sum tc:decide_by_port_the_second unattributed)))
assert_eq "no run missed" 0 $(($(sum tc: missed) + $(sum xdp: missed)))
assert_eq "every book balances" "" "$("$ctl" verify state 2>&1 | grep -i balance)"
"$ctl" --json explain --flow 'udp :7105' state >flood.json 2>/dev/null
# From where the TC program's device received it: all hops, or as many as are filed are not there.
assert_eq "flood: no packet is ruled complete that has not its hops" "" "$(jq -r '
	[.packets[] | select(.hops | length > 0) | select(.hops[0].flags | index("frame") | not) |
		select(.verdict | startswith("complete")) | select((.hops | map(.hop) | max) != (.hops | length)) | .packet][0] // ""' flood.json)"
assert_eq "flood: no lost one that has more than it was observed" "" "$(jq -r '
	[.packets[] | select(.verdict == "lost") | select((.hops | map(.hop) | max) > (.hops | length) + .lost) | .packet][0] // ""' flood.json)"
assert_eq "flood: no packet in doubt but for a reason" "" "$(jq -r '
	[.packets[] | select(.verdict == "unknown" and (.reasons | length) == 0) | .packet][0] // ""' flood.json)"
jq -c '[.packets[].verdict] | group_by(.) | map({(.[0]): length}) | add' flood.json | sed 's/^/# flood: /'

# ---- verdicts and absences -----------------------------------------------------------------------------

# verdicts PORT FILTER	of packets, without frames
verdicts() {
	"$ctl" --json explain --flow "udp :$1" state 2>/dev/null | jq -r '
		.packets[] | select([.hops[].flags[]] | index("frame") | not) | select('"$2"') | .verdict' | sort | uniq -c |
		awk '{ printf "%s%s %s", n++ ? ", " : "", $2, $1 }'
}
note "7101: $(verdicts 7101 true); 7104: $(verdicts 7104 true)"
# By tracepoints a packet may be older than its first record, and then what was in doubt before matters.
assert_eq "well after the replacement: nothing in doubt" "" "$(verdicts 7101 '.truncated_start | not' | grep -o unknown)"
assert_eq "before it: nothing in doubt" "" "$(verdicts 7104 true | grep -o unknown)"
# ask PROBE FLOW [OPTION...]
ask() {
	local probe=$1 flow=$2
	shift 2
	"$ctl" --json explain --probe "$probe" --flow "$flow" "$@" state 2>/dev/null | jq -r .answer
}
name() { jq -r --arg p "$1" '.captures[0].probes[] | select(.probe | startswith($p)) | .probe' replay.json; }
first=$(name tc:decide_by_port_the_first) second=$(name tc:decide_by_port_the_second) xdp=$(name xdp:)
assert_eq "a flow that was there" "present present" "$(ask "$first" 'udp :7102') $(ask "$xdp" 'udp :7102')"
assert_eq "as it came, not as it was left" "present present" "$(ask "$first" 'udp :7104') $(ask "$xdp" 'udp :7104')"
# Between the load of the second one and its observation nothing can be proved, before and after that it can.
loaded=$(jq -rs '[.[] | select(.probe | startswith("tc:decide_by_port_the_first"))] | last | .realtime_ns' cat.jsonl)
until=$((loaded / 1000000000 + 2))
capture=$(jq -r '.captures[0].first_ns' replay.json)
since=$((capture / 1000000000 + 1))
assert_eq "one that was not there, before" "proved proved" \
	"$(ask "$first" 'udp :7999' --since @$since --until @$until) $(ask "$second" 'udp :7999' --since @$since --until @$until)"
assert_eq "one that was not there, over the replacement" unknown "$(ask "$second" 'udp :7999' --since @$since)"
assert_eq "one that was not there, at the program that has gone" proved "$(ask "$first" 'udp :7999' --since @$since --until @$until)"
assert_eq "a program that nobody knows" null "$(ask 'tc:none#1' 'udp :7999' | grep . || echo null)"
tap_end
