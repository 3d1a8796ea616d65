#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Which active swap areas the daemon says are covered: a disk, a partition, a file, device-mapper on a disk, zram; and
# that it notices when they come and go. Then streams.block.swap: drop, by a reload while swap goes on: what is swapped
# is counted as not selected, and ordinary I/O is recorded as before.
#
# What differs by kernel is in test-swap; here it is little, so one is enough for make check
# (ALL_KERNELS=1: on 7.x as well, where it passes, too).
# vm-kernels: 6.1
# timeout: 300
# vm: --memory 384 --disk swap=256M --disk data=128M --module zram --module lzo-rle --module dm-mod --module ext4 --tool dmsetup
# vm: --tool mkfs.ext4 --tool jq --built iotraced --built iotracectl

. /tests/lib/guest-lib.sh
. /tests/lib/verdict.sh

swap_disk=$(vm_disk swap) || bail disk "not found"
data=$(vm_disk data) || bail disk "not found"
work=/results/swap-areas
iot_setup $work
config() { printf '%s\n' "retention:" "  min_free: 0" "$@" >"$iot_dir/config.yaml"; }
status() { ctl --json status; }
# area PATH FIELD
area() { status | jq -r --arg path "$1" --arg field "$2" '.swap_areas[] | select(.path == $path) | .[$field]'; }
n_areas() { status | jq '.swap_areas | length'; }
logged() { grep -c "$1" "$iot_log"; }
has_areas() { [ "$(n_areas)" = "$1" ]; }

config
iot_start || bail daemon "it did not start"
assert_eq "no area at first" 0 "$(n_areas)"
assert_eq "status says so" 1 "$(ctl status | grep -c 'Swap areas: none active')"

# Both starts are named: the default for the second one can be the gap before the first.
printf 'n\np\n1\n2048\n+16M\nn\np\n2\n65536\n\nw\n' | fdisk "/dev/$data" >/tmp/fdisk.log 2>&1
wait_for 10 test -b "/dev/${data}p2" || bail partition "not made: $(tail -n 2 /tmp/fdisk.log)"
{ mkswap "/dev/${data}p1" >/dev/null && swapon "/dev/${data}p1"; } || bail swapon partition
# The log is the watch's: nobody has asked for the status since.
wait_for 5 grep -q "swap area /dev/${data}p1 on ${data}p1: every request" "$iot_log"
assert_eq "a new area is noticed" 0 $?
assert_eq "partition" exact "$(area "/dev/${data}p1" coverage)"
assert_eq "partition: its number" "$(cat "/sys/class/block/${data}p1/dev")" "$(area "/dev/${data}p1" dev)"
assert_eq "partition: its type" partition "$(area "/dev/${data}p1" type)"
swapoff "/dev/${data}p1"
wait_for 5 grep -q "swap area on ${data}p1 is no longer" "$iot_log"
assert_eq "its end is noticed" 0 $?
assert_eq "and it is not shown" 0 "$(n_areas)"

{ mkfs.ext4 -q "/dev/${data}p2" 2>/tmp/mkfs.log && mkdir -p /mnt && mount -t ext4 "/dev/${data}p2" /mnt; } || bail ext4 "$(cat /tmp/mkfs.log)"
dd if=/dev/zero of=/mnt/swap bs=1M count=8 conv=fsync 2>/tmp/dd.log || bail "swap file" "$(cat /tmp/dd.log; df /mnt; ls -l /mnt)"
chmod 600 /mnt/swap
{ mkswap /mnt/swap >/dev/null && swapon /mnt/swap; } || bail swapon file
assert_eq "file" "exact file ${data}p2" "$(area /mnt/swap coverage) $(area /mnt/swap type) $(area /mnt/swap disk)"
swapoff /mnt/swap
rm /mnt/swap

if vm_modprobe dm-mod && dmsetup create part --table "0 65536 linear /dev/$swap_disk 0" >/tmp/dm.log 2>&1; then
	dm=$(basename "$(readlink -f /dev/mapper/part)")
	[ -b "/dev/$dm" ] || dm=$(basename /sys/block/dm-*)
	[ -b "/dev/$dm" ] || mknod "/dev/$dm" b "$(cut -d: -f1 "/sys/block/$dm/dev")" "$(cut -d: -f2 "/sys/block/$dm/dev")"
	{ mkswap "/dev/$dm" >/dev/null && swapon "/dev/$dm"; } || bail swapon dm
	assert_eq "device-mapper" beneath "$(area "/dev/$dm" coverage)"
	assert_eq "device-mapper: on what" 1 "$(area "/dev/$dm" why | grep -c "$swap_disk")"
	swapoff "/dev/$dm"
	dmsetup remove part
else
	skip "device-mapper" "$(cat /tmp/dm.log 2>/dev/null)"
fi

vm_modprobe lzo-rle 2>/dev/null # what zram compresses with on 5.10, without saying so to modprobe
if vm_modprobe zram; then
	wait_for 5 test -b /dev/zram0
	echo 16M >/sys/block/zram0/disksize || bail zram "no size"
	{ mkswap /dev/zram0 >/dev/null && swapon /dev/zram0; } || bail swapon zram
	assert_eq "zram" invisible "$(area /dev/zram0 coverage)"
	assert_eq "zram: why" "zram: compressed memory makes no requests" "$(area /dev/zram0 why)"
	wait_for 5 grep -q "swap area /dev/zram0: invisible to the request layer: zram" "$iot_log"
	assert_eq "zram: logged" 0 $?
	assert_eq "zram: in probes" 1 "$(ctl probes | grep -c 'zram0.*invisible')"
	assert_eq "zram: in status" 1 "$(ctl status | grep -c 'zram0.*invisible')"
	swapoff /dev/zram0
else
	skip "zram" "this kernel has none"
fi

# ---- swap: keep and drop ---------------------------------------------------------------------------------

swap_pages() { awk '$1 == "pswpout" || $1 == "pswpin" { n += $2 } END { print n }' /proc/vmstat; }

# Writes more into a tmpfs than there is memory for, reads it back, and ordinary data beside it. Prints how many bytes
# the kernel says it swapped; the area is in use no longer than that, so nothing is swapped beside.
swap_some() {
	_before=$(swap_pages)
	swapon "/dev/$swap_disk" || bail swapon disk
	mkdir -p /fill && mount -t tmpfs -o size=400m none /fill
	dd if=/dev/urandom of=/fill/x bs=1M count="$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / 1024 + 40))" 2>/dev/null
	dd if=/dev/zero of="/dev/${data}p1" bs=64K count=16 conv=fsync 2>/dev/null
	cat /fill/x >/dev/null
	rm /fill/x
	umount /fill
	swapoff "/dev/$swap_disk"
	echo $((($(swap_pages) - _before) * $(getconf PAGESIZE 2>/dev/null || echo 4096)))
}
# By what remains of a second, the clock's resolution here.
now() { sleep 1.1; date +%s; }
tagged() { ctl --json cat --swap=only --since "@$1" "$iot_state" 2>/dev/null | jq -s 'map(.bytes_done) | add // 0'; }
header_says() { head -c 8192 "$1" | grep -aq "$2" && echo yes; }
newest() { find "$iot_state" -name "*.iot" | sort | tail -n 1; }

{ mkswap "/dev/$swap_disk" >/dev/null && swapon "/dev/$swap_disk"; } || bail swapon disk
assert_eq "disk" exact "$(area "/dev/$swap_disk" coverage)"
swapoff "/dev/$swap_disk"
t0=$(now)
kernel=$(swap_some)
ctl flush
assert_num "the workload swaps" "$kernel" -gt 10000000
assert_eq "kept: tagged bytes" "$kernel" "$(tagged "$t0")"
assert_eq "kept: status counts them" "$kernel" "$(status | jq '.streams[0].swap | .out_bytes + .in_bytes')"

config streams: '  block:' '    swap: drop'
kill -HUP "$iot_pid"
wait_for 10 grep -q 'new filter is in effect' "$iot_log" || bail reload "$(cat "$iot_log")"
assert_eq "drop: status says so" true "$(status | jq '.streams[0].swap.dropped')"
t1=$(now)
kernel=$(swap_some)
ctl flush
assert_num "the workload swaps again" "$kernel" -gt 10000000
assert_eq "dropped: no tagged request" 0 "$(tagged "$t1")"
assert_eq "dropped: ordinary writes are there" 1048576 "$(ctl --json cat --op write --dev "${data}p1" --since "@$t1" "$iot_state" 2>/dev/null |
	jq -s 'map(.bytes_done) | add // 0')"
ctl rotate >/dev/null
assert_eq "dropped: the segment says so" yes "$(header_says "$(newest)" 'without swap')"

config
: >"$iot_log"
kill -HUP "$iot_pid"
wait_for 10 grep -q 'new filter is in effect' "$iot_log" || bail reload "$(cat "$iot_log")"
t2=$(now)
kernel=$(swap_some)
ctl flush
assert_eq "kept again: tagged bytes" "$kernel" "$(tagged "$t2")"
iot_stop
assert_eq "the daemon ends well" 0 $?
iot_complete_or_missed iotracectl "$iot_state"
assert_eq "everything is proved" 0 $?
tap_end
