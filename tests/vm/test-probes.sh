#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# The kernel side alone, without daemon and segments: which programs this kernel takes and by which hook, and
# that records and ledger add up to /proc/diskstats to the last unit for every kind of request, scheduler,
# partition and fallback.
#
# timeout: 240
# vm: --disk data=96M --module null_blk --module scsi_debug --module sd_mod --module sg --module mq-deadline
# vm: --module bfq --tool setpriv --built tests/tools/probe-smoke --built tests/tools/block-workload

. /tests/lib/guest-lib.sh

disk=$(vm_disk data) || bail disk "not found"
out=/tmp/out

field() { sed -n "s/^device $number .* \{0,1\}$1=\([0-9]*\).*/\1/p" $out; }
sum() { sed -n "s/^probe .* $1=\([0-9]*\).*/\1/p" $out | awk '{ n += $1 } END { print n + 0 }'; }
hook_of() { sed -n "s/^probe [0-9]* $1 hook=\([^ ]*\) state=attached.*/\1/p" $out; }

# watch NAME DISK OPTION... -- COMMAND...	runs the command under probe-smoke and compares all columns
watch() {
	name=$1 disk_watched=$2
	shift 2
	number=$(cat "/sys/block/$disk_watched/dev")
	wait_for 10 diskstats_idle "$disk_watched"
	before=$(diskstats_snapshot "$disk_watched")
	probe-smoke --records "$@" >$out 2>/tmp/err
	status=$?
	wait_for 10 diskstats_idle "$disk_watched"
	after=$(diskstats_snapshot "$disk_watched")
	assert_eq "$name: books balance" 0 "$status"
	[ "$status" = 0 ] || { grep '^bad' $out | head -n 5; cat /tmp/err; } | sed 's/^/# /'
	for group in reads writes discards; do
		assert_eq "$name: $group" "$(diskstats_delta "$before" "$after" $group)" "$(field $group)"
		assert_eq "$name: $group sectors" "$(diskstats_delta "$before" "$after" "${group%s}_sectors")" \
			"$(field "${group}_sectors")"
		[ "$(field lost)" != 0 ] ||
			assert_eq "$name: $group merges" "$(diskstats_delta "$before" "$after" "${group%s}_merges")" \
				"$(field "${group}_merges")"
	done
	assert_eq "$name: flushes" "$(diskstats_delta "$before" "$after" flushes)" "$(field flushes)"
	assert_num "$name: something seen" "$(($(field records) + $(field lost)))" -ge 5
	assert_eq "$name: missed" 0 "$(sum missed)"
}

all_kinds='read:0:4K:3 write:1M:64K read:1M:64K dsync:2M:4K:2 fsync write-batch:4M:4K:8 read-batch:4M:4K:8
	read-deep:8M:4K:6 write-deep:10M:8K:6 discard:16M:1M zeroout:20M:64K write:24M:2M read:24M:2M fsync'

work() {
	# shellcheck disable=SC2086 # the operations are words
	set -- "$@" -- block-workload -c smoke -o /tmp/ops "/dev/$target" $operations
	watch "$@"
}

target=$disk operations=$all_kinds
for scheduler in none mq-deadline bfq; do
	vm_scheduler "$disk" $scheduler || { not_ok "nvme $scheduler" "no such scheduler"; continue; }
	work "nvme $scheduler" "$disk"
	assert_eq "nvme $scheduler: all begun before our eyes" 0 "$(field no_start)"
	assert_eq "nvme $scheduler: the submitter of reads and writes" '' \
		"$(sed -n '/^record .* op=\(read\|write\) /{/ submitter=1 .* comm=smoke /!p}' $out | head -n 3)"
	[ $scheduler = none ] && cp $out /tmp/hooks
done
work "nvme $scheduler fallback" "$disk" --fallback
assert_eq "nvme $scheduler fallback: all begun before our eyes" 0 "$(field no_start)"
grep '^probe' $out | sed 's/^/# /'
case $vm_label in
5.10) start=blk_account_io_start:fentry ;;
6.1) start=block_getrq:tp_btf ;;
*) start=block_io_start:tp_btf ;;
esac
vm_scheduler "$disk" none
cp /tmp/hooks $out
grep '^probe' $out | sed 's/^/# /'
assert_eq "start is hooked by" "${start#*:}" "$(hook_of "${start%:*}")"
for hook in block_rq_insert block_rq_issue block_rq_requeue block_bio_backmerge block_bio_frontmerge \
	block_rq_merge block_rq_complete; do
	assert_eq "$hook" tp_btf "$(hook_of $hook)"
done
target=$disk
operations='nvme-read:0:4K nvme-read:1M:64K read:0:4K:4'
work "nvme passthrough" "$disk"

operations="write-deep:0:4K:200 read-deep:0:4K:200 write-deep:0:4K:200 read-deep:0:4K:200 fsync"
work "nvme loss" "$disk" --ring-size 4096 --stall
assert_num "nvme loss: lost" "$(field lost)" -gt 500
work "nvme epochs" "$disk" --flip-ms 20
work "nvme unidentified" "$disk" --in-flight-entries 2

printf 'n\np\n1\n2048\n+32M\nn\np\n2\n\n\nw\n' | fdisk "/dev/$disk" >/tmp/fdisk.log 2>&1
wait_for 10 test -b "/dev/${disk}p2" || bail partition "not made"
target=${disk}p1 operations=$all_kinds
work "partition" "$disk"
# 5.10 looks a partition up by sector, and a flush without data has none: the kernel counts it on the disk.
assert_eq "partition: named" '' \
	"$(grep '^record ' $out | grep -Ev "op=flush| bytes=0 " | grep -v " part=$(cat "/sys/class/block/${disk}p1/dev") ")"

# With the rights of the service: not even libbpf may need more.
# shellcheck disable=SC3045 # busybox has it
ulimit -l unlimited # as the unit does; kernels before 5.11 charge maps to it
/usr/local/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+perfmon,+bpf \
	--ambient-caps -all,+perfmon,+bpf --bounding-set -all,+perfmon,+bpf /usr/local/bin/probe-smoke -- true >$out 2>/tmp/err
assert_eq "as the service: it runs" 0 $?
sed 's/^/# /' /tmp/err
assert_ne "as the service: by the same hooks" "" "$(hook_of block_rq_complete)"

if vm_modprobe null_blk nr_devices=1 queue_mode=2 submit_queues=2 gb=1 discard=1 memory_backed=1; then
	target=nullb0
	work "null_blk" nullb0
else
	not_ok null_blk "no module"
fi
if vm_modprobe sd_mod && vm_modprobe scsi_debug dev_size_mb=64 lbpu=1 lbpws=1 delay=1 max_queue=32; then
	wait_for 10 test -b /dev/sda || bail scsi "no sda"
	sleep 0.5
	target=sda
	for scheduler in mq-deadline bfq; do
		vm_scheduler sda $scheduler || continue
		work "scsi $scheduler" sda
	done
	echo 2 >/sys/bus/pseudo/drivers/scsi_debug/opts
	operations='read:2321K:8K read:2329K:8K read:3M:8K read:2048K:512K read:0:4K:4'
	work "scsi medium error" sda
	echo 0 >/sys/bus/pseudo/drivers/scsi_debug/opts
	assert_num "scsi medium error: seen" "$(field errors)" -ge 2
	vm_modprobe sg
	operations='sg-inquiry read:0:4K:5'
	work "scsi passthrough" sda
else
	not_ok scsi_debug "no module"
fi
tap_end
