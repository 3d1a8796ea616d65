#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# A SCSI disk (scsi_debug), which can be made to fail: media errors, requeues, a timeout that is aborted and tried
# again, a request that hangs; merges in the scheduler's queue of both directions and of whole requests.
#
# timeout: 300
# vm: --module scsi_debug --module sd_mod --module sg --module bfq --module mq-deadline --built iotraced
# vm: --built iotracectl --built tests/tools/block-workload --check check-block.sh

. /tests/lib/guest-lib.sh
. /tests/lib/guest-block.sh

for module in sd_mod sg; do vm_modprobe $module || bail modules "no $module"; done
vm_modprobe scsi_debug dev_size_mb=128 lbpu=1 lbpws=1 delay=1 max_queue=32 num_parts=2 || bail modules "no scsi_debug"
wait_for 10 test -b /dev/sda1 || bail disk "scsi_debug made no sda1"
disk=sda
debug=/sys/bus/pseudo/drivers/scsi_debug
sleep 0.5

block_start scsi
for scheduler in none mq-deadline bfq; do
	vm_scheduler "$disk" "$scheduler" || bail "scsi $scheduler" "no such scheduler"
	block_begin "scsi $scheduler" "$disk"
	block_run "$disk" read:0:4K:3 write:1M:64K dsync:2M:4K fsync write-batch:4M:4K:8 read-batch:4M:4K:8 \
		read-deep:8M:4K:6 discard:16M:1M zeroout:20M:64K write:24M:1M sg-inquiry
	block_end
done

vm_scheduler "$disk" mq-deadline
block_part=sda1
block_begin "scsi partition" "$disk"
block_run sda1 read:0:4K:2 write:1M:64K fsync discard:16M:1M zeroout:20M:64K
block_end
block_part=

# Merges in the scheduler: one command at a time, so that all but the first wait in the queue. The second is merged
# into from the front, and the fifth joins what it got with the fourth: three merges, one request.
queue_depth=$(cat /sys/block/$disk/device/queue_depth)
echo 1 >/sys/block/$disk/device/queue_depth
echo 25 >$debug/delay
block_expect=no
block_begin "scsi merges" "$disk"
block_run "$disk" write-at:4K:0:1M:1020K:1032K:1028K
block_claim "scsi merges: requests" '[[0,4096,0],[2040,16384,3]]' 'map([.sector, .bytes, .merges]) | sort'
block_claim "scsi merges: submitter" '[["start","wl"]]' 'map([.submitter, .comm]) | unique'
block_end
assert_eq "scsi merges: counted" 3 "$(diskstats_delta "$block_before" "$block_after" write_merges)"
echo 1 >$debug/delay
echo "$queue_depth" >/sys/block/$disk/device/queue_depth

# A medium error at a known place: the request that covers it fails as a whole, its neighbours do not.
echo 2 >$debug/opts
block_begin "scsi medium error" "$disk"
block_run "$disk" read:2321K:8K read:2329K:8K read:3M:8K
block_claim "scsi medium error: outcomes" '[[4642,8192,0,8192],[4658,8192,-61,8192],[6144,8192,0,8192]]' \
	'map([.sector, .bytes, .error, .bytes_done]) | sort'
block_claim "scsi medium error: raw status is there" 1 'map(select(.status != 0)) | length'
block_claim_file expect.json "scsi medium error: as the program saw it" '[0,61,0]' 'map(.errno)'
block_end
echo 0 >$debug/opts

# Requeues: one of four reads is taken back and issued again. Which one depends on what else the disk was sent.
requeue_claims() {
	block_claim "scsi $1: one request was requeued" 1 'map(select(.requeues > 0)) | length'
	block_claim "scsi $1: all ended well" '[[0,4096,4096]]' 'map([.error, .bytes, .bytes_done]) | unique'
	block_claim "scsi $1: each once" '[0,8,16,24]' 'map(.sector) | sort'
	block_claim "scsi $1: its last issue is later" 1 \
		'map(select(.requeues > 0 and (.issue_last_ns | tonumber) > (.issue_ns | tonumber))) | length'
	block_claim "scsi $1: others were issued once" 3 'map(select(.issue_last_ns == .issue_ns)) | length'
	block_claim "scsi $1: submitter" '[["start","wl"]]' 'map([.submitter, .comm]) | unique'
}
fail_every() {
	echo "$2" >$debug/opts
	echo "$1" >$debug/every_nth
}

# A transport error is tried again; a host that is busy takes the request back several times.
for kind in "transport error:16" "host busy:0x8000"; do
	fail_every 3 "${kind#*:}"
	block_begin "scsi ${kind%:*}" "$disk"
	block_run "$disk" read:0:4K:4
	requeue_claims "${kind%:*}"
	block_end
	fail_every 0 0
done

# A command that is never answered: timed out, aborted, tried again. From the moment that it hangs, the disk behaves,
# or the error handler's own commands would go unanswered too.
echo 5 >/sys/block/$disk/device/timeout
fail_every 3 4
block_begin "scsi timeout" "$disk"
block_run "$disk" read:0:4K:4 &
runner=$!
hangs() {
	! diskstats_idle "$disk" && sleep 0.7 && ! diskstats_idle "$disk"
}
wait_for 30 hangs || not_ok "scsi timeout: a command hangs" "none does"
fail_every 0 0
wait "$runner"
requeue_claims timeout
block_claim "scsi timeout: it took its time" 1 \
	'map(select((.complete_ns | tonumber) - (.start_ns | tonumber) > 4000000000)) | length'
block_end
echo 90 >/sys/block/$disk/device/timeout

# A request that hangs (12 s, HZ is 250) is seen while it does, and a segment that closes meanwhile has it open.
echo 3000 >$debug/delay
block_comm=hanging
block_begin "scsi hang" "$disk"
block_run "$disk" read:5M:4K &
runner=$!
sleep 2
ctl --json inflight >"$block_dir/inflight.json" || not_ok "scsi hang: inflight answers" "it exited with $?"
kill -0 "$runner" 2>/dev/null || not_ok "scsi hang: still hanging" "the read has ended already"
assert_status "scsi hang: rotate" 0 ctl rotate
hanging=$(grep -lx hanging /proc/[0-9]*/comm 2>/dev/null | sed 's/[^0-9]//g' | head -n 1)
assert_ne "scsi hang: the process waits" "" "$hanging"
wait "$runner"
block_claim_file inflight.json "scsi hang: seen" '[["read",10240,4096,0,"hanging","start",true,null]]' \
	'map(select(.disk == "sda") | [.op, .sector, .bytes, .bytes_done, .comm, .submitter, .issue_ns != null, .complete_ns])'
block_claim_file inflight.json "scsi hang: its age" true \
	'map(select(.disk == "sda") | .age_ns | tonumber) | all(. > 1000000000 and . < 60000000000)'
block_claim_file inflight.json "scsi hang: its process" "${hanging:-none}" 'map(select(.disk == "sda") | .pid) | first'
block_claim "scsi hang: recorded once it ended" '[["read",10240,4096,0,"hanging"]]' \
	'map([.op, .sector, .bytes_done, .error, .comm])'
block_claim "scsi hang: its time" true 'map((.complete_ns | tonumber) - (.issue_ns | tonumber)) | all(. > 11000000000)'
block_end
echo 1 >$debug/delay
block_stop

tap_end
