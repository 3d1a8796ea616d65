#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# A blktrace recorded at the same time as our segments, over a workload of two processes; check-blktrace.sh holds
# the blktrace export of the segments against it.
#
# timeout: 240
# vm: --disk data=128M --module mq-deadline --built iotraced --built iotracectl
# vm: --built tests/tools/block-workload --tool blktrace --check check-blktrace.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

disk=$(vm_disk data) || bail disk "not found"
vm_scheduler "$disk" mq-deadline || bail scheduler "no mq-deadline"

block_trace=no
block_expect=no # two at once: a flush may serve both
block_start blktrace
mkdir -p "$block_session/theirs"
block_begin blktrace "$disk"
blktrace -d "/dev/$disk" -D "$block_session/theirs" -o bt >/tmp/blktrace.log 2>&1 &
tracer=$!
wait_for 20 test -e "/sys/kernel/debug/block/$disk/trace0" || bail blktrace "$(tail -n 2 /tmp/blktrace.log)"
sleep 1
block_comm=first
block_run "$disk" write-deep:0:4K:100 read-deep:0:4K:100 write:32M:64K:40 read:32M:64K:40 discard:64M:1M:1 &
first=$!
block_comm=second
block_run "$disk" read:8M:4K:100 write-batch:16M:4K:64 read-batch:16M:4K:64 write:100M:1M dsync:110M:4K:5
wait $first
block_claim "blktrace: who" '["first","second"]' 'map(select(.submitter == "start") | .comm) | unique'
block_end
kill -INT $tracer
wait $tracer
assert_grep "blktrace: it recorded" 'dropped 0' /tmp/blktrace.log
assert_eq "blktrace: without loss" 0 "$(grep -c 'dropped [1-9]' /tmp/blktrace.log)"
echo "$disk" >"$block_session/disk"
block_stop

tap_end
