#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2034,SC2154 # libraries and variables of the guest
#
# A kernel that lets no program copy its memory (lockdown=confidentiality): programs with plain loads alone run, what
# they tell is right, and what they cannot tell is said so in status, probes and the segment. No modules here: a kernel
# locked down takes none that are not signed.
#
# vm-kernels: 6.12
# timeout: 180
# vm: --memory 320 --append lockdown=confidentiality --disk swap=128M --disk data=64M --tool mkfs.ext4 --tool jq
# vm: --built iotraced --built iotracectl --built tests/tools/file-workload --built tests/tools/swap-hog
# vm: --built tests/tools/quiet-counters

. /tests/lib/guest-lib.sh
. /tests/lib/verdict.sh

swap=$(vm_disk swap) || bail swap "not found"
data=$(vm_disk data) || bail data "not found"
mkdir -p /mnt
mount -t securityfs securityfs /sys/kernel/security
assert_grep "the kernel is locked down" '\[confidentiality\]' /sys/kernel/security/lockdown
mkswap "/dev/$swap" >/tmp/mkswap.log 2>&1 || bail mkswap "$(cat /tmp/mkswap.log)"
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/$data" >/tmp/mkfs.log 2>&1 || bail mkfs "$(cat /tmp/mkfs.log)"
echo "+memory +io" >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/hog
echo 8M >/sys/fs/cgroup/hog/memory.max

iot_setup /results/lockdown
printf '%s\n' "retention:" "  min_free: 0" >"$iot_dir/config.yaml"
iot_start || bail daemon "it did not start"
swapon "/dev/$swap" || bail swapon failed
ctl --json status >/tmp/status.json
ctl probes >/tmp/probes.txt
sed 's/^/# /' /tmp/probes.txt
assert_eq "status: what of swap is told" '["exact","unavailable"]' \
	"$(jq -c '.streams[] | select(.name == "block") | [.swap.out, .swap.in]' /tmp/status.json)"
assert_eq "status: the area" '[["untagged","this kernel does not tell swap-in from other requests"]]' \
	"$(jq -c '[.swap_areas[] | [.coverage, .why]]' /tmp/status.json)"
assert_grep "probes: the area" 'untagged' /tmp/probes.txt

quiet-counters /tmp/begin || bail counters "no rest before it begins"
mount -t ext4 "/dev/$data" /mnt || bail mount "ext4 cannot be mounted"
file-workload -c files /mnt/a write:0:1M fsync
file-workload -c files /mnt/b write:0:512K fsync direct-read:0:512K
umount /mnt
mount -t ext4 "/dev/$data" /mnt || bail mount "not again"
file-workload -c files /mnt/a read:0:1M
ino_a=$(stat -c %i /mnt/a) ino_b=$(stat -c %i /mnt/b)
sh -c 'echo $$ >/sys/fs/cgroup/hog/cgroup.procs; exec swap-hog -n lockdown 16 fill touch:400 pageout touch:300'
assert_eq "the workload ends well" 0 $?
umount /mnt
echo max >/sys/fs/cgroup/hog/memory.max
swapoff "/dev/$swap" || bail swapoff failed
quiet-counters /tmp/end || not_ok counters "no rest at its end"
iot_stop
assert_eq "the daemon ends well" 0 $?
iot_complete_or_missed iotracectl "$iot_state"
assert_eq "everything is proved" 0 $?

# counter NAME	bytes by /proc/vmstat
counter() {
	awk -v c="$1" '$1 == c { v[++n] = $2 } END { print (v[2] - v[1]) * 4096 }' /tmp/begin/vmstat /tmp/end/vmstat
}
# sum FILTER	of the records that it selects, bytes
sum() { jq -s "map(select($1) | .bytes_done - .unswapped_bytes) | add // 0" /tmp/records.json; }

iot_cat >/tmp/records.json
out=$(counter pswpout) in=$(counter pswpin)
note "pswpout $out, pswpin $in, tagged $(sum '.swap == "out"') and $(sum '.swap == "in"')"
assert_num "much was swapped" "$out" -gt 8000000
assert_eq "tagged writes are pswpout" "$out" "$(sum '.swap == "out"')"
assert_num "of reads, at most pswpin are tagged" "$(sum '.swap == "in"')" -le "$in"
# And the page that swapon looked at.
assert_eq "all that the swap disk read is there" "$((in + 4096))" "$(sum "(.disk == \"$swap\") and .op == \"read\"")"
assert_eq "no request of another disk is tagged" 0 "$(jq -s "map(select(.disk != \"$swap\" and (.swap == \"in\" or .swap == \"out\"))) | length" /tmp/records.json)"
# Large pages and the later part of a bio that the disk's limits split are behind a number, which takes a cast.
assert_eq "written and synced" 1048576 "$(sum ".ino == \"$ino_a\" and .op == \"write\"")"
assert_eq "read ahead" 1048576 "$(sum ".ino == \"$ino_a\" and .op == \"read\"")"
assert_eq "written by the other" 524288 "$(sum ".ino == \"$ino_b\" and .op == \"write\"")"
assert_eq "read directly" 524288 "$(sum ".origin == \"direct\" and .op == \"read\" and .comm == \"files\"")"
assert_eq "and of which file" 524288 "$(sum ".origin == \"direct\" and .op == \"read\" and .ino == \"$ino_b\"")"
assert_eq "no other inode" "[\"$ino_a\",\"$ino_b\"]" "$(jq -sc 'map(.ino | values) | unique' /tmp/records.json)"
assert_eq "a read that is no swap for certain has no tag" '[null]' \
	"$(jq -sc 'map(select(.ino != null and .op == "read") | .swap) | unique' /tmp/records.json)"
assert_eq "the segment says what is told" '[true,false]' \
	"$(iotracectl --json report "$iot_state" | jq -c '[.swap_out_known, .swap_in_known]')"
tap_end
