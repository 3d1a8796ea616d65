#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
#
# The offline verbs of iotracectl over segments with known contents: what each shows, its JSON, its exit
# code, and what it says about input that is damaged or is no segment. No root, no daemon.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"
# shellcheck source=tests/lib/ctl.sh
. "$here/../lib/ctl.sh"
ctl_setup ctl make-segment hold-lock
make=$tools/make-segment
hold=$tools/hold-lock

"$make" whole segments=3 requests=2000 >whole.json || bail ctl "cannot make segments"
"$make" lossy segments=2 requests=500 lost=37 >lossy.json || bail ctl "cannot make segments"
"$make" doubt segments=1 requests=500 lost=3 unattributed=9 >doubt.json || bail ctl "cannot make segments"
"$make" torn segments=2 requests=9000 open >torn.json || bail ctl "cannot make segments"
"$make" whole-again segments=3 requests=2000 >/dev/null
"$make" chosen segments=2 requests=200 unselected=5 selection='include nvme*' >/dev/null
"$make" other-host segments=1 requests=200 machine=7 >/dev/null
first=$(find whole -name '*1.iot')
assert_eq "segments are deterministic" "" "$(cmp "$first" "whole-again/${first#whole/}" 2>&1)"

sum() { jq -r ".$2" "$1.json"; }

# fails NAME STATUS PATTERN COMMAND...	that exit code, one line on stderr that matches, nothing on stdout
fails() {
	local name=$1 want=$2 pattern=$3 got
	shift 3
	"$@" >out 2>err
	got=$?
	if [ "$got" != "$want" ]; then
		not_ok "$name" "exit code $got instead of $want: $(head -n 3 err)"
	elif [ "$(wc -l <err)" != 1 ] || ! grep -Eq -- "$pattern" err; then
		not_ok "$name" "not one line that matches '$pattern': $(head -n 3 err)"
	elif [ -s out ]; then
		not_ok "$name" "printed on stdout: $(head -n 1 out)"
	else
		ok "$name"
	fi
}

# ---- cat --------------------------------------------------------------------------------------------

"$ctl" cat --json whole >cat.jsonl 2>cat.err
assert_eq "cat: exit code" 0 $?
assert_eq "cat: silent on stderr when complete" "" "$(cat cat.err)"
assert_eq "cat: every request" "$(sum whole requests)" "$(wc -l <cat.jsonl)"
assert_eq "cat: JSON Lines" "$(sum whole requests)" "$(jq -c . cat.jsonl | wc -l)"
assert_eq "cat: bytes" "$(sum whole bytes)" "$(jq -s 'map(.bytes) | add' cat.jsonl)"
assert_eq "cat: swap-out" "$(sum whole swap_out)" "$(jq -r 'select(.swap == "out") | .id' cat.jsonl | wc -l)"
assert_eq "cat: swap-in" "$(sum whole swap_in)" "$(jq -r 'select(.swap == "in") | .id' cat.jsonl | wc -l)"
assert_eq "cat: errors" "$(sum whole errors)" "$(jq -r 'select(.error == -5) | .id' cat.jsonl | wc -l)"
assert_eq "cat: the contract's fields, first and in order" \
	'["id","dev","disk","part","op","flags","sector","bytes","bytes_done","error","swap","start_ns","insert_ns","issue_ns","complete_ns","pid","tgid","comm","cgroup","ino","fsdev","origin","cpu"]' \
	"$(head -n 1 cat.jsonl | jq -c '[keys_unsorted[]][:23]')"
assert_eq "cat: ids and times are strings or null" true \
	"$(jq -s 'all(.[]; [.id, .start_ns, .insert_ns, .issue_ns, .complete_ns, .realtime_ns, .cgroup]
		| all(.[]; type == "string" or . == null))' cat.jsonl)"
assert_eq "cat: absent is null" "null null null" \
	"$(jq -r 'select(.op == "flush") | [.sector, .ino, .fsdev] | map(tojson) | join(" ")' cat.jsonl | sort -u)"
assert_eq "cat: in time order" true \
	"$(jq -s 'map(.complete_ns) | . == sort' cat.jsonl)"
assert_eq "cat: a name that is not UTF-8" '"b\u00fcro\"\\\n,"' "$(jq -ca .comm cat.jsonl | grep ro | sort -u)"
"$ctl" whole cat >/dev/null 2>&1
assert_eq "a path in place of the verb is a usage error" 2 $?

assert_eq "cat: text has a line for each" "$(sum whole requests)" "$("$ctl" cat whole | wc -l)"
"$ctl" cat whole | head -n 1 >line
assert_grep "cat: text" \
	'^2026-11-29 [0-9:.]{18} (sdb|nvme0n1|nvme0n1p2) +[a-z_]+ .* q=[0-9.]+us +d=[0-9.]+us +ok +.*\[[0-9]+\]$' line
assert_eq "cat: no control characters in text" 0 "$("$ctl" cat whole | tr -d '\n' | tr -dc '\000-\037\177' | wc -c)"
"$ctl" cat whole --json | head -n 1 >/dev/null
assert_eq "cat: a closed pipe is quiet" "0 0" "${PIPESTATUS[*]}"
[ -c /dev/full ] && {
	fails "cat: a full disk is an error" 1 'cannot write standard output: No space left' sh -c "'$ctl' cat --json whole >/dev/full"
	fails "report: a full disk is an error" 1 'cannot write standard output: No space left' sh -c "'$ctl' report whole >/dev/full"
	# Longer than a buffer of stdio, which then forgets the cause.
	fails "report --json: a full disk, too" 1 'cannot write standard output: No space left' \
		sh -c "'$ctl' --json report whole >/dev/full"
}

# ---- filters: the same in every verb, before and after it ----------------------------------------------

n() { "$ctl" "$@" --json cat whole 2>err | wc -l; }
jqn() { jq -r "select($1) | .id" cat.jsonl | wc -l; }
assert_eq "--op" "$(jqn '.op == "read" or .op == "flush"')" "$(n --op read,flush)"
assert_eq "--dev of a disk" "$(jqn '.disk == "nvme0n1"')" "$(n --dev nvme0n1)"
assert_eq "--dev of a partition" "$(jqn '.part == "nvme0n1p2"')" "$(n --dev /dev/nvme0n1p2)"
assert_eq "--dev by number" "$(jqn '.dev == "8:16"')" "$(n --dev 8:16)"
assert_eq "--swap=only" "$(jqn '.swap != "none"')" "$(n --swap=only)"
assert_eq "--swap=without" "$(jqn '.swap == "none"')" "$(n --swap without)"
assert_eq "--swap=out" "$(jqn '.swap == "out"')" "$(n --swap=out)"
assert_eq "--swap=in" "$(jqn '.swap == "in"')" "$(n --swap=in)"
assert_eq "--pid" "$(jqn '.pid == 1001')" "$(n --pid 1001)"
assert_eq "--comm" "$(jqn '.comm == "fio"')" "$(n --comm fio)"
# shellcheck disable=SC2016 # $s is jq's
assert_eq "--min-latency" \
	"$(jqn '(.start_ns // .issue_ns | tonumber) as $s | ((.complete_ns | tonumber) - $s) >= 300000')" "$(n --min-latency 300us)"
id=$(sed -n 1234p cat.jsonl | jq -r .id)
assert_eq "--id" "$id" "$("$ctl" cat --json --id "$id" whole | jq -r .id)"
assert_eq "--since --until" "$(jqn '.realtime_ns >= "1795915410000000000" and .realtime_ns <= "1795915415000000000"')" \
	"$(n --since '2026-11-29 01:23:30' --until @1795915415)"
assert_eq "options after the verb" "$(n --op=write --swap=out)" "$("$ctl" cat whole --swap out --json --op write | wc -l)"
assert_eq "the same filter in report" "$(n --op read --dev sdb)" \
	"$("$ctl" report --json whole --op read --dev sdb | jq .requests)"
assert_eq "the same filter in export" "$(n --op read --dev sdb)" \
	"$("$ctl" export --format jsonl whole --op read --dev sdb | wc -l)"

# ---- report -------------------------------------------------------------------------------------------

"$ctl" report --json lossy >report.json
assert_eq "report: exit code" 0 $?
"$ctl" cat --json lossy >lossy.jsonl 2>lossy.err
assert_eq "cat: losses do not fail it" 0 $?
assert_grep "cat: but are said on stderr" 'lost: 2 segments, 1,000 requests, 37 lost' lossy.err
assert_eq "report: verdict" "lost 10" "$(jq -r '.record | "\(.verdict) \(.code)"' report.json)"
assert_eq "report: records" "$(sum lossy requests)" "$(jq .requests report.json)"
assert_eq "report: losses" "$(sum lossy lost)" "$(jq .lost report.json)"
assert_eq "report: lost bytes" "$(sum lossy lost_bytes)" "$(jq .lost_bytes report.json)"
assert_eq "report: per device and operation, records" "$(jq -cS '.ops | map_values(.requests)' lossy.json)" \
	"$(jq -cS '[.devices[] as $d | $d.ops[] | {key: "\($d.disk) \(.op)", value: .requests}] | from_entries' report.json)"
assert_eq "report: per device and operation, bytes" "$(jq -cS '.ops | map_values(.bytes)' lossy.json)" \
	"$(jq -cS '[.devices[] as $d | $d.ops[] | {key: "\($d.disk) \(.op)", value: .bytes}] | from_entries' report.json)"
assert_eq "report: records + ledger = total" true \
	"$(jq '[.devices[].ops[] | .requests + .lost == .total] | all' report.json)"
assert_eq "report: totals" "$(($(sum lossy requests) + 37))" "$(jq '[.devices[].ops[].total] | add' report.json)"
assert_eq "report: with and without swap = all" true \
	"$(jq '[.devices[].ops[] | .swap.without.requests + .swap.out.requests + .swap.in.requests == .requests] | all' report.json)"
assert_eq "report: swap-out" "$(sum lossy swap_out)" "$(jq '[.devices[].ops[].swap.out.requests] | add' report.json)"
assert_eq "report: merges, requeues, errors" "$(jq -c '[.merges, .requeues, .errors]' lossy.json)" \
	"$(jq -c '[.devices[].ops[]] | [map(.merges), map(.requeues), map(.errors)] | map(add)' report.json)"
assert_eq "report: histograms hold every latency" true \
	"$(jq '[.devices[].ops[] | .queue_ns, .device_ns | (.histogram | map(.n) | add // 0) == .n] | all' report.json)"
assert_eq "report: rate over recorded time" "20 true" \
	"$(jq -r '.devices[0] | "\(.recorded_seconds) \(.ops[0] | .iops * 20 - .requests | fabs < 0.001)"' report.json)"
# Percentiles against the sorted values themselves
for p in 50 90 99; do
	want=$(jq -rs --argjson p $p '[.[] | select(.disk == "nvme0n1" and .op == "read")
		| (.complete_ns | tonumber) - (.issue_last_ns | tonumber)] | sort | .[(length * $p / 100 | ceil) - 1]' lossy.jsonl)
	got=$(jq ".devices[] | select(.disk == \"nvme0n1\") | .ops[] | select(.op == \"read\") | .device_ns.p$p" report.json)
	off=$((got > want ? got - want : want - got))
	# a JSON number of 10^12 ns is exact here: monotonic times of these segments are small
	assert_num "report: p$p within 0.4%" $((off * 250)) -le "$want"
done
"$ctl" report lossy >report.txt
assert_grep "report: verdict at the top" '^Record +lost: 2 segments, 1,000 requests, 37 lost' <(head -n 1 report.txt)
assert_grep "report: losses in their row" '^nvme0n1 +write +[0-9,]+ +37 +[0-9,]+ ' report.txt
assert_grep "report: bars" '█' report.txt
assert_eq "report: no bars of blocks without UTF-8" "0 #" \
	"$(LC_ALL=C "$ctl" report lossy >c.txt; echo "$(LC_ALL=C grep -c $'\xe2' c.txt) $(grep -o '#' c.txt | head -n 1)")"
assert_eq "report: no colour into a file" 0 "$(grep -c $'\033' report.txt)"
assert_ne "report: colour on demand" 0 "$("$ctl" report lossy --color=always | grep -c $'\033')"
# The first of two segments alone, by time: it ends at the question's end, 5 s after its beginning.
"$ctl" report --json lossy --until=2026-11-29T01:23:25Z >until.json 2>/dev/null
assert_eq "report: time ends with --until" "2026-11-29T01:23:20Z 2026-11-29T01:23:25Z 5" \
	"$(jq -r '[.first_ns, .last_ns | tonumber / 1e9 | todate] + [.devices[0].recorded_seconds] | map(tostring) | join(" ")' until.json)"
mkdir 'esc' && printf X >esc/$'a\e]0;owned\a.iot'
"$ctl" verify esc >esc.txt 2>&1
"$ctl" cat $'esc/a\e]0;owned\a.iot' >>esc.txt 2>&1
"$ctl" report $'no\esuch' >>esc.txt 2>&1
assert_eq "names of files do not reach the terminal as they are" "3 0" \
	"$(grep -cE 'a[?]]0|no[?]such' esc.txt) $(grep -c $'\e' esc.txt)"
assert_eq "report: nothing passes" "0 0" \
	"$("$ctl" report --json lossy --dev nosuch >none.json 2>/dev/null; echo "$? $(jq .requests none.json)")"
assert_eq "report: doubt is said" "unknown 9" \
	"$("$ctl" report --json doubt | jq -r '.record | "\(.verdict) \(.unattributed)"')"
"$make" other machine=1 segments=1 requests=100 >/dev/null
assert_eq "report: hosts are told apart" '["host0 nvme0n1","host0 sdb","host1 nvme0n1","host1 sdb"]' \
	"$("$ctl" report --json doubt other | jq -c '[.devices[] | "\(.host) \(.disk)"]')"

# ---- report: swap, and who it was ------------------------------------------------------------------------

# bytes FILTER of the requests that count as data written or read
"$ctl" cat --json whole >whole.jsonl
data() { jq -s "map(select($1) | .bytes_done) | add // 0" whole.jsonl; }
written='.op == "write" or .op == "zone_append"'
"$ctl" report --json whole >swap.json
assert_eq "report: bytes written" "$(data "$written")" "$(jq .written.bytes swap.json)"
assert_eq "report: written without swap" "$(data "($written) and .swap == \"none\"")" "$(jq .written.without_swap_bytes swap.json)"
assert_eq "report: swapped out" "$(data '.swap == "out"')" "$(jq .written.swap_out_bytes swap.json)"
assert_eq "report: read, swapped in" "$(data '.op == "read"') $(data '.swap == "in"')" \
	"$(jq -r '"\(.read.bytes) \(.read.swap_in_bytes)"' swap.json)"
assert_eq "report: rows of time add up" true "$(jq '.over_time.rows as $r | .written as $w | .read as $read
	| ($r | map(.written_bytes) | add) == $w.bytes and ($r | map(.swap_out_bytes) | add) == $w.swap_out_bytes
	and ($r | map(.read_bytes) | add) == $read.bytes and ($r | length) <= 32' swap.json)"
assert_eq "report: --swap without = the others" "$(data "($written) and .swap == \"none\"")" \
	"$("$ctl" report --json --swap without whole | jq .written.bytes)"
# In the ledger a third is swap: the filters and the sums know.
lost_swap=$("$ctl" export --format jsonl lossy --output lossy.export >/dev/null 2>&1
	jq '[.losses[] | select(.swap == "out") | .n] | add' lossy.export.loss.json)
assert_num "export: lost swap-out is told" "$lost_swap" -gt 0
assert_eq "report: lost swap-out" "$lost_swap" "$(jq '[.devices[].ops[].swap.out.lost] | add' report.json)"
assert_eq "report: --swap splits the losses" "$lost_swap $((37 - lost_swap)) 0" \
	"$(for kind in out without in; do "$ctl" report --json --swap $kind lossy | jq .lost; done | paste -sd ' ')"
assert_eq "report: written = records + ledger" \
	"$(($("$ctl" cat --json --op write lossy 2>/dev/null | jq -s 'map(.bytes_done) | add') + $(sum lossy lost_bytes)))" \
	"$(jq .written.bytes report.json)"
assert_eq "report: write amplification" "2 $(data "$written")" \
	"$("$ctl" report --json --logical-bytes $(($(data "$written") / 2)) whole |
		jq -r '.write_amplification | "\(.with_swap) \(.logical_bytes * 2)"')"
printf '1KiB\n# a comment\n24\n' >bytes.txt
assert_eq "report: logical bytes of a file" 1048 \
	"$("$ctl" report --json --logical-bytes @bytes.txt whole | jq .write_amplification.logical_bytes)"
assert_eq "report: none without" null "$(jq .write_amplification swap.json)"
assert_eq "report: logical bytes that are none" \
	"2 iotracectl: bytes.txt:1: 'x' is no number of bytes; write one a line, like 4096 or 64MiB" \
	"$(echo x >bytes.txt; "$ctl" report --logical-bytes @bytes.txt whole 2>err; echo "$? $(cat err)")"
assert_eq "report: logical bytes of a FIFO" "2 iotracectl: bytes.fifo: is no file but a FIFO" \
	"$(mkfifo bytes.fifo; timeout 20 "$ctl" report --logical-bytes @bytes.fifo whole 2>err; echo "$? $(cat err)")"
assert_eq "report: logical bytes of a command" 24 \
	"$("$ctl" report --json --logical-bytes @<(sleep 0.1; echo 24) whole | jq .write_amplification.logical_bytes)"

# Each ranking against the records themselves: groups, requests and bytes, to the last unit.
# ranks WHAT JQ-KEY	key of a row, of a request: both as text
ranks() {
	"$ctl" report --json --by "$1" --top 10000 whole >by.json
	jq -cS '[.by.rows[] | {key: (.name | tostring), value: [.requests, .bytes_done]}] | from_entries' by.json >by.rows
	jq -cSs "group_by($2) | map({key: (.[0] | $2), value: [length, (map(.bytes_done) | add)]}) | from_entries" whole.jsonl >by.want
	assert_eq "report --by $1: rows" "$(cat by.want)" "$(cat by.rows)"
	assert_eq "report --by $1: everything is in a row" "$(sum whole requests) true" \
		"$(jq -r '.by as $b | "\([$b.rows[].requests] | add) \(([$b.rows[].bytes_done] | add) == $b.bytes_done)"' by.json)"
	assert_eq "report --by $1: most bytes first" true "$(jq '[.by.rows[].bytes_done] | . == (sort | reverse)' by.json)"
	assert_num "report --by $1: within 80 columns" "$("$ctl" report --by "$1" whole | LC_ALL=C.UTF-8 wc -L)" -le 80
}
ranks device .disk
ranks origin '(.origin // "unknown")'
ranks cgroup 'if .cgroup == "4343" then "/user.slice/app.service" else "/system.slice" end'
ranks process '"kworker/0:1 (1000)"'
ranks file 'if .file_by and .ino then "nvme0n1p2 inode \(.ino)"
	else {metadata: "(metadata)", swap: "(swap)", private: "(memory of the kernel)",
	none: "(no data: flush, discard, ...)", passthrough: "(commands of drivers)"}[.origin] end'
assert_eq "report --by: latencies are those of the requests" \
	"$(jq -cs 'map(select(.disk == "sdb") | (.complete_ns | tonumber) - (.start_ns // .issue_ns | tonumber))
		| [length, max, min]' whole.jsonl)" \
	"$("$ctl" report --json --by device whole | jq -c '.by.rows[] | select(.disk == "sdb") | .latency_ns | [.n, .max, .min]')"
assert_eq "report --by: --top" "3 true" "$("$ctl" report --json --by file --top 3 whole | jq -r '.by | "\(.rows | length) \(.groups > 3)"')"
assert_eq "report --by: filters" "$(jqn '.ino == "105" and .op == "read"')" \
	"$("$ctl" report --json --by file --op read whole | jq '.by.rows[] | select(.ino == "105") | .requests')"
assert_eq "report --by: hosts are told apart" '["host0","host1"]' \
	"$("$ctl" report --json --by process doubt other | jq -c '[.by.rows[].host] | sort | unique')"
assert_eq "report --by: what was lost is in no row" "In no row: 37 lost requests, $((37 * 4))KiB" \
	"$("$ctl" report --by device lossy | grep '^In no row')"
assert_eq "report: --top alone" "2 iotracectl: --top goes with --by and --html" "$("$ctl" report --top 3 whole 2>err; echo "$? $(cat err)")"
assert_eq "report: --by of what it cannot" \
	"2 iotracectl: --by: 'files' is not one of file, process, cgroup, device, origin (did you mean 'file'?)" \
	"$("$ctl" report --by files whole 2>err; echo "$? $(cat err)")"
assert_status "report: --top 0" 2 "$ctl" report --by file --top 0 whole
assert_status "report: --resolve needs files" 2 "$ctl" report --by cgroup --resolve / whole
assert_status "report: --resolve nowhere" 1 "$ctl" report --by file --resolve /nonexistent whole
assert_status "cat: --by is report's" 2 "$ctl" cat --by file whole
# Another machine's files are not looked for, whatever their numbers are here.
assert_eq "report: --resolve keeps to this machine" "0 null" \
	"$("$ctl" report --json --by file --resolve . whole | jq -r '.by | "\([.rows[] | select(.path)] | length) \(.rows[0].path_state)"')"

# ---- segments, verify ----------------------------------------------------------------------------------

"$ctl" segments --json torn >segments.json
assert_eq "segments: exit code with an unsealed one" 0 $?
assert_eq "segments: states, of what nobody records" '["sealed","torn"]' "$(jq -c 'map(.state)' segments.json)"
assert_eq "segments: records" 18000 "$(jq 'map(.records) | add' segments.json)"
assert_eq "segments: verdicts" '["complete","torn"]' "$(jq -c 'map(.verdict)' segments.json)"
assert_eq "segments: text has a row each and a header" 4 "$("$ctl" segments whole | wc -l)"
long=narrow/block-0123456789abcdef0123456789abcdef-0000000001.iot
mkdir narrow && cp "$first" $long
COLUMNS=80 "$ctl" segments narrow >narrow.txt
assert_eq "segments: fits 80 columns" 0 "$(grep -cvE '^.{0,80}$' narrow.txt)"
assert_grep "segments: with the verdict" '^NAME +VERDICT +RECORDS +SIZE +FROM$' narrow.txt
# shellcheck disable=SC2046,SC2116 # the shortened name is a pattern
assert_eq "segments: a shortened name is one for the shell" $long "$(echo narrow/$(awk 'NR == 2 { print $1 }' narrow.txt))"
COLUMNS=300 "$ctl" segments narrow >narrow.txt
assert_grep "segments: all where there is room" "^${long#*/} +complete .* 1$" narrow.txt
assert_grep "segments: all into a file" "^${long#*/} +complete .* 1$" <("$ctl" segments narrow)
assert_eq "report: fits 80 columns" "" "$("$ctl" report whole | sed '/^Record/,/^Requests/d' | grep -vE '^.{0,80}$')"

# A time that no capture recorded proves nothing about what was done in it, whatever the segments say.
record() { "$ctl" report --json "$@" | jq -r '.record | "\(.verdict) \(.reasons | length)"'; }
assert_eq "report: a time that is covered" "complete 0" "$(record whole --since '2026-11-29 01:23:31' --until '2026-11-29 01:23:45')"
assert_eq "report: begins before the record" "unknown 1" "$(record whole --since '2026-11-29 01:00')"
assert_eq "report: ends after the record" "unknown 1" "$(record whole --until '2026-11-29 02:00')"
assert_eq "report: after the record" "unknown 1" "$(record whole --since '2026-11-29 02:00')"
assert_eq "report: before the record" "unknown 1" "$(record whole --until '2026-11-29 01:00')"
assert_eq "report: another machine had ended" "unknown 1" \
	"$(record whole other-host --since '2026-11-29 01:23:31' --until '2026-11-29 01:23:45')"
# And what the configuration left out is not absent.
for asked in "nvme0n1 complete" "259:0 complete" "/dev/nvme0n1p2 complete" "sdb unknown" "8:16 unknown" "sdz unknown"; do
	assert_eq "report: of those selected: $asked" "${asked#* }" "$(record chosen --dev "${asked% *}" | cut -d ' ' -f 1)"
done
assert_eq "report: says what was recorded" '["include nvme*"]' "$("$ctl" report --json chosen | jq -c .selections)"
assert_grep "report: says what was recorded, as text" '^Selected +include nvme\*$' <("$ctl" report chosen)
assert_eq "report: of all" "complete 0" "$(record whole --dev sdb)"
"$ctl" cat --since '2026-11-29 02:00' whole >out 2>err
assert_eq "cat: nothing in a time without a record" "0 0" "$? $(wc -l <out)"
assert_grep "cat: is no proof" 'none of its block captures covers any of the time' err
"$ctl" export --format=csv --since '2026-11-29 02:00' --output late.csv whole 2>err
assert_eq "export: the sidecar says so" unknown "$(jq -r .record.verdict late.csv.loss.json)"
assert_eq "segments: --since" 1 "$("$ctl" segments --json --since '2026-11-29 01:23:41' whole | jq length)"

assert_status "verify: complete is 0" 0 "$ctl" verify whole
assert_status "verify: one segment alone" 0 "$ctl" verify "$first"
assert_status "verify: lost is 10" 10 "$ctl" verify lossy
assert_status "verify: unknown is 11" 11 "$ctl" verify doubt
assert_status "verify: torn is 20" 20 "$ctl" verify torn
assert_eq "verify: JSON" "10 37 2" \
	"$("$ctl" verify --json lossy | jq -r '"\(.whole.code) \(.whole.lost) \(.segments | length)"')"
# A daemon that is well is writing the segment: the lock beside it is held. Same codes, other words.
unsealed=$(find torn -name '*.open')
"$ctl" report torn >torn.txt
assert_grep "report: what an unsealed segment lost is not known" \
	'^Requests +18,000 recorded, losses of unsealed segments not known before the seal$' torn.txt
assert_grep "report: and the columns say so" '^LOST below counts sealed segments only' torn.txt
assert_eq "report: no row claims 0 lost" 0 "$(grep -Ec '^(nvme0n1|sdb) +[a-z_]+ +[0-9,]+ +0 ' torn.txt)"
assert_eq "report: sealed segments claim what they lost" "0 0" \
	"$(grep -c 'sealed segments only' report.txt) $(grep -c 'not known before' report.txt)"
assert_eq "report: JSON says whether losses are final" "false true" \
	"$("$ctl" report --json torn | jq .losses_final) $(jq .losses_final report.json)"
"$make" mixed machine=2 segments=1 requests=100 open >/dev/null && cp lossy/*.iot mixed
assert_grep "report: what is known of losses is a lower bound" \
	'recorded, at least 37 lost; losses of unsealed segments not known before the seal$' <("$ctl" report mixed)
assert_grep "verify: no lock, so it is torn" ': torn: 1 segment' <("$ctl" verify "$unsealed")
: >torn/lock
assert_grep "verify: a lock of a daemon that does not say what it records says nothing" ': torn: ' \
	<("$hold" torn/lock "$ctl" verify "$unsealed")
assert_eq "segments: nor of one that records another capture" "torn torn" \
	"$(printf '%032d\n' 7 >torn/lock; "$hold" torn/lock "$ctl" segments --json torn | jq -r '.[1] | "\(.state) \(.verdict)"')"
"$hold" torn/lock "$ctl" recover "$unsealed" --output left.iot >/dev/null
assert_eq "recover: takes what was left behind beside a held lock" "0" $?
"$ctl" segments --json torn | jq -r '.[1].capture' >torn/lock
assert_eq "verify: a lock that nobody holds says nothing" "torn false" \
	"$("$ctl" verify --json torn | jq -r '.whole | "\(.verdict) \(.being_recorded)"')"
fails "recover: refuses what is being recorded" 1 'is being written by process [0-9]+' "$hold" torn/lock "$ctl" recover "$unsealed"
"$hold" torn/lock "$ctl" segments torn >held.txt
assert_eq "segments: and not called torn" "open open" "$(awk '$1 ~ /open$/ { print $2, $9 }' held.txt)"
assert_eq "segments: JSON keeps the verdict" "open torn true" \
	"$("$hold" torn/lock "$ctl" segments --json torn | jq -r '.[1] | "\(.state) \(.verdict) \(.being_recorded)"')"
"$hold" torn/lock "$ctl" verify torn >held.txt
assert_eq "verify: still being recorded is 20 too" 20 $?
assert_grep "verify: and not called torn" 'open: open: 1 segment, 9,000 requests, none known lost' held.txt
assert_grep "verify: but what it is" '^  - still being recorded; its books close when it is sealed' held.txt
assert_eq "verify: together says no reason again" "together: open: 2 segments, 18,000 requests, none known lost" \
	"$(sed -n '/^together/,$p' held.txt)"
assert_eq "verify: JSON keeps word and code" "torn 20 true true" \
	"$("$hold" torn/lock "$ctl" verify --json torn |
		jq -r '"\(.whole.verdict) \(.whole.code) \(.whole.being_recorded) \(.segments[1].being_recorded)"')"
assert_grep "report: still being recorded" '^Record +open: 2 segments' <("$hold" torn/lock "$ctl" report torn)
"$hold" torn/lock "$ctl" cat torn >/dev/null 2>held.err
assert_grep "cat: still being recorded" 'segment 2: still being recorded' held.err
mkdir other-torn && cp "$unsealed" other-torn/block-b0b0b0b0-00000002.iot && cp torn/lock other-torn/
assert_grep "verify: a file of another name is torn all the same" ': torn: ' \
	<("$hold" other-torn/lock "$ctl" verify other-torn)

assert_eq "verify: one segment is said once" "1 0" \
	"$("$ctl" verify "$first" >one.txt; echo "$(wc -l <one.txt) $(grep -c together one.txt)")"
assert_eq "verify: one unsealed segment is said once" "1 0" \
	"$("$ctl" verify "$unsealed" >one.txt; echo "$(grep -c 'not sealed' one.txt) $(grep -c together one.txt)")"
assert_eq "verify: several segments, together" "together: complete: 3 segments, 6,000 requests, none lost" \
	"$("$ctl" verify whole | tail -n 1)"

mkdir gap
cp whole/*1.iot whole/*3.iot gap
assert_status "verify: a missing segment is unknown" 11 "$ctl" verify gap
assert_eq "verify: what no segment says alone is said together" 1 \
	"$("$ctl" verify gap | sed '1,/^together/d' | grep -c '^  - ')"

# ---- damage ----------------------------------------------------------------------------------------------

mkdir flipped cut
cp whole/*.iot flipped
victim=$(find flipped -name '*2.iot')
size=$(stat -c %s "$victim")
printf '\377' | dd of="$victim" bs=1 seek=$((size / 2)) conv=notrunc status=none
assert_status "verify: a flipped byte is 21" 21 "$ctl" verify flipped
"$ctl" cat --json flipped >flipped.jsonl 2>flipped.err
assert_eq "cat: damage is exit code 1" 1 $?
assert_num "cat: and the rest is shown" "$(wc -l <flipped.jsonl)" -ge 4000
assert_num "cat: what is damaged is not" "$(wc -l <flipped.jsonl)" -lt 6000
assert_grep "cat: and says which" 'corrupt' flipped.err
"$ctl" report --json flipped >flipped.json 2>/dev/null
assert_eq "report: damage is exit code 1, and at the top" "1 corrupt" "$? $(jq -r .record.verdict flipped.json)"
for json in "" --json; do
	"$ctl" $json report flipped 2>flipped.err >/dev/null
	assert_grep "report $json: stderr says why it failed" '^iotracectl: the input is damaged \(segment 2: ' flipped.err
done
"$ctl" export --format=csv -o flipped.csv flipped 2>flipped.err
assert_eq "export: damage is exit code 1" 1 $?
assert_grep "export: and stderr says why" '^iotracectl:   - segment 2: damaged' flipped.err
"$ctl" export --format=blktrace -o flipped.bt flipped 2>flipped.err
assert_grep "export of a directory: stderr says why" '^iotracectl:   - segment 2: damaged' flipped.err
"$ctl" segments flipped >/dev/null 2>&1
assert_ne "segments: never calls a file with a damaged footer whole" "" "$("$ctl" segments --json flipped | jq -r '.[1].verdict')"

cut=$(find torn -name '*2.open')
cp "$cut" cut/block-a0a0a0a0-00000002.open
truncate -s -100 cut/block-a0a0a0a0-00000002.open
assert_status "verify: a cut tail is 20" 20 "$ctl" verify cut
"$ctl" cat --json cut >cut.jsonl 2>cut.err
assert_eq "cat: a torn tail does not fail it" 0 $?
assert_num "cat: whole blocks of it" "$(wc -l <cut.jsonl)" -gt 0
assert_grep "cat: and it is said" 'torn' cut.err

: >empty.iot
head -c 5000 /dev/urandom >noise.iot
cp "$first" version.iot
printf '\377\377' | dd of=version.iot bs=1 seek=12 conv=notrunc status=none
mkdir nothing
for verb in cat report segments "export --format=csv"; do
	# shellcheck disable=SC2086 # a verb with its option
	{
		fails "$verb: empty file" 1 'empty.iot' "$ctl" $verb empty.iot
		fails "$verb: noise" 1 'noise.iot' "$ctl" $verb noise.iot
		fails "$verb: damaged header" 1 'version.iot' "$ctl" $verb version.iot
		fails "$verb: directory without segments" 1 'nothing.*no segments' "$ctl" $verb nothing
		fails "$verb: /dev/zero" 1 '/dev/zero' "$ctl" $verb /dev/zero
		fails "$verb: missing file" 1 'missing.iot.*No such file' "$ctl" $verb missing.iot
	}
done
fails "verify: empty file is corrupt" 21 'empty.iot' "$ctl" verify empty.iot
fails "verify: noise is corrupt" 21 'noise.iot' "$ctl" verify noise.iot
fails "verify: missing file" 1 'missing.iot.*No such file' "$ctl" verify missing.iot
fails "verify: /dev/zero" 1 '/dev/zero' "$ctl" verify /dev/zero
fails "the state directory is the default" 1 'nothing.*no segments' env IOTRACED_STATE_DIR="$dir/nothing" "$ctl" cat
assert_eq "a state directory from the environment" 6000 "$(IOTRACED_STATE_DIR=$dir/whole "$ctl" cat | wc -l)"
cp whole/*.iot nothing && cp noise.iot nothing
"$ctl" cat --json nothing >mixed.jsonl 2>mixed.err
assert_eq "one bad file among good ones" "1 6000" "$? $(wc -l <mixed.jsonl)"
assert_grep "and it is named" 'noise.iot' mixed.err

# A directory that cannot be read may hold segments: the others are read, and the verdict is unknown.
mkdir -p part/locked && cp whole/*.iot part && chmod 755 . && chmod -R a+rX whole part && chmod 0 part/locked
cp "$ctl" ctl-copy
as_nobody() { [ "$(id -u)" != 0 ] || set -- setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; "$@"; }
as_nobody ./ctl-copy verify part >part.txt 2>part.err
assert_eq "verify: goes on past a directory it cannot read" "11 3" "$? $(grep -c '^part/.*: complete' part.txt)"
assert_grep "verify: and says so" '^  - not read: part/locked: Permission denied' part.txt
assert_eq "cat: likewise" 6000 "$(as_nobody ./ctl-copy cat part 2>part.err | wc -l)"
assert_grep "cat: on stderr" 'not read: part/locked: Permission denied' part.err
rm part/*.iot
fails "verify: nothing but what it cannot read is 4" 4 'part/locked: Permission denied; no segments' as_nobody ./ctl-copy verify part
rm ctl-copy

# ---- recover -----------------------------------------------------------------------------------------------

before=$(sha256sum <cut/block-a0a0a0a0-00000002.open)
"$ctl" recover cut/block-a0a0a0a0-00000002.open --output recovered.iot >recover.txt
assert_eq "recover: exit code" 0 $?
assert_grep "recover: says what was kept" 'recovered.iot: [0-9,]+ requests kept' recover.txt
assert_eq "recover: the input is as it was" "$before" "$(sha256sum <cut/block-a0a0a0a0-00000002.open)"
assert_eq "recover: every whole block" "$(wc -l <cut.jsonl)" "$("$ctl" cat --json recovered.iot 2>/dev/null | wc -l)"
assert_status "recover: the result is never complete" 11 "$ctl" verify recovered.iot
lz4 -t recovered.iot >/dev/null 2>&1
assert_eq "recover: the result is a valid LZ4 file" 0 $?
fails "recover: never replaces a file" 1 'exists already' "$ctl" recover cut/block-a0a0a0a0-00000002.open -o recovered.iot
mkdir into
"$ctl" recover cut/block-a0a0a0a0-00000002.open --output into >/dev/null
assert_eq "recover: into a directory" "into/block-a0a0a0a0-00000002.recovered.iot" "$(ls into/*)"
"$ctl" recover "$victim" >/dev/null
assert_eq "recover: a damaged segment, beside it" 0 "$([ -s "${victim%.iot}.recovered.iot" ]; echo $?)"
"$ctl" recover cut/block-a0a0a0a0-00000002.open >/dev/null
assert_eq "recover: never the name that the daemon will give it" "block-a0a0a0a0-00000002.open block-a0a0a0a0-00000002.recovered.iot" \
	"$(find cut -type f -printf '%f\n' | sort | paste -sd ' ')"
"$ctl" segments --json cut/block-a0a0a0a0-00000002.recovered.iot >ends.json
assert_eq "segments: a recovered one ends with its last request" \
	"$("$ctl" cat --json cut/block-a0a0a0a0-00000002.recovered.iot 2>/dev/null | jq -rs 'map(.realtime_ns) | max')" \
	"$(jq -r '.[0].last_ns' ends.json)"
"$ctl" verify recovered.iot >recovered.txt
assert_eq "verify: what follows from a recovery is one line" 1 "$(grep -c 'not known (' recovered.txt)"
assert_num "verify: few lines of a recovered segment" "$(wc -l <recovered.txt)" -le 5
assert_eq "verify --verbose: each reason" "$("$ctl" verify --json recovered.iot | jq '.segments[0].reasons | length')" \
	"$("$ctl" verify --verbose recovered.iot | grep -c '^  - ')"
assert_grep "report: a recovered segment does not know its losses" 'recorded, not all losses are known, see above' \
	<("$ctl" report recovered.iot)
fails "recover: nothing to do" 1 'nothing to recover' "$ctl" recover "$first"
fails "recover: noise" 1 'noise.iot' "$ctl" recover noise.iot
fails "recover: a directory" 1 'whole' "$ctl" recover whole
fails "recover: output directory is missing" 1 'No such file' "$ctl" recover "$cut" -o no/such/place.iot
fails "recover: no operand" 2 'recover FILE' "$ctl" recover
assert_eq "recover: leaves no temporary files" "" "$(find . -name '*.tmp*')"

# ---- usage ---------------------------------------------------------------------------------------------------

fails "no verb" 2 'which verb' "$ctl"
fails "unknown verb" 2 "did you mean 'report'" "$ctl" reprot
fails "unknown option" 2 "did you mean '--json'" "$ctl" cat --jsn
fails "bad time" 2 'teatime' "$ctl" cat --since teatime
fails "a latency without unit" 2 "'10' has no unit; write 10us, 10ms or 10s" "$ctl" cat --min-latency 10 whole
fails "a latency without unit, with a fraction" 2 'write 1.5us' "$ctl" cat --min-latency=1.5 whole
fails "a device in place of a path" 1 'vda: No such file.*; for a device write --dev vda$' "$ctl" report vda
for verb in "cat --json" "export --format=jsonl"; do
	# shellcheck disable=SC2086 # a verb with its option
	fails "$verb: a device that is not in the record" 0 \
		"^iotracectl: no request on 'sda'; devices known to this record: .*sdb" "$ctl" $verb --dev sda whole
done
"$ctl" report --dev sda whole >none.txt 2>none.err
assert_eq "report: a device that is not in the record" "0 1 No requests pass the filters." \
	"$? $(grep -c "no request on 'sda'; devices known to this record: .*nvme0n1" none.err) $(tail -n 1 none.txt)"
for d in sdb nvme0n1p2 8:16; do
	assert_eq "a device of the record is not called absent: $d" 0 \
		"$("$ctl" cat --dev $d --pid 999999 whole 2>&1 | wc -l)"
done
fails "export without format" 2 'needs --format=csv, ' "$ctl" export whole
fails "unknown format" 2 "did you mean 'csv'" "$ctl" export --format=cvs whole
fails "an option of another verb" 2 'does not go with cat; it belongs to export$' "$ctl" cat --strict whole
fails "an output for a verb without one" 2 'it belongs to status, recover, export and import$' "$ctl" cat -o x whole
for filter in "--since 12:00" "--until now"; do
	for verb in status inflight rotate flush probes config verify recover; do
		# shellcheck disable=SC2086 # an option with its value
		fails "$verb: refuses $filter" 2 "^iotracectl: ${filter%% *} does not go with $verb, .*; cat, follow, report and export do$" \
			"$ctl" --socket /nonexistent $verb $filter
	done
done
for filter in "--dev sda" "--op read" "--swap in" "--pid 1" "--comm x" "--min-latency 1s" "--id 1"; do
	for verb in status inflight rotate flush probes config verify recover; do
		# shellcheck disable=SC2086 # an option with its value
		fails "$verb: refuses $filter" 2 "^iotracectl: ${filter%% *} does not go with $verb, .*; top, cat, follow, report and export do$" \
			"$ctl" --socket /nonexistent $verb $filter
	done
done
fails "segments: refuses what it does not filter by" 2 'takes --since and --until only; top, cat, follow, report and export take all' \
	"$ctl" segments --op read whole
for question in "--flow udp" "--probe netif_receive_skb"; do
	# shellcheck disable=SC2086 # an option with its value
	"$ctl" export --format=csv --strict --force -o none.csv $question whole >none.txt 2>err
	assert_eq "export --strict: $question of a record without packets" 1 $?
	assert_grep "and why: $question" 'no packets are recorded here$' err
done
for verb in segments cat report verify recover "export --format=csv"; do
	# shellcheck disable=SC2086 # a verb with its option
	fails "$verb: an empty path" 2 "argument 1 of ${verb%% *} is an empty path$" "$ctl" $verb ""
done
fails "an empty socket" 2 '--socket: an empty path$' "$ctl" --socket "" status
fails "an empty output" 2 '--output: an empty path$' "$ctl" export --format=csv --output= whole
for d in 259:99999999999 4096:0 0:1048576 259: :1 99999999999999999999999999999999999:0; do
	fails "no device has this number: $d" 2 'is no device number; write MAJOR:MINOR, at most 4095:1048575$' "$ctl" cat --dev "$d" whole
done
assert_eq "the last device number" 0 "$("$ctl" cat --dev 4095:1048575 whole 2>/dev/null | wc -l)"

"$ctl" --help >help.txt
assert_eq "help: exit code" 0 $?
assert_grep "help" '^  export ' help.txt
assert_eq "help: live verbs under their heading" "status top inflight rotate flush probes config" \
	"$(sed -n '/^Verbs for the running daemon/,/^$/p' help.txt | awk '/^  [a-z]/ { print $1 }' | paste -sd ' ')"
assert_eq "help: the other verbs under theirs" "segments cat follow report replay explain drops verify recover archive export import" \
	"$(sed -n '/^Verbs for segments/,/^$/p' help.txt | awk '/^  [a-z]/ { print $1 }' | paste -sd ' ')"
for verb in status top inflight rotate flush probes config segments cat follow report replay explain drops verify recover archive export; do
	"$ctl" $verb --help >one.txt
	assert_eq "help of $verb" "0 1" "$? $(grep -c "^Usage: iotracectl \[OPTIONS\] $verb" one.txt)"
	assert_grep "help of $verb: an example" "^  iotracectl $verb" one.txt
	assert_eq "help $verb is the same" "" "$("$ctl" help $verb | cmp - one.txt 2>&1)"
	assert_eq "-h $verb is the same" "" "$("$ctl" -h $verb | cmp - one.txt 2>&1)"
	cat one.txt >>help.txt
done
assert_eq "help fits 80 columns" "" "$(grep -vE '^  iotracectl |^.{0,80}$' help.txt)"
fails "help of no verb" 2 "did you mean 'report'" "$ctl" help reprot
assert_grep "version" '^iotracectl [0-9]' <("$ctl" --version)

tap_end
