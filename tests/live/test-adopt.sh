#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# SIGKILL with somebody who keeps the descriptors (tests/tools/fd-supervisor.c, as systemd does): at random instants
# and at every instant with a name, with one ring and two, and with rings too small for the load. The capture
# goes on: records and ledger together are what /proc/diskstats counted, nothing twice, books balance, and the
# verdict is what it would be without the kills. And what cannot be gone on with ends exactly, or as torn as it is.
#
# usage: test-adopt.sh [PHASE...]	of: one two small named named-two restart wrong unsealed config programs lost part (all)
#
# IOT_ADOPT_KILLS (default 8): kills at random for each kind of rings. IOT_ADOPT_NAMED (default 1): rounds
# through the named points. A longer count than make check's: IOT_ADOPT_KILLS=500 IOT_ADOPT_NAMED=10.
#
# timeout: 480

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
IOTRACED=${IOTRACED:-${B:-build}/iotraced} IOTRACECTL=${IOTRACECTL:-${B:-build}/iotracectl}
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh
. tests/lib/adopt.sh
tools=${B:-build}/tests/tools

dir=$(mktemp -d /dev/shm/iot-adopt.XXXXXX) || exit 1
fio_pid='' sup_pid=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[ -n "$fio_pid" ] && kill "$fio_pid" 2>/dev/null && wait "$fio_pid"
	[ -n "$sup_pid" ] && kill -KILL "$sup_pid" 2>/dev/null
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
loop_setup "$dir" 64M || bail "loop device" "none to be had"
kills=${IOT_ADOPT_KILLS:-8}
rounds=${IOT_ADOPT_NAMED:-1}

# begin PHASE [CONFIGURATION LINE...]	$age: of segments
begin() {
	local name=$1
	shift
	loop_settle
	before=$(diskstats_snapshot "$loop_name")
	adopt_begin "$name" < <(
		printf 'devices:\n  include: [%s]\nstreams:\n  block:\n' "$loop_name"
		printf '    %s\n' "block_records: 64" "block_age: 10ms" "segment_age: ${age:-150ms}" "$@"
	)
	assert_eq "$phase: device quiet while starting" "$before" "$(diskstats_snapshot "$loop_name")"
}

# load ARGUMENT...	in the background, until unload
load() {
	fio --name=load --filename="$loop" --direct=1 --ioengine=io_uring --bs=4k --randrepeat=0 --time_based \
		--runtime=3000 --output=/dev/null "$@" >/dev/null 2>&1 &
	fio_pid=$!
}
unload() {
	kill -INT "$fio_pid"
	wait "$fio_pid"
	fio_pid=
}

# The end of it: sealed, verified, exported. $verified is verify's status.
end() {
	unload
	loop_settle
	after=$(diskstats_snapshot "$loop_name")
	adopt_end
	"$IOTRACECTL" export --format=csv --output "$iot_dir/records.csv" "$iot_state" >/dev/null 2>&1
	records=$(($(wc -l <"$iot_dir/records.csv") - 1))
	ledger=$(jq '[.losses[].n] | add // 0' "$iot_dir/records.csv.loss.json")
	produced=$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))
	note "$phase: $killed kills, $produced requests, $records records, $ledger in the ledger, $(jq length "$iot_dir/segments.json") segments"
}

twice() { tail -n +2 "$iot_dir/records.csv" | awk -F, '{ print $1, $34 }' | sort | uniq -d | wc -l; }

exact() {
	local hidden
	adopt_whole
	assert_eq "$phase: no record twice" 0 "$(twice)"
	# Completions that this kernel showed to no program (tests/live/test-exact.sh) and that no later life of the
	# request has proved yet: their ids are missing, and books that balance say that it was not us.
	hidden=$(($(unseen_in "$iot_dir/records.csv") - ledger))
	if [ "$hidden" -gt 0 ] && [ "$hidden" -le 8 ] && [ "$produced" != $((records + ledger)) ]; then
		note "$phase: $hidden completions were not shown to any program"
		produced=$((produced - hidden))
	fi
	assert_eq "$phase: produced = records + ledger" "$produced" $((records + ledger))
}

# Without the kills nothing would be missing (but what the kernel shows to no program): then with them nothing is.
proved() {
	if [ "$verified" = 10 ] && jq -e '[.losses[].cause] | all(. == "unseen")' "$iot_dir/records.csv.loss.json" >/dev/null; then
		note "$phase: $ledger completions were not shown to any program"
		verified=0
	fi
	[ "$verified" = 0 ] || jq -r '.whole.reasons[]' "$iot_dir/verify.json" | sed 's/^/# /' | head -n 20
	assert_eq "$phase: complete" 0 "$verified"
}

# ---- at random instants ---------------------------------------------------------------------------------

phase_one() {
	begin "one ring"
	assert_eq "one ring: state, rings, links, programs, maps and the daemon are kept" "exe link map prog ring state" \
		"$(sed -n 's/^fd block\.[0-9a-f]\{16\}\.[0-9a-f]\{16\}\.\([a-z]*\).*/\1/p' "$sup" | sort -u | xargs)"
	load --rw=randrw --iodepth=8 --rate_iops=2000
	kill_random "$kills"
	end
	exact
	proved
	assert_eq "one ring: what has ended is kept no longer" "$(count fd)" "$(count remove)"
	assert_num "one ring: gone on with" "$(grep -c 'going on' "$iot_log")" -ge $((kills / 2))
}

phase_two() {
	begin "two rings" "ring_cpus: 1"
	load --rw=randrw --iodepth=8 --numjobs=2 --rate_iops=1500
	kill_random "$kills"
	end
	exact
	proved
}

phase_small() {
	begin "small rings" "ring_cpus: 1" "ring_size: 8KiB"
	load --rw=randrw --iodepth=16 --numjobs=2 --rate_iops=500
	kill_random "$kills"
	end
	exact
	assert_eq "small rings: lost, and said so" 10 "$verified"
}

# ---- at instants with a name ------------------------------------------------------------------------------

phase_named() {
	begin "named, one ring"
	load --rw=randrw --iodepth=8 --rate_iops=2000
	named "${adopt_points[@]}"
	end
	exact
	proved
}

phase_named_two() {
	begin "named, two rings" "ring_cpus: 1"
	load --rw=randrw --iodepth=8 --numjobs=2 --rate_iops=1500
	named flipped:1 resumed:1 block:1 block-written:1 block-written:8 footer:1 clearing:1 resume-flipped:1
	end
	exact
	proved
}

# ---- restarted ----------------------------------------------------------------------------------------------

phase_restart() {
	local i
	begin "restarts"
	load --rw=randrw --iodepth=8 --rate_iops=2000
	for ((i = 0; i < 4; i++)); do
		pause $((RANDOM % 400))
		# shellcheck disable=SC2119 # no option
		restart
	done
	end
	exact
	proved
	assert_eq "restarts: each was left, none was killed" "4 0" "$(grep -c 'leaving the capture to a successor' "$iot_log") $(grep -c '^exit [0-9]* [1-9]' "$sup")"
	assert_eq "restarts: what has ended is kept no longer" "$(count fd)" "$(count remove)"
}

# The service manager gives up on what cannot start, and drops what it keeps: so that is sealed before.
phase_wrong() {
	begin "wrong configuration"
	change() {
		echo 'streams: [' >>"$iot_dir/config.yaml"
		: >"$iot_dir/again"
		kill -USR1 "$(cat "$iot_dir/pid")"
		wait_for 30 refused || not_ok "$phase: start" "not refused"
		sed -i '$d' "$iot_dir/config.yaml"
	}
	refused() { grep -q '^exit [0-9]* 78' "$sup"; }
	load --rw=randrw --iodepth=8 --rate_iops=2000
	sleep 0.5
	change
	wait_for 30 ready 2 || not_ok "$phase: start" "no READY within 30 s"
	rm "$iot_dir/again"
	sleep 0.5
	end
	finished "the configuration is wrong"
}

# What its predecessor could not seal is as little forgotten by the successor.
phase_unsealed() {
	local age=1h
	begin "unsealed"
	load --rw=randrw --iodepth=8 --rate_iops=500
	sleep 0.3
	rm "$iot_state"/*.open
	assert_status "unsealed: rotate fails" 1 ctl rotate
	kill -KILL "$(cat "$iot_dir/pid")"
	wait_for 30 ready 2 || not_ok "$phase: start" "no READY within 30 s"
	assert_eq "unsealed: the successor's status says so" "unknown 1 degraded" \
		"$(ctl --json status | jq -r '"\(.streams[0].verdict) \(.streams[0].seal_errors) \(.state)"')"
	end
	assert_eq "unsealed: one capture" 1 "$(captures)"
	assert_grep "unsealed: it is logged" 'segment 1 could not be sealed: No such file.*its file is gone' "$iot_log"
}

# ---- what cannot be gone on with ----------------------------------------------------------------------------

# A short load, a start that finds CHANGE made by a function, another load. What the two captures are is the caller's.
changed() {
	load --rw=randrw --iodepth=8 --rate_iops=2000
	sleep 0.5
	"$1"
	kill -KILL "$(cat "$iot_dir/pid")"
	wait_for 30 ready 2 || not_ok "$phase: start" "no READY within 30 s"
	sleep 0.5
	end
}

# The first capture was drained and sealed, to its last record; the second knows nothing of it.
finished() {
	assert_eq "$phase: two captures" 2 "$(captures)"
	assert_grep "$phase: it says why" "the capture before ends with block-.*: $1" "$iot_log"
	assert_eq "$phase: both are sealed by the daemon" '["shutdown","shutdown"]' \
		"$(jq -c 'group_by(.name | split("-")[1]) | map(last.reason)' "$iot_dir/segments.json")"
	assert_eq "$phase: the books balance" 0 "$(whole .whole.books_unbalanced)"
	assert_eq "$phase: no record twice" 0 "$(twice)"
	assert_eq "$phase: the first is proved" yes "$([[ $(verdict 1) = @(0|10) ]] && echo yes)"
	assert_eq "$phase: the second is proved" yes "$([[ $(verdict 2) = @(0|10) ]] && echo yes)"
}

phase_config() {
	begin "configuration"
	change() { echo '    ring_size: 2MiB' >>"$iot_dir/config.yaml"; }
	changed change
	finished "the configuration has changed"
}

# A daemon whose programs are others: here only their line information is (a byte of the source text in it).
phase_programs() {
	begin "other programs"
	LC_ALL=C sed 's/if (!run->cell)/if (!run->cehl)/g' "$IOTRACED" >"$dir/other"
	chmod +x "$dir/other"
	assert_status "other programs: a byte differs" 1 cmp -s "$IOTRACED" "$dir/other"
	change() { echo "$dir/other" >"$iot_dir/argv0"; }
	changed change
	finished "its program was replaced"
	assert_grep "other programs: by whom" "is ended by the program that recorded it: this build has other programs" "$iot_log"
	# Without that program, what the two builds have in common is enough.
	begin "other programs alone"
	echo ".exe" >"$iot_dir/forget"
	change() {
		echo "$dir/other" >"$iot_dir/argv0"
		kill -USR2 "$sup_pid"
	}
	changed change
	finished "this build has other programs"
}

# As without anybody who keeps anything: a torn file, recovered, and a verdict that says so.
torn() {
	assert_eq "$phase: two captures" 2 "$(captures)"
	# Two files are open while one epoch follows another.
	assert_num "$phase: the first was recovered" "$(jq '[.[] | select(.reason == "recovered")] | length' "$iot_dir/segments.json")" -ge 1
	assert_eq "$phase: no record twice" 0 "$(twice)"
	assert_eq "$phase: the first is not proved" 11 "$(verdict 1)"
	assert_eq "$phase: the second is" yes "$([[ $(verdict 2) = @(0|10) ]] && echo yes)"
	assert_eq "$phase: nothing of the first is kept" "$(count fd)" $(($(count remove) + $1))
}

phase_lost() {
	begin "nothing kept"
	change() { kill -USR2 "$sup_pid"; }
	changed change
	torn "$(($(count fd) / 2))"
}

phase_part() {
	begin "not all kept"
	echo ".ring.0" >"$iot_dir/forget"
	change() { kill -USR2 "$sup_pid"; }
	changed change
	torn 1
	assert_grep "not all kept: it says so" "cannot be gone on with: not all rings were inherited" "$iot_log"
}

[ $# -gt 0 ] || set -- one two small named named-two restart wrong unsealed config programs lost part
for arg; do
	"phase_${arg//-/_}"
done
tap_end
