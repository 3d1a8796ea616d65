#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# A daemon that records while the n-th call of a kind fails, for every n that a hundred requests and a rotation make:
# writing, opening, renaming, syncing (tests/preload/fail-nth.c). It goes on by itself, and in the end nothing is
# missing: what was recorded is what /proc/diskstats counted, the record is proved, and the daemon ends with 0.
# After a failed fdatasync nobody knows what is on the disk, so that file must never be synced again: it is
# written anew, and nothing is lost while it can be read back.
#
# SWEEP_STEPS=1000 goes through all; the default takes the first few of each kind. SWEEP_MALLOC=1: memory as well.
#
# timeout: 300

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
steps=${SWEEP_STEPS:-6}

dir=$(mktemp -d /dev/shm/iot-sweep-daemon.XXXXXX) || exit 1
cleanup() {
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
loop_setup "$dir" 64M || bail "loop device" "none to be had"
iot_setup "$dir/run"
printf 'devices:\n  include: [%s]\nretention:\n  min_free: 0\nstreams:\n  block:\n    block_age: 50ms\n' "$loop_name" \
	>"$iot_dir/config.yaml"

fail() { "$B/tests/tools/fail-sweep" "$@"; }
page=$dir/page
fail set "$page" calls=write at=0
cat >"$dir/iotraced" <<-END
	#!/bin/sh
	FAIL_CONTROL=$page LD_PRELOAD=$B/tests/preload/fail-nth.so exec "$IOTRACED" "\$@"
END
chmod +x "$dir/iotraced"
IOTRACED=$dir/iotraced
loop_settle
before=$(diskstats_snapshot "$loop_name")
iot_start || bail "daemon" "it did not start"

load() { dd if=/dev/zero of="$loop" bs=4k count="$1" oflag=direct status=none; }
untroubled() { [ "$(ctl --json status | jq -r '[.. | .last_error? // empty] | map(select(. != null)) | length')" = 0 ]; }

# sweep CALLS ERROR [STEPS]
sweep() {
	local n count=0 failed met=0 name="$1 as $2"
	for ((n = 1; n <= ${3:-$steps}; n++)); do
		fail set "$page" calls="$1" at=$n error="$2"
		load 100
		sleep 0.1
		timeout 20 "$IOTRACECTL" --socket "$iot_sock" rotate >"$dir/rotate.txt" 2>&1
		read -r count failed _ < <(fail get "$page")
		fail set "$page" calls=write at=0
		kill -0 "$iot_pid" 2>/dev/null || bail "$name, call $n" "the daemon has ended: $(tail -n 2 "$iot_log")"
		[ "$failed" -gt 0 ] || break
		met=$((met + failed))
	done
	assert_num "$name: some failed" "$met" -gt 0
	# Where the next segment could not be begun, it is tried again when there is a reason to begin it.
	ctl rotate >/dev/null 2>&1
	if wait_for 20 untroubled; then
		ok "$name: it goes on after $met failures (some $count calls a round)"
	else
		not_ok "$name" "it is still in trouble after $met failures: $(tail -n 2 "$iot_log")"
	fi
}

sweep write ENOSPC
sweep write EIO
sweep write EINTR
sweep write EDQUOT 3
sweep write short 3
sweep size EDQUOT 3 # allocating ahead
sweep size EIO 3
sweep open ENFILE
sweep rename EIO
sweep sync EINTR
sweep sync EIO
sweep sync ENOSPC
rewritten() { grep -c "the disk failed to take segment [0-9]*: .*it was written anew, 0 of its records" "$iot_log"; }
assert_num "seal: it is said" "$(rewritten)" -gt 0
seal_rewritten=$(rewritten)
sed -i 's/block_age: 50ms/&\n    sync: block/' "$iot_dir/config.yaml"
kill -HUP "$iot_pid"
sleep 0.5
sweep sync EIO
assert_num "block: it is said" "$(rewritten)" -gt "$seal_rewritten"
read -r _ _ again < <(fail get "$page")
assert_eq "no file is synced after a sync of it has failed" 0 "$again"
# json-c 0.16 takes a failed strdup() in its parser for a key and crashes the process that reads a request: what this
# finds is not only ours, so it is for a look at the rest.
[ -z "${SWEEP_MALLOC:-}" ] || sweep malloc ENOMEM $((steps * 3))
load 50
loop_settle
after=$(diskstats_snapshot "$loop_name")
iot_stop
assert_eq "the daemon ends" 0 $?
assert_eq "nothing is left open" 0 "$(find "$iot_state" -name '*.open*' | wc -l)"
assert_status "the record is proved" 0 iot_proved "$iot_state"
"$IOTRACECTL" export --format=csv --force --output "$dir/records.csv" "$iot_state" >/dev/null 2>&1
unseen=$(unseen_in "$dir/records.csv")
recorded=$(($(wc -l <"$dir/records.csv") - 1))
want=$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))
assert_eq "recorded + never seen by a program = diskstats" "$want" "$((recorded + unseen))"
assert_eq "no request is there twice" 0 "$(tail -n +2 "$dir/records.csv" | cut -d, -f1 | sort | uniq -d | wc -l)"
tap_end
