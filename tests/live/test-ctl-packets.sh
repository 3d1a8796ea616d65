#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
#
# iotracectl on segments of the packet stream with known contents (tests/tools/make-packets.c): what is said
# of a packet, of a flow at a probe, and of the whole, when one thing is missing. Each capture has 195 packets:
# 50 UDP packets a segment of five observations, ten TCP packets under merged ids, five that were dropped.
# No root, no daemon.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
ctl_setup ctl-packets make-packets make-segment
make=$tools/make-packets
man=$here/../../packaging/man/iotracectl.1

for kind in clean lost unattributed missed clones unidentified no-ledger absent-counter missing-neighbour torn sampled \
	after-end drops-lost empty folded unselected; do
	mkdir "$kind"
	"$make" "$kind" "$kind" || bail ctl-packets "cannot make $kind"
done
# One machine after a restart of the daemon and after a boot, another machine, and one that records no packets.
mkdir again reboot elsewhere silent clone
if ! "$make" again lost capture=3 later=3600 || ! "$make" reboot lost capture=4 boot=4 later=7200 ||
	! "$make" elsewhere clean capture=5 boot=5 machine=5 later=3600 ||
	! "$tools/make-segment" silent segments=1 requests=1 machine=7 >/dev/null ||
	! "$tools/make-segment" clone segments=1 requests=1 machine=1 host=clone >/dev/null; then
	bail ctl-packets "cannot make captures"
fi

# Its wall clock is set: to another time between two segments, and within one.
mkdir forward back within
if ! "$make" forward lost forward=500 || ! "$make" back clean back=500 || ! "$make" within clean within=500; then
	bail ctl-packets "cannot make captures"
fi

# verdicts DIR	"complete=165 merged=30": of all packets, those that are not 0
verdicts() {
	"$ctl" --json replay "$1" 2>/dev/null |
		jq -r '.captures[0].verdicts | to_entries | map(select(.value > 0) | "\(.key)=\(.value)") | join(" ")'
}

# one DIR ID	"VERDICT EXIT": of one packet
one() {
	local out code
	out=$("$ctl" --json explain "$2" "$1" 2>/dev/null)
	code=$?
	echo "$(jq -r --arg id "$2" '.packets[] | select(.packet == $id) | .verdict' <<<"$out") $code"
}

# ask DIR PROBE [OPTION...]	"ANSWER EXIT": is a flow absent at a probe?
ask() {
	local dir=$1 probe=$2 out code
	shift 2
	out=$("$ctl" --json explain --probe "$probe" "$@" "$dir" 2>/dev/null)
	code=$?
	echo "$(jq -r .answer <<<"$out") $code"
}

# ---- the record ---------------------------------------------------------------------------------------

"$ctl" cat --json clean >cat.jsonl 2>cat.err
assert_eq "cat: exit code" 0 $?
assert_eq "cat: silent on stderr when complete" "" "$(cat cat.err)"
assert_eq "cat: every observation" 930 "$(jq -c . cat.jsonl | wc -l)"
assert_eq "cat: in order of time" 930 "$(jq -r .ts_ns cat.jsonl | sort -nc && wc -l <cat.jsonl)"
assert_eq "cat: the fields of iotracectl(1)" \
	"$(sed -n '/^\.Sh FIELDS OF AN OBSERVATION$/,/^\.El$/p' "$man" | sed -n 's/^\.It Li //p' | tr -s ' ,' '\n')" \
	"$(head -n 1 cat.jsonl | jq -r 'keys_unsorted[]')"
assert_eq "cat: names" "net_dev_queue veth0 udp 10.0.0.1 10.0.0.2 4000 53 sender" \
	"$(head -n 1 cat.jsonl | jq -r '[.probe, .iface, .proto, .src, .dst, .sport, .dport, .comm] | map(tostring) | join(" ")')"
assert_eq "cat: drops" "NETFILTER_DROP nf_hook_slow+0x9a end" \
	"$(jq -r 'select(.packet == "1500" and .hop == 4) | "\(.reason) \(.location) \(.flags[-1])"' cat.jsonl)"
assert_eq "cat: text" 930 "$("$ctl" --no-pager cat clean | wc -l)"
assert_eq "cat: --probe" 15 "$("$ctl" cat --json --probe kfree_skb clean | wc -l)"
assert_eq "cat: --flow" 120 "$("$ctl" cat --json --flow tcp clean | wc -l)"
assert_eq "cat: --flow, backwards" 0 "$("$ctl" cat --json --flow '10.0.0.2 > 10.0.0.1' clean | wc -l)"
assert_eq "cat: --flow, both ways" 930 "$("$ctl" cat --json --flow '10.0.0.2 <> 10.0.0.1' clean | wc -l)"
assert_eq "cat: --id" 5 "$("$ctl" cat --json --id 2003 clean | wc -l)"
assert_eq "cat: --dev is an interface" 585 "$("$ctl" cat --json --dev veth0 clean | wc -l)"
assert_eq "cat: packets have no operation" 0 "$("$ctl" cat --json --op read clean | wc -l)"
assert_eq "segments" "packet 310 complete" \
	"$("$ctl" --json segments clean | jq -r '.[0] | "\(.stream) \(.records) \(.verdict)"')"
assert_status "verify: complete" 0 "$ctl" verify clean
assert_status "verify: lost" 10 "$ctl" verify lost
assert_status "verify: unknown" 11 "$ctl" verify unattributed
assert_status "verify: torn" 20 "$ctl" verify torn
assert_eq "verify: says observations" 1 "$("$ctl" verify clean | grep -c '^together: complete: 3 segments, 930 observations, none lost')"

# An empty segment of packets has no observations, rather than no requests.
"$ctl" export --format=jsonl --output=empty.jsonl empty
assert_eq "sidecar: of no observations" "0 0" "$(jq -r '"\(.requests) \(.observations)"' empty.jsonl.loss.json)"

# ---- replay ---------------------------------------------------------------------------------------------

# The end of no TCP packet is observed, so whatever is in doubt after its beginning is in doubt for it.
assert_eq "replay: clean" "complete=165 merged=30" "$(verdicts clean)"
assert_eq "replay: lost, and which lost entirely" "complete=162 merged=30 lost=2 lost-entirely=1" "$(verdicts lost)"
assert_eq "replay: a window stains the packets in it" "complete=160 merged=20 unknown=15" "$(verdicts unattributed)"
# A run that was missed may have been an earlier sight of the packets that began in the ten seconds after.
assert_eq "replay: so does a missed run" "complete=154 merged=20 unknown=21" "$(verdicts missed)"
assert_eq "replay: a clone is a packet" "complete=165 merged=30 lost=1" "$(verdicts clones)"
assert_eq "replay: its lineage is worse" "164 1" \
	"$("$ctl" --json replay clones 2>/dev/null | jq -r '.captures[0].lineage_verdicts | "\(.complete) \(.lost)"')"
assert_eq "replay: without a ledger nothing of that time is complete" "complete=110 merged=10 unknown=74" "$(verdicts no-ledger)"
assert_eq "replay: nor with an absent counter" "complete=110 merged=10 unknown=75" "$(verdicts absent-counter)"
assert_eq "replay: a segment is missing" "complete=110 merged=10 unknown=10" "$(verdicts missing-neighbour)"
assert_eq "replay: a torn tail" "complete=110 unknown=85" "$(verdicts torn)"
assert_eq "replay: an observation without an owner" "complete=164 merged=20 unknown=11" "$(verdicts unidentified)"
assert_eq "replay: sums of the probes" "930 7" \
	"$("$ctl" --json replay lost 2>/dev/null | jq -r '[.captures[0].probes[] | [.seen, .filed]] | transpose | map(map(. // 0) | add | tostring) | join(" ")')"
assert_grep "replay: text" 'complete +162' <("$ctl" --no-pager replay lost 2>/dev/null)
# What has no footer has no counters: no sum over it is exact, nor is what its ledger would have had.
assert_eq "replay: sums without a footer are not known" "true 1 0 unknown null" \
	"$("$ctl" --json replay torn 2>/dev/null | jq -r '.captures[0] as $c | [([$c.probes[] | .seen, .not_selected, .written, .filed,
		.unattributed, .missed] | all(. == null)), $c.unsealed, $c.observations_lost_at_least, .record.verdict,
		$c.observations_lost] | map(. // "null" | tostring) | join(" ")' | sed 's/ torn / unknown /')"
assert_eq "replay: text says at least" 11 \
	"$("$ctl" --no-pager replay torn 2>/dev/null | grep -cE '^  observations  at least [0-9]+, at least 0 filed|^  packets       at least|\(1 without a footer\)|^[a-z_]+ +[0-9]+\+\? +[0-9]+\+\? .* 0\+\? +attached')"
assert_eq "replay: a ledger that is not whole" "null 0 7" \
	"$("$ctl" --json replay no-ledger 2>/dev/null | jq -r '.captures[0] | "\(.observations_lost) \(.observations_lost_at_least) \([.probes[].filed // 0] | add)"')"
assert_eq "replay: a ledger that is whole" "7 7" \
	"$("$ctl" --json replay lost 2>/dev/null | jq -r '.captures[0] | "\(.observations_lost) \(.observations_lost_at_least)"')"

# ---- one packet -----------------------------------------------------------------------------------------

"$ctl" --json explain 2003 lost >explain.json
assert_eq "explain: lost" 10 $?
assert_eq "explain: which, and what remains" "lost 1 1,2,4,5" \
	"$(jq -r '.packets[0] | "\(.verdict) \(.lost) \([.hops[].hop] | map(tostring) | join(","))"' explain.json)"
assert_eq "explain: by which probe" "net_dev_xmit: 1 observations of this packet lost (reserve-failed)" \
	"$(jq -r '.packets[0].reasons[0]' explain.json)"
assert_eq "explain: absences elsewhere" "kfree_skb=proved tcp_retransmit_skb=not-observed ip_rcv=not-observed kfree_skbmem=proved" \
	"$(jq -r '.packets[0].not_seen | map("\(.probe)=\(.absence)") | join(" ")' explain.json)"
assert_eq "explain: lost entirely" "lost-entirely 10" "$("$ctl" --json explain 2004 lost >e.json; echo "$(jq -r '.packets[0].verdict' e.json) $(jq '.packets[0].lost * 2' e.json)")"
assert_eq "explain: complete" "complete 0" "$(one lost 2005)"
assert_status "explain: complete, exit code" 0 "$ctl" explain 2005 lost
assert_status "explain: unknown, exit code" 11 "$ctl" explain 2012 unattributed
assert_status "explain: outside the window" 0 "$ctl" explain 2016 unattributed
assert_status "explain: a packet that is not there" 11 "$ctl" explain 4711 clean
assert_status "explain: over a missing segment" 0 "$ctl" explain 3001 missing-neighbour
assert_eq "explain: with its clones" "2005=complete 2600=lost" \
	"$("$ctl" --json explain 2005 clones | jq -r '.packets | map("\(.packet)=\(.verdict)") | join(" ")')"
assert_grep "explain: a merged id says so" 'more than one packet' <("$ctl" --no-pager explain 1000001 clean)
assert_eq "explain: absence of a merged id is sound" "proved" \
	"$("$ctl" --json explain 1000001 clean | jq -r '.packets[0].not_seen[] | select(.probe == "kfree_skb") | .absence')"
# Their number is their order, and what has none comes behind; by time alone there would be none.
assert_eq "explain: whose, where several captures have the number" "09090909 on host,03030303 on host" \
	"$("$ctl" --no-pager explain 2005 lost again 2>/dev/null | sed -n 's/^Packet 2005 of capture \(.*\): complete$/\1/p' | sort -r | paste -sd,)"
assert_grep "explain: not said of a single one" '^Packet 2005: complete$' <("$ctl" --no-pager explain 2005 lost 2>/dev/null)
assert_eq "explain: order of the hops" "1 2 3 4 5 0,1 2 3 4 5 0" \
	"$("$ctl" --json explain --flow 'udp :53' --since '2023-11-14 22:48:24.5' --until '2023-11-14 22:48:26.5' after-end |
		jq -r '[.packets[] | [.hops[] | .hop // 0 | tostring] | join(" ")] | join(",")')"
assert_eq "explain --flow" "30 merged" \
	"$("$ctl" --json explain --flow 'tcp :443' clean | jq -r '"\(.packets | length) \([.packets[].verdict] | unique | join(","))"')"
assert_eq "explain --flow --since --until" 3 \
	"$("$ctl" --json explain --flow 'udp :53' --since '2023-11-14 22:31:40' --until '2023-11-14 22:31:42.5' clean | jq '.packets | length')"
assert_eq "explain --flow: those lost entirely too" 166 "$("$ctl" --json explain --flow udp lost | jq '[.packets[]] | length + 1')"

# ---- a flow at a probe ------------------------------------------------------------------------------------

assert_eq "ask: present" "present 12" "$(ask clean kfree_skb --flow 'udp 10.0.0.1 > :53')"
assert_eq "ask: proved" "proved 0" "$(ask clean kfree_skb --flow 'tcp')"
assert_eq "ask: proved, other direction" "proved 0" "$(ask clean kfree_skb --flow 'udp 10.0.0.2 > 10.0.0.1')"
assert_eq "ask: within a time" "proved 0" \
	"$(ask clean net_dev_queue --since '2023-11-14 22:33:00' --until '2023-11-14 22:34:00')"
assert_eq "ask: before the capture" "unknown 11" "$(ask clean kfree_skb --flow tcp --since '2023-11-14 22:00')"
assert_eq "ask: after the capture" "unknown 11" "$(ask clean kfree_skb --flow tcp --until '2023-11-15 01:00')"
assert_eq "ask: missed" "unknown 11" "$(ask missed netif_receive_skb --flow 'udp 10.0.0.9')"
assert_eq "ask: missed, before" "proved 0" "$(ask missed netif_receive_skb --flow 'udp 10.0.0.9' --until '2023-11-14 22:40')"
assert_eq "ask: missed at another probe" "proved 0" "$(ask missed net_dev_queue --flow 'udp 10.0.0.9')"
assert_eq "ask: a lost observation of another flow" "proved 0" "$(ask lost net_dev_xmit --flow 'tcp :80')"
assert_eq "ask: a lost observation of the flow" "present 12" \
	"$(ask lost net_dev_xmit --flow 'udp :53' --since '2023-11-14 22:48:22.9' --until '2023-11-14 22:48:23.9')"
assert_eq "ask: segment missing" "unknown 11" "$(ask missing-neighbour kfree_skb --flow tcp)"
assert_eq "ask: torn tail" "unknown 11" "$(ask torn kfree_skb --flow tcp)"
assert_eq "ask: torn tail, before" "proved 0" "$(ask torn kfree_skb --flow tcp --until '2023-11-14 22:40')"
assert_eq "ask: left out by the selection" "unknown 11" "$(ask sampled net_dev_queue --flow 'udp 10.0.0.9')"
assert_eq "ask: refused" "unknown 11" "$(ask clean ip_rcv --flow 'udp 10.0.0.9')"
assert_eq "ask: two machines" "proved 0" "$(ask clean kfree_skb --flow tcp elsewhere)"
# Silence of a machine that was given is no proof, unless it looked.
after=(--since 2023-11-14T23:30:00Z) before=(--until 2023-11-14T22:50:00Z)
assert_eq "ask: one of two, before" "proved 0" "$(ask clean kfree_skb --flow tcp "${before[@]}")"
assert_eq "ask: the other had not begun" "unknown 11" "$(ask clean kfree_skb --flow tcp "${before[@]}" elsewhere)"
assert_eq "ask: one of two, later" "proved 0" "$(ask elsewhere kfree_skb --flow tcp "${after[@]}")"
assert_eq "ask: the other had ended" "unknown 11" "$(ask clean kfree_skb --flow tcp "${after[@]}" elsewhere)"
assert_eq "ask: which, and why" "host: none of its packet captures covers any of the time" \
	"$("$ctl" --json explain --probe kfree_skb --flow tcp "${after[@]}" clean elsewhere | jq -r '.reasons | join(",")')"
assert_eq "ask: a machine without packets" "unknown 11" "$(ask clean kfree_skb --flow tcp silent)"
assert_eq "ask: nor is a clone with its id that machine" "unknown 11" "$(ask clean kfree_skb --flow tcp clone)"
assert_eq "ask: present is present" "present 12" "$(ask clean kfree_skb --flow udp "${before[@]}" elsewhere silent)"
# The wall clock was set to another time: each segment's times are by its own reading of it.
# ask_at DIR SINCE UNTIL [OPTION...]	about kfree_skb, within an evening
ask_at() { ask "$1" kfree_skb --since "2023-11-14 $2" --until "2023-11-14 $3" "${@:4}"; }
# why_at	the same: its reasons
why_at() {
	"$ctl" --json explain --probe kfree_skb --since "2023-11-14 $2" --until "2023-11-14 $3" "${@:4}" "$1" |
		jq -r '[.reasons, .captures[].reasons] | add | join(",")'
}
assert_eq "set forward: drops are where cat shows them" "4 present 12" \
	"$("$ctl" cat --probe kfree_skb --since '2023-11-14 23:01:30' --until '2023-11-14 23:01:50' forward 2>/dev/null |
		wc -l) $(ask_at forward 23:01:30 23:01:50)"
assert_eq "set forward: before and after it" "proved 0 proved 0" \
	"$(ask_at forward 22:37 22:46) $(ask_at forward 23:02 23:11 --flow tcp)"
assert_eq "set forward: over the time that there was not" "proved 0" "$(ask_at forward 22:46 22:56 --flow tcp)"
assert_eq "set forward: only such a time" "unknown 11 the wall clock was set past that time" \
	"$(ask_at forward 22:48 22:50) $(why_at forward 22:48 22:50)"
assert_eq "set forward: its end" "unknown 11 host: no packet capture covers the time after 2023-11-14 23:28:20" \
	"$(ask_at forward 23:20 23:29) $(why_at forward 23:20 23:29)"
assert_eq "set forward: what was lost, too" "2004=lost-entirely" \
	"$("$ctl" --json explain --flow udp --since '2023-11-14 22:56:43.5' --until '2023-11-14 22:56:44.5' forward |
		jq -r '.packets | map("\(.packet)=\(.verdict)") | join(" ")')"
assert_eq "set forward: replay has the times of segments" "$("$ctl" --json segments forward | jq -r '"\(.[0].first_ns) \(.[-1].last_ns)"')" \
	"$("$ctl" --json replay forward 2>/dev/null | jq -r '.captures[0] | "\(.first_ns) \(.last_ns)"')"
assert_eq "set back: a time that was twice" "present 12 present 12 proved 0" \
	"$(ask_at back 22:36:30 22:37) $(ask_at back 22:44:50 22:45:10) $(ask_at back 22:45:10 22:46)"
assert_eq "set back: both times are told" "2023-11-14 22:45:10 2023-11-14 22:46:00" \
	"$("$ctl" --no-pager explain --probe kfree_skb --since '2023-11-14 22:45:10' --until '2023-11-14 22:46' back |
		sed -n 's/^kfree_skb, from \(.*\) to \(.*\): no packet was there (proved)/\1 \2/p')"
assert_eq "set back: its end" "proved 0 unknown 11" "$(ask_at back 23:02 23:11) $(ask_at back 23:02 23:12)"
set_within="segment 2: the wall clock was set forward by 500.000 s, or the machine slept, in the middle: what of it was when is not certain"
for at in '22:47 22:48' '23:11 23:11:30'; do
	read -r since until <<<"$at"
	assert_eq "set within: from $since" "unknown 11 $set_within" \
		"$(ask_at within "$since" "$until" --flow tcp) $(why_at within "$since" "$until" --flow tcp)"
	assert_grep "set within: cat from $since" "$set_within" \
		<("$ctl" cat --since "2023-11-14 $since" --until "2023-11-14 $until" within 2>&1 >/dev/null)
done
assert_eq "set within: before and after it" "proved 0 proved 0" \
	"$(ask_at within 22:37 22:46) $(ask_at within 23:20 23:28)"
assert_status "ask: no such probe" 1 "$ctl" explain --probe ip_recv clean
assert_status "ask: a flow that is none" 2 "$ctl" explain --flow 'udp 10.0.0.1 10.0.0.2' clean
assert_eq "ask: IPv6" "proved 0" "$(ask clean kfree_skb --flow '[2001:db8::1]:53 > *')"
assert_status "explain: neither" 2 "$ctl" explain
assert_status "explain: --dev is not its" 2 "$ctl" explain --dev eth0 5 clean

# ---- what the selection left out ------------------------------------------------------------------------------

# "sampled" left out packets at net_dev_queue, in each of its segments; elsewhere nothing.
left_out='the selection ("1 flow in 8") left out packets, some that are asked for may be among them'
left_out_line='  - the selection \("1 flow in 8"\) left out packets, some that are asked for may be among them$'
for flow in 'udp :53' 'udp :54' tcp; do
	assert_eq "left out, explain --flow $flow" "11 $left_out" \
		"$("$ctl" --json explain --flow "$flow" sampled 2>/dev/null >e.json; echo "$? $(jq -r '.reasons | join(",")' e.json)")"
done
assert_grep "left out, explain says so" "$left_out_line" <("$ctl" --no-pager explain --flow 'udp :53' sampled 2>&1 >/dev/null)
assert_eq "left out, explain of a record of all" "0 []" \
	"$("$ctl" --json explain --flow 'udp :53' clean 2>/dev/null >e.json; echo "$? $(jq -c .reasons e.json)")"
assert_status "left out, explain of one packet" 0 "$ctl" explain 2005 sampled
for filter in '--flow udp' '--dev veth0' '--probe net_dev_queue'; do
	# shellcheck disable=SC2086 # an option and its argument
	assert_grep "left out, cat $filter" "$left_out_line" <("$ctl" cat $filter sampled 2>&1 >/dev/null)
	# shellcheck disable=SC2086
	assert_eq "left out, report $filter" "unknown $left_out,no requests are recorded here" \
		"$("$ctl" --json report $filter sampled 2>/dev/null | jq -r '.record | "\(.verdict) \(.reasons | join(","))"')"
	# shellcheck disable=SC2086
	assert_status "left out, export --strict $filter" 1 "$ctl" export --strict --format=jsonl $filter --output=strict.jsonl sampled
done
assert_eq "left out, nothing written" "" "$(ls strict* 2>/dev/null)"
"$ctl" export --format=jsonl --flow 'udp :54' --output=left-out.jsonl sampled 2>/dev/null
assert_eq "left out, the sidecar" "unknown $left_out" \
	"$(jq -r '"\(.record.verdict) \(.record.reasons | join(","))"' left-out.jsonl.loss.json)"
for asked in "" '--comm sender' '--probe kfree_skb' '--probe kfree_skb --flow udp'; do
	# shellcheck disable=SC2086
	assert_eq "not left out, cat $asked" "" "$("$ctl" cat $asked sampled 2>&1 >/dev/null)"
done
assert_eq "not left out, drops" complete "$("$ctl" --json drops --flow udp sampled 2>/dev/null | jq -r .record.verdict)"
# Whether there were ends of other packets is not known, as they are counted without a look at whose they are.
assert_eq "counted only" "unknown 11 unknown 11 proved 0" \
	"$(ask folded consume_skb --flow 'udp 10.0.0.9') $(ask folded __alloc_skb --flow 'udp 10.0.0.9') $(ask folded kfree_skb --flow 'udp 10.0.0.9')"
# An always-on event of a packet that was not selected tells nothing of its other way.
assert_eq "not selected" "not-selected 11" "$(one unselected 2999)"

# ---- drops ------------------------------------------------------------------------------------------------

"$ctl" --json drops lost >drops.json 2>/dev/null
assert_eq "drops: by reason" "NETFILTER_DROP 9 0,SOCKET_RCVBUFF 5 1" \
	"$(jq -r '[.drops[] | "\(.reason) \(.n) \(.lost)"] | sort | join(",")' drops.json)"
assert_eq "drops: where" "nf_hook_slow+0x9a veth1 10.0.0.2:53" \
	"$(jq -r '.drops[] | select(.reason == "NETFILTER_DROP") | "\(.location) \(.iface) \(.flow | split(" ") | last)"' drops.json)"
assert_eq "drops: of no flow" 0 "$("$ctl" --json drops --flow tcp clean | jq '.drops | length')"
assert_grep "drops: text" '^ +9 +0 .*NETFILTER_DROP +nf_hook_slow' <("$ctl" --no-pager drops lost 2>/dev/null)
# rows DIR...	"REASON N LOST" of each
rows() { "$ctl" --json drops "$@" 2>/dev/null | jq -r '[.drops[] | "\(.reason) \(.n) \(.lost)"] | sort | join(",")'; }
# places DIR...	the numbers of what was dropped in nf_hook_slow
places() { "$ctl" --json drops "$@" 2>/dev/null | jq -r '[.drops[] | select(.location // "" | test("nf_hook")) | .where // "null"] | join(",")'; }
assert_eq "drops: captures of one boot are one" "NETFILTER_DROP 18 0,SOCKET_RCVBUFF 10 2" "$(rows lost again)"
assert_eq "drops: unless asked otherwise" \
	"NETFILTER_DROP 9 0,NETFILTER_DROP 9 0,SOCKET_RCVBUFF 5 1,SOCKET_RCVBUFF 5 1" "$(rows --per-capture lost again)"
assert_eq "drops: another boot has other interfaces" \
	"NETFILTER_DROP 18 0,NETFILTER_DROP 9 0,SOCKET_RCVBUFF 10 2,SOCKET_RCVBUFF 5 1" "$(rows lost again reboot)"
assert_eq "drops: whose" "host 02020202,host 02020202,host5 05050505,host5 05050505" \
	"$("$ctl" --json drops lost elsewhere 2>/dev/null | jq -r '[.drops[] | "\(.host) \(.boot[:8])"] | sort | join(",")')"
assert_eq "drops: whose, as text" "4 4" \
	"$("$ctl" --no-pager drops lost again reboot 2>/dev/null | grep -cE '^host (0[24]){4} .*(nf_hook_slow|SOCKET_RCVBUFF)' ) $("$ctl" --no-pager drops lost again elsewhere 2>/dev/null | grep -cE '^host(5)? .*(nf_hook_slow|SOCKET_RCVBUFF)')"
assert_status "drops: --per-capture is its own" 2 "$ctl" replay --per-capture lost
assert_eq "drops: a place has a number per capture" "null 3" \
	"$(places again) $(places --per-capture again)"
assert_eq "drops: without a footer" "null null null 1 torn" \
	"$("$ctl" --json drops torn 2>/dev/null | jq -r '[.not_selected, .unattributed, .missed, .unsealed, .record.verdict] | map(. // "null" | tostring) | join(" ")')"
assert_eq "drops: text says at least" 4 \
	"$("$ctl" --no-pager drops torn 2>/dev/null | grep -cE '^It is not known how many |^All figures are lower bounds: segments without a footer: 1,')"

# beside DIR [OPTION...]	what is below the tables: left out, of these too often, lost without an owner, missed
beside() {
	"$ctl" --json drops "$@" 2>/dev/null |
		jq -r '[.not_selected, .suppressed, .unattributed, .missed] | map(. // "null" | tostring) | join(" ")'
}
# Within a segment only windows have a time, and nothing has a flow: what may be meant is not known, the rest is left out.
evening=2023-11-14
for row in "all of it:2 2 3 1:" "a segment:2 2 3 1:$evening 22.46.40/$evening 23.03.20" \
	"another one:0 0 0 0:$evening 23.05.00/" "the first:0 0 0 0:/$evening 22.46.00" \
	"the windows:null null 3 1:$evening 22.48.00/$evening 22.49.00" \
	"a part of one:null null null 1:$evening 22.48.32/$evening 22.49.00" \
	"beside them:null null 0 0:$evening 22.50.00/$evening 22.51.00"; do
	IFS=: read -r what want times <<<"$row"
	since=${times%/*} until=${times#*/} options=()
	[ -z "$since" ] || options+=(--since "${since//./:}")
	[ -z "$until" ] || options+=(--until "${until//./:}")
	assert_eq "drops: sums of $what" "$want" "$(beside drops-lost "${options[@]}")"
done
assert_eq "drops: sums of a flow" "null null null null, 0 0 0 0" \
	"$(beside drops-lost --flow tcp), $(beside drops-lost --flow tcp --since '2023-11-14 23:05')"
assert_eq "drops: one, and more" 1 "$("$ctl" --no-pager drops drops-lost 2>/dev/null |
	grep -A 99 '^2 more drops of packets outside the selection were counted' | grep -c '^1 drop was missed by the probe$')"

# ---- exports ------------------------------------------------------------------------------------------------

for format in blktrace fio oracleGeneral perfetto; do
	"$ctl" export --format=$format --output none.$format lost 2>err
	assert_eq "$format: packets alone are refused" "1 1 " \
		"$? $(grep -c "format=$format is for requests, and here are packets only" err) $(ls -d none.* 2>/dev/null)"
done
"$ctl" cat --json lost >lost.jsonl 2>/dev/null
for format in csv jsonl pcapng; do
	assert_status "$format: export" 0 "$ctl" export --format="$format" --output="out.$format" lost
done
assert_eq "jsonl: the same as cat --json" "" "$(cmp out.jsonl lost.jsonl 2>&1)"
assert_eq "sidecar: observations, losses, owners" "923 7 2003 2004 2501" \
	"$(jq -r '[.observations, .losses_total.n, ([.losses[].packet] | unique | .[])] | join(" ")' out.csv.loss.json)"
assert_eq "sidecar: what was lost" "udp 10.0.0.1:4000 > 10.0.0.2:53 veth0 net_dev_xmit" \
	"$(jq -r '.losses[] | select(.packet == "2003") | "\(.flow) \(.iface) \(.probe)"' out.csv.loss.json)"
assert_eq "filters: packets by --probe beside requests" 15 \
	"$("$ctl" export --format=jsonl --probe kfree_skb clean 2>/dev/null | wc -l)"
assert_status "strict: refuses losses" 1 "$ctl" export --format=pcapng --strict --output=strict.pcapng lost
assert_eq "strict: writes nothing" "" "$(ls strict* 2>/dev/null)"
if command -v python3 >/dev/null; then
	# Through parsers that are not ours: CSV, and the blocks of pcapng by its specification.
	python3 - out.csv lost.jsonl >csv.result <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8')))
lines = [json.loads(l) for l in open(sys.argv[2], encoding='utf-8')]
def text(v):
    return '' if v is None else '|'.join(v) if isinstance(v, list) else str(v)
bad = [(k, r[k], l[k]) for r, l in zip(rows, lines) for k in l if r.get(k) != text(l[k])]
print(len(rows), len(lines), len(bad), len(lines[0]) == len(rows[0]), bad[:1])
PY
	assert_eq "csv: every field as in JSON" "923 923 0 True []" "$(cat csv.result)"
	python3 - out.pcapng >pcapng.result <<'PY'
import struct, sys
data, at, names, packets, stats = open(sys.argv[1], 'rb').read(), 0, [], 0, {}
def options(raw):
    while len(raw) >= 4:
        code, length = struct.unpack('<HH', raw[:4])
        if code == 0:
            return
        yield code, raw[4:4 + length]
        raw = raw[4 + (length + 3) // 4 * 4:]
while at < len(data):
    kind, total = struct.unpack('<II', data[at:at + 8])
    assert total % 4 == 0 and struct.unpack('<I', data[at + total - 4:at + total])[0] == total
    body = data[at + 8:at + total - 4]
    if kind == 1:
        names.append(dict(options(body[8:]))[2].decode())
    elif kind == 6:
        packets += 1
    elif kind == 5:
        number = struct.unpack('<I', body[:4])[0]
        o = dict(options(body[12:]))
        stats[names[number]] = (struct.unpack('<Q', o[4])[0], struct.unpack('<Q', o[5])[0])
    at += total
print(packets, len(names), sum(s for s, d in stats.values()), sum(d for s, d in stats.values()), stats['net_dev_xmit'])
PY
	assert_eq "pcapng: statistics of the interfaces have what was lost" "923 7 930 7 (195, 2)" "$(cat pcapng.result)"
else
	skip "csv: every field as in JSON" "no python3"
	skip "pcapng: statistics of the interfaces have what was lost" "no python3"
fi
# tshark_says DIR FILTER FIELD...	of the packets that match, once each
tshark_says() {
	local file=$1 filter=$2 field fields=()
	shift 2
	for field; do fields+=(-e "$field"); done
	tshark -n -r "$file" -Y "$filter" -T fields "${fields[@]}" 2>/dev/null | tr '\t' ' '
}
if command -v tshark >/dev/null; then
	assert_eq "tshark: every observation" 923 "$(tshark_says out.pcapng frame frame.number | wc -l)"
	assert_eq "tshark: nothing malformed" 0 "$(tshark_says out.pcapng _ws.malformed frame.number | wc -l)"
	assert_eq "tshark: probes are interfaces" "consume_skb kfree_skb net_dev_queue net_dev_start_xmit net_dev_xmit netif_receive_skb" \
		"$(tshark_says out.pcapng frame frame.interface_name | sort -u | tr '\n' ' ' | sed 's/ $//')"
	assert_eq "tshark: headers, length and time" "10.0.0.1 10.0.0.2 4000 53 142 2003" \
		"$(tshark_says out.pcapng 'frame.packet_id == 2003 and frame.interface_name == "net_dev_queue"' \
			ip.src ip.dst udp.srcport udp.dstport frame.len frame.packet_id)"
	assert_eq "tshark: checksums of the headers" 923 \
		"$(tshark -n -o ip.check_checksum:TRUE -r out.pcapng -Y 'ip.checksum.status == 1' 2>/dev/null | wc -l)"
	assert_eq "tshark: the verdict is a comment" \
		"packet 2003 #1, lost: 1 at net_dev_xmit; veth0 ifindex 2 netns 4026531840" \
		"$(tshark_says out.pcapng 'frame.packet_id == 2003 and frame.interface_name == "net_dev_queue"' frame.comment)"
	assert_eq "tshark: so is the reason of a drop" 9 \
		"$(tshark_says out.pcapng 'frame.comment contains "dropped: NETFILTER_DROP at nf_hook_slow"' frame.number | wc -l)"
	assert_eq "tshark: TCP flags" 120 "$(tshark_says out.pcapng 'tcp.flags == 0x18' frame.number | wc -l)"
	"$ctl" export --format=pcapng --flow 'tcp :443' clean >flow.pcapng 2>/dev/null
	assert_eq "tshark: filters, on stdout" "120 merged" \
		"$(tshark_says flow.pcapng frame frame.number | wc -l) $(tshark_says flow.pcapng frame frame.comment | grep -o merged | sort -u)"
else
	skip "tshark reads it" "no tshark"
fi

# A record without packets is no record of none.
"$tools/make-segment" block segments=1 requests=10 >/dev/null
assert_status "pcapng: requests only" 1 "$ctl" export --format=pcapng --output=none.pcapng block
assert_status "replay: requests only" 1 "$ctl" replay block
assert_status "drops: requests only" 1 "$ctl" drops block

tap_end
