#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# A disk that takes nothing for a while. The kernel tells of it once, at the next sync, and says of a later sync that
# all is well although the bytes are not there. So the segment is written anew when the disk is back, and
# after the page cache is gone every record is still on the disk.
#
# vm-kernels: 5.10
# timeout: 240
# vm: --memory 512 --disk state=64M --disk load=64M --module dm-flakey --tool dmsetup --tool mkfs.ext4 --tool dumpe2fs
# vm: --built iotraced --built iotracectl --tool jq

. /tests/lib/guest-lib.sh

state=$(vm_disk state) || bail disks "not found"
load=$(vm_disk load) || bail disks "not found"
vm_modprobe dm-flakey || bail dm-flakey "the kernel has none"
iot_setup /tmp/run

# Only the blocks of files fail: errors of the journal or of inodes would end the file system, not a sync.
/usr/local/bin/mkfs.ext4 -q -b 4096 -N 256 -J size=4 -E packed_meta_blocks=1,lazy_itable_init=0 "/dev/$state" || bail mkfs "it failed"
first=$(dumpe2fs "/dev/$state" 2>/dev/null | sed -n 's/^  Free blocks: \([0-9]*\)-.*/\1/p' | head -n 1)
[ -n "$first" ] || bail dumpe2fs "no free block"
meta=$((first * 8)) sectors=$(cat "/sys/block/$state/size")
table() { printf '0 %s linear /dev/%s 0\n%s %s %s\n' "$meta" "$state" "$meta" "$((sectors - meta))" "$1"; }
good() { table "linear /dev/$state $meta"; }
bad() { table "flakey /dev/$state $meta 0 3600 1 error_writes"; }
# Without freezing the file system, which would sync it.
change() {
	if ! { "$1" | dmsetup load disk && dmsetup suspend --noflush --nolockfs disk && dmsetup resume disk; }; then
		bail "dmsetup" "$1"
	fi
}
good | dmsetup create disk || bail dmsetup "create"
dmsetup mknodes
mount -t ext4 /dev/mapper/disk "$iot_state" || bail mount "it failed"

# run SYNC
run() {
	sync_policy=$1
	printf 'devices:\n  include: [%s]\nretention:\n  min_free: 0\nstreams:\n  block:\n    block_age: 50ms\n    sync: %s\n' \
		"$load" "$1" >"$iot_dir/config.yaml"
	: >"$iot_log"
	before=$(diskstats_snapshot "$load")
	iot_start || bail "daemon" "it did not start"
	write 500
	sleep 0.3
	change bad
	write 300
	sleep 0.3
	timeout 60 iotracectl --socket "$iot_sock" rotate >/tmp/rotate.txt 2>&1 &
	rotate_pid=$!
	# shellcheck disable=SC2317 # called by way of wait_for
	failing() { [ "$(ctl --json status | jq '[.. | .last_error? // empty | select(. != null)] | length')" -gt 0 ]; }
	assert_status "$1: it is shown that writing fails" 0 wait_for 20 failing
	write 200 # goes on in the next segment
	change good
	wait "$rotate_pid"
	assert_eq "$1: the rotation ends when the disk is back" 0 $?
	write 100
	iot_stop
	assert_eq "$1: the daemon ends" 0 $?
	after=$(diskstats_snapshot "$load")
	# Nothing but what is on the disk.
	umount "$iot_state" && echo 3 >/proc/sys/vm/drop_caches
	mount -t ext4 /dev/mapper/disk "$iot_state" || bail "mount" "again"
	want=$(($(diskstats_delta "$before" "$after" reads) + $(diskstats_delta "$before" "$after" writes)))
	assert_status "$1: the record is complete" 0 iotracectl verify "$iot_state"
	assert_eq "$1: and holds every request" "$want" "$(iot_cat | wc -l)"
	assert_num "$1: the segment was written anew" \
		"$(grep -c "the disk failed to take segment [0-9]*: .*it was written anew, 0 of its records" "$iot_log")" -ge 1
	assert_eq "$1: nothing is left" "" "$(find "$iot_state" -name '*.open*' -o -name '*.recovering')"
	rm -f "$iot_state"/*.iot
}
write() { dd if=/dev/zero of="/dev/$load" bs=4k count="$1" oflag=direct 2>/dev/null; }

run seal
run block
umount "$iot_state"
dmsetup remove disk
tap_end
