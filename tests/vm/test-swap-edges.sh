#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Where a swap tag could go wrong: requests that were under way when recording began or ended, requests that are taken
# back or completed in parts, losses, and swap that the request layer does not see at all.
#
# Sessions: errors meta loop; with LONG=1, or named as arguments, edge nameless place zram as well
# (tests/vm/run.sh 6.12 tests/vm/test-swap-edges.sh edge).
#
# vm-kernels: 6.12
# timeout: 400
# vm: --memory 256 --module scsi_debug --module sd_mod --module zram --module lzo-rle --module lz4
# vm: --module mq-deadline --module loop --tool losetup
# vm: --built iotraced --built iotracectl --built tests/tools/block-workload --built tests/tools/swap-hog
# vm: --built tests/tools/quiet-counters --tool mkfs.ext4 --tool filefrag --check check-swap.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-swap.sh

only=${*:-errors meta loop}
[ -z "$vm_long" ] || only="edge errors meta loop nameless place zram"
wanted() { case " $only " in *" $1 "*) ;; *) return 1 ;; esac }

vm_modprobe sd_mod || bail modules "no sd_mod"
vm_modprobe scsi_debug dev_size_mb=64 delay=1 max_queue=16 num_parts=2 || bail modules "no scsi_debug"
wait_for 10 test -b /dev/sda2 || bail disk "scsi_debug made no sda2"
debug=/sys/bus/pseudo/drivers/scsi_debug
swap_cgroups
mkswap /dev/sda2 >/dev/null || bail disk "mkswap sda2"
sleep 0.5

# Nothing but a moment, not an instant of rest: /proc/diskstats counts a request when it ends, as the record does, so
# the readings around start and end bound what the records of a dedicated disk may sum up to.
edge() {
	quiet-counters -n "$swap_session/$1" || bail "$1" "the counters cannot be read"
}

# Recording begins and ends while the disk is at work, with many requests under way.
if wanted edge; then
	echo 12 >$debug/delay
	swapon /dev/sda2 || bail edge "swapon failed"
	swap_huge off
	swap_ask=14 swap_get=8
	swap_limit max
	# One alone leaves a processor to the daemon, which is long about its start in an emulated machine.
	beside_in_cgroup hog swap-hog -n edge $swap_ask fill run:600000
	sleep 1
	swap_name=edge
	note "$swap_name: begins at $(cut -d" " -f1 /proc/uptime) s"
	swap_session=/results/$swap_name
	iot_setup "$swap_session"
	printf '%s\n' "retention:" "  min_free: 0" >"$iot_dir/config.yaml"
	swap_extents /dev/sda2 >"$swap_session/areas"
	echo sda >"$swap_session/edge"
	edge a0
	iot_start || bail "$swap_name daemon" "it did not start"
	edge a1
	sleep 1
	edge b0
	iot_stop
	assert_eq "$swap_name: the daemon ends well" 0 $?
	sleep 0.2
	edge b1
	kill "$beside" || not_ok edge "the hog has ended by itself"
	wait "$beside" 2>/dev/null
	swap_off /dev/sda2 || bail edge "swapoff failed"
	wait_for 10 diskstats_idle sda
	echo 1 >$debug/delay || not_ok edge "the disk is still at work"
fi

swap_all=sda
swap_raw=sda1

# The area is small, and slots stay taken as long as the page in memory is clean.
swap_ask=14 swap_get=6

# Requests taken back (a transport error is tried again, a busy host returns the request), and reads that the disk
# completes by half: the rest goes on as the same request, with another first bio.
fail_every() {
	echo 0 >$debug/opts
	echo "$1" >$debug/every_nth
	echo "$2" >$debug/opts
}
swap_failing() {
	for _opts in 16 0x8000 0x100; do
		fail_every 5 $_opts
		in_cgroup hog swap-hog -n "errors $_opts" "$swap_mb" fill touch:150 pageout touch:150 || return 1
	done
	fail_every 0 0
}
if wanted errors; then
	swap_begin errors
	swap_area /dev/sda2
	swap_huge off
	swap_limit max
	swap_beside swap_failing
	swap_claim "swap requests were requeued" true '.requeued > 10'
	swap_claim "swap requests came in parts" true '.partial > 10'
	swap_end
fi

# Swap-outs merged with a file system's metadata, which the block layer counts to the same class: a swap file on an ext4
# without a journal, of which each group's blocks begin right behind its bitmaps and its one block of inodes. (Directories
# lie in their inodes, or their blocks would come between.) Where the inodes are dirty, whatever order the two come in,
# both are in the queue before anything leaves it.

# Each command is sent back, so nothing is done and all that comes meanwhile waits in the scheduler.
hold() { fail_every 1 0x8000; }
release() { fail_every 0 0; }

# Pages, exactly: each processor's share is added first.
pages_of() {
	cat /proc/sys/vm/stat_refresh
	awk -v name="nr_$1" '$1 == name { print $2 }' /proc/vmstat
}
many_under_way() { [ "$(pages_of writeback)" -ge 1500 ]; }
none_dirty() { [ "$(pages_of dirty)" = 0 ]; }

metadata_queued() {
	touch /meta/?
	sync &
	_sync=$!
	wait_for 30 none_dirty || not_ok "$swap_name" "the inodes do not go into the queue"
	sleep 0.3
}
swap_queued() {
	swap-hog -n meta 8 fill pageout verify &
	_hog=$!
	wait_for 60 many_under_way || not_ok "$swap_name" "swap does not go into the queue"
}
swap_mixed_writes() {
	for _order in "swap_queued metadata_queued" "metadata_queued swap_queued"; do
		sync
		hold
		for _step in $_order; do $_step; done
		release
		wait "$_sync"
		wait "$_hog"
		assert_eq "$swap_name: the workload ends well ($_order)" 0 $?
	done
}

# The ring is full before what matters is done, since the daemon does not get to run.
fill_ring() {
	kill -STOP "$iot_pid"
	# Of the first block alone: the next ones may be the swap file's.
	# shellcheck disable=SC2046 # words
	block-workload -c fill -o /dev/null /dev/sda1 $(yes read:0:4K | head -n 400) || bail "$swap_name" "block-workload failed"
}

meta_disk() {
	vm_scheduler sda mq-deadline || bail meta "no mq-deadline"
	mkfs.ext4 -q -F -b 4096 -I 256 -g 1024 -N 128 -m 0 -O inline_data,^has_journal,^flex_bg,^resize_inode,^metadata_csum \
		-E lazy_itable_init=0,nodiscard /dev/sda1 >/tmp/mkfs.log 2>&1 || bail meta "mkfs.ext4: $(cat /tmp/mkfs.log)"
	mkdir -p /meta
	mount -t ext4 /dev/sda1 /meta || bail meta "ext4 cannot be mounted"
	for group in 1 2 3 4 5 6 7 8; do mkdir /meta/$group; done
	dd if=/dev/zero of=/meta/swapfile bs=1M count=24 conv=fsync 2>/dev/null && chmod 600 /meta/swapfile
	mkswap /meta/swapfile >/dev/null || bail meta "mkswap"
	sync
	# One command at the disk, room for all the others in the scheduler, no limit to what is merged, and nobody who
	# slows writers down (blk-wbt).
	depth=$(cat /sys/block/sda/device/queue_depth)
	requests=$(cat /sys/block/sda/queue/nr_requests) sectors=$(cat /sys/block/sda/queue/max_sectors_kb)
	echo 1 >/sys/block/sda/device/queue_depth
	echo 256 >/sys/block/sda/queue/nr_requests
	cat /sys/block/sda/queue/max_hw_sectors_kb >/sys/block/sda/queue/max_sectors_kb 2>/dev/null ||
		note "requests are limited to $sectors kB"
	[ ! -e /sys/block/sda/queue/wbt_lat_usec ] || echo 0 >/sys/block/sda/queue/wbt_lat_usec
}
# For a workload under a limit of memory; memory.high, since on 6.12 memory.max had it killed here.
ordinary_disk() {
	echo "$depth" >/sys/block/sda/device/queue_depth
	echo "$requests" >/sys/block/sda/queue/nr_requests
	echo "$sectors" >/sys/block/sda/queue/max_sectors_kb
	[ ! -e /sys/block/sda/queue/wbt_lat_usec ] || echo -1 >/sys/block/sda/queue/wbt_lat_usec
}

# Twice: seen by the daemon, and lost.
if wanted meta; then
	meta_disk
	swap_begin meta "streams:" "  block:" "    ring_size: 16KiB"
	: >"$swap_session/raw"
	echo 10 >"$swap_session/verify"
	swap_area /meta/swapfile
	swap_mixed_writes
	fill_ring
	swap_mixed_writes
	ordinary_disk
	swap_limit high
	in_cgroup hog swap-hog -n lost "$swap_mb" fill touch:100
	assert_eq "meta: the other workload ends well" 0 $?
	kill -CONT "$iot_pid"
	swap_claim "swap was merged with metadata" true '.mixed > 0'
	# Whether anything comes back from swap is the kernel's choice; what did is held against its counter as it is.
	# shellcheck disable=SC2016 # jq's variable
	swap_claim_lost "swap out was lost, and swap in if there was any" true '.n_out > 0 and (.n_in > 0 or $pswpin == 0)'
	swap_claim_lost "swap that was merged with metadata was lost" true '.mixed > 0'
	swap_end
	umount /meta
fi

# The same where nothing is known of a request but what its end shows: what is filed then has no owner, but the
# rule and the share all the same.
if wanted nameless; then
	meta_disk
	swap_begin nameless "streams:" "  block:" "    ring_size: 4KiB" "    in_flight_entries: 1"
	: >"$swap_session/raw"
	echo 11 >"$swap_session/verify"
	swap_area /meta/swapfile
	fill_ring
	swap_mixed_writes
	kill -CONT "$iot_pid"
	swap_claim_lost "swap that was merged with metadata was lost" true '.mixed > 0'
	swap_end
	ordinary_disk
	umount /meta
fi

# Swap into a file by way of a loop device that reads and writes it directly: the file's disk gets the very pages of the
# swap cache that the loop device gets, locked and waiting to be filled. They are swapped once, on the loop device.
if wanted loop; then
	mkfs.ext4 -q -F -b 4096 -O ^has_journal -E lazy_itable_init=0,nodiscard /dev/sda1 >/tmp/mkfs.log 2>&1 ||
		bail loop "mkfs.ext4: $(cat /tmp/mkfs.log)"
	mkdir -p /below
	mount -t ext4 /dev/sda1 /below || bail loop "ext4 cannot be mounted"
	dd if=/dev/zero of=/below/area bs=1M count=24 conv=fsync 2>/dev/null
	vm_modprobe loop || bail modules "no loop"
	/usr/local/bin/losetup --direct-io=on /dev/loop0 /below/area || bail loop "losetup"
	assert_eq "loop: it reads and writes directly" 1 "$(cat /sys/block/loop0/loop/dio)"
	mkswap /dev/loop0 >/dev/null || bail loop "mkswap"
	sync
	swap_all="sda loop0"
	swap_begin loop
	: >"$swap_session/raw"
	swap_area /dev/loop0
	swap_limit high
	in_cgroup hog swap-hog -n loop "$swap_mb" fill touch:300 pageout touch:300 verify
	assert_eq "loop: the workload ends well" 0 $?
	swap_claim "the file was read and written, too" true '.n > 2 * (.n_in + .n_out)'
	swap_end
	losetup -d /dev/loop0
	umount /below
	swap_all=sda
fi

# A kernel whose BTF has neither the flag nor the page flags: an area that is a disk or a partition is still told, by its
# place. (Nothing is merged across its border: it has its header there.)
if wanted place; then
	export IOTRACED_WITHOUT=pages,swap-flag
	swap_begin place
	unset IOTRACED_WITHOUT
	echo partition >"$swap_session/rule"
	swap_area /dev/sda2
	wait_for 5 grep -q "swap area /dev/sda2 " "$iot_log"
	assert_eq "place: the daemon has noticed the area" 0 $?
	swap_hog max
	swap_end
fi

# Swap into compressed memory: counted by the kernel, but no request is ever made.
if wanted zram; then
	vm_modprobe lzo-rle # what zram compresses with on 5.10, without saying so to modprobe
	vm_modprobe zram || bail modules "no zram"
	echo 64M >/sys/block/zram0/disksize || bail zram "no disk"
	mkswap /dev/zram0 >/dev/null || bail zram "no swap area"
	swap_begin zram
	echo invisible >"$swap_session/coverage"
	swap_area /dev/zram0
	: >"$swap_session/areas"
	swap_hog max
	swap_end
fi

tap_end
