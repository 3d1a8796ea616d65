#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
#
# The page of `report --html`, without a browser (tests/browser has one): what it draws are the numbers that the
# other verbs print, names that are HTML stay names, the file is whole or not there, memory does not grow. No root.

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/tap.sh
. "$here/../lib/tap.sh"

B=${B:-build}
case $B in /*) ;; *) B=$here/../../$B ;; esac
ctl=${IOTRACECTL:-$B/iotracectl}
tools=$B/tests/tools
[ -x "$ctl" ] || bail page "no $ctl"
[ -x "$tools/make-segment" ] || bail page "no $tools/make-segment: run make tests-bin"
command -v jq >/dev/null || { skip page "needs jq"; tap_end; }

export TZ=UTC
dir=$(mktemp -d /tmp/iotraced-page.XXXXXX) || bail page "no temporary directory"
trap 'rm -rf "$dir"' EXIT
cd "$dir" || bail page "no temporary directory"

segments() { "$tools/make-segment" "$@" >/dev/null || bail page "cannot make segments"; }
segments lossy segments=3 requests=2000 lost=21
segments doubt segments=2 requests=300 lost=2 unattributed=5
segments open segments=2 requests=300 open
segments hostile segments=1 requests=300 lost=2 hostile
for kind in lost torn clean; do
	mkdir "packets-$kind"
	"$tools/make-packets" "packets-$kind" $kind || bail page "cannot make packets"
done
mkdir both && cp lossy/* packets-lost/* both/

# The document within a page.
document() { sed -n 's|^<script type="application/json" id="document">\(.*\)</script>$|\1|p' "$1"; }
# The text of one at a path, sorted, so that it can be compared.
sorted() { jq -S "${2:-.}" "$1"; }

# ---- every number is one that another verb prints ----------------------------------------------------------

# numbers NAME DIRECTORY OPTION...
numbers() {
	local name=$1 input=$2 page
	shift 2
	page=$name.html
	"$ctl" report --html "$page" --json "$@" "$input" >"$name.json" 2>"$name.err"
	assert_eq "$name: exit code" 0 "$?"
	document "$page" >"$name.document"
	assert_eq "$name: the document is what --json prints" "" \
		"$(cmp <(sorted "$name.document") <(sorted "$name.json") 2>&1)"
	assert_eq "$name: the report in it is report --json" "" \
		"$(cmp <(sorted "$name.document" 'del(.pictures)') <("$ctl" --json report "$@" "$input" | sorted -) 2>&1)"
	for by in process cgroup; do
		assert_eq "$name: top by $by is report --by $by" "" \
			"$(cmp <(sorted "$name.document" ".pictures.top[] | select(.what == \"$by\")") \
				<("$ctl" --json report --by $by "$@" "$input" | sorted - .by) 2>&1)"
	done
	# Over all columns: requests and bytes of each kind, what was lost, and each bar of each histogram.
	jq '
		def grid: split(";") | map(split(" ")[] | select(. != "") | split(":") | {row: .[0] | tonumber, n: .[1] | tonumber});
		def kind($op; $swap): if $swap == "out" then "swap_out" elif $swap == "in" then "swap_in"
			elif $op == "read" then "read" elif $op == "write" or $op == "zone_append" then "write"
			elif ["discard", "secure_erase", "write_zeroes"] | index($op) then "discard" else "other" end;
		def add_up: group_by(.key) | map({key: .[0].key, value: map(.value) | add}) | map(select(.value != 0)) | from_entries;
		{
			report: ([.devices[] | .disk as $disk | .ops[] | .op as $op | .swap | to_entries[] |
				.value as $cell | ($disk + " " + kind($op; .key)) as $key |
				{key: ("requests " + $key), value: $cell.requests}, {key: ("bytes " + $key), value: $cell.bytes_done},
				{key: ("lost " + $disk), value: $cell.lost},
				($cell.device_ns.histogram[] | {key: ("latency " + $key + " " + (.from | tostring)), value: .n})] | add_up),
			pictures: ([.pictures.devices[] | .disk as $disk |
				(.requests | to_entries[] | {key: ("requests " + $disk + " " + .key), value: (.value | add)}),
				(.bytes | to_entries[] | {key: ("bytes " + $disk + " " + .key), value: (.value | add)}),
				{key: ("lost " + $disk), value: ((.lost // []) | add // 0)},
				(.latency | to_entries[] | .key as $kind | .value | grid[] |
					{key: ("latency " + $disk + " " + $kind + " " +
						(if .row < 4 then 0 else pow(2; .row / 4 | floor) end | tostring)), value: .n})] | add_up)
		}' "$name.document" >"$name.sums"
	assert_eq "$name: sums over time are the report's" "" \
		"$(cmp <(sorted "$name.sums" .report) <(sorted "$name.sums" .pictures) 2>&1)"
	assert_eq "$name: all within the axis" 0 "$(jq .pictures.outside "$name.document")"
	assert_eq "$name: every list has all columns" true \
		"$(jq '.pictures | .axis.columns as $n | [.devices[] | (.requests, .bytes | .[] | length), (.queue_ns, .device_ns | length),
			(.latency[], (.map // {cells: {}}).cells[] | split(";") | length)] | all(. == $n)' "$name.document")"
}
numbers lossy lossy
numbers both both
numbers doubt doubt
numbers writes lossy --op write --dev nvme0n1 --since '2026-11-29 01:23:25' --until '2026-11-29 01:23:47'
numbers open open
assert_num "there is something to compare" "$(jq '.report | length' lossy.sums)" -gt 50
assert_eq "lost: in the column of its time" "21 21" \
	"$(jq -r '[.pictures.record.lanes[0].lost, .pictures.devices[0].lost | add] | join(" ")' lossy.document)"
assert_eq "filters hold for the pictures" "true true" \
	"$(jq -r '.requests as $n | .pictures | ([.devices[].requests | to_entries[] | select(.key == "write" or .key == "swap_out") | .value | add]
		| add == $n), (.devices | length == 1)' writes.document | xargs)"

# ---- the same over time, as text --------------------------------------------------------------------------------

# spark LOCALE	the two lines, without what is behind them
spark() { LC_ALL=$1 "$ctl" report lossy | sed -n 's/^ *\[\(.*\)\] 1s each, up to .*/\1/p'; }
for n in 1 2; do
	member=$([ $n = 1 ] && echo written_bytes || echo read_bytes)
	assert_eq "text: $member over time, the levels of the numbers" \
		"$(jq -r "[.over_time.rows[].$member] | max as \$max | map(if . == 0 then 0 else . / \$max * 7 + 1 | floor end | tostring) | join(\"\")" lossy.json)" \
		"$(spark C | sed -n ${n}p | tr ' .:=+*#@-' '012456783')"
done
assert_eq "text: the same in blocks where there is UTF-8" "$(spark C)" \
	"$(spark C.UTF-8 | sed 's/▁/./g; s/▂/:/g; s/▃/-/g; s/▄/=/g; s/▅/+/g; s/▆/*/g; s/▇/#/g; s/█/@/g')"

# ---- packets ---------------------------------------------------------------------------------------------------

assert_eq "packets: observations" "$("$ctl" --json replay packets-lost 2>/dev/null | jq '[.captures[].observations] | add')" \
	"$(jq .pictures.packets.observations both.document)"
assert_eq "packets: over time" true "$(jq '.pictures.packets | .observations == (.over_time | add)' both.document)"
assert_eq "drops: by reason and place as drops has them" "" \
	"$(cmp <(jq -c '.pictures.packets.drops.rows | map([.reason, .n, .lost, .bytes]) | sort[]' both.document) \
		<("$ctl" --json drops packets-lost 2>/dev/null | jq -c '.drops | group_by([.reason, .location, .ifindex, .netns])
			| map([.[0].reason, (map(.n) | add), (map(.lost) | add), (map(.bytes) | add)]) | sort[]') 2>&1)"
assert_eq "drops: over time" true "$(jq '.pictures.packets | [.reasons[].n] == [.reasons[].over_time | add]
	and ([.reasons[].n] | add) == ([.drops.rows[].n] | add)' both.document)"
for id in $(jq -r '.pictures.packets.ways[].packet' both.document); do
	assert_eq "packet $id as explain has it" "" \
		"$(cmp <(jq -S ".pictures.packets.ways[] | select(.packet == \"$id\") | del(.why, .observations)" both.document) \
			<("$ctl" --json explain "$id" packets-lost | jq -S ".packets[] | select(.packet == \"$id\") | del(.not_seen)") 2>&1)"
done
assert_eq "ways: a drop of each reason, what was lost, three of the others" "dropped dropped lost most observations slowest usual" \
	"$(jq -r '[.pictures.packets.ways[].why] | join(" ")' both.document)"
assert_eq "lost packets are no lost requests" "0 0" \
	"$("$ctl" --json report packets-lost | jq -r '"\(.lost) \(.devices | length)"')"
"$ctl" report --html asked.html --id 2003 packets-lost
assert_eq "--id: that packet" "2003 asked for lost" \
	"$(document asked.html | jq -r '.pictures.packets.ways | map([.packet, .why, .verdict] | join(" ")) | join(",")')"

# ---- the record on the time axis ------------------------------------------------------------------------------

# lane FILE	its letters, repeated ones once
lane() { jq -r '.pictures.record.lanes[0].state' "$1" | tr -s 'a-z-'; }
assert_eq "lane: lost for the time of the loss only" clc "$(lane lossy.document)"
assert_eq "lane: doubt about a segment is one about all of its time" cu "$(lane doubt.document)"
assert_eq "lane: windows of doubt" "unattributed 5" "$(jq -r '.pictures.record.windows[0] | "\(.kind) \(.n)"' doubt.document)"
assert_eq "lane: no footer, no claim" cu "$(lane open.document)"
mkdir hole && cp lossy/*1.iot lossy/*3.iot hole
"$ctl" report --html hole.html hole && document hole.html >hole.document
assert_eq "lane: a segment that is not there" "c-clc" "$(lane hole.document)"
cp lossy/*2.iot damaged.iot && size=$(stat -c %s damaged.iot) &&
	printf '\xff\xff\xff\xff' | dd of=damaged.iot bs=1 seek=$((size / 2)) conv=notrunc status=none
"$ctl" report --html damaged.html damaged.iot 2>damaged.err
assert_eq "damage: exit code, and the page all the same" "1 u" "$? $(document damaged.html >d.json && lane d.json)"
assert_grep "damage: at the top" '<p id="verdict" class="bad"><strong>corrupt</strong>' damaged.html
assert_grep "verdict at the top" '<p id="verdict" class="warn"><strong>lost</strong> <span>3 segments, 6,000 requests, 21 lost' lossy.html
assert_grep "with its reasons" '^<li>segment 3: block_rq_complete: 21 observations lost, filed by owner' lossy.html

# ---- what comes from a trace is text ----------------------------------------------------------------------------

numbers hostile hostile
assert_eq "hostile names: they are in the document" "</title><img src=x onerror=evil()> </script><b>\"\\" \
	"$(jq -r '"\(.pictures.record.lanes[0].host) \(.pictures.top[0].rows[0].comm)"' hostile.document | head -n 1)"
"$ctl" report --html plain.html doubt
assert_eq "hostile names: the page has the elements of any other" \
	"$(grep -oE '<[/!]?[a-zA-Z-]+' plain.html | grep -v 'li$' | sort | uniq -c)" \
	"$(grep -oE '<[/!]?[a-zA-Z-]+' hostile.html | grep -v 'li$' | sort | uniq -c)"

# ---- the file -------------------------------------------------------------------------------------------------------

assert_eq "the file is whole" "<!DOCTYPE html> </html>" "$(head -n 1 lossy.html) $(tail -n 1 lossy.html)"
assert_eq "nothing is left to put in" 0 "$(grep -c '<!--@' lossy.html)"
assert_eq "it asks nobody for anything" "" \
	"$(grep -oE '(src|href)="[^#"]*"|@import|url\(|https?://[^"]*' lossy.html | grep -v '^http://www.w3.org/2000/svg$')"
cp lossy.html before.html
assert_status "onto a full disk: an error" 1 "$ctl" report --html /dev/full lossy
(ulimit -f 8 && trap '' XFSZ && exec "$ctl" report --html before.html doubt) 2>too-large.err
assert_eq "cut short: an error, and the old page stays" "1 0 " "$? $(cmp before.html lossy.html; echo $?) $(ls ./*.tmp 2>/dev/null)"
assert_grep "cut short: why" 'cannot write before.html: File too large' too-large.err
"$ctl" report --html before.html doubt
assert_eq "else it is replaced" "0 1" "$? $(cmp -s before.html lossy.html; echo $?)"
assert_eq "to a pipe" "" "$("$ctl" report --html /dev/stdout lossy | cmp - lossy.html 2>&1)"
assert_status "no such directory" 1 "$ctl" report --html nowhere/page.html lossy
assert_status "two reports" 2 "$ctl" report --html x.html --by file lossy
assert_status "not with other verbs" 2 "$ctl" cat --html x.html lossy

# ---- memory -----------------------------------------------------------------------------------------------------------

segments many segments=2 requests=150000 plain
segments few segments=2 requests=15000 plain
for size in many few; do
	"$tools/peak-rss" $size.rss "$ctl" report --html $size.html $size || not_ok "memory: $size" "it failed"
done
assert_eq "memory: all of them are in the page" 300000 "$(document many.html | jq '[.pictures.devices[].requests[] | add] | add')"
# Blocks of a reader and cells of more rows: megabytes, where ten times the requests would be 36 MB more.
assert_num "memory: ten times the requests, not ten times the memory ($(cat few.rss), $(cat many.rss) KiB)" \
	$(($(cat many.rss) - $(cat few.rss))) -lt 8192
tap_end
