#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# null_blk: a disk that completes in the submitter's own context, with several hardware queues.
#
# timeout: 240
# vm: --module null_blk --module bfq --module mq-deadline --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

vm_modprobe null_blk nr_devices=0 || bail modules "no null_blk"
mount -t configfs configfs /sys/kernel/config || bail configfs "cannot be mounted"
config=/sys/kernel/config/nullb/iot
mkdir "$config" || bail null_blk "no configfs"
for setting in memory_backed=1 discard=1 size=128 blocksize=512 submit_queues=2 queue_mode=2 irqmode=0 cache_size=4; do
	echo "${setting#*=}" >"$config/${setting%=*}" || bail null_blk "it takes no $setting"
done
echo 1 >"$config/power"
# Named after its directory in newer kernels, nullbN before.
disk=$(find /sys/block/ -type l \( -name 'nullb*' -o -name iot \) | sed 's/.*\///')
[ -b "/dev/$disk" ] || bail null_blk "no disk came"

# It has no write-zeroes: the block layer writes zero pages.
block_zeroout='write'
block_start null
for scheduler in none mq-deadline bfq; do
	vm_scheduler "$disk" "$scheduler" || bail "null $scheduler" "no such scheduler"
	block_begin "null $scheduler" "$disk"
	block_run "$disk" read:0:4K:3 write:1M:64K dsync:2M:4K fsync write-batch:4M:4K:8 read-batch:4M:4K:8 \
		read-deep:8M:4K:6 write-deep:10M:4K:6 discard:16M:1M zeroout:20M:64K
	block_end
done

# Each CPU has its queue: the record names CPU and queue of each request.
vm_scheduler "$disk" none
block_expect=no
block_begin "null queues" "$disk"
for cpu in 0 1; do
	block_comm=cpu$cpu
	block_run_on "$cpu" "$disk" read:0:4K:4
	# Kernels spread CPUs over queues differently: sysfs tells.
	queue=$(grep -lx "$cpu" /sys/block/"$disk"/mq/*/cpu_list | sed 's/.*mq\///; s/\/.*//')
	block_claim "null queues: CPU $cpu" "[[\"cpu$cpu\",$cpu,$queue]]" \
		"map(select(.comm == \"cpu$cpu\") | [.comm, .issue_cpu, .hwq]) | unique"
done
block_end
block_stop

tap_end
