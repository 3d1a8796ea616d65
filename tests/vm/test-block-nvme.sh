#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# Every kind of request on an NVMe disk under each I/O scheduler, and on a partition of it: the record is right
# field by field, and equals the kernel's counters.
#
# timeout: 300
# vm: --disk data=128M --module bfq --module mq-deadline --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"

run_all() {
	block_run "$1" read:0:4K:3 write:1M:64K read:1M:64K dsync:2M:4K:2 fsync \
		write-batch:4M:4K:8 read-batch:4M:4K:8 read-deep:8M:4K:6 write-deep:10M:8K:6 \
		discard:16M:1M zeroout:20M:64K write:24M:2M read:24M:2M write:0:512 read:512:512
}

block_start nvme
for scheduler in none mq-deadline bfq; do
	if ! vm_scheduler "$disk" "$scheduler"; then
		not_ok "nvme $scheduler" "no such scheduler: $(cat "/sys/block/$disk/queue/scheduler")"
		continue
	fi
	block_begin "nvme $scheduler" "$disk"
	run_all "$disk"
	# How many is what diskstats says; a busy machine lets a scheduler merge some more.
	block_claim "nvme $scheduler: bios were merged" true '(map(.merges) | add) >= 14'
	if [ "$scheduler" = none ]; then
		# Direct issue skips the insert: the queue time is then unknown, not 0.
		block_claim "nvme none: direct issue has no insert" true 'any(.op == "read" and .insert_ns == null)'
	else
		block_claim "nvme $scheduler: reads were inserted" true 'map(select(.op == "read")) | all(.insert_ns != null)'
	fi
	block_end
done

# Passthrough: no sector; whether the kernel counts it differs by version, and the record says which.
vm_scheduler "$disk" none
block_begin "nvme passthrough" "$disk"
block_run "$disk" nvme-read:0:4K nvme-read:1M:64K read:0:4K
block_end

# Partition: sectors count from the disk's start, the partition is named.
printf 'n\np\n1\n2048\n+32M\nn\np\n2\n\n\nw\n' | fdisk "/dev/$disk" >/tmp/fdisk.log 2>&1
wait_for 10 test -b "/dev/${disk}p1" || bail partition "not made: $(tail -n 2 /tmp/fdisk.log)"
assert_eq "nvme partition begins at" 2048 "$(cat "/sys/class/block/${disk}p1/start")"
block_part=${disk}p1
block_comm=partition
block_begin "nvme partition" "$disk"
run_all "${disk}p1"
block_end
block_stop

tap_end
