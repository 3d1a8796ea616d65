#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2154 # the libraries and their variables
#
# A state directory that fills up. While it is full, records wait in the ring and nothing is lost; rotation
# waits too; the daemon says what is wrong and goes on as soon as there is room. If the ring is too small for
# the wait, the kernel side counts and files, and the sum is still that of /proc/diskstats. A daemon that has
# to end on a full disk has kept room for the footer, which counts what could not be written: sealed, not complete.
# A state directory that is removed: the daemon says so at the first rotation, and does not end as if all were sealed.
#
# IOT_FULL_SECONDS (default 0): how long the disk stays full under load, before there is room, where the ring is too small.
# timeout: 240

cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/daemon.sh
. tests/lib/diskstats.sh
. tests/lib/loop.sh

dir=$(mktemp -d /dev/shm/iot-full.XXXXXX) || exit 1
fs=tmpfs fs_loop='' left=''
cleanup() {
	[ -n "${iot_pid:-}" ] && iot_stop KILL
	mountpoint -q "$dir/run/state" && umount "$dir/run/state"
	[ -z "$fs_loop" ] || losetup -d "$fs_loop" 2>/dev/null
	loop_done
	rm -rf "$dir"
}
trap cleanup EXIT
tools=${B:-build}/tests/tools
loop_setup "$dir" 64M || bail "loop device" "none to be had"

load() {
	fio --name=load --filename="$loop" --direct=1 --ioengine=io_uring --bs=4k --rw=randrw --iodepth=8 \
		--randrepeat=0 --norandommap --io_size=$(($1 * 4096)) --output=/dev/null >/dev/null || not_ok "$phase: load" "fio failed"
}

# The state directory's own file system, of kind $fs.
mount_state() {
	local size='' args=''
	left=150
	case $fs in
	tmpfs)
		mount -t tmpfs -o size=2m iot-full "$iot_state"
		return
		;;
	ext4) size=16M args="-m 0" ;; # root has no more than others
	xfs) size=320M left=400 ;; # some of it is for its own use
	esac
	rm -f "$dir/fs.img"
	truncate -s "$size" "$dir/fs.img"
	# shellcheck disable=SC2086 # words
	"mkfs.$fs" -q $args "$dir/fs.img" >"$dir/mkfs.log" 2>&1 || return 1
	fs_loop=$(losetup -f --show "$dir/fs.img") && mount -t "$fs" "$fs_loop" "$iot_state"
}
unmount_state() {
	umount "$iot_state"
	[ -z "$fs_loop" ] || losetup -d "$fs_loop"
	fs_loop=
}

# begin PHASE [CONFIGURATION LINE...]	on a file system with some 150 KiB left
begin() {
	phase=$1
	shift
	iot_setup "$dir/run"
	mount_state || bail "$phase: $fs" "cannot mount"
	fallocate -l "$(($(df --output=avail -k "$iot_state" | tail -n 1) - left))K" "$iot_state/filler" || bail "$phase: filler" "$fs"
	{
		printf 'devices:\n  include: [%s]\nretention:\n  min_free: 0\nstreams:\n  block:\n' "$loop_name"
		printf '    %s\n' "block_age: 50ms" "$@"
	} >"$iot_dir/config.yaml"
	loop_settle
	before=$(diskstats_snapshot "$loop_name")
	iot_start || bail "$phase: daemon" "it did not start"
}

last_error() { ctl --json status | jq -r '[.. | .last_error? // empty] | map(select(. != null)) | length'; }
troubled() { [ "$(last_error)" -gt 0 ]; }
untroubled() { [ "$(last_error)" = 0 ]; }

# fill [MORE]	records until the disk is full; where the ring loses most of them, that takes up to MORE further loads
fill() {
	local more=${1:-0}
	load 25000
	while ! wait_for 10 troubled && [ "$more" -gt 0 ]; do
		more=$((more - 1))
		load 10000
	done
	assert_status "$phase: the error is shown" 0 troubled
}

# check EXPECTED-VERIFY-STATUS
check() {
	local recorded unseen after want verdict
	loop_settle
	after=$(diskstats_snapshot "$loop_name")
	iot_stop
	assert_eq "$phase: daemon ends" 0 $?
	"$IOTRACECTL" export --format=csv --force --output "$dir/records.csv" "$iot_state" >/dev/null 2>&1
	"$IOTRACECTL" --json report "$iot_state" >"$dir/report.json"
	recorded=$(jq '[.devices[].ops[] | select(.op | IN("read", "write")) | .total] | add // 0' "$dir/report.json")
	want=$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))
	# The ids of what was lost are not listed: then up to a few interrupts' worth may be unexplained here.
	# Exactness under loss is test-exact.sh's.
	lost=$(jq '[.devices[].ops[].lost] | add // 0' "$dir/report.json")
	verdict=$1
	if [ "$1" = 0 ]; then
		unseen=$(unseen_in "$dir/records.csv")
		# Filed when a later life of the request proves that its end was not seen; see test-exact.sh.
		[ "$lost" -gt 0 ] && [ "$lost" -le "$unseen" ] && verdict=10
		unseen=$((unseen - lost))
	else
		unseen=$((want - recorded))
	fi
	assert_status "$phase: verify" "$verdict" "$IOTRACECTL" verify "$iot_state"
	[ "$unseen" = 0 ] || note "$phase: this kernel ran no program on the completion of $unseen requests"
	assert_eq "$phase: recorded + filed + never seen by a program = diskstats" "$want" "$((recorded + unseen))"
	assert_num "$phase: few were never seen" "$unseen" -le 128
	assert_num "$phase: nothing is there twice" "$unseen" -ge 0
}

begin "held in the ring"
fill
load 5000
ctl rotate >/dev/null 2>&1 &
rotate_pid=$!
sleep 0.5
rm "$iot_state/filler"
assert_status "$phase: it goes on when there is room" 0 wait_for 10 untroubled
wait "$rotate_pid"
load 2000
check 0
assert_num "$phase: nothing lost but what no program saw" "$lost" -le 128
unmount_state

begin "a ring too small for the wait" "ring_size: 512KiB"
fill 5
load 10000
until_second=$((SECONDS + ${IOT_FULL_SECONDS:-0}))
while [ "$SECONDS" -lt "$until_second" ]; do load 10000; done
rm "$iot_state/filler"
assert_status "$phase: it goes on when there is room" 0 wait_for 10 untroubled
load 2000
check 10
assert_num "$phase: what did not fit is filed" "$lost" -gt 1000
unmount_state

# What the books of all segments say of records: emitted, written, not written.
books() {
	for _segment in "$iot_state"/*.iot; do
		"$tools/segment-dump" "$_segment"
	done | awk '/^books / { sub("written=", "", $13); emitted += $7; written += $13; failed += $15 }
		END { print emitted + 0, written + 0, failed + 0 }'
}

# end_full FS	there is no room when the daemon has to end, but what was kept for the footer
end_full() {
	local status full emitted written failed
	fs=$1
	begin "an end on a full $fs"
	fill 3
	iot_stop
	assert_eq "$phase: the daemon seals and ends" 0 $?
	assert_eq "$phase: nothing is left open" "" "$(find "$iot_state" -name '*.open')"
	full=yes
	sh -c 'head -c 4M /dev/zero >"$1/more"' sh "$iot_state" 2>/dev/null && full=no
	assert_eq "$phase: the disk is full still" yes "$full"
	rm -f "$iot_state/filler" "$iot_state/more"
	"$IOTRACECTL" --json verify "$iot_state" >"$dir/verify.json" 2>&1
	status=$?
	# Lost (10), or unknown (11) where not even the owners found room.
	assert_num "$phase: never complete" "$status" -ge 10
	assert_num "$phase: sealed and whole" "$status" -le 11
	assert_eq "$phase: the books balance" 0 "$(jq .whole.books_unbalanced "$dir/verify.json")"
	read -r emitted written failed < <(books)
	assert_num "$phase: records were not written" "$failed" -gt 0
	assert_eq "$phase: each record was written or is counted" "$emitted" $((written + failed))
	assert_eq "$phase: and is in the file" "$written" "$(iot_cat 2>/dev/null | wc -l)"
	unmount_state
	fs=tmpfs
}

end_full ext4
end_full xfs
[ -z "${LONG:-}" ] || end_full tmpfs

phase="a state directory that is gone"
iot_setup "$dir/gone"
printf 'devices:\n  include: [%s]\nstreams:\n  block:\n    block_age: 50ms\n    segment_age: 300ms\n' \
	"$loop_name" >"$iot_dir/config.yaml"
iot_start || bail "$phase: daemon" "it did not start"
rm -r "$iot_state"
load 2000 # blocks go on being written to the removed file: they must not hide the error
said() { grep -q "the next segment cannot be begun: No such file" "$iot_log"; }
assert_status "$phase: it is said" 0 wait_for 10 said
assert_status "$phase: it is shown" 0 troubled
iot_stop
assert_eq "$phase: the daemon says that it failed" 74 $?
assert_eq "$phase: nothing is called sealed after that" 0 \
	"$(sed '1,/cannot be begun/d' "$iot_log" | grep -c ': sealed ')"
tap_end
