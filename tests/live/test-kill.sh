#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# SIGKILL outside systemd: at 100 random instants and at every instant with a name (daemon/crash-point.h), under
# load, with blocks and rotations every few milliseconds. The next start recovers what was left: every whole
# block is kept, the footer says `recovered`, and nothing of it is ever reported complete.
#
# timeout: 700

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh

dir=$(mktemp -d /dev/shm/iot-kill.XXXXXX) || exit 1
fio_pid=
cleanup() {
	[ -n "$fio_pid" ] && kill "$fio_pid" 2>/dev/null && wait "$fio_pid"
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
loop_setup "$dir" 64M || bail "loop device" "none to be had"
iot_setup "$dir/run"
cat >"$iot_dir/config.yaml" <<-END
	devices:
	  include: [$loop_name]
	streams:
	  block:
	    block_records: 64
	    block_age: 10ms
	    segment_size: 16KiB
	    segment_age: 300ms
END
fio --name=load --filename="$loop" --direct=1 --ioengine=io_uring --bs=4k --rw=randrw --iodepth=8 \
	--rate_iops=2000 --time_based --runtime=680 --output=/dev/null >/dev/null 2>&1 &
fio_pid=$!

launch() {
	"$IOTRACED" --config "$iot_dir/config.yaml" --state-dir "$iot_state" --socket "$iot_sock" "$@" \
		>>"$iot_log" 2>&1 </dev/null &
	iot_pid=$!
}

# Waits for its end, silently, and copies what it left open (again, if recovery was killed too).
buried() {
	wait "$iot_pid"
	iot_pid=
	n_kills=$((n_kills + 1))
	find "$iot_state" -name '*.open' -exec cp -t "$dir/left" {} +
}

opened() {
	kill -0 "$iot_pid" 2>/dev/null || return 0
	# Its own: what it found is recovered before it opens a segment.
	[ "$(find "$iot_state" -name '*.open' -newer "$dir/launched" | wc -l)" -gt 0 ]
}

# pause MSEC
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# die_at POINT:COUNT
die_at() {
	local tries=300
	IOTRACED_CRASH_AT=$1 launch
	while kill -0 "$iot_pid" 2>/dev/null && [ "$tries" -gt 0 ]; do
		sleep 0.05
		tries=$((tries - 1))
	done
	if [ "$tries" = 0 ]; then
		unpassed="$unpassed $1"
		kill -KILL "$iot_pid"
	fi
	buried
}

# die_after MSEC	of recording
die_after() {
	touch "$dir/launched"
	launch
	wait_for 20 opened
	pause "$1"
	kill -KILL "$iot_pid" 2>/dev/null
	buried
}

kills=${IOT_KILLS:-100} # at random
n_kills=0 unpassed=''
mkdir "$dir/left"
for point in next-open:2 flipped:2 block:9 block-written:9 sealed:2 synced:2 renamed:2 before-clear:2 cleared:2 \
	next-open:1 flipped:1 block:1 sealed:1 cleared:1; do
	die_at "$point" 2>/dev/null # without "Killed" by the shell
done
for point in recovered:1 recovered-renamed:1; do
	die_after 100 2>/dev/null
	die_at "$point" 2>/dev/null # without "Killed" by the shell
done
assert_eq "every named point is passed" "" "$unpassed"
n_named=$n_kills
# At random, from the first record to several rotations later, and every tenth while it starts and recovers.
while [ "$n_kills" -lt $((n_named + kills)) ]; do
	if [ $((n_kills % 10)) = 0 ]; then
		launch
		pause $((RANDOM % 600))
		kill -KILL "$iot_pid" 2>/dev/null
		buried 2>/dev/null
	else
		die_after $((RANDOM % 300)) 2>/dev/null
	fi
done
launch --duration 0.1
{ wait "$iot_pid"; } 2>/dev/null
assert_eq "the last start ends well" 0 $?
iot_pid=
kill -INT "$fio_pid"
wait "$fio_pid"
fio_pid=

# What could be read of the torn files against what was made of them; a file without a header becomes .bad.
for file in "$dir"/left/*.open; do
	"$IOTRACECTL" --json segments "$file" 2>/dev/null || echo "[{\"name\": \"$(basename "$file")\", \"records\": null}]"
done | jq -c '.[] | {name: .name | rtrimstr(".open"), records}' | sort >"$dir/left.json"
"$IOTRACECTL" --json segments "$iot_state" >"$iot_dir/segments.json"
bad=$(find "$iot_state" -name '*.bad' -printf '"%f"\n' | jq -sc 'map(rtrimstr(".bad"))')
note "$n_kills kills left $(wc -l <"$dir/left.json") open files with $(jq -s 'map(.records // 0) | add' "$dir/left.json") records"
assert_num "kills left open files" "$(wc -l <"$dir/left.json")" -ge $((kills / 2))
assert_num "whole blocks were at stake" "$(jq -s 'map(.records // 0) | add' "$dir/left.json")" -gt 1000
assert_eq "every whole block is kept" "[]" "$(jq -sc --slurpfile s "$iot_dir/segments.json" --argjson bad "$bad" '
	($s[0] | map({key: (.name | rtrimstr(".iot")), value: .records}) | from_entries) as $sealed
	| map(select(if .records == null then (.name | IN($bad[])) | not else $sealed[.name] != .records end))' "$dir/left.json")"
assert_eq "nothing stays open" 0 "$(find "$iot_state" -name '*.open' -o -name '*.recovering' | wc -l)"
"$IOTRACECTL" --json verify "$iot_state" >"$iot_dir/verify.json"
assert_num "recovered segments" "$(jq '[.[] | select(.reason == "recovered")] | length' "$iot_dir/segments.json")" -gt 30
assert_eq "no recovered segment is called complete or lost" 0 "$(jq -s '
	(.[0] | map(select(.reason == "recovered") | .name)) as $recovered
	| [.[1].segments[] | select(.path | split("/") | last | IN($recovered[])) | select(.verdict | IN("complete", "lost"))]
	| length' "$iot_dir/segments.json" "$iot_dir/verify.json")"
assert_eq "no books out of balance" 0 "$(jq '[.segments[].books_unbalanced] | add' "$iot_dir/verify.json")"
assert_eq "no damaged file" 0 "$(jq '[.segments[] | select(.code >= 20)] | length' "$iot_dir/verify.json")"
assert_status "together: unknown" 11 "$IOTRACECTL" verify "$iot_state"
"$IOTRACECTL" export --format=csv --force --output "$iot_dir/records.csv" "$iot_state" >/dev/null 2>&1
# Unique within a capture.
assert_eq "no record twice" 0 "$(awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; if (!at["id"] || !at["capture"]) print "no such column\nno such column"; next }
	{ print $at["id"], $at["capture"] }' "$iot_dir/records.csv" | sort | uniq -d | wc -l)"

tap_end
